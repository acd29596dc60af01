/* SPDX-License-Identifier: MIT
 *
 * policy_delta.c - DeltaSPARSE (Yang, Zhang and Ma): a hybrid accumulator.  Rows are hashed with collision
 * detection, in tables with a load factor of at most one half; the dense array is used for rows that are
 * long, whose keys collide, or that have more than 7.6% of the columns.  The numbers are those of its Tables
 * I and II.
 *
 * count_most is not from the paper, which determined its threshold by measurements but does not give it; ours
 * is not measured yet.  Whether rows are sorted into bins (its local scheduling) is decided by a tree that
 * `tulle tune --policy delta` writes (tree.h); src/gpu/delta.c has the stages.
 *
 * On a CPU the closest equivalent is to hash rows that are short and less dense, and to use the dense
 * accumulator for the others. */
#include "plan/plan.h"

static const tl_delta numbers = {
    .bin = {
        {{32, 64, 32}, {128, 256, 64}, {256, 512, 128}, {512, 1024, 256}, {1024, 2048, 512}},
        {{128, 256, 64}, {256, 512, 128}, {512, 1024, 256}, {1024, 2048, 512}, {2048, 4096, 1024}},
    },
    .dense_threads = 1024,
    .count_most = 512,
    .density = 0.076,
};

/* These thresholds are used if an accumulator is forced by name. */
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

const tl_policy tl_policy_delta = {
    .name = "delta",
    .text = "DeltaSPARSE: hash with collision detection, dense where that fails or rows are dense",
    .rules = {
        {32, 421, TL_HASH},             /* hash if less than 7.6% of the columns of the window occur */
        {128, 1684, TL_HASH},
        {512, 6736, TL_HASH},
        {2048, 26947, TL_HASH},
        {INT64_MAX, INT64_MAX, TL_DENSE},
    },
    .gpu = &steps,
    .delta = &numbers,
};
