/* SPDX-License-Identifier: MIT
 *
 * engine_several.c - the engine table (engines.h) of several devices that work as one.
 *
 * Operands are read on the host and C is built there, as on the CPU: a device cannot access the memory of
 * another.  The computation is in several*.c, by the engines of the single devices. */
#include "several.h"

static tulle_status spmm_scale(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y)
{
    return tl_engine_cpu.spmm_scale(p, beta, Y);        /* Y is on the host, so the CPU scales it */
}

/* ---- device functions */

static tulle_status here(tulle_ctx *ctx)
{
    const tl_several *v = ctx->several;
    for (int i = 0; i < v->count; i++) {
        tulle_status status = v->part[i]->engine->here(v->part[i]);
        if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
    }
    return TULLE_OK;
}

/* The devices load their kernels at the same time: so the maximum, not the sum. */
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

static bool too_large(tulle_status status)
{
    return tl_several_short(status);
}

const tl_engine tl_engine_several = {
    .where = TL_ON_BOTH, .on_host = true,
    .prepare = tl_several_prepare, .stay = tl_host_stay, .run = tl_several_multiply,
    .done = tl_several_done, .host_bytes = tl_several_host_bytes, .figures = tl_several_figures,
    .room = tl_several_room, .too_large = too_large, .refuse = tl_several_refuse,
    .plan_make = tl_several_plan_make, .plan_run = tl_several_plan_run, .plan_free = tl_several_plan_free,
    .spmm_make = tl_several_spmm_make, .spmm_run = tl_several_spmm_run, .spmm_scale = spmm_scale,
    .spmm_values = tl_several_spmm_values, .spmm_free = tl_several_spmm_free,
    .here = here, .compiling = compiling, .trim = trim, .warm = warm, .merge = tl_host_merge,
    .schedule = tl_host_schedule,
    .move = tl_host_move, .dense_move = tl_host_dense_move, .blank = tl_host_blank,
    .handles = tl_host_handles,
    .memory = tl_host_memory, .threads = tl_several_threads, .close = tl_several_close,
};
