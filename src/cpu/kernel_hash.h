/* SPDX-License-Identifier: MIT
 *
 * kernel_hash.h - the accumulator "hash": open addressing with linear probing, at most half full; the columns
 * found are sorted afterwards. */
#ifndef TL_KERNEL_HASH_H
#define TL_KERNEL_HASH_H
#include "cpu/kernel_sort.h"

INLINE int64_t by_hash(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    idx *restrict key = s->key;
    val *restrict sum = s->sum;
    item *restrict x = s->item[0];
    int64_t bound = r->hi - r->lo + 1 < r->products ? r->hi - r->lo + 1 : r->products, n = 0;
    int bits = 4;
    while ((int64_t)1 << bits < 2 * bound) bits++;
    uint64_t last = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC ? 1 : t->rows); q++) {
            val w = m == SYMBOLIC ? zero() : a_vals(job)[r->a_begin + t->first + q];
            for (int64_t k = 0; k < t->length; k++) {
                idx c = col[t->begin + k];
                uint64_t h = ((uint64_t)c * 0x9E3779B97F4A7C15u) >> (64 - bits);
                while (key[h] != c && key[h] != -1) h = (h + 1) & last;
                if (key[h] == -1) {
                    key[h] = c;
                    if (m != SYMBOLIC) sum[h] = zero();
                    x[n++] = item_make(c - r->lo, (int64_t)h);
                }
                if (m != SYMBOLIC) sum[h] = add(sum[h], mul(w, b[t->begin + q * t->length + k]));
            }
        }
    }
    for (int64_t i = 0; i < n; i++) key[item_number(x[i])] = -1;
    if (m == SYMBOLIC && !o.col) return n;
    const item *sorted = sort_items(s, n, r->hi - r->lo);
    for (int64_t i = 0; i < n; i++) {
        o.col[i] = (idx)(r->lo + item_column(sorted[i]));
        if (m != SYMBOLIC) o.val[i] = sum[item_number(sorted[i])];
    }
    return n;
}

#endif
