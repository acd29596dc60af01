/* SPDX-License-Identifier: MIT
 *
 * foreign.c - the functions of tulle_cuda.h and tulle_opencl.h, which take and return handles of the
 * drivers. */
#include "ctx.h"
#include "tulle_cuda.h"
#include "tulle_opencl.h"
#include <string.h>

static bool is_on(const tulle_ctx *ctx, const char *driver)
{
    return ctx && ctx->gpu && strncmp(ctx->device, driver, strlen(driver)) == 0;
}

static tulle_status set_queue(tulle_ctx *ctx, const char *driver, const char *what, void *queue)
{
    if (!ctx) return TULLE_EINVAL;
    ctx->base.error[0] = 0;
    if (!is_on(ctx, driver))
        return tl_fail(&ctx->base, TULLE_EINVAL, "this context is on %s, it takes no %s", ctx->device, what);
    return tl_gpu_queue(&ctx->base, ctx->gpu, queue);
}

static void *native(tulle_ctx *ctx, const char *driver, tl_native what)
{
    return is_on(ctx, driver) ? tl_gpu_native(ctx->gpu, what) : NULL;
}

tulle_status tulle_cuda_set_stream(tulle_ctx *ctx, struct CUstream_st *stream)
{
    return set_queue(ctx, "cuda", "CUDA stream", stream);
}

struct CUctx_st *tulle_cuda_context(tulle_ctx *ctx)
{
    return native(ctx, "cuda", TL_NATIVE_CONTEXT);
}

struct CUstream_st *tulle_cuda_stream(tulle_ctx *ctx)
{
    return native(ctx, "cuda", TL_NATIVE_QUEUE);
}

tulle_status tulle_opencl_set_queue(tulle_ctx *ctx, struct _cl_command_queue *queue)
{
    return set_queue(ctx, "opencl", "OpenCL queue", queue);
}

struct _cl_context *tulle_opencl_context(tulle_ctx *ctx)
{
    return native(ctx, "opencl", TL_NATIVE_CONTEXT);
}

struct _cl_device_id *tulle_opencl_device(tulle_ctx *ctx)
{
    return native(ctx, "opencl", TL_NATIVE_DEVICE);
}

struct _cl_command_queue *tulle_opencl_queue(tulle_ctx *ctx)
{
    return native(ctx, "opencl", TL_NATIVE_QUEUE);
}
