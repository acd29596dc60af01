/* SPDX-License-Identifier: MIT
 *
 * multiply.c - a single product from start to end: setup, engine, C.
 *
 * If a product does not fit in the memory of an engine, and C is wanted on the host, it is computed in blocks
 * of rows (blocks.c); but in a context that can choose (choose.c) the CPU is tried first. */
#include "ctx.h"

tulle_status tl_wanted(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tulle_options *o, int *want)
{
    bool pattern = A && B && !A->values && !B->values && (A->nnz > 0 || B->nnz > 0);
    *want = pattern ? 0 : TL_VALUES;
    if (pattern && o && o->drop_zeros)
        return tl_fail(b, TULLE_EINVAL, "options: drop_zeros is 1, but A and B have no values");
    return TULLE_OK;
}

tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_setup s = {0};
    tulle_matrix *C = NULL;
    const tl_engine *e = ctx->engine;
    bool made;
    int want = 0, use = 0, other = 0;
    TRY(tl_wanted(&ctx->base, A, B, options, &want));
    do {                                /* if it does not fit, the other engine tries, if there is one */
        use |= other;
        tl_setup_done(ctx, &s);
        status = tl_setup_make(ctx, A, B, options, want | use, &s);
        made = status == TULLE_OK;
        if (made) status = s.engine->run(ctx, &s, 0, -1, &C);
        other = tl_choose_other(ctx, &s.chosen, status);
    } while (other);
    const bool there = use || (made && s.engine->part);         /* a device with its own memory was tried */
    if (there && e->part && e->too_large(status) && s.options.c_place == TULLE_HOST) {
        tl_setup_done(ctx, &s);
        tl_trace(&ctx->base, "%s: in blocks of rows, then", ctx->base.error);
        TRY(tl_multiply_joined(ctx, A, B, options, &s, &C));
    } else {
        TRY(status);
        tl_setup_stats(ctx, &s, tl_csr_bytes(&C->view));
    }
    *out = C;
done:
    tl_setup_done(ctx, &s);
    return status;
}
