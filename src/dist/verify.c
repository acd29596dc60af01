/* SPDX-License-Identifier: MIT
 *
 * verify.c - checks that C = A*B: compares C*x with A*(B*x) for one random x, in double precision, over all
 * ranks.
 *
 * The difference is relative to |A|*(|B|*|x|), row by row.  An entry of C is a sum of at most as many
 * products as A's row has entries, each rounded once or twice, which gives the bound.  Memory: a copy of the
 * largest of the three in double precision, and a few vectors. */
#include "dist/dist.h"
#include <float.h>
#include <math.h>
#include <string.h>

typedef struct number { double re, im; } number;

/* +-(0.5 .. 1), a function of the row number, so the same on any rank. */
static double random_of(int64_t row)
{
    uint64_t h = ((uint64_t)row + 1) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h ^= h >> 31;
    double size = 0.5 + (double)(h >> 12) * 0x1p-53;
    return h & 1 ? -size : size;
}

/* y = A*x or |A|*x; x has the row blocks x_starts. */
static tulle_status apply(tulle_dist *d, const tulle_dist_csr *A, const number *x, const int64_t *x_starts,
                          bool sizes, number *y)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *copy = NULL;
    tulle_spmm_options o = {.trust_inputs = 1};
    tulle_dist_csr wide = *A;
    status = tulle_csr_convert(d->ctx, &A->local, TULLE_CF64, 0, 0, &copy);
    AGREE(status);
    wide.local = tulle_matrix_view(copy);
    number *value = tulle_matrix_values(copy);
    for (int64_t k = 0; sizes && k < wide.local.nnz; k++)
        value[k] = (number){hypot(value[k].re, value[k].im), 0};
    tulle_dense X = tulle_dense_make(x_starts[d->t.rank + 1] - x_starts[d->t.rank], 1, 0, TULLE_BY_COLS,
                                     (void *)(uintptr_t)x,
                                     TULLE_CF64);
    tulle_dense Y = tulle_dense_make(wide.local.rows, 1, 0, TULLE_BY_COLS, y, TULLE_CF64);
    TRY(tl_dist_spmm(d, NULL, &wide, &X, x_starts, NULL, &Y, &o));
done:
    tl_matrix_free(d->b, copy);
    return status;
}

static int64_t longest_row(const tulle_csr *A)
{
    int64_t most = 0;
    for (int64_t i = 0; i < A->rows; i++)
        if (tl_row_begin(A, i + 1) - tl_row_begin(A, i) > most)
            most = tl_row_begin(A, i + 1) - tl_row_begin(A, i);
    return most;
}

typedef struct vectors { number *x, *size_x, *bx, *size_bx, *abx, *size_abx, *cx; int64_t *starts; } vectors;

static tulle_status make_vectors(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, vectors *v)
{
    tulle_status status = TULLE_OK;
    int64_t n = B->local.cols, first = tl_part(n, d->t.rank, d->t.size), rows = tl_part(n, d->t.rank + 1,
                                                                                        d->t.size) - first;
    number **const of_x[] = {&v->x, &v->size_x}, **const of_b[] = {&v->bx, &v->size_bx};
    number **const of_a[] = {&v->abx, &v->size_abx, &v->cx};
    for (int k = 0; k < 2; k++) TRY(tl_calloc(d->b, of_x[k], rows + 1, sizeof(number), "a vector"));
    for (int k = 0; k < 2; k++) TRY(tl_calloc(d->b, of_b[k], B->local.rows + 1, sizeof(number), "a vector"));
    for (int k = 0; k < 3; k++) TRY(tl_calloc(d->b, of_a[k], A->local.rows + 1, sizeof(number), "a vector"));
    TRY(tl_alloc(d->b, &v->starts, d->t.size + 1, sizeof *v->starts, "row blocks"));
    for (int r = 0; r <= d->t.size; r++) v->starts[r] = tl_part(n, r, d->t.size);
    for (int64_t i = 0; i < rows; i++) {
        v->x[i].re = random_of(first + i);
        v->size_x[i].re = fabs(v->x[i].re);
    }
done:
    return status;
}

tulle_status tl_dist_product_check(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                   const tulle_dist_csr *C,
                                   double *error)
{
    tulle_status status = TULLE_OK;
    vectors v = {0};
    bool narrow = C->local.val_type == TULLE_F32 || C->local.val_type == TULLE_CF32;
    double eps = narrow ? FLT_EPSILON : DBL_EPSILON, worst = 0;
    AGREE(make_vectors(d, A, B, &v));
    TRY(apply(d, B, v.x, v.starts, false, v.bx));
    TRY(apply(d, B, v.size_x, v.starts, true, v.size_bx));
    TRY(apply(d, A, v.bx, B->row_starts, false, v.abx));
    TRY(apply(d, A, v.size_bx, B->row_starts, true, v.size_abx));
    TRY(apply(d, C, v.x, v.starts, false, v.cx));
    for (int64_t i = 0; i < A->local.rows; i++) {
        double off = hypot(v.cx[i].re - v.abx[i].re, v.cx[i].im - v.abx[i].im);
        double relative = off == 0 ? 0 : off / v.size_abx[i].re;
        if (!(relative <= worst)) worst = relative;             /* also if it is NaN */
    }
    int64_t most[3] = {longest_row(&A->local), longest_row(&C->local), isfinite(worst) && worst < 9
                       ? (int64_t)(worst * 1e18) : INT64_MAX};
    TRY(tl_allreduce(d, most, 3, TULLE_MAX));
    *error = most[2] == INT64_MAX ? INFINITY : (double)most[2] * 1e-18;
    if (!(*error <= eps * (4 * (double)most[0] + 16) + DBL_EPSILON * (double)most[1]))
        status = tl_fail(d->b, TULLE_ECHECK, "C*x and A*(B*x) differ by %.1e", *error);
done:
    tl_free(d->b, v.x);
    tl_free(d->b, v.size_x);
    tl_free(d->b, v.bx);
    tl_free(d->b, v.size_bx);
    tl_free(d->b, v.abx);
    tl_free(d->b, v.size_abx);
    tl_free(d->b, v.cx);
    tl_free(d->b, v.starts);
    return status;
}
