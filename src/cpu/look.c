/* SPDX-License-Identifier: MIT
 *
 * look.c - analyses how A accesses X, from a sample of its rows (SpMM).
 *
 * A may not have been checked yet: row pointers and columns that are out of range are skipped. */
#include "cpu/spmm.h"
#include "matrix/parts.h"
#include <stdlib.h>

static int by_size(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* Whether the row pointers of rows row..end are within A's arrays. */
static bool within(const tulle_csr *A, int64_t row, int64_t end)
{
    int64_t first = tl_row_begin(A, row), stop = tl_row_begin(A, end);
    return 0 <= first && first <= stop && stop <= A->nnz;
}

/* ---- whether consecutive rows of A need the same rows of X */

/* Counts the entries of row i (*seen), and those near a column of row i - 1 (*found). */
static void compare_rows(const tulle_csr *A, int64_t i, int64_t *found, int64_t *seen)
{
    enum { NEAR = 2, MOST = 256 };
    int64_t k = tl_row_begin(A, i - 1), middle = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
    if (!within(A, i - 1, i) || !within(A, i, i + 1)) return;
    if (middle - k > MOST) k = middle - MOST;
    if (end - middle > MOST) end = middle + MOST;
    for (int64_t e = middle; e < end; e++) {
        int64_t c = tl_get(A->col_idx, A->idx_type, e);
        if (c < 0 || c >= A->cols) return;
        while (k < middle && tl_get(A->col_idx, A->idx_type, k) < c - NEAR) k++;
        *found += k < middle && tl_get(A->col_idx, A->idx_type, k) <= c + NEAR;
        ++*seen;
    }
}

bool tl_spmm_scattered(const tulle_csr *A)
{
    int64_t found = 0, seen = 0;
    for (int s = 0; s < TL_SPMM_SAMPLES && A->rows > TL_SPMM_SAMPLES; s++)
        compare_rows(A, 1 + tl_spmm_sample(A->rows - 1, s, TL_SPMM_SAMPLES), &found, &seen);
    return found * 2 < seen;
}

/* ---- whether some rows of X are needed far more often than others, as in graphs with hubs */

bool tl_spmm_skewed(const tulle_csr *A)
{
    enum { ENTRIES = 512 };
    int64_t col[ENTRIES], shared = 0;
    if (A->nnz < ENTRIES) return false;
    for (int s = 0; s < ENTRIES; s++)
        col[s] = tl_get(A->col_idx, A->idx_type, tl_spmm_sample(A->nnz, s, ENTRIES));
    qsort(col, ENTRIES, sizeof *col, by_size);
    for (int s = 0; s < ENTRIES; s++)
        shared += (s > 0 && col[s] == col[s - 1]) || (s + 1 < ENTRIES && col[s] == col[s + 1]);
    return shared > ENTRIES / 10 + ENTRIES * ENTRIES / A->cols;     /* the last term: expected by chance */
}

/* ---- how many rows of X a group of rows of A spans */

int64_t tl_spmm_window(const tulle_csr *A)
{
    const tl_spmm_kernels *k = tl_spmm_kernels_for(A->val_type, A->idx_type);
    const tl_spmm_job job = {.ptr = A->row_ptr, .col = A->col_idx, .ptr64 = A->ptr_type == TULLE_I64};
    int64_t groups = (A->rows + TL_SLIDE_ROWS - 1) / TL_SLIDE_ROWS,
            n = groups < TL_SPMM_SAMPLES ? groups : TL_SPMM_SAMPLES;
    int64_t reach[TL_SPMM_SAMPLES];
    for (int64_t s = 0; s < n; s++) {
        int64_t row = tl_spmm_sample(groups, (int)s, (int)n) * TL_SLIDE_ROWS, lo = 0, hi = 0,
                end = A->rows - row < TL_SLIDE_ROWS ? A->rows : row + TL_SLIDE_ROWS;
        if (within(A, row, end)) k->range(&job, row, end, &lo, &hi);
        reach[s] = lo < 0 || hi < lo || hi > A->cols ? A->cols : hi - lo;
    }
    if (n == 0) return 0;
    qsort(reach, (size_t)n, sizeof *reach, by_size);
    return reach[(n - 1) * 9 / 10];
}
