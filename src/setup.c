/* SPDX-License-Identifier: MIT
 *
 * setup.c - what every product does before the engine runs (check options, prepare operands, choose the
 * recipe, prepare the engine), and the stats afterwards.  Several contexts may share one setup
 * (tl_setup_share()). */
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

tulle_status tl_setup_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                           const tulle_options *options, int want, tl_setup *s)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    memset(s, 0, sizeof *s);
    s->engine = ctx->engine;
    s->device = ctx->device;
    s->values = want & TL_VALUES;
    s->start = tl_now();
    s->compiling = tl_ctx_compiling(ctx);
    s->held = atomic_load(&b->held);
    TRY(tl_options_check(ctx, options, &s->options));
    TRY(tl_recipe_make(b, &s->options, &s->recipe));
    tl_choose_product(ctx, A, B, want, s);
    atomic_store(&b->peak, s->held);
    tulle_csr a = *A, c = *B;
    if ((want & TL_PERMS) && s->engine->on_host) a.values = c.values = NULL;    /* each run passes values */
    TRY(tl_operands_make(ctx, s->engine, &a, &c, &s->options, want, &s->operands));
    const tl_operands *x = &s->operands;
    TRY(check_index(b, &s->options, x->B.cols));
    double analyze = tl_now();
    TRY(tl_recipe_check(b, &s->recipe, s->engine->where, s->device));
    s->stats = (tulle_stats){.sec_check = x->seconds, .a_nnz = x->a_nnz, .b_nnz = x->b_nnz,
                             .policy = s->recipe.policy->name, .device = s->device, .isa = tl_cpu_isa()};
    TRY(s->engine->prepare(ctx, s, want));
    s->stats.sec_analyze = tl_now() - analyze;
done:
    if (status != TULLE_OK) tl_setup_done(ctx, s);
    return status;
}

tulle_status tl_setup_share(tulle_ctx *ctx, const tl_setup *from, int threads, tl_setup *s)
{
    tl_base *b = &ctx->base;
    memset(s, 0, sizeof *s);
    s->engine = ctx->engine;
    s->device = ctx->device;
    s->options = from->options;
    s->options.threads = threads;
    s->options.op_a = s->options.op_b = TULLE_KEEP;
    s->options.sort_inputs = s->options.time_stages = 0;
    s->options.trust_inputs = 1;
    s->operands = (tl_operands){.A = from->operands.A, .B = from->operands.B, .checked = true,
                                .a_nnz = from->operands.a_nnz, .b_nnz = from->operands.b_nnz};
    s->recipe = from->recipe;
    s->values = from->values;
    s->profile = from->profile;
    s->shared = true;
    s->start = tl_now();
    s->compiling = tl_ctx_compiling(ctx);
    s->held = atomic_load(&b->held);
    s->stats = (tulle_stats){.policy = s->recipe.policy->name, .device = ctx->device, .isa = tl_cpu_isa()};
    return ctx->engine->prepare(ctx, s, s->values ? TL_VALUES : 0);
}

void tl_stages_name(tulle_stats *t, unsigned which)
{
    const tulle_stage all[] = {{"compile", t->sec_compile, {0}}, {"check", t->sec_check, {0}},
                               {"analyze", t->sec_analyze, {0}}, {"symbolic", t->sec_symbolic, {0}},
                               {"numeric", t->sec_numeric, {0}}, {"finish", t->sec_finish, {0}}};
    t->stages = 0;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (which >> i & 1) t->stage[t->stages++] = all[i];
}

/* Shares are matched by name, because an engine lists only the accumulators that it used. */
static void add_shares(const tulle_stats *from, tulle_stats *to)
{
    for (int i = 0; i < from->shares; i++) {
        int k = 0;
        while (k < to->shares && strcmp(to->share[k].name, from->share[i].name) != 0) k++;
        if (k == TULLE_MAX_SHARES) continue;
        if (k == to->shares) to->share[to->shares++] = (tulle_share){.name = from->share[i].name};
        to->share[k].rows += from->share[i].rows;
        to->share[k].products += from->share[i].products;
    }
}

/* Also for times, waits and bytes, which an engine resets in each product. */
void tl_stats_add(const tulle_stats *from, tulle_stats *to)
{
    add_shares(from, to);
    for (int i = 0; i < from->stages; i++) {
        int k = 0;
        while (k < to->stages && strcmp(to->stage[k].name, from->stage[i].name) != 0) k++;
        if (k == TULLE_MAX_STAGES) continue;
        if (k == to->stages) to->stage[to->stages++] = (tulle_stage){.name = from->stage[i].name};
        to->stage[k].seconds += from->stage[i].seconds;
    }
    to->waits += from->waits;
    if (to->peak_bytes < from->peak_bytes) to->peak_bytes = from->peak_bytes;
    if (to->workspace_bytes < from->workspace_bytes) to->workspace_bytes = from->workspace_bytes;
}

void tl_setup_stats(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    tulle_stats *stats = &s->stats;
    stats->sec_total = tl_now() - s->start;
    stats->sec_compile = tl_ctx_compiling(ctx) - s->compiling;
    s->engine->figures(ctx, s, c_bytes);
    ctx->stats = *stats;
    ctx->base.error[0] = 0;             /* errors from which the product recovered */
}

void tl_setup_done(tulle_ctx *ctx, tl_setup *s)
{
    if (s->engine) s->engine->done(ctx, s);
    if (s->shared) return;
    tl_profile_done(&ctx->base, &s->profile);
    tl_operands_done(&ctx->base, &s->operands);
}

uint64_t tl_csr_bytes(const tulle_csr *A)
{
    uint64_t entry = tl_index_size(A->idx_type) + (A->values ? tl_type_size(A->val_type) : 0);
    return tl_bytes_sum(tl_bytes_of((uint64_t)A->rows + 1, tl_index_size(A->ptr_type)),
                        tl_bytes_of((uint64_t)A->nnz, entry));
}
