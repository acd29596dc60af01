/* SPDX-License-Identifier: MIT
 *
 * hash.c - a fast 64-bit checksum.
 *
 * Each of eight lanes takes every eighth word: (lane ^ word), rotated, times an odd number.  Every step is
 * invertible, so two texts that differ in one word give different lanes, and the lanes are combined by
 * invertible steps as well: a change within one word is always detected, any other with probability
 * 1 - 2^-64.  It protects against accidents, not against attacks. */
#include "matrix/files.h"
#include <string.h>

static const uint64_t prime_a = 0x9E3779B185EBCA87u, prime_b = 0xC2B2AE3D27D4EB4Fu;

static inline uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t word_at(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

uint64_t tl_hash(const void *data, int64_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t lane[8];
    for (int i = 0; i < 8; i++) lane[i] = (seed + (uint64_t)i + 1) * prime_b;
    for (int64_t at = 0; at < bytes; at += 64)
        for (int i = 0; i < 8; i++) lane[i] = turn(lane[i] ^ word_at(p + at + 8 * i), 29) * prime_a;
    uint64_t h = (uint64_t)bytes ^ seed;
    for (int i = 0; i < 8; i++) {
        h = (h ^ lane[i]) * prime_b;
        h ^= h >> 32;
    }
    return h;
}
