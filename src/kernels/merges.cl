/* SPDX-License-Identifier: MIT
 *
 * merges.cl - five ways for a block to merge two sorted sequences in shared memory, as bhSPARSE (Liu and
 * Vinter, IPDPS 2014, section VI.B, Figure 4) compares them.  Products do not use them; src/gpu/trial.c
 * checks and times them.
 *
 *   merge_ranking            each entry computes its position: its index plus, by binary search, its rank in
 *                            the other sequence
 *   merge_path               each thread finds where its part of the result begins, then merges that part
 *                            sequentially
 *   merge_oddeven            Batcher's odd-even merge, a thread per comparator
 *   merge_bitonic            Batcher's bitonic merge, a thread per comparator
 *   merge_bitonic_advanced   the same network; a thread loads 2, 4 or 8 entries into registers and applies
 *                            one, two or three of its steps to them before the next barrier (Peters et al.)
 *
 * Block i merges entries [2*length*i, 2*length*i + length) with the `length` entries after them; length is a
 * power of two.  All load and store in the same way.  VAL 0: keys only.
 *
 * Shared memory: 2 * length * (4 + bytes of a value); merge_ranking, which cannot work in place, twice that.
 * merge_path needs 2 * length <= MERGE_ITEMS * threads, and the threads divide 2 * length. */

#if VAL
#define VALUES_IN       GLOBAL const val_t *RESTRICT values,
#define VALUES_OUT      , GLOBAL val_t *RESTRICT values_to
#define VALUES(code)    code
#define ENTRY_BYTES     (4u + (u32)sizeof(val_t))
#define MERGE_ITEMS     16u
#else
#define VALUES_IN
#define VALUES_OUT
#define VALUES(code)
#define ENTRY_BYTES     4u
#define MERGE_ITEMS     32u
#endif

/* The arguments of all five; and loading and storing of `count` entries from `first` on, through shared
 * memory. */
#define MERGE_ARGS \
    (SHARED_ARG u32 length, GLOBAL const u32 *RESTRICT keys, \
     VALUES_IN GLOBAL u32 *RESTRICT keys_to VALUES_OUT)
#define MERGE_BEGIN                                                                             \
    SHARED_MEMORY                                                                               \
    const u32 t = thread_id(), threads = thread_count(), count = 2u * length;                   \
    const u64 first = (u64)block_id() * count;                                                  \
    VALUES(SHARED val_t *val = (SHARED val_t *)shared_memory;)                                  \
    SHARED u32 *key = (SHARED u32 *)((SHARED u8 *)shared_memory + (ENTRY_BYTES - 4u) * count);  \
    for (u32 i = t; i < count; i += threads) {                                                  \
        key[i] = keys[first + i];                                                               \
        VALUES(val[i] = values[first + i];)                                                     \
    }                                                                                           \
    BARRIER();
#define MERGE_END(PLACE)                                \
    BARRIER();                                          \
    for (u32 i = t; i < count; i += threads) {          \
        keys_to[first + i] = key[PLACE(i)];             \
        VALUES(values_to[first + i] = val[PLACE(i)];)   \
    }
#define STRAIGHT(i) (i)

/* ---- ranking */

/* The number of the `length` sorted keys that come before k; with `equal` 1, equal keys count, too. */
INLINE u32 rank_among(SHARED const u32 *sorted, u32 length, u32 k, u32 equal)
{
    u32 below = 0;
    for (u32 step = length; step > 0u; step >>= 1) {
        const u32 other = sorted[below + step - 1u];
        if (other < k || (equal && other == k)) below += step;
        if (below == length) break;
    }
    return below;
}

KERNEL(merge_ranking) MERGE_ARGS
{
    MERGE_BEGIN
    VALUES(SHARED val_t *val_to = (SHARED val_t *)((SHARED u8 *)shared_memory + ENTRY_BYTES * count);)
    SHARED u32 *key_to = (SHARED u32 *)((SHARED u8 *)shared_memory + (2u * ENTRY_BYTES - 4u) * count);
    for (u32 i = t; i < count; i += threads) {
        const u32 second = i >= length ? 1u : 0u, k = key[i];
        const u32 at = i - second * length + rank_among(key + (second ? 0u : length), length, k, second);
        key_to[at] = k;
        VALUES(val_to[at] = val[i];)
    }
    key = key_to;
    VALUES(val = val_to;)
    MERGE_END(STRAIGHT)
}

/* ---- merge path (Green, McColl and Bader): thread t computes entries [t*items, t*items + items) of the
 * result; items is a power of two.  To avoid bank conflicts between the threads of a warp, each group of 32
 * entries of the result is permuted in a different way. */
#define SPREAD(i) ((i) ^ ((i) >> 5 & 31u))

KERNEL(merge_path) MERGE_ARGS
{
    MERGE_BEGIN
    const u32 items = count / threads, diagonal = t * items;
    u32 end = diagonal < length ? diagonal : length, a = diagonal - end;
    while (a < end) {                   /* bisects for the first a whose key exceeds its partner on
                                         * the diagonal */
        const u32 middle = (a + end) >> 1;
        if (key[middle] <= key[length + diagonal - 1u - middle]) a = middle + 1u;
        else end = middle;
    }
    u32 b = length + diagonal - a, from = 0;        /* from: one bit per entry, 1 if it is of the second
                                                     * sequence */
    VALUES(const u32 a_first = a;)
    VALUES(const u32 b_first = b;)
    u32 mine[MERGE_ITEMS];
    u32 ka = a < length ? key[a] : 0u, kb = b < count ? key[b] : 0u;
    UNROLL for (u32 j = 0; j < MERGE_ITEMS; j++) {
        if (j >= items) break;
        if (b >= count || (a < length && ka <= kb)) {
            mine[j] = ka;
            a++;
            if (a < length) ka = key[a];
        } else {
            mine[j] = kb;
            from |= 1u << j;
            b++;
            if (b < count) kb = key[b];
        }
    }
#if VAL
    val_t own[MERGE_ITEMS];
    a = a_first;
    b = b_first;
    UNROLL for (u32 j = 0; j < MERGE_ITEMS; j++) {
        if (j >= items) break;
        const u32 second = from >> j & 1u;
        own[j] = val[second ? b : a];
        a += 1u - second;
        b += second;
    }
#endif
    BARRIER();
    UNROLL for (u32 j = 0; j < MERGE_ITEMS; j++) {
        if (j >= items) break;
        key[SPREAD(diagonal + j)] = mine[j];
        VALUES(val[SPREAD(diagonal + j)] = own[j];)
    }
    MERGE_END(SPREAD)
}

/* ---- networks */

/* Compare-exchange: the smaller entry comes first. */
#define COMPARE(i, j)                                                                   \
    do {                                                                                \
        const u32 tl_i = (i), tl_j = (j), tl_first = key[tl_i], tl_second = key[tl_j];  \
        if (tl_first > tl_second) {                                                     \
            key[tl_i] = tl_second;                                                      \
            key[tl_j] = tl_first;                                                       \
            VALUES(const val_t tl_value = val[tl_i];)                                   \
            VALUES(val[tl_i] = val[tl_j];)                                              \
            VALUES(val[tl_j] = tl_value;)                                               \
        }                                                                               \
    } while (0)

KERNEL(merge_oddeven) MERGE_ARGS
{
    MERGE_BEGIN
    for (u32 c = t; c < length; c += threads) COMPARE(c, c + length);
    for (u32 stride = length >> 1; stride > 0u; stride >>= 1) {
        BARRIER();
        for (u32 c = t; c < length; c += threads) {
            const u32 at = 2u * c - (c & (stride - 1u));
            if (c >= stride) COMPARE(at - stride, at);
        }
    }
    MERGE_END(STRAIGHT)
}

/* Both sequences ascend; the first step reads the second one backwards and leaves two bitonic halves. */
KERNEL(merge_bitonic) MERGE_ARGS
{
    MERGE_BEGIN
    for (u32 c = t; c < length; c += threads) COMPARE(c, count - 1u - c);
    for (u32 stride = length >> 1; stride > 0u; stride >>= 1) {
        BARRIER();
        for (u32 c = t; c < length; c += threads) {
            const u32 at = 2u * c - (c & (stride - 1u));
            COMPARE(at, at + stride);
        }
    }
    MERGE_END(STRAIGHT)
}

/* ---- the same in registers: `size` entries at distance `low` go through the steps of stride size/2*low, ..,
 * low.
 *
 * In the first round the upper half of the entries is read from the other end, as the first step requires,
 * and stored there again.  In its later steps the upper half is therefore sorted in descending order. */
#define EXCHANGE(i, j, falls)                       \
    do {                                            \
        if ((falls) ? k[i] < k[j] : k[i] > k[j]) {  \
            const u32 tl_key = k[i];                \
            k[i] = k[j];                            \
            k[j] = tl_key;                          \
            VALUES(const val_t tl_value = v[i];)    \
            VALUES(v[i] = v[j];)                    \
            VALUES(v[j] = tl_value;)                \
        }                                           \
    } while (0)

#define ROUND(stride, SIZE)                                                                                  \
    do {                                                                                                     \
        const u32 low = (stride) > SIZE / 2u ? (stride) / (SIZE / 2u) : 1u, opening = (stride) == length;    \
        for (u32 set = t; set < count / SIZE; set += threads) {                                              \
            const u32 base = (set & ~(low - 1u)) * SIZE + (set & (low - 1u));                                \
            u32 k[SIZE];                                                                                     \
            VALUES(val_t v[SIZE];)                                                                           \
            UNROLL for (u32 j = 0; j < SIZE; j++) {                                                          \
                const u32 at = opening && j >= SIZE / 2u ? count + length - 1u - (base + j * low)            \
                    : base + j * low;                                                                        \
                k[j] = key[at];                                                                              \
                VALUES(v[j] = val[at];)                                                                      \
            }                                                                                                \
            UNROLL for (u32 h = SIZE / 2u; h > 0u; h >>= 1)                                                  \
                if (h * low <= (stride)) {                                                                   \
                    UNROLL for (u32 j = 0; j < SIZE / 2u; j++) {                                             \
                        const u32 at = 2u * j - (j & (h - 1u));                                              \
                        EXCHANGE(at, at + h, opening && h < SIZE / 2u && at >= SIZE / 2u);                   \
                    }                                                                                        \
                }                                                                                            \
            UNROLL for (u32 j = 0; j < SIZE; j++) {                                                          \
                const u32 at = opening && j >= SIZE / 2u ? count + length - 1u - (base + j * low)            \
                    : base + j * low;                                                                        \
                key[at] = k[j];                                                                              \
                VALUES(val[at] = v[j];)                                                                      \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

KERNEL(merge_bitonic_advanced) MERGE_ARGS
{
    MERGE_BEGIN
    const u32 items = count / threads, steps = items >= 8u ? 3u : items >= 4u ? 2u : 1u;
    for (u32 stride = length; stride > 0u; stride >>= steps) {
        if (steps == 3u) ROUND(stride, 8u);
        else if (steps == 2u) ROUND(stride, 4u);
        else ROUND(stride, 2u);
        BARRIER();
    }
    MERGE_END(STRAIGHT)
}
