/* SPDX-License-Identifier: MIT
 *
 * rows.c - SpMM with A in CSR: division of rows into pieces, bundles of rows, distribution of threads over
 * columns and entries, and the product for a chunk of columns (kernels/spmm.cl, pieces.cl, twins.cl).
 *
 * Memory: 24 bytes per piece if row lengths differ much, and for each lane the sums of rows in parts; or 24
 * bytes per bundle of rows with the same columns. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_LOG2  = 7, PARTS_LOG2 = 8,     /* rows of more than 2^7 entries are divided, ...             */
    PARTS      = 16,                    /* ... of more than 2^8 if the mean length is at least this   */
    UNEVEN     = 8,                     /* ratio of longest row to mean from which rows are sorted    */
    LONGEST    = 512,                   /* length of the longest row from which they are sorted, too  */
    TWIN_MEAN  = 8,                     /* for shorter rows twins are not searched                    */
    TWIN_LEAST = 2,                     /* strips; narrower chunks read more of A than of X           */
    SHORTER    = 4, SHORT = 8,          /* of rows, by their mean length                              */
    LONG       = 24, LONGER = 32, LONG_PARTS = 64,
    BLOCKS_MAX = 0x7fffffff
};

static tulle_status launch(tl_base *b, tl_gpu_spmm *s, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                           uint32_t shared, int lane, const tl_arg *args, int count)
{
    tl_launch l = {
        .blocks = blocks, .threads = threads, .shared = shared, .lane = lane, .count = count, .args = args};
    return s->gpu->driver->launch(b, s->gpu->device, tl_gpu_kernel(s->gpu, s->types, id), &l);
}

/* ---- row lengths */

static uint64_t look_blocks(const tl_gpu_spmm *s)
{
    return ((uint64_t)s->rows + TL_PIECE_ROWS - 1) / TL_PIECE_ROWS;
}

static uint32_t look_threads(const tl_gpu_spmm *s)
{
    return s->gpu->caps.cpu ? 32 : 256;
}

static uint64_t twin_blocks(const tl_gpu_spmm *s)
{
    return ((uint64_t)s->rows + TL_TWIN_ROWS - 1) / TL_TWIN_ROWS;
}

/* TULLE_SPMM_TWINS=off: no bundles, for tests and measurements. */
static tulle_status look_for_twins(tl_base *b, tl_gpu_spmm *s, tl_dmem totals)
{
    tulle_status status = TULLE_OK;
    tl_row_pieces *r = &s->pieces;
    tl_kernel_id id = TL_K_TWINS_LOOK;
    uint64_t blocks = twin_blocks(s);
    const char *text = tl_env("TULLE_SPMM_TWINS");
    if (s->mean < TWIN_MEAN || (text && strcmp(text, "off") == 0)) return TULLE_OK;
    TRY(tl_gpu_need(b, s->gpu, s->types, &id, 1));
    TRY(tl_dmem_alloc(b, s->gpu, blocks * 4, "numbers of bundles of rows", &r->twin_counts));
    TRY(tl_dmem_alloc(b, s->gpu, blocks * TL_TWIN_WORDS * 4, "first rows of bundles", &r->twin_firsts));
    tl_arg args[] = {TL_U32(s->rows),        TL_U32(tl_team_log2(s->gpu, s->nnz, s->rows)),
                     TL_U64(s->nnz),         TL_MEM(s->ptr),
                     TL_MEM(s->col),         TL_MEM(r->twin_firsts),
                     TL_MEM(r->twin_counts), TL_MEM(totals)};
    TRY(launch(b, s, id, blocks, look_threads(s), 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

tulle_status tl_rows_look(tl_base *b, tl_gpu_spmm *s, const tulle_csr *A, bool trusted)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = s->gpu->driver;
    tl_device *device = s->gpu->device;
    tl_row_pieces *r = &s->pieces;
    tl_kernel_id id = TL_K_PIECES_LOOK;
    tl_dmem totals = {s->gpu->board.handle, TL_BOARD_SUMS}, bad = {s->gpu->board.handle, TL_BOARD_BAD};
    uint32_t *first_bad = (uint32_t *)(s->gpu->note + TL_PIECE_TOTALS);
    s->mean = s->rows ? (uint64_t)(s->nnz / s->rows) : 0;
    r->most_log2 = s->mean < PARTS ? PART_LOG2 : PARTS_LOG2;
    if (s->rows == 0) return TULLE_OK;
    TRY(tl_gpu_need(b, s->gpu, s->types, &id, 1));
    TRY(tl_dmem_alloc(b, s->gpu, look_blocks(s) * TL_PIECE_CLASSES * 4, "lengths of rows", &r->counts));
    TRY(d->fill(b, device, totals, 0, sizeof r->total));
    if (!trusted) {
        TRY(d->fill(b, device, bad, 0xff, 8));
        TRY(tl_check_launch(b, s->gpu, A, s->rows, s->ptr, s->col, bad));
    }
    tl_arg args[] = {TL_U32(s->rows), TL_MEM(s->ptr), TL_U32(r->most_log2), TL_MEM(r->counts),
                     TL_MEM(totals)};
    TRY(launch(b, s, id, look_blocks(s), look_threads(s), 0, 0, args, TL_COUNT(args)));
    TRY(look_for_twins(b, s, totals));
    TRY(d->download(b, device, s->gpu->note, totals, sizeof r->total));
    if (!trusted) TRY(d->download(b, device, first_bad, bad, 8));
    TRY(d->wait(b, device));
    memcpy(r->total, s->gpu->note, sizeof r->total);
    s->most = r->total[TL_PIECE_LONGEST];
    if (!trusted && *first_bad != UINT32_MAX) {
        TRY(tl_check_tell(b, s->gpu, A, "A"));
        status = tl_fail(b, TULLE_EPATTERN, "row %" PRIu32 " of A changed while it was checked", *first_bad);
    }
done:
    return status;
}

/* ---- pieces and bundles */

static bool uneven(const tl_gpu_spmm *s)
{
    return s->most > UNEVEN * (s->mean + 1) || s->most > LONGEST;
}

static tulle_status make_pieces(tl_base *b, tl_gpu_spmm *s)
{
    tulle_status status = TULLE_OK;
    tl_row_pieces *r = &s->pieces;
    tl_kernel_id ids[] = {TL_K_PIECES_PLACE, TL_K_PIECES_FILL};
    uint64_t blocks = look_blocks(s);
    for (int c = 0; c < TL_PIECE_JOINS; c++) r->pieces += r->total[c];
    r->parts = r->total[0];
    r->joined = r->total[TL_PIECE_JOINS];
    if (r->pieces > UINT32_MAX) {
        status = tl_fail(b, TULLE_EOVERFLOW, "%" PRIu64 " pieces of rows: a device takes at most %" PRIu32,
                         r->pieces, UINT32_MAX);
        goto done;
    }
    TRY(tl_gpu_need(b, s->gpu, s->types, ids, TL_COUNT(ids)));
    TRY(tl_dmem_alloc(b, s->gpu, r->pieces * TL_PIECE_BYTES, "pieces of rows", &r->piece));
    TRY(tl_dmem_alloc(b, s->gpu, r->joined * 12, "rows in parts", &r->join));
    tl_arg place[] = {TL_U32(TL_PIECE_JOINS * blocks), TL_U32(blocks), TL_MEM(r->counts)};
    TRY(launch(b, s, ids[0], 2, look_threads(s), 0, 0, place, TL_COUNT(place)));
    tl_arg fill[] = {TL_U32(s->rows),   TL_MEM(s->ptr),   TL_U32(r->most_log2),
                     TL_MEM(r->counts), TL_MEM(r->piece), TL_MEM(r->join)};
    TRY(launch(b, s, ids[1], blocks, look_threads(s), 0, 0, fill, TL_COUNT(fill)));
    tl_trace(b,
             "sparse times dense: rows of up to %" PRIu64 " entries, %" PRIu64 " on average, in %" PRIu64
             " pieces, %" PRIu64 " rows in %" PRIu64 " parts",
             s->most, s->mean, r->pieces, r->joined, r->parts);
done:
    return status;
}

/* Bundles are used if there are few of them compared to rows. */
static bool bundled(const tl_gpu_spmm *s)
{
    return s->pieces.twin_firsts.handle && s->pieces.total[TL_PIECE_BUNDLES] * 10 <= (uint64_t)s->rows * 6;
}

static tulle_status make_bundles(tl_base *b, tl_gpu_spmm *s)
{
    tulle_status status = TULLE_OK;
    tl_row_pieces *r = &s->pieces;
    tl_kernel_id ids[] = {TL_K_PIECES_PLACE, TL_K_TWINS_FILL};
    uint64_t blocks = twin_blocks(s);
    r->pieces = r->total[TL_PIECE_BUNDLES];
    TRY(tl_gpu_need(b, s->gpu, s->types, ids, TL_COUNT(ids)));
    TRY(tl_dmem_alloc(b, s->gpu, r->pieces * TL_PIECE_BYTES, "bundles of rows", &r->piece));
    tl_arg place[] = {TL_U32(blocks), TL_U32(0), TL_MEM(r->twin_counts)};
    TRY(launch(b, s, ids[0], 1, look_threads(s), 0, 0, place, TL_COUNT(place)));
    tl_arg fill[] = {TL_U32(s->rows), TL_MEM(s->ptr), TL_MEM(r->twin_firsts), TL_MEM(r->twin_counts),
                     TL_MEM(r->piece)};
    TRY(launch(b, s, ids[1], blocks, look_threads(s), 0, 0, fill, TL_COUNT(fill)));
    r->twins = true;
    tl_trace(b, "sparse times dense: %" PRId64 " rows, those with the same columns in %" PRIu64 " bundles",
             s->rows, r->pieces);
done:
    return status;
}

tulle_status tl_rows_make(tl_base *b, tl_gpu_spmm *s)
{
    tulle_status status = TULLE_OK;
    tl_row_pieces *r = &s->pieces;
    tl_dmem *const passing[] = {&r->counts, &r->twin_counts, &r->twin_firsts};
    if (s->rows > 0 && uneven(s)) TRY(make_pieces(b, s));
    else if (s->rows > 0 && bundled(s)) TRY(make_bundles(b, s));
    for (int i = 0; i < TL_COUNT(passing); i++) {
        tl_dmem_free(s->gpu, *passing[i]);
        *passing[i] = (tl_dmem){0, 0};
    }
done:
    return status;
}

void tl_rows_done(tl_gpu_spmm *s)
{
    tl_row_pieces *r = &s->pieces;
    const tl_dmem all[] = {r->counts, r->twin_counts, r->twin_firsts, r->piece, r->join};
    for (int i = 0; i < TL_COUNT(all); i++) tl_dmem_free(s->gpu, all[i]);
    for (int i = 0; i < TL_LANES; i++) tl_dmem_free(s->gpu, r->sums[i]);
    memset(r, 0, sizeof *r);
}

/* ---- shapes */

static bool in_pieces(const tl_gpu_spmm *s)
{
    return s->pieces.piece.handle && !s->pieces.twins;
}

/* The number of threads that keeps the device busy. */
static uint64_t full(const tl_gpu_spmm *s)
{
    return (uint64_t)s->gpu->caps.processors * s->gpu->caps.threads_processor;
}

/* Are there so few pieces that the longest one determines the time? */
static bool few_pieces(const tl_gpu_spmm *s, uint64_t strips)
{
    return in_pieces(s) && s->mean < PARTS && s->pieces.pieces * strips < 6 * full(s);
}

/* All choices below were measured on an H200.
 *
 * Long rows and bundles stage A in shared memory; other rows, and rows computed by few threads, process eight
 * entries of A at once.  If a row of Y takes 1 KB, only rows of LONGER entries are staged. */
static tl_rows_way way_of(const tl_gpu_spmm *s, uint64_t strips)
{
    if (s->pieces.twins && strips >= TWIN_LEAST) return TL_IN_BUNDLES;
    if (in_pieces(s)) {
        bool shared = strips > 2 && (s->mean >= LONG || (strips > 4 && few_pieces(s, strips)));
        return shared ? TL_STAGED : TL_BY_STRIPS;
    }
    return s->mean < LONG || strips <= 4 || (strips > 32 && s->mean < LONGER) ? TL_BY_EIGHTS : TL_STAGED;
}

/* Two strips per thread if rows are too short to have enough loads of X in flight otherwise; preferred if
 * values are wide or there are many strips. */
static bool two_strips(const tl_gpu_spmm *s, uint64_t strips, tl_rows_way way)
{
    bool narrow = tl_type_size(s->type) == 4;
    if (strips % 2) return false;
    if (way == TL_IN_BUNDLES) return strips >= (narrow ? 32 : 8);
    if (strips <= 4) return way == TL_BY_EIGHTS && s->mean <= (strips > 2 ? SHORT : SHORTER);
    if (few_pieces(s, strips)) return false;
    if (narrow) return s->mean < (strips < 32 ? LONG : LONGER) || strips > 32;
    return in_pieces(s) || s->mean < LONGER || strips > 16;
}

/* The columns are divided into tiles for pieces of long rows, and for rows that are neither short nor long,
 * so that the part of X in use stays in the cache. */
static uint32_t tile_log2(const tl_gpu_spmm *s, uint64_t strips)
{
    bool wide = tl_type_size(s->type) > 4;
    if (s->gpu->caps.cpu) return 3;
    if (in_pieces(s) && s->mean >= PARTS && strips > 16) return s->mean >= LONG_PARTS || wide ? 3 : 4;
    if (!in_pieces(s) && !s->pieces.twins && s->mean > SHORT && s->mean < LONG) return 3;
    return 5;
}

/* More threads per row if the rows, or the longest ones, are long; for pieces until the device is full. */
static bool more_threads(const tl_gpu_spmm *s, const tl_rows_shape *shape, uint64_t strips)
{
    uint64_t length = s->most / 2 > s->mean ? s->most / 2 : s->mean;
    if (shape->way == TL_BY_EIGHTS) return false;
    if (in_pieces(s)) {
        bool longer = s->mean >= LONG_PARTS;
        uint64_t threads = s->pieces.pieces << (shape->c_log2 + shape->k_log2);
        if (strips <= 2 && shape->k_log2 == 0) return true;
        return shape->k_log2 < (longer ? 3 : 2) && threads < full(s) + (longer ? 0 : full(s) / 5);
    }
    if (shape->way == TL_IN_BUNDLES && shape->k_log2 >= 3) return false;
    return ((shape->way == TL_IN_BUNDLES && strips <= 4 ? 32u : 64u) << shape->k_log2) < length;
}

/* Threads per block, and rows that a team computes one after the other, so that a block of short rows has
 * enough work. */
static void blocks_of(const tl_gpu_spmm *s, uint64_t strips, tl_rows_shape *shape)
{
    bool narrow_chunk = strips < 32;
    shape->block = shape->way == TL_STAGED || shape->way == TL_IN_BUNDLES || !narrow_chunk ? 128 : 64;
    if (shape->way == TL_BY_EIGHTS) {
        shape->block = s->mean <= SHORT ? 64 : s->mean < LONG ? 128 : 256;
        shape->turns = s->mean <= SHORTER || (!narrow_chunk && (s->mean <= SHORT || s->mean >= LONG)) ? 4 : 2;
        while (shape->turns > 1 && (uint64_t)s->rows << shape->c_log2 < 2 * shape->turns * full(s))
            shape->turns /= 2;
    }
    if (s->gpu->caps.cpu) shape->block = 32;
}

static tl_rows_shape shape_of(const tl_gpu_spmm *s, uint64_t strips, bool whole)
{
    const tl_caps *caps = &s->gpu->caps;
    uint32_t most_log2 = tile_log2(s, strips);
    tl_rows_shape shape = {.strips = 1, .turns = 1};
    if (s->forced.block) {
        shape = s->forced;
        if (!whole || strips % (shape.strips << shape.c_log2)) shape.strips = 1;
        if (whole && s->pieces.twins) shape.way = TL_IN_BUNDLES;
        else if (!whole) shape.way = TL_BY_VALUES;
        else if (shape.way == TL_BY_EIGHTS && (in_pieces(s) || shape.k_log2)) shape.way = TL_BY_STRIPS;
        if (shape.way != TL_BY_EIGHTS) shape.turns = 1;
        return shape;
    }
    shape.way = whole ? way_of(s, strips) : TL_BY_VALUES;
    if (whole && two_strips(s, strips, shape.way)) shape.strips = 2;
    shape.c_log2 = tl_log2_up(strips / shape.strips);
    if (shape.c_log2 > most_log2) shape.c_log2 = most_log2;
    while (shape.strips > 1 && strips % (shape.strips << shape.c_log2)) shape.c_log2--;
    if (!whole && strips % (4u << shape.c_log2) == 0) shape.strips = 4;
    blocks_of(s, strips, &shape);
    while (shape.c_log2 + shape.k_log2 < 5 && !caps->cpu && more_threads(s, &shape, strips)) shape.k_log2++;
    return shape;
}

/* ---- one chunk */

/* Strips require X, Y and their rows to be aligned to 16 bytes, as a cl_mem is. */
static bool aligned(const tl_gpu_spmm *s, tl_dmem m, uint64_t at, uint64_t ld, uint64_t width)
{
    bool pointer = s->gpu->driver == &tl_driver_cuda;
    return at % width == 0 && ld % width == 0 && (!pointer || (m.handle + m.offset) % 16 == 0);
}

tulle_status tl_rows_room(tl_base *b, tl_gpu_spmm *s, int lane, uint64_t cols)
{
    tulle_status status = TULLE_OK;
    tl_row_pieces *r = &s->pieces;
    uint64_t bytes = r->parts * cols * tl_type_size(s->type);
    if (bytes <= r->sums_bytes[lane]) return TULLE_OK;
    tl_dmem_free(s->gpu, r->sums[lane]);
    r->sums[lane] = (tl_dmem){0, 0};
    r->sums_bytes[lane] = 0;
    TRY(tl_dmem_alloc(b, s->gpu, bytes, "sums of parts of rows", &r->sums[lane]));
    r->sums_bytes[lane] = bytes;
done:
    return status;
}

/* Bytes of shared memory per thread: four columns, and four values of each row. */
static uint32_t quad_bytes(const tl_gpu_spmm *s, uint32_t rows)
{
    return 4 * ((uint32_t)s->types.idx / 8 + rows * (uint32_t)tl_type_size(s->type));
}

/* Columns from..from+cols in strips of `width` values; whole: those are 16 bytes. */
static tulle_status some_columns(tl_base *b, tl_gpu_spmm *s, const tl_chunk *k, uint32_t from, uint32_t cols,
                                 uint32_t width, bool whole, const tl_arg factor[4])
{
    static const tl_kernel_id kernels[TL_ROWS_WAYS][5] = {
        [TL_BY_VALUES] = {[1] = TL_K_VALUES_1, [4] = TL_K_VALUES_4},
        [TL_BY_STRIPS] = {[1] = TL_K_STRIPS_1, [2] = TL_K_STRIPS_2},
        [TL_STAGED] = {[1] = TL_K_STAGED_1, [2] = TL_K_STAGED_2},
        [TL_BY_EIGHTS] = {[1] = TL_K_EIGHTS_1, [2] = TL_K_EIGHTS_2},
        [TL_IN_BUNDLES] = {[1] = TL_K_TWINS_1, [2] = TL_K_TWINS_2}};
    tulle_status status = TULLE_OK;
    const tl_row_pieces *r = &s->pieces;
    tl_rows_shape shape = shape_of(s, cols / width, whole);
    bool bundles = shape.way == TL_IN_BUNDLES, staged = bundles || shape.way == TL_STAGED;
    tl_dmem piece = r->twins && !bundles ? (tl_dmem){0, 0} : r->piece;
    uint64_t count = piece.handle ? r->pieces : (uint64_t)s->rows;
    uint32_t teams = shape.block >> (shape.c_log2 + shape.k_log2), tile = shape.strips << shape.c_log2;
    uint64_t each = (uint64_t)teams * shape.turns, tile_blocks = (count + each - 1) / each,
             tiles = (cols / width + tile - 1) / tile;
    if (tile_blocks * tiles > BLOCKS_MAX) {         /* two launches, each for half of the columns */
        uint32_t half = cols / width / 2 * width;
        TRY(some_columns(b, s, k, from, half, width, whole, factor));
        TRY(some_columns(b, s, k, from + half, cols - half, width, whole, factor));
        goto done;
    }
    tl_kernel_id id = kernels[shape.way][shape.strips];
    uint32_t shared =
        staged && s->gpu->caps.warp ? shape.block * quad_bytes(s, bundles ? TL_TWIN_MOST : 1) : 0;
    const tl_arg args[] = {TL_U32(count),
                           TL_MEM(piece),
                           TL_MEM(s->ptr),
                           TL_MEM(s->col),
                           TL_MEM(s->val),
                           TL_U64(s->nnz),
                           TL_MEM(k->x),
                           TL_U64((k->x_at + from) / width),
                           TL_U32(k->x_ld * tl_type_size(s->type)),
                           TL_MEM(k->y),
                           TL_U64((k->y_at + from) / width),
                           TL_U64(k->y_ld / width),
                           TL_U32(cols / width),
                           TL_U32(shape.c_log2),
                           TL_U32(shape.k_log2),
                           TL_U32(tile_blocks),
                           TL_U32(shape.turns),
                           TL_MEM(r->sums[k->lane]),
                           factor[0],
                           factor[1],
                           factor[2],
                           factor[3]};
    TRY(launch(b, s, id, tile_blocks * tiles, shape.block, shared, k->lane, args, TL_COUNT(args)));
    if (r->joined) {
        uint32_t c_log2 = tl_log2_up(cols), most = s->gpu->caps.cpu ? 3 : 5,
                 threads = s->gpu->caps.cpu ? 32 : 256;
        if (c_log2 > most) c_log2 = most;
        uint64_t join_tiles = ((uint64_t)cols + (1u << c_log2) - 1) >> c_log2;
        const tl_arg join[] = {TL_MEM(r->join),
                               TL_MEM(r->sums[k->lane]),
                               TL_U32(cols),
                               TL_MEM(k->y),
                               TL_U64(k->y_at + from),
                               TL_U64(k->y_ld),
                               TL_U32(c_log2),
                               TL_U32(r->joined),
                               factor[0],
                               factor[1],
                               factor[2],
                               factor[3]};
        TRY(launch(b, s, TL_K_JOIN, r->joined * join_tiles, threads, 0, k->lane, join, TL_COUNT(join)));
    }
done:
    return status;
}

tulle_status tl_rows_run(tl_base *b, tl_gpu_spmm *s, const tl_chunk *k, tl_c64 alpha, tl_c64 beta)
{
    static const tl_kernel_id ids[] = {TL_K_STRIPS_1, TL_K_STRIPS_2, TL_K_STAGED_1, TL_K_STAGED_2,
                                       TL_K_EIGHTS_1, TL_K_EIGHTS_2, TL_K_TWINS_1,  TL_K_TWINS_2,
                                       TL_K_VALUES_1, TL_K_VALUES_4, TL_K_JOIN};
    tulle_status status = TULLE_OK;
    uint32_t width = (uint32_t)(16 / tl_type_size(s->type));
    const tl_arg factor[4] = {TL_F64(alpha.re), TL_F64(alpha.im), TL_F64(beta.re), TL_F64(beta.im)};
    if (s->rows == 0 || k->cols == 0) return TULLE_OK;
    TRY(tl_gpu_need(b, s->gpu, s->types, ids, TL_COUNT(ids)));
    TRY(tl_rows_room(b, s, k->lane, k->cols));
    bool whole = aligned(s, k->x, k->x_at, k->x_ld, width) && aligned(s, k->y, k->y_at, k->y_ld, width);
    uint32_t strips = whole ? k->cols / width * width : 0;
    if (strips) TRY(some_columns(b, s, k, 0, strips, width, true, factor));
    if (strips < k->cols) TRY(some_columns(b, s, k, strips, k->cols - strips, 1, false, factor));
done:
    return status;
}
