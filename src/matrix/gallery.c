/* SPDX-License-Identifier: MIT
 *
 * gallery.c - matrices by name: "poisson2d:1000", "rmat:scale=16,edges=16", "cage12".
 *
 * A recipe is a line of the table below: its name, a description, its parameters with their ranges, and a
 * function (gallery_*.c).  The first parameter may be given without its name; a number at the end of a name
 * (cage12, Trefethen_20000) is the first parameter too.  Every recipe also accepts seed= and
 * values=natural|ones|random|integer. */
#include "matrix/gallery.h"
#include <stdio.h>
#include <string.h>

/* Integers up to this one are exact as doubles, and so are their sums. */
#define BIG 1e12

#define WHOLE(name, standard, min, max) {name, standard, min, max, false}
#define REAL(name, standard, min, max)  {name, standard, min, max, true}

static const tl_recipe recipes[] = {
    {"poisson2d", "Poisson's equation on a grid: nx=100, ny=nx, points=5 (or 9); chem_master1: nx=201",
     tl_setup_poisson2d, {WHOLE("nx", 100, 0, BIG), WHOLE("ny", TL_FIRST, 0, BIG),
                          WHOLE("points", 5, 5, 9)}},
    {"poisson3d", "Poisson's equation on a grid: nx=30, ny=nx, nz=nx, points=7 (27 for hpcg)",
     tl_setup_poisson3d, {WHOLE("nx", 30, 0, BIG), WHOLE("ny", TL_FIRST, 0, BIG),
                          WHOLE("nz", TL_FIRST, 0, BIG),
                          WHOLE("points", 7, 7, 27)}},
    {"elasticity3d", "hexahedral finite elements, dof unknowns a node: nx=20, ny=nx, nz=nx, dof=3",
     tl_setup_elasticity3d, {WHOLE("nx", 20, 0, BIG), WHOLE("ny", TL_FIRST, 0, BIG),
                             WHOLE("nz", TL_FIRST, 0, BIG),
                             WHOLE("dof", 3, 1, 64)}},
    {"prolongator", "interpolation from every other grid point, rectangular: nx=300, ny=nx, nz=1",
     tl_setup_prolongator, {WHOLE("nx", 300, 0, BIG), WHOLE("ny", TL_FIRST, 0, BIG),
                            WHOLE("nz", 1, 0, BIG)}},
    {"identity", "the identity: n=1000", tl_setup_identity, {WHOLE("n", 1000, 0, BIG)}},
    {"tridiagonal", "-1, 2, -1: n=1000", tl_setup_tridiagonal, {WHOLE("n", 1000, 0, BIG)}},
    {"banded", "a band of which a part is filled at random: n=10000, lower=8, upper=8, fill=1",
     tl_setup_banded, {WHOLE("n", 10000, 0, BIG), WHOLE("lower", 8, 0, BIG), WHOLE("upper", 8, 0, BIG),
                       REAL("fill", 1, 0, 1)}},
    {"arrow", "full first rows and columns, and the diagonal: n=1000, width=1",
     tl_setup_arrow, {WHOLE("n", 1000, 0, BIG), WHOLE("width", 1, 0, BIG)}},
    {"blockdiag", "dense blocks along the diagonal: n=10000, block=8",
     tl_setup_blockdiag, {WHOLE("n", 10000, 0, BIG), WHOLE("block", 8, 1, BIG)}},
    {"dense", "every entry: rows=100, cols=rows; dense2 is 2000 x 2000",
     tl_setup_dense, {WHOLE("rows", 100, 0, BIG), WHOLE("cols", TL_FIRST, 0, BIG)}},
    {"er", "Erdos-Renyi, per_row distinct random columns a row: rows=10000, cols=rows, per_row=8",
     tl_setup_random, {WHOLE("rows", 10000, 0, BIG), WHOLE("cols", TL_FIRST, 0, BIG),
                       WHOLE("per_row", 8, 0, BIG)}},
    {"tall", "random, many short rows: rows=100000, cols=1000, per_row=4",
     tl_setup_random, {WHOLE("rows", 100000, 0, BIG), WHOLE("cols", 1000, 0, BIG),
                       WHOLE("per_row", 4, 0, BIG)}},
    {"wide", "random, few long rows: rows=1000, cols=100000, per_row=400",
     tl_setup_random, {WHOLE("rows", 1000, 0, BIG), WHOLE("cols", 100000, 0, BIG),
                       WHOLE("per_row", 400, 0, BIG)}},
    {"zipf", "power-law row lengths from least up, and one full row: n=10000, least=2",
     tl_setup_zipf, {WHOLE("n", 10000, 0, BIG), WHOLE("least", 2, 1, BIG)}},
    {"rmat", "R-MAT graph, duplicates dropped: scale=12, edges=16 (a vertex), a=0.57, b=0.19, c=0.19, "
     "symmetric=0 (or 1)",
     tl_setup_rmat, {WHOLE("scale", 12, 0, 34), WHOLE("edges", 16, 0, 1e6), REAL("a", 0.57, 0, 1),
                     REAL("b", 0.19, 0, 1), REAL("c", 0.19, 0, 1), WHOLE("symmetric", 0, 0, 1)}},
    {"geometric", "random points in a square, joined when near: n=10000, degree=8 (or radius=R)",
     tl_setup_geometric, {WHOLE("n", 10000, 0, BIG), REAL("degree", 8, 0, BIG),
                          REAL("radius", 0, 0, 2)}},
    {"mycielskian", "Mycielski's graph without triangles of chromatic number k: k=8",
     tl_setup_mycielskian, {WHOLE("k", 8, 2, 40)}},
    {"cage", "a polymer in a gel, cage3 .. cage15: L=8 (monomers)",
     tl_setup_cage, {WHOLE("L", 8, 3, 15)}},
    {"conf5_4", "lattice QCD, conf5_4-8x8-05: L=8 (sites a side)",
     tl_setup_conf5, {WHOLE("L", 8, 0, 1000)}},
    {"mc2depi", "Markov chain of an epidemic: outer=1025, inner=513",
     tl_setup_mc2depi, {WHOLE("outer", 1025, 1, BIG), WHOLE("inner", 513, 1, BIG)}},
    {"majorbasis", "complementarity problem on a grid: n=200 (points a side)",
     tl_setup_majorbasis, {WHOLE("n", 200, 0, 1e6)}},
    {"Baumann", "Markov chain of a chemical model: nx=11, ny=101, nz=101",
     tl_setup_baumann, {WHOLE("nx", 11, 0, BIG), WHOLE("ny", 101, 0, BIG), WHOLE("nz", 101, 0, BIG)}},
    {"s3dkq4m2", "cylindrical shell of quadrilaterals: nx=151, ny=101",
     tl_setup_s3dkq4m2, {WHOLE("nx", 151, 2, BIG), WHOLE("ny", 101, 1, BIG)}},
    {"s3dkt3m2", "cylindrical shell of triangles: nx=151, ny=101",
     tl_setup_s3dkt3m2, {WHOLE("nx", 151, 2, BIG), WHOLE("ny", 101, 1, BIG)}},
    {"ncvxqp3", "saddle point of a quadratic programme: n=50000 (unknowns), m=25000 (constraints)",
     tl_setup_ncvxqp, {WHOLE("n", 50000, 1, BIG), WHOLE("m", 25000, 0, BIG)}},
    {"wathen", "mass matrix of eight-node elements: nx=100, ny=nx; wathen120 is ny=120",
     tl_setup_wathen, {WHOLE("nx", 100, 0, BIG), WHOLE("ny", TL_FIRST, 0, BIG)}},
    {"Trefethen", "primes on the diagonal, ones at powers of two beside it: n=20000",
     tl_setup_trefethen, {WHOLE("n", 20000, 0, BIG)}},
};

enum { RECIPES = sizeof recipes / sizeof *recipes };

/* Other well-known names of recipes; the user's parameters are read after the ones given here. */
static const struct { const char *name, *recipe, *params; } aliases[] = {
    {"hpcg", "poisson3d", "points=27"},
    {"erdos_renyi", "er", ""},
    {"rgg", "geometric", ""},
    {"chem_master1", "poisson2d", "nx=201,ny=201"},
    {"dense2", "dense", "rows=2000,cols=2000"},
    {"wathen120", "wathen", "nx=100,ny=120"},
    {"conf5_4-8x8-05", "conf5_4", "L=8"},
};

enum { ALIASES = sizeof aliases / sizeof *aliases };

static const char *const value_names[] = {"natural", "ones", "random", "integer"};

const tl_recipe *tl_gallery_recipe(int i)
{
    return i >= 0 && i < RECIPES ? &recipes[i] : NULL;
}

const char *tulle_gallery_name(int i)
{
    return i >= 0 && i < RECIPES ? recipes[i].name : NULL;
}

const char *tulle_gallery_text(int i)
{
    return i >= 0 && i < RECIPES ? recipes[i].text : NULL;
}

/* ---- words */

typedef struct { const char *at; size_t n; } word;

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool same(word w, const char *text)
{
    for (size_t i = 0; i < w.n; i++)
        if (!text[i] || lower((unsigned char)w.at[i]) != lower((unsigned char)text[i])) return false;
    return text[w.n] == 0;
}

/* Reads up to the first character of `stops`, or the end. */
static word take(const char **p, const char *stops)
{
    word w = {*p, strcspn(*p, stops)};
    *p += w.n;
    return w;
}

static int shown(word w)
{
    return w.n > 40 ? 40 : (int)w.n;
}

/* Digits with at most one decimal point, no more than a double holds exactly; so a single division gives the
 * nearest double, in any locale. */
static bool read_number(word w, double *value, bool *whole)
{
    double digits = 0, scale = 1;
    int count = 0;
    bool point = false;
    for (size_t i = 0; i < w.n; i++) {
        char c = w.at[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || ++count > 15) return false;
        digits = digits * 10 + (c - '0');
        if (point) scale *= 10;
    }
    *value = digits / scale;
    *whole = !point;
    return count > 0;
}

/* All 64 bits of a seed may be used. */
static bool read_seed(word w, uint64_t *seed)
{
    uint64_t s = 0;
    for (size_t i = 0; i < w.n; i++) {
        uint64_t digit = (uint64_t)(w.at[i] - '0');
        if (digit > 9 || s > (UINT64_MAX - digit) / 10) return false;
        s = s * 10 + digit;
    }
    *seed = s;
    return w.n > 0;
}

/* ---- error messages */

static void append(char *text, size_t size, const char *word_, const char *between)
{
    size_t n = strlen(text);
    if (n < size) snprintf(text + n, size - n, "%s%s", n ? between : "", word_);
}

static tulle_status no_such_recipe(tl_base *b, word name)
{
    char names[768] = "";
    for (int i = 0; i < RECIPES; i++) append(names, sizeof names, recipes[i].name, ", ");
    return tl_fail(b, TULLE_EINVAL, "the gallery has no \"%.*s\"; it has %s", shown(name), name.at,
                   names);
}

static tulle_status no_such_param(tl_base *b, const tl_recipe *r, word name)
{
    char names[256] = "";
    for (const tl_param *p = r->param; p->name; p++) append(names, sizeof names, p->name, ", ");
    return tl_fail(b, TULLE_EINVAL, "%s has no parameter \"%.*s\"; it takes %s, seed, values", r->name,
                   shown(name), name.at, names);
}

/* ---- parameters */

static tulle_status read_value(tl_base *b, const tl_recipe *r, const tl_param *p, word text,
                               double *value)
{
    bool whole = false;
    double x = 0;
    if (!read_number(text, &x, &whole) || (!whole && !p->real) || x < p->min || x > p->max)
        return tl_fail(b, TULLE_EINVAL, "%s: %s=%.*s is not a %s from %.0f to %.0f", r->name, p->name,
                       shown(text), text.at, p->real ? "number" : "whole number", p->min, p->max);
    *value = x;
    return TULLE_OK;
}

static tulle_status read_param(tl_base *b, const tl_recipe *r, word name, word text, tl_rows *g,
                               bool *given, tl_values *values)
{
    if (same(name, "seed")) {
        if (read_seed(text, &g->seed)) return TULLE_OK;
        return tl_fail(b, TULLE_EINVAL, "%s: seed=%.*s is not a whole number below 2^64", r->name,
                       shown(text), text.at);
    }
    if (same(name, "values")) {
        for (int k = 0; k < 4; k++)
            if (same(text, value_names[k])) {
                *values = (tl_values)k;
                return TULLE_OK;
            }
        return tl_fail(b, TULLE_EINVAL, "%s: values=%.*s is none of natural, ones, random, integer",
                       r->name, shown(text), text.at);
    }
    for (int k = 0; r->param[k].name; k++)
        if (same(name, r->param[k].name)) {
            given[k] = true;
            return read_value(b, r, &r->param[k], text, &g->v[k]);
        }
    return no_such_param(b, r, name);
}

/* "1000,points=9": a first word without = is the first parameter. */
static tulle_status read_params(tl_base *b, const tl_recipe *r, const char *text, tl_rows *g,
                                bool *given, tl_values *values)
{
    tulle_status status = TULLE_OK;
    for (const char *p = text; *p; p += *p == ',') {
        bool first = p == text;
        word name = take(&p, "=,"), value = name;
        if (*p == '=') {
            p++;
            value = take(&p, ",");
        } else if (first && r->param[0].name) {
            name = (word){r->param[0].name, strlen(r->param[0].name)};
        } else {
            status = tl_fail(b, TULLE_EINVAL, "%s: \"%.*s\" needs a name, as in %s=%.*s", r->name,
                             shown(name), name.at, r->param[0].name ? r->param[0].name : "seed",
                             shown(name), name.at);
            goto done;
        }
        TRY(read_param(b, r, name, value, g, given, values));
    }
done:
    return status;
}

/* ---- names */

static const tl_recipe *find(word name, const char **params)
{
    *params = "";
    for (int i = 0; i < ALIASES; i++)
        if (same(name, aliases[i].name)) {
            *params = aliases[i].params;
            name = (word){aliases[i].recipe, strlen(aliases[i].recipe)};
            break;
        }
    for (int i = 0; i < RECIPES; i++)
        if (same(name, recipes[i].name)) return &recipes[i];
    return NULL;
}

/* Cuts off the number at the end of a name, and returns it. */
static word cut_number(word *name)
{
    word number = {name->at + name->n, 0};
    while (name->n > 0 && name->at[name->n - 1] >= '0' && name->at[name->n - 1] <= '9') {
        name->n--;
        number.at--;
        number.n++;
    }
    if (name->n > 0 && number.n > 0 && name->at[name->n - 1] == '_') name->n--;
    return number;
}

tulle_status tl_gallery(tl_base *b, const char *recipe, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_rows g = {.seed = 1};
    tl_values values = TL_NATURAL;
    bool given[TL_GALLERY_PARAMS] = {false};
    const char *text = recipe, *known = "";
    *out = NULL;
    atomic_store(&b->cancelled, 0);
    word whole_name = take(&text, ":"), name = whole_name, number = {0};
    if (*text == ':') text++;
    const tl_recipe *r = find(name, &known);
    if (!r) {
        number = cut_number(&name);
        r = number.n > 0 ? find(name, &known) : NULL;
    }
    if (!r) return no_such_recipe(b, whole_name);
    g.name = r->name;
    for (int k = 0; r->param[k].name; k++) g.v[k] = r->param[k].standard;
    TRY(read_params(b, r, known, &g, given, &values));
    if (number.n > 0) {
        if (!r->param[0].name) return no_such_recipe(b, whole_name);
        word first = {r->param[0].name, strlen(r->param[0].name)};
        TRY(read_param(b, r, first, number, &g, given, &values));
    }
    TRY(read_params(b, r, text, &g, given, &values));
    for (int k = 1; r->param[k].name; k++)
        if (!given[k] && r->param[k].standard == TL_FIRST) g.v[k] = g.v[0];
    TRY(r->setup(b, &g));
    TRY(tl_rows_build(b, &g, values, out));
    tl_trace(b, "gallery %s: %lld rows, %lld columns, %lld entries", r->name,
             (long long)(*out)->view.rows, (long long)(*out)->view.cols, (long long)(*out)->view.nnz);
done:
    return status;
}
