/* SPDX-License-Identifier: MIT
 *
 * api.c - the public functions: each checks its arguments and calls one internal function.
 * (Functions that return names and texts are next to their tables: status.c, types.c, recipe.c, gallery.c,
 * gpu/trial.c.) */
#include "ctx.h"
#include <stdio.h>
#include <string.h>

/* Fails with a message that names the argument that is NULL. */
#define NEED(pointer)                                                                             \
    do {                                                                                          \
        if (!(pointer)) return tl_fail(&ctx->base, TULLE_EINVAL, "%s: " #pointer " is NULL", __func__); \
    } while (0)
#define NEED_CTX                                                                                  \
    do {                                                                                          \
        if (!ctx) return TULLE_EINVAL;                                                            \
        ctx->base.error[0] = 0;                                                                   \
        atomic_store(&ctx->base.cancelled, 0);                                                    \
        tulle_status here = ctx->engine->here(ctx);                                               \
        if (here != TULLE_OK) return here;                                                        \
    } while (0)

/* ---- context and devices */

/* There is no context yet that could keep the error message. */
static bool mem_is_wrong(const tulle_mem *mem, char *why, size_t bytes)
{
    if (!mem->alloc != !mem->free) {
        if (why) snprintf(why, bytes, "mem: %s is NULL and %s is not", mem->free ? "alloc" : "free",
                          mem->free ? "free" : "alloc");
        return true;
    }
    for (size_t i = 0; i < sizeof mem->reserved / sizeof *mem->reserved; i++) {
        if (!mem->reserved[i]) continue;
        if (why) snprintf(why, bytes, "mem: reserved[%zu] is not zero", i);
        return true;
    }
    return false;
}

tulle_status tulle_ctx_create_why(const char *device, const tulle_mem *mem, tulle_ctx **out, char *why,
                                  size_t bytes)
{
    if (why && bytes > 0) snprintf(why, bytes, "tulle_ctx_create: an argument is not allowed");
    if (!out) return TULLE_EINVAL;
    *out = NULL;
    if (mem && mem_is_wrong(mem, why, bytes)) return TULLE_EINVAL;
    return tl_ctx_create(device, mem, out, bytes > 0 ? why : NULL, bytes);
}

tulle_status tulle_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **out)
{
    return tulle_ctx_create_why(device, mem, out, NULL, 0);
}

void tulle_ctx_free(tulle_ctx *ctx)
{
    tl_ctx_free(ctx);
}

const char *tulle_ctx_device(const tulle_ctx *ctx)
{
    return ctx ? ctx->device : "";
}

const char *tulle_ctx_error(const tulle_ctx *ctx)
{
    return ctx ? ctx->base.error : "there is no context";
}

tulle_status tulle_ctx_set_threads(tulle_ctx *ctx, int threads)
{
    NEED_CTX;
    if (threads < 0 || threads > 1 << 16)
        return tl_fail(&ctx->base, TULLE_EINVAL, "%d threads: it may be 0 (one a core) to 65536", threads);
    tl_team *team = NULL;
    tulle_status status = tl_team_create(&ctx->base, threads, &team);
    if (status != TULLE_OK) return status;
    tl_team_free(ctx->base.team);
    ctx->base.team = team;
    return ctx->engine->threads(ctx);
}

void tulle_ctx_set_progress(tulle_ctx *ctx, tulle_progress_fn fn, void *user)
{
    if (!ctx) return;
    ctx->base.progress = fn;
    ctx->base.progress_user = user;
}

void tulle_ctx_set_trace(tulle_ctx *ctx, tulle_trace_fn fn, void *user)
{
    if (!ctx) return;
    ctx->base.trace = fn;
    ctx->base.trace_user = user;
    if (fn) tl_ctx_tell_device(ctx);
}

void tulle_ctx_set_partial(tulle_ctx *ctx, tulle_partial_fn fn, void *user)
{
    if (!ctx) return;
    ctx->base.partial = fn;
    ctx->base.partial_user = user;
}

void tulle_ctx_stats(const tulle_ctx *ctx, tulle_stats *stats)
{
    if (!stats) return;
    memset(stats, 0, sizeof *stats);
    if (ctx) *stats = ctx->stats;
}

void tulle_ctx_trim(tulle_ctx *ctx)
{
    if (!ctx) return;
    tl_pool_trim(ctx->base.pool);
    ctx->engine->trim(ctx);
}

int tulle_device_count(void)
{
    return tl_device_count();
}

tulle_status tulle_device_info(int i, tulle_device *info)
{
    return info ? tl_device_info(i, info) : TULLE_EINVAL;
}

static void cache_told(tulle_cache *to, const tl_cache_info *from)
{
    memset(to, 0, sizeof *to);
    memcpy(to->path, from->path, sizeof to->path);
    to->entries = from->entries;
    to->bytes = from->bytes;
    to->embedded = tl_embedded_count();
    memcpy(to->why_not, from->why_not, sizeof to->why_not);
}

tulle_status tulle_cache_info(tulle_ctx *ctx, tulle_cache *info)
{
    NEED_CTX;
    NEED(info);
    tl_cache_info found;
    tulle_status status = tl_cache_look(&ctx->base, &found);
    cache_told(info, &found);
    return status;
}

tulle_status tulle_cache_clear(tulle_ctx *ctx, tulle_cache *removed)
{
    NEED_CTX;
    NEED(removed);
    tl_cache_info found;
    tulle_status status = tl_cache_clear(&ctx->base, &found);
    cache_told(removed, &found);
    return status;
}

tulle_status tulle_cache_warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got)
{
    NEED_CTX;
    NEED(got);
    memset(got, 0, sizeof *got);
    if (!tl_type_known((int)val_type) || !tl_index_known((int)idx_type))
        return tl_fail(&ctx->base, TULLE_ETYPE, "value type %d, index type %d: not both are known",
                       (int)val_type, (int)idx_type);
    tulle_status status = ctx->engine->warm(ctx, val_type, idx_type, got);
    return status == TULLE_OK ? tl_choice_measure(ctx) : status;
}

/* ---- matrices */

tulle_status tulle_csr_check(tulle_ctx *ctx, const tulle_csr *A)
{
    NEED_CTX;
    NEED(A);
    tulle_status status = tl_view_check(ctx, A, "A");
    return status == TULLE_OK ? tl_view_test(ctx, A) : status;
}

/* The first checks of every function that makes a matrix from a view. */
#define NEED_VIEW                                                                                 \
    do {                                                                                          \
        NEED_CTX;                                                                                 \
        NEED(A);                                                                                  \
        NEED(out);                                                                                \
        *out = NULL;                                                                              \
        tulle_status shape = tl_view_check(ctx, A, "A");                                          \
        if (shape != TULLE_OK) return shape;                                                      \
    } while (0)

tulle_status tulle_csr_sort(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **out)
{
    NEED_VIEW;
    return tl_view_sort(ctx, A, out);
}

tulle_status tulle_csr_transpose(tulle_ctx *ctx, const tulle_csr *A, tulle_op op, tulle_matrix **out)
{
    NEED_VIEW;
    if ((int)op < TULLE_KEEP || (int)op > TULLE_ADJOINT)
        return tl_fail(&ctx->base, TULLE_EINVAL, "there is no operation %d", (int)op);
    return tl_view_transpose(ctx, A, op, out);
}

tulle_status tulle_csr_convert(tulle_ctx *ctx, const tulle_csr *A, tulle_type val_type,
                               tulle_index ptr_type, tulle_index idx_type, tulle_matrix **out)
{
    NEED_VIEW;
    if ((val_type && !tl_type_known((int)val_type)) || (ptr_type && !tl_index_known((int)ptr_type))
        || (idx_type && !tl_index_known((int)idx_type)))
        return tl_fail(&ctx->base, TULLE_ETYPE, "types %d, %d, %d: not all of them are known", (int)val_type,
                       (int)ptr_type, (int)idx_type);
    return tl_view_convert(ctx, A, (int)val_type, (int)ptr_type, (int)idx_type, out);
}

tulle_status tulle_csr_from_coo(tulle_ctx *ctx, int64_t rows, int64_t cols, int64_t count,
                                const void *row_idx, const void *col_idx, tulle_index idx_type,
                                const void *values, tulle_type val_type, tulle_matrix **out)
{
    NEED_CTX;
    NEED(out);
    *out = NULL;
    if (count > 0) {
        NEED(row_idx);
        NEED(col_idx);
    }
    return tl_csr_from_coo(&ctx->base, rows, cols, count, row_idx, col_idx, idx_type, values, val_type, out);
}

tulle_status tulle_csr_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y)
{
    NEED_CTX;
    NEED(A);
    tulle_status status = tl_view_check(ctx, A, "A");
    if (status != TULLE_OK) return status;
    if (A->cols > 0) NEED(x);
    if (A->rows > 0) NEED(y);
    return tl_view_apply(ctx, A, x, y);
}

tulle_status tulle_csr_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    NEED_VIEW;
    return tl_view_move(ctx, A, place, out);
}

tulle_csr tulle_matrix_view(const tulle_matrix *A)
{
    static const tulle_csr none;
    return A ? A->view : none;
}

void *tulle_matrix_values(tulle_matrix *A)
{
    return A ? (void *)A->view.values : NULL;   /* a mapped file is mapped copy-on-write */
}

void tulle_matrix_free(tulle_matrix *A)
{
    tl_matrix_free(NULL, A);
}

tulle_status tulle_matrix_adopt(tulle_ctx *ctx, const tulle_csr *A, tulle_done_fn done, void *user,
                                tulle_matrix **out)
{
    NEED_VIEW;
    if (A->place == TULLE_HOST) {
        tulle_status ends = tl_csr_slice_ends(&ctx->base, A, "A");
        if (ends != TULLE_OK) return ends;
    }
    return tl_matrix_adopt(&ctx->base, A, done, user, out);
}

tulle_status tulle_matrix_release(tulle_matrix *A, tulle_csr *arrays)
{
    return A && arrays ? tl_matrix_release(A, arrays) : TULLE_EINVAL;
}

void tulle_array_free(const void *array)
{
    tl_free(NULL, (void *)(uintptr_t)array);
}

/* ---- files and gallery */

tulle_status tulle_read(tulle_ctx *ctx, const char *path, tulle_matrix **A)
{
    NEED_CTX;
    NEED(path);
    NEED(A);
    *A = NULL;
    return tl_read(&ctx->base, path, false, A);
}

tulle_status tulle_read_mapped(tulle_ctx *ctx, const char *path, tulle_matrix **A)
{
    NEED_CTX;
    NEED(path);
    NEED(A);
    *A = NULL;
    return tl_read(&ctx->base, path, true, A);
}

tulle_status tulle_write(tulle_ctx *ctx, const char *path, const tulle_csr *A)
{
    NEED_CTX;
    NEED(path);
    NEED(A);
    tulle_status status = tl_view_check(ctx, A, "A");
    return status == TULLE_OK ? tl_view_write(ctx, path, A, false) : status;
}

tulle_status tulle_write_symmetric(tulle_ctx *ctx, const char *path, const tulle_csr *A)
{
    NEED_CTX;
    NEED(path);
    NEED(A);
    tulle_status status = tl_view_check(ctx, A, "A");
    return status == TULLE_OK ? tl_view_write(ctx, path, A, true) : status;
}

tulle_status tulle_write_check(tulle_ctx *ctx, const char *path)
{
    NEED_CTX;
    NEED(path);
    return tl_write_check(&ctx->base, path);
}

tulle_status tulle_write_bytes(tulle_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    NEED_CTX;
    NEED(path);
    if (bytes > 0) NEED(data);
    return tl_write_bytes(&ctx->base, path, data, bytes);
}

tulle_status tulle_writer_create(tulle_ctx *ctx, const char *path, int64_t rows, int64_t cols,
                                 tulle_type val_type, tulle_writer **writer)
{
    NEED_CTX;
    NEED(path);
    NEED(writer);
    *writer = NULL;
    return tl_writer_create(&ctx->base, path, rows, cols, (int)val_type, writer);
}

tulle_status tulle_writer_put(tulle_writer *writer, const tulle_csr *block)
{
    tulle_ctx *ctx = writer ? (tulle_ctx *)(void *)tl_writer_base(writer) : NULL;
    NEED_CTX;
    NEED(block);
    tulle_status status = tl_view_check(ctx, block, "the block");
    return status == TULLE_OK ? tl_view_put(ctx, writer, block) : status;
}

tulle_status tulle_writer_finish(tulle_writer *writer)
{
    tulle_ctx *ctx = writer ? (tulle_ctx *)(void *)tl_writer_base(writer) : NULL;
    NEED_CTX;
    return tl_writer_finish(writer);
}

void tulle_writer_free(tulle_writer *writer)
{
    tl_writer_free(writer);
}

tulle_status tulle_gallery(tulle_ctx *ctx, const char *recipe, tulle_matrix **A)
{
    NEED_CTX;
    NEED(recipe);
    NEED(A);
    *A = NULL;
    return tl_gallery(&ctx->base, recipe, A);
}

/* ---- dense matrices */

tulle_dense tulle_dense_make(int64_t rows, int64_t cols, int64_t ld, tulle_order order, void *values,
                             tulle_type val_type)
{
    return (tulle_dense){.rows = rows, .cols = cols, .ld = ld, .val_type = val_type, .order = order,
                         .values = values};
}

tulle_dense tulle_dense_make_device(int64_t rows, int64_t cols, int64_t ld, tulle_order order, void *values,
                                    tulle_type val_type)
{
    tulle_dense A = tulle_dense_make(rows, cols, ld, order, values, val_type);
    A.place = TULLE_DEVICE;
    return A;
}

tulle_status tulle_dense_create(tulle_ctx *ctx, int64_t rows, int64_t cols, tulle_order order,
                                tulle_type val_type, tulle_dense_matrix **out)
{
    NEED_CTX;
    NEED(out);
    *out = NULL;
    tulle_status status = tl_dense_create(&ctx->base, rows, cols, order, val_type, out);
    if (status == TULLE_OK) memset((*out)->view.values, 0, (size_t)tl_dense_bytes(&(*out)->view));
    return status;
}

tulle_status tulle_dense_convert(tulle_ctx *ctx, const tulle_dense *A, tulle_order order, tulle_type val_type,
                                 tulle_dense_matrix **out)
{
    NEED_CTX;
    NEED(A);
    NEED(out);
    *out = NULL;
    tulle_dense view = *A;
    tulle_status status = tl_dense_check(&ctx->base, &view, "A", true);
    if (status != TULLE_OK) return status;
    return tl_dense_convert(&ctx->base, &view, order, (int)val_type, out);
}

tulle_status tulle_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                              tulle_dense_matrix **out)
{
    NEED_CTX;
    NEED(A);
    NEED(out);
    *out = NULL;
    tulle_dense view = *A;
    tulle_status status = tl_dense_view_check(ctx, &view, "A", true);
    if (status == TULLE_OK) status = tl_place_find(ctx, &place);
    if (status == TULLE_OK && view.rows && view.cols)
        status = tl_array_check(ctx, view.place, view.values, "A", "values");
    if (status != TULLE_OK) return status;
    if (view.place == TULLE_HOST && place == TULLE_HOST)
        return tl_dense_convert(&ctx->base, &view, view.order, 0, out);
    return ctx->engine->dense_move(ctx, &view, place, out);
}

tulle_status tulle_dense_read(tulle_ctx *ctx, const char *path, tulle_dense_matrix **out)
{
    NEED_CTX;
    NEED(path);
    NEED(out);
    *out = NULL;
    return tl_dense_read(&ctx->base, path, out);
}

tulle_status tulle_dense_write(tulle_ctx *ctx, const char *path, const tulle_dense *A)
{
    NEED_CTX;
    NEED(path);
    NEED(A);
    tulle_dense view = *A;
    tulle_status status = tl_dense_check(&ctx->base, &view, "A", true);
    return status == TULLE_OK ? tl_dense_write(&ctx->base, path, &view) : status;
}

tulle_dense tulle_dense_view(const tulle_dense_matrix *A)
{
    static const tulle_dense none;
    return A ? A->view : none;
}

void tulle_dense_free(tulle_dense_matrix *A)
{
    tl_dense_free(NULL, A);
}

/* ---- products */

tulle_status tulle_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                            const tulle_options *options, tulle_matrix **C)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(C);
    *C = NULL;
    return tl_multiply(ctx, A, B, options, C);
}

tulle_status tulle_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                   const tulle_options *options, tulle_block_fn fn, void *user)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(fn);
    return tl_multiply_blocks(ctx, A, B, options, fn, user);
}

tulle_status tulle_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                            const tulle_options *options, tulle_forecast *forecast)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(forecast);
    return tl_estimate(ctx, A, B, options, forecast);
}

tulle_status tulle_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                                 const tulle_options *options, double *error)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(C);
    NEED(error);
    return tl_product_check(ctx, A, B, C, options, error);
}

/* ---- plans */

tulle_status tulle_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                               const tulle_options *options, tulle_plan **plan)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(plan);
    *plan = NULL;
    return tl_plan_create(ctx, A, B, options, plan);
}

tulle_csr tulle_plan_pattern(const tulle_plan *plan)
{
    static const tulle_csr none;
    return plan ? plan->C->view : none;
}

tulle_status tulle_plan_run(tulle_plan *plan, const void *a_values, const void *b_values, void *c_values)
{
    if (!plan) return TULLE_EINVAL;
    tulle_ctx *ctx = plan->ctx;
    NEED_CTX;
    if (plan->setup.stats.a_nnz > 0) NEED(a_values);
    if (plan->setup.stats.b_nnz > 0) NEED(b_values);
    if (plan->setup.stats.c_nnz > 0) NEED(c_values);
    return tl_plan_run(plan, a_values, b_values, c_values);
}

tulle_status tulle_plan_multiply(tulle_plan *plan, const void *a_values, const void *b_values,
                                 tulle_matrix **C)
{
    if (!plan) return TULLE_EINVAL;
    tulle_ctx *ctx = plan->ctx;
    NEED_CTX;
    NEED(C);
    *C = NULL;
    if (plan->setup.stats.a_nnz > 0) NEED(a_values);
    if (plan->setup.stats.b_nnz > 0) NEED(b_values);
    return tl_plan_multiply(plan, a_values, b_values, C);
}

void tulle_plan_stats(const tulle_plan *plan, tulle_stats *stats)
{
    if (!stats) return;
    memset(stats, 0, sizeof *stats);
    if (plan) *stats = plan->setup.stats;
}

void tulle_plan_free(tulle_plan *plan)
{
    tl_plan_free(plan);
}

/* ---- trials */

tulle_status tulle_merge_trial(tulle_ctx *ctx, const tulle_merge_options *options, tulle_merge_result *result)
{
    NEED_CTX;
    NEED(options);
    NEED(result);
    memset(result, 0, sizeof *result);
    return tl_merge_trial(ctx, options, result);
}

tulle_status tulle_delta_trial(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int runs,
                               tulle_delta_sample *sample)
{
    NEED_CTX;
    NEED(A);
    NEED(B);
    NEED(sample);
    memset(sample, 0, sizeof *sample);
    return tl_delta_trial(ctx, A, B, runs, sample);
}

tulle_status tulle_delta_train(tulle_ctx *ctx, const tulle_delta_sample *samples, int count, const char *path,
                               tulle_delta_report *report)
{
    NEED_CTX;
    NEED(samples);
    NEED(path);
    NEED(report);
    memset(report, 0, sizeof *report);
    return tl_delta_train(ctx, samples, count, path, report);
}

/* ---- SpMM */

tulle_status tulle_spmm(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                        const void *beta, tulle_dense *Y, const tulle_spmm_options *options)
{
    NEED_CTX;
    NEED(A);
    NEED(X);
    NEED(Y);
    return tl_spmm(ctx, alpha, A, X, beta, Y, options);
}

tulle_status tulle_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_spmm_options *options,
                                    tulle_spmm_plan **plan)
{
    NEED_CTX;
    NEED(A);
    NEED(plan);
    *plan = NULL;
    return tl_spmm_plan_create(ctx, A, options, plan);
}

tulle_status tulle_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                                 const void *beta, tulle_dense *Y)
{
    if (!plan) return TULLE_EINVAL;
    tulle_ctx *ctx = plan->ctx;
    NEED_CTX;
    NEED(X);
    NEED(Y);
    return tl_spmm_plan_run(plan, alpha, X, beta, Y);
}

tulle_status tulle_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values)
{
    if (!plan) return TULLE_EINVAL;
    tulle_ctx *ctx = plan->ctx;
    NEED_CTX;
    if (plan->given.nnz > 0) NEED(a_values);
    return tl_spmm_plan_set_values(plan, a_values);
}

void tulle_spmm_plan_stats(const tulle_spmm_plan *plan, tulle_stats *stats)
{
    if (!stats) return;
    memset(stats, 0, sizeof *stats);
    if (plan) *stats = plan->stats;
}

void tulle_spmm_plan_free(tulle_spmm_plan *plan)
{
    tl_spmm_plan_free(plan);
}
