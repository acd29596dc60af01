/* SPDX-License-Identifier: MIT
 *
 * several_plan.c - plans on several devices.
 *
 * The pattern of C is computed like any product (several_product.c) and joined on the host.  Then the work is
 * known exactly, and rows are divided a second time, one part per device: by products plus entries of C,
 * because a run processes both (DeltaSPARSE's second division, Algorithm 3, is by entries of C alone).
 * Devices with different names get shares in proportion to their speed in computing the pattern.  Each part
 * keeps a plan for its rows; a run executes all of them at once, directly into the caller's values of C.
 *
 * Memory: the parts' plans; a limit is divided as in a product. */
#include "several.h"
#include <string.h>

enum { SAMPLES = 1024, LEAST_WORK = 1 << 18 };

typedef struct plans {
    int64_t     row[TL_PARTS_MAX + 1];
    tulle_plan *plan[TL_PARTS_MAX];     /* NULL: no rows */
    int         used, one;              /* the number of plans; the last of them */
} plans;

/* ---- dividing rows */

typedef struct weights {
    const tl_profile *profile;
    const tulle_csr  *C;
    int64_t           step;             /* rows between two samples                 */
    int64_t           sum[SAMPLES + 1]; /* products before each sampled row         */
} weights;

static void weigh(const tl_profile *p, const tulle_csr *C, weights *w)
{
    w->profile = p;
    w->C = C;
    w->step = C->rows / SAMPLES + 1;
    w->sum[0] = 0;
    int64_t sum = 0;
    for (int64_t i = 0; i < C->rows; i++) {
        sum += p->products[i];
        if ((i + 1) % w->step == 0) w->sum[(i + 1) / w->step] = sum;
    }
}

static int64_t work_before(const void *arg, int64_t row)
{
    const weights *w = arg;
    int64_t sum = w->sum[row / w->step] + tl_row_begin(w->C, row) + row;
    for (int64_t i = row / w->step * w->step; i < row; i++) sum += w->profile->products[i];
    return sum;
}

/* The share of work of each device; false: equal shares. */
static bool find_shares(const tl_several *v, const tl_setup *s, double *share)
{
    bool same = true;
    for (int i = 0; i < v->count; i++) {
        share[i] = tl_several_rate(s, i);
        if (share[i] == 0) return false;
        same = same && v->twins[i] == v->count;
    }
    return !same;
}

/* ---- creation */

typedef struct making {
    tl_several *v;
    tl_setup   *s;
    tulle_plan *p;
    plans      *k;
    uint64_t    before, limit, share;
    bool        alone;
} making;

static void part_free(tulle_ctx *part, tulle_plan *pp)
{
    if (!pp) return;
    part->engine->plan_free(pp);
    tl_matrix_free(&part->base, pp->C);
    tl_setup_done(part, &pp->setup);
    tl_free(&part->base, pp);
}

static void set_limit(const making *m, int i, tl_setup *ps)
{
    const tulle_ctx *part = m->v->part[i];
    ps->request.memory_limit = m->alone ? m->limit : m->share;
    ps->request.later = m->alone ? m->before : 0;
    ps->request.uncounted = !m->alone;
    if (m->s->options.memory_limit)
        ps->options.memory_limit = m->alone ? m->limit : m->share ? m->share : 1;
    else if (m->v->twins[i] > 1)
        ps->options.memory_limit = part->engine->memory(part) / (uint64_t)m->v->twins[i];
}

static tulle_status make_part(void *arg, tulle_ctx *part, int i)
{
    tulle_status status = TULLE_OK;
    making *m = arg;
    plans *k = m->k;
    tulle_plan *pp = NULL;
    const uint64_t held = atomic_load(&part->base.held);
    if (k->row[i] == k->row[i + 1] && !m->alone) return TULLE_OK;
    TRY(tl_calloc(&part->base, &pp, 1, sizeof *pp, "a plan"));
    pp->ctx = part;
    pp->whole = &m->p->C->view;
    pp->row0 = m->alone ? 0 : k->row[i];
    pp->row1 = m->alone ? m->p->C->view.rows : k->row[i + 1];
    pp->setup.shared = true;
    TRY(tl_setup_share(part, m->s, tl_several_share(m->v, i, m->s->options.threads), &pp->setup));
    pp->setup.held = pp->setup.request.held = held;     /* includes the plan itself */
    set_limit(m, i, &pp->setup);
    TRY(part->engine->plan_make(pp));
    tl_matrix_free(&part->base, pp->C);         /* the caller's plan has the whole pattern */
    pp->C = NULL;
    if (!part->engine->on_host) m->v->device_bytes[i] = pp->setup.stats.peak_bytes;
    k->plan[i] = pp;
    pp = NULL;
done:
    part_free(part, pp);
    return status;
}

static void free_parts(tl_several *v, plans *k)
{
    for (int i = 0; i < v->count; i++) {
        part_free(v->part[i], k->plan[i]);
        k->plan[i] = NULL;
    }
}

static void count_parts(const tl_several *v, plans *k)
{
    k->used = 0;
    for (int i = 0; i < v->count; i++)
        if (k->plan[i]) k->used++, k->one = i;
}

static void find_limits(making *m)
{
    tl_base *b = &m->v->ctx->base;
    m->before = tl_bytes_sum(atomic_load(&b->held) - m->s->held, m->s->request.later);
    m->limit = m->s->request.memory_limit;
    uint64_t left = m->limit > m->before ? m->limit - m->before : 0;
    m->share = m->limit == UINT64_MAX ? m->limit : left / (uint64_t)m->v->count;
}

tulle_status tl_several_plan_make(tulle_plan *p)
{
    tulle_status status = TULLE_OK;
    tulle_ctx *ctx = p->ctx;
    tl_setup *s = &p->setup;
    const tl_operands *x = &s->operands;
    const uint64_t size = tl_type_size(x->A.val_type);
    making m = {.v = ctx->several, .s = s, .p = p};
    double share[TL_PARTS_MAX];
    weights w;
    TRY(tl_calloc(&ctx->base, &m.k, 1, sizeof *m.k, "plans of several devices"));
    p->kept = m.k;
    if (x->perm_a) s->request.later += (uint64_t)x->A.nnz * size;
    if (x->perm_b) s->request.later += (uint64_t)x->B.nnz * size;
    const uint64_t one = sizeof(tulle_plan) + tl_replay_bytes();        /* of a part that has all rows */
    s->request.later += one;
    TRY(tl_several_multiply(ctx, s, 0, -1, &p->C));
    s->request.later -= one;
    tl_several_release(ctx, s);
    weigh(&s->profile, &p->C->view, &w);
    tl_rows_split(work_before, &w, p->C->view.rows, m.v->count, find_shares(m.v, s, share) ? share : NULL,
                  LEAST_WORK, tl_several_rows(), m.k->row);
    find_limits(&m);
    status = tl_several_run(ctx, make_part, &m, "plan", NULL);
    if (tl_several_short(status)) {
        free_parts(m.v, m.k);
        m.alone = true;
        status = tl_several_one(ctx, tl_several_main(m.v), make_part, &m);
    }
    count_parts(m.v, m.k);
    tl_trace(&ctx->base, "a plan of %d part%s", m.k->used, m.k->used == 1 ? "" : "s");
done:
    return status;
}

/* ---- running */

typedef struct running {
    const plans *k;
    const void  *a_values, *b_values;
    void        *c_values;
} running;

static tulle_status run_part(void *arg, tulle_ctx *part, int i)
{
    const running *r = arg;
    tulle_plan *pp = r->k->plan[i];
    return pp ? part->engine->plan_run(pp, r->a_values, r->b_values, r->c_values) : TULLE_OK;
}

tulle_status tl_several_plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    running r = {p->kept, a_values, b_values, c_values};
    if (r.k->used == 1) return tl_several_one(p->ctx, r.k->one, run_part, &r);
    return tl_several_run(p->ctx, run_part, &r, "numeric", NULL);
}

void tl_several_plan_free(tulle_plan *p)
{
    if (!p->kept) return;
    free_parts(p->ctx->several, p->kept);
    tl_free(&p->ctx->base, p->kept);
    p->kept = NULL;
}
