/* SPDX-License-Identifier: MIT
 *
 * turn.c - new values for a transposed matrix with a known pattern (from move.c): each rank sends the values
 * that belong to the rows of another one, in the order of its local transpose; received values are stored at
 * their recorded places.
 *
 * Memory: 8 bytes for each entry of A on this rank, 8 bytes and two values for each entry of the
 * transpose. */
#include "dist/dist.h"
#include <string.h>

tulle_status tl_turn_keep(tulle_dist *d, const tulle_csr *turned, int op, const int64_t *starts,
                          const tl_freight *f, tl_turn *t)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size, rank = d->t.rank;
    int64_t rows = starts[rank + 1] - starts[rank], at = 0;
    int64_t *next = NULL;
    size_t value = tl_type_size(turned->val_type);
    t->op = op;
    t->val_type = turned->val_type;
    t->given = turned->nnz;
    t->entries = f->entry[size];
    t->elsewhere = t->entries - (f->entry[rank + 1] - f->entry[rank]);
    TRY(tl_calloc(d->b, &t->block, 3 * (int64_t)size, sizeof *t->block, "counts of entries"));
    TRY(tl_alloc(d->b, &t->place, size, sizeof *t->place, "places of values"));
    TRY(tl_alloc(d->b, &t->order, t->entries, sizeof *t->order, "places of values"));
    TRY(tl_alloc(d->b, &t->came, t->entries, value, "values of rows"));
    TRY(tl_alloc(d->b, &t->values, t->entries, value, "values of a transpose"));
    TRY(tl_alloc(d->b, &next, size, sizeof *next, "places in rows"));
    t->out = t->block;
    t->in = t->block + size;
    t->sent = t->block + 2 * size;
    for (int r = 0; r < size; r++) {
        t->out[r] = tl_row_begin(turned, starts[r + 1]) - tl_row_begin(turned, starts[r]);
        t->in[r] = f->entry[r + 1] - f->entry[r];
        t->place[r] = (char *)t->came + f->entry[r] * (int64_t)value;
        next[r] = f->entry[r];
    }
    for (int64_t i = 0; i < rows; i++)          /* in the order of tl_freight_merge() */
        for (int r = 0; r < size; r++)
            for (int64_t k = 0; k < f->length[f->row[r] + i]; k++) t->order[next[r]++] = at++;
done:
    tl_free(d->b, next);
    return status;
}

typedef struct packer { tl_turn *t; const char *from; size_t value; int64_t *begin; } packer;

/* Negates imaginary parts; a value is two floats or two doubles. */
static void conjugate(char *values, int64_t count, size_t value)
{
    if (value == 2 * sizeof(float))
        for (int64_t k = 0; k < count; k++) ((float *)values)[2 * k + 1] = -((float *)values)[2 * k + 1];
    else
        for (int64_t k = 0; k < count; k++) ((double *)values)[2 * k + 1] = -((double *)values)[2 * k + 1];
}

static void pack(void *arg, int to, int64_t count, char *buffer)
{
    packer *p = arg;
    tl_turn *t = p->t;
    const int64_t *from = t->perm + p->begin[to] + t->sent[to];
    t->sent[to] += count;
    for (int64_t k = 0; k < count; k++)
        memcpy(buffer + k * (int64_t)p->value, p->from + from[k] * (int64_t)p->value, p->value);
    if (t->op == TULLE_ADJOINT && tl_type_complex(t->val_type)) conjugate(buffer, count, p->value);
}

tulle_status tl_turn_values(tulle_dist *d, tulle_status status, const void *a_values, tl_turn *t)
{
    int size = d->t.size;
    packer p = {.t = t, .from = a_values, .value = tl_type_size(t->val_type)};
    if (status == TULLE_OK) status = tl_calloc(d->b, &p.begin, size + 1, sizeof *p.begin, "places of values");
    for (int r = 0; r < size && status == TULLE_OK; r++) p.begin[r + 1] = p.begin[r] + t->out[r];
    memset(t->sent, 0, (size_t)size * sizeof *t->sent);
    tl_stream s = {.kind = TL_MAIL_VALUES, .item = p.value, .out = t->out, .in = t->in, .place = t->place,
                   .pack = pack, .arg = &p};
    TRY(tl_exchange(d, status, &s));
    for (int64_t k = 0; k < t->entries; k++)
        memcpy((char *)t->values + t->order[k] * (int64_t)p.value, (char *)t->came + k * (int64_t)p.value,
               p.value);
done:
    tl_free(d->b, p.begin);
    return status;
}

void tl_turn_done(tl_base *b, tl_turn *t)
{
    tl_free(b, t->perm);
    tl_free(b, t->block);
    tl_free(b, t->place);
    tl_free(b, t->order);
    tl_free(b, t->came);
    tl_free(b, t->values);
    memset(t, 0, sizeof *t);
}
