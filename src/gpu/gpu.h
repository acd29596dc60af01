/* SPDX-License-Identifier: MIT
 *
 * gpu.h - the GPU engine: products on one device, whichever driver it has.
 *
 *   device.c    names ("cuda:0"), the list of all devices, opening and sharing one
 *   pool.c      device memory kept between products, and the limit of one
 *   programs.c  which kernels there are, loaded when first needed
 *   check.c     validation of views
 *   place.c     copies matrices between host and device
 *   owner.c     which device an array lies on
 *   parcels.c   sends large arrays from the host to a device, and fetches them
 *   product.c   analyze -> symbolic -> numeric, with two waits: the sequence of stages
 *   analysis.c  row metadata; tiny.c: the fast path for small products
 *   steps.c     assigns rows to the accumulators of the tables in accumulators.c
 *   operands.c  A and B on the device
 *   result.c    C in the form and place that the caller wants
 *   motifs.c    rows of C with the same pattern of products, which is computed once
 *   twins.c     rows of A and B with the same columns, multiplied in bundles
 *   budget.c    how much memory a product needs, for the message if its limit is too small
 *   delta.c     the two steps of DeltaSPARSE: hash with collision detection, dense, bins chosen by a
 *               decision tree
 *   once.c      analyze -> bins by upper bounds -> compute -> arrange, the single step of bhSPARSE
 *   portions.c  a large C for the host: computed and copied in portions of rows
 *   replay.c    the same product again with new values
 *   spmm.h      sparse times dense: its files
 *   trial.c     checks and times five merge algorithms */
#ifndef TL_GPU_H
#define TL_GPU_H
#include "gpu/driver.h"
#include "plan/plan.h"
#include "plan/tree.h"

typedef struct tl_gpu tl_gpu;           /* an open device with its pool and kernels; reference-counted */

/* ---- device.c */

/* Lists all devices of all drivers, in the order cuda:0.., opencl:0..; name can be passed to tl_gpu_open.
 * Returns their number; at most `room` are written.  A driver that is not available has one line with why_not
 * ("cuda", "libcuda.so.1 cannot be opened: ..."). */
typedef struct tl_gpu_line {
    char    name[64];
    tl_caps caps;
} tl_gpu_line;

int          tl_gpu_list(tl_base *b, tl_gpu_line *lines, int room);
/* Opens "cuda:0", "opencl:1", "cuda", "opencl"; the message of TULLE_EDEVICE lists the devices. */
tulle_status tl_gpu_open(tl_base *b, const char *name, tl_gpu **gpu);
/* The name of the best GPU; false: there is none that is better than the CPU. */
bool         tl_gpu_best(tl_base *b, char *name, size_t bytes);
tl_gpu      *tl_gpu_retain(tl_gpu *gpu);
void         tl_gpu_release(tl_gpu *gpu);       /* the last release closes the device; NULL is allowed */
/* In a child of fork() a device is lost: its driver does not work there, and its resources are not touched.
 * tl_gpu_here() then fails with TULLE_EDRIVER and a message; NULL is allowed. */
bool         tl_gpu_lost(const tl_gpu *gpu);
tulle_status tl_gpu_here(tl_base *b, const tl_gpu *gpu);
/* After a failure: waits for the work in the queue before its memory is freed; keeps the message of the
 * failure. */
void         tl_gpu_rest(tl_base *b, const tl_gpu *gpu);
const char  *tl_gpu_name(const tl_gpu *gpu);    /* "cuda:0"                                     */
const tl_caps *tl_gpu_caps(const tl_gpu *gpu);
tulle_status tl_gpu_queue(tl_base *b, tl_gpu *gpu, void *queue);        /* of the caller; NULL: our own */
void        *tl_gpu_native(tl_gpu *gpu, tl_native what);        /* NULL if the driver has no such handle */
void         tl_gpu_trim(tl_gpu *gpu);          /* returns kept blocks to the driver */
/* owner.c: whether an array is known to lie in the memory of another device, or of another OpenCL context.
 * NULL does not. */
bool         tl_gpu_elsewhere(tl_gpu *gpu, const void *array);

/* ---- programs.c */

/* Loads all programs for these types of values and indices; compiles those that are not in the cache. */
tulle_status tl_gpu_warm(tl_base *b, tl_gpu *gpu, tulle_type val, tulle_index idx, tulle_kernels *got);
double       tl_gpu_compiling(const tl_gpu *gpu);               /* seconds of compiling and loading kernels */
double       tl_gpu_now(const tl_gpu *gpu);                     /* a clock that excludes those seconds      */

/* ---- pool.c: blocks of device memory, aligned to TL_ALIGN, counted; freed blocks are kept for reuse, up to
 * a quarter of the device's memory.  Since the queue is in order, a block may be freed and reused as soon as
 * its last use was enqueued. */
tulle_status tl_dmem_alloc(tl_base *b, tl_gpu *gpu, uint64_t bytes, const char *what, tl_dmem *mem);
void         tl_dmem_free(tl_gpu *gpu, tl_dmem mem);            /* handle 0 is allowed */
uint64_t     tl_dmem_held(const tl_gpu *gpu);
uint64_t     tl_dmem_left(tl_gpu *gpu);                         /* bytes available, as far as the
                                                                 * driver reports them */
uint64_t     tl_dmem_peak(tl_gpu *gpu, bool reset);             /* maximum of bytes since the last reset */
uint64_t     tl_dmem_round(uint64_t bytes);                     /* the size of the block for such a request */
/* Begins to count the memory of a product, which has `before` bytes already.  A request beyond the limit (0:
 * none) fails with TULLE_ELIMIT; kept blocks are returned to the driver if they and the product together
 * would exceed the limit. */
void         tl_dmem_begin(tl_gpu *gpu, uint64_t before, uint64_t limit);
void         tl_dmem_end(tl_gpu *gpu);
uint64_t     tl_dmem_taken(const tl_gpu *gpu);                  /* bytes of the product, now */
uint64_t     tl_dmem_most(const tl_gpu *gpu);                   /* and the maximum so far, without
                                                                             * refused requests */
uint64_t     tl_dmem_refused(const tl_gpu *gpu);                /* the bytes including the request that was
                                                                 * refused; 0: none */

/* ---- place.c */

/* Copies A to the given place. */
tulle_status tl_gpu_move(tl_base *b, tl_gpu *gpu, const tulle_csr *A, tulle_place place, tulle_matrix **out);

uint64_t     tl_gpu_bytes_of(const tulle_csr *A);               /* of a copy on the device */

/* The same for a dense matrix; the copy is contiguous. */
tulle_status tl_gpu_dense_move(tl_base *b, tl_gpu *gpu, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out);

/* ---- parcels.c: sends large arrays of the host to the device, and fetches them */

/* An array of numbers of `size` bytes.  first: is subtracted from indices; else 0. */
typedef struct tl_parcel {
    tl_dmem     to;
    const void *from;
    int64_t     count;
    size_t      size;
    int64_t     first, sent;            /* sent: how many numbers have been sent        */
} tl_parcel;

tulle_status tl_parcels_room(tl_base *b, tl_gpu *gpu);         /* allocates the pinned memory if necessary */
/* Sends in the order of a lane, until `upto` numbers (or a few more) were sent; the host's array may change
 * when it returns. */
tulle_status tl_parcel_send(tl_base *b, tl_gpu *gpu, tl_parcel *parcel, int lane, int64_t upto);
tulle_status tl_parcels_finish(tl_base *b, tl_gpu *gpu);       /* waits until pinned memory is not in use */
/* A whole array, in the order of the queue or a lane, through pinned memory if that is faster.  The host's
 * array may change when send returns; what fetch brings is complete after a wait.  After a failure of fetch
 * copies may be under way. */
tulle_status tl_gpu_send(tl_base *b, tl_gpu *gpu, tl_dmem to, const void *from, int64_t count, size_t size,
                         int64_t first);
/* Memory of the library's own, soon to be fetched into: fresh pages come into being, those of an earlier
 * result are locked, so that no slots are needed. */
void         tl_gpu_expect(tl_base *b, tl_gpu *gpu, void *to, uint64_t bytes);
tulle_status tl_gpu_fetch(tl_base *b, tl_gpu *gpu, int lane, void *to, tl_dmem from, uint64_t bytes);

/* ---- product.c */

typedef struct tl_gpu_request {
    const tulle_csr *A, *B;             /* on the host or on this device; of matching shapes and types */
    const tl_recipe *recipe;
    int              ptr_type, idx_type;/* of C; 0: ptr as needed, idx as in B                       */
    tulle_place      place;             /* of C                                         */
    uint64_t         memory_limit;      /* device bytes for copies of A and B, C and workspace; 0: all
                                      * that is free */
    uint64_t         before;            /* bytes of the limit that are already in use                */
    bool             plan;              /* in the message for a limit that is too small: need of a plan */
    int64_t          row_most;          /* in the message if a single row does not fit: need of any row of
                                      * at most so many entries; 0: need of this product */
    bool             values;            /* false: the pattern only                      */
    bool             drop_zeros;
    bool             trusted;           /* false: the views are checked on the device                */
    bool             stages;            /* measure each stage (takes a little time)                  */
    int64_t          row0, row1;        /* of A; row1 < 0: all                          */
} tl_gpu_request;

tulle_status tl_gpu_multiply(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **C,
                             tulle_stats *stats);

/* ---- delta.c: reads the decision tree for local scheduling, if there is one, and traces it */
tulle_status tl_delta_ready(tl_base *b, tl_gpu *gpu);
/* Sets whether rows are sorted into bins (1, 0; -1: as in the policy); *was gets the previous setting.  seen:
 * the features of the last product, for both steps. */
void         tl_gpu_schedule(tl_gpu *gpu, int force, int *was, double seen[2][TL_FEATURES]);

/* ---- replay.c: values may be host pointers (place HOST) or device handles */
typedef struct tl_gpu_replay tl_gpu_replay;
tulle_status tl_gpu_replay_make(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request,
                                tulle_matrix **pattern, tl_gpu_replay **out, tulle_stats *stats);
tulle_status tl_gpu_replay_run(tl_base *b, tl_gpu_replay *replay, const void *a_val, const void *b_val,
                               void *c_val);
void         tl_gpu_replay_free(tl_base *b, tl_gpu_replay *replay);

/* ---- spmm.c: SpMM */

typedef struct tl_gpu_spmm tl_gpu_spmm; /* A prepared on the device; holds a reference to it */

typedef struct tl_gpu_spmm_request {
    const tulle_csr *A;                 /* on the host or on this device; already transposed if that is
                                      * requested */
    bool             ellr;              /* use ELLPACK-R, unless it takes too much memory         */
    uint32_t         ellr_threads, ellr_columns, ellr_block;   /* 0: the model's choice  */
    uint64_t         memory_limit;      /* device bytes, not counting operands there; 0: what is free */
    bool             allow_tf32;        /* float may be rounded to TF32 if that is faster; not with
                                      * ellr */
    bool             trusted;           /* false: A is checked                                    */
    bool             keep;              /* copy the values even if they are on the device, as the
                                      * caller may change them */
} tl_gpu_spmm_request;

tulle_status tl_gpu_spmm_make(tl_base *b, tl_gpu *gpu, const tl_gpu_spmm_request *request, tl_gpu_spmm **out,
                              tulle_stats *stats);
/* True if A did not fit: its arrays on the host are read in each run, and must be kept. */
bool         tl_gpu_spmm_in_bands(const tl_gpu_spmm *spmm);
/* New values for an A whose values were copied (`keep`): same pattern, already transposed if that is
 * requested.  If A is processed in bands, they are read from there in each run. */
tulle_status tl_gpu_spmm_values(tl_base *b, tl_gpu_spmm *spmm, const tulle_csr *A);
/* X and Y on the host or on the device, row-major or column-major; ld is never 0.  alpha is not 0. */
tulle_status tl_gpu_spmm_run(tl_base *b, tl_gpu_spmm *spmm, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y, tulle_stats *stats);
/* Y = beta*Y. */
bool         tl_spmm_shape_wrong(char *why, size_t bytes);      /* is TULLE_SPMM_SHAPE invalid?  why gets
                                                                 * the message */
tulle_status tl_gpu_spmm_scale(tl_base *b, tl_gpu *gpu, tl_c64 beta, tulle_dense *Y);
void         tl_gpu_spmm_free(tl_base *b, tl_gpu_spmm *spmm);

/* ---- trial.c: merges many pairs of sorted sequences of length `length` in shared memory */

enum {
    TL_MERGE_LEAST = 32, TL_MERGE_MOST = 4096, TL_MERGE_RUNS = 1000,
    TL_MERGE_THREADS_MIN = 32, TL_MERGE_THREADS_MAX = 1024
};

typedef enum tl_merge_input {
    TL_MERGE_RANDOM,                    /* ascending by 0 to 3: many keys are equal    */
    TL_MERGE_EQUAL,                     /* all keys have the largest possible value    */
    TL_MERGE_APART,                     /* all keys of the first before the second   */
    TL_MERGE_SWAPPED,                   /* all keys of the first after the second      */
    TL_MERGE_INTERLEAVED                /* alternating                                 */
} tl_merge_input;

typedef struct tl_merge_request {
    int            algorithm;           /* index, as for tulle_merge_name()            */
    int            value_bytes;         /* 0, 4, 8                                   */
    uint32_t       length;              /* a power of two, LEAST to MOST             */
    uint64_t       entries;             /* a multiple of 2 * length                  */
    int            runs;                /* 1 to RUNS                                 */
    uint32_t       threads;             /* a power of two, or 0: the fastest of all   */
    tl_merge_input input;
} tl_merge_request;

tulle_status tl_gpu_merge(tl_base *b, tl_gpu *gpu, const tl_merge_request *request,
                          tulle_merge_result *result);
/* Generates `count` entries for such a trial, and checks the result: the message of TULLE_ECHECK names the
 * entry that is wrong. */
void tl_merge_fill(tl_merge_input input, uint32_t length, int value_bytes, uint64_t count, uint32_t *key,
                   void *val);
tulle_status tl_merge_check(tl_base *b, const tl_merge_request *request, uint64_t count, const uint32_t *key,
                            const uint32_t *key_to, const void *val_to);

#endif
