/* SPDX-License-Identifier: MIT
 *
 * test_gpu_twinned.c - products of matrices with consecutive rows of the same columns (src/gpu/twins.c):
 * they are found, in bundles of up to three, and results have the bits of the CPU.  TULLE_GPU_TWINS=on
 * enables them for small products. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

/* Runs of `high` rows with the same columns; columns in groups of `wide` at random positions; every
 * broken-th row has a different last column. */
typedef struct shape { int64_t rows, cols, high, wide, groups, broken; } shape;

static int64_t place_of(const shape *s, int64_t run, int64_t i)
{
    const uint64_t blocks = (uint64_t)(s->cols / s->wide), step = blocks / (uint64_t)s->groups;
    const uint64_t x = ((uint64_t)run * 977 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) >> 33;
    return (int64_t)((uint64_t)i * step + x % step) * s->wide;
}

static ref make(shape s, ref_types t)
{
    const int64_t each = s.groups * s.wide;
    ref A = ref_new(s.rows, s.cols, s.rows * each, t);
    int64_t at = 0;
    for (int64_t r = 0; r < s.rows; r++) {
        for (int64_t i = 0; i < s.groups; i++)
            for (int64_t k = 0; k < s.wide; k++) ref_set_col(&A, at++, place_of(&s, r / s.high, i) + k);
        if (s.broken && r % s.broken == s.broken / 2 && ref_col(&A.view, at - 1) + 1 < s.cols)
            ref_set_col(&A, at - 1, ref_col(&A.view, at - 1) + 1);
        ref_set_ptr(&A, r + 1, at);
    }
    ref_fill(&A, REF_REALS, 77);
    return A;
}

static int64_t twins_of(const tulle_stats *s)
{
    for (int k = 0; k < s->shares; k++)
        if (strcmp(s->share[k].name, "twins") == 0) return s->share[k].rows;
    return 0;
}

/* Returns the number of rows computed in bundles. */
static int64_t same(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const char *name)
{
    tulle_matrix *C = cpu_product(A, B, NULL);
    tulle_csr want = tulle_matrix_view(C);
    tulle_stats s;
    gpu_product_is(ctx, A, B, NULL, 0, &want, name);
    tulle_ctx_stats(ctx, &s);
    int64_t rows = 0, products = 0;
    for (int k = 0; k < s.shares; k++) rows += s.share[k].rows, products += s.share[k].products;
    CHECK(rows == A->rows && products == s.products, "%s: shares of %" PRId64 " rows, %" PRId64 " products", name,
          rows, products);
    tulle_matrix_free(C);
    return twins_of(&s);
}

static void bundles_of_every_height(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    for (int64_t high = 1; high <= 7; high++) {
        char name[64];
        ref A = make((shape){420, 420, high, high, 5, 0}, f64);
        snprintf(name, sizeof name, "%d rows alike", (int)high);
        CHECK(same(ctx, &A.view, &A.view, name) == 420, "%s: some are not taken", name);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* Different bundle sizes for rows of A, rows of B, and columns; some rows have a different last entry. */
static void bundles_that_differ(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    static const int64_t highs[][4] = {{3, 1, 1, 1}, {1, 1, 3, 1}, {3, 3, 2, 1}, {3, 2, 3, 4}, {2, 3, 3, 3}, {6, 3, 3, 5},
                                       {4, 4, 4, 2}, {3, 4, 5, 3}};
    for (size_t i = 0; i < sizeof highs / sizeof *highs; i++)
        for (int64_t broken = 0; broken <= 7; broken += 7) {
            char name[64];
            ref A = make((shape){200, 300, highs[i][0], highs[i][1], 40, broken}, f64);
            ref B = make((shape){300, 1001, highs[i][2], highs[i][3], 9, broken ? 11 : 0}, f64);
            snprintf(name, sizeof name, "case %d, every %d broken", (int)i, (int)broken);
            CHECK(same(ctx, &A.view, &B.view, name) == 200, "%s: some are not taken", name);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

static void every_type(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    for (int i = 0; i < REF_TYPES; i++) {
        if (skips_types(i)) continue;
        ref_types t = ref_types_at(i);
        ref A = make((shape){130, 150, 3, 3, 7, 13}, t), B = make((shape){150, 200, 3, 3, 6, 17}, t);
        CHECK(same(ctx, &A.view, &B.view, ref_types_name(t)) == 130, "%s: some are not taken", ref_types_name(t));
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* Rows with patterns too large for shared memory, or for the counting hash table, are computed without
 * bundles. */
static void long_rows_go_the_ordinary_way(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    ref A = make((shape){60, 90, 3, 3, 12, 0}, f64), B = make((shape){90, 60000, 3, 1, 60, 0}, f64);
    ref_fill(&A, REF_INTEGERS, 3);                  /* long rows are not summed in the order of the CPU */
    ref_fill(&B, REF_INTEGERS, 4);
    CHECK(same(ctx, &A.view, &B.view, "many words") < 60, "all are taken");
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

static void plans_run_with_new_values(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    ref A = make((shape){300, 300, 3, 3, 6, 23}, f64);
    tulle_plan *plan = NULL;
    tulle_stats s;
    REQUIRE(tulle_plan_create(ctx, &A.view, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_plan_stats(plan, &s);
    CHECK(twins_of(&s) == 300, "%" PRId64 " rows", twins_of(&s));
    for (uint64_t seed = 5; seed < 8; seed++) {
        ref_fill(&A, REF_REALS, seed);
        tulle_matrix *W = cpu_product(&A.view, &A.view, NULL);
        tulle_csr want = tulle_matrix_view(W);
        double *values = malloc((size_t)want.nnz * sizeof *values);
        REQUIRE(values && tulle_plan_run(plan, A.view.values, A.view.values, values) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        CHECK(memcmp(values, want.values, (size_t)want.nnz * sizeof *values) == 0, "other values");
        free(values);
        tulle_matrix_free(W);
    }
    tulle_plan_free(plan);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void every_allocation_fails_once(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    ref A = make((shape){300, 300, 3, 3, 6, 23}, f64);
    tulle_matrix *W = cpu_product(&A.view, &A.view, NULL);
    tulle_csr want = tulle_matrix_view(W);
    int ordinary = 0;
    bool through = false;
    for (int n = 1; n < 40 && !through; n++) {
        tulle_matrix *C = NULL;
        uint64_t held = tl_dmem_held(ctx->gpu);
        gpu_fail_at(ctx, n);
        tulle_status status = tulle_multiply(ctx, &A.view, &A.view, NULL, &C);
        through = ctx->gpu->requests < (uint64_t)n;
        ctx->gpu->fail_at = 0;
        CHECK(status == TULLE_OK && C, "request %d: %s", n, tulle_ctx_error(ctx));
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        tulle_csr c = tulle_matrix_view(C);
        if (C) CHECK(ref_same(&c, &want, "without some memory"), "request %d", n);
        if (C && !twins_of(&s)) ordinary++;
        tulle_matrix_free(C);
        CHECK(tl_dmem_held(ctx->gpu) == held, "request %d: something stayed", n);
    }
    CHECK(through && ordinary >= 1, "%d the ordinary way", ordinary);
    tulle_matrix_free(W);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* With auto, the default, used if enough rows are in bundles; never with off. */
static void they_are_taken_where_they_are(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "auto"), *off = gpu_ctx_env("TULLE_GPU_TWINS", "off");
    ref A = make((shape){12000, 12000, 6, 6, 4, 0}, f64), B = make((shape){12000, 12000, 1, 1, 18, 0}, f64);
    CHECK(same(ctx, &A.view, &A.view, "bundles") == 12000, "not taken");
    CHECK(same(off, &A.view, &A.view, "bundles, off") == 0, "off is not off");
    CHECK(same(ctx, &B.view, &B.view, "none") == 0, "taken");
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
    tulle_ctx_free(off);
}

static void beside_every_other_class(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    for (int i = 0; i < GPU_PAIRS; i += 3) {
        pair p = gpu_pair(i, REF_INTEGERS, f64, f64);
        same(ctx, &p.A.view, &p.B.view, p.name);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(bundles_of_every_height), TEST(bundles_that_differ), TEST(every_type),
          TEST(long_rows_go_the_ordinary_way), TEST(plans_run_with_new_values), TEST(every_allocation_fails_once),
          TEST(they_are_taken_where_they_are), TEST(beside_every_other_class))
