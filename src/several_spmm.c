/* SPDX-License-Identifier: MIT
 *
 * several_spmm.c - SpMM on several devices.
 *
 * A is checked and transposed once, for all.  Rows of Y are divided by the entries of A, one part per device,
 * in proportion to the speed of each in earlier products of the context (equal parts as long as one is
 * unknown).  There is only one part per device because the whole X is copied to it, and a second range would
 * copy it again.  Each device computes its rows like a whole product, with a slice of A and a slice of Y,
 * which do not overlap in either layout of Y.
 *
 * Memory: that of each part, with a copy of X for each GPU.  With a memory limit a single part computes
 * everything, on the CPU if there is one: a call must fail before Y is written, and one of several parts
 * could fail after others have written theirs. */
#include "several.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <string.h>

enum { LEAST_WORK = 1 << 16 };          /* entries of A plus rows, of a part */
static const double LEAST_SHARE = 0.02; /* relative to the fastest part */

typedef struct parts {
    int64_t          row[TL_PARTS_MAX + 1];
    tulle_spmm_plan *plan[TL_PARTS_MAX];        /* if the plan is run more than once */
    tulle_matrix    *own;               /* the transposed A; the plans refer to its pattern */
    bool             alone;             /* one part has all rows                     */
    int              one;               /* which                                     */
} parts;

typedef struct job {
    tl_several      *v;
    tulle_spmm_plan *p;
    parts           *k;
    tl_c64           alpha, beta;
    const tulle_dense *X;
    tulle_dense     *Y;
    const void      *values;
} job;

static int64_t work_before(const void *arg, int64_t row)
{
    const tulle_csr *A = arg;
    return tl_row_begin(A, row) + row;
}

static void use_one(parts *k, int count, int one)
{
    k->alone = true;
    k->one = one;
    for (int i = 1; i <= count; i++) k->row[i] = i > one ? k->row[count] : 0;
}

/* Shares in proportion to speed, but large enough to notice when a part has become faster.  false: equal
 * shares. */
static bool find_shares(const tl_several *v, double *share)
{
    double most = 0;
    for (int i = 0; i < v->count; i++) {
        if (v->spmm_rate[i] <= 0 || v->twins[i] == v->count) return false;
        if (v->spmm_rate[i] > most) most = v->spmm_rate[i];
    }
    for (int i = 0; i < v->count; i++)
        share[i] = v->spmm_rate[i] > LEAST_SHARE * most ? v->spmm_rate[i] : LEAST_SHARE * most;
    return true;
}

static void cut(const tl_several *v, const tulle_csr *A, parts *k)
{
    double share[TL_PARTS_MAX];
    tl_rows_split(work_before, A, A->rows, v->count, find_shares(v, share) ? share : NULL, LEAST_WORK,
                  tl_several_rows(), k->row);
    if (k->row[1] == A->rows) use_one(k, v->count, 0);
}

/* The options of one part: A was already checked and transposed. */
static tulle_spmm_options options_of(const job *j, int i)
{
    tulle_spmm_options o = j->p->options;
    const uint64_t limit = o.memory_limit, copied = j->p->copied;
    o.op_a = TULLE_KEEP;
    o.trust_inputs = 1;
    o.time_stages = 0;
    o.threads = tl_several_share(j->v, i, o.threads);
    if (limit) o.memory_limit = limit > copied ? limit - copied : 1;
    return o;
}

static void drop_plans(const job *j)
{
    for (int i = 0; i < j->v->count; i++) {
        tl_spmm_plan_free(j->k->plan[i]);
        j->k->plan[i] = NULL;
    }
}

/* Runs all parts that have rows, or the single one that has all. */
static tulle_status run(job *j, tl_part_fn fn)
{
    tulle_ctx *ctx = j->p->ctx;
    return j->k->alone ? tl_several_one(ctx, j->k->one, fn, j) : tl_several_run(ctx, fn, j, "numeric", NULL);
}

static tulle_status make_plan(void *arg, tulle_ctx *part, int i)
{
    job *j = arg;
    const int64_t *row = j->k->row;
    if (row[i] == row[i + 1]) return TULLE_OK;
    const tulle_csr A = tl_csr_rows(&j->p->A, row[i], row[i + 1]);
    const tulle_spmm_options o = options_of(j, i);
    tulle_status status = tl_spmm_plan_create(part, &A, &o, &j->k->plan[i]);
    if (status == TULLE_OK && !part->engine->on_host)
        j->v->device_bytes[i] = j->k->plan[i]->stats.workspace_bytes;
    return status;
}

static tulle_status make_plans(job *j)
{
    tulle_status status = run(j, make_plan);
    if (!tl_several_short(status) || j->k->alone) return status;
    drop_plans(j);
    use_one(j->k, j->v->count, tl_several_main(j->v));
    return run(j, make_plan);
}

static tulle_status turn(tulle_spmm_plan *p, const tulle_csr *A, parts *k)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    const tulle_spmm_options *o = &p->options;
    uint64_t result = 0, bytes = tl_bytes_sum(tl_csr_transpose_bytes(b, A, NULL, &result), p->copied);
    if (o->memory_limit && bytes > o->memory_limit)
        return tl_fail(b, TULLE_ELIMIT, "the transposed copy of A needs %" PRIu64 " bytes, the limit is %"
                       PRIu64, bytes, o->memory_limit);
    TRY(tl_csr_transpose(b, A, (tulle_op)o->op_a, &k->own, NULL));
    p->A = k->own->view;
    p->copied += result;
done:
    return status;
}

tulle_status tl_several_spmm_make(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    tl_several *v = p->ctx->several;
    parts *k = NULL;
    double start = tl_now();
    (void)cols;
    if (!p->options.trust_inputs) TRY(tl_csr_check(b, A, "A", p->options.threads));
    p->stats.sec_check = tl_now() - start;
    start = tl_now();
    TRY(tl_calloc(b, &k, 1, sizeof *k, "parts of several devices"));
    p->kept = k;
    if (p->options.op_a != TULLE_KEEP) TRY(turn(p, A, k));
    cut(v, &p->A, k);
    if (p->options.memory_limit) use_one(k, v->count, tl_several_main(v));
    job j = {.v = v, .p = p, .k = k};
    if (p->keeps) TRY(make_plans(&j));
    p->stats.sec_analyze = tl_now() - start;
    for (int i = 0; i < v->count; i++)
        tl_trace(b, "sparse times dense on %s: rows %" PRId64 " to %" PRId64, v->part[i]->device, k->row[i],
                 k->row[i + 1] - 1);
done:
    return status;
}

/* ---- products */

/* A view of some rows of a dense matrix, row-major or column-major. */
static tulle_dense rows_of(const tulle_dense *Y, int64_t row0, int64_t row1)
{
    tulle_dense rows = *Y;
    int64_t first = Y->order == TULLE_BY_ROWS ? row0 * Y->ld : row0;
    rows.rows = row1 - row0;
    rows.values = (char *)Y->values + (size_t)first * tl_type_size(Y->val_type);
    return rows;
}

/* Updates the speed of a part: the mean of the known one and that of this product, if it was divided and not
 * too small. */
static void note_speed(const job *j, int i, double seconds)
{
    const int64_t *row = j->k->row;
    double *rate = &j->v->spmm_rate[i];
    const tulle_csr *A = &j->p->A;
    double work = (double)(work_before(A, row[i + 1]) - work_before(A, row[i])) * (double)j->Y->cols;
    if (j->k->alone || seconds <= 0 || work < LEAST_WORK) return;
    *rate = *rate > 0 ? (*rate + work / seconds) / 2 : work / seconds;
}

static tulle_status multiply(void *arg, tulle_ctx *part, int i)
{
    tulle_status status = TULLE_OK;
    job *j = arg;
    const int64_t *row = j->k->row;
    const tulle_type type = j->p->A.val_type;
    tl_c64 alpha, beta;                 /* large enough for a value of any type */
    if (row[i] == row[i + 1] || j->Y->cols == 0) return TULLE_OK;
    tl_value_store(type, &alpha, 0, j->alpha);
    tl_value_store(type, &beta, 0, j->beta);
    tulle_dense Y = rows_of(j->Y, row[i], row[i + 1]);
    double start = tl_now() - tl_ctx_compiling(part);
    if (j->p->keeps) {
        TRY(tl_spmm_plan_run(j->k->plan[i], &alpha, j->X, &beta, &Y));
    } else {
        const tulle_csr A = tl_csr_rows(&j->p->A, row[i], row[i + 1]);
        const tulle_spmm_options o = options_of(j, i);
        TRY(tl_spmm(part, &alpha, &A, j->X, &beta, &Y, &o));
    }
    note_speed(j, i, tl_now() - tl_ctx_compiling(part) - start);
    if (!part->engine->on_host) j->v->device_bytes[i] = part->stats.workspace_bytes;
done:
    return status;
}

/* Combines the stats of the parts. */
static void gather_stats(const job *j)
{
    tulle_stats *t = &j->p->stats;
    t->threads = t->waits = 0;
    for (int i = 0; i < j->v->count; i++) {
        const tulle_stats *part = &j->v->part[i]->stats;
        if (j->k->row[i] == j->k->row[i + 1] || !part->policy) continue;
        t->threads += part->threads;
        t->waits += part->waits;
        t->policy = part->policy;
    }
}

tulle_status tl_several_spmm_run(tulle_spmm_plan *p, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                                 tulle_dense *Y)
{
    job j = {.v = p->ctx->several, .p = p, .k = p->kept, .alpha = alpha, .beta = beta, .X = X, .Y = Y};
    tulle_status status = run(&j, multiply);
    if (tl_several_short(status) && !j.k->alone && !p->keeps) {
        /* other parts may have written their rows; only with beta = 0 the old contents of Y are not needed */
        if (beta.re != 0 || beta.im != 0) return status;
        use_one(j.k, j.v->count, tl_several_main(j.v));
        status = run(&j, multiply);
    }
    if (status == TULLE_OK) gather_stats(&j);
    return status;
}

static tulle_status set_values(void *arg, tulle_ctx *part, int i)
{
    const job *j = arg;
    (void)part;
    return j->k->plan[i] ? tl_spmm_plan_set_values(j->k->plan[i], j->values) : TULLE_OK;
}

tulle_status tl_several_spmm_values(tulle_spmm_plan *p, const tulle_csr *A)
{
    job j = {.v = p->ctx->several, .p = p, .k = p->kept, .values = A->values};
    return run(&j, set_values);
}

void tl_several_spmm_free(tulle_spmm_plan *p)
{
    job j = {.v = p->ctx->several, .p = p, .k = p->kept};
    if (!j.k) return;
    drop_plans(&j);
    tl_matrix_free(&p->ctx->base, j.k->own);
    tl_free(&p->ctx->base, j.k);
    p->kept = NULL;
}
