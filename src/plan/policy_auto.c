/* SPDX-License-Identifier: MIT
 *
 * policy_auto.c - tulle's own policy.
 *
 * A dense window wins while its value slots stay in the cache that the row's products can pay for:
 * the more products a row has, the wider the window it may sweep.  Short rows scattered over a wide
 * window are merged; middling ones are hashed.  Spans are in columns: 4 K doubles fill a first-level
 * cache, 64 K a second-level one.
 *
 * On a GPU it is spECK's table, but rows of at most 128 products are sorted in registers, which takes a half to a
 * third of the time of hashing them, and up to 512 where they are too scattered to be ranked (docs/papers.md). */
#include "plan/plan.h"

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
    .gpu = &tl_gpu_speck,
    .few = TL_REG_SORT,
    .few_rows = {{128, 128}, {128, 512}},
};
