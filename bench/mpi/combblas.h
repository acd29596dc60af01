/* SPDX-License-Identifier: MIT
 * combblas.h - CombBLAS as a peer of bench_mpi.c (combblas.cpp). */
#ifndef BENCH_COMBBLAS_H
#define BENCH_COMBBLAS_H
#include <mpi.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct comb_matrix comb_matrix;
#if defined(BENCH_HAVE_COMBBLAS)
/* Why CombBLAS does not take part; NULL if it does. */
const char  *comb_absent(int ranks);
/* Every rank passes the whole matrix, and keeps its block of the grid. */
comb_matrix *comb_load(MPI_Comm comm, int32_t rows, int32_t cols, const int32_t *row_ptr,
                       const int32_t *col_idx, const double *values);
comb_matrix *comb_multiply(comb_matrix *A, comb_matrix *B);     /* A*B; B must not be A, but may be a copy */
comb_matrix *comb_ptap(comb_matrix *A, comb_matrix *P);         /* P^T*A*P */
/* The number of entries on all ranks, and the sum of their values. */
void         comb_look(comb_matrix *A, int64_t *nnz, double *sum);
void         comb_free(comb_matrix *A);
#else
static inline const char *comb_absent(int ranks)
{
    (void)ranks;
    return "it was not found or does not build here (libcombblas-dev)";
}
/* Never called then. */
#define comb_load(comm, rows, cols, row_ptr, col_idx, values) ((comb_matrix *)0)
#define comb_multiply(A, B) ((comb_matrix *)0)
#define comb_ptap(A, P) ((comb_matrix *)0)
#define comb_look(A, nnz, sum) ((void)(A), (void)(nnz), (void)(sum))
#define comb_free(A) ((void)(A))
#endif

#ifdef __cplusplus
}
#endif
#endif
