/* SPDX-License-Identifier: MIT
 *
 * dist_job.h - a distributed product C = A*B, for the tests in one and in two dimensions. */
#ifndef TULLE_TEST_DIST_JOB_H
#define TULLE_TEST_DIST_JOB_H
#include "dist_help.h"

typedef struct job {
    spread             A, B;
    tulle_options      options;
    tulle_dist_matrix *C[FAKE_RANKS];
    int                odd;             /* the error that the last rank makes */
    char               why[FAKE_RANKS][1100];
} job;

static inline void job_make(job *j, const tulle_csr *A, const tulle_csr *B, int size, uint64_t seed)
{
    spread_random(&j->A, A, size, seed);
    spread_random(&j->B, B, size, seed ? seed + 1 : 0);
}

static inline void job_free(job *j)
{
    for (int r = 0; r < FAKE_RANKS; r++) tulle_dist_matrix_free(j->C[r]);
    memset(j->C, 0, sizeof j->C);
    spread_free(&j->A);
    spread_free(&j->B);
}

/* Assembles C if all ranks succeeded; else false, and *C is not set. */
static inline bool job_result(const team *ranks, const job *j, const char *what, ref *C)
{
    team_agrees(ranks, what);
    CHECK(ranks->member[0].status == TULLE_OK, "%s: %s", what, ranks->member[0].why);
    if (ranks->member[0].status != TULLE_OK) return false;
    for (int r = 0; r < ranks->size; r++) {
        CHECK(j->C[r], "%s: rank %d has no C", what, r);
        if (!j->C[r]) return false;
    }
    *C = put_together(j->C, ranks->size);
    return true;
}

/* Lets the n-th allocation on rank 1 fail, for n = 1, 2, ... until none fails: all ranks must report it. */
static inline void job_memory_fails(team *ranks, int size, member_fn work,
                                    const team_options *o, int64_t least)
{
    ref A = ref_random(8, 24, 24, 4, REF_REALS, ref_types_at(4));
    int64_t left = INT64_MAX, failures = 0;
    tulle_mem mem = {failing_alloc, failing_free, &left};
    team_run(ranks, size, work, &(job){0}, o);          /* only creates the contexts */
    tulle_ctx *kept = ranks->member[1].ctx;
    for (int64_t n = 1; n < 400; n++) {
        job j = {0};
        left = INT64_MAX;
        REQUIRE(tulle_ctx_create("cpu", &mem, &ranks->member[1].ctx) == TULLE_OK, "context");
        tulle_ctx_set_threads(ranks->member[1].ctx, 1);
        job_make(&j, &A.view, &A.view, size, 0);
        left = n;
        team_run(ranks, size, work, &j, o);
        left = INT64_MAX;
        tulle_status status = ranks->member[0].status;
        team_agrees(ranks, "memory");
        CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "%s", ranks->member[0].why);
        CHECK(status == TULLE_OK || strncmp(ranks->member[0].why, "rank 1: ", 8) == 0, "%s",
              ranks->member[0].why);
        if (status != TULLE_OK) failures++;
        job_free(&j);
        tulle_ctx_free(ranks->member[1].ctx);
        if (status == TULLE_OK) break;
    }
    ranks->member[1].ctx = kept;
    CHECK(failures > least, "only %lld requests failed", (long long)failures);
    CHECK(ranks->member[0].status == TULLE_OK, "it never came to an end");
    ref_free(&A);
}

#endif
