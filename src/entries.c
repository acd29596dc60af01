/* SPDX-License-Identifier: MIT
 *
 * entries.c - checks a row of C = A*B entry by entry, against sums that can neither overflow nor underflow.
 *
 * Each product is split into a double between 1/4 and 1 and a power of two, and each sum is a double with a
 * separate power of two as well; positive and negative products are summed separately.  These two sums
 * determine which values are acceptable for the entry in C's type, in whatever order it was added up:
 *
 *   a number     if it is close to the sum.  The rounding error is relative to the sum of the absolute
 *                values; a subnormal product may also be off by half the smallest number.  Not acceptable if
 *                a single product overflows.
 *   +inf, -inf   if a product of this sign, or all of them together, exceed the range of the type, or if the
 *                operands have infinities.
 *   NaN          if both infinities may have been added, or if the operands produce a NaN.
 *
 * The row is processed in windows of columns; empty ones are skipped.  Memory: a window of sums, and a
 * position in each row of B that the row of A needs. */
#include "verify.h"
#include <math.h>
#include <string.h>

enum { WINDOW = 1 << 14, NOTHING = -100000 };

enum { SURE_NAN = 1, SURE_UP = 2, SURE_DOWN = 4, MAY_UP = 8, MAY_DOWN = 16 };
enum { NAMED = 32, JUDGED = 64 }; /* flags of a column, stored with its real part: in the list; C has it */

typedef struct sum {
    double   up, down;                  /* positive and negative products, in units of 2^power */
    int      power, flags;
    uint32_t terms, small;              /* numbers of products, and of subnormal ones          */
} sum;

typedef struct column { sum part[2]; } column;

static const column empty = {.part = {{.power = NOTHING}, {.power = NOTHING}}};

struct tl_entries {
    int64_t   width;
    column   *columns;
    int32_t  *list;                     /* the columns with products, and how many */
    int64_t   listed;
    int64_t  *at, *end;                 /* positions in B for each entry of the row of A */
};

tulle_status tl_entries_make(tl_base *b, int64_t cols, int64_t longest_row_of_a, tl_entries **out)
{
    tulle_status status = TULLE_OK;
    static const char what[] = "the check of entries";
    tl_entries *e = NULL;
    *out = NULL;
    TRY(tl_calloc(b, &e, 1, sizeof *e, what));
    e->width = cols < WINDOW ? cols : WINDOW;
    TRY(tl_alloc(b, &e->columns, e->width, sizeof *e->columns, what));
    TRY(tl_alloc(b, &e->list, e->width, sizeof *e->list, what));
    TRY(tl_alloc(b, &e->at, longest_row_of_a, sizeof *e->at, what));
    TRY(tl_alloc(b, &e->end, longest_row_of_a, sizeof *e->end, what));
    for (int64_t c = 0; c < e->width; c++) e->columns[c] = empty;
    *out = e;
    e = NULL;
done:
    tl_entries_free(b, e);
    return status;
}

void tl_entries_free(tl_base *b, tl_entries *e)
{
    if (!e) return;
    tl_free(b, e->columns);
    tl_free(b, e->list);
    tl_free(b, e->at);
    tl_free(b, e->end);
    tl_free(b, e);
}

/* ---- sums */

/* The same as frexp(), which would take half of the total time. */
static double split(double v, int *power)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int field = (int)(bits >> 52 & 0x7FF);
    if (field == 0 || field == 0x7FF) return frexp(v, power);
    *power = field - 1022;
    bits = (bits & ~((uint64_t)0x7FF << 52)) | (uint64_t)1022 << 52;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* v * 2^-down; 0 where the result is negligible compared with 1. */
static double lower(double v, int down)
{
    if (down > 1000) return 0;
    uint64_t bits = (uint64_t)(1023 - down) << 52;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return v * unit;
}

/* Notes that a sum of this size (relative to 2^top) may be rounded to infinity, if it is near the overflow
 * threshold or above it; returns whether it certainly is. */
static bool overflows(sum *s, double size, bool up, const tl_reach *r)
{
    const double from = 1 - ldexp(0.5, -r->digits);
    const bool sure = size >= from * (1 + 0x1p-50);
    if (sure) s->flags |= up ? SURE_UP : SURE_DOWN;
    if (size >= from * (1 - 0x1p-50)) s->flags |= up ? MAY_UP : MAY_DOWN;
    return sure;
}

static void add_infinite(sum *s, double p)
{
    s->flags |= isnan(p) ? SURE_NAN : p > 0 ? SURE_UP | MAY_UP : SURE_DOWN | MAY_DOWN;
}

/* a = m * 2^power of A's entry; b as it is. */
static void add(sum *s, double a, double m, int power_a, double b, bool minus, const tl_reach *r)
{
    int power_b;
    if (!isfinite(a) || !isfinite(b)) {
        add_infinite(s, minus ? -(a * b) : a * b);
        return;
    }
    double p = m * split(b, &power_b);
    if (p == 0) return;
    if (minus) p = -p;
    int power = power_a + power_b;
    s->terms++;
    /* an infinite product is only flagged, not added: it would hide whether the others overflow, too */
    if (power >= r->top && overflows(s, ldexp(fabs(p), power - r->top), p > 0, r)) return;
    if (power > s->power) {
        s->up = lower(s->up, power - s->power);
        s->down = lower(s->down, power - s->power);
        s->power = power;
    }
    if (power <= r->bottom + 1) s->small++;
    double size = lower(fabs(p), s->power - power);
    if (p > 0) s->up += size;
    else s->down += size;
}

/* In some order of additions partial sums may overflow although no product does. */
static int flags_of(const sum *s, const tl_reach *r)
{
    int flags = s->flags;
    double more = 1 + ldexp((double)(s->terms + 2), -r->digits), from = 1 - ldexp(0.5, -r->digits);
    if (ldexp(s->up * more, s->power - r->top) >= from) flags |= MAY_UP;
    if (ldexp(s->down * more, s->power - r->top) >= from) flags |= MAY_DOWN;
    return flags;
}

static double expected(const sum *s)
{
    if (s->flags & SURE_NAN || (s->flags & SURE_UP && s->flags & SURE_DOWN)) return NAN;
    if (s->flags & SURE_UP) return INFINITY;
    if (s->flags & SURE_DOWN) return -INFINITY;
    return ldexp(s->up - s->down, s->power);
}

/* Whether c is an acceptable value for the sum.  The error is infinite where infinities or NaN are wrong. */
static bool fits(const sum *s, double c, const tl_reach *r, double *error, double *allowed)
{
    int flags = flags_of(s, r);
    *error = INFINITY;
    *allowed = tl_rounding(r, s->terms, s->terms);
    bool up = flags & MAY_UP, down = flags & MAY_DOWN, right;
    if (isnan(c)) right = flags & SURE_NAN || (up && down);
    else if (flags & SURE_NAN) right = false;
    else if (isinf(c)) right = c > 0 ? up && !(flags & SURE_DOWN) : down && !(flags & SURE_UP);
    else if (flags & (SURE_UP | SURE_DOWN)) right = false;
    else if (s->terms == 0) right = c == 0;
    else {
        double size = s->up + s->down, off = fabs(ldexp(c, -s->power) - (s->up - s->down));
        off -= (double)s->small * ldexp(1, r->bottom - r->digits - s->power);
        *error = off > 0 ? off / size : 0;
        return *error <= *allowed;
    }
    if (right) *error = 0;
    return right;
}

/* ---- rows */

static void judge(const column *q, int64_t i, int64_t col, const double *c, int parts, const tl_reach *reach,
                  tl_verdict *v)
{
    double error, allowed;
    for (int p = 0; p < parts; p++) {
        bool right = fits(&q->part[p], c[p], reach, &error, &allowed);
        if (v->row >= 0) continue;
        if (right) {
            if (error > v->error) v->error = error;
            continue;
        }
        *v = (tl_verdict){i, col, c[p], expected(&q->part[p]), allowed, error};
    }
}

/* Adds the products of the row of A whose columns are in the window. */
static void add_window(tl_entries *e, const tulle_csr *A, const tulle_csr *B, int64_t begin, int64_t end,
                       int64_t first, const tl_reach *reach)
{
    bool complex = tl_parts(A) == 2;
    for (int64_t k = begin; k < end; k++) {
        int64_t *at = &e->at[k - begin];
        double a = tl_part_at(A, k, 0), ai = tl_part_at(A, k, 1);
        int power = 0, power_i = 0;
        double m = frexp(a, &power), mi = frexp(ai, &power_i);
        for (; *at < e->end[k - begin]; ++*at) {
            int64_t c = tl_get(B->col_idx, B->idx_type, *at) - first;
            if (c >= e->width) break;
            column *q = &e->columns[c];
            if (!(q->part[0].flags & NAMED)) e->list[e->listed++] = (int32_t)c;
            q->part[0].flags |= NAMED;
            double b = tl_part_at(B, *at, 0);
            add(&q->part[0], a, m, power, b, false, reach);
            if (!complex) continue;
            double bi = tl_part_at(B, *at, 1);
            add(&q->part[0], ai, mi, power_i, bi, true, reach);
            add(&q->part[1], a, m, power, bi, false, reach);
            add(&q->part[1], ai, mi, power_i, b, false, reach);
        }
    }
}

/* Checks every column of the window that is in C or has products; advances *at in the row of C. */
static void judge_window(tl_entries *e, const tulle_csr *C, int64_t *at, int64_t end, int64_t first,
                         int64_t i, int parts, const tl_reach *reach, tl_verdict *v)
{
    static const double zero[2] = {0, 0};
    for (; *at < end; ++*at) {
        int64_t col = tl_get(C->col_idx, C->idx_type, *at);
        if (col - first >= e->width) break;
        double c[2] = {tl_part_at(C, *at, 0), tl_part_at(C, *at, 1)};
        column *q = &e->columns[col - first];
        judge(q, i, col, c, parts, reach, v);
        q->part[0].flags |= JUDGED;
        if (!(q->part[0].flags & NAMED)) *q = empty;
    }
    for (int64_t t = 0; t < e->listed; t++) {           /* an entry that is missing in C counts as zero */
        column *q = &e->columns[e->list[t]];
        if (!(q->part[0].flags & JUDGED)) judge(q, i, first + e->list[t], zero, parts, reach, v);
        *q = empty;
    }
    e->listed = 0;
}

void tl_entries_row(tl_entries *e, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                    const tl_reach *reach, int64_t i, tl_verdict *v)
{
    int64_t begin = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
    int64_t at = tl_row_begin(C, i), c_end = tl_row_begin(C, i + 1);
    int parts = tl_parts(A) > tl_parts(C) ? tl_parts(A) : tl_parts(C);
    for (int64_t k = begin; k < end; k++) {
        int64_t row = tl_get(A->col_idx, A->idx_type, k);
        e->at[k - begin] = tl_row_begin(B, row);
        e->end[k - begin] = tl_row_begin(B, row + 1);
    }
    for (;;) {
        int64_t first = at < c_end ? tl_get(C->col_idx, C->idx_type, at) : INT64_MAX;
        for (int64_t k = 0; k < end - begin; k++) {
            if (e->at[k] == e->end[k]) continue;
            int64_t c = tl_get(B->col_idx, B->idx_type, e->at[k]);
            if (c < first) first = c;
        }
        if (first == INT64_MAX) break;
        add_window(e, A, B, begin, end, first, reach);
        judge_window(e, C, &at, c_end, first, i, parts, reach, v);
    }
}
