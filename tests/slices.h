/* SPDX-License-Identifier: MIT
 *
 * slices.h - tests that every function gives the same result for a slice of rows of a larger matrix as for a
 * copy of these rows.  Everything outside of the slice is invalid, so that reading it is detected. */
#ifndef TULLE_SLICES_H
#define TULLE_SLICES_H
#include "spmm_help.h"
#include "view_entries.h"

enum { SLICE_ABOVE = 17, SLICE_ROWS = 24, SLICE_BELOW = 9, SLICE_WIDTH = 3 };

typedef struct sliced {
    ref       all;                      /* valid only in the rows of the slice     */
    tulle_csr slice;
    ref       plain;                    /* a copy of these rows                    */
    int64_t   first;
} sliced;

/* A symmetric band within rows of two entries each. */
static inline sliced sliced_new(ref_types t)
{
    ref band = ref_band(SLICE_ROWS, 2, REF_INTEGERS, t);
    const int64_t rows = SLICE_ABOVE + SLICE_ROWS + SLICE_BELOW, nnz = band.view.nnz;
    sliced s = {.all = ref_new(rows, SLICE_ROWS, 2 * (SLICE_ABOVE + SLICE_BELOW) + nnz, t),
                .first = 2 * SLICE_ABOVE};
    for (int64_t i = 0; i < SLICE_ROWS; i++)
        for (int64_t k = ref_ptr(&band.view, i); k < ref_ptr(&band.view, i + 1); k++)
            ref_set_val(&band, k, (ref_value){1 + (double)((i + ref_col(&band.view, k)) % 7), 0});
    for (int64_t i = 0; i <= rows; i++) {
        bool within = i >= SLICE_ABOVE && i <= SLICE_ABOVE + SLICE_ROWS;
        ref_set_ptr(&s.all, i, within ? s.first + ref_ptr(&band.view, i - SLICE_ABOVE) : -99);
    }
    for (int64_t k = 0; k < s.all.view.nnz; k++) {
        bool within = k >= s.first && k < s.first + nnz;
        ref_set_col(&s.all, k, within ? ref_col(&band.view, k - s.first) : -5);
        ref_set_val(&s.all, k, within ? ref_val(&band.view, k - s.first) : (ref_value){NAN, NAN});
    }
    s.slice = tulle_csr_make(SLICE_ROWS, SLICE_ROWS,
                             (char *)s.all.row_ptr + SLICE_ABOVE * ref_index_size(t.ptr), t.ptr,
                             s.all.col_idx, t.idx, s.all.values, t.val);
    s.plain = band;
    return s;
}

static inline void sliced_free(sliced *s)
{
    ref_free(&s->all);
    ref_free(&s->plain);
}

#define SLICE_WORKS(call) CHECK((call) == TULLE_OK, "%s", tulle_ctx_error(ctx))

/* Compares the results of a function for the slice and for the copy. */
static inline void slices_same(tulle_matrix *got, tulle_matrix *want, const char *what)
{
    tulle_csr g = tulle_matrix_view(got), w = tulle_matrix_view(want);
    CHECK(got && want && ref_same(&g, &w, what), "%s", what);
    tulle_matrix_free(got);
    tulle_matrix_free(want);
}

#define SLICE_SAME(call_got, call_want, what)                                                     \
    do {                                                                                          \
        tulle_matrix *got = NULL, *want = NULL;                                                   \
        SLICE_WORKS(call_got);                                                                    \
        SLICE_WORKS(call_want);                                                                   \
        slices_same(got, want, what);                                                             \
    } while (0)

static inline void slices_one_matrix(tulle_ctx *ctx, const sliced *s)
{
    const tulle_csr *S = &s->slice, *P = &s->plain.view;
    const tulle_type t = S->val_type;
    CHECK(S->nnz == P->nnz, "%" PRId64 " entries", S->nnz);
    SLICE_WORKS(tulle_csr_check(ctx, S));
    SLICE_SAME(tulle_csr_sort(ctx, S, &got), tulle_csr_sort(ctx, P, &want), "sort");
    for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++)
        SLICE_SAME(tulle_csr_transpose(ctx, S, (tulle_op)op, &got),
                   tulle_csr_transpose(ctx, P, (tulle_op)op, &want), "transpose");
    SLICE_SAME(tulle_csr_convert(ctx, S, TULLE_F32, TULLE_I64, TULLE_I64, &got),
               tulle_csr_convert(ctx, P, TULLE_F32, TULLE_I64, TULLE_I64, &want), "convert");
    SLICE_SAME(tulle_csr_move(ctx, S, TULLE_HOST, &got), tulle_csr_move(ctx, P, TULLE_HOST, &want), "move");
    den x = den_new(SLICE_ROWS, 1, 0, TULLE_BY_COLS, t), y = den_new(SLICE_ROWS, 1, 0, TULLE_BY_COLS, t),
        z = den_new(SLICE_ROWS, 1, 0, TULLE_BY_COLS, t);
    den_fill(&x, REF_REALS, 5);
    SLICE_WORKS(tulle_csr_apply(ctx, S, x.view.values, y.view.values));
    SLICE_WORKS(tulle_csr_apply(ctx, P, x.view.values, z.view.values));
    CHECK(ref_same_values(y.view.values, z.view.values, t, SLICE_ROWS, "apply"), "A*x");
    den_free(&x), den_free(&y), den_free(&z);
    /* there and back */
    tulle_matrix *there = NULL, *got = NULL, *want = NULL;
    SLICE_WORKS(tulle_csr_move(ctx, S, TULLE_DEVICE, &there));
    tulle_csr v = tulle_matrix_view(there);
    SLICE_WORKS(tulle_csr_move(ctx, &v, TULLE_HOST, &got));
    SLICE_WORKS(tulle_csr_move(ctx, P, TULLE_HOST, &want));
    slices_same(got, want, "to the device and back");
    tulle_matrix_free(there);
}

static inline void slices_files(tulle_ctx *ctx, const sliced *s)
{
    static const char *const endings[] = {".mtx", ".tulle"};
    const tulle_csr *S = &s->slice, *P = &s->plain.view;
    for (int i = 0; i < 2; i++) {
        tulle_matrix *got = NULL, *want = NULL;
        tulle_writer *w = NULL;
        SLICE_WORKS(tulle_write(ctx, entry_path(endings[i]), S));
        SLICE_WORKS(tulle_read(ctx, entry_path(endings[i]), &got));
        SLICE_WORKS(tulle_write(ctx, entry_path(endings[i]), P));
        SLICE_WORKS(tulle_read(ctx, entry_path(endings[i]), &want));
        slices_same(got, want, endings[i]);
        got = want = NULL;
        SLICE_WORKS(tulle_writer_create(ctx, entry_path(endings[i]), S->rows, S->cols, S->val_type, &w));
        SLICE_WORKS(tulle_writer_put(w, S));
        SLICE_WORKS(tulle_writer_finish(w));
        tulle_writer_free(w);
        SLICE_WORKS(tulle_read(ctx, entry_path(endings[i]), &got));
        SLICE_WORKS(tulle_write(ctx, entry_path(endings[i]), P));
        SLICE_WORKS(tulle_read(ctx, entry_path(endings[i]), &want));
        slices_same(got, want, "writer_put");
        remove(entry_path(endings[i]));
    }
    tulle_matrix *got = NULL, *want = NULL;
    SLICE_WORKS(tulle_write_symmetric(ctx, entry_path(".mtx"), S));
    SLICE_WORKS(tulle_read(ctx, entry_path(".mtx"), &got));
    SLICE_WORKS(tulle_write_symmetric(ctx, entry_path(".mtx"), P));
    SLICE_WORKS(tulle_read(ctx, entry_path(".mtx"), &want));
    slices_same(got, want, "write_symmetric");
    remove(entry_path(".mtx"));
}

/* ---- products */

typedef struct slice_rows { tulle_ctx *own; tulle_matrix *block[SLICE_ROWS + 1]; int count; } slice_rows;

static inline int slice_block(void *user, int64_t first_row, const tulle_csr *block)
{
    slice_rows *r = user;
    (void)first_row;
    return r->count == SLICE_ROWS || tulle_csr_sort(r->own, block, &r->block[r->count++]) != TULLE_OK;
}

static inline void slices_blocks(tulle_ctx *ctx, const sliced *s)
{
    slice_rows got = {.own = ctx_with(1)}, want = {.own = got.own};
    SLICE_WORKS(tulle_multiply_blocks(ctx, &s->slice, &s->slice, NULL, slice_block, &got));
    SLICE_WORKS(tulle_multiply_blocks(ctx, &s->plain.view, &s->plain.view, NULL, slice_block, &want));
    CHECK(got.count == want.count && got.count > 0, "%d and %d blocks", got.count, want.count);
    for (int i = 0; i < got.count && i < want.count; i++) slices_same(got.block[i], want.block[i], "a block");
    tulle_ctx_free(got.own);
}

/* Three kinds of operands: the slice on either side, and on both. */
static inline void slices_products(tulle_ctx *ctx, const sliced *s)
{
    const tulle_csr *S = &s->slice, *P = &s->plain.view, *left[] = {S, P, S}, *right[] = {P, S, S};
    const tulle_options ways[] = {{.threads = 0}, {.op_a = TULLE_TRANSPOSE}, {.op_b = TULLE_ADJOINT},
                                  {.op_a = 1, .op_b = 1},
                                  {.sort_inputs = 1}, {.trust_inputs = 1}, {.sort_inputs = 1, .op_b = 1}};
    for (int i = 0; i < 3; i++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            SLICE_SAME(tulle_multiply(ctx, left[i], right[i], &ways[w], &got),
                       tulle_multiply(ctx, P, P, &ways[w], &want), "product");
            tulle_forecast f = {0}, g = {0};
            SLICE_WORKS(tulle_estimate(ctx, left[i], right[i], &ways[w], &f));
            SLICE_WORKS(tulle_estimate(ctx, P, P, &ways[w], &g));
            CHECK(f.products == g.products && f.nnz_estimate == g.nnz_estimate, "forecast");
        }
    tulle_csr a = *S, b = *S;
    a.values = b.values = NULL;
    tulle_csr p = *P;
    p.values = NULL;
    SLICE_SAME(tulle_multiply(ctx, &a, &b, NULL, &got), tulle_multiply(ctx, &p, &p, NULL, &want), "pattern");
    slices_blocks(ctx, s);
    /* the slice is I times itself, and that is what a check finds, too */
    ref I = ref_identity(SLICE_ROWS, (ref_types){S->val_type, S->ptr_type, S->idx_type});
    double error = 1;
    SLICE_WORKS(tulle_product_check(ctx, &I.view, S, S, NULL, &error));
    CHECK(error < 1e-6, "%g", error);
    CHECK(tulle_product_check(ctx, S, S, S, NULL, &error) == TULLE_ECHECK, "%s", tulle_ctx_error(ctx));
    tulle_matrix *own = NULL;
    SLICE_WORKS(tulle_matrix_adopt(ctx, S, NULL, NULL, &own));
    tulle_csr adopted = tulle_matrix_view(own);
    SLICE_SAME(tulle_multiply(ctx, &adopted, &adopted, NULL, &got), tulle_multiply(ctx, P, P, NULL, &want),
               "an adopted slice");
    tulle_matrix_free(own);
    ref_free(&I);
}

/* Values for a plan of a slice are in the array of the larger matrix, as in the view. */
static inline void slices_plans(tulle_ctx *ctx, const sliced *s)
{
    const tulle_csr *S = &s->slice, *P = &s->plain.view;
    const tulle_type t = S->val_type;
    ref other = ref_copy(&s->all.view, (ref_types){t, S->ptr_type, S->idx_type});
    for (int64_t k = 0; k < P->nnz; k++) {      /* new values, and the same in the copy */
        ref_value v = ref_val(P, k);
        ref_set_val(&other, s->first + k, (ref_value){3 * v.re + (double)(k % 5), 0});
    }
    const void *mine = (char *)other.values + (size_t)s->first * ref_value_size(t);
    for (int op = 0; op < 4; op++) {
        const tulle_options o = {.op_a = op & 1, .op_b = op >> 1};
        tulle_plan *plan = NULL, *plain = NULL;
        tulle_matrix *got = NULL, *want = NULL;
        REQUIRE(tulle_plan_create(ctx, S, S, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_plan_create(ctx, P, P, &o, &plain) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_plan_pattern(plan);
        void *values = malloc((size_t)c.nnz * ref_value_size(t) + 1);
        for (int run = 0; run < 2; run++) {
            SLICE_WORKS(tulle_plan_run(plan, run ? other.values : S->values, S->values, values));
            SLICE_WORKS(tulle_plan_multiply(plain, run ? mine : P->values, P->values, &want));
            SLICE_WORKS(tulle_plan_multiply(plan, run ? other.values : S->values, S->values, &got));
            tulle_csr w = tulle_matrix_view(want);
            CHECK(ref_same_values(values, w.values, t, c.nnz, "values of a plan"), "op %d, run %d", op, run);
            slices_same(got, want, "a plan's product");
            got = want = NULL;
        }
        free(values);
        tulle_plan_free(plan);
        tulle_plan_free(plain);
    }
    ref_free(&other);
}

static inline void slices_spmm(tulle_ctx *ctx, const sliced *s)
{
    const tulle_csr *S = &s->slice, *P = &s->plain.view;
    const tulle_type t = S->val_type;
    den X = den_new(SLICE_ROWS, SLICE_WIDTH, 0, TULLE_BY_ROWS, t),
        Y = den_new(SLICE_ROWS, SLICE_WIDTH, 0, TULLE_BY_ROWS, t),
        Z = den_new(SLICE_ROWS, SLICE_WIDTH, 0, TULLE_BY_ROWS, t);
    ref other = ref_copy(&s->all.view, (ref_types){t, S->ptr_type, S->idx_type});
    for (int64_t k = 0; k < P->nnz; k++)
        ref_set_val(&other, s->first + k, (ref_value){(double)(k % 11) - 4, 0});
    const void *mine = (char *)other.values + (size_t)s->first * ref_value_size(t);
    den_fill(&X, REF_INTEGERS, 9);
    for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++) {
        const tulle_spmm_options o = {.op_a = op};
        tulle_spmm_plan *plan = NULL, *plain = NULL;
        SLICE_WORKS(tulle_spmm(ctx, NULL, S, &X.view, NULL, &Y.view, &o));
        SLICE_WORKS(tulle_spmm(ctx, NULL, P, &X.view, NULL, &Z.view, &o));
        CHECK(ref_same_values(Y.view.values, Z.view.values, t, SLICE_ROWS * SLICE_WIDTH, "spmm"), "op %d",
              op);
        REQUIRE(tulle_spmm_plan_create(ctx, S, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_spmm_plan_create(ctx, P, &o, &plain) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int run = 0; run < 2; run++) {
            if (run) SLICE_WORKS(tulle_spmm_plan_set_values(plan, other.values));
            if (run) SLICE_WORKS(tulle_spmm_plan_set_values(plain, mine));
            SLICE_WORKS(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y.view));
            SLICE_WORKS(tulle_spmm_plan_run(plain, NULL, &X.view, NULL, &Z.view));
            CHECK(ref_same_values(Y.view.values, Z.view.values, t, SLICE_ROWS * SLICE_WIDTH, "spmm plan"),
                  "op %d, run %d", op, run);
        }
        tulle_spmm_plan_free(plan);
        tulle_spmm_plan_free(plain);
    }
    ref_free(&other);
    den_free(&X), den_free(&Y), den_free(&Z);
}

static inline void slices_are_as_copies(tulle_ctx *ctx, ref_types t)
{
    sliced s = sliced_new(t);
    ref before = ref_copy(&s.all.view, t);
    slices_one_matrix(ctx, &s);
    slices_files(ctx, &s);
    slices_products(ctx, &s);
    slices_plans(ctx, &s);
    slices_spmm(ctx, &s);
    CHECK(ref_untouched(&s.all.view, &before), "the larger matrix");
    ref_free(&before);
    sliced_free(&s);
}

/* ---- errors in a slice are reported with the caller's row numbers and pointers, by every function */

static inline void wrong_slices_are_refused(tulle_ctx *ctx)
{
    enum { FIRST = 2 * SLICE_ABOVE };
    sliced s = sliced_new((ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    static double x[SLICE_ROWS * SLICE_WIDTH], y[SLICE_ROWS * SLICE_WIDTH];
    tulle_dense X = tulle_dense_make(SLICE_ROWS, SLICE_WIDTH, 0, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(SLICE_ROWS, SLICE_WIDTH, 0, TULLE_BY_ROWS, y, TULLE_F64);
    const entry_operands operands = {&s.plain.view, &X, &Y, false};
    const int64_t end = ref_ptr(&s.slice, SLICE_ROWS), fifth = ref_ptr(&s.slice, 5);
    char nnz[96], order[96];
    snprintf(nnz, sizeof nnz, ": row_ptr[0] is %d and row_ptr[%d] is %" PRId64 ", but nnz is %" PRId64, FIRST,
             SLICE_ROWS, end,
             s.slice.nnz + 1);
    snprintf(order, sizeof order, ": row_ptr[6] = 7 is smaller than row_ptr[5] = %" PRId64, fifth);
    for (int fault = 0; fault < 4; fault++) {
        const char *const said[] = {nnz, order, ": row_ptr[0] is -3, which is no place in an array",
                                    ": row 2: column 24 is outside 0..23"};
        tulle_csr bad = s.slice;
        int64_t sixth = ref_ptr(&s.slice, 6), column = ref_col(&s.all.view, ref_ptr(&s.slice, 2));
        if (fault == 0) bad.nnz++;
        if (fault == 1) ref_set_ptr(&s.all, SLICE_ABOVE + 6, 7);
        if (fault == 2) ref_set_ptr(&s.all, SLICE_ABOVE, -3);
        if (fault == 3) ref_set_col(&s.all, ref_ptr(&s.slice, 2), SLICE_ROWS);
        for (int i = 0; i < VIEW_ENTRIES; i++) {
            bool copies = strncmp(view_entries[i].name, "csr_move", 8) == 0;    /* looks at row_ptr alone */
            bool adopts = strcmp(view_entries[i].name, "matrix_adopt") == 0;    /* looks at its ends alone */
            if (((copies || adopts) && fault == 3) || (adopts && fault == 1)) continue;
            tulle_status status = view_entries[i].call(ctx, &bad, &operands);
            CHECK(status == TULLE_EPATTERN && strstr(tulle_ctx_error(ctx), said[fault]),
                  "%s, fault %d: %s: %s", view_entries[i].name,
                  fault, tulle_status_name(status), tulle_ctx_error(ctx));
        }
        ref_set_ptr(&s.all, SLICE_ABOVE, FIRST);
        ref_set_ptr(&s.all, SLICE_ABOVE + 6, sixth);
        ref_set_col(&s.all, ref_ptr(&s.slice, 2), column);
    }
    /* a slice without rows: only the first row pointer is read, and may have any value */
    tulle_csr empty = s.slice;
    empty.rows = empty.nnz = 0;
    CHECK(tulle_csr_check(ctx, &empty) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    sliced_free(&s);
}

#endif
