/* SPDX-License-Identifier: MIT
 *
 * slide.c - SpMM with a sliding window: rows of X are copied, shortly before they are needed, in blocks of
 * columns.
 *
 * Consecutive rows of a banded matrix, a stencil or a mesh need nearly the same rows of X.  Where these are
 * long, 27 of them fill the L1 cache; and if their distance in memory is a power of 2, even a part of each
 * row does, because the parts map to few cache sets.  Copied in blocks of columns they stay in the cache, but
 * a copy of the whole X would be written to memory and read back.  So a thread processes its rows of A in
 * groups, and copies the rows of X that enter the window of the next group: the copy is made and used within
 * the cache.
 *
 * The copy is a ring buffer of the rows begin..end of X, one block of columns after another; if a group needs
 * rows before these, or none of them, the ring starts again.  The column indices of a group are replaced by
 * positions in the ring, once for all blocks of columns. */
#include "cpu/spmm.h"
#include "matrix/parts.h"

/* Copies the rows end..hi into the ring. */
static void take_in(tl_slide *s, int64_t hi)
{
    const int64_t size = (int64_t)tl_type_size(s->X->val_type), ld = s->X->ld;
    while (s->end < hi) {
        int64_t place = (s->end - s->base) % s->room,
                n = hi - s->end < s->room - place ? hi - s->end : s->room - place;
        for (int64_t at = 0, i = 0; at < s->cols; at += s->block, i++) {
            int64_t cols = s->cols - at < s->block ? s->cols - at : s->block;
            s->k->pack((const char *)s->X->values + (s->end * ld + s->col + at) * size, ld, false, cols, 0, n,
                       s->rows + i * s->apart + place * cols * size);
        }
        s->end += n;
    }
    if (s->end - s->begin > s->room) s->begin = s->end - s->room;
}

void tl_slide_start(tl_slide *s, int64_t col, int64_t cols)
{
    s->col = col;
    s->cols = cols;
    s->begin = s->end = s->base = 0;
}

bool tl_slide_to(tl_slide *s, const tl_spmm_job *job, int64_t row0, int64_t row1)
{
    const tulle_index type = job->ptr64 ? TULLE_I64 : TULLE_I32;
    const int64_t first = tl_get(job->ptr, type, row0), entries = tl_get(job->ptr, type, row1) - first;
    int64_t lo, hi;
    s->k->range(job, row0, row1, &lo, &hi);
    if (hi - lo > s->room || entries > s->entries) return false;
    if (lo < s->begin || lo > s->end) s->begin = s->end = s->base = lo;
    while (lo - s->base >= s->room) s->base += s->room;
    take_in(s, hi);
    s->k->places(job, row0, row1, s->base, s->room, s->places);
    s->first = first;
    return true;
}

void tl_slide_show(const tl_slide *s, int64_t block, tl_spmm_job *job)
{
    const int64_t size = (int64_t)tl_type_size(s->X->val_type);
    if (s->X->rows - s->end > TL_SLIDE_ROWS) {
        job->coming = (const char *)job->x + s->end * job->x_ld * size;
        job->coming_ld = job->x_ld;
    }
    job->x = s->rows + block * s->apart;
    job->x_ld = job->cols;
    job->col = (const void *)((uintptr_t)s->places - (uintptr_t)s->first * s->place_size);
}
