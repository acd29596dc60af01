/* SPDX-License-Identifier: MIT
 *
 * fake_ranks.h - ranks that are threads of one process, with an adversarial transport between them.
 *
 * Messages ("letters") may be sent at isend() or as late as waitall(), and are delivered out of order where
 * the rules allow it; receive buffers are first filled with garbage, so that reading them too early is
 * detected.  Calls may be delayed.  The n-th call of one rank may fail.  A wait of more than 20 seconds
 * without progress fails with a message: a deadlock makes the test fail instead of hanging it. */
#ifndef FAKE_RANKS_H
#define FAKE_RANKS_H
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tulle_mpi.h"

enum { FAKE_RANKS = 9, FAKE_PENDING = 4096, FAKE_WORDS = 1024 };

typedef struct fake_letter {
    struct fake_letter *next;
    int     from, to, tag;
    int64_t bytes;
    char    data[];
} fake_letter;

typedef struct fake_pending { bool send; bool done; const void *out; void *in; int64_t bytes; int peer,
                             tag; } fake_pending;

struct fake_world;
typedef struct fake_rank {
    struct fake_world *world;
    int          rank;
    int64_t      calls;
    uint64_t     random;
    int          count;
    fake_pending pending[FAKE_PENDING];
    char         why[1200];
} fake_rank;

typedef struct fake_world {
    int             size;
    pthread_mutex_t lock;
    pthread_cond_t  change;
    int             arrived, kind;              /* of the current collective */
    int64_t         generation, acc[FAKE_WORDS], result[FAKE_WORDS];
    int64_t         table[FAKE_RANKS][FAKE_RANKS], told[FAKE_RANKS][FAKE_RANKS];
    fake_letter    *first, **last;
    bool            failed, timed_out, mismatch;
    char            why[1200];
    int             fail_rank;                  /* whose fail_call-th call fails; -1: none */
    int64_t         fail_call;
    bool            unkind;                     /* delays and reordering */
    int64_t         bytes, letters;             /* sent so far */
    fake_rank       rank[FAKE_RANKS];
} fake_world;

static uint64_t fake_random(fake_rank *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random;
}

/* Counts a call; true: it fails. */
static bool fake_enter(fake_rank *r)
{
    fake_world *w = r->world;
    if (w->unkind && fake_random(r) % 4 == 0) sched_yield();
    if (w->unkind && fake_random(r) % 64 == 0) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    if (r->rank != w->fail_rank || r->calls++ != w->fail_call) return false;
    snprintf(r->why, sizeof r->why, "call %lld was made to fail", (long long)w->fail_call);
    return true;
}

/* Waits, with the lock held; false: nothing changed for too long. */
static bool fake_wait(fake_world *w)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;                /* computing may be slow: a sanitizer, a busy machine */
    if (pthread_cond_timedwait(&w->change, &w->lock, &until) != ETIMEDOUT) return true;
    w->timed_out = w->failed = true;
    snprintf(w->why, sizeof w->why, "ranks wait for each other");
    pthread_cond_broadcast(&w->change);
    return false;
}

static int fake_leave(fake_rank *r)             /* with the lock held, which it releases */
{
    fake_world *w = r->world;
    int code = w->failed ? 1 : 0;
    if (code) memcpy(r->why, w->why, sizeof r->why);
    pthread_mutex_unlock(&w->lock);
    return code;
}

/* A barrier: returns true when all ranks have arrived; the last one calls last(). */
static void fake_meet(fake_world *w, int kind, void (*last)(fake_world *))
{
    int64_t now = w->generation;
    if (w->arrived == 0) w->kind = kind;
    if (w->kind != kind) {
        w->mismatch = w->failed = true;
        snprintf(w->why, sizeof w->why, "ranks are in different collectives");
        pthread_cond_broadcast(&w->change);
    }
    if (++w->arrived == w->size && !w->failed) {
        last(w);
        w->arrived = 0;
        w->generation++;
        pthread_cond_broadcast(&w->change);
    }
    while (w->generation == now && !w->failed && fake_wait(w)) continue;
}

static void fake_copy_result(fake_world *w) { memcpy(w->result, w->acc, sizeof w->acc); }
static void fake_copy_table(fake_world *w) { memcpy(w->told, w->table, sizeof w->table); }

static int fake_allreduce(void *user, int64_t *values, int count, tulle_reduce op)
{
    fake_rank *r = user;
    fake_world *w = r->world;
    if (fake_enter(r)) return 1;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < count && !w->failed; i++) {
        int64_t a = w->acc[i], v = values[i];
        if (w->arrived == 0) w->acc[i] = v;
        else if (op == TULLE_SUM) w->acc[i] = (int64_t)((uint64_t)a + (uint64_t)v);
        else if (op == TULLE_MIN ? v < a : v > a) w->acc[i] = v;
    }
    if (!w->failed) fake_meet(w, 16 * count + (int)op, fake_copy_result);
    if (!w->failed) memcpy(values, w->result, (size_t)count * sizeof *values);
    return fake_leave(r);
}

static int fake_alltoall(void *user, const int64_t *out, int64_t *in)
{
    fake_rank *r = user;
    fake_world *w = r->world;
    if (fake_enter(r)) return 1;
    pthread_mutex_lock(&w->lock);
    memcpy(w->table[r->rank], out, (size_t)w->size * sizeof *out);
    if (!w->failed) fake_meet(w, 7, fake_copy_table);
    for (int k = 0; k < w->size && !w->failed; k++) in[k] = w->told[k][r->rank];
    return fake_leave(r);
}

static void fake_post(fake_rank *r, fake_pending *p)
{
    fake_world *w = r->world;
    fake_letter *l = malloc(sizeof *l + (size_t)p->bytes);
    if (!l) abort();
    *l = (fake_letter){.from = r->rank, .to = p->peer, .tag = p->tag, .bytes = p->bytes};
    memcpy(l->data, p->out, (size_t)p->bytes);
    *w->last = l;
    w->last = &l->next;
    w->bytes += p->bytes;
    w->letters++;
    p->done = true;
    pthread_cond_broadcast(&w->change);
}

static int fake_isend(void *user, const void *data, int64_t bytes, int to, int tag)
{
    fake_rank *r = user;
    fake_world *w = r->world;
    if (fake_enter(r)) return 1;
    if (r->count == FAKE_PENDING || to < 0 || to >= w->size || bytes <= 0) abort();
    pthread_mutex_lock(&w->lock);
    fake_pending *p = &r->pending[r->count++];
    *p = (fake_pending){.send = true, .out = data, .bytes = bytes, .peer = to, .tag = tag};
    bool waiting = false;               /* an earlier message to the same rank must go first */
    for (int i = 0; i < r->count - 1; i++)
        waiting |= r->pending[i].send && !r->pending[i].done && r->pending[i].peer == to
                   && r->pending[i].tag == tag;
    if (!waiting && !(w->unkind && fake_random(r) % 2)) fake_post(r, p);
    return fake_leave(r);
}

static int fake_irecv(void *user, void *data, int64_t bytes, int from, int tag)
{
    fake_rank *r = user;
    if (fake_enter(r)) return 1;
    if (r->count == FAKE_PENDING || from < 0 || from >= r->world->size || bytes <= 0) abort();
    memset(data, 0xA5, (size_t)bytes);
    r->pending[r->count++] = (fake_pending){.in = data, .bytes = bytes, .peer = from, .tag = tag};
    pthread_mutex_lock(&r->world->lock);
    return fake_leave(r);
}

/* Matches the oldest message with the oldest receive of this sender and tag. */
static bool fake_take(fake_rank *r, fake_pending *p)
{
    fake_world *w = r->world;
    for (fake_letter **at = &w->first; *at; at = &(*at)->next) {
        fake_letter *l = *at;
        if (l->to != r->rank || l->from != p->peer || l->tag != p->tag) continue;
        if (l->bytes != p->bytes) {
            w->mismatch = w->failed = true;
            snprintf(w->why, sizeof w->why, "%lld bytes came, %lld were expected", (long long)l->bytes,
                     (long long)p->bytes);
            return false;
        }
        memcpy(p->in, l->data, (size_t)l->bytes);
        *at = l->next;
        if (!*at) w->last = at;
        free(l);
        p->done = true;
        return true;
    }
    return false;
}

static int fake_waitall(void *user)
{
    fake_rank *r = user;
    fake_world *w = r->world;
    if (fake_enter(r)) return 1;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < r->count; i++)
        if (r->pending[i].send && !r->pending[i].done) fake_post(r, &r->pending[i]);
    for (bool left = true; left && !w->failed;) {
        bool took = false;
        left = false;
        int turn = w->unkind && r->count > 0 ? (int)(fake_random(r) % (uint64_t)r->count) : 0;
        for (int k = 0; k < r->count; k++) {
            fake_pending *p = &r->pending[(k + turn) % r->count];
            bool first = !p->done;      /* of its sender and tag */
            for (fake_pending *q = r->pending; first && q < p; q++)
                first = q->done || q->send || q->peer != p->peer || q->tag != p->tag;
            if (first && fake_take(r, p)) took = true;
            left |= !p->done;
        }
        if (left && !took && !w->failed) fake_wait(w);
    }
    r->count = 0;
    return fake_leave(r);
}

static void fake_fail(void *user, const char *sentence)
{
    fake_rank *r = user;
    fake_world *w = r->world;
    pthread_mutex_lock(&w->lock);
    if (!w->failed) snprintf(w->why, sizeof w->why, "%s", sentence);
    w->failed = true;
    memcpy(r->why, w->why, sizeof r->why);
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

static const char *fake_why(void *user) { return ((fake_rank *)user)->why; }

static fake_world *fake_world_new(int size, bool unkind, uint64_t seed)
{
    fake_world *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->size = size;
    w->unkind = unkind;
    w->fail_rank = -1;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
    for (int r = 0; r < size; r++) {
        w->rank[r].world = w;
        w->rank[r].rank = r;
        w->rank[r].random = (seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)r * 0xC2B2AE3D27D4EB4Fu + 1;
    }
    return w;
}

static void fake_world_free(fake_world *w)
{
    for (fake_letter *l = w->first; l;) {
        fake_letter *next = l->next;
        free(l);
        l = next;
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->change);
    free(w);
}

static tulle_transport fake_transport(fake_world *w, int rank)
{
    return (tulle_transport){.rank = rank, .size = w->size, .user = &w->rank[rank],
                             .allreduce = fake_allreduce,
                             .alltoall = fake_alltoall, .isend = fake_isend, .irecv = fake_irecv,
                             .waitall = fake_waitall, .fail = fake_fail, .why = fake_why};
}

#endif
