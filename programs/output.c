/* SPDX-License-Identifier: MIT
 * output.c - output files: errors should be reported before the computation, not after it. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <string.h>
#include <sys/stat.h>

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

bool is_plain(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && S_ISREG(at.st_mode);
}

int output_name(const char *path, file_kind kind)
{
    static const struct { const char *end[3], *all; } kinds[] = {
        [MATRIX_FILE] = {{".mtx", ".mtx.gz", ".tulle"}, ".mtx, .mtx.gz or .tulle"},
        [DENSE_FILE] = {{".npy", ".mtx"}, ".npy or .mtx"},
        [PICTURE_FILE] = {{".png"}, ".png"},
    };
    if (!path) return END_OK;
    for (int i = 0; i < 3 && kinds[kind].end[i]; i++)
        if (ends_with(path, kinds[kind].end[i])) return END_OK;
    return complain(END_USAGE, "the name \"%s\" does not end in %s", path, kinds[kind].all);
}

int output_symmetric(const options *o, const char *path)
{
    if (!o->symmetric || (path && (ends_with(path, ".mtx") || ends_with(path, ".mtx.gz")))) return END_OK;
    return complain(END_USAGE, "--symmetric is for .mtx and .mtx.gz files, and %s%s",
                    path ? "the result goes to " : "there is none", path ? path : "");
}

int output_place(session *s, const char *path)
{
    return path ? told(s, tulle_write_check(s->ctx, path)) : END_OK;
}

int output_write(session *s, const char *path, const tulle_csr *A, double *sec)
{
    double begun = seconds();
    tulle_status status = (s->o->symmetric ? tulle_write_symmetric : tulle_write)(s->ctx, path, A);
    int code = told(s, status);
    if (s->o->symmetric && status == TULLE_EINVAL) code = END_FAILED;       /* not a usage error */
    if (sec) *sec = seconds() - begun;
    return code;
}
