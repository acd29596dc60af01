/* SPDX-License-Identifier: MIT
 * test_jit_cache.c - images on disk: reused, damaged, on a full disk, without a folder, old, shared by
 * processes. */
#define _GNU_SOURCE
#include "jit_help.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
    for (long at = 0; at < n; at += at < 100 ? 1 : 997) {       /* every byte of the header */
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

/* ---- files that other users could have written are not used */

static void own_files_are_private_whatever_the_umask(void)
{
    char path[512];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    struct stat st;
    char deep[600];
    mode_t before = umask(0);
    one(b, &c, &p, true, "first");
    REQUIRE(files_like("", path, sizeof path) == 1 && stat(path, &st) == 0, "not one entry");
    CHECK((st.st_mode & 07777) == 0600, "an entry has mode %o", (unsigned)st.st_mode & 07777);
    snprintf(deep, sizeof deep, "%s/a/b", folder);
    setenv("TULLE_CACHE", deep, 1);
    one(b, &c, &p, true, "a new folder");
    CHECK(stat(deep, &st) == 0 && (st.st_mode & 07777) == 0700, "a folder has mode %o", (unsigned)st.st_mode & 07777);
    umask(before);
    one(b, &c, &p, false, "a new folder");
    close_base(b, held);
}

static void what_others_can_write_is_not_taken(void)
{
    static const struct { mode_t folder, entry; bool used; } modes[] = {
        {0777, 0600, false}, {0770, 0600, false}, {0702, 0600, false}, {01777, 0600, false}, {0700, 0620, false},
        {0700, 0602, false}, {0755, 0644, true}, {0700, 0600, true}};
    char path[512], aside[600];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    tl_cache_info info;
    one(b, &c, &p, true, "first");
    REQUIRE(files_like("", path, sizeof path) == 1, "not one entry");
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++) {
        bool open_folder = modes[i].folder & 022;
        char when[64];
        snprintf(when, sizeof when, "folder %o, entry %o", (unsigned)modes[i].folder, (unsigned)modes[i].entry);
        REQUIRE(chmod(path, modes[i].entry) == 0 && chmod(folder, modes[i].folder) == 0, "%s", path);
        traced[0] = 0;
        told = 0;
        one(b, &c, &p, !modes[i].used, when);
        CHECK(told == open_folder, "%s: told %d times: %s", when, told, traced);
        CHECK(modes[i].used || strstr(traced, "can be written by others"), "%s: %s", when, traced);
        CHECK(tl_cache_look(b, &info) == TULLE_OK && !info.why_not[0] == !open_folder, "%s: %s", when, info.why_not);
        if (open_folder) one(b, &c, &p, true, when);            /* and nothing was stored there */
        else one(b, &c, &p, false, when);                       /* an entry is replaced */
        struct stat st;
        CHECK(stat(path, &st) == 0 && (modes[i].used || open_folder || (st.st_mode & 07777) == 0600), "%s", when);
    }
    REQUIRE(chmod(folder, 0700) == 0, "%s", folder);
    snprintf(aside, sizeof aside, "%s/aside", folder);
    REQUIRE(rename(path, aside) == 0 && symlink("aside", path) == 0, "%s", path);
    one(b, &c, &p, true, "a link to an entry");
    struct stat st;
    CHECK(lstat(path, &st) == 0 && S_ISREG(st.st_mode), "the link is still there");
    one(b, &c, &p, false, "after the link");
    close_base(b, held);
}

/* Writes a valid entry with a different image for the right key. */
static bool plant(tl_base *b, const tl_compiler *c, const tl_program *p, const char *data)
{
    tl_cache cache;
    char *text;
    tl_image image = {.data = (void *)(uintptr_t)data, .bytes = strlen(data)};
    if (tl_jit_source(b, c->dialect, p, &text) != TULLE_OK) return false;
    tl_hash key = tl_cache_key(c, text);
    tl_free(b, text);
    tl_cache_open(&cache);
    tl_cache_put(&cache, &key, &image);
    return !cache.trouble[0];
}

static void a_planted_entry_is_not_run(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    tl_image image;
    REQUIRE(plant(b, &c, &p, "planted"), "%s", b->error);
    REQUIRE(tl_jit_images(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.bytes == 7, "our own entry is not taken");
    tl_image_free(b, &image);
    REQUIRE(chmod(folder, 0777) == 0, "%s", folder);
    one(b, &c, &p, true, "planted");
    REQUIRE(chmod(folder, 0700) == 0, "%s", folder);
    close_base(b, held);
}

/* An image that the driver rejects is compiled, although there is a cache entry, which is then replaced. */
static void a_refused_image_is_compiled_and_its_entry_replaced(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    tl_image image;
    REQUIRE(plant(b, &c, &p, "refused"), "%s", b->error);
    REQUIRE(tl_jit_images(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.bytes == 7 && image.origin == TL_CACHED && atomic_load(&f.calls) == 0, "not from the cache");
    REQUIRE(tl_jit_again(b, &c, &p, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.origin == TL_COMPILED && atomic_load(&f.calls) == 1 && right(b, &c, &p, &image), "not compiled");
    tl_image_free(b, &image);
    one(b, &c, &p, false, "replaced");
    CHECK(files_like("", NULL, 0) == 1, "%d files", files_like("", NULL, 0));
    image = (tl_image){.origin = TL_EMBEDDED};        /* for an embedded one the cache entry is tried first */
    REQUIRE(tl_jit_again(b, &c, &p, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.origin == TL_CACHED && atomic_load(&f.calls) == 1, "%d calls", atomic_load(&f.calls));
    tl_image_free(b, &image);
    close_base(b, held);
}

/* Root can change the owner of files; other users test with a folder that belongs to root. */
static void what_belongs_to_others_is_not_taken(void)
{
    enum { NOBODY = 65534 };
    char path[512], home[300], want[64];
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p = program("", 1);
    bool root = geteuid() == 0;
    one(b, &c, &p, true, "first");
    REQUIRE(files_like("", path, sizeof path) == 1, "not one entry");
    snprintf(want, sizeof want, "belongs to user %d, and this process runs as user %u", root ? NOBODY : 0, (unsigned)geteuid());
    if (root) {
        REQUIRE(chown(path, NOBODY, NOBODY) == 0, "%s", path);
        one(b, &c, &p, true, "an entry of another");
        CHECK(told == 0 && strstr(traced, want), "%s", traced);
        one(b, &c, &p, false, "replaced");
        REQUIRE(chown(folder, NOBODY, NOBODY) == 0, "%s", folder);
    } else {
        setenv("TULLE_CACHE", "/usr", 1);
    }
    traced[0] = 0;
    one(b, &c, &p, true, "a folder of another");
    one(b, &c, &p, true, "a folder of another");
    CHECK(told == 2 && strstr(traced, want), "%s", traced);
    if (root) {                                 /* as in a container: HOME of another user is not changed */
        const char *was = getenv("HOME");
        char kept_home[512];
        snprintf(kept_home, sizeof kept_home, "%s", was ? was : "/");
        REQUIRE(chown(folder, 0, 0) == 0, "%s", folder);
        snprintf(home, sizeof home, "%s/home", folder);
        REQUIRE(mkdir(home, 0755) == 0 && chown(home, NOBODY, NOBODY) == 0, "%s", home);
        unsetenv("TULLE_CACHE");
        setenv("HOME", home, 1);
        traced[0] = 0;
        one(b, &c, &p, true, "HOME of another");
        CHECK(strstr(traced, home) && strstr(traced, want), "%s", traced);
        CHECK(rmdir(home) == 0, "something was made in it");
        setenv("HOME", kept_home, 1);
    }
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

/* In a child process, since a limit cannot be raised again. */
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

TEST_MAIN(TEST(the_second_time_it_comes_from_the_cache),
          TEST(every_part_of_the_key_counts),
          TEST(a_damaged_entry_is_compiled_again_and_mended),
          TEST(own_files_are_private_whatever_the_umask),
          TEST(what_others_can_write_is_not_taken),
          TEST(a_planted_entry_is_not_run),
          TEST(a_refused_image_is_compiled_and_its_entry_replaced),
          TEST(what_belongs_to_others_is_not_taken),
          TEST(a_cache_that_cannot_be_written_only_costs_time),
          TEST(a_disk_that_is_full_leaves_nothing_half_written),
          TEST(the_folder_follows_the_environment),
          TEST(entries_longest_unused_go_first),
          TEST(the_public_functions_show_and_clear_it),
          TEST(processes_share_a_cache))
