/* SPDX-License-Identifier: MIT
 * progress.c - a progress bar on standard error, only on a terminal and only after more than a second. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <time.h>
#include <unistd.h>

enum { BAR = 32 };

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, bool quiet)
{
    *p = (progress){.wanted = !quiet && isatty(STDERR_FILENO), .begun = seconds()};
    p->last = p->begun;
}

static void draw(progress *p, const char *stage, double fraction)
{
    char bar[BAR + 1];
    fraction = fraction > 0 ? (fraction < 1 ? fraction : 1) : 0;
    int full = (int)(fraction * BAR + 0.5);
    for (int i = 0; i < BAR; i++) bar[i] = i < full ? '#' : '.';
    bar[BAR] = 0;
    fprintf(stderr, "\r\033[K%-12.24s [%s] %3.0f%%", stage ? stage : "working", bar, 100 * fraction);
    fflush(stderr);
    p->drawn = true;
}

int progress_call(void *user, const char *stage, double fraction)
{
    progress *p = user;
    if (signal_caught()) return 1;
    if (!p->wanted) return 0;
    double now = seconds();
    if (now - p->begun > 1.0 && now - p->last > 0.1) {
        p->last = now;
        draw(p, stage, fraction);
    }
    return 0;
}

void progress_erase(progress *p)
{
    if (!p->drawn) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
}
