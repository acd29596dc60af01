/* SPDX-License-Identifier: MIT
 *
 * gpu.h - the GPU engine: products on one device, whichever driver it has.
 *
 *   device.c    names ("cuda:0"), the list of all devices, opening and sharing one
 *   pool.c      device memory kept between products, and the limit of one
 *   programs.c  which kernels there are, loaded when first needed
 *   check.c     is a view in order?
 *   place.c     matrices carried between host and device
 *   parcels.c   long arrays of the host on their way to a device
 *   product.c   analyze -> symbolic -> numeric, two waits
 *   budget.c    how much a product needs, where its limit is too small
 *   once.c      analyze -> bins of upper bounds -> all at once -> arranged, as bhSPARSE does
 *   replay.c    the same product again with new values
 *   spmm.h      sparse times dense: its files
 *   trial.c     five merge algorithms, tried and timed */
#ifndef TL_GPU_H
#define TL_GPU_H
#include "gpu/driver.h"
#include "plan/plan.h"

typedef struct tl_gpu tl_gpu;           /* an open device with its pool and kernels; counted */

/* ---- device.c */

/* All devices of all drivers, in the order cuda:0.., opencl:0..; name is what tl_gpu_open takes.  Returns how
 * many there are; at most `room` are written.  A driver that is not there has one line with why_not
 * ("cuda", "libcuda.so.1 cannot be opened: ..."). */
typedef struct tl_gpu_line {
    char    name[64];
    tl_caps caps;
} tl_gpu_line;

int          tl_gpu_list(tl_base *b, tl_gpu_line *lines, int room);
/* "cuda:0", "opencl:1", "cuda", "opencl"; TULLE_EDEVICE says what there is. */
tulle_status tl_gpu_open(tl_base *b, const char *name, tl_gpu **gpu);
/* The name of the best GPU there is, false: none that is better than the CPU. */
bool         tl_gpu_best(tl_base *b, char *name, size_t bytes);
tl_gpu      *tl_gpu_retain(tl_gpu *gpu);
void         tl_gpu_release(tl_gpu *gpu);       /* the last one closes the device; NULL is fine */
/* In a child of fork() a device is lost: its driver does not work there, and what it holds is left alone.  tl_gpu_here():
 * TULLE_EDRIVER with a sentence then; NULL is fine. */
bool         tl_gpu_lost(const tl_gpu *gpu);
tulle_status tl_gpu_here(tl_base *b, const tl_gpu *gpu);
const char  *tl_gpu_name(const tl_gpu *gpu);    /* "cuda:0"                                     */
const tl_caps *tl_gpu_caps(const tl_gpu *gpu);
tulle_status tl_gpu_queue(tl_base *b, tl_gpu *gpu, void *queue);        /* the caller's; NULL: our own */
void        *tl_gpu_native(tl_gpu *gpu, tl_native what);        /* NULL where the driver has no such thing */
void         tl_gpu_trim(tl_gpu *gpu);          /* kept device memory goes back */

/* ---- programs.c */

/* All programs for values and indices of these types, compiled or found and loaded. */
tulle_status tl_gpu_warm(tl_base *b, tl_gpu *gpu, tulle_type val, tulle_index idx, tulle_kernels *got);
double       tl_gpu_compiling(const tl_gpu *gpu);               /* seconds that kernels took to get, so far */
double       tl_gpu_now(const tl_gpu *gpu);                     /* a clock that stands still meanwhile      */

/* ---- pool.c: blocks of device memory, aligned to TL_ALIGN, counted; freed blocks are kept for the next, up to a quarter of
 * the device's memory.  In queue order: a block freed after its last use was enqueued may be handed out at once. */
tulle_status tl_dmem_alloc(tl_base *b, tl_gpu *gpu, uint64_t bytes, const char *what, tl_dmem *mem);
void         tl_dmem_free(tl_gpu *gpu, tl_dmem mem);            /* handle 0 is fine */
uint64_t     tl_dmem_held(const tl_gpu *gpu);
uint64_t     tl_dmem_left(tl_gpu *gpu);                         /* what can still be had, as far as the driver tells */
uint64_t     tl_dmem_peak(tl_gpu *gpu, bool reset);             /* most bytes held since the last reset */
uint64_t     tl_dmem_round(uint64_t bytes);                     /* what a request for so many takes */
/* Of one product: what it takes is counted from here to the end.  `before` bytes it has already; beyond the limit (0: none)
 * a request is TULLE_ELIMIT and takes nothing, and kept blocks go back to the driver where they and the product together
 * would pass it. */
void         tl_dmem_begin(tl_gpu *gpu, uint64_t before, uint64_t limit);
void         tl_dmem_end(tl_gpu *gpu);
uint64_t     tl_dmem_taken(const tl_gpu *gpu);                  /* by the product, now */
uint64_t     tl_dmem_most(const tl_gpu *gpu);                   /* and at most, what was refused not counted */
uint64_t     tl_dmem_refused(const tl_gpu *gpu);                /* what it would have had with the request refused; 0: none */

/* ---- place.c */

/* A copy of A at the place asked for. */
tulle_status tl_gpu_move(tl_base *b, tl_gpu *gpu, const tulle_csr *A, tulle_place place, tulle_matrix **out);

uint64_t     tl_gpu_bytes_of(const tulle_csr *A);               /* that a copy on the device takes */

/* The same for a dense matrix; without gaps. */
tulle_status tl_gpu_dense_move(tl_base *b, tl_gpu *gpu, const tulle_dense *A, tulle_place place, tulle_dense_matrix **out);

/* ---- parcels.c: arrays of the host to the device.  Host bytes are taken when a call returns. */

/* Numbers of `size` bytes; first: indices, which become so much smaller, else 0. */
typedef struct tl_parcel {
    tl_dmem     to;
    const void *from;
    int64_t     count;
    size_t      size;
    int64_t     first, sent;            /* sent: so many numbers are on their way       */
} tl_parcel;

tulle_status tl_parcels_room(tl_base *b, tl_gpu *gpu);         /* pinned memory, if there is none yet */
/* In the order of a lane, until `upto` numbers (or some more) were sent. */
tulle_status tl_parcel_send(tl_base *b, tl_gpu *gpu, tl_parcel *parcel, int lane, int64_t upto);
tulle_status tl_parcels_finish(tl_base *b, tl_gpu *gpu);       /* the pinned memory is not read any more */
/* All of an array at once, in queue order. */
tulle_status tl_gpu_send(tl_base *b, tl_gpu *gpu, tl_dmem to, const void *from, int64_t count, size_t size, int64_t first);

/* ---- product.c */

typedef struct tl_gpu_request {
    const tulle_csr *A, *B;             /* on the host or on this device; shapes and types agree */
    const tl_recipe *recipe;
    int              ptr_type, idx_type;/* of C; 0: as needed, as B's                   */
    tulle_place      place;             /* of C                                         */
    uint64_t         memory_limit;      /* device bytes for copies of A and B, C and workspace; 0: what is free */
    uint64_t         before;            /* of them: taken already                       */
    bool             plan;              /* a limit that is too small is told for a plan, */
    int64_t          row_most;          /* and for any row of at most so many entries, where one alone is refused; 0: for this product */
    bool             values;            /* false: the pattern only                      */
    bool             drop_zeros;
    bool             trusted;           /* else the views are checked on the device     */
    bool             stages;            /* each stage is timed (costs a little)         */
    int64_t          row0, row1;        /* of A; row1 < 0: all                          */
} tl_gpu_request;

tulle_status tl_gpu_multiply(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **C,
                             tulle_stats *stats);

/* ---- replay.c: values may be host pointers (place HOST) or device handles */
typedef struct tl_gpu_replay tl_gpu_replay;
tulle_status tl_gpu_replay_make(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **pattern,
                                tl_gpu_replay **out, tulle_stats *stats);
tulle_status tl_gpu_replay_run(tl_base *b, tl_gpu_replay *replay, const void *a_val, const void *b_val,
                               void *c_val);
void         tl_gpu_replay_free(tl_base *b, tl_gpu_replay *replay);

/* ---- spmm.c: a sparse matrix times a dense one */

typedef struct tl_gpu_spmm tl_gpu_spmm; /* A ready on the device; counts as a user of it */

typedef struct tl_gpu_spmm_request {
    const tulle_csr *A;                 /* on the host or on this device, transposed already where that is wanted */
    bool             ellr;              /* in ELLPACK-R, if that is reasonable           */
    uint32_t         ellr_threads, ellr_columns, ellr_block;   /* 0: the model's choice  */
    uint64_t         memory_limit;      /* device bytes beside what lies there; 0: what is free */
    bool             allow_tf32;        /* float may be rounded to 10 bits where that is faster; not with ellr */
    bool             trusted;           /* else A is checked                             */
    bool             keep;              /* values are copied even where they lie on the device: the caller's may change */
} tl_gpu_spmm_request;

tulle_status tl_gpu_spmm_make(tl_base *b, tl_gpu *gpu, const tl_gpu_spmm_request *request, tl_gpu_spmm **out,
                              tulle_stats *stats);
/* A did not fit: its arrays on the host are read at each run, and must stay. */
bool         tl_gpu_spmm_in_bands(const tl_gpu_spmm *spmm);
/* New values of an A that was kept: the same pattern, transposed already where that is wanted.  In bands they are read from
 * there at each run. */
tulle_status tl_gpu_spmm_values(tl_base *b, tl_gpu_spmm *spmm, const tulle_csr *A);
/* X and Y on the host or on the device, in any order; ld is never 0.  alpha is not 0. */
tulle_status tl_gpu_spmm_run(tl_base *b, tl_gpu_spmm *spmm, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, tulle_dense *Y,
                             tulle_stats *stats);
/* Y = beta*Y. */
bool         tl_spmm_shape_wrong(char *why, size_t bytes);      /* TULLE_SPMM_SHAPE has no shape; why gets the sentence */
tulle_status tl_gpu_spmm_scale(tl_base *b, tl_gpu *gpu, tl_c64 beta, tulle_dense *Y);
void         tl_gpu_spmm_free(tl_base *b, tl_gpu_spmm *spmm);

/* ---- trial.c: many pairs of sorted sequences of `length`, merged in shared memory */

enum {
    TL_MERGE_LEAST = 32, TL_MERGE_MOST = 4096, TL_MERGE_RUNS = 1000,
    TL_MERGE_THREADS_MIN = 32, TL_MERGE_THREADS_MAX = 1024
};

typedef enum tl_merge_input {
    TL_MERGE_RANDOM,                    /* rising by 0 to 3: many are equal          */
    TL_MERGE_EQUAL,                     /* one key for all, the largest there is     */
    TL_MERGE_APART,                     /* all of the first before all of the second */
    TL_MERGE_SWAPPED,                   /* after it                                  */
    TL_MERGE_INTERLEAVED                /* in turn                                   */
} tl_merge_input;

typedef struct tl_merge_request {
    int            algorithm;           /* as tulle_merge_name() counts them         */
    int            value_bytes;         /* 0, 4, 8                                   */
    uint32_t       length;              /* a power of two, LEAST to MOST             */
    uint64_t       entries;             /* a multiple of 2 * length                  */
    int            runs;                /* 1 to RUNS                                 */
    uint32_t       threads;             /* a power of two, or 0: whichever is fastest */
    tl_merge_input input;
} tl_merge_request;

tulle_status tl_gpu_merge(tl_base *b, tl_gpu *gpu, const tl_merge_request *request, tulle_merge_result *result);
/* count entries of such a trial, and whether the result is theirs: TULLE_ECHECK says which entry is not. */
void         tl_merge_fill(tl_merge_input input, uint32_t length, int value_bytes, uint64_t count, uint32_t *key, void *val);
tulle_status tl_merge_check(tl_base *b, const tl_merge_request *request, uint64_t count, const uint32_t *key,
                            const uint32_t *key_to, const void *val_to);

#endif
