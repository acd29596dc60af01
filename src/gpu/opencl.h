/* SPDX-License-Identifier: MIT
 *
 * opencl.h - the part of OpenCL 1.2 that tulle uses, declared here so that building needs no OpenCL headers;
 * the library is opened at run time.  Names of types and constants are those of the standard. */
#ifndef TL_OPENCL_H
#define TL_OPENCL_H
#include "gpu/driver.h"
#include <pthread.h>

typedef struct _cl_platform_id   *cl_platform_id;
typedef struct _cl_device_id     *cl_device_id;
typedef struct _cl_context       *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem           *cl_mem;
typedef struct _cl_program       *cl_program;
typedef struct _cl_kernel        *cl_kernel;
typedef struct _cl_event         *cl_event;

enum {
    CL_SUCCESS = 0, CL_DEVICE_NOT_FOUND = -1, CL_MEM_OBJECT_ALLOCATION_FAILURE = -4, CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6, CL_PROFILING_INFO_NOT_AVAILABLE = -7, CL_INVALID_BUFFER_SIZE = -61,
    CL_PLATFORM_NOT_FOUND_KHR = -1001,

    CL_PLATFORM_VERSION = 0x0901,
    CL_DEVICE_TYPE = 0x1000, CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002, CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010, CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f, CL_DEVICE_LOCAL_MEM_SIZE = 0x1023, CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027, CL_DEVICE_COMPILER_AVAILABLE = 0x1028, CL_DEVICE_NAME = 0x102b,
    CL_DRIVER_VERSION = 0x102d, CL_DEVICE_VERSION = 0x102f, CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_OPENCL_C_VERSION = 0x103d,
    CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,

    CL_DEVICE_TYPE_CPU = 2, CL_DEVICE_TYPE_GPU = 4, CL_DEVICE_TYPE_ACCELERATOR = 8,

    CL_QUEUE_CONTEXT = 0x1090, CL_QUEUE_DEVICE = 0x1091, CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1, CL_QUEUE_PROFILING_ENABLE = 2,

    CL_MEM_READ_WRITE = 1, CL_MEM_SIZE = 0x1102, CL_MEM_CONTEXT = 0x1106,
    CL_MEM_ASSOCIATED_MEMOBJECT = 0x1107, CL_MEM_OFFSET = 0x1108,
    CL_BUFFER_CREATE_TYPE_REGION = 0x1220, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED = 2,

    CL_PROGRAM_NUM_DEVICES = 0x1162, CL_PROGRAM_DEVICES = 0x1163, CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166, CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_NUM_ARGS = 0x1191, CL_KERNEL_WORK_GROUP_SIZE = 0x11b0, CL_KERNEL_LOCAL_MEM_SIZE = 0x11b2,
    CL_PROFILING_COMMAND_END = 0x1283
};
#define CL_DEVICE_TYPE_ALL 0xffffffffu

typedef struct cl_buffer_region { size_t origin, size; } cl_buffer_region;

/* result, name without cl, arguments */
#define TL_CL_WAITS uint32_t, const cl_event *
#define TL_CL_INFO  uint32_t, size_t, void *, size_t *
#define TL_CL_FUNCTIONS(X)                                                                                   \
    X(int, GetPlatformIDs, (uint32_t, cl_platform_id *, uint32_t *))                                         \
    X(int, GetPlatformInfo, (cl_platform_id, TL_CL_INFO))                                                    \
    X(int, GetDeviceIDs, (cl_platform_id, uint64_t, uint32_t, cl_device_id *, uint32_t *))                   \
    X(int, GetDeviceInfo, (cl_device_id, TL_CL_INFO))                                                        \
    X(cl_context, CreateContext, (const intptr_t *, uint32_t, const cl_device_id *,                          \
                                  void (*)(const char *, const void *, size_t, void *), void *, int *))      \
    X(int, RetainContext, (cl_context))                                                                      \
    X(int, ReleaseContext, (cl_context))                                                                     \
    X(cl_command_queue, CreateCommandQueue, (cl_context, cl_device_id, uint64_t, int *))                     \
    X(int, RetainCommandQueue, (cl_command_queue))                                                           \
    X(int, ReleaseCommandQueue, (cl_command_queue))                                                          \
    X(int, GetCommandQueueInfo, (cl_command_queue, TL_CL_INFO))                                              \
    X(int, Flush, (cl_command_queue))                                                                        \
    X(int, Finish, (cl_command_queue))                                                                       \
    X(cl_mem, CreateBuffer, (cl_context, uint64_t, size_t, void *, int *))                                   \
    X(cl_mem, CreateSubBuffer, (cl_mem, uint64_t, uint32_t, const void *, int *))                            \
    X(int, ReleaseMemObject, (cl_mem))                                                                       \
    X(int, GetMemObjectInfo, (cl_mem, TL_CL_INFO))                                                           \
    X(int, EnqueueReadBuffer, (cl_command_queue, cl_mem, uint32_t, size_t, size_t, void *, TL_CL_WAITS,      \
                               cl_event *))                                                                  \
    X(int, EnqueueWriteBuffer, (cl_command_queue, cl_mem, uint32_t, size_t, size_t, const void *,            \
                                TL_CL_WAITS,                                                                 \
                                cl_event *))                                                                 \
    X(int, EnqueueCopyBuffer, (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, TL_CL_WAITS,        \
                               cl_event *))                                                                  \
    X(int, EnqueueFillBuffer, (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, TL_CL_WAITS,  \
                               cl_event *))                                                                  \
    X(int, EnqueueMigrateMemObjects, (cl_command_queue, uint32_t, const cl_mem *, uint64_t, TL_CL_WAITS,     \
                                      cl_event *))                                                           \
    X(int, EnqueueNDRangeKernel, (cl_command_queue, cl_kernel, uint32_t, const size_t *, const size_t *,     \
                                  const size_t *, TL_CL_WAITS, cl_event *))                                  \
    X(int, EnqueueMarkerWithWaitList, (cl_command_queue, TL_CL_WAITS, cl_event *))                           \
    X(int, EnqueueBarrierWithWaitList, (cl_command_queue, TL_CL_WAITS, cl_event *))                          \
    X(int, WaitForEvents, (uint32_t, const cl_event *))                                                      \
    X(int, ReleaseEvent, (cl_event))                                                                         \
    X(int, GetEventProfilingInfo, (cl_event, TL_CL_INFO))                                                    \
    X(cl_program, CreateProgramWithSource, (cl_context, uint32_t, const char **, const size_t *, int *))     \
    X(cl_program, CreateProgramWithBinary, (cl_context, uint32_t, const cl_device_id *, const size_t *,      \
                                            const unsigned char **, int *, int *))                           \
    X(int, BuildProgram, (cl_program, uint32_t, const cl_device_id *, const char *,                          \
                          void (*)(cl_program, void *), void *))                                             \
    X(int, ReleaseProgram, (cl_program))                                                                     \
    X(int, GetProgramInfo, (cl_program, TL_CL_INFO))                                                         \
    X(int, GetProgramBuildInfo, (cl_program, cl_device_id, TL_CL_INFO))                                      \
    X(cl_kernel, CreateKernel, (cl_program, const char *, int *))                                            \
    X(int, ReleaseKernel, (cl_kernel))                                                                       \
    X(int, GetKernelInfo, (cl_kernel, TL_CL_INFO))                                                           \
    X(int, GetKernelWorkGroupInfo, (cl_kernel, cl_device_id, TL_CL_INFO))                                    \
    X(int, SetKernelArg, (cl_kernel, uint32_t, size_t, const void *))

typedef struct tl_cl {
    void *library;
#define TL_CL_MEMBER(result, name, arguments) result (*name) arguments;
    TL_CL_FUNCTIONS(TL_CL_MEMBER)
#undef TL_CL_MEMBER
} tl_cl;

typedef struct tl_cl_device {
    cl_platform_id platform;
    cl_device_id   id;
} tl_cl_device;

enum { TL_CL_DEVICES = 64 };            /* more than that are not listed */
#define TL_CL_OPTIONS "-cl-std=CL1.2"

/* Opens the library: $TULLE_LIBOPENCL, else libOpenCL.so.1; on failure why gets the reason. */
bool         tl_cl_open(tl_cl *cl, char *why, size_t why_bytes);
void         tl_cl_close(tl_cl *cl);
/* All devices of all platforms: GPUs, accelerators, CPUs.  Returns their number. */
int          tl_cl_devices(const tl_cl *cl, tl_cl_device devices[TL_CL_DEVICES]);
/* The properties of a device; why_not is set if tulle cannot use it. */
tulle_status tl_cl_caps(tl_base *b, const tl_cl *cl, tl_cl_device device, tl_caps *caps);
const char  *tl_cl_error(int code);     /* "CL_OUT_OF_RESOURCES" */

/* ---- driver_opencl.c and opencl_programs.c */

struct tl_kernel {
    tl_kernel *next;
    cl_kernel  kernel;
    uint32_t   args;
    size_t     threads;                 /* in a work group, at most                  */
    uint64_t   local;                   /* bytes of local arrays, without dynamic ones */
    char       name[64];
};

struct tl_module {
    cl_program program;
    tl_kernel *kernels;
};

enum { TL_CL_PARTS = 128 };             /* sub-buffers, more than a launch can use */

typedef struct tl_cl_part {
    cl_mem   whole, part;
    uint64_t offset, used;              /* used: time of the last use; 0: free */
} tl_cl_part;

struct tl_device {
    tl_cl            cl;
    tl_cl_device     device;
    cl_context       context;
    cl_command_queue own, queue;        /* queue: the caller's or our own            */
    tl_caps          caps;
    uint64_t         most_free, block_most;     /* bytes free when opened; most in one block */
    uint64_t         held, waits;
    int              modules;
    tl_cl_part       part[TL_CL_PARTS]; /* sub-buffers                               */
    uint64_t         parts_used;
    pthread_mutex_t  compiling;
    bool             one_by_one;        /* its compiler is not thread-safe            */
    bool             keeps_parts;       /* releasing a sub-buffer may crash it        */
    bool             keeps_binaries;    /* it caches binaries itself; a query is slow */
    cl_event         events[TL_EVENTS];
    cl_event         flags[TL_FLAGS];
    cl_mem           nothing;           /* passed for arguments that are not given   */
    char             version[320];      /* of compiler and driver                    */
    char             last[64];          /* the kernel launched last                  */
};

/* Fails with a message if the code is not CL_SUCCESS; what: the kernel, or what was being done. */
tulle_status tl_cl_check(tl_base *b, const tl_device *d, int code, const char *call, const char *what);
tl_compiler  tl_cl_compiler(tl_device *d);
tulle_status tl_cl_load(tl_base *b, tl_device *d, const tl_image *image, tl_module **module);
void         tl_cl_unload(tl_device *d, tl_module *module);
tulle_status tl_cl_kernel(tl_base *b, tl_device *d, tl_module *module, const char *name, tl_kernel **out);

#endif
