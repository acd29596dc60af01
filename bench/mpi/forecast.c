/* SPDX-License-Identifier: MIT
 *
 * forecast.c - what A*A would move on 1 to 1024 ranks, and how long that would take, from the pattern of A
 * alone.
 *
 *     build/bench/forecast RECIPE [LATENCY BANDWIDTH PRODUCTS]     seconds, bytes a second, products a second and rank
 *
 * Nothing is sent and nothing multiplied.  1-D is the product of src/dist: rows in even blocks, each distinct
 * row of B from elsewhere once, 8 bytes for its length and an index and a value for each entry; its bytes are
 * exact.  2-D is SUMMA on a square grid of ranks, which tulle does not have: each rank gets the blocks of A
 * of its row of the grid and those of B of its column, entries alone; its bytes are exact for such blocks,
 * too.  A rank's time is messages * latency + bytes / bandwidth + products / rate; the time shown is that of
 * the slowest rank.  Waiting, contention and the rest of the machine are not in it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tulle.h"

enum { MOST = 1024 };

typedef struct model { double latency, bandwidth, rate; } model;
typedef struct cost { double bytes, most, seconds; } cost;      /* of all ranks, of one, of the slowest */

static int64_t n, *ptr;
static int32_t *col;
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

static cost one_dimension(int ranks, const model *m, int *seen)
{
    cost c = {0};
    for (int64_t i = 0; i < n; i++) seen[i] = -1;
    for (int r = 0; r < ranks; r++) {
        int64_t first = part(n, r, ranks), end = part(n, r + 1, ranks);
        double bytes = 0, products = 0, peers = 0;
        char owner[MOST] = {0};
        for (int64_t k = ptr[first]; k < ptr[end]; k++) {
            int64_t j = col[k], length = ptr[j + 1] - ptr[j];
            products += (double)length;
            if (seen[j] == r || (j >= first && j < end)) continue;
            seen[j] = r;
            bytes += 8 + entry_bytes * (double)length;
            int o = (int)((double)j / (double)n * ranks);
            while (o > 0 && part(n, o, ranks) > j) o--;
            while (part(n, o + 1, ranks) <= j) o++;
            peers += !owner[o];
            owner[o] = 1;
        }
        add(&c, m, 4 * peers, bytes, products);         /* lists, lengths, columns, values */
    }
    return c;
}

/* Entries of row i in columns first .. end-1. */
static int64_t within(int64_t i, int64_t first, int64_t end)
{
    int64_t bound[2] = {first, end}, at[2];
    for (int b = 0; b < 2; b++) {
        int64_t low = ptr[i], high = ptr[i + 1];
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (col[middle] < bound[b]) low = middle + 1;
            else high = middle;
        }
        at[b] = low;
    }
    return at[1] - at[0];
}

static cost two_dimensions(int side, const model *m)
{
    cost c = {0};
    double *block = calloc((size_t)side * (size_t)side, sizeof *block);
    double *products = calloc((size_t)side * (size_t)side, sizeof *products);
    /* entries of each row in each column of the grid */
    int64_t *row = calloc((size_t)n * (size_t)side + 1, sizeof *row);
    for (int64_t i = 0; i < n; i++)
        for (int q = 0; q < side; q++) row[i * side + q] = within(i, part(n, q, side), part(n, q + 1, side));
    for (int p = 0; p < side; p++)
        for (int64_t i = part(n, p, side); i < part(n, p + 1, side); i++) {
            for (int q = 0; q < side; q++) block[p * side + q] += (double)row[i * side + q];
            for (int64_t k = ptr[i]; k < ptr[i + 1]; k++)
                for (int q = 0; q < side; q++)
                    products[p * side + q] += (double)row[(int64_t)col[k] * side + q];
        }
    for (int p = 0; p < side; p++)
        for (int q = 0; q < side; q++) {
            double entries = 0;
            for (int k = 0; k < side; k++) {
                if (k != q) entries += block[p * side + k];
                if (k != p) entries += block[k * side + q];
            }
            add(&c, m, 4.0 * (side - 1), entry_bytes * entries, products[p * side + q]);
        }
    free(block);
    free(products);
    free(row);
    return c;
}

int main(int argc, char **argv)
{
    tulle_ctx *ctx = NULL;
    tulle_matrix *A = NULL, *B = NULL;
    model m = {.latency = 2e-6, .bandwidth = 10e9, .rate = 200e6};
    if (argc != 2 && argc != 5) {
        fprintf(stderr, "usage: forecast RECIPE [LATENCY BANDWIDTH PRODUCTS]\n");
        return 2;
    }
    if (argc == 5) m = (model){atof(argv[2]), atof(argv[3]), atof(argv[4])};
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) return 1;
    if (tulle_gallery(ctx, argv[1], &A) != TULLE_OK) {
        fprintf(stderr, "forecast: %s\n", tulle_ctx_error(ctx));
        return 1;
    }
    tulle_csr a = tulle_matrix_view(A);
    if (a.rows != a.cols || tulle_csr_convert(ctx, &a, TULLE_F64, TULLE_I64, TULLE_I32, &B) != TULLE_OK) {
        fprintf(stderr, "forecast: the matrix must be square, with 32-bit columns\n");
        return 1;
    }
    a = tulle_matrix_view(B);
    n = a.rows;
    ptr = (int64_t *)(uintptr_t)a.row_ptr;
    col = (int32_t *)(uintptr_t)a.col_idx;
    int *seen = malloc((size_t)n * sizeof *seen + 1);
    if (!seen) return 1;
    printf("A*A, %s: %" PRId64 " rows, %" PRId64 " entries; latency %g s, %g bytes/s, %g products/s a rank\n",
           argv[1], n, a.nnz,
           m.latency, m.bandwidth, m.rate);
    printf("%6s %15s %11s %9s   %15s %11s %9s\n", "ranks", "1-D: bytes", "one rank", "ms", "2-D: bytes",
           "one rank", "ms");
    for (int side = 1; side <= 32; side *= 2) {
        cost one = one_dimension(side * side, &m, seen), two = two_dimensions(side, &m);
        printf("%6d %15.0f %11.0f %9.3f   %15.0f %11.0f %9.3f\n", side * side, one.bytes, one.most,
               1e3 * one.seconds,
               two.bytes, two.most, 1e3 * two.seconds);
    }
    free(seen);
    tulle_matrix_free(A);
    tulle_matrix_free(B);
    tulle_ctx_free(ctx);
    return 0;
}
