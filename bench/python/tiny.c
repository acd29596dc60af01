/* SPDX-License-Identifier: MIT
 *
 * tiny.c - the time in microseconds of a product of 100 rows in C, of a matrix with itself and with a copy of
 * it, the minimum of many rounds.  The overhead of the Python package is computed from it. */
#define _POSIX_C_SOURCE 200809L
#include "tulle.h"
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double product(tulle_ctx *ctx, const tulle_csr *a, const tulle_csr *b)
{
    enum { ROUNDS = 40, TURNS = 500 };
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int turn = 0; turn < TURNS; turn++) {
            tulle_matrix *C = NULL;
            if (tulle_multiply(ctx, a, b, NULL, &C)) return -1;
            tulle_matrix_free(C);
        }
        double took = (now() - start) / TURNS;
        if (took < best) best = took;
    }
    return best * 1e6;
}

int main(int argc, char **argv)
{
    const char *recipe = argc > 1 ? argv[1] : "er:100,per_row=3";
    tulle_ctx *ctx = NULL;
    tulle_matrix *A = NULL, *B = NULL;
    if (tulle_ctx_create("cpu", NULL, &ctx) || tulle_gallery(ctx, recipe, &A)
        || tulle_gallery(ctx, recipe, &B))
        return 1;
    const tulle_csr a = tulle_matrix_view(A), b = tulle_matrix_view(B);
    printf("%.3f %.3f\n", product(ctx, &a, &a), product(ctx, &a, &b));
    tulle_matrix_free(A);
    tulle_matrix_free(B);
    tulle_ctx_free(ctx);
    return 0;
}
