/* SPDX-License-Identifier: MIT
 *
 * analysis.c - row metadata of a product: its memory, the limits of classes on the device's board, the
 * analysis itself, and the scan that turns counts into row pointers.
 *
 * Memory: 14 bytes per row of A (18 with 64-bit columns) and 8 for each tile of rows, in one block. */
#include "gpu/accumulators.h"
#include <inttypes.h>
#include <string.h>

/* The error message for a bad row that a check found, which may be of A or of B. */
tulle_status tl_bad_row(tl_product *p, uint32_t row)
{
    tulle_status status = TULLE_OK;
    TRY(tl_check_tell(p->b, p->gpu, p->request.A, "A"));
    TRY(tl_check_tell(p->b, p->gpu, p->request.B, "B"));
    status = tl_fail(p->b, TULLE_EPATTERN, "row %" PRIu32 " of A or B changed while it was checked", row);
done:
    return status;
}

/* ---- the memory block of the metadata */

static uint64_t take(uint64_t *at, uint64_t bytes)
{
    uint64_t here = *at;
    *at += (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN;
    return here;
}

static uint32_t tile_items(uint32_t rows)
{
    uint32_t items = 1; /* enough tiles to fill the device, but few enough for one block to sum */
    while (items < 8 && (uint64_t)items * 256 * 512 < rows) items *= 2;
    while ((uint64_t)items * 256 * 4096 < rows) items *= 2;
    return items;
}

static uint64_t tile_count(uint32_t rows)
{
    return ((uint64_t)rows + tile_items(rows) * 256 - 1) / (tile_items(rows) * 256);
}

enum { METAS = 5 };

/* The offset of each array; returns the bytes of all. */
static uint64_t lay_meta(const tl_product *p, uint64_t offset[METAS])
{
    uint64_t at = 0, n = p->rows, idx = (uint64_t)p->types.idx / 8;
    const uint64_t bytes[METAS] = {tile_count(p->rows) * 8, n * 4, n * 2, n * idx, n * 4};
    for (int i = 0; i < METAS; i++) offset[i] = take(&at, bytes[i]);
    return at;
}

uint64_t tl_meta_bytes(const tl_product *p)
{
    uint64_t offset[METAS];
    return tl_dmem_round(lay_meta(p, offset));
}

tulle_status tl_meta_make(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_dmem *const to[METAS] = {&p->tile_sum, &p->products, &p->longest, &p->lo, &p->span};
    uint64_t offset[METAS], bytes = lay_meta(p, offset);
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "what is known about rows", &p->meta));
    for (int i = 0; i < METAS; i++) *to[i] = (tl_dmem){p->meta.handle, offset[i]};
    uint64_t board = p->gpu->board.handle;
    p->bad = (tl_dmem){board, p->request.trusted ? TL_BOARD_NO_BAD : TL_BOARD_BAD};
    for (unsigned step = 0; step < 2; step++) {
        p->limits[step] = (tl_dmem){board, TL_BOARD_LIMITS + step * TL_ALIGN};
        p->sum[step] = (tl_dmem){board, TL_BOARD_SUMS + step * TL_BOARD_SUM};
        p->cursors[step] = (tl_dmem){board, TL_BOARD_CURSORS + step * TL_ALIGN};
    }
done:
    return status;
}

/* Uploads the limits, if they have changed; they depend on types, policy and accumulator. */
static tulle_status send_limits(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = p->gpu;
    unsigned char now[TL_BOARD_BAD] = {0};
    for (int step = 0; step < 2; step++)
        memcpy(now + TL_BOARD_LIMITS + step * TL_ALIGN, p->sizes[step].limits, sizeof p->sizes[step].limits);
    memset(now + TL_BOARD_NO_BAD, 0xff, TL_ALIGN);
    if (memcmp(now, gpu->limits_now, sizeof now) == 0) return TULLE_OK;
    memset(gpu->limits_now, 0, sizeof gpu->limits_now);
    TRY(p->driver->upload(p->b, p->device, gpu->board, now, sizeof now));
    memcpy(gpu->limits_now, now, sizeof now);
done:
    return status;
}

static tulle_status read_note(tl_product *p, int step, uint32_t *bad)
{
    tulle_status status = TULLE_OK;
    uint64_t *note = p->gpu->note;
    TRY(p->driver->download(p->b, p->device, note, p->sum[step], SUM_ALL * 8));
    if (bad) TRY(p->driver->download(p->b, p->device, note + SUM_ALL, p->bad, 8));
    TRY(p->driver->wait(p->b, p->device));
    memcpy(p->note[step], note, SUM_ALL * 8);
    if (bad) memcpy(bad, note + SUM_ALL, 8);
done:
    return status;
}

/* ---- the analysis */

static tulle_status analyze(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    tl_kernel_id need[] = {TL_K_ANALYZE, TL_K_TILES, TL_K_OFFSETS};
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    uint32_t threads = caps->cpu ? 32 : 256,
             team = tl_team_log2(p->gpu, p->a_nnz, p->rows); /* at least a thread for each class */
    /* enough blocks to fill the device, but at least one row for each team of a block */
    uint64_t stretch = (uint64_t)p->rows / (caps->processors * 16 + 1) + 1;
    if (stretch < threads >> team) stretch = threads >> team;
    if (stretch > threads) stretch = threads;
    uint64_t blocks = ((uint64_t)p->rows + stretch - 1) / stretch;
    tl_arg args[] = {TL_U32(p->rows),      TL_U32(stretch),     TL_U32(team),       TL_MEM(p->bad),
                     TL_MEM(p->A.ptr),     TL_MEM(p->A.col),    TL_MEM(p->B.ptr),   TL_MEM(p->B.col),
                     TL_MEM(p->limits[0]), TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo),
                     TL_MEM(p->span),      TL_MEM(p->sum[0])};
    TRY(tl_product_launch(p, p->types, TL_K_ANALYZE, blocks, threads, 0, 0, args, TL_COUNT(args)));
    TRY(tl_twins_sample(p));
    TRY(tl_motifs_sample(p));
    TRY(tl_product_mark(p, p->request.recipe->once ? "upper bound" : "analysis"));
    uint32_t found[2] = {UINT32_MAX, 0};
    TRY(read_note(p, 0, p->request.trusted ? NULL : found));
    if (found[0] != UINT32_MAX) status = tl_bad_row(p, found[0]);
done:
    return status;
}

/* The sizes of each class; on the fast path for small products rows with few products have no special
 * class. */
tulle_status tl_product_sizes(tl_product *p, tl_types keys, bool numeric, bool few)
{
    tl_recipe recipe = *p->request.recipe;
    if (!few) recipe.few = TL_DIRECT;
    /* before the analysis, assume that the rows of B in use have average length */
    uint64_t mean = p->request.B->rows ? (uint64_t)(p->request.B->nnz / p->request.B->rows) : 0;
    for (int step = 0; step <= numeric; step++)
        tl_sizes_make(p->gpu, &recipe, keys, mean, step, &p->sizes[step]);
    return send_limits(p);
}

tulle_status tl_look_again(tl_product *p)
{
    tulle_status status = p->driver->fill(p->b, p->device, p->sum[0], 0, TL_BOARD_BYTES - TL_BOARD_SUMS);
    return status == TULLE_OK ? analyze(p) : status;
}

tulle_status tl_first_look(tl_product *p)
{
    tulle_status status = TULLE_OK;
    TRY(tl_look_again(p));
    uint64_t span = p->note[0][SUM_MAX_SPAN], total = p->note[0][SUM_PRODUCTS];
    tl_trace(p->b,
             "analysis: %" PRIu64 " products, at most %" PRIu64 " a row, rows of C span up to %" PRIu64
             " columns",
             total, p->note[0][SUM_MAX_PRODUCTS], span);
    p->known = TL_ANALYZED;
    if (total > TULLE_I32_LIMIT && p->types.ptr == 32) {        /* counts may exceed 32 bits */
        p->types.ptr = 64;
        p->begun += tl_wide_pointers(p, p->request.A, p->rows)
                    + (p->same ? 0 : tl_wide_pointers(p, p->request.B, p->request.B->rows));
        TRY(tl_operand_pointers(p, p->request.A, p->rows, &p->A));
        if (p->same) p->B.ptr = p->A.ptr;
        else TRY(tl_operand_pointers(p, p->request.B, p->request.B->rows, &p->B));
        tl_kernel_id need[] = {TL_K_TILES, TL_K_OFFSETS};
        TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    }
done:
    return status;
}

tulle_status tl_product_analyze(tl_product *p)
{
    tulle_status status = TULLE_OK;
    TRY(tl_product_sizes(p, p->types, true, true));
    TRY(tl_first_look(p));
done:
    return status;
}

uint32_t tl_tile_rows(const tl_product *p)
{
    return tile_items(p->rows) * 256;
}

tulle_status tl_product_tiles(tl_product *p, tl_dmem counts, uint32_t tile, tl_dmem summary)
{
    tl_arg tiles[] = {TL_U32(p->rows), TL_U32(tile / 256), TL_MEM(p->A.ptr), TL_MEM(p->products),
                      TL_MEM(p->span), TL_MEM(p->limits[1]), TL_MEM(counts), TL_MEM(p->tile_sum),
                      TL_MEM(summary)};
    return tl_product_launch(p, p->types, TL_K_TILES, ((uint64_t)p->rows + tile - 1) / tile, 256, 0, 0, tiles,
                             TL_COUNT(tiles));
}

tulle_status tl_product_offsets(tl_product *p, tl_dmem counts)
{
    tl_arg offsets[] = {TL_U32(p->rows), TL_U32(tile_items(p->rows)), TL_MEM(p->tile_sum), TL_MEM(counts)};
    return tl_product_launch(p, p->types, TL_K_OFFSETS, tile_count(p->rows), 256, 0, 0, offsets,
                             TL_COUNT(offsets));
}

tulle_status tl_product_scan(tl_product *p, tl_dmem counts)
{
    tulle_status status = TULLE_OK;
    TRY(tl_product_tiles(p, counts, tl_tile_rows(p), p->sum[1]));
    TRY(tl_product_offsets(p, counts));
done:
    return status;
}

tulle_status tl_product_read(tl_product *p, int step)
{
    return read_note(p, step, NULL);
}
