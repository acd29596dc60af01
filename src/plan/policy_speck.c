/* SPDX-License-Identifier: MIT
 *
 * policy_speck.c - the choice of spECK (Parger et al., PPoPP 2020) on a CPU.
 *
 * Rows with one entry are taken directly, rows whose window is narrow against their products go to the
 * dense accumulator, everything else is hashed.  spECK decides by the memory a hash map would
 * need in scratchpad; here the second-level cache plays that part.
 *
 * On a GPU the numbers below steer its two steps; where they differ from the paper's Table 2 they were measured again
 * on an H200 (docs/papers.md). */
#include "plan/plan.h"

const tl_gpu_steps tl_gpu_speck = {
    .symbolic = {
        .ratio = 1.5, .rows = 2000, .ratio_large = 1.3, .rows_large = 1000,
        .bits = {4096, 8192, 16384, 32768, 65536}, .bits_per = 96, .bits_min = 192, .bits_max = 65536,
        .entries = {32, 96, 256, 512, 1024}, .rows_threads = 64, .bits_threads = 128,
        .block_bytes = {16384, 49152, 0}, .block_threads = {128, 256, 1024},
        .mask = 131072, .mask_threads = 256, .rows_max = 12288,
    },
    .numeric = {
        .ratio = 1.5, .rows = 2000, .ratio_large = 1.3, .rows_large = 1000,
        .bits = {1536, 3072, 5120, 8192, 0}, .bits_per = 256, .bits_min = 16, .bits_max = 2048, .dense_per = 5,
        .entries = {32, 64, 128, 256, 512}, .rows_threads = 64, .bits_threads = 128,
        .block_bytes = {16384, 73728, 0}, .block_threads = {128, 512, 1024},
        .block_per = 512,
    },
};

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
    .gpu = &tl_gpu_speck,
};
