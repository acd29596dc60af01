/* SPDX-License-Identifier: MIT
 *
 * split.c - rows so heavy and so few that a block for each would leave most of the device idle: each is shared by many
 * blocks (split.cl).  Where there are enough such rows a block each is faster: sums stay in shared memory.
 *
 * Memory: two words for 32 columns of the widest row, for each row. */
#include "gpu/product.h"

enum {
    HEAVIEST = 1 << 16,                 /* products of the heaviest row: it decides how long all wait  */
    HEAVY = 1 << 11,                    /* and of a row of the class, on average              */
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

/* Enough blocks for the device, as if every row were alike. */
static uint32_t slices_of(const tl_product *p, uint32_t rows)
{
    uint32_t blocks = p->gpu->caps.processors * (p->gpu->caps.cpu ? 2 : 16);
    return (blocks + rows - 1) / rows;
}

static uint32_t threads_of(const tl_product *p)
{
    return p->gpu->caps.cpu ? 32 : 256;
}

static tulle_status mark(tl_product *p, tl_types types, uint32_t rows, tl_dmem list, uint64_t words, tl_dmem *pairs)
{
    tulle_status status = TULLE_OK;
    uint32_t slices = slices_of(p, rows);
    TRY(tl_dmem_alloc(p->b, p->gpu, words * 8 * rows, "bits of heavy rows", pairs));
    TRY(p->driver->fill(p->b, p->device, *pairs, 0, words * 8 * rows));
    tl_arg args[] = {TL_U32(slices), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                     TL_MEM(p->products), TL_MEM(p->lo), TL_U64(words), TL_MEM(*pairs)};
    TRY(tl_product_launch(p, types, TL_K_SPLIT_MARK, (uint64_t)rows * slices, threads_of(p), 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

tulle_status tl_split_symbolic(tl_product *p, tl_types types, uint32_t rows, tl_dmem list, uint64_t span, tl_dmem *scratch)
{
    tulle_status status = TULLE_OK;
    tl_kernel_id need[] = {TL_K_SPLIT_MARK, TL_K_SPLIT_COUNT};
    uint64_t words = words_of(span);
    TRY(tl_product_need(p, types, need, TL_COUNT(need)));
    TRY(mark(p, types, rows, list, words, scratch));
    tl_arg args[] = {TL_MEM(list), TL_U64(words), TL_MEM(*scratch), TL_MEM(p->c_ptr)};
    TRY(tl_product_launch(p, types, TL_K_SPLIT_COUNT, rows, threads_of(p), 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

tulle_status tl_split_numeric(tl_product *p, tl_types types, uint32_t rows, tl_dmem list, uint64_t span, tl_dmem *scratch)
{
    tulle_status status = TULLE_OK;
    tl_kernel_id need[] = {TL_K_SPLIT_MARK, TL_K_SPLIT_RANK, TL_K_SPLIT_ADD};
    uint64_t words = words_of(span);
    uint32_t slices = slices_of(p, rows);
    TRY(tl_product_need(p, types, need, TL_COUNT(need)));
    TRY(mark(p, types, rows, list, words, scratch));
    tl_arg rank[] = {TL_MEM(list), TL_MEM(p->lo), TL_U64(words), TL_MEM(*scratch), TL_MEM(p->c_ptr), TL_MEM(p->c_col),
                     TL_MEM(p->c_val)};
    TRY(tl_product_launch(p, types, TL_K_SPLIT_RANK, rows, threads_of(p), 0, 0, rank, TL_COUNT(rank)));
    tl_arg add[] = {TL_U32(slices), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr),
                    TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->lo), TL_U64(words), TL_MEM(*scratch),
                    TL_MEM(p->c_ptr), TL_MEM(p->c_val)};
    TRY(tl_product_launch(p, types, TL_K_SPLIT_ADD, (uint64_t)rows * slices, threads_of(p), 0, 0, add, TL_COUNT(add)));
done:
    return status;
}
