/* SPDX-License-Identifier: MIT
 *
 * mtx_symmetric.c - a symmetric or hermitian matrix to a Matrix Market file: its lower triangle.
 *
 * A reader mirrors the entries below the diagonal, so a matrix that is not equal to its transpose would be
 * read back as a different one: it is refused, and the message names an entry without an equal mirror image.
 * One pass over the rows finds it: entry (i,j) left of the diagonal must match the next unmatched entry of
 * row j right of the diagonal, because both are visited in the same order.
 *
 * Memory: a position for each row, and the triangle. */
#include "matrix/files.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <math.h>

typedef struct triangle {
    const tulle_csr *A;
    bool             adjoint;           /* compare with the conjugate */
    int64_t         *next;              /* of each row: its next entry right of the diagonal */
    int64_t          row, col;          /* the first entry without an equal mirror image */
} triangle;

static tl_c64 value_at(const tulle_csr *A, int64_t k)
{
    return A->values ? tl_value_load(A->val_type, A->values, k) : (tl_c64){1, 0};
}

static bool same(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* Whether entry k mirrors entry m; on the diagonal both are the same entry. */
static bool mirrored(const triangle *t, int64_t k, int64_t m)
{
    tl_c64 x = value_at(t->A, k), y = value_at(t->A, m);
    return same(x.re, y.re) && same(x.im, t->adjoint ? -y.im : y.im);
}

static bool is_symmetric(triangle *t)
{
    const tulle_csr *A = t->A;
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t k = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
        for (; k < end; k++) {
            int64_t j = tl_get(A->col_idx, A->idx_type, k);
            t->row = i, t->col = j;
            if (j > i) break;
            if (j == i) {
                if (!mirrored(t, k, k)) return false;
                continue;
            }
            int64_t m = t->next[j];
            if (m == tl_row_begin(A, j + 1)) return false;
            int64_t at = tl_get(A->col_idx, A->idx_type, m);
            if (at < i) t->row = j, t->col = at;        /* (j,at) was never matched: row `at` has no (at,j) */
            if (at != i || !mirrored(t, k, m)) return false;
            t->next[j]++;
        }
        t->next[i] = k;
    }
    for (int64_t j = 0; j < A->rows; j++)
        if (t->next[j] < tl_row_begin(A, j + 1)) {
            t->row = j, t->col = tl_get(A->col_idx, A->idx_type, t->next[j]);
            return false;
        }
    return true;
}

static tulle_status lower_triangle(tl_base *b, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t count = 0, at = 0;
    size_t idx = tl_index_size(A->idx_type), val = tl_value_size(A);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++)
            count += tl_get(A->col_idx, A->idx_type, k) <= i;
    TRY(tl_matrix_like(b, A->rows, A->cols, count, A->ptr_type, A->idx_type, A, out));
    char *ptr = (*out)->row_ptr, *col = (*out)->col_idx, *values = (*out)->values;
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t begin = tl_row_begin(A, i), end = begin;
        while (end < tl_row_begin(A, i + 1) && tl_get(A->col_idx, A->idx_type, end) <= i) end++;
        tl_put(ptr, A->ptr_type, i, at);
        size_t n = (size_t)(end - begin);
        memcpy(col + (size_t)at * idx, (const char *)A->col_idx + (size_t)begin * idx, n * idx);
        if (val) memcpy(values + (size_t)at * val, (const char *)A->values + (size_t)begin * val, n * val);
        at += end - begin;
    }
    tl_put(ptr, A->ptr_type, A->rows, at);
done:
    return status;
}

tulle_status tl_write_symmetric(tl_base *b, const char *path, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *lower = NULL;
    triangle t = {.A = A};
    bool gz = tl_name_ends(path, ".mtx.gz");
    if (!gz && !tl_name_ends(path, ".mtx"))
        TRY(tl_fail(b, TULLE_EINVAL, "%s: only Matrix Market files (.mtx, .mtx.gz) hold half of a "
                    "symmetric matrix", path));
    if (A->rows != A->cols)
        TRY(tl_fail(b, TULLE_ESHAPE, "%s: a matrix of %" PRId64 " x %" PRId64 " is not symmetric", path,
                    A->rows, A->cols));
    TRY(tl_alloc(b, &t.next, A->rows, sizeof *t.next, "a position for each row"));
    bool found = is_symmetric(&t);
    int64_t row = t.row, col = t.col;
    if (!found && A->values && tl_type_complex(A->val_type)) {
        t.adjoint = true;
        found = is_symmetric(&t);
    }
    if (!found)
        TRY(tl_fail(b, TULLE_EINVAL, "%s: the matrix is not symmetric: entry (%" PRId64 ", %" PRId64 ") has"
                    " no equal at (%" PRId64 ", %" PRId64 ")", path, row + 1, col + 1, col + 1, row + 1));
    TRY(lower_triangle(b, A, &lower));
    TRY(tl_mtx_write(b, path, &lower->view, t.adjoint ? "hermitian" : "symmetric", gz));
done:
    tl_free(b, t.next);
    tl_matrix_free(b, lower);
    return status;
}
