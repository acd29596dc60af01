/* SPDX-License-Identifier: MIT
 *
 * cache.c - the cache of images on disk: one file per image, named by its key.
 *
 * An entry is a header (magic, format, key, length, hash) and the image.  The hash covers everything else: an
 * entry that is truncated, damaged, of another format or of another key counts as missing and is written
 * again.  Entries are written under another name in the same folder and then renamed, so that a partial
 * entry is never visible.  They are not flushed to the disk, since damage by a power failure is detected by
 * the hash.  Several processes may use the cache concurrently: the last rename wins, and all of them wrote
 * the same.
 *
 * An image is code that this process will run, so it is read only from files that nobody else can have
 * written: folder and entry must belong to the effective user and must not be writable by others, which is
 * checked on the opened descriptors, and links to entries are not followed.  The hash shows that an entry is
 * complete, not who wrote it.
 *
 * No failure here is an error: an image that cannot be stored is compiled again.  The size of the folder is
 * limited; the modification time of an entry is the time of its last use, and the least recently used
 * entries are removed first.  Only files with names of entries are counted or removed, so that it does no
 * harm if another folder is given by mistake. */
#define _POSIX_C_SOURCE 200809L
#include "jit/parts.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME = 64,
    HALF = 6,
    FORMAT = 1,
    STALE = 3600
}; /* STALE: seconds after which an unfinished file is removed */
static const char magic[8] = {'t', 'u', 'l', 'l', 'e', 'j', 'i', 't'};
static const char ending[] = ".image", half[] = "half-";

typedef struct head {
    char     magic[8];
    uint64_t format, bytes;
    tl_hash  key, hash;
} head;

_Static_assert(sizeof(head) == 88, "no holes: the head is hashed as it lies");

/* ---- names */

void tl_cache_open(tl_cache *cache)
{
    const char *own = tl_env("TULLE_CACHE"), *xdg = tl_env("XDG_CACHE_HOME"), *home = tl_env("HOME");
    int n;
    memset(cache, 0, sizeof *cache);
    if (own) n = snprintf(cache->path, sizeof cache->path, "%s", own);
    else if (xdg && *xdg == '/') n = snprintf(cache->path, sizeof cache->path, "%s/tulle", xdg);
    else if (home) n = snprintf(cache->path, sizeof cache->path, "%s/.cache/tulle", home);
    else n = -1;
    if (n >= 0 && n < (int)sizeof cache->path - NAME - 16) return;
    cache->path[0] = 0;
    snprintf(cache->trouble, sizeof cache->trouble,
             n < 0 ? "none of TULLE_CACHE, XDG_CACHE_HOME and HOME is set"
                   : "the name of its folder is too long");
}

/* Records the first problem; later ones usually follow from it. */
static void record_problem(tl_cache *cache, const char *what, int error)
{
    if (!cache->trouble[0])
        snprintf(cache->trouble, sizeof cache->trouble, "%.160s: %.80s", what, strerror(error));
}

typedef char path_text[1024];
typedef char name_text[NAME + 16];

static void entry_name(const tl_hash *key, char *name)
{
    for (int i = 0; i < 32; i++) name += sprintf(name, "%02x", key->byte[i]);
    strcpy(name, ending);
}

static bool is_entry(const char *name)
{
    return strlen(name) == NAME + sizeof ending - 1 && strspn(name, "0123456789abcdef") == NAME
        && strcmp(name + NAME, ending) == 0;
}

static bool is_half(const char *name)
{
    return strncmp(name, half, sizeof half - 1) == 0 && strlen(name) == sizeof half - 1 + HALF;
}

tl_hash tl_cache_key(const tl_compiler *compiler, const char *text)
{
    tl_sha256 s;
    tl_sha256_begin(&s);
    tl_sha256_field(&s, compiler->dialect);
    tl_sha256_field(&s, compiler->arch);
    tl_sha256_field(&s, compiler->version);
    tl_sha256_field(&s, text);
    return tl_sha256_end(&s);
}

/* ---- one entry */

static tl_hash hash_of(const head *h, const void *data)
{
    tl_sha256 s;
    tl_sha256_begin(&s);
    tl_sha256_add(&s, h, offsetof(head, hash));
    tl_sha256_add(&s, data, (size_t)h->bytes);
    return tl_sha256_end(&s);
}

static bool read_all(int file, void *to, uint64_t bytes)
{
    char *p = to;
    while (bytes > 0) {
        ssize_t n = read(file, p, (size_t)bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (uint64_t)n;
    }
    return true;
}

static bool write_all(int file, const void *from, uint64_t bytes)
{
    const char *p = from;
    while (bytes > 0) {
        ssize_t n = write(file, p, (size_t)bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (uint64_t)n;
    }
    return true;
}

/* ---- ownership and permissions */

static bool only_ours(const char *what, const struct stat *st, char *why, size_t bytes)
{
    const unsigned long long owner = st->st_uid, we = geteuid();
    if (owner != we)
        snprintf(why, bytes, "%.130s belongs to user %llu, and this process runs as user %llu", what, owner,
                 we);
    else if (st->st_mode & (S_IWGRP | S_IWOTH))
        snprintf(why, bytes, "%.130s can be written by others (mode %04o; chmod go-w changes that)", what,
                 (unsigned)(st->st_mode & 07777));
    else
        return true;
    return false;
}

/* Root must not create entries in another user's folder, who could not remove them. */
static bool is_elsewhere(tl_cache *cache, const char *path)
{
    struct stat st;
    return geteuid() == 0 && stat(path, &st) == 0 && st.st_uid != 0
        && !only_ours(path, &st, cache->trouble, sizeof cache->trouble);
}

/* Creates the folder and missing folders above it. */
static bool make_folder(tl_cache *cache)
{
    path_text part, there;                      /* there: the last one that exists */
    bool begun = false;
    snprintf(part, sizeof part, "%s", cache->path);
    snprintf(there, sizeof there, "%s", part[0] == '/' ? "/" : ".");
    for (char *p = part + 1;; p++) {
        const char was = *p;
        if (was && was != '/') continue;
        *p = 0;
        if (access(part, F_OK) == 0) {
            snprintf(there, sizeof there, "%s", part);
        } else {
            if (!begun && is_elsewhere(cache, there)) return false;
            begun = true;
            if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
        }
        *p = was;
        if (!was) return true;
    }
}

/* Opens the folder; -1: it must not be used, or does not exist. */
static int open_folder(tl_cache *cache, bool make)
{
    const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat st;
    if (!cache->path[0]) return -1;
    int folder = open(cache->path, how);
    if (folder < 0 && errno == ENOENT && make && make_folder(cache)) folder = open(cache->path, how);
    if (folder < 0) {
        if (errno != ENOENT || make) record_problem(cache, cache->path, errno);   /* it may not exist yet */
        return -1;
    }
    if (fstat(folder, &st) == 0 && only_ours(cache->path, &st, cache->trouble, sizeof cache->trouble))
        return folder;
    close(folder);
    return -1;
}

bool tl_cache_usable(tl_cache *cache)
{
    int folder = open_folder(cache, false);
    if (folder >= 0) close(folder);
    return !cache->trouble[0];
}

/* ---- reading and writing an entry */

bool tl_cache_get(tl_base *b, tl_cache *cache, const tl_hash *key, tl_image *image)
{
    name_text name;
    struct stat st;
    head h;
    void *data = NULL;
    char why[256];
    bool whole = false;
    int file = -1, folder = open_folder(cache, false);
    if (folder < 0) return false;
    entry_name(key, name);
    file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0) {
        if (errno != ENOENT && errno != ELOOP) record_problem(cache, cache->path, errno);
        goto done;
    }
    if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof h) goto done;
    if (!only_ours(name, &st, why, sizeof why)) {
        tl_trace(b, "an entry of the cache is not taken: %s", why);
        goto done;
    }
    if (!read_all(file, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic) != 0 || h.format != FORMAT
        || memcmp(&h.key, key, sizeof *key) != 0 || h.bytes != (uint64_t)st.st_size - sizeof h)
        goto done;
    if (tl_alloc(b, &data, (int64_t)h.bytes, 1, "an image") != TULLE_OK) goto done;
    if (!read_all(file, data, h.bytes)) goto done;
    tl_hash hash = hash_of(&h, data);
    whole = memcmp(&hash, &h.hash, sizeof hash) == 0;
    if (!whole) goto done;
    (void)futimens(file, NULL);                 /* time of last use */
    image->data = data;
    image->bytes = h.bytes;
    data = NULL;
done:
    tl_free(b, data);
    if (file >= 0) close(file);
    close(folder);
    return whole;
}

/* Creates a file with an unused name; -1: that failed. */
static int open_half(int folder, char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (int tries = 0; tries < 100; tries++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t parts[3] = {(uint64_t)now.tv_nsec, (uint64_t)getpid(),
                                   (uint64_t)(uintptr_t)name}; /* differs between threads */
        const tl_hash random = tl_sha256_of(parts, sizeof parts);
        char *p = name + sprintf(name, "%s", half);
        for (int i = 0; i < HALF; i++) *p++ = letters[random.byte[i] % (sizeof letters - 1)];
        *p = 0;
        int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

void tl_cache_put(tl_cache *cache, const tl_hash *key, const tl_image *image)
{
    name_text name, other;
    head h = {.format = FORMAT, .bytes = image->bytes, .key = *key};
    bool written = false;
    int error = 0;
    if (image->bytes > TL_CACHE_LIMIT) return;
    int file = -1, folder = open_folder(cache, true);
    if (folder < 0) return;
    file = open_half(folder, other);
    if (file < 0) {
        record_problem(cache, cache->path, errno);
        goto done;
    }
    memcpy(h.magic, magic, sizeof magic);
    h.hash = hash_of(&h, image->data);
    entry_name(key, name);
    written = write_all(file, &h, sizeof h) && write_all(file, image->data, image->bytes);
    error = errno;
    if (close(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (written && renameat(folder, other, folder, name) != 0) {
        written = false;
        error = errno;
    }
    if (!written) {
        unlinkat(folder, other, 0);
        record_problem(cache, cache->path, error);
    }
done:
    close(folder);
}

/* ---- the whole folder */

typedef struct entry {
    char            name[NAME + sizeof ending];
    uint64_t        bytes;
    struct timespec used;
} entry;

typedef struct listing {
    entry  *entries;
    int64_t count, room;
} listing;

static tulle_status list_add(tl_base *b, listing *l, const char *name, const struct stat *st)
{
    tulle_status status = TULLE_OK;
    if (l->count == l->room) {
        entry *more;
        int64_t room = l->room ? 2 * l->room : 64;
        TRY(tl_alloc(b, &more, room, sizeof *more, "a list of the cache"));
        if (l->count > 0) memcpy(more, l->entries, (size_t)l->count * sizeof *more);
        tl_free(b, l->entries);
        l->entries = more;
        l->room = room;
    }
    entry *e = &l->entries[l->count++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->bytes = (uint64_t)st->st_size;
    e->used = st->st_mtim;
done:
    return status;
}

/* Calls a function for every file of the cache; a file removed meanwhile is skipped. */
typedef tulle_status (*file_fn)(tl_base *b, void *arg, int folder, const char *name, const struct stat *st);

static tulle_status for_files(tl_base *b, const char *path, file_fn fn, void *arg)
{
    tulle_status status = TULLE_OK;
    struct dirent *d;
    struct stat st;
    DIR *folder = path[0] ? opendir(path) : NULL;
    if (!folder && path[0] && errno != ENOENT && errno != ENOTDIR)
        return tl_fail(b, TULLE_EIO, "%s cannot be read: %s", path, strerror(errno));
    if (!folder) return TULLE_OK;
    while ((d = readdir(folder)) != NULL) {
        if (!is_entry(d->d_name) && !is_half(d->d_name)) continue;
        if (fstatat(dirfd(folder), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        TRY(fn(b, arg, dirfd(folder), d->d_name, &st));
    }
done:
    closedir(folder);
    return status;
}

static tulle_status collect(tl_base *b, void *arg, int folder, const char *name, const struct stat *st)
{
    if (is_entry(name)) return list_add(b, arg, name, st);
    if (time(NULL) - st->st_mtime > STALE) (void)unlinkat(folder, name, 0);    /* its writer was killed */
    return TULLE_OK;
}

static int by_age(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

void tl_cache_trim(tl_base *b, tl_cache *cache, uint64_t limit)
{
    listing l = {0};
    uint64_t bytes = 0;
    int folder = open_folder(cache, false);
    if (folder < 0) return;
    tulle_status status = for_files(b, cache->path, collect, &l);
    for (int64_t i = 0; i < l.count; i++) bytes += l.entries[i].bytes;
    if (status == TULLE_OK && bytes > limit) {
        qsort(l.entries, (size_t)l.count, sizeof *l.entries, by_age);
        for (int64_t i = 0; i < l.count && bytes > limit; i++) {
            if (unlinkat(folder, l.entries[i].name, 0) != 0 && errno != ENOENT)
                record_problem(cache, l.entries[i].name, errno);
            bytes -= l.entries[i].bytes;
        }
    }
    tl_free(b, l.entries);
    close(folder);
}

static tulle_status count(tl_base *b, void *arg, int folder, const char *name, const struct stat *st)
{
    tl_cache_info *info = arg;
    (void)b, (void)folder;
    if (is_entry(name)) info->entries++;
    info->bytes += (uint64_t)st->st_size;
    return TULLE_OK;
}

static tulle_status remove_one(tl_base *b, void *arg, int folder, const char *name, const struct stat *st)
{
    tl_cache_info *info = arg;
    if (unlinkat(folder, name, 0) == 0) return count(b, arg, folder, name, st);
    if (errno == ENOENT) return TULLE_OK;
    return tl_fail(b, TULLE_EIO, "%s/%s cannot be removed: %s", info->path, name, strerror(errno));
}

static tulle_status walk(tl_base *b, tl_cache_info *info, file_fn fn)
{
    tl_cache cache;
    tl_cache_open(&cache);
    memset(info, 0, sizeof *info);
    memcpy(info->path, cache.path, sizeof info->path);
    if (!tl_cache_usable(&cache)) snprintf(info->why_not, sizeof info->why_not, "%s", cache.trouble);
    return for_files(b, info->path, fn, info);
}

tulle_status tl_cache_look(tl_base *b, tl_cache_info *info)
{
    return walk(b, info, count);
}

tulle_status tl_cache_clear(tl_base *b, tl_cache_info *removed)
{
    return walk(b, removed, remove_one);
}
