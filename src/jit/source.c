/* SPDX-License-Identifier: MIT
 *
 * source.c - the text that a compiler sees: prelude, defines, classes.cl, common.cl, kernel file.
 *
 * Every part begins with a #line, so that a message names the file as it lies in src/kernels and the line
 * in it.  A message about a define names "defines" and counts them. */
#define _POSIX_C_SOURCE 200809L
#include "jit/parts.h"
#include <stdio.h>
#include <string.h>

static const char common[] = "common", classes[] = "classes", prelude[] = "prelude_";

static const tl_text *find(const char *name)
{
    for (const tl_text *t = tl_texts; t->name; t++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

const char *tl_jit_file(int i)
{
    for (const tl_text *t = tl_texts; t->name; t++) {
        bool kernel = strcmp(t->name, common) != 0 && strcmp(t->name, classes) != 0
                      && strncmp(t->name, prelude, sizeof prelude - 1) != 0;
        if (kernel && i-- == 0) return t->name;
    }
    return NULL;
}

static char *put(char *to, const char *name, const char *ending, const void *text, size_t bytes)
{
    to += sprintf(to, "#line 1 \"%s%s\"\n", name, ending);
    memcpy(to, text, bytes);
    to += bytes;
    if (bytes > 0 && to[-1] != '\n') *to++ = '\n';
    *to = 0;
    return to;
}

tulle_status tl_jit_source(tl_base *b, const char *dialect, const tl_program *program, char **text)
{
    tulle_status status = TULLE_OK;
    char first[64];
    *text = NULL;
    snprintf(first, sizeof first, "%s%s", prelude, dialect);
    const char *names[4] = {first, classes, common, program->file};
    const tl_text *parts[4];
    size_t defines = strnlen(program->defines, sizeof program->defines), room = defines + 64;
    for (int i = 0; i < 4; i++) {
        parts[i] = find(names[i]);
        if (!parts[i]) return tl_fail(b, TULLE_ECOMPILE, "there is no kernel file %s.cl", names[i]);
        room += parts[i]->bytes + strlen(names[i]) + 64;        /* its #line and a last newline */
    }
    TRY(tl_alloc(b, text, (int64_t)room, 1, "the text of a kernel"));
    char *to = put(*text, first, ".cl", parts[0]->text, parts[0]->bytes);
    to = put(to, "defines", "", program->defines, defines);
    to = put(to, classes, ".cl", parts[1]->text, parts[1]->bytes);
    to = put(to, common, ".cl", parts[2]->text, parts[2]->bytes);
    put(to, program->file, ".cl", parts[3]->text, parts[3]->bytes);
done:
    return status;
}
