/* SPDX-License-Identifier: MIT
 *
 * grid.c - counts what a product would move on each grid of ranks, and chooses one.
 *
 * A grid of R x C ranks, R*C = size: rank q is in row q / C and column q % C.  The rows of A of all ranks in
 * one row of the grid are contiguous.  A rank computes C for all these rows, in the columns that belong to
 * its column of the grid (summa.c).  So the following is moved:
 *
 *     A   each row of A, its length and its entries, to C - 1 other ranks;
 *     B   each row of B that a row of the grid needs: to every rank in it the entries in its columns, and
 *         their number;
 *     C   the parts of rows that belong to other ranks in the row of the grid.
 *
 * From the lists of the one-dimensional product the owners of B's rows know which ranks need which rows, so
 * the bytes of A and B are counted exactly and without communication, by each owner for its rows.  The
 * pattern of C is not known yet; as an upper bound it is counted with as many entries as products.  So a grid
 * is chosen only where it certainly moves less.  Where moving A once is already more than the one-dimensional
 * product moves (every mesh), nothing is counted at all.
 *
 * Memory: 8 bytes per row of B on this rank. */
#include "dist/dist.h"
#include <string.h>

enum { GRIDS = 64 };                    /* the number of grids considered at most, fewest columns first */

typedef struct survey {
    const tulle_csr *A, *B;
    const tl_fetch  *f;
    int              size, rank;
    uint64_t         a_entry, b_entry;
    char            *used;              /* this rank's rows of B that its rows of A need */
    int32_t         *seen;              /* the last row of the grid that was counted for a row of B */
    int              cols[GRIDS];
    int64_t          bytes[GRIDS];
    int              grids;
} survey;

int64_t tl_row_products(const tulle_csr *A, const tulle_csr *B, const tl_fetch *f, int64_t own_first,
                        int64_t row)
{
    int64_t products = 0;
    for (int64_t k = tl_row_begin(A, row); k < tl_row_begin(A, row + 1); k++) {
        int64_t c = tl_get(A->col_idx, A->idx_type, k), at = f->in ? tl_lists_find(&f->lists, c) : -1;
        int64_t own = c - own_first;
        products += at >= 0 ? f->length[at] : tl_row_begin(B, own + 1) - tl_row_begin(B, own);
    }
    return products;
}

/* Bytes of sending a row of B to all ranks in one row of the grid; ours: this rank is one of them. */
static uint64_t row_bytes(const survey *s, int64_t row, int cols, bool ours)
{
    int64_t entries = tl_row_begin(s->B, row + 1) - tl_row_begin(s->B, row);
    if (!ours) return 8 * (uint64_t)cols + (uint64_t)entries * s->b_entry;
    int block = s->rank % cols;
    entries -= tl_row_lower(s->B, row, tl_part(s->B->cols, block + 1, cols))
               - tl_row_lower(s->B, row, tl_part(s->B->cols, block, cols));
    return 8 * (uint64_t)(cols - 1) + (uint64_t)entries * s->b_entry;
}

static uint64_t rows_of_b(survey *s, int cols)
{
    const tl_lists *l = &s->f->lists;
    uint64_t bytes = 0;
    memset(s->seen, 0xff, (size_t)l->own_rows * sizeof *s->seen);
    for (int r = 0; r < s->size; r++) {
        int grid_row = r / cols;
        bool own = r == s->rank, ours = grid_row == s->rank / cols;
        int64_t count = own ? l->own_rows : l->to[r + 1] - l->to[r];
        for (int64_t i = 0; i < count; i++) {
            int64_t row = own ? i : l->give[l->to[r] + i];
            if ((own && !s->used[row]) || s->seen[row] == grid_row) continue;
            s->seen[row] = grid_row;
            bytes += row_bytes(s, row, cols, ours);
        }
    }
    return bytes;
}

static tulle_status count(tulle_dist *d, survey *s)
{
    tulle_status status = TULLE_OK;
    const tl_lists *l = &s->f->lists;
    uint64_t a_bytes = 8 * (uint64_t)s->A->rows + s->a_entry * (uint64_t)s->A->nnz, entries = 0;
    TRY(tl_calloc(d->b, &s->used, l->own_rows, 1, "rows that are used"));
    TRY(tl_alloc(d->b, &s->seen, l->own_rows, sizeof *s->seen, "rows that were counted"));
    for (int64_t k = 0; k < s->A->nnz; k++) {
        int64_t own = tl_get(s->A->col_idx, s->A->idx_type, k) - l->own_first;
        if (own >= 0 && own < l->own_rows) s->used[own] = 1;
    }
    for (int64_t i = 0; i < s->A->rows; i++) {
        int64_t products = tl_row_products(s->A, s->B, s->f, l->own_first, i);
        entries += (uint64_t)(products < s->B->cols ? products : s->B->cols);
    }
    for (int g = 0; g < s->grids; g++) {
        uint64_t others = (uint64_t)s->cols[g] - 1;
        s->bytes[g] = (int64_t)(others * a_bytes + rows_of_b(s, s->cols[g])
                                + 8 * others * (uint64_t)s->A->rows + s->b_entry * entries);
    }
done:
    tl_free(d->b, s->used);
    tl_free(d->b, s->seen);
    return status;
}

tulle_status tl_grid_choose(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                            const tulle_options *o, const tl_fetch *f, tl_account *account)
{
    tulle_status status = TULLE_OK;
    survey s = {.A = &A->local, .B = &B->local, .f = f, .size = d->t.size, .rank = d->t.rank};
    size_t value = tl_type_size(B->local.val_type);
    s.a_entry = tl_index_size(A->local.idx_type) + value;
    s.b_entry = tl_index_size(B->local.idx_type) + value;
    int64_t sums[3] = {(int64_t)account->exact,
                       (int64_t)(8 * (uint64_t)s.A->rows + s.a_entry * (uint64_t)s.A->nnz),
                       o->memory_limit > 0};    /* may differ: some ranks may have no limit */
    if (d->t.size == 1 || d->dimensions == 1) goto done;
    TRY(tl_allreduce(d, sums, 3, TULLE_SUM));
    account->one = (uint64_t)sums[0];
    if (d->dimensions == 0 && (sums[0] <= sums[1] || sums[2] > 0)) goto done;
    for (int c = 2; c <= s.size && s.grids < GRIDS; c++)
        if (s.size % c == 0 && (d->grid_cols == 0 || d->grid_cols == c)) s.cols[s.grids++] = c;
    AGREE(count(d, &s));
    TRY(tl_allreduce(d, s.bytes, s.grids, TULLE_SUM));
    int best = 0;
    for (int g = 1; g < s.grids; g++)
        if (s.bytes[g] < s.bytes[best]) best = g;
    account->two = (uint64_t)s.bytes[best];
    if (d->dimensions == 2 || account->two < account->one) account->grid_cols = s.cols[best];
done:
    return status;
}
