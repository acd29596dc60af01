/* SPDX-License-Identifier: MIT
 *
 * powers.h - rows of exactly so many products, for the tests of policies that sort rows by that; and what
 * else these tests share: rows of one accumulator, blocks compared with a whole. */
#ifndef TULLE_TEST_POWERS_H
#define TULLE_TEST_POWERS_H
#include "gpu.h"

/* ---- rows of exactly so many products.  Row 2k + 1 of B has 2^k entries, the others none; a row of A names
 * those whose lengths sum up, and empty ones between them. */

enum { POWERS = 14, B_ROWS = 2 * POWERS + 1 };
typedef enum same { NONE, SOME, ALL } same;     /* do rows of B share columns? */

static inline ref powers(same s, int64_t cols, ref_kind kind, ref_types t)
{
    ref B = ref_new(B_ROWS, cols, ((int64_t)1 << POWERS) - 1, t);
    int64_t at = 0;
    for (int k = 0; k < POWERS; k++) {
        int64_t n = (int64_t)1 << k, first = s == NONE ? n : s == SOME ? n / 2 : 0;
        int64_t step = s == SOME && k < POWERS - 1 ? 2 : 1;
        ref_set_ptr(&B, 2 * k + 1, at);
        for (int64_t j = 0; j < n; j++)
            ref_set_col(&B, at++, cols - 2 * ((int64_t)1 << POWERS) + first + j * step);
        ref_set_ptr(&B, 2 * k + 2, at);
    }
    ref_set_ptr(&B, B_ROWS, at);
    ref_fill(&B, kind, 41);
    return B;
}

static inline ref sums(const int64_t *sizes, int rows, ref_kind kind, ref_types t)
{
    int64_t nnz = 0, at = 0;
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < POWERS; k++) nnz += 1 + (sizes[i] >> k & 1);
    ref A = ref_new(rows, B_ROWS, nnz, t);
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < POWERS; k++) {
            ref_set_col(&A, at++, 2 * k);
            if (sizes[i] >> k & 1) ref_set_col(&A, at++, 2 * k + 1);
        }
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 42);
    return A;
}

static inline int64_t share_rows(const tulle_stats *s, const char *name)
{
    for (int i = 0; i < s->shares; i++)
        if (strcmp(s->share[i].name, name) == 0) return s->share[i].rows;
    return 0;
}

typedef struct joined { const tulle_csr *want; int64_t rows, blocks; bool good; } joined;

static inline int join(void *user, int64_t row0, const tulle_csr *c)
{
    joined *j = user;
    j->good = j->good && row0 == j->rows;
    for (int64_t i = 0; j->good && i < c->rows; i++) {
        int64_t from = ref_ptr(c, i), at = ref_ptr(j->want, row0 + i), n = ref_ptr(c, i + 1) - from;
        j->good = n == ref_ptr(j->want, row0 + i + 1) - at;
        for (int64_t k = 0; j->good && k < n; k++)
            j->good = ref_col(c, from + k) == ref_col(j->want, at + k)
                      && ref_val(c, from + k).re == ref_val(j->want, at + k).re;
    }
    j->rows += c->rows;
    j->blocks++;
    return 0;
}

#endif
