/* SPDX-License-Identifier: MIT
 * ctx.h - what a context and a plan hold. */
#ifndef TL_CTX_H
#define TL_CTX_H
#include "cpu/cpu.h"
#include "cpu/spmm.h"
#include "engines.h"

struct tulle_ctx {
    tl_base     base;                   /* first: every folder below sees only this */
    char        device[256];            /* of several devices: all names, with commas */
    bool        no_gpu;                 /* the best device was wanted, and it is the CPU ...  */
    char        why_no_gpu[TL_ERROR_MAX];       /* ... because the best GPU did not open; or empty  */
    const tl_engine *engine;            /* what computes its products               */
    tl_gpu     *gpu;                    /* of engine_gpu.c                          */
    struct tl_several *several;         /* of engine_several.c: several.h           */
    struct tl_choice *choice;           /* the CPU may take a product instead: choose.h; NULL: it may not */
    tulle_stats stats;                  /* of the last product                      */
};

/* context.c; why, when not NULL, gets the sentence of a failure */
tulle_status tl_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **ctx, char *why,
                           size_t bytes);
void         tl_ctx_free(tulle_ctx *ctx);
void         tl_ctx_tell_device(tulle_ctx *ctx);                /* to the trace: why it is not a GPU */
double       tl_ctx_compiling(const tulle_ctx *ctx);            /* seconds that kernels took to get, so far */
int          tl_device_count(void);
tulle_status tl_device_info(int i, tulle_device *info);

/* views.c: one matrix alone, wherever its arrays lie */
tulle_status tl_view_check(tulle_ctx *ctx, const tulle_csr *A, const char *name);   /* touches no array */
/* Gives it its ld. */
tulle_status tl_dense_view_check(tulle_ctx *ctx, tulle_dense *A, const char *name, bool values);
tulle_status tl_place_find(tulle_ctx *ctx, tulle_place *place);     /* the device of a CPU is the host */
/* The same matrix on the host, row_ptr[0] 0: *view is *A itself, or *own, made for it, freed by the
 * caller. */
tulle_status tl_on_host(tulle_ctx *ctx, const tulle_csr *A, const char *name, tulle_csr *view,
                        tulle_matrix **own);
tulle_status tl_view_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out);
tulle_status tl_view_test(tulle_ctx *ctx, const tulle_csr *A);
tulle_status tl_view_sort(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **out);
tulle_status tl_view_transpose(tulle_ctx *ctx, const tulle_csr *A, tulle_op op, tulle_matrix **out);
tulle_status tl_view_convert(tulle_ctx *ctx, const tulle_csr *A, int val_type, int ptr_type, int idx_type,
                             tulle_matrix **out);
tulle_status tl_view_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y);
tulle_status tl_view_write(tulle_ctx *ctx, const char *path, const tulle_csr *A, bool symmetric);
tulle_status tl_view_put(tulle_ctx *ctx, tulle_writer *writer, const tulle_csr *block);

/* What a product wants of its operands. */
enum {
    TL_VALUES = 1,                      /* not the patterns alone                   */
    TL_PERMS  = 2,                      /* where entries of a transposed copy came from */
    TL_LOOK   = 4,                      /* arrays that the host can read, and a profile */
    TL_USE_CPU = 8, TL_USE_DEVICE = 16  /* where a context could choose: no choice  */
};

/* Where a product goes that may go either way, and why. */
typedef struct tl_chosen {
    int    other;                       /* TL_USE_CPU, TL_USE_DEVICE: who else could; 0: nobody */
    double cpu, device;                 /* forecasts, in seconds; 0: there were none */
} tl_chosen;

/* Two operands made ready: checked, sorted, transposed, conforming. */
typedef struct tl_operands {
    tulle_csr     A, B;
    tulle_matrix *own_a, *own_b;        /* the copies behind A and B, if any        */
    int64_t      *perm_a, *perm_b;      /* where entries of a transposed copy came from */
    bool          checked;              /* else the device checks them              */
    int64_t       a_nnz, b_nnz;         /* before entries without a partner were left out */
    double        seconds;
} tl_operands;

/* So much may be taken beyond a limit by a call that is then refused, to find out how much it needs. */
#define TL_LOOK_BYTES ((uint64_t)64 << 20)

/* operands.c */
tulle_status tl_options_check(tulle_ctx *ctx, const tulle_options *options, tulle_options *out);
tulle_status tl_operands_make(tulle_ctx *ctx, const tl_engine *engine, const tulle_csr *A, const tulle_csr *B,
                              const tulle_options *o, int want, tl_operands *out);
void         tl_operands_done(tl_base *b, tl_operands *operands);
/* The limit for a product that takes at most so many bytes; the machine is asked only where it matters. */
uint64_t     tl_limit_for(const tulle_options *o, uint64_t bytes);
/* The same for bytes of the host, which the limit of an engine with memory of its own does not count. */
uint64_t     tl_host_limit(const tl_engine *engine, const tulle_options *o, uint64_t bytes);

/* setup.c: what multiply, blocks, estimate and plans share.  It is not moved once made: the request points
 * into it. */
struct tl_setup {
    const tl_engine *engine;            /* that runs it: the context's, or the one chosen */
    const char   *device;               /* its name                                 */
    tl_chosen     chosen;
    tulle_options options;
    tl_operands   operands;
    tl_recipe     recipe;
    bool          values;               /* not the pattern alone                    */
    tl_profile    profile;              /* these two: tl_look_make() of engines.h    */
    tl_request    request;
    bool          shared;               /* what it has is another's; rows of A go with each run */
    void         *kept;                 /* the engine's own                         */
    tulle_stats   stats;
    uint64_t      held;                 /* bytes before it began                    */
    double        start, compiling;     /* the clock, and tl_ctx_compiling() then   */
};

tulle_status tl_setup_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                           const tulle_options *options, int want, tl_setup *setup);
/* The same product for another context, from a setup that was made and stays. */
tulle_status tl_setup_share(tulle_ctx *ctx, const tl_setup *from, int threads, tl_setup *setup);
/* Shares, stages, waits of one run added to those of others; of bytes the most. */
void         tl_stats_add(const tulle_stats *from, tulle_stats *to);
/* Time and bytes since it began, and all of it into the context, which has no sentence then. */
void         tl_setup_stats(tulle_ctx *ctx, tl_setup *setup, uint64_t c_bytes);
void         tl_setup_done(tulle_ctx *ctx, tl_setup *setup);
uint64_t     tl_csr_bytes(const tulle_csr *A);

/* choose.c: which engine takes it, into setup or plan, where the context can choose.  other: who takes it
 * where the one chosen ended for lack of memory; 0: nobody. */
void         tl_choose_product(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int want, tl_setup *s);
void         tl_choose_spmm(tulle_ctx *ctx, const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y,
                            bool gpu_only, int use, tulle_spmm_plan *p);
int          tl_choose_other(tulle_ctx *ctx, const tl_chosen *chosen, tulle_status status);
/* choose_measure.c: a context that can choose from now on; device: what else tells its device from others */
tulle_status tl_choice_open(tulle_ctx *ctx, const char *device);
void         tl_choice_close(tulle_ctx *ctx);
tulle_status tl_choice_measure(tulle_ctx *ctx);         /* and keep; nothing where there is no choice */

/* blocks.c: all of C on the host in blocks of rows, where `first`, which is done with, came to an end for its
 * size. */
tulle_status tl_multiply_joined(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *o, const tl_setup *first, tulle_matrix **C);
/* panels.c: products of rows of A with the rows of B that they name.  given: B as the caller has it, perhaps
 * on the device. */
tulle_status tl_part_rows(tulle_ctx *ctx, tl_setup *s, const tulle_csr *given, int64_t row0, int64_t row1,
                          tulle_matrix **C);
/* One row, some columns of C at a time; room: bytes that may be taken.  *panels: how many. */
tulle_status tl_part_panels(tulle_ctx *ctx, tl_setup *s, int64_t row, uint64_t room, int64_t *panels,
                            tulle_matrix **C);
/* Bytes of a row of A and, at most, of C, and at most of the rows of B that it names. */
uint64_t     tl_part_bytes(const tl_setup *s, int64_t row, uint64_t *of_b);
/* The caller's arrays on the device are those that are multiplied. */
bool         tl_stays_there(const tulle_options *o, int op, const tulle_csr *given);

/* multiply.c, blocks.c, estimate.c, verify.c, reuse.c: what the functions of tulle.h call */
tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                         tulle_matrix **C);
/* TL_VALUES, or 0 where neither operand has values: then C is a pattern. */
tulle_status tl_wanted(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tulle_options *o, int *want);
tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *o, tulle_block_fn fn, void *user);
tulle_status tl_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                         tulle_forecast *forecast);
tulle_status tl_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                              const tulle_options *o, double *error);
tulle_status tl_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                            tulle_plan **plan);
tulle_status tl_plan_run(tulle_plan *plan, const void *a_values, const void *b_values, void *c_values);
/* plan_multiply.c */
tulle_status tl_plan_multiply(tulle_plan *plan, const void *a_values, const void *b_values, tulle_matrix **C);
/* trial.c */
tulle_status tl_merge_trial(tulle_ctx *ctx, const tulle_merge_options *o, tulle_merge_result *result);

struct tulle_plan {
    tulle_ctx    *ctx;
    tl_setup      setup;
    tulle_matrix *C;                    /* the pattern                              */
    void         *kept;                 /* the engine's own                         */
    tulle_csr     a, b;                 /* the operands as they were given          */
    int64_t       a_first, b_first;     /* their first entries: not 0 in slices     */
    void         *a_copy, *b_copy;      /* values of transposed operands            */
    double        last_run;             /* seconds that stats.sec_total has of it   */
    const tulle_csr *whole;             /* the pattern of C, where it is known: the plan is ... */
    int64_t       row0, row1;           /* ... for these rows, and its values are those of whole matrices */
};

void tl_plan_free(tulle_plan *plan);

/* spmm.c: a sparse matrix times a dense one */
tulle_status tl_spmm(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                     const void *beta, tulle_dense *Y, const tulle_spmm_options *o);
tulle_status tl_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_spmm_options *o,
                                 tulle_spmm_plan **plan);
tulle_status tl_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                              const void *beta, tulle_dense *Y);
tulle_status tl_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values);
void         tl_spmm_plan_free(tulle_spmm_plan *plan);
/* For engines: what is asked for experiments, zeros where nothing is; and a copy of the values on the host,
 * counted against the limit of an engine that computes there, which the plan's A has then. */
tulle_spmm_lab tl_spmm_lab_of(const tulle_spmm_options *o);
tulle_status   tl_spmm_keep_values(tulle_spmm_plan *plan, const void *from);

struct tulle_spmm_plan {
    tulle_ctx         *ctx;
    const tl_engine   *engine;          /* that runs it: the context's, or the one chosen */
    tl_chosen          chosen;
    tulle_spmm_options options;
    tulle_csr          given, A;        /* as the caller gave it, as it is multiplied */
    bool               keeps;           /* values of its own: it may be run again   */
    bool               fresh;           /* Y is an output alone: it may be written before A is found good */
    bool               unchecked;       /* A is not checked yet: rows are, as they are multiplied */
    int64_t            first;           /* the first entry of given: not 0 in slices */
    tulle_matrix      *slice;           /* A with pointers of its own, if it is one */
    tulle_matrix      *own;             /* A transposed, if it is                   */
    void              *values;          /* else those of A, unless a device has them */
    uint64_t           copied;          /* bytes of either                          */
    tl_spmm_pieces     pieces;          /* of engine_cpu.c                          */
    void              *kept;            /* the engine's own                         */
    tulle_stats        stats;
    uint64_t           held;            /* bytes before it began                    */
    double             compiling;       /* tl_ctx_compiling() then                  */
};

#endif
