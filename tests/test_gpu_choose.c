/* SPDX-License-Identifier: MIT
 *
 * test_gpu_choose.c - a context that chooses between the CPU and a device for each product ("cpu/opencl:0"):
 * both give the same result, arrays on the device are multiplied there, and if the device has too little
 * memory, the CPU computes the product. */
#define _GNU_SOURCE
#include "choose.h"
#include "gpu.h"

static tulle_ctx *choosing(void)
{
    char name[128];
    tulle_ctx *ctx = NULL;
    snprintf(name, sizeof name, "cpu/%s", gpu_name());
    if (tulle_ctx_create(name, NULL, &ctx) != TULLE_OK) abort();
    return ctx;
}

static void favour(tulle_ctx *ctx, bool device)
{
    ctx->choice->looked = true;
    for (int i = 0; i < TL_CONSTANTS; i++) ctx->choice->seconds[i] = (i >= TL_GPU_START) == device ? 1e-15 : 1e-3;
}

static bool was_on(tulle_ctx *ctx, bool device)
{
    tulle_stats t;
    tulle_ctx_stats(ctx, &t);
    return strcmp(t.device, device ? gpu_name() : "cpu") == 0;
}

static bool gives(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o, const tulle_csr *want)
{
    tulle_matrix *C = NULL, *home = NULL;
    bool good = tulle_multiply(ctx, A, B, o, &C) == TULLE_OK;
    if (!good) printf("    %s\n", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    if (good && c.place == TULLE_DEVICE) {
        good = tulle_csr_move(ctx, &c, TULLE_HOST, &home) == TULLE_OK;
        c = tulle_matrix_view(home);
    }
    good = good && ref_same(&c, want, "a product");
    tulle_matrix_free(home);
    tulle_matrix_free(C);
    return good;
}

static void both_give_the_same(void)
{
    tulle_ctx *ctx = choosing();
    CHECK(strcmp(tulle_ctx_device(ctx), gpu_name()) == 0, "%s", tulle_ctx_device(ctx));
    for (int i = 4; i < SMALL_PAIRS; i += 2)
        for (int device = 0; device < 2; device++) {
            pair p = pair_at(i, REF_INTEGERS, f64, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_plan *plan = NULL;
            tulle_matrix *C = NULL;
            favour(ctx, device);
            CHECK(gives(ctx, &p.A.view, &p.B.view, NULL, &want.view) && was_on(ctx, device), "%s", p.name);
            REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            favour(ctx, !device);
            CHECK(tulle_plan_multiply(plan, p.A.values, p.B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const tulle_csr c = tulle_matrix_view(C);
            CHECK(ref_same(&c, &want.view, p.name) && was_on(ctx, device), "a plan");
            tulle_matrix_free(C);
            tulle_plan_free(plan);
            ref_free(&want);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

static void arrays_on_the_device_are_multiplied_there(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_options there = {.c_place = TULLE_DEVICE};
    tulle_matrix *A = NULL;
    favour(ctx, false);
    CHECK(gives(ctx, &p.A.view, &p.B.view, &there, &want.view) && was_on(ctx, true), "C there");
    REQUIRE(tulle_csr_move(ctx, &p.A.view, TULLE_DEVICE, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_csr a = tulle_matrix_view(A);
    CHECK(gives(ctx, &a, &p.B.view, NULL, &want.view) && was_on(ctx, true), "A there");
    CHECK(gives(ctx, &p.A.view, &p.B.view, NULL, &want.view) && was_on(ctx, false), "all here");
    tulle_matrix_free(A);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void sparse_times_dense_goes_where_X_is(void)
{
    tulle_ctx *ctx = choosing();
    ref A = ref_random(3, 60, 40, 5, REF_INTEGERS, f64);
    double x[40 * 3], y[60 * 3], want[60 * 3];
    for (int i = 0; i < 40 * 3; i++) x[i] = i % 7 - 3;
    const tulle_dense X = tulle_dense_make(40, 3, 3, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(60, 3, 3, TULLE_BY_ROWS, want, TULLE_F64);
    tulle_dense_matrix *on = NULL;
    tulle_spmm_plan *plan = NULL;
    favour(ctx, false);
    REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK && was_on(ctx, false), "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_dense_move(ctx, &X, TULLE_DEVICE, &on) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_dense there = tulle_dense_view(on);
    Y.values = y;
    CHECK(tulle_spmm(ctx, NULL, &A.view, &there, NULL, &Y, NULL) == TULLE_OK && was_on(ctx, true)
          && memcmp(y, want, sizeof y) == 0, "X there: %s", tulle_ctx_error(ctx));
    /* when a plan is created, the place of X is not known */
    REQUIRE(tulle_spmm_plan_create(ctx, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    memset(y, 0, sizeof y);
    CHECK(tulle_spmm_plan_run(plan, NULL, &there, NULL, &Y) == TULLE_OK && memcmp(y, want, sizeof y) == 0, "a plan: %s",
          tulle_ctx_error(ctx));
    tulle_spmm_plan_free(plan);
    tulle_dense_free(on);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void without_room_there_the_cpu_takes_it(void)
{
    pair p = pair_at(12, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    int left = 0;
    for (int fail = 1; fail < 6; fail++) {
        char number[16];
        snprintf(number, sizeof number, "%d", fail);
        setenv("TULLE_GPU_FAIL", number, 1);
        tulle_ctx *ctx = choosing();
        unsetenv("TULLE_GPU_FAIL");
        favour(ctx, true);
        CHECK(gives(ctx, &p.A.view, &p.B.view, NULL, &want.view), "request %d", fail);
        left += was_on(ctx, false);     /* memory kept by the pool may satisfy a request instead */
        CHECK(gives(ctx, &p.A.view, &p.B.view, NULL, &want.view) && was_on(ctx, true), "and after request %d", fail);
        tulle_ctx_free(ctx);
    }
    CHECK(left > 0, "the CPU took none");
    ref_free(&want);
    pair_free(&p);
}

/* Constants are measured as with the simulated device (test_choose.c); only few cases, since PoCL is slow. */
static void both_are_measured(void)
{
    char folder[] = "/tmp/tulle-choose-XXXXXX", name[512] = "", cache[512] = "";
    tulle_ctx *ctx = choosing();
    const char *was = getenv("TULLE_CACHE");
    snprintf(cache, sizeof cache, "%s", was ? was : "");
    REQUIRE(mkdtemp(folder), "a folder");
    ctx->choice->grid = 4;
    setenv("TULLE_CACHE", folder, 1);
    CHECK(tl_choice_measure(ctx) == TULLE_OK && ctx->choice->measured, "%s", tulle_ctx_error(ctx));
    for (int i = 0; i < TL_CONSTANTS; i++)
        CHECK(ctx->choice->seconds[i] > 0 && ctx->choice->seconds[i] < 1, "%d: %g", i, ctx->choice->seconds[i]);
    CHECK(!ctx->choice->force, "the choice is free again");
    tulle_ctx_free(ctx);
    if (was) setenv("TULLE_CACHE", cache, 1);
    else unsetenv("TULLE_CACHE");
    snprintf(name, sizeof name, "rm -r %s", folder);
    CHECK(system(name) == 0, "%s", name);
}

static void names_that_are_none_are_refused(void)
{
    static const char *const names[] = {"cpu/", "cpu/cpu", "cpu/nothing:3", "cpu/opencl:99", "cpu,cpu/opencl:0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tulle_ctx *ctx = NULL;
        char why[1024];
        CHECK(tulle_ctx_create_why(names[i], NULL, &ctx, why, sizeof why) == TULLE_EDEVICE && !ctx && why[0], "%s: %s", names[i],
              why);
    }
}

TEST_MAIN(TEST(both_give_the_same), TEST(arrays_on_the_device_are_multiplied_there),
          TEST(sparse_times_dense_goes_where_X_is), TEST(without_room_there_the_cpu_takes_it),
          TEST(both_are_measured), TEST(names_that_are_none_are_refused))
