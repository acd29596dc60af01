/* SPDX-License-Identifier: MIT
 *
 * numeric_rows.cl - short rows of C, up to 32 per block, each with its own hash table in shared memory.
 *
 * A team of threads computes a row.  It processes the entries of A one after the other; its threads go along
 * the row of B and have different columns, so keys are inserted by compare-and-swap, but values are added
 * without atomics, and every sum is computed in the order of A, with the same bits as on the CPU.  Then the
 * entries are compacted and sorted: on CUDA by a bitonic network in registers over words of key and slot; on
 * OpenCL by rank, as in spECK: each key counts the smaller ones.  The row is written in order.
 *
 * Shared memory: slots values, slots keys.  There is no block barrier after the rows of the block are
 * known. */

#if TULLE_CUDA
/* Sorts E keys per thread over a team of g threads; afterwards thread t has the t-th E keys. */
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
        for (u32 k = 2; k <= g; k <<= 1) {          /* threads */                                      \
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

/* Compacts the entries of a table in place, towards the front. */
INLINE void move_together(SHARED key_t *keys, SHARED val_t *sums, u32 slots, u32 lane, u32 g,
                          SHARED u32 *moved)
{
    const u32 wide = g < LANES ? g : LANES;
    u32 found = 0;
    for (u32 s0 = 0; s0 < slots; s0 += g) {
        const u32 s = s0 + lane;
        const key_t k = s < slots ? keys[s] : KEY_NONE;
        val_t v = VAL_ZERO;
        if (k != KEY_NONE) v = sums[s];
#if TULLE_CUDA
        const u32 full = lanes_vote(k != KEY_NONE, wide), at = found + lanes_before(full, wide);
        found += popcount32(full);
        OWN_SYNC(g);
#else
        if (s0 == 0u && lane == 0u) *moved = 0;
        OWN_SYNC(g);
        u32 at = 0;
        if (k != KEY_NONE) at = ATOMIC_ADD32(moved, 1u);
        (void)wide;
        (void)found;
#endif
        if (k != KEY_NONE) {
            keys[at] = k;
            sums[at] = v;
        }
        OWN_SYNC(g);
    }
}
#if TULLE_CUDA
#define MOVED 0
#else
#define MOVED &moved
#endif

#if TULLE_CUDA
/* Writes the row in order, sorted by a network in registers over words of key and slot. */
INLINE void write_sorted(SHARED key_t *keys, SHARED const val_t *sums, u32 entries, u32 bits, u32 lane, u32 g,
                         idx_t low, GLOBAL idx_t *to_col, GLOBAL val_t *to_val)
{
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
        to_col[j] = low + (idx_t)(both >> bits);
        to_val[j] = sums[(u32)both & ((1u << bits) - 1u)];
    }
    __syncwarp(mask);
}
#endif

/* The same by rank: each key counts the smaller ones. */
INLINE void write_ranked(SHARED const key_t *keys, SHARED const val_t *sums, u32 entries, u32 lane, u32 g,
                         idx_t low, GLOBAL idx_t *to_col, GLOBAL val_t *to_val)
{
    for (u32 j = lane; j < entries; j += g) {
        const key_t key = keys[j];
        u32 rank = 0;
        for (u32 q = 0; q < entries; q++) rank += keys[q] < key;
        to_col[rank] = low + (idx_t)key;
        to_val[rank] = sums[j];
    }
}

KERNEL(numeric_rows)(SHARED_ARG u32 rows, u32 per, GLOBAL const u32 *list, GLOBAL const u32 *groups,
                     GLOBAL const u32 *cursors, u32 cursor, u32 widest, GLOBAL const ptr_t *a_ptr,
                     GLOBAL const idx_t *a_col, GLOBAL const val_t *a_val, GLOBAL const ptr_t *b_ptr,
                     GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val, GLOBAL const u32 *products,
                     GLOBAL const u16 *longest, GLOBAL const idx_t *lo, GLOBAL const u32 *span, u32 slots,
                     GLOBAL const ptr_t *c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];        /* current rows of B of the teams */
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
        const pack_t pack = pack_of(groups, block, rows, per);
        const u32 first = pack.first, n = pack.count;
        BARRIER();
        if (t == 0) sum_entries = 0, sum_products = 0, max_longest = 0, max_size = 0;
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
            if (entries == 0) continue;                     /* uniform in the team */
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
                TEAM_PRODUCTS(g, m, p,
                    const key_t key = (key_t)(b_col[b + j] - low);
                    const val_t v = VAL_MUL(a, b_val[b + j]);
                    bool fresh;
                    const u32 s = key_claim(keys, my_slots, key, &fresh);
                    sums[s] = VAL_ADD(sums[s], v);)
            }
            move_together(keys, sums, my_slots, lane, g, MOVED);
            const ptr_t to = c_ptr[r];
#if TULLE_CUDA
            /* Key and slot in one word of 32 bits if they fit, which they nearly always do. */
            const u32 bits = log2_ceil(entries);
            if (entries <= 16u * g && span[r] != NOTHING32
                && (KEY == 64 || ((u64)(span[r] - 1u) >> (32u - bits)) == 0)) {
                write_sorted(keys, sums, entries, bits, lane, g, low, c_col + to, c_val + to);
                continue;
            }
#endif
            write_ranked(keys, sums, entries, lane, g, low, c_col + to, c_val + to);
            OWN_SYNC(g);
        }
    }
}
