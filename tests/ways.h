/* SPDX-License-Identifier: MIT
 *
 * ways.h - what the product tests share: contexts, every way to compute a product, pairs of matrices
 * of every kind.  All ways must give the same bits. */
#ifndef TULLE_WAYS_H
#define TULLE_WAYS_H
#include <inttypes.h>
#include <stdlib.h>
#include "plan/plan.h"
#include "reference.h"
#include "test.h"

static inline tulle_ctx *ctx_with(int threads)
{
    tulle_ctx *ctx = NULL;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK || tulle_ctx_set_threads(ctx, threads) != TULLE_OK)
        abort();
    return ctx;
}

/* ---- ways: the default, each policy, each accumulator */

static inline bool way_at(int i, tulle_options *o, char *name, size_t bytes)
{
    memset(o, 0, sizeof *o);
    if (i == 0) {
        snprintf(name, bytes, "default");
        return true;
    }
    int policies = 0;
    while (tulle_policy_name(policies)) policies++;
    if (i - 1 < policies) {
        o->policy = tulle_policy_name(i - 1);
    } else {                            /* those of the CPU */
        int left = i - 1 - policies, a = 0;
        while (tulle_accumulator_name(a) && (!tl_accumulator_on(a, TL_ON_CPU) || left-- > 0)) a++;
        o->accumulator = tulle_accumulator_name(a);
    }
    snprintf(name, bytes, "%s", o->policy ? o->policy : o->accumulator ? o->accumulator : "");
    return o->policy || o->accumulator;
}

/* ---- pairs: A and B that can be multiplied, of every kind */

typedef struct pair { ref A, B; const char *name; } pair;

enum { SMALL_PAIRS = 15, PAIRS = 28 };

static inline ref full_row_and_singles(int64_t rows, int64_t cols, int64_t full, ref_kind kind, ref_types t)
{
    ref A = ref_new(rows, cols, cols + rows - 1, t);
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t c = 0; c < cols; c++)
            if (i == full || c == (7 * i + 3) % cols) ref_set_col(&A, at++, c);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 11);
    return A;
}

/* Five points on a grid of w x h. */
static inline ref grid(int64_t w, int64_t h, ref_kind kind, ref_types t)
{
    ref A = ref_new(w * h, w * h, 5 * w * h - 2 * w - 2 * h, t);
    int64_t at = 0;
    for (int64_t i = 0; i < w * h; i++) {
        if (i >= w) ref_set_col(&A, at++, i - w);
        if (i % w > 0) ref_set_col(&A, at++, i - 1);
        ref_set_col(&A, at++, i);
        if (i % w < w - 1) ref_set_col(&A, at++, i + 1);
        if (i < w * h - w) ref_set_col(&A, at++, i + w);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 12);
    return A;
}

/* Assigns each point of that grid to its aggregate of 3 x 3 points; with `more`, also to the next aggregate of
 * the same line, if there is one, except every 41st point, which belongs to none. */
static inline ref aggregates(int64_t w, int64_t h, bool more, ref_kind kind, ref_types t)
{
    int64_t across = (w + 2) / 3, down = (h + 2) / 3, at = 0;
    for (int64_t i = 0; i < w * h; i++)
        if (!more || i % 41) at += more && i % w / 3 + 1 < across ? 2 : 1;
    ref A = ref_new(w * h, across * down, at, t);
    at = 0;
    for (int64_t i = 0; i < w * h; i++) {
        int64_t x = i % w / 3, y = i / w / 3;
        if (!more || i % 41) ref_set_col(&A, at++, y * across + x);
        if (more && i % 41 && x + 1 < across) ref_set_col(&A, at++, y * across + x + 1);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 13);
    return A;
}

static inline pair pair_at(int i, ref_kind kind, ref_types ta, ref_types tb)
{
    switch (i) {
    /* small difficult cases */
    case 0: return (pair){ref_new(0, 0, 0, ta), ref_new(0, 0, 0, tb), "0x0 * 0x0"};
    case 1: return (pair){ref_new(0, 9, 0, ta), ref_random(1, 9, 5, 3, kind, tb), "0x9 * 9x5"};
    case 2: return (pair){ref_random(1, 9, 5, 3, kind, ta), ref_new(5, 0, 0, tb), "9x5 * 5x0"};
    case 3: return (pair){ref_new(6, 0, 0, ta), ref_new(0, 7, 0, tb), "6x0 * 0x7"};
    case 4: return (pair){ref_new(8, 8, 0, ta), ref_random(2, 8, 8, 3, kind, tb), "empty A"};
    case 5: return (pair){ref_random(2, 8, 8, 3, kind, ta), ref_new(8, 8, 0, tb), "empty B"};
    case 6: return (pair){ref_dense(1, 1, kind, ta), ref_dense(1, 1, kind, tb), "1x1"};
    case 7: return (pair){ref_dense(1, 90, kind, ta), ref_dense(90, 1, kind, tb), "1xN * Nx1"};
    case 8: return (pair){ref_dense(90, 1, kind, ta), ref_dense(1, 90, kind, tb), "Nx1 * 1xN"};
    case 9: return (pair){ref_random(3, 40, 30, 4, kind, ta), ref_random(4, 30, 50, 5, kind, tb), "random"};
    case 10: return (pair){ref_identity(33, ta), ref_random(5, 33, 20, 6, kind, tb), "I * B"};
    case 11: return (pair){ref_permutation(6, 70, ta), ref_band(70, 2, kind, tb), "permutation * band"};
    case 12: return (pair){ref_random(7, 50, 64, 0.7, kind, ta), ref_random(8, 64, 65, 0.8, kind, tb),
                           "mostly empty rows"};
    case 13: return (pair){ref_arrow(65, kind, ta), ref_arrow(65, kind, tb), "arrow"};
    case 14: return (pair){ref_blocks(9, 1, 3, kind, ta), ref_blocks(9, 1, 3, kind, tb), "small 3x3 blocks"};
    /* enough products for several threads, or for special code */
    case 15: return (pair){ref_random(9, 400, 300, 16, kind, ta), ref_random(10, 300, 500, 16, kind, tb),
                           "random, 100 K products"};
    case 16: return (pair){ref_blocks(40, 2, 2, kind, ta), ref_blocks(40, 2, 2, kind, tb), "2x2 blocks"};
    case 17: return (pair){ref_blocks(40, 2, 4, kind, ta), ref_blocks(40, 2, 4, kind, tb), "4x4 blocks"};
    case 18: return (pair){ref_blocks(20, 2, 7, kind, ta), ref_blocks(20, 2, 7, kind, tb), "7x7 blocks"};
    case 19: return (pair){ref_power(11, 600, 600, 300, kind, ta), ref_power(12, 600, 600, 150, kind, tb),
                           "power law"};
    case 20: return (pair){ref_arrow(250, kind, ta), ref_arrow(250, kind, tb), "large arrow"};
    case 21: return (pair){ref_band(1500, 4, kind, ta), ref_band(1500, 4, kind, tb), "band"};
    case 22: return (pair){full_row_and_singles(200, 600, 77, kind, ta), ref_random(13, 600, 9000, 60, kind, tb),
                           "one full row over a wide window"};
    case 23: return (pair){full_row_and_singles(3, 700, 1, kind, ta), ref_random(14, 700, 3000, 430, kind, tb),
                           "a row heavy enough to be cut"};
    case 24: return (pair){full_row_and_singles(4, 33000, 2, kind, ta), ref_random(15, 33000, 300, 1, kind, tb),
                           "a row with many entries of A"};
    case 25: return (pair){ref_random(16, 3000, 2500, 5, kind, ta), ref_random(17, 2500, 100000, 5, kind, tb),
                           "scattered short rows"};
    case 26: return (pair){grid(90, 40, kind, ta), aggregates(90, 40, false, kind, tb), "grid * aggregates"};
    default: return (pair){grid(90, 40, kind, ta), aggregates(90, 40, true, kind, tb), "grid * interpolation"};
    }
}

static inline void pair_free(pair *p)
{
    ref_free(&p->A);
    ref_free(&p->B);
}

/* ---- compares one product with the expected one */

static inline void product_is(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                              const tulle_csr *want, const char *name)
{
    tulle_matrix *C = NULL;
    REQUIRE(tulle_multiply(ctx, A, B, o, &C) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    tulle_csr view = tulle_matrix_view(C);
    CHECK(ref_same(&view, want, name), "%s", "wrong product");
    CHECK(tulle_csr_check(ctx, &view) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    tulle_matrix_free(C);
}

#endif
