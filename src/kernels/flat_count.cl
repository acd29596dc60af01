/* SPDX-License-Identifier: MIT
 *
 * flat_count.cl - counts the entries of rows of C whose columns are scattered, with a hash table in shared
 * memory, a warp per row.
 *
 * The products of 32 entries of A are dealt evenly to the lanes, whatever the lengths of the rows of B:
 * product q goes to lane q mod 32.  Each entry of A sets a bit in the window of 32 products where its products
 * begin; the number of bits up to a lane says which entry the lane belongs to, and a shuffle fetches where
 * that row of B begins.  So all lanes load and probe in every turn, and no position is searched in shared memory.
 *
 * Without lanes a work group takes a row: the beginnings of its threads' rows of B are in shared memory, and
 * every thread searches for the entry of its product by bisection.
 *
 *   bits      log2 of the number of slots of a row's table, which is at least the number of its columns; keys
 *             are columns relative to the first of the row
 *
 * Shared memory: a table for each team, of sizeof(key_t) bytes per slot. */

/* 1 if the key is new.  Linear probing as key_insert(), but the number of slots is a power of two. */
INLINE u32 flat_insert(SHARED key_t *table, u32 bits, key_t key)
{
    const u32 last = (1u << bits) - 1u;
    u32 s = KEY_HASH(key) >> (32u - bits);
    for (;;) {
        key_t k = KEY_PEEK(&table[s]);
        if (k == KEY_NONE) {
            k = KEY_CAS(&table[s], KEY_NONE, key);
            if (k == KEY_NONE) return 1u;
        }
        if (k == key) return 0u;
        s = (s + 1u) & last;
    }
}

#if TULLE_CUDA
#define TEAM    32u

INLINE void flat_clear(key_t *table, u32 bits)
{
    uint4 *to = (uint4 *)table, none;
    none.x = none.y = none.z = none.w = NOTHING32;
    for (u32 s = thread_id() & 31u; s < (u32)(sizeof(key_t) << bits) / 16u; s += 32u) to[s] = none;
}

/* The position of the n-th bit that is set, counted from 0; any, if there are fewer. */
INLINE u32 bit_at(u32 mask, u32 n)
{
    u32 at = 0;
    UNROLL for (u32 d = 16; d > 0u; d >>= 1) {
        const u32 below = popcount32(mask >> at & ((1u << d) - 1u));
        if (n >= below) {
            n -= below;
            at += d;
        }
    }
    return at;
}

INLINE u32 flat_row(key_t *table, u32 bits, ptr_t begin, ptr_t end, idx_t low, const idx_t *RESTRICT a_col,
                    const ptr_t *RESTRICT b_ptr, const idx_t *RESTRICT b_col)
{
    const u32 lane = thread_id() & 31u, to_here = NOTHING32 >> (31u - lane);
    u32 fresh = 0;
    for (ptr_t at = begin; at < end; at += 32u) {
        ptr_t b = 0;
        u32 length = 0;
        if (at + lane < end) {
            const idx_t k = a_col[at + lane];
            b = b_ptr[k];
            length = (u32)(b_ptr[k + 1] - b);
        }
        const u32 live = lanes_vote(length > 0u, 32u);
        if (live & (live + 1u)) {               /* move up the lanes behind empty rows of B */
            const u32 from = bit_at(live, lane);
            b = LANE_FROM(b, from, 32u);
            length = LANE_FROM(length, from, 32u);
            if (lane >= popcount32(live)) length = 0;
        }
        u32 start = length;
        UNROLL for (u32 d = 1; d < 32u; d <<= 1) {
            const u32 left = __shfl_up_sync(NOTHING32, start, d);
            if (lane >= d) start += left;
        }
        const u32 total = LANE_FROM(start, 31u, 32u);
        start -= length;
        b -= start;
        u32 before = NOTHING32;                 /* entries that begin before the window, minus one */
        for (u32 window = 0; window < total; window += 32u) {
            const u32 place = start - window, q = window + lane;
            const u32 begins = lanes_or(length && place < 32u ? 1u << place : 0u);
            const ptr_t from = LANE_FROM(b, before + popcount32(begins & to_here), 32u);
            before += popcount32(begins);
            if (q < total) fresh += flat_insert(table, bits, (key_t)(b_col[from + q] - low));
        }
    }
    return lanes_sum_of(NOTHING32, fresh);
}
#define FLAT_MEMORY
#define FLAT_ROW    flat_row(table, bits, begin, end, lo[r], a_col, b_ptr, b_col)
#else
#define TEAM    thread_count()

INLINE void flat_clear(SHARED key_t *table, u32 bits)
{
    for (u32 s = thread_id(); s < 1u << bits; s += thread_count()) table[s] = KEY_NONE;
}

INLINE u32 flat_row(SHARED key_t *table, u32 bits, ptr_t begin, ptr_t end, idx_t low,
                    GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                    SHARED u32 *starts, SHARED ptr_t *positions, SHARED u32 *scan)
{
    const u32 t = thread_id(), threads = thread_count();
    u32 fresh = 0;
    for (ptr_t at = begin; at < end; at += threads) {
        ptr_t b = 0;
        u32 length = 0, total;
        if (at + t < end) {
            const idx_t k = a_col[at + t];
            b = b_ptr[k];
            length = (u32)(b_ptr[k + 1] - b);
        }
        const u32 start = block_scan(length, scan, &total);
        starts[t] = start;
        positions[t] = b - start;
        BARRIER();
        for (u32 q = t; q < total; q += threads) {
            u32 e = 0;                          /* the last entry that begins at q or before */
            for (u32 d = 1u << log2_ceil(threads) >> 1; d > 0u; d >>= 1)
                if (e + d < threads && starts[e + d] <= q) e += d;
            fresh += flat_insert(table, bits, (key_t)(b_col[positions[e] + q] - low));
        }
        BARRIER();
    }
    return block_sum(fresh, scan);
}
#define FLAT_MEMORY                             \
    STATIC_SHARED u32 starts[THREADS_MAX];      \
    STATIC_SHARED ptr_t positions[THREADS_MAX]; \
    STATIC_SHARED u32 scan[SCAN_WORDS];
#define FLAT_ROW    flat_row(table, bits, begin, end, lo[r], a_col, b_ptr, b_col, starts, positions, scan)
#endif

KERNEL_FOR(CREW_BLOCKS(12), flat_count)
(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
 GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
 GLOBAL const idx_t *RESTRICT lo, u32 bits, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    FLAT_MEMORY
    const u32 teams = thread_count() / TEAM, team = thread_id() / TEAM;
    SHARED key_t *table = (SHARED key_t *)shared_memory + (team << bits);
    for (u64 i = (u64)block_id() * teams + team; i < count; i += (u64)block_count() * teams) {
        const u32 r = row_at(rows, i);
        const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
        flat_clear(table, bits);
        OWN_SYNC(32u);
        const u32 found = FLAT_ROW;
        if (thread_id() % TEAM == 0u) c_count[r] = (ptr_t)found;
        OWN_SYNC(32u);
    }
}
