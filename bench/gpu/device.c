/* SPDX-License-Identifier: MIT
 *
 * device.c - a caller's own memory, stream and events, by CUDA's driver or OpenCL; see device.h.
 *
 * Before runs are timed, a host function is queued in the stream, which returns when all runs are queued, or
 * after 50 ms, in case a run waits for the device. */
#define _POSIX_C_SOURCE 200809L
#include "device.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tulle_cuda.h"
#include "tulle_opencl.h"

typedef struct CUstream_st *CUstream;
typedef struct CUevent_st  *CUevent;
typedef uint64_t            CUdeviceptr;

enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CL_MEM_READ_WRITE = 1, MOST_RUNS = 256 };
static const double hold_seconds = 0.05;

#define CUDA_FUNCTIONS(X)                                                       \
    X(int, cuCtxSetCurrent, (struct CUctx_st *))                                \
    X(int, cuCtxSynchronize, (void))                                            \
    X(int, cuMemAlloc_v2, (CUdeviceptr *, size_t bytes))                        \
    X(int, cuMemFree_v2, (CUdeviceptr))                                         \
    X(int, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))   \
    X(int, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))         \
    X(int, cuMemsetD8_v2, (CUdeviceptr to, unsigned char byte, size_t bytes))   \
    X(int, cuStreamCreate, (CUstream *, unsigned flags))                        \
    X(int, cuStreamDestroy_v2, (CUstream))                                      \
    X(int, cuStreamSynchronize, (CUstream))                                     \
    X(int, cuLaunchHostFunc, (CUstream, void (*)(void *), void *))              \
    X(int, cuEventCreate, (CUevent *, unsigned flags))                          \
    X(int, cuEventDestroy_v2, (CUevent))                                        \
    X(int, cuEventRecord, (CUevent, CUstream))                                  \
    X(int, cuEventElapsedTime, (float *ms, CUevent from, CUevent to))
#define OPENCL_FUNCTIONS(X)                                                                                 \
    X(void *, clCreateBuffer, (struct _cl_context *, uint64_t flags, size_t bytes, void *host, int *error)) \
    X(int, clReleaseMemObject, (void *))                                                                    \
    X(int, clEnqueueWriteBuffer, (struct _cl_command_queue *, void *to, uint32_t blocking, size_t offset,   \
                                  size_t bytes, const void *from, uint32_t waits, const void *wait,         \
                                  void *event))                                                             \
    X(int, clEnqueueReadBuffer, (struct _cl_command_queue *, void *from, uint32_t blocking, size_t offset,  \
                                 size_t bytes, void *to, uint32_t waits, const void *wait, void *event))    \
    X(int, clEnqueueFillBuffer, (struct _cl_command_queue *, void *to, const void *pattern,                 \
                                 size_t pattern_bytes, size_t offset, size_t bytes, uint32_t waits,         \
                                 const void *wait, void *event))                                            \
    X(int, clFinish, (struct _cl_command_queue *))

typedef struct api {
#define MEMBER(result, name, arguments) result (*name) arguments;
    CUDA_FUNCTIONS(MEMBER)
    OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
} api;

static const struct entry { const char *name; size_t offset; } cuda_entries[] = {
#define ENTRY(result, name, arguments) {#name, offsetof(api, name)},
    CUDA_FUNCTIONS(ENTRY)
}, opencl_entries[] = {
    OPENCL_FUNCTIONS(ENTRY)
#undef ENTRY
};

struct device {
    api               f;
    tulle_ctx        *ctx;
    bool              cuda;
    struct CUctx_st  *context;
    CUstream          stream;
    CUevent           event[2 * MOST_RUNS];
    atomic_bool       queued;                   /* all runs are in the stream */
};

static bool load(const char *variable, const char *name, const struct entry *entries, size_t count, api *f,
                 char *why, size_t bytes)
{
    const char *other = getenv(variable);
    void *library = dlopen(other ? other : name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return snprintf(why, bytes, "%s", dlerror()), false;
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, entries[i].name);
        if (!function) return snprintf(why, bytes, "%s has no %s", name, entries[i].name), false;
        memcpy((char *)f + entries[i].offset, &function, sizeof function);
    }
    return true;
}

device *device_open(tulle_ctx *ctx, char *why, size_t bytes)
{
    device *d = calloc(1, sizeof *d);
    if (!d) return snprintf(why, bytes, "no memory"), NULL;
    d->ctx = ctx;
    d->cuda = strncmp(tulle_ctx_device(ctx), "cuda", 4) == 0;
    if (!d->cuda) {
        if (load("TULLE_LIBOPENCL", "libOpenCL.so.1", opencl_entries,
                 sizeof opencl_entries / sizeof *opencl_entries, &d->f, why, bytes)
            && tulle_opencl_context(ctx)) return d;
        if (!tulle_opencl_context(ctx))
            snprintf(why, bytes, "%s is neither on CUDA nor on OpenCL", tulle_ctx_device(ctx));
        free(d);
        return NULL;
    }
    d->context = tulle_cuda_context(ctx);
    bool good = load("TULLE_LIBCUDA", "libcuda.so.1", cuda_entries,
                     sizeof cuda_entries / sizeof *cuda_entries, &d->f, why, bytes);
    if (good) {
        good = d->context && d->f.cuCtxSetCurrent(d->context) == 0
            && d->f.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING) == 0;
        for (int i = 0; good && i < 2 * MOST_RUNS; i++)
            good = d->f.cuEventCreate(&d->event[i], CU_EVENT_DEFAULT) == 0;
        if (!good) snprintf(why, bytes, "CUDA gives no stream or no events");
    }
    if (good && tulle_cuda_set_stream(ctx, d->stream) != TULLE_OK) {
        snprintf(why, bytes, "%s", tulle_ctx_error(ctx));
        good = false;
    }
    if (good) return d;
    device_close(d);
    return NULL;
}

void device_close(device *d)
{
    if (!d) return;
    if (d->stream) {
        d->f.cuStreamSynchronize(d->stream);
        tulle_cuda_set_stream(d->ctx, NULL);
        for (int i = 0; i < 2 * MOST_RUNS; i++)
            if (d->event[i]) d->f.cuEventDestroy_v2(d->event[i]);
        d->f.cuStreamDestroy_v2(d->stream);
    }
    free(d);
}

bool device_has_clock(const device *d) { return d->cuda; }
void *device_stream(const device *d) { return d->stream; }

int device_index(const device *d)
{
    const char *colon = strchr(tulle_ctx_device(d->ctx), ':');
    return colon ? atoi(colon + 1) : 0;
}

void *device_alloc(device *d, size_t bytes)
{
    CUdeviceptr p = 0;
    int error = 0;
    if (!d->cuda)
        return d->f.clCreateBuffer(tulle_opencl_context(d->ctx), CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL,
                                   &error);
    d->f.cuCtxSetCurrent(d->context);
    return d->f.cuMemAlloc_v2(&p, bytes ? bytes : 1) == 0 ? (void *)(uintptr_t)p : NULL;
}

void device_free(device *d, void *p)
{
    if (!p) return;
    device_wait(d);
    if (d->cuda) d->f.cuMemFree_v2((CUdeviceptr)(uintptr_t)p);
    else d->f.clReleaseMemObject(p);
}

bool device_wait(device *d)
{
    if (!d->cuda) return d->f.clFinish(tulle_opencl_queue(d->ctx)) == 0;
    d->f.cuCtxSetCurrent(d->context);
    return d->f.cuCtxSynchronize() == 0;
}

bool device_put(device *d, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return true;
    if (!d->cuda)
        return d->f.clEnqueueWriteBuffer(tulle_opencl_queue(d->ctx), to, 1, 0, bytes, from, 0, NULL,
                                         NULL) == 0;
    return device_wait(d) && d->f.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)to, from, bytes) == 0
        && device_wait(d);
}

bool device_get(device *d, void *to, void *from, size_t bytes)
{
    if (bytes == 0) return true;
    if (!d->cuda)
        return d->f.clEnqueueReadBuffer(tulle_opencl_queue(d->ctx), from, 1, 0, bytes, to, 0, NULL,
                                        NULL) == 0;
    return device_wait(d) && d->f.cuMemcpyDtoH_v2(to, (CUdeviceptr)(uintptr_t)from, bytes) == 0;
}

bool device_spoil(device *d, void *p, size_t bytes)
{
    const unsigned char ones = 0xff;
    if (bytes == 0) return true;
    if (!d->cuda)
        return d->f.clEnqueueFillBuffer(tulle_opencl_queue(d->ctx), p, &ones, 1, 0, bytes, 0, NULL, NULL) == 0
            && device_wait(d);
    return device_wait(d) && d->f.cuMemsetD8_v2((CUdeviceptr)(uintptr_t)p, ones, bytes) == 0
        && device_wait(d);
}

/* ---- the clock */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void hold(void *user)                    /* called by CUDA, in the stream's order */
{
    device *d = user;
    double end = seconds_now() + hold_seconds;
    while (!atomic_load(&d->queued) && seconds_now() < end) continue;
}

bool device_times(device *d, bool (*run)(void *user), void *user, int warm, int runs, double *ms)
{
    if (!d->cuda || runs > MOST_RUNS) return false;
    bool good = d->f.cuCtxSetCurrent(d->context) == 0;
    for (int i = 0; good && i < warm; i++) good = run(user);
    good = good && d->f.cuStreamSynchronize(d->stream) == 0;
    atomic_store(&d->queued, false);
    good = good && d->f.cuLaunchHostFunc(d->stream, hold, d) == 0;
    for (int i = 0; good && i < runs; i++)
        good = d->f.cuEventRecord(d->event[2 * i], d->stream) == 0 && run(user)
            && d->f.cuEventRecord(d->event[2 * i + 1], d->stream) == 0;
    atomic_store(&d->queued, true);
    good = d->f.cuStreamSynchronize(d->stream) == 0 && good;
    for (int i = 0; good && i < runs; i++) {
        float t = 0;
        good = d->f.cuEventElapsedTime(&t, d->event[2 * i], d->event[2 * i + 1]) == 0;
        ms[i] = (double)t;
    }
    return good;
}
