/* SPDX-License-Identifier: MIT
 *
 * test_gpu_bhsparse.c - the single step of bhSPARSE: every bin, every method by itself and with little
 * shared memory, rows that exceed their room once, twice and into global memory, far columns, limits,
 * blocks, failing allocations, statistics. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/engine.h"
#include "powers.h"

static const tulle_options ways[] = {{.policy = "bhsparse"}, {.accumulator = "heap"}, {.accumulator = "esc"},
                                     {.accumulator = "merge"}};
enum { WAYS = sizeof ways / sizeof *ways };

static const char *way_name(int w)
{
    return ways[w].policy ? ways[w].policy : ways[w].accumulator;
}

static int bin_sizes(int64_t *sizes)
{
    static const int64_t edges[] = {48, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 400, 511, 512, 513, 700};
    int rows = 0;
    for (int twice = 0; twice < 2; twice++)             /* no bin has only one row */
        for (int64_t n = 0; n <= 34; n++) sizes[rows++] = n;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) sizes[rows++] = edges[i];
    return rows;
}

/* Rows of each size use the right method, by the number of rows of each. */
static void every_bin_exactly(void)
{
    int64_t sizes[100], rows = bin_sizes(sizes);
    tulle_ctx *ctx = gpu_ctx();
    for (same s = NONE; s <= ALL; s++) {
        ref A = sums(sizes, (int)rows, REF_REALS, f64), B = powers(s, 40000, REF_REALS, f64), want = ref_product(&A.view, &B.view);
        for (int w = 0; w < WAYS; w++) {
            tulle_stats st;
            int64_t expect[4] = {0};                            /* direct, heap, esc, merge */
            for (int i = 0; i < rows; i++) {
                int64_t n = sizes[i];
                int heap = w < 2 ? 32 : 1, esc = w == 3 ? 1 : 512;
                expect[n <= 1 ? 0 : n <= heap ? 1 : n <= esc ? 2 : 3]++;
            }
            /* real values: all methods compute sums in the order of A */
            gpu_product_is(ctx, &A.view, &B.view, &ways[w], w % 2 ? PLACES - 1 : 0, &want.view, way_name(w));
            tulle_ctx_stats(ctx, &st);
            static const char *const names[] = {"direct", "heap", "esc", "merge"};
            for (int k = 0; k < 4; k++)
                CHECK(share_rows(&st, names[k]) == expect[k], "%s: %s took %" PRId64 " rows, not %" PRId64, way_name(w), names[k],
                      share_rows(&st, names[k]), expect[k]);
        }
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

/* Rows of B with one entry, so there are as many entries of A as products, and a batch has many rows. */
static void rows_of_single_entries(void)
{
    static const char *const shared[] = {NULL, "1024"};
    for (int k = 0; k < 2; k++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[k]);
        ref A = staircase(40, 3000, 1100, 2, REF_INTEGERS, f64), B = ref_new(3000, 700, 3000, f64);
        for (int64_t i = 0; i < 3000; i++) {
            ref_set_col(&B, i, 389 * i % 700);
            ref_set_ptr(&B, i + 1, i + 1);
        }
        ref_fill(&B, REF_INTEGERS, 43);
        ref want = ref_product(&A.view, &B.view);
        for (int w = 0; w < WAYS; w++) gpu_product_is(ctx, &A.view, &B.view, &ways[w], 0, &want.view, way_name(w));
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
        tulle_ctx_free(ctx);
    }
}

/* ---- rows that exceed their room */

static void rows_that_outgrow_their_room(void)
{
    static const char *const shared[] = {NULL, "16384", "4096", "2048", "1024"};
    static const int64_t sizes[] = {520, 700, 1000, 1024, 1025, 2000, 3, 2048, 4096, 513, 5000, 0, 8191, 16383, 9000};
    const int rows = (int)(sizeof sizes / sizeof *sizes);
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[k]);
        for (same s = NONE; s <= ALL; s++) {
            ref A = sums(sizes, rows, REF_INTEGERS, f64), B = powers(s, 40000, REF_INTEGERS, f64);
            tulle_matrix *C = cpu_product(&A.view, &B.view, NULL);
            tulle_csr want = tulle_matrix_view(C);
            char name[64];
            for (int w = 0; w < WAYS; w += 3) {
                snprintf(name, sizeof name, "%s, shared %s, same %d", way_name(w), shared[k] ? shared[k] : "all", (int)s);
                gpu_product_is(ctx, &A.view, &B.view, &ways[w], 0, &want, name);
            }
            tulle_matrix_free(C);
            ref_free(&A);
            ref_free(&B);
        }
        tulle_ctx_free(ctx);
    }
}

/* Long rows made of many short rows of B: columns in any order, and repeated. */
static void long_rows_of_random_columns(void)
{
    static const char *const shared[] = {NULL, "8192", "1024"};
    for (int k = 0; k < 3; k++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[k]);
        ref A = ref_random(44, 3, 900, 700, REF_INTEGERS, f64), B = ref_random(45, 900, 6000, 14, REF_INTEGERS, f64);
        ref want = ref_product(&A.view, &B.view);
        for (int w = 0; w < WAYS; w += 3) gpu_product_is(ctx, &A.view, &B.view, &ways[w], 0, &want.view, way_name(w));
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
        tulle_ctx_free(ctx);
    }
}

/* ---- types, columns, zeros */

static void every_type(void)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 31, 32, 33, 90, 300, 512, 513, 900, 2500};
    const int rows = (int)(sizeof sizes / sizeof *sizes);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "4096");
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        ref A = sums(sizes, rows, REF_INTEGERS, t), B = powers(SOME, 40000, REF_INTEGERS, t), want = ref_product(&A.view, &B.view);
        gpu_product_is(ctx, &A.view, &B.view, &ways[i % WAYS], i % PLACES, &want.view, ref_types_name(t));
        gpu_product_is(ctx, &A.view, &B.view, &ways[0], (i + 3) % PLACES, &want.view, ref_types_name(t));
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

/* The limits of words of column and index are 2^27, 2^23 and 2^22 columns, for words of 64 bits 2^53. */
static void far_columns(void)
{
    static const int64_t cols[] = {((int64_t)1 << 22) - 1, (int64_t)1 << 22, (int64_t)1 << 23, (int64_t)1 << 27,
                                   ((int64_t)1 << 31) - 1, (int64_t)1 << 40, ((int64_t)1 << 53) + 1, INT64_MAX};
    static const char *const shared[] = {NULL, "2048"};
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[i % 2]);
        ref_types t = cols[i] > INT32_MAX ? f64_i64 : f64;
        ref A = staircase(30, 60, 50, 1, REF_INTEGERS, t), B = ref_random(46, 60, cols[i], 25, REF_INTEGERS, t);
        for (int64_t r = 0; r < 60; r += 3) {                   /* some in the very first and last column */
            int64_t begin = ref_ptr(&B.view, r), end = ref_ptr(&B.view, r + 1);
            if (end > begin) ref_set_col(&B, begin, 0);
            if (end > begin + 1) ref_set_col(&B, end - 1, cols[i] - 1);
        }
        ref want = ref_product(&A.view, &B.view);
        char name[64];
        for (int w = 0; w < WAYS; w++) {
            snprintf(name, sizeof name, "%" PRId64 " columns, %s", cols[i], way_name(w));
            gpu_product_is(ctx, &A.view, &B.view, &ways[w], 0, &want.view, name);
        }
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
        tulle_ctx_free(ctx);
    }
}

static void zeros_are_dropped(void)
{
    int64_t sizes[100], rows = bin_sizes(sizes);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    ref A = sums(sizes, (int)rows, REF_CANCELLING, f64), B = powers(ALL, 40000, REF_CANCELLING, f64);
    ref all = ref_product(&A.view, &B.view), fewer = ref_without_zeros(&all.view);
    REQUIRE(fewer.view.nnz < all.view.nnz, "%s", "nothing cancels");
    for (int w = 0; w < WAYS; w++) {
        tulle_options o = ways[w];
        o.drop_zeros = 1;
        gpu_product_is(ctx, &A.view, &B.view, &o, w % 2 * C_THERE, &fewer.view, way_name(w));
        gpu_product_is(ctx, &A.view, &B.view, &ways[w], 0, &all.view, way_name(w));
    }
    ref_free(&A);
    ref_free(&B);
    ref_free(&all);
    ref_free(&fewer);
    tulle_ctx_free(ctx);
}

/* ---- limits, blocks, plans, failures, figures */

static pair mixed(void)
{
    static int64_t sizes[100];
    int rows = bin_sizes(sizes);
    sizes[rows++] = 5000;
    sizes[rows++] = 1500;
    return (pair){sums(sizes, rows, REF_INTEGERS, f64), powers(SOME, 40000, REF_INTEGERS, f64), "mixed"};
}

/* Tries the limit named by the error, until it is sufficient; then blocks with less. */
static void limits_and_blocks(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    pair p = mixed();
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_options o = {.policy = "bhsparse", .memory_limit = 1};
    tulle_matrix *C = NULL;
    tulle_status status;
    int tries = 0;
    while ((status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C)) == TULLE_ELIMIT && tries++ < 20) {
        unsigned long long need = 0;
        const char *number = strstr(tulle_ctx_error(ctx), "needs ");
        REQUIRE(!C && number && sscanf(number, "needs %llu bytes", &need) == 1 && need > o.memory_limit, "%s", tulle_ctx_error(ctx));
        o.memory_limit = need;
    }
    REQUIRE(status == TULLE_OK && tries >= 1 && tries <= 2, "%d tries: %s", tries, tulle_ctx_error(ctx));
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    tulle_csr c = tulle_matrix_view(C);
    CHECK(s.peak_bytes <= o.memory_limit && ref_same(&c, &want.view, "limited"), "%" PRIu64 " bytes", s.peak_bytes);
    tulle_matrix_free(C);
    const uint64_t whole = o.memory_limit;
    int64_t most = 0;
    for (uint64_t limit = whole; limit > whole / 3; limit -= whole / 8) {
        joined j = {.want = &want.view, .good = true};
        o.memory_limit = limit;
        status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, join, &j);
        CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
        if (status == TULLE_OK) CHECK(j.good && j.rows == p.A.view.rows, "limit %" PRIu64, limit);
        if (j.blocks > most) most = j.blocks;
    }
    CHECK(most > 1, "%" PRId64 " blocks at most", most);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void every_allocation_fails_once(void)
{
    static const int64_t sizes[] = {0, 1, 20, 90, 600, 1500};
    ref A = sums(sizes, 6, REF_INTEGERS, f64), B = powers(NONE, 40000, REF_INTEGERS, f64), want = ref_product(&A.view, &B.view);
    bool done = false;
    int failed = 0, went_on = 0;
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "4096");
    for (int n = 1; !done && n < 200 && test_failures < 10; n++) {
        tulle_matrix *C = NULL;
        gpu_fail_at(ctx, n);
        uint64_t held = tl_dmem_held(ctx->gpu);
        tulle_options o = {.policy = "bhsparse", .drop_zeros = 1, .c_ptr_type = TULLE_I64, .c_place = n % 2};
        tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
        tulle_csr c = tulle_matrix_view(C);
        if (C && !o.c_place) CHECK(ref_same(&c, &want.view, "in blocks"), "allocation %d", n);
        done = ctx->gpu->requests < (uint64_t)n;
        CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && !done && !C), "allocation %d: %s: %s", n, tulle_status_name(status),
              tulle_ctx_error(ctx));
        failed += status != TULLE_OK;
        went_on += status == TULLE_OK && !done && !o.c_place;           /* to the host, in blocks */
        tulle_matrix_free(C);
        CHECK(tl_dmem_held(ctx->gpu) == held, "allocation %d: %" PRIu64 " bytes are left", n, tl_dmem_held(ctx->gpu) - held);
        gpu_product_is(ctx, &A.view, &B.view, &o, 0, &want.view, "afterwards");
    }
    tulle_ctx_free(ctx);
    CHECK(done && failed > 5 && went_on > 5, "%d allocations failed, %d went on, done %d", failed, went_on, done);
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
}

static void a_plan(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = mixed();
    for (int w = 0; w < WAYS; w++) {
        tulle_plan *plan = NULL;
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, &ways[w], &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        ref_fill(&p.A, REF_INTEGERS, 50 + (uint64_t)w);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
        CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, way_name(w)), "%s", "wrong values");
        tulle_stats s;
        tulle_plan_stats(plan, &s);
        /* new values need a numeric step, so the policy is reported as "in two steps" */
        CHECK(strcmp(s.policy, w == 0 ? "bhsparse, in two steps" : "auto") == 0, "%s: policy %s", way_name(w), s.policy);
        int64_t rows = 0;
        for (int k = 0; k < s.shares; k++) {
            const char *name = s.share[k].name;
            rows += s.share[k].rows;
            CHECK(strcmp(name, "heap") != 0 && strcmp(name, "esc") != 0 && strcmp(name, "merge") != 0, "%s: %s took rows",
                  way_name(w), name);
        }
        CHECK(rows == p.A.view.rows && s.products == ref_count_products(&p.A.view, &p.B.view), "%s: %" PRId64 " rows",
              way_name(w), rows);
        free(values);
        tulle_plan_free(plan);
        ref_free(&want);
    }
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void statistics_add_up(void)
{
    static const char *const stages[] = {"upper bound", "binning", "heap", "bitonic ESC", "merge", "arranging"};
    tulle_ctx *ctx = gpu_ctx();
    pair p = mixed();
    for (int i = 0; i < 3; i++) {
        pair q = i == 0 ? p : gpu_pair(i == 1 ? 4 : 15, REF_INTEGERS, f64, f64);
        for (int w = 0; w < WAYS; w++) {
            tulle_options o = ways[w];
            tulle_matrix *C = NULL;
            tulle_stats s;
            o.time_stages = 1;
            REQUIRE(tulle_multiply(ctx, &q.A.view, &q.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_ctx_stats(ctx, &s);
            int64_t rows = 0, products = 0;
            for (int k = 0; k < s.shares; k++) {
                rows += s.share[k].rows;
                products += s.share[k].products;
            }
            CHECK(rows == q.A.view.rows && products == s.products && s.products == ref_count_products(&q.A.view, &q.B.view),
                  "%s, %s: %" PRId64 " rows, %" PRId64 " products", q.name, way_name(w), rows, products);
            CHECK(s.c_nnz == tulle_matrix_view(C).nnz && s.peak_bytes > 0 && s.waits > 0, "%s", way_name(w));
            for (size_t k = 0; w == 0 && i == 0 && k < sizeof stages / sizeof *stages; k++) {
                bool there = false;
                for (int n = 0; n < s.stages; n++) there = there || strcmp(s.stage[n].name, stages[k]) == 0;
                CHECK(there, "no stage %s", stages[k]);
            }
            tulle_matrix_free(C);
        }
        pair_free(&q);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_bin_exactly), TEST(rows_of_single_entries), TEST(rows_that_outgrow_their_room),
          TEST(long_rows_of_random_columns), TEST(every_type), TEST(far_columns), TEST(zeros_are_dropped), TEST(limits_and_blocks),
          TEST(every_allocation_fails_once), TEST(a_plan), TEST(statistics_add_up))
