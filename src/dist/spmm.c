/* SPDX-License-Identifier: MIT
 *
 * spmm.c - Y = alpha*A*X + beta*Y by the same lists: rows of X instead of rows of B, all of one length.
 *
 * Own and fetched rows of X lie in global order, so every sum is the one of a single process.
 * Memory: those rows of X once, A's columns once, and the slices of exchange.c. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

typedef struct rows_of_x {
    tulle_dist       *d;
    tl_lists          lists;
    const tulle_csr  *A;
    const tulle_dense *X;
    size_t            value;
    int64_t          *sent;
    char             *all;              /* own and fetched rows, one after the other */
    void             *a_col;
    tulle_index       a_type;
    tulle_status      status;
} rows_of_x;

static void copy_row(const rows_of_x *x, int64_t row, char *to)
{
    const tulle_dense *X = x->X;
    const char *from = X->values;
    size_t v = x->value;
    if (X->order == TULLE_BY_ROWS) {
        memcpy(to, from + row * X->ld * (int64_t)v, (size_t)X->cols * v);
        return;
    }
    for (int64_t j = 0; j < X->cols; j++)
        memcpy(to + j * (int64_t)v, from + (row + j * X->ld) * (int64_t)v, v);
}

static void pack_rows(void *arg, int to, int64_t count, char *buffer)
{
    rows_of_x *x = arg;
    const tl_lists *l = &x->lists;
    for (int64_t k = 0; k < count; k++)
        copy_row(x, l->give[l->to[to] + x->sent[to]++], buffer + k * x->X->cols * (int64_t)x->value);
}

static void own_part(void *arg)
{
    rows_of_x *x = arg;
    const tl_lists *l = &x->lists;
    for (int64_t i = 0; i < l->own_rows; i++)
        copy_row(x, i, x->all + (l->below + i) * x->X->cols * (int64_t)x->value);
    x->status = tl_lists_renumber(x->d->b, &x->lists, x->A, &x->a_col, &x->a_type);
}

static tulle_status fetch_rows(rows_of_x *x)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = x->d;
    tl_lists *l = &x->lists;
    int size = d->t.size;
    int64_t *count = NULL, row_bytes = x->X->cols * (int64_t)x->value;
    char **place = NULL;
    status = tl_calloc(d->b, &count, 2 * (int64_t)size, sizeof *count, "counts of rows");
    if (status == TULLE_OK) status = tl_calloc(d->b, &x->sent, size, sizeof *x->sent, "counts of rows");
    if (status == TULLE_OK) status = tl_alloc(d->b, &place, size, sizeof *place, "places of rows");
    if (status == TULLE_OK)
        status = tl_alloc(d->b, &x->all, tl_lists_rows(l) * x->X->cols, x->value, "rows of X");
    for (int r = 0; r < size && status == TULLE_OK; r++) {
        count[r] = row_bytes > 0 ? l->to[r + 1] - l->to[r] : 0;
        count[size + r] = row_bytes > 0 ? l->from[r + 1] - l->from[r] : 0;
        place[r] = x->all + (l->from[r] + (r > d->t.rank ? l->own_rows : 0)) * row_bytes;
    }
    tl_stream s = {.kind = TL_MAIL_VALUES, .item = row_bytes > 0 ? (size_t)row_bytes : 1, .out = count,
                   .in = count + size,
                   .place = place, .pack = pack_rows, .meanwhile = own_part, .arg = x};
    TRY(tl_exchange(d, status, &s));
    status = x->status;
done:
    tl_free(d->b, count);
    tl_free(d->b, place);
    return status;
}

static tulle_status look(tulle_dist *d, const tulle_dist_csr *A, tulle_dense *X, const int64_t *x_starts,
                         tulle_dense *Y,
                         const tulle_spmm_options *o)
{
    tulle_status status = TULLE_OK;
    int rank = d->t.rank;
    if (o->op_a != TULLE_KEEP)
        TRY(tl_fail(d->b, TULLE_EINVAL, "op_a: a distributed A is taken as it is; transpose it first"));
    TRY(tl_starts_check(d, x_starts, A->local.cols, "X"));
    TRY(tl_dense_check(d->b, X, "X", true));
    TRY(tl_dense_check(d->b, Y, "Y", true));
    if (X->place != TULLE_HOST || Y->place != TULLE_HOST)
        TRY(tl_fail(d->b, TULLE_EINVAL, "rows of distributed matrices lie in host memory"));
    if (X->rows != x_starts[rank + 1] - x_starts[rank])
        TRY(tl_fail(d->b, TULLE_ESHAPE, "X has %" PRId64 " rows here, x_starts says %" PRId64, X->rows,
                    x_starts[rank + 1] - x_starts[rank]));
    if (X->val_type != A->local.val_type)
        TRY(tl_fail(d->b, TULLE_ETYPE, "values of A are %s, those of X are %s",
                    tl_type_name(A->local.val_type),
                    tl_type_name(X->val_type)));
done:
    return status;
}

tulle_status tl_dist_spmm(tulle_dist *d, const tulle_dist_csr *A, const tulle_dense *given_x,
                          const int64_t *x_starts,
                          tulle_dense *given_y, const tulle_spmm_options *o)
{
    tulle_status status = TULLE_OK;
    tulle_dense X = *given_x, Y = *given_y;
    tulle_spmm_options local = *o;
    rows_of_x x = {.d = d, .A = &A->local, .X = &X};
    tl_account account = {.blocks = 1};
    TRY(tl_dist_check(d, A, "A", o->trust_inputs));
    status = look(d, A, &X, x_starts, &Y, o);
    TRY(tl_same_everywhere(d, status, &(tl_same){"X", "the number of its columns", X.cols}, 1));
    tl_count_begin(d);
    x.value = tl_type_size(X.val_type);
    local.trust_inputs = 1;
    if (d->t.size == 1) {
        TRY(tl_agree(d, tulle_spmm(d->ctx, &A->local, &X, &Y, &local)));
        goto done;
    }
    TRY(tl_lists_make(d, &A->local, x_starts, &x.lists));
    AGREE(fetch_rows(&x));
    tulle_csr a = A->local;
    a.cols = tl_lists_rows(&x.lists);
    a.col_idx = x.a_col;
    a.idx_type = x.a_type;
    tulle_dense all = tulle_dense_make(a.cols, X.cols, 0, TULLE_BY_ROWS, x.all, X.val_type);
    status = tulle_spmm(d->ctx, &a, &all, &Y, &local);
    account.fetched = x.lists.need;
    account.exact = (uint64_t)x.lists.need * (uint64_t)X.cols * x.value;
    account.gather = (uint64_t)X.rows * (uint64_t)X.cols * x.value;
    account.products = a.nnz * X.cols;
    account.c_nnz = Y.rows * Y.cols;
    TRY(tl_stats_join(d, status, &account));
done:
    tl_lists_done(d->b, &x.lists);
    tl_free(d->b, x.sent);
    tl_free(d->b, x.all);
    tl_free(d->b, x.a_col);
    return status;
}
