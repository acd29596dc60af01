/* SPDX-License-Identifier: MIT
 * test.c - runs the cases of a test program and counts them. */
#include "test.h"

int test_failures;

int test_main(int argc, char **argv, const test_case *cases, int count)
{
    int passed = 0, failed = 0;
    const char *only = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < count; i++) {
        if (!strstr(cases[i].name, only)) continue;
        test_failures = 0;
        cases[i].run();
        printf("%s %s\n", test_failures ? "FAIL" : "ok  ", cases[i].name);
        if (test_failures) failed++;
        else passed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}
