/* SPDX-License-Identifier: MIT
 *
 * kernel_stencil.h - the accumulator "stencil".
 *
 * Rows of a grid repeat the row before, one column on, and so do the rows of B they name.  The place of each
 * product within its row is then the same in all of them: it is found once, and the rows after the first
 * need no marks, no search and no sort. */
#ifndef TL_KERNEL_STENCIL_H
#define TL_KERNEL_STENCIL_H
#include "cpu/kernel_gather.h"

/* Can the places of this row's products be kept? */
INLINE bool stencil_fits(const tl_job *job, const tl_scratch *s, const row *r)
{
    return r->b_rows > 1 && r->b_rows == r->count && !job->drop_zeros && r->products <= s->items
           && r->hi - r->lo < s->slots;
}

/* How many rows from row i on repeat it, each one column on; 1 when none does. */
INLINE int64_t stencil_rows(const shape sh, const tl_job *job, const row *r, int64_t i, int64_t row1)
{
    int64_t rows = 1;
    while (i + rows < row1 && job->a_like[i + rows] == TL_SHIFTED) rows++;
    for (int64_t k = r->a_begin; k < r->a_begin + r->a_length && rows > 3; k++) {
        const uint8_t *like = job->b_like + col_at(sh, &job->a, k);
        int64_t n = 1;
        while (n < rows && like[n] == TL_SHIFTED) n++;
        rows = n;
    }
    return rows > 3 ? rows : 1;
}

/* Rows that repeat the first one, each one column on: the place of every product in its row is found once,
 * for the first row, whose n columns stand at o.col; then each row is added up where it belongs. */
INLINE void stencil(const mode m, const tl_job *job, tl_scratch *s, const row *r, int64_t rows, int64_t n,
                    out o)
{
    const idx *restrict b_col = b_cols(job);
    const val *restrict b = b_vals(job);
    uint16_t *restrict place = s->place;
    int32_t *restrict rank = s->slot;           /* zero again when we leave */
    int64_t base = r->lo, products = 0;
    if (m != SYMBOLIC) {
        for (int64_t i = 0; i < n; i++) rank[o.col[i] - base] = (int32_t)i;
        for (int64_t j = 0; j < r->count; j++)
            for (int64_t k = 0; k < s->stretch[j].length; k++)
                place[products++] = (uint16_t)rank[b_col[s->stretch[j].begin + k] - base];
        for (int64_t i = 0; i < n; i++) rank[o.col[i] - base] = 0;
    }
    for (int64_t i = 1; i < rows; i++) {
        if (m != NUMERIC && o.col) {
            const idx *restrict before = o.col;
            idx *restrict col = o.col + n;
            for (int64_t k = 0; k < n; k++) col[k] = before[k] + 1;
        }
        if (o.col) o.col += n;
        if (m == SYMBOLIC) continue;
        o.val += n;
        val *restrict value = o.val;
        const val *a = a_vals(job) + r->a_begin + i * r->a_length;
        const uint16_t *restrict p = place;
        memset(value, 0, (size_t)n * sizeof *value);
        for (int64_t j = 0; j < r->count; j++) {
            const tl_stretch *t = &s->stretch[j];
            const val *restrict bt = b + t->begin + i * t->length;
            val w = a[t->first];
            if (t->length >= 8 && p[t->length - 1] - p[0] == t->length - 1) {
                val *restrict x = value + p[0];
                for (int64_t k = 0; k < t->length; k++) x[k] = add(x[k], mul(w, bt[k]));
            } else {
                for (int64_t k = 0; k < t->length; k++) value[p[k]] = add(value[p[k]], mul(w, bt[k]));
            }
            p += t->length;
        }
    }
}

#endif
