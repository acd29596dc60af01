/* SPDX-License-Identifier: MIT
 *
 * oracle_graphblas.c - compares tulle with SuiteSparse:GraphBLAS (GrB_mxm), which adds in a different order,
 * so real values may differ in their last bits. */
#include <GraphBLAS.h>
#include "oracle.h"

static GrB_Type type_of(tulle_type type)
{
    return type == TULLE_F32 ? GrB_FP32 : type == TULLE_F64 ? GrB_FP64
         : type == TULLE_CF32 ? GxB_FC32 : GxB_FC64;
}

static GrB_Semiring semiring_of(tulle_type type)
{
    return type == TULLE_F32 ? GrB_PLUS_TIMES_SEMIRING_FP32 : type == TULLE_F64 ? GrB_PLUS_TIMES_SEMIRING_FP64
         : type == TULLE_CF32 ? GxB_PLUS_TIMES_FC32 : GxB_PLUS_TIMES_FC64;
}

static GrB_Matrix take(const tulle_csr *M)
{
    GrB_Index rows = (GrB_Index)M->rows, nnz = (GrB_Index)M->nnz;
    size_t ptr_bytes = (rows + 1) * sizeof(GrB_Index), idx_bytes = (nnz + 1) * sizeof(GrB_Index);
    size_t val_bytes = (nnz + 1) * oracle_size(M->val_type);
    GrB_Index *ptr = malloc(ptr_bytes), *idx = malloc(idx_bytes);
    void *val = malloc(val_bytes);
    GrB_Matrix A = NULL;
    if (!ptr || !idx || !val) goto done;
    for (GrB_Index i = 0; i <= rows; i++) ptr[i] = (GrB_Index)oracle_get(M->row_ptr, M->ptr_type, (int64_t)i);
    for (GrB_Index k = 0; k < nnz; k++) idx[k] = (GrB_Index)oracle_get(M->col_idx, M->idx_type, (int64_t)k);
    memcpy(val, M->values, nnz * oracle_size(M->val_type));
    if (GrB_Matrix_new(&A, type_of(M->val_type), rows, (GrB_Index)M->cols)) goto done;
    if (GxB_Matrix_pack_CSR(A, &ptr, &idx, &val, ptr_bytes, idx_bytes, val_bytes, false, false, NULL))
        GrB_Matrix_free(&A);
done:
    free(ptr);                      /* NULL if the matrix has taken ownership */
    free(idx);
    free(val);
    return A;
}

/* Without pointers for `jumbled` and `iso`, the exported result is sorted and has all values. */
static const char *product(const tulle_csr *A, const tulle_csr *B, oracle_csr *R)
{
    static bool started;
    const char *why = "GraphBLAS failed";
    GrB_Matrix a = NULL, b = NULL, C = NULL;
    GrB_Type type;
    GrB_Index rows, cols, ptr_bytes, idx_bytes, val_bytes, *ptr = NULL, *idx = NULL;
    void *val = NULL;
    if (!started && GrB_init(GrB_NONBLOCKING)) return why;
    started = true;
    if (!(a = take(A)) || !(b = take(B))) goto done;
    if (GrB_Matrix_new(&C, type_of(A->val_type), (GrB_Index)A->rows, (GrB_Index)B->cols)) goto done;
    if (GrB_mxm(C, NULL, NULL, semiring_of(A->val_type), a, b, NULL)) goto done;
    if (GrB_Matrix_wait(C, GrB_MATERIALIZE)) goto done;
    if (GxB_Matrix_export_CSR(&C, &type, &rows, &cols, &ptr, &idx, &val, &ptr_bytes, &idx_bytes, &val_bytes,
                              NULL, NULL, NULL))
        goto done;
    if (!oracle_create((int64_t)rows, (int64_t)ptr[rows], A->val_type, R)) goto done;
    for (GrB_Index i = 0; i <= rows; i++) R->ptr[i] = (int64_t)ptr[i];
    for (int64_t k = 0; k < R->nnz; k++) R->idx[k] = (int64_t)idx[k];
    if (R->nnz) memcpy(R->val, val, (size_t)R->nnz * oracle_size(A->val_type));
    why = NULL;
done:
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&b);
    GrB_Matrix_free(&C);
    free(ptr);
    free(idx);
    free(val);
    return why;
}

ORACLE_MAIN("GraphBLAS", product, false)
