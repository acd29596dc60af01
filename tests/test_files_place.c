/* SPDX-License-Identifier: MIT
 *
 * test_files_place.c - replacing files by renaming: links are followed, permissions are kept, names may have
 * any length, pipes and devices are refused, and no unfinished file is left. */
#define _XOPEN_SOURCE 700
#include "files_help.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

static made m;

static bool holds(const char *path, const char *text)
{
    size_t n;
    char *data = get_bytes(path, &n);
    bool same = n == strlen(text) && memcmp(data, text, n) == 0;
    free(data);
    return same;
}

/* All functions that write files, which must treat paths in the same way. */
static tulle_status write_in_way(int way, const char *path)
{
    tulle_writer *w = NULL;
    tulle_status status;
    switch (way) {
    case 0: return tulle_write(ctx, path, &m.view);
    case 1: return tulle_write_bytes(ctx, path, "new", 3);
    default:
        status = tulle_writer_create(ctx, path, m.view.rows, m.view.cols, m.view.val_type, &w);
        if (status == TULLE_OK) status = tulle_writer_put(w, &m.view);
        if (status == TULLE_OK) status = tulle_writer_finish(w);
        tulle_writer_free(w);
        return status;
    }
}

enum { WAYS = 3 };

static void a_link_stays_and_the_file_behind_it_is_replaced(void)
{
    struct stat st;
    for (int way = 0; way < WAYS; way++) {
        mkdir("d", 0777);
        put_bytes("d/t.mtx", "old", 3);
        CHECK(symlink("d/t.mtx", "l.mtx") == 0 && symlink("l.mtx", "ll.mtx") == 0, "no links");
        CHECK(write_in_way(way, "ll.mtx") == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(lstat("ll.mtx", &st) == 0 && S_ISLNK(st.st_mode) && lstat("l.mtx", &st) == 0
              && S_ISLNK(st.st_mode),
              "way %d: a link is gone", way);
        CHECK(!holds("d/t.mtx", "old"), "way %d: the file is the old one", way);
        CHECK(files_here() == 3, "%d files are here", files_here());
        remove("d/t.mtx");
        CHECK(rmdir("d") == 0, "something is left in the folder");
        CHECK(write_in_way(way, "l.mtx") == TULLE_EIO, "a link to nothing");
        SAYS("l.mtx: cannot be written: it is a link that cannot be followed: No such file or directory");
        remove("l.mtx");
        remove("ll.mtx");
    }
}

/* As in /tmp, where everybody can create names, and somebody created a link to one of our files. */
static void a_link_of_somebody_else_in_a_public_folder_is_no_way(void)
{
    if (geteuid() != 0) return;         /* only root can make one */
    put_bytes("mine.mtx", "mine", 4);
    mkdir("p", 0777);
    CHECK(chmod("p", 01777) == 0 && symlink("../mine.mtx", "p/c.mtx") == 0
          && lchown("p/c.mtx", 65534, 65534) == 0,
          "no link");
    for (int way = 0; way < WAYS; way++) {
        CHECK(write_in_way(way, "p/c.mtx") == TULLE_EIO, "way %d: written", way);
        SAYS("p/c.mtx: cannot be written: it is a link that somebody else made in a folder where"
             " everybody may write");
    }
    CHECK(holds("mine.mtx", "mine"), "it was written through");
    remove("p/c.mtx");
    rmdir("p");
    remove("mine.mtx");
}

static void pipes_devices_and_folders_are_refused(void)
{
    CHECK(mkfifo("f.mtx", 0666) == 0 && symlink("/dev/null", "n.mtx") == 0 && mkdir("d.mtx", 0777) == 0,
          "not made");
    static const char *const names[] = {"f.mtx", "n.mtx", "d.mtx"};
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 3; i++) {
            char sentence[128];
            snprintf(sentence, sizeof sentence, "%s: cannot be written: it is there and is not a plain file",
                     names[i]);
            CHECK(write_in_way(way, names[i]) == TULLE_EIO, "%s was written", names[i]);
            SAYS(sentence);
            CHECK(tulle_write_check(ctx, names[i]) == TULLE_EIO, "%s could be written", names[i]);
        }
    CHECK(tulle_write_bytes(ctx, "", "x", 1) == TULLE_EIO, "no name");
    remove("f.mtx");
    remove("n.mtx");
    rmdir("d.mtx");
}

static void a_name_may_have_255_bytes(void)
{
    char name[300];
    for (int length = 240; length <= 256; length++) {
        memset(name, 'n', (size_t)length);
        strcpy(name + length - 4, ".mtx");
        bool fits = length <= 255;
        CHECK(tulle_write_check(ctx, name) == (fits ? TULLE_OK : TULLE_EIO), "%d bytes: %s", length,
              tulle_ctx_error(ctx));
        CHECK(files_here() == 0, "the check left something");
        for (int way = 0; way < WAYS; way++) {
            CHECK(write_in_way(way, name) == (fits ? TULLE_OK : TULLE_EIO), "%d bytes: %s", length,
                  tulle_ctx_error(ctx));
            CHECK(files_here() == fits, "%d files are here", files_here());
        }
        CHECK(fits || strstr(tulle_ctx_error(ctx), "File name too long"), "%s", tulle_ctx_error(ctx));
        remove(name);
    }
}

static void what_cannot_be_written_is_known_before(void)
{
    CHECK(tulle_write_check(ctx, "nowhere/c.mtx") == TULLE_EIO, "a folder that is not there");
    SAYS("nowhere/c.mtx: cannot be written: No such file or directory");
    put_bytes("old.mtx", "old", 3);
    CHECK(tulle_write_check(ctx, "old.mtx/c.mtx") == TULLE_EIO, "a file as a folder");
    CHECK(tulle_write_check(ctx, "old.mtx") == TULLE_OK && holds("old.mtx", "old"), "the check wrote");
    if (geteuid() == 0) {               /* root may write anywhere, the user nobody may not */
        mkdir("locked", 0755);
        CHECK(seteuid(65534) == 0, "still root");
        tulle_status folder = tulle_write_check(ctx, "locked/c.mtx");
        tulle_status file = tulle_write_check(ctx, "old.mtx");
        CHECK(seteuid(0) == 0, "no longer root");
        CHECK(folder == TULLE_EIO && file == TULLE_EIO, "%d, %d", (int)folder, (int)file);
        rmdir("locked");
    }
    remove("old.mtx");
}

static void the_new_file_has_the_rights_of_the_old(void)
{
    struct stat st;
    for (int way = 0; way < WAYS; way++) {
        bool root = geteuid() == 0;
        put_bytes("k.mtx", "old", 3);
        CHECK(chmod("k.mtx", 0604) == 0 && (!root || chown("k.mtx", 65534, 65533) == 0), "not given away");
        CHECK(write_in_way(way, "k.mtx") == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(stat("k.mtx", &st) == 0 && (st.st_mode & 07777) == 0604, "way %d: %o", way,
              (unsigned)st.st_mode);
        CHECK(!root || (st.st_uid == 65534 && st.st_gid == 65533), "way %d: of %d, %d", way, (int)st.st_uid,
              (int)st.st_gid);
        remove("k.mtx");
        mode_t mask = umask(027);
        CHECK(write_in_way(way, "k.mtx") == TULLE_OK, "%s", tulle_ctx_error(ctx));
        umask(mask);
        CHECK(stat("k.mtx", &st) == 0 && (st.st_mode & 07777) == 0640, "way %d: %o", way,
              (unsigned)st.st_mode);
        remove("k.mtx");
    }
}

/* ---- temporary files */

typedef struct { int there, told, seen; char path[512]; } partial;

static void note_partial(void *user, const char *path, int there)
{
    partial *p = user;
    p->told++;
    p->there += there ? 1 : -1;
    snprintf(p->path, sizeof p->path, "%s", path);
}

static int look_at_partial(void *user, const char *stage, double fraction)
{
    partial *p = user;
    (void)stage, (void)fraction;
    p->seen += p->there == 1 && access(p->path, F_OK) == 0;
    return 0;
}

static void who_asks_is_told_of_temporary_files(void)
{
    mkdir("d", 0777);
    for (int way = 0; way < WAYS; way++) {
        partial p = {0};
        tulle_ctx_set_partial(ctx, note_partial, &p);
        tulle_ctx_set_progress(ctx, look_at_partial, &p);
        CHECK(write_in_way(way, "d/c.mtx") == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(p.told == 2 && p.there == 0 && access(p.path, F_OK) != 0, "way %d: told %d times", way, p.told);
        CHECK(strncmp(p.path, "d/tulle-", 8) == 0 && strstr(p.path, ".part"), "%s", p.path);
        CHECK(way == 1 || p.seen > 0, "way %d: it was never there", way);
    }
    tulle_ctx_set_partial(ctx, NULL, NULL);
    tulle_ctx_set_progress(ctx, NULL, NULL);
    remove("d/c.mtx");
    rmdir("d");
}

/* ---- blocks of rows */

static tulle_csr rows_of(int32_t *ptr, int first, int count)
{
    for (int i = 0; i <= count; i++) ptr[i] = m.ptr[first + i] - m.ptr[first];
    return tulle_csr_f64_i32(count, m.view.cols, ptr, m.col + m.ptr[first], m.val + m.ptr[first]);
}

static const char *entries_of(const char *text)
{
    for (int line = 0; line < 3; line++) text = strchr(text, '\n') + 1;
    return text;
}

/* Blocks of increasing size, and one without rows. */
static void put_blocks(tulle_writer *w, int32_t *ptr)
{
    for (int first = 0, count = 0; first < m.view.rows; first += count) {
        count = first % 7 == 3 ? 0 : 1 + first / 2;
        if (count == 0) {
            tulle_csr none = rows_of(ptr, first, 0);
            CHECK(tulle_writer_put(w, &none) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            count = 1;
        }
        if (count > m.view.rows - first) count = (int)m.view.rows - first;
        tulle_csr block = rows_of(ptr, first, count);
        CHECK(tulle_writer_put(w, &block) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    }
}

static void blocks_of_rows_make_the_same_file(void)
{
    static const char *const names[] = {"b.mtx", "b.tulle"};
    int32_t *ptr = malloc((size_t)(m.view.rows + 1) * sizeof *ptr);
    for (int i = 0; i < 4; i++) {
        const char *name = names[i % 2];
        tulle_writer *w = NULL;
        tulle_matrix *B = NULL;
        tulle_ctx_set_threads(ctx, i < 2 ? 1 : THREADS);
        REQUIRE(tulle_writer_create(ctx, name, m.view.rows, m.view.cols, TULLE_F64, &w) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        put_blocks(w, ptr);
        CHECK(access(name, F_OK) != 0, "it is there before it is whole");
        CHECK(tulle_writer_finish(w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_writer_finish(w) == TULLE_EINVAL, "finished twice");
        tulle_writer_free(w);
        CHECK(files_here() == 1, "%d files are here", files_here());
        CHECK(tulle_read(ctx, name, &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr v = tulle_matrix_view(B);
        CHECK(same_matrix(&v, &m.view), "%s: another matrix", name);
        tulle_matrix_free(B);
        remove(name);
    }
    tulle_ctx_set_threads(ctx, 0);
    free(ptr);
}

/* The same, except for spaces in the line of sizes. */
static void blocks_of_rows_make_the_same_text(void)
{
    int32_t *ptr = malloc((size_t)(m.view.rows + 1) * sizeof *ptr);
    tulle_writer *w = NULL;
    size_t n;
    REQUIRE(tulle_writer_create(ctx, "b.mtx", m.view.rows, m.view.cols, TULLE_F64, &w) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    put_blocks(w, ptr);
    CHECK(tulle_writer_finish(w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_writer_free(w);
    CHECK(tulle_write(ctx, "a.mtx", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *blocks = get_bytes("b.mtx", &n), *whole = get_bytes("a.mtx", &n);
    CHECK(strcmp(entries_of(blocks), entries_of(whole)) == 0, "other decimals");
    free(blocks);
    free(whole);
    remove("a.mtx");
    remove("b.mtx");
    free(ptr);
}

/* The same bytes as tulle_write() writes for this matrix with 64-bit row pointers: for arrays that end
 * within a block of the checksum, at its end, and after it; for every value type, none, and both widths of
 * columns. */
static void blocks_of_rows_make_the_same_bytes(void)
{
    enum { ROWS = 6, MOST = 3 * (1 << 20) / 8 };
    static const tulle_type types[] = {(tulle_type)0, TULLE_F32, TULLE_F64, TULLE_CF32, TULLE_CF64};
    static const int64_t lengths[] = {0, 1, 7, (1 << 20) / 8 - 1, (1 << 20) / 8, (1 << 20) / 8 + 1, MOST};
    int64_t *ptr = malloc((ROWS + 1) * sizeof *ptr), *wide = malloc(MOST * sizeof *wide);
    int32_t *narrow = malloc(MOST * sizeof *narrow);
    double *val = malloc(2 * MOST * sizeof *val);
    for (int64_t k = 0; k < MOST; k++) wide[k] = narrow[k] = (int32_t)k, val[2 * k] = (double)k, val[2 * k + 1] = -1;
    for (int i = 0; i < 5 * 7 * 2; i++) {
        tulle_type type = types[i % 5];
        int64_t length = lengths[i / 5 % 7];
        bool w64 = i / 35 == 1;
        tulle_csr A = {.rows = ROWS, .cols = MOST, .nnz = length, .row_ptr = ptr, .values = type ? val : NULL,
                       .col_idx = w64 ? (void *)wide : (void *)narrow, .ptr_type = TULLE_I64,
                       .idx_type = w64 ? TULLE_I64 : TULLE_I32, .val_type = type};
        for (int r = 0; r <= ROWS; r++) ptr[r] = r < 2 ? 0 : r < 4 ? length / 3 : length;
        tulle_writer *w = NULL;
        REQUIRE(tulle_writer_create(ctx, "b.tulle", ROWS, MOST, type, &w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int first = 0; first < ROWS; first += 3) {
            int64_t begin = ptr[first], part[4], idx = w64 ? 8 : 4, size = type == TULLE_F32 ? 4 : type == TULLE_CF64 ? 16 : 8;
            for (int r = 0; r <= 3; r++) part[r] = ptr[first + r] - begin;
            tulle_csr block = A;
            block.rows = 3;
            block.nnz = part[3];
            block.row_ptr = part;
            block.col_idx = (const char *)A.col_idx + begin * idx;
            if (type) block.values = (const char *)A.values + begin * size;
            CHECK(tulle_writer_put(w, &block) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        }
        CHECK(tulle_writer_finish(w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_writer_free(w);
        if (length == 0) A.idx_type = TULLE_I32;        /* the default without blocks */
        CHECK(tulle_write(ctx, "a.tulle", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        size_t n, whole;
        char *blocks = get_bytes("b.tulle", &n), *all = get_bytes("a.tulle", &whole);
        CHECK(n == whole && memcmp(blocks, all, n) == 0, "type %d, %" PRId64 " entries, %d bits: other bytes", (int)type,
              length, w64 ? 64 : 32);
        free(blocks);
        free(all);
        remove("a.tulle");
        remove("b.tulle");
    }
    free(ptr);
    free(wide);
    free(narrow);
    free(val);
}

/* If the disk is full at any byte, there is a message, and neither temporary file is left. */
static void a_full_disk_leaves_nothing_of_blocks(void)
{
    int32_t *ptr = malloc((size_t)(m.view.rows + 1) * sizeof *ptr);
    struct rlimit old, small;
    tulle_csr all = rows_of(ptr, 0, (int)m.view.rows);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    int refused = 0;
    for (rlim_t room = 0; room < 8 << 20; room = room * 2 + 200) {
        tulle_writer *w = NULL;
        small = old;
        small.rlim_cur = room;
        setrlimit(RLIMIT_FSIZE, &small);
        tulle_status status = tulle_writer_create(ctx, "b.tulle", m.view.rows, m.view.cols, TULLE_F64, &w);
        if (status == TULLE_OK) status = tulle_writer_put(w, &all);
        if (status == TULLE_OK) status = tulle_writer_finish(w);
        setrlimit(RLIMIT_FSIZE, &old);
        tulle_writer_free(w);
        CHECK(status == TULLE_OK || status == TULLE_EIO, "room for %d bytes: status %d", (int)room, (int)status);
        if (status != TULLE_OK) SAYS("b.tulle: cannot be written: File too large");
        refused += status != TULLE_OK;
        CHECK(files_here() == (status == TULLE_OK), "%d files are here", files_here());
        remove("b.tulle");
    }
    CHECK(refused > 3, "refused %d times", refused);
    free(ptr);
}

static int cancel_after(void *user, const char *stage, double fraction)
{
    int *left = user;
    (void)stage, (void)fraction;
    return (*left)-- <= 0;
}

static void blocks_can_be_cancelled_at_any_time(void)
{
    int32_t *ptr = malloc((size_t)(m.view.rows + 1) * sizeof *ptr);
    tulle_csr all = rows_of(ptr, 0, (int)m.view.rows);
    tulle_status status = TULLE_ECANCEL;
    int calls = 0;
    for (; calls < 100 && status == TULLE_ECANCEL; calls++) {
        tulle_writer *w = NULL;
        int left = calls;
        REQUIRE(tulle_writer_create(ctx, "b.tulle", m.view.rows, m.view.cols, TULLE_F64, &w) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_ctx_set_progress(ctx, cancel_after, &left);
        status = tulle_writer_put(w, &all);
        if (status == TULLE_OK) status = tulle_writer_finish(w);
        tulle_ctx_set_progress(ctx, NULL, NULL);
        tulle_writer_free(w);
        CHECK(status == TULLE_OK || status == TULLE_ECANCEL, "status %d: %s", (int)status, tulle_ctx_error(ctx));
        CHECK(files_here() == (status == TULLE_OK), "%d files are here", files_here());
    }
    CHECK(status == TULLE_OK && calls > 3, "cancelled %d times", calls);
    remove("b.tulle");
    free(ptr);
}

static void a_writer_refuses_what_does_not_belong(void)
{
    int32_t *ptr = malloc((size_t)(m.view.rows + 1) * sizeof *ptr);
    tulle_csr block = rows_of(ptr, 0, 3), wide = block, other = block, wrong = block;
    static const int32_t twice[] = {1, 1};
    static const int32_t two[] = {0, 2};
    static const double val[] = {1, 2};
    wide.cols++;
    other.values = NULL;
    wrong = tulle_csr_f64_i32(1, m.view.cols, two, twice, val);
    tulle_writer *w = NULL;
    put_bytes("b.mtx", "old", 3);
    CHECK(tulle_writer_create(ctx, "b.mtx.gz", 5, 5, TULLE_F64, &w) == TULLE_EINVAL && !w, "another format");
    SAYS("b.mtx.gz: the name should end with .mtx or .tulle; other files cannot be written in blocks of rows");
    CHECK(tulle_writer_create(ctx, "b.mtx", -1, 5, TULLE_F64, &w) == TULLE_EINVAL && !w, "a negative size");
    CHECK(tulle_writer_create(ctx, "b.mtx", 1, 5, (tulle_type)9, &w) == TULLE_ETYPE && !w,
          "a type that is none");
    CHECK(tulle_writer_put(NULL, &block) == TULLE_EINVAL && tulle_writer_finish(NULL) == TULLE_EINVAL,
          "no writer");
    REQUIRE(tulle_writer_create(ctx, "b.mtx", 5, m.view.cols, TULLE_F64, &w) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    CHECK(tulle_writer_put(w, &wide) == TULLE_ESHAPE, "more columns");
    CHECK(tulle_writer_put(w, &other) == TULLE_ETYPE, "no values");
    SAYS("b.mtx: its values are f64, and a block of none was put");
    CHECK(tulle_writer_put(w, &wrong) == TULLE_EPATTERN, "a column twice");
    CHECK(tulle_writer_put(w, &block) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_writer_put(w, &block) == TULLE_ESHAPE, "too many rows");
    SAYS("b.mtx: 3 of 5 rows were put, and a block of 3 more");
    CHECK(tulle_writer_finish(w) == TULLE_ESHAPE, "too few rows");
    SAYS("b.mtx: only 3 of 5 rows were put");
    tulle_writer_free(w);
    CHECK(files_here() == 1 && holds("b.mtx", "old"), "something is left, or the old file is not");
    CHECK(tulle_writer_create(ctx, "b.mtx", 0, 7, (tulle_type)0, &w) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_writer_finish(w) == TULLE_OK, "an empty pattern: %s", tulle_ctx_error(ctx));
    tulle_writer_free(w);
    tulle_writer_free(NULL);
    tulle_matrix *B = NULL;
    CHECK(tulle_read(ctx, "b.mtx", &B) == TULLE_OK && B->view.rows == 0 && B->view.cols == 7, "%s",
          tulle_ctx_error(ctx));
    tulle_matrix_free(B);
    remove("b.mtx");
    free(ptr);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        TEST(a_link_stays_and_the_file_behind_it_is_replaced),
        TEST(a_link_of_somebody_else_in_a_public_folder_is_no_way),
        TEST(pipes_devices_and_folders_are_refused),
        TEST(a_name_may_have_255_bytes),
        TEST(what_cannot_be_written_is_known_before),
        TEST(the_new_file_has_the_rights_of_the_old),
        TEST(who_asks_is_told_of_temporary_files),
        TEST(blocks_of_rows_make_the_same_file),
        TEST(blocks_of_rows_make_the_same_text),
        TEST(blocks_of_rows_make_the_same_bytes),
        TEST(a_full_disk_leaves_nothing_of_blocks),
        TEST(blocks_can_be_cancelled_at_any_time),
        TEST(a_writer_refuses_what_does_not_belong),
        TEST(nothing_is_left_in_the_folder),
    };
    m = make_random(5000, 1000, 10);
    int failed = files_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases));
    free_made(&m);
    return failed;
}
