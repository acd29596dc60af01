/* SPDX-License-Identifier: MIT
 *
 * fuzz_dense.c - reads any bytes as a .npy file or a Matrix Market array.  If that succeeds, the matrix must be
 * valid, and writing it as .npy and reading it again must give the same bytes of values. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"

static tulle_dense_matrix *read_dense(const char *path)
{
    tulle_ctx *ctx = fuzz_context();
    tulle_dense_matrix *A = NULL;
    tulle_status status = tulle_dense_read(ctx, path, &A);
    fuzz_expect((status == TULLE_OK) == (A != NULL), "half a result");
    fuzz_expect(status == TULLE_OK || tulle_ctx_error(ctx)[0], "no sentence");
    return A;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const size_t size[] = {0, 4, 8, 8, 16};
    tulle_ctx *ctx = fuzz_context();
    char path[128];
    snprintf(path, sizeof path, "%s", fuzz_path(".npy"));
    fuzz_put(path, data, bytes);
    tulle_dense_matrix *A = read_dense(path), *B = NULL;
    if (A) {
        tulle_dense a = tulle_dense_view(A);
        fuzz_expect(a.rows >= 0 && a.cols >= 0 && a.val_type >= TULLE_F32 && a.val_type <= TULLE_CF64, "no matrix");
        fuzz_expect(tulle_dense_write(ctx, path, &a) == TULLE_OK, tulle_ctx_error(ctx));
        B = read_dense(path);
        tulle_dense b = tulle_dense_view(B);
        fuzz_expect(B && a.rows == b.rows && a.cols == b.cols && a.order == b.order && a.val_type == b.val_type, "another shape");
        fuzz_expect(memcmp(a.values, b.values, (size_t)(a.rows * a.cols) * size[a.val_type]) == 0, "it did not come back");
    }
    tulle_dense_free(A);
    tulle_dense_free(B);
    remove(path);
    return 0;
}
