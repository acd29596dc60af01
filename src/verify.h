/* SPDX-License-Identifier: MIT
 * verify.h - what the two files that verify a product share: verify.c and entries.c. */
#ifndef TL_VERIFY_H
#define TL_VERIFY_H
#include "ctx.h"

/* The floating-point format of C: bits of precision, the power of two that overflows, and that of the
 * smallest normal number. */
typedef struct tl_reach { int digits, top, bottom; } tl_reach;

/* The result of a check; row < 0: no error so far. */
typedef struct tl_verdict {
    int64_t row, col;                   /* the first wrong entry; col < 0: the sum of the row   */
    double  have, want;                 /* values of that entry                                 */
    double  allowed;
    double  error;                      /* the largest, relative to the sum of absolute values  */
} tl_verdict;

/* One part of an entry: 0 the real part, 1 the imaginary part. */
static inline double tl_part_at(const tulle_csr *A, int64_t k, int part)
{
    switch (A->val_type) {
    case TULLE_F32: return part ? 0 : (double)((const float *)A->values)[k];
    case TULLE_F64: return part ? 0 : ((const double *)A->values)[k];
    case TULLE_CF32: return (double)((const float *)A->values)[2 * k + part];
    default: return ((const double *)A->values)[2 * k + part];
    }
}

static inline int tl_parts(const tulle_csr *A)
{
    return A->val_type == TULLE_CF32 || A->val_type == TULLE_CF64 ? 2 : 1;
}

/* A bound for the rounding error of a sum of this many products, relative to the sum of their absolute
 * values, when it is compared with the same sum computed by `again` operations in double.  At most 1e-4: a
 * sum with a larger error is never accepted. */
static inline double tl_rounding(const tl_reach *r, int64_t terms, int64_t again)
{
    double bound = (double)(terms + 1) / (double)((int64_t)1 << r->digits) + (double)(again + 2) * 0x1p-53;
    return bound < 1e-4 ? bound : 1e-4;
}

/* entries.c: the workspace of one thread, for the columns of one window. */
typedef struct tl_entries tl_entries;

tulle_status tl_entries_make(tl_base *b, int64_t cols, int64_t longest_row_of_a, tl_entries **out);
void         tl_entries_free(tl_base *b, tl_entries *e);
/* Compares row i of C with the row computed again.  The rows of B must be sorted. */
void         tl_entries_row(tl_entries *e, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                            const tl_reach *reach, int64_t i, tl_verdict *v);

#endif
