/* SPDX-License-Identifier: MIT
 *
 * dl.c - libraries that may or may not be on the machine, opened at run time.  The only file of the
 * library that calls dlopen.
 *
 * A library once opened stays in the process: drivers have threads and handlers of their own that do not
 * survive being unmapped.  Opening it again is then only a lookup in the loader's list (microseconds), so no
 * handle has to be kept in a global variable.
 *
 * A program that is linked statically has no loader: dlopen there brings a second C library into the
 * process, and drivers' libraries crash in it.  Such a program opens none. */
#define _GNU_SOURCE
#include "base/base.h"
#include <dlfcn.h>
#if defined(__linux__)
#include <link.h>
#endif
#include <stdio.h>
#include <string.h>

#ifndef RTLD_NODELETE
#define RTLD_NODELETE 0
#endif

#if defined(__linux__)
/* The first object is the program itself; a dynamically linked program names its loader (PT_INTERP). */
static int look_at_program(struct dl_phdr_info *info, size_t bytes, void *loaded)
{
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP) *(bool *)loaded = true;
    return 1;
}

static bool linked_statically(void)
{
    bool loaded = false;
    dl_iterate_phdr(look_at_program, &loaded);
    return !loaded;
}
#else
static bool linked_statically(void) { return false; }
#endif

/* Of several reasons `why` gets the most informative one: a library that exists but cannot be used. */
void *tl_dl_open(const char *const *names, char *why, size_t why_bytes)
{
    bool found = false;
    if (linked_statically()) {
        snprintf(why, why_bytes,
                 "%s is not opened: this program is statically linked, no devices but the CPU", names[0]);
        return NULL;
    }
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library) return library;
        const char *reason = dlerror();
        size_t n = strlen(names[i]);
        if (!reason) reason = "no reason was given";
        if (strncmp(reason, names[i], n) == 0 && reason[n] == ':') reason += n + 1;
        while (*reason == ' ') reason++;
        bool there = !strstr(reason, "No such file");
        if (i == 0 || (there && !found))
            snprintf(why, why_bytes, "%s cannot be opened: %s", names[i], reason);
        found |= there;
    }
    return NULL;
}

bool tl_dl_symbol(void *library, const char *name, void *function)
{
    void *address = library ? dlsym(library, name) : NULL;
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

bool tl_dl_symbols(void *library, const tl_dl_entry *entries, int count, void *table, char *why,
                   size_t why_bytes)
{
    for (int i = 0; i < count; i++) {
        if (tl_dl_symbol(library, entries[i].name, (char *)table + entries[i].offset) || entries[i].optional)
            continue;
        snprintf(why, why_bytes, "the library has no function %s: it is too old", entries[i].name);
        return false;
    }
    return true;
}

void tl_dl_close(void *library)
{
    if (library) dlclose(library);
}
