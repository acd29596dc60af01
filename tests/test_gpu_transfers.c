/* SPDX-License-Identifier: MIT
 *
 * test_gpu_transfers.c - long arrays between host and device (parcels.c): there and back bit for bit, at lengths around those
 * of the slots; large results in portions of rows (portions.c); whole products and plans; memory that the driver reaches, or pins no more; copies that fail; results of
 * repeated products in locked memory, which outlive their context and are freed in any process. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "fork_help.h"
#include <sys/wait.h>

enum { SHORT = 1 << 20, SLOT = 4 << 20, SLOTS = 8 };

/* ---- the device's driver, which counts copies, and fails where it is told to */

enum { UPLOAD, DOWNLOAD, SEND, FETCH, FLAG, SETTLE, CALLS };
static struct {
    const tl_driver *real;
    tl_driver        mine;
    int              calls[CALLS];
    int              fail_call, fail_at;    /* the n-th of these calls; 0: none */
    bool             no_pinned, reached;
    struct { char *p; uint64_t bytes; } locked[16];
    int              locks, asked;          /* how many are locked, and how often that was asked for */
    bool             no_locks;
} spy;

static bool fails(int call)
{
    return ++spy.calls[call] == spy.fail_at && spy.fail_call == call;
}

#define FAILED(b) tl_fail(b, TULLE_EDRIVER, "the copy was made to fail")

static tulle_status upload(tl_base *b, tl_device *d, tl_dmem to, const void *from, uint64_t bytes)
{
    return fails(UPLOAD) ? FAILED(b) : spy.real->upload(b, d, to, from, bytes);
}

static tulle_status download(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes)
{
    return fails(DOWNLOAD) ? FAILED(b) : spy.real->download(b, d, to, from, bytes);
}

static tulle_status send(tl_base *b, tl_device *d, int lane, tl_dmem to, const void *from, uint64_t bytes)
{
    return fails(SEND) ? FAILED(b) : spy.real->send(b, d, lane, to, from, bytes);
}

static tulle_status fetch(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes)
{
    return fails(FETCH) ? FAILED(b) : spy.real->fetch(b, d, lane, to, from, bytes);
}

static tulle_status flag(tl_base *b, tl_device *d, int lane, int i)
{
    return fails(FLAG) ? FAILED(b) : spy.real->flag(b, d, lane, i);
}

static tulle_status settle(tl_base *b, tl_device *d, int i)
{
    return fails(SETTLE) ? FAILED(b) : spy.real->settle(b, d, i);
}

static tulle_status pinned(tl_base *b, tl_device *d, uint64_t bytes, void **p)
{
    *p = NULL;
    return spy.no_pinned ? tl_fail(b, TULLE_ENOMEM, "no pinned memory") : spy.real->pinned(b, d, bytes, p);
}

static bool reaches(const tl_device *d, const void *p)
{
    for (int i = 0; i < spy.locks; i++)
        if ((const char *)p >= spy.locked[i].p && (const char *)p < spy.locked[i].p + spy.locked[i].bytes) return true;
    return spy.reached || spy.real->reaches(d, p);
}

static bool lock(void *device, void *p, uint64_t bytes)
{
    (void)device;
    spy.asked++;
    if (spy.no_locks || spy.locks == 16) return false;
    for (int i = 0; i < spy.locks; i++) CHECK(spy.locked[i].p != p, "locked twice");
    spy.locked[spy.locks].p = p;
    spy.locked[spy.locks++].bytes = bytes;
    return true;
}

static void unlock(void *device, void *p)
{
    int i = 0;
    (void)device;
    while (i < spy.locks && spy.locked[i].p != p) i++;
    CHECK(i < spy.locks, "what is unlocked was not locked");
    if (i < spy.locks) spy.locked[i] = spy.locked[--spy.locks];
}

static tulle_ctx *spied(void)
{
    tulle_ctx *ctx = gpu_ctx();
    memset(&spy, 0, sizeof spy);
    spy.real = ctx->gpu->driver;
    spy.mine = *spy.real;
    spy.mine.upload = upload, spy.mine.download = download, spy.mine.send = send, spy.mine.fetch = fetch;
    spy.mine.flag = flag, spy.mine.settle = settle, spy.mine.pinned = pinned, spy.mine.reaches = reaches;
    ctx->gpu->driver = &spy.mine;
    return ctx;
}

static void forget(void)
{
    memset(spy.calls, 0, sizeof spy.calls);
}

static void end(tulle_ctx *ctx)
{
    ctx->gpu->driver = spy.real;
    tulle_ctx_free(ctx);
}

/* A context whose device locks memory as `lock` does, whatever its driver can. */
static tulle_ctx *locking(void)
{
    tulle_ctx *ctx = spied();
    tl_pins_close(ctx->gpu->pins);
    ctx->gpu->pins = NULL;
    if (tl_pins_create(&ctx->base, (tl_pins_driver){NULL, lock, unlock}, &ctx->gpu->pins) != TULLE_OK) abort();
    return ctx;
}

/* ---- there and back */

/* One row with so many entries: columns of 4 bytes, values of 8. */
static ref one_row(int64_t entries)
{
    ref A = ref_new(1, entries > 0 ? entries : 1, entries, f64);
    for (int64_t i = 0; i < entries; i++) ref_set_col(&A, i, i);
    ref_set_ptr(&A, 1, entries);
    ref_fill(&A, REF_REALS, 3);
    return A;
}

static bool there_and_back(tulle_ctx *ctx, const tulle_csr *A)
{
    tulle_matrix *there = gpu_moved(ctx, A, TULLE_DEVICE), *back = NULL;
    bool same = false;
    if (there) {
        tulle_csr t = tulle_matrix_view(there);
        back = gpu_moved(ctx, &t, TULLE_HOST);
    }
    if (back) {
        tulle_csr b = tulle_matrix_view(back);
        same = b.nnz == A->nnz && memcmp(b.col_idx, A->col_idx, (size_t)A->nnz * 4) == 0
            && memcmp(b.values, A->values, (size_t)A->nnz * 8) == 0;
    }
    tulle_matrix_free(there);
    tulle_matrix_free(back);
    return same;
}

static int slots_of(int64_t bytes)
{
    return bytes < SHORT ? 0 : (int)((bytes + SLOT - 1) / SLOT);
}

static void every_length_comes_back(void)
{
    static const int64_t entries[] = {1, SHORT / 8 - 1, SHORT / 8, SHORT / 4 + 1, SLOT / 8 - 1, SLOT / 8, SLOT / 8 + 1,
                                      SLOTS * SLOT / 8, SLOTS * SLOT / 8 + 1, SLOTS * SLOT / 4 + SLOT / 8 + 3};
    tulle_ctx *ctx = spied();
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const int64_t n = entries[i];
        ref A = one_row(n);
        const int slots = slots_of(4 * n) + slots_of(8 * n);
        for (int turn = 0; turn < 2; turn++) {          /* the second time slots begin somewhere else */
            forget();
            tulle_ctx_trim(ctx);                        /* memory that comes back from the pool would be locked */
            CHECK(there_and_back(ctx, &A.view), "%" PRId64 " entries", n);
            CHECK(spy.calls[SEND] == slots && spy.calls[FETCH] == slots, "%" PRId64 " entries: %d and %d slots, not %d", n,
                  spy.calls[SEND], spy.calls[FETCH], slots);
        }
        ref_free(&A);
    }
    end(ctx);
}

static void dense_matrices_come_back(void)
{
    enum { ROWS = 1 << 18, COLS = 3 };
    tulle_ctx *ctx = spied();
    tulle_dense_matrix *there = NULL, *back = NULL;
    double *values = malloc(sizeof *values * ROWS * COLS);
    REQUIRE(values, "memory");
    for (int64_t i = 0; i < ROWS * COLS; i++) values[i] = (double)(i * 7 % 1000);
    tulle_dense X = tulle_dense_make(ROWS, COLS, COLS, TULLE_BY_ROWS, values, TULLE_F64);
    CHECK(tulle_dense_move(ctx, &X, TULLE_DEVICE, &there) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense t = tulle_dense_view(there);
    CHECK(tulle_dense_move(ctx, &t, TULLE_HOST, &back) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense b = tulle_dense_view(back);
    CHECK(memcmp(b.values, values, sizeof *values * ROWS * COLS) == 0, "other values");
    CHECK(spy.calls[SEND] == 2 && spy.calls[FETCH] == 2, "%d and %d slots", spy.calls[SEND], spy.calls[FETCH]);
    tulle_dense_free(there);
    tulle_dense_free(back);
    free(values);
    end(ctx);
}

/* ---- products and plans */

static pair long_arrays(double per_row)
{
    const ref_kind k = REF_INTEGERS;
    return (pair){ref_permutation(22, 30000, f64), ref_random(23, 30000, 40000, per_row, k, f64), "rows exchanged"};
}

static void products_and_plans(void)
{
    pair p = long_arrays(12);
    tulle_ctx *ctx = spied();
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr w = tulle_matrix_view(want);
    for (int turn = 0; turn < 3; turn++) {
        forget();
        gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &w, p.name);
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        const double none = 0, little = 1e-6;
        CHECK(spy.calls[SEND] >= 2 && spy.calls[FETCH] >= 1, "%d and %d slots", spy.calls[SEND], spy.calls[FETCH]);
        CHECK(s.sec_upload > none && s.sec_download > none && s.sec_symbolic >= none && s.sec_numeric >= none
              && s.sec_upload + s.sec_symbolic + s.sec_numeric + s.sec_download <= s.sec_total + little,
              "%g up, %g, %g, %g down, of %g s", s.sec_upload, s.sec_symbolic, s.sec_numeric, s.sec_download, s.sec_total);
    }
    tulle_plan *plan = NULL;
    tulle_matrix *C = NULL;
    forget();
    CHECK(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_plan_multiply(plan, p.A.view.values, p.B.view.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &w, "a plan"), "a wrong product");
    CHECK(spy.calls[SEND] >= 2 && spy.calls[FETCH] >= 2, "a plan: %d and %d slots", spy.calls[SEND], spy.calls[FETCH]);
    tulle_matrix_free(C);
    tulle_plan_free(plan);
    tulle_matrix_free(want);
    end(ctx);
    pair_free(&p);
}

/* ---- where the driver copies alone */

static void without_slots(void)
{
    ref A = one_row(SLOT / 8 + 5);
    for (int way = 0; way < 2; way++) {
        tulle_ctx *ctx = spied();
        spy.no_pinned = way == 0;
        spy.reached = way == 1;
        CHECK(there_and_back(ctx, &A.view), "way %d", way);
        CHECK(!spy.calls[SEND] && !spy.calls[FETCH] && spy.calls[UPLOAD] >= 2 && spy.calls[DOWNLOAD] >= 2,
              "way %d: %d and %d slots", way, spy.calls[SEND], spy.calls[FETCH]);
        CHECK(!*tulle_ctx_error(ctx), "way %d: %s", way, tulle_ctx_error(ctx));
        end(ctx);
    }
    ref_free(&A);
}

/* ---- copies that fail: a sentence, nothing lost, and the next product is right */

static void every_copy_fails_once(void)
{
    static const char *const names[CALLS] = {"upload", "download", "send", "fetch", "flag", "settle"};
    pair p = long_arrays(12);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr w = tulle_matrix_view(want);
    tulle_ctx *ctx = spied();
    for (int call = 0; call < CALLS; call++) {
        int failed = 0;
        for (int n = 1; n < 60; n++) {
            tulle_matrix *C = NULL;
            forget();
            spy.fail_call = call, spy.fail_at = n;
            tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
            const bool reached = spy.calls[call] >= n;
            spy.fail_at = 0;
            CHECK((status != TULLE_OK) == reached && (C == NULL) == reached, "%s %d: %s", names[call], n,
                  tulle_status_name(status));
            if (reached) CHECK(strstr(tulle_ctx_error(ctx), "made to fail"), "%s %d: %s", names[call], n, tulle_ctx_error(ctx));
            tulle_matrix_free(C);
            if (!reached) break;
            if (++failed % 2) tulle_ctx_trim(ctx);      /* with copies under way, perhaps */
            gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &w, names[call]);
        }
        CHECK(failed > 0 && failed < 59, "%s failed %d times", names[call], failed);
    }
    end(ctx);
    tulle_matrix_free(want);
    pair_free(&p);
}

/* ---- C in portions of rows */

/* Rows of all classes: long ones, empty ones, some of a single entry. */
static pair many_rows(ref_types t)
{
    return (pair){ref_power(31, 35001, 2000, 12, REF_INTEGERS, t), ref_power(32, 2000, 3000, 150, REF_INTEGERS, t), "many rows"};
}

static int64_t rows_of(const tulle_stats *s)
{
    int64_t rows = 0;
    for (int i = 0; i < s->shares; i++) rows += s->share[i].rows;
    return rows;
}

static struct { int portions; } heard;

static void listen(void *user, const char *line)
{
    const char *at = strstr(line, "numeric step: in ");
    (void)user;
    if (at && strstr(line, "portions of rows")) heard.portions = atoi(at + 17);
}

static void portions_of_rows(void)
{
    static const int cuts[] = {2, 3, 100};      /* rows are enough for three */
    static const char *const policies[] = {"auto", "speck", "regsort"};
    static const ref_types wide = {TULLE_CF64, TULLE_I64, TULLE_I64};
    for (int types = 0; types < 2; types++) {
        pair p = many_rows(types ? wide : f64);
        tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_csr w = tulle_matrix_view(want);
        for (int locks = 0; locks < 2; locks++) {
            tulle_ctx *ctx = locking();
            spy.no_locks = !locks;
            tulle_ctx_set_trace(ctx, listen, NULL);
            for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++)
                for (int i = 0; i < 3 - 2 * types; i++) {
                    if ((c + (size_t)i) % 3 == 2 && few()) continue;
                    tulle_options o = {.policy = policies[i]};
                    tulle_stats s, whole;
                    ctx->gpu->portion_products = UINT64_MAX;
                    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &w, "as a whole");
                    tulle_ctx_stats(ctx, &whole);
                    ctx->gpu->portion_products = (uint64_t)(whole.products / cuts[c]);
                    heard.portions = 0;
                    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &w, policies[i]);
                    tulle_ctx_stats(ctx, &s);
                    CHECK(heard.portions == (cuts[c] < 3 ? cuts[c] : 3), "%s: %d portions of %d", policies[i],
                          heard.portions, cuts[c]);
                    CHECK(rows_of(&s) == p.A.view.rows && s.products == whole.products && s.c_nnz == whole.c_nnz,
                          "%s: %" PRId64 " rows, %" PRId64 " products", policies[i], rows_of(&s), s.products);
                    const double none = 0, little = 1e-6;
                    CHECK(s.sec_symbolic >= none && s.sec_numeric >= none && s.sec_download > none
                          && s.sec_upload + s.sec_symbolic + s.sec_numeric + s.sec_download <= s.sec_total + little,
                          "%s: times", policies[i]);
                }
            /* what has no portions: zeros left out, a memory limit, the stages timed, other widths of columns */
            const tulle_options others[] = {{.drop_zeros = 1}, {.memory_limit = (uint64_t)1 << 32}, {.time_stages = 1},
                                            {.c_idx_type = types ? TULLE_I32 : TULLE_I64}};
            for (size_t i = 0; !locks && i < sizeof others / sizeof *others; i++) {
                tulle_matrix *other = cpu_product(&p.A.view, &p.B.view, &others[i]);
                tulle_csr v = tulle_matrix_view(other);
                heard.portions = 0;
                gpu_product_is(ctx, &p.A.view, &p.B.view, &others[i], 0, &v, "no portions");
                CHECK(heard.portions == 0, "option %d: %d portions", (int)i, heard.portions);
                tulle_matrix_free(other);
            }
            end(ctx);
        }
        tulle_matrix_free(want);
        pair_free(&p);
    }
}

/* Every request for device memory and every copy fails once. */
static void portions_that_fail(void)
{
    pair p = many_rows(f64);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr w = tulle_matrix_view(want);
    tulle_ctx *ctx = spied();
    ctx->gpu->portion_products = 1;
    int failed = 0, n = 1;
    for (bool done = false; !done && n < 100; n++) {
        tulle_matrix *C = NULL;
        gpu_fail_at(ctx, n);
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
        done = ctx->gpu->requests < (uint64_t)n;
        failed += status != TULLE_OK;
        tulle_csr c = tulle_matrix_view(C);
        if (status == TULLE_OK) CHECK(ref_same(&c, &w, "after a failure"), "request %d", n);
        tulle_matrix_free(C);
    }
    CHECK(n > 8 && n < 100, "%d requests, %d failed", n, failed);
    gpu_fail_at(ctx, 0);
    for (int call = FETCH; call < CALLS; call++)
        for (n = 1; n < 40; n += 3) {
            tulle_matrix *C = NULL;
            forget();
            spy.fail_call = call, spy.fail_at = n;
            tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
            const bool reached = spy.calls[call] >= n;
            spy.fail_at = 0;
            CHECK((status != TULLE_OK) == reached, "call %d, %d: %s", call, n, tulle_status_name(status));
            tulle_matrix_free(C);
            if (!reached) break;
        }
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &w, "in the end");
    end(ctx);
    tulle_matrix_free(want);
    pair_free(&p);
}

/* ---- results in locked memory */

static tulle_matrix *again(tulle_ctx *ctx, const pair *p, const tulle_csr *want)
{
    tulle_matrix *C = NULL;
    CHECK(tulle_multiply(ctx, &p->A.view, &p->B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    if (C) CHECK(ref_same(&c, want, "in locked memory"), "a wrong product");
    return C;
}

static void repeated_results_lie_in_locked_memory(void)
{
    pair p = long_arrays(25), less = long_arrays(15);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL), *want_less = cpu_product(&less.A.view, &less.B.view, NULL);
    tulle_csr w = tulle_matrix_view(want), w_less = tulle_matrix_view(want_less), arrays;
    tulle_ctx *ctx = locking();
    tulle_matrix_free(again(ctx, &p, &w));
    CHECK(spy.asked == 0 && spy.calls[FETCH] > 0, "the first: locked %d times, %d slots", spy.asked, spy.calls[FETCH]);
    for (int i = 0; i < 3; i++) {
        forget();
        tulle_matrix_free(again(ctx, &p, &w));
        CHECK(spy.asked == 2 && spy.locks == 2 && spy.calls[FETCH] == 0, "product %d: locked %d times, %d slots", i, spy.asked,
              spy.calls[FETCH]);
    }
    static const uint64_t mark = 0x5a5a5a5a5a5a5a5a;
    uint64_t *tail[2];                  /* a page that is unmapped would come back with zeros, and another one be locked */
    for (int k = 0; k < 2; k++) *(tail[k] = (uint64_t *)(void *)(spy.locked[k].p + spy.locked[k].bytes) - 1) = mark;
    for (int i = 0; i < 3; i++) {
        tulle_matrix_free(again(ctx, i % 2 ? &p : &less, i % 2 ? &w : &w_less));
        for (int k = 0; k < 2; k++) CHECK(spy.locks == 2 && *tail[k] == mark, "the end of locked memory %d is gone", k);
    }
    tulle_matrix *C = again(ctx, &p, &w), *other = again(ctx, &p, &w);
    CHECK(spy.locks == 2, "new blocks are not locked: %d are", spy.locks);

    pid_t child = calm_fork();
    if (child == 0) {                   /* its copies are not locked, and its driver is not there */
        const int locks = spy.locks;
        tulle_csr c = tulle_matrix_view(C);
        bool good = ref_same(&c, &w, "in a child");
        tulle_matrix_free(C);
        tulle_matrix_free(other);
        _exit(good && spy.locks == locks ? 0 : 1);
    }
    int code = -1;
    CHECK(child > 0 && waitpid(child, &code, 0) == child && code == 0, "a child: %d", code);

    tulle_matrix_free(other);
    CHECK(tulle_matrix_release(C, &arrays) == TULLE_OK, "the caller takes the arrays");
    tulle_ctx_trim(ctx);
    CHECK(spy.locks == 2, "they are still locked: %d", spy.locks);
    tulle_array_free(arrays.values);
    tulle_ctx_trim(ctx);
    CHECK(spy.locks == 1, "what went back to the system is not: %d", spy.locks);
    end(ctx);
    CHECK(spy.locks == 0, "nothing is without its device: %d", spy.locks);
    CHECK(memcmp(arrays.col_idx, w.col_idx, (size_t)w.nnz * 4) == 0, "arrays that outlived their context");
    tulle_array_free(arrays.col_idx);
    tulle_array_free(arrays.row_ptr);
    tulle_matrix_free(want);
    tulle_matrix_free(want_less);
    pair_free(&p);
    pair_free(&less);
}

static void memory_that_cannot_be_locked(void)
{
    pair p = long_arrays(25);
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr w = tulle_matrix_view(want);
    tulle_ctx *ctx = locking();
    spy.no_locks = true;
    for (int i = 0; i < 4; i++) tulle_matrix_free(again(ctx, &p, &w));
    CHECK(spy.asked == 1 && spy.calls[FETCH] > 0, "asked %d times", spy.asked);
    end(ctx);
    tulle_matrix_free(want);
    pair_free(&p);
}

TEST_MAIN(TEST(every_length_comes_back), TEST(dense_matrices_come_back), TEST(products_and_plans), TEST(without_slots),
          TEST(every_copy_fails_once), TEST(repeated_results_lie_in_locked_memory), TEST(memory_that_cannot_be_locked), TEST(portions_of_rows),
          TEST(portions_that_fail))
