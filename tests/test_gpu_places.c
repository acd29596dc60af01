/* SPDX-License-Identifier: MIT
 *
 * test_gpu_places.c - C that a device writes to its place in the arrays of the whole: by several devices, in
 * portions of rows, in blocks of rows under a limit; in memory of which the beginning is locked since an
 * earlier product; with copies that fail and products that are cancelled while another device waits.
 *
 * The driver of the device is watched: an array that is copied is locked as a whole or not at all. */
#define _GNU_SOURCE
#include "gpu.h"
#include "several.h"
#include <stdatomic.h>
#include <unistd.h>

enum { SECONDS = 600, DEVICES = 2 };

/* ---- the drivers of the devices */

enum { DOWNLOAD, FETCH, FLAG, CALLS };
static struct {
    const tl_driver *real[DEVICES];
    tl_driver        mine[DEVICES];
    atomic_int       calls[CALLS], crossings, inside, outside;  /* copies to locked memory, and other long ones */
    atomic_int       fail_call, fail_at;
    atomic_flag      busy;
    struct { char *p; uint64_t bytes; } locked[32];
    int              locks, asked, refused;
    uintptr_t        to[4096];          /* where copies to locked memory went       */
} spy;

static void enter(void)
{
    while (atomic_flag_test_and_set(&spy.busy)) usleep(10);
}

static void leave(void)
{
    atomic_flag_clear(&spy.busy);
}

static bool reaches(const tl_device *d, const void *p)
{
    bool in = false;
    (void)d;
    enter();
    for (int i = 0; i < spy.locks; i++)
        in = in || ((const char *)p >= spy.locked[i].p && (const char *)p < spy.locked[i].p + spy.locked[i].bytes);
    leave();
    return in;
}

static void look(const void *to, uint64_t bytes)
{
    const bool first = reaches(NULL, to), last = reaches(NULL, (const char *)to + bytes - 1);
    if (first != last) atomic_fetch_add(&spy.crossings, 1);
    if (first) spy.to[atomic_fetch_add(&spy.inside, 1) % 4096] = (uintptr_t)to;
    else if (bytes >= 1 << 18) atomic_fetch_add(&spy.outside, 1);
}

static tulle_status failing(tl_base *b, int call)
{
    const int n = atomic_fetch_add(&spy.calls[call], 1) + 1;
    if (atomic_load(&spy.fail_call) != call || n != atomic_load(&spy.fail_at)) return TULLE_OK;
    usleep(1500);                       /* another device waits by now */
    return tl_fail(b, TULLE_EDRIVER, "the copy was made to fail");
}

static tulle_status download(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes)
{
    tulle_status status = failing(b, DOWNLOAD);
    if (bytes) look(to, bytes);
    return status != TULLE_OK ? status : spy.real[0]->download(b, d, to, from, bytes);
}

static tulle_status fetch(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes)
{
    tulle_status status = failing(b, FETCH);
    look(to, bytes);
    return status != TULLE_OK ? status : spy.real[0]->fetch(b, d, lane, to, from, bytes);
}

static tulle_status flag(tl_base *b, tl_device *d, int lane, int i)
{
    tulle_status status = failing(b, FLAG);
    return status != TULLE_OK ? status : spy.real[0]->flag(b, d, lane, i);
}

static bool lock(void *device, void *p, uint64_t bytes)
{
    (void)device;
    enter();
    spy.asked++;
    for (int i = 0; i < spy.locks; i++) CHECK(spy.locked[i].p != p, "locked twice");
    const bool room = spy.locks < 32;
    if (room) spy.locked[spy.locks].p = p;
    if (room) spy.locked[spy.locks++].bytes = bytes;
    leave();
    return room;
}

static void unlock(void *device, void *p)
{
    int i = 0;
    (void)device;
    enter();
    while (i < spy.locks && spy.locked[i].p != p) i++;
    CHECK(i < spy.locks, "what is unlocked was not locked");
    if (i < spy.locks) spy.locked[i] = spy.locked[--spy.locks];
    leave();
}

static bool device_lock(tl_device *d, void *p, uint64_t bytes)
{
    if (spy.real[0]->lock(d, p, bytes)) return lock(d, p, bytes);
    spy.refused++;
    return false;
}

static void device_unlock(tl_device *d, void *p)
{
    unlock(d, p);
    spy.real[0]->unlock(d, p);
}

/* A device whose driver is watched; one that cannot lock memory seems to. */
static void watch(tulle_ctx *ctx, int i)
{
    spy.real[i] = ctx->gpu->driver;
    spy.mine[i] = *spy.real[i];
    spy.mine[i].download = download, spy.mine[i].fetch = fetch, spy.mine[i].flag = flag;
    spy.mine[i].reaches = reaches;
    ctx->gpu->driver = &spy.mine[i];
    if (spy.real[i]->lock) {
        spy.mine[i].lock = device_lock, spy.mine[i].unlock = device_unlock;
        return;
    }
    if (tl_pins_create(&ctx->base, (tl_pins_driver){NULL, lock, unlock}, &ctx->gpu->pins) != TULLE_OK) abort();
}

/* The device twice, which work as if they were two, or one of them and the CPU; or the device alone. */
static tulle_ctx *watched(int devices, bool host)
{
    const char *other = getenv("TULLE_TEST_SECOND");
    char names[128];
    tulle_ctx *ctx = NULL;
    alarm(SECONDS);
    gpu_stay();
    memset(&spy, 0, sizeof spy);
    snprintf(names, sizeof names, "%s%s%s", gpu_name(), devices + host > 1 ? "," : "",
             host ? "cpu" : devices < 2 ? "" : other && *other ? other : gpu_name());
    if (tulle_ctx_create(names, NULL, &ctx) != TULLE_OK) abort();
    for (int i = 0; i < devices; i++) watch(ctx->several ? ctx->several->part[i] : ctx, i);
    for (int i = 0; ctx->several && i < ctx->several->count; i++) ctx->several->twins[i] = 1;
    return ctx;
}

static void end(tulle_ctx *ctx)
{
    tulle_ctx_trim(ctx);
    for (int i = 0; i < DEVICES; i++) {
        tulle_ctx *part = ctx->several ? ctx->several->part[i] : i ? NULL : ctx;
        if (part && part->gpu) part->gpu->driver = spy.real[i];
    }
    tulle_ctx_free(ctx);
    CHECK(spy.locks == 0, "%d blocks are locked still", spy.locks);
}

static void part_rows(int64_t rows)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, rows);
    if (rows > 0) setenv("TULLE_PART_ROWS", text, 1);
    else unsetenv("TULLE_PART_ROWS");
}

/* ---- products whose C differs in size, but not in its upper bound */

enum { INNER = 600, COLS = 4000 };

/* B has `length` entries a row, all of them in its first columns: the fewer columns, the smaller C. */
static pair product_of(int64_t rows, int per_row, int64_t length, int64_t columns)
{
    pair p = {ref_random(41, rows, INNER, per_row, REF_INTEGERS, f64), ref_new(INNER, COLS, INNER * length, f64), "places"};
    const int64_t step = columns / (length + 1), firsts = columns - (length - 1) * step;
    for (int64_t i = 0; i < INNER; i++) {
        for (int64_t k = 0; k < length; k++) ref_set_col(&p.B, length * i + k, i % firsts + k * step);
        ref_set_ptr(&p.B, i + 1, length * (i + 1));
    }
    ref_fill(&p.B, REF_INTEGERS, 5);
    return p;
}

static struct { int placed, of, portions, into_c; } heard;

static void listen(void *user, const char *line)
{
    const char *at = strstr(line, "places in C: ");
    (void)user;
    if (at) sscanf(at, "places in C: %d of %d", &heard.placed, &heard.of);
    if (strstr(line, "portions of rows")) heard.portions++;
}

static bool whole_or_not(const tulle_csr *c)
{
    const struct { const char *p; uint64_t bytes; } arrays[] = {{(const char *)c->col_idx, (uint64_t)c->nnz * 4},
                                                                {(const char *)c->values, (uint64_t)c->nnz * 8}};
    bool good = true;
    for (int i = 0; i < 2; i++)
        good = good && reaches(NULL, arrays[i].p) == reaches(NULL, arrays[i].p + arrays[i].bytes - 1);
    return good;
}

static tulle_status run(tulle_ctx *ctx, const pair *p, const tulle_options *o, const tulle_csr *want)
{
    tulle_matrix *C = NULL;
    memset(&heard, 0, sizeof heard);
    tulle_status status = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C);
    const tulle_csr c = tulle_matrix_view(C);
    if (status == TULLE_OK) CHECK(ref_same(&c, want, p->name) && whole_or_not(&c), "%" PRId64 " entries", c.nnz);
    else CHECK(!C, "an error and a matrix");
    for (int i = 0; C && i < atomic_load(&spy.inside) && i < 4096; i++) {
        const uintptr_t values = (uintptr_t)c.values;
        heard.into_c += spy.to[i] >= values && spy.to[i] < values + (uintptr_t)c.nnz * 8;
    }
    tulle_matrix_free(C);
    return status;
}

/* Two devices; one and the CPU; one in blocks of rows; two with ranges long enough for portions of rows. */
static const struct { int devices, host; uint64_t limit; int64_t rows, per_row, length, columns; bool portions;
} ways[] = {{2, 0, 0, 8000, 3, 60, 130, false}, {1, 1, 0, 8000, 3, 60, 130, false},
            {1, 0, 14 << 20, 8000, 3, 60, 130, false}, {2, 0, 0, 72000, 2, 10, 13, true}};

static void in_one_way(int way)
{
    static const int turns[] = {0, 0, 1, 1, 0, 1, 1, 1};
    const int64_t rows = ways[way].rows, length = ways[way].length;
    const int per_row = (int)ways[way].per_row;
    const bool two = ways[way].devices == 2;
    pair p[2] = {product_of(rows, per_row, length, ways[way].columns), product_of(rows, per_row, length, COLS)};
    tulle_matrix *want[2];
    for (int i = 0; i < 2; i++) want[i] = cpu_product(&p[i].A.view, &p[i].B.view, NULL);
    tulle_ctx *ctx = watched(ways[way].devices, ways[way].host);
    int all = 0, inside = 0, partly = 0, into_c = 0;
    tulle_ctx_set_trace(ctx, listen, NULL);
    for (int i = 0; two && i < 2; i++) ctx->several->part[i]->gpu->portion_products = 1;
    part_rows(ways[way].limit ? 0 : rows / (ways[way].portions ? 2 : 4));
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        const tulle_csr w = tulle_matrix_view(want[turns[i]]);
        const tulle_options o = {.memory_limit = ways[way].limit};
        atomic_store(&spy.inside, 0);
        atomic_store(&spy.outside, 0);
        CHECK(run(ctx, &p[turns[i]], &o, &w) == TULLE_OK, "way %d: %s", way, tulle_ctx_error(ctx));
        CHECK(atomic_load(&spy.crossings) == 0, "way %d, turn %d: %d copies across the end of locked memory", way,
              (int)i, atomic_load(&spy.crossings));
        into_c += heard.into_c;
        all += heard.placed == heard.of;
        inside += atomic_load(&spy.inside) > 0;
        partly += atomic_load(&spy.inside) > 0 && atomic_load(&spy.outside) > 0;
        if (two) CHECK(heard.of == (ways[way].portions ? 2 : 4), "%d ranges", heard.of);
        CHECK(!ways[way].portions || heard.portions > 0, "no portions");
    }
    CHECK(spy.refused || (spy.asked > 0 && inside >= 3 && partly > 0), "way %d: %d locks, copies to locked memory in %d turns, and "
          "beside it in %d", way, spy.asked, inside, partly);
    CHECK(spy.refused || into_c > 0, "way %d: no copy went directly to C", way);
    CHECK(!two || all > 0, "way %d: never were all ranges in their places", way);
    part_rows(0);
    end(ctx);
    for (int i = 0; i < 2; i++) {
        tulle_matrix_free(want[i]);
        pair_free(&p[i]);
    }
}

static void the_beginning_of_c_is_locked(void)
{
    for (int way = 0; way < (int)(sizeof ways / sizeof *ways); way++) in_one_way(way);
}

/* All policies: bhsparse counts C only after it has computed it. */
static void every_policy_has_its_places(void)
{
    pair p = {ref_random(41, 200, 150, 6, REF_INTEGERS, f64), ref_power(42, 150, 300, 90, REF_INTEGERS, f64), "policies"};
    const tulle_options without = {.drop_zeros = 1};
    tulle_matrix *want[2] = {cpu_product(&p.A.view, &p.B.view, NULL), cpu_product(&p.A.view, &p.B.view, &without)};
    tulle_ctx *ctx = watched(2, false);
    tulle_options o;
    const char *name;
    int placed = 0;
    tulle_ctx_set_trace(ctx, listen, NULL);
    part_rows(40);
    for (int way = 0; gpu_way(way, &o, &name); way++)
        for (int zeros = 0; zeros < 2; zeros++) {
            const tulle_csr w = tulle_matrix_view(want[zeros]);
            o.drop_zeros = zeros;
            CHECK(run(ctx, &p, &o, &w) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
            placed += heard.placed;
        }
    CHECK(placed > 0, "none of the ranges was written to its place");
    part_rows(0);
    end(ctx);
    for (int i = 0; i < 2; i++) tulle_matrix_free(want[i]);
    pair_free(&p);
}

/* ---- failures */

static void copies_that_fail_while_others_wait(void)
{
    pair p = {ref_random(41, 400, 300, 9, REF_INTEGERS, f64), ref_random(42, 300, 500, 30, REF_INTEGERS, f64), "failing"};
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    for (int host = 0; host < 2; host++) {
        tulle_ctx *ctx = watched(2 - host, host);
        int failed = 0;
        part_rows(60);
        for (int call = 0; call < CALLS; call++)
            for (int n = 1; n < 60; n += call == DOWNLOAD ? 1 : 3) {
                for (int i = 0; i < CALLS; i++) atomic_store(&spy.calls[i], 0);
                atomic_store(&spy.fail_call, call);
                atomic_store(&spy.fail_at, n);
                tulle_status status = run(ctx, &p, NULL, &w);
                const bool reached = atomic_load(&spy.calls[call]) >= n;
                atomic_store(&spy.fail_at, 0);
                CHECK((status != TULLE_OK) == reached, "call %d, %d: %s", call, n, tulle_status_name(status));
                if (!reached) break;
                CHECK(strstr(tulle_ctx_error(ctx), "made to fail"), "call %d, %d: %s", call, n, tulle_ctx_error(ctx));
                failed++;
                if (failed % 5 == 0) CHECK(run(ctx, &p, NULL, &w) == TULLE_OK, "afterwards: %s", tulle_ctx_error(ctx));
            }
        CHECK(failed > 10, "%d copies failed", failed);
        CHECK(run(ctx, &p, NULL, &w) == TULLE_OK, "in the end: %s", tulle_ctx_error(ctx));
        part_rows(0);
        end(ctx);
    }
    tulle_matrix_free(want);
    pair_free(&p);
}

/* Each request for device memory fails once, before and after a range was counted: it comes back in halves. */
static void ranges_come_back_while_others_wait(void)
{
    pair p = {ref_random(41, 400, 300, 9, REF_INTEGERS, f64), ref_random(42, 300, 500, 30, REF_INTEGERS, f64), "halves"};
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    tulle_ctx *ctx = watched(2, false);
    part_rows(60);
    for (int n = 1; n < 45; n++) {
        gpu_fail_at(ctx->several->part[n % 2], n);
        CHECK(run(ctx, &p, NULL, &w) == TULLE_OK, "request %d: %s", n, tulle_ctx_error(ctx));
        gpu_fail_at(ctx->several->part[n % 2], 0);
    }
    part_rows(0);
    end(ctx);
    tulle_matrix_free(want);
    pair_free(&p);
}

static int stop_at(void *user, const char *stage, double fraction)
{
    int *left = user;
    (void)stage;
    (void)fraction;
    return --*left <= 0;
}

static void cancelling_ends_those_who_wait(void)
{
    pair p = {ref_random(41, 400, 300, 9, REF_INTEGERS, f64), ref_random(42, 300, 500, 30, REF_INTEGERS, f64), "cancelled"};
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL);
    const tulle_csr w = tulle_matrix_view(want);
    tulle_ctx *ctx = watched(2, false);
    int cancelled = 0;
    part_rows(25);
    CHECK(run(ctx, &p, NULL, &w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int n = 1; n < 40; n++) {
        int left = n;
        tulle_ctx_set_progress(ctx, stop_at, &left);
        tulle_status status = run(ctx, &p, NULL, &w);
        CHECK(status == TULLE_OK || status == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
        cancelled += status == TULLE_ECANCEL;
        tulle_ctx_set_progress(ctx, NULL, NULL);
    }
    CHECK(cancelled > 3, "%d were cancelled", cancelled);
    CHECK(run(ctx, &p, NULL, &w) == TULLE_OK, "in the end: %s", tulle_ctx_error(ctx));
    part_rows(0);
    end(ctx);
    tulle_matrix_free(want);
    pair_free(&p);
}

TEST_MAIN(TEST(the_beginning_of_c_is_locked), TEST(every_policy_has_its_places), TEST(copies_that_fail_while_others_wait),
          TEST(ranges_come_back_while_others_wait), TEST(cancelling_ends_those_who_wait))
