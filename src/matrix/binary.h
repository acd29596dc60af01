/* SPDX-License-Identifier: MIT
 *
 * binary.h - the header of a .tulle file and its checksums, for the files that read or write one (binary.c,
 * binary_rows.c, dist/file.c).  docs/formats.md has the layout byte by byte. */
#ifndef TL_BINARY_H
#define TL_BINARY_H
#include "matrix/files.h"

enum { TL_TULLE_HEADER = 256, TL_TULLE_ALIGN = 64, TL_TULLE_BLOCK = 1 << 20, TL_TULLE_VERSION = 1 };
enum { TL_TULLE_ROW_PTR, TL_TULLE_COL_IDX, TL_TULLE_VALUES, TL_TULLE_ARRAYS };

typedef struct tl_tulle_head {       /* little-endian; padding is zero */
    char     magic[8];
    uint32_t version, order;
    int64_t  rows, cols, nnz;
    uint32_t val_type, ptr_type, idx_type, zero;        /* val_type 0: a pattern */
    uint64_t file_bytes;
    struct { uint64_t at, bytes, sum; } array[TL_TULLE_ARRAYS];
    uint64_t unused[14];
    uint64_t sum;                       /* checksum of everything before it */
} tl_tulle_head;

_Static_assert(sizeof(tl_tulle_head) == TL_TULLE_HEADER, "the header of .tulle has 256 bytes");

/* The header of a matrix of this shape and these types, without checksums; the arrays are not read. */
tulle_status tl_tulle_begin(tl_base *b, const char *path, const tulle_csr *A, tl_tulle_head *h);
/* Checks a header that was read.  file_bytes < 0: unknown. */
tulle_status tl_tulle_check(tl_base *b, const char *path, const tl_tulle_head *h, int64_t file_bytes);
/* Computes the offset of every array from sizes and types; false: sizes that no file can have. */
bool         tl_tulle_lay_out(tl_tulle_head *h);
/* Computes the header's own checksum, when all other fields are set. */
void         tl_tulle_seal(tl_tulle_head *h);

uint64_t     tl_tulle_padded(uint64_t bytes);
/* The checksum of block `number` of an array; only the last block has fewer than TL_TULLE_BLOCK bytes. */
uint64_t     tl_tulle_block_sum(const char *data, uint64_t bytes, int64_t number);
/* The checksum of a whole array, from those of its blocks. */
uint64_t     tl_tulle_fold(int array, uint64_t bytes, const uint64_t *block);
/* Writes the padding after each array; 0 or errno. */
int          tl_tulle_put_padding(tl_out *out, const tl_tulle_head *h);

#endif
