/* SPDX-License-Identifier: MIT
 *
 * kernel_gather.h - collects the rows of B that a row of A needs, as a list of "stretches".
 *
 * It also computes the window lo..hi of their columns.  Up to four consecutive rows of B with equal pattern
 * become one stretch: their columns are then read, and the slots loaded and stored, once instead of four
 * times. */
#ifndef TL_KERNEL_GATHER_H
#define TL_KERNEL_GATHER_H
#include "cpu/kernel_types.h"

INLINE int64_t ptr_at(const shape sh, const tl_arrays *m, int64_t i)
{
    return sh == ANY && m->ptr64 ? ((const int64_t *)m->ptr)[i] : ((const int32_t *)m->ptr)[i];
}

INLINE int64_t col_at(const shape sh, const tl_arrays *m, int64_t i)
{
    return sh == ANY && m->col64 ? ((const int64_t *)m->col)[i] : ((const int32_t *)m->col)[i];
}

INLINE const idx *b_cols(const tl_job *job) { return job->b.col; }
INLINE const val *b_vals(const tl_job *job) { return job->b.val; }
INLINE const val *a_vals(const tl_job *job) { return job->a.val; }

/* The beginning of the row of B for the entry of A that is `near` after k, and unless `last` is NULL, its
 * last entry, but at most the eighth.  The row pointer that this reads was prefetched `far` - `near` entries
 * earlier. */
INLINE int64_t row_ahead(const shape sh, const tl_job *job, int64_t k, const int near, const int far,
                         int64_t *last)
{
    if (last) *last = 0;
    if (k + far >= job->a_nnz) return 0;
    int64_t later = col_at(sh, &job->a, k + far), j = col_at(sh, &job->a, k + near);
    __builtin_prefetch((const char *)job->b.ptr + later * (sh == ANY && job->b.ptr64 ? 8 : 4));
    int64_t begin = ptr_at(sh, &job->b, j), length = ptr_at(sh, &job->b, j + 1) - begin;
    if (last) *last = begin + (length < 8 ? length : 8) - (length > 0);
    return begin;
}

/* Prefetches the rows of B of the next entries of A into the L1 cache: a short row may lie in two cache
 * lines; the rest of a long one is fetched in advance by the processor itself. */
INLINE void fetch_ahead(const shape sh, const tl_job *job, int64_t k)
{
    int64_t last, row = row_ahead(sh, job, k, 12, 28, &last);
    __builtin_prefetch(b_cols(job) + row);
    __builtin_prefetch(b_cols(job) + last);
    if (job->b.val) __builtin_prefetch(b_vals(job) + row);
    if (job->b.val) __builtin_prefetch(b_vals(job) + last);
}

/* Prefetches the rows needed much later into the L2 cache: where an entry of A takes few instructions, the
 * latency of memory is that of a hundred entries. */
INLINE void fetch_far_ahead(const shape sh, const tl_job *job, int64_t k)
{
    int64_t row = row_ahead(sh, job, k, 192, 224, NULL);
    __builtin_prefetch(b_cols(job) + row, 0, 2);
    __builtin_prefetch(b_vals(job) + row, 0, 2);
}

/* The current row of A, as stretches of B. */
typedef struct row {
    int64_t a_begin, a_length;
    int64_t count;                      /* stretches */
    int64_t b_rows, products;
    int64_t lo, hi;                     /* columns lo..hi; lo > hi: no product */
} row;

INLINE row gather(const shape sh, const tl_job *job, tl_scratch *s, int64_t a_begin, int64_t a_end)
{
    row r = {.a_begin = a_begin, .a_length = a_end - a_begin, .lo = INT64_MAX, .hi = -1};
    const idx *restrict col = b_cols(job);
    const uint8_t *like = sh == ANY && job->twins ? job->b_like : NULL;
    tl_stretch *restrict stretch = s->stretch;
    int64_t last = -2, n = 0;
    for (int64_t k = a_begin; k < a_end; k++) {
        if (job->far) fetch_ahead(sh, job, k);
        int64_t j = col_at(sh, &job->a, k);
        int64_t begin = ptr_at(sh, &job->b, j), length = ptr_at(sh, &job->b, j + 1) - begin;
        if (length == 0) continue;
        r.products += length;
        r.b_rows++;
        if (like && like[j] == TL_TWIN && j == last + 1 && stretch[n - 1].rows < 4) {
            stretch[n - 1].rows++;
        } else {
            stretch[n++] = (tl_stretch){begin, length, (int32_t)(k - a_begin), 1};
            int64_t low = col[begin], high = col[begin + length - 1];
            r.lo = low < r.lo ? low : r.lo;
            r.hi = high > r.hi ? high : r.hi;
        }
        last = j;
    }
    r.count = n;
    return r;
}

#endif
