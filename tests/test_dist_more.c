/* SPDX-License-Identifier: MIT
 *
 * test_dist_more.c - other functions on distributed matrices: transposes, redistribution of rows, gathering,
 * balanced work, transposed operands, P^T*A*P, plans, dense matrices.  Each is compared with the plain
 * reference, over 1 to 9 ranks, with failures of each call of the transport and each memory allocation. */
#define _POSIX_C_SOURCE 200809L
#include "dist_help.h"

static team ranks;

typedef struct job job;
struct job {
    ref                a, b;            /* whole matrices, which are divided over the ranks */
    spread             A, B;
    tulle_options      options;
    int64_t            other[FAKE_RANKS + 1];   /* row blocks to redistribute to */
    tulle_op           op;
    tulle_dist_matrix *C[FAKE_RANKS];
    tulle_matrix      *all[FAKE_RANKS];
    int64_t            told[FAKE_RANKS][FAKE_RANKS + 1];
    ref                new_a, new_b;    /* the same patterns, other values */
    tulle_order        order_x, order_y;
    int64_t            columns;
    void              *x, *y;           /* dense, whole, column-major                     */
    uint64_t           run_bytes[FAKE_RANKS], run_exact[FAKE_RANKS];
};

static void job_make(job *j, int size, uint64_t seed)
{
    spread_random(&j->A, &j->a.view, size, seed);
    spread_random(&j->B, &j->b.view, size, seed ? seed + 1 : 0);
}

static void job_clear(job *j)           /* keeps a and b */
{
    for (int r = 0; r < FAKE_RANKS; r++) {
        tulle_dist_matrix_free(j->C[r]);
        tulle_matrix_free(j->all[r]);
    }
    memset(j->C, 0, sizeof j->C);
    memset(j->all, 0, sizeof j->all);
    spread_free(&j->A);
    spread_free(&j->B);
}

static void result_is(job *j, const tulle_csr *want, const char *what)
{
    team_agrees(&ranks, what);
    REQUIRE(ranks.member[0].status == TULLE_OK, "%s: %s", what, ranks.member[0].why);
    for (int r = 0; r < ranks.size; r++) REQUIRE(j->C[r], "%s: rank %d has nothing", what, r);
    ref C = put_together(j->C, ranks.size);
    CHECK(ref_same(&C.view, want, what), "%s on %d ranks", what, ranks.size);
    ref_free(&C);
}

/* Makes every call of the transport on one rank fail, one after the other; nothing may leak. */
static void calls_fail(member_fn fn, job *j, int size, const char *what)
{
    int64_t calls = 1;
    job_make(j, size, 0);
    team_options o = {.fail_rank = size, .fail_call = INT64_MAX, .slice = 128};
    team_run(&ranks, size, fn, j, &o);
    calls = ranks.calls;
    CHECK(ranks.member[0].status == TULLE_OK && calls > 1, "%s: %s", what, ranks.member[0].why);
    job_clear(j);
    for (int64_t n = 0; n < calls; n++) {
        job_make(j, size, 0);
        o.fail_call = n;
        o.unkind = n % 2;
        team_run(&ranks, size, fn, j, &o);
        team_agrees(&ranks, what);
        CHECK(ranks.member[0].status == TULLE_ECOMM, "%s, call %lld: %s", what, (long long)n,
              tulle_status_name(ranks.member[0].status));
        for (int r = 0; r < size; r++) CHECK(!j->C[r] && !j->all[r], "%s: something was left", what);
        job_clear(j);
    }
}

/* The same for each memory allocation of rank 1. */
static void requests_fail(member_fn fn, job *j, int size, const char *what)
{
    int64_t left = INT64_MAX, failures = 0;
    tulle_mem mem = {failing_alloc, failing_free, &left};
    tulle_ctx *kept = ranks.member[1].ctx;
    tulle_status status = TULLE_ENOMEM;
    for (int64_t n = 1; n < 400 && status == TULLE_ENOMEM; n++) {
        left = INT64_MAX;
        REQUIRE(tulle_ctx_create("cpu", &mem, &ranks.member[1].ctx) == TULLE_OK, "context");
        tulle_ctx_set_threads(ranks.member[1].ctx, 1);
        job_make(j, size, 0);
        left = n;
        team_run(&ranks, size, fn, j, NULL);
        left = INT64_MAX;
        status = ranks.member[0].status;
        team_agrees(&ranks, what);
        failures += status != TULLE_OK;
        for (int r = 0; r < size && status != TULLE_OK; r++)
            CHECK(!j->C[r] && !j->all[r], "%s: something was left", what);
        job_clear(j);
        tulle_ctx_free(ranks.member[1].ctx);
    }
    ranks.member[1].ctx = kept;
    CHECK(failures > 2 && status == TULLE_OK, "%s: %lld requests failed, then %s", what, (long long)failures,
          ranks.member[0].why);
}

/* ---- transposes and row blocks */

static void transpose(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    m->status = tulle_dist_transpose(m->dist, &A, j->op, j->other[m->size] ? j->other : NULL, &j->C[m->rank]);
}

static void transposes_are_those_of_one_process(void)
{
    for (int i = 0; i < SMALL_PAIRS; i++)
        for (int size = 1; size <= FAKE_RANKS; size += 2) {
            ref_types t = ref_types_at((3 * i + size) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            job j = {.a = p.A, .b = p.B, .op = i % 2 ? TULLE_TRANSPOSE : TULLE_ADJOINT};
            team_options o = {.unkind = true, .seed = (uint64_t)i, .slice = i % 3 ? 0 : 40};
            job_make(&j, size, (uint64_t)(i + size));
            if (i % 2) for (int r = 1; r <= size; r++) j.other[r] = r > size / 2 ? p.A.view.cols : 0;
            ref want = ref_transpose(&p.A.view, j.op);
            team_run(&ranks, size, transpose, &j, &o);
            result_is(&j, &want.view, p.name);
            ref_free(&want);
            job_clear(&j);
            pair_free(&p);
        }
}

/* For a band matrix nearly all rows of the transpose come from the rank that owns them in the result, with
 * row blocks equal to those of A, or overlapping them. */
static void transposes_of_bands_are_those_of_one_process(void)
{
    tulle_ctx *ctx = NULL;
    tulle_matrix *M = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &ctx) == TULLE_OK, "context");
    REQUIRE(tulle_gallery(ctx, "poisson2d:11", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr view = tulle_matrix_view(M);
    for (int i = 0; i < 32; i++) {
        int size = 1 + i % 8;
        ref_types t = ref_types_at((5 * i + 4) % REF_TYPES);
        job j = {.a = ref_copy(&view, t), .op = i % 3 ? TULLE_TRANSPOSE : TULLE_ADJOINT};
        ref want = ref_transpose(&j.a.view, j.op);
        j.b = ref_copy(&j.a.view, t);
        job_make(&j, size, (uint64_t)(i / 8));
        for (int r = 0; r <= size && i % 2; r++) j.other[r] = j.A.starts[r];
        team_run(&ranks, size, transpose, &j, NULL);
        result_is(&j, &want.view, "a band");
        job_clear(&j);
        ref_free(&j.a);
        ref_free(&j.b);
        ref_free(&want);
    }
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
}

static void redistribute(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    m->status = tulle_dist_redistribute(m->dist, &A, j->other, &j->C[m->rank]);
}

static void gather(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    m->status = tulle_dist_gather(m->dist, &A, m->size / 2, &j->all[m->rank]);
}

static void scatter(member *m)
{
    job *j = m->job;
    m->status = tulle_dist_scatter(m->dist, &j->a.view, j->other, &j->C[m->rank]);
}

static void rows_move_to_other_ranks_and_back(void)
{
    for (int i = 0; i < SMALL_PAIRS; i++)
        for (int size = 1; size <= FAKE_RANKS; size += 2) {
            ref_types t = ref_types_at((5 * i + size) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            job j = {.a = p.A, .b = p.B};
            spread to = {0};
            team_options o = {.unkind = true, .seed = (uint64_t)i, .slice = i % 2 ? 0 : 24};
            spread_random(&to, &p.A.view, size, (uint64_t)(7 * i + 3));
            memcpy(j.other, to.starts, sizeof to.starts);
            job_make(&j, size, (uint64_t)(i + size));
            team_run(&ranks, size, redistribute, &j, &o);
            result_is(&j, &p.A.view, p.name);
            for (int r = 0; r < size; r++)
                CHECK(tulle_dist_matrix_view(j.C[r]).local.rows == to.starts[r + 1] - to.starts[r], "rank %d",
                      r);
            job_clear(&j);
            job_make(&j, size, (uint64_t)(i + size));
            team_run(&ranks, size, scatter, &j, &o);
            result_is(&j, &p.A.view, "scatter");
            team_run(&ranks, size, gather, &j, &o);
            team_agrees(&ranks, "gather");
            for (int r = 0; r < size; r++) CHECK(!j.all[r] == (r != size / 2), "rank %d", r);
            tulle_csr all = tulle_matrix_view(j.all[size / 2]);
            CHECK(ref_same(&all, &p.A.view, p.name), "gather");
            job_clear(&j);
            spread_free(&to);
            pair_free(&p);
        }
}

/* Decreasing row pointers, on a single rank: redistribution never reads outside of the arrays. */
static void row_pointers_out_of_order_are_refused(void)
{
    static const member_fn fns[] = {redistribute, gather, scatter};
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int way = 0; way < 6; way++) {
        job j = {.a = ref_random(14, 30, 30, 4, REF_REALS, t), .b = ref_random(15, 30, 30, 4, REF_REALS, t)};
        int64_t wrong = way < 3 ? -1000000000 : 1000000000;
        tulle_dist_split(30, 3, j.other);
        job_make(&j, 3, 0);
        ref_set_ptr(&j.A.part[1], 5, wrong);
        ref_set_ptr(&j.a, 20, wrong);           /* at the end of the rows of rank 1 */
        team_run(&ranks, 3, fns[way % 3], &j, NULL);
        team_agrees(&ranks, "row pointers");
        CHECK(ranks.member[0].status == TULLE_EPATTERN, "way %d: %s", way, ranks.member[0].why);
        CHECK(strstr(ranks.member[0].why, "row_ptr"), "%s", ranks.member[0].why);
        for (int r = 0; r < 3; r++) CHECK(!j.C[r] && !j.all[r], "something was left");
        job_clear(&j);
        ref_free(&j.a);
        ref_free(&j.b);
    }
}

/* ---- balanced work */

static void balance(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    m->status = tulle_dist_balance(m->dist, &A, &B, j->told[m->rank]);
}

static void row_blocks_have_equal_work(void)
{
    ref_types t = ref_types_at(4);
    for (int size = 1; size <= FAKE_RANKS; size++) {
        job j = {.a = ref_power(3, 500, 500, 60, REF_REALS, t), .b = ref_power(4, 500, 500, 60, REF_REALS,
                                                                               t)};
        int64_t all = ref_count_products(&j.a.view, &j.b.view) + 500, longest = 0;
        job_make(&j, size, (uint64_t)size);
        team_run(&ranks, size, balance, &j, NULL);
        team_agrees(&ranks, "balance");
        CHECK(ranks.member[0].status == TULLE_OK, "%s", ranks.member[0].why);
        for (int64_t i = 0; i < 500; i++) {
            ref row = some_rows(&j.a.view, i, i + 1);
            int64_t n = 1 + ref_count_products(&row.view, &j.b.view);
            if (n > longest) longest = n;
            ref_free(&row);
        }
        for (int r = 0; r < size; r++) {
            CHECK(memcmp(j.told[r], j.told[0], sizeof j.told[0]) == 0, "rank %d has other blocks", r);
            CHECK(j.told[0][r] <= j.told[0][r + 1], "blocks go backwards");
            ref part = some_rows(&j.a.view, j.told[0][r], j.told[0][r + 1]);
            int64_t work = ref_count_products(&part.view, &j.b.view) + part.view.rows;
            CHECK(work <= all / size + longest + 1, "rank %d of %d has %lld of %lld", r, size,
                  (long long)work, (long long)all);
            ref_free(&part);
        }
        CHECK(j.told[0][0] == 0 && j.told[0][size] == 500, "ends");
        job_clear(&j);
        ref_free(&j.a);
        ref_free(&j.b);
    }
}

/* ---- transposed operands, coarse grids */

static void multiply(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    m->status = tulle_dist_multiply(m->dist, &A, &B, &j->options, &j->C[m->rank]);
}

static void ptap(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), P = spread_view(&j->B, m->rank);
    m->status = tulle_dist_ptap(m->dist, &A, &P, &j->options, &j->C[m->rank]);
}

static void operands_may_be_transposed(void)
{
    for (int i = 0; i < 16; i++) {
        ref_types t = ref_types_at((7 * i + 12) % REF_TYPES);
        int op_a = i % 3, op_b = i / 3 % 3, size = 1 + i % FAKE_RANKS;
        ref left = ref_random((uint64_t)i, 41, 23, 4, REF_REALS, t), right = ref_random((uint64_t)i + 9, 23,
                                                                                        31, 4, REF_REALS, t);
        job j = {.a = op_a ? ref_transpose(&left.view, (tulle_op)op_a) : ref_copy(&left.view, t),
                 .b = op_b ? ref_transpose(&right.view, (tulle_op)op_b) : ref_copy(&right.view, t),
                 .options = {.op_a = op_a, .op_b = op_b}};
        ref want = ref_product(&left.view, &right.view);
        job_make(&j, size, (uint64_t)i);
        team_run(&ranks, size, multiply, &j, &(team_options){.unkind = true, .seed = (uint64_t)i});
        result_is(&j, &want.view, "op(A)*op(B)");
        job_clear(&j);
        ref_free(&j.a);
        ref_free(&j.b);
        ref_free(&left);
        ref_free(&right);
        ref_free(&want);
    }
}

static void coarse_grids_are_those_of_one_process(void)
{
    for (int size = 1; size <= FAKE_RANKS; size++) {
        ref_types t = ref_types_at(4 + size % 4);
        job j = {.a = grid(13, 9, REF_REALS, t), .b = aggregates(13, 9, true, REF_REALS, t)};
        ref ap = ref_product(&j.a.view, &j.b.view), pt = ref_transpose(&j.b.view, TULLE_TRANSPOSE);
        ref want = ref_product(&pt.view, &ap.view);
        job_make(&j, size, (uint64_t)size - 1);
        team_run(&ranks, size, ptap, &j, &(team_options){.unkind = true, .seed = 5});
        result_is(&j, &want.view, "P^T*A*P");
        job_clear(&j);
        ref_free(&j.a);
        ref_free(&j.b);
        ref_free(&ap);
        ref_free(&pt);
        ref_free(&want);
    }
}

/* ---- checking a product */

static void verify(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    double error = -1;
    tulle_dist_matrix *C = NULL;
    m->status = tulle_dist_multiply(m->dist, &A, &B, NULL, &C);
    if (m->status != TULLE_OK) return;
    tulle_dist_csr c = tulle_dist_matrix_view(C);
    int64_t k = c.local.nnz / 2;
    if (j->columns && m->rank == m->size / 2 && c.local.nnz > 0) {     /* plants a wrong entry */
        ref_value v = ref_val(&c.local, k);
        ref_value_put((void *)(uintptr_t)c.local.values, c.local.val_type, k, (ref_value){v.re * 1.001,
                                                                                          v.im});
    }
    m->status = tulle_dist_product_check(m->dist, &A, &B, &c, &error);
    tulle_dist_matrix_free(C);
}

static void a_wrong_entry_is_found_and_a_right_product_passes(void)
{
    for (int size = 1; size <= FAKE_RANKS; size += 2)
        for (int i = 0; i < REF_TYPES; i += 3)
            for (int wrong = 0; wrong < 2; wrong++) {
                ref_types t = ref_types_at(i);
                job j = {.a = ref_random(31, 60, 50, 4, REF_INTEGERS, t), .b = ref_random(32, 50, 70, 4,
                                                                                          REF_INTEGERS, t), .columns = wrong};
                job_make(&j, size, 0);
                team_run(&ranks, size, verify, &j, NULL);
                team_agrees(&ranks, "verify");
                CHECK(ranks.member[0].status == (wrong ? TULLE_ECHECK : TULLE_OK), "%d ranks, %s, %d: %s",
                      size, ref_types_name(t),
                      wrong, ranks.member[0].why);
                job_clear(&j);
                ref_free(&j.a);
                ref_free(&j.b);
            }
}

/* ---- plans */

static void plan_twice(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    tulle_dist_plan *plan = NULL;
    tulle_dist_stats stats;
    m->status = tulle_dist_plan_create(m->dist, &A, &B, NULL, &plan);
    if (m->status != TULLE_OK) return;
    tulle_dist_csr pattern = tulle_dist_plan_pattern(plan);
    size_t value = ref_value_size(A.local.val_type);
    char *values = malloc((size_t)pattern.local.nnz * value + 1);
    ref a = some_rows(&j->new_a.view, A.row_starts[m->rank], A.row_starts[m->rank + 1]);
    ref b = some_rows(&j->new_b.view, B.row_starts[m->rank], B.row_starts[m->rank + 1]);
    m->status = tulle_dist_plan_run(plan, A.local.values, B.local.values, values);
    if (m->status == TULLE_OK) m->status = tulle_dist_plan_run(plan, a.values, b.values, values);
    tulle_dist_stats_get(m->dist, &stats);
    j->run_bytes[m->rank] = stats.bytes;
    j->run_exact[m->rank] = stats.bytes_exact;
    tulle_csr c = pattern.local;
    c.values = values;
    if (m->status == TULLE_OK) m->status = keep_rows(m, &c, &j->C[m->rank]);
    free(values);
    ref_free(&a);
    ref_free(&b);
    tulle_dist_plan_free(plan);
}

static void plans_move_values_only_and_give_the_bits_of_one_process(void)
{
    for (int i = 0; i < SMALL_PAIRS + 4; i++)
        for (int size = 1; size <= FAKE_RANKS; size += 2) {
            ref_types t = ref_types_at((3 * i + size) % REF_TYPES);
            pair p = pair_at(i, REF_REALS, t, t);
            job j = {.a = p.A, .b = p.B, .new_a = ref_copy(&p.A.view, t), .new_b = ref_copy(&p.B.view, t)};
            ref_fill(&j.new_a, REF_REALS, 77);
            ref_fill(&j.new_b, REF_REALS, 78);
            ref want = ref_product(&j.new_a.view, &j.new_b.view);
            job_make(&j, size, (uint64_t)(i + size));
            team_run(&ranks, size, plan_twice, &j, &(team_options){.unkind = i % 2, .seed = (uint64_t)i,
                                                                   .slice = i % 3 ? 0 : 32});
            result_is(&j, &want.view, p.name);
            CHECK(j.run_bytes[0] == j.run_exact[0], "%s: a run moved %llu bytes, %llu are needed", p.name,
                  (unsigned long long)j.run_bytes[0], (unsigned long long)j.run_exact[0]);
            ref_free(&want);
            ref_free(&j.new_a);
            ref_free(&j.new_b);
            job_clear(&j);
            pair_free(&p);
        }
}

static void small_plan(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    tulle_options o = {.memory_limit = m->rank == 1 ? 100 : 0};
    tulle_dist_plan *plan = NULL;
    m->status = tulle_dist_plan_create(m->dist, &A, &B, &o, &plan);
    tulle_dist_plan_free(plan);
}

static void gather_by_all(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    m->status = tulle_dist_gather(m->dist, &A, m->rank, &j->all[m->rank]);
}

static void ranks_that_want_different_things_are_told_what(void)
{
    ref_types t = ref_types_at(4);
    job j = {.a = ref_random(41, 30, 30, 4, REF_REALS, t), .b = ref_random(42, 30, 30, 4, REF_REALS, t)};
    job_make(&j, 3, 0);
    team_run(&ranks, 3, small_plan, &j, NULL);
    team_agrees(&ranks, "a plan without room");
    CHECK(ranks.member[0].status == TULLE_ELIMIT && strstr(ranks.member[0].why, "rank 1: a plan needs"), "%s",
          ranks.member[0].why);
    team_run(&ranks, 3, gather_by_all, &j, NULL);
    team_agrees(&ranks, "gathered everywhere");
    CHECK(ranks.member[0].status == TULLE_EINVAL && strstr(ranks.member[0].why,
                                                           "do not agree on which it is"),
          "%s", ranks.member[0].why);
    job_clear(&j);
    ref_free(&j.a);
    ref_free(&j.b);
}

/* ---- dense matrices */

static void dense(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    int64_t x0 = j->B.starts[m->rank], xn = j->B.starts[m->rank + 1] - x0, y0 = A.row_starts[m->rank], yn = A.local.rows;
    tulle_type type = A.local.val_type;
    tulle_dense_matrix *x = NULL, *y = NULL;
    double alpha = 1.5, beta = 0.5;
    tulle_spmm_options o = {0};
    if (tulle_dense_create(m->ctx, xn, j->columns, j->order_x, type, &x) != TULLE_OK
        || tulle_dense_create(m->ctx, yn, j->columns, j->order_y, type, &y) != TULLE_OK) abort();
    tulle_dense X = tulle_dense_view(x), Y = tulle_dense_view(y);
    for (int64_t k = 0; k < j->columns; k++) {
        for (int64_t i = 0; i < xn; i++)
            ref_value_put(X.values, type, X.order == TULLE_BY_ROWS ? i * X.ld + k : i + k * X.ld,
                          ref_value_at(j->x, type, k * j->a.view.cols + x0 + i));
        for (int64_t i = 0; i < yn; i++)
            ref_value_put(Y.values, type, Y.order == TULLE_BY_ROWS ? i * Y.ld + k : i + k * Y.ld,
                          (ref_value){(double)(i + k), 0});
    }
    m->status = tulle_dist_spmm(m->dist, &alpha, &A, &X, j->B.starts, &beta, &Y, &o);
    for (int64_t k = 0; m->status == TULLE_OK && k < j->columns; k++)
        for (int64_t i = 0; i < yn; i++)
            ref_value_put(j->y, type, k * j->a.view.rows + y0 + i,
                          ref_value_at(Y.values, type, Y.order == TULLE_BY_ROWS ? i * Y.ld + k
                                       : i + k * Y.ld));
    tulle_dense_free(x);
    tulle_dense_free(y);
}

static void dense_matrices_go_by_the_same_lists(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int size = 1; size <= FAKE_RANKS; size++)
        for (int i = 0; i < 4; i++) {
            int64_t n = 70, columns = i == 3 ? 0 : 1 + 3 * i;
            job j = {.a = ref_random((uint64_t)i, 60, n, 5, REF_REALS, t), .b = ref_random(1, n, 3, 1,
                                                                                           REF_REALS, t),
                     .columns = columns, .order_x = (tulle_order)(i % 2), .order_y = (tulle_order)(i / 2 % 2)};
            /* nearly full; only its values are used */
            ref X = ref_random(9, columns, n, (double)n, REF_REALS, t);
            double *x = calloc((size_t)(n * columns) + 1, 8), *y = calloc((size_t)(60 * columns) + 1,
                                                                          8), *want = calloc((size_t)(60 * columns) + 1, 8);
            for (int64_t k = 0; k < n * columns; k++)
                x[k] = X.view.nnz > 0 ? ref_val(&X.view, k % X.view.nnz).re : 0;
            j.x = x;
            j.y = y;
            job_make(&j, size, (uint64_t)(3 * size + i));
            for (int r = 0; r < size; r++)              /* Y is reset on each rank */
                for (int64_t k = 0; k < columns; k++)
                    for (int64_t q = j.A.starts[r]; q < j.A.starts[r + 1]; q++)
                        want[k * 60 + q] = (double)(q - j.A.starts[r] + k);
            double alpha = 1.5, beta = 0.5;
            tulle_dense xd = tulle_dense_make(n, columns, 0, TULLE_BY_COLS, x, TULLE_F64);
            tulle_dense yd = tulle_dense_make(60, columns, 0, TULLE_BY_COLS, want, TULLE_F64);
            CHECK(tulle_spmm(ctx, &alpha, &j.a.view, &xd, &beta, &yd, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            team_run(&ranks, size, dense, &j, &(team_options){.unkind = true, .seed = (uint64_t)i});
            team_agrees(&ranks, "spmm");
            CHECK(ranks.member[0].status == TULLE_OK, "%s", ranks.member[0].why);
            CHECK(memcmp(y, want, (size_t)(60 * columns) * 8) == 0, "%d ranks, %lld columns", size,
                  (long long)columns);
            CHECK(ranks.member[0].stats.bytes == ranks.member[0].stats.bytes_exact, "bytes");
            job_clear(&j);
            ref_free(&j.a);
            ref_free(&j.b);
            ref_free(&X);
            free(x);
            free(y);
            free(want);
        }
    tulle_ctx_free(ctx);
}

static void each_call_and_each_request_may_fail(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    double x[2 * 20] = {0}, y[2 * 20] = {0};
    job j = {.a = ref_random(1, 20, 20, 4, REF_REALS, t), .b = ref_random(2, 20, 20, 3, REF_REALS, t),
             .op = TULLE_TRANSPOSE,
             .x = x, .y = y, .columns = 2};
    j.new_a = ref_copy(&j.a.view, t);
    j.new_b = ref_copy(&j.b.view, t);
    tulle_dist_split(20, 3, j.other);
    /* memory: not for functions that must allocate in this test itself; test_dist_plans.c has those */
    const struct { member_fn run; const char *what; int64_t columns; bool memory; } all[] = {
        {transpose, "transpose", 2, true}, {redistribute, "redistribute", 2, true},
        {scatter, "scatter", 2, true}, {balance, "balance", 2, true}, {ptap, "ptap", 2, true},
        {plan_twice, "plan", 2, true}, {dense, "spmm", 2, false}, {verify, "verify", 0, true},
        {gather, "gather", 0, true},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        j.columns = all[i].columns;
        calls_fail(all[i].run, &j, 3, all[i].what);
        if (all[i].memory) requests_fail(all[i].run, &j, 3, all[i].what);
    }
    ref_free(&j.a);
    ref_free(&j.b);
    ref_free(&j.new_a);
    ref_free(&j.new_b);
    team_free(&ranks);
}

TEST_MAIN(TEST(transposes_are_those_of_one_process), TEST(transposes_of_bands_are_those_of_one_process),
          TEST(row_pointers_out_of_order_are_refused),
          TEST(rows_move_to_other_ranks_and_back),
          TEST(row_blocks_have_equal_work), TEST(operands_may_be_transposed),
          TEST(coarse_grids_are_those_of_one_process),
          TEST(a_wrong_entry_is_found_and_a_right_product_passes),
          TEST(plans_move_values_only_and_give_the_bits_of_one_process),
          TEST(dense_matrices_go_by_the_same_lists), TEST(ranks_that_want_different_things_are_told_what),
          TEST(each_call_and_each_request_may_fail))
