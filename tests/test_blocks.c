/* SPDX-License-Identifier: MIT
 *
 * test_blocks.c - memory limits: tulle_multiply_blocks computes the same C under any limit, tulle_multiply
 * keeps the limit or reports the bytes that it needs, tulle_estimate predicts both; and the independent
 * check of a product. */
#include <math.h>
#include "blocks_help.h"
#include "ways.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

static void blocks_give_the_same_product_for_any_limit(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < PAIRS; i++) {
        ref_types t = ref_types_at(i % 4);
        pair p = pair_at(i, REF_REALS, t, t);
        ref want = ref_product(&p.A.view, &p.B.view);
        int64_t most_blocks = 0;
        bool done = false;
        for (uint64_t limit = 1 << 18; limit <= (uint64_t)1 << 28; limit += limit / 2) {
            tulle_options o = {.memory_limit = limit, .threads = 1 + (int)(limit / 64 % 2)};
            blocks_seen seen = {.want = &want.view, .good = true};
            tulle_status status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, blocks_compare, &seen);
            if (status == TULLE_ELIMIT) {
                CHECK(!done, "%s: a larger limit was refused than one that was kept", p.name);
                CHECK(strstr(tulle_ctx_error(ctx), "bytes") != NULL, "%s", tulle_ctx_error(ctx));
            } else {
                CHECK(status == TULLE_OK && blocks_all(&seen), "%s, limit %" PRIu64 ": %s", p.name, limit,
                      tulle_ctx_error(ctx));
                tulle_stats s;
                tulle_ctx_stats(ctx, &s);
                CHECK(s.peak_bytes <= limit, "%s: peak %" PRIu64 ", limit %" PRIu64, p.name, s.peak_bytes, limit);
                CHECK(s.c_nnz == want.view.nnz, "%s: c_nnz %" PRId64, p.name, s.c_nnz);
                int64_t rows = 0, products = 0;
                for (int k = 0; k < s.shares; k++) rows += s.share[k].rows, products += s.share[k].products;
                CHECK(rows == p.A.view.rows && products == s.products, "%s: shares of blocks", p.name);
                done = true;
                if (seen.blocks > most_blocks) most_blocks = seen.blocks;
            }
        }
        CHECK(done, "%s: no limit was large enough", p.name);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A product much larger than its workspace is computed in several blocks, each within the limit. */
static void a_large_product_comes_in_many_blocks(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(1, 2000, 400, 24, REF_INTEGERS, f64), B = ref_random(2, 400, 3000, 60, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    tulle_forecast f;
    REQUIRE(tulle_estimate(ctx, &A.view, &B.view, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    uint64_t c_bytes = (uint64_t)want.view.nnz * 12 + 2001 * 4;
    uint64_t limit = f.bytes_upper - (uint64_t)f.nnz_upper * 12 + c_bytes / 4;
    blocks_seen seen = {.want = &want.view, .good = true};
    tulle_options o = {.memory_limit = limit};
    CHECK(tulle_multiply_blocks(ctx, &A.view, &B.view, &o, blocks_compare, &seen) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(blocks_all(&seen), "wrong product");
    CHECK(seen.blocks >= 4, "%" PRId64 " blocks", seen.blocks);
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    CHECK(s.peak_bytes <= limit, "peak %" PRIu64 ", limit %" PRIu64, s.peak_bytes, limit);
    tulle_matrix *C = NULL;
    CHECK(tulle_multiply(ctx, &A.view, &B.view, &o, &C) == TULLE_ELIMIT && !C, "all of C in a quarter");
    /* the caller cancels */
    blocks_seen some = {.want = &want.view, .good = true, .stop_after = 2};
    CHECK(tulle_multiply_blocks(ctx, &A.view, &B.view, &o, blocks_compare, &some) == TULLE_ECANCEL && some.blocks == 2,
          "%" PRId64 " blocks after stopping", some.blocks);
    CHECK(strstr(tulle_ctx_error(ctx), "stopped by the caller") != NULL, "%s", tulle_ctx_error(ctx));
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    tulle_ctx_free(ctx);
}

static void blocks_take_all_options(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(3, 50, 80, 6, REF_CANCELLING, f64), B = ref_random(4, 50, 60, 6, REF_CANCELLING, f64);
    ref T = ref_transpose(&A.view, TULLE_TRANSPOSE), full = ref_product(&T.view, &B.view);
    ref want = ref_without_zeros(&full.view), a = ref_shuffled(&A.view, 5, false);
    blocks_seen seen = {.want = &want.view, .good = true};
    tulle_options o = {.op_a = TULLE_ADJOINT, .drop_zeros = 1, .sort_inputs = 1, .c_idx_type = TULLE_I64,
                       .c_ptr_type = TULLE_I64, .accumulator = "hash", .memory_limit = 64 << 20};
    CHECK(tulle_multiply_blocks(ctx, &a.view, &B.view, &o, blocks_compare, &seen) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(blocks_all(&seen), "wrong product");
    ref all[] = {A, B, T, full, want, a};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    tulle_ctx_free(ctx);
}

/* ---- a limit that is kept, or refused with the number of bytes */

static void a_limit_is_kept_or_refused_with_a_number(void)
{
    for (int i = 9; i < PAIRS; i++) {
        tulle_ctx *ctx = ctx_with(2);
        ref_types t = ref_types_at(i % 4);
        pair p = pair_at(i, REF_REALS, t, t);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_matrix *C = NULL;
        tulle_options o = {.memory_limit = 1};
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_ELIMIT && !C, "%s: limit 1", p.name);
        uint64_t need = 0;
        const char *number = strpbrk(tulle_ctx_error(ctx), "0123456789");
        if (number) need = strtoull(number, NULL, 10);
        REQUIRE(need > 1, "%s: no number in \"%s\"", p.name, tulle_ctx_error(ctx));
        o.memory_limit = need;
        product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, p.name);
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        CHECK(s.peak_bytes <= need, "%s: peak %" PRIu64 ", limit %" PRIu64, p.name, s.peak_bytes, need);
        o.memory_limit = need - 1;
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_ELIMIT && !C, "%s: one less", p.name);
        for (uint64_t limit = need; limit < need * 8; limit += limit / 2) {
            o.memory_limit = limit;
            product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, p.name);
            tulle_ctx_stats(ctx, &s);
            CHECK(s.peak_bytes <= limit, "%s: peak %" PRIu64 ", limit %" PRIu64, p.name, s.peak_bytes, limit);
        }
        ref_free(&want);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

/* Copies of transposed operands count towards the limit, too. */
static void a_limit_counts_the_copies(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(5, 60000, 100, 25, REF_INTEGERS, f64), I = ref_identity(60000, f64);
    tulle_matrix *C = NULL;
    tulle_stats s;
    tulle_options o = {.op_a = TULLE_TRANSPOSE, .memory_limit = (uint64_t)1 << 30};
    REQUIRE(tulle_multiply(ctx, &A.view, &I.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(C);
    tulle_ctx_stats(ctx, &s);
    o.memory_limit = s.peak_bytes - s.peak_bytes / 4;
    C = NULL;
    tulle_status status = tulle_multiply(ctx, &A.view, &I.view, &o, &C);
    tulle_ctx_stats(ctx, &s);
    CHECK(status == TULLE_ELIMIT || s.peak_bytes <= o.memory_limit, "peak %" PRIu64 ", limit %" PRIu64,
          s.peak_bytes, o.memory_limit);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&I);
    tulle_ctx_free(ctx);
}

/* ---- estimate */

static void estimates_hold(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < PAIRS; i++) {
        ref_types t = ref_types_at((i + 1) % 4);
        pair p = pair_at(i, REF_INTEGERS, t, t);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_csr a = p.A.view, b = p.B.view;
        a.values = b.values = NULL;                             /* only patterns are needed */
        tulle_options o;
        char way[32];
        for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
            tulle_forecast f;
            tulle_stats s;
            tulle_matrix *C = NULL;
            REQUIRE(tulle_estimate(ctx, &a, &b, &o, &f) == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
            CHECK(f.products == ref_count_products(&a, &b), "%s: %" PRId64 " products", p.name, f.products);
            CHECK(f.nnz_lower <= want.view.nnz && want.view.nnz <= f.nnz_upper, "%s: %" PRId64 " <= %" PRId64
                  " <= %" PRId64, p.name, f.nnz_lower, want.view.nnz, f.nnz_upper);
            CHECK(f.nnz_lower <= f.nnz_estimate && f.nnz_estimate <= f.nnz_upper, "%s: estimate", p.name);
            CHECK(fabs((double)(f.nnz_estimate - want.view.nnz)) <= 0.25 * (double)want.view.nnz + 1,
                  "%s: estimate %" PRId64 ", exact %" PRId64, p.name, f.nnz_estimate, want.view.nnz);
            CHECK(f.bytes_estimate <= f.bytes_upper, "%s: bytes", p.name);
            int64_t rows = 0;
            for (int k = 0; k < f.shares; k++) rows += f.share[k].rows;
            CHECK(f.shares > 0 && f.policy && rows <= p.A.view.rows + f.shares, "%s: shares", p.name);
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_ctx_stats(ctx, &s);
            CHECK(s.peak_bytes <= f.bytes_upper, "%s, %s: peak %" PRIu64 ", forecast %" PRIu64, p.name, way,
                  s.peak_bytes, f.bytes_upper);
            tulle_matrix_free(C);
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void an_estimate_of_a_large_product_is_close(void)
{
    tulle_ctx *ctx = ctx_with(2);
    tulle_matrix *A = NULL, *C = NULL;
    tulle_forecast f;
    REQUIRE(tulle_gallery(ctx, "poisson2d:300", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr a = tulle_matrix_view(A);
    REQUIRE(tulle_estimate(ctx, &a, &a, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_multiply(ctx, &a, &a, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    int64_t nnz = tulle_matrix_view(C).nnz;
    CHECK(f.nnz_lower <= nnz && nnz <= f.nnz_upper, "bounds");
    CHECK(fabs((double)f.nnz_estimate / (double)nnz - 1) < 0.02, "%" PRId64 " for %" PRId64, f.nnz_estimate, nnz);
    tulle_matrix_free(A);
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
}

/* ---- the independent check of a product */

static void the_product_check_passes_products_and_nothing_else(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int v = 0; v < 4; v++) {
        ref_types t = ref_types_at(v);
        ref A = ref_random(6, 80, 60, 6, REF_REALS, t), B = ref_random(7, 60, 70, 6, REF_REALS, t);
        ref C = ref_product(&A.view, &B.view);
        double error = -1;
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_OK, "%s",
              tulle_ctx_error(ctx));
        CHECK(error >= 0 && error < 1e-4, "error %g", error);
        int64_t big = 0;
        for (int64_t k = 0; k < C.view.nnz; k++)
            if (fabs(ref_val(&C.view, k).re) > fabs(ref_val(&C.view, big).re)) big = k;
        ref_value old = ref_val(&C.view, big);
        ref_set_val(&C, big, (ref_value){old.re + 0.25, old.im});       /* a wrong value */
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_ECHECK && error > 1e-4,
              "a wrong value, error %g", error);
        CHECK(strstr(tulle_ctx_error(ctx), "row ") != NULL, "%s", tulle_ctx_error(ctx));
        ref_set_val(&C, big, (ref_value){0, 0});                        /* a missing one */
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_ECHECK, "a zero");
        ref_set_val(&C, big, (ref_value){NAN, 0});
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_ECHECK, "a NaN");
        ref_set_val(&C, big, (ref_value){INFINITY, 0});
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_ECHECK, "an infinity");
        ref_set_val(&C, big, old);
        for (int64_t k = 1; k < C.view.nnz; k++) {                      /* an entry one column too far */
            int64_t c = ref_col(&C.view, k);
            if (c + 1 >= 70 || (k + 1 < C.view.nnz && ref_col(&C.view, k + 1) == c + 1) || fabs(ref_val(&C.view, k).re) < 1)
                continue;
            ref_set_col(&C, k, c + 1);
            CHECK(tulle_product_check(ctx, &A.view, &B.view, &C.view, NULL, &error) == TULLE_ECHECK, "misplaced");
            ref_set_col(&C, k, c);
            break;
        }
        ref T = ref_transpose(&A.view, TULLE_ADJOINT);
        tulle_options o = {.op_a = TULLE_ADJOINT};
        CHECK(tulle_product_check(ctx, &T.view, &B.view, &C.view, &o, &error) == TULLE_OK, "%s",
              tulle_ctx_error(ctx));
        CHECK(tulle_product_check(ctx, &A.view, &B.view, &A.view, NULL, &error) == TULLE_ESHAPE, "%s",
              tulle_ctx_error(ctx));
        ref all[] = {A, B, C, T};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(blocks_give_the_same_product_for_any_limit), TEST(a_large_product_comes_in_many_blocks),
          TEST(blocks_take_all_options), TEST(a_limit_is_kept_or_refused_with_a_number),
          TEST(a_limit_counts_the_copies), TEST(estimates_hold), TEST(an_estimate_of_a_large_product_is_close),
          TEST(the_product_check_passes_products_and_nothing_else))
