/* SPDX-License-Identifier: MIT
 *
 * scratch.c - what a thread needs beside A, B and C.
 *
 * Bytes: (value + 1) a slot for at most 16 MiB, 24 a stretch, twice 8 or 16 and a value a sort item, an index
 * and a value an entry of the hash table: under 20 MiB, less for small matrices.  With the slots of
 * queue.c a thread stays below 32 MiB. */
#include "cpu/cpu.h"
#include <string.h>

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

/* Four lanes want four slots a column; windows over 64 K columns do without lanes. */
static int64_t slots_for(const tulle_csr *B)
{
    int64_t fit = ((int64_t)16 << 20) / ((int64_t)tl_type_size(B->val_type) + 1);
    int64_t want = larger(smaller(B->cols, TL_SLOTS), 4 * smaller(B->cols, 1 << 16)) + 512;
    return smaller(want, smaller(fit, TL_SLOTS)) & ~(int64_t)63;
}

tulle_status tl_scratch_make(tl_base *b, const tulle_csr *B, const tl_profile *p, int64_t piece_rows,
                             tl_scratch *s)
{
    tulle_status status = TULLE_OK;
    static const char what[] = "scratch of a thread";
    size_t value = tl_type_size(B->val_type), index = tl_index_size(B->idx_type);
    memset(s, 0, sizeof *s);
    s->slots = slots_for(B);
    s->stretches = smaller(larger(p->max_a_row, 1), TL_STRETCHES);
    s->items = smaller(p->max_products + p->max_a_row + 16, TL_ITEMS);
    s->table = 16;
    while (s->table < 2 * s->items) s->table *= 2;
    TRY(tl_alloc(b, &s->slot, s->slots, value, what));
    TRY(tl_alloc(b, &s->mark, s->slots + 64, 1, what));
    TRY(tl_alloc(b, &s->block, s->slots / 64 + 64, 1, what));
    TRY(tl_alloc(b, &s->stretch, s->stretches, sizeof *s->stretch, what));
    TRY(tl_alloc(b, &s->run, 2 * larger(s->stretches, s->items / 8) + 4, sizeof *s->run, what));
    TRY(tl_alloc(b, &s->place, s->items, sizeof *s->place, what));
    TRY(tl_alloc(b, &s->item[0], s->items + s->items / 8 + 16, index == 4 ? 8 : 16, what));
    TRY(tl_alloc(b, &s->item[1], s->items + s->items / 8 + 16, index == 4 ? 8 : 16, what));
    TRY(tl_alloc(b, &s->product, s->items, value, what));
    TRY(tl_alloc(b, &s->key, s->table, index, what));
    TRY(tl_alloc(b, &s->sum, s->table, value, what));
    TRY(tl_alloc(b, &s->row_end, piece_rows + 1, sizeof *s->row_end, what));
done:
    if (status != TULLE_OK) tl_scratch_done(b, s);
    return status;
}

/* By the thread that will use it, so that the memory is near. */
void tl_scratch_clear(tl_scratch *s, size_t value, size_t index)
{
    memset(s->slot, 0, (size_t)s->slots * value);
    memset(s->mark, 0, (size_t)s->slots + 64);
    memset(s->block, 0, (size_t)(s->slots / 64 + 64));
    memset(s->key, 0xff, (size_t)s->table * index);
    memset(s->rows, 0, sizeof s->rows);
    memset(s->products, 0, sizeof s->products);
}

void tl_scratch_done(tl_base *b, tl_scratch *s)
{
    void *blocks[] = {s->slot, s->mark, s->block, s->stretch, s->run, s->place, s->item[0], s->item[1], s->product,
                      s->key, s->sum, s->row_end};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) tl_free(b, blocks[i]);
    memset(s, 0, sizeof *s);
}
