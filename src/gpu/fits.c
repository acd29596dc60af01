/* SPDX-License-Identifier: MIT
 *
 * fits.c - blocks, shared and global memory for the rows of a class, after the number of rows and the needs
 * of the largest are known.  The sizes of a class (sizes.c) are those of the largest rows that it accepts;
 * if all its rows are smaller, less shared memory lets more blocks run on a multiprocessor. */
#include "gpu/accumulators.h"

uint32_t tl_positions(const tl_product *p)
{
    return (uint32_t)((p->note[0][SUM_MAX_ENTRIES] + 127) / 128 * 128);
}

int tl_key_bits(const tl_product *p)
{
    return p->note[0][SUM_MAX_SPAN] < UINT32_MAX ? 32 : 64;
}

uint64_t tl_measure_all(const tl_product *p, int step, tl_measure by)
{
    const uint64_t need = step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_NEED],
                   span = p->note[0][SUM_MAX_SPAN];
    if (by == TL_BY_NEED) return need;
    if (by == TL_BY_PRODUCTS) return p->note[0][SUM_MAX_PRODUCTS];
    return by == TL_BY_BYTES ? RANK_BYTES(span, need, p->sizes[step].limits[LIMIT_VALUE]) : span;
}

void tl_fit_direct(const tl_product *p, tl_job *j)
{
    (void)p;
    j->blocks = ((uint64_t)j->rows * j->size.team + j->size.threads - 1) / j->size.threads;
}

/* The bytes per team that the widest row needs; slots are words (symbolic) or bytes (numeric). */
void tl_fit_teams(const tl_product *p, tl_job *j)
{
    const tl_size *s = &j->size;
    const uint64_t exact = j->step ? (j->most + 15) / 16 * 16 : (j->most + 63) / 64 * 2,
                   bytes = j->step ? exact : exact * 4;
    if (exact < s->slots)
        j->size = tl_size_teams(p->gpu, s->kernel, s->threads, s->team, bytes, (uint32_t)exact);
    const uint64_t teams = j->size.threads / j->size.team;
    j->blocks = (j->rows + teams - 1) / teams;
}

/* If short rows were not merged: one row per team, with slots for these rows.  Otherwise `blocks` is an upper
 * bound, as the kernel reads the number of groups of rows on the device. */
void tl_fit_shared_rows(const tl_product *p, tl_job *j)
{
    const uint64_t most = tl_measure_all(p, j->step, TL_BY_NEED);
    const uint64_t need = j->step ? NUMERIC_SLOTS(most) : SYMBOLIC_SLOTS(most);
    const uint32_t room = tl_dynamic_bytes(&p->gpu->caps) - 64, rows = j->rows;
    tl_size *s = &j->size;
    j->per = 1;
    if (p->work[j->step].balanced) {
        uint64_t products = p->note[j->step][SUM_CLASS + j->c];
        uint64_t slots = j->step ? (uint64_t)rows * NUMERIC_SLOTS(j->most) : products + products / 4 + rows;
        uint64_t guess = rows / 16 + 2 * slots / s->slots + 64;
        j->blocks = guess < rows ? guess : rows;
        return;
    }
    uint64_t fit = need ? s->slots / need : 32;
    j->per = (uint32_t)(fit < s->teams ? s->teams : fit > 32 ? 32 : fit / s->teams * s->teams);
    while (j->per > 1 && need * j->per * s->entry > (j->per > s->teams / 2 ? 24576 : room)) j->per /= 2;
    /* filling the device with blocks is more important than full blocks */
    while (j->per > 1 && (rows + j->per - 1) / j->per < s->resident) j->per /= 2;
    tl_size_rows(p->gpu, s, need * j->per);
    j->blocks = (rows + j->per - 1) / j->per;
}

void tl_fit_block(const tl_product *p, tl_job *j)
{
    (void)p;
    j->blocks = j->rows;
}

void tl_fit_rank_block(const tl_product *p, tl_job *j)
{
    (void)p;
    j->blocks = j->rows;
    if (j->most < j->size.shared) j->size.shared = (uint32_t)(j->most + 15) / 16 * 16;
}

void tl_fit_spill(const tl_product *p, tl_job *j)
{
    uint64_t need = p->note[0][SUM_MAX_NEED];
    if (need > p->sizes[0].limits[LIMIT_HASH]) need = p->sizes[0].limits[LIMIT_HASH];
    j->blocks = j->rows < j->size.resident ? j->rows : j->size.resident;
    j->map_slots = need + need / 2 + 128;
    j->bytes = j->blocks * j->map_slots * (uint64_t)(tl_key_bits(p) / 8);
}

/* A window not wider than the widest row; slots are words of the bitmask (symbolic) or columns (numeric). */
void tl_fit_windows(const tl_product *p, tl_job *j)
{
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)p->types.val), rows = j->rows;
    const uint32_t most = j->step ? j->size.slots : j->size.slots * 32;
    const uint64_t columns = (j->most + 127) / 128 * 128;
    j->window = columns < most ? (uint32_t)columns : most;
    j->size.shared = j->step ? j->window * val + j->window / 8 : j->window / 32 * 4;
    const uint32_t resident = tl_resident(&p->gpu->caps, j->size.threads, j->size.shared);
    const bool windows = j->most > j->window;
    j->blocks =
        rows < resident || (!j->step && !windows) ? rows : resident; /* no per-block memory is needed */
    j->stride = windows ? tl_positions(p) : 0;
    j->bytes = j->blocks * j->stride * 4;
}

void tl_fit_crews(const tl_product *p, tl_job *j)
{
    const uint64_t crews = j->size.threads / j->size.team;
    (void)p;
    j->blocks = (j->rows + crews - 1) / crews;
}

void tl_fit_sort(const tl_product *p, tl_job *j)
{
    tl_types types = p->types;
    uint32_t room = p->sizes[1].limits[LIMIT_HASH];
    types.key = tl_key_bits(p);
    if (p->note[1][SUM_MAX_NNZ] < room) room = (uint32_t)p->note[1][SUM_MAX_NNZ];
    j->size = tl_size_sort(p->gpu, types, room);
    j->blocks = j->rows;
}

/* Kernels and sizes for rows with few products, after types, spans and rows of A are known. */
void tl_again_few(tl_product *p, const tl_way *way, int step, tl_types types)
{
    const tl_accumulator few = p->request.recipe->few;
    const uint64_t span = types.key == 32 ? p->note[0][SUM_MAX_SPAN] : UINT64_MAX;
    for (int bin = 0; bin < way->sizes && few != TL_DIRECT; bin++) {
        if (FEW_MOST(bin) > p->sizes[step].limits[LIMIT_FEW]) continue;
        p->sizes[step].size[way->first + bin] =
            tl_size_few(p->gpu, step ? few : TL_DIRECT, types, bin, p->note[0][SUM_MAX_ENTRIES],
                        p->rows ? (uint64_t)p->a_nnz / p->rows : 0, span);
    }
}
