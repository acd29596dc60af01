/* SPDX-License-Identifier: MIT
 *
 * crew.cl - rows with few products in registers: teams of threads ("crews"), the even distribution of the
 * products over them, and sorting networks.  Included in every kernel file, used by reg_*.cl. */

/* ---- the products of a row, spread evenly over a team (reg_*.cl)
 *
 * A crew is a team that owns a row: `size` consecutive threads, a power of two up to 32; without lanes, the
 * whole work group.  The crews of a warp share a slab of shared memory and run in lockstep.  Item i of the
 * crew is stored at crew_at(i): then neighbouring threads, of one crew or of several, access different banks,
 * whether a thread reads every size-th item or consecutive ones. */
/* Blocks per multiprocessor that the registers of a kernel should allow.  No limit for wide types, and for
 * devices on which this was not measured. */
#define CREW_BLOCKS(n)  (KEY == 64 || PTR == 64 || VAL == 4 || __CUDA_ARCH__ >= 1000 ? 1 : (n))
typedef struct crew_t {
    u32 log2, size, lane, stage, pitch; /* stage: the crew's first thread within its warp */
    u32 mine, slab;                     /* index of the crew in the block, of its slab     */
} crew_t;

INLINE crew_t crew_make(u32 size_log2)
{
    crew_t c;
    c.log2 = size_log2;
    c.size = 1u << size_log2;
    c.lane = thread_id() & (c.size - 1u);
    c.mine = thread_id() >> size_log2;
#if TULLE_CUDA
    c.stage = (thread_id() & 31u) - c.lane;
    c.pitch = 33u;
    c.slab = thread_id() >> 5;
#else
    c.stage = 0u;
    c.pitch = thread_count() + 1u;
    c.slab = 0u;
#endif
    return c;
}
INLINE u32 crew_at(crew_t c, u32 i) { return (i >> c.log2) * c.pitch + c.stage + (i & (c.size - 1u)); }

/* Lists the nonempty rows of B in the order of A ("segments"): the index of the first product of each, the
 * difference between the position in B and the index of a product, and the factor.  Returns the number of
 * segments times 65536 plus the number of products; both are at most 512.  Every thread of the warp must call
 * it. */
INLINE u32 crew_segments(crew_t c, ptr_t begin, u32 entries, GLOBAL const idx_t *a_col,
                         GLOBAL const ptr_t *b_ptr, SHARED u32 *starts, SHARED ptr_t *deltas,
#if VAL
                         GLOBAL const val_t *a_val, SHARED val_t *factors,
#endif
                         SHARED u64 *pass)
{
    const u32 rounds = lanes_max((entries + c.size - 1u) >> c.log2);
    u32 found = 0;
    for (u32 k = 0; k < rounds; k++) {
        const u32 i = (k << c.log2) + c.lane;
        u32 mine = 0, last;
        ptr_t b = 0;
        if (i < entries) {
            const idx_t row = a_col[begin + i];
            b = b_ptr[row];
            mine = (u32)(b_ptr[row + 1] - b);
            if (mine) mine |= 1u << 16;
        }
        u32 sum = mine;
        for (u32 d = 1; d < c.size; d <<= 1) {
            u32 left;
            LANE_UP(u32, left, sum, d, c.size, pass);
            if (c.lane >= d) sum += left;
        }
        if (mine) {
            const u32 before = found + sum - mine, at = crew_at(c, before >> 16), start = before & 0xffffu;
            starts[at] = start;
            deltas[at] = b - start;
#if VAL
            factors[at] = a_val[begin + i];
#endif
        }
        LANE_GET(u32, last, sum, c.size - 1u, c.size, pass);
        found += last;
    }
    OWN_SYNC(32u);
    return found;
}

/* The position in shared memory of the segment that has product q, by bisection over `count` segments. */
INLINE u32 crew_find(crew_t c, SHARED const u32 *starts, u32 count, u32 q)
{
    u32 i = 0;
    for (u32 d = 1u << log2_ceil(count) >> 1; d > 0u; d >>= 1)
        if (i + d < count && starts[crew_at(c, i + d)] <= q) i += d;
    return crew_at(c, i);
}

/* A numeric kernel for such rows, a crew per row.  SETUP is executed once, and divides the shared memory that
 * the segments leave; ROW is executed for each row after crew_segments (rows beyond the last are empty). */
#define CREW_KERNEL(kernel, blocks, SETUP, ROW)                                                              \
    KERNEL_FOR(CREW_BLOCKS(blocks), kernel)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,           \
        GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,                              \
        GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,                              \
            GLOBAL const idx_t *RESTRICT b_col,                                                              \
        GLOBAL const val_t *RESTRICT b_val, GLOBAL const idx_t *RESTRICT lo,                                 \
        u32 team_log2, u32 each_log2, u32 room, u32 slab, u32 bits, GLOBAL const ptr_t *RESTRICT c_ptr,      \
        GLOBAL idx_t *c_col, GLOBAL val_t *c_val)                                                            \
    {                                                                                                        \
        SHARED_MEMORY                                                                                        \
        LANE_MEMORY                                                                                          \
        const crew_t c = crew_make(team_log2);                                                               \
        const u32 spread = c.pitch << each_log2, crews = thread_count() >> team_log2;                        \
        SHARED val_t *factors = (SHARED val_t *)(shared_memory + slab * c.slab);                             \
        SHARED ptr_t *deltas = (SHARED ptr_t *)(factors + spread);                                           \
        SHARED u32 *starts = (SHARED u32 *)(deltas + spread);                                                \
        (void)room;                                                                                          \
        (void)bits;                                                                                          \
        SETUP                                                                                                \
        for (u64 first = (u64)block_id() * crews; first < count; first += (u64)block_count() * crews) {      \
            const u64 i = first + c.mine;                                                                    \
            u32 r = 0, entries = 0, nnz = 0;                                                                 \
            ptr_t begin = 0, to = 0;                                                                         \
            idx_t low = 0;                                                                                   \
            if (i < count) {                                                                                 \
                r = GIVEN(rows) ? rows[i] : (u32)i;                                                          \
                begin = a_ptr[r];                                                                            \
                entries = (u32)(a_ptr[r + 1] - begin);                                                       \
                to = c_ptr[r];                                                                               \
                nnz = (u32)(c_ptr[r + 1] - to);                                                              \
                low = lo[r];                                                                                 \
            }                                                                                                \
            const u32 found = crew_segments(c, begin, entries, a_col, b_ptr, starts, deltas, a_val,          \
                                            factors, pass);                                                  \
            ROW                                                                                              \
            OWN_SYNC(32u);                                                                                   \
        }                                                                                                    \
    }

#if VAL
#if VAL == 1 || VAL == 2
#if VAL == 1
#define VAL_LANES(word, to, v, d, width, pass)  word(float, to, v, d, width, pass)
#else
#define VAL_LANES(word, to, v, d, width, pass)  word(double, to, v, d, width, pass)
#endif
#else
#define VAL_LANES(word, to, v, d, width, pass)                                                          \
    do {                                                                                                \
        word(real_t, (to).re, (v).re, d, width, pass);                                                  \
        word(real_t, (to).im, (v).im, d, width, pass);                                                  \
    } while (0)
#endif
#define VAL_XOR(to, v, d, width, pass)  VAL_LANES(LANE_XOR, to, v, d, width, pass)
#define VAL_UP(to, v, d, width, pass)   VAL_LANES(LANE_UP, to, v, d, width, pass)

/* ---- key and index of a product packed into a word, sorted in registers
 *
 * narrow: 32 bits, the index in the lowest `bits`; wide: 64 bits or a pair.  The value for "none" is larger
 * than all others. */
typedef u32 narrow_t;
#define narrow_none                     0xffffffffu
#define narrow_less(a, b)               ((a) < (b))
#define narrow_make(key, place, bits)   ((u32)(key) << (bits) | (place))
#define narrow_key(w, bits)             ((key_t)((w) >> (bits)))
#define narrow_place(w, bits)           ((w) & ((1u << (bits)) - 1u))
#define narrow_xor(to, w, d, width, pass) LANE_XOR(u32, to, w, d, width, pass)
#define narrow_up(to, w, d, width, pass)  LANE_UP(u32, to, w, d, width, pass)
#if KEY == 32
typedef u64 wide_t;
#define wide_none                       0xffffffffffffffffUL
#define wide_less(a, b)                 ((a) < (b))
#define wide_make(key, place, bits)     ((u64)(key) << 32 | (place))
#define wide_key(w, bits)               ((key_t)((w) >> 32))
#define wide_place(w, bits)             ((u32)(w))
#define wide_xor(to, w, d, width, pass) LANE_XOR(u64, to, w, d, width, pass)
#define wide_up(to, w, d, width, pass)  LANE_UP(u64, to, w, d, width, pass)
#else
typedef struct { key_t key; u32 place; } wide_t;
INLINE wide_t wide_pair(key_t key, u32 place)
{
    wide_t w;
    w.key = key;
    w.place = place;
    return w;
}
#define wide_none                       wide_pair(KEY_NONE, NOTHING32)
#define wide_less(a, b)                 ((a).key < (b).key || ((a).key == (b).key && (a).place < (b).place))
#define wide_make(key, place, bits)     wide_pair(key, place)
#define wide_key(w, bits)               ((w).key)
#define wide_place(w, bits)             ((w).place)
#define wide_xor(to, w, d, width, pass)                                                                 \
    do {                                                                                                \
        LANE_XOR(u64, (to).key, (w).key, d, width, pass);                                               \
        LANE_XOR(u32, (to).place, (w).place, d, width, pass);                                           \
    } while (0)
#define wide_up(to, w, d, width, pass)                                                                  \
    do {                                                                                                \
        LANE_UP(u64, (to).key, (w).key, d, width, pass);                                                \
        LANE_UP(u32, (to).place, (w).place, d, width, pass);                                            \
    } while (0)
#endif

/* The N-to-M sorting network (bitonic): E words per thread; afterwards thread t has the t-th E words of the
 * sorted sequence.  Steps over distances below E stay in the registers of a thread, the others exchange words
 * between threads. */
#define SORTS_PAIR(W, x, e, j, up)                                                                      \
    do {                                                                                                \
        const W##_t tl_a = x[e], tl_b = x[(e) | (j)];                                                   \
        const bool tl_swap = W##_less(tl_b, tl_a) == (up);                                              \
        x[e] = tl_swap ? tl_b : tl_a;                                                                   \
        x[(e) | (j)] = tl_swap ? tl_a : tl_b;                                                           \
    } while (0)
#define NETWORK(W, E)                                                                                   \
    INLINE void W##_network_##E(W##_t *x, crew_t c, SHARED u64 *pass)                                   \
    {                                                                                                   \
        UNROLL for (u32 k = 2; k <= E; k <<= 1)                                                         \
            UNROLL for (u32 j = k >> 1; j > 0u; j >>= 1)                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                      \
                    if (!(e & j)) {                                                                     \
                        const bool up = k < E ? !(e & k) : !(c.lane & 1u);                              \
                        SORTS_PAIR(W, x, e, j, up);                                                     \
                    }                                                                                   \
        for (u32 k = 2; k <= c.size; k <<= 1) {                                                         \
            const bool up = !(c.lane & k);                                                              \
            for (u32 j = k >> 1; j > 0u; j >>= 1) {                                                     \
                const bool least = !(c.lane & j) == up;                                                 \
                UNROLL for (u32 e = 0; e < E; e++) {                                                    \
                    W##_t other;                                                                        \
                    W##_xor(other, x[e], j, c.size, pass);                                              \
                    x[e] = W##_less(other, x[e]) == least ? other : x[e];                               \
                }                                                                                       \
            }                                                                                           \
            UNROLL for (u32 j = E >> 1; j > 0u; j >>= 1)                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                      \
                    if (!(e & j)) SORTS_PAIR(W, x, e, j, up);                                           \
        }                                                                                               \
    }
#endif
