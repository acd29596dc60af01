/* SPDX-License-Identifier: MIT
 *
 * engines.h - what computes products: one table for the CPU (engine_cpu.c), one for a GPU (engine_gpu.c), one
 * for several of both at once (engine_several.c), whose parts are contexts with engines of their own.
 *
 * A context has one engine.  Products, blocks, plans, limits and estimates are written once, above these
 * tables, and never ask which engine it is: what differs is a function or a flag here.  A new engine is a new
 * table, and a line in context.c that opens it.
 *
 *   prepare      A and B are checked, sorted and transposed; the engine notes what its runs need
 *   stay         the operands go where the engine reads them, for several runs
 *   run          the rows row0 .. row1 of C
 *   part         another, smaller product in its place, where the operands do not fit
 *   plan_*       a product whose patterns stay: prepared and counted once, filled many times
 *   spmm_*       a sparse matrix times a dense one */
#ifndef TL_ENGINES_H
#define TL_ENGINES_H
#include "gpu/gpu.h"

typedef struct tl_setup tl_setup;       /* ctx.h */

typedef struct tl_engine {
    int  where;                         /* TL_ON_CPU, TL_ON_GPU: it has policies and accumulators so marked */
    /* Arrays are read on the host alone, so operands are made ready there, and TULLE_DEVICE as a place means
     * the host.  Else the engine has memory of its own, and checks there what needs no copy. */
    bool on_host;

    /* ---- a product.  prepare: want has TL_VALUES, TL_LOOK of ctx.h; run: row1 < 0 is the last row; done
     * frees what prepare and stay made. */
    tulle_status (*prepare)(tulle_ctx *ctx, tl_setup *s, int want);
    tulle_status (*stay)(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B);
    tulle_status (*run)(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C);
    void         (*done)(tulle_ctx *ctx, tl_setup *s);
    /* The product of rows of A with rows of B (panels.c), in order, on the host unless the caller's B lies
     * there, while none stay.  NULL: operands are read where they lie, and what does not fit does not. */
    tulle_status (*part)(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B,
                         tulle_matrix **C);
    /* For an estimate: bytes of a product on the host whose C has so many entries, beside `base`; exact:
     * never less than are held. */
    uint64_t     (*host_bytes)(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                               uint64_t base, int64_t nnz, bool exact);
    /* What the engine has not told in the stats of its runs; C takes so many bytes. */
    void         (*figures)(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes);
    /* Blocks: bytes of C in one run, beside what stays; could fewer rows do where a run came to this
     * end; and the last word where one row alone, row0, could not. */
    uint64_t     (*room)(const tulle_ctx *ctx, const tl_setup *s);
    bool         (*too_large)(tulle_status status);
    tulle_status (*refuse)(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status);

    /* ---- a plan: the pattern of C and all that runs need; values; and the end */
    tulle_status (*plan_make)(tulle_plan *p);
    tulle_status (*plan_run)(tulle_plan *p, const void *a_values, const void *b_values, void *c_values);
    void         (*plan_free)(tulle_plan *p);

    /* ---- SpMM.  make: A, which is no slice any more, ready for products with at most so many columns;
     * values: others for the same pattern, transposed where the plan's A is; scale, Y = beta*Y, reads no A
     * and needs no make. */
    tulle_status (*spmm_make)(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols);
    tulle_status (*spmm_run)(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y);
    tulle_status (*spmm_scale)(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y);
    tulle_status (*spmm_values)(tulle_spmm_plan *p, const tulle_csr *A);
    void         (*spmm_free)(tulle_spmm_plan *p);

    /* ---- its device */
    tulle_status (*here)(tulle_ctx *ctx);               /* TULLE_EDRIVER in a child of fork() without it */
    double       (*compiling)(const tulle_ctx *ctx);    /* seconds that kernels took to get, so far */
    void         (*trim)(tulle_ctx *ctx);               /* memory kept for the next product goes back */
    tulle_status (*warm)(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got);
    tulle_status (*merge)(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result);
    /* Copies between the host and the engine's memory; never from the host to the host. */
    tulle_status (*move)(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out);
    tulle_status (*dense_move)(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out);
    /* A copy of a pattern there, with room for values of so many bytes each. */
    tulle_status (*blank)(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out);
    bool         (*handles)(const tulle_ctx *ctx);      /* memory there has handles, not addresses */
    uint64_t     (*memory)(const tulle_ctx *ctx);       /* its own, free when opened; 0: the host's */
    tulle_status (*threads)(tulle_ctx *ctx);            /* the context's team has another size from now on */
    void         (*close)(tulle_ctx *ctx);
} tl_engine;

extern const tl_engine tl_engine_cpu, tl_engine_gpu, tl_engine_several;

/* engine_host.c: what engines share that know the host's memory alone. */
tulle_status tl_host_stay(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B);
tulle_status tl_host_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out);
tulle_status tl_host_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                                tulle_dense_matrix **out);
tulle_status tl_host_blank(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out);
bool         tl_host_handles(const tulle_ctx *ctx);
uint64_t     tl_host_memory(const tulle_ctx *ctx);
tulle_status tl_host_merge(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result);

/* engine_cpu.c: the bytes of a product on the CPU, which stand for those of a GPU's on the host as well. */
uint64_t     tl_cpu_host_bytes(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                               uint64_t base, int64_t nnz, bool exact);
/* What the CPU's engine looks at: profile and request of the setup.  Blocks and estimates look at them on
 * every engine. */
tulle_status tl_look_make(tulle_ctx *ctx, tl_setup *s, bool values);
/* Of a row of C at most, its pointer included. */
uint64_t     tl_row_bytes(const tl_setup *s, int64_t row);

#endif
