/* SPDX-License-Identifier: MIT
 *
 * dist_help.h - what the tests of distributed matrices share: ranks as threads, matrices divided into row
 * blocks and assembled again.  Ranks record their results; only the main thread uses CHECK. */
#ifndef DIST_HELP_H
#define DIST_HELP_H
#include "fake_ranks.h"
#include "ways.h"

typedef struct member {                 /* one rank of a team */
    int           rank, size;
    tulle_ctx    *ctx;
    tulle_dist   *dist;
    void         *job;
    tulle_status  status;
    char          why[1100];
    tulle_dist_stats stats;
} member;

typedef void (*member_fn)(member *m);

typedef struct team_options {
    bool     unkind;
    uint64_t seed;
    int64_t  slice;
    bool     uneven;                    /* each rank has a slice of its own               */
    int      dimensions, grid_cols;
    int      fail_rank;                 /* 1 more than the rank whose call fails; 0: none */
    int64_t  fail_call;
} team_options;

typedef struct team {
    int        size;
    member     member[FAKE_RANKS];
    member_fn  fn;
    bool       timed_out, mismatch;
    int64_t    calls;                   /* of the rank whose call was to fail */
    int64_t    bytes, letters;
} team;

typedef struct seat { team *t; int rank; fake_world *world; const team_options *o; } seat;

static inline void *take_seat(void *arg)
{
    seat *s = arg;
    member *m = &s->t->member[s->rank];
    tulle_transport t = fake_transport(s->world, s->rank);
    tulle_dist_options o = {.slice_bytes = s->o->slice + (s->o->uneven ? 24 * s->rank : 0),
                            .dimensions = s->o->dimensions, .grid_cols = s->o->grid_cols};
    if (tulle_dist_create(m->ctx, &t, &o, &m->dist) != TULLE_OK) abort();
    s->t->fn(m);
    snprintf(m->why, sizeof m->why, "%s", tulle_ctx_error(m->ctx));
    tulle_dist_stats_get(m->dist, &m->stats);
    tulle_dist_free(m->dist);
    m->dist = NULL;
    return NULL;
}

/* Runs fn on every one of `size` ranks; contexts are kept in the team for the next run. */
static inline void team_run(team *t, int size, member_fn fn, void *job, const team_options *o)
{
    static const team_options plain;
    pthread_t thread[FAKE_RANKS];
    seat seats[FAKE_RANKS];
    if (!o) o = &plain;
    fake_world *w = fake_world_new(size, o->unkind, o->seed);
    w->fail_rank = o->fail_rank - 1;
    w->fail_call = o->fail_call;
    t->size = size;
    t->fn = fn;
    for (int r = 0; r < size; r++) {
        member *m = &t->member[r];
        if (!m->ctx) m->ctx = ctx_with(1);
        m->rank = r;
        m->size = size;
        m->job = job;
        m->status = TULLE_OK;
        seats[r] = (seat){t, r, w, o};
        if (pthread_create(&thread[r], NULL, take_seat, &seats[r]) != 0) abort();
    }
    for (int r = 0; r < size; r++) pthread_join(thread[r], NULL);
    t->timed_out = w->timed_out;
    t->mismatch = w->mismatch;
    t->bytes = w->bytes;
    t->letters = w->letters;
    t->calls = w->fail_rank >= 0 ? w->rank[w->fail_rank].calls : 0;
    fake_world_free(w);
}

static inline void team_free(team *t)
{
    for (int r = 0; r < FAKE_RANKS; r++) tulle_ctx_free(t->member[r].ctx);
    memset(t, 0, sizeof *t);
}

/* Checks that there was no deadlock, and that all ranks have the same status and message. */
static inline void team_agrees(const team *t, const char *what)
{
    CHECK(!t->timed_out, "%s: ranks waited for each other", what);
    CHECK(!t->mismatch, "%s: ranks did not meet in the same calls", what);
    for (int r = 1; r < t->size; r++) {
        CHECK(t->member[r].status == t->member[0].status, "%s: rank 0 has %s, rank %d %s", what,
              tulle_status_name(t->member[0].status), r, tulle_status_name(t->member[r].status));
        CHECK(t->member[0].status == TULLE_OK || strcmp(t->member[r].why, t->member[0].why) == 0,
              "%s: rank 0 says \"%s\", rank %d \"%s\"", what, t->member[0].why, r, t->member[r].why);
    }
}

/* Memory hooks that fail; user: the number of allocations that still succeed. */
static inline void *failing_alloc(void *user, size_t bytes)
{
    int64_t *left = user;
    return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static inline void failing_free(void *user, void *p)
{
    (void)user;
    free(p);
}

/* ---- matrices in parts */

typedef struct spread {                 /* a matrix cut into row blocks */
    int64_t starts[FAKE_RANKS + 1];
    ref     part[FAKE_RANKS];
    int     size;
} spread;

static inline ref some_rows(const tulle_csr *A, int64_t first, int64_t end)
{
    int64_t begin = ref_ptr(A, first), n = ref_ptr(A, end) - begin;
    ref_types types = {A->val_type, A->ptr_type, A->idx_type};
    ref S = ref_new(end - first, A->cols, n, types);
    for (int64_t i = first; i <= end; i++) ref_set_ptr(&S, i - first, ref_ptr(A, i) - begin);
    for (int64_t k = 0; k < n; k++) {
        ref_set_col(&S, k, ref_col(A, begin + k));
        ref_set_val(&S, k, ref_val(A, begin + k));
    }
    return S;
}

static inline void spread_at(spread *s, const tulle_csr *A, int size)      /* starts are set */
{
    s->size = size;
    for (int r = 0; r < size; r++) s->part[r] = some_rows(A, s->starts[r], s->starts[r + 1]);
}

/* A copy of this rank's rows, for put_together(). */
static inline tulle_status keep_rows(member *m, const tulle_csr *rows, tulle_dist_matrix **out)
{
    int64_t whole[FAKE_RANKS + 1];
    for (int r = 0; r <= m->size; r++) whole[r] = r <= m->rank ? 0 : rows->rows;
    return tulle_dist_scatter(m->dist, rows, whole, out);
}

/* Divides the rows at random, so that some ranks may have none; seed 0: evenly. */
static inline void spread_random(spread *s, const tulle_csr *A, int size, uint64_t seed)
{
    ref_rng rng = {seed};
    tulle_dist_split(A->rows, size, s->starts);
    for (int r = 1; seed && r < size; r++) s->starts[r] = ref_below(&rng, A->rows + 1);
    for (int i = 1; i < size; i++)
        for (int k = i; k > 1 && s->starts[k] < s->starts[k - 1]; k--) {
            int64_t t = s->starts[k];
            s->starts[k] = s->starts[k - 1];
            s->starts[k - 1] = t;
        }
    spread_at(s, A, size);
}

static inline void spread_free(spread *s)
{
    for (int r = 0; r < s->size; r++) ref_free(&s->part[r]);
}

static inline tulle_dist_csr spread_view(const spread *s, int rank)
{
    return (tulle_dist_csr){.local = s->part[rank].view, .row_starts = s->starts};
}

/* Concatenates the parts of all ranks. */
static inline ref put_together(tulle_dist_matrix *const *part, int size)
{
    int64_t rows = 0, nnz = 0, row = 0, at = 0;
    tulle_csr first = tulle_dist_matrix_view(part[0]).local;
    for (int r = 0; r < size; r++) {
        rows += tulle_dist_matrix_view(part[r]).local.rows;
        nnz += tulle_dist_matrix_view(part[r]).local.nnz;
    }
    ref C = ref_new(rows, first.cols, nnz, (ref_types){first.val_type, TULLE_I64, TULLE_I64});
    for (int r = 0; r < size; r++) {
        tulle_csr v = tulle_dist_matrix_view(part[r]).local;
        for (int64_t i = 1; i <= v.rows; i++) ref_set_ptr(&C, ++row, at + ref_ptr(&v, i));
        for (int64_t k = 0; k < v.nnz; k++) {
            ref_set_col(&C, at + k, ref_col(&v, k));
            ref_set_val(&C, at + k, ref_val(&v, k));
        }
        at += v.nnz;
    }
    return C;
}

#endif
