/* SPDX-License-Identifier: MIT
 *
 * random_products.c - random calls, compared with the plain product of tests/reference.c.
 *
 *     random_products SECONDS[:TRIALS] SEED DEVICE...
 *
 * Each trial has a number, from SEED on, which determines everything: the device (names with commas are several
 * devices, one with a slash is a choice), shapes, patterns, types, slices of rows, unsorted rows, missing values,
 * every option, memory limits from 1 byte to more than the machine has, and the function: a product, blocks, a plan
 * with changing values, an estimate, a check, sparse times dense, a plan of that.  The result must be equal to the
 * plain product bit for bit, or the call must fail with the status that the arguments require.  If a memory limit is
 * too small, the limit that the message names must be sufficient.  Operands must be unchanged.  With SECONDS 0 there
 * is one trial, that of SEED.  With TRIALS there are this many, the same on every machine, unless SECONDS are over
 * before.
 *
 * If a device is a GPU, values are integers, so that every order of summation gives the same result. */
#include "random.h"
#include "bound.h"
#include "blocks_help.h"

/* ---- one sparse product */

typedef struct product {
    operand       a, b;
    tulle_options o;
    bool          pattern, half;        /* neither operand has values; only one has, which products reject */
    unsigned      errors;               /* bit -status for each error that is possible; 0: must succeed */
    ref           want;                 /* the expected C, according to the options                  */
} product;

static unsigned bit_of(tulle_status status) { return 1u << -(int)status; }

static const char *any_name(trial *t, const char *(*name)(int))
{
    int n = 0;
    while (name(n)) n++;
    return once_in(t, 40) ? "no such name" : name((int)pick(t, n));
}

/* Whether every device of the context has the accumulator; if the name is a choice, with a slash: one of the two. */
static bool has_accumulator(const trial *t, const char *name)
{
    const char *at = t->device;
    int i = 0;
    while (tulle_accumulator_name(i) && strcmp(tulle_accumulator_name(i), name) != 0) i++;
    if (strchr(at, '/')) return tl_accumulator_on(i, TL_ON_CPU) || tl_accumulator_on(i, TL_ON_GPU);
    for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!tl_accumulator_on(i, strncmp(at, "cpu", 3) == 0 ? TL_ON_CPU : TL_ON_GPU)) return false;
    return true;
}

static uint64_t any_limit(trial *t)
{
    switch (pick(t, 8)) {
    case 0: return 1 + (uint64_t)pick(t, 100);
    case 1: return UINT64_MAX - (uint64_t)pick(t, 3);
    case 2: case 3: return (uint64_t)1 << pick(t, 27);
    case 4: return (uint64_t)exp2(8 + 16 * ref_unit(&t->r));
    default: return 0;
    }
}

static void choose_options(trial *t, product *p)
{
    tulle_options *o = &p->o;
    o->threads = (int)pick(t, 6);
    o->memory_limit = any_limit(t);
    o->c_ptr_type = t->few_types ? 0 : (int)pick(t, 3);
    o->c_idx_type = t->few_types ? 0 : (int)pick(t, 3);
    o->drop_zeros = once_in(t, 4);
    o->time_stages = once_in(t, 4);
    o->c_place = once_in(t, 4);
    if (once_in(t, 2)) o->policy = any_name(t, tulle_policy_name);
    if (once_in(t, 3)) o->accumulator = any_name(t, tulle_accumulator_name);
    if (o->accumulator && strchr(t->device, '/')) o->c_place = TULLE_HOST;      /* else it must be one of the GPU's */
    if (o->policy && strcmp(o->policy, "no such name") == 0) p->errors |= bit_of(TULLE_EINVAL);
    if (o->accumulator && !has_accumulator(t, o->accumulator)) p->errors |= bit_of(TULLE_EINVAL);
}

/* The arguments of a product, and its expected result. */
static product product_new(trial *t)
{
    product p = {.o = {.op_a = (int)pick(t, 3) % 3 * (int)pick(t, 2), .op_b = (int)pick(t, 3) * (int)pick(t, 2)}};
    const tulle_type value = t->few_types ? TULLE_F64 : (tulle_type)(1 + pick(t, 4));
    int64_t rows = size_at(t), inner = size_at(t), cols = once_in(t, 3) ? rows : size_at(t);
    if (once_in(t, 3)) inner = rows;
    if (once_in(t, 25) && !p.o.op_b && !t->few_types) cols = (int64_t)1 << (20 + pick(t, 11));
    choose_options(t, &p);
    const bool unsorted = once_in(t, 6);
    p.o.sort_inputs = unsorted ? !once_in(t, 3) : once_in(t, 8);
    p.a = operand_new(t, rows, inner, value, p.o.op_a, unsorted);
    if (once_in(t, 6) && rows == inner && p.o.op_a == p.o.op_b) {         /* A*A, with the same arrays */
        p.b = p.a;
        p.b.plain = p.b.before = (ref){0};
        settle_plain(&p.b);
        keep_before(&p.b);
    } else {
        p.b = operand_new(t, once_in(t, 60) ? inner + 1 : inner, cols, value, p.o.op_b, unsorted && once_in(t, 2));
    }
    if (p.a.plain.view.cols != p.b.plain.view.rows) p.errors |= bit_of(TULLE_ESHAPE);
    const bool in_order = p.a.in_order && p.b.in_order;
    if (in_order && !p.o.sort_inputs) p.o.trust_inputs = once_in(t, 4);
    if (!in_order && !p.o.sort_inputs) p.errors |= bit_of(TULLE_EPATTERN);
    p.pattern = once_in(t, 8) && (p.a.view.nnz > 0 || p.b.view.nnz > 0);        /* an empty matrix needs no values */
    if (p.pattern) p.a.view.values = p.b.view.values = NULL;
    if (once_in(t, 40)) {
        operand *which = once_in(t, 2) ? &p.a : &p.b;
        which->view.values = NULL;
        p.half = which->view.nnz > 0 && !p.pattern;
    }
    return p;
}

static void product_want(product *p)
{
    ref_free(&p->want);
    ref full = ref_product(&p->a.plain.view, &p->b.plain.view);
    if (p->o.drop_zeros && !p->pattern) {
        p->want = ref_without_zeros(&full.view);
        ref_free(&full);
    } else {
        p->want = full;
    }
    if (p->pattern) p->want.view.values = NULL;
}

static void product_free(product *p)
{
    const bool same = p->a.given.row_ptr == p->b.given.row_ptr;
    if (same) p->b.given = (ref){0};
    operand_free(&p->a);
    operand_free(&p->b);
    ref_free(&p->want);
}

static void describe(trial *t, const product *p, const char *way)
{
    const tulle_options *o = &p->o;
    snprintf(t->what, sizeof t->what,
             "%s: A %" PRId64 " x %" PRId64 " with %" PRId64 " entries from %" PRId64 ", B %" PRId64 " x %" PRId64
             " with %" PRId64 " from %" PRId64 ", %s %s%s; limit %" PRIu64 " threads %d ops %d %d c %d %d drop %d sort %d trust"
             " %d place %d policy %s accumulator %s",
             way, p->a.view.rows, p->a.view.cols, p->a.view.nnz, p->a.first, p->b.view.rows, p->b.view.cols, p->b.view.nnz,
             p->b.first, ref_types_name((ref_types){p->a.view.val_type, p->a.view.ptr_type, p->a.view.idx_type}),
             ref_types_name((ref_types){p->b.view.val_type, p->b.view.ptr_type, p->b.view.idx_type}),
             p->pattern ? " pattern" : "", o->memory_limit, o->threads, o->op_a, o->op_b, o->c_ptr_type, o->c_idx_type,
             o->drop_zeros, o->sort_inputs, o->trust_inputs, o->c_place, o->policy ? o->policy : "-",
             o->accumulator ? o->accumulator : "-");
}

/* ---- results */

/* The limit that the error message of a limit that is too small names. */
static uint64_t bytes_wanted(const char *sentence)
{
    const char *at = strstr(sentence, "need");
    at = at ? strpbrk(at, "0123456789") : NULL;
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Whether the status is one that the arguments allow.  *again: the limit was too small, and was set to the one that
 * the message names. */
static bool deserved(trial *t, tulle_status status, unsigned errors, uint64_t *limit, int tries, bool *again)
{
    *again = false;
    EXPECT(t, (status == TULLE_OK) == (tulle_ctx_error(t->ctx)[0] == 0));
    if (errors) {
        EXPECT(t, status != TULLE_OK);
        EXPECT(t, (status > -100 && (errors & bit_of(status))) || (status == TULLE_ELIMIT && *limit));
        return false;
    }
    if (status == TULLE_ELIMIT && *limit) {
        const uint64_t wanted = bytes_wanted(tulle_ctx_error(t->ctx));
        if (t->dense && strchr(t->device, ',')) return false;           /* the message is of one device, for its share */
        EXPECT(t, wanted > *limit);
        EXPECT(t, tries < (t->gpu ? 12 : 3));
        *limit = wanted;
        *again = !t->failed;
        return false;
    }
    EXPECT(t, status == TULLE_OK);
    return status == TULLE_OK;
}

static void limit_kept(trial *t, uint64_t limit)
{
    tulle_stats s;
    tulle_ctx_stats(t->ctx, &s);
    if (getenv("TULLE_RANDOM_PEAKS") && limit && s.peak_bytes > limit)
        printf("seed %" PRIu64 ": peak %" PRIu64 ", limit %" PRIu64 "\n", t->seed, s.peak_bytes, limit);
    if (strchr(t->device, ',')) return;         /* several devices need more than small limits */
    EXPECT(t, !limit || s.peak_bytes <= limit);
}

/* Checks C, on the host or on the device. */
static void is_wanted(trial *t, const product *p, const tulle_matrix *C)
{
    tulle_csr c = tulle_matrix_view(C);
    tulle_matrix *home = NULL;
    if (c.place == TULLE_DEVICE) {
        EXPECT(t, tulle_csr_move(t->ctx, &c, TULLE_HOST, &home) == TULLE_OK);
        if (t->failed) return;
        c = tulle_matrix_view(home);
    }
    EXPECT(t, ref_same(&c, &p->want.view, "C"));
    EXPECT(t, !p->o.c_ptr_type || (int)c.ptr_type == p->o.c_ptr_type);
    EXPECT(t, (int)c.idx_type == (p->o.c_idx_type ? p->o.c_idx_type : (int)p->b.view.idx_type));
    tulle_matrix_free(home);
}

/* Products need values of both operands or of neither, and drop_zeros needs values. */
static void refuse_values(product *p)
{
    if (p->half || (p->pattern && p->o.drop_zeros)) p->errors |= bit_of(TULLE_EINVAL);
}

static void try_multiply(trial *t, product *p)
{
    bool again = true;
    refuse_values(p);
    describe(t, p, "multiply");
    for (int tries = 0; again && !t->failed; tries++) {
        tulle_matrix *C = NULL;
        tulle_status status = tulle_multiply(t->ctx, &p->a.view, &p->b.view, &p->o, &C);
        if (deserved(t, status, p->errors, &p->o.memory_limit, tries, &again)) {
            is_wanted(t, p, C);
            limit_kept(t, p->o.memory_limit);
        } else {
            EXPECT(t, !C);
        }
        tulle_matrix_free(C);
    }
}

static void try_blocks(trial *t, product *p)
{
    bool again = true;
    p->o.c_place = TULLE_HOST;
    refuse_values(p);
    describe(t, p, "blocks");
    for (int tries = 0; again && !t->failed; tries++) {
        blocks_seen seen = {.want = &p->want.view, .good = true};
        tulle_status status = tulle_multiply_blocks(t->ctx, &p->a.view, &p->b.view, &p->o, blocks_compare, &seen);
        EXPECT(t, seen.good);
        if (deserved(t, status, p->errors, &p->o.memory_limit, tries, &again)) {
            EXPECT(t, blocks_all(&seen));
            limit_kept(t, p->o.memory_limit);
        }
    }
}

/* A plan whose values change between runs. */
static void run_plan(trial *t, product *p, tulle_plan *plan)
{
    const tulle_csr c = tulle_plan_pattern(plan);
    void *values = malloc((size_t)c.nnz * ref_value_size(p->a.view.val_type) + 16);
    for (int run = 0; run < 3 && !t->failed; run++) {
        tulle_matrix *C = NULL;
        tulle_status status = tulle_plan_multiply(plan, p->a.given.values, p->b.given.values, &C);
        EXPECT(t, status == TULLE_OK && C);
        if (C) is_wanted(t, p, C);
        tulle_matrix_free(C);
        if (c.place == TULLE_HOST && !t->failed) {
            EXPECT(t, tulle_plan_run(plan, p->a.given.values, p->b.given.values, values) == TULLE_OK);
            EXPECT(t, ref_same_values(values, p->want.view.values, p->a.view.val_type, c.nnz, "values of a plan"));
        }
        operand_refill(t, &p->a);
        if (p->a.given.row_ptr == p->b.given.row_ptr) settle_plain(&p->b), keep_before(&p->b);
        else operand_refill(t, &p->b);
        product_want(p);
    }
    free(values);
}

static void try_plan(trial *t, product *p)
{
    bool again = true;
    if (p->o.drop_zeros || p->o.sort_inputs) p->errors |= bit_of(TULLE_EINVAL);
    if (p->o.c_idx_type && p->o.c_idx_type != (int)p->b.view.idx_type) p->errors |= bit_of(TULLE_ETYPE);
    if (p->pattern) p->pattern = false, p->a.view.values = p->a.given.values, p->b.view.values = p->b.given.values;
    if (!(p->errors & bit_of(TULLE_ESHAPE))) product_want(p);
    describe(t, p, "plan");
    for (int tries = 0; again && !t->failed; tries++) {
        tulle_plan *plan = NULL;
        tulle_status status = tulle_plan_create(t->ctx, &p->a.view, &p->b.view, &p->o, &plan);
        if (deserved(t, status, p->errors, &p->o.memory_limit, tries, &again)) run_plan(t, p, plan);
        tulle_plan_free(plan);
    }
}

static void try_estimate(trial *t, product *p)
{
    tulle_forecast f;
    bool again;
    describe(t, p, "estimate");
    if (p->pattern && p->o.drop_zeros) return;
    tulle_status status = tulle_estimate(t->ctx, &p->a.view, &p->b.view, &p->o, &f);
    if (status == TULLE_ELIMIT && p->o.memory_limit) return;
    if (!deserved(t, status, p->errors, &p->o.memory_limit, 0, &again)) return;
    EXPECT(t, f.products == ref_count_products(&p->a.plain.view, &p->b.plain.view));
    EXPECT(t, f.nnz_lower <= p->want.view.nnz && p->want.view.nnz <= f.nnz_upper);
    EXPECT(t, f.nnz_lower <= f.nnz_estimate && f.nnz_estimate <= f.nnz_upper);
}

/* The largest magnitude of all values; not finite if any value is not. */
static double largest_value(const tulle_csr *A)
{
    double most = 0;
    for (int64_t k = 0; k < A->nnz; k++) {
        const double size = fabs(ref_val(A, k).re) + fabs(ref_val(A, k).im);
        if (!(size <= most)) most = size;
        if (!isfinite(most)) break;
    }
    return most;
}

/* The check must accept the product, and reject it after one entry was changed. */
static void try_check(trial *t, product *p)
{
    double error = -1;
    describe(t, p, "check");
    if (p->errors || p->pattern || p->half || p->want.view.nnz == 0) return;
    EXPECT(t, tulle_product_check(t->ctx, &p->a.view, &p->b.view, &p->want.view, &p->o, &error) == TULLE_OK);
    /* change it by more than any rounding error, but within the range of the type */
    const double size = largest_value(&p->a.plain.view) * largest_value(&p->b.plain.view) * (double)(p->a.plain.view.cols + 1);
    if (t->failed || !(size < 1e30)) return;
    const int64_t k = pick(t, p->want.view.nnz);
    const ref_value v = ref_val(&p->want.view, k);
    ref_set_val(&p->want, k, (ref_value){v.re + 3 * size + 1e3, v.im});
    EXPECT(t, tulle_product_check(t->ctx, &p->a.view, &p->b.view, &p->want.view, &p->o, &error) == TULLE_ECHECK);
}

static void sparse_trial(trial *t)
{
    static void (*const ways[])(trial *, product *) = {try_multiply, try_multiply, try_multiply, try_blocks,
                                                       try_blocks, try_plan, try_estimate, try_check};
    product p = product_new(t);
    if (!(p.errors & bit_of(TULLE_ESHAPE))) product_want(&p);
    else p.want = ref_new(0, 0, 0, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    ways[pick(t, sizeof ways / sizeof *ways)](t, &p);
    EXPECT(t, operand_untouched(&p.a));
    EXPECT(t, operand_untouched(&p.b));
    product_free(&p);
}

/* ---- sparse times dense */

typedef struct dense_product {
    operand            a;
    den                X, Y, want;
    ref_value          alpha, beta;
    char               alpha_value[16], beta_value[16];
    tulle_spmm_options o;
    unsigned           errors;
} dense_product;

static ref_value any_factor(trial *t, tulle_type type)
{
    static const double factors[] = {0, 1, -1, 2, 3};
    ref_value v = {factors[pick(t, 5)], type >= TULLE_CF32 && once_in(t, 3) ? factors[pick(t, 5)] : 0};
    if (!t->gpu && once_in(t, 4)) v.re = ref_unit(&t->r);
    v.re = spmm_rounded(type, v.re);
    return v;
}

static dense_product dense_new(trial *t)
{
    dense_product p = {.o = {.op_a = (int)pick(t, 3) * (int)pick(t, 2), .threads = (int)pick(t, 6),
                             .memory_limit = any_limit(t), .time_stages = once_in(t, 4)}};
    const tulle_type value = t->few_types ? TULLE_F64 : (tulle_type)(1 + pick(t, 4));
    const int64_t rows = size_at(t), inner = once_in(t, 3) ? rows : size_at(t), width = size_at(t) % 70;
    const bool unsorted = once_in(t, 12);
    p.a = operand_new(t, rows, inner, value, p.o.op_a, unsorted);
    const int64_t x_rows = once_in(t, 30) ? inner + 1 : inner, y_cols = once_in(t, 30) ? width + 1 : width;
    p.X = den_new(x_rows, width, pick(t, 4), (tulle_order)pick(t, 2), value);
    p.Y = den_new(rows, y_cols, pick(t, 4), (tulle_order)pick(t, 2), value);
    p.want = den_new(rows, y_cols, 0, TULLE_BY_ROWS, value);
    den_fill(&p.X, t->gpu ? REF_INTEGERS : REF_REALS, ref_next(&t->r) >> 8);
    p.alpha = any_factor(t, value), p.beta = any_factor(t, value);
    if (p.beta.re != 0 || p.beta.im != 0) den_fill(&p.Y, t->gpu ? REF_INTEGERS : REF_REALS, ref_next(&t->r) >> 8);
    ref_value_put(p.alpha_value, value, 0, p.alpha);
    ref_value_put(p.beta_value, value, 0, p.beta);
    if (x_rows != inner || y_cols != width) p.errors |= bit_of(TULLE_ESHAPE);
    if (!p.a.in_order) p.errors |= bit_of(TULLE_EPATTERN);
    else p.o.trust_inputs = once_in(t, 4);
    if (once_in(t, 20)) p.o.policy = "no such name", p.errors |= bit_of(TULLE_EINVAL);
    if (once_in(t, 30)) {
        p.a.view.values = NULL;
        if (p.a.view.nnz > 0) p.errors |= bit_of(TULLE_EINVAL);
    }
    snprintf(t->what, sizeof t->what,
             "spmm: A %" PRId64 " x %" PRId64 " with %" PRId64 " entries from %" PRId64 ", X %" PRId64 " x %" PRId64 ", %s, orders %d %d"
             ", alpha %g%+gi beta %g%+gi, op %d limit %" PRIu64 " threads %d trust %d", p.a.view.rows, p.a.view.cols, p.a.view.nnz,
             p.a.first, x_rows, width, ref_types_name((ref_types){value, p.a.view.ptr_type, p.a.view.idx_type}),
             (int)p.X.view.order, (int)p.Y.view.order, p.alpha.re, p.alpha.im, p.beta.re, p.beta.im, p.o.op_a,
             p.o.memory_limit, p.o.threads, p.o.trust_inputs);
    return p;
}

static void dense_is_wanted(trial *t, dense_product *p)
{
    EXPECT(t, den_same(&p->Y.view, &p->want.view, "Y"));
    EXPECT(t, den_margins_kept(&p->Y));
}

static void plain_want(dense_product *p)
{
    tulle_dense old = p->Y.view;
    spmm_plain(&p->a.plain.view, &p->X.view, p->alpha, p->beta, &old, &p->want.view);
}

/* Restores Y as it was before the product. */
static void reset(den *d) { memcpy(d->memory, d->before, d->bytes); }

static void run_spmm_plan(trial *t, dense_product *p, tulle_spmm_plan *plan)
{
    for (int run = 0; run < 2 && !t->failed; run++) {
        plain_want(p);
        const tulle_status status = tulle_spmm_plan_run(plan, p->alpha_value, &p->X.view, p->beta_value, &p->Y.view);
        if (status == TULLE_ELIMIT && p->o.memory_limit) {      /* a plan does not know the width of X */
            EXPECT(t, den_untouched(&p->Y));
            return;
        }
        EXPECT(t, status == TULLE_OK);
        dense_is_wanted(t, p);
        reset(&p->Y);
        operand_refill(t, &p->a);
        EXPECT(t, tulle_spmm_plan_set_values(plan, p->a.given.values) == TULLE_OK);
    }
}

static void dense_trial(trial *t)
{
    dense_product p = dense_new(t);
    const bool by_plan = once_in(t, 3);
    const bool no_alpha = p.alpha.re == 0 && p.alpha.im == 0;
    bool again = true;
    /* with alpha 0 the arrays of A are not read, and errors in them not detected */
    if (no_alpha && !by_plan) p.errors &= ~(bit_of(TULLE_EPATTERN) | (p.o.policy ? 0 : bit_of(TULLE_EINVAL)));
    if (by_plan) p.errors &= ~bit_of(TULLE_ESHAPE);
    if (by_plan && (p.X.view.rows != p.a.plain.view.cols || p.Y.view.cols != p.X.view.cols)) goto done;
    if (!p.errors) plain_want(&p);
    for (int tries = 0; again && !t->failed; tries++) {
        tulle_spmm_plan *plan = NULL;
        tulle_status status = by_plan ? tulle_spmm_plan_create(t->ctx, &p.a.view, &p.o, &plan)
                                      : tulle_spmm(t->ctx, p.alpha_value, &p.a.view, &p.X.view, p.beta_value, &p.Y.view, &p.o);
        bool good = deserved(t, status, p.errors, &p.o.memory_limit, tries, &again);
        if (good && by_plan) run_spmm_plan(t, &p, plan);
        else if (good) dense_is_wanted(t, &p);
        else if (status != TULLE_EPATTERN || p.beta.re != 0 || p.beta.im != 0) EXPECT(t, den_untouched(&p.Y));
        else reset(&p.Y);               /* rows of A are checked just before they are multiplied */
        tulle_spmm_plan_free(plan);
    }
    EXPECT(t, operand_untouched(&p.a));
    EXPECT(t, den_untouched(&p.X));
done:
    operand_free(&p.a);
    den_free(&p.X), den_free(&p.Y), den_free(&p.want);
}

/* ---- trials */

static bool run_trial(uint64_t seed, const char *device)
{
    trial t = {.seed = seed, .r = {seed * 0x9E3779B97F4A7C15u + 1}, .device = device};
    char rows[32];
    ref_next(&t.r);
    t.gpu = strstr(device, "opencl") || strstr(device, "cuda");
    t.few_types = t.gpu && !getenv("TULLE_RANDOM_TYPES");
    t.ctx = context_of(device);
    snprintf(rows, sizeof rows, "%d", (int)(1 + pick(&t, once_in(&t, 2) ? 5 : 100)));
    setenv("TULLE_PART_ROWS", rows, 1);
    const bool threads = once_in(&t, 10);
    if (threads) EXPECT(&t, tulle_ctx_set_threads(t.ctx, (int)pick(&t, 7)) == TULLE_OK);
    t.dense = once_in(&t, 3);
    if (t.dense) dense_trial(&t);
    else sparse_trial(&t);
    if (threads) EXPECT(&t, tulle_ctx_set_threads(t.ctx, 0) == TULLE_OK);       /* the default, for the next trial */
    return !t.failed;
}

int main(int argc, char **argv)
{
    static char *const usual[] = {"cpu", "cpu,cpu", "cpu,cpu,cpu"};
    const fuzz_bound bound = fuzz_bound_begin(argc > 1 ? argv[1] : "10");
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, runs = 0;
    char *const *devices = argc > 3 ? argv + 3 : usual;
    const uint64_t count = argc > 3 ? (uint64_t)(argc - 3) : 3;
    bool good = count <= DEVICES_MOST;
    setvbuf(stdout, NULL, _IOLBF, 0);
    do {
        good = good && run_trial(seed + runs, devices[(seed + runs) % count]);
        runs++;
    } while (good && fuzz_bound_more(&bound, runs));
    context_of(NULL);
    printf("%" PRIu64 " trials from seed %" PRIu64 " on\n", runs, seed);
    if (good) fuzz_bound_tell(&bound, runs);
    return !good;
}
