/* SPDX-License-Identifier: MIT
 *
 * blocks.c - C in blocks of rows that keep the memory limit, for products larger than memory.
 *
 * A block is as many rows as fit the limit by their upper bound, one at least; the engine counts exactly
 * when even that is too much, and refuses if the row itself does not fit. */
#include "ctx.h"
#include <inttypes.h>

/* The row behind the last of a block that starts at row0. */
static int64_t block_end(const tl_request *r, int64_t row0)
{
    uint64_t workspace = tl_cpu_workspace(r), bytes = 0;
    uint64_t room = r->memory_limit > workspace ? r->memory_limit - workspace : 0;
    uint64_t entry = tl_index_size(r->B->idx_type) + tl_type_size(r->B->val_type);
    int64_t row1 = row0;
    while (row1 < r->A->rows) {
        int64_t n = r->profile->products[row1] < r->B->cols ? r->profile->products[row1] : r->B->cols;
        bytes += (uint64_t)n * entry + 8;
        if (row1 > row0 && bytes + 8 > room) break;
        row1++;
    }
    return row1;
}

static void add_shares(const tulle_stats *from, tulle_share *to)
{
    for (int i = 0; i < from->shares; i++) {
        to[i].name = from->share[i].name;
        to[i].rows += from->share[i].rows;
        to[i].products += from->share[i].products;
    }
}

tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, tulle_block_fn fn, void *user)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s;
    tulle_matrix *C = NULL;
    tulle_share shares[TL_ACCUMULATORS] = {{0}};
    int64_t c_nnz = 0, blocks = 0;
    TRY(tl_setup_make(ctx, A, B, options, true, false, &s));
    tl_request *r = &s.request;
    do {
        r->row1 = block_end(r, r->row0);
        TRY(tl_cpu_multiply(b, r, &C, &s.stats));
        TRY(tl_with_index(b, &C, s.options.c_idx_type));
        add_shares(&s.stats, shares);
        c_nnz += C->view.nnz;
        blocks++;
        if (fn(user, r->row0, &C->view)) {
            status = tl_fail(b, TULLE_ECANCEL, "stopped by the caller after row %" PRId64, r->row1 - 1);
            goto done;
        }
        tl_matrix_free(b, C);
        C = NULL;
        r->row0 = r->row1;
    } while (r->row0 < r->A->rows);
    tl_trace(b, "C went out in %" PRId64 " block%s of rows", blocks, blocks == 1 ? "" : "s");
    for (int i = 0; i < s.stats.shares; i++) s.stats.share[i] = shares[i];
    s.stats.c_nnz = c_nnz;
    tl_setup_stats(ctx, &s, 0);
done:
    tl_matrix_free(b, C);
    tl_setup_done(b, &s);
    return status;
}
