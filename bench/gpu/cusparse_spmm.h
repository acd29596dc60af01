/* SPDX-License-Identifier: MIT
 *
 * cusparse_spmm.h - Y = A*X by cuSPARSE, X and Y dense, which can be queued in a stream repeatedly.  The
 * libraries are opened at run time, as in programs/cusparse.c. */
#ifndef TULLE_BENCH_CUSPARSE_SPMM_H
#define TULLE_BENCH_CUSPARSE_SPMM_H
#include <stdbool.h>
#include "tulle.h"

enum { CUSPARSE_SPMM_WAYS = 4 };

typedef struct cusparse_spmm cusparse_spmm;

const char *cusparse_spmm_name(int way);                /* "DEFAULT", "ALG1", "ALG2", "ALG3" */
/* Descriptors, buffer and preprocessing for one algorithm; everything is on CUDA device number `device`, f32
 * or f64, with 32-bit indices, X and Y both row-major or both column-major.  NULL: why says what failed. */
cusparse_spmm *cusparse_spmm_open(const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y, int device,
                                  void *stream, int way, char *why, size_t bytes);
bool cusparse_spmm_run(void *spmm);                     /* queues a run; the argument is a cusparse_spmm */
void cusparse_spmm_close(cusparse_spmm *spmm);          /* NULL is fine */

#endif
