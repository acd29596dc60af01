/* SPDX-License-Identifier: MIT
 *
 * tulle_opencl.h - tulle beside OpenCL code of your own; needs no header of OpenCL.
 *
 * Buffers can be operands when they were created in the cl_context of the tulle context.  That is either its
 * own, which tulle_opencl_context() returns, or yours: a context that has not computed anything yet moves to
 * the cl_context of the queue that tulle_opencl_set_queue() gives it.  The pointers of a view are then the
 * cl_mem handles themselves; each array is a separate buffer, read from its first byte:
 *
 *     cl_context cl = tulle_opencl_context(ctx);
 *     cl_mem ptr = clCreateBuffer(cl, ...), col = ..., val = ...;
 *     tulle_csr A = tulle_csr_make_device(m, n, nnz, ptr, TULLE_I32, col, TULLE_I32, val, TULLE_F64);
 *     tulle_options o = {.c_place = TULLE_DEVICE};
 *     tulle_multiply(ctx, &A, &A, &o, &C);
 *     tulle_csr c = tulle_matrix_view(C);          c.values: a cl_mem, released with C
 *
 * Work is enqueued after what you enqueued before.  It is complete when the call returns, unless the queue is
 * yours and C stays on the device: then only work that you enqueue on that queue afterwards may use C. */
#ifndef TULLE_OPENCL_H
#define TULLE_OPENCL_H
#include "tulle.h"

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;             /* cl_context: a pointer to it */
struct _cl_device_id;           /* cl_device_id                */
struct _cl_command_queue;       /* cl_command_queue            */

/* Puts the work of a context into a queue of your own.  It must be an in-order queue of the same device.
 * NULL: the context's own queue again.  TULLE_EINVAL when the context is not on OpenCL, or the queue is of
 * another device or not in-order; TULLE_EDRIVER when the queue belongs to another cl_context and the context
 * still holds memory or kernels in its present one. */
TULLE_API tulle_status tulle_opencl_set_queue(tulle_ctx *ctx, struct _cl_command_queue *queue);
/* The cl_context that a context works in; NULL when it is not on OpenCL. */
TULLE_API struct _cl_context       *tulle_opencl_context(tulle_ctx *ctx);
/* The cl_device_id of a context; NULL when it is not on OpenCL. */
TULLE_API struct _cl_device_id     *tulle_opencl_device(tulle_ctx *ctx);
/* The queue that a context puts its work into; NULL when it is not on OpenCL. */
TULLE_API struct _cl_command_queue *tulle_opencl_queue(tulle_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
