/* SPDX-License-Identifier: MIT
 *
 * source.c - reads the bytes of a file sequentially, and unpacks them.
 *
 * Read rather than mapped: a file that is truncated while it is read then ends early instead of raising a
 * signal, pipes work, and text that was parsed takes no memory.  Copying costs a tenth of parsing.  The file
 * is opened once, and its format is detected from its first bytes; an archive from a pipe is kept in memory,
 * packed, while it is searched.  While waiting for a pipe, the progress callback is called ten times a
 * second, so that it can cancel. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "matrix/files.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 100, KEEP_FIRST = 1 << 17 };          /* milliseconds; bytes */

tulle_status tl_source_fail(tl_source *s, tulle_status status, const char *format, ...)
{
    char *error = s->defer ? s->error : s->b->error;
    va_list args;
    va_start(args, format);
    vsnprintf(error, TL_ERROR_MAX, format, args);
    va_end(args);
    return status;
}

static tulle_status cannot(tl_source *s, const char *what, int error)
{
    char why[128];
    return tl_source_fail(s, TULLE_EIO, "%s: cannot be %s: %s", s->path, what,
                          tl_errno_text(error, why, sizeof why));
}

/* Waits until a pipe has data, or was closed. */
static tulle_status wait_for(tl_source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    for (;;) {
        if (!s->by_worker) tl_progress(s->b, "read", tl_source_fraction(s));
        if (atomic_load_explicit(&s->b->cancelled, memory_order_relaxed))
            return tl_source_fail(s, TULLE_ECANCEL, "%s: reading was cancelled", s->name);
        int n = poll(&p, 1, PATIENCE);
        if (n > 0) return TULLE_OK;
        if (n < 0 && errno != EINTR && errno != EAGAIN) return cannot(s, "read", errno);
    }
}

/* Some bytes from the file itself; *n = 0 at its end. */
static tulle_status take_some(tl_source *s, void *to, int64_t room, int64_t *n)
{
    tulle_status status = TULLE_OK;
    size_t ask = room < 1 << 30 ? (size_t)room : 1u << 30;
    ssize_t got;
    do {
        if (s->file_bytes < 0) TRY(wait_for(s));
        got = read(s->fd, to, ask);
    } while (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK));
    if (got < 0) TRY(cannot(s, "read", errno));
    *n = got;
    s->file_read += got;
done:
    return status;
}

static tulle_status keep(tl_source *s, const void *data, int64_t bytes)
{
    tulle_status status = TULLE_OK;
    if (s->kept_bytes + bytes > s->kept_room) {
        int64_t room = s->kept_room ? 2 * s->kept_room : KEEP_FIRST;
        while (room < s->kept_bytes + bytes) room *= 2;
        char *more = NULL;
        TRY(tl_alloc(s->b, &more, room, 1, "an archive from a pipe"));
        if (s->kept) memcpy(more, s->kept, (size_t)s->kept_bytes);
        tl_free(s->b, s->kept);
        s->kept = more;
        s->kept_room = room;
    }
    memcpy(s->kept + s->kept_bytes, data, (size_t)bytes);
    s->kept_bytes += bytes;
    s->kept_at = s->kept_bytes;
done:
    return status;
}

tulle_status tl_source_raw(tl_source *s, void *to, int64_t room, int64_t *got)
{
    tulle_status status = TULLE_OK;
    int64_t n = s->kept_bytes - s->kept_at;
    *got = 0;
    if (n > 0) {
        if (n > room) n = room;
        memcpy(to, s->kept + s->kept_at, (size_t)n);
        s->kept_at += n;
        *got = n;
    }
    while (*got < room) {
        TRY(take_some(s, (char *)to + *got, room - *got, &n));
        if (n == 0) break;
        if (s->keeping) TRY(keep(s, (char *)to + *got, n));
        *got += n;
    }
done:
    return status;
}

/* Unpacked bytes, after those in s->head. */
static tulle_status read_below(tl_source *s, char *to, int64_t room, int64_t *got)
{
    return s->gz ? tl_gz_read(s, to, room, got) : tl_source_raw(s, to, room, got);
}

tulle_status tl_source_read(tl_source *s, char *to, int64_t room, int64_t *got)
{
    tulle_status status = TULLE_OK;
    int64_t n = 0, from_head = s->head_bytes - s->head_used;
    *got = 0;
    if (s->left >= 0 && room > s->left) room = s->left;
    if (from_head > room) from_head = room;
    memcpy(to, s->head + s->head_used, (size_t)from_head);
    s->head_used += (int)from_head;
    if (room > from_head) TRY(read_below(s, to + from_head, room - from_head, &n));
    *got = from_head + n;
    if (s->left >= 0) {
        s->left -= *got;
        if (*got < room)
            status = tl_source_fail(s, TULLE_EFORMAT, "%s: the archive ends %lld bytes too early", s->name,
                                    (long long)s->left);
    }
done:
    return status;
}

tulle_status tl_source_skip(tl_source *s, int64_t bytes)
{
    tulle_status status = TULLE_OK;
    char *buffer = NULL;
    int64_t chunk = 1 << 16, got = 0;
    TRY(tl_alloc(s->b, &buffer, chunk, 1, "a buffer for reading"));
    while (bytes > 0) {
        TRY(tl_source_read(s, buffer, bytes < chunk ? bytes : chunk, &got));
        if (got == 0) {
            status = tl_source_fail(s, TULLE_EFORMAT, "%s: the archive ends %lld bytes too early", s->name,
                                    (long long)bytes);
            goto done;
        }
        bytes -= got;
        if (tl_progress(s->b, "read", tl_source_fraction(s))) {
            status = tl_source_fail(s, TULLE_ECANCEL, "%s: reading was cancelled", s->name);
            goto done;
        }
    }
done:
    tl_free(s->b, buffer);
    return status;
}

int64_t tl_source_bound(const tl_source *s)
{
    if (s->left >= 0) return s->left;
    if (s->file_bytes < 0) return INT64_MAX;
    int64_t rest = s->file_bytes - s->file_read;
    if (!s->gz) return rest + s->head_bytes - s->head_used;
    /* deflate packs at most 1032 bytes into one; bytes that were read but not yet unpacked are included */
    return s->file_bytes < INT64_MAX / 1032 ? s->file_bytes * 1032 : INT64_MAX;
}

double tl_source_fraction(const tl_source *s)
{
    return s->file_bytes > 0 ? (double)s->file_read / (double)s->file_bytes : 0;
}

static tulle_status fill_head(tl_source *s)
{
    int64_t got = 0;
    s->head_used = 0;
    s->head_bytes = 0;
    tulle_status status = read_below(s, s->head, TL_SOURCE_HEAD, &got);
    s->head_bytes = (int)got;
    return status;
}

/* Detects the format from the first bytes, after unpacking. */
static tulle_status begin(tl_source *s)
{
    tulle_status status = TULLE_OK;
    s->left = -1;
    snprintf(s->name, sizeof s->name, "%s", s->path);
    TRY(fill_head(s));
    if (tl_gz_begins(s->head, s->head_bytes)) {
        TRY(tl_gz_open(s));
        TRY(fill_head(s));
    }
done:
    return status;
}

/* Does not wait for the other end of a pipe: wait_for() does, which can be cancelled. */
static int open_file(const char *path)
{
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* There is no file of that name: tries to read it as ARCHIVE:MEMBER. */
static tulle_status open_archive(tl_source *s)
{
    tulle_status status = TULLE_OK;
    size_t bytes = strlen(s->path) + 1;
    int error = errno;
    if (strchr(s->path, ':')) {
        TRY(tl_alloc(s->b, &s->own_path, (int64_t)bytes, 1, "a file name"));
        memcpy(s->own_path, s->path, bytes);
        for (char *colon = strchr(s->own_path, ':'); colon && s->fd < 0; colon = strchr(colon + 1, ':')) {
            struct stat st;
            *colon = 0;
            if (colon[1] && stat(s->own_path, &st) == 0 && !S_ISDIR(st.st_mode)) {
                s->path = s->own_path;
                s->member = colon + 1;
                s->fd = open_file(s->path);
                if (s->fd < 0) TRY(cannot(s, "opened", errno));
                break;
            }
            *colon = ':';
        }
    }
    if (s->fd < 0) TRY(cannot(s, "opened", error));
done:
    return status;
}

tulle_status tl_source_open(tl_base *b, const char *path, tl_source *s)
{
    tulle_status status = TULLE_OK;
    struct stat st;
    memset(s, 0, sizeof *s);
    s->b = b;
    s->path = path;
    s->fd = open_file(path);
    if (s->fd < 0) TRY(open_archive(s));
    s->file_bytes = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
    s->keeping = s->file_bytes < 0;
    TRY(begin(s));
    if (s->member && !tl_tar_begins(s->head, s->head_bytes))
        TRY(tl_source_fail(s, TULLE_EFORMAT, "%s: is no archive, so there is no \"%s\" in it", s->path,
                           s->member));
done:
    if (status != TULLE_OK) tl_source_close(s);
    return status;
}

tulle_status tl_source_rewind(tl_source *s)
{
    tulle_status status = TULLE_OK;
    tl_gz_close(s);
    s->keeping = false;
    if (s->file_bytes >= 0 && lseek(s->fd, 0, SEEK_SET) < 0) TRY(cannot(s, "read", errno));
    s->file_read = 0;
    s->kept_at = 0;
    TRY(begin(s));
done:
    return status;
}

void tl_source_go_on(tl_source *s)
{
    s->keeping = false;
    if (s->kept_at < s->kept_bytes) return;             /* it is being read again */
    tl_free(s->b, s->kept);
    s->kept = NULL;
    s->kept_bytes = s->kept_room = s->kept_at = 0;
}

void tl_source_close(tl_source *s)
{
    tl_gz_close(s);
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
    tl_free(s->b, s->kept);
    tl_free(s->b, s->own_path);
    s->kept = s->own_path = NULL;
}
