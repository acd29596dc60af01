/* SPDX-License-Identifier: MIT
 *
 * nvrtc.h - NVIDIA's run-time compiler, which needs neither a driver nor a device: driver_cuda.c compiles
 * with it, images are built ahead of time with it, and tests get registers and spills from it.
 *
 * The library is $TULLE_LIBNVRTC, or the first of libnvrtc.so.13, .12, .11.2 and .so in $CUDA_HOME/lib64,
 * $CUDA_PATH/lib64, /usr/local/cuda/lib64 and the system's library path. */
#ifndef TL_NVRTC_H
#define TL_NVRTC_H
#include "jit/jit.h"

/* Identifies the NVRTC that compile() would use, for cache keys.  If its file is found, the library is not
 * opened, since that takes 10 ms, and half a second with a cold disk cache. */
void tl_nvrtc_version(char *text, size_t bytes);

/* The architectures that it supports, ascending: 75, 80, .. *count is their number; at most `room` are
 * written. text gets "NVRTC 13.0"; false: there is no NVRTC, and text says why. */
bool tl_nvrtc_archs(int *list, int room, int *count, char *text, size_t bytes);

/* arch "sm_90" gives machine code, "compute_90" PTX.  For an sm newer than NVRTC the output is PTX for the
 * newest architecture below it.  log, unless NULL, gets the compiler's output, with registers and spills of
 * every kernel.  The message of TULLE_ECOMPILE has the file's name and the first error.  May be called by
 * several threads at once, each with its own base. */
tulle_status tl_nvrtc_compile(tl_base *b, const char *arch, const char *name, const char *source,
                              tl_image *image, char *log, size_t log_bytes);
/* The machine code for "sm_90" together with the PTX for "compute_90", which is generated on the way. */
tulle_status tl_nvrtc_compile_both(tl_base *b, const char *arch, const char *name, const char *source,
                                   tl_image *cubin, tl_image *ptx);

#endif
