/* SPDX-License-Identifier: MIT
 *
 * spmm.c - SpMM: checks of options and views, and the plan that an engine runs.
 *
 * A plan holds A in the form the engine needs (the caller's pattern with a copy of the values, a transposed
 * copy, or data on the device) and the division of its rows.  A single product is a plan that is run once,
 * with the caller's own values; arguments are checked before A is read.
 *
 * Memory: a plan has the values of A, or the whole transposed A; twice that while a transposed A gets new
 * values. */
#include "ctx.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- policies */

static const struct { const char *name, *text; int where; } policies[] = {
    {"auto", "rows in CSR, several columns at once, long rows in parts", TL_ON_BOTH},
    {"ellr", "FastSpMM (Ortega et al. 2014): ELLPACK-R, T threads a row, Lc columns at once", TL_ON_GPU},
};

enum { POLICIES = sizeof policies / sizeof *policies };

const char *tulle_spmm_policy_name(int i)
{
    return i >= 0 && i < POLICIES ? policies[i].name : NULL;
}

const char *tulle_spmm_policy_text(int i)
{
    return i >= 0 && i < POLICIES ? policies[i].text : NULL;
}

static tulle_status find_policy(tulle_ctx *ctx, const char *name, int *found)
{
    char list[64];
    *found = name ? tl_name_find(tulle_spmm_policy_name, name) : 0;
    if (*found < 0)
        return tl_fail(&ctx->base, TULLE_EINVAL, "sparse times dense has no policy \"%s\"; it has %s", name,
                       tl_name_list(tulle_spmm_policy_name, list, sizeof list));
    if (policies[*found].where & ctx->engine->where) return TULLE_OK;
    return tl_fail(&ctx->base, TULLE_EINVAL,
                   "the policy \"%s\" needs a GPU, and this context computes on the CPU", name);
}

/* ---- arguments */

tulle_spmm_lab tl_spmm_lab_of(const tulle_spmm_options *o)
{
    static const tulle_spmm_lab none;
    return o->lab ? *o->lab : none;
}

static tulle_status check_options(tulle_ctx *ctx, const tulle_spmm_options *options, tulle_spmm_options *out)
{
    static const tulle_spmm_options defaults;
    tl_base *b = &ctx->base;
    *out = options ? *options : defaults;
    const tulle_spmm_lab lab = tl_spmm_lab_of(out);
    const struct { const char *name; int value, most; } fields[] = {
        {"op_a", out->op_a, TULLE_ADJOINT},
        {"threads", out->threads, 1 << 16},
        {"trust_inputs", out->trust_inputs, 1},
        {"allow_tf32", out->allow_tf32, 1},
        {"time_stages", out->time_stages, 1},
        {"ellr_threads", lab.ellr_threads, 32},
        {"ellr_columns", lab.ellr_columns, 32},
        {"ellr_block", lab.ellr_block, 256},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value < 0 || fields[i].value > fields[i].most)
            return tl_fail(b, TULLE_EINVAL, "options: %s is %d, it may be 0 to %d", fields[i].name,
                           fields[i].value, fields[i].most);
    tulle_status status = TL_RESERVED_CHECK(b, "options", out);
    return status == TULLE_OK ? TL_RESERVED_CHECK(b, "lab", &lab) : status;
}

/* A CUDA kernel that reads a misaligned address makes the device unusable for the whole process.  Columns and
 * values of A need no check: they are copied if they are not aligned. */
static tulle_status check_aligned(tulle_ctx *ctx, tulle_place place, const void *array, size_t size,
                                  const char *name)
{
    const tl_engine *e = ctx->engine;
    if (place != TULLE_DEVICE || e->on_host || e->handles(ctx) || (uintptr_t)array % size == 0)
        return TULLE_OK;
    return tl_fail(&ctx->base, TULLE_EINVAL,
                   "%s begins at %#" PRIxPTR " on the device, not at a multiple of %zu bytes", name,
                   (uintptr_t)array, size);
}

static tulle_status check_matrix(tulle_ctx *ctx, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    TRY(tl_view_check(ctx, A, "A"));
    TRY(check_aligned(ctx, A->place, A->row_ptr, tl_index_size(A->ptr_type), "row_ptr of A"));
    if (!tl_type_known((int)A->val_type))
        status = tl_fail(&ctx->base, TULLE_ETYPE, "A: val_type is %d, not TULLE_F32, F64, CF32 or CF64",
                         (int)A->val_type);
done:
    return status;
}

/* The addresses of the first value of a view and of its end. */
typedef struct range { uintptr_t begin, end; } range;

/* An OpenCL handle counts as a single address: two views overlap if they have the same buffer. */
static range range_of(const tulle_ctx *ctx, tulle_place place, const void *array, uint64_t bytes)
{
    bool handle = place == TULLE_DEVICE && ctx->engine->handles(ctx);
    return (range){(uintptr_t)array, (uintptr_t)array + (handle && bytes ? 1 : bytes)};
}

static bool meet(range a, range b)      /* an empty range overlaps none */
{
    return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
}

/* Whether X and Y are different columns of one row-major array (or rows of a column-major one): their address
 * ranges overlap, but they share no values. */
static bool interleaved(const tulle_dense *X, const tulle_dense *Y)
{
    size_t size = tl_type_size(X->val_type);
    if (X->order != Y->order || X->ld != Y->ld) return false;
    const tulle_dense *low = (uintptr_t)X->values < (uintptr_t)Y->values ? X : Y, *high = low == X ? Y : X;
    uint64_t apart = (uintptr_t)high->values - (uintptr_t)low->values;
    if (apart % size != 0) return false;
    uint64_t offset = apart / size % (uint64_t)X->ld;
    bool by_cols = X->order == TULLE_BY_COLS;
    uint64_t low_line = (uint64_t)(by_cols ? low->rows : low->cols);
    uint64_t high_line = (uint64_t)(by_cols ? high->rows : high->cols);
    return offset >= low_line && offset + high_line <= (uint64_t)X->ld;
}

static tulle_status check_overlap(tulle_ctx *ctx, const tulle_csr *A, int64_t first, const tulle_dense *X,
                                  const tulle_dense *Y)
{
    tl_base *b = &ctx->base;
    range y = range_of(ctx, Y->place, Y->values, tl_dense_bytes(Y)),
          x = range_of(ctx, X->place, X->values, tl_dense_bytes(X));
    if (X->place == Y->place && meet(x, y) && !interleaved(X, Y))
        return tl_fail(b, TULLE_EINVAL, "X and Y overlap: X takes the bytes %#" PRIxPTR " to %#" PRIxPTR
                       ", Y those from %#" PRIxPTR " to %#" PRIxPTR, x.begin, x.end, y.begin, y.end);
    const struct { const char *name; const void *array; uint64_t bytes; } arrays[] = {
        {"row_ptr", A->row_ptr, (uint64_t)(A->rows + 1) * tl_index_size(A->ptr_type)},
        {"col_idx", tl_array_from(A->col_idx, tl_index_size(A->idx_type), first),
         (uint64_t)A->nnz * tl_index_size(A->idx_type)},
        {"values", tl_array_from(A->values, tl_value_size(A), first), (uint64_t)A->nnz * tl_value_size(A)},
    };
    for (int i = 0; i < 3 && A->place == Y->place; i++)
        if (meet(range_of(ctx, A->place, arrays[i].array, arrays[i].bytes), y))
            return tl_fail(b, TULLE_EINVAL, "Y overlaps the %s of A", arrays[i].name);
    return TULLE_OK;
}

static tulle_status check_shapes(tl_base *b, const tulle_csr *A, int op, const tulle_dense *X,
                                 const tulle_dense *Y)
{
    static const char *const names[] = {"A", "A^T", "A^H"};
    const bool turned = op != TULLE_KEEP;
    const int64_t rows = turned ? A->cols : A->rows, cols = turned ? A->rows : A->cols;
    const bool wrong_x = X->rows != cols, wrong_y = Y->rows != rows || Y->cols != X->cols;
    char x[64] = "", y[96] = "";
    if (!wrong_x && !wrong_y) return TULLE_OK;
    if (wrong_x) snprintf(x, sizeof x, "X should have %" PRId64 " rows", cols);
    if (wrong_y) snprintf(y, sizeof y, "Y should be %" PRId64 " x %" PRId64, rows, X->cols);
    return tl_fail(b, TULLE_ESHAPE, "%s is %" PRId64 " x %" PRId64 ", X is %" PRId64 " x %" PRId64
                   ", Y is %" PRId64 " x %" PRId64 ": %s%s%s", names[op], rows, cols, X->rows, X->cols,
                   Y->rows, Y->cols, x, wrong_x && wrong_y ? " and " : "", y);
}

/* The checks that read no arrays.  first: A's first entry within its arrays.  Sets an ld of 0 in X and Y to
 * the actual one. */
static tulle_status check_product(tulle_ctx *ctx, const tulle_csr *A, int64_t first, int op, tulle_dense *X,
                                  tulle_dense *Y, bool reads)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    TRY(tl_dense_view_check(ctx, X, "X", reads));
    TRY(tl_dense_view_check(ctx, Y, "Y", true));
    if (A->val_type != X->val_type || A->val_type != Y->val_type) {
        status = tl_fail(b, TULLE_ETYPE,
                         "A has values of type %s, X of type %s, Y of type %s; they must be the same",
                         tl_type_name(A->val_type), tl_type_name(X->val_type), tl_type_name(Y->val_type));
        goto done;
    }
    TRY(check_shapes(b, A, op, X, Y));
    size_t real = tl_type_size(A->val_type) / (A->val_type >= TULLE_CF32 ? 2 : 1);
    if (reads) TRY(check_aligned(ctx, X->place, X->values, real, "X"));
    TRY(check_aligned(ctx, Y->place, Y->values, real, "Y"));
    if (reads) TRY(tl_array_check(ctx, X->place, X->rows && X->cols ? X->values : NULL, "X", "values"));
    TRY(tl_array_check(ctx, Y->place, Y->rows && Y->cols ? Y->values : NULL, "Y", "values"));
    TRY(check_overlap(ctx, A, first, X, Y));
done:
    return status;
}

static tl_c64 scalar(const void *given, tulle_type type, double otherwise)
{
    return given ? tl_value_load(type, given, 0) : (tl_c64){otherwise, 0};
}

static bool is_zero(tl_c64 v)
{
    return v.re == 0 && v.im == 0;
}

static tulle_status check_values(tulle_ctx *ctx, const tulle_csr *A)
{
    return A->values || A->nnz == 0 ? tl_arrays_check(ctx, A, "A")
                                    : tl_fail(&ctx->base, TULLE_EINVAL, "A has no values");
}

/* ---- values of a plan
 *
 * A plan copies them on every device, for every operation and policy: if some plans read the caller's array,
 * a change of that array would affect some plans and not others. */

typedef struct copying {
    const char *from;
    char       *to;
    int64_t     bytes;
} copying;

static void copy_work(void *arg, int thread, int threads)
{
    const copying *c = arg;
    int64_t begin = tl_part(c->bytes, thread, threads), end = tl_part(c->bytes, thread + 1, threads);
    memcpy(c->to + begin, c->from + begin, (size_t)(end - begin));
}

static void copy_values(tulle_spmm_plan *p, const void *from)
{
    copying c = {from, p->values, p->given.nnz * (int64_t)tl_type_size(p->given.val_type)};
    if (c.bytes > 0)
        tl_team_run(p->ctx->base.team, tl_threads_for(&p->ctx->base, p->options.threads, c.bytes / 8),
                    copy_work, &c);
}

tulle_status tl_spmm_keep_values(tulle_spmm_plan *p, const void *from)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    const size_t size = tl_type_size(p->given.val_type);
    const uint64_t bytes = p->copied + (uint64_t)p->given.nnz * size;
    const uint64_t limit = p->engine->on_host ? p->options.memory_limit : 0;
    if (limit && bytes > limit) {
        status = tl_fail(b, TULLE_ELIMIT,
                         "the plan's copy of A's values needs %" PRIu64 " bytes, the limit is %" PRIu64,
                         bytes, limit);
        goto done;
    }
    TRY(tl_alloc(b, &p->values, p->given.nnz, size, "values of A"));
    copy_values(p, from);
    p->A.values = p->values;
    p->copied = bytes;
done:
    return status;
}

/* ---- plans */

/* Replaces a slice by a view with row_ptr[0] = 0. */
static tulle_status resolve_slice(tulle_spmm_plan *p, const tulle_csr *given, tulle_csr *view)
{
    tl_base *b = &p->ctx->base;
    const uint64_t bytes = p->engine->on_host ? tl_csr_slice_bytes(given) : 0,
                   limit = p->options.memory_limit;
    if (limit && bytes > limit)
        return tl_fail(b, TULLE_ELIMIT,
                       "the row pointers of a slice need %" PRIu64 " bytes, the limit is %" PRIu64, bytes,
                       limit);
    p->copied += bytes;
    return tl_csr_slice(b, given, "A", p->options.threads, view, &p->slice);
}

/* Lets the engine prepare A, for products with at most `cols` columns. */
static tulle_status prepare(tulle_spmm_plan *p, const tulle_csr *given, int64_t cols)
{
    tulle_status status = TULLE_OK;
    tulle_csr view;
    TRY(resolve_slice(p, given, &view));
    p->given = *given;
    p->first = tl_csr_first(given);
    p->A = view;
    TRY(p->engine->spmm_make(p, &view, cols));
done:
    return status;
}

static void name_stages(tulle_stats *t)
{
    tl_stages_name(t, (t->sec_compile > 0 ? TL_STAGE_COMPILE : 0) | TL_STAGE_CHECK | TL_STAGE_ANALYZE
                          | TL_STAGE_NUMERIC);
}

/* One product; the arguments were checked.  A device's own times, if it has any, are used instead of the
 * clock. */
static tulle_status multiply(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                             tulle_dense *Y)
{
    tulle_status status = TULLE_OK;
    const tl_engine *e = p->engine;
    tulle_stats *t = &p->stats;
    double start = tl_now() - tl_ctx_compiling(p->ctx);
    t->threads = tl_spmm_threads(&p->ctx->base, p->options.threads, &p->A, Y->cols);
    TRY(is_zero(alpha) ? e->spmm_scale(p, beta, Y) : e->spmm_run(p, alpha, X, beta, Y));
    if (t->sec_numeric == 0) t->sec_numeric = tl_now() - tl_ctx_compiling(p->ctx) - start;
    t->b_nnz = X->rows * X->cols;
    t->c_nnz = Y->rows * Y->cols;
    t->products = is_zero(alpha) ? 0 : t->a_nnz * Y->cols;
done:
    return status;
}

static void begin(tulle_ctx *ctx, tulle_spmm_plan *p, const tulle_csr *A, const tulle_spmm_options *o,
                  int policy)
{
    tl_base *b = &ctx->base;
    *p = (tulle_spmm_plan){
        .ctx = ctx, .engine = ctx->engine, .options = *o, .held = atomic_load(&b->held),
        .compiling = tl_ctx_compiling(ctx)};
    p->stats = (tulle_stats){.a_nnz = A->nnz, .policy = policies[policy].name, .device = ctx->device,
                             .isa = tl_cpu_isa()};
    atomic_store(&b->peak, p->held);
}

static void end(tulle_spmm_plan *p, double seconds)
{
    tulle_stats *t = &p->stats;
    t->sec_total = seconds;
    t->sec_compile = tl_ctx_compiling(p->ctx) - p->compiling;
    if (p->engine->on_host)
        t->workspace_bytes = atomic_load(&p->ctx->base.peak) - p->held; /* otherwise set by the device */
    t->peak_bytes = t->workspace_bytes;
    t->stages = 0;
    if (p->options.time_stages) name_stages(t);
    p->ctx->stats = *t;
    p->ctx->base.error[0] = 0;          /* as tl_setup_stats() */
}

static void clear(tl_base *b, tulle_spmm_plan *p)
{
    if (p->engine) p->engine->spmm_free(p);
    tl_matrix_free(b, p->own);
    tl_matrix_free(b, p->slice);
    tl_free(b, p->values);
}

/* A whole single product; *begun: Y may have been written. */
static tulle_status compute(tulle_spmm_plan *p, tl_c64 alpha, const tulle_csr *A, const tulle_dense *X,
                            tl_c64 beta, tulle_dense *Y, bool *begun)
{
    tulle_status status = TULLE_OK;
    *begun = false;
    p->fresh = is_zero(beta);
    if (!is_zero(alpha)) TRY(prepare(p, A, Y->cols));
    *begun = true;
    TRY(multiply(p, alpha, X, beta, Y));
done:
    return status;
}

tulle_status tl_spmm(tulle_ctx *ctx, const void *given_alpha, const tulle_csr *A, const tulle_dense *X,
                     const void *given_beta, tulle_dense *Y, const tulle_spmm_options *options)
{
    tulle_status status = TULLE_OK;
    tulle_spmm_plan p = {0};
    tulle_spmm_options o;
    tulle_dense x = *X, y = *Y;
    int policy = 0;
    bool begun;
    double start = tl_now();
    TRY(check_options(ctx, options, &o));
    TRY(find_policy(ctx, o.policy, &policy));
    TRY(check_matrix(ctx, A));
    tl_c64 alpha = scalar(given_alpha, A->val_type, 1), beta = scalar(given_beta, A->val_type, 0);
    /* with alpha 0 no array of A is read; an invalid first entry is refused later */
    int64_t first = is_zero(alpha) ? 0 : tl_csr_first(A);
    TRY(check_product(ctx, A, first < 0 ? 0 : first, o.op_a, &x, &y, !is_zero(alpha)));
    if (!is_zero(alpha)) TRY(check_values(ctx, A));
    begin(ctx, &p, A, &o, policy);
    tl_choose_spmm(ctx, A, &x, &y, policies[policy].where == TL_ON_GPU, 0, &p);
    status = compute(&p, alpha, A, &x, beta, &y, &begun);
    /* TULLE_ELIMIT is returned before Y is written, so the other engine can still be tried */
    int use = begun && status != TULLE_ELIMIT ? 0 : tl_choose_other(ctx, &p.chosen, status);
    if (use) {
        clear(&ctx->base, &p);
        begin(ctx, &p, A, &o, policy);
        tl_choose_spmm(ctx, A, &x, &y, false, use, &p);
        status = compute(&p, alpha, A, &x, beta, &y, &begun);
    }
    TRY(status);
    end(&p, tl_now() - start);
done:
    clear(&ctx->base, &p);
    return status;
}

tulle_status tl_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_spmm_options *options,
                                 tulle_spmm_plan **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_spmm_plan *p = NULL;
    tulle_spmm_options o;
    int policy = 0;
    double start = tl_now();
    TRY(check_options(ctx, options, &o));
    TRY(find_policy(ctx, o.policy, &policy));
    TRY(check_matrix(ctx, A));
    TRY(check_values(ctx, A));
    TRY(tl_calloc(b, &p, 1, sizeof *p, "a plan"));
    begin(ctx, p, A, &o, policy);
    p->keeps = true;
    TRY(prepare(p, A, INT64_MAX));
    p->given.values = NULL;             /* the caller's array must not be read after this */
    p->options.lab = NULL;
    end(p, tl_now() - start);
    *out = p;
    p = NULL;
done:
    tl_spmm_plan_free(p);
    return status;
}

tulle_status tl_spmm_plan_set_values(tulle_spmm_plan *p, const void *a_values)
{
    tulle_status status = TULLE_OK;
    tulle_ctx *ctx = p->ctx;
    tl_base *b = &ctx->base;
    tulle_csr A = p->given;
    tulle_matrix *turned = NULL;
    A.values = a_values;
    TRY(check_values(ctx, &A));
    if (p->values) {
        copy_values(p, tl_array_from(a_values, tl_value_size(&A), p->first));
        goto done;
    }
    if (p->options.op_a != TULLE_KEEP) {
        TRY(tl_view_transpose(ctx, &A, (tulle_op)p->options.op_a, &turned));
        A = turned->view;
    } else if (p->slice) {
        A = p->slice->view;
        A.values = tl_array_from(a_values, tl_type_size(A.val_type), p->first);
    }
    TRY(p->engine->spmm_values(p, &A));
    if (p->own) {
        tulle_matrix *old = p->own;
        p->own = turned;
        p->A = turned->view;
        turned = old;
    }
done:
    tl_matrix_free(b, turned);
    return status;
}

tulle_status tl_spmm_plan_run(tulle_spmm_plan *p, const void *alpha, const tulle_dense *X, const void *beta,
                              tulle_dense *Y)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    tulle_dense x = *X, y = *Y;
    tl_c64 a = scalar(alpha, p->A.val_type, 1), c = scalar(beta, p->A.val_type, 0);
    double start = tl_now();
    TRY(check_product(p->ctx, &p->given, p->first, p->options.op_a, &x, &y, !is_zero(a)));
    p->held = atomic_load(&b->held);
    atomic_store(&b->peak, p->held);
    p->compiling = tl_ctx_compiling(p->ctx);
    p->stats.sec_check = p->stats.sec_analyze = p->stats.sec_numeric = 0;
    TRY(multiply(p, a, &x, c, &y));
    end(p, tl_now() - start);
done:
    return status;
}

void tl_spmm_plan_free(tulle_spmm_plan *p)
{
    if (!p) return;
    tl_base *b = &p->ctx->base;
    clear(b, p);
    tl_free(b, p);
}
