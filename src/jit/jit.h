/* SPDX-License-Identifier: MIT
 *
 * jit.h - from a kernel file and its defines to an image, compiled only if necessary.
 *
 *   source    the prelude of the dialect, the defines, the shared files and the kernel file, as one text
 *   key       a hash of that text, the options, the compiler's and driver's version and the device
 *   image     one of those built ahead of time, else from the cache, else compiled and added to the cache
 *
 * The cache is $TULLE_CACHE, or $XDG_CACHE_HOME/tulle, or ~/.cache/tulle.  Entries are written under another
 * name and renamed; each contains a hash, and if it does not match, the program is compiled again.  If the
 * cache cannot be written, kernels are compiled each time.  TULLE_IMAGES=off in the environment disables
 * embedded images.  Nothing in this folder depends on matrices. */
#ifndef TL_JIT_H
#define TL_JIT_H
#include "base/base.h"

/* The text for the progress function (tl_progress). */
#define TL_COMPILING "compiling kernels"

typedef enum tl_origin { TL_COMPILED, TL_CACHED, TL_EMBEDDED } tl_origin;

typedef struct tl_image {
    void     *data;                     /* from tl_alloc; free with tl_image_free    */
    uint64_t  bytes;
    tl_origin origin;
    double    seconds;                  /* time to load or compile it                */
} tl_image;

/* The compiler of a driver, from text to image.  Called by several threads at once, each with its own
 * base. */
typedef struct tl_compiler {
    const char *dialect;                /* "cuda" or "opencl", selects the prelude        */
    const char *arch;                   /* "sm_90"; the device's name for OpenCL     */
    const char *version;                /* of compiler, driver and options; part of the key */
    void       *self;
    tulle_status (*compile)(void *self, tl_base *b, const char *name, const char *source, tl_image *image);
} tl_compiler;

/* One program: a file of src/kernels without its extension, and lines of "#define NAME VALUE\n". */
typedef struct tl_program {
    const char *file;
    char        defines[512];
} tl_program;

/* Gets the images of `count` programs; those that must be compiled are compiled in parallel by the threads
 * of b.  On failure no image is returned, and the message has the file, the line and the beginning of the
 * compiler's log. */
tulle_status tl_jit_images(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                           tl_image *images);
/* The same without embedded images: for the build, which creates these. */
tulle_status tl_jit_compiled(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                             tl_image *images);
/* Replaces an image that the driver rejected: an embedded one (built with a version newer than the driver)
 * by one from the cache, or compiled; one from the cache (written by another driver version) by a compiled
 * one, which also replaces it in the cache. */
tulle_status tl_jit_again(tl_base *b, const tl_compiler *compiler, const tl_program *program,
                          tl_image *image);
void         tl_image_free(tl_base *b, tl_image *image);

/* The complete text for the compiler, from tl_alloc; for tests and for images built ahead of time. */
tulle_status tl_jit_source(tl_base *b, const char *dialect, const tl_program *program, char **text);
/* Names of the kernel files; NULL after the last. */
const char  *tl_jit_file(int i);

/* The number of embedded images. */
int          tl_embedded_count(void);

/* ---- cache.c: for `tulle cache` */
typedef struct tl_cache_info {
    char     path[1024];                /* empty: there is no cache                  */
    int64_t  entries;
    uint64_t bytes;
    char     why_not[256];              /* why it is not used; empty if it is used        */
} tl_cache_info;

tulle_status tl_cache_look(tl_base *b, tl_cache_info *info);
tulle_status tl_cache_clear(tl_base *b, tl_cache_info *removed);

#endif
