/* SPDX-License-Identifier: MIT
 *
 * kernels.c - computes rows of C = A*B on one thread.
 *
 * The build compiles this file once for each value type (TL_VAL), index type (TL_IDX) and instruction
 * set (TL_ISA).  Everything per product is inlined and branch-free where it can be.  A row is gathered
 * (kernel_gather.h), choose() picks an accumulator by its products and window, and the accumulator, one
 * kernel_*.h each, writes it out sorted.
 *
 * With every accumulator an entry is (((0 + p1) + p2) + ...) in the order of the row of A: the results are
 * equal bit for bit, also between instruction sets (no contraction to fused multiply-adds). */
#include "cpu/kernel_dense.h"
#include "cpu/kernel_direct.h"
#include "cpu/kernel_hash.h"
#include "cpu/kernel_repeat.h"
#include "cpu/kernel_sort.h"
#include "cpu/kernel_stencil.h"
#include "cpu/kernel_window.h"

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

/* The accumulator that the policy has for the row, or sort instead of dense where the processor sorts faster
 * than the policy assumes; but not in the numeric step, which knows the columns: there dense is faster. */
INLINE tl_accumulator choose(const mode m, const tl_job *job, const row *r, int64_t span)
{
    const tl_accumulator acc = tl_choose(job->recipe, r->b_rows, r->products, span);
#if HAVE_NETWORK
    if (m != NUMERIC && job->networks && acc == TL_DENSE && network_fits(r->products, span)) {
        const tl_rule *rule = network_rules;
        while (r->products > rule->max_products) rule++;
        if (span > rule->dense_span) return rule->wide;
    }
#else
    (void)m;
#endif
    return acc;
}

/* Computes one row; where its accumulator cannot, window() does. */
INLINE int64_t one_row(const mode m, const shape sh, const tl_job *job, tl_scratch *s, const row *r,
                       int64_t known, out o)
{
    int64_t span = r->hi - r->lo + 1;
    tl_accumulator acc = choose(m, job, r, span);
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
        if (job->stencils && rows == 1) {
            int64_t alike = stencil_fits(job, s, &r) ? stencil_rows(sh, job, &r, i, piece->row1) : 1;
            if (alike > 1) {
                n = one_row(m, sh, job, s, &r, known, o);
                if (n > UINT16_MAX) alike = 1;
                else stencil(m, job, s, &r, alike, n, o);
                note(s, TL_STENCIL, alike - 1, (alike - 1) * r.products);
                for (int64_t k = 0; k < alike; k++) {
                    total += n;
                    if (m != NUMERIC) row_end[i - piece->row0 + k] = total;
                }
                if (o.col) o.col += alike * n;
                if (o.val) o.val += alike * n;
                i += alike;
                begin += alike * (end - begin);
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
                /* close the gap before the following rows */
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

/* A row that has none of the patterns.  Where `products` is not 0, x has the columns of so many, and p will
 * be their pattern.  Not inlined, so that the loop below has all registers for rows with a known pattern. */
static NOINLINE int64_t other_row(const mode m, const tl_job *job, tl_scratch *s, pattern *p, int64_t begin,
                                  int64_t end, int64_t known, int64_t products, out o)
{
    if (products > 0) note_products(s, p, s->item[0], products);
    row r = gather(ANY, job, s, begin, end);
    int64_t n = m == SYMBOLIC ? one_row(SYMBOLIC, ANY, job, s, &r, known, o)
                : m == FUSED  ? one_row(FUSED, ANY, job, s, &r, known, o)
                              : one_row(NUMERIC, ANY, job, s, &r, known, o);
    if (products > 0) note_places(m, job, s, p, products, &r, first_column(ANY, job, begin), n, o.col);
    return n;
}

/* The same where rows repeat patterns of rows shortly before them.  If most rows of a piece do not, the rest
 * of the piece is computed without looking for patterns. */
INLINE int64_t run_repeats(const mode m, const shape sh, const int entries, const tl_job *job, tl_scratch *s,
                           const tl_piece *piece, void *c_col, void *c_val, int64_t *row_end)
{
    enum { CREDIT = 64, MISS = 2 };
    const pattern_size size = size_of_patterns(s);
    repeats x = {.row = piece->row0, .row1 = piece->row1, .begin = ptr_at(sh, &job->a, piece->row0),
                 .last = pattern_at(s, 0), .o = {c_col, c_val}};
    int64_t credit = CREDIT;
    forget_patterns(m, c_col != NULL, s);
    for (; x.row < x.row1; x.row++) {
#if HAVE_EIGHT
        if (m != SYMBOLIC && !job->drop_zeros && credit > 0) {
            int64_t before = x.row;
            if (m == FUSED) short_rows_fused(entries, sh == PLAIN, job, s, &x, row_end + x.row - piece->row0);
            else short_rows_numeric(entries, sh == PLAIN, job, s, &x);
            if (x.row == x.row1) break;
            credit = credit + x.row - before < CREDIT ? credit + x.row - before : CREDIT;
        }
#endif
        const int64_t begin = x.begin, end = ptr_at(sh, &job->a, x.row + 1);
        int64_t products = 0, n;
        const bool look = end - begin > 1 && credit > 0;
        pattern *p = x.last->next[0];
        bool again = look && repeat_row(m, sh, entries, job, s, size, p, begin, end, x.o);
        if (look && !again) {
            p = x.last->next[1];
            again = repeat_row(m, sh, entries, job, s, size, p, begin, end, x.o);
            if (!again && (products = columns_of(job, s, begin, end, s->item[0])) > 0) {
                p = pattern_place(s, s->item[0], products);
                again = repeat_row(m, sh, entries, job, s, size, p, begin, end, x.o);
            }
            x.last->next[1] = x.last->next[0];
            x.last->next[0] = p;
        }
        if (again) {
            n = p->count;
            x.rows++;
            x.products += p->products;
            credit += credit < CREDIT;
        } else {
            int64_t known = m == NUMERIC ? row_end[x.row - piece->row0] - x.total : 0;
            n = other_row(m, job, s, p, begin, end, known, products, x.o);
            if (products > 0) credit -= MISS;
        }
        if (again || products > 0) {
            p->used = x.row;
            x.last = p;
        }
        if (m == FUSED && job->drop_zeros) n = without_zeros(x.o, n);
        if (x.o.col) x.o.col += n;
        if (x.o.val) x.o.val += n;
        x.total += n;
        if (m != NUMERIC) row_end[x.row - piece->row0] = x.total;
        x.begin = end;
    }
    note(s, TL_STENCIL, x.rows, x.products);
    return x.total;
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
    if (job->repeats && WIDTH == 32 && !wide && job->ones)
        return run_repeats(m, PLAIN, ONE, job, s, piece, c_col, c_val, row_end);
    if (job->repeats && WIDTH == 32 && !wide)
        return run_repeats(m, PLAIN, EIGHT, job, s, piece, c_col, c_val, row_end);
    if (job->repeats) return run_repeats(m, ANY, EIGHT, job, s, piece, c_col, c_val, row_end);
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
#if KIND == 2                   /* pattern kernels have no value type: compiled only once, with double */
ENTRY(NAME(tl_symbolic_), SYMBOLIC)
#endif
