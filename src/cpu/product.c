/* SPDX-License-Identifier: MIT
 *
 * product.c - C = A*B on the CPU, in one pass where it can be, in two where it must.
 *
 * One pass: C gets address space for its upper bound and is filled from the front (queue.c); only what
 * is filled is paid for.  Two passes, when the bound is beyond the memory limit, when the caller fixed
 * a width that the bound does not fit, when memory comes from hooks, or when rows are so alike that
 * counting them costs less than joining the results of several threads: the symbolic kernels count
 * first, then every piece is computed straight into its place in arrays of exactly that size. */
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

tulle_status tl_cpu_pieces(tl_base *b, const tl_request *r, tl_pieces *pieces)
{
    /* a row is heavy when it alone would be a sixteenth of a thread's work */
    int64_t products = r->profile->total / PIECES_MAX, part = r->profile->total / (16 * (r->threads > 0 ? r->threads : 1));
    int64_t least = r->profile->a_like ? 4 * PIECE_PRODUCTS : PIECE_PRODUCTS;       /* long runs of rows alike */
    if (products < least) products = least;
    tl_piece_limits limits = {.products = products, .rows = PIECE_ROWS,
                              .heavy = part > 8 * products ? part : 8 * products,
                              .entries = PIECE_ENTRIES, .a_row = TL_STRETCHES};
    return tl_pieces_make(b, r->A, r->B, r->profile, &limits, r->row0, r->row1, pieces);
}

uint64_t tl_cpu_workspace(const tl_request *r)
{
    uint64_t threads = (uint64_t)(r->threads > 0 ? r->threads : 1);
    uint64_t cols = (uint64_t)r->B->cols, columns = cols < TL_SLOTS ? cols : TL_SLOTS;
    uint64_t each = (columns + 512) * (tl_type_size(r->B->val_type) + 1) * (cols < 1 << 16 ? 4 : 1) + (4 << 20);
    if (each > 32u << 20) each = 32u << 20;
    return threads * each + 16 * (uint64_t)r->A->rows + r->copies;
}

static uint64_t c_bytes(const tl_request *r, int64_t nnz, tulle_index ptr_type)
{
    uint64_t entry = tl_index_size(r->B->idx_type) + (r->values ? tl_type_size(r->B->val_type) : 0);
    return (uint64_t)nnz * entry + (uint64_t)(r->row1 - r->row0 + 1) * tl_index_size(ptr_type);
}

static int64_t upper_bound(const tl_request *r)
{
    if (r->row0 == 0 && r->row1 == r->A->rows) return r->profile->upper;
    int64_t sum = 0;
    for (int64_t i = r->row0; i < r->row1; i++) {
        int64_t n = r->profile->products[i];
        sum += n < r->B->cols ? n : r->B->cols;
    }
    return sum;
}

static int64_t products_of(const tl_request *r)
{
    if (r->row0 == 0 && r->row1 == r->A->rows) return r->profile->total;
    int64_t sum = 0;
    for (int64_t i = r->row0; i < r->row1; i++) sum += r->profile->products[i];
    return sum;
}

/* Row pointers were written as 64 bit because the bound asked for it; they turn out to fit. */
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

/* Stencils are counted once for many rows; where rows are short, that costs less than a copy of C. */
static bool cheap_to_count(const tl_job *job, const tl_profile *p, int64_t rows)
{
    return job->stencils && p->a_shifted > rows / 32 * 31 && p->total / rows <= 128;
}

tulle_status tl_cpu_multiply(tl_base *b, const tl_request *r, tulle_matrix **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = r->A, *B = r->B;
    int64_t rows = r->row1 - r->row0, room = upper_bound(r), nnz = 0;
    tl_pieces pieces = {0};
    tl_crew crew = {0};
    tulle_matrix *C = NULL;
    int64_t *place = NULL;
    tl_job job = tl_job_make(A, B, r->recipe, r->profile);
    tl_kernels kernels = tl_kernels_for(B->val_type, B->idx_type);
    int threads = tl_cpu_threads(b, r->threads, r->profile->total);
    double start = tl_now();
    *out = NULL;
    job.drop_zeros = r->drop_zeros;

    TRY(tl_cpu_pieces(b, r, &pieces));
    TRY(tl_crew_make(b, B, r->profile, &pieces, threads, &crew));
    TRY(tl_calloc(b, &C, 1, sizeof *C, "a matrix"));

    /* one pass or two? */
    tulle_index ptr_type = r->ptr_type ? (tulle_index)r->ptr_type : tl_index_for(room);
    uint64_t workspace = tl_cpu_workspace(r);
    bool exact = c_bytes(r, room, ptr_type) + workspace > r->memory_limit || !tl_fits(ptr_type, room);
    exact = exact || (threads > 1 && cheap_to_count(&job, r->profile, A->rows));
    size_t index = tl_index_size(B->idx_type), value = tl_type_size(B->val_type);
    exact = exact || tl_reserve(b, &C->col_idx, room + TL_SLACK, index) != TULLE_OK;
    exact = exact || (r->values && tl_reserve(b, &C->values, room + TL_SLACK, value) != TULLE_OK);
    if (exact) {
        tl_target count = {0};
        TRY(tl_alloc(b, &place, pieces.count + 1, sizeof *place, "places of the pieces"));
        TRY(tl_queue_run(b, &job, kernels.symbolic, &pieces, &crew, &count, 1, place, "symbolic", &room));
        if (r->ptr_type && !tl_fits(ptr_type, room)) {
            status = tl_fail(b, TULLE_EOVERFLOW, "C has %" PRId64 " entries, more than 32-bit row pointers "
                             "can count (%" PRId64 "); ask for 64 bit", room, (int64_t)TULLE_I32_LIMIT);
            goto done;
        }
        if (!r->ptr_type) ptr_type = tl_index_for(room);
        uint64_t need = c_bytes(r, room, ptr_type) + workspace;
        if (need > r->memory_limit) {
            status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes (C has %" PRId64
                             " entries, %" PRIu64 " bytes; workspace %" PRIu64 "), the limit is %" PRIu64,
                             need, room, need - workspace, workspace, r->memory_limit);
            goto done;
        }
        tl_free(b, C->col_idx);
        C->col_idx = NULL;
        if (tl_reserve(b, &C->col_idx, room + TL_SLACK, index) != TULLE_OK)
            TRY(tl_alloc(b, &C->col_idx, room + TL_SLACK, index, "column indices of C"));
        if (r->values && tl_reserve(b, &C->values, room + TL_SLACK, value) != TULLE_OK)
            TRY(tl_alloc(b, &C->values, room + TL_SLACK, value, "values of C"));
        stats->sec_symbolic += tl_now() - start;
        start = tl_now();
    }
    TRY(tl_alloc(b, &C->row_ptr, rows + 1, tl_index_size(ptr_type), "row pointers of C"));

    job.exact = place && !r->drop_zeros;
    tl_target target = {.ptr = C->row_ptr, .col = C->col_idx, .val = C->values, .ptr_type = ptr_type,
                        .index = index, .value = value, .row0 = r->row0};
    TRY(tl_queue_run(b, &job, r->values ? kernels.fused : kernels.symbolic, &pieces, &crew, &target, 1,
                     job.exact ? place : NULL, r->values ? "numeric" : "symbolic", &nnz));
    *(r->values ? &stats->sec_numeric : &stats->sec_symbolic) += tl_now() - start;

    start = tl_now();
    tl_commit(b, C->col_idx, (uint64_t)nnz * index);
    if (C->values) tl_commit(b, C->values, (uint64_t)nnz * value);
    C->view = (tulle_csr){.rows = rows, .cols = B->cols, .nnz = nnz, .row_ptr = C->row_ptr,
                          .col_idx = C->col_idx, .values = C->values, .ptr_type = ptr_type,
                          .idx_type = B->idx_type, .val_type = B->val_type};
    if (!r->ptr_type && ptr_type == TULLE_I64 && tl_fits(TULLE_I32, nnz)) narrow_pointers(C);
    tl_crew_shares(&crew, products_of(r), stats);
    stats->threads = threads;
    stats->isa = kernels.isa;
    stats->c_nnz = nnz;
    stats->sec_finish += tl_now() - start;
    *out = C;
    C = NULL;
done:
    tl_free(b, place);
    tl_matrix_free(b, C);
    tl_crew_done(b, &crew);
    tl_pieces_done(b, &pieces);
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
    TRY(tl_cpu_pieces(b, r, &pieces));
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
