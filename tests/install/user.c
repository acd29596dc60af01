/* SPDX-License-Identifier: MIT
 *
 * user.c - what somebody who installed tulle would write first: a product of two 2x2 matrices, and a look
 * at the numbers, on the best device there is; with any word behind its name also the devices, and why those that
 * cannot be used are not.  check_install.sh builds it in four ways. */
#include <stdio.h>
#include <string.h>
#include <tulle.h>

int main(int argc, char **argv)
{
    const int32_t ptr[] = {0, 2, 3}, col[] = {0, 1, 1};
    const double  val[] = {1, 2, 3};                    /* (1 2; 0 3), its square is (1 8; 0 9) */
    const tulle_csr A = tulle_csr_f64_i32(2, 2, ptr, col, val);
    tulle_ctx    *ctx = NULL;
    tulle_matrix *C = NULL;
    int           wrong = 1;

    if (strcmp(tulle_version(), TULLE_VERSION) != 0) {
        printf("header %s, library %s\n", TULLE_VERSION, tulle_version());
        return 1;
    }
    (void)argv;
    for (int i = 0; argc > 1 && i < tulle_device_count(); i++) {
        tulle_device d;
        if (tulle_device_info(i, &d) == TULLE_OK) printf("%s: %s\n", d.name, d.usable ? "usable" : d.why_not);
    }
    if (tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK && tulle_multiply(ctx, &A, &A, NULL, &C) == TULLE_OK) {
        const tulle_csr c = tulle_matrix_view(C);
        const double   *v = (const double *)c.values;
        wrong = !(c.nnz == 3 && v[0] == 1 && v[1] == 8 && v[2] == 9);
        printf("%s: (%g %g; 0 %g)\n", tulle_version(), v[0], v[1], v[2]);
    } else {
        printf("%s\n", ctx ? tulle_ctx_error(ctx) : "no context");
    }
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
    return wrong;
}
