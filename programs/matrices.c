/* SPDX-License-Identifier: MIT
 *
 * matrices.c - the matrices that `tulle tune` measures: operands, and all files of operands that are folders,
 * in the order of their names.  One that cannot be measured is left out, and the next takes its place. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static int add_name(matrices *m, const char *folder, const char *name)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    if (m->names == MATRICES_MOST) return complain(END_USAGE, "more than %d matrices", MATRICES_MOST);
    char *path = malloc(bytes);
    if (!path) return no_memory("names of matrices");
    snprintf(path, bytes, "%s%s%s", folder, *folder ? "/" : "", name);
    m->name[m->names++] = path;
    return END_OK;
}

static bool is_matrix(const char *name)
{
    static const char *const ends[] = {".mtx", ".mtx.gz", ".tar.gz", ".tulle"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name[0] != '.' && ends_with(name, ends[i])) return true;
    return false;
}

static int add_folder(matrices *m, const char *path)
{
    int code = END_OK, before = m->names;
    DIR *folder = opendir(path);
    if (!folder) return complain(END_INPUT, "%s: cannot be opened", path);
    for (struct dirent *e; (e = readdir(folder));)
        if (is_matrix(e->d_name)) GO(add_name(m, path, e->d_name));
    if (m->names == before)
        code = complain(END_INPUT, "%s: no .mtx, .mtx.gz, .tar.gz or .tulle is there", path);
done:
    closedir(folder);
    return code;
}

int matrices_enough(const matrices *m, int end, const char *what)
{
    if (m->names >= MATRICES_LEAST) return END_OK;
    return complain(end, "%s %d matrices at least, as each third one judges; %d %s", m->needs,
                    MATRICES_LEAST, m->names, what);
}

int matrices_find(matrices *m, const options *o)
{
    int code = END_OK;
    for (int i = 0; i < o->operands; i++)
        GO(is_directory(o->operand[i]) ? add_folder(m, o->operand[i]) : add_name(m, "", o->operand[i]));
    qsort(m->name, (size_t)m->names, sizeof *m->name, by_name);
    code = matrices_enough(m, END_USAGE, "are given");
done:
    return code;
}

void matrices_leave_out(matrices *m, int i, int end)
{
    complain(end, "%s is left out", m->name[i]);
    free(m->name[i]);
    m->names--;
    m->left_out++;
    memmove(m->name + i, m->name + i + 1, (size_t)(m->names - i) * sizeof *m->name);
}

const char *matrices_name(const matrices *m, int i)
{
    const char *name = strrchr(m->name[i], '/');
    return name ? name + 1 : m->name[i];
}

void matrices_free(matrices *m)
{
    for (int i = 0; i < m->names; i++) free(m->name[i]);
    m->names = 0;
}
