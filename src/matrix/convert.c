/* SPDX-License-Identifier: MIT
 *
 * convert.c - a copy of a matrix with other types.
 *
 * 0 keeps a type.  Complex to real keeps the real part; real to complex has imaginary part +0.  Indices
 * that do not fit the requested type are refused before anything is allocated.  A pattern stays a pattern.
 *
 * Memory: the result. */
#include <inttypes.h>
#include "matrix/parts.h"

typedef struct job {
    const tulle_csr *A;
    tulle_matrix    *out;
} job;

TL_INLINE void copy_indices(void *to, tulle_index to_type, const void *from, tulle_index from_type,
                            int64_t first, int64_t last)
{
    if (first == last) return;
    if (to_type == from_type) {
        size_t size = tl_index_size(to_type);
        memcpy((char *)to + (size_t)first * size, (const char *)from + (size_t)first * size,
               (size_t)(last - first) * size);
    } else if (to_type == TULLE_I64) {
        for (int64_t k = first; k < last; k++) ((int64_t *)to)[k] = ((const int32_t *)from)[k];
    } else {
        for (int64_t k = first; k < last; k++) ((int32_t *)to)[k] = (int32_t)((const int64_t *)from)[k];
    }
}

TL_INLINE void copy_as(void *to, tulle_type to_type, const void *from, tulle_type from_type,
                       int64_t first, int64_t last)
{
    for (int64_t k = first; k < last; k++)
        tl_value_store(to_type, to, k, tl_value_load(from_type, from, k));
}

TL_INLINE void copy_from(void *to, tulle_type to_type, const void *from, tulle_type from_type,
                         int64_t first, int64_t last)
{
    switch (from_type) {
    case TULLE_F32: copy_as(to, to_type, from, TULLE_F32, first, last); break;
    case TULLE_F64: copy_as(to, to_type, from, TULLE_F64, first, last); break;
    case TULLE_CF32: copy_as(to, to_type, from, TULLE_CF32, first, last); break;
    case TULLE_CF64: copy_as(to, to_type, from, TULLE_CF64, first, last); break;
    }
}

static void copy_values(void *to, tulle_type to_type, const void *from, tulle_type from_type,
                        int64_t first, int64_t last)
{
    size_t size = tl_type_size(to_type);
    if (first == last) return;
    if (to_type == from_type) {
        memcpy((char *)to + (size_t)first * size, (const char *)from + (size_t)first * size,
               (size_t)(last - first) * size);
        return;
    }
    switch (to_type) {
    case TULLE_F32: copy_from(to, TULLE_F32, from, from_type, first, last); break;
    case TULLE_F64: copy_from(to, TULLE_F64, from, from_type, first, last); break;
    case TULLE_CF32: copy_from(to, TULLE_CF32, from, from_type, first, last); break;
    case TULLE_CF64: copy_from(to, TULLE_CF64, from, from_type, first, last); break;
    }
}

static void copy_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = j->A, *C = &j->out->view;
    int64_t first = tl_part(A->nnz, thread, threads), last = tl_part(A->nnz, thread + 1, threads);
    copy_indices(j->out->row_ptr, C->ptr_type, A->row_ptr, A->ptr_type,
                 tl_part(A->rows + 1, thread, threads), tl_part(A->rows + 1, thread + 1, threads));
    copy_indices(j->out->col_idx, C->idx_type, A->col_idx, A->idx_type, first, last);
    if (A->values) copy_values(j->out->values, C->val_type, A->values, A->val_type, first, last);
}

/* ---- changing the index width of an array in place */

typedef struct resize_job {
    void   *array;
    int64_t from, to;                   /* entries whose new places overlap no unread old entry */
} resize_job;

static void widen_work(void *arg, int thread, int threads)
{
    const resize_job *j = arg;
    int64_t n = j->to - j->from, first = j->from + tl_part(n, thread, threads);
    for (int64_t k = j->from + tl_part(n, thread + 1, threads) - 1; k >= first; k--) {
        int32_t narrow;
        memcpy(&narrow, (char *)j->array + 4 * k, sizeof narrow);
        memcpy((char *)j->array + 8 * k, &(int64_t){narrow}, sizeof(int64_t));
    }
}

void tl_index_resize(tl_base *b, void *array, tulle_index from, tulle_index to, int64_t count)
{
    if (from == TULLE_I64 && to == TULLE_I32)
        for (int64_t k = 0; k < count; k++) {
            int64_t wide;
            memcpy(&wide, (char *)array + 8 * k, sizeof wide);
            memcpy((char *)array + 4 * k, &(int32_t){(int32_t)wide}, sizeof(int32_t));
        }
    /* the upper half moves to memory that holds no old entry; the last few are moved one by one */
    for (int64_t n = count; from == TULLE_I32 && to == TULLE_I64 && n > 0;) {
        int threads = tl_threads_for(b, 0, n);
        resize_job j = {array, threads > 1 ? (n + 1) / 2 : 0, n};
        tl_team_run(b->team, threads, widen_work, &j);
        n = j.from;
    }
}

tulle_status tl_csr_convert(tl_base *b, const tulle_csr *A, int val_type, int ptr_type, int idx_type,
                            tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A};
    *out = NULL;
    if (val_type && !tl_type_known(val_type))
        return tl_fail(b, TULLE_ETYPE, "val_type is %d, not 0, TULLE_F32, F64, CF32 or CF64", val_type);
    if ((ptr_type && !tl_index_known(ptr_type)) || (idx_type && !tl_index_known(idx_type)))
        return tl_fail(b, TULLE_ETYPE, "ptr_type is %d and idx_type %d, not 0, TULLE_I32 or TULLE_I64",
                       ptr_type, idx_type);
    TRY(tl_csr_check(b, A, "A", 0));
    tulle_index ptr = ptr_type ? (tulle_index)ptr_type : A->ptr_type;
    tulle_index idx = idx_type ? (tulle_index)idx_type : A->idx_type;
    if (!tl_fits(ptr, A->nnz))
        return tl_fail(b, TULLE_EOVERFLOW, "A: nnz %" PRId64 " does not fit row pointers of type %s",
                       A->nnz, tl_index_name(ptr));
    if (!tl_fits(idx, A->cols - 1))
        return tl_fail(b, TULLE_EOVERFLOW, "A: %" PRId64 " columns do not fit column indices of type %s",
                       A->cols, tl_index_name(idx));
    int kind = !A->values ? 0 : val_type ? val_type : (int)A->val_type;
    TRY(tl_matrix_create(b, A->rows, A->cols, A->nnz, ptr, idx, kind, &j.out));
    tl_team_run(b->team, tl_threads_for(b, 0, A->rows + A->nnz), copy_work, &j);
    *out = j.out;
done:
    return status;
}
