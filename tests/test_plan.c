/* SPDX-License-Identifier: MIT
 *
 * test_plan.c - plans: results have the same bits as those of tulle_multiply, for every type, policy and
 * operand, and a run allocates nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include "ways.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* c_values followed by a guard, to detect writes beyond the end. */
enum { GUARD = 64 };

static char *guarded(size_t bytes)
{
    char *p = malloc(bytes + GUARD);
    if (!p) abort();
    memset(p, 0x5a, bytes + GUARD);
    return p;
}

static bool guard_holds(const char *p, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if (p[bytes + (size_t)i] != 0x5a) return false;
    return true;
}

/* Several sets of values for one pair of patterns, and the expected results. */
enum { ROUNDS = 3 };

typedef struct rounds { ref A[ROUNDS], B[ROUNDS], want[ROUNDS]; } rounds;

static rounds rounds_make(const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    rounds r;
    for (int i = 0; i < ROUNDS; i++) {
        r.A[i] = ref_copy(A, (ref_types){A->val_type, A->ptr_type, A->idx_type});
        r.B[i] = ref_copy(B, (ref_types){B->val_type, B->ptr_type, B->idx_type});
        ref_fill(&r.A[i], REF_REALS, 100 + (uint64_t)i);
        ref_fill(&r.B[i], REF_REALS, 200 + (uint64_t)i);
        ref_types t = {A->val_type, TULLE_I64, TULLE_I64};
        ref a = o->op_a ? ref_transpose(&r.A[i].view, (tulle_op)o->op_a) : ref_copy(&r.A[i].view, t);
        ref b = o->op_b ? ref_transpose(&r.B[i].view, (tulle_op)o->op_b) : ref_copy(&r.B[i].view, t);
        r.want[i] = ref_product(&a.view, &b.view);
        ref_free(&a);
        ref_free(&b);
    }
    return r;
}

static void rounds_free(rounds *r)
{
    for (int i = 0; i < ROUNDS; i++) {
        ref_free(&r->A[i]);
        ref_free(&r->B[i]);
        ref_free(&r->want[i]);
    }
}

static void runs_are_right(tulle_ctx *ctx, tulle_plan *plan, const rounds *r, const char *name)
{
    tulle_csr C = tulle_plan_pattern(plan);
    CHECK(!C.values && C.val_type == r->A[0].view.val_type, "%s: the pattern has values", name);
    CHECK(tulle_csr_check(ctx, &C) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    size_t bytes = (size_t)C.nnz * ref_value_size(C.val_type);
    char *c = guarded(bytes);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(tulle_plan_run(plan, r->A[i].values, r->B[i].values, c) == TULLE_OK, "%s: %s", name,
              tulle_ctx_error(ctx));
        tulle_csr got = C;
        got.values = c;
        CHECK(ref_same(&got, &r->want[i].view, name), "run %d", i);
        CHECK(guard_holds(c, bytes), "%s: run %d wrote behind c_values", name, i);
    }
    free(c);
}

static void plans_of_every_type_and_shape(void)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        tulle_ctx *ctx = ctx_with(threads);
        for (int i = 0; i < PAIRS; i++) {
            ref_types ta = ref_types_at((i + 4 * threads) % 16), tb = ref_types_at((i + 4 * threads) % 4 + 4 * (i % 4));
            pair p = pair_at(i, REF_REALS, ta, tb);
            tulle_csr a = p.A.view, b = p.B.view;
            a.values = b.values = NULL;                         /* values are not read */
            tulle_options o = {0};
            rounds r = rounds_make(&p.A.view, &p.B.view, &o);
            char way[32], name[128];
            for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
                tulle_plan *plan = NULL;
                snprintf(name, sizeof name, "%s, %s * %s, %s, %d threads", p.name, ref_types_name(ta),
                         ref_types_name(tb), way, threads);
                REQUIRE(tulle_plan_create(ctx, &a, &b, &o, &plan) == TULLE_OK, "%s: %s", name,
                        tulle_ctx_error(ctx));
                runs_are_right(ctx, plan, &r, name);
                tulle_plan_free(plan);
            }
            rounds_free(&r);
            pair_free(&p);
        }
        tulle_ctx_free(ctx);
    }
}

static void plans_of_transposed_operands(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < REF_TYPES; i++)
        for (int op = 0; op < 9; op++) {
            ref_types t = ref_types_at(i);
            tulle_options o = {.op_a = op % 3, .op_b = op / 3};
            ref A = o.op_a ? ref_random(21, 40, 60, 5, REF_REALS, t) : ref_random(21, 60, 40, 5, REF_REALS, t);
            ref B = o.op_b ? ref_random(22, 50, 40, 5, REF_REALS, t) : ref_random(22, 40, 50, 5, REF_REALS, t);
            tulle_plan *plan = NULL;
            char name[64];
            snprintf(name, sizeof name, "%s op_a %d op_b %d", ref_types_name(t), o.op_a, o.op_b);
            REQUIRE(tulle_plan_create(ctx, &A.view, &B.view, &o, &plan) == TULLE_OK, "%s: %s", name,
                    tulle_ctx_error(ctx));
            rounds r = rounds_make(&A.view, &B.view, &o);
            runs_are_right(ctx, plan, &r, name);
            rounds_free(&r);
            tulle_plan_free(plan);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* ---- a run allocates nothing */

typedef struct counter { atomic_long live, calls; } counter;

static void *count_alloc(void *user, size_t bytes)
{
    counter *c = user;
    atomic_fetch_add(&c->calls, 1);
    atomic_fetch_add(&c->live, 1);
    return malloc(bytes);
}

static void count_free(void *user, void *p)
{
    counter *c = user;
    if (p) atomic_fetch_sub(&c->live, 1);
    free(p);
}

static void a_run_allocates_nothing(void)
{
    counter count = {0, 0};
    tulle_mem mem = {count_alloc, count_free, &count};
    tulle_ctx *ctx = NULL;
    REQUIRE(tulle_ctx_create("cpu", &mem, &ctx) == TULLE_OK, "context");
    REQUIRE(tulle_ctx_set_threads(ctx, 3) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    static const int pairs[] = {6, 9, 15, 17, 19, 23, 24};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++)
        for (int op = 0; op < 2; op++) {
            pair p = pair_at(pairs[n], REF_REALS, f64, f64);
            ref A = op ? ref_transpose(&p.A.view, TULLE_TRANSPOSE) : ref_copy(&p.A.view, f64);
            tulle_options o = {.op_a = op};
            tulle_plan *plan = NULL;
            long live = atomic_load(&count.live);
            REQUIRE(tulle_plan_create(ctx, &A.view, &p.B.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr C = tulle_plan_pattern(plan);
            double *c = malloc((size_t)C.nnz * sizeof *c + 1);
            long calls = atomic_load(&count.calls);
            CHECK(calls > 0, "the hooks are not used");
            for (int i = 0; i < 4; i++)
                CHECK(tulle_plan_run(plan, A.values, p.B.values, c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(atomic_load(&count.calls) == calls, "%s: a run allocated", p.name);
            tulle_plan_free(plan);
            CHECK(atomic_load(&count.live) == live, "%s: %ld blocks left", p.name, atomic_load(&count.live) - live);
            free(c);
            ref_free(&A);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
    CHECK(atomic_load(&count.live) == 0, "%ld blocks left", atomic_load(&count.live));
}

/* ---- several plans, and changes of the context */

static void plans_do_not_disturb_each_other(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_REALS, f64, f64), q = pair_at(17, REF_REALS, f64, f64);
    tulle_plan *one = NULL, *two = NULL;
    tulle_options o = {0};
    rounds r1 = rounds_make(&p.A.view, &p.B.view, &o), r2 = rounds_make(&q.A.view, &q.B.view, &o);
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &one) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_plan_create(ctx, &q.A.view, &q.B.view, &o, &two) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int i = 0; i < 3; i++) {
        runs_are_right(ctx, one, &r1, "one");
        tulle_matrix *C = NULL;
        CHECK(tulle_multiply(ctx, &q.A.view, &q.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_matrix_free(C);
        runs_are_right(ctx, two, &r2, "two");
        tulle_ctx_trim(ctx);
    }
    for (int threads = 1; threads <= 5; threads++) {            /* fewer and more than at its creation */
        REQUIRE(tulle_ctx_set_threads(ctx, threads) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        runs_are_right(ctx, one, &r1, "threads changed");
    }
    tulle_plan_free(one);
    runs_are_right(ctx, two, &r2, "two alone");
    tulle_plan_free(two);
    rounds_free(&r1);
    rounds_free(&r2);
    pair_free(&p);
    pair_free(&q);
    tulle_ctx_free(ctx);
}

/* ---- statistics and errors of plans */

static void a_plan_keeps_statistics(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < PAIRS; i++) {
        pair p = pair_at(i, REF_REALS, f64, f64);
        tulle_plan *plan = NULL;
        tulle_stats s, last;
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr C = tulle_plan_pattern(plan);
        double *c = malloc((size_t)C.nnz * sizeof *c + 1);
        CHECK(tulle_plan_run(plan, p.A.values, p.B.values, c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_plan_stats(plan, &s);
        tulle_ctx_stats(ctx, &last);
        int64_t rows = 0, products = 0;
        for (int k = 0; k < s.shares; k++) rows += s.share[k].rows, products += s.share[k].products;
        CHECK(rows == p.A.view.rows && products == s.products, "%s: shares", p.name);
        CHECK(s.products == ref_count_products(&p.A.view, &p.B.view), "%s: products", p.name);
        CHECK(s.c_nnz == C.nnz && s.a_nnz == p.A.view.nnz && s.b_nnz == p.B.view.nnz, "%s: nnz", p.name);
        CHECK(s.sec_total > 0 && s.sec_numeric <= s.sec_total && (s.sec_numeric > 0 || s.products == 0), "%s: %g of %g s",
              p.name, s.sec_numeric, s.sec_total);
        CHECK(last.products == s.products && last.c_nnz == s.c_nnz, "%s: the context's", p.name);
        free(c);
        tulle_plan_free(plan);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void a_plan_names_what_is_wrong(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_REALS, f64, f64);
    tulle_plan *plan = NULL;
    tulle_options o = {.drop_zeros = 1};
    CHECK(tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan) == TULLE_EINVAL && !plan, "drop_zeros");
    CHECK(strstr(tulle_ctx_error(ctx), "drop_zeros") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_plan_create(ctx, &p.B.view, &p.B.view, NULL, &plan) == TULLE_ESHAPE && !plan, "shapes");
    tulle_csr a = p.A.view, b = p.B.view;
    a.values = b.values = NULL;
    a.val_type = b.val_type = (tulle_type)99;
    CHECK(tulle_plan_create(ctx, &a, &b, NULL, &plan) == TULLE_ETYPE && !plan, "val_type 99");
    tulle_forecast f;
    CHECK(tulle_estimate(ctx, &a, &b, NULL, &f) != TULLE_EPATTERN, "val_type 99");
    ref_set_col(&p.A, 0, 1000);
    CHECK(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_EPATTERN && !plan, "column 1000");
    pair_free(&p);
    p = pair_at(9, REF_REALS, f64, f64);
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    double *c = malloc((size_t)tulle_plan_pattern(plan).nnz * sizeof *c + 1);
    CHECK(tulle_plan_run(plan, NULL, p.B.values, c) == TULLE_EINVAL, "a_values NULL");
    CHECK(strstr(tulle_ctx_error(ctx), "a_values is NULL") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_plan_run(plan, p.A.values, NULL, c) == TULLE_EINVAL, "b_values NULL");
    CHECK(tulle_plan_run(plan, p.A.values, p.B.values, NULL) == TULLE_EINVAL, "c_values NULL");
    /* values of C overlap those of A, then of B; both arrays have room for all of C */
    const int64_t a_nnz = p.A.view.nnz, b_nnz = p.B.view.nnz, c_nnz = tulle_plan_pattern(plan).nnz;
    double *all = calloc((size_t)(a_nnz + b_nnz + 2 * c_nnz), sizeof *all), *b_values = all + a_nnz + c_nnz;
    memcpy(all, p.A.values, (size_t)a_nnz * sizeof *all);
    memcpy(b_values, p.B.values, (size_t)b_nnz * sizeof *all);
    CHECK(tulle_plan_run(plan, all, b_values, all + a_nnz - 1) == TULLE_EINVAL, "c_values within a_values");
    CHECK(strstr(tulle_ctx_error(ctx), "c_values and a_values overlap") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_plan_run(plan, all, b_values, b_values) == TULLE_EINVAL, "c_values is b_values");
    CHECK(strstr(tulle_ctx_error(ctx), "c_values and b_values overlap") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(memcmp(all, p.A.values, (size_t)a_nnz * sizeof *all) == 0
          && memcmp(b_values, p.B.values, (size_t)b_nnz * sizeof *all) == 0, "%s", "inputs were written");
    CHECK(tulle_plan_run(plan, all, b_values, all + a_nnz) == TULLE_OK, "side by side: %s", tulle_ctx_error(ctx));
    free(all);
    CHECK(tulle_plan_run(plan, p.A.values, p.B.values, c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    free(c);
    tulle_plan_free(plan);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static int stop(void *user, const char *stage, double fraction)
{
    int *calls = user;
    (void)stage;
    (void)fraction;
    ++*calls;
    return 1;
}

static void a_run_can_be_cancelled_and_run_again(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(15, REF_REALS, f64, f64);
    tulle_plan *plan = NULL;
    int calls = 0;
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    double *c = malloc((size_t)tulle_plan_pattern(plan).nnz * sizeof *c + 1);
    tulle_ctx_set_progress(ctx, stop, &calls);
    CHECK(tulle_plan_run(plan, p.A.values, p.B.values, c) == TULLE_ECANCEL, "cancelled");
    CHECK(calls >= 1 && strlen(tulle_ctx_error(ctx)) > 0, "%d calls, %s", calls, tulle_ctx_error(ctx));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    tulle_options o = {0};
    rounds r = rounds_make(&p.A.view, &p.B.view, &o);
    runs_are_right(ctx, plan, &r, "after a cancelled run");
    rounds_free(&r);
    free(c);
    tulle_plan_free(plan);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void special_values_in_a_plan(void)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    tulle_ctx *ctx = ctx_with(2);
    static const int pairs[] = {8, 9, 11, 14, 15, 17, 21};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        pair p = pair_at(pairs[n], REF_REALS, f64, f64);
        ref_rng r = {7};
        tulle_options o;
        char way[32];
        for (int64_t k = 0; k < p.A.view.nnz; k++) ref_set_val(&p.A, k, (ref_value){special[ref_below(&r, 7)], 0});
        for (int64_t k = 0; k < p.B.view.nnz; k++) ref_set_val(&p.B, k, (ref_value){special[ref_below(&r, 7)], 0});
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
            tulle_plan *plan = NULL;
            REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            double *c = malloc((size_t)want.view.nnz * sizeof *c + 1);
            for (int round = 0; round < 2; round++) {          /* a run must not depend on the previous one */
                CHECK(tulle_plan_run(plan, p.A.values, p.B.values, c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                CHECK(ref_same_values(c, want.values, TULLE_F64, want.view.nnz, way), "%s", p.name);
            }
            free(c);
            tulle_plan_free(plan);
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* The matrix is independent: it outlives plan and context, and shares nothing with a second one. */
static void a_plan_gives_its_product_as_a_matrix(void)
{
    for (int t = 0; t < REF_TYPES; t++) {
        tulle_ctx *ctx = ctx_with(2);
        ref A = ref_random(51, 60, 50, 4, REF_INTEGERS, ref_types_at(t)), B = ref_random(52, 50, 40, 4, REF_INTEGERS, ref_types_at(t));
        ref want = ref_product(&A.view, &B.view);
        tulle_plan *plan = NULL;
        tulle_matrix *C = NULL, *D = NULL;
        REQUIRE(tulle_plan_create(ctx, &A.view, &B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_plan_multiply(plan, A.values, B.values, NULL) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "C is NULL"), "%s",
              tulle_ctx_error(ctx));
        CHECK(tulle_plan_multiply(plan, NULL, B.values, &C) == TULLE_EINVAL && !C && strstr(tulle_ctx_error(ctx), "a_values is NULL"), "%s",
              tulle_ctx_error(ctx));
        CHECK(tulle_plan_multiply(NULL, A.values, B.values, &C) == TULLE_EINVAL && !C, "no plan");
        REQUIRE(tulle_plan_multiply(plan, A.values, B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_plan_multiply(plan, A.values, B.values, &D) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_matrix_view(C), d = tulle_matrix_view(D);
        CHECK(c.values != d.values && c.col_idx != d.col_idx && c.row_ptr != d.row_ptr, "arrays are shared");
        tulle_matrix_free(D);
        tulle_plan_free(plan);
        tulle_ctx_free(ctx);
        CHECK(ref_same(&c, &want.view, "a plan's product"), "%s", ref_types_name(ref_types_at(t)));
        tulle_matrix_free(C);
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
}

/* With a limit so small that rows are counted first, the patterns remembered in the first step have no
 * columns. */
static void rows_that_repeat_are_counted_and_then_found(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 26; i < 28; i++) {
        pair p = pair_at(i, REF_REALS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        for (uint64_t limit = 1, tries = 0; limit && tries < 40; tries++) {
            tulle_options o = {.memory_limit = limit};
            tulle_plan *plan = NULL;
            const tulle_status status = tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan);
            CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
            if (status == TULLE_OK) {
                tulle_matrix *C = NULL;
                REQUIRE(tulle_plan_multiply(plan, p.A.view.values, p.B.view.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                tulle_csr c = tulle_matrix_view(C);
                CHECK(ref_same(&c, &want.view, p.name), "limit %" PRIu64, limit);
                tulle_matrix_free(C);
            }
            tulle_plan_free(plan);
            limit *= 2;
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(plans_of_every_type_and_shape), TEST(plans_of_transposed_operands), TEST(a_run_allocates_nothing),
          TEST(plans_do_not_disturb_each_other), TEST(a_plan_keeps_statistics), TEST(a_plan_names_what_is_wrong),
          TEST(a_run_can_be_cancelled_and_run_again), TEST(special_values_in_a_plan),
          TEST(a_plan_gives_its_product_as_a_matrix),
          TEST(rows_that_repeat_are_counted_and_then_found))
