/* SPDX-License-Identifier: MIT
 *
 * 06_device.c - matrices that stay in a GPU's memory.
 *
 * Copying a matrix to a device and back often costs more than a product.  A chain of products therefore
 * copies A once, keeps intermediate results on the device, and copies only the final result back.  On a
 * machine without a GPU the same program runs on the CPU, with everything on the host. */
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

int main(void)
{
    tulle_ctx    *ctx = NULL;
    tulle_matrix *M = NULL, *A = NULL, *A2 = NULL, *A4 = NULL;
    tulle_options options = {0};
    char          why[512];
    double        error = 0;
    int           result = 1;

    /* Lists all devices; for a missing driver there is an entry that says so. */
    tulle_device d;
    for (int i = 0; tulle_device_info(i, &d) == TULLE_OK; i++)
        printf("%-9s %s%s%s\n", d.name, d.text, d.usable ? "" : "; not usable: ", d.why_not);

    /* NULL: the best device.  There is no context yet that could hold the error message. */
    if (tulle_ctx_create_why(NULL, NULL, &ctx, why, sizeof why) != TULLE_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    const tulle_place place = strcmp(tulle_ctx_device(ctx), "cpu") == 0 ? TULLE_HOST : TULLE_DEVICE;
    printf("on %s\n", tulle_ctx_device(ctx));

    DO(tulle_gallery(ctx, "poisson2d:100", &M));
    const tulle_csr host = tulle_matrix_view(M);
    DO(tulle_csr_move(ctx, &host, place, &A));
    const tulle_csr a = tulle_matrix_view(A);

    /* A^2 stays on the device: its view has device addresses, which the host must not dereference. */
    options.c_place = place;
    options.time_stages = 1;
    DO(tulle_multiply(ctx, &a, &a, &options, &A2));
    const tulle_csr a2 = tulle_matrix_view(A2);

    tulle_stats stats;
    tulle_ctx_stats(ctx, &stats);
    for (int i = 0; i < stats.stages; i++)
        printf("  %-14s %8.3f ms\n", stats.stage[i].name, 1e3 * stats.stage[i].seconds);

    /* A^4 = A^2 * A^2 is stored on the host. */
    options.c_place = TULLE_HOST;
    DO(tulle_multiply(ctx, &a2, &a2, &options, &A4));
    const tulle_csr a4 = tulle_matrix_view(A4);
    printf("A^4: %lld entries, the first is %g\n", (long long)a4.nnz, ((const double *)a4.values)[0]);

    /* The check accepts views of either place. */
    DO(tulle_product_check(ctx, &a2, &a2, &a4, NULL, &error));
    printf("checked: C*x and A*(B*x) differ by %.1e\n", error);

    /* the corner of A^2 is (18 -8 1 .. -8 2 .. 1): 18*18 + 2*8*8 + 2*1*1 + 2*2 = 458 */
    if (((const double *)a4.values)[0] == 458) result = 0;

done:
    tulle_matrix_free(A4);
    tulle_matrix_free(A2);
    tulle_matrix_free(A);
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    return result;
}
