/* SPDX-License-Identifier: MIT
 *
 * nvrtc.h - NVIDIA's run-time compiler, without a driver and without a device: the CUDA driver compiles through
 * it, images are built ahead of time with it, and tests ask it for registers and spills.
 *
 * The library is $TULLE_LIBNVRTC, or the first of libnvrtc.so.13, .12, .11.2 and .so in $CUDA_HOME/lib64,
 * $CUDA_PATH/lib64, /usr/local/cuda/lib64 and where the system keeps its libraries. */
#ifndef TL_NVRTC_H
#define TL_NVRTC_H
#include "jit/jit.h"

/* Which NVRTC compile() would use, for the key of a cache.  The library itself is not opened where its file can
 * be found: that takes 10 ms, and half a second when the disk is cold. */
void tl_nvrtc_version(char *text, size_t bytes);

/* The architectures it knows, ascending: 75, 80, ..  *count = how many; at most `room` are written.  text gets
 * "NVRTC 13.0"; false: there is none, and text says why. */
bool tl_nvrtc_archs(int *list, int room, int *count, char *text, size_t bytes);

/* arch "sm_90" gives machine code, "compute_90" PTX.  For an sm that is newer than NVRTC itself it is the PTX
 * of the newest one below it.  log, unless NULL, gets what the compiler says, with registers and spills of
 * every kernel.  TULLE_ECOMPILE: the sentence has the file's name and the first error.  May be called from
 * several threads at once, each with its own base. */
tulle_status tl_nvrtc_compile(tl_base *b, const char *arch, const char *name, const char *source,
                              tl_image *image, char *log, size_t log_bytes);
/* The machine code of "sm_90" and the PTX of "compute_90", which is a step on the way to it. */
tulle_status tl_nvrtc_compile_both(tl_base *b, const char *arch, const char *name, const char *source, tl_image *cubin, tl_image *ptx);

#endif
