/* SPDX-License-Identifier: MIT
 *
 * esc.cl - bhSPARSE's bitonic ESC method (Liu and Vinter, Figure 2): rows with at most 512 products, a crew
 * per row.
 *
 * Expand: computes the products of the row, in the order of A, each with a word made of its column and its
 * index.  Sort: sorts the words (crew_sort).  Compress: the first word of each column is tagged, and its
 * thread adds up the run of equal columns; a prefix sum of the tags gives the position in C.  Words of equal
 * column are sorted by index, so sums are computed in the order of A.
 *
 * A crew is one warp for short rows, else the block.  Shared memory: `slots` values and words per crew. */

#define PLACE_BITS 9
#define PLACE(word) ((u32)(word) & ((1u << PLACE_BITS) - 1u))

INLINE u32 crew_scan(u32 x, u32 g, SHARED u32 *words, u32 *total)
{
#if TULLE_CUDA
    if (g <= LANES) {
        u32 sum = x;
        UNROLL for (u32 d = 1; d < 32u; d <<= 1) {
            const u32 left = __shfl_up_sync(0xffffffffu, sum, d);
            if ((thread_id() & 31u) >= d) sum += left;
        }
        *total = __shfl_sync(0xffffffffu, sum, 31);
        return sum - x;
    }
#endif
    return block_scan(x, words, total);
}

KERNEL(esc)(SHARED_ARG u32 first, u32 count, u32 g, u32 slots, GLOBAL const u32 *RESTRICT list,
            GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
            GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
            GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
            GLOBAL const u32 *RESTRICT products, GLOBAL const idx_t *RESTRICT lo,
            GLOBAL const ptr_t *RESTRICT room, GLOBAL idx_t *RESTRICT t_col, GLOBAL val_t *RESTRICT t_val,
            GLOBAL ptr_t *RESTRICT c_count)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t all_begins[THREADS_MAX];        /* begin of the row of B, for the crew's
                                                         * current entries of A */
    STATIC_SHARED u32 all_starts[THREADS_MAX];          /* index of the first product of each */
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 t = thread_id(), crews = thread_count() / g, crew = t / g, lane = t & (g - 1u);
    SHARED val_t *values = (SHARED val_t *)shared_memory + crew * slots;
    SHARED key_t *words = (SHARED key_t *)((SHARED val_t *)shared_memory + crews * slots) + crew * slots;
    SHARED ptr_t *begins = all_begins + crew * g;
    SHARED u32 *starts = all_starts + crew * g;

    for (u64 i = (u64)block_id() * crews + crew; i < count; i += (u64)block_count() * crews) {
        const u32 r = list[first + i], n = products[r];
        const idx_t low = lo[r];
        const ptr_t end = a_ptr[r + 1], to = room[r];
        u32 fill = 0;
        for (ptr_t p = a_ptr[r]; p < end; p += g) {
            u32 length = 0, total;
            CREW_SYNC(g);
            if (p + lane < end) {
                const idx_t k = a_col[p + lane];
                const ptr_t b = b_ptr[k];
                begins[lane] = b;
                length = (u32)(b_ptr[k + 1] - b);
            }
            const u32 start = crew_scan(length, g, scan, &total);
            starts[lane] = start;
            CREW_SYNC(g);
            for (u32 q = lane; q < total; q += g) {
                u32 e = 0, beyond = g;                  /* e becomes the last entry with starts[e] <= q */
                while (beyond - e > 1u) {
                    const u32 mid = (e + beyond) / 2u;
                    if (starts[mid] <= q) e = mid;
                    else beyond = mid;
                }
                const ptr_t b = begins[e] + (q - starts[e]);
                values[fill + q] = VAL_ADD(VAL_ZERO, VAL_MUL(a_val[p + e], b_val[b]));
                words[fill + q] = (key_t)(b_col[b] - low) << PLACE_BITS | (key_t)(fill + q);
            }
            fill += total;
        }
        for (u32 q = n + lane; q < slots; q += g) words[q] = KEY_NONE;
        crew_sort(words, slots, g, lane);
        u32 found = 0;
        for (u32 base = 0; base < n; base += g) {
            const u32 q = base + lane;
            key_t key = 0;
            val_t sum = VAL_ZERO;
            u32 tag = 0, total;
            if (q < n) {
                key = words[q] >> PLACE_BITS;
                tag = q == 0u || words[q - 1u] >> PLACE_BITS != key;
                if (tag) {
                    sum = values[PLACE(words[q])];
                    for (u32 s = q + 1u; s < n && words[s] >> PLACE_BITS == key; s++)
                        sum = VAL_ADD(sum, values[PLACE(words[s])]);
                }
            }
            const u32 at = found + crew_scan(tag, g, scan, &total);
            if (tag) {
                t_col[to + at] = low + (idx_t)key;
                t_val[to + at] = sum;
            }
            found += total;
            CREW_SYNC(g);
        }
        if (lane == 0u) c_count[r] = (ptr_t)found;
    }
}
