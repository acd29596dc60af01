/* SPDX-License-Identifier: MIT
 *
 * gallery_rmat.c - R-MAT graphs (D. Chakrabarti, Y. Zhan, C. Faloutsos, SDM 2004): an edge falls `scale`
 * times into one of four quarters of the matrix.
 *
 * The edges are drawn twice, first to count and then to place them (8 bytes per edge besides the matrix);
 * then each row is sorted and duplicates are removed.  Self-loops are kept. */
#include "matrix/gallery.h"

typedef struct {
    const tl_rows   *g;
    uint64_t         a, ab, abc;        /* probabilities in units of 2^-32 */
    int              scale;
    bool             symmetric;
    _Atomic int64_t *next;              /* of each row: entries, then where the next one goes */
    int64_t         *col;               /* NULL while counting */
} rmat;

static void draw_edge(const rmat *r, int64_t number, int64_t *row, int64_t *col)
{
    uint64_t stream = tl_hash(~r->g->seed, (uint64_t)number, 0), bits = 0;
    int64_t i = 0, j = 0;
    for (int level = 0; level < r->scale; level++) {
        bits = level % 2 == 0 ? tl_next(&stream) : bits >> 32;
        uint64_t x = bits & UINT32_MAX;
        i = 2 * i + (x >= r->ab);
        j = 2 * j + ((x >= r->a && x < r->ab) || x >= r->abc);
    }
    *row = i;
    *col = j;
}

static void put_edge(rmat *r, int64_t i, int64_t j)
{
    int64_t at = atomic_fetch_add_explicit(&r->next[i], 1, memory_order_relaxed);
    if (r->col) r->col[at] = j;
}

static void draw_edges(void *arg, int thread, int64_t begin, int64_t end)
{
    rmat *r = arg;
    (void)thread;
    for (int64_t k = begin; k < end; k++) {
        int64_t i, j;
        draw_edge(r, k, &i, &j);
        put_edge(r, i, j);
        if (r->symmetric && i != j) put_edge(r, j, i);
    }
}

/* Once all edges are placed next[i] is the end of row i. */
static int64_t row_start(const _Atomic int64_t *next, int64_t i)
{
    return i > 0 ? atomic_load_explicit(&next[i - 1], memory_order_relaxed) : 0;
}

static void sort_edges(void *arg, int thread, int64_t begin, int64_t end)
{
    const tl_rows *g = arg;
    const _Atomic int64_t *next = g->block[0];
    int64_t *col = g->block[1], *length = g->block[2];
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = row_start(next, i);
        length[i] = tl_row_set(col + from, row_start(next, i + 1) - from);
    }
}

static tulle_status prepare_rmat(tl_base *b, tl_rows *g)
{
    tulle_status status = TULLE_OK;
    const double unit = 4294967296.0;
    rmat r = {.g = g, .scale = (int)g->v[0], .symmetric = g->v[5] != 0,
              .a = (uint64_t)(g->v[2] * unit), .ab = (uint64_t)((g->v[2] + g->v[3]) * unit),
              .abc = (uint64_t)((g->v[2] + g->v[3] + g->v[4]) * unit)};
    int64_t rows = (int64_t)g->rows, edges = (int64_t)(g->rows * g->v[1]), sum = 0;
    TRY(tl_calloc(b, &g->block[0], rows, sizeof *r.next, "edges of a graph"));
    r.next = g->block[0];
    TRY(tl_pieces_run(b, "counting edges", edges, draw_edges, &r));
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = atomic_load_explicit(&r.next[i], memory_order_relaxed);
        atomic_store_explicit(&r.next[i], sum, memory_order_relaxed);
        sum += n;
    }
    TRY(tl_alloc(b, &g->block[1], sum, sizeof *r.col, "edges of a graph"));
    TRY(tl_alloc(b, &g->block[2], rows, sizeof(int64_t), "edges of a graph"));
    r.col = g->block[1];
    TRY(tl_pieces_run(b, "placing edges", edges, draw_edges, &r));
    TRY(tl_pieces_run(b, "sorting edges", rows, sort_edges, g));
    const int64_t *length = g->block[2];
    g->max_row = 0;
    for (int64_t i = 0; i < rows; i++)
        if ((double)length[i] > g->max_row) g->max_row = (double)length[i];
done:
    return status;
}

static int64_t rmat_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    const int64_t *from = (const int64_t *)g->block[1] + row_start(g->block[0], i);
    int64_t n = ((const int64_t *)g->block[2])[i];
    (void)val;
    for (int64_t k = 0; k < n; k++) col[k] = from[k];
    return n;
}

tulle_status tl_setup_rmat(tl_base *b, tl_rows *g)
{
    if (g->v[2] + g->v[3] + g->v[4] > 1)
        return tl_fail(b, TULLE_EINVAL, "%s: a + b + c = %g is more than 1", g->name,
                       g->v[2] + g->v[3] + g->v[4]);
    g->rows = g->cols = (double)((int64_t)1 << (int)g->v[0]);
    g->entries = g->rows * g->v[1] * (g->v[5] != 0 ? 2 : 1);
    g->extra_bytes = g->entries * 8 + g->rows * 16;
    g->max_row = g->rows;
    g->prepare = prepare_rmat;
    g->row = rmat_row;
    return TULLE_OK;
}
