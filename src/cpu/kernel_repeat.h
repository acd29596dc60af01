/* SPDX-License-Identifier: MIT
 *
 * kernel_repeat.h - the accumulator "stencil" where B does not go on by one column with A.
 *
 * Multigrid multiplies a stencil by an interpolation, which goes on by a column every few rows.  The products of a
 * row then lie as those of some row shortly before did, all of them some columns on, and rows are short: to find the
 * columns of one costs more than to add it up.  So a thread remembers the last patterns: the columns of all products
 * relative to the first, the columns of C, and which products each of them adds up.  A row that has one of them is
 * written without marks, search or sort.
 *
 * Rows of B are taken eight entries at a time, however short they are: the number of steps does not depend on their
 * lengths, and no branch is guessed wrong.  Where each has exactly one entry, as where every point belongs to one aggregate,
 * entry j is row j, and row pointers are not read.  The pattern that followed the last one before is tried first.
 *
 * Memory: 128 patterns, fewer where they are long, in about 64 KiB; each piece begins without any. */
#ifndef TL_KERNEL_REPEAT_H
#define TL_KERNEL_REPEAT_H
#include "cpu/kernel_gather.h"

typedef idx lanes8 __attribute__((vector_size(8 * sizeof(idx)), aligned(sizeof(idx)), may_alias));

/* A pattern; the arrays that arrays_of() gives lie behind it. */
typedef struct pattern {
    int64_t products;                   /* -1: none */
    int32_t count, next;                /* entries of C; the pattern that came after it */
    int64_t used;                       /* the row that had it last */
} pattern;

typedef struct pattern_arrays {
    int64_t  *keep;                     /* all ones where a product is added to the one before it, else 0 */
    idx      *product, *col;            /* relative to the first product */
    uint16_t *order, *place;            /* products by the column of C they belong to, and its place */
} pattern_arrays;

/* A value in a vector of 16 bytes, zeros behind it: there it can be masked without leaving the register. */
typedef int64_t words __attribute__((vector_size(16)));
#if KIND == 1 || KIND == 3
typedef float sums __attribute__((vector_size(16)));
#else
typedef double sums __attribute__((vector_size(16)));
#endif
#if KIND <= 2
INLINE sums in_vector(val x) { return (sums){x}; }
INLINE val  from_vector(sums x) { return x[0]; }
#else
INLINE sums in_vector(val x) { return (sums){x.re, x.im}; }
INLINE val  from_vector(sums x) { return (val){x[0], x[1]}; }
#endif

enum { ONE, EIGHT };                    /* entries of each row of B: exactly one; any number, eight at a time */

INLINE pattern *pattern_at(const tl_scratch *s, int64_t i)
{
    return (pattern *)(void *)((char *)s->patterns + i * s->pattern_bytes);
}

INLINE pattern_arrays arrays_of(const tl_scratch *s, pattern *p)
{
    int64_t *keep = (int64_t *)(void *)((char *)p + 64);
    idx *product = (idx *)(void *)(keep + s->pattern_room);
    uint16_t *order = (uint16_t *)(void *)(product + 2 * s->pattern_room);
    return (pattern_arrays){keep, product, product + s->pattern_room, order, order + s->pattern_room};
}

INLINE void forget_patterns(const tl_scratch *s)
{
    for (int64_t i = 0; i < s->pattern_count; i++) *pattern_at(s, i) = (pattern){.products = -1};
}

/* What columns are relative to: that of the first product, as a rule. */
INLINE idx first_column(const shape sh, const tl_job *job, int64_t a_begin)
{
    int64_t from = ptr_at(sh, &job->b, col_at(sh, &job->a, a_begin));
    return from < job->b_nnz ? b_cols(job)[from] : 0;
}

/* The columns of a row's products, relative, and zeros until a vector is full; their number, or -1 where they
 * are too many to be remembered. */
static int64_t columns_of(const tl_job *job, const tl_scratch *s, int64_t a_begin, int64_t a_end,
                          idx *restrict x)
{
    const idx *restrict col = b_cols(job), first = first_column(ANY, job, a_begin);
    int64_t n = 0;
    for (int64_t k = a_begin; k < a_end; k++) {
        int64_t j = col_at(ANY, &job->a, k);
        int64_t from = ptr_at(ANY, &job->b, j), to = ptr_at(ANY, &job->b, j + 1);
        if (n + to - from > s->pattern_most) return -1;
        for (; from < to; from++) x[n++] = col[from] - first;
    }
    for (int i = 0; i < TL_PATTERN_PAD; i++) x[n + i] = 0;
    return n;
}

INLINE bool any_lane(const lanes8 *d)           /* not by value: its size is not that of a register everywhere */
{
    uint64_t word[sizeof *d / 8], any = 0;
    memcpy(word, d, sizeof *d);
    for (size_t i = 0; i < sizeof *d / 8; i++) any |= word[i];
    return any != 0;
}

/* Has a row the pattern, where each row of B has one entry?  Its products go to v meanwhile. */
INLINE bool has_pattern_of_ones(const mode m, const shape sh, const tl_job *job, const tl_scratch *s, pattern *p,
                                int64_t a_begin, int64_t a_end, val *restrict v)
{
    const tl_operand ma = job->a;
    const idx *restrict col = job->b.col, *restrict product = arrays_of(s, p).product;
    const idx first = col[col_at(sh, &ma, a_begin)];
    const val *restrict a = (const val *)ma.val + (m != SYMBOLIC ? a_begin : 0), *restrict b = job->b.val;
    const int64_t n = a_end - a_begin;
    idx wrong = 0;
    if (n != p->products) return false;
    for (int64_t k = 0; k < n; k++) {
        int64_t j = col_at(sh, &ma, a_begin + k);
        wrong |= (col[j] - first) ^ product[k];
        if (m != SYMBOLIC) v[k] = mul(a[k], b[j]);
    }
    return wrong == 0;
}

/* The same for rows of any length.  The last entries of B are taken one by one, for there is nothing behind them. */
INLINE bool has_pattern(const mode m, const shape sh, const tl_job *job, const tl_scratch *s, pattern *p,
                        int64_t a_begin, int64_t a_end, val *restrict v)
{
    static const idx ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const tl_operand ma = job->a, mb = job->b;
    const idx *restrict col = mb.col, *restrict product = arrays_of(s, p).product;
    const idx first = first_column(sh, job, a_begin);
    const val *restrict a = ma.val, *restrict b = mb.val;
    const int64_t most = p->products, safe = job->b_nnz - 8;
    lanes8 wrong = {0}, firsts = wrong + first;
    idx wrong_one = 0;
    int64_t n = 0;
    for (int64_t k = a_begin; k < a_end; k++) {
        int64_t j = col_at(sh, &ma, k), from = ptr_at(sh, &mb, j), to = ptr_at(sh, &mb, j + 1);
        int64_t end = n + to - from;
        if (end > most) return false;
        if (to > safe) {
            for (; from < to; from++, n++) {
                wrong_one |= (col[from] - first) ^ product[n];
                if (m != SYMBOLIC) v[n] = mul(a[k], b[from]);
            }
        } else {
            do {
                int64_t left = to - from < 8 ? to - from : 8;
                lanes8 c = *(const lanes8 *)(const void *)(col + from);
                lanes8 want = *(const lanes8 *)(const void *)(product + n);
                wrong |= ((c - firsts) ^ want) & *(const lanes8 *)(const void *)(ones + 8 - left);
                if (m != SYMBOLIC)
                    for (int i = 0; i < 8; i++) v[n + i] = mul(a[k], b[from + i]);
                n += 8;
                from += 8;
            } while (from < to);
        }
        n = end;
    }
    return n == most && wrong_one == 0 && !any_lane(&wrong);
}

/* The number of the pattern with these columns, or of the one that makes room for it: each has two places. */
static int32_t pattern_place(const tl_scratch *s, const idx *restrict x, int64_t n)
{
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = (h + (uint64_t)x[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    int32_t place[2] = {(int32_t)((int64_t)(h >> 32) & (s->pattern_count - 1)), 0};
    place[1] = place[0] ^ 1;
    for (int i = 0; i < 2; i++) {
        pattern *p = pattern_at(s, place[i]);
        if (p->products == n && !memcmp(arrays_of(s, p).product, x, (size_t)n * sizeof *x)) return place[i];
    }
    return place[pattern_at(s, place[1])->used < pattern_at(s, place[0])->used];
}

/* The row that has the pattern: its columns, unless they are known, and its values. */
INLINE void write_repeat(const mode m, const int entries, const tl_job *job, const tl_scratch *s, pattern *p, idx first,
                         const val *restrict v, out o)
{
    const pattern_arrays a = arrays_of(s, p);
    const int64_t n = p->count, all = m == NUMERIC || job->exact ? n : (n + 7) & ~(int64_t)7;
    if (m != NUMERIC && o.col) {
        const idx *restrict from = a.col;
        idx *restrict col = o.col;
        for (int64_t i = 0; i < all; i++) col[i] = first + from[i];
    }
    if (m == SYMBOLIC) return;
    val *restrict value = o.val;
    if (entries == ONE) {               /* few products each: a branch would often be guessed wrong */
        sums sum = {0};
        for (int64_t k = 0; k < p->products; k++) {
            const words keep = {a.keep[k], a.keep[k]};
            sum = (sums)((words)sum & keep) + in_vector(v[a.order[k]]);
            value[a.place[k]] = from_vector(sum);
        }
        return;
    }
    val sum = zero();
    int before = -1;
    for (int64_t k = 0; k < p->products; k++) {         /* the sum stays in a register: no load waits for a store */
        int place = a.place[k];
        sum = add(place == before ? sum : zero(), v[a.order[k]]);
        value[place] = sum;
        before = place;
    }
}

/* Remembers where the products of a row lie, before it is computed. */
INLINE void note_products(const tl_scratch *s, pattern *p, const idx *restrict x, int64_t n)
{
    idx *restrict product = arrays_of(s, p).product;
    p->products = -1;
    memcpy(product, x, (size_t)(n + TL_PATTERN_PAD) * sizeof *x);
}

/* And what came out: n columns at col, NULL where they were only counted. */
INLINE void note_places(const mode m, tl_scratch *s, pattern *p, int64_t products, const row *r, idx first,
                        int64_t n, const idx *restrict col)
{
    const pattern_arrays a = arrays_of(s, p);
    int32_t *restrict rank = s->slot;           /* zero again when we leave */
    if (r->hi - r->lo >= s->slots) return;
    p->products = products;
    p->count = (int32_t)n;
    if (!col) return;
    for (int64_t i = 0; i < n; i++) a.col[i] = col[i] - first;
    for (int64_t i = n; i < ((n + 7) & ~(int64_t)7); i++) a.col[i] = 0;
    if (m == SYMBOLIC) return;
    for (int64_t i = 0; i < n; i++) rank[col[i] - r->lo] = (int32_t)i;
    uint16_t from[TL_PATTERN + 1] = {0};
    for (int64_t k = 0; k < products; k++) from[rank[a.product[k] + first - r->lo] + 1]++;
    for (int64_t i = 1; i < n; i++) from[i] = (uint16_t)(from[i] + from[i - 1]);
    for (int64_t k = 0; k < products; k++) {
        int place = rank[a.product[k] + first - r->lo], at = from[place]++;
        a.order[at] = (uint16_t)k;
        a.place[at] = (uint16_t)place;
    }
    for (int64_t k = 0; k < products; k++) a.keep[k] = k > 0 && a.place[k] == a.place[k - 1] ? -1 : 0;
    for (int64_t i = 0; i < n; i++) rank[col[i] - r->lo] = 0;
}

#endif
