/* SPDX-License-Identifier: MIT
 *
 * kernel_repeat.h - the accumulator "stencil" for rows whose patterns repeat, but not from one row to the
 * next.
 *
 * Multigrid multiplies a stencil by an interpolation, whose columns advance only every few rows.  The
 * products of a row then have the pattern of some row shortly before, shifted by some columns; and rows are
 * short, so that finding the columns costs more than the sums.  So each thread remembers the last patterns:
 * the columns of all products relative to the first, the columns of C, and the entry of C that each product
 * belongs to.  A row with a known pattern is computed without marks, search or sort.  The pattern that
 * followed last time is tried first.
 *
 * Where rows of B have at most eight entries and those of C at most 32, the row of C is kept in registers
 * (kernel_lanes.h).  Otherwise rows of B are processed eight entries at a time, however short they are: so
 * the number of steps does not depend on their lengths, and no branch is mispredicted.  Where each row of B
 * has exactly one entry, as in unsmoothed aggregation, entry j belongs to row j, and row pointers are not
 * read.
 *
 * Memory: 128 patterns, fewer if they are long, in about 64 KiB, or 256 KiB where rows have more than 128
 * products. */
#ifndef TL_KERNEL_REPEAT_H
#define TL_KERNEL_REPEAT_H
#include "cpu/kernel_lanes.h"

/* A pattern; it is followed in memory by the arrays that arrays_of() returns. */
typedef struct pattern {
    int64_t         products;           /* -1: none */
    int32_t         entries, count;     /* of the row of A, of that of C */
    int32_t         groups;             /* of eight entries of C, if it is summed in registers; else 0 */
    struct pattern *next[2];            /* the patterns that followed it, the last one first */
    int64_t         used;               /* the row that had it last */
} pattern;

typedef struct pattern_arrays {
    idx      *product, *col;            /* relative to the first product */
    uint16_t *place;                    /* of each product in the row of C */
    lane_step *step;                    /* for each row of B, if there is one group: kernel_lanes.h   */
    uint8_t  *length, *lanes, *source;  /* the same for several groups, in the same memory            */
} pattern_arrays;

enum { ONE, EIGHT }; /* entries of each row of B: exactly one; any number, eight at a time */

INLINE pattern *pattern_at(const tl_scratch *s, int64_t i)
{
    return (pattern *)(void *)((char *)s->patterns + i * s->pattern_bytes);
}

/* The lengths of a pattern's arrays. */
typedef struct pattern_size {
    int64_t room, entries;
} pattern_size;

INLINE pattern_size size_of_patterns(const tl_scratch *s)
{
    return (pattern_size){s->pattern_room, s->pattern_entries};
}

INLINE pattern_arrays arrays_of(pattern_size n, pattern *p)
{
    const int64_t room = n.room;
    idx *product = (idx *)(void *)((char *)p + 64);
    uint16_t *place = (uint16_t *)(void *)(product + 2 * room);
    uint8_t *length = (uint8_t *)(void *)(place + room);
    return (pattern_arrays){product, product + room, place, (lane_step *)(void *)length,
                            length, length + n.entries, length + 5 * n.entries};
}

/* Patterns found in earlier pieces are reused if they hold what this one needs: the columns are missing where
 * rows were only counted, and the places where only columns were computed. */
INLINE void forget_patterns(const mode m, const bool columns, tl_scratch *s)
{
    const int noted = 1 + 2 * (int)m + columns;
    if (s->pattern_mode == noted) return;
    s->pattern_mode = noted;
    pattern *first = pattern_at(s, 0);
    for (int64_t i = 0; i < s->pattern_count; i++)
        *pattern_at(s, i) = (pattern){.products = -1, .entries = -1, .next = {first, first}};
}

/* The column that the pattern is relative to: that of the first product, as a rule. */
INLINE idx first_column(const shape sh, const tl_job *job, int64_t a_begin)
{
    int64_t from = ptr_at(sh, &job->b, col_at(sh, &job->a, a_begin));
    return from < job->b_nnz ? b_cols(job)[from] : 0;
}

/* The relative columns of a row's products, padded with zeros to a full vector; returns their number, or -1
 * where they are too many to be remembered. */
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

/* Whether a row has the pattern, if each row of B has one entry; also computes its products, into v. */
INLINE bool has_pattern_of_ones(const mode m, const shape sh, const tl_job *job, const tl_scratch *s,
                                pattern *p, int64_t a_begin, int64_t a_end, val *restrict v)
{
    const tl_arrays ma = job->a;
    const idx *restrict col = job->b.col, *restrict product = arrays_of(size_of_patterns(s), p).product;
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

/* The same for rows of any length.  The last entries of B are read one by one, because there is nothing after
 * them. */
INLINE bool has_pattern(const mode m, const shape sh, const tl_job *job, const tl_scratch *s, pattern *p,
                        int64_t a_begin, int64_t a_end, val *restrict v)
{
    static const idx ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const tl_arrays ma = job->a, mb = job->b;
    const idx *restrict col = mb.col, *restrict product = arrays_of(size_of_patterns(s), p).product;
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

/* The pattern with these columns, or the one to replace: a two-way set-associative table. */
static pattern *pattern_place(const tl_scratch *s, const idx *restrict x, int64_t n)
{
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) h = (h + (uint64_t)x[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    int64_t at = (int64_t)(h >> 32) & (s->pattern_count - 1);
    pattern *p[2] = {pattern_at(s, at), pattern_at(s, at ^ 1)};
    for (int i = 0; i < 2; i++) {
        const idx *product = arrays_of(size_of_patterns(s), p[i]).product;
        if (p[i]->products == n && !memcmp(product, x, (size_t)n * sizeof *x)) return p[i];
    }
    return p[p[1]->used < p[0]->used];
}

/* The columns of a row that has the pattern. */
INLINE void write_columns(const tl_job *job, int64_t n, idx first, const idx *restrict from,
                          idx *restrict col)
{
    const int64_t all = job->exact ? n : (n + 7) & ~(int64_t)7;
    for (int64_t i = 0; i < all; i++) col[i] = first + from[i];
}

/* And its values, the sums of all products in their order. */
INLINE void write_sums(pattern *p, const uint16_t *restrict place, const val *restrict v, val *restrict value)
{
    memset(value, 0, (size_t)p->count * sizeof *value);
    for (int64_t k = 0; k < p->products; k++) value[place[k]] = add(value[place[k]], v[k]);
}

/* Writes a row if it has the pattern. */
INLINE bool repeat_row(const mode m, const shape sh, const int entries, const tl_job *job,
                       const tl_scratch *s, pattern_size size, pattern *p, int64_t a_begin, int64_t a_end,
                       out o)
{
    const pattern_arrays a = arrays_of(size, p);
    const idx first = first_column(sh, job, a_begin);
    bool again;
#if HAVE_EIGHT
    if (m != SYMBOLIC && p->groups) {
        const lane_row r = {a.product, a.length, a.lanes, a.source, a_begin, a_end, p->count, first};
        if (a_end - a_begin != p->entries) return false;
        again = p->groups == 4   ? add_row_4(sh == PLAIN, job, &r, o.val)
                : p->groups == 2 ? add_row_2(sh == PLAIN, job, &r, o.val)
                                 : add_row_1(job, a.step, &r, o.val);
        if (again && m == FUSED) write_columns(job, p->count, first, a.col, o.col);
        return again;
    }
#endif
    again = entries == ONE ? has_pattern_of_ones(m, sh, job, s, p, a_begin, a_end, s->product)
                           : has_pattern(m, sh, job, s, p, a_begin, a_end, s->product);
    if (!again) return false;
    if (m != NUMERIC && o.col) write_columns(job, p->count, first, a.col, o.col);
    if (m != SYMBOLIC) write_sums(p, a.place, s->product, o.val);
    return true;
}

/* The position of run_repeats() in its piece. */
typedef struct repeats {
    int64_t  row, row1, begin, total;   /* the next row, its first entry of A, entries of C so far */
    pattern *last;                      /* of the row before */
    int64_t  rows, products;            /* counts of those that had a known pattern */
    out      o;
} repeats;

#if HAVE_EIGHT
/* Rows of at most eight entries, as long as each has the expected pattern.  The loop uses local variables,
 * few enough for registers. */
INLINE void short_rows(const mode m, const shape sh, const int entries, const tl_job *job,
                       const tl_scratch *s, repeats *at, int64_t *restrict row_end)
{
    const pattern_size size = size_of_patterns(s);
    const tl_arrays ma = job->a, mb = job->b;
    const int64_t row0 = at->row, row1 = at->row1, before = at->total, safe = job->b_nnz - STEP_READS;
    const bool exact = m == NUMERIC || job->exact;
    idx *const col = at->o.col;
    val *const value = at->o.val;
    pattern *last = at->last;
    int64_t i = row0, begin = at->begin, n = 0, products = 0;
    for (; i < row1; i++) {
        const int64_t end = ptr_at(sh, &ma, i + 1);
        pattern *p = last->next[0];
        eight sum;
        if (p->groups != 1 || end - begin != p->entries) break;
        const int64_t j = col_at(sh, &ma, begin), from = entries == ONE ? j : ptr_at(sh, &mb, j);
        if (entries != ONE && from > safe) break;
        const pattern_arrays a = arrays_of(size, p);
        const idx first = ((const idx *)mb.col)[from];
        if (!(entries == ONE ? sum_steps_of_ones(sh, &ma, &mb, a.step, begin, end, first, &sum)
                             : sum_steps(sh, &ma, &mb, safe, a.step, begin, end, first, &sum)))
            break;
        if (exact) eight_store(value + n, p->count, sum);
        else eight_put(value + n, sum);
        if (m != NUMERIC) write_eight_columns(col + n, exact, p->count, a.col, first);
        n += p->count;
        if (m != NUMERIC) row_end[i - row0] = before + n;
        products += p->products;
        p->used = i;
        begin = end;
        last = p;
    }
    at->rows += i - row0;
    at->products += products;
    at->total = before + n;
    at->row = i;
    at->begin = begin;
    at->last = last;
    if (col) at->o.col = col + n;
    at->o.val = value + n;
}

/* The same, specialised for the types of the job. */
INLINE void short_rows_of(const mode m, const int entries, const bool plain, const tl_job *job,
                          const tl_scratch *s, repeats *at, int64_t *restrict row_end)
{
    if (WIDTH == 32 && plain && entries == ONE) short_rows(m, PLAIN, ONE, job, s, at, row_end);
    else if (WIDTH == 32 && plain) short_rows(m, PLAIN, EIGHT, job, s, at, row_end);
    else short_rows(m, ANY, EIGHT, job, s, at, row_end);
}

static NOINLINE void short_rows_fused(const int entries, const bool plain, const tl_job *job,
                                      const tl_scratch *s, repeats *at, int64_t *row_end)
{
    short_rows_of(FUSED, entries, plain, job, s, at, row_end);
}

static NOINLINE void short_rows_numeric(const int entries, const bool plain, const tl_job *job,
                                        const tl_scratch *s, repeats *at)
{
    short_rows_of(NUMERIC, entries, plain, job, s, at, NULL);
}
#endif

/* Records the relative columns of a row's products, before the row is computed. */
INLINE void note_products(const tl_scratch *s, pattern *p, const idx *restrict x, int64_t n)
{
    idx *restrict product = arrays_of(size_of_patterns(s), p).product;
    p->products = p->entries = -1;
    memcpy(product, x, (size_t)(n + TL_PATTERN_PAD) * sizeof *x);
}

#if HAVE_EIGHT
/* The same for a row of C of up to eight entries: the steps of kernel_lanes.h. */
static void note_steps(const tl_job *job, const pattern *p, const pattern_arrays a, int64_t a_begin)
{
    for (int64_t k = 0, n = 0; k < p->entries; k++) {
        int64_t j = col_at(ANY, &job->a, a_begin + k);
        int64_t length = ptr_at(ANY, &job->b, j + 1) - ptr_at(ANY, &job->b, j);
        lane_step step = {.length = (int32_t)length, .some = (uint8_t)((1u << length) - 1)};
        eight_clear(&step.lanes, step.source);
        for (int i = 0; i < length; i++, n++) {
            step.want[i] = -a.product[n];
            eight_note(&step.lanes, step.source, a.place[n], i);
        }
        a.step[k] = step;
    }
}

/* For a row of C that fits in registers: the entries of C that each row of B contributes to, and with which
 * of its own entries. */
static void note_lanes(const tl_job *job, const tl_scratch *s, pattern *p, int64_t a_begin)
{
    const pattern_arrays a = arrays_of(size_of_patterns(s), p);
    const int64_t groups = p->count <= 8 ? 1 : p->count <= 16 ? 2 : 4;
    if (job->b_longest > 8 || p->count > 32 || p->entries > s->pattern_entries) return;
    p->groups = (int32_t)groups;
    if (groups == 1) {
        note_steps(job, p, a, a_begin);
        return;
    }
    for (int64_t g = 0; g < p->entries * groups; g++) eight_clear(a.lanes + g, a.source + 8 * g);
    for (int64_t k = 0, n = 0; k < p->entries; k++) {
        int64_t j = col_at(ANY, &job->a, a_begin + k);
        a.length[k] = (uint8_t)(ptr_at(ANY, &job->b, j + 1) - ptr_at(ANY, &job->b, j));
        for (int i = 0; i < a.length[k]; i++, n++) {
            const int64_t g = k * groups + a.place[n] / 8;
            eight_note(a.lanes + g, a.source + 8 * g, a.place[n] % 8, i);
        }
    }
}
#else
INLINE void note_lanes(const tl_job *job, const tl_scratch *s, pattern *p, int64_t a_begin)
{
    (void)job, (void)s, (void)p, (void)a_begin;
}
#endif

/* Records the result: n columns at col, NULL where they were only counted. */
INLINE void note_places(const mode m, const tl_job *job, tl_scratch *s, pattern *p, int64_t products,
                        const row *r, idx first, int64_t n, const idx *restrict col)
{
    const pattern_arrays a = arrays_of(size_of_patterns(s), p);
    int32_t *restrict rank = s->slot;           /* reset to zero at the end */
    if (r->hi - r->lo >= s->slots) return;
    p->products = products;
    p->entries = (int32_t)r->a_length;
    p->count = (int32_t)n;
    p->groups = 0;
    if (!col) return;
    for (int64_t i = 0; i < n; i++) a.col[i] = col[i] - first;
    for (int64_t i = n; i < ((n + 7) & ~(int64_t)7); i++) a.col[i] = 0;
    if (m == SYMBOLIC) return;
    for (int64_t i = 0; i < n; i++) rank[col[i] - r->lo] = (int32_t)i;
    for (int64_t k = 0; k < products; k++) a.place[k] = (uint16_t)rank[a.product[k] + first - r->lo];
    for (int64_t i = 0; i < n; i++) rank[col[i] - r->lo] = 0;
    note_lanes(job, s, p, r->a_begin);
}

#endif
