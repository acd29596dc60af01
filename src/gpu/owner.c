/* SPDX-License-Identifier: MIT
 *
 * owner.c - whether an array of the caller's lies in the memory of another device.  A kernel that reads such
 * an array fails at best, and on CUDA takes the whole context with it.
 *
 * OpenCL's memory objects know their cl_context.  CUDA's pointers know their device; managed memory, and
 * memory of the host that the device can read, belong to all. */
#include "gpu/cuda.h"
#include "gpu/engine.h"
#include "gpu/opencl.h"
#include <stdlib.h>
#include <string.h>

struct tl_owner {
    tl_cuda cu;
    int     index;                      /* of the device                             */
};

tulle_status tl_owner_open(tl_base *b, tl_gpu *gpu)
{
    tulle_status status = TULLE_OK;
    int count;
    char why[192];
    if (gpu->driver != &tl_driver_cuda) return TULLE_OK;
    TRY(tl_calloc(b, &gpu->owner, 1, sizeof *gpu->owner, "a device"));
    gpu->owner->index = atoi(strchr(gpu->name, ':') + 1);
    if (!tl_cuda_open(&gpu->owner->cu, &count, why, sizeof why))
        status = tl_fail(b, TULLE_EDRIVER, "%s", why);
done:
    return status;
}

void tl_owner_close(tl_gpu *gpu)
{
    if (gpu->owner) tl_cuda_close(&gpu->owner->cu);
    tl_free(NULL, gpu->owner);
    gpu->owner = NULL;
}

static bool in_other_context(tl_gpu *gpu, const void *array)
{
    cl_context of = NULL;
    return gpu->device->cl.GetMemObjectInfo((cl_mem)(uintptr_t)array, CL_MEM_CONTEXT, sizeof of, &of, NULL)
               == CL_SUCCESS
           && of != gpu->device->context;
}

static bool on_other_device(const tl_cuda *cu, int index, CUdeviceptr p)
{
    unsigned type = 0, managed = 0;
    int of = index;
    if (cu->PointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p) != CUDA_SUCCESS || of == index)
        return false;
    return cu->PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_SUCCESS
           && type == CU_MEMORYTYPE_DEVICE
           && cu->PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p) == CUDA_SUCCESS
           && !managed;
}

bool tl_gpu_elsewhere(tl_gpu *gpu, const void *array)
{
    if (!array) return false;
    if (!gpu->owner) return in_other_context(gpu, array);
    const tl_cuda *cu = &gpu->owner->cu;
    const int index = gpu->owner->index;
    const CUdeviceptr p = (CUdeviceptr)(uintptr_t)array;
    CUcontext before;
    int of;
    /* usually one call tells; it may need a current context */
    if (cu->PointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p) == CUDA_SUCCESS && of == index)
        return false;
    if (cu->CtxPushCurrent(tl_gpu_native(gpu, TL_NATIVE_CONTEXT)) != CUDA_SUCCESS) return false;
    const bool other = on_other_device(cu, index, p);
    cu->CtxPopCurrent(&before);
    return other;
}
