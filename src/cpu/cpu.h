/* SPDX-License-Identifier: MIT
 *
 * cpu.h - the CPU engine: products of two CSR matrices on a team of threads.
 *
 *   kernels.c   rows of C, for one value type, one index type and one instruction set; the accumulators
 *               are kernel_*.h
 *   dispatch.c  selects the kernels for the types and the processor
 *   scratch.c   the workspace of a thread
 *   crew.c      the workspaces of all threads ("crew")
 *   queue.c     joins the results of pieces in order while they are computed
 *   room.c      how much memory a product takes, and how to stay within its memory limit
 *   product.c   pieces -> threads -> C, in one pass or in two
 *   replay.c    the numeric phase alone, for a known pattern (plans) */
#ifndef TL_CPU_H
#define TL_CPU_H
#include "plan/plan.h"

/* The arrays of one operand, as the kernels see it. */
typedef struct tl_arrays {
    const void *ptr, *col, *val;
    bool        ptr64, col64;
} tl_arrays;

typedef struct tl_job {
    tl_arrays        a, b;
    const tl_recipe *recipe;
    const uint8_t   *a_like, *b_like;   /* of profile; NULL: none */
    bool             twins, stencils;   /* there are enough of them to look for */
    bool             repeats, ones;      /* row patterns repeat; each row of B has one entry */
    bool             networks;          /* rows may be sorted for which the policy says dense */
    bool             far;               /* B exceeds the cache: prefetch its rows */
    int64_t          a_nnz, b_nnz, b_longest;   /* entries; length of the longest row of B in use */
    bool             drop_zeros;
    bool             exact;             /* nothing may be written after the last entry of a piece */
} tl_job;

/* The rows of B for one or several entries of a row of A: `rows` consecutive rows of B with equal pattern. */
typedef struct tl_stretch {
    int64_t begin, length;
    int32_t first;                      /* entry of the row of A */
    int32_t rows;
} tl_stretch;

/* The workspace of a thread.  Between rows of C all slots, marks and blocks are zero, and all table keys
 * -1. */
typedef struct tl_scratch {
    void       *memory;                 /* one block that holds all arrays   */
    int64_t     slots;                  /* columns a dense window can have   */
    void       *slot;
    uint8_t    *mark, *block;           /* a byte per column; a byte per 64 columns */
    int64_t     stretches;
    tl_stretch *stretch;
    int32_t    *run;                    /* begin and length of each run to merge */
    uint16_t   *place;                  /* of each product in its row, for stencils */
    struct tl_octets *octets;           /* the steps of the last run of them: kernel_octets.h */
    void       *octet_step;
    uint16_t   *octet_place;
    tl_stretch *octet_stretch;
    int64_t     octet_steps, octet_products;    /* capacities */
    int64_t     items;                  /* products a sort can hold          */
    void       *item[2], *product;
    int64_t     table;                  /* entries of the hash table         */
    void       *key, *sum;
    void       *patterns;               /* remembered row patterns, kernel_repeat.h */
    int64_t     pattern_count, pattern_bytes;
    int64_t     pattern_most, pattern_room;     /* products of a pattern at most; size of its arrays */
    int64_t     pattern_entries;        /* entries of A at most, where lanes are stored */
    int         pattern_mode;           /* the kernel's mode that recorded them; 0: there are none */
    int64_t    *row_end;                /* of the rows of a piece            */
    bool        fresh;                  /* the memory was zero when it was allocated */
    bool        clear;
    int64_t     rows[TL_ACCUMULATORS], products[TL_ACCUMULATORS];
} tl_scratch;

enum {
    TL_STRETCHES = 1 << 15,             /* entries of a row of A             */
    TL_ITEMS = 1 << 15,                 /* products of a row for sort, hash  */
    TL_TABLE = TL_ITEMS * 2,
    TL_PATTERN = 640,                   /* products of a row whose pattern is remembered */
    TL_LEAN_PATTERN = 128,
    TL_PATTERN_ENTRIES = 128,           /* entries of A, of a pattern that is summed in registers */
    TL_PATTERN_PAD = 16,                /* padding after them */
    TL_STEP_BYTES = 16,                 /* per such entry, besides eight columns */
    TL_OCTET_BYTES = 32,                /* bytes of a step of kernel_octets.h, and their largest number: */
    TL_OCTET_STEPS = 512,
    TL_OCTETS = 64,                     /* of a row of C                                     */
    TL_SLOTS = 2 << 20,                 /* at most, see scratch.c            */
    TL_SLACK = 16                       /* entries a kernel may write after the last */
};

/* The same for a small memory limit: longer rows are computed in ranges of columns. */
enum {
    TL_LEAN_STRETCHES = 1 << 10, TL_LEAN_ITEMS = 1 << 10, TL_LEAN_SLOTS = 4 << 10,
    TL_LEAN_OCTET_STEPS = 128
};

/* The steps of a row, and the row they belong to. */
typedef struct tl_octets {
    int64_t n, count, products;         /* entries of C, rows of B; 0: no row         */
    int64_t steps;                      /* 0: steps would not pay for this row        */
    int32_t end[TL_OCTETS];             /* end of the steps of each octet             */
} tl_octets;

tulle_status tl_scratch_make(tl_base *b, const tulle_csr *B, const tl_profile *profile,
                             const tl_pieces *pieces, tl_scratch *scratch);
uint64_t     tl_scratch_bytes(const tulle_csr *B, const tl_profile *profile, const tl_pieces *pieces);
void         tl_scratch_clear(tl_scratch *scratch, size_t value, size_t index);
void         tl_scratch_done(tl_base *b, tl_scratch *scratch);

/* Computes one piece.  c_col and c_val point at its first entry; row_end[i] receives the end of row i of the
 * piece.  Returns the number of entries.
 *   symbolic  columns only; c_col may be NULL to count
 *   fused     columns and values in one pass; the arrays need the upper bound plus TL_SLACK entries
 *             (exact jobs: only the number of entries)
 *   numeric   values only: c_col and row_end are given (rows of c_col may be written again, unchanged) */
typedef int64_t (*tl_piece_fn)(const tl_job *job, tl_scratch *s, const tl_piece *piece, void *c_col,
                               void *c_val, int64_t *row_end);

typedef struct tl_kernels {
    tl_piece_fn symbolic, fused, numeric;
    const char *isa;
} tl_kernels;

tl_kernels  tl_kernels_for(tulle_type value, tulle_index index);
const char *tl_cpu_isa(void);
/* Rows of up to this many products are faster with sums in registers (kernel_lanes.h) than as stencils; 0: no
 * rows are. */
int64_t     tl_cpu_few(tulle_type value);
bool tl_isa_wrong(char *why, size_t bytes); /* TULLE_ISA is not available here; why gets the message */
void        tl_cpu_text(char *text, size_t bytes);

/* ---- crew.c: the workspaces of all threads */

typedef struct tl_crew {
    int         threads;
    tl_scratch *scratch;
    size_t      value, index;           /* bytes */
} tl_crew;

tulle_status tl_crew_make(tl_base *b, const tulle_csr *B, const tl_profile *profile, const tl_pieces *pieces,
                          int threads, tl_crew *crew);
void         tl_crew_done(tl_base *b, tl_crew *crew);
uint64_t     tl_crew_bytes(const tulle_csr *B, const tl_profile *profile, const tl_pieces *pieces,
                           int threads);
tulle_status tl_crew_cut(tl_base *b, tl_crew *crew, int threads);       /* keeps the first `threads` */
/* The workspace of a thread, cleared; called by that thread. */
tl_scratch  *tl_crew_enter(tl_crew *crew, int thread);
/* Fills in the rows and products of each accumulator; `products` is the total. */
void         tl_crew_shares(const tl_crew *crew, int64_t products, tulle_stats *stats);

tl_job tl_job_make(const tulle_csr *A, const tulle_csr *B, const tl_recipe *recipe, const tl_profile *p);

/* ---- queue.c: pieces handed out in order, their results joined in order */

typedef struct tl_target {              /* the arrays of C                             */
    void       *ptr, *col, *val;        /* val NULL: pattern only; col NULL: count only */
    tulle_index ptr_type;
    size_t      index, value;           /* bytes of an entry                           */
    int64_t     row0;                   /* ptr[i - row0 + 1] is set for row i          */
} tl_target;

/* Runs fn over all pieces, or with step > 1 (counting only) every step-th one; *nnz receives the entries of
 * C.  place, when not NULL, has one element more than there are pieces: counting stores the beginning of each
 * piece there, and a later run that writes the same pieces uses it.  TULLE_ECANCEL when the progress callback
 * cancels. */
tulle_status tl_queue_run(tl_base *b, const tl_job *job, tl_piece_fn fn, const tl_pieces *pieces,
                          tl_crew *crew, const tl_target *target, int64_t step, int64_t *place,
                          const char *stage, int64_t *nnz);

/* The memory of tl_queue_run().  threads: those that compute into slots, 0: all write directly into C. */
uint64_t     tl_queue_bytes(const tl_pieces *pieces, int threads, size_t index, size_t value);

/* ---- product.c */

typedef struct tl_request {
    const tulle_csr  *A, *B;
    const tl_recipe  *recipe;
    const tl_profile *profile;
    int               threads;
    uint64_t          memory_limit;     /* for all memory of the call             */
    uint64_t          held;             /* bytes that the context held before the call */
    uint64_t          later;            /* bytes that the caller will allocate in addition */
    bool              uncounted;        /* TULLE_ELIMIT without a sufficient limit, which takes counting */
    int               ptr_type;         /* of C: a tulle_index, 0 = as needed     */
    int               idx_type;         /* of C: a tulle_index, 0 = as B's        */
    bool              drop_zeros;
    bool              values;           /* false: the pattern only                */
    int64_t           row0, row1;
} tl_request;

/* The number of threads that pays for this many products. */
int          tl_cpu_threads(const tl_base *b, int wanted, int64_t products);
/* lean: rows with many entries of A are cut as well, so that a thread needs less workspace. */
tulle_status tl_cpu_pieces(tl_base *b, const tl_request *request, bool lean, tl_pieces *pieces);
/* The approximate peak memory of tl_cpu_pieces(). */
uint64_t     tl_cpu_pieces_bytes(const tl_request *request);
/* C = A*B for the rows row0..row1. */
tulle_status tl_cpu_multiply(tl_base *b, const tl_request *request, tulle_matrix **C, tulle_stats *stats);
/* Counts nnz(C) and the work of each accumulator in every step-th piece; *seen = products of these. */
tulle_status tl_cpu_count(tl_base *b, const tl_request *request, int64_t step, int64_t *nnz,
                          int64_t *seen, tulle_stats *stats);
/* ---- room.c */

/* The peak memory of the call if it goes on with these pieces, this many threads and entries of C, with slots
 * or without.  base: what it holds now (tl_cpu_base()). */
uint64_t     tl_cpu_base(const tl_base *b, const tl_request *request);
uint64_t     tl_cpu_need(const tl_base *b, const tl_request *request, const tl_pieces *pieces, uint64_t base,
                         int threads, bool slots, int64_t nnz, tulle_index ptr_type);
uint64_t     tl_cpu_c_bytes(const tl_request *request, int64_t nnz, tulle_index ptr_type);
/* The upper bound of the entries of rows row0..row1 that is known without counting. */
int64_t      tl_cpu_upper(const tl_request *request);
/* A rough bound of the workspace of all threads: if it is small, the free memory need not be queried. */
uint64_t     tl_cpu_workspace(const tl_request *request);
/* The smallest limit with which tl_cpu_multiply() succeeds, by counting. */
tulle_status tl_cpu_least(tl_base *b, const tl_request *request, uint64_t *bytes);

/* How a product is computed within its memory limit. */
typedef struct tl_road {
    tl_pieces     pieces;
    tl_crew       crew;
    bool          exact;                /* counted: nnz, and where each piece begins */
    int64_t       nnz;                  /* or its upper bound                        */
    bool          bound;                /* TULLE_ELIMIT: so many at most, not counted */
    int64_t      *place;
    tulle_index   ptr_type;
    tulle_matrix *C;                    /* its columns and values, if not exact      */
    uint64_t      least;                /* TULLE_ELIMIT: the smallest sufficient limit, unless `uncounted`;
                                         * tl_road_find() leaves no error message */
} tl_road;

tulle_status tl_road_find(tl_base *b, const tl_request *request, const tl_job *job, tl_road *road);
void         tl_road_done(tl_base *b, tl_road *road);

/* ---- replay.c */

typedef struct tl_replay tl_replay;
tulle_status tl_replay_make(tl_base *b, const tl_request *request, const tulle_csr *C, tl_replay **out);
tulle_status tl_replay_run(tl_base *b, tl_replay *replay, const void *a_val, const void *b_val, void *c_val);
uint64_t     tl_replay_bytes(void);     /* of the structure alone */
void         tl_replay_free(tl_base *b, tl_replay *replay);

#endif
