/* SPDX-License-Identifier: MIT
 *
 * jit_help.h - what the tests of jit/ share: a fake compiler, which only reverses its input and counts its
 * calls, and a cache in a temporary folder.  Needs _GNU_SOURCE. */
#ifndef TULLE_JIT_HELP_H
#define TULLE_JIT_HELP_H
#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "jit/parts.h"
#include "test.h"

/* ---- the fake compiler */

typedef struct fake {
    atomic_int calls, inside, most_inside, wait_for;
} fake;

static inline tulle_status reverse(void *self, tl_base *b, const char *name, const char *source, tl_image *image)
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

static inline tl_compiler compiler_of(fake *f)
{
    return (tl_compiler){.dialect = "opencl", .arch = "fake", .version = "fake 1", .self = f, .compile = reverse};
}

static inline tl_program program(const char *defines, int number)
{
    tl_program p = {.file = tl_jit_file(0)};
    snprintf(p.defines, sizeof p.defines, "%s#define NUMBER %d\n", defines, number);
    return p;
}

static inline bool right(tl_base *b, const tl_compiler *c, const tl_program *p, const tl_image *image)
{
    char *text;
    if (tl_jit_source(b, c->dialect, p, &text) != TULLE_OK) return false;
    size_t n = strlen(text);
    bool same = image->data && image->bytes == n;
    for (size_t i = 0; same && i < n; i++) same = ((const char *)image->data)[i] == text[n - 1 - i];
    tl_free(b, text);
    return same;
}

/* ---- the folder, and the trace lines */

static char folder[256];
static char traced[8192];
static int  told;               /* number of lines that say that the cache cannot be used */

static inline void on_trace(void *user, const char *line)
{
    (void)user;
    size_t n = strlen(traced);
    snprintf(traced + n, sizeof traced - n, "%s\n", line);
    told += strstr(line, "not kept") != NULL;
}

static inline tl_base *open_base(int threads)
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

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static inline void close_base(tl_base *b, uint64_t held)
{
    CHECK(atomic_load(&b->held) == held, "%llu bytes are held", (unsigned long long)atomic_load(&b->held));
    tl_base_free(b);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    unsetenv("TULLE_CACHE");
}

/* Counts the names in the folder that begin with a prefix, and returns the first one. */
static inline int files_like(const char *start, char *first, size_t bytes)
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

static inline long read_file(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    long n = (long)fread(to, 1, room, f);
    fclose(f);
    return n;
}

static inline bool write_file(const char *path, const char *from, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool all = fwrite(from, 1, bytes, f) == bytes;
    return fclose(f) == 0 && all;
}

/* Gets one program through the cache; checks its image, and whether it was compiled. */
static inline bool one(tl_base *b, const tl_compiler *c, const tl_program *p, bool compiled, const char *when)
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
#endif
