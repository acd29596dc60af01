/* SPDX-License-Identifier: MIT
 *
 * keep.c - sorted columns of rows of C that the symbolic step leaves behind, so that the numeric step need
 * not find and sort them once more (flat_count.cl).
 *
 * When rows are counted it is not known yet where they begin in C.  So the columns go to bounded memory, row
 * after row in any order, and to their places when the column indices of C are allocated; then that memory is
 * freed, before the values of C are allocated.
 *
 * Memory: a word per row, as long as the product; and room for half as many columns as these rows have
 * products, in between.  That suffices where columns occur twice on average, and is not more than the values
 * of C in double precision, which are allocated later, if they occur at most four times.  Rows beyond it are
 * not kept.  Neither is taken where it does not fit beside all that the product may need in any case. */
#include "gpu/accumulators.h"
#include <inttypes.h>

static const tl_dmem nothing = {0, 0};

/* The products of rows whose kernel can keep columns. */
static uint64_t products_of(const tl_product *p)
{
    const tl_work *w = &p->work[0];
    uint64_t sum = 0;
    if (!w->balanced) return tl_way_of(0, w->only)->keeps ? p->note[0][SUM_PRODUCTS] : 0;
    for (int c = CLASS_BITS; c < CLASSES; c++)
        if (tl_way_of(0, c)->keeps) sum += p->note[0][SUM_CLASS + c];
    return sum;
}

static uint64_t cursor_at(const tl_product *p)
{
    return tl_dmem_round((uint64_t)p->rows * 4);
}

static uint64_t columns_bytes(const tl_product *p, uint64_t room)
{
    return tl_dmem_round(room * (uint64_t)(p->types.idx / 8));
}

/* Is there room for `bytes` besides all that the product may need? */
static bool fits(tl_product *p, uint64_t bytes)
{
    const uint64_t limit = p->request.memory_limit;
    if (limit) {
        const uint64_t most = tl_product_most(p);
        return most <= limit && bytes <= limit - most;
    }
    return bytes <= p->gpu->caps.memory_free / 16 || bytes <= tl_dmem_left(p->gpu) / 8;
}

static tulle_status take(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const uint64_t words = cursor_at(p) + TL_ALIGN;
    TRY(tl_dmem_alloc(p->b, p->gpu, words, "rows of C whose columns are known", &p->known_rows));
    TRY(tl_dmem_alloc(p->b, p->gpu, columns_bytes(p, p->keep.room), "columns of C", &p->keep.columns));
    p->keep.cursor = (tl_dmem){p->known_rows.handle, p->known_rows.offset + cursor_at(p)};
    TRY(p->driver->fill(p->b, p->device, p->known_rows, 0, words));
done:
    return status;
}

tulle_status tl_keep_begin(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need = TL_K_KEEP_COLUMNS;
    tl_types types = p->types;
    const uint64_t room = products_of(p) / 2;
    types.key = tl_key_bits(p);
    p->keep.most = p->request.recipe->policy->gpu->symbolic.flat_keep;
    p->keep.room = room < UINT32_MAX ? room : UINT32_MAX - 1;
    if (!p->keep.most || !room || !fits(p, cursor_at(p) + TL_ALIGN + columns_bytes(p, p->keep.room)))
        return TULLE_OK;
    TRY(tl_product_need(p, types, &need, 1));
    status = take(p);
    if (status == TULLE_ELIMIT || status == TULLE_ENOMEM) {     /* then without */
        tl_trace(p->b, "symbolic step: there is no room to keep columns: %s", p->b->error);
        p->b->error[0] = 0;
        tl_keep_done(p);
        status = TULLE_OK;
    }
done:
    return status;
}

tulle_status tl_keep_copy(tl_product *p)
{
    tulle_status status = TULLE_OK;
    enum { THREADS = 128, THREADS_CPU = 8 };
    const uint32_t threads = p->gpu->caps.cpu ? THREADS_CPU : THREADS;
    tl_types types = p->types;
    types.key = tl_key_bits(p);
    if (!p->keep.columns.handle) return TULLE_OK;
    const tl_arg args[] = {TL_U32(p->rows), TL_MEM(p->known_rows), TL_MEM(p->keep.columns), TL_MEM(p->c_ptr),
                           TL_MEM(p->c_col)};
    if (p->c_nnz)
        TRY(tl_product_launch(p, types, TL_K_KEEP_COLUMNS, ((uint64_t)p->rows + threads - 1) / threads,
                              threads, 0, 0, args, TL_COUNT(args)));
    tl_dmem_free(p->gpu, p->keep.columns);
    p->keep.columns = nothing;
    TRY(tl_product_mark(p, "known columns"));
done:
    return status;
}

void tl_keep_done(tl_product *p)
{
    tl_dmem_free(p->gpu, p->keep.columns);
    tl_dmem_free(p->gpu, p->known_rows);
    p->keep.columns = p->known_rows = nothing;
}
