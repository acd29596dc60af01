/* SPDX-License-Identifier: MIT
 * columns.c - copies some rows and a range of columns of a matrix; columns keep their numbers.  Memory: the
 * copy. */
#include "matrix/parts.h"

int64_t tl_row_lower(const tulle_csr *A, int64_t row, int64_t column)
{
    int64_t low = tl_row_begin(A, row), high = tl_row_begin(A, row + 1);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (tl_get(A->col_idx, A->idx_type, middle) < column) low = middle + 1;
        else high = middle;
    }
    return low;
}

tulle_status tl_columns_take(tl_base *b, const tulle_csr *A, const int64_t *row, int64_t rows, int64_t first,
                             int64_t end, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    size_t index = tl_index_size(A->idx_type), value = tl_value_size(A);
    tulle_matrix *S = NULL;
    int64_t nnz = 0, at = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t r = row ? row[i] : i;
        nnz += tl_row_lower(A, r, end) - tl_row_lower(A, r, first);
    }
    TRY(tl_matrix_like(b, rows, A->cols, nnz, tl_index_for(nnz), A->idx_type, A, &S));
    S->view.val_type = A->val_type;
    tl_put(S->row_ptr, S->view.ptr_type, 0, 0);
    for (int64_t i = 0; i < rows; i++) {
        int64_t r = row ? row[i] : i, from = tl_row_lower(A, r, first), n = tl_row_lower(A, r, end) - from;
        if (n > 0) {
            memcpy((char *)S->col_idx + at * (int64_t)index, (const char *)A->col_idx + from * (int64_t)index,
                   (size_t)n * index);
            if (value)
                memcpy((char *)S->values + at * (int64_t)value,
                       (const char *)A->values + from * (int64_t)value, (size_t)n * value);
        }
        tl_put(S->row_ptr, S->view.ptr_type, i + 1, at += n);
    }
    *out = S;
done:
    return status;
}
