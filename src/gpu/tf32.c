/* SPDX-License-Identifier: MIT
 *
 * tf32.c - SpMM in float if the caller allows TF32: A in blocks of 8x8 for tensor cores (kernels/tf32.cl), in
 * addition to CSR; and the decision when to use them.
 *
 * Device memory: 268 bytes and 8 columns per block, 4 bytes per 8 rows.  Blocks are counted first, so their
 * memory is known in advance. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 8, BLOCK_VALUES = 64,                /* as in kernels/tf32.cl                                    */
    WARP = 32, WARPS = 8, SEATS_MOST = 8,
    LEAST_ARCH = 80,                            /* tensor cores that support TF32                           */
    LONGEST_ROW = 1 << 14,                      /* a thread merges 8 rows; longer ones would take too long */
    NARROW = 16, WIDE = 64,                     /* columns; not worth it for WIDE: never                    */
    WORTH_NARROW = 160, WORTH = 130, WORTH_WIDE = 240,  /* percent: bytes read by the CSR kernels to those
                                                         * read by these */
    SEAT_ROUNDS = 2,                            /* iterations of a warp, at least                           */
    LONG_LEAST = 32,                            /* blocks; longer windows get all warps of a block          */
    LONGEST_FREE = 512,                         /* blocks of a window that are always allowed               */
    LONGEST_SHARE = 8,                          /* times a warp's share: blocks of a window                 */
    WARPS_PROCESSOR = 24                        /* resident warps per multiprocessor, about                 */
};

static const tl_kernel_id kernels[] = {TL_K_TF32_1, TL_K_TF32_2, TL_K_TF32_4, TL_K_TF32_8};
static const uint32_t at_once[] = {4, 4, 2, 1}; /* blocks, as in kernels/tf32.cl */

typedef enum wish { NEVER, MAYBE, FORCED } wish;

/* TULLE_SPMM_TF32=on: always, on any device; off: never.  For tests and measurements. */
static wish wish_of(const tl_gpu_spmm *s)
{
    const char *text = tl_env("TULLE_SPMM_TF32");
    if (text && strcmp(text, "on") == 0) return FORCED;
    if (text && strcmp(text, "off") == 0) return NEVER;
    return s->gpu->driver == &tl_driver_cuda && strncmp(s->gpu->caps.arch, "sm_", 3) == 0
           && atoi(s->gpu->caps.arch + 3) >= LEAST_ARCH ? MAYBE : NEVER;
}

static tulle_status launch(tl_base *b, tl_gpu_spmm *s, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                           int lane, const tl_arg *args, int count)
{
    tl_launch l = {.blocks = blocks < INT32_MAX ? blocks : INT32_MAX,
                   .threads = threads,
                   .lane = lane,
                   .count = count,
                   .args = args};
    return s->gpu->driver->launch(b, s->gpu->device, tl_gpu_kernel(s->gpu, s->types, id), &l);
}

/* ---- is it worth it?
 *
 * The model counts the bytes read by the kernels.  Those of A count twice, since they come from memory,
 * while X comes mostly from a cache that is about twice as fast.  CSR: a value per entry, and for each entry
 * of a bundle of rows with the same columns a column index and a row of X.  Blocks: for each column of a
 * window 8 values, the column index, a byte and a row of X.  With n columns of X and e entries per column of
 * a window, that is 2 * (4 + 4 / bundle) + 4n / bundle for CSR against (2 * 37 + 4n) / e for blocks, per
 * entry.  The ratio from which blocks are faster was measured on an H200: 1.3 at 32 columns; more for tiles
 * of 8 columns, which waste most of a fragment, and beyond WIDE columns, where the blocks are read more than
 * once. */
static bool worth_it(const tl_gpu_spmm *s, uint64_t cols)
{
    const tl_row_pieces *r = &s->pieces;
    const double line = 4.0 * (double)cols,
                 bundle = r->twins && r->pieces ? (double)s->rows / (double)r->pieces : 1.0;
    const double entries = (double)s->nnz / (double)(s->tf32.columns ? s->tf32.columns : 1);
    const double percent = cols < NARROW ? WORTH_NARROW : cols <= WIDE ? WORTH : WORTH_WIDE;
    return 100.0 * (8.0 + (8.0 + line) / bundle) >= percent * (74.0 + line) / entries;
}

/* Would the longest window, computed by the warps of one thread block, take much longer than all of A? */
static bool too_long(const tl_gpu_spmm *s)
{
    const uint64_t warps = (uint64_t)s->gpu->caps.processors * WARPS_PROCESSOR;
    return s->tf32.longest > LONGEST_FREE + LONGEST_SHARE * (s->tf32.blocks / (warps ? warps : 1));
}

bool tl_tf32_takes(const tl_gpu_spmm *s, uint32_t cols)
{
    return s->tf32.val.handle && (s->tf32.forced || worth_it(s, cols));
}

/* ---- A in blocks */

/* A window with more blocks than this is long: as many as an average window would have if its rows shared no
 * columns. */
static uint32_t many_of(const tl_gpu_spmm *s)
{
    const uint64_t mean = (uint64_t)s->nnz / s->tf32.windows / ROWS;
    return mean < LONG_LEAST ? LONG_LEAST : mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
}

static uint32_t window_threads(const tl_gpu_spmm *s)
{
    return s->gpu->caps.cpu ? 32 : 64;
}

/* Counts the blocks: for each window those before it in its group, and for each group. */
static tulle_status count(tl_base *b, tl_gpu_spmm *s, tl_dmem *sums)
{
    enum { TOTALS = 4 };
    tulle_status status = TULLE_OK;
    tl_tf32 *t = &s->tf32;
    const tl_driver *d = s->gpu->driver;
    tl_dmem totals = {s->gpu->board.handle, TL_BOARD_SUMS};
    const tl_kernel_id ids[] = {TL_K_TF32_COUNT, TL_K_PIECES_PLACE};
    const uint32_t threads = window_threads(s);
    const uint64_t groups = (t->windows + threads - 1) / threads;
    TRY(tl_gpu_need(b, s->gpu, s->types, ids, TL_COUNT(ids)));
    TRY(tl_dmem_alloc(b, s->gpu, (t->windows + 1) * 4, "blocks of windows", &t->at));
    TRY(tl_dmem_alloc(b, s->gpu, groups * 4, "numbers of blocks", sums));
    TRY(d->fill(b, s->gpu->device, totals, 0, TOTALS * 8));
    const tl_arg args[] = {TL_U32(s->rows), TL_U32(t->many), TL_MEM(s->ptr), TL_MEM(s->col),
                           TL_MEM(t->at),   TL_MEM(*sums),   TL_MEM(totals)};
    TRY(launch(b, s, TL_K_TF32_COUNT, groups, threads, 0, args, TL_COUNT(args)));
    TRY(d->download(b, s->gpu->device, s->gpu->note, totals, TOTALS * 8));
    TRY(d->wait(b, s->gpu->device));
    t->blocks = s->gpu->note[0];
    t->longest = s->gpu->note[1];
    t->columns = s->gpu->note[2];
    t->longs = s->gpu->note[3];
    const tl_arg place[] = {TL_U32(groups), TL_U32(0), TL_MEM(*sums)};
    TRY(launch(b, s, TL_K_PIECES_PLACE, 1, s->gpu->caps.cpu ? 32 : 256, 0, place, TL_COUNT(place)));
done:
    return status;
}

tulle_status tl_tf32_fill(tl_base *b, tl_gpu_spmm *s)
{
    const tl_tf32 *t = &s->tf32;
    const uint32_t threads = s->gpu->caps.cpu ? 32 : 256;
    const tl_arg fill[] = {TL_U32(s->rows), TL_U64(t->blocks), TL_MEM(s->ptr), TL_MEM(s->col), TL_MEM(s->val),
                           TL_MEM(t->col),  TL_MEM(t->window), TL_MEM(t->val), TL_MEM(t->has)};
    return launch(b, s, TL_K_TF32_FILL, (t->blocks * ROWS + threads - 1) / threads, threads, 0, fill,
                  TL_COUNT(fill));
}

static tulle_status build(tl_base *b, tl_gpu_spmm *s, tl_dmem sums)
{
    tulle_status status = TULLE_OK;
    tl_tf32 *t = &s->tf32;
    const tl_kernel_id ids[] = {TL_K_TF32_COLUMNS, TL_K_TF32_FILL, TL_K_TF32_1,
                                TL_K_TF32_2,       TL_K_TF32_4,    TL_K_TF32_8};
    const uint32_t threads = window_threads(s);
    TRY(tl_gpu_need(b, s->gpu, s->types, ids, TL_COUNT(ids)));
    TRY(tl_dmem_alloc(b, s->gpu, t->blocks * 4, "windows of blocks", &t->window));
    TRY(tl_dmem_alloc(b, s->gpu, (t->longs + 1) * 4, "long windows", &t->list));
    TRY(s->gpu->driver->fill(b, s->gpu->device, t->list, 0, (t->longs + 1) * 4));
    TRY(tl_dmem_alloc(b, s->gpu, t->blocks * ROWS * (uint64_t)(s->types.idx / 8), "columns of blocks",
                      &t->col));
    TRY(tl_dmem_alloc(b, s->gpu, t->blocks * ROWS, "entries of blocks", &t->has));
    TRY(tl_dmem_alloc(b, s->gpu, t->blocks * BLOCK_VALUES * 4, "values of blocks", &t->val));
    const tl_arg columns[] = {TL_U32(s->rows),   TL_U32(t->many), TL_U32(t->longs), TL_MEM(s->ptr),
                              TL_MEM(s->col),    TL_MEM(t->at),   TL_MEM(sums),     TL_MEM(t->col),
                              TL_MEM(t->window), TL_MEM(t->list)};
    TRY(launch(b, s, TL_K_TF32_COLUMNS, (t->windows + threads - 1) / threads, threads, 0, columns,
               TL_COUNT(columns)));
    TRY(tl_tf32_fill(b, s));
done:
    return status;
}

/* Are blocks to be made?  If not, the reason is traced. */
static bool chosen(tl_base *b, const tl_gpu_spmm *s)
{
    const tl_tf32 *t = &s->tf32;
    const uint64_t has = tl_spmm_room(s, (double)t->bytes);
    const double entries = (double)s->nnz / (double)(t->columns ? t->columns : 1);
    if (t->blocks == 0) return false;
    if (t->blocks > UINT32_MAX || t->bytes > has)
        tl_trace(b,
                 "spmm: no TF32: %" PRIu64 " blocks would take %" PRIu64 " bytes of device memory, %" PRIu64
                 " %s",
                 t->blocks, t->bytes, has, s->limit ? "are allowed" : "can be had");
    else if (!t->forced && too_long(s))
        tl_trace(b, "spmm: no TF32: %" PRIu64 " of %" PRIu64 " blocks are in one window of rows", t->longest,
                 t->blocks);
    else if (!t->forced && !worth_it(s, WIDE))
        tl_trace(b,
                 "spmm: no TF32: 8 rows share too little: %.2f entries for each of their columns, %.0f%% of "
                 "%" PRIu64 " blocks of 8x8",
                 entries, 100.0 * (double)s->nnz / (double)(t->blocks * BLOCK_VALUES), t->blocks);
    else
        return true;
    return false;
}

tulle_status tl_tf32_make(tl_base *b, tl_gpu_spmm *s)
{
    tulle_status status = TULLE_OK;
    tl_tf32 *t = &s->tf32;
    tl_dmem sums = {0, 0};
    const wish wanted = wish_of(s);
    *t = (tl_tf32){.windows = ((uint64_t)s->rows + ROWS - 1) / ROWS, .forced = wanted == FORCED};
    if (s->type != TULLE_F32 || s->nnz == 0) return TULLE_OK;
    if (wanted == NEVER) {
        tl_trace(b, "spmm: no TF32: %s",
                 tl_env("TULLE_SPMM_TF32") ? "TULLE_SPMM_TF32 says so"
                                           : "it needs tensor cores, through CUDA (sm_80)");
        return TULLE_OK;
    }
    if (!t->forced && s->most > LONGEST_ROW) {
        tl_trace(b, "spmm: no TF32: a row has %" PRIu64 " entries, more than %d", s->most, LONGEST_ROW);
        return TULLE_OK;
    }
    t->many = many_of(s);
    status = count(b, s, &sums);
    t->bytes = t->blocks * (BLOCK_VALUES * 4 + ROWS + 4 + ROWS * (uint64_t)(s->types.idx / 8))
               + (t->windows + 1) * 4;
    if (status == TULLE_OK && chosen(b, s)) status = build(b, s, sums);
    if (status == TULLE_ENOMEM) {
        tl_trace(b, "spmm: no TF32: %s", b->error);
        tl_tf32_done(s);
        status = TULLE_OK;
    }
    if (status != TULLE_OK || !t->val.handle) tl_tf32_done(s);
    else
        tl_trace(b,
                 "spmm: TF32 in %" PRIu64
                 " blocks of 8x8, %.0f%% full, %.2f entries for each column of 8 rows, at most %" PRIu64
                 " blocks for these, %" PRIu64 " bytes",
                 t->blocks, 100.0 * (double)s->nnz / (double)(t->blocks * BLOCK_VALUES),
                 (double)s->nnz / (double)t->columns, t->longest, t->bytes);
    tl_dmem_free(s->gpu, sums);
    return status;
}

void tl_tf32_done(tl_gpu_spmm *s)
{
    tl_tf32 *t = &s->tf32;
    const tl_dmem mem[] = {t->at, t->col, t->val, t->has, t->list, t->window};
    for (int i = 0; i < TL_COUNT(mem); i++) tl_dmem_free(s->gpu, mem[i]);
    t->at = t->col = t->val = t->has = t->list = t->window = (tl_dmem){0, 0};
}

/* ---- Y = alpha*A*X + beta*Y */

/* The kernel: the narrowest that computes all columns at once; for many columns 64 at once, unless the last
 * tile would be half empty. */
static int kernel_of(uint32_t cols)
{
    int k = 0;
    while (k < TL_COUNT(kernels) - 1 && (ROWS << k) < (int64_t)cols) k++;
    return k == TL_COUNT(kernels) - 1 && (cols - 1) % (uint32_t)(ROWS << k) < (uint32_t)(ROWS << k) / 2
               ? k - 1
               : k;
}

/* Several warps per window, if there are too few windows to fill the device, and they are long enough. */
static uint32_t seats_of(const tl_gpu_spmm *s, uint64_t works, uint32_t u)
{
    const char *text = tl_env("TULLE_SPMM_TF32_WARPS");
    const uint32_t forced = text ? (uint32_t)atoi(text) : 0;
    const uint64_t warps = (uint64_t)s->gpu->caps.processors * WARPS_PROCESSOR,
                   mean = s->tf32.blocks / s->tf32.windows;
    uint32_t seats = 1;
    if (forced >= 1 && forced <= SEATS_MOST) return forced;
    while (2 * seats <= SEATS_MOST && works * seats < warps && mean >= 2 * (uint64_t)seats * u * SEAT_ROUNDS)
        seats *= 2;
    return seats;
}

static bool aligned(const tl_gpu *gpu, tl_dmem mem, uint64_t at, uint64_t ld, uint64_t bytes)
{
    const uint64_t base = gpu->driver == &tl_driver_cuda ? mem.handle : 0;
    return (base + mem.offset + at * 4) % bytes == 0 && ld * 4 % bytes == 0;
}

/* Columns from..from+cols of a chunk. */
static tulle_status some_columns(tl_base *b, tl_gpu_spmm *s, const tl_chunk *c, uint32_t from, uint32_t cols,
                                 int k, double alpha, double beta)
{
    const tl_tf32 *t = &s->tf32;
    const uint64_t x_at = c->x_at + from, y_at = c->y_at + from, bytes = k < 2 ? 4u << k : 16;
    const uint32_t tile = (uint32_t)ROWS << k, tiles = (cols - 1) / tile + 1,
                   works = (uint32_t)(t->windows * tiles);
    const uint32_t seats = seats_of(s, works, at_once[k]), warps = seats > 1           ? seats
                                                                   : s->gpu->caps.warp ? WARPS
                                                                                       : 1;
    const bool wide =
        aligned(s->gpu, c->x, x_at, c->x_ld, bytes) && aligned(s->gpu, c->y, y_at, c->y_ld, bytes);
    const uint32_t longs = seats > 1 ? 0 : (uint32_t)t->longs;
    const uint64_t blocks = (uint64_t)longs * tiles + (seats > 1 ? works : (works - 1) / warps + 1);
    const tl_arg args[] = {
        TL_U32(s->rows), TL_U32(seats), TL_U32(cols),    TL_U32(tiles),       TL_U32(works),  TL_U32(wide),
        TL_U32(t->many), TL_U32(longs), TL_MEM(t->list), TL_MEM(t->at),       TL_MEM(t->col), TL_MEM(t->val),
        TL_MEM(t->has),  TL_MEM(c->x),  TL_U64(x_at),    TL_U32(c->x_ld * 4), TL_MEM(c->y),   TL_U64(y_at),
        TL_U64(c->y_ld), TL_F64(alpha), TL_F64(beta)};
    if (t->told != c->cols && from == 0)
        tl_trace(b, "spmm: TF32 for %u columns, %u at a time, %u warp%s for 8 rows, %u for %u long windows",
                 c->cols, tile, seats, seats == 1 ? "" : "s", warps, longs);
    return launch(b, s, kernels[k], blocks, warps * WARP, c->lane, args, TL_COUNT(args));
}

tulle_status tl_tf32_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *c, double alpha, double beta)
{
    tulle_status status = TULLE_OK;
    const int k = kernel_of(c->cols);
    const uint64_t once =
        (uint64_t)(INT32_MAX / 2) / s->tf32.windows * (uint64_t)(ROWS << k); /* columns of one launch */
    for (uint64_t from = 0; from < c->cols; from += once)
        TRY(some_columns(b, s, c, (uint32_t)from, (uint32_t)(c->cols - from < once ? c->cols - from : once),
                         k, alpha, beta));
    s->tf32.told = c->cols;
    s->tf32.used = true;
done:
    return status;
}
