/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <tulle.h>

int main(void)
{
    const int32_t ptr[] = {0, 2, 3, 4}, col[] = {0, 2, 1, 0};   /* 1 0 2 */
    const double  val[] = {1, 2, 3, 4};                         /* 0 3 0 */
    const tulle_csr A = tulle_csr_f64_i32(3, 3, ptr, col, val); /* 4 0 0 */
    tulle_matrix *C = NULL;
    tulle_ctx *ctx = NULL;

    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;
    tulle_status status = tulle_multiply(ctx, &A, &A, NULL, &C);
    if (status != TULLE_OK) fprintf(stderr, "%s\n", tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    for (int64_t k = 0; k < c.nnz; k++) printf("%g ", ((const double *)c.values)[k]);   /* 9 2 9 4 8 */
    printf("\n");
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
    return status != TULLE_OK;
}
