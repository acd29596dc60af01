/* SPDX-License-Identifier: MIT
 * test.c - runs the cases of a test program and counts them. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"
#include <time.h>

int test_failures;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int test_main(int argc, char **argv, const test_case *cases, int count)
{
    int passed = 0, failed = 0;
    const char *only = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < count; i++) {
        if (!strstr(cases[i].name, only)) continue;
        const double start = now();
        test_failures = 0;
        cases[i].run();
        printf("%s %s", test_failures ? "FAIL" : "ok  ", cases[i].name);
        if (now() - start >= 1) printf(", %.0f s", now() - start);
        printf("\n");
        if (test_failures) failed++;
        else passed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
