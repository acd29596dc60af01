/* SPDX-License-Identifier: MIT
 *
 * test_env.c - environment variables: with allowed values a context is created, others are refused with a
 * message that has the variable, its value and what is allowed.  (tests/check_env.sh compares the table with
 * the source and the documentation.) */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include "base/base.h"
#include "test.h"

static tulle_status create(char *why, size_t bytes)
{
    tulle_ctx *ctx = NULL;
    tulle_status status = tulle_ctx_create_why("cpu", NULL, &ctx, why, bytes);
    tulle_ctx_free(ctx);
    return status;
}

typedef struct variable {
    const char *name, *good[6], *bad[10], *allowed;
} variable;

#define SWITCH {"on", "off", "", NULL}, {"On", "ON", "of", "offf", "0", "1", "on off", " on", "yes", NULL}, "\"on\" or \"off\""

static const variable variables[] = {
    {"TULLE_IMAGES", SWITCH},
    {"TULLE_SPMM_TF32", SWITCH},
    {"TULLE_SPMM_TWINS", SWITCH},
    {"TULLE_GPU_BALANCE", SWITCH},
    {"TULLE_GPU_TWINS", {"on", "off", "auto", NULL}, {"1", "always", NULL}, "\"on\" or \"off\" or \"auto\""},
    {"TULLE_GPU_MOTIFS", {"on", "off", "collide-classes", "collide-motifs", "16384", NULL}, {"0", "16385", "collide", "-1", "many", NULL},
     "\"on\" or \"off\" or \"collide-classes\" or \"collide-motifs\", or a whole number from 1 to 16384"},
    {"TULLE_SPMM_OVERLAP", {"on", "off", "1", "3", "", NULL}, {"0", "4", "-1", "two", "1 ", "on1", NULL},
     "\"on\" or \"off\", or a whole number from 1 to 3"},
    {"TULLE_SPMM_TF32_WARPS", {"1", "8", NULL}, {"0", "9", "x", "-2", "1.5", "+1", NULL}, "a whole number from 1 to 8"},
    {"TULLE_SPMM_CHUNK", {"1", "1000", "2147483647", NULL}, {"0", "-3", "many", "2147483648", "1e3", NULL},
     "a whole number from 1 to 2147483647"},
    {"TULLE_SPMM_BAND", {"1", "77", NULL}, {"0", "x", "99999999999999999999", "7 rows", NULL}, "a whole number from 1"},
    {"TULLE_GPU_SHARED", {"1024", "49152", NULL}, {"1023", "48K", "0", "", NULL}, "a whole number from 1024"},
    {"TULLE_GPU_FAIL", {"0", "1", "100000", NULL}, {"-1", "first", "99999999999999999999", NULL}, "a whole number from 0"},
    {"TULLE_SPMM_SHAPE", {"2,0,1,64,1,1", "0,0,2,32,3,4", NULL},
     {"2,0,1,64,0", "2,0,1,64,0,1", "3,3,1,64,1,1", "2,0,3,64,1,1", "2,0,1,48,1,1", "fast", "2,0,1,64,1,3", NULL}, "six numbers"},
    {"TULLE_ISA", {"base", "", NULL}, {"avx51", "AVX2", "avx2 ", "sse2", "none", NULL}, "this library has base"},
};

static void a_value_is_allowed_or_refused_with_a_sentence(void)
{
    char why[512];
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const variable *v = &variables[i];
        for (int k = 0; k < 6 && v->good[k]; k++) {
            setenv(v->name, v->good[k], 1);
            CHECK(create(why, sizeof why) == TULLE_OK && !why[0], "%s=%s: %s", v->name, v->good[k], why);
        }
        for (int k = 0; k < 10 && v->bad[k]; k++) {
            char part[128];
            if (!v->bad[k][0]) continue;        /* an empty value counts as unset */
            snprintf(part, sizeof part, "\"%s\"", v->bad[k]);
            setenv(v->name, v->bad[k], 1);
            CHECK(create(why, sizeof why) == TULLE_EINVAL, "%s=%s is taken", v->name, v->bad[k]);
            CHECK(strstr(why, v->name) && strstr(why, part) && strstr(why, v->allowed), "%s=%s: \"%s\" should tell of %s", v->name,
                  v->bad[k], why, v->allowed);
        }
        unsetenv(v->name);
    }
    CHECK(create(why, sizeof why) == TULLE_OK, "%s", why);
}

/* Very long values are shown in part. */
static void a_long_value_is_cut(void)
{
    static char value[100000];
    char why[512];
    memset(value, 'x', sizeof value - 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        setenv(variables[i].name, value, 1);
        CHECK(create(why, sizeof why) == TULLE_EINVAL && strstr(why, variables[i].allowed), "%s: %s", variables[i].name, why);
        unsetenv(variables[i].name);
    }
}

/* Each instruction set is used, or the message says that the library or the processor does not support it;
 * the list of devices agrees. */
static void instructions_that_are_not_there_are_refused(void)
{
    static const char *const sets[] = {"base", "avx2", "avx512", "avx51"};
    char why[512];
    tulle_device d;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        setenv("TULLE_ISA", sets[i], 1);
        tulle_status status = create(why, sizeof why);
        CHECK(tulle_device_info(0, &d) == TULLE_OK && d.usable == (status == TULLE_OK), "%s: usable %d", sets[i], d.usable);
        if (status == TULLE_OK) CHECK(strcmp(d.arch, sets[i]) == 0, "%s, not %s", d.arch, sets[i]);
        else CHECK(strstr(why, "this processor runs base") || strstr(why, "this library has base"), "%s: %s", sets[i], why);
        CHECK(d.usable || strcmp(d.why_not, why) == 0, "%s: %s", sets[i], d.why_not);
    }
    unsetenv("TULLE_ISA");
}

static void what_the_table_does_not_have_is_not_read(void)
{
    setenv("TULLE_NO_SUCH_THING", "1", 1);
    CHECK(!tl_env("TULLE_NO_SUCH_THING"), "it was read");
    setenv("TULLE_CACHE", "here", 1);
    CHECK(tl_env("TULLE_CACHE") && strcmp(tl_env("TULLE_CACHE"), "here") == 0, "TULLE_CACHE");
    setenv("TULLE_CACHE", "", 1);
    CHECK(!tl_env("TULLE_CACHE"), "set to nothing");
}

TEST_MAIN(TEST(a_value_is_allowed_or_refused_with_a_sentence), TEST(a_long_value_is_cut),
          TEST(instructions_that_are_not_there_are_refused), TEST(what_the_table_does_not_have_is_not_read))
