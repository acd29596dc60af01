/* SPDX-License-Identifier: MIT
 *
 * replay.c - repeats a product with new values: the operands' patterns, row pointers, classes of rows and
 * memory for C stay on the device; a run uploads values that are on the host, and executes only the numeric
 * step. */
#include "gpu/product.h"
#include <string.h>

struct tl_gpu_replay {
    tl_product  p;
    tl_recipe   recipe;
    tulle_csr   A, B;
    tl_dmem     a_val, b_val, c_val;    /* for values that are on the host */
    tl_dmem     cursors;                /* of the numeric step, as the next product uses the board */
    size_t      size;
};

static void drop_values(tl_gpu *gpu, tl_gpu_replay *r)
{
    const tl_dmem all[] = {r->cursors, r->a_val, r->b_val, r->c_val};
    for (int i = 0; i < TL_COUNT(all); i++) tl_dmem_free(gpu, all[i]);
}

/* The memory of a run in addition to that of the plan; both must be within the limit. */
static tulle_status count_runs(tl_gpu_replay *r, uint64_t c_bytes, tulle_stats *stats)
{
    tl_product *p = &r->p;
    const uint64_t limit = p->request.memory_limit;
    uint64_t most = tl_dmem_taken(p->gpu) + (p->c_nnz ? p->road->needs(p, 1).scratch : 0);
    if (most < tl_dmem_most(p->gpu)) most = tl_dmem_most(p->gpu);
    if (limit && most > limit) return TULLE_ELIMIT;
    stats->peak_bytes = most;
    stats->workspace_bytes = most > c_bytes ? most - c_bytes : 0;
    return TULLE_OK;
}

/* Allocates memory for values on the host.  Values on the device are the caller's arrays in a run; for the
 * run that computes the columns of C, temporary ones (spare) are used. */
static tulle_status take_values(tl_gpu_replay *r, tl_dmem spare[3])
{
    tulle_status status = TULLE_OK;
    tl_product *p = &r->p;
    const tl_gpu_request *q = &p->request;
    const struct { bool host; int64_t nnz; const char *what; tl_dmem *mem, *use; } parts[3] = {
        {q->A->place == TULLE_HOST, q->A->nnz, "values of A", &r->a_val, &p->A.val},
        {q->B->place == TULLE_HOST, q->B->nnz, "values of B", &r->b_val, &p->B.val},
        {q->place == TULLE_HOST, p->c_nnz, "values of C", &r->c_val, &p->c_val},
    };
    for (int i = 0; i < TL_COUNT(parts); i++) {
        tl_dmem *mem = parts[i].host ? parts[i].mem : &spare[i];
        uint64_t bytes = (uint64_t)parts[i].nnz * r->size;
        TRY(tl_dmem_alloc(p->b, p->gpu, bytes, parts[i].what, mem));
        if (bytes) TRY(p->driver->fill(p->b, p->device, *mem, 0, bytes));
        *parts[i].use = *mem;
    }
done:
    return status;
}

/* Creates the data that runs use; the columns of C are computed by a run with zeros as values. */
static tulle_status make(tl_gpu_replay *r, const tl_gpu_request *request, tulle_matrix **C,
                         tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_product *p = &r->p;
    tl_gpu *gpu = p->gpu;
    tl_dmem spare[3] = {{0, 0}, {0, 0}, {0, 0}};
    double start = tl_gpu_now(gpu), counted;
    uint64_t waits = gpu->driver->waits(gpu->device);
    TRY(tl_product_begin(p->b, gpu, request, p));
    p->types.val = (int)r->A.val_type;
    p->request.values = true;
    TRY(tl_product_pattern(p));
    counted = tl_gpu_now(gpu);
    if (tl_progress(p->b, "symbolic", 0.5)) {
        status = tl_fail(p->b, TULLE_ECANCEL, "cancelled after the symbolic step");
        goto done;
    }
    TRY(tl_product_allocate(p, false));             /* runs pass their own values */
    TRY(take_values(r, spare));
    TRY(p->road->fill(p));
    for (int i = 0; i < TL_COUNT(spare); i++) {
        tl_dmem_free(gpu, spare[i]);
        spare[i] = (tl_dmem){0, 0};
    }
    p->c_val = (tl_dmem){0, 0};
    TRY(tl_result_pattern(p, C));
    TRY(tl_product_mark(p, "result"));
    TRY(tl_dmem_alloc(p->b, gpu, TL_ALIGN, "cursors", &r->cursors));
    TRY(p->driver->copy(p->b, p->device, r->cursors, p->cursors[1], TL_ALIGN));
    p->cursors[1] = r->cursors;
    stats->waits = (int)(gpu->driver->waits(gpu->device) - waits);
    TRY(p->driver->wait(p->b, p->device));
    stats->c_nnz = p->c_nnz;
    stats->products = (int64_t)p->note[0][SUM_PRODUCTS];
    TRY(p->road->shares(p, stats));
    if (p->timed) TRY(tl_product_times(p, stats));
    stats->sec_upload += p->uploading;
    stats->sec_symbolic += counted - start - p->uploading;
    stats->sec_numeric += tl_gpu_now(gpu) - counted;
    TRY(count_runs(r, tl_gpu_bytes_of(&(*C)->view), stats));
done:
    for (int i = 0; i < TL_COUNT(spare); i++) tl_dmem_free(gpu, spare[i]);
    return status;
}

tulle_status tl_gpu_replay_make(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request,
                                tulle_matrix **pattern, tl_gpu_replay **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_gpu_replay *r = NULL;
    tulle_matrix *C = NULL;
    *out = NULL;
    *pattern = NULL;
    tl_dmem_begin(gpu, request->before, request->memory_limit);
    TRY(tl_calloc(b, &r, 1, sizeof *r, "a plan"));
    r->recipe = *request->recipe;
    r->recipe.once = false;                         /* runs need a separate numeric step */
    r->A = *request->A;
    r->B = *request->B;
    r->A.values = r->B.values = NULL;
    r->size = tl_type_size(r->A.val_type);
    r->p.b = b;
    r->p.gpu = gpu;
    tl_gpu_request mine = *request;
    mine.values = mine.drop_zeros = false;
    mine.plan = true;
    mine.recipe = &r->recipe;
    mine.A = &r->A;
    mine.B = &r->B;
    TRY(make(r, &mine, &C, stats));
    tl_gpu_retain(gpu);
    *pattern = C;
    *out = r;
    C = NULL;
    r = NULL;
done:
    if (r && status == TULLE_ELIMIT) status = tl_product_refused(&r->p);
    if (C) tl_gpu_rest(b, gpu);                     /* it may still be copied to the host */
    tl_matrix_free(b, C);
    if (r) {
        drop_values(gpu, r);
        r->p.c_val = (tl_dmem){0, 0};
        tl_product_done(&r->p);
        tl_free(b, r);
    }
    tl_dmem_end(gpu);
    return status;
}

tulle_status tl_gpu_replay_run(tl_base *b, tl_gpu_replay *r, const void *a_val, const void *b_val,
                               void *c_val)
{
    tulle_status status = TULLE_OK;
    tl_product *p = &r->p;
    p->b = b;
    p->timed = false;
    p->A.val = r->a_val.handle ? r->a_val : (tl_dmem){(uint64_t)(uintptr_t)a_val, 0};
    p->B.val = r->b_val.handle ? r->b_val : (tl_dmem){(uint64_t)(uintptr_t)b_val, 0};
    p->c_val = r->c_val.handle ? r->c_val : (tl_dmem){(uint64_t)(uintptr_t)c_val, 0};
    if (r->a_val.handle && r->A.nnz)
        TRY(tl_gpu_send(b, p->gpu, r->a_val, a_val, r->A.nnz, r->size, 0));
    if (r->b_val.handle && r->B.nnz)
        TRY(tl_gpu_send(b, p->gpu, r->b_val, b_val, r->B.nnz, r->size, 0));
    if (p->c_nnz) TRY(p->road->numeric(p));
    if (r->c_val.handle && p->c_nnz)
        TRY(tl_gpu_fetch(b, p->gpu, 0, c_val, r->c_val, (uint64_t)p->c_nnz * r->size));
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
