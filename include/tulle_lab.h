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

/* Rows of a product that repeat each other, as policy auto finds them on a GPU.  Where a sample says that
 * there are too few, or the product is small, they are not looked for, and the numbers are 0. */
typedef struct tulle_repeats {
    const char *chosen;           /* "twins", "motifs", or "none"                             */
    int64_t     rows, products;   /* of the product                                           */
    int64_t     sampled_a, alike_a;     /* rows of A in a sample (0: there was none), and those with the
                                     columns of the row before                                */
    int64_t     sampled_b, alike_b;     /* the same of B                                      */
    int64_t     twin_groups[4];   /* [n]: groups of n rows of A with the same columns, n up to 3 */
    int64_t     twin_rows, twin_products;       /* in these groups                            */
    int64_t     sampled, kinds;   /* rows of A in the sample for motifs, and different ones   */
    int64_t     motifs_found, motifs;   /* patterns of rows of C, and those that are used     */
    int64_t     motif_rows, motif_products;     /* with a pattern that is used                */
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_repeats;

/* Finds out which rows of a product repeat each other, without computing it.  The operands are copied to the
 * GPU, if they are not there, and analyzed.  Where the product would be computed otherwise, "none" is
 * chosen. */
TULLE_API tulle_status tulle_repeats_find(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                          const tulle_options *options, tulle_repeats *repeats);

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

/* A threshold of policy auto on a GPU. */
typedef struct tulle_threshold {
    const char *name;             /* such as "numeric.bits_per"                               */
    int64_t     least, most;      /* its range                                                */
    int64_t     usual, tuned;     /* the default for this device, and what was found          */
    uint64_t    reserved[2];      /* zero                                                     */
} tulle_threshold;

#define TULLE_MAX_THRESHOLDS 32

/* One product for tulle_auto_tune(): A and B wherever it is to be timed with, on the device best.  The times
 * are filled in. */
typedef struct tulle_tune_pair {
    tulle_csr   A, B;
    double      sec_usual, sec_tuned;   /* with the defaults, with what was found             */
    double      sec_best;         /* the least with any values that were tried                */
    uint64_t    reserved[2];      /* must be zero                                             */
} tulle_tune_pair;

typedef struct tulle_tune_score {
    int         pairs;
    double      usual, tuned;     /* time against the best time of each, geometric mean; 1 is best */
} tulle_tune_score;

typedef struct tulle_tune_report {
    const char *family;           /* the kind of device: "hopper"                             */
    char        path[1200];       /* where the thresholds were written                        */
    int         thresholds;
    tulle_threshold threshold[TULLE_MAX_THRESHOLDS];
    tulle_tune_score train, validate;
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_tune_report;

/* Finds the fastest thresholds of policy auto on a GPU and writes them to a file.  For one threshold after
 * the other all products are timed with several values, each the median of so many runs (0: 5); two of three
 * products choose, each third one only judges.  path NULL: a file in the cache folder, where products on this
 * device look for it; other files are named by TULLE_GPU_TUNE.  The progress callback may cancel.
 * TULLE_EDEVICE: the context has no GPU, or several devices; TULLE_EINVAL: fewer than 3 products. */
TULLE_API tulle_status tulle_auto_tune(tulle_ctx *ctx, tulle_tune_pair *pairs, int count, int runs,
                                       const char *path, tulle_tune_report *report);

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
