/* SPDX-License-Identifier: MIT
 *
 * test_several_places.c - ranges of rows of C that several devices write where they belong: C has the bits of
 * one device whatever the order in which ranges are counted, whichever of them fails or is returned in halves
 * at whatever stage while others wait for their places, with limits, memory hooks and cancellation; nobody
 * waits for ever.
 *
 * Devices with memory of their own are played by the CPU: an engine that computes a range, tells how many
 * entries it has, waits, and copies them where it is told to. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <unistd.h>
#include "blocks_help.h"
#include "several.h"
#include "ways.h"

enum { SECONDS = 100 };                 /* of a test: then somebody waits for ever */

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* ---- devices */

enum { BEFORE, COUNTED, PLACED, STAGES };

static struct {
    atomic_int   begun, given, own;     /* ranges; those with a place and those without            */
    int          fail_range, stage;     /* the n-th range fails at this stage; 0: none             */
    tulle_status with;
    bool         all;                   /* it and all later ones with more than one row            */
    int          delay;                 /* microseconds before range n is counted: n-th digit of a pattern */
} play;

static int late(int number)
{
    static const int patterns[][6] = {{0}, {900, 0, 0, 300, 0, 0}, {0, 900, 0, 0, 1500, 0},
                                      {300, 0, 900, 0, 300, 0}, {4000, 0, 0, 0, 0, 4000}};
    return patterns[play.delay][number % 6];
}

static void rest(int microseconds)
{
    if (microseconds) usleep((unsigned)microseconds);
}

static tulle_status fails(tulle_ctx *ctx, int number, int stage, int64_t rows)
{
    const bool now = play.stage == stage && play.fail_range > 0
                     && (number == play.fail_range || (play.all && number > play.fail_range && rows > 1));
    if (!now) return TULLE_OK;
    usleep(800);                        /* others wait for their places by now */
    return tl_fail(&ctx->base, play.with, "range %d was made to fail", number);
}

static void put(const tulle_csr *from, const tl_spot *spot, size_t index, size_t value)
{
    memcpy((char *)spot->col + (size_t)spot->at * index, from->col_idx, (size_t)from->nnz * index);
    if (spot->val)
        memcpy((char *)spot->val + (size_t)spot->at * value, from->values, (size_t)from->nnz * value);
}

static tulle_status compute(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_dest *dest = s->request.dest;
    tulle_matrix *C = NULL;
    tl_spot spot;
    const int number = atomic_fetch_add(&play.begun, 1) + 1;
    TRY(fails(ctx, number, BEFORE, row1 - row0));
    s->request.dest = NULL;
    status = tl_engine_cpu.run(ctx, s, row0, row1, &C);
    s->request.dest = dest;
    TRY(status);
    rest(late(number));
    if (dest && !s->options.drop_zeros && number % 3) dest->counted(dest->arg, C->view.nnz);
    TRY(fails(ctx, number, COUNTED, row1 - row0));
    const uint64_t held = atomic_load(&ctx->base.held) - s->held;       /* with this C, which a device has */
    if (held + tl_csr_bytes(&C->view) > s->request.memory_limit) {
        status = tl_fail(&ctx->base, TULLE_ELIMIT, "no room for range %d", number);
        goto done;
    }
    if (dest && dest->place(dest->arg, C->view.nnz, &spot)) {
        const size_t index = tl_index_size(C->view.idx_type), value = tl_type_size(C->view.val_type);
        atomic_fetch_add(&play.given, 1);
        const uint64_t more = atomic_load(&ctx->base.held) - s->held - held;
        CHECK(more == (uint64_t)C->view.nnz * (index + (spot.val ? value : 0)), "%" PRIu64 " bytes count", more);
        /* what a failure leaves behind */
        memset((char *)spot.col + (size_t)spot.at * index, 0x11, (size_t)C->view.nnz * index);
        TRY(fails(ctx, number, PLACED, row1 - row0));
        put(&C->view, &spot, index, value);
        tl_free(&ctx->base, C->col_idx);
        tl_free(&ctx->base, C->values);
        C->col_idx = C->values = NULL;
        C->view.col_idx = (char *)spot.col + (size_t)spot.at * index;
        C->view.values = spot.val ? (char *)spot.val + (size_t)spot.at * value : NULL;
    } else {
        atomic_fetch_add(&play.own, 1);
        TRY(fails(ctx, number, PLACED, row1 - row0));
    }
    *out = C;
    C = NULL;
done:
    tl_matrix_free(&ctx->base, C);
    return status;
}

static bool too_large(tulle_status status)
{
    return status == TULLE_ELIMIT || status == TULLE_ENOMEM;
}

static tl_engine device;

/* The first `devices` of the parts are devices, the others the CPU. */
static tulle_ctx *players(int parts, int devices, const tulle_mem *mem)
{
    char names[128] = "cpu";
    tulle_ctx *ctx = NULL;
    alarm(SECONDS);
    for (int i = 1; i < parts; i++) strcat(names, ",cpu");
    if (tulle_ctx_create(names, mem, &ctx) != TULLE_OK) return NULL;
    device = tl_engine_cpu;
    device.run = compute;
    device.on_host = false;
    device.too_large = too_large;
    for (int i = 0; i < devices; i++) ctx->several->part[i]->engine = &device;
    return ctx;
}

static void begin_play(void)
{
    memset(&play, 0, sizeof play);
    play.with = TULLE_ENOMEM;
}

static void part_rows(int64_t rows)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, rows);
    if (rows > 0) setenv("TULLE_PART_ROWS", text, 1);
    else unsetenv("TULLE_PART_ROWS");
}

static tulle_status product(tulle_ctx *ctx, const pair *p, const tulle_options *o, const tulle_csr *want)
{
    tulle_matrix *C = NULL;
    tulle_status status = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C);
    if (status == TULLE_OK) {
        const tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, want, p->name), "%s, %d ranges", p->name, atomic_load(&play.begun));
    } else CHECK(!C, "an error and a matrix");
    tulle_matrix_free(C);
    for (int i = 0; i < ctx->several->count; i++)
        CHECK(atomic_load(&ctx->several->part[i]->base.held) < 4096, "part %d holds %" PRIu64 " bytes", i,
              atomic_load(&ctx->several->part[i]->base.held));
    return status;
}

/* ---- products */

static void every_cut_and_order_gives_the_bits_of_one_device(void)
{
    int given = 0, own = 0;
    for (int parts = 1; parts <= 8; parts++)
        for (int i = 0; i < SMALL_PAIRS; i++) {
            ref_types t = ref_types_at((i + parts) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_ctx *ctx = players(parts < 2 ? 2 : parts, i % 3 ? parts : parts / 2, NULL);
            for (int64_t rows = 0; rows <= p.A.view.rows; rows++) {
                begin_play();
                play.delay = rows % 7 == 3 ? (int)(rows + i) % 4 : 0;
                part_rows(rows);
                CHECK(product(ctx, &p, NULL, &want.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                given += atomic_load(&play.given);
                own += atomic_load(&play.own);
            }
            part_rows(0);
            tulle_ctx_free(ctx);
            ref_free(&want);
            pair_free(&p);
        }
    CHECK(given > own && own > 0, "%d ranges were given places, %d were not", given, own);
}

static void widths_patterns_and_zeros_are_as_on_one_device(void)
{
    for (int devices = 0; devices <= 3; devices++)
        for (int k = 0; k < 24; k++) {
            ref_types t = {k % 2 ? TULLE_CF32 : TULLE_F64, TULLE_I32, k % 4 == 3 ? TULLE_I64 : TULLE_I32};
            pair p = {ref_random(3, 61, 41, 5, REF_CANCELLING, t), ref_random(4, 41, 71, 5, REF_CANCELLING, t),
                      "61x41"};
            tulle_options o = {.drop_zeros = k % 3 == 1, .c_ptr_type = k % 3, .c_idx_type = k / 3 % 3,
                               .c_place = k / 12};
            tulle_ctx *single = ctx_with(1), *ctx = players(3, devices, NULL);
            tulle_matrix *want = NULL;
            begin_play();
            if (k % 3 == 2) p.A.view.values = p.B.view.values = NULL;
            REQUIRE(tulle_multiply(single, &p.A.view, &p.B.view, &o, &want) == TULLE_OK, "%s",
                    tulle_ctx_error(single));
            const tulle_csr w = tulle_matrix_view(want);
            part_rows(1 + k % 13);
            CHECK(product(ctx, &p, &o, &w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            part_rows(0);
            tulle_matrix_free(want);
            pair_free(&p);
            tulle_ctx_free(ctx);
            tulle_ctx_free(single);
        }
}

/* Several threads a part, with counts made beforehand (a stencil), in one pass, and within small limits. */
static void threads_of_a_part_write_to_one_place(void)
{
    tulle_ctx *ctx = players(3, 0, NULL), *single = ctx_with(1);
    for (int k = 0; k < 4; k++) {
        pair p = {k < 2 ? ref_random(5, 1500, 900, 30, REF_REALS, f64) : ref_power(6, 900, 900, 300, REF_REALS, f64),
                  ref_random(7, 900, 1100, 24, REF_REALS, f64), "threads"};
        tulle_matrix *want = NULL;
        REQUIRE(tulle_ctx_set_threads(ctx, 3 + 2 * k) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(tulle_multiply(single, &p.A.view, &p.B.view, NULL, &want) == TULLE_OK, "%s",
                tulle_ctx_error(single));
        const tulle_csr w = tulle_matrix_view(want);
        const uint64_t bytes = (uint64_t)w.nnz * 12;
        for (int i = 0; i < 8; i++) {
            tulle_options o = {.memory_limit = i ? bytes + bytes / 2 * (uint64_t)i + (1 << 20) : 0,
                               .drop_zeros = i % 4 == 3};
            begin_play();
            part_rows(i % 2 ? 130 : 0);
            tulle_status status = product(ctx, &p, &o, &w);
            CHECK(status == TULLE_OK || (status == TULLE_ELIMIT && i), "%s", tulle_ctx_error(ctx));
        }
        part_rows(0);
        tulle_matrix_free(want);
        pair_free(&p);
    }
    tulle_ctx_free(single);
    tulle_ctx_free(ctx);
}

/* ---- memory */

typedef struct lines { char text[1 << 14]; size_t at; } lines;

static void note(void *user, const char *line)
{
    lines *l = user;
    int n = snprintf(l->text + l->at, sizeof l->text - l->at, "%s\n", line);
    if (n > 0 && l->at + (size_t)n < sizeof l->text) l->at += (size_t)n;
}

/* All ranges that are counted first are in their places, unless a wait took too long; then C exists once. */
static void c_exists_once(void)
{
    tulle_ctx *ctx = players(2, 0, NULL);
    tulle_matrix *M = NULL, *C = NULL;
    static lines l;
    bool once = false;
    REQUIRE(tulle_ctx_set_threads(ctx, 4) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_gallery(ctx, "poisson2d:300", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_csr m = tulle_matrix_view(M);
    part_rows(9000);
    tulle_ctx_set_trace(ctx, note, &l);
    for (int i = 0; i < 40 && !once; i++) {
        tulle_stats t;
        l = (lines){.at = 0};
        REQUIRE(tulle_multiply(ctx, &m, &m, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &t);
        once = strstr(l.text, "places in C: 10 of 10");
        const tulle_csr c = tulle_matrix_view(C);
        const uint64_t entries = (uint64_t)c.nnz * 12, pointers = (uint64_t)c.rows * 8;
        CHECK(t.peak_bytes >= entries + pointers, "%" PRIu64 " bytes of %" PRIu64, t.peak_bytes, entries);
        /* besides it: profile (10 bytes a row), and the workspace of four threads */
        if (once) CHECK(t.peak_bytes < entries + pointers + (uint64_t)c.rows * 10 + (12 << 20),
                        "%" PRIu64 " bytes for a C of %" PRIu64, t.peak_bytes, entries + pointers);
        tulle_matrix_free(C);
        C = NULL;
    }
    CHECK(once, "never were all ranges in their places: %s", l.text);
    part_rows(0);
    tulle_ctx_set_trace(ctx, NULL, NULL);
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
}

static uint64_t number_in(const char *sentence)
{
    const char *at = strstr(sentence, " need");
    while (at && *at && (*at < '0' || *at > '9')) at++;
    return at ? strtoull(at, NULL, 10) : 0;
}

/* From plenty down to what is refused, by small steps where C just fits. */
static void limits_are_kept_down_to_what_just_fits(void)
{
    pair p = {ref_random(5, 500, 400, 20, REF_REALS, f64), ref_random(6, 400, 700, 20, REF_REALS, f64), "limits"};
    ref want = ref_product(&p.A.view, &p.B.view);
    const uint64_t c_bytes = (uint64_t)want.view.nnz * 12 + 501 * 8;
    for (int devices = 0; devices <= 3; devices++) {
        tulle_ctx *ctx = players(3, devices, NULL);
        int kept = 0, shared = 0;
        for (uint64_t limit = 6 * c_bytes; limit > c_bytes / 2; limit -= limit / 24) {
            tulle_options o = {.memory_limit = limit};
            tulle_stats t;
            begin_play();
            part_rows(kept % 2 ? 60 : 17);
            tulle_status status = product(ctx, &p, &o, &want.view);
            if (status == TULLE_OK) {
                tulle_ctx_stats(ctx, &t);
                CHECK(t.peak_bytes <= limit, "%d devices: %" PRIu64 " bytes, the limit is %" PRIu64, devices,
                      t.peak_bytes, limit);
                kept++;
                shared += atomic_load(&play.given) > 0;
            } else {
                CHECK(status == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
                const uint64_t enough = number_in(tulle_ctx_error(ctx));
                if (devices == 3 || !enough) continue;
                o.memory_limit = enough;
                CHECK(product(ctx, &p, &o, &want.view) == TULLE_OK, "%" PRIu64 ": %s", enough,
                      tulle_ctx_error(ctx));
            }
        }
        CHECK(kept > 8 && (!devices || shared > 4), "%d devices: %d kept, %d shared", devices, kept, shared);
        part_rows(0);
        tulle_ctx_free(ctx);
    }
    ref_free(&want);
    pair_free(&p);
}

/* ---- failures */

/* A range that lacks memory at one stage comes back in halves, while others wait for their places: those that
 * had been counted after it keep them.  all: every later range fails, too, down to single rows. */
static void a_range_without_memory_comes_back_in_halves(void)
{
    pair p = {ref_random(5, 90, 40, 7, REF_REALS, f64), ref_random(6, 40, 70, 6, REF_REALS, f64), "halves"};
    ref want = ref_product(&p.A.view, &p.B.view);
    for (int parts = 2; parts <= 4; parts++)
        for (int devices = parts - 1; devices <= parts; devices++) {
            tulle_ctx *ctx = players(parts, devices, NULL);
            for (int k = 0; k < 10 * STAGES * 2; k++) {
                begin_play();
                play.stage = k % STAGES;
                play.all = k / STAGES % 2;
                play.fail_range = 1 + k / STAGES / 2;
                play.delay = k % 5;
                play.with = k % 2 ? TULLE_ENOMEM : TULLE_ELIMIT;
                part_rows(13);
                CHECK(product(ctx, &p, NULL, &want.view) == TULLE_OK, "%d parts, case %d: %s", parts, k,
                      tulle_ctx_error(ctx));
            }
            part_rows(0);
            tulle_ctx_free(ctx);
        }
    ref_free(&want);
    pair_free(&p);
}

static void an_error_of_one_device_ends_all(void)
{
    pair p = {ref_random(5, 90, 40, 7, REF_REALS, f64), ref_random(6, 40, 70, 6, REF_REALS, f64), "errors"};
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_ctx *ctx = players(4, 3, NULL);
    part_rows(9);
    for (int k = 0; k < 7 * STAGES; k++) {
        begin_play();
        play.stage = k % STAGES;
        play.fail_range = 1 + k / STAGES;
        play.with = TULLE_EDRIVER;
        play.delay = k % 4;
        tulle_status status = product(ctx, &p, NULL, &want.view);
        if (atomic_load(&play.begun) >= play.fail_range)
            CHECK(status == TULLE_EDRIVER && strstr(tulle_ctx_error(ctx), "was made to fail"), "case %d: %s", k,
                  tulle_ctx_error(ctx));
        begin_play();
        CHECK(product(ctx, &p, NULL, &want.view) == TULLE_OK, "afterwards: %s", tulle_ctx_error(ctx));
    }
    part_rows(0);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

typedef struct watcher { int calls, stop_at; } watcher;

static int watched(void *user, const char *stage, double fraction)
{
    watcher *w = user;
    (void)stage;
    (void)fraction;
    return w->stop_at && ++w->calls >= w->stop_at;
}

static void cancelling_ends_those_who_wait(void)
{
    pair p = {ref_random(5, 90, 40, 7, REF_REALS, f64), ref_random(6, 40, 70, 6, REF_REALS, f64), "cancelled"};
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_ctx *ctx = players(4, 3, NULL);
    int cancelled = 0;
    part_rows(9);
    for (int k = 0; k < 40; k++) {
        watcher w = {.stop_at = 1 + k};
        begin_play();
        play.delay = 4;
        tulle_ctx_set_progress(ctx, watched, &w);
        tulle_status status = product(ctx, &p, NULL, &want.view);
        CHECK(status == TULLE_OK || status == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
        cancelled += status == TULLE_ECANCEL;
        tulle_ctx_set_progress(ctx, NULL, NULL);
        begin_play();
        CHECK(product(ctx, &p, NULL, &want.view) == TULLE_OK, "afterwards: %s", tulle_ctx_error(ctx));
    }
    CHECK(cancelled > 3, "only %d products were cancelled", cancelled);
    part_rows(0);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- memory hooks: no address space can be reserved, and each allocation may fail */

typedef struct hooks { atomic_long live, calls, fail_at; } hooks;

static void *hooks_alloc(void *user, size_t bytes)
{
    hooks *h = user;
    if (atomic_fetch_add(&h->calls, 1) + 1 == atomic_load(&h->fail_at)) return NULL;
    atomic_fetch_add(&h->live, 1);
    return malloc(bytes);
}

static void hooks_free(void *user, void *p)
{
    hooks *h = user;
    if (p) atomic_fetch_sub(&h->live, 1);
    free(p);
}

static void with_memory_hooks_each_range_has_its_own_memory(void)
{
    pair p = {ref_random(5, 40, 40, 7, REF_REALS, f64), ref_random(6, 40, 70, 6, REF_REALS, f64), "hooks"};
    ref want = ref_product(&p.A.view, &p.B.view);
    bool last = false;
    part_rows(7);
    for (long n = 0; n < 3000 && !last; n += n < 120 ? 1 : 29) {
        hooks h = {.fail_at = n};
        tulle_mem mem = {hooks_alloc, hooks_free, &h};
        tulle_ctx *ctx = players(3, 2, &mem);
        begin_play();
        if (ctx) {
            tulle_status status = product(ctx, &p, NULL, &want.view);
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && n), "%s", tulle_ctx_error(ctx));
        }
        CHECK(atomic_load(&play.given) == 0, "a place in memory of hooks");
        last = n && atomic_load(&h.calls) < n;
        tulle_ctx_free(ctx);
        CHECK(atomic_load(&h.live) == 0, "allocation %ld: %ld blocks are left", n, atomic_load(&h.live));
    }
    CHECK(last, "more allocations than expected");
    part_rows(0);
    ref_free(&want);
    pair_free(&p);
}

/* ---- the places themselves */

static void places_follow_the_counts(void)
{
    tulle_ctx *ctx = ctx_with(1);
    tl_base *b = &ctx->base;
    int64_t products[20] = {0};
    tl_ranges r;
    tl_range *at[5];
    bool wait;
    REQUIRE(tl_ranges_make(b, products, 0, 20, 2, 4, &r) == TULLE_OK && r.count == 5, "five ranges");
    for (int i = 0; i < 4; i++) at[i] = tl_ranges_take(&r, i % 2, &wait);
    at[4] = at[3]->next;
    CHECK(tl_ranges_place(&r, at[0], &wait) == 0 && !wait, "the first one is known");
    CHECK(tl_ranges_place(&r, at[2], &wait) == -1 && wait, "waits for two that are being computed");
    tl_ranges_counted(&r, at[1], 10);
    CHECK(tl_ranges_place(&r, at[2], &wait) == -1 && wait, "waits for the first");
    CHECK(tl_ranges_open(&r, at[3]) == -1, "no open end without a place");
    CHECK(tl_ranges_place(&r, at[4], &wait) == -1 && !wait, "one before it is counted when it is done");
    CHECK(tl_ranges_open(&r, at[0]) == 0, "nothing after it has its place");
    CHECK(tl_ranges_place(&r, at[1], &wait) == -1 && !wait, "the first one is late now");
    tl_ranges_counted(&r, at[0], 5);
    CHECK(tl_ranges_place(&r, at[1], &wait) == 5 && tl_ranges_place(&r, at[2], &wait) == 15, "both at once");
    CHECK(tl_ranges_open(&r, at[1]) == -1 && tl_ranges_open(&r, at[0]) == -1, "others follow closely");
    tl_ranges_counted(&r, at[2], 7);
    CHECK(tl_ranges_place(&r, at[3], &wait) == 22, "the fourth");
    /* the second one comes back in halves, and those after it stay where they are */
    CHECK(tl_ranges_back(b, &r, at[1], false) && r.count == 6, "halves");
    tl_range *half = at[1]->next;
    CHECK(tl_ranges_place(&r, at[1], &wait) == 5 && tl_ranges_place(&r, at[3], &wait) == 22, "known places");
    CHECK(tl_ranges_place(&r, half, &wait) == -1 && !wait, "nobody has the first half");
    CHECK(tl_ranges_take(&r, 0, &wait) == at[1] && tl_ranges_open(&r, at[1]) == -1, "no open end before others");
    tl_ranges_counted(&r, at[1], 3);
    CHECK(tl_ranges_place(&r, half, &wait) == 8, "the second half");
    tl_ranges_counted(&r, half, 7);
    CHECK(tl_ranges_place(&r, at[2], &wait) == 15 && tl_ranges_place(&r, at[3], &wait) == 22, "as before");
    tl_ranges_done(b, &r);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(places_follow_the_counts),
          TEST(every_cut_and_order_gives_the_bits_of_one_device),
          TEST(widths_patterns_and_zeros_are_as_on_one_device), TEST(threads_of_a_part_write_to_one_place),
          TEST(c_exists_once), TEST(limits_are_kept_down_to_what_just_fits),
          TEST(a_range_without_memory_comes_back_in_halves), TEST(an_error_of_one_device_ends_all),
          TEST(cancelling_ends_those_who_wait), TEST(with_memory_hooks_each_range_has_its_own_memory))
