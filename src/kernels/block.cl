/* SPDX-License-Identifier: MIT
 *
 * block.cl - block-level functions for every kernel file: the number of threads per row of B, sums, sorts,
 * traversal of rows of B, ranks of columns. */

/* ---- spECK's local load balancing (section 4.3): how many threads share one row of B, as a power of two.
 *
 *   threads    available in the block
 *   entries    of A; each needs one row of B
 *   products   of these entries
 *   longest    row of B among them
 *   most       threads per row of B, at most
 *
 * Start with the average length of the rows.  If the longest row would take more than twice as many steps as
 * a group has rows, use wider groups; if a group has more than twice as many rows as the longest row takes
 * steps, use narrower ones.  There are never more groups than rows. */
INLINE u32 group_log2(u32 threads, u32 entries, u32 products, u32 longest, u32 most)
{
    u32 e = entries ? entries : 1u;
    u32 g = products / e;
    if (g < 1u) g = 1u;
    if (g > threads) g = threads;
    g = 1u << log2_floor(g);
    /* Both sides of the comparison depend on g, so g is changed step by step. */
    while (g < threads && (longest + g - 1u) / g > 2u * ((e + threads / g - 1u) / (threads / g))) g <<= 1;
    while (g > 1u && (e + threads / g - 1u) / (threads / g) > 2u * ((longest + g - 1u) / g)) g >>= 1;
    if (g < 1u) g = 1u;
    if ((u64)g * e < threads) g = threads / e;
    if (g > threads) g = threads;
    if (g > most) g = most;
    u32 down = log2_floor(g);               /* to the nearest power of two */
    return (g - (1u << down)) * 2u > (1u << down) && (2u << down) <= most && (2u << down) <= threads
               ? down + 1u
               : down;
}

/* ---- sums over a block: SCAN_WORDS words of shared memory, with a barrier between two uses */
#if TULLE_CUDA
#define SCAN_WORDS 33
INLINE u32 block_scan(u32 x, SHARED u32 *words, u32 *total)     /* the sum of x over the threads before this
                                                                 * one */
{
    const u32 lane = thread_id() & 31u, warp = thread_id() >> 5, warps = (thread_count() + 31u) >> 5;
    u32 sum = x;
    UNROLL for (u32 d = 1; d < 32u; d <<= 1) {
        const u32 left = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d) sum += left;
    }
    if (lane == 31u) words[warp] = sum;
    BARRIER();
    if (warp == 0u) {
        const u32 mine = lane < warps ? words[lane] : 0u;
        u32 all = mine;
        UNROLL for (u32 d = 1; d < 32u; d <<= 1) {
            const u32 left = __shfl_up_sync(0xffffffffu, all, d);
            if (lane >= d) all += left;
        }
        words[lane] = all - mine;
        if (lane == 31u) words[32] = all;
    }
    BARRIER();
    *total = words[32];
    return words[warp] + sum - x;
}
INLINE u32 block_sum(u32 x, SHARED u32 *words)
{
    const u32 lane = thread_id() & 31u, warps = (thread_count() + 31u) >> 5;
    UNROLL for (u32 d = 16; d > 0u; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    if (lane == 0u) words[thread_id() >> 5] = x;
    BARRIER();
    x = lane < warps ? words[lane] : 0u;
    UNROLL for (u32 d = 16; d > 0u; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}
#else
#define SCAN_WORDS THREADS_MAX
INLINE u32 block_scan(u32 x, SHARED u32 *words, u32 *total)
{
    const u32 t = thread_id(), threads = thread_count();
    words[t] = x;
    for (u32 d = 1; d < threads; d <<= 1) {
        BARRIER();
        const u32 left = t >= d ? words[t - d] : 0u;
        BARRIER();
        words[t] += left;
    }
    BARRIER();
    *total = words[threads - 1u];
    return words[t] - x;
}
INLINE u32 block_sum(u32 x, SHARED u32 *words)
{
    u32 total;
    block_scan(x, words, &total);
    return total;
}
#endif

/* ---- sorting by a crew, which is one warp or the whole block: `size` words of shared memory, a power of
 * two.  All threads of the crew must call it, and may read the words afterwards.  Plain bitonic sort
 * (Batcher); the pairs of a warp are adjacent, so exchanges over short distances need no block barrier. */
#if TULLE_CUDA
#define CREW_STEP(g, j, before, each)                                                                   \
    do {                                                                                                \
        if ((g) > LANES && ((j) > LANES * (each) || (before) > LANES * (each))) BARRIER();              \
        else TEAM_SYNC(LANES);                                                                          \
    } while (0)
#else
#define CREW_STEP(g, j, before, each)   BARRIER()
#endif
#define CREW_SORT(name, word_t)                                                                         \
    INLINE void name(SHARED word_t *words, u32 size, u32 g, u32 lane)                                   \
    {                                                                                                   \
        const u32 pairs = size >> 1, each = pairs > g ? pairs / g : 1u;                                 \
        const u32 first = lane / LANES * LANES * each + (lane & (LANES - 1u));                          \
        u32 before = NOTHING32;                                                                         \
        for (u32 k = 2; k <= size; k <<= 1)                                                             \
            for (u32 j = k >> 1; j > 0u; j >>= 1) {                                                     \
                CREW_STEP(g, j, before, each);                                                          \
                before = j;                                                                             \
                for (u32 x = 0; x < each; x++) {                                                        \
                    const u32 q = first + x * LANES, i = 2u * q - (q & (j - 1u));                       \
                    if (q < pairs) {                                                                    \
                        const word_t a = words[i], b = words[i + j];                                    \
                        if ((a > b) == !(i & k)) {                                                      \
                            words[i] = b;                                                               \
                            words[i + j] = a;                                                           \
                        }                                                                               \
                    }                                                                                   \
                }                                                                                       \
            }                                                                                           \
        (void)before;                                                                                   \
        CREW_SYNC(g);                                                                                   \
    }
CREW_SORT(crew_sort, key_t)

/* ---- a block goes through the rows of B that a row of A refers to.
 *
 * Groups of `size` threads take the entries of A in turn: entry e belongs to group e mod groups, in round e /
 * groups.  The lanes of a group fetch the entries of `width` rounds at once, one each, so that the dependent
 * loads for that many rows of B overlap; then they broadcast them to the group (LANE_FROM). */
typedef struct walk_t {
    u32 size, groups, group, lane;      /* lane: index of this thread in its group */
    u32 rounds, width;
} walk_t;

INLINE walk_t walk_make(u32 size_log2, u32 entries)
{
    walk_t w;
    w.size = 1u << size_log2;
    w.groups = thread_count() >> size_log2;
    w.group = thread_id() >> size_log2;
    w.lane = thread_id() & (w.size - 1u);
    w.rounds = (entries + w.groups - 1u) / w.groups;
    w.width = w.size < LANES ? w.size : LANES;
    return w;
}
/* The entry of A that this thread fetches for rounds [first, first + width). */
INLINE u32 walk_entry(walk_t w, u32 first)
{
    return (first + (w.lane & (w.width - 1u))) * w.groups + w.group;
}

/* The loops of all such kernels.  WALK_ENTRIES goes through the entries of a row of A, in rounds; it uses the
 * kernel's a_begin, entries, a_col, b_ptr and w.  BODY is executed for `left` rounds at a time: lane j has
 * the bounds [begin, end) of the row of B of round j.  WALK_AHEAD goes through these rows, AHEAD of them at
 * once so that their loads overlap; TAKE gets column[q].  MAKE, HAND and FETCH are the additional code for
 * values. */
#define WALK_ENTRIES(MAKE, HAND, BODY)                                                                       \
    for (u32 first = 0; first < w.rounds; first += w.width) {                                                \
        const u32 e = walk_entry(w, first);                                                                  \
        const u32 left = w.rounds - first < w.width ? w.rounds - first : w.width;                            \
        ptr_t begin = 0, end = 0;                                                                            \
        MAKE                                                                                                 \
        if (e < entries) {                                                                                   \
            const idx_t k = a_col[a_begin + e];                                                              \
            HAND                                                                                             \
            begin = b_ptr[k];                                                                                \
            end = b_ptr[k + 1];                                                                              \
        }                                                                                                    \
        BODY                                                                                                 \
    }
#define WALK_AHEAD(MAKE, HAND, FETCH, TAKE)                                                                  \
    for (u32 j = 0; j < left; j += AHEAD) {                                                                  \
        ptr_t at[AHEAD], stop[AHEAD];                                                                        \
        MAKE                                                                                                 \
        UNROLL for (u32 q = 0; q < AHEAD; q++) {                                                             \
            const u32 k = j + q < left ? j + q : j;                                                          \
            at[q] = LANE_FROM(begin, k, w.width) + w.lane;                                                   \
            stop[q] = LANE_FROM(end, k, w.width);                                                            \
            HAND                                                                                             \
            if (j + q >= left) stop[q] = at[q];                                                              \
        }                                                                                                    \
        bool more = true;                                                                                    \
        while (more) {                                                                                       \
            idx_t column[AHEAD];                                                                             \
            UNROLL for (u32 q = 0; q < AHEAD; q++)                                                           \
                if (at[q] < stop[q]) {                                                                       \
                    column[q] = b_col[at[q]];                                                                \
                    FETCH                                                                                    \
                }                                                                                            \
            more = false;                                                                                    \
            UNROLL for (u32 q = 0; q < AHEAD; q++)                                                           \
                if (at[q] < stop[q]) {                                                                       \
                    TAKE                                                                                     \
                    at[q] += w.size;                                                                         \
                    if (at[q] < stop[q]) more = true;                                                        \
                }                                                                                            \
        }                                                                                                    \
    }
/* Columns only; and products, with factor[q] and value[q] in addition to column[q]. */
#define WALK_COLUMNS(TAKE) WALK_ENTRIES(, , WALK_AHEAD(, , , TAKE))
#define WALK_VALUES(TAKE)                                                                                    \
    WALK_AHEAD(val_t factor[AHEAD]; val_t value[AHEAD];, factor[q] = VAL_FROM(a, k, w.width);,               \
               value[q] = b_val[at[q]];, TAKE)
#define WALK_FACTORS(BODY) WALK_ENTRIES(val_t a = VAL_ZERO;, a = a_val[a_begin + e];, BODY)
#define WALK_PRODUCTS(TAKE) WALK_ENTRIES(val_t a = VAL_ZERO;, a = a_val[a_begin + e];, WALK_VALUES(TAKE))

/* The same for a team that owns a row of C (a block has several): `here` entries of A from index `from_a` on,
 * their rows of B one after the other in the order of A.  begins, lengths, factors: shared memory, one word
 * per thread of the block; those of the team begin at `stage`.  TAKE uses b_col[b + j] and the factor a. */
#define TEAM_PRODUCTS(team, here, from_a, TAKE)                                                              \
    OWN_SYNC(team);                                                                                          \
    if (lane < here) {                                                                                       \
        const idx_t k = a_col[(from_a) + lane];                                                              \
        const ptr_t b = b_ptr[k];                                                                            \
        begins[t] = b;                                                                                       \
        lengths[t] = (u32)(b_ptr[k + 1] - b);                                                                \
        factors[t] = a_val[(from_a) + lane];                                                                 \
    }                                                                                                        \
    OWN_SYNC(team);                                                                                          \
    for (u32 e = 0; e < here; e++) {                                                                         \
        const ptr_t b = begins[stage + e];                                                                   \
        const u32 length = lengths[stage + e];                                                               \
        const val_t a = factors[stage + e];                                                                  \
        for (u32 j = lane; j < length; j += team) {                                                          \
            TAKE                                                                                             \
        }                                                                                                    \
        OWN_SYNC(team);                                                                                      \
    }

/* Several rows per block: the first one (index into the list, or row number) and their number. */
typedef struct pack_t { u32 first, count; } pack_t;
INLINE pack_t pack_of(GLOBAL const u32 *groups, u32 block, u32 rows, u32 per)
{
    const int listed = GIVEN(groups);
    pack_t p;
    p.first = listed ? groups[block] >> 5 : block * per;
    p.count = listed ? (groups[block] & 31u) + 1u : (rows - p.first < per ? rows - p.first : per);
    return p;
}

/* The first entry of a row of B whose column is at least `column` (lower bound); columns ascend. */
INLINE ptr_t column_from(GLOBAL const idx_t *b_col, ptr_t begin, ptr_t end, idx_t column)
{
    while (begin < end) {
        const ptr_t middle = begin + (end - begin) / 2u;
        if (b_col[middle] < column) begin = middle + 1u;
        else end = middle;
    }
    return begin;
}

/* The i-th row of a class. */
INLINE u32 row_at(GLOBAL const u32 *rows, u64 i) { return GIVEN(rows) ? rows[i] : (u32)i; }

/* ---- ranks: a pair of words for each 32 columns: a bitmask, and the number of bits set before it */
INLINE void rank_mark(SHARED u32 *pairs, u32 column)
{
    SHARED u32 *word = pairs + 2u * (column >> 5);
    const u32 bit = 1u << (column & 31u);
    if (!(PEEK32(word) & bit)) ATOMIC_OR32(word, bit);
}

INLINE u32 rank_of(SHARED const u32 *pairs, u32 column)
{
    const u32 w = 2u * (column >> 5);
#if TULLE_CUDA
    const uint2 p = *(const uint2 *)(pairs + w);
    return p.y + popcount32(p.x & ((1u << (column & 31u)) - 1u));
#else
    return pairs[w + 1u] + popcount32(pairs[w] & ((1u << (column & 31u)) - 1u));
#endif
}
