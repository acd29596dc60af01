/* SPDX-License-Identifier: MIT
 *
 * test_files_damage.c - files that are truncated, have flipped bits or wrong sizes, and failing allocations:
 * each is reported by a message. */
#define _XOPEN_SOURCE 700
#include "files_help.h"

/* ---- damage */

static const char small_text[] = "%%MatrixMarket matrix coordinate real general\n% small\n3 4 4\n1 1 1.25\n2 3 -2\n"
                                 "3 1 0.5\n3 4 8.125\n";

/* A file truncated anywhere is refused, unless only digits of the last number are missing, which cannot be
 * detected; then everything else must be right. */
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
    for (size_t at = 2; at < n; at++) {          /* detected by the checksum, if not by the format */
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
            CHECK(tulle_read_mapped(ctx, "b.tulle", &B) == TULLE_EFORMAT, "mapped: bit %d of byte %zu", bit,
                  at);
            tulle_matrix_free(B);
        }
    char *longer = calloc(1, n + 64);
    memcpy(longer, data, n);
    put_bytes("b.tulle", longer, n + 64);
    CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "longer");
    SAYS("b.tulle: has 512 bytes and should have 448");
    tulle_matrix_free(B);
    free(longer);
    free(data);
    remove("b.tulle");
}

/* The checksums are correct, but the matrix is invalid. */
static void a_binary_file_with_a_wrong_pattern_is_refused(void)
{
    static const int32_t ptr[] = {0, 1, 2, 4}, col[] = {0, 2, 3, 3};
    static const double val[] = {1, 2, 3, 4};
    tulle_csr A = tulle_csr_f64_i32(3, 4, ptr, col, val);
    tulle_matrix *B = NULL;
    REQUIRE(tl_write((tl_base *)(void *)ctx, "b.tulle", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_read(ctx, "b.tulle", &B) == TULLE_EFORMAT, "read");
    SAYS("b.tulle: row 2: column 3 stands twice");
    tulle_matrix_free(B);
    remove("b.tulle");
}

static void a_matrix_outlives_its_file_and_context(void)
{
    made m = make_random(1000, 1000, 5);
    for (int map = 0; map < 2; map++) {
        tulle_ctx *other = NULL;
        tulle_matrix *B = NULL;
        REQUIRE(tulle_ctx_create("cpu", NULL, &other) == TULLE_OK, "no context");
        REQUIRE(tulle_write(other, "m.tulle", &m.view) == TULLE_OK, "%s", tulle_ctx_error(other));
        REQUIRE((map ? tulle_read_mapped : tulle_read)(other, "m.tulle", &B) == TULLE_OK, "%s",
                tulle_ctx_error(other));
        CHECK((B->mapping != NULL) == map, "mapped or not");
        tulle_ctx_free(other);
        remove("m.tulle");
        tulle_csr v = tulle_matrix_view(B);
        CHECK(((uintptr_t)v.row_ptr | (uintptr_t)v.col_idx | (uintptr_t)v.values) % 64 == 0, "its alignment");
        CHECK(same_matrix(&v, &m.view), "it changed");
        tulle_matrix_free(B);
    }
    free_made(&m);
}

/* After its checksums were verified, later changes of the file must not change the matrix. */
static void a_matrix_stays_as_it_was_read_when_its_file_changes(void)
{
    made m = make_random(20000, 1000, 10);      /* several blocks of a checksum */
    tulle_matrix *B = NULL;
    size_t n;
    REQUIRE(tulle_write(ctx, "m.tulle", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_read(ctx, "m.tulle", &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *data = get_bytes("m.tulle", &n);
    memset(data, 0x55, n);
    FILE *f = fopen("m.tulle", "r+b");          /* in place */
    CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0, "not written");
    tulle_csr v = tulle_matrix_view(B);
    CHECK(same_matrix(&v, &m.view), "it changed");
    CHECK(truncate("m.tulle", 0) == 0 && same_matrix(&v, &m.view), "it changed");
    tulle_matrix_free(B);
    free(data);
    free_made(&m);
    remove("m.tulle");
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
    put_bytes("g.mtx.gz", packed, n + 16);       /* zeros after it are padding */
    CHECK(tulle_read(ctx, "g.mtx.gz", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    is_dense(A, 3, 4, want, NULL);
    tulle_matrix_free(A);
    packed[n] = 'x';
    put_bytes("g.mtx.gz", packed, n + 16);
    CHECK(tulle_read(ctx, "g.mtx.gz", &A) == TULLE_EFORMAT, "read");
    SAYS("g.mtx.gz: something that is not gzip follows the packed data");
    remove("g.mtx.gz");
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
        REQUIRE(tulle_ctx_create("cpu", &mem, &own) == TULLE_OK, "no context");
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
            REQUIRE(tulle_ctx_create("cpu", &mem, &own) == TULLE_OK, "no context");
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

FILES_MAIN(TEST(a_file_cut_anywhere_is_refused),
           TEST(a_packed_file_cut_anywhere_is_refused),
           TEST(a_binary_file_cut_or_flipped_anywhere_is_refused),
           TEST(a_binary_file_with_a_wrong_pattern_is_refused),
           TEST(a_matrix_outlives_its_file_and_context),
           TEST(a_matrix_stays_as_it_was_read_when_its_file_changes),
           TEST(packed_text_may_come_in_several_members),
           TEST(sizes_that_lie_are_noticed_before_memory_is_taken),
           TEST(every_allocation_may_fail))
