/* SPDX-License-Identifier: MIT
 *
 * gallery.h - what a recipe of the gallery is made of.
 *
 * A recipe is a function that writes one row.  gallery_rows.c calls it for every row twice, from all
 * threads: once to count, once to fill.  A row depends on nothing but its number, the parameters and
 * the seed, so a matrix is the same for any number of threads.  It is also the same on every machine:
 * only integers and the correctly rounded operations (+ - * / sqrt fma) are used. */
#ifndef TL_GALLERY_H
#define TL_GALLERY_H
#include "matrix/matrix.h"

enum { TL_GALLERY_PARAMS = 7, TL_GALLERY_BLOCKS = 3 };

typedef struct tl_rows tl_rows;

/* Writes the sorted columns of row i, and its values if the recipe is natural (val is NULL where only columns
 * are wanted); returns their number. */
typedef int64_t (*tl_row_fn)(const tl_rows *g, int64_t i, int64_t *col, double *val);

struct tl_rows {
    double       v[TL_GALLERY_PARAMS];      /* the parameters, in the order of the recipe        */
    uint64_t     seed;
    const char  *name;
    /* set by the recipe's setup */
    double       rows, cols;                /* double, so that products of parameters cannot overflow */
    double       entries, max_row;          /* upper bounds; max_row also sizes the row buffers  */
    double       extra_bytes;               /* what prepare will allocate                        */
    tl_row_fn    row;
    int64_t    (*count)(const tl_rows *g, int64_t i);           /* (optional) only the length of a row */
    tulle_status (*prepare)(tl_base *b, tl_rows *g);                    /* (optional) fills block[] */
    tulle_status (*finish)(tl_base *b, tl_rows *g, tulle_matrix *A);    /* (optional) if natural   */
    bool         natural;                   /* row writes values of its own                      */
    void        *block[TL_GALLERY_BLOCKS];  /* freed when the matrix is done                     */
};

typedef struct tl_param {
    const char *name;                       /* NULL: past the last                               */
    double      standard, min, max;         /* standard TL_FIRST: as the first parameter         */
    bool        real;                       /* else whole numbers only                           */
} tl_param;

#define TL_FIRST (-1.0)

typedef struct tl_recipe {
    const char  *name, *text;
    tulle_status (*setup)(tl_base *b, tl_rows *g);
    tl_param     param[TL_GALLERY_PARAMS + 1];
} tl_recipe;

/* The i-th recipe, NULL past the last. */
const tl_recipe *tl_gallery_recipe(int i);

/* Recipes of these files: gallery_grid.c, gallery_simple.c, gallery_random.c, gallery_rmat.c,
 * gallery_geometric.c, gallery_known.c, gallery_wathen.c, gallery_cage.c. */
tulle_status tl_setup_poisson2d(tl_base *b, tl_rows *g);
tulle_status tl_setup_poisson3d(tl_base *b, tl_rows *g);
tulle_status tl_setup_elasticity3d(tl_base *b, tl_rows *g);
tulle_status tl_setup_prolongator(tl_base *b, tl_rows *g);
tulle_status tl_setup_baumann(tl_base *b, tl_rows *g);
tulle_status tl_setup_identity(tl_base *b, tl_rows *g);
tulle_status tl_setup_tridiagonal(tl_base *b, tl_rows *g);
tulle_status tl_setup_banded(tl_base *b, tl_rows *g);
tulle_status tl_setup_arrow(tl_base *b, tl_rows *g);
tulle_status tl_setup_blockdiag(tl_base *b, tl_rows *g);
tulle_status tl_setup_dense(tl_base *b, tl_rows *g);
tulle_status tl_setup_random(tl_base *b, tl_rows *g);
tulle_status tl_setup_zipf(tl_base *b, tl_rows *g);
tulle_status tl_setup_rmat(tl_base *b, tl_rows *g);
tulle_status tl_setup_geometric(tl_base *b, tl_rows *g);
tulle_status tl_setup_mycielskian(tl_base *b, tl_rows *g);
tulle_status tl_setup_conf5(tl_base *b, tl_rows *g);
tulle_status tl_setup_mc2depi(tl_base *b, tl_rows *g);
tulle_status tl_setup_majorbasis(tl_base *b, tl_rows *g);
tulle_status tl_setup_s3dkq4m2(tl_base *b, tl_rows *g);
tulle_status tl_setup_s3dkt3m2(tl_base *b, tl_rows *g);
tulle_status tl_setup_ncvxqp(tl_base *b, tl_rows *g);
tulle_status tl_setup_trefethen(tl_base *b, tl_rows *g);
tulle_status tl_setup_wathen(tl_base *b, tl_rows *g);
tulle_status tl_setup_cage(tl_base *b, tl_rows *g);

/* ---- gallery_rows.c */

typedef enum { TL_NATURAL, TL_ONES, TL_RANDOM, TL_INTEGER } tl_values;

tulle_status tl_rows_build(tl_base *b, tl_rows *g, tl_values values, tulle_matrix **out);
/* Calls fn for pieces of 0..count on all threads, in no fixed order; TULLE_ECANCEL when the progress callback
 * cancelled. */
typedef void (*tl_piece_fn)(void *arg, int thread, int64_t begin, int64_t end);
tulle_status tl_pieces_run(tl_base *b, const char *stage, int64_t count, tl_piece_fn fn, void *arg);
/* Sorts a row by column and adds duplicates in their order; val may be NULL. */
int64_t      tl_row_merge(int64_t *col, double *val, int64_t n);
/* Sorts columns and removes duplicates. */
int64_t      tl_row_set(int64_t *col, int64_t n);

/* Random numbers: a hash of what the number is used for, or a stream seeded with such a hash. */
static inline uint64_t tl_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint64_t tl_hash(uint64_t seed, uint64_t i, uint64_t j)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    return tl_mix(tl_mix((seed + 1) * golden + i) + (j + 1) * golden);
}

static inline uint64_t tl_next(uint64_t *stream)
{
    *stream += UINT64_C(0x9E3779B97F4A7C15);
    return tl_mix(*stream);
}

/* In 0..1, 1 excluded. */
static inline double tl_unit(uint64_t hash)
{
    return (double)(hash >> 11) * (1.0 / 9007199254740992.0);
}

#endif
