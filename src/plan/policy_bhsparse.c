/* SPDX-License-Identifier: MIT
 *
 * policy_bhsparse.c - bhSPARSE (Liu and Vinter, IPDPS 2014): one step over upper bounds.
 *
 * Rows go to 38 bins by their products: none, one, 2 to 32 (a heap, one thread a row), up to 512 (bitonic ESC, a block a
 * row), beyond (merged row by row in a scratchpad that grows).  src/gpu/once.c is the road.
 *
 * On a CPU the nearest is to merge what is short and to sum up the rest in a dense window. */
#include "plan/plan.h"

const tl_policy tl_policy_bhsparse = {
    .name = "bhsparse",
    .text = "bhSPARSE: 38 bins by upper bound; heap, bitonic ESC and progressive merge, one step",
    .rules = {
        {512, 0, TL_SORT},
        {INT64_MAX, INT64_MAX, TL_DENSE},
    },
    .gpu = &tl_gpu_speck,
    .once = true,
};
