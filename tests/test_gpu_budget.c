/* SPDX-License-Identifier: MIT
 *
 * test_gpu_budget.c - memory limits on a device: a product keeps its limit, or is refused before it exceeds
 * it, with a sufficient number in the message; and the memory that a context keeps between products is
 * limited. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

enum { MUCH = 1 << 30 };

/* The number of bytes named in an error message, 0: none. */
static uint64_t asked_for(tulle_ctx *ctx)
{
    unsigned long long need = 0;
    const char *at = strstr(tulle_ctx_error(ctx), "needs ");
    return at && sscanf(at, "needs %llu bytes", &need) == 1 ? need : 0;
}

/* ---- computations with a limit */

typedef struct job {
    tulle_ctx       *ctx;
    const tulle_csr *A, *B, *want;
    tulle_options    o;
    const char      *name;
    uint64_t         peak;              /* from the statistics                         */
    int64_t          row;
    bool             good;
} job;

typedef tulle_status (*job_fn)(job *j);

static tulle_status multiply(job *j)
{
    tulle_matrix *C = NULL, *host = NULL;
    tulle_status status = tulle_multiply(j->ctx, j->A, j->B, &j->o, &C);
    if (status == TULLE_OK && j->o.c_place == TULLE_DEVICE) {
        tulle_csr there = tulle_matrix_view(C);
        host = gpu_moved(j->ctx, &there, TULLE_HOST);
    }
    tulle_csr c = tulle_matrix_view(host ? host : C);
    j->good = status != TULLE_OK || ref_same(&c, j->want, j->name);
    tulle_matrix_free(C);
    tulle_matrix_free(host);
    return status;
}

static tulle_status plan_and_run(job *j)
{
    tulle_plan *plan = NULL;
    tulle_status status = tulle_plan_create(j->ctx, j->A, j->B, &j->o, &plan);
    if (status != TULLE_OK) return status;
    tulle_csr c = tulle_plan_pattern(plan);
    double *values = malloc(((size_t)c.nnz + 1) * sizeof *values);
    status = tulle_plan_run(plan, j->A->values, j->B->values, values);
    c.values = values;
    j->good = status == TULLE_OK && ref_same(&c, j->want, j->name);
    tulle_plan_free(plan);
    free(values);
    return status;
}

static int next_block(void *user, int64_t first, const tulle_csr *block)
{
    job *j = user;
    int64_t from = ref_ptr(j->want, first);
    j->good = j->good && first == j->row && block->nnz == ref_ptr(j->want, first + block->rows) - from;
    for (int64_t k = 0; j->good && k < block->nnz; k++)
        j->good = ref_col(block, k) == ref_col(j->want, from + k) && ref_val(block, k).re == ref_val(j->want, from + k).re;
    j->row += block->rows;
    return 0;
}

static tulle_status in_blocks(job *j)
{
    j->row = 0;
    j->good = true;
    tulle_status status = tulle_multiply_blocks(j->ctx, j->A, j->B, &j->o, next_block, j);
    j->good = j->good && (status != TULLE_OK || j->row == j->A->rows);
    return status;
}

/* Runs a job with one limit, and checks what is guaranteed for success and for refusal. */
static tulle_status try_limit(job *j, job_fn fn, uint64_t limit)
{
    tl_gpu *gpu = j->ctx->gpu;
    const uint64_t held = tl_dmem_held(gpu);
    j->o.memory_limit = limit;
    tl_dmem_peak(gpu, true);
    tulle_status status = fn(j);
    const uint64_t took = tl_dmem_peak(gpu, false) - held;
    CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s, limit %" PRIu64 ": %s", j->name, limit, tulle_ctx_error(j->ctx));
    CHECK(took <= limit, "%s, limit %" PRIu64 ": %" PRIu64 " bytes were taken, %s", j->name, limit, took, tulle_status_name(status));
    CHECK(gpu->waiting <= limit, "%s, limit %" PRIu64 ": %" PRIu64 " bytes are kept", j->name, limit, gpu->waiting);
    CHECK(tl_dmem_held(gpu) == held, "%s, limit %" PRIu64 ": something stayed", j->name, limit);
    if (status == TULLE_OK) {
        tulle_stats s;
        tulle_ctx_stats(j->ctx, &s);
        j->peak = s.peak_bytes;
        CHECK(j->good, "%s, limit %" PRIu64 ": a wrong product", j->name, limit);
        CHECK(s.peak_bytes <= limit, "%s, limit %" PRIu64 ": peak %" PRIu64, j->name, limit, s.peak_bytes);
        CHECK(took <= s.peak_bytes, "%s, limit %" PRIu64 ": %" PRIu64 " bytes, but a peak of %" PRIu64, j->name, limit, took,
              s.peak_bytes);
    } else {
        CHECK(asked_for(j->ctx) > limit, "%s, limit %" PRIu64 ": %s", j->name, limit, tulle_ctx_error(j->ctx));
    }
    return status;
}

/* The number in the error message is sufficient, or the next one is. */
static void climb(job *j, job_fn fn, uint64_t limit, int steps)
{
    tulle_status status = try_limit(j, fn, limit);
    for (int i = 0; status == TULLE_ELIMIT && i < steps; i++) {
        limit = asked_for(j->ctx);
        status = try_limit(j, fn, limit);
    }
    CHECK(status == TULLE_OK, "%s: %d steps were not enough: %s", j->name, steps, tulle_ctx_error(j->ctx));
}

/* The smallest sufficient limit equals the memory taken without a limit. */
static void search(job *j, job_fn fn, int steps, bool exact)
{
    REQUIRE(try_limit(j, fn, MUCH) == TULLE_OK, "%s: %s", j->name, tulle_ctx_error(j->ctx));
    const uint64_t peak = j->peak;
    uint64_t no = 0, yes = peak;
    CHECK(try_limit(j, fn, peak) == TULLE_OK, "%s: the peak is not enough: %s", j->name, tulle_ctx_error(j->ctx));
    while (yes - no > peak / 16 + 512) {
        uint64_t limit = no + (yes - no) / 2;
        if (try_limit(j, fn, limit) == TULLE_OK) yes = limit;
        else no = limit;
    }
    if (exact) CHECK(try_limit(j, fn, peak - 1) == TULLE_ELIMIT, "%s: less than the %" PRIu64 " bytes taken is enough", j->name, peak);
    for (uint64_t i = 0; i < 4; i++) climb(j, fn, peak * i / 4 + 1, steps);
    climb(j, fn, peak - 1, steps);
}

/* Products that use the fast path for small ones, lists, hash maps and positions in global memory, areas, and
 * conversions of indices. */
static void products_keep_their_limit(void)
{
    static const char *const policies[] = {"auto", "speck", "bhsparse", "regsort", "delta"};
    static const int pairs[] = {0, 6, 9, 15, 19, 21, GPU_PAIR(5)};
    const ref_types narrow = f64, wide = f64_i64;
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++)
        for (int way = 0; way < 8; way++) {
            if (way >= 4 && (n + way) % 4) continue;
            pair p = gpu_pair(pairs[n], REF_INTEGERS, narrow, way == 5 ? wide : narrow);
            job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view};
            char name[96];
            const char *policy = policies[(way + n) % 5];
            snprintf(name, sizeof name, "%s, %s, way %d", p.name, policy, way);
            j.name = name;
            j.o = (tulle_options){.policy = policy, .drop_zeros = way == 4 || way == 6,
                                  .c_ptr_type = way == 5 ? TULLE_I64 : 0, .c_idx_type = way == 7 ? TULLE_I64 : 0,
                                  .c_place = way % 2 ? TULLE_DEVICE : TULLE_HOST};
            ref full = ref_product(&p.A.view, &p.B.view), want = j.o.drop_zeros ? ref_without_zeros(&full.view) : full;
            j.want = &want.view;
            /* with C on the host it continues in blocks */
            search(&j, multiply, 2, j.o.c_place == TULLE_DEVICE);
            if (j.o.drop_zeros) ref_free(&want);
            ref_free(&full);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

static void squares_keep_their_limit(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_power(24, 400, 400, 200, REF_INTEGERS, f64), want = ref_product(&A.view, &A.view);
    tulle_matrix *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
    tulle_csr a = tulle_matrix_view(there);
    job j = {.ctx = ctx, .A = &A.view, .B = &A.view, .want = &want.view, .name = "a square from the host"};
    search(&j, multiply, 2, false);
    j = (job){.ctx = ctx, .A = &a, .B = &a, .want = &want.view, .name = "a square there", .o.c_place = TULLE_DEVICE};
    search(&j, multiply, 2, true);
    tulle_matrix_free(there);
    ref_free(&A);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void plans_keep_their_limit(void)
{
    static const int pairs[] = {9, 19, GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &want.view, .name = p.name};
        search(&j, plan_and_run, 2, true);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A plan whose operands and C are on the device; the limit is for the plan, not for the caller's C of a
 * run. */
static tulle_status plan_there(job *j)
{
    tulle_plan *plan = NULL;
    tulle_status status = tulle_plan_create(j->ctx, j->A, j->B, &j->o, &plan);
    if (status == TULLE_OK) {
        tulle_csr c = tulle_plan_pattern(plan);
        tulle_matrix *host = gpu_moved(j->ctx, &c, TULLE_HOST);
        tulle_csr h = tulle_matrix_view(host), want = *j->want;
        h.values = want.values = NULL;
        j->good = ref_same(&h, &want, j->name);
        tulle_matrix_free(host);
    }
    tulle_plan_free(plan);
    return status;
}

static void plans_there_keep_their_limit(void)
{
    static const int pairs[] = {9, 19, GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_matrix *A = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *B = gpu_moved(ctx, &p.B.view, TULLE_DEVICE);
        tulle_csr a = tulle_matrix_view(A), b = tulle_matrix_view(B);
        job j = {.ctx = ctx, .A = &a, .B = &b, .want = &want.view, .name = p.name,
                 .o = {.c_place = TULLE_DEVICE, .c_ptr_type = n == 1 ? TULLE_I64 : 0}};
        search(&j, plan_there, 2, true);
        tulle_matrix_free(A);
        tulle_matrix_free(B);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Too little memory for A and B, for the first row, and for the longest row: each is refused. */
static void blocks_keep_their_limit(void)
{
    static const int pairs[] = {9, 19, 21};
    tulle_ctx *ctx = gpu_ctx();
    for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &want.view, .name = p.name};
        search(&j, in_blocks, 3, false);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- memory that is kept */

static uint64_t kept(const tl_gpu *gpu)
{
    uint64_t bytes = 0;
    for (int i = 0; i < gpu->blocks; i++) bytes += gpu->block[i].used ? 0 : gpu->block[i].bytes;
    return bytes;
}

static void kept_memory_has_an_end(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tl_gpu *gpu = ctx->gpu;
    CHECK(gpu->keep_most == gpu->caps.memory_bytes / 4, "%" PRIu64, gpu->keep_most);
    gpu->keep_most = 100000;
    for (int n = 5; n <= 60; n += 5) {
        ref A = ref_dense(n, n, REF_INTEGERS, f64), want = ref_product(&A.view, &A.view);
        gpu_product_is(ctx, &A.view, &A.view, NULL, n % PLACES, &want.view, "kept");
        CHECK(kept(gpu) == gpu->waiting && gpu->waiting <= gpu->keep_most, "%" PRIu64 " bytes are kept", kept(gpu));
        ref_free(&A);
        ref_free(&want);
    }
    CHECK(gpu->waiting > 0, "nothing is kept");
    tulle_ctx_trim(ctx);
    CHECK(gpu->waiting == 0 && kept(gpu) == 0 && gpu->blocks == 1, "%" PRIu64 " bytes in %d blocks", kept(gpu), gpu->blocks);
    /* the least recently used block is freed first */
    gpu->keep_most = 3 * 4096;
    tl_dmem m[4];
    for (int i = 0; i < 4; i++)
        REQUIRE(tl_dmem_alloc(&ctx->base, gpu, 4096, "a block", &m[i]) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int i = 3; i >= 0; i--) tl_dmem_free(gpu, m[i]);
    bool there[4] = {false};
    for (int i = 0; i < gpu->blocks; i++)
        for (int k = 0; k < 4; k++) there[k] |= gpu->block[i].handle == m[k].handle;
    CHECK(there[0] && there[1] && there[2] && !there[3] && gpu->waiting == 3 * 4096, "%d %d %d %d", there[0], there[1], there[2],
          there[3]);
    tulle_ctx_free(ctx);
}

/* If the driver refuses a request, kept memory is freed first. */
static void kept_memory_goes_back_before_a_request_fails(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tl_gpu *gpu = ctx->gpu;
    tl_dmem first, second;
    REQUIRE(tl_dmem_alloc(&ctx->base, gpu, 1 << 20, "a block", &first) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tl_dmem_free(gpu, first);
    CHECK(gpu->waiting == 1 << 20, "%" PRIu64 " bytes are kept", gpu->waiting);
    gpu->fail_at = gpu->requests + 1;
    REQUIRE(tl_dmem_alloc(&ctx->base, gpu, 1 << 10, "a block", &second) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(gpu->waiting == 0, "%" PRIu64 " bytes are kept", gpu->waiting);
    tl_dmem_free(gpu, second);
    tulle_ctx_free(ctx);
}

/* Matrices freed while a product runs (here: between its requests) do not count for the product. */
static void what_others_free_is_not_counted(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tl_gpu *gpu = ctx->gpu;
    tl_dmem other, mine;
    REQUIRE(tl_dmem_alloc(&ctx->base, gpu, 8192, "a block", &other) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tl_dmem_begin(gpu, 1024, 8192);
    REQUIRE(tl_dmem_alloc(&ctx->base, gpu, 4096, "a block", &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tl_dmem_free(gpu, other);
    CHECK(tl_dmem_taken(gpu) == 5120 && gpu->waiting <= 8192 - 5120, "%" PRIu64 " taken, %" PRIu64 " kept", tl_dmem_taken(gpu),
          gpu->waiting);
    CHECK(tl_dmem_alloc(&ctx->base, gpu, 3073, "too much", &other) == TULLE_ELIMIT && tl_dmem_refused(gpu) == 5120 + 3584, "%s",
          tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), "too much") && !other.handle, "%s", tulle_ctx_error(ctx));
    CHECK(tl_dmem_alloc(&ctx->base, gpu, 3072, "just enough", &other) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tl_dmem_most(gpu) == 8192, "%" PRIu64, tl_dmem_most(gpu));
    tl_dmem_free(gpu, mine);
    tl_dmem_free(gpu, other);
    tl_dmem_end(gpu);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(products_keep_their_limit), TEST(squares_keep_their_limit), TEST(plans_keep_their_limit), TEST(plans_there_keep_their_limit),
          TEST(blocks_keep_their_limit), TEST(kept_memory_has_an_end), TEST(kept_memory_goes_back_before_a_request_fails),
          TEST(what_others_free_is_not_counted))
