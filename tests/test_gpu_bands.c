/* SPDX-License-Identifier: MIT
 *
 * test_gpu_bands.c - SpMM with an A that does not fit on the device and is processed in bands of rows: every
 * type, order, place and policy, transposed and not, down to bands of one row, against a plain product; the
 * same bits as a whole product if sums are computed in the same order; memory limits, from the smallest
 * sufficient one; single rows that do not fit; plans; cancellation; failing allocations. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/spmm.h"
#include "slices.h"

static const char *const policies[] = {"auto", "ellr"};
enum { POLICIES = 2 };

static void bands_of(int rows)          /* 0: determined by memory */
{
    char text[16];
    snprintf(text, sizeof text, "%d", rows);
    if (rows) setenv("TULLE_SPMM_BAND", text, 1);
    else unsetenv("TULLE_SPMM_BAND");
}

/* ---- the trace */

static struct { int lines, bands, columns, two; } heard;

static void listen(void *user, const char *line)
{
    (void)user;
    const char *at = strstr(line, "A stays on the host: ");
    heard.lines++;
    if (!at) return;
    heard.bands = atoi(at + 21);
    heard.two = strstr(line, "the next band comes") != NULL;
    at = strstr(line, "bytes, ");
    heard.columns = at ? atoi(at + 7) : 0;
}

static void listen_again(void)
{
    memset(&heard, 0, sizeof heard);
}

/* ---- results */

static void every_type_order_and_place(void)
{
    static const int heights[] = {1, 2, 7, 50};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        if (skips_types(i)) continue;
        for (int s = 0; s < SHAPES; s++) {
            const char *name;
            ref A = spmm_shape(s, REF_INTEGERS, t, &name), copy = ref_copy(&A.view, t);
            for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++) {
                ref T = op ? ref_transpose(&A.view, (tulle_op)op) : (ref){0};
                for (int o = 0; o < 4 * POLICIES; o++, turn++) {
                    if (few() && turn % 7 != 0) continue;
                    bands_of(heights[turn / 7 % 4]);
                    setting c = {.op = (tulle_op)op, .x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1 & 1),
                                 .x_gap = o % 4, .y_gap = 3 - o % 4, .cols = 1 + (5 * i + 3 * s + 7 * o + op) % 23, .alpha = one,
                                 .plan = turn % 2, .policy = policies[o / 4],
                                 .places = (turn / 2 + turn / 8) % SPMM_PLACES & (op ? SPMM_PLACES - 1 : ~SPMM_A_THERE)};
                    char text[64];
                    snprintf(text, sizeof text, "%s %s", name, ref_types_name(t));
                    spmm_product(ctx, &A.view, op ? &T : NULL, c, text);
                }
                if (op) ref_free(&T);
            }
            CHECK(ref_untouched(&A.view, &copy), "%s: A was written", name);
            ref_free(&A);
            ref_free(&copy);
        }
    }
    bands_of(0);
    tulle_ctx_free(ctx);
}

static void every_alpha_and_beta(void)
{
    static const ref_value real[] = {{0, 0}, {1, 0}, {-1.5, 0}, {3, 0}};
    static const ref_value both[] = {{0, 0}, {1, 0}, {0, 1}, {0.75, -2}};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        const ref_value *f = v < TULLE_CF32 ? real : both;
        ref A = ref_random(13, 37, 29, 4, REF_REALS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
        ref T = ref_transpose(&A.view, TULLE_ADJOINT);
        for (int a = 0; a < 4; a++)
            for (int c = 0; c < 4; c++)
                for (int p = 0; p < POLICIES; p++, turn++) {
                    if (few() && turn % 3 != 0) continue;
                    bands_of(1 + turn % 9);
                    if (turn % 5 == 0) setenv("TULLE_SPMM_OVERLAP", turn % 2 ? "off" : "3", 1);
                    setting s = {.op = turn & 4 ? TULLE_ADJOINT : TULLE_KEEP, .x_order = (tulle_order)(turn & 1),
                                 .y_order = (tulle_order)(turn >> 1 & 1), .x_gap = 1, .y_gap = turn % 3, .cols = 1 + turn % 11,
                                 .alpha = f[a], .beta = f[c], .kind = REF_REALS, .close = true, .plan = turn % 2,
                                 .policy = policies[p], .places = turn * 2 % SPMM_PLACES};
                    spmm_product(ctx, &A.view, turn & 4 ? &T : NULL, s, "factors");
                    unsetenv("TULLE_SPMM_OVERLAP");
                }
        ref_free(&A);
        ref_free(&T);
    }
    bands_of(0);
    tulle_ctx_free(ctx);
}

/* For short rows, computed by one thread each, bands give the same bits as the whole product. */
static void the_bits_of_a_whole_product(void)
{
    tulle_ctx *ctx = gpu_ctx();
    setenv("TULLE_SPMM_SHAPE", "2,0,1,64,1,1", 1);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        tulle_type t = (tulle_type)v;
        ref A = ref_random(17, 230, 190, 9, REF_REALS, (ref_types){t, v % 2 ? TULLE_I32 : TULLE_I64, TULLE_I32});
        den X = den_new(190, 24, 0, TULLE_BY_ROWS, t), Y = den_new(230, 24, 0, TULLE_BY_ROWS, t);
        den whole = den_new(230, 24, 0, TULLE_BY_ROWS, t);
        den_fill(&X, REF_REALS, 5);
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &whole.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int rows = 1; rows < 300; rows = rows * 3 + 1) {
            bands_of(rows);
            CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(den_same(&Y.view, &whole.view, "bands"), "bands of %d rows", rows);
        }
        bands_of(0);
        den_free(&X), den_free(&Y), den_free(&whole);
        ref_free(&A);
    }
    unsetenv("TULLE_SPMM_SHAPE");
    tulle_ctx_free(ctx);
}

/* Long rows divided into parts, rows with the same columns, and rows without entries, each in a band of its
 * own. */
static void bands_of_every_kind(void)
{
    enum { ROWS = 90, COLS = 900, EACH = 30 };
    tulle_ctx *ctx = gpu_ctx();
    for (int wide = 0; wide < 2; wide++) {
        ref A = ref_new(ROWS, COLS, EACH * 12 + EACH / 10 * 700, wide ? f64_i64 : f64);
        int64_t k = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            int64_t n = i < EACH ? 0 : i < 2 * EACH ? 12 : i % 10 ? 0 : 700;
            for (int64_t c = 0; c < n; c++) ref_set_col(&A, k++, n == 12 ? i / 3 + 5 * c : c + i);
            ref_set_ptr(&A, i + 1, k);
        }
        ref_fill(&A, REF_INTEGERS, 8);
        for (int turn = 0; turn < 12; turn++) {
            bands_of(turn % 3 == 0 ? EACH : turn % 3 == 1 ? 10 : 64);
            setting s = {.cols = 1 + 9 * (turn % 4), .alpha = one, .beta = turn % 2 ? half : zero, .policy = policies[turn / 6],
                         .places = turn % 4 * 2, .x_order = (tulle_order)(turn & 1)};
            spmm_product(ctx, &A.view, NULL, s, "every kind");
        }
        ref_free(&A);
    }
    bands_of(0);
    tulle_ctx_free(ctx);
}

/* ---- memory */

static char sentence[TL_ERROR_MAX];     /* of within() */

/* One product with a limit: correct and within the limit, or a message with the bytes needed. */
static tulle_status within(tulle_ctx *ctx, const tulle_csr *A, setting s, uint64_t *needs)
{
    den X = den_new(A->cols, s.cols, s.x_gap, s.x_order, A->val_type), Y = den_new(A->rows, s.cols, 0, s.y_order, A->val_type);
    den want = den_new(A->rows, s.cols, 0, TULLE_BY_ROWS, A->val_type);
    char beta[16];
    ref_value_put(beta, A->val_type, 0, s.beta);
    den_fill(&X, REF_INTEGERS, 3);
    den_fill(&Y, REF_INTEGERS, 4);
    spmm_plain(A, &X.view, one, s.beta, &Y.view, &want.view);
    den_there x = {.view = X.view}, y = {.view = Y.view};
    if (s.places & SPMM_X_THERE) x = den_move(ctx, &X);
    if (s.places & SPMM_Y_THERE) y = den_move(ctx, &Y);
    uint64_t held = tl_dmem_held(ctx->gpu);
    tl_dmem_peak(ctx->gpu, true);
    listen_again();
    tulle_spmm_options o = {.memory_limit = s.limit, .policy = s.policy};
    tulle_status status = tulle_spmm(ctx, NULL, A, &x.view, beta, &y.view, &o);
    uint64_t took = tl_dmem_peak(ctx->gpu, false) - held;
    snprintf(sentence, sizeof sentence, "%s", tulle_ctx_error(ctx));
    CHECK(took <= s.limit, "%d bytes were taken, %d allowed", (int)took, (int)s.limit);
    CHECK(tl_dmem_held(ctx->gpu) == held, "%s", "something stayed");
    if (y.M) den_fetch(ctx, &Y, &y);
    const char *words = strstr(sentence, "needs ");
    *needs = status == TULLE_OK || !words ? 0 : strtoull(words + 6, NULL, 10);
    if (status == TULLE_OK) {
        tulle_stats stats;
        tulle_ctx_stats(ctx, &stats);
        CHECK(stats.workspace_bytes > 0 && stats.workspace_bytes <= s.limit, "%d of %d bytes", (int)stats.workspace_bytes,
              (int)s.limit);
        CHECK(den_same(&Y.view, &want.view, "limited"), "limit %d, %d bands", (int)s.limit, heard.bands);
    } else {
        CHECK(status == TULLE_ELIMIT && *needs > s.limit, "%s: %s", tulle_status_name(status), sentence);
        CHECK(den_untouched(&Y), "%s", "Y was written");
    }
    den_leave(&x), den_leave(&y);
    den_free(&X), den_free(&Y), den_free(&want);
    return status;
}

/* Limits from the smallest sufficient one to one where A fits: all are kept, with fewer and fewer bands. */
static void limits_are_kept(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_ctx_set_trace(ctx, listen, NULL);
    for (int kind = 0; kind < 2; kind++) {
        ref A = kind ? ref_power(4, 200, 150, 100, REF_INTEGERS, f64) : ref_random(4, 400, 150, 5, REF_INTEGERS, f64_i64);
        for (int turn = 0; turn < 8 * POLICIES; turn++) {
            if (few() && turn % 3 != kind) continue;
            setting s = {.x_order = (tulle_order)(turn & 1), .y_order = (tulle_order)(turn >> 1 & 1), .cols = 13,
                         .beta = turn & 4 ? half : zero, .policy = policies[turn >> 3], .places = (turn * 5 + kind) % 4 * 2,
                         .x_gap = turn % 3, .limit = 1};
            uint64_t needs = 0;
            CHECK(within(ctx, &A.view, s, &needs) == TULLE_ELIMIT && strstr(sentence, "a band of one row needs "),
                  "%s", sentence);
            s.limit = needs - 1;
            CHECK(within(ctx, &A.view, s, &needs) == TULLE_ELIMIT && needs == s.limit + 1, "%s", sentence);
            s.limit = needs;
            int bands = 1 << 20, steps = 0;
            for (;; steps++) {
                CHECK(within(ctx, &A.view, s, &needs) == TULLE_OK, "%s", sentence);
                /* two at a time are smaller */
                CHECK(heard.bands <= 3 * bands, "%d bands after %d", heard.bands, bands);
                if (heard.bands == 0 || steps > 40) break;      /* A fits as a whole */
                bands = heard.bands;
                s.limit += s.limit / 2;
            }
            CHECK(steps > 1 && steps < 40 && bands < 30, "%d steps, %d bands at last", steps, bands);
        }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* The next band is copied while one is multiplied; both, and chunks of Y, keep the limit. */
static void two_bands_at_once(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_ctx_set_trace(ctx, listen, NULL);
    for (int kind = 0; kind < 2; kind++) {
        ref A = kind ? ref_power(4, 3000, 300, 90, REF_INTEGERS, f64_i64) : ref_random(4, 6000, 300, 5, REF_INTEGERS, f64);
        for (int turn = 0; turn < 8 * POLICIES; turn++) {
            if (few() && turn % 3 != kind) continue;
            setting s = {.x_order = (tulle_order)(turn & 1), .y_order = (tulle_order)(turn >> 1 & 1), .cols = 21,
                         .beta = turn & 4 ? half : zero, .policy = policies[turn >> 3], .places = (turn * 5 + kind) % 4 * 2,
                         .limit = 150000 + 30000 * (uint64_t)(turn % 4)};
            if (s.x_order == TULLE_BY_COLS) s.limit += 60000;     /* columns from the host are stored twice */
            uint64_t needs = 0;
            if (turn & 4) setenv("TULLE_SPMM_CHUNK", "4", 1);
            CHECK(within(ctx, &A.view, s, &needs) == TULLE_OK, "%s", sentence);
            CHECK(heard.two && heard.bands > 2, "%d bands, two at once: %d", heard.bands, heard.two);
            unsetenv("TULLE_SPMM_CHUNK");
        }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* The message has the row, its entries, the bytes needed and the limit. */
static void a_row_that_alone_is_too_much(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = full_row_and_singles(40, 5000, 17, REF_INTEGERS, f64);
    setting s = {.cols = 3, .limit = 60000, .places = SPMM_X_THERE};
    uint64_t needs = 0;
    CHECK(within(ctx, &A.view, s, &needs) == TULLE_ELIMIT && strstr(sentence, "row 17 of A has 5000 entries")
              && strstr(sentence, "60000 is the limit"), "%s", sentence);
    s.limit = needs;
    CHECK(within(ctx, &A.view, s, &needs) == TULLE_OK, "%s", sentence);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* X does not fit together with a band: some of its columns at a time, with all of A copied for each part. */
static void x_in_parts_and_a_in_bands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_ctx_set_trace(ctx, listen, NULL);
    ref A = ref_random(6, 500, 2000, 30, REF_INTEGERS, f64);
    for (int turn = 0; turn < 8; turn++) {
        setting s = {.x_order = (tulle_order)(turn & 1), .y_order = (tulle_order)(turn >> 1 & 1), .cols = 33, .limit = 160000,
                     .beta = turn & 2 ? half : zero, .places = turn & 4 ? SPMM_Y_THERE : 0};
        if (turn & 1) s.places |= SPMM_X_THERE;
        uint64_t needs = 0;
        CHECK(within(ctx, &A.view, s, &needs) == TULLE_OK, "%s", sentence);
        CHECK(heard.bands > 1 && heard.columns >= 1 && heard.columns < 33, "%d bands, %d columns", heard.bands, heard.columns);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* The n-th allocation of device memory fails: smaller bands, or a message and an unchanged Y; and nothing
 * leaks. */
static void requests_that_fail(void)
{
    ref A = ref_power(4, 120, 90, 80, REF_INTEGERS, f64);
    int smaller = 0;
    for (int way = 0; way < 6; way++)
        for (int n = 1; n < 100; n++) {
            tulle_ctx *ctx = gpu_ctx();
            tulle_ctx_set_trace(ctx, listen, NULL);
            bands_of(way % 3 == 0 ? 0 : 40);
            den X = den_new(90, 9, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(120, 9, 0, TULLE_BY_COLS, TULLE_F64);
            den want = den_new(120, 9, 0, TULLE_BY_ROWS, TULLE_F64);
            double beta = 2;
            den_fill(&X, REF_INTEGERS, 3);
            den_fill(&Y, REF_INTEGERS, 4);
            spmm_plain(&A.view, &X.view, one, (ref_value){2, 0}, &Y.view, &want.view);
            den_there x = den_move(ctx, &X);
            ctx->gpu->requests = 0;
            ctx->gpu->fail_at = (uint64_t)n;
            listen_again();
            uint64_t held = tl_dmem_held(ctx->gpu);
            tulle_spmm_options o = {.policy = policies[way / 3], .memory_limit = way % 3 == 2 ? 40000 : 0};
            tulle_status status = tulle_spmm(ctx, NULL, &A.view, way % 2 ? &x.view : &X.view, &beta, &Y.view, &o);
            bool reached = ctx->gpu->requests >= (uint64_t)n;
            ctx->gpu->fail_at = 0;
            CHECK(tl_dmem_held(ctx->gpu) == held, "%d bytes stayed", (int)(tl_dmem_held(ctx->gpu) - held));
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && strstr(tulle_ctx_error(ctx), "made to fail") && den_untouched(&Y)),
                  "request %d: %s: %s", n, tulle_status_name(status), tulle_ctx_error(ctx));
            if (status == TULLE_OK) CHECK(den_same(&Y.view, &want.view, "a request failed"), "request %d", n);
            smaller += reached && status == TULLE_OK && way % 3 == 0 && heard.bands > 0;
            den_leave(&x);
            den_free(&X), den_free(&Y), den_free(&want);
            tulle_ctx_free(ctx);
            if (!reached) break;
        }
    CHECK(smaller > 0, "%s", "no product went to bands because memory could not be had");
    bands_of(0);
    ref_free(&A);
}

/* The n-th allocation of the host fails. */
static void memory_failures_leave_y_as_it_was(void)
{
    ref A = ref_power(4, 60, 50, 40, REF_INTEGERS, f64);
    bands_of(13);
    spmm_memory_failures(gpu_name(), &A.view);
    bands_of(0);
    ref_free(&A);
}

/* ---- plans */

/* With bands a plan reads A in each run, from its own copy of the values, which does not change; also for
 * one band. */
static void a_plan_has_values_of_its_own(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++)
        for (int p = 0; p < POLICIES; p++)
            for (int height = 1; height < 100; height += 32) {
                ref A = ref_random(4, 70, 60, 5, REF_INTEGERS, f64);
                bands_of(height);
                spmm_values(ctx, &A, (tulle_spmm_options){.op_a = op, .policy = policies[p]}, spmm_write_here, "bands");
                ref_free(&A);
            }
    bands_of(0);
    tulle_ctx_free(ctx);
}

/* ---- errors and cancellation */

static void bad_arguments_change_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    bands_of(3);
    spmm_refusals(ctx);
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    tulle_spmm_plan *plan = NULL;
    tulle_spmm_options o = {.policy = "ellr", .lab = &(tulle_spmm_lab){.ellr_threads = 3}};
    CHECK(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_EINVAL && !plan, "%s", "3 threads a row");
    ref_set_col(&A, A.view.nnz - 1, 20);
    CHECK(tulle_spmm_plan_create(ctx, &A.view, NULL, &plan) == TULLE_EPATTERN && !plan, "%s", "a column too far");
    ref_free(&A);
    bands_of(0);
    tulle_ctx_free(ctx);
}

typedef struct stop { int calls, at; double last; } stop;

static int stop_at(void *user, const char *stage, double fraction)
{
    stop *s = user;
    if (strcmp(stage, "numeric") != 0) return 0;
    CHECK(fraction >= s->last && fraction < 1, "%g after %g", fraction, s->last);
    s->last = fraction;
    return ++s->calls == s->at;
}

/* The progress fraction increases over bands and columns; each call can cancel. */
static void cancelled_between_bands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_ctx_set_trace(ctx, listen, NULL);
    ref A = ref_random(13, 500, 400, 30, REF_INTEGERS, f64);
    den X = den_new(400, 20, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(500, 20, 0, TULLE_BY_ROWS, TULLE_F64);
    tulle_spmm_options o = {.memory_limit = 80000};
    den_fill(&X, REF_INTEGERS, 3);
    stop s = {0};
    tulle_ctx_set_progress(ctx, stop_at, &s);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    int calls = s.calls;
    CHECK(calls > heard.bands && heard.bands > 1 && s.last > 0.5, "%d calls, %d bands, %g at last", calls, heard.bands, s.last);
    uint64_t held = tl_dmem_held(ctx->gpu);
    for (int at = 1; at <= calls; at += 1 + calls / 10) {
        s = (stop){.at = at};
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o) == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
        CHECK(tl_dmem_held(ctx->gpu) == held, "%s", "something stayed");
    }
    tulle_ctx_set_progress(ctx, NULL, NULL);
    spmm_product(ctx, &A.view, NULL, (setting){.cols = 20, .alpha = one, .limit = o.memory_limit}, "after it was cancelled");
    den_free(&X), den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- transfers */

/* An array larger than all slots together, with its indices shifted during the transfer. */
static void long_arrays_are_sent(void)
{
    enum { COUNT = 9000001 };
    tulle_ctx *ctx = gpu_ctx();
    tl_base *b = &ctx->base;
    for (int wide = 0; wide < 2; wide++)
        for (int turn = 0; turn < 4; turn++) {
            int64_t count = turn == 0 ? 3 : turn == 1 ? 700000 : COUNT, first = turn == 3 ? 0 : 1000 + turn;
            size_t size = wide ? 8 : 4;
            char *from = malloc((size_t)count * size), *back = malloc((size_t)count * size);
            tl_dmem there;
            if (!from || !back) abort();
            for (int64_t i = 0; i < count; i++) ref_index_put(from, wide ? TULLE_I64 : TULLE_I32, i, first + 3 * i % 100003);
            REQUIRE(tl_dmem_alloc(b, ctx->gpu, (uint64_t)count * size, "an array", &there) == TULLE_OK, "%s", b->error);
            CHECK(tl_gpu_send(b, ctx->gpu, there, from, count, size, first) == TULLE_OK, "%s", b->error);
            CHECK(ctx->gpu->driver->download(b, ctx->gpu->device, back, there, (uint64_t)count * size) == TULLE_OK
                      && ctx->gpu->driver->wait(b, ctx->gpu->device) == TULLE_OK, "%s", b->error);
            int64_t wrong = 0;
            for (int64_t i = 0; i < count; i++) {
                int64_t got = wide ? ((int64_t *)back)[i] : ((int32_t *)back)[i];
                wrong += got != 3 * i % 100003;
            }
            CHECK(wrong == 0, "%d of %d numbers are wrong", (int)wrong, (int)count);
            tl_dmem_free(ctx->gpu, there);
            free(from);
            free(back);
        }
    tulle_ctx_free(ctx);
}

/* The arrays of a slice are read again in each run. */
static void slices_in_bands(void)
{
    bands_of(3);
    tulle_ctx *ctx = gpu_ctx();
    sliced s = sliced_new(f64);
    slices_spmm(ctx, &s);
    sliced_free(&s);
    bands_of(0);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_type_order_and_place), TEST(every_alpha_and_beta), TEST(the_bits_of_a_whole_product),
          TEST(bands_of_every_kind), TEST(limits_are_kept), TEST(two_bands_at_once), TEST(a_row_that_alone_is_too_much),
          TEST(x_in_parts_and_a_in_bands), TEST(requests_that_fail), TEST(memory_failures_leave_y_as_it_was),
          TEST(a_plan_has_values_of_its_own), TEST(bad_arguments_change_nothing), TEST(cancelled_between_bands),
          TEST(long_arrays_are_sent), TEST(slices_in_bands))
