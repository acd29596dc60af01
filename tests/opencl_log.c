/* SPDX-License-Identifier: MIT
 *
 * opencl_log.c - a wrapper of the OpenCL library that writes every kernel launch to the file OPENCL_LOG:
 * name, blocks, threads, and each argument (numbers by value; buffers by the order of their creation; shared
 * memory by its size).  All other functions come from libOpenCL.so.1, which this library depends on.
 *
 * tests/launches.sh runs tests with it: if a change only refactors host code, the logs before and after are
 * equal. */
#define _GNU_SOURCE
#include "gpu/opencl.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS = 48, TEXT = 40, KERNELS = 4096, BUFFERS = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static struct { cl_kernel kernel; char arg[ARGS][TEXT]; int args; } kernels[KERNELS];
static struct { cl_mem mem; char name[TEXT]; } buffers[BUFFERS];
static int kernel_count, buffer_count, made;

static void *real(const char *name)
{
    static void *library;
    if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *f = library ? dlsym(library, name) : NULL;
    if (!f) abort();
    return f;
}

static FILE *notes(void)
{
    const char *name = getenv("OPENCL_LOG");
    if (!file) file = fopen(name ? name : "/dev/null", "a");
    if (!file) abort();
    return file;
}

static const char *buffer_name(cl_mem mem)
{
    for (int i = buffer_count - 1; i >= 0; i--)
        if (buffers[i].mem == mem) return buffers[i].name;
    return "?";
}

static void add_buffer(cl_mem mem, const char *name)
{
    int i = 0;
    while (i < buffer_count && buffers[i].mem != mem) i++;      /* addresses may be reused */
    if (i == BUFFERS) abort();
    if (i == buffer_count) buffer_count++;
    buffers[i].mem = mem;
    snprintf(buffers[i].name, TEXT, "%s", name);
}

cl_mem clCreateBuffer(cl_context context, uint64_t flags, size_t bytes, void *host, int *code)
{
    cl_mem (*call)(cl_context, uint64_t, size_t, void *, int *) = real("clCreateBuffer");
    cl_mem mem = call(context, flags, bytes, host, code);
    char name[TEXT];
    pthread_mutex_lock(&lock);
    snprintf(name, sizeof name, "b%d", made++);
    add_buffer(mem, name);
    pthread_mutex_unlock(&lock);
    return mem;
}

cl_mem clCreateSubBuffer(cl_mem from, uint64_t flags, uint32_t type, const void *region, int *code)
{
    cl_mem (*call)(cl_mem, uint64_t, uint32_t, const void *, int *) = real("clCreateSubBuffer");
    cl_mem mem = call(from, flags, type, region, code);
    char name[2 * TEXT];
    pthread_mutex_lock(&lock);
    snprintf(name, sizeof name, "%s+%zu", buffer_name(from), ((const cl_buffer_region *)region)->origin);
    add_buffer(mem, name);
    pthread_mutex_unlock(&lock);
    return mem;
}

static int find(cl_kernel kernel)
{
    int i = 0;
    while (i < kernel_count && kernels[i].kernel != kernel) i++;
    if (i == KERNELS) abort();
    if (i == kernel_count) kernels[kernel_count++].kernel = kernel;
    return i;
}

int clSetKernelArg(cl_kernel kernel, uint32_t index, size_t bytes, const void *value)
{
    int (*call)(cl_kernel, uint32_t, size_t, const void *) = real("clSetKernelArg");
    pthread_mutex_lock(&lock);
    const int i = find(kernel);
    if (index >= ARGS) abort();
    char *to = kernels[i].arg[index];
    uint64_t number = 0;
    cl_mem mem = NULL;
    if (bytes <= 8 && value) memcpy(&number, value, bytes);
    if (bytes == 8 && value) memcpy(&mem, value, 8);
    if (!value) snprintf(to, TEXT, "shared:%zu", bytes);
    else if (bytes == 8 && buffer_name(mem)[0] != '?') snprintf(to, TEXT, "%s", buffer_name(mem));
    else snprintf(to, TEXT, "%llu", (unsigned long long)number);
    if ((int)index >= kernels[i].args) kernels[i].args = (int)index + 1;
    pthread_mutex_unlock(&lock);
    return call(kernel, index, bytes, value);
}

int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, uint32_t dims, const size_t *first, const size_t *all,
                           const size_t *threads, uint32_t waits, const cl_event *wait, cl_event *event)
{
    int (*call)(cl_command_queue, cl_kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                const cl_event *, cl_event *) = real("clEnqueueNDRangeKernel");
    int (*info)(cl_kernel, uint32_t, size_t, void *, size_t *) = real("clGetKernelInfo");
    char name[128] = "";
    info(kernel, 0x1190 /* CL_KERNEL_FUNCTION_NAME */, sizeof name, name, NULL);
    pthread_mutex_lock(&lock);
    const int i = find(kernel);
    fprintf(notes(), "%s %zu x %zu:", name, all[0] / threads[0], threads[0]);
    for (int k = 0; k < kernels[i].args; k++) fprintf(file, " %s", kernels[i].arg[k]);
    fprintf(file, "\n");
    fflush(file);
    kernels[i].args = 0;                /* the next kernel at this address may have fewer */
    pthread_mutex_unlock(&lock);
    return call(queue, kernel, dims, first, all, threads, waits, wait, event);
}
