/* SPDX-License-Identifier: MIT
 *
 * blocks.c - C in blocks of rows that keep the memory limit, for products larger than memory.
 *
 * A block is as many rows as fit the limit by their upper bound, one at least; a block that the engine refuses
 * is halved until it fits.  Where even a row alone does not, all rows are looked at, and the call is refused with
 * what the one that takes most needs.  On a GPU the operands go to the device once, where they count as taken. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

/* Bytes of a row of C at most, its pointer included. */
static uint64_t row_bytes(const tl_request *r, int64_t row)
{
    tl_request one = *r;
    one.row0 = row;
    one.row1 = row + 1;
    return tl_cpu_c_bytes(&one, tl_cpu_upper(&one), TULLE_I64);
}

/* The row behind the last of a block that starts at row0. */
static int64_t block_end(const tl_request *r, int64_t row0, uint64_t room)
{
    uint64_t bytes = 0;
    int64_t row1 = row0;
    while (row1 < r->A->rows) {
        bytes = tl_bytes_sum(bytes, row_bytes(r, row1));
        if (row1 > row0 && bytes > room) break;
        row1++;
    }
    return row1;
}

/* Bytes that a block of C may take beside all threads, or, where that is little, beside one with little
 * scratch. */
static uint64_t room_for(const tulle_ctx *ctx, const tl_setup *s)
{
    const tl_request *r = &s->request;
    if (!ctx->gpu) {
        const tl_profile *p = r->profile;
        tl_pieces usual = {.count = 16, .max_rows = 2048, .max_entries = 16 << 10}, lean = usual;
        if (p->max_products > usual.max_entries) usual.max_entries = p->max_products;
        if (usual.max_entries > p->upper) usual.max_entries = p->upper;
        lean.lean = true;
        uint64_t base = tl_cpu_base(&ctx->base, r), limit = r->memory_limit;
        uint64_t all = tl_cpu_need(&ctx->base, r, &usual, base, r->threads, true, 0, TULLE_I64);
        uint64_t least = tl_cpu_need(&ctx->base, r, &lean, base, 1, false, 0, TULLE_I64);
        return limit / 2 > all ? limit - all : limit > least ? limit - least : 0;
    }
    uint64_t limit = s->options.memory_limit, free_bytes = tl_gpu_caps(ctx->gpu)->memory_free / 2;
    return limit && limit - s->gpu.before < free_bytes ? limit - s->gpu.before : free_bytes;
}

/* Operands that the device can read again and again. */
typedef struct placed {
    tulle_csr     A, B;
    tulle_matrix *own_a, *own_b;
} placed;

static tulle_status place_one(tulle_ctx *ctx, const tulle_csr *given, bool stays, const tulle_csr *ready,
                              tulle_csr *view, tulle_matrix **own)
{
    tulle_status status = TULLE_OK;
    *view = *given;
    if (stays) return TULLE_OK;
    TRY(tl_gpu_move(&ctx->base, ctx->gpu, ready, TULLE_DEVICE, own));
    *view = (*own)->view;
done:
    return status;
}

static tulle_status place(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, tl_setup *s, placed *p)
{
    tulle_status status = TULLE_OK;
    const tl_operands *x = &s->operands;
    const tulle_options *o = &s->options;
    bool stays_a = !o->sort_inputs && !o->op_a && A->place == TULLE_DEVICE;
    bool stays_b = !o->sort_inputs && !o->op_b && B->place == TULLE_DEVICE;
    bool share = tl_same_arrays(&x->A, &x->B) && x->A.values == x->B.values;
    tl_dmem_begin(ctx->gpu, 0, o->memory_limit);
    s->gpu.before = (stays_a ? 0 : tl_gpu_bytes_of(&x->A)) + (stays_b || share ? 0 : tl_gpu_bytes_of(&x->B));
    if (o->memory_limit && s->gpu.before > o->memory_limit) {
        status = tl_fail(&ctx->base, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes on the device for A and B, "
                         "the limit is %" PRIu64, s->gpu.before, o->memory_limit);
        goto done;
    }
    TRY(place_one(ctx, A, stays_a, &x->A, &p->A, &p->own_a));
    if (share) p->B = p->A;
    else TRY(place_one(ctx, B, stays_b, &x->B, &p->B, &p->own_b));
    s->gpu.A = &p->A;
    s->gpu.B = &p->B;
done:
    tl_dmem_end(ctx->gpu);
    return status;
}

/* No less than what a block of one row can need. */
static uint64_t row_need(const tl_base *b, const tl_request *r, int64_t row)
{
    enum { ROOM = 64, PIECE = 1 << 14 };        /* pieces come with room for some more */
    uint64_t count = 2 * ((uint64_t)r->profile->products[row] / PIECE + ROOM);
    uint64_t pieces = count * (sizeof(tl_piece) + 3 * sizeof(int64_t));
    const tl_pieces lean = {.count = 1, .max_rows = 1, .lean = true};
    uint64_t base = tl_bytes_sum(tl_cpu_base(b, r), pieces + sizeof(tulle_matrix));
    return tl_bytes_sum(tl_cpu_need(b, r, &lean, base, 1, false, 0, TULLE_I64), row_bytes(r, row));
}

/* The limit is too small for row row0: what is the least that does for it and all rows after it? */
static tulle_status refuse(tulle_ctx *ctx, const tl_setup *s)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_request r = s->request;
    uint64_t most = 0, bytes = 0;
    int64_t worst = r.row0;
    for (r.row1 = r.row0 + 1; r.row0 < r.A->rows; r.row0++, r.row1++) {
        if (row_need(b, &r, r.row0) <= most) continue;
        TRY(tl_cpu_least(b, &r, &bytes));
        if (bytes > most) most = bytes, worst = r.row0;
    }
    status = tl_fail(b, TULLE_ELIMIT, "the product needs %" PRIu64 " bytes even in blocks of one row (row %"
                     PRId64 " takes most), the limit is %" PRIu64, most, worst, r.memory_limit);
done:
    return status;
}

static tulle_status run_block(tulle_ctx *ctx, tl_setup *s, tulle_matrix **C)
{
    tl_request *r = &s->request;
    for (;;) {
        s->gpu.row0 = r->row0;
        s->gpu.row1 = r->row1;
        tulle_status status = tl_engine_run(ctx, s, C);
        bool refused = status == TULLE_ELIMIT || (status == TULLE_ENOMEM && ctx->gpu);
        if (!refused) return status;
        if (r->row1 - r->row0 <= 1) return ctx->gpu ? status : refuse(ctx, s);  /* a device names what any row needs */
        r->row1 = r->row0 + (r->row1 - r->row0) / 2;
    }
}

/* Shares are named: engines tell only of those they used. */
static void add_shares(const tulle_stats *from, tulle_stats *to)
{
    for (int i = 0; i < from->shares; i++) {
        int k = 0;
        while (k < to->shares && strcmp(to->share[k].name, from->share[i].name) != 0) k++;
        if (k == TULLE_MAX_SHARES) continue;
        if (k == to->shares) to->share[to->shares++] = (tulle_share){.name = from->share[i].name};
        to->share[k].rows += from->share[i].rows;
        to->share[k].products += from->share[i].products;
    }
}

/* The same for times, waits and bytes, which an engine sets anew in each product. */
static void add_stages(const tulle_stats *from, tulle_stats *to)
{
    for (int i = 0; i < from->stages; i++) {
        int k = 0;
        while (k < to->stages && strcmp(to->stage[k].name, from->stage[i].name) != 0) k++;
        if (k == TULLE_MAX_STAGES) continue;
        if (k == to->stages) to->stage[to->stages++] = (tulle_stage){.name = from->stage[i].name};
        to->stage[k].seconds += from->stage[i].seconds;
    }
    to->waits += from->waits;
    if (to->peak_bytes < from->peak_bytes) to->peak_bytes = from->peak_bytes;
    if (to->workspace_bytes < from->workspace_bytes) to->workspace_bytes = from->workspace_bytes;
}

tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, tulle_block_fn fn, void *user)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s = {0};
    placed device = {0};
    tulle_matrix *C = NULL;
    tulle_stats sum = {0};
    int64_t blocks = 0, products = 0;
    int want = 0;
    TRY(tl_wanted(b, A, B, options, &want));
    TRY(tl_setup_make(ctx, A, B, options, want | TL_LOOK, &s));
    if (ctx->gpu) TRY(place(ctx, A, B, &s, &device));
    tl_request *r = &s.request;
    uint64_t room = room_for(ctx, &s);
    s.gpu.row_most = s.profile.max_products < r->B->cols ? s.profile.max_products : r->B->cols;
    products = s.stats.products;
    do {
        r->row1 = block_end(r, r->row0, room);
        s.stats.stages = s.stats.waits = s.stats.shares = 0;
        TRY(run_block(ctx, &s, &C));
        add_shares(&s.stats, &sum);
        add_stages(&s.stats, &sum);
        sum.c_nnz += C->view.nnz;
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
    s.stats.shares = s.stats.stages = s.stats.waits = 0;
    add_shares(&sum, &s.stats);
    add_stages(&sum, &s.stats);
    s.stats.c_nnz = sum.c_nnz;
    s.stats.products = products;
    tl_setup_stats(ctx, &s, 0);
done:
    tl_matrix_free(b, C);
    tl_matrix_free(b, device.own_a);
    tl_matrix_free(b, device.own_b);
    tl_setup_done(b, &s);
    return status;
}
