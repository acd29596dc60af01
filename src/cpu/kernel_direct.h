/* SPDX-License-Identifier: MIT
 *
 * kernel_direct.h - the accumulator "direct": a row of A with one entry gives a scaled copy of a row of B. */
#ifndef TL_KERNEL_DIRECT_H
#define TL_KERNEL_DIRECT_H
#include "cpu/kernel_gather.h"

INLINE int64_t direct(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    if (r->count == 0) return 0;
    const tl_stretch *t = &s->stretch[0];
    const idx *restrict col = b_cols(job) + t->begin;
    if (o.col) memcpy(o.col, col, (size_t)t->length * sizeof(idx));
    if (m == SYMBOLIC) return t->length;
    const val *restrict b = b_vals(job) + t->begin;
    val *restrict value = o.val, w = a_vals(job)[r->a_begin + t->first];
    for (int64_t k = 0; k < t->length; k++) value[k] = add(zero(), mul(w, b[k]));
    return t->length;
}

#endif
