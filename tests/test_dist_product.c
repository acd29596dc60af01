/* SPDX-License-Identifier: MIT
 *
 * test_dist_product.c - C = A*B over 1 to 9 ranks has the same bits as with one process, communicates no
 * byte too many, and returns the same status on all ranks if one of them fails. */
#define _POSIX_C_SOURCE 200809L
#include "dist_job.h"

static team ranks;

static void multiply(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    m->status = tulle_dist_multiply(m->dist, &A, &B, &j->options, &j->C[m->rank]);
}

/* The necessary communication, by definition from the matrices. */
static uint64_t exact_bytes(const job *j, const tulle_csr *B, int64_t *rows)
{
    uint64_t bytes = 0, entry = ref_index_size(B->idx_type) + ref_value_size(B->val_type);
    for (int r = 0; r < j->A.size; r++) {
        const tulle_csr *A = &j->A.part[r].view;
        char *seen = calloc((size_t)B->rows + 1, 1);
        for (int64_t k = 0; k < A->nnz; k++) seen[ref_col(A, k)] = 1;
        for (int64_t c = 0; c < B->rows; c++) {
            if (!seen[c] || (c >= j->B.starts[r] && c < j->B.starts[r + 1])) continue;
            bytes += 8 + (uint64_t)(ref_ptr(B, c + 1) - ref_ptr(B, c)) * entry;
            ++*rows;
        }
        free(seen);
    }
    return bytes;
}

static void result_is(job *j, const tulle_csr *B, const tulle_csr *want, const char *what)
{
    int64_t rows = 0;
    ref C;
    if (!job_result(&ranks, j, what, &C)) return;
    CHECK(ref_same(&C.view, want, what), "%s on %d ranks", what, ranks.size);
    ref_free(&C);
    const tulle_dist_stats *s = &ranks.member[0].stats;
    uint64_t exact = exact_bytes(j, B, &rows);
    CHECK(s->bytes == exact || s->blocks > 1, "%s: %llu bytes moved, %llu are needed", what,
          (unsigned long long)s->bytes,
          (unsigned long long)exact);
    CHECK(s->bytes_exact == exact, "%s: told %llu", what, (unsigned long long)s->bytes_exact);
    CHECK(s->blocks > 1 || s->bytes_lists == 8 * (uint64_t)rows, "%s: lists", what);
    CHECK((int64_t)(s->bytes + s->bytes_lists) == ranks.bytes, "%s: all told: %lld", what,
          (long long)ranks.bytes);
    CHECK(s->messages == ranks.letters, "%s: messages", what);
    CHECK(s->rows_fetched == rows && s->c_nnz == want->nnz, "%s: counts", what);
}

static void every_pair_has_the_bits_of_one_process_on_1_to_9_ranks(void)
{
    for (int i = 0; i < 22; i++) {
        ref_types t = ref_types_at((5 * i + 4) % REF_TYPES);
        pair p = pair_at(i, REF_REALS, t, (ref_types){t.val, t.idx, t.ptr});
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int size = 1; size <= FAKE_RANKS; size += i < SMALL_PAIRS ? 1 : 3) {
            job j = {0};
            team_options o = {.unkind = size % 2 == 0, .seed = (uint64_t)(i + size),
                              .slice = size % 3 ? 0 : 64, .uneven = size % 2};
            spread_random(&j.A, &p.A.view, size, (uint64_t)(i * size));
            spread_random(&j.B, &p.B.view, size, (uint64_t)(i + size));
            team_run(&ranks, size, multiply, &j, &o);
            result_is(&j, &p.B.view, &want.view, p.name);
            job_free(&j);
        }
        ref_free(&want);
        pair_free(&p);
    }
}

static void every_split_of_a_small_product(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(1, 4, 5, 3, REF_REALS, t), B = ref_random(2, 5, 6, 3, REF_REALS, t);
    ref want = ref_product(&A.view, &B.view);
    for (int64_t a1 = 0; a1 <= 4; a1++)
        for (int64_t a2 = a1; a2 <= 4; a2++)
            for (int64_t b1 = 0; b1 <= 5; b1++)
                for (int64_t b2 = b1; b2 <= 5; b2++) {
                    job j = {.A.starts = {0, a1, a2, 4}, .B.starts = {0, b1, b2, 5}};
                    spread_at(&j.A, &A.view, 3);
                    spread_at(&j.B, &B.view, 3);
                    team_run(&ranks, 3, multiply, &j, NULL);
                    result_is(&j, &B.view, &want.view, "every split");
                    job_free(&j);
                }
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
}

static void zeros_are_dropped_and_widths_kept_as_asked(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(3, 60, 60, 6, REF_CANCELLING, t);
    ref all = ref_product(&A.view, &A.view), want = ref_without_zeros(&all.view);
    job j = {.options = {.drop_zeros = 1, .c_ptr_type = TULLE_I64, .c_idx_type = TULLE_I64}};
    job_make(&j, &A.view, &A.view, 4, 0);
    team_run(&ranks, 4, multiply, &j, NULL);
    result_is(&j, &A.view, &want.view, "drop_zeros");
    for (int r = 0; r < 4 && j.C[r]; r++) {
        tulle_csr c = tulle_dist_matrix_view(j.C[r]).local;
        CHECK(c.ptr_type == TULLE_I64 && c.idx_type == TULLE_I64, "rank %d", r);
    }
    job_free(&j);
    ref_free(&want);
    ref_free(&all);
    ref_free(&A);
}

/* Ranks with three threads each, which share the work between messages if there is enough of it. */
static void threads_of_a_rank_share_the_work_between_messages(void)
{
    static team threaded;
    tulle_ctx *ctx = ctx_with(1);
    tulle_matrix *M = NULL;
    for (int r = 0; r < 3; r++) threaded.member[r].ctx = ctx_with(3);
    REQUIRE(tulle_gallery(ctx, "poisson2d:320", &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr mesh = tulle_matrix_view(M);
    for (int i = 0; i < 4; i++) {
        ref_types t = {TULLE_F64, i & 1 ? TULLE_I64 : TULLE_I32, i & 2 ? TULLE_I64 : TULLE_I32};
        ref A = i % 3 ? ref_copy(&mesh, t) : ref_random(21, 100000, 100000, 3, REF_REALS, t);
        ref want = ref_product(&A.view, &A.view), C;
        job j = {0};
        job_make(&j, &A.view, &A.view, 3, 0);
        team_run(&threaded, 3, multiply, &j, NULL);
        if (job_result(&threaded, &j, "threads", &C)) {
            CHECK(ref_same(&C.view, &want.view, "threads"), "types %d", i);
            ref_free(&C);
        }
        job_free(&j);
        ref_free(&want);
        ref_free(&A);
    }
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    team_free(&threaded);
}

/* On each rank A and B share one array of values, that of the longer one. */
static void multiply_shared(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    if (A.local.nnz > B.local.nnz) B.local.values = A.local.values;
    else A.local.values = B.local.values;
    m->status = tulle_dist_multiply(m->dist, &A, &B, &j->options, &j->C[m->rank]);
}

/* Makes the values of the shorter block equal to the first values of the longer one. */
static void share_values(ref *A, ref *B, const int64_t *starts, int size)
{
    for (int r = 0; r < size; r++) {
        int64_t a = ref_ptr(&A->view, starts[r]), b = ref_ptr(&B->view, starts[r]);
        int64_t a_nnz = ref_ptr(&A->view, starts[r + 1]) - a, b_nnz = ref_ptr(&B->view, starts[r + 1]) - b;
        double *to = a_nnz > b_nnz ? (double *)B->values + b : (double *)A->values + a;
        const double *from = a_nnz > b_nnz ? (double *)A->values + a : (double *)B->values + b;
        memcpy(to, from, (size_t)(a_nnz > b_nnz ? b_nnz : a_nnz) * sizeof *to);
    }
}

static void values_of_both_may_be_one_array(void)
{
    const ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    for (int size = 2; size <= 5; size++)
        for (int i = 0; i < 3; i++) {                   /* A longer than B, equal, shorter */
            ref A = ref_random(11, 40, 40, 8 - 3 * i, REF_REALS, t);
            ref B = ref_random(12 - i % 2, 40, 40, 2 + 3 * i, REF_REALS, t);
            job j = {0};
            tulle_dist_split(40, size, j.A.starts);
            tulle_dist_split(40, size, j.B.starts);
            share_values(&A, &B, j.A.starts, size);
            spread_at(&j.A, &A.view, size);
            spread_at(&j.B, &B.view, size);
            ref want = ref_product(&A.view, &B.view);
            team_run(&ranks, size, multiply_shared, &j, NULL);
            result_is(&j, &B.view, &want.view, "one array of values");
            job_free(&j);
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
}

static void a_limit_makes_blocks_of_rows_with_the_same_bits(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(5, 400, 900, 3, REF_REALS, t), B = ref_random(6, 900, 40, 20, REF_REALS, t);
    ref want = ref_product(&A.view, &B.view);
    int most = 0;
    for (uint64_t limit = 1 << 10; limit < (uint64_t)1 << 22; limit += limit / 2) {
        job j = {.options = {.memory_limit = limit}};
        job_make(&j, &A.view, &B.view, 3, 0);
        team_run(&ranks, 3, multiply, &j, NULL);
        team_agrees(&ranks, "limit");
        int blocks = ranks.member[0].stats.blocks;
        if (ranks.member[0].status == TULLE_OK) result_is(&j, &B.view, &want.view, "limit");
        else CHECK(ranks.member[0].status == TULLE_ELIMIT, "limit %llu: %s", (unsigned long long)limit,
                   ranks.member[0].why);
        if (ranks.member[0].status == TULLE_OK && blocks > most) most = blocks;
        job_free(&j);
    }
    CHECK(most > 1, "no limit led to blocks");
    CHECK(ranks.member[0].status == TULLE_OK, "4 MiB are enough");
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
}

static uint64_t bytes_of(const tulle_dist_matrix *C)
{
    tulle_csr v = tulle_dist_matrix_view(C).local;
    return (uint64_t)(v.rows + 1) * ref_index_size(v.ptr_type)
           + (uint64_t)v.nnz * (ref_index_size(v.idx_type) + ref_value_size(v.val_type));
}

/* Blocks are freed after they are copied, so memory holds C and one block, not C twice.  Each row of A needs
 * two rows of B, all from other ranks, and some rows of A at the end need no further rows of B. */
static void blocks_are_joined_where_there_is_no_room_for_two_of_c(void)
{
    enum { NAMED = 800, MORE = 400 };
    ref_types t = ref_types_at(4);
    ref A = ref_new(NAMED + MORE, 2 * NAMED, 2 * (NAMED + MORE), t);
    ref B = ref_random(8, 2 * NAMED, 48, 24, REF_REALS, t);
    uint64_t entry = ref_index_size(t.idx) + ref_value_size(t.val);
    int joined = 0, refused = 0;
    for (int64_t i = 0; i < NAMED + MORE; i++)
        for (int64_t k = 2 * i; k < 2 * i + 2; k++) {
            ref_set_ptr(&A, i + 1, 2 * i + 2);
            ref_set_col(&A, k, i < NAMED ? k : 2 * NAMED - 40 + k % 40);
            ref_set_val(&A, k, (ref_value){1, 0});
        }
    ref want = ref_product(&A.view, &B.view);
    for (uint64_t limit = 50000 * entry; limit < 80000 * entry; limit += 1000 * entry) {
        unsigned long long c = 0, most = 0, told = 0;
        job j = {.options = {.memory_limit = limit}, .A.starts = {0, NAMED + MORE, NAMED + MORE},
                 .B.starts = {0, 0, 2 * NAMED}};
        spread_at(&j.A, &A.view, 2);
        spread_at(&j.B, &B.view, 2);
        team_run(&ranks, 2, multiply, &j, NULL);
        team_agrees(&ranks, "joined");
        if (ranks.member[0].status == TULLE_OK) {
            result_is(&j, &B.view, &want.view, "joined");
            joined += ranks.member[0].stats.blocks > 1 && limit < 2 * bytes_of(j.C[0]);
        } else if (sscanf(ranks.member[0].why, "rank 0: C takes %llu bytes here, and %llu while its blocks "
                          "are joined; the limit is %llu", &c, &most, &told) == 3) {
            CHECK(most > limit && told == limit, "%llu bytes for a limit of %llu", most,
                  (unsigned long long)limit);
            CHECK(most > c && most < 2 * c, "%llu bytes for blocks of %llu", most, c);
            refused++;
        }
        job_free(&j);
    }
    CHECK(joined > 0, "no limit below two of C was kept in blocks");
    CHECK(refused > 0, "no join was refused");
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
}

/* If the rank's own rows of B take more than half of the limit, fetched rows and the product share the rest:
 * that makes a few blocks, not one for each row of A. */
static void own_rows_of_more_than_half_the_limit_make_few_blocks(void)
{
    enum { ROWS = 200, EACH = 8 };
    ref_types t = ref_types_at(4);
    ref A = ref_new(ROWS, 2 * ROWS * EACH, ROWS * EACH, t);
    ref B = ref_random(13, 2 * ROWS * EACH, 48, 24, REF_REALS, t);
    for (int64_t i = 0; i < ROWS; i++) {
        ref_set_ptr(&A, i + 1, (i + 1) * EACH);
        for (int64_t k = i * EACH; k < (i + 1) * EACH; k++) {
            ref_set_col(&A, k, ROWS * EACH + k);
            ref_set_val(&A, k, (ref_value){1, 0});
        }
    }
    ref want = ref_product(&A.view, &B.view);
    uint64_t entry = ref_index_size(t.idx) + ref_value_size(t.val);
    uint64_t own = entry * (uint64_t)ref_ptr(&B.view, ROWS * EACH) + 8 * ROWS * EACH;
    job j = {.options = {.memory_limit = own / 4 * 7}, .A.starts = {0, ROWS, ROWS},
             .B.starts = {0, ROWS * EACH, 2 * ROWS * EACH}};
    spread_at(&j.A, &A.view, 2);
    spread_at(&j.B, &B.view, 2);
    team_run(&ranks, 2, multiply, &j, NULL);
    result_is(&j, &B.view, &want.view, "own rows");
    int blocks = ranks.member[0].stats.blocks;
    CHECK(blocks > 1 && blocks < 20, "%d blocks", blocks);
    job_free(&j);
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
}

typedef struct tally { int64_t now, most; } tally;      /* of one rank, from one thread */

static void *counted_alloc(void *user, size_t bytes)
{
    tally *t = user;
    size_t *p = malloc(bytes + 16);
    if (!p) return NULL;
    *p = bytes;
    t->now += (int64_t)bytes;
    if (t->now > t->most) t->most = t->now;
    return p + 2;
}

static void counted_free(void *user, void *p)
{
    tally *t = user;
    if (!p) return;
    t->now -= (int64_t)((size_t *)p)[-2];
    free((size_t *)p - 2);
}

static tally tallies[2];

static void multiply_counted(member *m)
{
    int64_t before = tallies[m->rank].now;
    tallies[m->rank].most = before;
    multiply(m);
    tallies[m->rank].most -= before;
}

/* For rows of B with one entry each, their metadata takes more memory than the rows.  The limit includes
 * it. */
static void a_limit_counts_lists(void)
{
    enum { ROWS = 200, EACH = 600, NAMED = 30000 };
    static team counted;
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    ref A = ref_new(ROWS, 2 * NAMED, ROWS * EACH, t), B = ref_new(2 * NAMED, 2 * NAMED, 2 * NAMED, t);
    for (int64_t k = 0; k < ROWS * EACH; k++) {
        ref_set_ptr(&A, k / EACH + 1, (k / EACH + 1) * EACH);
        ref_set_col(&A, k, NAMED + k % EACH * (NAMED / EACH) + k / EACH % (NAMED / EACH));
        ref_set_val(&A, k, (ref_value){1, 0});
    }
    for (int64_t k = 0; k < 2 * NAMED; k++) {
        ref_set_ptr(&B, k + 1, k + 1);
        ref_set_col(&B, k, k);
        ref_set_val(&B, k, (ref_value){2, 0});
    }
    int kept = 0, refused = 0;
    for (uint64_t limit = 1000000; limit < 6000000; limit += 250000) {
        job j = {.options = {.memory_limit = limit}, .A.starts = {0, ROWS, ROWS},
                 .B.starts = {0, 0, 2 * NAMED}};
        for (int r = 0; r < 2; r++) {
            tulle_mem mem = {counted_alloc, counted_free, &tallies[r]};
            REQUIRE(tulle_ctx_create("cpu", &mem, &counted.member[r].ctx) == TULLE_OK, "context");
            tulle_ctx_set_threads(counted.member[r].ctx, 1);
        }
        spread_at(&j.A, &A.view, 2);
        spread_at(&j.B, &B.view, 2);
        team_run(&counted, 2, multiply_counted, &j, NULL);
        team_agrees(&counted, "lists");
        tulle_status status = counted.member[0].status;
        CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s", counted.member[0].why);
        for (int r = 0; r < 2 && status == TULLE_OK; r++)
            CHECK(tallies[r].most <= (int64_t)limit, "rank %d took %lld bytes, the limit is %lld", r,
                  (long long)tallies[r].most, (long long)limit);
        kept += status == TULLE_OK;
        refused += status != TULLE_OK;
        job_free(&j);
        team_free(&counted);
    }
    CHECK(kept > 0 && refused > 0, "%d kept, %d refused", kept, refused);
    ref_free(&A);
    ref_free(&B);
}

/* ---- failures */

static void each_call_of_the_transport_may_fail(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(7, 30, 30, 4, REF_REALS, t);
    for (int size = 1; size <= 4; size++)
        for (int bad = 0; bad < size; bad++) {
            int64_t calls = 1;
            for (int64_t n = 0; n < calls; n++) {
                job j = {0};
                team_options o = {.unkind = n % 2, .seed = (uint64_t)n, .fail_rank = bad + 1, .fail_call = n,
                                  .slice = 256};
                job_make(&j, &A.view, &A.view, size, 0);
                team_run(&ranks, size, multiply, &j, &o);
                team_agrees(&ranks, "a call fails");
                CHECK(ranks.member[0].status == TULLE_ECOMM, "%d of %d, call %lld: %s", bad, size,
                      (long long)n,
                      tulle_status_name(ranks.member[0].status));
                CHECK(strstr(ranks.member[0].why, "was made to fail"), "%s", ranks.member[0].why);
                for (int r = 0; r < size; r++) CHECK(!j.C[r], "a C was left on rank %d", r);
                job_free(&j);
                /* the number of calls is known after a run without failures */
                if (n == 0) {
                    o.fail_call = INT64_MAX;
                    job_make(&j, &A.view, &A.view, size, 0);
                    team_run(&ranks, size, multiply, &j, &o);
                    calls = ranks.calls;
                    CHECK(ranks.member[0].status == TULLE_OK && calls > 4, "%lld calls", (long long)calls);
                    job_free(&j);
                }
            }
        }
    ref_free(&A);
}

static void each_request_for_memory_may_fail_on_one_rank(void)
{
    job_memory_fails(&ranks, 3, multiply, NULL, 10);
}

/* One rank passes an argument different from that of the others. */
static void odd_one(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank), B = spread_view(&j->B, m->rank);
    tulle_options o = {0};
    int64_t other[FAKE_RANKS + 1];
    const tulle_dist_csr *a = &A;
    int what = m->rank == m->size - 1 ? j->odd : 0;
    memcpy(other, A.row_starts, sizeof other);
    if (what == 1) a = NULL;
    if (what == 2) A.local.cols--;
    if (what == 3) A.local.rows++;
    if (what == 4) A.local.val_type = A.local.val_type == TULLE_F64 ? TULLE_F32 : TULLE_F64;
    if (what == 5) B.row_starts = NULL;
    if (what == 6) o.sort_inputs = 1;
    if (what == 7) o.c_place = TULLE_DEVICE;
    if (what == 8) other[1]++, other[0]++, A.row_starts = other;
    if (what == 9) A.local.values = NULL;
    if (what == 10) A.local.idx_type = TULLE_I64, A.local.nnz = 0, A.local.rows = 0;
    if (what == 11) o.memory_limit = 1;
    if (what == 12) o.policy = "none of ours";
    if (what == 13) A.reserved[1] = 1;
    if (what == 14) B.local.reserved[0] = 1;
    if (what == 15) o.c_idx_type = TULLE_I64;
    if (what == 16) o.drop_zeros = 1;
    m->status = tulle_dist_multiply(m->dist, a, &B, &o, &j->C[m->rank]);
    /* afterwards all ranks can continue */
    if (m->status != TULLE_OK && m->status != TULLE_ECOMM) {
        tulle_dist_matrix *C = NULL;
        snprintf(j->why[m->rank], sizeof j->why[0], "%s", tulle_ctx_error(m->ctx));
        A = spread_view(&j->A, m->rank);
        B = spread_view(&j->B, m->rank);
        if (tulle_dist_multiply(m->dist, &A, &B, NULL, &C) != TULLE_OK) m->status = TULLE_ECHECK;
        tulle_dist_matrix_free(C);
    }
}

static void what_one_rank_alone_does_wrong_all_refuse_and_go_on(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(9, 20, 20, 4, REF_REALS, t);
    for (int size = 1; size <= 4; size++)
        for (int odd = 1; odd <= (size > 1 ? 16 : 14); odd++) {
            job j = {.odd = odd};
            job_make(&j, &A.view, &A.view, size, 0);
            team_run(&ranks, size, odd_one, &j, NULL);
            CHECK(!ranks.timed_out && !ranks.mismatch, "%d ranks, mistake %d", size, odd);
            for (int r = 0; r < size; r++) {
                CHECK(ranks.member[r].status < 0 && ranks.member[r].status != TULLE_ECHECK,
                      "%d ranks, mistake %d, rank %d: %s",
                      size, odd, r, tulle_status_name(ranks.member[r].status));
                CHECK(ranks.member[r].status == ranks.member[0].status, "mistake %d", odd);
                CHECK(j.why[0][0] && strcmp(j.why[r], j.why[0]) == 0, "mistake %d: \"%s\", \"%s\"", odd,
                      j.why[0], j.why[r]);
                CHECK(!j.C[r], "mistake %d", odd);
            }
            job_free(&j);
        }
    ref_free(&A);
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)user, (void)stage, (void)fraction;
    return 1;
}

static void cancelled(member *m)
{
    if (m->rank == 1) tulle_ctx_set_progress(m->ctx, stop_at_once, NULL);
    multiply(m);
    tulle_ctx_set_progress(m->ctx, NULL, NULL);
}

static void a_rank_that_is_cancelled_takes_the_others_with_it(void)
{
    ref_types t = ref_types_at(4);
    ref A = ref_random(10, 3000, 3000, 9, REF_REALS, t);
    job j = {0};
    job_make(&j, &A.view, &A.view, 3, 0);
    team_run(&ranks, 3, cancelled, &j, NULL);
    team_agrees(&ranks, "cancelled");
    CHECK(ranks.member[0].status == TULLE_ECANCEL, "%s", ranks.member[0].why);
    job_free(&j);
    ref_free(&A);
    team_free(&ranks);
}

TEST_MAIN(TEST(every_pair_has_the_bits_of_one_process_on_1_to_9_ranks), TEST(every_split_of_a_small_product),
          TEST(zeros_are_dropped_and_widths_kept_as_asked),
          TEST(threads_of_a_rank_share_the_work_between_messages),
          TEST(values_of_both_may_be_one_array),
          TEST(a_limit_makes_blocks_of_rows_with_the_same_bits),
          TEST(blocks_are_joined_where_there_is_no_room_for_two_of_c),
          TEST(own_rows_of_more_than_half_the_limit_make_few_blocks), TEST(a_limit_counts_lists),
          TEST(each_call_of_the_transport_may_fail),
          TEST(each_request_for_memory_may_fail_on_one_rank),
          TEST(what_one_rank_alone_does_wrong_all_refuse_and_go_on),
          TEST(a_rank_that_is_cancelled_takes_the_others_with_it))
