/* SPDX-License-Identifier: MIT
 *
 * driver.h - the functions of a device that the GPU engine uses, as one table.
 *
 * There are two drivers: driver_cuda.c (CUDA driver API and NVRTC) and driver_opencl.c (OpenCL 1.2).  Both
 * open their libraries at run time; building needs neither.  All work of a device goes to one in-order
 * queue; additional lanes exist only between fork and join.  Every failure leaves a message in the base:
 * which call, which kernel, how many bytes. */
#ifndef TL_DRIVER_H
#define TL_DRIVER_H
#include "jit/jit.h"

typedef struct tl_device tl_device;     /* an open device; each driver has its own   */
typedef struct tl_module tl_module;     /* a loaded image                            */
typedef struct tl_kernel tl_kernel;     /* a kernel of a module; lives as long as the module */

/* Device memory: a block of the driver (CUDA: device pointer, OpenCL: cl_mem), and an offset in it.
 * Offsets are multiples of TL_ALIGN. */
typedef struct tl_dmem {
    uint64_t handle, offset;
} tl_dmem;

enum { TL_ALIGN = 512, TL_LANES = 4, TL_EVENTS = 24, TL_FLAGS = 16 };
enum { TL_LANE_DOWN = TL_LANES };       /* one more lane, for copies; neither forked nor joined */

typedef struct tl_caps {
    char     name[128];                 /* "NVIDIA H200"                             */
    char     arch[64];                  /* "sm_90"; for OpenCL the device's version  */
    char     driver[160];               /* "CUDA 13.0, driver 580.159"; "OpenCL 3.0 PoCL 3.1+debian ..." */
    char     why_not[192];              /* empty: usable                             */
    uint64_t memory_bytes;
    uint64_t memory_free;               /* when it was opened; left() is current     */
    uint32_t shared_block;              /* bytes of shared memory per block, at most      */
    uint32_t shared_processor;          /* and per multiprocessor                         */
    uint32_t processors, threads_block, threads_processor;
    uint32_t warp;                      /* threads of a warp; 0: no warps, a team is a work group */
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
    /* Lists the devices with their properties, and the reason why a device cannot be used.  *count is their
     * number; at most `room` are written.  It is no error if the library cannot be loaded: then there are no
     * devices, and why gets the message. */
    tulle_status (*list)(tl_base *b, tl_caps *caps, int room, int *count, char *why, size_t why_bytes);
    tulle_status (*open)(tl_base *b, int index, tl_device **device);
    void         (*close)(tl_device *device);
    const tl_caps *(*caps)(const tl_device *device);
    tl_compiler  (*compiler)(tl_device *device);

    /* Memory.  alloc fails with TULLE_ENOMEM and a message with the bytes requested and free.  free does not
     * wait: the engine frees memory only after the queue has finished with it, or in queue order. */
    tulle_status (*alloc)(tl_base *b, tl_device *d, uint64_t bytes, uint64_t *handle);
    void         (*free)(tl_device *d, uint64_t handle);
    uint64_t     (*left)(tl_device *d);         /* bytes free now, as far as the driver reports it */
    tulle_status (*pinned)(tl_base *b, tl_device *d, uint64_t bytes, void **p); /* host memory for copies */
    void         (*unpin)(tl_device *d, void *p);
    /* (optional) Pages of the host's memory are locked, and unlocked; false: the driver refuses.  Any thread
     * may unlock. */
    bool         (*lock)(tl_device *d, void *p, uint64_t bytes);
    void         (*unlock)(tl_device *d, void *p);
    /* Whether copies from and to this memory of the host go at full speed: it is pinned, or the device sees
     * the host's pages as they are. */
    bool         (*reaches)(const tl_device *d, const void *p);

    /* Copies and fills, in queue order.  When upload returns, the host's bytes may be changed; download is
     * complete after wait (into pinned memory it is asynchronous). */
    tulle_status (*upload)(tl_base *b, tl_device *d, tl_dmem to, const void *from, uint64_t bytes);
    tulle_status (*download)(tl_base *b, tl_device *d, void *to, tl_dmem from, uint64_t bytes);
    tulle_status (*copy)(tl_base *b, tl_device *d, tl_dmem to, tl_dmem from, uint64_t bytes);
    tulle_status (*fill)(tl_base *b, tl_device *d, tl_dmem to, uint8_t byte, uint64_t bytes);
    tulle_status (*wait)(tl_base *b, tl_device *d);         /* for the whole queue; counted           */
    uint64_t     (*waits)(const tl_device *d);              /* number so far                          */

    tulle_status (*load)(tl_base *b, tl_device *d, const tl_image *image, tl_module **module);
    void         (*unload)(tl_device *d, tl_module *module);
    tulle_status (*kernel)(tl_base *b, tl_device *d, tl_module *module, const char *name, tl_kernel **kernel);
    tulle_status (*launch)(tl_base *b, tl_device *d, tl_kernel *kernel, const tl_launch *launch);
    tulle_status (*fork)(tl_base *b, tl_device *d, int lanes);      /* lanes 1..lanes-1 start after the
                                                                     * queue */
    tulle_status (*join)(tl_base *b, tl_device *d, int lanes);      /* the queue goes on after them */
    /* Asynchronous copies from and to pinned memory in the order of a lane; the host must not access those
     * bytes until a flag after the copy is settled.  flag enqueues flag i (0 .. TL_FLAGS-1) after all work of
     * the lane; settle waits until it is reached, and is counted as a wait. */
    tulle_status (*send)(tl_base *b, tl_device *d, int lane, tl_dmem to, const void *from, uint64_t bytes);
    tulle_status (*fetch)(tl_base *b, tl_device *d, int lane, void *to, tl_dmem from, uint64_t bytes);
    tulle_status (*flag)(tl_base *b, tl_device *d, int lane, int flag);
    tulle_status (*settle)(tl_base *b, tl_device *d, int flag);
    /* A lane, or the queue, goes on only after a flag; the host does not wait. */
    tulle_status (*follow)(tl_base *b, tl_device *d, int lane, int flag);

    /* Time: mark enqueues event i (0 .. TL_EVENTS-1); after wait, the seconds between two can be read. */
    tulle_status (*mark)(tl_base *b, tl_device *d, int event);
    tulle_status (*elapsed)(tl_base *b, tl_device *d, int from, int to, double *seconds);
    /* From now on work is enqueued in the caller's queue (CUstream, cl_command_queue); NULL: our own
     * again. */
    tulle_status (*queue)(tl_base *b, tl_device *d, void *queue);
    /* Handles for the caller's own code: CUcontext and CUstream; cl_context, cl_device_id and
     * cl_command_queue.  NULL if the driver has no such handle. */
    void        *(*native)(tl_device *d, tl_native what);
} tl_driver;

extern const tl_driver tl_driver_cuda, tl_driver_opencl;

#endif
