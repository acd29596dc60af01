/* SPDX-License-Identifier: MIT
 *
 * test_verify.c - the check of a product (tulle_product_check): it accepts the plain product of reference.c,
 * even with overflow, underflow, cancellation or NaN, and finds a single wrong entry at any position.
 *
 * Matrices of every scale: all entries near one power of two, rows, columns or entries with powers of their
 * own, from the smallest denormal to the largest number of the type. */
#include <math.h>
#include "ways.h"

enum { SCALINGS = 6, GRID = 7 };

/* The range of a type, as powers of two. */
typedef struct range { int low, high, digits; } range;

static range range_of(tulle_type t)
{
    return t == TULLE_F32 || t == TULLE_CF32 ? (range){-149, 127, 24} : (range){-1074, 1023, 53};
}

static double largest(tulle_type t)
{
    return t == TULLE_F32 || t == TULLE_CF32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}

static double scaled(double v, int power, tulle_type t)
{
    double x = ldexp(v, power), most = largest(t);
    return x > most ? most : x < -most ? -most : x;
}

static int any_power(ref_rng *r, range w)
{
    return w.low + (int)ref_below(r, w.high - w.low + 1);
}

/* Scales the entries: 0 all of them, by `power`; 1 rows, 2 columns, 3 entries by powers of the whole range;
 * 4 rows near the bottom of it, 5 entries near the top. */
static void rescale(ref *A, int how, int power, uint64_t seed)
{
    tulle_type t = A->view.val_type;
    range w = range_of(t);
    ref_rng r = {seed};
    int *of_column = malloc((size_t)A->view.cols * sizeof *of_column + 1);
    for (int64_t c = 0; c < A->view.cols; c++) of_column[c] = any_power(&r, w);
    for (int64_t i = 0; i < A->view.rows; i++) {
        int of_row = any_power(&r, w), bottom = w.low + (int)ref_below(&r, 30);
        for (int64_t k = ref_ptr(&A->view, i); k < ref_ptr(&A->view, i + 1); k++) {
            int all[SCALINGS] = {power, of_row, of_column[ref_col(&A->view, k)], any_power(&r, w), bottom,
                                 w.high - (int)ref_below(&r, 8)};
            ref_value v = ref_val(&A->view, k);
            ref_set_val(A, k, (ref_value){scaled(v.re, all[how], t), scaled(v.im, all[how], t)});
        }
    }
    free(of_column);
}

typedef struct product { ref A, B, C; char name[96]; } product;

static product product_of(ref A, ref B, const char *name)
{
    product p = {.A = A, .B = B, .C = ref_product(&A.view, &B.view)};
    snprintf(p.name, sizeof p.name, "%s", name);
    return p;
}

static void product_free(product *p)
{
    ref_free(&p->A);
    ref_free(&p->B);
    ref_free(&p->C);
}

/* The n-th of the products used by all tests; false after the last. */
static bool product_at(int n, ref_types t, product *p)
{
    range w = range_of(t.val);
    char name[96];
    ref_kind kind = n % 3 == 2 ? REF_CANCELLING : n % 3 ? REF_INTEGERS : REF_REALS;
    int grid = GRID * GRID, wild = (SCALINGS - 1) * SCALINGS;
    if (n >= grid + wild) return false;
    ref A = ref_random(5 + (uint64_t)n, 14, 12, 3, kind, t), B = ref_random(50 + (uint64_t)n, 12, 13, 3, kind, t);
    if (n < grid) {
        int a = w.low + (w.high - w.low) * (n / GRID) / (GRID - 1), b = w.low + (w.high - w.low) * (n % GRID) / (GRID - 1);
        rescale(&A, 0, a, 1);
        rescale(&B, 0, b, 1);
        snprintf(name, sizeof name, "%s, 2^%d times 2^%d", ref_types_name(t), a, b);
    } else {
        int a = 1 + (n - grid) / SCALINGS, b = (n - grid) % SCALINGS;
        rescale(&A, a, 0, (uint64_t)n);
        rescale(&B, b, 0, (uint64_t)n + 7);
        snprintf(name, sizeof name, "%s, scalings %d and %d", ref_types_name(t), a, b);
    }
    *p = product_of(A, B, name);
    return true;
}

static bool passes(tulle_ctx *ctx, const product *p, const tulle_csr *C, double *error)
{
    *error = -1;
    tulle_status status = tulle_product_check(ctx, &p->A.view, &p->B.view, C, NULL, error);
    CHECK(status == TULLE_OK || status == TULLE_ECHECK, "%s: %s", p->name, tulle_ctx_error(ctx));
    return status == TULLE_OK;
}

static void right_products_of_every_scale_pass(void)
{
    tulle_ctx *ctx = ctx_with(2);
    product p;
    double error;
    for (int v = 0; v < 4; v++)
        for (int n = 0; product_at(n, ref_types_at(v), &p); n++) {
            CHECK(passes(ctx, &p, &p.C.view, &error), "%s: %s", p.name, tulle_ctx_error(ctx));
            CHECK(error >= 0 && error < 1e-4, "%s: error %g", p.name, error);
            ref less = ref_without_zeros(&p.C.view);
            CHECK(passes(ctx, &p, &less.view, &error), "%s, without zeros: %s", p.name, tulle_ctx_error(ctx));
            ref_free(&less);
            product_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* diag(s, 1): its square has s*s, which may overflow or underflow. */
static void diagonals_pass(void)
{
    static const double scales[] = {1e30, 1e-30, 1.3e-160, 1e200, 3e-23, 1e-45, 1.5e154, 2e19, 0};
    tulle_ctx *ctx = ctx_with(1);
    double error;
    for (int v = 0; v < 4; v++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            ref D = ref_identity(2, ref_types_at(v));
            ref_set_val(&D, 0, (ref_value){scales[s], 0});
            product p = product_of(D, ref_copy(&D.view, ref_types_at(v)), "diagonal");
            CHECK(passes(ctx, &p, &p.C.view, &error), "%g in %s: %s", scales[s], ref_types_name(ref_types_at(v)),
                  tulle_ctx_error(ctx));
            product_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* ---- planted errors */

/* Sums of the positive and of the negative products of one part of entry (i, j), in long double. */
static void sums_at(const product *p, int64_t i, int64_t j, int part, long double *up, long double *down)
{
    const tulle_csr *A = &p->A.view, *B = &p->B.view;
    *up = *down = 0;
    for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++)
        for (int64_t l = ref_ptr(B, ref_col(A, k)); l < ref_ptr(B, ref_col(A, k) + 1); l++) {
            if (ref_col(B, l) != j) continue;
            ref_value a = ref_val(A, k), b = ref_val(B, l);
            long double s[2] = {part ? (long double)a.re * b.im : (long double)a.re * b.re,
                                part ? (long double)a.im * b.re : -(long double)a.im * b.im};
            for (int q = 0; q < 2; q++) *(s[q] > 0 ? up : down) += fabsl(s[q]);
        }
}

typedef enum plant { WRONG, SIGN, ZERO, NO_NUMBER, PLUS_INFINITY, MINUS_INFINITY, PLANTS } plant;

/* The value to plant, and whether the check must find it: if the old value is no overflow, and the new one
 * differs by more than rounding. */
static bool plant_at(const product *p, int64_t i, int64_t k, int part, plant what, double *value)
{
    tulle_type t = p->C.view.val_type;
    ref_value old = ref_val(&p->C.view, k);
    double c = part ? old.im : old.re;
    long double up, down, size, smallest = ldexpl(1, range_of(t).low), most = largest(t);
    sums_at(p, i, ref_col(&p->C.view, k), part, &up, &down);
    size = up + down;
    if (isnan(c) || isnan(size)) return false;
    bool over = up > most / 2 || down > most / 2;
    switch (what) {
    case WRONG: *value = (double)(c + size / 8); break;
    case SIGN: *value = -c; break;
    case ZERO: *value = 0; break;
    case NO_NUMBER: *value = NAN; return !over;
    case PLUS_INFINITY: *value = INFINITY; return !over && up < most / 2;
    default: *value = -INFINITY; return !over && down < most / 2;
    }
    if (isinf(c)) return what != WRONG && !(up > most / 2 && down > most / 2);
    ref_value rounded;
    char bytes[16];
    ref_value_put(bytes, t, 0, (ref_value){*value, *value});
    rounded = ref_value_at(bytes, t, 0);
    return !over && isfinite(rounded.re) && fabsl((long double)rounded.re - c) > size / 16 + 16 * smallest;
}

static void one_wrong_entry_is_found_wherever_it_is(void)
{
    tulle_ctx *ctx = ctx_with(2);
    product p;
    double error, value;
    int planted[4][PLANTS] = {{0}};
    for (int v = 0; v < 4; v++)
        for (int n = 0; product_at(n, ref_types_at(v), &p); n++) {
            ref *C = &p.C;
            for (int64_t i = 0; i < C->view.rows; i++)
                for (int64_t k = ref_ptr(&C->view, i); k < ref_ptr(&C->view, i + 1); k++) {
                    int part = v >= 2 ? (int)(k & 1) : 0;
                    plant what = (plant)((k + n) % PLANTS);
                    ref_value old = ref_val(&C->view, k);
                    if (!plant_at(&p, i, k, part, what, &value)) continue;
                    planted[v][what]++;
                    ref_set_val(C, k, part ? (ref_value){old.re, value} : (ref_value){value, old.im});
                    CHECK(!passes(ctx, &p, &C->view, &error), "%s: entry %" PRId64 " of row %" PRId64 " part %d is %g, not %g",
                          p.name, k, i, part, value, part ? old.im : old.re);
                    CHECK(error > 0 && strstr(tulle_ctx_error(ctx), "row "), "error %g: %s", error, tulle_ctx_error(ctx));
                    ref_set_val(C, k, old);
                }
            product_free(&p);
        }
    for (int v = 0; v < 4; v++)
        for (int what = 0; what < PLANTS; what++)
            CHECK(planted[v][what] > 50, "only %d of kind %d in %s", planted[v][what], what, ref_types_name(ref_types_at(v)));
    tulle_ctx_free(ctx);
}

/* C without entry k, or with an additional entry before it. */
static ref with_or_without(const ref *C, int64_t k, bool extra, int64_t col, ref_value v)
{
    ref_types t = {C->view.val_type, C->view.ptr_type, C->view.idx_type};
    ref D = ref_new(C->view.rows, C->view.cols, C->view.nnz + (extra ? 1 : -1), t);
    int64_t to = 0;
    for (int64_t i = 0; i < C->view.rows; i++) {
        for (int64_t l = ref_ptr(&C->view, i); l < ref_ptr(&C->view, i + 1); l++) {
            if (l == k && extra) {
                ref_set_col(&D, to, col);
                ref_set_val(&D, to++, v);
            }
            if (l == k && !extra) continue;
            ref_set_col(&D, to, ref_col(&C->view, l));
            ref_set_val(&D, to++, ref_val(&C->view, l));
        }
        ref_set_ptr(&D, i + 1, to);
    }
    return D;
}

static void an_entry_too_many_or_too_few_is_found(void)
{
    tulle_ctx *ctx = ctx_with(2);
    product p;
    double error, value;
    int missing = 0, extra = 0;
    for (int v = 0; v < 4; v++)
        for (int n = 0; product_at(n, ref_types_at(v), &p); n++) {
            const tulle_csr *C = &p.C.view;
            for (int64_t i = 0; i < C->rows; i++)
                for (int64_t k = ref_ptr(C, i); k < ref_ptr(C, i + 1); k++) {
                    int64_t col = ref_col(C, k) - 1;
                    if (plant_at(&p, i, k, 0, ZERO, &value) && k % 3 == 0) {
                        ref D = with_or_without(&p.C, k, false, 0, (ref_value){0, 0});
                        CHECK(!passes(ctx, &p, &D.view, &error), "%s: without entry %" PRId64, p.name, k);
                        ref_free(&D);
                        missing++;
                    }
                    if (k % 3 == 1 && col >= 0 && (k == ref_ptr(C, i) || ref_col(C, k - 1) < col) && isnormal(ref_val(C, k).re)) {
                        ref D = with_or_without(&p.C, k, true, col, ref_val(C, k));
                        CHECK(!passes(ctx, &p, &D.view, &error), "%s: an entry before %" PRId64, p.name, k);
                        ref_free(&D);
                        extra++;
                    }
                }
            product_free(&p);
        }
    CHECK(missing > 500 && extra > 500, "%d missing, %d extra", missing, extra);
    tulle_ctx_free(ctx);
}

/* ---- operands with infinities and NaN */

static void infinities_of_operands_stay_where_they_belong(void)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, 0};
    tulle_ctx *ctx = ctx_with(2);
    double error;
    int found = 0;
    for (int v = 0; v < 4; v++)
        for (int n = 0; n < 24; n++) {
            ref_types t = ref_types_at(v);
            ref_rng r = {(uint64_t)n + 1};
            ref A = ref_random((uint64_t)n, 12, 11, 3, REF_INTEGERS, t), B = ref_random((uint64_t)n + 90, 11, 12, 3, REF_INTEGERS, t);
            for (int q = 0; q < 4; q++) {
                ref *M = q & 1 ? &B : &A;
                int64_t k = ref_below(&r, M->view.nnz);
                ref_set_val(M, k, (ref_value){odd[(q + n) % 4], n % 2 ? odd[(q + n / 2) % 4] : 1});
            }
            product p = product_of(A, B, "operands with infinities");
            CHECK(passes(ctx, &p, &p.C.view, &error), "%s %d: %s", ref_types_name(t), n, tulle_ctx_error(ctx));
            for (int64_t k = 0; k < p.C.view.nnz; k++) {
                ref_value old = ref_val(&p.C.view, k);
                double wrong[] = {isfinite(old.re) ? INFINITY : 1, isnan(old.re) ? -INFINITY : NAN, old.re == INFINITY ? -INFINITY : old.re + 1};
                if (isnan(wrong[k % 3]) == isnan(old.re) && wrong[k % 3] == old.re) continue;
                if (isnan(wrong[k % 3]) && isnan(old.re)) continue;
                ref_set_val(&p.C, k, (ref_value){wrong[k % 3], old.im});
                CHECK(!passes(ctx, &p, &p.C.view, &error), "%s %d: %g, not %g", ref_types_name(t), n, wrong[k % 3], old.re);
                ref_set_val(&p.C, k, old);
                found++;
            }
            product_free(&p);
        }
    CHECK(found > 500, "only %d", found);
    tulle_ctx_free(ctx);
}

/* ---- sums at the ends of the range */

/* One row of A times one column of B. */
static product dot(int n, const double *a, const double *b, tulle_type t)
{
    ref_types types = {t, TULLE_I32, TULLE_I32};
    ref A = ref_dense(1, n, REF_INTEGERS, types), B = ref_dense(n, 1, REF_INTEGERS, types);
    for (int k = 0; k < n; k++) {
        ref_set_val(&A, k, (ref_value){a[k], 0});
        ref_set_val(&B, k, (ref_value){b[k], 0});
    }
    return product_of(A, B, "dot");
}

static void overflow_is_weighed_as_the_type_has_it(void)
{
    static const struct { double a[3], b[3], c; bool right; } cases[] = {
        {{1e200, 0, 0}, {1e200, 1, 1}, INFINITY, true},         /* a product overflows                     */
        {{1e200, 0, 0}, {1e200, 1, 1}, 1e308, false},
        {{1e200, 0, 0}, {1e200, 1, 1}, -INFINITY, false},
        {{1e200, 0, 0}, {1e200, 1, 1}, NAN, false},
        {{1e200, 1e200, 0}, {1e200, -1e200, 1}, NAN, true},     /* infinity minus infinity                 */
        {{1e200, 1e200, 0}, {1e200, -1e200, 1}, 0, false},
        {{1e308, 1e308, 0}, {1, 1, 1}, INFINITY, true},         /* the sum overflows                       */
        {{1e308, 1e308, 0}, {1, 1, 1}, 1.7e308, false},
        {{1e308, 1e308, -1e308}, {1, 1, 1}, INFINITY, true},    /* depends on the order of additions       */
        {{1e308, 1e308, -1e308}, {1, 1, 1}, 1e308, true},
        {{1e308, 1e308, -1e308}, {1, 1, 1}, -INFINITY, false},
        {{1e308, 1e308, -1e308}, {1, 1, 1}, NAN, false},
        {{1e308, -1e308, -1e308}, {1e308, 1, 1}, NAN, true},    /* product: infinity, sum: -infinity       */
        {{-1e308, -1e308, 1e308}, {1, 1, 1e308}, NAN, true},
        {{1e308, -1e308, -1e308}, {1e308, 1, 1}, INFINITY, true},
        {{1e308, -1e308, -1e308}, {1e308, 1, 1}, -INFINITY, false},
        {{1e308, -1e308, 0}, {1e308, 1, 1}, NAN, false},
        {{1e-200, 0, 0}, {1e-200, 1, 1}, 0, true},              /* a product underflows to zero            */
        {{1e-200, 0, 0}, {1e-200, 1, 1}, 5e-324, false},
        {{1e-160, 0, 0}, {1e-160, 1, 1}, 1e-320, true},         /* a denormal                              */
        {{1e-160, 0, 0}, {1e-160, 1, 1}, 0, false},
        {{1e-160, 0, 0}, {1e-160, 1, 1}, 2e-320, false},
        {{1e300, -1e300, 1e-300}, {1, 1, 1}, 1e-300, true},     /* exact cancellation                      */
        {{1e300, -1e300, 1e-300}, {1, 1, 1}, 1e290, false},
    };
    tulle_ctx *ctx = ctx_with(1);
    double error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product p = dot(3, cases[i].a, cases[i].b, TULLE_F64);
        ref_set_val(&p.C, 0, (ref_value){cases[i].c, 0});
        CHECK(passes(ctx, &p, &p.C.view, &error) == cases[i].right, "case %zu: %g", i, cases[i].c);
        product_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- many columns, many threads */

/* Rows checked by entries over several windows of columns, with a small wrong entry in a late window. */
static void wide_rows_are_checked_in_windows(void)
{
    enum { COLUMNS = 200000 };
    ref_types t = {TULLE_F32, TULLE_I32, TULLE_I32};
    tulle_ctx *ctx = ctx_with(3);
    double error;
    ref A = ref_random(3, 9, 20, 6, REF_REALS, t), B = ref_random(4, 20, COLUMNS, 3000, REF_REALS, t);
    rescale(&B, 3, 0, 8);
    product p = product_of(A, B, "wide");
    CHECK(passes(ctx, &p, &p.C.view, &error), "%s", tulle_ctx_error(ctx));
    int found = 0;
    for (int64_t i = 0; i < p.C.view.rows; i++)
        for (int64_t k = ref_ptr(&p.C.view, i) + 11; k < ref_ptr(&p.C.view, i + 1); k += 2500) {
            ref_value old = ref_val(&p.C.view, k);
            double value;
            if (!plant_at(&p, i, k, 0, WRONG, &value)) continue;
            ref_set_val(&p.C, k, (ref_value){value, 0});
            char place[64];
            snprintf(place, sizeof place, "row %" PRId64 ", column %" PRId64 ":", i, ref_col(&p.C.view, k));
            CHECK(!passes(ctx, &p, &p.C.view, &error) && strstr(tulle_ctx_error(ctx), place), "%s %s", place, tulle_ctx_error(ctx));
            ref_set_val(&p.C, k, old);
            found++;
        }
    CHECK(found > 10, "only %d", found);
    product_free(&p);
    tulle_ctx_free(ctx);
}

/* C has 2^40 columns and four entries: time and memory of the check depend on the entries, and it finds a
 * wrong one. */
static void columns_without_entries_cost_nothing(void)
{
    const int64_t far = ((int64_t)1 << 40) - 1;
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I64};
    tulle_ctx *ctx = ctx_with(2);
    double error;
    ref A = ref_dense(2, 2, REF_INTEGERS, t), B = ref_new(2, far + 1, 2, t), C = ref_new(2, far + 1, 4, t);
    for (int i = 0; i < 2; i++) {
        ref_set_ptr(&B, i + 1, i + 1);
        ref_set_ptr(&C, i + 1, 2 * i + 2);
        ref_set_col(&B, i, i == 0 ? 5 : far);
        ref_set_val(&B, i, (ref_value){3, 0});
        for (int j = 0; j < 2; j++) {
            ref_set_col(&C, 2 * i + j, j == 0 ? 5 : far);
            ref_set_val(&C, 2 * i + j, (ref_value){3 * ref_val(&A.view, 2 * i + j).re, 0});
        }
    }
    product p = {.A = A, .B = B, .C = C, .name = "very wide"};
    CHECK(passes(ctx, &p, &p.C.view, &error), "%s", tulle_ctx_error(ctx));
    for (int k = 0; k < 4; k++) {
        ref_value old = ref_val(&p.C.view, k);
        ref_set_val(&p.C, k, (ref_value){old.re + 1, 0});
        CHECK(!passes(ctx, &p, &p.C.view, &error), "entry %d", k);
        ref_set_val(&p.C, k, old);
    }
    product_free(&p);
    tulle_ctx_free(ctx);
}

static int cancel_later(void *user, const char *stage, double fraction)
{
    int *calls = user;
    CHECK(strcmp(stage, "verify") == 0 && fraction >= 0 && fraction <= 1, "%s %g", stage, fraction);
    return ++*calls >= 3;
}

/* A check takes as long as a product and can be cancelled in the same way; the next check is complete. */
static void a_check_can_be_cancelled_half_way(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    tulle_ctx *ctx = ctx_with(1);
    double error;
    int calls = 0;
    ref A = ref_random(3, 1000, 1000, 5, REF_REALS, t), B = ref_random(4, 1000, 1000, 5, REF_REALS, t);
    product p = product_of(A, B, "cancelled");
    tulle_ctx_set_progress(ctx, cancel_later, &calls);
    tulle_status status = tulle_product_check(ctx, &p.A.view, &p.B.view, &p.C.view, NULL, &error);
    CHECK(status == TULLE_ECANCEL && calls == 3, "%d after %d calls", (int)status, calls);
    CHECK(strstr(tulle_ctx_error(ctx), "cancelled"), "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    CHECK(passes(ctx, &p, &p.C.view, &error), "%s", tulle_ctx_error(ctx));
    product_free(&p);
    tulle_ctx_free(ctx);
}

/* Long sums in double may have a larger error than short ones, but it is still rounding. */
static void long_sums_of_one_sign_pass(void)
{
    enum { LONG = 3000000 };
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    tulle_ctx *ctx = ctx_with(2);
    double error;
    ref A = ref_dense(1, LONG, REF_INTEGERS, t), B = ref_dense(LONG, 1, REF_INTEGERS, t);
    for (int k = 0; k < LONG; k++) {
        ref_set_val(&A, k, (ref_value){0.1, 0});
        ref_set_val(&B, k, (ref_value){1, 0});
    }
    product p = product_of(A, B, "long sums");
    CHECK(passes(ctx, &p, &p.C.view, &error), "%s", tulle_ctx_error(ctx));
    ref_set_val(&p.C, 0, (ref_value){ref_val(&p.C.view, 0).re * (1 + 1e-8), 0});
    CHECK(!passes(ctx, &p, &p.C.view, &error), "%s", "1e-8 too much");
    product_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(right_products_of_every_scale_pass), TEST(diagonals_pass), TEST(one_wrong_entry_is_found_wherever_it_is),
          TEST(an_entry_too_many_or_too_few_is_found), TEST(infinities_of_operands_stay_where_they_belong),
          TEST(overflow_is_weighed_as_the_type_has_it), TEST(wide_rows_are_checked_in_windows),
          TEST(columns_without_entries_cost_nothing), TEST(a_check_can_be_cancelled_half_way),
          TEST(long_sums_of_one_sign_pass))
