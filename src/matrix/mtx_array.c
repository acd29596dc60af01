/* SPDX-License-Identifier: MIT
 *
 * mtx_array.c - the values of an array file, column by column, to CSR.
 *
 * Zeros become empty places, as an array file has no other way to express them.  Symmetric and hermitian
 * arrays hold the lower triangle with the diagonal, skew-symmetric ones without it.
 * Memory: the values of the file, besides the matrix. */
#include "matrix/files.h"
#include <inttypes.h>

typedef struct dense {
    const tl_mtx_head *h;
    const void        *val;
    tulle_matrix      *A;
    int64_t           *count;           /* per row; then its prefix sum  */
    bool               complex_;
} dense;

/* A(i,j); false: zero, or not stored. */
static bool element(const dense *d, int64_t i, int64_t j, tl_c64 *value)
{
    const tl_mtx_head *h = d->h;
    bool mirrored = h->symmetry != TL_GENERAL && i < j;
    int64_t r = mirrored ? j : i, c = mirrored ? i : j, at;
    if (h->symmetry == TL_GENERAL) at = c * h->rows + r;
    else if (h->symmetry == TL_SKEW) at = c * (h->rows - 1) - c * (c - 1) / 2 + (r - c - 1);
    else at = c * h->rows - c * (c - 1) / 2 + (r - c);
    if (h->symmetry == TL_SKEW && i == j) return false;
    if (d->complex_) *value = ((const tl_c64 *)d->val)[at];
    else *value = (tl_c64){((const double *)d->val)[at], 0};
    if (mirrored && h->symmetry == TL_SKEW) *value = (tl_c64){-value->re, -value->im};
    if (mirrored && h->symmetry == TL_HERMITIAN) value->im = -value->im;
    return value->re != 0 || value->im != 0;
}

static void count(void *arg, int thread, int threads)
{
    dense *d = arg;
    int64_t end = tl_part(d->h->rows, thread + 1, threads);
    tl_c64 value;
    for (int64_t i = tl_part(d->h->rows, thread, threads); i < end; i++) {
        int64_t n = 0;
        for (int64_t j = 0; j < d->h->cols; j++) n += element(d, i, j, &value);
        d->count[i] = n;
    }
}

static void fill(void *arg, int thread, int threads)
{
    dense *d = arg;
    const tulle_csr *v = &d->A->view;
    int64_t end = tl_part(d->h->rows, thread + 1, threads);
    tl_c64 value;
    for (int64_t i = tl_part(d->h->rows, thread, threads); i < end; i++) {
        int64_t p = d->count[i];
        tl_put(d->A->row_ptr, v->ptr_type, i, p);
        for (int64_t j = 0; j < d->h->cols; j++) {
            if (!element(d, i, j, &value)) continue;
            tl_put(d->A->col_idx, v->idx_type, p, j);
            if (d->complex_) ((tl_c64 *)d->A->values)[p] = value;
            else ((double *)d->A->values)[p] = value.re;
            p++;
        }
    }
}

tulle_status tl_mtx_build_array(tl_base *b, tl_mtx_all *all, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_mtx_head *h = &all->head;
    dense d = {.h = h, .val = all->val, .complex_ = h->field == TL_COMPLEX};
    int threads = h->entries < 10000 ? 1 : tl_team_size(b->team);
    tl_c64 value;
    *out = NULL;
    for (int64_t i = 0; h->symmetry == TL_HERMITIAN && i < h->rows; i++) {
        if (!element(&d, i, i, &value) || value.im == 0) continue;
        status = tl_fail(b, TULLE_EFORMAT, "%s: the diagonal of a hermitian matrix must be real, and row %"
                         PRId64 " has %g%+gi", all->name, i + 1, value.re, value.im);
        goto done;
    }
    TRY(tl_alloc(b, &d.count, h->rows, sizeof *d.count, "counts of rows"));
    tl_team_run(b->team, threads, count, &d);
    int64_t nnz = 0;
    for (int64_t i = 0; i < h->rows; i++) {
        int64_t n = d.count[i];
        d.count[i] = nnz;
        nnz += n;
    }
    TRY(tl_matrix_create(b, h->rows, h->cols, nnz, tl_index_for(nnz), all->idx_type,
                         d.complex_ ? TULLE_CF64 : TULLE_F64, &d.A));
    tl_put(d.A->row_ptr, d.A->view.ptr_type, h->rows, nnz);
    tl_team_run(b->team, threads, fill, &d);
    *out = d.A;
done:
    tl_free(b, d.count);
    return status;
}
