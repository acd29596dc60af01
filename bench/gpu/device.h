/* SPDX-License-Identifier: MIT
 *
 * device.h - device memory, stream and clock of a caller of tulle, on the device of a context.  CUDA's driver
 * or OpenCL's library is opened at run time. */
#ifndef TULLE_BENCH_DEVICE_H
#define TULLE_BENCH_DEVICE_H
#include <stdbool.h>
#include "tulle.h"

typedef struct device device;

/* On CUDA, products run in a stream of this device from now on. */
device *device_open(tulle_ctx *ctx, char *why, size_t bytes);
void    device_close(device *d);                            /* before the context; NULL is fine  */
bool    device_has_clock(const device *d);                  /* CUDA                              */
void   *device_stream(const device *d);                     /* a CUstream; NULL: not on CUDA     */
int     device_index(const device *d);
void   *device_alloc(device *d, size_t bytes);              /* NULL: there is not enough         */
void    device_free(device *d, void *p);
bool    device_put(device *d, void *to, const void *from, size_t bytes);
bool    device_get(device *d, void *to, void *from, size_t bytes);
bool    device_spoil(device *d, void *p, size_t bytes);     /* every value becomes NaN           */
bool    device_wait(device *d);
/* run() queues work in the stream and returns.  ms[i]: the device time of the i-th run.  All runs are queued
 * while the stream is blocked, so that the time of the host is not included.  False: run() or CUDA failed. */
bool    device_times(device *d, bool (*run)(void *user), void *user, int warm, int runs, double *ms);

#endif
