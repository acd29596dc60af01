/* SPDX-License-Identifier: MIT
 *
 * test_files_write.c - written files are read back bit for bit, are the same for any number of threads, and
 * appear under their name only when they are complete. */
#define _XOPEN_SOURCE 700
#include "files_help.h"
#include "hard_double.h"

/* ---- numbers */

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
        val[i] = hard_double(i, next_random());
        memcpy(&val4[i], &bits, 4);
        if (isnan(val4[i])) val4[i] = 7.038531e-26f;    /* its shortest decimal is not sufficient */
    }
    static const char *const names[] = {"n.mtx", "n.tulle", "n.mtx.gz"};
    for (int type = TULLE_F32; type <= TULLE_CF64; type++)
        for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
            bool narrow = type == TULLE_F32 || type == TULLE_CF32;
            const void *values = narrow ? (const void *)val4 : (const void *)val;
            tulle_csr A = tulle_csr_make(N, 1, ptr, TULLE_I32, col, TULLE_I32, values, (tulle_type)type);
            tulle_matrix *B = NULL, *C = NULL;
            CHECK(tulle_write(ctx, names[f], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(tulle_read(ctx, names[f], &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr v = tulle_matrix_view(B);
            CHECK(f == 1 ? v.val_type == (tulle_type)type
                         : v.val_type == (tl_type_complex((tulle_type)type) ? TULLE_CF64 : TULLE_F64), "its type");
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

/* ---- halves of symmetric matrices */

static void put_matrix(const char *text, tulle_matrix **A)
{
    put_bytes("in.mtx", text, strlen(text));
    CHECK(tulle_read(ctx, "in.mtx", A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    remove("in.mtx");
}

/* A matrix written as its lower half is read back as a whole. */
static void symmetric_matrices_are_written_as_their_lower_triangle(void)
{
    static const struct { const char *text, *banner, *sizes; } cases[] = {
        {"%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 1\n1 3 2\n2 2 -3\n3 1 2\n3 3 4\n",
         "coordinate real symmetric\n", "3 3 4\n"},
        {"%%MatrixMarket matrix coordinate complex general\n2 2 3\n1 1 1 0\n1 2 2 3\n2 1 2 -3\n",
         "coordinate complex hermitian\n", "2 2 2\n"},
        {"%%MatrixMarket matrix coordinate complex general\n2 2 3\n1 1 1 5\n1 2 2 3\n2 1 2 3\n",
         "coordinate complex symmetric\n", "2 2 2\n"},
        {"%%MatrixMarket matrix coordinate real general\n0 0 0\n", "coordinate real symmetric\n", "0 0 0\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tulle_matrix *A = NULL, *B = NULL;
        size_t bytes = 0;
        put_matrix(cases[i].text, &A);
        tulle_csr a = tulle_matrix_view(A);
        CHECK(tulle_write_symmetric(ctx, "s.mtx", &a) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        char *text = get_bytes("s.mtx", &bytes);
        CHECK(strstr(text, cases[i].banner) && strstr(text, cases[i].sizes), "%s", text);
        CHECK(tulle_read(ctx, "s.mtx", &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr b = tulle_matrix_view(B);
        CHECK(same_matrix(&a, &b), "case %zu comes back as another matrix", i);
        free(text);
        tulle_matrix_free(A);
        tulle_matrix_free(B);
        remove("s.mtx");
    }
}

static void what_is_not_symmetric_is_refused_and_leaves_no_file(void)
{
    static const struct { const char *path, *text, *says; tulle_status status; } cases[] = {
        {"s.mtx", "2 2 3\n1 1 1\n1 2 2\n2 1 3\n", "(2, 1) has no equal at (1, 2)", TULLE_EINVAL},
        {"s.mtx", "3 3 2\n1 1 1\n3 1 3\n", "(3, 1) has no equal at (1, 3)", TULLE_EINVAL},
        {"s.mtx", "3 3 2\n1 2 1\n3 3 3\n", "(1, 2) has no equal at (2, 1)", TULLE_EINVAL},
        {"s.mtx", "3 3 3\n1 2 1\n1 3 2\n3 1 2\n", "(1, 2) has no equal at (2, 1)", TULLE_EINVAL},
        {"s.mtx", "2 3 1\n1 1 1\n", "2 x 3 is not symmetric", TULLE_ESHAPE},
        {"s.tulle", "1 1 1\n1 1 1\n", "only Matrix Market files", TULLE_EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        tulle_matrix *A = NULL;
        snprintf(text, sizeof text, "%%%%MatrixMarket matrix coordinate real general\n%s", cases[i].text);
        put_matrix(text, &A);
        tulle_csr a = tulle_matrix_view(A);
        tulle_status status = tulle_write_symmetric(ctx, cases[i].path, &a);
        CHECK(status == cases[i].status, "case %zu: %s", i, tulle_status_name(status));
        CHECK(strstr(tulle_ctx_error(ctx), cases[i].says), "%s", tulle_ctx_error(ctx));
        CHECK(files_here() == 0, "case %zu left a file", i);
        tulle_matrix_free(A);
    }
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

/* ---- writing */

static void an_unknown_name_is_refused_before_anything_is_written(void)
{
    made m = make_random(10, 10, 2);
    CHECK(tulle_write(ctx, "x.csv", &m.view) == TULLE_EINVAL, "x.csv");
    SAYS("x.csv: the name should end with .mtx, .mtx.gz or .tulle, which says what to"
                                       " write");
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

FILES_MAIN(TEST(a_written_file_is_the_same_for_any_number_of_threads),
           TEST(numbers_come_back_bit_for_bit),
      TEST(symmetric_matrices_are_written_as_their_lower_triangle),
      TEST(what_is_not_symmetric_is_refused_and_leaves_no_file),
           TEST(a_pattern_is_written_as_a_pattern_and_read_as_ones),
           TEST(an_unknown_name_is_refused_before_anything_is_written),
           TEST(a_failed_write_leaves_the_old_file_and_nothing_else),
           TEST(a_cancelled_read_gives_no_matrix),
           TEST(an_existing_file_keeps_its_permissions))
