/* SPDX-License-Identifier: MIT
 * repeats.c - which rows of a product repeat each other, where its engine looks for that. */
#include "ctx.h"
#include <string.h>

tulle_status tl_repeats_find(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                             const tulle_options *options, tulle_repeats *repeats)
{
    tulle_status status = TULLE_OK;
    tl_setup s = {0};
    memset(repeats, 0, sizeof *repeats);
    repeats->chosen = "none";
    TRY(tl_setup_make(ctx, A, B, options, A->values && B->values ? TL_VALUES : 0, &s));
    repeats->rows = s.operands.A.rows;
    if (s.engine->repeats) TRY(s.engine->repeats(ctx, &s, repeats));
done:
    tl_setup_done(ctx, &s);
    return status;
}
