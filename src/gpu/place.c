/* SPDX-License-Identifier: MIT
 * place.c - copies matrices between host and device. */
#include "gpu/product.h"

enum { ARRAYS = 3 };

static void array_bytes(const tulle_csr *A, uint64_t bytes[ARRAYS])
{
    bytes[0] = (uint64_t)(A->rows + 1) * tl_index_size(A->ptr_type);
    bytes[1] = (uint64_t)A->nnz * tl_index_size(A->idx_type);
    bytes[2] = A->values ? (uint64_t)A->nnz * tl_type_size(A->val_type) : 0;
}

uint64_t tl_gpu_bytes_of(const tulle_csr *A)
{
    uint64_t bytes[ARRAYS], all = 0;
    array_bytes(A, bytes);
    for (int i = 0; i < ARRAYS; i++)
        if (i < 2 || A->values) all += tl_dmem_round(bytes[i]);
    return all;
}

tulle_status tl_gpu_move(tl_base *b, tl_gpu *gpu, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    const void *from[ARRAYS] = {A->row_ptr, A->col_idx, A->values};
    uint64_t bytes[ARRAYS];
    tl_dmem to[ARRAYS] = {{0, 0}};
    tulle_matrix *copy = NULL;
    *out = NULL;
    array_bytes(A, bytes);
    if (place == TULLE_HOST && A->place == TULLE_HOST) return tl_csr_convert(b, A, 0, 0, 0, out);
    if (place == TULLE_HOST) {
        TRY(tl_matrix_create(b, A->rows, A->cols, A->nnz, A->ptr_type, A->idx_type,
                             A->values ? (int)A->val_type : 0, &copy));
        copy->view.val_type = A->val_type;
        void *host[ARRAYS] = {copy->row_ptr, copy->col_idx, copy->values};
        for (int i = 0; i < ARRAYS; i++)
            if (bytes[i]) {
                tl_gpu_expect(b, gpu, host[i], bytes[i]);
                TRY(tl_gpu_fetch(b, gpu, 0, host[i], (tl_dmem){(uint64_t)(uintptr_t)from[i], 0}, bytes[i]));
            }
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
                TRY(tl_gpu_send(b, gpu, to[i], from[i], (int64_t)bytes[i], 1, 0));
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
    if (status != TULLE_OK) tl_gpu_rest(b, gpu);    /* transfers may still be running */
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

/* The lines of a view are copied together with the gaps between them, which are removed on the host. */
tulle_status tl_gpu_dense_move(tl_base *b, tl_gpu *gpu, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out)
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
        tulle_dense wide = *A;                  /* lines including their gaps */
        if (by_cols) wide.rows = A->ld;
        else wide.cols = A->ld;
        uint64_t whole = tl_dense_bytes(A);
        TRY(tl_dense_create(b, wide.rows, wide.cols, A->order, A->val_type, &host));
        if (lines > 0 && bytes > 0)
            TRY(tl_gpu_fetch(b, gpu, 0, host->view.values, (tl_dmem){(uint64_t)(uintptr_t)A->values, 0},
                             whole));
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
        if (bytes) TRY(tl_gpu_send(b, gpu, mem, host->view.values, (int64_t)bytes, 1, 0));
        TRY(d->wait(b, gpu->device));
        *there = (tulle_dense_matrix){.view = host->view, .owner = tl_gpu_retain(gpu), .disown = disown};
        there->view.values = (void *)(uintptr_t)mem.handle;
        there->view.place = TULLE_DEVICE;
        mem.handle = 0;
    }
    *out = there;
    there = NULL;
done:
    if (status != TULLE_OK) tl_gpu_rest(b, gpu);
    tl_dense_free(b, host);
    tl_dense_free(b, there);
    tl_dmem_free(gpu, mem);
    return status;
}
