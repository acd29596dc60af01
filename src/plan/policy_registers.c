/* SPDX-License-Identifier: MIT
 *
 * policy_registers.c - the register-aware accumulators (Liu, He, Liu and Tan): three policies that differ in what takes
 * rows of at most 512 products, in nine bins; reg-hash counts those of all three.  Longer rows go where spECK's table
 * sends them.
 *
 * On a CPU, where registers are the compiler's, short rows are sorted or hashed. */
#include "plan/plan.h"

const tl_policy tl_policy_regsort = {
    .name = "regsort",
    .text = "register-aware: rows up to 512 products by a sorting network in registers",
    .rules = {{512, 0, TL_SORT}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &tl_gpu_speck,
    .few = TL_REG_SORT,
    .few_rows = {{512, 512}, {512, 512}},
};

const tl_policy tl_policy_regmerge = {
    .name = "regmerge",
    .text = "register-aware: rows up to 512 products by merging in registers",
    .rules = {{512, 0, TL_SORT}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &tl_gpu_speck,
    .few = TL_REG_MERGE,
    .few_rows = {{512, 512}, {512, 512}},
};

const tl_policy tl_policy_reghash = {
    .name = "reghash",
    .text = "register-aware: rows up to 512 products spread in registers, then hashed",
    .rules = {{512, 0, TL_HASH}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &tl_gpu_speck,
    .few = TL_REG_HASH,
    .few_rows = {{512, 512}, {512, 512}},
};
