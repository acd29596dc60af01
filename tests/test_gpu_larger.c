/* SPDX-License-Identifier: MIT
 *
 * test_gpu_larger.c - products larger than a device's memory with C on the host: limits from "just fits"
 * down to a few rows at a time and to panels of columns, failing allocations, cancellation.  Values are
 * integers, so that results have the bits of the CPU even if several teams share a row. test_panels.c tests
 * the code on the host alone. */
#define _POSIX_C_SOURCE 200809L
#include "blocks_help.h"
#include "gpu.h"

typedef struct job {
    tulle_ctx       *ctx;
    const tulle_csr *A, *B, *want;
    tulle_options    o;
    const char      *name;
    int              places;            /* of A and B                               */
} job;

/* Information from the trace of the last product. */
typedef struct told {
    bool      blocks, parts, panels;
    long long count;
} told;

static void hear(void *user, const char *line)
{
    told *t = user;
    if (sscanf(line, "C came to the host in %lld block", &t->count) == 1) t->blocks = true;
    if (strstr(line, "with the rows of B that it names")) t->parts = true;
    if (strstr(line, "panels of columns")) t->panels = true;
}

static uint64_t asked_for(tulle_ctx *ctx)
{
    unsigned long long need = 0;
    const char *at = strstr(tulle_ctx_error(ctx), "needs ");
    return at && sscanf(at, "needs %llu bytes", &need) == 1 ? need : 0;
}

/* Runs a product with one limit: it is kept, or refused with a number; in both cases no device memory
 * leaks. */
static tulle_status try_limit(const job *j, uint64_t limit, told *t)
{
    tl_gpu *gpu = j->ctx->gpu;
    tulle_matrix *a = j->places & A_THERE ? gpu_moved(j->ctx, j->A, TULLE_DEVICE) : NULL;
    tulle_matrix *b = j->places & B_THERE ? gpu_moved(j->ctx, j->B, TULLE_DEVICE) : NULL, *C = NULL;
    const tulle_csr va = a ? tulle_matrix_view(a) : *j->A, vb = b ? tulle_matrix_view(b) : *j->B;
    const uint64_t held = tl_dmem_held(gpu);
    tulle_options o = j->o;
    o.memory_limit = limit;
    *t = (told){0};
    tulle_ctx_set_trace(j->ctx, hear, t);
    tl_dmem_peak(gpu, true);
    tulle_status status = tulle_multiply(j->ctx, &va, &vb, &o, &C);
    const uint64_t took = tl_dmem_peak(gpu, false) - held;
    tulle_ctx_set_trace(j->ctx, NULL, NULL);
    CHECK(!limit || (took <= limit && gpu->waiting <= limit), "%s, limit %" PRIu64 ": %" PRIu64 " bytes were taken", j->name,
          limit, took);
    CHECK(tl_dmem_held(gpu) == held, "%s, limit %" PRIu64 ": something stayed", j->name, limit);
    if (status == TULLE_OK) {
        tulle_csr c = tulle_matrix_view(C);
        tulle_stats s;
        int64_t rows = 0;
        CHECK(c.place == TULLE_HOST && ref_same(&c, j->want, j->name), "limit %" PRIu64, limit);
        CHECK(!tulle_ctx_error(j->ctx)[0], "%s, limit %" PRIu64 ": it went well, and says: %s", j->name, limit, tulle_ctx_error(j->ctx));
        tulle_ctx_stats(j->ctx, &s);
        for (int k = 0; k < s.shares; k++) rows += s.share[k].rows;
        CHECK(s.c_nnz == c.nnz && rows == c.rows, "%s, limit %" PRIu64 ": shares of %" PRId64 " rows", j->name, limit, rows);
        CHECK(!limit || (s.peak_bytes <= limit && took <= s.peak_bytes), "%s, limit %" PRIu64 ": peak %" PRIu64 ", %" PRIu64 " taken",
              j->name, limit, s.peak_bytes, took);
    } else {
        CHECK(status == TULLE_ELIMIT && !C && asked_for(j->ctx) > limit, "%s, limit %" PRIu64 ": %s", j->name, limit,
              tulle_ctx_error(j->ctx));
    }
    tulle_matrix_free(C);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return status;
}

/* Limits from the memory taken without a limit down to a refusal; the number in the message is sufficient,
 * or the next one is. */
static told all_limits(const job *j)
{
    told t, all = {0};
    tulle_stats s;
    CHECK(try_limit(j, (uint64_t)1 << 30, &t) == TULLE_OK && !t.blocks, "%s: what fits came in blocks", j->name);
    tulle_ctx_stats(j->ctx, &s);
    CHECK(try_limit(j, s.peak_bytes, &t) == TULLE_OK && !t.blocks, "%s: the peak is not enough", j->name);
    tulle_status status = TULLE_OK;
    for (uint64_t limit = s.peak_bytes - 1; status == TULLE_OK && limit > 0; limit = limit * (few() ? 3 : 5) / (few() ? 5 : 6)) {
        status = try_limit(j, limit, &t);
        if (status != TULLE_OK) break;
        CHECK(t.blocks && t.count > 0, "%s, limit %" PRIu64 ": the trace does not say so", j->name, limit);
        all.parts |= t.parts;
        all.panels |= t.panels;
    }
    for (int i = 0; status == TULLE_ELIMIT && i < 2; i++) status = try_limit(j, asked_for(j->ctx), &t);
    CHECK(status == TULLE_OK, "%s: two numbers were not enough: %s", j->name, tulle_ctx_error(j->ctx));
    all.panels |= t.panels;
    return all;
}

static void every_limit_gives_the_product(void)
{
    static const char *const policies[] = {"auto", "speck", "bhsparse", "regsort", "delta"};
    static const int pairs[] = {7, 8, 12, 13, 15, 19, 22, GPU_PAIR(2), GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    int parts = 0, panels = 0;
    for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
        const tulle_csr w = tulle_matrix_view(want);
        for (int k = 0; k < 5; k++) {
            if (few() && k != n % 5 && k > 0) continue;
            job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &w, .o.policy = policies[k], .name = p.name};
            told t = all_limits(&j);
            parts += t.parts;
            panels += t.panels;
        }
        tulle_matrix_free(want);
        pair_free(&p);
    }
    CHECK(parts > 5 && panels > 2, "%d in parts, %d in panels", parts, panels);
    tulle_ctx_free(ctx);
}

static void every_type(void)
{
    static const ref_types types[] = {{TULLE_F64, TULLE_I64, TULLE_I64}, {TULLE_CF64, TULLE_I32, TULLE_I32},
                                      {TULLE_F32, TULLE_I64, TULLE_I32}, {TULLE_CF32, TULLE_I32, TULLE_I64}};
    tulle_ctx *ctx = gpu_ctx();
    for (int t = 0; t < (int)(sizeof types / sizeof *types); t++) {
        ref_types u = types[t];
        if (t % 2) u.idx = TULLE_I32;
        pair p = gpu_pair(15, REF_INTEGERS, types[t], u);
        tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
        const tulle_csr w = tulle_matrix_view(want);
        job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &w, .name = ref_types_name(types[t]),
                 .o.c_ptr_type = t == 1 ? TULLE_I64 : 0, .o.c_idx_type = t == 1 ? TULLE_I64 : 0};
        all_limits(&j);
        tulle_matrix_free(want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void every_option_and_place(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(3, 150, 180, 9, REF_CANCELLING, f64), B = ref_random(4, 190, 150, 12, REF_CANCELLING, f64);
    ref a = ref_shuffled(&A.view, 5, false);
    const tulle_options ways[] = {{.op_a = TULLE_TRANSPOSE, .op_b = TULLE_ADJOINT},
                                  {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE, .drop_zeros = 1},
                                  {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE, .sort_inputs = 1, .trust_inputs = 1},
                                  {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE, .time_stages = 1}};
    for (int way = 0; way < 4; way++) {
        tulle_csr x = way == 2 ? a.view : A.view, y = B.view;
        if (way == 3) x.values = y.values = NULL;               /* patterns */
        tulle_matrix *want = cpu_product(&x, &y, &ways[way]);
        const tulle_csr w = tulle_matrix_view(want);
        job j = {.ctx = ctx, .A = &x, .B = &y, .want = &w, .o = ways[way], .name = "transposed", .places = way};
        all_limits(&j);
        tulle_matrix_free(want);
    }
    ref S = ref_power(24, 200, 200, 120, REF_INTEGERS, f64);
    tulle_matrix *want = cpu_product(&S.view, &S.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    for (int places = 0; places < C_THERE; places++) {
        job j = {.ctx = ctx, .A = &S.view, .B = &S.view, .want = &w, .name = places_name(places), .places = places};
        all_limits(&j);
    }
    tulle_matrix_free(want);
    ref_free(&S);
    ref_free(&A);
    ref_free(&B);
    ref_free(&a);
    tulle_ctx_free(ctx);
}

/* A C on the device must fit there. */
static void a_c_that_is_wanted_there_is_refused(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(15, REF_INTEGERS, f64, f64);
    tulle_options o = {.c_place = TULLE_DEVICE};
    tulle_matrix *C = NULL;
    tulle_stats s;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(C);
    tulle_ctx_stats(ctx, &s);
    o.memory_limit = s.peak_bytes / 2;
    CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_ELIMIT && !C, "%s", tulle_ctx_error(ctx));
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* The n-th allocation by the driver fails, for whole products, blocks, parts and panels. */
static void a_request_that_fails_is_made_again_for_less(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = {ref_power(11, 60, 90, 60, REF_INTEGERS, f64), ref_power(12, 90, 300, 200, REF_INTEGERS, f64), "power law"};
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &w, .name = p.name};
    told t;
    tulle_stats s;
    REQUIRE(try_limit(&j, 0, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &s);
    const uint64_t limits[] = {0, s.peak_bytes - 1, s.peak_bytes / 3, s.peak_bytes / 10};
    for (int way = 0; way < 4; way++) {
        bool came = true;
        int went_on = 0;
        for (int n = 1; came && n < 2000 && test_failures < 10; n += way < 2 ? 1 : 1 + n / 4) {
            gpu_fail_at(ctx, n);
            CHECK(try_limit(&j, limits[way], &t) == TULLE_OK, "way %d, request %d: %s", way, n, tulle_ctx_error(ctx));
            came = ctx->gpu->requests >= (uint64_t)n;
            went_on += came && t.blocks;
        }
        CHECK(!came && went_on > 4, "way %d: %d went on", way, went_on);
    }
    gpu_fail_at(ctx, 0);
    tulle_matrix_free(want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

typedef struct steps { int seen, stop_at; } steps;

static int stop(void *user, const char *stage, double fraction)
{
    steps *x = user;
    (void)stage;
    (void)fraction;
    return ++x->seen == x->stop_at;
}

static void it_can_be_cancelled_at_every_step(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = {ref_power(11, 30, 90, 60, REF_INTEGERS, f64), ref_power(12, 90, 300, 200, REF_INTEGERS, f64), "power law"};
    ref a = ref_copy(&p.A.view, f64), b = ref_copy(&p.B.view, f64);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL), *C = NULL;
    const tulle_csr w = tulle_matrix_view(want);
    job j = {.ctx = ctx, .A = &p.A.view, .B = &p.B.view, .want = &w, .name = p.name};
    told t;
    tulle_stats s;
    REQUIRE(try_limit(&j, 0, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &s);
    tulle_options o = {.memory_limit = s.peak_bytes / 7};
    const uint64_t held = tl_dmem_held(ctx->gpu);
    steps x = {0};
    bool came = true;
    tulle_ctx_set_progress(ctx, stop, &x);
    for (int n = 1; came && test_failures < 10; n += 1 + n / 8) {
        x = (steps){.stop_at = n};
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
        came = x.seen >= n;
        CHECK(status == (came ? TULLE_ECANCEL : TULLE_OK) && !C == came, "step %d: %s", n, tulle_ctx_error(ctx));
        CHECK(tl_dmem_held(ctx->gpu) == held, "step %d: something stayed", n);
        if (!came) CHECK(n > 20, "%d steps", n);
    }
    tulle_csr c = tulle_matrix_view(C);
    CHECK(C && ref_same(&c, &w, "afterwards"), "a wrong product");
    CHECK(ref_untouched(&p.A.view, &a) && ref_untouched(&p.B.view, &b), "operands were written");
    tulle_matrix_free(C);
    tulle_matrix_free(want);
    ref_free(&a);
    ref_free(&b);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* Blocks for the caller need neither all of A nor all of B on the device. */
static void blocks_need_no_room_for_a_and_b(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(19, REF_INTEGERS, f64, f64);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    const uint64_t operands = tl_gpu_bytes_of(&p.A.view) + tl_gpu_bytes_of(&p.B.view);
    for (uint64_t part = 1; part <= 3; part++) {
        blocks_seen x = {.want = &w, .good = true};
        tulle_options o = {.memory_limit = operands / part - 1};
        CHECK(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, blocks_compare, &x) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(blocks_all(&x) && x.blocks > 1, "%" PRId64 " rows in %" PRId64 " blocks", x.rows, x.blocks);
    }
    tulle_matrix_free(want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_limit_gives_the_product), TEST(every_type), TEST(every_option_and_place),
          TEST(a_c_that_is_wanted_there_is_refused), TEST(a_request_that_fails_is_made_again_for_less),
          TEST(it_can_be_cancelled_at_every_step), TEST(blocks_need_no_room_for_a_and_b))
