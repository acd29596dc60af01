/* SPDX-License-Identifier: MIT
 * host.h - products whose operands and result lie on the host, for bench_gpu.c. */
#ifndef TULLE_BENCH_HOST_H
#define TULLE_BENCH_HOST_H
#include <stdio.h>
#include "suite.h"

typedef struct host_product {
    const char      *name, *operation, *type, *device;
    const tulle_csr *A, *B;             /* on the host                                        */
    bool             same;              /* B is A: it goes to the device once                 */
    const tulle_csr *want;              /* what C must be, bit for bit; NULL: it is not compared */
    int              runs;
} host_product;

/* The contexts that compute the same product: on the device, on the CPU, and by the one that chooses between
 * them (NULL: the device is not the one it would choose). */
typedef struct host_contexts {
    tulle_ctx *gpu, *cpu, *either;
} host_contexts;

/* Opens them, and measures the constants by which the last one chooses. */
void host_open(const char *device, host_contexts *c);
void host_close(host_contexts *c);
void host_heading(void);
/* Times it, prints a line, and appends a piece for record.c where there is a file; adds the better of CPU and
 * device to the one that was chosen.  False: the product failed or was wrong, and a message was printed. */
bool host_time(const host_contexts *c, const host_product *p, suite_ratio *chosen, FILE *pieces);
void host_tally(const suite_ratio *chosen);

#endif
