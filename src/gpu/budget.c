/* SPDX-License-Identifier: MIT
 *
 * budget.c - how much a product needs, told where its memory limit is too small.
 *
 * The pool (pool.c) refuses the request that would pass the limit; by then it is known only what the product has and what
 * it asked for.  The sentence is to name a number that helps, so what is still to come is added up here: all of it once C is
 * counted; at most so much once rows are analyzed; before that, what it takes to get so far.  Whoever raises the limit to
 * that number gets a product, or one more number. */
#include "gpu/product.h"
#include <inttypes.h>

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The arrays of an operand on their way: copies from the host, then columns and row pointers made wider. */
static void add_operand(const tl_product *p, const tulle_csr *M, int64_t rows, uint64_t *now, uint64_t *more)
{
    uint64_t idx = tl_index_size(M->idx_type), ptr = tl_index_size(M->ptr_type), nnz = (uint64_t)M->nnz;
    bool copied = M->place == TULLE_HOST, wide = p->types.idx == 64 && M->idx_type == TULLE_I32;
    if (copied || rows != M->rows) *now += tl_dmem_round(((uint64_t)rows + 1) * ptr);
    if (copied) *now += tl_dmem_round(nnz * idx);
    if (copied && p->request.values && nnz) *now += tl_dmem_round(nnz * tl_type_size(M->val_type));
    if (wide) {                         /* the narrow columns go once the wide ones are there */
        uint64_t narrow = copied ? tl_dmem_round(nnz * idx) : 0;
        *more = larger(*more, narrow);
        *now += tl_dmem_round(nnz * 8) - narrow;
    }
    *now += tl_wide_pointers(p, M, rows);
}

static uint64_t pointers_of(const tl_product *p, int bits)
{
    return tl_dmem_round(((uint64_t)p->rows + 1) * (uint64_t)bits / 8);
}

/* Until rows are analyzed. */
static uint64_t to_begin(const tl_product *p)
{
    const tl_gpu_request *r = &p->request;
    uint64_t now = r->before + tl_meta_bytes(p), more = 0;
    add_operand(p, r->A, p->rows, &now, &more);
    if (!p->same) add_operand(p, r->B, r->B->rows, &now, &more);
    return now + larger(more, pointers_of(p, p->types.ptr));
}

static uint64_t columns_of(int64_t nnz, int bits)
{
    return tl_dmem_round((uint64_t)nnz * (uint64_t)bits / 8);
}

static uint64_t values_of(const tl_product *p, int64_t nnz)
{
    return tl_dmem_round((uint64_t)nnz * tl_type_size((tulle_type)p->types.val));
}

/* C itself but for its row pointers, and the copies that it may go through afterwards. */
static uint64_t of_c(const tl_product *p, int64_t nnz, tl_step_need numeric)
{
    const tl_gpu_request *r = &p->request;
    tl_types end = tl_product_c_types(p, nnz);
    uint64_t c = columns_of(nnz, p->types.idx) + values_of(p, nnz), again = 0, drop = 0;
    if (end.ptr != p->types.ptr) again = pointers_of(p, end.ptr);
    if (end.idx != p->types.idx) again = larger(again, columns_of(nnz, end.idx)
                                                + (end.ptr > p->types.ptr ? pointers_of(p, 64) - pointers_of(p, 32) : 0));
    if (r->drop_zeros) drop = pointers_of(p, p->types.ptr) + c;
    return c + numeric.lists + larger(numeric.scratch, larger(again, drop));
}

/* A plan of this pattern, between runs and in them. */
static uint64_t of_plan(const tl_product *p, int64_t nnz, tl_step_need numeric)
{
    const tl_gpu_request *r = &p->request;
    uint64_t size = tl_type_size(r->A->val_type), bytes = columns_of(nnz, p->types.idx) + TL_ALIGN;
    if (r->A->place == TULLE_HOST) bytes += tl_dmem_round((uint64_t)r->A->nnz * size);
    if (r->B->place == TULLE_HOST) bytes += tl_dmem_round((uint64_t)r->B->nnz * size);
    if (r->place == TULLE_HOST) bytes += tl_dmem_round((uint64_t)nnz * size);
    return bytes + numeric.lists + numeric.scratch;
}

static int64_t most_entries(const tl_product *p)
{
    uint64_t products = p->note[0][SUM_PRODUCTS], cols = (uint64_t)p->request.B->cols, all;
    return (int64_t)(tl_mul_fits(p->rows, cols, &all) && all < products ? all : products);
}

tulle_status tl_product_refused(tl_product *p, const tl_once *once)
{
    uint64_t need = larger(tl_dmem_refused(p->gpu), tl_dmem_most(p->gpu)), limit = p->request.memory_limit;
    if (p->known == TL_NOTHING)
        return tl_fail(p->b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes on the device before it is known how large C is, "
                       "the limit is %" PRIu64, larger(need, to_begin(p)), limit);
    bool row = p->rows == 1 && p->request.row_most > 0, counted = p->known == TL_COUNTED && !row;
    uint64_t rows = p->begun + pointers_of(p, p->types.ptr);
    int64_t nnz = counted ? p->c_nnz : row ? p->request.row_most : most_entries(p);
    tl_step_need numeric = {0, 0};
    if (!once && nnz) numeric = counted ? tl_step_needs(p, 1) : tl_step_most(p);
    if (!once && !counted) {
        tl_step_need symbolic = tl_step_needs(p, 0);
        need = larger(need, rows + symbolic.lists + symbolic.scratch);
    }
    need = larger(need, rows + of_c(p, nnz, numeric));
    if (p->request.plan) need = larger(need, rows + of_plan(p, nnz, numeric));
    if (once) need = larger(need, rows + tl_once_bytes(p, once) + columns_of(nnz, p->types.idx) + values_of(p, nnz));
    return tl_fail(p->b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes%s on the device (%s has %s%" PRId64
                   " entries), the limit is %" PRIu64, need, counted ? "" : " at most", row ? "a row of C" : "C",
                   counted ? "" : "at most ", nnz, limit);
}
