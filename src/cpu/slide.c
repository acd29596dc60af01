/* SPDX-License-Identifier: MIT
 *
 * slide.c - X a little ahead of the rows of A that need it, copied so that some of its columns lie side by
 * side.
 *
 * Rows of a banded matrix, a stencil, a mesh that follow each other need nearly the same rows of X.  Where
 * those are long, what 27 of them hold fills a core's first cache, and if they are a power of 2 apart, a part
 * of each does so, too: they find room in few of its sets only.  Copied in blocks of columns they stay; but a
 * copy of all of X has to go out to memory and come back.  So a thread goes through its rows in groups and
 * copies what comes into sight: the copy of a group's window is made in a cache and is used up there.
 *
 * The copy is a ring of rows of X, begin..end, block of columns by block; where a group needs rows before
 * them, or none of them, it begins anew.  The entries of a group get the places of their rows there instead
 * of columns, once for all blocks. */
#include "cpu/spmm.h"
#include "matrix/parts.h"

/* Rows end..hi into the ring. */
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
