/* SPDX-License-Identifier: MIT
 *
 * roofs.c - two probes: the best of copy, scale, add and triad of STREAM and of reading alone; and products and sums, not
 * fused, of vectors from the first cache. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "peers.h"
#include "roofs.h"

/* ---- memory */

typedef struct probe {
    double   *a, *b, *c;
    int64_t   n;
    int       threads, kind;
    pthread_barrier_t barrier;
    double    sum[256];
} probe;

typedef struct prober { probe *p; int thread; pthread_t id; double best[5]; } prober;

static const double moved[5] = {2, 2, 3, 3, 1};         /* arrays */

static void *probe_work(void *arg)
{
    prober *me = arg;
    probe *p = me->p;
    int64_t from = p->n / p->threads * me->thread, to = me->thread + 1 == p->threads ? p->n : from + p->n / p->threads;
    double *a = p->a, *b = p->b, *c = p->c;
    for (int64_t i = from; i < to; i++) a[i] = 1, b[i] = 2, c[i] = 3;
    for (int kind = 0; kind < 5; kind++)
        for (int run = 0; run < 6; run++) {
            double sum[8] = {0};
            pthread_barrier_wait(&p->barrier);
            double start = peer_now();
            switch (kind) {
            case 0: for (int64_t i = from; i < to; i++) c[i] = a[i]; break;
            case 1: for (int64_t i = from; i < to; i++) b[i] = 3 * c[i]; break;
            case 2: for (int64_t i = from; i < to; i++) c[i] = a[i] + b[i]; break;
            case 3: for (int64_t i = from; i < to; i++) a[i] = b[i] + 3 * c[i]; break;
            default:
                for (int64_t i = from; i + 8 <= to; i += 8)
                    for (int k = 0; k < 8; k++) sum[k] += a[i + k];
            }
            pthread_barrier_wait(&p->barrier);
            double speed = moved[kind] * 8 * (double)p->n / (peer_now() - start);
            for (int k = 0; k < 8; k++) p->sum[me->thread] += sum[k];
            if (speed > me->best[kind]) me->best[kind] = speed;
        }
    return NULL;
}

/* ---- arithmetic: eight vectors of sums in registers, x from the first cache */

enum { ARITHMETIC_BYTES = 8192, ARITHMETIC_TIMES = 2000 };

#define ARITHMETIC(name, isa, real, bytes)                                                              \
    isa __attribute__((noinline)) static void name(const char *x, int times, char *y)                   \
    {                                                                                                   \
        typedef real vec __attribute__((vector_size(bytes)));                                           \
        vec s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;                    \
        for (int t = 0; t < times; t++)                                                                 \
            for (const char *at = x; at < x + ARITHMETIC_BYTES; at += 8 * (bytes)) {                    \
                const vec *v = (const vec *)(const void *)at, f = (real)t - (vec){0};                   \
                s0 += f * v[0], s1 += f * v[1], s2 += f * v[2], s3 += f * v[3];                         \
                s4 += f * v[4], s5 += f * v[5], s6 += f * v[6], s7 += f * v[7];                         \
            }                                                                                           \
        s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;                                                         \
        memcpy(y, &s0, sizeof s0);                                                                      \
    }
typedef void arithmetic_loop(const char *x, int times, char *y);
ARITHMETIC(plain_f32, , float, 16)
ARITHMETIC(plain_f64, , double, 16)
#if defined(__x86_64__)
ARITHMETIC(avx2_f32, __attribute__((target("avx2"))), float, 32)
ARITHMETIC(avx2_f64, __attribute__((target("avx2"))), double, 32)
ARITHMETIC(avx512_f32, __attribute__((target("avx512f"))), float, 64)
ARITHMETIC(avx512_f64, __attribute__((target("avx512f"))), double, 64)
#endif

typedef struct arithmetic { arithmetic_loop *loop; pthread_barrier_t *barrier; double best; pthread_t id; } arithmetic;

static void *arithmetic_work(void *arg)
{
    arithmetic *me = arg;
    _Alignas(64) char x[ARITHMETIC_BYTES] = {0}, y[64];
    for (int run = 0; run < 300; run++) {                              /* clocks rise, others come and go */
        pthread_barrier_wait(me->barrier);
        double start = peer_now();
        me->loop(x, ARITHMETIC_TIMES, y);
        pthread_barrier_wait(me->barrier);
        double speed = 2.0 * ARITHMETIC_BYTES * ARITHMETIC_TIMES / (peer_now() - start);
        if (speed > me->best) me->best = speed;
    }
    return NULL;
}

/* Operations a second, all threads, in values of `size` bytes. */
static double operations(int threads, size_t size)
{
    arithmetic *all = calloc((size_t)threads, sizeof *all);
    pthread_barrier_t barrier;
    arithmetic_loop *loop = size == 8 ? plain_f64 : plain_f32;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) loop = size == 8 ? avx2_f64 : avx2_f32;
    if (__builtin_cpu_supports("avx512f")) loop = size == 8 ? avx512_f64 : avx512_f32;
#endif
    if (!all) abort();
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        all[t] = (arithmetic){.loop = loop, .barrier = &barrier};
        if (pthread_create(&all[t].id, NULL, arithmetic_work, &all[t])) abort();
    }
    for (int t = 0; t < threads; t++) pthread_join(all[t].id, NULL);
    double best = all[0].best * threads / (double)size;
    pthread_barrier_destroy(&barrier);
    free(all);
    return best;
}

/* Bytes a second. */
static double bandwidth(int threads)
{
    probe p = {.n = 12 << 20, .threads = threads};
    prober *all = calloc((size_t)threads, sizeof *all);
    double best = 0;
    p.a = malloc(sizeof(double) * (size_t)p.n);
    p.b = malloc(sizeof(double) * (size_t)p.n);
    p.c = malloc(sizeof(double) * (size_t)p.n);
    if (!all || !p.a || !p.b || !p.c || threads > 256) abort();
    pthread_barrier_init(&p.barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        all[t] = (prober){.p = &p, .thread = t};
        if (pthread_create(&all[t].id, NULL, probe_work, &all[t])) abort();
    }
    for (int t = 0; t < threads; t++) pthread_join(all[t].id, NULL);
    printf("bandwidth in GB/s: copy %.1f, scale %.1f, add %.1f, triad %.1f, read %.1f\n", 1e-9 * all[0].best[0],
           1e-9 * all[0].best[1], 1e-9 * all[0].best[2], 1e-9 * all[0].best[3], 1e-9 * all[0].best[4]);
    for (int k = 0; k < 5; k++)
        if (all[0].best[k] > best) best = all[0].best[k];
    pthread_barrier_destroy(&p.barrier);
    free(p.a), free(p.b), free(p.c), free(all);
    return best;
}

roofs roofs_measure(int threads)
{
    roofs r = {bandwidth(threads), {operations(threads, 4), operations(threads, 8)}};
    printf("arithmetic in GFLOPS: single %.1f, double %.1f\n", 1e-9 * r.operations[0], 1e-9 * r.operations[1]);
    return r;
}
