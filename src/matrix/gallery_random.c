/* SPDX-License-Identifier: MIT
 *
 * gallery_random.c - rows of randomly drawn columns: Erdos-Renyi with a fixed number per row, and row lengths
 * that follow Zipf's law. */
#include "matrix/gallery.h"

/* n distinct columns of 0..cols, sorted.  A small fraction: draw, sort, and draw again for duplicates.  A
 * large one: go through all columns and select each with the probability that yields n in total (Knuth's
 * algorithm S). */
static void draw_columns(uint64_t stream, int64_t cols, int64_t n, int64_t *col)
{
    if (n > cols / 4) {
        int64_t k = 0;
        for (int64_t j = 0; k < n; j++)
            if ((int64_t)(tl_next(&stream) % (uint64_t)(cols - j)) < n - k) col[k++] = j;
        return;
    }
    for (int64_t have = 0; have < n;) {
        for (int64_t k = have; k < n; k++) col[k] = (int64_t)(tl_next(&stream) % (uint64_t)cols);
        have = tl_row_set(col, n);
    }
}

static int64_t random_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t n = (int64_t)g->max_row;
    (void)val;
    draw_columns(tl_hash(~g->seed, (uint64_t)i, 0), (int64_t)g->cols, n, col);
    return n;
}

tulle_status tl_setup_random(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->v[0];
    g->cols = g->v[1];
    g->max_row = g->v[2] < g->cols ? g->v[2] : g->cols;
    g->entries = g->rows * g->max_row;
    g->row = random_row;
    return TULLE_OK;
}

/* A row is longer than x with probability least / x; one row, at a random place, is full. */
static int64_t zipf_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t cols = (int64_t)g->cols;
    uint64_t stream = tl_hash(~g->seed, (uint64_t)i, 0);
    bool full = i == (int64_t)(tl_hash(~g->seed, 0, 1) % (uint64_t)cols);
    double length = g->v[1] / (1.0 - tl_unit(tl_next(&stream)));
    int64_t n = full || length >= (double)cols ? cols : (int64_t)length;
    (void)val;
    draw_columns(stream, cols, n, col);
    return n;
}

tulle_status tl_setup_zipf(tl_base *b, tl_rows *g)
{
    (void)b;
    double least = g->v[1] < g->v[0] ? g->v[1] : g->v[0], mean = 1;
    for (double x = least; x > 0 && x < g->v[0]; x *= 2) mean++;        /* over 1 + ln(n / least) */
    g->rows = g->cols = g->max_row = g->v[0];
    g->entries = g->v[0] * least * mean + g->v[0];
    g->row = zipf_row;
    return TULLE_OK;
}
