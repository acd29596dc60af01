/* SPDX-License-Identifier: MIT
 *
 * product.h - one product on its way through the GPU, for product.c (the road), steps.c (symbolic and numeric), split.c
 * (heavy rows), once.c (both steps in one) and replay.c (the numeric step again). */
#ifndef TL_GPU_PRODUCT_H
#define TL_GPU_PRODUCT_H
#include "gpu/engine.h"

/* One operand as the kernels want it. */
typedef struct tl_operand {
    tl_dmem ptr, col, val;
    tl_dmem own[3];                     /* what must be freed: uploaded or widened copies */
    tl_dmem wide;                       /* row pointers of 64 bits, where they became necessary */
} tl_operand;

/* What the bins kernel made of the rows, or that it was not worth it. */
typedef struct tl_work {
    bool     balanced;
    int      only;                      /* not balanced: the class of all rows       */
    uint32_t rows[CLASSES];             /* of each class                             */
    uint32_t start[CLASSES];            /* of its list                               */
    tl_dmem  list, groups;
} tl_work;

/* Memory of a step beside C: spill maps, and positions or bits of two classes. */
enum { TL_SPILL, TL_DENSE_ROWS, TL_MASK_ROWS, TL_SCRATCH };

typedef struct tl_product {
    tl_base          *b;
    tl_gpu           *gpu;
    const tl_driver  *driver;
    tl_device        *device;
    tl_gpu_request    request;
    tl_types          types;            /* ptr, idx, val; key is each step's own      */
    uint32_t          rows;
    int64_t           a_nnz;
    enum { TL_NOTHING, TL_ANALYZED, TL_COUNTED } known;     /* of C: its products, its entries   */
    uint64_t          begun;            /* bytes taken when rows were analyzed       */
    tl_operand        A, B;
    bool              same;             /* B is A, with all its rows: nothing is held or checked twice */
    tl_dmem           meta;             /* one block: the arrays below               */
    tl_dmem           products, longest, lo, span, tile_sum;
    tl_dmem           limits[2], sum[2], cursors[2];   /* on the board: symbolic, numeric */
    tl_dmem           bad;              /* the first bad row; a word that stays "none" where nothing is checked */
    tl_sizes          sizes[2];
    tl_work           work[2];
    uint64_t          note[2][SUM_ALL];
    tl_dmem           c_ptr, c_col, c_val;
    int64_t           c_nnz;
    tl_dmem           scratch[TL_SCRATCH];      /* of the step under way            */
    /* stage times */
    bool              timed;
    bool              tiny;             /* it went the short road: cursors are not zero */
    int               marks;
    const char       *mark_name[TL_EVENTS];
} tl_product;

/* steps.c */
tulle_status tl_step_balance(tl_product *p, int step);          /* 0 symbolic, 1 numeric */
/* Bytes of a step: lists of rows stay with the product, scratch goes back after the step.  By what is known of the rows
 * before the step; where the numeric step comes before they are counted, at most so many. */
typedef struct tl_step_need { uint64_t lists, scratch; } tl_step_need;
tl_step_need tl_step_needs(tl_product *p, int step);
tl_step_need tl_step_most(const tl_product *p);
tulle_status tl_step_symbolic(tl_product *p);
tulle_status tl_step_numeric(tl_product *p);
tulle_status tl_product_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                               uint32_t shared, int lane, const tl_arg *args, int count);
tulle_status tl_product_mark(tl_product *p, const char *name);
/* Kernels loaded; where that took time, it is a stage of its own. */
tulle_status tl_product_need(tl_product *p, tl_types types, const tl_kernel_id *ids, int count);
tulle_status tl_step_load(tl_product *p);                       /* those of the numeric step, ahead of it */

/* split.c: heavy rows, each shared by many blocks; on the queue, not on a lane */
bool         tl_split_wanted(const tl_product *p, int step, int c, uint32_t rows, uint64_t span);
tulle_status tl_split_symbolic(tl_product *p, tl_types types, uint32_t rows, tl_dmem list, uint64_t span, tl_dmem *scratch);
tulle_status tl_split_numeric(tl_product *p, tl_types types, uint32_t rows, tl_dmem list, uint64_t span, tl_dmem *scratch);

/* product.c */
tulle_status tl_product_begin(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tl_product *p);
tulle_status tl_product_pattern(tl_product *p);                 /* analysis and symbolic step: c_ptr, c_nnz */
tulle_status tl_product_allocate(tl_product *p, bool values);   /* c_col and, where wanted, c_val */
void         tl_product_done(tl_product *p);
uint64_t     tl_wide_pointers(const tl_product *p, const tulle_csr *M, int64_t rows);    /* bytes of those that must become wider */
uint64_t     tl_meta_bytes(const tl_product *p);                /* of what is known about rows */
tl_types     tl_product_c_types(const tl_product *p, int64_t nnz);      /* those that C ends with */
tulle_status tl_product_analyze(tl_product *p);                 /* products, lo, span of each row; note[0] */
/* Counts become row pointers, in place; their sum and the longest are in note[1] after a read. */
tulle_status tl_product_scan(tl_product *p, tl_dmem counts);
tulle_status tl_product_read(tl_product *p, int step);          /* a wait */

/* once.c: where bhSPARSE keeps what it has before C is known */
enum { TL_AREAS = 40 };
typedef struct tl_area {
    tl_dmem  col, val;
    tl_dmem  waiting;                   /* the rows that have a place in it: WAIT_WORDS words each */
    uint32_t rows;
    uint32_t room;                      /* of a row, at most */
} tl_area;

typedef struct tl_once {
    uint64_t bin[BIN_WORDS];            /* as upper.cl counts */
    uint32_t start[BINS + 1];           /* of each bin in the list */
    uint32_t heap_most, esc_most;       /* products that the two methods take; 1 and 0: none */
    uint32_t bits;                      /* of a place beside a column, merging */
    tl_dmem  board, list, room;         /* counts and cursors; rows bin by bin; places in C~ */
    tl_area  area[TL_AREAS];            /* the first one is C~ */
    int      areas;
} tl_once;

/* budget.c: a request was TULLE_ELIMIT; the sentence with all that the product needs.  once: where it goes that road. */
tulle_status tl_product_refused(tl_product *p, const tl_once *once);

uint64_t     tl_once_bytes(const tl_product *p, const tl_once *o);      /* before C is there, at most */
tulle_status tl_once_bins(tl_product *p, tl_once *o);           /* upper bounds and bins */
tulle_status tl_once_rows(tl_product *p, tl_once *o);           /* all entries: c_ptr, c_col, c_val, c_nnz */
void         tl_once_done(tl_product *p, tl_once *o);
void         tl_once_shares(const tl_once *o, tulle_stats *stats);
/* Arrays on the device become a matrix that owns them; on failure they stay the caller's. */
tulle_status tl_matrix_on_device(tl_base *b, tl_gpu *gpu, tulle_csr view, tulle_matrix **out);

#endif
