/* SPDX-License-Identifier: MIT
 *
 * tulle_cuda.h - tulle beside CUDA code of your own; needs no header of CUDA.
 *
 * A context made with "cuda:0" works in the primary context of that device, the one that the CUDA runtime
 * uses.  Your own device pointers (cudaMalloc, cuMemAlloc) can be used as operands directly:
 *
 *     tulle_csr A = tulle_csr_make_device(m, n, nnz, d_ptr, TULLE_I32, d_col, TULLE_I32, d_val, TULLE_F64);
 *     tulle_options o = {.c_place = TULLE_DEVICE};
 *     tulle_cuda_set_stream(ctx, stream);
 *     tulle_multiply(ctx, &A, &A, &o, &C);
 *     tulle_csr c = tulle_matrix_view(C);          c.values: a device pointer, for your kernels
 *
 * Work is enqueued on the stream after what you enqueued before.  It is complete when the call returns,
 * unless the stream is yours and C stays on the device: then only work that you enqueue on that stream
 * afterwards may use C. */
#ifndef TULLE_CUDA_H
#define TULLE_CUDA_H
#include "tulle.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;             /* CUstream, cudaStream_t: pointers to it */
struct CUctx_st;                /* CUcontext                              */

/* Puts the work of a context into a stream of your own.  The stream must exist until another one is set.
 * NULL: the context's own stream again (for the legacy default stream pass CU_STREAM_LEGACY).  TULLE_EINVAL
 * when the context is not on CUDA. */
TULLE_API tulle_status tulle_cuda_set_stream(tulle_ctx *ctx, struct CUstream_st *stream);
/* The CUDA context that a context works in; NULL when it is not on CUDA. */
TULLE_API struct CUctx_st    *tulle_cuda_context(tulle_ctx *ctx);
/* The stream that a context puts its work into; NULL when it is not on CUDA. */
TULLE_API struct CUstream_st *tulle_cuda_stream(tulle_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
