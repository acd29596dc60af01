/* SPDX-License-Identifier: MIT
 *
 * gallery_known.c - well-known matrices of the SuiteSparse collection, constructed from the model behind
 * each: a lattice, a random walk, a shell.  With the default parameters the pattern is that of the original
 * (tests check it); there are natural values only where a formula gives them. */
#include "matrix/gallery.h"

/* ---- conf5_4: the Wilson hopping matrix of lattice QCD on L^4 sites (x fastest), 4 spins, 3 colours.
 * A site is coupled with the next and the last one along each axis by 1 -+ gamma_mu, whose pattern is
 * a spin and its partner; gamma_4 is diagonal, so there only one direction is left for each spin. */

static int64_t conf5_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    static const int partner[3][4] = {{3, 2, 1, 0}, {3, 2, 1, 0}, {2, 3, 0, 1}};
    int64_t L = (int64_t)g->v[0], site = i / 12, spin = i % 12 / 3, step = 1, n = 0;
    (void)val;
    for (int axis = 0; axis < 4; axis++, step *= L) {
        int64_t x = site / step % L, base = site - x * step;
        for (int back = 0; back < 2; back++) {
            int64_t near = base + (x + (back ? L - 1 : 1)) % L * step;
            if (axis == 3 && (spin < 2) != (back == 1)) continue;
            for (int c = 0; c < 3; c++) {
                col[n++] = near * 12 + spin * 3 + c;
                if (axis < 3) col[n++] = near * 12 + partner[axis][spin] * 3 + c;
            }
        }
    }
    return tl_row_set(col, n);
}

tulle_status tl_setup_conf5(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = 12 * g->v[0] * g->v[0] * g->v[0] * g->v[0];
    g->max_row = 39;
    g->entries = 39 * g->rows;
    g->row = conf5_row;
    return TULLE_OK;
}

/* ---- mc2depi: a Markov model of an epidemic, a grid of (outer, inner) states with the moves (-1, 0),
 * (0, +1), (+1, -1), numbered by level 2*outer + inner and within a level by falling inner. */

/* The largest and smallest inner of a level; they have its parity. */
static int64_t level_top(const tl_rows *g, int64_t level)
{
    int64_t top = (int64_t)g->v[1] - 1;
    if (top > level) top = level;
    return top - ((level - top) & 1);
}

static int64_t level_bottom(const tl_rows *g, int64_t level)
{
    int64_t bottom = level - 2 * ((int64_t)g->v[0] - 1);
    return bottom > 0 ? bottom : level & 1;
}

static tulle_status prepare_mc2depi(tl_base *b, tl_rows *g)
{
    tulle_status status = TULLE_OK;
    int64_t levels = 2 * ((int64_t)g->v[0] - 1) + (int64_t)g->v[1], sum = 0;
    TRY(tl_alloc(b, &g->block[0], levels + 1, sizeof(int64_t), "levels of mc2depi"));
    int64_t *start = g->block[0];
    for (int64_t t = 0; t < levels; t++) {
        int64_t top = level_top(g, t), bottom = level_bottom(g, t);
        start[t] = sum;
        if (top >= bottom) sum += (top - bottom) / 2 + 1;
    }
    start[levels] = sum;
done:
    return status;
}

static int64_t mc2depi_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    static const int move[4][2] = {{0, 0}, {-1, 0}, {0, 1}, {1, -1}};
    int64_t outers = (int64_t)g->v[0], inners = (int64_t)g->v[1], n = 0;
    const int64_t *start = g->block[0];
    int64_t level = 0, past = 2 * (outers - 1) + inners;
    while (past - level > 1) {                          /* start[level] <= i < start[past] */
        int64_t middle = level + (past - level) / 2;
        if (start[middle] <= i) level = middle;
        else past = middle;
    }
    int64_t inner = level_top(g, level) - 2 * (i - start[level]), outer = (level - inner) / 2;
    (void)val;
    for (int m = 0; m < 4; m++) {
        int64_t o = outer + move[m][0], k = inner + move[m][1], t = 2 * o + k;
        if (o >= 0 && o < outers && k >= 0 && k < inners)
            col[n++] = start[t] + (level_top(g, t) - k) / 2;
    }
    return tl_row_set(col, n);
}

tulle_status tl_setup_mc2depi(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = g->v[0] * g->v[1];
    g->max_row = 4;
    g->entries = 4 * g->rows;
    g->extra_bytes = 8 * (2 * g->v[0] + g->v[1]);
    g->prepare = prepare_mc2depi;
    g->row = mc2depi_row;
    return TULLE_OK;
}

/* ---- majorbasis: a complementarity problem on an n * n grid, in blocks with K the 9-point stencil
 *      K 0 I I
 *      0 K I I
 *      K 0 I I
 *      0 K I I */

static int64_t majorbasis_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t side = (int64_t)g->v[0], nodes = side * side, node = i % nodes;
    int64_t n = 0, x = node % side, y = node / side, first = i / nodes % 2 * nodes;
    (void)val;
    for (int64_t k = y > 0 ? y - 1 : 0; k <= y + 1 && k < side; k++)
        for (int64_t j = x > 0 ? x - 1 : 0; j <= x + 1 && j < side; j++) col[n++] = first + k * side + j;
    col[n++] = 2 * nodes + node;
    col[n++] = 3 * nodes + node;
    return n;
}

tulle_status tl_setup_majorbasis(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = 4 * g->v[0] * g->v[0];
    g->max_row = 11;
    g->entries = 11 * g->rows;
    g->row = majorbasis_row;
    return TULLE_OK;
}

/* ---- s3dkq4m2, s3dkt3m2: a cylindrical shell of nx * ny nodes (y fastest) in quadrilaterals or
 * triangles.  A node has 6 unknowns, 3 on the edges x = 0, x = nx - 1 and y = ny - 1, 1 where these
 * meet. */

typedef struct { int64_t x, y, first, dof; } shell_node;

/* Numbers of unknowns in a column of nodes at the edge, and inside. */
static int64_t edge_column(const tl_rows *g) { return 3 * ((int64_t)g->v[1] - 1) + 1; }
static int64_t inner_column(const tl_rows *g) { return 6 * ((int64_t)g->v[1] - 1) + 3; }

static shell_node node_at(const tl_rows *g, int64_t x, int64_t y)
{
    bool edge = x == 0 || x == (int64_t)g->v[0] - 1, end = y == (int64_t)g->v[1] - 1;
    int64_t before = x > 0 ? edge_column(g) + (x - 1) * inner_column(g) : 0;
    return (shell_node){x, y, before + y * (edge ? 3 : 6), edge && end ? 1 : edge || end ? 3 : 6};
}

static shell_node node_of(const tl_rows *g, int64_t unknown)
{
    int64_t last = (int64_t)g->v[0] - 1, top = (int64_t)g->v[1] - 1, x = 0;
    if (unknown >= edge_column(g)) x = 1 + (unknown - edge_column(g)) / inner_column(g);
    if (x > last) x = last;
    int64_t y = (unknown - node_at(g, x, 0).first) / (x == 0 || x == last ? 3 : 6);
    return node_at(g, x, y < top ? y : top);
}

static int64_t shell_row(const tl_rows *g, int64_t i, int64_t *col, bool triangles)
{
    shell_node me = node_of(g, i);
    int64_t n = 0;
    for (int64_t x = me.x - 1; x <= me.x + 1; x++) {
        if (x < 0 || x >= (int64_t)g->v[0]) continue;
        for (int64_t y = me.y - 1; y <= me.y + 1; y++) {
            if (y < 0 || y >= (int64_t)g->v[1]) continue;
            if (triangles && (x - me.x) * (y - me.y) < 0) continue;
            shell_node near = node_at(g, x, y);
            for (int64_t d = 0; d < near.dof; d++) col[n++] = near.first + d;
        }
    }
    return n;
}

static int64_t s3dkq4m2_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    (void)val;
    return shell_row(g, i, col, false);
}

static int64_t s3dkt3m2_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    (void)val;
    return shell_row(g, i, col, true);
}

static tulle_status setup_shell(tl_rows *g, double max_row, tl_row_fn row)
{
    g->rows = g->cols = (6 * g->v[1] - 3) * (g->v[0] - 2) + 2 * (3 * g->v[1] - 2);
    g->max_row = max_row;
    g->entries = max_row * g->rows;
    g->row = row;
    return TULLE_OK;
}

tulle_status tl_setup_s3dkq4m2(tl_base *b, tl_rows *g)
{
    (void)b;
    return setup_shell(g, 54, s3dkq4m2_row);
}

tulle_status tl_setup_s3dkt3m2(tl_base *b, tl_rows *g)
{
    (void)b;
    return setup_shell(g, 42, s3dkt3m2_row);
}

/* ---- ncvxqp: the saddle point matrix [H A'; A 0] of a quadratic programme of the CUTE collection,
 * counting from 1.  H = C' D C, D = diag(1, 2, ..), row i of C has a one at i, 2i and 3i mod n; row k
 * of A has 1, 2, 3 at k, 4k, 5k mod n. */

enum { TERMS = 3 };
static const int objective[TERMS] = {1, 2, 3}, constraint[TERMS] = {1, 4, 5};

/* The solutions x in 1..most of factor * x = column + 1 (mod n); at most 5. */
static int sources(int64_t factor, int64_t column, int64_t n, int64_t most, int64_t *x)
{
    int count = 0;
    for (int64_t turn = 0; turn < factor; turn++) {
        int64_t product = column + 1 + turn * n;
        if (product % factor == 0 && product / factor <= most) x[count++] = product / factor;
    }
    return count;
}

static int64_t ncvxqp_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t n = (int64_t)g->v[0], m = (int64_t)g->v[1], count = 0, x[5];
    if (i >= n) {
        for (int t = 0; t < TERMS; t++) {
            if (val) val[count] = t + 1;
            col[count++] = (constraint[t] * (i - n + 1) - 1) % n;
        }
        return tl_row_merge(col, val, count);
    }
    for (int t = 0; t < TERMS; t++)
        for (int s = sources(objective[t], i, n, n, x); s-- > 0;)
            for (int u = 0; u < TERMS; u++) {
                if (val) val[count] = (double)x[s];
                col[count++] = (objective[u] * x[s] - 1) % n;
            }
    for (int t = 0; t < TERMS; t++)
        for (int s = sources(constraint[t], i, n, m, x); s-- > 0;) {
            if (val) val[count] = t + 1;
            col[count++] = n + x[s] - 1;
        }
    return tl_row_merge(col, val, count);
}

tulle_status tl_setup_ncvxqp(tl_base *b, tl_rows *g)
{
    if (g->v[1] > g->v[0])
        return tl_fail(b, TULLE_EINVAL, "%s: m=%.0f constraints are more than n=%.0f unknowns", g->name,
                       g->v[1], g->v[0]);
    g->rows = g->cols = g->v[0] + g->v[1];
    g->max_row = (1 + 2 + 3) * TERMS + 1 + 4 + 5;
    g->entries = 3 * TERMS * g->v[0] + 2 * TERMS * g->v[1];
    g->row = ncvxqp_row;
    g->natural = true;
    return TULLE_OK;
}

/* ---- Trefethen: the primes on the diagonal, ones at distances 1, 2, 4, 8, ... */

static tulle_status prepare_trefethen(tl_base *b, tl_rows *g)
{
    tulle_status status = TULLE_OK;
    int64_t n = (int64_t)g->rows, found = 0, odds = (int64_t)g->extra_bytes - 8 * n;
    TRY(tl_alloc(b, &g->block[0], n, sizeof(double), "primes"));
    TRY(tl_calloc(b, &g->block[1], odds, 1, "a sieve"));
    double *prime = g->block[0];
    char *crossed = g->block[1];                        /* [k] stands for 2k + 3 */
    if (n > 0) prime[found++] = 2;
    for (int64_t k = 0; k < odds && found < n; k++) {
        if (crossed[k]) continue;
        int64_t p = 2 * k + 3;
        prime[found++] = (double)p;
        for (int64_t q = p <= odds ? (p * p - 3) / 2 : odds; q < odds; q += p) crossed[q] = 1;
    }
done:
    return status;
}

static int64_t trefethen_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t rows = (int64_t)g->rows, n = 0, reach = 1;
    while (reach <= i) reach *= 2;
    for (int64_t d = reach / 2; d >= 1; d /= 2) {
        if (val) val[n] = 1.0;
        col[n++] = i - d;
    }
    if (val) val[n] = ((const double *)g->block[0])[i];
    col[n++] = i;
    for (int64_t d = 1; i + d < rows; d *= 2) {
        if (val) val[n] = 1.0;
        col[n++] = i + d;
    }
    return n;
}

tulle_status tl_setup_trefethen(tl_base *b, tl_rows *g)
{
    double n = g->v[0], bits = 1;
    (void)b;
    for (double x = 1; x < n; x *= 2) bits++;
    g->rows = g->cols = n;
    g->max_row = 2 * bits + 1;
    g->entries = n * g->max_row;
    /* The n-th prime is below n (ln n + ln ln n) for n > 5, thus below n (1 + log2 n). */
    g->extra_bytes = 8 * n + (double)(int64_t)((n * (bits + 1) + 16) / 2);
    g->prepare = prepare_trefethen;
    g->row = trefethen_row;
    g->natural = true;
    return TULLE_OK;
}

/* ---- Mycielski's graphs: no triangles, chromatic number k.  From the graph A of k - 1 with n vertices
 *      A  A  0
 *      A  0  1
 *      0  1' 0 */

static int64_t mycielski_size(int k)
{
    return 3 * ((int64_t)1 << (k - 2)) - 1;
}

static int64_t mycielski_columns(int k, int64_t i, int64_t *col)
{
    if (k == 2) {
        col[0] = 1 - i;
        return 1;
    }
    int64_t n = mycielski_size(k - 1), count = 0;
    if (i == 2 * n) {
        for (; count < n; count++) col[count] = n + count;
        return count;
    }
    count = mycielski_columns(k - 1, i < n ? i : i - n, col);
    if (i >= n) {
        col[count] = 2 * n;
        return count + 1;
    }
    for (int64_t j = 0; j < count; j++) col[count + j] = n + col[j];
    return 2 * count;
}

static int64_t mycielskian_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    int64_t n = mycielski_columns((int)g->v[0], i, col);
    for (int64_t k = 0; val && k < n; k++) val[k] = 1.0;
    return n;
}

tulle_status tl_setup_mycielskian(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = (double)mycielski_size((int)g->v[0]);
    g->max_row = 1;
    g->entries = 2;
    for (int k = 3; k <= (int)g->v[0]; k++) {
        double n = (double)mycielski_size(k - 1);
        g->max_row = 2 * g->max_row > n ? 2 * g->max_row : n;
        g->entries = 3 * g->entries + 2 * n;
    }
    g->row = mycielskian_row;
    g->natural = true;
    return TULLE_OK;
}
