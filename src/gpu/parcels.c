/* SPDX-License-Identifier: MIT
 *
 * parcels.c - long arrays on their way from the host to a device, and back.
 *
 * Copies from and to ordinary memory of the host are slow: the driver copies through a small buffer of its
 * own, with one thread.  So the threads of the context fill a slot of pinned memory, from where the device
 * takes it, while they go on with the next slot; and on the way back they empty one slot while the device
 * fills the others.  Both go on beside kernels in another lane.  Row pointers of a band of rows become
 * smaller by the first of them on the way.
 *
 * Short arrays, memory that the driver reaches without help (pinned by the caller, or the device sees the
 * host's pages), and all arrays where pinned memory is refused, are copied by the driver alone.
 *
 * Host memory, pinned, allocated when first needed and kept until tulle_ctx_trim() or the end of the context:
 * SLOTS times SLOT_BYTES (32 MiB), and as many flags: the upper half, the lower one is that of chunks.c.  It
 * is no device memory, and does not count toward a memory limit. */
#include "gpu/engine.h"
#include <string.h>

enum {
    SLOTS = TL_FLAGS / 2, SLOT_BYTES = 4 << 20,
    SHORT = 1 << 20,                    /* bytes that are not worth it        */
    EACH = 1 << 16                      /* bytes that make a thread worth it  */
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
    return gpu->parcels ? TULLE_OK
                        : gpu->driver->pinned(b, gpu->device, (uint64_t)SLOTS * SLOT_BYTES, &gpu->parcels);
}

/* The device is done with a slot. */
static tulle_status slot_empty(tl_base *b, tl_gpu *gpu, int slot)
{
    tulle_status status = TULLE_OK;
    if (gpu->parcel_busy >> slot & 1) TRY(gpu->driver->settle(b, gpu->device, flag_of(slot)));
    gpu->parcel_busy &= ~(1u << slot);
done:
    return status;
}

/* From here on the device uses a slot, until what the lane has now is done; the next one follows. */
static tulle_status slot_used(tl_base *b, tl_gpu *gpu, int lane, int slot)
{
    tulle_status status = TULLE_OK;
    TRY(gpu->driver->flag(b, gpu->device, lane, flag_of(slot)));
    gpu->parcel_busy |= 1u << slot;
    gpu->parcel = (slot + 1) % SLOTS;
done:
    return status;
}

tulle_status tl_parcel_send(tl_base *b, tl_gpu *gpu, tl_parcel *p, int lane, int64_t upto)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    const int64_t most = (int64_t)(SLOT_BYTES / p->size);
    TRY(tl_parcels_room(b, gpu));
    while (p->sent < upto) {
        int slot = gpu->parcel;
        load l = {(const char *)p->from + (size_t)p->sent * p->size,
                  (char *)gpu->parcels + (size_t)slot * SLOT_BYTES,
                  p->count - p->sent < most ? p->count - p->sent : most, p->first, p->size};
        uint64_t bytes = (uint64_t)l.count * p->size;
        TRY(slot_empty(b, gpu, slot));
        tl_team_run(b->team, 1 + (int)(bytes / EACH), load_work, &l);
        TRY(d->send(b, gpu->device, lane, (tl_dmem){p->to.handle, p->to.offset + (uint64_t)p->sent * p->size},
                    l.to, bytes));
        TRY(slot_used(b, gpu, lane, slot));
        p->sent += l.count;
    }
done:
    return status;
}

tulle_status tl_parcels_finish(tl_base *b, tl_gpu *gpu)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; i < SLOTS; i++) TRY(slot_empty(b, gpu, i));
done:
    return status;
}

/* Whether an array goes through slots; *status: an error other than memory that is refused. */
static bool in_slots(tl_base *b, tl_gpu *gpu, const void *host, uint64_t bytes, tulle_status *status)
{
    *status = TULLE_OK;
    if (bytes < SHORT || gpu->driver->reaches(gpu->device, host)) return false;
    *status = tl_parcels_room(b, gpu);
    if (*status != TULLE_ENOMEM) return *status == TULLE_OK;
    b->error[0] = 0;                                    /* slowly, then */
    *status = TULLE_OK;
    return false;
}

tulle_status tl_gpu_send(tl_base *b, tl_gpu *gpu, tl_dmem to, const void *from, int64_t count, size_t size,
                         int64_t first)
{
    tulle_status status = TULLE_OK;
    tl_parcel p = {to, from, count, size, first, 0};
    const uint64_t bytes = (uint64_t)count * size;
    if (first != 0) TRY(tl_parcels_room(b, gpu));       /* numbers change on the way: there is no other */
    else if (!in_slots(b, gpu, from, bytes, &status))
        return status == TULLE_OK ? gpu->driver->upload(b, gpu->device, to, from, bytes) : status;
    TRY(tl_parcel_send(b, gpu, &p, 0, count));
done:
    return status;
}

void tl_gpu_expect(tl_base *b, tl_gpu *gpu, void *to, uint64_t bytes)
{
    tl_touch(b, to, bytes);
    if (gpu->pins) tl_pin(gpu->pins, to);
}

tulle_status tl_gpu_fetch(tl_base *b, tl_gpu *gpu, int lane, void *to, tl_dmem from, uint64_t bytes)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    uint64_t asked = 0, copied = 0;
    if (!in_slots(b, gpu, to, bytes, &status))
        return status != TULLE_OK ? status : lane ? d->fetch(b, gpu->device, lane, to, from, bytes)
                                                  : d->download(b, gpu->device, to, from, bytes);
    TRY(tl_parcels_finish(b, gpu));
    for (int slot = gpu->parcel; copied < bytes; slot = (slot + 1) % SLOTS) {
        for (; asked < bytes && asked - copied < (uint64_t)SLOTS * SLOT_BYTES; asked += SLOT_BYTES) {
            const int next = gpu->parcel;
            TRY(d->fetch(b, gpu->device, lane, (char *)gpu->parcels + (size_t)next * SLOT_BYTES,
                         (tl_dmem){from.handle, from.offset + asked},
                         bytes - asked < SLOT_BYTES ? bytes - asked : SLOT_BYTES));
            TRY(slot_used(b, gpu, lane, next));
        }
        load l = {.from = (const char *)gpu->parcels + (size_t)slot * SLOT_BYTES, .to = (char *)to + copied,
                  .count = (int64_t)(bytes - copied < SLOT_BYTES ? bytes - copied : SLOT_BYTES), .size = 1};
        TRY(slot_empty(b, gpu, slot));
        tl_team_run(b->team, 1 + (int)(l.count / EACH), load_work, &l);
        copied += (uint64_t)l.count;
    }
done:
    return status;
}
