/* SPDX-License-Identifier: MIT
 *
 * dispatch.c - selects the kernels for a value type, an index type and the processor.
 *
 * TULLE_ISA=base or avx2 in the environment selects an older instruction set than the processor has.  If the
 * library or the processor does not have it, no context can be created. */
#include "cpu/cpu.h"
#include "cpu/spmm.h"
#include <stdio.h>
#include <string.h>

#define DECLARE(stem, isa, v, i)                                                                  \
    int64_t stem##isa##_##v##_##i(const tl_job *, tl_scratch *, const tl_piece *, void *, void *, int64_t *);
#define DECLARE_SPMM(isa, v)                                                                      \
    const tl_spmm_kernels *tl_spmm_##isa##_##v##_i32(void);                                       \
    const tl_spmm_kernels *tl_spmm_##isa##_##v##_i64(void);
#define DECLARE_ISA(isa)                                                                          \
    DECLARE(tl_symbolic_, isa, f64, i32) DECLARE(tl_symbolic_, isa, f64, i64)                     \
    DECLARE(tl_fused_, isa, f32, i32) DECLARE(tl_fused_, isa, f32, i64)                           \
    DECLARE(tl_fused_, isa, f64, i32) DECLARE(tl_fused_, isa, f64, i64)                           \
    DECLARE(tl_fused_, isa, c32, i32) DECLARE(tl_fused_, isa, c32, i64)                           \
    DECLARE(tl_fused_, isa, c64, i32) DECLARE(tl_fused_, isa, c64, i64)                           \
    DECLARE(tl_numeric_, isa, f32, i32) DECLARE(tl_numeric_, isa, f32, i64)                       \
    DECLARE(tl_numeric_, isa, f64, i32) DECLARE(tl_numeric_, isa, f64, i64)                       \
    DECLARE(tl_numeric_, isa, c32, i32) DECLARE(tl_numeric_, isa, c32, i64)                       \
    DECLARE(tl_numeric_, isa, c64, i32) DECLARE(tl_numeric_, isa, c64, i64)                       \
    DECLARE_SPMM(isa, f32) DECLARE_SPMM(isa, f64) DECLARE_SPMM(isa, c32) DECLARE_SPMM(isa, c64)

#define PAIR(stem, isa, v) {stem##isa##_##v##_i32, stem##isa##_##v##_i64}
#define FOUR(stem, isa)                                                                           \
    {PAIR(stem, isa, f32), PAIR(stem, isa, f64), PAIR(stem, isa, c32), PAIR(stem, isa, c64)}
#define TABLE(isa)                                                                                \
    {#isa, PAIR(tl_symbolic_, isa, f64), FOUR(tl_fused_, isa), FOUR(tl_numeric_, isa), FOUR(tl_spmm_, isa)}

/* TL_KERNELS_*: the kernels that this build has (cmake/TulleObjects.cmake). */
#if defined(TL_KERNELS_BASE)
DECLARE_ISA(base)
#endif
#if defined(TL_KERNELS_AVX2)
DECLARE_ISA(avx2)
#endif
#if defined(TL_KERNELS_AVX512)
DECLARE_ISA(avx512)
#endif

typedef struct isa_table {
    const char *name;
    tl_piece_fn symbolic[2];            /* by index type            */
    tl_piece_fn fused[4][2], numeric[4][2];     /* by value, index  */
    const tl_spmm_kernels *(*spmm[4][2])(void);
} isa_table;

static const isa_table tables[] = {     /* from the oldest to the newest */
#if defined(TL_KERNELS_BASE)
    TABLE(base),
#endif
#if defined(TL_KERNELS_AVX2)
    TABLE(avx2),
#endif
#if defined(TL_KERNELS_AVX512)
    TABLE(avx512),
#endif
};

static bool supported(const char *isa)
{
    if (strcmp(isa, "base") == 0) return true;
#if defined(TL_HAVE_AVX2) || defined(TL_HAVE_AVX512)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")
                && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    if (strcmp(isa, "avx2") == 0) return avx2;
    if (strcmp(isa, "avx512") == 0)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
               && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
               && __builtin_cpu_supports("avx512cd");
#endif
    return false;
}

static const isa_table *table(void)
{
    const char *wanted = tl_env("TULLE_ISA");
    for (int i = (int)(sizeof tables / sizeof *tables) - 1; i > 0; i--)
        if (supported(tables[i].name) && (!wanted || strcmp(wanted, tables[i].name) == 0)) return &tables[i];
    return &tables[0];
}

bool tl_isa_wrong(char *why, size_t bytes)
{
    const char *wanted = tl_env("TULLE_ISA");
    char names[64] = "";
    bool known = false;
    size_t n = 0;
    if (!supported(table()->name)) {    /* built for one kind of processor only, and run on another */
        snprintf(why, bytes,
                 "this library was built for a processor with %s, which this one lacks; \"make\" builds it "
                 "for all",
                 table()->name);
        return true;
    }
    if (!wanted || strcmp(wanted, table()->name) == 0) return false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        known = known || strcmp(wanted, tables[i].name) == 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && n < sizeof names; i++)
        if (!known || supported(tables[i].name))
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", tables[i].name);
    snprintf(why, bytes, "the variable TULLE_ISA is \"%.60s\"; %s %s", wanted,
             known ? "this processor runs" : "this library has", names);
    return true;
}

tl_kernels tl_kernels_for(tulle_type value, tulle_index index)
{
    const isa_table *t = table();
    int v = value - TULLE_F32, i = index - TULLE_I32;
    return (tl_kernels){t->symbolic[i], t->fused[v][i], t->numeric[v][i], t->name};
}

const tl_spmm_kernels *tl_spmm_kernels_for(tulle_type value, tulle_index index)
{
    return table()->spmm[value - TULLE_F32][index - TULLE_I32]();
}

const char *tl_cpu_isa(void)
{
    return table()->name;
}

int64_t tl_cpu_few(tulle_type value)
{
    /* measured: 9 products 1.3 times as fast (AVX2: 1.2), 16 products 0.6 times */
    enum { FEW = 12 };
    return value <= TULLE_F64 && strcmp(table()->name, "base") != 0 ? FEW : 0;
}

void tl_cpu_text(char *text, size_t bytes)
{
    char model[128] = "CPU", line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f) fclose(f);
    snprintf(text, bytes, "%s, %d threads, %s kernels", model, tl_cores(), tl_cpu_isa());
}
