/* SPDX-License-Identifier: MIT
 *
 * test_spmm.c - tulle_spmm against a plain product, bit for bit: every type, index, order and leading
 * dimension, transposes, factors, 0 to 300 columns, hostile shapes, any number of threads; memory that must
 * not be read or written; plans; invalid arguments; failing allocations. */
#include "spmm_help.h"

enum { THREADS = SCALE > 1 ? 3 : 5 };

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* ---- every value and index type, transposed and not, in every order */

static void every_type_order_and_operation(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < REF_TYPES; i++)
        for (int s = 0; s < SHAPES; s++) {
            ref_types t = ref_types_at(i);
            const char *name;
            ref A = spmm_shape(s, REF_INTEGERS, t, &name), copy = ref_copy(&A.view, t);
            for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++) {
                ref T = op ? ref_transpose(&A.view, (tulle_op)op) : (ref){0};
                for (int o = 0; o < 4; o++) {
                    setting c = {.op = (tulle_op)op, .x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1),
                                 .x_gap = o, .y_gap = 3 - o, .cols = 1 + (5 * i + 3 * s + 7 * o + op) % 23, .alpha = one,
                                 .plan = (i + s + o) % 2};
                    char text[64];
                    snprintf(text, sizeof text, "%s %s", name, ref_types_name(t));
                    spmm_product(ctx, &A.view, op ? &T : NULL, c, text);
                }
                if (op) ref_free(&T);
            }
            CHECK(ref_untouched(&A.view, &copy), "%s: A was written", name);
            ref_free(&A);
            ref_free(&copy);
        }
    tulle_ctx_free(ctx);
}

static void nothing_times_something(void)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        tulle_ctx *ctx = ctx_with(threads);
        spmm_of_nothing(ctx, NULL, 1, SCALE);
        tulle_ctx_free(ctx);
    }
}

/* Reals, whose last bits depend on the order of additions. */
static void zero_to_three_hundred_columns(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        ref A = ref_random(3, 45 / SCALE, 40, 5, REF_REALS, t);
        for (int64_t cols = 0; cols <= 300; cols += cols < 40 / SCALE ? 1 : 9 + SCALE * 7)
            for (int o = 0; o < 4; o++) {
                setting s = {.x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1), .x_gap = cols % 3,
                             .y_gap = (cols + 1) % 3, .cols = cols, .alpha = o == 1 ? half : one, .beta = o == 2 ? half : zero,
                             .kind = REF_REALS};
                spmm_product(ctx, &A.view, NULL, s, "columns");
            }
        setting last = {.cols = 300, .alpha = one, .kind = REF_REALS};
        spmm_product(ctx, &A.view, NULL, last, "300");
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void every_alpha_and_beta(void)
{
    static const ref_value real[] = {{0, 0}, {1, 0}, {-1, 0}, {-1.5, 0}, {3, 0}};
    static const ref_value both[] = {{0, 0}, {1, 0}, {-1.5, 0}, {0, 1}, {0.75, -2}};
    tulle_ctx *ctx = ctx_with(2);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        const ref_value *f = v < TULLE_CF32 ? real : both;
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I64};
        ref A = ref_random(13, 37, 29, 4, REF_REALS, t), T = ref_transpose(&A.view, TULLE_ADJOINT);
        for (int a = 0; a < 5; a++)
            for (int b = 0; b < 5; b++)
                for (int o = 0; o < 8; o++) {
                    static const int64_t cols[] = {1, 2, 3, 6, 11, 33};
                    for (int c = 0; c < 6; c++) {
                        setting s = {.op = o & 4 ? TULLE_ADJOINT : TULLE_KEEP, .x_order = (tulle_order)(o & 1),
                                     .y_order = (tulle_order)(o >> 1 & 1), .x_gap = 1, .y_gap = o % 3, .cols = cols[c],
                                     .alpha = f[a], .beta = f[b], .kind = REF_REALS, .plan = c % 2};
                        spmm_product(ctx, &A.view, o & 4 ? &T : NULL, s, "factors");
                    }
                }
        ref_free(&A);
        ref_free(&T);
    }
    tulle_ctx_free(ctx);
}

/* ---- long rows, and the number of threads */

/* Rows of 1, PART, PART+1 and 3*PART+5 entries between short and empty ones. */
static ref long_rows(ref_types t, ref_kind kind)
{
    static const int64_t lengths[] = {0, 3, TL_SPMM_PART, 0, 1, TL_SPMM_PART + 1, 2, 3 * TL_SPMM_PART + 5, 0, 7,
                                      2 * TL_SPMM_PART, 2 * TL_SPMM_PART + 1};
    enum { ROWS = sizeof lengths / sizeof *lengths };
    int64_t cols = 3 * TL_SPMM_PART + 100, nnz = 0;
    for (int i = 0; i < ROWS; i++) nnz += lengths[i];
    ref A = ref_new(ROWS, cols, nnz, t);
    int64_t k = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int64_t c = 0; c < lengths[i]; c++) ref_set_col(&A, k++, c + i);
        ref_set_ptr(&A, i + 1, k);
    }
    ref_fill(&A, kind, 21);
    return A;
}

static void long_rows_are_summed_in_parts(void)
{
    tulle_ctx *ctx = ctx_with(THREADS);
    for (int v = TULLE_F32; v <= TULLE_CF64; v += SCALE) {
        ref_types t = {(tulle_type)v, v % 2 ? TULLE_I32 : TULLE_I64, v % 2 ? TULLE_I64 : TULLE_I32};
        ref A = long_rows(t, REF_REALS);
        for (int o = 0; o < 4; o++) {
            setting s = {.x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1), .y_gap = 2, .cols = o == 0 ? 1 : 2 + o,
                         .alpha = o == 1 ? half : one, .beta = o == 2 ? half : zero, .kind = REF_REALS};
            spmm_product(ctx, &A.view, NULL, s, "long rows");
        }
        ref T = ref_transpose(&A.view, TULLE_TRANSPOSE);
        ref TT = ref_transpose(&T.view, TULLE_TRANSPOSE);
        setting s = {.op = TULLE_TRANSPOSE, .cols = 2, .alpha = one, .kind = REF_REALS};
        spmm_product(ctx, &T.view, &TT, s, "long columns");
        ref_free(&T);
        ref_free(&TT);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* ---- one column, and tulle_csr_apply() */

/* Rows of 0 to 40 entries in no order, some of equal length in groups of four; `before` and `behind`:
 * lengths of the first and the last row. */
static ref ragged_rows(ref_types t, int64_t before, int64_t behind)
{
    enum { ROWS = 700, COLS = 64 };
    int64_t length[ROWS], nnz = 0, k = 0;
    ref_rng r = {(uint64_t)(before * 41 + behind)};
    for (int i = 0; i < ROWS; i++) {
        length[i] = i % 16 >= 8 && i > 0 ? length[i - 1] : ref_below(&r, i % 3 ? 10 : 41);
        if (i == 0) length[i] = before;
        if (i == ROWS - 1) length[i] = behind;
        nnz += length[i];
    }
    ref A = ref_new(ROWS, COLS, nnz, t);
    for (int i = 0; i < ROWS; i++) {
        for (int64_t c = 0; c < length[i]; c++) ref_set_col(&A, k++, c + i % (COLS - 40));
        ref_set_ptr(&A, i + 1, k);
    }
    ref_fill(&A, REF_REALS, 31);
    return A;
}

/* Each row is summed in order, in double for every type, and rounded once. */
static void apply_plain(const tulle_csr *A, const tulle_dense *x, const tulle_dense *y)
{
    for (int64_t i = 0; i < A->rows; i++) {
        ref_value sum = {0, 0};
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            ref_value a = ref_val(A, k), b = den_at(x, ref_col(A, k), 0);
            sum.re += a.re * b.re - a.im * b.im;
            sum.im += a.re * b.im + a.im * b.re;
        }
        den_put(y, i, 0, sum);
    }
}

/* Compares y = A*x of tulle_csr_apply() with that; only y may be written. */
static void apply_one(tulle_ctx *ctx, const tulle_csr *A, const char *name)
{
    den x = den_new(A->cols, 1, 0, TULLE_BY_ROWS, A->val_type), y = den_new(A->rows, 1, 0, TULLE_BY_ROWS, A->val_type);
    den want = den_new(A->rows, 1, 0, TULLE_BY_ROWS, A->val_type);
    den_fill(&x, REF_REALS, 7);
    apply_plain(A, &x.view, &want.view);
    CHECK(tulle_csr_apply(ctx, A, x.view.values, y.view.values) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    CHECK(den_same(&y.view, &want.view, name) && den_margins_kept(&y), "%s: y = A*x", name);
    den_free(&x);
    den_free(&y);
    den_free(&want);
}

static void apply_sums_whole_rows_in_double(void)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        tulle_ctx *ctx = ctx_with(threads);
        for (int i = 0; i < REF_TYPES; i++)
            for (int s = 0; s < SHAPES; s++) {
                const char *name;
                ref A = spmm_shape(s, REF_REALS, ref_types_at(i), &name);
                apply_one(ctx, &A.view, name);
                ref_free(&A);
            }
        for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
            ref A = long_rows((ref_types){(tulle_type)v, TULLE_I64, TULLE_I32}, REF_REALS);
            apply_one(ctx, &A.view, "long rows");
            ref_free(&A);
        }
        tulle_ctx_free(ctx);
    }
}

/* All lengths of the first and the last row, and so all positions relative to the ends of the arrays; x with
 * and without gaps. */
static void rows_of_all_lengths_with_one_column(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < REF_TYPES; i++)
        for (int64_t n = 0; n < 12; n++) {
            ref A = ragged_rows(ref_types_at(i), (n * 5 + 2) % 12, n);
            apply_one(ctx, &A.view, "ragged");
            setting s = {.x_gap = n % 3, .y_gap = n % 2, .cols = 1, .alpha = n % 4 == 3 ? half : one, .beta = n % 5 == 4 ? half : zero,
                         .kind = REF_REALS, .plan = n % 2};
            spmm_product(ctx, &A.view, NULL, s, "ragged");
            ref_free(&A);
        }
    tulle_ctx_free(ctx);
}

/* An infinity or NaN in a row, or in an x that only this row uses, does not affect the row before. */
static void a_row_sees_nothing_of_the_next(void)
{
    tulle_ctx *ctx = ctx_with(1);
    for (int n = 0; n < 9; n++) {
        enum { ROWS = 12, COLS = 16 };
        int64_t nnz = 0;
        for (int i = 0; i < ROWS; i++) nnz += i % 2 ? 5 : n;
        ref A = ref_new(ROWS, COLS, nnz, f64);
        int64_t k = 0;
        for (int i = 0; i < ROWS; i++) {
            for (int c = 0; c < (i % 2 ? 5 : n); c++) ref_set_col(&A, k++, i % 2 ? 11 + c : c);
            ref_set_ptr(&A, i + 1, k);
        }
        ref_fill(&A, REF_INTEGERS, 3);
        for (int64_t e = ref_ptr(&A.view, 1); e < ref_ptr(&A.view, 2); e++) ref_set_val(&A, e, (ref_value){INFINITY, 0});
        double x[COLS], y[ROWS];
        for (int c = 0; c < COLS; c++) x[c] = c < 11 ? c - 4 : NAN;
        CHECK(tulle_csr_apply(ctx, &A.view, x, y) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int i = 0; i < ROWS; i++) {
            CHECK(!isnan(y[i]) == (i % 2 == 0), "row %d after rows of %d entries is %g", i, n, y[i]);
            CHECK(i % 2 || n > 0 || !signbit(y[i]), "an empty row %d is -0", i);
        }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void apply_names_what_is_wrong(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(3, 20, 30, 4, REF_INTEGERS, f64);
    double x[60] = {0}, y[20] = {5};
    tulle_csr pattern = A.view;
    pattern.values = NULL;
    CHECK(tulle_csr_apply(ctx, &pattern, x, y) == TULLE_EINVAL, "a pattern");
    CHECK(strcmp(tulle_ctx_error(ctx), "A: values is NULL, and A*x needs them") == 0, "%s", tulle_ctx_error(ctx));
    for (int at = 11; at <= 30; at += 19) {
        CHECK((tulle_csr_apply(ctx, &A.view, x + 11, x + at) == TULLE_EINVAL), "y within x, at %d", at);
        CHECK(strcmp(tulle_ctx_error(ctx), "x and y overlap") == 0, "%s", tulle_ctx_error(ctx));
    }
    ref_set_col(&A, 1, 30);
    CHECK(tulle_csr_apply(ctx, &A.view, x, y) == TULLE_EPATTERN, "%s", tulle_ctx_error(ctx));
    ref_set_ptr(&A, 20, A.view.nnz - 1);
    CHECK(tulle_csr_apply(ctx, &A.view, x, y) == TULLE_EPATTERN, "%s", tulle_ctx_error(ctx));
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void any_number_of_threads_gives_the_same_bits(void)
{
    ref As[] = {long_rows(f64, REF_REALS), ref_power(5, 20000 / SCALE, 9000 / SCALE, 3000 / SCALE, REF_REALS, f64),
                ref_random(6, 30000 / SCALE, 5000, 12 / SCALE, REF_REALS, f64)};
    static const int64_t cols[] = {1, 3, 24 / (2 * SCALE - 1)};
    for (int a = 0; a < 3; a++)
        for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++)
            for (int c = 0; c < 3; c++)
                for (int o = 0; o < 4; o += SCALE) {
                    const tulle_csr *A = &As[a].view;
                    int64_t rows = op ? A->cols : A->rows, inner = op ? A->rows : A->cols;
                    den X = den_new(inner, cols[c], 0, (tulle_order)(o & 1), TULLE_F64), first = {0};
                    den_fill(&X, REF_REALS, 9);
                    for (int n = 1; n <= THREADS; n++) {
                        tulle_ctx *ctx = ctx_with(n);
                        den Y = den_new(rows, cols[c], 0, (tulle_order)(o >> 1), TULLE_F64);
                        tulle_spmm_options options = {.op_a = op};
                        CHECK(tulle_spmm(ctx, NULL, A, &X.view, NULL, &Y.view, &options) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                        if (n == 1) first = Y;
                        else CHECK(memcmp(Y.memory, first.memory, Y.bytes) == 0, "matrix %d, %d threads differ from one", a, n);
                        if (n > 1) den_free(&Y);
                        tulle_ctx_free(ctx);
                    }
                    den_free(&first);
                    den_free(&X);
                }
    for (int a = 0; a < 3; a++) ref_free(&As[a]);
}

/* A column has the same bits alone, together with others, and in another order. */
static void a_column_does_not_depend_on_its_neighbours(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        ref A = ref_power(5, 300, 250, 120, REF_REALS, t);
        den X = den_new(250, 41, 0, TULLE_BY_ROWS, t.val), Y = den_new(300, 41, 0, TULLE_BY_ROWS, t.val);
        den_fill(&X, REF_REALS, 8);
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int64_t j = 0; j < 41; j++) {
            den y = den_new(300, 1, 0, TULLE_BY_COLS, t.val);
            tulle_dense x = X.view;
            x.cols = 1;
            x.values = (char *)x.values + (size_t)j * ref_value_size(t.val);
            CHECK(tulle_spmm(ctx, NULL, &A.view, &x, NULL, &y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            for (int64_t i = 0; i < 300; i++) {
                ref_value a = den_at(&Y.view, i, j), b = den_at(&y.view, i, 0);
                CHECK(a.re == b.re && a.im == b.im, "column %d, row %d", (int)j, (int)i);
            }
            den_free(&y);
        }
        den_free(&X);
        den_free(&Y);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* ---- infinities and NaN */

static void infinities_and_nan_spread(void)
{
    tulle_ctx *ctx = ctx_with(2);
    const double odd[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0};
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (int64_t cols = 1; cols < 20; cols += 3) {
            tulle_type t = (tulle_type)v;
            ref A = ref_random(19, 50, 40, 3, REF_REALS, (ref_types){t, TULLE_I32, TULLE_I32});
            for (int64_t k = 0; k < A.view.nnz; k += 11) ref_set_val(&A, k, (ref_value){odd[k % 5], v < TULLE_CF32 ? 0 : odd[k % 3]});
            den X = den_new(40, cols, 1, TULLE_BY_ROWS, t), Y = den_new(50, cols, 0, TULLE_BY_COLS, t);
            den want = den_new(50, cols, 0, TULLE_BY_ROWS, t);
            den_fill(&X, REF_REALS, 1);
            den_fill(&Y, REF_REALS, 2);
            for (int64_t i = 0; i < 40; i += 7)
                for (int64_t j = 0; j < cols; j++)
                    if ((i + j) % 3 == 0) den_put(&X.view, i, j, (ref_value){odd[(i + j) % 5], 0});
            den_put(&Y.view, 3, 0, (ref_value){NAN, 0});
            den_put(&Y.view, 4, 0, (ref_value){INFINITY, 0});
            ref_value factors[] = {one, half, {INFINITY, 0}};
            for (int f = 0; f < 3; f++) {
                char alpha[16], beta[16];
                ref_value_put(alpha, t, 0, factors[f]);
                ref_value_put(beta, t, 0, one);
                spmm_plain(&A.view, &X.view, factors[f], one, &Y.view, &want.view);
                den again = den_new(50, cols, 0, TULLE_BY_COLS, t);
                memcpy(again.memory, Y.memory, Y.bytes);
                CHECK(tulle_spmm(ctx, alpha, &A.view, &X.view, beta, &again.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                CHECK(den_same(&again.view, &want.view, "not finite"), "%s", "wrong");
                den_free(&again);
            }
            den_free(&X);
            den_free(&Y);
            den_free(&want);
            ref_free(&A);
        }
    tulle_ctx_free(ctx);
}

/* alpha 0: values of A and X are not read; a pattern is sufficient, and arrays may be NULL. */
static void alpha_zero_reads_nothing(void)
{
    tulle_ctx *ctx = ctx_with(2);
    double zero_d = 0, two = 2;
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    tulle_csr pattern = A.view;
    pattern.values = NULL;
    den Y = den_new(30, 5, 2, TULLE_BY_ROWS, TULLE_F64), want = den_new(30, 5, 0, TULLE_BY_ROWS, TULLE_F64);
    tulle_dense X = tulle_dense_make(20, 5, 0, TULLE_BY_COLS, NULL, TULLE_F64);
    den_fill(&Y, REF_REALS, 5);
    spmm_plain(&A.view, &X, zero, (ref_value){2, 0}, &Y.view, &want.view);
    CHECK(tulle_spmm(ctx, &zero_d, &pattern, &X, &two, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(den_same(&Y.view, &want.view, "alpha 0") && den_margins_kept(&Y), "%s", "wrong");
    memset(Y.view.values, 0xff, 8);
    CHECK(tulle_spmm(ctx, &zero_d, &pattern, &X, NULL, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 5; j++) CHECK(den_at(&Y.view, i, j).re == 0, "not zero");
    CHECK(den_margins_kept(&Y), "%s", "written outside");
    den_free(&Y);
    den_free(&want);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- methods for large matrices, forced for small ones */

static void every_road_gives_the_same_bits(void)
{
    tulle_ctx *ctx = ctx_with(3);
    tl_base *b = (tl_base *)(void *)ctx;
    static const int64_t columns[] = {1, 4, 8, 31, 64, 70, 150 / SCALE};
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (int shape = 7; shape < SHAPES; shape++)
            for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
                tulle_type t = (tulle_type)v;
                const char *name;
                ref A = spmm_shape(shape, REF_REALS, (ref_types){t, TULLE_I32, shape % 2 ? TULLE_I32 : TULLE_I64}, &name);
                int64_t cols = columns[c], gap = c % 2 ? 0 : 8;
                den X = den_new(A.view.cols, cols, gap, TULLE_BY_ROWS, t), want = den_new(A.view.rows, cols, 0, TULLE_BY_ROWS, t);
                tl_spmm_pieces pieces;
                den_fill(&X, REF_REALS, 3);
                spmm_plain(&A.view, &X.view, one, zero, &want.view, &want.view);
                CHECK(tl_spmm_pieces_make(b, &A.view, 3, INT64_MAX, &pieces) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                for (int way = 0; way < (cols < 31 ? 16 : 32); way++) {
                    den Y = den_new(A.view.rows, cols, gap, way & 8 ? TULLE_BY_COLS : TULLE_BY_ROWS, t);
                    /* with a small window, so that it restarts, and is sometimes too small */
                    bool slide = way & 16;
                    const tl_spmm_tuning tuning = {.near_bytes = way & 1 ? 0 : INT64_MAX, .cache_bytes = way & 2 ? 0 : INT64_MAX,
                                                   .copy_row = way & 4 ? 0 : INT64_MAX, .wide_entries = 1,
                                                   .slide_bytes = way & 2 ? 1 << 20 : 120000, .slide_rows = 1 + way % 2 * 200};
                    pieces.scattered = !slide;
                    pieces.window = way & 4 ? 7 : 1;
                    tl_spmm_request q = {.A = &A.view, .pieces = &pieces, .X = &X.view, .Y = &Y.view, .alpha = {1, 0}, .threads = 3,
                                         .tuning = &tuning};
                    CHECK(tl_spmm_run(b, &q) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                    CHECK(den_same(&Y.view, &want.view, name), "type %d, %d columns, way %d", v, (int)cols, way);
                    CHECK(den_margins_kept(&Y), "type %d, %d columns, way %d: written outside", v, (int)cols, way);
                    den_free(&Y);
                }
                tl_spmm_pieces_done(b, &pieces);
                den_free(&X), den_free(&want);
                ref_free(&A);
            }
    tulle_ctx_free(ctx);
}

/* For any sequence of requests: entries find the rows of X for their columns, or the window reports that
 * they cannot. */
static void a_slide_shows_the_rows_of_x(void)
{
    enum { ROWS = 200, COLS = 6, LD = 8, BLOCK = 4, ROOM = 20, ENTRIES = 3 };
    static const int32_t col[] = {0, 3, 2, 8, 9, 19, 5, 20, 21, 21, 23, 29, 90, 109, 3, 5, 3, 23, 4, 23, 24, 24, 180, 199, 199, 199,
                                  150, 151, 160, 165, 166, 180, 7, 8, 9, 10, 11, 12, 13};
    static const int64_t ptr[] = {0, 2, 4, 6, 8, 10, 12, 14, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 35, 39};
    double x[ROWS * LD], rows[2 * ROOM * BLOCK];
    int32_t places[ENTRIES];
    tulle_dense X = tulle_dense_make(ROWS, COLS, LD, TULLE_BY_ROWS, x, TULLE_F64);
    for (int i = 0; i < ROWS * LD; i++) x[i] = i;
    tl_slide s = {.k = tl_spmm_kernels_for(TULLE_F64, TULLE_I32), .X = &X, .room = ROOM, .block = BLOCK, .rows = (char *)rows,
                  .apart = sizeof rows / 2, .places = places, .entries = ENTRIES, .place_size = sizeof *places};
    tl_slide_start(&s, 0, COLS);
    for (int64_t i = 0; i + 1 < (int64_t)(sizeof ptr / sizeof *ptr); i++) {
        tl_spmm_job all = {.ptr = ptr, .ptr64 = true, .col = col, .x = x, .x_ld = LD};
        int64_t n = ptr[i + 1] - ptr[i];
        bool fits = tl_slide_to(&s, &all, i, i + 1);
        CHECK(fits == (n <= ENTRIES && (n < 2 || col[ptr[i + 1] - 1] - col[ptr[i]] < ROOM)), "row %d", (int)i);
        for (int64_t block = 0; block < 2 && fits; block++) {
            tl_spmm_job job = all;
            job.x = x + block * BLOCK;
            job.cols = block ? COLS - BLOCK : BLOCK;
            tl_slide_show(&s, block, &job);
            for (int64_t k = ptr[i]; k < ptr[i + 1]; k++) {
                const int32_t *place = (const int32_t *)((uintptr_t)job.col + (uintptr_t)k * sizeof *place);
                const double *at = (const double *)job.x + *place * job.x_ld;
                for (int64_t c = 0; c < job.cols; c++)
                    CHECK(at[c] == (double)(col[k] * LD + block * BLOCK + c), "row %d, entry %d: %g", (int)i, (int)k, at[c]);
            }
        }
    }
}

/* Matrices with many times the size of the window, also with groups of more entries than fit in it. */
static void a_slide_goes_round(void)
{
    static const char *const recipes[] = {"banded:1500,lower=5,upper=9", "poisson3d:10,points=27", "poisson2d:30", "banded:700,lower=150,upper=150"};
    tulle_ctx *ctx = ctx_with(2);
    tl_base *b = (tl_base *)(void *)ctx;
    for (size_t g = 0; g < sizeof recipes / sizeof *recipes; g++)
        for (int way = 0; way < 4; way++) {
            tulle_matrix *A = NULL;
            tl_spmm_pieces pieces;
            REQUIRE(tulle_gallery(ctx, recipes[g], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr view = tulle_matrix_view(A);
            int64_t cols = way & 1 ? 70 : 128 / SCALE;
            den X = den_new(view.cols, cols, way & 1 ? 3 : 0, TULLE_BY_ROWS, view.val_type);
            den Y = den_new(view.rows, cols, 0, TULLE_BY_ROWS, view.val_type), want = den_new(view.rows, cols, 0, TULLE_BY_ROWS, view.val_type);
            den_fill(&X, REF_REALS, 3);
            spmm_plain(&view, &X.view, one, zero, &want.view, &want.view);
            CHECK(tl_spmm_pieces_make(b, &view, 2, INT64_MAX, &pieces) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const tl_spmm_tuning tuning = {.near_bytes = INT64_MAX, .cache_bytes = INT64_MAX, .wide_entries = 1, .copy_bytes = INT64_MAX,
                                           .slide_bytes = way & 2 ? INT64_MAX / 4 : 500000, .slide_rows = 1};
            tl_spmm_request q = {.A = &view, .pieces = &pieces, .X = &X.view, .Y = &Y.view, .alpha = {1, 0}, .threads = 2, .tuning = &tuning};
            CHECK(!pieces.scattered, "%s", recipes[g]);
            CHECK(tl_spmm_run(b, &q) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(den_same(&Y.view, &want.view, recipes[g]), "way %d", way);
            CHECK(den_margins_kept(&Y), "%s, way %d: written outside", recipes[g], way);
            tl_spmm_pieces_done(b, &pieces);
            den_free(&X), den_free(&Y), den_free(&want);
            tulle_matrix_free(A);
        }
    tulle_ctx_free(ctx);
}

/* Samples at equal distances would only include the ends of a grid's lines. */
static void grids_are_not_scattered(void)
{
    static const struct { const char *recipe; bool scattered; int64_t least, most; } given[] = {
        {"poisson3d:16,points=27", false, 2 * 256, 3 * 256}, {"elasticity3d:8,dof=3", false, 300, 600}, {"poisson2d:64", false, 128, 256},
        {"banded:4096,lower=5,upper=5", false, 70, 80},      {"er:4096,per_row=8", true, 0, 0}};
    tulle_ctx *ctx = ctx_with(1);
    tl_base *b = (tl_base *)(void *)ctx;
    for (size_t g = 0; g < sizeof given / sizeof *given; g++) {
        tulle_matrix *A = NULL;
        tl_spmm_pieces p;
        REQUIRE(tulle_gallery(ctx, given[g].recipe, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr view = tulle_matrix_view(A);
        REQUIRE(tl_spmm_pieces_make(b, &view, 2, INT64_MAX, &p) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(p.scattered == given[g].scattered, "%s", given[g].recipe);
        CHECK(p.window >= given[g].least && p.window <= given[g].most, "%s: window %d", given[g].recipe, (int)p.window);
        tl_spmm_pieces_done(b, &p);
        tulle_matrix_free(A);
    }
    tulle_ctx_free(ctx);
}

static void hubs_are_seen(void)
{
    static const struct { const char *recipe; bool skewed; } given[] = {
        {"rmat:15,edges=12", true}, {"rmat:13,edges=12", true}, {"er:60000,per_row=12", false}, {"er:1000,per_row=20", false},
        {"cage:9", false},          {"poisson2d:3", false}};
    tulle_ctx *ctx = ctx_with(1);
    for (size_t g = 0; g < sizeof given / sizeof *given; g++) {
        tulle_matrix *A = NULL;
        REQUIRE(tulle_gallery(ctx, given[g].recipe, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr view = tulle_matrix_view(A);
        CHECK(tl_spmm_skewed(&view) == given[g].skewed, "%s", given[g].recipe);
        tulle_matrix_free(A);
    }
    tulle_ctx_free(ctx);
}

/* Pieces cover every row exactly once, in order; long rows are divided into parts. */
static void pieces_cover_all_rows(void)
{
    tulle_ctx *ctx = ctx_with(1);
    tl_base *b = (tl_base *)(void *)ctx;
    ref As[] = {long_rows(f64, REF_INTEGERS), ref_power(5, 20000 / SCALE, 9000, 3000, REF_INTEGERS, f64), ref_new(100000, 10, 0, f64),
                ref_new(0, 10, 0, f64), ref_dense(1, 40000, REF_INTEGERS, f64), ref_band(50000 / SCALE, 2, REF_INTEGERS, f64)};
    for (size_t a = 0; a < sizeof As / sizeof *As; a++)
        for (int threads = 1; threads < 100; threads = threads * 3 + 1) {
            const tulle_csr *A = &As[a].view;
            tl_spmm_pieces p;
            REQUIRE(tl_spmm_pieces_make(b, A, threads, INT64_MAX, &p) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            int64_t row = 0, entry = 0, part = 0;
            for (int64_t i = 0; i < p.count; i++) {
                const tl_spmm_piece *q = &p.piece[i];
                CHECK(q->row0 == row && q->row1 > q->row0, "matrix %zu, piece %d begins at row %d", a, (int)i, (int)q->row0);
                if (q->begin < q->end) {
                    CHECK(q->begin == entry && q->part == part++ && q->end - q->begin <= TL_SPMM_PART, "matrix %zu, part", a);
                    entry = q->end;
                    if (entry == ref_ptr(A, row + 1)) row++;
                    continue;
                }
                for (int64_t r = q->row0; r < q->row1; r++)
                    CHECK(ref_ptr(A, r + 1) - ref_ptr(A, r) <= TL_SPMM_PART, "matrix %zu: row %d should be in parts", a, (int)r);
                row = q->row1;
                entry = ref_ptr(A, row);
            }
            CHECK(row == A->rows && part == p.parts, "matrix %zu: %d of %d rows", a, (int)row, (int)A->rows);
            tl_spmm_pieces_done(b, &p);
        }
    for (size_t a = 0; a < sizeof As / sizeof *As; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx);
}

/* ---- plans */

static void a_plan_has_values_of_its_own(void)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        tulle_ctx *ctx = ctx_with(threads);
        for (int i = 0; i < REF_TYPES; i++)
            for (int s = 0; s < SHAPES; s++)
                for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++) {
                    const char *name;
                    ref A = spmm_shape(s, REF_INTEGERS, ref_types_at(i), &name);
                    spmm_values(ctx, &A, (tulle_spmm_options){.op_a = op, .trust_inputs = i % 2}, spmm_write_here, name);
                    ref_free(&A);
                }
        ref A = ref_random(4, 9000, 500, 40 / SCALE, REF_INTEGERS, f64);        /* enough for several threads */
        for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++)
            spmm_values(ctx, &A, (tulle_spmm_options){.op_a = op}, spmm_write_here, "large");
        ref_free(&A);
        tulle_ctx_free(ctx);
    }
}

/* The plan has a copy of the values, so Y may overwrite the values of A.  The copy counts towards the
 * limit. */
static void the_callers_values_are_free_again(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(4, 60, 50, 8, REF_REALS, f64);
    den X = den_new(50, 2, 0, TULLE_BY_ROWS, TULLE_F64), want = den_new(60, 2, 0, TULLE_BY_ROWS, TULLE_F64);
    tulle_dense Y = tulle_dense_make(60, 2, 0, TULLE_BY_ROWS, A.values, TULLE_F64);
    tulle_spmm_plan *plan = NULL;
    tulle_stats stats;
    den_fill(&X, REF_REALS, 3);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &want.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    uint64_t bytes = (uint64_t)A.view.nnz * 8;
    tulle_spmm_options o = {.memory_limit = bytes - 1};
    char sentence[128];
    snprintf(sentence, sizeof sentence, "the plan's copy of A's values needs %d bytes, the limit is %d", (int)bytes, (int)bytes - 1);
    CHECK(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_ELIMIT && !plan && strcmp(tulle_ctx_error(ctx), sentence) == 0, "%s",
          tulle_ctx_error(ctx));
    o.memory_limit = bytes;
    REQUIRE(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    Y.ld = 2;
    CHECK(den_same(&Y, &want.view, "Y over the values"), "%s", "wrong");
    tulle_spmm_plan_stats(plan, &stats);
    CHECK(stats.products == 2 * A.view.nnz && stats.a_nnz == A.view.nnz && strcmp(stats.policy, "auto") == 0, "%s", "stats");
    tulle_spmm_plan_stats(NULL, &stats);
    CHECK(stats.products == 0 && !stats.policy, "%s", "stats of no plan");
    tulle_spmm_plan_stats(plan, NULL);
    Y.values = A.col_idx;
    CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y) == TULLE_EINVAL
          && strcmp(tulle_ctx_error(ctx), "Y overlaps the col_idx of A") == 0, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_spmm_plan_set_values(NULL, A.values) == TULLE_EINVAL, "%s", "no plan");
    tulle_spmm_plan_free(plan);
    tulle_spmm_plan_free(NULL);
    den_free(&X), den_free(&want);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void a_memory_limit_is_kept(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(4, 600, 500, 4, REF_REALS, f64);
    setting s = {.x_order = TULLE_BY_COLS, .cols = 40, .alpha = one, .kind = REF_REALS, .limit = 500 * 8 * 3 + 100};
    tulle_stats stats;
    spmm_product(ctx, &A.view, NULL, s, "three columns at a time");
    tulle_ctx_stats(ctx, &stats);
    CHECK(stats.products == A.view.nnz * 40 && stats.a_nnz == A.view.nnz && stats.b_nnz == 500 * 40 && stats.c_nnz == 600 * 40,
          "%s", "stats");
    s.limit = 500 * 8;
    spmm_product(ctx, &A.view, NULL, s, "one column at a time");
    den X = den_new(500, 4, 0, TULLE_BY_COLS, TULLE_F64), Y = den_new(600, 4, 0, TULLE_BY_ROWS, TULLE_F64);
    den_fill(&X, REF_REALS, 1);
    tulle_spmm_options o = {.memory_limit = 3999};
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o) == TULLE_ELIMIT, "%s", "it has to be refused");
    CHECK(strcmp(tulle_ctx_error(ctx), "the product needs 4000 bytes of workspace, the limit is 3999") == 0, "%s",
          tulle_ctx_error(ctx));
    CHECK(den_untouched(&Y), "%s", "Y was written");
    o.op_a = TULLE_TRANSPOSE;
    tulle_dense x = Y.view, y = X.view;
    memset(Y.view.values, 0, 600 * 4 * 8);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &x, NULL, &y, &o) == TULLE_ELIMIT && strstr(tulle_ctx_error(ctx), "the transposed copy of A needs"),
          "%s", tulle_ctx_error(ctx));
    den_free(&X);
    den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- invalid arguments: a status, a message, and Y unchanged */

static void bad_arguments_change_nothing(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    den X = den_new(20, 6, 1, TULLE_BY_ROWS, TULLE_F64), Y = den_new(30, 6, 1, TULLE_BY_COLS, TULLE_F64);
    den_fill(&X, REF_REALS, 1);
    den_fill(&Y, REF_REALS, 2);
    const call good = {.A = A.view, .X = X.view, .Y = Y.view};
    call c = good;
    c.Y.place = TULLE_DEVICE;
    spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "Y: its values are in a device's memory", "Y there");
    c = good;
    c.A.place = TULLE_DEVICE;
    spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "A: its arrays are in a device's memory", "A there");
    spmm_refusals(ctx);
    CHECK(tulle_spmm(NULL, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_EINVAL, "%s", "no context");
    CHECK(tulle_spmm(ctx, NULL, NULL, &X.view, NULL, &Y.view, NULL) == TULLE_EINVAL
          && strcmp(tulle_ctx_error(ctx), "tulle_spmm: A is NULL") == 0, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_spmm(ctx, NULL, &A.view, NULL, NULL, &Y.view, NULL) == TULLE_EINVAL, "%s", "no X");
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, NULL, NULL) == TULLE_EINVAL, "%s", "no Y");
    CHECK(tulle_spmm_plan_run(NULL, NULL, &X.view, NULL, &Y.view) == TULLE_EINVAL, "%s", "no plan");
    tulle_spmm_plan *plan = NULL;
    REQUIRE(tulle_spmm_plan_create(ctx, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense y = Y.view;
    y.rows = 29;
    CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &y) == TULLE_ESHAPE && den_untouched(&Y), "%s", tulle_ctx_error(ctx));
    tulle_spmm_plan_free(plan);
    CHECK(strcmp(tulle_spmm_policy_name(0), "auto") == 0 && !tulle_spmm_policy_name(99) && tulle_spmm_policy_text(0), "%s", "names");
    den_free(&X);
    den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* X and Y are interleaved columns of one array, which do not overlap: allowed. */
static void x_and_y_beside_each_other_in_one_array(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(4, 20, 20, 3, REF_REALS, f64);
    for (int turn = 0; turn < 2; turn++) {
        den both = den_new(20, 13, 0, TULLE_BY_ROWS, TULLE_F64), want = den_new(20, 6, 0, TULLE_BY_ROWS, TULLE_F64);
        den_fill(&both, REF_REALS, 4);
        tulle_dense X = both.view, Y = both.view;
        X.cols = Y.cols = 6;
        *(turn ? &X.values : &Y.values) = (double *)both.view.values + 7;
        spmm_plain(&A.view, &X, one, zero, &Y, &want.view);
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(den_same(&Y, &want.view, "beside"), "%s", "wrong");
        Y.values = (double *)X.values + (turn ? -5 : 5);
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_EINVAL, "%s", "one column in common");
        ref none = ref_new(20, 0, 0, f64);         /* an X without values overlaps nothing, for any pointer */
        X = tulle_dense_make(0, 6, 0, (tulle_order)turn, (double *)Y.values + 3, TULLE_F64);
        CHECK(tulle_spmm(ctx, NULL, &none.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        ref_free(&none);
        den_free(&both);
        den_free(&want);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- cancellation and failing allocations */

static void progress_can_cancel(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    den X = den_new(20, 3, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(30, 3, 0, TULLE_BY_ROWS, TULLE_F64);
    den_fill(&X, REF_REALS, 4);
    tulle_ctx_set_progress(ctx, stop_at_once, NULL);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    den_free(&X);
    den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* The n-th allocation fails, for every n. */
static void memory_failures_leave_y_as_it_was(void)
{
    ref A = long_rows(f64, REF_INTEGERS);
    for (int way = 0; way < 4; way++) {
        int op = way & 1 ? TULLE_TRANSPOSE : TULLE_KEEP;
        int64_t rows = op ? A.view.cols : A.view.rows, inner = op ? A.view.rows : A.view.cols;
        den X = den_new(inner, 3, 0, TULLE_BY_COLS, TULLE_F64), Y = den_new(rows, 3, 0, TULLE_BY_COLS, TULLE_F64);
        den first = den_new(rows, 3, 0, TULLE_BY_COLS, TULLE_F64);
        den_fill(&X, REF_INTEGERS, 3);
        heap h = {0};
        tulle_mem mem = {heap_alloc, heap_free, &h};
        tulle_ctx *ctx = NULL;
        REQUIRE(tulle_ctx_create("cpu", &mem, &ctx) == TULLE_OK, "%s", "no context");
        long live = h.live;
        tulle_spmm_options o = {.op_a = op};
        bool enough = false;
        for (long n = 1; !enough && n < 100; n++) {
            tulle_spmm_plan *plan = NULL;
            tulle_status status;
            h.fail_at = h.calls + n;
            if (way & 2) {
                status = tulle_spmm_plan_create(ctx, &A.view, &o, &plan);
                CHECK((status == TULLE_OK) == (plan != NULL), "%s", "half a plan");
                if (plan) status = tulle_spmm_plan_set_values(plan, A.values);
                if (status == TULLE_OK) status = tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y.view);
                tulle_spmm_plan_free(plan);
            } else {
                status = tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o);
            }
            enough = h.calls < h.fail_at;
            h.fail_at = 0;
            CHECK(status == (enough ? TULLE_OK : TULLE_ENOMEM), "%s", tulle_ctx_error(ctx));
            CHECK(enough || (den_untouched(&Y) && tulle_ctx_error(ctx)[0]), "%s", "Y was written, or there is no sentence");
            CHECK(h.live == live, "%ld blocks leak", h.live - live);
        }
        CHECK(enough, "%s", "it never succeeded");
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &first.view, &o) == TULLE_OK && memcmp(first.memory, Y.memory, Y.bytes) == 0, "%s", "it differs");
        tulle_ctx_free(ctx);
        CHECK(h.live == 0, "%ld blocks leak", h.live);
        den_free(&X), den_free(&Y), den_free(&first);
    }
    ref_free(&A);
}

TEST_MAIN(TEST(every_type_order_and_operation), TEST(nothing_times_something), TEST(zero_to_three_hundred_columns), TEST(every_alpha_and_beta),
          TEST(apply_sums_whole_rows_in_double), TEST(rows_of_all_lengths_with_one_column),
          TEST(a_row_sees_nothing_of_the_next), TEST(apply_names_what_is_wrong),
          TEST(long_rows_are_summed_in_parts), TEST(any_number_of_threads_gives_the_same_bits),
          TEST(a_column_does_not_depend_on_its_neighbours), TEST(infinities_and_nan_spread),
          TEST(alpha_zero_reads_nothing), TEST(every_road_gives_the_same_bits), TEST(a_slide_shows_the_rows_of_x),
          TEST(a_slide_goes_round),
          TEST(grids_are_not_scattered), TEST(hubs_are_seen), TEST(pieces_cover_all_rows), TEST(a_plan_has_values_of_its_own),
          TEST(the_callers_values_are_free_again), TEST(a_memory_limit_is_kept),
          TEST(bad_arguments_change_nothing), TEST(x_and_y_beside_each_other_in_one_array), TEST(progress_can_cancel),
          TEST(memory_failures_leave_y_as_it_was))
