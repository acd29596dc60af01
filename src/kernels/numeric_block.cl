/* SPDX-License-Identifier: MIT
 *
 * numeric_block.cl - computes a row of C in a hash table in shared memory, a block per row.
 *
 * The row is written in the order of the table; sort_rows sorts it afterwards.
 *
 * Keys are columns relative to the first of the row; linear probing.  Groups of threads process several rows
 * of B at once and add with atomics.  If rows of B are long enough for the whole block, it processes the
 * entries of A one after the other: its threads have different columns, so no atomics are needed and sums are
 * computed in the order of A.
 *
 * Shared memory: slots * (sizeof(val_t) + sizeof(key_t)); slots is a multiple of 4, and more than the entries
 * of any row. */

#define AHEAD 2u                /* rows of B that a group processes at once */

/* Adds `rounds` rows of B, one after the other, by the whole block.  Lane j has the bounds [begin, end) of
 * the j-th row and its factor a. */
INLINE void own_rows(u32 rounds, walk_t w, ptr_t begin, ptr_t end, val_t a,
                     GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val, idx_t from,
                     SHARED val_t *sums, SHARED key_t *keys, u32 slots)
{
    for (u32 j = 0; j < rounds; j += AHEAD) {
        ptr_t at[AHEAD], stop[AHEAD];
        val_t factor[AHEAD], value[AHEAD];
        idx_t column[AHEAD];
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            const u32 k = j + q < rounds ? j + q : j;
            at[q] = LANE_FROM(begin, k, w.width) + w.lane;
            stop[q] = LANE_FROM(end, k, w.width);
            factor[q] = VAL_FROM(a, k, w.width);
            if (j + q >= rounds) stop[q] = at[q];
            if (at[q] < stop[q]) {
                column[q] = b_col[at[q]];
                value[q] = b_val[at[q]];
            }
        }
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            while (at[q] < stop[q]) {
                bool fresh;
                const u32 s = key_claim(keys, slots, (key_t)(column[q] - from), &fresh);
                sums[s] = VAL_ADD(sums[s], VAL_MUL(factor[q], value[q]));
                at[q] += w.size;
                if (at[q] < stop[q]) {
                    column[q] = b_col[at[q]];
                    value[q] = b_val[at[q]];
                }
            }
            BARRIER();
        }
    }
}

/* The same for one of several groups, with atomic adds and AHEAD rows at once. */
INLINE void share_rows(u32 left, walk_t w, ptr_t begin, ptr_t end, val_t a,
                       GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val, idx_t from,
                       SHARED val_t *sums, SHARED key_t *keys, u32 slots)
{
    WALK_VALUES(const val_t v = VAL_MUL(factor[q], value[q]);
                bool fresh;
                const u32 s = key_claim(keys, slots, (key_t)(column[q] - from), &fresh);
                VAL_ATOMIC_ADD(sums + s, v);)
}

/* Adds all products of a row to the table, by all threads of the block; a barrier must follow. */
INLINE void add_row(ptr_t a_begin, u32 entries, u32 products, u32 longest, idx_t from,
                    GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                    GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                    GLOBAL const val_t *RESTRICT b_val, SHARED val_t *sums, SHARED key_t *keys, u32 slots)
{
    const walk_t w =
        walk_make(group_log2(thread_count(), entries, products, longest, thread_count()), entries);
    WALK_FACTORS(
        if (w.groups == 1u) own_rows(left, w, begin, end, a, b_col, b_val, from, sums, keys, slots);
        else share_rows(left, w, begin, end, a, b_col, b_val, from, sums, keys, slots);)
}

KERNEL(numeric_block)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                      GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                      GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                      GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                      GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                      GLOBAL const idx_t *RESTRICT lo, u32 slots, GLOBAL const ptr_t *RESTRICT c_ptr,
                      GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 written;
    SHARED val_t *sums = (SHARED val_t *)shared_memory;
    SHARED key_t *keys = (SHARED key_t *)(sums + slots);
    const u32 t = thread_id(), threads = thread_count();
    const u32 crew = threads < LANES ? threads : LANES;

    for (u32 s = t; s < slots; s += threads) {
        keys[s] = KEY_NONE;
        sums[s] = VAL_ZERO;
    }
    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r], to = c_ptr[r];
        const idx_t from = lo[r];
        if (t == 0) written = 0;
        BARRIER();
        add_row(a_begin, (u32)(a_ptr[r + 1] - a_begin), products[r], longest[r], from, a_col, a_val, b_ptr,
                b_col, b_val, sums, keys, slots);
        BARRIER();
        for (u32 s0 = 0; s0 < slots; s0 += threads) {
            const u32 s = s0 + t;
            const key_t key = s < slots ? keys[s] : KEY_NONE;
            const u32 vote = lanes_vote(key != KEY_NONE, crew);
            u32 at = 0;
            if (vote && (t & (crew - 1u)) == 0u) at = ATOMIC_ADD32(&written, popcount32(vote));
            at = LANE_FROM(at, 0, crew) + lanes_before(vote, crew);
            if (key != KEY_NONE) {
                c_col[to + at] = from + (idx_t)key;
                c_val[to + at] = sums[s];
                keys[s] = KEY_NONE;
                sums[s] = VAL_ZERO;
            }
        }
        BARRIER();
    }
}
