/* SPDX-License-Identifier: MIT
 *
 * apply.c - y = A*x for one dense vector.
 *
 * A row is summed in its order, in double precision for every type, and rounded once; so the result
 * does not depend on the number of threads.  x and y must not overlap.
 *
 * Memory: none. */
#include "matrix/parts.h"

typedef struct job {
    const tulle_csr *A;
    const void      *x;
    void            *y;
} job;

TL_INLINE tl_c64 row_sum(const job *j, tulle_type type, tulle_index idx, int64_t begin, int64_t end)
{
    tl_c64 sum = {0, 0};
    for (int64_t k = begin; k < end; k++) {
        tl_c64 a = tl_value_load(type, j->A->values, k);
        tl_c64 x = tl_value_load(type, j->x, tl_get(j->A->col_idx, idx, k));
        if (type == TULLE_C32 || type == TULLE_C64) {
            sum.re += a.re * x.re + -a.im * x.im;       /* why so: mul() in cpu/kernel_types.h */
            sum.im += a.re * x.im + a.im * x.re;
        } else {
            sum.re += a.re * x.re;
        }
    }
    return sum;
}

TL_INLINE void rows_of(const job *j, tulle_type type, tulle_index idx, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        tl_value_store(type, j->y, i,
                       row_sum(j, type, idx, tl_row_begin(j->A, i), tl_row_begin(j->A, i + 1)));
}

TL_INLINE void rows_by_index(const job *j, tulle_type type, int64_t first, int64_t last)
{
    if (j->A->idx_type == TULLE_I32) rows_of(j, type, TULLE_I32, first, last);
    else rows_of(j, type, TULLE_I64, first, last);
}

static void apply_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    int64_t first = tl_row_cut(j->A, thread, threads), last = tl_row_cut(j->A, thread + 1, threads);
    switch (j->A->val_type) {
    case TULLE_F32: rows_by_index(j, TULLE_F32, first, last); break;
    case TULLE_F64: rows_by_index(j, TULLE_F64, first, last); break;
    case TULLE_C32: rows_by_index(j, TULLE_C32, first, last); break;
    case TULLE_C64: rows_by_index(j, TULLE_C64, first, last); break;
    }
}

tulle_status tl_csr_apply(tl_base *b, const tulle_csr *A, const void *x, void *y)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A, .x = x, .y = y};
    TRY(tl_csr_check(b, A, "A", 0));
    if (!A->values && A->nnz > 0)
        return tl_fail(b, TULLE_EINVAL, "A: values is NULL, and A*x needs them");
    if (!tl_type_known(A->val_type))
        return tl_fail(b, TULLE_ETYPE, "A: val_type is %d, not TULLE_F32, F64, C32 or C64",
                       (int)A->val_type);
    if (!x && A->cols > 0) return tl_fail(b, TULLE_EINVAL, "x is NULL");
    if (!y && A->rows > 0) return tl_fail(b, TULLE_EINVAL, "y is NULL");
    tl_team_run(b->team, tl_threads_for(b, 0, A->rows + A->nnz), apply_work, &j);
done:
    return status;
}
