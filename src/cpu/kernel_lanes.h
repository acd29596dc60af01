/* SPDX-License-Identifier: MIT
 *
 * kernel_lanes.h - eight entries of C in a register, to which a row of B is added where its columns say.
 *
 * For each row of B a pattern says which lanes it adds to, and which of its entries goes to each.  There is
 * no load that waits for a store, and no loop whose length is that of a row of B.  Lanes that a row of B does
 * not add to are left alone, so sums have the same bits as everywhere.
 *
 * Where one register holds the row of C, the pattern keeps what it knows of a row of B in one place, and
 * eight entries of B are read, however many the row has: to make masks of lengths that were just read would
 * take longer than the sums.
 *
 * For real values where the processor has masks for vectors; where it has not, kernel_repeat.h does
 * without. */
#ifndef TL_KERNEL_LANES_H
#define TL_KERNEL_LANES_H
#include "cpu/kernel_gather.h"

/* What a pattern says of an entry of A where the row of C has at most eight entries: all that is needed for
 * it lies together, and one register points at it.  scratch.c counts its bytes. */
typedef struct lane_step {
    idx     want[8];                    /* first column of the row of C - column of each entry of that of B */
    uint8_t source[8];                  /* for each lane the entry that goes there                          */
    int32_t length;                     /* of the row of B                                                  */
    uint8_t some, lanes;                /* as many bits; the lanes that it adds to                          */
} lane_step;

_Static_assert(sizeof(lane_step) == 8 * sizeof(idx) + TL_STEP_BYTES, "scratch.c gives a step its room");

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__) && KIND <= 2
#define HAVE_LANES 1

#if KIND == 2
typedef __m512d eight;
INLINE eight eight_of(val x) { return _mm512_set1_pd(x); }
INLINE eight eight_load(__mmask8 some, const val *from) { return _mm512_maskz_loadu_pd(some, from); }
INLINE eight eight_at(const val *from) { return _mm512_loadu_pd(from); }
INLINE void  eight_put(val *to, eight x) { _mm512_storeu_pd(to, x); }
INLINE eight eight_times(eight x, eight y) { return _mm512_mul_pd(x, y); }
INLINE eight eight_plus(__mmask8 some, eight x, eight y) { return _mm512_mask_add_pd(x, some, x, y); }
INLINE void  eight_store(val *to, __mmask8 some, eight x) { _mm512_mask_storeu_pd(to, some, x); }
typedef __m512i eight_index;
INLINE eight_index eight_index_at(const uint8_t *from)
{
    return _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
INLINE eight eight_permuted(eight x, eight_index from) { return _mm512_permutexvar_pd(from, x); }
#else
typedef __m256 eight;
INLINE eight eight_of(val x) { return _mm256_set1_ps(x); }
INLINE eight eight_load(__mmask8 some, const val *from) { return _mm256_maskz_loadu_ps(some, from); }
INLINE eight eight_at(const val *from) { return _mm256_loadu_ps(from); }
INLINE void  eight_put(val *to, eight x) { _mm256_storeu_ps(to, x); }
INLINE eight eight_times(eight x, eight y) { return _mm256_mul_ps(x, y); }
INLINE eight eight_plus(__mmask8 some, eight x, eight y) { return _mm256_mask_add_ps(x, some, x, y); }
INLINE void  eight_store(val *to, __mmask8 some, eight x) { _mm256_mask_storeu_ps(to, some, x); }
typedef __m256i eight_index;
INLINE eight_index eight_index_at(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
INLINE eight eight_permuted(eight x, eight_index from) { return _mm256_permutexvar_ps(from, x); }
#endif
INLINE eight eight_moved(eight x, const uint8_t *from) { return eight_permuted(x, eight_index_at(from)); }

/* Which of the first columns at col, as many as `some` says, are not first + want? */
#if WIDTH == 32
INLINE __mmask8 columns_wrong(__mmask8 some, const idx *col, idx first, const idx *want)
{
    __m256i c = _mm256_maskz_loadu_epi32(some, col),
            w = _mm256_loadu_si256((const __m256i *)(const void *)want);
    return _mm256_mask_cmpneq_epi32_mask(some, _mm256_sub_epi32(c, _mm256_set1_epi32(first)), w);
}

/* The same where eight can be read, and want is first - column. */
INLINE __mmask8 columns_differ(__mmask8 some, const idx *col, idx first, const idx *want)
{
    __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)col),
            w = _mm256_loadu_si256((const __m256i *)(const void *)want);
    return _mm256_mask_cmpneq_epi32_mask(some, _mm256_sub_epi32(_mm256_set1_epi32(first), c), w);
}
#else
INLINE __mmask8 columns_wrong(__mmask8 some, const idx *col, idx first, const idx *want)
{
    __m512i c = _mm512_maskz_loadu_epi64(some, col), w = _mm512_loadu_si512(want);
    return _mm512_mask_cmpneq_epi64_mask(some, _mm512_sub_epi64(c, _mm512_set1_epi64(first)), w);
}

INLINE __mmask8 columns_differ(__mmask8 some, const idx *col, idx first, const idx *want)
{
    __m512i c = _mm512_loadu_si512(col), w = _mm512_loadu_si512(want);
    return _mm512_mask_cmpneq_epi64_mask(some, _mm512_sub_epi64(_mm512_set1_epi64(first), c), w);
}
#endif

/* Writes the columns of `some`; all eight where what stands behind them will be written later. */
INLINE void write_eight_columns(idx *to, const bool exact, __mmask8 some, const idx *from, idx first)
{
#if WIDTH == 32
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)from);
    x = _mm256_add_epi32(x, _mm256_set1_epi32(first));
    if (exact) _mm256_mask_storeu_epi32(to, some, x);
    else _mm256_storeu_si256((__m256i *)(void *)to, x);
#else
    __m512i x = _mm512_add_epi64(_mm512_loadu_si512(from), _mm512_set1_epi64(first));
    if (exact) _mm512_mask_storeu_epi64(to, some, x);
    else _mm512_storeu_si512(to, x);
#endif
}

/* The first n of eight, all where there are more, up to 255. */
INLINE __mmask8 first_lanes(int64_t n)
{
    return (__mmask8)_bzhi_u32(0xff, (unsigned)n);
}

/* Loads a mask from memory directly, not by way of a general register. */
INLINE __mmask8 mask_at(const uint8_t *from)
{
    return _load_mask8((__mmask8 *)(uintptr_t)from);
}

/* What a pattern says of a row. */
typedef struct lane_row {
    const idx     *want;                /* columns of the products, relative to the first            */
    const uint8_t *length, *lanes;      /* of each row of B; the lanes that it adds to, eight a byte  */
    const uint8_t *source;              /* for each lane the entry that goes there                   */
    int64_t        begin, end, count;   /* entries of A; of C */
    idx            first;
} lane_row;

/* The sums of a row of more than eight entries, in two groups of them or in four, if it is as the pattern
 * says; false: it is not.  What is read of B is what the row at hand has, not what the pattern hopes for. */
INLINE bool sum_row(const shape sh, const int groups, const tl_job *job, const lane_row *r,
                    eight *restrict sum)
{
    const tl_arrays ma = job->a, mb = job->b;
    const idx *restrict col = mb.col, *restrict want = r->want, first = r->first;
    const val *restrict a = ma.val, *restrict b = mb.val;
    const uint8_t *restrict lanes = r->lanes, *restrict source = r->source, *restrict length = r->length;
    const int64_t begin = r->begin, entries = r->end - begin;
    /* not an array: these stay in registers */
    eight sum0 = eight_of(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    __mmask8 wrong = 0;
    int64_t longer = 0;
    for (int64_t k = 0; k < entries; k++, lanes += groups, source += 8 * groups) {
        if (job->far) fetch_far_ahead(sh, job, begin + k);
        const int64_t j = col_at(sh, &ma, begin + k), from = ptr_at(sh, &mb, j),
                      n = ptr_at(sh, &mb, j + 1) - from;
        const __mmask8 some = first_lanes(n);
        const eight products = eight_times(eight_of(a[begin + k]), eight_load(some, b + from));
        longer |= n ^ length[k];
        wrong = _kor_mask8(wrong, columns_wrong(some, col + from, first, want));
        want += length[k];
        sum0 = eight_plus(mask_at(lanes), sum0, eight_moved(products, source));
        sum1 = eight_plus(mask_at(lanes + 1), sum1, eight_moved(products, source + 8));
        if (groups > 2) sum2 = eight_plus(mask_at(lanes + 2), sum2, eight_moved(products, source + 16));
        if (groups > 2) sum3 = eight_plus(mask_at(lanes + 3), sum3, eight_moved(products, source + 24));
    }
    sum[0] = sum0, sum[1] = sum1;
    if (groups > 2) sum[2] = sum2, sum[3] = sum3;
    return !(longer | wrong);
}

/* Not 0 where a length is not as it should be; 32 bits are enough to compare where B's pointers have no
 * more. */
INLINE int64_t wrong_length(const shape sh, int64_t length, int32_t want)
{
    return sh == PLAIN ? (int64_t)((uint32_t)length ^ (uint32_t)want) : length ^ want;
}

/* The same where the row of C has at most eight entries, with the steps of its pattern.  Of B eight entries
 * are read from where each of its rows begins: false, too, where there are not so many. */
INLINE bool sum_steps(const shape sh, const tl_arrays *ma, const tl_arrays *mb, int64_t safe,
                      const lane_step *restrict step, int64_t begin, int64_t end, idx first,
                      eight *restrict sum)
{
    const idx *restrict col = mb->col;
    const val *restrict a = ma->val, *restrict b = mb->val;
    eight all = eight_of(0);
    __mmask8 wrong = 0;
    int64_t longer = 0;
    for (int64_t k = begin; k < end; k++, step++) {
        const int64_t j = col_at(sh, ma, k), from = ptr_at(sh, mb, j);
        if (from > safe) return false;
        longer |= wrong_length(sh, ptr_at(sh, mb, j + 1) - from, step->length);
        wrong = _kor_mask8(wrong, columns_differ(mask_at(&step->some), col + from, first, step->want));
        const eight products = eight_times(eight_of(a[k]), eight_at(b + from));
        all = eight_plus(mask_at(&step->lanes), all, eight_moved(products, step->source));
    }
    *sum = all;
    return !(longer | wrong);
}

/* The same where each row of B has exactly one entry. */
INLINE bool sum_steps_of_ones(const shape sh, const tl_arrays *ma, const tl_arrays *mb,
                              const lane_step *restrict step, int64_t begin, int64_t end, idx first,
                              eight *restrict sum)
{
    const idx *restrict col = mb->col;
    const val *restrict a = ma->val, *restrict b = mb->val;
    eight all = eight_of(0);
    idx wrong = 0;
    for (int64_t k = begin; k < end; k++, step++) {
        const int64_t j = col_at(sh, ma, k);
        wrong |= (first - col[j]) ^ step->want[0];
        all = eight_plus(step->lanes, all, eight_of(a[k] * b[j]));
    }
    *sum = all;
    return wrong == 0;
}

/* Adds a row up; false: it is not as the pattern says, and nothing was written.  A function of its own: the
 * loop over rows leaves it no registers. */
INLINE bool add_row(const shape sh, const int groups, const tl_job *job, const lane_row *r,
                    val *restrict value)
{
    eight sum[4];
    if (!sum_row(sh, groups, job, r, sum)) return false;
    for (int g = 0; g < groups; g++)
        if (r->count > 8 * g) eight_store(value + 8 * g, first_lanes(r->count - 8 * g), sum[g]);
    return true;
}

static NOINLINE bool add_row_1(const tl_job *job, const lane_step *step, const lane_row *r,
                               val *restrict value)
{
    eight sum;
    if (!sum_steps(ANY, &job->a, &job->b, job->b_nnz - 8, step, r->begin, r->end, r->first, &sum))
        return false;
    eight_store(value, first_lanes(r->count), sum);
    return true;
}

static NOINLINE bool add_row_2(const bool plain, const tl_job *job, const lane_row *r, val *restrict value)
{
    return WIDTH == 32 && plain ? add_row(PLAIN, 2, job, r, value) : add_row(ANY, 2, job, r, value);
}

static NOINLINE bool add_row_4(const bool plain, const tl_job *job, const lane_row *r, val *restrict value)
{
    return WIDTH == 32 && plain ? add_row(PLAIN, 4, job, r, value) : add_row(ANY, 4, job, r, value);
}

#else
#define HAVE_LANES 0
#endif

#endif
