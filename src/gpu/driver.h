/* SPDX-License-Identifier: MIT
 *
 * driver.h - what the GPU engine needs of a device, as one table.
 *
 * Two drivers fill it in: driver_cuda.c (CUDA driver API and NVRTC) and driver_opencl.c (OpenCL 1.2).  Both open
 * their libraries at run time; nothing of either is needed to build.  All work of a device goes to one
 * queue, in order; side lanes exist only between fork and join.  Every failure leaves a sentence in the
 * base: which call, which kernel, how many bytes. */
#ifndef TL_DRIVER_H
#define TL_DRIVER_H
#include "jit/jit.h"

typedef struct tl_device tl_device;     /* an open device; each driver has its own   */
typedef struct tl_module tl_module;     /* a loaded image                            */
typedef struct tl_kernel tl_kernel;     /* one entry of it; lives as long as that    */

/* Device memory: a block of the driver and where in it.  CUDA: the device pointer; OpenCL: the cl_mem.
 * Offsets are multiples of TL_ALIGN. */
typedef struct tl_dmem {
    uint64_t handle, offset;
} tl_dmem;

enum { TL_ALIGN = 512, TL_LANES = 4, TL_EVENTS = 24, TL_FLAGS = 16 };

typedef struct tl_caps {
    char     name[128];                 /* "NVIDIA H200"                             */
    char     arch[64];                  /* "sm_90"; for OpenCL the device's version  */
    char     driver[160];               /* "CUDA 13.0, driver 580.159"; "OpenCL 3.0 PoCL 3.1+debian ..." */
    char     why_not[192];              /* empty: usable                             */
    uint64_t memory_bytes;
    uint64_t memory_free;               /* when it was opened; left() tells of now   */
    uint32_t shared_block;              /* most shared bytes a block can have        */
    uint32_t shared_processor;          /* and all blocks of a processor together    */
    uint32_t processors, threads_block, threads_processor;
    uint32_t warp;                      /* lanes that run in step; 0: none, teams are work groups */
    bool     cpu;                       /* the device is the host's processor (PoCL) */
} tl_caps;

typedef struct tl_arg {
    enum { TL_ARG_MEM, TL_ARG_U32, TL_ARG_U64, TL_ARG_F64 } kind;
    union { tl_dmem mem; uint32_t u32; uint64_t u64; double f64; } as;
} tl_arg;

typedef struct tl_launch {
    uint64_t blocks;
    uint32_t threads, shared;           /* shared: bytes, dynamic                    */
    int      lane;                      /* 0; 1 .. TL_LANES-1 between fork and join  */
    int      count;
    const tl_arg *args;
} tl_launch;

typedef enum tl_native { TL_NATIVE_CONTEXT, TL_NATIVE_DEVICE, TL_NATIVE_QUEUE } tl_native;

typedef struct tl_driver {
    const char *name;                   /* "cuda", "opencl"                          */
    /* Every device with what it can do and, where it cannot be used, why not.  *count = how many there are;
     * at most `room` are written.  A library that cannot be loaded is no error: no devices, and why gets
     * the sentence. */
    tulle_status (*list)(tl_base *b, tl_caps *caps, int room, int *count, char *why, size_t why_bytes);
    tulle_status (*open)(tl_base *b, int index, tl_device **device);
    void         (*close)(tl_device *device);
    const tl_caps *(*caps)(const tl_device *device);
    tl_compiler  (*compiler)(tl_device *device);

    /* Memory; alloc leaves TULLE_ENOMEM with the bytes asked for and those free.  free waits for nothing: the
     * engine frees only what the queue is done with or what is freed in its order. */
    tulle_status (*alloc)(tl_base *b, tl_device *d, uint64_t bytes, uint64_t *handle);
    void         (*free)(tl_device *d, uint64_t handle);
    uint64_t     (*left)(tl_device *d);                     /* bytes that are free now, as far as the driver tells */
    tulle_status (*pinned)(tl_base *b, tl_device *d, uint64_t bytes, void **p);     /* host memory for copies */
    void         (*unpin)(tl_device *d, void *p);

    /* Copies and fills, in queue order.  upload has taken the host's bytes when it returns; download is
     * complete after wait (into pinned memory it does not stop the host). */
    tulle_status (*upload)(tl_base *b, tl_device *d, tl_dmem to, const void *from, uint64_t bytes);
    tulle_status (*download)(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes);
    tulle_status (*copy)(tl_base *b, tl_device *d, tl_dmem to, tl_dmem from, uint64_t bytes);
    tulle_status (*fill)(tl_base *b, tl_device *d, tl_dmem to, uint8_t byte, uint64_t bytes);
    tulle_status (*wait)(tl_base *b, tl_device *d);         /* for all of the queue; counted          */
    uint64_t     (*waits)(const tl_device *d);              /* how many so far                        */

    tulle_status (*load)(tl_base *b, tl_device *d, const tl_image *image, tl_module **module);
    void         (*unload)(tl_device *d, tl_module *module);
    tulle_status (*kernel)(tl_base *b, tl_device *d, tl_module *module, const char *name, tl_kernel **kernel);
    tulle_status (*launch)(tl_base *b, tl_device *d, tl_kernel *kernel, const tl_launch *launch);
    tulle_status (*fork)(tl_base *b, tl_device *d, int lanes);      /* lanes 1..lanes-1 start after the queue */
    tulle_status (*join)(tl_base *b, tl_device *d, int lanes);      /* the queue goes on after them           */
    /* Copies from and to pinned memory in the order of a lane; the host goes on, and leaves those bytes alone until a flag
     * behind the copy is settled.  flag puts flag i (0 .. TL_FLAGS-1) behind all that the lane has; settle waits
     * until it is reached, and is counted as a wait. */
    tulle_status (*send)(tl_base *b, tl_device *d, int lane, tl_dmem to, const void *from, uint64_t bytes);
    tulle_status (*fetch)(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes);
    tulle_status (*flag)(tl_base *b, tl_device *d, int lane, int flag);
    tulle_status (*settle)(tl_base *b, tl_device *d, int flag);

    /* Time: mark puts event i (0 .. TL_EVENTS-1) into the queue; after wait, seconds between two. */
    tulle_status (*mark)(tl_base *b, tl_device *d, int event);
    tulle_status (*elapsed)(tl_base *b, tl_device *d, int from, int to, double *seconds);
    /* Work goes to the caller's queue (CUstream, cl_command_queue) from now on; NULL: our own again. */
    tulle_status (*queue)(tl_base *b, tl_device *d, void *queue);
    /* What a caller's own code goes on with: CUcontext and CUstream; cl_context, cl_device_id and
     * cl_command_queue.  NULL where there is no such pointer. */
    void        *(*native)(tl_device *d, tl_native what);
} tl_driver;

extern const tl_driver tl_driver_cuda, tl_driver_opencl;

#endif
