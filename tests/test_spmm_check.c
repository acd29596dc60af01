/* SPDX-License-Identifier: MIT
 *
 * test_spmm_check.c - checking A while it is multiplied: for any error at any position, the call fails with
 * the message of tulle_csr_check(), nothing outside of X is read (X is next to unreadable pages), and a Y
 * that is also an input stays unchanged. */
#define _GNU_SOURCE
#include "spmm_help.h"
#include <sys/mman.h>
#include <unistd.h>

static const int64_t columns[] = {1, 2, 3, 4, 7, 8, 16, 33, 64, 150};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- an X whose values end at the end of a page (or begin at its begin), next to unreadable pages */

typedef struct fenced { char *all; size_t bytes; tulle_dense view; } fenced;

static fenced fenced_x(int64_t rows, int64_t cols, tulle_type type, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)(rows * cols) * ref_value_size(type);
    const size_t inner = (size + page - 1) / page * page;
    fenced f = {.bytes = inner + 2 * page};
    f.all = mmap(NULL, f.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.all == MAP_FAILED || mprotect(f.all + page, inner, PROT_READ | PROT_WRITE) != 0) abort();
    f.view = tulle_dense_make(rows, cols, cols, TULLE_BY_ROWS, f.all + page + (at_end ? inner - size : 0), type);
    for (int64_t k = 0; k < rows * cols; k++) ref_value_put(f.view.values, type, k, (ref_value){(double)(k % 5), 0});
    return f;
}

static void fenced_free(fenced *f)
{
    munmap(f->all, f->bytes);
}

/* ---- one invalid A */

static void refused(tulle_ctx *ctx, const tulle_csr *A, int64_t cols, const char *what, int64_t at)
{
    char sentence[256];
    const tulle_status want = tulle_csr_check(ctx, A);
    snprintf(sentence, sizeof sentence, "%s", tulle_ctx_error(ctx));
    CHECK(want == TULLE_EPATTERN, "%s at %d is not wrong", what, (int)at);
    for (int way = 0; way < 4; way++) {
        fenced X = fenced_x(A->cols, cols, A->val_type, way & 1);
        den Y = den_new(A->rows, cols, 0, way & 2 ? TULLE_BY_COLS : TULLE_BY_ROWS, A->val_type);
        char beta[16];
        ref_value_put(beta, A->val_type, 0, half);
        CHECK(tulle_spmm(ctx, NULL, A, &X.view, NULL, &Y.view, NULL) == want && strcmp(tulle_ctx_error(ctx), sentence) == 0,
              "%s at %d, %d columns: %s, not %s", what, (int)at, (int)cols, tulle_ctx_error(ctx), sentence);
        CHECK(den_margins_kept(&Y), "%s at %d: written beside Y", what, (int)at);
        den_fill(&Y, REF_REALS, 7);
        CHECK(tulle_spmm(ctx, NULL, A, &X.view, beta, &Y.view, NULL) == want && strcmp(tulle_ctx_error(ctx), sentence) == 0,
              "%s at %d, %d columns, beta: %s", what, (int)at, (int)cols, tulle_ctx_error(ctx));
        CHECK(den_untouched(&Y), "%s at %d: a Y that is added to was written", what, (int)at);
        if (cols == 1)
            CHECK(tulle_csr_apply(ctx, A, X.view.values, Y.view.values) == want && strcmp(tulle_ctx_error(ctx), sentence) == 0,
                  "%s at %d, apply: %s", what, (int)at, tulle_ctx_error(ctx));
        den_free(&Y);
        fenced_free(&X);
    }
}

/* Rows of equal length in groups of four, and others; some without entries; one longer than two vectors. */
static ref some_rows(ref_types t)
{
    static const int length[] = {5, 5, 5, 5, 3, 3, 3, 3, 0, 1, 17, 40, 16, 16, 16, 16, 2, 0, 0, 33, 9, 9, 9, 9, 20, 20, 20, 20, 6, 4};
    enum { ROWS = sizeof length / sizeof *length, COLS = 90 };
    int64_t nnz = 0, k = 0;
    for (int i = 0; i < ROWS; i++) nnz += length[i];
    ref A = ref_new(ROWS, COLS, nnz, t);
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < length[i]; c++) ref_set_col(&A, k++, i + 2 * c < COLS ? i + 2 * c : COLS - 1);
        ref_set_ptr(&A, i + 1, k);
    }
    ref_fill(&A, REF_INTEGERS, 5);
    return A;
}

static ref_types types_at(int turn)
{
    return (ref_types){(tulle_type)(TULLE_F32 + turn % 4), turn / 4 % 2 ? TULLE_I64 : TULLE_I32, turn / 8 % 2 ? TULLE_I64 : TULLE_I32};
}

static void no_column_leads_outside_of_x(void)
{
    static const int64_t wrong[] = {-1, 90, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, (int64_t)1 << 40, -((int64_t)1 << 40)};
    tulle_ctx *ctx = ctx_with(2);
    for (int turn = 0; turn < 16; turn++) {
        ref A = some_rows(types_at(turn));
        int values = A.view.idx_type == TULLE_I64 ? 8 : 4;
        for (int64_t k = 0; k < A.view.nnz; k += k < 24 || k > A.view.nnz - 12 ? 1 : 5 * SCALE) {
            const int64_t column = ref_col(&A.view, k);
            ref_set_col(&A, k, wrong[(k + turn) % values]);
            refused(ctx, &A.view, columns[(k + turn) % COLUMNS], "a column", k);
            ref_set_col(&A, k, column);
        }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void columns_out_of_order_are_named(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int turn = 0; turn < 16; turn++) {
        ref A = some_rows(types_at(turn));
        for (int64_t i = 0; i < A.view.rows; i++)
            for (int64_t k = ref_ptr(&A.view, i) + 1; k < ref_ptr(&A.view, i + 1); k += 1 + (k + turn) % (3 * SCALE)) {
                const int64_t column = ref_col(&A.view, k);
                /* equal to the one before, or less */
                ref_set_col(&A, k, ref_col(&A.view, k - 1) - (k % 2 ? 1 : 0));
                if (ref_col(&A.view, k) >= 0) refused(ctx, &A.view, columns[(k + turn) % COLUMNS], "an order", k);
                ref_set_col(&A, k, column);
            }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void pointers_are_never_followed_outside(void)
{
    static const int64_t wrong[] = {-1, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, (int64_t)1 << 40};
    tulle_ctx *ctx = ctx_with(2);
    for (int turn = 0; turn < 16; turn++) {
        ref A = some_rows(types_at(turn));
        const int values = A.view.ptr_type == TULLE_I64 ? 6 : 3;
        for (int64_t i = 1; i < A.view.rows; i++)
            for (int v = 0; v < values + 2; v++) {
                const int64_t pointer = ref_ptr(&A.view, i);
                ref_set_ptr(&A, i, v < values ? wrong[v] : v == values ? A.view.nnz + 1 : ref_ptr(&A.view, i - 1) - 1);
                refused(ctx, &A.view, columns[(i + v + turn) % COLUMNS], "a pointer", i);
                ref_set_ptr(&A, i, pointer);
            }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* Many rows and pieces, several threads, and long rows divided into parts, whose columns must ascend across
 * parts. */
static void faults_of_large_matrices_are_found(void)
{
    enum { LONG = 70000, PART = 32768 };
    tulle_ctx *ctx = ctx_with(3);
    const ref_types doubles = {TULLE_F64, TULLE_I32, TULLE_I32};
    ref A = ref_new(9, LONG + 9, LONG + 8, doubles);
    for (int64_t k = 0; k < LONG + 8; k++) ref_set_col(&A, k, k < 4 ? k : k < LONG + 4 ? k - 4 : 8 + k - LONG);
    for (int64_t i = 0; i <= 9; i++) ref_set_ptr(&A, i, i < 5 ? i : LONG + i - 1);
    ref_fill(&A, REF_INTEGERS, 5);
    static const int64_t at[] = {4, 5, 4 + PART - 1, 4 + PART, 4 + PART + 1, 4 + 2 * PART, LONG + 3, LONG + 4};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int v = 0; v < 3; v++) {
            const int64_t column = ref_col(&A.view, at[i]);
            ref_set_col(&A, at[i], v == 0 ? -1 : v == 1 ? LONG + 9 : column - 1);
            if (v < 2 || (at[i] != 4 && at[i] != LONG + 4)) refused(ctx, &A.view, i % 2 ? 1 : 9, "a long row", at[i]);
            ref_set_col(&A, at[i], column);
        }
    ref_free(&A);
    A = ref_band(40000 / SCALE, 6, REF_INTEGERS, doubles);
    for (int64_t k = 1; k < A.view.nnz; k += A.view.nnz / 7) {
        const int64_t column = ref_col(&A.view, k);
        ref_set_col(&A, k, k % 2 ? A.view.cols : -5);
        for (int i = 0; i < COLUMNS; i += 3) refused(ctx, &A.view, columns[i], "a band", k);
        ref_set_col(&A, k, column);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* X copied before, copied by the sliding window, prefetched; Y column-major and with non-temporal stores:
 * the product of a valid A has the same bits as always, and an invalid A is refused. */
static void every_road_checks(void)
{
    tulle_ctx *ctx = ctx_with(3);
    tl_base *b = (tl_base *)(void *)ctx;
    for (int turn = 0; turn < 16; turn++)
        for (int way = 0; way < 32; way++) {
            const ref_types t = types_at(turn);
            ref A = ref_band(700 / SCALE, 9, REF_REALS, t);
            const int64_t cols = columns[(turn + way) % COLUMNS], k = A.view.nnz * (way + 1) / 34;
            fenced X = fenced_x(A.view.cols, cols, t.val, way & 1);
            den want = den_new(A.view.rows, cols, 0, TULLE_BY_ROWS, t.val), Y = den_new(A.view.rows, cols, 0, way & 8 ? TULLE_BY_COLS : TULLE_BY_ROWS, t.val);
            tl_spmm_pieces pieces;
            spmm_plain(&A.view, &X.view, one, zero, &want.view, &want.view);
            CHECK(tl_spmm_pieces_make(b, &A.view, 3, INT64_MAX, &pieces) == TULLE_OK && !pieces.doubtful, "%s", tulle_ctx_error(ctx));
            const tl_spmm_tuning tuning = {.near_bytes = way & 1 ? 0 : INT64_MAX, .cache_bytes = way & 2 ? 0 : INT64_MAX,
                                           .copy_row = way & 4 ? 0 : INT64_MAX, .wide_entries = 1, .slide_bytes = 1 << 20, .slide_rows = 40};
            pieces.scattered = !(way & 16);
            pieces.window = 7;
            tl_spmm_request q = {.A = &A.view, .unchecked = true, .pieces = &pieces, .X = &X.view, .Y = &Y.view, .alpha = {1, 0}, .threads = 3,
                                 .tuning = &tuning};
            CHECK(tl_spmm_run(b, &q) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(den_same(&Y.view, &want.view, "checked"), "turn %d, way %d", turn, way);
            ref_set_col(&A, k, way & 1 ? A.view.cols : -3);
            CHECK(tl_spmm_run(b, &q) == TULLE_EPATTERN && strstr(tulle_ctx_error(ctx), "is outside 0.."), "turn %d, way %d: %s", turn, way,
                  tulle_ctx_error(ctx));
            CHECK(den_margins_kept(&Y), "turn %d, way %d: written outside", turn, way);
            tl_spmm_pieces_done(b, &pieces);
            den_free(&want), den_free(&Y);
            fenced_free(&X);
            ref_free(&A);
        }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(no_column_leads_outside_of_x), TEST(columns_out_of_order_are_named), TEST(pointers_are_never_followed_outside),
          TEST(faults_of_large_matrices_are_found), TEST(every_road_checks))
