/* SPDX-License-Identifier: MIT
 *
 * files_help.h - what the tests of files share: a context, functions to create and compare files and
 * matrices, and a main() that runs in a temporary folder, which must be empty again at the end. */
#ifndef TULLE_FILES_HELP_H
#define TULLE_FILES_HELP_H
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "matrix/files.h"
#include "test.h"

enum { THREADS = 4 };

static tulle_ctx *ctx;

static uint64_t random_state = 88172645463325252u;

static inline uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x9E3779B97F4A7C15u;
}

/* Checks the exact text of the last error message. */
#define SAYS(...) CHECK(strcmp(tulle_ctx_error(ctx), __VA_ARGS__) == 0, "%s", tulle_ctx_error(ctx))

/* ---- files */

static inline void put_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) abort();
}

static inline char *get_bytes(const char *path, size_t *bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) abort();
    char *data = malloc((size_t)st.st_size + 1);
    if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) abort();
    data[st.st_size] = 0;
    fclose(f);
    *bytes = (size_t)st.st_size;
    return data;
}

static inline int files_here(void)
{
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return n;
}

/* gzip of anything; 0 bytes when there is no zlib. */
static inline size_t pack(const char *data, size_t bytes, char *to, size_t room)
{
    tl_packer *p = NULL;
    if (tl_packer_create((tl_base *)(void *)ctx, &p) != TULLE_OK) return 0;
    size_t n = (size_t)tl_gz_pack(p, data, (int64_t)bytes, to, (int64_t)room);
    tl_packer_free((tl_base *)(void *)ctx, p);
    return n;
}

static inline tulle_matrix *read_text(const char *text)
{
    tulle_matrix *A = NULL;
    put_bytes("t.mtx", text, strlen(text));
    tulle_status status = tulle_read(ctx, "t.mtx", &A);
    CHECK(status == TULLE_OK, "%s\n%s", tulle_ctx_error(ctx), text);
    remove("t.mtx");
    return A;
}

static inline void refuses(const char *text, size_t bytes, const char *sentence)
{
    tulle_matrix *A = NULL;
    put_bytes("t.mtx", text, bytes);
    tulle_status status = tulle_read(ctx, "t.mtx", &A);
    CHECK(status == TULLE_EFORMAT, "%s for\n%s", tulle_status_name(status), text);
    CHECK(A == NULL, "a matrix came with an error");
    CHECK(strcmp(tulle_ctx_error(ctx), sentence) == 0, "\n    said     %s\n    expected %s",
          tulle_ctx_error(ctx), sentence);
    tulle_matrix_free(A);
    remove("t.mtx");
}

/* ---- matrices */

static inline tl_c64 entry_at(const tulle_csr *A, int64_t i, int64_t j, bool *there)
{
    *there = false;
    for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
        if (tl_get(A->col_idx, A->idx_type, k) != j) continue;
        *there = true;
        return tl_value_load(A->val_type, A->values, k);
    }
    return (tl_c64){0, 0};
}

/* A is rows x cols with these values; NAN: no entry there. */
static inline void is_dense(const tulle_matrix *M, int64_t rows, int64_t cols, const double *re,
                            const double *im)
{
    REQUIRE(M, "there is no matrix");
    tulle_csr A = tulle_matrix_view(M);
    REQUIRE(A.rows == rows && A.cols == cols, "%" PRId64 " x %" PRId64, A.rows, A.cols);
    CHECK(tulle_csr_check(ctx, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            bool there;
            tl_c64 v = entry_at(&A, i, j, &there);
            double want = re[i * cols + j];
            CHECK(there == !isnan(want), "(%" PRId64 ",%" PRId64 ") is %sthere", i, j, there ? "" : "not ");
            if (!there || isnan(want)) continue;
            CHECK(v.re == want && v.im == (im ? im[i * cols + j] : 0), "(%" PRId64 ",%" PRId64 ") = %g%+gi",
                  i, j, v.re, v.im);
        }
}

static inline bool same_matrix(const tulle_csr *A, const tulle_csr *B)
{
    if (A->rows != B->rows || A->cols != B->cols || A->nnz != B->nnz || A->val_type != B->val_type)
        return false;
    for (int64_t i = 0; i <= A->rows; i++)
        if (tl_row_begin(A, i) != tl_row_begin(B, i)) return false;
    for (int64_t k = 0; k < A->nnz; k++)
        if (tl_get(A->col_idx, A->idx_type, k) != tl_get(B->col_idx, B->idx_type, k)) return false;
    return memcmp(A->values, B->values, (size_t)A->nnz * tl_type_size(A->val_type)) == 0;
}

typedef struct made { int32_t *ptr, *col; double *val; tulle_csr view; } made;

static inline made make_random(int rows, int cols, int per_row)
{
    made m = {.ptr = malloc(((size_t)rows + 1) * 4), .col = malloc((size_t)rows * (size_t)per_row * 4),
              .val = malloc((size_t)rows * (size_t)per_row * 8)};
    if (!m.ptr || !m.col || !m.val) abort();
    int n = 0, step = cols / per_row;
    for (int i = 0; i < rows; i++) {
        m.ptr[i] = n;
        for (int k = 0; k < per_row; k++) {
            m.col[n] = k * step + (int)(next_random() % (uint64_t)step);
            m.val[n++] = ldexp((double)(int64_t)(next_random() >> 11), -53) - 0.25;
        }
    }
    m.ptr[rows] = n;
    m.view = tulle_csr_f64_i32(rows, cols, m.ptr, m.col, m.val);
    return m;
}

static inline void free_made(made *m)
{
    free(m->ptr);
    free(m->col);
    free(m->val);
}

static inline void nothing_is_left_in_the_folder(void)
{
    CHECK(files_here() == 0, "%d files are here", files_here());
}

static inline int files_main(int argc, char **argv, const test_case *cases, int count)
{
    char folder[] = "test_files-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) return 1;
    int failed = test_main(argc, argv, cases, count);
    tulle_ctx_free(ctx);
    if (chdir("..") != 0 || rmdir(folder) != 0) failed = 1;
    return failed;
}

#define FILES_MAIN(...)                                                     \
    int main(int argc, char **argv)                                         \
    {                                                                       \
        static const test_case cases[] = {__VA_ARGS__, TEST(nothing_is_left_in_the_folder)}; \
        return files_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases)); \
    }

#endif
