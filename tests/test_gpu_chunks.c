/* SPDX-License-Identifier: MIT
 *
 * test_gpu_chunks.c - SpMM with X and Y on the host or on the device, row-major or column-major, with gaps:
 * all compared with the CPU engine, bit for bit; memory limits down to one column; chunks of any width over
 * any number of lanes; parts larger than a slot; memory that must not be read or written; no unnecessary
 * waits; cancellation; failing allocations. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/spmm.h"
#include <math.h>

static const ref_value none = {0, 0}, one = {1, 0}, other = {-3, 0}, turned_factor = {2, -1};

/* ---- dense matrices with gaps that must not be accessed */

typedef struct den {
    tulle_dense view;
    size_t      bytes;
} den;

static int64_t place(const tulle_dense *M, int64_t i, int64_t j)
{
    return M->order == TULLE_BY_ROWS ? i * M->ld + j : i + j * M->ld;
}

/* Every value is NaN. */
static den den_new(int64_t rows, int64_t cols, tulle_order order, int64_t gap, tulle_type type)
{
    int64_t lines = order == TULLE_BY_ROWS ? rows : cols, length = order == TULLE_BY_ROWS ? cols : rows;
    den d = {.bytes = (size_t)(lines * (length + gap) + 1) * ref_value_size(type)};
    void *memory = malloc(d.bytes);
    if (!memory) abort();
    memset(memory, 0xff, d.bytes);
    d.view = tulle_dense_make(rows, cols, length + gap, order, memory, type);
    return d;
}

static void den_fill(den *d, uint64_t seed)
{
    ref_rng r = {seed * 77 + 5};
    bool is_complex = d->view.val_type >= TULLE_CF32;
    for (int64_t i = 0; i < d->view.rows; i++)
        for (int64_t j = 0; j < d->view.cols; j++) {
            ref_value v = {(double)(ref_below(&r, 17) - 8), is_complex ? (double)(ref_below(&r, 17) - 8) : 0};
            ref_value_put(d->view.values, d->view.val_type, place(&d->view, i, j), v);
        }
}

static den den_copy(const den *d)
{
    den copy = *d;
    copy.view.values = malloc(d->bytes);
    if (!copy.view.values) abort();
    memcpy(copy.view.values, d->view.values, d->bytes);
    return copy;
}

static void den_free(den *d)
{
    free(d->view.values);
}

static bool same_number(double x, double y)
{
    return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0;
}

/* Equal byte for byte, except that any NaN equals any other. */
static bool den_same(const den *got, const den *want, const char *what)
{
    if (memcmp(got->view.values, want->view.values, got->bytes) == 0) return true;
    int64_t values = (int64_t)(got->bytes / ref_value_size(got->view.val_type)), ld = got->view.ld;
    for (int64_t k = 0; k < values; k++) {
        ref_value g = ref_value_at(got->view.values, got->view.val_type, k);
        ref_value w = ref_value_at(want->view.values, want->view.val_type, k);
        if (same_number(g.re, w.re) && same_number(g.im, w.im)) continue;
        printf("    %s: value %d of line %d is %g%+gi, should be %g%+gi\n", what, (int)(k % ld), (int)(k / ld), g.re, g.im,
               w.re, w.im);
        return false;
    }
    return true;
}

/* Copies the matrix to the device. */
static tulle_dense to_device(tulle_ctx *ctx, const den *d, tl_dmem *mem)
{
    tulle_dense view = d->view;
    if (tl_dmem_alloc(&ctx->base, ctx->gpu, d->bytes, "a matrix of the test", mem) != TULLE_OK
        || ctx->gpu->driver->upload(&ctx->base, ctx->gpu->device, *mem, d->view.values, d->bytes) != TULLE_OK)
        abort();
    view.values = (void *)(uintptr_t)mem->handle;
    view.place = TULLE_DEVICE;
    return view;
}

static void from_device(tulle_ctx *ctx, den *d, tl_dmem mem)
{
    if (ctx->gpu->driver->download(&ctx->base, ctx->gpu->device, d->view.values, mem, d->bytes) != TULLE_OK
        || ctx->gpu->driver->wait(&ctx->base, ctx->gpu->device) != TULLE_OK)
        abort();
    tl_dmem_free(ctx->gpu, mem);
}

/* ---- one product */

typedef struct setting {
    tulle_order x_order, y_order;
    tulle_place x_place, y_place;
    int64_t     x_gap, y_gap, cols;
    ref_value   alpha, beta;
    uint64_t    limit;
    const tulle_csr *there;             /* A on the device; NULL: on the host                       */
} setting;

static tulle_status multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_dense *X, tulle_dense *Y, const setting *s)
{
    char alpha[16], beta[16];
    ref_value_put(alpha, A->val_type, 0, s->alpha);
    ref_value_put(beta, A->val_type, 0, s->beta);
    return tulle_spmm(ctx, alpha, A, X, beta, Y, &(tulle_spmm_options){.memory_limit = s->limit});
}

static void name_setting(const setting *s, tulle_type t, char *text, size_t bytes)
{
    snprintf(text, bytes, "type %d, %d columns, X %s by %s +%d, Y %s by %s +%d, beta %g%+gi, limit %d", (int)t, (int)s->cols,
             s->x_place ? "there" : "here", s->x_order ? "columns" : "rows", (int)s->x_gap, s->y_place ? "there" : "here",
             s->y_order ? "columns" : "rows", (int)s->y_gap, s->beta.re, s->beta.im, (int)s->limit);
}

/* Runs a product: it is correct, or it fails with Y unchanged (partly changed if a progress function
 * cancelled it). */
static tulle_status product_on(tulle_ctx *ctx, tulle_ctx *cpu, const tulle_csr *A, setting s)
{
    tulle_type t = A->val_type;
    char what[256];
    den X = den_new(A->cols, s.cols, s.x_order, s.x_gap, t), Y = den_new(A->rows, s.cols, s.y_order, s.y_gap, t);
    name_setting(&s, t, what, sizeof what);
    den_fill(&X, 1);
    if (s.beta.re != 0 || s.beta.im != 0) den_fill(&Y, 2);
    den want = den_copy(&Y), before = den_copy(&Y), x_before = den_copy(&X);
    CHECK(multiply(cpu, A, &X.view, &want.view, &(setting){.alpha = s.alpha, .beta = s.beta}) == TULLE_OK, "on the CPU: %s",
          tulle_ctx_error(cpu));
    tl_dmem x_mem = {0, 0}, y_mem = {0, 0};
    tulle_dense x = X.view, y = Y.view;
    if (s.x_place == TULLE_DEVICE) x = to_device(ctx, &X, &x_mem);
    if (s.y_place == TULLE_DEVICE) y = to_device(ctx, &Y, &y_mem);
    uint64_t held = tl_dmem_held(ctx->gpu);
    tl_dmem_peak(ctx->gpu, true);
    tulle_status status = multiply(ctx, s.there ? s.there : A, &x, &y, &s);
    uint64_t took = tl_dmem_peak(ctx->gpu, false) - held;
    if (s.limit && s.there) CHECK(took <= s.limit, "%d bytes were taken: %s", (int)took, what);
    if (s.x_place == TULLE_DEVICE) from_device(ctx, &X, x_mem);
    if (s.y_place == TULLE_DEVICE) from_device(ctx, &Y, y_mem);
    if (status == TULLE_OK) CHECK(den_same(&Y, &want, what), "%s", what);
    else if (status != TULLE_ECANCEL) CHECK(den_same(&Y, &before, what), "Y was changed: %s", what);
    CHECK(memcmp(X.view.values, x_before.view.values, X.bytes) == 0, "X was changed: %s", what);
    den_free(&X);
    den_free(&Y);
    den_free(&want);
    den_free(&before);
    den_free(&x_before);
    return status;
}

static void right(tulle_ctx *ctx, tulle_ctx *cpu, const tulle_csr *A, setting s)
{
    char what[256];
    name_setting(&s, A->val_type, what, sizeof what);
    tulle_status status = product_on(ctx, cpu, A, s);
    CHECK(status == TULLE_OK, "%s: %s: %s", what, tulle_status_name(status), tulle_ctx_error(ctx));
}

static tulle_ctx *cpu_ctx(void)
{
    tulle_ctx *cpu = NULL;
    if (tulle_ctx_create("cpu", NULL, &cpu) != TULLE_OK) abort();
    return cpu;
}

/* The i-th of 16 combinations of places and orders of X and Y. */
static setting lying(int i, int64_t cols, ref_value beta)
{
    return (setting){.x_order = (tulle_order)(i & 1), .y_order = (tulle_order)(i >> 1 & 1), .x_place = (tulle_place)(i >> 2 & 1),
                     .y_place = (tulle_place)(i >> 3 & 1), .x_gap = i % 3 * 2, .y_gap = (i + 1) % 3, .cols = cols, .alpha = one,
                     .beta = beta};
}

enum { LYINGS = 16 };

/* ---- tests */

static void every_place_order_and_type(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    static const int64_t columns[] = {1, 2, 7, 40};
    const ref_value betas[] = {none, one, other, turned_factor};
    for (int t = 0; t < REF_TYPES; t += 5) {            /* every value type, both indices */
        ref A = ref_random(3, 70, 55, 4, REF_INTEGERS, ref_types_at(t));
        for (int i = 0; i < LYINGS; i++)
            for (int c = 0; c < 4; c++) {
                ref_value beta = betas[(i + c) % 4];
                if (A.view.val_type < TULLE_CF32) beta.im = 0;
                right(ctx, cpu, &A.view, lying(i, columns[c], beta));
            }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

static void shapes_with_nothing_in_them(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    static const struct { int64_t rows, cols, columns; } shapes[] = {{0, 5, 3}, {5, 0, 3}, {5, 5, 0}, {1, 1, 1}, {1, 300, 70},
                                                                     {300, 1, 70}, {2, 2, 3000}};
    for (int k = 0; k < (int)(sizeof shapes / sizeof *shapes); k++) {
        ref A = ref_random(5, shapes[k].rows, shapes[k].cols, shapes[k].rows && shapes[k].cols ? 1 : 0, REF_INTEGERS, f64);
        for (int i = 0; i < LYINGS; i++) right(ctx, cpu, &A.view, lying(i, shapes[k].columns, i % 2 ? other : none));
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Any division of the columns into chunks, and any number of lanes, gives the same bits. */
static void any_width_over_any_lanes(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    static const char *const widths[] = {"1", "2", "3", "16", "1000"}, *const lanes[] = {"off", "1", "2", "3"};
    ref A = ref_random(7, 90, 130, 5, REF_INTEGERS, f64);
    for (int w = 0; w < 5; w++)
        for (int k = 0; k < 4; k++) {
            setenv("TULLE_SPMM_CHUNK", widths[w], 1);
            setenv("TULLE_SPMM_OVERLAP", lanes[k], 1);
            for (int i = (w + k) % 2; i < LYINGS; i += 2) right(ctx, cpu, &A.view, lying(i, 37, i % 4 < 2 ? none : other));
        }
    unsetenv("TULLE_SPMM_CHUNK");
    unsetenv("TULLE_SPMM_OVERLAP");
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Rows divided into parts have partial sums in each lane. */
static void long_rows_in_chunks(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_arrow(700, REF_INTEGERS, f64);
    setenv("TULLE_SPMM_OVERLAP", "2", 1);
    for (int i = 0; i < LYINGS; i++) {
        setenv("TULLE_SPMM_CHUNK", i % 2 ? "3" : "8", 1);
        setting s = lying(i, 29, i % 3 ? none : other);
        right(ctx, cpu, &A.view, s);
        s.limit = 64 << 10;
        right(ctx, cpu, &A.view, s);
    }
    unsetenv("TULLE_SPMM_CHUNK");
    unsetenv("TULLE_SPMM_OVERLAP");
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Long columns: several lanes are used, and a column is larger than a slot. */
static void more_than_a_slot(void)
{
#if defined(TULLE_SMALL_TESTS)
    enum { ROWS = 150000 };
#else
    enum { ROWS = 300000 };
#endif
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_band(ROWS, 0, REF_INTEGERS, f64);
    for (int i = 0; i < LYINGS; i += 3) right(ctx, cpu, &A.view, lying(i, i % 2 ? 9 : 20, i == 3 ? other : none));
    ref_free(&A);
#if !defined(TULLE_SMALL_TESTS)
    ref B = ref_band(1100000, 0, REF_INTEGERS, f64);                 /* a column is larger than a slot, too */
    for (int i = 0; i < LYINGS; i++) {
        setting s = lying(i, 3, i % 2 ? other : none);
        bool by_cols = s.x_order == TULLE_BY_COLS && s.y_order == TULLE_BY_COLS && s.x_place == TULLE_HOST && s.y_place == TULLE_HOST;
        if (by_cols) right(ctx, cpu, &B.view, s);
    }
    ref_free(&B);
#endif
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Limits down to one column; less is refused before anything is computed. */
static void limits_down_to_one_column(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_random(9, 100, 80, 4, REF_INTEGERS, f64);
    tulle_matrix *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
    tulle_csr view = tulle_matrix_view(there);
    for (int i = 0; i < LYINGS; i++) {
        setting s = lying(i, 21, i % 2 ? other : none);
        s.there = &view;
        bool x_as_it_lies = s.x_place == TULLE_DEVICE && s.x_order == TULLE_BY_ROWS;
        bool y_as_it_lies = s.y_place == TULLE_DEVICE && s.y_order == TULLE_BY_ROWS;
        uint64_t column = (x_as_it_lies ? 0 : 2 * TL_ALIGN) + (y_as_it_lies ? 0 : 2 * TL_ALIGN);       /* 640 and 800 bytes */
        for (uint64_t columns = 1; columns <= 64; columns = columns * 2 + 1) {
            s.limit = column * columns + TL_ALIGN;    /* the analysis of row lengths takes some before */
            right(ctx, cpu, &A.view, s);
        }
        if (!column) continue;
        s.limit = column - 1;
        CHECK(product_on(ctx, cpu, &A.view, s) == TULLE_ELIMIT, "%d bytes were enough", (int)s.limit);
        char number[32];
        snprintf(number, sizeof number, "%d", (int)column);
        CHECK(strstr(tulle_ctx_error(ctx), number), "%s: %s", number, tulle_ctx_error(ctx));
        snprintf(number, sizeof number, "%d", (int)s.limit);
        CHECK(strstr(tulle_ctx_error(ctx), number), "%s: %s", number, tulle_ctx_error(ctx));
    }
    tulle_matrix_free(there);
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Row-major matrices on the device are not copied, and on the caller's queue there are no waits. */
static void waits_only_where_it_must(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_random(11, 60, 60, 3, REF_INTEGERS, f64);
    tulle_matrix *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
    tulle_csr view = tulle_matrix_view(there);
    den X = den_new(60, 8, TULLE_BY_ROWS, 0, TULLE_F64), Y = den_new(60, 8, TULLE_BY_ROWS, 0, TULLE_F64), want;
    tl_dmem x_mem, y_mem;
    tulle_spmm_plan *plan = NULL;
    den_fill(&X, 3);
    want = den_copy(&Y);
    CHECK(tulle_spmm(cpu, NULL, &A.view, &X.view, NULL, &want.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(cpu));
    tulle_dense x = to_device(ctx, &X, &x_mem), y = to_device(ctx, &Y, &y_mem);
    CHECK(tulle_spmm_plan_create(ctx, &view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int foreign = 0; foreign < 2 && plan; foreign++) {
        void *queue = foreign ? tl_gpu_native(ctx->gpu, TL_NATIVE_QUEUE) : NULL;
        CHECK(tl_gpu_queue(&ctx->base, ctx->gpu, queue) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int turned = 0; turned < 2; turned++) {
            uint64_t held = tl_dmem_held(ctx->gpu);
            tl_dmem_peak(ctx->gpu, true);
            y.order = turned ? TULLE_BY_COLS : TULLE_BY_ROWS;
            y.ld = turned ? 60 : 8;
            uint64_t waits = ctx->gpu->driver->waits(ctx->gpu->device);
            CHECK(tulle_spmm_plan_run(plan, NULL, &x, NULL, &y) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            waits = ctx->gpu->driver->waits(ctx->gpu->device) - waits;
            CHECK(waits == (foreign ? 0 : 1), "%d waits", (int)waits);
            held = tl_dmem_peak(ctx->gpu, false) - held;
            CHECK(turned ? held >= 60 * 8 * 8 : held == 0, "%d bytes of workspace", (int)held);
        }
    }
    y.order = TULLE_BY_ROWS;
    y.ld = 8;
    CHECK(tulle_spmm_plan_run(plan, NULL, &x, NULL, &y) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    from_device(ctx, &Y, y_mem);
    CHECK(den_same(&Y, &want, "a plan"), "wrong");
    CHECK(tl_gpu_queue(&ctx->base, ctx->gpu, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tl_dmem_free(ctx->gpu, x_mem);
    tulle_spmm_plan_free(plan);
    tulle_matrix_free(there);
    den_free(&X);
    den_free(&Y);
    den_free(&want);
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

static int stop_at(void *user, const char *stage, double fraction)
{
    double *at = user;
    return strcmp(stage, "numeric") == 0 && fraction >= *at;
}

static void cancelled_between_chunks(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_random(13, 80, 80, 4, REF_INTEGERS, f64);
    double at;
    setenv("TULLE_SPMM_CHUNK", "2", 1);
    setenv("TULLE_SPMM_OVERLAP", "2", 1);
    tulle_ctx_set_progress(ctx, stop_at, &at);
    for (int i = 0; i < LYINGS; i++)
        for (at = 0; at < 1; at += 0.3) {
            tulle_status status = product_on(ctx, cpu, &A.view, lying(i, 20, none));
            CHECK(status == TULLE_ECANCEL && strstr(tulle_ctx_error(ctx), "cancelled"), "%s: %s", tulle_status_name(status),
                  tulle_ctx_error(ctx));
        }
    tulle_ctx_set_progress(ctx, NULL, NULL);
    for (int i = 0; i < LYINGS; i++) right(ctx, cpu, &A.view, lying(i, 20, none));
    unsetenv("TULLE_SPMM_CHUNK");
    unsetenv("TULLE_SPMM_OVERLAP");
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* The n-th allocation of device memory fails: fewer columns, or a message and an unchanged Y; and nothing
 * leaks. */
static void requests_that_fail(void)
{
    tulle_ctx *cpu = cpu_ctx();
    ref A = ref_arrow(200, REF_INTEGERS, f64);            /* with rows divided into parts */
    int refused = 0;
    for (int i = 0; i < LYINGS; i += 5) {
        tulle_ctx *ctx = gpu_ctx();
        bool reached = true;
        for (int n = 1; reached && n < 40; n++) {
            gpu_fail_at(ctx, 0);
            setting s = lying(i, 20, n % 2 ? none : other);
            /* on the host it would be divided into bands */
            tulle_matrix *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
            tulle_csr view = tulle_matrix_view(there);
            s.there = n % 4 < 2 ? &view : NULL;
            ctx->gpu->fail_at = (uint64_t)n;
            uint64_t own = (s.x_place == TULLE_DEVICE) + (s.y_place == TULLE_DEVICE);
            ctx->gpu->requests = 0 - own;       /* allocations of the test itself do not fail */
            uint64_t held = tl_dmem_held(ctx->gpu);
            tulle_status status = product_on(ctx, cpu, &A.view, s);
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && strstr(tulle_ctx_error(ctx), "made to fail")), "%s: %s",
                  tulle_status_name(status), tulle_ctx_error(ctx));
            CHECK(tl_dmem_held(ctx->gpu) == held, "%d bytes stayed", (int)(tl_dmem_held(ctx->gpu) - held));
            refused += status != TULLE_OK;
            reached = ctx->gpu->requests >= (uint64_t)n;
            right(ctx, cpu, &A.view, lying(i, 20, none));
            tulle_matrix_free(there);
        }
        tulle_ctx_free(ctx);
    }
    CHECK(refused > 0, "every failure was made up for");
    ref_free(&A);
    tulle_ctx_free(cpu);
}

/* Kept memory is freed, and allocated again. */
static void trimmed_between_products(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    ref A = ref_random(17, 80, 80, 4, REF_INTEGERS, f64);
    for (int k = 0; k < 3; k++) {
        right(ctx, cpu, &A.view, lying(k, 20 << k, none));
        CHECK(ctx->gpu->staging && ctx->gpu->staging_bytes > 0, "nothing was kept");
        tulle_ctx_trim(ctx);
        CHECK(!ctx->gpu->staging && ctx->gpu->staging_bytes == 0, "%d bytes are kept", (int)ctx->gpu->staging_bytes);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* alpha 0: Y = beta*Y; with beta 0, zeros without reading Y. */
static void scaled_in_every_order(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = cpu_ctx();
    const ref_value betas[] = {none, one, other, turned_factor};
    for (int t = 0; t < REF_TYPES; t += 5) {
        ref A = ref_random(3, 170, 5, 1, REF_INTEGERS, ref_types_at(t));
        for (int i = 0; i < LYINGS; i++)
            for (int k = 0; k < (A.view.val_type < TULLE_CF32 ? 3 : 4); k++) {
                setting s = lying(i, 1 + 13 * (i % 5), betas[k]);
                s.alpha = none;
                right(ctx, cpu, &A.view, s);
            }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* Infinities and NaN follow IEEE rules, in each combination; a real factor does not mix real and imaginary
 * parts. */
static void infinities_in_y(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_identity(3, (ref_types){TULLE_CF64, TULLE_I32, TULLE_I32});
    for (int i = 0; i < LYINGS; i++)
        for (int scale = 0; scale < 2; scale++) {
            setting s = lying(i, 5, other);
            s.alpha = scale ? none : one;
            den X = den_new(3, 5, s.x_order, s.x_gap, TULLE_CF64), Y = den_new(3, 5, s.y_order, s.y_gap, TULLE_CF64);
            tl_dmem x_mem = {0, 0}, y_mem = {0, 0};
            den_fill(&X, 1);
            den_fill(&Y, 2);
            ref_value_put(Y.view.values, TULLE_CF64, place(&Y.view, 1, 2), (ref_value){INFINITY, 1});
            tulle_dense x = X.view, y = Y.view;
            if (s.x_place == TULLE_DEVICE) x = to_device(ctx, &X, &x_mem);
            if (s.y_place == TULLE_DEVICE) y = to_device(ctx, &Y, &y_mem);
            CHECK(multiply(ctx, &A.view, &x, &y, &s) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            if (s.x_place == TULLE_DEVICE) from_device(ctx, &X, x_mem);
            if (s.y_place == TULLE_DEVICE) from_device(ctx, &Y, y_mem);
            ref_value v = ref_value_at(Y.view.values, TULLE_CF64, place(&Y.view, 1, 2));
            CHECK(isinf(v.re) && v.re < 0 && isfinite(v.im), "%g%+gi", v.re, v.im);
            den_free(&X);
            den_free(&Y);
        }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_place_order_and_type), TEST(shapes_with_nothing_in_them), TEST(any_width_over_any_lanes),
          TEST(long_rows_in_chunks), TEST(more_than_a_slot), TEST(limits_down_to_one_column), TEST(waits_only_where_it_must),
          TEST(cancelled_between_chunks), TEST(requests_that_fail), TEST(trimmed_between_products),
          TEST(scaled_in_every_order), TEST(infinities_in_y))
