/* SPDX-License-Identifier: MIT
 *
 * mtx_dense.c - dense matrices to and from the array files of Matrix Market; from coordinate files, too.
 *
 * Read by mtx_read.c, which returns the values column-major already; symmetric files, which hold one
 * triangle, are expanded.  Written as general arrays, column by column, with the shortest decimals that read
 * back as the same number.  In each round every thread prints a piece, then the pieces are written in order,
 * so the file is the same for any number of threads.  Memory: the text of one piece per thread, 1 MiB. */
#include "matrix/files.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reading */

/* Expands a triangle, stored column by column: each value goes to (i,j), i >= j, and mirrored to (j,i). */
static void unfold(const tl_mtx_all *all, tulle_dense *A)
{
    const tl_mtx_head *h = &all->head;
    int64_t at = 0, n = A->rows, first = h->symmetry == TL_SKEW ? 1 : 0;
    for (int64_t j = 0; j < n; j++) {
        if (first) tl_value_store(A->val_type, A->values, j + j * n, (tl_c64){0, 0});
        for (int64_t i = j + first; i < n; i++) {
            tl_c64 v = tl_value_load(A->val_type, all->val, at++), m = v;
            if (h->symmetry == TL_SKEW) m = (tl_c64){-v.re, -v.im};
            if (h->symmetry == TL_HERMITIAN) m.im = -v.im;
            tl_value_store(A->val_type, A->values, j + i * n, m);
            tl_value_store(A->val_type, A->values, i + j * n, v);
        }
    }
}

/* A coordinate file, such as a sparse right-hand side of SuiteSparse's collection: entries among zeros. */
static tulle_status scatter(tl_base *b, tl_mtx_all *all, tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_mtx_head *h = &all->head;
    tulle_matrix *sparse = NULL;
    uint64_t bytes = tl_bytes_of(tl_bytes_of((uint64_t)h->rows, (uint64_t)h->cols), sizeof(double));
    if (bytes > tl_memory_free())       /* filling it with zeros would exhaust the memory */
        return tl_fail(b, TULLE_ENOMEM, "%s: a sparse matrix of %" PRId64 " x %" PRId64
                       " does not fit memory as a dense one", all->name, h->rows, h->cols);
    TRY(tl_mtx_build(b, all, &sparse));
    const tulle_csr *A = &sparse->view;
    TRY(tl_dense_create(b, A->rows, A->cols, TULLE_BY_COLS, A->val_type, out));
    if (!tl_is_zero((*out)->view.values))
        memset((*out)->view.values, 0, (size_t)(A->rows * A->cols) * tl_type_size(A->val_type));
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++)
            tl_value_store(A->val_type, (*out)->view.values, i + tl_get(A->col_idx, A->idx_type, k) * A->rows,
                           tl_value_load(A->val_type, A->values, k));
done:
    tl_matrix_free(b, sparse);
    return status;
}

static tulle_status check_diagonal(tl_base *b, const tl_mtx_all *all)
{
    int64_t n = all->head.rows;
    for (int64_t j = 0, at = 0; j < n; at += n - j++) {
        tl_c64 v = ((const tl_c64 *)all->val)[at];
        if (v.im != 0)
            return tl_fail(b, TULLE_EFORMAT,
                           "%s: the diagonal of a hermitian matrix must be real, and row %" PRId64
                           " has %g%+gi", all->name, j + 1, v.re, v.im);
    }
    return TULLE_OK;
}

tulle_status tl_mtx_read_dense(tl_source *s, tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    tl_mtx_all all = {.name = s->name};
    tulle_dense_matrix *A = NULL;
    TRY(tl_mtx_read_all(s, &all));
    const tl_mtx_head *h = &all.head;
    if (h->layout != TL_ARRAY) {
        status = scatter(b, &all, out);
        goto done;
    }
    if (h->symmetry == TL_HERMITIAN) TRY(check_diagonal(b, &all));
    tulle_type type = h->field == TL_COMPLEX ? TULLE_CF64 : TULLE_F64;
    TRY(tl_dense_create(b, h->rows, h->cols, TULLE_BY_COLS, type, &A));
    if (h->symmetry == TL_GENERAL) {
        tl_free(b, A->view.values);
        A->view.values = all.val;
        all.val = NULL;
    } else {
        unfold(&all, &A->view);
    }
    *out = A;
done:
    tl_free(b, all.row);
    tl_free(b, all.col);
    tl_free(b, all.val);
    return status;
}

/* ---- writing */

enum { PIECE = 1 << 14, VALUE_MOST = 2 * 28 + 2, HEADER_MOST = 256 };

typedef struct printing {
    const tulle_dense *A;
    int64_t            first, count;    /* values of the matrix, column by column */
    char             **text;
    int64_t           *bytes;
} printing;

static char *print_value(const tulle_dense *A, int64_t at, char *p)
{
    switch (A->val_type) {
    case TULLE_F32: p += tl_print_float(p, ((const float *)A->values)[at]); break;
    case TULLE_F64: p += tl_print_double(p, ((const double *)A->values)[at]); break;
    case TULLE_CF32:
        p += tl_print_float(p, ((const tl_c32 *)A->values)[at].re);
        *p++ = ' ';
        p += tl_print_float(p, ((const tl_c32 *)A->values)[at].im);
        break;
    case TULLE_CF64:
        p += tl_print_double(p, ((const tl_c64 *)A->values)[at].re);
        *p++ = ' ';
        p += tl_print_double(p, ((const tl_c64 *)A->values)[at].im);
        break;
    }
    *p++ = '\n';
    return p;
}

static void print_work(void *arg, int thread, int threads)
{
    const printing *j = arg;
    const tulle_dense *A = j->A;
    int64_t begin = j->first + (int64_t)thread * PIECE;
    int64_t end = begin + PIECE < j->count ? begin + PIECE : j->count;
    int64_t down = A->order == TULLE_BY_COLS ? 1 : A->ld, across = A->order == TULLE_BY_COLS ? A->ld : 1;
    char *p = j->text[thread];
    (void)threads;
    for (int64_t k = begin; k < end; k++) p = print_value(A, k % A->rows * down + k / A->rows * across, p);
    j->bytes[thread] = p - j->text[thread];
}

tulle_status tl_mtx_write_dense(tl_base *b, const char *path, const tulle_dense *A)
{
    tulle_status status = TULLE_OK;
    int threads = tl_team_size(b->team), error = 0;
    printing j = {.A = A, .count = A->rows * A->cols};
    tl_out o = {.b = b, .fd = -1};
    char head[HEADER_MOST];
    TRY(tl_calloc(b, &j.text, threads, sizeof *j.text, "pieces of text"));
    TRY(tl_calloc(b, &j.bytes, threads, sizeof *j.bytes, "pieces of text"));
    for (int t = 0; t < threads && (int64_t)t * PIECE < j.count; t++)
        TRY(tl_alloc(b, &j.text[t], PIECE, VALUE_MOST + TL_NUMBER_MAX, "a piece of text"));
    TRY(tl_out_open(b, path, &o));
    int64_t at = snprintf(head, sizeof head,
                          "%%%%MatrixMarket matrix array %s general\n%% written by tulle %s\n%" PRId64
                          " %" PRId64 "\n", tl_type_complex(A->val_type) ? "complex" : "real", TULLE_VERSION,
                          A->rows, A->cols);
    error = tl_out_put(&o, head, at, 0);
    for (; j.first < j.count && error == 0; j.first += (int64_t)threads * PIECE) {
        if (tl_progress(b, "write", (double)j.first / (double)j.count))
            TRY(tl_fail(b, TULLE_ECANCEL, "%s: writing was cancelled", path));
        int64_t left = (j.count - j.first - 1) / PIECE + 1;
        int now = left < threads ? (int)left : threads;
        tl_team_run(b->team, now, print_work, &j);
        for (int t = 0; t < now && error == 0; t++) {
            error = tl_out_put(&o, j.text[t], j.bytes[t], at);
            at += j.bytes[t];
        }
    }
    if (error) TRY(tl_out_fail(&o, error));
    TRY(tl_out_rename(&o));
done:
    tl_out_close(&o);
    for (int t = 0; j.text && t < threads; t++) tl_free(b, j.text[t]);
    tl_free(b, j.text);
    tl_free(b, j.bytes);
    return status;
}
