/* SPDX-License-Identifier: MIT
 *
 * fake_device.h - a simulated device: an engine that uses the CPU's, but counts the bytes of operands and C,
 * and fails if they exceed its limit, or at a given allocation.  So the sanitizers can test all code above
 * the engines. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H
#include "ctx.h"
#include "test.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_device {
    tulle_ctx *worker;                  /* computes                                 */
    int64_t    runs, fail_at;           /* number of products; which one is out of memory; 0: none */
    int64_t    parts, narrow;           /* products in parts, and in panels         */
    bool       kept;                    /* operands stay                            */
    bool       narrow_door;             /* operands never stay                      */
    uint64_t   most;                    /* bytes of one product; 0: any number      */
    tulle_status fails;                 /* the result of every call; 0: no failure  */
} fake_device;

static fake_device dev;

static uint64_t kept_bytes(const tl_setup *s)
{
    return tl_csr_bytes(&s->operands.A) + tl_csr_bytes(&s->operands.B);
}

static tulle_status compute(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B, uint64_t before,
                            tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o = s->options;
    tulle_matrix *M = NULL;
    const uint64_t limit = dev.most && (!o.memory_limit || dev.most < o.memory_limit) ? dev.most : o.memory_limit;
    *C = NULL;
    if (dev.fails) return tl_fail(b, dev.fails, "it fell off the bus");
    if (++dev.runs == dev.fail_at) return tl_fail(b, TULLE_ENOMEM, "17 bytes could not be had");
    o.memory_limit = 0;
    o.op_a = o.op_b = o.sort_inputs = 0;
    if (tulle_multiply(dev.worker, A, B, &o, &M) != TULLE_OK)
        return tl_fail(b, TULLE_EINVAL, "%s", tulle_ctx_error(dev.worker));
    uint64_t bytes = before + tl_csr_bytes(&M->view);
    s->stats.peak_bytes = bytes < limit ? bytes : limit;
    if (limit && bytes > limit)
        status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes there, the limit is %" PRIu64, bytes, limit);
    else if (tl_progress(b, "symbolic", 0.5)) status = tl_fail(b, TULLE_ECANCEL, "cancelled");
    else status = tl_matrix_copy(b, &M->view, C);
    if (status == TULLE_OK) {
        tulle_stats t;
        tulle_ctx_stats(dev.worker, &t);
        (*C)->view.val_type = M->view.val_type;
        s->stats.c_nnz = t.c_nnz;
        s->stats.shares = t.shares;
        memcpy(s->stats.share, t.share, sizeof t.share);
    }
    tulle_matrix_free(M);
    return status;
}

static tulle_status part(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B, tulle_matrix **C)
{
    dev.parts++;
    dev.narrow += A->rows == 1;
    CHECK(!dev.kept, "parts while all of A and B are there");
    return compute(ctx, s, A, B, tl_csr_bytes(A) + tl_csr_bytes(B), C);
}

static tulle_status run(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C)
{
    tulle_csr A = s->operands.A;
    A.rows = (row1 < 0 ? A.rows : row1) - row0;
    A.row_ptr = (const char *)A.row_ptr + (size_t)row0 * tl_index_size(A.ptr_type);
    A.nnz = tl_row_begin(&A, A.rows) - tl_row_begin(&A, 0);
    return compute(ctx, s, &A, &s->operands.B, kept_bytes(s), C);
}

static tulle_status stay(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B)
{
    (void)A;
    (void)B;
    if (++dev.runs == dev.fail_at) return tl_fail(&ctx->base, TULLE_ENOMEM, "19 bytes could not be had");
    if (dev.narrow_door) return tl_fail(&ctx->base, TULLE_ENOMEM, "B could not be had");
    if (s->options.memory_limit && kept_bytes(s) > s->options.memory_limit)
        return tl_fail(&ctx->base, TULLE_ELIMIT, "A and B are too large");
    dev.kept = true;
    return TULLE_OK;
}

static void done(tulle_ctx *ctx, tl_setup *s)
{
    (void)ctx;
    (void)s;
    dev.kept = false;
}

static uint64_t room(const tulle_ctx *ctx, const tl_setup *s)
{
    (void)ctx;
    uint64_t limit = s->options.memory_limit ? s->options.memory_limit : (uint64_t)1 << 40;
    return limit - (dev.kept ? kept_bytes(s) : 0);
}

static bool too_large(tulle_status status)
{
    return status == TULLE_ELIMIT || status == TULLE_ENOMEM;
}

static tulle_status refuse(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status)
{
    (void)ctx;
    (void)s;
    (void)row0;
    return status;
}

static void figures(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    (void)ctx;
    (void)s;
    (void)c_bytes;
}

static tulle_status move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    (void)place;                        /* its memory is the host's */
    return tl_matrix_copy(&ctx->base, A, out);
}

static tl_engine there;

static void device_make(void)
{
    there = tl_engine_cpu;
    there.on_host = false;
    there.run = run;
    there.part = part;
    there.stay = stay;
    there.done = done;
    there.room = room;
    there.too_large = too_large;
    there.refuse = refuse;
    there.figures = figures;
    there.move = move;
    dev = (fake_device){.worker = ctx_with(1)};
}

/* inline: not every test uses it */
static inline tulle_ctx *device_ctx(const tulle_mem *mem)
{
    tulle_ctx *ctx = NULL;
    device_make();
    if (tulle_ctx_create("cpu", mem, &ctx) != TULLE_OK) abort();
    ctx->engine = &there;
    return ctx;
}

static void device_free(tulle_ctx *ctx)
{
    tulle_ctx_free(dev.worker);
    tulle_ctx_free(ctx);
}

#endif
