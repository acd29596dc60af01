/* SPDX-License-Identifier: MIT
 *
 * panels.c - products of rows of A with only the rows of B that they need, for engines whose own memory is
 * too small for A and B.
 *
 * A block of rows of A is a slice.  The columns in which it has entries are the rows of B that it needs:
 * these are gathered in a compact matrix, and the columns of the slice are renumbered in their order
 * (dist/lists.c), so that every sum keeps its order and its bits.  Where a single row with the rows of B that
 * it needs is still too much, B is split into panels of columns: C(row, panel) = A(row, :) * B(rows, panel).
 * An entry of C is in one panel, so it is still a single sum; the panels of a row are concatenated
 * (matrix/join.c).  The data of B that is sent to the engine is at most one entry per product.
 *
 * Memory on the host: the row pointers and columns of a block of A, the rows of B it needs, and a quarter of
 * a byte for each column between its first and its last. */
#include "ctx.h"
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

/* ---- memory of a part */

bool tl_stays_there(const tulle_options *o, int op, const tulle_csr *given)
{
    return !o->sort_inputs && !op && given->place == TULLE_DEVICE;
}

/* of_b counts a row of B once for each entry of A that needs it. */
uint64_t tl_part_bytes(const tl_setup *s, int64_t row, uint64_t *of_b)
{
    const tulle_csr *A = &s->operands.A, *B = &s->operands.B;
    uint64_t a = tl_index_size(A->idx_type) + (s->values ? tl_type_size(A->val_type) : 0);
    uint64_t b = tl_index_size(B->idx_type) + (s->values ? tl_type_size(B->val_type) : 0);
    uint64_t entries = (uint64_t)(tl_row_begin(A, row + 1) - tl_row_begin(A, row));
    uint64_t products = (uint64_t)s->profile.products[row];
    *of_b = tl_bytes_sum(tl_bytes_of(products, b), tl_bytes_of(entries, sizeof(int64_t)));
    return tl_bytes_sum(tl_row_bytes(s, row), tl_bytes_of(entries, a) + sizeof(int64_t));
}

/* ---- rows of A, and the rows of B that they need */

typedef struct cut {
    tulle_csr     A;
    tulle_matrix *slice;                /* its row pointers                         */
    void         *col_idx;              /* and its columns                          */
    tl_lists      lists;
} cut;

static tulle_status cut_rows(tl_base *b, const tulle_csr *A, int64_t row0, int64_t row1, bool renumber,
                             cut *c)
{
    tulle_status status = TULLE_OK;
    tulle_csr rows = *A;
    tulle_index type;
    *c = (cut){0};
    rows.rows = row1 - row0;
    rows.nnz = tl_row_begin(A, row1) - tl_row_begin(A, row0);
    rows.row_ptr = tl_array_from(A->row_ptr, tl_index_size(A->ptr_type), row0);
    TRY(tl_csr_slice(b, &rows, "A", 0, &c->A, &c->slice));
    if (!renumber) goto done;
    TRY(tl_lists_mark(b, &c->A, &c->lists));
    TRY(tl_lists_renumber(b, &c->lists, &c->A, &c->col_idx, &type));
    c->A.cols = c->lists.need;
    c->A.col_idx = c->col_idx;
    c->A.idx_type = type;
done:
    return status;
}

static void cut_done(tl_base *b, cut *c)
{
    tl_lists_done(b, &c->lists);
    tl_matrix_free(b, c->slice);
    tl_free(b, c->col_idx);
}

tulle_status tl_part_rows(tulle_ctx *ctx, tl_setup *s, const tulle_csr *given, int64_t row0, int64_t row1,
                          tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    const tulle_csr *B = &s->operands.B;
    bool there = tl_stays_there(&s->options, s->options.op_b, given);
    tulle_matrix *rows = NULL;
    cut c;
    TRY(cut_rows(b, &s->operands.A, row0, row1, !there, &c));
    if (there) B = given;
    else if (c.lists.need < B->rows) {
        TRY(tl_columns_take(b, B, c.lists.row, c.lists.need, 0, B->cols, &rows));
        B = &rows->view;
    }
    TRY(s->engine->part(ctx, s, &c.A, B, C));
done:
    tl_matrix_free(b, rows);
    cut_done(b, &c);
    return status;
}

/* ---- one row in panels */

/* A row of A with one column of B does not fit.  The message gives the memory of the longest row of A with a
 * full column of B, which is sufficient for all rows. */
static tulle_status refuse(tulle_ctx *ctx, tl_setup *s, tulle_status status)
{
    tl_base *b = &ctx->base;
    const tulle_csr *x = &s->operands.A, *y = &s->operands.B;
    int64_t n = s->profile.max_a_row;
    int type = s->values ? (int)x->val_type : 0;
    tulle_matrix *A = NULL, *B = NULL, *C = NULL;
    char why[TL_ERROR_MAX];
    memcpy(why, b->error, sizeof why);
    if (status != TULLE_ELIMIT) return status;
    TRY(tl_matrix_create(b, 1, n, n, x->ptr_type, tl_index_for(n), type, &A));
    TRY(tl_matrix_create(b, n, 1, n, tl_index_for(n), y->idx_type, type, &B));
    A->view.val_type = B->view.val_type = x->val_type;
    for (int64_t k = 0; k <= n; k++) tl_put(B->row_ptr, B->view.ptr_type, k, k);
    tl_put(A->row_ptr, x->ptr_type, 0, 0);
    tl_put(A->row_ptr, x->ptr_type, 1, n);
    for (int64_t k = 0; k < n; k++) {
        tl_put(A->col_idx, A->view.idx_type, k, k);
        tl_put(B->col_idx, y->idx_type, k, 0);
    }
    if (type) memset(A->values, 0, (size_t)n * tl_type_size(x->val_type));
    if (type) memset(B->values, 0, (size_t)n * tl_type_size(x->val_type));
    status = s->engine->part(ctx, s, &A->view, &B->view, &C);
    if (status != TULLE_OK && status != TULLE_ELIMIT) goto done;
    if (status == TULLE_ELIMIT) memcpy(why, b->error, sizeof why);
    status = tl_fail(b, TULLE_ELIMIT, "even a row of A and a column of B at a time, %.900s", why);
done:
    tl_matrix_free(b, A);
    tl_matrix_free(b, B);
    tl_matrix_free(b, C);
    return status;
}

/* How many columns fit, assuming that the row's products are evenly distributed. */
static int64_t first_width(const tl_setup *s, int64_t row, uint64_t room)
{
    uint64_t of_b, bytes = tl_part_bytes(s, row, &of_b);
    int64_t cols = s->operands.B.cols;
    double share = (double)room / ((double)bytes + (double)of_b + 1);
    int64_t width = share < 0.5 ? (int64_t)(share * (double)cols) : cols / 2;
    return width > 0 ? width : 1;
}

/* Computes C(row, first .. end-1) and appends it to the row.  Skipped if B has no entry there. */
static tulle_status one_panel(tulle_ctx *ctx, tl_setup *s, const cut *c, int64_t first, int64_t end,
                              tl_join *j)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix *B = NULL, *C = NULL;
    TRY(tl_columns_take(b, &s->operands.B, c->lists.row, c->lists.need, first, end, &B));
    if (B->view.nnz == 0) goto done;
    TRY(s->engine->part(ctx, s, &c->A, &B->view, &C));
    TRY(tl_join_put(b, j, &C->view, true));
done:
    tl_matrix_free(b, B);
    tl_matrix_free(b, C);
    return status;
}

tulle_status tl_part_panels(tulle_ctx *ctx, tl_setup *s, int64_t row, uint64_t room, int64_t *panels,
                            tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    const tulle_options *o = &s->options;
    const tulle_csr *B = &s->operands.B;
    tulle_stats sum = {0};
    tl_join j = {0};
    cut c = {0};
    int64_t first = 0, width = first_width(s, row, room), products = s->profile.products[row];
    bool counted = false;               /* the row was counted in the shares */
    TRY(cut_rows(b, &s->operands.A, row, row + 1, true, &c));
    TRY(tl_join_begin(b, 1, B->cols, 0, products < B->cols ? products : B->cols,
                      o->c_idx_type ? (tulle_index)o->c_idx_type : B->idx_type, B->val_type, s->values, &j));
    while (first < B->cols) {
        int64_t end = width < B->cols - first ? first + width : B->cols;
        if (tl_progress(b, "panels", (double)first / (double)B->cols)) {
            status = tl_fail(b, TULLE_ECANCEL, "cancelled in row %" PRId64 " of C, before column %" PRId64,
                             row, first);
            goto done;
        }
        s->stats.stages = s->stats.waits = s->stats.shares = 0;
        status = one_panel(ctx, s, &c, first, end, &j);
        if (s->engine->too_large(status)) {
            if (sum.peak_bytes < s->stats.peak_bytes) sum.peak_bytes = s->stats.peak_bytes;
            if (end - first == 1) TRY(refuse(ctx, s, status));
            width = (end - first) / 2;
            continue;
        }
        TRY(status);
        for (int i = 0; counted && i < s->stats.shares; i++) s->stats.share[i].rows = 0;
        counted = counted || s->stats.shares > 0;
        tl_stats_add(&s->stats, &sum);
        (*panels)++;
        first = end;
        width += width / 4;
    }
    s->stats.stages = s->stats.waits = s->stats.shares = 0;
    tl_stats_add(&sum, &s->stats);
    if (!counted)                       /* a row without products */
        s->stats.share[s->stats.shares++] = (tulle_share){tulle_accumulator_name(TL_DIRECT), 1, 0, {0}};
    TRY(tl_join_finish(b, &j, o->c_ptr_type, C));
done:
    tl_join_done(b, &j);
    cut_done(b, &c);
    return status;
}
