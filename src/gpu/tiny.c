/* SPDX-License-Identifier: MIT
 *
 * tiny.c - the fast path for small products: analysis, counts and row pointers by two kernels
 * (kernels/tiny.cl), and one wait before C is allocated instead of two. */
#include "gpu/product.h"
#include <string.h>

static const tl_dmem nothing = {0, 0};

bool tl_looks_tiny(const tl_product *p)
{
    const tl_gpu_request *r = &p->request;
    const int64_t seen[3] = {p->rows, p->a_nnz, r->B->nnz};
    return p->rows > 0 && p->rows <= TINY_ROWS && p->a_nnz <= TINY_ENTRIES && r->B->cols < UINT32_MAX
           && r->recipe->forced < 0 && (r->recipe->few == TL_DIRECT || r->recipe->few_rows[1].first < 512)
           && p->gpu->balance < 0 && !tl_motifs_forced(p) && !tl_twins_forced(p)
           && tl_fits(TULLE_I32, TINY_ROWS * (int64_t)TINY_PRODUCTS)
           && memcmp(seen, p->gpu->not_tiny, sizeof seen) != 0;
}

/* *done_so = false: a row was too long for it. */
tulle_status tl_tiny(tl_product *p, bool *done_so)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    tl_kernel_id need[] = {TL_K_TINY_ROWS, TL_K_TINY_SCAN};
    uint64_t *note = p->gpu->note;
    *done_so = false;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8),
                      "row pointers of C", &p->c_ptr));
    uint32_t team_log2 = caps->warp ? 5 : 3, threads = caps->warp ? 64 : 8, items = 1;
    uint32_t block = caps->cpu ? 32 : caps->threads_block < 1024 ? caps->threads_block : 1024;
    while (items * block < p->rows) items++;
    tl_arg rows[] = {TL_U32(p->rows),    TL_U32(team_log2), TL_MEM(p->bad),   TL_MEM(p->A.ptr),
                     TL_MEM(p->A.col),   TL_MEM(p->B.ptr),  TL_MEM(p->B.col), TL_MEM(p->products),
                     TL_MEM(p->longest), TL_MEM(p->lo),     TL_MEM(p->span),  TL_MEM(p->c_ptr)};
    uint32_t teams = threads >> team_log2;
    TRY(tl_product_launch(p, p->types, TL_K_TINY_ROWS, (p->rows + teams - 1) / teams, threads, 0, 0, rows,
                          TL_COUNT(rows)));
    tl_arg scan[] = {TL_U32(p->rows),     TL_U32(items),      TL_MEM(p->bad),   TL_MEM(p->A.ptr),
                     TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->span),  TL_MEM(p->limits[1]),
                     TL_MEM(p->c_ptr),    TL_MEM(p->sum[0]),  TL_MEM(p->sum[1])};
    TRY(tl_product_launch(p, p->types, TL_K_TINY_SCAN, 1, block, 0, 0, scan, TL_COUNT(scan)));
    TRY(tl_product_mark(p, "small: all before C"));
    TRY(p->driver->download(p->b, p->device, note, p->sum[0], TL_BOARD_SUM + SUM_ALL * 8));
    if (!p->request.trusted)
        TRY(p->driver->download(p->b, p->device, note + 2 * TL_BOARD_SUM / 8, p->bad, 8));
    TRY(p->driver->wait(p->b, p->device));
    uint32_t found = UINT32_MAX;
    if (!p->request.trusted) memcpy(&found, note + 2 * TL_BOARD_SUM / 8, sizeof found);
    if (found != UINT32_MAX) {
        status = tl_bad_row(p, found);
        goto done;
    }
    memcpy(p->note[0], note, SUM_ALL * 8);
    memcpy(p->note[1], note + TL_BOARD_SUM / 8, SUM_ALL * 8);
    if (p->note[0][SUM_MAX_PRODUCTS] <= TINY_PRODUCTS) {
        p->c_nnz = (int64_t)p->note[1][SUM_NNZ];
        p->known = TL_COUNTED;
        p->tiny = *done_so = true;
    } else {
        const int64_t seen[3] = {p->rows, p->a_nnz, p->request.B->nnz};
        memcpy(p->gpu->not_tiny, seen, sizeof seen);
        memset(p->note, 0, sizeof p->note);
        tl_dmem_free(p->gpu, p->c_ptr);
        p->c_ptr = nothing;
    }
done:
    return status;
}
