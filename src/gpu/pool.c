/* SPDX-License-Identifier: MIT
 *
 * pool.c - device memory that is kept between products, and the limit of a product.
 *
 * A freed block waits for the next request that it fits closely (at most a 64th larger).  No more than a
 * quarter of the device's memory waits: beyond that the blocks longest unused go back to the driver, so that
 * other contexts and processes can have them.  All that wait go back where the driver has no more, before the
 * request is made again, and with tulle_ctx_trim().
 *
 * Every request of a product comes here, so this is where its limit is kept: what would pass it is refused
 * before the driver is asked.  Kept blocks count: those that do not fit beside the product go back first.
 * Under a limit a kept block serves only a request of exactly its size, so that what a product takes does not
 * depend on what ran before. TULLE_GPU_FAIL=n lets the n-th request to the driver fail, for tests. */
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
    const uint64_t waste = gpu->limit ? 0 : bytes / 64 + 4096;
    int best = -1;
    for (int i = 0; i < gpu->blocks; i++) {
        const tl_block *k = &gpu->block[i];
        if (!k->used && k->bytes >= bytes && k->bytes - bytes <= waste
            && (best < 0 || k->bytes < gpu->block[best].bytes))
            best = i;
    }
    return best;
}

/* Blocks go back, those longest unused first, until at most `most` bytes wait. */
static void give_back(tl_gpu *gpu, uint64_t most)
{
    while (gpu->waiting > most) {
        int oldest = -1;
        for (int i = 0; i < gpu->blocks; i++)
            if (!gpu->block[i].used && (oldest < 0 || gpu->block[i].freed < gpu->block[oldest].freed))
                oldest = i;
        gpu->waiting -= gpu->block[oldest].bytes;
        gpu->driver->free(gpu->device, gpu->block[oldest].handle);
        gpu->block[oldest] = gpu->block[--gpu->blocks];
    }
}

/* Bytes that may wait beside a product under way. */
static uint64_t may_wait(const tl_gpu *gpu)
{
    if (!gpu->limit) return gpu->keep_most;
    uint64_t rest = gpu->limit > gpu->taken ? gpu->limit - gpu->taken : 0;
    return rest < gpu->keep_most ? rest : gpu->keep_most;
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
        return tl_fail(b, TULLE_ENOMEM, "%" PRIu64 " bytes of device memory: the request was made to fail",
                       bytes);
    return gpu->driver->alloc(b, gpu->device, bytes, handle);
}

/* A new block, which waits. */
static tulle_status new_block(tl_base *b, tl_gpu *gpu, uint64_t bytes, const char *what)
{
    tulle_status status = TULLE_OK;
    uint64_t handle = 0;
    TRY(make_room(b, gpu));
    status = ask_driver(b, gpu, bytes, &handle);
    if (status == TULLE_ENOMEM && gpu->waiting > 0) {
        give_back(gpu, 0);
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
    gpu->block[gpu->blocks++] = (tl_block){.handle = handle, .bytes = bytes};
    gpu->waiting += bytes;
done:
    return status;
}

uint64_t tl_dmem_round(uint64_t bytes)
{
    return bytes ? (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN : TL_ALIGN;
}

tulle_status tl_dmem_alloc(tl_base *b, tl_gpu *gpu, uint64_t bytes, const char *what, tl_dmem *mem)
{
    tulle_status status = TULLE_OK;
    *mem = (tl_dmem){0, 0};
    bytes = tl_dmem_round(bytes);
    lock(gpu);
    if (gpu->limit && (gpu->taken > gpu->limit || bytes > gpu->limit - gpu->taken)) {
        gpu->refused = gpu->taken + bytes;
        status = tl_fail(b, TULLE_ELIMIT,
                         "the product needs %" PRIu64 " bytes on the device (%s), the limit is %" PRIu64,
                         gpu->refused, what, gpu->limit);
        goto done;
    }
    int i = find_waiting(gpu, bytes);
    if (i < 0) {
        if (gpu->limit) give_back(gpu, gpu->limit - gpu->taken - bytes);
        TRY(new_block(b, gpu, bytes, what));
        i = gpu->blocks - 1;
    }
    tl_block *k = &gpu->block[i];
    k->used = true;
    k->asked = bytes;
    k->product = gpu->product;
    mem->handle = k->handle;
    gpu->waiting -= k->bytes;
    gpu->held += bytes;
    if (gpu->held > gpu->peak) gpu->peak = gpu->held;
    gpu->taken += bytes;
    if (gpu->taken > gpu->most) gpu->most = gpu->taken;
    give_back(gpu, may_wait(gpu));
done:
    unlock(gpu);
    return status;
}

void tl_dmem_free(tl_gpu *gpu, tl_dmem mem)
{
    if (!mem.handle || tl_gpu_lost(gpu)) return;
    lock(gpu);
    for (int i = 0; i < gpu->blocks; i++) {
        tl_block *k = &gpu->block[i];
        if (k->handle != mem.handle || !k->used) continue;
        k->used = false;
        k->freed = ++gpu->frees;
        gpu->waiting += k->bytes;
        gpu->held -= k->asked;
        if (k->product == gpu->product) gpu->taken -= k->asked;
        give_back(gpu, may_wait(gpu));
        break;
    }
    unlock(gpu);
}

void tl_dmem_begin(tl_gpu *gpu, uint64_t before, uint64_t limit)
{
    lock(gpu);
    gpu->product++;
    gpu->taken = gpu->most = before;
    gpu->limit = limit;
    gpu->refused = 0;
    give_back(gpu, may_wait(gpu));
    unlock(gpu);
}

void tl_dmem_end(tl_gpu *gpu)
{
    lock(gpu);
    gpu->limit = 0;
    unlock(gpu);
}

uint64_t tl_dmem_taken(const tl_gpu *gpu) { return gpu->taken; }
uint64_t tl_dmem_most(const tl_gpu *gpu) { return gpu->most; }
uint64_t tl_dmem_refused(const tl_gpu *gpu) { return gpu->refused; }

void tl_gpu_trim(tl_gpu *gpu)
{
    if (tl_gpu_lost(gpu)) return;
    if (gpu->parcel_busy) {             /* after a failure copies may be under way */
        tl_base b = {.error = ""};
        tl_gpu_rest(&b, gpu);
    }
    gpu->parcel_busy = 0;
    gpu->driver->unpin(gpu->device, gpu->staging);
    gpu->staging = NULL;
    gpu->staging_bytes = 0;
    gpu->driver->unpin(gpu->device, gpu->parcels);
    gpu->parcels = NULL;
    lock(gpu);
    give_back(gpu, 0);
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
