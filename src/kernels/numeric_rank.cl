/* SPDX-License-Identifier: MIT
 *
 * numeric_rank.cl - a dense accumulator with slots only for the columns that occur; a team of threads per
 * row.
 *
 * A first pass over the rows of B sets a bit for each column; the number of bits set before a column is its
 * position in the row (its rank); a second pass adds the products there.  This needs no probing, no sort, and
 * no empty slots; the columns of C are read from the bitmask in order.  The threads of a team have different
 * columns, so they need no atomics, and sums are computed in the order of A, with the same bits as on the
 * CPU.  No block barriers on CUDA.
 *
 * Shared memory: `bytes` per team, a multiple of 16: 8 bytes for each 32 columns of the span (bitmask, and
 * number of bits before it), rounded up to a multiple of 16, then a value for each entry of the row. */

/* Sets a bit for each column of a row of C; several short rows of B at once. */
INLINE void mark_columns(ptr_t a_begin, u32 entries, idx_t from, u32 t, u32 lane, u32 team, u32 stage,
                         GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                         GLOBAL const idx_t *RESTRICT b_col, SHARED ptr_t *begins, SHARED u32 *lengths,
                         SHARED u32 *pairs)
{
    for (u32 first = 0; first < entries; first += team) {
        const u32 here = entries - first < team ? entries - first : team;
        u32 length = 0;
        OWN_SYNC(team);
        if (lane < here) {
            const idx_t k = a_col[a_begin + first + lane];
            const ptr_t b = b_ptr[k];
            length = (u32)(b_ptr[k + 1] - b);
            begins[t] = b;
            lengths[t] = length;
        }
        u32 size = team;
#if TULLE_CUDA
        u32 sum = length;
        for (u32 d = team >> 1; d > 0u; d >>= 1) sum += __shfl_xor_sync(team_mask(team), sum, d);
        size = 1u << log2_ceil((sum + here - 1u) / here);
        if (size > team) size = team;
#endif
        const u32 groups = team / size, group = lane / size, place = lane & (size - 1u);
        OWN_SYNC(team);
        for (u32 e = group; e < here; e += 2u * groups) {
            const u32 f = e + groups < here ? e + groups : e;
            const ptr_t b0 = begins[stage + e], b1 = begins[stage + f];
            const u32 n0 = lengths[stage + e], n1 = f == e ? 0u : lengths[stage + f];
            for (u32 j = place; j < n0 || j < n1; j += size) {
                const idx_t c0 = j < n0 ? b_col[b0 + j] : 0, c1 = j < n1 ? b_col[b1 + j] : 0;
                if (j < n0) rank_mark(pairs, (u32)(c0 - from));
                if (j < n1) rank_mark(pairs, (u32)(c1 - from));
            }
        }
    }
}

KERNEL(numeric_rank)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                     GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                     GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                     GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                     GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 team_log2,
                     u32 bytes, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];            /* current rows of B of the teams */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED val_t factors[THREADS_MAX];
#if !TULLE_CUDA
    STATIC_SHARED u32 scan[SCAN_WORDS];
#endif
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2;
    SHARED u32 *pairs = (SHARED u32 *)shared_memory + (bytes / 4u) * mine;

    for (u64 i = (u64)block_id() * teams + mine; i < count; i += (u64)block_count() * teams) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r], to = c_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), n = (u32)(c_ptr[r + 1] - to),
                  used = (span[r] + 31u) >> 5;
        const idx_t from = lo[r];
        SHARED val_t *sums = (SHARED val_t *)(pairs + 4u * ((used + 1u) >> 1));
        SHARED u32 *columns = (SHARED u32 *)sums;       /* before the sums need the space */
        for (u32 s = lane; s < 2u * used; s += team) pairs[s] = 0u;

        mark_columns(a_begin, entries, from, t, lane, team, stage, a_col, b_ptr, b_col, begins, lengths,
                     pairs);
        OWN_SYNC(team);

        /* The number of bits before each word.  Each thread counts a part of the words, of odd length to
         * avoid
     * bank conflicts. */
        const u32 piece = ((used + team - 1u) >> team_log2) | 1u;
        const u32 w0 = lane * piece < used ? lane * piece : used, w1 = w0 + piece < used ? w0 + piece : used;
        u32 own = 0;
        for (u32 w = w0; w < w1; w++) own += popcount32(pairs[2u * w]);
#if TULLE_CUDA
        u32 upto = own;
        for (u32 d = 1; d < team; d <<= 1) {
            const u32 left = __shfl_up_sync(team_mask(team), upto, d, (int)team);
            if (lane >= d) upto += left;
        }
        u32 before = upto - own;
#else
        u32 all;
        u32 before = block_scan(own, scan, &all);
#endif
        for (u32 w = w0; w < w1; w++) {
            u32 bits = pairs[2u * w];
            pairs[2u * w + 1u] = before;
            while (bits) {
                columns[before++] = 32u * w + 31u - clz32(bits & (0u - bits));
                bits &= bits - 1u;
            }
        }
        OWN_SYNC(team);
        for (u32 j = lane; j < n; j += team) c_col[to + j] = from + (idx_t)columns[j];
        OWN_SYNC(team);
        for (u32 j = lane; j < n; j += team) sums[j] = VAL_ZERO;

        for (u32 first = 0; first < entries; first += team) {
            const u32 here = entries - first < team ? entries - first : team;
            TEAM_PRODUCTS(team, here, a_begin + first,
                const u32 place = rank_of(pairs, (u32)(b_col[b + j] - from));
                sums[place] = VAL_ADD(sums[place], VAL_MUL(a, b_val[b + j]));)
        }
        for (u32 j = lane; j < n; j += team) c_val[to + j] = sums[j];
        OWN_SYNC(team);
    }
}
