/* SPDX-License-Identifier: MIT
 *
 * test_product.c - tulle_multiply against the plain product, bit for bit: every type, index, number of
 * threads, policy and accumulator, hostile shapes, options, and algebraic identities. */
#include <math.h>
#include "ways.h"

enum { THREADS = 5 };

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};
static const ref_types f64_i64 = {TULLE_F64, TULLE_I64, TULLE_I64};

/* ---- the plain product, with every policy and accumulator */

/* Both operands in each of the four index combinations, independently. */
static void every_value_and_index_type(void)
{
    static const int pairs[] = {3, 12, 14, 15, 26, 27};
    tulle_ctx *ctx = ctx_with(3);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
            ref_types t = {(tulle_type)v, TULLE_I64, TULLE_I64};
            pair p = pair_at(pairs[n], REF_INTEGERS, t, t);
            ref want = ref_product(&p.A.view, &p.B.view);
            for (int i = 0; i < 16; i++) {
                ref_types ta = ref_types_at(v - TULLE_F32 + i % 4 * 4), tb = ref_types_at(v - TULLE_F32 + i / 4 * 4);
                ref A = ref_copy(&p.A.view, ta), B = ref_copy(&p.B.view, tb);
                tulle_options o;
                char way[32], name[128];
                for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
                    snprintf(name, sizeof name, "%s, %s * %s, %s", p.name, ref_types_name(ta),
                             ref_types_name(tb), way);
                    product_is(ctx, &A.view, &B.view, &o, &want.view, name);
                }
                ref_free(&A);
                ref_free(&B);
            }
            ref_free(&want);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* All pairs, random reals, whose last bits depend on the order of additions. */
static void every_shape_on_any_number_of_threads(void)
{
    tulle_ctx *ctx[THREADS + 1] = {0};
    for (int n = 1; n <= THREADS; n++) ctx[n] = ctx_with(n);
    for (int i = 0; i < PAIRS; i++) {
        ref_types t = ref_types_at(i == 23 || i == 24 ? 1 : i % 4);
        pair p = pair_at(i, REF_REALS, t, t);
        ref a = ref_copy(&p.A.view, t), b = ref_copy(&p.B.view, t);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_options o;
        char way[32], name[128];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++)
            for (int n = 1; n <= (i < SMALL_PAIRS ? 1 : THREADS); n++) {
                snprintf(name, sizeof name, "%s, %s, %s, %d threads", p.name, ref_types_name(t), way, n);
                product_is(ctx[n], &p.A.view, &p.B.view, &o, &want.view, name);
            }
        CHECK(ref_untouched(&p.A.view, &a) && ref_untouched(&p.B.view, &b), "%s: inputs written", p.name);
        ref_free(&want);
        ref_free(&a);
        ref_free(&b);
        pair_free(&p);
    }
    for (int n = 1; n <= THREADS; n++) tulle_ctx_free(ctx[n]);
}

static void options_threads_counts_below_the_context(void)
{
    tulle_ctx *ctx = ctx_with(4);
    pair p = pair_at(15, REF_REALS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    for (int n = 1; n <= 6; n++) {
        tulle_options o = {.threads = n};
        tulle_stats stats;
        product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, "threads");
        tulle_ctx_stats(ctx, &stats);
        CHECK(stats.threads == (n < 4 ? n : 4), "%d threads asked, %d used", n, stats.threads);
    }
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* A*A: the same arrays for both operands. */
static void squares(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref As[] = {ref_band(900, 5, REF_REALS, f64), ref_power(3, 500, 500, 200, REF_REALS, f64),
                ref_blocks(30, 2, 3, REF_REALS, f64_i64), ref_arrow(120, REF_REALS, f64)};
    for (int i = 0; i < 4; i++) {
        ref want = ref_product(&As[i].view, &As[i].view);
        tulle_options o;
        char way[32];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++)
            product_is(ctx, &As[i].view, &As[i].view, &o, &want.view, way);
        ref_free(&want);
        ref_free(&As[i]);
    }
    tulle_ctx_free(ctx);
}

/* ---- far columns */

static void columns_up_to_the_largest_index(void)
{
    tulle_ctx *ctx = ctx_with(2);
    const struct { int64_t cols; ref_types t; } wide[] = {
        {(int64_t)1 << 31, f64}, {((int64_t)1 << 31) - 1, f64}, {(int64_t)1 << 40, f64_i64},
        {INT64_MAX, f64_i64}, {INT64_MAX, {TULLE_CF32, TULLE_I32, TULLE_I64}}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        ref_types t = wide[i].t;
        ref A = ref_random(4, 300, 60, 12, REF_REALS, t), B = ref_random(5, 60, wide[i].cols, 40, REF_REALS, t);
        for (int64_t r = 0; r < 60; r += 3) {                   /* some in the very first and last column */
            int64_t begin = ref_ptr(&B.view, r), end = ref_ptr(&B.view, r + 1);
            if (end > begin) ref_set_col(&B, begin, 0);
            if (end > begin + 1) ref_set_col(&B, end - 1, wide[i].cols - 1);
        }
        ref want = ref_product(&A.view, &B.view);
        tulle_options o;
        char way[32], name[96];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
            snprintf(name, sizeof name, "%" PRId64 " columns, %s, %s", wide[i].cols, ref_types_name(t), way);
            product_is(ctx, &A.view, &B.view, &o, &want.view, name);
        }
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

/* A row with very many entries and products, over columns anywhere in 0 .. 2^62. */
static void a_heavy_row_over_far_columns(void)
{
    tulle_ctx *ctx = ctx_with(2);
    static const int64_t cols[] = {(int64_t)1 << 40, (int64_t)1 << 62};
    for (int i = 0; i < 2; i++) {
        ref A = full_row_and_singles(2, 33000, 0, REF_REALS, f64_i64);
        ref B = ref_random(6, 33000, cols[i], 2, REF_REALS, f64_i64);
        ref want = ref_product(&A.view, &B.view);
        product_is(ctx, &A.view, &B.view, NULL, &want.view, "heavy and far");
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

/* ---- NaN and infinities */

static void special_values_go_the_plain_way(void)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-320, 1e300};
    tulle_ctx *ctx = ctx_with(3);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        static const int pairs[] = {8, 9, 11, 14, 15, 17, 21};
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
            pair p = pair_at(pairs[n], REF_REALS, t, t);
            ref_rng r = {7};
            for (int64_t k = 0; k < p.A.view.nnz; k++)
                ref_set_val(&p.A, k, (ref_value){special[ref_below(&r, 9)], special[ref_below(&r, 9)]});
            for (int64_t k = 0; k < p.B.view.nnz; k++)
                ref_set_val(&p.B, k, (ref_value){special[ref_below(&r, 9)], special[ref_below(&r, 9)]});
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_options o;
            char way[32], name[96];
            for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
                snprintf(name, sizeof name, "%s, %s, %s", p.name, ref_types_name(t), way);
                product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, name);
            }
            ref_free(&want);
            pair_free(&p);
        }
    }
    tulle_ctx_free(ctx);
}

static void minus_zero_products_give_plus_zero(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_dense(1, 1, REF_INTEGERS, f64), B = ref_dense(1, 2, REF_INTEGERS, f64);
    ref_set_val(&A, 0, (ref_value){-1, 0});
    ref_set_val(&B, 0, (ref_value){0, 0});
    ref_set_val(&B, 1, (ref_value){5, 0});
    tulle_matrix *C = NULL;
    REQUIRE(tulle_multiply(ctx, &A.view, &B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const double *c = tulle_matrix_values(C);
    CHECK(c[0] == 0 && !signbit(c[0]) && c[1] == -5, "%g %g", c[0], c[1]);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

/* ---- zeros: kept as entries of the pattern, dropped if requested */

static void zeros_stay_unless_they_are_dropped(void)
{
    static const int pairs[] = {0, 3, 9, 13, 14, 15, 16, 17, 18, 19, 21, 23, 25};
    tulle_ctx *ctx = ctx_with(3);
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        ref_types t = ref_types_at((int)n % 4);
        pair p = pair_at(pairs[n], REF_CANCELLING, t, t);
        ref want = ref_product(&p.A.view, &p.B.view), fewer = ref_without_zeros(&want.view);
        if (p.A.view.nnz > 300) CHECK(fewer.view.nnz < want.view.nnz, "%s: nothing cancels", p.name);
        tulle_options o;
        char way[32], name[96];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
            snprintf(name, sizeof name, "%s, %s, %s", p.name, ref_types_name(t), way);
            product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, name);
            o.drop_zeros = 1;
            product_is(ctx, &p.A.view, &p.B.view, &o, &fewer.view, name);
        }
        ref_free(&want);
        ref_free(&fewer);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- transposed operands */

static void transposed_and_adjoint_operands(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < REF_TYPES; i++)
        for (int op = 0; op < 9; op++) {
            ref_types t = ref_types_at(i);
            tulle_options o = {.op_a = op % 3, .op_b = op / 3};
            ref A = o.op_a ? ref_random(21, 40, 60, 5, REF_INTEGERS, t) : ref_random(21, 60, 40, 5, REF_INTEGERS, t);
            ref B = o.op_b ? ref_random(22, 50, 40, 5, REF_INTEGERS, t) : ref_random(22, 40, 50, 5, REF_INTEGERS, t);
            ref a = o.op_a ? ref_transpose(&A.view, (tulle_op)o.op_a) : ref_copy(&A.view, t);
            ref b = o.op_b ? ref_transpose(&B.view, (tulle_op)o.op_b) : ref_copy(&B.view, t);
            ref want = ref_product(&a.view, &b.view);
            char name[64];
            snprintf(name, sizeof name, "%s op_a %d op_b %d", ref_types_name(t), o.op_a, o.op_b);
            product_is(ctx, &A.view, &B.view, &o, &want.view, name);
            ref_free(&A);
            ref_free(&B);
            ref_free(&a);
            ref_free(&b);
            ref_free(&want);
        }
    tulle_ctx_free(ctx);
}

static void a_times_its_own_transpose(void)
{
    tulle_ctx *ctx = ctx_with(3);
    ref A = ref_random(23, 500, 90, 14, REF_REALS, f64), T = ref_transpose(&A.view, TULLE_TRANSPOSE);
    ref want = ref_product(&A.view, &T.view), gram = ref_product(&T.view, &A.view);
    product_is(ctx, &A.view, &A.view, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &want.view, "A*A^T");
    product_is(ctx, &A.view, &A.view, &(tulle_options){.op_a = TULLE_TRANSPOSE}, &gram.view, "A^T*A");
    ref_free(&A);
    ref_free(&T);
    ref_free(&want);
    ref_free(&gram);
    tulle_ctx_free(ctx);
}

/* ---- algebraic identities; integers, so that sums are exact in any order */

static void algebra_holds(void)
{
    tulle_ctx *ctx = ctx_with(3);
    for (int v = 0; v < 4; v++) {
        ref_types t = ref_types_at(v);
        ref A = ref_random(31, 70, 50, 5, REF_INTEGERS, t), B = ref_random(32, 50, 60, 4, REF_INTEGERS, t);
        ref D = ref_random(33, 60, 40, 3, REF_INTEGERS, t), I = ref_identity(70, t), J = ref_identity(50, t);
        ref P = ref_permutation(34, 70, t);
        tulle_matrix *AB = NULL, *ABt = NULL, *BD = NULL, *PA = NULL;
        REQUIRE(tulle_multiply(ctx, &A.view, &B.view, NULL, &AB) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_multiply(ctx, &B.view, &D.view, NULL, &BD) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_multiply(ctx, &P.view, &A.view, NULL, &PA) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr ab = tulle_matrix_view(AB), bd = tulle_matrix_view(BD), pa = tulle_matrix_view(PA);
        /* (AB)^T = B^T A^T */
        REQUIRE(tulle_csr_transpose(ctx, &ab, TULLE_TRANSPOSE, &ABt) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr abt = tulle_matrix_view(ABt);
        product_is(ctx, &B.view, &A.view, &(tulle_options){.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE},
                   &abt, "(AB)^T = B^T A^T");
        /* (AB)D = A(BD) */
        tulle_matrix *left = NULL;
        REQUIRE(tulle_multiply(ctx, &ab, &D.view, NULL, &left) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr l = tulle_matrix_view(left);
        product_is(ctx, &A.view, &bd, NULL, &l, "(AB)D = A(BD)");
        /* I A = A = A J; P^T (P A) = A, and the rows of P A are rows of A */
        product_is(ctx, &I.view, &A.view, NULL, &A.view, "I*A");
        product_is(ctx, &A.view, &J.view, NULL, &A.view, "A*I");
        product_is(ctx, &P.view, &pa, &(tulle_options){.op_a = TULLE_TRANSPOSE}, &A.view, "P^T*P*A");
        for (int64_t i = 0; i < 70; i++) {
            int64_t from = ref_col(&P.view, i), n = ref_ptr(&pa, i + 1) - ref_ptr(&pa, i);
            CHECK(n == ref_ptr(&A.view, from + 1) - ref_ptr(&A.view, from), "row %d of P*A", (int)i);
        }
        tulle_matrix_free(AB);
        tulle_matrix_free(ABt);
        tulle_matrix_free(BD);
        tulle_matrix_free(PA);
        tulle_matrix_free(left);
        ref all[] = {A, B, D, I, J, P};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    }
    tulle_ctx_free(ctx);
}

/* ---- unsorted operands */

static void disorder_is_refused_or_sorted(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(41, 60, 50, 6, REF_INTEGERS, f64), B = ref_random(42, 50, 70, 6, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    for (int twice = 0; twice <= 1; twice++) {
        ref a = ref_shuffled(&A.view, 1, twice), b = ref_shuffled(&B.view, 2, twice);
        ref a_copy = ref_copy(&a.view, f64), b_copy = ref_copy(&b.view, f64);
        tulle_matrix *C = NULL;
        CHECK(tulle_multiply(ctx, &a.view, &B.view, NULL, &C) == TULLE_EPATTERN && !C, "A unsorted");
        CHECK(strncmp(tulle_ctx_error(ctx), "A: row ", 7) == 0, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_multiply(ctx, &A.view, &b.view, NULL, &C) == TULLE_EPATTERN && !C, "B unsorted");
        CHECK(strncmp(tulle_ctx_error(ctx), "B: row ", 7) == 0, "%s", tulle_ctx_error(ctx));
        tulle_options o = {.sort_inputs = 1};
        product_is(ctx, &a.view, &b.view, &o, &want.view, "sort_inputs");
        product_is(ctx, &A.view, &B.view, &o, &want.view, "sort_inputs of sorted ones");
        o.op_a = o.op_b = TULLE_TRANSPOSE;
        ref at = ref_transpose(&A.view, TULLE_TRANSPOSE), bt = ref_transpose(&B.view, TULLE_TRANSPOSE);
        ref ats = ref_shuffled(&at.view, 3, twice), bts = ref_shuffled(&bt.view, 4, twice);
        product_is(ctx, &ats.view, &bts.view, &o, &want.view, "sort_inputs, transposed");
        CHECK(ref_untouched(&a.view, &a_copy) && ref_untouched(&b.view, &b_copy), "inputs were sorted in place");
        ref all[] = {a, b, a_copy, b_copy, at, bt, ats, bts};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    }
    /* columns out of range are refused even then, and the message names the right operand */
    ref bad = ref_copy(&B.view, f64);
    tulle_matrix *C = NULL;
    ref_set_col(&bad, 0, 70);
    tulle_options o = {.sort_inputs = 1};
    CHECK(tulle_multiply(ctx, &A.view, &bad.view, &o, &C) == TULLE_EPATTERN && !C, "column 70 of 70");
    CHECK(strncmp(tulle_ctx_error(ctx), "B: row ", 7) == 0, "%s", tulle_ctx_error(ctx));
    ref_free(&A);
    ref_free(&B);
    ref_free(&bad);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void trusted_inputs_give_the_same(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_REALS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    product_is(ctx, &p.A.view, &p.B.view, &(tulle_options){.trust_inputs = 1}, &want.view, "trusted");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- C's types */

static void types_of_c_follow_the_options(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < 16; i++) {
        ref_types ta = {TULLE_F32, (tulle_index)(1 + i % 2), (tulle_index)(1 + i / 2 % 2)};
        ref_types tb = {TULLE_F32, (tulle_index)(1 + i / 4 % 2), (tulle_index)(1 + i / 8)};
        pair p = pair_at(9, REF_INTEGERS, ta, tb);
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int ask = 0; ask < 9; ask++) {
            tulle_options o = {.c_ptr_type = ask % 3, .c_idx_type = ask / 3};
            tulle_matrix *C = NULL;
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            CHECK(ref_same(&c, &want.view, "types of C"), "ask %d", ask);
            CHECK((int)c.ptr_type == (o.c_ptr_type ? o.c_ptr_type : TULLE_I32), "ptr_type %d", (int)c.ptr_type);
            CHECK((int)c.idx_type == (o.c_idx_type ? o.c_idx_type : (int)tb.idx), "idx_type %d", (int)c.idx_type);
            CHECK(c.val_type == TULLE_F32 && c.place == TULLE_HOST, "value type and place");
            tulle_matrix_free(C);
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- statistics */

static void statistics_add_up(void)
{
    tulle_ctx *ctx = ctx_with(3);
    for (int i = 0; i < PAIRS; i++) {
        pair p = pair_at(i, REF_INTEGERS, f64, f64);
        tulle_options o;
        char way[32];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
            tulle_matrix *C = NULL;
            tulle_stats s;
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            tulle_ctx_stats(ctx, &s);
            int64_t rows = 0, products = 0, want = ref_count_products(&p.A.view, &p.B.view);
            for (int k = 0; k < s.shares; k++) {
                CHECK(s.share[k].rows >= 0 && s.share[k].products >= 0, "%s, %s: a negative share", p.name, way);
                rows += s.share[k].rows;
                products += s.share[k].products;
            }
            CHECK(rows == p.A.view.rows, "%s, %s: shares have %" PRId64 " rows", p.name, way, rows);
            CHECK(products == want && s.products == want, "%s, %s: %" PRId64 " products in shares, %" PRId64
                  " in all, %" PRId64 " counted", p.name, way, products, s.products, want);
            CHECK(s.a_nnz == p.A.view.nnz && s.b_nnz == p.B.view.nnz && s.c_nnz == c.nnz, "%s: nnz", p.name);
            double parts = s.sec_check + s.sec_analyze + s.sec_symbolic + s.sec_numeric + s.sec_finish;
            CHECK(s.sec_check >= 0 && s.sec_analyze >= 0 && s.sec_symbolic >= 0 && s.sec_finish >= 0
                  && (s.sec_numeric > 0 || want == 0), "%s: a stage that multiplied took no time", p.name);
            CHECK(parts <= s.sec_total * 1.0001 + 1e-6 && s.sec_total > 0,
                  "%s: stages take %g of %g s", p.name, parts, s.sec_total);
            uint64_t c_bytes = (uint64_t)(c.rows + 1) * ref_index_size(c.ptr_type) + (uint64_t)c.nnz * 12;
            CHECK(s.peak_bytes >= c_bytes, "%s: peak %" PRIu64 ", C has %" PRIu64, p.name, s.peak_bytes, c_bytes);
            uint64_t allowed = 16 * (uint64_t)c.rows + ((uint64_t)s.threads << 25);
            CHECK(s.workspace_bytes <= allowed, "%s, %s: workspace %" PRIu64 ", allowed %" PRIu64, p.name, way,
                  s.workspace_bytes, allowed);
            CHECK(s.threads >= 1 && s.threads <= 3 && s.policy && s.device && s.isa, "%s: names", p.name);
            if (o.policy) CHECK(strcmp(s.policy, o.policy) == 0, "policy %s, not %s", s.policy, o.policy);
            tulle_matrix_free(C);
        }
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A forced accumulator computes all rows that need one (rows of A with one entry are always scaled
 * copies). */
static void a_forced_accumulator_takes_the_rows(void)
{
    tulle_ctx *ctx = ctx_with(1);
    static const char *const forced[] = {"dense", "sort", "hash"};
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    for (int i = 0; i < 3; i++) {
        tulle_options o = {.accumulator = forced[i]};
        tulle_matrix *C = NULL;
        tulle_stats s;
        int64_t mine = 0, other = 0;
        REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &s);
        for (int k = 0; k < s.shares; k++) {
            if (strcmp(s.share[k].name, forced[i]) == 0) mine += s.share[k].products;
            else if (strcmp(s.share[k].name, "direct") != 0) other += s.share[k].products;
        }
        CHECK(mine > s.products / 2 && other == 0, "%s: %" PRId64 " of %" PRId64 ", others %" PRId64, forced[i],
              mine, s.products, other);
        tulle_matrix_free(C);
    }
    pair_free(&p);
    p = pair_at(17, REF_INTEGERS, f64, f64);
    tulle_options o = {.accumulator = "twins"};
    tulle_matrix *C = NULL;
    tulle_stats s;
    int64_t twins = 0;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &s);
    for (int k = 0; k < s.shares; k++)
        if (strcmp(s.share[k].name, "twins") == 0) twins = s.share[k].rows;
    CHECK(twins == p.A.view.rows, "%" PRId64 " of %" PRId64 " rows as twins", twins, p.A.view.rows);
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* In the product of a grid and its aggregates, rows have the patterns of earlier rows: the default detects
 * this for nearly all rows. */
static void patterns_that_come_again_are_remembered(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 26; i < 28; i++) {
        pair p = pair_at(i, REF_REALS, f64, f64);
        tulle_matrix *C = NULL;
        tulle_stats s;
        int64_t again = 0;
        REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &s);
        for (int k = 0; k < s.shares; k++)
            if (strcmp(s.share[k].name, "stencil") == 0) again = s.share[k].rows;
        CHECK(again > p.A.view.rows / 2, "%s: %" PRId64 " of %" PRId64 " rows", p.name, again, p.A.view.rows);
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A and B without values: C has the same pattern as with values, and no values. */
static void patterns_alone_can_be_multiplied(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < PAIRS; i++) {
        ref_types t = ref_types_at(i % 16);
        pair p = pair_at(i, REF_INTEGERS, t, t);
        ref At = ref_transpose(&p.A.view, TULLE_TRANSPOSE), U = ref_shuffled(&p.B.view, 5, false);
        char name[32];
        tulle_options o;
        for (int way = 0; way_at(way, &o, name, sizeof name); way++) {
            tulle_matrix *whole = NULL, *C = NULL;
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &whole) == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
            tulle_csr a = way % 2 ? At.view : p.A.view, b = way % 3 ? p.B.view : U.view, want = tulle_matrix_view(whole);
            a.values = b.values = want.values = NULL;
            o.op_a = way % 2 ? TULLE_TRANSPOSE : TULLE_KEEP;
            o.sort_inputs = way % 3 == 0;
            REQUIRE(tulle_multiply(ctx, &a, &b, &o, &C) == TULLE_OK, "%s, %s: %s", p.name, name, tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            if (c.nnz == 0) c.values = NULL;
            CHECK(ref_same(&c, &want, p.name), "%s", name);
            o.drop_zeros = 1;
            tulle_matrix *none = NULL;
            bool empty = a.nnz == 0 && b.nnz == 0;
            CHECK(tulle_multiply(ctx, &a, &b, &o, &none) == (empty ? TULLE_OK : TULLE_EINVAL), "zeros of a pattern");
            tulle_matrix_free(none);
            tulle_matrix_free(C);
            tulle_matrix_free(whole);
        }
        ref_free(&At);
        ref_free(&U);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_value_and_index_type), TEST(every_shape_on_any_number_of_threads),
          TEST(options_threads_counts_below_the_context), TEST(squares), TEST(columns_up_to_the_largest_index),
          TEST(a_heavy_row_over_far_columns), TEST(special_values_go_the_plain_way),
          TEST(minus_zero_products_give_plus_zero), TEST(zeros_stay_unless_they_are_dropped),
          TEST(transposed_and_adjoint_operands), TEST(a_times_its_own_transpose), TEST(algebra_holds),
          TEST(disorder_is_refused_or_sorted), TEST(trusted_inputs_give_the_same),
          TEST(types_of_c_follow_the_options), TEST(statistics_add_up), TEST(a_forced_accumulator_takes_the_rows),
          TEST(patterns_that_come_again_are_remembered), TEST(patterns_alone_can_be_multiplied))
