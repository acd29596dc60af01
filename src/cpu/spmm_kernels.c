/* SPDX-License-Identifier: MIT
 *
 * spmm_kernels.c - rows of Y = alpha*A*X + beta*Y on one thread.
 *
 * Like kernels.c, this file is compiled once for each value type, index type and instruction set.  X is
 * row-major, so an entry of A multiplies vectors of adjacent columns; the sums of up to eight such vectors
 * stay in registers for a whole row of A (kernel_strip.h).  With fewer columns than the widest vector has,
 * narrower vectors are used, and below those scalars.  A single column would be one chain of dependent
 * additions, limited by their latency: there several rows are summed at the same time (kernel_column.h).
 *
 * Every variant computes each sum as (((0 + p1) + p2) + ...) in the order of the row of A.
 *
 * If Y is column-major, rows are summed into a tile on the stack, which is then transposed into Y. */
#include "cpu/kernel_types.h"
#include "cpu/spmm.h"

#if KIND == 1 || KIND == 3
typedef float real;
#define KIND_REAL 4
#else
typedef double real;
#define KIND_REAL 8
#endif

enum {
    AHEAD = 12,                         /* prefetch distance for rows of X, in entries of A    */
    LINEAR = 64,                        /* prefetch distance for A itself, in entries          */
    LARGE = 32 << 20,                   /* A is prefetched if it exceeds this many bytes (one column, rows */
    FETCHED = 4 << 20,                  /* in pairs) or this many (one vector of columns, four rows)       */
    SHORT = 16,                         /* entries; longer rows, for one column, are read in pairs */
    SUMS = 256,                         /* rows that are summed before alpha and beta are applied */
    TILE_BYTES = 16 << 10,
    TILE_ROWS = 64
};

/* ---- the end of a row: alpha*sum + beta*y */

typedef enum { NO_FACTOR, ONE_FACTOR, REAL_FACTOR, ANY_FACTOR } factor_kind;

typedef struct ending {
    factor_kind alpha_kind, beta_kind;
    real        alpha_re, beta_re;
    val         alpha, beta;
    bool        plain;                  /* alpha 1, beta 0 */
} ending;

#define PLAIN_ENDING ((ending){.alpha_kind = ONE_FACTOR, .plain = true})

#if KIND <= 2
INLINE val value_of(tl_c64 v) { return (val)v.re; }
INLINE val scaled(real r, val x) { return r * x; }
#else
INLINE val value_of(tl_c64 v) { return (val){(real)v.re, (real)v.im}; }
INLINE val scaled(real r, val x) { return (val){r * x.re, r * x.im}; }
#endif

static factor_kind kind_of(tl_c64 v)
{
    return v.im != 0 || v.im != v.im ? ANY_FACTOR
           : v.re == 0               ? NO_FACTOR
           : v.re == 1               ? ONE_FACTOR
                                     : REAL_FACTOR;
}

static ending ending_of(const tl_spmm_job *job)
{
    factor_kind alpha = kind_of(job->alpha), beta = kind_of(job->beta);
    return (ending){alpha,
                    beta,
                    (real)job->alpha.re,
                    (real)job->beta.re,
                    value_of(job->alpha),
                    value_of(job->beta),
                    alpha == ONE_FACTOR && beta == NO_FACTOR};
}

/* y is not read where beta is 0. */
#define ended(e, sum, y)                                                                                     \
    ((e)->beta_kind == NO_FACTOR ? with_alpha(e, sum) : add(with_alpha(e, sum), with_beta(e, y)))

INLINE val with_alpha(const ending *e, val sum)
{
    return e->alpha_kind == REAL_FACTOR ? scaled(e->alpha_re, sum)
         : e->alpha_kind == ANY_FACTOR ? mul(e->alpha, sum) : sum;
}

INLINE val with_beta(const ending *e, val y)
{
    return e->beta_kind == REAL_FACTOR ? scaled(e->beta_re, y)
         : e->beta_kind == ANY_FACTOR ? mul(e->beta, y) : y;
}

/* ---- a tl_spmm_job with typed pointers */

typedef struct job_of {
    const int32_t *ptr32;
    const int64_t *ptr64;               /* NULL: the other */
    const idx     *col;
    const val     *val;
    const val     *x;
    int64_t        x_ld, y_ld, nnz, a_cols;
    atomic_bool   *bad;
    bool           far, stream;
    const char    *coming;
    int64_t        coming_step;
    ending         end;
} job_of;

/* Rows first..end; or, if `alone`, the entries begin..stop as a single row. */
typedef struct span {
    int64_t first, end, begin, stop;
    bool    alone;
} span;

INLINE int64_t row_at(const job_of *j, int64_t i)
{
    return j->ptr64 ? j->ptr64[i] : j->ptr32[i];
}

#include "cpu/kernel_order.h"

/* The first and the end entry of row i of the span. */
INLINE void entries_of(const job_of *j, span rows, int64_t i, int64_t *at)
{
    at[0] = rows.alone ? rows.begin : row_at(j, i);
    at[1] = rows.alone ? rows.stop : row_at(j, i + 1);
    if (j->bad) settle_rows(j, 1, at);
}

#if defined(__AVX512F__)
#define WIDEST 64
#elif defined(__AVX2__)
#define WIDEST 32
#else
#define WIDEST 16
#endif

#define VEC_BYTES 16
#define V(name) JOIN(narrow_, name)
#include "cpu/kernel_strip.h"
#undef V
#if WIDEST > 32
#define VEC_BYTES 32
#define V(name) JOIN(middle_, name)
#include "cpu/kernel_strip.h"
#undef V
#endif
#if WIDEST > 16
#define VEC_BYTES WIDEST
#define V(name) JOIN(wide_, name)
#include "cpu/kernel_strip.h"
#undef V
#endif

/* ---- fewer columns than a narrow vector has */

#if KIND != 4                           /* there a narrow vector is a single value */
INLINE void few_columns(const int count, const job_of *j, int64_t begin, int64_t end, val *y)
{
    val sum[4];
    UNROLL for (int c = 0; c < count; c++) sum[c] = zero();
    for (int64_t k = begin; k < end; k++) {
        const val *x = j->x + (int64_t)j->col[k] * j->x_ld;
        val a = j->val[k];
        UNROLL for (int c = 0; c < count; c++) sum[c] = add(sum[c], mul(a, x[c]));
    }
    UNROLL for (int c = 0; c < count; c++) y[c] = ended(&j->end, sum[c], y[c]);
}

#define WIDE 0
#define C(name) JOIN(own_, name)
#include "cpu/kernel_column.h"
#undef C

static void one_column(const job_of *j, span rows, val *y)
{
    val sum[SUMS];
    if (rows.alone) {
        int64_t at[2];
        entries_of(j, rows, 0, at);
        *sum = own_row_sum(j, j->x_ld, at[0], at[1]);
        *y = ended(&j->end, *sum, *y);
        return;
    }
    if (j->end.plain) {
        own_sums(j, rows.first, rows.end, y, j->y_ld);
        return;
    }
    for (int64_t i = rows.first; i < rows.end; i += SUMS) {
        int64_t end = rows.end - i < SUMS ? rows.end : i + SUMS;
        own_sums(j, i, end, sum, 1);
        for (int64_t r = 0; r < end - i; r++) {
            val *to = y + (i - rows.first + r) * j->y_ld;
            *to = ended(&j->end, sum[r], *to);
        }
    }
}

static void single_values(const job_of *j, span rows, int64_t cols, val *y)
{
    if (cols == 1) {
        one_column(j, rows, y);
        return;
    }
    for (int64_t i = rows.first; i < rows.end; i++) {
        int64_t at[2];
        entries_of(j, rows, i, at);
        val *to = y + (i - rows.first) * j->y_ld;
        if (cols == 2) few_columns(2, j, at[0], at[1], to);
        else few_columns(3, j, at[0], at[1], to);
    }
}
#endif

/* ---- rows with all their columns; y points at the first row of the span */

static void all_columns(const job_of *j, span rows, int64_t cols, val *y)
{
#if KIND != 4
    if (cols < narrow_VALUES) {
        single_values(j, rows, cols, y);
        return;
    }
#endif
#if WIDEST > 16
    if (cols >= wide_VALUES) {
        wide_columns(j, rows, 0, cols, y);
        return;
    }
#endif
#if WIDEST > 32
    if (cols >= middle_VALUES) {
        middle_columns(j, rows, 0, cols, y);
        return;
    }
#endif
    narrow_columns(j, rows, 0, cols, y);
}

/* If there is more than one strip, a row is computed in all strips before the next row begins: strips of one
 * row of X are adjacent in memory, while the same strip of many rows would map to few cache sets where ld is
 * a power of 2. */
static void one_by_one(const job_of *j, int64_t row0, int64_t row1, int64_t cols, val *y)
{
    int64_t step = cols * (int64_t)sizeof(val) > 8 * WIDEST ? 1 : row1 - row0;
    for (int64_t i = row0; i < row1; i += step) {
        int64_t end = row1 - i < step ? row1 : i + step;
        all_columns(j, (span){.first = i, .end = end}, cols, y + (i - row0) * j->y_ld);
    }
}

static job_of typed(const tl_spmm_job *job)
{
    return (job_of){.ptr32 = job->ptr,
                    .ptr64 = job->ptr64 ? job->ptr : NULL,
                    .col = job->col,
                    .val = job->val,
                    .x = job->x,
                    .x_ld = job->x_ld,
                    .y_ld = job->y_ld,
                    .nnz = job->nnz,
                    .a_cols = job->a_cols,
                    .bad = job->bad,
                    .far = job->far,
                    .stream = job->stream,
                    .coming = job->coming,
                    .coming_step = job->coming_ld * (int64_t)sizeof(val),
                    .end = ending_of(job)};
}

/* Transposes: to[j*to_ld + i] = from[i*from_ld + j] for i < rows, j < cols; in 4 x 4 blocks in registers. */
static void turn(const val *from, int64_t from_ld, int64_t rows, int64_t cols, val *to, int64_t to_ld)
{
    int64_t i4 = 0, j4 = 0;
#if KIND != 4                           /* there a value is 16 bytes: vectors would not help */
#if KIND == 1
    typedef uint32_t word;
#else
    typedef uint64_t word;
#endif
    typedef word quad __attribute__((vector_size(4 * sizeof(word))));
    i4 = rows & ~(int64_t)3;
    j4 = cols & ~(int64_t)3;
    for (int64_t i = 0; i < i4; i += 4)
        for (int64_t j = 0; j < j4; j += 4) {
            quad a[4], b[4], c[4];
            UNROLL for (int k = 0; k < 4; k++) memcpy(&a[k], from + (i + k) * from_ld + j, sizeof *a);
            UNROLL for (int k = 0; k < 4; k += 2) {
                b[k] = __builtin_shufflevector(a[k], a[k + 1], 0, 4, 2, 6);
                b[k + 1] = __builtin_shufflevector(a[k], a[k + 1], 1, 5, 3, 7);
            }
            UNROLL for (int k = 0; k < 2; k++) {
                c[k] = __builtin_shufflevector(b[k], b[k + 2], 0, 1, 4, 5);
                c[k + 2] = __builtin_shufflevector(b[k], b[k + 2], 2, 3, 6, 7);
            }
            UNROLL for (int k = 0; k < 4; k++) memcpy(to + (j + k) * to_ld + i, &c[k], sizeof *c);
        }
#endif
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < i4 ? j4 : 0; j < cols; j++) to[j * to_ld + i] = from[i * from_ld + j];
}

/* Sums into a tile, without alpha and beta; these are applied as the tile is transposed into Y. */
static void rows_to_columns(const tl_spmm_job *job, int64_t row0, int64_t row1)
{
    _Alignas(64) char bytes[TILE_BYTES];
    val *tile = (val *)(void *)bytes;
    job_of j = typed(job);
    ending end = j.end;
    int64_t cols = job->cols, most = TILE_BYTES / (int64_t)sizeof(val) / cols;
    if (most > TILE_ROWS) most = TILE_ROWS;
    j.y_ld = cols;
    j.stream = false;                   /* the tile is read again at once */
    j.end = PLAIN_ENDING;
    for (int64_t i = row0; i < row1; i += most) {
        int64_t n = row1 - i < most ? row1 - i : most;
        all_columns(&j, (span){.first = i, .end = i + n}, cols, tile);
        if (end.plain) turn(tile, cols, n, cols, (val *)job->y + i, job->y_ld);
        for (int64_t c = 0; c < cols && !end.plain; c++) {
            val *y = (val *)job->y + c * job->y_ld + i;
            for (int64_t r = 0; r < n; r++) y[r] = ended(&end, tile[r * cols + c], y[r]);
        }
    }
}

static void rows(const tl_spmm_job *job, int64_t row0, int64_t row1)
{
    if (job->y_by_cols) {
        rows_to_columns(job, row0, row1);
        return;
    }
    job_of j = typed(job);
    one_by_one(&j, row0, row1, job->cols, (val *)job->y + row0 * job->y_ld);
#if defined(__SSE2__)
    if (j.stream) _mm_sfence();
#endif
}

#if KIND == 1 || KIND == 3
#define WIDE 1
#define C(name) JOIN(double_, name)
#include "cpu/kernel_column.h"
#undef C

static void apply(const tl_spmm_job *job, int64_t row0, int64_t row1)
{
    const job_of j = typed(job);
    double_sum sum[SUMS];
    for (int64_t i = row0; i < row1; i += SUMS) {
        int64_t end = row1 - i < SUMS ? row1 : i + SUMS;
        val *y = (val *)job->y + i;
        double_sums(&j, i, end, sum, 1);
#if KIND == 1
        for (int64_t r = 0; r < end - i; r++) y[r] = (float)sum[r];
#else
        for (int64_t r = 0; r < end - i; r++) y[r] = (val){(float)sum[r].re, (float)sum[r].im};
#endif
    }
}
#else
#define apply rows                      /* these sum in double anyway */
#endif

static void part(const tl_spmm_job *job, int64_t begin, int64_t end, void *sums)
{
    job_of j = typed(job);
    j.stream = false;
    j.end = PLAIN_ENDING;
    all_columns(&j, (span){0, 1, begin, end, true}, job->cols, sums);
}

static void join(const tl_spmm_job *job, int64_t row, void *sums, int64_t count, int64_t ld)
{
    ending end = ending_of(job);
    val *sum = sums;
    for (int64_t p = 1; p < count; p++)
        for (int64_t c = 0; c < job->cols; c++) sum[c] = add(sum[c], sum[p * ld + c]);
    int64_t step = job->y_by_cols ? job->y_ld : 1;
    val *y = (val *)job->y + row * (job->y_by_cols ? 1 : job->y_ld);
    for (int64_t c = 0; c < job->cols; c++) y[c * step] = ended(&end, sum[c], y[c * step]);
}

static void pack(const void *from, int64_t ld, bool by_cols, int64_t cols, int64_t row0, int64_t row1,
                 void *to)
{
    enum { STEP = 16 };                 /* rows at a time, so that whole cache lines of `to` are written */
    if (!by_cols) {
        const int64_t whole = 8 * WIDEST
                              / (int64_t)sizeof(val); /* a constant length: memcpy() is inlined */
        for (int64_t r = row0; r < row1 && cols == whole; r++)
            memcpy((val *)to + r * whole, (const val *)from + r * ld, 8 * WIDEST);
        for (int64_t r = row0; r < row1 && cols != whole; r++)
            memcpy((val *)to + r * cols, (const val *)from + r * ld, (size_t)cols * sizeof(val));
        return;
    }
    for (int64_t i = row0; i < row1; i += STEP) {
        int64_t end = row1 - i < STEP ? row1 : i + STEP;
        turn((const val *)from + i, ld, cols, end - i, (val *)to + i * cols, cols);
    }
}

static void scale(tl_c64 beta, void *array, int64_t count)
{
    val *y = array;
    ending e = {.alpha_kind = ONE_FACTOR, .beta_kind = kind_of(beta), .beta_re = (real)beta.re,
                .beta = value_of(beta)};
    if (e.beta_kind == NO_FACTOR) memset(y, 0, (size_t)count * sizeof *y);
    else if (e.beta_kind != ONE_FACTOR)
        for (int64_t i = 0; i < count; i++) y[i] = with_beta(&e, y[i]);
}

static void range(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t *lo, int64_t *hi)
{
    job_of j = {.ptr32 = job->ptr, .ptr64 = job->ptr64 ? job->ptr : NULL, .col = job->col};
    int64_t begin = row_at(&j, row0), end = row_at(&j, row1);
    *lo = *hi = 0;
    if (begin == end) return;
    idx least = j.col[begin], most = least;
    for (int64_t k = begin; k < end; k++) {
        idx c = j.col[k];
        least = c < least ? c : least;
        most = c > most ? c : most;
    }
    *lo = least;
    *hi = (int64_t)((uint64_t)most + 1);        /* look.c calls this for unchecked columns: no overflow */
}

static void places(const tl_spmm_job *job, int64_t row0, int64_t row1, int64_t base, int64_t room, void *to)
{
    job_of j = {.ptr32 = job->ptr, .ptr64 = job->ptr64 ? job->ptr : NULL, .col = job->col};
    int64_t begin = row_at(&j, row0), count = row_at(&j, row1) - begin;
    const idx *col = j.col + begin, from = (idx)base, whole = (idx)room;
    for (int64_t k = 0; k < count; k++) {
        idx at = col[k] - from;
        ((idx *)to)[k] = at < whole ? at : at - whole;
    }
}

static bool ordered(const tl_spmm_job *job, int64_t begin, int64_t end)
{
    const job_of j = {.col = job->col, .nnz = job->nnz, .a_cols = job->a_cols};
    return row_good(&j, begin, end);
}

/* ---- the table of kernels, for dispatch.c */

#define STRING2(x) #x
#define STRING(x) STRING2(x)
#define NAME JOIN(JOIN(JOIN(tl_spmm_, TL_ISA), JOIN(_, TL_VAL)), JOIN(_, TL_IDX))

const tl_spmm_kernels *NAME(void);
const tl_spmm_kernels *NAME(void)
{
    static const tl_spmm_kernels kernels = {rows,  apply, part,   join,       pack,
                                            scale, range, places, ordered,    8 * WIDEST, STRING(TL_ISA)};
    return &kernels;
}
