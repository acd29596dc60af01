/* SPDX-License-Identifier: MIT
 *
 * kernel_dense.h - the accumulators "dense" and "twins".
 *
 * dense: slot[c] += a*b; mark[c] = 1; block[c/64] = 1.  No branches, and marks are only stored, never loaded;
 * they are bytes because setting a bit would need a load that depends on the previous store.  Going through
 * the blocks and turning 64 marks at a time into a bit mask yields the columns in order (spECK's dense
 * accumulator keeps bits in scratchpad memory and ranks them by prefix sums; this is the equivalent for a
 * CPU).  Slots and marks are reset to zero meanwhile.  A window of at most 64 columns keeps its marks in a
 * register.
 *
 * twins: the same for 2 to 4 rows of A of equal pattern: a slot holds a value for each of them, so one pass
 * over B computes all of them in vector registers. */
#ifndef TL_KERNEL_DENSE_H
#define TL_KERNEL_DENSE_H
#include "cpu/kernel_gather.h"

INLINE uint64_t marks_mask(const uint8_t *mark)
{
#if defined(__AVX512BW__)
    return _mm512_test_epi8_mask(_mm512_loadu_si512(mark), _mm512_set1_epi8(1));
#elif defined(__AVX2__)
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)mark);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(mark + 32));
    uint32_t lo = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(x, 7));
    uint32_t hi = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(y, 7));
    return (uint64_t)hi << 32 | lo;
#elif defined(__SSE2__)
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(mark + 16 * i));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_slli_epi16(x, 7)) << (16 * i);
    }
    return mask;
#else
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++) mask |= (uint64_t)mark[i] << i;
    return mask;
#endif
}

/* slot[c][r] += a[t][r] * b[t][c] for q rows of B and L rows of A.  The values of the last row of A are
 * a_last entries after those of the first; where there are only three rows, the third takes the place of a
 * fourth. */
INLINE void scatter(const mode m, const bool blocks, const int L, const int q, val *restrict slot,
                    uint8_t *restrict mark, uint8_t *restrict block, const idx *restrict col,
                    const val *restrict b, int64_t length, int64_t stride, int64_t base, const val *a,
                    int64_t a_stride, int64_t a_last)
{
    val w[4][4];
    if (m != SYMBOLIC)
        for (int t = 0; t < q; t++)
            for (int r = 0; r < L; r++) w[t][r] = a[t + (r < L - 1 ? r * a_stride : a_last)];
#pragma GCC unroll 2
    for (int64_t i = 0; i < length; i++) {
        int64_t c = (int64_t)col[i] - base;
        if (m != SYMBOLIC) {
            val x[4];
            for (int r = 0; r < L; r++) x[r] = slot[c * L + r];
            for (int t = 0; t < q; t++)
                for (int r = 0; r < L; r++) x[r] = add(x[r], mul(w[t][r], b[i + t * stride]));
            for (int r = 0; r < L; r++) slot[c * L + r] = x[r];
        }
        if (m != NUMERIC) {
            mark[c] = 1;
            if (blocks) block[c >> 6] = 1;
        }
    }
}

#if KIND <= 2
typedef val lanes4 __attribute__((vector_size(4 * sizeof(val)), aligned(sizeof(val)), may_alias));

/* The same for four lanes of real values, in vectors. */
INLINE void scatter_lanes(const mode m, const int q, val *restrict slot, uint8_t *restrict mark,
                          const idx *restrict col, const val *restrict b, int64_t length, int64_t base,
                          const val *a, int64_t a_stride, int64_t a_last)
{
    lanes4 w[4];
    for (int t = 0; t < q; t++) w[t] = (lanes4){a[t], a[t + a_stride], a[t + 2 * a_stride], a[t + a_last]};
#pragma GCC unroll 2
    for (int64_t i = 0; i < length; i++) {
        int64_t c = (int64_t)col[i] - base;
        lanes4 *restrict at = (lanes4 *)(void *)(slot + 4 * c), x = *at;
        for (int t = 0; t < q; t++) x = x + w[t] * b[i + t * length];
        *at = x;
        if (m != NUMERIC) mark[c] = 1;
    }
}
#endif

INLINE void scatter_row(const mode m, const shape sh, const bool blocks, const int L, const tl_job *job,
                        tl_scratch *s, const row *r, int64_t base, int64_t a_stride, int64_t a_last)
{
    const idx *col = b_cols(job);
    const val *b = b_vals(job), *a = m == SYMBOLIC ? NULL : a_vals(job) + r->a_begin;
    for (int64_t n = 0; n < r->count; n++) {
        const tl_stretch *t = &s->stretch[n];
        const val *bt = m == SYMBOLIC ? NULL : b + t->begin, *at = m == SYMBOLIC ? NULL : a + t->first;
#if KIND <= 2
#define LANES(q)                                                                                  \
    scatter_lanes(m, q, s->slot, s->mark, col + t->begin, bt, t->length, base, at, a_stride, a_last)
#else
#define LANES(q) SCATTER(q)
#endif
#define SCATTER(q)                                                                                \
    scatter(m, blocks, L, q, s->slot, s->mark, s->block, col + t->begin, bt, t->length, t->length,   \
            base, at, a_stride, a_last)
        if (m == SYMBOLIC || sh == PLAIN) {
            SCATTER(1);
            continue;
        }
        if (L == 4) {
            switch (t->rows) {
            case 1: LANES(1); break;
            case 2: LANES(2); break;
            case 3: LANES(3); break;
            default: LANES(4); break;
            }
            continue;
        }
        switch (t->rows) {
        case 1: SCATTER(1); break;
        case 2: SCATTER(2); break;
        case 3: SCATTER(3); break;
        default: SCATTER(4); break;
        }
#undef SCATTER
#undef LANES
    }
}

/* Writes the columns first + (set bits of mask).  They are written four at a time, so up to three too many,
 * which may exceed the largest index: the array must have TL_SLACK more entries, unless `exact`. */
INLINE void put_columns(idx *restrict col, idx first, uint64_t mask, int count, bool exact)
{
    if (exact) {
        for (; mask; mask &= mask - 1) *col++ = first + (idx)__builtin_ctzll(mask);
        return;
    }
    for (int k = 0; k < count; k += 4)
        for (int i = 0; i < 4; i++) {
            col[k + i] = (idx)((uint64_t)first + (uint64_t)__builtin_ctzll(mask | (uint64_t)1 << 63));
            mask &= mask - 1;
        }
}

/* The marked columns of one block, or their number when col is NULL; clears the marks. */
INLINE int64_t emit_block(uint8_t *restrict mark, int64_t base, int64_t at, idx *restrict col, bool exact)
{
    uint64_t mask = marks_mask(mark + at);
    if (!mask) return 0;
    int count = __builtin_popcountll(mask);
    memset(mark + at, 0, 64);
    if (col) put_columns(col, (idx)(base + at), mask, count, exact);
    return count;
}

/* The marked columns in order; clears the marks.  Without block marks every block is tested. */
INLINE int64_t emit(const bool marked, tl_scratch *s, int64_t base, int64_t blocks, idx *restrict col,
                    bool exact)
{
    uint8_t *restrict block = s->block;
    int64_t n = 0;
    if (!marked) {
        for (int64_t w = 0; w < blocks; w++)
            n += emit_block(s->mark, base, w * 64, col ? col + n : NULL, exact);
        return n;
    }
    for (int64_t w = 0; w < blocks; w += 8) {
        uint64_t set;
        memcpy(&set, block + w, 8);
        if (!set) continue;
        memset(block + w, 0, 8);
        for (; set; set &= set - 1)
            n += emit_block(s->mark, base, (w + (__builtin_ctzll(set) >> 3)) * 64, col ? col + n : NULL,
                            exact);
    }
    return n;
}

/* Values of L rows for n known columns, row after row, the slots going back to zero. */
INLINE void collect(const int L, int rows, tl_scratch *s, int64_t base, const idx *restrict col, int64_t n,
                    val *restrict value)
{
    val *restrict slot = s->slot;
    for (int64_t i = 0; i < n; i++) {
        val *restrict x = slot + ((int64_t)col[i] - base) * L;
        for (int r = 0; r < rows; r++) value[r * n + i] = x[r];
        for (int r = 0; r < L; r++) x[r] = zero();
    }
}

/* A row within 64 columns, whose marks are kept in one register. */
INLINE int64_t tiny(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    val *restrict slot = s->slot;
    uint64_t mask = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC || sh == PLAIN ? 1 : t->rows); q++) {
            val w = m == SYMBOLIC ? zero() : a_vals(job)[r->a_begin + t->first + q];
            int64_t from = t->begin + q * t->length;
            for (int64_t k = 0; k < t->length; k++) {
                int64_t c = col[t->begin + k] - r->lo;
                mask |= (uint64_t)1 << c;
                if (m != SYMBOLIC) slot[c] = add(slot[c], mul(w, b[from + k]));
            }
        }
    }
    int64_t n = __builtin_popcountll(mask);
    if (o.col) put_columns(o.col, (idx)r->lo, mask, (int)n, job->exact);
    if (m != SYMBOLIC) collect(1, 1, s, r->lo, o.col, n, o.val);
    return n;
}

/* 1 to 4 rows of equal pattern; returns the number of entries of each. */
INLINE int64_t dense(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const row *r, int rows,
                     int64_t known, out o)
{
    int64_t base = r->lo & ~(int64_t)63, blocks = ((r->hi - base) >> 6) + 1, n;
    bool marked = blocks * 4 > r->products;     /* few products: visit only the blocks they touch */
    if (m == SYMBOLIC || sh == PLAIN || rows == 1) {
        if (m != NUMERIC && marked) {
            scatter_row(m, sh, true, 1, job, s, r, base, 0, 0);
            n = emit(true, s, base, blocks, o.col, job->exact);
        } else {
            scatter_row(m, sh, false, 1, job, s, r, base, 0, 0);
            n = m == NUMERIC ? known : emit(false, s, base, blocks, o.col, job->exact);
        }
        if (m != SYMBOLIC) collect(1, 1, s, base, o.col, n, o.val);
        if (m == SYMBOLIC && o.col)
            for (int i = 1; i < rows; i++) memcpy(o.col + i * n, o.col, (size_t)n * sizeof(idx));
        return n;
    }
    if (rows == 2) scatter_row(m, sh, false, 2, job, s, r, base, r->a_length, r->a_length);
    else scatter_row(m, sh, false, 4, job, s, r, base, r->a_length, (rows - 1) * r->a_length);
    if (m == NUMERIC) {
        n = known;
    } else {
        n = emit(false, s, base, blocks, o.col, job->exact);
        for (int i = 1; i < rows; i++) memcpy(o.col + i * n, o.col, (size_t)n * sizeof(idx));
    }
    if (rows == 2) collect(2, 2, s, base, o.col, n, o.val);
    else if (rows == 3) collect(4, 3, s, base, o.col, n, o.val);
    else collect(4, 4, s, base, o.col, n, o.val);
    return n;
}

#endif
