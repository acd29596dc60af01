/* SPDX-License-Identifier: MIT
 *
 * transport.c - a tulle_transport over MPI 3.1.  This file is all of libtulle_mpi, and needs nothing but MPI.
 *
 * All communication uses a duplicate of the caller's communicator, with MPI_ERRORS_RETURN.  No call blocks
 * inside MPI: a rank that waits calls MPI_Test() in a loop, and now and then looks for a message of a rank
 * that gave up (a "letter", TAG_FAREWELL).  So a rank that fails releases the others without MPI_Abort();
 * their pending receives are cancelled.  After that the transport cannot be used any more, and memory that
 * MPI may still access is not freed.
 *
 * A letter can arrive early: at a rank that still waits in a collective which the sender has already
 * completed.  So it contains the number of collectives that the sender has completed, and a rank acts on it
 * only when it has completed as many itself: no rank fails in a collective in which others succeeded. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "tulle_mpi.h"

enum { WORDS = 1024, SENTENCE = 1200, TAG_FAREWELL = 1000, LOOK = 64 };

typedef struct pile {                   /* pending requests */
    MPI_Request *request;
    int          count, room;
} pile;

typedef struct letter {                 /* the message of a rank that gives up */
    int64_t     ended;                  /* collectives that it has completed   */
    char        why[SENTENCE];
} letter;

typedef struct wire {
    MPI_Comm    comm;
    int         rank, size;
    pile        out, in;
    int64_t     mine[WORDS], all[WORDS];
    int64_t    *counts;                 /* 2 * size */
    int64_t     ended;                  /* completed collectives               */
    bool        failed, began;          /* began: MPI was initialised here     */
    bool        told;                   /* `theirs` has arrived, see above     */
    letter      theirs, last;           /* last: this rank's own, if it gives up */
    char        why[SENTENCE];
} wire;

static int fails(wire *l, int code)
{
    int length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_string(code, text, &length);
    snprintf(l->why, sizeof l->why, "MPI: %.900s", text);
    return code;
}

/* ---- a rank that gave up */

/* Cancels the receives, so that nothing is written into buffers that will be freed; sends are abandoned, as
 * nobody may receive them any more. */
static void let_go(wire *l)
{
    for (int i = 0; i < l->in.count; i++) {
        if (l->in.request[i] == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&l->in.request[i]);
        MPI_Wait(&l->in.request[i], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < l->out.count; i++)
        if (l->out.request[i] != MPI_REQUEST_NULL) MPI_Request_free(&l->out.request[i]);
    l->in.count = l->out.count = 0;
    l->failed = true;
}

/* Whether a rank has given up, in the current collective or earlier; then this rank fails, too. */
static bool farewells(wire *l)
{
    int there = 0;
    MPI_Status from;
    letter got = {0};
    if (l->failed) return true;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAREWELL, l->comm, &there, &from) == MPI_SUCCESS && there) {
        if (MPI_Recv(&got, (int)sizeof got, MPI_BYTE, from.MPI_SOURCE, TAG_FAREWELL, l->comm,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
            snprintf(got.why, sizeof got.why, "rank %d gave up", from.MPI_SOURCE);
        if (!l->told || got.ended < l->theirs.ended) l->theirs = got;
        l->told = true;
    }
    if (!l->told || l->theirs.ended > l->ended) return false;
    memcpy(l->why, l->theirs.why, sizeof l->why);
    l->why[SENTENCE - 1] = 0;
    let_go(l);
    return true;
}

/* Waits until all requests are complete. */
static int wait_for(wire *l, MPI_Request *request, int count)
{
    unsigned idle = 0;
    for (int i = 0; i < count;) {
        int done = 0, code = MPI_Test(&request[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return fails(l, code);
        if (done) {
            i++;
            continue;
        }
        if (++idle % LOOK == 0 && farewells(l)) return 1;
        if (idle > LOOK) sched_yield();         /* there may be more ranks than cores */
    }
    return 0;
}

static void give_up(void *user, const char *sentence)
{
    wire *l = user;
    MPI_Request request;
    if (l->failed) return;
    l->last.ended = l->ended;
    snprintf(l->last.why, sizeof l->last.why, "%s", sentence);
    memcpy(l->why, l->last.why, sizeof l->why);
    for (int r = 0; r < l->size; r++)
        if (r != l->rank
            && MPI_Isend(&l->last, (int)sizeof l->last, MPI_BYTE, r, TAG_FAREWELL, l->comm, &request)
                   == MPI_SUCCESS)
            MPI_Request_free(&request);
    let_go(l);
}

/* ---- the functions of the transport */

static int allreduce(void *user, int64_t *values, int count, tulle_reduce op)
{
    wire *l = user;
    MPI_Request request;
    if (farewells(l)) return 1;
    memcpy(l->mine, values, (size_t)count * sizeof *values);
    int code = MPI_Iallreduce(l->mine, l->all, count, MPI_INT64_T, op == TULLE_SUM ? MPI_SUM : op == TULLE_MIN
                              ? MPI_MIN : MPI_MAX,
                              l->comm, &request);
    if (code == MPI_SUCCESS) code = wait_for(l, &request, 1);
    else code = fails(l, code);
    if (code == 0) memcpy(values, l->all, (size_t)count * sizeof *values);
    l->ended += code == 0;
    return code;
}

static int alltoall(void *user, const int64_t *out, int64_t *in)
{
    wire *l = user;
    MPI_Request request;
    if (farewells(l)) return 1;
    memcpy(l->counts, out, (size_t)l->size * sizeof *out);
    int code = MPI_Ialltoall(l->counts, 1, MPI_INT64_T, l->counts + l->size, 1, MPI_INT64_T, l->comm,
                             &request);
    if (code == MPI_SUCCESS) code = wait_for(l, &request, 1);
    else code = fails(l, code);
    if (code == 0) memcpy(in, l->counts + l->size, (size_t)l->size * sizeof *in);
    l->ended += code == 0;
    return code;
}

/* Makes room for one more request. */
static int grow(wire *l, pile *p)
{
    MPI_Request *more = NULL;
    int room = p->room > 0 ? 2 * p->room : 64;
    if (p->count < p->room) return 0;
    int code = MPI_Alloc_mem((MPI_Aint)((size_t)room * sizeof *more), MPI_INFO_NULL, &more);
    if (code != MPI_SUCCESS) return fails(l, code);
    if (p->count > 0) memcpy(more, p->request, (size_t)p->count * sizeof *more);
    if (p->request) MPI_Free_mem(p->request);
    p->request = more;
    p->room = room;
    return 0;
}

static int send_letter(void *user, const void *data, int64_t bytes, int to, int tag)
{
    wire *l = user;
    if (l->failed) return 1;
    int code = grow(l, &l->out);
    if (code == 0)
        code = fails(l, MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, l->comm,
                                  &l->out.request[l->out.count]));
    if (code == 0) l->out.count++;
    return code;
}

static int receive(void *user, void *data, int64_t bytes, int from, int tag)
{
    wire *l = user;
    if (l->failed) return 1;
    int code = grow(l, &l->in);
    if (code == 0)
        code = fails(l, MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, l->comm,
                                  &l->in.request[l->in.count]));
    if (code == 0) l->in.count++;
    return code;
}

static int wait_all(void *user)
{
    wire *l = user;
    if (farewells(l)) return 1;
    int code = wait_for(l, l->in.request, l->in.count);
    if (code == 0) code = wait_for(l, l->out.request, l->out.count);
    if (code == 0) l->in.count = l->out.count = 0;
    return code;
}

static const char *why(void *user)
{
    return ((wire *)user)->why;
}

static void end(void *user)
{
    wire *l = user;
    int over = 0;
    bool began = l->began, failed = l->failed;  /* failed: MPI_Finalize() would wait for ranks that left */
    MPI_Finalized(&over);
    if (!over && !l->failed) {
        MPI_Comm_free(&l->comm);
        if (l->in.request) MPI_Free_mem(l->in.request);
        if (l->out.request) MPI_Free_mem(l->out.request);
        MPI_Free_mem(l->counts);
        MPI_Free_mem(l);
    }
    if (!over && began && !failed) MPI_Finalize();
}

int tulle_transport_mpi(MPI_Comm comm, tulle_transport *transport)
{
    wire *l = NULL;
    MPI_Comm own = MPI_COMM_NULL;
    int code = MPI_Comm_dup(comm, &own);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Alloc_mem(sizeof *l, MPI_INFO_NULL, &l);
    if (code != MPI_SUCCESS) {
        if (own != MPI_COMM_NULL) MPI_Comm_free(&own);
        return code;
    }
    memset(l, 0, sizeof *l);
    l->comm = own;
    MPI_Comm_rank(own, &l->rank);
    MPI_Comm_size(own, &l->size);
    code = MPI_Alloc_mem((MPI_Aint)(2 * (size_t)l->size * sizeof *l->counts), MPI_INFO_NULL, &l->counts);
    if (code != MPI_SUCCESS) {
        MPI_Comm_free(&own);
        MPI_Free_mem(l);
        return code;
    }
    *transport = (tulle_transport){.rank = l->rank, .size = l->size, .user = l, .allreduce = allreduce,
                                   .alltoall = alltoall, .isend = send_letter, .irecv = receive,
                                   .waitall = wait_all,
                                   .fail = give_up, .why = why, .end = end};
    return 0;
}

int tulle_mpi_begin(tulle_transport *transport)
{
    int there = 0, level = 0, code = MPI_Initialized(&there);
    /* the library has threads of its own, but only the caller's thread uses MPI */
    if (code == MPI_SUCCESS && !there) code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code == MPI_SUCCESS) code = tulle_transport_mpi(MPI_COMM_WORLD, transport);
    if (code == MPI_SUCCESS && !there) ((wire *)transport->user)->began = true;
    return code;
}
