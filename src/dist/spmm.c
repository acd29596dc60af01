/* SPDX-License-Identifier: MIT
 *
 * spmm.c - Y = alpha*op(A)*X + beta*Y with the same lists: rows of X instead of rows of B, all of one length.
 *
 * Own and fetched rows of X are in global order, so every sum is the same as in a single process.  With a
 * transposed op, A is transposed first, into the row blocks of Y.  A plan keeps the lists, the renumbered A
 * and a local plan: its runs move only rows of X.  Memory: those rows of X, A's columns, and the slices of
 * exchange.c; a transposed A as a whole, and in a plan what turn.c needs. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

typedef struct rows_of_x {
    tulle_dist       *d;
    tl_lists         *lists;
    const tulle_csr  *A;                /* to be renumbered meanwhile; NULL: already done */
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
    const tl_lists *l = x->lists;
    for (int64_t k = 0; k < count; k++)
        copy_row(x, l->give[l->to[to] + x->sent[to]++], buffer + k * x->X->cols * (int64_t)x->value);
}

static void own_part(void *arg)
{
    rows_of_x *x = arg;
    const tl_lists *l = x->lists;
    for (int64_t i = 0; i < l->own_rows; i++)
        copy_row(x, i, x->all + (l->below + i) * x->X->cols * (int64_t)x->value);
    if (x->A) x->status = tl_lists_renumber(x->d->b, x->lists, x->A, &x->a_col, &x->a_type);
}

static tulle_status fetch_rows(rows_of_x *x)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = x->d;
    tl_lists *l = x->lists;
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

/* Checks X on this rank; rows: the total of all ranks. */
static tulle_status look(tulle_dist *d, tulle_type val_type, int64_t rows, tulle_dense *X,
                         const int64_t *x_starts, tulle_dense *Y)
{
    tulle_status status = TULLE_OK;
    int rank = d->t.rank;
    TRY(tl_starts_check(d, x_starts, rows, "X"));
    TRY(tl_dense_check(d->b, X, "X", true));
    TRY(tl_dense_check(d->b, Y, "Y", true));
    if (X->place != TULLE_HOST || Y->place != TULLE_HOST)
        TRY(tl_fail(d->b, TULLE_EINVAL, "rows of distributed matrices lie in host memory"));
    if (X->rows != x_starts[rank + 1] - x_starts[rank])
        TRY(tl_fail(d->b, TULLE_ESHAPE, "X has %" PRId64 " rows here, x_starts says %" PRId64, X->rows,
                    x_starts[rank + 1] - x_starts[rank]));
    if (X->val_type != val_type)
        TRY(tl_fail(d->b, TULLE_ETYPE, "values of A are %s, those of X are %s", tl_type_name(val_type),
                    tl_type_name(X->val_type)));
done:
    return status;
}

static tulle_status same_width(tulle_dist *d, tulle_status status, const tulle_dense *X)
{
    return tl_same_everywhere(d, status, &(tl_same){"X", "the number of its columns", X->cols}, 1);
}

static tl_account account_of(const rows_of_x *x, int64_t a_nnz, const tulle_dense *Y)
{
    uint64_t row = (uint64_t)x->X->cols * x->value;
    return (tl_account){.blocks = 1, .fetched = x->lists->need, .exact = (uint64_t)x->lists->need * row,
                        .gather = (uint64_t)x->X->rows * row, .products = a_nnz * x->X->cols,
                        .c_nnz = Y->rows * Y->cols};
}

static void done_with(rows_of_x *x)
{
    tl_free(x->d->b, x->sent);
    tl_free(x->d->b, x->all);
    tl_free(x->d->b, x->a_col);
}

/* ---- one product */

/* Computes the row blocks of Y from the number of rows on each rank. */
static tulle_status blocks_of(tulle_dist *d, int64_t rows, int64_t want, int64_t **out)
{
    tulle_status status = TULLE_OK;
    int64_t *count = NULL;
    int size = d->t.size;
    status = tl_calloc(d->b, &count, 2 * (int64_t)size, sizeof *count, "counts of rows");
    if (status == TULLE_OK) status = tl_calloc(d->b, out, size + 1, sizeof **out, "row blocks");
    AGREE(status);
    for (int r = 0; r < size; r++) count[r] = rows;
    TRY(tl_alltoall(d, count, count + size));
    for (int r = 0; r < size; r++) (*out)[r + 1] = (*out)[r] + count[size + r];
    if ((*out)[size] != want)
        TRY(tl_fail(d->b, TULLE_ESHAPE, "Y has %" PRId64 " rows on all ranks, op(A) has %" PRId64,
                    (*out)[size], want));
done:
    tl_free(d->b, count);
    return status;
}

/* Y = alpha*A*X + beta*Y; everything was checked. */
static tulle_status multiply(tulle_dist *d, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                             const int64_t *x_starts, const void *beta, tulle_dense *Y,
                             const tulle_spmm_options *o)
{
    tulle_status status = TULLE_OK;
    tl_lists lists = {0};
    rows_of_x x = {.d = d, .lists = &lists, .A = A, .X = X, .value = tl_type_size(X->val_type)};
    tulle_csr a = *A;
    tulle_dense all = *X;
    if (d->t.size > 1) {
        TRY(tl_lists_make(d, A, x_starts, &lists));
        AGREE(fetch_rows(&x));
        a.cols = tl_lists_rows(&lists);
        a.col_idx = x.a_col;
        a.idx_type = x.a_type;
        all = tulle_dense_make(a.cols, X->cols, 0, TULLE_BY_ROWS, x.all, X->val_type);
    }
    tl_account account = account_of(&x, a.nnz, Y);
    TRY(tl_stats_join(d, tulle_spmm(d->ctx, alpha, &a, &all, beta, Y, o), &account));
done:
    tl_lists_done(d->b, &lists);
    done_with(&x);
    return status;
}

tulle_status tl_dist_spmm(tulle_dist *d, const void *alpha, const tulle_dist_csr *A,
                          const tulle_dense *given_x, const int64_t *x_starts, const void *beta,
                          tulle_dense *given_y, const tulle_spmm_options *o)
{
    tulle_status status = TULLE_OK;
    tulle_dense X = *given_x, Y = *given_y;
    tulle_spmm_options local = *o;
    tulle_dist_matrix *own = NULL;
    int64_t *y_starts = NULL;
    tulle_csr a = A->local;
    TRY(tl_dist_check(d, A, "A", o->trust_inputs));
    status = tl_op_check(d, o->op_a);
    if (status == TULLE_OK)
        status = look(d, a.val_type, o->op_a == TULLE_KEEP ? a.cols : tl_dist_rows(d, A), &X, x_starts, &Y);
    tl_same same[2] = {{"X", "the number of its columns", X.cols}, {"A", "op_a", o->op_a}};
    TRY(tl_same_everywhere(d, status, same, 2));
    if (o->op_a != TULLE_KEEP) {
        TRY(blocks_of(d, Y.rows, a.cols, &y_starts));
        TRY(tl_dist_transpose(d, A, (tulle_op)o->op_a, y_starts, &own));
        a = tulle_dist_matrix_view(own).local;
    }
    local.trust_inputs = 1;
    local.op_a = TULLE_KEEP;
    tl_count_begin(d);
    TRY(multiply(d, alpha, &a, &X, x_starts, beta, &Y, &local));
done:
    tl_free(d->b, y_starts);
    tl_dist_matrix_free(d->b, own);
    return status;
}

/* ---- plans */

struct tulle_dist_spmm_plan {
    tulle_dist        *dist;
    tl_lent            lent;            /* A                     */
    tulle_dist_matrix *own;             /* the transposed A      */
    tl_turn            turn;
    int64_t           *x_starts, rows;  /* of all of X           */
    tl_lists           lists;
    void              *a_col;
    tulle_csr          a;               /* with renumbered columns */
    int64_t            given;           /* entries of A on this rank */
    tulle_spmm_plan   *local;
};

static tulle_status make_local(tulle_dist_spmm_plan *p, const tulle_spmm_options *o)
{
    tulle_spmm_options local = *o;
    local.trust_inputs = 1;
    local.op_a = TULLE_KEEP;
    return tulle_spmm_plan_create(p->dist->ctx, &p->a, &local, &p->local);
}

/* Everything that depends only on patterns. */
static tulle_status make(tulle_dist_spmm_plan *p, const tulle_dist_csr *A, const int64_t *x_starts,
                         const int64_t *y_starts, const tulle_spmm_options *o)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = p->dist;
    p->a = A->local;
    p->given = A->local.nnz;
    p->rows = o->op_a == TULLE_KEEP ? A->local.cols : tl_dist_rows(d, A);
    int64_t y_rows = o->op_a == TULLE_KEEP ? tl_dist_rows(d, A) : A->local.cols;
    status = tl_op_check(d, o->op_a);
    if (status == TULLE_OK) status = tl_starts_check(d, x_starts, p->rows, "X");
    if (status == TULLE_OK && y_starts)
        status = tl_starts_check(d, y_starts, y_rows, "Y");
    if (status == TULLE_OK && y_starts && o->op_a == TULLE_KEEP
        && memcmp(y_starts, A->row_starts, (size_t)(d->t.size + 1) * sizeof *y_starts) != 0)
        status = tl_fail(d->b, TULLE_ESHAPE, "Y has not the row blocks of A");
    if (status == TULLE_OK) status = tl_starts_copy(d->b, x_starts, d->t.size, &p->x_starts);
    tl_same same[3] = {{"A", "op_a", o->op_a}, {.of = "X", .what = "its row blocks"},
                       {.of = "Y", .what = "its row blocks"}};
    if (status == TULLE_OK) same[1].number = tl_starts_number(x_starts, d->t.size);
    if (status == TULLE_OK && y_starts) same[2].number = tl_starts_number(y_starts, d->t.size);
    TRY(tl_same_everywhere(d, status, same, 3));
    if (o->op_a != TULLE_KEEP) {
        TRY(tl_dist_turn(d, A, (tulle_op)o->op_a, y_starts, &p->turn, &p->own));
        p->a = tulle_dist_matrix_view(p->own).local;
    }
    if (d->t.size > 1) {
        TRY(tl_lists_make(d, &p->a, x_starts, &p->lists));
        tulle_csr old = p->a;
        status = tl_lists_renumber(d->b, &p->lists, &old, &p->a_col, &p->a.idx_type);
        p->a.col_idx = p->a_col;
        p->a.cols = tl_lists_rows(&p->lists);
    }
    if (status == TULLE_OK) status = make_local(p, o);
    AGREE(status);
done:
    return status;
}

tulle_status tl_dist_spmm_plan_create(tulle_dist *d, const tulle_dist_csr *A, const int64_t *x_starts,
                                      const int64_t *y_starts, const tulle_spmm_options *o,
                                      tulle_dist_spmm_plan **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist_spmm_plan *p = NULL;
    status = tl_calloc(d->b, &p, 1, sizeof *p, "a plan");
    if (status == TULLE_OK) {
        p->dist = d;
        status = tl_lend(d, A, "A", &p->lent);
    }
    AGREE(status);
    A = &p->lent.view;
    TRY(tl_dist_check(d, A, "A", o->trust_inputs));
    tl_count_begin(d);
    TRY(make(p, A, x_starts, y_starts, o));
    *out = p;
    p = NULL;
done:
    tl_dist_spmm_plan_free(p);
    return status;
}

tulle_status tl_dist_spmm_plan_run(tulle_dist_spmm_plan *p, const void *alpha, const tulle_dense *given_x,
                                   const void *beta, tulle_dense *given_y)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = p->dist;
    tulle_dense X = *given_x, Y = *given_y, all;
    rows_of_x x = {.d = d, .lists = &p->lists, .X = &X, .value = tl_type_size(p->a.val_type)};
    TRY(same_width(d, look(d, p->a.val_type, p->rows, &X, p->x_starts, &Y), &X));
    tl_count_begin(d);
    all = X;
    if (d->t.size > 1) {
        TRY(fetch_rows(&x));
        all = tulle_dense_make(p->a.cols, X.cols, 0, TULLE_BY_ROWS, x.all, X.val_type);
    }
    tl_account account = account_of(&x, p->a.nnz, &Y);
    TRY(tl_stats_join(d, tulle_spmm_plan_run(p->local, alpha, &all, beta, &Y), &account));
done:
    done_with(&x);
    return status;
}

tulle_status tl_dist_spmm_plan_set_values(tulle_dist_spmm_plan *p, const void *a_values)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = p->dist;
    if (p->given > 0 && !a_values) status = tl_fail(d->b, TULLE_EINVAL, "a_values is NULL");
    AGREE(status);
    a_values = tl_lent_values(&p->lent, a_values);
    if (p->own) {
        TRY(tl_turn_values(d, TULLE_OK, a_values, &p->turn));
        a_values = p->turn.values;
    }
    /* Without entries the pointer is not used, but must not be NULL. */
    AGREE(tulle_spmm_plan_set_values(p->local, a_values ? a_values : (const void *)p));
done:
    return status;
}

tulle_dist *tl_dist_spmm_plan_dist(const tulle_dist_spmm_plan *p)
{
    return p->dist;
}

void tl_dist_spmm_plan_free(tulle_dist_spmm_plan *p)
{
    if (!p) return;
    tl_base *b = p->dist->b;
    tulle_spmm_plan_free(p->local);
    tl_lists_done(b, &p->lists);
    tl_turn_done(b, &p->turn);
    tl_dist_matrix_free(b, p->own);
    tl_free(b, p->a_col);
    tl_free(b, p->x_starts);
    tl_lent_end(b, &p->lent);
    tl_free(b, p);
}
