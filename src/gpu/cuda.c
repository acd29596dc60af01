/* SPDX-License-Identifier: MIT
 *
 * cuda.c - opens the CUDA library, formats its errors, and describes its devices.  No context is created
 * here, so listing devices takes no device memory and little time. */
#include "gpu/cuda.h"
#include <stdio.h>
#include <string.h>

static const tl_dl_entry functions[] = {
#define ENTRY(name, suffix, arguments) {"cu" #name suffix, offsetof(tl_cuda, name), false},
    TL_CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
};

enum { FUNCTIONS = sizeof functions / sizeof *functions, OLDEST = 70 };

void tl_cuda_words(const tl_cuda *cu, const char *call, int result, char *text, size_t bytes)
{
    const char *name = NULL, *words = NULL;
    if (cu->GetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
    if (cu->GetErrorString(result, &words) != CUDA_SUCCESS || !words) words = "no description";
    snprintf(text, bytes, "%s: %s (%d, %s)", call, name, result, words);
}

bool tl_cuda_open(tl_cuda *cu, int *count, char *why, size_t why_bytes)
{
    const char *path = tl_env("TULLE_LIBCUDA");
    const char *const names[] = {path ? path : "libcuda.so.1", NULL};
    *cu = (tl_cuda){0};
    *count = 0;
    cu->library = tl_dl_open(names, why, why_bytes);
    if (!cu->library || !tl_dl_symbols(cu->library, functions, FUNCTIONS, cu, why, why_bytes)) return false;
    const char *call = "cuInit";
    int result = cu->Init(0);
    if (result == CUDA_SUCCESS) {
        call = "cuDeviceGetCount";
        result = cu->DeviceGetCount(count);
    }
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_DEVICE) {
        tl_cuda_words(cu, call, result, why, why_bytes);
        return false;
    }
    if (result == CUDA_SUCCESS && *count > 0) return true;
    snprintf(why, why_bytes, "the driver finds no CUDA device");
    return false;
}

void tl_cuda_close(tl_cuda *cu)
{
    tl_dl_close(cu->library);
    *cu = (tl_cuda){0};
}

/* ---- the properties of a device */

/* "CUDA 13.0, driver 580.159.03"; the second part is read from /proc on Linux. */
static void describe_driver(const tl_cuda *cu, char *text, size_t bytes)
{
    int version = 0;
    char kernel[64] = "";
    cu->DriverGetVersion(&version);
    FILE *f = fopen("/sys/module/nvidia/version", "r");
    if (f) {
        if (!fgets(kernel, sizeof kernel, f)) kernel[0] = 0;
        fclose(f);
    }
    kernel[strcspn(kernel, "\n")] = 0;
    snprintf(text, bytes, "CUDA %d.%d%s%s", version / 1000, version % 1000 / 10, kernel[0] ? ", driver " : "",
             kernel);
}

void tl_cuda_caps(const tl_cuda *cu, int index, tl_caps *caps)
{
    int major = 0, minor = 0, mode = 0;
    const struct { int attribute; void *to; } numbers[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &mode},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &caps->shared_block},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &caps->shared_processor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &caps->processors},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &caps->threads_block},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &caps->threads_processor},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &caps->warp}};
    const char *call = "cuDeviceGet";
    CUdevice device = 0;
    size_t bytes = 0;
    *caps = (tl_caps){0};
    int result = cu->DeviceGet(&device, index);
    if (result == CUDA_SUCCESS) {
        call = "cuDeviceGetName";
        result = cu->DeviceGetName(caps->name, (int)sizeof caps->name, device);
    }
    if (result == CUDA_SUCCESS) {
        call = "cuDeviceTotalMem";
        result = cu->DeviceTotalMem(&bytes, device);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && result == CUDA_SUCCESS; i++) {
        int value = 0;
        call = "cuDeviceGetAttribute";
        result = cu->DeviceGetAttribute(&value, numbers[i].attribute, device);
        memcpy(numbers[i].to, &value, sizeof value);
    }
    caps->memory_bytes = bytes;
    snprintf(caps->arch, sizeof caps->arch, "sm_%d%d", major, minor);
    describe_driver(cu, caps->driver, sizeof caps->driver);
    if (result != CUDA_SUCCESS)
        tl_cuda_words(cu, call, result, caps->why_not, sizeof caps->why_not);
    else if (10 * major + minor < OLDEST)
        snprintf(caps->why_not, sizeof caps->why_not, "compute capability %d.%d is below %d.%d", major, minor,
                 OLDEST / 10, OLDEST % 10);
    else if (mode == CU_COMPUTEMODE_PROHIBITED)
        snprintf(caps->why_not, sizeof caps->why_not, "its compute mode is set to prohibited");
}
