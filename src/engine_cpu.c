/* SPDX-License-Identifier: MIT
 *
 * engine_cpu.c - the engine table (engines.h) of the CPU; the computation is in src/cpu.
 *
 * Operands are read in place, without copies.  The row profile and the request built from it are used with
 * the other engines, too, where blocks or an estimate need bounds for the size of rows of C. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

/* ---- profile and request */

static void tell(tl_base *b, const tl_setup *s)
{
    const tl_profile *p = &s->profile;
    tl_trace(b, "profile: %" PRId64 " products, at most %" PRId64 " a row; C has %" PRId64 " to %" PRId64
             " entries", p->total, p->max_products, p->lower, p->upper);
    if (p->a_like || p->b_like)
        tl_trace(b, "rows like the row before: A %" PRId64 " equal, %" PRId64 " shifted by one; B %" PRId64
                 " equal, %" PRId64 " shifted", p->a_twins, p->a_shifted, p->b_twins, p->b_shifted);
    tl_trace(b, "policy %s, %d thread%s, %s kernels", s->recipe.policy->name, s->request.threads,
             s->request.threads == 1 ? "" : "s", tl_cpu_isa());
}

/* Checks that the profile fits in the memory limit. */
static tulle_status check_profile(tulle_ctx *ctx, const tl_setup *s)
{
    tl_base *b = &ctx->base;
    const tl_operands *x = &s->operands;
    uint64_t rows = (uint64_t)x->A.rows, bytes = tl_bytes_of(rows, 9) + (uint64_t)x->B.rows;
    bytes = tl_bytes_sum(bytes, atomic_load(&b->held) - s->held);
    uint64_t limit = tl_host_limit(s->engine, &s->options, bytes);
    if (bytes <= limit || bytes <= TL_LOOK_BYTES) return TULLE_OK;
    return tl_fail(b, TULLE_ELIMIT, "the row analysis alone needs %" PRIu64 " bytes (%" PRIu64 " rows, "
                   "copies of the operands included), the limit is %" PRIu64, bytes, rows, limit);
}

tulle_status tl_look_make(tulle_ctx *ctx, tl_setup *s, bool values)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    const tulle_options *o = &s->options;
    const tl_operands *x = &s->operands;
    if (!s->shared) {
        TRY(check_profile(ctx, s));
        TRY(tl_profile_make(b, &x->A, &x->B, s->recipe.alike, tl_cpu_few(x->A.val_type), o->threads,
                            &s->profile));
    }
    if (s->recipe.forced == TL_STENCIL) s->profile.repeats = true;
    s->request = (tl_request){.A = &x->A, .B = &x->B, .recipe = &s->recipe, .profile = &s->profile,
                              .threads = tl_cpu_threads(b, o->threads, s->profile.total),
                              .held = s->held, .ptr_type = o->c_ptr_type, .idx_type = o->c_idx_type,
                              .drop_zeros = o->drop_zeros, .values = values, .row0 = 0, .row1 = x->A.rows};
    uint64_t most = tl_bytes_sum(tl_cpu_workspace(&s->request),
                                 tl_cpu_c_bytes(&s->request, s->profile.upper, TULLE_I64));
    s->request.memory_limit = tl_limit_for(o, most);
    /* the free memory of the machine comes in addition to what the context already holds */
    if (!o->memory_limit)
        s->request.memory_limit = tl_bytes_sum(s->request.memory_limit, atomic_load(&b->held) - s->held);
    s->stats.products = s->profile.total;
    tell(b, s);
done:
    return status;
}

uint64_t tl_row_bytes(const tl_setup *s, int64_t row)
{
    tl_request one = s->request;
    one.row0 = row;
    one.row1 = row + 1;
    return tl_cpu_c_bytes(&one, tl_cpu_upper(&one), TULLE_I64);
}

/* ---- a product */

static tulle_status prepare(tulle_ctx *ctx, tl_setup *s, int want)
{
    return tl_look_make(ctx, s, want & TL_VALUES);
}

static tulle_status run(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C)
{
    s->request.row0 = row0;
    s->request.row1 = row1 < 0 ? s->request.A->rows : row1;
    return tl_cpu_multiply(&ctx->base, &s->request, C, &s->stats);
}

static void done(tulle_ctx *ctx, tl_setup *s)
{
    (void)ctx;
    (void)s;
}

uint64_t tl_cpu_host_bytes(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                           uint64_t base, int64_t nnz, bool exact)
{
    tl_request r = s->request;
    (void)exact;
    r.values = true;
    int threads = tl_cpu_threads(&ctx->base, r.threads, r.profile->total);
    return tl_cpu_need(&ctx->base, &r, pieces, base, threads, true, nnz, TULLE_I64);
}

static void figures(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    tulle_stats *stats = &s->stats;
    stats->peak_bytes = atomic_load(&ctx->base.peak) - s->held;
    stats->workspace_bytes = stats->peak_bytes > c_bytes ? stats->peak_bytes - c_bytes : 0;
    if (s->options.time_stages)
        tl_stages_name(stats, TL_STAGE_CHECK | TL_STAGE_ANALYZE | TL_STAGE_SYMBOLIC | TL_STAGE_NUMERIC
                              | TL_STAGE_FINISH);
}

/* ---- blocks of rows */

/* Memory for C besides the workspace of all threads, or if that is little, of one lean thread. */
static uint64_t room(const tulle_ctx *ctx, const tl_setup *s)
{
    const tl_request *r = &s->request;
    const tl_profile *p = r->profile;
    tl_pieces usual = {.count = 16, .max_rows = 2048, .max_entries = 16 << 10}, lean = usual;
    if (p->max_products > usual.max_entries) usual.max_entries = p->max_products;
    if (usual.max_entries > p->upper) usual.max_entries = p->upper;
    lean.lean = true;
    uint64_t base = tl_cpu_base(&ctx->base, r), limit = r->memory_limit;
    uint64_t all = tl_cpu_need(&ctx->base, r, &usual, base, r->threads, true, 0, TULLE_I64);
    uint64_t least = tl_cpu_need(&ctx->base, r, &lean, base, 1, false, 0, TULLE_I64);
    return limit / 2 > all ? limit - all : limit > least ? limit - least : 0;
}

static bool too_large(tulle_status status)
{
    return status == TULLE_ELIMIT;
}

/* An upper bound of the memory that a block of one row needs. */
static uint64_t row_need(const tl_base *b, const tl_setup *s, const tl_request *r, int64_t row)
{
    enum { ROOM = 64, PIECE = 1 << 14 };        /* the list of pieces is allocated with spare elements */
    uint64_t count = 2 * ((uint64_t)r->profile->products[row] / PIECE + ROOM);
    uint64_t pieces = count * (sizeof(tl_piece) + 3 * sizeof(int64_t));
    const tl_pieces lean = {.count = 1, .max_rows = 1, .lean = true};
    uint64_t base = tl_bytes_sum(tl_cpu_base(b, r), pieces + sizeof(tulle_matrix));
    return tl_bytes_sum(tl_cpu_need(b, r, &lean, base, 1, false, 0, TULLE_I64), tl_row_bytes(s, row));
}

/* The limit is too small for row row0: the message gives a limit that is sufficient for it and all later
 * rows. */
static tulle_status refuse(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status)
{
    tl_base *b = &ctx->base;
    tl_request r = s->request;
    uint64_t most = 0, bytes = 0;
    int64_t worst = r.row0 = row0;
    if (r.A->rows == 0) {
        TRY(tl_cpu_least(b, &r, &most));
        status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes although C has no rows, the "
                         "limit is %" PRIu64, most, r.memory_limit);
        goto done;
    }
    for (r.row1 = r.row0 + 1; r.row0 < r.A->rows; r.row0++, r.row1++) {
        if (row_need(b, s, &r, r.row0) <= most) continue;
        TRY(tl_cpu_least(b, &r, &bytes));
        if (bytes > most) most = bytes, worst = r.row0;
    }
    status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes even in blocks of one row (row %"
                     PRId64 " takes most), the limit is %" PRIu64, most, worst, r.memory_limit);
done:
    return status;
}

/* ---- plans */

static tulle_status plan_make(tulle_plan *p)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    tl_setup *s = &p->setup;
    const tl_operands *x = &s->operands;
    tl_replay *replay = NULL;
    uint64_t size = tl_type_size(x->A.val_type);
    if (x->perm_a) s->request.later += (uint64_t)x->A.nnz * size;
    if (x->perm_b) s->request.later += (uint64_t)x->B.nnz * size;
    s->request.later += tl_replay_bytes();
    if (p->whole) {
        s->request.row0 = p->row0;
        s->request.row1 = p->row1;
    } else TRY(tl_cpu_multiply(b, &s->request, &p->C, &s->stats));
    s->request.later -= tl_replay_bytes();
    TRY(tl_replay_make(b, &s->request, p->whole ? p->whole : &p->C->view, &replay));
    p->kept = replay;
done:
    return status;
}

static tulle_status plan_run(tulle_plan *p, const void *a_values, const void *b_values, void *c_values)
{
    return tl_replay_run(&p->ctx->base, p->kept, a_values, b_values, c_values);
}

static void plan_free(tulle_plan *p)
{
    tl_replay_free(&p->ctx->base, p->kept);
}

/* ---- SpMM */

/* Where beta is 0, rows are checked while they are multiplied: if one is invalid, the overwritten contents of
 * Y were not needed by the caller. */
static tulle_status spmm_check(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols)
{
    const tulle_spmm_options *o = &p->options;
    if (o->trust_inputs) return TULLE_OK;
    p->unchecked = p->fresh && o->op_a == TULLE_KEEP && A->cols > 0 && cols > 0;
    return p->unchecked ? tl_csr_check_ends(&p->ctx->base, A, "A")
                        : tl_csr_check(&p->ctx->base, A, "A", o->threads);
}

/* Checks A, transposes it if requested, and divides its rows, for products with at most `cols` columns. */
static tulle_status spmm_make(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    const tulle_spmm_options *o = &p->options;
    double start = tl_now();
    TRY(spmm_check(p, A, cols));
    p->stats.sec_check = tl_now() - start;
    start = tl_now();
    if (o->op_a != TULLE_KEEP) {
        uint64_t bytes = (uint64_t)A->nnz * (tl_index_size(A->idx_type) + tl_type_size(A->val_type))
                         + (uint64_t)(A->cols + 1) * 8 + p->copied;
        if (o->memory_limit && bytes > o->memory_limit) {
            status = tl_fail(b, TULLE_ELIMIT,
                             "the transposed copy of A needs %" PRIu64 " bytes, the limit is %" PRIu64, bytes,
                             o->memory_limit);
            goto done;
        }
        TRY(tl_csr_transpose(b, A, (tulle_op)o->op_a, &p->own, NULL));
        p->A = p->own->view;
        p->copied = bytes;
    } else if (p->keeps) TRY(tl_spmm_keep_values(p, A->values));
    TRY(tl_spmm_pieces_make(b, &p->A, tl_spmm_threads(b, o->threads, &p->A, 1 << 10), cols, &p->pieces));
    if (p->pieces.doubtful) TRY(tl_csr_refuse(b, &p->A, "A"));
    p->stats.sec_analyze = tl_now() - start;
    tl_trace(b, "sparse times dense: %" PRId64 " pieces, %" PRId64 " rows in parts, %s kernels%s",
             p->pieces.count, p->pieces.rows, tl_cpu_isa(), p->own ? ", A transposed" : "");
done:
    return status;
}

static tulle_status spmm_run(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y)
{
    tl_spmm_request q = {.A = &p->A, .unchecked = p->unchecked, .pieces = &p->pieces, .X = X, .Y = Y,
                         .alpha = alpha, .beta = beta, .threads = p->stats.threads,
                         .memory_limit = p->options.memory_limit, .copied = p->copied};
    return tl_spmm_run(&p->ctx->base, &q);
}

static tulle_status spmm_scale(tulle_spmm_plan *p, tl_c64 beta, tulle_dense *Y)
{
    tl_spmm_request q = {.A = &p->A, .Y = Y, .beta = beta, .threads = p->stats.threads};
    return tl_spmm_scale(&p->ctx->base, &q);
}

/* The plan's copy has them already. */
static tulle_status spmm_values(tulle_spmm_plan *p, const tulle_csr *A)
{
    (void)p;
    (void)A;
    return TULLE_OK;
}

static void spmm_free(tulle_spmm_plan *p)
{
    tl_spmm_pieces_done(&p->ctx->base, &p->pieces);
}

/* ---- device functions: trivial, as the CPU needs no driver */

static tulle_status here(tulle_ctx *ctx)
{
    (void)ctx;
    return TULLE_OK;
}

static double compiling(const tulle_ctx *ctx)
{
    (void)ctx;
    return 0;
}

static void nothing(tulle_ctx *ctx)
{
    (void)ctx;
}

static tulle_status warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type, tulle_kernels *got)
{
    (void)ctx;
    (void)val_type;
    (void)idx_type;
    (void)got;
    return TULLE_OK;
}

const tl_engine tl_engine_cpu = {
    .where = TL_ON_CPU, .on_host = true,
    .prepare = prepare, .stay = tl_host_stay, .run = run, .done = done,
    .host_bytes = tl_cpu_host_bytes, .figures = figures,
    .room = room, .too_large = too_large, .refuse = refuse,
    .plan_make = plan_make, .plan_run = plan_run, .plan_free = plan_free,
    .spmm_make = spmm_make, .spmm_run = spmm_run, .spmm_scale = spmm_scale,
    .spmm_values = spmm_values, .spmm_free = spmm_free,
    .here = here, .compiling = compiling, .trim = nothing, .warm = warm, .merge = tl_host_merge,
    .schedule = tl_host_schedule,
    .move = tl_host_move, .dense_move = tl_host_dense_move, .blank = tl_host_blank,
    .handles = tl_host_handles, .memory = tl_host_memory, .threads = here, .close = nothing,
};
