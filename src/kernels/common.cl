/* SPDX-License-Identifier: MIT
 *
 * common.cl - types and small functions that every kernel file sees.
 *
 *   PTR   32 or 64   width of row pointers of A, B and C          ptr_t
 *   IDX   32 or 64   width of column indices                      idx_t (unsigned: columns are never negative)
 *   KEY   32 or 64   width of a key in a hash table               key_t
 *   VAL   0..4       none, f32, f64, c32, c64                     val_t
 *   THREADS_MAX      the largest block any kernel of the file is started with
 *
 * A product is multiplied, then added, never fused: as on the CPU, bit for bit. */
#if PTR == 64
typedef u64 ptr_t;
#else
typedef u32 ptr_t;
#endif
#if IDX == 64
typedef u64 idx_t;
#define IDX_NONE        0xffffffffffffffffUL
#define IDX_PEEK(p)     PEEK64(p)
#define IDX_MIN(p, v)   ATOMIC_MIN64(p, v)
#else
typedef u32 idx_t;
#define IDX_NONE        0xffffffffu
#define IDX_PEEK(p)     PEEK32(p)
#define IDX_MIN(p, v)   ATOMIC_MIN32(p, v)
#endif

#define NOTHING32 0xffffffffu

/* ---- keys of hash tables: a column, or a row of the block and a column (5 + 27, 5 + 59 bits) */
#if KEY == 64
typedef u64 key_t;
#define KEY_NONE        0xffffffffffffffffUL
#define KEY_ROW_SHIFT   59
#define KEY_CAS(p, a, b) ATOMIC_CAS64(p, a, b)
#define KEY_PEEK(p)     PEEK64(p)
#define KEY_HASH(k)     ((u32)(((k) * 0x9e3779b97f4a7c15UL) >> 32))
#else
typedef u32 key_t;
#define KEY_NONE        0xffffffffu
#define KEY_ROW_SHIFT   27
#define KEY_CAS(p, a, b) ATOMIC_CAS32(p, a, b)
#define KEY_PEEK(p)     PEEK32(p)
#define KEY_HASH(k)     ((k) * 0x9e3779b1u)
#endif
/* The first slot of a key in a table of `slots`: any size will do. */
#define KEY_SLOT(k, slots) mulhi32(KEY_HASH(k), slots)

/* The slot of a key, by linear probing; an empty slot is taken for it, and *fresh says whether that was done. */
INLINE u32 key_claim(SHARED key_t *keys, u32 slots, key_t key, bool *fresh)
{
    u32 s = KEY_SLOT(key, slots);
    *fresh = false;
    for (;;) {
        key_t k = KEY_PEEK(&keys[s]);
        while (k != key && k != KEY_NONE) {
            s = s + 1u < slots ? s + 1u : 0u;
            k = KEY_PEEK(&keys[s]);
        }
        if (k == key) return s;
        k = KEY_CAS(&keys[s], KEY_NONE, key);
        *fresh = k == KEY_NONE;
        if (k == KEY_NONE || k == key) return s;
    }
}

INLINE u32 key_insert(SHARED key_t *keys, u32 slots, key_t key)     /* 1 if the key is new */
{
    bool fresh;
    key_claim(keys, slots, key, &fresh);
    return fresh ? 1u : 0u;
}

/* ---- values */
#if VAL == 1 || VAL == 3
typedef float real_t;
#define REAL_ADD_SHARED(p, v) ATOMIC_ADD_F32(p, v)
#elif VAL == 2 || VAL == 4
typedef double real_t;
#define REAL_ADD_SHARED(p, v) ATOMIC_ADD_F64(p, v)
#endif

#if VAL == 1 || VAL == 2
typedef real_t val_t;
#define VAL_ZERO        ((val_t)0)
#define VAL_MUL(a, b)   ((a) * (b))
#define VAL_ADD(a, b)   ((a) + (b))
#define VAL_ATOMIC_ADD(p, v)        REAL_ADD_SHARED(p, v)
#define VAL_FROM(v, j, width)       LANE_FROM(v, j, width)
#elif VAL == 3 || VAL == 4
typedef struct { real_t re, im; } val_t;
INLINE val_t val_make(real_t re, real_t im)
{
    val_t v;
    v.re = re;
    v.im = im;
    return v;
}
INLINE val_t val_mul(val_t a, val_t b)
{
    return val_make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
INLINE val_t val_add(val_t a, val_t b) { return val_make(a.re + b.re, a.im + b.im); }
#define VAL_ZERO        val_make((real_t)0, (real_t)0)
#define VAL_MUL(a, b)   val_mul(a, b)
#define VAL_ADD(a, b)   val_add(a, b)
#define VAL_FROM(v, j, width)       val_make(LANE_FROM((v).re, j, width), LANE_FROM((v).im, j, width))
#define VAL_ATOMIC_ADD(p, v)        do { REAL_ADD_SHARED(&(p)->re, (v).re); REAL_ADD_SHARED(&(p)->im, (v).im); } while (0)
#endif

#if VAL
/* a*b + c, without rounding in between where the device can. */
#if TULLE_CUDA || (VAL % 2 == 1 && defined(FP_FAST_FMAF)) || (VAL % 2 == 0 && defined(FP_FAST_FMA))
#define REAL_FMA(a, b, c)   fma(a, b, c)
#else
#define REAL_FMA(a, b, c)   ((c) + (a) * (b))
#endif
#if VAL == 1 || VAL == 2
#define VAL_FMA(a, b, c)    REAL_FMA(a, b, c)
#else
INLINE val_t val_fma(val_t a, val_t b, val_t c)
{
    return val_make(REAL_FMA(-a.im, b.im, REAL_FMA(a.re, b.re, c.re)), REAL_FMA(a.im, b.re, REAL_FMA(a.re, b.im, c.im)));
}
#define VAL_FMA(a, b, c)    val_fma(a, b, c)
#endif
/* alpha*sum + beta*was; was is not looked at where beta is 0, and a factor without imaginary part multiplies both parts. */
INLINE val_t val_scale(double re, double im, val_t v)
{
#if VAL == 1 || VAL == 2
    return (real_t)re * v;
#else
    return im == 0.0 ? val_make((real_t)re * v.re, (real_t)re * v.im) : val_mul(val_make((real_t)re, (real_t)im), v);
#endif
}
INLINE val_t spmm_end(double alpha_re, double alpha_im, double beta_re, double beta_im, val_t sum, val_t was)
{
    const val_t s = val_scale(alpha_re, alpha_im, sum);
    return beta_re == 0.0 && beta_im == 0.0 ? s : VAL_ADD(s, val_scale(beta_re, beta_im, was));
}
#endif

/* A sum of 64 bits in two words of 32: shared memory adds 32 bits at once, 64 only in a loop. */
#define ADD_SPLIT(low, high, x)                                                         \
    do {                                                                                \
        const u64 tl_x = (x);                                                           \
        const u32 tl_was = ATOMIC_ADD32(low, (u32)tl_x);                                \
        const u32 tl_carry = (u32)(tl_x >> 32) + ((u32)(tl_was + (u32)tl_x) < tl_was);  \
        if (tl_carry) ATOMIC_ADD32(high, tl_carry);                                     \
    } while (0)

/* ---- powers of two */
INLINE u32 log2_floor(u32 x) { return x <= 1u ? 0u : 31u - clz32(x); }
INLINE u32 log2_ceil(u32 x) { return x <= 1u ? 0u : 32u - clz32(x - 1u); }

/* ---- spECK's local load balancing (section 4.3): how many threads walk one row of B, as a power of two.
 *
 *   threads   of the block that share the work
 *   entries   of A in that work, each a row of B
 *   products  in it, and the longest row of B
 *
 * Start with the average length; where the longest row would take more than twice as many steps as a group
 * has rows, widen; where a group has more than twice as many rows as that row takes steps, narrow; never
 * more groups than rows. */
INLINE u32 group_log2(u32 threads, u32 entries, u32 products, u32 longest, u32 most)
{
    u32 e = entries ? entries : 1u;
    u32 g = products / e;
    if (g < 1u) g = 1u;
    if (g > threads) g = threads;
    g = 1u << log2_floor(g);
    /* Both change with g, so it is changed step by step. */
    while (g < threads && (longest + g - 1u) / g > 2u * ((e + threads / g - 1u) / (threads / g))) g <<= 1;
    while (g > 1u && (e + threads / g - 1u) / (threads / g) > 2u * ((longest + g - 1u) / g)) g >>= 1;
    if (g < 1u) g = 1u;
    if ((u64)g * e < threads) g = threads / e;
    if (g > threads) g = threads;
    if (g > most) g = most;
    u32 down = log2_floor(g);               /* to the nearest power of two */
    return (g - (1u << down)) * 2u > (1u << down) && (2u << down) <= most && (2u << down) <= threads ? down + 1u : down;
}

/* ---- which class takes a row: two small functions of what is known about it */

INLINE u32 few_bin(u32 products) { return products <= 2u ? 0u : log2_ceil(products) - 1u; }

INLINE u32 symbolic_class(GLOBAL const u32 *limits, u32 entries, u32 products, u32 span)
{
    if (products == 0u) return CLASS_EMPTY;
    if (entries == 1u && limits[LIMIT_DIRECT]) return CLASS_DIRECT;
    if (products <= limits[LIMIT_FEW_FIRST]) return CLASS_FEW + few_bin(products);
    if (products >= limits[LIMIT_BITS_MIN] && products <= limits[LIMIT_BITS_MAX]
        && (u64)span <= (u64)products * limits[LIMIT_BITS_PER])
        for (u32 i = 0; i < BITS_SIZES; i++)
            if (span <= limits[LIMIT_BITS + i]) return CLASS_BITS + i;
    if (products <= limits[LIMIT_FEW]) return CLASS_FEW + few_bin(products);
    const u32 need = products < span ? products : span;
    for (u32 i = 0; i < ROWS_SIZES && products <= limits[LIMIT_ROWS_MAX]; i++)
        if (need <= limits[LIMIT_ROWS + i]) return CLASS_ROWS + i;
    if (span <= limits[LIMIT_MASK]) return CLASS_MASK;
    for (u32 i = 0; i < BLOCK_SIZES; i++)
        if (need <= limits[LIMIT_BLOCK + i]) return CLASS_BLOCK + i;
    return need <= limits[LIMIT_HASH] ? CLASS_HASH : CLASS_DENSE;
}

INLINE u32 numeric_class(GLOBAL const u32 *limits, u32 entries, u32 products, u32 nnz, u32 span)
{
    if (nnz == 0u) return CLASS_EMPTY;
    if (entries == 1u && limits[LIMIT_DIRECT]) return CLASS_DIRECT;
    if (products <= limits[LIMIT_FEW_FIRST]) return CLASS_FEW + few_bin(products);
    const u64 bytes = RANK_BYTES((u64)span, (u64)nnz, limits[LIMIT_VALUE]);
    if (nnz >= limits[LIMIT_BITS_MIN] && nnz <= limits[LIMIT_BITS_MAX] && (u64)span <= (u64)nnz * limits[LIMIT_BITS_PER])
        for (u32 i = 0; i < BITS_SIZES; i++)
            if (bytes <= limits[LIMIT_BITS + i]) return CLASS_BITS + i;
    if (products <= limits[LIMIT_FEW]) return CLASS_FEW + few_bin(products);
    for (u32 i = 0; i < ROWS_SIZES; i++)
        if (nnz <= limits[LIMIT_ROWS + i]) return CLASS_ROWS + i;
    if ((u64)span <= (u64)nnz * limits[LIMIT_BLOCK_PER])
        for (u32 i = 0; i < BLOCK_SIZES; i++)
            if (bytes <= limits[LIMIT_BLOCK + i]) return CLASS_BLOCK + i;
    if ((u64)span <= (u64)nnz * limits[LIMIT_DENSE_PER]) return CLASS_DENSE;
    return nnz <= limits[LIMIT_HASH] ? CLASS_HASH : CLASS_DENSE;
}

/* What decides how much shared memory a row of the class takes: the host gives no more than the largest needs. */
INLINE u32 class_measure(u32 c, u32 numeric, u32 need, u32 span, u32 value)
{
    if (c >= CLASS_FEW) return need;
    const int bits = c < CLASS_ROWS || c >= CLASS_MASK, blocks = c >= CLASS_BLOCK && c < CLASS_HASH;
    if (!numeric) return bits ? span : need;
    if (c >= CLASS_MASK) return span;
    return bits || blocks ? (u32)RANK_BYTES((u64)span, (u64)need, value) : need;
}

/* Counts of classes in a block: rows, products (two words), the most of what the class is measured by.  Every thread of a
 * warp comes here; c is NOTHING32 for those that have no row.  Threads with the same class speak with one voice. */
INLINE void class_count(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most, u32 c, u64 products, u32 measure)
{
#if TULLE_CUDA
    const u32 same = lanes_match(c), lane = thread_id() & 31u;
    const u32 p0 = lanes_sum_of(same, (u32)products & 0xffffu), p1 = lanes_sum_of(same, (u32)(products >> 16) & 0xffffu);
    const u32 p2 = lanes_sum_of(same, (u32)(products >> 32)), m = lanes_max_of(same, measure);
    if (c == NOTHING32 || (same & ((1u << lane) - 1u))) return;
    ATOMIC_ADD32(&rows[c], popcount32(same));
    ADD_SPLIT(&low[c], &high[c], (u64)p0 + ((u64)p1 << 16) + ((u64)p2 << 32));
    ATOMIC_MAX32(&most[c], m);
#else
    if (c == NOTHING32) return;
    ATOMIC_ADD32(&rows[c], 1u);
    ADD_SPLIT(&low[c], &high[c], products);
    ATOMIC_MAX32(&most[c], measure);
#endif
}

/* The counts of a block go to the summary. */
INLINE void class_report(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most, GLOBAL u64 *summary)
{
    if (thread_id() == 0u)
        for (u32 c = 0; c < CLASSES; c++)
            if (rows[c]) {
                ATOMIC_ADD64(&summary[SUM_ROWS + c], (u64)rows[c]);
                ATOMIC_ADD64(&summary[SUM_CLASS + c], (u64)high[c] << 32 | low[c]);
                ATOMIC_MAX64(&summary[SUM_MEASURE + c], (u64)most[c]);
            }
}

INLINE void class_clear(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most)
{
    if (thread_id() == 0u)
        for (u32 c = 0; c < CLASSES; c++) {
            rows[c] = 0u;
            low[c] = 0u;
            high[c] = 0u;
            most[c] = 0u;
        }
}

/* ---- sums over a block.  SCAN_WORDS words of shared memory; a barrier must stand between two uses. */
#if TULLE_CUDA
#define SCAN_WORDS 33
INLINE u32 block_scan(u32 x, SHARED u32 *words, u32 *total)     /* the sum of x of the threads before this one */
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

/* ---- sorting by a crew: a warp of its own, or the whole block.  `size` words of shared memory, a power of two; all of the
 * crew come here, and may read them afterwards.  Basic bitonic sort (Batcher); a warp's pairs lie side by side, so that
 * near exchanges need no barrier of the block. */
INLINE void crew_sort(SHARED key_t *words, u32 size, u32 g, u32 lane)
{
    const u32 pairs = size >> 1, each = pairs > g ? pairs / g : 1u;
    const u32 first = lane / LANES * LANES * each + (lane & (LANES - 1u));
#if TULLE_CUDA
    u32 before = NOTHING32;
#endif
    for (u32 k = 2; k <= size; k <<= 1)
        for (u32 j = k >> 1; j > 0u; j >>= 1) {
#if TULLE_CUDA
            if (g > LANES && (j > LANES * each || before > LANES * each)) BARRIER();
            else TEAM_SYNC(LANES);
            before = j;
#else
            BARRIER();
#endif
            for (u32 x = 0; x < each; x++) {
                const u32 q = first + x * LANES, i = 2u * q - (q & (j - 1u));
                if (q < pairs) {
                    const key_t a = words[i], b = words[i + j];
                    if ((a > b) == !(i & k)) {
                        words[i] = b;
                        words[i + j] = a;
                    }
                }
            }
        }
    CREW_SYNC(g);
}

/* ---- a block walks the rows of B that a row of A names.
 *
 * Groups of `size` threads take the entries of A in turn: entry e belongs to group e mod groups, in round e / groups.
 * The lanes of a group fetch `width` rounds at once, each one entry, so that the loads on the way to so many rows of B
 * overlap; then they hand each other what they found (LANE_FROM). */
typedef struct walk_t {
    u32 size, groups, group, lane;      /* lane: this thread's place in its group */
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
/* The entry of A that this thread fetches, where rounds [first, first + width) are up. */
INLINE u32 walk_entry(walk_t w, u32 first) { return (first + (w.lane & (w.width - 1u))) * w.groups + w.group; }

/* ---- ranks: a pair of words for 32 columns, their bits and how many come before */
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

/* ---- the products of a row, spread evenly over a team (reg_*.cl)
 *
 * A crew is a team that owns a row: `size` neighbouring threads, a power of two up to 32; where there are no lanes the work
 * group.  The crews of a warp share a slab of shared memory and keep step.  What is the crew's i-th lies at crew_at(i), so
 * that threads side by side, of one crew or of several, touch different banks, whether they take every size-th or pieces. */
/* Blocks on a processor that a kernel should leave registers for; wide types, and chips it was not measured on, take what
 * they want. */
#define CREW_BLOCKS(n)  (KEY == 64 || PTR == 64 || VAL == 4 || __CUDA_ARCH__ >= 1000 ? 1 : (n))
typedef struct crew_t {
    u32 log2, size, lane, stage, pitch; /* stage: first thread of the crew within its warp */
    u32 mine, slab;                     /* number of the crew in the block, of the slab    */
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

/* The rows of B that have entries, in the order of A: where the products of each start, what to add to the number of a
 * product to have its place in B, and the factor.  Returns how many there are, times 65536, plus the products; both at most
 * 512.  Every thread of the warp comes here. */
INLINE u32 crew_segments(crew_t c, ptr_t begin, u32 entries, GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr,
                         SHARED u32 *starts, SHARED ptr_t *deltas,
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

/* Where in shared memory the segment of product q stands, of `count` segments. */
INLINE u32 crew_find(crew_t c, SHARED const u32 *starts, u32 count, u32 q)
{
    u32 i = 0;
    for (u32 d = 1u << log2_ceil(count) >> 1; d > 0u; d >>= 1)
        if (i + d < count && starts[crew_at(c, i + d)] <= q) i += d;
    return crew_at(c, i);
}

/* A kernel for the values of such rows, a crew a row: SETUP once, beside what a row of B takes in shared memory; then ROW for
 * each row (those beyond the last have nothing in them), with its products laid out by crew_segments. */
#define CREW_KERNEL(kernel, blocks, SETUP, ROW)                                                                         \
    KERNEL_FOR(CREW_BLOCKS(blocks), kernel)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows,                      \
        GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,                                         \
        GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,     \
        GLOBAL const val_t *RESTRICT b_val, GLOBAL const idx_t *RESTRICT lo,                                            \
        u32 team_log2, u32 each_log2, u32 room, u32 slab, u32 bits, GLOBAL const ptr_t *RESTRICT c_ptr,                 \
        GLOBAL idx_t *c_col, GLOBAL val_t *c_val)                                                                       \
    {                                                                                                                   \
        SHARED_MEMORY                                                                                                   \
        LANE_MEMORY                                                                                                     \
        const crew_t c = crew_make(team_log2);                                                                          \
        const u32 spread = c.pitch << each_log2, crews = thread_count() >> team_log2;                                   \
        SHARED val_t *factors = (SHARED val_t *)(shared_memory + slab * c.slab);                                        \
        SHARED ptr_t *deltas = (SHARED ptr_t *)(factors + spread);                                                      \
        SHARED u32 *starts = (SHARED u32 *)(deltas + spread);                                                           \
        (void)room;                                                                                                     \
        (void)bits;                                                                                                     \
        SETUP                                                                                                           \
        for (u64 first = (u64)block_id() * crews; first < count; first += (u64)block_count() * crews) {                 \
            const u64 i = first + c.mine;                                                                               \
            u32 r = 0, entries = 0, nnz = 0;                                                                            \
            ptr_t begin = 0, to = 0;                                                                                    \
            idx_t low = 0;                                                                                              \
            if (i < count) {                                                                                            \
                r = GIVEN(rows) ? rows[i] : (u32)i;                                                                     \
                begin = a_ptr[r];                                                                                       \
                entries = (u32)(a_ptr[r + 1] - begin);                                                                  \
                to = c_ptr[r];                                                                                          \
                nnz = (u32)(c_ptr[r + 1] - to);                                                                         \
                low = lo[r];                                                                                            \
            }                                                                                                           \
            const u32 found = crew_segments(c, begin, entries, a_col, b_ptr, starts, deltas, a_val, factors, pass);     \
            ROW                                                                                                         \
            OWN_SYNC(32u);                                                                                              \
        }                                                                                                               \
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

/* ---- words of a key and a place, sorted in registers
 *
 * narrow: 32 bits, the place in the lowest `bits`; wide: whatever it takes.  What is no word is larger than all. */
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

/* The N-to-M sorting network (bitonic): E words a thread, in the end thread by thread.  Steps of less than E stay within
 * a thread's registers, the others go from thread to thread. */
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
