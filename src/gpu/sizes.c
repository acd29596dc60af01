/* SPDX-License-Identifier: MIT
 *
 * sizes.c - what each class of rows gets on this device: threads, shared memory, slots; and so which rows it takes.
 *
 * spECK halves the largest size again and again; here the small sizes are given by the policy (so that many blocks
 * stay resident and part of the chip's memory serves as cache) and the largest is all that a block can
 * have.  Where a device has less, sizes shrink together. */
#include "gpu/engine.h"
#include <string.h>

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
                    uint32_t team)
{
    return (tl_size){.kernel = kernel, .threads = threads, .shared = shared, .slots = slots, .team = team, .teams = 1,
                     .resident = tl_resident(caps, threads, shared)};
}

/* Threads for a row of B of average length, where a team owns a row of C. */
static uint32_t team_of(const tl_caps *caps, uint64_t mean)
{
    if (!caps->warp) return team_threads(caps, 0);
    return mean <= 4 ? 4 : mean <= 8 ? 8 : mean <= 16 ? 16 : 32;
}

tl_size tl_size_teams(const tl_gpu *gpu, tl_kernel_id kernel, uint32_t threads, uint32_t team, uint64_t bytes, uint32_t slots)
{
    const tl_caps *caps = &gpu->caps;
    uint32_t all = tl_dynamic_bytes(caps);
    if (!caps->warp) threads = team;
    if (bytes > all) return (tl_size){.kernel = TL_K_NONE};
    uint32_t most = all < 49152 ? all : 49152;
    while (threads > 32 && threads > team && threads / team * bytes > most) threads /= 2;
    while (team < threads && threads / team * bytes > all) team *= 2;
    return make(caps, kernel, threads, (uint32_t)bytes * (threads / team), slots, team);
}

void tl_size_rows(const tl_gpu *gpu, tl_size *s, uint64_t slots)
{
    s->slots = (uint32_t)(slots < 4 ? 4 : slots);
    s->shared = (s->slots * s->entry + 31) / 16 * 16;
    s->resident = tl_resident(&gpu->caps, s->threads, s->shared);
}

/* Accumulators that were asked for by name close the classes of the others. */
static void force(const tl_recipe *recipe, uint32_t *limits, int step)
{
    if (recipe->forced < 0 || recipe->few != TL_DIRECT) return;     /* more products than few: as the policy has it */
    bool hash = recipe->forced == TL_HASH;
    if (hash) {
        for (int i = 0; i < BITS_SIZES; i++) limits[LIMIT_BITS + i] = 0;
        limits[LIMIT_MASK] = limits[LIMIT_DENSE_PER] = 0;
        limits[LIMIT_ROWS_MAX] = UINT32_MAX;
    } else {
        for (int i = 0; i < ROWS_SIZES; i++) limits[LIMIT_ROWS + i] = 0;
        limits[LIMIT_BITS_PER] = limits[LIMIT_BITS_MAX] = limits[LIMIT_BLOCK_PER] = UINT32_MAX;
        limits[LIMIT_BITS_MIN] = limits[LIMIT_HASH] = limits[LIMIT_DIRECT] = 0;
    }
    /* Blocks a row hash in the symbolic step and rank in the numeric one. */
    for (int i = 0; i < BLOCK_SIZES; i++)
        if (hash == (step == 1)) limits[LIMIT_BLOCK + i] = 0;
}

/* ---- rows of few products, in registers */

static uint32_t log2_up(uint64_t n)
{
    uint32_t log2 = 0;
    while ((uint64_t)1 << log2 < n) log2++;
    return log2;
}

/* Threads of a crew for each bin; each has FEW_MOST(bin) / crew products in registers, from 2 to 16.  CUDA: eight, as the
 * paper has it, while a warp does.  A CPU compiles a kernel for each size of a group: two will do. */
enum { CREW_CUDA, CREW_GPU, CREW_CPU };
static const uint8_t crews[][FEW_SIZES] = {
    [CREW_CUDA] = {1, 1, 1, 2, 4, 8, 16, 32, 32},
    [CREW_GPU]  = {1, 2, 4, 8, 16, 32, 32, 32, 32},
    [CREW_CPU]  = {8, 8, 8, 8, 8, 8, 32, 32, 32},
};

/* By accumulator: up to 8 words a thread, more, words that do not fit 32 bits.  TL_DIRECT stands for the symbolic step. */
static const tl_kernel_id few_kernels[TL_ACCUMULATORS][3] = {
    [TL_DIRECT]    = {TL_K_REG_HASH_COUNT, TL_K_REG_HASH_COUNT, TL_K_REG_HASH_COUNT},
    [TL_REG_SORT]  = {TL_K_REG_SORT, TL_K_REG_SORT_LONG, TL_K_REG_SORT_WIDE},
    [TL_REG_MERGE] = {TL_K_REG_MERGE, TL_K_REG_MERGE_LONG, TL_K_NONE},
    [TL_REG_HASH]  = {TL_K_REG_HASH, TL_K_REG_HASH_LONG, TL_K_REG_HASH_WIDE},
};

tl_size tl_size_few(const tl_gpu *gpu, tl_accumulator few, tl_types types, int bin, uint64_t entries, uint64_t mean,
                    uint64_t span)
{
    const tl_caps *caps = &gpu->caps;
    const uint32_t products = FEW_MOST(bin), all = tl_dynamic_bytes(caps), table = FEW_SLOTS(products);
    const uint64_t key = (uint64_t)types.key / 8, val = few == TL_DIRECT ? 0 : tl_type_size((tulle_type)types.val);
    const uint64_t spread = val + (uint64_t)types.ptr / 8 + 4;      /* for a row of B: factor, where it is, its first product */
    uint32_t crew = crews[caps->warp ? CREW_CUDA : caps->cpu ? CREW_CPU : CREW_GPU][bin];
    uint32_t each = products <= 2 * crew ? 2 : products / crew;
    if (few == TL_REG_MERGE) {
        /* As few threads as can hold all rows of B, 32 each, but 8 each on average; no more than 8 where four do. */
        uint32_t rows = least(entries < 2 ? 2 : entries, products);
        crew = caps->cpu ? GROUP_CPU : 1;
        while (crew < 32 && (crew * 32 < rows || crew * 8 < least(rows <= 32 ? rows : mean, rows))) crew *= caps->cpu ? 4 : 2;
        each = 1u << log2_up((rows + crew - 1) / crew);
        if (each < 2) each = 2;
    }
    uint32_t wide = caps->warp ? 32 : crew, threads = caps->warp ? 128 : crew, tables = wide / crew;
    uint64_t slab = (uint64_t)each * (wide + 1) * spread, hashed = (uint64_t)table * tables * (val + key);
    if ((few == TL_REG_HASH || few == TL_DIRECT) && hashed > slab) slab = hashed;
    slab = (slab + 15) / 16 * 16;
    if (slab > all) return (tl_size){.kernel = TL_K_NONE};
    uint32_t most = all < 49152 ? all : 49152;
    while (threads > wide && threads / wide * slab > most) threads /= 2;
    tl_size s = make(caps, TL_K_NONE, threads, (uint32_t)(threads / wide * slab), table, crew);
    s.entry = each;
    s.slab = (uint32_t)(slab / 8);
    s.bits = log2_up(few == TL_REG_HASH ? table : products);
    bool narrow = few == TL_REG_MERGE || few == TL_DIRECT || (span > 0 && (span - 1) >> (32 - s.bits) == 0);
    s.kernel = few_kernels[few][!narrow ? 2 : each > 8 ? 1 : 0];
    return s;
}

/* Bins while they fit; whatever widths row pointers and rows of A will turn out to have. */
static void few_classes(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, bool numeric, tl_sizes *z)
{
    const tl_few *rows = &recipe->few_rows[numeric];
    types.ptr = 64;
    for (int bin = 0; bin < FEW_SIZES && recipe->few != TL_DIRECT && FEW_MOST(bin) <= rows->most; bin++) {
        tl_accumulator few = numeric ? recipe->few : TL_DIRECT;
        tl_size many = tl_size_few(gpu, few, types, bin, UINT64_MAX, UINT64_MAX, 1);
        tl_size some = tl_size_few(gpu, few, types, bin, UINT64_MAX, 0, 1);     /* fewer threads, more for each */
        if (many.kernel == TL_K_NONE || some.kernel == TL_K_NONE) break;
        z->size[CLASS_FEW + bin] = many;
        z->limits[LIMIT_FEW] = FEW_MOST(bin);
    }
    z->limits[LIMIT_FEW_FIRST] = least(rows->first, z->limits[LIMIT_FEW]);
}

static void common_limits(const tl_gpu_step *step, uint32_t *limits)
{
    limits[LIMIT_DIRECT] = 1;
    limits[LIMIT_BITS_PER] = step->bits_per;
    limits[LIMIT_BITS_MIN] = step->bits_min;
    limits[LIMIT_BITS_MAX] = step->bits_max;
    limits[LIMIT_DENSE_PER] = step->dense_per;
    limits[LIMIT_ROWS_MAX] = step->rows_max;
    limits[LIMIT_BLOCK_PER] = step->block_per;
}

void tl_sizes_symbolic(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, uint64_t mean, tl_sizes *z)
{
    const tl_caps *caps = &gpu->caps;
    const tl_gpu_step *step = &recipe->policy->gpu->symbolic;
    const uint32_t all = tl_dynamic_bytes(caps), key = (uint32_t)types.key / 8;
    memset(z, 0, sizeof *z);
    for (int i = 0; i < CLASSES; i++) z->size[i].kernel = TL_K_NONE;
    common_limits(step, z->limits);
    for (int i = 0; i < BITS_SIZES; i++) {
        tl_size *s = &z->size[CLASS_BITS + i];
        *s = tl_size_teams(gpu, TL_K_SYMBOLIC_DENSE_ROWS, step->bits_threads, team_of(caps, 32), step->bits[i] / 8,
                           step->bits[i] / 32);
        if (s->kernel != TL_K_NONE) z->limits[LIMIT_BITS + i] = step->bits[i];
    }
    uint32_t threads = team_threads(caps, step->rows_threads), teams = caps->warp ? threads / team_of(caps, mean) : 1;
    for (int i = 0; i < ROWS_SIZES; i++) {
        uint64_t one = SYMBOLIC_SLOTS((uint64_t)step->entries[i]), many = one * teams;
        uint32_t most = least(all, one * key > 8192 ? one * key : 8192) / key, slots = least(many, most);
        z->size[CLASS_ROWS + i] = make(caps, TL_K_SYMBOLIC_ROWS, threads, slots * key, slots, 1);
        z->size[CLASS_ROWS + i].teams = teams;
        z->size[CLASS_ROWS + i].entry = key;
        z->limits[LIMIT_ROOM + i] = slots;
        z->limits[LIMIT_ROWS + i] = least(step->entries[i], (uint64_t)(slots - 1) * 4 / 5);
    }
    for (int i = 0; i < BLOCK_SIZES; i++) {
        uint32_t slots = (step->block_bytes[i] ? least(step->block_bytes[i], all) : all) / key / 4 * 4;
        z->size[CLASS_BLOCK + i] = make(caps, TL_K_SYMBOLIC_BLOCK, block_threads(caps, step->block_threads[i]), slots * key,
                                        slots, 1);
        z->limits[LIMIT_BLOCK + i] = (uint32_t)((uint64_t)(slots - 1) * 4 / 5);
    }
    tl_size *spill = &z->size[CLASS_HASH];
    *spill = z->size[CLASS_BLOCK + BLOCK_SIZES - 1];
    spill->kernel = TL_K_SYMBOLIC_SPILL;
    z->limits[LIMIT_HASH] = spill->slots < 4 * spill->threads ? 0 : 2 * spill->slots;
    z->size[CLASS_MASK] = make(caps, TL_K_SYMBOLIC_DENSE, block_threads(caps, step->mask_threads), least(all, step->mask / 8) / 4 * 4,
                               least(all, step->mask / 8) / 4, 1);
    z->limits[LIMIT_MASK] = z->size[CLASS_MASK].slots * 32;
    z->size[CLASS_DENSE] = make(caps, TL_K_SYMBOLIC_DENSE, block_threads(caps, 1024), all / 4 * 4, all / 4, 1);
    force(recipe, z->limits, 0);
    few_classes(gpu, recipe, types, false, z);
}

/* The most entries n for which NUMERIC_SLOTS(n) slots are there. */
static uint32_t entries_in(uint64_t slots)
{
    return slots < 3 ? 0 : slots <= 257 ? (uint32_t)((slots - 1) / 2) : (uint32_t)((slots - 65) * 2 / 3);
}

void tl_sizes_numeric(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, uint64_t mean, tl_sizes *z)
{
    const tl_caps *caps = &gpu->caps;
    const tl_gpu_step *step = &recipe->policy->gpu->numeric;
    const uint32_t all = tl_dynamic_bytes(caps), key = (uint32_t)types.key / 8;
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)types.val);
    memset(z, 0, sizeof *z);
    for (int i = 0; i < CLASSES; i++) z->size[i].kernel = TL_K_NONE;
    common_limits(step, z->limits);
    z->limits[LIMIT_VALUE] = val;
    z->size[CLASS_DIRECT] = make(caps, TL_K_DIRECT, caps->cpu ? GROUP_CPU : 128, 0, 0, caps->warp ? 8 : 1);
    for (int i = 0; i < BITS_SIZES; i++) {
        tl_size *s = &z->size[CLASS_BITS + i];
        uint32_t team = team_of(caps, mean), wide = i < 1 ? 8 : i < 2 ? 16 : 32;      /* longer rows, wider teams */
        if (caps->warp && team < wide) team = wide;
        *s = tl_size_teams(gpu, TL_K_NUMERIC_RANK, step->bits_threads, team, step->bits[i], step->bits[i]);
        if (s->kernel != TL_K_NONE) z->limits[LIMIT_BITS + i] = step->bits[i];
    }
    uint32_t threads = team_threads(caps, step->rows_threads);
    for (int i = 0; i < ROWS_SIZES; i++) {
        uint32_t team = team_of(caps, mean), teams = 1;
        while (caps->warp && team < 32 && 16 * team < step->entries[i]) team *= 2;
        if (caps->warp) teams = threads / team;
        uint64_t one = NUMERIC_SLOTS((uint64_t)step->entries[i]), entry = val + key;
        /* Not every row is as long as the class allows; but of two teams none should be without a row. */
        uint64_t many = one * teams * (teams <= 2 ? 8 : teams <= 4 ? 7 : 6) / 8;
        uint32_t slots = least(many, (uint64_t)(all - 16) / entry);
        z->size[CLASS_ROWS + i] = make(caps, TL_K_NUMERIC_ROWS, threads, (uint32_t)(slots * entry + 16) / 16 * 16, slots, 1);
        z->size[CLASS_ROWS + i].teams = teams;
        z->size[CLASS_ROWS + i].entry = (uint32_t)entry;
        z->limits[LIMIT_ROOM + i] = slots;
        z->limits[LIMIT_ROWS + i] = least(step->entries[i], entries_in(slots));
    }
    for (int i = 0; i < BLOCK_SIZES; i++) {
        uint32_t bytes = (step->block_bytes[i] ? least(step->block_bytes[i], all) : all) / 16 * 16;
        z->size[CLASS_BLOCK + i] = make(caps, TL_K_NUMERIC_RANK_BLOCK, block_threads(caps, step->block_threads[i]), bytes, bytes, 1);
        z->limits[LIMIT_BLOCK + i] = bytes;
    }
    uint32_t slots = all / (val + key) / 4 * 4, most = entries_in(slots);
    while (most && tl_size_sort(gpu, types, most).kernel == TL_K_NONE) most -= most / 8 + 1;
    z->size[CLASS_HASH] = make(caps, TL_K_NUMERIC_BLOCK, block_threads(caps, 1024), slots * (val + key), slots, 1);
    z->limits[LIMIT_HASH] = most;
    slots = (uint32_t)((uint64_t)all * 8 / (8 * val + 1)) / 32 * 32;
    while ((uint64_t)slots * val + slots / 8 > all) slots -= 32;
    z->size[CLASS_DENSE] = make(caps, TL_K_NUMERIC_DENSE, block_threads(caps, 1024), slots * val + slots / 8, slots, 1);
    force(recipe, z->limits, 1);
    few_classes(gpu, recipe, types, true, z);
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
