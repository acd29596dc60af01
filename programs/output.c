/* SPDX-License-Identifier: MIT
 * output.c - the file of a result: what is wrong with it should be known before the work, not after. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

bool is_directory(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISDIR(at.st_mode);
}

int output_check_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!*path || is_directory(path))
        return complain(END_FAILED, "\"%s\" is not the name of a file", path);
    if (strlen(path) >= sizeof folder)
        return complain(END_FAILED, "the name of the output is too long");
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    else snprintf(folder, sizeof folder, ".");
    if (access(folder, W_OK) == 0) return END_OK;
    return complain(END_FAILED, "\"%s\" cannot be written: %s", path, strerror(errno));
}

int output_check(const char *path)
{
    if (!path) return END_OK;
    if (!ends_with(path, ".mtx") && !ends_with(path, ".mtx.gz") && !ends_with(path, ".tulle"))
        return complain(END_USAGE, "the name \"%s\" does not end in .mtx, .mtx.gz or .tulle", path);
    return output_check_folder(path);
}

int output_check_dense(const char *path)
{
    if (!path) return END_OK;
    if (!ends_with(path, ".npy") && !ends_with(path, ".mtx"))
        return complain(END_USAGE, "the name \"%s\" does not end in .npy or .mtx", path);
    return output_check_folder(path);
}

int output_write(session *s, const char *path, const tulle_csr *A, double *sec)
{
    double begun = seconds();
    int code = told(s, tulle_write(s->ctx, path, A));
    if (sec) *sec = seconds() - begun;
    return code;
}
