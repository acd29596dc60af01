/* SPDX-License-Identifier: MIT
 *
 * transpose.c - the transpose or adjoint of a CSR matrix.
 *
 * A stable counting sort of the entries by column (bucket.c): entries are taken in the order of A, so
 * the rows of the result come out sorted.  The parts of the entries are cut anywhere, also within rows.
 * The result keeps A's index types; its columns become 64 bit where A has too many rows for 32.
 *
 * Memory: the result, the counters of bucket.c, and 8 bytes an entry for perm where it is asked for. */
#include <inttypes.h>
#include "matrix/parts.h"

typedef struct job {
    const tulle_csr *A;
    tulle_matrix    *T;
    size_t           size;              /* of a value; 0: none */
    bool             conjugate;
    int64_t         *next, *perm;
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

TL_INLINE void scatter(const job *j, tulle_index type, size_t size, int64_t *next, int64_t from, int64_t to)
{
    const tulle_csr *A = j->A;
    tulle_index out_type = j->T->view.idx_type;
    int64_t k = from;
    for (int64_t i = row_of(A, from); k < to; i++) {
        int64_t end = tl_row_begin(A, i + 1);
        if (end > to) end = to;
        for (; k < end; k++) {
            int64_t at = next[tl_get(A->col_idx, type, k)]++;
            tl_put(j->T->col_idx, out_type, at, i);
            tl_value_move(j->T->values, at, A->values, k, size);
            if (j->perm) j->perm[at] = k;
        }
    }
}

static void conjugate(tulle_type type, void *values, int64_t from, int64_t to)
{
    if (type == TULLE_C32)
        for (int64_t k = from; k < to; k++) ((tl_c32 *)values)[k].im = -((tl_c32 *)values)[k].im;
    if (type == TULLE_C64)
        for (int64_t k = from; k < to; k++) ((tl_c64 *)values)[k].im = -((tl_c64 *)values)[k].im;
}

static void scatter_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    int64_t *next = j->next + thread * j->A->cols;
    int64_t from = tl_part(j->A->nnz, thread, threads), to = tl_part(j->A->nnz, thread + 1, threads);
    if (from == to) return;
    if (j->A->idx_type == TULLE_I64) {
        scatter(j, TULLE_I64, j->size, next, from, to);
        return;
    }
    switch (j->size) {
    case 0: scatter(j, TULLE_I32, 0, next, from, to); break;
    case 4: scatter(j, TULLE_I32, 4, next, from, to); break;
    case 8: scatter(j, TULLE_I32, 8, next, from, to); break;
    default: scatter(j, TULLE_I32, 16, next, from, to); break;
    }
}

static void conjugate_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    conjugate(j->A->val_type, j->T->values, tl_part(j->A->nnz, thread, threads),
              tl_part(j->A->nnz, thread + 1, threads));
}

tulle_status tl_csr_transpose(tl_base *b, const tulle_csr *A, tulle_op op, tulle_matrix **out,
                              int64_t **perm)
{
    tulle_status status = TULLE_OK;
    tl_buckets buckets = {0};
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
    tulle_index idx_type = tl_fits(A->idx_type, A->rows - 1) ? A->idx_type : TULLE_I64;
    TRY(tl_matrix_create(b, A->cols, A->rows, A->nnz, A->ptr_type, idx_type, tl_value_type(A), &j.T));
    if (perm) TRY(tl_alloc(b, &j.perm, A->nnz, sizeof *j.perm, "the order of a transpose"));
    TRY(tl_buckets_create(b, A->col_idx, A->idx_type, A->nnz, A->cols, j.T->row_ptr, A->ptr_type,
                          &buckets));
    j.size = tl_value_size(A);
    j.next = buckets.next;
    tl_team_run(b->team, buckets.parts, scatter_work, &j);
    if (op == TULLE_ADJOINT && A->values && tl_type_complex(A->val_type))
        tl_team_run(b->team, tl_threads_for(b, 0, A->nnz), conjugate_work, &j);
    *out = j.T;
    j.T = NULL;
    if (perm) *perm = j.perm;
    j.perm = NULL;
done:
    tl_free(b, buckets.next);
    tl_free(b, j.perm);
    tl_matrix_free(b, j.T);
    return status;
}
