/* SPDX-License-Identifier: MIT
 *
 * peer_graphblas.c - SuiteSparse:GraphBLAS: GrB_mxm over PLUS_TIMES_FP64 into a new C that is requested to be
 * sparse by rows, then GrB_wait, which sorts it.  Two variants: sorting is left to GrB_wait, or requested of
 * GrB_mxm by its descriptor.  Indices have 64 bits: this library has no others.
 *
 * fetch() tests that the result is really sorted: the matrix is exported with a `jumbled` flag, so that the
 * export does not sort it, and the flag must be false. */
#include <GraphBLAS.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "peers.h"

typedef struct {
    GrB_Matrix     A, B;            /* B == A when they are the same */
    GrB_Descriptor sort;
    GrB_Index      rows, cols;
} state;

static int users;                   /* GrB_init and GrB_finalize may run only once per process */

static GrB_Matrix take(const peer_csr *M)
{
    GrB_Index nnz = (GrB_Index)M->ptr[M->rows], rows = (GrB_Index)M->rows;
    size_t ptr_bytes = (rows + 1) * sizeof(GrB_Index), idx_bytes = (nnz + 1) * sizeof(GrB_Index);
    size_t val_bytes = (nnz + 1) * sizeof(double);
    GrB_Index *ptr = malloc(ptr_bytes), *idx = malloc(idx_bytes);
    double *val = malloc(val_bytes);
    GrB_Matrix A = NULL;
    if (!ptr || !idx || !val) goto done;
    for (GrB_Index i = 0; i <= rows; i++) ptr[i] = (GrB_Index)M->ptr[i];
    for (GrB_Index k = 0; k < nnz; k++) idx[k] = (GrB_Index)M->idx[k];
    memcpy(val, M->val, nnz * sizeof *val);
    if (GrB_Matrix_new(&A, GrB_FP64, rows, (GrB_Index)M->cols)) goto done;
    if (GxB_Matrix_Option_set(A, GxB_FORMAT, GxB_BY_ROW) ||
        GxB_Matrix_pack_CSR(A, &ptr, &idx, (void **)&val, ptr_bytes, idx_bytes, val_bytes, false, false,
                            NULL) ||
        GrB_Matrix_wait(A, GrB_MATERIALIZE))
        GrB_Matrix_free(&A);
done:
    free(ptr);                      /* NULL once the matrix has taken them over */
    free(idx);
    free(val);
    return A;
}

static void graphblas_close(void *self)
{
    state *s = self;
    if (!s) return;
    if (s->B != s->A) GrB_Matrix_free(&s->B);
    GrB_Matrix_free(&s->A);
    GrB_Descriptor_free(&s->sort);
    free(s);
}

static void *graphblas_open(const peer_csr *A, const peer_csr *B, int threads)
{
    state *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    if (!users++ && GrB_init(GrB_NONBLOCKING)) goto fail;
    if (GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, threads)) goto fail;
    if (!(s->A = take(A))) goto fail;
    if (!(s->B = B == A ? s->A : take(B))) goto fail;
    if (GrB_Descriptor_new(&s->sort) || GxB_Desc_set(s->sort, GxB_SORT, 1)) goto fail;
    s->rows = (GrB_Index)A->rows;
    s->cols = (GrB_Index)B->cols;
    return s;
fail:
    graphblas_close(s);
    return NULL;
}

static GrB_Info product(const state *s, int way, GrB_Matrix *C)
{
    GrB_Info info = GrB_Matrix_new(C, GrB_FP64, s->rows, s->cols);
    if (!info) info = GxB_Matrix_Option_set(*C, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    if (!info) info = GrB_mxm(*C, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP64, s->A, s->B,
                              way == 1 ? s->sort : NULL);
    if (!info) info = GrB_Matrix_wait(*C, GrB_MATERIALIZE);
    return info;
}

static double graphblas_multiply(void *self, int way)
{
    GrB_Matrix C = NULL;
    double start = peer_now();
    GrB_Info info = product(self, way, &C);
    double seconds = peer_now() - start;
    GrB_Matrix_free(&C);
    return info ? -1 : seconds;
}

static int graphblas_fetch(void *self, int way, peer_result *R)
{
    GrB_Matrix C = NULL;
    GrB_Type type;
    GrB_Index rows, cols, ptr_bytes, idx_bytes, val_bytes, *ptr = NULL, *idx = NULL;
    double *val = NULL;
    bool iso = false, jumbled = true;
    int rc = -1;
    if (product(self, way, &C)) goto done;
    if (GxB_Matrix_export_CSR(&C, &type, &rows, &cols, &ptr, &idx, (void **)&val, &ptr_bytes, &idx_bytes,
                              &val_bytes, &iso, &jumbled, NULL))
        goto done;
    if (peer_result_create((int64_t)rows, (int64_t)ptr[rows], R)) goto done;
    for (GrB_Index i = 0; i <= rows; i++) R->ptr[i] = (int64_t)ptr[i];
    for (int64_t k = 0; k < R->nnz; k++) {
        R->idx[k] = (int32_t)idx[k];
        R->val[k] = val[iso ? 0 : k];
    }
    peer_result_finish(R);
    if (jumbled) R->sorted = 0;
    rc = 0;
done:
    GrB_Matrix_free(&C);
    free(ptr);
    free(idx);
    free(val);
    return rc;
}

const peer peer_graphblas = {
    .name = "GraphBLAS", .ways = 2, .way = {"wait", "sort"},
    .open = graphblas_open, .multiply = graphblas_multiply,
    .fetch = graphblas_fetch, .close = graphblas_close,
};
