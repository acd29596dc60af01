/* SPDX-License-Identifier: MIT
 *
 * kernel_stencil.h - the accumulator "stencil".
 *
 * On a grid, rows of A repeat the row before, shifted by one column, and so do the rows of B that they need.
 * The position of each product within its row of C is then the same in all of them: it is found once, and the
 * rows after the first need no marks, no search and no sort.  Where the processor has suitable vectors, the
 * sums are computed by kernel_octets.h. */
#ifndef TL_KERNEL_STENCIL_H
#define TL_KERNEL_STENCIL_H
#include "cpu/kernel_octets.h"

/* Whether the places of this row's products can be stored. */
INLINE bool stencil_fits(const tl_job *job, const tl_scratch *s, const row *r)
{
    return r->b_rows > 1 && r->b_rows == r->count && !job->drop_zeros && r->products <= s->items
           && r->hi - r->lo < s->slots;
}

/* How many rows, from row i on, repeat it, each shifted by one column; 1 if none does. */
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

/* Finds the places of the products of a row, whose n columns are at col. */
INLINE void find_places(const tl_job *job, tl_scratch *s, const row *r, int64_t n, const idx *restrict col)
{
    const idx *restrict b_col = b_cols(job);
    uint16_t *restrict place = s->place;
    int32_t *restrict rank = s->slot;           /* reset to zero at the end */
    int64_t base = r->lo, products = 0;
    for (int64_t i = 0; i < n; i++) rank[col[i] - base] = (int32_t)i;
    for (int64_t j = 0; j < r->count; j++)
        for (int64_t k = 0; k < s->stretch[j].length; k++)
            place[products++] = (uint16_t)rank[b_col[s->stretch[j].begin + k] - base];
    for (int64_t i = 0; i < n; i++) rank[col[i] - base] = 0;
}

/* Computes the values of row i of a run, from its entries of A, one by one. */
INLINE void stencil_row(const tl_scratch *s, const row *r, int64_t i, int64_t n, const val *restrict a,
                        const val *restrict b, val *restrict value)
{
    const uint16_t *restrict p = s->place;
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

/* The columns of rows first..rows of a run, from those of the row before. */
INLINE void stencil_columns(int64_t first, int64_t rows, int64_t n, idx *col)
{
    for (int64_t i = first; i < rows; i++) {
        const idx *restrict before = col + (i - 1) * n;
        idx *restrict next = col + i * n;
        for (int64_t k = 0; k < n; k++) next[k] = before[k] + 1;
    }
}

/* A run of rows that repeat the first one, each shifted by one column: the place of every product is found
 * once, for the first row, whose n columns are at o.col, and is used for all rows. */
INLINE void stencil(const mode m, const tl_job *job, tl_scratch *s, const row *r, int64_t rows, int64_t n,
                    out o)
{
    const val *a = a_vals(job) + r->a_begin;
    const bool columns = m != NUMERIC && o.col;
    int64_t i = 1;
    if (m != SYMBOLIC) find_places(job, s, r, n, o.col);
#if HAVE_OCTETS
    if (m != SYMBOLIC && rows >= OCTET_RUN && octets_make(s, r, n)) {
        i = octet_rows(s, r, rows, job->b_nnz);
        octet_run(s, i, n, a, r->a_length, b_vals(job), o.col, (out){columns ? o.col : NULL, o.val});
        if (i < 1) i = 1;
    }
#endif
    if (columns) stencil_columns(i, rows, n, o.col);
    for (; i < rows && m != SYMBOLIC; i++)
        stencil_row(s, r, i, n, a + i * r->a_length, b_vals(job), o.val + i * n);
}

#endif
