/* SPDX-License-Identifier: MIT
 *
 * opencl_programs.c - kernels of the OpenCL driver: compiles text to an image, and creates kernels from an
 * image.
 *
 * An image consists of eight letters and the binary; or of the source text, if a device gives no binary,
 * which is then compiled again when the image is loaded.  PoCL is treated like that: for a binary it would
 * compile every kernel for a generic size of work groups, and again for the size that is launched; it has a
 * cache of its own. */
#include "gpu/opencl.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MARK = 8, CONTEXT_DEVICES = 16 };

static const char binary_mark[MARK + 1] = "TLCLBIN1", source_mark[MARK + 1] = "TLCLSRC1";

/* The first line of a build log that mentions an error, without the folders of the file's name. */
static void first_error(char *log, char *line, size_t bytes)
{
    char *at = strstr(log, "error:");
    if (!at) at = strstr(log, "error");
    if (!at) at = log + strspn(log, "\n ");
    while (at > log && at[-1] != '\n') at--;
    at[strcspn(at, "\n")] = 0;
    size_t name = strcspn(at, ":");
    for (size_t i = name; i > 0; i--)
        if (at[i - 1] == '/') {
            at += i;
            break;
        }
    snprintf(line, bytes, "%s", at[0] ? at : "the compiler gave no reason");
}

static tulle_status build(tl_base *b, tl_device *d, cl_program program, const char *name)
{
    tulle_status status = TULLE_OK;
    char *log = NULL, line[512];
    size_t bytes = 0;
    if (d->one_by_one) pthread_mutex_lock(&d->compiling);
    int code = d->cl.BuildProgram(program, 1, &d->device.id, TL_CL_OPTIONS, NULL, NULL);
    if (d->one_by_one) pthread_mutex_unlock(&d->compiling);
    if (code == CL_SUCCESS) return TULLE_OK;
    d->cl.GetProgramBuildInfo(program, d->device.id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    TRY(tl_calloc(b, &log, (int64_t)bytes + 1, 1, "a build log"));
    d->cl.GetProgramBuildInfo(program, d->device.id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    first_error(log, line, sizeof line);
    status = tl_fail(b, TULLE_ECOMPILE, "%s could not be compiled for %s (%s): %s", name, d->caps.name,
                     tl_cl_error(code), line);
done:
    tl_free(b, log);
    return status;
}

/* The binary for our device, NULL and 0 bytes if there is none; 8 bytes before it are left free. */
static tulle_status binary_of(tl_base *b, tl_device *d, cl_program program, unsigned char **data,
                              size_t *bytes)
{
    tulle_status status = TULLE_OK;
    cl_device_id ids[CONTEXT_DEVICES];
    size_t sizes[CONTEXT_DEVICES] = {0}, got = 0;
    unsigned char *places[CONTEXT_DEVICES] = {NULL};
    *data = NULL;
    *bytes = 0;
    /* the caller's context may have more devices than ours */
    if (d->cl.GetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof ids, ids, &got) != CL_SUCCESS) goto done;
    size_t count = got / sizeof *ids, ours = 0;
    while (ours < count && ids[ours] != d->device.id) ours++;
    if (ours == count) goto done;
    if (d->cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL) != CL_SUCCESS)
        goto done;
    if (sizes[ours] == 0) goto done;
    TRY(tl_alloc(b, data, (int64_t)sizes[ours] + MARK, 1, "a compiled kernel"));
    places[ours] = *data + MARK;
    if (d->cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *places, places, NULL)
        != CL_SUCCESS) {
        tl_free(b, *data);
        *data = NULL;
        goto done;
    }
    *bytes = sizes[ours];
done:
    return status;
}

static tulle_status compile(void *self, tl_base *b, const char *name, const char *source, tl_image *image)
{
    tulle_status status = TULLE_OK;
    tl_device *d = self;
    unsigned char *data = NULL;
    const char *mark_text = binary_mark;
    size_t bytes = 0;
    int code = CL_SUCCESS;
    double start = tl_now();
    cl_program program = d->cl.CreateProgramWithSource(d->context, 1, &source, NULL, &code);
    TRY(tl_cl_check(b, d, code, "clCreateProgramWithSource", name));
    TRY(build(b, d, program, name));
    if (!d->keeps_binaries) TRY(binary_of(b, d, program, &data, &bytes));
    if (!data) {
        bytes = strlen(source);
        mark_text = source_mark;
        TRY(tl_alloc(b, &data, (int64_t)bytes + MARK, 1, "a kernel's text"));
        memcpy(data + MARK, source, bytes);
    }
    memcpy(data, mark_text, MARK);
    *image =
        (tl_image){.data = data, .bytes = bytes + MARK, .origin = TL_COMPILED, .seconds = tl_now() - start};
done:
    if (program) d->cl.ReleaseProgram(program);
    return status;
}

tl_compiler tl_cl_compiler(tl_device *d)
{
    return (tl_compiler){.dialect = "opencl", .arch = d->caps.name, .version = d->version, .self = d,
                         .compile = compile};
}

void tl_cl_unload(tl_device *d, tl_module *module)
{
    if (!module) return;
    while (module->kernels) {
        tl_kernel *k = module->kernels;
        module->kernels = k->next;
        if (k->kernel) d->cl.ReleaseKernel(k->kernel);
        tl_free(NULL, k);
    }
    if (module->program) d->cl.ReleaseProgram(module->program);
    d->modules--;
    tl_free(NULL, module);
}

tulle_status tl_cl_load(tl_base *b, tl_device *d, const tl_image *image, tl_module **module)
{
    static const char what[] = "a compiled kernel";
    tulle_status status = TULLE_OK;
    tl_module *m = NULL;
    const unsigned char *data = image->data;
    int code = CL_SUCCESS, code_of_binary = CL_SUCCESS;
    *module = NULL;
    bool binary = image->bytes > MARK && memcmp(data, binary_mark, MARK) == 0;
    if (!binary && (image->bytes <= MARK || memcmp(data, source_mark, MARK) != 0))
        return tl_fail(b, TULLE_EDRIVER, "%s of %" PRIu64 " bytes is not an image for OpenCL", what,
                       image->bytes);
    TRY(tl_calloc(b, &m, 1, sizeof *m, "a loaded kernel"));
    d->modules++;
    data += MARK;
    size_t bytes = (size_t)image->bytes - MARK;
    if (binary) {
        m->program = d->cl.CreateProgramWithBinary(d->context, 1, &d->device.id, &bytes, &data,
                                                   &code_of_binary, &code);
        if (code == CL_SUCCESS) code = code_of_binary;
        TRY(tl_cl_check(b, d, code, "clCreateProgramWithBinary", what));
    } else {
        const char *source = (const char *)data;
        m->program = d->cl.CreateProgramWithSource(d->context, 1, &source, &bytes, &code);
        TRY(tl_cl_check(b, d, code, "clCreateProgramWithSource", what));
    }
    TRY(build(b, d, m->program, what));
    *module = m;
done:
    if (status != TULLE_OK) tl_cl_unload(d, m);
    return status;
}

tulle_status tl_cl_kernel(tl_base *b, tl_device *d, tl_module *module, const char *name, tl_kernel **out)
{
    tulle_status status = TULLE_OK;
    tl_kernel *k = NULL;
    int code = CL_SUCCESS;
    *out = NULL;
    TRY(tl_calloc(b, &k, 1, sizeof *k, "a kernel"));
    k->next = module->kernels;
    module->kernels = k;                /* the module frees it, whether it was created or not */
    snprintf(k->name, sizeof k->name, "%s", name);
    k->kernel = d->cl.CreateKernel(module->program, name, &code);
    TRY(tl_cl_check(b, d, code, "clCreateKernel", name));
    code = d->cl.GetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof k->args, &k->args, NULL);
    TRY(tl_cl_check(b, d, code, "clGetKernelInfo", name));
    code = d->cl.GetKernelWorkGroupInfo(k->kernel, d->device.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof k->threads,
                                        &k->threads, NULL);
    TRY(tl_cl_check(b, d, code, "clGetKernelWorkGroupInfo", name));
    code = d->cl.GetKernelWorkGroupInfo(k->kernel, d->device.id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof k->local,
                                        &k->local, NULL);
    TRY(tl_cl_check(b, d, code, "clGetKernelWorkGroupInfo", name));
    *out = k;
done:
    return status;
}
