/* SPDX-License-Identifier: MIT
 *
 * estimate.c - counts and memory of a product before anything large is allocated.
 *
 * The number of products is exact.  nnz(C) is at least the sum, over all rows, of the length of the longest
 * row of B that is used, and at most the sum of min(products, columns); the estimate counts a sample of the
 * pieces exactly, and all of them if the product is small.  With drop_zeros the lower bound is 0.  A product
 * on a GPU is estimated on the host as well, with the accumulators of the CPU.
 *
 * Bytes are those of one pass on all threads (cpu/room.c), or with several devices those of all parts on the
 * host (device memory cannot be predicted), plus what the estimate itself holds: it makes the same copies of
 * the operands and the same profile as the product.  Operands may be patterns: the bytes that their values
 * would take in copies are added. */
#include "ctx.h"
#include <string.h>

enum { SAMPLED_PIECES = 64 };

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Scales the shares of the sample to all rows and products. */
static void scale_shares(const tulle_stats *sample, int64_t rows, int64_t products, tulle_forecast *f)
{
    double seen_rows = 0, seen_products = 0;
    for (int i = 0; i < sample->shares; i++) {
        seen_rows += (double)sample->share[i].rows;
        seen_products += (double)sample->share[i].products;
    }
    for (int i = 0; i < sample->shares; i++) {
        const tulle_share *s = &sample->share[i];
        f->share[i].name = s->name;
        if (seen_rows > 0) f->share[i].rows = (int64_t)((double)s->rows / seen_rows * (double)rows + 0.5);
        if (seen_products > 0)
            f->share[i].products = (int64_t)((double)s->products / seen_products * (double)products + 0.5);
    }
    f->shares = sample->shares;
}

/* Bytes that the copies of operands do not include: values, where only patterns were given, and the
 * permutations that a plan keeps. */
static uint64_t missing(const tl_operands *x)
{
    const tulle_csr *view[] = {&x->A, &x->B};
    /* the copy of a slice has only row pointers */
    const bool own[] = {x->own_a && x->own_a->col_idx, x->own_b && x->own_b->col_idx};
    uint64_t bytes = 0;
    for (int i = 0; i < 2; i++)
        if (own[i])
            bytes = tl_bytes_sum(bytes, tl_bytes_of((uint64_t)view[i]->nnz,
                                 sizeof(int64_t) + (view[i]->values ? 0 : tl_type_size(view[i]->val_type))));
    return bytes;
}

static uint64_t bytes_for(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces, int64_t nnz,
                          bool exact)
{
    const tl_base *b = &ctx->base;
    uint64_t lack = missing(&s->operands), base = tl_bytes_sum(tl_cpu_base(b, &s->request), lack);
    uint64_t bytes = s->engine->host_bytes(ctx, s, pieces, base, nnz, exact);
    uint64_t peak = tl_bytes_sum(atomic_load(&b->peak) - s->held, lack);
    uint64_t plan = sizeof(tulle_plan) + tl_replay_bytes();
    return tl_bytes_sum(bytes > peak ? bytes : peak, plan);
}

tulle_status tl_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_forecast *f)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s;
    tl_pieces pieces = {0};
    memset(f, 0, sizeof *f);
    TRY(tl_setup_make(ctx, A, B, options, TL_LOOK, &s));
    const tl_profile *p = &s.profile;
    f->products = p->total;
    f->nnz_lower = s.options.drop_zeros ? 0 : p->lower;
    f->nnz_upper = p->upper;
    f->policy = s.stats.policy;
    f->device = s.device;
    f->sec_cpu = s.chosen.cpu;
    f->sec_device = s.chosen.device;

    TRY(tl_cpu_pieces(b, &s.request, false, &pieces));
    f->bytes_upper = bytes_for(ctx, &s, &pieces, f->nnz_upper, true);
    int64_t step = (pieces.count + SAMPLED_PIECES - 1) / SAMPLED_PIECES, nnz = 0, seen = 0;
    TRY(tl_cpu_count(b, &s.request, step > 0 ? step : 1, &nnz, &seen, &s.stats));
    if (step > 1) tl_trace(b, "estimate: one piece of the work in %d was counted", (int)step);
    double scale = seen > 0 ? (double)p->total / (double)seen : 1;
    f->nnz_estimate = clamp((int64_t)((double)nnz * scale), f->nnz_lower, p->upper);
    scale_shares(&s.stats, s.operands.A.rows, p->total, f);
    f->bytes_estimate = bytes_for(ctx, &s, &pieces, f->nnz_estimate, false);
    if (f->bytes_estimate > f->bytes_upper) f->bytes_estimate = f->bytes_upper;
done:
    tl_pieces_done(b, &pieces);
    tl_setup_done(ctx, &s);
    return status;
}
