/* SPDX-License-Identifier: MIT
 *
 * numeric_rows.cl - short rows of C, up to 32 a block, each with its own hash table in shared memory.
 *
 * A team of threads owns a row.  It takes the entries of A one after the other, its threads walk along the row of B:
 * they hold different columns, so keys are claimed by compare-and-swap but values are added without atomics,
 * and every sum is taken in the order of A: the bits of the CPU.  Then entries move together, and are sorted: on CUDA
 * by a bitonic network in registers over words of key and place; elsewhere each key counts the smaller ones, as in
 * spECK.  The row is written in order.
 *
 * Shared memory: slots values, slots keys.  No barrier of the block stands between the first look at its rows and the
 * end. */

#if TULLE_CUDA
/* Sorts E keys a thread, thread by thread, over a team of g threads. */
#define SORT_TEAM(E)                                                                                   \
    INLINE void sort_team_##E(SHARED key_t *list, u32 n, u32 lane, u32 g, u32 mask)                    \
    {                                                                                                  \
        key_t x[E];                                                                                    \
        UNROLL for (u32 e = 0; e < E; e++) x[e] = lane * E + e < n ? list[lane * E + e] : KEY_NONE;    \
        UNROLL for (u32 k = 2; k <= E; k <<= 1)                                                        \
            UNROLL for (u32 j = k >> 1; j > 0; j >>= 1)                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                     \
                    if (!(e & j)) {                                                                    \
                        const bool up = k < E ? !(e & k) : !(lane & 1u);                               \
                        const key_t a = x[e], b = x[e | j];                                            \
                        const bool swap = (a > b) == up;                                               \
                        x[e] = swap ? b : a;                                                           \
                        x[e | j] = swap ? a : b;                                                       \
                    }                                                                                  \
        for (u32 k = 2; k <= g; k <<= 1) {          /* in threads */                                   \
            const bool up = !(lane & k);                                                               \
            for (u32 j = k >> 1; j > 0; j >>= 1) {                                                     \
                const bool low = !(lane & j);                                                          \
                UNROLL for (u32 e = 0; e < E; e++) {                                                   \
                    const key_t other = __shfl_xor_sync(mask, x[e], j);                                    \
                    const bool least = low == up;                                                      \
                    x[e] = (other < x[e]) == least ? other : x[e];                                     \
                }                                                                                      \
            }                                                                                          \
            UNROLL for (u32 j = E >> 1; j > 0; j >>= 1)                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                     \
                    if (!(e & j)) {                                                                    \
                        const key_t a = x[e], b = x[e | j];                                            \
                        const bool swap = (a > b) == up;                                               \
                        x[e] = swap ? b : a;                                                           \
                        x[e | j] = swap ? a : b;                                                       \
                    }                                                                                  \
        }                                                                                              \
        UNROLL for (u32 e = 0; e < E; e++) if (lane * E + e < n) list[lane * E + e] = x[e];            \
    }
SORT_TEAM(1)
SORT_TEAM(2)
SORT_TEAM(4)
SORT_TEAM(8)
SORT_TEAM(16)
#endif

KERNEL(numeric_rows)(SHARED_ARG u32 rows, u32 per, GLOBAL const u32 *list, GLOBAL const u32 *groups,
                     GLOBAL const u32 *cursors, u32 cursor, u32 widest, GLOBAL const ptr_t *a_ptr, GLOBAL const idx_t *a_col,
                     GLOBAL const val_t *a_val, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                     GLOBAL const val_t *b_val, GLOBAL const u32 *products, GLOBAL const u16 *longest,
                     GLOBAL const idx_t *lo, GLOBAL const u32 *span, u32 slots, GLOBAL const ptr_t *c_ptr, GLOBAL idx_t *c_col,
                     GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];        /* rows of B that the teams are at */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED val_t factors[THREADS_MAX];
    STATIC_SHARED u32 row[32], size[32];
    STATIC_SHARED u32 sum_entries, sum_products, max_longest, max_size;
#if !TULLE_CUDA
    STATIC_SHARED u32 moved;
#endif
    SHARED val_t *all_sums = (SHARED val_t *)shared_memory;
    SHARED key_t *all_keys = (SHARED key_t *)(all_sums + slots);
    const u32 t = thread_id(), threads = thread_count();
    const int listed = GIVEN(groups);
    const u32 total = listed ? cursors[cursor] : (rows + per - 1u) / per;

    for (u32 block = block_id(); block < total; block += block_count()) {
        const u32 first = listed ? groups[block] >> 5 : block * per;
        const u32 n = listed ? (groups[block] & 31u) + 1u : (rows - first < per ? rows - first : per);
        BARRIER();
        if (t == 0) {
            sum_entries = 0;
            sum_products = 0;
            max_longest = 0;
            max_size = 0;
        }
        BARRIER();
        for (u32 i = t; i < n; i += threads) {
            const u32 r = listed ? list[first + i] : first + i;
            const u32 entries = (u32)(c_ptr[r + 1] - c_ptr[r]);
            row[i] = r;
            size[i] = entries;
            ATOMIC_ADD32(&sum_entries, (u32)(a_ptr[r + 1] - a_ptr[r]));
            ATOMIC_ADD32(&sum_products, products[r]);
            ATOMIC_MAX32(&max_longest, longest[r]);
            ATOMIC_MAX32(&max_size, entries);
        }
        BARRIER();
        u32 g_log2 = group_log2(threads, sum_entries, sum_products, max_longest, widest);
        while (((n << g_log2) < threads || (16u << g_log2) < max_size) && (1u << g_log2) < widest) g_log2++;
        if (TEAM_FIXED) g_log2 = log2_floor(threads);
        const u32 g = 1u << g_log2, lane = t & (g - 1u), team = t >> g_log2, teams = threads >> g_log2;
        const u32 stage = team << g_log2;
        u32 at_slot = 0, seen = 0;

        for (u32 i = team; i < n; i += teams) {
            for (; seen < i; seen++)
                if (size[seen]) at_slot += NUMERIC_SLOTS(size[seen]);
            const u32 entries = size[i];
            if (entries == 0) continue;                     /* the same for all of the team */
            const u32 my_slots = NUMERIC_SLOTS(entries);
            SHARED val_t *sums = all_sums + at_slot;
            SHARED key_t *keys = all_keys + at_slot;
            for (u32 s = lane; s < my_slots; s += g) {
                keys[s] = KEY_NONE;
                sums[s] = VAL_ZERO;
            }
            const u32 r = row[i];
            const idx_t low = lo[r];
            const ptr_t end = a_ptr[r + 1];
            for (ptr_t p = a_ptr[r]; p < end; p += g) {
                const u32 m = end - p < g ? (u32)(end - p) : g;
                OWN_SYNC(g);
                if (lane < m) {
                    const idx_t k = a_col[p + lane];
                    const ptr_t b = b_ptr[k];
                    begins[t] = b;
                    lengths[t] = (u32)(b_ptr[k + 1] - b);
                    factors[t] = a_val[p + lane];
                }
                OWN_SYNC(g);
                for (u32 e = 0; e < m; e++) {
                    const ptr_t b = begins[stage + e];
                    const u32 length = lengths[stage + e];
                    const val_t a = factors[stage + e];
                    for (u32 j = lane; j < length; j += g) {
                        const key_t key = (key_t)(b_col[b + j] - low);
                        const val_t v = VAL_MUL(a, b_val[b + j]);
                        bool fresh;
                        const u32 s = key_claim(keys, my_slots, key, &fresh);
                        sums[s] = VAL_ADD(sums[s], v);
                    }
                    OWN_SYNC(g);
                }
            }
            /* Entries move together, in place: none moves up. */
            const ptr_t to = c_ptr[r];
            const u32 wide = g < LANES ? g : LANES, bits = log2_ceil(entries);
            u32 found = 0;
            for (u32 s0 = 0; s0 < my_slots; s0 += g) {
                const u32 s = s0 + lane;
                const key_t k = s < my_slots ? keys[s] : KEY_NONE;
                val_t v = VAL_ZERO;
                if (k != KEY_NONE) v = sums[s];
#if TULLE_CUDA
                const u32 full = lanes_vote(k != KEY_NONE, wide), at = found + lanes_before(full, wide);
                found += popcount32(full);
                OWN_SYNC(g);
#else
                if (s0 == 0u && lane == 0u) moved = 0;
                OWN_SYNC(g);
                u32 at = 0;
                if (k != KEY_NONE) at = ATOMIC_ADD32(&moved, 1u);
                (void)wide;
                (void)found;
#endif
                if (k != KEY_NONE) {
                    keys[at] = k;
                    sums[at] = v;
                }
                OWN_SYNC(g);
            }
#if TULLE_CUDA
            /* Key and place in one word where they fit: they nearly always do. */
            if (entries <= 16u * g && span[r] != NOTHING32 && (KEY == 64 || ((u64)(span[r] - 1u) >> (32u - bits)) == 0)) {
                const u32 mask = team_mask(g);
                for (u32 j = lane; j < entries; j += g) keys[j] = keys[j] << bits | (key_t)j;
                __syncwarp(mask);
                if (entries <= g) sort_team_1(keys, entries, lane, g, mask);
                else if (entries <= 2u * g) sort_team_2(keys, entries, lane, g, mask);
                else if (entries <= 4u * g) sort_team_4(keys, entries, lane, g, mask);
                else if (entries <= 8u * g) sort_team_8(keys, entries, lane, g, mask);
                else sort_team_16(keys, entries, lane, g, mask);
                __syncwarp(mask);
                for (u32 j = lane; j < entries; j += g) {
                    const key_t both = keys[j];
                    c_col[to + j] = low + (idx_t)(both >> bits);
                    c_val[to + j] = sums[(u32)both & ((1u << bits) - 1u)];
                }
                __syncwarp(mask);
                continue;
            }
#endif
            for (u32 j = lane; j < entries; j += g) {
                const key_t key = keys[j];
                u32 rank = 0;
                for (u32 q = 0; q < entries; q++) rank += keys[q] < key;
                c_col[to + rank] = low + (idx_t)key;
                c_val[to + rank] = sums[j];
            }
            OWN_SYNC(g);
        }
    }
}
