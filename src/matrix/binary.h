/* SPDX-License-Identifier: MIT
 *
 * binary.h - the header of a .tulle file and its checksums, for those who read and write one (binary.c, binary_rows.c).
 * docs/formats.md has the layout byte by byte. */
#ifndef TL_BINARY_H
#define TL_BINARY_H
#include "matrix/files.h"

enum { TL_BINARY_HEADER = 256, TL_BINARY_ALIGN = 64, TL_BINARY_BLOCK = 1 << 20, TL_BINARY_VERSION = 1 };
enum { TL_FILE_PTR, TL_FILE_IDX, TL_FILE_VAL, TL_FILE_ARRAYS };

typedef struct tl_binary_header {       /* little-endian; padding is zero */
    char     magic[8];
    uint32_t version, order;
    int64_t  rows, cols, nnz;
    uint32_t val_type, ptr_type, idx_type, zero;        /* val_type 0: a pattern */
    uint64_t file_bytes;
    struct { uint64_t at, bytes, sum; } array[TL_FILE_ARRAYS];
    uint64_t unused[14];
    uint64_t sum;                       /* of all before it */
} tl_binary_header;

_Static_assert(sizeof(tl_binary_header) == TL_BINARY_HEADER, "the header of .tulle has 256 bytes");

/* Fails where this machine's byte order is another. */
tulle_status tl_binary_begin(tl_base *b, const char *path, tl_binary_header *h);
/* Where every array lies follows from sizes and types; false: sizes that no file can have. */
bool         tl_binary_lay_out(tl_binary_header *h);
/* Once all else is there. */
void         tl_binary_seal(tl_binary_header *h);

uint64_t     tl_binary_padded(uint64_t bytes);
/* Of block `number` of an array; only the last has less than TL_BINARY_BLOCK bytes. */
uint64_t     tl_binary_block_sum(const char *data, uint64_t bytes, int64_t number);
/* Of a whole array, from those of its blocks. */
uint64_t     tl_binary_array_sum(int array, uint64_t bytes, const uint64_t *block);
/* The zeros behind each array; 0 or errno. */
int          tl_binary_put_padding(tl_out *out, const tl_binary_header *h);

#endif
