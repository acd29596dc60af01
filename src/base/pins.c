/* SPDX-License-Identifier: MIT
 *
 * pins.c - large blocks of mem.c whose pages a device's driver has locked ("pinned"), so that the device
 * copies from and to them at full speed.
 *
 * Locking takes about as long as a few copies through other memory, so it is done for blocks that come back
 * from the pool: those of callers who multiply more than once.  A block stays locked until its memory goes
 * back to the system, wherever it is until then: in C, in arrays that the caller took over, or in the pool.
 * All of them are unlocked before their device is closed; a block that outlives it keeps only this record,
 * which goes with the last one.
 *
 * A child of fork() has copies of these blocks, which are not locked, and leaves the driver alone.  Linux
 * before 5.10 could give the locked page itself to the child and the copy to the parent: there, nothing is
 * locked.
 *
 * At most a quarter of the machine's memory is locked, and BLOCKS blocks of a device.  If the driver refuses
 * one, it is not asked again. */
#define _GNU_SOURCE
#include "base/base.h"
#include <pthread.h>
#include <stdio.h>
#if defined(__linux__)
#include <sys/utsname.h>
#endif

enum { BLOCKS = 256 };

struct tl_pins {
    pthread_mutex_t lock;
    tl_pins_driver  driver;
    int64_t         process;            /* that made it                           */
    int             users;              /* the device and each block              */
    bool            open;               /* the device is, and it did not refuse   */
    uint64_t        bytes, most;
    int             count;
    struct { void *p; uint64_t bytes; } at[BLOCKS];
};

static bool pages_stay_after_fork(void)
{
#if defined(__linux__)
    struct utsname name;
    int major = 0, minor = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
    return major > 5 || (major == 5 && minor >= 10);
#else
    return false;
#endif
}

tulle_status tl_pins_create(tl_base *b, tl_pins_driver driver, tl_pins **out)
{
    tl_pins *pins = NULL;
    tulle_status status = tl_calloc(b, &pins, 1, sizeof *pins, "the list of pinned memory");
    *out = pins;
    if (status != TULLE_OK) return status;
    pthread_mutex_init(&pins->lock, NULL);
    pins->driver = driver;
    pins->process = tl_process();
    pins->users = 1;
    pins->open = pages_stay_after_fork();
    pins->most = tl_memory_total() / 4;
    return TULLE_OK;
}

static void leave(tl_pins *pins)                /* called with the lock held; releases it */
{
    int users = --pins->users;
    pthread_mutex_unlock(&pins->lock);
    if (users > 0) return;
    pthread_mutex_destroy(&pins->lock);
    tl_free(NULL, pins);
}

void tl_pins_close(tl_pins *pins)
{
    if (!pins || pins->process != tl_process()) return;
    pthread_mutex_lock(&pins->lock);
    for (int i = 0; i < pins->count; i++) pins->driver.unlock(pins->driver.device, pins->at[i].p);
    pins->count = 0;
    pins->bytes = 0;
    pins->open = false;
    leave(pins);
}

bool tl_pins_add(tl_pins *pins, void *p, uint64_t bytes)
{
    bool done = false;
    pthread_mutex_lock(&pins->lock);
    if (pins->open && pins->count < BLOCKS && bytes <= pins->most - pins->bytes) {
        done = pins->open = pins->driver.lock(pins->driver.device, p, bytes);
        if (done) {
            pins->at[pins->count].p = p;
            pins->at[pins->count++].bytes = bytes;
            pins->bytes += bytes;
            pins->users++;
        }
    }
    pthread_mutex_unlock(&pins->lock);
    return done;
}

static int place_of(const tl_pins *pins, const void *p)
{
    for (int i = 0; i < pins->count; i++)
        if (pins->at[i].p == p) return i;
    return -1;
}

bool tl_pins_has(tl_pins *pins, const void *p)
{
    if (pins->process != tl_process()) return false;
    pthread_mutex_lock(&pins->lock);
    bool has = place_of(pins, p) >= 0;
    pthread_mutex_unlock(&pins->lock);
    return has;
}

void tl_pins_drop(tl_pins *pins, void *p)
{
    if (pins->process != tl_process()) return;
    pthread_mutex_lock(&pins->lock);
    const int i = place_of(pins, p);
    if (i >= 0) {
        pins->driver.unlock(pins->driver.device, p);
        pins->bytes -= pins->at[i].bytes;
        pins->at[i] = pins->at[--pins->count];
    }
    leave(pins);
}
