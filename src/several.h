/* SPDX-License-Identifier: MIT
 *
 * several.h - several devices as one context: what the files behind engine_several.c share.
 *
 *   several.c          opens the devices by their names, as contexts of their own; runs all of them at once
 *   several_product.c  C = A*B: devices take ranges of rows from a queue, results are joined
 *   several_plan.c     plans: the pattern of C once, then a fixed part of its rows for each device
 *   several_spmm.c     Y = A*X: a part of Y's rows for each device
 *
 * Each device ("part") is a context with its own error message, byte counts and threads.  The caller sees
 * only the whole context: its error message, progress, trace and memory_limit. */
#ifndef TL_SEVERAL_H
#define TL_SEVERAL_H
#include "ctx.h"

enum { TL_PARTS_MAX = 16 };

typedef struct tl_lines {
    size_t bytes;                       /* lines, each terminated by a zero         */
    int    lost;                        /* lines that did not fit                   */
    char   text[4000];
} tl_lines;

typedef struct tl_several {
    tulle_ctx *ctx;                     /* the context of the caller                */
    int        count;
    tulle_ctx *part[TL_PARTS_MAX];
    int        twins[TL_PARTS_MAX];     /* parts on the same device, itself included */
    tl_team   *team;                    /* a thread for each part, and the caller's */
    double     spmm_rate[TL_PARTS_MAX]; /* entries of A times columns per second, so far; 0: not known */
    /* of the current call */
    bool       direct;                  /* it runs in the caller's thread           */
    atomic_int stop, failed;            /* all parts must stop; the part that failed first, or -1 */
    atomic_int begun, ended;
    tulle_status status[TL_PARTS_MAX];
    uint64_t   device_bytes[TL_PARTS_MAX];      /* device memory that a part used, if it has any */
    tl_lines   lines[TL_PARTS_MAX];     /* trace lines of the parts, for the caller's thread */
} tl_several;

tulle_status tl_several_open(tulle_ctx *ctx, const char *devices);
void         tl_several_close(tulle_ctx *ctx);
/* Divides the context's threads among the parts. */
tulle_status tl_several_threads(tulle_ctx *ctx);
/* The number of threads of a part, out of `threads` (0: all of the context). */
int          tl_several_share(const tl_several *v, int i, int threads);
int64_t      tl_several_rows(void);     /* TULLE_PART_ROWS, or 0                    */

/* The work of part i, on a thread of its own; its error message is left in the part's context. */
typedef tulle_status (*tl_part_fn)(void *arg, tulle_ctx *part, int i);

/* Runs all parts at once.  The first failure stops the others, and is returned; far (or NULL) returns the
 * progress.  The sum of the parts' peak memory is added to the context's count. */
tulle_status tl_several_run(tulle_ctx *ctx, tl_part_fn fn, void *arg, const char *stage,
                            double (*far)(const void *arg));
/* Runs one of them, in the caller's thread. */
tulle_status tl_several_one(tulle_ctx *ctx, int i, tl_part_fn fn, void *arg);
/* Turns a failure of a part into one of the context: its message is prefixed with the device. */
tulle_status tl_several_fail(tulle_ctx *ctx, int i, tulle_status status);
/* The part that does what cannot be divided: the first CPU part, else the first part. */
int          tl_several_main(const tl_several *v);
/* Whether a part failed for lack of memory, so that another part or a smaller range may succeed. */
bool         tl_several_short(tulle_status status);

/* ---- several_product.c */
tulle_status tl_several_prepare(tulle_ctx *ctx, tl_setup *s, int want);
tulle_status tl_several_multiply(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C);
void         tl_several_done(tulle_ctx *ctx, tl_setup *s);
void         tl_several_figures(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes);
uint64_t     tl_several_host_bytes(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                                   uint64_t base, int64_t nnz, bool exact);
uint64_t     tl_several_room(const tulle_ctx *ctx, const tl_setup *s);
tulle_status tl_several_refuse(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status);
/* Frees what the parts hold for this product.  The other function gives the speed of each (products per
 * second; 0: not known). */
void         tl_several_release(tulle_ctx *ctx, tl_setup *s);
double       tl_several_rate(const tl_setup *s, int i);

/* ---- several_plan.c, several_spmm.c */
tulle_status tl_several_plan_make(tulle_plan *p);
tulle_status tl_several_plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values);
void         tl_several_plan_free(tulle_plan *p);
tulle_status tl_several_spmm_make(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols);
tulle_status tl_several_spmm_run(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                                 tulle_dense *Y);
tulle_status tl_several_spmm_values(tulle_spmm_plan *p, const tulle_csr *A);
void         tl_several_spmm_free(tulle_spmm_plan *p);

#endif
