/* SPDX-License-Identifier: MIT
 *
 * isa_taken.c - a build with kernels for some instruction sets selects the best one that the processor
 * supports.
 *
 * It is compiled together with src/cpu/dispatch.c, with TL_KERNELS_* for some of the library's instruction
 * sets, as TULLE_ISAS gives them (tests/CMakeLists.txt): base and avx512 without avx2, for example.  The
 * selection is compared with the processor's flags as reported by Linux. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include "cpu/cpu.h"
#include "cpu/spmm.h"
#include "test.h"

typedef struct isa { const char *name, *flags; } isa;   /* flags as in /proc/cpuinfo */

#define AVX2 "avx2 bmi1 bmi2 popcnt"

static const isa isas[] = {             /* of this build, best last */
#if defined(TL_KERNELS_BASE)
    {"base", ""},
#endif
#if defined(TL_KERNELS_AVX2)
    {"avx2", AVX2},
#endif
#if defined(TL_KERNELS_AVX512)
    {"avx512", AVX2 " avx512f avx512bw avx512vl avx512dq avx512cd"},
#endif
};

enum { ISAS = sizeof isas / sizeof *isas };

/* Whether the processor has all of these flags. */
static bool runs(const char *flags)
{
    static char line[16384];
    char word[32], wanted[40];
    FILE *f = fopen("/proc/cpuinfo", "r");
    line[0] = 0;
    while (f && fgets(line, sizeof line - 1, f) && strncmp(line, "flags", 5) != 0) line[0] = 0;
    if (f) fclose(f);
    line[strcspn(line, "\n")] = 0;
    strcat(line, " ");
    for (int n = 0; sscanf(flags, "%31s%n", word, &n) == 1; flags += n) {
        snprintf(wanted, sizeof wanted, " %s ", word);
        if (!strstr(line, wanted)) return false;
    }
    return true;
}

static const char *best(void)
{
    const char *name = isas[0].name;
    for (int i = 1; i < ISAS; i++)
        if (runs(isas[i].flags)) name = isas[i].name;
    return name;
}

static void the_best_that_the_processor_runs_is_taken(void)
{
    char why[256] = "";
    unsetenv("TULLE_ISA");
    CHECK(strcmp(tl_cpu_isa(), best()) == 0, "%s was taken, this processor runs %s", tl_cpu_isa(), best());
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (int i = TULLE_I32; i <= TULLE_I64; i++) {
            tl_kernels k = tl_kernels_for((tulle_type)v, (tulle_index)i);
            CHECK(strcmp(k.isa, best()) == 0 && k.fused && k.numeric && k.symbolic, "kernels of %s", k.isa);
        }
    CHECK(!tl_isa_wrong(why, sizeof why), "%s", why);
}

static void each_can_be_asked_for_and_no_other(void)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    char why[256];
    for (int n = 0; n < 3; n++) {
        bool here = false;
        for (int i = 0; i < ISAS; i++)
            here = here || (strcmp(isas[i].name, names[n]) == 0 && runs(isas[i].flags));
        setenv("TULLE_ISA", names[n], 1);
        why[0] = 0;
        CHECK(tl_isa_wrong(why, sizeof why) == !here, "%s: \"%s\"", names[n], why);
        if (here) CHECK(strcmp(tl_cpu_isa(), names[n]) == 0, "%s instead of %s", tl_cpu_isa(), names[n]);
    }
    unsetenv("TULLE_ISA");
}

TEST_MAIN(TEST(the_best_that_the_processor_runs_is_taken), TEST(each_can_be_asked_for_and_no_other))
