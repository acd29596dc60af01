/* SPDX-License-Identifier: MIT
 *
 * source.c - the text for the compiler: prelude, defines, shared files, kernel file.
 *
 * Every part begins with a #line, so that messages have the file of src/kernels and the line in it; for a
 * define the file is "defines", and the line is its number. */
#define _POSIX_C_SOURCE 200809L
#include "jit/parts.h"
#include <stdio.h>
#include <string.h>

/* Included before every kernel file, in this order. */
static const char *const shared[] = {"classes", "common", "choose", "block", "crew"};
enum { SHARED = sizeof shared / sizeof *shared, PARTS = SHARED + 2 };
static const char prelude[] = "prelude_";

static const tl_text *find(const char *name)
{
    for (const tl_text *t = tl_texts; t->name; t++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

const char *tl_jit_file(int i)
{
    for (const tl_text *t = tl_texts; t->name; t++) {
        bool kernel = strncmp(t->name, prelude, sizeof prelude - 1) != 0;
        for (int k = 0; k < SHARED; k++) kernel = kernel && strcmp(t->name, shared[k]) != 0;
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
    const char *names[PARTS] = {first};
    const tl_text *parts[PARTS];
    for (int i = 0; i < SHARED; i++) names[i + 1] = shared[i];
    names[PARTS - 1] = program->file;
    size_t defines = strnlen(program->defines, sizeof program->defines), room = defines + 64;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = find(names[i]);
        if (!parts[i]) return tl_fail(b, TULLE_ECOMPILE, "there is no kernel file %s.cl", names[i]);
        room += parts[i]->bytes + strlen(names[i]) + 64;        /* its #line and a final newline */
    }
    TRY(tl_alloc(b, text, (int64_t)room, 1, "the text of a kernel"));
    char *to = put(*text, first, ".cl", parts[0]->text, parts[0]->bytes);
    to = put(to, "defines", "", program->defines, defines);
    for (int i = 1; i < PARTS; i++) to = put(to, names[i], ".cl", parts[i]->text, parts[i]->bytes);
done:
    return status;
}
