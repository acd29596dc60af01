/* SPDX-License-Identifier: MIT
 *
 * threads.c - a thread pool ("team") of POSIX threads.
 *
 * Plain threads rather than OpenMP: every context has a pool of its own, so contexts in different threads do
 * not disturb each other; the build needs no OpenMP; and the thread sanitizer sees every synchronization.
 *
 * A round of work has one share per thread.  Between two rounds a thread spins for some microseconds, then
 * sleeps; waking up may take longer than a small product.  So the caller does not wait for sleeping threads:
 * when its own share is done it also runs the shares that have not begun, and then waits only for threads
 * that are at work.  A thread that wakes up too late finds its share taken.
 *
 * Linux may schedule a woken thread on the processor of the thread that woke it, where it waits some
 * milliseconds although other processors are idle (200 times out of 200 on a virtual machine with two
 * processors), and a new thread on the processor of its creator.  To avoid that, a thread is woken or started
 * with the caller's processor removed from its affinity mask; it restores the mask as soon as it runs.
 *
 * fork() copies a pool without its threads, and with its mutex in an unknown state.  A child notices that the
 * process ID is not the pool's: it abandons mutex and threads, and starts its own threads when there is work
 * for them. */
#define _GNU_SOURCE
#include "base/base.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { SPINS = 2000 };

typedef struct worker {
    tl_team         *team;
    int              number;
    pthread_t        thread;
    _Atomic uint64_t taken;             /* the last round in which this thread's share was taken   */
    pthread_cond_t   wake;
    bool             asleep;            /* these three are written only while holding team->lock   */
#if defined(__linux__)
    bool             sent;              /* its affinity mask is reduced at present ...             */
    cpu_set_t        all;               /* ... and this is the full one                            */
#endif
} worker;

struct tl_team {
    int             size, started;
    int64_t         process;            /* the process that started the threads       */
    pthread_mutex_t lock;               /* for sleeping and waking                    */
    pthread_cond_t  rest;               /* the caller sleeps here                     */
    atomic_int      sleepers;           /* workers that sleep                         */
    _Atomic uint64_t round;             /* incrementing it starts a round             */
    atomic_int      finished;           /* shares that workers have finished in this round */
    atomic_bool     waiting;            /* the caller sleeps until all are finished   */
    atomic_bool     closing;
    atomic_int      wanted;             /* shares; wanted, fn and arg are set before the round changes */
    _Atomic tl_work_fn fn;
    void *_Atomic   arg;
    tl_base        *base;
    worker         *workers;            /* number 0 is not used                       */
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

int64_t tl_process(void)
{
    return (int64_t)getpid();
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

/* Takes a worker's share of the round; false: it was already taken.  At the end of a round all shares are
 * taken, including those of threads that were not needed.  So a thread whose take() succeeds has read fn and
 * arg of this round: those of the next round are written only after all shares of this one were taken. */
static bool take(worker *w, uint64_t round)
{
    uint64_t last = atomic_load(&w->taken);
    return last < round && atomic_compare_exchange_strong(&w->taken, &last, round);
}

/* ---- sleep */

#if defined(__linux__)
/* Keeps a thread that sleeps or was just created from starting on the caller's processor. */
static void send_away(worker *w, int here)
{
    cpu_set_t others;
    if (w->sent || here < 0 || here >= CPU_SETSIZE) return;
    if (pthread_getaffinity_np(w->thread, sizeof w->all, &w->all) != 0) return;
    others = w->all;
    CPU_CLR(here, &others);
    w->sent = CPU_COUNT(&others) > 0 && CPU_COUNT(&others) < CPU_COUNT(&w->all)
              && pthread_setaffinity_np(w->thread, sizeof others, &others) == 0;
}

static void come_back(worker *w)
{
    if (w->sent) pthread_setaffinity_np(w->thread, sizeof w->all, &w->all);
    w->sent = false;                    /* no lock: others read it only while the thread sleeps */
}

static int this_processor(void) { return sched_getcpu(); }
#else
static void send_away(worker *w, int here) { (void)w, (void)here; }
static void come_back(worker *w) { (void)w; }
static int  this_processor(void) { return -1; }
#endif

/* Sleeps until the round is no longer the one seen. */
static void sleep_after(worker *w, uint64_t seen)
{
    tl_team *team = w->team;
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleepers, 1);
    w->asleep = true;
    while (atomic_load(&team->round) == seen) pthread_cond_wait(&w->wake, &team->lock);
    w->asleep = false;
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
    come_back(w);
}

/* Wakes the first workers, as many as there is work for.  Changing the affinity mask takes a microsecond of
 * the caller's time, so it is done for the first ones only: a machine with many processors has idle ones
 * anyway. */
static void wake(tl_team *team, int wanted)
{
    enum { SENT = 32 };
    const int end = wanted <= team->started ? wanted : team->started + 1, here = this_processor();
    pthread_mutex_lock(&team->lock);
    for (int i = 1; i < end && i <= SENT; i++)
        if (team->workers[i].asleep) send_away(&team->workers[i], here);
    pthread_mutex_unlock(&team->lock);
    for (int i = 1; i < end; i++) pthread_cond_signal(&team->workers[i].wake);
}

static void *serve(void *p)
{
    worker *w = p;
    tl_team *team = w->team;
    uint64_t seen = 0;
    pthread_mutex_lock(&team->lock);    /* waits until start() is done */
    pthread_mutex_unlock(&team->lock);
    come_back(w);
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&team->round) == seen; i++) tl_pause();
        if (atomic_load(&team->round) == seen) sleep_after(w, seen);
        seen = atomic_load(&team->round);
        if (atomic_load(&team->closing)) return NULL;
        int wanted = atomic_load(&team->wanted);
        tl_work_fn fn = atomic_load(&team->fn);
        void *arg = atomic_load(&team->arg);
        if (w->number >= wanted || !take(w, seen)) continue;
        fn(arg, w->number, wanted);
        atomic_fetch_add(&team->finished, 1);
        if (atomic_load(&team->waiting)) {
            pthread_mutex_lock(&team->lock);
            pthread_cond_signal(&team->rest);
            pthread_mutex_unlock(&team->lock);
        }
    }
}

/* Starts a round and returns its number. */
static uint64_t begin_round(tl_team *team, tl_work_fn fn, void *arg, int wanted, bool closing)
{
    atomic_store(&team->fn, fn);
    atomic_store(&team->arg, arg);
    atomic_store(&team->wanted, wanted);
    atomic_store(&team->closing, closing);
    atomic_store(&team->finished, 0);
    uint64_t round = atomic_fetch_add(&team->round, 1) + 1;
    if (atomic_load(&team->sleepers) > 0) wake(team, closing ? team->size : wanted);
    return round;
}

/* Waits until the workers have finished this many shares. */
static void wait_for(tl_team *team, int shares)
{
    for (int i = 0; i < SPINS && atomic_load(&team->finished) < shares; i++) tl_pause();
    if (atomic_load(&team->finished) == shares) return;
    pthread_mutex_lock(&team->lock);
    /* An exchange instead of a store, because `finished` must be read after it, and qemu-user on x86-64 does
     * not keep the order of ARM's store-release and load-acquire. */
    atomic_exchange(&team->waiting, true);
    while (atomic_load(&team->finished) < shares) pthread_cond_wait(&team->rest, &team->lock);
    atomic_store(&team->waiting, false);
    pthread_mutex_unlock(&team->lock);
}

/* Starts all threads except number 0, which is the caller; false: not all could be started. */
static bool start(tl_team *team)
{
    team->process = tl_process();
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->rest, NULL);
    const int here = this_processor();
    pthread_mutex_lock(&team->lock);
    for (int i = 1; i < team->size; i++) {
        worker *w = &team->workers[i];
        *w = (worker){.team = team, .number = i};
        pthread_cond_init(&w->wake, NULL);
        if (pthread_create(&w->thread, NULL, serve, w) != 0) break;
        team->started++;
        send_away(w, here);
    }
    pthread_mutex_unlock(&team->lock);
    return team->started == team->size - 1;
}

/* In a child of fork().  If threads cannot be started, the caller runs their shares. */
static void start_again(tl_team *team)
{
    team->started = 0;
    atomic_store(&team->round, 0);
    atomic_store(&team->sleepers, 0);
    atomic_store(&team->waiting, false);
    atomic_store(&team->closing, false);
    for (int i = 1; i < team->size; i++) team->workers[i] = (worker){.team = team, .number = i};
    start(team);
}

tulle_status tl_team_create(tl_base *b, int threads, tl_team **out)
{
    tulle_status status = TULLE_OK;
    tl_team *team = NULL;
    if (threads <= 0) threads = tl_cores();
    *out = NULL;
    TRY(tl_calloc(b, &team, 1, sizeof *team, "a team of threads"));
    team->base = b;
    team->size = threads;
    TRY(tl_calloc(b, &team->workers, threads, sizeof *team->workers, "a team of threads"));
    if (!start(team)) {
        status = tl_fail(b, TULLE_ENOMEM, "thread %d of %d could not be started", team->started + 2, threads);
        goto done;
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
    if (team->process == tl_process()) {
        begin_round(team, NULL, NULL, 0, true);
        for (int i = 1; i <= team->started; i++) {
            pthread_join(team->workers[i].thread, NULL);
            pthread_cond_destroy(&team->workers[i].wake);
        }
        pthread_cond_destroy(&team->rest);
        pthread_mutex_destroy(&team->lock);
    }
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
    if (team->process != tl_process()) start_again(team);
    uint64_t round = begin_round(team, fn, arg, threads, false);
    int theirs = threads - 1;
    fn(arg, 0, threads);
    for (int i = 1; i < threads; i++) {
        if (!take(&team->workers[i], round)) continue;
        fn(arg, i, threads);
        theirs--;
    }
    for (int i = threads; i < team->size; i++) atomic_store(&team->workers[i].taken, round);
    wait_for(team, theirs);
}
