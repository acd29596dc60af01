/* SPDX-License-Identifier: MIT
 *
 * operands.c - A and B on the device, in the widths that the kernels were chosen for.  What lies there
 * already is used as it is; what lies on the host is copied, and forgotten with the product. */
#include "gpu/product.h"
#include <stdio.h>
#include <string.h>

static tulle_status to_device(tl_product *p, const void *from, int64_t count, size_t size, const char *what,
                              tl_dmem *mem)
{
    tulle_status status = TULLE_OK;
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)count * size, what, mem));
    if (count) TRY(tl_gpu_send(p->b, p->gpu, *mem, from, count, size, 0));
done:
    return status;
}

/* count entries of 32 bits become 64, or the other way round. */
tulle_status tl_product_resize(tl_product *p, tl_kernel_id id, uint64_t count, tl_dmem from, tl_dmem *to)
{
    tulle_status status = TULLE_OK;
    tl_types types = {32, 32, 32, 0};
    TRY(tl_product_need(p, types, &id, 1));
    TRY(tl_dmem_alloc(p->b, p->gpu, count * (id == TL_K_WIDEN ? 8 : 4), "indices in another width", to));
    uint64_t blocks = (count + 255) / 256;
    if (blocks > 65536) blocks = 65536;
    tl_arg args[] = {TL_U64(count), TL_MEM(from), TL_MEM(*to)};
    TRY(tl_product_launch(p, types, id, blocks, 256, 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

/* Rows row0..row1 of a view on the device, in the widths of p->types. */
tulle_status tl_operand_bring(tl_product *p, const tulle_csr *M, const char *name, int64_t row0, int64_t rows,
                              tl_operand *x)
{
    tulle_status status = TULLE_OK;
    size_t ptr = tl_index_size(M->ptr_type), idx = tl_index_size(M->idx_type),
           val = tl_type_size(M->val_type);
    const void *slice = (const char *)M->row_ptr + (size_t)row0 * ptr;
    bool all = rows == M->rows, values = p->request.values && M->nnz > 0;
    char what[64];
    snprintf(what, sizeof what, "%s on the device", name);
    if (M->place == TULLE_DEVICE) {
        x->ptr = tl_foreign(M->row_ptr);
        x->col = tl_foreign(M->col_idx);
        x->val = tl_foreign(M->values);
        if (!all) {
            tl_dmem from = x->ptr;
            from.offset = (uint64_t)row0 * ptr;
            TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)(rows + 1) * ptr, what, &x->own[0]));
            TRY(p->driver->copy(p->b, p->device, x->own[0], from, (uint64_t)(rows + 1) * ptr));
            x->ptr = x->own[0];
        }
    } else {
        TRY(to_device(p, slice, rows + 1, ptr, what, &x->own[0]));
        TRY(to_device(p, M->col_idx, M->nnz, idx, what, &x->own[1]));
        if (values) TRY(to_device(p, M->values, M->nnz, val, what, &x->own[2]));
        x->ptr = x->own[0];
        x->col = x->own[1];
        x->val = x->own[2];
    }
done:
    return status;
}

/* Row pointers and columns in the widths that the kernels were chosen for; after the check, which wants them
 * as they came. */
tulle_status tl_operand_columns(tl_product *p, const tulle_csr *M, tl_operand *x)
{
    tulle_status status = TULLE_OK;
    if (p->types.idx == 64 && M->idx_type == TULLE_I32) {
        tl_dmem wide;
        TRY(tl_product_resize(p, TL_K_WIDEN, (uint64_t)M->nnz, x->col, &wide));
        tl_dmem_free(p->gpu, x->own[1]);
        x->own[1] = x->col = wide;
    }
done:
    return status;
}

tulle_status tl_operand_pointers(tl_product *p, const tulle_csr *M, int64_t rows, tl_operand *x)
{
    if (p->types.ptr == 32 || M->ptr_type == TULLE_I64 || x->wide.handle) return TULLE_OK;
    tulle_status status = tl_product_resize(p, TL_K_WIDEN, (uint64_t)rows + 1, x->ptr, &x->wide);
    if (status == TULLE_OK) x->ptr = x->wide;
    return status;
}

void tl_operand_done(tl_product *p, tl_operand *x)
{
    for (int i = 0; i < 3; i++) tl_dmem_free(p->gpu, x->own[i]);
    tl_dmem_free(p->gpu, x->wide);
    memset(x, 0, sizeof *x);
}

uint64_t tl_wide_pointers(const tl_product *p, const tulle_csr *M, int64_t rows)
{
    return p->types.ptr == 64 && M->ptr_type == TULLE_I32 ? tl_dmem_round(((uint64_t)rows + 1) * 8) : 0;
}
