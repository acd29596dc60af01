/* SPDX-License-Identifier: MIT
 *
 * blocks.c - computes C in blocks of rows that stay within the memory limit, for products larger than memory;
 * and C as a whole on the host from such blocks, where an engine with its own memory cannot compute it in one
 * run.
 *
 * A block has as many rows as fit in the limit by their upper bound, at least one.  A block that the engine
 * refuses is halved until it fits, and later blocks start with a smaller size.  The operands stay in the
 * engine's memory until the last block.  Where they do not fit there, or leave too little memory for blocks,
 * each block uploads its rows of A and the rows of B that they need; where even a single row is too much, it
 * is computed in panels of columns (panels.c).  If that fails too, or on the CPU if a single row does not
 * fit, the error message says how much memory the largest row needs. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

/* ---- the destination of blocks: the caller, or one matrix */

typedef struct sink {
    tulle_block_fn fn;                  /* NULL: into join                          */
    void          *user;
    tl_join        join;
} sink;

static tulle_status hand_out(tl_base *b, sink *k, int64_t row0, const tulle_csr *block)
{
    if (!k->fn) return tl_join_put(b, &k->join, block, false);
    if (!k->fn(k->user, row0, block)) return TULLE_OK;
    return tl_fail(b, TULLE_ECANCEL, "stopped by the caller after row %" PRId64, row0 + block->rows - 1);
}

/* ---- one block after the other */

typedef struct walk {
    tulle_ctx       *ctx;
    tl_setup        *s;
    const tulle_csr *A, *B;             /* as the caller gave them                  */
    bool             parts;             /* each block uploads its rows of A and B   */
    uint64_t         most, room;        /* target bytes of a block; less after a refusal: of the next one */
    int64_t          blocks, panels;
    tulle_stats      sum;
} walk;

/* Bytes of a row in A and C; *of_b: bytes of the rows of B that it needs. */
static uint64_t row_bytes(const walk *w, int64_t row, uint64_t *of_b)
{
    const tulle_options *o = &w->s->options;
    *of_b = 0;
    if (!w->parts) return tl_row_bytes(w->s, row);
    uint64_t bytes = tl_part_bytes(w->s, row, of_b);
    if (tl_stays_there(o, o->op_b, w->B)) *of_b = 0;
    return bytes;
}

/* The end (exclusive) of a block that starts at row0. */
static int64_t block_end(const walk *w, int64_t row0)
{
    uint64_t bytes = 0, of_b = 0, all_b = tl_csr_bytes(&w->s->operands.B), more;
    int64_t row1 = row0;
    while (row1 < w->s->operands.A.rows) {
        bytes = tl_bytes_sum(bytes, row_bytes(w, row1, &more));
        of_b = tl_bytes_sum(of_b, more);
        if (row1 > row0 && tl_bytes_sum(bytes, of_b < all_b ? of_b : all_b) > w->room) break;
        row1++;
    }
    return row1;
}

/* The peak memory of a block counts whether it was computed or refused. */
static void note_peak(walk *w)
{
    const uint64_t peak = w->s->stats.peak_bytes;
    if (w->sum.peak_bytes < peak) w->sum.peak_bytes = peak;
}

/* From here on operands no longer stay on the device between blocks. */
static void go_in_parts(walk *w, const char *why)
{
    w->s->engine->done(w->ctx, w->s);
    w->parts = true;
    w->room = w->most = w->s->engine->room(w->ctx, w->s);
    tl_trace(&w->ctx->base, "%s: each block of rows of A goes to %s with the rows of B that it names", why,
             w->s->device);
}

static tulle_status begin(walk *w)
{
    const tl_engine *e = w->s->engine;
    uint64_t all = e->room(w->ctx, w->s);
    tulle_status status = e->stay(w->ctx, w->s, w->A, w->B);
    note_peak(w);
    if (e->part && e->too_large(status)) {
        go_in_parts(w, "A and B do not fit");
        return TULLE_OK;
    }
    if (status != TULLE_OK) return status;
    w->room = w->most = e->room(w->ctx, w->s);
    if (e->part && w->room < all / 8) go_in_parts(w, "A and B leave little room for C");
    return TULLE_OK;
}

/* Computes the rows row0 .. *row1, or as many of them as fit; *row1 is then lower. */
static tulle_status run_block(walk *w, int64_t row0, int64_t *row1, tulle_matrix **C)
{
    tulle_ctx *ctx = w->ctx;
    tl_setup *s = w->s;
    const tl_engine *e = s->engine;
    bool to_host = s->options.c_place == TULLE_HOST;
    for (;;) {
        tulle_status status = w->parts ? tl_part_rows(ctx, s, w->B, row0, *row1, C)
                                       : e->run(ctx, s, row0, *row1, C);
        if (!e->too_large(status)) return status;
        note_peak(w);
        if (*row1 - row0 > 1) {
            *row1 = row0 + (*row1 - row0) / 2;
            w->room /= 2;
        } else if (w->parts && to_host && *row1 > row0) {
            return tl_part_panels(ctx, s, row0, w->most, &w->panels, C);
        } else if (w->parts || !e->part) {
            return e->refuse(ctx, s, row0, status);
        } else {
            go_in_parts(w, "A and B leave too little room for a row");
        }
    }
}

static tulle_status in_blocks(walk *w, sink *k)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &w->ctx->base;
    tl_setup *s = w->s;
    tulle_matrix *C = NULL;
    int64_t rows = s->operands.A.rows, products = s->stats.products, row0 = 0, row1 = 0, nnz = 0;
    TRY(begin(w));
    do {
        row1 = block_end(w, row0);
        s->stats.stages = s->stats.waits = s->stats.shares = 0;
        if (w->parts && tl_progress(b, "blocks", rows > 0 ? (double)row0 / (double)rows : 0)) {
            status = tl_fail(b, TULLE_ECANCEL, "cancelled before row %" PRId64 " of C", row0);
            goto done;
        }
        TRY(run_block(w, row0, &row1, &C));
        tl_stats_add(&s->stats, &w->sum);
        nnz += C->view.nnz;
        w->blocks++;
        TRY(hand_out(b, k, row0, &C->view));
        tl_matrix_free(b, C);
        C = NULL;
        row0 = row1;
        if (w->room < w->most) w->room += w->room / 8 + 1;
    } while (row0 < rows);
    tl_trace(b, "C %s in %" PRId64 " block%s of rows", k->fn ? "went out" : "came to the host", w->blocks,
             w->blocks == 1 ? "" : "s");
    if (w->panels) tl_trace(b, "rows too large alone came in %" PRId64 " panels of columns", w->panels);
    s->stats.shares = s->stats.stages = s->stats.waits = 0;
    tl_stats_add(&w->sum, &s->stats);
    s->stats.c_nnz = nnz;
    s->stats.products = products;
done:
    tl_matrix_free(b, C);
    return status;
}

tulle_status tl_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, tulle_block_fn fn, void *user)
{
    tulle_status status = TULLE_OK;
    tl_setup s = {0};
    sink k = {.fn = fn, .user = user};
    walk w;
    int want = 0, use = 0;
    TRY(tl_wanted(&ctx->base, A, B, options, &want));
    do {                                /* if the first block does not fit, the other engine tries */
        tl_setup_done(ctx, &s);
        w = (walk){.ctx = ctx, .s = &s, .A = A, .B = B};
        status = tl_setup_make(ctx, A, B, options, want | TL_LOOK | use, &s);
        if (status == TULLE_OK) status = in_blocks(&w, &k);
    } while (w.blocks == 0 && (use = tl_choose_other(ctx, &s.chosen, status)) != 0);
    TRY(status);
    tl_setup_stats(ctx, &s, 0);
done:
    tl_setup_done(ctx, &s);
    return status;
}

tulle_status tl_multiply_joined(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                const tulle_options *options, const tl_setup *first, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_setup s = {0};
    sink k = {0};
    walk w = {.ctx = ctx, .s = &s, .A = A, .B = B, .sum.peak_bytes = first->stats.peak_bytes};
    int want = first->values ? TL_VALUES : 0;
    TRY(tl_setup_make(ctx, A, B, options, want | TL_LOOK | TL_USE_DEVICE, &s));
    s.start = first->start;
    s.compiling = first->compiling;
    const tulle_options *o = &s.options;
    const tl_operands *x = &s.operands;
    TRY(tl_join_begin(b, x->A.rows, x->B.cols, o->drop_zeros ? 0 : s.profile.lower, s.profile.upper,
                      o->c_idx_type ? (tulle_index)o->c_idx_type : x->B.idx_type, x->B.val_type, s.values,
                      &k.join));
    TRY(in_blocks(&w, &k));
    TRY(tl_join_finish(b, &k.join, o->c_ptr_type, C));
    tl_setup_stats(ctx, &s, tl_csr_bytes(&(*C)->view));
done:
    tl_join_done(b, &k.join);
    tl_setup_done(ctx, &s);
    return status;
}
