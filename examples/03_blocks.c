/* SPDX-License-Identifier: MIT
 *
 * 03_blocks.c - a product that need not fit into memory.
 *
 * First we estimate its memory; then we compute C in blocks of rows within a memory limit, and keep only what
 * we need of it: here the length of the longest row, and the sum of all entries. */
#include <stdio.h>
#include <tulle.h>

typedef struct {
    int64_t blocks, rows, nnz, fullest;
    double  sum;
} digest;

/* Called for each block, in the order of rows.  The block is a view that is invalid after the return.  A
 * nonzero result stops the product. */
static int take(void *user, int64_t first_row, const tulle_csr *block)
{
    digest *d = user;
    if (first_row != d->rows) return 1;             /* blocks come in order and leave no row out */
    const double *values = block->values;
    for (int64_t i = 0; i < block->rows; i++) {
        const int64_t length = block->ptr_type == TULLE_I32
            ? ((const int32_t *)block->row_ptr)[i + 1] - ((const int32_t *)block->row_ptr)[i]
            : ((const int64_t *)block->row_ptr)[i + 1] - ((const int64_t *)block->row_ptr)[i];
        if (length > d->fullest) d->fullest = length;
    }
    for (int64_t k = 0; k < block->nnz; k++) d->sum += values[k];
    d->blocks++;
    d->rows += block->rows;
    d->nnz += block->nnz;
    return 0;
}

int main(void)
{
    tulle_ctx    *ctx = NULL;
    tulle_matrix *M = NULL;
    digest        d = {0};
    int           result = 1;

    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;
    if (tulle_gallery(ctx, "poisson3d:40", &M) != TULLE_OK) goto done;
    const tulle_csr A = tulle_matrix_view(M);

    /* Nothing large is allocated for this; the number of products is exact, and the bounds always hold. */
    tulle_forecast forecast;
    if (tulle_estimate(ctx, &A, &A, NULL, &forecast) != TULLE_OK) goto done;
    printf("%lld products, C has %lld to %lld entries, about %lld; about %.1f MB in all\n",
           (long long)forecast.products, (long long)forecast.nnz_lower, (long long)forecast.nnz_upper,
           (long long)forecast.nnz_estimate, 1e-6 * (double)forecast.bytes_estimate);

    /* A limit well below that: C and the workspace together stay within it. */
    tulle_options options = {0};
    options.memory_limit = forecast.bytes_estimate / 2;
    if (tulle_multiply_blocks(ctx, &A, &A, &options, take, &d) != TULLE_OK) goto done;
    printf("%lld blocks within %.1f MB: %lld rows, %lld entries, %lld in the fullest row, sum %g\n",
           (long long)d.blocks, 1e-6 * (double)options.memory_limit, (long long)d.rows,
           (long long)d.nnz, (long long)d.fullest, d.sum);

    if (d.rows == A.rows && d.nnz >= forecast.nnz_lower && d.nnz <= forecast.nnz_upper) result = 0;

done:
    if (result) fprintf(stderr, "%s\n", tulle_ctx_error(ctx));
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    return result;
}
