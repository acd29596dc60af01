/* SPDX-License-Identifier: MIT
 *
 * test_dense_files.c - dense matrices: round trips through .npy and array files, files of other programs,
 * and damaged files (truncated anywhere, every byte of the header changed), which are refused with a message
 * that says where. */
#define _POSIX_C_SOURCE 200809L
#include "files_help.h"

#if defined(TULLE_SMALL_TESTS)
enum { LARGE = 23000 };
#else
enum { LARGE = 210000 };
#endif

static int64_t place(const tulle_dense *M, int64_t i, int64_t j)
{
    return M->order == TULLE_BY_ROWS ? i * M->ld + j : i + j * M->ld;
}

/* A view over malloc'ed memory; every value is a random bit pattern of a finite number. */
static tulle_dense make(int64_t rows, int64_t cols, int64_t gap, tulle_order order, int type)
{
    int64_t lines = order == TULLE_BY_ROWS ? rows : cols, length = order == TULLE_BY_ROWS ? cols : rows;
    tulle_dense M = tulle_dense_make(rows, cols, length + gap, order, NULL, (tulle_type)type);
    size_t reals = (size_t)(lines * (length + gap)) * (type >= TULLE_CF32 ? 2 : 1);
    M.values = malloc(reals * 8 + 8);
    if (!M.values) abort();
    for (size_t i = 0; i < reals; i++) {
        double v = ldexp((double)(int64_t)(next_random() >> 11), -53 + (int)(next_random() % 60) - 30) * (next_random() % 2 ? 1 : -1);
        if (type == TULLE_F32 || type == TULLE_CF32) ((float *)M.values)[i] = (float)v;
        else ((double *)M.values)[i] = v;
    }
    return M;
}

/* Floats read from text are doubles that round to the original values. */
static bool same_real(double x, double y, tulle_type type)
{
    volatile float rounded = (float)y;
    if (type == TULLE_F32 || type == TULLE_CF32) y = (double)rounded;
    return x == y && signbit(x) == signbit(y);
}

static bool same(const tulle_dense *A, const tulle_dense *B)
{
    if (A->rows != B->rows || A->cols != B->cols) return false;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++) {
            tl_c64 a = tl_value_load(A->val_type, A->values, place(A, i, j)), b = tl_value_load(B->val_type, B->values, place(B, i, j));
            if (!same_real(a.re, b.re, A->val_type) || !same_real(a.im, b.im, A->val_type)) return false;
        }
    return true;
}

/* ---- round trips */

static void round_trip(const char *path, int64_t rows, int64_t cols, int64_t gap, tulle_order order, int type)
{
    tulle_dense A = make(rows, cols, gap, order, type);
    tulle_dense_matrix *M = NULL;
    CHECK(tulle_dense_write(ctx, path, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_dense_read(ctx, path, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense B = tulle_dense_view(M);
    CHECK(same(&A, &B), "%s: %" PRId64 " x %" PRId64 ", gap %" PRId64 ", order %d, type %d", path, rows, cols, gap, (int)order, type);
    if (!strstr(path, ".mtx")) CHECK(B.val_type == A.val_type && B.order == order, "%s", "another type or order");
    else CHECK(B.val_type == (type >= TULLE_CF32 ? TULLE_CF64 : TULLE_F64) && B.order == TULLE_BY_COLS, "%s", "another type");
    tulle_dense_free(M);
    free(A.values);
    remove(path);
}

static void every_type_order_and_shape_comes_back(void)
{
    static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 9}, {9, 1}, {7, 3}, {3, 7}, {129, 65}};
    for (int type = TULLE_F32; type <= TULLE_CF64; type++)
        for (int order = 0; order < 2; order++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (int64_t gap = 0; gap < 3; gap += 2) {
                    /* an ld of 0 has a special meaning */
                    if (shapes[s][0] * shapes[s][1] == 0 && gap == 0) continue;
                    round_trip("a.npy", shapes[s][0], shapes[s][1], gap, (tulle_order)order, type);
                    round_trip("a.mtx", shapes[s][0], shapes[s][1], gap, (tulle_order)order, type);
                }
    round_trip("a.NPY", 4, 4, 0, TULLE_BY_ROWS, TULLE_F64);
    round_trip("large.npy", LARGE, 3, 1, TULLE_BY_ROWS, TULLE_F64);
    round_trip("large.mtx", LARGE, 2, 0, TULLE_BY_ROWS, TULLE_F32);
}

static void the_file_does_not_depend_on_threads(void)
{
    tulle_dense A = make(LARGE / 3, 3, 2, TULLE_BY_ROWS, TULLE_CF64);
    char *first = NULL;
    size_t bytes = 0, n = 0;
    for (int threads = 1; threads <= THREADS; threads++) {
        CHECK(tulle_ctx_set_threads(ctx, threads) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_dense_write(ctx, "a.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        char *text = get_bytes("a.mtx", &n);
        if (!first) first = text, bytes = n;
        else CHECK(n == bytes && memcmp(text, first, n) == 0, "%d threads write another file", threads);
        if (text != first) free(text);
    }
    free(first);
    free(A.values);
    remove("a.mtx");
}

/* ---- files of other programs, byte by byte */

static size_t npy(char *to, int major, const char *header, const void *data, size_t bytes)
{
    size_t length = strlen(header), at = major == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (char)major;
    to[7] = 0;
    for (int i = 0; i < (major == 1 ? 2 : 4); i++) to[8 + i] = (char)(length >> (8 * i));
    memcpy(to + at, header, length);
    if (bytes > 0) memcpy(to + at + length, data, bytes);
    return at + length + bytes;
}

static void expect(int major, const char *header, const void *data, size_t bytes, int64_t rows, int64_t cols,
                   tulle_order order, tulle_type type)
{
    char file[1024];
    tulle_dense_matrix *M = NULL;
    put_bytes("t.npy", file, npy(file, major, header, data, bytes));
    CHECK(tulle_dense_read(ctx, "t.npy", &M) == TULLE_OK, "%s: %s", header, tulle_ctx_error(ctx));
    tulle_dense A = tulle_dense_view(M);
    CHECK(A.rows == rows && A.cols == cols && A.order == order && A.val_type == type, "%s: %" PRId64 " x %" PRId64 ", order %d, type %d",
          header, A.rows, A.cols, (int)A.order, (int)A.val_type);
    CHECK(bytes == 0 || (A.values && memcmp(A.values, data, bytes) == 0), "%s: other values", header);
    CHECK(((uintptr_t)A.values & 63) == 0, "%s", "not aligned");
    tulle_dense_free(M);
    remove("t.npy");
}

static void headers_as_others_write_them(void)
{
    const double d[] = {1, 2, 3, 4, 5, 6};
    const float f[] = {1, 2, 3, 4, 5, 6};
    expect(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }       \n", d, 48, 2, 3, TULLE_BY_ROWS, TULLE_F64);
    expect(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3)}\n", d, 48, 2, 3, TULLE_BY_COLS, TULLE_F64);
    expect(2, "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }\n", d, 48, 3, 2, TULLE_BY_COLS, TULLE_F64);
    expect(3, "{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}", f, 24, 6, 1, TULLE_BY_ROWS, TULLE_F32);
    expect(1, "  { 'shape' : ( 1 , 3 ) , 'descr' : '<c8' , 'fortran_order' : False }\n", f, 24, 1, 3, TULLE_BY_ROWS, TULLE_CF32);
    expect(1, "{'descr': '<c16', 'fortran_order': False, 'shape': (3, 1), }\n", d, 48, 3, 1, TULLE_BY_ROWS, TULLE_CF64);
    expect(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }\n", d, 0, 0, 3, TULLE_BY_ROWS, TULLE_F64);
    expect(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }\n", d, 0, 0, 1, TULLE_BY_ROWS, TULLE_F64);
}

/* Our files have the same bytes as those written by NumPy. */
static void written_as_numpy_writes(void)
{
    const double d[] = {1, 2, 3, 4, 5, 6};
    static const char head[] = "\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    char want[128 + sizeof d];
    size_t n = 0;
    memset(want, ' ', 128);
    memcpy(want, head, sizeof head - 1);
    want[127] = '\n';
    memcpy(want + 128, d, sizeof d);
    tulle_dense A = tulle_dense_make(2, 3, 0, TULLE_BY_ROWS, (void *)(uintptr_t)d, TULLE_F64);
    CHECK(tulle_dense_write(ctx, "t.npy", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *got = get_bytes("t.npy", &n);
    CHECK(n == sizeof want && memcmp(got, want, n) == 0, "%zu bytes: %.*s", n, (int)n, got);
    free(got);
    CHECK(tulle_dense_write(ctx, "t.mtx", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    got = get_bytes("t.mtx", &n);
    CHECK(strcmp(got, "%%MatrixMarket matrix array real general\n% written by tulle " TULLE_VERSION "\n2 3\n1\n4\n2\n5\n3\n6\n") == 0,
          "%s", got);
    free(got);
    remove("t.npy");
    remove("t.mtx");
}

static void arrays_of_every_symmetry(void)
{
    static const struct { const char *text; int type; double re[9], im[9]; } files[] = {
        {"%%MatrixMarket matrix array real general\n3 3\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", TULLE_F64, {1, 4, 7, 2, 5, 8, 3, 6, 9}, {0}},
        {"%%MatrixMarket matrix array integer symmetric\n% half of it\n3 3\n1\n2\n3\n4\n5\n6\n", TULLE_F64, {1, 2, 3, 2, 4, 5, 3, 5, 6}, {0}},
        {"%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", TULLE_F64, {0, -1, -2, 1, 0, -3, 2, 3, 0}, {0}},
        {"%%MatrixMarket matrix array complex hermitian\n3 3\n1 0\n2 1\n3 2\n4 0\n5 3\n6 0\n", TULLE_CF64,
         {1, 2, 3, 2, 4, 5, 3, 5, 6}, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
    };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        tulle_dense_matrix *M = NULL;
        put_bytes("t.mtx", files[f].text, strlen(files[f].text));
        CHECK(tulle_dense_read(ctx, "t.mtx", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_dense A = tulle_dense_view(M);
        CHECK(A.rows == 3 && A.cols == 3 && (int)A.val_type == files[f].type, "%s", files[f].text);
        for (int i = 0; M && i < 3; i++)
            for (int j = 0; j < 3; j++) {
                tl_c64 v = tl_value_load(A.val_type, A.values, place(&A, i, j));
                CHECK(v.re == files[f].re[3 * i + j] && v.im == files[f].im[3 * i + j], "%s: (%d,%d) is %g%+gi", files[f].text, i, j, v.re, v.im);
            }
        tulle_dense_free(M);
        remove("t.mtx");
    }
}

static void gzipped_files_are_unpacked(void)
{
    const double d[] = {1, 2, 3};
    char file[256], packed[1024];
    size_t n = npy(file, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", d, 24);
    if (!tl_gz_here()) return;
    tulle_dense_matrix *M = NULL;
    put_bytes("t.npy.gz", packed, pack(file, n, packed, sizeof packed));
    CHECK(tulle_dense_read(ctx, "t.npy.gz", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense A = tulle_dense_view(M);
    CHECK(A.rows == 3 && memcmp(A.values, d, 24) == 0, "%s", "other values");
    tulle_dense_free(M);
    remove("t.npy.gz");
}

/* ---- damage */

static void refuses_dense(const char *data, size_t bytes, const char *sentence)
{
    tulle_dense_matrix *M = (tulle_dense_matrix *)(void *)&M;
    put_bytes("t.npy", data, bytes);
    tulle_status status = tulle_dense_read(ctx, "t.npy", &M);
    CHECK(status == TULLE_EFORMAT && M == NULL, "%s: %s", tulle_status_name(status), sentence);
    CHECK(strcmp(tulle_ctx_error(ctx), sentence) == 0, "\n    said     %s\n    expected %s", tulle_ctx_error(ctx), sentence);
    remove("t.npy");
}

static void refuses_header(int major, const char *header, size_t bytes, const char *sentence)
{
    static const double zeros[8];
    char file[1024];
    refuses_dense(file, npy(file, major, header, zeros, bytes), sentence);
}

static void bent_headers_are_refused_with_their_place(void)
{
    static const struct { const char *header; size_t bytes; const char *sentence; } files[] = {
        {"", 0, "t.npy: byte 10 of the file: '{' was expected in the header, found its end"},
        {"[1]", 0, "t.npy: byte 10 of the file: '{' was expected in the header, found '['"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)", 8, "t.npy: byte 66 of the file: ',' or '}' was expected in the header, found its end"},
        {"{'descr': '<f8', 'fortran_order': False}", 0, "t.npy: the header does not tell 'shape'"},
        {"{'descr': '<f8', 'descr': '<f8'}", 0, "t.npy: byte 27 of the file: the key 'descr' is there twice"},
        {"{'colour': '<f8'}", 0, "t.npy: byte 11 of the file: the key 'colour' is not known"},
        {"{descr: '<f8'}", 0, "t.npy: byte 11 of the file: a key in quotes was expected in the header, found 'd'"},
        {"{'descr' '<f8'}", 0, "t.npy: byte 19 of the file: ':' was expected in the header, found '''"},
        {"{'descr': 8}", 0, "t.npy: byte 20 of the file: a type such as '<f8' was expected in the header, found '8'"},
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (1, 1)}", 8, "t.npy: has values of type '>f8', which are big endian; save them as '<f8'"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1)}", 8, "t.npy: has values of type '<i8'; '<f4', '<f8', '<c8' and '<c16' can be read"},
        {"{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1, 1)}", 8, "t.npy: byte 44 of the file: True or False was expected in the header, found 'M'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, "t.npy: is a single number, not a matrix"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1)}", 8, "t.npy: is an array of more than two dimensions"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, -1)}", 8, "t.npy: byte 64 of the file: a size was expected in the header, found '-'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}", 8, "t.npy: byte 63 of the file: ',' or ')' was expected in the header, found '1'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)} and more", 8, "t.npy: byte 68 of the file: the end of the header was expected in the header, found 'a'"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
         "t.npy: an array of 4294967296 x 4294967296 cannot be addressed"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000)}", 16,
         "t.npy: promises 1000000 x 1000 values, 8000000000 bytes, but the rest of the file has at most 16"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", 9, "t.npy: goes on behind its values, at byte 75"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) refuses_header(1, files[i].header, files[i].bytes, files[i].sentence);
    refuses_header(4, "{}", 0, "t.npy: is of version 4.0; 1, 2 and 3 can be read");
    refuses_header(0, "{}", 0, "t.npy: is of version 0.0; 1, 2 and 3 can be read");
    refuses_dense("\x93NUMPY\x02\0\0\0\1\1", 12, "t.npy: a header of 16842752 bytes; at most 65536 are read");
}

/* A file truncated anywhere is refused; a change of any byte of the header does no harm. */
static void files_cut_anywhere(void)
{
    const double d[] = {1, 2, 3, 4};
    char file[256], bent[256];
    size_t n = npy(file, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n", d, 32);
    for (size_t cut = 0; cut < n; cut++) {
        tulle_dense_matrix *M = NULL;
        put_bytes("t.npy", file, cut);
        CHECK(tulle_dense_read(ctx, "t.npy", &M) == TULLE_EFORMAT && !M && tulle_ctx_error(ctx)[0], "cut at %zu: %s", cut, tulle_ctx_error(ctx));
        tulle_dense_free(M);
    }
    refuses_dense(file, 7, "t.npy: the file ends at byte 7, within its first bytes: 1 bytes are missing");
    refuses_dense(file, 20, "t.npy: the file ends at byte 20, within its header: 50 bytes are missing");
    refuses_dense(file, 80, "t.npy: promises 2 x 2 values, 32 bytes, but the rest of the file has at most 10");
    for (size_t at = 0; at < n - 32; at++)
        for (int bit = 0; bit < 8; bit++) {
            tulle_dense_matrix *M = NULL;
            memcpy(bent, file, n);
            bent[at] = (char)(bent[at] ^ (1 << bit));
            put_bytes("t.npy", bent, n);
            tulle_status status = tulle_dense_read(ctx, "t.npy", &M);
            CHECK((status == TULLE_OK) == (M != NULL) && (status == TULLE_OK || status == TULLE_EFORMAT), "byte %zu, bit %d: %s", at, bit,
                  tulle_status_name(status));
            tulle_dense_free(M);
        }
    remove("t.npy");
}

/* A right-hand side may be a sparse file: missing entries are zero, duplicates are added. */
static void sparse_files_are_dense_matrices_with_zeros(void)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n3 2 4\n3 2 7\n1 1 5\n3 2 1\n2 1 -2\n";
    static const double want[] = {5, -2, 0, 0, 0, 8};
    static const char folded[] = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 2 3\n";
    static const double mirrored[] = {1, 0, 2, 3, 2, -3, 0, 0};
    static const struct { const char *text; const double *want; int64_t cols; size_t bytes; tulle_type type; } files[] = {
        {text, want, 2, sizeof want, TULLE_F64}, {folded, mirrored, 2, sizeof mirrored, TULLE_CF64}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        tulle_dense_matrix *M = NULL;
        put_bytes("t.mtx", files[i].text, strlen(files[i].text));
        REQUIRE(tulle_dense_read(ctx, "t.mtx", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_dense X = tulle_dense_view(M);
        CHECK(X.cols == files[i].cols && X.order == TULLE_BY_COLS && X.val_type == files[i].type, "file %zu", i);
        CHECK(memcmp(X.values, files[i].want, files[i].bytes) == 0, "values of file %zu", i);
        tulle_dense_free(M);
    }
    static const char large[] = "%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 1\n1 1 1\n";
    tulle_dense_matrix *M = NULL;
    put_bytes("t.mtx", large, strlen(large));
    CHECK(tulle_dense_read(ctx, "t.mtx", &M) == TULLE_ENOMEM && !M, "%s", tulle_ctx_error(ctx));
    SAYS("t.mtx: a sparse matrix of 2000000000 x 2000000000 does not fit memory as a dense one");
    remove("t.mtx");
}

static void text_files_are_refused_with_line_and_column(void)
{
    static const struct { const char *text, *sentence; } files[] = {
        {"", "t.npy: is neither a .npy file nor a Matrix Market file"},
        {"hello", "t.npy: is neither a .npy file nor a Matrix Market file"},
        {"%%MatrixMarket matrix array real general\n2 2\n1.00\n2.00\n3.00\n", "t.npy:5: the file ends here with 3 entries; it promises 4"},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\nx\n4\n", "t.npy:5:1: a number was expected, found \"x\""},
        {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n5\n", "t.npy:7:1: one entry more than the 4 that the file promises"},
        {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n", "t.npy:3: the file ends here with 1 entries; it promises 2"},
        {"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 1\n3 1\n",
         "t.npy: the diagonal of a hermitian matrix must be real, and row 2 has 3+1i"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) refuses_dense(files[i].text, strlen(files[i].text), files[i].sentence);
}

/* ---- arguments, and files that cannot be written */

static void bad_arguments(void)
{
    double d[4] = {0};
    tulle_dense A = tulle_dense_make(2, 2, 0, TULLE_BY_ROWS, d, TULLE_F64);
    tulle_dense_matrix *M = NULL;
    CHECK(tulle_dense_write(ctx, "a.txt", &A) == TULLE_EINVAL, "%s", "a name");
    SAYS("a.txt: the name should end with .npy or .mtx, which says what to write");
    CHECK(tulle_dense_write(ctx, "no/where.npy", &A) == TULLE_EIO, "%s", "a folder");
    SAYS("no/where.npy: cannot be written: No such file or directory");
    CHECK(tulle_dense_write(ctx, "no/where.mtx", &A) == TULLE_EIO, "%s", "a folder");
    CHECK(tulle_dense_read(ctx, "nothing.npy", &M) == TULLE_EIO && !M, "%s", "a file");
    A.ld = 1;
    CHECK(tulle_dense_write(ctx, "a.npy", &A) == TULLE_EINVAL, "%s", "ld");
    SAYS("A: ld is 1, but a row has 2 values");
    CHECK(tulle_dense_write(ctx, NULL, &A) == TULLE_EINVAL && tulle_dense_write(ctx, "a.npy", NULL) == TULLE_EINVAL, "%s", "NULL");
    CHECK(tulle_dense_read(ctx, "a.npy", NULL) == TULLE_EINVAL && tulle_dense_read(NULL, "a.npy", &M) == TULLE_EINVAL, "%s", "NULL");
    CHECK(tulle_dense_create(ctx, -1, 2, TULLE_BY_ROWS, TULLE_F64, &M) == TULLE_EINVAL && !M, "%s", "a size");
    CHECK(tulle_dense_create(ctx, INT64_MAX / 2, 9, TULLE_BY_ROWS, TULLE_F64, &M) == TULLE_EOVERFLOW && !M, "%s", "a size");
    CHECK(tulle_dense_create(ctx, 2, 2, TULLE_BY_ROWS, (tulle_type)5, &M) == TULLE_ETYPE && !M, "%s", "a type");
    tulle_dense none = tulle_dense_view(NULL);
    CHECK(none.rows == 0 && !none.values, "%s", "a view of nothing");
    tulle_dense_free(NULL);
}

static void copies_in_another_order_and_type(void)
{
    tulle_dense A = make(70, 45, 3, TULLE_BY_ROWS, TULLE_CF64);
    tulle_dense_matrix *M = NULL, *back = NULL;
    CHECK(tulle_dense_convert(ctx, &A, TULLE_BY_COLS, (tulle_type)0, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense B = tulle_dense_view(M);
    CHECK(same(&A, &B) && B.order == TULLE_BY_COLS && B.ld == 70 && B.val_type == TULLE_CF64, "%s", "another matrix");
    CHECK(tulle_dense_convert(ctx, &B, TULLE_BY_ROWS, TULLE_F32, &back) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense C = tulle_dense_view(back);
    for (int64_t i = 0; i < 70; i++)
        for (int64_t j = 0; j < 45; j++)
            CHECK(((float *)C.values)[i * 45 + j] == (float)tl_value_load(TULLE_CF64, A.values, place(&A, i, j)).re, "%s", "real parts");
    tulle_dense_free(M);
    tulle_dense_free(back);
    CHECK(tulle_dense_create(ctx, 3, 2, TULLE_BY_COLS, TULLE_CF32, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    B = tulle_dense_view(M);
    for (int i = 0; i < 12; i++) CHECK(((float *)B.values)[i] == 0, "%s", "not zero");
    tulle_dense_free(M);
    free(A.values);
}

static void an_old_file_stays_when_writing_fails(void)
{
    double d[4] = {1, 2, 3, 4};
    tulle_dense A = tulle_dense_make(2, 2, 0, TULLE_BY_ROWS, d, TULLE_F64);
    size_t n = 0;
    CHECK(mkdir("folder.npy", 0777) == 0, "%s", "a folder");
    CHECK(tulle_dense_write(ctx, "folder.npy", &A) == TULLE_EIO, "%s", tulle_ctx_error(ctx));
    CHECK(rmdir("folder.npy") == 0, "%s", "it is there");
    put_bytes("old.npy", "old", 3);
    A.values = NULL;
    CHECK(tulle_dense_write(ctx, "old.npy", &A) == TULLE_EINVAL, "%s", "no values");
    char *text = get_bytes("old.npy", &n);
    CHECK(n == 3, "%s", "the old file is gone");
    free(text);
    remove("old.npy");
}

FILES_MAIN(TEST(every_type_order_and_shape_comes_back), TEST(the_file_does_not_depend_on_threads), TEST(headers_as_others_write_them),
           TEST(written_as_numpy_writes), TEST(arrays_of_every_symmetry), TEST(gzipped_files_are_unpacked),
           TEST(bent_headers_are_refused_with_their_place), TEST(files_cut_anywhere),
           TEST(sparse_files_are_dense_matrices_with_zeros),
           TEST(text_files_are_refused_with_line_and_column), TEST(bad_arguments), TEST(copies_in_another_order_and_type),
           TEST(an_old_file_stays_when_writing_fails))
