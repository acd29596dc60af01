/* SPDX-License-Identifier: MIT
 *
 * driver_opencl.c - the driver table over OpenCL 1.2.
 *
 * One context, one queue in order with profiling; fork and join do nothing, as one queue is what there is: a
 * lane is that queue, too.
 *
 *   memory    a handle is a cl_mem.  A kernel argument that starts inside of one is a sub-buffer from there
 *             to its end, kept for the next launch until the buffer is freed or another needs the place.
 *             NVIDIA's runtime (580.159) crashes in clReleaseMemObject of some sub-buffers, at random as it
 *             seems: there they are never released, and a buffer that has any stays allocated until the
 *             process ends.  An argument that is no memory is a small buffer of ones, which kernels know
 *                            (GIVEN).
 *   shared    dynamic local memory is the first argument of a kernel that has any: a launch with shared > 0
 *             gives it, and the caller's arguments follow.
 *   queue     the caller's queue lives in the caller's context, and so must all buffers and programs that are
 *             used on it: the device moves to that context, which it can while it holds nothing.
 *
 * Runtimes allocate when a buffer is first used; each new one is migrated to the device at once, so that it
 * is the allocation that fails and not a kernel much later. */
#include "gpu/opencl.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 64 };

/* ---- devices */

static tulle_status list(tl_base *b, tl_caps *caps, int room, int *count, char *why, size_t why_bytes)
{
    tulle_status status = TULLE_OK;
    tl_cl cl;
    tl_cl_device devices[TL_CL_DEVICES];
    *count = 0;
    if (tl_cl_open(&cl, why, why_bytes)) {
        *count = tl_cl_devices(&cl, devices);
        if (*count == 0) snprintf(why, why_bytes, "the OpenCL library knows no device");
        for (int i = 0; i < *count && i < room; i++) TRY(tl_cl_caps(b, &cl, devices[i], &caps[i]));
    }
done:
    tl_cl_close(&cl);
    return status;
}

static void release_part(tl_device *d, tl_cl_part *part)
{
    if (part->part && !d->keeps_parts) d->cl.ReleaseMemObject(part->part);
    *part = (tl_cl_part){0};
}

/* Those of one buffer, or all. */
static void release_parts(tl_device *d, cl_mem whole)
{
    for (int i = 0; i < TL_CL_PARTS; i++)
        if (!whole || d->part[i].whole == whole) release_part(d, &d->part[i]);
}

static void release_context(tl_device *d)
{
    release_parts(d, NULL);
    for (int i = 0; i < TL_EVENTS; i++) {
        if (d->events[i]) d->cl.ReleaseEvent(d->events[i]);
        d->events[i] = NULL;
    }
    for (int i = 0; i < TL_FLAGS; i++) {
        if (d->flags[i]) d->cl.ReleaseEvent(d->flags[i]);
        d->flags[i] = NULL;
    }
    if (d->nothing) d->cl.ReleaseMemObject(d->nothing);
    d->nothing = NULL;
    if (d->queue && d->queue != d->own) d->cl.ReleaseCommandQueue(d->queue);
    if (d->own) d->cl.ReleaseCommandQueue(d->own);
    if (d->context) d->cl.ReleaseContext(d->context);
    d->own = d->queue = NULL;
    d->context = NULL;
}

static tulle_status own_queue(tl_base *b, tl_device *d)
{
    tulle_status status = TULLE_OK;
    const uint32_t ones = UINT32_MAX;
    int code = CL_SUCCESS;
    d->own = d->cl.CreateCommandQueue(d->context, d->device.id, CL_QUEUE_PROFILING_ENABLE, &code);
    d->queue = d->own;
    TRY(tl_cl_check(b, d, code, "clCreateCommandQueue", "opening the device"));
    d->nothing = d->cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, TL_ALIGN, NULL, &code);
    TRY(tl_cl_check(b, d, code, "clCreateBuffer", "opening the device"));
    code = d->cl.EnqueueFillBuffer(d->own, d->nothing, &ones, sizeof ones, 0, TL_ALIGN, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = d->cl.Finish(d->own);
    TRY(tl_cl_check(b, d, code, "clEnqueueFillBuffer", "opening the device"));
done:
    return status;
}

static void close_device(tl_device *d)
{
    if (!d) return;
    if (d->queue) d->cl.Finish(d->queue);
    if (d->cl.library) release_context(d);
    tl_cl_close(&d->cl);
    pthread_mutex_destroy(&d->compiling);
    tl_free(NULL, d);
}

static tulle_status open_device(tl_base *b, int index, tl_device **device)
{
    tulle_status status = TULLE_OK;
    tl_device *d = NULL;
    tl_cl_device devices[TL_CL_DEVICES];
    char why[256];
    int code = CL_SUCCESS;
    *device = NULL;

    TRY(tl_calloc(b, &d, 1, sizeof *d, "an OpenCL device"));
    pthread_mutex_init(&d->compiling, NULL);
    if (!tl_cl_open(&d->cl, why, sizeof why)) {
        status = tl_fail(b, TULLE_EDEVICE, "there is no OpenCL here: %s", why);
        goto done;
    }
    int count = tl_cl_devices(&d->cl, devices);
    if (index < 0 || index >= count) {
        status = tl_fail(b, TULLE_EDEVICE, "there is no device opencl:%d, OpenCL has %d", index, count);
        goto done;
    }
    d->device = devices[index];
    TRY(tl_cl_caps(b, &d->cl, d->device, &d->caps));
    if (d->caps.why_not[0]) {
        status = tl_fail(b, TULLE_EDEVICE, "opencl:%d (%s) cannot be used: %s", index, d->caps.name,
                         d->caps.why_not);
        goto done;
    }
    d->cl.GetDeviceInfo(d->device.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof d->block_most, &d->block_most,
                        NULL);
    d->most_free = d->caps.memory_free;
    d->one_by_one = strstr(d->caps.driver, "Oclgrind") != NULL;
    d->keeps_parts = strncmp(d->caps.arch, "sm_", 3) == 0;
    d->keeps_binaries = strstr(d->caps.driver, "PoCL") != NULL;
    snprintf(d->version, sizeof d->version, "%s, %s, %s", d->caps.driver, d->caps.arch, TL_CL_OPTIONS);
    d->context = d->cl.CreateContext(NULL, 1, &d->device.id, NULL, NULL, &code);
    TRY(tl_cl_check(b, d, code, "clCreateContext", "opening the device"));
    TRY(own_queue(b, d));
    *device = d;
done:
    if (status != TULLE_OK) close_device(d);
    return status;
}

static const tl_caps *caps_of(const tl_device *d) { return &d->caps; }

/* ---- memory */

static cl_mem buffer_of(uint64_t handle) { return (cl_mem)(uintptr_t)handle; }

static void count_bytes(tl_device *d, uint64_t more, uint64_t less)
{
    d->held += more - less;
    d->caps.memory_free = d->most_free > d->held ? d->most_free - d->held : 0;
}

static tulle_status no_memory(tl_base *b, const tl_device *d, uint64_t bytes, int code)
{
    char reason[96] = "";
    if (code != CL_SUCCESS) snprintf(reason, sizeof reason, " (%s)", tl_cl_error(code));
    return tl_fail(b, TULLE_ENOMEM, "%" PRIu64 " bytes could not be had on %s: %" PRIu64 " of %" PRIu64
                   " are held, one block can have %" PRIu64 "%s",
                   bytes, d->caps.name, d->held, d->caps.memory_bytes, d->block_most, reason);
}

static tulle_status alloc(tl_base *b, tl_device *d, uint64_t bytes, uint64_t *handle)
{
    int code = CL_SUCCESS;
    *handle = 0;
    if (bytes == 0) bytes = 1;
    if (bytes > d->block_most || bytes > d->caps.memory_bytes || d->held > d->caps.memory_bytes - bytes)
        return no_memory(b, d, bytes, code);
    cl_mem mem = d->cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (code == CL_SUCCESS) {
        code = d->cl.EnqueueMigrateMemObjects(d->queue, 1, &mem, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                              NULL, NULL);
        if (code != CL_SUCCESS) d->cl.ReleaseMemObject(mem);
    }
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES
        || code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE)
        return no_memory(b, d, bytes, code);
    if (code != CL_SUCCESS) return tl_cl_check(b, d, code, "clCreateBuffer", "device memory");
    *handle = (uint64_t)(uintptr_t)mem;
    count_bytes(d, bytes, 0);
    return TULLE_OK;
}

static size_t size_of(const tl_device *d, cl_mem mem)
{
    size_t bytes = 0;
    d->cl.GetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
    return bytes;
}

static void free_memory(tl_device *d, uint64_t handle)
{
    if (!handle) return;
    release_parts(d, buffer_of(handle));
    count_bytes(d, 0, size_of(d, buffer_of(handle)));
    d->cl.ReleaseMemObject(buffer_of(handle));
}

static uint64_t left(tl_device *d) { return d->caps.memory_free; }

static tulle_status pinned(tl_base *b, tl_device *d, uint64_t bytes, void **p)
{
    (void)d;
    return tl_alloc(b, p, (int64_t)bytes, 1, "host memory for copies");
}

static void unpin(tl_device *d, void *p)
{
    (void)d;
    tl_free(NULL, p);
}

/* OpenCL does not tell whether memory of the host is pinned. */
static bool reaches(const tl_device *d, const void *p)
{
    (void)d, (void)p;
    return false;
}

/* ---- copies and fills */

static tulle_status upload(tl_base *b, tl_device *d, tl_dmem to, const void *from, uint64_t bytes)
{
    if (bytes == 0) return TULLE_OK;
    int code = d->cl.EnqueueWriteBuffer(d->queue, buffer_of(to.handle), 1, (size_t)to.offset, (size_t)bytes,
                                        from, 0, NULL, NULL);
    return tl_cl_check(b, d, code, "clEnqueueWriteBuffer", "copying to the device");
}

static tulle_status download(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes)
{
    if (bytes == 0) return TULLE_OK;
    int code = d->cl.EnqueueReadBuffer(d->queue, buffer_of(from.handle), 0, (size_t)from.offset,
                                       (size_t)bytes, to, 0, NULL, NULL);
    return tl_cl_check(b, d, code, "clEnqueueReadBuffer", "copying from the device");
}

static tulle_status copy(tl_base *b, tl_device *d, tl_dmem to, tl_dmem from, uint64_t bytes)
{
    if (bytes == 0) return TULLE_OK;
    int code = d->cl.EnqueueCopyBuffer(d->queue, buffer_of(from.handle), buffer_of(to.handle),
                                       (size_t)from.offset, (size_t)to.offset, (size_t)bytes, 0, NULL, NULL);
    return tl_cl_check(b, d, code, "clEnqueueCopyBuffer", "copying on the device");
}

static tulle_status fill(tl_base *b, tl_device *d, tl_dmem to, uint8_t byte, uint64_t bytes)
{
    enum { WIDE = 16 };                 /* one byte at a time is slow */
    unsigned char pattern[WIDE];
    uint64_t wide = to.offset % WIDE == 0 ? bytes - bytes % WIDE : 0;
    int code = CL_SUCCESS;
    memset(pattern, byte, sizeof pattern);
    if (wide > 0)
        code = d->cl.EnqueueFillBuffer(d->queue, buffer_of(to.handle), pattern, WIDE, (size_t)to.offset,
                                       (size_t)wide, 0, NULL, NULL);
    if (code == CL_SUCCESS && bytes > wide)
        code = d->cl.EnqueueFillBuffer(d->queue, buffer_of(to.handle), pattern, 1, (size_t)(to.offset + wide),
                                       (size_t)(bytes - wide), 0, NULL, NULL);
    return tl_cl_check(b, d, code, "clEnqueueFillBuffer", "filling device memory");
}

static tulle_status wait_all(tl_base *b, tl_device *d)
{
    d->waits++;
    return tl_cl_check(b, d, d->cl.Finish(d->queue), "clFinish", d->last[0] ? d->last : "waiting");
}

static uint64_t waits(const tl_device *d) { return d->waits; }

/* ---- launches */

/* The part of a buffer from `offset` on.  The caller's buffer may be a part of another one itself. */
static cl_mem part_of(tl_device *d, tl_dmem mem, int *code)
{
    cl_mem whole = buffer_of(mem.handle), parent = NULL;
    tl_cl_part *place = &d->part[0];
    for (int i = 0; i < TL_CL_PARTS; i++) {
        tl_cl_part *p = &d->part[i];
        if (p->whole == whole && p->offset == mem.offset) {
            p->used = ++d->parts_used;
            return p->part;
        }
        if (p->used < place->used) place = p;
    }
    release_part(d, place);
    size_t base = 0, bytes = size_of(d, whole);
    if (mem.offset >= bytes) {
        *code = CL_INVALID_BUFFER_SIZE;
        return NULL;
    }
    d->cl.GetMemObjectInfo(whole, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    if (parent) d->cl.GetMemObjectInfo(whole, CL_MEM_OFFSET, sizeof base, &base, NULL);
    cl_buffer_region region = {base + (size_t)mem.offset, bytes - (size_t)mem.offset};
    cl_mem part = d->cl.CreateSubBuffer(parent ? parent : whole, CL_MEM_READ_WRITE,
                                        CL_BUFFER_CREATE_TYPE_REGION, &region, code);
    if (*code == CL_SUCCESS) *place = (tl_cl_part){whole, part, mem.offset, ++d->parts_used};
    return part;
}

static int set_arg(tl_device *d, cl_kernel k, uint32_t index, const tl_arg *arg)
{
    int code = CL_SUCCESS;
    switch (arg->kind) {
    case TL_ARG_U32: return d->cl.SetKernelArg(k, index, sizeof arg->as.u32, &arg->as.u32);
    case TL_ARG_U64: return d->cl.SetKernelArg(k, index, sizeof arg->as.u64, &arg->as.u64);
    case TL_ARG_F64: return d->cl.SetKernelArg(k, index, sizeof arg->as.f64, &arg->as.f64);
    case TL_ARG_MEM: break;
    }
    cl_mem mem = buffer_of(arg->as.mem.handle);
    if (!mem) mem = d->nothing;
    else if (arg->as.mem.offset > 0) mem = part_of(d, arg->as.mem, &code);
    if (code != CL_SUCCESS) return code;
    return d->cl.SetKernelArg(k, index, sizeof mem, &mem);
}

static tulle_status launchable(tl_base *b, const tl_device *d, const tl_kernel *k, const tl_launch *l)
{
    uint32_t given = (uint32_t)l->count + (l->shared > 0 ? 1 : 0);
    if (given != k->args || l->count > ARGS_MAX)
        return tl_fail(b, TULLE_EDRIVER, "%s takes %u arguments, %u were given%s", k->name, k->args, given,
                       l->shared > 0 ? " with the shared memory" : "");
    if (l->threads == 0 || l->threads > k->threads)
        return tl_fail(b, TULLE_EDRIVER, "%s cannot be started with %u threads a block: %s allows %zu",
                       k->name, l->threads, d->caps.name, k->threads);
    uint64_t own = k->local > 1 ? k->local : 0;         /* NVIDIA says 1 where there is none */
    if (l->shared + own > d->caps.shared_block)
        return tl_fail(b, TULLE_EDRIVER, "%s cannot be started with %u bytes of shared memory beside %" PRIu64
                       " of its own: %s has %u", k->name, l->shared, own, d->caps.name, d->caps.shared_block);
    if (l->blocks > INT32_MAX)
        return tl_fail(b, TULLE_EDRIVER, "%s cannot be started with %" PRIu64 " blocks, %d are the most",
                       k->name, l->blocks, INT32_MAX);
    return TULLE_OK;
}

static tulle_status launch(tl_base *b, tl_device *d, tl_kernel *k, const tl_launch *l)
{
    tulle_status status = TULLE_OK;
    TRY(launchable(b, d, k, l));
    if (l->blocks == 0) goto done;
    uint32_t first = l->shared > 0 ? 1 : 0;
    if (first)
        TRY(tl_cl_check(b, d, d->cl.SetKernelArg(k->kernel, 0, l->shared, NULL), "clSetKernelArg", k->name));
    for (int i = 0; i < l->count; i++) {
        int code = set_arg(d, k->kernel, first + (uint32_t)i, &l->args[i]);
        if (code == CL_SUCCESS) continue;
        status = tl_fail(b, TULLE_EDRIVER, "argument %d of %s could not be set on %s: %s (%d)", i, k->name,
                         d->caps.name, tl_cl_error(code), code);
        goto done;
    }
    size_t threads = l->threads, all = (size_t)l->blocks * threads;
    TRY(tl_cl_check(b, d,
                    d->cl.EnqueueNDRangeKernel(d->queue, k->kernel, 1, NULL, &all, &threads, 0, NULL, NULL),
                    "clEnqueueNDRangeKernel", k->name));
    memcpy(d->last, k->name, sizeof d->last);
done:
    return status;
}

static tulle_status no_lanes(tl_base *b, tl_device *d, int lanes)
{
    (void)b, (void)d, (void)lanes;
    return TULLE_OK;
}

static tulle_status send(tl_base *b, tl_device *d, int lane, tl_dmem to, const void *from, uint64_t bytes)
{
    (void)lane;
    if (bytes == 0) return TULLE_OK;
    int code = d->cl.EnqueueWriteBuffer(d->queue, buffer_of(to.handle), 0, (size_t)to.offset, (size_t)bytes,
                                        from, 0, NULL, NULL);
    return tl_cl_check(b, d, code, "clEnqueueWriteBuffer", "copying to the device");
}

static tulle_status fetch(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes)
{
    (void)lane;
    return download(b, d, to, from, bytes);
}

/* What is before it starts now and not when it is waited for. */
static tulle_status flag(tl_base *b, tl_device *d, int lane, int i)
{
    (void)lane;
    if (d->flags[i]) d->cl.ReleaseEvent(d->flags[i]);
    d->flags[i] = NULL;
    int code = d->cl.EnqueueMarkerWithWaitList(d->queue, 0, NULL, &d->flags[i]);
    if (code == CL_SUCCESS) code = d->cl.Flush(d->queue);
    return tl_cl_check(b, d, code, "clEnqueueMarkerWithWaitList", "a flag behind a copy");
}

static tulle_status settle(tl_base *b, tl_device *d, int i)
{
    if (!d->flags[i]) return tl_fail(b, TULLE_EDRIVER, "flag %d cannot be waited for: no lane has it", i);
    d->waits++;
    return tl_cl_check(b, d, d->cl.WaitForEvents(1, &d->flags[i]), "clWaitForEvents",
                       d->last[0] ? d->last : "waiting");
}

/* All lanes are the queue. */
static tulle_status follow(tl_base *b, tl_device *d, int lane, int i)
{
    (void)lane;
    if (d->flags[i]) return TULLE_OK;
    return tl_fail(b, TULLE_EDRIVER, "flag %d cannot be waited for: no lane has it", i);
}

/* ---- time */

static tulle_status mark(tl_base *b, tl_device *d, int event)
{
    if (d->events[event]) d->cl.ReleaseEvent(d->events[event]);
    d->events[event] = NULL;
    return tl_cl_check(b, d, d->cl.EnqueueMarkerWithWaitList(d->queue, 0, NULL, &d->events[event]),
                 "clEnqueueMarkerWithWaitList", "timing");
}

static tulle_status elapsed(tl_base *b, tl_device *d, int from, int to, double *seconds)
{
    uint64_t at[2] = {0, 0};
    int event[2] = {from, to};
    *seconds = 0;
    for (int i = 0; i < 2; i++) {
        if (!d->events[event[i]])
            return tl_fail(b, TULLE_EDRIVER, "there is no time of event %d: it was not marked", event[i]);
        int code = d->cl.GetEventProfilingInfo(d->events[event[i]], CL_PROFILING_COMMAND_END, sizeof at[i],
                                               &at[i], NULL);
        if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
            return tl_fail(b, TULLE_EDRIVER, "stages cannot be timed: the queue was made without "
                           "CL_QUEUE_PROFILING_ENABLE, or was not waited for");
        if (code != CL_SUCCESS) return tl_cl_check(b, d, code, "clGetEventProfilingInfo", "timing");
    }
    *seconds = at[1] >= at[0] ? (double)(at[1] - at[0]) * 1e-9 : -((double)(at[0] - at[1]) * 1e-9);
    return TULLE_OK;
}

/* ---- the caller's queue */

/* Moves the device into another context.  What was made in the old one would be lost. */
static tulle_status move_to(tl_base *b, tl_device *d, cl_context context)
{
    if (d->held > 0 || d->modules > 0)
        return tl_fail(b, TULLE_EDRIVER,
                       "the queue belongs to another OpenCL context, and in the present one %" PRIu64
                       " bytes and %d programs are still held",
                       d->held, d->modules);
    d->cl.Finish(d->queue);
    release_context(d);
    d->cl.RetainContext(context);
    d->context = context;
    return own_queue(b, d);
}

static tulle_status ask_queue(tl_base *b, const tl_device *d, cl_command_queue queue, uint32_t what, void *to,
                              size_t bytes)
{
    return tl_cl_check(b, d, d->cl.GetCommandQueueInfo(queue, what, bytes, to, NULL), "clGetCommandQueueInfo",
                       "the caller's queue");
}

static tulle_status use_queue(tl_base *b, tl_device *d, void *queue)
{
    tulle_status status = TULLE_OK;
    cl_command_queue next = queue ? queue : d->own;
    cl_context context = NULL;
    cl_device_id id = NULL;
    uint64_t properties = 0;
    cl_event before = NULL;
    if (next == d->queue) goto done;
    if (queue) {
        TRY(ask_queue(b, d, next, CL_QUEUE_CONTEXT, &context, sizeof context));
        TRY(ask_queue(b, d, next, CL_QUEUE_DEVICE, &id, sizeof id));
        TRY(ask_queue(b, d, next, CL_QUEUE_PROPERTIES, &properties, sizeof properties));
        if (id != d->device.id || (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
            status = tl_fail(b, TULLE_EINVAL, id != d->device.id ? "the queue is not one of %s"
                             : "the queue of %s runs out of order; tulle needs one in order", d->caps.name);
            goto done;
        }
        if (context != d->context) TRY(move_to(b, d, context));
        TRY(tl_cl_check(b, d, d->cl.RetainCommandQueue(next), "clRetainCommandQueue", "the caller's queue"));
    }
    /* what the old queue has still to do comes first */
    int code = d->cl.EnqueueMarkerWithWaitList(d->queue, 0, NULL, &before);
    if (code == CL_SUCCESS) code = d->cl.Flush(d->queue);
    if (code == CL_SUCCESS) code = d->cl.EnqueueBarrierWithWaitList(next, 1, &before, NULL);
    status = tl_cl_check(b, d, code, "clEnqueueBarrierWithWaitList", "changing queues");
    cl_command_queue gone = status == TULLE_OK ? d->queue : next;
    if (status == TULLE_OK) d->queue = next;
    if (gone != d->own) d->cl.ReleaseCommandQueue(gone);
done:
    if (before) d->cl.ReleaseEvent(before);
    return status;
}

static void *native(tl_device *d, tl_native what)
{
    switch (what) {
    case TL_NATIVE_CONTEXT: return d->context;
    case TL_NATIVE_DEVICE: return d->device.id;
    case TL_NATIVE_QUEUE: return d->queue;
    }
    return NULL;
}

const tl_driver tl_driver_opencl = {
    .name = "opencl",
    .list = list,
    .open = open_device,
    .close = close_device,
    .caps = caps_of,
    .compiler = tl_cl_compiler,
    .alloc = alloc,
    .free = free_memory,
    .left = left,
    .pinned = pinned,
    .unpin = unpin,
    .reaches = reaches,
    .upload = upload,
    .download = download,
    .copy = copy,
    .fill = fill,
    .wait = wait_all,
    .waits = waits,
    .load = tl_cl_load,
    .unload = tl_cl_unload,
    .kernel = tl_cl_kernel,
    .launch = launch,
    .fork = no_lanes,
    .join = no_lanes,
    .send = send,
    .fetch = fetch,
    .flag = flag,
    .settle = settle,
    .follow = follow,
    .mark = mark,
    .elapsed = elapsed,
    .queue = use_queue,
    .native = native,
};
