/* SPDX-License-Identifier: MIT
 *
 * estimate.c - counts and memory of a product before anything large is allocated.
 *
 * Products are exact.  nnz(C) lies between the sum over rows of the longest row of B it uses and the sum of
 * min(products, columns); the estimate counts a sample of the pieces exactly, all of them when the
 * product is small.  A GPU's product is estimated on the host, too: what it would choose, only it knows. */
#include "ctx.h"
#include <string.h>

enum { SAMPLED_PIECES = 64 };

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* The shares of the sample, for all rows and products. */
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

tulle_status tl_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_forecast *f)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s;
    tl_pieces pieces;
    memset(f, 0, sizeof *f);
    TRY(tl_setup_make(ctx, A, B, options, TL_LOOK, &s));
    const tl_profile *p = &s.profile;
    f->products = p->total;
    f->nnz_lower = p->lower;
    f->nnz_upper = p->upper;
    f->policy = s.stats.policy;

    TRY(tl_cpu_pieces(b, &s.request, &pieces));
    int64_t step = (pieces.count + SAMPLED_PIECES - 1) / SAMPLED_PIECES, nnz = 0, seen = 0;
    tl_pieces_done(b, &pieces);
    TRY(tl_cpu_count(b, &s.request, step > 0 ? step : 1, &nnz, &seen, &s.stats));
    if (step > 1) tl_trace(b, "estimate: one piece of the work in %d was counted", (int)step);
    double scale = seen > 0 ? (double)p->total / (double)seen : 1;
    f->nnz_estimate = clamp((int64_t)((double)nnz * scale), p->lower, p->upper);
    scale_shares(&s.stats, s.operands.A.rows, p->total, f);

    const tulle_csr *x = &s.operands.B;
    uint64_t entry = tl_index_size(s.options.c_idx_type ? (tulle_index)s.options.c_idx_type : x->idx_type)
                     + tl_type_size(x->val_type);
    uint64_t fixed = tl_cpu_workspace(&s.request) + (uint64_t)(s.operands.A.rows + 1) * 8;
    f->bytes_estimate = fixed + (uint64_t)f->nnz_estimate * entry;
    f->bytes_upper = fixed + (uint64_t)f->nnz_upper * entry;
done:
    tl_setup_done(b, &s);
    return status;
}
