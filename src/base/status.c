/* SPDX-License-Identifier: MIT
 * status.c - names of status codes, tl_fail(), and the check of reserved words. */
#include "base/base.h"
#include <stdio.h>

const char *tulle_status_name(tulle_status status)
{
    switch (status) {
#define CASE(name, code, text) case TULLE_##name: return "TULLE_" #name;
        TULLE_STATUS_LIST(CASE)
#undef CASE
    default: return "TULLE_?";
    }
}

const char *tulle_status_text(tulle_status status)
{
    switch (status) {
#define CASE(name, code, text) case TULLE_##name: return text;
        TULLE_STATUS_LIST(CASE)
#undef CASE
    default: return "not a status of tulle";
    }
}

const char *tulle_version(void)
{
    return TULLE_VERSION;
}

tulle_status tl_fail(tl_base *b, tulle_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->error, sizeof b->error, format, args);
    va_end(args);
    return status;
}

tulle_status tl_reserved_check(tl_base *b, const char *name, const uint64_t *reserved, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i]) return tl_fail(b, TULLE_EINVAL, "%s: reserved[%zu] is not zero", name, i);
    return TULLE_OK;
}
