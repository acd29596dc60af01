/* SPDX-License-Identifier: MIT
 *
 * kernel_sort.h - the accumulator "sort", and the sort that "hash" and "window" use.
 *
 * Short rows are sorted in registers where the processor has vectors for it (kernel_network.h).  Otherwise
 * each product is an item (column, number): the rows of B are sorted already, so they are merged pairwise
 * without branches; then the products of equal columns are added in the order of their numbers. */
#ifndef TL_KERNEL_SORT_H
#define TL_KERNEL_SORT_H
#include "cpu/kernel_network.h"

/* A sort item orders by column, then by number; both are unsigned offsets. */
#if WIDTH == 32
typedef int64_t item;
INLINE item    item_make(int64_t column, int64_t number) { return column << 32 | number; }
INLINE int64_t item_column(item x) { return x >> 32; }
INLINE int64_t item_number(item x) { return x & 0xffffffff; }
INLINE bool    item_less(item x, item y) { return x < y; }
INLINE item    item_last(void) { return INT64_MAX; }
#else
typedef struct { int64_t column, number; } item;
INLINE item    item_make(int64_t column, int64_t number) { return (item){column, number}; }
INLINE int64_t item_column(item x) { return x.column; }
INLINE int64_t item_number(item x) { return x.number; }
INLINE bool    item_less(item x, item y)
{
    return x.column < y.column || (x.column == y.column && x.number < y.number);
}
INLINE item    item_last(void) { return (item){INT64_MAX, INT64_MAX}; }
#endif

/* Each run is followed by a sentinel that is greater than or equal to all items: so ends need not be tested,
 * the number of steps is known, and no branch is mispredicted. */
INLINE void merge(const item *restrict x, const item *restrict y, int64_t n, item *restrict z)
{
    for (int64_t k = 0; k < n; k++) {
        item p = *x, q = *y;
        bool take = item_less(q, p);
        z[k] = take ? q : p;
        x += !take;
        y += take;
    }
    z[n] = item_last();
}

/* Merges sorted runs.  Run i begins at run[2i], has length run[2i + 1], and is followed by space for one more
 * item.  Returns the first item of the result. */
static const item *merge_runs(item *x, item *y, int32_t *run, int64_t runs)
{
    for (int64_t i = 0; i < runs; i++) x[run[2 * i] + run[2 * i + 1]] = item_last();
    while (runs > 1) {
        int64_t k = 0;
        for (int64_t i = 0; i + 1 < runs; i += 2, k++) {
            const int32_t *p = run + 2 * i;
            int32_t from = p[0], length = p[1] + p[3];
            merge(x + p[0], x + p[2], length, y + from);
            run[2 * k] = from;
            run[2 * k + 1] = length;
        }
        if (runs & 1) {
            const int32_t *p = run + 2 * (runs - 1);
            memcpy(y + p[0], x + p[0], (size_t)(p[1] + 1) * sizeof *x);
            run[2 * k] = p[0];
            run[2 * k + 1] = p[1];
            k++;
        }
        runs = k;
        item *swap = x;
        x = y;
        y = swap;
    }
    return x + run[0];
}

/* Items in any order are sorted in runs, which are then merged: runs of eight, by insertion, or where
 * kernel_network.h can sort their columns, of many more. */
enum { RUN = 8 };

/* The length of these runs for n items of columns 0..range. */
INLINE int64_t run_length(int64_t n, int64_t range)
{
#if HAVE_NETWORK
    int bits = number_bits(n < 1 ? 1 : n < NETWORK ? n : NETWORK);
    while (bits > 3 && range >> (32 - bits) != 0) bits--;
    return (int64_t)1 << bits;
#else
    (void)n, (void)range;
    return RUN;
#endif
}

INLINE void sort_few(const item *restrict x, int64_t n, item *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0 && item_less(x[i], y[j - 1]); j--) y[j] = y[j - 1];
        y[j] = x[i];
    }
}

/* Sorts a run of at most `most` items; those of one column are in order already. */
INLINE void sort_run(const item *restrict x, int64_t n, int64_t most, item *restrict y)
{
#if HAVE_NETWORK
    if (most > RUN) {
        uint32_t key[NETWORK + WAYS] __attribute__((aligned(64))), last = (uint32_t)most - 1;
        for (int64_t i = 0; i < n; i++) key[i] = (uint32_t)item_column(x[i]) * (uint32_t)most + (uint32_t)i;
        sort_keys(key, n);
        for (int64_t i = 0; i < n; i++) y[i] = x[key[i] & last];
        return;
    }
#endif
    (void)most;
    sort_few(x, n, y);
}

/* Sorts items of columns 0..range; those of one column are in order already.  Returns the first item of the
 * result. */
static const item *sort_items(tl_scratch *s, int64_t n, int64_t range)
{
    const int64_t most = run_length(n, range);
    item *x = s->item[0], *y = s->item[1];
    int64_t runs = 0;
    for (int64_t from = 0; from < n; from += most, runs++) {
        int64_t length = n - from < most ? n - from : most, to = from + runs;
        sort_run(x + from, length, most, y + to);
        s->run[2 * runs] = (int32_t)to;
        s->run[2 * runs + 1] = (int32_t)length;
    }
    return merge_runs(y, x, s->run, runs);
}

/* Adds the products of equal columns in order; product NULL when only the pattern is wanted. */
INLINE int64_t compress(const mode m, const item *restrict x, int64_t n, const val *restrict product,
                        int64_t base, out o)
{
    int64_t k = -1, last = -1;
    val sum = zero();
    for (int64_t i = 0; i < n; i++) {
        int64_t c = item_column(x[i]);
        bool fresh = c != last;
        k += fresh;
        last = c;
        if (m == SYMBOLIC) {
            if (o.col) o.col[k] = (idx)(base + c);
            continue;
        }
        sum = add(fresh ? zero() : sum, product[item_number(x[i])]);
        o.col[k] = (idx)(base + c);
        o.val[k] = sum;
    }
    return k + 1;
}

/* A row of A needs b_rows rows of B, which are merged; but where they are much shorter than the runs that
 * sort_items() begins with, that is faster. */
INLINE int64_t by_sort(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    const int64_t range = r->hi - r->lo, most = run_length(r->products, range);
#if HAVE_NETWORK
    if (network_fits(r->products, range))
        return m == SYMBOLIC ? network_symbolic(job, s, r, o)
             : m == FUSED    ? network_fused(job, s, r, o) : network_numeric(job, s, r, o);
#endif
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    item *restrict x = s->item[0];
    val *restrict product = s->product;
    int64_t n = 0, runs = 0;
    const int gap = (r->products + most - 1) / most * 2 < r->b_rows ? 0 : 1;    /* 0: sort_items() */
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC ? 1 : t->rows); q++, runs++) {
            val w = m == SYMBOLIC ? zero() : a_vals(job)[r->a_begin + t->first + q];
            item *restrict y = x + runs * gap;
            s->run[2 * runs] = (int32_t)(n + runs);
            s->run[2 * runs + 1] = (int32_t)t->length;
            for (int64_t k = 0; k < t->length; k++, n++) {
                y[n] = item_make(col[t->begin + k] - r->lo, n);
                if (m != SYMBOLIC) product[n] = mul(w, b[t->begin + q * t->length + k]);
            }
        }
    }
    const item *sorted = gap ? merge_runs(x, s->item[1], s->run, runs) : sort_items(s, n, range);
    return compress(m, sorted, n, product, r->lo, o);
}

#endif
