/* SPDX-License-Identifier: MIT
 * clock.c - a monotonic clock, and a sleep. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double tl_now(void) { return seconds_of(CLOCK_MONOTONIC); }
double tl_cpu_now(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

void tl_rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}
