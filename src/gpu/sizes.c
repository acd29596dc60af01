/* SPDX-License-Identifier: MIT
 *
 * sizes.c - what each class of rows gets on this device: threads, shared memory, slots; and so which rows it takes.
 *
 * spECK halves the largest size again and again; here the small sizes are given by the policy (so that many blocks
 * stay resident and part of the chip's memory serves as cache) and the largest is all that a block can
 * have.  Where a device has less, sizes shrink together. */
#include "gpu/engine.h"

enum {
    STATIC_BYTES = 8192,                /* of shared memory that kernels declare themselves, at most */
    GROUP_CPU = 8, GROUP_GPU = 32       /* a work group of one team, where there are no warps        */
};

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

uint32_t tl_dynamic_bytes(const tl_caps *caps)
{
    return caps->shared_block > 4 * STATIC_BYTES ? caps->shared_block - STATIC_BYTES : caps->shared_block;
}

uint32_t tl_resident(const tl_caps *caps, uint32_t threads, uint32_t shared)
{
    uint32_t by_threads = caps->threads_processor / threads, by_shared = caps->shared_processor / (shared + 1024);
    uint32_t each = by_threads < by_shared ? by_threads : by_shared;
    if (each < 1) each = 1;
    if (each > 32) each = 32;
    return each * caps->processors;
}

/* One team a work group without warps; else what was asked for. */
static uint32_t team_threads(const tl_caps *caps, uint32_t wanted)
{
    return caps->warp ? wanted : caps->cpu ? GROUP_CPU : GROUP_GPU;
}

static uint32_t block_threads(const tl_caps *caps, uint32_t wanted)
{
    return least(wanted, caps->cpu ? 32 : caps->threads_block);
}

static tl_size make(const tl_caps *caps, tl_kernel_id kernel, uint32_t threads, uint32_t shared, uint32_t slots,
                    uint32_t teams)
{
    return (tl_size){kernel, threads, shared, slots, teams, tl_resident(caps, threads, shared)};
}

/* Windows for a team each: words of `entry` bytes. */
static tl_size make_bits(const tl_caps *caps, tl_kernel_id kernel, uint64_t team_bytes, uint32_t slots)
{
    uint32_t bytes = tl_dynamic_bytes(caps);
    if (team_bytes > bytes) return (tl_size){.kernel = TL_K_NONE};
    uint32_t teams = caps->warp ? least(4, bytes / team_bytes) : 1;
    if (teams == 3) teams = 2;
    uint32_t threads = caps->warp ? teams * caps->warp : team_threads(caps, 0);
    return make(caps, kernel, threads, (uint32_t)team_bytes * teams, slots, teams);
}

/* Accumulators that were asked for by name close the classes of the others. */
static void force(const tl_recipe *recipe, uint32_t *limits)
{
    if (recipe->forced < 0) return;
    bool hash = recipe->forced == TL_HASH;
    for (int i = 0; i < 3; i++) {
        if (hash) limits[LIMIT_BITS + i] = 0;
        else limits[LIMIT_ROWS + i] = limits[LIMIT_BLOCK + i] = 0;
        if (!hash) limits[LIMIT_BITS_PER + i] = UINT32_MAX;
    }
    if (hash) limits[LIMIT_DENSE_PER] = 0;
    else limits[LIMIT_BITS_MIN] = limits[LIMIT_SPILL] = limits[LIMIT_DIRECT] = 0;
}

static const uint32_t block_threads_of[3] = {256, 512, 1024};

void tl_sizes_symbolic(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, tl_sizes *z)
{
    const tl_caps *caps = &gpu->caps;
    const tl_gpu_step *step = &recipe->policy->gpu->symbolic;
    const uint32_t all = tl_dynamic_bytes(caps), key = (uint32_t)types.key / 8;
    const uint32_t words[3] = {128, 512, 2048};
    *z = (tl_sizes){.limits = {[LIMIT_DIRECT] = 1, [LIMIT_BITS_MIN] = step->bits_min}};
    for (int i = 0; i < CLASSES; i++) z->size[i].kernel = TL_K_NONE;
    for (int i = 0; i < 3; i++) {
        tl_size *s = &z->size[CLASS_BITS + i];
        *s = make_bits(caps, TL_K_SYMBOLIC_DENSE_ROWS, (uint64_t)words[i] * 4, words[i]);
        if (s->kernel != TL_K_NONE) z->limits[LIMIT_BITS + i] = words[i] * 32;
        z->limits[LIMIT_BITS_PER + i] = step->bits_per[i];

        uint32_t slots = least(step->rows_bytes[i], all) / key;
        z->size[CLASS_ROWS + i] = make(caps, TL_K_SYMBOLIC_ROWS, team_threads(caps, step->rows_threads[i]), slots * key,
                                       slots, 1);
        z->limits[LIMIT_ROOM + i] = slots;
        z->limits[LIMIT_ROWS + i] = (uint32_t)((uint64_t)(slots - 1) * 4 / 5);

        slots = (step->block_bytes[i] ? least(step->block_bytes[i], all) : all) / key / 4 * 4;
        z->size[CLASS_BLOCK + i] = make(caps, TL_K_SYMBOLIC_BLOCK, block_threads(caps, block_threads_of[i]), slots * key,
                                        slots, 1);
        z->limits[LIMIT_BLOCK + i] = (uint32_t)((uint64_t)(slots - 1) * 4 / 5);
    }
    z->size[CLASS_SPILL] = z->size[CLASS_BLOCK + 2];
    z->size[CLASS_SPILL].kernel = TL_K_SYMBOLIC_SPILL;
    z->limits[LIMIT_SPILL] = 2 * z->size[CLASS_SPILL].slots;
    if (z->size[CLASS_SPILL].slots < 4 * z->size[CLASS_SPILL].threads) z->limits[LIMIT_SPILL] = 0;
    z->size[CLASS_DENSE] = make(caps, TL_K_SYMBOLIC_DENSE, block_threads(caps, 1024), all / 4 * 4, all / 4, 1);
    force(recipe, z->limits);
}

/* The most entries n for which NUMERIC_SLOTS(n) slots are there. */
static uint32_t entries_in(uint32_t slots)
{
    return slots < 3 ? 0 : (uint32_t)((uint64_t)(slots - 1) * 2 / 3);
}

void tl_sizes_numeric(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, tl_sizes *z)
{
    const tl_caps *caps = &gpu->caps;
    const tl_gpu_step *step = &recipe->policy->gpu->numeric;
    const uint32_t all = tl_dynamic_bytes(caps), key = (uint32_t)types.key / 8;
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)types.val);
    const uint32_t columns[3] = {512, 1024, 2048};
    *z = (tl_sizes){.limits = {[LIMIT_DIRECT] = 1, [LIMIT_BITS_MIN] = step->bits_min,
                               [LIMIT_DENSE_PER] = step->dense_per}};
    for (int i = 0; i < CLASSES; i++) z->size[i].kernel = TL_K_NONE;
    uint32_t team = caps->warp ? 8 : 1;
    z->size[CLASS_DIRECT] = make(caps, TL_K_DIRECT, caps->cpu ? 8 : 128, 0, team, (caps->cpu ? 8 : 128) / team);
    for (int i = 0; i < 3; i++) {
        tl_size *s = &z->size[CLASS_BITS + i];
        *s = make_bits(caps, TL_K_NUMERIC_DENSE_ROWS, (uint64_t)columns[i] * val + columns[i] / 8, columns[i]);
        if (s->kernel != TL_K_NONE) z->limits[LIMIT_BITS + i] = columns[i];
        z->limits[LIMIT_BITS_PER + i] = step->bits_per[i];

        /* values, keys, and keys to be sorted for two thirds of the slots */
        uint32_t bytes = least(step->rows_bytes[i], all), slots = (uint32_t)((uint64_t)(bytes - 16) * 3 / (3 * val + 5 * key));
        z->size[CLASS_ROWS + i] = make(caps, TL_K_NUMERIC_ROWS, team_threads(caps, step->rows_threads[i]), bytes, slots, 1);
        z->limits[LIMIT_ROOM + i] = slots;
        z->limits[LIMIT_ROWS + i] = least(entries_in(caps->warp ? slots / 2 : slots), 512);

        bytes = step->block_bytes[i] ? least(step->block_bytes[i], all) : all;
        slots = bytes / (val + key) / 4 * 4;
        z->size[CLASS_BLOCK + i] = make(caps, TL_K_NUMERIC_BLOCK, block_threads(caps, block_threads_of[i]),
                                        slots * (val + key), slots, 1);
        uint32_t most = entries_in(slots);
        while (most && tl_size_sort(gpu, types, most).kernel == TL_K_NONE) most -= most / 8 + 1;
        z->limits[LIMIT_BLOCK + i] = most;
    }
    uint32_t slots = (uint32_t)((uint64_t)all * 8 / (8 * val + 1)) / 32 * 32;
    while ((uint64_t)slots * val + slots / 8 > all) slots -= 32;
    z->size[CLASS_DENSE] = make(caps, TL_K_NUMERIC_DENSE, block_threads(caps, 1024), slots * val + slots / 8, slots, 1);
    force(recipe, z->limits);
}

tl_size tl_size_sort(const tl_gpu *gpu, tl_types types, uint32_t room)
{
    const tl_caps *caps = &gpu->caps;
    uint32_t threads = block_threads(caps, room > 4096 ? 1024 : room > 1024 ? 512 : 256);
    room += room & 1;
    uint64_t bytes = (uint64_t)room * (2 * (uint64_t)types.key / 8 + 4) + (uint64_t)threads * (caps->warp ? 4 : 32);
    if (room > 65534 || bytes > tl_dynamic_bytes(caps)) return (tl_size){.kernel = TL_K_NONE};
    return make(caps, TL_K_SORT_ROWS, threads, (uint32_t)bytes, room, 1);
}
