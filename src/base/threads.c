/* SPDX-License-Identifier: MIT
 *
 * threads.c - a team of POSIX threads that wait for work.
 *
 * Plain threads rather than OpenMP: every context has a team of its own, so contexts in different
 * threads do not disturb each other; nothing is needed to build; and the thread sanitizer sees every
 * hand-over.  Between two pieces of work a thread spins for some microseconds, then sleeps. */
#define _GNU_SOURCE
#include "base/base.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { SPINS = 2000 };

typedef struct worker {
    tl_team  *team;
    int       number;
    pthread_t thread;
} worker;

struct tl_team {
    int             size, started;
    pthread_mutex_t lock;
    pthread_cond_t  wake, rest;
    atomic_int      round;              /* counts pieces of work; a change starts one */
    atomic_int      busy;               /* workers that have not finished the round   */
    atomic_bool     closing;
    int             wanted;
    tl_work_fn      fn;
    void           *arg;
    tl_base        *base;
    worker         *workers;
};

int tl_cores(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0) return n;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

void tl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void tl_yield(void)
{
    sched_yield();
}

static void *serve(void *p)
{
    worker *w = p;
    tl_team *team = w->team;
    int seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&team->round) == seen; i++) tl_pause();
        pthread_mutex_lock(&team->lock);
        while (atomic_load(&team->round) == seen) pthread_cond_wait(&team->wake, &team->lock);
        seen = atomic_load(&team->round);
        bool closing = atomic_load(&team->closing);
        int wanted = team->wanted;
        tl_work_fn fn = team->fn;
        void *arg = team->arg;
        pthread_mutex_unlock(&team->lock);
        if (closing) return NULL;
        if (w->number < wanted) fn(arg, w->number, wanted);
        if (atomic_fetch_sub(&team->busy, 1) == 1) {
            pthread_mutex_lock(&team->lock);
            pthread_cond_signal(&team->rest);
            pthread_mutex_unlock(&team->lock);
        }
    }
}

static void begin_round(tl_team *team, tl_work_fn fn, void *arg, int wanted, bool closing)
{
    pthread_mutex_lock(&team->lock);
    team->fn = fn;
    team->arg = arg;
    team->wanted = wanted;
    atomic_store(&team->closing, closing);
    atomic_store(&team->busy, team->started);
    atomic_fetch_add(&team->round, 1);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
}

tulle_status tl_team_create(tl_base *b, int threads, tl_team **out)
{
    tulle_status status = TULLE_OK;
    tl_team *team = NULL;
    if (threads <= 0) threads = tl_cores();
    *out = NULL;
    TRY(tl_calloc(b, &team, 1, sizeof *team, "a team of threads"));
    team->base = b;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->rest, NULL);
    team->size = threads;
    TRY(tl_calloc(b, &team->workers, threads, sizeof *team->workers, "a team of threads"));
    for (int i = 1; i < threads; i++) {
        worker *w = &team->workers[i];
        *w = (worker){.team = team, .number = i};
        if (pthread_create(&w->thread, NULL, serve, w) != 0) {
            status = tl_fail(b, TULLE_ENOMEM, "thread %d of %d could not be started", i + 1, threads);
            goto done;
        }
        team->started++;
    }
    *out = team;
    team = NULL;
done:
    tl_team_free(team);
    return status;
}

void tl_team_free(tl_team *team)
{
    if (!team) return;
    begin_round(team, NULL, NULL, 0, true);
    for (int i = 1; i <= team->started; i++) pthread_join(team->workers[i].thread, NULL);
    pthread_cond_destroy(&team->rest);
    pthread_cond_destroy(&team->wake);
    pthread_mutex_destroy(&team->lock);
    tl_base *b = team->base;
    tl_free(b, team->workers);
    tl_free(b, team);
}

int tl_team_size(const tl_team *team)
{
    return team->size;
}

void tl_team_run(tl_team *team, int threads, tl_work_fn fn, void *arg)
{
    if (threads <= 0 || threads > team->size) threads = team->size;
    if (threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    begin_round(team, fn, arg, threads, false);
    fn(arg, 0, threads);
    for (int i = 0; i < SPINS && atomic_load(&team->busy) > 0; i++) tl_pause();
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->busy) > 0) pthread_cond_wait(&team->rest, &team->lock);
    pthread_mutex_unlock(&team->lock);
}
