/* SPDX-License-Identifier: MIT
 *
 * engines.h - an engine computes products.  Each is a table of functions: one for the CPU (engine_cpu.c), one
 * for a GPU (engine_gpu.c), and one for several devices at once (engine_several.c), each of which is a
 * context with its own engine.
 *
 * A context has one engine.  Products, blocks, plans, limits and estimates are written once, above these
 * tables, and never ask which engine it is: what differs is a function or a flag here.  A new engine is a new
 * table, and a line in context.c that opens it.
 *
 *   prepare      after A and B were checked, sorted and transposed: the engine sets up what its runs need
 *   stay         keeps the operands in the engine's memory for several runs
 *   run          computes the rows row0 .. row1 of C
 *   part         computes a smaller product of rows of A and B, where the operands do not fit
 *   plan_*       plans: the symbolic phase once, the numeric phase many times
 *   spmm_*       SpMM */
#ifndef TL_ENGINES_H
#define TL_ENGINES_H
#include "gpu/gpu.h"
#include "plan/tree.h"

typedef struct tl_setup tl_setup;       /* ctx.h */

typedef struct tl_engine {
    int  where;                         /* TL_ON_CPU, TL_ON_GPU: selects its policies and accumulators */
    /* true: the engine reads only host arrays, so operands are prepared there, and the place TULLE_DEVICE
     * means the host.  false: the engine has its own memory, and checks operands there unless a copy is
     * needed. */
    bool on_host;

    /* ---- a product.  prepare: want has TL_VALUES, TL_LOOK of ctx.h; run: row1 < 0 means up to the last row;
     * done frees what prepare and stay allocated. */
    tulle_status (*prepare)(tulle_ctx *ctx, tl_setup *s, int want);
    tulle_status (*stay)(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B);
    tulle_status (*run)(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C);
    void         (*done)(tulle_ctx *ctx, tl_setup *s);
    /* The product of some rows of A with some rows of B (panels.c), both sorted and on the host, unless the
     * caller's B lies on the device; no operand may stay meanwhile.  NULL: the engine reads operands in
     * place, so smaller operands would not help. */
    tulle_status (*part)(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B,
                         tulle_matrix **C);
    /* For an estimate: host memory of a product with this many entries of C, in addition to `base`; exact: an
     * upper bound instead of an estimate. */
    uint64_t     (*host_bytes)(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                               uint64_t base, int64_t nnz, bool exact);
    /* Adds to the stats what the runs did not set; c_bytes: the size of C. */
    void         (*figures)(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes);
    /* Blocks: room: bytes available for a block of C; then whether fewer rows may help after a run failed
     * with this status; and the final error if even the single row row0 does not fit. */
    uint64_t     (*room)(const tulle_ctx *ctx, const tl_setup *s);
    bool         (*too_large)(tulle_status status);
    tulle_status (*refuse)(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status);

    /* ---- a plan: the symbolic phase; the numeric phase; freeing it */
    tulle_status (*plan_make)(tulle_plan *p);
    tulle_status (*plan_run)(tulle_plan *p, const void *a_values, const void *b_values, void *c_values);
    void         (*plan_free)(tulle_plan *p);

    /* ---- SpMM.  make: prepares A (no longer a slice) for products with at most `cols` columns; values: sets
     * new values for the same pattern, transposed if the plan's A is; scale: Y = beta*Y, which does not need
     * A or make. */
    tulle_status (*spmm_make)(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols);
    tulle_status (*spmm_run)(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y);
    tulle_status (*spmm_scale)(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y);
    tulle_status (*spmm_values)(tulle_spmm_plan *p, const tulle_csr *A);
    void         (*spmm_free)(tulle_spmm_plan *p);

    /* ---- device functions */
    tulle_status (*here)(tulle_ctx *ctx);               /* TULLE_EDRIVER if unusable after fork() */
    double       (*compiling)(const tulle_ctx *ctx);    /* seconds of compiling and loading kernels so far */
    void         (*trim)(tulle_ctx *ctx);               /* frees memory kept for the next product */
    tulle_status (*warm)(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got);
    tulle_status (*merge)(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result);
    /* Rows sorted into bins or not from now on (1, 0; -1: as the policy says), what it was, and the features
     * of the last product of policy delta, of both steps. */
    tulle_status (*schedule)(tulle_ctx *ctx, int force, int *was, double seen[2][TL_FEATURES]);
    /* Copies between the host and the engine's memory; never within the host. */
    tulle_status (*move)(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out);
    tulle_status (*dense_move)(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out);
    /* A copy of a pattern in the engine's memory, with uninitialised values of this size. */
    tulle_status (*blank)(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out);
    bool         (*handles)(const tulle_ctx *ctx);      /* device pointers are handles, not addresses */
    /* Whether an array of a view over device memory lies in another device's memory.  NULL: such views are
     * refused anyway. */
    bool         (*elsewhere)(const tulle_ctx *ctx, const void *array);
    uint64_t     (*memory)(const tulle_ctx *ctx);       /* free device memory when opened; 0: the host's */
    tulle_status (*threads)(tulle_ctx *ctx);            /* called after the number of threads changed */
    void         (*close)(tulle_ctx *ctx);
} tl_engine;

extern const tl_engine tl_engine_cpu, tl_engine_gpu, tl_engine_several;

/* engine_host.c: what engines share that use only host memory. */
tulle_status tl_host_stay(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B);
tulle_status tl_host_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out);
tulle_status tl_host_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                                tulle_dense_matrix **out);
tulle_status tl_host_blank(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out);
bool         tl_host_handles(const tulle_ctx *ctx);
uint64_t     tl_host_memory(const tulle_ctx *ctx);
tulle_status tl_host_merge(tulle_ctx *ctx, tl_merge_request *request, tulle_merge_result *result);
tulle_status tl_host_schedule(tulle_ctx *ctx, int force, int *was, double seen[2][TL_FEATURES]);

/* engine_cpu.c: the memory of a product on the CPU, which estimates for a GPU report as well. */
uint64_t     tl_cpu_host_bytes(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                               uint64_t base, int64_t nnz, bool exact);
/* Computes the profile and the request of a setup.  Blocks and estimates use them with every engine. */
tulle_status tl_look_make(tulle_ctx *ctx, tl_setup *s, bool values);
/* An upper bound of the bytes of a row of C, its row pointer included. */
uint64_t     tl_row_bytes(const tl_setup *s, int64_t row);

#endif
