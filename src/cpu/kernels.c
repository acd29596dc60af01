/* SPDX-License-Identifier: MIT
 *
 * kernels.c - computes rows of C = A*B on one thread.
 *
 * The build compiles this file once for each value type (TL_VAL), index type (TL_IDX) and instruction
 * set (TL_ISA).  Everything per product is inlined and branch-free where it can be.
 *
 * Gather: the rows of B that a row of A names become stretches, with the window lo..hi of their
 * columns.  Rows of B that follow each other with equal pattern become one stretch of up to four
 * rows: their columns are then read, and the slots loaded and stored, once instead of four times.
 *
 * Accumulate: tl_choose() picks by products and window.
 *   direct  one stretch: scaled copy.
 *   dense   slot[c] += a*b; mark[c] = 1; block[c/64] = 1.  Stores only, no test, no read of a mark; the
 *           marks are bytes because a bit would need a read that waits for the store before it.
 *           The result is found sorted by going through the blocks that are set, 64 marks becoming
 *           a mask at a time.  Slots and marks are put back to zero on the way out.
 *           A window of at most 64 columns keeps its marks in a register.
 *   twins   the same for 2 to 4 rows of A of equal pattern: a slot holds a value for each, so one pass
 *           over B serves them all in vector registers.
 *   stencil rows of a grid repeat the row before, one column on, and so do the rows of B they name: the
 *           place of each product within its row is the same in all of them and is found once.
 *   sort    each product is a key (column, number); the stretches are sorted already, so they are merged
 *           pairwise without branches, then equal columns are added in the order of their numbers.
 *   hash    open addressing; the columns found are sorted by the same merge.
 *   window  what answers when the others decline: a row of any length over any width is cut into
 *           column ranges that fit the slots or the sort.
 *
 * Every entry is (((0 + p1) + p2) + ...) in the order of the row of A, in each of them: the results are
 * equal bit for bit, also between instruction sets (no contraction to fused multiply-adds). */
#include "cpu/cpu.h"
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* ---- the types of this build */

#ifndef TL_VAL
#define TL_VAL f64
#endif
#ifndef TL_IDX
#define TL_IDX i32
#endif
#ifndef TL_ISA
#define TL_ISA base
#endif
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define KIND_f32 1
#define KIND_f64 2
#define KIND_c32 3
#define KIND_c64 4
#define KIND JOIN(KIND_, TL_VAL)
#define WIDTH_i32 32
#define WIDTH_i64 64
#define WIDTH JOIN(WIDTH_, TL_IDX)
#define INLINE static inline __attribute__((always_inline))

#if KIND == 1
typedef float val;
#elif KIND == 2
typedef double val;
#elif KIND == 3
typedef tl_c32 val;
#else
typedef tl_c64 val;
#endif

#if KIND <= 2
INLINE val  zero(void) { return 0; }
INLINE val  add(val x, val y) { return x + y; }
INLINE val  mul(val x, val y) { return x * y; }
INLINE bool is_zero(val x) { return x == 0; }
#else
INLINE val  zero(void) { return (val){0, 0}; }
INLINE val  add(val x, val y) { return (val){x.re + y.re, x.im + y.im}; }
INLINE val  mul(val x, val y) { return (val){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
INLINE bool is_zero(val x) { return x.re == 0 && x.im == 0; }
#endif

/* A sort item orders by column, then by number; both are unsigned offsets. */
#if WIDTH == 32
typedef int32_t idx;
typedef int64_t item;
INLINE item    item_make(int64_t column, int64_t number) { return column << 32 | number; }
INLINE int64_t item_column(item x) { return x >> 32; }
INLINE int64_t item_number(item x) { return x & 0xffffffff; }
INLINE bool    item_less(item x, item y) { return x < y; }
INLINE item    item_last(void) { return INT64_MAX; }
#else
typedef int64_t idx;
typedef struct { int64_t column, number; } item;
INLINE item    item_make(int64_t column, int64_t number) { return (item){column, number}; }
INLINE int64_t item_column(item x) { return x.column; }
INLINE int64_t item_number(item x) { return x.number; }
INLINE bool    item_less(item x, item y)
{
    return x.column < y.column || (x.column == y.column && x.number < y.number);
}
INLINE item    item_last(void) { return (item){INT64_MAX, INT64_MAX}; }
#endif

typedef enum { SYMBOLIC, FUSED, NUMERIC } mode;

/* What a build of the row loop may take for granted: PLAIN means 32-bit arrays, and twins are not used. */
typedef enum { PLAIN, ANY } shape;

/* Where the results of a piece go. */
typedef struct out {
    idx *col;                           /* SYMBOLIC: may be NULL */
    val *val;
} out;

/* ---- reading A and B */

INLINE int64_t ptr_at(const shape sh, const tl_operand *m, int64_t i)
{
    return sh == ANY && m->ptr64 ? ((const int64_t *)m->ptr)[i] : ((const int32_t *)m->ptr)[i];
}

INLINE int64_t col_at(const shape sh, const tl_operand *m, int64_t i)
{
    return sh == ANY && m->col64 ? ((const int64_t *)m->col)[i] : ((const int32_t *)m->col)[i];
}

INLINE const idx *b_cols(const tl_job *job) { return job->b.col; }
INLINE const val *b_vals(const tl_job *job) { return job->b.val; }
INLINE const val *a_vals(const tl_job *job) { return job->a.val; }

/* Rows of B that later entries of A will name, on their way into the cache: first where they begin, then
 * their entries. */
INLINE void fetch_ahead(const shape sh, const tl_job *job, int64_t k)
{
    enum { NEAR = 12, FAR = 28 };
    if (k + FAR >= job->a_nnz) return;
    int64_t near = ptr_at(sh, &job->b, col_at(sh, &job->a, k + NEAR));
    int64_t far = col_at(sh, &job->a, k + FAR);
    __builtin_prefetch((const char *)job->b.ptr + far * (sh == ANY && job->b.ptr64 ? 8 : 4));
    __builtin_prefetch(b_cols(job) + near);
    if (job->b.val) __builtin_prefetch(b_vals(job) + near);
}

/* The row of A being worked on, as stretches of B. */
typedef struct row {
    int64_t a_begin, a_length;
    int64_t count;                      /* stretches */
    int64_t b_rows, products;
    int64_t lo, hi;                     /* columns lo..hi; lo > hi: no product */
} row;

INLINE row gather(const shape sh, const tl_job *job, tl_scratch *s, int64_t a_begin, int64_t a_end)
{
    row r = {.a_begin = a_begin, .a_length = a_end - a_begin, .lo = INT64_MAX, .hi = -1};
    const idx *restrict col = b_cols(job);
    const uint8_t *like = sh == ANY && job->twins ? job->b_like : NULL;
    tl_stretch *restrict stretch = s->stretch;
    int64_t last = -2, n = 0;
    for (int64_t k = a_begin; k < a_end; k++) {
        if (job->far) fetch_ahead(sh, job, k);
        int64_t j = col_at(sh, &job->a, k);
        int64_t begin = ptr_at(sh, &job->b, j), length = ptr_at(sh, &job->b, j + 1) - begin;
        if (length == 0) continue;
        r.products += length;
        r.b_rows++;
        if (like && like[j] == TL_TWIN && j == last + 1 && stretch[n - 1].rows < 4) {
            stretch[n - 1].rows++;
        } else {
            stretch[n++] = (tl_stretch){begin, length, (int32_t)(k - a_begin), 1};
            int64_t low = col[begin], high = col[begin + length - 1];
            r.lo = low < r.lo ? low : r.lo;
            r.hi = high > r.hi ? high : r.hi;
        }
        last = j;
    }
    r.count = n;
    return r;
}

/* ---- dense */

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

/* slot[c][r] += a[t][r] * b[t][c] for q rows of B and L rows of A, of which only `rows` are there. */
INLINE void scatter(const mode m, const bool blocks, const int L, const int q, val *restrict slot, uint8_t *restrict mark,
                    uint8_t *restrict block, const idx *restrict col, const val *restrict b, int64_t length,
                    int64_t stride, int64_t base, const val *a, int64_t a_stride, int rows)
{
    val w[4][4];
    if (m != SYMBOLIC)
        for (int t = 0; t < q; t++)
            for (int r = 0; r < L; r++) w[t][r] = r < rows ? a[t + r * a_stride] : zero();
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

INLINE void scatter_row(const mode m, const shape sh, const bool blocks, const int L, const tl_job *job, tl_scratch *s, const row *r,
                        int64_t base, int64_t a_stride, int rows)
{
    const idx *col = b_cols(job);
    const val *b = b_vals(job), *a = m == SYMBOLIC ? NULL : a_vals(job) + r->a_begin;
    for (int64_t n = 0; n < r->count; n++) {
        const tl_stretch *t = &s->stretch[n];
        const val *bt = m == SYMBOLIC ? NULL : b + t->begin, *at = m == SYMBOLIC ? NULL : a + t->first;
#define SCATTER(q)                                                                                \
    scatter(m, blocks, L, q, s->slot, s->mark, s->block, col + t->begin, bt, t->length, t->length, base, at, a_stride, rows)
        if (m == SYMBOLIC || sh == PLAIN) {
            SCATTER(1);
            continue;
        }
        switch (t->rows) {
        case 1: SCATTER(1); break;
        case 2: SCATTER(2); break;
        case 3: SCATTER(3); break;
        default: SCATTER(4); break;
        }
#undef SCATTER
    }
}

/* The columns first + (set bits of mask).  Four at a time there are up to three more than there should be:
 * whoever gives the room leaves TL_SLACK entries behind it, or asks for exactness. */
INLINE void put_columns(idx *restrict col, idx first, uint64_t mask, int count, bool exact)
{
    if (exact) {
        for (; mask; mask &= mask - 1) *col++ = first + (idx)__builtin_ctzll(mask);
        return;
    }
    for (int k = 0; k < count; k += 4)
        for (int i = 0; i < 4; i++) {
            col[k + i] = first + (idx)__builtin_ctzll(mask | (uint64_t)1 << 63);
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

/* The marked columns in order; clears marks on the way.  Without block marks every block is looked at. */
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
            n += emit_block(s->mark, base, (w + (__builtin_ctzll(set) >> 3)) * 64, col ? col + n : NULL, exact);
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

/* A row within 64 columns: the marks are one register. */
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

/* 1 to 4 rows of equal pattern; the number of entries of each. */
INLINE int64_t dense(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const row *r, int rows, int64_t known,
                     out o)
{
    int64_t base = r->lo & ~(int64_t)63, blocks = ((r->hi - base) >> 6) + 1, n;
    bool marked = blocks * 4 > r->products;     /* few products: look only at the blocks they touch */
    if (m == SYMBOLIC || sh == PLAIN || rows == 1) {
        if (m != NUMERIC && marked) {
            scatter_row(m, sh, true, 1, job, s, r, base, 0, 1);
            n = emit(true, s, base, blocks, o.col, job->exact);
        } else {
            scatter_row(m, sh, false, 1, job, s, r, base, 0, 1);
            n = m == NUMERIC ? known : emit(false, s, base, blocks, o.col, job->exact);
        }
        if (m != SYMBOLIC) collect(1, 1, s, base, o.col, n, o.val);
        if (m == SYMBOLIC && o.col)
            for (int i = 1; i < rows; i++) memcpy(o.col + i * n, o.col, (size_t)n * sizeof(idx));
        return n;
    }
    if (rows == 2) scatter_row(m, sh, false, 2, job, s, r, base, r->a_length, 2);
    else scatter_row(m, sh, false, 4, job, s, r, base, r->a_length, rows);
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

/* ---- sort */

/* Each run has an item behind it that no other is greater than: nothing is tested but the items, the
 * number of steps is known, and no branch is guessed wrong. */
INLINE void merge(const item *restrict x, const item *restrict y, int64_t n, item *restrict z)
{
    for (int64_t k = 0; k < n; k++) {
        item p = *x, q = *y;
        bool take = item_less(q, p);
        z[k] = take ? q : p;
        x += !take;
        y += take;
    }
    z[n] = item_last();
}

/* Merges sorted runs; run[2i] says where run i begins, run[2i + 1] how long it is, and there is room for
 * one item behind each.  Returns the first item of the result. */
static const item *merge_runs(item *x, item *y, int32_t *run, int64_t runs)
{
    for (int64_t i = 0; i < runs; i++) x[run[2 * i] + run[2 * i + 1]] = item_last();
    while (runs > 1) {
        int64_t k = 0;
        for (int64_t i = 0; i + 1 < runs; i += 2, k++) {
            const int32_t *p = run + 2 * i;
            int32_t from = p[0], length = p[1] + p[3];
            merge(x + p[0], x + p[2], length, y + from);
            run[2 * k] = from;
            run[2 * k + 1] = length;
        }
        if (runs & 1) {
            const int32_t *p = run + 2 * (runs - 1);
            memcpy(y + p[0], x + p[0], (size_t)(p[1] + 1) * sizeof *x);
            run[2 * k] = p[0];
            run[2 * k + 1] = p[1];
            k++;
        }
        runs = k;
        item *swap = x;
        x = y;
        y = swap;
    }
    return x + run[0];
}

/* A few items in any order.  With vectors, each goes where the number of smaller ones says: comparisons
 * instead of branches that nobody can predict; up to seven items behind x are overwritten.  Without,
 * by insertion. */
#if defined(__AVX2__) && WIDTH == 32
enum { SHORT = 40, RUN = 16 };
INLINE void sort_few(item *restrict x, int64_t n, item *restrict y)
{
    for (int64_t i = n; i < ((n + 7) & ~(int64_t)7); i++) x[i] = item_last();
    for (int64_t i = 0; i < n; i++) {
        int64_t rank = 0;
#if defined(__AVX512F__)
        __m512i p = _mm512_set1_epi64(x[i]);
        for (int64_t j = 0; j < n; j += 8)
            rank += __builtin_popcount(_mm512_cmpgt_epi64_mask(p, _mm512_loadu_si512(x + j)));
#else
        __m256i p = _mm256_set1_epi64x(x[i]), sum = _mm256_setzero_si256();
        for (int64_t j = 0; j < n; j += 8) {
            const __m256i *v = (const __m256i *)(const void *)(x + j);
            sum = _mm256_sub_epi64(sum, _mm256_cmpgt_epi64(p, _mm256_loadu_si256(v)));
            sum = _mm256_sub_epi64(sum, _mm256_cmpgt_epi64(p, _mm256_loadu_si256(v + 1)));
        }
        __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        rank = _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
#endif
        y[rank] = x[i];
    }
}
#else
enum { SHORT = 8, RUN = 8 };
INLINE void sort_few(item *restrict x, int64_t n, item *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0 && item_less(x[i], y[j - 1]); j--) y[j] = y[j - 1];
        y[j] = x[i];
    }
}
#endif

/* Any order; returns the first item of the result. */
static const item *sort_items(tl_scratch *s, int64_t n)
{
    item *x = s->item[0], *y = s->item[1];
    int64_t runs = 0;
    if (n <= SHORT) {
        sort_few(x, n, y);
        return y;
    }
    for (int64_t from = 0; from < n; from += RUN, runs++) {
        int64_t length = n - from < RUN ? n - from : RUN, to = from + runs;
        sort_few(x + from, length, y + to);
        s->run[2 * runs] = (int32_t)to;
        s->run[2 * runs + 1] = (int32_t)length;
    }
    return merge_runs(y, x, s->run, runs);
}

/* Equal columns added in order; product NULL when only the pattern is wanted. */
INLINE int64_t compress(const mode m, const item *restrict x, int64_t n, const val *restrict product,
                        int64_t base, out o)
{
    int64_t k = -1, last = -1;
    val sum = zero();
    for (int64_t i = 0; i < n; i++) {
        int64_t c = item_column(x[i]);
        bool fresh = c != last;
        k += fresh;
        last = c;
        if (m == SYMBOLIC) {
            if (o.col) o.col[k] = (idx)(base + c);
            continue;
        }
        sum = add(fresh ? zero() : sum, product[item_number(x[i])]);
        o.col[k] = (idx)(base + c);
        o.val[k] = sum;
    }
    return k + 1;
}

INLINE int64_t by_sort(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    item *restrict x = s->item[0];
    val *restrict product = s->product;
    int64_t n = 0, runs = 0;
    int gap = r->products <= SHORT && r->b_rows > 4 ? 0 : 1;        /* 0: a few items, as they come */
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC ? 1 : t->rows); q++, runs++) {
            val w = m == SYMBOLIC ? zero() : a_vals(job)[r->a_begin + t->first + q];
            item *restrict y = x + runs * gap;
            s->run[2 * runs] = (int32_t)(n + runs);
            s->run[2 * runs + 1] = (int32_t)t->length;
            for (int64_t k = 0; k < t->length; k++, n++) {
                y[n] = item_make(col[t->begin + k] - r->lo, n);
                if (m != SYMBOLIC) product[n] = mul(w, b[t->begin + q * t->length + k]);
            }
        }
    }
    const item *sorted = gap ? merge_runs(x, s->item[1], s->run, runs) : sort_items(s, n);
    return compress(m, sorted, n, product, r->lo, o);
}

/* ---- hash */

INLINE int64_t by_hash(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    const idx *restrict col = b_cols(job);
    const val *restrict b = b_vals(job);
    idx *restrict key = s->key;
    val *restrict sum = s->sum;
    item *restrict x = s->item[0];
    int64_t bound = r->hi - r->lo + 1 < r->products ? r->hi - r->lo + 1 : r->products, n = 0;
    int bits = 4;
    while ((int64_t)1 << bits < 2 * bound) bits++;
    uint64_t last = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < r->count; i++) {
        const tl_stretch *t = &s->stretch[i];
        for (int q = 0; q < (m == SYMBOLIC ? 1 : t->rows); q++) {
            val w = m == SYMBOLIC ? zero() : a_vals(job)[r->a_begin + t->first + q];
            for (int64_t k = 0; k < t->length; k++) {
                idx c = col[t->begin + k];
                uint64_t h = ((uint64_t)c * 0x9E3779B97F4A7C15u) >> (64 - bits);
                while (key[h] != c && key[h] != -1) h = (h + 1) & last;
                if (key[h] == -1) {
                    key[h] = c;
                    if (m != SYMBOLIC) sum[h] = zero();
                    x[n++] = item_make(c - r->lo, (int64_t)h);
                }
                if (m != SYMBOLIC) sum[h] = add(sum[h], mul(w, b[t->begin + q * t->length + k]));
            }
        }
    }
    for (int64_t i = 0; i < n; i++) key[item_number(x[i])] = -1;
    if (m == SYMBOLIC && !o.col) return n;
    const item *sorted = sort_items(s, n);
    for (int64_t i = 0; i < n; i++) {
        o.col[i] = (idx)(r->lo + item_column(sorted[i]));
        if (m != SYMBOLIC) o.val[i] = sum[item_number(sorted[i])];
    }
    return n;
}

/* ---- window */

INLINE int64_t lower_bound(const idx *restrict col, int64_t begin, int64_t end, int64_t column)
{
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (col[middle] < column) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

/* The columns lo..hi-1 of one row of C, by whatever fits: slots, sort, or two halves. */
static int64_t window(const mode m, const tl_job *job, tl_scratch *s, int64_t a_begin, int64_t a_end,
                      int64_t lo, int64_t hi, out o)
{
    const idx *col = b_cols(job);
    const val *b = b_vals(job);
    bool fits = hi - lo <= s->slots;
    int64_t base = lo & ~(int64_t)63, products = 0;
    if (hi - base > s->slots) fits = false;
    for (int64_t k = a_begin; k < a_end; k++) {
        int64_t j = col_at(ANY, &job->a, k);
        int64_t end = ptr_at(ANY, &job->b, j + 1), from = lower_bound(col, ptr_at(ANY, &job->b, j), end, lo);
        int64_t to = lower_bound(col, from, end, hi);
        const val *bt = m == SYMBOLIC ? NULL : b + from, *at = m == SYMBOLIC ? NULL : a_vals(job) + k;
        if (fits) {
            if (m == SYMBOLIC)
                scatter(SYMBOLIC, true, 1, 1, s->slot, s->mark, s->block, col + from, bt, to - from, 0, base, at, 0, 1);
            else
                scatter(FUSED, true, 1, 1, s->slot, s->mark, s->block, col + from, bt, to - from, 0, base, at, 0, 1);
        } else if (products + (to - from) <= s->items) {
            for (int64_t i = from; i < to; i++) {
                int64_t n = products + (i - from);
                ((item *)s->item[0])[n] = item_make(col[i] - lo, n);
                if (m != SYMBOLIC) ((val *)s->product)[n] = mul(*at, b[i]);
            }
        }
        products += to - from;
    }
    if (fits) {
        int64_t n = emit(true, s, base, ((hi - 1 - base) >> 6) + 1, o.col, job->exact);
        if (m != SYMBOLIC) collect(1, 1, s, base, o.col, n, o.val);
        return n;
    }
    if (products <= s->items) {
        const item *x = sort_items(s, products);
        return m == SYMBOLIC ? compress(SYMBOLIC, x, products, NULL, lo, o)
                             : compress(FUSED, x, products, s->product, lo, o);
    }
    int64_t middle = lo + (hi - lo) / 2;
    int64_t n = window(m, job, s, a_begin, a_end, lo, middle, o);
    if (o.col) o.col += n;
    if (o.val) o.val += n;
    return n + window(m, job, s, a_begin, a_end, middle, hi, o);
}

/* ---- rows */

INLINE int64_t direct(const mode m, const tl_job *job, tl_scratch *s, const row *r, out o)
{
    if (r->count == 0) return 0;
    const tl_stretch *t = &s->stretch[0];
    const idx *restrict col = b_cols(job) + t->begin;
    if (o.col) memcpy(o.col, col, (size_t)t->length * sizeof(idx));
    if (m == SYMBOLIC) return t->length;
    const val *restrict b = b_vals(job) + t->begin;
    val *restrict value = o.val, w = a_vals(job)[r->a_begin + t->first];
    for (int64_t k = 0; k < t->length; k++) value[k] = add(zero(), mul(w, b[k]));
    return t->length;
}

static int64_t without_zeros(out o, int64_t n)
{
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        if (is_zero(o.val[i])) continue;
        o.col[k] = o.col[i];
        o.val[k++] = o.val[i];
    }
    return k;
}

INLINE void note(tl_scratch *s, tl_accumulator acc, int64_t rows, int64_t products)
{
    s->rows[acc] += rows;
    s->products[acc] += products;
}

/* One row; declines are answered by window(). */
INLINE int64_t one_row(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const row *r, int64_t known, out o)
{
    int64_t span = r->hi - r->lo + 1;
    tl_accumulator acc = tl_choose(job->recipe, r->b_rows, r->products, span);
    if ((acc == TL_SORT || acc == TL_HASH) && r->products + r->b_rows > s->items) acc = TL_DENSE;
    note(s, acc, 1, r->products);
    switch (acc) {
    case TL_DIRECT: return direct(m, job, s, r, o);
    case TL_SORT: return by_sort(m, job, s, r, o);
    case TL_HASH: return by_hash(m, job, s, r, o);
    default: break;
    }
    if (m != NUMERIC && span <= 64) return tiny(m, sh, job, s, r, o);
    if (span <= s->slots - 64) return dense(m, sh, job, s, r, 1, known, o);
    return window(m, job, s, r->a_begin, r->a_begin + r->a_length, r->lo, r->hi + 1, o);
}

/* How many rows from row i on repeat it, each one column on; 1 when none does. */
INLINE int64_t stencil_rows(const shape sh, const tl_job *job, const row *r, int64_t i, int64_t row1)
{
    int64_t rows = 1;
    while (i + rows < row1 && job->a_like[i + rows] == TL_SHIFTED) rows++;
    for (int64_t k = r->a_begin; k < r->a_begin + r->a_length && rows > 3; k++) {
        const uint8_t *like = job->b_like + col_at(sh, &job->a, k);
        int64_t n = 1;
        while (n < rows && like[n] == TL_SHIFTED) n++;
        rows = n;
    }
    return rows > 3 ? rows : 1;
}

/* Rows that repeat the first one, each one column on: the place of every product in its row is found once,
 * for the first row, whose n columns stand at o.col; then each row is added up where it belongs. */
INLINE void stencil(const mode m, const tl_job *job, tl_scratch *s, const row *r, int64_t rows, int64_t n, out o)
{
    const idx *restrict b_col = b_cols(job);
    const val *restrict b = b_vals(job);
    uint16_t *restrict place = s->place;
    int32_t *restrict rank = s->slot;           /* zero again when we leave */
    int64_t base = r->lo, products = 0;
    if (m != SYMBOLIC) {
        for (int64_t i = 0; i < n; i++) rank[o.col[i] - base] = (int32_t)i;
        for (int64_t j = 0; j < r->count; j++)
            for (int64_t k = 0; k < s->stretch[j].length; k++)
                place[products++] = (uint16_t)rank[b_col[s->stretch[j].begin + k] - base];
        for (int64_t i = 0; i < n; i++) rank[o.col[i] - base] = 0;
    }
    for (int64_t i = 1; i < rows; i++) {
        if (m != NUMERIC && o.col) {
            const idx *restrict before = o.col;
            idx *restrict col = o.col + n;
            for (int64_t k = 0; k < n; k++) col[k] = before[k] + 1;
        }
        if (o.col) o.col += n;
        if (m == SYMBOLIC) continue;
        o.val += n;
        val *restrict value = o.val;
        const val *a = a_vals(job) + r->a_begin + i * r->a_length;
        const uint16_t *restrict p = place;
        memset(value, 0, (size_t)n * sizeof *value);
        for (int64_t j = 0; j < r->count; j++) {
            const tl_stretch *t = &s->stretch[j];
            const val *restrict bt = b + t->begin + i * t->length;
            val w = a[t->first];
            if (t->length >= 8 && p[t->length - 1] - p[0] == t->length - 1) {
                val *restrict x = value + p[0];
                for (int64_t k = 0; k < t->length; k++) x[k] = add(x[k], mul(w, bt[k]));
            } else {
                for (int64_t k = 0; k < t->length; k++) value[p[k]] = add(value[p[k]], mul(w, bt[k]));
            }
            p += t->length;
        }
    }
}

INLINE int64_t run_rows(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const tl_piece *piece,
                         void *c_col, void *c_val, int64_t *row_end)
{
    out o = {c_col, c_val};
    int64_t total = 0;
    int64_t begin = ptr_at(sh, &job->a, piece->row0);
    for (int64_t i = piece->row0; i < piece->row1;) {
        int64_t end = ptr_at(sh, &job->a, i + 1), n;
        int rows = 1;
        row r = gather(sh, job, s, begin, end);
        if (sh == ANY && job->twins && job->a_like && r.b_rows > 1) {
            while (rows < 4 && i + rows < piece->row1 && job->a_like[i + rows] == TL_TWIN) rows++;
            int64_t lanes = rows < 3 ? rows : 4;
            if (r.hi - r.lo > s->slots / lanes - 65
                || (tl_choose(job->recipe, r.b_rows, r.products, r.hi - r.lo + 1) != TL_DENSE))
                rows = 1;
        }
        int64_t known = m == NUMERIC ? row_end[i - piece->row0] - total : 0;
        if (job->stencils && rows == 1 && r.b_rows > 1 && !job->drop_zeros && r.products <= s->items
            && r.b_rows == r.count && r.hi - r.lo < s->slots) {
            int64_t repeats = stencil_rows(sh, job, &r, i, piece->row1);
            if (repeats > 1) {
                n = one_row(m, sh, job, s, &r, known, o);
                if (n <= UINT16_MAX) {
                    stencil(m, job, s, &r, repeats, n, o);
                    note(s, TL_STENCIL, repeats - 1, (repeats - 1) * r.products);
                } else {
                    repeats = 1;
                }
                for (int64_t k = 0; k < repeats; k++) {
                    total += n;
                    if (m != NUMERIC) row_end[i - piece->row0 + k] = total;
                }
                if (o.col) o.col += repeats * n;
                if (o.val) o.val += repeats * n;
                i += repeats;
                begin += repeats * (end - begin);
                continue;
            }
        }
        if (rows == 1) {
            n = one_row(m, sh, job, s, &r, known, o);
        } else {
            n = dense(m, sh, job, s, &r, rows, known, o);
            note(s, TL_TWINS, rows, rows * r.products);
        }
        for (int k = 0; k < rows; k++) {
            int64_t kept = m == FUSED && job->drop_zeros ? without_zeros(o, n) : n;
            if (m == FUSED && job->drop_zeros && rows > 1 && kept < n) {
                /* close the gap in front of the rows that follow */
                int64_t rest = (rows - 1 - k) * n;
                memmove(o.col + kept, o.col + n, (size_t)rest * sizeof(idx));
                memmove(o.val + kept, o.val + n, (size_t)rest * sizeof(val));
            }
            if (o.col) o.col += kept;
            if (o.val) o.val += kept;
            total += kept;
            if (m != NUMERIC) row_end[i - piece->row0 + k] = total;
        }
        i += rows;
        begin = end + (rows - 1) * (end - begin);
    }
    return total;
}

/* Some columns of one row. */
static int64_t run_window(const mode m, const tl_job *job, tl_scratch *s, const tl_piece *piece, void *c_col,
                          void *c_val, int64_t *row_end)
{
    out o = {c_col, c_val};
    int64_t begin = ptr_at(ANY, &job->a, piece->row0), end = ptr_at(ANY, &job->a, piece->row0 + 1);
    int64_t n = window(m, job, s, begin, end, piece->lo, piece->hi, o);
    if (m == FUSED && job->drop_zeros) n = without_zeros(o, n);
    row_end[0] = n;
    if (!piece->more) note(s, TL_DENSE, 1, 0);
    return n;
}

INLINE int64_t run_piece(const mode m, const tl_job *job, tl_scratch *s, const tl_piece *piece, void *c_col,
                         void *c_val, int64_t *row_end)
{
    if (piece->lo < piece->hi)
        return run_window(m == NUMERIC ? FUSED : m, job, s, piece, c_col, c_val, row_end);
    bool wide = job->a.ptr64 || job->a.col64 || job->b.ptr64;
    if (m != NUMERIC && WIDTH == 32 && !wide && !job->twins)
        return run_rows(m, PLAIN, job, s, piece, c_col, c_val, row_end);
    return run_rows(m, ANY, job, s, piece, c_col, c_val, row_end);
}

/* ---- what dispatch.c calls */

#define NAME(stem) JOIN(JOIN(JOIN(stem, TL_ISA), JOIN(_, TL_VAL)), JOIN(_, TL_IDX))

#define ENTRY(name, m)                                                                            \
    int64_t name(const tl_job *job, tl_scratch *s, const tl_piece *piece, void *c_col, void *c_val, \
                 int64_t *row_end);                                                               \
    int64_t name(const tl_job *job, tl_scratch *s, const tl_piece *piece, void *c_col, void *c_val, \
                 int64_t *row_end)                                                                \
    {                                                                                             \
        return run_piece(m, job, s, piece, c_col, c_val, row_end);                                \
    }

ENTRY(NAME(tl_fused_), FUSED)
ENTRY(NAME(tl_numeric_), NUMERIC)
#if KIND == 2                   /* patterns have no value type; they are built with the doubles */
ENTRY(NAME(tl_symbolic_), SYMBOLIC)
#endif
