/* SPDX-License-Identifier: MIT
 * fake_cuda.c - a CUDA driver without a device; see fake_cuda.h. */
#define _GNU_SOURCE
#include "fake_cuda.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CU __attribute__((visibility("default"))) int

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
       INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600 };
enum { DEVICES = 8, DEPTH = 16, HANDLES = 4096 };

static const size_t memory_bytes = 64u << 20;
static const int shared_default = 48 << 10, shared_most = 227 << 10;

typedef enum { FREE, BLOCK, PINNED, LOCKED, STREAM, EVENT, MODULE, FUNCTION } kind;

/* All objects with a handle: of memory the address, of others a pointer to the entry. */
typedef struct handle {
    kind     kind;
    int      number, device;
    void    *p;
    size_t   bytes;
    int      flags, time, shared;       /* events: time; functions: dynamic shared bytes allowed */
    char     name[64];
    struct handle *module;
} handle;

typedef struct context { int device, users; unsigned flags; } context;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_cuda       state;
static int             ready, devices, capability, clock_now, made_streams, made_events;
static context         contexts[DEVICES];
static handle          handles[HANDLES];
static _Thread_local context *stack[DEPTH];
static _Thread_local int      depth;

fake_cuda *fake_cuda_state(void) { return &state; }

/* ---- the start of every entry: records the call, fails if requested, checks for a context */

static void note(const char *format, const char *name, int a, int b)
{
    size_t n = strlen(state.log);
    if (n + 128 < FAKE_LOG) snprintf(state.log + n, FAKE_LOG - n, format, name, a, b);
}

static int call(const char *name, int a, int b)
{
    state.calls++;
    note(a < 0 ? "%s;" : b < 0 ? "%s %d;" : "%s %d %d;", name, a, b);
    if (!state.fail_at || (strcmp(state.fail_call, "*") != 0 && strcmp(state.fail_call, name) != 0)) return OK;
    state.fail_seen++;
    return state.fail_seen == state.fail_at || (state.fail_forever && state.fail_seen > state.fail_at)
         ? state.fail_code : OK;
}

static int in_context(const char *name, int a, int b)
{
    int result = call(name, a, b);
    if (result != OK) return result;
    return !ready ? NOT_INITIALIZED : depth == 0 || !stack[depth - 1] || !stack[depth - 1]->users ? INVALID_CONTEXT
                                                                                                  : OK;
}

#define ENTRY(result, begin)                                                \
    pthread_mutex_lock(&lock);                                              \
    int result = begin;                                                     \
    if (result != OK) {                                                     \
        pthread_mutex_unlock(&lock);                                        \
        return result;                                                      \
    }
#define LEAVE(result)                                                       \
    do {                                                                    \
        int leave_ = (result);                                              \
        pthread_mutex_unlock(&lock);                                        \
        return leave_;                                                      \
    } while (0)

static int current_device(void) { return stack[depth - 1]->device; }

static handle *handle_new(kind k)
{
    for (int i = 0; i < HANDLES; i++)
        if (handles[i].kind == FREE) {
            handles[i] = (handle){.kind = k, .device = depth ? current_device() : 0};
            return &handles[i];
        }
    abort();
}

static handle *handle_of(const void *p, kind k)
{
    const handle *h = p;
    return h >= handles && h < handles + HANDLES && h->kind == k ? (handle *)h : NULL;
}

/* Is a range inside one block of memory?  Accesses outside are errors of the caller. */
static handle *memory_of(uint64_t address, size_t bytes, kind k)
{
    for (int i = 0; i < HANDLES; i++) {
        uint64_t first = (uint64_t)(uintptr_t)handles[i].p;
        if (handles[i].kind == k && address >= first && address + bytes <= first + handles[i].bytes) return &handles[i];
    }
    return NULL;
}

static int number_of(const void *p, kind k)
{
    handle *h = handle_of(p, k);
    return h ? h->number : 0;
}

/* ---- library and devices */

static int number_env(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

CU cuInit(unsigned flags)
{
    const char *fail = getenv("FAKE_CUDA_FAIL");
    pthread_mutex_lock(&lock);
    devices = number_env("FAKE_CUDA_DEVICES", 1);
    capability = number_env("FAKE_CUDA_CAPABILITY", 90);
    if (fail && *fail && !state.fail_at) {
        char plus = 0;
        sscanf(fail, "%63[^:]:%d:%d%c", state.fail_call, &state.fail_at, &state.fail_code, &plus);
        state.fail_forever = plus == '+';
    }
    int result = call("cuInit", -1, -1);
    ready |= result == OK;
    LEAVE(result != OK ? result : flags ? INVALID_VALUE : devices < 1 ? NO_DEVICE : OK);
}

CU cuDriverGetVersion(int *version)
{
    *version = 13000;
    return OK;
}

static const struct { int code; const char *name, *text; } errors[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy or gone"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}};

static int error_text(int code, const char **text, int which)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) *text = which ? errors[i].text : errors[i].name;
    return *text ? OK : INVALID_VALUE;
}

CU cuGetErrorName(int code, const char **text) { return error_text(code, text, 0); }
CU cuGetErrorString(int code, const char **text) { return error_text(code, text, 1); }

CU cuDeviceGetCount(int *count)
{
    ENTRY(result, call("cuDeviceGetCount", -1, -1))
    *count = devices;
    LEAVE(ready ? OK : NOT_INITIALIZED);
}

CU cuDeviceGet(int *device, int index)
{
    ENTRY(result, call("cuDeviceGet", index, -1))
    *device = index;
    LEAVE(index >= 0 && index < devices ? OK : INVALID_DEVICE);
}

CU cuDeviceGetName(char *name, int bytes, int device)
{
    ENTRY(result, call("cuDeviceGetName", device, -1))
    snprintf(name, (size_t)bytes, "Fake %d", device);
    LEAVE(device < devices ? OK : INVALID_DEVICE);
}

CU cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    ENTRY(result, call("cuDeviceTotalMem_v2", device, -1))
    *bytes = memory_bytes;
    LEAVE(device < devices ? OK : INVALID_DEVICE);
}

CU cuDeviceGetAttribute(int *value, int attribute, int device)
{
    ENTRY(result, call("cuDeviceGetAttribute", attribute, device))
    const int table[][2] = {{1, 1024}, {10, 32}, {16, 132}, {20, 0}, {39, 2048}, {75, capability / 10},
                            {76, capability % 10}, {81, 228 << 10}, {97, shared_most}, {100, 0}};
    result = INVALID_VALUE;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == attribute) {
            *value = table[i][1];
            result = device < devices ? OK : INVALID_DEVICE;
        }
    LEAVE(result);
}

/* ---- contexts */

CU cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    ENTRY(result, call("cuDevicePrimaryCtxGetState", device, -1))
    *flags = contexts[device].flags;
    *active = contexts[device].users > 0;
    LEAVE(OK);
}

CU cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    ENTRY(result, call("cuDevicePrimaryCtxSetFlags_v2", device, -1))
    contexts[device].flags = flags;
    state.flags = contexts[0].flags;
    LEAVE(OK);
}

CU cuDevicePrimaryCtxRetain(void **out, int device)
{
    ENTRY(result, call("cuDevicePrimaryCtxRetain", device, -1))
    contexts[device].device = device;
    contexts[device].users++;
    state.contexts++;
    *out = &contexts[device];
    LEAVE(OK);
}

CU cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTRY(result, call("cuDevicePrimaryCtxRelease_v2", device, -1))
    if (contexts[device].users < 1) LEAVE(INVALID_CONTEXT);
    contexts[device].users--;
    state.contexts--;
    LEAVE(OK);
}

CU cuCtxGetCurrent(void **out)
{
    *out = depth ? stack[depth - 1] : NULL;
    return OK;
}

CU cuCtxPushCurrent_v2(void *c)
{
    ENTRY(result, call("cuCtxPushCurrent_v2", -1, -1))
    if (depth == DEPTH) abort();
    stack[depth++] = c;
    LEAVE(OK);
}

CU cuCtxPopCurrent_v2(void **out)           /* never made to fail, to keep the stack consistent */
{
    if (depth == 0) return INVALID_CONTEXT;
    *out = stack[--depth];
    return OK;
}

/* ---- memory */

CU cuMemGetInfo_v2(size_t *left, size_t *total)
{
    ENTRY(result, in_context("cuMemGetInfo_v2", -1, -1))
    *left = memory_bytes - state.bytes;
    *total = memory_bytes;
    LEAVE(OK);
}

static int memory_new(kind k, size_t bytes, void **p)
{
    *p = malloc(bytes);
    if (!*p) return OUT_OF_MEMORY;
    memset(*p, 0xa5, bytes);
    handle *h = handle_new(k);
    h->p = *p;
    h->bytes = bytes;
    return OK;
}

static int memory_free(kind k, void *p)
{
    handle *h = memory_of((uint64_t)(uintptr_t)p, 1, k);
    if (!h || h->p != p) return INVALID_VALUE;
    if (k == BLOCK) state.bytes -= h->bytes;
    free(p);
    h->kind = FREE;
    return OK;
}

CU cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    void *p;
    ENTRY(result, in_context("cuMemAlloc_v2", -1, -1))
    if (bytes == 0) LEAVE(INVALID_VALUE);
    if (bytes > memory_bytes - state.bytes) LEAVE(OUT_OF_MEMORY);
    if (memory_new(BLOCK, bytes, &p) != OK) LEAVE(OUT_OF_MEMORY);
    state.bytes += bytes;
    state.blocks++;
    *out = (uint64_t)(uintptr_t)p;
    LEAVE(OK);
}

CU cuMemFree_v2(uint64_t p)
{
    ENTRY(result, in_context("cuMemFree_v2", -1, -1))
    if (memory_free(BLOCK, (void *)(uintptr_t)p) != OK) LEAVE(INVALID_VALUE);
    state.blocks--;
    LEAVE(OK);
}

CU cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTRY(result, in_context("cuMemHostAlloc", (int)flags, -1))
    if (bytes == 0 || memory_new(PINNED, bytes, out) != OK) LEAVE(INVALID_VALUE);
    state.pinned++;
    LEAVE(OK);
}

CU cuMemFreeHost(void *p)
{
    ENTRY(result, in_context("cuMemFreeHost", -1, -1))
    if (memory_free(PINNED, p) != OK) LEAVE(INVALID_VALUE);
    state.pinned--;
    LEAVE(OK);
}

CU cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    ENTRY(result, in_context("cuMemHostRegister_v2", (int)flags, -1))
    if (!p || bytes == 0 || memory_of((uint64_t)(uintptr_t)p, 1, LOCKED)) LEAVE(INVALID_VALUE);
    handle *h = handle_new(LOCKED);
    h->p = p;
    h->bytes = bytes;
    state.locked++;
    LEAVE(OK);
}

CU cuMemHostUnregister(void *p)
{
    ENTRY(result, in_context("cuMemHostUnregister", -1, -1))
    handle *h = memory_of((uint64_t)(uintptr_t)p, 1, LOCKED);
    if (!h || h->p != p) LEAVE(INVALID_VALUE);
    h->kind = FREE;
    state.locked--;
    LEAVE(OK);
}

CU cuPointerGetAttribute(void *value, int attribute, uint64_t p)
{
    ENTRY(result, in_context("cuPointerGetAttribute", attribute, -1))
    handle *pinned = memory_of(p, 1, PINNED), *block = memory_of(p, 1, BLOCK);
    if (!pinned) pinned = memory_of(p, 1, LOCKED);
    if (attribute != 2 || (!pinned && !block)) LEAVE(INVALID_VALUE);
    *(unsigned *)value = pinned ? 1 : 2;
    LEAVE(OK);
}

CU cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    ENTRY(result, in_context("cuMemcpyHtoDAsync_v2", number_of(stream, STREAM), -1))
    if (!memory_of(to, bytes, BLOCK)) LEAVE(INVALID_VALUE);
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    memcpy((void *)(uintptr_t)to, from, bytes);
    LEAVE(OK);
}

CU cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    ENTRY(result, in_context("cuMemcpyDtoHAsync_v2", number_of(stream, STREAM), -1))
    if (!memory_of(from, bytes, BLOCK)) LEAVE(INVALID_VALUE);
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    memcpy(to, (void *)(uintptr_t)from, bytes);
    LEAVE(OK);
}

CU cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    ENTRY(result, in_context("cuMemcpyDtoDAsync_v2", number_of(stream, STREAM), -1))
    if (!memory_of(to, bytes, BLOCK) || !memory_of(from, bytes, BLOCK)) LEAVE(INVALID_VALUE);
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    LEAVE(OK);
}

CU cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream)
{
    ENTRY(result, in_context("cuMemsetD8Async", number_of(stream, STREAM), -1))
    if (!memory_of(to, bytes, BLOCK)) LEAVE(INVALID_VALUE);
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    memset((void *)(uintptr_t)to, byte, bytes);
    LEAVE(OK);
}

/* ---- streams and events */

CU cuStreamCreate(void **out, unsigned flags)
{
    ENTRY(result, in_context("cuStreamCreate", (int)flags, -1))
    handle *h = handle_new(STREAM);
    h->number = ++made_streams;
    h->flags = (int)flags;
    state.streams++;
    *out = h;
    LEAVE(OK);
}

CU cuStreamDestroy_v2(void *stream)
{
    ENTRY(result, in_context("cuStreamDestroy_v2", number_of(stream, STREAM), -1))
    handle *h = handle_of(stream, STREAM);
    if (!h) LEAVE(INVALID_HANDLE);
    h->kind = FREE;
    state.streams--;
    LEAVE(OK);
}

CU cuStreamSynchronize(void *stream)
{
    ENTRY(result, in_context("cuStreamSynchronize", number_of(stream, STREAM), -1))
    LEAVE(handle_of(stream, STREAM) ? OK : INVALID_HANDLE);
}

CU cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    ENTRY(result, in_context("cuStreamWaitEvent", number_of(stream, STREAM), number_of(event, EVENT)))
    LEAVE(handle_of(stream, STREAM) && handle_of(event, EVENT) && flags == 0 ? OK : INVALID_HANDLE);
}

CU cuEventCreate(void **out, unsigned flags)
{
    ENTRY(result, in_context("cuEventCreate", (int)flags, -1))
    handle *h = handle_new(EVENT);
    h->number = ++made_events;
    h->flags = (int)flags;
    state.events++;
    *out = h;
    LEAVE(OK);
}

CU cuEventDestroy_v2(void *event)
{
    ENTRY(result, in_context("cuEventDestroy_v2", number_of(event, EVENT), -1))
    handle *h = handle_of(event, EVENT);
    if (!h) LEAVE(INVALID_HANDLE);
    h->kind = FREE;
    state.events--;
    LEAVE(OK);
}

CU cuEventRecord(void *event, void *stream)
{
    ENTRY(result, in_context("cuEventRecord", number_of(event, EVENT), number_of(stream, STREAM)))
    handle *h = handle_of(event, EVENT);
    if (!h || !handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    h->time = ++clock_now;
    LEAVE(OK);
}

CU cuEventSynchronize(void *event)
{
    ENTRY(result, in_context("cuEventSynchronize", number_of(event, EVENT), -1))
    LEAVE(handle_of(event, EVENT) ? OK : INVALID_HANDLE);
}

CU cuEventElapsedTime(float *ms, void *from, void *to)
{
    ENTRY(result, in_context("cuEventElapsedTime", -1, -1))
    handle *a = handle_of(from, EVENT), *b = handle_of(to, EVENT);
    if (!a || !b || a->flags || b->flags || !a->time || !b->time) LEAVE(INVALID_HANDLE);
    *ms = (float)(b->time - a->time);
    LEAVE(OK);
}

/* ---- modules and kernels */

CU cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *option, void **value)
{
    ENTRY(result, in_context("cuModuleLoadDataEx", -1, -1))
    if (strncmp(image, "bad", 3) == 0) {
        for (unsigned i = 0; i + 1 < count; i++)
            if (option[i] == 5) snprintf(value[i], (size_t)(uintptr_t)value[i + 1], "ptxas: line 3: bad\nmore");
        LEAVE(INVALID_IMAGE);
    }
    *out = handle_new(MODULE);
    state.modules++;
    LEAVE(OK);
}

CU cuModuleUnload(void *module)
{
    ENTRY(result, in_context("cuModuleUnload", -1, -1))
    handle *h = handle_of(module, MODULE);
    if (!h) LEAVE(INVALID_HANDLE);
    for (int i = 0; i < HANDLES; i++)
        if (handles[i].kind == FUNCTION && handles[i].module == h) handles[i].kind = FREE;
    h->kind = FREE;
    state.modules--;
    LEAVE(OK);
}

CU cuModuleGetFunction(void **out, void *module, const char *name)
{
    ENTRY(result, in_context("cuModuleGetFunction", -1, -1))
    handle *m = handle_of(module, MODULE);
    if (!m) LEAVE(INVALID_HANDLE);
    if (strncmp(name, "missing", 7) == 0) LEAVE(NOT_FOUND);
    handle *h = handle_new(FUNCTION);
    h->module = m;
    h->shared = shared_default;
    snprintf(h->name, sizeof h->name, "%s", name);
    *out = h;
    LEAVE(OK);
}

CU cuFuncGetAttribute(int *value, int attribute, void *function)
{
    ENTRY(result, in_context("cuFuncGetAttribute", attribute, -1))
    handle *h = handle_of(function, FUNCTION);
    if (!h || attribute != 8) LEAVE(INVALID_VALUE);
    *value = h->shared;
    LEAVE(OK);
}

CU cuFuncSetAttribute(void *function, int attribute, int value)
{
    ENTRY(result, in_context("cuFuncSetAttribute", attribute, value))
    handle *h = handle_of(function, FUNCTION);
    if (!h || attribute != 8 || value > shared_most) LEAVE(INVALID_VALUE);
    h->shared = value;
    LEAVE(OK);
}

#ifndef FAKE_CUDA_OLD
/* The number of arguments of a kernel is part of its name: "add_3". */
CU cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra)
{
    ENTRY(result, in_context("cuLaunchKernel", number_of(stream, STREAM), -1))
    handle *h = handle_of(function, FUNCTION);
    if (!h || !handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    if (!grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_x > 1024 || block_y != 1 || block_z != 1 || extra
        || (int)shared > h->shared)
        LEAVE(INVALID_VALUE);
    const char *digits = strrchr(h->name, '_');
    int count = digits ? atoi(digits + 1) : 0;
    fake_launch l = {.blocks = grid_x, .threads = block_x, .shared = shared, .stream = number_of(stream, STREAM)};
    memcpy(l.kernel, h->name, sizeof l.kernel);
    for (int i = 0; i < count && i < FAKE_ARGS; i++) memcpy(&l.arg[i], arguments[i], 8);
    state.last = l;
    state.launches++;
    LEAVE(OK);
}
#endif
