/* SPDX-License-Identifier: MIT
 *
 * fuzz_mtx.c - reads any bytes as a Matrix Market file.  If that succeeds, the matrix must be valid and the same
 * with one thread and with two, and writing it and reading it again must give the same matrix. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"

static int same(const tulle_csr *a, const tulle_csr *b)
{
    size_t ptr = a->ptr_type == TULLE_I32 ? 4 : 8, idx = a->idx_type == TULLE_I32 ? 4 : 8;
    size_t val = a->val_type == TULLE_CF64 ? 2 : 1;
    if (a->rows != b->rows || a->cols != b->cols || a->nnz != b->nnz || a->ptr_type != b->ptr_type
        || a->idx_type != b->idx_type || a->val_type != b->val_type) return 0;
    if (memcmp(a->row_ptr, b->row_ptr, ptr * ((size_t)a->rows + 1)) != 0) return 0;
    if (memcmp(a->col_idx, b->col_idx, idx * (size_t)a->nnz) != 0) return 0;
    const double *x = a->values, *y = b->values;
    for (size_t k = 0; k < val * (size_t)a->nnz; k++) {
        if (x[k] != x[k] && y[k] != y[k]) continue;             /* the bits of a NaN are not preserved */
        if (memcmp(&x[k], &y[k], 8) != 0) return 0;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tulle_ctx *ctx = fuzz_context();
    char path[128];
    snprintf(path, sizeof path, "%s", fuzz_path(".mtx"));
    fuzz_put(path, data, bytes);
    tulle_matrix *A = fuzz_read(path), *B = NULL;
    if (A) {
        tulle_csr a = tulle_matrix_view(A);
        fuzz_expect(tulle_ctx_set_threads(ctx, 1) == TULLE_OK, "one thread");
        B = fuzz_read(path);
        fuzz_expect(tulle_ctx_set_threads(ctx, 2) == TULLE_OK, "two threads");
        tulle_csr b = tulle_matrix_view(B);
        fuzz_expect(B && same(&a, &b), "one thread read something else");
        tulle_matrix_free(B);
        fuzz_expect(tulle_write(ctx, path, &a) == TULLE_OK, tulle_ctx_error(ctx));
        B = fuzz_read(path);
        b = tulle_matrix_view(B);
        fuzz_expect(B && same(&a, &b), "it did not come back");
        tulle_matrix_free(B);
    }
    tulle_matrix_free(A);
    remove(path);
    return 0;
}
