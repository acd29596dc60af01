/* SPDX-License-Identifier: MIT
 *
 * cusparse.c - cuSPARSE's SpGEMM, as its manual calls it, for comparison.
 *
 *     workEstimation  returns the size of a first buffer, then analyses A and B
 *     estimateMemory  ALG2 and ALG3 only: needs a third buffer, and returns the size of the second one
 *     compute         computes the product in the second buffer (DEFAULT and ALG1 return its size here)
 *     copy            copies from there to C's arrays, whose size is known now
 *
 * Any step may fail for lack of memory; that is recorded, and the next algorithm is tried.  The declarations
 * are repeated here, and were checked against those of CUDA 13 (cuSPARSE 12.6). */
#define _GNU_SOURCE
#include "cusparse.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct cusparseContext     *cusparseHandle_t;
typedef struct cusparseSpMatDescr  *cusparseSpMatDescr_t;
typedef struct cusparseSpGEMMDescr *cusparseSpGEMMDescr_t;

enum {
    CUSPARSE_STATUS_SUCCESS = 0,
    CUSPARSE_OPERATION_NON_TRANSPOSE = 0, CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_32I = 2,
    CUSPARSE_SPGEMM_DEFAULT = 0, CUSPARSE_SPGEMM_ALG1 = 3, CUSPARSE_SPGEMM_ALG2 = 4, CUSPARSE_SPGEMM_ALG3 = 5,
    CUDA_R_32F = 0, CUDA_R_64F = 1,
    cudaSuccess = 0
};

/* result, name, arguments; the arguments that all steps of a product share */
#define PRODUCT cusparseHandle_t, int op_a, int op_b, const void *alpha, cusparseSpMatDescr_t A, \
                cusparseSpMatDescr_t B, const void *beta, cusparseSpMatDescr_t C, int type, int algorithm, \
                cusparseSpGEMMDescr_t
#define CUSPARSE_FUNCTIONS(X)                                                                       \
    X(int, cusparseCreate, (cusparseHandle_t *))                                                    \
    X(int, cusparseDestroy, (cusparseHandle_t))                                                     \
    X(int, cusparseGetVersion, (cusparseHandle_t, int *version))                                    \
    X(const char *, cusparseGetErrorString, (int status))                                           \
    X(int, cusparseCreateCsr, (cusparseSpMatDescr_t *, int64_t rows, int64_t cols, int64_t nnz,     \
                               void *row_ptr, void *col_idx, void *values, int ptr_type, int idx_type, \
                               int base, int type))                                                 \
    X(int, cusparseDestroySpMat, (cusparseSpMatDescr_t))                                            \
    X(int, cusparseSpMatGetSize, (cusparseSpMatDescr_t, int64_t *rows, int64_t *cols, int64_t *nnz))\
    X(int, cusparseCsrSetPointers, (cusparseSpMatDescr_t, void *row_ptr, void *col_idx, void *values)) \
    X(int, cusparseSpGEMM_createDescr, (cusparseSpGEMMDescr_t *))                                   \
    X(int, cusparseSpGEMM_destroyDescr, (cusparseSpGEMMDescr_t))                                    \
    X(int, cusparseSpGEMM_workEstimation, (PRODUCT, size_t *bytes, void *buffer))                   \
    X(int, cusparseSpGEMM_estimateMemory, (PRODUCT, float chunk_fraction, size_t *bytes, void *buffer, \
                                           size_t *bytes_compute))                                  \
    X(int, cusparseSpGEMM_compute, (PRODUCT, size_t *bytes, void *buffer))                          \
    X(int, cusparseSpGEMM_copy, (PRODUCT))

CUSPARSE_TABLES(CUSPARSE_FUNCTIONS)

#define COUNT(list) ((int)(sizeof (list) / sizeof *(list)))

/* ALG3 computes its products in chunks; this is the fraction that the manual's example takes. */
static const float chunk_fraction = 0.2f;

static const struct { const char *name; int algorithm; bool estimates; } algorithms[CUSPARSE_ALGORITHMS] = {
    {"DEFAULT", CUSPARSE_SPGEMM_DEFAULT, false}, {"ALG1", CUSPARSE_SPGEMM_ALG1, false},
    {"ALG2", CUSPARSE_SPGEMM_ALG2, true}, {"ALG3", CUSPARSE_SPGEMM_ALG3, true}};

/* ---- the libraries; they stay open until the command ends */

bool cusparse_functions(cusparse_library which, const cusparse_entry *entries, int count, void *table,
                        char *why, size_t bytes)
{
    static const char *const cusparse[] = {"libcusparse.so.12", "libcusparse.so.13", "libcusparse.so", NULL};
    static const char *const cudart[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so", NULL};
    const char *const *names = which == CUSPARSE_ITSELF ? cusparse : cudart;
    const char *only = getenv(which == CUSPARSE_ITSELF ? "TULLE_LIBCUSPARSE" : "TULLE_LIBCUDART");
    const char *home = getenv("CUDA_HOME");
    const char *roots[] = {"", home ? home : "/usr/local/cuda", "/usr/local/cuda"};
    char path[1024];
    void *library = NULL;
    library = dlopen(only ? only : names[0], RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, bytes, "%s", dlerror());
    for (int r = 0; r < COUNT(roots) && !library && !only; r++)
        for (int n = 0; names[n] && !library; n++) {
            snprintf(path, sizeof path, "%s%s%s", roots[r], roots[r][0] ? "/lib64/" : "", names[n]);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    if (!library) return false;
    for (int i = 0; i < count; i++) {
        void *function = dlsym(library, entries[i].name);
        if (!function) {
            snprintf(why, bytes, "%s has no %s", only ? only : names[0], entries[i].name);
            return false;
        }
        memcpy((char *)table + entries[i].offset, &function, sizeof function);
    }
    why[0] = 0;
    return true;
}

static bool open_libraries(api *f, char *why, size_t bytes)
{
    return cusparse_functions(CUSPARSE_CUDART, cudart_entries, COUNT(cudart_entries), f, why, bytes)
        && cusparse_functions(CUSPARSE_ITSELF, cusparse_entries, COUNT(cusparse_entries), f, why, bytes);
}

/* ---- one product */

typedef struct product {
    const api            *f;
    cusparseHandle_t      handle;
    cusparseSpMatDescr_t  A, B, C;
    cusparseSpGEMMDescr_t work;
    int64_t               rows, cols;
    int                   type;                 /* CUDA_R_32F, CUDA_R_64F          */
    const void           *one, *zero;
    void                 *c_ptr, *c_col, *c_val;
    void                 *buffer[3];            /* of estimation, compute, estimate */
    uint64_t              buffer_bytes;
} product;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A call of cuSPARSE or of the CUDA runtime; the first that fails ends the run, and its error text is
 * kept. */
#define SPARSE(call)                                                                       \
    do {                                                                                   \
        int status_ = p->f->call;                                                          \
        if (status_ != CUSPARSE_STATUS_SUCCESS) {                                          \
            snprintf(why, bytes, "%.*s: %s (%d)", (int)strcspn(#call, "("), #call,         \
                     p->f->cusparseGetErrorString(status_), status_);                      \
            goto done;                                                                     \
        }                                                                                  \
    } while (0)
#define CUDA(call)                                                                         \
    do {                                                                                   \
        int error_ = p->f->call;                                                           \
        if (error_ != cudaSuccess) {                                                       \
            snprintf(why, bytes, "%.*s: %s (%d)", (int)strcspn(#call, "("), #call,         \
                     p->f->cudaGetErrorString(error_), error_);                            \
            goto done;                                                                     \
        }                                                                                  \
    } while (0)
#define STEPS p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, p->one, p->A,   \
              p->B, p->zero, p->C, p->type, algorithm, p->work

/* At least one byte: cudaMalloc returns NULL for none, which cuSPARSE takes as the question for the size. */
static int allocate(product *p, void **to, size_t bytes)
{
    *to = NULL;
    return p->f->cudaMalloc(to, bytes ? bytes : 1);
}

static int take_buffer(product *p, int which, size_t bytes)
{
    p->buffer_bytes += bytes;
    return allocate(p, &p->buffer[which], bytes);
}

#define ALLOCATE(call, size)                                                               \
    do {                                                                                   \
        int error_ = call;                                                                 \
        if (error_ != cudaSuccess) {                                                       \
            snprintf(why, bytes, "cudaMalloc of %zu bytes: %s (%d)", (size_t)(size),       \
                     p->f->cudaGetErrorString(error_), error_);                            \
            goto done;                                                                     \
        }                                                                                  \
    } while (0)

/* What the timing covers.  why stays empty when it worked; *nnz = entries of C. */
static void multiply(product *p, int algorithm, bool estimates, int64_t *nnz, char *why, size_t bytes)
{
    size_t value = p->type == CUDA_R_64F ? 8 : 4, need = 0, need_compute = 0;
    int64_t rows, cols;
    p->buffer_bytes = 0;
    ALLOCATE(allocate(p, &p->c_ptr, (size_t)(p->rows + 1) * 4), (size_t)(p->rows + 1) * 4);
    SPARSE(cusparseCreateCsr(&p->C, p->rows, p->cols, 0, p->c_ptr, NULL, NULL, CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type));
    SPARSE(cusparseSpGEMM_createDescr(&p->work));
    SPARSE(cusparseSpGEMM_workEstimation(STEPS, &need, NULL));
    ALLOCATE(take_buffer(p, 0, need), need);
    SPARSE(cusparseSpGEMM_workEstimation(STEPS, &need, p->buffer[0]));
    if (estimates) {
        need = 0;
        SPARSE(cusparseSpGEMM_estimateMemory(STEPS, chunk_fraction, &need, NULL, NULL));
        ALLOCATE(take_buffer(p, 2, need), need);
        SPARSE(cusparseSpGEMM_estimateMemory(STEPS, chunk_fraction, &need, p->buffer[2], &need_compute));
        CUDA(cudaFree(p->buffer[2]));
        p->buffer[2] = NULL;
    } else {
        SPARSE(cusparseSpGEMM_compute(STEPS, &need_compute, NULL));
    }
    ALLOCATE(take_buffer(p, 1, need_compute), need_compute);
    SPARSE(cusparseSpGEMM_compute(STEPS, &need_compute, p->buffer[1]));
    SPARSE(cusparseSpMatGetSize(p->C, &rows, &cols, nnz));
    ALLOCATE(allocate(p, &p->c_col, (size_t)*nnz * 4), (size_t)*nnz * 4);
    ALLOCATE(allocate(p, &p->c_val, (size_t)*nnz * value), (size_t)*nnz * value);
    SPARSE(cusparseCsrSetPointers(p->C, p->c_ptr, p->c_col, p->c_val));
    SPARSE(cusparseSpGEMM_copy(STEPS));
done:
    for (int i = 0; i < 3; i++) {
        if (p->buffer[i]) p->f->cudaFree(p->buffer[i]);
        p->buffer[i] = NULL;
    }
    if (p->work) p->f->cusparseSpGEMM_destroyDescr(p->work);
    p->work = NULL;
}

static void free_result(product *p)
{
    if (p->C) p->f->cusparseDestroySpMat(p->C);
    if (p->c_ptr) p->f->cudaFree(p->c_ptr);
    if (p->c_col) p->f->cudaFree(p->c_col);
    if (p->c_val) p->f->cudaFree(p->c_val);
    p->C = NULL;
    p->c_ptr = p->c_col = p->c_val = NULL;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void time_line(product *p, int k, int warm, int runs, double *ms, cusparse_line *line)
{
    char *why = line->why;
    size_t bytes = sizeof line->why;
    for (int i = -warm; i < runs && !why[0]; i++) {
        CUDA(cudaDeviceSynchronize());
        double begun = now();
        multiply(p, algorithms[k].algorithm, algorithms[k].estimates, &line->c_nnz, why, bytes);
        if (!why[0]) CUDA(cudaDeviceSynchronize());
        if (i >= 0) ms[i] = 1e3 * (now() - begun);
        line->buffer_bytes = p->buffer_bytes;
        free_result(p);
    }
    if (why[0]) goto done;
    qsort(ms, (size_t)runs, sizeof *ms, by_size);
    line->best_ms = ms[0];
    line->ms = runs % 2 ? ms[runs / 2] : 0.5 * (ms[runs / 2] + ms[runs / 2 - 1]);
done:
    free_result(p);
    p->f->cudaGetLastError();                   /* a refused allocation is not the next one's error */
}

/* ---- all algorithms */

static const char *refuse(const tulle_csr *A, const tulle_csr *B, int runs)
{
    if (A->place != TULLE_DEVICE || B->place != TULLE_DEVICE) return "the operands are not on the device";
    if (A->val_type != B->val_type || (A->val_type != TULLE_F32 && A->val_type != TULLE_F64))
        return "not compared: values are neither f32 nor f64";
    if (A->ptr_type != TULLE_I32 || A->idx_type != TULLE_I32 || B->ptr_type != TULLE_I32
        || B->idx_type != TULLE_I32)
        return "not compared: indices are not 32 bits";
    if (A->cols != B->rows) return "the shapes do not agree";
    return runs < 1 ? "no runs are asked for" : NULL;
}

static void *written(const void *p)             /* operands are not; the declarations are older than const */
{
    return (void *)(uintptr_t)p;
}

int cusparse_time(const tulle_csr *A, const tulle_csr *B, int device, int warm, int runs,
                  cusparse_result *out)
{
    static const double one64 = 1, zero64 = 0;
    static const float one32 = 1, zero32 = 0;
    api f;
    product whole = {.f = &f}, *p = &whole;
    char *why = out->why;
    size_t bytes = sizeof out->why;
    double *ms = NULL;
    int version = 0;
    *out = (cusparse_result){.best = -1};
    for (int k = 0; k < CUSPARSE_ALGORITHMS; k++) out->line[k].name = algorithms[k].name;
    const char *refused = refuse(A, B, runs);
    if (refused) {
        snprintf(why, bytes, "%s", refused);
        return -1;
    }
    if (!open_libraries(&f, why, bytes)) return -1;
    ms = calloc((size_t)runs, sizeof *ms);
    if (!ms) {
        snprintf(why, bytes, "too little memory for the times");
        return -1;
    }
    p->type = A->val_type == TULLE_F64 ? CUDA_R_64F : CUDA_R_32F;
    p->one = p->type == CUDA_R_64F ? (const void *)&one64 : &one32;
    p->zero = p->type == CUDA_R_64F ? (const void *)&zero64 : &zero32;
    p->rows = A->rows;
    p->cols = B->cols;
    CUDA(cudaSetDevice(device));
    SPARSE(cusparseCreate(&p->handle));
    if (f.cusparseGetVersion(p->handle, &version) == CUSPARSE_STATUS_SUCCESS)
        snprintf(out->version, sizeof out->version, "cuSPARSE %d.%d.%d", version / 1000, version / 100 % 10,
                 version % 100);
    SPARSE(cusparseCreateCsr(&p->A, A->rows, A->cols, A->nnz, written(A->row_ptr), written(A->col_idx),
                             written(A->values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_BASE_ZERO, p->type));
    SPARSE(cusparseCreateCsr(&p->B, B->rows, B->cols, B->nnz, written(B->row_ptr), written(B->col_idx),
                             written(B->values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_BASE_ZERO, p->type));
    for (int k = 0; k < CUSPARSE_ALGORITHMS; k++) {
        cusparse_line *line = &out->line[k];
        time_line(p, k, warm, runs, ms, line);
        if (!line->why[0] && (out->best < 0 || line->ms < out->line[out->best].ms)) out->best = k;
    }
    if (out->best < 0) snprintf(why, bytes, "no algorithm of cuSPARSE worked: %.190s", out->line[0].why);
done:
    if (p->A) f.cusparseDestroySpMat(p->A);
    if (p->B) f.cusparseDestroySpMat(p->B);
    if (p->handle) f.cusparseDestroy(p->handle);
    free(ms);
    return out->best >= 0 ? 0 : -1;
}
