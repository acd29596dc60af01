/* SPDX-License-Identifier: MIT
 *
 * 01_multiply.c - the simple way: two matrices in, their product out.
 *
 *         (1 0 2)       (0 3)            (10 3)
 *     A = (0 0 3)   B = (4 0)   C = AB = (15 0)
 *                       (5 0)
 *
 * Build it against an installed library:   cc 01_multiply.c $(pkg-config --cflags --libs tulle)  */
#include <stdio.h>
#include <tulle.h>

int main(void)
{
    /* Compressed sparse rows: row i has the entries row_ptr[i] .. row_ptr[i+1]-1, columns count from 0
     * and increase within a row. */
    const int32_t a_ptr[] = {0, 2, 3},    a_col[] = {0, 2, 2};
    const double  a_val[] = {1, 2, 3};
    const int32_t b_ptr[] = {0, 1, 2, 3}, b_col[] = {1, 0, 0};
    const double  b_val[] = {3, 4, 5};

    /* A view costs nothing: it copies no array and owns none.  Other types of values and indices are made
     * with tulle_csr_make(). */
    const tulle_csr A = tulle_csr_f64_i32(2, 3, a_ptr, a_col, a_val);
    const tulle_csr B = tulle_csr_f64_i32(3, 2, b_ptr, b_col, b_val);

    /* A context holds the device, its threads and its memory.  The first NULL: the best device there is;
     * the second: the library's own memory.  Keep a context, it gets faster with use. */
    tulle_ctx *ctx;
    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;

    /* The fourth argument is the options; NULL or all zero means the defaults. */
    tulle_matrix *C = NULL;
    if (tulle_multiply(ctx, &A, &B, NULL, &C) != TULLE_OK) {
        fprintf(stderr, "%s\n", tulle_ctx_error(ctx));
        tulle_ctx_free(ctx);
        return 1;
    }

    /* C belongs to us now; we look at it through a view, too.  Its rows are sorted.  The types say how to
     * read the arrays: indices as B's, row pointers of 32 bits wherever they fit. */
    const tulle_csr c = tulle_matrix_view(C);
    const int32_t  *c_ptr = c.row_ptr, *c_col = c.col_idx;
    const double   *c_val = c.values;
    for (int64_t i = 0; i < c.rows; i++)
        for (int32_t k = c_ptr[i]; k < c_ptr[i + 1]; k++)
            printf("C(%lld, %d) = %g\n", (long long)i, (int)c_col[k], c_val[k]);

    const int right = c.nnz == 3 && c_val[0] == 10 && c_val[1] == 3 && c_val[2] == 15;
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
    return right ? 0 : 1;
}
