/* SPDX-License-Identifier: MIT
 *
 * policy_registers.c - the register-aware accumulators (Liu, He, Liu and Tan): three policies that differ in
 * the accumulator for rows with at most 512 products, in nine bins; the symbolic step is reg-hash for all
 * three.  For longer rows the numbers of spECK are used.
 *
 * On a CPU, where the compiler allocates registers, short rows are sorted or hashed. */
#include "plan/plan.h"

/* For rows with more than 512 products: those of spECK, as in the paper. */
static const tl_gpu_steps steps = {
    .symbolic =
        {
            .ratio = 1.5,
            .rows = 2000,
            .ratio_large = 1.3,
            .rows_large = 1000,
            .bits = {4096, 8192, 16384, 32768, 65536},
            .bits_per = 96,
            .bits_min = 192,
            .bits_max = 65536,
            .entries = {32, 96, 256, 512, 1024},
            .rows_threads = 64,
            .bits_threads = 128,
            .block_bytes = {16384, 49152, 0},
            .block_threads = {128, 256, 1024},
            .mask = 131072,
            .mask_threads = 256,
            .rows_max = 12288,
        },
    .numeric =
        {
            .ratio = 1.5,
            .rows = 2000,
            .ratio_large = 1.3,
            .rows_large = 1000,
            .bits = {1536, 3072, 5120, 8192, 0},
            .bits_per = 256,
            .bits_min = 16,
            .bits_max = 2048,
            .dense_per = 5,
            .entries = {32, 64, 128, 256, 512},
            .rows_threads = 64,
            .bits_threads = 128,
            .block_bytes = {16384, 73728, 0},
            .block_threads = {128, 512, 1024},
            .block_per = 512,
        },
};

const tl_policy tl_policy_regsort = {
    .name = "regsort",
    .text = "register-aware: rows up to 512 products by a sorting network in registers",
    .rules = {{512, 0, TL_SORT}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &steps,
    .few = TL_REG_SORT,
    .few_rows = {{512, 512}, {512, 512}},
};

const tl_policy tl_policy_regmerge = {
    .name = "regmerge",
    .text = "register-aware: rows up to 512 products by merging in registers",
    .rules = {{512, 0, TL_SORT}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &steps,
    .few = TL_REG_MERGE,
    .few_rows = {{512, 512}, {512, 512}},
};

const tl_policy tl_policy_reghash = {
    .name = "reghash",
    .text = "register-aware: rows up to 512 products spread in registers, then hashed",
    .rules = {{512, 0, TL_HASH}, {4096, 2 << 20, TL_HASH}, {INT64_MAX, INT64_MAX, TL_DENSE}},
    .gpu = &steps,
    .few = TL_REG_HASH,
    .few_rows = {{512, 512}, {512, 512}},
};
