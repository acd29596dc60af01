/* SPDX-License-Identifier: MIT
 *
 * policy_auto.c - tulle's own policy.
 *
 * The dense accumulator is fastest while its window fits in a cache, and the more products a row has, the
 * wider a window is worth scanning.  Short rows scattered over a wide window are merged, medium ones are
 * hashed.  Spans are in columns: 4 K doubles fill a first-level cache, 64 K a second-level one.
 *
 * On a GPU the choice is that of spECK's table, except that rows with at most 128 products are sorted in
 * registers, which takes a half to a third of the time of hashing, and also rows with up to 512 products
 * that are too scattered for ranks (docs/papers.md). */
#include "plan/plan.h"

/* Initially those of spECK, measured on an H200; results for `auto` alone are changed only here. */
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

const tl_policy tl_policy_auto = {
    .name = "auto",
    .text = "dense windows sized by work, merges for short scattered rows, equal rows together",
    .alike = true,
    .rules = {
        {64, 16 << 10, TL_SORT},
        {256, 256 << 10, TL_SORT},
        {4096, 2 << 20, TL_HASH},
        {INT64_MAX, INT64_MAX, TL_DENSE},
    },
    .gpu = &steps,
    .few = TL_REG_SORT,
    .few_rows = {{128, 128}, {128, 512}},
};
