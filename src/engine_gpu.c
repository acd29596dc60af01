/* SPDX-License-Identifier: MIT
 *
 * engine_gpu.c - the engine table (engines.h) of a GPU; the computation is in src/gpu.
 *
 * Operands that need no copy on the host are checked on the device.  A single product uploads its operands
 * and frees them afterwards; where several runs read them (stay), they are uploaded once, and count toward
 * the limit of each run. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

/* ---- a product */

/* Operands that stay on the device for several runs.  Where this device is one of several, A stays on the
 * host, unless A is B: each run uploads only its rows. */
typedef struct kept {
    tulle_csr     A, B;
    tulle_matrix *own_a, *own_b;        /* copies, unless the caller's lie there already   */
    uint64_t      bytes;                /* of these copies                                 */
    int64_t       row_most;             /* upper bound of the entries of a row of C        */
} kept;

static tl_gpu_request request_of(const tl_setup *s)
{
    const tulle_options *o = &s->options;
    const tl_operands *x = &s->operands;
    const kept *k = s->kept;
    return (tl_gpu_request){.A = k ? &k->A : &x->A, .B = k ? &k->B : &x->B, .recipe = &s->recipe,
                            .ptr_type = o->c_ptr_type, .idx_type = o->c_idx_type,
                            .place = (tulle_place)o->c_place,
                            .memory_limit = o->memory_limit, .before = k ? k->bytes : 0,
                            .row_most = k ? k->row_most : 0, .values = s->values, .drop_zeros = o->drop_zeros,
                            .trusted = x->checked || o->trust_inputs, .stages = o->time_stages,
                            .row0 = 0, .row1 = -1};
}

static tulle_status prepare(tulle_ctx *ctx, tl_setup *s, int want)
{
    tulle_status status = TULLE_OK;
    if (want & TL_LOOK) TRY(tl_look_make(ctx, s, want & TL_VALUES));
    s->stats.isa = tl_gpu_caps(ctx->gpu)->arch;
    tl_trace(&ctx->base, "policy %s on %s, %s", s->recipe.policy->name, s->device, s->stats.isa);
    if (s->recipe.delta) TRY(tl_delta_ready(&ctx->base, ctx->gpu));
done:
    return status;
}

/* Also records the peak memory of a run that failed. */
static tulle_status multiply(tulle_ctx *ctx, tl_setup *s, const tl_gpu_request *r, tulle_matrix **C)
{
    tulle_status status = tl_gpu_multiply(&ctx->base, ctx->gpu, r, C, &s->stats);
    if (status != TULLE_OK) s->stats.peak_bytes = tl_dmem_most(ctx->gpu);
    return status;
}

/* Of an A on the host only the rows row0 .. row1 are uploaded.  Its row pointers are checked where its rows
 * are cut out; on the device its columns are. */
static tulle_status run(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr rows;
    tulle_matrix *own = NULL;
    tl_gpu_request r = request_of(s);
    const bool all = row0 == 0 && (row1 < 0 || row1 == r.A->rows);
    if (all || r.A->place == TULLE_DEVICE) {
        r.row0 = row0;
        r.row1 = row1;
    } else {
        rows = tl_csr_rows(r.A, row0, row1 < 0 ? r.A->rows : row1);
        TRY(tl_csr_slice(b, &rows, "A", 1, &rows, &own));
        r.A = &rows;
    }
    TRY(multiply(ctx, s, &r, C));
done:
    tl_matrix_free(b, own);
    return status;
}

static tulle_status part(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B,
                         tulle_matrix **C)
{
    tl_gpu_request r = request_of(s);
    r.A = A;
    r.B = B;
    return multiply(ctx, s, &r, C);
}

static void done(tulle_ctx *ctx, tl_setup *s)
{
    kept *k = s->kept;
    if (!k) return;
    tl_matrix_free(&ctx->base, k->own_a);
    tl_matrix_free(&ctx->base, k->own_b);
    tl_free(&ctx->base, k);
    s->kept = NULL;
}

/* Nothing to add: the device's bytes and stages were counted in each run. */
static void figures(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    (void)ctx;
    (void)s;
    (void)c_bytes;
}

/* ---- blocks of rows */

static tulle_status stay_one(tulle_ctx *ctx, const tulle_csr *given, bool there, const tulle_csr *ready,
                             tulle_csr *view, tulle_matrix **own)
{
    tulle_status status = TULLE_OK;
    *view = *given;
    if (there) return TULLE_OK;
    TRY(tl_gpu_move(&ctx->base, ctx->gpu, ready, TULLE_DEVICE, own));
    *view = (*own)->view;
done:
    return status;
}

static tulle_status stay(tulle_ctx *ctx, tl_setup *s, const tulle_csr *A, const tulle_csr *B)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    const tl_operands *x = &s->operands;
    const tulle_options *o = &s->options;
    const tl_profile *p = &s->profile;
    kept *k = NULL;
    bool there_a = tl_stays_there(o, o->op_a, A), there_b = tl_stays_there(o, o->op_b, B);
    bool share = tl_same_matrix(&x->A, &x->B);
    there_a = there_a || (s->shared && !share);
    TRY(tl_calloc(b, &k, 1, sizeof *k, "operands on the device"));
    s->kept = k;
    k->row_most = p->max_products < x->B.cols ? p->max_products : x->B.cols;
    k->bytes = (there_a ? 0 : tl_gpu_bytes_of(&x->A)) + (there_b || share ? 0 : tl_gpu_bytes_of(&x->B));
    tl_dmem_begin(ctx->gpu, 0, o->memory_limit);        /* frees kept blocks that exceed the limit */
    if (o->memory_limit && k->bytes > o->memory_limit)
        status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes on the device for A and B, "
                         "the limit is %" PRIu64, k->bytes, o->memory_limit);
    if (status == TULLE_OK) status = stay_one(ctx, A, there_a, &x->A, &k->A, &k->own_a);
    if (share) k->B = k->A;
    else if (status == TULLE_OK) status = stay_one(ctx, B, there_b, &x->B, &k->B, &k->own_b);
    s->stats.peak_bytes = tl_dmem_most(ctx->gpu);
    tl_dmem_end(ctx->gpu);
done:
    return status;
}

static uint64_t room(const tulle_ctx *ctx, const tl_setup *s)
{
    const kept *k = s->kept;
    uint64_t limit = s->options.memory_limit, free_bytes = tl_dmem_left(ctx->gpu) / 2;
    uint64_t rest = limit - (k ? k->bytes : 0);
    return limit && rest < free_bytes ? rest : free_bytes;
}

static bool too_large(tulle_status status)
{
    return status == TULLE_ELIMIT || status == TULLE_ENOMEM;
}

/* The error message already says what any row needs. */
static tulle_status refuse(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status)
{
    (void)ctx;
    (void)s;
    (void)row0;
    return status;
}

/* ---- plans */

/* What runs need.  A plan for some of the rows has a copy of these rows of A. */
typedef struct kept_plan {
    tl_gpu_replay *replay;
    tulle_csr      rows;
    tulle_matrix  *own;
    int64_t        a_first, c_first;    /* their first entries in A and in C */
} kept_plan;

static tulle_status plan_make(tulle_plan *p)
{
    tulle_status status = TULLE_OK;
    tulle_ctx *ctx = p->ctx;
    tl_base *b = &ctx->base;
    tl_setup *s = &p->setup;
    tl_gpu_request r = request_of(s);
    kept_plan *k = NULL;
    TRY(tl_calloc(b, &k, 1, sizeof *k, "a plan"));
    p->kept = k;
    if (p->whole) {
        k->rows = tl_csr_rows(&s->operands.A, p->row0, p->row1);
        k->a_first = tl_csr_first(&k->rows);
        k->c_first = tl_row_begin(p->whole, p->row0);
        TRY(tl_csr_slice(b, &k->rows, "A", 1, &k->rows, &k->own));
        r.A = &k->rows;
    }
    TRY(tl_gpu_replay_make(b, ctx->gpu, &r, &p->C, &k->replay, &s->stats));
    if (!s->recipe.once) goto done;     /* new values need the numeric step of two: gpu/replay.c */
    if (s->recipe.policy->once) s->stats.policy = "bhsparse, in two steps";
    tl_trace(&ctx->base,
             "a plan counts first: heap, esc and merge do not, and are left to products without a plan");
done:
    return status;
}

static tulle_status plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    const kept_plan *k = p->kept;
    const size_t size = tl_type_size(p->setup.operands.A.val_type);
    return tl_gpu_replay_run(&p->ctx->base, k->replay, tl_array_from(a_values, size, k->a_first), b_values,
                             (void *)tl_array_from(c_values, size, k->c_first));
}

static void plan_free(tulle_plan *p)
{
    kept_plan *k = p->kept;
    if (!k) return;
    tl_gpu_replay_free(&p->ctx->base, k->replay);
    tl_matrix_free(&p->ctx->base, k->own);
    tl_free(&p->ctx->base, k);
}

/* ---- SpMM */

/* Prepares A on the device.  A transpose is computed on the host, which also checks A; it stays on the host
 * if A is uploaded in bands of rows. */
static tulle_status spmm_make(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols)
{
    (void)cols;
    tulle_status status = TULLE_OK;
    tulle_ctx *ctx = p->ctx;
    tulle_matrix *own = NULL;
    tl_gpu_spmm *made = NULL;
    const tulle_spmm_options *o = &p->options;
    const tulle_spmm_lab lab = tl_spmm_lab_of(o);
    if (o->op_a != TULLE_KEEP) TRY(tl_view_transpose(ctx, A, (tulle_op)o->op_a, &own));
    else if (!o->trust_inputs && A->place == TULLE_HOST) TRY(tl_csr_check_ends(&ctx->base, A, "A"));
    tl_gpu_spmm_request r = {.A = own ? &own->view : A, .ellr = strcmp(p->stats.policy, "ellr") == 0,
                             .memory_limit = o->memory_limit,
                             .ellr_threads = (uint32_t)lab.ellr_threads,
                             .ellr_columns = (uint32_t)lab.ellr_columns,
                             .ellr_block = (uint32_t)lab.ellr_block, .allow_tf32 = o->allow_tf32 != 0,
                             .trusted = o->trust_inputs || own, .keep = p->keeps};
    TRY(tl_gpu_spmm_make(&ctx->base, ctx->gpu, &r, &made, &p->stats));
    p->kept = made;
    if (!tl_gpu_spmm_in_bands(made)) goto done;
    if (p->keeps && !own) {
        TRY(tl_spmm_keep_values(p, A->values));
        TRY(tl_gpu_spmm_values(&ctx->base, made, &p->A));
    }
    p->own = own;
    own = NULL;
done:
    tl_matrix_free(&ctx->base, own);
    return status;
}

static tulle_status spmm_run(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y)
{
    return tl_gpu_spmm_run(&p->ctx->base, p->kept, alpha, X, beta, Y, &p->stats);
}

static tulle_status spmm_scale(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y)
{
    return tl_gpu_spmm_scale(&p->ctx->base, p->ctx->gpu, beta, Y);
}

static tulle_status spmm_values(tulle_spmm_plan *p, const tulle_csr *A)
{
    return tl_gpu_spmm_values(&p->ctx->base, p->kept, A);
}

static void spmm_free(tulle_spmm_plan *p)
{
    tl_gpu_spmm_free(&p->ctx->base, p->kept);
}

/* ---- device functions */

static tulle_status here(tulle_ctx *ctx)
{
    return tl_gpu_here(&ctx->base, ctx->gpu);
}

static double compiling(const tulle_ctx *ctx)
{
    return tl_gpu_compiling(ctx->gpu);
}

static void trim(tulle_ctx *ctx)
{
    tl_gpu_trim(ctx->gpu);
}

static tulle_status warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got)
{
    return tl_gpu_warm(&ctx->base, ctx->gpu, val_type, idx_type, got);
}

/* Where a CPU is used as an OpenCL device, a trial of the usual size would take minutes. */
static tulle_status merge(tulle_ctx *ctx, tl_merge_request *r, tulle_merge_result *result)
{
    enum { ENTRIES = 1 << 25, ENTRIES_CPU = 1 << 18 };
    if (!r->entries) r->entries = tl_gpu_caps(ctx->gpu)->cpu ? ENTRIES_CPU : ENTRIES;
    return tl_gpu_merge(&ctx->base, ctx->gpu, r, result);
}

static tulle_status schedule(tulle_ctx *ctx, int force, int *was, double seen[2][TL_FEATURES])
{
    tl_gpu_schedule(ctx->gpu, force, was, seen);
    return TULLE_OK;
}

static tulle_status move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place, tulle_matrix **out)
{
    return tl_gpu_move(&ctx->base, ctx->gpu, A, place, out);
}

static tulle_status dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                               tulle_dense_matrix **out)
{
    return tl_gpu_dense_move(&ctx->base, ctx->gpu, A, place, out);
}

static tulle_status blank(tulle_ctx *ctx, const tulle_csr *pattern, size_t value, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix *M = NULL;
    tl_dmem values;
    TRY(tl_gpu_move(b, ctx->gpu, pattern, TULLE_DEVICE, &M));
    TRY(tl_dmem_alloc(b, ctx->gpu, (uint64_t)pattern->nnz * value, "values of C", &values));
    M->view.values = (void *)(uintptr_t)values.handle;
    *out = M;
    M = NULL;
done:
    tl_matrix_free(b, M);
    return status;
}

/* OpenCL's memory objects are handles, those of CUDA are addresses. */
static bool handles(const tulle_ctx *ctx)
{
    return tl_gpu_native(ctx->gpu, TL_NATIVE_DEVICE) != NULL;
}

static bool elsewhere(const tulle_ctx *ctx, const void *array)
{
    return tl_gpu_elsewhere(ctx->gpu, array);
}

static uint64_t memory(const tulle_ctx *ctx)
{
    return tl_gpu_caps(ctx->gpu)->memory_free;
}

static tulle_status threads(tulle_ctx *ctx)
{
    (void)ctx;
    return TULLE_OK;
}

static void close(tulle_ctx *ctx)
{
    tl_gpu_release(ctx->gpu);           /* reference-counted: matrices on the device refer to it, too */
    ctx->gpu = NULL;
}

const tl_engine tl_engine_gpu = {
    .where = TL_ON_GPU, .on_host = false,
    .prepare = prepare, .stay = stay, .run = run, .part = part, .done = done,
    .host_bytes = tl_cpu_host_bytes, .figures = figures,
    .room = room, .too_large = too_large, .refuse = refuse,
    .plan_make = plan_make, .plan_run = plan_run, .plan_free = plan_free,
    .spmm_make = spmm_make, .spmm_run = spmm_run, .spmm_scale = spmm_scale,
    .spmm_values = spmm_values, .spmm_free = spmm_free,
    .here = here, .compiling = compiling, .trim = trim, .warm = warm, .merge = merge,
    .schedule = schedule,
    .move = move, .dense_move = dense_move, .blank = blank, .handles = handles,
    .elsewhere = elsewhere, .memory = memory, .threads = threads, .close = close,
};
