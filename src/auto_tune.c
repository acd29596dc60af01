/* SPDX-License-Identifier: MIT
 *
 * auto_tune.c - thresholds of policy auto on a GPU, found by timing products (plan/search.c is the search).
 *
 * The time is that of a whole call with C on the device, without compiling.  Values with which a product has
 * no room take infinitely long.  Meanwhile the trace says what was found, and nothing about single
 * products. */
#include "ctx.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNS = 5, RUNS_MOST = 1000, PAIRS_MOST = 4096 };
_Static_assert(TL_THRESHOLDS <= TULLE_MAX_THRESHOLDS, "thresholds in a report");

typedef struct tuning {
    tulle_ctx         *ctx;
    tulle_tune_pair   *pairs;
    int                runs;
    double            *seconds;
    tl_search          search;
    tulle_progress_fn  progress;        /* the caller's                         */
    void              *user;
} tuning;

/* The products report their own progress: the caller hears that of the search instead. */
static int progress(void *user, const char *stage, double fraction)
{
    const tuning *t = user;
    (void)stage;
    (void)fraction;
    return t->progress(t->user, "tune", t->search.done);
}

static tulle_status time_runs(tuning *t, const tulle_tune_pair *pair)
{
    tulle_status status = TULLE_OK;
    tulle_ctx *ctx = t->ctx;
    const tulle_options o = {.policy = "auto", .trust_inputs = 1, .c_place = TULLE_DEVICE};
    for (int i = -1; i < t->runs; i++) {        /* the first run warms up */
        tulle_matrix *C = NULL;
        TRY(tl_multiply(ctx, &pair->A, &pair->B, &o, &C));
        tl_matrix_free(&ctx->base, C);
        if (i >= 0) t->seconds[i] = ctx->stats.sec_total - ctx->stats.sec_compile;
    }
done:
    return status;
}

static tulle_status time_product(void *user, const tl_thresholds *thresholds, int matrix, double *seconds)
{
    tuning *t = user;
    tl_base *b = &t->ctx->base;
    tulle_trace_fn trace = b->trace;
    tulle_status status = TULLE_OK;
    b->trace = NULL;
    TRY(t->ctx->engine->thresholds(t->ctx, thresholds, NULL));
    TRY(time_runs(t, &t->pairs[matrix]));
    *seconds = tl_median(t->seconds, t->runs);
    if (*seconds < 1e-9) *seconds = 1e-9;
done:
    b->trace = trace;
    if (status != TULLE_ELIMIT && status != TULLE_ENOMEM) return status;
    *seconds = INFINITY;
    return TULLE_OK;
}

/* Every pair once, with checks, which the runs that are timed leave out. */
static tulle_status check_products(tulle_ctx *ctx, const tulle_tune_pair *pairs, int count)
{
    tulle_status status = TULLE_OK;
    const tulle_options o = {.policy = "auto", .c_place = TULLE_DEVICE};
    for (int i = 0; i < count; i++) {
        tulle_matrix *C = NULL;
        TRY(tl_multiply(ctx, &pairs[i].A, &pairs[i].B, &o, &C));
        tl_matrix_free(&ctx->base, C);
    }
done:
    return status;
}

static tulle_status look(tl_base *b, const tulle_tune_pair *pairs, int count, int runs)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; i < count; i++) TRY(TL_RESERVED_CHECK(b, "a product to tune for", &pairs[i]));
    if (runs < 0 || runs > RUNS_MOST)
        TRY(tl_fail(b, TULLE_EINVAL, "%d runs: it may be 1 to %d, or 0 for %d", runs, RUNS_MOST, RUNS));
    if (count < 3 || count > PAIRS_MOST)
        TRY(tl_fail(b, TULLE_EINVAL,
                    "%d products: thresholds need 3 at least, as each third one judges them, and %d at most",
                    count, PAIRS_MOST));
done:
    return status;
}

static void fill_in(const tuning *t, const tl_search_times *times, const tl_tuned *tuned,
                    tulle_tune_report *report)
{
    const tl_thresholds usual = tl_thresholds_usual(tuned->family);
    tulle_tune_score *const to[2] = {&report->train, &report->validate};
    for (int i = 0; i < t->search.matrices; i++) {
        t->pairs[i].sec_usual = times[i].usual;
        t->pairs[i].sec_tuned = times[i].tuned;
        t->pairs[i].sec_best = times[i].best;
    }
    for (int k = 0; k < 2; k++)
        *to[k] = (tulle_tune_score){.pairs = tuned->score[k].matrices, .usual = tuned->score[k].usual,
                                    .tuned = tuned->score[k].tuned};
    report->family = tl_family_name(tuned->family);
    report->thresholds = TL_THRESHOLDS;
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        uint32_t least, most;
        tl_threshold_range(i, &least, &most);
        report->threshold[i] = (tulle_threshold){.name = tl_threshold_name(i), .least = least, .most = most,
                                                 .usual = usual.of[i], .tuned = tuned->thresholds.of[i]};
    }
}

tulle_status tl_auto_tune(tulle_ctx *ctx, tulle_tune_pair *pairs, int count, int runs, const char *path,
                          tulle_tune_report *report)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_tuned_place place = {.family = TL_UNKNOWN};
    tl_search_times *times = NULL;
    tl_tuned tuned = {.device = ""};
    tuning t = {.ctx = ctx, .pairs = pairs, .runs = runs ? runs : RUNS, .progress = b->progress,
                .user = b->progress_user};
    bool began = false;
    TRY(look(b, pairs, count, runs));
    place.make = !path;
    TRY(ctx->engine->thresholds(ctx, NULL, &place));
    if (!path && !place.there)
        TRY(tl_fail(b, TULLE_EIO, "there is no cache folder for the thresholds: %s", place.path));
    snprintf(report->path, sizeof report->path, "%s", path ? path : place.path);
    TRY(tl_write_check(b, report->path));
    TRY(check_products(ctx, pairs, count));
    TRY(tl_alloc(b, &t.seconds, t.runs, sizeof *t.seconds, "times of a product"));
    TRY(tl_alloc(b, &times, count, sizeof *times, "times of products"));
    t.search = (tl_search){.family = place.family, .matrices = count, .time = time_product, .user = &t};
    began = true;
    if (t.progress) {
        b->progress = progress;
        b->progress_user = &t;
    }
    TRY(tl_thresholds_search(b, &t.search, &tuned.thresholds, tuned.score, times));
    tuned.family = place.family;
    snprintf(tuned.device, sizeof tuned.device, "%s", place.device);
    TRY(tl_tuned_write(b, report->path, &tuned));
    fill_in(&t, times, &tuned, report);
done:
    b->progress = t.progress;
    b->progress_user = t.user;
    if (began) (void)ctx->engine->thresholds(ctx, NULL, NULL);
    tl_free(b, t.seconds);
    tl_free(b, times);
    return status;
}
