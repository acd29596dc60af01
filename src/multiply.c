/* SPDX-License-Identifier: MIT
 * multiply.c - the whole road of one product: setup, engine, C. */
#include "ctx.h"

tulle_status tl_with_index(tl_base *b, tulle_matrix **C, int idx_type)
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

tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s;
    tulle_matrix *C = NULL;
    TRY(tl_setup_make(ctx, A, B, options, true, false, &s));
    TRY(tl_cpu_multiply(b, &s.request, &C, &s.stats));
    TRY(tl_with_index(b, &C, s.options.c_idx_type));
    tl_setup_stats(ctx, &s, tl_csr_bytes(&C->view));
    *out = C;
    C = NULL;
done:
    tl_matrix_free(b, C);
    tl_setup_done(b, &s);
    return status;
}
