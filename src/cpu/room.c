/* SPDX-License-Identifier: MIT
 *
 * room.c - predicts the memory of a product on the CPU, and chooses a way ("road") that its limit allows.
 *
 * What is already allocated (copies of operands, profile, pieces) is measured; what will be allocated is
 * predicted by functions of the files that do so.  The roads are tried in order, fastest first:
 *
 *   one pass, all threads     if C with its upper bound of entries and the slots of the queue fit
 *   two passes                symbolic with as many threads as fit, then numeric with as many as fit beside C
 *   two passes, lean          one thread, with a small workspace: long rows are computed in ranges of columns
 *
 * If none fits, the error message names the smallest sufficient limit.  To determine it, the entries of C are
 * counted even if the limit does not allow for that: one lean thread needs only some hundred KiB.  They are
 * not counted if already the lower bound of C exceeds the limit, and is exact or counting would take too
 * long: then the message names a limit for the upper bound of C.  Nor are they counted for one of several
 * devices that has a share of the limit, because other devices will take over its rows. */
#include "cpu/cpu.h"
#include <inttypes.h>
#include <string.h>

uint64_t tl_cpu_workspace(const tl_request *r)
{
    uint64_t threads = (uint64_t)(r->threads > 0 ? r->threads : 1);
    return tl_bytes_sum(threads * (32u << 20), tl_bytes_of((uint64_t)r->A->rows, 16));
}

int64_t tl_cpu_upper(const tl_request *r)
{
    if (r->row0 == 0 && r->row1 == r->A->rows) return r->profile->upper;
    int64_t sum = 0;
    for (int64_t i = r->row0; i < r->row1; i++) {
        int64_t n = r->profile->products[i];
        sum += n < r->B->cols ? n : r->B->cols;
    }
    return sum;
}

/* Columns of another width than B's are first computed in B's, in the same array. */
uint64_t tl_cpu_c_bytes(const tl_request *r, int64_t nnz, tulle_index ptr_type)
{
    uint64_t index = tl_index_size(r->B->idx_type);
    if (r->idx_type) index = tl_bytes_max(index, tl_index_size((tulle_index)r->idx_type));
    uint64_t entry = index + (r->values ? tl_type_size(r->B->val_type) : 0);
    return tl_bytes_sum(tl_bytes_of((uint64_t)nnz + TL_SLACK, entry),
                        (uint64_t)(r->row1 - r->row0 + 1) * tl_index_size(ptr_type));
}

uint64_t tl_cpu_base(const tl_base *b, const tl_request *r)
{
    return tl_bytes_sum(atomic_load(&b->held) - r->held, r->later);
}

uint64_t tl_cpu_need(const tl_base *b, const tl_request *r, const tl_pieces *pieces, uint64_t base,
                     int threads, bool slots, int64_t nnz, tulle_index ptr_type)
{
    size_t index = tl_index_size(r->B->idx_type), value = r->values ? tl_type_size(r->B->val_type) : 0;
    uint64_t crew = tl_crew_bytes(r->B, r->profile, pieces, threads);
    uint64_t queue = tl_queue_bytes(pieces, slots && threads > 1 ? threads : 0, index, value);
    uint64_t place = ((uint64_t)pieces->count + 1) * sizeof(int64_t);
    uint64_t work = tl_bytes_sum(base, crew + queue + place + sizeof(tulle_matrix));
    return tl_bytes_max(tl_bytes_sum(work, tl_cpu_c_bytes(r, nnz, ptr_type)),
                        atomic_load(&b->peak) - r->held);
}

/* ---- roads */

typedef struct search {
    tl_base          *b;
    const tl_request *r;
    const tl_job     *job;
    tl_road          *road;
    uint64_t          base;
    int               most;             /* threads                                  */
} search;

static tulle_index ptr_type_for(const tl_request *r, int64_t nnz)
{
    return r->ptr_type ? (tulle_index)r->ptr_type : tl_index_for(nnz);
}

static uint64_t need(const search *s, int threads, bool slots, int64_t nnz)
{
    return tl_cpu_need(s->b, s->r, &s->road->pieces, s->base, threads, slots, nnz, ptr_type_for(s->r, nnz));
}

/* The largest number of threads <= most whose workspaces fit beside nnz entries of C; 0: none. */
static int threads_beside(const search *s, int most, int64_t nnz)
{
    int threads = most;
    while (threads > 0 && need(s, threads, s->r->drop_zeros, nnz) > s->r->memory_limit) threads--;
    return threads;
}

/* In a stencil one count serves many rows.  If rows are short, counting first then costs less than the copy
 * of C that one pass needs. */
static bool cheap_to_count(const tl_job *job, const tl_profile *p, int64_t rows)
{
    return job->stencils && p->a_shifted > rows / 32 * 31 && p->total / rows <= 128;
}

/* Reserves address space for the upper bound of C, if this and everything else fits. */
static bool one_pass(const search *s)
{
    const tl_request *r = s->r;
    tl_road *road = s->road;
    int64_t upper = tl_cpu_upper(r);
    tulle_index ptr_type = ptr_type_for(r, upper);
    size_t index = tl_index_size(r->B->idx_type), value = tl_type_size(r->B->val_type);
    if (r->idx_type == TULLE_I64) index = sizeof(int64_t);
    if (need(s, s->most, true, upper) > r->memory_limit || !tl_fits(ptr_type, upper)) return false;
    if (s->most > 1 && cheap_to_count(s->job, r->profile, r->A->rows)) return false;
    if (tl_reserve(s->b, &road->C->col_idx, upper + TL_SLACK, index) != TULLE_OK) return false;
    if (r->values && tl_reserve(s->b, &road->C->values, upper + TL_SLACK, value) != TULLE_OK) {
        tl_free(s->b, road->C->col_idx);
        road->C->col_idx = NULL;
        return false;
    }
    road->nnz = upper;
    road->ptr_type = ptr_type;
    return true;
}

static void forget_places(const search *s)
{
    tl_free(s->b, s->road->place);
    s->road->place = NULL;
    tl_crew_done(s->b, &s->road->crew);
}

/* Counts the entries of C: sets road->nnz, and in road->place the beginning of each piece. */
static tulle_status count(const search *s, int threads)
{
    tulle_status status = TULLE_OK;
    tl_road *road = s->road;
    const tl_request *r = s->r;
    tl_target nowhere = {0};
    tl_piece_fn symbolic = tl_kernels_for(r->B->val_type, r->B->idx_type).symbolic;
    TRY(tl_crew_make(s->b, r->B, r->profile, &road->pieces, threads, &road->crew));
    TRY(tl_alloc(s->b, &road->place, road->pieces.count + 1, sizeof *road->place, "places of the pieces"));
    TRY(tl_queue_run(s->b, s->job, symbolic, &road->pieces, &road->crew, &nowhere, 1, road->place, "symbolic",
                     &road->nnz));
    road->exact = true;
    road->ptr_type = ptr_type_for(r, road->nnz);
    if (!tl_fits(road->ptr_type, road->nnz))
        status = tl_fail(s->b, TULLE_EOVERFLOW, "C has %" PRId64 " entries, more than 32-bit row pointers "
                         "can count (%" PRId64 "); ask for 64 bit", road->nnz, (int64_t)TULLE_I32_LIMIT);
done:
    return status;
}

enum { COUNT_SECONDS = 4, COUNT_RATE = 1 << 30 };      /* products per second that one thread counts, about */

/* Whether even the lower bound of C exceeds the limit, and counting would tell nothing new or take too
 * long. */
static bool hopeless(const search *s)
{
    const tl_request *r = s->r;
    const tl_profile *p = r->profile;
    if (r->drop_zeros || r->row0 != 0 || r->row1 != r->A->rows) return false;
    uint64_t least = tl_bytes_sum(s->base, tl_cpu_c_bytes(r, p->lower, ptr_type_for(r, p->lower)));
    if (least <= r->memory_limit) return false;
    return p->lower == p->upper || p->total / COUNT_RATE >= COUNT_SECONDS;
}

/* Tries two passes with the current pieces: sets *found, or in road->least the smallest limit for them. */
static tulle_status two_passes(const search *s, bool last, bool *found)
{
    tulle_status status = TULLE_OK;
    tl_road *road = s->road;
    if (!road->exact && hopeless(s)) {
        road->exact = true;
        road->bound = s->r->profile->lower < s->r->profile->upper;
        road->nnz = s->r->profile->upper;
        road->ptr_type = ptr_type_for(s->r, road->nnz);
    }
    int threads = threads_beside(s, s->most, road->exact ? road->nnz : 0);
    if (threads == 0 && !road->exact && last && !s->r->uncounted) threads = 1;
    if (threads > 0) {
        TRY(count(s, threads));
        threads = threads_beside(s, threads, road->nnz);
        if (threads > 0) TRY(tl_crew_cut(s->b, &road->crew, threads));
        else forget_places(s);
    }
    *found = threads > 0;
    if (road->exact) {
        uint64_t least = need(s, 1, false, road->nnz);
        if (!road->least || least < road->least) road->least = least;
    }
done:
    return status;
}

/* Updates road->least with what one thread with the full workspace would need, now that nnz is known. */
static tulle_status least_of_plain(search *s)
{
    tulle_status status = TULLE_OK;
    tl_pieces_done(s->b, &s->road->pieces);
    TRY(tl_cpu_pieces(s->b, s->r, false, &s->road->pieces));
    s->base = tl_cpu_base(s->b, s->r);
    uint64_t least = need(s, 1, false, s->road->nnz);
    if (least < s->road->least) s->road->least = least;
done:
    return status;
}

tulle_status tl_road_find(tl_base *b, const tl_request *r, const tl_job *job, tl_road *road)
{
    tulle_status status = TULLE_OK;
    search s = {.b = b, .r = r, .job = job, .road = road};
    bool found = false;
    memset(road, 0, sizeof *road);
    if (r->uncounted && tl_bytes_sum(tl_cpu_base(b, r), tl_cpu_pieces_bytes(r)) > r->memory_limit)
        return TULLE_ELIMIT;
    TRY(tl_calloc(b, &road->C, 1, sizeof *road->C, "a matrix"));
    for (int lean = 0; lean < 2 && !found; lean++) {
        tl_pieces_done(b, &road->pieces);
        TRY(tl_cpu_pieces(b, r, lean, &road->pieces));
        s.base = tl_cpu_base(b, r);
        s.most = lean ? 1 : tl_cpu_threads(b, r->threads, r->profile->total);
        found = !road->exact && one_pass(&s);
        if (found) TRY(tl_crew_make(b, r->B, r->profile, &road->pieces, s.most, &road->crew));
        else TRY(two_passes(&s, lean, &found));
    }
    if (!found) {
        if (!r->uncounted) TRY(least_of_plain(&s));
        status = TULLE_ELIMIT;
    }
done:
    if (status != TULLE_OK) tl_road_done(b, road);
    return status;
}

void tl_road_done(tl_base *b, tl_road *road)
{
    tl_free(b, road->place);
    tl_matrix_free(b, road->C);
    tl_crew_done(b, &road->crew);
    tl_pieces_done(b, &road->pieces);
    road->place = NULL;
    road->C = NULL;
}

tulle_status tl_cpu_least(tl_base *b, const tl_request *r, uint64_t *bytes)
{
    tl_request none = *r;
    tl_road road;
    tl_job job = tl_job_make(r->A, r->B, r->recipe, r->profile);
    none.memory_limit = 0;
    none.uncounted = false;
    tulle_status status = tl_road_find(b, &none, &job, &road);
    if (status != TULLE_ELIMIT) return status;
    *bytes = road.least;
    return TULLE_OK;
}
