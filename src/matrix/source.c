/* SPDX-License-Identifier: MIT
 *
 * source.c - the bytes of a file from front to back, unpacked on the way.
 *
 * Read rather than mapped: a file that shrinks while it is read then ends early instead of raising a
 * signal, pipes work, and text that was parsed occupies no memory.  Copying costs a tenth of parsing. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "matrix/files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tulle_status tl_source_raw(tl_source *s, void *to, int64_t room, int64_t *got)
{
    char why[128];
    *got = 0;
    while (*got < room) {
        int64_t ask = room - *got < 1 << 30 ? room - *got : 1 << 30;
        ssize_t n = read(s->fd, (char *)to + *got, (size_t)ask);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return tl_fail(s->b, TULLE_EIO, "%s: cannot be read: %s", s->path,
                           tl_errno_text(errno, why, sizeof why));
        if (n == 0) break;
        *got += n;
        s->file_read += n;
    }
    return TULLE_OK;
}

/* Unpacked bytes, the head apart. */
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
            status = tl_fail(s->b, TULLE_EFORMAT, "%s: the archive ends %lld bytes too early", s->name,
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
            status = tl_fail(s->b, TULLE_EFORMAT, "%s: the archive ends %lld bytes too early", s->name,
                             (long long)bytes);
            goto done;
        }
        bytes -= got;
        if (tl_progress(s->b, "read", tl_source_fraction(s))) {
            status = tl_fail(s->b, TULLE_ECANCEL, "%s: reading was cancelled", s->name);
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
    /* deflate makes a byte of at most 1032; what was taken from the file and not yet unpacked counts */
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

tulle_status tl_source_open(tl_base *b, const char *path, tl_source *s)
{
    tulle_status status = TULLE_OK;
    char why[128];
    struct stat st;
    memset(s, 0, sizeof *s);
    s->b = b;
    s->path = path;
    s->left = -1;
    snprintf(s->name, sizeof s->name, "%s", path);
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0)
        return tl_fail(b, TULLE_EIO, "%s: cannot be opened: %s", path,
                       tl_errno_text(errno, why, sizeof why));
    s->file_bytes = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
    TRY(fill_head(s));
    if (tl_gz_begins(s->head, s->head_bytes)) {
        TRY(tl_gz_open(s));
        TRY(fill_head(s));
    }
done:
    if (status != TULLE_OK) tl_source_close(s);
    return status;
}

void tl_source_close(tl_source *s)
{
    tl_gz_close(s);
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}
