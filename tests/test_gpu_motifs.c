/* SPDX-License-Identifier: MIT
 *
 * test_gpu_motifs.c - rows of C with the same pattern of products (src/gpu/motifs.c): they are found, rows
 * that differ in one entry are not mistaken for them, and values have the bits of the CPU.
 * TULLE_GPU_MOTIFS=on enables them for small products, "collide-classes" and "collide-motifs" reduce hashes
 * to two bits, and a number limits the number of motifs. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

/* ---- matrices defined by a function that returns the columns of a row, in order */

typedef struct shape {
    int64_t nx, ny, nz;                 /* size of a grid, or other parameters            */
    int     points, periodic;
    int64_t broken;                     /* every so many rows lose an entry; 0: none      */
} shape;

typedef int64_t (*row_fn)(const shape *s, int64_t row, int64_t *columns);

enum { LONGEST = 4096 };

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static ref build(int64_t rows, int64_t cols, row_fn fn, const shape *s, ref_kind kind, ref_types t)
{
    int64_t columns[LONGEST], nnz = 0, at = 0;
    for (int64_t r = 0; r < rows; r++) nnz += fn(s, r, columns);
    ref A = ref_new(rows, cols, nnz, t);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = fn(s, r, columns);
        qsort(columns, (size_t)n, sizeof *columns, by_size);
        for (int64_t i = 0; i < n; i++) ref_set_col(&A, at++, columns[i]);
        ref_set_ptr(&A, r + 1, at);
    }
    ref_fill(&A, kind, 77);
    return A;
}

/* A stencil of 5, 7, 9 or 27 points. */
static int64_t stencil_row(const shape *s, int64_t row, int64_t *columns)
{
    const int64_t x = row % s->nx, y = row / s->nx % s->ny, z = row / s->nx / s->ny;
    int64_t n = 0;
    for (int64_t c = -1; c <= 1; c++)
        for (int64_t b = -1; b <= 1; b++)
            for (int64_t a = -1; a <= 1; a++) {
                int64_t i = x + a, j = y + b, k = z + c;
                if ((s->points == 5 || s->points == 7) && llabs(a) + llabs(b) + llabs(c) > 1) continue;
                if ((s->points == 5 || s->points == 9) && c) continue;
                if (s->periodic) {
                    i = (i + s->nx) % s->nx;
                    j = (j + s->ny) % s->ny;
                    k = (k + s->nz) % s->nz;
                }
                if (i < 0 || j < 0 || k < 0 || i >= s->nx || j >= s->ny || k >= s->nz) continue;
                columns[n++] = (k * s->ny + j) * s->nx + i;
            }
    if (s->broken && row % s->broken == 3) n -= 1 + (row / s->broken) % (n - 1);
    return n;
}

static ref stencil(shape s, ref_kind kind, ref_types t)
{
    const int64_t n = s.nx * s.ny * s.nz;
    return build(n, n, stencil_row, &s, kind, t);
}

/* nx consecutive columns from row * ny on; every nz-th row except the first is empty. */
static int64_t stretch_row(const shape *s, int64_t row, int64_t *columns)
{
    if (s->nz && row % s->nz == s->nz - 1) return 0;
    for (int64_t i = 0; i < s->nx; i++) columns[i] = row * s->ny + i;
    return s->nx;
}

/* ---- one product, compared with the CPU */

static int64_t rows_of(const tulle_stats *s, const char *name)
{
    for (int k = 0; k < s->shares; k++)
        if (strcmp(s->share[k].name, name) == 0) return s->share[k].rows;
    return 0;
}

/* Returns the number of rows computed by motifs. */
static int64_t same_as_the_cpu(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                               int places, const char *name)
{
    tulle_matrix *C = cpu_product(A, B, o);
    tulle_csr want = tulle_matrix_view(C);
    tulle_stats s;
    gpu_product_is(ctx, A, B, o, places, &want, name);
    tulle_ctx_stats(ctx, &s);
    int64_t rows = 0, products = 0;
    for (int k = 0; k < s.shares; k++) rows += s.share[k].rows, products += s.share[k].products;
    CHECK(rows == A->rows && products == s.products, "%s: shares of %" PRId64 " rows, %" PRId64 " products",
          name, rows, products);
    tulle_matrix_free(C);
    return rows_of(&s, "motif");
}

static int64_t squared_of(tulle_ctx *ctx, shape s, ref_kind kind, ref_types t, const char *name)
{
    ref A = stencil(s, kind, t);
    int64_t rows = same_as_the_cpu(ctx, &A.view, &A.view, NULL, 0, name);
    ref_free(&A);
    return rows;
}

static int64_t squared(tulle_ctx *ctx, shape s, ref_types t, const char *name)
{
    return squared_of(ctx, s, REF_REALS, t, name);
}

/* ---- finding motifs */

static void stencils_in_two_and_three_dimensions(void)
{
    static const struct { shape s; int64_t least; } cases[] = {
        {{30, 20, 1, 5, 0, 0}, 500}, {{25, 24, 1, 9, 0, 0}, 500}, {{9, 8, 7, 7, 0, 0}, 300},
        {{9, 8, 7, 27, 0, 0}, 300}, {{40, 15, 1, 5, 1, 0}, 500}, {{9, 8, 9, 7, 1, 0}, 500},
        {{8, 7, 9, 27, 1, 0}, 300}, {{600, 1, 1, 5, 0, 0}, 590}};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        snprintf(name, sizeof name, "case %d, %d points", (int)i, cases[i].s.points);
        int64_t rows = squared(ctx, cases[i].s, f64, name);
        CHECK(rows >= cases[i].least, "%s: only %" PRId64 " rows", name, rows);
    }
    tulle_ctx_free(ctx);
}

/* Rows that lost entries, and rows that refer to them, are computed without motifs, all others with
 * motifs. */
static void broken_rows_go_the_ordinary_way(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int points = 5; points <= 27; points += points == 5 ? 4 : 18) {
        shape s = {30, 20, 1, points, 0, 41};
        if (points == 27) s = (shape){10, 9, 8, 27, 0, 211};
        ref A = stencil(s, REF_REALS, f64);
        int64_t rows = same_as_the_cpu(ctx, &A.view, &A.view, NULL, PLACES - 1, "broken rows");
        CHECK(rows > A.view.rows / 4 && rows < A.view.rows, "%d points: %" PRId64 " of %" PRId64 " rows",
              points, rows, A.view.rows);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* The last entry of one row of B, or of one row of A, is shifted by one column. */
static void the_last_entry_alone_is_different(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    const shape s = {.nx = 6, .ny = 1}, four = {.nx = 4, .ny = 1};
    const int64_t n = 300, at = 123;
    for (int which = 0; which < 3; which++) {
        ref A = build(n, n + 20, stretch_row, &four, REF_REALS, f64);
        ref B = build(n + 20, n + 40, stretch_row, &s, REF_REALS, f64);
        ref *M = which == 1 ? &A : &B;
        const int64_t last = ref_ptr(&M->view, at + 1) - 1;
        if (which) ref_set_col(M, last, ref_col(&M->view, last) + 1);
        int64_t rows = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, "the last entry");
        /* a changed row of B affects four rows of C, each of which has a motif of its own */
        CHECK(rows == n - (which == 0 ? 0 : which == 1 ? 1 : 4), "%d: %" PRId64 " rows", which, rows);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* Rows of B with equal length, first and last column, but of six different patterns: only a comparison of
 * all entries distinguishes them, and the rows of C that use them. */
static int64_t kinds_row(const shape *s, int64_t row, int64_t *columns)
{
    (void)s;
    columns[0] = row;
    columns[1] = row + 1 + row / 3 % 6;
    columns[2] = row + 9;
    return 3;
}

/* With only four different hashes, rows that differ from the representative in the table have no motif.
 * First rows of B have different patterns; then all have the same, but different first columns. */
static void hashes_that_collide(void)
{
    static const char *const ways[] = {"on", "collide-classes", "collide-motifs"};
    const int64_t n = 300;
    for (int i = 0; i < 3; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", ways[i]);
        for (int k = 0; k < 2; k++) {
            ref A = build(n, n + 20, k ? kinds_row : stretch_row, &(shape){.nx = 3, .ny = 1}, REF_REALS, f64);
            ref B = build(n + 20, n + 40, k ? stretch_row : kinds_row, &(shape){.nx = 3, .ny = 1}, REF_REALS,
                          f64);
            int64_t rows = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, ways[i]);
            bool all = i == 0 || (i == 1 && k);
            CHECK(rows > 0 && (rows == n) == all, "%s, %d: %" PRId64 " rows", ways[i], k, rows);
            ref_free(&A);
            ref_free(&B);
        }
        for (int k = 0; k < 4; k++)
            squared(ctx, (shape){20 + k, 20, 1, k % 2 ? 9 : 5, 0, k / 2 * 37}, f64, ways[i]);
        tulle_ctx_free(ctx);
    }
}

static void room_for_a_few_motifs_only(void)
{
    static const char *const most[] = {"1", "3", "10"};
    for (int i = 0; i < 3; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", most[i]);
        int64_t rows = squared(ctx, (shape){30, 20, 1, 9, 0, 17}, f64, "few motifs");
        CHECK(rows < 600, "%s motifs take %" PRId64 " rows", most[i], rows);
        tulle_ctx_free(ctx);
    }
}

/* ---- different products */

static void every_type(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int i = 0; i < REF_TYPES; i++) {
        if (skips_types(i)) continue;
        ref_types t = ref_types_at(i);
        const char *name = ref_types_name(t);
        CHECK(squared(ctx, (shape){12, 11, 1, 5, 0, 29}, t, name) > 80, "%s: few rows", name);
        CHECK(squared(ctx, (shape){6, 7, 6, 27, 0, 0}, t, name) > 80, "%s: few long rows", name);
    }
    tulle_ctx_free(ctx);
}

/* Rows of B shifted by two columns from row to row, or by none; rows of A by two, none, or to the left. */
static int64_t backwards_row(const shape *s, int64_t row, int64_t *columns)
{
    for (int64_t i = 0; i < s->nx; i++) columns[i] = s->nz - s->ny * row + i;
    return s->nx;
}

static void rectangular(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int64_t step_a = 0; step_a <= 3; step_a++)
        for (int64_t step_b = 0; step_b <= 2; step_b++) {
            const int64_t rows = 150, inner = 480, cols = 2 * inner + 9;
            shape a = {.nx = 5, .ny = step_a % 3, .nz = inner - 6}, b = {.nx = 7, .ny = step_b};
            ref A = build(rows, inner, step_a == 3 ? backwards_row : stretch_row,
                          &(shape){.nx = a.nx, .ny = step_a == 3 ? 2 : a.ny, .nz = step_a == 3 ? a.nz : 0},
                          REF_REALS, f64);
            ref B = build(inner, cols, stretch_row, &b, REF_REALS, f64);
            char name[64];
            snprintf(name, sizeof name, "steps %d and %d", (int)step_a, (int)step_b);
            int64_t found = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, name);
            CHECK(found == rows, "%s: %" PRId64 " rows", name, found);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* Empty rows in A and in B, also within motifs; and an empty matrix. */
static void empty_rows(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int64_t in_a = 0; in_a <= 5; in_a += 5)
        for (int64_t in_b = 0; in_b <= 4; in_b += 2) {
            shape a = {.nx = 6, .ny = 1, .nz = in_a}, b = {.nx = 3, .ny = 1, .nz = in_b};
            ref A = build(200, 210, stretch_row, &a, REF_REALS, f64);
            ref B = build(210, 220, stretch_row, &b, REF_REALS, f64);
            int64_t found = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, "empty rows");
            int64_t full = in_a ? 160 : 200;
            CHECK(found == full, "every %d, every %d: %" PRId64 " rows", (int)in_a, (int)in_b, found);
            ref_free(&A);
            ref_free(&B);
        }
    ref A = build(50, 60, stretch_row, &(shape){.nx = 4, .ny = 1}, REF_REALS, f64);
    ref B = ref_new(60, 70, 0, f64);
    CHECK(same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, "no entries in B") == 0, "motifs of nothing");
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

/* Rows of A and of B longer than a team, than a block, and than a short motif; single entries; more products
 * than a motif may have. */
static void rows_of_every_length(void)
{
    static const struct { int64_t a, b, b_step; bool motif; } cases[] = {
        {1, 1, 1, true}, {1, 40, 1, true}, {40, 1, 1, true}, {33, 7, 1, true}, {16, 16, 2, true},
        {8, 33, 1, true}, {32, 8, 3, true}, {45, 50, 1, true}, {70, 31, 5, true}, {3, 600, 1, true},
        {300, 5, 1, true}, {2, 3000, 1, false}};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t rows = 40, inner = rows + cases[i].a;
        ref A = build(rows, inner, stretch_row, &(shape){.nx = cases[i].a, .ny = 1}, REF_REALS, f64);
        ref B = build(inner, inner * cases[i].b_step + cases[i].b, stretch_row,
                      &(shape){.nx = cases[i].b, .ny = cases[i].b_step}, REF_REALS, f64);
        char name[64];
        snprintf(name, sizeof name, "%d times %d", (int)cases[i].a, (int)cases[i].b);
        int64_t found = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, name);
        CHECK(found == (cases[i].motif ? rows : 0), "%s: %" PRId64 " rows", name, found);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* Columns beyond 2^32, a row of C whose span exceeds 32 bits, and -0. */
static int64_t far_row(const shape *s, int64_t row, int64_t *columns)
{
    for (int64_t i = 0; i < s->nx; i++) columns[i] = ((int64_t)5 << 33) + row * s->ny + i * s->nz;
    if (row == 20) columns[0] = 1;
    return s->nx;
}

static void far_columns_and_signs_of_zero(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    const ref_types t = {TULLE_F64, TULLE_I32, TULLE_I64};
    ref A = build(60, 70, stretch_row, &(shape){.nx = 4, .ny = 1}, REF_REALS, t);
    ref B = build(70, (int64_t)1 << 40, far_row, &(shape){.nx = 5, .ny = 3, .nz = 1000}, REF_REALS, t);
    int64_t found = same_as_the_cpu(ctx, &A.view, &B.view, NULL, 0, "far columns");
    CHECK(found == 56, "%" PRId64 " rows", found);
    ref_free(&A);
    ref_free(&B);
    for (int kind = 0; kind < 2; kind++) {
        ref S = stencil((shape){20, 10, 1, 5, 0, 0}, REF_CANCELLING, f64);
        for (int64_t k = 0; kind && k < S.view.nnz; k += 2) ref_set_val(&S, k, (ref_value){-0.0, 0});
        CHECK(same_as_the_cpu(ctx, &S.view, &S.view, &(tulle_options){.drop_zeros = kind}, 0, "zeros") > 100,
              "few rows");
        ref_free(&S);
    }
    tulle_ctx_free(ctx);
}

/* ---- plans */

static void plans_run_with_new_values(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int i = 0; i < 4; i++) {
        const shape shapes[] = {{20, 15, 1, 5, 0, 31}, {7, 8, 6, 27, 0, 0}};
        ref A = stencil(shapes[i % 2], REF_REALS, i < 2 ? f64 : f64_i64);
        tulle_plan *plan = NULL;
        tulle_stats s;
        REQUIRE(tulle_plan_create(ctx, &A.view, &A.view, NULL, &plan) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_plan_stats(plan, &s);
        CHECK(rows_of(&s, "motif") > 90, "%" PRId64 " rows", rows_of(&s, "motif"));
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)c.nnz * sizeof *values);
        for (int run = 0; run < 3; run++) {
            ref_fill(&A, REF_REALS, 20 + (uint64_t)run);
            tulle_matrix *W = cpu_product(&A.view, &A.view, NULL);
            tulle_csr want = tulle_matrix_view(W);
            /* another product overwrites the board */
            squared(ctx, (shape){11, 9 + run, 1, 9, 0, 0}, f64, "in between");
            CHECK(tulle_plan_run(plan, A.values, A.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            c.values = values;
            CHECK(ref_same(&c, &want, "plan"), "plan %d, run %d", i, run);
            tulle_matrix_free(W);
        }
        free(values);
        tulle_plan_free(plan);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* ---- memory */

static uint64_t asked_for(tulle_ctx *ctx)
{
    unsigned long long need = 0;
    const char *at = strstr(tulle_ctx_error(ctx), "needs ");
    return at && sscanf(at, "needs %llu bytes", &need) == 1 ? need : 0;
}

/* Any limit is kept, or refused with a sufficient number (or the next one is); motifs are used only with
 * large limits. */
static void limits_are_kept(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    tl_gpu *gpu = ctx->gpu;
    ref A = stencil((shape){30, 20, 1, 5, 0, 41}, REF_REALS, f64);
    tulle_matrix *W = cpu_product(&A.view, &A.view, NULL);
    tulle_csr want = tulle_matrix_view(W);
    int with = 0, without = 0;
    for (uint64_t first = 1; first < 4 << 20; first += 70001) {
        tulle_status status = TULLE_ELIMIT;
        uint64_t limit = first, held = tl_dmem_held(gpu);
        for (int step = 0; step < 4 && status == TULLE_ELIMIT; step++) {
            tulle_matrix *C = NULL;
            tulle_options o = {.memory_limit = limit};
            tl_dmem_peak(gpu, true);
            status = tulle_multiply(ctx, &A.view, &A.view, &o, &C);
            CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%" PRIu64 ": %s", limit,
                  tulle_ctx_error(ctx));
            CHECK(tl_dmem_peak(gpu, false) - held <= limit, "%" PRIu64 ": too much was taken", limit);
            tulle_csr c = tulle_matrix_view(C);
            if (C) CHECK(ref_same(&c, &want, "under a limit"), "limit %" PRIu64, limit);
            tulle_matrix_free(C);
            CHECK(tl_dmem_held(gpu) == held, "%" PRIu64 ": something stayed", limit);
            if (status == TULLE_ELIMIT) limit = asked_for(ctx);
        }
        CHECK(status == TULLE_OK, "from %" PRIu64 ": %s", first, tulle_ctx_error(ctx));
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        CHECK(s.peak_bytes <= limit, "%" PRIu64 " of %" PRIu64 " bytes", s.peak_bytes, limit);
        if (rows_of(&s, "motif")) with++;
        else without++;
    }
    CHECK(with > 0 && without > 0, "%d with motifs, %d without", with, without);
    tulle_matrix_free(W);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Each allocation fails once: the product falls back to other accumulators, or to blocks, and nothing
 * leaks. */
static void every_allocation_fails_once(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    ref A = stencil((shape){20, 20, 1, 5, 0, 41}, REF_REALS, f64);
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
        if (C && !rows_of(&s, "motif")) ordinary++;
        tulle_matrix_free(C);
        CHECK(tl_dmem_held(ctx->gpu) == held, "request %d: something stayed", n);
    }
    CHECK(through && ordinary >= 1, "%d the ordinary way", ordinary);
    tulle_matrix_free(W);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Shared memory for short motifs only, or for none. */
static void little_shared_memory(void)
{
    static const char *const shared[] = {"1024", "4096", "16384"};
    for (int i = 0; i < 3; i++) {
        setenv("TULLE_GPU_MOTIFS", "on", 1);
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[i]);
        unsetenv("TULLE_GPU_MOTIFS");
        int64_t small = squared(ctx, (shape){20, 15, 1, 5, 0, 0}, f64, shared[i]);
        /* integers: without room for a map rows are computed by a block, which adds in any order */
        int64_t large = squared_of(ctx, (shape){8, 7, 7, 27, 0, 0}, REF_INTEGERS, ref_types_at(15),
                                   shared[i]);
        CHECK(small > 250 && (large > 100) == (i == 2), "%s bytes: %" PRId64 " and %" PRId64 " rows",
              shared[i], small, large);
        tulle_ctx_free(ctx);
    }
}

/* ---- when motifs are used */

static void a_sample_decides(void)
{
    tulle_ctx *ctx = gpu_ctx(), *off = gpu_ctx_env("TULLE_GPU_MOTIFS", "off");
    tulle_stats s, plain;
    ref box = stencil((shape){27, 27, 27, 27, 0, 0}, REF_INTEGERS, f64);
    ref grid = stencil((shape){200, 140, 1, 5, 0, 0}, REF_REALS, f64);
    ref wild = ref_random(5, 27500, 27500, 5, REF_REALS, f64);
    int64_t rows = same_as_the_cpu(ctx, &box.view, &box.view, NULL, 0, "a box");
    CHECK(rows > 10000, "%" PRId64 " rows of a box", rows);
    CHECK(same_as_the_cpu(off, &box.view, &box.view, NULL, 0, "a box, off") == 0, "off is not off");
    /* its rows are all equal, but the search would take longer than the product */
    CHECK(same_as_the_cpu(ctx, &grid.view, &grid.view, NULL, 0, "a grid") == 0, "motifs where none pay");
    CHECK(same_as_the_cpu(ctx, &wild.view, &wild.view, NULL, 0, "random") == 0, "motifs in a random matrix");
    tulle_ctx_stats(ctx, &s);
    same_as_the_cpu(off, &wild.view, &wild.view, NULL, 0, "random, off");
    tulle_ctx_stats(off, &plain);
    CHECK(s.waits == plain.waits, "%d waits to find nothing, %d without looking", s.waits, plain.waits);
    ref_free(&box);
    ref_free(&grid);
    ref_free(&wild);
    tulle_ctx_free(ctx);
    tulle_ctx_free(off);
}

static void other_policies_do_not_look(void)
{
    static const char *const policies[] = {"speck", "regsort", "bhsparse"};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    ref A = stencil((shape){20, 15, 1, 5, 0, 0}, REF_INTEGERS, f64);
    for (int i = 0; i < 3; i++) {
        tulle_options o = {.policy = policies[i]};
        CHECK(same_as_the_cpu(ctx, &A.view, &A.view, &o, 0, policies[i]) == 0, "%s takes motifs",
              policies[i]);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* A product with repeated rows, much too long rows, and rows that all differ. */
static void beside_every_other_class(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", "on");
    for (int i = 0; i < GPU_PAIRS; i += 3) {
        pair p = gpu_pair(i, REF_INTEGERS, f64, f64);
        same_as_the_cpu(ctx, &p.A.view, &p.B.view, NULL, 0, p.name);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(stencils_in_two_and_three_dimensions), TEST(broken_rows_go_the_ordinary_way),
          TEST(the_last_entry_alone_is_different), TEST(hashes_that_collide),
          TEST(room_for_a_few_motifs_only), TEST(every_type), TEST(rectangular), TEST(empty_rows),
          TEST(rows_of_every_length), TEST(far_columns_and_signs_of_zero), TEST(plans_run_with_new_values),
          TEST(limits_are_kept), TEST(every_allocation_fails_once), TEST(little_shared_memory),
          TEST(a_sample_decides), TEST(other_policies_do_not_look), TEST(beside_every_other_class))
