/* SPDX-License-Identifier: MIT
 *
 * png.c - a PNG writer that needs no library.
 *
 * The picture has 8 bits per pixel and a palette.  Deflate is used with its fixed Huffman code, and with
 * matches at two distances only, one byte and one line back: pictures of matrices are mostly runs and
 * repeated lines, and shrink a hundredfold.  See RFC 1950, RFC 1951 and the PNG specification.  Memory: the
 * picture twice. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *at;
    size_t   count, room;
    uint32_t bits;              /* not yet written, least significant first */
    int      bit_count;
    bool     failed;
} bytes;

static void put(bytes *b, uint8_t value)
{
    if (b->count == b->room) {
        size_t room = b->room ? 2 * b->room : 4096;
        uint8_t *at = realloc(b->at, room);
        if (!at) {
            b->failed = true;
            return;
        }
        b->at = at;
        b->room = room;
    }
    b->at[b->count++] = value;
}

static void put_u32(bytes *b, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) put(b, (uint8_t)(value >> shift));
}

static void put_bits(bytes *b, uint32_t value, int count)
{
    b->bits |= value << b->bit_count;
    b->bit_count += count;
    while (b->bit_count >= 8) {
        put(b, (uint8_t)b->bits);
        b->bits >>= 8;
        b->bit_count -= 8;
    }
}

/* ---- deflate */

/* Huffman codes go out with their first bit first. */
static void put_code(bytes *b, uint32_t code, int count)
{
    uint32_t reversed = 0;
    for (int i = 0; i < count; i++) reversed |= (code >> i & 1) << (count - 1 - i);
    put_bits(b, reversed, count);
}

/* A literal byte, the end (256) or a length code (257 ..) of the fixed code. */
static void put_symbol(bytes *b, int symbol)
{
    if (symbol < 144) put_code(b, (uint32_t)(0x30 + symbol), 8);
    else if (symbol < 256) put_code(b, (uint32_t)(0x190 + symbol - 144), 9);
    else if (symbol < 280) put_code(b, (uint32_t)(symbol - 256), 7);
    else put_code(b, (uint32_t)(0xc0 + symbol - 280), 8);
}

static void put_match(bytes *b, int length, int distance)
{
    int extra = 0, code;
    if (length == 258) {
        put_symbol(b, 285);
    } else {                    /* 3..10 have a code each, then there are four for each extra bit */
        int from = length - 3;
        while (from >> (extra + 3)) extra++;
        code = extra ? 4 * extra + (from >> extra) : from;
        put_symbol(b, 257 + code);
        put_bits(b, (uint32_t)from & ((1u << extra) - 1), extra);
    }
    int from = distance - 1;    /* 1..4 have a code each, then there are two for each extra bit */
    extra = 0;
    while (from >> (extra + 2)) extra++;
    code = extra ? 2 * extra + (from >> extra) : from;
    put_code(b, (uint32_t)code, 5);
    put_bits(b, (uint32_t)from & ((1u << extra) - 1), extra);
}

static int match(const uint8_t *data, size_t size, size_t at, size_t distance)
{
    int length = 0;
    if (distance > at || distance > 32768) return 0;
    while (length < 258 && at + (size_t)length < size
           && data[at + (size_t)length] == data[at + (size_t)length - distance])
        length++;
    return length;
}

static uint32_t adler32(const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void compress(bytes *b, const uint8_t *data, size_t size, size_t line)
{
    put(b, 0x78);                               /* zlib: deflate, window of 32 KiB */
    put(b, 0x01);
    put_bits(b, 3, 3);                          /* the last block; fixed code      */
    for (size_t at = 0; at < size;) {
        int run = match(data, size, at, 1), above = match(data, size, at, line);
        int best = above > run ? above : run;
        if (best >= 3) put_match(b, best, above > run ? (int)line : 1);
        else put_symbol(b, data[at]);
        at += best >= 3 ? (size_t)best : 1;
    }
    put_symbol(b, 256);
    if (b->bit_count > 0) put_bits(b, 0, 8 - b->bit_count);
    put_u32(b, adler32(data, size));
}

/* ---- PNG */

static uint32_t crc32(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_chunk(bytes *b, const char type[5], const uint8_t *data, size_t size)
{
    size_t begin = b->count + 4;
    put_u32(b, (uint32_t)size);
    for (int i = 0; i < 4; i++) put(b, (uint8_t)type[i]);
    for (size_t i = 0; i < size; i++) put(b, data[i]);
    if (!b->failed) put_u32(b, crc32(b->at + begin, size + 4));
}

static void encode(bytes *b, int width, int height, const uint8_t *lines, const uint8_t (*palette)[3],
                   int colours)
{
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    bytes head = {0}, data = {0};
    put_u32(&head, (uint32_t)width);
    put_u32(&head, (uint32_t)height);
    put(&head, 8);                              /* bits a pixel */
    put(&head, 3);                              /* palette      */
    for (int i = 0; i < 3; i++) put(&head, 0);
    compress(&data, lines, ((size_t)width + 1) * (size_t)height, (size_t)width + 1);
    b->failed = head.failed || data.failed;
    for (size_t i = 0; i < sizeof signature; i++) put(b, signature[i]);
    if (!b->failed) put_chunk(b, "IHDR", head.at, head.count);
    if (!b->failed) put_chunk(b, "PLTE", palette[0], 3 * (size_t)colours);
    if (!b->failed) put_chunk(b, "IDAT", data.at, data.count);
    if (!b->failed) put_chunk(b, "IEND", NULL, 0);
    free(head.at);
    free(data.at);
}

int png_write(session *s, const char *path, int width, int height, const uint8_t *pixels,
              const uint8_t (*palette)[3], int colours)
{
    int code = END_OK;
    size_t line = (size_t)width + 1;
    bytes b = {0};
    uint8_t *lines = malloc(line * (size_t)height);
    if (!lines) return no_memory("the picture");
    for (int y = 0; y < height; y++) {
        lines[line * (size_t)y] = 0;            /* no filter */
        memcpy(lines + line * (size_t)y + 1, pixels + (size_t)width * (size_t)y, (size_t)width);
    }
    encode(&b, width, height, lines, palette, colours);
    code = b.failed ? no_memory("the picture") : told(s, tulle_write_bytes(s->ctx, path, b.at, b.count));
    free(lines);
    free(b.at);
    return code;
}
