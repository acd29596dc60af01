/* SPDX-License-Identifier: MIT
 *
 * budget.c - the memory that a product needs, for the error message if its memory limit is too small.
 *
 * The pool (pool.c) refuses a request that would exceed the limit; at that point only the memory already
 * taken and the request are known.  To give a sufficient limit in the message, the later requests are added
 * up here: exactly after C is counted; as an upper bound after rows are analyzed; before that, only those up
 * to the analysis, so that with the limit raised accordingly the call may fail once more, with a larger
 * number. */
#include "gpu/product.h"
#include <inttypes.h>

/* Memory for the arrays of an operand: copies from the host, then columns and row pointers widened. */
static void add_operand(const tl_product *p, const tulle_csr *M, int64_t rows, uint64_t *now, uint64_t *more)
{
    uint64_t idx = tl_index_size(M->idx_type), ptr = tl_index_size(M->ptr_type), nnz = (uint64_t)M->nnz;
    bool copied = M->place == TULLE_HOST, wide = p->types.idx == 64 && M->idx_type == TULLE_I32;
    if (copied || rows != M->rows) *now += tl_dmem_round(((uint64_t)rows + 1) * ptr);
    if (copied) *now += tl_dmem_round(nnz * idx);
    if (copied && p->request.values && nnz) *now += tl_dmem_round(nnz * tl_type_size(M->val_type));
    if (wide) {                         /* the narrow columns are freed after the conversion */
        uint64_t narrow = copied ? tl_dmem_round(nnz * idx) : 0;
        *more = tl_bytes_max(*more, narrow);
        *now += tl_dmem_round(nnz * 8) - narrow;
    }
    *now += tl_wide_pointers(p, M, rows);
}

static uint64_t pointers_of(const tl_product *p, int bits)
{
    return tl_dmem_round(((uint64_t)p->rows + 1) * (uint64_t)bits / 8);
}

/* Memory up to the end of the analysis. */
static uint64_t to_begin(const tl_product *p)
{
    const tl_gpu_request *r = &p->request;
    uint64_t now = r->before + tl_meta_bytes(p), more = 0;
    add_operand(p, r->A, p->rows, &now, &more);
    if (!p->same) add_operand(p, r->B, r->B->rows, &now, &more);
    return now + tl_bytes_max(more, pointers_of(p, p->types.ptr));
}

static uint64_t columns_of(int64_t nnz, int bits)
{
    return tl_dmem_round((uint64_t)nnz * (uint64_t)bits / 8);
}

static uint64_t values_of(const tl_product *p, int64_t nnz)
{
    return tl_dmem_round((uint64_t)nnz * tl_type_size((tulle_type)p->types.val));
}

/* C without its row pointers, and the copies of it that may be made afterwards. */
static uint64_t of_c(const tl_product *p, int64_t nnz, tl_step_need numeric)
{
    const tl_gpu_request *r = &p->request;
    tl_types end = tl_product_c_types(p, nnz);
    uint64_t c = columns_of(nnz, p->types.idx) + values_of(p, nnz), again = 0, drop = 0;
    if (end.ptr != p->types.ptr) again = pointers_of(p, end.ptr);
    if (end.idx != p->types.idx)
        again = tl_bytes_max(again, columns_of(nnz, end.idx)
                                  + (end.ptr > p->types.ptr ? pointers_of(p, 64) - pointers_of(p, 32) : 0));
    if (r->drop_zeros) drop = pointers_of(p, p->types.ptr) + c;
    return c + numeric.lists + tl_bytes_max(numeric.scratch, tl_bytes_max(again, drop));
}

/* A plan for this pattern: while it is created, arrays for the values that runs will pass are needed once;
 * then a copy of the pattern, which remains if it is on the device. */
static uint64_t of_plan(const tl_product *p, int64_t nnz, tl_step_need numeric)
{
    const tl_gpu_request *r = &p->request;
    const uint64_t size = tl_type_size(r->A->val_type), pattern = tl_result_pattern_bytes(p, nnz);
    const struct { bool host; int64_t nnz;
    } values[] = {{r->A->place == TULLE_HOST, r->A->nnz},
                  {r->B->place == TULLE_HOST, r->B->nnz},
                  {r->place == TULLE_HOST, nnz}};
    uint64_t kept = columns_of(nnz, p->types.idx) + numeric.lists, spare = 0;
    for (int i = 0; i < TL_COUNT(values); i++)
        *(values[i].host ? &kept : &spare) += tl_dmem_round((uint64_t)values[i].nnz * size);
    uint64_t runs = TL_ALIGN + numeric.scratch + (r->place == TULLE_DEVICE ? pattern : 0);
    return kept + tl_bytes_max(tl_bytes_max(spare + numeric.scratch, pattern), runs);
}

static int64_t most_entries(const tl_product *p)
{
    uint64_t products = p->note[0][SUM_PRODUCTS], cols = (uint64_t)p->request.B->cols, all;
    return (int64_t)(tl_mul_fits(p->rows, cols, &all) && all < products ? all : products);
}

uint64_t tl_product_most(tl_product *p)
{
    const tl_step_need numeric = p->road->most(p), symbolic = p->road->needs(p, 0);
    const uint64_t of = (p->request.plan ? of_plan : of_c)(p, most_entries(p), numeric);
    return p->begun + pointers_of(p, p->types.ptr)
           + tl_bytes_max(of, tl_bytes_max(symbolic.lists, numeric.lists) + symbolic.scratch);
}

tulle_status tl_product_refused(tl_product *p)
{
    const tl_once *once = p->once;
    const uint64_t limit = p->request.memory_limit;
    uint64_t need = tl_bytes_max(tl_dmem_refused(p->gpu), tl_dmem_most(p->gpu));
    if (p->known == TL_NOTHING)
        return tl_fail(p->b, TULLE_ELIMIT,
                       "the product needs %" PRIu64 " bytes on the device before it is known how large C is, "
                       "the limit is %" PRIu64,
                       tl_bytes_max(need, to_begin(p)), limit);
    bool row = p->rows == 1 && p->request.row_most > 0, counted = p->known == TL_COUNTED && !row;
    uint64_t rows = p->begun + pointers_of(p, p->types.ptr);
    int64_t nnz = counted ? p->c_nnz : row ? p->request.row_most : most_entries(p);
    tl_step_need numeric = {0, 0};
    if (!once && nnz) numeric = counted ? p->road->needs(p, 1) : p->road->most(p);
    if (!once && !counted) {
        tl_step_need symbolic = p->road->needs(p, 0);
        need = tl_bytes_max(need, rows + symbolic.lists + symbolic.scratch);
    }
    need = tl_bytes_max(need, rows + (p->request.plan ? of_plan : of_c)(p, nnz, numeric));
    if (once)
        need = tl_bytes_max(need, rows + tl_once_bytes(p, once) + columns_of(nnz, p->types.idx)
                                      + values_of(p, nnz));
    return tl_fail(p->b, TULLE_ELIMIT,
                   "the product needs %" PRIu64 " bytes%s on the device (%s has %s%" PRId64
                   " entries), the limit is %" PRIu64,
                   need, counted ? "" : " at most", row ? "a row of C" : "C", counted ? "" : "at most ", nnz,
                   limit);
}
