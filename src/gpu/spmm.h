/* SPDX-License-Identifier: MIT
 *
 * spmm.h - declarations shared by the files of SpMM on a device.
 *
 *   spmm.c      prepares A on the device, and selects the kernels
 *   rows.c      the CSR kernels of kernels/spmm.cl: pieces of rows, shapes, one chunk of columns
 *   ellr.c      ELLPACK-R and the kernels of kernels/ellr.cl: T threads per row, Lc columns at a time
 *               (FastSpMM)
 *   tf32.c      blocks of 8x8 for tensor cores (kernels/tf32.cl), if the caller allows TF32
 *   chunks.c    X and Y on host or device, in either order: chunks of columns, in two lanes if they come
 *               from the host
 *   bands.c     if A does not fit on the device: bands of its rows, one after the other
 *
 * Kernels access X and Y as chunks: some columns, row-major, on the device. */
#ifndef TL_GPU_SPMM_H
#define TL_GPU_SPMM_H
#include "gpu/engine.h"

typedef struct tl_chunk {
    tl_dmem  x, y;
    uint64_t x_at, y_at;                /* offsets, in values                             */
    uint64_t x_ld, y_ld;                /* leading dimensions, in values                  */
    uint32_t cols;
    int      lane;                      /* of the driver: 0, or between fork and join    */
} tl_chunk;

/* T, Lc and threads per block; 0: chosen by the model. */
typedef struct tl_ellr_shape {
    uint32_t threads, columns, block;
} tl_ellr_shape;

/* rl, E and J of the paper, padded to `pitch` rows; entry j of row i is stored at T*(j/T*pitch + i) + j%T. */
typedef struct tl_ellr {
    tl_dmem       lengths, col, val;    /* handle 0: A is in CSR                         */
    uint64_t      pitch, most;          /* most: entries of the longest row              */
    uint64_t      bytes;
    tl_ellr_shape shape;                /* columns 0: chosen by tl_ellr_choice()           */
    uint32_t      told;                 /* columns for which the shape was traced          */
} tl_ellr;

/* Windows of 8 rows in blocks of 8 columns, in addition to CSR; used depending on the columns of the
 * product. */
typedef struct tl_tf32 {
    tl_dmem  at, col, val, has, list;   /* handle 0: there are none                      */
    tl_dmem  window;                    /* of each block                                 */
    uint64_t windows, blocks, longest, columns;         /* longest: blocks of a window; columns: of all
                                                         * windows */
    uint64_t longs;                     /* windows of more than `many` blocks, in the list     */
    uint32_t many;
    uint64_t bytes;
    uint32_t told;
    bool     forced, used;              /* used: by the current product                        */
} tl_tf32;

/* Constants of kernels/pieces.cl and kernels/twins.cl. */
enum {
    TL_PIECE_CLASSES = 16, TL_PIECE_JOINS = 15, TL_PIECE_ROWS = 1024, TL_PIECE_BYTES = 24,
    TL_PIECE_LONGEST = 16, TL_PIECE_BUNDLES = 17, TL_PIECE_TOTALS = 18,
    TL_TWIN_ROWS = 384, TL_TWIN_WORDS = TL_TWIN_ROWS / 32, TL_TWIN_MOST = 3
};

/* If row lengths differ much: pieces of at most 2^most_log2 entries, longest first, and partial sums of
 * those that are parts of rows.  Otherwise, if consecutive rows have the same columns (twins): bundles of up
 * to TL_TWIN_MOST rows, in their order. */
typedef struct tl_row_pieces {
    uint32_t most_log2;
    uint64_t total[TL_PIECE_TOTALS];    /* counts: classes, the longest row, bundles              */
    tl_dmem  counts;                    /* per block, until the pieces are made              */
    tl_dmem  twin_counts, twin_firsts;  /* the same for bundles, and their first rows        */
    bool     twins;                     /* the pieces are bundles                        */
    tl_dmem  piece;                     /* handle 0: each row is a piece                     */
    uint64_t pieces, parts, joined;     /* parts of long rows; long rows                 */
    tl_dmem  join;                      /* long rows: row, first part, number of parts       */
    tl_dmem  sums[TL_LANES];            /* partial sums                                      */
    uint64_t sums_bytes[TL_LANES];
} tl_row_pieces;

/* The kernels of spmm.cl: value by value if X or Y are not aligned; strips; with entries of A staged in
 * shared memory; eight entries at once, several whole rows one after the other; bundles of rows. */
typedef enum tl_rows_way {
    TL_BY_VALUES, TL_BY_STRIPS, TL_STAGED, TL_BY_EIGHTS, TL_IN_BUNDLES, TL_ROWS_WAYS
} tl_rows_way;

/* The distribution of the threads of a team: 2^c_log2 over the columns, 2^k_log2 over the entries, `strips`
 * strips per thread; and the rows that it computes one after the other (TL_BY_EIGHTS). */
typedef struct tl_rows_shape {
    uint32_t    c_log2, k_log2, strips, block, turns;
    tl_rows_way way;
} tl_rows_shape;

/* An A that stays on the host, and how its bands are prepared. */
typedef struct tl_bands {
    bool                on;
    tl_gpu_spmm_request request;        /* its A is the copy of the view below                    */
    tulle_csr           A;
    uint64_t            longest;        /* entries of its longest row                    */
    int64_t             longest_row;
} tl_bands;

struct tl_gpu_spmm {
    tl_gpu       *gpu;
    tl_types      types;
    int64_t       rows, cols, nnz;
    tulle_type    type;
    tl_dmem       ptr, col, val;        /* CSR; handle 0: freed, not needed any more (ellr)       */
    tl_dmem       own[3];               /* those of them allocated from the pool                  */
    bool          keeps;                /* values are copied, wherever A is                       */
    uint64_t      limit;                /* bytes for all data on the device; 0: what is free      */
    uint64_t      taken;                /* of these, by A and its data structures                 */
    uint64_t      mean, most;           /* entries per row: average, maximum                      */
    tl_row_pieces pieces;
    tl_rows_shape forced;               /* block 0: not forced                                    */
    tl_ellr       ellr;
    tl_tf32       tf32;
    tl_bands      bands;                /* if on: above, only sizes and types are valid           */
    double        before, share;        /* of a band: its share of the product, and the share before it;
                                         * share 0: A is whole */
    bool          begun;                /* a run may have written to Y                   */
    /* (optional) Called on the host after the kernels for a share of a run were enqueued. */
    tulle_status (*meanwhile)(void *user, double share);
    void         *user;
};

/* Copies A, or a band of it whose row_ptr begins with `first`, to the device (unless it is there), analyzes
 * and prepares it. */
tulle_status tl_spmm_ready(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, int64_t first,
                           tulle_stats *stats);
/* Allocates memory for the arrays of A, and sets up their transfers; counted in s->taken. */
tulle_status tl_spmm_ask(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, int64_t first, tl_parcel parcels[3]);
/* Bytes available for data structures of A: the rest of the limit, or half of what is free; the driver is
 * queried only if it matters. */
uint64_t     tl_spmm_room(const tl_gpu_spmm *s, double need);
/* Frees all memory of A on the device. */
void         tl_spmm_leave(tl_gpu_spmm *s);
/* Does A not fit on the device?  Traces the reason. */
bool         tl_bands_needed(tl_base *b, const tl_gpu_spmm *s, const tulle_csr *A);
/* Leaves A on the host; checks it, unless it is trusted. */
tulle_status tl_bands_make(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request,
                           tulle_stats *stats);
tulle_status tl_bands_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                          const tulle_dense *Y, tulle_stats *stats);

/* Checks A, unless it is trusted, and reads the lengths of its rows; includes a wait. */
tulle_status tl_rows_look(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, bool trusted);
tulle_status tl_rows_make(tl_base *b, tl_gpu_spmm *s);
/* Enqueues Y = alpha*A*X + beta*Y for one chunk in its lane; the host does not wait. */
tulle_status tl_rows_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
/* Allocates the partial sums of a lane for chunks of so many columns. */
tulle_status tl_rows_room(tl_base *b, tl_gpu_spmm *s, int lane, uint64_t cols);
void         tl_rows_done(tl_gpu_spmm *s);
/* Checks whether such a shape is possible. */
tulle_status tl_ellr_check(tl_base *b, const tl_gpu *gpu, tl_ellr_shape wanted);
/* If ELLPACK-R would take too much memory, s->ellr is left without handles, and the reason is traced. */
tulle_status tl_ellr_make(tl_base *b, tl_gpu_spmm *s, tl_ellr_shape wanted);
/* The same for new values, from CSR that was copied to the device again. */
tulle_status tl_ellr_fill(tl_base *b, tl_gpu_spmm *s);
tulle_status tl_ellr_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
void         tl_ellr_done(tl_gpu_spmm *s);
/* The shape for so many columns. */
tl_ellr_shape tl_ellr_choice(const tl_gpu_spmm *s, uint32_t cols);
/* After tl_rows_make().  If blocks are not worth it, or there is no memory for them, this is traced. */
tulle_status tl_tf32_make(tl_base *b, tl_gpu_spmm *s);
/* Copies new values from CSR into the blocks. */
tulle_status tl_tf32_fill(tl_base *b, tl_gpu_spmm *s);
bool         tl_tf32_takes(const tl_gpu_spmm *s, uint32_t cols);
tulle_status tl_tf32_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, double alpha, double beta);
void         tl_tf32_done(tl_gpu_spmm *s);
/* The product for a chunk, with the format that A was prepared for. */
tulle_status tl_spmm_chunk(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta);
/* The product for all of X and Y; Y begins y_at values after Y->values (a cl_mem needs an offset).  Returns
 * when Y is complete; if the queue is the caller's and Y is on the device, when all work is enqueued. */
tulle_status tl_chunks_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                           const tulle_dense *Y, uint64_t y_at, tulle_stats *stats);
/* Must a matrix be copied or transposed before kernels can use it?  Enqueues the copy of some of its columns,
 * row-major on the device, with leading dimension *ld in values; tl_columns_bytes() is its size.  A row has
 * at most TL_COLUMNS_MOST bytes. */
enum { TL_COLUMNS_MOST = 8 << 20 };
bool         tl_columns_travel(const tulle_dense *M);
uint64_t     tl_columns_bytes(const tulle_dense *M, int64_t cols);
tulle_status tl_columns_bring(tl_base *b, tl_gpu_spmm *s, const tulle_dense *M, int64_t col, int64_t cols,
                              tl_dmem to, int64_t *ld);

#endif
