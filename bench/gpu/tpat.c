/* SPDX-License-Identifier: MIT
 * tpat.c - reads packed patterns; .xz is unpacked by the command xz, or by Python where there is none. */
#define _POSIX_C_SOURCE 200809L
#include "tpat.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

bool tpat_name(const char *path)
{
    return ends(path, ".tpat") || ends(path, ".tpat.xz");
}

double tpat_value(uint64_t i)
{
    uint64_t z = i * UINT64_C(0x9E3779B97F4A7C15) + 0x1234567;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (z & 1 ? -1.0 : 1.0) * (double)(1 + (z >> 60));
}

/* Reads the next number; sets *bad at the end of the file or if it is invalid. */
static uint64_t number(FILE *in, bool *bad)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        int c = getc_unlocked(in);
        if (c == EOF) break;
        x |= (uint64_t)(c & 127) << shift;
        if (!(c & 128)) return x;
    }
    *bad = true;
    return 0;
}

static bool rows_of(FILE *in, tpat *A, int64_t rows, int64_t cols, int64_t nnz)
{
    bool bad = false;
    A->row_ptr[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t n = number(in, &bad);
        if (bad || n > (uint64_t)(nnz - A->row_ptr[i])) return false;
        A->row_ptr[i + 1] = A->row_ptr[i] + (int32_t)n;
    }
    int64_t first = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t c = 0;
        for (int32_t k = A->row_ptr[i]; k < A->row_ptr[i + 1]; k++) {
            uint64_t z = number(in, &bad);
            if (k == A->row_ptr[i]) c = first += (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
            else c += 1 + (int64_t)z;
            if (bad || c < 0 || c >= cols) return false;
            A->col_idx[k] = (int32_t)c;
            A->values[k] = tpat_value((uint64_t)k);
        }
    }
    return A->row_ptr[rows] == nnz;
}

static FILE *unpacked(const char *path, bool *pipe)
{
    char command[8192];
    *pipe = ends(path, ".xz");
    if (!*pipe) return fopen(path, "rb");
    FILE *there = fopen(path, "rb");
    if (!there || strchr(path, '\'')) return there ? (fclose(there), NULL) : NULL;
    fclose(there);
    snprintf(command, sizeof command,
             "if command -v xz >/dev/null; then exec xz -dc '%s'; fi; exec python3 -c 'import lzma, "
             "shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' '%s'", path, path);
    return popen(command, "r");
}

bool tpat_read(const char *path, tpat *A)
{
    bool pipe = false, good = false;
    char magic[8];
    memset(A, 0, sizeof *A);
    FILE *in = unpacked(path, &pipe);
    if (!in) {
        fprintf(stderr, "%s cannot be opened\n", path);
        return false;
    }
    if (fread(magic, 8, 1, in) == 1 && memcmp(magic, "TPAT1\0\0", 8) == 0) {
        bool bad = false;
        uint64_t rows = number(in, &bad), cols = number(in, &bad), nnz = number(in, &bad);
        if (!bad && rows < INT32_MAX && cols <= INT32_MAX && nnz <= INT32_MAX) {
            A->row_ptr = malloc((size_t)(rows + 1) * sizeof *A->row_ptr);
            A->col_idx = malloc((size_t)(nnz + 1) * sizeof *A->col_idx);
            A->values = malloc((size_t)(nnz + 1) * sizeof *A->values);
            good = A->row_ptr && A->col_idx && A->values
                && rows_of(in, A, (int64_t)rows, (int64_t)cols, (int64_t)nnz);
            if (good)
                A->view = tulle_csr_f64_i32((int64_t)rows, (int64_t)cols, A->row_ptr, A->col_idx, A->values);
        }
    }
    if (pipe) pclose(in);
    else fclose(in);
    if (!good) {
        fprintf(stderr, "%s is no packed pattern, or damaged\n", path);
        tpat_free(A);
    }
    return good;
}

void tpat_free(tpat *A)
{
    free(A->row_ptr);
    free(A->col_idx);
    free(A->values);
    memset(A, 0, sizeof *A);
}
