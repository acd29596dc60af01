/* SPDX-License-Identifier: MIT
 *
 * file.c - a file that appears under its name only when it is whole.
 *
 * It is written beside the target as NAME.tmp-PID-N and renamed; what stood there before stays until
 * then, and after any failure.  tl_out_close() removes what was not renamed.  The contents are not
 * forced to the disk: after a power cut the checksums of .tulle tell. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "matrix/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 10000 };

const char *tl_errno_text(int error, char *text, size_t room)
{
    if (strerror_r(error, text, room) != 0) snprintf(text, room, "error %d", error);
    return text;
}

tulle_status tl_out_fail(tl_out *o, int error)
{
    char why[128];
    return tl_fail(o->b, TULLE_EIO, "%s: cannot be written: %s", o->path,
                   tl_errno_text(error, why, sizeof why));
}

tulle_status tl_out_open(tl_base *b, const char *path, tl_out *o)
{
    tulle_status status = TULLE_OK;
    struct stat st;
    *o = (tl_out){.b = b, .path = path, .fd = -1};
    bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode)) {
        status = tl_fail(b, TULLE_EIO, "%s: cannot be written: it is there and is not a plain file", path);
        goto done;
    }
    size_t room = strlen(path) + 48;
    TRY(tl_alloc(b, &o->temp, (int64_t)room, 1, "a file name"));
    for (int i = 0; i < TRIES && o->fd < 0; i++) {
        snprintf(o->temp, room, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd < 0 && errno != EEXIST) break;
    }
    if (o->fd < 0) {
        status = tl_out_fail(o, errno);
        tl_free(b, o->temp);
        o->temp = NULL;
        goto done;
    }
    if (there) (void)!fchmod(o->fd, st.st_mode & 0777);
done:
    return status;
}

int tl_out_put(tl_out *o, const void *data, int64_t bytes, int64_t at)
{
    const char *p = data;
    while (bytes > 0) {
        size_t ask = bytes < 1 << 30 ? (size_t)bytes : 1u << 30;
        ssize_t n = pwrite(o->fd, p, ask, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENOSPC;
        p += n;
        at += n;
        bytes -= n;
    }
    return 0;
}

tulle_status tl_out_rename(tl_out *o)
{
    tulle_status status = TULLE_OK;
    int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0 || rename(o->temp, o->path) != 0) {
        status = tl_out_fail(o, errno);
        goto done;
    }
    tl_free(o->b, o->temp);
    o->temp = NULL;
done:
    return status;
}

void tl_out_close(tl_out *o)
{
    if (o->fd >= 0) close(o->fd);
    if (o->temp) unlink(o->temp);
    tl_free(o->b, o->temp);
    o->fd = -1;
    o->temp = NULL;
}
