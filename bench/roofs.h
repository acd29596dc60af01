/* SPDX-License-Identifier: MIT
 *
 * roofs.h - measures the limits of this machine: memory bandwidth, and arithmetic with data in the L1
 * cache. */
#ifndef TULLE_BENCH_ROOFS_H
#define TULLE_BENCH_ROOFS_H
#include <stdbool.h>

typedef struct roofs roofs;

/* Takes some samples with this many threads, and prints the best. */
roofs *roofs_open(int threads);
void   roofs_close(roofs *r);
/* Takes one more sample. */
void   roofs_sample(roofs *r);
/* Forgets the samples of bandwidth. */
void   roofs_anew(roofs *r);
/* Bytes per second: by the median of the samples, or the best of them. */
double roofs_bytes(const roofs *r, bool best);
/* The best of all samples. */
double roofs_operations(const roofs *r, bool is_double);

#endif
