/* SPDX-License-Identifier: MIT
 *
 * forecast.c - predicts the bytes that A*A would move on 1 to 1024 ranks, and the time, from patterns alone.
 *
 *     build/bench/forecast RECIPE [LATENCY BANDWIDTH PRODUCTS]
 *                                   seconds, bytes per second, products per second and rank
 *
 * A simulated cluster: nothing is sent, and of C only the pattern is computed.  1-D is the product of
 * src/dist/product.c: equal blocks of rows; each rank receives every row of B that it needs from other ranks
 * once, with 8 bytes for its length and an index and a value per entry.  2-D is that of src/dist/summa.c on a
 * grid of R x C ranks: a row of A is sent to all ranks in its row of the grid, the entries of a row of B to
 * the ranks in the grid columns that they belong to, and blocks of C back to the owners of their rows; the
 * grid with the fewest bytes is shown.  The bytes are exactly those that tulle would move (bytes of
 * tulle_dist_stats).  A rank's time is messages * latency + bytes / bandwidth + products / rate; the time
 * shown is that of the slowest rank.  Waiting and contention are not modelled.  bench/mpi/curve.py draws the
 * tables. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tulle.h"

enum { MOST = 1024, MOST_COLS = 64 };    /* ranks; columns of a grid */

typedef struct model { double latency, bandwidth, rate; } model;
typedef struct cost { double bytes, most, seconds; } cost;      /* total; largest of a rank; slowest rank */

typedef struct pattern { int64_t *ptr; int32_t *col; } pattern;

static pattern A, C;
static int64_t n;
static double  entry_bytes = 4 + 8;

static int64_t part(int64_t count, int t, int of)
{
    return count / of * t + (t < count % of ? t : count % of);
}

static void add(cost *c, const model *m, double messages, double bytes, double products)
{
    double seconds = messages * m->latency + bytes / m->bandwidth + products / m->rate;
    c->bytes += bytes;
    if (bytes > c->most) c->most = bytes;
    if (seconds > c->seconds) c->seconds = seconds;
}

static int owner_of(int64_t row, int ranks)
{
    int o = (int)((double)row / (double)n * ranks);
    if (o >= ranks) o = ranks - 1;
    while (o > 0 && part(n, o, ranks) > row) o--;
    while (part(n, o + 1, ranks) <= row) o++;
    return o;
}

static cost one_dimension(int ranks, const model *m, int *seen)
{
    cost c = {0};
    for (int64_t i = 0; i < n; i++) seen[i] = -1;
    for (int r = 0; r < ranks; r++) {
        int64_t first = part(n, r, ranks), end = part(n, r + 1, ranks);
        double bytes = 0, products = 0, peers = 0;
        char owner[MOST] = {0};
        for (int64_t k = A.ptr[first]; k < A.ptr[end]; k++) {
            int64_t j = A.col[k], length = A.ptr[j + 1] - A.ptr[j];
            products += (double)length;
            if (seen[j] == r || (j >= first && j < end)) continue;
            seen[j] = r;
            bytes += 8 + entry_bytes * (double)length;
            int o = owner_of(j, ranks);
            peers += !owner[o];
            owner[o] = 1;
        }
        add(&c, m, 4 * peers, bytes, products);         /* lists, lengths, columns, values */
    }
    return c;
}

/* count[i * cols + q] = entries of row i in the columns of column q of the grid. */
static void count_blocks(const pattern *p, int cols, int32_t *count)
{
    for (int64_t i = 0; i < n; i++) {
        int q = 0;
        for (int k = 0; k < cols; k++) count[i * cols + k] = 0;
        for (int64_t k = p->ptr[i]; k < p->ptr[i + 1]; k++) {
            while (p->col[k] >= part(n, q + 1, cols)) q++;
            count[i * cols + q]++;
        }
    }
}

/* One row of the grid: ranks g .. g+cols-1. */
static void grid_row(cost *c, const model *m, int g, int cols, int ranks, const int32_t *a,
                     const int32_t *own_c, int *seen, int64_t *named)
{
    int64_t first = part(n, g, ranks), end = part(n, g + cols, ranks), count = 0;
    double products[MOST_COLS] = {0}, peers = 0;
    char owner[MOST] = {0};
    for (int64_t k = A.ptr[first]; k < A.ptr[end]; k++) {
        for (int q = 0; q < cols; q++) products[q] += a[(int64_t)A.col[k] * cols + q];
        if (seen[A.col[k]] == g) continue;
        seen[A.col[k]] = g;
        named[count++] = A.col[k];
        int o = owner_of(A.col[k], ranks);
        peers += !owner[o];
        owner[o] = 1;
    }
    for (int q = 0; q < cols; q++) {
        int64_t from = part(n, g + q, ranks), to = part(n, g + q + 1, ranks);
        double bytes = 8 * (double)(end - first - (to - from))
                       + entry_bytes * (double)(A.ptr[end] - A.ptr[first] - (A.ptr[to] - A.ptr[from]));
        for (int64_t k = 0; k < count; k++)
            if (named[k] < from || named[k] >= to) bytes += 8 + entry_bytes * a[named[k] * cols + q];
        bytes += 8.0 * (cols - 1) * (double)(to - from) + entry_bytes * (double)(C.ptr[to] - C.ptr[from]);
        for (int64_t i = from; i < to; i++) bytes -= entry_bytes * own_c[i * cols + q];
        add(c, m, 6.0 * (cols - 1) + 4 * (peers - owner[g + q]), bytes, products[q]);
    }
}

/* Finds the grid that moves the fewest bytes. */
static cost two_dimensions(int ranks, const model *m, int *seen, int32_t *a, int32_t *own_c, int64_t *named,
                           int *cols)
{
    cost best = {.bytes = INFINITY};
    *cols = 1;
    for (int c = 2; c <= ranks && c <= MOST_COLS; c++) {
        if (ranks % c != 0) continue;
        cost here = {0};
        count_blocks(&A, c, a);
        count_blocks(&C, c, own_c);
        for (int64_t i = 0; i < n; i++) seen[i] = -1;
        for (int g = 0; g < ranks; g += c) grid_row(&here, m, g, c, ranks, a, own_c, seen, named);
        if (here.bytes < best.bytes) best = here, *cols = c;
    }
    return best;
}

static pattern pattern_of(const tulle_csr *v)
{
    return (pattern){(int64_t *)(uintptr_t)v->row_ptr, (int32_t *)(uintptr_t)v->col_idx};
}

int main(int argc, char **argv)
{
    tulle_ctx *ctx = NULL;
    tulle_matrix *given = NULL, *wide = NULL, *product = NULL;
    model m = {.latency = 2e-6, .bandwidth = 10e9, .rate = 200e6};
    tulle_options o = {.c_ptr_type = TULLE_I64, .c_idx_type = TULLE_I32};
    if (argc != 2 && argc != 5) {
        fprintf(stderr, "usage: forecast RECIPE [LATENCY BANDWIDTH PRODUCTS]\n");
        return 2;
    }
    if (argc == 5) m = (model){atof(argv[2]), atof(argv[3]), atof(argv[4])};
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) return 1;
    if (tulle_gallery(ctx, argv[1], &given) != TULLE_OK) {
        fprintf(stderr, "forecast: %s\n", tulle_ctx_error(ctx));
        return 1;
    }
    tulle_csr a = tulle_matrix_view(given);
    if (a.rows != a.cols || tulle_csr_convert(ctx, &a, TULLE_F64, TULLE_I64, TULLE_I32, &wide) != TULLE_OK) {
        fprintf(stderr, "forecast: the matrix must be square, with 32-bit columns\n");
        return 1;
    }
    a = tulle_matrix_view(wide);
    a.values = NULL;
    if (tulle_multiply(ctx, &a, &a, &o, &product) != TULLE_OK) {
        fprintf(stderr, "forecast: %s\n", tulle_ctx_error(ctx));
        return 1;
    }
    tulle_csr c = tulle_matrix_view(product);
    n = a.rows;
    A = pattern_of(&a);
    C = pattern_of(&c);
    int *seen = malloc((size_t)n * sizeof *seen + 1);
    int64_t *named = malloc((size_t)n * sizeof *named + 1);
    int32_t *blocks = malloc(2 * (size_t)n * MOST_COLS * sizeof *blocks + 1);
    if (!seen || !named || !blocks) return 1;
    printf("A*A, %s: %" PRId64 " rows, %" PRId64 " entries; latency %g s, %g bytes/s, %g products/s a rank\n",
           argv[1], n, a.nnz, m.latency, m.bandwidth, m.rate);
    printf("%6s %15s %13s %9s   %15s %13s %9s %9s\n", "ranks", "1-D: bytes", "one rank", "ms", "2-D: bytes",
           "one rank", "ms", "grid");
    for (int ranks = 2; ranks <= MOST; ranks *= 2) {
        int cols;
        cost one = one_dimension(ranks, &m, seen);
        cost two = two_dimensions(ranks, &m, seen, blocks, blocks + n * MOST_COLS, named, &cols);
        printf("%6d %15.0f %13.0f %9.3f   %15.0f %13.0f %9.3f %4dx%d\n", ranks, one.bytes, one.most,
               1e3 * one.seconds, two.bytes, two.most, 1e3 * two.seconds, ranks / cols, cols);
        fflush(stdout);
    }
    free(seen);
    free(named);
    free(blocks);
    tulle_matrix_free(given);
    tulle_matrix_free(wide);
    tulle_matrix_free(product);
    tulle_ctx_free(ctx);
    return 0;
}
