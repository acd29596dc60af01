/* SPDX-License-Identifier: MIT
 *
 * product.h - the state of a product on the GPU, for product.c (sequence of stages), operands.c and result.c
 * (input and output), steps.c (symbolic and numeric), motifs.c (rows with the same pattern), twins.c
 * (bundles of rows), split.c (heavy rows), once.c (both steps in one) and replay.c (repeating the numeric
 * step). */
#ifndef TL_GPU_PRODUCT_H
#define TL_GPU_PRODUCT_H
#include "gpu/engine.h"

/* An array of the caller's on the device. */
static inline tl_dmem tl_foreign(const void *p)
{
    return (tl_dmem){(uint64_t)(uintptr_t)p, 0};
}

/* One operand in the form for the kernels. */
typedef struct tl_operand {
    tl_dmem ptr, col, val;
    tl_dmem own[3];                     /* to be freed: uploaded or widened copies */
    tl_dmem wide;                       /* row pointers of 64 bits, if they became necessary */
} tl_operand;

/* The lists of rows made by the bins kernel; or `only`, if it was not run. */
typedef struct tl_work {
    bool     balanced;
    int      only;                      /* without balancing: the class of all rows     */
    uint32_t rows[CLASSES];             /* number of rows of each class                 */
    uint32_t start[CLASSES];            /* of the list of each class                    */
    tl_dmem  list, groups;
} tl_work;

/* Rows of C with the same pattern (motifs.c); used = 0: there are none. */
typedef struct tl_motifs {
    bool     off;                       /* disabled, since memory ran out                          */
    uint32_t used, shorts;              /* number of motifs; of short ones, which come first       */
    uint32_t short_entries, most;       /* maximum entries of A, short motifs; of C, others        */
    int64_t  rows, short_rows, products;
    tl_dmem  of;                        /* the motif of each row                     */
    uint32_t others;                    /* rows with products and without a motif    */
    tl_dmem  maps;                      /* one block: list of those rows (rest), then the maps */
    tl_dmem  rest, motif, columns, starts, places;
} tl_motifs;

/* Rows of A and of B in bundles with the same columns (twins.c). */
typedef struct tl_twins {
    bool     off, used;                 /* off: not for this product; used: for some rows    */
    uint32_t groups[TWIN_SIZES];        /* bundles of each size */
    uint32_t room[TWIN_SIZES];          /* bytes of the largest bundle of each size; 0: none */
    int64_t  rows, products;
    uint32_t others;                    /* rows with products that are not in a bundle       */
    tl_dmem  bits, rows_memory;         /* two blocks with the arrays below                  */
    tl_dmem  a_firsts, b_firsts, of, sizes, lists, rest, patterns;
} tl_twins;

/* once.c: the memory of bhSPARSE before C is known; areas[0] is C~ */
enum { TL_AREAS = 40 };
typedef struct tl_area {
    tl_dmem  col, val;
    tl_dmem  waiting;                   /* the rows in this area: WAIT_WORDS words each */
    uint32_t rows;
    uint32_t room;                      /* entries of a row, at most */
} tl_area;

typedef struct tl_once {
    uint64_t bin[BIN_WORDS];            /* the counts of upper.cl */
    uint32_t start[BINS + 1];           /* of each bin in the list */
    uint32_t heap_most, esc_most;       /* products of a row for these methods, at most; 1 and 0: not used */
    uint32_t bits;                      /* bits of an index in a word of the merge kernels */
    tl_dmem  board, list, room;         /* counts and cursors; rows bin by bin; positions in C~ */
    tl_area  area[TL_AREAS];            /* the first one is C~ */
    int      areas;
} tl_once;

/* delta.c: the bins of a step of DeltaSPARSE, and its memory. */
typedef struct tl_delta_step {
    bool     scheduled;                 /* rows are sorted into bins                      */
    int      only;                      /* if not: index of the table for all rows, -1: none fits */
    uint64_t rows[DELTA_BINS], products[DELTA_BINS];
} tl_delta_step;

typedef struct tl_delta_work {
    tl_dmem       mem;                  /* one block: the arrays below                    */
    tl_dmem       board, cursors;       /* counts of 64 and of 32 bits                    */
    tl_dmem       hard;                 /* a byte per row: whether its keys collided              */
    tl_dmem       list, redo, unsorted; /* rows: bin by bin; that failed in a hash table; to be sorted */
    uint32_t      collided;
    tl_delta_step step[2];
} tl_delta_work;

/* A large C for the host in portions of rows (portions.c); count = 0: it is computed as a whole. */
enum { TL_PORTIONS = TL_FLAGS / 2 };      /* a flag each: those that parcels.c does not use */
typedef struct tl_portions {
    int      count;
    uint32_t row[TL_PORTIONS + 1];        /* where each begins, and its first entry of C */
    int64_t  entry[TL_PORTIONS + 1];
    uint64_t note[TL_PORTIONS][TL_BOARD_SUM / 8];
    tl_work  work[TL_PORTIONS];           /* of the numeric step; without lists         */
    tl_dmem  mem;                       /* sums, then cursors                         */
} tl_portions;

/* Memory of a step besides C: spill maps, and positions or bitmasks of two classes. */
enum { TL_SPILL, TL_DENSE_ROWS, TL_MASK_ROWS, TL_SCRATCH };

typedef struct tl_road tl_road;
typedef struct tl_product {
    tl_base          *b;
    tl_gpu           *gpu;
    const tl_driver  *driver;
    tl_device        *device;
    tl_gpu_request    request;
    const tl_road    *road;             /* chosen by the recipe                       */
    tl_types          types;            /* ptr, idx, val; each step has its own key   */
    uint32_t          rows;
    int64_t           a_nnz;
    enum { TL_NOTHING, TL_ANALYZED, TL_COUNTED } known;     /* nothing, products of C, entries of C */
    uint64_t          begun;            /* bytes taken when rows were analyzed       */
    tl_operand        A, B;
    bool              same;             /* B is A, and all rows are used: copied and checked only once */
    tl_dmem           meta;             /* one block: the arrays below               */
    tl_dmem           products, longest, lo, span, tile_sum;
    tl_dmem           limits[2], sum[2], cursors[2];   /* on the board: symbolic, numeric */
    tl_dmem           bad;              /* the first bad row; a word that stays "none" if nothing is
                                         * checked */
    tl_sizes          sizes[2];
    tl_work           work[2];
    tl_motifs         motifs;
    tl_twins          twins;
    tl_delta_work     delta;
    tl_once          *once;             /* the state of bhSPARSE; NULL: two steps */
    uint64_t          note[2][SUM_ALL];
    tl_dmem           c_ptr, c_col, c_val;
    int64_t           c_nnz;
    tl_portions       portions;
    tl_dmem           scratch[TL_SCRATCH];      /* of the current step                        */
    /* stage times */
    double            uploading;        /* seconds that A and B took from the host  */
    double            computed;         /* the clock when kernels were done and C began to come to the
                                         * host; 0: it did not, or is small */
    bool              timed;
    int               lanes;            /* open lanes: several between fork and join  */
    bool              tiny;             /* used the fast path: cursors are not zero */
    int               marks;
    const char       *mark_name[TL_EVENTS];
} tl_product;

/* steps.c */
tulle_status tl_step_balance(tl_product *p, int step);          /* 0 symbolic, 1 numeric */
/* Bytes of a step: lists of rows are kept with the product, scratch is freed after the step.  Computed from
 * what is known of the rows before the step; an upper bound for the numeric step if they are not counted
 * yet. */
typedef struct tl_step_need { uint64_t lists, scratch; } tl_step_need;
tl_step_need tl_step_needs(tl_product *p, int step);
tl_step_need tl_step_most(const tl_product *p);
tulle_status tl_step_symbolic(tl_product *p);
tulle_status tl_step_numeric(tl_product *p);
tulle_status tl_product_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks,
                               uint32_t threads, uint32_t shared, int lane, const tl_arg *args, int count);
tulle_status tl_product_mark(tl_product *p, const char *name);
/* Runs kernels in parallel in so many lanes of the driver; one: no additional lane. rest(): if a failure
 * left lanes open, waits for them, so that their memory can be reused. */
tulle_status tl_product_fork(tl_product *p, int lanes);
tulle_status tl_product_join(tl_product *p);
void         tl_product_rest(tl_product *p);
/* Loads kernels; if that takes time, it becomes a stage of its own. */
tulle_status tl_product_need(tl_product *p, tl_types types, const tl_kernel_id *ids, int count);

/* motifs.c, in the order of a product: together with the analysis; after it (*again: memory ran out on the
 * way, and rows must be analyzed once more); after the symbolic step, which counts the other rows; in the
 * numeric step */
bool         tl_motifs_forced(const tl_product *p);             /* used for small products, too */
tulle_status tl_motifs_sample(tl_product *p);
tulle_status tl_motifs_find(tl_product *p, bool *again);
tulle_status tl_motifs_count(tl_product *p);
tulle_status tl_motifs_fill(tl_product *p);
void         tl_motifs_done(tl_product *p);
/* twins.c, in the same order, before motifs */
bool         tl_twins_forced(const tl_product *p);
tulle_status tl_twins_sample(tl_product *p);
tulle_status tl_twins_find(tl_product *p);
tulle_status tl_twins_give(tl_product *p);
tulle_status tl_twins_fill(tl_product *p);
void         tl_twins_done(tl_product *p);
/* budget.c: upper bound for the bytes of the product after the analysis of rows, without motifs. */
uint64_t     tl_product_most(tl_product *p);

/* A road is a sequence of stages from operands on the device to C on the device: the stages until the size
 * of C, or its upper bound, is known, and those that compute C. product.c has two steps, delta.c two of its
 * own, once.c only one.  Plans repeat the numeric step, if there is one; needs() and most() give the memory
 * of the steps. */
typedef tulle_status (*tl_stage)(tl_product *p);
struct tl_road {
    tl_stage     before[8], after[8];
    tl_stage     fill, numeric;         /* two steps: the second one with its decisions, and without */
    tl_step_need (*needs)(tl_product *p, int step);
    tl_step_need (*most)(const tl_product *p);
    tulle_status (*shares)(tl_product *p, tulle_stats *stats);
    void         (*done)(tl_product *p);        /* (optional) frees memory of its own */
};
extern const tl_road tl_road_once, tl_road_delta;

/* product.c */
tulle_status tl_product_begin(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tl_product *p);
tulle_status tl_product_pattern(tl_product *p);                 /* analysis and symbolic step: c_ptr, c_nnz */
tulle_status tl_product_look(tl_product *p);                    /* stages of both steps: analysis */
tulle_status tl_product_pointers(tl_product *p);                /* row pointers of C and its size */
tulle_status tl_product_allocate(tl_product *p, bool values);   /* c_col and, if requested, c_val */
tulle_status tl_product_c(tl_product *p);                       /* allocate and fill, as a stage */
tulle_status tl_product_fill(tl_product *p);                    /* the numeric step: columns and values of
                                                                 * C */
void         tl_product_done(tl_product *p);

/* portions.c, in the order of a product: row pointers, *done_so = false: C is to be computed as a whole;
 * columns and values; both on their way to the host, complete when the queue is */
tulle_status tl_portions_pointers(tl_product *p, bool *done_so);
tulle_status tl_portions_fill(tl_product *p);
tulle_status tl_portions_home(tl_product *p, tulle_matrix *C);
void         tl_portions_done(tl_product *p);

/* figures.c */
tulle_status tl_product_shares(tl_product *p, tulle_stats *stats);      /* of each accumulator */
tulle_status tl_product_times(tl_product *p, tulle_stats *stats);       /* of the marked stages */

/* analysis.c */
uint64_t     tl_meta_bytes(const tl_product *p);                /* of the row metadata */
tulle_status tl_meta_make(tl_product *p);
tulle_status tl_bad_row(tl_product *p, uint32_t row); /* the message for a row that a check found */
/* Sizes of each class of rows, and its limits on the device; on the fast path for small products rows with
 * few products have no special class. */
tulle_status tl_product_sizes(tl_product *p, tl_types keys, bool numeric, bool few);
tulle_status tl_product_analyze(tl_product *p);                 /* products, lo, span of each row; note[0] */
tulle_status tl_first_look(tl_product *p);                      /* the same, if sizes are known already;    */
tulle_status tl_look_again(tl_product *p);                      /* and once more, if they changed           */
/* Turns counts into row pointers, in place; their sum and maximum are in note[1] after a read. */
tulle_status tl_product_scan(tl_product *p, tl_dmem counts);
/* The two kernels of that: sums of tiles of so many rows and, in `summary`, of all of them; then row
 * pointers. */
uint32_t     tl_tile_rows(const tl_product *p);
tulle_status tl_product_tiles(tl_product *p, tl_dmem counts, uint32_t tile, tl_dmem summary);
tulle_status tl_product_offsets(tl_product *p, tl_dmem counts);
tulle_status tl_product_read(tl_product *p, int step);          /* a wait */

/* tiny.c: the fast path for small products; *done_so = false: a row was too long for it */
bool         tl_looks_tiny(const tl_product *p);
tulle_status tl_tiny(tl_product *p, bool *done_so);

/* operands.c.  Copies rows row0 .. row0 + rows of a view to the device, unchanged; then, after the check,
 * which needs the original widths, converts columns and row pointers to the widths of p->types. */
tulle_status tl_operand_bring(tl_product *p, const tulle_csr *M, const char *name, int64_t row0, int64_t rows,
                              tl_operand *x);
tulle_status tl_operand_columns(tl_product *p, const tulle_csr *M, tl_operand *x);
tulle_status tl_operand_pointers(tl_product *p, const tulle_csr *M, int64_t rows, tl_operand *x);
void         tl_operand_done(tl_product *p, tl_operand *x);
uint64_t tl_wide_pointers(const tl_product *p, const tulle_csr *M,
                          int64_t rows); /* bytes of the widened copies */
/* Converts count indices of 32 bits to 64 (TL_K_WIDEN), or back (TL_K_NARROW). */
tulle_status tl_product_resize(tl_product *p, tl_kernel_id id, uint64_t count, tl_dmem from, tl_dmem *to);

/* result.c: drops zeros, converts to the requested widths, and moves C to the requested place */
tl_types     tl_product_c_types(const tl_product *p, int64_t nnz);      /* the final types of C */
tulle_status tl_result_drop(tl_product *p);
tulle_status tl_result_fit(tl_product *p);
tulle_status tl_result_deliver(tl_product *p, tulle_matrix **out);
tulle_status tl_result_pattern(tl_product *p,
                               tulle_matrix **out); /* a copy of C's pattern; the product keeps its own */
uint64_t     tl_result_pattern_bytes(const tl_product *p, int64_t nnz); /* of that copy on the
                                                                       * device */
/* Makes a matrix that owns the given arrays on the device; on failure the caller keeps them. */
tulle_status tl_matrix_on_device(tl_base *b, tl_gpu *gpu, tulle_csr view, tulle_matrix **out);

/* budget.c: after a request failed with TULLE_ELIMIT: the message with all that the product needs. */
tulle_status tl_product_refused(tl_product *p);

uint64_t     tl_once_bytes(const tl_product *p, const tl_once *o);      /* before C is allocated, at most */
void         tl_once_done(tl_product *p, tl_once *o);
#endif
