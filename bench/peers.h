/* SPDX-License-Identifier: MIT
 *
 * peers.h - the libraries tulle is measured against, behind one small table each.
 *
 * A peer takes plain CSR arrays (32-bit indices, double), keeps them in its own form (not timed), and
 * multiplies as often as asked.  Where a library offers more than one way to a product with sorted rows,
 * each is a `way`, and the harness times the faster one: a peer is met at its best. */
#ifndef TULLE_PEERS_H
#define TULLE_PEERS_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peer_csr {
    int64_t        rows, cols;
    const int32_t *ptr, *idx;
    const double  *val;
} peer_csr;

/* A product as plain arrays, from malloc; free with peer_result_free. */
typedef struct peer_result {
    int64_t  rows, nnz;
    int64_t *ptr;
    int32_t *idx;
    double  *val;
    int      sorted;            /* columns increase strictly in every row, as the library left them */
} peer_result;

typedef struct peer {
    const char *name;
    int         ways;
    const char *way[4];
    /* A and B (may be the same) in the library's own form; NULL when it cannot. */
    void  *(*open)(const peer_csr *A, const peer_csr *B, int threads);
    /* One product, from nothing to sorted rows, then thrown away (the throwing away is not timed).
     * Seconds, or a negative number when the library failed. */
    double (*multiply)(void *self, int way);
    /* One product copied out; 0, or -1 when the library failed. */
    int    (*fetch)(void *self, int way, peer_result *C);
    void   (*close)(void *self);
} peer;

extern const peer peer_graphblas, peer_eigen;

/* Y = A*X, X and Y without gaps; double or float, by_cols: column by column. */
typedef struct peer_spmm {
    int64_t        rows, cols, n;
    const int32_t *ptr, *idx;
    const void    *val;
    void          *x, *y;
    int            is_double, by_cols, threads;
} peer_spmm;

double peer_eigen_spmm(const peer_spmm *p);             /* seconds */
int    peer_eigen_threads(void);                        /* 1 where Eigen was built without OpenMP */

double peer_now(void);                                  /* seconds, monotonic; peers.c */
void   peer_use_cpu_time(void);                         /* from now on, of all threads together */
void   peer_sort(double *v, int n);                     /* the smallest first */
int    peer_result_create(int64_t rows, int64_t nnz, peer_result *C);
void   peer_result_finish(peer_result *C);              /* fills `sorted` */
void   peer_result_free(peer_result *C);

#ifdef __cplusplus
}
#endif
#endif
