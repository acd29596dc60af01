/* SPDX-License-Identifier: MIT
 * check.c - validates a view: the device finds the first bad row (kernels/check.cl), the host determines what
 * is wrong with it. */
#include "gpu/engine.h"

uint32_t tl_team_log2(const tl_gpu *gpu, int64_t nnz, int64_t rows)
{
    uint32_t team = 0, most = gpu->caps.cpu ? 2 : 5;
    uint64_t mean = rows ? (uint64_t)(nnz / rows) : 0;
    while (team < most && (2u << team) <= mean) team++;
    return team;
}

tl_types tl_check_types(const tulle_csr *M)
{
    return (tl_types){M->ptr_type == TULLE_I64 ? 64 : 32, M->idx_type == TULLE_I64 ? 64 : 32, 32, 0};
}

tulle_status tl_check_launch(tl_base *b, tl_gpu *gpu, const tulle_csr *M, int64_t rows, tl_dmem ptr,
                             tl_dmem col, tl_dmem bad)
{
    tulle_status status = TULLE_OK;
    tl_types types = tl_check_types(M);
    tl_kernel_id id = TL_K_CHECK;
    if (rows == 0) return TULLE_OK;
    TRY(tl_gpu_need(b, gpu, types, &id, 1));
    uint32_t threads = 128, team = tl_team_log2(gpu, M->nnz, rows);
    tl_arg args[] = {TL_U32(rows), TL_U32(team), TL_U64(M->nnz), TL_U64(M->cols),
                     TL_MEM(ptr),  TL_MEM(col),  TL_MEM(bad)};
    uint64_t blocks = (((uint64_t)rows << team) + threads - 1) / threads;
    tl_launch l = {
        .blocks = blocks > 65536 ? 65536 : blocks, .threads = threads, .count = TL_COUNT(args), .args = args};
    TRY(gpu->driver->launch(b, gpu->device, tl_gpu_kernel(gpu, types, id), &l));
done:
    return status;
}

/* The check on the host; if the view is on the device, of a copy. */
tulle_status tl_check_tell(tl_base *b, tl_gpu *gpu, const tulle_csr *M, const char *name)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *copy = NULL;
    if (M->place == TULLE_DEVICE) TRY(tl_gpu_move(b, gpu, M, TULLE_HOST, &copy));
    TRY(tl_csr_check(b, copy ? &copy->view : M, name, 0));
done:
    tl_matrix_free(b, copy);
    return status;
}
