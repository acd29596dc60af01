/* SPDX-License-Identifier: MIT
 *
 * split.c - if there are so few rows with so many products that one block per row would leave most of the
 * device idle, each row is shared by many blocks (split.cl).  If there are enough such rows, one block per
 * row is faster, since sums stay in shared memory.
 *
 * Memory: two words for each 32 columns of the widest row, for each row. */
#include "gpu/accumulators.h"

enum {
    HEAVIEST = 1 << 16,                 /* products of the heaviest row, at least, as it takes longest */
    HEAVY = 1 << 11,                    /* products of a row of the class on average, at least         */
    BYTES_MOST = 64 << 20
};

static uint64_t words_of(uint64_t span) { return (span + 31) / 32; }

bool tl_split_wanted(const tl_product *p, int step, int c, uint32_t rows, uint64_t span)
{
    const tl_size *s = &p->sizes[step].size[c];
    uint64_t products = p->work[step].balanced ? p->note[step][SUM_CLASS + c] : p->note[0][SUM_PRODUCTS];
    return (uint64_t)rows * 2 <= s->resident && !p->request.memory_limit && span < UINT32_MAX
           && products / rows >= HEAVY && p->note[0][SUM_MAX_PRODUCTS] >= HEAVIEST
           && words_of(span) * 8 * rows <= BYTES_MOST;
}

/* Slices per row, so that there are enough blocks for the device if all rows are equal. */
static uint32_t slices_of(const tl_product *p, uint32_t rows)
{
    uint32_t blocks = p->gpu->caps.processors * (p->gpu->caps.cpu ? 2 : 16);
    return (blocks + rows - 1) / rows;
}

/* The kernels of a step in order; each processes slices of rows, or whole rows. */
typedef struct part {
    tl_kernel_id kernel;
    bool         slices;
    uint8_t      args[TL_ARGS_MOST];
} part;

static const struct { int count; part part[3];
} parts[2] = {
    {2,
     {{TL_K_SPLIT_MARK,
       true,
       {ARG_SLICES, ARG_LIST, ARG_A_PTR, ARG_A_COL, ARG_B_PTR, ARG_B_COL, ARG_PRODUCTS, ARG_LO, ARG_WORDS,
        ARG_PAIRS}},
      {TL_K_SPLIT_COUNT, false, {ARG_LIST, ARG_WORDS, ARG_PAIRS, ARG_C_PTR}}}},
    {3,
     {{TL_K_SPLIT_MARK,
       true,
       {ARG_SLICES, ARG_LIST, ARG_A_PTR, ARG_A_COL, ARG_B_PTR, ARG_B_COL, ARG_PRODUCTS, ARG_LO, ARG_WORDS,
        ARG_PAIRS}},
      {TL_K_SPLIT_RANK, false, {ARG_LIST, ARG_LO, ARG_WORDS, ARG_PAIRS, ARG_C_PTR, ARG_C_COL, ARG_C_VAL}},
      {TL_K_SPLIT_ADD,
       true,
       {ARG_SLICES, ARG_LIST, ARG_A_PTR, ARG_A_COL, ARG_A_VAL, ARG_B_PTR, ARG_B_COL, ARG_B_VAL, ARG_PRODUCTS,
        ARG_LO, ARG_WORDS, ARG_PAIRS, ARG_C_PTR, ARG_C_VAL}}}},
};

tulle_status tl_split_run(tl_product *p, tl_types types, tl_job *j, tl_values *v, tl_dmem *scratch)
{
    tulle_status status = TULLE_OK;
    const uint64_t words = words_of(j->most), bytes = words * 8 * j->rows;
    const uint32_t slices = slices_of(p, j->rows), threads = p->gpu->caps.cpu ? 32 : 256;
    tl_kernel_id need[3];
    for (int i = 0; i < parts[j->step].count; i++) need[i] = parts[j->step].part[i].kernel;
    TRY(tl_product_need(p, types, need, parts[j->step].count));
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "bits of heavy rows", scratch));
    TRY(p->driver->fill(p->b, p->device, *scratch, 0, bytes));
    j->scratch = *scratch;
    tl_values_job(p, j, v);
    v->of[ARG_SLICES] = (tl_arg)TL_U32(slices);
    v->of[ARG_WORDS] = (tl_arg)TL_U64(words);
    for (int i = 0; i < parts[j->step].count; i++) {
        const part *t = &parts[j->step].part[i];
        const uint64_t blocks = (uint64_t)j->rows * (t->slices ? slices : 1);
        TRY(tl_way_launch(p, types, t->kernel, blocks, threads, 0, 0, v, t->args));
    }
done:
    return status;
}
