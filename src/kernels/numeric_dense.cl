/* SPDX-License-Identifier: MIT
 *
 * numeric_dense.cl - computes a row of C in an array with one value per column, a block per row: no keys, no
 * sort; the columns are processed in windows of `slots` (spECK, section 4.3).
 *
 * Slots without an entry hold -0.0, so no separate marks are needed: a sum that begins with +0.0 is never
 * -0.0, and neither is a product after +0.0 was added to it, which changes no sum.  After each window the
 * slots in use are ranked (a ballot per warp, a scan over the block), written to C in order, and reset.
 *
 * If rows of B are long enough for the whole block, it processes the entries of A one after the other: its
 * threads have different columns, need no atomics, and every sum is computed in the order of A, with the same
 * bits as on the CPU.  Otherwise groups process several rows of B at once with atomic adds.
 * If a row is wider than a window, `positions` stores how much of each row of B is done, and the next window
 * begins at the smallest remaining column.  Columns of B ascend.
 *
 * Shared memory: slots * sizeof(val_t).
 * positions: stride words per block; stride >= the entries of any row of A whose row of C is wider than a
 * window. */

#define AHEAD 1u                /* rows of B that a group processes at once */

/* The value of an empty slot, the test for it, and how to keep a product from looking like one. */
#if VAL == 1
#define UNTOUCHED       (-0.0f)
#define TOUCHED(v)      (BITS_F32(v) != 0x80000000u)
#define PRODUCT(a, b)   ((a) * (b) + 0.0f)
#elif VAL == 2
#define UNTOUCHED       (-0.0)
#define TOUCHED(v)      (BITS_F64(v) != 0x8000000000000000UL)
#define PRODUCT(a, b)   ((a) * (b) + 0.0)
#else
#define UNTOUCHED       val_make(-(real_t)0, (real_t)0)
#if VAL == 3
#define TOUCHED(v)      (BITS_F32((v).re) != 0x80000000u)
#else
#define TOUCHED(v)      (BITS_F64((v).re) != 0x8000000000000000UL)
#endif
INLINE val_t product(val_t a, val_t b)
{
    return val_make(a.re * b.re - a.im * b.im + (real_t)0, a.re * b.im + a.im * b.re);
}
#define PRODUCT(a, b)   product(a, b)
#endif

/* For a column beyond the window: if it is the first such column of its row of B, the next window resumes the
 * row here. */
INLINE void leave(ptr_t row, ptr_t first, ptr_t at, idx_t column, idx_t limit,
                  GLOBAL const idx_t *RESTRICT b_col, SHARED idx_t *next, GLOBAL u32 *position)
{
    if (at == first || b_col[at - 1u] < limit) {
        *position = (u32)(at - row);
        if (column < IDX_PEEK(next)) IDX_MIN(next, column);
    }
}

/* Adds `rounds` rows of B, one after the other, by the `size` threads of a team.  Lane j has the bounds
 * [begin, end) of the j-th row and its factor a.  With `resumed`, only columns below `limit`. */
INLINE void own_rows(const bool resumed, u32 rounds, u32 width, u32 lane, u32 size, ptr_t start, ptr_t begin,
                     ptr_t end, val_t a, GLOBAL const idx_t *RESTRICT b_col,
                     GLOBAL const val_t *RESTRICT b_val, idx_t from, idx_t limit, SHARED val_t *sums,
                     SHARED idx_t *next, GLOBAL u32 *position)
{
    for (u32 j = 0; j < rounds; j += AHEAD) {
        ptr_t row[AHEAD], first[AHEAD], stop[AHEAD];
        val_t factor[AHEAD], value[AHEAD];
        idx_t column[AHEAD];
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            const u32 k = j + q < rounds ? j + q : j;
            if (resumed) row[q] = LANE_FROM(start, k, width);
            first[q] = LANE_FROM(begin, k, width);
            stop[q] = LANE_FROM(end, k, width);
            factor[q] = VAL_FROM(a, k, width);
            if (j + q >= rounds) stop[q] = first[q];
            if (first[q] + lane < stop[q]) {
                column[q] = b_col[first[q] + lane];
                value[q] = b_val[first[q] + lane];
            }
        }
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            for (ptr_t at = first[q] + lane; at < stop[q];) {
                if (resumed && column[q] >= limit) {
                    leave(row[q], first[q], at, column[q], limit, b_col, next, position + j + q);
                    break;
                }
                if (resumed && at + 1u == stop[q]) position[j + q] = (u32)(stop[q] - row[q]);
                SHARED val_t *sum = sums + (u32)(column[q] - from);
                *sum = VAL_ADD(*sum, PRODUCT(factor[q], value[q]));
                at += size;
                if (at < stop[q]) {
                    column[q] = b_col[at];
                    value[q] = b_val[at];
                }
            }
            CREW_SYNC(size);
        }
    }
}

/* The same for one of several groups, with atomic adds and AHEAD rows at once. */
INLINE void share_rows(const bool resumed, u32 rounds, u32 width, u32 lane, u32 size, ptr_t start,
                       ptr_t begin, ptr_t end, val_t a, GLOBAL const idx_t *RESTRICT b_col,
                       GLOBAL const val_t *RESTRICT b_val, idx_t from, idx_t limit, SHARED val_t *sums,
                       SHARED idx_t *next, GLOBAL u32 *position, u32 step)
{
    for (u32 j = 0; j < rounds; j += AHEAD) {
        ptr_t row[AHEAD], first[AHEAD], at[AHEAD], stop[AHEAD];
        val_t factor[AHEAD];
        UNROLL for (u32 q = 0; q < AHEAD; q++) {
            const u32 k = j + q < rounds ? j + q : j;
            if (resumed) row[q] = LANE_FROM(start, k, width);
            first[q] = LANE_FROM(begin, k, width);
            stop[q] = LANE_FROM(end, k, width);
            factor[q] = VAL_FROM(a, k, width);
            at[q] = first[q] + lane;
            if (j + q >= rounds) stop[q] = at[q];
        }
        bool more = true;
        while (more) {
            val_t value[AHEAD];
            idx_t column[AHEAD];
            UNROLL for (u32 q = 0; q < AHEAD; q++)
                if (at[q] < stop[q]) {
                    column[q] = b_col[at[q]];
                    value[q] = b_val[at[q]];
                }
            more = false;
            UNROLL for (u32 q = 0; q < AHEAD; q++) {
                if (at[q] >= stop[q]) continue;
                if (resumed && column[q] >= limit) {
                    leave(row[q], first[q], at[q], column[q], limit, b_col, next, position + (j + q) * step);
                    at[q] = stop[q];
                    continue;
                }
                if (resumed && at[q] + 1u == stop[q]) position[(j + q) * step] = (u32)(stop[q] - row[q]);
                const val_t v = PRODUCT(factor[q], value[q]);
                VAL_ATOMIC_ADD(sums + (u32)(column[q] - from), v);
                at[q] += size;
                if (at[q] < stop[q]) more = true;
            }
        }
    }
}

/* Writes the entries among `width` slots to C, in order, and resets them.  Returns their number.  A team of
 * one warp goes through the slots once; in a wider team (the block) each warp has a part, and counts it
 * first. */
INLINE u32 write_row(u32 lane, u32 size, u32 width, SHARED val_t *sums, idx_t from, GLOBAL idx_t *to_col,
                     GLOBAL val_t *to_val, SHARED u32 *scan)
{
    const u32 crew = size < LANES ? size : LANES, crews = size / crew, place = lane & (crew - 1u);
    const u32 steps = (width + size - 1u) / size, first = lane / crew * steps * crew;
    u32 at = 0, total = 0;
    if (crews > 1u) {
        u32 n = 0;
        for (u32 i = 0, s = first + place; i < steps; i++, s += crew)
            if (s < width && TOUCHED(sums[s])) n++;
        at = block_scan(n, scan, &total);
        at = LANE_FROM(at, 0, crew);
    }
    for (u32 i = 0, s = first + place; i < steps; i++, s += crew) {
        val_t v = UNTOUCHED;
        if (s < width) v = sums[s];
        const bool touched = TOUCHED(v);
        const u32 vote = lanes_vote(touched, crew);
        if (touched) {
            const u32 k = at + lanes_before(vote, crew);
            to_col[k] = from + s;
            to_val[k] = v;
            sums[s] = UNTOUCHED;
        }
        at += popcount32(vote);
    }
    return crews > 1u ? total : at;
}

KERNEL(numeric_dense)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,
                      GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                      GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                      GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                      GLOBAL const u32 *RESTRICT products, GLOBAL const u16 *RESTRICT longest,
                      GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 slots,
                      GLOBAL u32 *positions, u32 stride, GLOBAL const ptr_t *RESTRICT c_ptr,
                      GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED idx_t next;
    SHARED val_t *sums = (SHARED val_t *)shared_memory;
    GLOBAL u32 *position = positions + (u64)block_id() * stride;
    const u32 t = thread_id(), threads = thread_count();

    for (u32 s = t; s < slots; s += threads) sums[s] = UNTOUCHED;
    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), width = span[r];
        const bool resumed = width > slots;
        const u32 windows = resumed ? width / slots + 1u : 1u, used = resumed ? slots : width;
        const walk_t w = walk_make(group_log2(threads, entries, products[r] / windows,
                                              (longest[r] + windows - 1u) / windows, threads),
                                   entries);
        idx_t from = lo[r];
        ptr_t to = c_ptr[r];
        bool again = false, more = true;
        while (more) {
            const idx_t limit = from + (idx_t)slots;
            if (t == 0) next = IDX_NONE;
            BARRIER();
            for (u32 first = 0; first < w.rounds; first += w.width) {
                const u32 e = walk_entry(w, first);
                const u32 left = w.rounds - first < w.width ? w.rounds - first : w.width;
                ptr_t start = 0, begin = 0, end = 0;
                val_t a = VAL_ZERO;
                if (e < entries) {
                    const idx_t k = a_col[a_begin + e];
                    a = a_val[a_begin + e];
                    start = b_ptr[k];
                    end = b_ptr[k + 1];
                    begin = again && end > start ? start + position[e] : start;
                }
                if (resumed && w.size > LANES) BARRIER();       /* `positions` may be overwritten */
                if (w.groups == 1u) {
                    if (resumed)
                        own_rows(true, left, w.width, w.lane, w.size, start, begin, end, a, b_col, b_val,
                                 from, limit, sums, &next, position + first);
                    else
                        own_rows(false, left, w.width, w.lane, w.size, start, begin, end, a, b_col, b_val,
                                 from, limit, sums, &next, position);
                } else if (resumed) {
                    share_rows(true, left, w.width, w.lane, w.size, start, begin, end, a, b_col, b_val, from,
                               limit, sums, &next, position + first * w.groups + w.group, w.groups);
                } else {
                    share_rows(false, left, w.width, w.lane, w.size, start, begin, end, a, b_col, b_val, from,
                               limit, sums, &next, position, 0u);
                }
            }
            BARRIER();
            const idx_t after = next;
            to += write_row(t, threads, used, sums, from, c_col + to, c_val + to, scan);
            from = after;
            again = true;
            more = resumed && after != IDX_NONE;
            BARRIER();                          /* `next` may be overwritten; slots are reset */
        }
    }
}
