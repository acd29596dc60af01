/* SPDX-License-Identifier: MIT
 *
 * cusparse_spmm.c - cusparseSpMM for comparison: the buffer is allocated and the matrix preprocessed
 * beforehand, so that a run consists only of its kernels.  The declarations are our own, and were compared
 * with those of CUDA 13 (cuSPARSE 12.6). */
#define _GNU_SOURCE
#include "cusparse_spmm.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cusparse.h"

enum {
    CUSPARSE_OPERATION_NON_TRANSPOSE = 0, CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_32I = 2,
    CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2,
    CUSPARSE_SPMM_ALG_DEFAULT = 0, CUSPARSE_SPMM_CSR_ALG1 = 4, CUSPARSE_SPMM_CSR_ALG2 = 6,
    CUSPARSE_SPMM_CSR_ALG3 = 12, CUDA_R_32F = 0, CUDA_R_64F = 1
};

typedef struct cusparseContext    *cusparseHandle_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;

#define PRODUCT cusparseHandle_t, int op_a, int op_b, const void *alpha, cusparseSpMatDescr_t A,     \
                cusparseDnMatDescr_t X, const void *beta, cusparseDnMatDescr_t Y, int type, int algorithm
#define CUSPARSE_FUNCTIONS(X)                                                                       \
    X(int, cusparseCreate, (cusparseHandle_t *))                                                    \
    X(int, cusparseDestroy, (cusparseHandle_t))                                                     \
    X(int, cusparseSetStream, (cusparseHandle_t, void *stream))                                     \
    X(const char *, cusparseGetErrorString, (int status))                                           \
    X(int, cusparseCreateCsr, (cusparseSpMatDescr_t *, int64_t rows, int64_t cols, int64_t nnz,     \
                               void *row_ptr, void *col_idx, void *values, int ptr_type, int idx_type, \
                               int base, int type))                                                 \
    X(int, cusparseDestroySpMat, (cusparseSpMatDescr_t))                                            \
    X(int, cusparseCreateDnMat, (cusparseDnMatDescr_t *, int64_t rows, int64_t cols, int64_t ld,    \
                                 void *values, int type, int order))                                \
    X(int, cusparseDestroyDnMat, (cusparseDnMatDescr_t))                                            \
    X(int, cusparseSpMM_bufferSize, (PRODUCT, size_t *bytes))                                       \
    X(int, cusparseSpMM_preprocess, (PRODUCT, void *buffer))                                        \
    X(int, cusparseSpMM, (PRODUCT, void *buffer))

CUSPARSE_TABLES(CUSPARSE_FUNCTIONS)

#define COUNT(list) ((int)(sizeof (list) / sizeof *(list)))

static const struct { const char *name; int algorithm; } ways[CUSPARSE_SPMM_WAYS] = {
    {"DEFAULT", CUSPARSE_SPMM_ALG_DEFAULT}, {"ALG1", CUSPARSE_SPMM_CSR_ALG1},
    {"ALG2", CUSPARSE_SPMM_CSR_ALG2}, {"ALG3", CUSPARSE_SPMM_CSR_ALG3}};

struct cusparse_spmm {
    api                  f;
    cusparseHandle_t     handle;
    cusparseSpMatDescr_t A;
    cusparseDnMatDescr_t X, Y;
    void                *buffer;
    int                  type, algorithm;
    double               one64, zero64;
    float                one32, zero32;
    const void          *one, *zero;
};

#define SPARSE(call)                                                                       \
    do {                                                                                   \
        int status_ = p->f.call;                                                           \
        if (status_ != 0) {                                                                \
            snprintf(why, bytes, "%.*s: %s (%d)", (int)strcspn(#call, "("), #call,         \
                     p->f.cusparseGetErrorString(status_), status_);                       \
            goto failed;                                                                   \
        }                                                                                  \
    } while (0)
#define CUDA(call)                                                                         \
    do {                                                                                   \
        int error_ = p->f.call;                                                            \
        if (error_ != 0) {                                                                 \
            snprintf(why, bytes, "%.*s: %s (%d)", (int)strcspn(#call, "("), #call,         \
                     p->f.cudaGetErrorString(error_), error_);                             \
            goto failed;                                                                   \
        }                                                                                  \
    } while (0)
#define STEP p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, p->one, p->A, \
             p->X, p->zero, p->Y, p->type, p->algorithm

static void *written(const void *p)             /* operands are only read, but the declarations lack const */
{
    return (void *)(uintptr_t)p;
}

const char *cusparse_spmm_name(int way)
{
    return ways[way].name;
}

static const char *refuse(const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y)
{
    if (A->place != TULLE_DEVICE || X->place != TULLE_DEVICE || Y->place != TULLE_DEVICE)
        return "not all is on the device";
    if (A->val_type != TULLE_F32 && A->val_type != TULLE_F64)
        return "not compared: values are neither f32 nor f64";
    if (A->ptr_type != TULLE_I32 || A->idx_type != TULLE_I32) return "not compared: indices are not 32 bits";
    return X->order != Y->order ? "not compared: X and Y lie in different orders" : NULL;
}

cusparse_spmm *cusparse_spmm_open(const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y, int device,
                                  void *stream, int way, char *why, size_t bytes)
{
    const char *refused = refuse(A, X, Y);
    int order = X->order == TULLE_BY_ROWS ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
    size_t need = 0;
    cusparse_spmm *p = calloc(1, sizeof *p);
    if (!p || refused) {
        snprintf(why, bytes, "%s", refused ? refused : "no memory");
        free(p);
        return NULL;
    }
    if (!cusparse_functions(CUSPARSE_CUDART, cudart_entries, COUNT(cudart_entries), &p->f, why, bytes)
        || !cusparse_functions(CUSPARSE_ITSELF, cusparse_entries, COUNT(cusparse_entries), &p->f, why,
                               bytes)) {
        free(p);
        return NULL;
    }
    p->one64 = p->one32 = 1;
    p->type = A->val_type == TULLE_F64 ? CUDA_R_64F : CUDA_R_32F;
    p->one = p->type == CUDA_R_64F ? (const void *)&p->one64 : &p->one32;
    p->zero = p->type == CUDA_R_64F ? (const void *)&p->zero64 : &p->zero32;
    p->algorithm = ways[way].algorithm;
    CUDA(cudaSetDevice(device));
    SPARSE(cusparseCreate(&p->handle));
    SPARSE(cusparseSetStream(p->handle, stream));
    SPARSE(cusparseCreateCsr(&p->A, A->rows, A->cols, A->nnz, written(A->row_ptr), written(A->col_idx),
                             written(A->values),
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type));
    SPARSE(cusparseCreateDnMat(&p->X, X->rows, X->cols, X->ld, X->values, p->type, order));
    SPARSE(cusparseCreateDnMat(&p->Y, Y->rows, Y->cols, Y->ld, Y->values, p->type, order));
    SPARSE(cusparseSpMM_bufferSize(STEP, &need));
    CUDA(cudaMalloc(&p->buffer, need ? need : 1));
    SPARSE(cusparseSpMM_preprocess(STEP, p->buffer));
    SPARSE(cusparseSpMM(STEP, p->buffer));              /* a warm-up, which does what is needed only once */
    CUDA(cudaDeviceSynchronize());
    why[0] = 0;
    return p;
failed:
    cusparse_spmm_close(p);
    return NULL;
}

bool cusparse_spmm_run(void *spmm)
{
    cusparse_spmm *p = spmm;
    return p->f.cusparseSpMM(STEP, p->buffer) == 0;
}

void cusparse_spmm_close(cusparse_spmm *p)
{
    if (!p) return;
    p->f.cudaDeviceSynchronize();
    if (p->buffer) p->f.cudaFree(p->buffer);
    if (p->X) p->f.cusparseDestroyDnMat(p->X);
    if (p->Y) p->f.cusparseDestroyDnMat(p->Y);
    if (p->A) p->f.cusparseDestroySpMat(p->A);
    if (p->handle) p->f.cusparseDestroy(p->handle);
    p->f.cudaGetLastError();                    /* clears the error of a failed allocation */
    free(p);
}
