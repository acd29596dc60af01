/* SPDX-License-Identifier: MIT
 *
 * flat_count.cl - counts the entries of rows of C whose columns are scattered, with a hash table in shared
 * memory, a warp per row.
 *
 * The products of 32 entries of A are dealt evenly to the lanes, whatever the lengths of the rows of B
 * (DEAL_TURNS in crew.cl).  So all lanes load and probe in every turn, and no position is searched in shared
 * memory.
 *
 * Without lanes a work group takes a row: the beginnings of its threads' rows of B are in shared memory, and
 * every thread searches for the entry of its product by bisection.
 *
 *   bits      log2 of the number of slots of a row's table, which is at least the number of its columns; keys
 *             are columns relative to the first of the row
 *
 * flat_keep also leaves the columns of C behind, for the numeric step: the keys of a row are gathered at the
 * front of its table, sorted in registers, and written to bounded memory, where a block takes room for all
 * its rows with one atomic.  A row of more than `most` entries is not kept, nor one that finds no room.  When
 * the row pointers of C are known, keep_columns brings the columns to their places.
 *
 *   columns   `room` columns, of which the first *cursor are taken (or more, if they did not suffice)
 *   kept      for each row: its position among them, plus one; zero before
 *
 * Shared memory: a table for each team, of sizeof(key_t) bytes per slot. */

/* 1 if the key is new.  Linear probing as key_insert(), but the number of slots is a power of two. */
INLINE u32 flat_insert(SHARED key_t *table, u32 bits, key_t key)
{
    const u32 last = (1u << bits) - 1u;
    u32 s = KEY_HASH(key) >> (32u - bits);
    for (;;) {
        key_t k = KEY_PEEK(&table[s]);
        if (k == KEY_NONE) {
            k = KEY_CAS(&table[s], KEY_NONE, key);
            if (k == KEY_NONE) return 1u;
        }
        if (k == key) return 0u;
        s = (s + 1u) & last;
    }
}

#if TULLE_CUDA
#define TEAM    32u

INLINE void flat_clear(key_t *table, u32 bits)
{
    uint4 *to = (uint4 *)table, none;
    none.x = none.y = none.z = none.w = NOTHING32;
    for (u32 s = thread_id() & 31u; s < (u32)(sizeof(key_t) << bits) / 16u; s += 32u) to[s] = none;
}

INLINE u32 flat_row(key_t *table, u32 bits, ptr_t begin, ptr_t end, idx_t low, const idx_t *RESTRICT a_col,
                    const ptr_t *RESTRICT b_ptr, const idx_t *RESTRICT b_col)
{
    const u32 lane = thread_id() & 31u;
    u32 fresh = 0;
    for (ptr_t at = begin; at < end; at += 32u) {
        ptr_t b = 0;
        u32 length = 0;
        if (at + lane < end) {
            const idx_t k = a_col[at + lane];
            b = b_ptr[k];
            length = (u32)(b_ptr[k + 1] - b);
        }
        DEAL_BEGIN(length, DEAL_MOVE(b))
        b -= start;
        DEAL_TURNS(length, const ptr_t from = DEAL_GET(b);
                   if (q < total) fresh += flat_insert(table, bits, (key_t)(b_col[from + q] - low));)
    }
    return lanes_sum_of(NOTHING32, fresh);
}
#define FLAT_MEMORY
#define FLAT_ROW    flat_row(table, bits, begin, end, lo[r], a_col, b_ptr, b_col)
#else
#define TEAM    thread_count()

INLINE void flat_clear(SHARED key_t *table, u32 bits)
{
    for (u32 s = thread_id(); s < 1u << bits; s += thread_count()) table[s] = KEY_NONE;
}

INLINE u32 flat_row(SHARED key_t *table, u32 bits, ptr_t begin, ptr_t end, idx_t low,
                    GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                    SHARED u32 *starts, SHARED ptr_t *positions, SHARED u32 *scan)
{
    const u32 t = thread_id(), threads = thread_count();
    u32 fresh = 0;
    for (ptr_t at = begin; at < end; at += threads) {
        ptr_t b = 0;
        u32 length = 0, total;
        if (at + t < end) {
            const idx_t k = a_col[at + t];
            b = b_ptr[k];
            length = (u32)(b_ptr[k + 1] - b);
        }
        const u32 start = block_scan(length, scan, &total);
        starts[t] = start;
        positions[t] = b - start;
        BARRIER();
        for (u32 q = t; q < total; q += threads) {
            u32 e = 0;                          /* the last entry that begins at q or before */
            for (u32 d = 1u << log2_ceil(threads) >> 1; d > 0u; d >>= 1)
                if (e + d < threads && starts[e + d] <= q) e += d;
            fresh += flat_insert(table, bits, (key_t)(b_col[positions[e] + q] - low));
        }
        BARRIER();
    }
    return block_sum(fresh, scan);
}
#define FLAT_MEMORY                             \
    STATIC_SHARED u32 starts[THREADS_MAX];      \
    STATIC_SHARED ptr_t positions[THREADS_MAX]; \
    STATIC_SHARED u32 scan[SCAN_WORDS];
#define FLAT_ROW    flat_row(table, bits, begin, end, lo[r], a_col, b_ptr, b_col, starts, positions, scan)
#endif

KERNEL_FOR(CREW_BLOCKS(12), flat_count)
(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
 GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
 GLOBAL const idx_t *RESTRICT lo, u32 bits, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    FLAT_MEMORY
    const u32 teams = thread_count() / TEAM, team = thread_id() / TEAM;
    SHARED key_t *table = (SHARED key_t *)shared_memory + (team << bits);
    for (u64 i = (u64)block_id() * teams + team; i < count; i += (u64)block_count() * teams) {
        const u32 r = row_at(rows, i);
        const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
        flat_clear(table, bits);
        OWN_SYNC(32u);
        const u32 found = FLAT_ROW;
        if (thread_id() % TEAM == 0u) c_count[r] = (ptr_t)found;
        OWN_SYNC(32u);
    }
}

/* ---- the keys of a row, sorted */

#if TULLE_CUDA
/* Gathers the keys at the front; n: their number. */
INLINE void flat_gather(key_t *table, u32 bits)
{
    const u32 lane = thread_id() & 31u, slots = 1u << bits;
    u32 n = 0;
    for (u32 s = lane; s < slots; s += 32u) {
        const key_t k = table[s];
        const u32 vote = lanes_vote(k != KEY_NONE, 32u);        /* all have read before one writes */
        if (k != KEY_NONE) table[n + lanes_before(vote, 32u)] = k;
        n += popcount32(vote);
        OWN_SYNC(32u);
    }
}

/* Bitonic sort of up to 32 * E keys; word e of a lane is number 32 e + lane. */
#define FLAT_SORT(E)                                                                                    \
    INLINE void flat_sort_##E(key_t *table, u32 n)                                                      \
    {                                                                                                   \
        const u32 lane = thread_id() & 31u;                                                             \
        key_t x[E];                                                                                     \
        UNROLL for (u32 e = 0; e < E; e++) x[e] = 32u * e + lane < n ? table[32u * e + lane] : KEY_NONE; \
        UNROLL for (u32 k = 2; k <= 32u * E; k <<= 1) {                                                 \
            UNROLL for (u32 j = k >> 6; j > 0u; j >>= 1)                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                      \
                    if (!(e & j)) {                                                                     \
                        const key_t a = x[e], b = x[e | j];                                             \
                        const bool swap = (b < a) == !(32u * e & k);                                    \
                        x[e] = swap ? b : a;                                                            \
                        x[e | j] = swap ? a : b;                                                        \
                    }                                                                                   \
            ROLLED for (u32 j = k > 32u ? 16u : k >> 1; j > 0u; j >>= 1)                                \
                UNROLL for (u32 e = 0; e < E; e++) {                                                    \
                    const key_t y = __shfl_xor_sync(NOTHING32, x[e], j);                                \
                    const bool least = !((32u * e + lane) & k) == !(lane & j);                          \
                    x[e] = (y < x[e]) == least ? y : x[e];                                              \
                }                                                                                       \
        }                                                                                               \
        UNROLL for (u32 e = 0; e < E; e++)                                                              \
            if (32u * e + lane < n) table[32u * e + lane] = x[e];                                       \
    }
FLAT_SORT(1)
FLAT_SORT(2)
FLAT_SORT(4)
FLAT_SORT(8)
FLAT_SORT(16)

INLINE void flat_sort(key_t *table, u32 n)
{
    if (n <= 32u) flat_sort_1(table, n);
    else if (n <= 64u) flat_sort_2(table, n);
    else if (n <= 128u) flat_sort_4(table, n);
    else if (n <= 256u) flat_sort_8(table, n);
    else flat_sort_16(table, n);
    OWN_SYNC(32u);
}
#define FLAT_SORTED(n)                  \
    if (n) {                            \
        flat_gather(table, bits);       \
        flat_sort(table, n);            \
    }
#else
INLINE void flat_gather(SHARED key_t *table, u32 bits, SHARED u32 *scan)
{
    u32 n = 0;
    for (u32 s = thread_id(); s < 1u << bits; s += thread_count()) {
        u32 total;
        const key_t k = table[s];
        const u32 at = n + block_scan(k != KEY_NONE ? 1u : 0u, scan, &total);
        if (k != KEY_NONE) table[at] = k;
        n += total;
        BARRIER();
    }
}
INLINE void flat_sort(SHARED key_t *table, u32 n)
{
    const u32 size = 1u << log2_ceil(n < 2u ? 2u : n);
    for (u32 s = n + thread_id(); s < size; s += thread_count()) table[s] = KEY_NONE;
    BARRIER();
    crew_sort(table, size, thread_count(), thread_id());
}
#define FLAT_SORTED(n)                  \
    if (n) {                            \
        flat_gather(table, bits, scan); \
        flat_sort(table, n);            \
    }
#endif

#define FLAT_TEAMS  (THREADS_MAX / 32u)         /* of a block, at most */

KERNEL_FOR(CREW_BLOCKS(10), flat_keep)
(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
 GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
 GLOBAL const idx_t *RESTRICT lo, u32 bits, GLOBAL ptr_t *c_count, u32 most, u64 room, GLOBAL u64 *cursor,
 GLOBAL idx_t *columns, GLOBAL u32 *kept)
{
    SHARED_MEMORY
    FLAT_MEMORY
    STATIC_SHARED u64 begin_of_block;
    STATIC_SHARED u32 wanted, before[FLAT_TEAMS];
    const u32 teams = thread_count() / TEAM, team = thread_id() / TEAM, lane = thread_id() % TEAM;
    SHARED key_t *table = (SHARED key_t *)shared_memory + (team << bits);
    for (u64 first = (u64)block_id() * teams; first < count; first += (u64)block_count() * teams) {
        u32 r = 0, found = 0;
        u64 at = 0;
        if (thread_id() == 0u) wanted = 0;
        BARRIER();
        if (first + team < count) {
            r = row_at(rows, first + team);
            const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
            flat_clear(table, bits);
            OWN_SYNC(32u);
            found = FLAT_ROW;
            OWN_SYNC(32u);
            if (lane == 0u) c_count[r] = (ptr_t)found;
        }
        const u32 n = found <= most ? found : 0u;
        if (lane == 0u) before[team] = ATOMIC_ADD32(&wanted, n);
        BARRIER();
        /* one addition for the block; the others need its result only after they have sorted */
        if (thread_id() == 0u && wanted) at = ATOMIC_ADD64(cursor, (u64)wanted);
        FLAT_SORTED(n)
        if (thread_id() == 0u) begin_of_block = at;
        BARRIER();
        at = begin_of_block + before[team];
        if (n && at + n <= room) {
            if (lane == 0u) kept[r] = (u32)at + 1u;
            for (u32 s = lane; s < n; s += TEAM) columns[at + s] = lo[r] + (idx_t)table[s];
        }
        BARRIER();
    }
}

/* ---- kept columns to their places in C: those of 32 rows at a time are dealt to a warp */

KERNEL(keep_columns)(u32 rows, GLOBAL const u32 *RESTRICT kept, GLOBAL const idx_t *RESTRICT columns,
                     GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *RESTRICT c_col)
{
    const u64 first = (u64)block_id() * thread_count();
#if TULLE_CUDA
    const u32 lane = thread_id() & 31u;
    const u64 r = first + thread_id();
    u32 from = 0, length = 0;
    ptr_t to = 0;
    if (r < rows) {
        from = kept[r];
        if (from) {
            to = c_ptr[r];
            length = (u32)(c_ptr[r + 1] - to);
            from--;
        }
    }
    DEAL_BEGIN(length, DEAL_MOVE(from) DEAL_MOVE(to))
    from -= start;
    to -= start;
    DEAL_TURNS(length, const u32 source = DEAL_GET(from) + q; const ptr_t target = DEAL_GET(to) + q;
               if (q < total) c_col[target] = columns[source];)
#else
    for (u64 r = first; r < rows && r < first + thread_count(); r++) {
        const u32 from = kept[r];
        const ptr_t to = c_ptr[r];
        if (from)
            for (u32 i = thread_id(); i < (u32)(c_ptr[r + 1] - to); i += thread_count())
                c_col[to + i] = columns[from - 1u + i];
    }
#endif
}
