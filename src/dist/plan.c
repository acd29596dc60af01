/* SPDX-License-Identifier: MIT
 *
 * plan.c - distributed plans.  A plan keeps the lists, the pattern of the local B, and the plan of the local
 * product; a run moves only values, to known places.  For a transposed operand its pattern and the places of
 * its values are kept, too.  Memory: that of fetch.c, of a local plan and of turn.c, as long as the plan
 * exists. */
#include "dist/dist.h"
#include <inttypes.h>

struct tulle_dist_plan {
    tulle_dist *dist;
    tulle_csr   B;                      /* the caller's pattern, or its transpose */
    tl_lent     lent_a, lent_b;         /* the caller's views                     */
    int64_t     a_nnz, b_nnz;
    tulle_dist_matrix *own_a, *own_b;   /* transposed operands                    */
    tl_turn     turn_a, turn_b;
    int64_t    *starts;
    tl_fetch    fetch;
    tulle_plan *local;
    tl_account  account;
};

/* Checks the memory limit, before anything large is moved. */
static tulle_status has_room(const tulle_dist_plan *p, const tulle_csr *A, const tulle_options *o)
{
    uint64_t bytes = tl_fetch_bytes(&p->fetch, A, &p->B, true);
    if (o->memory_limit == 0 || bytes <= o->memory_limit) return TULLE_OK;
    return tl_fail(p->dist->b, TULLE_ELIMIT, "a plan needs %" PRIu64
                   " bytes for rows of B here, the limit is %"
                   PRIu64 " bytes", bytes, o->memory_limit);
}

static tulle_status local_plan(tulle_dist_plan *p, const tulle_options *o)
{
    tulle_dist *d = p->dist;
    tulle_options local = *o;
    tulle_stats stats;
    uint64_t held = tl_fetch_bytes(&p->fetch, &p->fetch.A, &p->B, true);
    local.trust_inputs = 1;
    local.op_a = local.op_b = TULLE_KEEP;
    if (o->memory_limit > 0) local.memory_limit = o->memory_limit > held ? o->memory_limit - held : 1;
    tulle_status status = tulle_plan_create(d->ctx, &p->fetch.A, &p->fetch.B, &local, &p->local);
    if (status != TULLE_OK) return status;
    tulle_plan_stats(p->local, &stats);
    p->account.products = stats.products;
    p->account.c_nnz = tulle_plan_pattern(p->local).nnz;
    return TULLE_OK;
}

/* *view is A, or its transpose, which the plan keeps. */
static tulle_status operand(tulle_dist *d, const tulle_dist_csr *A, int op, tl_turn *turn,
                            tulle_dist_matrix **own, tulle_dist_csr *view)
{
    tulle_status status = TULLE_OK;
    *view = *A;
    if (op == TULLE_KEEP) return TULLE_OK;
    TRY(tl_dist_turn(d, A, (tulle_op)op, NULL, turn, own));
    *view = tulle_dist_matrix_view(*own);
done:
    return status;
}

static tulle_status make(tulle_dist_plan *p, const tulle_dist_csr *A, const tulle_dist_csr *B,
                         const tulle_options *o)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = p->dist;
    tulle_dist_csr a, b;
    uint64_t entry = tl_index_size(B->local.idx_type);
    if (o->op_a != TULLE_KEEP || o->op_b != TULLE_KEEP) {
        TRY(tl_dist_check(d, A, "A", o->trust_inputs));
        TRY(tl_dist_check(d, B, "B", o->trust_inputs));
    }
    TRY(operand(d, A, o->op_a, &p->turn_a, &p->own_a, &a));
    TRY(operand(d, B, o->op_b, &p->turn_b, &p->own_b, &b));
    TRY(tl_dist_operands(d, &a, &b, o->trust_inputs || p->own_a || p->own_b, false));
    tl_count_begin(d);
    p->B = b.local;
    p->a_nnz = A->local.nnz;
    p->b_nnz = B->local.nnz;
    p->account.blocks = 1;
    AGREE(tl_starts_copy(d->b, a.row_starts, d->t.size, &p->starts));
    TRY(tl_fetch_lengths(d, &a.local, &b, &p->fetch));
    AGREE(has_room(p, &a.local, o));
    TRY(tl_fetch_patterns(d, &a.local, &b, true, &p->fetch));
    AGREE(p->fetch.late);
    p->fetch.A.values = p->fetch.B.values = NULL;
    p->account.fetched = p->fetch.lists.need;
    p->account.exact = 8 * (uint64_t)p->fetch.lists.need + entry * (uint64_t)p->fetch.entries;
    p->account.gather = 8 * (uint64_t)b.local.rows + entry * (uint64_t)b.local.nnz;
    TRY(tl_stats_join(d, local_plan(p, o), &p->account));
done:
    return status;
}

tulle_status tl_dist_plan_create(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                 const tulle_options *o, tulle_dist_plan **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist_plan *p = NULL;
    status = tl_calloc(d->b, &p, 1, sizeof *p, "a plan");
    if (status == TULLE_OK) {
        p->dist = d;
        status = tl_lend(d, A, "A", &p->lent_a);
    }
    if (status == TULLE_OK && B != A) status = tl_lend(d, B, "B", &p->lent_b);
    AGREE(status);
    if (B == A) p->lent_b = (tl_lent){.view = p->lent_a.view, .first = p->lent_a.first};
    TRY(make(p, &p->lent_a.view, B == A ? &p->lent_a.view : &p->lent_b.view, o));
    *out = p;
    p = NULL;
done:
    tl_dist_plan_free(p);
    return status;
}

tulle_status tl_dist_plan_run(tulle_dist_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = p->dist;
    tl_account account = p->account;
    uint64_t value = tl_type_size(p->B.val_type);
    account.exact = value * (uint64_t)(p->fetch.entries + p->turn_a.elsewhere + p->turn_b.elsewhere);
    account.gather = value * (uint64_t)p->B.nnz;
    tl_count_begin(d);
    if (p->account.c_nnz > 0 && !c_values) status = tl_fail(d->b, TULLE_EINVAL, "c_values is NULL");
    else if (p->a_nnz > 0 && !a_values) status = tl_fail(d->b, TULLE_EINVAL, "a_values is NULL");
    else if (p->b_nnz > 0 && !b_values) status = tl_fail(d->b, TULLE_EINVAL, "b_values is NULL");
    AGREE(status);
    a_values = tl_lent_values(&p->lent_a, a_values);
    b_values = tl_lent_values(&p->lent_b, b_values);
    if (p->own_a) {
        TRY(tl_turn_values(d, TULLE_OK, a_values, &p->turn_a));
        a_values = p->turn_a.values;
    }
    if (p->own_b) {
        TRY(tl_turn_values(d, TULLE_OK, b_values, &p->turn_b));
        b_values = p->turn_b.values;
    }
    TRY(tl_fetch_values(d, &p->B, b_values, &p->fetch));
    /* Without entries the pointer is not used, but must not be NULL. */
    status = tulle_plan_run(p->local, a_values ? a_values : (const void *)p, d->t.size > 1 ? p->fetch.values
                            : b_values ? b_values : (const void *)p, c_values ? c_values : (void *)p);
    TRY(tl_stats_join(d, status, &account));
done:
    return status;
}

tulle_dist_csr tl_dist_plan_pattern(const tulle_dist_plan *p)
{
    return (tulle_dist_csr){.local = tulle_plan_pattern(p->local), .row_starts = p->starts};
}

tulle_dist *tl_dist_plan_dist(const tulle_dist_plan *p)
{
    return p->dist;
}

void tl_dist_plan_free(tulle_dist_plan *p)
{
    if (!p) return;
    tl_base *b = p->dist->b;
    tulle_plan_free(p->local);
    tl_fetch_done(b, &p->fetch);
    tl_turn_done(b, &p->turn_a);
    tl_turn_done(b, &p->turn_b);
    tl_dist_matrix_free(b, p->own_a);
    tl_dist_matrix_free(b, p->own_b);
    tl_lent_end(b, &p->lent_a);
    tl_lent_end(b, &p->lent_b);
    tl_free(b, p->starts);
    tl_free(b, p);
}
