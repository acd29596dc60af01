/* SPDX-License-Identifier: MIT
 * runs.c - statistics of repeated runs of a product. */
#include "program.h"
#include <stdlib.h>

static int by_total(const void *x, const void *y)
{
    double a = ((const tulle_stats *)x)->sec_total, b = ((const tulle_stats *)y)->sec_total;
    return (a > b) - (a < b);
}

double runs_median(tulle_stats *stats, int runs, tulle_stats *middle, double *best)
{
    qsort(stats, (size_t)runs, sizeof *stats, by_total);
    *middle = stats[runs / 2];
    *best = stats[0].sec_total;
    return runs % 2 ? middle->sec_total : 0.5 * (middle->sec_total + stats[runs / 2 - 1].sec_total);
}
