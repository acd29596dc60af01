/* SPDX-License-Identifier: MIT
 *
 * replay.c - the numeric phase alone: computes the values of C again, for unchanged patterns.
 *
 * The pieces, their positions in C and the workspace of every thread are kept, so a run allocates nothing,
 * and no piece waits for another. */
#include "cpu/cpu.h"
#include <inttypes.h>
#include <string.h>

struct tl_replay {
    tl_recipe   recipe;
    tl_job      job;
    tl_pieces   pieces;
    tl_crew     crew;
    tulle_csr   C;
    int64_t    *place;                  /* first entry of each piece */
    tl_piece_fn fn;
    /* of the current run */
    tl_base    *base;
    void       *c_val;
    atomic_llong next;
};

/* The first entry of a row whose column is at least lo. */
static int64_t place_of(const tulle_csr *C, int64_t row, int64_t lo)
{
    int64_t begin = tl_row_begin(C, row), end = tl_row_begin(C, row + 1);
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (tl_get(C->col_idx, C->idx_type, middle) < lo) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

uint64_t tl_replay_bytes(void)
{
    return sizeof(tl_replay);
}

/* As many threads as the memory limit allows, but at least one: the product that was computed before needed
 * as much. */
static tulle_status make_crew(tl_base *b, const tl_request *r, tl_replay *p)
{
    tulle_status status = TULLE_OK;
    uint64_t each = sizeof *p->place, need = tl_bytes_sum(tl_cpu_base(b, r), tl_cpu_pieces_bytes(r));
    if (r->uncounted && need > r->memory_limit) goto refused;
    for (int lean = 0; lean < 2; lean++) {
        int threads = lean ? 1 : tl_cpu_threads(b, r->threads, r->profile->total);
        TRY(tl_cpu_pieces(b, r, lean, &p->pieces));
        uint64_t base = tl_cpu_base(b, r) + (uint64_t)p->pieces.count * each;
        for (; threads > 0; threads--) {
            need = base + tl_crew_bytes(r->B, r->profile, &p->pieces, threads);
            if (need > r->memory_limit) continue;
            return tl_crew_make(b, r->B, r->profile, &p->pieces, threads, &p->crew);
        }
        tl_pieces_done(b, &p->pieces);
    }
refused:
    status = tl_fail(b, TULLE_ELIMIT, "the plan needs %" PRIu64 " bytes, the limit is %" PRIu64, need,
                     r->memory_limit);
done:
    return status;
}

tulle_status tl_replay_make(tl_base *b, const tl_request *r, const tulle_csr *C, tl_replay **out)
{
    tulle_status status = TULLE_OK;
    tl_replay *p = NULL;
    *out = NULL;
    TRY(tl_calloc(b, &p, 1, sizeof *p, "a plan"));
    p->recipe = *r->recipe;
    p->job = tl_job_make(r->A, r->B, &p->recipe, r->profile);
    p->C = *C;
    p->fn = tl_kernels_for(r->B->val_type, r->B->idx_type).numeric;
    TRY(make_crew(b, r, p));
    TRY(tl_alloc(b, &p->place, p->pieces.count, sizeof *p->place, "places of the pieces"));
    for (int64_t i = 0; i < p->pieces.count; i++)
        p->place[i] = place_of(C, p->pieces.piece[i].row0, p->pieces.piece[i].lo);
    *out = p;
    p = NULL;
done:
    tl_replay_free(b, p);
    return status;
}

static void work(void *arg, int thread, int threads)
{
    tl_replay *p = arg;
    tl_scratch *s = tl_crew_enter(&p->crew, thread);
    size_t index = p->crew.index, value = p->crew.value;
    (void)threads;
    for (;;) {
        int64_t i = atomic_fetch_add(&p->next, 1);
        if (i >= p->pieces.count) return;
        if (thread == 0) tl_progress(p->base, "numeric", (double)i / (double)p->pieces.count);
        if (atomic_load_explicit(&p->base->cancelled, memory_order_relaxed)) return;
        const tl_piece *piece = &p->pieces.piece[i];
        int64_t place = p->place[i];
        for (int64_t k = piece->row0; k < piece->row1; k++)
            s->row_end[k - piece->row0] = tl_row_begin(&p->C, k + 1) - place;
        p->fn(&p->job, s, piece, (char *)p->C.col_idx + (size_t)place * index,
              (char *)p->c_val + (size_t)place * value, s->row_end);
    }
}

tulle_status tl_replay_run(tl_base *b, tl_replay *p, const void *a_val, const void *b_val, void *c_val)
{
    p->job.a.val = a_val;
    p->job.b.val = b_val;
    p->c_val = c_val;
    p->base = b;
    atomic_store(&p->next, 0);
    atomic_store(&b->cancelled, 0);
    if (!tl_progress(b, "numeric", 0)) tl_team_run(b->team, p->crew.threads, work, p);
    if (atomic_load(&b->cancelled)) return tl_fail(b, TULLE_ECANCEL, "the run of a plan was cancelled");
    return TULLE_OK;
}

void tl_replay_free(tl_base *b, tl_replay *p)
{
    if (!p) return;
    tl_free(b, p->place);
    tl_crew_done(b, &p->crew);
    tl_pieces_done(b, &p->pieces);
    tl_free(b, p);
}
