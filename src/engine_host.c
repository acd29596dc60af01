/* SPDX-License-Identifier: MIT
 *
 * engine_host.c - what engines share that read and write only host arrays (engine_cpu.c, engine_several.c):
 * operands are used in place, and there is no other memory to copy to.
 *
 * Such a context refuses views over device memory in its argument checks; these functions refuse them again,
 * in case one was missed. */
#include "ctx.h"

tulle_status tl_host_stay(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B)
{
    (void)ctx;
    (void)s;
    (void)A;
    (void)B;
    return TULLE_OK;
}

static tulle_status nowhere(tulle_ctx *ctx)
{
    return tl_fail(&ctx->base, TULLE_EINVAL, "this context (%s) has no memory but the host's", ctx->device);
}

tulle_status tl_host_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    (void)A;
    (void)place;
    (void)out;
    return nowhere(ctx);
}

tulle_status tl_host_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                                tulle_dense_matrix **out)
{
    (void)A;
    (void)place;
    (void)out;
    return nowhere(ctx);
}

tulle_status tl_host_blank(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out)
{
    (void)pattern;
    (void)value;
    (void)out;
    return nowhere(ctx);
}

bool tl_host_handles(const tulle_ctx *ctx)
{
    (void)ctx;
    return false;
}

uint64_t tl_host_memory(const tulle_ctx *ctx)
{
    (void)ctx;
    return 0;
}

tulle_status tl_host_merge(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result)
{
    (void)request;
    (void)result;
    return tl_fail(&ctx->base, TULLE_EDEVICE, "merge trials need a GPU, one alone, and this context has %s",
                   ctx->device);
}

tulle_status tl_host_schedule(tulle_ctx *ctx, int force, int *was, double seen[2][TL_FEATURES])
{
    (void)force;
    (void)was;
    (void)seen;
    return tl_fail(&ctx->base, TULLE_EDEVICE,
                   "trials of policy delta need a GPU, one alone, and this context has %s", ctx->device);
}
