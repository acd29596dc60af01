/* SPDX-License-Identifier: MIT
 * thresholds.c - the table of thresholds, and that of families of devices (thresholds.h). */
#include "plan/thresholds.h"
#include <stddef.h>
#include <string.h>

/* ---- families: the first line that fits */

static const struct { tl_family family; const char *driver, *arch, *name; bool cpu; } devices[] = {
    {TL_HOPPER, "cuda", "sm_9", "", false},
    {TL_AMPERE, "cuda", "sm_8", "", false},             /* and Ada */
    {TL_CUDA, "cuda", "", "", false},
    {TL_OPENCL_CPU, "opencl", "", "", true},
    {TL_AMD, "opencl", "", "AMD", false},
    {TL_AMD, "opencl", "", "gfx", false},
    {TL_INTEL, "opencl", "", "Intel", false},
    {TL_OPENCL, "opencl", "", "", false},
};

static const char *const families[TL_FAMILIES] = {
    [TL_UNKNOWN] = "unknown", [TL_HOPPER] = "hopper", [TL_AMPERE] = "ampere",         [TL_CUDA] = "cuda",
    [TL_AMD] = "amd",         [TL_INTEL] = "intel",   [TL_OPENCL_CPU] = "opencl-cpu", [TL_OPENCL] = "opencl"};

tl_family tl_family_of(const char *driver, const char *arch, const char *name, bool cpu)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(driver, devices[i].driver) == 0 && strstr(name, devices[i].name)
            && strncmp(arch, devices[i].arch, strlen(devices[i].arch)) == 0 && (cpu || !devices[i].cpu))
            return devices[i].family;
    return TL_UNKNOWN;
}

const char *tl_family_name(tl_family family)
{
    return families[family];
}

bool tl_family_find(const char *name, tl_family *family)
{
    for (int i = 0; i < TL_FAMILIES; i++)
        if (strcmp(families[i], name) == 0) {
            *family = (tl_family)i;
            return true;
        }
    return false;
}

/* ---- thresholds */

/* Where a threshold is: offsets of words of 32 bits. */
#define STEP(member)   offsetof(tl_tuned_policy, steps.member)
#define POLICY(member) offsetof(tl_tuned_policy, policy.member)

/* The defaults are the numbers of policy_auto.c, unless a family has its own here (0: it has not).  They were
 * measured on an H200; no other family was measured yet.  Ranges are those within which every kernel is
 * right: sort_team() of numeric_rows.cl and the bins of registers, for instance, end at 512. */
static const struct {
    const char *name;
    size_t      where;
    uint32_t    least, most, step;
    bool        times;                  /* the step multiplies */
    uint32_t    of[TL_FAMILIES];
} table[TL_THRESHOLDS] = {
    /* rows of so many products are sorted in registers: wherever they lie, and where bitmaps do not fit */
    {"symbolic.few_most", POLICY(few_rows[0].most), 16, 512, 2, true, {0}},
    {"numeric.few_first", POLICY(few_rows[1].first), 16, 256, 2, true, {0}},
    {"numeric.few_most", POLICY(few_rows[1].most), 64, 512, 2, true, {0}},
    /* bitmaps: columns a product (entry), products (entries) of a row */
    {"symbolic.bits_per", STEP(symbolic.bits_per), 12, 768, 2, true, {0}},
    {"symbolic.bits_min", STEP(symbolic.bits_min), 24, 1536, 2, true, {0}},
    {"numeric.bits_per", STEP(numeric.bits_per), 32, 2048, 2, true, {0}},
    {"numeric.bits_max", STEP(numeric.bits_max), 256, 8192, 2, true, {0}},
    /* rows with a block of threads: columns an entry */
    {"numeric.block_per", STEP(numeric.block_per), 64, 4096, 2, true, {0}},
    {"numeric.dense_per", STEP(numeric.dense_per), 1, 80, 2, true, {0}},
    /* rows that repeat each other */
    {"twins.alike", POLICY(repeats.twins_alike), 10, 90, 10, false, {0}},
    {"motifs.alike", POLICY(repeats.motifs_alike), 10, 90, 10, false, {0}},
    {"motifs.gain", POLICY(repeats.motifs_gain), 1, 120, 2, true, {0}},
};

const char *tl_threshold_name(int i)
{
    return i >= 0 && i < TL_THRESHOLDS ? table[i].name : NULL;
}

void tl_threshold_range(int i, uint32_t *least, uint32_t *most)
{
    *least = table[i].least;
    *most = table[i].most;
}

static void plain(tl_tuned_policy *to)
{
    to->policy = tl_policy_auto;
    to->steps = *tl_policy_auto.gpu;
    to->policy.gpu = &to->steps;
}

tl_thresholds tl_thresholds_usual(tl_family family)
{
    tl_tuned_policy auto_policy;
    tl_thresholds t;
    plain(&auto_policy);
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        memcpy(&t.of[i], (const char *)&auto_policy + table[i].where, sizeof t.of[i]);
        if (table[i].of[family]) t.of[i] = table[i].of[family];
    }
    return t;
}

void tl_thresholds_set(const tl_thresholds *t, tl_tuned_policy *to)
{
    plain(to);
    for (int i = 0; i < TL_THRESHOLDS; i++)
        memcpy((char *)to + table[i].where, &t->of[i], sizeof t->of[i]);
}

/* The value before or after another one of the grid. */
static uint32_t next_to(int i, uint32_t value, bool up)
{
    const uint32_t step = table[i].step, least = table[i].least, most = table[i].most;
    uint32_t next = up ? (table[i].times ? value * step : value + step)
                       : (table[i].times ? value / step : value > step ? value - step : 0);
    return next < least ? least : next > most ? most : next;
}

int tl_threshold_grid(tl_family family, int i, uint32_t grid[TL_THRESHOLD_GRID])
{
    const uint32_t usual = tl_thresholds_usual(family).of[i];
    uint32_t below[TL_THRESHOLD_GRID], at = usual;
    int lower = 0, count = 0;
    while (at > table[i].least && lower < TL_THRESHOLD_GRID - 1) below[lower++] = at = next_to(i, at, false);
    while (lower > 0) grid[count++] = below[--lower];
    grid[count++] = at = usual;
    while (at < table[i].most && count < TL_THRESHOLD_GRID) grid[count++] = at = next_to(i, at, true);
    return count;
}
