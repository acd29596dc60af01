/* SPDX-License-Identifier: MIT
 *
 * combblas.cpp - products by CombBLAS behind a C interface.  It is a library of C++ templates, so this is the
 * only C++ file of bench_mpi.
 *
 * Products are computed by its PSpGEMM(): SUMMA with broadcasts, local products column by column, and a merge
 * of the results of all stages.  Indices have 32 bits, as for the other libraries here.  It only supports
 * square numbers of ranks.  It is built without OpenMP, because every library has one thread per rank.  It
 * has no P^T*A*P: P is transposed, and two products are computed. */
#include "combblas.h"

#include <CombBLAS/CombBLAS.h>
#include <algorithm>

/* Its headers declare these, and the program must define them. */
int cblas_splits = 1;
double cblas_alltoalltime, cblas_allgathertime, cblas_localspmvtime, cblas_mergeconttime, cblas_transvectime;
double mcl_Abcasttime, mcl_Bbcasttime, mcl_localspgemmtime, mcl_multiwaymergetime, mcl_kselecttime;
double mcl_prunecolumntime;

typedef combblas::SpDCCols<int32_t, double> comb_block;
typedef combblas::SpParMat<int32_t, double, comb_block> comb_spread;
typedef std::tuple<int32_t, int32_t, double> entry;
typedef combblas::PlusTimesSRing<double, double> plus_times;

struct comb_matrix { comb_spread m; };         /* constructed in place, so that a product is not copied */

const char *comb_absent(int ranks)
{
    int side = 1;
    while (side * side < ranks) side++;
    return side * side == ranks ? nullptr : "it takes square numbers of ranks alone (1, 4, 9, 16)";
}

/* The beginning of part k of q of n rows or columns; the last part has the remainder, as CombBLAS requires. */
static int32_t cut(int32_t n, int q, int k)
{
    return k == q ? n : n / q * k;
}

comb_matrix *comb_load(MPI_Comm comm, int32_t rows, int32_t cols, const int32_t *row_ptr,
                       const int32_t *col_idx, const double *values)
{
    std::shared_ptr<combblas::CommGrid> grid(new combblas::CommGrid(comm, 0, 0));
    int q = grid->GetGridRows(), i = grid->GetRankInProcCol(), j = grid->GetRankInProcRow();
    int32_t row0 = cut(rows, q, i), row1 = cut(rows, q, i + 1);
    int32_t col0 = cut(cols, q, j), col1 = cut(cols, q, j + 1);
    std::vector<entry> mine;
    for (int32_t r = row0; r < row1; r++)
        for (int32_t k = row_ptr[r]; k < row_ptr[r + 1]; k++)
            if (col_idx[k] >= col0 && col_idx[k] < col1)
                mine.emplace_back(r - row0, col_idx[k] - col0, values[k]);
    std::stable_sort(mine.begin(), mine.end(), [](const entry &a, const entry &b)
                     { return std::get<1>(a) < std::get<1>(b); });
    comb_block *block = new comb_block(row1 - row0, col1 - col0, (int32_t)mine.size(), mine.data(), false);
    return new comb_matrix{comb_spread(block, grid)};
}

comb_matrix *comb_multiply(comb_matrix *A, comb_matrix *B)
{
    return new comb_matrix{combblas::PSpGEMM<plus_times>(A->m, B->m)};
}

comb_matrix *comb_ptap(comb_matrix *A, comb_matrix *P)
{
    comb_spread turned(P->m);
    turned.Transpose();
    comb_spread ap = combblas::PSpGEMM<plus_times>(A->m, P->m);
    return new comb_matrix{combblas::PSpGEMM<plus_times>(turned, ap)};
}

void comb_look(comb_matrix *A, int64_t *nnz, double *sum)
{
    double mine = 0;
    for (auto c = A->m.seq().begcol(); c != A->m.seq().endcol(); ++c)
        for (auto k = A->m.seq().begnz(c); k != A->m.seq().endnz(c); ++k) mine += k.value();
    MPI_Allreduce(&mine, sum, 1, MPI_DOUBLE, MPI_SUM, A->m.getcommgrid()->GetWorld());
    *nnz = A->m.getnnz();
}

void comb_free(comb_matrix *A)
{
    delete A;
}
