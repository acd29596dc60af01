/* SPDX-License-Identifier: MIT
 *
 * driver_cuda.c - the driver table over the CUDA driver API.
 *
 * A device works in its primary context, the one that the CUDA runtime uses too, so pointers and streams of
 * the caller are valid here.  Every entry makes that context current and puts back what was current before:
 * the caller's thread may be in the middle of CUDA work of its own.
 *
 * The queue is a non-blocking stream of ours or the caller's stream.  Where the context is not in use yet
 * it is told to spin while it waits: a product may take 50 microseconds.
 *
 * Kernels are compiled by NVRTC (nvrtc.c), only where no image is found; without NVRTC the device still
 * works with images built before.  Errors of a kernel show up at a later call, so the sentences name the
 * kernel that was started last. */
#include "gpu/cuda.h"
#include "gpu/nvrtc.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ARGS = 64, KERNELS = 24, NAME = 64, WORDS = 256 };

struct tl_kernel {
    CUfunction function;
    uint32_t   allowed;                 /* dynamic shared bytes it may have now      */
    char       name[NAME];
};

struct tl_module {
    CUmodule  module;
    int       count;
    tl_kernel kernel[KERNELS];
};

struct tl_device {
    tl_cuda          cu;
    CUdevice         device;
    CUcontext        context;
    CUstream         own, queue;        /* queue: own, or the caller's               */
    CUstream         lane[TL_LANES + 1];        /* 0 is not used: that is the queue          */
    CUevent          forked, joined[TL_LANES], turned;
    CUevent          timer[TL_EVENTS];  /* made when first marked                    */
    CUevent          flag[TL_FLAGS];    /* made when first put                       */
    bool             coherent;          /* copies read the host's pages themselves   */
    _Atomic uint64_t waits;
    const tl_kernel *last;              /* started                                   */
    tl_caps          caps;
    char             version[320];
};

/* ---- the context, and errors */

/* True: another context was current, and leave() puts it back. */
static bool enter(const tl_device *d)
{
    CUcontext current = NULL;
    d->cu.CtxGetCurrent(&current);
    return current != d->context && d->cu.CtxPushCurrent(d->context) == CUDA_SUCCESS;
}

static void leave(const tl_device *d, bool entered)
{
    CUcontext ours;
    if (entered) d->cu.CtxPopCurrent(&ours);
}

/* result = call, made in the device's context */
#define WITHIN(d, result, call)                                             \
    do {                                                                    \
        bool entered_ = enter(d);                                           \
        result = (d)->cu.call;                                              \
        leave(d, entered_);                                                 \
    } while (0)

/* TULLE_OK, or the sentence of a call that failed; bytes: 0 where they do not matter. */
static tulle_status answer(tl_base *b, const tl_device *d, int result, const char *call, uint64_t bytes)
{
    char words[WORDS], size[48] = "";
    if (result == CUDA_SUCCESS) return TULLE_OK;
    tl_cuda_words(&d->cu, call, result, words, sizeof words);
    if (bytes > 0) snprintf(size, sizeof size, ", %" PRIu64 " bytes", bytes);
    return tl_fail(b, result == CUDA_ERROR_OUT_OF_MEMORY ? TULLE_ENOMEM : TULLE_EDRIVER, "%s%s%s%s", words,
                   size, d->last ? "; the kernel started last is " : "", d->last ? d->last->name : "");
}

/* ---- devices */

static tulle_status cuda_list(tl_base *b, tl_caps *caps, int room, int *count, char *why, size_t why_bytes)
{
    tl_cuda cu;
    (void)b;
    if (why_bytes > 0) why[0] = 0;
    if (!tl_cuda_open(&cu, count, why, why_bytes)) *count = 0;
    for (int i = 0; i < *count && i < room; i++) tl_cuda_caps(&cu, i, &caps[i]);
    tl_cuda_close(&cu);
    return TULLE_OK;
}

static void cuda_close(tl_device *d)
{
    if (!d) return;
    if (d->context) {
        bool entered = enter(d);
        for (int i = 0; i < TL_EVENTS; i++)
            if (d->timer[i]) d->cu.EventDestroy(d->timer[i]);
        for (int i = 0; i < TL_FLAGS; i++)
            if (d->flag[i]) d->cu.EventDestroy(d->flag[i]);
        for (int i = 0; i <= TL_LANES; i++) {
            if (i < TL_LANES && d->joined[i]) d->cu.EventDestroy(d->joined[i]);
            if (d->lane[i]) d->cu.StreamDestroy(d->lane[i]);
        }
        if (d->forked) d->cu.EventDestroy(d->forked);
        if (d->turned) d->cu.EventDestroy(d->turned);
        if (d->own) d->cu.StreamDestroy(d->own);
        leave(d, entered);
        d->cu.DevicePrimaryCtxRelease(d->device);
    }
    tl_cuda_close(&d->cu);
    tl_free(NULL, d);
}

/* Waiting threads spin; a context that others use already keeps its ways. */
static void ask_to_spin(const tl_device *d)
{
    unsigned flags = 0;
    int active = 1;
    if (d->cu.DevicePrimaryCtxGetState(d->device, &flags, &active) == CUDA_SUCCESS && !active)
        d->cu.DevicePrimaryCtxSetFlags(d->device, (flags & ~(unsigned)CU_CTX_SCHED_MASK) | CU_CTX_SCHED_SPIN);
}

/* Streams and events, in the context. */
static int make_queues(tl_device *d, const char **call)
{
    int result;
    *call = "cuStreamCreate";
    result = d->cu.StreamCreate(&d->own, CU_STREAM_NON_BLOCKING);
    for (int i = 1; i <= TL_LANES && result == CUDA_SUCCESS; i++)
        result = d->cu.StreamCreate(&d->lane[i], CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) return result;
    *call = "cuEventCreate";
    result = d->cu.EventCreate(&d->forked, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) result = d->cu.EventCreate(&d->turned, CU_EVENT_DISABLE_TIMING);
    for (int i = 1; i < TL_LANES && result == CUDA_SUCCESS; i++)
        result = d->cu.EventCreate(&d->joined[i], CU_EVENT_DISABLE_TIMING);
    return result;
}

static tulle_status cuda_open(tl_base *b, int index, tl_device **device)
{
    tulle_status status = TULLE_OK;
    tl_device *d = NULL;
    char why[WORDS], nvrtc[96];
    const char *call;
    int count = 0, value = 0, result;
    size_t left = 0, total = 0;
    *device = NULL;
    TRY(tl_calloc(b, &d, 1, sizeof *d, "a CUDA device"));
    if (!tl_cuda_open(&d->cu, &count, why, sizeof why)) {
        status = tl_fail(b, TULLE_EDEVICE, "cuda:%d cannot be opened: %s", index, why);
        goto done;
    }
    if (index < 0 || index >= count) {
        status = tl_fail(b, TULLE_EDEVICE, "there is no cuda:%d: the driver finds %d device%s", index, count,
                         count == 1 ? "" : "s");
        goto done;
    }
    tl_cuda_caps(&d->cu, index, &d->caps);
    if (d->caps.why_not[0]) {
        status = tl_fail(b, TULLE_EDEVICE, "cuda:%d (%s) cannot be used: %s", index, d->caps.name,
                         d->caps.why_not);
        goto done;
    }
    TRY(answer(b, d, d->cu.DeviceGet(&d->device, index), "cuDeviceGet", 0));
    ask_to_spin(d);
    TRY(answer(b, d, d->cu.DevicePrimaryCtxRetain(&d->context, d->device), "cuDevicePrimaryCtxRetain", 0));
    bool entered = enter(d);
    result = make_queues(d, &call);
    if (result == CUDA_SUCCESS) {
        call = "cuMemGetInfo";
        result = d->cu.MemGetInfo(&left, &total);
    }
    leave(d, entered);
    TRY(answer(b, d, result, call, 0));
    d->queue = d->own;
    d->caps.memory_free = left;
    if (d->cu.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
                                 d->device) == CUDA_SUCCESS)
        d->coherent = value != 0;
    tl_nvrtc_version(nvrtc, sizeof nvrtc);
    snprintf(d->version, sizeof d->version, "%s; %s", d->caps.driver, nvrtc);
    *device = d;
    d = NULL;
done:
    cuda_close(d);
    return status;
}

static const tl_caps *cuda_caps(const tl_device *d)
{
    return &d->caps;
}

static tulle_status cuda_compile(void *self, tl_base *b, const char *name, const char *source,
                                 tl_image *image)
{
    const tl_device *d = self;
    return tl_nvrtc_compile(b, d->caps.arch, name, source, image, NULL, 0);
}

static tl_compiler cuda_compiler(tl_device *d)
{
    return (tl_compiler){.dialect = "cuda", .arch = d->caps.arch, .version = d->version, .self = d,
                         .compile = cuda_compile};
}

/* ---- memory */

static tulle_status cuda_alloc(tl_base *b, tl_device *d, uint64_t bytes, uint64_t *handle)
{
    CUdeviceptr p = 0;
    size_t left = 0, total = 0;
    int result;
    bool entered = enter(d);
    result = d->cu.MemAlloc(&p, bytes ? (size_t)bytes : 1);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) d->cu.MemGetInfo(&left, &total);
    leave(d, entered);
    *handle = result == CUDA_SUCCESS ? p : 0;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return tl_fail(b, TULLE_ENOMEM, "device memory: %" PRIu64 " bytes asked for, %zu of %zu are free",
                       bytes, left, total);
    return answer(b, d, result, "cuMemAlloc", bytes);
}

static void cuda_release(tl_device *d, uint64_t handle)
{
    if (!handle) return;
    bool entered = enter(d);
    d->cu.MemFree(handle);
    leave(d, entered);
}

static uint64_t cuda_left(tl_device *d)
{
    size_t left = 0, total = 0;
    int result;
    WITHIN(d, result, MemGetInfo(&left, &total));
    return result == CUDA_SUCCESS ? left : 0;
}

static tulle_status cuda_pinned(tl_base *b, tl_device *d, uint64_t bytes, void **p)
{
    int result;
    *p = NULL;
    WITHIN(d, result, MemHostAlloc(p, bytes ? (size_t)bytes : 1, CU_MEMHOSTALLOC_PORTABLE));
    if (result != CUDA_SUCCESS) *p = NULL;
    return answer(b, d, result, "cuMemHostAlloc", bytes);
}

static void cuda_unpin(tl_device *d, void *p)
{
    if (!p) return;
    bool entered = enter(d);
    d->cu.MemFreeHost(p);
    leave(d, entered);
}

/* Where the device sees the host's pages as they are, nothing needs to be locked. */
static bool cuda_lock(tl_device *d, void *p, uint64_t bytes)
{
    int result;
    if (d->coherent) return false;
    WITHIN(d, result, MemHostRegister(p, (size_t)bytes, CU_MEMHOSTREGISTER_PORTABLE));
    return result == CUDA_SUCCESS;
}

static void cuda_unlock(tl_device *d, void *p)
{
    bool entered = enter(d);
    d->cu.MemHostUnregister(p);
    leave(d, entered);
}

/* ---- copies */

static CUdeviceptr pointer(tl_dmem mem)
{
    return mem.handle + mem.offset;
}

/* The device takes this host memory itself, after the call that asks for a copy.  Pageable memory is staged
 * before such a call returns, unless the device sees the host's pages as they are. */
static bool cuda_reaches(const tl_device *d, const void *host)
{
    unsigned type = 0;
    int result;
    if (d->coherent) return true;
    WITHIN(d, result, PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                          (CUdeviceptr)(uintptr_t)host));
    return result == CUDA_SUCCESS && type != 0;
}

/* From pinned memory this waits for the queue: the bytes are taken only then. */
static tulle_status cuda_upload(tl_base *b, tl_device *d, tl_dmem to, const void *from, uint64_t bytes)
{
    const char *call = "cuMemcpyHtoDAsync";
    if (bytes == 0) return TULLE_OK;
    bool entered = enter(d);
    int result = d->cu.MemcpyHtoDAsync(pointer(to), from, (size_t)bytes, d->queue);
    if (result == CUDA_SUCCESS && cuda_reaches(d, from)) {
        call = "cuStreamSynchronize";
        result = d->cu.StreamSynchronize(d->queue);
        d->waits++;
    }
    leave(d, entered);
    return answer(b, d, result, call, bytes);
}

static tulle_status cuda_download(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes)
{
    int result;
    if (bytes == 0) return TULLE_OK;
    WITHIN(d, result, MemcpyDtoHAsync(to, pointer(from), (size_t)bytes, d->queue));
    return answer(b, d, result, "cuMemcpyDtoHAsync", bytes);
}

static tulle_status cuda_copy(tl_base *b, tl_device *d, tl_dmem to, tl_dmem from, uint64_t bytes)
{
    int result;
    if (bytes == 0) return TULLE_OK;
    WITHIN(d, result, MemcpyDtoDAsync(pointer(to), pointer(from), (size_t)bytes, d->queue));
    return answer(b, d, result, "cuMemcpyDtoDAsync", bytes);
}

static tulle_status cuda_fill(tl_base *b, tl_device *d, tl_dmem to, uint8_t byte, uint64_t bytes)
{
    int result;
    if (bytes == 0) return TULLE_OK;
    WITHIN(d, result, MemsetD8Async(pointer(to), byte, (size_t)bytes, d->queue));
    return answer(b, d, result, "cuMemsetD8Async", bytes);
}

static tulle_status cuda_wait(tl_base *b, tl_device *d)
{
    int result;
    WITHIN(d, result, StreamSynchronize(d->queue));
    d->waits++;
    return answer(b, d, result, "cuStreamSynchronize", 0);
}

static uint64_t cuda_waits(const tl_device *d)
{
    return d->waits;
}

/* ---- kernels */

static CUstream stream_of(const tl_device *d, int lane)
{
    return lane > 0 ? d->lane[lane] : d->queue;
}

/* The driver is not told how long an image is: an ELF file knows it, PTX must end with a zero. */
static bool image_ends(const tl_image *image)
{
    const char *text = image->data;
    if (image->bytes < 4) return false;
    return memcmp(text, "\177ELF", 4) == 0 || text[image->bytes - 1] == 0;
}

static tulle_status cuda_load(tl_base *b, tl_device *d, const tl_image *image, tl_module **module)
{
    tulle_status status = TULLE_OK;
    tl_module *m = NULL;
    char log[512] = "", words[WORDS];
    int option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, result;
    void *value[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    *module = NULL;
    if (!image_ends(image))
        return tl_fail(b, TULLE_EDRIVER, "an image of %" PRIu64 " bytes is neither a CUBIN nor PTX",
                       image->bytes);
    TRY(tl_calloc(b, &m, 1, sizeof *m, "a CUDA module"));
    WITHIN(d, result, ModuleLoadDataEx(&m->module, image->data, 2, option, value));
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        status = answer(b, d, result, "cuModuleLoadDataEx", image->bytes);
        goto done;
    }
    if (result != CUDA_SUCCESS) {
        tl_cuda_words(&d->cu, "cuModuleLoadDataEx", result, words, sizeof words);
        log[strcspn(log, "\n")] = 0;
        status = tl_fail(b, TULLE_EDRIVER, "%s; an image of %" PRIu64 " bytes for %s, driver and compiler: "
                         "%s%s%s", words, image->bytes, d->caps.arch, d->version, log[0] ? ": " : "", log);
        goto done;
    }
    *module = m;
    m = NULL;
done:
    tl_free(b, m);
    return status;
}

static void cuda_unload(tl_device *d, tl_module *m)
{
    if (!m) return;
    for (int i = 0; i < m->count; i++)
        if (d->last == &m->kernel[i]) d->last = NULL;
    bool entered = enter(d);
    d->cu.ModuleUnload(m->module);
    leave(d, entered);
    tl_free(NULL, m);
}

static tulle_status cuda_kernel(tl_base *b, tl_device *d, tl_module *m, const char *name, tl_kernel **kernel)
{
    int allowed = 0, result;
    char call[32 + NAME];
    *kernel = NULL;
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->kernel[i].name, name) == 0) {
            *kernel = &m->kernel[i];
            return TULLE_OK;
        }
    if (m->count == KERNELS || strlen(name) >= NAME)
        return tl_fail(b, TULLE_EDRIVER,
                       "kernel %s: a module has at most %d kernels with names of %d letters", name, KERNELS,
                       NAME - 1);
    tl_kernel *k = &m->kernel[m->count];
    snprintf(call, sizeof call, "cuModuleGetFunction(%s)", name);
    bool entered = enter(d);
    result = d->cu.ModuleGetFunction(&k->function, m->module, name);
    if (result == CUDA_SUCCESS)
        result = d->cu.FuncGetAttribute(&allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        k->function);
    leave(d, entered);
    if (result != CUDA_SUCCESS) return answer(b, d, result, call, 0);
    k->allowed = (uint32_t)allowed;
    snprintf(k->name, sizeof k->name, "%s", name);
    m->count++;
    *kernel = k;
    return TULLE_OK;
}

/* The sentence of a launch that was refused: what was asked for. */
static tulle_status refused(tl_base *b, const tl_device *d, const tl_kernel *k, const tl_launch *l,
                            const char *call, int result)
{
    char words[WORDS];
    tl_cuda_words(&d->cu, call, result, words, sizeof words);
    return tl_fail(b, result == CUDA_ERROR_OUT_OF_MEMORY ? TULLE_ENOMEM : TULLE_EDRIVER,
                   "kernel %s, %" PRIu64 " blocks of %u threads, %u bytes of shared memory: %s%s%s", k->name,
                   l->blocks, l->threads, l->shared, words,
                   d->last ? "; the kernel started before it is " : "", d->last ? d->last->name : "");
}

static tulle_status cuda_launch(tl_base *b, tl_device *d, tl_kernel *k, const tl_launch *l)
{
    const char *call = "cuLaunchKernel";
    CUdeviceptr place[ARGS];
    void *argument[ARGS];
    int result = CUDA_SUCCESS;
    if (l->blocks == 0) return TULLE_OK;
    if (l->blocks > INT32_MAX || l->count > ARGS)
        return tl_fail(b, TULLE_EDRIVER, "kernel %s: %" PRIu64 " blocks and %d arguments; a launch has at "
                       "most %d and %d", k->name, l->blocks, l->count, INT32_MAX, ARGS);
    if (l->shared > d->caps.shared_block)
        return tl_fail(b, TULLE_EDRIVER,
                       "kernel %s cannot be started with %u bytes of shared memory: %s has %u", k->name,
                       l->shared, d->caps.name, d->caps.shared_block);
    for (int i = 0; i < l->count; i++) {
        const tl_arg *a = &l->args[i];
        if (a->kind == TL_ARG_MEM) place[i] = pointer(a->as.mem);
        argument[i] = a->kind == TL_ARG_MEM ? (void *)&place[i] : (void *)(uintptr_t)&a->as;
    }
    bool entered = enter(d);
    if (l->shared > k->allowed) {               /* beyond 48 KB: by permission, given once */
        call = "cuFuncSetAttribute";
        result = d->cu.FuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)l->shared);
        if (result == CUDA_SUCCESS) k->allowed = l->shared;
    }
    if (result == CUDA_SUCCESS) {
        call = "cuLaunchKernel";
        result = d->cu.LaunchKernel(k->function, (unsigned)l->blocks, 1, 1, l->threads, 1, 1, l->shared,
                                    stream_of(d, l->lane), argument, NULL);
    }
    leave(d, entered);
    if (result != CUDA_SUCCESS) return refused(b, d, k, l, call, result);
    d->last = k;
    return TULLE_OK;
}

/* ---- lanes, time, the caller's queue */

static tulle_status cuda_fork(tl_base *b, tl_device *d, int lanes)
{
    const char *call = "cuEventRecord";
    if (lanes < 2) return TULLE_OK;
    bool entered = enter(d);
    int result = d->cu.EventRecord(d->forked, d->queue);
    for (int i = 1; i < lanes && i < TL_LANES && result == CUDA_SUCCESS; i++) {
        call = "cuStreamWaitEvent";
        result = d->cu.StreamWaitEvent(d->lane[i], d->forked, 0);
    }
    leave(d, entered);
    return answer(b, d, result, call, 0);
}

static tulle_status cuda_join(tl_base *b, tl_device *d, int lanes)
{
    const char *call = "cuEventRecord";
    int result = CUDA_SUCCESS;
    if (lanes < 2) return TULLE_OK;
    bool entered = enter(d);
    for (int i = 1; i < lanes && i < TL_LANES && result == CUDA_SUCCESS; i++) {
        call = "cuEventRecord";
        result = d->cu.EventRecord(d->joined[i], d->lane[i]);
        if (result != CUDA_SUCCESS) break;
        call = "cuStreamWaitEvent";
        result = d->cu.StreamWaitEvent(d->queue, d->joined[i], 0);
    }
    leave(d, entered);
    return answer(b, d, result, call, 0);
}

static tulle_status cuda_send(tl_base *b, tl_device *d, int lane, tl_dmem to, const void *from,
                              uint64_t bytes)
{
    int result;
    if (bytes == 0) return TULLE_OK;
    WITHIN(d, result, MemcpyHtoDAsync(pointer(to), from, (size_t)bytes, stream_of(d, lane)));
    return answer(b, d, result, "cuMemcpyHtoDAsync", bytes);
}

static tulle_status cuda_fetch(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes)
{
    int result;
    if (bytes == 0) return TULLE_OK;
    WITHIN(d, result, MemcpyDtoHAsync(to, pointer(from), (size_t)bytes, stream_of(d, lane)));
    return answer(b, d, result, "cuMemcpyDtoHAsync", bytes);
}

static tulle_status cuda_flag(tl_base *b, tl_device *d, int lane, int flag)
{
    const char *call = "cuEventCreate";
    int result = CUDA_SUCCESS;
    bool entered = enter(d);
    if (!d->flag[flag]) result = d->cu.EventCreate(&d->flag[flag], CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
        call = "cuEventRecord";
        result = d->cu.EventRecord(d->flag[flag], stream_of(d, lane));
    }
    leave(d, entered);
    return answer(b, d, result, call, 0);
}

static tulle_status cuda_settle(tl_base *b, tl_device *d, int flag)
{
    int result;
    if (!d->flag[flag])
        return tl_fail(b, TULLE_EDRIVER, "flag %d cannot be waited for: no lane has it", flag);
    WITHIN(d, result, EventSynchronize(d->flag[flag]));
    d->waits++;
    return answer(b, d, result, "cuEventSynchronize", 0);
}

static tulle_status cuda_follow(tl_base *b, tl_device *d, int lane, int flag)
{
    int result;
    if (!d->flag[flag])
        return tl_fail(b, TULLE_EDRIVER, "flag %d cannot be waited for: no lane has it", flag);
    WITHIN(d, result, StreamWaitEvent(stream_of(d, lane), d->flag[flag], 0));
    return answer(b, d, result, "cuStreamWaitEvent", 0);
}

static tulle_status cuda_mark(tl_base *b, tl_device *d, int event)
{
    const char *call = "cuEventCreate";
    int result = CUDA_SUCCESS;
    bool entered = enter(d);
    if (!d->timer[event]) result = d->cu.EventCreate(&d->timer[event], CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS) {
        call = "cuEventRecord";
        result = d->cu.EventRecord(d->timer[event], d->queue);
    }
    leave(d, entered);
    return answer(b, d, result, call, 0);
}

static tulle_status cuda_elapsed(tl_base *b, tl_device *d, int from, int to, double *seconds)
{
    float ms = 0;
    int result;
    *seconds = 0;
    if (!d->timer[from] || !d->timer[to])
        return tl_fail(b, TULLE_EDRIVER, "no time between events %d and %d: they were not marked", from, to);
    WITHIN(d, result, EventElapsedTime(&ms, d->timer[from], d->timer[to]));
    if (result == CUDA_SUCCESS) *seconds = 1e-3 * (double)ms;
    return answer(b, d, result, "cuEventElapsedTime", 0);
}

/* The new queue goes on where the old one stands: the caller's stream must live until then. */
static tulle_status cuda_queue(tl_base *b, tl_device *d, void *queue)
{
    const char *call = "cuEventRecord";
    CUstream next = queue ? queue : d->own;
    if (next == d->queue) return TULLE_OK;
    bool entered = enter(d);
    int result = d->cu.EventRecord(d->turned, d->queue);
    if (result == CUDA_SUCCESS) {
        call = "cuStreamWaitEvent";
        result = d->cu.StreamWaitEvent(next, d->turned, 0);
    }
    leave(d, entered);
    if (result == CUDA_SUCCESS) d->queue = next;
    return answer(b, d, result, call, 0);
}

static void *cuda_native(tl_device *d, tl_native what)
{
    switch (what) {
    case TL_NATIVE_CONTEXT: return d->context;
    case TL_NATIVE_QUEUE:   return d->queue;
    default:                return NULL;        /* a CUdevice is a number */
    }
}

const tl_driver tl_driver_cuda = {.name = "cuda",
                                  .list = cuda_list,
                                  .open = cuda_open,
                                  .close = cuda_close,
                                  .caps = cuda_caps,
                                  .compiler = cuda_compiler,
                                  .alloc = cuda_alloc,
                                  .free = cuda_release,
                                  .left = cuda_left,
                                  .pinned = cuda_pinned,
                                  .unpin = cuda_unpin,
                                  .lock = cuda_lock,
                                  .unlock = cuda_unlock,
                                  .reaches = cuda_reaches,
                                  .upload = cuda_upload,
                                  .download = cuda_download,
                                  .copy = cuda_copy,
                                  .fill = cuda_fill,
                                  .wait = cuda_wait,
                                  .waits = cuda_waits,
                                  .load = cuda_load,
                                  .unload = cuda_unload,
                                  .kernel = cuda_kernel,
                                  .launch = cuda_launch,
                                  .fork = cuda_fork,
                                  .join = cuda_join,
                                  .send = cuda_send,
                                  .fetch = cuda_fetch,
                                  .flag = cuda_flag,
                                  .settle = cuda_settle,
                                  .follow = cuda_follow,
                                  .mark = cuda_mark,
                                  .elapsed = cuda_elapsed,
                                  .queue = cuda_queue,
                                  .native = cuda_native};
