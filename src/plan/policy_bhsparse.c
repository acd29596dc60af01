/* SPDX-License-Identifier: MIT
 *
 * policy_bhsparse.c - bhSPARSE (Liu and Vinter, IPDPS 2014): a single step, based on upper bounds.
 *
 * Rows are sorted into 38 bins by their products: none, one, 2 to 32 (heap, a thread per row), up to 512
 * (bitonic ESC, a block per row), more (merge, in a result that grows).  src/gpu/once.c has the stages.
 *
 * On a CPU the closest equivalent is to merge short rows, and to use the dense accumulator for the others. */
#include "plan/plan.h"

/* Not used by the single step, but by plans, which are created in two steps (and report "bhsparse, in two
 * steps"). */
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

const tl_policy tl_policy_bhsparse = {
    .name = "bhsparse",
    .text = "bhSPARSE: 38 bins by upper bound; heap, bitonic ESC and progressive merge, one step",
    .rules = {
        {512, 0, TL_SORT},
        {INT64_MAX, INT64_MAX, TL_DENSE},
    },
    .gpu = &steps,
    .once = true,
};
