/* SPDX-License-Identifier: MIT
 *
 * test_several.c - one context with several devices, all of them the CPU: products, plans, SpMM, blocks,
 * limits, errors, cancellation.  Results have the same bits as with one device, for any division of the
 * rows. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "blocks_help.h"
#include "fork_help.h"
#include "several.h"
#include "spmm_help.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

static tulle_ctx *several(int parts, const tulle_mem *mem)
{
    char names[128] = "cpu";
    tulle_ctx *ctx = NULL;
    for (int i = 1; i < parts; i++) strcat(names, ",cpu");
    if (tulle_ctx_create(names, mem, &ctx) != TULLE_OK) abort();
    return ctx;
}

static void part_rows(int64_t rows)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, rows);
    if (rows > 0) setenv("TULLE_PART_ROWS", text, 1);
    else unsetenv("TULLE_PART_ROWS");
}

static bool gives(tulle_ctx *ctx, const pair *p, const tulle_options *o, const tulle_csr *want, const char *what)
{
    tulle_matrix *C = NULL;
    tulle_status status = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C);
    bool good = status == TULLE_OK;
    if (!good) printf("    %s: %s\n", what, tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    good = good && ref_same(&c, want, what);
    tulle_matrix_free(C);
    return good;
}

/* ---- names */

static void names_that_are_no_devices_are_refused_by_their_place(void)
{
    const struct { const char *names, *word; } wrong[] = {
        {"cpu,", "device 2 of 2"}, {",cpu", "device 1 of 2"}, {"cpu,,cpu", "device 2 of 3"}, {",", "no name"},
        {"cpu,nothing", "device 2 of 2"}, {"cpu,cpu,cuda:77", "device 3 of 3"}, {"cpu, cpu", "\" cpu\""},
        {"cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu", "names 17 devices"},
        {"cpu,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too long"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char why[512];
        tulle_ctx *ctx = NULL;
        tulle_status status = tulle_ctx_create_why(wrong[i].names, NULL, &ctx, why, sizeof why);
        CHECK(status == TULLE_EDEVICE && !ctx && strstr(why, wrong[i].word), "%s: %s", wrong[i].names, why);
        tulle_ctx_free(ctx);
    }
    tulle_ctx *ctx = several(16, NULL);
    CHECK(strcmp(tulle_ctx_device(ctx) + strlen(tulle_ctx_device(ctx)) - 8, ",cpu,cpu") == 0
          && strlen(tulle_ctx_device(ctx)) == 63, "%s", tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
}

/* ---- products */

static void every_cut_gives_the_bits_of_one_device(void)
{
    for (int parts = 2; parts <= 8; parts += parts < 4 ? 1 : 2) {
        tulle_ctx *ctx = several(parts, NULL);
        for (int i = 0; i < SMALL_PAIRS; i++) {
            ref_types t = ref_types_at((i + parts) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            ref want = ref_product(&p.A.view, &p.B.view);
            for (int64_t rows = 0; rows <= p.A.view.rows; rows++) {
                part_rows(rows);
                CHECK(gives(ctx, &p, NULL, &want.view, p.name), "%d parts, %" PRId64 " rows each", parts, rows);
            }
            ref_free(&want);
            pair_free(&p);
        }
        part_rows(0);
        tulle_ctx_free(ctx);
    }
}

static void every_way_gives_the_bits_of_one_device(void)
{
    tulle_ctx *ctx = several(3, NULL);
    tulle_options o;
    char name[64];
    for (int i = SMALL_PAIRS; i < PAIRS; i++) {
        pair p = pair_at(i, REF_REALS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        part_rows(p.A.view.rows / 7 + 1);
        for (int w = 0; way_at(w, &o, name, sizeof name); w++) {
            if (w > 0 && i % 3 != w % 3) continue;
            CHECK(gives(ctx, &p, &o, &want.view, p.name), "%s", name);
        }
        ref_free(&want);
        pair_free(&p);
    }
    part_rows(0);
    tulle_ctx_free(ctx);
}

static void operations_widths_and_zeros_are_as_on_one_device(void)
{
    tulle_ctx *single = ctx_with(2), *ctx = several(3, NULL);
    ref_types narrow = {TULLE_CF64, TULLE_I32, TULLE_I32};
    for (int op = 0; op < 9; op++) {
        pair p = {ref_random(3, 41, 41, 5, REF_CANCELLING, narrow), ref_random(4, 41, 41, 5, REF_CANCELLING, narrow), "41x41"};
        tulle_options o = {.op_a = op % 3, .op_b = op / 3, .drop_zeros = op % 2, .c_ptr_type = op % 3,
                           .c_idx_type = op % 4 == 3 ? TULLE_I64 : 0, .c_place = op % 2, .time_stages = 1};
        tulle_matrix *want = NULL, *pattern = NULL;
        tulle_stats t;
        CHECK(tulle_multiply(single, &p.A.view, &p.B.view, &o, &want) == TULLE_OK, "%s", tulle_ctx_error(single));
        const tulle_csr w = tulle_matrix_view(want);
        part_rows(6);
        CHECK(gives(ctx, &p, &o, &w, "op"), "operations %d", op);
        tulle_ctx_stats(ctx, &t);
        CHECK(t.c_nnz == w.nnz && t.products > 0 && strcmp(t.device, "cpu,cpu,cpu") == 0 && t.stages == 6
              && t.threads >= 3 && t.peak_bytes >= (uint64_t)w.nnz * 20, "the stats are not right");
        int64_t rows = 0;
        for (int i = 0; i < t.shares; i++) rows += t.share[i].rows;
        CHECK(rows <= 41 && rows > 0, "%" PRId64 " rows", rows);
        p.A.view.values = p.B.view.values = NULL;
        o.drop_zeros = 0;
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &pattern) == TULLE_OK
              && !tulle_matrix_view(pattern).values, "%s", tulle_ctx_error(ctx));
        part_rows(0);
        tulle_matrix_free(pattern);
        tulle_matrix_free(want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
    tulle_ctx_free(single);
}

/* ---- products large enough to be divided by default */

typedef struct lines { char text[4000]; size_t at; } lines;

static void note(void *user, const char *line)
{
    lines *l = user;
    int n = snprintf(l->text + l->at, sizeof l->text - l->at, "%s\n", line);
    if (n > 0 && l->at + (size_t)n < sizeof l->text) l->at += (size_t)n;
}

static pair large(void)
{
    return (pair){ref_random(5, 2500, 2000, 30, REF_REALS, f64), ref_power(6, 2000, 3000, 900, REF_REALS, f64), "large"};
}

static void a_large_product_is_divided_and_the_trace_says_how(void)
{
    tulle_ctx *ctx = several(2, NULL), *single = ctx_with(1);
    pair p = large();
    tulle_matrix *want = NULL;
    lines l = {.at = 0};
    tulle_stats t;
    double error = 1;
    tulle_forecast f;
    REQUIRE(tulle_multiply(single, &p.A.view, &p.B.view, NULL, &want) == TULLE_OK, "%s", tulle_ctx_error(single));
    const tulle_csr w = tulle_matrix_view(want);
    tulle_ctx_set_trace(ctx, note, &l);
    CHECK(gives(ctx, &p, NULL, &w, "divided"), "a product of two parts");
    tulle_ctx_stats(ctx, &t);
    CHECK(t.products >= 1 << 20, "only %" PRId64 " products: it need not be divided", t.products);
    CHECK(strstr(l.text, "ranges of rows on 2 devices") && strstr(l.text, "  cpu: "), "%s", l.text);
    CHECK(tulle_product_check(ctx, &p.A.view, &p.B.view, &w, NULL, &error) == TULLE_OK && error < 1e-12, "%g", error);
    CHECK(tulle_estimate(ctx, &p.A.view, &p.B.view, NULL, &f) == TULLE_OK && f.products == t.products, "estimate");
    /* close to C: in addition the largest range, a quarter, and workspace */
    uint64_t c_bytes = (uint64_t)w.nnz * 12;
    CHECK(t.peak_bytes < c_bytes + c_bytes / 2 + (16 << 20), "%" PRIu64 " bytes for a C of %" PRIu64, t.peak_bytes, c_bytes);
    tulle_matrix_free(want);
    pair_free(&p);
    tulle_ctx_free(single);
    tulle_ctx_free(ctx);
}

typedef struct told { pthread_t thread; int strangers; char text[1 << 16]; } told;

static void hear(void *user, const char *line)
{
    told *t = user;
    size_t n = strlen(t->text);
    t->strangers += !pthread_equal(pthread_self(), t->thread);
    snprintf(t->text + n, sizeof t->text - n, "%s\n", line);
}

static void what_parts_trace_comes_with_their_names_from_the_calling_thread(void)
{
    tulle_ctx *ctx = several(3, NULL);
    pair p = large();
    static told t;
    tulle_matrix *C = NULL;
    t = (told){.thread = pthread_self()};
    tulle_ctx_set_trace(ctx, hear, &t);
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(t.strangers == 0, "%d lines from another thread", t.strangers);
    CHECK(strstr(t.text, "\ncpu (part 1): policy auto") || strstr(t.text, "\ncpu (part 2): policy auto"), "%.900s", t.text);
    tulle_ctx_set_trace(ctx, NULL, NULL);
    size_t n = strlen(t.text);
    tulle_matrix_free(C);
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(strlen(t.text) == n, "traced to nobody");
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void an_estimate_counts_all_parts(void)
{
    for (int count = 2; count <= 4; count++)
        for (int i = 0; i < 4; i++) {
            tulle_ctx *ctx = several(count, NULL);
            pair p = i == 3 ? large() : pair_at(6 + 3 * i, REF_INTEGERS, f64, f64);
            tulle_forecast f;
            tulle_matrix *C = NULL;
            tulle_plan *plan = NULL;
            tulle_stats t;
            if (i < 3) part_rows(3);
            REQUIRE(tulle_estimate(ctx, &p.A.view, &p.B.view, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_ctx_stats(ctx, &t);
            CHECK(t.peak_bytes <= f.bytes_upper, "%s, %d parts: %" PRIu64 " bytes, at most %" PRIu64 " were told", p.name,
                  count, t.peak_bytes, f.bytes_upper);
            CHECK(f.bytes_estimate <= f.bytes_upper && strcmp(f.device, tulle_ctx_device(ctx)) == 0, "%s", f.device);
            REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_ctx_stats(ctx, &t);
            CHECK(t.peak_bytes <= f.bytes_upper, "a plan for %s, %d parts: %" PRIu64 " bytes, at most %" PRIu64, p.name, count,
                  t.peak_bytes, f.bytes_upper);
            part_rows(0);
            tulle_plan_free(plan);
            tulle_matrix_free(C);
            pair_free(&p);
            tulle_ctx_free(ctx);
        }
}

/* Two devices with different names, one of which was three times as fast as the other. */
static void sparse_times_dense_is_shared_by_speed(void)
{
    tulle_ctx *ctx = several(2, NULL), *single = ctx_with(1);
    tl_several *v = ctx->several;
    ref A = ref_random(3, 30000, 500, 10, REF_INTEGERS, f64);
    double *x = calloc(500 * 4, sizeof *x), *y = calloc(30000 * 4, sizeof *y), *z = calloc(30000 * 4, sizeof *z);
    static told t;
    long long first = 0, last = 0;
    for (int i = 0; i < 500 * 4; i++) x[i] = i % 7 - 3;
    const tulle_dense X = tulle_dense_make(500, 4, 4, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(30000, 4, 4, TULLE_BY_ROWS, y, TULLE_F64), Z = Y;
    Z.values = z;
    REQUIRE(tulle_spmm(single, NULL, &A.view, &X, NULL, &Z, NULL) == TULLE_OK, "%s", tulle_ctx_error(single));
    v->twins[0] = v->twins[1] = 1;
    REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(v->spmm_rate[0] > 0 && v->spmm_rate[1] > 0, "%g and %g", v->spmm_rate[0], v->spmm_rate[1]);
    CHECK(memcmp(y, z, 30000 * 4 * sizeof *y) == 0, "evenly");
    v->spmm_rate[0] = 3e6;
    v->spmm_rate[1] = 1e6;
    t = (told){.thread = pthread_self()};
    tulle_ctx_set_trace(ctx, hear, &t);
    memset(y, 0, 30000 * 4 * sizeof *y);
    REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const char *line = strstr(t.text, "sparse times dense on cpu: rows ");
    CHECK(line && sscanf(line, "sparse times dense on cpu: rows %lld to %lld", &first, &last) == 2 && first == 0
          && last > 22000 && last < 23000, "%.300s", t.text);
    CHECK(memcmp(y, z, 30000 * 4 * sizeof *y) == 0, "by speed");
    v->spmm_rate[1] = 1;                /* so slow that it gets very few rows */
    t.text[0] = 0;
    REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    line = strstr(t.text, "sparse times dense on cpu: rows ");
    CHECK(line && sscanf(line, "sparse times dense on cpu: rows %lld to %lld", &first, &last) == 2 && last > 29000
          && last < 29700, "%.300s", t.text);
    free(x);
    free(y);
    free(z);
    ref_free(&A);
    tulle_ctx_free(single);
    tulle_ctx_free(ctx);
}

static void threads_of_the_context_are_divided(void)
{
    tulle_ctx *ctx = several(3, NULL);
    for (int threads = 1; threads <= 8; threads++) {
        int sum = 0;
        CHECK(tulle_ctx_set_threads(ctx, threads) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int i = 0; i < 3; i++) sum += tl_team_size(ctx->several->part[i]->base.team);
        CHECK(sum == (threads < 3 ? 3 : threads), "%d threads became %d", threads, sum);
    }
    tulle_ctx_free(ctx);
}

/* ---- plans */

static void plans_run_into_the_callers_values(void)
{
    tulle_ctx *single = ctx_with(1);
    for (int parts = 2; parts <= 5; parts++) {
        tulle_ctx *ctx = several(parts, NULL);
        for (int i = 0; i < PAIRS + 4; i++) {
            pair p = i < PAIRS ? pair_at(i, REF_REALS, f64, f64)
                               : (pair){ref_random(3, 60, 60, 5, REF_REALS, f64), ref_random(4, 60, 60, 5, REF_REALS, f64), "60x60"};
            tulle_options o = {.op_a = i < PAIRS ? 0 : i & 1, .op_b = i < PAIRS ? 0 : i & 2};
            tulle_plan *plan = NULL;
            tulle_matrix *want = NULL, *C = NULL;
            CHECK(tulle_multiply(single, &p.A.view, &p.B.view, &o, &want) == TULLE_OK, "%s", tulle_ctx_error(single));
            const tulle_csr w = tulle_matrix_view(want);
            part_rows(i % 3 ? p.A.view.rows / (parts + i % 2) + 1 : 0);
            REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            part_rows(0);
            tulle_csr got = tulle_plan_pattern(plan);
            double *values = malloc((size_t)(got.nnz + 1) * sizeof *values);
            for (int run = 0; run < 3; run++) {
                memset(values, 0x7f, (size_t)(got.nnz + 1) * sizeof *values);
                CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                got.values = values;
                got.val_type = TULLE_F64;
                CHECK(ref_same(&got, &w, p.name), "%d parts, run %d", parts, run);
            }
            CHECK(tulle_plan_multiply(plan, p.A.values, p.B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const tulle_csr c = tulle_matrix_view(C);
            CHECK(ref_same(&c, &w, p.name), "a matrix of its own");
            free(values);
            tulle_matrix_free(C);
            tulle_matrix_free(want);
            tulle_plan_free(plan);
            pair_free(&p);
        }
        tulle_ctx_free(ctx);
    }
    tulle_ctx_free(single);
}

/* ---- SpMM */

static void sparse_times_dense_is_cut_by_rows(void)
{
    const double alpha = 1.5, beta = -0.25;
    for (int k = 0; k < 48; k++) {
        tulle_ctx *ctx = several(2 + k % 7, NULL);
        int op = k % 2;
        ref A = ref_random(7 + (uint64_t)k, 50, 37, 6, REF_REALS, f64), T = ref_transpose(&A.view, TULLE_TRANSPOSE);
        const tulle_csr *plain = op ? &T.view : &A.view;
        den X = den_new(plain->cols, 5, k % 3, k & 2 ? TULLE_BY_COLS : TULLE_BY_ROWS, TULLE_F64);
        den Y = den_new(plain->rows, 5, k % 4, k & 4 ? TULLE_BY_COLS : TULLE_BY_ROWS, TULLE_F64);
        den W = den_new(plain->rows, 5, 0, TULLE_BY_ROWS, TULLE_F64);
        tulle_spmm_options o = {.op_a = op};
        tulle_spmm_plan *plan = NULL;
        den_fill(&X, REF_REALS, 1);
        den_fill(&Y, REF_REALS, 2);
        spmm_plain(plain, &X.view, (ref_value){alpha, 0}, (ref_value){beta, 0}, &Y.view, &W.view);
        part_rows(k / 8 * 9 + 1);
        CHECK(tulle_spmm(ctx, &alpha, &A.view, &X.view, &beta, &Y.view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(den_same(&Y.view, &W.view, "Y") && den_margins_kept(&Y), "case %d", k);
        REQUIRE(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        part_rows(0);
        for (int run = 0; run < 2; run++) {             /* with new values of A the second time */
            CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            spmm_plain(plain, &X.view, (ref_value){1, 0}, (ref_value){0, 0}, &Y.view, &W.view);
            CHECK(den_same(&Y.view, &W.view, "Y of a plan") && den_margins_kept(&Y), "case %d, run %d", k, run);
            ref_fill(&A, REF_REALS, 99);
            ref_free(&T);
            T = ref_transpose(&A.view, TULLE_TRANSPOSE);
            plain = op ? &T.view : &A.view;
            CHECK(tulle_spmm_plan_set_values(plan, A.values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        }
        tulle_spmm_plan_free(plan);
        den_free(&X);
        den_free(&Y);
        den_free(&W);
        ref_free(&A);
        ref_free(&T);
        tulle_ctx_free(ctx);
    }
}

/* ---- limits */

static uint64_t number_in(const char *sentence)
{
    const char *at = strstr(sentence, " need");
    while (at && *at && (*at < '0' || *at > '9')) at++;
    return at ? strtoull(at, NULL, 10) : 0;
}

static void a_limit_is_kept_or_refused_with_a_number_that_is_enough(void)
{
    tulle_ctx *ctx = several(3, NULL), *single = ctx_with(1);
    pair p = large();
    tulle_matrix *want = NULL;
    int kept = 0, refused = 0;
    REQUIRE(tulle_multiply(single, &p.A.view, &p.B.view, NULL, &want) == TULLE_OK, "%s", tulle_ctx_error(single));
    const tulle_csr w = tulle_matrix_view(want);
    for (uint64_t limit = 1 << 20; limit <= (uint64_t)1 << 28; limit += limit / 2) {
        tulle_options o = {.memory_limit = limit};
        tulle_matrix *C = NULL;
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
        if (status == TULLE_ELIMIT) {
            CHECK(kept == 0 && !C, "refused after a smaller limit was kept");
            o.memory_limit = number_in(tulle_ctx_error(ctx));
            CHECK(o.memory_limit > limit, "%s", tulle_ctx_error(ctx));
            status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
            refused++;
        } else kept++;
        CHECK(status == TULLE_OK, "limit %" PRIu64 ": %s", o.memory_limit, tulle_ctx_error(ctx));
        tulle_stats t;
        tulle_ctx_stats(ctx, &t);
        const tulle_csr c = tulle_matrix_view(C);
        CHECK(status == TULLE_OK && ref_same(&c, &w, "limited"), "limit %" PRIu64, limit);
        CHECK(t.peak_bytes <= o.memory_limit, "%" PRIu64 " bytes, the limit is %" PRIu64, t.peak_bytes, o.memory_limit);
        tulle_matrix_free(C);
    }
    CHECK(kept > 2 && refused > 2, "%d kept, %d refused", kept, refused);
    tulle_matrix_free(want);
    pair_free(&p);
    tulle_ctx_free(single);
    tulle_ctx_free(ctx);
}

/* One call with o->memory_limit; *t: its statistics. */
typedef tulle_status (*limited_fn)(tulle_ctx *ctx, const pair *p, const tulle_options *o, tulle_stats *t);

static tulle_status whole(tulle_ctx *ctx, const pair *p, const tulle_options *o, tulle_stats *t)
{
    tulle_matrix *C = NULL;
    tulle_status status = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C);
    tulle_ctx_stats(ctx, t);
    tulle_matrix_free(C);
    return status;
}

static int pass(void *user, int64_t row0, const tulle_csr *block)
{
    (void)user;
    (void)row0;
    (void)block;
    return 0;
}

static tulle_status in_blocks(tulle_ctx *ctx, const pair *p, const tulle_options *o, tulle_stats *t)
{
    tulle_status status = tulle_multiply_blocks(ctx, &p->A.view, &p->B.view, o, pass, NULL);
    tulle_ctx_stats(ctx, t);
    return status;
}

static tulle_status by_plan(tulle_ctx *ctx, const pair *p, const tulle_options *o, tulle_stats *t)
{
    tulle_plan *plan = NULL;
    tulle_status status = tulle_plan_create(ctx, &p->A.view, &p->B.view, o, &plan);
    tulle_plan_stats(plan, t);
    tulle_plan_free(plan);
    return status;
}

/* For A^T*B^H: the transposed copies take more memory than the product with one row at a time. */
static pair turned(void)
{
    return (pair){ref_random(1, 2000, 2100, 6, REF_REALS, f64), ref_random(2, 1700, 2000, 3, REF_REALS, f64), "transposed"};
}

/* Ranges of a few rows, for which some devices have too little memory.  The peak also includes the memory of
 * devices that gave up, and of blocks that were repeated. */
static void limits_are_kept_by_what_is_given_up_as_well(void)
{
    static const limited_fn calls[] = {whole, in_blocks, by_plan};
    tulle_ctx *ctx = several(3, NULL);
    int shared = 0;
    for (int k = 0; k < 3 * 17; k++) {
        const limited_fn limited = calls[k % 3];
        const bool turn = k >= 48;
        pair p = turn ? turned() : k < 45 ? pair_at(k / 3, REF_REALS, f64, f64) : large();
        tulle_options o = {.memory_limit = 1, .op_a = turn ? TULLE_TRANSPOSE : 0, .op_b = turn ? TULLE_ADJOINT : 0,
                           .sort_inputs = turn && limited != by_plan};
        tulle_stats t;
        part_rows(k < 45 ? 5 : 0);
        CHECK(limited(ctx, &p, &o, &t) == TULLE_ELIMIT, "%s: one byte", p.name);
        o.memory_limit = number_in(tulle_ctx_error(ctx));
        for (int i = 0; i < 12; i++, o.memory_limit += o.memory_limit / 4) {
            CHECK(limited(ctx, &p, &o, &t) == TULLE_OK, "%d, %s: %s", k % 3, p.name, tulle_ctx_error(ctx));
            CHECK(t.peak_bytes <= o.memory_limit, "%d, %s: %" PRIu64 " bytes, the limit is %" PRIu64, k % 3, p.name,
                  t.peak_bytes, o.memory_limit);
            shared += t.threads > 1;
        }
        pair_free(&p);
    }
    CHECK(shared > 0, "%d products were shared", shared);
    part_rows(0);
    tulle_ctx_free(ctx);
}

static void blocks_come_in_order_under_any_limit(void)
{
    tulle_ctx *ctx = several(2, NULL);
    pair p = pair_at(15, REF_REALS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    int64_t most = 0;
    int kept = 0;
    for (uint64_t limit = 1 << 17; limit <= (uint64_t)1 << 26; limit += limit / 2) {
        tulle_options o = {.memory_limit = limit};
        blocks_seen seen = {.want = &want.view, .good = true};
        tulle_status status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, blocks_compare, &seen);
        if (status == TULLE_ELIMIT) {
            CHECK(kept == 0 && number_in(tulle_ctx_error(ctx)) > limit, "%s", tulle_ctx_error(ctx));
        } else {
            kept++;
            CHECK(status == TULLE_OK && blocks_all(&seen), "limit %" PRIu64 ": %s", limit, tulle_ctx_error(ctx));
            if (seen.blocks > most) most = seen.blocks;
        }
    }
    CHECK(most > 3 && kept > 2, "at most %" PRId64 " blocks, %d limits kept", most, kept);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- errors and cancellation */

static void a_callers_error_is_one_sentence(void)
{
    tulle_ctx *ctx = several(2, NULL);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    tulle_options gpu_only = {.accumulator = "heap"};
    tulle_matrix *C = NULL;
    CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &gpu_only, &C) == TULLE_EINVAL
          && strncmp(tulle_ctx_error(ctx), "cpu: ", 5) == 0, "%s", tulle_ctx_error(ctx));
    tulle_csr there = p.A.view;
    there.place = TULLE_DEVICE;
    CHECK(tulle_multiply(ctx, &there, &p.B.view, NULL, &C) == TULLE_EINVAL
          && strstr(tulle_ctx_error(ctx), "device"), "%s", tulle_ctx_error(ctx));
    ref want = ref_product(&p.A.view, &p.B.view);
    CHECK(gives(ctx, &p, NULL, &want.view, "afterwards"), "the context is of no use afterwards");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

typedef struct watcher { pthread_t thread; atomic_int calls, strangers; int stop_at; } watcher;

static int watched(void *user, const char *stage, double fraction)
{
    watcher *w = user;
    if (!pthread_equal(pthread_self(), w->thread)) atomic_fetch_add(&w->strangers, 1);
    int number = atomic_fetch_add(&w->calls, 1) + 1;
    return !stage || fraction < 0 || fraction > 1 || (w->stop_at && number >= w->stop_at);
}

static void cancelling_ends_all_parts_from_the_calling_thread(void)
{
    tulle_ctx *ctx = several(3, NULL);
    pair p = large();
    tulle_plan *plan = NULL;
    tulle_matrix *want = NULL;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &want) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_csr w = tulle_matrix_view(want);
    double *values = malloc((size_t)w.nnz * sizeof *values);
    int cancelled = 0;
    for (int stop = 1; stop <= 6; stop++) {
        watcher v = {.thread = pthread_self(), .stop_at = stop};
        tulle_matrix *C = NULL;
        tulle_ctx_set_progress(ctx, watched, &v);
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
        CHECK((status == TULLE_ECANCEL && !C) || (status == TULLE_OK && C), "%s", tulle_ctx_error(ctx));
        cancelled += status == TULLE_ECANCEL;
        tulle_matrix_free(C);
        atomic_store(&v.calls, 0);
        status = tulle_plan_run(plan, p.A.values, p.B.values, values);
        CHECK(status == TULLE_ECANCEL || status == TULLE_OK, "%s", tulle_ctx_error(ctx));
        cancelled += status == TULLE_ECANCEL;
        CHECK(atomic_load(&v.strangers) == 0, "%d calls from another thread", atomic_load(&v.strangers));
    }
    CHECK(cancelled >= 2, "only %d calls were cancelled", cancelled);
    watcher v = {.thread = pthread_self()};
    tulle_ctx_set_progress(ctx, watched, &v);
    CHECK(gives(ctx, &p, NULL, &w, "afterwards") && atomic_load(&v.strangers) == 0, "after a cancellation");
    free(values);
    tulle_matrix_free(want);
    tulle_plan_free(plan);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- allocation hooks, called from several threads */

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

static void no_failed_allocation_leaks(void)
{
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    int failed = 0;
    for (long n = 1; n < 4000; n += n < 200 ? 1 : 97) {
        hooks h = {.fail_at = n};
        tulle_mem mem = {hooks_alloc, hooks_free, &h};
        tulle_ctx *ctx = NULL;
        tulle_plan *plan = NULL;
        tulle_matrix *C = NULL;
        part_rows(7);
        tulle_status status = tulle_ctx_create("cpu,cpu,cpu", &mem, &ctx);
        if (status == TULLE_OK) status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
        if (status == TULLE_OK) status = tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan);
        failed += status != TULLE_OK;
        CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "allocation %ld: %s", n, tulle_status_name(status));
        bool last = atomic_load(&h.calls) < n;          /* each call has failed once */
        atomic_store(&h.fail_at, 0);
        if (ctx) CHECK(gives(ctx, &p, NULL, &want.view, "afterwards"), "after allocation %ld failed", n);
        tulle_matrix_free(C);
        tulle_plan_free(plan);
        tulle_ctx_free(ctx);
        CHECK(atomic_load(&h.live) == 0, "allocation %ld: %ld blocks are left", n, atomic_load(&h.live));
        if (last) break;
    }
    part_rows(0);
    CHECK(failed > 15, "only %d allocations were seen", failed);
    ref_free(&want);
    pair_free(&p);
}

/* ---- fork */

static void a_child_of_fork_uses_and_frees_it(void)
{
    tulle_ctx *ctx = several(3, NULL);
    pair p = large();
    tulle_matrix *want = NULL;
    tulle_plan *plan = NULL;
    int status = -1;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &want) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_csr w = tulle_matrix_view(want);
    fflush(stdout);
    pid_t child = calm_fork();
    if (child == 0) {
        alarm(120);
#if defined(__SANITIZE_THREAD__) || defined(TULLE_EMULATED)   /* no threads there: it can only free */
        bool good = true;
#else
        bool good = gives(ctx, &p, NULL, &w, "in a child");
#endif
        tulle_plan_free(plan);
        tulle_ctx_free(ctx);
        _exit(good ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the child ended with %d", status);
    CHECK(gives(ctx, &p, NULL, &w, "after fork"), "the parent");
    tulle_plan_free(plan);
    tulle_matrix_free(want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- ranges for which a device has too little memory */

static void a_range_comes_back_in_halves(void)
{
    tulle_ctx *ctx = ctx_with(1);
    tl_base *b = &ctx->base;
    int64_t products[10], next = 0, work = 0;
    tl_ranges r;
    bool wait;
    for (int i = 0; i < 10; i++) products[i] = i;
    REQUIRE(tl_ranges_make(b, products, 0, 10, 2, 5, &r) == TULLE_OK && r.count == 2, "two ranges");
    tl_range *first = tl_ranges_take(&r, 0, &wait), *second = tl_ranges_take(&r, 1, &wait);
    CHECK(first && second && first->row1 == 5 && second->row0 == 5, "in turn");
    CHECK(!tl_ranges_take(&r, 0, &wait) && wait, "the other one is at work");
    CHECK(tl_ranges_back(b, &r, first, false) && r.count == 3, "halves");
    tl_ranges_finish(&r, second, NULL);
    for (tl_range *at; (at = tl_ranges_take(&r, 1, &wait)) != NULL;) {
        if (at->row1 - at->row0 > 1) CHECK(tl_ranges_back(b, &r, at, false), "halves of halves");
        else tl_ranges_finish(&r, at, NULL);
    }
    CHECK(!wait && r.count == 6, "%" PRId64 " ranges", r.count);
    for (tl_range *at = r.first; at; next = at->row1, work += at->work, at = at->next)
        CHECK(at->row0 == next && at->done, "rows %" PRId64 " to %" PRId64, at->row0, at->row1);
    CHECK(next == 10 && work == r.work && atomic_load(&r.finished) == work, "all rows");
    tl_ranges_done(b, &r);
    REQUIRE(tl_ranges_make(b, products, 0, 10, 2, 1, &r) == TULLE_OK && r.count == 10, "ten ranges");
    first = tl_ranges_take(&r, 0, &wait);
    CHECK(tl_ranges_back(b, &r, first, false), "one has left, one is there");
    CHECK(tl_ranges_take(&r, 1, &wait) == first, "what was the other one's turn");
    CHECK(!tl_ranges_back(b, &r, first, false), "nobody is left");
    tl_ranges_done(b, &r);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(names_that_are_no_devices_are_refused_by_their_place),
          TEST(every_cut_gives_the_bits_of_one_device),
          TEST(every_way_gives_the_bits_of_one_device),
          TEST(operations_widths_and_zeros_are_as_on_one_device),
          TEST(a_large_product_is_divided_and_the_trace_says_how),
          TEST(what_parts_trace_comes_with_their_names_from_the_calling_thread), TEST(an_estimate_counts_all_parts),
          TEST(sparse_times_dense_is_shared_by_speed),
          TEST(threads_of_the_context_are_divided),
          TEST(plans_run_into_the_callers_values),
          TEST(sparse_times_dense_is_cut_by_rows),
          TEST(a_limit_is_kept_or_refused_with_a_number_that_is_enough), TEST(limits_are_kept_by_what_is_given_up_as_well),
          TEST(blocks_come_in_order_under_any_limit),
          TEST(a_callers_error_is_one_sentence),
          TEST(cancelling_ends_all_parts_from_the_calling_thread),
          TEST(no_failed_allocation_leaks),
          TEST(a_child_of_fork_uses_and_frees_it),
          TEST(a_range_comes_back_in_halves))
