/* SPDX-License-Identifier: MIT
 *
 * file.c - writes files that appear under their name only when they are complete; used for all output.
 *
 * A file is created in the folder of the target under a temporary name, tulle-HEX.part, which must not exist
 * (O_EXCL: a link that somebody planted there is not followed).  It gets the permissions of the file it will
 * replace, is flushed to disk, and is renamed.  The old file stays until then, and after any failure.  Of a
 * symbolic link the target is replaced.  Pipes, devices and folders are refused.  tl_out_close() removes a
 * file that was not renamed; a program that may be ended by a signal is told the name first, so that it can
 * do the same (tulle_ctx_set_partial()). */
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "matrix/files.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 1000, TEMP_ROOM = 48 };

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

/* ---- where it goes */

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static void folder_of(const char *path, char *folder)
{
    size_t n = folder_length(path);
    memcpy(folder, n > 0 ? path : ".", n > 0 ? n : 1);
    folder[n > 0 ? n : 1] = 0;
}

/* In a folder that everybody can write to, such as /tmp, another user's link may be an attack. */
static bool is_trap(const char *path, const struct stat *link)
{
    char folder[PATH_MAX];
    struct stat st;
    folder_of(path, folder);
    return stat(folder, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH)
           && link->st_uid != geteuid() && link->st_uid != st.st_uid;
}

/* The regular file that path names, links followed; *there: it exists, and *old has its permissions. */
static tulle_status find_target(tl_out *o, struct stat *old, bool *there)
{
    tulle_status status = TULLE_OK;
    char real[PATH_MAX];
    const char *target = o->path;
    size_t bytes = strlen(target) + 1;
    if (bytes == 1 || bytes > sizeof real) TRY(tl_out_fail(o, bytes == 1 ? ENOENT : ENAMETOOLONG));
    *there = lstat(target, old) == 0;
    if (!*there && errno != ENOENT) TRY(tl_out_fail(o, errno));
    if (*there && S_ISLNK(old->st_mode)) {
        if (is_trap(target, old))
            TRY(tl_fail(o->b, TULLE_EIO, "%s: cannot be written: it is a link that somebody else made in a"
                        " folder where everybody may write", target));
        if (!realpath(target, real) || stat(real, old) != 0) {
            int error = errno;
            char why[128];
            TRY(tl_fail(o->b, TULLE_EIO, "%s: cannot be written: it is a link that cannot be followed: %s",
                        target, tl_errno_text(error, why, sizeof why)));
        }
        target = real;
        bytes = strlen(real) + 1;
    }
    if (*there && !S_ISREG(old->st_mode))
        TRY(tl_fail(o->b, TULLE_EIO, "%s: cannot be written: it is there and is not a plain file", o->path));
    if (*there && faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0) TRY(tl_out_fail(o, errno));
    TRY(tl_alloc(o->b, &o->target, (int64_t)bytes, 1, "a file name"));
    memcpy(o->target, target, bytes);
done:
    return status;
}

/* ---- the temporary file */

/* Calls the caller's callback before the temporary file is created, and after it is gone. */
static void tell(tl_out *o, bool there)
{
    if (o->b->partial) o->b->partial(o->b->partial_user, o->temp, there);
}

static void name_temp(tl_out *o, size_t folder, size_t room, int number)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t words[8] = {(uint64_t)getpid(), (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec,
                         (uint64_t)(uintptr_t)o, (uint64_t)number};
    memcpy(o->temp, o->target, folder);
    snprintf(o->temp + folder, room - folder, "tulle-%016" PRIx64 ".part", tl_hash(words, sizeof words, 0));
}

/* The new file must not be accessible to anybody who had no access to the old one: where the group cannot be
 * kept, the new group gets only the permissions of others. */
static void copy_rights(int fd, const struct stat *old)
{
    struct stat now;
    mode_t mode = old->st_mode & 0777;
    if (fstat(fd, &now) != 0) return;
    if (now.st_uid != old->st_uid) (void)!fchown(fd, old->st_uid, (gid_t)-1);
    if (now.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | (mode & 0007) << 3;
    (void)!fchmod(fd, mode);
}

tulle_status tl_out_open(tl_base *b, const char *path, tl_out *o)
{
    tulle_status status = TULLE_OK;
    struct stat old;
    bool there = false;
    *o = (tl_out){.b = b, .path = path, .fd = -1};
    TRY(find_target(o, &old, &there));
    size_t folder = folder_length(o->target), room = folder + TEMP_ROOM;
    TRY(tl_alloc(b, &o->temp, (int64_t)room, 1, "a file name"));
    for (int i = 0; i < TRIES && o->fd < 0; i++) {
        name_temp(o, folder, room, i);
        tell(o, true);
        o->fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, there ? 0600 : 0666);
        if (o->fd >= 0) break;
        int error = errno;
        tell(o, false);
        if (error != EEXIST && error != EINTR) TRY(tl_out_fail(o, error));
    }
    if (o->fd < 0) TRY(tl_out_fail(o, EEXIST));
    o->made = true;
    if (there) copy_rights(o->fd, &old);
done:
    if (status != TULLE_OK) tl_out_close(o);
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

int tl_out_get(tl_out *o, void *data, int64_t bytes, int64_t at)
{
    char *p = data;
    while (bytes > 0) {
        ssize_t n = pread(o->fd, p, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return EIO;         /* another process truncated the file */
        p += n;
        at += n;
        bytes -= n;
    }
    return 0;
}

/* fsync(); 0 or errno.  That a file system does not support it is no error. */
static int to_disk(int fd)
{
    int rc;
    do rc = fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

/* Flushes the new name to disk, too.  If the folder cannot be opened for that it is not an error, as the file
 * is complete. */
static void folder_to_disk(const char *path)
{
    char folder[PATH_MAX];
    folder_of(path, folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)to_disk(fd);
    close(fd);
}

tulle_status tl_out_rename(tl_out *o)
{
    tulle_status status = TULLE_OK;
    int error = to_disk(o->fd), fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0 && errno != EINTR && error == 0) error = errno;
    if (error == 0 && tl_progress(o->b, "write", 1))    /* flushing may have taken long */
        TRY(tl_fail(o->b, TULLE_ECANCEL, "%s: writing was cancelled", o->path));
    if (error == 0 && rename(o->temp, o->target) != 0) error = errno;
    if (error) TRY(tl_out_fail(o, error));
    o->made = false;
    tell(o, false);
    folder_to_disk(o->target);
done:
    return status;
}

void tl_out_close(tl_out *o)
{
    if (o->fd >= 0) close(o->fd);
    if (o->made) {
        unlink(o->temp);
        tell(o, false);
    }
    tl_free(o->b, o->temp);
    tl_free(o->b, o->target);
    o->fd = -1;
    o->made = false;
    o->temp = o->target = NULL;
}

/* ---- files that are not matrices */

tulle_status tl_write_check(tl_base *b, const char *path)
{
    tl_out o;
    tulle_status status = tl_out_open(b, path, &o);
    tl_out_close(&o);
    return status;
}

tulle_status tl_write_bytes(tl_base *b, const char *path, const void *data, size_t bytes)
{
    tulle_status status = TULLE_OK;
    tl_out o;
    TRY(tl_out_open(b, path, &o));
    int error = tl_out_put(&o, data, (int64_t)bytes, 0);
    if (error) TRY(tl_out_fail(&o, error));
    TRY(tl_out_rename(&o));
done:
    tl_out_close(&o);
    return status;
}
