/* SPDX-License-Identifier: MIT
 *
 * oracle_eigen.cpp - tulle against Eigen's sparse product, which keeps structural zeros and adds the
 * products of an entry in the order of the row of A: tulle's order, so reals are compared bit for bit. */
#include <Eigen/SparseCore>
#include <complex>
#include "oracle.h"

namespace {

template <typename Value, typename Index>
const char *multiply(const tulle_csr *A, const tulle_csr *B, oracle_csr *R)
{
    typedef Eigen::SparseMatrix<Value, Eigen::RowMajor, Index> matrix;
    auto view = [](const tulle_csr *M) {
        return Eigen::Map<const matrix>(M->rows, M->cols, M->nnz, static_cast<const Index *>(M->row_ptr),
                                        static_cast<const Index *>(M->col_idx),
                                        static_cast<const Value *>(M->values));
    };
    matrix C = view(A) * view(B);
    C.makeCompressed();
    if (!oracle_create(C.rows(), C.nonZeros(), A->val_type, R)) return "out of memory";
    std::copy(C.outerIndexPtr(), C.outerIndexPtr() + C.rows() + 1, R->ptr);
    std::copy(C.innerIndexPtr(), C.innerIndexPtr() + R->nnz, R->idx);
    std::copy(C.valuePtr(), C.valuePtr() + R->nnz, static_cast<Value *>(R->val));
    return nullptr;
}

template <typename Value>
const char *multiply_by_index(const tulle_csr *A, const tulle_csr *B, oracle_csr *R)
{
    return A->idx_type == TULLE_I32 ? multiply<Value, int32_t>(A, B, R) : multiply<Value, int64_t>(A, B, R);
}

const char *product(const tulle_csr *A, const tulle_csr *B, oracle_csr *R)
{
    try {
        switch (A->val_type) {
        case TULLE_F32: return multiply_by_index<float>(A, B, R);
        case TULLE_F64: return multiply_by_index<double>(A, B, R);
        case TULLE_CF32: return multiply_by_index<std::complex<float>>(A, B, R);
        case TULLE_CF64: return multiply_by_index<std::complex<double>>(A, B, R);
        }
        return "a type Eigen was not asked about";
    } catch (const std::bad_alloc &) {
        return "out of memory";
    }
}

} // namespace

ORACLE_MAIN("Eigen", product, true)
