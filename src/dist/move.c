/* SPDX-License-Identifier: MIT
 *
 * move.c - redistributes a matrix: other row blocks, all rows on one rank, transpose; and finds row blocks of
 * equal work.
 *
 * Row blocks: the rows received from the ranks, in the order of the ranks, are the result.
 *
 * Transpose: each rank transposes its part, so that the columns for another rank become contiguous rows; the
 * received parts are merged row by row in the order of the ranks, which is that of the columns.
 * Memory: the local part twice, and 8 bytes for each column of A on every rank. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1)
{
    int64_t low = tl_max(a0, b0), high = tl_min(a1, b1);
    return high > low ? high - low : 0;
}

/* ---- other row blocks */

tulle_status tl_dist_redistribute(tulle_dist *d, const tulle_dist_csr *A, const int64_t *starts,
                                  tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size, rank = d->t.rank;
    const int64_t *old = A->row_starts;
    int64_t *cut = NULL, *rows_in = NULL;
    tl_freight f = {0};
    tulle_matrix *mine = NULL;
    status = tl_alloc(d->b, &cut, size + 1, sizeof *cut, "row blocks");
    if (status == TULLE_OK) status = tl_alloc(d->b, &rows_in, size, sizeof *rows_in, "row blocks");
    AGREE(status);
    for (int r = 0; r <= size; r++) {
        int64_t at = starts[r] - old[rank];
        cut[r] = at < 0 ? 0 : tl_min(at, A->local.rows);
    }
    for (int r = 0; r < size; r++) rows_in[r] = overlap(starts[rank], starts[rank + 1], old[r], old[r + 1]);
    TRY(tl_ship(d, &A->local, cut, cut + 1, rows_in, 0, A->local.idx_type, false, &f));
    status = tl_freight_stack(d, &A->local, starts[rank + 1] - starts[rank], A->local.cols, A->local.idx_type,
                              &f, &mine);
    TRY(tl_dist_give(d, status, starts, &mine, out));
done:
    tl_free(d->b, cut);
    tl_free(d->b, rows_in);
    tl_freight_done(d->b, &f);
    tl_matrix_free(d->b, mine);
    return status;
}

tulle_status tl_dist_gather(tulle_dist *d, const tulle_dist_csr *A, int root, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t *starts = NULL;
    tulle_dist_matrix *all = NULL;
    AGREE(tl_alloc(d->b, &starts, d->t.size + 1, sizeof *starts, "row blocks"));
    for (int r = 0; r <= d->t.size; r++) starts[r] = r <= root ? 0 : tl_dist_rows(d, A);
    TRY(tl_dist_redistribute(d, A, starts, &all));
    if (d->t.rank == root) {
        *out = all->local;
        all->local = NULL;
    }
done:
    tl_free(d->b, starts);
    tl_dist_matrix_free(d->b, all);
    return status;
}

tulle_status tl_dist_scatter(tulle_dist *d, const tulle_csr *A, const int64_t *starts,
                             tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t first = starts[d->t.rank], rows = starts[d->t.rank + 1] - first, begin = tl_row_begin(A, first);
    int64_t nnz = tl_row_begin(A, first + rows) - begin;
    tulle_matrix *mine = NULL;
    status = tl_matrix_create(d->b, rows, A->cols, nnz, A->ptr_type, A->idx_type, A->values ? (int)A->val_type
                              : 0, &mine);
    if (status == TULLE_OK) {
        size_t index = tl_index_size(A->idx_type), value = tl_type_size(A->val_type);
        mine->view.val_type = A->val_type;
        for (int64_t i = 0; i <= rows; i++)
            tl_put(mine->row_ptr, A->ptr_type, i, tl_row_begin(A, first + i) - begin);
        if (nnz > 0)
            memcpy(mine->col_idx, (const char *)A->col_idx + begin * (int64_t)index, (size_t)nnz * index);
        if (nnz > 0 && A->values)
            memcpy(mine->values, (const char *)A->values + begin * (int64_t)value, (size_t)nnz * value);
    }
    TRY(tl_dist_give(d, status, starts, &mine, out));
done:
    tl_matrix_free(d->b, mine);
    return status;
}

/* ---- transpose */

tulle_status tl_dist_turn(tulle_dist *d, const tulle_dist_csr *A, tulle_op op, const int64_t *given,
                          tl_turn *keep, tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size, rank = d->t.rank;
    int64_t *starts = NULL, *rows_in = NULL, cols = tl_dist_rows(d, A);
    tulle_index idx_type = tl_fits(A->local.idx_type, cols) ? A->local.idx_type : TULLE_I64;
    tulle_matrix *turned = NULL, *mine = NULL;
    tl_freight f = {0};
    status = tl_alloc(d->b, &starts, size + 1, sizeof *starts, "row blocks");
    if (status == TULLE_OK) status = tl_alloc(d->b, &rows_in, size, sizeof *rows_in, "row blocks");
    if (status == TULLE_OK)
        status = tl_csr_transpose(d->b, &A->local, op, &turned, keep ? &keep->perm : NULL);
    AGREE(status);
    for (int r = 0; r <= size; r++) starts[r] = given ? given[r] : tl_part(A->local.cols, r, size);
    for (int r = 0; r < size; r++) rows_in[r] = starts[rank + 1] - starts[rank];
    TRY(tl_ship(d, &turned->view, starts, starts + 1, rows_in, A->row_starts[rank], idx_type, !keep, &f));
    status = tl_freight_merge(d, &A->local, rows_in[0], cols, idx_type, 0, &f, &mine);
    if (status == TULLE_OK && keep) status = tl_turn_keep(d, &turned->view, op, starts, &f, keep);
    TRY(tl_dist_give(d, status, starts, &mine, out));
done:
    tl_free(d->b, starts);
    tl_free(d->b, rows_in);
    tl_freight_done(d->b, &f);
    tl_matrix_free(d->b, turned);
    tl_matrix_free(d->b, mine);
    return status;
}

tulle_status tl_dist_transpose(tulle_dist *d, const tulle_dist_csr *A, tulle_op op, const int64_t *starts,
                               tulle_dist_matrix **out)
{
    return tl_dist_turn(d, A, op, starts, NULL, out);
}

/* ---- equal work */

/* The cost of a row is its number of products plus one, so that empty rows are balanced, too. */
tulle_status tl_dist_balance(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, int64_t *starts)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size, rank = d->t.rank;
    int64_t *work = NULL, here = 0, before = 0, all = 0, own = B->row_starts[rank];
    tl_fetch f = {0};
    TRY(tl_fetch_lengths(d, &A->local, B, &f));
    AGREE(tl_calloc(d->b, &work, 2 * (int64_t)size, sizeof *work, "work of ranks"));
    for (int64_t i = 0; i < A->local.rows; i++) here += 1 + tl_row_products(&A->local, &B->local, &f, own, i);
    for (int r = 0; r < size; r++) work[r] = here;
    TRY(tl_alltoall(d, work, work + size));
    for (int r = 0; r < size; r++) {
        if (r < rank) before += work[size + r];
        all += work[size + r];
    }
    for (int r = 0; r <= size; r++) starts[r] = 0;
    int next = 1;
    for (int64_t i = 0, at = before; i < A->local.rows; i++) {
        at += 1 + tl_row_products(&A->local, &B->local, &f, own, i);
        while (next < size && tl_part(all, next, size) <= at) {
            if (tl_part(all, next, size) > before) starts[next] = A->row_starts[rank] + i + 1;
            next++;
        }
    }
    TRY(tl_allreduce(d, starts, size, TULLE_MAX));
    starts[size] = tl_dist_rows(d, A);
    for (int r = 1; r < size; r++)
        if (starts[r] < starts[r - 1]) starts[r] = starts[r - 1];
done:
    tl_free(d->b, work);
    tl_fetch_done(d->b, &f);
    return status;
}
