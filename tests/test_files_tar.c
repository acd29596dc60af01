/* SPDX-License-Identifier: MIT
 *
 * test_files_tar.c - archives: which member is the matrix, names that do not fit in a header, members
 * selected by name, and the messages. */
#define _XOPEN_SOURCE 700
#include "files_help.h"

static const char small_text[] = "%%MatrixMarket matrix coordinate real general\n% small\n3 4 4\n1 1 1.25\n"
                                 "2 3 -2\n3 1 0.5\n3 4 8.125\n";

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

static const char other_text[] = "%%MatrixMarket matrix array real general\n% a right-hand side, longer than"
    " the rest ...................................................................................\n1 1\n9\n";

static void archives_of_suitesparse_are_searched_for_their_matrix(void)
{
    static const double want[12] = {1.25, NAN, NAN, NAN, NAN, NAN, -2, NAN, 0.5, NAN, NAN, 8.125};
    static const struct { const char *first, *second; } cases[] = {
        {"small/small.mtx", "small/small_b.mtx"},
        {"group/small_b.mtx", "group/small/small.mtx"},
        {"small_b.mtx", "readme.txt"},       /* no main matrix: the largest with a banner */
        {"a.mtx", "b.mtx"},
    };
    char tar[8192], packed[8192];
    for (size_t c = 0; c < 4; c++)
        for (int gz = 0; gz < (tl_gz_here() ? 2 : 1); gz++) {
            size_t n = tar_member(tar, "small/", "", '5');
            n += tar_member(tar + n, cases[c].first, c == 0 ? small_text : other_text, '0');
            n += tar_member(tar + n, cases[c].second, c == 0 ? other_text : small_text, '0');
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
    size_t n = tar_member(tar, "a/a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 1\n",
                          '0');
    put_bytes("x.tar", tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    SAYS("x.tar(a/a.mtx):3:1: row index 2 is outside 1..1");
    put_bytes("x.tar", tar, 540);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    SAYS("x.tar(a/a.mtx): the archive ends 30 bytes too early");
    n = tar_member(tar, "readme", "nothing", '0');
    memset(tar + n, 0, 1024);
    put_bytes("x.tar", tar, n + 1024);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    SAYS("x.tar: the archive holds no .mtx file");
    tar[n] = 'x';
    put_bytes("x.tar", tar, n + 1024);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "read");
    SAYS("x.tar: a header in the archive is damaged");
    remove("x.tar");
}

/* The message has the line and the error, for a file, a gzipped file, an archive and a gzipped archive; a
 * line that is too short must not be reported as a truncated file. */
static void a_wrong_line_is_named_however_the_file_is_packed(void)
{
#define REAL "%%MatrixMarket matrix coordinate real general\n"
    static const struct { const char *text, *said; } cases[] = {
        {REAL "3 3 2\n1 1 1\n2 2\n", ":4:4: a number was expected, found the end of the line"},
        {REAL "3 3 2\n1 1\n2 2 2\n", ":3:4: a number was expected, found the end of the line"},
        {REAL "3 3 3\n1 1\n2 2\n3 3\n", ":3:4: a number was expected, found the end of the line"},
        {REAL "3 3 1\n1\n", ":3:2: a column index was expected, found the end of the line"},
        {REAL "3 3 1\n1 1", ":3:4: a number was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate complex general\n3 3 2\n1 1 1 2\n2 2 3\n",
         ":4:6: an imaginary part was expected, found the end of the line"},
        {"%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1\n",
         ":3:4: an integer was expected, found the end of the line"},
        {"%%MatrixMarket matrix array complex general\n1 2\n1 2\n3\n",
         ":4:2: an imaginary part was expected, found the end of the line"},
        {REAL "3 3 2\n1 1 1 7\n2 2 2\n", ":3:7: the line goes on after the entry with \"7\""},
        {REAL "3 3 2\n1 1 1\n2 2 2 kg\n", ":4:7: the line goes on after the entry with \"kg\""},
        {"%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 1 1\n",
         ":3:5: the line goes on after the entry with \"1\""},
        {"%%MatrixMarket matrix array real general\n1 2\n1\n2 2\n",
         ":4:3: the line goes on after the entry with \"2\""},
        {REAL "3 3 2\n1 1 1\n", ":3: the file ends here with 1 entries; it promises 2"},
        {REAL "3 3 2\n", ":2: the file ends here with 0 entries; it promises 2"},
        {REAL "3 3 1\n1 1 1\n2 2 2\n", ":4:1: one entry more than the 1 that the file promises"},
        {REAL "3 3\n1 1 1\n", ":2:4: the number of entries was expected, found the end of the line"},
    };
    static const char *const packings[] = {"x.mtx", "x.tar(a/a.mtx)", "x.mtx.gz", "x.tar.gz(a/a.mtx)"};
    char tar[4096], packed[4096], sentence[256], path[16];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int how = 0; how < (tl_gz_here() ? 4 : 2); how++) {
            const char *text = cases[c].text;
            size_t n = strlen(text);
            tulle_matrix *A = NULL;
            snprintf(path, sizeof path, "%.*s", (int)strcspn(packings[how], "("), packings[how]);
            if (how % 2) {
                n = tar_member(tar, "a/a.mtx", text, '0');
                memset(tar + n, 0, 1024);
                n += 1024;
                text = tar;
            }
            if (how < 2) put_bytes(path, text, n);
            else put_bytes(path, packed, pack(text, n, packed, sizeof packed));
            CHECK(tulle_read(ctx, path, &A) == TULLE_EFORMAT && !A, "%s was read", path);
            snprintf(sentence, sizeof sentence, "%s%s", packings[how], cases[c].said);
            SAYS(sentence);
            remove(path);
        }
#undef REAL
}

/* ---- names */

static const char tiny_text[] = "%%MatrixMarket matrix coordinate real general\n1 1 0\n";
_Static_assert(sizeof tiny_text <= 64, "shorter than any buffer for a banner");

/* "LENGTH path=NAME\n", as pax writes it. */
static size_t pax_member(char *to, const char *key, const char *value)
{
    char text[6000];
    int n = 0, length = (int)(strlen(key) + strlen(value)) + 3;
    while (n != length) {
        n = length;
        length = snprintf(text, sizeof text, "%d %s=%s\n", n, key, value);
    }
    return tar_member(to, "PaxHeaders/x", text, 'x');
}

static void put_archive(char *tar, size_t n)
{
    memset(tar + n, 0, 1024);
    put_bytes("x.tar", tar, n + 1024);
}

/* A name of 300 bytes and one of 5000, which GNU and POSIX write before the member. */
static void long_names_are_read_as_gnu_and_posix_write_them(void)
{
    char tar[32768], name[6000];
    for (int how = 0; how < 2; how++)
        for (int length = 300; length <= 5000; length += 4700) {
            tulle_matrix *A = NULL;
            memset(name, 'd', (size_t)length);
            for (int i = 200; i < length; i += 200) name[i] = '/';
            memcpy(name + length - 14, "/small/small.mtx", 17);
            size_t n = tar_member(tar, "other.mtx", other_text, '0');
            n += how ? pax_member(tar + n, "path", name) : tar_member(tar + n, "././@LongLink", name, 'L');
            n += tar_member(tar + n, "cut-off", small_text, '0');
            put_archive(tar, n);
            CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(A && A->view.rows == 3, "the other one, of %s, %d bytes", how ? "POSIX" : "GNU", length);
            tulle_matrix_free(A);
        }
    remove("x.tar");
}

static void remarks_of_posix_are_taken_or_refused(void)
{
    char tar[8192];
    tulle_matrix *A = NULL;
    size_t n = pax_member(tar, "mtime", "12.5");
    n += tar_member(tar + n, "g", "52 comment=for all members, no business of this one\n", 'g');
    n += tar_member(tar + n, "a.mtx", small_text, '0');
    put_archive(tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(A);
    n = pax_member(tar, "size", "104");        /* takes precedence over the header */
    CHECK(strlen(small_text) < 104 && strlen(small_text) > 80, "%zu bytes", strlen(small_text));
    n += tar_member(tar + n, "a.mtx", small_text, '0');
    memset(tar + n - 512 + strlen(small_text), '\n', 104 - strlen(small_text));
    put_archive(tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(A);
    static const char *const wrong[] = {"9 path=", "x path=a\n", "99 path=a\n", "3 p\n", "10 pathxa.m\n",
                                        "-1 path=a\n"};
    for (int i = 0; i < 6; i++) {
        n = tar_member(tar, "h", wrong[i], 'x');
        n += tar_member(tar + n, "a.mtx", small_text, '0');
        put_archive(tar, n);
        CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_EFORMAT, "\"%s\" was read", wrong[i]);
        SAYS("x.tar: a header in the archive is damaged");
    }
    remove("x.tar");
}

static void a_member_of_a_few_bytes_is_a_matrix_too(void)
{
    char tar[8192];
    tulle_matrix *A = NULL;
    size_t n = tar_member(tar, "readme.mtx", "not one", '0');
    n += tar_member(tar + n, "tiny.mtx", tiny_text, '0');
    put_archive(tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(A && A->view.rows == 1 && A->view.nnz == 0, "another");
    tulle_matrix_free(A);
    remove("x.tar");
}

/* ---- members selected by name */

typedef struct { int count; char line[512]; } heard;

static void hear(void *user, const char *line)
{
    heard *h = user;
    if (!strstr(line, "matrices")) return;
    h->count++;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void a_member_can_be_asked_for_by_its_name(void)
{
    static const struct { const char *path; int64_t rows; } there[] = {
        {"x.tar:a/a.mtx", 3}, {"x.tar:a/a", 3}, {"x.tar:a_b.mtx", 1}, {"x.tar:a_b", 1},
        {"x.tar:./a/a_b.mtx", 1}, {"x.tar:b:c.mtx", 1}, {"x.tar", 3},
    };
    static const struct { const char *path, *sentence; } wrong[] = {
        {"x.tar:c", "x.tar: holds no \"c\"; there is a/a_b.mtx, a/a.mtx, b:c.mtx, other/a.mtx"},
        {"x.tar:a/", "x.tar: holds no \"a/\"; there is a/a_b.mtx, a/a.mtx, b:c.mtx, other/a.mtx"},
        {"x.tar:a", "x.tar: \"a\" is the name of several: x.tar(a/a.mtx) and x.tar(other/a.mtx); say the"
                    " path of one"},
        {"m.mtx:a", "m.mtx: is no archive, so there is no \"a\" in it"},
    };
    char tar[8192];
    tulle_matrix *A = NULL;
    size_t n = tar_member(tar, "a/a_b.mtx", other_text, '0');
    n += tar_member(tar + n, "a/a.mtx", small_text, '0');
    n += tar_member(tar + n, "b:c.mtx", tiny_text, '0');
    n += tar_member(tar + n, "other/a.mtx", tiny_text, '0');
    put_archive(tar, n);
    put_bytes("m.mtx", tiny_text, sizeof tiny_text - 1);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        CHECK(tulle_read(ctx, there[i].path, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(A && A->view.rows == there[i].rows, "%s: another", there[i].path);
        tulle_matrix_free(A);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(tulle_read(ctx, wrong[i].path, &A) == TULLE_EFORMAT && !A, "%s was read", wrong[i].path);
        SAYS(wrong[i].sentence);
    }
    CHECK(tulle_read(ctx, "none.tar:a", &A) == TULLE_EIO, "a file that is not there");
    SAYS("none.tar:a: cannot be opened: No such file or directory");
    tulle_dense_matrix *X = NULL;
    CHECK(tulle_dense_read(ctx, "x.tar:a_b", &X) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(X && X->view.rows == 1 && ((const double *)X->view.values)[0] == 9, "another right-hand side");
    tulle_dense_free(X);
    remove("x.tar");
    remove("m.mtx");
}

static void of_several_matrices_the_trace_says_which_was_taken(void)
{
    char tar[32768];
    heard h = {0};
    tulle_matrix *A = NULL;
    size_t n = tar_member(tar, "a/a.mtx", small_text, '0');
    n += tar_member(tar + n, "b/b.mtx", tiny_text, '0');
    put_archive(tar, n);
    tulle_ctx_set_trace(ctx, hear, &h);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(h.count == 1 && strcmp(h.line, "read x.tar(a/a.mtx): taken of 2 matrices, a/a.mtx, b/b.mtx;"
                                         " x.tar:NAME takes another") == 0, "%d: %s", h.count, h.line);
    tulle_matrix_free(A);
    n = 0;
    for (int i = 0; i < 20; i++) {
        char name[100];
        snprintf(name, sizeof name, "long-%080d.mtx", i);
        n += tar_member(tar + n, name, i == 7 ? small_text : tiny_text, '0');
    }
    put_archive(tar, n);
    CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK && A->view.rows == 3, "%s", tulle_ctx_error(ctx));
    CHECK(h.count == 2 && strstr(h.line, "taken of 20 matrices, long-") && strstr(h.line, " and 16 more"),
          "%d: %s", h.count, h.line);
    tulle_matrix_free(A);
    n = tar_member(tar, "a/a.mtx", small_text, '0');
    tar_member(tar + n, "b/b.mtx", tiny_text, '0');
    put_bytes("x.tar", tar, n + 100);         /* damage after the matrix: the same with and without a trace */
    for (int trace = 0; trace < 2; trace++) {
        tulle_ctx_set_trace(ctx, trace ? hear : NULL, &h);
        CHECK(tulle_read(ctx, "x.tar", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_matrix_free(A);
    }
    tulle_ctx_set_trace(ctx, NULL, NULL);
    remove("x.tar");
}

FILES_MAIN(TEST(archives_of_suitesparse_are_searched_for_their_matrix),
           TEST(errors_in_archives_name_the_member),
           TEST(a_wrong_line_is_named_however_the_file_is_packed),
           TEST(long_names_are_read_as_gnu_and_posix_write_them),
           TEST(remarks_of_posix_are_taken_or_refused),
           TEST(a_member_of_a_few_bytes_is_a_matrix_too),
           TEST(a_member_can_be_asked_for_by_its_name),
           TEST(of_several_matrices_the_trace_says_which_was_taken))
