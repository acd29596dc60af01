/* SPDX-License-Identifier: MIT
 *
 * peers.h - the interface to the libraries that tulle is compared with: one small table of functions each.
 *
 * A peer takes plain CSR arrays (32-bit indices, double), converts them to its own format (not timed), and
 * multiplies as often as asked.  If a library has several ways to compute a product with sorted rows, each is
 * a `way`, and the fastest one counts. */
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
    int      sorted;            /* whether the library's result has strictly increasing columns */
} peer_result;

typedef struct peer {
    const char *name;
    int         ways;
    const char *way[4];
    /* Converts A and B (which may be the same) to the library's format; NULL on failure. */
    void  *(*open)(const peer_csr *A, const peer_csr *B, int threads);
    /* Computes one product with sorted rows, including its allocation, and frees it (which is not timed).
     * Returns the seconds; negative if the library failed. */
    double (*multiply)(void *self, int way);
    /* Computes one product and copies it; 0, or -1 if the library failed. */
    int    (*fetch)(void *self, int way, peer_result *C);
    void   (*close)(void *self);
} peer;

extern const peer peer_graphblas, peer_eigen;

/* Y = A*X, X and Y contiguous, in double or float; by_cols: column-major. */
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
void   peer_use_cpu_time(void);                         /* from now on: CPU time of all threads */
void   peer_sort(double *v, int n);                     /* ascending */
int    peer_result_create(int64_t rows, int64_t nnz, peer_result *C);
void   peer_result_finish(peer_result *C);              /* fills `sorted` */
void   peer_result_free(peer_result *C);

#ifdef __cplusplus
}
#endif
#endif
