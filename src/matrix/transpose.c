/* SPDX-License-Identifier: MIT
 *
 * transpose.c - the transpose or adjoint of a CSR matrix.
 *
 * A stable counting sort of the entries by column (bucket.c): entries are visited in the order of A, so the
 * rows of the result are sorted.  The entries are divided among threads at any place, also within rows.  The
 * result has A's index types, but 64-bit columns where A has too many rows for 32.
 *
 * Memory: the result, the counters of bucket.c (none where there are more columns than entries), and 8 bytes
 * per entry for perm where it is requested. */
#include <inttypes.h>
#include "matrix/parts.h"

typedef struct job {
    const tulle_csr *A;
    tulle_matrix    *T;
    size_t           size;              /* of a value; 0: none */
    bool             conjugate;
    tl_buckets       buckets;
    int64_t         *perm;
} job;

/* The row that entry k stands in. */
static int64_t row_of(const tulle_csr *A, int64_t k)
{
    int64_t low = 0, high = A->rows - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (tl_row_begin(A, middle) <= k) low = middle;
        else high = middle - 1;
    }
    return low;
}

TL_INLINE void scatter(const job *j, tulle_index type, tulle_index lead, size_t size, void *next,
                       int64_t from, int64_t to)
{
    const tulle_csr *A = j->A;
    tulle_index out_type = j->T->view.idx_type;
    int64_t k = from;
    for (int64_t i = row_of(A, from); k < to; i++) {
        int64_t end = tl_row_begin(A, i + 1);
        if (end > to) end = to;
        for (; k < end; k++) {
            int64_t at = tl_bucket_take(next, lead, tl_get(A->col_idx, type, k));
            tl_put(j->T->col_idx, out_type, at, i);
            tl_value_move(j->T->values, at, A->values, k, size);
            if (j->perm) j->perm[at] = k;
        }
    }
}

static void conjugate(tulle_type type, void *values, int64_t from, int64_t to)
{
    if (type == TULLE_CF32)
        for (int64_t k = from; k < to; k++) ((tl_c32 *)values)[k].im = -((tl_c32 *)values)[k].im;
    if (type == TULLE_CF64)
        for (int64_t k = from; k < to; k++) ((tl_c64 *)values)[k].im = -((tl_c64 *)values)[k].im;
}

/* A specialised loop for each size of values and width of indices. */
TL_INLINE void scatter_sizes(const job *j, tulle_index lead, void *next, int64_t from, int64_t to)
{
    switch (j->size) {
    case 0: scatter(j, TULLE_I32, lead, 0, next, from, to); break;
    case 4: scatter(j, TULLE_I32, lead, 4, next, from, to); break;
    case 8: scatter(j, TULLE_I32, lead, 8, next, from, to); break;
    default: scatter(j, TULLE_I32, lead, 16, next, from, to); break;
    }
}

static void scatter_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    void *next = tl_bucket_row(&j->buckets, thread);
    int64_t from = tl_part(j->A->nnz, thread, threads), to = tl_part(j->A->nnz, thread + 1, threads);
    if (from == to) return;
    if (j->A->idx_type == TULLE_I64) scatter(j, TULLE_I64, j->buckets.type, j->size, next, from, to);
    else if (j->buckets.type == TULLE_I64) scatter_sizes(j, TULLE_I64, next, from, to);
    else scatter_sizes(j, TULLE_I32, next, from, to);
}

static void conjugate_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    conjugate(j->A->val_type, j->T->values, tl_part(j->A->nnz, thread, threads),
              tl_part(j->A->nnz, thread + 1, threads));
}

static tulle_index index_for(const tulle_csr *A)
{
    return tl_fits(A->idx_type, A->rows - 1) ? A->idx_type : TULLE_I64;
}

uint64_t tl_csr_transpose_bytes(const tl_base *b, const tulle_csr *A, bool perm, uint64_t *result)
{
    uint64_t entry = tl_index_size(index_for(A)) + tl_value_size(A) + (perm ? sizeof(int64_t) : 0);
    *result = tl_bytes_sum(tl_bytes_of((uint64_t)A->cols + 1, tl_index_size(A->ptr_type)),
                           tl_bytes_sum(tl_bytes_of((uint64_t)A->nnz, entry), sizeof(tulle_matrix)));
    return tl_bytes_sum(*result, tl_buckets_bytes(b, A->nnz, A->cols));
}

tulle_status tl_csr_transpose(tl_base *b, const tulle_csr *A, tulle_op op, tulle_matrix **out,
                              int64_t **perm)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A};
    *out = NULL;
    if (perm) *perm = NULL;
    if (op != TULLE_TRANSPOSE && op != TULLE_ADJOINT)
        return tl_fail(b, TULLE_EINVAL, "op is %d, not TULLE_TRANSPOSE or TULLE_ADJOINT", (int)op);
    TRY(tl_csr_check(b, A, "A", 0));
    if (A->cols > INT64_MAX / 16) {
        status = tl_fail(b, TULLE_ENOMEM, "a transpose with %" PRId64 " rows cannot be addressed", A->cols);
        goto done;
    }
    status = tl_matrix_like(b, A->cols, A->rows, A->nnz, A->ptr_type, index_for(A), A, &j.T);
    if (status == TULLE_ENOMEM && A->cols / 16 > A->nnz)
        tl_fail(b, status, "the transpose has %" PRId64 " rows, as many as A has columns: its row pointers "
                "alone take %" PRIu64 " bytes, more than there are", A->cols,
                tl_bytes_of((uint64_t)A->cols + 1, tl_index_size(A->ptr_type)));
    if (status != TULLE_OK) goto done;
    if (perm) TRY(tl_alloc(b, &j.perm, A->nnz, sizeof *j.perm, "the order of a transpose"));
    TRY(tl_buckets_create(b, A->col_idx, A->idx_type, A->nnz, A->cols, j.T->row_ptr, A->ptr_type,
                          &j.buckets));
    j.size = tl_value_size(A);
    tl_team_run(b->team, j.buckets.parts, scatter_work, &j);
    tl_buckets_close(b, &j.buckets);
    if (op == TULLE_ADJOINT && A->values && tl_type_complex(A->val_type))
        tl_team_run(b->team, tl_threads_for(b, 0, A->nnz), conjugate_work, &j);
    *out = j.T;
    j.T = NULL;
    if (perm) *perm = j.perm;
    j.perm = NULL;
done:
    tl_free(b, j.perm);
    tl_matrix_free(b, j.T);
    return status;
}
