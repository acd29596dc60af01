/* SPDX-License-Identifier: MIT
 *
 * views.c - operations on a single matrix, wherever its arrays lie.
 *
 * These operations (sorting, transposing, writing ...) run on the host: a view over device memory is first
 * copied to the host, and the result is on the host.  Only tulle_csr_move() and tulle_dense_move() copy to a
 * device. */
#include "ctx.h"

tulle_status tl_array_check(tulle_ctx *ctx, int place, const void *array, const char *name, const char *what)
{
    const tl_engine *e = ctx->engine;
    if (place != TULLE_DEVICE || !e->elsewhere || !e->elsewhere(ctx, array)) return TULLE_OK;
    return tl_fail(&ctx->base, TULLE_EINVAL, "%s: %s lies in the memory of another device or context than %s",
                   name, what, ctx->device);
}

tulle_status tl_view_check(tulle_ctx *ctx, const tulle_csr *A, const char *name)
{
    if (!A || ctx->engine->on_host || A->place != TULLE_DEVICE)
        return tl_csr_check_shape(&ctx->base, A, name);
    tulle_csr view = *A;
    view.place = TULLE_HOST;            /* for the check, which reads no arrays */
    return tl_csr_check_shape(&ctx->base, &view, name);
}

tulle_status tl_arrays_check(tulle_ctx *ctx, const tulle_csr *A, const char *name)
{
    tulle_status status = TULLE_OK;
    TRY(tl_array_check(ctx, A->place, A->row_ptr, name, "row_ptr"));
    TRY(tl_array_check(ctx, A->place, A->nnz > 0 ? A->col_idx : NULL, name, "col_idx"));
    TRY(tl_array_check(ctx, A->place, A->nnz > 0 ? A->values : NULL, name, "values"));
done:
    return status;
}

tulle_status tl_on_host(tulle_ctx *ctx, const tulle_csr *A, const char *name, tulle_csr *view,
                        tulle_matrix **own)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    if (A->place == TULLE_HOST) return tl_csr_slice(b, A, name, 0, view, own);
    *view = *A;
    *own = NULL;
    TRY(tl_arrays_check(ctx, A, name));
    TRY(ctx->engine->move(ctx, A, TULLE_HOST, own));
    *view = (*own)->view;
    tl_trace(b, "a matrix on %s was copied to the host", ctx->device);
done:
    return status;
}

/* ---- copies */

tulle_status tl_place_find(tulle_ctx *ctx, tulle_place *place)
{
    if (*place != TULLE_HOST && *place != TULLE_DEVICE)
        return tl_fail(&ctx->base, TULLE_EINVAL, "there is no place %d", (int)*place);
    if (ctx->engine->on_host) *place = TULLE_HOST;
    return TULLE_OK;
}

tulle_status tl_dense_view_check(tulle_ctx *ctx, tulle_dense *A, const char *name, bool values)
{
    if (ctx->engine->on_host || A->place != TULLE_DEVICE) return tl_dense_check(&ctx->base, A, name, values);
    A->place = TULLE_HOST;              /* for the check, which reads no values */
    tulle_status status = tl_dense_check(&ctx->base, A, name, values);
    A->place = TULLE_DEVICE;
    return status;
}

tulle_status tl_view_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view = *A;
    tulle_matrix *own = NULL, *copy = NULL;
    TRY(tl_place_find(ctx, &place));
    TRY(tl_arrays_check(ctx, A, "A"));
    if (A->place == TULLE_HOST) {
        TRY(tl_csr_slice(b, A, "A", 0, &view, &own));
        TRY(tl_csr_check_ends(b, &view, "A"));  /* nnz entries are copied, so the arrays must have them */
    }
    if (A->place == TULLE_HOST && place == TULLE_HOST) TRY(tl_matrix_copy(b, &view, &copy));
    else TRY(ctx->engine->move(ctx, &view, place, &copy));
    /* on the host a nonzero row_ptr[0] would mean a slice, which this is not */
    if (A->place == TULLE_DEVICE && place == TULLE_HOST) TRY(tl_csr_check_ends(b, &copy->view, "A"));
    *out = copy;
    copy = NULL;
done:
    tl_matrix_free(b, own);
    tl_matrix_free(b, copy);
    return status;
}

/* ---- operations on the host */

tulle_status tl_view_test(tulle_ctx *ctx, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_check(b, &view, "A", 0));
done:
    tl_matrix_free(b, own);
    return status;
}

tulle_status tl_view_sort(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_sort(b, &view, out));
done:
    tl_matrix_free(b, own);
    return status;
}

tulle_status tl_view_transpose(tulle_ctx *ctx, const tulle_csr *A, tulle_op op, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_check(b, &view, "A", 0));
    TRY(op == TULLE_KEEP ? tl_csr_convert(b, &view, 0, 0, 0, out)
                         : tl_csr_transpose(b, &view, op, out, NULL));
done:
    tl_matrix_free(b, own);
    return status;
}

tulle_status tl_view_convert(tulle_ctx *ctx, const tulle_csr *A, int val_type, int ptr_type, int idx_type,
                             tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_convert(b, &view, val_type, ptr_type, idx_type, out));
done:
    tl_matrix_free(b, own);
    return status;
}

/* The checks that tl_csr_check() does not do. */
static tulle_status check_vectors(tl_base *b, const tulle_csr *A, const void *x, const void *y)
{
    if (!tl_type_known(A->val_type))
        return tl_fail(b, TULLE_ETYPE, "A: val_type is %d, not TULLE_F32, F64, CF32 or CF64",
                       (int)A->val_type);
    if (!A->values && A->nnz > 0) return tl_fail(b, TULLE_EINVAL, "A: values is NULL, and A*x needs them");
    if (!x && A->cols > 0) return tl_fail(b, TULLE_EINVAL, "x is NULL");
    if (!y && A->rows > 0) return tl_fail(b, TULLE_EINVAL, "y is NULL");
    uintptr_t from = (uintptr_t)x, to = (uintptr_t)y, size = tl_type_size(A->val_type);
    if (A->rows > 0 && A->cols > 0 && from < to + (uintptr_t)A->rows * size
        && to < from + (uintptr_t)A->cols * size)
        return tl_fail(b, TULLE_EINVAL, "x and y overlap");
    return TULLE_OK;
}

/* Uses the SpMM kernels for one column, with two differences: sums are in double, and no row is summed in
 * parts.  It runs on the host for every device, and does not change the context's statistics.  Rows are
 * checked while they are summed. */
tulle_status tl_view_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    tl_spmm_pieces pieces = {0};
    TRY(check_vectors(b, A, x, y));
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_check_ends(b, &view, "A"));
    if (view.cols == 0) TRY(tl_csr_check(b, &view, "A", 0));
    const int threads = tl_spmm_threads(b, 0, &view, 1);
    const tulle_dense X = {
        .rows = view.cols, .cols = 1, .ld = 1, .val_type = view.val_type, .values = (void *)x};
    tulle_dense Y = {.rows = view.rows, .cols = 1, .ld = 1, .val_type = view.val_type, .values = y};
    TRY(tl_spmm_pieces_whole(b, &view, threads, &pieces));
    if (pieces.doubtful) TRY(tl_csr_refuse(b, &view, "A"));
    TRY(tl_spmm_run(b, &(tl_spmm_request){.A = &view,
                                          .unchecked = view.cols > 0,
                                          .pieces = &pieces,
                                          .X = &X,
                                          .Y = &Y,
                                          .alpha = {1, 0},
                                          .threads = threads,
                                          .in_double = true}));
done:
    tl_spmm_pieces_done(b, &pieces);
    tl_matrix_free(b, own);
    return status;
}

tulle_status tl_view_write(tulle_ctx *ctx, const char *path, const tulle_csr *A, bool symmetric)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, A, "A", &view, &own));
    TRY(tl_csr_check(b, &view, "A", 0));
    if (symmetric) TRY(tl_write_symmetric(b, path, &view));
    else TRY(tl_write(b, path, &view));
done:
    tl_matrix_free(b, own);
    return status;
}

tulle_status tl_view_put(tulle_ctx *ctx, tulle_writer *writer, const tulle_csr *block)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    TRY(tl_on_host(ctx, block, "the block", &view, &own));
    TRY(tl_csr_check(b, &view, "the block", 0));
    TRY(tl_writer_put(writer, &view));
done:
    tl_matrix_free(b, own);
    return status;
}
