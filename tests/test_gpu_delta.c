/* SPDX-License-Identifier: MIT
 *
 * test_gpu_delta.c - policy delta: the limits of all bins, with and without bins, sorted by rank and by
 * radix; rows with deliberate collisions, that fill their table, that are dense or empty; types, far
 * columns, little shared memory, limits, blocks, plans, failing allocations, cancellation; decision trees
 * and the measurements for them.  Values are real wherever rows are compared: one warp computes each sum in
 * the order of A, so results have the bits of the CPU. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/engine.h"
#include "powers.h"
#include <math.h>
#include <unistd.h>

static const tulle_options delta = {.policy = "delta"};

/* The lines of the trace. */
typedef struct lines { char text[40][400]; int count; } lines;

static void keep(void *user, const char *line)
{
    lines *l = user;
    if (l->count < 40) snprintf(l->text[l->count++], sizeof *l->text, "%s", line);
}

static const char *line_with(const lines *l, const char *words)
{
    for (int i = 0; i < l->count; i++)
        if (strstr(l->text[i], words)) return l->text[i];
    return NULL;
}

/* The numbers N and M of "symbolic step: N rows were redone by a dense bitmap, the keys of M collided". */
static void redone(const lines *l, int *rows, int *collided)
{
    const char *line = line_with(l, "were redone");
    *rows = *collided = -1;
    if (line)
        sscanf(line, "symbolic step: %d rows were redone by a dense bitmap, the keys of %d collided", rows,
               collided);
}

static tulle_ctx *ctx_of(const char *balance, const char *sort, const char *shared)
{
    if (balance) setenv("TULLE_GPU_BALANCE", balance, 1);
    if (sort) setenv("TULLE_DELTA_SORT", sort, 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared);
    unsetenv("TULLE_GPU_BALANCE");
    unsetenv("TULLE_DELTA_SORT");
    return ctx;
}

/* ---- bins */

static int border_sizes(int64_t *sizes)
{
    static const int64_t borders[] = {32, 128, 256, 512, 1024, 2048};
    int rows = 0;
    for (int64_t n = 0; n <= 4; n++) sizes[rows++] = n;
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
        for (int64_t n = borders[i] - 1; n <= borders[i] + 1; n++) sizes[rows++] = n;
    sizes[rows++] = 0;
    sizes[rows++] = 5000;
    return rows;
}

static const struct { const char *balance, *sort; } modes[] = {
    {NULL, NULL}, {"on", "0"}, {"on", "4096"}, {"off", NULL}, {"off", "0"}};
enum { MODES = sizeof modes / sizeof *modes };

/* 40,000 columns: a row is dense from 3,041 entries on, or if shared memory is too small for 4,096 slots of
 * 12 bytes (48 KB, as with NVIDIA's OpenCL). */
static void borders(const char *shared)
{
    int64_t sizes[100];
    const int rows = border_sizes(sizes);
    for (int m = 0; m < MODES; m++) {
        tulle_ctx *ctx = ctx_of(modes[m].balance, modes[m].sort, shared);
        const int64_t most = tl_dynamic_bytes(&ctx->gpu->caps) < 4096 * 12 ? 1024 : 2048;
        CHECK(!shared || most == 1024, "there is room for all of it");
        for (same s = NONE; s <= ALL; s++) {
            ref A = sums(sizes, rows, REF_REALS, f64), B = powers(s, 40000, REF_REALS, f64),
                want = ref_product(&A.view, &B.view);
            tulle_stats st;
            int64_t hash = 0, dense = 0;
            char name[64];
            for (int i = 0; i < rows; i++) {
                int64_t n = ref_ptr(&want.view, i + 1) - ref_ptr(&want.view, i);
                hash += n > 0 && n <= most;
                dense += n > most;
            }
            snprintf(name, sizeof name, "mode %d, same %d", m, (int)s);
            gpu_product_is(ctx, &A.view, &B.view, &delta, m % 2 ? PLACES - 1 : 0, &want.view, name);
            tulle_ctx_stats(ctx, &st);
            bool bins = !modes[m].balance || strcmp(modes[m].balance, "on") == 0;
            CHECK(share_rows(&st, "dense") == dense
                      && share_rows(&st, "hash") == (bins ? hash : rows - dense),
                  "%s: hash %" PRId64 " of %" PRId64 ", dense %" PRId64 " of %" PRId64, name,
                  share_rows(&st, "hash"), hash, share_rows(&st, "dense"), dense);
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
        }
        tulle_ctx_free(ctx);
    }
}

static void every_border_of_the_bins(void)
{
    borders(NULL);
    borders("49152");
}

/* ---- collisions */

/* Row i of A refers to row i of B, with `sizes[i]` columns at distance `step`, and to more rows with the
 * same columns. */
static pair strided(const int64_t *sizes, int rows, int64_t step, int64_t cols, ref_types t)
{
    enum { TIMES = 3 };
    int64_t nnz = 0, at = 0;
    for (int i = 0; i < rows; i++) nnz += sizes[i];
    pair p = {ref_new(rows, TIMES * rows, TIMES * rows, t), ref_new(TIMES * rows, cols, TIMES * nnz, t),
              "strided"};
    for (int i = 0; i < TIMES * rows; i++) {
        for (int64_t j = 0; j < sizes[i / TIMES]; j++) ref_set_col(&p.B, at++, (i / TIMES + j * step) % cols);
        ref_set_ptr(&p.B, i + 1, at);
        ref_set_col(&p.A, i, i);
    }
    for (int i = 0; i < rows; i++) ref_set_ptr(&p.A, i + 1, TIMES * (i + 1));
    ref_fill(&p.A, REF_REALS, 7);
    ref_fill(&p.B, REF_REALS, 8);
    return p;
}

/* Columns at distance 4,096 have the same hash in every table. */
static void rows_that_collide_on_purpose(void)
{
    static const int64_t sizes[] = {2, 10, 11, 30, 42, 60, 85, 100, 150, 170, 300, 341, 3};
    const int rows = (int)(sizeof sizes / sizeof *sizes);
    for (int m = 0; m < MODES; m++)
        for (int far = 0; far < 2; far++) {
            tulle_ctx *ctx = ctx_of(modes[m].balance, modes[m].sort, NULL);
            pair p = strided(sizes, rows, far ? 4096 : 1, (int64_t)2 << 20, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            lines l = {.count = 0};
            int given_up, collided;
            tulle_ctx_set_trace(ctx, keep, &l);
            gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, far ? "colliding" : "apart");
            redone(&l, &given_up, &collided);
            if (far)
                CHECK(collided > 5 && collided < rows && given_up >= collided, "mode %d: %d of %d", m,
                      collided, given_up);
            else CHECK(collided == 0 && given_up == 0, "mode %d: %d of %d", m, collided, given_up);
            tulle_stats st;
            tulle_ctx_stats(ctx, &st);
            CHECK(share_rows(&st, "dense") == (far ? collided : 0), "mode %d: %" PRId64 " dense, %d collided",
                  m, share_rows(&st, "dense"), collided);
            ref_free(&want);
            pair_free(&p);
            tulle_ctx_free(ctx);
        }
}

/* ---- rows that fill their table: without bins, and with a longest row too long for any table */

static void rows_that_fill_their_table(void)
{
    /* of equal columns: 1,535 products are 1,024 entries, 2,049 are 2,048, 1,536 are 1,024 */
    static const int64_t sizes[] = {5, 1023, 1024, 1535, 1536, 1025, 2047, 2049, 8000, 0, 16383, 3};
    const int rows = (int)(sizeof sizes / sizeof *sizes);
    for (int m = 0; m < 2; m++) {
        tulle_ctx *ctx = ctx_of("off", m ? "0" : NULL, NULL);
        for (same s = NONE; s <= ALL; s++) {
            ref A = sums(sizes, rows, REF_REALS, f64), B = powers(s, 300000, REF_REALS, f64),
                want = ref_product(&A.view, &B.view);
            lines l = {.count = 0};
            int given_up, collided, expect = 0, long_rows = 0;
            for (int i = 0; i < rows; i++) {
                expect += ref_ptr(&want.view, i + 1) - ref_ptr(&want.view, i) > 1024;
                long_rows += sizes[i] > 1024;
            }
            tulle_ctx_set_trace(ctx, keep, &l);
            gpu_product_is(ctx, &A.view, &B.view, &delta, 0, &want.view, "filled");
            redone(&l, &given_up, &collided);
            /* some of those that fit have more products than slots, and therefore collisions */
            CHECK(given_up >= expect && given_up <= expect + collided && (s != ALL || given_up < long_rows),
                  "%d given up, %d too long, %d collided, %d with many products", given_up, expect, collided,
                  long_rows);
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
        }
        tulle_ctx_free(ctx);
    }
}

/* ---- dense rows: more than 7.6% of the columns */

static void dense_rows(void)
{
    for (int m = 0; m < MODES; m++) {
        tulle_ctx *ctx = ctx_of(modes[m].balance, modes[m].sort, NULL);
        for (int64_t cols = 1000; cols <= 1300; cols += 300) {          /* dense from 77 and from 99 on */
            static const int64_t sizes[] = {76, 77, 98, 99, 100, 1, 0, 76, 150, 260, 400};
            const int rows = (int)(sizeof sizes / sizeof *sizes);
            pair p = strided(sizes, rows, 1, cols, f64);
            for (int64_t k = 0; k < p.A.view.nnz; k++) ref_set_col(&p.A, k, k);
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_stats st;
            int64_t expect = 0;
            for (int i = 0; i < rows; i++) expect += sizes[i] >= (cols == 1000 ? 77 : 99);
            gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, "dense");
            tulle_ctx_stats(ctx, &st);
            CHECK(share_rows(&st, "dense") == expect,
                  "%" PRId64 " columns, mode %d: %" PRId64 " dense, not %" PRId64, cols, m,
                  share_rows(&st, "dense"), expect);
            ref_free(&want);
            pair_free(&p);
        }
        tulle_ctx_free(ctx);
    }
}

/* The shapes tested on every device: empty, rectangular, a single row, power laws, long columns. */
static void every_shape(void)
{
    for (int m = 0; m < MODES; m += 3) {
        tulle_ctx *ctx = ctx_of(modes[m].balance, NULL, m ? "8192" : NULL);
        for (int i = 0; i < GPU_PAIRS; i++) {
            pair p = gpu_pair(i, REF_REALS, f64, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, p.name);
            ref_free(&want);
            pair_free(&p);
        }
        tulle_ctx_free(ctx);
    }
}

/* With less and less shared memory, tables are disabled one after the other, and windows become small. */
static void small_scratchpads(void)
{
    static const char *const shared[] = {"32768", "12288", "4096", "2048", "1024"};
    int64_t sizes[100];
    const int rows = border_sizes(sizes);
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++)
        for (int off = 0; off < 2; off++) {
            tulle_ctx *ctx = ctx_of(off ? "off" : "on", k % 2 ? "0" : NULL, shared[k]);
            ref A = sums(sizes, rows, REF_REALS, f64), B = powers(SOME, 40000, REF_REALS, f64),
                want = ref_product(&A.view, &B.view);
            gpu_product_is(ctx, &A.view, &B.view, &delta, 0, &want.view, shared[k]);
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
            tulle_ctx_free(ctx);
        }
}

/* ---- types, columns, zeros */

static void every_type(void)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 31, 32, 33, 90, 300, 512, 513, 900, 2500};
    const int rows = (int)(sizeof sizes / sizeof *sizes);
    for (int off = 0; off < 2; off++) {
        tulle_ctx *ctx = ctx_of(off ? "off" : "on", off ? "64" : NULL, "16384");
        for (int i = 0; i < REF_TYPES; i++) {
            ref_types t = ref_types_at(i);
            if (skips_types(i)) continue;
            ref A = sums(sizes, rows, REF_REALS, t), B = powers(SOME, 40000, REF_REALS, t),
                want = ref_product(&A.view, &B.view);
            gpu_product_is(ctx, &A.view, &B.view, &delta, (i + 3 * off) % PLACES, &want.view,
                           ref_types_name(t));
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
        }
        tulle_ctx_free(ctx);
    }
}

static void far_columns(void)
{
    static const int64_t cols[] = {(int64_t)1 << 27, ((int64_t)1 << 31) - 1, (int64_t)1 << 40, INT64_MAX};
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
        for (int off = 0; off < 2; off++) {
            tulle_ctx *ctx = ctx_of(off ? "off" : "on", i % 2 ? "0" : NULL, off ? NULL : "4096");
            ref_types t = cols[i] > INT32_MAX ? f64_i64 : f64;
            ref A = staircase(30, 60, 50, 1, REF_REALS, t), B = ref_random(46, 60, cols[i], 25, REF_REALS, t);
            for (int64_t r = 0; r < 60; r += 3) {               /* some in the very first and last column */
                int64_t begin = ref_ptr(&B.view, r), end = ref_ptr(&B.view, r + 1);
                if (end > begin) ref_set_col(&B, begin, 0);
                if (end > begin + 1) ref_set_col(&B, end - 1, cols[i] - 1);
            }
            ref want = ref_product(&A.view, &B.view);
            char name[64];
            snprintf(name, sizeof name, "%" PRId64 " columns, bins %s", cols[i], off ? "off" : "on");
            gpu_product_is(ctx, &A.view, &B.view, &delta, 0, &want.view, name);
            ref_free(&A);
            ref_free(&B);
            ref_free(&want);
            tulle_ctx_free(ctx);
        }
}

static void zeros_are_dropped(void)
{
    int64_t sizes[100];
    const int rows = border_sizes(sizes);
    tulle_ctx *ctx = gpu_ctx();
    ref A = sums(sizes, rows, REF_CANCELLING, f64), B = powers(ALL, 40000, REF_CANCELLING, f64);
    ref all = ref_product(&A.view, &B.view), fewer = ref_without_zeros(&all.view);
    tulle_options o = {.policy = "delta", .drop_zeros = 1};
    REQUIRE(fewer.view.nnz < all.view.nnz, "%s", "nothing cancels");
    gpu_product_is(ctx, &A.view, &B.view, &o, C_THERE, &fewer.view, "dropped");
    gpu_product_is(ctx, &A.view, &B.view, &delta, 0, &all.view, "kept");
    ref_free(&A);
    ref_free(&B);
    ref_free(&all);
    ref_free(&fewer);
    tulle_ctx_free(ctx);
}

/* ---- limits, blocks, plans, failures, figures */

static pair mixed(ref_kind kind)
{
    static int64_t sizes[100];
    int rows = border_sizes(sizes);
    sizes[rows++] = 4000;
    sizes[rows++] = 1500;
    return (pair){sums(sizes, rows, kind, f64), powers(SOME, 40000, kind, f64), "mixed"};
}

/* Tries the limit named by the error, until it is sufficient; then blocks with less. */
static void limits_and_blocks(void)
{
    for (int off = 0; off < 2; off++) {
        tulle_ctx *ctx = ctx_of(off ? "off" : NULL, NULL, NULL);
        pair p = mixed(REF_REALS);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_options o = {.policy = "delta", .memory_limit = 1};
        tulle_matrix *C = NULL;
        tulle_status status;
        int tries = 0;
        while ((status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C)) == TULLE_ELIMIT && tries++ < 20) {
            unsigned long long need = 0;
            const char *number = strstr(tulle_ctx_error(ctx), "needs ");
            REQUIRE(!C && number && sscanf(number, "needs %llu bytes", &need) == 1 && need > o.memory_limit,
                    "%s", tulle_ctx_error(ctx));
            o.memory_limit = need;
        }
        REQUIRE(status == TULLE_OK && tries >= 1 && tries <= 3, "%d tries: %s", tries, tulle_ctx_error(ctx));
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        tulle_csr c = tulle_matrix_view(C);
        CHECK(s.peak_bytes <= o.memory_limit && ref_same(&c, &want.view, "limited"), "%" PRIu64 " bytes",
              s.peak_bytes);
        tulle_matrix_free(C);
        const uint64_t whole = o.memory_limit;
        int64_t most = 0;
        for (uint64_t limit = whole; limit > whole / 3; limit -= whole / 8) {
            joined j = {.want = &want.view, .good = true};
            o.memory_limit = limit;
            status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, join, &j);
            CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
            if (status == TULLE_OK) CHECK(j.good && j.rows == p.A.view.rows, "limit %" PRIu64, limit);
            if (j.blocks > most) most = j.blocks;
        }
        CHECK(most > 1, "%" PRId64 " blocks at most", most);
        ref_free(&want);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

static void every_allocation_fails_once(void)
{
    static const int64_t sizes[] = {0, 1, 20, 90, 600, 1500};
    ref A = sums(sizes, 6, REF_INTEGERS, f64), B = powers(NONE, 40000, REF_INTEGERS, f64),
        want = ref_product(&A.view, &B.view);
    bool done = false;
    int failed = 0, went_on = 0;
    tulle_ctx *ctx = gpu_ctx();
    for (int n = 1; !done && n < 200 && test_failures < 10; n++) {
        tulle_matrix *C = NULL;
        gpu_fail_at(ctx, n);
        uint64_t held = tl_dmem_held(ctx->gpu);
        tulle_options o = {.policy = "delta", .drop_zeros = 1, .c_ptr_type = TULLE_I64, .c_place = n % 2};
        tulle_status status = tulle_multiply(ctx, &A.view, &B.view, &o, &C);
        tulle_csr c = tulle_matrix_view(C);
        if (C && !o.c_place) CHECK(ref_same(&c, &want.view, "in blocks"), "allocation %d", n);
        done = ctx->gpu->requests < (uint64_t)n;
        CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && !done && !C), "allocation %d: %s: %s", n,
              tulle_status_name(status), tulle_ctx_error(ctx));
        failed += status != TULLE_OK;
        went_on += status == TULLE_OK && !done && !o.c_place;           /* to the host, in blocks */
        tulle_matrix_free(C);
        CHECK(tl_dmem_held(ctx->gpu) == held, "allocation %d: %" PRIu64 " bytes are left", n,
              tl_dmem_held(ctx->gpu) - held);
        gpu_product_is(ctx, &A.view, &B.view, &o, 0, &want.view, "afterwards");
    }
    tulle_ctx_free(ctx);
    CHECK(done && failed > 3 && went_on > 3, "%d allocations failed, %d went on, done %d", failed, went_on,
          done);
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
}

/* Several runs with different values; with and without bins, with rows that failed in a table, and rows
 * sorted by radix. */
static void a_plan_is_delta(void)
{
    for (int m = 0; m < MODES; m++) {
        tulle_ctx *ctx = ctx_of(modes[m].balance, modes[m].sort, NULL);
        pair p = mixed(REF_REALS);
        tulle_plan *plan = NULL;
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, &delta, &plan) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
        for (uint64_t run = 0; run < 3; run++) {
            ref_fill(&p.A, REF_REALS, 50 + run);
            ref want = ref_product(&p.A.view, &p.B.view);
            CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s",
                  tulle_ctx_error(ctx));
            c.values = values;
            CHECK(ref_same(&c, &want.view, "a plan"), "mode %d, run %d", m, (int)run);
            ref_free(&want);
        }
        tulle_stats s;
        tulle_plan_stats(plan, &s);
        CHECK(strcmp(s.policy, "delta") == 0 && share_rows(&s, "hash") > 0 && share_rows(&s, "dense") > 0,
              "policy %s", s.policy);
        free(values);
        tulle_plan_free(plan);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

static void statistics_add_up(void)
{
    static const char *const stages[] = {"analysis",     "symbolic load", "symbolic", "row pointers",
                                         "numeric load", "numeric",       "sorting"};
    for (int off = 0; off < 2; off++) {
        tulle_ctx *ctx = ctx_of(off ? "off" : "on", NULL, NULL);
        for (int i = 0; i < 3; i++) {
            pair q = i == 0 ? mixed(REF_INTEGERS)
                            : gpu_pair(i == 1 ? 4 : GPU_PAIR(4), REF_INTEGERS, f64, f64);
            tulle_options o = {.policy = "delta", .time_stages = 1};
            tulle_matrix *C = NULL;
            tulle_stats s;
            REQUIRE(tulle_multiply(ctx, &q.A.view, &q.B.view, &o, &C) == TULLE_OK, "%s",
                    tulle_ctx_error(ctx));
            tulle_ctx_stats(ctx, &s);
            int64_t rows = 0, products = 0;
            for (int k = 0; k < s.shares; k++) {
                rows += s.share[k].rows;
                products += s.share[k].products;
            }
            CHECK(rows == q.A.view.rows && products == s.products
                      && s.products == ref_count_products(&q.A.view, &q.B.view),
                  "%s: %" PRId64 " rows, %" PRId64 " products", q.name, rows, products);
            CHECK(s.c_nnz == tulle_matrix_view(C).nnz && s.peak_bytes > 0 && s.waits > 0, "%s", q.name);
            for (size_t k = 0; i == 0 && k < sizeof stages / sizeof *stages; k++) {
                bool there = false, load = strstr(stages[k], "load") != NULL;
                for (int n = 0; n < s.stages; n++) there = there || strcmp(s.stage[n].name, stages[k]) == 0;
                CHECK(there == !(load && off), "stage %s, bins %s", stages[k], off ? "off" : "on");
            }
            tulle_matrix_free(C);
            pair_free(&q);
        }
        tulle_ctx_free(ctx);
    }
}

static int stop_at(void *user, const char *stage, double fraction)
{
    (void)fraction;
    return strcmp(stage, (const char *)user) == 0;
}

static void a_product_is_cancelled(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = mixed(REF_INTEGERS);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_matrix *C = NULL;
    gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, "before");
    uint64_t held = tl_dmem_taken(ctx->gpu);
    tulle_ctx_set_progress(ctx, stop_at, "symbolic");
    tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &delta, &C);
    CHECK(status == TULLE_ECANCEL && !C, "%s", tulle_status_name(status));
    CHECK(tl_dmem_taken(ctx->gpu) == held, "%" PRIu64 " bytes are left", tl_dmem_taken(ctx->gpu));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, "afterwards");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- decision trees */

static const char *temporary(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "/tmp/tulle-delta-%lld-%s", (long long)tl_process(), name);
    return path;
}

/* Bins from `longest` entries on, in both steps. */
static tl_trees trees_from(double longest)
{
    tl_trees t = {.device = "a test"};
    for (int s = 0; s < 2; s++) {
        t.tree[s] = (tl_tree){.nodes = 3,
                              .node = {{.feature = 2, .limit = longest, .high = 2, .samples = 3, .yes = 2},
                                       {.feature = -1, .samples = 1},
                                       {.feature = -1, .answer = true, .samples = 2, .yes = 2}}};
        t.score[s][0] = (tl_tree_score){3, 3, 1};
        t.score[s][1] = (tl_tree_score){1, 0, 1.5};
    }
    return t;
}

static void a_tree_decides(void)
{
    pair p = mixed(REF_REALS);
    ref want = ref_product(&p.A.view, &p.B.view);
    const char *path = temporary("tree");
    /* 1: no file; 2: products are above the limit, entries are not; 3: neither is */
    int64_t longest = 0;
    for (int64_t i = 0; i < want.view.rows; i++) {
        int64_t n = ref_ptr(&want.view, i + 1) - ref_ptr(&want.view, i);
        if (n > longest) longest = n;
    }
    REQUIRE(longest < 5000, "the longest row has %" PRId64 " entries", longest);
    const struct { double limit; const char *about, *symbolic, *numeric; } cases[] = {
        {0, "no decision tree was given", "symbolic step: rows are sorted", "numeric step: rows are sorted"},
        {(double)longest + 0.5, "measured on a test; 3 of 3 right and 0 of 1",
         "symbolic step: rows are sorted", "numeric step: rows are not sorted"},
        {1e9, "this is another device", "symbolic step: rows are not sorted",
         "numeric step: rows are not sorted"},
    };
    for (int i = 0; i < 3; i++) {
        tulle_ctx *ctx = gpu_ctx();
        lines l = {.count = 0};
        if (i) {
            tl_trees t = trees_from(cases[i].limit);
            REQUIRE(tl_trees_write(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            setenv("TULLE_DELTA_TREE", path, 1);
        }
        tulle_ctx_set_trace(ctx, keep, &l);
        gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, "by a tree");
        CHECK(line_with(&l, cases[i].about) && line_with(&l, cases[i].symbolic)
                  && line_with(&l, cases[i].numeric),
              "case %d: %s", i, line_with(&l, "symbolic step") ? line_with(&l, "numeric step") : "no line");
        unsetenv("TULLE_DELTA_TREE");
        tulle_ctx_free(ctx);
    }
    unlink(path);
    ref_free(&want);
    pair_free(&p);
}

static void a_damaged_tree_is_refused_in_a_sentence(void)
{
    pair p = mixed(REF_INTEGERS);
    ref want = ref_product(&p.A.view, &p.B.view);
    const char *path = temporary("damaged");
    FILE *f = fopen(path, "w");
    REQUIRE(f, "%s", path);
    fputs("tulle delta tree 1\ndevice x\nstep symbolic 1\ntrain 1 1 1\nvalidate 1 1 1\nleaf perhaps 1 1\n",
          f);
    fclose(f);
    setenv("TULLE_DELTA_TREE", path, 1);
    tulle_ctx *ctx = gpu_ctx();
    tulle_matrix *C = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &delta, &C) == TULLE_EFORMAT && !C, "%s",
              tulle_ctx_error(ctx));
        CHECK(strstr(tulle_ctx_error(ctx), path) && strstr(tulle_ctx_error(ctx), "line 6"), "%s",
              tulle_ctx_error(ctx));
    }
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want.view, "another policy");
    unlink(path);
    CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &delta, &C) == TULLE_EIO && !C, "%s",
          tulle_ctx_error(ctx));
    unsetenv("TULLE_DELTA_TREE");
    gpu_product_is(ctx, &p.A.view, &p.B.view, &delta, 0, &want.view, "without");
    tulle_ctx_free(ctx);
    ref_free(&want);
    pair_free(&p);
}

/* ---- measurements for them */

/* Density, average and longest row of a product, and of its upper bounds. */
static void features_of(const ref *A, const ref *B, const ref *C, double want[2][3])
{
    const double rows = (double)C->view.rows, cols = (double)C->view.cols;
    double products = 0, most[2] = {0, 0};
    for (int64_t i = 0; i < C->view.rows; i++) {
        double n = (double)(ref_ptr(&C->view, i + 1) - ref_ptr(&C->view, i)), of_row = 0;
        for (int64_t k = ref_ptr(&A->view, i); k < ref_ptr(&A->view, i + 1); k++) {
            const int64_t j = ref_col(&A->view, k);
            of_row += (double)(ref_ptr(&B->view, j + 1) - ref_ptr(&B->view, j));
        }
        products += of_row;
        if (of_row > most[0]) most[0] = of_row;
        if (n > most[1]) most[1] = n;
    }
    const double sum[2] = {products, (double)C->view.nnz};
    for (int s = 0; s < 2; s++) {
        want[s][0] = sum[s] / rows / cols;
        want[s][1] = sum[s] / rows;
        want[s][2] = most[s];
    }
}

static void measure(tulle_ctx *ctx, const pair *p, int runs, tulle_delta_sample *x)
{
    double want[2][3];
    ref C = ref_product(&p->A.view, &p->B.view);
    features_of(&p->A, &p->B, &C, want);
    REQUIRE(tulle_delta_trial(ctx, &p->A.view, &p->B.view, runs, x) == TULLE_OK, "%s: %s", p->name,
            tulle_ctx_error(ctx));
    for (int s = 0; s < 2; s++)
        for (int f = 0; f < 3; f++)
            CHECK(fabs(x->features[s][f] - want[s][f]) <= 1e-12 * want[s][f],
                  "%s, step %d, feature %d: %g, %g", p->name, s, f, x->features[s][f], want[s][f]);
    for (int k = 0; k < 4; k++)
        CHECK(x->seconds[k / 2][k % 2] > 0 && x->seconds[k / 2][k % 2] < 60, "%s: %g s", p->name,
              x->seconds[k / 2][k % 2]);
    ref_free(&C);
}

/* Later products in the context are scheduled as before. */
static void goes_on(tulle_ctx *ctx, const pair *p, const char *words)
{
    ref want = ref_product(&p->A.view, &p->B.view);
    lines l = {.count = 0};
    tulle_ctx_set_trace(ctx, keep, &l);
    gpu_product_is(ctx, &p->A.view, &p->B.view, &delta, 0, &want.view, "after a trial");
    tulle_ctx_set_trace(ctx, NULL, NULL);
    CHECK(line_with(&l, words), "no line says \"%s\"", words);
    ref_free(&want);
}

static void what_is_measured_grows_a_tree(void)
{
    static const int64_t few[] = {1, 2, 3, 1, 0, 2}, some[] = {40, 100, 7, 200};
    static const int64_t many[] = {300, 1500, 20, 600};
    tulle_ctx *ctx = gpu_ctx();
    const char *path = temporary("measured");
    pair p[3] = {{sums(few, 6, REF_REALS, f64), powers(SOME, 40000, REF_REALS, f64), "short rows"},
                 {sums(some, 4, REF_REALS, f64), powers(ALL, 40000, REF_REALS, f64), "longer rows"},
                 {sums(many, 4, REF_REALS, f64), powers(SOME, 40000, REF_REALS, f64), "long rows"}};
    tulle_delta_sample x[3];
    tulle_delta_report r;
    tl_trees t;
    for (int i = 0; i < 3; i++) measure(ctx, &p[i], i + 1, &x[i]);
    goes_on(ctx, &p[2], "symbolic step: rows are sorted");
    REQUIRE(tulle_delta_train(ctx, x, 3, path, &r) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tl_trees_read(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(strcmp(t.device, tl_gpu_caps(ctx->gpu)->arch) == 0, "measured on \"%s\"", t.device);
    for (int s = 0; s < 2; s++)
        CHECK(r.nodes[s] == t.tree[s].nodes && r.train[s].samples == 2 && r.validate[s].samples == 1
                  && r.train[s].loss == t.score[s][0].loss && r.train[s].right == 2,
              "step %d: %d nodes, %d of %d", s, r.nodes[s], r.train[s].right, r.train[s].samples);
    setenv("TULLE_DELTA_TREE", path, 1);
    tulle_ctx *next = gpu_ctx();
    lines l = {.count = 0};
    tulle_ctx_set_trace(next, keep, &l);
    ref want = ref_product(&p[2].A.view, &p[2].B.view);
    gpu_product_is(next, &p[2].A.view, &p[2].B.view, &delta, 0, &want.view, "by what was measured");
    CHECK(line_with(&l, "by a decision tree measured on") && !line_with(&l, "this is another device"),
          "the tree is of this device");
    unsetenv("TULLE_DELTA_TREE");
    tulle_ctx_free(next);
    ref_free(&want);
    unlink(path);
    for (int i = 0; i < 3; i++) pair_free(&p[i]);
    tulle_ctx_free(ctx);
}

static void what_cannot_be_measured_is_refused(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = NULL;
    static const int64_t few[] = {1, 2, 3, 1}, none[] = {0, 0, 0};
    pair p = {sums(few, 4, REF_REALS, f64), powers(SOME, 40000, REF_REALS, f64), "short rows"};
    pair empty = {sums(none, 3, REF_REALS, f64), powers(SOME, 40000, REF_REALS, f64), "no rows"};
    tulle_delta_sample x[3] = {0};
    tulle_delta_report r;
    tulle_csr tall = p.B.view;
    tall.rows--;
    tall.nnz = ref_ptr(&p.B.view, tall.rows);
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "a context on the CPU");
    CHECK(tulle_delta_trial(cpu, &p.A.view, &p.B.view, 1, x) == TULLE_EDEVICE, "%s", tulle_ctx_error(cpu));
    CHECK(tulle_delta_trial(ctx, &p.A.view, &p.B.view, -1, x) == TULLE_EINVAL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_delta_trial(ctx, &p.A.view, &tall, 1, x) == TULLE_ESHAPE, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_delta_trial(ctx, &empty.A.view, &empty.B.view, 1, x) == TULLE_EINVAL
              && strstr(tulle_ctx_error(ctx), "nothing to time"),
          "%s", tulle_ctx_error(ctx));
    goes_on(ctx, &p, "symbolic step: rows are sorted");         /* not forced any more */
    const char *path = temporary("refused");
    for (int i = 0; i < 3; i++) measure(ctx, &p, 1, &x[i]);
    CHECK(tulle_delta_train(ctx, x, 2, path, &r) == TULLE_EINVAL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_delta_train(ctx, x, 3, "/no/such/folder/tree", &r) == TULLE_EIO, "%s", tulle_ctx_error(ctx));
    x[1].reserved[2] = 1;
    CHECK(tulle_delta_train(ctx, x, 3, path, &r) == TULLE_EINVAL, "%s", tulle_ctx_error(ctx));
    x[1].reserved[2] = 0;
    x[2].seconds[1][0] = 0;
    CHECK(tulle_delta_train(ctx, x, 3, path, &r) == TULLE_EINVAL, "%s", tulle_ctx_error(ctx));
    CHECK(access(path, F_OK) != 0, "%s was written", path);
    pair_free(&p);
    pair_free(&empty);
    tulle_ctx_free(cpu);
    tulle_ctx_free(ctx);
}

/* A forced accumulator overrides the policy, as everywhere. */
static void a_named_accumulator_wins(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = mixed(REF_INTEGERS);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_options o = {.policy = "delta", .accumulator = "dense"};
    tulle_stats s;
    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &want.view, "dense");
    tulle_ctx_stats(ctx, &s);
    CHECK(share_rows(&s, "hash") == 0, "%" PRId64 " rows were hashed", share_rows(&s, "hash"));
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_border_of_the_bins), TEST(rows_that_collide_on_purpose),
          TEST(rows_that_fill_their_table), TEST(dense_rows), TEST(every_shape), TEST(small_scratchpads),
          TEST(every_type), TEST(far_columns), TEST(zeros_are_dropped), TEST(limits_and_blocks),
          TEST(every_allocation_fails_once), TEST(a_plan_is_delta), TEST(statistics_add_up),
          TEST(a_product_is_cancelled), TEST(a_tree_decides), TEST(a_damaged_tree_is_refused_in_a_sentence),
          TEST(what_is_measured_grows_a_tree), TEST(what_cannot_be_measured_is_refused),
          TEST(a_named_accumulator_wins))
