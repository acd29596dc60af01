/* SPDX-License-Identifier: MIT
 *
 * roofs.h - what this machine allows at most: bytes from memory, operations on values in the first cache. */
#ifndef TULLE_BENCH_ROOFS_H
#define TULLE_BENCH_ROOFS_H
#include <stdbool.h>

typedef struct roofs roofs;

/* Takes some samples by so many threads, and prints the best. */
roofs *roofs_open(int threads);
void   roofs_close(roofs *r);
/* One more; none was taken. */
void   roofs_sample(roofs *r);
void   roofs_anew(roofs *r);
/* A second: the median of the samples, or the best of them. */
double roofs_bytes(const roofs *r, bool best);
/* The best ever. */
double roofs_operations(const roofs *r, bool is_double);

#endif
