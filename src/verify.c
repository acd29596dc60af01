/* SPDX-License-Identifier: MIT
 *
 * verify.c - checks that C = A*B by an independent computation: compares C*x with A*(B*x), in double, for
 * random x (Freivalds' algorithm).
 *
 * The difference in each row is compared with |A|*(|B|*|x|), so that cancellation is accounted for, times a
 * bound of the rounding error of that many products.  A wrong, missing or misplaced entry of C is detected
 * unless x happens to hide it; two vectors are tried.  Rows are scaled by powers of two, so that double can
 * represent them whatever their magnitude.
 *
 * A sum says little about a row whose products differ widely in magnitude, and nothing about one that has
 * infinities or exceeds the range of C's type.  Bounds for the exponents of the products identify such rows
 * before C is read; they are computed again, entry by entry (entries.c), which takes as long as a plain
 * product.  Memory: a vector of x, unless C has far more columns than entries (x is then computed where it is
 * needed), for each row of B three doubles and two exponents, and windows of sums for entries. */
#include "verify.h"
#include <inttypes.h>
#include <limits.h>
#include <math.h>

/* The nonzero products of a row lie between 2^(low - 2) and 2^high. */
typedef struct span { int low, high; } span;

enum { MANY = 1 << 16, AT_ONCE = 64 };

static const span nothing = {INT_MAX, INT_MIN}, infinite = {INT_MIN, INT_MAX};

typedef struct vector { double *re, *im, *size; } vector;       /* values, and sums of absolute values */

typedef struct check {
    tl_base         *b;
    const tulle_csr *A, *B, *C;
    tl_reach         reach;
    span            *spans;             /* of the rows of B                                  */
    double          *x;                 /* NULL: made where it is needed                     */
    uint64_t         seed;
    vector           u;                 /* B*x, each row of B scaled by 2^-high              */
    tl_entries     **entries;           /* by thread                                         */
    tl_verdict      *verdicts;
    bool             again;             /* second vector: rows checked by entries are skipped        */
    _Atomic int64_t  next;              /* rows not yet taken                                */
} check;

static span span_of(const tulle_csr *A, int64_t begin, int64_t end)
{
    span s = nothing;
    for (int64_t k = begin; k < end; k++)
        for (int part = 0; part < tl_parts(A); part++) {
            int power;
            double v = tl_part_at(A, k, part);
            if (!isfinite(v)) return infinite;
            if (v == 0) continue;
            frexp(v, &power);
            if (power < s.low) s.low = power;
            if (power > s.high) s.high = power;
        }
    return s;
}

static void measure_b(void *arg, int thread, int threads)
{
    const check *j = arg;
    int64_t row1 = tl_part(j->B->rows, thread + 1, threads);
    for (int64_t i = tl_part(j->B->rows, thread, threads); i < row1; i++)
        j->spans[i] = span_of(j->B, tl_row_begin(j->B, i), tl_row_begin(j->B, i + 1));
}

/* A row of A*B: the range of its products, their number, and a bound for the rounding error of their sum. */
typedef struct outlook {
    span    span;
    int64_t products;
    double  allowed;
} outlook;

static outlook look_at(const check *j, int64_t i)
{
    span s = nothing;
    int64_t longest = 0, products = 0, parts = tl_parts(j->A);
    for (int64_t k = tl_row_begin(j->A, i); k < tl_row_begin(j->A, i + 1); k++) {
        int64_t row = tl_get(j->A->col_idx, j->A->idx_type, k);
        int64_t length = tl_row_begin(j->B, row + 1) - tl_row_begin(j->B, row);
        span a = span_of(j->A, k, k + 1), b = j->spans[row];
        if (length == 0) continue;
        if (length > longest) longest = length;
        products += length;
        if (a.high == INT_MAX || b.high == INT_MAX) return (outlook){.span = infinite};
        if (a.high == INT_MIN || b.high == INT_MIN) continue;
        if (a.low + b.low < s.low) s.low = a.low + b.low;
        if (a.high + b.high > s.high) s.high = a.high + b.high;
    }
    int64_t a_terms = tl_row_begin(j->A, i + 1) - tl_row_begin(j->A, i);
    int64_t c_terms = tl_row_begin(j->C, i + 1) - tl_row_begin(j->C, i);
    return (outlook){s, products,
                     tl_rounding(&j->reach, parts * a_terms, parts * (a_terms + longest) + 2 * c_terms)};
}

/* Whether comparing sums is sufficient: no product or sum can exceed the range, and a quarter of the smallest
 * product is visible next to the sum of all others.  For rows with very many products checking entries would
 * take too long, so half the digits are accepted there. */
static bool tame(const outlook *l, int64_t terms, const tl_reach *r)
{
    span s = l->span;
    int more = 2;
    while (terms >> more) more++;
    if (s.high == INT_MIN || s.high == INT_MAX) return false;
    if (s.low - 2 < r->bottom || s.high + more > r->top || s.high - s.low > r->digits / 2) return false;
    return l->products > MANY || ldexp((double)l->products * l->allowed, s.high - s.low + 8) < 1;
}

static double random_at(int64_t i, uint64_t seed)
{
    uint64_t z = ((uint64_t)i + seed) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    double u = 0.5 + (double)(z >> 12) / 4503599627370496.0;
    return z & 1 ? u : -u;
}

static double x_at(const check *j, int64_t i)
{
    return j->x ? j->x[i] : random_at(i, j->seed);
}

/* B*x, each row scaled by its own 2^-high. */
static void apply_b(void *arg, int thread, int threads)
{
    const check *j = arg;
    const tulle_csr *B = j->B;
    int64_t row1 = tl_part(B->rows, thread + 1, threads);
    for (int64_t i = tl_part(B->rows, thread, threads); i < row1; i++) {
        double re = 0, im = 0, size = 0;
        int high = j->spans[i].high == INT_MIN || j->spans[i].high == INT_MAX ? 0 : j->spans[i].high;
        double half = ldexp(1, -high / 2), rest = ldexp(1, -high - -high / 2);  /* 2^-high may overflow */
        for (int64_t k = tl_row_begin(B, i); k < tl_row_begin(B, i + 1); k++) {
            double x = x_at(j, tl_get(B->col_idx, B->idx_type, k));
            double r = tl_part_at(B, k, 0) * half * rest * x, m = tl_part_at(B, k, 1) * half * rest * x;
            re += r;
            im += m;
            size += fabs(r) + fabs(m);
        }
        j->u.re[i] = re;
        j->u.im[i] = im;
        j->u.size[i] = size;
    }
}

/* Compares row i of C*x with A*(B*x), in units of 2^high. */
static void compare_row(const check *j, int64_t i, const outlook *l, tl_verdict *v)
{
    const tulle_csr *A = j->A, *C = j->C;
    int high = l->span.high;
    double re = 0, im = 0, size = 0, unit = ldexp(1, -high);
    for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
        int64_t c = tl_get(A->col_idx, A->idx_type, k);
        if (j->spans[c].high == INT_MIN) continue;
        double r = ldexp(tl_part_at(A, k, 0), j->spans[c].high - high), m = 0;
        if (tl_parts(A) == 2) m = ldexp(tl_part_at(A, k, 1), j->spans[c].high - high);
        re += r * j->u.re[c] - m * j->u.im[c];
        im += r * j->u.im[c] + m * j->u.re[c];
        size += (fabs(r) + fabs(m)) * j->u.size[c];
    }
    for (int64_t k = tl_row_begin(C, i); k < tl_row_begin(C, i + 1); k++) {
        double x = x_at(j, tl_get(C->col_idx, C->idx_type, k));
        re -= tl_part_at(C, k, 0) * unit * x;
        im -= tl_part_at(C, k, 1) * unit * x;
    }
    double error = (fabs(re) + fabs(im)) / size;
    if (!(error <= l->allowed)) *v = (tl_verdict){i, -1, 0, 0, l->allowed, isnan(error) ? INFINITY : error};
    else if (error > v->error) v->error = error;
}

static void compare_rows(const check *j, int thread, int64_t row, int64_t end)
{
    tl_verdict *v = &j->verdicts[thread];
    for (int64_t i = row; i < end && v->row < 0; i++) {
        outlook l = look_at(j, i);
        bool sums = tame(&l, tl_row_begin(j->A, i + 1) - tl_row_begin(j->A, i), &j->reach);
        if (sums) compare_row(j, i, &l, v);
        else if (!j->again) tl_entries_row(j->entries[thread], j->A, j->B, j->C, &j->reach, i, v);
    }
}

static bool is_cancelled(const check *j, int thread, int64_t row)
{
    if (thread != 0) return atomic_load_explicit(&j->b->cancelled, memory_order_relaxed) != 0;
    double part = (double)row / (double)j->A->rows;
    return tl_progress(j->b, "verify", (j->again + part) / 2);
}

/* Rows are taken in order, so that the first wrong row is found before all threads stop. */
static void compare(void *arg, int thread, int threads)
{
    check *j = arg;
    int64_t row, rows = j->A->rows;
    (void)threads;
    while (j->verdicts[thread].row < 0 && (row = atomic_fetch_add(&j->next, AT_ONCE)) < rows
           && !is_cancelled(j, thread, row))
        compare_rows(j, thread, row, row + AT_ONCE < rows ? row + AT_ONCE : rows);
}

static tulle_status check_make(tl_base *b, check *j, int threads)
{
    tulle_status status = TULLE_OK;
    static const char what[] = "a vector for the check";
    int64_t n = j->B->rows, longest = 0;
    if (j->B->cols / 4 <= j->B->nnz + j->C->nnz)
        TRY(tl_alloc(b, &j->x, j->B->cols, sizeof *j->x, what));
    TRY(tl_alloc(b, &j->spans, n, sizeof *j->spans, what));
    TRY(tl_alloc(b, &j->u.re, n, sizeof *j->u.re, what));
    TRY(tl_alloc(b, &j->u.im, n, sizeof *j->u.im, what));
    TRY(tl_alloc(b, &j->u.size, n, sizeof *j->u.size, what));
    TRY(tl_calloc(b, &j->verdicts, threads, sizeof *j->verdicts, what));
    TRY(tl_calloc(b, &j->entries, threads, sizeof *j->entries, what));
    for (int64_t i = 0; i < j->A->rows; i++) {
        int64_t length = tl_row_begin(j->A, i + 1) - tl_row_begin(j->A, i);
        if (length > longest) longest = length;
    }
    for (int t = 0; t < threads; t++) {
        j->verdicts[t].row = -1;
        TRY(tl_entries_make(b, j->B->cols, longest, &j->entries[t]));
    }
done:
    return status;
}

static void check_done(tl_base *b, check *j, int threads)
{
    for (int t = 0; j->entries && t < threads; t++) tl_entries_free(b, j->entries[t]);
    void *all[] = {j->entries, j->verdicts, j->u.re, j->u.im, j->u.size, j->spans, j->x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tl_free(b, all[i]);
}

/* The range of C's type, and the precision of C's or the operands' type, whichever is less. */
static tl_reach reach_of(tulle_type a, tulle_type c)
{
    static const tl_reach narrow = {24, 128, -126}, wide = {53, 1024, -1022};
    tl_reach r = c == TULLE_F32 || c == TULLE_CF32 ? narrow : wide;
    if (a == TULLE_F32 || a == TULLE_CF32) r.digits = narrow.digits;
    return r;
}

/* The error message for the first wrong row. */
static tulle_status conclude(tl_base *b, const check *j, int threads, double *error)
{
    const tl_verdict *v = &j->verdicts[0];
    for (int t = 0; t < threads; t++) {
        const tl_verdict *w = &j->verdicts[t];
        if (w->error > *error) *error = w->error;
        if (w->row >= 0 && (v->row < 0 || w->row < v->row)) v = w;
    }
    if (v->row < 0) return TULLE_OK;
    *error = v->error;
    if (v->col < 0)
        return tl_fail(b, TULLE_ECHECK, "row %" PRId64 ": C*x differs from A*(B*x) by %.3g, %.1g is allowed",
                       v->row, v->error, v->allowed);
    return tl_fail(b, TULLE_ECHECK,
                   "row %" PRId64 ", column %" PRId64 ": C has %.9g, A*B has %.9g; they differ by "
                   "%.3g of what is added up there, %.1g is allowed",
                   v->row, v->col, v->have, v->want, v->error, v->allowed);
}

tulle_status tl_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                              const tulle_options *options, double *error)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o;
    tl_operands p = {0};
    tulle_csr c;
    tulle_matrix *own_c = NULL;
    check j = {.b = b, .A = &p.A, .B = &p.B, .C = &c};
    int threads = 0;
    TRY(tl_options_check(ctx, options, &o));
    TRY(tl_view_check(ctx, C, "C"));
    if (!C->values && C->nnz > 0) {
        status = tl_fail(b, TULLE_EINVAL, "C has no values");
        goto done;
    }
    TRY(tl_operands_make(ctx, ctx->engine, A, B, &o, TL_VALUES | TL_LOOK, &p));
    TRY(tl_on_host(ctx, C, "C", &c, &own_c));
    TRY(tl_csr_check(b, &c, "C", o.threads));
    if (c.rows != p.A.rows || c.cols != p.B.cols) {
        status = tl_fail(b, TULLE_ESHAPE, "C is %" PRId64 " x %" PRId64 ", the product is %" PRId64 " x %"
                         PRId64, c.rows, c.cols, p.A.rows, p.B.cols);
        goto done;
    }
    threads = tl_team_size(b->team);
    if (o.threads > 0 && o.threads < threads) threads = o.threads;
    j.reach = reach_of(p.A.val_type, c.val_type);
    TRY(check_make(b, &j, threads));
    *error = 0;
    tl_team_run(b->team, threads, measure_b, &j);
    for (uint64_t seed = 1; seed <= 2; seed++) {
        j.seed = seed << 40;
        for (int64_t i = 0; j.x && i < p.B.cols; i++) j.x[i] = random_at(i, j.seed);
        j.again = seed > 1;
        atomic_store(&j.next, 0);
        tl_team_run(b->team, threads, apply_b, &j);
        tl_team_run(b->team, threads, compare, &j);
        if (atomic_load(&b->cancelled))
            TRY(tl_fail(b, TULLE_ECANCEL, "the check of a product was cancelled"));
    }
    status = conclude(b, &j, threads, error);
done:
    check_done(b, &j, threads);
    tl_operands_done(b, &p);
    tl_matrix_free(b, own_c);
    return status;
}
