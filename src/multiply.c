/* SPDX-License-Identifier: MIT
 * multiply.c - the whole road of one product: setup, engine, C. */
#include "ctx.h"

/* C's columns in the width the caller asked for. */
static tulle_status with_index(tl_base *b, tulle_matrix **C, int idx_type)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *other = NULL;
    if (!idx_type || (tulle_index)idx_type == (*C)->view.idx_type) return TULLE_OK;
    TRY(tl_csr_convert(b, &(*C)->view, 0, 0, idx_type, &other));
    tl_matrix_free(b, *C);
    *C = other;
done:
    return status;
}

tulle_status tl_engine_run(tulle_ctx *ctx, tl_setup *s, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix *C = NULL;
    *out = NULL;
    if (ctx->gpu) return tl_gpu_multiply(b, ctx->gpu, &s->gpu, out, &s->stats);
    TRY(tl_cpu_multiply(b, &s->request, &C, &s->stats));
    TRY(with_index(b, &C, s->options.c_idx_type));
    *out = C;
    C = NULL;
done:
    tl_matrix_free(b, C);
    return status;
}

tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_setup s;
    tulle_matrix *C = NULL;
    TRY(tl_setup_make(ctx, A, B, options, TL_VALUES, &s));
    TRY(tl_engine_run(ctx, &s, &C));
    tl_setup_stats(ctx, &s, tl_csr_bytes(&C->view));
    *out = C;
done:
    tl_setup_done(&ctx->base, &s);
    return status;
}
