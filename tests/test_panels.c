/* SPDX-License-Identifier: MIT
 *
 * test_panels.c - products that do not fit in the memory of a device, with a simulated device
 * (fake_device.h): blocks of rows, the rows of B that they need, panels of columns, joining of parts.
 * test_gpu_larger.c tests it with a real device. */
#define _GNU_SOURCE
#include "blocks_help.h"
#include "slices.h"
#include "ways.h"
#include "fake_device.h"
#include "several.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

static uint64_t asked_for(tulle_ctx *ctx)
{
    unsigned long long need = 0;
    const char *at = strstr(tulle_ctx_error(ctx), "needs ");
    return at && sscanf(at, "needs %llu bytes", &need) == 1 ? need : 0;
}

/* ---- one product with limits from "just fits" to a refusal */

/* One product with a limit; true: it succeeded. */
static bool try_limit(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, tulle_options o, uint64_t limit,
                      const tulle_csr *want, const char *name)
{
    tulle_matrix *C = NULL;
    tulle_stats s;
    o.memory_limit = limit;
    tulle_status status = tulle_multiply(ctx, A, B, &o, &C);
    CHECK(!dev.kept, "%s: something stayed there", name);
    if (status != TULLE_OK) {
        CHECK(status == TULLE_ELIMIT && !C && asked_for(ctx) > limit, "%s, limit %" PRIu64 ": %s", name, limit,
              tulle_ctx_error(ctx));
        return false;
    }
    tulle_csr c = tulle_matrix_view(C);
    CHECK(!tulle_ctx_error(ctx)[0], "%s: it went well, and says: %s", name, tulle_ctx_error(ctx));
    CHECK(ref_same(&c, want, name), "limit %" PRIu64, limit);
    CHECK(c.ptr_type == (o.c_ptr_type ? (tulle_index)o.c_ptr_type : TULLE_I32), "%s: row pointers", name);
    CHECK(c.idx_type == (o.c_idx_type ? (tulle_index)o.c_idx_type : B->idx_type), "%s: columns", name);
    tulle_ctx_stats(ctx, &s);
    int64_t rows = 0, products = 0;
    for (int k = 0; k < s.shares; k++) rows += s.share[k].rows, products += s.share[k].products;
    CHECK(s.c_nnz == want->nnz && s.peak_bytes <= limit, "%s: %" PRId64 " entries, peak %" PRIu64, name, s.c_nnz,
          s.peak_bytes);
    CHECK(rows == want->rows && products == s.products, "%s, limit %" PRIu64 ": shares of %" PRId64 " rows", name, limit, rows);
    tulle_matrix_free(C);
    return true;
}

/* The factor between consecutive limits. */
#if defined(TULLE_SMALL_TESTS)
enum { STEP = 2 };
#else
enum { STEP = 3 };
#endif

/* Returns the number of parts with a single row, which used panels. */
static int64_t all_limits(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                          const tulle_csr *want, const char *name)
{
    tulle_options plain = o ? *o : (tulle_options){0};
    dev.parts = dev.narrow = 0;
    uint64_t limit = 3 * (tl_csr_bytes(A) + tl_csr_bytes(B) + tl_csr_bytes(want)) + 64;
    CHECK(try_limit(ctx, A, B, plain, limit, want, name), "%s: %s", name, tulle_ctx_error(ctx));
    CHECK(dev.parts == 0, "%s: what fits went in parts", name);
    while (limit > 1 && try_limit(ctx, A, B, plain, limit, want, name)) limit -= limit / STEP + 1;
    if (limit > 1) {                    /* the number named then is sufficient */
        uint64_t need = asked_for(ctx);
        CHECK(try_limit(ctx, A, B, plain, need, want, name), "%s: %s", name, tulle_ctx_error(ctx));
    }
    return dev.narrow;
}

static void every_limit_gives_the_same_product(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    int64_t narrow = 0;
    for (int i = 0; i < 28; i++) {
        /* long, and similar to their neighbours */
        if (i == 22 || i == 24 || (i > 15 && i < 19) || (STEP == 2 && (i == 21 || i == 25))) continue;
        ref_types t = ref_types_at(5 * i % REF_TYPES), u = ref_types_at((5 * i + 7) % REF_TYPES);
        u.val = t.val;
        pair p = pair_at(i, REF_REALS, t, u);
        ref want = ref_product(&p.A.view, &p.B.view);
        ref a = ref_copy(&p.A.view, t), b = ref_copy(&p.B.view, u);
        narrow += all_limits(ctx, &p.A.view, &p.B.view, NULL, &want.view, p.name);
        CHECK(ref_untouched(&p.A.view, &a) && ref_untouched(&p.B.view, &b), "%s: operands were written", p.name);
        ref_free(&a);
        ref_free(&b);
        ref_free(&want);
        pair_free(&p);
    }
    CHECK(narrow > 100, "%" PRId64 " parts of one row", narrow);
    device_free(ctx);
}

static void every_option_gives_the_same_product(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    ref A = ref_random(3, 50, 80, 6, REF_CANCELLING, f64), B = ref_random(4, 90, 50, 9, REF_CANCELLING, f64);
    ref T = ref_transpose(&A.view, TULLE_TRANSPOSE), U = ref_transpose(&B.view, TULLE_TRANSPOSE);
    ref full = ref_product(&T.view, &U.view), none = ref_without_zeros(&full.view);
    ref a = ref_shuffled(&A.view, 5, false);
    tulle_options o = {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_ADJOINT};
    all_limits(ctx, &A.view, &B.view, &o, &full.view, "transposed");
    o.drop_zeros = 1;
    all_limits(ctx, &A.view, &B.view, &o, &none.view, "without zeros");
    o.c_ptr_type = o.c_idx_type = TULLE_I64;
    all_limits(ctx, &A.view, &B.view, &o, &none.view, "wide");
    o.sort_inputs = 1;
    all_limits(ctx, &a.view, &B.view, &o, &none.view, "unsorted");
    tulle_csr x = A.view, y = B.view;
    x.values = y.values = NULL;
    full.view.values = NULL;
    all_limits(ctx, &x, &y, &(tulle_options){.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE}, &full.view, "patterns");
    ref all[] = {A, B, T, U, full, none, a};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    sliced s = sliced_new(f64);
    ref square = ref_product(&s.plain.view, &s.plain.view);
    all_limits(ctx, &s.slice, &s.slice, NULL, &square.view, "a slice");
    ref_free(&square);
    sliced_free(&s);
    device_free(ctx);
}

/* ---- blocks for the caller */

static void blocks_come_in_order_whatever_is_too_large(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    ref A = ref_power(11, 80, 90, 60, REF_REALS, f64), B = ref_power(12, 90, 200, 150, REF_REALS, f64);
    ref want = ref_product(&A.view, &B.view);
    tulle_status status = TULLE_OK;
    int64_t most = 0, kept = 0;
    for (uint64_t limit = 1 << 20; status == TULLE_OK; limit -= limit / 4) {
        blocks_seen x = {.want = &want.view, .good = true};
        status = tulle_multiply_blocks(ctx, &A.view, &B.view, &(tulle_options){.memory_limit = limit}, blocks_compare, &x);
        CHECK(status == TULLE_ELIMIT || (status == TULLE_OK && x.rows == 80), "%s", tulle_ctx_error(ctx));
        CHECK(x.good && !dev.kept, "limit %" PRIu64, limit);
        CHECK((status == TULLE_OK) == !tulle_ctx_error(ctx)[0], "limit %" PRIu64 " says: %s", limit, tulle_ctx_error(ctx));
        if (x.blocks > most) most = x.blocks;
        if (status != TULLE_OK || x.blocks < 2) continue;
        kept++;
        blocks_seen y = {.want = &want.view, .good = true, .stop_after = x.blocks - 1};
        status = tulle_multiply_blocks(ctx, &A.view, &B.view, &(tulle_options){.memory_limit = limit}, blocks_compare, &y);
        CHECK(status == TULLE_ECANCEL && y.blocks == x.blocks - 1 && strstr(tulle_ctx_error(ctx), "stopped by the caller"),
              "%s", tulle_ctx_error(ctx));
        status = TULLE_OK;
    }
    CHECK(most > 20 && kept > 5, "%" PRId64 " blocks at most, %" PRId64 " limits", most, kept);
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    device_free(ctx);
}

/* ---- failures */

/* A limit that leads to blocks (A and B fit), to parts, or to panels. */
static uint64_t limit_for(int way, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C)
{
    const uint64_t operands = tl_csr_bytes(A) + tl_csr_bytes(B);
    return way == 0 ? 0 : way == 1 ? operands + tl_csr_bytes(C) / 3 : way == 2 ? operands / 2 : operands / 6;
}

static void a_request_that_fails_is_made_again_for_less(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    ref A = ref_power(11, 40, 90, 60, REF_REALS, f64), B = ref_power(12, 90, 200, 150, REF_REALS, f64);
    ref want = ref_product(&A.view, &B.view);
    for (int way = 0; way < 4; way++) {
        tulle_options o = {.memory_limit = limit_for(way, &A.view, &B.view, &want.view)};
        bool came = true;
        int64_t n = 1;
        for (; came && n < 3000 && test_failures < 10; n++) {
            tulle_matrix *C = NULL;
            dev.runs = 0;
            dev.fail_at = n;
            tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
            came = dev.runs >= n;
            /* it fails only for a single row and column */
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && way == 3 && !C), "way %d, run %" PRId64 ": %s", way, n,
                  tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            if (C) CHECK(ref_same(&c, &want.view, "after a failure"), "way %d, run %" PRId64, way, n);
            CHECK(!dev.kept, "way %d, run %" PRId64 ": something stayed", way, n);
            tulle_matrix_free(C);
        }
        CHECK(n > (way < 2 ? 1 : 10), "way %d: %" PRId64 " runs", way, n);
    }
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    device_free(ctx);
}

typedef struct steps { int64_t seen, stop_at; } steps;

static int stop(void *user, const char *stage, double fraction)
{
    steps *x = user;
    CHECK(stage && fraction >= 0 && fraction <= 1, "%g", fraction);
    return ++x->seen == x->stop_at;
}

static void it_can_be_cancelled_at_every_step(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    ref A = ref_power(11, 40, 90, 60, REF_REALS, f64), B = ref_power(12, 90, 200, 150, REF_REALS, f64);
    ref want = ref_product(&A.view, &B.view);
    steps x = {0};
    tulle_ctx_set_progress(ctx, stop, &x);
    for (int way = 1; way < 4; way++) {
        tulle_options o = {.memory_limit = limit_for(way, &A.view, &B.view, &want.view)};
        const uint64_t held = atomic_load(&ctx->base.held);
        bool came = true;
        for (int64_t n = 1; came && test_failures < 10; n++) {
            tulle_matrix *C = NULL;
            x = (steps){.stop_at = n};
            tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
            came = x.seen >= n;
            CHECK(status == (came ? TULLE_ECANCEL : TULLE_OK) && !C == came, "way %d, step %" PRId64 ": %s", way, n,
                  tulle_ctx_error(ctx));
            tulle_matrix_free(C);
            if (came) CHECK(atomic_load(&ctx->base.held) == held, "way %d, step %" PRId64 ": memory is left", way, n);
            if (!came) CHECK(n > 3, "way %d: %" PRId64 " steps", way, n);
        }
    }
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    device_free(ctx);
}

/* Allocation hooks of the caller, of which one call fails. */
typedef struct hooks { int64_t calls, fail_at, live; } hooks;

static void *hooks_take(void *user, size_t bytes)
{
    hooks *h = user;
    if (++h->calls == h->fail_at) return NULL;
    h->live++;
    return malloc(bytes);
}

static void hooks_give(void *user, void *p)
{
    ((hooks *)user)->live -= p != NULL;
    free(p);
}

static void memory_of_the_host_can_fail_at_every_request(void)
{
    hooks h = {0};
    const tulle_mem mem = {.alloc = hooks_take, .free = hooks_give, .user = &h};
    tulle_ctx *ctx = device_ctx(&mem);
    ref A = ref_power(11, 12, 60, 40, REF_REALS, f64), B = ref_power(12, 60, 90, 70, REF_REALS, f64);
    ref want = ref_product(&A.view, &B.view);
    for (int way = 1; way < 4; way++) {
        tulle_options o = {.memory_limit = limit_for(way, &A.view, &B.view, &want.view)};
        bool came = true;
        int64_t failed = 0;
        for (int64_t n = 1; came && test_failures < 10; n++) {
            tulle_matrix *C = NULL;
            const int64_t live = h.live;
            h.calls = 0;
            h.fail_at = n;
            tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
            came = h.calls >= n;
            h.fail_at = 0;
            /* if the allocation for a block fails, half of it may succeed */
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && came && !C), "way %d, request %" PRId64 ": %s", way, n,
                  tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            if (C) CHECK(ref_same(&c, &want.view, "memory"), "way %d, request %" PRId64, way, n);
            tulle_matrix_free(C);
            CHECK(h.live == live, "way %d, request %" PRId64 ": %" PRId64 " blocks are left", way, n, h.live - live);
            failed += status != TULLE_OK;
        }
        CHECK(failed > 0, "way %d: nothing failed", way);
    }
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    device_free(ctx);
    CHECK(h.live == 0, "%" PRId64 " blocks are left", h.live);
}

/* ---- the functions it consists of */

static void some_columns_of_some_rows(void)
{
    tulle_ctx *ctx = ctx_with(1);
    for (int t = 0; t < REF_TYPES; t++) {
        ref A = ref_random(5, 30, 50, 7, REF_REALS, ref_types_at(t));
        static const int64_t rows[] = {0, 3, 3, 17, 29};        /* in any order, with repetitions */
        for (int64_t first = 0; first <= 50; first += 7)
            for (int64_t end = first; end <= 50; end += 9) {
                tulle_matrix *S = NULL;
                REQUIRE(tl_columns_take(&ctx->base, &A.view, rows, 5, first, end, &S) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                int64_t at = 0;
                bool good = S->view.rows == 5 && S->view.cols == 50 && S->view.val_type == A.view.val_type;
                for (int64_t i = 0; i < 5; i++) {
                    for (int64_t k = ref_ptr(&A.view, rows[i]); k < ref_ptr(&A.view, rows[i] + 1); k++) {
                        if (ref_col(&A.view, k) < first || ref_col(&A.view, k) >= end) continue;
                        good = good && at < S->view.nnz && ref_col(&S->view, at) == ref_col(&A.view, k)
                            && ref_val(&S->view, at).re == ref_val(&A.view, k).re
                            && ref_val(&S->view, at).im == ref_val(&A.view, k).im;
                        at++;
                    }
                    good = good && ref_ptr(&S->view, i + 1) == at;
                }
                CHECK(good && S->view.nnz == at, "columns %" PRId64 " to %" PRId64 ", types %d", first, end, t);
                tl_matrix_free(&ctx->base, S);
            }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* Parts with consecutive rows, one row in pieces, with the library's own memory and with the caller's. */
static void parts_are_joined(void)
{
    for (int t = 0; t < REF_TYPES; t++)
        for (int way = 0; way < 4; way++) {
            hooks h = {0};
            const tulle_mem mem = {.alloc = hooks_take, .free = hooks_give, .user = &h};
            tulle_ctx *ctx = NULL;
            REQUIRE(tulle_ctx_create("cpu", way % 2 ? &mem : NULL, &ctx) == TULLE_OK, "context");
            tl_base *b = &ctx->base;
            const bool values = way < 2;
            ref A = ref_random(5, 40, 70, 9, REF_REALS, ref_types_at(t));
            tulle_csr a = A.view;
            if (!values) a.values = NULL;
            tl_join j;
            tulle_matrix *C = NULL;
            REQUIRE(tl_join_begin(b, 40, 70, 0, 2 * a.nnz, a.idx_type, a.val_type, values, &j) == TULLE_OK, "%s", b->error);
            for (int64_t row = 0, n = 0; row < 40; row += n) {
                n = row % 5 == 0 ? 1 : row + 3 < 40 ? 3 : 40 - row;
                for (int64_t k = 0, list[3] = {row, row + 1, row + 2}; k < (n == 1 ? 4 : 1); k++) {
                    tulle_matrix *S = NULL;
                    const int64_t first = n == 1 ? 20 * k : 0, end = n == 1 && k < 3 ? 20 * k + 20 : 70;
                    REQUIRE(tl_columns_take(b, &a, list, n, first, end, &S) == TULLE_OK, "%s", b->error);
                    CHECK(tl_join_put(b, &j, &S->view, n == 1 && k < 3) == TULLE_OK, "%s", b->error);
                    tl_matrix_free(b, S);
                }
            }
            const int type = t % 3 == 0 ? 0 : t % 3;
            REQUIRE(tl_join_finish(b, &j, type, &C) == TULLE_OK, "%s", b->error);
            CHECK(ref_same(&C->view, &a, "joined") && C->view.ptr_type == (type ? (tulle_index)type : TULLE_I32), "way %d", way);
            CHECK(tulle_csr_check(ctx, &C->view) == TULLE_OK && C->view.val_type == a.val_type, "%s", tulle_ctx_error(ctx));
            tulle_ctx_free(ctx);
            tulle_matrix_free(C);
            CHECK(h.live == 0, "%" PRId64 " blocks are left", h.live);
            ref_free(&A);
        }
}

/* Refused before any memory is allocated. */
static void what_the_machine_cannot_hold_is_refused_before(void)
{
    tulle_ctx *ctx = ctx_with(1);
    const int64_t many = (int64_t)1 << 44;
    tl_join j;
    CHECK(tl_join_begin(&ctx->base, 10, many, many, many, TULLE_I64, TULLE_F64, true, &j) == TULLE_ENOMEM && !j.C, "%s",
          tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), "at least 17592186044416 entries, 281474976710656 bytes"), "%s", tulle_ctx_error(ctx));
    tulle_ctx_free(ctx);
}

/* ---- one of several devices */

/* The second of two devices has no memory for B, and less and less for a product: it uses the rows of B that
 * it needs, then panels.  Both compute ranges alternately, for every division of the rows. */
static void one_of_several_devices_without_room_for_B_takes_its_rows(void)
{
    static const uint64_t most[] = {0, 4000, 1000, 250};
    tulle_ctx *ctx = NULL;
    device_make();
    REQUIRE(tulle_ctx_create("cpu,cpu", NULL, &ctx) == TULLE_OK, "a context");
    ctx->several->part[1]->engine = &there;
    dev.narrow_door = true;
    for (int i = 4; i < SMALL_PAIRS; i++) {
        pair p = pair_at(i, REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int64_t rows = 1; rows <= p.A.view.rows; rows += rows < 4 ? 1 : rows)
            for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
                tulle_matrix *C = NULL;
                char number[32];
                snprintf(number, sizeof number, "%" PRId64, rows);
                setenv("TULLE_PART_ROWS", number, 1);
                dev.most = most[m];
                dev.parts = 0;
                CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                const tulle_csr c = tulle_matrix_view(C);
                CHECK(ref_same(&c, &want.view, p.name), "%" PRId64 " rows at a time, %" PRIu64 " bytes", rows, most[m]);
                CHECK(dev.parts > 0 || rows >= p.A.view.rows, "the second one had no part of it");
                tulle_matrix_free(C);
            }
        ref_free(&want);
        pair_free(&p);
    }
    unsetenv("TULLE_PART_ROWS");
    device_free(ctx);
}

/* Without rows, panels are not possible: the call is refused with a sufficient number. */
static void several_devices_without_room_for_no_rows_refuse_them(void)
{
    tulle_ctx *ctx = NULL;
    device_make();
    REQUIRE(tulle_ctx_create("cpu,cpu", NULL, &ctx) == TULLE_OK, "a context");
    for (int i = 0; i < 2; i++) ctx->several->part[i]->engine = &there;
    dev.narrow_door = true;
    ref A = ref_random(1, 0, 5, 0, REF_INTEGERS, f64), B = ref_random(2, 5, 3, 2, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    tulle_options o = {.memory_limit = 8};
    tulle_matrix *C = NULL;
    for (int tries = 0; tries < 3 && !C; tries++) {
        const tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
        CHECK(tries > 0 || status == TULLE_ELIMIT, "8 bytes: %s", tulle_status_name(status));
        if (status == TULLE_OK) break;
        CHECK(!C && asked_for(ctx) > o.memory_limit, "limit %" PRIu64 ": %s", o.memory_limit, tulle_ctx_error(ctx));
        o.memory_limit = asked_for(ctx);
    }
    REQUIRE(C != NULL, "%s", tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &want.view, "C"), "limit %" PRIu64, o.memory_limit);
    tulle_matrix_free(C);
    ref all[] = {A, B, want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    device_free(ctx);
}

static tulle_status bus;                /* the status of the failing step */

static tulle_status no_plan_make(tulle_plan *q)
{
    return tl_fail(&q->ctx->base, bus, "it fell off the bus");
}

static tulle_status no_plan_run(tulle_plan *q, const void *a, const void *b, void *c)
{
    (void)a;
    (void)b;
    (void)c;
    return tl_fail(&q->ctx->base, bus, "it fell off the bus");
}

static tulle_status no_spmm_make(tulle_spmm_plan *q, const tulle_csr *A, int64_t cols)
{
    (void)A;
    (void)cols;
    return tl_fail(&q->ctx->base, bus, "it fell off the bus");
}

static tulle_status no_spmm_run(tulle_spmm_plan *q, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, tulle_dense *Y)
{
    (void)alpha;
    (void)X;
    (void)beta;
    (void)Y;
    return tl_fail(&q->ctx->base, bus, "it fell off the bus");
}

enum { NONE, RUN, PLAN_MAKE, PLAN_RUN, SPMM_MAKE, SPMM_RUN, STEPS };

static void let_fail(int step, tulle_status status)
{
    bus = status;
    dev.fails = step == RUN ? status : TULLE_OK;
    there.plan_make = step == PLAN_MAKE ? no_plan_make : tl_engine_cpu.plan_make;
    there.plan_run = step == PLAN_RUN ? no_plan_run : tl_engine_cpu.plan_run;
    there.spmm_make = step == SPMM_MAKE ? no_spmm_make : tl_engine_cpu.spmm_make;
    there.spmm_run = step == SPMM_RUN ? no_spmm_run : tl_engine_cpu.spmm_run;
}

/* A product, a plan and its run, and SpMM, until one of them fails. */
static tulle_status do_all(tulle_ctx *ctx, const pair *p, double *x, double *y)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    tulle_plan *plan = NULL;
    const tulle_dense X = tulle_dense_make(p->A.view.cols, 1, 1, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(p->A.view.rows, 1, 1, TULLE_BY_ROWS, y, TULLE_F64);
    TRY(tulle_multiply(ctx, &p->A.view, &p->B.view, NULL, &C));
    TRY(tulle_plan_create(ctx, &p->A.view, &p->B.view, NULL, &plan));
    TRY(tulle_plan_run(plan, p->A.values, p->B.values, tulle_matrix_values(C)));
    TRY(tulle_spmm(ctx, NULL, &p->A.view, &X, NULL, &Y, NULL));
done:
    tulle_plan_free(plan);
    tl_matrix_free(&ctx->base, C);      /* counted */
    return status;
}

/* The first error of a device ends the work of the others and becomes the status of the call; nothing
 * leaks. */
static void one_of_several_devices_fails_at_every_step(void)
{
    static const tulle_status ends[] = {TULLE_EDRIVER, TULLE_ECANCEL};
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    double *x = calloc((size_t)p.A.view.cols, sizeof *x), *y = calloc((size_t)p.A.view.rows, sizeof *y);
    tulle_ctx *ctx = NULL;
    device_make();
    setenv("TULLE_PART_ROWS", "5", 1);
    REQUIRE(tulle_ctx_create("cpu,cpu,cpu", NULL, &ctx) == TULLE_OK, "a context");
    ctx->several->part[1]->engine = &there;
    for (int step = NONE; step < STEPS; step++)
        for (int e = 0; e < 2; e++) {
            const uint64_t held = atomic_load(&ctx->base.held);
            let_fail(step, step == NONE ? TULLE_OK : ends[e]);
            tulle_status status = do_all(ctx, &p, x, y);
            CHECK(status == (step == NONE ? TULLE_OK : ends[e]), "step %d: %s, %s", step, tulle_status_name(status),
                  tulle_ctx_error(ctx));
            CHECK(step == NONE || strstr(tulle_ctx_error(ctx), "it fell off the bus"), "%s", tulle_ctx_error(ctx));
            CHECK(atomic_load(&ctx->base.held) == held, "step %d: bytes are left", step);
            let_fail(NONE, TULLE_OK);
            CHECK(do_all(ctx, &p, x, y) == TULLE_OK, "after step %d: %s", step, tulle_ctx_error(ctx));
        }
    unsetenv("TULLE_PART_ROWS");
    free(x);
    free(y);
    pair_free(&p);
    device_free(ctx);
}

TEST_MAIN(TEST(one_of_several_devices_without_room_for_B_takes_its_rows),
          TEST(several_devices_without_room_for_no_rows_refuse_them),
          TEST(one_of_several_devices_fails_at_every_step), TEST(every_limit_gives_the_same_product), TEST(every_option_gives_the_same_product),
          TEST(blocks_come_in_order_whatever_is_too_large), TEST(a_request_that_fails_is_made_again_for_less),
          TEST(it_can_be_cancelled_at_every_step), TEST(memory_of_the_host_can_fail_at_every_request),
          TEST(some_columns_of_some_rows), TEST(parts_are_joined), TEST(what_the_machine_cannot_hold_is_refused_before))
