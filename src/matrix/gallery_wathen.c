/* SPDX-License-Identifier: MIT
 *
 * gallery_wathen.c - Wathen's matrix: the mass matrix of nx * ny eight-node elements with random
 * densities (A. J. Wathen, IMA J. Numer. Anal. 7, 1987).
 *
 * The nodes are numbered line by line: a line of corners and mid-sides (2 nx + 1), then the line of
 * mid-sides between (nx + 1).  A row is the sum over the elements, at most four, around its node. */
#include "matrix/gallery.h"

/* 45 times the element matrix. */
static const int element[8][8] = {
    { 6,  -6,  2,  -8,  3,  -8,  2,  -6},
    {-6,  32, -6,  20, -8,  16, -8,  20},
    { 2,  -6,  6,  -6,  2,  -8,  3,  -8},
    {-8,  20, -6,  32, -6,  20, -8,  16},
    { 3,  -8,  2,  -6,  6,  -6,  2,  -8},
    {-8,  16, -8,  20, -6,  32, -6,  20},
    { 2,  -8,  3,  -8,  2,  -6,  6,  -6},
    {-6,  20, -8,  16, -8,  20, -6,  32},
};

/* The nodes of element (x, y) in order around it, starting from its far corner. */
static void nodes_of(int64_t nx, int64_t x, int64_t y, int64_t *node)
{
    int64_t near = y * (3 * nx + 2) + 2 * x;            /* its line of corners */
    int64_t side = y * (3 * nx + 2) + 2 * nx + 1 + x;
    int64_t far = (y + 1) * (3 * nx + 2) + 2 * x;
    const int64_t all[8] = {far + 2, far + 1, far, side, near, near + 1, near + 2, side + 1};
    for (int k = 0; k < 8; k++) node[k] = all[k];
}

static int64_t wathen_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t nx = (int64_t)g->v[0], ny = (int64_t)g->v[1], n = 0;
    int64_t line = i / (3 * nx + 2), at = i % (3 * nx + 2);
    bool corners = at <= 2 * nx;
    int64_t x = corners ? at / 2 : at - 2 * nx - 1;
    bool middle = corners && at % 2 == 1;               /* a mid-side touches only elements of this x */
    for (int64_t ey = corners ? line - 1 : line; ey <= line; ey++)
        for (int64_t ex = middle ? x : x - 1; ex <= x; ex++) {
            if (ex < 0 || ex >= nx || ey < 0 || ey >= ny) continue;
            double density = val ? 100 * tl_unit(tl_hash(~g->seed, (uint64_t)ex, (uint64_t)ey)) : 0;
            int64_t node[8];
            int me = 0;
            nodes_of(nx, ex, ey, node);
            while (node[me] != i) me++;
            for (int k = 0; k < 8; k++) {
                if (val) val[n] = density * (element[me][k] / 45.0);
                col[n++] = node[k];
            }
        }
    return tl_row_merge(col, val, n);
}

tulle_status tl_setup_wathen(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = 3 * g->v[0] * g->v[1] + 2 * g->v[0] + 2 * g->v[1] + 1;
    g->max_row = 32;
    g->entries = 64 * g->v[0] * g->v[1];
    g->row = wathen_row;
    g->natural = true;
    return TULLE_OK;
}
