/* SPDX-License-Identifier: MIT
 *
 * fuzz_tulle.c - .tulle files.  An input that begins with the magic number is a file: it is read unchanged, and
 * again with a correct header checksum, so that the later checks are tested, too.  Any other input provides the
 * sizes, types and arrays of a usually invalid matrix, which is written with correct checksums, so that only the
 * check of the pattern can detect it. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"
#include "matrix/files.h"

enum { HEADER = 256, SUM_AT = 248 };

static void read_file(const char *path, const void *data, size_t bytes)
{
    fuzz_put(path, data, bytes);
    tulle_matrix_free(fuzz_read(path));
}

/* Arrays from the input, repeated as often as needed. */
static void write_wrong(const char *path, const uint8_t *data, size_t bytes)
{
    static int64_t room[3][1024];
    if (bytes < 8) return;
    tulle_csr A = {.rows = data[0] % 32, .cols = data[1] % 64, .nnz = data[2] % 64,
                   .ptr_type = data[3] % 2 ? TULLE_I32 : TULLE_I64,
                   .idx_type = data[4] % 2 ? TULLE_I32 : TULLE_I64,
                   .val_type = (tulle_type)(1 + data[5] % 4)};
    for (int a = 0; a < 3; a++)
        for (int k = 0; k < 1024; k++) {
            uint8_t x = data[(size_t)(6 + a + k) % bytes];
            if (a == 2) room[a][k] = x;
            else if ((a == 0 ? A.ptr_type : A.idx_type) == TULLE_I64) room[a][k] = (int8_t)x % 64;
            else ((int32_t *)(void *)room[a])[k] = (int8_t)x % 64;
        }
    A.row_ptr = room[0];
    A.col_idx = room[1];
    A.values = data[6] % 8 ? room[2] : NULL;
    if (data[7] % 2) tl_put(room[0], A.ptr_type, 0, 0);         /* so that later checks are reached, too */
    if (data[7] % 4 > 1) tl_put(room[0], A.ptr_type, A.rows, A.nnz);
    tl_base *b = (tl_base *)(void *)fuzz_context();
    fuzz_expect(tl_binary_write(b, path, &A) == TULLE_OK, b->error);
    tulle_matrix_free(fuzz_read(path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t copy[FUZZ_MOST];
    char path[128];
    snprintf(path, sizeof path, "%s", fuzz_path(".tulle"));
    if (bytes > FUZZ_MOST) return 0;
    if (!tl_binary_begins((const char *)data, (int64_t)bytes)) {
        write_wrong(path, data, bytes);
    } else {
        read_file(path, data, bytes);
        if (bytes >= HEADER) {
            memcpy(copy, data, bytes);
            memset(copy + SUM_AT, 0, 8);
            uint64_t sum = tl_hash(copy, HEADER, 0);
            memcpy(copy + SUM_AT, &sum, 8);
            read_file(path, copy, bytes);
        }
    }
    remove(path);
    return 0;
}
