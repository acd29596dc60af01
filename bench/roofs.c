/* SPDX-License-Identifier: MIT
 *
 * roofs.c - two probes: memory bandwidth, by STREAM's copy, scale, add and triad and by reading alone; and
 * arithmetic, by unfused multiplications and additions of vectors from the L1 cache.  The three arrays are at
 * least four times as large as the last-level cache.  A sample is one run of each kernel.  The bandwidth is
 * that of the fastest of the five kernels, each by the median of its samples since roofs_anew(), because the
 * times it is compared with are medians, too; the arithmetic rate is the best sample of all, which is what
 * the cores can do undisturbed. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "peers.h"
#include "roofs.h"

enum { MEMORY = 5, SINGLE = MEMORY, PROBES = SINGLE + 2, SAMPLES = 64 };

typedef struct prober { struct roofs *r; int thread; pthread_t id; double sum; } prober;

struct roofs {
    int               threads, count;
    int64_t           n;
    double           *a, *b, *c;
    prober           *all;
    pthread_barrier_t barrier;
    double            speed[MEMORY][SAMPLES];           /* bytes a second      */
    double            most[PROBES - MEMORY];            /* operations a second */
};

/* ---- memory */

static const double moved[MEMORY] = {2, 2, 3, 3, 1};    /* arrays */

static void move(prober *me, int kind)
{
    const struct roofs *r = me->r;
    int64_t from = r->n / r->threads * me->thread;
    int64_t to = me->thread + 1 == r->threads ? r->n : from + r->n / r->threads;
    double *a = r->a, *b = r->b, *c = r->c, sum[8] = {0};
    switch (kind) {
    case 0: for (int64_t i = from; i < to; i++) c[i] = a[i]; break;
    case 1: for (int64_t i = from; i < to; i++) b[i] = 3 * c[i]; break;
    case 2: for (int64_t i = from; i < to; i++) c[i] = a[i] + b[i]; break;
    case 3: for (int64_t i = from; i < to; i++) a[i] = b[i] + 3 * c[i]; break;
    default:
        for (int64_t i = from; i + 8 <= to; i += 8)
            for (int k = 0; k < 8; k++) sum[k] += a[i + k];
    }
    for (int k = 0; k < 8; k++) me->sum += sum[k];
}

/* ---- arithmetic: eight vectors of sums in registers, x from the first cache */

enum { ARITHMETIC_BYTES = 8192, ARITHMETIC_TIMES = 8000 };

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

/* By values of `size` bytes. */
static arithmetic_loop *arithmetic(size_t size)
{
    arithmetic_loop *loop = size == 8 ? plain_f64 : plain_f32;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) loop = size == 8 ? avx2_f64 : avx2_f32;
    if (__builtin_cpu_supports("avx512f")) loop = size == 8 ? avx512_f64 : avx512_f32;
#endif
    return loop;
}

/* ---- samples */

/* All threads together: their work a second. */
static double timed(prober *me, int kind)
{
    struct roofs *r = me->r;
    _Alignas(64) char x[ARITHMETIC_BYTES] = {0}, y[64];
    pthread_barrier_wait(&r->barrier);
    double start = peer_now(), work;
    if (kind < MEMORY) {
        move(me, kind);
        work = moved[kind] * 8 * (double)r->n;
    } else {
        const size_t size = kind == SINGLE ? 4 : 8;
        arithmetic(size)(x, ARITHMETIC_TIMES, y);
        work = 2.0 * ARITHMETIC_BYTES * ARITHMETIC_TIMES * r->threads / (double)size;
    }
    pthread_barrier_wait(&r->barrier);
    return work / (peer_now() - start);
}

static void *probe(void *arg)
{
    prober *me = arg;
    struct roofs *r = me->r;
    for (int kind = 0; kind < PROBES; kind++)
        for (int run = 0; run < (kind < MEMORY ? 1 : 10); run++) {
            double speed = timed(me, kind);
            if (me->thread > 0) continue;
            if (kind < MEMORY) r->speed[kind][r->count] = speed;
            else if (speed > r->most[kind - MEMORY]) r->most[kind - MEMORY] = speed;
        }
    return NULL;
}

void roofs_sample(roofs *r)
{
    if (r->count == SAMPLES) return;
    for (int t = 0; t < r->threads; t++)
        if (pthread_create(&r->all[t].id, NULL, probe, &r->all[t])) abort();
    for (int t = 0; t < r->threads; t++) pthread_join(r->all[t].id, NULL);
    r->count++;
}

void roofs_anew(roofs *r)
{
    r->count = 0;
}

static double typical(const roofs *r, int kind, bool best)
{
    double speed[SAMPLES];
    memcpy(speed, r->speed[kind], sizeof speed);
    peer_sort(speed, r->count);
    return speed[best ? r->count - 1 : r->count / 2];
}

double roofs_bytes(const roofs *r, bool best)
{
    double most = 0;
    for (int kind = 0; kind < MEMORY; kind++) {
        double speed = typical(r, kind, best);
        if (speed > most) most = speed;
    }
    return most;
}

double roofs_operations(const roofs *r, bool is_double)
{
    return r->most[is_double];
}

/* Values of an array; all three take at most a quarter of the machine's memory, since in a virtual machine
 * sysconf() may report the cache of the whole host. */
static int64_t array_length(void)
{
    int64_t n = 8 << 20, kilobytes = 0;
    int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) / 12 * sysconf(_SC_PAGESIZE) / 8;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (f) {
        if (fscanf(f, "%" SCNd64, &kilobytes) != 1) kilobytes = 0;
        fclose(f);
    }
    int64_t wanted = 4 * kilobytes * 1024 / 3 / 8;
    if (wanted > most) wanted = most;
    return wanted > n ? wanted : n;
}

roofs *roofs_open(int threads)
{
    roofs *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->threads = threads;
    r->n = array_length();
    r->a = malloc(sizeof(double) * (size_t)r->n);
    r->b = malloc(sizeof(double) * (size_t)r->n);
    r->c = malloc(sizeof(double) * (size_t)r->n);
    r->all = calloc((size_t)threads, sizeof *r->all);
    if (!r->a || !r->b || !r->c || !r->all) abort();
    for (int64_t i = 0; i < r->n; i++) r->a[i] = 1, r->b[i] = 2, r->c[i] = 3;
    for (int t = 0; t < threads; t++) r->all[t] = (prober){.r = r, .thread = t};
    pthread_barrier_init(&r->barrier, NULL, (unsigned)threads);
    for (int k = 0; k < 9; k++) roofs_sample(r);
    printf("bandwidth in GB/s: copy %.1f, scale %.1f, add %.1f, triad %.1f, read %.1f\n",
           1e-9 * typical(r, 0, true), 1e-9 * typical(r, 1, true),
           1e-9 * typical(r, 2, true), 1e-9 * typical(r, 3, true), 1e-9 * typical(r, 4, true));
    printf("arithmetic in GFLOPS: single %.1f, double %.1f\n", 1e-9 * r->most[0], 1e-9 * r->most[1]);
    return r;
}

void roofs_close(roofs *r)
{
    pthread_barrier_destroy(&r->barrier);
    free(r->a), free(r->b), free(r->c), free(r->all), free(r);
}
