/* SPDX-License-Identifier: MIT
 *
 * gallery_simple.c - matrices whose pattern is one line: identity, tridiagonal, banded, arrow, block
 * diagonal, dense. */
#include "matrix/gallery.h"

static tulle_status square(tl_rows *g, double max_row, double entries, tl_row_fn row, bool natural)
{
    g->rows = g->cols = g->v[0];
    g->max_row = max_row;
    g->entries = entries;
    g->row = row;
    g->natural = natural;
    return TULLE_OK;
}

static int64_t identity_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    (void)g;
    col[0] = i;
    if (val) val[0] = 1.0;
    return 1;
}

tulle_status tl_setup_identity(tl_base *b, tl_rows *g)
{
    (void)b;
    return square(g, 1, g->v[0], identity_row, true);
}

static int64_t tridiagonal_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t n = 0, last = (int64_t)g->rows - 1;
    for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j <= last; j++) {
        if (val) val[n] = i == j ? 2.0 : -1.0;
        col[n++] = j;
    }
    return n;
}

tulle_status tl_setup_tridiagonal(tl_base *b, tl_rows *g)
{
    (void)b;
    return square(g, 3, 3 * g->v[0], tridiagonal_row, true);
}

/* The diagonal is always there; every other entry of the band is kept at random. */
static int64_t banded_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t lower = (int64_t)g->v[1], upper = (int64_t)g->v[2], last = (int64_t)g->rows - 1, n = 0;
    int64_t end = last - i < upper ? last : i + upper;
    (void)val;
    for (int64_t j = i > lower ? i - lower : 0; j <= end; j++)
        if (i == j || g->v[3] >= 1 || tl_unit(tl_hash(~g->seed, (uint64_t)i, (uint64_t)j)) < g->v[3])
            col[n++] = j;
    return n;
}

tulle_status tl_setup_banded(tl_base *b, tl_rows *g)
{
    (void)b;
    double width = g->v[1] + g->v[2] + 1;
    if (width > g->v[0]) width = g->v[0];
    return square(g, width, width * g->v[0], banded_row, false);
}

/* The first `width` rows and columns and the diagonal. */
static int64_t arrow_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t rows = (int64_t)g->rows, width = (int64_t)g->v[1];
    int64_t head = i < width ? rows : width < rows ? width : rows, n = 0;
    (void)val;
    while (n < head) {
        col[n] = n;
        n++;
    }
    if (i >= head) col[n++] = i;
    return n;
}

tulle_status tl_setup_arrow(tl_base *b, tl_rows *g)
{
    (void)b;
    return square(g, g->v[0] + 1, g->v[0] * (2 * g->v[1] + 1), arrow_row, false);
}

static int64_t blockdiag_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t rows = (int64_t)g->rows, block = (int64_t)g->v[1], n = 0;
    (void)val;
    for (int64_t j = i - i % block; n < block && j < rows; j++) col[n++] = j;
    return n;
}

tulle_status tl_setup_blockdiag(tl_base *b, tl_rows *g)
{
    (void)b;
    double block = g->v[1] < g->v[0] ? g->v[1] : g->v[0];
    return square(g, block, block * g->v[0], blockdiag_row, false);
}

static int64_t dense_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t cols = (int64_t)g->cols;
    (void)i;
    (void)val;
    for (int64_t j = 0; j < cols; j++) col[j] = j;
    return cols;
}

tulle_status tl_setup_dense(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->v[0];
    g->cols = g->max_row = g->v[1];
    g->entries = g->rows * g->cols;
    g->row = dense_row;
    return TULLE_OK;
}
