/* SPDX-License-Identifier: MIT
 *
 * roofs.h - what this machine allows at most: bytes from memory, operations on values in the first cache. */
#ifndef TULLE_BENCH_ROOFS_H
#define TULLE_BENCH_ROOFS_H

typedef struct roofs { double bytes, operations[2]; } roofs;            /* a second; single and double precision */

/* Measured by as many threads, and printed. */
roofs roofs_measure(int threads);

#endif
