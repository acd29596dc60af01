/* SPDX-License-Identifier: MIT
 *
 * peers.c - shared by the peers: a clock, sorting of times, a product as plain arrays. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>
#include "peers.h"

static clockid_t watch = CLOCK_MONOTONIC;

void peer_use_cpu_time(void)
{
    watch = CLOCK_PROCESS_CPUTIME_ID;
}

double peer_now(void)
{
    struct timespec t;
    clock_gettime(watch, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

void peer_sort(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
}

int peer_result_create(int64_t rows, int64_t nnz, peer_result *C)
{
    *C = (peer_result){.rows = rows, .nnz = nnz};
    C->ptr = malloc((size_t)(rows + 1) * sizeof *C->ptr);
    C->idx = malloc((size_t)(nnz ? nnz : 1) * sizeof *C->idx);
    C->val = malloc((size_t)(nnz ? nnz : 1) * sizeof *C->val);
    if (C->ptr && C->idx && C->val) return 0;
    peer_result_free(C);
    return -1;
}

void peer_result_finish(peer_result *C)
{
    C->sorted = 1;
    for (int64_t i = 0; i < C->rows; i++)
        for (int64_t k = C->ptr[i] + 1; k < C->ptr[i + 1]; k++)
            if (C->idx[k - 1] >= C->idx[k]) C->sorted = 0;
}

void peer_result_free(peer_result *C)
{
    free(C->ptr);
    free(C->idx);
    free(C->val);
    *C = (peer_result){0};
}
