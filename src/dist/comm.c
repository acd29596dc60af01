/* SPDX-License-Identifier: MIT
 *
 * comm.c - wraps the transport to count bytes, messages and waiting time; collective agreement on a status.
 *
 * Agreement is one allreduce (minimum) to which a rank that failed contributes its rank number.  The lowest
 * one then sends its status and error message to all, in a second step that takes place only after a failure.
 * So no rank goes on and waits for messages of a rank that has already returned.
 *
 * If the transport itself fails, the rank calls fail(), which ends the waiting of the other ranks; from then
 * on every call fails on all ranks. */
#include "dist/dist.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = TL_ERROR_MAX / 8, MOST = 1024 };     /* numbers of one allreduce */

tulle_status tl_dist_create(tl_base *b, tulle_ctx *ctx, const tulle_transport *t, const tulle_dist_options *o,
                            tulle_dist **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist *d = NULL;
    TRY(tl_calloc(b, &d, 1, sizeof *d, "a tulle_dist"));
    d->ctx = ctx;
    d->b = b;
    d->t = *t;
    d->slice = o && o->slice_bytes > 0 ? o->slice_bytes : ((int64_t)32 << 20) / t->size;
    if (!(o && o->slice_bytes > 0) && d->slice > 16 << 20) d->slice = 16 << 20;
    if (!(o && o->slice_bytes > 0) && d->slice < 64 << 10) d->slice = 64 << 10;
    if (d->slice > TULLE_MESSAGE_MAX) d->slice = TULLE_MESSAGE_MAX;
    d->dimensions = o ? o->dimensions : 0;
    d->grid_cols = o ? o->grid_cols : 0;
    d->stats.rank = t->rank;
    d->stats.ranks = t->size;
done:
    *out = d;
    return status;
}

void tl_dist_free(tulle_dist *d)
{
    if (!d) return;
    if (d->t.end) d->t.end(d->t.user);
    tl_free(d->b, d);
}

/* ---- wrappers of the transport's functions */

static tulle_status broken(tulle_dist *d)
{
    const char *why = d->t.why ? d->t.why(d->t.user) : NULL;
    return tl_fail(d->b, TULLE_ECOMM, "%s", why && why[0] ? why : "messages between ranks failed");
}

static tulle_status result(tulle_dist *d, int code, const char *what)
{
    if (code == 0) return TULLE_OK;
    if (!d->broken) {
        char sentence[TL_ERROR_MAX];
        const char *why = d->t.why ? d->t.why(d->t.user) : NULL;
        d->broken = true;
        snprintf(sentence, sizeof sentence, "rank %d: %s failed%s%.800s", d->t.rank, what, why && why[0] ?
                 ": " : "",
                 why ? why : "");
        d->t.fail(d->t.user, sentence);
    }
    return broken(d);
}

/* Adds the time of a call to the waiting time. */
#define WAITED(code, call)                                                  \
    do {                                                                    \
        double since = tl_now();                                            \
        code = (call);                                                      \
        d->wait += tl_now() - since;                                        \
    } while (0)

tulle_status tl_allreduce(tulle_dist *d, int64_t *values, int count, tulle_reduce op)
{
    int code = 0;
    if (d->broken) return broken(d);
    for (int at = 0; at < count && code == 0; at += MOST)
        WAITED(code, d->t.allreduce(d->t.user, values + at, count - at < MOST ? count - at : MOST, op));
    return result(d, code, "allreduce");
}

tulle_status tl_alltoall(tulle_dist *d, const int64_t *out, int64_t *in)
{
    int code;
    if (d->broken) return broken(d);
    WAITED(code, d->t.alltoall(d->t.user, out, in));
    return result(d, code, "alltoall");
}

tulle_status tl_wait(tulle_dist *d)
{
    int code;
    if (d->broken) return broken(d);
    WAITED(code, d->t.waitall(d->t.user));
    return result(d, code, "waitall");
}

tulle_status tl_send(tulle_dist *d, const void *data, int64_t bytes, int to, tl_mail kind)
{
    tulle_status status = TULLE_OK;
    if (d->broken) return broken(d);
    for (int64_t at = 0; at < bytes; at += TULLE_MESSAGE_MAX) {
        int64_t n = bytes - at < TULLE_MESSAGE_MAX ? bytes - at : TULLE_MESSAGE_MAX;
        TRY(result(d, d->t.isend(d->t.user, (const char *)data + at, n, to, (int)kind), "isend"));
        d->sent[kind] += (uint64_t)n;
        d->messages++;
    }
done:
    return status;
}

tulle_status tl_recv(tulle_dist *d, void *data, int64_t bytes, int from, tl_mail kind)
{
    tulle_status status = TULLE_OK;
    if (d->broken) return broken(d);
    for (int64_t at = 0; at < bytes; at += TULLE_MESSAGE_MAX) {
        int64_t n = bytes - at < TULLE_MESSAGE_MAX ? bytes - at : TULLE_MESSAGE_MAX;
        TRY(result(d, d->t.irecv(d->t.user, (char *)data + at, n, from, (int)kind), "irecv"));
        d->received[kind] += (uint64_t)n;
    }
done:
    return status;
}

void tl_count_begin(tulle_dist *d)
{
    memset(d->sent, 0, sizeof d->sent);
    memset(d->received, 0, sizeof d->received);
    d->messages = 0;
    d->wait = 0;
    d->start = tl_now();
    d->stats = (tulle_dist_stats){.rank = d->t.rank, .ranks = d->t.size};
}

/* ---- agreement */

/* Broadcasts status and message of the first rank that failed. */
static tulle_status take_over(tulle_dist *d, tulle_status status, int first)
{
    int64_t words[WORDS + 1] = {0};
    char text[TL_ERROR_MAX + 24];
    tulle_status sent;
    if (d->t.rank == first) {
        memcpy(words, d->b->error, sizeof d->b->error);
        words[WORDS] = status;
    }
    sent = tl_allreduce(d, words, WORDS + 1, TULLE_SUM);
    if (sent != TULLE_OK) return sent;
    memcpy(text, words, TL_ERROR_MAX);
    text[TL_ERROR_MAX - 1] = 0;
    status = (tulle_status)words[WORDS];
    /* A message that was taken over before has a rank already. */
    return strncmp(text, "rank ", 5) == 0 || d->t.size == 1
               ? tl_fail(d->b, status, "%s", text) : tl_fail(d->b, status, "rank %d: %s", first, text);
}

tulle_status tl_agree_least(tulle_dist *d, tulle_status status, int64_t *least, int count)
{
    int64_t words[1 + TL_LEAST_MAX];
    if (d->broken) return broken(d);
    words[0] = status == TULLE_OK ? d->t.size : d->t.rank;
    if (count > 0) memcpy(words + 1, least, (size_t)count * sizeof *least);
    tulle_status sent = tl_allreduce(d, words, 1 + count, TULLE_MIN);
    if (sent != TULLE_OK) return sent;
    if (words[0] < d->t.size) return take_over(d, status, (int)words[0]);
    if (count > 0) memcpy(least, words + 1, (size_t)count * sizeof *least);
    return TULLE_OK;
}

tulle_status tl_agree(tulle_dist *d, tulle_status status)
{
    return tl_agree_least(d, status, NULL, 0);
}
