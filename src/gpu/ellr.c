/* SPDX-License-Identifier: MIT
 * ellr.c - ELLPACK-R, not there yet: A stays in CSR. */
#include "gpu/spmm.h"

tulle_status tl_ellr_make(tl_base *b, tl_gpu_spmm *s, tl_ellr_shape wanted)
{
    (void)b, (void)s, (void)wanted;
    return TULLE_OK;
}

tulle_status tl_ellr_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta)
{
    (void)b, (void)s, (void)chunk, (void)alpha, (void)beta;
    return TULLE_OK;
}

void tl_ellr_done(tl_gpu_spmm *s)
{
    (void)s;
}
