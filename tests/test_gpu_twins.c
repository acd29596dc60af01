/* SPDX-License-Identifier: MIT
 *
 * test_gpu_twins.c - SpMM on a device with consecutive rows of the same columns: bundles of rows against
 * single rows, bit for bit if entries are added in the same order, and against the plain product with
 * integers.  Runs of one to a hundred equal rows, rows of every length and alignment, empty rows between;
 * forced shapes; factors. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "spmm_help.h"

typedef struct lines { const char *part; int seen; } lines;

static void count_lines(void *user, const char *line)
{
    lines *l = user;
    l->seen += strstr(line, l->part) != NULL;
}

/* Runs of equal rows, of lengths about `length`; each run is shifted by one column, and some rows have the
 * length of the row before, but differ in the first, the last or a middle column. */
static ref runs_of_rows(int64_t length, ref_kind kind, ref_types t)
{
    static const int run[] = {3, 1, 6, 2, 3, 7, 4, 5, 0, 100, 6, 0, 0, 3, 2, 3, 50, 3, 1, 3, 4, 100, 3, 3, 99, 3};
    enum { RUNS = sizeof run / sizeof *run };
    int64_t rows = 0, nnz = 0, at = 0, i = 0, cols = 2 * length + 2 * RUNS + 40;
    for (int r = 0; r < RUNS; r++) {
        rows += run[r] ? run[r] : 1;
        nnz += run[r] * (length + r % 5);
    }
    ref A = ref_new(rows, cols, nnz, t);
    for (int r = 0; r < RUNS; r++) {
        int64_t n = length + r % 5;
        if (run[r] == 0) ref_set_ptr(&A, ++i, at);
        for (int j = 0; j < run[r]; j++) {
            int odd = r % 4 == 3 && j == run[r] - 1 ? 1 + r / 4 % 3 : 0;        /* 1: first, 2: middle, 3: last column */
            for (int64_t c = 0; c < n; c++) {
                int64_t column = 2 * (c + r) + 1;
                bool moved = (odd == 1 && c == 0) || (odd == 2 && c == n / 2) || (odd == 3 && c == n - 1);
                ref_set_col(&A, at++, column + moved);
            }
            ref_set_ptr(&A, ++i, at);
        }
    }
    ref_fill(&A, kind, 31);
    return A;
}

/* The product with all operands on the device; Y is copied back. */
static bool product(tulle_ctx *ctx, const tulle_csr *A, const den *X, den *Y, setting s, const char *twins, int bundles,
                    const char *what)
{
    lines bundled = {.part = "bundles"};
    int before = test_failures;
    char alpha[16], beta[16];
    ref_value_put(alpha, A->val_type, 0, s.alpha);
    ref_value_put(beta, A->val_type, 0, s.beta);
    tulle_spmm_options o = {0};
    den_there x = den_move(ctx, X), y = den_move(ctx, Y);
    if (twins) setenv("TULLE_SPMM_TWINS", twins, 1);
    tulle_ctx_set_trace(ctx, count_lines, &bundled);
    tulle_status status = spmm_call(ctx, alpha, A, &x.view, beta, &y.view, o, s.plan, false);
    tulle_ctx_set_trace(ctx, NULL, NULL);
    unsetenv("TULLE_SPMM_TWINS");
    CHECK(status == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    CHECK(bundled.seen == bundles, "%s: bundled %d times, not %d", what, bundled.seen, bundles);
    den_fetch(ctx, Y, &y);
    den_leave(&x);
    den_leave(&y);
    CHECK(den_margins_kept(Y), "%s: written outside of Y", what);
    return test_failures == before;
}

/* Compares bundles with single rows; bits: results must agree bit for bit, else only with integers. */
static void both_ways(tulle_ctx *ctx, const tulle_csr *A, setting s, bool bits, const char *name)
{
    tulle_type t = A->val_type;
    char what[200];
    snprintf(what, sizeof what, "%s, %" PRId64 " columns +%" PRId64 "+%" PRId64 ", type %d, beta %g", name, s.cols, s.x_gap, s.y_gap,
             (int)t, s.beta.re);
    den X = den_new(A->cols, s.cols, s.x_gap, TULLE_BY_ROWS, t), Y = den_new(A->rows, s.cols, s.y_gap, TULLE_BY_ROWS, t);
    den one_by_one = den_new(A->rows, s.cols, s.y_gap, TULLE_BY_ROWS, t), want = den_new(A->rows, s.cols, 0, TULLE_BY_ROWS, t);
    bool reads_y = s.beta.re != 0 || s.beta.im != 0;
    den_fill(&X, s.kind, 3);
    if (reads_y) {
        den_fill(&Y, s.kind, 4);
        den_fill(&one_by_one, s.kind, 4);
    }
    if (s.kind == REF_INTEGERS) spmm_plain(A, &X.view, s.alpha, s.beta, &Y.view, &want.view);
    product(ctx, A, &X, &Y, s, NULL, 1, what);
    if (s.kind == REF_INTEGERS) CHECK(den_same(&Y.view, &want.view, what), "%s", "wrong product");
    if (bits) {
        product(ctx, A, &X, &one_by_one, s, "off", 0, what);
        CHECK(den_same(&Y.view, &one_by_one.view, what), "%s", "not the bits of rows one by one");
    }
    den_free(&X);
    den_free(&Y);
    den_free(&one_by_one);
    den_free(&want);
}

static const int64_t columns[] = {1, 2, 3, 4, 8, 9, 32, 33, 64, 128};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Shapes chosen by the engine: short rows, whose sums are computed in the order of the row. */
static void every_type_and_width(void)
{
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        if (skips_types(i)) continue;
        ref A = runs_of_rows(9, REF_REALS, t), whole = runs_of_rows(10, REF_INTEGERS, t);
        for (int c = 0; c < COLUMNS; c++, turn++) {
            setting s = {.cols = columns[c], .alpha = turn % 2 ? half : one, .beta = turn % 3 ? zero : half, .kind = REF_REALS,
                         .x_gap = turn % 4 == 1 ? 3 : 0, .y_gap = turn % 4 == 2 ? 8 : 0, .plan = turn % 2};
            both_ways(ctx, &A.view, s, true, "reals");
            s.kind = REF_INTEGERS;
            s.x_gap = s.y_gap = 0;
            both_ways(ctx, &whole.view, s, !few(), "whole numbers");
        }
        ref_free(&A);
        ref_free(&whole);
    }
    tulle_ctx_free(ctx);
}

/* Rows that take several rounds of staging, and lengths that are no multiple of a round. */
static void rows_of_every_length(void)
{
    static const int64_t lengths[] = {8, 12, 17, 31, 64, 97, 130, 260};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F64) continue;
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            ref A = runs_of_rows(lengths[l], REF_INTEGERS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
            for (int c = 0; c < COLUMNS; c++) {
                if (few() && (c + l) % 4 != 0) continue;
                setting s = {.cols = columns[c], .alpha = one, .beta = c % 2 ? half : zero, .kind = REF_INTEGERS};
                both_ways(ctx, &A.view, s, false, "lengths");
            }
            ref_free(&A);
        }
    }
    tulle_ctx_free(ctx);
}

/* All distributions of threads over columns and entries, with one and two strips per thread.  With one
 * thread for the entries of a column the bits are those of single rows. */
static void every_shape(void)
{
    static const int blocks[] = {32, 64, 128, 256};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32 && v != TULLE_CF64) continue;
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        ref A = runs_of_rows(41, REF_INTEGERS, t), B = runs_of_rows(15, REF_REALS, t);
        for (int c = 0; c <= 5; c++)
            for (int k = 0; c + k <= 5; k++)
                for (int w = 1; w <= 2; w++, turn++) {
                    char shape[64];
                    if (few() && turn % 3 != v % 3) continue;
                    snprintf(shape, sizeof shape, "%d,%d,%d,%d,%d,1", c, k, w, blocks[turn % 4], 1 + turn % 2);
                    setenv("TULLE_SPMM_SHAPE", shape, 1);
                    setting s = {.cols = columns[turn % COLUMNS], .alpha = turn % 7 < 3 ? half : one, .beta = turn % 3 ? zero : half,
                                 .kind = REF_INTEGERS, .plan = turn % 2};
                    both_ways(ctx, &A.view, s, false, shape);
                    s.kind = REF_REALS;
                    if (k == 0) both_ways(ctx, &B.view, s, true, shape);
                }
        unsetenv("TULLE_SPMM_SHAPE");
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* Runs of three and six rows, as with finite elements, and one run over many blocks of the search. */
static void blocks_and_a_long_run(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {ref_blocks(1200, 2, 3, REF_INTEGERS, f64), ref_blocks(900, 1, 6, REF_INTEGERS, f64_i64),
                ref_dense(few() ? 2000 : 20000, 8, REF_INTEGERS, f64), ref_dense(3, 8, REF_INTEGERS, f64)};
    for (int a = 0; a < 4; a++) {
        setting s = {.cols = 32, .alpha = one, .kind = REF_INTEGERS};
        both_ways(ctx, &As[a].view, s, false, "blocks");
        ref_free(&As[a]);
    }
    tulle_ctx_free(ctx);
}

/* Rows too short, too different or too uneven to be bundled; an invalid matrix is reported as usual. */
static void what_is_not_bundled(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {ref_blocks(300, 0, 3, REF_INTEGERS, f64), ref_band(300, 8, REF_INTEGERS, f64),
                staircase(60, 700, 600, 1, REF_INTEGERS, f64), ref_new(0, 5, 0, f64)};
    for (int a = 0; a < 4; a++) {
        lines bundled = {.part = "bundles"};
        tulle_ctx_set_trace(ctx, count_lines, &bundled);
        setting s = {.cols = 20, .alpha = one, .places = SPMM_PLACES - 1};
        spmm_product(ctx, &As[a].view, NULL, s, "not bundled");
        tulle_ctx_set_trace(ctx, NULL, NULL);
        CHECK(bundled.seen == 0, "matrix %d was bundled", a);
        ref_free(&As[a]);
    }
    ref bad = ref_blocks(100, 2, 3, REF_INTEGERS, f64);
    ref_set_ptr(&bad, 100, (int64_t)1 << 30);
    den X = den_new(300, 4, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(300, 4, 0, TULLE_BY_ROWS, TULLE_F64);
    den_fill(&X, REF_INTEGERS, 1);
    CHECK(tulle_spmm(ctx, NULL, &bad.view, &X.view, NULL, &Y.view, NULL) == TULLE_EPATTERN, "%s", tulle_ctx_error(ctx));
    den_free(&X);
    den_free(&Y);
    ref_free(&bad);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_type_and_width), TEST(rows_of_every_length), TEST(every_shape), TEST(blocks_and_a_long_run),
          TEST(what_is_not_bundled))
