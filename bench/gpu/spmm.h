/* SPDX-License-Identifier: MIT
 *
 * spmm.h - what bench_gpu_spmm.c and paper.c share. */
#ifndef TULLE_BENCH_SPMM_H
#define TULLE_BENCH_SPMM_H
#include <stdio.h>
#include "device.h"
#include "suite.h"

/* The best of cuSPARSE's algorithms, with operands on the device: its milliseconds and *name; or 0, with
 * why. */
double spmm_cusparse(device *d, const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y, int runs,
                     const char **name, char *why, size_t bytes);
/* The experiments of FastSpMM's paper; returns 0 if all succeeded. */
int    spmm_paper(const char *where, const suite *matrices, FILE *pieces);

#endif
