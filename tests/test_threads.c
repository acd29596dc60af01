/* SPDX-License-Identifier: MIT
 *
 * test_threads.c - contexts in different threads at the same time, each with a team of its own: the results
 * are the same as those of a single context, and matrices may be freed by another thread, after their
 * context.  Also the team itself: each share of a round is executed once, by any thread that is awake, and
 * threads that are woken run in parallel with the caller.  After fork() a team works in the child, too. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "fork_help.h"
#include "ways.h"

enum { THREADS = 4, ROUNDS = 3 };

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* Read by all threads, written by none. */
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
    /* an error in one context does not affect another */
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

/* Creates and frees contexts, so that teams of many sizes start and stop. */
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

/* ---- a team */

typedef struct shares {
    atomic_int runs[THREADS];
    pthread_t  by[THREADS];
    int        threads;                 /* as passed to the first share */
} shares;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void note_share(void *arg, int thread, int threads)
{
    shares *s = arg;
    atomic_fetch_add(&s->runs[thread], 1);
    s->by[thread] = pthread_self();
    if (thread == 0) s->threads = threads;
}

static void each_share_is_run_once_and_the_first_by_the_caller(void)
{
    tl_base *b = NULL;
    REQUIRE(tl_base_create(NULL, THREADS, sizeof *b, &b) == TULLE_OK, "no team");
    for (int round = 0; round < 3000; round++) {
        shares s = {0};
        int wanted = 1 + round % THREADS;
        if (round % 300 == 0) sleep_ms(2);      /* so that all sleep */
        tl_team_run(b->team, wanted, note_share, &s);
        for (int i = 0; i < THREADS; i++)
            REQUIRE(atomic_load(&s.runs[i]) == (i < wanted), "round %d of %d: share %d ran %d times", round, wanted, i, (int)s.runs[i]);
        REQUIRE(pthread_equal(s.by[0], pthread_self()) && s.threads == wanted, "round %d: the first share", round);
    }
    tl_base_free(b);
}

/* The same with a slow caller. */
static void note_share_slowly(void *arg, int thread, int threads)
{
    if (thread == 0) sleep_ms(1);
    note_share(arg, thread, threads);
}

static atomic_int held, released;

static void hold(int number)
{
    (void)number;
    atomic_store(&held, 1);
    while (!atomic_load(&released)) sleep_ms(1);
}

static void nobody_waits_for_a_thread_that_does_not_wake_up(void)
{
    tl_base *b = NULL;
    struct sigaction with = {.sa_handler = hold}, before;
    shares s = {0};
    bool found = false;
    REQUIRE(tl_base_create(NULL, 2, sizeof *b, &b) == TULLE_OK, "no team");
    for (int i = 0; i < 5000 && !found; i++) {          /* find the other thread */
        tl_team_run(b->team, 2, note_share_slowly, &s);
        found = !pthread_equal(s.by[1], pthread_self());
    }
    REQUIRE(found, "the second thread never came in time");
    pthread_t other = s.by[1];
    sigemptyset(&with.sa_mask);
    sigaction(SIGUSR1, &with, &before);
    sleep_ms(20);                       /* it sleeps, without holding the lock */
    pthread_kill(other, SIGUSR1);
    while (!atomic_load(&held)) sleep_ms(1);
    for (int i = 0; i < 10; i++) {
        s = (shares){0};
        tl_team_run(b->team, 2, note_share, &s);
        CHECK(s.runs[0] == 1 && s.runs[1] == 1 && pthread_equal(s.by[1], pthread_self()), "round %d", i);
    }
    atomic_store(&released, 1);
    tl_base_free(b);
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- where a thread wakes up */

typedef struct places {
    double      patience;
    int         cpu[2];
    pthread_t   by;                     /* the thread of the second share ... */
    cpu_set_t   may;                    /* ... and its allowed processors     */
    atomic_bool begun;
} places;

/* The caller works until the other thread begins, or a timeout. */
static void note_place(void *arg, int thread, int threads)
{
    places *p = arg;
    (void)threads;
    p->cpu[thread] = sched_getcpu();
    if (thread == 1) {
        p->by = pthread_self();
        pthread_getaffinity_np(p->by, sizeof p->may, &p->may);
        atomic_store(&p->begun, true);
        return;
    }
    for (double until = tl_now() + p->patience; !atomic_load(&p->begun) && tl_now() < until;) tl_pause();
}

static void a_woken_thread_works_beside_the_caller_and_may_go_where_it_might(void)
{
    enum { TRIES = 100 };
    tl_base *b = NULL;
    cpu_set_t all;
    int beside = 0, woken = 0;
    REQUIRE(tl_base_create(NULL, 2, sizeof *b, &b) == TULLE_OK, "no team");
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "processors unknown");
    for (int i = 0; i < TRIES; i++) {
        places p = {.patience = 1e-3 * (1 + i / 10), .cpu = {-1, -1}};
        sleep_ms(3);                    /* the other thread sleeps */
        tl_team_run(b->team, 2, note_place, &p);
        if (pthread_equal(p.by, pthread_self())) continue;
        woken++;
        beside += p.cpu[0] != p.cpu[1];
        CHECK(CPU_EQUAL(&p.may, &all), "round %d: it may use %d processors, the caller %d", i, CPU_COUNT(&p.may), CPU_COUNT(&all));
    }
    CHECK(woken > 0, "the second thread never came in time");
    CHECK(2 * beside > woken || tl_cores() == 1, "%d times of %d on the caller's processor", woken - beside, woken);
    tl_base_free(b);
}

/* ---- fork: the child has the context, but none of its threads */

/* The thread sanitizer does not support threads started in a child of fork(), and qemu-user aborts; there
 * the child only frees. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILDREN 1
#endif
#endif
#if (defined(__SANITIZE_THREAD__) || defined(TULLE_EMULATED)) && !defined(CHILDREN)
#define CHILDREN 1
#endif
#if !defined(CHILDREN)
#define CHILDREN (sizeof children / sizeof *children)
#endif

typedef struct family {
    tulle_ctx    *ctx;
    const shared *s;
    tulle_matrix *C;                    /* created before the fork */
    tulle_plan   *plan;
    int           threads, depth;
} family;

/* Did the child exit successfully, in time? */
static bool child_does(bool (*fn)(family *), family *f)
{
    int status = -1;
    fflush(stdout);
    pid_t child = calm_fork();
    if (child == 0) {
        alarm(60);
        _exit(fn(f) ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool multiplies(tulle_ctx *ctx, const shared *s)
{
    handed h = {ctx, s, false};
    use_once(&h);
    return h.good;
}

static bool frees(family *f)
{
    tulle_plan_free(f->plan);
    tulle_ctx_free(f->ctx);
    tulle_matrix_free(f->C);
    return true;
}

static bool multiplies_and_frees(family *f)
{
    bool good = multiplies(f->ctx, f->s) && multiplies(f->ctx, f->s);
    double *values = malloc((size_t)f->s->want[1].view.nnz * sizeof *values);
    const pair *p = &f->s->pairs[1];
    good = good && tulle_plan_run(f->plan, p->A.view.values, p->B.view.values, values) == TULLE_OK
        && ref_same_values(values, f->s->want[1].values, TULLE_F64, f->s->want[1].view.nnz, "plan");
    free(values);
    good = good && tulle_ctx_set_threads(f->ctx, 3) == TULLE_OK && multiplies(f->ctx, f->s);
    return frees(f) && good;
}

static bool makes_its_own(family *f)
{
    tulle_ctx *ctx = ctx_with(f->threads);
    bool good = multiplies(ctx, f->s);
    tulle_ctx_free(ctx);
    return frees(f) && good;
}

static bool forks_again(family *f)
{
    bool good = f->depth % 2 || multiplies(f->ctx, f->s);
    if (++f->depth < 4) good = child_does(forks_again, f) && good;
    return multiplies_and_frees(f) && good;
}

static bool every_share_is_run(family *f)
{
    tl_base *b = (tl_base *)(void *)f->ctx;
    for (int round = 0; round < 200; round++) {
        shares s = {0};
        if (round == 100) sleep_ms(5);
        tl_team_run(b->team, f->threads, note_share, &s);
        for (int i = 0; i < f->threads; i++)
            if (atomic_load(&s.runs[i]) != 1) return false;
    }
    return true;
}

static void a_child_may_use_and_free_what_it_was_given(void)
{
    static const struct { const char *name; bool (*fn)(family *); } children[] = {
        {"free", frees}, {"multiply", multiplies_and_frees}, {"make its own", makes_its_own}, {"fork again", forks_again},
        {"run every share", every_share_is_run},
    };
    shared s = shared_make();
    for (int threads = 1; threads <= 4; threads++)
        for (size_t i = 0; i < CHILDREN; i++)
            for (int pause = 0; pause < 2; pause++) {
                family f = {.ctx = ctx_with(threads), .s = &s, .threads = threads};
                const pair *p = &s.pairs[1];
                REQUIRE(tulle_multiply(f.ctx, &p->A.view, &p->B.view, NULL, &f.C) == TULLE_OK
                        && tulle_plan_create(f.ctx, &p->A.view, &p->B.view, NULL, &f.plan) == TULLE_OK, "%s", tulle_ctx_error(f.ctx));
                CHECK(multiplies(f.ctx, &s), "before: %s", tulle_ctx_error(f.ctx));
                if (pause) sleep_ms(5);         /* the workers sleep, else they spin */
                CHECK(child_does(children[i].fn, &f), "%d threads: the child could not %s", threads, children[i].name);
                CHECK(multiplies(f.ctx, &s), "after: %s", tulle_ctx_error(f.ctx));
                frees(&f);
            }
    shared_free(&s);
}

TEST_MAIN(TEST(contexts_in_several_threads_at_once), TEST(a_context_may_wander_between_threads),
          TEST(contexts_come_and_go), TEST(each_share_is_run_once_and_the_first_by_the_caller),
          TEST(nobody_waits_for_a_thread_that_does_not_wake_up),
          TEST(a_woken_thread_works_beside_the_caller_and_may_go_where_it_might), TEST(a_child_may_use_and_free_what_it_was_given))
