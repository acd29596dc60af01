/* SPDX-License-Identifier: MIT
 *
 * 04_files.c - from coordinates to a matrix, to a file, and back.
 *
 * tulle reads Matrix Market files (.mtx, .mtx.gz, the .tar.gz of the SuiteSparse collection) and its own
 * binary format (.tulle), which are recognized by content; when writing, the name determines the format.  A
 * file appears under its name only when it is complete. */
#include <stdio.h>
#include <string.h>
#include <tulle.h>

#define DO(call)                                                            \
    do {                                                                    \
        if ((call) != TULLE_OK) {                                           \
            fprintf(stderr, "%s\n", tulle_ctx_error(ctx));                  \
            goto done;                                                      \
        }                                                                   \
    } while (0)

int main(void)
{
    static const char *const names[] = {"04_files.mtx", "04_files.tulle"};
    tulle_ctx    *ctx = NULL;
    tulle_matrix *M = NULL, *again = NULL;
    int           result = 1;

    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;

    /* Coordinates in any order; entries in the same place, here (1,1), are added. */
    const int32_t row[] = {2, 0, 1, 1, 0}, col[] = {0, 2, 1, 1, 0};
    const double  val[] = {0.1, -1e-300, 1, 2, 1.0 / 3};
    DO(tulle_csr_from_coo(ctx, 3, 3, 5, row, col, TULLE_I32, val, TULLE_F64, &M));
    const tulle_csr A = tulle_matrix_view(M);
    printf("%lld x %lld, %lld entries\n", (long long)A.rows, (long long)A.cols, (long long)A.nnz);

    /* Values that are written to either file and read back are the same bit for bit. */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        DO(tulle_write(ctx, names[i], &A));
        DO(tulle_read(ctx, names[i], &again));
        const tulle_csr B = tulle_matrix_view(again);
        const int same = B.rows == A.rows && B.nnz == A.nnz &&
                         !memcmp(A.col_idx, B.col_idx, (size_t)A.nnz * sizeof(int32_t)) &&
                         !memcmp(A.values, B.values, (size_t)A.nnz * sizeof(double));
        printf("%s: %s\n", names[i], same ? "came back the same" : "came back changed");
        tulle_matrix_free(again);
        again = NULL;
        if (!same) goto done;
    }

    /* A copy with other types: here float values and 64-bit columns. */
    DO(tulle_csr_convert(ctx, &A, TULLE_F32, 0, TULLE_I64, &again));
    const tulle_csr F = tulle_matrix_view(again);
    printf("as float: %.9g\n", (double)((const float *)F.values)[0]);
    if (F.val_type == TULLE_F32 && F.idx_type == TULLE_I64) result = 0;

done:
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove(names[i]);
    tulle_matrix_free(again);
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    return result;
}
