/* SPDX-License-Identifier: MIT
 *
 * test_gpu_limits.c - counts that do not fit 32 bits, on a device, in a build where the limit of 32-bit
 * indices is 1000 (TULLE_I32_LIMIT): row pointers of C are widened if necessary; if their type was fixed,
 * the call is refused with the same message as on the CPU, for all places of operands and result. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

#ifndef TULLE_I32_LIMIT
#error "this test needs the library built with a small TULLE_I32_LIMIT"
#endif

enum { LIMIT = TULLE_I32_LIMIT };

/* A product with rows * cols entries, of operands with rows + cols; folded: twice as many products as
 * entries. */
static pair outer(int64_t rows, int64_t cols, int64_t inner, ref_types t)
{
    return (pair){ref_dense(rows, inner, REF_INTEGERS, t), ref_dense(inner, cols, REF_INTEGERS, t),
                  inner == 1 ? "outer" : "folded"};
}

static void c_grows_wide_when_it_must(void)
{
    const struct { int64_t rows, cols; tulle_index ptr; } cases[] = {
        {10, 100, TULLE_I32}, {25, 40, TULLE_I32}, {7, 143, TULLE_I64}, {11, 91, TULLE_I64}, {100, 100, TULLE_I64}};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int inner = 1; inner <= 2; inner++) {
            int64_t nnz = cases[i].rows * cases[i].cols;        /* 1000, 1000, 1001, 1001, 10000 */
            pair p = outer(cases[i].rows, cases[i].cols, inner, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_options o;
            const char *way;
            char name[64], number[32];
            snprintf(number, sizeof number, "%" PRId64, nnz);
            for (int w = 0; gpu_way(w, &o, &way); w++) {
                int places = w % 2 ? PLACES - 1 : 0;
                snprintf(name, sizeof name, "%s %" PRId64 ", %s", p.name, nnz, way);
                tulle_matrix *C = gpu_product(ctx, &p.A.view, &p.B.view, o, places, name);
                tulle_csr c = tulle_matrix_view(C);
                CHECK(C && c.ptr_type == cases[i].ptr && c.idx_type == TULLE_I32, "%s: pointers i%d", name,
                      32 * (int)c.ptr_type);
                if (C) CHECK(ref_same(&c, &want.view, name), "%s", "a wrong product");
                tulle_matrix_free(C);

                o.c_ptr_type = TULLE_I64;
                gpu_product_is(ctx, &p.A.view, &p.B.view, &o, places, &want.view, name);

                o.c_ptr_type = TULLE_I32;
                o.c_place = places ? TULLE_DEVICE : TULLE_HOST;
                C = NULL;
                tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
                if (nnz <= LIMIT) {
                    CHECK(status == TULLE_OK && tulle_matrix_view(C).ptr_type == TULLE_I32, "%s: %s", name,
                          tulle_ctx_error(ctx));
                } else {
                    CHECK(status == TULLE_EOVERFLOW && !C, "%s: %s", name, tulle_status_name(status));
                    CHECK(strstr(tulle_ctx_error(ctx), number) && strstr(tulle_ctx_error(ctx), "1000"), "%s: %s", name,
                          tulle_ctx_error(ctx));
                }
                tulle_matrix_free(C);
            }
            ref_free(&want);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* Numbers of products, entries and offsets all exceed the limit, in every bin. */
static void large_products_are_wide_and_right(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "4096");
    for (int i = 15; i < GPU_PAIRS; i++) {
        pair p = gpu_pair(i, REF_INTEGERS, f64_i64, f64_i64);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_matrix *C = gpu_product(ctx, &p.A.view, &p.B.view, (tulle_options){.policy = "speck"}, i % PLACES, p.name);
        tulle_csr c = tulle_matrix_view(C);
        if (C) CHECK(ref_same(&c, &want.view, p.name), "%s", "a wrong product");
        CHECK(c.ptr_type == (want.view.nnz > LIMIT ? TULLE_I64 : TULLE_I32), "%s: pointers i%d", p.name,
              32 * (int)c.ptr_type);
        tulle_matrix_free(C);
        C = NULL;
        tulle_options o = {.c_ptr_type = TULLE_I32};
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
        CHECK(status == (want.view.nnz > LIMIT ? TULLE_EOVERFLOW : TULLE_OK) && (C == NULL) == (want.view.nnz > LIMIT), "%s: %s",
              p.name, tulle_status_name(status));
        tulle_matrix_free(C);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void zeros_that_are_dropped_do_not_count(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_dense(40, 2, REF_INTEGERS, f64), B = ref_dense(2, 40, REF_INTEGERS, f64);
    for (int64_t k = 0; k < A.view.nnz; k++) ref_set_val(&A, k, (ref_value){k < 40 ? 1 : k % 2 ? -1 : 1, 0});
    for (int64_t k = 0; k < B.view.nnz; k++) ref_set_val(&B, k, (ref_value){1, 0});
    ref full = ref_product(&A.view, &B.view), want = ref_without_zeros(&full.view);
    REQUIRE(want.view.nnz < LIMIT && full.view.nnz > LIMIT, "%" PRId64 " entries", want.view.nnz);
    tulle_matrix *C = gpu_product(ctx, &A.view, &B.view, (tulle_options){.drop_zeros = 1}, 0, "dropped");
    tulle_csr c = tulle_matrix_view(C);
    CHECK(C && ref_same(&c, &want.view, "dropped") && c.ptr_type == TULLE_I32, "i%d", 32 * (int)c.ptr_type);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&B);
    ref_free(&full);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void columns_of_c_that_do_not_fit(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int over = 0; over <= 1; over++) {
        ref A = ref_random(1, 20, 30, 3, REF_INTEGERS, f64);
        ref B = ref_random(2, 30, LIMIT + 1 + over, 3, REF_INTEGERS, f64_i64);
        ref want = ref_product(&A.view, &B.view);
        gpu_product_is(ctx, &A.view, &B.view, NULL, 0, &want.view, "64-bit columns");
        tulle_options o = {.c_idx_type = TULLE_I32};
        tulle_matrix *C = NULL;
        tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
        CHECK(status == (over ? TULLE_EOVERFLOW : TULLE_OK) && (C == NULL) == over, "%d columns as i32: %s", LIMIT + 1 + over,
              tulle_status_name(status));
        if (over) CHECK(strstr(tulle_ctx_error(ctx), "1002") != NULL, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_matrix_view(C);
        if (C) CHECK(ref_same(&c, &want.view, "narrow columns") && c.idx_type == TULLE_I32, "i%d", 32 * (int)c.idx_type);
        tulle_matrix_free(C);
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

static void plans_widen_and_refuse(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int fits = 0; fits <= 1; fits++) {
        pair p = outer(20, fits ? 50 : 51, 2, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_plan *plan = NULL;
        tulle_options o = {.c_ptr_type = TULLE_I32};
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)c.nnz * sizeof *values);
        CHECK(c.ptr_type == (fits ? TULLE_I32 : TULLE_I64), "i%d", 32 * (int)c.ptr_type);
        CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, "plan"), "%s", "wrong values");
        tulle_plan_free(plan);
        plan = NULL;
        tulle_status status = tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan);
        CHECK(status == (fits ? TULLE_OK : TULLE_EOVERFLOW) && !plan == !fits, "%s", tulle_status_name(status));
        tulle_plan_free(plan);
        free(values);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(c_grows_wide_when_it_must), TEST(large_products_are_wide_and_right),
          TEST(zeros_that_are_dropped_do_not_count), TEST(columns_of_c_that_do_not_fit), TEST(plans_widen_and_refuse))
