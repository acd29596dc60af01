/* SPDX-License-Identifier: MIT
 *
 * upper.cl - bhSPARSE's second stage (Liu and Vinter, section VI.A): sorts the rows into 38 bins by the upper
 * bound of their entries, which is the number of their products.
 *
 *   upper_count   rows and products of each bin, and the room of each row in C~: its upper bound, or at most
 *                 `first` entries if it is to be merged.  Sets the count of rows without products
 *   upper_fill    the list of rows, bin by bin; the rows of a warp keep their order
 *
 * A block processes one row per thread, and reserves its part of each bin with one atomic. */

INLINE u32 upper_bin(u32 products, u32 heap_most, u32 esc_most)
{
    if (products <= 1u || products <= heap_most) return products;
    if (products <= esc_most) return products <= 64u ? BIN_ESC : BIN_ESC + log2_ceil(products) - 6u;
    return BIN_MERGE;
}

KERNEL(upper_count)(u32 rows, u32 heap_most, u32 esc_most, u32 first, GLOBAL const u32 *products,
                    GLOBAL const u32 *span, GLOBAL ptr_t *room, GLOBAL ptr_t *c_count, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 bin_rows[BINS], bin_low[BINS], bin_high[BINS], bin_most[BINS];
    STATIC_SHARED u32 room_low, room_high;
    const u32 t = thread_id();
    if (t == 0) {
        room_low = 0;
        room_high = 0;
        for (u32 i = 0; i < BINS; i++) {
            bin_rows[i] = 0u;
            bin_low[i] = 0u;
            bin_high[i] = 0u;
            bin_most[i] = 0u;
        }
    }
    BARRIER();
    const u64 r = (u64)block_id() * thread_count() + t;
    u32 bin = NOTHING32, mine = 0, take = 0;
    if (r < rows) {
        mine = products[r];
        bin = upper_bin(mine, heap_most, esc_most);
        take = mine;
        if (bin == BIN_MERGE) {
            if (span[r] < take) take = span[r];
            if (first < take) take = first;
        }
        room[r] = (ptr_t)take;
        if (mine == 0u) c_count[r] = 0;
    }
    class_count(bin_rows, bin_low, bin_high, bin_most, bin, mine, 0u);
    const u64 sum = lanes_sum64((u64)take);
    if ((t & (LANES - 1u)) == 0u && sum) ADD_SPLIT(&room_low, &room_high, sum);
    BARRIER();
    if (t == 0) {
        for (u32 i = 0; i < BINS; i++)
            if (bin_rows[i]) {
                ATOMIC_ADD64(&summary[i], (u64)bin_rows[i]);
                ATOMIC_ADD64(&summary[BIN_PRODUCTS + i], (u64)bin_high[i] << 32 | bin_low[i]);
            }
        ATOMIC_ADD64(&summary[BIN_ROOM], (u64)room_high << 32 | room_low);
    }
}

/* cursors: rows of each bin so far, zero at first */
KERNEL(upper_fill)(u32 rows, u32 heap_most, u32 esc_most, GLOBAL const u32 *products,
                   GLOBAL const u64 *summary, GLOBAL u32 *cursors, GLOBAL u32 *list)
{
    STATIC_SHARED u32 count[BINS], start[BINS];
    const u32 t = thread_id();
    if (t == 0)
        for (u32 i = 0; i < BINS; i++) count[i] = 0u;
    BARRIER();
    const u64 r = (u64)block_id() * thread_count() + t;
    const u32 bin = r < rows ? upper_bin(products[r], heap_most, esc_most) : NOTHING32;
    u32 rank = 0;
#if TULLE_CUDA
    const u32 same = lanes_match(bin), before = same & ((1u << (t & 31u)) - 1u);
    if (bin != NOTHING32 && before == 0u) rank = ATOMIC_ADD32(&count[bin], popcount32(same));
    rank = __shfl_sync(0xffffffffu, rank, __ffs((int)same) - 1) + popcount32(before);
#else
    if (bin != NOTHING32) rank = ATOMIC_ADD32(&count[bin], 1u);
#endif
    BARRIER();
    for (u32 i = t; i < BINS; i += thread_count())
        if (count[i]) {
            u32 at = ATOMIC_ADD32(&cursors[i], count[i]);
            for (u32 k = 0; k < i; k++) at += (u32)summary[k];
            start[i] = at;
        }
    BARRIER();
    if (bin != NOTHING32) list[start[bin] + rank] = (u32)r;
}
