/* SPDX-License-Identifier: MIT
 *
 * parts.h - what the files of this folder share: dividing a matrix among threads, moving and adding single
 * values of any type, counting sort, and sorting rows.
 *
 * Code for several types is written once as a TL_INLINE function that takes the type as an argument and is
 * called with constants, so that the compiler generates a specialised loop for each type. */
#ifndef TL_PARTS_H
#define TL_PARTS_H
#include <string.h>
#include "matrix/matrix.h"

#if defined(__GNUC__)
#define TL_INLINE static inline __attribute__((always_inline))
#else
#define TL_INLINE static inline
#endif

/* ---- the number of threads, and the rows of each */

/* Waking threads costs some microseconds: below 16 Ki entries per thread it does not pay. */
static inline int tl_threads_for(const tl_base *b, int threads, int64_t work)
{
    int size = tl_team_size(b->team);
    if (threads <= 0 || threads > size) threads = size;
    int64_t worth = work >> 14;
    return worth < 1 ? 1 : worth < threads ? (int)worth : threads;
}

/* The first row of part t of n, where the weight of a row is its number of entries plus one.  The parts are
 * disjoint and cover all rows even if row_ptr is invalid, so a view may be divided before it was checked. */
static inline int64_t tl_row_cut(const tulle_csr *A, int t, int n)
{
    if (t <= 0) return 0;
    if (t >= n) return A->rows;
    uint64_t target = (uint64_t)tl_part(A->nnz, t, n) + (uint64_t)tl_part(A->rows, t, n);
    int64_t low = 0, high = A->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((uint64_t)tl_row_begin(A, middle) + (uint64_t)middle < target) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- single values */

TL_INLINE void tl_value_move(void *to, int64_t i, const void *from, int64_t j, size_t size)
{
    switch (size) {
    case 4: memcpy((char *)to + 4 * i, (const char *)from + 4 * j, 4); break;
    case 8: memcpy((char *)to + 8 * i, (const char *)from + 8 * j, 8); break;
    case 16: memcpy((char *)to + 16 * i, (const char *)from + 16 * j, 16); break;
    default: break;                                     /* no values */
    }
}

/* A value of any type as a complex double, which is exact for all of them. */
TL_INLINE tl_c64 tl_value_load(tulle_type type, const void *array, int64_t i)
{
    switch (type) {
    case TULLE_F32: return (tl_c64){((const float *)array)[i], 0};
    case TULLE_F64: return (tl_c64){((const double *)array)[i], 0};
    case TULLE_CF32: return (tl_c64){((const tl_c32 *)array)[i].re, ((const tl_c32 *)array)[i].im};
    case TULLE_CF64: return ((const tl_c64 *)array)[i];
    }
    return (tl_c64){0, 0};
}

TL_INLINE void tl_value_store(tulle_type type, void *array, int64_t i, tl_c64 v)
{
    switch (type) {
    case TULLE_F32: ((float *)array)[i] = (float)v.re; break;
    case TULLE_F64: ((double *)array)[i] = v.re; break;
    case TULLE_CF32: ((tl_c32 *)array)[i] = (tl_c32){(float)v.re, (float)v.im}; break;
    case TULLE_CF64: ((tl_c64 *)array)[i] = v; break;
    }
}

/* to[i] += from[j], rounded once to the type. */
static inline void tl_value_add(tulle_type type, void *to, int64_t i, const void *from, int64_t j)
{
    switch (type) {
    case TULLE_F32: ((float *)to)[i] += ((const float *)from)[j]; break;
    case TULLE_F64: ((double *)to)[i] += ((const double *)from)[j]; break;
    case TULLE_CF32:
        ((tl_c32 *)to)[i].re += ((const tl_c32 *)from)[j].re;
        ((tl_c32 *)to)[i].im += ((const tl_c32 *)from)[j].im;
        break;
    case TULLE_CF64:
        ((tl_c64 *)to)[i].re += ((const tl_c64 *)from)[j].re;
        ((tl_c64 *)to)[i].im += ((const tl_c64 *)from)[j].im;
        break;
    }
}

/* Bytes of one value of A, 0 when it is a pattern; and what tl_matrix_create() takes for that. */
static inline size_t tl_value_size(const tulle_csr *A)
{
    return A->values ? tl_type_size(A->val_type) : 0;
}

static inline int tl_value_type(const tulle_csr *A)
{
    return A->values ? (int)A->val_type : 0;
}

/* ---- check.c: as tl_csr_check, but rows may be unsorted and hold duplicates */
tulle_status tl_csr_check_bounds(tl_base *b, const tulle_csr *A, const char *name, int threads);

/* ---- bucket.c: a stable counting sort in parts.  Entry k of part p (tl_part of count) with key c goes to
 * tl_bucket_take(tl_bucket_row(.., p), .., c); row_ptr receives the beginning of each bucket.  A single part
 * has no counters of its own: it counts in row_ptr, which tl_buckets_close() then corrects. */
typedef struct tl_buckets {
    int         parts;
    int64_t     buckets;
    int64_t    *counters;               /* [part][bucket]; NULL: one part           */
    void       *row_ptr;
    tulle_index ptr_type, type;         /* type: of the offsets that place entries */
} tl_buckets;

tulle_status tl_buckets_create(tl_base *b, const void *keys, tulle_index key_type, int64_t count,
                               int64_t buckets, void *row_ptr, tulle_index ptr_type, tl_buckets *out);
/* After the last entry was placed: completes row_ptr and frees the counters. */
void         tl_buckets_close(tl_base *b, tl_buckets *x);
/* Bytes of the counters. */
uint64_t     tl_buckets_bytes(const tl_base *b, int64_t count, int64_t buckets);

static inline void *tl_bucket_row(const tl_buckets *x, int part)
{
    return x->counters ? (void *)(x->counters + part * x->buckets) : x->row_ptr;
}

TL_INLINE int64_t tl_bucket_take(void *next, tulle_index type, int64_t c)
{
    int64_t at = tl_get(next, type, c);
    tl_put(next, type, c, at + 1);
    return at;
}

/* ---- sort.c: sorts the rows of an owned matrix in place and adds duplicates, in their order. */
tulle_status tl_rows_sort(tl_base *b, tulle_matrix *A);
/* The workspace of tl_rows_sort() for a matrix with these rows, whose bounds were checked. */
tulle_status tl_rows_sort_bytes(tl_base *b, const tulle_csr *A, uint64_t *bytes);

typedef struct tl_pair { int64_t col, place; } tl_pair;
/* A stable sort of n pairs by column; returns a or b, whichever holds the result. */
tl_pair     *tl_pairs_sort(tl_pair *a, tl_pair *b, int64_t n);

/* ---- transpose.c: the workspace of tl_csr_transpose(), and the bytes of its result. */
uint64_t     tl_csr_transpose_bytes(const tl_base *b, const tulle_csr *A, bool perm, uint64_t *result);

/* ---- inner.c: A and B^T without the columns of A and rows of B^T for which B has no entries.  The rows of A
 * and B must be sorted. */
typedef struct tl_inner {
    tulle_matrix *A, *B;
    int64_t      *a_perm, *b_perm;      /* the source of each entry; NULL: not wanted */
} tl_inner;

tulle_status tl_inner_transpose(tl_base *b, const tulle_csr *A, const tulle_csr *B, tulle_op op,
                                tl_inner *out, bool perms);
/* Upper bounds of its workspace, and of the bytes of its result. */
uint64_t     tl_inner_bytes(const tulle_csr *A, const tulle_csr *B, bool perms, uint64_t *result);

#endif
