/* SPDX-License-Identifier: MIT
 * sha256.c - SHA-256 (FIPS 180-4), for cache keys and for detecting damaged data. */
#include "jit/parts.h"
#include <string.h>

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void mix(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8
               | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7]
               + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 8; i++) s[i] = state[i];
    for (int i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 =
            s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; j--) s[j] = s[j - 1];           /* a sanitizer would check each call */
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

void tl_sha256_begin(tl_sha256 *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->state, first, sizeof first);
}

void tl_sha256_add(tl_sha256 *s, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    size_t filled = (size_t)(s->bytes % 64);
    s->bytes += bytes;
    while (bytes > 0) {
        if (filled == 0 && bytes >= 64) {
            mix(s->state, p);
            p += 64;
            bytes -= 64;
            continue;
        }
        size_t n = 64 - filled < bytes ? 64 - filled : bytes;
        memcpy(s->block + filled, p, n);
        p += n;
        bytes -= n;
        filled = (filled + n) % 64;
        if (filled == 0) mix(s->state, s->block);
    }
}

tl_hash tl_sha256_end(tl_sha256 *s)
{
    static const unsigned char pad[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    unsigned char length[8];
    tl_hash hash;
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    tl_sha256_add(s, pad, (size_t)(s->bytes % 64 < 56 ? 56 - s->bytes % 64 : 120 - s->bytes % 64));
    tl_sha256_add(s, length, sizeof length);
    for (int i = 0; i < 32; i++) hash.byte[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    return hash;
}

tl_hash tl_sha256_of(const void *data, size_t bytes)
{
    tl_sha256 s;
    tl_sha256_begin(&s);
    tl_sha256_add(&s, data, bytes);
    return tl_sha256_end(&s);
}

void tl_sha256_field(tl_sha256 *s, const char *text)
{
    uint64_t n = strlen(text);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(n >> (8 * i));
    tl_sha256_add(s, length, sizeof length);
    tl_sha256_add(s, text, (size_t)n);
}
