/* SPDX-License-Identifier: MIT
 *
 * policy_speck.c - the choice of spECK (Parger et al., PPoPP 2020) on a CPU.
 *
 * Rows with one entry are taken directly, rows whose window is narrow against their products go to the
 * dense accumulator, everything else is hashed.  spECK decides by the memory a hash map would
 * need in scratchpad; here the second-level cache plays that part. */
#include "plan/plan.h"

const tl_policy tl_policy_speck = {
    .name = "speck",
    .text = "spECK's choice: direct, hash while the map fits the cache, dense beyond",
    .alike = false,
    .rules = {
        {256, 512, TL_HASH},
        {1024, 2048, TL_HASH},
        {4096, 8192, TL_HASH},
        {16384, 32768, TL_HASH},
        {INT64_MAX, INT64_MAX, TL_DENSE},
    },
};
