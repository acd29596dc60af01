/* SPDX-License-Identifier: MIT
 *
 * tpat.h - packed patterns of matrices, NAME.tpat or NAME.tpat.xz.
 *
 * After 8 bytes "TPAT1" follow LEB128 numbers: rows, columns, entries; the length of each row; then for each
 * row its first column as a zigzag difference to the first column of the last non-empty row, and each further
 * column as its distance from the previous one minus 1.  Values are in [0.5, 1.5), from a hash of the entry's
 * index. */
#ifndef TULLE_BENCH_TPAT_H
#define TULLE_BENCH_TPAT_H
#include <stdbool.h>
#include "tulle.h"

typedef struct tpat {
    tulle_csr view;             /* f64, 32-bit columns and pointers */
    int32_t  *row_ptr, *col_idx;
    double   *values;
} tpat;

bool   tpat_name(const char *path);                     /* whether the name has that ending */
bool   tpat_read(const char *path, tpat *A);            /* false: the reason was printed     */
void   tpat_free(tpat *A);
double tpat_value(uint64_t i);

#endif
