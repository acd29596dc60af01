/* SPDX-License-Identifier: MIT
 *
 * fetch.c - the rows of B that a rank's rows of A need, own and fetched, as one CSR matrix in global order.
 *
 * Row lengths are exchanged first: then every rank knows exactly how many bytes it will receive, before
 * anything large is allocated or moved.  Columns and values follow, received directly into their places,
 * while the rank copies its own rows and renumbers A's columns.
 *
 * With one rank nothing is moved or copied: the views are the caller's.
 * Memory: B's own and fetched rows once, A's columns once, and the slices of exchange.c. */
#include "dist/dist.h"
#include <string.h>

/* The matrix whose rows are sent to rank r. */
static const tulle_csr *rows_for(const tl_fetch *f, const tulle_csr *B, int r)
{
    return f->part ? &f->part[r % f->parts] : B;
}

/* ---- lengths */

static tulle_status lengths_begin(tulle_dist *d, const tulle_csr *B, tl_fetch *f, int64_t **mine)
{
    tulle_status status = TULLE_OK;
    const tl_lists *l = &f->lists;
    int size = d->t.size;
    TRY(tl_alloc(d->b, mine, l->to[size], sizeof **mine, "lengths of rows"));
    TRY(tl_alloc(d->b, &f->length, l->need, sizeof *f->length, "lengths of rows"));
    TRY(tl_calloc(d->b, &f->out, size, sizeof *f->out, "counts of entries"));
    TRY(tl_calloc(d->b, &f->in, size, sizeof *f->in, "counts of entries"));
    for (int r = 0; r < size; r++) {
        const tulle_csr *rows = rows_for(f, B, r);
        for (int64_t i = l->to[r]; i < l->to[r + 1]; i++) {
            (*mine)[i] = tl_row_begin(rows, l->give[i] + 1) - tl_row_begin(rows, l->give[i]);
            f->out[r] += (*mine)[i];
        }
    }
done:
    return status;
}

static tulle_status lengths_move(tulle_dist *d, tl_fetch *f, const int64_t *mine)
{
    tulle_status status = TULLE_OK;
    const tl_lists *l = &f->lists;
    for (int r = 0; r < d->t.size; r++)
        TRY(tl_recv(d, f->length + l->from[r], 8 * (l->from[r + 1] - l->from[r]), r, TL_MAIL_LENGTHS));
    for (int r = 0; r < d->t.size; r++)
        TRY(tl_send(d, mine + l->to[r], 8 * (l->to[r + 1] - l->to[r]), r, TL_MAIL_LENGTHS));
    TRY(tl_wait(d));
done:
    return status;
}

tulle_status tl_fetch_lengths(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, tl_fetch *f)
{
    tulle_status status = TULLE_OK;
    int64_t *mine = NULL;
    *f = (tl_fetch){.part = f->part, .parts = f->parts};
    if (d->t.size == 1) goto done;
    TRY(tl_lists_make(d, A, B->row_starts, &f->lists));
    AGREE(lengths_begin(d, &B->local, f, &mine));
    TRY(lengths_move(d, f, mine));
    for (int r = 0; r < d->t.size; r++)
        for (int64_t i = f->lists.from[r]; i < f->lists.from[r + 1]; i++) {
            f->in[r] += f->length[i];
            f->entries += f->length[i];
            if (i < f->lists.below) f->below_entries += f->length[i];
        }
    f->own_entries = tl_row_begin(rows_for(f, &B->local, d->t.rank), B->local.rows);
done:
    tl_free(d->b, mine);
    return status;
}

uint64_t tl_fetch_bytes(const tl_fetch *f, const tulle_csr *A, const tulle_csr *B, bool values)
{
    if (!f->in) return 0;               /* one rank: nothing is copied */
    uint64_t entries = (uint64_t)(f->entries + f->own_entries), rows = (uint64_t)tl_lists_rows(&f->lists);
    uint64_t entry = tl_index_size(B->idx_type) + (values ? tl_type_size(B->val_type) : 0);
    uint64_t all = tl_bytes_sum(tl_bytes_of(entries, entry), tl_bytes_of(rows + 1, 8));
    all = tl_bytes_sum(all, tl_lists_bytes(&f->lists));
    return tl_bytes_sum(all, tl_bytes_of((uint64_t)A->nnz, tl_index_size(tl_index_for((int64_t)rows))));
}

/* ---- columns and values */

typedef struct parcel {                 /* one array of B that is being exchanged */
    tulle_dist      *d;
    tl_fetch        *f;
    const tulle_csr *A, *B;
    bool             columns;           /* columns, or values           */
    const void      *values;            /* the caller's                 */
    char            *to;                /* ... and ours                 */
    size_t           item;
    int64_t         *row, *entry;       /* progress of packing for each rank */
    bool             number;            /* renumber A's columns meanwhile */
    tulle_index      a_type;
} parcel;

/* The array that is packed for rank r. */
static const char *array_for(const parcel *p, int r)
{
    if (p->columns) return rows_for(p->f, p->B, r)->col_idx;
    return p->f->part ? p->f->part[r % p->f->parts].values : p->values;
}

static void pack_rows(void *arg, int to, int64_t count, char *buffer)
{
    parcel *p = arg;
    const tl_lists *l = &p->f->lists;
    const tulle_csr *rows = rows_for(p->f, p->B, to);
    const char *from = array_for(p, to);
    while (count > 0) {
        int64_t row = l->give[l->to[to] + p->row[to]], begin = tl_row_begin(rows, row) + p->entry[to];
        int64_t run = tl_row_begin(rows, row + 1) - begin, take = run < count ? run : count;
        memcpy(buffer, from + begin * (int64_t)p->item, (size_t)take * p->item);
        buffer += take * (int64_t)p->item;
        count -= take;
        p->entry[to] += take;
        if (take == run) {
            p->row[to]++;
            p->entry[to] = 0;
        }
    }
}

static void own_part(void *arg)
{
    parcel *p = arg;
    tl_fetch *f = p->f;
    tl_team_copy(p->d->b, array_for(p, p->d->t.rank), p->to + f->below_entries * (int64_t)p->item,
                 f->own_entries, p->item);
    if (p->number) f->late = tl_lists_renumber(p->d->b, &f->lists, p->A, &f->a_col, &p->a_type);
}

/* Exchanges one array; status: this rank's part of the agreement before. */
static tulle_status move_array(parcel *p, tulle_status status, tl_mail kind)
{
    tulle_dist *d = p->d;
    tl_fetch *f = p->f;
    int size = d->t.size;
    char **place = NULL;
    int64_t at = 0;
    if (status == TULLE_OK) status = tl_calloc(d->b, &p->row, size, sizeof *p->row, "places in rows");
    if (status == TULLE_OK) status = tl_calloc(d->b, &p->entry, size, sizeof *p->entry, "places in rows");
    if (status == TULLE_OK) status = tl_alloc(d->b, &place, size, sizeof *place, "places of rows");
    for (int r = 0; r < size && status == TULLE_OK; r++) {
        if (r == d->t.rank) at += f->own_entries;
        place[r] = p->to + at * (int64_t)p->item;
        at += f->in[r];
    }
    tl_stream s = {.kind = kind, .item = p->item, .out = f->out, .in = f->in, .place = place,
                   .pack = pack_rows,
                   .meanwhile = own_part, .arg = p};
    status = tl_exchange(d, status, &s);
    tl_free(d->b, p->row);
    tl_free(d->b, p->entry);
    tl_free(d->b, place);
    return status;
}

static tulle_status rooms(tl_base *b, const tulle_csr *B, bool values, tl_fetch *f)
{
    tulle_status status = TULLE_OK;
    const tl_lists *l = &f->lists;
    int64_t entries = f->entries + f->own_entries, at = 0, row = 0;
    tulle_index type = tl_index_for(entries);
    TRY(tl_alloc(b, &f->row_ptr, tl_lists_rows(l) + 1, tl_index_size(type), "row pointers of B"));
    TRY(tl_alloc(b, &f->col_idx, entries, tl_index_size(B->idx_type), "columns of B"));
    if (values) TRY(tl_alloc(b, &f->values, entries, tl_type_size(B->val_type), "values of B"));
    tl_put(f->row_ptr, type, 0, 0);
    for (int64_t i = 0; i < l->below; i++) tl_put(f->row_ptr, type, ++row, at += f->length[i]);
    tl_team_shift(b, B->row_ptr, B->ptr_type, (char *)f->row_ptr + row * (int64_t)tl_index_size(type), type,
                  B->rows + 1, at);
    row += l->own_rows;
    at += f->own_entries;
    for (int64_t i = l->below; i < l->need; i++) tl_put(f->row_ptr, type, ++row, at += f->length[i]);
done:
    return status;
}

tulle_status tl_fetch_patterns(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, bool values,
                               tl_fetch *f)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *local = &B->local;
    int rank = d->t.rank;
    f->A = *A;
    f->B = *local;
    if (d->t.size == 1) goto done;
    status = rooms(d->b, rows_for(f, local, rank), values, f);
    parcel p = {.d = d, .f = f, .A = A, .B = local, .columns = true, .to = f->col_idx,
                .item = tl_index_size(local->idx_type), .number = true};
    TRY(move_array(&p, status, TL_MAIL_COLUMNS));
    f->A.cols = tl_lists_rows(&f->lists);
    f->A.col_idx = f->a_col;
    f->A.idx_type = p.a_type;
    f->B.rows = tl_lists_rows(&f->lists);
    f->B.nnz = f->entries + f->own_entries;
    f->B.row_ptr = f->row_ptr;
    f->B.ptr_type = tl_index_for(f->B.nnz);
    f->B.col_idx = f->col_idx;
    f->B.values = NULL;
done:
    return status;
}

tulle_status tl_fetch_values(tulle_dist *d, const tulle_csr *B, const void *b_values, tl_fetch *f)
{
    tulle_status status = TULLE_OK;
    if (d->t.size == 1) {
        f->B.values = b_values;
        goto done;
    }
    parcel p = {.d = d, .f = f, .B = B, .values = b_values, .to = f->values,
                .item = tl_type_size(B->val_type)};
    TRY(move_array(&p, f->late, TL_MAIL_VALUES));
    f->B.values = f->values;
done:
    return status;
}

void tl_fetch_done(tl_base *b, tl_fetch *f)
{
    tl_lists_done(b, &f->lists);
    tl_free(b, f->length);
    tl_free(b, f->out);
    tl_free(b, f->in);
    tl_free(b, f->row_ptr);
    tl_free(b, f->col_idx);
    tl_free(b, f->values);
    tl_free(b, f->a_col);
    memset(f, 0, sizeof *f);
}
