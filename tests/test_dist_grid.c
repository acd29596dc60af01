/* SPDX-License-Identifier: MIT
 *
 * test_dist_grid.c - C = A*B on grids of ranks: the same bits as with one process, no byte of communication
 * too many, a correct prediction of it, and a grid is used if it communicates less. */
#define _POSIX_C_SOURCE 200809L
#include "dist_job.h"

static team ranks;

static void multiply(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    tulle_options o = j->options;
    if (j->odd && m->rank == m->size - 1) {
        if (j->odd == 1) A.local.values = NULL;
        if (j->odd == 2) o.memory_limit = 1;
        if (j->odd == 3) o.policy = "none of ours";
        if (j->odd == 4) o.c_idx_type = TULLE_I64;     /* rows of C would be sent in two widths */
    }
    m->status = tulle_dist_multiply(m->dist, &A, &B, &o, &j->C[m->rank]);
}

/* ---- the necessary communication, computed by definition from the matrices */

static uint64_t entry_of(const tulle_csr *A)
{
    return ref_index_size(A->idx_type) + ref_value_size(A->val_type);
}

static int64_t entries_in(const tulle_csr *A, int64_t row, int64_t first, int64_t end)
{
    int64_t n = 0;
    for (int64_t k = ref_ptr(A, row); k < ref_ptr(A, row + 1); k++)
        n += ref_col(A, k) >= first && ref_col(A, k) < end;
    return n;
}

/* c_most: upper bound by products */
typedef struct volume { uint64_t a, b, c, c_most; int64_t rows; } volume;

/* Adds the data received by rank q on a grid with so many columns; entry: bytes of an entry of C. */
static void add_rank(const job *j, const tulle_csr *B, const tulle_csr *C, uint64_t entry, int cols, int q,
                     volume *v)
{
    int group = q / cols * cols, block = q % cols;
    int64_t cut[FAKE_RANKS + 1];
    char *seen = calloc((size_t)B->rows + 1, 1);
    tulle_dist_split(B->cols, cols, cut);
    for (int r = group; r < group + cols; r++) {
        const tulle_csr *A = &j->A.part[r].view;
        if (r != q) v->a += 8 * (uint64_t)A->rows + entry_of(A) * (uint64_t)A->nnz;
        for (int64_t k = 0; k < A->nnz; k++) seen[ref_col(A, k)] = 1;
    }
    for (int64_t row = 0; row < B->rows; row++) {
        if (!seen[row] || (row >= j->B.starts[q] && row < j->B.starts[q + 1])) continue;
        v->b += 8 + entry_of(B) * (uint64_t)entries_in(B, row, cut[block], cut[block + 1]);
        v->rows++;
    }
    for (int64_t i = j->A.starts[q]; i < j->A.starts[q + 1]; i++) {
        const tulle_csr *A = &j->A.part[q].view;
        int64_t own = i - j->A.starts[q], products = 0;
        for (int64_t k = ref_ptr(A, own); k < ref_ptr(A, own + 1); k++)
            products += ref_ptr(B, ref_col(A, k) + 1) - ref_ptr(B, ref_col(A, k));
        int64_t all = entries_in(C, i, 0, C->cols), here = entries_in(C, i, cut[block], cut[block + 1]);
        v->c += 8 * (uint64_t)(cols - 1) + entry * (uint64_t)(all - here);
        v->c_most += 8 * (uint64_t)(cols - 1)
                     + entry_of(B) * (uint64_t)(products < B->cols ? products : B->cols);
    }
    free(seen);
}

static volume moved(const job *j, const tulle_csr *B, const tulle_csr *C, uint64_t entry, int cols)
{
    volume v = {0};
    for (int q = 0; q < j->A.size; q++) add_rank(j, B, C, entry, cols, q, &v);
    return v;
}

static void result_is(job *j, const tulle_csr *B, const tulle_csr *want, int cols, const char *what)
{
    ref C;
    if (!job_result(&ranks, j, what, &C)) return;
    uint64_t entry = entry_of(&(tulle_csr){.idx_type = tulle_dist_matrix_view(j->C[0]).local.idx_type,
                                           .val_type = B->val_type});
    CHECK(ref_same(&C.view, want, what), "%s on %d ranks in %d columns", what, ranks.size, cols);
    const tulle_dist_stats *s = &ranks.member[0].stats;
    volume two = moved(j, B, &C.view, entry, cols), one = moved(j, B, &C.view, entry, 1);
    uint64_t exact = two.a + two.b + two.c;
    ref_free(&C);
    CHECK(s->grid_cols == cols, "%s: %d columns, %d were asked for", what, s->grid_cols, cols);
    CHECK(s->bytes == exact && s->bytes_exact == exact, "%s: %llu bytes moved, %llu told, %llu are needed",
          what, (unsigned long long)s->bytes, (unsigned long long)s->bytes_exact, (unsigned long long)exact);
    CHECK(s->bytes_1d == one.b, "%s: 1-D moves %llu, told %llu", what, (unsigned long long)one.b,
          (unsigned long long)s->bytes_1d);
    CHECK(s->bytes_2d == two.a + two.b + two.c_most, "%s: 2-D moves at most %llu, told %llu", what,
          (unsigned long long)(two.a + two.b + two.c_most), (unsigned long long)s->bytes_2d);
    CHECK((int64_t)(s->bytes + s->bytes_lists) == ranks.bytes, "%s: all told: %lld", what,
          (long long)ranks.bytes);
    CHECK(s->messages == ranks.letters && s->rows_fetched == two.rows && s->c_nnz == want->nnz, "%s: counts",
          what);
}

static void every_pair_has_the_bits_of_one_process_on_every_grid(void)
{
    for (int i = 0; i < 22; i++) {
        ref_types t = ref_types_at((5 * i + 4) % REF_TYPES);
        pair p = pair_at(i, REF_REALS, t, (ref_types){t.val, t.idx, t.ptr});
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int size = 2; size <= FAKE_RANKS; size += i < SMALL_PAIRS ? 1 : 4)
            for (int cols = 2; cols <= size; cols++) {
                if (size % cols != 0) continue;
                job j = {0};
                team_options o = {.unkind = size % 2 == 0, .seed = (uint64_t)(i + size), .dimensions = 2,
                                  .grid_cols = cols, .slice = size % 3 ? 0 : 64};
                job_make(&j, &p.A.view, &p.B.view, size, (uint64_t)(i * size));
                team_run(&ranks, size, multiply, &j, &o);
                result_is(&j, &p.B.view, &want.view, cols, p.name);
                job_free(&j);
            }
        ref_free(&want);
        pair_free(&p);
    }
}

/* If wide rows of A need all rows of B, and C is small, a grid communicates less.  For a mesh, a single
 * column of ranks is used. */
static void the_grid_that_moves_less_is_taken(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(3, 24, 400, 50, REF_REALS, t), B = ref_random(4, 400, 150, 60, REF_REALS, t);
    ref M = ref_random(5, 40, 40, 2, REF_REALS, t);
    ref want = ref_product(&A.view, &B.view), mesh = ref_product(&M.view, &M.view);
    for (int size = 1; size <= FAKE_RANKS; size++) {
        job j = {0};
        job_make(&j, &A.view, &B.view, size, 0);
        team_run(&ranks, size, multiply, &j, NULL);
        int cols = ranks.member[0].stats.grid_cols;
        if (size > 1) {
            CHECK(cols > 1, "%d ranks: %llu bytes in one dimension, %llu in two", size,
                  (unsigned long long)ranks.member[0].stats.bytes_1d,
                  (unsigned long long)ranks.member[0].stats.bytes_2d);
            CHECK(ranks.member[0].stats.bytes < ranks.member[0].stats.bytes_1d, "%d ranks", size);
            result_is(&j, &B.view, &want.view, cols, "wide rows");
        }
        for (int c = 2; c <= size; c++) {       /* no other grid communicates less */
            if (size % c != 0) continue;
            volume v = moved(&j, &B.view, &want.view, 0, c);
            CHECK(v.a + v.b + v.c_most >= ranks.member[0].stats.bytes_2d, "%d ranks, %d columns", size, c);
        }
        job_free(&j);
        job_make(&j, &A.view, &B.view, size, 0);
        team_run(&ranks, size, multiply, &j, &(team_options){.dimensions = 1});
        CHECK(ranks.member[0].stats.grid_cols == 1, "one dimension was asked for");
        job_free(&j);
        job_make(&j, &M.view, &M.view, size, 0);
        team_run(&ranks, size, multiply, &j, NULL);
        CHECK(ranks.member[0].stats.grid_cols == 1, "few entries: one dimension");
        ref C = put_together(j.C, size);
        CHECK(ref_same(&C.view, &mesh.view, "few entries"), "%d ranks", size);
        ref_free(&C);
        job_free(&j);
    }
    ref_free(&A);
    ref_free(&B);
    ref_free(&M);
    ref_free(&want);
    ref_free(&mesh);
}

static void zeros_are_dropped_and_widths_kept_as_asked(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(3, 60, 60, 6, REF_CANCELLING, t);
    ref all = ref_product(&A.view, &A.view), want = ref_without_zeros(&all.view);
    job j = {.options = {.drop_zeros = 1, .c_ptr_type = TULLE_I64, .c_idx_type = TULLE_I64}};
    job_make(&j, &A.view, &A.view, 6, 0);
    team_run(&ranks, 6, multiply, &j, &(team_options){.dimensions = 2, .grid_cols = 3});
    result_is(&j, &A.view, &want.view, 3, "drop_zeros");
    for (int r = 0; r < 6 && j.C[r]; r++) {
        tulle_csr c = tulle_dist_matrix_view(j.C[r]).local;
        CHECK(c.ptr_type == TULLE_I64 && c.idx_type == TULLE_I64, "rank %d", r);
    }
    job_free(&j);
    ref_free(&want);
    ref_free(&all);
    ref_free(&A);
}

static void a_limit_is_kept_or_refused_with_a_number(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(5, 200, 300, 3, REF_REALS, t), B = ref_random(6, 300, 40, 20, REF_REALS, t);
    ref want = ref_product(&A.view, &B.view);
    for (uint64_t limit = 1 << 8; limit < (uint64_t)1 << 22; limit *= 4) {
        job j = {.options = {.memory_limit = limit}};
        job_make(&j, &A.view, &B.view, 4, 0);
        team_run(&ranks, 4, multiply, &j, &(team_options){.dimensions = 2, .grid_cols = 2});
        team_agrees(&ranks, "limit");
        if (ranks.member[0].status == TULLE_OK) result_is(&j, &B.view, &want.view, 2, "limit");
        else CHECK(ranks.member[0].status == TULLE_ELIMIT, "limit %llu: %s", (unsigned long long)limit,
                   ranks.member[0].why);
        job_free(&j);
    }
    CHECK(ranks.member[0].status == TULLE_OK, "1 MiB is enough");
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
}

/* ---- failures */

static void each_call_of_the_transport_may_fail(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(7, 30, 30, 4, REF_REALS, t);
    for (int bad = 0; bad < 4; bad += 3) {
        int64_t calls = 1;
        for (int64_t n = -1; n < calls; n++) {
            job j = {0};
            team_options o = {.unkind = n % 2, .seed = (uint64_t)n, .fail_rank = bad + 1,
                              .fail_call = n < 0 ? INT64_MAX : n, .slice = 256, .dimensions = 2,
                              .grid_cols = 2};
            job_make(&j, &A.view, &A.view, 4, 0);
            team_run(&ranks, 4, multiply, &j, &o);
            team_agrees(&ranks, "a call fails");
            if (n < 0) calls = ranks.calls;     /* without failures: the number of calls */
            CHECK(ranks.member[0].status == (n < 0 ? TULLE_OK : TULLE_ECOMM), "rank %d, call %lld: %s", bad,
                  (long long)n, tulle_status_name(ranks.member[0].status));
            for (int r = 0; r < 4 && n >= 0; r++) CHECK(!j.C[r], "a C was left on rank %d", r);
            job_free(&j);
        }
        CHECK(calls > 20, "%lld calls", (long long)calls);
    }
    ref_free(&A);
}

static void each_request_for_memory_may_fail_on_one_rank(void)
{
    job_memory_fails(&ranks, 4, multiply, &(team_options){.dimensions = 2, .grid_cols = 2}, 20);
}

static void what_one_rank_alone_does_wrong_all_refuse(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(9, 20, 20, 4, REF_REALS, t);
    for (int size = 2; size <= 6; size += 2)
        for (int odd = 1; odd <= 4; odd++) {
            job j = {.odd = odd};
            job_make(&j, &A.view, &A.view, size, 0);
            team_run(&ranks, size, multiply, &j, &(team_options){.dimensions = 2, .grid_cols = 2});
            team_agrees(&ranks, "one is wrong");
            CHECK(ranks.member[0].status < 0 && ranks.member[0].status != TULLE_ECOMM, "mistake %d: %s", odd,
                  tulle_status_name(ranks.member[0].status));
            for (int r = 0; r < size; r++) CHECK(!j.C[r], "mistake %d", odd);
            job_free(&j);
        }
    ref_free(&A);
}

static void grids_that_cannot_be_are_refused(void)
{
    tulle_ctx *ctx = ctx_with(1);
    fake_world *w = fake_world_new(1, false, 0);
    tulle_transport t = fake_transport(w, 0);
    tulle_dist *dist = NULL;
    static const tulle_dist_options wrong[] = {
        {.dimensions = 3}, {.dimensions = -1}, {.grid_cols = 2}, {.grid_cols = -1}, {.reserved[5] = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(tulle_dist_create(ctx, &t, &wrong[i], &dist) == TULLE_EINVAL && !dist, "option %d", (int)i);
        CHECK(tulle_ctx_error(ctx)[0], "no sentence");
    }
    t.reserved[3] = 1;
    CHECK(tulle_dist_create(ctx, &t, NULL, &dist) == TULLE_EINVAL && !dist, "a word for members to come");
    CHECK(strcmp(tulle_ctx_error(ctx), "transport: reserved[3] is not zero") == 0, "%s", tulle_ctx_error(ctx));
    fake_world_free(w);
    tulle_ctx_free(ctx);
    team_free(&ranks);
}

TEST_MAIN(TEST(every_pair_has_the_bits_of_one_process_on_every_grid), TEST(the_grid_that_moves_less_is_taken),
          TEST(zeros_are_dropped_and_widths_kept_as_asked), TEST(a_limit_is_kept_or_refused_with_a_number),
          TEST(each_call_of_the_transport_may_fail), TEST(each_request_for_memory_may_fail_on_one_rank),
          TEST(what_one_rank_alone_does_wrong_all_refuse), TEST(grids_that_cannot_be_are_refused))
