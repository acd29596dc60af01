/* SPDX-License-Identifier: MIT
 * ctx.h - what a context and a plan hold. */
#ifndef TL_CTX_H
#define TL_CTX_H
#include "cpu/cpu.h"

struct tulle_ctx {
    tl_base     base;                   /* first: every folder below sees only this */
    char        device[64];
    tulle_stats stats;                  /* of the last product                      */
};

/* Two operands made ready: checked, sorted, transposed, conforming. */
typedef struct tl_operands {
    tulle_csr     A, B;
    tulle_matrix *own_a, *own_b;        /* the copies behind A and B, if any        */
    int64_t      *perm_a, *perm_b;      /* where entries of a transposed copy came from */
    uint64_t      bytes;                /* of the copies                            */
    double        seconds;
} tl_operands;

/* operands.c */
tulle_status tl_options_check(tl_base *b, const tulle_options *options, tulle_options *out);
tulle_status tl_operands_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                              bool values, bool perms, tl_operands *out);
void         tl_operands_done(tl_base *b, tl_operands *operands);
/* The limit for a product that takes at most so many bytes; the machine is asked only where it matters. */
uint64_t     tl_limit_for(const tulle_options *o, uint64_t bytes);

/* setup.c: what multiply, blocks, estimate and plans share.  It is not moved once made: the request points
 * into it. */
typedef struct tl_setup {
    tulle_options options;
    tl_operands   operands;
    tl_recipe     recipe;
    tl_profile    profile;
    tl_request    request;
    tulle_stats   stats;
    uint64_t      held;                 /* bytes before it began                    */
    double        start;
} tl_setup;

tulle_status tl_setup_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                           bool values, bool perms, tl_setup *setup);
/* Time and bytes since it began, and all of it into the context. */
void         tl_setup_stats(tulle_ctx *ctx, tl_setup *setup, uint64_t c_bytes);
void         tl_setup_done(tl_base *b, tl_setup *setup);
uint64_t     tl_csr_bytes(const tulle_csr *A);

/* multiply.c, blocks.c, estimate.c, verify.c, reuse.c: what the functions of tulle.h call */
tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                         tulle_matrix **C);
/* C's columns in the width the caller asked for. */
tulle_status tl_with_index(tl_base *b, tulle_matrix **C, int idx_type);
tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *o, tulle_block_fn fn, void *user);
tulle_status tl_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                         tulle_forecast *forecast);
tulle_status tl_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                              const tulle_options *o, double *error);
tulle_status tl_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                            tulle_plan **plan);
tulle_status tl_plan_run(tulle_plan *plan, const void *a_values, const void *b_values, void *c_values);

struct tulle_plan {
    tulle_ctx    *ctx;
    tl_setup      setup;
    tulle_matrix *C;                    /* the pattern                              */
    tl_replay    *replay;
    void         *a_copy, *b_copy;      /* values of transposed operands            */
};

void tl_plan_free(tulle_plan *plan);

#endif
