/* SPDX-License-Identifier: MIT
 *
 * fake_cuda.h - a CUDA driver without a device, for tests of driver_cuda.c on any machine.
 *
 * The library fake_cuda has the entry points that tulle uses (TULLE_LIBCUDA points to it): device memory is
 * host memory, copies are done at once, kernel launches are recorded but not executed.  It is as strict as
 * the real one about contexts, handles and limits.  fake_cuda_old is the same without cuLaunchKernel.
 *
 * Environment, read by cuInit:
 *     FAKE_CUDA_DEVICES=2            how many devices there are (default 1)
 *     FAKE_CUDA_CAPABILITY=61        their compute capability (default 90)
 *     FAKE_CUDA_FAIL=call:n:code     the n-th call of cuX fails with that CUresult, "*" is any call;
 *                                    a trailing + (call:n:code+): all later ones too */
#ifndef TULLE_FAKE_CUDA_H
#define TULLE_FAKE_CUDA_H
#include <stdint.h>

enum { FAKE_ARGS = 16, FAKE_LOG = 1 << 16 };

typedef struct fake_launch {
    char     kernel[64];
    unsigned blocks, threads, shared;
    int      stream;                    /* in the order they were made, from 1 */
    uint64_t arg[FAKE_ARGS];            /* the first 8 bytes of each           */
} fake_launch;

typedef struct fake_cuda {
    /* numbers of live objects; all must be zero in the end */
    int         contexts, blocks, pinned, locked, streams, events, modules;
    uint64_t    bytes;
    unsigned    flags;                  /* of the primary context of device 0  */
    /* what happened */
    int         calls, launches;
    fake_launch last;
    char        log[FAKE_LOG];          /* "cuEventRecord 2 1;", names with handles */
    /* which call fails; may be set directly */
    char        fail_call[64];
    int         fail_at, fail_code, fail_forever, fail_seen;
} fake_cuda;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
fake_cuda *fake_cuda_state(void);

#endif
