/* SPDX-License-Identifier: MIT
 *
 * numeric_rank_block.cl - numeric_rank.cl for long rows, a block per row: groups of threads process several
 * rows of B at once and add with atomics.
 *
 * Shared memory: 8 bytes for each 32 columns of the span, rounded up to a multiple of 16, then a value for
 * each entry of the row. */

#define AHEAD 2u

KERNEL(numeric_rank_block)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                           GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                           GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                           GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                           GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                           GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span,
                           GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    SHARED u32 *pairs = (SHARED u32 *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();

    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r], to = c_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), n = (u32)(c_ptr[r + 1] - to),
                  used = (span[r] + 31u) >> 5;
        const idx_t from = lo[r];
        SHARED val_t *sums = (SHARED val_t *)(pairs + 4u * ((used + 1u) >> 1));
        const walk_t w = walk_make(group_log2(threads, entries, products[r], longest[r], threads), entries);
        for (u32 s = t; s < 2u * used; s += threads) pairs[s] = 0u;
        BARRIER();
        WALK_COLUMNS(rank_mark(pairs, (u32)(column[q] - from));)
        BARRIER();
        const u32 piece = ((used + threads - 1u) / threads) | 1u;
        const u32 w0 = t * piece < used ? t * piece : used, w1 = w0 + piece < used ? w0 + piece : used;
        u32 own = 0, all;
        for (u32 s = w0; s < w1; s++) own += popcount32(pairs[2u * s]);
        u32 before = block_scan(own, scan, &all);
        for (u32 s = w0; s < w1; s++) {
            pairs[2u * s + 1u] = before;
            before += popcount32(pairs[2u * s]);
        }
        BARRIER();
        if (8u * n < 32u * used)                /* few bits: a thread per word; many: a thread per bit, to
                                                 * coalesce writes */
            for (u32 s = t; s < used; s += threads) {
                u32 bits = pairs[2u * s], k = pairs[2u * s + 1u];
                for (; bits; bits &= bits - 1u, k++)
                    c_col[to + k] = from + (idx_t)(32u * s + 31u - clz32(bits & (0u - bits)));
            }
        else for (u32 s = t; s < 32u * used; s += threads) {
            const u32 bits = pairs[2u * (s >> 5)], bit = 1u << (s & 31u);
            if (bits & bit)
                c_col[to + pairs[2u * (s >> 5) + 1u] + popcount32(bits & (bit - 1u))] = from + (idx_t)s;
        }
        for (u32 j = t; j < n; j += threads) sums[j] = VAL_ZERO;
        BARRIER();

        WALK_PRODUCTS(const val_t v = VAL_MUL(factor[q], value[q]);
                      const u32 place = rank_of(pairs, (u32)(column[q] - from));
                      VAL_ATOMIC_ADD(sums + place, v);)
        BARRIER();
        for (u32 j = t; j < n; j += threads) c_val[to + j] = sums[j];
        BARRIER();
    }
}
