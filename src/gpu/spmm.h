/* SPDX-License-Identifier: MIT
 *
 * spmm.h - what the files of sparse times dense on a device share.
 *
 *   spmm.c      A made ready on the device, and which kernels take it
 *   rows.c      the CSR kernels of kernels/spmm.cl: pieces of rows, shapes, one chunk of columns
 *   ellr.c      ELLPACK-R and the kernels of kernels/ellr.cl: T threads a row, Lc columns at a time (FastSpMM)
 *   tf32.c      blocks of 8x8 for tensor cores (kernels/tf32.cl), where the caller allows TF32
 *   chunks.c    X and Y wherever they lie and in any order: chunks of columns, over two lanes where they come from the host
 *   bands.c     A stays on the host, where the device has no room for it: bands of rows, one after the other
 *
 * Kernels see X and Y as chunks: some columns, row by row, on the device. */
#ifndef TL_GPU_SPMM_H
#define TL_GPU_SPMM_H
#include "gpu/engine.h"

typedef struct tl_chunk {
    tl_dmem  x, y;
    uint64_t x_at, y_at;                /* values before the first                       */
    uint64_t x_ld, y_ld;                /* values from one row to the next               */
    uint32_t cols;
    int      lane;                      /* of the driver: 0, or between fork and join    */
} tl_chunk;

/* T, Lc and threads of a block; 0: the model's choice. */
typedef struct tl_ellr_shape {
    uint32_t threads, columns, block;
} tl_ellr_shape;

/* rl, E and J of the paper, padded to `pitch` rows; entry j of row i lies at T*(j/T*pitch + i) + j%T. */
typedef struct tl_ellr {
    tl_dmem       lengths, col, val;    /* handle 0: A is in CSR                         */
    uint64_t      pitch, most;          /* most: entries of the longest row              */
    uint64_t      bytes;
    tl_ellr_shape shape;                /* columns 0: as tl_ellr_choice() says           */
    uint32_t      told;                 /* columns that a trace line told the shape for  */
} tl_ellr;

/* Windows of 8 rows in blocks of 8 columns, beside CSR; which product takes them depends on its columns. */
typedef struct tl_tf32 {
    tl_dmem  at, col, val, has, list;   /* handle 0: there are none                      */
    tl_dmem  window;                    /* of each block                                 */
    uint64_t windows, blocks, longest, columns;         /* longest: blocks of a window; columns: of all windows */
    uint64_t longs;                     /* windows of more than `many` blocks: the list  */
    uint32_t many;
    uint64_t bytes;
    uint32_t told;
    bool     forced, used;              /* used: by the product under way                */
} tl_tf32;

/* The words of kernels/pieces.cl and kernels/twins.cl. */
enum {
    TL_PIECE_CLASSES = 16, TL_PIECE_JOINS = 15, TL_PIECE_ROWS = 1024, TL_PIECE_BYTES = 24,
    TL_PIECE_LONGEST = 16, TL_PIECE_BUNDLES = 17, TL_PIECE_TOTALS = 18,
    TL_TWIN_ROWS = 384, TL_TWIN_WORDS = TL_TWIN_ROWS / 32, TL_TWIN_MOST = 3
};

/* Rows of very different length: pieces of at most 2^most_log2 entries, longest first, and sums of those that are parts.
 * Else, where rows after each other have the same columns (twins): bundles of up to TL_TWIN_MOST, in their order. */
typedef struct tl_row_pieces {
    uint32_t most_log2;
    uint64_t total[TL_PIECE_TOTALS];    /* as look counts them: classes, the longest row, bundles */
    tl_dmem  counts;                    /* of blocks, until the pieces are made          */
    tl_dmem  twin_counts, twin_firsts;  /* the same of bundles, and where they begin     */
    bool     twins;                     /* the pieces are bundles                        */
    tl_dmem  piece;                     /* handle 0: a piece is a row                    */
    uint64_t pieces, parts, joined;     /* parts of long rows; long rows                 */
    tl_dmem  join;                      /* long rows: which, their first part, how many  */
    tl_dmem  sums[TL_LANES];            /* of parts                                      */
    uint64_t sums_bytes[TL_LANES];
} tl_row_pieces;

/* The kernels of spmm.cl: value by value where X or Y are not aligned; strips; entries of A by way of shared memory; eight
 * entries at once, whole rows one after the other; bundles of rows. */
typedef enum tl_rows_way {
    TL_BY_VALUES, TL_BY_STRIPS, TL_STAGED, TL_BY_EIGHTS, TL_IN_BUNDLES, TL_ROWS_WAYS
} tl_rows_way;

/* How the threads of a team lie: 2^c_log2 strips of columns, 2^k_log2 pieces of entries, `strips` strips a thread; and how
 * many rows it takes, one after the other (TL_BY_EIGHTS). */
typedef struct tl_rows_shape {
    uint32_t    c_log2, k_log2, strips, block, turns;
    tl_rows_way way;
} tl_rows_shape;

/* A that stays on the host, and what its bands are to become. */
typedef struct tl_bands {
    bool                on;
    tl_gpu_spmm_request request;        /* its A is the one below                        */
    tulle_csr           A;
    uint64_t            longest;        /* entries of its longest row                    */
    int64_t             longest_row;
} tl_bands;

struct tl_gpu_spmm {
    tl_gpu       *gpu;
    tl_types      types;
    int64_t       rows, cols, nnz;
    tulle_type    type;
    tl_dmem       ptr, col, val;        /* CSR; handle 0: not needed any more (ellr)     */
    tl_dmem       own[3];               /* of these, what the pool gave                  */
    bool          keeps;                /* values are own ones, wherever A lies          */
    uint64_t      limit;                /* bytes for all that is made; 0: what is free   */
    uint64_t      taken;                /* of these, by A and what was made of it        */
    uint64_t      mean, most;           /* entries of a row                              */
    tl_row_pieces pieces;
    tl_rows_shape forced;               /* block 0: not                                  */
    tl_ellr       ellr;
    tl_tf32       tf32;
    tl_bands      bands;                /* on: of the above only sizes and types count   */
    double        before, share;        /* one band: how much of the product it is, and was done before; share 0: it is all */
    bool          begun;                /* a run may have written to Y                   */
    /* (optional) What the host does when the kernels of so much of a run are in the queue. */
    tulle_status (*meanwhile)(void *user, double share);
    void         *user;
};

/* A, or a band of it whose row_ptr begins with `first`, brought (if it was not already), looked at and made ready. */
tulle_status tl_spmm_ready(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, int64_t first, tulle_stats *stats);
/* Memory for the arrays of A, and what is to go there; s->taken counts it. */
tulle_status tl_spmm_ask(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, int64_t first, tl_parcel parcels[3]);
/* Bytes that may be made of A: of the limit, or half of what is free; the driver is asked only where it matters. */
uint64_t     tl_spmm_room(const tl_gpu_spmm *s, double need);
/* All that A takes on the device goes. */
void         tl_spmm_leave(tl_gpu_spmm *s);
/* Is there no room for A?  A trace line says why. */
bool         tl_bands_needed(tl_base *b, const tl_gpu_spmm *s, const tulle_csr *A);
/* A stays where it is; checked, unless it is trusted. */
tulle_status tl_bands_make(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, tulle_stats *stats);
tulle_status tl_bands_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, const tulle_dense *Y,
                          tulle_stats *stats);

/* Is A in order, unless it is trusted, and how long are its rows?  A wait. */
tulle_status tl_rows_look(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, bool trusted);
tulle_status tl_rows_make(tl_base *b, tl_gpu_spmm *s);
/* Y = alpha*A*X + beta*Y for one chunk, in the order of its lane; the host does not wait. */
tulle_status tl_rows_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
/* The sums of a lane for chunks of so many columns, before there is one. */
tulle_status tl_rows_room(tl_base *b, tl_gpu_spmm *s, int lane, uint64_t cols);
void         tl_rows_done(tl_gpu_spmm *s);
/* Is such a shape possible? */
tulle_status tl_ellr_check(tl_base *b, const tl_gpu *gpu, tl_ellr_shape wanted);
/* Where ELLPACK-R would blow A up beyond reason or memory, s->ellr stays without handles and a trace line says why. */
tulle_status tl_ellr_make(tl_base *b, tl_gpu_spmm *s, tl_ellr_shape wanted);
/* The same from CSR that was brought again, with other values. */
tulle_status tl_ellr_fill(tl_base *b, tl_gpu_spmm *s);
tulle_status tl_ellr_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
void         tl_ellr_done(tl_gpu_spmm *s);
/* The shape of a product of so many columns. */
tl_ellr_shape tl_ellr_choice(const tl_gpu_spmm *s, uint32_t cols);
/* After tl_rows_make().  Where blocks are not worth it, or there is no memory for them, a trace line says so. */
tulle_status tl_tf32_make(tl_base *b, tl_gpu_spmm *s);
/* The values of CSR once more into the blocks. */
tulle_status tl_tf32_fill(tl_base *b, tl_gpu_spmm *s);
bool         tl_tf32_takes(const tl_gpu_spmm *s, uint32_t cols);
tulle_status tl_tf32_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, double alpha, double beta);
void         tl_tf32_done(tl_gpu_spmm *s);
/* Whichever of them A was made ready for. */
tulle_status tl_spmm_chunk(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
/* All of X and Y, which begins y_at values after Y->values (a cl_mem cannot be moved); returns when Y is complete, or in the
 * queue where the queue is the caller's and Y is on the device. */
tulle_status tl_chunks_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, const tulle_dense *Y,
                           uint64_t y_at, tulle_stats *stats);
/* Must a matrix be brought before kernels can take it?  Some of its columns, row by row on the device, in the queue: *ld values
 * from one row to the next, tl_columns_bytes() in all.  At most TL_COLUMNS_MOST bytes a row. */
enum { TL_COLUMNS_MOST = 8 << 20 };
bool         tl_columns_travel(const tulle_dense *M);
uint64_t     tl_columns_bytes(const tulle_dense *M, int64_t cols);
tulle_status tl_columns_bring(tl_base *b, tl_gpu_spmm *s, const tulle_dense *M, int64_t col, int64_t cols, tl_dmem to, int64_t *ld);

#endif
