/* SPDX-License-Identifier: MIT
 * multiply.c - the whole road of one product: operands, profile, recipe, engine, C. */
#include "ctx.h"
#include <inttypes.h>

/* C's columns in the width the caller asked for. */
static tulle_status with_index(tl_base *b, tulle_matrix **C, int idx_type)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *other = NULL;
    if (!idx_type || (tulle_index)idx_type == (*C)->view.idx_type) return TULLE_OK;
    TRY(tl_csr_convert(b, &(*C)->view, 0, 0, idx_type, &other));
    tl_matrix_free(b, *C);
    *C = other;
done:
    return status;
}

static tulle_status check_index(tl_base *b, const tulle_options *o, int64_t cols)
{
    if (o->c_idx_type == TULLE_I32 && cols > 0 && !tl_fits(TULLE_I32, cols - 1))
        return tl_fail(b, TULLE_EOVERFLOW, "C has %" PRId64 " columns, more than 32-bit column indices can "
                       "name (%" PRId64 "); ask for 64 bit", cols, (int64_t)TULLE_I32_LIMIT + 1);
    return TULLE_OK;
}

tulle_status tl_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *options,
                         tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o;
    tl_operands x = {0};
    tl_profile profile = {0};
    tl_recipe recipe;
    tl_request r;
    tulle_stats stats;
    tulle_matrix *C = NULL;
    double start = tl_now();
    uint64_t held = tl_stats_begin(ctx, &stats);

    TRY(tl_options_check(b, options, &o));
    TRY(tl_operands_make(b, A, B, &o, true, false, &x));
    TRY(check_index(b, &o, x.B.cols));
    double analyze = tl_now();
    TRY(tl_request_make(b, &x, &o, &recipe, &profile, &r));
    stats.sec_analyze = tl_now() - analyze;
    TRY(tl_cpu_multiply(b, &r, &C, &stats));
    double finish = tl_now();
    TRY(with_index(b, &C, o.c_idx_type));

    stats.sec_check = x.seconds;
    stats.sec_finish += tl_now() - finish;
    stats.sec_total = tl_now() - start;
    stats.a_nnz = x.A.nnz;
    stats.b_nnz = x.B.nnz;
    stats.products = profile.total;
    stats.policy = recipe.policy->name;
    tl_stats_end(ctx, &stats, held, tl_csr_bytes(&C->view));
    ctx->stats = stats;
    *out = C;
    C = NULL;
done:
    tl_matrix_free(b, C);
    tl_profile_done(b, &profile);
    tl_operands_done(b, &x);
    return status;
}

/* The last row of a block that starts at row0 and keeps the limit by its upper bound; one row at least. */
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

tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, tulle_block_fn fn, void *user)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o;
    tl_operands x = {0};
    tl_profile profile = {0};
    tl_recipe recipe;
    tl_request r;
    tulle_stats stats;
    tulle_matrix *C = NULL;
    double start = tl_now();
    int64_t c_nnz = 0, blocks = 0;
    uint64_t held = tl_stats_begin(ctx, &stats);

    TRY(tl_options_check(b, options, &o));
    TRY(tl_operands_make(b, A, B, &o, true, false, &x));
    TRY(check_index(b, &o, x.B.cols));
    double analyze = tl_now();
    TRY(tl_request_make(b, &x, &o, &recipe, &profile, &r));
    stats.sec_analyze = tl_now() - analyze;
    tulle_share total[TL_ACCUMULATORS] = {{0}};
    do {
        r.row1 = block_end(&r, r.row0);
        TRY(tl_cpu_multiply(b, &r, &C, &stats));
        TRY(with_index(b, &C, o.c_idx_type));
        c_nnz += C->view.nnz;
        blocks++;
        for (int i = 0; i < stats.shares; i++) {
            total[i].rows += stats.share[i].rows;
            total[i].products += stats.share[i].products;
        }
        if (fn(user, r.row0, &C->view)) {
            status = tl_fail(b, TULLE_ECANCEL, "stopped by the caller after row %" PRId64, r.row1 - 1);
            goto done;
        }
        tl_matrix_free(b, C);
        C = NULL;
        r.row0 = r.row1;
    } while (r.row0 < x.A.rows);
    tl_trace(b, "C went out in %" PRId64 " block%s of rows", blocks, blocks == 1 ? "" : "s");

    for (int i = 0; i < stats.shares; i++) {
        stats.share[i].rows = total[i].rows;
        stats.share[i].products = total[i].products;
    }
    stats.sec_check = x.seconds;
    stats.sec_total = tl_now() - start;
    stats.a_nnz = x.A.nnz;
    stats.b_nnz = x.B.nnz;
    stats.c_nnz = c_nnz;
    stats.products = profile.total;
    stats.policy = recipe.policy->name;
    tl_stats_end(ctx, &stats, held, 0);
    ctx->stats = stats;
done:
    tl_matrix_free(b, C);
    tl_profile_done(b, &profile);
    tl_operands_done(b, &x);
    return status;
}
