/* SPDX-License-Identifier: MIT
 *
 * delta_trial.c - measurements for the decision tree of policy delta: one product with and without bins, step
 * by step, and the tree that comes of many. */
#include "ctx.h"
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, RUNS_MOST = 1000, WAYS = 2, STEPS = TL_TREE_STEPS };

/* Stages of the steps, as gpu/product.c and gpu/delta.c name them. */
static const char *const stages[STEPS][3] = {{"symbolic load", "symbolic", NULL},
                                             {"numeric load", "numeric", "sorting"}};

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double step_seconds(const tulle_stats *s, int step)
{
    double sum = 0;
    for (int i = 0; i < s->stages; i++)
        for (int k = 0; k < 3 && stages[step][k]; k++)
            if (strcmp(s->stage[i].name, stages[step][k]) == 0) sum += s->stage[i].seconds;
    return sum;
}

/* The first run warms up; the ways take turns, so that neither has the quieter time. */
static tulle_status run_all(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int runs, double *seconds,
                            double seen[STEPS][TL_FEATURES])
{
    tulle_status status = TULLE_OK;
    const tulle_options o = {.policy = "delta", .time_stages = 1, .c_place = TULLE_DEVICE};
    int was;
    for (int i = -1; i < runs; i++)
        for (int way = 0; way < WAYS; way++) {
            tulle_matrix *C = NULL;
            TRY(ctx->engine->schedule(ctx, way, &was, seen));
            TRY(tl_multiply(ctx, A, B, &o, &C));
            tl_matrix_free(&ctx->base, C);
            for (int step = 0; step < STEPS && i >= 0; step++)
                seconds[(step * WAYS + way) * runs + i] = step_seconds(&ctx->stats, step);
        }
    TRY(ctx->engine->schedule(ctx, 0, &was, seen));
done:
    return status;
}

tulle_status tl_delta_trial(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int runs,
                            tulle_delta_sample *sample)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    double *seconds = NULL, seen[STEPS][TL_FEATURES];
    int before = -1, was;
    bool forced = false;
    if (runs < 0 || runs > RUNS_MOST)
        TRY(tl_fail(b, TULLE_EINVAL, "%d runs: it may be 1 to %d, or 0 for %d", runs, RUNS_MOST, RUNS));
    if (!runs) runs = RUNS;
    TRY(tl_alloc(b, &seconds, (int64_t)STEPS * WAYS * runs, sizeof *seconds, "times of a trial"));
    TRY(ctx->engine->schedule(ctx, 0, &before, seen));
    forced = true;
    TRY(run_all(ctx, A, B, runs, seconds, seen));
    if (ctx->stats.c_nnz == 0)
        TRY(tl_fail(b, TULLE_EINVAL, "the product has no entries, so there is nothing to time"));
    memcpy(sample->features, seen, sizeof seen);
    for (int step = 0; step < STEPS; step++)
        for (int way = 0; way < WAYS; way++) {
            double *s = seconds + (step * WAYS + way) * runs;
            qsort(s, (size_t)runs, sizeof *s, by_value);
            sample->seconds[step][way] = runs % 2 ? s[runs / 2] : 0.5 * (s[runs / 2] + s[runs / 2 - 1]);
        }
done:
    if (forced) ctx->engine->schedule(ctx, before, &was, seen);
    tl_free(b, seconds);
    return status;
}

/* ---- the tree */

static tulle_delta_score score_of(tl_tree_score s)
{
    return (tulle_delta_score){.samples = s.samples, .right = s.right, .loss = s.loss};
}

tulle_status tl_delta_train(tulle_ctx *ctx, const tulle_delta_sample *samples, int count, const char *path,
                            tulle_delta_report *report)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_sample *all = NULL;
    tl_trees trees = {.device = "unknown"};
    const char *device = ctx->stats.isa ? ctx->stats.isa : "";
    for (size_t i = 0; device[0] && i < sizeof trees.device - 1 && (i == 0 || device[i - 1]); i++)
        trees.device[i] = device[i] && (device[i] < ' ' || device[i] > '~') ? ' ' : device[i];
    if (count < 0) count = 0;
    TRY(tl_alloc(b, &all, count, sizeof *all, "samples"));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < count; i++) {
            TRY(TL_RESERVED_CHECK(b, "a sample", &samples[i]));
            memcpy(all[i].feature, samples[i].features[step], sizeof all[i].feature);
            memcpy(all[i].seconds, samples[i].seconds[step], sizeof all[i].seconds);
        }
        TRY(tl_tree_train(b, all, count, &trees.tree[step], trees.score[step]));
        report->nodes[step] = trees.tree[step].nodes;
        report->train[step] = score_of(trees.score[step][0]);
        report->validate[step] = score_of(trees.score[step][1]);
    }
    TRY(tl_trees_write(b, path, &trees));
done:
    tl_free(b, all);
    return status;
}
