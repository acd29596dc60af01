/* SPDX-License-Identifier: MIT
 *
 * kernel_network.h - sorts the products of a short row of C in vector registers, and adds equal columns.
 *
 * A key is column << bits | number of the product, in 32 bits: so keys differ, and those of one column are
 * in the order of A.  The keys are in V registers of WAYS lanes, V a power of two; key lane * V + register.
 * First every lane is sorted by itself, which takes only minima and maxima of whole registers (Batcher's
 * odd-even mergesort); then pairs of lanes are merged, then pairs of pairs, and so on: a bitonic merge whose
 * first step compares each key with the mirrored one of the other half, so that all sequences increase.
 * Nothing depends on the values of keys: no branch is mispredicted, and no load waits for another.  Missing
 * keys are the largest there are.
 *
 * Ten steps permute lanes with AVX-512, six with AVX2, whatever V is; interleaving the lanes at the end takes
 * log2(V) more.  64 keys take about 180 instructions with AVX-512.
 *
 * HAVE_NETWORK is 0 where the processor has no such vectors.  Memory: a kilobyte on the stack. */
#ifndef TL_KERNEL_NETWORK_H
#define TL_KERNEL_NETWORK_H
#include "cpu/kernel_eight.h"

#if defined(__AVX512F__)
#define HAVE_NETWORK 1
#define WAYS_512 1
enum { WAYS = 16, WAY_BITS = 4 };
typedef __m512i keys;
INLINE keys keys_at(const uint32_t *from) { return _mm512_loadu_si512(from); }
INLINE void keys_put(uint32_t *to, keys x) { _mm512_storeu_si512(to, x); }
INLINE keys keys_of(uint32_t x) { return _mm512_set1_epi32((int)x); }
INLINE keys keys_least(keys x, keys y) { return _mm512_min_epu32(x, y); }
INLINE keys keys_largest(keys x, keys y) { return _mm512_max_epu32(x, y); }

/* Lane i gets lane i ^ d. */
INLINE keys keys_swapped(keys x, const int d)
{
    switch (d) {
    case 1: return _mm512_shuffle_epi32(x, (_MM_PERM_ENUM)_MM_SHUFFLE(2, 3, 0, 1));
    case 2: return _mm512_shuffle_epi32(x, (_MM_PERM_ENUM)_MM_SHUFFLE(1, 0, 3, 2));
    case 3: return _mm512_shuffle_epi32(x, (_MM_PERM_ENUM)_MM_SHUFFLE(0, 1, 2, 3));
    case 4: return _mm512_shuffle_i32x4(x, x, _MM_SHUFFLE(2, 3, 0, 1));
    case 7: return _mm512_permutexvar_epi32(
            _mm512_set_epi32(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7), x);
    default: return _mm512_permutexvar_epi32(
            _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), x);
    }
}

/* The smaller key where the highest bit of d is clear in the number of the lane, the larger one elsewhere. */
INLINE keys keys_split(keys x, keys y, const int d)
{
    const __mmask16 high = d >= 8 ? 0xff00 : d >= 4 ? 0xf0f0 : d >= 2 ? 0xcccc : 0xaaaa;
    return _mm512_mask_max_epu32(_mm512_min_epu32(x, y), high, x, y);
}

/* The lanes of x and y in turn: the first half of them, and the second. */
INLINE void keys_interleave(keys x, keys y, keys *low, keys *high)
{
    *low = _mm512_permutex2var_epi32(
        x, _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0), y);
    *high = _mm512_permutex2var_epi32(
        x, _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8), y);
}

#elif defined(__AVX2__)
#define HAVE_NETWORK 1
#define WAYS_512 0
enum { WAYS = 8, WAY_BITS = 3 };
typedef __m256i keys;
INLINE keys keys_at(const uint32_t *from) { return _mm256_loadu_si256((const __m256i *)(const void *)from); }
INLINE void keys_put(uint32_t *to, keys x) { _mm256_storeu_si256((__m256i *)(void *)to, x); }
INLINE keys keys_of(uint32_t x) { return _mm256_set1_epi32((int)x); }
INLINE keys keys_least(keys x, keys y) { return _mm256_min_epu32(x, y); }
INLINE keys keys_largest(keys x, keys y) { return _mm256_max_epu32(x, y); }

INLINE keys keys_swapped(keys x, const int d)
{
    switch (d) {
    case 1: return _mm256_shuffle_epi32(x, _MM_SHUFFLE(2, 3, 0, 1));
    case 2: return _mm256_shuffle_epi32(x, _MM_SHUFFLE(1, 0, 3, 2));
    case 3: return _mm256_shuffle_epi32(x, _MM_SHUFFLE(0, 1, 2, 3));
    default: return _mm256_permutevar8x32_epi32(x, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
}

INLINE keys keys_split(keys x, keys y, const int d)
{
    const keys low = _mm256_min_epu32(x, y), high = _mm256_max_epu32(x, y);
    return d >= 4 ? _mm256_blend_epi32(low, high, 0xf0)
         : d >= 2 ? _mm256_blend_epi32(low, high, 0xcc) : _mm256_blend_epi32(low, high, 0xaa);
}

INLINE void keys_interleave(keys x, keys y, keys *low, keys *high)
{
    const keys a = _mm256_unpacklo_epi32(x, y), b = _mm256_unpackhi_epi32(x, y);
    *low = _mm256_permute2x128_si256(a, b, 0x20);
    *high = _mm256_permute2x128_si256(a, b, 0x31);
}
#else
#define HAVE_NETWORK 0
#endif

#if HAVE_NETWORK
enum { NETWORK = 16 * WAYS };           /* keys at most */

/* Up to so many products: the widest window for which dense is as fast, measured (bench/README.md). */
#if WAYS_512
static const tl_rule network_rules[] = {{64, 8 << 10, TL_SORT}, {NETWORK, 4 << 10, TL_SORT}};
#else
static const tl_rule network_rules[] = {{NETWORK, 8 << 10, TL_SORT}};
#endif

/* ---- the network for V registers */

INLINE void compare(keys *x, keys *y)
{
    const keys low = keys_least(*x, *y);
    *y = keys_largest(*x, *y);
    *x = low;
}

/* Compares register i with register i + d, for `count` i from `from` on. */
INLINE void compare_some(keys *x, const int from, const int count, const int d)
{
    UNROLL for (int i = 0; i < count; i++) compare(x + from + i, x + from + i + d);
}

/* Sorts every lane of 2, 4, 8 or 16 registers. */
INLINE void sort_two(keys *x) { compare(x, x + 1); }

INLINE void sort_four(keys *x)
{
    sort_two(x);
    sort_two(x + 2);
    compare_some(x, 0, 2, 2);
    compare(x + 1, x + 2);
}

INLINE void sort_eight(keys *x)
{
    sort_four(x);
    sort_four(x + 4);
    compare_some(x, 0, 4, 4);
    compare_some(x, 2, 2, 2);
    UNROLL for (int i = 1; i < 7; i += 2) compare(x + i, x + i + 1);
}

INLINE void sort_sixteen(keys *x)
{
    sort_eight(x);
    sort_eight(x + 8);
    compare_some(x, 0, 8, 8);
    compare_some(x, 4, 4, 4);
    UNROLL for (int i = 2; i < 14; i += 4) compare_some(x, i, 2, 2);
    UNROLL for (int i = 1; i < 15; i += 2) compare(x + i, x + i + 1);
}

/* Every key with that of lane ^ d, in the same register or the mirrored one. */
INLINE void split_lanes(keys *x, const int V, const int d)
{
    UNROLL for (int i = 0; i < V; i++) x[i] = keys_split(x[i], keys_swapped(x[i], d), d);
}

INLINE void split_mirrored(keys *x, const int V, const int d)
{
    if (V == 1) split_lanes(x, 1, d);
    UNROLL for (int i = 0; i < V / 2; i++) {
        const keys p = x[i], q = x[V - 1 - i];
        x[i] = keys_split(p, keys_swapped(q, d), d);
        x[V - 1 - i] = keys_split(q, keys_swapped(p, d), d);
    }
}

/* Every key with that of register ^ d. */
INLINE void split_registers(keys *x, const int V, const int d)
{
    UNROLL for (int i = 0; i < V; i++)
        if (!(i & d) && (i | d) < V) compare(x + i, x + (i | d));
}

/* Merges the sequences of pairs of `lanes` lanes; `lanes` a power of two. */
INLINE void merge_lanes(keys *x, const int V, const int lanes)
{
    split_mirrored(x, V, 2 * lanes - 1);
    if (lanes >= 8) split_lanes(x, V, 4);
    if (lanes >= 4) split_lanes(x, V, 2);
    if (lanes >= 2) split_lanes(x, V, 1);
    if (V > 8) split_registers(x, V, 8);
    if (V > 4) split_registers(x, V, 4);
    if (V > 2) split_registers(x, V, 2);
    if (V > 1) split_registers(x, V, 1);
}

/* Puts key lane * V + register at its place, in one of log2(V) steps. */
INLINE void interleave(keys *x, const int V)
{
    keys y[16];
    UNROLL for (int i = 0; i < V / 2; i++) keys_interleave(x[i], x[i + V / 2], y + 2 * i, y + 2 * i + 1);
    UNROLL for (int i = 0; i < V; i++) x[i] = y[i];
}

INLINE void network(uint32_t *key, const int V)
{
    keys x[16];
    UNROLL for (int i = 0; i < V; i++) x[i] = keys_at(key + i * WAYS);
    if (V == 2) sort_two(x);
    if (V == 4) sort_four(x);
    if (V == 8) sort_eight(x);
    if (V == 16) sort_sixteen(x);
    merge_lanes(x, V, 1);
    merge_lanes(x, V, 2);
    merge_lanes(x, V, 4);
    if (WAYS == 16) merge_lanes(x, V, 8);
    if (V > 8) interleave(x, V);
    if (V > 4) interleave(x, V);
    if (V > 2) interleave(x, V);
    if (V > 1) interleave(x, V);
    UNROLL for (int i = 0; i < V; i++) keys_put(key + i * WAYS, x[i]);
}

static NOINLINE void network_1(uint32_t *key) { network(key, 1); }
static NOINLINE void network_2(uint32_t *key) { network(key, 2); }
static NOINLINE void network_4(uint32_t *key) { network(key, 4); }
static NOINLINE void network_8(uint32_t *key) { network(key, 8); }
static NOINLINE void network_16(uint32_t *key) { network(key, 16); }

/* ---- keys */

/* How many bits the number of one of n products has in its key: log2 of the keys that the network sorts. */
INLINE int number_bits(int64_t n)
{
    return 64 - __builtin_clzll((uint64_t)(n - 1) | (WAYS - 1));
}

/* Whether the network can sort n keys of columns that differ by `range` at most. */
INLINE bool network_fits(int64_t n, int64_t range)
{
    return n <= NETWORK && range >> (32 - number_bits(n)) == 0;
}

/* Sorts n keys; up to 1 << number_bits(n) are written. */
INLINE void sort_keys(uint32_t *key, int64_t n)
{
    const int bits = number_bits(n);
    for (int64_t i = n; i < (int64_t)1 << bits; i += WAYS) keys_put(key + i, keys_of(UINT32_MAX));
    switch (bits - WAY_BITS) {
    case 0: network_1(key); break;
    case 1: network_2(key); break;
    case 2: network_4(key); break;
    case 3: network_8(key); break;
    default: network_16(key); break;
    }
}

/* ---- a row of C */

/* Rows of B are read by vectors, except short ones: a vector that crosses into the next cache line waits for
 * it, even where it is masked there. */
enum { NARROW = 4 };                    /* entries of a short row */

#if WAYS_512
INLINE __mmask16 first_sixteen(int64_t n) { return (__mmask16)_bzhi_u32(0xffff, n < 16 ? (unsigned)n : 16); }
#else
/* Ones in the first n of eight lanes of 32 bits; for 2 * n, in the first n of four lanes of 64. */
INLINE __m256i first_eight(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones + 8 - (n < 8 ? n : 8)));
}
#endif

/* The first n of eight columns, less lo, which fit 32 bits. */
#if WAYS_512 || WIDTH == 32
#define HAVE_COLUMNS 1
INLINE __m256i columns_at(const idx *from, int64_t n, int64_t lo)
{
#if WAYS_512 && WIDTH == 32
    const __m256i x = _mm256_maskz_loadu_epi32((__mmask8)first_sixteen(n), from);
    return _mm256_sub_epi32(x, _mm256_set1_epi32((int)lo));
#elif WAYS_512
    const __m512i x = _mm512_maskz_loadu_epi64((__mmask8)first_sixteen(n), from);
    return _mm512_cvtepi64_epi32(_mm512_sub_epi64(x, _mm512_set1_epi64(lo)));
#else
    return _mm256_sub_epi32(_mm256_maskload_epi32(from, first_eight(n)), _mm256_set1_epi32((int)lo));
#endif
}
#else
#define HAVE_COLUMNS 0
#endif

/* The keys of the products n, n + 1 ... of a row of B; up to seven more are written. */
INLINE void put_keys(uint32_t *key, const idx *col, int64_t length, int64_t lo, int bits, int64_t n)
{
#if HAVE_COLUMNS
    if (length > NARROW) {
        const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m128i by = _mm_cvtsi32_si128(bits);
        for (int64_t k = 0; k < length; k += 8) {
            const __m256i column = _mm256_sll_epi32(columns_at(col + k, length - k, lo), by),
                          number = _mm256_add_epi32(lanes, _mm256_set1_epi32((int)(n + k)));
            _mm256_storeu_si256((__m256i *)(void *)(key + k), _mm256_or_si256(column, number));
        }
        return;
    }
#endif
    for (int64_t k = 0; k < length; k++) key[k] = (uint32_t)(col[k] - lo) << bits | (uint32_t)(n + k);
}

/* The products of w and the first n of MANY values; zero is added to each, because a sum is never -0. */
#if HAVE_MASKS
enum { MANY = 8 };
INLINE void put_many(val *product, val w, const val *b, int64_t n)
{
    const eight x = eight_times(eight_of(w), eight_load(first_lanes(n), b));
    eight_put(product, eight_plus(0xff, eight_of(0), x));
}
#elif KIND == 2
enum { MANY = 4 };
INLINE void put_many(val *product, val w, const val *b, int64_t n)
{
    const __m256d x = _mm256_mul_pd(_mm256_set1_pd(w), _mm256_maskload_pd(b, first_eight(2 * n)));
    _mm256_storeu_pd(product, _mm256_add_pd(_mm256_setzero_pd(), x));
}
#elif KIND == 1
enum { MANY = 8 };
INLINE void put_many(val *product, val w, const val *b, int64_t n)
{
    const __m256 x = _mm256_mul_ps(_mm256_set1_ps(w), _mm256_maskload_ps(b, first_eight(n)));
    _mm256_storeu_ps(product, _mm256_add_ps(_mm256_setzero_ps(), x));
}
#else
enum { MANY = 1 };
INLINE void put_many(val *product, val w, const val *b, int64_t n)
{
    (void)n;
    *product = add(zero(), mul(w, *b));
}
#endif

/* The products of w and a row of B; up to seven more are written. */
INLINE void put_products(val *product, val w, const val *b, int64_t length)
{
    if (length <= NARROW) for (int64_t k = 0; k < length; k++) product[k] = add(zero(), mul(w, b[k]));
    else for (int64_t k = 0; k < length; k += MANY) put_many(product + k, w, b + k, length - k);
}

#if WAYS_512 && KIND <= 3
/* Writes the columns that `some` selects among sixteen. */
INLINE void put_columns_of(idx *to, __m512i column, __mmask16 some, int64_t lo, bool exact)
{
    const __mmask16 all = exact ? first_sixteen(__builtin_popcount(some)) : 0xffff;
    column = _mm512_maskz_compress_epi32(some, column);
#if WIDTH == 32
    _mm512_mask_storeu_epi32(to, all, _mm512_add_epi32(column, _mm512_set1_epi32((int)lo)));
#else
    const __m512i base = _mm512_set1_epi64(lo), x = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(column)),
                  y = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(column, 1));
    _mm512_mask_storeu_epi64(to, (__mmask8)all, _mm512_add_epi64(x, base));
    _mm512_mask_storeu_epi64(to + 8, (__mmask8)(all >> 8), _mm512_add_epi64(y, base));
#endif
}

/* Writes the products that `some` selects among those of sixteen numbers. */
INLINE void put_products_of(val *to, const val *product, __m512i number, __mmask16 some, bool exact)
{
#if KIND == 1
    const __mmask16 all = exact ? first_sixteen(__builtin_popcount(some)) : 0xffff;
    const __m512 x = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), some, number, product, 4);
    _mm512_mask_storeu_ps(to, all, _mm512_maskz_compress_ps(some, x));
#else                                   /* a complex float is moved like a double */
    const __mmask8 some0 = (__mmask8)some, some1 = (__mmask8)(some >> 8);
    const int n0 = __builtin_popcount(some0), n1 = __builtin_popcount(some1);
    const __m512d none = _mm512_setzero_pd();
    const __m512d x = _mm512_mask_i32gather_pd(none, some0, _mm512_castsi512_si256(number), product, 8),
                  y = _mm512_mask_i32gather_pd(none, some1, _mm512_extracti64x4_epi64(number, 1), product, 8);
    _mm512_mask_storeu_pd(to, exact ? (__mmask8)first_sixteen(n0) : 0xff, _mm512_maskz_compress_pd(some0, x));
    _mm512_mask_storeu_pd(to + n0, exact ? (__mmask8)first_sixteen(n1) : 0xff,
                          _mm512_maskz_compress_pd(some1, y));
#endif
}

/* Adds the products of equal columns in the order of sorted keys; returns the number of columns.  Of sixteen
 * keys, those that begin a column are written as vectors; the others, mostly few, are added one by one. */
INLINE int64_t add_equal(const mode m, const uint32_t *key, int64_t n, int bits, const val *product,
                         int64_t lo, bool exact, out o)
{
    const uint32_t low = (1u << bits) - 1;
    const __m128i by = _mm_cvtsi32_si128(bits);
    __m512i last = _mm512_set1_epi32(-1);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += WAYS) {
        const __m512i x = _mm512_loadu_si512(key + i), column = _mm512_srl_epi32(x, by),
                      number = _mm512_and_si512(x, _mm512_set1_epi32((int)low));
        const __mmask16 some = first_sixteen(n - i);
        const __mmask16 begins
            = _mm512_mask_cmpneq_epi32_mask(some, column, _mm512_alignr_epi32(column, last, 15));
        last = column;
        if (m != NUMERIC && o.col) put_columns_of(o.col + count, column, begins, lo, exact);
        if (m != SYMBOLIC) {
            put_products_of(o.val + count, product, number, begins, m == NUMERIC || exact);
            for (unsigned more = some & ~begins; more; more &= more - 1) {
                const unsigned lane = (unsigned)__builtin_ctz(more);
                val *sum = o.val + count - 1 + __builtin_popcount(_bzhi_u32(begins, lane));
                *sum = add(*sum, product[key[i + lane] & low]);
            }
        }
        count += __builtin_popcount(begins);
    }
    return count;
}
#else
INLINE int64_t add_equal(const mode m, const uint32_t *restrict key, int64_t n, int bits,
                         const val *restrict product, int64_t lo, bool exact, out o)
{
    const uint32_t low = (1u << bits) - 1;
    uint32_t last = UINT32_MAX;
    int64_t k = -1;
    val sum = zero();
    (void)exact;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t c = key[i] >> bits;
        const bool fresh = c != last;
        k += fresh;
        last = c;
        if (m != NUMERIC && o.col) o.col[k] = (idx)(lo + c);
        if (m == SYMBOLIC) continue;
        sum = fresh ? product[key[i] & low] : add(sum, product[key[i] & low]);
        o.val[k] = sum;
    }
    return k + 1;
}
#endif

INLINE int64_t by_network(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    uint32_t key[NETWORK + WAYS] __attribute__((aligned(64)));
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    val *restrict product = s->product;
    const int bits = number_bits(r->products);
    int64_t n = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC ? 1 : t->rows); q++, n += t->length) {
            put_keys(key + n, col + t->begin, t->length, r->lo, bits, n);
            if (m == SYMBOLIC) continue;
            put_products(product + n, a_vals(job)[r->a_begin + t->first + q], b + t->begin + q * t->length,
                         t->length);
        }
    }
    sort_keys(key, n);
    return add_equal(m, key, n, bits, product, r->lo, job->exact, o);
}

static NOINLINE int64_t network_symbolic(const tl_job *job, tl_scratch *s, const row *r, out o)
{
    return by_network(SYMBOLIC, job, s, r, o);
}
static NOINLINE int64_t network_fused(const tl_job *job, tl_scratch *s, const row *r, out o)
{
    return by_network(FUSED, job, s, r, o);
}
static NOINLINE int64_t network_numeric(const tl_job *job, tl_scratch *s, const row *r, out o)
{
    return by_network(NUMERIC, job, s, r, o);
}
#endif

#endif
