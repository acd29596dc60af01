/* SPDX-License-Identifier: MIT
 *
 * spmm.c - sparse times dense on a device: A is brought there, looked at once, and multiplied as often as wanted.
 *
 * Memory: A where it came from the host (or where its arrays are not aligned to 16 bytes, which the kernels want); what
 * rows.c, ellr.c or tf32.c make of it. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdio.h>

enum { ARRAYS = 3 };

/* The three arrays on the device, at multiples of 16 bytes. */
static tulle_status bring(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = s->gpu->driver;
    const void *from[ARRAYS] = {A->row_ptr, A->col_idx, A->values};
    uint64_t bytes[ARRAYS] = {(uint64_t)(A->rows + 1) * tl_index_size(A->ptr_type), (uint64_t)A->nnz * tl_index_size(A->idx_type),
                              (uint64_t)A->nnz * tl_type_size(A->val_type)};
    tl_dmem *to[ARRAYS] = {&s->ptr, &s->col, &s->val};
    for (int i = 0; i < ARRAYS; i++) {
        tl_dmem there = {(uint64_t)(uintptr_t)from[i], 0};
        bool fits = A->place == TULLE_DEVICE && (i == 0 || there.handle % 16 == 0 || s->gpu->driver != &tl_driver_cuda);
        if (fits) {
            *to[i] = there;
            continue;
        }
        TRY(tl_dmem_alloc(b, s->gpu, bytes[i], "A on the device", &s->own[i]));
        if (bytes[i] && A->place == TULLE_DEVICE) TRY(d->copy(b, s->gpu->device, s->own[i], there, bytes[i]));
        else if (bytes[i]) TRY(d->upload(b, s->gpu->device, s->own[i], from[i], bytes[i]));
        *to[i] = s->own[i];
    }
done:
    return status;
}

/* TULLE_SPMM_SHAPE=c_log2,k_log2,strips,block,staged: for tests and measurements. */
static tl_rows_shape forced_shape(void)
{
    tl_rows_shape f = {0};
    const char *text = tl_env("TULLE_SPMM_SHAPE");
    const char *format = "%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32;
    if (!text || sscanf(text, format, &f.c_log2, &f.k_log2, &f.strips, &f.block, &f.staged) != 5
        || f.c_log2 + f.k_log2 > 5 || f.strips < 1 || f.strips > 2 || f.staged > 1 || f.block < 32 || f.block > 256
        || (f.block & (f.block - 1)))
        f.block = 0;
    return f;
}

tulle_status tl_gpu_spmm_make(tl_base *b, tl_gpu *gpu, const tl_gpu_spmm_request *request, tl_gpu_spmm **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = request->A;
    tl_gpu_spmm *s = NULL;
    double start = tl_now();
    *out = NULL;
    if (A->rows >= UINT32_MAX)
        return tl_fail(b, TULLE_EOVERFLOW, "%" PRId64 " rows of A: a device takes at most %" PRIu32, A->rows, UINT32_MAX - 1);
    TRY(tl_calloc(b, &s, 1, sizeof *s, "A made ready"));
    *s = (tl_gpu_spmm){.gpu = gpu, .rows = A->rows, .cols = A->cols, .nnz = A->nnz, .type = A->val_type,
                       .limit = request->memory_limit, .forced = forced_shape()};
    s->types = (tl_types){.ptr = A->ptr_type == TULLE_I64 ? 64 : 32, .idx = A->idx_type == TULLE_I64 ? 64 : 32, .key = 32,
                          .val = (int)A->val_type};
    tl_gpu_retain(gpu);
    TRY(bring(b, s, A));
    TRY(tl_rows_look(b, s, A, request->trusted));
    stats->sec_check = tl_now() - start;
    start = tl_now();
    if (request->ellr)
        TRY(tl_ellr_make(b, s, (tl_ellr_shape){request->ellr_threads, request->ellr_columns, request->ellr_block}));
    if (!s->ellr.val.handle) TRY(tl_rows_make(b, s));
    if (request->allow_tf32 && !request->ellr) TRY(tl_tf32_make(b, s));
    if (!gpu->foreign) TRY(gpu->driver->wait(b, gpu->device));
    stats->sec_analyze = tl_now() - start;
    *out = s;
    s = NULL;
done:
    tl_gpu_spmm_free(b, s);
    return status;
}

tulle_status tl_spmm_chunk(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta)
{
    if (tl_tf32_takes(s, chunk->cols)) return tl_tf32_run(b, s, chunk, alpha.re, beta.re);
    return s->ellr.val.handle ? tl_ellr_run(b, s, chunk, alpha, beta) : tl_rows_run(b, s, chunk, alpha, beta);
}

tulle_status tl_gpu_spmm_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, tulle_dense *Y,
                             tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = s->gpu->driver;
    uint64_t waits = d->waits(s->gpu->device), line = (uint64_t)X->ld * tl_type_size(s->type);
    if (X->place == TULLE_DEVICE && X->order == TULLE_BY_ROWS && line > UINT32_MAX) {
        status = tl_fail(b, TULLE_EOVERFLOW, "from one row of X to the next are %" PRIu64 " bytes: a device takes at most %" PRIu32,
                         line, UINT32_MAX);
        goto done;
    }
    s->tf32.used = false;
    TRY(tl_chunks_run(b, s, alpha, X, beta, Y, stats));
    if (s->tf32.val.handle) stats->policy = s->tf32.used ? "auto, tf32" : "auto";
    stats->waits = (int)(d->waits(s->gpu->device) - waits);
done:
    return status;
}

void tl_gpu_spmm_free(tl_base *b, tl_gpu_spmm *s)
{
    if (!s) return;
    tl_gpu *gpu = s->gpu;
    tl_rows_done(s);
    tl_ellr_done(s);
    tl_tf32_done(s);
    for (int i = 0; i < ARRAYS; i++) tl_dmem_free(gpu, s->own[i]);
    tl_free(b, s);
    tl_gpu_release(gpu);
}
