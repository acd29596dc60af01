/* SPDX-License-Identifier: MIT
 *
 * kernel_window.h - the fallback for rows that the other accumulators cannot compute.
 *
 * A row of any length and width is cut into ranges of columns that fit the slots or the sort.  Rows so heavy
 * that several threads share them are computed here too, a range of columns by each thread. */
#ifndef TL_KERNEL_WINDOW_H
#define TL_KERNEL_WINDOW_H
#include "cpu/kernel_dense.h"
#include "cpu/kernel_sort.h"

INLINE int64_t lower_bound(const idx *restrict col, int64_t begin, int64_t end, int64_t column)
{
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (col[middle] < column) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

/* Computes the columns lo..hi-1 of one row of C with slots or sort, whichever fits, or else in two halves. */
static int64_t window(const mode m, const tl_job *job, tl_scratch *s, int64_t a_begin, int64_t a_end,
                      int64_t lo, int64_t hi, out o)
{
    const idx *col = b_cols(job);
    const val *b = b_vals(job);
    bool fits = hi - lo <= s->slots;
    int64_t base = lo & ~(int64_t)63, products = 0;
    if (hi - base > s->slots) fits = false;
    for (int64_t k = a_begin; k < a_end; k++) {
        int64_t j = col_at(ANY, &job->a, k);
        int64_t end = ptr_at(ANY, &job->b, j + 1), from = lower_bound(col, ptr_at(ANY, &job->b, j), end, lo);
        int64_t to = lower_bound(col, from, end, hi);
        const val *bt = m == SYMBOLIC ? NULL : b + from, *at = m == SYMBOLIC ? NULL : a_vals(job) + k;
        if (fits) {
            if (m == SYMBOLIC)
                scatter(SYMBOLIC, true, 1, 1, s->slot, s->mark, s->block, col + from, bt, to - from, 0, base,
                        at, 0, 0);
            else
                scatter(FUSED, true, 1, 1, s->slot, s->mark, s->block, col + from, bt, to - from, 0, base, at,
                        0, 0);
        } else if (products + (to - from) <= s->items) {
            for (int64_t i = from; i < to; i++) {
                int64_t n = products + (i - from);
                ((item *)s->item[0])[n] = item_make(col[i] - lo, n);
                if (m != SYMBOLIC) ((val *)s->product)[n] = mul(*at, b[i]);
            }
        }
        products += to - from;
    }
    if (fits) {
        int64_t n = emit(true, s, base, ((hi - 1 - base) >> 6) + 1, o.col, job->exact);
        if (m != SYMBOLIC) collect(1, 1, s, base, o.col, n, o.val);
        return n;
    }
    if (products <= s->items) {
        const item *x = sort_items(s, products, hi - 1 - lo);
        return m == SYMBOLIC ? compress(SYMBOLIC, x, products, NULL, lo, o)
                             : compress(FUSED, x, products, s->product, lo, o);
    }
    int64_t middle = lo + (hi - lo) / 2;
    int64_t n = window(m, job, s, a_begin, a_end, lo, middle, o);
    if (o.col) o.col += n;
    if (o.val) o.val += n;
    return n + window(m, job, s, a_begin, a_end, middle, hi, o);
}

#endif
