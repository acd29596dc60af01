/* SPDX-License-Identifier: MIT
 *
 * slide.c - X a little ahead of the rows of A that need it, copied so that some of its columns lie side by side.
 *
 * Rows of a banded matrix, a stencil, a mesh that follow each other need nearly the same rows of X.  Where those are
 * long, what 27 of them hold fills a core's first cache, and if they are a power of 2 apart, a part of each does so, too:
 * they find room in few of its sets only.  Copied in blocks of columns they stay; but a copy of all of X has to go out
 * to memory and come back.  So a thread goes through its rows in groups and copies what comes into sight: the copy of a
 * group's window is made in a cache and is used up there.
 *
 * The copy is a stretch of rows of X, base..end, that grows at its end; where there is no more room it begins anew with
 * what the group at hand needs.  Thus an entry finds its row where it would in X, with other numbers for x and ld. */
#include "cpu/spmm.h"
#include "matrix/parts.h"
#include <stdlib.h>

static int by_size(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

int64_t tl_slide_window(const tulle_csr *A)
{
    const tl_spmm_kernels *k = tl_spmm_kernels_for(A->val_type, A->idx_type);
    const tl_spmm_job job = {.ptr = A->row_ptr, .col = A->col_idx, .ptr64 = A->ptr_type == TULLE_I64};
    int64_t groups = (A->rows + TL_SLIDE_ROWS - 1) / TL_SLIDE_ROWS, n = groups < TL_SPMM_SAMPLES ? groups : TL_SPMM_SAMPLES;
    int64_t reach[TL_SPMM_SAMPLES];
    for (int64_t s = 0; s < n; s++) {
        int64_t row = tl_spmm_sample(groups, (int)s, (int)n) * TL_SLIDE_ROWS, lo, hi;
        k->range(&job, row, A->rows - row < TL_SLIDE_ROWS ? A->rows : row + TL_SLIDE_ROWS, &lo, &hi);
        reach[s] = hi - lo;
    }
    if (n == 0) return 0;
    qsort(reach, (size_t)n, sizeof *reach, by_size);
    return reach[(n - 1) * 9 / 10];
}

bool tl_slide_to(tl_slide *s, int64_t lo, int64_t hi, tl_spmm_job *job)
{
    int64_t size = (int64_t)tl_type_size(s->X->val_type);
    if (hi - lo > s->room) return false;
    if (lo < s->base || lo > s->end || hi > s->base + s->room) s->base = s->end = lo;
    if (hi > s->end) {
        s->k->pack((const char *)job->x + (size_t)(s->end * job->x_ld * size), job->x_ld, false, job->cols, 0, hi - s->end,
                   s->rows + (s->end - s->base) * job->cols * size);
        s->end = hi;
    }
    if (s->X->rows - hi > TL_SLIDE_ROWS) {
        job->coming = (const char *)job->x + (size_t)(hi * job->x_ld * size);
        job->coming_ld = job->x_ld;
    }
    job->x = (const void *)((uintptr_t)s->rows - (uintptr_t)(s->base * job->cols * size));
    job->x_ld = job->cols;
    return true;
}
