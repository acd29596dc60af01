/* SPDX-License-Identifier: MIT
 *
 * 02_plan.c - patterns once, values many times.
 *
 * A simulation assembles a matrix on the same mesh at every time step: the values change, the pattern does
 * not.  A plan does everything that depends only on the pattern (choosing algorithms, computing the pattern
 * of C); each run then computes only values, into an array of ours, without allocating anything. */
#include <stdio.h>
#include <stdlib.h>
#include <tulle.h>

/* Prints the error message and leaves main. */
#define DO(call)                                                            \
    do {                                                                    \
        if ((call) != TULLE_OK) {                                           \
            fprintf(stderr, "%s\n", tulle_ctx_error(ctx));                  \
            goto done;                                                      \
        }                                                                   \
    } while (0)

int main(void)
{
    tulle_ctx    *ctx = NULL;
    tulle_matrix *M = NULL;
    tulle_plan   *plan = NULL;
    double       *a_values = NULL, *c_values = NULL;
    int           result = 1;

    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;

    /* A mesh of 300 x 300 points from the gallery; the plan is for A*A. */
    DO(tulle_gallery(ctx, "poisson2d:300", &M));
    const tulle_csr A = tulle_matrix_view(M);
    DO(tulle_plan_create(ctx, &A, &A, NULL, &plan));

    /* The pattern of C is known before any value is: row pointers and columns, sorted. */
    const tulle_csr C = tulle_plan_pattern(plan);
    printf("A: %lld entries, C: %lld entries\n", (long long)A.nnz, (long long)C.nnz);

    a_values = malloc((size_t)A.nnz * sizeof *a_values);
    c_values = malloc((size_t)C.nnz * sizeof *c_values);
    if (!a_values || !c_values) goto done;

    for (int step = 1; step <= 5; step++) {
        for (int64_t k = 0; k < A.nnz; k++) a_values[k] = step * ((const double *)A.values)[k];

        /* A's values stand for both operands here: the plan was made for A*A. */
        DO(tulle_plan_run(plan, a_values, a_values, c_values));

        tulle_stats stats;
        tulle_plan_stats(plan, &stats);
        printf("step %d: C(0,0) = %g, %.2f ms\n", step, c_values[0], 1e3 * stats.sec_numeric);

        /* 4*4 + 1 + 1 = 18 in the corner of the squared five-point mesh, times step squared */
        if (c_values[0] != 18.0 * step * step) goto done;
    }
    result = 0;

done:
    free(a_values);
    free(c_values);
    tulle_plan_free(plan);          /* before its context */
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    return result;
}
