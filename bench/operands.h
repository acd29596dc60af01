/* SPDX-License-Identifier: MIT
 *
 * operands.h - the two matrices of a line of bench_spgemm.
 *
 * A recipe of the gallery stands for A*A, or A*A^T if A is rectangular, with random values, because some
 * libraries have shortcuts for equal values, and so that no entry of C is zero.  "multigrid:S*T",
 * "multigrid:A*P" and "multigrid:R*(A*P)" are the products of smoothed aggregation on one level: A is the
 * 7-point Laplacian on 64^3 points, T has one column per aggregate of 3^3 points, S = I - 2/3 D^-1 A,
 * P = S*T, R = P^T. */
#ifndef TULLE_BENCH_OPERANDS_H
#define TULLE_BENCH_OPERANDS_H
#include "tulle.h"

typedef struct operands {
    tulle_csr     A, B;             /* the same arrays where B is A */
    tulle_matrix *own[2];
} operands;

/* If this fails, the context has the error message. */
tulle_status operands_open(tulle_ctx *ctx, const char *recipe, operands *o);
void         operands_close(operands *o);

#endif
