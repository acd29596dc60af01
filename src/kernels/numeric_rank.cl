/* SPDX-License-Identifier: MIT
 *
 * numeric_rank.cl - the dense accumulator with a slot for every column that occurs, not for every column there is; a team
 * of threads a row.
 *
 * A first walk over the rows of B sets a bit for each column; counting the bits before each word gives every column its
 * place in the row (its rank); a second walk adds the products up there.  No probing, no sort, no slack: C's
 * columns are read off the bits in order.  Threads of a team hold different columns, so adds are plain and in the
 * order of A: the bits of the CPU.  There is no barrier of the block on CUDA.
 *
 * Shared memory: for each team `bytes`, a multiple of 16: 8 bytes for each 32 columns of the span (bits, and how many come
 * before), a multiple of 16, then a value for each entry of the row. */

KERNEL(numeric_rank)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
                     GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                     GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                     GLOBAL const val_t *RESTRICT b_val, GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span,
                     u32 team_log2, u32 bytes, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];            /* rows of B that the teams are at */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED val_t factors[THREADS_MAX];
#if !TULLE_CUDA
    STATIC_SHARED u32 scan[SCAN_WORDS];
#endif
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2;
    SHARED u32 *pairs = (SHARED u32 *)shared_memory + (bytes / 4u) * mine;

    for (u64 i = (u64)block_id() * teams + mine; i < count; i += (u64)block_count() * teams) {
        const u32 r = GIVEN(rows) ? rows[i] : (u32)i;
        const ptr_t a_begin = a_ptr[r], to = c_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), n = (u32)(c_ptr[r + 1] - to), used = (span[r] + 31u) >> 5;
        const idx_t from = lo[r];
        SHARED val_t *sums = (SHARED val_t *)(pairs + 4u * ((used + 1u) >> 1));
        SHARED u32 *columns = (SHARED u32 *)sums;       /* before there are sums */
        for (u32 s = lane; s < 2u * used; s += team) pairs[s] = 0u;

        /* Bits; short rows of B side by side. */
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
        OWN_SYNC(team);

        /* How many come before each word: a thread has a piece of the words, of odd length because of the banks. */
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
            OWN_SYNC(team);
            if (lane < here) {
                const idx_t k = a_col[a_begin + first + lane];
                const ptr_t b = b_ptr[k];
                begins[t] = b;
                lengths[t] = (u32)(b_ptr[k + 1] - b);
                factors[t] = a_val[a_begin + first + lane];
            }
            OWN_SYNC(team);
            for (u32 e = 0; e < here; e++) {
                const ptr_t b = begins[stage + e];
                const u32 length = lengths[stage + e];
                const val_t a = factors[stage + e];
                for (u32 j = lane; j < length; j += team) {
                    const u32 k = rank_of(pairs, (u32)(b_col[b + j] - from));
                    sums[k] = VAL_ADD(sums[k], VAL_MUL(a, b_val[b + j]));
                }
                OWN_SYNC(team);
            }
        }
        for (u32 j = lane; j < n; j += team) c_val[to + j] = sums[j];
        OWN_SYNC(team);
    }
}
