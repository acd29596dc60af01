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
    const char          *name;          /* "common" of common.cl                      */
    const unsigned char *text;          /* not ended by a zero                        */
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
/* The same with its length before it, so that "ab", "c" and "a", "bc" are two things. */
void    tl_sha256_field(tl_sha256 *s, const char *text);

#endif
