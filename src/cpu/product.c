/* SPDX-License-Identifier: MIT
 *
 * product.c - C = A*B on the CPU, in one pass where possible, otherwise in two.
 *
 * One pass: address space is reserved for the upper bound of C, which is filled from the front (queue.c);
 * only the filled part takes memory.  Two passes are used when the bound exceeds the memory limit, when it
 * does not fit the index width that the caller fixed, when memory comes from hooks, or when rows are so alike
 * that counting them costs less than joining the results of several threads: the symbolic kernels count
 * first, then every piece is computed directly into its place in arrays of exactly that size. */
#include "cpu/cpu.h"
#include <inttypes.h>
#include <string.h>

enum { PIECE_PRODUCTS = 16 << 10, PIECE_ROWS = 2048, PIECE_ENTRIES = 128 << 10, PIECES_MAX = 1 << 20 };

int tl_cpu_threads(const tl_base *b, int wanted, int64_t products)
{
    int team = tl_team_size(b->team);
    if (wanted <= 0 || wanted > team) wanted = team;
    return products < 4 * PIECE_PRODUCTS ? 1 : wanted;
}

tulle_status tl_cpu_pieces(tl_base *b, const tl_request *r, bool lean, tl_pieces *pieces)
{
    /* a row is heavy when it alone is a sixteenth of a thread's work */
    int64_t products = r->profile->total / PIECES_MAX,
            part = r->profile->total / (16 * (r->threads > 0 ? r->threads : 1));
    /* Long runs of similar rows are kept together.  So are rows of many products with repeated patterns:
     * consecutive ones need many of the same rows of B, which each thread would have to read again. */
    bool together = r->profile->a_like
                    || (r->profile->repeats && r->profile->total / 128 > r->A->rows);
    int64_t least = together ? 4 * PIECE_PRODUCTS : PIECE_PRODUCTS;
    if (products < least) products = least;
    tl_piece_limits limits = {.products = products, .rows = PIECE_ROWS,
                              .heavy = part > 8 * products ? part : 8 * products,
                              .entries = PIECE_ENTRIES, .a_row = lean ? TL_LEAN_STRETCHES : TL_STRETCHES};
    tulle_status status = tl_pieces_make(b, r->A, r->B, r->profile, &limits, r->row0, r->row1, pieces);
    pieces->lean = lean;
    return status;
}

static int64_t products_of(const tl_request *r)
{
    if (r->row0 == 0 && r->row1 == r->A->rows) return r->profile->total;
    int64_t sum = 0;
    for (int64_t i = r->row0; i < r->row1; i++) sum += r->profile->products[i];
    return sum;
}

/* As tl_pieces_make() lets the list grow; while it grows, the old and the new list exist together. */
uint64_t tl_cpu_pieces_bytes(const tl_request *r)
{
    enum { ROOM = 64 };
    const int64_t pieces = products_of(r) / PIECE_PRODUCTS + (r->row1 - r->row0) / PIECE_ROWS + 1;
    int64_t before = 0, room = ROOM;
    for (; room < pieces; room = 2 * room + ROOM) before = room;
    return tl_bytes_of((uint64_t)(before + room), sizeof(tl_piece));
}

/* Row pointers were written with 64 bits because of the upper bound, but 32 bits turn out to suffice. */
static void narrow_pointers(tulle_matrix *C)
{
    int64_t *wide = C->row_ptr;
    int32_t *narrow = C->row_ptr;
    for (int64_t i = 0; i <= C->view.rows; i++) {
        int64_t x = wide[i];
        memcpy(narrow + i, &(int32_t){(int32_t)x}, sizeof *narrow);
    }
    C->view.ptr_type = TULLE_I32;
}

/* Allocates columns and values for exactly this many entries. */
static tulle_status make_room(tl_base *b, const tl_request *r, int64_t nnz, size_t index, tulle_matrix *C)
{
    tulle_status status = TULLE_OK;
    size_t value = tl_type_size(r->B->val_type);
    if (tl_reserve(b, &C->col_idx, nnz + TL_SLACK, index) != TULLE_OK)
        TRY(tl_alloc(b, &C->col_idx, nnz + TL_SLACK, index, "column indices of C"));
    if (r->values && tl_reserve(b, &C->values, nnz + TL_SLACK, value) != TULLE_OK)
        TRY(tl_alloc(b, &C->values, nnz + TL_SLACK, value, "values of C"));
done:
    return status;
}

/* Converts the columns to the requested width, and completes the view of C. */
static void finish(tl_base *b, const tl_request *r, tl_road *road, int64_t nnz)
{
    const tulle_csr *B = r->B;
    tulle_matrix *C = road->C;
    tulle_index idx_type = r->idx_type ? (tulle_index)r->idx_type : B->idx_type;
    size_t then = tl_index_size(idx_type), now = tl_index_size(B->idx_type);
    tl_commit(b, C->col_idx, (uint64_t)nnz * (then > now ? then : now));
    if (C->values) tl_commit(b, C->values, (uint64_t)nnz * tl_type_size(B->val_type));
    tl_index_resize(b, C->col_idx, B->idx_type, idx_type, nnz);
    tl_shrink(b, C->col_idx, (uint64_t)nnz * then);
    C->view = (tulle_csr){.rows = r->row1 - r->row0, .cols = B->cols, .nnz = nnz, .row_ptr = C->row_ptr,
                          .col_idx = C->col_idx, .values = C->values, .ptr_type = road->ptr_type,
                          .idx_type = idx_type, .val_type = B->val_type};
    if (!r->ptr_type && road->ptr_type == TULLE_I64 && tl_fits(TULLE_I32, nnz)) narrow_pointers(C);
}

tulle_status tl_cpu_multiply(tl_base *b, const tl_request *r, tulle_matrix **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_road road;
    tl_job job = tl_job_make(r->A, r->B, r->recipe, r->profile);
    tl_kernels kernels = tl_kernels_for(r->B->val_type, r->B->idx_type);
    size_t index = tl_index_size(r->B->idx_type), value = tl_type_size(r->B->val_type);
    int64_t nnz = 0;
    double start = tl_now();
    *out = NULL;
    job.drop_zeros = r->drop_zeros;
    status = tl_road_find(b, r, &job, &road);
    const char *at_most = status == TULLE_ELIMIT && road.bound ? "at most " : "";
    if (status == TULLE_ELIMIT && r->uncounted)
        return tl_fail(b, status, "rows %" PRId64 " to %" PRId64 " do not fit a limit of %" PRIu64 " bytes",
                       r->row0, r->row1 - 1, r->memory_limit);
    if (status == TULLE_ELIMIT)
        return tl_fail(b, status,
                       "the product needs %s%" PRIu64 " bytes (C has %s%" PRId64 " entries, %" PRIu64
                       " bytes), the limit is %" PRIu64,
                       at_most, road.least, at_most, road.nnz, tl_cpu_c_bytes(r, road.nnz, road.ptr_type),
                       r->memory_limit);
    if (status != TULLE_OK) return status;
    tulle_matrix *C = road.C;
    if (road.exact) {
        TRY(make_room(b, r, road.nnz, r->idx_type == TULLE_I64 ? sizeof(int64_t) : index, C));
        stats->sec_symbolic += tl_now() - start;
        start = tl_now();
    }
    TRY(tl_alloc(b, &C->row_ptr, r->row1 - r->row0 + 1, tl_index_size(road.ptr_type), "row pointers of C"));

    job.exact = road.exact && !r->drop_zeros;
    tl_target target = {.ptr = C->row_ptr, .col = C->col_idx, .val = C->values, .ptr_type = road.ptr_type,
                        .index = index, .value = value, .row0 = r->row0};
    TRY(tl_queue_run(b, &job, r->values ? kernels.fused : kernels.symbolic, &road.pieces, &road.crew, &target,
                     1, job.exact ? road.place : NULL, r->values ? "numeric" : "symbolic", &nnz));
    *(r->values ? &stats->sec_numeric : &stats->sec_symbolic) += tl_now() - start;

    start = tl_now();
    finish(b, r, &road, nnz);
    tl_crew_shares(&road.crew, products_of(r), stats);
    stats->threads = road.crew.threads;
    stats->isa = kernels.isa;
    stats->c_nnz = nnz;
    stats->sec_finish += tl_now() - start;
    *out = C;
    road.C = NULL;
done:
    tl_road_done(b, &road);
    return status;
}

tulle_status tl_cpu_count(tl_base *b, const tl_request *r, int64_t step, int64_t *nnz, int64_t *seen,
                          tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_pieces pieces = {0};
    tl_crew crew = {0};
    tl_job job = tl_job_make(r->A, r->B, r->recipe, r->profile);
    tl_target count = {0};
    int threads = tl_cpu_threads(b, r->threads, r->profile->total / step);
    TRY(tl_cpu_pieces(b, r, false, &pieces));
    TRY(tl_crew_make(b, r->B, r->profile, &pieces, threads, &crew));
    TRY(tl_queue_run(b, &job, tl_kernels_for(TULLE_F64, r->B->idx_type).symbolic, &pieces, &crew, &count,
                     step, NULL, "estimate", nnz));
    *seen = 0;
    for (int64_t i = 0; i < pieces.count; i += step) {
        const tl_piece *p = &pieces.piece[i];
        int64_t sum = 0;
        for (int64_t k = p->row0; k < p->row1; k++) sum += r->profile->products[k];
        bool cut = p->lo < p->hi && sum > PIECE_PRODUCTS;           /* some columns of a heavy row */
        *seen += cut ? PIECE_PRODUCTS : sum;
    }
    tl_crew_shares(&crew, *seen, stats);
done:
    tl_crew_done(b, &crew);
    tl_pieces_done(b, &pieces);
    return status;
}
