/* SPDX-License-Identifier: MIT
 *
 * test_dist_plans.c - distributed plans: with transposed operands, and for products with dense matrices,
 * transposed or not.  Results have the same bits as with one process, runs communicate no more than
 * necessary, and each call of the transport and each memory allocation is made to fail. */
#define _POSIX_C_SOURCE 200809L
#include "dist_help.h"

static team ranks;

typedef struct job {
    ref                a, b, new_a, new_b;      /* whole; new_: the same patterns, other values */
    spread             A, B;
    int                op_a, op_b, mistake;
    tulle_dist_matrix *C[FAKE_RANKS];
    int64_t            columns, y_starts[FAKE_RANKS + 1];
    bool               planned;
    double            *x, *y;                   /* dense, whole, row-major */
    uint64_t           bytes, exact;            /* of the last run          */
} job;

static void job_clear(job *j)           /* keeps a, b and the new ones */
{
    for (int r = 0; r < FAKE_RANKS; r++) tulle_dist_matrix_free(j->C[r]);
    memset(j->C, 0, sizeof j->C);
    spread_free(&j->A);
    spread_free(&j->B);
}

static void job_free(job *j)
{
    job_clear(j);
    ref_free(&j->a);
    ref_free(&j->b);
    ref_free(&j->new_a);
    ref_free(&j->new_b);
}

static ref other_values(const ref *A, ref_types t, uint64_t seed)
{
    ref R = ref_copy(&A->view, t);
    ref_fill(&R, REF_REALS, seed);
    return R;
}

static ref turned(const tulle_csr *A, int op, ref_types t)
{
    return op == TULLE_KEEP ? ref_copy(A, t) : ref_transpose(A, (tulle_op)op);
}

/* ---- products of sparse matrices */

static void plan_twice(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    tulle_options o = {.op_a = j->op_a, .op_b = j->op_b};
    tulle_dist_plan *plan = NULL;
    tulle_dist_stats stats;
    m->status = tulle_dist_plan_create(m->dist, &A, &B, &o, &plan);
    if (m->status != TULLE_OK) return;
    tulle_csr c = tulle_dist_plan_pattern(plan).local;
    char *values = malloc((size_t)c.nnz * ref_value_size(A.local.val_type) + 1);
    ref a = some_rows(&j->new_a.view, A.row_starts[m->rank], A.row_starts[m->rank + 1]);
    ref b = some_rows(&j->new_b.view, B.row_starts[m->rank], B.row_starts[m->rank + 1]);
    m->status = tulle_dist_plan_run(plan, A.local.values, B.local.values, values);
    if (m->status == TULLE_OK) m->status = tulle_dist_plan_run(plan, a.values, b.values, values);
    tulle_dist_stats_get(m->dist, &stats);
    if (m->rank == 0) j->bytes = stats.bytes, j->exact = stats.bytes_exact;
    c.values = values;
    if (m->status == TULLE_OK) m->status = keep_rows(m, &c, &j->C[m->rank]);
    free(values);
    ref_free(&a);
    ref_free(&b);
    tulle_dist_plan_free(plan);
}

static void plans_take_transposed_operands(void)
{
    for (int i = 0; i < SMALL_PAIRS; i++)
        for (int size = 1; size <= FAKE_RANKS; size += 2) {
            ref_types t = ref_types_at((3 * i + size) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            job j = {.op_a = (i + size) % 3, .op_b = (i / 2 + size / 2) % 3};
            j.a = turned(&p.A.view, j.op_a, t);
            j.b = turned(&p.B.view, j.op_b, t);
            j.new_a = other_values(&j.a, t, 77);
            j.new_b = other_values(&j.b, t, 78);
            ref a = turned(&j.new_a.view, j.op_a, t), b = turned(&j.new_b.view, j.op_b, t);
            ref want = ref_product(&a.view, &b.view);
            spread_random(&j.A, &j.a.view, size, (uint64_t)(i + size));
            spread_random(&j.B, &j.b.view, size, (uint64_t)(i * size));
            team_run(&ranks, size, plan_twice, &j, &(team_options){.unkind = i % 2, .seed = (uint64_t)i,
                                                                   .slice = i % 3 ? 0 : 32});
            team_agrees(&ranks, p.name);
            REQUIRE(ranks.member[0].status == TULLE_OK, "%s: %s", p.name, ranks.member[0].why);
            ref C = put_together(j.C, size);
            CHECK(ref_same(&C.view, &want.view, p.name), "ops %d and %d on %d ranks", j.op_a, j.op_b, size);
            CHECK(j.bytes == j.exact, "%s: a run moved %llu bytes, %llu are needed", p.name,
                  (unsigned long long)j.bytes, (unsigned long long)j.exact);
            ref_free(&C);
            ref_free(&want);
            ref_free(&a);
            ref_free(&b);
            job_free(&j);
            pair_free(&p);
        }
}

/* ---- with dense matrices */

static const double alpha = 1.5, beta = 0.5;

/* One product, or a plan with three runs: with the values of A, with new values, and with those of A
 * again. */
static tulle_status products(member *m, const tulle_dist_csr *A, tulle_dense *X, const int64_t *x_starts,
                             tulle_dense *Y)
{
    job *j = m->job;
    tulle_spmm_options o = {.op_a = j->op_a};
    tulle_dist_spmm_plan *plan = NULL;
    ref a = some_rows(&j->new_a.view, A->row_starts[m->rank], A->row_starts[m->rank + 1]);
    tulle_status status;
    size_t bytes = (size_t)(Y->rows * Y->cols) * 8;
    double *before = malloc(bytes + 1), zero = 0;
    memcpy(before, Y->values, bytes);
    if (!j->planned) {
        tulle_dist_csr other = *A;
        other.local.values = a.values;
        status = tulle_dist_spmm(m->dist, &alpha, &other, X, x_starts, &beta, Y, &o);
    } else {
        status = tulle_dist_spmm_plan_create(m->dist, A, x_starts, j->op_a ? j->y_starts : NULL, &o, &plan);
        if (status == TULLE_OK) status = tulle_dist_spmm_plan_run(plan, &alpha, X, &zero, Y);
        if (status == TULLE_OK) status = tulle_dist_spmm_plan_set_values(plan, a.values);
        memcpy(Y->values, before, bytes);
        if (status == TULLE_OK) status = tulle_dist_spmm_plan_run(plan, &alpha, X, &beta, Y);
    }
    tulle_dist_spmm_plan_free(plan);
    ref_free(&a);
    free(before);
    return status;
}

static void dense(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    const int64_t *x_starts = j->B.starts, *y_starts = j->op_a ? j->y_starts : j->A.starts;
    int64_t x0 = x_starts[m->rank], y0 = y_starts[m->rank], k = j->columns;
    int64_t x_rows = x_starts[m->rank + 1] - x0, y_rows = y_starts[m->rank + 1] - y0;
    tulle_dense X = tulle_dense_make(x_rows, k, 0, TULLE_BY_ROWS, j->x + x0 * k, TULLE_F64);
    tulle_dense Y = tulle_dense_make(y_rows, k, 0, TULLE_BY_ROWS, j->y + y0 * k, TULLE_F64);
    tulle_dist_stats stats;
    m->status = products(m, &A, &X, x_starts, &Y);
    tulle_dist_stats_get(m->dist, &stats);
    if (m->rank == 0) j->bytes = stats.bytes, j->exact = stats.bytes_exact;
}

static void dense_job(job *j, int64_t rows, int64_t cols, int op, int64_t columns, ref_types t)
{
    *j = (job){.a = ref_random(5, rows, cols, 5, REF_REALS, t), .op_a = op, .columns = columns};
    j->new_a = other_values(&j->a, t, 79);
    j->x = calloc((size_t)(80 * columns) + 1, 8);
    j->y = calloc((size_t)(80 * columns) + 1, 8);
    for (int64_t i = 0; i < 80 * columns; i++) {
        j->x[i] = 1.0 / (double)(i + 3);
        j->y[i] = (double)(i % 7);
    }
}

static void dense_cut(job *j, int size, uint64_t seed)
{
    int64_t x_rows = j->op_a ? j->a.view.rows : j->a.view.cols;
    ref like = ref_new(x_rows, 1, 0, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    for (int64_t i = 0; i <= like.view.rows; i++) ref_set_ptr(&like, i, 0);
    spread_random(&j->A, &j->a.view, size, seed);
    spread_random(&j->B, &like.view, size, seed ? seed + 1 : 0);        /* the row blocks of X */
    tulle_dist_split(j->op_a ? j->a.view.cols : j->a.view.rows, size, j->y_starts);
    if (j->op_a && size > 2) j->y_starts[1] = j->y_starts[2];           /* one rank without rows */
    ref_free(&like);
}

static void dense_products_may_be_transposed_and_planned(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int size = 1; size <= FAKE_RANKS; size++)
        for (int i = 0; i < 6; i++) {
            job j;
            double want[80 * 4] = {0};
            dense_job(&j, 60, 70, i % 3, 1 + i % 4, t);
            j.planned = i >= 3 || i == 0;
            dense_cut(&j, size, (uint64_t)(3 * size + i));
            int64_t x_rows = j.op_a ? 60 : 70, y_rows = 130 - x_rows;
            memcpy(want, j.y, (size_t)(80 * j.columns) * 8);
            tulle_dense X = tulle_dense_make(x_rows, j.columns, 0, TULLE_BY_ROWS, j.x, TULLE_F64);
            tulle_dense Y = tulle_dense_make(y_rows, j.columns, 0, TULLE_BY_ROWS, want, TULLE_F64);
            tulle_spmm_options o = {.op_a = j.op_a};
            CHECK(tulle_spmm(ctx, &alpha, &j.new_a.view, &X, &beta, &Y, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            team_run(&ranks, size, dense, &j, &(team_options){.unkind = true, .seed = (uint64_t)i});
            team_agrees(&ranks, "dense");
            CHECK(ranks.member[0].status == TULLE_OK, "%s", ranks.member[0].why);
            CHECK(memcmp(j.y, want, (size_t)(80 * j.columns) * 8) == 0, "op %d on %d ranks, %s", j.op_a, size,
                  j.planned ? "planned" : "at once");
            CHECK(j.bytes == j.exact, "%llu bytes moved, %llu are needed", (unsigned long long)j.bytes,
                  (unsigned long long)j.exact);
            free(j.x);
            free(j.y);
            job_free(&j);
        }
    tulle_ctx_free(ctx);
}

/* ---- failures */

static void failing(member_fn fn, job *j, void (*cut)(job *, int, uint64_t), const char *what)
{
    int64_t calls = 1;
    for (int64_t n = -1; n < calls; n++) {
        team_options o = {.fail_rank = 3, .fail_call = n < 0 ? INT64_MAX : n, .slice = 128, .unkind = n % 2};
        cut(j, 3, 0);
        team_run(&ranks, 3, fn, j, &o);
        team_agrees(&ranks, what);
        if (n < 0) calls = ranks.calls;
        CHECK(ranks.member[0].status == (n < 0 ? TULLE_OK : TULLE_ECOMM), "%s, call %lld: %s", what,
              (long long)n, ranks.member[0].why);
        job_clear(j);
    }
    CHECK(calls > 10, "%s: %lld calls", what, (long long)calls);
    int64_t left = INT64_MAX, failures = 0;
    tulle_mem mem = {failing_alloc, failing_free, &left};
    tulle_ctx *kept = ranks.member[1].ctx;
    for (int64_t n = 1; n < 400; n++) {
        left = INT64_MAX;
        REQUIRE(tulle_ctx_create("cpu", &mem, &ranks.member[1].ctx) == TULLE_OK, "context");
        tulle_ctx_set_threads(ranks.member[1].ctx, 1);
        cut(j, 3, 0);
        left = n;
        team_run(&ranks, 3, fn, j, NULL);
        left = INT64_MAX;
        tulle_status status = ranks.member[0].status;
        team_agrees(&ranks, what);
        CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "%s", ranks.member[0].why);
        failures += status != TULLE_OK;
        job_clear(j);
        tulle_ctx_free(ranks.member[1].ctx);
        if (status == TULLE_OK) break;
    }
    ranks.member[1].ctx = kept;
    CHECK(failures > 10 && ranks.member[0].status == TULLE_OK, "%s: %lld requests failed", what,
          (long long)failures);
}

static void sparse_cut(job *j, int size, uint64_t seed)
{
    spread_random(&j->A, &j->a.view, size, seed);
    spread_random(&j->B, &j->b.view, size, seed);
}

static void calls_and_requests_may_fail(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    job j = {.a = ref_random(1, 20, 20, 4, REF_REALS, t), .b = ref_random(2, 20, 20, 3, REF_REALS, t),
             .op_a = TULLE_TRANSPOSE, .op_b = TULLE_ADJOINT};
    j.new_a = ref_copy(&j.a.view, t);
    j.new_b = ref_copy(&j.b.view, t);
    failing(plan_twice, &j, sparse_cut, "a plan");
    job_free(&j);
    dense_job(&j, 20, 24, TULLE_TRANSPOSE, 2, t);
    failing(dense, &j, dense_cut, "at once");
    j.planned = true;
    failing(dense, &j, dense_cut, "a dense plan");
    free(j.x);
    free(j.y);
    job_free(&j);
}

/* ---- errors of a single rank */

static void odd_one(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    int mistake = m->rank == m->size - 1 ? j->mistake : 0;
    int64_t other[FAKE_RANKS + 1];
    const int64_t *x_starts = j->B.starts, *y_starts = NULL;
    tulle_spmm_options o = {0};
    tulle_dist_spmm_plan *plan = NULL;
    memcpy(other, j->B.starts, sizeof other);
    other[1]++;
    if (mistake == 1) o.op_a = 5;
    if (mistake == 2) o.op_a = TULLE_TRANSPOSE;
    if (mistake == 3) x_starts = NULL;
    if (mistake == 4) x_starts = other;
    if (mistake == 5) y_starts = other;
    m->status = tulle_dist_spmm_plan_create(m->dist, &A, x_starts, y_starts, &o, &plan);
    if (plan) {                         /* an X of -1 rows is wrong on all ranks */
        tulle_dense X = {.rows = -1}, Y = {0};
        m->status = tulle_dist_spmm_plan_run(plan, NULL, mistake == 6 ? NULL : &X, NULL, &Y);
    }
    tulle_dist_spmm_plan_free(plan);
}

static void what_one_rank_alone_does_wrong_all_refuse(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int mistake = 1; mistake <= 7; mistake++) {
        job j;
        dense_job(&j, 20, 20, TULLE_KEEP, 2, t);
        dense_cut(&j, 3, 0);
        j.mistake = mistake;
        team_run(&ranks, 3, odd_one, &j, NULL);
        team_agrees(&ranks, "one is wrong");
        tulle_status status = ranks.member[0].status;
        CHECK(status < 0 && status > -100 && ranks.member[0].why[0], "mistake %d: %s", mistake,
              tulle_status_name(status));
        free(j.x);
        free(j.y);
        job_free(&j);
    }
    CHECK(tulle_dist_spmm_plan_run(NULL, NULL, NULL, NULL, NULL) == TULLE_EINVAL, "no plan");
    CHECK(tulle_dist_spmm_plan_set_values(NULL, NULL) == TULLE_EINVAL, "no plan");
    tulle_dist_spmm_plan_free(NULL);
    team_free(&ranks);
}

TEST_MAIN(TEST(plans_take_transposed_operands), TEST(dense_products_may_be_transposed_and_planned),
          TEST(calls_and_requests_may_fail), TEST(what_one_rank_alone_does_wrong_all_refuse))
