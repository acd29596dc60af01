/* SPDX-License-Identifier: MIT
 *
 * test_gpu_small.c - every kernel on matrices of a few hundred rows, for checkers that slow a device down a
 * thousand times: oclgrind (oclgrind.sh) and compute-sanitizer (gpu_check.sh).  With little shared memory,
 * small rows use the kernels for large ones, and their fallbacks. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "spmm_help.h"

/* A context for each size of shared memory, a few pairs, every policy. */
static void through_a_scratchpad(const char *shared, const char *balance, ref_types t)
{
    if (balance) setenv("TULLE_GPU_BALANCE", balance, 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared);
    unsetenv("TULLE_GPU_BALANCE");
    pair p[] = {{ref_power(1, 60, 60, 40, REF_CANCELLING, t), ref_power(2, 60, 90, 50, REF_CANCELLING, t), "power law"},
                {full_row_and_singles(4, 40, 1, REF_CANCELLING, t), ref_random(3, 40, 900, 15, REF_CANCELLING, t),
                 "a long row"},
                {ref_random(4, 120, 50, 0.8, REF_CANCELLING, t), ref_random(5, 50, 40, 2, REF_CANCELLING, t),
                 "tiny rows"}};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        ref want = ref_product(&p[i].A.view, &p[i].B.view), fewer = ref_without_zeros(&want.view);
        tulle_options o;
        const char *way;
        char name[96];
        for (int w = 0; gpu_way(w, &o, &way); w++) {
            if (w == 1) continue;                               /* auto has no kernels of its own */
            snprintf(name, sizeof name, "%s, %s, shared %s", p[i].name, way, shared);
            o.drop_zeros = w == 0;
            gpu_product_is(ctx, &p[i].A.view, &p[i].B.view, &o, w ? 0 : C_THERE, w ? &want.view : &fewer.view, name);
        }
        ref_free(&want);
        ref_free(&fewer);
        pair_free(&p[i]);
    }
    tulle_ctx_free(ctx);
}

static void in_two_kilobytes(void) { through_a_scratchpad("2048", "on", f64); }
static void in_sixteen_kilobytes(void) { through_a_scratchpad("16384", "off", ref_types_at(0)); }
static void complex_and_wide_indices(void) { through_a_scratchpad("4096", NULL, ref_types_at(15)); }

static void far_columns(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "2048");
    ref A = ref_random(6, 30, 25, 4, REF_INTEGERS, f64), B = ref_random(7, 25, (int64_t)1 << 30, 12, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, PLACES - 1, &want.view, "far columns");
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.accumulator = "hash"}, 0, &want.view, "far columns, hash");
    tulle_ctx_free(ctx);
    ctx = gpu_ctx();
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "regsort"}, 0, &want.view, "far columns, regsort");
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "reghash"}, 0, &want.view, "far columns, reghash");
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

/* Up to 512 products in registers: all bins, and a row of A with more entries than fit in a thread. */
static void few_products(void)
{
    static const char *const policies[] = {"regsort", "regmerge", "reghash"};
    tulle_ctx *ctx = gpu_ctx();
    pair p[] = {{staircase(14, 60, 40, 1, REF_CANCELLING, f64), staircase(60, 300, 18, 3, REF_CANCELLING, f64), "all bins"},
                {full_row_and_singles(3, 300, 1, REF_CANCELLING, f64), ref_random(23, 300, 200, 1.2, REF_CANCELLING, f64), "many rows of B"}};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        ref want = ref_product(&p[i].A.view, &p[i].B.view);
        for (int k = 0; k < 3; k++)
            gpu_product_is(ctx, &p[i].A.view, &p[i].B.view, &(tulle_options){.policy = policies[k]}, 0, &want.view, p[i].name);
        ref_free(&want);
        pair_free(&p[i]);
    }
    tulle_ctx_free(ctx);
}

/* Rows with 600 to 3600 products, too scattered for bitmasks and ranks: hash by a block, then sorted, and
 * windows. */
static void wide_rows(void)
{
    static const struct { const char *shared; int64_t columns; } cases[] = {{NULL, 200000}, {"2048", 20000}};
    for (int i = 0; i < 2; i++) {
        setenv("TULLE_GPU_BALANCE", "on", 1);
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", cases[i].shared);
        unsetenv("TULLE_GPU_BALANCE");
        ref A = staircase(7, 40, 24, 1, REF_INTEGERS, f64);
        ref B = ref_random(11, 40, cases[i].columns, 150, REF_INTEGERS, f64), want = ref_product(&A.view, &B.view);
        gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, 0, &want.view, "wide rows");
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
        tulle_ctx_free(ctx);
    }
}

/* One row with 70,000 products, shared by all blocks. */
static void a_heavy_row(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "4096");
    ref A = full_row_and_singles(3, 350, 1, REF_INTEGERS, f64), B = ref_random(23, 350, 40000, 200, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, 0, &want.view, "a heavy row");
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

/* Rows that fill most of a short span, with too little shared memory for teams: ranked by a block. */
static void nearly_full_rows(void)
{
    setenv("TULLE_GPU_BALANCE", "on", 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "2048");
    unsetenv("TULLE_GPU_BALANCE");
    ref A = ref_random(21, 6, 40, 30, REF_INTEGERS, f64), B = ref_random(22, 40, 210, 30, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, 0, &want.view, "nearly full rows");
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

/* DeltaSPARSE: keys that collide, rows that fill their table, dense rows, both sorts, windows; with bins and
 * without. */
static void hash_or_dense(void)
{
    for (int off = 0; off < 2; off++) {
        setenv("TULLE_GPU_BALANCE", off ? "off" : "on", 1);
        setenv("TULLE_DELTA_SORT", "20", 1);
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", off ? "3072" : "12288");
        unsetenv("TULLE_GPU_BALANCE");
        unsetenv("TULLE_DELTA_SORT");
        const tulle_options o = {.policy = "delta"};
        const ref_kind kind = REF_INTEGERS;
        pair p[] = {{staircase(9, 40, 8, 1, kind, f64), staircase(40, 90000, 20, 4096, kind, f64), "collide"},
                    {staircase(9, 40, 30, 1, kind, f64), ref_random(24, 40, 9000, 20, kind, f64), "wide"},
                    {staircase(9, 40, 12, 1, kind, f64), ref_random(25, 40, 150, 4, kind, f64), "full"}};
        for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
            ref want = ref_product(&p[i].A.view, &p[i].B.view);
            gpu_product_is(ctx, &p[i].A.view, &p[i].B.view, &o, 0, &want.view, p[i].name);
            ref_free(&want);
            pair_free(&p[i]);
        }
        tulle_ctx_free(ctx);
    }
}

/* bhSPARSE: a thread, a crew and a block per row, and rows that exceed shared memory and continue in global
 * memory. */
static void one_step(void)
{
    static const char *const accumulators[] = {"heap", "esc", "merge"}, *const shared[] = {"16384", "4096", "1024"};
    ref A = staircase(30, 60, 40, 1, REF_INTEGERS, f64), B = ref_random(23, 60, 900, 16, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    for (int i = 0; i < 3; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[i]);
        gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.accumulator = accumulators[i]}, 0, &want.view, accumulators[i]);
        tulle_ctx_free(ctx);
    }
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
}

static void indices_of_two_widths(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(12, 90, 80, 4, REF_INTEGERS, f64), B = ref_random(13, 80, 70, 4, REF_INTEGERS, f64_i64);
    ref want = ref_product(&A.view, &B.view);
    gpu_product_is(ctx, &A.view, &B.view, NULL, 0, &want.view, "32 and 64 bits");
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void single_entries_and_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    static const int pairs[] = {0, 3, 4, 6, 11};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        pair p = gpu_pair(pairs[i], REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, PLACES - 1, &want.view, p.name);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void bad_operands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(8, 90, 80, 4, REF_INTEGERS, f64), B = ref_random(9, 80, 70, 4, REF_INTEGERS, f64);
    tulle_matrix *C = NULL;
    ref_set_col(&B, B.view.nnz / 2, 70);
    CHECK(tulle_multiply(ctx, &A.view, &B.view, NULL, &C) == TULLE_EPATTERN && !C, "column 70 of 70");
    CHECK(strncmp(tulle_ctx_error(ctx), "B: row ", 7) == 0, "%s", tulle_ctx_error(ctx));
    ref_set_ptr(&A, 40, A.view.nnz + 1000);
    CHECK(tulle_multiply(ctx, &A.view, &B.view, NULL, &C) == TULLE_EPATTERN && !C, "a row pointer beyond the end");
    CHECK(strncmp(tulle_ctx_error(ctx), "A: row", 6) == 0, "%s", tulle_ctx_error(ctx));
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

/* Bands, whose rows repeat: short and long ones, with some rows that differ; also with colliding hashes. */
static void motifs(void)
{
    static const char *const ways[] = {"on", "collide-classes", "collide-motifs", "2"};
    for (int i = 0; i < 4; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_MOTIFS", ways[i]);
        for (int64_t wide = 1; wide <= 9; wide += 8) {
            ref A = ref_band(90, wide, REF_INTEGERS, i == 1 ? ref_types_at(15) : f64), B = ref_copy(&A.view, i == 1 ? ref_types_at(15) : f64);
            ref_set_col(&B, ref_ptr(&B.view, 41) - 1, 60);      /* one row of B differs */
            ref want = ref_product(&A.view, &B.view), square = ref_product(&A.view, &A.view);
            gpu_product_is(ctx, &A.view, &B.view, NULL, 0, &want.view, ways[i]);
            gpu_product_is(ctx, &A.view, &A.view, NULL, PLACES - 1, &square.view, ways[i]);
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
            ref_free(&square);
        }
        tulle_ctx_free(ctx);
    }
}

/* Three rows in a run have the same columns, two groups of three; the last column of one row differs. */
static ref rows_in_threes(int64_t rows, ref_types t)
{
    ref A = ref_new(rows, rows, 6 * rows, t);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t groups = rows / 3, first = r / 3 % (groups - 1), second = first + 1 + r / 3 * 7 % (groups - 1 - first);
        for (int64_t k = 0; k < 6; k++) ref_set_col(&A, 6 * r + k, 3 * (k < 3 ? first : second) + k % 3);
        ref_set_ptr(&A, r + 1, 6 * (r + 1));
    }
    ref_set_col(&A, 6 * 20 - 1, rows - 1);
    ref_fill(&A, REF_REALS, 5);
    return A;
}

static void twins(void)
{
    for (int i = 0; i < 2; i++) {
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_TWINS", "on");
        ref A = rows_in_threes(60, i ? ref_types_at(15) : f64);
        tulle_matrix *C = cpu_product(&A.view, &A.view, NULL);
        const tulle_csr want = tulle_matrix_view(C);
        tulle_stats s;
        gpu_product_is(ctx, &A.view, &A.view, NULL, i ? PLACES - 1 : 0, &want, "rows in threes");
        tulle_ctx_stats(ctx, &s);
        CHECK(s.shares > 0 && strcmp(s.share[0].name, "twins") == 0 && s.share[0].rows == 60, "no twins were found");
        tulle_matrix_free(C);
        ref_free(&A);
        tulle_ctx_free(ctx);
    }
}

static void a_plan(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "4096");
    ref A = ref_power(10, 50, 50, 30, REF_INTEGERS, f64);
    tulle_plan *plan = NULL;
    tulle_options o = {.policy = "speck"};
    REQUIRE(tulle_plan_create(ctx, &A.view, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_plan_pattern(plan);
    double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
    for (int run = 0; run < 2; run++) {
        ref_fill(&A, REF_INTEGERS, 20 + (uint64_t)run);
        ref want = ref_product(&A.view, &A.view);
        CHECK(tulle_plan_run(plan, A.values, A.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, "plan"), "run %d", run);
        ref_free(&want);
    }
    free(values);
    tulle_plan_free(plan);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Two, four and eight entries per thread. */
static void merges(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; tulle_merge_name(i); i++)
        for (int length = 32; length <= 128; length *= 2) {
            tulle_merge_options o = {.algorithm = tulle_merge_name(i), .value_bytes = length == 64 ? 0 : 8, .length = length,
                                     .runs = 1, .threads = 32, .entries = 4 * length};
            tulle_merge_result result;
            CHECK(tulle_merge_trial(ctx, &o, &result) == TULLE_OK, "%s, %d: %s", o.algorithm, length, tulle_ctx_error(ctx));
        }
    tulle_ctx_free(ctx);
}

/* SpMM: a row divided into parts among short and empty ones, rows of equal length, or rows with the same
 * columns; every width of strips and threads, aligned or not, row-major and column-major. */
static void times_dense(const char *shape, ref_types t)
{
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {staircase(13, 700, 560, 1, REF_INTEGERS, t), ref_random(5, 50, 60, 4, REF_INTEGERS, t),
                ref_blocks(15, 1, 3, REF_INTEGERS, t)};
    static const int64_t columns[] = {1, 8, 21, 32};
    if (shape) setenv("TULLE_SPMM_SHAPE", shape, 1);
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 4; c++) {
            setting s = {.cols = columns[c], .alpha = c ? one : half, .beta = a ? half : zero, .places = a ? SPMM_PLACES - 1 : 0,
                         .x_order = (tulle_order)(c == 1), .y_order = (tulle_order)(c > 0), .y_gap = c > 1, .plan = a};
            spmm_product(ctx, &As[a].view, NULL, s, shape ? shape : "as it likes");
            s.x_order = s.y_order = TULLE_BY_ROWS;
            s.places = SPMM_PLACES - 1;
            spmm_product(ctx, &As[a].view, NULL, s, shape ? shape : "as it likes");
        }
    unsetenv("TULLE_SPMM_SHAPE");
    for (int a = 0; a < 3; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx);
}

static void times_dense_as_it_likes(void) { times_dense(NULL, ref_types_at(15)); }
static void times_dense_one_strip(void) { times_dense("1,1,1,32,1,1", ref_types_at(0)); }
static void times_dense_two_strips(void) { times_dense("0,1,2,32,1,1", f64_i64); }
static void times_dense_one_strip_staged(void) { times_dense("1,1,1,32,2,1", ref_types_at(0)); }
static void times_dense_one_strip_by_eights(void) { times_dense("1,0,1,32,3,2", ref_types_at(0)); }
static void times_dense_two_strips_by_eights(void) { times_dense("0,0,2,32,3,4", f64); }
static void times_dense_two_strips_staged(void) { times_dense("0,1,2,64,2,1", f64); }

static void times_dense_in_ellpack(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = staircase(30, 60, 40, 1, REF_INTEGERS, f64);
    for (int tile = 1, threads = 1; tile <= 32; tile *= 2, threads = threads * 4 % 31) {
        setting s = {.cols = 5 + tile, .alpha = one, .beta = tile % 3 ? zero : half, .policy = "ellr", .ellr_threads = threads,
                     .ellr_columns = tile, .places = SPMM_PLACES - 1};
        spmm_product(ctx, &A.view, NULL, s, "ELLPACK-R");
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* TF32 without tensor cores: every width of a thread, aligned or not, one warp for 8 rows and two, a row too
 * long for one warp; X has a value that is not finite, which must not affect rows that do not use it. */
static void times_dense_in_tf32(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {staircase(21, 60, 40, 1, REF_INTEGERS, ref_types_at(0)), ref_random(5, 30, 40, 5, REF_INTEGERS, ref_types_at(12)),
                full_row_and_singles(10, 300, 4, REF_INTEGERS, ref_types_at(0))};
    static const int64_t columns[] = {7, 16, 24, 40};
    setenv("TULLE_SPMM_TF32", "on", 1);
    for (int a = 0; a < 3; a++) {
        setenv("TULLE_SPMM_TF32_WARPS", a == 1 ? "2" : "1", 1);
        for (int c = a / 2; c < 4; c += 1 + a / 2) {
            setting s = {.cols = columns[c], .alpha = one, .beta = a ? half : zero, .x_gap = a && c % 2, .tf32 = true, .places = SPMM_PLACES - 1};
            spmm_product(ctx, &As[a].view, NULL, s, "TF32");
        }
        den X = den_new(As[a].view.cols, 9, 0, TULLE_BY_ROWS, TULLE_F32), Y = den_new(As[a].view.rows, 9, 0, TULLE_BY_ROWS, TULLE_F32);
        den want = den_new(As[a].view.rows, 9, 0, TULLE_BY_ROWS, TULLE_F32);
        den_fill(&X, REF_INTEGERS, 3);
        den_put(&X.view, 3, 4, (ref_value){INFINITY, 0});
        spmm_plain(&As[a].view, &X.view, one, zero, &Y.view, &want.view);
        CHECK(tulle_spmm(ctx, NULL, &As[a].view, &X.view, NULL, &Y.view, &(tulle_spmm_options){.allow_tf32 = 1}) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(den_same(&Y.view, &want.view, "TF32"), "an infinity in X");
        den_free(&X);
        den_free(&Y);
        den_free(&want);
        ref_free(&As[a]);
    }
    unsetenv("TULLE_SPMM_TF32");
    unsetenv("TULLE_SPMM_TF32_WARPS");
    tulle_ctx_free(ctx);
}

/* Unaligned rows without vector loads, long enough for four values per thread. */
static void times_dense_off_the_line(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(5, 9, 12, 3, REF_INTEGERS, ref_types_at(0));
    setting s = {.cols = 128, .alpha = one, .x_gap = 1, .y_gap = 1, .places = SPMM_PLACES - 1};
    spmm_product(ctx, &A.view, NULL, s, "not aligned");
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* alpha 0: Y is scaled, on host and device. */
static void times_dense_by_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(5, 50, 60, 4, REF_INTEGERS, f64);
    setting s = {.cols = 9, .alpha = zero, .beta = half, .y_gap = 1, .places = SPMM_Y_THERE};
    spmm_product(ctx, &A.view, NULL, s, "alpha 0");
    s.y_gap = 0;
    s.beta = zero;
    spmm_product(ctx, &A.view, NULL, s, "alpha and beta 0");
    ref_free(&A);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(in_two_kilobytes), TEST(in_sixteen_kilobytes), TEST(complex_and_wide_indices), TEST(far_columns),
          TEST(few_products), TEST(wide_rows), TEST(a_heavy_row), TEST(nearly_full_rows),
          TEST(hash_or_dense), TEST(one_step), TEST(indices_of_two_widths),
          TEST(single_entries_and_nothing), TEST(motifs), TEST(twins), TEST(bad_operands), TEST(a_plan), TEST(merges),
          TEST(times_dense_as_it_likes), TEST(times_dense_one_strip), TEST(times_dense_two_strips), TEST(times_dense_one_strip_staged),
          TEST(times_dense_two_strips_staged), TEST(times_dense_one_strip_by_eights), TEST(times_dense_two_strips_by_eights),
          TEST(times_dense_in_ellpack), TEST(times_dense_in_tf32), TEST(times_dense_off_the_line), TEST(times_dense_by_nothing))
