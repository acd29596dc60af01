/* SPDX-License-Identifier: MIT
 *
 * spmm.h - Y = alpha*A*X + beta*Y on the CPU, X and Y dense.
 *
 *   spmm_kernels.c   rows of Y, for one value type, one index type and one instruction set; kernel_strip.h is
 *                    its inner loop, kernel_column.h that for one column; kernel_order.h checks rows of A
 *   dispatch.c       picks them
 *   spmm.c           rows cut into pieces, columns into blocks, threads
 *   slide.c          X copied a little ahead of the rows that need it
 *   look.c           how A reads X, found from samples of its rows */
#ifndef TL_SPMM_H
#define TL_SPMM_H
#include "plan/plan.h"

enum {
    TL_SPMM_PART = 32768                /* longer rows are summed in parts of so many entries */
};

/* What the kernels see: some columns of X and Y. */
typedef struct tl_spmm_job {
    const void *ptr, *col, *val;        /* of A                                         */
    bool        ptr64;
    int64_t     nnz, a_cols;
    atomic_bool *bad;                   /* NULL: A is in order; or set where a row is not */
    const void *x;                      /* always row by row                            */
    int64_t     x_ld;
    void       *y;
    int64_t     y_ld;
    bool        y_by_cols;
    int64_t     cols;
    bool        far;                    /* rows of X are best fetched ahead of their use */
    const void *coming;                 /* NULL, or what is fetched meanwhile: a line of    */
    int64_t     coming_ld;              /*   job->cols values for each row of Y             */
    bool        stream;                 /* Y is too large for any cache                 */
    tl_c64      alpha, beta;
} tl_spmm_job;

typedef struct tl_spmm_kernels {
    /* Rows row0..row1 of Y.  Blocks of Y by columns have at most TL_SPMM_TILE bytes a row. */
    void (*rows)(const tl_spmm_job *job, int64_t row0, int64_t row1);
    /* The same of y = A*x, one column without gaps, each sum made in double and rounded once. */
    void (*apply)(const tl_spmm_job *job, int64_t row0, int64_t row1);
    /* Sums over the entries begin..end of A alone: job->cols values. */
    void (*part)(const tl_spmm_job *job, int64_t begin, int64_t end, void *sums);
    /* A row of Y from `count` such sums, each ld values behind the one before. */
    void (*join)(const tl_spmm_job *job, int64_t row, void *sums, int64_t count, int64_t ld);
    /* Rows row0..row1 of `cols` columns, row by row without gaps. */
    void (*pack)(const void *x, int64_t ld, bool by_cols, int64_t cols, int64_t row0, int64_t row1, void *to);
    /* y[i] = beta*y[i], or zero without reading it. */
    void (*scale)(tl_c64 beta, void *y, int64_t count);
    /* The columns lo..hi of A hold all entries of some rows; 0..0 where there is none. */
    void (*range)(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t *lo, int64_t *hi);
    /* For each entry of some rows, of the index type: (column - base) % room; column - base is less than
     * 2*room. */
    void (*places)(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t base, int64_t room, void *to);
    /* The columns of some entries of A are in order, each larger than the one before, and in range. */
    bool (*ordered)(const tl_spmm_job *job, int64_t begin, int64_t end);
    int64_t     strip;                  /* bytes of a row of Y that are summed at once  */
    const char *isa;
} tl_spmm_kernels;

enum { TL_SPMM_TILE = 256 };

const tl_spmm_kernels *tl_spmm_kernels_for(tulle_type value, tulle_index index);

/* ---- spmm.c */

/* How the rows of one matrix are divided. */
typedef struct tl_spmm_piece {
    int64_t row0, row1;
    int64_t begin, end;                 /* begin < end: only these entries of the one row row0 */
    int64_t part;                       /* and the number of this part among all              */
} tl_spmm_piece;

typedef struct tl_spmm_row {            /* a row summed in parts */
    int64_t row, part, parts;
} tl_spmm_row;

typedef struct tl_spmm_pieces {
    tl_spmm_piece *piece;
    tl_spmm_row   *row;
    int64_t        count, rows, parts;
    bool           doubtful;            /* row_ptr is not in order: the pieces are not complete            */
    bool           scattered;           /* rows that follow each other have few columns in common or near */
    int64_t window; /* columns over which TL_SLIDE_ROWS rows reach, most of them; where rows of X are long */
} tl_spmm_pieces;

enum { TL_SPMM_SAMPLES = 64 };          /* places looked at to know a matrix */

/* One of 0..count in the s-th of n <= count parts; not at equal distances, which may be those of a grid's
 * lines. */
static inline int64_t tl_spmm_sample(int64_t count, int s, int n)
{
    int64_t first = tl_part(count, s, n), span = tl_part(count, s + 1, n) - first;
    return first + (int64_t)((uint64_t)(s + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 33) % span;
}

/* ---- look.c */

/* Rows that follow each other have few columns in common or near. */
bool         tl_spmm_scattered(const tulle_csr *A);
/* Of one whose rows are like that: some columns come far more often than others. */
bool         tl_spmm_skewed(const tulle_csr *A);
/* Columns over which nine of ten groups of TL_SLIDE_ROWS rows reach. */
int64_t      tl_spmm_window(const tulle_csr *A);

/* ---- spmm.c */

/* For products of at most so many columns.  Of A only its ends need to be checked. */
tulle_status tl_spmm_pieces_make(tl_base *b, const tulle_csr *A, int threads, int64_t cols,
                                 tl_spmm_pieces *pieces);
/* For one column, no row in parts. */
tulle_status tl_spmm_pieces_whole(tl_base *b, const tulle_csr *A, int threads, tl_spmm_pieces *pieces);
void         tl_spmm_pieces_done(tl_base *b, tl_spmm_pieces *pieces);

/* Sizes at which another way to read X or to write Y becomes the faster one, as they were measured. */
typedef struct tl_spmm_tuning {
    int64_t near_bytes;                 /* an X, or a block of it, of this size stays in a core's cache */
    int64_t cache_bytes;                /* a larger Y, or X, stays in no cache                          */
    int64_t wide_entries;               /* rows of X that are used so often may be copied in blocks: ... */
    int64_t copy_row;                   /* ... of a scattered A those of more bytes than that, ...      */
    int64_t copy_bytes;                 /* ... where all of X has more than that and no hubs; ...       */
    int64_t slide_row;                  /* ... of another those of more bytes than that, as rows go by, ... */
    int64_t slide_bytes;                /* ... where a slide has not more bytes than that, ...          */
    int64_t slide_rows;                 /* ... and so many rows at least                                */
} tl_spmm_tuning;

typedef struct tl_spmm_request {
    const tulle_csr      *A;            /* transposed already where that is wanted */
    bool                  unchecked;    /* only its ends were looked at; it has columns */
    const tl_spmm_pieces *pieces;
    const tulle_dense    *X;            /* ld is never 0                       */
    tulle_dense          *Y;
    tl_c64                alpha, beta;
    int                   threads;
    uint64_t              memory_limit; /* for the workspace and ...           */
    uint64_t              copied;       /* ... what is held of it already: copies of A */
    bool                  in_double;    /* y = A*x with the kernel `apply`     */
    const tl_spmm_tuning *tuning;       /* NULL: as it was measured            */
} tl_spmm_request;

/* How many threads a product is worth. */
int          tl_spmm_threads(const tl_base *b, int wanted, const tulle_csr *A, int64_t cols);
tulle_status tl_spmm_run(tl_base *b, const tl_spmm_request *request);
/* Y = beta*Y. */
tulle_status tl_spmm_scale(tl_base *b, const tl_spmm_request *request);

/* ---- slide.c */

enum { TL_SLIDE_ROWS = 64 };            /* rows of A between two looks at what X they need */

/* Rows begin..end of X, some columns of them, block by block. */
typedef struct tl_slide {
    const tl_spmm_kernels *k;
    const tulle_dense     *X;           /* by rows                                         */
    int64_t                room;        /* rows                                            */
    int64_t                block;       /* columns                                         */
    char                  *rows;        /* room for `room` rows of a block, ...            */
    int64_t                apart;       /* ... and so many bytes on for the next           */
    void                  *places;      /* of the rows of X that the group at hand needs, ... */
    int64_t                entries;     /* ... which has at most so many entries           */
    size_t                 place_size;
    int64_t                col, cols;   /* the columns                                     */
    int64_t                begin, end, base; /* row i is at place (i - base) % room        */
    int64_t                first;       /* entry of the group                              */
} tl_slide;

/* An empty one of other columns. */
void    tl_slide_start(tl_slide *s, int64_t col, int64_t cols);
/* It holds what rows row0..row1 of A need; false where there is no room. */
bool    tl_slide_to(tl_slide *s, const tl_spmm_job *job, int64_t row0, int64_t row1);
/* The job of those rows and one block, with X from there. */
void    tl_slide_show(const tl_slide *s, int64_t block, tl_spmm_job *job);

#endif
