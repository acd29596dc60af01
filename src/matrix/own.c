/* SPDX-License-Identifier: MIT
 * own.c - matrices that the library owns. */
#include "matrix/parts.h"

tulle_status tl_matrix_create(tl_base *b, int64_t rows, int64_t cols, int64_t nnz, tulle_index ptr_type,
                              tulle_index idx_type, int val_type, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *A = NULL;
    *out = NULL;
    TRY(tl_calloc(b, &A, 1, sizeof *A, "a matrix"));
    TRY(tl_alloc_lasting(b, &A->row_ptr, rows + 1, tl_index_size(ptr_type), "row pointers of a matrix"));
    TRY(tl_alloc_lasting(b, &A->col_idx, nnz, tl_index_size(idx_type), "column indices of a matrix"));
    if (val_type)
        TRY(tl_alloc_lasting(b, &A->values, nnz, tl_type_size((tulle_type)val_type), "values of a matrix"));
    A->view = (tulle_csr){.rows = rows, .cols = cols, .nnz = nnz, .row_ptr = A->row_ptr,
                          .col_idx = A->col_idx, .values = A->values, .ptr_type = ptr_type,
                          .idx_type = idx_type, .val_type = val_type ? (tulle_type)val_type : TULLE_F64};
    *out = A;
    A = NULL;
done:
    tl_matrix_free(b, A);
    return status;
}

tulle_status tl_matrix_like(tl_base *b, int64_t rows, int64_t cols, int64_t nnz, tulle_index ptr_type,
                            tulle_index idx_type, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = tl_matrix_create(b, rows, cols, nnz, ptr_type, idx_type, tl_value_type(A), out);
    if (status == TULLE_OK) (*out)->view.val_type = A->val_type;
    return status;
}

tulle_status tl_matrix_copy(tl_base *b, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    size_t size = tl_value_size(A);
    TRY(tl_matrix_like(b, A->rows, A->cols, A->nnz, A->ptr_type, A->idx_type, A, out));
    memcpy((*out)->row_ptr, A->row_ptr, (size_t)(A->rows + 1) * tl_index_size(A->ptr_type));
    if (A->nnz > 0) memcpy((*out)->col_idx, A->col_idx, (size_t)A->nnz * tl_index_size(A->idx_type));
    if (A->nnz > 0 && size) memcpy((*out)->values, A->values, (size_t)A->nnz * size);
done:
    return status;
}

void tl_matrix_free(tl_base *b, tulle_matrix *A)
{
    if (!A) return;
    if (A->disown) A->disown(A);
    if (A->mapping) A->unmap(A->mapping, A->mapping_bytes);
    tl_free(b, A->row_ptr);
    tl_free(b, A->col_idx);
    tl_free(b, A->values);
    tl_free(b, A);
}

void tl_matrix_hand_over(tl_base *from, tl_base *to, tulle_matrix *A)
{
    tl_hand_over(from, to, A->row_ptr);
    tl_hand_over(from, to, A->col_idx);
    tl_hand_over(from, to, A->values);
    tl_hand_over(from, to, A);
}

/* ---- arrays whose ownership passes from or to the caller */

typedef struct adopted {
    tulle_done_fn done;
    void         *user;
} adopted;

static void give_back(tulle_matrix *A)
{
    adopted *from = A->owner;
    if (from->done) from->done(from->user);
    tl_free(NULL, from);
}

tulle_status tl_matrix_adopt(tl_base *b, const tulle_csr *A, tulle_done_fn done, void *user,
                             tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *M = NULL;
    adopted *from = NULL;
    TRY(tl_calloc(b, &M, 1, sizeof *M, "a matrix"));
    TRY(tl_alloc(b, &from, 1, sizeof *from, "a matrix"));
    *from = (adopted){done, user};
    *M = (tulle_matrix){.view = *A, .owner = from, .disown = give_back};
    *out = M;
    M = NULL;
done:
    tl_free(b, M);
    return status;
}

tulle_status tl_matrix_release(tulle_matrix *A, tulle_csr *arrays)
{
    if (A->disown || A->mapping) return TULLE_EINVAL;
    *arrays = A->view;
    tl_free(NULL, A);
    return TULLE_OK;
}
