/* SPDX-License-Identifier: MIT
 *
 * delta_fill.cl - DeltaSPARSE's numeric step (Yang, Zhang and Ma, section III.A): computes the entries of a
 * row of C, a block per row.
 *
 *   delta_hash_fill     a hash table in shared memory with at least two slots for each entry.  Its entries
 *                       are compacted and sorted by rank (each counts the smaller ones); rows with more than
 *                       `count_most` entries are written unsorted and listed for sort_rows.cl.  A row that
 *                       does not fit is listed in `redo`
 *   delta_dense_fill    an array with one value per column and a bitmap of the columns that occur, in windows
 *                       of `slots` columns; no keys, no sort
 *
 * The paper adds values with atomics, in an order that depends on timing.  Here the columns of a row are
 * divided into ranges, one for each warp of the block (on OpenCL: each thread).  A warp goes through all
 * entries of A in order and takes from each row of B its own range, found by bisection, as columns of B
 * ascend.  Only one warp adds to a slot, and its threads hold different columns, so values need no atomics
 * and no block barriers, and every sum is computed in the order of A, with the same bits as on the CPU.
 *
 * Shared memory: delta_hash_fill slots * (sizeof(val_t) + sizeof(key_t)), slots a power of two;
 * delta_dense_fill slots * sizeof(val_t) + slots / 4 bytes, slots a multiple of 32. */

#define PRIME 107u

#if TULLE_CUDA
#define LANES_SYNC()    TEAM_SYNC(LANES)
#else
#define LANES_SYNC()                    /* nothing to wait for: a warp is one thread */
#endif

/* The accumulator: a hash table, or an array with a bitmap. */
typedef struct sums_t {
    SHARED val_t *sums;
    SHARED key_t *keys;                 /* hash                        */
    SHARED u32   *bits;                 /* dense                       */
    u32           slots;                /* hash: a power of two        */
    idx_t         base;                 /* the column of slot or key 0 */
} sums_t;

INLINE void add(const bool dense, sums_t x, idx_t column, val_t v)
{
    if (dense) {
        const u32 s = (u32)(column - x.base), bit = 1u << (s & 31u);
        const bool met = (PEEK32(x.bits + (s >> 5)) & bit) != 0u;
        if (!met) ATOMIC_OR32(x.bits + (s >> 5), bit);
        x.sums[s] = met ? VAL_ADD(x.sums[s], v) : VAL_ADD(VAL_ZERO, v);
    } else {
        const key_t key = (key_t)(column - x.base);
        u32 s = (u32)key * PRIME & (x.slots - 1u);
        key_t k = KEY_PEEK(&x.keys[s]);
        while (k != key) {
            if (k == KEY_NONE) {
                k = KEY_CAS(&x.keys[s], KEY_NONE, key);
                if (k == KEY_NONE) {
                    x.sums[s] = VAL_ADD(VAL_ZERO, v);
                    return;
                }
                if (k == key) break;    /* never happens: no other thread has this column */
            }
            s = (s + 1u) & (x.slots - 1u);
            k = KEY_PEEK(&x.keys[s]);
        }
        x.sums[s] = VAL_ADD(x.sums[s], v);
    }
}

/* Adds the products of a row of C in the columns [from, to), in the order of A, by one warp.  `cut`: the row
 * has other columns, too.  If next is given it receives the smallest column >= to.  The first product of a
 * row of B is loaded while the previous row is added. */
INLINE void add_columns(const bool dense, sums_t x, bool cut, idx_t from, idx_t to, SHARED idx_t *next,
                        ptr_t a_begin, u32 entries, GLOBAL const idx_t *RESTRICT a_col,
                        GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                        GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val)
{
    const u32 lane = thread_id() & (LANES - 1u);
    for (u32 first = 0; first < entries; first += LANES) {
        ptr_t begin = 0, end = 0;
        val_t a = VAL_ZERO;
        if (first + lane < entries) {
            const idx_t k = a_col[a_begin + first + lane];
            const ptr_t row_end = b_ptr[k + 1];
            a = a_val[a_begin + first + lane];
            begin = b_ptr[k];
            end = row_end;
            if (cut) {
                begin = column_from(b_col, begin, row_end, from);
                end = column_from(b_col, begin, row_end, to);
                if (next && end < row_end && b_col[end] < IDX_PEEK(next)) IDX_MIN(next, b_col[end]);
            }
        }
        u32 left = lanes_vote(begin < end, LANES);              /* rows of B with entries in this range */
        ptr_t at = 0, stop = 0;
        val_t factor = VAL_ZERO, value = VAL_ZERO;
        idx_t column = 0;
        for (bool loaded = false; loaded || left;) {
            const bool more = left != 0u;
            ptr_t next_at = 0, next_stop = 0;
            val_t next_factor = VAL_ZERO, next_value = VAL_ZERO;
            idx_t next_column = 0;
            if (more) {
                const u32 j = 31u - clz32(left & (0u - left));
                left &= left - 1u;
                next_at = LANE_FROM(begin, j, LANES) + lane;
                next_stop = LANE_FROM(end, j, LANES);
                next_factor = VAL_FROM(a, j, LANES);
                if (next_at < next_stop) {
                    next_column = b_col[next_at];
                    next_value = b_val[next_at];
                }
            }
            while (at < stop) {
                add(dense, x, column, VAL_MUL(factor, value));
                at += LANES;
                if (at < stop) {
                    column = b_col[at];
                    value = b_val[at];
                }
            }
            LANES_SYNC();
            at = next_at;
            stop = next_stop;
            factor = next_factor;
            column = next_column;
            value = next_value;
            loaded = more;
        }
    }
}

KERNEL(delta_hash_fill)(SHARED_ARG u32 count, u32 first_row, GLOBAL const u32 *RESTRICT rows, u32 most,
                        u32 dense_from, u32 count_most, GLOBAL const ptr_t *RESTRICT a_ptr,
                        GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                        GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                        GLOBAL const val_t *RESTRICT b_val, GLOBAL const u32 *RESTRICT products,
                        GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 slots,
                        GLOBAL u64 *board, GLOBAL u32 *cursors, GLOBAL u32 *redo, GLOBAL u32 *unsorted,
                        GLOBAL const u8 *RESTRICT hard, GLOBAL const ptr_t *RESTRICT c_ptr,
                        GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 t = thread_id(), threads = thread_count(), teams = threads / LANES, team = t / LANES;
    sums_t x;
    x.sums = (SHARED val_t *)shared_memory;
    x.keys = (SHARED key_t *)(x.sums + slots);
    x.bits = 0;
    x.slots = slots;

    for (u64 i = block_id(); i < count; i += block_count()) {
        const u32 r = GIVEN(rows) ? rows[first_row + i] : (u32)i;
        const ptr_t to = c_ptr[r];
        const u32 n = (u32)(c_ptr[r + 1] - to);
        if (n == 0u || n > most || n >= dense_from || hard[r]) {        /* uniform in the block */
            if (t == 0u && n) {
                redo[ATOMIC_ADD32(&cursors[DELTA_REDO], 1u)] = r;
                ATOMIC_ADD64(&board[DELTA_REDONE], (u64)products[r]);
            }
            continue;
        }
        const ptr_t a_begin = a_ptr[r];
        const u32 slice = span[r] / teams + 1u;
        const idx_t low = lo[r], mine = low + (idx_t)((u64)slice * team);
        x.base = low;
        for (u32 s = t; s < slots; s += threads) x.keys[s] = KEY_NONE;
        BARRIER();
        add_columns(false, x, teams > 1u, mine, team + 1u < teams ? mine + (idx_t)slice : IDX_NONE, 0,
                    a_begin,
                    (u32)(a_ptr[r + 1] - a_begin), a_col, a_val, b_ptr, b_col, b_val);
        BARRIER();
        u32 found = 0;                          /* compacts the entries in place, towards the front */
        for (u32 s0 = 0; s0 < slots; s0 += threads) {
            const u32 s = s0 + t;
            const key_t k = s < slots ? x.keys[s] : KEY_NONE;
            val_t v = VAL_ZERO;
            u32 all;
            if (k != KEY_NONE) v = x.sums[s];
            const u32 at = found + block_scan(k != KEY_NONE ? 1u : 0u, scan, &all);
            if (k != KEY_NONE) {
                x.keys[at] = k;
                x.sums[at] = v;
            }
            found += all;
            BARRIER();
        }
        if (n > count_most) {
            for (u32 j = t; j < n; j += threads) {
                c_col[to + j] = low + (idx_t)x.keys[j];
                c_val[to + j] = x.sums[j];
            }
            if (t == 0u) unsorted[ATOMIC_ADD32(&cursors[DELTA_UNSORTED], 1u)] = r;
        } else {
            for (u32 j = t; j < n; j += threads) {
                const key_t key = x.keys[j];
                u32 rank = 0;
                for (u32 q = 0; q < n; q++) rank += x.keys[q] < key;
                c_col[to + rank] = low + (idx_t)key;
                c_val[to + rank] = x.sums[j];
            }
        }
        BARRIER();
    }
}

/* Writes the entries of a window of `width` columns to C, in order, and resets it; returns their number. */
INLINE u32 write_window(sums_t x, SHARED u32 *before, u32 width, GLOBAL idx_t *to_col,
                        GLOBAL val_t *to_val, SHARED u32 *scan)
{
    const u32 t = thread_id(), threads = thread_count(), teams = threads / LANES, lane = t & (LANES - 1u);
    const u32 words = (width + 31u) >> 5;
    u32 found = 0;
    for (u32 w0 = 0; w0 < words; w0 += threads) {
        const u32 w = w0 + t;
        u32 all;
        const u32 at = block_scan(w < words ? popcount32(x.bits[w]) : 0u, scan, &all);
        if (w < words) before[w] = found + at;
        found += all;
        BARRIER();
    }
    for (u32 w = t / LANES; w < words; w += teams) {
        const u32 bits = x.bits[w], at = before[w];
        for (u32 k = lane; k < 32u; k += LANES)
            if (bits >> k & 1u) {
                const u32 place = at + popcount32(bits & ((1u << k) - 1u));
                to_col[place] = x.base + (idx_t)(w * 32u + k);
                to_val[place] = x.sums[w * 32u + k];
            }
    }
    BARRIER();
    for (u32 w = t; w < words; w += threads) x.bits[w] = 0u;
    return found;
}

/* counter: if given, contains the number of rows.  If a row is wider than a window, the next window begins at
 * the smallest remaining column, so that gaps are skipped. */
KERNEL(delta_dense_fill)(SHARED_ARG u32 count, u32 first_row, GLOBAL const u32 *RESTRICT rows,
                         GLOBAL const u32 *RESTRICT counter, u32 counted,
                         GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                         GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                         GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                         GLOBAL const idx_t *RESTRICT lo, GLOBAL const u32 *RESTRICT span, u32 slots,
                         GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED idx_t next;
    const u32 t = thread_id(), threads = thread_count(), team = t / LANES;
    const u32 rows_here = counted == NOTHING32 ? count : counter[counted];
    u32 teams = threads / LANES;
    sums_t x;
    x.sums = (SHARED val_t *)shared_memory;
    x.keys = 0;
    x.bits = (SHARED u32 *)(x.sums + slots);
    x.slots = slots;
    SHARED u32 *before = x.bits + slots / 32u;
    if (teams > slots / 32u) teams = slots / 32u;       /* no two teams share a word of the bitmap */

    for (u32 w = t; w < slots / 32u; w += threads) x.bits[w] = 0u;
    for (u64 i = block_id(); i < rows_here; i += block_count()) {
        const u32 r = GIVEN(rows) ? rows[first_row + i] : (u32)i;
        const ptr_t a_begin = a_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin), width = span[r] < slots ? span[r] : slots;
        const u32 slice = ((width + teams - 1u) / teams + 31u) & ~31u;
        const bool wide = span[r] > slots;
        ptr_t to = c_ptr[r];
        idx_t from = lo[r];
        bool more = true;
        while (more) {
            const u32 start = slice * team < width ? slice * team : width;
            const u32 end = slice * (team + 1u) < width ? slice * (team + 1u) : width;
            x.base = from;
            if (t == 0u) next = IDX_NONE;
            BARRIER();
            /* teams without columns call it, too: PoCL miscompiles a branch around such a loop */
            add_columns(true, x, wide || end - start < width, from + (idx_t)start, from + (idx_t)end,
                        wide && end == width ? &next : 0, a_begin, start < end ? entries : 0u, a_col, a_val,
                        b_ptr, b_col, b_val);
            BARRIER();
            const idx_t after = next;
            to += write_window(x, before, width, c_col + to, c_val + to, scan);
            from = after;
            more = wide && after != IDX_NONE;
            BARRIER();                          /* `next` may be overwritten; the bitmap is cleared */
        }
    }
}
