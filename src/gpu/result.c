/* SPDX-License-Identifier: MIT
 *
 * result.c - C as the caller wants it: without entries that came out as zero, in the widths asked for, on the
 * device or on the host. */
#include "gpu/product.h"
#include <string.h>

static const tl_dmem nothing = {0, 0};

/* ---- entries that came out as zero are left out */

tulle_status tl_result_drop(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_dmem ptr = nothing, col = nothing, val = nothing;
    tl_kernel_id need[] = {TL_K_DROP_COUNT, TL_K_DROP_COPY, TL_K_TILES, TL_K_OFFSETS};
    if (p->c_nnz == 0) return TULLE_OK;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8),
                      "row pointers of C", &ptr));
    TRY(p->driver->fill(p->b, p->device, p->sum[1], 0, SUM_ALL * 8));
    tl_arg count[] = {TL_U32(p->rows), TL_MEM(p->c_ptr), TL_MEM(p->c_val), TL_MEM(ptr)};
    uint64_t blocks = ((uint64_t)p->rows + 127) / 128;
    TRY(tl_product_launch(p, p->types, TL_K_DROP_COUNT, blocks, 128, 0, 0, count, TL_COUNT(count)));
    TRY(tl_product_scan(p, ptr));
    TRY(tl_product_read(p, 1));
    int64_t nnz = (int64_t)p->note[1][SUM_NNZ];
    if (nnz < p->c_nnz) {
        TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)nnz * (uint64_t)(p->types.idx / 8), "column indices of C",
                          &col));
        TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)nnz * tl_type_size((tulle_type)p->types.val), "values of C",
                          &val));
        tl_arg copy[] = {TL_U32(p->rows), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val),
                         TL_MEM(ptr),     TL_MEM(col),      TL_MEM(val)};
        TRY(tl_product_launch(p, p->types, TL_K_DROP_COPY, blocks, 128, 0, 0, copy, TL_COUNT(copy)));
        tl_dmem swap[3] = {p->c_ptr, p->c_col, p->c_val};
        p->c_ptr = ptr;
        p->c_col = col;
        p->c_val = val;
        ptr = swap[0];
        col = swap[1];
        val = swap[2];
        p->c_nnz = nnz;
    }
    TRY(tl_product_mark(p, "dropping zeros"));
done:
    tl_dmem_free(p->gpu, ptr);
    tl_dmem_free(p->gpu, col);
    tl_dmem_free(p->gpu, val);
    return status;
}

/* ---- C, in the widths and at the place asked for */

tl_types tl_product_c_types(const tl_product *p, int64_t nnz)
{
    const tl_gpu_request *r = &p->request;
    tl_types types = p->types;
    types.ptr = r->ptr_type == TULLE_I64 || (!r->ptr_type && !tl_fits(TULLE_I32, nnz)) ? 64 : 32;
    types.idx = (r->idx_type ? r->idx_type : (int)r->B->idx_type) == TULLE_I64 ? 64 : 32;
    return types;
}

tulle_status tl_result_fit(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_types end = tl_product_c_types(p, p->c_nnz);
    const struct { tl_dmem *mem; int now, then; uint64_t count; } parts[] = {
        {&p->c_ptr, p->types.ptr, end.ptr, (uint64_t)p->rows + 1},
        {&p->c_col, p->types.idx, end.idx, (uint64_t)p->c_nnz},
    };
    for (int i = 0; i < 2; i++) {
        if (parts[i].now == parts[i].then) continue;
        tl_dmem other;
        TRY(tl_product_resize(p, parts[i].then == 64 ? TL_K_WIDEN : TL_K_NARROW, parts[i].count,
                              *parts[i].mem, &other));
        tl_dmem_free(p->gpu, *parts[i].mem);
        *parts[i].mem = other;
    }
    p->types = end;
done:
    return status;
}

static void disown(tulle_matrix *C)
{
    tl_gpu *gpu = C->owner;
    const void *arrays[3] = {C->view.row_ptr, C->view.col_idx, C->view.values};
    for (int i = 0; i < 3; i++) tl_dmem_free(gpu, tl_foreign(arrays[i]));
    tl_gpu_release(gpu);
}

/* The arrays become a matrix that owns them; on failure they stay the caller's. */
tulle_status tl_matrix_on_device(tl_base *b, tl_gpu *gpu, tulle_csr view, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *M = NULL;
    TRY(tl_calloc(b, &M, 1, sizeof *M, "a matrix"));
    M->view = view;
    M->view.place = TULLE_DEVICE;
    M->owner = tl_gpu_retain(gpu);
    M->disown = disown;
    *out = M;
done:
    return status;
}

/* C's arrays to the host; its pages are made ready while kernels still run.  Where C is not small, a wait
 * tells kernels apart from copies: it takes a hundredth of these. */
static tulle_status bring_home(tl_product *p, tulle_matrix *C)
{
    enum { SMALL = 1 << 20 };
    tulle_status status = TULLE_OK;
    uint64_t bytes = 0;
    const tulle_csr *c = &C->view;
    const struct { void *to; tl_dmem from; uint64_t bytes; } parts[] = {
        {C->row_ptr, p->c_ptr, ((uint64_t)c->rows + 1) * tl_index_size(c->ptr_type)},
        {C->col_idx, p->c_col, (uint64_t)c->nnz * tl_index_size(c->idx_type)},
        {C->values, p->c_val, C->values ? (uint64_t)c->nnz * tl_type_size(c->val_type) : 0},
    };
    for (int i = 0; i < TL_COUNT(parts); i++)
        if (parts[i].bytes) {
            tl_gpu_expect(p->b, p->gpu, parts[i].to, parts[i].bytes);
            bytes += parts[i].bytes;
        }
    const int portions = p->portions.count;
    if (portions) {
        TRY(tl_portions_home(p, C));
    } else if (bytes >= SMALL) {
        TRY(p->driver->wait(p->b, p->device));
        p->computed = tl_gpu_now(p->gpu);
    }
    for (int i = 0; i < (portions ? 1 : TL_COUNT(parts)); i++)
        if (parts[i].bytes) TRY(tl_gpu_fetch(p->b, p->gpu, 0, parts[i].to, parts[i].from, parts[i].bytes));
done:
    return status;
}

tulle_status tl_result_deliver(tl_product *p, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    const tl_gpu_request *r = &p->request;
    tulle_index ptr = p->types.ptr == 64 ? TULLE_I64 : TULLE_I32,
                idx = p->types.idx == 64 ? TULLE_I64 : TULLE_I32;
    if (!r->values) {
        tl_dmem_free(p->gpu, p->c_val);
        p->c_val = nothing;
    }
    tulle_csr view = {.rows = p->rows,
                      .cols = r->B->cols,
                      .nnz = p->c_nnz,
                      .row_ptr = (void *)(uintptr_t)p->c_ptr.handle,
                      .col_idx = (void *)(uintptr_t)p->c_col.handle,
                      .values = (void *)(uintptr_t)p->c_val.handle,
                      .ptr_type = ptr,
                      .idx_type = idx,
                      .val_type = r->A->val_type,
                      .place = TULLE_DEVICE};
    if (r->place == TULLE_DEVICE) {
        TRY(tl_matrix_on_device(p->b, p->gpu, view, out));
        p->c_ptr = p->c_col = p->c_val = nothing;
        goto done;
    }
    TRY(tl_matrix_create(p->b, p->rows, r->B->cols, p->c_nnz, ptr, idx, r->values ? (int)r->A->val_type : 0,
                         &C));
    C->view.val_type = r->A->val_type;
    TRY(bring_home(p, C));
    *out = C;
    C = NULL;
done:
    if (C) tl_gpu_rest(p->b, p->gpu);               /* a part of it is on its way */
    tl_matrix_free(p->b, C);
    return status;
}

/* ---- the pattern alone, for a plan */

/* An array that the copy can use: in its own width, and its own where it goes to the caller. */
static tulle_status copy_of(tl_product *p, tl_dmem from, uint64_t count, int now, int then, tl_dmem *to)
{
    tulle_status status = TULLE_OK;
    uint64_t bytes = count * (uint64_t)(now / 8);
    *to = nothing;
    if (now != then) return tl_product_resize(p, then == 64 ? TL_K_WIDEN : TL_K_NARROW, count, from, to);
    if (p->request.place == TULLE_HOST) return TULLE_OK;
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "the pattern of C", to));
    if (bytes) TRY(p->driver->copy(p->b, p->device, *to, from, bytes));
done:
    return status;
}

uint64_t tl_result_pattern_bytes(const tl_product *p, int64_t nnz)
{
    const tl_types end = tl_product_c_types(p, nnz);
    const bool there = p->request.place == TULLE_DEVICE;
    uint64_t bytes = 0;
    if (there || end.ptr != p->types.ptr)
        bytes += tl_dmem_round(((uint64_t)p->rows + 1) * (uint64_t)end.ptr / 8);
    if (there || end.idx != p->types.idx) bytes += tl_dmem_round((uint64_t)nnz * (uint64_t)end.idx / 8);
    return bytes;
}

tulle_status tl_result_pattern(tl_product *p, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_product q = *p;
    tl_types end = tl_product_c_types(p, p->c_nnz);
    tl_dmem ptr = nothing, col = nothing;
    TRY(copy_of(p, p->c_ptr, (uint64_t)p->rows + 1, p->types.ptr, end.ptr, &ptr));
    TRY(copy_of(p, p->c_col, (uint64_t)p->c_nnz, p->types.idx, end.idx, &col));
    q.types = end;
    q.request.values = false;
    q.c_val = nothing;
    if (ptr.handle) q.c_ptr = ptr;
    if (col.handle) q.c_col = col;
    TRY(tl_result_deliver(&q, out));
    if (p->request.place == TULLE_DEVICE) ptr = col = nothing;  /* they are the matrix now */
    p->marks = q.marks;
    memcpy(p->mark_name, q.mark_name, sizeof p->mark_name);
done:
    tl_dmem_free(p->gpu, ptr);
    tl_dmem_free(p->gpu, col);
    return status;
}
