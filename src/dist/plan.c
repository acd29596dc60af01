/* SPDX-License-Identifier: MIT
 *
 * plan.c - patterns once, values often: lists, the pattern of B's rows here and the plan of the local product
 * are kept; a run moves values into places that are known. Memory: that of fetch.c and of a local plan, as
 * long as the plan is there. */
#include "dist/dist.h"
#include <inttypes.h>

struct tulle_dist_plan {
    tulle_dist *dist;
    tulle_csr   B;                      /* the caller's pattern */
    int64_t    *starts;
    tl_fetch    fetch;
    tulle_plan *local;
    tl_account  account;
};

/* Before anything large moves. */
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
    if (o->memory_limit > 0) local.memory_limit = o->memory_limit > held ? o->memory_limit - held : 1;
    tulle_status status = tulle_plan_create(d->ctx, &p->fetch.A, &p->fetch.B, &local, &p->local);
    if (status != TULLE_OK) return status;
    tulle_plan_stats(p->local, &stats);
    p->account.products = stats.products;
    p->account.c_nnz = tulle_plan_pattern(p->local).nnz;
    return TULLE_OK;
}

static tulle_status begin(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                          const tulle_options *o,
                          tulle_dist_plan **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist_plan *p = NULL;
    if (o->op_a != TULLE_KEEP || o->op_b != TULLE_KEEP)
        return tl_fail(d->b, TULLE_EINVAL,
                       "a distributed plan takes operands as they are; transpose them first");
    TRY(tl_calloc(d->b, &p, 1, sizeof *p, "a plan"));
    *out = p;
    p->dist = d;
    p->B = B->local;
    p->account.blocks = 1;
    TRY(tl_starts_copy(d->b, A->row_starts, d->t.size, &p->starts));
done:
    return status;
}

tulle_status tl_dist_plan_create(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                 const tulle_options *o,
                                 tulle_dist_plan **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist_plan *p = NULL;
    uint64_t entry = tl_index_size(B->local.idx_type);
    TRY(tl_dist_operands(d, A, B, o->trust_inputs, false));
    tl_count_begin(d);
    AGREE(begin(d, A, B, o, &p));
    TRY(tl_fetch_lengths(d, &A->local, B, &p->fetch));
    AGREE(has_room(p, &A->local, o));
    TRY(tl_fetch_patterns(d, &A->local, B, true, &p->fetch));
    AGREE(p->fetch.late);
    p->fetch.A.values = p->fetch.B.values = NULL;
    p->account.fetched = p->fetch.lists.need;
    p->account.exact = 8 * (uint64_t)p->fetch.lists.need + entry * (uint64_t)p->fetch.entries;
    p->account.gather = 8 * (uint64_t)B->local.rows + entry * (uint64_t)B->local.nnz;
    TRY(tl_stats_join(d, local_plan(p, o), &p->account));
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
    account.exact = value * (uint64_t)p->fetch.entries;
    account.gather = value * (uint64_t)p->B.nnz;
    tl_count_begin(d);
    if (p->account.c_nnz > 0 && !c_values) status = tl_fail(d->b, TULLE_EINVAL, "c_values is NULL");
    else if (p->fetch.A.nnz > 0 && !a_values) status = tl_fail(d->b, TULLE_EINVAL, "a_values is NULL");
    else if (p->B.nnz > 0 && !b_values) status = tl_fail(d->b, TULLE_EINVAL, "b_values is NULL");
    AGREE(status);
    TRY(tl_fetch_values(d, &p->B, b_values, &p->fetch));
    /* Where there is no entry, any pointer will do, but not none. */
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
    tl_free(b, p->starts);
    tl_free(b, p);
}
