/* SPDX-License-Identifier: MIT
 *
 * test_gpu_several.c - a device together with the CPU, with itself and with another: products, plans and
 * SpMM have the results of the CPU (with integers, as the order of sums differs); if a device has no memory,
 * others compute its rows. */
#define _GNU_SOURCE
#include "gpu.h"
#include "several.h"

/* NULL: the device under test; as second device that of TULLE_TEST_SECOND, if set. */
static tulle_ctx *mixed(const char *first, const char *second)
{
    char names[128];
    tulle_ctx *ctx = NULL;
    const char *other = getenv("TULLE_TEST_SECOND");
    if (!other || !*other) other = gpu_name();
    snprintf(names, sizeof names, "%s,%s", first ? first : gpu_name(), second ? second : other);
    if (tulle_ctx_create(names, NULL, &ctx) == TULLE_OK) return ctx;
    abort();
}

static bool gives(tulle_ctx *ctx, const pair *p, const tulle_options *o, const tulle_csr *want)
{
    tulle_matrix *C = NULL;
    bool good = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C) == TULLE_OK;
    if (!good) printf("    %s: %s\n", p->name, tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    good = good && ref_same(&c, want, p->name);
    tulle_matrix_free(C);
    return good;
}

static void plan_gives(tulle_ctx *ctx, const pair *p, const tulle_csr *want)
{
    tulle_plan *plan = NULL;
    tulle_matrix *C = NULL;
    REQUIRE(tulle_plan_create(ctx, &p->A.view, &p->B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int run = 0; run < 2; run++) {
        CHECK(tulle_plan_multiply(plan, p->A.values, p->B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        const tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, want, p->name), "a plan");
        tulle_matrix_free(C);
        C = NULL;
    }
    tulle_plan_free(plan);
}

/* The parts compute ranges alternately, so that the device has rows in the middle of A, too. */
static void rows_of_both_are_joined(void)
{
    const char *const names[][2] = {{"cpu", NULL}, {NULL, "cpu"}, {NULL, NULL}};
    for (int n = 0; n < 3; n++) {
        tulle_ctx *ctx = mixed(names[n][0], names[n][1]);
        for (int i = 4; i < SMALL_PAIRS + 2; i++) {
            pair p = pair_at(i, REF_INTEGERS, f64, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            char rows[32];
            snprintf(rows, sizeof rows, "%" PRId64, p.A.view.rows / 5 + 1);
            setenv("TULLE_PART_ROWS", rows, 1);
            CHECK(gives(ctx, &p, NULL, &want.view), "on %s", tulle_ctx_device(ctx));
            plan_gives(ctx, &p, &want.view);
            unsetenv("TULLE_PART_ROWS");
            ref_free(&want);
            pair_free(&p);
        }
        pair p = pair_at(16, REF_INTEGERS, f64, f64);
        p.B.view = p.A.view;            /* A*A: one copy on the device */
        ref want = ref_product(&p.A.view, &p.A.view);
        setenv("TULLE_PART_ROWS", "9", 1);
        CHECK(gives(ctx, &p, NULL, &want.view), "A*A on %s", tulle_ctx_device(ctx));
        unsetenv("TULLE_PART_ROWS");
        ref_free(&want);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

static void sparse_times_dense_is_joined(void)
{
    tulle_ctx *ctx = mixed("cpu", NULL);
    ref A = ref_random(3, 60, 40, 5, REF_INTEGERS, f64);
    double x[40 * 3], y[60 * 3], z[60 * 3] = {0};
    for (int i = 0; i < 40 * 3; i++) x[i] = i % 7 - 3;
    for (int64_t i = 0; i < 60; i++)
        for (int64_t k = ref_ptr(&A.view, i); k < ref_ptr(&A.view, i + 1); k++)
            for (int j = 0; j < 3; j++) z[i + 60 * j] += ref_val(&A.view, k).re * x[ref_col(&A.view, k) * 3 + j];
    const tulle_dense X = tulle_dense_make(40, 3, 0, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(60, 3, 0, TULLE_BY_COLS, y, TULLE_F64);
    tulle_spmm_plan *plan = NULL;
    setenv("TULLE_PART_ROWS", "25", 1);
    memset(y, 0x7f, sizeof y);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK && memcmp(y, z, sizeof y) == 0, "%s",
          tulle_ctx_error(ctx));
    CHECK(tulle_spmm_plan_create(ctx, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    unsetenv("TULLE_PART_ROWS");
    memset(y, 0x7f, sizeof y);
    CHECK(tulle_spmm_plan_run(plan, NULL, &X, NULL, &Y) == TULLE_OK && memcmp(y, z, sizeof y) == 0, "%s",
          tulle_ctx_error(ctx));
    for (int64_t k = 0; k < A.view.nnz; k++) ref_set_val(&A, k, (ref_value){2 * ref_val(&A.view, k).re, 0});
    for (int i = 0; i < 60 * 3; i++) z[i] *= 2;
    CHECK(tulle_spmm_plan_set_values(plan, A.values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_spmm_plan_run(plan, NULL, &X, NULL, &Y) == TULLE_OK && memcmp(y, z, sizeof y) == 0, "%s",
          tulle_ctx_error(ctx));
    tulle_spmm_plan_free(plan);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Each allocation of device memory fails in turn: rows are computed in halves, or by the CPU. */
static void a_device_without_memory_leaves_its_rows_to_the_others(void)
{
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_ctx *ctx = mixed("cpu", NULL);
    tulle_ctx *device = ctx->several->part[1];
    setenv("TULLE_PART_ROWS", "11", 1);
    CHECK(gives(ctx, &p, NULL, &want.view), "before");
    for (int n = 1; n < 40; n++) {
        gpu_fail_at(device, n);
        CHECK(gives(ctx, &p, NULL, &want.view), "request %d failed", n);
    }
    gpu_fail_at(device, 0);
    tulle_options small = {.memory_limit = 400 << 10};
    CHECK(gives(ctx, &p, &small, &want.view), "a limit without room for the device");
    unsetenv("TULLE_PART_ROWS");
    CHECK(gives(ctx, &p, NULL, &want.view), "afterwards");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* With a limit too small for B, each range copies the rows of B that it needs, and single rows use panels of
 * them. */
static void a_device_without_room_for_B_gets_the_rows_it_needs(void)
{
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    for (int n = 0; n < 2; n++) {
        tulle_ctx *ctx = mixed(n ? "cpu" : NULL, NULL);
        int done = 0, refused = 0;
        setenv("TULLE_PART_ROWS", "11", 1);
        for (uint64_t limit = 4 << 20; limit > 2000; limit = limit * 2 / 3) {
            tulle_options o = {.memory_limit = limit};
            tulle_matrix *C = NULL;
            tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
            const tulle_csr c = tulle_matrix_view(C);
            if (status == TULLE_OK) CHECK(ref_same(&c, &want.view, p.name), "limit %" PRIu64, limit);
            else CHECK(status == TULLE_ELIMIT && !C, "limit %" PRIu64 ": %s", limit, tulle_ctx_error(ctx));
            done += status == TULLE_OK;
            refused += status != TULLE_OK;
            CHECK(refused == 0 || status != TULLE_OK, "limit %" PRIu64 " does, and more does not", limit);
            tulle_matrix_free(C);
        }
        CHECK(done > 2, "%d done, %d refused", done, refused);
        unsetenv("TULLE_PART_ROWS");
        tulle_ctx_free(ctx);
    }
    ref_free(&want);
    pair_free(&p);
}

/* ---- two contexts, each with a device */

#define REFUSED(ctx, call, word)                                                                                  \
    do {                                                                                                          \
        tulle_status status = (call);                                                                             \
        CHECK(status == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), word " lies in the memory of another"),      \
              "%s: %s", tulle_status_name(status), tulle_ctx_error(ctx));                                         \
    } while (0)

/* OpenCL's contexts share no memory even on one device; on CUDA another device is needed, and a second context
 * of the same device works. */
static void arrays_of_another_device_are_refused(void)
{
    const char *second = getenv("TULLE_TEST_SECOND");
    if (!second || !*second) second = gpu_name();
    const bool apart = strncmp(second, "cuda", 4) != 0 || strcmp(second, gpu_name()) != 0;
    tulle_ctx *mine = gpu_ctx(), *other = NULL;
    REQUIRE(tulle_ctx_create(second, NULL, &other) == TULLE_OK, "%s", second);
    ref A = ref_random(3, 40, 40, 5, REF_INTEGERS, f64);
    double x[40] = {1}, y[40];
    tulle_dense host_x = tulle_dense_make(40, 1, 0, TULLE_BY_ROWS, x, TULLE_F64),
                host_y = tulle_dense_make(40, 1, 0, TULLE_BY_ROWS, y, TULLE_F64);
    tulle_matrix *a = gpu_moved(mine, &A.view, TULLE_DEVICE), *b = gpu_moved(other, &A.view, TULLE_DEVICE), *C = NULL;
    tulle_dense_matrix *X = NULL, *Y = NULL;
    tulle_plan *plan = NULL;
    tulle_spmm_plan *spmm = NULL;
    REQUIRE(tulle_dense_move(other, &host_x, TULLE_DEVICE, &X) == TULLE_OK, "%s", tulle_ctx_error(other));
    tulle_csr here = tulle_matrix_view(a), there = tulle_matrix_view(b), mixed_up = here;
    tulle_dense dense_there = tulle_dense_view(X);
    REQUIRE(tulle_plan_create(mine, &here, &here, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(mine));
    REQUIRE(tulle_spmm_plan_create(mine, &here, NULL, &spmm) == TULLE_OK, "%s", tulle_ctx_error(mine));
    if (!apart) {
        CHECK(tulle_multiply(mine, &here, &there, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(mine));
    } else {
        REFUSED(mine, tulle_multiply(mine, &there, &there, NULL, &C), "A: row_ptr");
        REFUSED(mine, tulle_multiply(mine, &here, &there, NULL, &C), "B: row_ptr");
        mixed_up.values = there.values;
        REFUSED(mine, tulle_multiply(mine, &mixed_up, &here, NULL, &C), "A: values");
        REFUSED(mine, tulle_csr_move(mine, &there, TULLE_HOST, &C), "A: row_ptr");
        REFUSED(mine, tulle_dense_move(mine, &dense_there, TULLE_HOST, &Y), "A: values");
        REFUSED(mine, tulle_csr_check(mine, &there), "A: row_ptr");
        REFUSED(mine, tulle_spmm(mine, NULL, &there, &host_x, NULL, &host_y, NULL), "A: row_ptr");
        REFUSED(mine, tulle_spmm(mine, NULL, &here, &dense_there, NULL, &host_y, NULL), "X: values");
        REFUSED(mine, tulle_spmm(mine, NULL, &here, &host_x, NULL, &dense_there, NULL), "Y: values");
        REFUSED(mine, tulle_plan_run(plan, there.values, here.values, y), "A: a_values");
        REFUSED(mine, tulle_plan_run(plan, here.values, there.values, y), "B: b_values");
        REFUSED(mine, tulle_spmm_plan_set_values(spmm, there.values), "A: values");
    }
    CHECK(!apart == (C != NULL), "a result and an error");
    tulle_matrix_free(C);
    C = NULL;
    CHECK(tulle_multiply(mine, &here, &here, NULL, &C) == TULLE_OK, "afterwards: %s", tulle_ctx_error(mine));
    tulle_matrix *all[] = {a, b, C};
    for (int i = 0; i < 3; i++) tulle_matrix_free(all[i]);
    tulle_dense_free(X);
    tulle_plan_free(plan);
    tulle_spmm_plan_free(spmm);
    ref_free(&A);
    tulle_ctx_free(mine);
    tulle_ctx_free(other);
}

TEST_MAIN(TEST(arrays_of_another_device_are_refused), TEST(a_device_without_room_for_B_gets_the_rows_it_needs), TEST(rows_of_both_are_joined), TEST(sparse_times_dense_is_joined),
          TEST(a_device_without_memory_leaves_its_rows_to_the_others))
