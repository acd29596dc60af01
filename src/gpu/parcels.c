/* SPDX-License-Identifier: MIT
 *
 * parcels.c - long arrays of the host on their way to a device.
 *
 * Threads of the host copy a part into a slot of pinned memory, from where the device takes it, while they go on with the next
 * slot: that is several times as fast as what drivers do with memory that is not pinned, and goes on beside kernels in another
 * lane.  Row pointers of a band of rows become smaller by the first of them on the way.
 *
 * Host memory, pinned and kept with the device: SLOTS times SLOT_BYTES, and as many flags: the upper half, the lower one is
 * that of chunks.c. */
#include "gpu/engine.h"
#include <string.h>

enum {
    SLOTS = TL_FLAGS / 2, SLOT_BYTES = 4 << 20,
    SHORT = 1 << 20                     /* bytes that are not worth it */
};

typedef struct load {
    const char *from;
    char       *to;
    int64_t     count, first;
    size_t      size;
} load;

static void load_work(void *arg, int thread, int threads)
{
    const load *l = arg;
    int64_t i0 = tl_part(l->count, thread, threads), n = tl_part(l->count, thread + 1, threads) - i0;
    const char *from = l->from + (size_t)i0 * l->size;
    char *to = l->to + (size_t)i0 * l->size;
    if (l->first == 0) memcpy(to, from, (size_t)n * l->size);
    else if (l->size == 4)
        for (int64_t i = 0; i < n; i++) ((int32_t *)to)[i] = ((const int32_t *)from)[i] - (int32_t)l->first;
    else
        for (int64_t i = 0; i < n; i++) ((int64_t *)to)[i] = ((const int64_t *)from)[i] - l->first;
}

static int flag_of(int slot)
{
    return TL_FLAGS - SLOTS + slot;
}

tulle_status tl_parcels_room(tl_base *b, tl_gpu *gpu)
{
    return gpu->parcels ? TULLE_OK : gpu->driver->pinned(b, gpu->device, (uint64_t)SLOTS * SLOT_BYTES, &gpu->parcels);
}

tulle_status tl_parcel_send(tl_base *b, tl_gpu *gpu, tl_parcel *p, int lane, int64_t upto)
{
    enum { EACH = 1 << 16 };            /* bytes that make a thread worth it */
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    const int64_t most = (int64_t)(SLOT_BYTES / p->size);
    TRY(tl_parcels_room(b, gpu));
    while (p->sent < upto) {
        int slot = gpu->parcel;
        load l = {(const char *)p->from + (size_t)p->sent * p->size, (char *)gpu->parcels + (size_t)slot * SLOT_BYTES,
                  p->count - p->sent < most ? p->count - p->sent : most, p->first, p->size};
        uint64_t bytes = (uint64_t)l.count * p->size;
        if (gpu->parcel_busy >> slot & 1) TRY(d->settle(b, gpu->device, flag_of(slot)));
        gpu->parcel_busy &= ~(1u << slot);
        tl_team_run(b->team, 1 + (int)(bytes / EACH), load_work, &l);
        TRY(d->send(b, gpu->device, lane, (tl_dmem){p->to.handle, p->to.offset + (uint64_t)p->sent * p->size}, l.to, bytes));
        TRY(d->flag(b, gpu->device, lane, flag_of(slot)));
        gpu->parcel_busy |= 1u << slot;
        gpu->parcel = (slot + 1) % SLOTS;
        p->sent += l.count;
    }
done:
    return status;
}

tulle_status tl_parcels_finish(tl_base *b, tl_gpu *gpu)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; i < SLOTS; i++) {
        if (gpu->parcel_busy >> i & 1) TRY(gpu->driver->settle(b, gpu->device, flag_of(i)));
        gpu->parcel_busy &= ~(1u << i);
    }
done:
    return status;
}

tulle_status tl_gpu_send(tl_base *b, tl_gpu *gpu, tl_dmem to, const void *from, int64_t count, size_t size, int64_t first)
{
    tulle_status status = TULLE_OK;
    tl_parcel p = {to, from, count, size, first, 0};
    if (first == 0 && (uint64_t)count * size < SHORT) return gpu->driver->upload(b, gpu->device, to, from, (uint64_t)count * size);
    status = tl_parcels_room(b, gpu);
    if (status == TULLE_ENOMEM && first == 0) {         /* slowly, then */
        b->error[0] = 0;
        return gpu->driver->upload(b, gpu->device, to, from, (uint64_t)count * size);
    }
    if (status != TULLE_OK) goto done;
    TRY(tl_parcel_send(b, gpu, &p, 0, count));
    TRY(tl_parcels_finish(b, gpu));
done:
    return status;
}
