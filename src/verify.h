/* SPDX-License-Identifier: MIT
 * verify.h - what the two halves of the check of a product share: verify.c and entries.c. */
#ifndef TL_VERIFY_H
#define TL_VERIFY_H
#include "ctx.h"

/* The numbers of C: how many bits, below which power of two, and the power that begins the normal ones. */
typedef struct tl_reach { int digits, top, bottom; } tl_reach;

/* What was found; row < 0: all is right so far. */
typedef struct tl_verdict {
    int64_t row, col;                   /* the first that is wrong; col < 0: the row as a whole */
    double  have, want;                 /* of an entry                                          */
    double  allowed;
    double  error;                      /* the largest, relative to what was added up           */
} tl_verdict;

/* One part of an entry: 0 the real, 1 the imaginary one. */
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

/* What rounding may do to a sum of so many products, relative to the sum of their absolute values, when it is
 * compared with the same sum made of `again` operations in double.  Sums that lost more than 1e-4 are not
 * called right, however they were made. */
static inline double tl_rounding(const tl_reach *r, int64_t terms, int64_t again)
{
    double bound = (double)(terms + 1) / (double)((int64_t)1 << r->digits) + (double)(again + 2) * 0x1p-53;
    return bound < 1e-4 ? bound : 1e-4;
}

/* entries.c: room for the columns of one window, for one thread. */
typedef struct tl_entries tl_entries;

tulle_status tl_entries_make(tl_base *b, int64_t cols, int64_t longest_row_of_a, tl_entries **out);
void         tl_entries_free(tl_base *b, tl_entries *e);
/* Row i of C against the row computed anew.  The rows of B are in order. */
void         tl_entries_row(tl_entries *e, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                            const tl_reach *reach, int64_t i, tl_verdict *v);

#endif
