/* SPDX-License-Identifier: MIT
 *
 * ellr.c - A in ELLPACK-R on the device, and FastSpMM: T threads per row, Lc columns at a time
 * (kernels/ellr.cl).
 *
 * Ortega, Vazquez, Garcia, Garzon: FastSpMM, an efficient library for sparse matrix matrix product on GPUs
 * (The Computer Journal 57, 2014).  For T and the block it refers to a model of Vazquez, Fernandez, Garzon
 * (Parallel Computing 38, 2012); the one below is our own.
 *
 * Device memory: T * N' * ceil(longest/T) columns and values and N' lengths of 4 bytes, where N' is the
 * number of rows, rounded up so that T*N' columns are whole cache lines of 128 bytes.  A single long row pads
 * all rows to its length; the memory is therefore computed first, and if it is too much, A stays in CSR.
 * Padding takes memory but no time, since no thread reads it. */
#include "gpu/spmm.h"
#include <inttypes.h>

enum {
    MOST_THREADS = 32, MOST_COLUMNS = 32, MOST_BLOCK = 256,     /* of the kernels */
    LINE = 32,                          /* columns in a cache line of 128 bytes           */
    SPAN = 64,                          /* groups of entries per thread, as in ellr.cl    */
    PADDED_MOST = 4,                    /* entries with padding per entry, at most        */
    PADDED_FREE = 16 << 20,             /* bytes of padding that are always allowed       */
    ENTRIES_EACH = 4,                   /* entries of a row that justify another thread   */
    UNEVEN = 4,                         /* ratio of the longest row to the mean           */
    SUMS_BYTES = 64,                    /* sums of a thread, in registers                 */
    BLOCK = 128, BLOCK_LEAST = 64,
    ARRAYS = 3                          /* of ELLPACK-R                              */
};

static const tl_kernel_id kernels[] = {TL_K_ELLR_1, TL_K_ELLR_2,  TL_K_ELLR_4,
                                       TL_K_ELLR_8, TL_K_ELLR_16, TL_K_ELLR_32};

static bool power_of_two(uint32_t x, uint32_t most)
{
    return x >= 1 && x <= most && (x & (x - 1)) == 0;
}

static uint32_t block_most(const tl_caps *caps)
{
    return caps->threads_block < MOST_BLOCK ? caps->threads_block : MOST_BLOCK;
}

/* ---- the model
 *
 * T: a thread with fewer than ENTRIES_EACH entries spends more time on the reduction than on products, so T
 * is at most a quarter of the mean length.  It is increased, at most to the mean length (beyond which
 * threads would idle), in two cases: if there are too few rows to fill the device with threads (half of what
 * it can hold keeps memory busy), and if row lengths differ much, as a warp with fewer rows waits less for
 * the longest of them.  On a CPU, which runs the threads of a block one after the other, T is 1; where the
 * reduction goes through shared memory, each step takes two barriers, so T is at most 4.
 *
 * Lc: the columns whose sums take 64 bytes (16 float, 8 double): E and J are fetched once for all of them,
 * and X is read in whole sectors of 32 bytes.  Twice as many need more registers, and so leave fewer threads
 * in flight to hide the latency of X.  The paper finds 4 to 8 best for float on devices of 2010, with little
 * to gain beyond.  Never more than there are columns, rounded up.
 *
 * Block: 128 threads; 64 if there would be fewer than two blocks per multiprocessor.
 *
 * These numbers are estimates, not measured; `tulle tune` measures them for a matrix and a device. */

static uint32_t model_threads(const tl_caps *caps, uint64_t rows, uint64_t mean, uint64_t most)
{
    const uint64_t fill = (uint64_t)caps->processors * caps->threads_processor / 2;
    const uint32_t limit = caps->cpu ? 1 : caps->warp ? MOST_THREADS : 4;
    uint32_t t = 1;
    while (2 * t <= limit && 2 * (uint64_t)t * ENTRIES_EACH <= mean) t *= 2;
    while (2 * t <= limit && 2 * (uint64_t)t <= mean && rows * t < fill) t *= 2;
    if (most / UNEVEN > mean && 2 * t <= limit && 2 * (uint64_t)t <= mean) t *= 2;
    return t;
}

static uint32_t model_columns(tulle_type type, uint32_t cols)
{
    uint32_t lc = 1, most = (uint32_t)(SUMS_BYTES / tl_type_size(type));
    while (lc < most && lc < cols) lc *= 2;
    return lc;
}

static uint32_t model_block(const tl_caps *caps, uint64_t rows, uint32_t threads)
{
    uint32_t block = block_most(caps) < BLOCK ? block_most(caps) : BLOCK;
    while (block / 2 >= BLOCK_LEAST && rows * threads < 2 * (uint64_t)caps->processors * block) block /= 2;
    return block;
}

tl_ellr_shape tl_ellr_choice(const tl_gpu_spmm *s, uint32_t cols)
{
    tl_ellr_shape shape = s->ellr.shape;
    if (!shape.columns) shape.columns = model_columns(s->type, cols);
    return shape;
}

tulle_status tl_ellr_check(tl_base *b, const tl_gpu *gpu, tl_ellr_shape w)
{
    const uint32_t warp = gpu->caps.warp, most = block_most(&gpu->caps);
    const uint32_t least = w.threads > warp ? w.threads : warp ? warp : 1;
    if (w.threads && !power_of_two(w.threads, MOST_THREADS))
        return tl_fail(b, TULLE_EINVAL, "%u threads a row: a power of two from 1 to %d is possible",
                       w.threads, MOST_THREADS);
    if (w.columns && !power_of_two(w.columns, MOST_COLUMNS))
        return tl_fail(b, TULLE_EINVAL, "%u columns at a time: a power of two from 1 to %d is possible",
                       w.columns, MOST_COLUMNS);
    if (w.block && (w.block % least || w.block > most))
        return tl_fail(b, TULLE_EINVAL, "blocks of %u threads: multiples of %u up to %u are possible on %s",
                       w.block, least, most, gpu->name);
    return TULLE_OK;
}

/* ---- A */

/* Would A take too much memory in ELLPACK-R?  If so, leaves a message. */
static bool blows_up(tl_base *b, const tl_gpu_spmm *s, uint64_t pitch, uint32_t threads, uint64_t groups,
                     uint64_t *bytes)
{
    const uint64_t each = (uint64_t)s->types.idx / 8 + tl_type_size(s->type);
    const double padded = (double)pitch * threads * (double)groups,
                 need = padded * (double)each + 4.0 * (double)pitch;
    const uint64_t has = tl_spmm_room(s, need);
    const double times = padded / (s->nnz ? (double)s->nnz : 1.0);
    const bool wasteful = times > PADDED_MOST && need > PADDED_FREE;
    *bytes = need < 9e18 ? pitch * threads * groups * each + 4 * pitch : UINT64_MAX;
    if (!wasteful && need + ARRAYS * TL_ALIGN <= (double)has && s->most < UINT32_MAX - MOST_THREADS)
        return false;
    if (wasteful)
        tl_trace(b,
                 "spmm: not in ELLPACK-R: %" PRId64
                 " entries would become %.0f, %.1f times as many (at most %d times, "
                 "or %d MB), %.0f bytes: the longest row has %" PRIu64 " entries, the mean is %" PRIu64
                 "; CSR",
                 s->nnz, padded, times, PADDED_MOST, PADDED_FREE >> 20, need, s->most, s->mean);
    else
        tl_trace(b, "spmm: not in ELLPACK-R: it would take %.0f bytes of device memory, %" PRIu64 " %s; CSR",
                 need, has, s->limit ? "are allowed" : "can be had");
    return true;
}

tulle_status tl_ellr_fill(tl_base *b, tl_gpu_spmm *s)
{
    tulle_status status = TULLE_OK;
    static const tl_kernel_id id = TL_K_ELLR_BUILD;
    tl_ellr *e = &s->ellr;
    const uint32_t threads = block_most(&s->gpu->caps) < BLOCK ? e->shape.block : BLOCK,
                   team = e->shape.threads;
    const uint64_t groups = (e->most + team - 1) / team;
    const uint64_t spans = groups > SPAN ? (groups + SPAN - 1) / SPAN : 1, teams = threads / team;
    const uint64_t blocks = (e->pitch * spans + teams - 1) / teams;
    const tl_arg args[] = {TL_U64(s->rows),    TL_U64(e->pitch), TL_U32(team),   TL_U32(groups),
                           TL_U64(spans),      TL_MEM(s->ptr),   TL_MEM(s->col), TL_MEM(s->val),
                           TL_MEM(e->lengths), TL_MEM(e->col),   TL_MEM(e->val)};
    const tl_launch l = {.blocks = blocks < INT32_MAX ? blocks : INT32_MAX,
                         .threads = threads,
                         .count = TL_COUNT(args),
                         .args = args};
    TRY(tl_gpu_need(b, s->gpu, s->types, &id, 1));
    TRY(tl_gpu_need(b, s->gpu, s->types, kernels, TL_COUNT(kernels)));
    if (s->rows) TRY(s->gpu->driver->launch(b, s->gpu->device, tl_gpu_kernel(s->gpu, s->types, id), &l));
done:
    return status;
}

static tulle_status allocate(tl_base *b, tl_gpu_spmm *s, uint64_t entries)
{
    tulle_status status = TULLE_OK;
    tl_ellr *e = &s->ellr;
    TRY(tl_dmem_alloc(b, s->gpu, e->pitch * 4, "lengths of rows", &e->lengths));
    TRY(tl_dmem_alloc(b, s->gpu, entries * (uint64_t)(s->types.idx / 8), "columns in ELLPACK-R", &e->col));
    TRY(tl_dmem_alloc(b, s->gpu, entries * tl_type_size(s->type), "values in ELLPACK-R", &e->val));
done:
    return status;
}

tulle_status tl_ellr_make(tl_base *b, tl_gpu_spmm *s, tl_ellr_shape wanted)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &s->gpu->caps;
    const uint64_t rows = (uint64_t)s->rows;
    tl_ellr *e = &s->ellr;
    *e = (tl_ellr){.most = s->most, .shape = wanted};
    TRY(tl_ellr_check(b, s->gpu, wanted));
    if (!e->shape.threads) {
        e->shape.threads = model_threads(caps, rows, s->mean, s->most);
        while (wanted.block % e->shape.threads) e->shape.threads /= 2;
    }
    if (!e->shape.block) e->shape.block = model_block(caps, rows, e->shape.threads);
    const uint32_t t = e->shape.threads, whole = LINE / t;
    const uint64_t groups = (s->most + t - 1) / t;
    e->pitch = (rows + whole - 1) / whole * whole;
    if (blows_up(b, s, e->pitch, t, groups, &e->bytes)) goto done;
    status = allocate(b, s, t * e->pitch * groups);
    if (status == TULLE_ENOMEM) {
        tl_trace(b, "spmm: not in ELLPACK-R: %s; CSR", b->error);
        tl_ellr_done(s);
        status = TULLE_OK;
        goto done;
    }
    if (status == TULLE_OK) status = tl_ellr_fill(b, s);
    if (status == TULLE_OK)
        tl_trace(b,
                 "spmm: ELLPACK-R, %u threads a row, blocks of %u, %" PRIu64 " rows of at most %" PRIu64
                 " entries (mean %" PRIu64 "), %" PRIu64 " bytes",
                 t, e->shape.block, e->pitch, s->most, s->mean, e->bytes);
    else
        tl_ellr_done(s);
done:
    return status;
}

void tl_ellr_done(tl_gpu_spmm *s)
{
    const tl_dmem mem[] = {s->ellr.lengths, s->ellr.col, s->ellr.val};
    for (int i = 0; i < TL_COUNT(mem); i++) tl_dmem_free(s->gpu, mem[i]);
    s->ellr.lengths = s->ellr.col = s->ellr.val = (tl_dmem){0, 0};
}

/* ---- Y = alpha*A*X + beta*Y */

/* Is every row of a tile aligned to so many bytes?  Blocks of the pool and cl_mem are; a caller's CUDA
 * pointer may not be. */
static bool aligned(const tl_gpu *gpu, tl_dmem mem, uint64_t at, uint64_t ld, uint64_t value, uint64_t bytes)
{
    const uint64_t base = gpu->driver == &tl_driver_cuda ? mem.handle : 0;
    return (base + mem.offset + at * value) % bytes == 0 && ld * value % bytes == 0;
}

tulle_status tl_ellr_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *chunk, tl_c64 alpha, tl_c64 beta)
{
    tl_gpu *gpu = s->gpu;
    tl_ellr *e = &s->ellr;
    const tl_ellr_shape shape = tl_ellr_choice(s, chunk->cols);
    const uint64_t value = tl_type_size(s->type), row = shape.columns * value;
    const bool x_wide = aligned(gpu, chunk->x, chunk->x_at, chunk->x_ld, value, row < 16 ? row : 16);
    const bool y_wide = aligned(gpu, chunk->y, chunk->y_at, chunk->y_ld, value, 16) && row >= 16;
    const uint32_t tiles = (chunk->cols + shape.columns - 1) / shape.columns,
                   teams = shape.block / shape.threads;
    const uint64_t works = ((uint64_t)s->rows + teams - 1) / teams * tiles;
    const tl_arg args[] = {TL_U64(s->rows),
                           TL_U64(e->pitch),
                           TL_U32(tl_log2_up(shape.threads)),
                           TL_U32(chunk->cols),
                           TL_U32(tiles),
                           TL_U64(works),
                           TL_U32((x_wide ? 1 : 0) + (y_wide ? 2 : 0)),
                           TL_MEM(e->lengths),
                           TL_MEM(e->col),
                           TL_MEM(e->val),
                           TL_MEM(chunk->x),
                           TL_U64(chunk->x_at),
                           TL_U64(chunk->x_ld),
                           TL_MEM(chunk->y),
                           TL_U64(chunk->y_at),
                           TL_U64(chunk->y_ld),
                           TL_F64(alpha.re),
                           TL_F64(alpha.im),
                           TL_F64(beta.re),
                           TL_F64(beta.im)};
    const tl_launch l = {.blocks = works < INT32_MAX ? works : INT32_MAX,
                         .threads = shape.block,
                         .lane = chunk->lane,
                         .count = TL_COUNT(args),
                         .args = args};
    if (works == 0) return TULLE_OK;
    if (e->told != chunk->cols)
        tl_trace(b, "spmm: ELLPACK-R in the shape %u,%u,%u (T, Lc, block) for %u columns", shape.threads,
                 shape.columns, shape.block, chunk->cols);
    e->told = chunk->cols;
    return gpu->driver->launch(b, gpu->device,
                               tl_gpu_kernel(gpu, s->types, kernels[tl_log2_up(shape.columns)]), &l);
}
