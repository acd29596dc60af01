/* SPDX-License-Identifier: MIT
 *
 * ship.c - sends whole rows to other ranks: the rows first[r] .. end[r]-1 of a matrix go to rank r.
 *
 * The received rows are stored in the order of the ranks; freight.c assembles them.  A rank's rows for itself
 * are copied there as well, or stay where they are (lend).  Both sides know the number of rows; lengths are
 * sent first, then columns and values, in slices.  Memory: the received data, once. */
#include "dist/dist.h"
#include <string.h>

typedef struct hold {                   /* one array that is being sent */
    const tulle_csr *A;
    const int64_t   *first;             /* row for each rank       */
    int64_t         *sent;              /* entries, to each rank   */
    int64_t          shift;             /* is added to each column */
    tulle_index      idx_type;          /* on the way              */
    size_t           item;
} hold;

static void pack_columns(void *arg, int to, int64_t count, char *buffer)
{
    hold *h = arg;
    int64_t at = tl_row_begin(h->A, h->first[to]) + h->sent[to];
    h->sent[to] += count;
    tl_shift((const char *)h->A->col_idx + at * (int64_t)tl_index_size(h->A->idx_type), h->A->idx_type,
             buffer, h->idx_type, count, h->shift);
}

static void pack_values(void *arg, int to, int64_t count, char *buffer)
{
    hold *h = arg;
    int64_t at = tl_row_begin(h->A, h->first[to]) + h->sent[to];
    h->sent[to] += count;
    memcpy(buffer, (const char *)h->A->values + at * (int64_t)h->item, (size_t)count * h->item);
}

static void pack_lengths(void *arg, int to, int64_t count, char *buffer)
{
    hold *h = arg;
    int64_t row = h->first[to] + h->sent[to], length;
    h->sent[to] += count;
    for (int64_t k = 0; k < count; k++) {
        length = tl_row_begin(h->A, row + k + 1) - tl_row_begin(h->A, row + k);
        memcpy(buffer + 8 * k, &length, sizeof length);
    }
}

typedef struct counts {                 /* size entries each, one block */
    int64_t *block, *rows_out, *rows_in, *entries_out, *entries_in, *sent;
    char   **place;
} counts;

/* Exchanges the items of one array; those received from the ranks are stored one after the other at `to`. */
static tulle_status one_array(tulle_dist *d, hold *h, counts *c, tl_mail kind, const int64_t *out,
                              const int64_t *in, char *to,
                              void (*pack)(void *, int, int64_t, char *))
{
    int64_t at = 0;
    memset(c->sent, 0, (size_t)d->t.size * sizeof *c->sent);
    for (int r = 0; r < d->t.size; r++) {
        c->place[r] = to + at * (int64_t)h->item;
        at += in[r];
    }
    tl_stream s = {.kind = kind, .item = h->item, .out = out, .in = in, .place = c->place, .pack = pack,
                   .arg = h};
    return tl_exchange(d, TULLE_OK, &s);
}

static tulle_status begin(tulle_dist *d, const int64_t *rows_in, bool lend, counts *c, tl_freight *f)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size;
    TRY(tl_calloc(d->b, &c->block, 5 * (int64_t)size, sizeof *c->block, "counts of rows"));
    TRY(tl_alloc(d->b, &c->place, size, sizeof *c->place, "places of rows"));
    TRY(tl_calloc(d->b, &f->row, size + 1, sizeof *f->row, "counts of rows"));
    TRY(tl_calloc(d->b, &f->entry, size + 1, sizeof *f->entry, "counts of entries"));
    c->rows_out = c->block;
    c->entries_out = c->block + size;
    c->entries_in = c->block + 2 * size;
    c->sent = c->block + 3 * size;
    c->rows_in = c->block + 4 * size;
    for (int r = 0; r < size; r++) {
        c->rows_in[r] = lend && r == d->t.rank ? 0 : rows_in[r];
        f->row[r + 1] = f->row[r] + c->rows_in[r];
    }
    TRY(tl_alloc(d->b, &f->length, f->row[size], sizeof *f->length, "lengths of rows"));
done:
    return status;
}

static tulle_status rooms(tulle_dist *d, const tulle_csr *A, tulle_index idx_type, tl_freight *f)
{
    tulle_status status = TULLE_OK;
    TRY(tl_alloc(d->b, &f->col, f->entry[d->t.size], tl_index_size(idx_type), "columns of rows"));
    TRY(tl_alloc(d->b, &f->val, f->has_values ? f->entry[d->t.size] : 0, tl_type_size(A->val_type),
                 "values of rows"));
done:
    return status;
}

tulle_status tl_ship(tulle_dist *d, const tulle_csr *A, const int64_t *first, const int64_t *end,
                     const int64_t *rows_in, int64_t shift, tulle_index idx_type, bool lend, tl_freight *f)
{
    tulle_status status = TULLE_OK;
    counts c = {0};
    hold h = {.A = A, .first = first, .shift = shift, .idx_type = idx_type, .item = sizeof(int64_t)};
    int size = d->t.size;
    int64_t values = A->values || A->nnz == 0;
    memset(f, 0, sizeof *f);
    if (lend) *f = (tl_freight){.own = A, .own_first = first[d->t.rank], .own_end = end[d->t.rank],
                                .own_shift = shift};
    AGREE(begin(d, rows_in, lend, &c, f));
    TRY(tl_allreduce(d, &values, 1, TULLE_MIN));
    f->has_values = values != 0;
    for (int r = 0; r < size; r++) {
        if (lend && r == d->t.rank) continue;
        c.rows_out[r] = end[r] - first[r];
        c.entries_out[r] = tl_row_begin(A, end[r]) - tl_row_begin(A, first[r]);
    }
    h.sent = c.sent;
    TRY(tl_alltoall(d, c.entries_out, c.entries_in));
    for (int r = 0; r < size; r++) f->entry[r + 1] = f->entry[r] + c.entries_in[r];
    AGREE(rooms(d, A, idx_type, f));
    TRY(one_array(d, &h, &c, TL_MAIL_LENGTHS, c.rows_out, c.rows_in, (char *)f->length, pack_lengths));
    h.item = tl_index_size(idx_type);
    TRY(one_array(d, &h, &c, TL_MAIL_COLUMNS, c.entries_out, c.entries_in, f->col, pack_columns));
    h.item = tl_type_size(A->val_type);
    if (f->has_values)
        TRY(one_array(d, &h, &c, TL_MAIL_VALUES, c.entries_out, c.entries_in, f->val, pack_values));
done:
    tl_free(d->b, c.block);
    tl_free(d->b, c.place);
    if (status != TULLE_OK) tl_freight_done(d->b, f);
    return status;
}
