/* SPDX-License-Identifier: MIT
 *
 * kernel_eight.h - eight entries of C in registers ("lanes"), to some of which entries of B are added.
 *
 * With AVX-512 a mask selects the lanes, and eight doubles are one register.  With AVX2 a byte for each lane
 * says which product it gets; negative: none.  Eight doubles are then two registers: as the columns of both
 * rows increase, the products for four lanes are adjacent, and four bits give the position of the first one.
 *
 * For real values; HAVE_EIGHT is 0 where the processor has no such vectors. */
#ifndef TL_KERNEL_EIGHT_H
#define TL_KERNEL_EIGHT_H
#include "cpu/kernel_gather.h"

typedef idx lanes8 __attribute__((vector_size(8 * sizeof(idx)), aligned(sizeof(idx)), may_alias));

INLINE bool any_lane(const lanes8 *d) /* by pointer, because it does not fit a register everywhere */
{
    uint64_t word[sizeof *d / 8], any = 0;
    memcpy(word, d, sizeof *d);
    for (size_t i = 0; i < sizeof *d / 8; i++) any |= word[i];
    return any != 0;
}

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__) && KIND <= 2
#define HAVE_EIGHT 1
#define HAVE_MASKS 1
/* How many entries are read from the beginning of a row of B, whatever its length: kernel_lanes.h. */
enum { ROW_READS = 0, STEP_READS = 8 };

#if KIND == 2
typedef __m512d eight;
INLINE eight eight_of(val x) { return _mm512_set1_pd(x); }
INLINE eight eight_at(const val *from) { return _mm512_loadu_pd(from); }
INLINE void  eight_put(val *to, eight x) { _mm512_storeu_pd(to, x); }
INLINE eight eight_times(eight x, eight y) { return _mm512_mul_pd(x, y); }
INLINE eight eight_load(__mmask8 some, const val *from) { return _mm512_maskz_loadu_pd(some, from); }
INLINE eight eight_plus(__mmask8 some, eight x, eight y) { return _mm512_mask_add_pd(x, some, x, y); }
INLINE void  eight_store_some(val *to, __mmask8 some, eight x) { _mm512_mask_storeu_pd(to, some, x); }
typedef __m512i eight_index;
INLINE eight_index eight_index_at(const uint8_t *from)
{
    return _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
INLINE eight eight_permuted(eight x, eight_index from) { return _mm512_permutexvar_pd(from, x); }
#else
typedef __m256 eight;
INLINE eight eight_of(val x) { return _mm256_set1_ps(x); }
INLINE eight eight_at(const val *from) { return _mm256_loadu_ps(from); }
INLINE void  eight_put(val *to, eight x) { _mm256_storeu_ps(to, x); }
INLINE eight eight_times(eight x, eight y) { return _mm256_mul_ps(x, y); }
INLINE eight eight_load(__mmask8 some, const val *from) { return _mm256_maskz_loadu_ps(some, from); }
INLINE eight eight_plus(__mmask8 some, eight x, eight y) { return _mm256_mask_add_ps(x, some, x, y); }
INLINE void  eight_store_some(val *to, __mmask8 some, eight x) { _mm256_mask_storeu_ps(to, some, x); }
typedef __m256i eight_index;
INLINE eight_index eight_index_at(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
INLINE eight eight_permuted(eight x, eight_index from) { return _mm256_permutexvar_ps(from, x); }
#endif

/* The first min(n, 8) lanes, for n up to 255. */
INLINE __mmask8 first_lanes(int64_t n)
{
    return (__mmask8)_bzhi_u32(0xff, (unsigned)n);
}

/* Loads a mask from memory directly, without going through a general register. */
INLINE __mmask8 mask_at(const uint8_t *from)
{
    return _load_mask8((__mmask8 *)(uintptr_t)from);
}

INLINE void eight_store(val *to, int64_t n, eight x) { eight_store_some(to, first_lanes(n), x); }

/* sum plus the products of w and the n entries at b, in the lanes that eight_note() recorded. */
INLINE eight eight_added(eight sum, int64_t n, val w, const val *b, const uint8_t *lanes,
                         const uint8_t *source)
{
    const eight products = eight_times(eight_of(w), eight_load(first_lanes(n), b));
    return eight_plus(mask_at(lanes), sum, eight_permuted(products, eight_index_at(source)));
}

/* The same where eight entries can be read. */
INLINE eight eight_step(eight sum, val w, const val *b, const uint8_t *lanes, const uint8_t *source)
{
    const eight products = eight_times(eight_of(w), eight_at(b));
    return eight_plus(mask_at(lanes), sum, eight_permuted(products, eight_index_at(source)));
}

/* sum plus the single product x. */
INLINE eight eight_added_one(eight sum, val x, const uint8_t *lanes, const uint8_t *source)
{
    (void)source;
    return eight_plus(*lanes, sum, eight_of(x));
}

/* Records that nothing is added to any of eight lanes ... */
INLINE void eight_clear(uint8_t *lanes, uint8_t *source)
{
    *lanes = 0;
    memset(source, 0, 8);
}

/* ... but entry i of a row of B to this one. */
INLINE void eight_note(uint8_t *lanes, uint8_t *source, int lane, int i)
{
    *lanes |= (uint8_t)(1 << lane);
    source[lane] = (uint8_t)i;
}

/* Accumulates mismatches of columns, to be tested once at the end. */
typedef __mmask8 eight_wrong;
INLINE bool any_wrong(const eight_wrong *wrong) { return *wrong != 0; }

#if WIDTH == 32
/* The first n columns at col should be first + want. */
INLINE void compare_columns(eight_wrong *wrong, int64_t n, const idx *col, idx first, const idx *want)
{
    const __mmask8 some = first_lanes(n);
    __m256i c = _mm256_maskz_loadu_epi32(some, col),
            w = _mm256_loadu_si256((const __m256i *)(const void *)want);
    c = _mm256_sub_epi32(c, _mm256_set1_epi32(first));
    *wrong = _kor_mask8(*wrong, _mm256_mask_cmpneq_epi32_mask(some, c, w));
}

/* The columns at col that are selected by `some` should be first - want; eight can be read. */
INLINE void compare_eight(eight_wrong *wrong, const uint8_t *some, int64_t n, const idx *col, idx first,
                          const idx *want)
{
    __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)col),
            w = _mm256_loadu_si256((const __m256i *)(const void *)want);
    (void)n;
    c = _mm256_sub_epi32(_mm256_set1_epi32(first), c);
    *wrong = _kor_mask8(*wrong, _mm256_mask_cmpneq_epi32_mask(mask_at(some), c, w));
}
#else
INLINE void compare_columns(eight_wrong *wrong, int64_t n, const idx *col, idx first, const idx *want)
{
    const __mmask8 some = first_lanes(n);
    __m512i c = _mm512_maskz_loadu_epi64(some, col), w = _mm512_loadu_si512(want);
    c = _mm512_sub_epi64(c, _mm512_set1_epi64(first));
    *wrong = _kor_mask8(*wrong, _mm512_mask_cmpneq_epi64_mask(some, c, w));
}

INLINE void compare_eight(eight_wrong *wrong, const uint8_t *some, int64_t n, const idx *col, idx first,
                          const idx *want)
{
    __m512i c = _mm512_loadu_si512(col), w = _mm512_loadu_si512(want);
    (void)n;
    c = _mm512_sub_epi64(_mm512_set1_epi64(first), c);
    *wrong = _kor_mask8(*wrong, _mm512_mask_cmpneq_epi64_mask(mask_at(some), c, w));
}
#endif

/* Writes n columns, or all eight unless `exact`, as the ones after them will be overwritten later. */
INLINE void write_eight_columns(idx *to, const bool exact, int64_t n, const idx *from, idx first)
{
#if WIDTH == 32
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)from);
    x = _mm256_add_epi32(x, _mm256_set1_epi32(first));
    if (exact) _mm256_mask_storeu_epi32(to, first_lanes(n), x);
    else _mm256_storeu_si256((__m256i *)(void *)to, x);
#else
    __m512i x = _mm512_add_epi64(_mm512_loadu_si512(from), _mm512_set1_epi64(first));
    if (exact) _mm512_mask_storeu_epi64(to, first_lanes(n), x);
    else _mm512_storeu_si512(to, x);
#endif
}

#elif defined(__AVX2__) && KIND <= 2
#define HAVE_EIGHT 1
#define HAVE_MASKS 0

INLINE void eight_clear(uint8_t *lanes, uint8_t *source)
{
    *lanes = 0;
    memset(source, 0x80, 8);
}

#if KIND == 2
typedef struct eight { __m256d low, high; } eight;
INLINE eight eight_of(val x) { return (eight){_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
INLINE void  eight_put(val *to, eight x)
{
    _mm256_storeu_pd(to, x.low);
    _mm256_storeu_pd(to + 4, x.high);
}

enum { ROW_READS = 12, STEP_READS = 12 };

/* The permutation moves parts of 32 bits, of which a double has two: the position of the first one. */
INLINE void eight_note(uint8_t *lanes, uint8_t *source, int lane, int i)
{
    const int half = lane / 4 * 4;
    bool first = true;
    for (int k = half; k < half + 4; k++) first &= source[k] == 0x80;
    if (first) *lanes |= (uint8_t)(i << half);
    source[lane] = (uint8_t)(2 * (i - (*lanes >> half & 15)));
}

INLINE __m256d four_added(__m256d sum, __m256d w, const val *b, __m256i from)
{
    const __m256 products = _mm256_castpd_ps(_mm256_mul_pd(w, _mm256_loadu_pd(b)));
    const __m256d moved = _mm256_castps_pd(_mm256_permutevar8x32_ps(products, from));
    return _mm256_blendv_pd(_mm256_add_pd(sum, moved), sum, _mm256_castsi256_pd(from));
}

INLINE eight eight_step(eight sum, val w, const val *b, const uint8_t *lanes, const uint8_t *source)
{
    const __m128i twice = _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m256d all = _mm256_set1_pd(w);
    __m128i from = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)source), twice);
    from = _mm_or_si128(from, _mm_set1_epi16(0x100));
    return (eight){four_added(sum.low, all, b + (*lanes & 15), _mm256_cvtepi8_epi32(from)),
                   four_added(sum.high, all, b + (*lanes >> 4),
                              _mm256_cvtepi8_epi32(_mm_srli_si128(from, 8)))};
}

INLINE __m256d four_added_one(__m256d sum, __m256d x, const uint8_t *source)
{
    int32_t four;
    memcpy(&four, source, sizeof four);
    __m256i from = _mm256_cvtepi8_epi64(_mm_cvtsi32_si128(four));
    return _mm256_blendv_pd(_mm256_add_pd(sum, x), sum, _mm256_castsi256_pd(from));
}
INLINE eight eight_added_one(eight sum, val x, const uint8_t *lanes, const uint8_t *source)
{
    const __m256d all = _mm256_set1_pd(x);
    (void)lanes;
    return (eight){four_added_one(sum.low, all, source), four_added_one(sum.high, all, source + 4)};
}
#else
typedef __m256 eight;
INLINE eight eight_of(val x) { return _mm256_set1_ps(x); }
INLINE void  eight_put(val *to, eight x) { _mm256_storeu_ps(to, x); }
enum { ROW_READS = 8, STEP_READS = 8 };

INLINE void eight_note(uint8_t *lanes, uint8_t *source, int lane, int i)
{
    (void)lanes;
    source[lane] = (uint8_t)i;
}

INLINE eight eight_step(eight sum, val w, const val *b, const uint8_t *lanes, const uint8_t *source)
{
    const __m256i from = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)source));
    const __m256 moved = _mm256_permutevar8x32_ps(_mm256_mul_ps(_mm256_set1_ps(w), _mm256_loadu_ps(b)), from);
    (void)lanes;
    return _mm256_blendv_ps(_mm256_add_ps(sum, moved), sum, _mm256_castsi256_ps(from));
}
INLINE eight eight_added_one(eight sum, val x, const uint8_t *lanes, const uint8_t *source)
{
    __m256i from = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)source));
    (void)lanes;
    return _mm256_blendv_ps(_mm256_add_ps(sum, _mm256_set1_ps(x)), sum, _mm256_castsi256_ps(from));
}
#endif

INLINE eight eight_added(eight sum, int64_t n, val w, const val *b, const uint8_t *lanes,
                         const uint8_t *source)
{
    (void)n;
    return eight_step(sum, w, b, lanes, source);
}

/* Stores the first n lanes. */
INLINE void eight_store(val *to, int64_t n, eight x)
{
    val all[8], *from = all;
    if (n >= 8) {
        eight_put(to, x);
        return;
    }
    eight_put(all, x);
    if (n & 4) memcpy(to, from, 4 * sizeof *to), to += 4, from += 4;
    if (n & 2) memcpy(to, from, 2 * sizeof *to), to += 2, from += 2;
    if (n & 1) *to = *from;
}

typedef lanes8 eight_wrong;
INLINE bool any_wrong(const eight_wrong *wrong) { return any_lane(wrong); }

/* A mask of the first n of eight columns. */
INLINE const lanes8 *first_columns(int64_t n)
{
    static const idx ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return (const lanes8 *)(const void *)(ones + 8 - (n < 8 ? n : 8));
}

/* The first n columns at col should be first + want; eight can be read. */
INLINE void compare_columns(eight_wrong *wrong, int64_t n, const idx *col, idx first, const idx *want)
{
    const lanes8 c = *(const lanes8 *)(const void *)col, w = *(const lanes8 *)(const void *)want;
    *wrong |= ((c - first) ^ w) & *first_columns(n);
}

/* As above: the columns should be first - want. */
INLINE void compare_eight(eight_wrong *wrong, const uint8_t *some, int64_t n, const idx *col, idx first,
                          const idx *want)
{
    const lanes8 c = *(const lanes8 *)(const void *)col, w = *(const lanes8 *)(const void *)want;
    (void)some;
    *wrong |= ((first - c) ^ w) & *first_columns(n);
}

INLINE void write_eight_columns(idx *to, const bool exact, int64_t n, const idx *from, idx first)
{
    const lanes8 x = *(const lanes8 *)(const void *)from + first;
    if (!exact || n >= 8) *(lanes8 *)(void *)to = x;
    else for (int64_t i = 0; i < n; i++) to[i] = x[i];
}
#else
#define HAVE_EIGHT 0
#define HAVE_MASKS 0
#endif

#endif
