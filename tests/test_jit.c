/* SPDX-License-Identifier: MIT
 *
 * test_jit.c - texts, keys, images and their cache, with a compiler that only reverses what it gets and
 * counts how often it was asked. */
#define _GNU_SOURCE
#include "jit/parts.h"
#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a compiler of our own */

typedef struct fake {
    atomic_int calls, inside, most_inside, wait_for;
} fake;

static tulle_status reverse(void *self, tl_base *b, const char *name, const char *source, tl_image *image)
{
    tulle_status status = TULLE_OK;
    fake *f = self;
    char *data;
    size_t n = strlen(source);
    atomic_fetch_add(&f->calls, 1);
    int inside = atomic_fetch_add(&f->inside, 1) + 1, most = atomic_load(&f->most_inside);
    while (inside > most && !atomic_compare_exchange_weak(&f->most_inside, &most, inside)) {}
    for (int i = 0; i < 5000 && atomic_load(&f->most_inside) < atomic_load(&f->wait_for); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (strstr(source, "#define FAIL")) {
        status = tl_fail(b, TULLE_ECOMPILE, "%s.cl(7): error: %.9s", name, strstr(source, "FAIL"));
        goto done;
    }
    TRY(tl_alloc(b, &data, (int64_t)n, 1, "a fake image"));
    for (size_t i = 0; i < n; i++) data[i] = source[n - 1 - i];
    image->data = data;
    image->bytes = n;
done:
    atomic_fetch_sub(&f->inside, 1);
    return status;
}

static tl_compiler compiler_of(fake *f)
{
    return (tl_compiler){.dialect = "opencl", .arch = "fake", .version = "fake 1", .self = f, .compile = reverse};
}

static tl_program program(const char *defines, int number)
{
    tl_program p = {.file = tl_jit_file(0)};
    snprintf(p.defines, sizeof p.defines, "%s#define NUMBER %d\n", defines, number);
    return p;
}

static bool right(tl_base *b, const tl_compiler *c, const tl_program *p, const tl_image *image)
{
    char *text;
    if (tl_jit_source(b, c->dialect, p, &text) != TULLE_OK) return false;
    size_t n = strlen(text);
    bool same = image->data && image->bytes == n;
    for (size_t i = 0; same && i < n; i++) same = ((const char *)image->data)[i] == text[n - 1 - i];
    tl_free(b, text);
    return same;
}

/* ---- a folder, and what was traced */

static char folder[256];
static char traced[8192];
static int  told;               /* lines that say the cache is of no use */

static void on_trace(void *user, const char *line)
{
    (void)user;
    size_t n = strlen(traced);
    snprintf(traced + n, sizeof traced - n, "%s\n", line);
    told += strstr(line, "not kept") != NULL;
}

static tl_base *open_base(int threads)
{
    tl_base *b = NULL;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tulle-jit-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder) || tl_base_create(NULL, threads, sizeof *b, &b) != TULLE_OK) {
        printf("    no folder or no base\n");
        exit(1);
    }
    setenv("TULLE_CACHE", folder, 1);
    traced[0] = 0;
    told = 0;
    b->trace = on_trace;
    return b;
}

static void remove_below(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char name[1024];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode)) remove_below(name);
        else unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

static void close_base(tl_base *b, uint64_t held)
{
    CHECK(atomic_load(&b->held) == held, "%llu bytes are held", (unsigned long long)atomic_load(&b->held));
    tl_base_free(b);
    remove_below(folder);
    unsetenv("TULLE_CACHE");
}

/* Names in the folder that begin so; the first of them. */
static int files_like(const char *start, char *first, size_t bytes)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, start, strlen(start)) != 0) continue;
        if (n++ == 0 && first) snprintf(first, bytes, "%s/%s", folder, e->d_name);
    }
    if (d) closedir(d);
    return n;
}

static long read_file(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    long n = (long)fread(to, 1, room, f);
    fclose(f);
    return n;
}

static bool write_file(const char *path, const char *from, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool all = fwrite(from, 1, bytes, f) == bytes;
    return fclose(f) == 0 && all;
}

/* One program through the cache: is the image right, and was it compiled? */
static bool one(tl_base *b, const tl_compiler *c, const tl_program *p, bool compiled, const char *when)
{
    tl_image image;
    fake *f = c->self;
    int before = atomic_load(&f->calls);
    tulle_status status = tl_jit_images(b, c, p, 1, &image);
    CHECK(status == TULLE_OK, "%s: %s", when, b->error);
    if (status != TULLE_OK) return false;
    bool good = right(b, c, p, &image);
    CHECK(good, "%s: the image is not that of the text", when);
    CHECK(atomic_load(&f->calls) - before == (compiled ? 1 : 0), "%s: %d calls", when,
          atomic_load(&f->calls) - before);
    CHECK(image.origin == (compiled ? TL_COMPILED : TL_CACHED), "%s: origin %d", when, (int)image.origin);
    good = good && image.origin == (compiled ? TL_COMPILED : TL_CACHED);
    tl_image_free(b, &image);
    return good;
}

/* ---- SHA-256 */

static bool is_hash(tl_hash h, const char *hex)
{
    char text[65];
    for (int i = 0; i < 32; i++) sprintf(text + 2 * i, "%02x", h.byte[i]);
    return strcmp(text, hex) == 0;
}

static void sha256_gives_the_published_hashes(void)
{
    CHECK(is_hash(tl_sha256_of("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), "empty");
    CHECK(is_hash(tl_sha256_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "abc");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    CHECK(is_hash(tl_sha256_of(two, strlen(two)), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
          "two blocks");
    char *million = malloc(1000000);
    REQUIRE(million, "no memory");
    memset(million, 'a', 1000000);
    const char *expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    CHECK(is_hash(tl_sha256_of(million, 1000000), expected), "a million a");
    for (size_t step = 1; step < 200; step += 13) {
        tl_sha256 s;
        tl_sha256_begin(&s);
        for (size_t at = 0; at < 1000000; at += step)
            tl_sha256_add(&s, million + at, 1000000 - at < step ? 1000000 - at : step);
        CHECK(is_hash(tl_sha256_end(&s), expected), "in steps of %zu", step);
    }
    free(million);
}

/* ---- texts */

/* What stands behind the #line of a part is the file, byte for byte. */
static bool holds_file(const char *text, const char *name)
{
    static char file[1 << 20];
    char path[1024], line[128];
    snprintf(path, sizeof path, "%s/../src/kernels/%s.cl", TULLE_TEST_DIR, name);
    snprintf(line, sizeof line, "#line 1 \"%s.cl\"\n", name);
    long n = read_file(path, file, sizeof file);
    const char *at = strstr(text, line);
    return n > 0 && at && strncmp(at + strlen(line), file, (size_t)n) == 0;
}

static void a_text_is_made_of_whole_files_that_keep_their_lines(void)
{
    static const char *const dialects[] = {"cuda", "opencl"};
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    int files = 0;
    for (; tl_jit_file(files); files++)
        for (int d = 0; d < 2; d++) {
            tl_program p = {.file = tl_jit_file(files), .defines = "#define A_WORD 17\n#define ANOTHER 2"};
            char *text, prelude[64];
            snprintf(prelude, sizeof prelude, "prelude_%s", dialects[d]);
            REQUIRE(tl_jit_source(b, dialects[d], &p, &text) == TULLE_OK, "%s", b->error);
            CHECK(strstr(p.file, "prelude") == NULL && strcmp(p.file, "common") != 0, "%s is no kernel", p.file);
            CHECK(holds_file(text, prelude) && holds_file(text, "common") && holds_file(text, p.file), "%s", p.file);
            const char *defines = strstr(text, "#line 1 \"defines\"\n#define A_WORD 17\n#define ANOTHER 2\n#line 1 ");
            char last[128];
            snprintf(last, sizeof last, "#line 1 \"%s.cl\"\n", p.file);
            CHECK(strncmp(text, "#line 1 \"prelude_", 17) == 0, "%s does not begin with the prelude", p.file);
            CHECK(defines && defines < strstr(text, "#line 1 \"common.cl\"\n"), "the defines come before common.cl");
            CHECK(strstr(text, last) > strstr(text, "#line 1 \"common.cl\"\n"), "%s comes last", p.file);
            tl_free(b, text);
        }
    CHECK(files > 3, "only %d kernel files", files);
    close_base(b, held);
}

static void a_file_or_dialect_that_is_not_there_is_named(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    tl_program p = {.file = "no_such_kernel"}, q = {.file = tl_jit_file(0)};
    char *text;
    CHECK(tl_jit_source(b, "cuda", &p, &text) == TULLE_ECOMPILE && !text, "found");
    CHECK(strstr(b->error, "no_such_kernel.cl"), "%s", b->error);
    CHECK(tl_jit_source(b, "klingon", &q, &text) == TULLE_ECOMPILE && !text, "found");
    CHECK(strstr(b->error, "prelude_klingon.cl"), "%s", b->error);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_image image;
    CHECK(tl_jit_images(b, &c, &p, 1, &image) == TULLE_ECOMPILE && !image.data, "an image of nothing");
    close_base(b, held);
}

/* ---- the cache */

static void the_second_time_it_comes_from_the_cache(void)
{
    tl_base *b = open_base(2);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    one(b, &c, &p, true, "first");
    CHECK(strstr(traced, "compiled in "), "%s", traced);
    one(b, &c, &p, false, "second");
    CHECK(strstr(traced, ": from the cache"), "%s", traced);
    tl_cache_info info;
    REQUIRE(tl_cache_look(b, &info) == TULLE_OK, "%s", b->error);
    CHECK(info.entries == 1 && info.bytes > 88 && strcmp(info.path, folder) == 0, "%lld entries in %s",
          (long long)info.entries, info.path);
    REQUIRE(tl_cache_clear(b, &info) == TULLE_OK, "%s", b->error);
    CHECK(info.entries == 1, "%lld removed", (long long)info.entries);
    REQUIRE(tl_cache_look(b, &info) == TULLE_OK, "%s", b->error);
    CHECK(info.entries == 0 && info.bytes == 0, "%lld are left", (long long)info.entries);
    one(b, &c, &p, true, "after the clearing");
    CHECK(told == 0, "%s", traced);
    close_base(b, held);
}

static void every_part_of_the_key_counts(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    const tl_compiler first = compiler_of(&f);
    const tl_program p = program("", 1);
    tl_compiler c = first;
    tl_program q = p;
    one(b, &first, &p, true, "first");
    c.arch = "fake2", one(b, &c, &p, true, "another device"), c = first;
    c.version = "fake 2", one(b, &c, &p, true, "another compiler"), c = first;
    c.dialect = "cuda", one(b, &c, &p, true, "another dialect"), c = first;
    c.arch = "fakef", c.version = "ake 1", one(b, &c, &p, true, "a letter moved from one part to the next"), c = first;
    q = program("", 2), one(b, &c, &q, true, "another define"), q = p;
    q.file = tl_jit_file(1), one(b, &c, &q, true, "another file"), q = p;
    one(b, &first, &p, false, "the first again");
    CHECK(files_like("", NULL, 0) == 7, "%d entries", files_like("", NULL, 0));
    close_base(b, held);
}

static void a_damaged_entry_is_compiled_again_and_mended(void)
{
    static char entry[1 << 20], damaged[1 << 20];
    char path[512], when[64];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1), other = program("", 2);
    one(b, &c, &p, true, "first");
    REQUIRE(files_like("", path, sizeof path) == 1, "not one entry");
    long n = read_file(path, entry, sizeof entry);
    REQUIRE(n > 2000 && n < (long)sizeof entry, "%ld bytes", n);
    for (long at = 0; at < n; at += at < 100 ? 1 : 997) {       /* every byte of the head */
        memcpy(damaged, entry, (size_t)n);
        damaged[at] ^= (char)(1 << at % 8);
        REQUIRE(write_file(path, damaged, (size_t)n), "%s", path);
        snprintf(when, sizeof when, "byte %ld is wrong", at);
        one(b, &c, &p, true, when);
        one(b, &c, &p, false, when);
    }
    const long lengths[] = {0, 1, 8, 16, 87, 88, 89, n / 2, n - 1};
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++) {
        REQUIRE(write_file(path, entry, (size_t)lengths[i]), "%s", path);
        snprintf(when, sizeof when, "cut to %ld bytes", lengths[i]);
        one(b, &c, &p, true, when);
        one(b, &c, &p, false, when);
    }
    REQUIRE(write_file(path, entry, (size_t)n + 1), "%s", path);
    one(b, &c, &p, true, "a byte too many");
    REQUIRE(unlink(path) == 0, "%s", path);
    one(b, &c, &other, true, "another program");
    char foreign[512];
    REQUIRE(files_like("", foreign, sizeof foreign) == 1 && strcmp(foreign, path) != 0, "not one entry");
    REQUIRE(rename(foreign, path) == 0, "%s", path);
    one(b, &c, &p, true, "a whole entry of another program");
    one(b, &c, &p, false, "a whole entry of another program");
    REQUIRE(unlink(path) == 0 && symlink(path, path) == 0, "%s", path);
    one(b, &c, &p, true, "a link to itself");
    one(b, &c, &p, false, "a link to itself");
    REQUIRE(unlink(path) == 0 && mkfifo(path, 0600) == 0, "%s", path);
    one(b, &c, &p, true, "a pipe");
    one(b, &c, &p, false, "a pipe");
    CHECK(files_like("", NULL, 0) == 1, "%d files", files_like("", NULL, 0));
    REQUIRE(unlink(path) == 0 && mkdir(path, 0700) == 0, "%s", path);
    one(b, &c, &p, true, "a folder, which cannot be written over");
    one(b, &c, &p, true, "a folder, which cannot be written over");
    close_base(b, held);
}

static void a_cache_that_cannot_be_written_only_costs_time(void)
{
    char file[512], below[600], deep[600], first[700];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/file/below/it", folder);
    snprintf(deep, sizeof deep, "%s/a/b/c", folder);
    REQUIRE(write_file(file, "x", 1), "%s", file);
    const char *const bad[] = {below, file, "/dev/full", "/dev/null/tulle", "/proc/self/tulle/cache"};
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        traced[0] = 0;
        told = 0;
        setenv("TULLE_CACHE", bad[i], 1);
        one(b, &c, &p, true, bad[i]);
        one(b, &c, &p, true, bad[i]);
        CHECK(told == 2 && strstr(traced, bad[i]), "%s: told %d times:\n%s", bad[i], told, traced);
        tl_cache_info info;
        CHECK(tl_cache_look(b, &info) == TULLE_OK && info.entries == 0, "%s: %s", bad[i], b->error);
        CHECK(tl_cache_clear(b, &info) == TULLE_OK && info.entries == 0, "%s: %s", bad[i], b->error);
    }
    told = 0;
    setenv("TULLE_CACHE", deep, 1);
    one(b, &c, &p, true, "folders that must be made");
    one(b, &c, &p, false, "folders that must be made");
    snprintf(first, sizeof first, "%s/a", folder);
    struct stat st, last;
    CHECK(stat(first, &st) == 0 && stat(deep, &last) == 0 && (st.st_mode & 077) == 0 && (last.st_mode & 077) == 0,
          "others can look into them");
    CHECK(told == 0, "%s", traced);
    close_base(b, held);
}

/* In a child, because a limit that was lowered stays. */
static int under_size_limit(void)
{
    tl_base *b = NULL;
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    test_failures = 0;
    fflush(stdout);
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) return 1;
    b->trace = on_trace;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    bool good = one(b, &c, &p, true, "full disk") && one(b, &c, &p, true, "full disk");
    tl_base_free(b);
    return good && told == 2 && strstr(traced, strerror(EFBIG)) && files_like("", NULL, 0) == 0 ? 0 : 1;
}

static void a_disk_that_is_full_leaves_nothing_half_written(void)
{
    tl_base *b = open_base(1);
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0, "no child");
    if (child == 0) _exit(under_size_limit());
    int how = 0;
    REQUIRE(waitpid(child, &how, 0) == child, "the child is lost");
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the child ended with %d", how);
    CHECK(files_like("", NULL, 0) == 0, "%d files are left", files_like("", NULL, 0));
    close_base(b, atomic_load(&b->held));
}

static void folder_must_be(const char *expected, const char *trouble)
{
    tl_cache cache;
    tl_cache_open(&cache);
    CHECK(strcmp(cache.path, expected) == 0, "%s, not %s", cache.path, expected);
    CHECK(!*trouble == !cache.trouble[0] && strstr(cache.trouble, trouble), "%s", cache.trouble);
}

static void the_folder_follows_the_environment(void)
{
    char home[256];
    static char longer[2000];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';

    setenv("TULLE_CACHE", "/own", 1), setenv("XDG_CACHE_HOME", "/xdg", 1), setenv("HOME", "/home", 1);
    folder_must_be("/own", "");
    unsetenv("TULLE_CACHE");
    folder_must_be("/xdg/tulle", "");
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    folder_must_be("/home/.cache/tulle", "");
    unsetenv("XDG_CACHE_HOME");
    folder_must_be("/home/.cache/tulle", "");
    setenv("HOME", longer, 1);
    folder_must_be("", "too long");
    one(b, &c, &p, true, "a name too long");
    CHECK(told == 1, "told %d times", told);
    unsetenv("HOME");
    folder_must_be("", "HOME");
    one(b, &c, &p, true, "no HOME");
    one(b, &c, &p, true, "no HOME");
    CHECK(told == 3 && strstr(traced, "HOME"), "told %d times", told);
    tl_cache_info info;
    CHECK(tl_cache_look(b, &info) == TULLE_OK && !info.path[0] && info.entries == 0, "%s", info.path);
    CHECK(tl_cache_clear(b, &info) == TULLE_OK && info.entries == 0, "%s", info.path);
    if (home[0]) setenv("HOME", home, 1);
    close_base(b, held);
}

static void entries_longest_unused_go_first(void)
{
    tl_base *b = open_base(2);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[6];
    char path[512], stale[512], young[512], foreign[512];
    tl_cache cache;
    tl_cache_info info;
    for (int i = 0; i < 6; i++) {
        p[i] = program("", 100 + i);
        one(b, &c, &p[i], true, "made");
        tl_cache_open(&cache);
        char *text;
        REQUIRE(tl_jit_source(b, c.dialect, &p[i], &text) == TULLE_OK, "%s", b->error);
        tl_hash key = tl_cache_key(&c, text);
        tl_free(b, text);
        int n = snprintf(path, sizeof path, "%s/", folder);
        for (int k = 0; k < 32; k++) n += sprintf(path + n, "%02x", key.byte[k]);
        strcpy(path + n, ".image");
        struct timespec old[2] = {{.tv_sec = 1000000 + i}, {.tv_sec = 1000000 + i}};
        REQUIRE(utimensat(AT_FDCWD, path, old, 0) == 0, "%s", path);
    }
    snprintf(stale, sizeof stale, "%s/half-AbCdEf", folder);
    snprintf(young, sizeof young, "%s/half-123456", folder);
    snprintf(foreign, sizeof foreign, "%s/thesis.image", folder);
    REQUIRE(write_file(stale, "x", 1) && write_file(young, "x", 1) && write_file(foreign, "x", 1), "%s", folder);
    struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    REQUIRE(utimensat(AT_FDCWD, stale, old, 0) == 0, "%s", stale);

    REQUIRE(tl_cache_look(b, &info) == TULLE_OK && info.entries == 6, "%lld entries", (long long)info.entries);
    one(b, &c, &p[0], false, "the oldest is used");
    tl_cache_trim(b, &cache, info.bytes);
    CHECK(access(stale, F_OK) != 0 && access(young, F_OK) == 0, "of files half written only old ones go");
    REQUIRE(tl_cache_look(b, &info) == TULLE_OK && info.entries == 6, "%lld entries", (long long)info.entries);
    tl_cache_trim(b, &cache, (info.bytes - 1) / 2 + 10);
    REQUIRE(tl_cache_look(b, &info) == TULLE_OK && info.entries == 3, "%lld entries", (long long)info.entries);
    for (int i = 1; i < 4; i++) one(b, &c, &p[i], true, "gone");
    one(b, &c, &p[0], false, "used a moment ago");
    for (int i = 4; i < 6; i++) one(b, &c, &p[i], false, "young");
    tl_cache_trim(b, &cache, 0);
    REQUIRE(tl_cache_look(b, &info) == TULLE_OK && info.entries == 0, "%lld entries", (long long)info.entries);
    one(b, &c, &p[0], true, "all are gone");
    REQUIRE(tl_cache_clear(b, &info) == TULLE_OK && info.entries == 1, "%lld removed", (long long)info.entries);
    CHECK(access(young, F_OK) != 0, "clearing takes what is half written, too");
    CHECK(access(foreign, F_OK) == 0, "what is not ours stays");
    close_base(b, held);
}

static void the_public_functions_show_and_clear_it(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    tulle_ctx *ctx = NULL;
    tulle_cache info;
    one(b, &c, &p, true, "first");
    REQUIRE(tulle_ctx_create("cpu", NULL, &ctx) == TULLE_OK, "no context");
    CHECK(tulle_cache_info(NULL, &info) == TULLE_EINVAL && tulle_cache_clear(NULL, &info) == TULLE_EINVAL, "no context");
    CHECK(tulle_cache_info(ctx, NULL) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "info"), "%s",
          tulle_ctx_error(ctx));
    CHECK(tulle_cache_clear(ctx, NULL) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "removed"), "%s",
          tulle_ctx_error(ctx));
    CHECK(tulle_cache_info(ctx, &info) == TULLE_OK && info.entries == 1 && info.bytes > 88, "%s", tulle_ctx_error(ctx));
    CHECK(strcmp(info.path, folder) == 0 && info.embedded == tl_embedded_count(), "%s", info.path);
    CHECK(tulle_cache_clear(ctx, &info) == TULLE_OK && info.entries == 1, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_cache_info(ctx, &info) == TULLE_OK && info.entries == 0 && info.bytes == 0, "%s", tulle_ctx_error(ctx));
    tulle_ctx_free(ctx);
    close_base(b, held);
}

/* ---- many at once */

static void missing_images_are_compiled_at_the_same_time(void)
{
    tl_base *b = open_base(4);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[24];
    tl_image images[24];
    for (int i = 0; i < 24; i++) p[i] = program("", i);
    REQUIRE(tl_jit_images(b, &c, p + 3, 2, images) == TULLE_OK, "%s", b->error);
    for (int i = 0; i < 2; i++) tl_image_free(b, &images[i]);
    atomic_store(&f.wait_for, 4);               /* all four threads must have come before one goes on */
    REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_OK, "%s", b->error);
    CHECK(atomic_load(&f.most_inside) == 4, "%d at once", atomic_load(&f.most_inside));
    CHECK(atomic_load(&f.calls) == 24, "%d calls", atomic_load(&f.calls));
    for (int i = 0; i < 24; i++) {
        CHECK(right(b, &c, &p[i], &images[i]), "image %d", i);
        CHECK(images[i].origin == (i == 3 || i == 4 ? TL_CACHED : TL_COMPILED), "image %d", i);
        tl_image_free(b, &images[i]);
    }
    REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_OK, "%s", b->error);
    CHECK(atomic_load(&f.calls) == 24, "%d calls", atomic_load(&f.calls));
    for (int i = 0; i < 24; i++) tl_image_free(b, &images[i]);
    REQUIRE(tl_jit_images(b, &c, p, 0, images) == TULLE_OK, "none at all: %s", b->error);
    close_base(b, held);
}

static void the_first_program_that_fails_is_told_and_no_image_is_held(void)
{
    tl_base *b = open_base(4);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[24];
    tl_image images[24];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 24; i++) p[i] = program("", i);
        p[5] = program("#define FAIL five\n", 5);
        p[6] = program("#define FAIL siX\n", 6);
        p[20] = program("#define FAIL last\n", 20);
        REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_ECOMPILE, "it did not fail");
        CHECK(strstr(b->error, "error: FAIL five") && strstr(b->error, tl_jit_file(0)), "%s", b->error);
        for (int i = 0; i < 24; i++) CHECK(!images[i].data, "image %d is held", i);
        CHECK(atomic_load(&b->held) == held, "bytes are held");
    }
    for (int i = 0; i < 5; i++) one(b, &c, &p[i], false, "what was compiled before it was kept");
    close_base(b, held);
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    int *calls = user;
    (void)fraction;
    if (strcmp(stage, "compile") == 0) ++*calls;
    return 1;
}

static void compiling_can_be_cancelled(void)
{
    tl_base *b = open_base(2);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[64];
    tl_image images[64];
    int calls = 0;
    for (int i = 0; i < 64; i++) p[i] = program("", i);
    b->progress = stop_at_once;
    b->progress_user = &calls;
    atomic_store(&f.wait_for, 3);               /* the other thread is held up meanwhile */
    f.most_inside = 0;
    REQUIRE(tl_jit_images(b, &c, p, 64, images) == TULLE_ECANCEL, "it was not cancelled");
    CHECK(calls == 1 && atomic_load(&f.calls) < 64, "%d calls, %d compiled", calls, atomic_load(&f.calls));
    for (int i = 0; i < 64; i++) CHECK(!images[i].data, "image %d is held", i);
    close_base(b, held);
}

/* ---- memory hooks: from the caller's thread only, and each may fail */

typedef struct hooks {
    pthread_t caller;
    int       live, calls, fail_at, strangers;
} hooks;

static void *hook_alloc(void *user, size_t bytes)
{
    hooks *h = user;
    if (!pthread_equal(h->caller, pthread_self())) h->strangers++;
    if (++h->calls == h->fail_at) return NULL;
    h->live++;
    return malloc(bytes);
}

static void hook_free(void *user, void *p)
{
    hooks *h = user;
    if (!pthread_equal(h->caller, pthread_self())) h->strangers++;
    h->live--;
    free(p);
}

static void memory_hooks_are_kept_to_and_may_fail(void)
{
    tl_base *outer = open_base(1), *b = NULL;
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[6];
    tl_image images[6];
    hooks h = {.caller = pthread_self()};
    tulle_mem mem = {.alloc = hook_alloc, .free = hook_free, .user = &h};
    REQUIRE(tl_base_create(&mem, 3, sizeof *b, &b) == TULLE_OK, "no base");
    for (int i = 0; i < 6; i++) p[i] = program("", i);
    int live = h.live, failed = 0;
    tulle_status status = TULLE_ENOMEM;
    for (int n = 1; n < 1000 && status != TULLE_OK; n++) {
        tl_cache_info info;
        h.fail_at = 0;
        if (n % 2) CHECK(tl_cache_clear(b, &info) == TULLE_OK, "%s", b->error);
        h.calls = 0;
        h.fail_at = n;
        status = tl_jit_images(b, &c, p, 6, images);
        h.fail_at = 0;
        bool hit = h.calls >= n;
        if (status != TULLE_OK) {
            failed++;
            CHECK(status == TULLE_ENOMEM && b->error[0], "%s", tulle_status_name(status));
            CHECK(h.live == live, "%d blocks are held", h.live - live);
        } else {
            CHECK(h.live == live + 6, "%d blocks are held", h.live - live);
            for (int i = 0; i < 6; i++) {
                CHECK(right(b, &c, &p[i], &images[i]), "image %d", i);
                tl_image_free(b, &images[i]);
            }
            if (hit) status = TULLE_ENOMEM;     /* the cache went without; go on until none is hit */
        }
    }
    CHECK(failed > 6 && status == TULLE_OK, "%d failures", failed);
    CHECK(h.strangers == 0, "%d calls from other threads", h.strangers);
    CHECK(h.live == live, "%d blocks are held", h.live - live);
    tl_base_free(b);
    CHECK(h.live == 0, "%d blocks are held", h.live);
    close_base(outer, atomic_load(&outer->held));
}

/* ---- several processes */

static int one_of_many(int number)
{
    tl_base *b = NULL;
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[8];
    tl_image images[8];
    tl_cache cache;
    int wrong = 0;
    if (tl_base_create(NULL, 2, sizeof *b, &b) != TULLE_OK) return 1;
    for (int i = 0; i < 8; i++) p[i] = program("", i);
    for (int round = 0; round < 40; round++) {
        tl_cache_info info;
        tl_cache_open(&cache);
        if (round % 4 == number && tl_cache_clear(b, &info) != TULLE_OK) wrong++;
        if (round % 5 == number) tl_cache_trim(b, &cache, 60000);
        if (tl_jit_images(b, &c, p, 8, images) != TULLE_OK) return 2;
        for (int i = 0; i < 8; i++) {
            if (!right(b, &c, &p[i], &images[i])) wrong++;
            tl_image_free(b, &images[i]);
        }
    }
    tl_base_free(b);
    return wrong ? 3 : 0;
}

static void processes_share_a_cache(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    pid_t child[4];
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        REQUIRE(child[i] >= 0, "no child");
        if (child[i] == 0) _exit(one_of_many(i));
    }
    for (int i = 0; i < 4; i++) {
        int how = 0;
        REQUIRE(waitpid(child[i], &how, 0) == child[i], "a child is lost");
        CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0, "child %d ended with %d", i, how);
    }
    CHECK(files_like("half-", NULL, 0) == 0, "something was left half written");
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    for (int i = 0; i < 8; i++) {
        tl_program p = program("", i);
        tl_image image;
        REQUIRE(tl_jit_images(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
        CHECK(right(b, &c, &p, &image), "image %d", i);
        tl_image_free(b, &image);
    }
    close_base(b, held);
}

/* ---- embedded images */

static const char *chosen(const char *const *archs, const char *device)
{
    tl_embedded table[8] = {{.arch = NULL}};
    tl_hash key = tl_embedded_key("cuda", "text"), other = tl_embedded_key("cuda", "another");
    int n = 0;
    table[n++] = (tl_embedded){.key = other, .arch = device, .data = "", .bytes = 1};
    for (; *archs; archs++) table[n++] = (tl_embedded){.key = key, .arch = *archs, .data = "", .bytes = 1};
    const tl_embedded *e = tl_embedded_find(table, &key, device);
    return e ? e->arch : "none";
}

static void an_embedded_image_must_suit_the_device(void)
{
    static const char *const all[] = {"compute_80", "sm_80", "compute_90", "sm_90", NULL};
    static const char *const code[] = {"sm_80", "sm_90", NULL};
    static const struct { const char *const *archs, *device, *expected; } cases[] = {
        {all, "sm_80", "sm_80"}, {all, "sm_86", "sm_80"}, {all, "sm_89", "sm_80"}, {all, "sm_90", "sm_90"},
        {all, "sm_87", "compute_80"}, {all, "sm_100", "compute_90"}, {all, "sm_120", "compute_90"},
        {all, "sm_75", "none"}, {all, "sm_70", "none"}, {all, "pocl", "none"}, {all, "sm_", "none"}, {all, "", "none"},
        {code, "sm_75", "none"}, {code, "sm_86", "sm_80"}, {code, "sm_90", "sm_90"}, {code, "sm_100", "none"},
        {code, "sm_87", "none"}, {code, "sm_8", "none"}, {code, "sm_90a", "none"}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        CHECK(strcmp(chosen(cases[i].archs, cases[i].device), cases[i].expected) == 0, "%s on %s, not on %s",
              chosen(cases[i].archs, cases[i].device), cases[i].device, cases[i].expected);
}

TEST_MAIN(TEST(sha256_gives_the_published_hashes),
          TEST(a_text_is_made_of_whole_files_that_keep_their_lines),
          TEST(a_file_or_dialect_that_is_not_there_is_named),
          TEST(the_second_time_it_comes_from_the_cache),
          TEST(every_part_of_the_key_counts),
          TEST(a_damaged_entry_is_compiled_again_and_mended),
          TEST(a_cache_that_cannot_be_written_only_costs_time),
          TEST(a_disk_that_is_full_leaves_nothing_half_written),
          TEST(the_folder_follows_the_environment),
          TEST(entries_longest_unused_go_first),
          TEST(the_public_functions_show_and_clear_it),
          TEST(missing_images_are_compiled_at_the_same_time),
          TEST(the_first_program_that_fails_is_told_and_no_image_is_held),
          TEST(compiling_can_be_cancelled),
          TEST(memory_hooks_are_kept_to_and_may_fail),
          TEST(processes_share_a_cache),
          TEST(an_embedded_image_must_suit_the_device))
