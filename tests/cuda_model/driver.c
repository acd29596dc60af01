/* SPDX-License-Identifier: MIT
 *
 * driver.c - libcuda of the CUDA model: only the functions that tulle uses (src/gpu/cuda.h).
 *
 * Copies, fills and launches are executed immediately, in the calling thread, so streams keep their order and events
 * only record the time.  One lock guards the tables; it is not held while a kernel runs, so that several devices can
 * work at the same time.  A module has only one instance of its static shared memory, so its launches exclude each
 * other.
 *
 * A kernel that fails breaks the context of its device, as in CUDA: the launch itself succeeds, and every later call
 * returns the error, until the primary context has been released by all its users. */
#define _GNU_SOURCE
#include "model.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CU __attribute__((visibility("default"))) int

enum { DEPTH = 16, DEFAULT_SHARED = 48 << 10, FUNC_DYNAMIC_SHARED = 8, NON_BLOCKING = 1, NO_TIMING = 2 };

typedef enum { STREAM = 0x51, EVENT, MODULE, FUNCTION, GONE } kind;

/* All objects with a handle, in a list: a handle is compared with these, and never dereferenced if it is invalid. */
typedef struct handle {
    kind            kind;
    int             device;
    struct handle  *next;
    double          time;               /* events: recorded at, in ms; < 0: not recorded            */
    unsigned        flags;
    void           *library;            /* modules                                                  */
    const cuda_model_image_t *image;
    pthread_mutex_t running;
    struct handle  *module;             /* functions                                                */
    const cuda_model_kernel *kernel;
    int             allowed;            /* dynamic shared memory, in bytes                          */
} handle;

typedef struct device { int users, error; unsigned flags; } device;

typedef struct chip { int capability, shared_block, shared_processor, threads_processor; } chip;
static const chip chips[] = {{75, 64 << 10, 64 << 10, 1024}, {80, 163 << 10, 164 << 10, 2048}, {90, 227 << 10, 228 << 10, 2048}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            ready;
static int             count, processors;
static size_t          memory_bytes;
static const chip     *model = &chips[0];
static device          devices[DEVICES_MOST];
static handle         *handles;
static _Thread_local device *stack[DEPTH];
static _Thread_local int     depth;

const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

long setting_number(const char *name, long otherwise, long least, long most)
{
    const char *text = setting(name, NULL);
    char *end;
    if (!text) return otherwise;
    long value = strtol(text, &end, 10);
    if (!*end && value >= least && value <= most) return value;
    say("%s is \"%s\"; it may be a whole number from %ld to %ld", name, text, least, most);
    abort();
}

/* ---- at the beginning of a call: takes the lock; most calls also need a context that is not broken */

static int here(void) { return (int)(stack[depth - 1] - devices); }

static int in_context(void)
{
    if (!ready) return NOT_INITIALIZED;
    if (depth == 0 || !stack[depth - 1] || !stack[depth - 1]->users) return INVALID_CONTEXT;
    return stack[depth - 1]->error;
}

static int in_device(int index)
{
    return !ready ? NOT_INITIALIZED : index < 0 || index >= count ? INVALID_DEVICE : CUDA_OK;
}

#define ENTER(begin)                                                                \
    pthread_mutex_lock(&lock);                                                      \
    int entered = (begin);                                                          \
    if (entered != CUDA_OK) {                                                       \
        pthread_mutex_unlock(&lock);                                                \
        return entered;                                                             \
    }
#define LEAVE(result)                                                               \
    do {                                                                            \
        int leaving = (result);                                                       \
        pthread_mutex_unlock(&lock);                                                \
        return leaving;                                                              \
    } while (0)

static handle *handle_new(kind k)
{
    handle *h = calloc(1, sizeof *h);
    if (!h) abort();
    h->kind = k;
    h->device = here();
    h->time = -1;
    pthread_mutex_init(&h->running, NULL);
    h->next = handles;
    handles = h;
    return h;
}

/* A handle of this kind and of the current device. */
static handle *handle_of(const void *p, kind k)
{
    for (handle *h = handles; h; h = h->next)
        if (h == p) return h->kind == k && h->device == here() ? h : NULL;
    return NULL;
}

static void handle_free(handle *gone)
{
    for (handle **at = &handles; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            break;
        }
    if (gone->library) dlclose(gone->library);
    pthread_mutex_destroy(&gone->running);
    free(gone);
}

/* ---- the library and its devices */

CU cuInit(unsigned flags)
{
    pthread_mutex_lock(&lock);
    if (!ready) {
        long capability = setting_number("CUDA_MODEL_CAPABILITY", 90, 70, 99);
        count = (int)setting_number("CUDA_MODEL_DEVICES", 1, 0, DEVICES_MOST);
        processors = (int)setting_number("CUDA_MODEL_PROCESSORS", 4, 1, 1000);
        memory_bytes = (size_t)setting_number("CUDA_MODEL_MEMORY", 1l << 30, 1 << 20, 1l << 40);
        for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
            if (chips[i].capability == capability) model = &chips[i];
        if (model->capability != capability) {
            say("CUDA_MODEL_CAPABILITY may be 75, 80 or 90");
            abort();
        }
        ready = true;
    }
    LEAVE(flags ? INVALID_VALUE : count < 1 ? NO_DEVICE : CUDA_OK);
}

CU cuDriverGetVersion(int *version)
{
    *version = 12080;
    return CUDA_OK;
}

static const struct { int code; const char *name, *text; } errors[] = {
    {CUDA_OK, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}};

static int error_text(int code, const char **text, bool name)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) *text = name ? errors[i].name : errors[i].text;
    return *text ? CUDA_OK : INVALID_VALUE;
}

CU cuGetErrorName(int code, const char **text) { return error_text(code, text, true); }
CU cuGetErrorString(int code, const char **text) { return error_text(code, text, false); }

CU cuDeviceGetCount(int *number)
{
    ENTER(ready ? CUDA_OK : NOT_INITIALIZED)
    *number = count;
    LEAVE(CUDA_OK);
}

CU cuDeviceGet(int *out, int index)
{
    ENTER(in_device(index))
    *out = index;
    LEAVE(CUDA_OK);
}

CU cuDeviceGetName(char *name, int bytes, int index)
{
    ENTER(in_device(index))
    snprintf(name, (size_t)bytes, "CUDA model %d", index);
    LEAVE(CUDA_OK);
}

CU cuDeviceTotalMem_v2(size_t *bytes, int index)
{
    ENTER(in_device(index))
    *bytes = memory_bytes;
    LEAVE(CUDA_OK);
}

CU cuDeviceGetAttribute(int *value, int attribute, int index)
{
    ENTER(in_device(index))
    const int table[][2] = {{1, THREADS_MOST}, {10, 32}, {16, processors}, {20, 0}, {39, model->threads_processor},
                            {75, model->capability / 10}, {76, model->capability % 10}, {81, model->shared_processor},
                            {97, model->shared_block}, {100, 0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == attribute) {
            *value = table[i][1];
            LEAVE(CUDA_OK);
        }
    LEAVE(INVALID_VALUE);
}

/* ---- contexts: the primary one of each device */

CU cuDevicePrimaryCtxGetState(int index, unsigned *flags, int *active)
{
    ENTER(in_device(index))
    *flags = devices[index].flags;
    *active = devices[index].users > 0;
    LEAVE(CUDA_OK);
}

CU cuDevicePrimaryCtxSetFlags_v2(int index, unsigned flags)
{
    ENTER(in_device(index))
    devices[index].flags = flags;
    LEAVE(CUDA_OK);
}

CU cuDevicePrimaryCtxRetain(void **out, int index)
{
    ENTER(in_device(index))
    devices[index].users++;
    *out = &devices[index];
    LEAVE(CUDA_OK);
}

/* The last release frees all remaining objects. */
CU cuDevicePrimaryCtxRelease_v2(int index)
{
    ENTER(in_device(index))
    if (devices[index].users < 1) LEAVE(INVALID_CONTEXT);
    if (--devices[index].users > 0) LEAVE(CUDA_OK);
    memory_free_all(index);
    for (handle *h = handles, *next; h; h = next) {
        next = h->next;
        if (h->device == index) handle_free(h);
    }
    devices[index].error = CUDA_OK;
    LEAVE(CUDA_OK);
}

CU cuCtxGetCurrent(void **out)
{
    *out = depth ? stack[depth - 1] : NULL;
    return CUDA_OK;
}

CU cuCtxPushCurrent_v2(void *context)
{
    ENTER(ready ? CUDA_OK : NOT_INITIALIZED)
    bool known = false;
    for (int i = 0; i < count; i++) known |= context == (void *)&devices[i] && devices[i].users > 0;
    if (!known || depth == DEPTH) LEAVE(INVALID_CONTEXT);
    stack[depth++] = context;
    LEAVE(CUDA_OK);
}

CU cuCtxPopCurrent_v2(void **out)
{
    if (depth == 0) return INVALID_CONTEXT;
    *out = stack[--depth];
    return CUDA_OK;
}

/* ---- memory */

CU cuMemGetInfo_v2(size_t *left, size_t *total)
{
    ENTER(in_context())
    *total = memory_bytes;
    *left = memory_bytes - memory_used(here());
    LEAVE(CUDA_OK);
}

CU cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    void *p;
    ENTER(in_context())
    if (bytes == 0) LEAVE(INVALID_VALUE);
    if (bytes > memory_bytes - memory_used(here()) || memory_new(DEVICE_MEMORY, here(), bytes, &p) != CUDA_OK) LEAVE(OUT_OF_MEMORY);
    *out = (uint64_t)(uintptr_t)p;
    LEAVE(CUDA_OK);
}

/* A write after the end of the block is detected here at the latest. */
static int freed(memory_kind k, const void *p)
{
    int result = memory_free(k, here(), p);
    if (result == ILLEGAL_ADDRESS) stack[depth - 1]->error = result;
    return result;
}

CU cuMemFree_v2(uint64_t p)
{
    ENTER(in_context())
    LEAVE(p ? freed(DEVICE_MEMORY, (void *)(uintptr_t)p) : CUDA_OK);
}

CU cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER(in_context())
    LEAVE(bytes == 0 || flags > 7 ? INVALID_VALUE : memory_new(PINNED_MEMORY, here(), bytes, out));
}

CU cuMemFreeHost(void *p)
{
    ENTER(in_context())
    LEAVE(freed(PINNED_MEMORY, p));
}

CU cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    ENTER(in_context())
    LEAVE(!p || bytes == 0 || flags > 7 ? INVALID_VALUE : memory_lock(p, bytes));
}

CU cuMemHostUnregister(void *p)
{
    ENTER(in_context())
    LEAVE(freed(LOCKED_MEMORY, p));
}

CU cuPointerGetAttribute(void *value, int attribute, uint64_t p)
{
    ENTER(in_context())
    const void *at = (void *)(uintptr_t)p;
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };
    bool pinned = memory_holds(PINNED_MEMORY, -1, at, 1) || memory_holds(LOCKED_MEMORY, -1, at, 1);
    bool on_device = memory_holds(DEVICE_MEMORY, -1, at, 1);
    if (!pinned && !on_device) LEAVE(INVALID_VALUE);
    int ordinal = 0;
    while (on_device && !memory_holds(DEVICE_MEMORY, ordinal, at, 1)) ordinal++;
    if (attribute == MEMORY_TYPE) *(unsigned *)value = pinned ? 1 : 2;
    else if (attribute == IS_MANAGED) *(unsigned *)value = 0;
    else if (attribute == DEVICE_ORDINAL) *(int *)value = ordinal;
    else LEAVE(INVALID_VALUE);
    LEAVE(CUDA_OK);
}

/* ---- copies, executed at once.  A range that is not within a block of the right kind is an error. */

static bool on_device(uint64_t p, size_t bytes) { return memory_holds(DEVICE_MEMORY, here(), (void *)(uintptr_t)p, bytes); }
static bool on_host(const void *p) { return p && !memory_holds(DEVICE_MEMORY, -1, p, 1); }

static int copied(bool allowed, void *to, const void *from, size_t bytes, const void *stream)
{
    if (!handle_of(stream, STREAM)) return INVALID_HANDLE;
    if (!allowed) return INVALID_VALUE;
    memmove(to, from, bytes);
    return CUDA_OK;
}

CU cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    ENTER(in_context())
    LEAVE(copied(on_device(to, bytes) && on_host(from), (void *)(uintptr_t)to, from, bytes, stream));
}

CU cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    ENTER(in_context())
    LEAVE(copied(on_device(from, bytes) && on_host(to), to, (void *)(uintptr_t)from, bytes, stream));
}

CU cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    ENTER(in_context())
    LEAVE(copied(on_device(to, bytes) && on_device(from, bytes), (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, stream));
}

CU cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream)
{
    ENTER(in_context())
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    if (!on_device(to, bytes)) LEAVE(INVALID_VALUE);
    memset((void *)(uintptr_t)to, byte, bytes);
    LEAVE(CUDA_OK);
}

/* ---- streams and events */

CU cuStreamCreate(void **out, unsigned flags)
{
    ENTER(in_context())
    if (flags > NON_BLOCKING) LEAVE(INVALID_VALUE);
    *out = handle_new(STREAM);
    LEAVE(CUDA_OK);
}

static int destroyed(const void *p, kind k)
{
    handle *h = handle_of(p, k);
    if (!h) return INVALID_HANDLE;
    handle_free(h);
    return CUDA_OK;
}

CU cuStreamDestroy_v2(void *stream)
{
    ENTER(in_context())
    LEAVE(destroyed(stream, STREAM));
}

/* Here writes of a kernel just after a block, before its guard page, are detected. */
CU cuStreamSynchronize(void *stream)
{
    ENTER(in_context())
    if (!handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    if (memory_damaged(here())) stack[depth - 1]->error = ILLEGAL_ADDRESS;
    LEAVE(stack[depth - 1]->error);
}

CU cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    ENTER(in_context())
    LEAVE(handle_of(stream, STREAM) && handle_of(event, EVENT) ? flags ? INVALID_VALUE : CUDA_OK : INVALID_HANDLE);
}

CU cuEventCreate(void **out, unsigned flags)
{
    ENTER(in_context())
    if (flags > 7) LEAVE(INVALID_VALUE);
    handle *h = handle_new(EVENT);
    h->flags = flags;
    *out = h;
    LEAVE(CUDA_OK);
}

CU cuEventDestroy_v2(void *event)
{
    ENTER(in_context())
    LEAVE(destroyed(event, EVENT));
}

CU cuEventRecord(void *event, void *stream)
{
    struct timespec t;
    ENTER(in_context())
    handle *h = handle_of(event, EVENT);
    if (!h || !handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    clock_gettime(CLOCK_MONOTONIC, &t);
    h->time = 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
    LEAVE(CUDA_OK);
}

CU cuEventSynchronize(void *event)
{
    ENTER(in_context())
    LEAVE(handle_of(event, EVENT) ? CUDA_OK : INVALID_HANDLE);
}

CU cuEventElapsedTime(float *ms, void *from, void *to)
{
    ENTER(in_context())
    handle *a = handle_of(from, EVENT), *b = handle_of(to, EVENT);
    if (!a || !b || ((a->flags | b->flags) & NO_TIMING) || a->time < 0 || b->time < 0) LEAVE(INVALID_HANDLE);
    *ms = (float)(b->time - a->time);
    LEAVE(CUDA_OK);
}

/* ---- modules */

/* The length of an image, which CUDA does not pass; 0: it is no image. */
static size_t image_bytes(const void *image)
{
    const Elf64_Ehdr *h = image;
#if defined(__x86_64__)
    const int machine = EM_X86_64;
#else
    const int machine = EM_AARCH64;
#endif
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_machine != machine || h->e_type != ET_DYN) return 0;
    return (size_t)h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;     /* the linker puts them last */
}

static void *open_image(const void *image, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/cuda-model-XXXXXX", setting("TMPDIR", "/tmp"));
    int file = mkstemp(path);
    if (file < 0) return NULL;
    const char *at = image;
    for (size_t left = bytes; left > 0;) {
        ssize_t n = write(file, at, left);
        if (n <= 0) break;
        at += n;
        left -= (size_t)n;
    }
    close(file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) say("an image cannot be opened: %s", dlerror());
    unlink(path);
    return library;
}

CU cuModuleLoadDataEx(void **out, const void *image, unsigned options, int *option, void **value)
{
    ENTER(in_context())
    const cuda_model_image_t *found = NULL;
    size_t bytes = image_bytes(image);
    void *library = bytes ? open_image(image, bytes) : NULL;
    if (library) found = dlsym(library, "cuda_model_image");
    if (!found || found->version != CUDA_MODEL_VERSION || found->capability > model->capability) {
        for (unsigned i = 0; i + 1 < options; i++)
            if (option[i] == 5 && option[i + 1] == 6)
                snprintf(value[i], (size_t)(uintptr_t)value[i + 1], "this image was not made by the CUDA model for sm_%d",
                         model->capability);
        if (library) dlclose(library);
        LEAVE(bytes ? NO_BINARY_FOR_GPU : INVALID_IMAGE);
    }
    handle *h = handle_new(MODULE);
    h->library = library;
    h->image = found;
    *out = h;
    LEAVE(CUDA_OK);
}

CU cuModuleUnload(void *module)
{
    ENTER(in_context())
    handle *m = handle_of(module, MODULE);
    if (!m) LEAVE(INVALID_HANDLE);
    for (handle *h = handles, *next; h; h = next) {
        next = h->next;
        if (h->kind == FUNCTION && h->module == m) handle_free(h);
    }
    handle_free(m);
    LEAVE(CUDA_OK);
}

static int static_shared(const cuda_model_kernel *k) { return (int)(k->shared_end - k->shared); }

CU cuModuleGetFunction(void **out, void *module, const char *name)
{
    ENTER(in_context())
    handle *m = handle_of(module, MODULE);
    if (!m) LEAVE(INVALID_HANDLE);
    for (int i = 0; i < m->image->kernels; i++) {
        const cuda_model_kernel *k = &m->image->kernel[i];
        if (strcmp(k->name, name) != 0) continue;
        handle *f = handle_new(FUNCTION);
        f->module = m;
        f->kernel = k;
        f->allowed = DEFAULT_SHARED - static_shared(k);
        *out = f;
        LEAVE(CUDA_OK);
    }
    LEAVE(NOT_FOUND);
}

CU cuFuncGetAttribute(int *value, int attribute, void *function)
{
    ENTER(in_context())
    handle *f = handle_of(function, FUNCTION);
    if (!f) LEAVE(INVALID_HANDLE);
    if (attribute != FUNC_DYNAMIC_SHARED) LEAVE(INVALID_VALUE);
    *value = f->allowed;
    LEAVE(CUDA_OK);
}

CU cuFuncSetAttribute(void *function, int attribute, int value)
{
    ENTER(in_context())
    handle *f = handle_of(function, FUNCTION);
    if (!f) LEAVE(INVALID_HANDLE);
    if (attribute != FUNC_DYNAMIC_SHARED || value < 0 || value > model->shared_block - static_shared(f->kernel))
        LEAVE(INVALID_VALUE);
    f->allowed = value;
    LEAVE(CUDA_OK);
}

/* ---- launches */

/* Checks that a kernel's pointer arguments are NULL or point to memory of its device.  Host memory, or memory of
 * another device, could be read without a fault in this model, but not on a real device. */
static bool pointers_are_ours(const cuda_model_kernel *k, void **arguments)
{
    for (int i = 0; i < k->arguments; i++) {
        void *p;
        if (!k->argument[i].pointer) continue;
        memcpy(&p, arguments[i], sizeof p);
        if (!p || memory_holds(DEVICE_MEMORY, here(), p, 0)) continue;
        say("kernel %s: argument %d is %p, which is not in the memory of device %d", k->name, i, p, here());
        return false;
    }
    return true;
}

CU cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra)
{
    ENTER(in_context())
    handle *f = handle_of(function, FUNCTION);
    if (!f || !handle_of(stream, STREAM)) LEAVE(INVALID_HANDLE);
    const cuda_model_kernel *k = f->kernel;
    if (!grid_x || grid_x > INT32_MAX || grid_y != 1 || grid_z != 1 || !block_x || block_x > THREADS_MOST || block_y != 1
        || block_z != 1 || extra || (!arguments && k->arguments) || shared > (unsigned)f->allowed)
        LEAVE(INVALID_VALUE);
    if (k->threads_most && block_x > k->threads_most) LEAVE(LAUNCH_OUT_OF_RESOURCES);
    device *d = stack[depth - 1];
    handle *m = f->module;
    int result = pointers_are_ours(k, arguments) ? CUDA_OK : ILLEGAL_ADDRESS;
    pthread_mutex_unlock(&lock);
    if (result == CUDA_OK) {
        pthread_mutex_lock(&m->running);
        const launch l = {.image = m->image, .kernel = k, .blocks = grid_x, .threads = block_x, .shared = shared,
                          .arguments = arguments};
        result = run_launch(&l);
        pthread_mutex_unlock(&m->running);
    }
    pthread_mutex_lock(&lock);
    if (result != CUDA_OK && d->error == CUDA_OK) d->error = result;
    LEAVE(CUDA_OK);
}
