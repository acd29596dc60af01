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

static void drop_values(tl_gpu *gpu, tl_gpu_replay *r)
{
    const tl_dmem all[] = {r->cursors, r->a_val, r->b_val, r->c_val};
    for (int i = 0; i < TL_COUNT(all); i++) tl_dmem_free(gpu, all[i]);
}

/* What a run will take beside what the plan holds: it must find it within the limit. */
static tulle_status count_runs(tl_gpu_replay *r, const tl_gpu_request *request, uint64_t c_bytes, tulle_stats *stats)
{
    tl_product *p = &r->p;
    uint64_t most = tl_dmem_taken(p->gpu) + (p->c_nnz ? tl_step_needs(p, 1).scratch : 0);
    if (most < tl_dmem_most(p->gpu)) most = tl_dmem_most(p->gpu);
    if (request->memory_limit && most > request->memory_limit) return TULLE_ELIMIT;
    if (most > stats->peak_bytes) stats->peak_bytes = most;
    stats->workspace_bytes = stats->peak_bytes > c_bytes ? stats->peak_bytes - c_bytes : 0;
    return TULLE_OK;
}

tulle_status tl_gpu_replay_make(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **pattern,
                                tl_gpu_replay **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_gpu_replay *r = NULL;
    tulle_matrix *C = NULL;
    bool begun = false;
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
    once.plan = true;
    once.recipe = &r->recipe;
    TRY(tl_gpu_multiply(b, gpu, &once, &C, stats));
    /* And the state that a run starts from: begun without values, then ready for those to come. */
    once.trusted = true;
    once.A = &r->A;
    once.B = &r->B;
    r->A.values = r->B.values = NULL;
    tl_product *p = &r->p;
    tl_dmem_begin(gpu, C->view.place == TULLE_DEVICE ? tl_gpu_bytes_of(&C->view) : 0, request->memory_limit);
    begun = true;
    TRY(tl_product_begin(b, gpu, &once, p));
    p->types.val = (int)r->A.val_type;
    p->request.values = true;
    TRY(tl_product_pattern(p));
    TRY(tl_product_allocate(p, false));             /* runs bring their values */
    if (p->c_nnz) TRY(tl_step_balance(p, 1));
    if (p->c_nnz) TRY(tl_step_load(p));             /* runs find their kernels */
    TRY(tl_dmem_alloc(b, gpu, TL_ALIGN, "cursors", &r->cursors));
    TRY(p->driver->copy(b, p->device, r->cursors, p->cursors[1], TL_ALIGN));
    p->cursors[1] = r->cursors;
    if (request->A->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)r->A.nnz * r->size, "values of A", &r->a_val));
    if (request->B->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)r->B.nnz * r->size, "values of B", &r->b_val));
    if (request->place == TULLE_HOST) TRY(tl_dmem_alloc(b, gpu, (uint64_t)p->c_nnz * r->size, "values of C", &r->c_val));
    TRY(count_runs(r, request, tl_gpu_bytes_of(&C->view), stats));
    tl_gpu_retain(gpu);
    *pattern = C;
    *out = r;
    C = NULL;
    r = NULL;
done:
    if (begun && status == TULLE_ELIMIT) status = tl_product_refused(&r->p, NULL);
    tl_matrix_free(b, C);
    if (r) {
        drop_values(gpu, r);
        tl_product_done(&r->p);
        tl_free(b, r);
    }
    if (begun) tl_dmem_end(gpu);
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
    drop_values(gpu, r);
    r->p.c_val = (tl_dmem){0, 0};
    tl_product_done(&r->p);
    tl_free(b, r);
    tl_gpu_release(gpu);
}
