/* SPDX-License-Identifier: MIT
 *
 * pool.c - device memory that is kept between products.
 *
 * A freed block waits for the next request that it fits closely (at most a 64th larger); where the driver has no more,
 * all waiting blocks go back and the request is made again.  TULLE_GPU_FAIL=n lets the n-th request to the
 * driver fail, for tests. */
#include "gpu/engine.h"
#include <inttypes.h>

static void lock(tl_gpu *gpu)
{
    while (atomic_flag_test_and_set_explicit(&gpu->busy, memory_order_acquire)) tl_pause();
}

static void unlock(tl_gpu *gpu)
{
    atomic_flag_clear_explicit(&gpu->busy, memory_order_release);
}

/* The waiting block that wastes least, or -1. */
static int find_waiting(const tl_gpu *gpu, uint64_t bytes)
{
    int best = -1;
    for (int i = 0; i < gpu->blocks; i++) {
        const tl_block *k = &gpu->block[i];
        if (!k->used && k->bytes >= bytes && k->bytes - bytes <= bytes / 64 + 4096
            && (best < 0 || k->bytes < gpu->block[best].bytes))
            best = i;
    }
    return best;
}

static void give_back(tl_gpu *gpu)
{
    int kept = 0;
    for (int i = 0; i < gpu->blocks; i++) {
        if (gpu->block[i].used) gpu->block[kept++] = gpu->block[i];
        else gpu->driver->free(gpu->device, gpu->block[i].handle);
    }
    gpu->blocks = kept;
}

static tulle_status make_room(tl_base *b, tl_gpu *gpu)
{
    tulle_status status = TULLE_OK;
    tl_block *more = NULL;
    if (gpu->blocks < gpu->room) return TULLE_OK;
    int room = gpu->room ? gpu->room * 2 : 64;
    TRY(tl_alloc(b, &more, room, sizeof *more, "the list of device memory"));
    for (int i = 0; i < gpu->blocks; i++) more[i] = gpu->block[i];
    tl_free(NULL, gpu->block);
    gpu->block = more;
    gpu->room = room;
done:
    return status;
}

static tulle_status ask_driver(tl_base *b, tl_gpu *gpu, uint64_t bytes, uint64_t *handle)
{
    gpu->requests++;
    if (gpu->fail_at && gpu->requests == gpu->fail_at)
        return tl_fail(b, TULLE_ENOMEM, "%" PRIu64 " bytes of device memory: the request was made to fail", bytes);
    return gpu->driver->alloc(b, gpu->device, bytes, handle);
}

tulle_status tl_dmem_alloc(tl_base *b, tl_gpu *gpu, uint64_t bytes, const char *what, tl_dmem *mem)
{
    tulle_status status = TULLE_OK;
    *mem = (tl_dmem){0, 0};
    bytes = bytes ? (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN : TL_ALIGN;
    lock(gpu);
    int i = find_waiting(gpu, bytes);
    if (i < 0) {
        uint64_t handle = 0;
        TRY(make_room(b, gpu));
        status = ask_driver(b, gpu, bytes, &handle);
        if (status == TULLE_ENOMEM && gpu->waiting > 0) {
            give_back(gpu);
            gpu->waiting = 0;
            status = ask_driver(b, gpu, bytes, &handle);
        }
        if (status != TULLE_OK) {
            char said[TL_ERROR_MAX / 2];
            size_t n = 0;
            for (; b->error[n] && n + 1 < sizeof said; n++) said[n] = b->error[n];
            said[n] = 0;
            status = tl_fail(b, status, "%s: %s", what, said);
            goto done;
        }
        i = gpu->blocks++;
        gpu->block[i] = (tl_block){handle, bytes, 0, false};
        gpu->waiting += bytes;
    }
    gpu->block[i].used = true;
    gpu->block[i].asked = bytes;
    gpu->waiting -= gpu->block[i].bytes;
    gpu->held += bytes;
    if (gpu->held > gpu->peak) gpu->peak = gpu->held;
    mem->handle = gpu->block[i].handle;
done:
    unlock(gpu);
    return status;
}

void tl_dmem_free(tl_gpu *gpu, tl_dmem mem)
{
    if (!mem.handle || tl_gpu_lost(gpu)) return;
    lock(gpu);
    for (int i = 0; i < gpu->blocks; i++)
        if (gpu->block[i].handle == mem.handle && gpu->block[i].used) {
            gpu->block[i].used = false;
            gpu->waiting += gpu->block[i].bytes;
            gpu->held -= gpu->block[i].asked;
            break;
        }
    unlock(gpu);
}

void tl_gpu_trim(tl_gpu *gpu)
{
    if (tl_gpu_lost(gpu)) return;
    gpu->driver->unpin(gpu->device, gpu->staging);
    gpu->staging = NULL;
    gpu->staging_bytes = 0;
    gpu->driver->unpin(gpu->device, gpu->parcels);
    gpu->parcels = NULL;
    lock(gpu);
    give_back(gpu);
    gpu->waiting = 0;
    unlock(gpu);
}

uint64_t tl_dmem_held(const tl_gpu *gpu)
{
    return gpu->held;
}

uint64_t tl_dmem_left(tl_gpu *gpu)
{
    return gpu->driver->left(gpu->device) + gpu->waiting;
}

uint64_t tl_dmem_peak(tl_gpu *gpu, bool reset)
{
    uint64_t peak = gpu->peak;
    if (reset) gpu->peak = gpu->held;
    return peak;
}
