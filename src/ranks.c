/* SPDX-License-Identifier: MIT
 *
 * ranks.c - the public functions of tulle_mpi.h: each checks its arguments and calls one internal function.
 *
 * An argument that is invalid on one rank only must not leave the other ranks waiting: so the error is passed
 * on to the first collective agreement on a status. */
#include "ctx.h"
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

/* A tulle_dist exists on all ranks or on none, so this alone may return without communication. */
#define NEED_DIST                                                                                 \
    do {                                                                                          \
        if (!d) return TULLE_EINVAL;                                                              \
        d->b->error[0] = 0;                                                                       \
        atomic_store(&d->b->cancelled, 0);                                                        \
    } while (0)
/* Sets the status if a pointer is NULL; the first error is kept. */
#define HAVE(pointer)                                                                             \
    do {                                                                                          \
        if (status == TULLE_OK && !(pointer))                                                     \
            status = tl_fail(d->b, TULLE_EINVAL, "%s: " #pointer " is NULL", __func__);           \
    } while (0)

/* What a call was given, as a view whose row pointers begin with 0.  What is wrong with it is in *status. */
static const tulle_dist_csr *lent(tulle_dist *d, tulle_status *status, const tulle_dist_csr *A,
                                  const char *name, tl_lent *l)
{
    if (*status == TULLE_OK) *status = tl_lend(d, A, name, l);
    return &l->view;
}

static void lend_pair(tulle_dist *d, tulle_status *status, const tulle_dist_csr **A, const tulle_dist_csr **B,
                      const char *name_b, tl_lent *l)
{
    bool twice = *A == *B;
    *A = lent(d, status, *A, "A", &l[0]);
    *B = twice ? *A : lent(d, status, *B, name_b, &l[1]);
}

static void lent_end(tulle_dist *d, tl_lent *l, int count)
{
    for (int k = 0; k < count; k++) tl_lent_end(d->b, &l[k]);
}

static tulle_status check_rank(tl_base *b, int rank, int size)
{
    return rank >= 0 && rank < size ? TULLE_OK
           : tl_fail(b, TULLE_EINVAL, "rank %d of %d: there is no such one", rank, size);
}

/* ---- transport */

tulle_status tulle_dist_create(tulle_ctx *ctx, const tulle_transport *transport,
                               const tulle_dist_options *options,
                               tulle_dist **dist)
{
    if (!ctx) return TULLE_EINVAL;
    ctx->base.error[0] = 0;
    if (!dist || !transport)
        return tl_fail(&ctx->base, TULLE_EINVAL, "tulle_dist_create: an argument is NULL");
    const tulle_transport *t = transport;
    *dist = NULL;
    if (check_rank(&ctx->base, t->rank, t->size) != TULLE_OK) return TULLE_EINVAL;
    if (!t->allreduce || !t->alltoall || !t->isend || !t->irecv || !t->waitall || !t->fail)
        return tl_fail(&ctx->base, TULLE_EINVAL, "tulle_dist_create: a function of the transport is NULL");
    if (TL_RESERVED_CHECK(&ctx->base, "transport", t) != TULLE_OK) return TULLE_EINVAL;
    if (options && TL_RESERVED_CHECK(&ctx->base, "options", options) != TULLE_OK) return TULLE_EINVAL;
    if (options && options->slice_bytes < 0)
        return tl_fail(&ctx->base, TULLE_EINVAL, "tulle_dist_create: slice_bytes is %" PRId64 ", below 0",
                       options->slice_bytes);
    if (options && (options->dimensions < 0 || options->dimensions > 2 || options->grid_cols < 0
                    || (options->grid_cols > 0 && t->size % options->grid_cols != 0)))
        return tl_fail(&ctx->base, TULLE_EINVAL, "tulle_dist_create: %d dimensions with %d columns of ranks:"
                       " there are 1 and 2, and the columns divide the %d ranks", (int)options->dimensions,
                       (int)options->grid_cols, t->size);
    return tl_dist_create(&ctx->base, ctx, t, options, dist);
}

void tulle_dist_free(tulle_dist *d)
{
    tl_dist_free(d);
}

void tulle_dist_stats_get(const tulle_dist *d, tulle_dist_stats *stats)
{
    if (!stats) return;
    memset(stats, 0, sizeof *stats);
    if (d) *stats = d->stats;
}

/* ---- matrices */

tulle_dist_csr tulle_dist_matrix_view(const tulle_dist_matrix *A)
{
    return A ? (tulle_dist_csr){.local = tulle_matrix_view(A->local),
                                .row_starts = A->starts} : (tulle_dist_csr){0};
}

void tulle_dist_matrix_free(tulle_dist_matrix *A)
{
    tl_dist_matrix_free(NULL, A);
}

void tulle_dist_split(int64_t rows, int ranks, int64_t *row_starts)
{
    if (!row_starts || ranks < 1) return;
    for (int r = 0; r <= ranks; r++) row_starts[r] = tl_part(rows, r, ranks);
}

/* ---- products */

tulle_status tulle_dist_multiply(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                 const tulle_options *options, tulle_dist_matrix **C)
{
    tulle_status status = TULLE_OK;
    tulle_options o;
    tl_lent l[2] = {0};
    NEED_DIST;
    if (C) *C = NULL;
    HAVE(A);
    HAVE(B);
    HAVE(C);
    lend_pair(d, &status, &A, &B, "B", l);
    TRY(tl_dist_options_check(d, status, options, &o));
    TRY(tl_dist_product(d, A, B, &o, C));
done:
    lent_end(d, l, 2);
    return status;
}

tulle_status tulle_dist_ptap(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *P,
                             const tulle_options *options,
                             tulle_dist_matrix **C)
{
    tulle_status status = TULLE_OK;
    tulle_options o;
    tl_lent l[2] = {0};
    NEED_DIST;
    if (C) *C = NULL;
    HAVE(A);
    HAVE(P);
    HAVE(C);
    if (status == TULLE_OK && options && (options->op_a != TULLE_KEEP || options->op_b != TULLE_KEEP))
        status = tl_fail(d->b, TULLE_EINVAL, "tulle_dist_ptap: op_a and op_b are not for this product");
    lend_pair(d, &status, &A, &P, "P", l);
    TRY(tl_dist_options_check(d, status, options, &o));
    TRY(tl_dist_ptap(d, A, P, &o, C));
done:
    lent_end(d, l, 2);
    return status;
}

tulle_status tulle_dist_product_check(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                      const tulle_dist_csr *C, double *error)
{
    tulle_status status = TULLE_OK;
    tl_lent l[3] = {0};
    NEED_DIST;
    HAVE(A);
    HAVE(B);
    HAVE(C);
    HAVE(error);
    lend_pair(d, &status, &A, &B, "B", l);
    C = lent(d, &status, C, "C", &l[2]);
    AGREE(status);
    TRY(tl_dist_operands(d, A, B, false, true));
    TRY(tl_dist_check(d, C, "C", false));
    if (C->local.cols != B->local.cols || memcmp(C->row_starts, A->row_starts,
                                                 (size_t)(d->t.size + 1) * 8) != 0)
        status = tl_fail(d->b, TULLE_ESHAPE, "C has not the row blocks of A and the columns of B");
    AGREE(status);
    TRY(tl_dist_product_check(d, A, B, C, error));
done:
    lent_end(d, l, 3);
    return status;
}

/* ---- moving a matrix */

tulle_status tulle_dist_scatter(tulle_dist *d, const tulle_csr *A, const int64_t *row_starts,
                                tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_lent l[1] = {0};
    tulle_dist_csr whole = {0};
    NEED_DIST;
    if (out) *out = NULL;
    HAVE(A);
    HAVE(out);
    if (status == TULLE_OK) whole.local = *A;
    A = &lent(d, &status, &whole, "A", l)->local;
    if (status == TULLE_OK) status = tl_part_check(d, A, "A", true);
    if (status == TULLE_OK) status = tl_starts_check(d, row_starts, A->rows, "A");
    if (status == TULLE_OK)
        status = tl_rows_check(d, A, row_starts[d->t.rank], row_starts[d->t.rank + 1], "A");
    AGREE(status);
    TRY(tl_dist_scatter(d, A, row_starts, out));
done:
    lent_end(d, l, 1);
    return status;
}

tulle_status tulle_dist_gather(tulle_dist *d, const tulle_dist_csr *A, int root, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_lent l[1] = {0};
    NEED_DIST;
    if (out) *out = NULL;
    HAVE(A);
    HAVE(out);
    if (status == TULLE_OK) status = check_rank(d->b, root, d->t.size);
    A = lent(d, &status, A, "A", l);
    TRY(tl_same_everywhere(d, status, &(tl_same){"the rank that gathers", "which it is", root}, 1));
    TRY(tl_dist_check(d, A, "A", true));
    AGREE(tl_rows_check(d, &A->local, 0, A->local.rows, "A"));
    TRY(tl_dist_gather(d, A, root, out));
done:
    lent_end(d, l, 1);
    return status;
}

/* Checks that row blocks are the same on all ranks; NULL must be NULL on all. */
static tulle_status check_starts(tulle_dist *d, tulle_status status, const int64_t *starts, int64_t rows,
                                 bool optional)
{
    int64_t number = 0;
    if (status == TULLE_OK && (starts || !optional)) status = tl_starts_check(d, starts, rows, "the result");
    if (status == TULLE_OK && starts) number = tl_starts_number(starts, d->t.size);
    return tl_same_everywhere(d, status, &(tl_same){"the result", "its row blocks", number}, 1);
}

tulle_status tulle_dist_transpose(tulle_dist *d, const tulle_dist_csr *A, tulle_op op,
                                  const int64_t *row_starts,
                                  tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_lent l[1] = {0};
    NEED_DIST;
    if (out) *out = NULL;
    HAVE(A);
    HAVE(out);
    if (status == TULLE_OK && op != TULLE_TRANSPOSE && op != TULLE_ADJOINT)
        status = tl_fail(d->b, TULLE_EINVAL, "op %d is neither TULLE_TRANSPOSE nor TULLE_ADJOINT", (int)op);
    A = lent(d, &status, A, "A", l);
    TRY(tl_same_everywhere(d, status, &(tl_same){"A", "op", op}, 1));
    TRY(tl_dist_check(d, A, "A", false));
    TRY(check_starts(d, status, row_starts, A->local.cols, true));
    TRY(tl_dist_transpose(d, A, op, row_starts, out));
done:
    lent_end(d, l, 1);
    return status;
}

tulle_status tulle_dist_redistribute(tulle_dist *d, const tulle_dist_csr *A, const int64_t *row_starts,
                                     tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_lent l[1] = {0};
    NEED_DIST;
    if (out) *out = NULL;
    HAVE(A);
    HAVE(out);
    A = lent(d, &status, A, "A", l);
    AGREE(status);
    TRY(tl_dist_check(d, A, "A", true));
    status = tl_rows_check(d, &A->local, 0, A->local.rows, "A");
    TRY(check_starts(d, status, row_starts, tl_dist_rows(d, A), false));
    TRY(tl_dist_redistribute(d, A, row_starts, out));
done:
    lent_end(d, l, 1);
    return status;
}

tulle_status tulle_dist_balance(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                int64_t *row_starts)
{
    tulle_status status = TULLE_OK;
    tl_lent l[2] = {0};
    NEED_DIST;
    HAVE(A);
    HAVE(B);
    HAVE(row_starts);
    lend_pair(d, &status, &A, &B, "B", l);
    AGREE(status);
    TRY(tl_dist_operands(d, A, B, false, false));
    TRY(tl_dist_balance(d, A, B, row_starts));
done:
    lent_end(d, l, 2);
    return status;
}

/* ---- plans */

tulle_status tulle_dist_plan_create(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                    const tulle_options *options, tulle_dist_plan **plan)
{
    tulle_status status = TULLE_OK;
    tulle_options o;
    NEED_DIST;
    if (plan) *plan = NULL;
    HAVE(A);
    HAVE(B);
    HAVE(plan);
    TRY(tl_dist_options_check(d, status, options, &o));
    TRY(tl_dist_plan_create(d, A, B, &o, plan));
done:
    return status;
}

tulle_dist_csr tulle_dist_plan_pattern(const tulle_dist_plan *plan)
{
    return plan ? tl_dist_plan_pattern(plan) : (tulle_dist_csr){0};
}

tulle_status tulle_dist_plan_run(tulle_dist_plan *plan, const void *a_values, const void *b_values,
                                 void *c_values)
{
    tulle_dist *d = plan ? tl_dist_plan_dist(plan) : NULL;
    NEED_DIST;
    return tl_dist_plan_run(plan, a_values, b_values, c_values);
}

void tulle_dist_plan_free(tulle_dist_plan *plan)
{
    tl_dist_plan_free(plan);
}

/* ---- SpMM */

tulle_status tulle_dist_spmm(tulle_dist *d, const void *alpha, const tulle_dist_csr *A, const tulle_dense *X,
                             const int64_t *x_starts, const void *beta, tulle_dense *Y,
                             const tulle_spmm_options *options)
{
    tulle_status status = TULLE_OK;
    tulle_spmm_options o = options ? *options : (tulle_spmm_options){0};
    tl_lent l[1] = {0};
    NEED_DIST;
    HAVE(A);
    HAVE(X);
    HAVE(x_starts);
    HAVE(Y);
    A = lent(d, &status, A, "A", l);
    AGREE(status);
    TRY(tl_dist_spmm(d, alpha, A, X, x_starts, beta, Y, &o));
done:
    lent_end(d, l, 1);
    return status;
}

tulle_status tulle_dist_spmm_plan_create(tulle_dist *d, const tulle_dist_csr *A, const int64_t *x_starts,
                                         const int64_t *y_starts, const tulle_spmm_options *options,
                                         tulle_dist_spmm_plan **plan)
{
    tulle_status status = TULLE_OK;
    tulle_spmm_options o = options ? *options : (tulle_spmm_options){0};
    NEED_DIST;
    if (plan) *plan = NULL;
    HAVE(A);
    HAVE(x_starts);
    HAVE(plan);
    AGREE(status);
    TRY(tl_dist_spmm_plan_create(d, A, x_starts, y_starts, &o, plan));
done:
    return status;
}

tulle_status tulle_dist_spmm_plan_run(tulle_dist_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                                      const void *beta, tulle_dense *Y)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = plan ? tl_dist_spmm_plan_dist(plan) : NULL;
    NEED_DIST;
    HAVE(X);
    HAVE(Y);
    AGREE(status);
    TRY(tl_dist_spmm_plan_run(plan, alpha, X, beta, Y));
done:
    return status;
}

tulle_status tulle_dist_spmm_plan_set_values(tulle_dist_spmm_plan *plan, const void *a_values)
{
    tulle_dist *d = plan ? tl_dist_spmm_plan_dist(plan) : NULL;
    NEED_DIST;
    return tl_dist_spmm_plan_set_values(plan, a_values);
}

void tulle_dist_spmm_plan_free(tulle_dist_spmm_plan *plan)
{
    tl_dist_spmm_plan_free(plan);
}

/* ---- files */

tulle_status tulle_dist_read(tulle_dist *d, const char *path, const int64_t *row_starts,
                             tulle_dist_matrix **A)
{
    tulle_status status = TULLE_OK;
    NEED_DIST;
    if (A) *A = NULL;
    HAVE(path);
    HAVE(A);
    AGREE(status);
    TRY(tl_dist_read(d, path, row_starts, A));
done:
    return status;
}

tulle_status tulle_dist_write(tulle_dist *d, const char *path, const tulle_dist_csr *A)
{
    tulle_status status = TULLE_OK;
    tl_lent l[1] = {0};
    NEED_DIST;
    HAVE(path);
    HAVE(A);
    A = lent(d, &status, A, "A", l);
    AGREE(status);
    TRY(tl_dist_check(d, A, "A", false));
    TRY(tl_dist_write(d, path, A));
done:
    lent_end(d, l, 1);
    return status;
}
