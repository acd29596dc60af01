/* SPDX-License-Identifier: MIT
 * clock.c - a monotonic clock, and a sleep. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include <time.h>

double tl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tl_rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}
