/* SPDX-License-Identifier: MIT
 *
 * test_dist_slices.c - views of a rank's rows within the arrays of the whole matrix, so row_ptr[0] is not 0.
 * Every collective accepts them, and plans read new values at the same offset. */
#define _POSIX_C_SOURCE 200809L
#include "dist_help.h"

static team ranks;

enum { MULTIPLY, TRANSPOSE, REDISTRIBUTE, PTAP, PLAN, PLAN_TURNED, OTHERS, WAYS };

typedef struct job {
    ref                a, b, new_a, new_b;      /* whole; new_: the same patterns, other values */
    spread             A;                       /* the row blocks     */
    int                way;
    int64_t            other[FAKE_RANKS + 1];   /* row blocks to redistribute to */
    tulle_dist_matrix *C[FAKE_RANKS];
    tulle_matrix      *all[FAKE_RANKS];
    int64_t            told[FAKE_RANKS][FAKE_RANKS + 1];
    double            *x, *y;                   /* dense, one column; y has two: direct, by a plan */
} job;

static tulle_dist_csr slice_of(const ref *A, const spread *s, int rank)
{
    tulle_dist_csr v = {.local = A->view, .row_starts = s->starts};
    int64_t first = s->starts[rank];
    v.local.rows = s->starts[rank + 1] - first;
    v.local.nnz = ref_ptr(&A->view, s->starts[rank + 1]) - ref_ptr(&A->view, first);
    v.local.row_ptr = (const char *)A->view.row_ptr + (size_t)first * ref_index_size(A->view.ptr_type);
    return v;
}

static tulle_status planned_slices(member *m, const tulle_dist_csr *A, const tulle_dist_csr *B, int op_a,
                                   tulle_dist_matrix **C)
{
    job *j = m->job;
    tulle_dist_plan *plan = NULL;
    tulle_options o = {.op_a = op_a};
    tulle_status status = tulle_dist_plan_create(m->dist, A, B, &o, &plan);
    if (status != TULLE_OK) return status;
    tulle_csr c = tulle_dist_plan_pattern(plan).local;
    char *values = malloc((size_t)c.nnz * ref_value_size(A->local.val_type) + 1);
    status = tulle_dist_plan_run(plan, j->new_a.view.values, j->new_b.view.values, values);
    c.values = values;
    if (status == TULLE_OK) status = keep_rows(m, &c, C);
    tulle_dist_plan_free(plan);
    free(values);
    return status;
}

static tulle_status dense_slices(member *m, const tulle_dist_csr *A, tulle_status status)
{
    job *j = m->job;
    const int64_t *starts = j->A.starts;
    int64_t first = starts[m->rank], rows = starts[m->rank + 1] - first, all = j->a.view.rows;
    double zero = 0;
    tulle_dist_spmm_plan *plan = NULL;
    tulle_dense X = tulle_dense_make(rows, 1, 0, TULLE_BY_COLS, j->x + first, TULLE_F64);
    tulle_dense Y = tulle_dense_make(rows, 1, 0, TULLE_BY_COLS, j->y + first, TULLE_F64);
    if (status == TULLE_OK) status = tulle_dist_spmm(m->dist, NULL, A, &X, starts, &zero, &Y, NULL);
    if (status == TULLE_OK) status = tulle_dist_spmm_plan_create(m->dist, A, starts, NULL, NULL, &plan);
    if (status == TULLE_OK) status = tulle_dist_spmm_plan_set_values(plan, j->new_a.view.values);
    Y.values = j->y + all + first;
    if (status == TULLE_OK) status = tulle_dist_spmm_plan_run(plan, NULL, &X, &zero, &Y);
    tulle_dist_spmm_plan_free(plan);
    return status;
}

static void slices(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = slice_of(&j->a, &j->A, m->rank), B = slice_of(&j->b, &j->A, m->rank);
    tulle_dist_matrix *C = NULL, **out = &j->C[m->rank];
    double error;
    switch (j->way) {
    case MULTIPLY: m->status = tulle_dist_multiply(m->dist, &A, &B, NULL, out); break;
    case TRANSPOSE: m->status = tulle_dist_transpose(m->dist, &A, TULLE_TRANSPOSE, NULL, out); break;
    case REDISTRIBUTE: m->status = tulle_dist_redistribute(m->dist, &A, j->other, out); break;
    case PTAP: m->status = tulle_dist_ptap(m->dist, &A, &B, NULL, out); break;
    case PLAN: m->status = planned_slices(m, &A, &B, TULLE_KEEP, out); break;
    case PLAN_TURNED: m->status = planned_slices(m, &A, &B, TULLE_TRANSPOSE, out); break;
    default:
        m->status = tulle_dist_gather(m->dist, &A, m->size / 2, &j->all[m->rank]);
        if (m->status == TULLE_OK) m->status = tulle_dist_balance(m->dist, &A, &B, j->told[m->rank]);
        if (m->status == TULLE_OK) m->status = tulle_dist_multiply(m->dist, &A, &A, NULL, &C);
        tulle_dist_csr c = tulle_dist_matrix_view(C);
        if (m->status == TULLE_OK) m->status = tulle_dist_product_check(m->dist, &A, &A, &c, &error);
        m->status = dense_slices(m, &A, m->status);
        tulle_dist_matrix_free(C);
    }
}

static void results_are(job *j, const tulle_csr *want)
{
    const tulle_csr *a = &j->a.view;
    team_agrees(&ranks, "slices");
    REQUIRE(ranks.member[0].status == TULLE_OK, "way %d: %s", j->way, ranks.member[0].why);
    if (want) {
        ref C = put_together(j->C, ranks.size);
        CHECK(ref_same(&C.view, want, "slices"), "way %d on %d ranks", j->way, ranks.size);
        ref_free(&C);
        return;
    }
    tulle_csr all = tulle_matrix_view(j->all[ranks.size / 2]);
    CHECK(ref_same(&all, a, "gathered slices"), "%d ranks", ranks.size);
    const double *y = j->y, *x = j->x;
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0, other = 0;
        for (int64_t k = ref_ptr(a, i); k < ref_ptr(a, i + 1); k++) {
            sum += ((const double *)a->values)[k] * x[ref_col(a, k)];
            other += ((const double *)j->new_a.view.values)[k] * x[ref_col(a, k)];
        }
        CHECK(y[i] == sum && y[a->rows + i] == other, "row %lld on %d ranks", (long long)i, ranks.size);
    }
}

static void slices_of_a_larger_matrix_are_taken(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I64};
    for (int size = 1; size <= 5; size++)
        for (int way = 0; way < WAYS; way++) {
            job j = {.a = ref_random(16, 40, 40, 4, REF_INTEGERS, t),
                     .b = ref_random(17, 40, 40, 3, REF_INTEGERS, t), .way = way};
            j.new_a = ref_copy(&j.a.view, t);
            j.new_b = ref_copy(&j.b.view, t);
            ref_fill(&j.new_a, REF_INTEGERS, 18);
            ref_fill(&j.new_b, REF_INTEGERS, 19);
            j.x = calloc(40, sizeof(double));
            j.y = calloc(80, sizeof(double));
            for (int i = 0; i < 40; i++) j.x[i] = i % 5 - 2;
            spread_random(&j.A, &j.a.view, size, (uint64_t)(size + way));
            tulle_dist_split(40, size, j.other);
            const ref *left = way == PTAP ? &j.b : way == PLAN_TURNED ? &j.new_a : &j.a;
            ref turned = ref_transpose(&left->view, TULLE_TRANSPOSE);
            ref ab = way == PLAN ? ref_product(&j.new_a.view, &j.new_b.view)
                                 : ref_product(&j.a.view, &j.b.view);
            ref tb = ref_product(&turned.view, way == PTAP ? &ab.view : &j.new_b.view);
            const tulle_csr *want[] = {&ab.view, &turned.view, &j.a.view, &tb.view, &ab.view, &tb.view, NULL};
            team_run(&ranks, size, slices, &j, NULL);
            results_are(&j, want[way]);
            for (int r = 0; r < size; r++) {
                tulle_dist_matrix_free(j.C[r]);
                tulle_matrix_free(j.all[r]);
            }
            spread_free(&j.A);
            ref *all[] = {&turned, &ab, &tb, &j.a, &j.b, &j.new_a, &j.new_b};
            for (int k = 0; k < 7; k++) ref_free(all[k]);
            free(j.x);
            free(j.y);
        }
}

/* Invalid slices: a negative first pointer, a last one that differs from it by other than nnz, decreasing
 * pointers. */
static void broken(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = slice_of(&j->a, &j->A, m->rank);
    int32_t row_ptr[41];
    for (int i = 0; i <= 40; i++) row_ptr[i] = (int32_t)ref_ptr(&j->a.view, i);
    int32_t *mine = row_ptr + j->A.starts[m->rank];
    if (m->rank == 1 && j->way == 0) mine[0] = -1;
    if (m->rank == 1 && j->way == 1) A.local.nnz--;
    if (m->rank == 1 && j->way == 2) mine[3] = mine[2] - 1;
    A.local.row_ptr = mine;
    m->status = tulle_dist_multiply(m->dist, &A, &A, NULL, &j->C[m->rank]);
}

static void what_is_no_slice_is_refused(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int way = 0; way < 3; way++) {
        job j = {.a = ref_random(20, 40, 40, 4, REF_INTEGERS, t), .way = way};
        spread_random(&j.A, &j.a.view, 3, 0);
        team_run(&ranks, 3, broken, &j, NULL);
        team_agrees(&ranks, "no slice");
        CHECK(ranks.member[0].status == TULLE_EPATTERN, "way %d: %s", way, ranks.member[0].why);
        CHECK(strncmp(ranks.member[0].why, "rank 1: A: row_ptr", 18) == 0, "%s", ranks.member[0].why);
        spread_free(&j.A);
        ref_free(&j.a);
    }
    team_free(&ranks);
}

TEST_MAIN(TEST(slices_of_a_larger_matrix_are_taken), TEST(what_is_no_slice_is_refused))
