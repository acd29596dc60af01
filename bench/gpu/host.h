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

void host_heading(void);
/* Times it, prints a line, and appends a piece for record.c where there is a file.  False: the product
 * failed or was wrong, and a message was printed. */
bool host_time(tulle_ctx *gpu, const host_product *p, FILE *pieces);

#endif
