/* SPDX-License-Identifier: MIT
 *
 * test.h - the whole test harness.  A test is a function whose name describes what it tests; CHECK records a
 * failure and continues, REQUIRE ends the test.  A program ends with TEST_MAIN, which runs the tests whose
 * names contain its argument, and prints "N passed, N failed". */
#ifndef TULLE_TEST_H
#define TULLE_TEST_H
#include <stdio.h>
#include <string.h>

typedef struct { const char *name; void (*run)(void); } test_case;

extern int test_failures;       /* of the current test */

#define CHECK(condition, ...)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            test_failures++;                                                \
            if (test_failures <= 10) {                                      \
                printf("    %s:%d: %s; ", __FILE__, __LINE__, #condition);  \
                printf(__VA_ARGS__);                                        \
                printf("\n");                                               \
            }                                                               \
        }                                                                   \
    } while (0)

#define REQUIRE(condition, ...)                                             \
    do {                                                                    \
        int failures_before = test_failures;    /* the condition is evaluated once */ \
        CHECK(condition, __VA_ARGS__);                                      \
        if (test_failures > failures_before) return;                        \
    } while (0)

#define TEST(name) {#name, name}

int test_main(int argc, char **argv, const test_case *cases, int count);

#define TEST_MAIN(...)                                                      \
    int main(int argc, char **argv)                                         \
    {                                                                       \
        static const test_case cases[] = {__VA_ARGS__};                     \
        return test_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases)); \
    }
#endif
