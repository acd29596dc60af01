/* SPDX-License-Identifier: MIT
 *
 * operands.h - the two matrices of a line of bench_spgemm.
 *
 * A recipe of the gallery gives A*A, or A*A^T where A is rectangular, with values at random so that no
 * library finds them all equal or finds zeros.  "multigrid:S*T", "multigrid:A*P" and "multigrid:R*(A*P)"
 * are the products that smoothed aggregation makes of one level: A is the 7-point Laplacian on 64^3
 * points, T has one column for each aggregate of 3^3 of them, S = I - 2/3 D^-1 A, P = S*T, R = P^T. */
#ifndef TULLE_BENCH_OPERANDS_H
#define TULLE_BENCH_OPERANDS_H
#include "tulle.h"

typedef struct operands {
    tulle_csr     A, B;             /* the same arrays where B is A */
    tulle_matrix *own[2];
} operands;

/* The context has the sentence where this fails. */
tulle_status operands_open(tulle_ctx *ctx, const char *recipe, operands *o);
void         operands_close(operands *o);

#endif
