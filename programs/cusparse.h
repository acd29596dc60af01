/* SPDX-License-Identifier: MIT
 *
 * cusparse.h - the same product by cuSPARSE, timed beside ours.  Needs nothing of CUDA to build: cuSPARSE
 * and the CUDA runtime are opened where they are installed ($TULLE_LIBCUSPARSE and $TULLE_LIBCUDART name
 * others). */
#ifndef TULLE_CUSPARSE_H
#define TULLE_CUSPARSE_H
#include <stdbool.h>
#include "tulle.h"

enum { CUSPARSE_ALGORITHMS = 4 };

typedef struct cusparse_line {
    const char *name;                   /* "DEFAULT", "ALG1", "ALG2", "ALG3"           */
    double      ms;                     /* median; 0: it failed                        */
    double      best_ms;
    int64_t     c_nnz;
    uint64_t    buffer_bytes;           /* work buffers, all of a product together     */
    char        why[192];               /* it failed; empty: it worked                 */
} cusparse_line;

typedef struct cusparse_result {
    char          version[32];          /* "cuSPARSE 12.6.3"                           */
    cusparse_line line[CUSPARSE_ALGORITHMS];
    int           best;                 /* the fastest line; -1: none worked           */
    char          why[256];             /* nothing was compared; empty: it was         */
} cusparse_result;

/* C = A*B with every algorithm of cusparseSpGEMM; A and B lie on CUDA device number `device` (place
 * TULLE_DEVICE), f32 or f64, 32-bit indices.  Timed with the device idle before and after: work buffers
 * and C's arrays allocated, all steps, buffers freed; C itself is freed outside.  Each algorithm runs
 * `warm` times uncounted, then `runs` times.  0: at least one worked. */
int cusparse_time(const tulle_csr *A, const tulle_csr *B, int device, int warm, int runs,
                  cusparse_result *out);

/* Functions of one of the two libraries by name, each to its place in a table of pointers; false: why says
 * what is missing.  A library stays open until the process ends. */
typedef enum cusparse_library { CUSPARSE_ITSELF, CUSPARSE_CUDART } cusparse_library;
typedef struct cusparse_entry { const char *name; size_t offset; } cusparse_entry;
bool cusparse_functions(cusparse_library which, const cusparse_entry *entries, int count, void *table,
                        char *why, size_t bytes);

/* result, name, arguments: those of the runtime that both kinds of product need. */
#define CUDART_FUNCTIONS(X)                                                                         \
    X(int, cudaSetDevice, (int device))                                                             \
    X(int, cudaMalloc, (void **, size_t bytes))                                                     \
    X(int, cudaFree, (void *))                                                                      \
    X(int, cudaDeviceSynchronize, (void))                                                           \
    X(int, cudaGetLastError, (void))                                                                \
    X(const char *, cudaGetErrorString, (int error))
#define CUSPARSE_MEMBER(result, name, arguments) result (*name) arguments;
#define CUSPARSE_ENTRY(result, name, arguments)  {#name, offsetof(api, name)},
/* A struct `api` of all functions of a list and of the runtime, and where in it each belongs. */
#define CUSPARSE_TABLES(functions)                                                                  \
    typedef struct api { functions(CUSPARSE_MEMBER) CUDART_FUNCTIONS(CUSPARSE_MEMBER) } api;        \
    static const cusparse_entry cusparse_entries[] = {functions(CUSPARSE_ENTRY)};                   \
    static const cusparse_entry cudart_entries[] = {CUDART_FUNCTIONS(CUSPARSE_ENTRY)};

#endif
