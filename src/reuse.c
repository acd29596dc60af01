/* SPDX-License-Identifier: MIT
 *
 * reuse.c - plans: the symbolic phase once, the numeric phase many times.
 *
 * A plan holds the pattern of C and the engine's data for its runs, which execute only the numeric kernels.
 * Of a transposed operand it keeps a copy and the permutation of its entries; new values are permuted on the
 * host. */
#include "ctx.h"
#include <string.h>

/* Frees what an engine allocated for a plan. */
static void clear(tulle_plan *p)
{
    tl_base *b = &p->ctx->base;
    if (p->setup.engine) p->setup.engine->plan_free(p);
    p->kept = NULL;
    tl_matrix_free(b, p->C);
    p->C = NULL;
    tl_setup_done(p->ctx, &p->setup);
}

static tulle_status make(tulle_plan *p, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         int use)
{
    tulle_status status = TULLE_OK;
    tl_setup *s = &p->setup;
    TRY(tl_setup_make(p->ctx, A, B, options, TL_PERMS | use, s));
    int idx_type = s->options.c_idx_type;
    if (idx_type && (tulle_index)idx_type != s->operands.B.idx_type) {
        status = tl_fail(&p->ctx->base, TULLE_ETYPE, "a plan gives C the column indices of B (%s)",
                         tl_index_name(s->operands.B.idx_type));
        goto done;
    }
    TRY(s->engine->plan_make(p));
done:
    return status;
}

tulle_status tl_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                            const tulle_options *options, tulle_plan **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_plan *p = NULL;
    int use = 0;
    if (options && (options->drop_zeros || options->sort_inputs)) {
        status = tl_fail(b, TULLE_EINVAL, "a plan knows patterns only: %s is not for plans",
                         options->drop_zeros ? "drop_zeros" : "sort_inputs");
        goto done;
    }
    TRY(tl_calloc(b, &p, 1, sizeof *p, "a plan"));
    p->ctx = ctx;
    p->a = *A;
    p->b = *B;
    TRY(tl_view_check(ctx, A, "A"));
    TRY(tl_view_check(ctx, B, "B"));
    p->a_first = tl_csr_first(A);
    p->b_first = tl_csr_first(B);
    do {                                /* if it does not fit, the other engine tries, if there is one */
        clear(p);
        status = make(p, A, B, options, use);
    } while ((use = tl_choose_other(ctx, &p->setup.chosen, status)) != 0);
    TRY(status);
    const tl_operands *x = &p->setup.operands;
    size_t size = tl_type_size(x->A.val_type);
    if (x->perm_a) TRY(tl_alloc(b, &p->a_copy, x->A.nnz, size, "values of a transposed A"));
    if (x->perm_b) TRY(tl_alloc(b, &p->b_copy, x->B.nnz, size, "values of a transposed B"));
    tl_setup_stats(ctx, &p->setup, tl_csr_bytes(&p->C->view));
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
        if (j->type == TULLE_CF32) ((tl_c32 *)j->to)[i].im = -((tl_c32 *)j->to)[i].im;
        if (j->type == TULLE_CF64) ((tl_c64 *)j->to)[i].im = -((tl_c64 *)j->to)[i].im;
    }
}

/* Permutes *values of a transposed operand into the order of the plan.  Values on a device are copied to the
 * host for that, together with their pattern. */
static tulle_status in_order(tulle_ctx *ctx, const tulle_csr *given, const int64_t *perm, int64_t count,
                             bool conjugate, void *copy, const void **values)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view = *given;
    tulle_matrix *own = NULL;
    if (!perm) return TULLE_OK;
    view.values = *values;
    if (view.place == TULLE_DEVICE) TRY(tl_on_host(ctx, &view, "values", &view, &own));
    permute_job j = {perm, view.values, copy, count, view.val_type, conjugate};
    tl_team_run(b->team, 0, permute, &j);
    *values = copy;
done:
    tl_matrix_free(b, own);
    return status;
}

/* Refuses an array for C that overlaps the values of an operand, which are read while C is written.  Arrays
 * on a device are not compared. */
static tulle_status check_apart(const tulle_plan *p, const tulle_csr *A, const char *name, const void *values,
                                const void *c_values)
{
    uintptr_t size = tl_type_size(A->val_type), a = (uintptr_t)values, c = (uintptr_t)c_values;
    if (A->place != TULLE_HOST || p->setup.options.c_place != TULLE_HOST || A->nnz == 0
        || p->setup.stats.c_nnz == 0 || a >= c + (uintptr_t)p->setup.stats.c_nnz * size
        || c >= a + (uintptr_t)A->nnz * size)
        return TULLE_OK;
    return tl_fail(&p->ctx->base, TULLE_EINVAL, "c_values and %s overlap", name);
}

tulle_status tl_plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    tulle_status status = TULLE_OK;
    const tl_operands *x = &p->setup.operands;
    const tulle_options *o = &p->setup.options;
    double start = tl_now(), compiling = tl_ctx_compiling(p->ctx);
    a_values = tl_array_from(a_values, tl_type_size(p->a.val_type), p->a_first);
    b_values = tl_array_from(b_values, tl_type_size(p->b.val_type), p->b_first);
    TRY(tl_array_check(p->ctx, p->a.nnz > 0 ? p->a.place : TULLE_HOST, a_values, "A", "a_values"));
    TRY(tl_array_check(p->ctx, p->b.nnz > 0 ? p->b.place : TULLE_HOST, b_values, "B", "b_values"));
    TRY(tl_array_check(p->ctx, p->setup.stats.c_nnz > 0 ? o->c_place : TULLE_HOST, c_values, "C",
                       "c_values"));
    TRY(check_apart(p, &p->a, "a_values", a_values, c_values));
    TRY(check_apart(p, &p->b, "b_values", b_values, c_values));
    TRY(in_order(p->ctx, &p->a, x->perm_a, x->A.nnz, o->op_a == TULLE_ADJOINT, p->a_copy, &a_values));
    TRY(in_order(p->ctx, &p->b, x->perm_b, x->B.nnz, o->op_b == TULLE_ADJOINT, p->b_copy, &b_values));
    TRY(p->setup.engine->plan_run(p, a_values, b_values, c_values));
done:
    compiling = tl_ctx_compiling(p->ctx) - compiling;   /* kernels that only runs need are loaded here */
    double run = tl_now() - start;
    p->setup.stats.sec_numeric = run - compiling;
    p->setup.stats.sec_total += run - p->last_run;              /* creating the plan plus its last run */
    p->last_run = run;
    p->setup.stats.sec_compile += compiling;
    p->ctx->stats = p->setup.stats;
    return status;
}

void tl_plan_free(tulle_plan *p)
{
    if (!p) return;
    tl_base *b = &p->ctx->base;
    clear(p);
    tl_free(b, p->a_copy);
    tl_free(b, p->b_copy);
    tl_free(b, p);
}
