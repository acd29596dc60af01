/* SPDX-License-Identifier: MIT
 *
 * blocks.c - C in blocks of rows that keep the memory limit, for products larger than memory.
 *
 * A block is as many rows as fit the limit by their upper bound, one at least; a block that the engine refuses
 * is halved until it fits.  Where even a row alone does not, all rows are looked at, and the call is refused with
 * what the one that takes most needs.  The operands stay where the engine reads them until the last block. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

/* The row behind the last of a block that starts at row0. */
static int64_t block_end(const tl_setup *s, int64_t row0, uint64_t room)
{
    uint64_t bytes = 0;
    int64_t row1 = row0;
    while (row1 < s->operands.A.rows) {
        bytes = tl_bytes_sum(bytes, tl_row_bytes(s, row1));
        if (row1 > row0 && bytes > room) break;
        row1++;
    }
    return row1;
}

/* The rows row0 .. *row1, or as many of them as the engine has room for. */
static tulle_status run_block(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t *row1, tulle_matrix **C)
{
    const tl_engine *e = ctx->engine;
    for (;;) {
        tulle_status status = e->run(ctx, s, row0, *row1, C);
        if (!e->too_large(status)) return status;
        if (*row1 - row0 <= 1) return e->refuse(ctx, s, row0, status);
        *row1 = row0 + (*row1 - row0) / 2;
    }
}

tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, tulle_block_fn fn, void *user)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s = {0};
    tulle_matrix *C = NULL;
    tulle_stats sum = {0};
    int64_t blocks = 0, products = 0, row0 = 0, row1 = 0;
    int want = 0;
    TRY(tl_wanted(b, A, B, options, &want));
    TRY(tl_setup_make(ctx, A, B, options, want | TL_LOOK, &s));
    TRY(ctx->engine->stay(ctx, &s, A, B));
    uint64_t room = ctx->engine->room(ctx, &s);
    products = s.stats.products;
    do {
        row1 = block_end(&s, row0, room);
        s.stats.stages = s.stats.waits = s.stats.shares = 0;
        TRY(run_block(ctx, &s, row0, &row1, &C));
        tl_stats_add(&s.stats, &sum);
        sum.c_nnz += C->view.nnz;
        blocks++;
        if (fn(user, row0, &C->view)) {
            status = tl_fail(b, TULLE_ECANCEL, "stopped by the caller after row %" PRId64, row1 - 1);
            goto done;
        }
        tl_matrix_free(b, C);
        C = NULL;
        row0 = row1;
    } while (row0 < s.operands.A.rows);
    tl_trace(b, "C went out in %" PRId64 " block%s of rows", blocks, blocks == 1 ? "" : "s");
    s.stats.shares = s.stats.stages = s.stats.waits = 0;
    tl_stats_add(&sum, &s.stats);
    s.stats.c_nnz = sum.c_nnz;
    s.stats.products = products;
    tl_setup_stats(ctx, &s, 0);
done:
    tl_matrix_free(b, C);
    tl_setup_done(ctx, &s);
    return status;
}
