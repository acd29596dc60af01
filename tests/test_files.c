/* SPDX-License-Identifier: MIT
 *
 * test_files.c - reading and writing: every banner, every kind of symmetry, every error with its sentence,
 * numbers that must come back bit for bit, and files that are cut, flipped, or lie about their sizes.
 * (Decimals by themselves: test_numbers.c.)
 * Works in a folder of its own, which must be empty again at the end. */
#define _XOPEN_SOURCE 700
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

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x9E3779B97F4A7C15u;
}

/* ---- files */

static void put_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) abort();
}

static char *get_bytes(const char *path, size_t *bytes)
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

static int files_here(void)
{
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

/* gzip of anything; 0 bytes when there is no zlib. */
static size_t pack(const char *data, size_t bytes, char *to, size_t room)
{
    tl_packer *p = NULL;
    if (tl_packer_create((tl_base *)(void *)ctx, &p) != TULLE_OK) return 0;
    size_t n = (size_t)tl_gz_pack(p, data, (int64_t)bytes, to, (int64_t)room);
    tl_packer_free((tl_base *)(void *)ctx, p);
    return n;
}

static tulle_matrix *read_text(const char *text)
{
    tulle_matrix *A = NULL;
    put_bytes("t.mtx", text, strlen(text));
    tulle_status status = tulle_read(ctx, "t.mtx", &A);
    CHECK(status == TULLE_OK, "%s\n%s", tulle_ctx_error(ctx), text);
    remove("t.mtx");
    return A;
}

static void refuses(const char *text, size_t bytes, const char *sentence)
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

static tl_c64 entry_at(const tulle_csr *A, int64_t i, int64_t j, bool *there)
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
static void is_dense(const tulle_matrix *M, int64_t rows, int64_t cols, const double *re, const double *im)
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

static bool same_matrix(const tulle_csr *A, const tulle_csr *B)
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

static made make_random(int rows, int cols, int per_row)
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

static void free_made(made *m)
{
    free(m->ptr);
    free(m->col);
    free(m->val);
}

/* ---- banners */

static void every_banner_is_read_or_refused_with_a_reason(void)
{
    static const char *const fields[] = {"real", "double", "integer", "unsigned-integer", "complex", "pattern"};
    static const char *const values[] = {" 5", " 5", " 5", " 5", " 5 0", ""};
    static const char *const kinds[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
    for (int f = 0; f < 6; f++)
        for (int k = 0; k < 4; k++)
            for (int array = 0; array < 2; array++) {
                char text[256];
                bool pattern = f == 5, complex_ = f == 4;
                bool allowed = !(k == 3 && !complex_) && !(pattern && (array || k == 2));
                int count = k == 0 ? 4 : k == 2 ? 1 : 3;
                int n = snprintf(text, sizeof text, "%%%%MatrixMarket matrix %s %s %s\n",
                                 array ? "array" : "coordinate", fields[f], kinds[k]);
                if (array) {
                    n += snprintf(text + n, sizeof text - (size_t)n, "2 2\n");
                    for (int e = 0; e < count; e++)     /* only A(2,1) is not zero */
                        n += snprintf(text + n, sizeof text - (size_t)n, "%s\n",
                                      e == (k == 2 ? 0 : 1) && !pattern ? values[f] + 1 : complex_ ? "0 0" : "0");
                } else {
                    n += snprintf(text + n, sizeof text - (size_t)n, "2 2 1\n2 1%s\n", values[f]);
                }
                put_bytes("t.mtx", text, (size_t)n);
                tulle_matrix *A = NULL;
                tulle_status status = tulle_read(ctx, "t.mtx", &A);
                CHECK((status == TULLE_OK) == allowed, "%s: %s", text, tulle_ctx_error(ctx));
                if (!allowed) CHECK(strstr(tulle_ctx_error(ctx), "t.mtx:1:") != NULL, "%s", tulle_ctx_error(ctx));
                if (status == TULLE_OK) {
                    double want[4] = {NAN, NAN, 5, NAN};
                    if (k != 0) want[1] = k == 2 ? -5 : 5;
                    if (pattern) want[2] = 1, want[1] = k == 0 ? NAN : 1;
                    is_dense(A, 2, 2, want, NULL);
                    CHECK(tulle_matrix_view(A).val_type == (complex_ ? TULLE_C64 : TULLE_F64), "its type");
                }
                tulle_matrix_free(A);
                remove("t.mtx");
            }
}

static void words_may_be_in_any_case_and_lines_end_with_crlf(void)
{
    static const double want[4] = {1.5, NAN, NAN, -2};
    tulle_matrix *A = read_text("%%matrixmarket MATRIX Coordinate ReAL GENERAL\r\n% hello\r\n\r\n2 2 2\r\n"
                                "1 1 1.5\r\n\r\n2 2 -2\r\n");
    is_dense(A, 2, 2, want, NULL);
    tulle_matrix_free(A);
}

static void comments_and_blank_lines_may_stand_anywhere(void)
{
    static const double want[4] = {1, NAN, 3, 2};
    tulle_matrix *A = read_text("%%MatrixMarket matrix coordinate real general\n%\n\n  \t\n%%%\n  % x\n"
                                "  2\t2  3  \n% here\n 1 1 1\n\n%and here 9 9 9\n\t2  2\t2 \n \n2 1 3\n% end\n\n");
    is_dense(A, 2, 2, want, NULL);
    tulle_matrix_free(A);
}

static void a_last_line_without_newline_counts(void)
{
    static const double want[1] = {7};
    tulle_matrix *A = read_text("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 7");
    is_dense(A, 1, 1, want, NULL);
    tulle_matrix_free(A);
}

static void a_comment_may_be_longer_than_any_buffer(void)
{
    static const double want[1] = {7};
    size_t n = 3000000;
    char *text = malloc(n + 200), *p = text;
    p += sprintf(p, "%%%%MatrixMarket matrix coordinate real general\n%%");
    memset(p, 'x', n);
    p += n;
    p += sprintf(p, "\n1 1 1\n%% y\n1 1 7\n");
    tulle_matrix *A = read_text(text);
    is_dense(A, 1, 1, want, NULL);
    tulle_matrix_free(A);
    *strchr(strchr(text, '\n'), '%') = '1';
    refuses(text, (size_t)(p - text), "t.mtx:2:1: the line is longer than 131072 bytes");
    free(text);
}

static void empty_matrices_have_no_entries_but_a_shape(void)
{
    static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {3, 4}};
    for (size_t s = 0; s < 4; s++)
        for (int array = 0; array < 2; array++) {
            char text[128];
            snprintf(text, sizeof text, array ? "%%%%MatrixMarket matrix array real general\n%d %d\n"
                                              : "%%%%MatrixMarket matrix coordinate real general\n%d %d 0\n",
                     (int)shapes[s][0], (int)shapes[s][1]);
            if (array && s == 3) strcat(text, "0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n");
            tulle_matrix *A = read_text(text);
            tulle_csr v = tulle_matrix_view(A);
            CHECK(v.rows == shapes[s][0] && v.cols == shapes[s][1] && v.nnz == 0, "%s", text);
            CHECK(tulle_csr_check(ctx, &v) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            static const char *const names[] = {"e.mtx", "e.tulle", "e.mtx.gz"};
            for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
                tulle_matrix *B = NULL;
                CHECK(tulle_write(ctx, names[f], &v) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                CHECK(tulle_read(ctx, names[f], &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                tulle_csr w = tulle_matrix_view(B);
                CHECK(w.rows == v.rows && w.cols == v.cols && w.nnz == 0, "%s changed its shape", names[f]);
                tulle_matrix_free(B);
                remove(names[f]);
            }
            tulle_matrix_free(A);
        }
}

static void halves_of_symmetric_matrices_are_unfolded(void)
{
    static const double sym[9] = {1, 2, NAN, 2, NAN, 3, NAN, 3, 4};
    tulle_matrix *A = read_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 3\n"
                                "3 3 4\n");
    is_dense(A, 3, 3, sym, NULL);
    tulle_matrix_free(A);
    /* the upper half, and out of order */
    A = read_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n3 3 4\n2 3 3\n1 2 2\n1 1 1\n");
    is_dense(A, 3, 3, sym, NULL);
    tulle_matrix_free(A);
    static const double skew[9] = {NAN, -2, NAN, 2, 0, -3, NAN, 3, NAN};
    A = read_text("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 3\n2 1 2\n2 2 0\n3 2 3\n");
    is_dense(A, 3, 3, skew, NULL);
    tulle_matrix_free(A);
    static const double re[4] = {1, 2, 2, 5}, im[4] = {0, -3, 3, 0};
    A = read_text("%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 1 0\n2 1 2 3\n2 2 5 0\n");
    is_dense(A, 2, 2, re, im);
    tulle_matrix_free(A);
    static const double skew_re[4] = {NAN, -2, 2, NAN}, skew_im[4] = {0, -3, 3, 0};
    A = read_text("%%MatrixMarket matrix coordinate complex skew-symmetric\n2 2 1\n2 1 2 3\n");
    is_dense(A, 2, 2, skew_re, skew_im);
    tulle_matrix_free(A);
}

static void arrays_go_column_by_column_and_zeros_are_left_out(void)
{
    static const double general[6] = {1, 3, NAN, 2, 4, 6};
    tulle_matrix *A = read_text("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n0.0\n6\n");
    is_dense(A, 2, 3, general, NULL);
    tulle_matrix_free(A);
    static const double sym[9] = {1, 2, 3, 2, 4, 5, 3, 5, 6};
    A = read_text("%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n");
    is_dense(A, 3, 3, sym, NULL);
    tulle_matrix_free(A);
    static const double skew[9] = {NAN, -1, -2, 1, NAN, -3, 2, 3, NAN};
    A = read_text("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
    is_dense(A, 3, 3, skew, NULL);
    tulle_matrix_free(A);
    static const double re[4] = {1, 2, 2, 4}, im[4] = {0, -5, 5, 0};
    A = read_text("%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 5\n4 0\n");
    is_dense(A, 2, 2, re, im);
    tulle_matrix_free(A);
    const char *bad = "%%MatrixMarket matrix array complex hermitian\n1 1\n1 2\n";
    refuses(bad, strlen(bad), "t.mtx: the diagonal of a hermitian matrix must be real, and row 1 has 1+2i");
}

static void entries_in_one_place_are_added_in_the_order_of_the_file(void)
{
    static const double first[1] = {1}, second[1] = {0};
    tulle_matrix *A = read_text("%%MatrixMarket matrix coordinate real general\n1 1 3\n1 1 1e16\n1 1 -1e16\n1 1 1\n");
    is_dense(A, 1, 1, first, NULL);
    tulle_matrix_free(A);
    A = read_text("%%MatrixMarket matrix coordinate real general\n1 1 3\n1 1 1\n1 1 1e16\n1 1 -1e16\n");
    is_dense(A, 1, 1, second, NULL);
    tulle_matrix_free(A);
}

static void indices_are_narrow_where_they_fit(void)
{
    tulle_matrix *A = read_text("%%MatrixMarket matrix coordinate real general\n2 3000000000 1\n2 3000000000 5\n");
    REQUIRE(A, "not read");
    tulle_csr v = tulle_matrix_view(A);
    CHECK(v.idx_type == TULLE_I64 && v.ptr_type == TULLE_I32 && v.cols == 3000000000, "its types");
    CHECK(((const int64_t *)v.col_idx)[0] == 2999999999, "its column");
    tulle_matrix_free(A);
    A = read_text("%%MatrixMarket matrix coordinate complex symmetric\n2000 2000 3\n1500 1400 1 2\n7 7 3 4\n"
                  "9 8 1 1\n");
    REQUIRE(A, "not read");
    v = tulle_matrix_view(A);
    CHECK(v.idx_type == tl_index_for(2000) && v.nnz == 5, "its types");
    CHECK(tulle_csr_check(ctx, &v) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    bool there;
    CHECK(entry_at(&v, 1399, 1499, &there).im == 2 && there, "the mirrored entry");
    tulle_matrix_free(A);
}

/* ---- errors */

static void every_mistake_has_its_line_and_column(void)
{
    static const struct { const char *text, *sentence; } cases[] = {
        {"%%MatrixMarket vector coordinate real general\n", "1:16: \"matrix\" was expected, found \"vector\""},
        {"%%MatrixMarket matrix sparse real general\n",
         "1:23: \"coordinate\" or \"array\" was expected, found \"sparse\""},
        {"%%MatrixMarket matrix coordinate quaternion general\n",
         "1:34: \"real\", \"integer\", \"complex\" or \"pattern\" was expected, found \"quaternion\""},
        {"%%MatrixMarket matrix coordinate real diagonal\n",
         "1:39: \"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\" was expected, found \"diagonal\""},
        {"%%MatrixMarket matrix coordinate real\n",
         "1:38: \"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\" was expected, found the end of"
         " the line"},
        {"%%MatrixMarket matrix coordinate real general twice\n",
         "1:47: the end of the line was expected, found \"twice\""},
        {"%%MatrixMarketing matrix coordinate real general\n",
         "1:1: %%MatrixMarket was expected, found \"%%MatrixMarketing\""},
        {"%%MatrixMarket matrix coordinate real hermitian\n", "1:39: only a complex matrix can be hermitian"},
        {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
         "1:42: a pattern cannot be skew-symmetric"},
        {"%%MatrixMarket matrix array pattern general\n", "1:29: a pattern cannot be stored as an array"},
        {"%%MatrixMarket matrix coordinate real general\n% no more\n", "3:1: the file ends before its sizes"},
        {"%%MatrixMarket matrix coordinate real general\n3 x 1\n",
         "2:3: the number of columns was expected, found \"x\""},
        {"%%MatrixMarket matrix coordinate real general\n-3 3 1\n",
         "2:1: the number of rows was expected, found \"-3\""},
        {"%%MatrixMarket matrix coordinate real general\n3 3\n",
         "2:4: the number of entries was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1 1\n",
         "2:7: the end of the line was expected, found \"1\""},
        {"%%MatrixMarket matrix array real general\n3 3 1\n",
         "2:5: the end of the line was expected, found \"1\""},
        {"%%MatrixMarket matrix coordinate real general\n99999999999999999999 3 1\n",
         "2:1: the number of rows was expected, found \"99999999999999999999\""},
        {"%%MatrixMarket matrix coordinate real general\n9000000000000000000 3 1\n",
         "2:1: this is more than 2^60, which no matrix can have"},
        {"%%MatrixMarket matrix array real general\n9000000000 9000000000\n1\n",
         "2:12: an array of this size cannot be addressed"},
        {"%%MatrixMarket matrix coordinate real symmetric\n3 4 1\n1 1 1\n",
         "2:3: a symmetric, skew-symmetric or hermitian matrix must be square"},
        {"%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 1 1\n4 2 1\n",
         "5:1: row index 4 is outside 1..3"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n  3   0 1\n",
         "4:7: column index 0 is outside 1..3"},
        {"%%MatrixMarket matrix coordinate real general\n0 3 1\n1 1 1\n", "3:1: row index 1, but there are none"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n-1 1 1\n",
         "3:1: a row index was expected, found \"-1\""},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1.5 1 1\n",
         "3:1: a row index was expected, found \"1.5\""},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1         \n",
         "3:11: a column index was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1      \n",
         "3:10: a number was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1,5\n",
         "3:5: a number was expected, found \"1,5\""},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1e\n",
         "3:5: a number was expected, found \"1e\""},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1 2\n",
         "3:7: the line goes on after the entry with \"2\""},
        {"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 1 1\n",
         "3:5: the line goes on after the entry with \"1\""},
        {"%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 1.5\n",
         "3:5: an integer was expected, found \"1.5\""},
        {"%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 1 1   \n",
         "3:9: an imaginary part was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n",
         "3:1: the diagonal of a skew-symmetric matrix must be zero"},
        {"%%MatrixMarket matrix coordinate complex hermitian\n3 3 1\n2 2 1 1\n",
         "3:1: the diagonal of a hermitian matrix must be real"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1\n2 2 2\n",
         "4:1: one entry more than the 1 that the file promises"},
        {"%%MatrixMarket matrix array real general\n1 1\n1\n\n 2\n",
         "5:2: one entry more than the 1 that the file promises"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.00000000\n",
         "3: the file ends here with 1 entries; it promises 2"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 200\n1 1 1\n",
         "2: promises 200 entries, but the rest of the file has room for at most 1"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1000000000000000000\n1 1 1\n",
         "2: promises 1000000000000000000 entries, but the rest of the file has room for at most 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "t.mtx:%s", cases[i].sentence);
        refuses(cases[i].text, strlen(cases[i].text), sentence);
    }
    static const char zero[] = "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 \0 1\n";
    refuses(zero, sizeof zero - 1, "t.mtx:3:5: a number was expected, found a byte 0x00");
    static const char in_comment[] = "%%MatrixMarket matrix coordinate real general\n3 3 1\n% \0 \n1 1\n";
    refuses(in_comment, sizeof in_comment - 1,
            "t.mtx:4:4: a number was expected, found the end of the line");
}

static void what_is_no_matrix_is_called_so(void)
{
    tulle_matrix *A = NULL;
    refuses("", 0, "t.mtx: is empty");
    refuses("hello\nworld", 11, "t.mtx: is no Matrix Market file, archive of one, or .tulle file; it begins with"
                                " \"hello\"");
    refuses("\x7f" "ELF", 4, "t.mtx: is no Matrix Market file, archive of one, or .tulle file; it begins with"
                             " \"\\x7fELF\"");
    CHECK(tulle_read(ctx, "nowhere.mtx", &A) == TULLE_EIO, "a file that is not there");
    CHECK(strcmp(tulle_ctx_error(ctx), "nowhere.mtx: cannot be opened: No such file or directory") == 0, "%s",
          tulle_ctx_error(ctx));
    CHECK(tulle_read(ctx, ".", &A) == TULLE_EIO, "a folder");
    CHECK(strstr(tulle_ctx_error(ctx), "cannot be read: Is a directory") != NULL, "%s", tulle_ctx_error(ctx));
}

static void the_first_mistake_is_reported_by_any_number_of_threads(void)
{
    made m = make_random(20000, 20000, 5);
    size_t bytes;
    REQUIRE(tulle_write(ctx, "m.mtx", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *text = get_bytes("m.mtx", &bytes);
    /* two mistakes, far apart */
    char *p = text;
    for (int line = 1; line < 30001; line++) p = strchr(p, '\n') + 1;
    p[0] = 'x';
    for (int line = 30001; line < 90001; line++) p = strchr(p, '\n') + 1;
    p[0] = 'y';
    put_bytes("m.mtx", text, bytes);
    for (int threads = 1; threads <= THREADS; threads++) {
        tulle_matrix *A = NULL;
        tulle_ctx_set_threads(ctx, threads);
        CHECK(tulle_read(ctx, "m.mtx", &A) == TULLE_EFORMAT, "read");
        CHECK(strncmp(tulle_ctx_error(ctx), "m.mtx:30001:1: a row index was expected, found \"x", 48) == 0, "%s",
              tulle_ctx_error(ctx));
    }
    remove("m.mtx");
    free(text);
    free_made(&m);
}

/* ---- large files, in every order, by any number of threads */

typedef struct { int row, col; double val; } triplet;

static int by_column(const void *a, const void *b)
{
    const triplet *x = a, *y = b;
    return x->col != y->col ? x->col - y->col : x->row - y->row;
}

/* wide: columns beyond 32 bits. */
static void in_every_order(bool wide)
{
    made m = make_random(30000, 9000, 6);
    int64_t n = m.view.nnz, factor = wide ? 300000 : 1;
    triplet *t = malloc((size_t)n * sizeof *t);
    int64_t *col = malloc((size_t)n * sizeof *col);
    if (!t || !col) abort();
    for (int i = 0; i < 30000; i++)
        for (int k = m.ptr[i]; k < m.ptr[i + 1]; k++) {
            t[k] = (triplet){i, m.col[k], m.val[k]};
            col[k] = factor * m.col[k];
        }
    tulle_csr want = tulle_csr_make(30000, 9000 * factor, m.ptr, TULLE_I32, col, TULLE_I64, m.val, TULLE_F64);
    for (int order = 0; order < 3; order++) {
        if (order == 1) qsort(t, (size_t)n, sizeof *t, by_column);
        for (int64_t k = n - 1; order == 2 && k > 0; k--) {
            int64_t other = (int64_t)(next_random() % (uint64_t)(k + 1));
            triplet swap = t[k];
            t[k] = t[other];
            t[other] = swap;
        }
        FILE *f = fopen("o.mtx", "w");
        fprintf(f, "%%%%MatrixMarket matrix coordinate real general\n30000 %" PRId64 " %d\n", want.cols, (int)n);
        for (int64_t k = 0; k < n; k++)
            fprintf(f, "%d %" PRId64 " %.17g\n", t[k].row + 1, factor * t[k].col + 1, t[k].val);
        fclose(f);
        for (int threads = 1; threads <= THREADS; threads++) {
            tulle_matrix *A = NULL;
            tulle_ctx_set_threads(ctx, threads);
            CHECK(tulle_read(ctx, "o.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr v = tulle_matrix_view(A);
            CHECK(v.idx_type == tl_index_for(want.cols), "columns of type %s", tl_index_name(v.idx_type));
            CHECK(same_matrix(&v, &want), "order %d on %d threads", order, threads);
            tulle_matrix_free(A);
        }
        remove("o.mtx");
    }
    free(col);
    free(t);
    free_made(&m);
}

static void the_order_of_a_file_does_not_matter(void)
{
    in_every_order(false);
}

static void the_order_of_a_file_with_wide_columns_does_not_matter(void)
{
    in_every_order(true);
}

static void a_large_symmetric_file_is_unfolded_alike_by_any_number_of_threads(void)
{
    int n = 20000;
    FILE *f = fopen("s.mtx", "w");
    fprintf(f, "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %d\n", n, n, 3 * n - 4);
    for (int j = 1; j <= n; j++)
        for (int i = j; i <= j + 3 && i <= n; i++)
            if (i != j + 2) fprintf(f, "%d %d %d\n", i, j, 7 * i + j);
    fclose(f);
    for (int threads = 1; threads <= THREADS; threads++) {
        tulle_matrix *A = NULL;
        tulle_ctx_set_threads(ctx, threads);
        CHECK(tulle_read(ctx, "s.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        REQUIRE(A, "not read");
        tulle_csr v = tulle_matrix_view(A);
        CHECK(tulle_csr_check(ctx, &v) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(v.nnz == 5 * n - 8, "%" PRId64 " entries", v.nnz);
        const double *val = v.values;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = tl_row_begin(&v, i); k < tl_row_begin(&v, i + 1); k++) {
                int64_t j = tl_get(v.col_idx, v.idx_type, k), high = i > j ? i : j, low = i + j - high;
                CHECK(val[k] == (double)(7 * (high + 1) + low + 1), "(%d,%d)", (int)i, (int)j);
            }
        tulle_matrix_free(A);
    }
    remove("s.mtx");
}

static void duplicates_far_apart_are_added_in_order_on_any_number_of_threads(void)
{
    int n = 60000;
    FILE *f = fopen("d.mtx", "w");
    fprintf(f, "%%%%MatrixMarket matrix coordinate real general\n10 10 %d\n", n);
    double sum[100] = {0};
    bool there[100] = {false};
    for (int k = 0; k < n; k++) {
        int i = (int)(next_random() % 10), j = (int)(next_random() % 10);
        double v = ldexp((double)(int64_t)(next_random() >> 11), -40);
        fprintf(f, "%d %d %.17g\n", i + 1, j + 1, v);
        sum[10 * i + j] = there[10 * i + j] ? sum[10 * i + j] + v : v;
        there[10 * i + j] = true;
    }
    fclose(f);
    for (int threads = 1; threads <= THREADS; threads++) {
        tulle_matrix *A = NULL;
        tulle_ctx_set_threads(ctx, threads);
        CHECK(tulle_read(ctx, "d.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        is_dense(A, 10, 10, sum, NULL);
        tulle_matrix_free(A);
    }
    remove("d.mtx");
}

static void a_written_file_is_the_same_for_any_number_of_threads(void)
{
    made m = make_random(30000, 500, 5);
    char *first[3] = {NULL, NULL, NULL};
    size_t bytes[3] = {0, 0, 0};
    static const char *const names[] = {"w.mtx", "w.tulle", "w.mtx.gz"};
    for (int threads = 1; threads <= THREADS; threads++)
        for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
            tulle_matrix *A = NULL;
            size_t n;
            tulle_ctx_set_threads(ctx, threads);
            CHECK(tulle_write(ctx, names[f], &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(tulle_read(ctx, names[f], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr v = tulle_matrix_view(A);
            CHECK(same_matrix(&v, &m.view), "%s on %d threads", names[f], threads);
            tulle_matrix_free(A);
            char *data = get_bytes(names[f], &n);
            if (threads == 1) {
                first[f] = data;
                bytes[f] = n;
            } else {
                CHECK(n == bytes[f] && memcmp(data, first[f], n) == 0, "%s on %d threads", names[f], threads);
                free(data);
            }
            remove(names[f]);
        }
    for (int f = 0; f < 3; f++) free(first[f]);
    free_made(&m);
}

static void reading_takes_no_more_than_twice_the_matrix(void)
{
    made m = make_random(100000, 100000, 10);
    tl_base *b = (tl_base *)(void *)ctx;
    tulle_matrix *A = NULL;
    REQUIRE(tulle_write(ctx, "p.mtx", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_threads(ctx, 2);
    uint64_t matrix = 4 * 100001 + 12 * 1000000, held = atomic_load(&b->held);
    atomic_store(&b->peak, held);
    REQUIRE(tulle_read(ctx, "p.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    uint64_t peak = atomic_load(&b->peak) - held;
    CHECK(peak <= 2 * matrix, "%.2f times the matrix", (double)peak / (double)matrix);
    tulle_matrix_free(A);
    remove("p.mtx");
    free_made(&m);
}

/* ---- numbers */

static double hard_double(int i)
{
    static const double list[] = {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308,
                                  1.7976931348623157e308, 1e308, 1e22, 1e23, 9007199254740991.0, 9007199254740993.0,
                                  123456789012345680.0, -1e-5, 0.001, 1e17, 1e16, INFINITY, -INFINITY, 1e-7, 4294967296.0};
    if (i < (int)(sizeof list / sizeof *list)) return list[i];
    uint64_t bits = next_random();
    if (i % 5 == 0) bits &= 0x800FFFFFFFFFFFFFu;        /* subnormal */
    if (i % 7 == 0) bits &= 0xFFF0000000000000u;        /* a power of two */
    if (i % 3 == 0) bits = (bits & 0x000FFFFFFFFFFFFFu) | (uint64_t)(1023 - 30 + bits % 60) << 52;
    double v;
    memcpy(&v, &bits, 8);
    return isnan(v) ? 1.5 : v;
}

static void numbers_come_back_bit_for_bit(void)
{
    enum { N = 4000 };
    int32_t *ptr = malloc((N + 1) * 4), *col = malloc(N * 4);
    double *val = malloc(2 * N * 8);
    float *val4 = malloc(2 * N * 4);
    for (int i = 0; i < N; i++) ptr[i] = i, col[i] = 0;
    ptr[N] = N;
    for (int i = 0; i < 2 * N; i++) {
        uint32_t bits = (uint32_t)next_random();
        if (i % 5 == 0) bits &= 0x807FFFFFu;
        val[i] = hard_double(i);
        memcpy(&val4[i], &bits, 4);
        if (isnan(val4[i])) val4[i] = 7.038531e-26f;    /* needs more digits than its shortest */
    }
    static const char *const names[] = {"n.mtx", "n.tulle", "n.mtx.gz"};
    for (int type = TULLE_F32; type <= TULLE_C64; type++)
        for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
            bool narrow = type == TULLE_F32 || type == TULLE_C32;
            const void *values = narrow ? (const void *)val4 : (const void *)val;
            tulle_csr A = tulle_csr_make(N, 1, ptr, TULLE_I32, col, TULLE_I32, values, (tulle_type)type);
            tulle_matrix *B = NULL, *C = NULL;
            CHECK(tulle_write(ctx, names[f], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(tulle_read(ctx, names[f], &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr v = tulle_matrix_view(B);
            CHECK(f == 1 ? v.val_type == (tulle_type)type
                         : v.val_type == (tl_type_complex((tulle_type)type) ? TULLE_C64 : TULLE_F64), "its type");
            CHECK(tulle_csr_convert(ctx, &v, (tulle_type)type, 0, 0, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            v = tulle_matrix_view(C);
            CHECK(same_matrix(&v, &A), "%s of %s", names[f], tl_type_name((tulle_type)type));
            tulle_matrix_free(B);
            tulle_matrix_free(C);
            remove(names[f]);
        }
    free(ptr);
    free(col);
    free(val);
    free(val4);
}

static void a_pattern_is_written_as_a_pattern_and_read_as_ones(void)
{
    static const int32_t ptr[] = {0, 1, 3}, col[] = {1, 0, 1};
    static const double want[4] = {NAN, 1, 1, 1};
    tulle_csr A = tulle_csr_make(2, 2, ptr, TULLE_I32, col, TULLE_I32, NULL, TULLE_F64);
    static const char *const names[] = {"a.mtx", "a.tulle"};
    for (int f = 0; f < 2; f++) {
        tulle_matrix *B = NULL;
        CHECK(tulle_write(ctx, names[f], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_read(ctx, names[f], &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        is_dense(B, 2, 2, want, NULL);
        tulle_matrix_free(B);
        remove(names[f]);
    }
}

/* ---- damage */

static const char small_text[] = "%%MatrixMarket matrix coordinate real general\n% small\n3 4 4\n1 1 1.25\n2 3 -2\n"
                                 "3 1 0.5\n3 4 8.125\n";

/* Every proper beginning is refused, except where only the last number loses digits, which no reader can
 * know; then everything else must be right. */
static void a_file_cut_anywhere_is_refused(void)
{
    size_t n = sizeof small_text - 1;
    for (size_t cut = 0; cut < n; cut++) {
        tulle_matrix *A = NULL;
        put_bytes("c.mtx", small_text, cut);
        tulle_status status = tulle_read(ctx, "c.mtx", &A);
        bool in_last = cut + 6 > n;              /* "8", "8.", "8.1", "8.12", "8.125" */
        CHECK((status == TULLE_OK) == in_last, "cut at %zu: %s", cut, tulle_ctx_error(ctx));
        if (status == TULLE_OK) {
            double want[12] = {1.25, NAN, NAN, NAN, NAN, NAN, -2, NAN, 0.5, NAN, NAN, 0};
            want[11] = strtod(strrchr(small_text, ' '), NULL);
            char digits[16];
            snprintf(digits, sizeof digits, "%.*s", (int)(5 - (n - 1 - cut)), "8.125");
            want[11] = strtod(digits, NULL);
            is_dense(A, 3, 4, want, NULL);
        } else {
            CHECK(tulle_ctx_error(ctx)[0] != 0, "no sentence");
        }
        tulle_matrix_free(A);
    }
    remove("c.mtx");
}

static void a_packed_file_cut_anywhere_is_refused(void)
{
    if (!tl_gz_here()) return;
    char packed[2048];
    size_t n = pack(small_text, sizeof small_text - 1, packed, sizeof packed);
    for (size_t cut = 0; cut <= n; cut++) {
        tulle_matrix *A = NULL;
        put_bytes("c.mtx.gz", packed, cut);
        tulle_status status = tulle_read(ctx, "c.mtx.gz", &A);
        CHECK((status == TULLE_OK) == (cut == n), "cut at %zu of %zu: %s", cut, n, tulle_ctx_error(ctx));
        tulle_matrix_free(A);
    }
    for (size_t at = 2; at < n; at++) {          /* its checksum notices what its format does not */
        tulle_matrix *A = NULL;
        packed[at] ^= 0x10;
        put_bytes("c.mtx.gz", packed, n);
        packed[at] ^= 0x10;
        tulle_status status = tulle_read(ctx, "c.mtx.gz", &A);
        bool harmless = at >= 3 && at < 10;      /* name, time and system of origin */
        CHECK(status != TULLE_OK || harmless, "byte %zu", at);
        tulle_matrix_free(A);
    }
    remove("c.mtx.gz");
}

static void a_binary_file_cut_or_flipped_anywhere_is_refused(void)
{
    static const int32_t ptr[] = {0, 1, 2, 4}, col[] = {0, 2, 0, 3};
    static const double val[] = {1.25, -2, 0.5, 8.125};
    static const double want[12] = {1.25, NAN, NAN, NAN, NAN, NAN, -2, NAN, 0.5, NAN, NAN, 8.125};
    tulle_csr A = tulle_csr_f64_i32(3, 4, ptr, col, val);
    tulle_matrix *B = NULL;
    size_t n;
    REQUIRE(tulle_write(ctx, "b.tulle", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *data = get_bytes("b.tulle", &n);
    CHECK(n == 256 + 3 * 64, "%zu bytes", n);
    CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    is_dense(B, 3, 4, want, NULL);
    tulle_matrix_free(B);
    for (size_t cut = 0; cut < n; cut++) {
        put_bytes("b.tulle", data, cut);
        CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "cut at %zu", cut);
        CHECK(strncmp(tulle_ctx_error(ctx), "b.tulle: ", 9) == 0, "%s", tulle_ctx_error(ctx));
        tulle_matrix_free(B);
    }
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit++) {
            data[at] = (char)(data[at] ^ 1 << bit);
            put_bytes("b.tulle", data, n);
            data[at] = (char)(data[at] ^ 1 << bit);
            CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "bit %d of byte %zu", bit, at);
            CHECK(strncmp(tulle_ctx_error(ctx), "b.tulle: ", 9) == 0, "%s", tulle_ctx_error(ctx));
            tulle_matrix_free(B);
        }
    char *longer = calloc(1, n + 64);
    memcpy(longer, data, n);
    put_bytes("b.tulle", longer, n + 64);
    CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "longer");
    CHECK(strcmp(tulle_ctx_error(ctx), "b.tulle: has 512 bytes and should have 448") == 0, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(B);
    free(longer);
    free(data);
    remove("b.tulle");
}

/* The checksums are right, but the matrix in it is none. */
static void a_binary_file_with_a_wrong_pattern_is_refused(void)
{
    static const int32_t ptr[] = {0, 1, 2, 4}, col[] = {0, 2, 3, 3};
    static const double val[] = {1, 2, 3, 4};
    tulle_csr A = tulle_csr_f64_i32(3, 4, ptr, col, val);
    tulle_matrix *B = NULL;
    REQUIRE(tl_write((tl_base *)(void *)ctx, "b.tulle", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "b.tulle: row 2: column 3 stands twice") == 0, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(B);
    remove("b.tulle");
}

static void a_mapped_matrix_outlives_its_file_and_context(void)
{
    made m = make_random(1000, 1000, 5);
    tulle_ctx *other = NULL;
    tulle_matrix *B = NULL;
    REQUIRE(tulle_ctx_create(NULL, NULL, &other) == TULLE_OK, "no context");
    REQUIRE(tulle_write(other, "m.tulle", &m.view) == TULLE_OK, "%s", tulle_ctx_error(other));
    REQUIRE(tulle_read(other, "m.tulle", &B) == TULLE_OK, "%s", tulle_ctx_error(other));
    tulle_ctx_free(other);
    remove("m.tulle");
    tulle_csr v = tulle_matrix_view(B);
    CHECK(((uintptr_t)v.row_ptr | (uintptr_t)v.col_idx | (uintptr_t)v.values) % 64 == 0, "its alignment");
    CHECK(same_matrix(&v, &m.view), "it changed");
    tulle_matrix_free(B);
    free_made(&m);
}

/* ---- archives */

static size_t tar_member(char *to, const char *name, const char *text, char type)
{
    size_t n = strlen(text), padded = (n + 511) / 512 * 512;
    memset(to, 0, 512 + padded);
    strncpy(to, name, 100);
    sprintf(to + 100, "0000644");
    sprintf(to + 124, "%011o", (unsigned)n);
    to[156] = type;
    memcpy(to + 257, "ustar\00000", 8);
    memset(to + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += (unsigned char)to[i];
    sprintf(to + 148, "%06o", sum);
    memcpy(to + 512, text, n);
    return 512 + padded;
}

static const char other_text[] = "%%MatrixMarket matrix array real general\n% a right-hand side, longer than the rest"
    " ............................................................................................\n1 1\n9\n";

static void archives_of_suitesparse_are_searched_for_their_matrix(void)
{
    static const double want[12] = {1.25, NAN, NAN, NAN, NAN, NAN, -2, NAN, 0.5, NAN, NAN, 8.125};
    static const struct { const char *first, *second; bool small; } cases[] = {
        {"small/small.mtx", "small/small_b.mtx", true},
        {"group/small_b.mtx", "group/small/small.mtx", false},
        {"small_b.mtx", "readme.txt", false},       /* no main matrix: the largest with a banner */
        {"a.mtx", "b.mtx", false},
    };
    char tar[8192], packed[8192];
    for (size_t c = 0; c < 4; c++)
        for (int gz = 0; gz < (tl_gz_here() ? 2 : 1); gz++) {
            bool main_second = c == 1;
            size_t n = tar_member(tar, "small/", "", '5');
            n += tar_member(tar + n, cases[c].first, main_second ? other_text : c == 0 ? small_text : other_text, '0');
            n += tar_member(tar + n, cases[c].second, main_second ? small_text : c == 0 ? other_text : small_text, '0');
            memset(tar + n, 0, 1024);
            n += 1024;
            if (gz) put_bytes("x.tar.gz", packed, pack(tar, n, packed, sizeof packed));
            else put_bytes("x.tar.gz", tar, n);
            tulle_matrix *A = NULL;
            CHECK(tulle_read(ctx, "x.tar.gz", &A) == TULLE_OK, "case %zu: %s", c, tulle_ctx_error(ctx));
            static const double nine[1] = {9};
            if (c < 2) is_dense(A, 3, 4, want, NULL);
            else is_dense(A, 1, 1, nine, NULL);
            tulle_matrix_free(A);
        }
    remove("x.tar.gz");
}

static void errors_in_archives_name_the_member(void)
{
    char tar[8192];
    tulle_matrix *A = NULL;
    size_t n = tar_member(tar, "a/a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 1\n", '0');
    put_bytes("x.tar", tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "x.tar(a/a.mtx):3:1: row index 2 is outside 1..1") == 0, "%s", tulle_ctx_error(ctx));
    put_bytes("x.tar", tar, 540);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "x.tar(a/a.mtx): the archive ends 30 bytes too early") == 0, "%s",
          tulle_ctx_error(ctx));
    n = tar_member(tar, "readme", "nothing", '0');
    memset(tar + n, 0, 1024);
    put_bytes("x.tar", tar, n + 1024);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "x.tar: the archive holds no .mtx file") == 0, "%s", tulle_ctx_error(ctx));
    tar[n] = 'x';
    put_bytes("x.tar", tar, n + 1024);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "x.tar: a header in the archive is damaged") == 0, "%s", tulle_ctx_error(ctx));
    remove("x.tar");
}

static void packed_text_may_come_in_several_members(void)
{
    static const double want[12] = {1.25, NAN, NAN, NAN, NAN, NAN, -2, NAN, 0.5, NAN, NAN, 8.125};
    char packed[4096];
    tulle_matrix *A = NULL;
    if (!tl_gz_here()) {
        put_bytes("g.mtx.gz", "\x1f\x8b\x08", 3);
        CHECK(tulle_read(ctx, "g.mtx.gz", &A) == TULLE_EFORMAT, "read");
        CHECK(strstr(tulle_ctx_error(ctx), "built without zlib") != NULL, "%s", tulle_ctx_error(ctx));
        remove("g.mtx.gz");
        return;
    }
    size_t n = pack(small_text, 70, packed, sizeof packed);
    n += pack(small_text + 70, sizeof small_text - 1 - 70, packed + n, sizeof packed - n);
    memset(packed + n, 0, 16);
    put_bytes("g.mtx.gz", packed, n + 16);       /* zeros behind it are padding */
    CHECK(tulle_read(ctx, "g.mtx.gz", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    is_dense(A, 3, 4, want, NULL);
    tulle_matrix_free(A);
    packed[n] = 'x';
    put_bytes("g.mtx.gz", packed, n + 16);
    CHECK(tulle_read(ctx, "g.mtx.gz", &A) == TULLE_EFORMAT, "read");
    CHECK(strcmp(tulle_ctx_error(ctx), "g.mtx.gz: something that is not gzip follows the packed data") == 0, "%s",
          tulle_ctx_error(ctx));
    remove("g.mtx.gz");
}

/* ---- writing */

static void an_unknown_name_is_refused_before_anything_is_written(void)
{
    made m = make_random(10, 10, 2);
    CHECK(tulle_write(ctx, "x.csv", &m.view) == TULLE_EINVAL, "x.csv");
    CHECK(strcmp(tulle_ctx_error(ctx), "x.csv: the name should end with .mtx, .mtx.gz or .tulle, which says what to"
                                       " write") == 0, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_write(ctx, ".mtx", &m.view) == TULLE_EINVAL, "no name but an ending");
    CHECK(files_here() == 0, "something was written");
    free_made(&m);
}

static int cancel_now(void *user, const char *stage, double fraction)
{
    int *left = user;
    CHECK(strcmp(stage, "read") == 0 || strcmp(stage, "write") == 0, "stage %s", stage);
    CHECK(fraction >= 0 && fraction <= 1, "fraction %g", fraction);
    return (*left)-- <= 0;
}

static void a_failed_write_leaves_the_old_file_and_nothing_else(void)
{
    made m = make_random(40000, 500, 5);
    static const char *const names[] = {"k.mtx", "k.tulle", "k.mtx.gz"};
    for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
        char path[64];
        size_t n;
        int left = 1;
        put_bytes(names[f], "old", 3);
        tulle_ctx_set_progress(ctx, cancel_now, &left);
        CHECK(tulle_write(ctx, names[f], &m.view) == TULLE_ECANCEL, "%s: %s", names[f], tulle_ctx_error(ctx));
        tulle_ctx_set_progress(ctx, NULL, NULL);
        char *data = get_bytes(names[f], &n);
        CHECK(n == 3 && memcmp(data, "old", 3) == 0, "the old file was touched");
        free(data);
        CHECK(files_here() == 1, "%d files are here", files_here());
        snprintf(path, sizeof path, "nowhere/%s", names[f]);
        CHECK(tulle_write(ctx, path, &m.view) == TULLE_EIO, "a folder that is not there");
        CHECK(strstr(tulle_ctx_error(ctx), "cannot be written: No such file or directory") != NULL, "%s",
              tulle_ctx_error(ctx));
        CHECK(tulle_write(ctx, names[f], &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(files_here() == 1, "%d files are here", files_here());
        remove(names[f]);
        mkdir(names[f], 0777);
        CHECK(tulle_write(ctx, names[f], &m.view) == TULLE_EIO, "a folder of that name");
        rmdir(names[f]);
        CHECK(files_here() == 0, "%d files are here", files_here());
    }
    free_made(&m);
}

static void a_cancelled_read_gives_no_matrix(void)
{
    made m = make_random(60000, 500, 5);
    static const char *const names[] = {"r.mtx", "r.tulle"};
    for (int f = 0; f < 2; f++) {
        int left = 0;
        tulle_matrix *A = NULL;
        REQUIRE(tulle_write(ctx, names[f], &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_set_progress(ctx, cancel_now, &left);
        tulle_ctx_set_threads(ctx, 1);
        CHECK(tulle_read(ctx, names[f], &A) == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
        tulle_ctx_set_progress(ctx, NULL, NULL);
        CHECK(A == NULL, "a matrix");
        remove(names[f]);
    }
    free_made(&m);
}

static void an_existing_file_keeps_its_permissions(void)
{
    made m = make_random(10, 10, 2);
    struct stat st;
    put_bytes("k.mtx", "old", 3);
    chmod("k.mtx", 0640);
    CHECK(tulle_write(ctx, "k.mtx", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(stat("k.mtx", &st) == 0 && (st.st_mode & 0777) == 0640, "%o", (unsigned)st.st_mode & 0777);
    remove("k.mtx");
    free_made(&m);
}

/* ---- memory that runs out */

typedef struct { int64_t live; int64_t largest; int left; } counted;

static void *counted_alloc(void *user, size_t bytes)
{
    counted *c = user;
    if (c->left-- == 0) return NULL;
    if ((int64_t)bytes > c->largest) c->largest = (int64_t)bytes;
    c->live++;
    return malloc(bytes);
}

static void counted_free(void *user, void *p)
{
    ((counted *)user)->live--;
    free(p);
}

static void sizes_that_lie_are_noticed_before_memory_is_taken(void)
{
    static const char *const lies[] = {
        "%%MatrixMarket matrix coordinate real general\n5 5 900000000\n1 1 1\n",
        "%%MatrixMarket matrix array real general\n90000 90000\n1\n",
        "%%MatrixMarket matrix coordinate real general\n1000000000000000 5 1\n1 1 1\n",
    };
    for (size_t i = 0; i < 3; i++) {
        counted c = {.left = -1};
        tulle_ctx *own = NULL;
        tulle_matrix *A = NULL;
        tulle_mem mem = {counted_alloc, counted_free, &c};
        REQUIRE(tulle_ctx_create(NULL, &mem, &own) == TULLE_OK, "no context");
        put_bytes("l.mtx", lies[i], strlen(lies[i]));
        tulle_status status = tulle_read(own, "l.mtx", &A);
        CHECK(status == (i < 2 ? TULLE_EFORMAT : TULLE_ENOMEM), "%s", tulle_ctx_error(own));
        CHECK(c.largest < 1000000, "%" PRId64 " bytes were asked for", c.largest);
        tulle_ctx_free(own);
        CHECK(c.live == 0, "%" PRId64 " blocks were not freed", c.live);
    }
    remove("l.mtx");
}

static void every_allocation_may_fail(void)
{
    made m = make_random(500, 500, 4);
    static const char *const names[] = {"f.mtx", "f.tulle", "f.mtx.gz"};
    static const char shuffled[] = "%%MatrixMarket matrix coordinate complex symmetric\n9 9 4\n9 1 1 2\n3 2 4 5\n"
                                   "1 9 3 4\n5 5 6 7\n";
    static const char array[] = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n";
    int formats = tl_gz_here() ? 3 : 2;
    for (int f = 0; f < formats + 2; f++) {
        const char *name = f < formats ? names[f] : "t.mtx";
        bool done = false;
        if (f < formats) REQUIRE(tulle_write(ctx, name, &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        else if (f == formats) put_bytes(name, shuffled, sizeof shuffled - 1);
        else put_bytes(name, array, sizeof array - 1);
        for (int n = 0; n < 200 && !done; n++) {
            counted c = {.left = -1};
            tulle_ctx *own = NULL;
            tulle_matrix *A = NULL;
            tulle_mem mem = {counted_alloc, counted_free, &c};
            REQUIRE(tulle_ctx_create(NULL, &mem, &own) == TULLE_OK, "no context");
            c.left = n;
            tulle_status status = tulle_read(own, name, &A);
            CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "%s", tulle_status_name(status));
            CHECK(status == TULLE_OK || (!A && tulle_ctx_error(own)[0]), "no sentence");
            bool read_done = status == TULLE_OK;
            tulle_matrix_free(A);
            bool write_done = true;
            if (f < formats) {
                c.left = n;
                status = tulle_write(own, name, &m.view);
                CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "%s", tulle_status_name(status));
                write_done = status == TULLE_OK;
            }
            CHECK(files_here() == 1, "%d files are here", files_here());
            done = read_done && write_done;
            tulle_ctx_free(own);
            CHECK(c.live == 0, "%" PRId64 " blocks were not freed", c.live);
        }
        CHECK(done, "%s never succeeded", name);
        remove(name);
    }
    free_made(&m);
}

static void nothing_is_left_in_the_folder(void)
{
    CHECK(files_here() == 0, "%d files are here", files_here());
}

static const test_case cases[] = {
    TEST(every_banner_is_read_or_refused_with_a_reason),
    TEST(words_may_be_in_any_case_and_lines_end_with_crlf),
    TEST(comments_and_blank_lines_may_stand_anywhere),
    TEST(a_last_line_without_newline_counts),
    TEST(a_comment_may_be_longer_than_any_buffer),
    TEST(empty_matrices_have_no_entries_but_a_shape),
    TEST(halves_of_symmetric_matrices_are_unfolded),
    TEST(arrays_go_column_by_column_and_zeros_are_left_out),
    TEST(entries_in_one_place_are_added_in_the_order_of_the_file),
    TEST(indices_are_narrow_where_they_fit),
    TEST(every_mistake_has_its_line_and_column),
    TEST(what_is_no_matrix_is_called_so),
    TEST(the_first_mistake_is_reported_by_any_number_of_threads),
    TEST(the_order_of_a_file_does_not_matter),
    TEST(the_order_of_a_file_with_wide_columns_does_not_matter),
    TEST(a_large_symmetric_file_is_unfolded_alike_by_any_number_of_threads),
    TEST(duplicates_far_apart_are_added_in_order_on_any_number_of_threads),
    TEST(a_written_file_is_the_same_for_any_number_of_threads),
    TEST(reading_takes_no_more_than_twice_the_matrix),
    TEST(numbers_come_back_bit_for_bit),
    TEST(a_pattern_is_written_as_a_pattern_and_read_as_ones),
    TEST(a_file_cut_anywhere_is_refused),
    TEST(a_packed_file_cut_anywhere_is_refused),
    TEST(a_binary_file_cut_or_flipped_anywhere_is_refused),
    TEST(a_binary_file_with_a_wrong_pattern_is_refused),
    TEST(a_mapped_matrix_outlives_its_file_and_context),
    TEST(archives_of_suitesparse_are_searched_for_their_matrix),
    TEST(errors_in_archives_name_the_member),
    TEST(packed_text_may_come_in_several_members),
    TEST(an_unknown_name_is_refused_before_anything_is_written),
    TEST(a_failed_write_leaves_the_old_file_and_nothing_else),
    TEST(a_cancelled_read_gives_no_matrix),
    TEST(an_existing_file_keeps_its_permissions),
    TEST(sizes_that_lie_are_noticed_before_memory_is_taken),
    TEST(every_allocation_may_fail),
    TEST(nothing_is_left_in_the_folder),
};

int main(int argc, char **argv)
{
    char folder[] = "test_files-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;
    int failed = test_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases));
    tulle_ctx_free(ctx);
    if (chdir("..") != 0 || rmdir(folder) != 0) failed = 1;
    return failed;
}
