/* SPDX-License-Identifier: MIT
 *
 * kernel_order.h - checks that the columns of a row are sorted and in range.
 *
 * An unchecked A is checked here, row by row, just before each row is multiplied: so its columns are read
 * from memory only once, and X is never read out of bounds.  An invalid row is treated as empty, and job->bad
 * is set: matrix/check.c will then find out what is wrong.
 *
 * Increasing columns are in range if the first and the last one are. */

#if defined(__AVX512F__)
#define AT(col, k) _mm512_loadu_si512((col) + (k))
#if WIDTH == 32
enum { LANES = 16 };
#define FALLS(col, k) _mm512_cmple_epi32_mask(AT(col, k), AT(col, (k)-1))
#define FALLS_OF(some, col, k)                                                                               \
    _mm512_mask_cmple_epi32_mask(some, _mm512_maskz_loadu_epi32(some, (col) + (k)),                          \
                                 _mm512_maskz_loadu_epi32(some, (col) + (k)-1))
#define LARGER(x, y) _mm512_max_epu32(x, y)
#define BEYOND(x, cols) _mm512_cmpgt_epu32_mask(x, _mm512_set1_epi32((int)((cols)-1)))
#else
enum { LANES = 8 };
#define FALLS(col, k) _mm512_cmple_epi64_mask(AT(col, k), AT(col, (k)-1))
#define FALLS_OF(some, col, k)                                                                               \
    _mm512_mask_cmple_epi64_mask(some, _mm512_maskz_loadu_epi64(some, (col) + (k)),                          \
                                 _mm512_maskz_loadu_epi64(some, (col) + (k)-1))
#define LARGER(x, y) _mm512_max_epu64(x, y)
#define BEYOND(x, cols) _mm512_cmpgt_epu64_mask(x, _mm512_set1_epi64((cols)-1))
#endif

/* col[0] < col[1] < ... < col[n-1]; the last vector overlaps the one before it. */
INLINE bool rising(const idx *col, int64_t n)
{
    if (n <= LANES) return FALLS_OF((1u << (n - 1)) - 1, col, 1) == 0;
    unsigned fall = FALLS(col, n - LANES);
    for (int64_t k = 1; k < n - LANES; k += LANES) fall |= FALLS(col, k);
    return fall == 0;
}
#else
INLINE bool rising(const idx *col, int64_t n)
{
    int fall = 0;
    for (int64_t k = 1; k < n; k++) fall |= col[k] <= col[k - 1];
    return !fall;
}
#endif

/* Whether the entries begin..end are a valid row of A. */
INLINE bool row_good(const job_of *j, int64_t begin, int64_t end)
{
    if ((begin < 0) | (end > j->nnz) | (begin >= end)) return begin == end && begin >= 0 && end <= j->nnz;
    return (j->col[begin] >= 0) & ((int64_t)j->col[end - 1] < j->a_cols)
           & rising(j->col + begin, end - begin);
}

#if defined(__AVX512F__)
/* The same for four short rows at once: a column may be smaller than the previous one only at the beginning
 * of a row.  The last vector may contain columns of later rows, which must be in range, too. */
INLINE bool four_good(const job_of *j, const int64_t *at)
{
    const uint64_t n = (uint64_t)at[4] - (uint64_t)at[0];
    if (n >= 64 || n == 0 || at[0] < 1 || at[0] > j->nnz - 64
        || (at[1] < at[0]) | (at[2] < at[1]) | (at[3] < at[2]) | (at[4] < at[3]))
        return row_good(j, at[0], at[1]) && row_good(j, at[1], at[2]) && row_good(j, at[2], at[3])
               && row_good(j, at[3], at[4]);
    const idx *col = j->col + at[0];
    uint64_t fall = 0;
    __m512i most = _mm512_setzero_si512();
    for (uint64_t k = 0; k < n; k += LANES) {
        fall |= (uint64_t)FALLS(col, k) << k;
        most = LARGER(most, AT(col, k));
    }
    const uint64_t starts = 1 | (uint64_t)1 << (at[1] - at[0]) | (uint64_t)1 << (at[2] - at[0])
                            | (uint64_t)1 << (at[3] - at[0]);
    return ((fall & ~starts & (((uint64_t)1 << n) - 1)) | BEYOND(most, j->a_cols)) == 0;
}
#else
INLINE bool four_good(const job_of *j, const int64_t *at)
{
    return row_good(j, at[0], at[1]) && row_good(j, at[1], at[2]) && row_good(j, at[2], at[3])
           && row_good(j, at[3], at[4]);
}
#endif

/* Checks one row or four, which begin at at[0], at[1] ...; if one is invalid, all are treated as empty. */
INLINE void settle_rows(const job_of *j, const int count, int64_t *at)
{
    if (__builtin_expect(count == 1 ? row_good(j, at[0], at[1]) : four_good(j, at), 1)) return;
    atomic_store_explicit(j->bad, true, memory_order_relaxed);
    UNROLL for (int r = 0; r <= count; r++) at[r] = 0;
}
