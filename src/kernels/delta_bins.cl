/* SPDX-License-Identifier: MIT
 *
 * delta_bins.cl - DeltaSPARSE's local scheduling (Yang, Zhang and Ma, section III.B, Tables I and II): bins
 * the rows by their products (symbolic step) or, once these are counted, by their entries of C (numeric).
 *
 *   delta_tally   rows and products of each bin; sets the count of rows without products
 *   delta_list    the list of rows, bin by bin; the rows of a warp keep their order
 *
 * Both determine the bin of a row from the same arguments: the limit `most` of each size (0: no such table),
 * `dense_from`, the number of entries from which a row counts as dense, and whether its keys collided.  A
 * block processes one row per thread, and reserves its part of each bin with one atomic. */

INLINE u32 delta_bin(u32 n, u32 dense_from, u32 hard, u32 most0, u32 most1, u32 most2, u32 most3, u32 most4)
{
    if (n == 0u) return DELTA_EMPTY;
    if (n > most4) return DELTA_DENSE;
    const u32 size = n <= most0 ? 0u : n <= most1 ? 1u : n <= most2 ? 2u : n <= most3 ? 3u : 4u;
    return (n >= dense_from || hard ? DELTA_NARROW : DELTA_HASH) + size;
}

KERNEL(delta_tally)(u32 rows, u32 numeric, u32 dense_from, u32 most0, u32 most1, u32 most2, u32 most3,
                    u32 most4, GLOBAL const u32 *products, GLOBAL const u8 *hard, GLOBAL ptr_t *c_ptr,
                    GLOBAL u64 *board)
{
    STATIC_SHARED u32 bin_rows[DELTA_BINS], bin_low[DELTA_BINS], bin_high[DELTA_BINS], bin_most[DELTA_BINS];
    const u32 t = thread_id();
    if (t == 0)
        for (u32 i = 0; i < DELTA_BINS; i++) {
            bin_rows[i] = 0u;
            bin_low[i] = 0u;
            bin_high[i] = 0u;
            bin_most[i] = 0u;
        }
    BARRIER();
    const u64 r = (u64)block_id() * thread_count() + t;
    u32 bin = NOTHING32, mine = 0;
    if (r < rows) {
        mine = products[r];
        const u32 n = numeric ? (u32)(c_ptr[r + 1] - c_ptr[r]) : mine;
        bin = delta_bin(n, dense_from, hard[r], most0, most1, most2, most3, most4);
        if (!numeric && bin == DELTA_EMPTY) c_ptr[r] = 0;
    }
    class_count(bin_rows, bin_low, bin_high, bin_most, bin, mine, 0u);
    BARRIER();
    if (t == 0)
        for (u32 i = 0; i < DELTA_BINS; i++)
            if (bin_rows[i]) {
                ATOMIC_ADD64(&board[i], (u64)bin_rows[i]);
                ATOMIC_ADD64(&board[DELTA_PRODUCTS + i], (u64)bin_high[i] << 32 | bin_low[i]);
            }
}

/* cursors: rows of each bin so far, zero at first */
KERNEL(delta_list)(u32 rows, u32 numeric, u32 dense_from, u32 most0, u32 most1, u32 most2, u32 most3,
                   u32 most4, GLOBAL const u32 *products, GLOBAL const u8 *hard, GLOBAL const ptr_t *c_ptr,
                   GLOBAL const u64 *board, GLOBAL u32 *cursors, GLOBAL u32 *list)
{
    STATIC_SHARED u32 count[DELTA_BINS], start[DELTA_BINS];
    const u32 t = thread_id();
    if (t == 0)
        for (u32 i = 0; i < DELTA_BINS; i++) count[i] = 0u;
    BARRIER();
    const u64 r = (u64)block_id() * thread_count() + t;
    u32 bin = NOTHING32, rank = 0;
    if (r < rows) {
        const u32 n = numeric ? (u32)(c_ptr[r + 1] - c_ptr[r]) : products[r];
        bin = delta_bin(n, dense_from, hard[r], most0, most1, most2, most3, most4);
    }
#if TULLE_CUDA
    const u32 same = lanes_match(bin), before = same & ((1u << (t & 31u)) - 1u);
    if (bin != NOTHING32 && before == 0u) rank = ATOMIC_ADD32(&count[bin], popcount32(same));
    rank = __shfl_sync(0xffffffffu, rank, __ffs((int)same) - 1) + popcount32(before);
#else
    if (bin != NOTHING32) rank = ATOMIC_ADD32(&count[bin], 1u);
#endif
    BARRIER();
    for (u32 i = t; i < DELTA_BINS; i += thread_count())
        if (count[i]) {
            u32 at = ATOMIC_ADD32(&cursors[i], count[i]);
            for (u32 k = 0; k < i; k++) at += (u32)board[k];
            start[i] = at;
        }
    BARRIER();
    if (bin != NOTHING32) list[start[bin] + rank] = (u32)r;
}
