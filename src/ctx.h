/* SPDX-License-Identifier: MIT
 * ctx.h - contexts and plans. */
#ifndef TL_CTX_H
#define TL_CTX_H
#include "cpu/cpu.h"
#include "cpu/spmm.h"
#include "engines.h"

struct tulle_ctx {
    tl_base     base;                   /* must be first: the folders below use only this */
    char        device[256];            /* of several devices: all names, with commas */
    bool        no_gpu;                 /* the default device was requested, and it is the CPU ... */
    char        why_no_gpu[TL_ERROR_MAX];       /* ... because the best GPU could not be opened; or empty */
    const tl_engine *engine;            /* computes its products                    */
    tl_gpu     *gpu;                    /* of engine_gpu.c                          */
    struct tl_several *several;         /* of engine_several.c: several.h           */
    struct tl_choice *choice;           /* the CPU may compute a product instead: choose.h; or NULL */
    tulle_stats stats;                  /* of the last product                      */
};

/* context.c; why, when not NULL, gets the message of a failure */
tulle_status tl_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **ctx, char *why,
                           size_t bytes);
void         tl_ctx_free(tulle_ctx *ctx);
void         tl_ctx_tell_device(tulle_ctx *ctx);                /* traces why the device is not a GPU */
double       tl_ctx_compiling(const tulle_ctx *ctx);            /* seconds of loading kernels so far */
int          tl_device_count(void);
tulle_status tl_device_info(int i, tulle_device *info);

/* views.c: operations on a single matrix, wherever its arrays lie */
tulle_status tl_view_check(tulle_ctx *ctx, const tulle_csr *A, const char *name);   /* reads no array */
/* Refuses an array of the caller's that lies on another device; NULL is fine. */
tulle_status tl_array_check(tulle_ctx *ctx, int place, const void *array, const char *name, const char *what);
tulle_status tl_arrays_check(tulle_ctx *ctx, const tulle_csr *A, const char *name);
/* Also replaces an ld of 0 by the actual one. */
tulle_status tl_dense_view_check(tulle_ctx *ctx, tulle_dense *A, const char *name, bool values);
tulle_status tl_place_find(tulle_ctx *ctx, tulle_place *place);     /* the device of a CPU is the host */
/* The same matrix on the host, with row_ptr[0] 0: *view is *A itself, or a view of the copy *own, which the
 * caller frees. */
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

/* What a product needs of its operands. */
enum {
    TL_VALUES = 1,                      /* values, not only patterns                */
    TL_PERMS  = 2,                      /* the permutations of transposed copies    */
    TL_LOOK   = 4,                      /* arrays that the host can read, and a profile */
    TL_USE_CPU = 8, TL_USE_DEVICE = 16  /* forces the choice between CPU and GPU    */
};

/* The choice between CPU and GPU for a product. */
typedef struct tl_chosen {
    int    other;                       /* TL_USE_CPU, TL_USE_DEVICE: the alternative; 0: none */
    double cpu, device;                 /* predicted seconds; 0: not predicted      */
} tl_chosen;

/* Two prepared operands: checked, sorted, transposed, of matching shapes. */
typedef struct tl_operands {
    tulle_csr     A, B;
    tulle_matrix *own_a, *own_b;        /* the copies that A and B are views of, if any */
    int64_t      *perm_a, *perm_b;      /* the source of each entry of a transposed copy */
    bool          checked;              /* else the device checks them              */
    int64_t       a_nnz, b_nnz;         /* before irrelevant entries were left out (inner.c) */
    double        seconds;
} tl_operands;

/* A call may exceed its limit by this much to find out how much it needs, before it fails with that
 * number. */
#define TL_LOOK_BYTES ((uint64_t)64 << 20)

/* operands.c */
tulle_status tl_options_check(tulle_ctx *ctx, const tulle_options *options, tulle_options *out);
tulle_status tl_operands_make(tulle_ctx *ctx, const tl_engine *engine, const tulle_csr *A, const tulle_csr *B,
                              const tulle_options *o, int want, tl_operands *out);
void         tl_operands_done(tl_base *b, tl_operands *operands);
/* The limit for a product of at most `bytes`: memory_limit, or the free memory, queried only for large
 * ones. */
uint64_t     tl_limit_for(const tulle_options *o, uint64_t bytes);
/* The same for host memory, which does not count toward memory_limit on an engine with its own memory. */
uint64_t     tl_host_limit(const tl_engine *engine, const tulle_options *o, uint64_t bytes);

/* setup.c: what multiply, blocks, estimate and plans share.  It must not be moved in memory, because the
 * request points into it. */
struct tl_setup {
    const tl_engine *engine;            /* the context's, or the chosen one         */
    const char   *device;               /* its name                                 */
    tl_chosen     chosen;
    tulle_options options;
    tl_operands   operands;
    tl_recipe     recipe;
    bool          values;               /* C has values, not only a pattern         */
    tl_profile    profile;              /* profile and request: set by tl_look_make() */
    tl_request    request;
    bool          shared;               /* it refers to another setup; each run uploads its rows of A */
    void         *kept;                 /* private data of the engine               */
    tulle_stats   stats;
    uint64_t      held;                 /* bytes before it began                    */
    double        start, compiling;     /* the clock, and tl_ctx_compiling() then   */
};

tulle_status tl_setup_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                           const tulle_options *options, int want, tl_setup *setup);
/* The setup of the same product for another context; `from` must outlive it. */
tulle_status tl_setup_share(tulle_ctx *ctx, const tl_setup *from, int threads, tl_setup *setup);
/* The times of a product as its stages.  which: those of TL_STAGE_*, in this order. */
enum {
    TL_STAGE_COMPILE = 1, TL_STAGE_CHECK = 2, TL_STAGE_ANALYZE = 4, TL_STAGE_SYMBOLIC = 8,
    TL_STAGE_NUMERIC = 16, TL_STAGE_FINISH = 32
};
void         tl_stages_name(tulle_stats *stats, unsigned which);
/* Adds the shares, stages and waits of one run to those of others; of bytes the maximum. */
void         tl_stats_add(const tulle_stats *from, tulle_stats *to);
/* Completes the stats (total time, peak bytes), stores them in the context, and clears its error message. */
void         tl_setup_stats(tulle_ctx *ctx, tl_setup *setup, uint64_t c_bytes);
void         tl_setup_done(tulle_ctx *ctx, tl_setup *setup);
uint64_t     tl_csr_bytes(const tulle_csr *A);

/* choose.c: selects the engine of a setup or plan, where the context can choose.  other: the alternative if
 * the chosen one failed for lack of memory; 0: none. */
void         tl_choose_product(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int want, tl_setup *s);
void         tl_choose_spmm(tulle_ctx *ctx, const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y,
                            bool gpu_only, int use, tulle_spmm_plan *p);
int          tl_choose_other(tulle_ctx *ctx, const tl_chosen *chosen, tulle_status status);
/* choose_measure.c: lets a context choose from now on; device: identifies its GPU in the cache */
tulle_status tl_choice_open(tulle_ctx *ctx, const char *device);
void         tl_choice_close(tulle_ctx *ctx);
tulle_status tl_choice_measure(tulle_ctx *ctx);         /* measures and stores; no-op without a choice */

/* blocks.c: computes C on the host in blocks of rows, after the setup `first` failed because of its size; it
 * frees `first`. */
tulle_status tl_multiply_joined(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *o, const tl_setup *first, tulle_matrix **C);
/* panels.c: products of rows of A with only the rows of B that they need.  given: the caller's B, which may
 * lie on the device. */
tulle_status tl_part_rows(tulle_ctx *ctx, tl_setup *s, const tulle_csr *given, int64_t row0, int64_t row1,
                          tulle_matrix **C);
/* One row, in panels of columns; room: bytes available.  *panels: their number. */
tulle_status tl_part_panels(tulle_ctx *ctx, tl_setup *s, int64_t row, uint64_t room, int64_t *panels,
                            tulle_matrix **C);
/* Upper bounds of the bytes of a row in A and C, and of the rows of B that it needs. */
uint64_t     tl_part_bytes(const tl_setup *s, int64_t row, uint64_t *of_b);
/* Whether the caller's arrays on the device are multiplied directly, without a copy. */
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
/* delta_trial.c */
tulle_status tl_delta_trial(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int runs,
                            tulle_delta_sample *sample);
tulle_status tl_delta_train(tulle_ctx *ctx, const tulle_delta_sample *samples, int count, const char *path,
                            tulle_delta_report *report);

struct tulle_plan {
    tulle_ctx    *ctx;
    tl_setup      setup;
    tulle_matrix *C;                    /* the pattern                              */
    void         *kept;                 /* private data of the engine               */
    tulle_csr     a, b;                 /* the operands as they were given          */
    int64_t       a_first, b_first;     /* their first entries: not 0 in slices     */
    void         *a_copy, *b_copy;      /* values of transposed operands            */
    double        last_run;             /* its seconds, as included in stats.sec_total */
    const tulle_csr *whole;             /* not NULL: the whole pattern of C, of which the plan computes ... */
    int64_t       row0, row1;           /* ... these rows; its arrays of values are those of whole matrices */
};

void tl_plan_free(tulle_plan *plan);

/* spmm.c: SpMM */
tulle_status tl_spmm(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                     const void *beta, tulle_dense *Y, const tulle_spmm_options *o);
tulle_status tl_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_spmm_options *o,
                                 tulle_spmm_plan **plan);
tulle_status tl_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                              const void *beta, tulle_dense *Y);
tulle_status tl_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values);
void         tl_spmm_plan_free(tulle_spmm_plan *plan);
/* For engines: the caller's experimental options, or zeros.  The second function gives the plan's A a copy of
 * its values on the host; with an engine that computes there it counts toward the limit. */
tulle_spmm_lab tl_spmm_lab_of(const tulle_spmm_options *o);
tulle_status   tl_spmm_keep_values(tulle_spmm_plan *plan, const void *from);

struct tulle_spmm_plan {
    tulle_ctx         *ctx;
    const tl_engine   *engine;          /* the context's, or the chosen one         */
    tl_chosen          chosen;
    tulle_spmm_options options;
    tulle_csr          given, A;        /* as the caller gave it, and as it is multiplied */
    bool               keeps;           /* it may be run again, so it has a copy of the values */
    bool               fresh;           /* beta is 0: Y may be written before all of A was checked */
    bool               unchecked;       /* rows of A are checked while they are multiplied */
    int64_t            first;           /* the first entry of given: not 0 in slices */
    tulle_matrix      *slice;           /* a copy of the row pointers, if A is a slice */
    tulle_matrix      *own;             /* the transposed A, if requested           */
    void              *values;          /* otherwise a copy of A's values, unless they are on a device */
    uint64_t           copied;          /* bytes of own or values                   */
    tl_spmm_pieces     pieces;          /* of engine_cpu.c                          */
    void              *kept;            /* private data of the engine               */
    tulle_stats        stats;
    uint64_t           held;            /* bytes before it began                    */
    double             compiling;       /* tl_ctx_compiling() then                  */
};

#endif
