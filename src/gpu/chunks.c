/* SPDX-License-Identifier: MIT
 * chunks.c - X and Y on the device, row by row. */
#include "gpu/spmm.h"
tulle_status tl_chunks_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, tulle_dense *Y,
                           tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = s->gpu->driver;
    (void)stats;
    if (X->place != TULLE_DEVICE || Y->place != TULLE_DEVICE || X->order || Y->order) return tl_fail(b, TULLE_EINVAL, "not yet");
    tl_chunk k = {.x = {(uint64_t)(uintptr_t)X->values, 0}, .y = {(uint64_t)(uintptr_t)Y->values, 0}, .x_ld = (uint64_t)X->ld,
                  .y_ld = (uint64_t)Y->ld, .cols = (uint32_t)X->cols};
    TRY(tl_spmm_chunk(b, s, &k, alpha, beta));
    if (!s->gpu->foreign) TRY(d->wait(b, s->gpu->device));
done:
    return status;
}
tulle_status tl_gpu_spmm_scale(tl_base *b, tl_gpu *gpu, tl_c64 beta, tulle_dense *Y)
{
    (void)gpu; (void)beta; (void)Y;
    return tl_fail(b, TULLE_EINVAL, "not yet");
}
tulle_status tl_ellr_make(tl_base *b, tl_gpu_spmm *s, tl_ellr_shape wanted) { (void)b; (void)s; (void)wanted; return TULLE_OK; }
tulle_status tl_ellr_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta)
{ (void)b; (void)s; (void)chunk; (void)alpha; (void)beta; return TULLE_OK; }
void tl_ellr_done(tl_gpu_spmm *s) { (void)s; }
