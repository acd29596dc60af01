/* SPDX-License-Identifier: MIT
 *
 * fuzz_gz.c - compressed files and archives.  The first byte of the input determines how the rest is used: as a
 * file; compressed by gzip; or as a tar archive whose headers get correct checksums, plain or compressed.  So
 * damage is tested both where gzip detects it and where gzip does not. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"
#include "matrix/files.h"

enum { BLOCK = 512 };

/* Gives every block that could be a header the correct checksum. */
static void sign(uint8_t *d, size_t bytes)
{
    for (size_t at = 0; at + BLOCK <= bytes; at += BLOCK) {
        unsigned sum = 0;
        int zero = 1;
        for (int i = 0; i < BLOCK; i++) zero = zero && d[at + (size_t)i] == 0;
        if (zero || d[at] == '%') continue;
        memset(d + at + 148, ' ', 8);
        for (int i = 0; i < BLOCK; i++) sum += d[at + (size_t)i];
        snprintf((char *)d + at + 148, 8, "%06o", sum);
        d[at + 155] = ' ';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t copy[FUZZ_MOST];
    static char packed[2 * FUZZ_MOST];
    tl_base *b = (tl_base *)(void *)fuzz_context();
    char path[128];
    if (bytes < 1 || bytes > FUZZ_MOST) return 0;
    int how = data[0] % 4;
    bytes--;
    memcpy(copy, data + 1, bytes);
    if (how >= 2) sign(copy, bytes);
    snprintf(path, sizeof path, "%s", fuzz_path(".gz"));
    tl_packer *packer = NULL;
    if (how % 2 == 1 && tl_gz_here()) {
        fuzz_expect(tl_packer_create(b, &packer) == TULLE_OK, "no packer");
        int64_t n = tl_gz_pack(packer, (const char *)copy, (int64_t)bytes, packed, sizeof packed);
        tl_packer_free(b, packer);
        fuzz_put(path, packed, (size_t)n);
    } else {
        fuzz_put(path, copy, bytes);
    }
    tulle_matrix_free(fuzz_read(path));
    remove(path);
    return 0;
}
