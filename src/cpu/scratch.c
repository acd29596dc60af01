/* SPDX-License-Identifier: MIT
 *
 * scratch.c - the workspace of a thread.
 *
 * Bytes: (value + 1) per slot, at most 16 MiB; 24 per stretch; twice 8 or 16 and a value per sort item; an
 * index and a value per entry of the hash table; 64 or 256 KiB of patterns where they repeat; 52 KiB of steps
 * where rows are alike.  Together under 20 MiB, less for small matrices; with the slots of queue.c a thread
 * stays below 32 MiB.  A lean workspace, for memory limits below that, takes 100 to 250 KiB. */
#include "cpu/cpu.h"
#include <string.h>

/* Twins use up to four slots per column, but only in windows of up to 64 K columns. */
static int64_t slots_for(const tulle_csr *B)
{
    int64_t fit = ((int64_t)16 << 20) / ((int64_t)tl_type_size(B->val_type) + 1);
    int64_t want = tl_max(tl_min(B->cols, TL_SLOTS), 4 * tl_min(B->cols, 1 << 16)) + 512;
    return tl_min(want, tl_min(fit, TL_SLOTS)) & ~(int64_t)63;
}

/* Sizes the repeated patterns, with padding for vectors that read beyond the last product of one. */
static void size_patterns(tl_scratch *s, const tl_profile *p, size_t index, bool lean)
{
    /* for each entry of A a step, or the length, lanes and sources of a row of B: kernel_lanes.h */
    const int64_t steps = 8 * (int64_t)index + TL_STEP_BYTES, lanes = 1 + 4 + 32;
    s->pattern_most = tl_min(p->max_products, lean ? TL_LEAN_PATTERN : TL_PATTERN);
    s->pattern_room = (s->pattern_most + 31) & ~(int64_t)15;
    s->pattern_entries = p->max_b_row > 8 ? 0 : tl_min(p->max_a_row, lean ? 16 : TL_PATTERN_ENTRIES);
    s->pattern_bytes = 64 + s->pattern_room * (int64_t)(2 * index + sizeof(uint16_t))
                       + s->pattern_entries * tl_max(steps, lanes);
    s->pattern_bytes = (s->pattern_bytes + 63) & ~(int64_t)63;
    s->pattern_count = 128;
    int64_t room = lean ? 8 << 10 : s->pattern_most > 128 ? 256 << 10 : 64 << 10;
    while (s->pattern_count > 8 && s->pattern_count * s->pattern_bytes > room) s->pattern_count /= 2;
}

/* Computes all sizes.  A hash table needs no more entries than B has columns. */
static void set_sizes(tl_scratch *s, const tulle_csr *B, const tl_profile *p, bool lean)
{
    memset(s, 0, sizeof *s);
    s->slots = tl_min(slots_for(B), lean ? TL_LEAN_SLOTS + 512 : INT64_MAX);
    s->stretches = tl_min(tl_max(p->max_a_row, 1), lean ? TL_LEAN_STRETCHES : TL_STRETCHES);
    s->items = tl_min(p->max_products + p->max_a_row + 16, lean ? TL_LEAN_ITEMS : TL_ITEMS);
    s->table = 16;
    while (s->table < 2 * tl_min(s->items, B->cols)) s->table *= 2;
    if (p->a_like && p->b_like) {       /* a step has one to eight products */
        s->octet_steps = tl_min(p->max_products, lean ? TL_LEAN_OCTET_STEPS : TL_OCTET_STEPS);
        s->octet_products = tl_min(p->max_products, 8 * s->octet_steps);
    }
    if (p->repeats) size_patterns(s, p, tl_index_size(B->idx_type), lean);
}

/* Places the arrays of a workspace from `at` on; returns their bytes.  at NULL: only computes the bytes. */
static size_t lay_out(tl_scratch *s, char *at, size_t value, size_t index, int64_t piece_rows)
{
    int64_t items = s->items + s->items / 8 + 16, runs = 2 * tl_max(s->stretches, s->items / 8) + 4;
    size_t item = index == 4 ? 8 : 16, sum = 0;
    const struct { void *array; int64_t count; size_t size; } parts[] = {
        {&s->slot, s->slots, value},
        {&s->mark, s->slots + 64, 1},
        {&s->block, s->slots / 64 + 64, 1},
        {&s->stretch, s->stretches, sizeof *s->stretch},
        {&s->run, runs, sizeof *s->run},
        {&s->place, s->items, sizeof *s->place},
        {&s->octets, s->octet_steps > 0, sizeof *s->octets},
        {&s->octet_step, 2 * s->octet_steps, TL_OCTET_BYTES},
        {&s->octet_place, s->octet_products, sizeof *s->octet_place},
        {&s->octet_stretch, s->octet_steps, sizeof *s->octet_stretch},
        {&s->item[0], items, item},
        {&s->item[1], items, item},
        {&s->product, s->items, value},
        {&s->key, s->table, index},
        {&s->sum, s->table, value},
        {&s->patterns, s->pattern_count, (size_t)s->pattern_bytes},
        {&s->row_end, piece_rows + 1, sizeof *s->row_end},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *p = at ? at + sum : NULL;
        memcpy(parts[i].array, &p, sizeof p);
        sum += ((size_t)parts[i].count * parts[i].size + 63) & ~(size_t)63;
    }
    return sum;
}

uint64_t tl_scratch_bytes(const tulle_csr *B, const tl_profile *p, const tl_pieces *pieces)
{
    tl_scratch s;
    set_sizes(&s, B, p, pieces->lean);
    return lay_out(&s, NULL, tl_type_size(B->val_type), tl_index_size(B->idx_type), pieces->max_rows);
}

tulle_status tl_scratch_make(tl_base *b, const tulle_csr *B, const tl_profile *p, const tl_pieces *pieces,
                             tl_scratch *s)
{
    tulle_status status = TULLE_OK;
    size_t value = tl_type_size(B->val_type), index = tl_index_size(B->idx_type);
    set_sizes(s, B, p, pieces->lean);
    size_t bytes = lay_out(s, NULL, value, index, pieces->max_rows);
    TRY(tl_alloc(b, &s->memory, (int64_t)bytes, 1, "scratch of a thread"));
    lay_out(s, s->memory, value, index, pieces->max_rows);
    s->fresh = tl_is_zero(s->memory);
done:
    return status;
}

/* Called by the thread that will use it, so that the pages are allocated near that thread (NUMA). */
void tl_scratch_clear(tl_scratch *s, size_t value, size_t index)
{
    if (!s->fresh) {                    /* fresh pages are zero; those never used are not even allocated */
        memset(s->slot, 0, (size_t)s->slots * value);
        memset(s->mark, 0, (size_t)s->slots + 64);
        memset(s->block, 0, (size_t)(s->slots / 64 + 64));
    }
    if (s->octet_steps > 0) *s->octets = (tl_octets){0};
    memset(s->key, 0xff, (size_t)s->table * index);
    memset(s->rows, 0, sizeof s->rows);
    memset(s->products, 0, sizeof s->products);
}

void tl_scratch_done(tl_base *b, tl_scratch *s)
{
    tl_free(b, s->memory);
    memset(s, 0, sizeof *s);
}
