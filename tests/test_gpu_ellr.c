/* SPDX-License-Identifier: MIT
 *
 * test_gpu_ellr.c - internal functions of FastSpMM: every T and Lc with every type, widths of chunks, rows
 * of any alignment, factors, memory that must not be read or written; matrices that are not converted to
 * ELLPACK-R; shapes that are refused. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/spmm.h"
#include <math.h>

enum { PAD = 3, MOST_SAID = 4096 };

static const uint32_t widths[] = {1, 2, 3, 5, 8, 31, 32, 33, 100};
static const ref_value one = {1, 0}, zero = {0, 0};

/* ---- A on the device */

typedef struct sparse {
    tulle_ctx  *ctx;
    ref         A;
    tl_gpu_spmm s;
    uint64_t    held;
} sparse;

static tl_dmem upload(tulle_ctx *ctx, const void *from, uint64_t bytes)
{
    tl_dmem mem;
    tl_gpu *gpu = ctx->gpu;
    CHECK(tl_dmem_alloc(&ctx->base, gpu, bytes, "a test", &mem) == TULLE_OK, "%s", ctx->base.error);
    if (bytes) CHECK(gpu->driver->upload(&ctx->base, gpu->device, mem, from, bytes) == TULLE_OK, "%s", ctx->base.error);
    return mem;
}

static sparse sparse_of(tulle_ctx *ctx, ref A)
{
    const tulle_csr *v = &A.view;
    sparse m = {.ctx = ctx, .A = A, .held = tl_dmem_held(ctx->gpu)};
    m.s = (tl_gpu_spmm){.gpu = ctx->gpu, .rows = v->rows, .cols = v->cols, .nnz = v->nnz, .type = v->val_type};
    m.s.types = (tl_types){v->ptr_type == TULLE_I64 ? 64 : 32, v->idx_type == TULLE_I64 ? 64 : 32, 32, (int)v->val_type};
    m.s.ptr = m.s.own[0] = upload(ctx, A.row_ptr, (uint64_t)(v->rows + 1) * ref_index_size(v->ptr_type));
    m.s.col = m.s.own[1] = upload(ctx, A.col_idx, (uint64_t)v->nnz * ref_index_size(v->idx_type));
    m.s.val = m.s.own[2] = upload(ctx, A.values, (uint64_t)v->nnz * ref_value_size(v->val_type));
    for (int64_t i = 0; i < v->rows; i++) {
        uint64_t n = (uint64_t)(ref_ptr(v, i + 1) - ref_ptr(v, i));
        if (n > m.s.most) m.s.most = n;
    }
    m.s.mean = v->rows ? (uint64_t)(v->nnz / v->rows) : 0;
    return m;
}

static void sparse_free(sparse *m)
{
    tl_ellr_done(&m->s);
    for (int i = 0; i < 3; i++) tl_dmem_free(m->ctx->gpu, m->s.own[i]);
    CHECK(tl_dmem_held(m->ctx->gpu) == m->held, "%d bytes stay", (int)(tl_dmem_held(m->ctx->gpu) - m->held));
    ref_free(&m->A);
}

static bool make(sparse *m, uint32_t threads, uint32_t columns, uint32_t block)
{
    tl_ellr_done(&m->s);
    tulle_status status = tl_ellr_make(&m->ctx->base, &m->s, (tl_ellr_shape){threads, columns, block});
    CHECK(status == TULLE_OK && m->s.ellr.lengths.handle && m->s.ellr.col.handle && m->s.ellr.val.handle, "%u, %u, %u: %s",
          threads, columns, block, m->ctx->base.error);
    return status == TULLE_OK && m->s.ellr.lengths.handle;
}

/* Rows with no, one and many entries, none of them in column 0, which is the column of padding. */
static ref uneven(int64_t rows, int64_t cols, ref_types t)
{
    int64_t nnz = 0, at = 0;
    ref_rng r = {41};
    int64_t *length = malloc((size_t)rows * sizeof *length);
    if (!length) abort();
    for (int64_t i = 0; i < rows; i++) {
        length[i] = i == rows / 2 ? cols - 1 : i % 5 == 4 ? 0 : i % 7 == 0 ? 33 : ref_below(&r, 13);
        nnz += length[i];
    }
    ref A = ref_new(rows, cols, nnz, t);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < length[i]; k++) ref_set_col(&A, at++, 1 + k * (cols - 1) / length[i]);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, REF_INTEGERS, 42);
    free(length);
    return A;
}

/* ---- a chunk, and the expected result */

typedef struct job {
    uint32_t  cols;
    uint64_t  x_at, x_ld, y_at, y_ld;
    ref_value alpha, beta;
    bool      nan;                      /* NaN in values that must not be used */
    int       lane;
} job;

static job plain(uint32_t cols)
{
    return (job){.cols = cols, .x_ld = cols, .y_ld = cols, .alpha = one, .nan = true};
}

static ref_value times(ref_value a, ref_value b)
{
    if (a.im == 0) return (ref_value){a.re * b.re, b.im == 0 ? 0 : a.re * b.im};
    return (ref_value){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static ref_value product(const tulle_csr *A, int64_t i, const void *x, uint64_t x_at, uint64_t x_ld, uint32_t c)
{
    ref_value sum = zero;
    for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
        ref_value a = ref_val(A, k), b = ref_value_at(x, A->val_type, (int64_t)(x_at + (uint64_t)ref_col(A, k) * x_ld + c));
        sum.re += a.re * b.re - a.im * b.im;
        sum.im += a.re * b.im + a.im * b.re;
    }
    return sum;
}

/* Numbers that are exact in every type; NaN between the rows, and in row 0 of X. */
static void fill(void *to, tulle_type type, uint64_t count, uint64_t at, uint64_t ld, uint32_t cols, int64_t skip,
                 bool nan, uint64_t seed)
{
    ref_rng r = {seed};
    bool complex = type == TULLE_CF32 || type == TULLE_CF64;
    for (uint64_t i = 0; i < count; i++) {
        ref_value v = {(double)ref_below(&r, 9) - 4, complex ? (double)ref_below(&r, 9) - 4 : 0};
        bool inside = i >= at && (i - at) % ld < cols && (int64_t)((i - at) / ld) > skip;
        if (nan && !inside) v = (ref_value){NAN, complex ? NAN : 0};
        ref_value_put(to, type, (int64_t)i, v);
    }
}

static tulle_status launch(sparse *m, tl_dmem x, tl_dmem y, const job *j)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &m->ctx->base;
    const tl_driver *d = m->ctx->gpu->driver;
    tl_chunk chunk = {.x = x, .y = y, .x_at = j->x_at, .y_at = j->y_at, .x_ld = j->x_ld, .y_ld = j->y_ld, .cols = j->cols,
                      .lane = j->lane};
    if (j->lane) TRY(d->fork(b, m->ctx->gpu->device, 2));
    TRY(tl_ellr_run(b, &m->s, &chunk, (tl_c64){j->alpha.re, j->alpha.im}, (tl_c64){j->beta.re, j->beta.im}));
    if (j->lane) TRY(d->join(b, m->ctx->gpu->device, 2));
done:
    return status;
}

static void check(sparse *m, const job *j, const char *what)
{
    tl_base *b = &m->ctx->base;
    tl_gpu *gpu = m->ctx->gpu;
    const tulle_csr *A = &m->A.view;
    const size_t value = ref_value_size(A->val_type);
    const bool reads = j->beta.re != 0 || j->beta.im != 0;
    uint64_t xs = j->x_at + (uint64_t)A->cols * j->x_ld + PAD, ys = j->y_at + (uint64_t)A->rows * j->y_ld + PAD;
    void *x = malloc(xs * value), *y = malloc(ys * value), *want = malloc(ys * value);
    if (!x || !y || !want) abort();
    fill(x, A->val_type, xs, j->x_at, j->x_ld, j->cols, 0, j->nan, 51);
    fill(want, A->val_type, ys, j->y_at, j->y_ld, reads ? j->cols : 0, -1, j->nan, 52);
    tl_dmem dx = upload(m->ctx, x, xs * value), dy = upload(m->ctx, want, ys * value);
    for (int64_t i = 0; i < A->rows; i++)
        for (uint32_t c = 0; c < j->cols; c++) {
            int64_t at = (int64_t)(j->y_at + (uint64_t)i * j->y_ld + c);
            ref_value v = times(j->alpha, product(A, i, x, j->x_at, j->x_ld, c));
            if (reads) {
                ref_value old = times(j->beta, ref_value_at(want, A->val_type, at));
                v = (ref_value){v.re + old.re, v.im + old.im};
            }
            ref_value_put(want, A->val_type, at, v);
        }
    CHECK(launch(m, dx, dy, j) == TULLE_OK, "%s", b->error);
    CHECK(gpu->driver->download(b, gpu->device, y, dy, ys * value) == TULLE_OK, "%s", b->error);
    CHECK(gpu->driver->wait(b, gpu->device) == TULLE_OK, "%s", b->error);
    for (uint64_t i = 0; i < ys; i++) { /* -0 equals 0 here */
        ref_value v = ref_value_at(y, A->val_type, (int64_t)i);
        ref_value_put(y, A->val_type, (int64_t)i, (ref_value){v.re + 0.0, v.im + 0.0});
        v = ref_value_at(want, A->val_type, (int64_t)i);
        ref_value_put(want, A->val_type, (int64_t)i, (ref_value){v.re + 0.0, v.im + 0.0});
    }
    tl_ellr_shape shape = tl_ellr_choice(&m->s, j->cols);
    CHECK(ref_same_values(y, want, A->val_type, (int64_t)ys, what), "%s: T %u, Lc %u, block %u, %u columns, x %d+%d, y %d+%d",
          what, shape.threads, shape.columns, shape.block, j->cols, (int)j->x_at, (int)j->x_ld, (int)j->y_at, (int)j->y_ld);
    tl_dmem_free(gpu, dx);
    tl_dmem_free(gpu, dy);
    free(x);
    free(y);
    free(want);
}

/* ---- shapes */

static void every_shape(ref_types t)
{
    tulle_ctx *ctx = gpu_ctx();
    sparse m = sparse_of(ctx, uneven(53, 70, t));
    for (uint32_t threads = 1; threads <= 32; threads *= 2)
        for (uint32_t columns = 1; columns <= 32; columns *= 2) {
            if (!make(&m, threads, columns, 64)) continue;
            for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
                job j = plain(widths[i]);
                j.x_ld = (widths[i] + 3) / 4 * 4;       /* aligned for every width */
                j.y_ld = j.x_ld;
                check(&m, &j, ref_types_name(t));
            }
        }
    sparse_free(&m);
    tulle_ctx_free(ctx);
}

static void every_shape_f32(void) { every_shape((ref_types){TULLE_F32, TULLE_I32, TULLE_I32}); }
static void every_shape_f64(void) { every_shape((ref_types){TULLE_F64, TULLE_I32, TULLE_I32}); }
static void every_shape_c32(void) { every_shape((ref_types){TULLE_CF32, TULLE_I32, TULLE_I32}); }
static void every_shape_c64(void) { every_shape((ref_types){TULLE_CF64, TULLE_I32, TULLE_I32}); }

static void every_width_of_indices(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        if (t.ptr == TULLE_I32 && t.idx == TULLE_I32) continue;
        if (t.ptr != t.idx && t.val != TULLE_F64 && few()) continue;
        sparse m = sparse_of(ctx, uneven(53, 70, t));
        for (uint32_t threads = 1; threads <= 32; threads *= 2) {
            if (!make(&m, threads, threads < 8 ? 8 : 2, 64)) continue;
            job j = plain(11);
            check(&m, &j, ref_types_name(t));
        }
        sparse_free(&m);
    }
    tulle_ctx_free(ctx);
}

static void every_block(void)
{
    tulle_ctx *ctx = gpu_ctx();
    sparse m = sparse_of(ctx, uneven(53, 70, f64));
    for (uint32_t block = 32; block <= 256; block += block < 128 ? 32 : 64)
        for (uint32_t threads = 1; threads <= 32; threads *= 4)
            if (block % threads == 0 && make(&m, threads, 4, block)) {
                job j = plain(6);
                check(&m, &j, "blocks");
            }
    sparse_free(&m);
    tulle_ctx_free(ctx);
}

/* Rows of X and Y are aligned to 16 bytes, to 8, or only to one value; the gaps must not be accessed. */
static void rows_begin_anywhere(void)
{
    static const struct { uint64_t x_at, x_more, y_at, y_more; } places[] = {
        {0, 0, 0, 0}, {4, 4, 8, 4}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 3, 0}, {0, 0, 0, 5}, {2, 2, 2, 2}, {7, 9, 5, 3}};
    static const ref_types types[] = {{TULLE_F32, TULLE_I32, TULLE_I32}, {TULLE_F64, TULLE_I32, TULLE_I32},
                                      {TULLE_CF32, TULLE_I32, TULLE_I32}, {TULLE_CF64, TULLE_I32, TULLE_I32}};
    tulle_ctx *ctx = gpu_ctx();
    for (int t = 0; t < 4; t++) {
        sparse m = sparse_of(ctx, uneven(37, 40, types[t]));
        for (uint32_t threads = 1; threads <= 16; threads *= 4)
            for (uint32_t columns = 1; columns <= 32; columns *= 2) {
                if (!make(&m, threads, columns, 64)) continue;
                for (size_t i = 0; i < sizeof places / sizeof *places; i++)
                    for (int beta = 0; beta < 2; beta++) {
                        job j = {.cols = 16 + 4 * (i % 2), .x_at = places[i].x_at, .y_at = places[i].y_at, .alpha = one,
                                 .beta = {beta, 0}, .nan = true};
                        j.x_ld = j.cols + places[i].x_more;
                        j.y_ld = j.cols + places[i].y_more;
                        check(&m, &j, "places");
                    }
            }
        sparse_free(&m);
    }
    tulle_ctx_free(ctx);
}

static void factors(void)
{
    static const ref_value some[] = {{0, 0}, {1, 0}, {-2, 0}, {0, 3}, {2, -1}};
    static const ref_types types[] = {{TULLE_F32, TULLE_I32, TULLE_I32}, {TULLE_CF64, TULLE_I32, TULLE_I32}};
    tulle_ctx *ctx = gpu_ctx();
    for (int t = 0; t < 2; t++) {
        sparse m = sparse_of(ctx, uneven(37, 40, types[t]));
        if (make(&m, 4, 8, 64))
            for (int a = 1; a < (t ? 5 : 3); a++)
                for (int c = 0; c < (t ? 5 : 3); c++) {
                    job j = plain(13);
                    j.alpha = some[a];
                    j.beta = some[c];
                    check(&m, &j, "factors");
                }
        sparse_free(&m);
    }
    tulle_ctx_free(ctx);
}

/* Shapes chosen by the model, many columns, and an additional lane. */
static void chosen_shapes(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref made[] = {uneven(70, 90, f64), ref_band(90, 1, REF_INTEGERS, f64), ref_dense(20, 150, REF_INTEGERS, f64),
                  ref_random(43, 90, 100, 20, REF_INTEGERS, f64)};
    for (int i = 0; i < 4; i++) {
        sparse m = sparse_of(ctx, made[i]);
        if (make(&m, 0, 0, 0)) {
            tl_ellr_shape s = tl_ellr_choice(&m.s, 300);
            CHECK(s.threads >= 1 && s.threads <= 32 && s.columns >= 1 && s.columns <= 32 && s.block % s.threads == 0,
                  "%u %u %u", s.threads, s.columns, s.block);
            CHECK(tl_ellr_choice(&m.s, 3).columns == 4 && tl_ellr_choice(&m.s, 1).columns == 1, "more columns than there are");
            for (int w = 0; w < 3; w++) {
                job j = plain(w == 0 ? 1 : w == 1 ? 300 : 17);
                j.nan = i == 0;
                j.lane = w == 2;
                check(&m, &j, "the model");
            }
        }
        sparse_free(&m);
    }
    tulle_ctx_free(ctx);
}

static void no_rows_no_entries(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref made[] = {ref_new(0, 5, 0, f64), ref_new(6, 5, 0, f64), ref_new(4, 0, 0, f64),
                  ref_random(44, 1, 1, 1, REF_INTEGERS, f64)};
    for (int i = 0; i < 4; i++) {
        sparse m = sparse_of(ctx, made[i]);
        for (uint32_t threads = 1; threads <= 32; threads *= 8)
            if (make(&m, threads, 4, 32)) {
                job j = plain(5);
                j.nan = i < 3;
                check(&m, &j, "nothing");
                j.beta = (ref_value){2, 0};
                check(&m, &j, "nothing, and beta");
            }
        sparse_free(&m);
    }
    tulle_ctx_free(ctx);
}

/* Infinities follow IEEE rules, and padding does not spread them. */
static void infinities(void)
{
    tulle_ctx *ctx = gpu_ctx();
    const ref_types t = {TULLE_CF32, TULLE_I32, TULLE_I32};
    sparse m = sparse_of(ctx, ref_identity(3, t));
    const float x[] = {INFINITY, 0, NAN, 1, 5, -6};
    float y[6];
    tl_base *b = &ctx->base;
    if (make(&m, 2, 1, 32)) {
        tl_dmem dx = upload(ctx, x, sizeof x), dy = upload(ctx, x, sizeof x);
        job j = {.cols = 1, .x_ld = 1, .y_ld = 1, .alpha = {2, 0}};
        CHECK(launch(&m, dx, dy, &j) == TULLE_OK, "%s", b->error);
        CHECK(ctx->gpu->driver->download(b, ctx->gpu->device, y, dy, sizeof y) == TULLE_OK
              && ctx->gpu->driver->wait(b, ctx->gpu->device) == TULLE_OK, "%s", b->error);
        CHECK(isinf(y[0]), "%g%+gi", (double)y[0], (double)y[1]);
        CHECK(isnan(y[2]), "%g%+gi", (double)y[2], (double)y[3]);
        CHECK(y[4] == 10 && y[5] == -12, "%g%+gi", (double)y[4], (double)y[5]);
        tl_dmem_free(ctx->gpu, dx);
        tl_dmem_free(ctx->gpu, dy);
    }
    sparse_free(&m);
    tulle_ctx_free(ctx);
}

/* ---- cases without ELLPACK-R */

static char said[MOST_SAID];

static void listen(void *user, const char *line)
{
    (void)user;
    snprintf(said, sizeof said, "%s", line);
}

static void stays_csr(sparse *m, const char *words)
{
    uint64_t held = tl_dmem_held(m->ctx->gpu);
    said[0] = 0;
    CHECK(tl_ellr_make(&m->ctx->base, &m->s, (tl_ellr_shape){0, 0, 0}) == TULLE_OK, "%s", m->ctx->base.error);
    CHECK(!m->s.ellr.lengths.handle && !m->s.ellr.col.handle && !m->s.ellr.val.handle, "it was made");
    CHECK(tl_dmem_held(m->ctx->gpu) == held, "memory was taken");
    CHECK(strstr(said, "not in ELLPACK-R") && strstr(said, words), "%s: %s", words, said);
}

static void a_matrix_that_would_blow_up_stays_csr(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_ctx_set_trace(ctx, listen, NULL);
    sparse m = sparse_of(ctx, full_row_and_singles(20000, 3000, 7, REF_INTEGERS, f64));
    stays_csr(&m, "the longest row has 3000 entries, the mean is 1");
    CHECK(strstr(said, "22999 entries would become 60000000"), "%s", said);
    sparse_free(&m);
    /* a large factor, but of few bytes */
    m = sparse_of(ctx, full_row_and_singles(200, 300, 7, REF_INTEGERS, f64));
    make(&m, 0, 0, 0);
    CHECK(strstr(said, "ELLPACK-R, ") && strstr(said, "at most 300 entries"), "%s", said);
    tl_ellr_done(&m.s);
    m.s.limit = 4096;
    stays_csr(&m, "4096 are allowed");
    m.s.limit = 1 << 20;
    make(&m, 0, 0, 0);
    uint64_t threads = m.s.ellr.shape.threads, groups = (300 + threads - 1) / threads;
    CHECK(m.s.ellr.pitch >= 200 && m.s.ellr.bytes == m.s.ellr.pitch * (groups * threads * 12 + 4), "%d bytes", (int)m.s.ellr.bytes);
    sparse_free(&m);
    tulle_ctx_free(ctx);
}

static void impossible_shapes_are_refused(void)
{
    static const struct { tl_ellr_shape shape; const char *words; } cases[] = {
        {{3, 0, 0}, "3 threads a row: a power of two from 1 to 32"}, {{64, 0, 0}, "64 threads a row"},
        {{0, 5, 0}, "5 columns at a time: a power of two from 1 to 32"}, {{0, 64, 0}, "64 columns at a time"},
        {{32, 4, 48}, "blocks of 48 threads: multiples of 32 up to"}, {{4, 4, 1024}, "blocks of 1024 threads"},
        {{8, 4, 12}, "blocks of 12 threads"}};
    tulle_ctx *ctx = gpu_ctx();
    sparse m = sparse_of(ctx, uneven(37, 40, f64));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tulle_status status = tl_ellr_make(&ctx->base, &m.s, cases[i].shape);
        CHECK(status == TULLE_EINVAL && strstr(ctx->base.error, cases[i].words), "%s: %d, %s", cases[i].words, (int)status,
              ctx->base.error);
        CHECK(!m.s.ellr.lengths.handle && !m.s.ellr.col.handle && !m.s.ellr.val.handle, "something was made");
    }
    sparse_free(&m);
    tulle_ctx_free(ctx);
}

/* A plan stores A only once: in ELLPACK-R, or in CSR. */
static void csr_goes_when_it_is_made(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = uneven(300, 200, f64);
    tulle_spmm_options o = {.policy = "ellr"};
    uint64_t before = tl_dmem_held(ctx->gpu);
    tulle_spmm_plan *plan = NULL;
    CHECK(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    if (plan) {
        const tl_gpu_spmm *s = plan->kept;
        uint64_t held = tl_dmem_held(ctx->gpu) - before;
        CHECK(s->ellr.val.handle && held >= s->ellr.bytes && held <= s->ellr.bytes + 3 * TL_ALIGN, "%d bytes are held, ELLPACK-R has %d",
              (int)held, (int)s->ellr.bytes);
        CHECK(s->taken == held && !s->val.handle && !s->own[2].handle, "%d bytes are counted", (int)s->taken);
    }
    tulle_spmm_plan_free(plan);
    CHECK(tl_dmem_held(ctx->gpu) == before, "%d bytes stayed", (int)(tl_dmem_held(ctx->gpu) - before));
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Makes one allocation after the other fail: falls back to CSR, and nothing leaks. */
static void failing_allocations(void)
{
    for (int i = 1; i <= 4; i++) {
        char number[8];
        snprintf(number, sizeof number, "%d", 4 + i);    /* the device itself makes one, A three */
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_FAIL", number);
        tulle_ctx_set_trace(ctx, listen, NULL);
        sparse m = sparse_of(ctx, uneven(37, 40, f64));
        if (i <= 3) stays_csr(&m, "the request was made to fail");
        else make(&m, 0, 0, 0);
        sparse_free(&m);
        tulle_ctx_free(ctx);
    }
}

TEST_MAIN(TEST(every_shape_f32), TEST(every_shape_f64), TEST(every_shape_c32), TEST(every_shape_c64),
          TEST(every_width_of_indices), TEST(every_block), TEST(rows_begin_anywhere), TEST(factors), TEST(chosen_shapes),
          TEST(no_rows_no_entries), TEST(infinities), TEST(a_matrix_that_would_blow_up_stays_csr),
          TEST(impossible_shapes_are_refused), TEST(csr_goes_when_it_is_made), TEST(failing_allocations))
