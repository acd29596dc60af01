/* SPDX-License-Identifier: MIT
 *
 * peer_eigen_dense.cpp - Eigen's sparse times dense, Y = A*X with A row-major, for bench_spmm.c.  It uses
 * several threads if the compiler supports OpenMP.  Row-major and column-major X and Y are both tried, because
 * Eigen has different loops for them, and the faster counts. */
#include <Eigen/SparseCore>
#if defined(_OPENMP)
#include <omp.h>
#endif
#include "peers.h"

namespace {

template <typename T> using sparse = Eigen::Map<const Eigen::SparseMatrix<T, Eigen::RowMajor, int>>;
template <typename T, int order> using dense = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, order>>;

template <typename T, int order> double run(const peer_spmm *p)
{
    sparse<T> A(p->rows, p->cols, p->ptr[p->rows], p->ptr, p->idx, static_cast<const T *>(p->val));
    dense<T, order> X(static_cast<T *>(p->x), p->cols, p->n), Y(static_cast<T *>(p->y), p->rows, p->n);
    double start = peer_now();
    Y.noalias() = A * X;
    return peer_now() - start;
}

/* One column: Eigen has special code for vectors, which it selects by the type at compile time. */
template <typename T> double run_vector(const peer_spmm *p)
{
    typedef Eigen::Matrix<T, Eigen::Dynamic, 1> vector;
    sparse<T> A(p->rows, p->cols, p->ptr[p->rows], p->ptr, p->idx, static_cast<const T *>(p->val));
    Eigen::Map<vector> x(static_cast<T *>(p->x), p->cols), y(static_cast<T *>(p->y), p->rows);
    double start = peer_now();
    y.noalias() = A * x;
    return peer_now() - start;
}

template <typename T> double run_any(const peer_spmm *p)
{
    if (p->n == 1) return run_vector<T>(p);
    return p->by_cols ? run<T, Eigen::ColMajor>(p) : run<T, Eigen::RowMajor>(p);
}

} // namespace

extern "C" double peer_eigen_spmm(const peer_spmm *p)
{
    Eigen::setNbThreads(p->threads);
    return p->is_double ? run_any<double>(p) : run_any<float>(p);
}

extern "C" int peer_eigen_threads(void)
{
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1;
#endif
}
