/* SPDX-License-Identifier: MIT
 *
 * model.h - a simulated CUDA device for tests: declarations shared by its files, and its documentation.
 *
 * Two libraries replace NVIDIA's on machines without a GPU:
 *
 *   cuda_model         libcuda: devices, memory, streams (driver.c, memory.c); a launch runs at once, on fibers (run.c)
 *   cuda_model_nvrtc   libnvrtc: compiles kernels to a shared object with the system's C++ compiler (nvrtc.c, device.h)
 *
 * TULLE_LIBCUDA and TULLE_LIBNVRTC point to them; run.sh sets both and starts a program.  The model is slow and strict.  It
 * has warps of 32 threads and their operations, shared memory of one block, launch limits and sticky errors, but does not
 * model time.  What CUDA leaves undefined is an error or garbage here.  It does not detect races between blocks, because
 * blocks run one after another, nor missing synchronisation with a copy or kernel, because these are executed immediately.
 *
 * Environment, read at the first use of the library:
 *
 *   CUDA_MODEL_DEVICES      number of devices, 1 to 8 (1)
 *   CUDA_MODEL_CAPABILITY   75, 80 or 90, with the limits of such chips (90); kernels for 75 use no PTX and sum over a
 *                           warp by shuffles, which takes far longer here
 *   CUDA_MODEL_MEMORY       bytes of each device (1 GiB)
 *   CUDA_MODEL_PROCESSORS   number of multiprocessors that it reports (4)
 *   CUDA_MODEL_ORDER        the order in which threads and blocks run: forward, backward, or a number, the seed of a random
 *                           order, with which threads are also switched at atomic operations (forward)
 *   CUDA_MODEL_TRACE        prints every launch to stderr
 *   CUDA_MODEL_CXX          the compiler (CXX, or c++)
 *
 * A message on stderr that begins with "cuda model: " describes an error of a kernel: kernel, block, thread. */
#ifndef CUDA_MODEL_H
#define CUDA_MODEL_H
#include "image.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
    INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209, INVALID_HANDLE = 400, NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700, LAUNCH_OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719
};
enum { GARBAGE = 0xa5, THREADS_MOST = 1024, DEVICES_MOST = 8 };

/* ---- memory.c: device memory and pinned memory, each block between guard pages.  Callers hold the lock. */
typedef enum { DEVICE_MEMORY, PINNED_MEMORY, LOCKED_MEMORY } memory_kind;

int    memory_new(memory_kind kind, int device, size_t bytes, void **p);       /* filled with garbage      */
int    memory_lock(void *p, size_t bytes);              /* of the program; freed as LOCKED_MEMORY; INVALID_VALUE: locked already,
                                                         * or not the program's */
int    memory_free(memory_kind kind, int device, const void *p);               /* INVALID_VALUE: no block; a write behind it */
void   memory_free_all(int device);
size_t memory_used(int device);
/* Whether the range is within one block of this kind.  device < 0: of any device. */
bool   memory_holds(memory_kind kind, int device, const void *p, size_t bytes);
bool   memory_damaged(int device);                      /* bytes behind the end of a block were written; says so   */
void   memory_describe(const void *p, char *text, size_t bytes);        /* "12 bytes behind a block of 64" */

/* ---- run.c */
typedef struct launch {
    const cuda_model_image_t  *image;
    const cuda_model_kernel   *kernel;
    unsigned                   blocks, threads, shared;
    void                     **arguments;
} launch;

/* Runs all threads of all blocks.  CUDA_OK; LAUNCH_FAILED or ILLEGAL_ADDRESS after a message on stderr. */
int  run_launch(const launch *l);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

const char *setting(const char *name, const char *otherwise);
long        setting_number(const char *name, long otherwise, long least, long most);

#endif
