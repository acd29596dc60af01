/* SPDX-License-Identifier: MIT
 *
 * several.h - several devices as one context: what the files of engine_several.c share.
 *
 *   several.c          the devices by their names, as contexts of their own; all of them at work at once
 *   several_product.c  C = A*B: ranges of rows from a queue, results joined
 *   several_plan.c     plans: the pattern of C once, then a part of its rows for each
 *   several_spmm.c     Y = A*X: a part of Y's rows for each
 *
 * A part is a context: an error, a count of bytes and a team of threads are its own.  What the caller sees
 * (the sentence, progress, the trace, memory_limit) is the whole's. */
#ifndef TL_SEVERAL_H
#define TL_SEVERAL_H
#include "ctx.h"

enum { TL_PARTS_MAX = 16 };

typedef struct tl_lines {
    size_t bytes;                       /* lines, each ended by a zero              */
    int    lost;                        /* for which there was no room              */
    char   text[4000];
} tl_lines;

typedef struct tl_several {
    tulle_ctx *ctx;                     /* the whole                                */
    int        count;
    tulle_ctx *part[TL_PARTS_MAX];
    int        twins[TL_PARTS_MAX];     /* parts on the same device, itself included */
    tl_team   *team;                    /* a thread for each part, and the caller's */
    double     spmm_rate[TL_PARTS_MAX]; /* entries of A times columns a second, so far; 0: not known */
    /* of the call under way */
    bool       direct;                  /* it runs in the caller's thread           */
    atomic_int stop, failed;            /* all are to end; the part that failed first, or -1 */
    atomic_int begun, ended;
    tulle_status status[TL_PARTS_MAX];
    uint64_t   device_bytes[TL_PARTS_MAX];      /* that a part held in memory of its own, where it says so */
    tl_lines   lines[TL_PARTS_MAX];     /* what parts have traced, until the caller's thread tells it */
} tl_several;

tulle_status tl_several_open(tulle_ctx *ctx, const char *devices);
void         tl_several_close(tulle_ctx *ctx);
/* The context's threads divided among the parts. */
tulle_status tl_several_threads(tulle_ctx *ctx);
/* Of so many threads (0: all of the context) those of a part. */
int          tl_several_share(const tl_several *v, int i, int threads);
int64_t      tl_several_rows(void);     /* TULLE_PART_ROWS, or 0                    */

/* The work of one part, number i, on a thread of its own; its sentence is left in that context. */
typedef tulle_status (*tl_part_fn)(void *arg, tulle_ctx *part, int i);

/* All parts at once.  The first failure ends the others, and is the whole's; far (or NULL) tells how far it
 * is.  The most that was held goes into the whole's count. */
tulle_status tl_several_run(tulle_ctx *ctx, tl_part_fn fn, void *arg, const char *stage,
                            double (*far)(const void *arg));
/* One of them, in the caller's thread. */
tulle_status tl_several_one(tulle_ctx *ctx, int i, tl_part_fn fn, void *arg);
/* A failure of a part as one of the whole: its sentence with the device before it. */
tulle_status tl_several_fail(tulle_ctx *ctx, int i, tulle_status status);
/* The part that takes what cannot be shared: the first on the host, else the first. */
int          tl_several_main(const tl_several *v);
/* Is it the end of a part that had too little memory, which another one, or less at once, may help? */
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
/* What the parts hold for this product goes back; how fast each was (products a second; 0: not known). */
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
