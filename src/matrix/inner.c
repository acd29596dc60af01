/* SPDX-License-Identifier: MIT
 *
 * inner.c - the operands of A*B^T where B has far more columns than entries.
 *
 * The full B^T would have a row pointer for each column of B, although nearly all of its rows are empty.
 * Empty rows contribute nothing to the product, so they are left out: the non-empty columns of B are
 * renumbered 0, 1, 2, ... in their order; B^T gets a row for each of them, and A keeps only its entries in
 * those columns, renumbered.  The order within rows is unchanged, and so is every sum.
 *
 * Memory: both results, 8 bytes per entry of B, and another 32 per entry until B^T is built. */
#include "matrix/parts.h"

typedef struct job {
    const tulle_csr *A, *B;
    tulle_matrix    *X, *T;             /* A with other columns, B transposed       */
    int64_t         *column, columns;   /* the non-empty columns of B               */
    int64_t         *a_perm, *b_perm;   /* NULL: not wanted                         */
    bool             conjugate;
} job;

static tulle_index row_type(const tulle_csr *B)
{
    return tl_fits(B->idx_type, B->rows - 1) ? B->idx_type : TULLE_I64;
}

static uint64_t copy_bytes(const tulle_csr *A, tulle_index idx_type, int64_t rows, bool perm)
{
    uint64_t entry = tl_index_size(idx_type) + tl_value_size(A) + (perm ? sizeof(int64_t) : 0);
    return tl_bytes_sum(tl_bytes_of((uint64_t)A->nnz, entry),
                        tl_bytes_of((uint64_t)rows + 1, tl_index_size(A->ptr_type)) + sizeof(tulle_matrix));
}

uint64_t tl_inner_bytes(const tulle_csr *A, const tulle_csr *B, bool perm, uint64_t *result)
{
    uint64_t a = copy_bytes(A, A->idx_type, A->rows, perm), t = copy_bytes(B, row_type(B), B->nnz, perm);
    uint64_t pairs = tl_bytes_of((uint64_t)B->nnz, 2 * sizeof(tl_pair));
    uint64_t column = (uint64_t)B->nnz * sizeof(int64_t);
    *result = tl_bytes_sum(a, t);
    uint64_t first = tl_bytes_sum(t, pairs), then = *result;
    return tl_bytes_sum(first > then ? first : then, column);
}

static void negate_imaginary(tulle_type type, void *values, int64_t k)
{
    if (type == TULLE_CF32) ((tl_c32 *)values)[k].im = -((tl_c32 *)values)[k].im;
    if (type == TULLE_CF64) ((tl_c64 *)values)[k].im = -((tl_c64 *)values)[k].im;
}

/* Fills B^T with the entries of B, sorted by column, then by row. */
static void fill_transpose(job *j, const tl_pair *sorted, int64_t *row_of)
{
    const tulle_csr *B = j->B;
    tulle_matrix *T = j->T;
    int64_t n = 0;
    for (int64_t k = 0; k < B->nnz; k++) {
        if (k == 0 || sorted[k].col != sorted[k - 1].col) {
            tl_put(T->row_ptr, B->ptr_type, n, k);
            j->column[n++] = sorted[k].col;
        }
        tl_put(T->col_idx, T->view.idx_type, k, row_of[sorted[k].place]);
        tl_value_move(T->values, k, B->values, sorted[k].place, tl_value_size(B));
        if (j->conjugate && T->values) negate_imaginary(B->val_type, T->values, k);
        if (j->b_perm) j->b_perm[k] = sorted[k].place;
    }
    tl_put(T->row_ptr, B->ptr_type, n, B->nnz);
    j->columns = T->view.rows = n;
}

static tulle_status transpose(tl_base *b, job *j)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *B = j->B;
    tl_pair *pairs = NULL;
    TRY(tl_matrix_like(b, B->nnz, B->rows, B->nnz, B->ptr_type, row_type(B), B, &j->T));
    TRY(tl_alloc(b, &j->column, B->nnz, sizeof *j->column, "columns with entries"));
    TRY(tl_alloc(b, &pairs, 2 * B->nnz, sizeof *pairs, "entries to be sorted by column"));
    for (int64_t k = 0; k < B->nnz; k++) pairs[k] = (tl_pair){tl_get(B->col_idx, B->idx_type, k), k};
    const tl_pair *sorted = tl_pairs_sort(pairs, pairs + B->nnz, B->nnz);
    /* the half of the buffer that the sort does not need any more has the size of an array of rows */
    int64_t *row_of = (int64_t *)(void *)(sorted == pairs ? pairs + B->nnz : pairs);
    for (int64_t i = 0; i < B->rows; i++)
        for (int64_t k = tl_row_begin(B, i); k < tl_row_begin(B, i + 1); k++) row_of[k] = i;
    fill_transpose(j, sorted, row_of);
done:
    tl_free(b, pairs);
    return status;
}

/* The new number of a column of B; -1: it is empty. */
static int64_t number_of(const job *j, int64_t column)
{
    int64_t low = 0, high = j->columns;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (j->column[middle] < column) low = middle + 1;
        else high = middle;
    }
    return low < j->columns && j->column[low] == column ? low : -1;
}

static tulle_status renumber(tl_base *b, job *j)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = j->A;
    int64_t at = 0;
    TRY(tl_matrix_like(b, A->rows, j->columns, A->nnz, A->ptr_type, A->idx_type, A, &j->X));
    for (int64_t i = 0; i < A->rows; i++) {
        tl_put(j->X->row_ptr, A->ptr_type, i, at);
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
            int64_t number = number_of(j, tl_get(A->col_idx, A->idx_type, k));
            if (number < 0) continue;
            tl_put(j->X->col_idx, A->idx_type, at, number);
            tl_value_move(j->X->values, at, A->values, k, tl_value_size(A));
            if (j->a_perm) j->a_perm[at] = k;
            at++;
        }
    }
    tl_put(j->X->row_ptr, A->ptr_type, A->rows, at);
    j->X->view.nnz = at;
done:
    return status;
}

tulle_status tl_inner_transpose(tl_base *b, const tulle_csr *A, const tulle_csr *B, tulle_op op,
                                tl_inner *out, bool perms)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A, .B = B, .conjugate = op == TULLE_ADJOINT};
    *out = (tl_inner){0};
    if (perms) TRY(tl_alloc(b, &j.a_perm, A->nnz, sizeof *j.a_perm, "the order of an operand"));
    if (perms) TRY(tl_alloc(b, &j.b_perm, B->nnz, sizeof *j.b_perm, "the order of a transpose"));
    TRY(transpose(b, &j));
    TRY(renumber(b, &j));
    *out = (tl_inner){.A = j.X, .B = j.T, .a_perm = j.a_perm, .b_perm = j.b_perm};
    j = (job){.column = j.column};
done:
    tl_free(b, j.column);
    tl_free(b, j.a_perm);
    tl_free(b, j.b_perm);
    tl_matrix_free(b, j.X);
    tl_matrix_free(b, j.T);
    return status;
}
