/* SPDX-License-Identifier: MIT
 *
 * exchange.c - an all-to-all exchange in slices.
 *
 * In round k the k-th slice for each rank is being sent, while the next one is packed into a second buffer
 * and, in the first round, local work is done (meanwhile()).  Messages are received directly into their final
 * place.  A pair of ranks with nothing left to exchange is skipped; slices of one pair arrive in order, so
 * rounds need no synchronization.
 *
 * Memory: two slices for each rank that is sent something, not longer than needed. */
#include "dist/dist.h"
#include <string.h>

typedef struct rounds {
    tulle_dist      *d;
    const tl_stream *s;
    int64_t          most;              /* items of a slice                     */
    int64_t         *begin;             /* offset of each rank's slice in a buffer */
    char            *buffer[2];
} rounds;

/* The number of a rank's items in a round; a rank sends nothing to itself. */
static int64_t slice_of(const rounds *r, const int64_t *items, int rank, int64_t round)
{
    int64_t left = rank == r->d->t.rank ? 0 : items[rank] - round * r->most;
    return left < 0 ? 0 : left < r->most ? left : r->most;
}

static int64_t rounds_of(const rounds *r, const int64_t *items, int rank)
{
    return rank == r->d->t.rank ? 0 : (items[rank] + r->most - 1) / r->most;
}

static void pack(const rounds *r, int64_t round)
{
    for (int to = 0; to < r->d->t.size; to++) {
        int64_t count = slice_of(r, r->s->out, to, round);
        if (count > 0)
            r->s->pack(r->s->arg, to, count, r->buffer[round & 1] + r->begin[to] * (int64_t)r->s->item);
    }
}

static tulle_status post(const rounds *r, int64_t round)
{
    tulle_status status = TULLE_OK;
    const tl_stream *s = r->s;
    int64_t item = (int64_t)s->item, at = round * r->most * item;
    for (int k = 0; k < r->d->t.size; k++) {
        int64_t bytes = item * slice_of(r, s->in, k, round);
        TRY(tl_recv(r->d, s->place[k] + (bytes > 0 ? at : 0), bytes, k, s->kind));
    }
    for (int k = 0; k < r->d->t.size; k++) {
        int64_t bytes = item * slice_of(r, s->out, k, round);
        TRY(tl_send(r->d, r->buffer[round & 1] + r->begin[k] * item, bytes, k, s->kind));
    }
done:
    return status;
}

static tulle_status prepare(rounds *r, int64_t *send_rounds, int64_t *all_rounds)
{
    tulle_status status = TULLE_OK;
    tl_base *b = r->d->b;
    int size = r->d->t.size;
    TRY(tl_alloc(b, &r->begin, size + 1, sizeof *r->begin, "places of slices"));
    r->begin[0] = 0;
    for (int k = 0; k < size; k++) {
        int64_t out = rounds_of(r, r->s->out, k), in = rounds_of(r, r->s->in, k);
        r->begin[k + 1] = r->begin[k] + slice_of(r, r->s->out, k, 0);
        if (out > *send_rounds) *send_rounds = out;
        if (in > *all_rounds) *all_rounds = in;
    }
    if (*send_rounds > *all_rounds) *all_rounds = *send_rounds;
    for (int k = 0; k < 2; k++)
        TRY(tl_alloc(b, &r->buffer[k], *send_rounds > k ? r->begin[size] : 0, r->s->item, "slices to send"));
done:
    return status;
}

/* Local work during the first round. */
static void meanwhile(const tl_stream *s, int rank)
{
    if (s->out[rank] > 0) s->pack(s->arg, rank, s->out[rank], s->place[rank]);
    if (s->meanwhile) s->meanwhile(s->arg);
}

/* Sender and receiver must use the same slice size, but each rank has its own options: the smallest size of
 * all is used, and determined once. */
static tulle_status agree_on_slice(tulle_dist *d, tulle_status status)
{
    if (d->sliced) return status;
    status = tl_agree_least(d, status, &d->slice, 1);
    d->sliced = status == TULLE_OK;
    return status;
}

tulle_status tl_exchange(tulle_dist *d, tulle_status status, const tl_stream *s)
{
    status = agree_on_slice(d, status);
    int64_t most = d->slice / (int64_t)s->item, send_rounds = 0, all_rounds = 0;
    rounds r = {.d = d, .s = s, .most = most > 0 ? most : 1};
    if (status == TULLE_OK) status = prepare(&r, &send_rounds, &all_rounds);
    AGREE(status);
    if (send_rounds > 0) pack(&r, 0);
    for (int64_t k = 0; k < all_rounds; k++) {
        TRY(post(&r, k));
        if (k == 0) meanwhile(s, d->t.rank);
        if (k + 1 < send_rounds) pack(&r, k + 1);
        TRY(tl_wait(d));
    }
    if (all_rounds == 0) meanwhile(s, d->t.rank);
done:
    tl_free(d->b, r.begin);
    tl_free(d->b, r.buffer[0]);
    tl_free(d->b, r.buffer[1]);
    return status;
}
