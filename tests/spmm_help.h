/* SPDX-License-Identifier: MIT
 *
 * spmm_help.h - what the tests of SpMM share: dense matrices with guard margins, a plain product to compare
 * with, a product with any settings, on the CPU or on a device, and calls that must fail. */
#ifndef TULLE_SPMM_HELP_H
#define TULLE_SPMM_HELP_H
#include <math.h>
#include "cpu/spmm.h"
#include "ways.h"

#if defined(TULLE_SMALL_TESTS)
enum { SCALE = 3 };
#else
enum { SCALE = 1 };
#endif

/* ---- dense matrices with margins before, between and after rows (columns) that must not be changed */

typedef struct den {
    tulle_dense view;
    char       *memory, *before;        /* before: a copy of all of it */
    size_t      bytes, lead;            /* lead: where the values begin */
} den;

static inline size_t den_place(const tulle_dense *M, int64_t i, int64_t j)
{
    return (size_t)(M->order == TULLE_BY_ROWS ? i * M->ld + j : i + j * M->ld);
}

static inline ref_value den_at(const tulle_dense *M, int64_t i, int64_t j)
{
    return ref_value_at(M->values, M->val_type, (int64_t)den_place(M, i, j));
}

static inline void den_put(const tulle_dense *M, int64_t i, int64_t j, ref_value v)
{
    ref_value_put(M->values, M->val_type, (int64_t)den_place(M, i, j), v);
}

static inline void den_keep(den *d)
{
    memcpy(d->before, d->memory, d->bytes);
}

static inline den den_new(int64_t rows, int64_t cols, int64_t gap, tulle_order order, tulle_type type)
{
    int64_t lines = order == TULLE_BY_ROWS ? rows : cols, length = order == TULLE_BY_ROWS ? cols : rows;
    int64_t ld = length + gap > 0 ? length + gap : 1;
    size_t size = ref_value_size(type);
    den d = {.lead = gap % 8 == 0 ? 64 : 3 * size};             /* aligned to a cache line, or not */
    d.bytes = (d.lead + (size_t)(lines * ld) * size + 3 * size + 63) / 64 * 64;
    d.memory = aligned_alloc(64, d.bytes);
    d.before = malloc(d.bytes);
    if (!d.memory || !d.before) abort();
    memset(d.memory, 0xff, d.bytes);    /* every value is NaN */
    d.view = tulle_dense_make(rows, cols, ld, order, d.memory + d.lead, type);
    den_keep(&d);
    return d;
}

static inline void den_free(den *d)
{
    free(d->memory);
    free(d->before);
}

static inline void den_fill(den *d, ref_kind kind, uint64_t seed)
{
    ref_rng r = {seed * 77 + 5};
    bool is_complex = d->view.val_type >= TULLE_CF32;
    for (int64_t i = 0; i < d->view.rows; i++)
        for (int64_t j = 0; j < d->view.cols; j++) {
            ref_value v = {0, 0};
            double *part[] = {&v.re, &v.im};
            for (int p = 0; p < 1 + is_complex; p++)
                *part[p] = kind == REF_INTEGERS ? (double)(ref_below(&r, 17) - 8) : ref_unit(&r) * 4 - 2;
            den_put(&d->view, i, j, v);
        }
    den_keep(d);
}

/* Whether the margins are unchanged. */
static inline bool den_margins_kept(den *d)
{
    size_t size = ref_value_size(d->view.val_type);
    for (int64_t i = 0; i < d->view.rows; i++)
        for (int64_t j = 0; j < d->view.cols; j++) {
            size_t k = d->lead + den_place(&d->view, i, j) * size;
            memcpy(d->before + k, d->memory + k, size);
        }
    return memcmp(d->memory, d->before, d->bytes) == 0;
}

static inline bool den_untouched(const den *d)
{
    return memcmp(d->memory, d->before, d->bytes) == 0;
}

/* ---- the plain product, each operation rounded to the type */

static inline double spmm_rounded(tulle_type t, double x)
{
    return t == TULLE_F32 || t == TULLE_CF32 ? (double)(float)x : x;
}

static inline ref_value spmm_plus(tulle_type t, ref_value x, ref_value y)
{
    return (ref_value){spmm_rounded(t, x.re + y.re), spmm_rounded(t, x.im + y.im)};
}

static inline ref_value spmm_times(tulle_type t, ref_value x, ref_value y)
{
    if (t < TULLE_CF32) return (ref_value){spmm_rounded(t, x.re * y.re), 0};
    return (ref_value){spmm_rounded(t, spmm_rounded(t, x.re * y.re) - spmm_rounded(t, x.im * y.im)),
                       spmm_rounded(t, spmm_rounded(t, x.re * y.im) + spmm_rounded(t, x.im * y.re))};
}

/* A factor without imaginary part multiplies both parts. */
static inline ref_value spmm_scaled(tulle_type t, ref_value f, ref_value x)
{
    if (f.im != 0) return spmm_times(t, f, x);
    return (ref_value){spmm_rounded(t, f.re * x.re), t < TULLE_CF32 ? 0 : spmm_rounded(t, f.re * x.im)};
}

static inline ref_value spmm_plain_sum(const tulle_csr *A, const tulle_dense *X, int64_t i, int64_t j)
{
    tulle_type t = A->val_type;
    ref_value sum = {0, 0};
    int64_t begin = ref_ptr(A, i), end = ref_ptr(A, i + 1);
    for (int64_t from = begin; from < end; from += TL_SPMM_PART) {
        ref_value part = {0, 0};
        for (int64_t k = from; k < end && k < from + TL_SPMM_PART; k++)
            part = spmm_plus(t, part, spmm_times(t, ref_val(A, k), den_at(X, ref_col(A, k), j)));
        sum = from == begin ? part : spmm_plus(t, sum, part);
    }
    return sum;
}

/* want = alpha*A*X + beta*Y, A transposed already. */
static inline void spmm_plain(const tulle_csr *A, const tulle_dense *X, ref_value alpha, ref_value beta, const tulle_dense *Y,
                  const tulle_dense *want)
{
    tulle_type t = A->val_type;
    bool no_alpha = alpha.re == 0 && alpha.im == 0, no_beta = beta.re == 0 && beta.im == 0;
    for (int64_t i = 0; i < Y->rows; i++)
        for (int64_t j = 0; j < Y->cols; j++) {
            ref_value v = {0, 0};
            if (!no_alpha) v = spmm_scaled(t, alpha, spmm_plain_sum(A, X, i, j));
            if (!no_beta) {
                ref_value old = spmm_scaled(t, beta, den_at(Y, i, j));
                v = no_alpha ? old : spmm_plus(t, v, old);
            }
            den_put(want, i, j, v);
        }
}

static inline bool den_same_bits(double x, double y)
{
    return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0;
}

static inline bool den_same(const tulle_dense *got, const tulle_dense *want, const char *what)
{
    for (int64_t i = 0; i < want->rows; i++)
        for (int64_t j = 0; j < want->cols; j++) {
            ref_value g = den_at(got, i, j), w = den_at(want, i, j);
            if (den_same_bits(g.re, w.re) && den_same_bits(g.im, w.im)) continue;
            printf("    %s: (%" PRId64 ",%" PRId64 ") is %.17g%+.17gi, should be %.17g%+.17gi\n", what, i, j, g.re, g.im,
                   w.re, w.im);
            return false;
        }
    return true;
}

/* Whether both are equal up to `terms` rounding errors of the sum of absolute values. */
static inline bool den_close(const tulle_dense *got, const tulle_dense *want, const tulle_dense *sizes, const tulle_csr *A,
                             const char *what)
{
    double eps = want->val_type == TULLE_F32 || want->val_type == TULLE_CF32 ? 0x1p-24 : 0x1p-53;
    for (int64_t i = 0; i < want->rows; i++)
        for (int64_t j = 0; j < want->cols; j++) {
            ref_value g = den_at(got, i, j), w = den_at(want, i, j);
            double allowed = eps * (4.0 * (double)(ref_ptr(A, i + 1) - ref_ptr(A, i)) + 16) * den_at(sizes, i, j).re;
            if (fabs(g.re - w.re) <= allowed && fabs(g.im - w.im) <= allowed) continue;
            printf("    %s: (%" PRId64 ",%" PRId64 ") is %.17g%+.17gi, should be about %.17g%+.17gi\n", what, i, j, g.re, g.im,
                   w.re, w.im);
            return false;
        }
    return true;
}

static inline double size_of(ref_value v)
{
    return fabs(v.re) + fabs(v.im);
}

/* The sum of absolute values for each value of Y. */
static inline void spmm_sizes(const tulle_csr *A, const tulle_dense *X, ref_value alpha, ref_value beta, const tulle_dense *Y,
                              const tulle_dense *sizes)
{
    for (int64_t i = 0; i < Y->rows; i++)
        for (int64_t j = 0; j < Y->cols; j++) {
            double sum = 0;
            for (int64_t k = ref_ptr(A, i); size_of(alpha) > 0 && k < ref_ptr(A, i + 1); k++)
                sum += size_of(ref_val(A, k)) * size_of(den_at(X, ref_col(A, k), j));
            sum *= size_of(alpha);
            if (size_of(beta) > 0) sum += size_of(beta) * size_of(den_at(Y, i, j));
            den_put(sizes, i, j, (ref_value){sum * (1 + 1e-6) + 1e-30, 0});
        }
}

/* ---- dense matrices on a device.  They are copied there and back as the values of a sparse matrix with one
 * row, margins included; the margin before the first value only with CUDA, where a view may begin
 * anywhere. */

typedef struct den_there {
    tulle_matrix *M;
    tulle_dense   view;
    size_t        skipped;              /* bytes before the first value that were not copied */
} den_there;

static inline den_there den_move(tulle_ctx *ctx, const den *d)
{
    bool cuda = strncmp(tulle_ctx_device(ctx), "cuda", 4) == 0;
    den_there t = {.view = d->view, .skipped = cuda ? 0 : d->lead};
    int64_t n = (int64_t)((d->bytes - t.skipped) / ref_value_size(d->view.val_type)), ptr[2] = {0, n};
    int32_t *col = malloc((size_t)n * sizeof *col);
    if (!col) abort();
    for (int64_t k = 0; k < n; k++) col[k] = (int32_t)k;
    tulle_csr row = tulle_csr_make(1, n, ptr, TULLE_I64, col, TULLE_I32, d->memory + t.skipped, d->view.val_type);
    tulle_status status = tulle_csr_move(ctx, &row, TULLE_DEVICE, &t.M);
    CHECK(status == TULLE_OK, "moving a dense matrix: %s", tulle_ctx_error(ctx));
    if (status != TULLE_OK) abort();
    t.view.values = (char *)tulle_matrix_values(t.M) + (cuda ? d->lead : 0);
    t.view.place = TULLE_DEVICE;
    free(col);
    return t;
}

/* Copies the matrix back to the host. */
static inline void den_fetch(tulle_ctx *ctx, den *d, den_there *t)
{
    tulle_matrix *back = NULL;
    tulle_csr row = tulle_matrix_view(t->M);
    CHECK(tulle_csr_move(ctx, &row, TULLE_HOST, &back) == TULLE_OK, "moving it back: %s", tulle_ctx_error(ctx));
    tulle_csr home = tulle_matrix_view(back);
    if (back) memcpy(d->memory + t->skipped, home.values, (size_t)home.nnz * ref_value_size(d->view.val_type));
    tulle_matrix_free(back);
}

static inline void den_leave(den_there *t)
{
    tulle_matrix_free(t->M);
    t->M = NULL;
}

/* ---- one product against the plain one */

enum { SPMM_A_THERE = 1, SPMM_X_THERE = 2, SPMM_Y_THERE = 4, SPMM_PLACES = 8 };

typedef struct setting {
    tulle_op    op;
    tulle_order x_order, y_order;
    int64_t     x_gap, y_gap, cols;
    ref_value   alpha, beta;
    ref_kind    kind;
    uint64_t    limit;
    bool        plan;
    const char *policy;
    int         ellr_threads, ellr_columns, ellr_block;
    int         places;                 /* which operands are on the device */
    bool        tf32;                   /* allowed */
    bool        close;                  /* compare within rounding: a device may add in another order */
} setting;

static const ref_value zero = {0, 0}, one = {1, 0}, half = {-1.5, 0};

/* One product, or a plan, which is run twice if that does not change Y (the second time with NULL for beta). */
static inline tulle_status spmm_call(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                                     const void *beta, tulle_dense *Y, tulle_spmm_options o, bool plan, bool twice)
{
    tulle_spmm_plan *made = NULL;
    if (!plan) return tulle_spmm(ctx, alpha, A, X, beta, Y, &o);
    tulle_status status = tulle_spmm_plan_create(ctx, A, &o, &made);
    if (status == TULLE_OK) status = tulle_spmm_plan_run(made, alpha, X, beta, Y);
    if (status == TULLE_OK && twice) status = tulle_spmm_plan_run(made, alpha, X, NULL, Y);
    tulle_spmm_plan_free(made);
    return status;
}

static inline void spmm_product(tulle_ctx *ctx, const tulle_csr *A, const ref *turned_a, setting s, const char *name)
{
    tulle_type t = A->val_type;
    const tulle_csr *opA = turned_a ? &turned_a->view : A;
    char what[320];
    snprintf(what, sizeof what, "%s, %" PRId64 " columns, X %s+%" PRId64 ", Y %s+%" PRId64 ", op %d, alpha %g%+gi, beta %g%+gi%s, "
             "%s(%d,%d,%d), places %d", name, s.cols, s.x_order ? "columns" : "rows", s.x_gap, s.y_order ? "columns" : "rows",
             s.y_gap, (int)s.op, s.alpha.re, s.alpha.im, s.beta.re, s.beta.im, s.plan ? ", plan" : "", s.policy ? s.policy : "auto",
             s.ellr_threads, s.ellr_columns, s.ellr_block, s.places);
    den X = den_new(opA->cols, s.cols, s.x_gap, s.x_order, t), Y = den_new(opA->rows, s.cols, s.y_gap, s.y_order, t);
    den want = den_new(opA->rows, s.cols, 0, TULLE_BY_ROWS, t);
    char alpha[16], beta[16];
    ref_value_put(alpha, t, 0, s.alpha);
    ref_value_put(beta, t, 0, s.beta);
    bool reads_x = s.alpha.re != 0 || s.alpha.im != 0, reads_y = s.beta.re != 0 || s.beta.im != 0;
    if (reads_x) den_fill(&X, s.kind, 3);
    if (reads_y) den_fill(&Y, s.kind, 4);       /* else it is NaN */
    spmm_plain(opA, &X.view, s.alpha, s.beta, &Y.view, &want.view);
    const tulle_spmm_lab lab = {.ellr_threads = s.ellr_threads, .ellr_columns = s.ellr_columns, .ellr_block = s.ellr_block};
    tulle_spmm_options o = {.op_a = s.op, .memory_limit = s.limit, .policy = s.policy,
                            .allow_tf32 = s.tf32, .lab = &lab};
    tulle_matrix *a = NULL;
    den_there x = {.view = X.view}, y = {.view = Y.view};
    tulle_csr view = *A;
    if (s.places & SPMM_A_THERE && tulle_csr_move(ctx, A, TULLE_DEVICE, &a) == TULLE_OK) view = tulle_matrix_view(a);
    if (s.places & SPMM_X_THERE) x = den_move(ctx, &X);
    if (s.places & SPMM_Y_THERE) y = den_move(ctx, &Y);
    tulle_status status = spmm_call(ctx, alpha, &view, &x.view, beta, &y.view, o, s.plan, !reads_y);
    CHECK(status == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    if (y.M) den_fetch(ctx, &Y, &y);
    if (x.M) den_fetch(ctx, &X, &x);
    if (status == TULLE_OK && !s.close) CHECK(den_same(&Y.view, &want.view, what), "%s", "wrong product");
    if (status == TULLE_OK && s.close) {
        den sizes = den_new(opA->rows, s.cols, 0, TULLE_BY_ROWS, t);
        tulle_dense old = Y.view;
        old.values = Y.before + Y.lead;
        spmm_sizes(opA, &X.view, s.alpha, s.beta, &old, &sizes.view);
        CHECK(den_close(&Y.view, &want.view, &sizes.view, opA, what), "%s", "wrong product");
        den_free(&sizes);
    }
    CHECK(den_untouched(&X), "%s: X was written", what);
    CHECK(den_margins_kept(&Y), "%s: written outside of Y", what);
    den_leave(&x);
    den_leave(&y);
    tulle_matrix_free(a);
    den_free(&X);
    den_free(&Y);
    den_free(&want);
}

/* ---- matrices */

enum { SHAPES = 14 };

static inline ref spmm_shape(int i, ref_kind kind, ref_types t, const char **name)
{
    static const char *const names[SHAPES] = {
        "0x0", "0x7", "7x0", "empty", "1x1", "1xN", "Nx1", "random", "mostly empty rows", "power law", "band",
        "full row", "blocks", "wide"};
    *name = names[i];
    switch (i) {
    case 0: return ref_new(0, 0, 0, t);
    case 1: return ref_new(0, 7, 0, t);
    case 2: return ref_new(7, 0, 0, t);
    case 3: return ref_new(11, 9, 0, t);
    case 4: return ref_dense(1, 1, kind, t);
    case 5: return ref_dense(1, 90, kind, t);
    case 6: return ref_dense(90, 1, kind, t);
    case 7: return ref_random(3, 120 / SCALE, 90, 6, kind, t);
    case 8: return ref_random(7, 150 / SCALE, 64, 0.7, kind, t);
    case 9: return ref_power(11, 200 / SCALE, 160, 80, kind, t);
    case 10: return ref_band(130 / SCALE, 3, kind, t);
    case 11: return full_row_and_singles(40, 130, 17, kind, t);
    case 12: return ref_blocks(12, 1, 3, kind, t);
    default: return ref_random(5, 20, 700, 25, kind, t);
    }
}

/* ---- the values of a plan: those that A had when the plan was created, until others are set.  Later changes
 * of the caller's arrays, on the host or (by `write`) on a device, must have no effect. */

typedef void (*spmm_write)(tulle_ctx *ctx, void *to, const void *from, uint64_t bytes);

static inline void spmm_write_here(tulle_ctx *ctx, void *to, const void *from, uint64_t bytes)
{
    (void)ctx;
    if (bytes) memcpy(to, from, bytes);
}

/* Whether a run of the plan gives op(A)*X, bit for bit.  Values are integers. */
static inline void spmm_plan_gives(tulle_ctx *ctx, tulle_spmm_plan *plan, const tulle_csr *A, int op, int64_t cols, const char *what)
{
    ref T = ref_transpose(A, (tulle_op)op);
    const tulle_csr *opA = op ? &T.view : A;
    den X = den_new(opA->cols, cols, 0, TULLE_BY_ROWS, A->val_type), Y = den_new(opA->rows, cols, 0, TULLE_BY_COLS, A->val_type);
    den want = den_new(opA->rows, cols, 0, TULLE_BY_ROWS, A->val_type);
    den_fill(&X, REF_INTEGERS, 3);
    spmm_plain(opA, &X.view, one, zero, &want.view, &want.view);
    CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y.view) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    CHECK(den_same(&Y.view, &want.view, what), "%s", "wrong values");
    den_free(&X), den_free(&Y), den_free(&want);
    ref_free(&T);
}

static inline void spmm_values(tulle_ctx *ctx, const ref *first, tulle_spmm_options o, spmm_write write, const char *name)
{
    const ref_types t = {first->view.val_type, first->view.ptr_type, first->view.idx_type};
    const uint64_t bytes = (uint64_t)first->view.nnz * ref_value_size(t.val);
    const bool there = write != spmm_write_here;
    ref A = ref_copy(&first->view, t), other[2] = {ref_copy(&first->view, t), ref_copy(&first->view, t)};
    tulle_matrix *moved[2] = {0};
    tulle_spmm_plan *plan = NULL;
    char what[160];
    tulle_csr view = A.view;
    void *given = A.values, *second = malloc(bytes + 1);
    if (!second) abort();
    for (int i = 0; i < 2; i++) ref_fill(&other[i], REF_INTEGERS, 90 + (uint64_t)i);
    if (there) {
        for (int i = 0; i < 2; i++) CHECK(tulle_csr_move(ctx, &A.view, TULLE_DEVICE, &moved[i]) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        view = tulle_matrix_view(moved[0]);
        given = tulle_matrix_values(moved[0]);
        free(second);
        second = tulle_matrix_values(moved[1]);
    }
    snprintf(what, sizeof what, "%s, %s, op %d, %s%s, A on the %s", name, ref_types_name(t), o.op_a, o.policy ? o.policy : "auto",
             o.allow_tf32 ? ", TF32" : "", there ? "device" : "host");
    REQUIRE(tulle_spmm_plan_create(ctx, &view, &o, &plan) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    spmm_plan_gives(ctx, plan, &first->view, o.op_a, 9, what);
    write(ctx, given, other[0].values, bytes);                  /* in place, without telling the plan */
    spmm_plan_gives(ctx, plan, &first->view, o.op_a, 9, what);
    CHECK(tulle_spmm_plan_set_values(plan, given) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    for (int run = 0; run < 2; run++) spmm_plan_gives(ctx, plan, &other[0].view, o.op_a, 9 - 4 * run, what);
    write(ctx, given, first->values, bytes);
    spmm_plan_gives(ctx, plan, &other[0].view, o.op_a, 5, what);
    if (bytes)
        CHECK(tulle_spmm_plan_set_values(plan, NULL) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "a_values is NULL"), "%s: %s",
              what, tulle_ctx_error(ctx));
    spmm_plan_gives(ctx, plan, &other[0].view, o.op_a, 5, what);
    write(ctx, second, other[1].values, bytes);                 /* another array, which is freed at once */
    CHECK(tulle_spmm_plan_set_values(plan, second) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    if (!there) free(second);
    tulle_matrix_free(moved[1]);
    spmm_plan_gives(ctx, plan, &other[1].view, o.op_a, 9, what);
    tulle_spmm_plan_free(plan);
    tulle_matrix_free(moved[0]);
    ref_free(&A);
    for (int i = 0; i < 2; i++) ref_free(&other[i]);
}

/* Empty operands: no rows, no columns, no entries, or no columns of X; with few and many of the others,
 * because wide rows of X use other code.  places: SPMM_PLACES on a device, 1 on the host.  Tests every
 * step-th combination. */
static inline void spmm_of_nothing(tulle_ctx *ctx, const char *policy, int places, int step)
{
    static const struct { int64_t rows, cols; } sizes[] = {{0, 0}, {0, 5}, {5, 0}, {0, 700}, {700, 0}, {5, 7}, {700, 600}};
    static const int64_t columns[] = {0, 1, 3, 64, 65, 129, 300};
    int turn = 0;
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t c = 0; c < sizeof columns / sizeof *columns; c++, turn++)
                for (int o = 0; o < 4; o++) {
                    if ((turn + o) % step) continue;
                    ref_types t = {(tulle_type)v, turn % 2 ? TULLE_I32 : TULLE_I64, turn % 3 ? TULLE_I32 : TULLE_I64};
                    if (places > 1) t.ptr = t.idx = TULLE_I32;                  /* a device compiles kernels for each */
                    tulle_op op = (tulle_op)((turn + o) % 3);
                    ref A = ref_new(sizes[i].rows, sizes[i].cols, 0, t), T = ref_transpose(&A.view, op);
                    setting s = {.op = op, .x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1), .cols = columns[c],
                                 .alpha = one, .beta = turn % 2 ? half : zero, .plan = (turn + o) / 2 % 2, .policy = policy,
                                 .places = (turn + o) % places};
                    spmm_product(ctx, &A.view, op ? &T : NULL, s, "nothing");
                    ref_free(&A);
                    ref_free(&T);
                }
}

/* ---- invalid arguments: status and message are as expected, and Y is unchanged */

typedef struct call {
    tulle_csr          A;
    tulle_dense        X, Y;
    tulle_spmm_options o;
    const void        *beta;
} call;

static inline void spmm_refused(tulle_ctx *ctx, den *Y, const call *c, tulle_status want, const char *sentence,
                                const char *name)
{
    tulle_dense y = c->Y;
    tulle_status got = tulle_spmm(ctx, NULL, &c->A, &c->X, c->beta, &y, &c->o);
    CHECK(got == want, "%s: %s, not %s (%s)", name, tulle_status_name(got), tulle_status_name(want), tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), sentence), "%s: %s", name, tulle_ctx_error(ctx));
    CHECK(den_untouched(Y), "%s: Y was written", name);
}

/* Arguments that are invalid on every device. */
static inline void spmm_refusals(tulle_ctx *ctx)
{
    const ref_types doubles = {TULLE_F64, TULLE_I32, TULLE_I32};
    ref A = ref_dense(30, 20, REF_REALS, doubles);
    /* a Y that overlaps an array of A must end within it: after it the heap may contain X, or another array
     * of A */
    REQUIRE(A.view.nnz * 4 >= 6 * 31 * 8, "A has %lld entries", (long long)A.view.nnz);
    ref other = ref_copy(&A.view, (ref_types){TULLE_F32, TULLE_I32, TULLE_I32});
    den X = den_new(20, 6, 1, TULLE_BY_ROWS, TULLE_F64), Y = den_new(30, 6, 1, TULLE_BY_COLS, TULLE_F64);
    den_fill(&X, REF_REALS, 1);
    den_fill(&Y, REF_REALS, 2);
    const call good = {.A = A.view, .X = X.view, .Y = Y.view};
    call c;
#define REFUSED(change, status, sentence)                                   \
    do {                                                                    \
        c = good;                                                           \
        change;                                                             \
        spmm_refused(ctx, &Y, &c, status, sentence, #change);               \
    } while (0)
    REFUSED(c.X.rows = 21, TULLE_ESHAPE, "A is 30 x 20, X is 21 x 6, Y is 30 x 6: X should have 20 rows");
    REFUSED(c.X.cols = 5, TULLE_ESHAPE, "X is 20 x 5, Y is 30 x 6: Y should be 30 x 5");
    REFUSED(c.Y.rows = 29, TULLE_ESHAPE, "Y is 29 x 6: Y should be 30 x 6");
    REFUSED(c.o.op_a = TULLE_TRANSPOSE, TULLE_ESHAPE, "A^T is 20 x 30, X is 20 x 6, Y is 30 x 6: X should have 30 rows and Y should be 20 x 6");
    REFUSED(c.o.op_a = TULLE_ADJOINT, TULLE_ESHAPE, "A^H is 20 x 30, X is 20 x 6, Y is 30 x 6: X should have 30 rows and Y should be 20 x 6");
    REFUSED(c.X.ld = 5, TULLE_EINVAL, "X: ld is 5, but a row has 6 values");
    REFUSED(c.Y.ld = 29, TULLE_EINVAL, "Y: ld is 29, but a column has 30 values");
    REFUSED(c.Y.ld = -31, TULLE_EINVAL, "Y: ld is -31");
    REFUSED(c.X.rows = -1, TULLE_EINVAL, "X: -1 rows, 6 columns: a size cannot be negative");
    REFUSED(c.Y.ld = INT64_MAX / 4, TULLE_EOVERFLOW, "Y: 6 columns of 2305843009213693951 values each, ld included, cannot be addressed");
    REFUSED(c.X.ld = INT64_MAX / 64, TULLE_EOVERFLOW, "X: 20 rows of");
    REFUSED(c.X.values = NULL, TULLE_EINVAL, "X: values is NULL");
    REFUSED(c.Y.values = NULL, TULLE_EINVAL, "Y: values is NULL");
    REFUSED(c.X.val_type = TULLE_F32, TULLE_ETYPE, "A has values of type f64, X of type f32, Y of type f64");
    REFUSED(c.Y.val_type = TULLE_CF32, TULLE_ETYPE, "Y of type cf32");
    REFUSED(c.A = other.view, TULLE_ETYPE, "A has values of type f32");
    REFUSED(c.X.val_type = (tulle_type)9, TULLE_ETYPE, "X: val_type is 9");
    REFUSED(c.A.val_type = (tulle_type)0, TULLE_ETYPE, "A: val_type is 0");
    REFUSED(c.Y.order = (tulle_order)2, TULLE_EINVAL, "Y: order is 2");
    REFUSED(c.X.place = (tulle_place)7, TULLE_EINVAL, "X: place is 7");
    REFUSED(c.X.values = (char *)Y.view.values + 80, TULLE_EINVAL, "X and Y overlap: X takes the bytes 0x");
    REFUSED(c.Y.values = (char *)X.view.values - 80, TULLE_EINVAL, "X and Y overlap");
    REFUSED(c.Y.values = A.values, TULLE_EINVAL, "Y overlaps the values of A");
    REFUSED(c.Y.values = A.col_idx, TULLE_EINVAL, "Y overlaps the col_idx of A");
    REFUSED(c.A.values = NULL, TULLE_EINVAL, "A has no values");
    REFUSED(c.A.row_ptr = NULL, TULLE_EINVAL, "A: row_ptr is NULL");
    REFUSED(c.A.nnz++, TULLE_EPATTERN, "A: row_ptr[30] is");
    REFUSED(c.o.op_a = 3, TULLE_EINVAL, "options: op_a is 3, it may be 0 to 2");
    REFUSED(c.o.threads = -1, TULLE_EINVAL, "options: threads is -1");
    REFUSED(c.o.trust_inputs = 2, TULLE_EINVAL, "options: trust_inputs is 2");
    REFUSED(c.o.allow_tf32 = 2, TULLE_EINVAL, "options: allow_tf32 is 2");
    REFUSED(c.o.reserved[3] = 1, TULLE_EINVAL, "options: reserved[3] is not zero");
    REFUSED(c.o.policy = "fast", TULLE_EINVAL, "sparse times dense has no policy \"fast\"; it has auto");
    int64_t k = ref_ptr(&A.view, 7);
    int64_t column = ref_col(&A.view, k);
    const double added = 0.5;           /* with beta 0, Y may be written before the invalid column is found */
    ref_set_col(&A, k, 20);
    REFUSED(c.beta = &added, TULLE_EPATTERN, "A: row 7");
    ref_set_col(&A, k, column);
#undef REFUSED
    den_free(&X);
    den_free(&Y);
    ref_free(&A);
    ref_free(&other);
}

/* ---- provoked failures: a progress function that cancels, and a failing n-th allocation */

static inline int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)user;
    (void)stage;
    (void)fraction;
    return 1;
}

typedef struct heap { long calls, live, fail_at; } heap;

static inline void *heap_alloc(void *user, size_t bytes)
{
    heap *h = user;
    if (++h->calls == h->fail_at) return NULL;
    h->live++;
    return malloc(bytes);
}

static inline void heap_free(void *user, void *p)
{
    ((heap *)user)->live--;
    free(p);
}

/* On a device: for every n, if the n-th allocation fails, Y is unchanged and nothing leaks. */
static inline void spmm_memory_failures(const char *device, const tulle_csr *A)
{
    static const char *const policies[] = {"auto", "ellr"};
    for (int way = 0; way < 4; way++) {
        int op = way & 1 ? TULLE_TRANSPOSE : TULLE_KEEP;
        int64_t rows = op ? A->cols : A->rows, inner = op ? A->rows : A->cols;
        den X = den_new(inner, 3, 0, TULLE_BY_COLS, TULLE_F64), Y = den_new(rows, 3, 0, TULLE_BY_COLS, TULLE_F64);
        den_fill(&X, REF_INTEGERS, 3);
        heap h = {0};
        tulle_mem mem = {heap_alloc, heap_free, &h};
        tulle_ctx *ctx = NULL;
        tulle_status made = tulle_ctx_create(device, &mem, &ctx);
        REQUIRE(made == TULLE_OK, "no context: %s", tulle_status_name(made));
        tulle_spmm_options o = {.op_a = op, .policy = policies[way >> 1]};
        bool enough = false;
        for (long n = 1; !enough && n < 300; n++) {
            h.fail_at = h.calls + n;
            tulle_status status = tulle_spmm(ctx, NULL, A, &X.view, NULL, &Y.view, &o);
            enough = h.calls < h.fail_at;
            h.fail_at = 0;
            CHECK(enough ? status == TULLE_OK : status == TULLE_OK || status == TULLE_ENOMEM, "%s", tulle_ctx_error(ctx));
            CHECK(status == TULLE_OK || (den_untouched(&Y) && tulle_ctx_error(ctx)[0]), "%s",
                  "Y was written, or there is no sentence");
            if (status == TULLE_OK) den_keep(&Y);
        }
        CHECK(enough, "%s", "it never succeeded");
        tulle_ctx_free(ctx);
        CHECK(h.live == 0, "%ld blocks leak", h.live);
        den_free(&X), den_free(&Y);
    }
}

#endif
