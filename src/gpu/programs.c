/* SPDX-License-Identifier: MIT
 *
 * programs.c - kernels by number and types, loaded when first needed.
 *
 * A file of src/kernels is one program; which defines it looks at stands in the table, so that a kernel that knows no
 * values is built once for all of them. */
#include "gpu/engine.h"
#include <stdio.h>
#include <string.h>

static const struct file {
    const char *name;
    int         threads;                /* THREADS_MAX                    */
    bool        key, val;               /* does it know keys, values      */
} files[] = {
    {"analyze", 256, false, false},
    {"check", 256, false, false},
    {"scan", 256, false, false},
    {"bins", 512, false, false},
    {"symbolic_rows", 128, true, false},
    {"symbolic_block", 1024, true, false},
    {"symbolic_dense", 1024, false, false},
    {"numeric_rows", 128, true, true},
    {"numeric_block", 1024, true, true},
    {"numeric_rank", 128, false, true},
    {"numeric_rank_block", 1024, false, true},
    {"numeric_dense", 1024, false, true},
    {"sort_rows", 1024, true, true},
    {"direct", 256, false, true},
    {"drop", 256, false, true},
};
enum { FILES = sizeof files / sizeof *files };

static const struct { const char *file, *name; } kernels[TL_KERNELS] = {
#define ROW(id, file, name) {#file, #name},
    TL_KERNEL_LIST(ROW)
#undef ROW
};

static const struct file *file_of(tl_kernel_id id)
{
    int i = 0;
    while (strcmp(files[i].name, kernels[id].file) != 0) i++;
    return &files[i];
}

/* What the file does not look at is always the same. */
static tl_types reduce(tl_types t, const struct file *f)
{
    if (!f->key) t.key = 32;
    if (!f->val) t.val = 0;
    return t;
}

static int variant(tl_types t)
{
    return (t.ptr == 64) + 2 * (t.idx == 64) + 4 * (t.key == 64) + 8 * t.val;
}

static tl_kernel_id first_of(tl_kernel_id id)
{
    int i = 0;
    while (strcmp(kernels[i].file, kernels[id].file) != 0) i++;
    return (tl_kernel_id)i;
}

void tl_program_make(const char *file, int threads, tl_types t, tl_program *p)
{
    p->file = file;
    snprintf(p->defines, sizeof p->defines,
             "#define PTR %d\n#define IDX %d\n#define KEY %d\n#define VAL %d\n#define THREADS_MAX %d\n", t.ptr, t.idx,
             t.key, t.val, threads);
}

/* Double and single precision with 32-bit indices, every file. */
bool tl_program_ahead(int i, tl_program *p)
{
    static const int vals[] = {TULLE_F64, TULLE_F32};
    for (int f = 0; f < FILES; f++)
        for (int v = 0; v < (files[f].val ? 2 : 1); v++)
            if (i-- == 0) {
                tl_types t = {.ptr = 32, .idx = 32, .key = 32, .val = vals[v]};
                tl_program_make(files[f].name, files[f].threads, reduce(t, &files[f]), p);
                return true;
            }
    return false;
}

/* An embedded image may be newer than the driver can load: then there is a compiler. */
static tulle_status load(tl_base *b, tl_gpu *gpu, const tl_compiler *compiler, const tl_program *program,
                         tl_image *image, tl_module **module)
{
    tulle_status status = gpu->driver->load(b, gpu->device, image, module);
    if (status == TULLE_OK || image->origin != TL_EMBEDDED) return status;
    tl_trace(b, "kernel %s: the embedded image cannot be loaded: %s", program->file, b->error);
    tl_image_free(b, image);
    TRY(tl_jit_compiled(b, compiler, program, 1, image));
    TRY(gpu->driver->load(b, gpu->device, image, module));
done:
    return status;
}

tulle_status tl_gpu_need(tl_base *b, tl_gpu *gpu, tl_types types, const tl_kernel_id *ids, int count)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = gpu->driver;
    tl_program program[FILES];
    tl_image image[FILES] = {{0}};
    tl_kernel_id first[FILES];
    int vary[FILES], wanted = 0;
    for (int i = 0; i < count; i++) {
        const struct file *f = file_of(ids[i]);
        tl_types t = reduce(types, f);
        int v = variant(t), k = 0;
        tl_kernel_id id = first_of(ids[i]);
        while (k < wanted && first[k] != id) k++;
        if (gpu->module[id][v] || k < wanted) continue;
        first[wanted] = id;
        vary[wanted] = v;
        tl_program_make(f->name, f->threads, t, &program[wanted]);
        wanted++;
    }
    if (wanted) {
        tl_compiler compiler = d->compiler(gpu->device);
        TRY(tl_jit_images(b, &compiler, program, wanted, image));
        for (int k = 0; k < wanted; k++)
            TRY(load(b, gpu, &compiler, &program[k], &image[k], &gpu->module[first[k]][vary[k]]));
    }
    for (int i = 0; i < count; i++) {
        int v = variant(reduce(types, file_of(ids[i])));
        if (gpu->kernel[ids[i]][v]) continue;
        TRY(d->kernel(b, gpu->device, gpu->module[first_of(ids[i])][v], kernels[ids[i]].name, &gpu->kernel[ids[i]][v]));
    }
done:
    for (int k = 0; k < wanted; k++) tl_image_free(b, &image[k]);
    return status;
}

tl_kernel *tl_gpu_kernel(tl_gpu *gpu, tl_types types, tl_kernel_id id)
{
    return gpu->kernel[id][variant(reduce(types, file_of(id)))];
}

void tl_gpu_unload(tl_gpu *gpu)
{
    for (int i = 0; i < TL_KERNELS; i++)
        for (int v = 0; v < TL_VARIANTS; v++)
            if (gpu->module[i][v]) gpu->driver->unload(gpu->device, gpu->module[i][v]);
}
