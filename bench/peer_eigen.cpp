/* SPDX-License-Identifier: MIT
 *
 * peer_eigen.cpp - Eigen's sparse product.  It uses one thread; Eigen has no parallel one.  It keeps entries
 * that are computed as zero (only .pruned() drops them).
 *
 * A row-major product is computed with unsorted rows, which are then sorted by transposing C twice.  The other
 * variant assigns the product of column-major copies to a row-major C, which transposes C only once; the time
 * then includes converting the operands, which are given as CSR. */
#include <Eigen/SparseCore>
#include <new>
#include "peers.h"

namespace {

typedef Eigen::SparseMatrix<double, Eigen::RowMajor, int> by_row;
typedef Eigen::SparseMatrix<double, Eigen::ColMajor, int> by_col;

struct state {
    by_row A, B;
    bool   same;
};

by_row take(const peer_csr *M)
{
    return Eigen::Map<const by_row>(M->rows, M->cols, M->ptr[M->rows], M->ptr, M->idx, M->val);
}

void product(const state *s, int way, by_row &C)
{
    if (way == 0) {
        C = s->A * (s->same ? s->A : s->B);
        return;
    }
    by_col A = s->A;
    if (s->same) C = A * A;
    else C = A * by_col(s->B);
}

void *eigen_open(const peer_csr *A, const peer_csr *B, int)
{
    state *s = new (std::nothrow) state;
    if (!s) return nullptr;
    try {
        s->same = A == B;
        s->A = take(A);
        if (!s->same) s->B = take(B);
    } catch (const std::bad_alloc &) {
        delete s;
        s = nullptr;
    }
    return s;
}

double eigen_multiply(void *self, int way)
{
    try {
        by_row C;
        double start = peer_now();
        product(static_cast<state *>(self), way, C);
        return peer_now() - start;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

int eigen_fetch(void *self, int way, peer_result *R)
{
    try {
        by_row C;
        product(static_cast<state *>(self), way, C);
        C.makeCompressed();
        if (peer_result_create(C.rows(), C.nonZeros(), R)) return -1;
        std::copy(C.outerIndexPtr(), C.outerIndexPtr() + C.rows() + 1, R->ptr);
        std::copy(C.innerIndexPtr(), C.innerIndexPtr() + R->nnz, R->idx);
        std::copy(C.valuePtr(), C.valuePtr() + R->nnz, R->val);
        peer_result_finish(R);
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

void eigen_close(void *self)
{
    delete static_cast<state *>(self);
}

} // namespace

extern "C" const peer peer_eigen = {
    "Eigen", 2, {"rows", "columns", nullptr, nullptr}, eigen_open, eigen_multiply, eigen_fetch, eigen_close,
};
