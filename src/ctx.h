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

/* multiply.c, blocks.c, estimate.c, verify.c, reuse.c: the functions of the same names in tulle.h */
tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                         tulle_matrix **C);
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
    int           op_a, op_b;
    tl_operands   operands;
    tl_profile    profile;
    tulle_matrix *C;                    /* the pattern                              */
    tl_replay    *replay;
    void         *a_copy, *b_copy;      /* values of transposed operands            */
    tulle_stats   stats;
};

void tl_plan_free(tulle_plan *plan);

/* A request with everything that multiply, blocks, estimate and plans share. */
tulle_status tl_request_make(tl_base *b, const tl_operands *x, const tulle_options *o, tl_recipe *recipe,
                             tl_profile *profile, tl_request *request);
/* Starts and ends the counting of bytes for stats. */
uint64_t     tl_stats_begin(tulle_ctx *ctx, tulle_stats *stats);
void         tl_stats_end(tulle_ctx *ctx, tulle_stats *stats, uint64_t held, uint64_t c_bytes);
uint64_t     tl_csr_bytes(const tulle_csr *A);

#endif
