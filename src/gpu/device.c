/* SPDX-License-Identifier: MIT
 * device.c - devices by name: lists all devices, opens one, and shares it until its last user releases it. */
#include "gpu/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tl_driver *const drivers[] = {&tl_driver_cuda, &tl_driver_opencl};
enum { DRIVERS = sizeof drivers / sizeof *drivers, ROOM = 64 };

int tl_gpu_list(tl_base *b, tl_gpu_line *lines, int room)
{
    int total = 0;
    tl_caps *caps = NULL;
    if (tl_calloc(b, &caps, ROOM, sizeof *caps, "the list of devices") != TULLE_OK) return 0;
    for (int d = 0; d < DRIVERS; d++) {
        int count = 0;
        char why[192] = "";
        tulle_status status = drivers[d]->list(b, caps, ROOM, &count, why, sizeof why);
        if (status != TULLE_OK) snprintf(why, sizeof why, "%.190s", b->error);
        if (count > ROOM) count = ROOM;
        if (count == 0 && total < room) {
            memset(&lines[total], 0, sizeof lines[total]);
            snprintf(lines[total].name, sizeof lines[total].name, "%s", drivers[d]->name);
            snprintf(lines[total].caps.why_not, sizeof lines[total].caps.why_not, "%s",
                     why[0] ? why : "there is no device");
        }
        for (int i = 0; i < count; i++)
            if (total + i < room) {
                snprintf(lines[total + i].name, sizeof lines[total + i].name, "%s:%d", drivers[d]->name, i);
                lines[total + i].caps = caps[i];
            }
        total += count ? count : 1;
    }
    tl_free(b, caps);
    return total;
}

bool tl_gpu_best(tl_base *b, char *name, size_t bytes)
{
    bool found = false;
    tl_gpu_line *lines = NULL;
    if (tl_calloc(b, &lines, ROOM, sizeof *lines, "the list of devices") != TULLE_OK) return false;
    int count = tl_gpu_list(b, lines, ROOM);
    for (int i = 0; i < count && i < ROOM && !found; i++) {
        if (lines[i].caps.why_not[0] || lines[i].caps.cpu) continue;
        snprintf(name, bytes, "%s", lines[i].name);
        found = true;
    }
    tl_free(b, lines);
    return found;
}

/* Parses "cuda" or "cuda:3" into driver and index; false: not such a name. */
static bool parse(const char *name, const tl_driver **driver, int *index)
{
    for (int d = 0; d < DRIVERS; d++) {
        size_t n = strlen(drivers[d]->name);
        if (strncmp(name, drivers[d]->name, n) != 0 || (name[n] && name[n] != ':')) continue;
        *driver = drivers[d];
        *index = 0;
        if (!name[n]) return true;
        char *end = NULL;
        long i = strtol(name + n + 1, &end, 10);
        if (end == name + n + 1 || *end || i < 0 || i > 9999) return false;
        *index = (int)i;
        return true;
    }
    return false;
}

static bool lock_pages(void *device, void *p, uint64_t bytes)
{
    tl_gpu *gpu = device;
    return gpu->driver->lock(gpu->device, p, bytes);
}

static void unlock_pages(void *device, void *p)
{
    tl_gpu *gpu = device;
    gpu->driver->unlock(gpu->device, p);
}

tulle_status tl_gpu_open(tl_base *b, const char *name, tl_gpu **out)
{
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = NULL;
    const tl_driver *driver = NULL;
    int index = 0;
    *out = NULL;
    if (!parse(name, &driver, &index))
        return tl_fail(b, TULLE_EDEVICE, "\"%s\" is no device; names are cpu, cuda:0, opencl:0 and so on",
                       name);
    TRY(tl_calloc(b, &gpu, 1, sizeof *gpu, "a device"));
    gpu->driver = driver;
    gpu->process = tl_process();
    atomic_flag_clear(&gpu->busy);
    atomic_init(&gpu->users, 1);
    TRY(driver->open(b, index, &gpu->device));
    snprintf(gpu->name, sizeof gpu->name, "%s:%d", driver->name, index);
    gpu->caps = *driver->caps(gpu->device);
    const char *shared = tl_env("TULLE_GPU_SHARED"), *fail = tl_env("TULLE_GPU_FAIL");
    const char *balance = tl_env("TULLE_GPU_BALANCE"), *motifs = tl_env("TULLE_GPU_MOTIFS");
    if (shared && strtoul(shared, NULL, 10) >= 1024 && strtoul(shared, NULL, 10) < gpu->caps.shared_block)
        gpu->caps.shared_block = (uint32_t)strtoul(shared, NULL, 10);
    gpu->keep_most = gpu->caps.memory_bytes / 4;
    gpu->portion_products = gpu->caps.cpu ? UINT64_MAX : (uint64_t)8 << 20;
    TRY(tl_dmem_alloc(b, gpu, TL_BOARD_BYTES, "small things of products", &gpu->board));
    gpu->fail_at = fail ? strtoull(fail, NULL, 10) : 0;
    const char *delta_sort = tl_env("TULLE_DELTA_SORT");
    gpu->delta_sort = delta_sort ? strtoll(delta_sort, NULL, 10) : -1;
    gpu->balance = balance ? strcmp(balance, "on") == 0 : -1;
    gpu->motifs = motifs ? strcmp(motifs, "off") != 0 : -1;
    static const char *const collide[2] = {"collide-classes", "collide-motifs"};
    for (int i = 0; i < 2; i++)
        gpu->motif_hash[i] = motifs && strcmp(motifs, collide[i]) == 0 ? (uint64_t)3 << 32 : UINT64_MAX;
    gpu->motif_most =
        motifs && strtoul(motifs, NULL, 10) ? (uint32_t)strtoul(motifs, NULL, 10) : TL_MOTIFS_MOST;
    const char *twins = tl_env("TULLE_GPU_TWINS");
    gpu->twins = !twins || strcmp(twins, "auto") == 0 ? -1 : strcmp(twins, "on") == 0;
    void *note = NULL;
    TRY(driver->pinned(b, gpu->device, TL_NOTE_BYTES, &note));
    gpu->note = note;
    TRY(tl_owner_open(b, gpu));
    if (driver->lock)
        TRY(tl_pins_create(b, (tl_pins_driver){gpu, lock_pages, unlock_pages}, &gpu->pins));
    *out = gpu;
    gpu = NULL;
done:
    tl_gpu_release(gpu);
    return status;
}

tl_gpu *tl_gpu_retain(tl_gpu *gpu)
{
    atomic_fetch_add(&gpu->users, 1);
    return gpu;
}

bool tl_gpu_lost(const tl_gpu *gpu)
{
    return gpu->process != tl_process();
}

tulle_status tl_gpu_here(tl_base *b, const tl_gpu *gpu)
{
    if (!gpu || !tl_gpu_lost(gpu)) return TULLE_OK;
    return tl_fail(b, TULLE_EDRIVER,
                   "%s: this context was made before fork(); its driver works in the process that made it "
                   "(%lld), not in this one (%lld)",
                   gpu->name, (long long)gpu->process, (long long)tl_process());
}

void tl_gpu_release(tl_gpu *gpu)
{
    if (!gpu || atomic_fetch_sub(&gpu->users, 1) > 1) return;
    if (gpu->device && !tl_gpu_lost(gpu)) {
        tl_pins_close(gpu->pins);
        tl_dmem_free(gpu, gpu->board);
        tl_gpu_trim(gpu);
        tl_gpu_unload(gpu);
        if (gpu->note) gpu->driver->unpin(gpu->device, gpu->note);
        gpu->driver->close(gpu->device);
    }
    tl_owner_close(gpu);
    tl_free(NULL, gpu->block);
    tl_free(NULL, gpu);
}

void tl_gpu_rest(tl_base *b, const tl_gpu *gpu)
{
    char said[TL_ERROR_MAX];
    memcpy(said, b->error, sizeof said);
    (void)gpu->driver->join(b, gpu->device, TL_LANES);
    if (gpu->driver->flag(b, gpu->device, TL_LANE_DOWN, 0) == TULLE_OK)
        (void)gpu->driver->follow(b, gpu->device, 0, 0);
    (void)gpu->driver->wait(b, gpu->device);
    memcpy(b->error, said, sizeof said);
}

const char *tl_gpu_name(const tl_gpu *gpu)
{
    return gpu->name;
}

const tl_caps *tl_gpu_caps(const tl_gpu *gpu)
{
    return &gpu->caps;
}

tulle_status tl_gpu_queue(tl_base *b, tl_gpu *gpu, void *queue)
{
    tulle_status status = tl_gpu_here(b, gpu);
    if (status == TULLE_OK) status = gpu->driver->queue(b, gpu->device, queue);
    if (status == TULLE_OK) gpu->foreign = queue != NULL;
    return status;
}

void *tl_gpu_native(tl_gpu *gpu, tl_native what)
{
    return gpu->driver->native ? gpu->driver->native(gpu->device, what) : NULL;
}
