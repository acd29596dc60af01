/* SPDX-License-Identifier: MIT
 *
 * accumulators.h - an accumulator on the device consists of its kernel (src/kernels) and one descriptor, a
 * line of one of the two tables of accumulators.c (symbolic and numeric step):
 *
 *   which rows    its classes, the limit of each, and the quantity that is limited
 *   how large     threads and shared memory of a block, as a function of the device and the policy's numbers
 *                 (size, sizes.c), then reduced to what the rows of the product need (fit, fits.c)
 *   arguments     a list of names; one function fills in their values
 *
 * Classes, shares of the statistics and names in the trace come from these tables; steps.c has one loop for
 * all accumulators. */
#ifndef TL_ACCUMULATORS_H
#define TL_ACCUMULATORS_H
#include "gpu/product.h"

/* The names of kernel arguments. */
#define TL_ARG_LIST(X)                                                                            \
    X(ROWS) X(LIST)                     /* number of rows; their list, 0: all rows in order */    \
    X(LISTS) X(GROUPS) X(CURSORS) X(CURSOR) X(PER) X(WIDEST)    /* several rows per block      */ \
    X(A_PTR) X(A_COL) X(A_VAL) X(B_PTR) X(B_COL) X(B_VAL)                                         \
    X(PRODUCTS) X(LONGEST) X(LO) X(SPAN)                        /* of each row of C            */ \
    X(SLOTS) X(TEAM) X(TEAM_LOG2) X(EACH_LOG2) X(SLAB) X(BITS)  /* from tl_size                */ \
    X(WINDOW) X(WINDOW_WORDS) X(POSITIONS) X(STRIDE)            /* windows of columns          */ \
    X(MAPS) X(MAP_SLOTS)                                        /* hash maps in global memory  */ \
    X(SLICES) X(WORDS) X(PAIRS)                                 /* heavy rows (split.c)        */ \
    X(FIRST) X(COUNTER) X(COUNTED)      /* start in the list; a word with the number of rows */            \
    X(MOST) X(DENSE_FROM) X(COUNT_MOST) X(BOARD) X(TALLY) X(REDO) X(UNSORTED) X(HARD)   /* DeltaSPARSE */ \
    X(C_PTR) X(C_COL) X(C_VAL)                                  /* C_PTR: first the counts     */

typedef enum tl_arg_name {
    ARG_END,
#define TL_ENUM(name) ARG_##name,
    TL_ARG_LIST(TL_ENUM)
#undef TL_ENUM
    ARG_NAMES
} tl_arg_name;

enum { TL_ARGS_MOST = 28 };

/* The quantity that decides whether a row fits: min(products, columns of the span) in the symbolic step,
 * entries of C in the numeric one; products; columns of the span; bytes of ranks and values; none, every row
 * fits. */
typedef enum tl_measure { TL_BY_NEED, TL_BY_PRODUCTS, TL_BY_SPAN, TL_BY_BYTES, TL_BY_NOTHING } tl_measure;

typedef struct tl_way tl_way;

/* Input of sizes.c: device, policy and types, before rows are analyzed. */
typedef struct tl_sizing {
    const tl_gpu      *gpu;
    const tl_recipe   *recipe;
    const tl_gpu_step *policy;
    tl_types           types;
    uint64_t           mean;            /* average length of a row of B                    */
    int                step;
    tl_sizes          *to;              /* receives size[] and limits[]                    */
} tl_sizing;

/* One launch: the rows of a class, and what their kernel gets. */
typedef struct tl_job {
    const tl_way *way;
    int       step, c;                  /* 0 symbolic, 1 numeric; the class          */
    uint32_t  rows;
    tl_dmem   list;
    uint32_t  first;                    /* their start in the list                        */
    tl_dmem   counter;                  /* if given: `rows` is only an upper bound, and   */
    uint32_t  counted;                  /* counter[counted] is their number               */
    uint64_t  most;                     /* maximum of the quantity the class limits */
    tl_size   size;                     /* of the class, reduced to what its rows need */
    uint64_t  blocks;
    uint32_t  per;                      /* rows per block, if several share one           */
    uint32_t  window, stride;           /* columns of a window; positions per block       */
    uint64_t  map_slots;                /* of a block's hash map in global memory    */
    uint64_t  bytes;                    /* of global memory, all blocks              */
    tl_dmem   scratch;                  /* that memory                               */
} tl_job;

struct tl_way {
    const char  *name;                  /* of its rows in the trace                  */
    const char *share; /* and in the statistics; NULL: the policy's accumulator for few products */
    int          first, sizes;          /* its classes                               */
    int          limit;                 /* its first word in limits[]; -1: FEW_MOST, or none */
    tl_measure   by;
    tl_kernel_id kernel;                /* TL_K_NONE: no kernel; for few products tl_size has it */
    bool         compound;              /* keys consist of a row of the block and a column */
    void       (*size)(const tl_sizing *z, const tl_way *way, int i);
    void (*again)(tl_product *p, const tl_way *way, int step,
                  tl_types types); /* (optional) sizes after the analysis */
    void       (*fit)(const tl_product *p, tl_job *job);
    int          scratch;               /* index in tl_product.scratch, if it needs global memory */
    const char  *what;                  /* what that memory is for; NULL: it needs none   */
    bool         ones;                  /* that memory is first filled with ones          */
    bool         split;                 /* few, very heavy rows are left to split.c       */
    const tl_way *then;                 /* (optional) run for its rows after all classes */
    uint8_t      args[TL_ARGS_MOST];    /* tl_arg_name                               */
};

enum { TL_WAYS = 9 };
extern const tl_way tl_ways[2][TL_WAYS];        /* by step, in the order of classes */
const tl_way *tl_way_of(int step, int c);

/* The accumulators of DeltaSPARSE (delta.c), with bins instead of classes, and two that run afterwards: for
 * rows that failed in a hash table, and for long rows that are still unsorted. */
enum { TL_DELTA_WAYS = 4 };
extern const tl_way tl_delta_ways[2][TL_DELTA_WAYS];
extern const tl_way tl_delta_redo[2], tl_delta_sort;

/* Values of arguments by name; first those of the product are set, then those of a job. */
typedef struct tl_values {
    tl_arg of[ARG_NAMES];
} tl_values;

void         tl_values_make(const tl_product *p, tl_values *v);
void         tl_values_job(const tl_product *p, const tl_job *job, tl_values *v);
/* Launches a kernel with arguments given by name. */
tulle_status tl_way_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                           uint32_t shared, int lane, const tl_values *v, const uint8_t *names);

/* ---- sizes.c: sizes of the i-th class of an accumulator on this device */
void tl_size_direct(const tl_sizing *z, const tl_way *way, int i);
void tl_size_bits(const tl_sizing *z, const tl_way *way, int i);
void tl_size_ranks(const tl_sizing *z, const tl_way *way, int i);
void tl_size_shared_rows(const tl_sizing *z, const tl_way *way, int i);         /* several rows per block */
void tl_size_sums_rows(const tl_sizing *z, const tl_way *way, int i);
void tl_size_block(const tl_sizing *z, const tl_way *way, int i);
void tl_size_spill(const tl_sizing *z, const tl_way *way, int i);
void tl_size_rank_block(const tl_sizing *z, const tl_way *way, int i);
void tl_size_hash(const tl_sizing *z, const tl_way *way, int i);
void tl_size_mask(const tl_sizing *z, const tl_way *way, int i);
void tl_size_bits_windows(const tl_sizing *z, const tl_way *way, int i);
void tl_size_windows(const tl_sizing *z, const tl_way *way, int i);
void tl_size_few_bin(const tl_sizing *z, const tl_way *way, int i);

/* ---- fits.c: blocks, shared and global memory for the rows of a job */
void tl_fit_direct(const tl_product *p, tl_job *j);
void tl_fit_teams(const tl_product *p, tl_job *j);              /* a team of threads per row     */
void tl_fit_shared_rows(const tl_product *p, tl_job *j);        /* several rows per block        */
void tl_fit_block(const tl_product *p, tl_job *j);              /* a block per row               */
void tl_fit_rank_block(const tl_product *p, tl_job *j);
void tl_fit_spill(const tl_product *p, tl_job *j);
void tl_fit_windows(const tl_product *p, tl_job *j);
void tl_fit_crews(const tl_product *p, tl_job *j);              /* a crew of threads per row     */
void tl_fit_sort(const tl_product *p, tl_job *j);
void tl_again_few(tl_product *p, const tl_way *way, int step, tl_types types);
/* ---- delta.c */
void tl_fit_delta_hash(const tl_product *p, tl_job *j);
void tl_fit_delta_narrow(const tl_product *p, tl_job *j);
void tl_fit_delta_dense(const tl_product *p, tl_job *j);
void tl_fit_delta_sort(const tl_product *p, tl_job *j);
/* Words per block for the positions in rows of B that are kept from one window of columns to the next. */
uint32_t tl_positions(const tl_product *p);
int      tl_key_bits(const tl_product *p);
/* ---- split.c: heavy rows, each shared by many blocks; on the queue, not on a lane */
bool         tl_split_wanted(const tl_product *p, int step, int c, uint32_t rows, uint64_t span);
tulle_status tl_split_run(tl_product *p, tl_types types, tl_job *job, tl_values *v, tl_dmem *scratch);

/* The maximum of a measure over all rows. */
uint64_t tl_measure_all(const tl_product *p, int step, tl_measure by);

#endif
