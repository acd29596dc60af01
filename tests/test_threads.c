/* SPDX-License-Identifier: MIT
 *
 * test_threads.c - contexts in different threads at the same time, each with a team of its own: the
 * results are those of one alone, and matrices may be freed by another thread, after their context. */
#include <pthread.h>
#include "ways.h"

enum { THREADS = 4, ROUNDS = 3 };

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* What every thread reads and none writes. */
typedef struct shared {
    pair pairs[3];
    ref  want[3], transposed;
} shared;

typedef struct worker {
    const shared *s;
    int           number, wrong;
    tulle_matrix *left;                 /* for the main thread to free */
    char          sentence[256];
} worker;

static shared shared_make(void)
{
    shared s = {.pairs = {pair_at(15, REF_REALS, f64, f64), pair_at(17, REF_REALS, f64, f64),
                          pair_at(19, REF_REALS, f64, f64)}};
    for (int i = 0; i < 3; i++) s.want[i] = ref_product(&s.pairs[i].A.view, &s.pairs[i].B.view);
    s.transposed = ref_transpose(&s.pairs[0].A.view, TULLE_TRANSPOSE);
    return s;
}

static void shared_free(shared *s)
{
    for (int i = 0; i < 3; i++) {
        pair_free(&s->pairs[i]);
        ref_free(&s->want[i]);
    }
    ref_free(&s->transposed);
}

static bool one_round(tulle_ctx *ctx, worker *w, int round)
{
    const shared *s = w->s;
    int i = (w->number + round) % 3;
    const tulle_csr *A = &s->pairs[i].A.view, *B = &s->pairs[i].B.view;
    tulle_matrix *C = NULL, *T = NULL;
    tulle_plan *plan = NULL;
    tulle_forecast f;
    bool good = tulle_multiply(ctx, A, B, NULL, &C) == TULLE_OK;
    tulle_csr c = tulle_matrix_view(C);
    good = good && ref_same(&c, &s->want[i].view, "product");
    good = good && tulle_csr_transpose(ctx, &s->pairs[0].A.view, TULLE_TRANSPOSE, &T) == TULLE_OK;
    c = tulle_matrix_view(T);
    good = good && ref_same(&c, &s->transposed.view, "transpose");
    good = good && tulle_estimate(ctx, A, B, NULL, &f) == TULLE_OK && f.nnz_upper >= s->want[i].view.nnz;
    good = good && tulle_plan_create(ctx, A, B, NULL, &plan) == TULLE_OK;
    double *values = malloc((size_t)s->want[i].view.nnz * sizeof *values + 1);
    good = good && tulle_plan_run(plan, A->values, B->values, values) == TULLE_OK
        && ref_same_values(values, s->want[i].values, TULLE_F64, s->want[i].view.nnz, "plan");
    /* an error of one context is not seen by another */
    tulle_csr bad = *A;
    char sentence[64];
    bad.cols = -1 - w->number;
    tulle_matrix *none = NULL;
    snprintf(sentence, sizeof sentence, "%d columns", -1 - w->number);
    good = good && tulle_multiply(ctx, &bad, B, NULL, &none) == TULLE_EINVAL && !none
        && strstr(tulle_ctx_error(ctx), sentence);
    free(values);
    tulle_plan_free(plan);
    tulle_matrix_free(T);
    tulle_matrix_free(w->left);
    w->left = C;
    return good;
}

static void *work(void *arg)
{
    worker *w = arg;
    tulle_ctx *ctx = ctx_with(1 + w->number % 3);
    for (int round = 0; round < ROUNDS; round++)
        if (!one_round(ctx, w, round)) {
            w->wrong++;
            snprintf(w->sentence, sizeof w->sentence, "%s", tulle_ctx_error(ctx));
        }
    tulle_ctx_free(ctx);
    return NULL;
}

static void contexts_in_several_threads_at_once(void)
{
    shared s = shared_make();
    worker w[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = &s, .number = i};
        REQUIRE(pthread_create(&thread[i], NULL, work, &w[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(w[i].wrong == 0, "thread %d: %d rounds went wrong, the last with \"%s\"", i, w[i].wrong, w[i].sentence);
        tulle_csr c = tulle_matrix_view(w[i].left);
        int last = (i + ROUNDS - 1) % 3;
        CHECK(ref_same(&c, &s.want[last].view, "a matrix that outlived its context"), "thread %d", i);
        tulle_matrix_free(w[i].left);
    }
    shared_free(&s);
}

/* One context handed from thread to thread, one at a time. */
typedef struct handed { tulle_ctx *ctx; const shared *s; bool good; } handed;

static void *use_once(void *arg)
{
    handed *h = arg;
    tulle_matrix *C = NULL;
    h->good = tulle_multiply(h->ctx, &h->s->pairs[1].A.view, &h->s->pairs[1].B.view, NULL, &C) == TULLE_OK;
    tulle_csr c = tulle_matrix_view(C);
    h->good = h->good && ref_same(&c, &h->s->want[1].view, "handed over");
    tulle_matrix_free(C);
    return NULL;
}

static void a_context_may_wander_between_threads(void)
{
    shared s = shared_make();
    handed h = {ctx_with(2), &s, false};
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, use_once, &h) == 0, "thread %d", i);
        pthread_join(thread, NULL);
        CHECK(h.good, "thread %d: %s", i, tulle_ctx_error(h.ctx));
    }
    tulle_ctx_free(h.ctx);
    shared_free(&s);
}

/* Contexts come and go; teams of many sizes start and stop. */
static void *come_and_go(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 8; i++) {
        tulle_ctx *ctx = ctx_with(1 + (i + w->number) % 4);
        if (tulle_ctx_set_threads(ctx, 1 + i % 3) != TULLE_OK || tulle_csr_check(ctx, &w->s->pairs[2].A.view) != TULLE_OK)
            w->wrong++;
        tulle_ctx_trim(ctx);
        tulle_ctx_free(ctx);
    }
    return NULL;
}

static void contexts_come_and_go(void)
{
    shared s = shared_make();
    worker w[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = &s, .number = i};
        REQUIRE(pthread_create(&thread[i], NULL, come_and_go, &w[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        CHECK(w[i].wrong == 0, "thread %d: %d wrong", i, w[i].wrong);
    }
    shared_free(&s);
}

TEST_MAIN(TEST(contexts_in_several_threads_at_once), TEST(a_context_may_wander_between_threads),
          TEST(contexts_come_and_go))
