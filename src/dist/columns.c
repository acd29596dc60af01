/* SPDX-License-Identifier: MIT
 * columns.c - some columns of a matrix, with the numbers they have.  Memory: what is taken. */
#include "dist/dist.h"
#include <string.h>

tulle_status tl_columns_take(tl_base *b, const tulle_csr *A, int64_t first, int64_t end, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    size_t index = tl_index_size(A->idx_type), value = tl_type_size(A->val_type);
    tulle_matrix *S = NULL;
    int64_t nnz = 0, at = 0;
    for (int64_t i = 0; i < A->rows; i++) nnz += tl_row_lower(A, i, end) - tl_row_lower(A, i, first);
    TRY(tl_matrix_create(b, A->rows, A->cols, nnz, tl_index_for(nnz), A->idx_type,
                         A->values ? (int)A->val_type : 0, &S));
    S->view.val_type = A->val_type;
    tl_put(S->row_ptr, S->view.ptr_type, 0, 0);
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t from = tl_row_lower(A, i, first), n = tl_row_lower(A, i, end) - from;
        if (n > 0) {
            memcpy((char *)S->col_idx + at * (int64_t)index, (const char *)A->col_idx + from * (int64_t)index,
                   (size_t)n * index);
            if (A->values)
                memcpy((char *)S->values + at * (int64_t)value,
                       (const char *)A->values + from * (int64_t)value, (size_t)n * value);
        }
        tl_put(S->row_ptr, S->view.ptr_type, i + 1, at += n);
    }
    *out = S;
done:
    return status;
}
