/* SPDX-License-Identifier: MIT
 *
 * spmm.h - Y = alpha*A*X + beta*Y on the CPU, X and Y dense.
 *
 *   spmm_kernels.c   rows of Y, for one value type, one index type and one instruction set; kernel_strip.h is
 *                    its inner loop, kernel_column.h that for one column; kernel_order.h checks rows of A
 *   dispatch.c       selects the kernels
 *   spmm.c           divides rows into pieces and columns into blocks, and runs the threads
 *   slide.c          copies rows of X shortly before they are needed
 *   look.c           analyses how A accesses X, from a sample of its rows */
#ifndef TL_SPMM_H
#define TL_SPMM_H
#include "plan/plan.h"

enum {
    TL_SPMM_PART = 32768                /* rows with more entries are summed in parts of this many */
};

/* The arguments of the kernels: A and a block of columns of X and Y. */
typedef struct tl_spmm_job {
    const void *ptr, *col, *val;        /* of A                                         */
    bool        ptr64;
    int64_t     nnz, a_cols;
    atomic_bool *bad;                   /* NULL: A was checked; else set if a row is invalid */
    const void *x;                      /* always row-major                             */
    int64_t     x_ld;
    void       *y;
    int64_t     y_ld;
    bool        y_by_cols;
    int64_t     cols;
    bool        far;                    /* X exceeds the cache: prefetch its rows       */
    const void *coming;                 /* NULL, or rows of X that the next groups of rows need: one */
    int64_t     coming_ld;              /*   of them is prefetched with each row of Y                */
    bool        stream;                 /* Y exceeds all caches: non-temporal stores    */
    tl_c64      alpha, beta;
} tl_spmm_job;

typedef struct tl_spmm_kernels {
    /* Computes the rows row0..row1 of Y.  If Y is column-major, job->cols columns take at most TL_SPMM_TILE
     * bytes per row. */
    void (*rows)(const tl_spmm_job *job, int64_t row0, int64_t row1);
    /* The same for y = A*x, one contiguous column, with each sum accumulated in double and rounded once. */
    void (*apply)(const tl_spmm_job *job, int64_t row0, int64_t row1);
    /* Sums over the entries begin..end of A only: job->cols values. */
    void (*part)(const tl_spmm_job *job, int64_t begin, int64_t end, void *sums);
    /* Computes a row of Y from `count` such arrays of sums, ld values apart. */
    void (*join)(const tl_spmm_job *job, int64_t row, void *sums, int64_t count, int64_t ld);
    /* Copies the rows row0..row1 of `cols` columns to a row-major array without padding. */
    void (*pack)(const void *x, int64_t ld, bool by_cols, int64_t cols, int64_t row0, int64_t row1, void *to);
    /* y[i] = beta*y[i]; with beta = 0, y is not read. */
    void (*scale)(tl_c64 beta, void *y, int64_t count);
    /* The range lo..hi of columns of all entries in some rows; 0..0 if there are no entries. */
    void (*range)(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t *lo, int64_t *hi);
    /* Positions in a ring buffer of `room` rows: (column - base) % room for each entry of some rows, as the
     * index type.  column - base must be less than 2*room. */
    void (*places)(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t base, int64_t room, void *to);
    /* Whether the columns of some entries of A are strictly increasing and in range. */
    bool (*ordered)(const tl_spmm_job *job, int64_t begin, int64_t end);
    int64_t     strip;                  /* bytes of a row of Y that are summed in registers at once */
    const char *isa;
} tl_spmm_kernels;

enum { TL_SPMM_TILE = 256 };

const tl_spmm_kernels *tl_spmm_kernels_for(tulle_type value, tulle_index index);

/* ---- spmm.c */

/* How the rows of one matrix are divided. */
typedef struct tl_spmm_piece {
    int64_t row0, row1;
    int64_t begin, end;                 /* begin < end: a part of a long row: these entries of row0 */
    int64_t part;                       /* and the number of this part among those of all rows      */
} tl_spmm_piece;

typedef struct tl_spmm_row {            /* a row summed in parts */
    int64_t row, part, parts;
} tl_spmm_row;

typedef struct tl_spmm_pieces {
    tl_spmm_piece *piece;
    tl_spmm_row   *row;
    int64_t        count, rows, parts;
    bool           doubtful;            /* row_ptr is invalid: the pieces are incomplete                   */
    bool           scattered;           /* see tl_spmm_scattered()                                         */
    int64_t window; /* see tl_spmm_window(); 0: not determined, because rows of X are short or scattered  */
} tl_spmm_pieces;

enum { TL_SPMM_SAMPLES = 64 };          /* samples taken of a matrix at most */

/* A pseudo-random index in the s-th of n <= count parts of 0..count.  Samples at equal distances could all
 * fall on the same point of each line of a grid. */
static inline int64_t tl_spmm_sample(int64_t count, int s, int n)
{
    int64_t first = tl_part(count, s, n), span = tl_part(count, s + 1, n) - first;
    return first + (int64_t)((uint64_t)(s + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 33) % span;
}

/* ---- look.c */

/* Whether consecutive rows have few columns in common or near each other: X is accessed at random. */
bool         tl_spmm_scattered(const tulle_csr *A);
/* Of a scattered A: whether some columns occur far more often than others. */
bool         tl_spmm_skewed(const tulle_csr *A);
/* The width of the range of columns of TL_SLIDE_ROWS consecutive rows, as the 90th percentile of samples. */
int64_t      tl_spmm_window(const tulle_csr *A);

/* ---- spmm.c */

/* For products of at most `cols` columns.  Of A only the first and the last row pointer need be checked. */
tulle_status tl_spmm_pieces_make(tl_base *b, const tulle_csr *A, int threads, int64_t cols,
                                 tl_spmm_pieces *pieces);
/* For one column, without dividing long rows. */
tulle_status tl_spmm_pieces_whole(tl_base *b, const tulle_csr *A, int threads, tl_spmm_pieces *pieces);
void         tl_spmm_pieces_done(tl_base *b, tl_spmm_pieces *pieces);

/* Measured thresholds at which another way to read X or to write Y becomes faster. */
typedef struct tl_spmm_tuning {
    int64_t near_bytes;                 /* X, or a block of it, of this size stays in a core's cache    */
    int64_t cache_bytes;                /* a larger X or Y exceeds all caches                           */
    int64_t wide_entries;               /* X is copied only if A has this many entries per row of X:    */
    int64_t copy_row;                   /*   if A is scattered and not skewed, in whole blocks of columns, */
    int64_t copy_bytes;                 /*   if a row of X exceeds copy_row and X copy_bytes;           */
    int64_t slide_row;                  /*   else by slide.c, if a row of X exceeds slide_row           */
    int64_t slide_bytes;                /*   and a window of it does not exceed slide_bytes             */
    int64_t slide_rows;                 /* the least number of rows of such a window                    */
} tl_spmm_tuning;

typedef struct tl_spmm_request {
    const tulle_csr      *A;            /* already transposed if required      */
    bool                  unchecked;    /* of A only the ends of row_ptr were checked; it has columns */
    const tl_spmm_pieces *pieces;
    const tulle_dense    *X;            /* ld is never 0                       */
    tulle_dense          *Y;
    tl_c64                alpha, beta;
    int                   threads;
    uint64_t              memory_limit; /* for the workspace and ...           */
    uint64_t              copied;       /* ... copies of A, which hold this much of it already */
    bool                  in_double;    /* y = A*x with the kernel `apply`     */
    const tl_spmm_tuning *tuning;       /* NULL: the measured one              */
} tl_spmm_request;

/* The number of threads that pays for a product. */
int          tl_spmm_threads(const tl_base *b, int wanted, const tulle_csr *A, int64_t cols);
tulle_status tl_spmm_run(tl_base *b, const tl_spmm_request *request);
/* Y = beta*Y. */
tulle_status tl_spmm_scale(tl_base *b, const tl_spmm_request *request);

/* ---- slide.c */

enum { TL_SLIDE_ROWS = 64 };            /* rows of A in a group: the window moves once per group */

/* A ring buffer of the rows begin..end of X, for some columns, in blocks of columns. */
typedef struct tl_slide {
    const tl_spmm_kernels *k;
    const tulle_dense     *X;           /* row-major                                       */
    int64_t                room;        /* capacity in rows                                */
    int64_t                block;       /* columns of a block                              */
    char                  *rows;        /* the first block, of `room` rows; ...            */
    int64_t                apart;       /* ... the next one is this many bytes further     */
    void                  *places;      /* position in the ring for each entry of the group, ... */
    int64_t                entries;     /* ... which may have this many entries            */
    size_t                 place_size;
    int64_t                col, cols;   /* the columns of X that are copied                */
    int64_t                begin, end, base; /* row i is at position (i - base) % room     */
    int64_t                first;       /* first entry of the group                        */
} tl_slide;

/* Empties the buffer, for these columns. */
void    tl_slide_start(tl_slide *s, int64_t col, int64_t cols);
/* Copies what the group of rows row0..row1 of A needs; false if it does not fit. */
bool    tl_slide_to(tl_slide *s, const tl_spmm_job *job, int64_t row0, int64_t row1);
/* Makes a job for that group and one block read X from the buffer. */
void    tl_slide_show(const tl_slide *s, int64_t block, tl_spmm_job *job);

#endif
