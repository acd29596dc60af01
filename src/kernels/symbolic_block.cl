/* SPDX-License-Identifier: MIT
 *
 * symbolic_block.cl - counts the entries of a row of C with a hash table in shared memory, a block per row.
 *
 *   symbolic_block   the table has a slot for every product, or for every column of the row
 *   symbolic_spill   the table may be too small: whenever it is nearly full, its keys are moved to a table in
 *                    global memory (the "map"), and it is emptied (spECK, section 4.3)
 *
 * Keys are columns relative to the first of the row; linear probing.
 *
 * Shared memory: slots * sizeof(key_t).  symbolic_spill needs slots >= thread_count().
 * maps: map_slots keys per block, all KEY_NONE before and after; map_slots > the entries of any row. */

#define AHEAD 2u                /* rows of B that a group processes at once */

KERNEL(symbolic_block)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                       GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                       GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                       GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                       GLOBAL const idx_t *RESTRICT lo, u32 slots, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    SHARED key_t *keys = (SHARED key_t *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();

    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin);
        const walk_t w = walk_make(group_log2(threads, entries, products[r], longest[r], threads), entries);
        const idx_t from = lo[r];
        u32 found = 0;
        for (u32 s = t; s < slots; s += threads) keys[s] = KEY_NONE;
        BARRIER();
        WALK_COLUMNS(if (key_insert(keys, slots, (key_t)(column[q] - from))) found++;)
        found = block_sum(found, scan);
        if (t == 0) c_count[r] = (ptr_t)found;
        BARRIER();
    }
}

/* key_insert for the table in global memory. */
INLINE bool insert_far(GLOBAL key_t *map, u64 slots, key_t key)
{
    u64 s = mulhi64((u64)key * 0x9e3779b97f4a7c15UL, slots);
    for (;;) {
        key_t k = KEY_PEEK(map + s);
        if (k == KEY_NONE) {
            k = KEY_CAS(map + s, KEY_NONE, key);
            if (k == KEY_NONE) return true;
        }
        if (k == key) return false;
        s = s + 1u == slots ? 0u : s + 1u;
    }
}

KERNEL(symbolic_spill)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                       GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                       GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                       GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                       GLOBAL const idx_t *RESTRICT lo, u32 slots, GLOBAL key_t *maps, u64 map_slots,
                       GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 used, busy;       /* keys in the table; the last round with unfinished rows */
    STATIC_SHARED u64 moved;            /* keys in the map */
    SHARED key_t *keys = (SHARED key_t *)shared_memory;
    GLOBAL key_t *map = maps + (u64)block_id() * map_slots;
    const u32 t = thread_id(), threads = thread_count();

    for (u32 s = t; s < slots; s += threads) keys[s] = KEY_NONE;
    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), most = products[r];
        const walk_t w = walk_make(group_log2(threads, entries, most, longest[r], threads), entries);
        const idx_t from = lo[r];
        /* A short row uses only the front of the map, since the part in use must be reset. */
        const u64 far = most != NOTHING32 && (u64)most + most / 2u + 1u < map_slots
                            ? (u64)most + most / 2u + 1u
                            : map_slots;
        u32 e = w.group, round = 0, fill = 0;
        ptr_t at = 0, stop = 0;
        bool spilled = false, more = true;
        BARRIER();
        if (t == 0) {
            used = 0;
            busy = 0;
            moved = 0;
        }
        BARRIER();
        while (more) {
            /* The number of keys per thread for which there is certainly room. */
            u32 turns = (slots - fill) / threads, fresh = 0;
            round++;
            for (;;) {
                while (at >= stop && e < entries) {
                    const idx_t k = a_col[a_begin + e];
                    at = b_ptr[k] + w.lane;
                    stop = b_ptr[k + 1];
                    e += w.groups;
                }
                if (at >= stop || turns == 0u) break;
                turns--;
                if (key_insert(keys, slots, (key_t)(b_col[at] - from))) fresh++;
                at += w.size;
            }
            if (fresh) ATOMIC_ADD32(&used, fresh);
            if (at < stop && PEEK32(&busy) != round) ATOMIC_MAX32(&busy, round);
            BARRIER();
            fill = used;
            more = busy == round;
            BARRIER();
            /* Probing a nearly full table is slow; and at the end all keys must be in the same table. */
            const bool full = slots - fill < threads || fill > slots - slots / 4u;
            const bool move = (more && full) || (!more && spilled);
            if (move) {
                u32 n = 0;
                for (u32 s = t; s < slots; s += threads) {
                    const key_t k = keys[s];
                    if (k == KEY_NONE) continue;
                    if (insert_far(map, far, k)) n++;
                    keys[s] = KEY_NONE;
                }
                if (n) ATOMIC_ADD64(&moved, (u64)n);
                if (t == 0) used = 0;
                spilled = true;
                fill = 0;
                BARRIER();
            }
        }
        if (t == 0) c_count[r] = (ptr_t)(spilled ? moved : (u64)fill);
        if (spilled)
            for (u64 s = t; s < far; s += threads) map[s] = KEY_NONE;
        else
            for (u32 s = t; s < slots; s += threads) keys[s] = KEY_NONE;
    }
}
