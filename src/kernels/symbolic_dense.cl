/* SPDX-License-Identifier: MIT
 *
 * symbolic_dense.cl - counts the entries of a row of C with one bit per column.
 *
 *   symbolic_dense        a block per row; the columns are processed in windows of words * 32 (spECK, section
 *                         4.3)
 *   symbolic_dense_rows   a team per row; every row fits into one window
 *
 * A bit is tested before it is set: if many products have the same column, most of them need no atomic.  If a
 * row is wider than a window, `positions` stores for each entry of A how much of its row of B is done, and
 * the next window begins at the smallest remaining column, so that gaps are skipped.  Columns of B ascend.
 *
 * Shared memory: symbolic_dense words * 4 bytes; symbolic_dense_rows words * 4 bytes for each team of a
 * block.  positions: stride words per block; stride >= the entries of any row of A whose row of C is wider
 * than a window.  Team: 1..32 threads on CUDA, the whole work group on OpenCL. */

/* Rows of B that a group processes at once: as many as fit the registers of a block of 1024 threads. */
#if PTR == 64
#define AHEAD 2u
#else
#define AHEAD 4u
#endif

INLINE void mark(SHARED u32 *bits, u32 column)
{
    const u32 bit = 1u << (column & 31u);
    if (!(PEEK32(bits + (column >> 5)) & bit)) ATOMIC_OR32(bits + (column >> 5), bit);
}

/* Marks the columns [from, limit) of `rounds` rows of B; lane j has the bounds [begin, end) of the j-th.
 * With `resumed`, stores how much of each row is done, and finds the smallest remaining column. */
INLINE void mark_rows(const bool resumed, u32 rounds, u32 width, u32 lane, u32 size, ptr_t start, ptr_t begin,
                      ptr_t end, GLOBAL const idx_t *RESTRICT b_col, idx_t from, idx_t limit,
                      SHARED u32 *bits, SHARED idx_t *next, GLOBAL u32 *position, u32 step)
{
    for (u32 j = 0; j < rounds; j += AHEAD) {
        ptr_t row[AHEAD], first[AHEAD], at[AHEAD], stop[AHEAD];
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            const u32 k = j + q < rounds ? j + q : j;
            if (resumed) row[q] = LANE_FROM(start, k, width);
            first[q] = LANE_FROM(begin, k, width);
            stop[q] = LANE_FROM(end, k, width);
            at[q] = first[q] + lane;
            if (j + q >= rounds) stop[q] = at[q];
        }
        bool more = true;
        while (more) {
            idx_t column[AHEAD];
            UNROLL for (u32 q = 0; q < AHEAD; q++)
                if (at[q] < stop[q]) column[q] = b_col[at[q]];
            more = false;
            UNROLL for (u32 q = 0; q < AHEAD; q++) {
                if (at[q] >= stop[q]) continue;
                if (!resumed || column[q] < limit) {
                    mark(bits, (u32)(column[q] - from));
                    if (resumed && at[q] + 1u == stop[q]) position[(j + q) * step] = (u32)(stop[q] - row[q]);
                    at[q] += size;
                    if (at[q] < stop[q]) more = true;
                } else {
                    if (at[q] == first[q] || b_col[at[q] - 1u] < limit) {
                        position[(j + q) * step] = (u32)(at[q] - row[q]);
                        if (column[q] < IDX_PEEK(next)) IDX_MIN(next, column[q]);
                    }
                    at[q] = stop[q];
                }
            }
        }
    }
}

KERNEL(symbolic_dense)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                       GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                       GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                       GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                       GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 words,
                       GLOBAL u32 *positions, u32 stride, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED idx_t next;
    SHARED u32 *bits = (SHARED u32 *)shared_memory;
    GLOBAL u32 *position = positions + (u64)block_id() * stride;
    const u32 t = thread_id(), threads = thread_count();
    const u64 window = (u64)words * 32u;

    for (u32 s = t; s < words; s += threads) bits[s] = 0u;
    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), width = span[r];
        const bool resumed = width > window;
        const u32 windows = resumed ? (u32)((width + window - 1u) / window) : 1u;
        const u32 used = resumed ? words : (width + 31u) >> 5;
        const walk_t w = walk_make(group_log2(threads, entries, products[r] / windows,
                                              (longest[r] + windows - 1u) / windows, threads),
                                   entries);
        idx_t from = lo[r];
        u64 found = 0;
        bool again = false, more = true;
        while (more) {
            const idx_t limit = from + (idx_t)window;
            if (t == 0) next = IDX_NONE;
            BARRIER();
            for (u32 first = 0; first < w.rounds; first += w.width) {
                const u32 e = walk_entry(w, first);
                const u32 left = w.rounds - first < w.width ? w.rounds - first : w.width;
                ptr_t start = 0, begin = 0, end = 0;
                if (e < entries) {
                    const idx_t k = a_col[a_begin + e];
                    start = b_ptr[k];
                    end = b_ptr[k + 1];
                    begin = again && end > start ? start + position[e] : start;
                }
                if (resumed && w.size > LANES) BARRIER();       /* `positions` may be overwritten */
                if (resumed)
                    mark_rows(true, left, w.width, w.lane, w.size, start, begin, end, b_col, from, limit,
                              bits, &next, position + first * w.groups + w.group, w.groups);
                else
                    mark_rows(false, left, w.width, w.lane, w.size, start, begin, end, b_col, from, limit,
                              bits, &next, position, 0u);
            }
            BARRIER();
            from = next;
            u32 n = 0;
            for (u32 s = t; s < used; s += threads) {
                n += popcount32(bits[s]);
                bits[s] = 0u;
            }
            found += block_sum(n, scan);
            again = true;
            more = resumed && from != IDX_NONE;
            BARRIER();                          /* `next` and the sum may be overwritten */
        }
        if (t == 0) c_count[r] = (ptr_t)found;
    }
}

KERNEL(symbolic_dense_rows)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                            GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                            GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                            GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 team,
                            u32 words, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
#if !TULLE_CUDA
    STATIC_SHARED u32 scan[SCAN_WORDS];
#endif
    const u32 teams = thread_count() / team, lane = thread_id() & (team - 1u), mine = thread_id() / team;
    SHARED u32 *bits = (SHARED u32 *)shared_memory + mine * words;

    for (u32 s = lane; s < words; s += team) bits[s] = 0u;
    CREW_SYNC(team);
    for (u64 i = (u64)block_id() * teams + mine; i < count; i += (u64)block_count() * teams) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), used = (span[r] + 31u) >> 5;
        const idx_t from = lo[r];
#if TULLE_CUDA
        /* Short rows of B are processed in parallel, with as many lanes each as they have entries on
         * average. */
        for (u32 first = 0; first < entries; first += team) {
            const u32 here = entries - first < team ? entries - first : team;
            ptr_t begin = 0, end = 0;
            if (lane < here) {
                const idx_t k = a_col[a_begin + first + lane];
                begin = b_ptr[k];
                end = b_ptr[k + 1];
            }
            u32 sum = (u32)(end - begin);
            for (u32 d = team >> 1; d > 0u; d >>= 1) sum += __shfl_xor_sync(team_mask(team), sum, d);
            u32 size_log2 = log2_ceil((sum + here - 1u) / here);
            if ((1u << size_log2) > team) size_log2 = log2_floor(team);
            const u32 size = 1u << size_log2, groups = team >> size_log2, group = lane >> size_log2;
            for (u32 j = 0; j < here; j += groups * AHEAD) {
                ptr_t at[AHEAD], stop[AHEAD];
                UNROLL for (u32 q = 0; q < AHEAD; q++) {
                    const u32 e = j + q * groups + group;
                    at[q] = LANE_FROM(begin, e & (team - 1u), team) + (lane & (size - 1u));
                    stop[q] = LANE_FROM(end, e & (team - 1u), team);
                    if (e >= here) stop[q] = at[q];
                }
                bool more = true;
                while (more) {
                    idx_t column[AHEAD];
                    UNROLL for (u32 q = 0; q < AHEAD; q++)
                        if (at[q] < stop[q]) column[q] = b_col[at[q]];
                    more = false;
                    UNROLL for (u32 q = 0; q < AHEAD; q++)
                        if (at[q] < stop[q]) {
                            mark(bits, (u32)(column[q] - from));
                            at[q] += size;
                            if (at[q] < stop[q]) more = true;
                        }
                }
            }
        }
#else
        for (u32 e = 0; e < entries; e++) {
            const idx_t k = a_col[a_begin + e];
            const ptr_t end = b_ptr[k + 1];
            for (ptr_t at = b_ptr[k] + lane; at < end; at += team) mark(bits, (u32)(b_col[at] - from));
        }
#endif
        CREW_SYNC(team);
        u32 n = 0;
        for (u32 s = lane; s < used; s += team) {
            n += popcount32(bits[s]);
            bits[s] = 0u;
        }
#if TULLE_CUDA
        for (u32 d = team >> 1; d > 0u; d >>= 1) n += __shfl_xor_sync(team_mask(team), n, d);
#else
        n = block_sum(n, scan);
#endif
        if (lane == 0) c_count[r] = (ptr_t)n;
        CREW_SYNC(team);
    }
}
