/* SPDX-License-Identifier: MIT
 *
 * programs.c - kernels by number and types, loaded when first needed.
 *
 * A file of src/kernels is one program.  The table says on which types it depends, so that a kernel that
 * does not use values is built only once for all value types. */
#include "gpu/engine.h"
#include <stdio.h>
#include <string.h>

typedef struct kernel_file {
    const char *name;
    int         threads;                /* THREADS_MAX                    */
    bool        key, val;               /* does it depend on key and value types          */
} kernel_file;

static const kernel_file files[TL_FILES] = {
#define ROW(name, threads, key, val) {#name, threads, key, val},
    TL_FILE_LIST(ROW)
#undef ROW
};

static const struct { int file; const char *name; } kernels[TL_KERNELS] = {
#define ROW(id, file, name) {TL_F_##file, #name},
    TL_KERNEL_LIST(ROW)
#undef ROW
};

/* Sets the types on which the file does not depend to fixed values. */
static tl_types reduce(tl_types t, const kernel_file *f)
{
    if (!f->key) t.key = 32;
    if (!f->val) t.val = 0;
    return t;
}

static int variant(tl_types t)
{
    return (t.ptr == 64) + 2 * (t.idx == 64) + 4 * (t.key == 64) + 8 * t.val;
}

static int variant_of(tl_types types, tl_kernel_id id)
{
    return variant(reduce(types, &files[kernels[id].file]));
}

void tl_program_make(const char *file, int threads, tl_types t, tl_program *p)
{
    p->file = file;
    snprintf(p->defines, sizeof p->defines,
             "#define PTR %d\n#define IDX %d\n#define KEY %d\n#define VAL %d\n#define THREADS_MAX %d\n",
             t.ptr, t.idx, t.key, t.val, threads);
}

/* Every file, for double and single precision with 32-bit indices. */
bool tl_program_ahead(int i, tl_program *p)
{
    static const int vals[] = {TULLE_F64, TULLE_F32};
    for (int f = 0; f < TL_FILES; f++)
        for (int v = 0; v < (files[f].val ? 2 : 1); v++)
            if (i-- == 0) {
                tl_types t = {.ptr = 32, .idx = 32, .key = 32, .val = vals[v]};
                tl_program_make(files[f].name, files[f].threads, reduce(t, &files[f]), p);
                return true;
            }
    return false;
}

/* An image may be for a newer or different driver, and fail to load; then it is compiled. */
static tulle_status load(tl_base *b, tl_gpu *gpu, const tl_compiler *compiler, const tl_program *program,
                         tl_image *image, tl_module **module)
{
    tulle_status status = gpu->driver->load(b, gpu->device, image, module);
    while (status != TULLE_OK && status != TULLE_ENOMEM && image->origin != TL_COMPILED) {
        tl_trace(b, "kernel %s: the driver refuses the %s image: %s", program->file,
                 image->origin == TL_EMBEDDED ? "embedded" : "cached", b->error);
        TRY(tl_jit_again(b, compiler, program, image));
        b->error[0] = 0;
        status = gpu->driver->load(b, gpu->device, image, module);
    }
done:
    return status;
}

/* Programs that are not loaded yet. */
typedef struct wanted {
    tl_program program[TL_FILES];
    int        file[TL_FILES], variant[TL_FILES], count;
} wanted;

static void want(const tl_gpu *gpu, tl_types types, int file, wanted *w)
{
    const tl_types t = reduce(types, &files[file]);
    if (gpu->module[file][variant(t)]) return;
    for (int k = 0; k < w->count; k++)
        if (w->file[k] == file) return;
    w->file[w->count] = file;
    w->variant[w->count] = variant(t);
    tl_program_make(files[file].name, files[file].threads, t, &w->program[w->count++]);
}

/* Loads all of them, compiled if they are not in the cache; this time is not counted for any product. */
static tulle_status get(tl_base *b, tl_gpu *gpu, const wanted *w)
{
    tulle_status status = TULLE_OK;
    tl_image image[TL_FILES] = {{0}};
    double start = tl_now();
    if (w->count == 0) return TULLE_OK;
    tl_compiler compiler = gpu->driver->compiler(gpu->device);
    TRY(tl_jit_images(b, &compiler, w->program, w->count, image));
    for (int k = 0; k < w->count; k++) {
        if (tl_progress(b, TL_COMPILING, (double)(k + 1) / (w->count + 1))) {
            status = tl_fail(b, TULLE_ECANCEL, "cancelled while kernels were loaded");
            goto done;
        }
        TRY(load(b, gpu, &compiler, &w->program[k], &image[k], &gpu->module[w->file[k]][w->variant[k]]));
        gpu->images[image[k].origin]++;
    }
done:
    for (int k = 0; k < w->count; k++) tl_image_free(b, &image[k]);
    gpu->compiling += tl_now() - start;
    return status;
}

tulle_status tl_gpu_need(tl_base *b, tl_gpu *gpu, tl_types types, const tl_kernel_id *ids, int count)
{
    tulle_status status = TULLE_OK;
    wanted w = {.count = 0};
    for (int i = 0; i < count; i++) want(gpu, types, kernels[ids[i]].file, &w);
    TRY(get(b, gpu, &w));
    for (int i = 0; i < count; i++) {
        int v = variant_of(types, ids[i]);
        if (gpu->kernel[ids[i]][v]) continue;
        TRY(gpu->driver->kernel(b, gpu->device, gpu->module[kernels[ids[i]].file][v], kernels[ids[i]].name,
                                &gpu->kernel[ids[i]][v]));
    }
done:
    return status;
}

tulle_status tl_gpu_warm(tl_base *b, tl_gpu *gpu, tulle_type val, tulle_index idx, tulle_kernels *got)
{
    tulle_status status = TULLE_OK;
    const int bits = idx == TULLE_I64 ? 64 : 32;
    const tl_kernel_id resize = TL_K_NARROW;                    /* 64-bit indices that fit 32 bits; its types
                                                                 * are fixed */
    const double start = tl_now();
    int64_t before[3];
    wanted w = {.count = 0};
    memcpy(before, gpu->images, sizeof before);
    for (int f = 0; f < TL_FILES; f++) {
        const int width = f == TL_F_dense ? 32 : bits;          /* dense matrices have no indices */
        want(gpu, (tl_types){.ptr = width, .idx = width, .key = 32, .val = (int)val}, f, &w);
    }
    TRY(get(b, gpu, &w));
    if (bits == 64) TRY(tl_gpu_need(b, gpu, (tl_types){32, 32, 32, 0}, &resize, 1));
    *got = (tulle_kernels){.programs = TL_FILES + (bits == 64),
                           .compiled = gpu->images[TL_COMPILED] - before[TL_COMPILED],
                           .cached = gpu->images[TL_CACHED] - before[TL_CACHED],
                           .embedded = gpu->images[TL_EMBEDDED] - before[TL_EMBEDDED],
                           .seconds = tl_now() - start};
done:
    return status;
}

double tl_gpu_compiling(const tl_gpu *gpu)
{
    return gpu->compiling;
}

double tl_gpu_now(const tl_gpu *gpu)
{
    return tl_now() - gpu->compiling;
}

tl_kernel *tl_gpu_kernel(tl_gpu *gpu, tl_types types, tl_kernel_id id)
{
    return gpu->kernel[id][variant_of(types, id)];
}

void tl_gpu_unload(tl_gpu *gpu)
{
    for (int i = 0; i < TL_FILES; i++)
        for (int v = 0; v < TL_VARIANTS; v++)
            if (gpu->module[i][v]) gpu->driver->unload(gpu->device, gpu->module[i][v]);
}
