/* SPDX-License-Identifier: MIT
 *
 * tulle_lab.h - for measurements and experiments: trials of algorithms, and choices that tulle makes better
 * itself.
 *
 * What tulle.h declares is there to stay: names, numbers and the layout of structures.  Nothing of that is
 * promised here.  Functions and structures of this header may change or go with any release; a program that
 * uses them is compiled anew for each, and asks tulle_version() when it runs.  Arguments are checked as
 * everywhere, and results are right as everywhere. */
#ifndef TULLE_LAB_H
#define TULLE_LAB_H
#include "tulle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------- how a product is computed */

/* What the member `lab` of tulle_spmm_options points at.  The shape of the kernel of policy ellr: threads
 * that share a row and columns that are computed at a time are powers of two. */
typedef struct tulle_spmm_lab {
    int         ellr_threads;     /* threads a row, 1 to 32; 0: chosen                        */
    int         ellr_columns;     /* columns at a time, 1 to 32; 0: chosen                    */
    int         ellr_block;       /* threads of a block, 32 to 256; 0: chosen                 */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_spmm_lab;

/* ------------------------------------------------------------------ trials */

/* How fast the context's GPU merges: each block of threads takes two sorted sequences of 32-bit keys into
 * shared memory and makes one of them.  The result is checked. */
typedef struct tulle_merge_options {
    const char *algorithm;        /* a name of tulle_merge_name()                             */
    int         value_bytes;      /* beside each key: 0: nothing, 4: a float, 8: a double     */
    int         length;           /* of a sequence: a power of two, 32 to 4096                */
    int         runs;             /* the time is their median; 0: 5                           */
    int         threads;          /* of a block: a power of two, 32 to 1024; 0: the fastest   */
    int64_t     entries;          /* in all, whole pairs of sequences; 0: 2^25, fewer on OpenCL's CPUs */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_merge_options;

typedef struct tulle_merge_result {
    double      seconds, rate;    /* rate: entries a second                                   */
    int64_t     entries;
    int         threads;          /* of a block                                               */
    uint64_t    shared_bytes;     /* of a block                                               */
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_merge_result;

/* The i-th merge algorithm; NULL past the last. */
TULLE_API const char  *tulle_merge_name(int i);
/* Times one merge algorithm on a GPU.  TULLE_ELIMIT: the device's shared memory or blocks are too small for
 * the length. */
TULLE_API tulle_status tulle_merge_trial(tulle_ctx *ctx, const tulle_merge_options *options,
                                         tulle_merge_result *result);

#ifdef __cplusplus
}
#endif
#endif
