/* SPDX-License-Identifier: MIT
 *
 * reg_count.cl - counts the entries of rows of C with at most 512 products ("Register-Aware Optimizations for
 * Parallel Sparse Matrix-Matrix Multiplication", section 3.3: reg-hash), for all three register-aware
 * policies.
 *
 * A crew of threads counts a row.  The products are distributed evenly: each thread loads E columns into
 * registers before the first is hashed, so that all loads overlap.  Then the shared memory of the segments is
 * reused for the hash table; each thread counts its new keys, and the counts are reduced over the lanes.
 *
 *   each_log2   log2(E)
 *   room        slots of a table
 *
 *   slab        shared memory per warp, in words of 8 bytes: E * 33 times (a row pointer and 4 bytes), or
 *               `room` keys for each of its crews, whichever is larger; without lanes, per work group, with
 *               threads + 1 instead of 33 */

#define COUNT_ROW(E)                                                                                         \
    INLINE u32 count_row_##E(crew_t c, SHARED const u32 *starts, SHARED const ptr_t *deltas,                 \
                             SHARED key_t *table,                                                            \
                             u32 found, idx_t low, GLOBAL const idx_t *b_col)                                \
    {                                                                                                        \
        const u32 n = found & 0xffffu, slots = n + n / 2u + 1u;                                              \
        key_t x[E];                                                                                          \
        u32 fresh = 0;                                                                                       \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 q = (e << c.log2) + c.lane;                                                            \
            x[e] = KEY_NONE;                                                                                 \
            if (q < n) x[e] = (key_t)(b_col[deltas[crew_find(c, starts, found >> 16, q)] + q] - low);        \
        }                                                                                                    \
        OWN_SYNC(32u);                                                                                       \
        for (u32 s = c.lane; s < slots; s += c.size) table[s] = KEY_NONE;                                    \
        OWN_SYNC(32u);                                                                                       \
        UNROLL for (u32 e = 0; e < E; e++)                                                                   \
            if (x[e] != KEY_NONE) fresh += key_insert(table, slots, x[e]);                                   \
        return fresh;                                                                                        \
    }
COUNT_ROW(2)
COUNT_ROW(4)
COUNT_ROW(8)
COUNT_ROW(16)
#define COUNT_CALL(E) count_row_##E(c, starts, deltas, table, found, low, b_col)

KERNEL_FOR(CREW_BLOCKS(10), reg_hash_count)
(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
 GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
 GLOBAL const idx_t *RESTRICT lo, u32 team_log2, u32 each_log2, u32 room, u32 slab, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    LANE_MEMORY
    const crew_t c = crew_make(team_log2);
    const u32 crews = thread_count() >> team_log2;
    SHARED ptr_t *deltas = (SHARED ptr_t *)(shared_memory + slab * c.slab);
    SHARED u32 *starts = (SHARED u32 *)(deltas + (c.pitch << each_log2));
    SHARED key_t *table = (SHARED key_t *)deltas + room * (c.stage >> team_log2);
    for (u64 first = (u64)block_id() * crews; first < count; first += (u64)block_count() * crews) {
        const u64 i = first + c.mine;
        u32 r = 0, entries = 0;
        ptr_t begin = 0;
        idx_t low = 0;
        if (i < count) {
            r = GIVEN(rows) ? rows[i] : (u32)i;
            begin = a_ptr[r];
            entries = (u32)(a_ptr[r + 1] - begin);
            low = lo[r];
        }
        OWN_SYNC(32u);
        const u32 found = crew_segments(c, begin, entries, a_col, b_ptr, starts, deltas, pass);
        u32 sum;
        if (each_log2 == 1u) sum = COUNT_CALL(2);
        else if (each_log2 == 2u) sum = COUNT_CALL(4);
        else if (each_log2 == 3u) sum = COUNT_CALL(8);
        else sum = COUNT_CALL(16);
        for (u32 d = 1; d < c.size; d <<= 1) {
            u32 other;
            LANE_XOR(u32, other, sum, d, c.size, pass);
            sum += other;
        }
        if (i < count && c.lane == 0u) c_count[r] = (ptr_t)sum;
    }
}
