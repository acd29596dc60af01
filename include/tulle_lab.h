/* SPDX-License-Identifier: MIT
 *
 * tulle_lab.h - for measurements and experiments: benchmarks of single algorithms, and tuning parameters that
 * the library normally chooses better itself.
 *
 * tulle.h is a stable interface: names, numbers and the layout of structures.  This header is not: its
 * functions and structures may change or disappear with any release.  A program that uses them must be
 * recompiled for each release, and should check tulle_version() at run time.  Arguments are checked, and
 * results are correct, as everywhere else. */
#ifndef TULLE_LAB_H
#define TULLE_LAB_H
#include "tulle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------- how a product is computed */

/* What the member `lab` of tulle_spmm_options points at: the launch parameters of policy ellr.  The number of
 * threads that share a row, and of columns that are computed at a time, are powers of two. */
typedef struct tulle_spmm_lab {
    int         ellr_threads;     /* threads per row, 1 to 32; 0: chosen                      */
    int         ellr_columns;     /* columns at a time, 1 to 32; 0: chosen                    */
    int         ellr_block;       /* threads per block, 32 to 256; 0: chosen                  */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_spmm_lab;

/* ------------------------------------------------------------------ trials */

/* Options of a benchmark of merging on the context's GPU: each block of threads loads two sorted sequences of
 * 32-bit keys into shared memory and merges them.  The result is checked. */
typedef struct tulle_merge_options {
    const char *algorithm;        /* a name of tulle_merge_name()                             */
    int         value_bytes;      /* stored with each key: 0: nothing, 4: a float, 8: a double */
    int         length;           /* of a sequence: a power of two, 32 to 4096                */
    int         runs;             /* the time is the median of so many; 0: 5                  */
    int         threads;          /* per block: a power of two, 32 to 1024; 0: the fastest    */
    int64_t     entries;          /* total, rounded to whole pairs of sequences; 0: 2^25, fewer where OpenCL's
                                     device is a CPU                                          */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_merge_options;

typedef struct tulle_merge_result {
    double      seconds, rate;    /* rate: entries per second                                 */
    int64_t     entries;
    int         threads;          /* per block                                                */
    uint64_t    shared_bytes;     /* per block                                                */
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_merge_result;

/* The i-th merge algorithm; NULL past the last. */
TULLE_API const char  *tulle_merge_name(int i);
/* Times one merge algorithm on a GPU.  TULLE_ELIMIT: the device has too little shared memory, or too few
 * threads per block, for that length. */
TULLE_API tulle_status tulle_merge_trial(tulle_ctx *ctx, const tulle_merge_options *options,
                                         tulle_merge_result *result);

/* What is measured of one product of policy delta on a GPU, for the decision tree of its local scheduling.
 * The first index is the step, symbolic and numeric. */
typedef struct tulle_delta_sample {
    double      features[2][3];   /* density of C, its average and its longest row; before it is counted, of
                                     its upper bounds                                         */
    double      seconds[2][2];    /* without bins, with bins: the median                      */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_delta_sample;

typedef struct tulle_delta_score {
    int         samples, right;   /* right: the tree's answer was the faster one              */
    double      loss;             /* what it chose against the faster one, geometric mean; 1 is best */
} tulle_delta_score;

typedef struct tulle_delta_report {
    int         nodes[2];         /* of the trees                                             */
    tulle_delta_score train[2], validate[2];
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_delta_report;

/* Times a product of policy delta with bins and without.  A is multiplied by B so many times (0: 5) each
 * way.  TULLE_EDEVICE: the context has no GPU, or several devices; TULLE_EINVAL: C has no entries. */
TULLE_API tulle_status tulle_delta_trial(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int runs,
                                         tulle_delta_sample *sample);
/* Grows decision trees for policy delta and writes them to a file.  There is one for each step, from two of
 * three samples, judged by each third one; TULLE_DELTA_TREE names the file to products.  At least 3 samples,
 * at most 4096. */
TULLE_API tulle_status tulle_delta_train(tulle_ctx *ctx, const tulle_delta_sample *samples, int count,
                                         const char *path, tulle_delta_report *report);

#ifdef __cplusplus
}
#endif
#endif
