/* SPDX-License-Identifier: MIT
 *
 * test_files.c - reading Matrix Market: every banner, every kind of symmetry, every error with its line and
 * column, entries in any order, any number of threads.  (Conversion of decimals: test_numbers.c.) */
#define _XOPEN_SOURCE 700
#include "files_help.h"

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
                                      e == (k != 2) && !pattern ? values[f] + 1 : complex_ ? "0 0" : "0");
                } else {
                    n += snprintf(text + n, sizeof text - (size_t)n, "2 2 1\n2 1%s\n", values[f]);
                }
                put_bytes("t.mtx", text, (size_t)n);
                tulle_matrix *A = NULL;
                tulle_status status = tulle_read(ctx, "t.mtx", &A);
                CHECK((status == TULLE_OK) == allowed, "%s: %s", text, tulle_ctx_error(ctx));
                if (!allowed)
                    CHECK(strstr(tulle_ctx_error(ctx), "t.mtx:1:") != NULL, "%s", tulle_ctx_error(ctx));
                if (status == TULLE_OK) {
                    double want[4] = {NAN, NAN, 5, NAN};
                    if (k != 0) want[1] = k == 2 ? -5 : 5;
                    if (pattern) want[2] = 1, want[1] = k == 0 ? NAN : 1;
                    is_dense(A, 2, 2, want, NULL);
                    CHECK(tulle_matrix_view(A).val_type == (complex_ ? TULLE_CF64 : TULLE_F64), "its type");
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
    /* the upper half, unsorted */
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

static void columns_may_be_as_many_as_an_index_can_name(void)
{
    static const int64_t ptr[] = {0, 1, 3}, col[] = {INT64_MAX - 1, 0, (int64_t)1 << 61};
    static const double val[] = {1, 2, 3};
    static const char *const names[] = {"w.mtx", "w.tulle"};
    tulle_csr A = tulle_csr_make(2, INT64_MAX, ptr, TULLE_I64, col, TULLE_I64, val, TULLE_F64);
    for (int f = 0; f < 2; f++) {
        tulle_matrix *B = NULL;
        CHECK(tulle_write(ctx, names[f], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_read(ctx, names[f], &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr v = tulle_matrix_view(B);
        CHECK(B && same_matrix(&v, &A), "%s is another matrix", names[f]);
        tulle_matrix_free(B);
        remove(names[f]);
    }
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
         "2:1: this is more than 2^59, and no matrix has so many"},
        {"%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 1 1\n2 1 nan\n",
         "4:5: an integer was expected, found \"nan\""},
        {"%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 1 -inf\n2 1 1\n",
         "3:5: an integer was expected, found \"-inf\""},
        {"%%MatrixMarket matrix array integer general\n1 2\n7\nInfinity\n",
         "4:1: an integer was expected, found \"Infinity\""},
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
         "3: the file ends here with 1 entries; it promises 200"},
        {"%%MatrixMarket matrix coordinate real general\n3 3 1000000000000000000\n1 1 1\n",
         "3: the file ends here with 1 entries; it promises 1000000000000000000"},
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
    SAYS("nowhere.mtx: cannot be opened: No such file or directory");
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

FILES_MAIN(TEST(every_banner_is_read_or_refused_with_a_reason),
           TEST(words_may_be_in_any_case_and_lines_end_with_crlf),
           TEST(comments_and_blank_lines_may_stand_anywhere),
           TEST(a_last_line_without_newline_counts),
           TEST(a_comment_may_be_longer_than_any_buffer),
           TEST(empty_matrices_have_no_entries_but_a_shape),
           TEST(halves_of_symmetric_matrices_are_unfolded),
           TEST(arrays_go_column_by_column_and_zeros_are_left_out),
           TEST(entries_in_one_place_are_added_in_the_order_of_the_file),
           TEST(indices_are_narrow_where_they_fit),
           TEST(columns_may_be_as_many_as_an_index_can_name),
           TEST(every_mistake_has_its_line_and_column),
           TEST(what_is_no_matrix_is_called_so),
           TEST(the_first_mistake_is_reported_by_any_number_of_threads),
           TEST(the_order_of_a_file_does_not_matter),
           TEST(the_order_of_a_file_with_wide_columns_does_not_matter),
           TEST(a_large_symmetric_file_is_unfolded_alike_by_any_number_of_threads),
           TEST(duplicates_far_apart_are_added_in_order_on_any_number_of_threads),
           TEST(reading_takes_no_more_than_twice_the_matrix))
