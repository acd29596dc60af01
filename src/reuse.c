/* SPDX-License-Identifier: MIT
 *
 * reuse.c - plans: patterns once, values many times.
 *
 * A plan holds the pattern of C, the pieces and the scratch; a run goes straight to the numeric kernels.
 * A transposed operand is kept as a copy together with where its entries came from, so that new
 * values find their places. */
#include "ctx.h"
#include <string.h>

tulle_status tl_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                            const tulle_options *options, tulle_plan **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o;
    tl_recipe recipe;
    tl_request r;
    tulle_plan *p = NULL;
    double start = tl_now();
    TRY(tl_options_check(b, options, &o));
    if (o.drop_zeros || o.sort_inputs) {
        status = tl_fail(b, TULLE_EINVAL, "a plan knows patterns only: %s is not for plans",
                         o.drop_zeros ? "drop_zeros" : "sort_inputs");
        goto done;
    }
    TRY(tl_calloc(b, &p, 1, sizeof *p, "a plan"));
    p->ctx = ctx;
    p->op_a = o.op_a;
    p->op_b = o.op_b;
    uint64_t held = tl_stats_begin(ctx, &p->stats);
    TRY(tl_operands_make(b, A, B, &o, false, true, &p->operands));
    const tulle_csr *a = &p->operands.A, *bb = &p->operands.B;
    if (o.c_idx_type && (tulle_index)o.c_idx_type != bb->idx_type) {
        status = tl_fail(b, TULLE_ETYPE, "a plan gives C the column indices of B (%s)",
                         tl_index_name(bb->idx_type));
        goto done;
    }
    double analyze = tl_now();
    TRY(tl_request_make(b, &p->operands, &o, &recipe, &p->profile, &r));
    p->stats.sec_analyze = tl_now() - analyze;
    r.values = false;
    TRY(tl_cpu_multiply(b, &r, &p->C, &p->stats));
    TRY(tl_replay_make(b, &r, &p->C->view, &p->replay));
    if (p->operands.perm_a)
        TRY(tl_alloc(b, &p->a_copy, a->nnz, tl_type_size(a->val_type), "values of a transposed A"));
    if (p->operands.perm_b)
        TRY(tl_alloc(b, &p->b_copy, bb->nnz, tl_type_size(bb->val_type), "values of a transposed B"));
    p->stats.sec_check = p->operands.seconds;
    p->stats.a_nnz = a->nnz;
    p->stats.b_nnz = bb->nnz;
    p->stats.products = p->profile.total;
    p->stats.policy = recipe.policy->name;
    p->stats.sec_total = tl_now() - start;
    tl_stats_end(ctx, &p->stats, held, tl_csr_bytes(&p->C->view));
    ctx->stats = p->stats;
    *out = p;
    p = NULL;
done:
    tl_plan_free(p);
    return status;
}

typedef struct permute_job {
    const int64_t *perm;
    const void    *from;
    void          *to;
    int64_t        count;
    tulle_type     type;
    bool           conjugate;
} permute_job;

static void permute(void *arg, int thread, int threads)
{
    const permute_job *j = arg;
    size_t size = tl_type_size(j->type);
    int64_t begin = tl_part(j->count, thread, threads), end = tl_part(j->count, thread + 1, threads);
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)j->to + (size_t)i * size, (const char *)j->from + (size_t)j->perm[i] * size, size);
    for (int64_t i = begin; i < end && j->conjugate; i++) {
        if (j->type == TULLE_C32) ((tl_c32 *)j->to)[i].im = -((tl_c32 *)j->to)[i].im;
        if (j->type == TULLE_C64) ((tl_c64 *)j->to)[i].im = -((tl_c64 *)j->to)[i].im;
    }
}

/* The values of an operand in the order the plan wants them. */
static const void *in_order(tl_base *b, const tulle_csr *view, const int64_t *perm, bool conjugate,
                            const void *values, void *copy)
{
    if (!perm) return values;
    permute_job j = {perm, values, copy, view->nnz, view->val_type, conjugate};
    tl_team_run(b->team, 0, permute, &j);
    return copy;
}

tulle_status tl_plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    tl_base *b = &p->ctx->base;
    double start = tl_now();
    a_values = in_order(b, &p->operands.A, p->operands.perm_a, p->op_a == TULLE_ADJOINT, a_values, p->a_copy);
    b_values = in_order(b, &p->operands.B, p->operands.perm_b, p->op_b == TULLE_ADJOINT, b_values, p->b_copy);
    tulle_status status = tl_replay_run(b, p->replay, a_values, b_values, c_values);
    p->stats.sec_numeric = tl_now() - start;
    p->ctx->stats = p->stats;
    return status;
}

void tl_plan_free(tulle_plan *p)
{
    if (!p) return;
    tl_base *b = &p->ctx->base;
    tl_replay_free(b, p->replay);
    tl_matrix_free(b, p->C);
    tl_profile_done(b, &p->profile);
    tl_operands_done(b, &p->operands);
    tl_free(b, p->a_copy);
    tl_free(b, p->b_copy);
    tl_free(b, p);
}
