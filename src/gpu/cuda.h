/* SPDX-License-Identifier: MIT
 *
 * cuda.h - the part of the CUDA driver API that tulle uses, declared here so that building needs no CUDA
 * headers; the library is opened at run time.  Names of types and constants are CUDA's.
 *
 * The library is libcuda.so.1, or $TULLE_LIBCUDA (a path; tests put a driver without a device there). */
#ifndef TL_CUDA_H
#define TL_CUDA_H
#include "gpu/driver.h"

typedef int                 CUdevice;
typedef uint64_t            CUdeviceptr;
typedef struct CUctx_st    *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st  *CUevent;
typedef struct CUmod_st    *CUmodule;
typedef struct CUfunc_st   *CUfunction;

enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100,

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1, CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,

    CU_COMPUTEMODE_PROHIBITED = 2, CU_CTX_SCHED_SPIN = 1, CU_CTX_SCHED_MASK = 7, CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2, CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, CU_MEMORYTYPE_DEVICE = 2,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

/* name without cu, suffix of its version, arguments; all return a CUresult, an int */
#define TL_CUDA_FUNCTIONS(X)                                                                        \
    X(Init, "", (unsigned flags))                                                                   \
    X(DriverGetVersion, "", (int *version))                                                         \
    X(GetErrorName, "", (int result, const char **text))                                            \
    X(GetErrorString, "", (int result, const char **text))                                          \
    X(DeviceGetCount, "", (int *count))                                                             \
    X(DeviceGet, "", (CUdevice *, int index))                                                       \
    X(DeviceGetName, "", (char *name, int bytes, CUdevice))                                         \
    X(DeviceTotalMem, "_v2", (size_t *bytes, CUdevice))                                             \
    X(DeviceGetAttribute, "", (int *value, int attribute, CUdevice))                                \
    X(DevicePrimaryCtxGetState, "", (CUdevice, unsigned *flags, int *active))                       \
    X(DevicePrimaryCtxSetFlags, "_v2", (CUdevice, unsigned flags))                                  \
    X(DevicePrimaryCtxRetain, "", (CUcontext *, CUdevice))                                          \
    X(DevicePrimaryCtxRelease, "_v2", (CUdevice))                                                   \
    X(CtxGetCurrent, "", (CUcontext *))                                                             \
    X(CtxPushCurrent, "_v2", (CUcontext))                                                           \
    X(CtxPopCurrent, "_v2", (CUcontext *))                                                          \
    X(MemGetInfo, "_v2", (size_t *left, size_t *total))                                             \
    X(MemAlloc, "_v2", (CUdeviceptr *, size_t bytes))                                               \
    X(MemFree, "_v2", (CUdeviceptr))                                                                \
    X(MemHostAlloc, "", (void **, size_t bytes, unsigned flags))                                    \
    X(MemFreeHost, "", (void *))                                                                    \
    X(MemHostRegister, "_v2", (void *, size_t bytes, unsigned flags))                               \
    X(MemHostUnregister, "", (void *))                                                              \
    X(MemcpyHtoDAsync, "_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream))           \
    X(MemcpyDtoHAsync, "_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream))                 \
    X(MemcpyDtoDAsync, "_v2", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream))           \
    X(MemsetD8Async, "", (CUdeviceptr to, unsigned char byte, size_t bytes, CUstream))              \
    X(PointerGetAttribute, "", (void *value, int attribute, CUdeviceptr))                           \
    X(StreamCreate, "", (CUstream *, unsigned flags))                                               \
    X(StreamDestroy, "_v2", (CUstream))                                                             \
    X(StreamSynchronize, "", (CUstream))                                                            \
    X(StreamWaitEvent, "", (CUstream, CUevent, unsigned flags))                                     \
    X(EventCreate, "", (CUevent *, unsigned flags))                                                 \
    X(EventDestroy, "_v2", (CUevent))                                                               \
    X(EventRecord, "", (CUevent, CUstream))                                                         \
    X(EventSynchronize, "", (CUevent))                                                              \
    X(EventElapsedTime, "", (float *ms, CUevent from, CUevent to))                                  \
    X(ModuleLoadDataEx, "", (CUmodule *, const void *image, unsigned options, int *option, void **value)) \
    X(ModuleUnload, "", (CUmodule))                                                                 \
    X(ModuleGetFunction, "", (CUfunction *, CUmodule, const char *name))                            \
    X(FuncGetAttribute, "", (int *value, int attribute, CUfunction))                                \
    X(FuncSetAttribute, "", (CUfunction, int attribute, int value))                                 \
    X(LaunchKernel, "", (CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
                         unsigned block_y, unsigned block_z, unsigned shared, CUstream, void **arguments, \
                         void **extra))

typedef struct tl_cuda {
    void *library;
#define TL_CUDA_MEMBER(name, suffix, arguments) int (*name) arguments;
    TL_CUDA_FUNCTIONS(TL_CUDA_MEMBER)
#undef TL_CUDA_MEMBER
} tl_cuda;

/* Opens the library, looks up its functions, and calls cuInit; false: why has the message.  count: the number
 * of devices, at least one. */
bool tl_cuda_open(tl_cuda *cu, int *count, char *why, size_t why_bytes);
void tl_cuda_close(tl_cuda *cu);

/* The properties of device `index`, without creating a context on it. */
void tl_cuda_caps(const tl_cuda *cu, int index, tl_caps *caps);

/* "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)" */
void tl_cuda_words(const tl_cuda *cu, const char *call, int result, char *text, size_t bytes);

#endif
