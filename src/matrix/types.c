/* SPDX-License-Identifier: MIT
 * types.c - sizes and names of value and index types, and simple views. */
#include "matrix/matrix.h"

static const struct { size_t size; const char *name; bool complex_; } value_types[] = {
    [TULLE_F32] = {4, "f32", false},
    [TULLE_F64] = {8, "f64", false},
    [TULLE_CF32] = {8, "cf32", true},
    [TULLE_CF64] = {16, "cf64", true},
};

bool        tl_type_known(int type) { return type >= TULLE_F32 && type <= TULLE_CF64; }
bool        tl_index_known(int index) { return index == TULLE_I32 || index == TULLE_I64; }
size_t      tl_type_size(tulle_type type) { return value_types[type].size; }
const char *tl_type_name(tulle_type type) { return value_types[type].name; }
bool        tl_type_complex(tulle_type type) { return value_types[type].complex_; }
size_t      tl_index_size(tulle_index index) { return index == TULLE_I32 ? 4 : 8; }
const char *tl_index_name(tulle_index index) { return index == TULLE_I32 ? "i32" : "i64"; }

bool tl_fits(tulle_index index, int64_t value)
{
    return index == TULLE_I64 || value <= TULLE_I32_LIMIT;
}

tulle_index tl_index_for(int64_t value)
{
    return tl_fits(TULLE_I32, value) ? TULLE_I32 : TULLE_I64;
}

bool tl_same_arrays(const tulle_csr *A, const tulle_csr *B)
{
    return A->row_ptr == B->row_ptr && A->col_idx == B->col_idx && A->rows == B->rows && A->cols == B->cols
           && A->nnz == B->nnz && A->ptr_type == B->ptr_type && A->idx_type == B->idx_type
           && A->place == B->place;
}

bool tl_same_matrix(const tulle_csr *A, const tulle_csr *B)
{
    return tl_same_arrays(A, B) && A->values == B->values;
}

tulle_csr tulle_csr_make(int64_t rows, int64_t cols, const void *row_ptr, tulle_index ptr_type,
                         const void *col_idx, tulle_index idx_type, const void *values,
                         tulle_type val_type)
{
    tulle_csr A = {.rows = rows, .cols = cols, .row_ptr = row_ptr, .col_idx = col_idx,
                   .values = values, .ptr_type = ptr_type, .idx_type = idx_type,
                   .val_type = val_type, .place = TULLE_HOST};
    if (row_ptr && rows >= 0) A.nnz = tl_row_begin(&A, rows) - tl_row_begin(&A, 0);
    return A;
}

tulle_csr tulle_csr_make_device(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr,
                                tulle_index ptr_type, const void *col_idx, tulle_index idx_type,
                                const void *values, tulle_type val_type)
{
    return (tulle_csr){.rows = rows,
                       .cols = cols,
                       .nnz = nnz,
                       .row_ptr = row_ptr,
                       .col_idx = col_idx,
                       .values = values,
                       .ptr_type = ptr_type,
                       .idx_type = idx_type,
                       .val_type = val_type,
                       .place = TULLE_DEVICE};
}

tulle_csr tulle_csr_f64_i32(int64_t rows, int64_t cols, const int32_t *row_ptr, const int32_t *col_idx,
                            const double *values)
{
    return tulle_csr_make(rows, cols, row_ptr, TULLE_I32, col_idx, TULLE_I32, values, TULLE_F64);
}

tulle_csr tulle_csr_f32_i32(int64_t rows, int64_t cols, const int32_t *row_ptr, const int32_t *col_idx,
                            const float *values)
{
    return tulle_csr_make(rows, cols, row_ptr, TULLE_I32, col_idx, TULLE_I32, values, TULLE_F32);
}
