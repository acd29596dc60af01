/* SPDX-License-Identifier: MIT
 *
 * setup.c - what every product does before an engine runs, and the figures it leaves behind: options checked,
 * operands ready, recipe chosen, and for the CPU's engine the profile taken (a GPU takes its own). */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

static tulle_status check_index(tl_base *b, const tulle_options *o, int64_t cols)
{
    if (o->c_idx_type == TULLE_I32 && cols > 0 && !tl_fits(TULLE_I32, cols - 1))
        return tl_fail(b, TULLE_EOVERFLOW, "C has %" PRId64 " columns, more than 32-bit column indices can "
                       "name (%" PRId64 "); ask for 64 bit", cols, (int64_t)TULLE_I32_LIMIT + 1);
    return TULLE_OK;
}

static void tell(tl_base *b, const tl_setup *s)
{
    const tl_profile *p = &s->profile;
    tl_trace(b, "profile: %" PRId64 " products, at most %" PRId64 " a row; C has %" PRId64 " to %" PRId64
             " entries", p->total, p->max_products, p->lower, p->upper);
    if (p->a_like || p->b_like)
        tl_trace(b, "rows like the row before: A %" PRId64 " equal, %" PRId64 " shifted by one; B %" PRId64
                 " equal, %" PRId64 " shifted", p->a_twins, p->a_shifted, p->b_twins, p->b_shifted);
    tl_trace(b, "policy %s, %d thread%s, %s kernels", s->recipe.policy->name, s->request.threads,
             s->request.threads == 1 ? "" : "s", tl_cpu_isa());
}

/* Bytes that the profile takes at most: is there room for it? */
static tulle_status check_profile(tl_base *b, const tl_setup *s)
{
    const tl_operands *x = &s->operands;
    uint64_t rows = (uint64_t)x->A.rows, bytes = tl_bytes_of(rows, 9) + (uint64_t)x->B.rows;
    bytes = tl_bytes_sum(bytes, atomic_load(&b->held) - s->held);
    uint64_t limit = tl_limit_for(&s->options, bytes);
    if (bytes <= limit || bytes <= TL_LOOK_BYTES) return TULLE_OK;
    return tl_fail(b, TULLE_ELIMIT, "the row analysis alone needs %" PRIu64 " bytes (%" PRIu64 " rows, "
                   "copies of the operands included), the limit is %" PRIu64, bytes, rows, limit);
}

/* What the CPU's engine needs to know, and what blocks and estimates look at. */
static tulle_status make_request(tl_base *b, tl_setup *s, bool values)
{
    tulle_status status = TULLE_OK;
    const tulle_options *o = &s->options;
    const tl_operands *x = &s->operands;
    TRY(check_profile(b, s));
    TRY(tl_profile_make(b, &x->A, &x->B, s->recipe.alike, o->threads, &s->profile));
    if (s->recipe.forced == TL_STENCIL) s->profile.repeats = true;
    s->request = (tl_request){.A = &x->A, .B = &x->B, .recipe = &s->recipe, .profile = &s->profile,
                              .threads = tl_cpu_threads(b, o->threads, s->profile.total),
                              .held = s->held, .ptr_type = o->c_ptr_type, .idx_type = o->c_idx_type,
                              .drop_zeros = o->drop_zeros, .values = values, .row0 = 0, .row1 = x->A.rows};
    uint64_t most = tl_bytes_sum(tl_cpu_workspace(&s->request),
                                 tl_cpu_c_bytes(&s->request, s->profile.upper, TULLE_I64));
    s->request.memory_limit = tl_limit_for(o, most);
    /* what the machine has left is beside what we hold already */
    if (!o->memory_limit)
        s->request.memory_limit = tl_bytes_sum(s->request.memory_limit, atomic_load(&b->held) - s->held);
    s->stats.products = s->profile.total;
    tell(b, s);
done:
    return status;
}

static void make_gpu_request(tulle_ctx *ctx, tl_setup *s, bool values)
{
    const tulle_options *o = &s->options;
    const tl_operands *x = &s->operands;
    s->gpu = (tl_gpu_request){.A = &x->A, .B = &x->B, .recipe = &s->recipe, .ptr_type = o->c_ptr_type,
                              .idx_type = o->c_idx_type, .place = (tulle_place)o->c_place,
                              .memory_limit = o->memory_limit, .values = values, .drop_zeros = o->drop_zeros,
                              .trusted = x->checked || o->trust_inputs, .stages = o->time_stages,
                              .row0 = 0, .row1 = -1};
    s->stats.device = ctx->device;
    s->stats.isa = tl_gpu_caps(ctx->gpu)->arch;
    tl_trace(&ctx->base, "policy %s on %s, %s", s->recipe.policy->name, ctx->device, s->stats.isa);
}

tulle_status tl_setup_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                           int want, tl_setup *s)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    bool values = want & TL_VALUES;
    memset(s, 0, sizeof *s);
    s->start = tl_now();
    s->compiling = tl_ctx_compiling(ctx);
    s->held = atomic_load(&b->held);
    atomic_store(&b->peak, s->held);
    TRY(tl_options_check(ctx, options, &s->options));
    TRY(tl_operands_make(ctx, A, B, &s->options, want, &s->operands));
    const tl_operands *x = &s->operands;
    TRY(check_index(b, &s->options, x->B.cols));
    double analyze = tl_now();
    TRY(tl_recipe_make(b, &s->options, &s->recipe));
    TRY(tl_recipe_check(b, &s->recipe, ctx->gpu ? TL_ON_GPU : TL_ON_CPU, ctx->device));
    s->stats = (tulle_stats){.sec_check = x->seconds, .a_nnz = x->a_nnz, .b_nnz = x->b_nnz,
                             .policy = s->recipe.policy->name, .device = ctx->device, .isa = tl_cpu_isa()};
    if (!ctx->gpu || (want & TL_LOOK)) TRY(make_request(b, s, values));
    if (ctx->gpu) make_gpu_request(ctx, s, values);
    s->stats.sec_analyze = tl_now() - analyze;
done:
    if (status != TULLE_OK) tl_setup_done(b, s);
    return status;
}

/* The stages of a CPU product; a device has told its own. */
static void name_stages(tulle_stats *t)
{
    const tulle_stage stage[] = {{"check", t->sec_check}, {"analyze", t->sec_analyze},
                                 {"symbolic", t->sec_symbolic}, {"numeric", t->sec_numeric},
                                 {"finish", t->sec_finish}};
    t->stages = (int)(sizeof stage / sizeof *stage);
    memcpy(t->stage, stage, sizeof stage);
}

void tl_setup_stats(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    tulle_stats *stats = &s->stats;
    stats->sec_total = tl_now() - s->start;
    stats->sec_compile = tl_ctx_compiling(ctx) - s->compiling;
    if (!ctx->gpu) {                    /* an engine on a device has counted there */
        stats->peak_bytes = atomic_load(&ctx->base.peak) - s->held;
        stats->workspace_bytes = stats->peak_bytes > c_bytes ? stats->peak_bytes - c_bytes : 0;
        if (s->options.time_stages) name_stages(stats);
    }
    ctx->stats = *stats;
}

void tl_setup_done(tl_base *b, tl_setup *s)
{
    tl_profile_done(b, &s->profile);
    tl_operands_done(b, &s->operands);
}

uint64_t tl_csr_bytes(const tulle_csr *A)
{
    uint64_t entry = tl_index_size(A->idx_type) + (A->values ? tl_type_size(A->val_type) : 0);
    return tl_bytes_sum(tl_bytes_of((uint64_t)A->rows + 1, tl_index_size(A->ptr_type)),
                        tl_bytes_of((uint64_t)A->nnz, entry));
}
