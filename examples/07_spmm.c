/* SPDX-License-Identifier: MIT
 *
 * 07_spmm.c - a sparse matrix times a dense one.
 *
 * Several vectors at once cost little more than one, because A is read once for all of them.  Here eight
 * vectors are smoothed by a few steps of X = X - omega*(A*X), one call per step: Y = alpha*A*X + beta*Y with
 * a Y that holds a copy of X before.  A plan does everything that depends only on A once, for all steps. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tulle.h>

/* Prints the error message and leaves main. */
#define DO(call)                                                            \
    do {                                                                    \
        if ((call) != TULLE_OK) {                                           \
            fprintf(stderr, "%s\n", tulle_ctx_error(ctx));                  \
            goto done;                                                      \
        }                                                                   \
    } while (0)

enum { COLUMNS = 8, STEPS = 10 };

/* The largest difference between neighbours in the first vector. */
static double roughness(const tulle_dense *X)
{
    const double *x = X->values;
    double most = 0;
    for (int64_t i = 1; i < X->rows; i++) most = fmax(most, fabs(x[i * X->ld] - x[(i - 1) * X->ld]));
    return most;
}

int main(void)
{
    tulle_ctx          *ctx = NULL;
    tulle_matrix       *M = NULL;
    tulle_dense_matrix *first = NULL, *second = NULL;
    tulle_spmm_plan    *plan = NULL;
    int                 result = 1;

    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) return 1;
    DO(tulle_gallery(ctx, "poisson2d:200", &M));
    const tulle_csr A = tulle_matrix_view(M);
    DO(tulle_dense_create(ctx, A.rows, COLUMNS, TULLE_BY_ROWS, TULLE_F64, &first));
    DO(tulle_dense_create(ctx, A.rows, COLUMNS, TULLE_BY_ROWS, TULLE_F64, &second));
    tulle_dense X = tulle_dense_view(first), Y = tulle_dense_view(second);

    /* Rough vectors: the sign of values alternates. */
    for (int64_t k = 0; k < X.rows * X.cols; k++) ((double *)X.values)[k] = (k / COLUMNS + k) % 2 ? 1 : -1;
    printf("roughness %.3f\n", roughness(&X));

    /* Checks A, divides the work, and copies the values that A has now. */
    DO(tulle_spmm_plan_create(ctx, &A, NULL, &plan));
    const double alpha = -0.125, beta = 1;
    for (int step = 0; step < STEPS; step++) {
        memcpy(Y.values, X.values, (size_t)(X.rows * X.cols) * sizeof(double));
        DO(tulle_spmm_plan_run(plan, &alpha, &X, &beta, &Y));
        tulle_dense swap = X;
        X = Y;
        Y = swap;
    }
    printf("roughness %.3f after %d steps\n", roughness(&X), STEPS);

    /* The same pattern with other values: the plan has its own copy, so it must be given the new ones. */
    double *values = tulle_matrix_values(M);
    for (int64_t k = 0; k < A.nnz; k++) values[k] *= 0.5;
    DO(tulle_spmm_plan_set_values(plan, values));
    memcpy(Y.values, X.values, (size_t)(X.rows * X.cols) * sizeof(double));
    DO(tulle_spmm_plan_run(plan, &alpha, &X, &beta, &Y));
    printf("roughness %.3f after half a step more\n", roughness(&Y));

    tulle_stats stats;
    tulle_ctx_stats(ctx, &stats);
    printf("%lld products a step\n", (long long)stats.products);
    result = 0;
done:
    tulle_spmm_plan_free(plan);
    tulle_dense_free(first);
    tulle_dense_free(second);
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    return result;
}
