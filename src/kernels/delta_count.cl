/* SPDX-License-Identifier: MIT
 *
 * delta_count.cl - DeltaSPARSE's symbolic step (Yang, Zhang and Ma, section III.A): counts the entries of a
 * row of C, a block per row.
 *
 *   delta_hash_count    a hash table in shared memory with at least two slots for each product, and
 *                       Algorithm 1: a row whose keys collide too often, or that has more entries than the
 *                       table is for, or that is dense from the start, is listed in `redo`
 *   delta_dense_count   one bit per column, in windows of words * 32 columns
 *
 * Keys are columns relative to the first of the row; hash function (key * prime) mod slots, linear probing.
 * The paper does not say how many collisions it allows; here it is `slots`, four times what random keys
 * cause at a load factor of one half.
 *
 * Shared memory: delta_hash_count slots * sizeof(key_t), slots a power of two; delta_dense_count words * 4
 * bytes. */

#define PRIME 107u

/* Lists the row for the dense array; only thread 0 writes. */
INLINE void give_up(u32 r, u32 products, GLOBAL u64 *board, GLOBAL u32 *cursors, GLOBAL u32 *redo)
{
    redo[ATOMIC_ADD32(&cursors[DELTA_REDO], 1u)] = r;
    ATOMIC_ADD64(&board[DELTA_REDONE], (u64)products);
}

/* Returns the number of collisions of this key; more than `slots`: the table is full. */
INLINE u32 insert(SHARED key_t *keys, u32 slots, key_t key, bool *fresh)
{
    u32 s = (u32)key * PRIME & (slots - 1u), met = 0;
    *fresh = false;
    while (met <= slots) {
        key_t k = KEY_PEEK(&keys[s]);
        if (k == KEY_NONE) {
            k = KEY_CAS(&keys[s], KEY_NONE, key);
            *fresh = k == KEY_NONE;
            if (*fresh) break;
        }
        if (k == key) break;
        s = (s + 1u) & (slots - 1u);
        met++;
    }
    return met;
}

KERNEL(delta_hash_count)(SHARED_ARG u32 count, u32 first_row, GLOBAL const u32 *RESTRICT rows, u32 most,
                         u32 dense_from, GLOBAL const ptr_t *RESTRICT a_ptr,
                         GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                         GLOBAL const idx_t *RESTRICT b_col, GLOBAL const u32 *RESTRICT products,
                         GLOBAL const u16 *RESTRICT longest, GLOBAL const idx_t *RESTRICT lo, u32 slots,
                         GLOBAL u64 *board, GLOBAL u32 *cursors, GLOBAL u32 *redo, GLOBAL u8 *hard,
                         GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 collisions, used;
    SHARED key_t *keys = (SHARED key_t *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();

    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = GIVEN(rows) ? rows[first_row + i] : (u32)i;
        const u32 here = products[r];
        if (here == 0u || here >= dense_from) {                 /* uniform in the block */
            if (t == 0u && here == 0u) c_count[r] = 0;
            if (t == 0u && here) give_up(r, here, board, cursors, redo);
            continue;
        }
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin);
        const walk_t w = walk_make(group_log2(threads, entries, here, longest[r], threads), entries);
        const idx_t from = lo[r];
        const bool watch = here > most;                         /* entries may exceed the table */
        u32 found = 0;
        for (u32 s = t; s < slots; s += threads) keys[s] = KEY_NONE;
        if (t == 0u) {
            collisions = 0;
            used = 0;
        }
        BARRIER();
        for (u32 first = 0; first < w.rounds; first += w.width) {
            const u32 e = walk_entry(w, first);
            const u32 left = w.rounds - first < w.width ? w.rounds - first : w.width;
            ptr_t begin = 0, end = 0;
            if (e < entries) {
                const idx_t k = a_col[a_begin + e];
                begin = b_ptr[k];
                end = b_ptr[k + 1];
            }
            for (u32 j = 0; j < left; j++) {
                const ptr_t stop = LANE_FROM(end, j, w.width);
                for (ptr_t at = LANE_FROM(begin, j, w.width) + w.lane; at < stop; at += w.size) {
                    if (PEEK32(&collisions) > slots || (watch && PEEK32(&used) > most)) break;
                    bool fresh;
                    const u32 met = insert(keys, slots, (key_t)(b_col[at] - from), &fresh);
                    if (fresh) found++;
                    if (fresh && watch) ATOMIC_ADD32(&used, 1u);
                    if (met) ATOMIC_ADD32(&collisions, met);
                }
            }
        }
        BARRIER();
        const u32 total = block_sum(found, scan);
        if (t == 0u) {
            const bool collided = collisions > slots;
            if (collided) {
                hard[r] = 1;
                ATOMIC_ADD32(&cursors[DELTA_COLLIDED], 1u);
            }
            if (collided || total > most) give_up(r, here, board, cursors, redo);
            else c_count[r] = (ptr_t)total;
        }
        BARRIER();
    }
}

INLINE void mark(SHARED u32 *bits, u32 column)
{
    const u32 bit = 1u << (column & 31u);
    if (!(PEEK32(bits + (column >> 5)) & bit)) ATOMIC_OR32(bits + (column >> 5), bit);
}

/* counter: if given, contains the number of rows.  If a row is wider than a window, the next window begins at
 * the smallest remaining column, so that gaps are skipped. */
KERNEL(delta_dense_count)(SHARED_ARG u32 count, u32 first_row, GLOBAL const u32 *RESTRICT rows,
                          GLOBAL const u32 *RESTRICT counter, u32 counted,
                          GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                          GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                          GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                          GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 words,
                          GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED idx_t next;
    SHARED u32 *bits = (SHARED u32 *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();
    const u32 rows_here = counted == NOTHING32 ? count : counter[counted];
    const u64 window = (u64)words * 32u;

    for (u32 s = t; s < words; s += threads) bits[s] = 0u;
    for (u64 i = block_id(); i < rows_here; i += block_count()) {
        const u32 r = GIVEN(rows) ? rows[first_row + i] : (u32)i;
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), width = span[r];
        const bool cut = width > window;
        const u32 windows = cut ? (u32)(width / window) + 1u : 1u, full = cut ? words : (width + 31u) >> 5;
        const walk_t w = walk_make(group_log2(threads, entries, products[r] / windows,
                                              (longest[r] + windows - 1u) / windows, threads),
                                   entries);
        idx_t from = lo[r];
        u64 found = 0;
        bool more = true;
        while (more) {
            const idx_t limit = from + (idx_t)window;
            if (t == 0u) next = IDX_NONE;
            BARRIER();
            for (u32 first = 0; first < w.rounds; first += w.width) {
                const u32 e = walk_entry(w, first);
                const u32 left = w.rounds - first < w.width ? w.rounds - first : w.width;
                ptr_t begin = 0, end = 0;
                if (e < entries) {
                    const idx_t k = a_col[a_begin + e];
                    const ptr_t row_end = b_ptr[k + 1];
                    begin = b_ptr[k];
                    end = row_end;
                    if (cut) {
                        begin = column_from(b_col, begin, row_end, from);
                        end = column_from(b_col, begin, row_end, limit);
                        if (end < row_end && b_col[end] < IDX_PEEK(&next)) IDX_MIN(&next, b_col[end]);
                    }
                }
                for (u32 j = 0; j < left; j++) {
                    const ptr_t stop = LANE_FROM(end, j, w.width);
                    for (ptr_t at = LANE_FROM(begin, j, w.width) + w.lane; at < stop; at += w.size)
                        mark(bits, (u32)(b_col[at] - from));
                }
            }
            BARRIER();
            from = next;
            u32 n = 0;
            for (u32 s = t; s < full; s += threads) {
                n += popcount32(bits[s]);
                bits[s] = 0u;
            }
            found += block_sum(n, scan);
            more = cut && from != IDX_NONE;
            BARRIER();                          /* `next` and the sum may be overwritten */
        }
        if (t == 0u) c_count[r] = (ptr_t)found;
    }
}
