/* SPDX-License-Identifier: MIT
 *
 * gallery_cage.c - cage3 .. cage15, order and values included: a polymer of L monomers that walks
 * through a gel (A. van Heukelum, G. T. Barkema, R. H. Bisseling, J. Comput. Phys. 180, 2002).
 *
 * A state is a walk of L - 1 bonds on the tree whose every vertex has three edges of sign + and three of sign
 * -, up to automorphisms of the tree and reversal of the walk.  A state is identified by which monomers share
 * a vertex (possible only at even distances) and by the signs of the bonds: 63 bits for L = 15.  States are
 * ordered by this key, the smaller one of the two directions.
 *
 * An end, or a monomer whose two neighbours share a vertex, moves to one of the six vertices beside
 * its anchor, with probability 0.55 / 3L for each of the three + and 0.45 / 3L for each - vertex.
 * Entry (i, j) is the probability of going from j to i, rounded to three digits.  The pattern is
 * symmetric, so rows are first filled with the moves away from a state, and at the end each value is swapped
 * with its mirror image.
 *
 * Memory: the matrix, and up to 32 bytes per state. */
#include "matrix/gallery.h"
#include <math.h>

enum {
    MONOMERS = 15, SIGNS = 2, DEGREE = 6,
    MOVES_MAX = MONOMERS * (DEGREE + SIGNS) + 1,
    SPLIT = 7,                          /* the walks of this many bonds are divided among threads */
    BATCH = 256
};

static const struct { int64_t states, entries; } sizes[MONOMERS + 1] = {
    [3] = {5, 19}, [4] = {9, 49}, [5] = {37, 233}, [6] = {93, 785}, [7] = {340, 3084},
    [8] = {1015, 11003}, [9] = {3534, 41594}, [10] = {11397, 150645}, [11] = {39082, 559722},
    [12] = {130228, 2032536}, [13] = {445315, 7479343}, [14] = {1505785, 27130349},
    [15] = {5154859, 99199551},
};

/* ---- keys, of a walk and of its reversal */

typedef struct { uint64_t ahead, back; } keys;

typedef struct {
    int  bonds;
    keys pair[MONOMERS][MONOMERS];      /* the bit that says that i and j share a vertex    */
    keys sign[MONOMERS][SIGNS];         /* the bits of a bond of this sign                  */
    keys touched[MONOMERS];             /* all bits that change when this monomer moves     */
} layout;

typedef struct {
    int  vertex[MONOMERS];              /* the first monomer that is on the same vertex     */
    int  sign[MONOMERS];                /* of the bond to the next monomer; 0: +, 1: -      */
    keys key;
} walk;

static keys with(keys a, keys b)
{
    return (keys){a.ahead | b.ahead, a.back | b.back};
}

static keys without(keys a, keys b)
{
    return (keys){a.ahead & ~b.ahead, a.back & ~b.back};
}

static uint64_t smaller(keys k)
{
    return k.ahead < k.back ? k.ahead : k.back;
}

/* From the highest bit: pairs by decreasing distance, then the signs.  In the reversed walk bond q is bond
 * bonds - 1 - q, with the other sign. */
static layout make_layout(int monomers)
{
    layout y = {.bonds = monomers - 1};
    int last = monomers - 1, bit = last;
    for (int d = 2; d <= last; d += 2) bit += last - d + 1;
    for (int d = last - last % 2; d >= 2; d -= 2)
        for (int i = 0; i + d <= last; i++) {
            int j = i + d, ri = last - i, rj = last - j;
            bit--;
            y.pair[i][j].ahead = y.pair[j][i].ahead = (uint64_t)1 << bit;
            y.pair[ri][rj].back = y.pair[rj][ri].back = (uint64_t)1 << bit;
        }
    for (int q = 0; q < y.bonds; q++) {
        bit--;
        y.sign[q][1].ahead = (uint64_t)1 << bit;
        y.sign[y.bonds - 1 - q][0].back = (uint64_t)1 << bit;
    }
    for (int k = 0; k <= last; k++) {
        for (int i = 0; i <= last; i++) y.touched[k] = with(y.touched[k], y.pair[k][i]);
        for (int q = k - 1; q <= k; q++)
            for (int s = 0; s < SIGNS; s++)
                if (q >= 0 && q < y.bonds) y.touched[k] = with(y.touched[k], y.sign[q][s]);
    }
    return y;
}

static walk walk_of(const layout *y, uint64_t key)
{
    walk w = {.key = {0, 0}};
    for (int j = 0; j <= y->bonds; j++) {
        w.vertex[j] = j;
        for (int i = j - 2; i >= 0; i -= 2)
            if (key & y->pair[i][j].ahead) {
                w.vertex[j] = w.vertex[i];
                w.key = with(w.key, y->pair[i][j]);
            }
    }
    for (int q = 0; q < y->bonds; q++) {
        w.sign[q] = (key & y->sign[q][1].ahead) != 0;
        w.key = with(w.key, y->sign[q][w.sign[q]]);
    }
    return w;
}

/* The neighbours of `vertex` that the first `bonds` bonds visit, without those of monomer `absent`. */
typedef struct { int count, vertex[DEGREE], sign[DEGREE], of_sign[SIGNS]; } around;

static around look_around(const walk *w, int bonds, int absent, int vertex)
{
    around a = {.count = 0};
    for (int q = 0; q < bonds; q++) {
        int sign = w->sign[q], other, k = 0;
        if (q == absent || q + 1 == absent) continue;
        if (w->vertex[q] == vertex) {
            other = w->vertex[q + 1];
        } else if (w->vertex[q + 1] == vertex) {
            other = w->vertex[q];
            sign = 1 - sign;
        } else {
            continue;
        }
        while (k < a.count && a.vertex[k] != other) k++;
        if (k < a.count) continue;
        a.vertex[a.count] = other;
        a.sign[a.count++] = sign;
        a.of_sign[sign]++;
    }
    return a;
}

/* ---- all states */

typedef struct {
    layout          y;
    uint64_t       *key;
    int64_t         states;
    _Atomic int64_t found;
} census;

typedef struct {
    census  *c;
    int      thread, threads, split;
    int64_t  prefixes;
    int      held;
    uint64_t batch[BATCH];
} counter;

static void flush(counter *n)
{
    int64_t at = atomic_fetch_add(&n->c->found, n->held);
    for (int k = 0; k < n->held && at + k < n->c->states; k++) n->c->key[at + k] = n->batch[k];
    n->held = 0;
}

/* Extends the walk by one bond in every distinct way: to a visited vertex, or to a new one. */
static void extend(counter *n, walk *w, int bonds)
{
    const layout *y = &n->c->y;
    if (bonds == n->split && n->prefixes++ % n->threads != n->thread) return;
    if (bonds == y->bonds) {
        if (w->key.ahead > w->key.back) return;         /* counted as its reversal */
        n->batch[n->held++] = w->key.ahead;
        if (n->held == BATCH) flush(n);
        return;
    }
    around a = look_around(w, bonds, -1, w->vertex[bonds]);
    for (int s = 0; s < SIGNS; s++)
        if (a.of_sign[s] < DEGREE / SIGNS) {
            a.vertex[a.count] = bonds + 1;
            a.sign[a.count++] = s;
        }
    keys before = w->key;
    for (int k = 0; k < a.count; k++) {
        w->key = with(before, y->sign[bonds][a.sign[k]]);
        w->sign[bonds] = a.sign[k];
        w->vertex[bonds + 1] = a.vertex[k];
        for (int i = bonds - 1; i >= 0; i -= 2)
            if (w->vertex[i] == a.vertex[k]) w->key = with(w->key, y->pair[i][bonds + 1]);
        extend(n, w, bonds + 1);
    }
    w->key = before;
}

static void count_states(void *arg, int thread, int threads)
{
    census *c = arg;
    counter n = {.c = c, .thread = thread, .threads = threads,
                 .split = c->y.bonds < SPLIT ? c->y.bonds : SPLIT};
    walk w = {.key = {0, 0}};
    extend(&n, &w, 0);
    flush(&n);
}

/* A radix sort of eight bits at a time; passes in which all keys agree are skipped. */
static uint64_t *sort_keys(uint64_t *key, uint64_t *other, int64_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t start[257] = {0};
        for (int64_t i = 0; i < n; i++) start[(key[i] >> shift & 255) + 1]++;
        if (n == 0 || start[(key[0] >> shift & 255) + 1] == n) continue;
        for (int d = 0; d < 256; d++) start[d + 1] += start[d];
        for (int64_t i = 0; i < n; i++) other[start[key[i] >> shift & 255]++] = key[i];
        uint64_t *sorted = other;
        other = key;
        key = sorted;
    }
    return key;
}

/* ---- from a key to its number: open addressing, at most half full */

typedef struct {
    layout          y;
    const uint64_t *key;
    uint32_t       *slot;               /* number + 1 */
    uint64_t        mask;
} index_of_keys;

static uint32_t *slot_of(const index_of_keys *x, uint64_t key)
{
    uint64_t at = tl_mix(key) & x->mask;
    while (x->slot[at] && x->key[x->slot[at] - 1] != key) at = (at + 1) & x->mask;
    return &x->slot[at];
}

static tulle_status prepare_cage(tl_base *b, tl_rows *g)
{
    tulle_status status = TULLE_OK;
    census c = {.y = make_layout((int)g->v[0]), .states = (int64_t)g->rows};
    uint64_t *other = NULL;
    int64_t slots = 16;
    while (slots < 2 * c.states) slots *= 2;
    TRY(tl_alloc(b, &c.key, c.states, sizeof *c.key, "states of a cage matrix"));
    TRY(tl_alloc(b, &other, c.states, sizeof *other, "states of a cage matrix"));
    TRY(tl_calloc(b, &g->block[1], slots, sizeof(uint32_t), "states of a cage matrix"));
    TRY(tl_alloc(b, &g->block[2], 1, sizeof(index_of_keys), "states of a cage matrix"));
    tl_team_run(b->team, 0, count_states, &c);
    if (atomic_load(&c.found) != c.states) {
        status = tl_fail(b, TULLE_ECHECK, "cage%.0f has %lld states, found were %lld", g->v[0],
                         (long long)c.states, (long long)atomic_load(&c.found));
        goto done;
    }
    uint64_t *sorted = sort_keys(c.key, other, c.states);
    if (sorted == other) {
        other = c.key;
        c.key = sorted;
    }
    index_of_keys *x = g->block[2];
    *x = (index_of_keys){.y = c.y, .key = c.key, .slot = g->block[1], .mask = (uint64_t)slots - 1};
    for (int64_t i = 0; i < c.states; i++) *slot_of(x, c.key[i]) = (uint32_t)i + 1;
    g->block[0] = c.key;
    c.key = NULL;
done:
    tl_free(b, c.key);
    tl_free(b, other);
    return status;
}

/* ---- moves */

typedef struct { int64_t count, key[MOVES_MAX]; double chance[MOVES_MAX]; } moves;

static void add_move(moves *m, keys key, double chance)
{
    m->key[m->count] = (int64_t)smaller(key);
    m->chance[m->count++] = chance;
}

/* Monomer k goes to any of the six vertices beside that of `anchor`. */
static void move_monomer(const layout *y, const walk *w, int k, int anchor, const double *chance,
                         moves *m)
{
    around a = look_around(w, y->bonds, k, w->vertex[anchor]);
    keys rest = without(w->key, y->touched[k]), hanging[SIGNS];
    for (int s = 0; s < SIGNS; s++) {
        hanging[s] = rest;
        if (k > 0) hanging[s] = with(hanging[s], y->sign[k - 1][s]);
        if (k < y->bonds) hanging[s] = with(hanging[s], y->sign[k][1 - s]);
        int fresh = DEGREE / SIGNS - a.of_sign[s];
        if (fresh > 0) add_move(m, hanging[s], chance[s] * fresh);
    }
    for (int n = 0; n < a.count; n++) {
        keys to = hanging[a.sign[n]];
        for (int i = k % 2; i <= y->bonds; i += 2)
            if (i != k && w->vertex[i] == a.vertex[n]) to = with(to, y->pair[i][k]);
        add_move(m, to, chance[a.sign[n]]);
    }
}

static void all_moves(const tl_rows *g, int64_t i, moves *m)
{
    const index_of_keys *x = g->block[2];
    const layout *y = &x->y;
    const double monomers = g->v[0], chance[SIGNS] = {0.55 / 3 / monomers, 0.45 / 3 / monomers};
    walk w = walk_of(y, x->key[i]);
    int last = y->bonds, movable = 2;
    m->count = 0;
    move_monomer(y, &w, 0, 1, chance, m);
    move_monomer(y, &w, last, last - 1, chance, m);
    for (int k = 1; k < last; k++)
        if (w.vertex[k - 1] == w.vertex[k + 1]) {
            movable++;
            move_monomer(y, &w, k, k - 1, chance, m);
        }
    add_move(m, w.key, 1.0 - movable / monomers);
}

static int64_t cage_count(const tl_rows *g, int64_t i)
{
    moves m;
    all_moves(g, i, &m);
    return tl_row_set(m.key, m.count);
}

/* Three significant digits of 0.001 <= x <= 1, rounded as printf does: from the exact value, ties to
 * even.  The product's rounding error is added back, and a quotient of whole numbers is the nearest. */
static double three_digits(double x)
{
    double scale = 100;
    while (x * scale < 100) scale *= 10;
    double product = x * scale, error = fma(x, scale, -product), whole = floor(product);
    double beyond = product - whole - 0.5 + error;
    if (beyond > 0 || (beyond == 0 && fmod(whole, 2) != 0)) whole++;
    return whole / scale;
}

/* By key, then by probability, so that sums do not depend on the order in which moves were listed. */
static void sort_moves(moves *m)
{
    for (int64_t i = 1; i < m->count; i++) {
        int64_t key = m->key[i], j = i;
        double chance = m->chance[i];
        for (; j > 0; j--) {
            if (m->key[j - 1] < key || (m->key[j - 1] == key && m->chance[j - 1] <= chance)) break;
            m->key[j] = m->key[j - 1];
            m->chance[j] = m->chance[j - 1];
        }
        m->key[j] = key;
        m->chance[j] = chance;
    }
}

static int64_t cage_row(const tl_rows *g, int64_t i, int64_t *col, double *val)
{
    const index_of_keys *x = g->block[2];
    moves m;
    all_moves(g, i, &m);
    sort_moves(&m);
    int64_t n = tl_row_merge(m.key, m.chance, m.count);
    for (int64_t k = 0; k < n; k++) {
        col[k] = (int64_t)*slot_of(x, (uint64_t)m.key[k]) - 1;
        if (val) val[k] = three_digits(m.chance[k]);
    }
    return n;
}

/* ---- swapping values with their mirror images; each pair is handled by its row above the diagonal */

static void mirror_rows(void *arg, int thread, int64_t begin, int64_t end)
{
    tulle_matrix *A = arg;
    const tulle_csr *a = &A->view;
    double *val = A->values;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = tl_row_begin(a, i), row_end = tl_row_begin(a, i + 1); k < row_end; k++) {
            int64_t j = tl_get(a->col_idx, a->idx_type, k);
            if (j <= i) continue;
            int64_t mirror = tl_row_begin(a, j);
            while (tl_get(a->col_idx, a->idx_type, mirror) < i) mirror++;
            double v = val[k];
            val[k] = val[mirror];
            val[mirror] = v;
        }
}

static tulle_status mirror_values(tl_base *b, tl_rows *g, tulle_matrix *A)
{
    (void)g;
    return tl_pieces_run(b, "values", A->view.rows, mirror_rows, A);
}

tulle_status tl_setup_cage(tl_base *b, tl_rows *g)
{
    (void)b;
    g->rows = g->cols = (double)sizes[(int)g->v[0]].states;
    g->entries = (double)sizes[(int)g->v[0]].entries;
    g->max_row = MOVES_MAX;
    g->extra_bytes = 32 * g->rows;
    g->prepare = prepare_cage;
    g->count = cage_count;
    g->row = cage_row;
    g->finish = mirror_values;
    g->natural = true;
    return TULLE_OK;
}
