/* SPDX-License-Identifier: MIT
 * place.c - matrices carried between host and device.
 *
 * Host memory, pinned and kept with the device: up to SLOTS times SLOT_BYTES, which long arrays pass through. */
#include "gpu/product.h"
#include <string.h>

enum {
    ARRAYS = 3,
    SLOTS = TL_FLAGS, SLOT_BYTES = 4 << 20,
    SHORT = 1 << 20                     /* bytes that are not worth it */
};

/* ---- arrays */

tulle_status tl_gpu_staging(tl_base *b, tl_gpu *gpu, uint64_t bytes)
{
    tulle_status status = TULLE_OK;
    if (gpu->staging_bytes >= bytes) return TULLE_OK;
    gpu->driver->unpin(gpu->device, gpu->staging);
    gpu->staging = NULL;
    gpu->staging_bytes = 0;
    TRY(gpu->driver->pinned(b, gpu->device, bytes, &gpu->staging));
    gpu->staging_bytes = bytes;
done:
    return status;
}

typedef struct load {
    const char *from;
    char       *to;
    int64_t     count, first;
    size_t      size;
} load;

static void load_work(void *arg, int thread, int threads)
{
    const load *l = arg;
    int64_t i0 = tl_part(l->count, thread, threads), i1 = tl_part(l->count, thread + 1, threads);
    const char *from = l->from + (size_t)i0 * l->size;
    char *to = l->to + (size_t)i0 * l->size;
    if (l->first == 0) memcpy(to, from, (size_t)(i1 - i0) * l->size);
    else if (l->size == 4)
        for (int64_t i = 0; i < i1 - i0; i++) ((int32_t *)to)[i] = ((const int32_t *)from)[i] - (int32_t)l->first;
    else
        for (int64_t i = 0; i < i1 - i0; i++) ((int64_t *)to)[i] = ((const int64_t *)from)[i] - l->first;
}

tulle_status tl_gpu_send(tl_base *b, tl_gpu *gpu, tl_dmem to, const void *from, int64_t count, size_t size, int64_t first)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    uint64_t bytes = (uint64_t)count * size;
    int64_t most = (int64_t)(SLOT_BYTES / size), sent = 0, settled = 0;
    if (first == 0 && bytes < SHORT) return d->upload(b, gpu->device, to, from, bytes);
    status = tl_gpu_staging(b, gpu, bytes < SLOT_BYTES ? (bytes + 4095) / 4096 * 4096 : (uint64_t)SLOTS * SLOT_BYTES);
    if (status == TULLE_ENOMEM && first == 0) {
        b->error[0] = 0;
        return d->upload(b, gpu->device, to, from, bytes);
    }
    if (status != TULLE_OK) goto done;
    for (int64_t at = 0; at < count; at += most, sent++) {
        int slot = (int)(sent % SLOTS);
        load l = {(const char *)from + (size_t)at * size, (char *)gpu->staging + (size_t)slot * SLOT_BYTES,
                  count - at < most ? count - at : most, first, size};
        if (sent >= SLOTS) {
            settled = sent - SLOTS + 1;
            TRY(d->settle(b, gpu->device, slot));
        }
        tl_team_run(b->team, l.count >> 14 ? (int)(l.count >> 14) : 1, load_work, &l);
        TRY(d->send(b, gpu->device, 0, (tl_dmem){to.handle, to.offset + (uint64_t)at * size}, l.to, (uint64_t)l.count * size));
        TRY(d->flag(b, gpu->device, 0, slot));
    }
    for (; settled < sent; settled++) TRY(d->settle(b, gpu->device, (int)(settled % SLOTS)));
done:
    if (status != TULLE_OK && sent > 0) {       /* what is under way leaves the slots before others take them */
        char said[TL_ERROR_MAX];
        memcpy(said, b->error, sizeof said);
        d->wait(b, gpu->device);
        memcpy(b->error, said, sizeof said);
    }
    return status;
}

/* ---- matrices */

tulle_status tl_gpu_move(tl_base *b, tl_gpu *gpu, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    const void *from[ARRAYS] = {A->row_ptr, A->col_idx, A->values};
    uint64_t bytes[ARRAYS] = {(uint64_t)(A->rows + 1) * tl_index_size(A->ptr_type), (uint64_t)A->nnz * tl_index_size(A->idx_type),
                              A->values ? (uint64_t)A->nnz * tl_type_size(A->val_type) : 0};
    tl_dmem to[ARRAYS] = {{0, 0}};
    tulle_matrix *copy = NULL;
    *out = NULL;
    if (place == TULLE_HOST && A->place == TULLE_HOST) return tl_csr_convert(b, A, 0, 0, 0, out);
    if (place == TULLE_HOST) {
        TRY(tl_matrix_create(b, A->rows, A->cols, A->nnz, A->ptr_type, A->idx_type, A->values ? (int)A->val_type : 0, &copy));
        copy->view.val_type = A->val_type;
        void *host[ARRAYS] = {copy->row_ptr, copy->col_idx, copy->values};
        for (int i = 0; i < ARRAYS; i++)
            if (bytes[i]) TRY(d->download(b, gpu->device, host[i], (tl_dmem){(uint64_t)(uintptr_t)from[i], 0}, bytes[i]));
        TRY(d->wait(b, gpu->device));
    } else {
        tulle_csr view = *A;
        for (int i = 0; i < ARRAYS; i++) {
            if (i == 2 && !A->values) continue;
            TRY(tl_dmem_alloc(b, gpu, bytes[i], "a matrix on the device", &to[i]));
            if (!bytes[i]) continue;
            if (A->place == TULLE_DEVICE)
                TRY(d->copy(b, gpu->device, to[i], (tl_dmem){(uint64_t)(uintptr_t)from[i], 0}, bytes[i]));
            else
                TRY(d->upload(b, gpu->device, to[i], from[i], bytes[i]));
        }
        view.row_ptr = (void *)(uintptr_t)to[0].handle;
        view.col_idx = (void *)(uintptr_t)to[1].handle;
        view.values = (void *)(uintptr_t)to[2].handle;
        TRY(d->wait(b, gpu->device));
        TRY(tl_matrix_on_device(b, gpu, view, &copy));
        to[0].handle = to[1].handle = to[2].handle = 0;
    }
    *out = copy;
    copy = NULL;
done:
    tl_matrix_free(b, copy);
    for (int i = 0; i < ARRAYS; i++) tl_dmem_free(gpu, to[i]);
    return status;
}

static void disown(tulle_dense_matrix *A)
{
    tl_gpu *gpu = A->owner;
    tl_dmem_free(gpu, (tl_dmem){(uint64_t)(uintptr_t)A->view.values, 0});
    tl_gpu_release(gpu);
}

/* Gaps travel with the lines of a view on the host, and are closed there. */
tulle_status tl_gpu_dense_move(tl_base *b, tl_gpu *gpu, const tulle_dense *A, tulle_place place, tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    tulle_dense_matrix *host = NULL, *there = NULL;
    uint64_t size = tl_type_size(A->val_type), bytes = (uint64_t)A->rows * (uint64_t)A->cols * size;
    tl_dmem mem = {0, 0};
    *out = NULL;
    if (A->place == TULLE_DEVICE) {
        bool by_cols = A->order == TULLE_BY_COLS;
        int64_t lines = by_cols ? A->cols : A->rows;
        tulle_dense wide = *A;                  /* lines as long as they lie there */
        if (by_cols) wide.rows = A->ld;
        else wide.cols = A->ld;
        uint64_t whole = tl_dense_bytes(A);
        TRY(tl_dense_create(b, wide.rows, wide.cols, A->order, A->val_type, &host));
        if (lines > 0 && bytes > 0) TRY(d->download(b, gpu->device, host->view.values, (tl_dmem){(uint64_t)(uintptr_t)A->values, 0}, whole));
        TRY(d->wait(b, gpu->device));
        host->view.rows = A->rows;
        host->view.cols = A->cols;
    }
    TRY(tl_dense_convert(b, host ? &host->view : A, A->order, 0, &there));
    if (place == TULLE_DEVICE) {
        tl_dense_free(b, host);
        host = there;
        there = NULL;
        TRY(tl_calloc(b, &there, 1, sizeof *there, "a dense matrix"));
        TRY(tl_dmem_alloc(b, gpu, bytes, "a dense matrix on the device", &mem));
        if (bytes) TRY(d->upload(b, gpu->device, mem, host->view.values, bytes));
        TRY(d->wait(b, gpu->device));
        *there = (tulle_dense_matrix){.view = host->view, .owner = tl_gpu_retain(gpu), .disown = disown};
        there->view.values = (void *)(uintptr_t)mem.handle;
        there->view.place = TULLE_DEVICE;
        mem.handle = 0;
    }
    *out = there;
    there = NULL;
done:
    tl_dense_free(b, host);
    tl_dense_free(b, there);
    tl_dmem_free(gpu, mem);
    return status;
}
