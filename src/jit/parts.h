/* SPDX-License-Identifier: MIT
 *
 * parts.h - what the files of jit/ share.
 *
 *   source.c   the texts of src/kernels, embedded by the build, and one text made of them
 *   images.c   images embedded by the build
 *   cache.c    images on disk
 *   sha256.c   keys
 *   jit.c      where an image comes from */
#ifndef TL_JIT_PARTS_H
#define TL_JIT_PARTS_H
#include "jit/jit.h"

/* ---- texts.c, written by cmake/EmbedTexts.cmake: every .cl of src/kernels, by name; a NULL name ends it. */
typedef struct tl_text {
    const char          *name;          /* "common" of common.cl                     */
    const unsigned char *text;          /* not ended by a zero                       */
    size_t               bytes;
} tl_text;

extern const tl_text tl_texts[];

/* ---- sha256.c (FIPS 180-4) */
typedef struct tl_sha256 {
    uint32_t      state[8];
    uint64_t      bytes;
    unsigned char block[64];
} tl_sha256;

typedef struct tl_hash { unsigned char byte[32]; } tl_hash;

void    tl_sha256_begin(tl_sha256 *s);
void    tl_sha256_add(tl_sha256 *s, const void *data, size_t bytes);
tl_hash tl_sha256_end(tl_sha256 *s);
tl_hash tl_sha256_of(const void *data, size_t bytes);
/* The text with its length before it, so that "ab", "c" and "a", "bc" are two things. */
void    tl_sha256_field(tl_sha256 *s, const char *text);

/* ---- images.c; the table is written by tools/images.c, a NULL arch ends it */
typedef struct tl_embedded {
    tl_hash     key;                    /* of dialect and text                       */
    const char *arch;                   /* "sm_80", or "compute_80" for PTX          */
    const void *data;
    uint64_t    bytes;
} tl_embedded;

extern const tl_embedded tl_embedded_table[];

tl_hash            tl_embedded_key(const char *dialect, const char *text);
/* The image that runs best on a device of that arch, or NULL. */
const tl_embedded *tl_embedded_find(const tl_embedded *table, const tl_hash *key, const char *arch);

/* ---- cache.c */
enum { TL_CACHE_LIMIT = 256 << 20 };    /* bytes on disk                             */

typedef struct tl_cache {
    char path[1024];                    /* the folder; empty: there is none          */
    char trouble[256];                  /* why it could not be used, the first time  */
} tl_cache;

void    tl_cache_open(tl_cache *cache);
tl_hash tl_cache_key(const tl_compiler *compiler, const char *text);
/* False, and trouble says why: it is not the user's own, or cannot be read.  One that is not there yet can be used. */
bool    tl_cache_usable(tl_cache *cache);
/* False: not there, not whole, or somebody else may have written it. */
bool    tl_cache_get(tl_base *b, tl_cache *cache, const tl_hash *key, tl_image *image);
void    tl_cache_put(tl_cache *cache, const tl_hash *key, const tl_image *image);
/* The entries longest unused go until the rest fits. */
void    tl_cache_trim(tl_base *b, tl_cache *cache, uint64_t limit);

#endif
