/* SPDX-License-Identifier: MIT
 *
 * summa.c - C = A*B on a two-dimensional grid of ranks (grid.c describes the grid).
 *
 *     1. the ranks in a row of the grid exchange their rows of A (all-gather);
 *     2. each fetches the rows of B that these need, but only the columns of its column of the grid;
 *     3. one local product gives a block of C, with complete sums;
 *     4. the blocks are sent to the owners of the rows, which concatenate them side by side.
 *
 * SUMMA adds partial sums of its stages, which would round differently from one process.  Here a rank has all
 * rows of B that it needs before it computes, and each sum is computed at once, in the order of the row of A:
 * the bits are the same as in one dimension.  The price is memory: a block row of A, the needed part of a
 * block column of B, and a copy of this rank's rows of B divided by columns of the grid.
 *
 * See van de Geijn, Watts: SUMMA, 1997; Buluc, Gilbert: Parallel sparse matrix-matrix multiplication and
 * indexing, SIAM J. Sci. Comput. 34, 2012. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

typedef struct grid {
    tulle_dist    *d;
    int            cols, first;         /* ranks first .. first+cols-1 are this row of the grid */
    int64_t       *block, *from, *to, *rows_in;         /* size entries each                 */
    tl_freight     a, c;                /* rows of A, parts of our rows of C                  */
    tulle_matrix  *A, *C;               /* the block row of A, the block of C                 */
    tulle_matrix **part;                /* this rank's rows of B, by columns of the grid      */
    tulle_csr     *view;
    tl_fetch       fetch;
} grid;

static tulle_status begin(grid *g, const tulle_csr *B)
{
    tulle_status status = TULLE_OK;
    tl_base *b = g->d->b;
    int size = g->d->t.size;
    TRY(tl_calloc(b, &g->block, 3 * (int64_t)size, sizeof *g->block, "counts of rows"));
    TRY(tl_calloc(b, &g->part, g->cols, sizeof *g->part, "parts of B"));
    TRY(tl_alloc(b, &g->view, g->cols, sizeof *g->view, "parts of B"));
    g->from = g->block;
    g->to = g->block + size;
    g->rows_in = g->block + 2 * size;
    for (int j = 0; j < g->cols; j++) {
        TRY(tl_columns_take(b, B, NULL, B->rows, tl_part(B->cols, j, g->cols),
                            tl_part(B->cols, j + 1, g->cols), &g->part[j]));
        g->view[j] = g->part[j]->view;
    }
done:
    return status;
}

/* Sends this rank's rows of A to all ranks in its row of the grid. */
static tulle_status gather_a(grid *g, const tulle_dist_csr *A)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = g->d;
    int64_t rows = A->row_starts[g->first + g->cols] - A->row_starts[g->first];
    for (int r = g->first; r < g->first + g->cols; r++) {
        g->to[r] = A->local.rows;
        g->rows_in[r] = A->row_starts[r + 1] - A->row_starts[r];
    }
    TRY(tl_ship(d, &A->local, g->from, g->to, g->rows_in, 0, A->local.idx_type, false, &g->a));
    AGREE(tl_freight_stack(d, &A->local, rows, A->local.cols, A->local.idx_type, &g->a, &g->A));
done:
    return status;
}

static tulle_status has_room(const grid *g, const tulle_csr *B, const tulle_options *o, uint64_t *held)
{
    *held = tl_fetch_bytes(&g->fetch, &g->A->view, B, true);
    *held = tl_bytes_sum(*held, tl_matrix_bytes(g->A));
    for (int j = 0; j < g->cols; j++) *held = tl_bytes_sum(*held, tl_matrix_bytes(g->part[j]));
    if (o->memory_limit == 0 || *held < o->memory_limit) return TULLE_OK;
    return tl_fail(g->d->b, TULLE_ELIMIT, "blocks of A and B on a grid of ranks take %" PRIu64
                   " bytes here, the limit is %" PRIu64 " bytes", *held, o->memory_limit);
}

static tulle_status multiply(grid *g, const tulle_dist_csr *B, const tulle_options *o, tl_account *account)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = g->d;
    tl_fetch *f = &g->fetch;
    uint64_t held = 0;
    f->part = g->view;
    f->parts = g->cols;
    TRY(tl_fetch_lengths(d, &g->A->view, B, f));
    AGREE(has_room(g, &B->local, o, &held));
    TRY(tl_fetch_patterns(d, &g->A->view, B, true, f));
    f->A.values = g->A->view.values;
    TRY(tl_fetch_values(d, &B->local, B->local.values, f));
    AGREE(tl_local_product(d, f, o, held, &g->C, account));
done:
    return status;
}

/* Sends the rows of the block of C to their owners, and concatenates the received parts side by side. */
static tulle_status give_c(grid *g, const int64_t *starts, const tulle_options *o, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = g->d;
    int rank = d->t.rank;
    tulle_csr c = g->C->view;
    for (int r = g->first; r < g->first + g->cols; r++) {
        g->from[r] = starts[r] - starts[g->first];
        g->to[r] = starts[r + 1] - starts[g->first];
        g->rows_in[r] = starts[rank + 1] - starts[rank];
    }
    TRY(tl_ship(d, &c, g->from, g->to, g->rows_in, 0, c.idx_type, true, &g->c));
    AGREE(tl_freight_merge(d, &c, g->rows_in[rank], c.cols, c.idx_type, o->c_ptr_type, &g->c, out));
done:
    return status;
}

/* Bytes that had to be received: lengths and entries of rows of other ranks. */
static uint64_t freight_bytes(const grid *g, const tl_freight *f, const tulle_csr *like)
{
    int size = g->d->t.size, rank = g->d->t.rank;
    uint64_t entry = tl_index_size(like->idx_type) + tl_type_size(like->val_type);
    return 8 * (uint64_t)(f->row[size] - (f->row[rank + 1] - f->row[rank]))
           + entry * (uint64_t)(f->entry[size] - (f->entry[rank + 1] - f->entry[rank]));
}

static void done_with(grid *g)
{
    tl_base *b = g->d->b;
    for (int j = 0; g->part && j < g->cols; j++) tl_matrix_free(b, g->part[j]);
    tl_free(b, g->part);
    tl_free(b, g->view);
    tl_free(b, g->block);
    tl_freight_done(b, &g->a);
    tl_freight_done(b, &g->c);
    tl_fetch_done(b, &g->fetch);
    tl_matrix_free(b, g->A);
    tl_matrix_free(b, g->C);
}

tulle_status tl_summa(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, const tulle_options *o,
                      tulle_matrix **C, tl_account *account)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *b = &B->local;
    int cols = account->grid_cols;
    grid g = {.d = d, .cols = cols, .first = d->t.rank / cols * cols};
    uint64_t entry = tl_index_size(b->idx_type) + tl_type_size(b->val_type);
    /* what was exchanged to choose the grid is not part of the product itself */
    d->received[TL_MAIL_LISTS] += d->received[TL_MAIL_LENGTHS];
    d->received[TL_MAIL_LENGTHS] = 0;
    AGREE(begin(&g, b));
    TRY(gather_a(&g, A));
    TRY(multiply(&g, B, o, account));
    TRY(give_c(&g, A->row_starts, o, C));
    account->fetched = g.fetch.lists.need;
    account->exact = 8 * (uint64_t)g.fetch.lists.need + entry * (uint64_t)g.fetch.entries
                     + freight_bytes(&g, &g.a, &A->local) + freight_bytes(&g, &g.c, &g.C->view);
    account->blocks = 1;
done:
    done_with(&g);
    return status;
}
