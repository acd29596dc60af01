/* SPDX-License-Identifier: MIT
 *
 * sizes.c - threads, shared memory and slots of each class of rows on this device, and so the rows that it
 * accepts.
 *
 * spECK halves the largest size repeatedly; here the small sizes are given by the policy (so that many
 * blocks are resident and part of the on-chip memory remains for the L1 cache), and the largest size is all
 * that a block can have.  On devices with less shared memory all sizes shrink together. */
#include "gpu/accumulators.h"
#include <string.h>

enum {
    STATIC_BYTES = 8192,                /* static shared memory of kernels, at most                  */
    GROUP_CPU = 8, GROUP_GPU = 32       /* without warps: a work group, which is one team            */
};

uint32_t tl_dynamic_bytes(const tl_caps *caps)
{
    return caps->shared_block > 4 * STATIC_BYTES ? caps->shared_block - STATIC_BYTES : caps->shared_block;
}

uint32_t tl_resident(const tl_caps *caps, uint32_t threads, uint32_t shared)
{
    uint32_t by_threads = caps->threads_processor / threads,
             by_shared = caps->shared_processor / (shared + 1024);
    uint32_t each = by_threads < by_shared ? by_threads : by_shared;
    if (each < 1) each = 1;
    if (each > 32) each = 32;
    return each * caps->processors;
}

/* Without warps one team per work group; else as requested. */
static uint32_t team_threads(const tl_caps *caps, uint32_t wanted)
{
    return caps->warp ? wanted : caps->cpu ? GROUP_CPU : GROUP_GPU;
}

static uint32_t block_threads(const tl_caps *caps, uint32_t wanted)
{
    return tl_least(wanted, caps->cpu ? 32 : caps->threads_block);
}

static tl_size make(const tl_caps *caps, tl_kernel_id kernel, uint32_t threads, uint32_t shared,
                    uint32_t slots, uint32_t team)
{
    return (tl_size){.kernel = kernel,
                     .threads = threads,
                     .shared = shared,
                     .slots = slots,
                     .team = team,
                     .teams = 1,
                     .resident = tl_resident(caps, threads, shared)};
}

/* Threads of a team that computes a row of C: as many as a row of B of average length has entries. */
static uint32_t team_of(const tl_caps *caps, uint64_t mean)
{
    if (!caps->warp) return team_threads(caps, 0);
    return mean <= 4 ? 4 : mean <= 8 ? 8 : mean <= 16 ? 16 : 32;
}

tl_size tl_size_teams(const tl_gpu *gpu, tl_kernel_id kernel, uint32_t threads, uint32_t team, uint64_t bytes,
                      uint32_t slots)
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

/* If accumulators are forced by name, disables the classes of the others. */
static void force(const tl_recipe *recipe, uint32_t *limits, int step)
{
    if (recipe->forced < 0 || recipe->few != TL_DIRECT)
        return; /* rows with more products: as in the policy */
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
    /* Kernels with a block per row: hash in the symbolic step, ranks in the numeric one. */
    for (int i = 0; i < BLOCK_SIZES; i++)
        if (hash == (step == 1)) limits[LIMIT_BLOCK + i] = 0;
}

/* ---- rows with few products, in registers */

/* Threads of a crew for each bin; a thread has FEW_MOST(bin) / crew products in registers, 2 to 16.  CUDA:
 * eight, as in the paper, as long as a warp suffices.  A CPU compiles a kernel for each size of a work
 * group, so only two sizes are used there. */
enum { CREW_CUDA, CREW_GPU, CREW_CPU };
static const uint8_t crews[][FEW_SIZES] = {
    [CREW_CUDA] = {1, 1, 1, 2, 4, 8, 16, 32, 32},
    [CREW_GPU]  = {1, 2, 4, 8, 16, 32, 32, 32, 32},
    [CREW_CPU]  = {8, 8, 8, 8, 8, 8, 32, 32, 32},
};

/* By accumulator: kernels for up to 8 words per thread, for more, and for words that do not fit 32 bits.
 * TL_DIRECT stands for the symbolic step. */
static const tl_kernel_id few_kernels[TL_ACCUMULATORS][3] = {
    [TL_DIRECT]    = {TL_K_REG_HASH_COUNT, TL_K_REG_HASH_COUNT, TL_K_REG_HASH_COUNT},
    [TL_REG_SORT]  = {TL_K_REG_SORT, TL_K_REG_SORT_LONG, TL_K_REG_SORT_WIDE},
    [TL_REG_MERGE] = {TL_K_REG_MERGE, TL_K_REG_MERGE_LONG, TL_K_NONE},
    [TL_REG_HASH]  = {TL_K_REG_HASH, TL_K_REG_HASH_LONG, TL_K_REG_HASH_WIDE},
};

tl_size tl_size_few(const tl_gpu *gpu, tl_accumulator few, tl_types types, int bin, uint64_t entries,
                    uint64_t mean, uint64_t span)
{
    const tl_caps *caps = &gpu->caps;
    const uint32_t products = FEW_MOST(bin), all = tl_dynamic_bytes(caps), table = FEW_SLOTS(products);
    const uint64_t key = (uint64_t)types.key / 8,
                   val = few == TL_DIRECT ? 0 : tl_type_size((tulle_type)types.val);
    const uint64_t spread =
        val + (uint64_t)types.ptr / 8 + 4; /* per row of B: factor, position, first product */
    uint32_t crew = crews[caps->warp ? CREW_CUDA : caps->cpu ? CREW_CPU : CREW_GPU][bin];
    uint32_t each = products <= 2 * crew ? 2 : products / crew;
    if (few == TL_REG_MERGE) {
        /* As few threads as possible with at most 32 rows of B each, and at most 8 on average. */
        uint32_t rows = tl_least(entries < 2 ? 2 : entries, products);
        crew = caps->cpu ? GROUP_CPU : 1;
        while (crew < 32 && (crew * 32 < rows || crew * 8 < tl_least(rows <= 32 ? rows : mean, rows)))
            crew *= caps->cpu ? 4 : 2;
        each = 1u << tl_log2_up((rows + crew - 1) / crew);
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
    s.bits = tl_log2_up(few == TL_REG_HASH ? table : products);
    bool narrow = few == TL_REG_MERGE || few == TL_DIRECT || (span > 0 && (span - 1) >> (32 - s.bits) == 0);
    s.kernel = few_kernels[few][!narrow ? 2 : each > 8 ? 1 : 0];
    return s;
}

/* Enables bins, one after the other, as long as they fit, for any widths of row pointers and lengths of rows
 * of A. */
void tl_size_few_bin(const tl_sizing *z, const tl_way *way, int bin)
{
    const tl_few *rows = &z->recipe->few_rows[z->step];
    const tl_accumulator few = z->step ? z->recipe->few : TL_DIRECT;
    uint32_t *limits = z->to->limits;
    tl_types types = z->types;
    types.ptr = 64;
    if (z->recipe->few == TL_DIRECT || FEW_MOST(bin) > rows->most) return;
    if (bin > 0 && limits[LIMIT_FEW] != FEW_MOST(bin - 1)) return; /* the previous bin did not fit */
    tl_size many = tl_size_few(z->gpu, few, types, bin, UINT64_MAX, UINT64_MAX, 1);
    tl_size some = tl_size_few(z->gpu, few, types, bin, UINT64_MAX, 0, 1); /* fewer threads */
    if (many.kernel == TL_K_NONE || some.kernel == TL_K_NONE) return;
    z->to->size[way->first + bin] = many;
    limits[LIMIT_FEW] = FEW_MOST(bin);
    limits[LIMIT_FEW_FIRST] = tl_least(rows->first, limits[LIMIT_FEW]);
}

/* ---- the other accumulators */

void tl_size_direct(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    z->to->size[way->first + i] =
        make(caps, way->kernel, caps->cpu ? GROUP_CPU : 128, 0, 0, caps->warp ? 8 : 1);
}

void tl_size_bits(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_gpu_step *step = z->policy;
    tl_size *s = &z->to->size[way->first + i];
    *s = tl_size_teams(z->gpu, way->kernel, step->bits_threads, team_of(&z->gpu->caps, 32), step->bits[i] / 8,
                       step->bits[i] / 32);
    if (s->kernel != TL_K_NONE) z->to->limits[way->limit + i] = step->bits[i];
}

void tl_size_ranks(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const tl_gpu_step *step = z->policy;
    tl_size *s = &z->to->size[way->first + i];
    uint32_t team = team_of(caps, z->mean), wide = i < 1 ? 8 : i < 2 ? 16 : 32; /* wider for longer rows */
    if (caps->warp && team < wide) team = wide;
    *s = tl_size_teams(z->gpu, way->kernel, step->bits_threads, team, step->bits[i], step->bits[i]);
    if (s->kernel != TL_K_NONE) z->to->limits[way->limit + i] = step->bits[i];
}

void tl_size_shared_rows(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const tl_gpu_step *step = z->policy;
    const uint32_t all = tl_dynamic_bytes(caps), key = (uint32_t)z->types.key / 8;
    uint32_t threads = team_threads(caps, step->rows_threads),
             teams = caps->warp ? threads / team_of(caps, z->mean) : 1;
    uint64_t one = SYMBOLIC_SLOTS((uint64_t)step->entries[i]), many = one * teams;
    uint32_t most = tl_least(all, one * key > 8192 ? one * key : 8192) / key, slots = tl_least(many, most);
    tl_size *s = &z->to->size[way->first + i];
    *s = make(caps, way->kernel, threads, slots * key, slots, 1);
    s->teams = teams;
    s->entry = key;
    z->to->limits[LIMIT_ROOM + i] = slots;
    z->to->limits[way->limit + i] = tl_least(step->entries[i], (uint64_t)(slots - 1) * 4 / 5);
}

/* The largest n with NUMERIC_SLOTS(n) <= slots. */
static uint32_t entries_in(uint64_t slots)
{
    return slots < 3 ? 0 : slots <= 257 ? (uint32_t)((slots - 1) / 2) : (uint32_t)((slots - 65) * 2 / 3);
}

static uint32_t value_bytes(const tl_sizing *z)
{
    return (uint32_t)tl_type_size((tulle_type)z->types.val);
}

void tl_size_sums_rows(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const tl_gpu_step *step = z->policy;
    const uint32_t all = tl_dynamic_bytes(caps), threads = team_threads(caps, step->rows_threads);
    uint32_t team = team_of(caps, z->mean), teams = 1;
    while (caps->warp && team < 32 && 16 * team < step->entries[i]) team *= 2;
    if (caps->warp) teams = threads / team;
    uint64_t one = NUMERIC_SLOTS((uint64_t)step->entries[i]),
             entry = value_bytes(z) + (uint32_t)z->types.key / 8;
    /* Most rows are shorter than the class allows, so slots can be fewer; but with two teams both should
     * have a row. */
    uint64_t many = one * teams * (teams <= 2 ? 8 : teams <= 4 ? 7 : 6) / 8;
    uint32_t slots = tl_least(many, (uint64_t)(all - 16) / entry);
    tl_size *s = &z->to->size[way->first + i];
    *s = make(caps, way->kernel, threads, (uint32_t)(slots * entry + 16) / 16 * 16, slots, 1);
    s->teams = teams;
    s->entry = (uint32_t)entry;
    z->to->limits[LIMIT_ROOM + i] = slots;
    z->to->limits[way->limit + i] = tl_least(step->entries[i], entries_in(slots));
}

static uint32_t block_bytes(const tl_sizing *z, int i)
{
    const uint32_t all = tl_dynamic_bytes(&z->gpu->caps), wanted = z->policy->block_bytes[i];
    return wanted ? tl_least(wanted, all) : all;
}

void tl_size_block(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t key = (uint32_t)z->types.key / 8, slots = block_bytes(z, i) / key / 4 * 4;
    z->to->size[way->first + i] =
        make(caps, way->kernel, block_threads(caps, z->policy->block_threads[i]), slots * key, slots, 1);
    z->to->limits[way->limit + i] = (uint32_t)((uint64_t)(slots - 1) * 4 / 5);
}

/* The largest block, with a map in global memory in addition. */
void tl_size_spill(const tl_sizing *z, const tl_way *way, int i)
{
    tl_size *s = &z->to->size[way->first + i];
    *s = z->to->size[CLASS_BLOCK + BLOCK_SIZES - 1];
    s->kernel = way->kernel;
    z->to->limits[way->limit + i] = s->slots < 4 * s->threads ? 0 : 2 * s->slots;
}

void tl_size_rank_block(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t bytes = block_bytes(z, i) / 16 * 16;
    z->to->size[way->first + i] =
        make(caps, way->kernel, block_threads(caps, z->policy->block_threads[i]), bytes, bytes, 1);
    z->to->limits[way->limit + i] = bytes;
}

void tl_size_hash(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t entry = value_bytes(z) + (uint32_t)z->types.key / 8,
                   slots = tl_dynamic_bytes(caps) / entry / 4 * 4;
    uint32_t most = entries_in(slots);
    while (most && tl_size_sort(z->gpu, z->types, most).kernel == TL_K_NONE) most -= most / 8 + 1;
    z->to->size[way->first + i] = make(caps, way->kernel, block_threads(caps, 1024), slots * entry, slots, 1);
    z->to->limits[way->limit + i] = most;
}

void tl_size_mask(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t words = tl_least(tl_dynamic_bytes(caps), z->policy->mask / 8) / 4;
    z->to->size[way->first + i] =
        make(caps, way->kernel, block_threads(caps, z->policy->mask_threads), words * 4, words, 1);
    z->to->limits[way->limit + i] = words * 32;
}

void tl_size_bits_windows(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t words = tl_dynamic_bytes(caps) / 4;
    z->to->size[way->first + i] = make(caps, way->kernel, block_threads(caps, 1024), words * 4, words, 1);
}

void tl_size_windows(const tl_sizing *z, const tl_way *way, int i)
{
    const tl_caps *caps = &z->gpu->caps;
    const uint32_t all = tl_dynamic_bytes(caps), val = value_bytes(z);
    uint32_t slots = (uint32_t)((uint64_t)all * 8 / (8 * val + 1)) / 32 * 32;
    while ((uint64_t)slots * val + slots / 8 > all) slots -= 32;
    z->to->size[way->first + i] =
        make(caps, way->kernel, block_threads(caps, 1024), slots * val + slots / 8, slots, 1);
}

void tl_sizes_make(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, uint64_t mean, int step,
                   tl_sizes *to)
{
    const tl_gpu_step *policy = step ? &recipe->policy->gpu->numeric : &recipe->policy->gpu->symbolic;
    const tl_sizing z = {gpu, recipe, policy, types, mean, step, to};
    memset(to, 0, sizeof *to);
    for (int i = 0; i < CLASSES; i++) to->size[i].kernel = TL_K_NONE;
    to->limits[LIMIT_DIRECT] = 1;
    to->limits[LIMIT_BITS_PER] = policy->bits_per;
    to->limits[LIMIT_BITS_MIN] = policy->bits_min;
    to->limits[LIMIT_BITS_MAX] = policy->bits_max;
    to->limits[LIMIT_DENSE_PER] = policy->dense_per;
    to->limits[LIMIT_ROWS_MAX] = policy->rows_max;
    to->limits[LIMIT_BLOCK_PER] = policy->block_per;
    if (step) to->limits[LIMIT_VALUE] = value_bytes(&z);
    for (const tl_way *way = tl_ways[step]; way < tl_ways[step] + TL_WAYS; way++)
        for (int i = 0; way->size && i < way->sizes; i++) way->size(&z, way, i);
    force(recipe, to->limits, step);
}

tl_size tl_size_sort(const tl_gpu *gpu, tl_types types, uint32_t room)
{
    const tl_caps *caps = &gpu->caps;
    uint32_t threads = block_threads(caps, room > 4096 ? 1024 : room > 1024 ? 512 : 256);
    room += room & 1;
    uint64_t bytes =
        (uint64_t)room * (2 * (uint64_t)types.key / 8 + 4) + (uint64_t)threads * (caps->warp ? 4 : 32);
    if (room > 65534 || bytes > tl_dynamic_bytes(caps)) return (tl_size){.kernel = TL_K_NONE};
    return make(caps, TL_K_SORT_ROWS, threads, (uint32_t)bytes, room, 1);
}
