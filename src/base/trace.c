/* SPDX-License-Identifier: MIT
 * trace.c - calls the caller's trace and progress callbacks. */
#include "base/base.h"
#include <stdio.h>

void tl_trace(tl_base *b, const char *format, ...)
{
    if (!b->trace) return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    b->trace(b->trace_user, line);
}

bool tl_progress(tl_base *b, const char *stage, double fraction)
{
    if (b->progress && !atomic_load_explicit(&b->cancelled, memory_order_relaxed)) {
        if (b->progress(b->progress_user, stage, fraction)) atomic_store(&b->cancelled, 1);
    }
    return atomic_load_explicit(&b->cancelled, memory_order_relaxed) != 0;
}
