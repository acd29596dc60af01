/* SPDX-License-Identifier: MIT
 *
 * product.c - C = A*B: fetches rows of B, then computes one local product on each rank.
 *
 * This is the sparsity-aware product in one dimension: only rows of B that are needed are moved, each once to
 * a rank.  When their lengths are known, their bytes are compared with the memory limit.  If they take more
 * than half of it, each rank processes A in blocks of rows; all ranks take part in as many rounds as the rank
 * with the most blocks, because rows are fetched from all.  Where a grid of ranks moves less (grid.c),
 * summa.c computes the product.
 *
 * See Ballard, Buluc, Demmel, Grigori, Lipshitz, Schwartz, Toledo: Communication optimal parallel
 * multiplication of sparse random matrices, SPAA 2013, and Hong, Buluc: A sparsity-aware distributed-memory
 * algorithm for sparse-sparse matrix multiplication, 2024. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

tulle_status tl_dist_options_check(tulle_dist *d, tulle_status status, const tulle_options *o,
                                   tulle_options *out)
{
    *out = o ? *o : (tulle_options){0};
    if (status == TULLE_OK && out->sort_inputs)
        status = tl_fail(d->b, TULLE_EINVAL,
                         "sort_inputs: rows of a distributed matrix must be sorted; tulle_csr_sort()"
                         " does that, each rank its own");
    if (status == TULLE_OK && out->c_place != TULLE_HOST)
        status = tl_fail(d->b, TULLE_EINVAL, "c_place: a distributed matrix lies in host memory");
    if (status == TULLE_OK) status = tl_op_check(d, out->op_a);
    if (status == TULLE_OK) status = tl_op_check(d, out->op_b);
    tl_same same[] = {{"the options", "op_a", out->op_a}, {"the options", "op_b", out->op_b},
                      {"the options", "c_idx_type", out->c_idx_type},
                      {"the options", "drop_zeros", out->drop_zeros}};
    return tl_same_everywhere(d, status, same, sizeof same / sizeof *same);
}

/* ---- blocks of A's rows */

typedef struct blocks {
    int64_t *start;                     /* first row of each block              */
    int      count, rounds;             /* of this rank; of the rank with most  */
} blocks;

/* Bytes of the rows of B that this row needs in addition to the earlier rows of its block. */
static uint64_t new_bytes(const tulle_csr *A, const tl_fetch *f, int64_t row, int64_t *seen, int64_t block,
                          uint64_t entry)
{
    uint64_t bytes = 0;
    for (int64_t k = tl_row_begin(A, row); k < tl_row_begin(A, row + 1); k++) {
        int64_t at = tl_lists_find(&f->lists, tl_get(A->col_idx, A->idx_type, k));
        if (at < 0 || seen[at] == block) continue;
        seen[at] = block;
        bytes += 24 + (uint64_t)f->length[at] * entry;      /* 24: its row pointer, its number, its length */
    }
    return bytes;
}

/* The memory for rows of B while a block is multiplied: half of the limit.  This rank's own rows (`fixed`)
 * are in memory for every block and may alone take more than that; then fetched rows still get a quarter of
 * what is left, as otherwise every row of A would become a block. */
static uint64_t room_of(uint64_t fixed, uint64_t limit)
{
    uint64_t more = fixed < limit ? fixed + (limit - fixed) / 4 : limit;
    return more > limit / 2 ? more : limit / 2;
}

static tulle_status cut(tulle_dist *d, const tulle_csr *A, const tulle_csr *B, const tl_fetch *f,
                        uint64_t limit, blocks *k)
{
    tulle_status status = TULLE_OK;
    int64_t *seen = NULL;
    uint64_t entry = tl_index_size(B->idx_type) + tl_type_size(B->val_type);
    uint64_t fixed = (uint64_t)f->own_entries * entry
                     + 8 * (uint64_t)(f->lists.own_rows + f->lists.given), held = 0;
    uint64_t room = room_of(fixed, limit);
    TRY(tl_alloc(d->b, &k->start, A->rows + 2, sizeof *k->start, "blocks of rows"));
    k->start[0] = 0;
    k->count = 1;
    k->start[1] = A->rows;
    if (limit == 0 || tl_fetch_bytes(f, A, B, true) <= limit / 2) goto done;
    TRY(tl_alloc(d->b, &seen, f->lists.need, sizeof *seen, "rows seen"));
    memset(seen, 0xff, (size_t)f->lists.need * sizeof *seen);
    k->count = 0;
    for (int64_t i = 0; i < A->rows; i++) {
        uint64_t more = new_bytes(A, f, i, seen, k->count, entry);
        if (i > k->start[k->count] && fixed + held + more > room) {
            k->start[++k->count] = i;
            more = new_bytes(A, f, i, seen, k->count, entry);
            held = 0;
        }
        held += more;
        if (fixed + held > limit)
            TRY(tl_fail(d->b, TULLE_ELIMIT, "row %" PRId64 " of A here needs %" PRIu64
                        " bytes of B, the limit is %" PRIu64
                        " bytes", i, fixed + held, limit));
    }
    k->start[++k->count] = A->rows;
done:
    tl_free(d->b, seen);
    return status;
}

/* ---- one block */

typedef struct rows_of {                /* some rows of a matrix, as a matrix */
    tulle_csr view;
    int64_t  *row_ptr;
} rows_of;

static tulle_status take_rows(tl_base *b, const tulle_csr *A, int64_t first, int64_t end, rows_of *r)
{
    tulle_status status = TULLE_OK;
    *r = (rows_of){.view = *A};
    if (first == 0 && end == A->rows) goto done;
    int64_t begin = tl_row_begin(A, first);
    TRY(tl_alloc(b, &r->row_ptr, end - first + 1, sizeof *r->row_ptr, "row pointers of a block"));
    for (int64_t i = first; i <= end; i++) r->row_ptr[i - first] = tl_row_begin(A, i) - begin;
    r->view.rows = end - first;
    r->view.nnz = r->row_ptr[end - first];
    r->view.row_ptr = r->row_ptr;
    r->view.ptr_type = TULLE_I64;
    if (r->view.nnz > 0) {
        r->view.col_idx = (const char *)A->col_idx + begin * (int64_t)tl_index_size(A->idx_type);
        if (A->values) r->view.values = (const char *)A->values + begin * (int64_t)tl_type_size(A->val_type);
    }
done:
    return status;
}

tulle_status tl_local_product(tulle_dist *d, const tl_fetch *f, const tulle_options *o, uint64_t held,
                              tulle_matrix **C, tl_account *account)
{
    tulle_options local = *o;
    tulle_stats stats;
    char why[TL_ERROR_MAX];
    local.trust_inputs = 1;
    local.op_a = local.op_b = TULLE_KEEP;
    if (o->memory_limit > 0) local.memory_limit = o->memory_limit > held ? o->memory_limit - held : 1;
    tulle_status status = tulle_multiply(d->ctx, &f->A, &f->B, &local, C);
    if (status == TULLE_ELIMIT && held > 0) {
        memcpy(why, d->b->error, sizeof why);
        return tl_fail(d->b, status, "%.800s; %" PRIu64 " bytes of the limit hold rows of B and of C", why,
                       held);
    }
    if (status != TULLE_OK) return status;
    tulle_ctx_stats(d->ctx, &stats);
    account->products += stats.products;
    account->c_nnz += tulle_matrix_view(*C).nnz;
    return TULLE_OK;
}

static tulle_status block_product(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B,
                                  const tulle_options *o,
                                  tl_fetch *f, uint64_t held, tulle_matrix **C, tl_account *account)
{
    tulle_status status = TULLE_OK;
    held += tl_fetch_bytes(f, A, &B->local, true);
    TRY(tl_fetch_patterns(d, A, B, true, f));
    f->A.values = A->values;
    TRY(tl_fetch_values(d, &B->local, B->local.values, f));
    /* A*A: uses the copy of A's values in the local B, so that caches need not hold them twice. */
    if (f->values && A->values == B->local.values && A->nnz <= f->own_entries)
        f->A.values = (const char *)f->values + f->below_entries * (int64_t)tl_type_size(A->val_type);
    status = tl_local_product(d, f, o, held, C, account);
done:
    return status;
}

uint64_t tl_matrix_bytes(const tulle_matrix *A)
{
    tulle_csr v = tulle_matrix_view(A);
    return (uint64_t)(v.rows + 1) * tl_index_size(v.ptr_type)
           + (uint64_t)v.nnz * (tl_index_size(v.idx_type) + tl_type_size(v.val_type));
}

static tulle_status one_round(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B,
                              const tulle_options *o, const blocks *k, int round, uint64_t held,
                              tulle_matrix **C, tl_account *account)
{
    tulle_status status = TULLE_OK;
    rows_of r = {0};
    tl_fetch f = {0};
    bool mine = round < k->count;       /* else this rank only sends rows to others */
    int64_t first = mine ? k->start[round] : A->rows, end = mine ? k->start[round + 1] : A->rows;
    AGREE(take_rows(d->b, A, first, end, &r));
    TRY(tl_fetch_lengths(d, &r.view, B, &f));
    AGREE(block_product(d, &r.view, B, o, &f, held, C, account));
done:
    tl_fetch_done(d->b, &f);
    tl_free(d->b, r.row_ptr);
    return status;
}

static tulle_status in_blocks(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B,
                              const tulle_options *o,
                              const blocks *k, tulle_matrix **C, tl_account *account)
{
    tulle_status status = TULLE_OK;
    tulle_matrix **part = NULL;
    uint64_t held = 0;
    AGREE(tl_calloc(d->b, &part, k->rounds, sizeof *part, "blocks of C"));
    for (int i = 0; i < k->rounds; i++) {
        TRY(one_round(d, A, B, o, k, i, held, &part[i], account));
        held += tl_matrix_bytes(part[i]);
    }
    uint64_t most = tl_rows_join_bytes(d->b, part, k->rounds, o->c_ptr_type);
    if (o->memory_limit > 0 && most > o->memory_limit)
        status = tl_fail(d->b, TULLE_ELIMIT, "C takes %" PRIu64 " bytes here, and %" PRIu64
                         " while its blocks are joined; the limit is %" PRIu64 " bytes", held, most,
                         o->memory_limit);
    if (status == TULLE_OK) status = tl_rows_join(d->b, part, NULL, k->rounds, o->c_ptr_type, C);
    AGREE(status);
done:
    for (int i = 0; part && i < k->rounds; i++) tl_matrix_free(d->b, part[i]);
    tl_free(d->b, part);
    return status;
}

tulle_status tl_dist_multiply(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                              const tulle_options *o,
                              tulle_dist_matrix **C)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *local = &B->local;
    uint64_t entry = tl_index_size(local->idx_type) + tl_type_size(local->val_type);
    tl_fetch f = {0};
    blocks k = {0};
    tulle_matrix *mine = NULL;
    tl_account account = {0};
    TRY(tl_fetch_lengths(d, &A->local, B, &f));
    account.fetched = f.lists.need;
    account.exact = 8 * (uint64_t)f.lists.need + entry * (uint64_t)f.entries;
    account.gather = 8 * (uint64_t)local->rows + entry * (uint64_t)local->nnz;
    TRY(tl_grid_choose(d, A, B, o, &f, &account));
    if (account.grid_cols == 0) {
        status = cut(d, &A->local, local, &f, o->memory_limit, &k);
        int64_t least = -k.count;       /* negated: for the maximum over the ranks */
        TRY(tl_agree_least(d, status, &least, 1));
        account.blocks = k.rounds = (int)-least;
    }
    if (account.grid_cols > 0) {
        tl_fetch_done(d->b, &f);
        status = tl_summa(d, A, B, o, &mine, &account);
    } else if (k.rounds == 1) {
        status = block_product(d, &A->local, B, o, &f, 0, &mine, &account);
    } else {
        tl_fetch_done(d->b, &f);
        status = in_blocks(d, &A->local, B, o, &k, &mine, &account);
    }
    tl_fetch_done(d->b, &f);
    if (status == TULLE_OK) status = tl_dist_own(d, A->row_starts, mine, C);
    if (status == TULLE_OK) mine = NULL;
    TRY(tl_stats_join(d, status, &account));
done:
    if (status != TULLE_OK && *C) {
        tl_dist_matrix_free(d->b, *C);
        *C = NULL;
    }
    tl_free(d->b, k.start);
    tl_fetch_done(d->b, &f);
    tl_matrix_free(d->b, mine);
    return status;
}
