/* SPDX-License-Identifier: MIT
 *
 * spmm.c - SpMM on a device: A is copied to the device and analyzed once, and multiplied any number of
 * times.  If A does not fit on the device, it stays on the host, and bands.c is used.
 *
 * Memory: A, if it is on the host (or if its arrays are not aligned to 16 bytes, which the kernels require),
 * until it is converted to ELLPACK-R; the values of A for a plan, in any case; the data structures of
 * rows.c, ellr.c or tf32.c.  Setting new values of an A in ELLPACK-R temporarily takes the memory of A in
 * CSR again. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdio.h>

enum { ARRAYS = 3, VALUES = 2 };       /* row_ptr, col_idx, values */

/* Aligned to 16 bytes; arrays that are already on the device are used or copied there, and need no
 * transfer. */
tulle_status tl_spmm_ask(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, int64_t first,
                         tl_parcel parcels[ARRAYS])
{
    tulle_status status = TULLE_OK;
    const void *from[ARRAYS] = {A->row_ptr, A->col_idx, A->values};
    const int64_t count[ARRAYS] = {A->rows + 1, A->nnz, A->nnz};
    const size_t size[ARRAYS] = {tl_index_size(A->ptr_type), tl_index_size(A->idx_type),
                                 tl_type_size(A->val_type)};
    tl_dmem *to[ARRAYS] = {&s->ptr, &s->col, &s->val};
    const uint64_t before = tl_dmem_held(s->gpu);
    for (int i = 0; i < ARRAYS; i++) {
        tl_dmem there = {(uint64_t)(uintptr_t)from[i], 0};
        uint64_t bytes = (uint64_t)count[i] * size[i];
        parcels[i] = (tl_parcel){.size = size[i]};
        bool aligned = i == 0 || there.handle % 16 == 0 || s->gpu->driver != &tl_driver_cuda;
        if (A->place == TULLE_DEVICE && aligned && !(i == VALUES && s->keeps)) {
            *to[i] = there;
            continue;
        }
        TRY(tl_dmem_alloc(b, s->gpu, bytes, "A on the device", &s->own[i]));
        *to[i] = s->own[i];
        if (A->place == TULLE_HOST)
            parcels[i] = (tl_parcel){s->own[i], from[i], count[i], size[i], i == 0 ? first : 0, 0};
        else if (bytes) TRY(s->gpu->driver->copy(b, s->gpu->device, s->own[i], there, bytes));
    }
    s->taken = tl_dmem_held(s->gpu) - before;
done:
    return status;
}

static tulle_status bring(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, int64_t first)
{
    tulle_status status = TULLE_OK;
    tl_parcel parcels[ARRAYS];
    TRY(tl_spmm_ask(b, s, A, first, parcels));
    for (int i = 0; i < ARRAYS; i++) {
        const tl_parcel *p = &parcels[i];
        if (p->count) TRY(tl_gpu_send(b, s->gpu, p->to, p->from, p->count, p->size, p->first));
    }
done:
    return status;
}

/* TULLE_SPMM_SHAPE=c_log2,k_log2,strips,block,way,turns: for tests and measurements. */
static tl_rows_shape forced_shape(void)
{
    tl_rows_shape f = {0};
    uint32_t way = 0;
    const char *text = tl_env("TULLE_SPMM_SHAPE");
    const char *format = "%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32 ",%" SCNu32;
    if (!text || sscanf(text, format, &f.c_log2, &f.k_log2, &f.strips, &f.block, &way, &f.turns) != 6
        || f.c_log2 + f.k_log2 > 5 || f.strips < 1 || f.strips > 2 || way < TL_BY_STRIPS || way > TL_BY_EIGHTS
        || f.block < 32 || f.block > 256 || (f.block & (f.block - 1)) || f.turns < 1 || f.turns > 64
        || (f.turns & (f.turns - 1)))
        f.block = 0;
    f.way = (tl_rows_way)way;
    return f;
}

bool tl_spmm_shape_wrong(char *why, size_t bytes)
{
    const char *text = tl_env("TULLE_SPMM_SHAPE");
    if (!text || forced_shape().block) return false;
    snprintf(why, bytes,
             "the variable TULLE_SPMM_SHAPE is \"%.60s\"; it takes six numbers, "
             "c_log2,k_log2,strips,block,way,turns, "
             "such as 2,0,1,64,1,1",
             text);
    return true;
}

/* Bytes of a column of X and one of Y, which ELLPACK-R and blocks must leave free. */
static uint64_t column_bytes(const tulle_csr *A)
{
    return ((uint64_t)A->rows + (uint64_t)A->cols) * tl_type_size(A->val_type) + 2 * TL_ALIGN;
}

uint64_t tl_spmm_room(const tl_gpu_spmm *s, double need)
{
    const uint64_t once = tl_gpu_caps(s->gpu)->memory_free;
    if (s->limit) return s->limit > s->taken ? s->limit - s->taken : 0;
    return need < (double)(once / 16) ? once / 2 : tl_dmem_left(s->gpu) / 2;
}

/* Frees the CSR arrays that were allocated from the pool, in queue order. */
static void drop_csr(tl_gpu_spmm *s)
{
    tl_rows_done(s);
    for (int i = 0; i < ARRAYS; i++) {
        tl_dmem_free(s->gpu, s->own[i]);
        s->own[i] = (tl_dmem){0, 0};
    }
    s->ptr = s->col = s->val = (tl_dmem){0, 0};
    s->taken = 0;
}

tulle_status tl_spmm_ready(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, int64_t first,
                           tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = request->A;
    uint64_t before = tl_dmem_held(s->gpu) - s->taken;
    double start = tl_gpu_now(s->gpu);
    if (!s->ptr.handle) TRY(bring(b, s, A, first));
    TRY(tl_rows_look(b, s, A, request->trusted));
    stats->sec_check = tl_gpu_now(s->gpu) - start;
    start = tl_gpu_now(s->gpu);
    s->taken = tl_dmem_held(s->gpu) - before + column_bytes(A);
    if (request->ellr)
        TRY(tl_ellr_make(b, s,
                         (tl_ellr_shape){request->ellr_threads, request->ellr_columns, request->ellr_block}));
    if (s->ellr.val.handle) drop_csr(s);                /* not needed any more */
    else TRY(tl_rows_make(b, s));
    if (request->allow_tf32 && !request->ellr) TRY(tl_tf32_make(b, s));
    if (!s->gpu->foreign) TRY(s->gpu->driver->wait(b, s->gpu->device));
    s->taken = tl_dmem_held(s->gpu) - before;
    stats->sec_analyze = tl_gpu_now(s->gpu) - start;
done:
    return status;
}

void tl_spmm_leave(tl_gpu_spmm *s)
{
    drop_csr(s);
    tl_ellr_done(s);
    tl_tf32_done(s);
}

tulle_status tl_gpu_spmm_make(tl_base *b, tl_gpu *gpu, const tl_gpu_spmm_request *request, tl_gpu_spmm **out,
                              tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = request->A;
    tl_gpu_spmm *s = NULL;
    *out = NULL;
    if (A->rows >= UINT32_MAX)
        return tl_fail(b, TULLE_EOVERFLOW, "%" PRId64 " rows of A: a device takes at most %" PRIu32, A->rows,
                       UINT32_MAX - 1);
    TRY(tl_calloc(b, &s, 1, sizeof *s, "A made ready"));
    *s = (tl_gpu_spmm){.gpu = gpu, .rows = A->rows, .cols = A->cols, .nnz = A->nnz, .type = A->val_type,
                       .limit = request->memory_limit, .forced = forced_shape(), .keeps = request->keep};
    s->types = (tl_types){.ptr = A->ptr_type == TULLE_I64 ? 64 : 32,
                          .idx = A->idx_type == TULLE_I64 ? 64 : 32,
                          .key = 32,
                          .val = (int)A->val_type};
    tl_gpu_retain(gpu);
    bool in_bands = tl_bands_needed(b, s, A);
    if (!in_bands) {
        status = tl_spmm_ready(b, s, request, 0, stats);
        in_bands = status == TULLE_ENOMEM && A->place == TULLE_HOST;
        if (in_bands) {                 /* less memory was free than expected */
            tl_trace(b, "sparse times dense: %s", b->error);
            b->error[0] = 0;
            tl_spmm_leave(s);
        } else if (status != TULLE_OK) goto done;
    }
    if (in_bands) TRY(tl_bands_make(b, s, request, stats));
    *out = s;
    s = NULL;
done:
    tl_gpu_spmm_free(b, s);
    return status;
}

/* ---- new values */

static tulle_status values_to_csr(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    const size_t size = tl_type_size(A->val_type);
    const tl_dmem there = {(uint64_t)(uintptr_t)A->values, 0};
    if (A->place == TULLE_HOST) TRY(tl_gpu_send(b, s->gpu, s->val, A->values, A->nnz, size, 0));
    else TRY(s->gpu->driver->copy(b, s->gpu->device, s->val, there, (uint64_t)A->nnz * size));
    if (s->tf32.val.handle) TRY(tl_tf32_fill(b, s));
done:
    return status;
}

static tulle_status values_to_ellr(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    const uint64_t taken = s->taken;
    TRY(bring(b, s, A, 0));
    TRY(tl_ellr_fill(b, s));
done:
    drop_csr(s);
    s->taken = taken;
    return status;
}

tulle_status tl_gpu_spmm_values(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    if (s->bands.on) {
        s->bands.A = *A;
        return TULLE_OK;
    }
    if (A->nnz == 0) return TULLE_OK;
    TRY((s->ellr.val.handle ? values_to_ellr : values_to_csr)(b, s, A));
    if (!s->gpu->foreign) TRY(s->gpu->driver->wait(b, s->gpu->device));
done:
    return status;
}

bool tl_gpu_spmm_in_bands(const tl_gpu_spmm *s)
{
    return s && s->bands.on;
}

tulle_status tl_spmm_chunk(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta)
{
    if (tl_tf32_takes(s, chunk->cols)) return tl_tf32_run(b, s, chunk, alpha.re, beta.re);
    return s->ellr.val.handle ? tl_ellr_run(b, s, chunk, alpha, beta) : tl_rows_run(b, s, chunk, alpha, beta);
}

tulle_status tl_gpu_spmm_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = s->gpu->driver;
    uint64_t waits = d->waits(s->gpu->device), line = (uint64_t)X->ld * tl_type_size(s->type);
    if (X->place == TULLE_DEVICE && X->order == TULLE_BY_ROWS && line > UINT32_MAX) {
        status =
            tl_fail(b, TULLE_EOVERFLOW,
                    "from one row of X to the next are %" PRIu64 " bytes: a device takes at most %" PRIu32,
                    line, UINT32_MAX);
        goto done;
    }
    s->tf32.used = false;
    if (s->bands.on) TRY(tl_bands_run(b, s, alpha, X, beta, Y, stats));
    else TRY(tl_chunks_run(b, s, alpha, X, beta, Y, 0, stats));
    if (s->tf32.val.handle) stats->policy = s->tf32.used ? "auto, tf32" : "auto";
    stats->waits = (int)(d->waits(s->gpu->device) - waits);
done:
    return status;
}

void tl_gpu_spmm_free(tl_base *b, tl_gpu_spmm *s)
{
    if (!s) return;
    tl_gpu *gpu = s->gpu;
    tl_spmm_leave(s);
    tl_free(b, s);
    tl_gpu_release(gpu);
}
