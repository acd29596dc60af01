/* SPDX-License-Identifier: MIT
 *
 * replay.c - the same product again with new values: operands' patterns, row pointers, classes of rows and room for C
 * stay on the device; a run uploads values where they come from the host and goes straight to the numeric step. */
#include "gpu/product.h"
#include <string.h>

struct tl_gpu_replay {
    tl_product  p;
    tl_recipe   recipe;
    tulle_csr   A, B;
    tl_dmem     a_val, b_val, c_val;    /* for values that live on the host */
    tl_dmem     cursors;                /* of the numeric step: the board is the next product's */
    size_t      size;
};

tulle_status tl_gpu_replay_make(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **pattern,
                                tl_gpu_replay **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_gpu_replay *r = NULL;
    tulle_matrix *C = NULL;
    *out = NULL;
    *pattern = NULL;
    TRY(tl_calloc(b, &r, 1, sizeof *r, "a plan"));
    r->recipe = *request->recipe;
    r->recipe.once = false;                         /* a run is a numeric step: there must be one */
    r->A = *request->A;
    r->B = *request->B;
    r->size = tl_type_size(r->A.val_type);
    /* The pattern of C, by a product that looks at no values. */
    tl_gpu_request once = *request;
    once.values = false;
    once.drop_zeros = false;
    once.recipe = &r->recipe;
    TRY(tl_gpu_multiply(b, gpu, &once, &C, stats));
    /* And the state that a run starts from: begun without values, then ready for those to come. */
    once.trusted = true;
    once.A = &r->A;
    once.B = &r->B;
    r->A.values = r->B.values = NULL;
    tl_product *p = &r->p;
    TRY(tl_product_begin(b, gpu, &once, p));
    p->types.val = (int)r->A.val_type;
    p->request.values = true;
    TRY(tl_product_pattern(p));
    TRY(tl_product_allocate(p));
    tl_dmem_free(gpu, p->c_val);                    /* runs bring their own */
    p->c_val = (tl_dmem){0, 0};
    if (p->c_nnz) TRY(tl_step_balance(p, 1));
    TRY(tl_dmem_alloc(b, gpu, TL_ALIGN, "cursors", &r->cursors));
    TRY(p->driver->copy(b, p->device, r->cursors, p->cursors[1], TL_ALIGN));
    p->cursors[1] = r->cursors;
    if (request->A->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)r->A.nnz * r->size, "values of A", &r->a_val));
    if (request->B->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)r->B.nnz * r->size, "values of B", &r->b_val));
    if (request->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)p->c_nnz * r->size, "values of C", &r->c_val));
    tl_gpu_retain(gpu);
    *pattern = C;
    *out = r;
    C = NULL;
    r = NULL;
done:
    tl_matrix_free(b, C);
    if (r) {
        tl_dmem_free(gpu, r->cursors);
        tl_dmem_free(gpu, r->a_val);
        tl_dmem_free(gpu, r->b_val);
        tl_dmem_free(gpu, r->c_val);
        tl_product_done(&r->p);
        tl_free(b, r);
    }
    return status;
}

tulle_status tl_gpu_replay_run(tl_base *b, tl_gpu_replay *r, const void *a_val, const void *b_val, void *c_val)
{
    tulle_status status = TULLE_OK;
    tl_product *p = &r->p;
    p->b = b;
    p->timed = false;
    p->A.val = r->a_val.handle ? r->a_val : (tl_dmem){(uint64_t)(uintptr_t)a_val, 0};
    p->B.val = r->b_val.handle ? r->b_val : (tl_dmem){(uint64_t)(uintptr_t)b_val, 0};
    p->c_val = r->c_val.handle ? r->c_val : (tl_dmem){(uint64_t)(uintptr_t)c_val, 0};
    if (r->a_val.handle && r->A.nnz) TRY(p->driver->upload(b, p->device, r->a_val, a_val, (uint64_t)r->A.nnz * r->size));
    if (r->b_val.handle && r->B.nnz) TRY(p->driver->upload(b, p->device, r->b_val, b_val, (uint64_t)r->B.nnz * r->size));
    if (p->c_nnz) TRY(tl_step_numeric(p));
    if (r->c_val.handle && p->c_nnz)
        TRY(p->driver->download(b, p->device, c_val, r->c_val, (uint64_t)p->c_nnz * r->size));
    if (!p->gpu->foreign || r->c_val.handle) TRY(p->driver->wait(b, p->device));
done:
    p->c_val = (tl_dmem){0, 0};
    return status;
}

void tl_gpu_replay_free(tl_base *b, tl_gpu_replay *r)
{
    if (!r) return;
    tl_gpu *gpu = r->p.gpu;
    tl_dmem_free(gpu, r->cursors);
    tl_dmem_free(gpu, r->a_val);
    tl_dmem_free(gpu, r->b_val);
    tl_dmem_free(gpu, r->c_val);
    r->p.c_val = (tl_dmem){0, 0};
    tl_product_done(&r->p);
    tl_free(b, r);
    tl_gpu_release(gpu);
}
