/* SPDX-License-Identifier: MIT
 *
 * gallery_grid.c - matrices of regular grids, x fastest: Poisson's equation in two and three
 * dimensions, hexahedral finite elements with several unknowns per node, and the interpolation from a grid of
 * every other point. */
#include "matrix/gallery.h"

typedef struct { int64_t x, y, z; } point;

static point point_of(const tl_rows *g, int64_t node)
{
    int64_t nx = (int64_t)g->v[0], ny = (int64_t)g->v[1];
    return (point){node % nx, node / nx % ny, node / nx / ny};
}

/* Neighbours of p in a grid of nx * ny * nz points, increasing, itself among them.  A star has the
 * neighbours along the axes only, a box all of them. */
static int neighbours(point p, int64_t nx, int64_t ny, int64_t nz, bool star, int64_t *node)
{
    int n = 0;
    for (int64_t z = p.z - 1; z <= p.z + 1; z++) {
        if (z < 0 || z >= nz) continue;
        for (int64_t y = p.y - 1; y <= p.y + 1; y++) {
            if (y < 0 || y >= ny || (star && z != p.z && y != p.y)) continue;
            bool along = !star || (z == p.z && y == p.y);
            int64_t first = along && p.x > 0 ? p.x - 1 : p.x;
            int64_t last = along && p.x < nx - 1 ? p.x + 1 : p.x;
            for (int64_t x = first; x <= last; x++) node[n++] = x + nx * (y + ny * z);
        }
    }
    return n;
}

/* points - 1 on the diagonal, -1 elsewhere. */
static int64_t laplace_row(const tl_rows *g, int64_t i, int64_t *col, double *val, int64_t nz,
                           int points, bool star)
{
    int n = neighbours(point_of(g, i), (int64_t)g->v[0], (int64_t)g->v[1], nz, star, col);
    for (int k = 0; val && k < n; k++) val[k] = col[k] == i ? points - 1 : -1.0;
    return n;
}

static int64_t poisson2d_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    return laplace_row(g, i, col, val, 1, (int)g->v[2], g->v[2] == 5);
}

static int64_t poisson3d_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    return laplace_row(g, i, col, val, (int64_t)g->v[2], (int)g->v[3], g->v[3] == 7);
}

static tulle_status setup_grid(tl_base *b, tl_rows *g, double nodes, double points, double few,
                               double many, tl_row_fn row)
{
    if (points != few && points != many)
        return tl_fail(b, TULLE_EINVAL, "%s: points=%.0f is not allowed, only %.0f and %.0f are",
                       g->name, points, few, many);
    g->rows = g->cols = nodes;
    g->max_row = points;
    g->entries = nodes * points;
    g->row = row;
    g->natural = true;
    return TULLE_OK;
}

tulle_status tl_setup_poisson2d(tl_base *b, tl_rows *g)
{
    return setup_grid(b, g, g->v[0] * g->v[1], g->v[2], 5, 9, poisson2d_row);
}

tulle_status tl_setup_poisson3d(tl_base *b, tl_rows *g)
{
    return setup_grid(b, g, g->v[0] * g->v[1] * g->v[2], g->v[3], 7, 27, poisson3d_row);
}

/* Baumann is a grid of 11 * 101 * 101. */
tulle_status tl_setup_baumann(tl_base *b, tl_rows *g)
{
    g->v[3] = 7;
    return setup_grid(b, g, g->v[0] * g->v[1] * g->v[2], 7, 7, 27, poisson3d_row);
}

/* Every node of a brick is coupled with the 27 of the bricks around it, every unknown of one with
 * every unknown of the other. */
static int64_t elasticity_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t node[27], dof = (int64_t)g->v[3], k = 0;
    (void)val;
    point p = point_of(g, i / dof);
    int n = neighbours(p, (int64_t)g->v[0], (int64_t)g->v[1], (int64_t)g->v[2], false, node);
    for (int m = 0; m < n; m++)
        for (int64_t d = 0; d < dof; d++) col[k++] = node[m] * dof + d;
    return k;
}

tulle_status tl_setup_elasticity3d(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = g->v[0] * g->v[1] * g->v[2] * g->v[3];
    g->max_row = 27 * g->v[3];
    g->entries = g->rows * g->max_row;
    g->row = elasticity_row;
    return TULLE_OK;
}

/* Along one axis an even point is a coarse point, an odd one lies between two, the last odd one at
 * the edge has one neighbour. */
static int between(int64_t x, int64_t n, int64_t *coarse)
{
    coarse[0] = x / 2;
    coarse[1] = x / 2 + 1;
    return x % 2 == 1 && x + 1 < n ? 2 : 1;
}

static int64_t prolongator_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t nx = (int64_t)g->v[0], ny = (int64_t)g->v[1], nz = (int64_t)g->v[2];
    int64_t cx = (nx + 1) / 2, cy = (ny + 1) / 2, n = 0, x[2], y[2], z[2];
    point p = point_of(g, i);
    int xs = between(p.x, nx, x), ys = between(p.y, ny, y), zs = between(p.z, nz, z);
    for (int c = 0; c < zs; c++)
        for (int b = 0; b < ys; b++)
            for (int a = 0; a < xs; a++) {
                if (val) val[n] = 1.0 / (xs * ys * zs);
                col[n++] = x[a] + cx * (y[b] + cy * z[c]);
            }
    return n;
}

static double half(double n)
{
    return (double)(((int64_t)n + 1) / 2);
}

tulle_status tl_setup_prolongator(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->v[0] * g->v[1] * g->v[2];
    g->cols = half(g->v[0]) * half(g->v[1]) * half(g->v[2]);
    g->max_row = g->v[2] > 1 ? 8 : 4;
    g->entries = g->rows * g->max_row;
    g->row = prolongator_row;
    g->natural = true;
    return TULLE_OK;
}
