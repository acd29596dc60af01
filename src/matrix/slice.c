/* SPDX-License-Identifier: MIT
 *
 * slice.c - converts a view of some rows of a larger matrix to a view of a separate matrix.
 *
 * The row pointers of such a view count from the beginning of the larger matrix's arrays: row_ptr[0] is not
 * 0.  Everywhere else in the library they count from the first entry of the view.  So row_ptr[0] is
 * subtracted from them in a copy, while columns and values stay where they are.  Invalid row pointers are
 * reported here, where they still have the caller's values.
 *
 * Memory: the copy of row_ptr. */
#include "matrix/parts.h"
#include <inttypes.h>

int64_t tl_csr_first(const tulle_csr *A)
{
    return A->place == TULLE_HOST ? tl_row_begin(A, 0) : 0;
}

uint64_t tl_csr_slice_bytes(const tulle_csr *A)
{
    if (tl_csr_first(A) == 0) return 0;
    return tl_bytes_of((uint64_t)A->rows + 1, tl_index_size(A->ptr_type)) + sizeof(tulle_matrix);
}

tulle_csr tl_csr_rows(const tulle_csr *A, int64_t row0, int64_t row1)
{
    tulle_csr rows = *A;
    rows.rows = row1 - row0;
    rows.nnz = tl_row_begin(A, row1) - tl_row_begin(A, row0);
    rows.row_ptr = (const char *)A->row_ptr + (size_t)row0 * tl_index_size(A->ptr_type);
    return rows;
}

/* Computed as an integer, because `first` may come from an unchecked row_ptr. */
const void *tl_array_from(const void *array, size_t size, int64_t first)
{
    return array ? (const void *)((uintptr_t)array + (size_t)first * size) : NULL;
}

tulle_status tl_csr_slice_ends(tl_base *b, const tulle_csr *A, const char *name)
{
    int64_t first = tl_row_begin(A, 0), end = tl_row_begin(A, A->rows);
    if (first == 0) return tl_csr_check_ends(b, A, name);
    if (first < 0 || first > INT64_MAX / 16)
        return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[0] is %" PRId64 ", which is no place in an array",
                       name, first);
    if (end < first || end - first != A->nnz)
        return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[0] is %" PRId64 " and row_ptr[%" PRId64 "] is %" PRId64
                       ", but nnz is %" PRId64, name, first, A->rows, end, A->nnz);
    return TULLE_OK;
}

typedef struct job {
    const tulle_csr  *A;
    void             *to;
    int64_t           first;
    _Atomic int64_t   bad;              /* the first pointer that is smaller than the one before it */
} job;

static void copy_work(void *arg, int thread, int threads)
{
    job *j = arg;
    const tulle_csr *A = j->A;
    int64_t begin = tl_part(A->rows + 1, thread, threads), end = tl_part(A->rows + 1, thread + 1, threads);
    int64_t before = begin > 0 ? tl_row_begin(A, begin - 1) : j->first;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = tl_row_begin(A, i);
        if (at < before) {
            int64_t bad = atomic_load(&j->bad);
            while (i < bad && !atomic_compare_exchange_weak(&j->bad, &bad, i)) {}
            return;
        }
        /* unsigned: it may overflow where pointers are invalid, which another thread may not have reported
         * yet */
        tl_put(j->to, A->ptr_type, i, (int64_t)((uint64_t)at - (uint64_t)j->first));
        before = at;
    }
}

tulle_status tl_csr_slice(tl_base *b, const tulle_csr *A, const char *name, int threads, tulle_csr *view,
                          tulle_matrix **own)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *S = NULL;
    const int64_t first = tl_csr_first(A);
    *own = NULL;
    *view = *A;
    if (first == 0) return TULLE_OK;
    TRY(tl_csr_slice_ends(b, A, name));
    TRY(tl_calloc(b, &S, 1, sizeof *S, "a slice of rows"));
    TRY(tl_alloc(b, &S->row_ptr, A->rows + 1, tl_index_size(A->ptr_type), "row pointers of a slice"));
    job j = {.A = A, .to = S->row_ptr, .first = first, .bad = INT64_MAX};
    tl_team_run(b->team, tl_threads_for(b, threads, A->rows), copy_work, &j);
    int64_t bad = atomic_load(&j.bad);
    if (bad < INT64_MAX) {
        status = tl_fail(b, TULLE_EPATTERN,
                         "%s: row_ptr[%" PRId64 "] = %" PRId64 " is smaller than row_ptr[%" PRId64
                         "] = %" PRId64, name, bad, tl_row_begin(A, bad), bad - 1, tl_row_begin(A, bad - 1));
        goto done;
    }
    view->row_ptr = S->row_ptr;
    view->col_idx = tl_array_from(A->col_idx, tl_index_size(A->idx_type), first);
    view->values = tl_array_from(A->values, tl_value_size(A), first);
    S->view = *view;
    *own = S;
    S = NULL;
done:
    tl_matrix_free(b, S);
    return status;
}
