/* SPDX-License-Identifier: MIT
 *
 * queue.c - hands pieces to threads in order and joins their results in order, in one pass.
 *
 * Where a piece's result belongs in C is known only when all pieces before it have been counted.
 * So a thread computes a piece into a slot of its own that stays in cache, publishes the count, and
 * copies the slot to C as soon as its place is known; meanwhile it goes on with the next piece in
 * another slot.  The exact symbolic pass over all products is saved for one copy from cache, which
 * bypasses the cache on its way out (non-temporal stores) unless C's memory is new, so C is not read before
 * it is written.
 * One thread alone writes straight into C, and so do several when the places are known beforehand.
 *
 * Memory: SLOTS results of one piece a thread (at most 4 MiB unless single rows are larger), 16 bytes a
 * piece.  C itself is address space for the upper bound, of which only nnz(C) entries are touched. */
#include "cpu/cpu.h"
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { SLOTS = 4 };

typedef struct slot {
    void    *col, *val;
    int64_t *row_end;
    int64_t  piece, count;              /* piece < 0: free */
} slot;

typedef struct queue {
    tl_base         *base;
    const tl_job    *job;
    tl_piece_fn      fn;
    const tl_pieces *pieces;
    tl_crew         *crew;
    const tl_target *target;
    const char      *stage;
    const int64_t   *place;             /* of each piece in C, when known     */
    int64_t          step, count;       /* pieces taken: 0, step, 2 step, ... */
    slot            *slots;             /* SLOTS a thread                     */
    bool             staged;
    bool             fresh;             /* C's pages are new: cleared, and so cached, as they are written */
    atomic_llong     next;
    atomic_llong    *length;            /* of each piece, -1 before it is known */
    int64_t         *offset;            /* count + 1; valid up to `known`       */
    atomic_llong     known;
    atomic_flag      adding;
} queue;

/* ---- copies that leave the cache alone */

static void copy_out(void *to, const void *from, size_t bytes, bool stream)
{
#if defined(__SSE2__)
    char *t = to;
    const char *f = from;
    size_t head = (size_t)(-(uintptr_t)t & 15);
    if (stream && bytes >= 256) {
        memcpy(t, f, head);
        t += head, f += head, bytes -= head;
        for (; bytes >= 64; t += 64, f += 64, bytes -= 64) {
            __m128i x[4];
            for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128((const __m128i *)(const void *)f + i);
            for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)(void *)t + i, x[i]);
        }
        memcpy(t, f, bytes);
        return;
    }
#else
    (void)stream;
#endif
    memcpy(to, from, bytes);
}

static void put_row_ends(const tl_target *c, const tl_piece *piece, int64_t offset, const int64_t *row_end)
{
    if (!c->ptr) return;
    if (piece->more) return;
    int64_t rows = piece->row1 - piece->row0, at = piece->row0 - c->row0 + 1;
    if (c->ptr_type == TULLE_I32) {
        int32_t *ptr = (int32_t *)c->ptr + at;
        for (int64_t i = 0; i < rows; i++) ptr[i] = (int32_t)(offset + row_end[i]);
    } else {
        int64_t *ptr = (int64_t *)c->ptr + at;
        for (int64_t i = 0; i < rows; i++) ptr[i] = offset + row_end[i];
    }
}

/* ---- order */

/* Extends the known offsets over all pieces whose length has been published. */
static void add_lengths(queue *q)
{
    int64_t p = atomic_load_explicit(&q->known, memory_order_acquire);
    while (p < q->count && atomic_load_explicit(&q->length[p], memory_order_acquire) >= 0) {
        if (atomic_flag_test_and_set_explicit(&q->adding, memory_order_acquire)) return;
        p = atomic_load_explicit(&q->known, memory_order_acquire);
        for (; p < q->count; p++) {
            int64_t n = atomic_load_explicit(&q->length[p], memory_order_acquire);
            if (n < 0) break;
            q->offset[p + 1] = q->offset[p] + n;
        }
        atomic_store_explicit(&q->known, p, memory_order_release);
        atomic_flag_clear_explicit(&q->adding, memory_order_release);
    }
}

/* Copies to C.  A slot is copied, and a huge page cleared, in 0.1 ms each.  If the thread works much longer
 * than that on new memory, the system had to get a huge page back from the host of a virtual machine, and the
 * rest of C gets small pages.  CPU time, because a thread that waits for the processor says nothing about
 * pages. */
static void copy_to_c(queue *q, void *array, int64_t offset, const void *from, int64_t count, size_t size)
{
    static const double slow = 1e-3;
    double start = q->fresh ? tl_cpu_now() : 0;
    copy_out((char *)array + (size_t)offset * size, from, (size_t)count * size, !q->fresh);
    if (q->fresh && tl_cpu_now() - start > slow) tl_small_pages(array, (uint64_t)(offset + count) * size);
}

/* Writes a slot to its place if that is known. */
static bool flush(queue *q, slot *s)
{
    const tl_target *c = q->target;
    if (s->piece > atomic_load_explicit(&q->known, memory_order_acquire)) return false;
    int64_t offset = q->offset[s->piece];
    if (c->col) copy_to_c(q, c->col, offset, s->col, s->count, c->index);
    if (c->val) copy_to_c(q, c->val, offset, s->val, s->count, c->value);
    put_row_ends(c, &q->pieces->piece[s->piece * q->step], offset, s->row_end);
    s->piece = -1;
    return true;
}

static bool stopped(queue *q)
{
    return atomic_load_explicit(&q->base->cancelled, memory_order_relaxed) != 0;
}

/* The oldest full slot, or NULL. */
static slot *oldest(slot *slots)
{
    slot *old = NULL;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].piece >= 0 && (!old || slots[i].piece < old->piece)) old = &slots[i];
    return old;
}

static slot *free_slot(slot *slots)
{
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].piece < 0) return &slots[i];
    return NULL;
}

static void wait_for(queue *q, slot *s)
{
    for (int spins = 0; !stopped(q) && !flush(q, s); spins++) {
        add_lengths(q);
        if (spins < 64) tl_pause();
        else tl_yield();
    }
}

static bool report(queue *q, int thread, int64_t piece, double *last)
{
    if (thread == 0 && q->base->progress) {
        double now = tl_now();
        if (now - *last > 0.05 || *last == 0) {
            tl_progress(q->base, q->stage, (double)piece / (double)q->count);
            *last = now;
        }
    }
    return stopped(q);
}

static void work_staged(queue *q, int thread)
{
    tl_scratch *scratch = tl_crew_enter(q->crew, thread);
    slot *slots = q->slots + thread * SLOTS;
    double last = 0;
    for (;;) {
        int64_t p = atomic_fetch_add(&q->next, 1);
        if (p >= q->count || report(q, thread, p, &last)) break;
        slot *s = free_slot(slots);
        if (!s) wait_for(q, s = oldest(slots));
        if (stopped(q)) break;
        s->count = q->fn(q->job, scratch, &q->pieces->piece[p * q->step], s->col, s->val, s->row_end);
        s->piece = p;
        atomic_store_explicit(&q->length[p], s->count, memory_order_release);
        add_lengths(q);
        while ((s = oldest(slots)) && flush(q, s)) {}
    }
    for (slot *s; !stopped(q) && (s = oldest(slots));) wait_for(q, s);
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* One thread, or counting only, or places known: no slots. */
static void work_straight(queue *q, int thread)
{
    tl_scratch *scratch = tl_crew_enter(q->crew, thread);
    const tl_target *c = q->target;
    double last = 0;
    for (;;) {
        int64_t p = atomic_fetch_add(&q->next, 1);
        if (p >= q->count || report(q, thread, p, &last)) break;
        const tl_piece *piece = &q->pieces->piece[p * q->step];
        int64_t offset = !c->col ? 0 : q->place ? q->place[p] : q->offset[p];
        int64_t n = q->fn(q->job, scratch, piece, c->col ? (char *)c->col + (size_t)offset * c->index : NULL,
                          c->val ? (char *)c->val + (size_t)offset * c->value : NULL, scratch->row_end);
        atomic_store_explicit(&q->length[p], n, memory_order_release);
        if (!c->col) continue;
        if (!q->place) q->offset[p + 1] = offset + n;
        put_row_ends(c, piece, offset, scratch->row_end);
    }
}

static void work(void *arg, int thread, int threads)
{
    queue *q = arg;
    (void)threads;
    if (q->staged) work_staged(q, thread);
    else work_straight(q, thread);
}

static size_t rounded(int64_t count, size_t size)
{
    return ((size_t)count * size + 63) & ~(size_t)63;
}

/* Bytes of a slot's columns, values and row ends. */
typedef struct slot_size { size_t col, val, rows; } slot_size;

static slot_size size_of_slot(const tl_pieces *pieces, size_t index, size_t value)
{
    int64_t entries = pieces->max_entries + TL_SLACK;
    return (slot_size){rounded(entries, index), rounded(entries, value),
                       rounded(pieces->max_rows, sizeof(int64_t))};
}

static size_t bytes_of_slots(slot_size size, int n)
{
    return rounded(n, sizeof(slot)) + (size_t)n * (size.col + size.val + size.rows);
}

uint64_t tl_queue_bytes(const tl_pieces *pieces, int threads, size_t index, size_t value)
{
    uint64_t each = sizeof(int64_t) + sizeof(atomic_llong);
    uint64_t slots = threads ? bytes_of_slots(size_of_slot(pieces, index, value), threads * SLOTS) : 0;
    return ((uint64_t)pieces->count + 1) * each + slots;
}

/* All slots in one block: it is large enough to be kept for the next product. */
static tulle_status make_slots(tl_base *b, queue *q)
{
    tulle_status status = TULLE_OK;
    int n = q->crew->threads * SLOTS;
    slot_size size = size_of_slot(q->pieces, q->target->index, q->target->val ? q->target->value : 0);
    TRY(tl_alloc(b, &q->slots, 1, bytes_of_slots(size, n), "slots of the queue"));
    char *at = (char *)q->slots + rounded(n, sizeof *q->slots);
    for (int i = 0; i < n; i++, at += size.col + size.val + size.rows)
        q->slots[i] = (slot){.piece = -1, .col = at, .val = size.val ? at + size.col : NULL,
                             .row_end = (int64_t *)(void *)(at + size.col + size.val)};
done:
    return status;
}

tulle_status tl_queue_run(tl_base *b, const tl_job *job, tl_piece_fn fn, const tl_pieces *pieces,
                          tl_crew *crew, const tl_target *target, int64_t step, int64_t *place,
                          const char *stage, int64_t *nnz)
{
    tulle_status status = TULLE_OK;
    queue q = {.base = b, .job = job, .fn = fn, .pieces = pieces, .crew = crew, .target = target,
               .stage = stage, .step = step, .count = (pieces->count + step - 1) / step,
               .adding = ATOMIC_FLAG_INIT};
    q.place = target->col ? place : NULL;
    q.staged = target->col && crew->threads > 1 && !place;
    q.fresh = target->col && tl_is_zero(target->col);
    TRY(tl_alloc(b, &q.offset, q.count + 1, sizeof *q.offset, "offsets of the pieces"));
    TRY(tl_alloc(b, &q.length, q.count + 1, sizeof *q.length, "lengths of the pieces"));
    for (int64_t i = 0; i < q.count; i++) atomic_init(&q.length[i], -1);
    q.offset[0] = 0;
    if (q.staged) TRY(make_slots(b, &q));
    if (target->ptr) tl_put(target->ptr, target->ptr_type, 0, 0);
    atomic_store(&b->cancelled, 0);
    if (!tl_progress(b, stage, 0)) tl_team_run(b->team, crew->threads, work, &q);
    if (atomic_load(&b->cancelled)) {
        status = tl_fail(b, TULLE_ECANCEL, "the product was cancelled while it was at \"%s\"", stage);
        goto done;
    }
    *nnz = 0;
    for (int64_t i = 0; i < q.count; i++) {
        if (place && !target->col) place[i] = *nnz;
        *nnz += atomic_load(&q.length[i]);
    }
done:
    tl_free(b, q.slots);
    tl_free(b, q.length);
    tl_free(b, q.offset);
    return status;
}
