/* SPDX-License-Identifier: MIT
 *
 * portions.c - a large C for the host, computed in portions of rows: each goes down in a lane of its own
 * while the next is computed.
 *
 * All of C is counted first, so that its memory on the host and on the device is made once, and row pointers
 * are those of the whole.  The kernels that turn counts into row pointers sum up classes of rows for each
 * portion (tl_product_tiles()); with its sums, and with arrays of rows that begin at its first row, a portion
 * is a product like any other to the numeric step.
 *
 * Only where it pays and the rows have no other order: C in its last widths, with its zeros, without motifs,
 * twins or a memory limit (which is exact for the whole), not for plans, and not while stages are timed.
 *
 * Device memory: a TL_BOARD_SUM and a TL_ALIGN for each portion; lists of rows are those of one portion at a
 * time. */
#include "gpu/accumulators.h"
#include <inttypes.h>
#include <string.h>

static tl_dmem from_row(tl_dmem mem, uint64_t row, uint64_t size)
{
    return (tl_dmem){mem.handle, mem.offset + row * size};
}

/* A portion of the rows as a product; arrays of A, B and C are those of the whole. */
static tl_product part_of(const tl_product *p, uint32_t row0, uint32_t row1)
{
    tl_product q = *p;
    const uint64_t ptr = (uint64_t)p->types.ptr / 8, idx = (uint64_t)p->types.idx / 8;
    const struct { tl_dmem *mem; uint64_t size; } rows[] = {
        {&q.A.ptr, ptr}, {&q.c_ptr, ptr}, {&q.products, 4}, {&q.longest, 2}, {&q.lo, idx}, {&q.span, 4}};
    for (int i = 0; i < TL_COUNT(rows); i++) *rows[i].mem = from_row(*rows[i].mem, row0, rows[i].size);
    q.tile_sum = from_row(q.tile_sum, row0 / tl_tile_rows(p), 8);
    q.rows = row1 - row0;
    q.a_nnz = p->a_nnz / p->rows * q.rows;
    return q;
}

static bool wanted(const tl_product *p)
{
    const tl_gpu_request *r = &p->request;
    const int idx = (r->idx_type ? r->idx_type : (int)r->B->idx_type) == TULLE_I64 ? 64 : 32;
    return r->place == TULLE_HOST && r->values && !r->plan && !r->drop_zeros && !r->memory_limit && !p->timed
        && p->road->fill == tl_product_fill && p->types.idx == idx && !p->tiny && !p->motifs.used
        && !p->twins.used;
}

/* Rows where portions begin: arrays are aligned there.  None is empty. */
static void choose(tl_product *p)
{
    tl_portions *r = &p->portions;
    const uint64_t unit = (uint64_t)tl_tile_rows(p) * (TL_ALIGN / 8);
    const uint64_t units = ((uint64_t)p->rows + unit - 1) / unit;
    uint64_t count = p->note[0][SUM_PRODUCTS] / p->gpu->portion_products;
    if (count > TL_PORTIONS) count = TL_PORTIONS;
    if (count > units) count = units;
    r->count = wanted(p) && count > 1 ? (int)count : 0;
    for (int i = 0; i < r->count; i++)
        r->row[i] = (uint32_t)((uint64_t)tl_part((int64_t)units, i, r->count) * unit);
    r->row[r->count] = p->rows;
}

/* The sums of each portion, and from them those of the whole. */
static tulle_status read_sums(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_portions *r = &p->portions;
    TRY(p->driver->download(p->b, p->device, r->note, r->mem, (uint64_t)r->count * TL_BOARD_SUM));
    TRY(p->driver->wait(p->b, p->device));
    memset(p->note[1], 0, sizeof p->note[1]);
    for (int k = 0; k < r->count; k++) {
        r->entry[k] = (int64_t)p->note[1][SUM_NNZ];
        for (int i = 0; i < SUM_ALL; i++) {
            const bool most = i == SUM_MAX_NNZ || (i >= SUM_MEASURE && i < SUM_MEASURE + CLASSES);
            uint64_t *all = &p->note[1][i], one = r->note[k][i];
            if (!most) *all += one;
            else if (*all < one) *all = one;
        }
    }
    r->entry[r->count] = (int64_t)p->note[1][SUM_NNZ];
done:
    return status;
}

tulle_status tl_portions_pointers(tl_product *p, bool *done_so)
{
    tulle_status status = TULLE_OK;
    tl_portions *r = &p->portions;
    choose(p);
    *done_so = r->count > 0;
    if (!r->count) return TULLE_OK;
    const uint64_t bytes = (uint64_t)r->count * (TL_BOARD_SUM + TL_ALIGN);
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "sums of portions of rows", &r->mem));
    TRY(p->driver->fill(p->b, p->device, r->mem, 0, bytes));
    for (int k = 0; k < r->count; k++) {
        tl_product q = part_of(p, r->row[k], r->row[k + 1]);
        TRY(tl_product_tiles(&q, q.c_ptr, tl_tile_rows(p), from_row(r->mem, (uint64_t)k, TL_BOARD_SUM)));
    }
    TRY(tl_product_offsets(p, p->c_ptr));
    TRY(read_sums(p));
    tl_trace(p->b, "numeric step: in %d portions of rows, each of which goes to the host while the next is "
             "computed", r->count);
done:
    return status;
}

tulle_status tl_portions_fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_portions *r = &p->portions;
    const tl_dmem cursors = from_row(r->mem, (uint64_t)r->count, TL_BOARD_SUM);
    for (int k = 0; k < r->count; k++) {
        tl_product q = part_of(p, r->row[k], r->row[k + 1]);
        memcpy(q.note[1], r->note[k], sizeof q.note[1]);
        q.sum[1] = from_row(r->mem, (uint64_t)k, TL_BOARD_SUM);
        q.cursors[1] = from_row(cursors, (uint64_t)k, TL_ALIGN);
        q.c_nnz = r->entry[k + 1] - r->entry[k];
        q.portions.count = 0;
        status = tl_product_fill(&q);
        r->work[k] = q.work[1];
        tl_dmem_free(p->gpu, q.work[1].list);
        for (int i = 0; i < TL_SCRATCH; i++) tl_dmem_free(p->gpu, q.scratch[i]);
        TRY(status);
        TRY(p->driver->flag(p->b, p->device, 0, k));
    }
done:
    return status;
}

tulle_status tl_portions_home(tl_product *p, tulle_matrix *C)
{
    tulle_status status = TULLE_OK;
    const tl_portions *r = &p->portions;
    const uint64_t idx = tl_index_size(C->view.idx_type), val = tl_type_size(C->view.val_type);
    for (int k = 0; k < r->count; k++) {
        const uint64_t at = (uint64_t)r->entry[k], n = (uint64_t)(r->entry[k + 1] - r->entry[k]);
        if (k + 1 == r->count) {                /* kernels are done; what came down before was beside them */
            TRY(p->driver->settle(p->b, p->device, k));
            p->computed = tl_gpu_now(p->gpu);
        }
        TRY(p->driver->follow(p->b, p->device, TL_LANE_DOWN, k));
        TRY(tl_gpu_fetch(p->b, p->gpu, TL_LANE_DOWN, (char *)C->col_idx + at * idx,
                         from_row(p->c_col, at, idx), n * idx));
        TRY(tl_gpu_fetch(p->b, p->gpu, TL_LANE_DOWN, (char *)C->values + at * val,
                         from_row(p->c_val, at, val), n * val));
    }
    TRY(p->driver->flag(p->b, p->device, TL_LANE_DOWN, 0));
    TRY(p->driver->follow(p->b, p->device, 0, 0));
done:
    return status;
}

void tl_portions_done(tl_product *p)
{
    tl_dmem_free(p->gpu, p->portions.mem);
}
