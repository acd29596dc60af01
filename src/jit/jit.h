/* SPDX-License-Identifier: MIT
 *
 * jit.h - from a kernel file and its defines to a ready image, without waiting where that can be avoided.
 *
 *   source    the prelude of the dialect, the defines, common.cl and the kernel file, as one text
 *   key       a hash of that text, the options, the compiler's and driver's version and the device
 *   image     found among those built ahead of time, else on disk, else compiled and put there
 *
 * The cache is $TULLE_CACHE, or $XDG_CACHE_HOME/tulle, or ~/.cache/tulle.  Entries are written beside their
 * name and renamed; each carries its own hash, and one that does not match is compiled again.  A cache
 * that cannot be written only costs time.  TULLE_IMAGES=off in the environment leaves embedded images alone.
 * Nothing here knows what a matrix is. */
#ifndef TL_JIT_H
#define TL_JIT_H
#include "base/base.h"

/* What whoever waits is told (tl_progress). */
#define TL_COMPILING "compiling kernels"

typedef enum tl_origin { TL_COMPILED, TL_CACHED, TL_EMBEDDED } tl_origin;

typedef struct tl_image {
    void     *data;                     /* from tl_alloc; free with tl_image_free    */
    uint64_t  bytes;
    tl_origin origin;
    double    seconds;                  /* what it took to get                       */
} tl_image;

/* What a driver offers: text in, image out.  Called from several threads at once; each has its own base. */
typedef struct tl_compiler {
    const char *dialect;                /* "cuda" or "opencl": which prelude         */
    const char *arch;                   /* "sm_90"; the device's name for OpenCL     */
    const char *version;                /* of compiler, driver and options: in the key */
    void       *self;
    tulle_status (*compile)(void *self, tl_base *b, const char *name, const char *source, tl_image *image);
} tl_compiler;

/* One program: a file of src/kernels without its ending, and lines of "#define NAME VALUE\n". */
typedef struct tl_program {
    const char *file;
    char        defines[512];
} tl_program;

/* The images of `count` programs; those that must be compiled are compiled at once on the threads of b.
 * On failure no image is held and the sentence names the file, the line and the first words of the
 * compiler's log. */
tulle_status tl_jit_images(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                           tl_image *images);
/* The same but nothing embedded is taken: for the build, which makes what is. */
tulle_status tl_jit_compiled(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                             tl_image *images);
/* The driver refused this image: another in its place.  Of one that was embedded (by a build newer than the driver) that of
 * the cache, or compiled; of one from the cache (written by a driver that was another one) compiled, and kept instead. */
tulle_status tl_jit_again(tl_base *b, const tl_compiler *compiler, const tl_program *program, tl_image *image);
void         tl_image_free(tl_base *b, tl_image *image);

/* The whole text that a compiler sees, from tl_alloc; for tests and for images built ahead of time. */
tulle_status tl_jit_source(tl_base *b, const char *dialect, const tl_program *program, char **text);
/* Names of the kernel files; NULL past the last. */
const char  *tl_jit_file(int i);

/* How many images the build has embedded. */
int          tl_embedded_count(void);

/* ---- cache.c: for `tulle cache` */
typedef struct tl_cache_info {
    char     path[1024];                /* empty: there is no cache                  */
    int64_t  entries;
    uint64_t bytes;
    char     why_not[256];              /* why it is not used; empty: it is          */
} tl_cache_info;

tulle_status tl_cache_look(tl_base *b, tl_cache_info *info);
tulle_status tl_cache_clear(tl_base *b, tl_cache_info *removed);

#endif
