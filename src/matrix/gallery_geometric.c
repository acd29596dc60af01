/* SPDX-License-Identifier: MIT
 *
 * gallery_geometric.c - random geometric graphs: points of the unit square joined when no further apart
 * than a radius.
 *
 * Coordinates are 30-bit integers and distances are compared exactly.  The points are numbered along
 * the rows of a grid of cells no smaller than the radius, so the matrix has the locality of a mesh, and the
 * candidate neighbours of a point are three ranges of consecutive points.  Memory: the matrix and up to 24
 * bytes per point. */
#include "matrix/gallery.h"
#include <math.h>

typedef struct { uint32_t x, y; } spot;

typedef struct {
    int64_t  cells;                     /* on a side            */
    uint64_t square;                    /* of the radius        */
} geometry;

static const double side = 1073741824.0;

static spot draw_spot(const tl_rows *g, int64_t number)
{
    uint64_t h = tl_hash(~g->seed, (uint64_t)number, 0);
    return (spot){(uint32_t)(h >> 34), (uint32_t)h & ((1u << 30) - 1)};
}

static int64_t cell_of(const geometry *q, uint32_t x)
{
    return (int64_t)(((uint64_t)x * (uint64_t)q->cells) >> 30);
}

/* The number of points in the 3 x 3 cells around a cell. */
static int64_t crowd(const geometry *q, const int64_t *start, int64_t cx, int64_t cy)
{
    int64_t n = 0, left = cx > 0 ? cx - 1 : 0, right = cx + 1 < q->cells ? cx + 1 : cx;
    for (int64_t y = cy > 0 ? cy - 1 : 0; y <= cy + 1 && y < q->cells; y++)
        n += start[y * q->cells + right + 1] - start[y * q->cells + left];
    return n;
}

static tulle_status prepare_geometric(tl_base *b, tl_rows *g)
{
    tulle_status status = TULLE_OK;
    int64_t n = (int64_t)g->rows;
    double square = g->v[2] * g->v[2];
    if (square == 0 && n > 0) square = g->v[1] / (3.141592653589793 * g->rows);
    double most_cells = sqrt(g->rows);
    if (square > 2) square = 2;
    TRY(tl_alloc(b, &g->block[2], 1, sizeof(geometry), "a grid of cells"));
    geometry *q = g->block[2];
    q->square = (uint64_t)(square * side * side);
    q->cells = (int64_t)(side / (sqrt((double)q->square) + 1));
    if ((double)q->cells > most_cells) q->cells = (int64_t)most_cells;
    if (q->cells < 1) q->cells = 1;
    TRY(tl_alloc(b, &g->block[0], n, sizeof(spot), "points in the plane"));
    TRY(tl_calloc(b, &g->block[1], q->cells * q->cells + 2, sizeof(int64_t), "a grid of cells"));
    spot *at = g->block[0];
    int64_t *start = g->block[1];
    for (int64_t i = 0; i < n; i++) {
        spot s = draw_spot(g, i);
        start[cell_of(q, s.y) * q->cells + cell_of(q, s.x) + 2]++;
    }
    for (int64_t c = 1; c <= q->cells * q->cells; c++) start[c + 1] += start[c];
    for (int64_t i = 0; i < n; i++) {                   /* start[c + 1] walks to the end of cell c */
        spot s = draw_spot(g, i);
        at[start[cell_of(q, s.y) * q->cells + cell_of(q, s.x) + 1]++] = s;
    }
    g->max_row = 0;
    for (int64_t y = 0; y < q->cells; y++)
        for (int64_t x = 0; x < q->cells; x++) {
            double candidates = (double)crowd(q, start, x, y);
            if (candidates > g->max_row) g->max_row = candidates;
        }
done:
    return status;
}

static int64_t geometric_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    const spot *at = g->block[0];
    const int64_t *start = g->block[1];
    const geometry *q = g->block[2];
    int64_t cx = cell_of(q, at[i].x), cy = cell_of(q, at[i].y), n = 0;
    int64_t left = cx > 0 ? cx - 1 : 0, right = cx + 1 < q->cells ? cx + 1 : cx;
    (void)val;
    for (int64_t y = cy > 0 ? cy - 1 : 0; y <= cy + 1 && y < q->cells; y++)
        for (int64_t j = start[y * q->cells + left]; j < start[y * q->cells + right + 1]; j++) {
            int64_t dx = (int64_t)at[j].x - at[i].x, dy = (int64_t)at[j].y - at[i].y;
            if (j != i && (uint64_t)(dx * dx + dy * dy) <= q->square) col[n++] = j;
        }
    return n;
}

tulle_status tl_setup_geometric(tl_base *b, tl_rows *g)
{
    (void)b;
    double degree = g->v[2] > 0 ? 3.2 * g->v[2] * g->v[2] * g->v[0] : g->v[1];
    if (degree > g->v[0]) degree = g->v[0];
    g->rows = g->cols = g->v[0];
    g->max_row = degree;                /* exact once the points are drawn */
    g->entries = degree * g->rows;
    g->extra_bytes = 24 * g->rows;
    g->prepare = prepare_geometric;
    g->row = geometric_row;
    return TULLE_OK;
}
