/* SPDX-License-Identifier: MIT
 *
 * engine_several.c - several devices behind the table of engines.h, as one.
 *
 * Arrays are read on the host and C is made there, as on the CPU: a device of several knows no memory of the
 * others.  The work is done in several*.c, by the engines of the parts. */
#include "several.h"

static tulle_status spmm_scale(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y)
{
    return tl_engine_cpu.spmm_scale(p, beta, Y);        /* Y is on the host: no device has anything to add */
}

/* ---- its devices */

static tulle_status here(tulle_ctx *ctx)
{
    const tl_several *v = ctx->several;
    for (int i = 0; i < v->count; i++) {
        tulle_status status = v->part[i]->engine->here(v->part[i]);
        if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
    }
    return TULLE_OK;
}

/* They load their kernels at the same time. */
static double compiling(const tulle_ctx *ctx)
{
    const tl_several *v = ctx->several;
    double most = 0;
    for (int i = 0; i < v->count; i++) {
        double seconds = tl_ctx_compiling(v->part[i]);
        if (seconds > most) most = seconds;
    }
    return most;
}

static void trim(tulle_ctx *ctx)
{
    const tl_several *v = ctx->several;
    for (int i = 0; i < v->count; i++) v->part[i]->engine->trim(v->part[i]);
}

static tulle_status warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got)
{
    const tl_several *v = ctx->several;
    for (int i = 0; i < v->count; i++) {
        tulle_ctx *part = v->part[i];
        tulle_kernels one = {0};
        part->base.progress = ctx->base.progress;
        part->base.progress_user = ctx->base.progress_user;
        atomic_store(&part->base.cancelled, 0);
        tulle_status status = part->engine->warm(part, val_type, idx_type, &one);
        if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
        got->programs += one.programs;
        got->compiled += one.compiled;
        got->cached += one.cached;
        got->embedded += one.embedded;
        got->seconds += one.seconds;
    }
    return TULLE_OK;
}

static tulle_status merge(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result)
{
    (void)request;
    (void)result;
    return tl_fail(&ctx->base, TULLE_EDEVICE, "merge trials need a context of one GPU, and this one has %s",
                   ctx->device);
}

static tulle_status schedule(tulle_ctx *ctx, int force, int *was, double seen[2][TL_FEATURES])
{
    (void)force;
    (void)was;
    (void)seen;
    return tl_fail(&ctx->base, TULLE_EDEVICE,
                   "trials of policy delta need a context of one GPU, and this one has %s", ctx->device);
}

static uint64_t memory(const tulle_ctx *ctx)
{
    (void)ctx;
    return 0;
}

static bool too_large(tulle_status status)
{
    return tl_several_short(status);
}

/* A view over device memory does not get past the checks of a context that reads on the host. */
static tulle_status nowhere(tulle_ctx *ctx)
{
    return tl_fail(&ctx->base, TULLE_EINVAL,
                   "this context has several devices (%s), and operands and results on the host",
                   ctx->device);
}

static tulle_status move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    (void)A;
    (void)place;
    (void)out;
    return nowhere(ctx);
}

static tulle_status dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out)
{
    (void)A;
    (void)place;
    (void)out;
    return nowhere(ctx);
}

static tulle_status blank(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out)
{
    (void)pattern;
    (void)value;
    (void)out;
    return nowhere(ctx);
}

static bool handles(const tulle_ctx *ctx)
{
    (void)ctx;
    return false;
}

const tl_engine tl_engine_several = {
    .where = TL_ON_BOTH, .on_host = true,
    .prepare = tl_several_prepare, .stay = tl_several_stay, .run = tl_several_multiply,
    .done = tl_several_done, .figures = tl_several_figures,
    .room = tl_several_room, .too_large = too_large, .refuse = tl_several_refuse,
    .plan_make = tl_several_plan_make, .plan_run = tl_several_plan_run, .plan_free = tl_several_plan_free,
    .spmm_make = tl_several_spmm_make, .spmm_run = tl_several_spmm_run, .spmm_scale = spmm_scale,
    .spmm_values = tl_several_spmm_values, .spmm_free = tl_several_spmm_free,
    .here = here, .compiling = compiling, .trim = trim, .warm = warm, .merge = merge,
    .schedule = schedule,
    .move = move, .dense_move = dense_move, .blank = blank, .handles = handles,
    .memory = memory, .threads = tl_several_threads, .close = tl_several_close,
};
