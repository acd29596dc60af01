/* SPDX-License-Identifier: MIT
 *
 * chunks.c - passes X and Y, on host or device and in either order, to the kernels as chunks of columns that
 * are row-major on the device: Algorithms 2 and 3 of FastSpMM (Ortega et al., 2014).
 *
 *   on the device, row-major       used in place
 *   on the device, column-major    a chunk is transposed into workspace and, for Y, back
 *   on the host, row-major         host threads gather the rows of a chunk in parts, which are sent to the
 *                                  device; Y is returned in the same way
 *   on the host, column-major      the same for columns; the device transposes them
 *
 * If both are on the device, all work is enqueued chunk after chunk.  Otherwise chunk i uses lane 1 + i%2,
 * and parts are transferred through a ring of pinned slots: the host fills a slot as soon as the previous
 * copy from it is complete, and unpacks a returned part when the slot is needed again; it waits for nothing
 * else.  So gathering on the host, copies in both directions and kernels overlap.  TULLE_SPMM_OVERLAP=off:
 * one lane and no overlap (Algorithm 2); 1 to 3: so many lanes.  TULLE_SPMM_CHUNK=n: chunks of n columns, if
 * memory allows.
 *
 * Device memory: for each lane, a chunk of each of X and Y unless it is used in place, two if it is
 * column-major on the host; as many columns as the limit allows, at least one.  Host memory, pinned and kept
 * with the device: SLOTS times at most SLOT_MOST bytes. */
#include "cpu/spmm.h"
#include "gpu/spmm.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAYS_MOST = TL_LANES - 1, SLOTS = TL_FLAGS / 2,
    SLOT_LEAST = 64 << 10, SLOT_MOST = TL_COLUMNS_MOST,
    SMALL = 1 << 20,                    /* bytes; smaller host matrices do not use several lanes    */
    VECTOR = 16,                        /* bytes of a vector load                                    */
    LINE = 2048,                        /* bytes of a row of a chunk, below which the host gathers at half
                                         * the speed */
    LINK = 64,                          /* ratio of bandwidths: device memory to host link          */
    CHUNKS = 16,                        /* number of chunks, if there are enough columns            */
    CHUNK_MOST = 1 << 30,               /* bytes of X and Y in a chunk from the host                */
    TURNED_MOST = 1 << 30,              /* bytes of a chunk that is only transposed                 */
    TURNED_COLUMNS = 128,               /* but such a chunk has at least so many columns            */
    COLUMNS_MOST = 1 << 30,
    THREADS = 256, TILE_LOG2 = 10       /* of kernels/dense.cl                                      */
};

typedef enum { IN_PLACE, TRANSPOSED, FROM_HOST } method;

typedef struct operand {
    tulle_dense M;
    uint64_t    at;                     /* offset of the first value, in values                     */
    method      method;
    tl_dmem     chunk[WAYS_MOST];
} operand;

/* The part of a matrix in a slot: `length` values, from `at` on, of each of `lines` lines.  A line is a row
 * of a row-major matrix, or a column of a column-major one. */
typedef struct part {
    int64_t line, lines, at, length;
} part;

typedef struct slot {
    char *p;
    bool  busy;                         /* in use by a copy whose flag is set behind it             */
    bool  back;                         /* the copy returns this part of Y                          */
    part  part;
} slot;

typedef struct run {
    tl_base         *b;
    tl_gpu          *gpu;
    const tl_driver *driver;
    tl_device       *device;
    tl_gpu_spmm     *s;
    tl_types         types;
    tl_c64           alpha, beta;
    operand          X, Y;
    size_t           size;              /* of a value                                               */
    int64_t          cols, width;       /* of Y, of a chunk                                         */
    int              ways;              /* lanes                                                    */
    bool             staged;            /* X or Y is on the host                                    */
    bool             overlap;
    slot             slot[SLOTS];
    int              slots, next;
    uint64_t         slot_bytes;
} run;

static bool is_zero(tl_c64 v)
{
    return v.re == 0 && v.im == 0;
}

/* Must the device transpose it? */
static bool is_transposed(const operand *m)
{
    return m->method != IN_PLACE && m->M.order == TULLE_BY_COLS;
}

/* The leading dimension of a chunk, in values; kernels use loads of 16 bytes if every row is aligned to
 * that. */
static int64_t pitch_of(const operand *m, int64_t cols)
{
    int64_t vector = VECTOR / (int64_t)tl_type_size(m->M.val_type);
    return is_transposed(m) && cols > vector ? (cols + vector - 1) / vector * vector : cols;
}

/* Bytes of a chunk in the layout for the kernels. */
static uint64_t seen_bytes(const operand *m, int64_t cols)
{
    return (uint64_t)m->M.rows * (uint64_t)pitch_of(m, cols) * tl_type_size(m->M.val_type);
}

/* Are columns sent from the host and transposed on the device?  A single column needs no transpose. */
static bool has_two(const operand *m, int64_t cols)
{
    return m->method == FROM_HOST && is_transposed(m) && cols > 1;
}

/* The columns from the host before the transpose, stored after the chunk. */
static tl_dmem untransposed(const operand *m, int way, int64_t cols)
{
    if (!has_two(m, cols)) return m->chunk[way];
    return (tl_dmem){m->chunk[way].handle,
                     m->chunk[way].offset + (seen_bytes(m, cols) + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN};
}

static int lane_of(const run *r, int way)
{
    return r->ways > 1 ? 1 + way : 0;
}

static int64_t chunks_of(const run *r)
{
    return (r->cols - 1) / r->width + 1;
}

/* ---- kernels of dense.cl */

static const tl_kernel_id needed[] = {TL_K_TURN, TL_K_SCALE};

static uint64_t blocks_for(const tl_gpu *gpu, uint64_t wanted)
{
    uint64_t most = (uint64_t)gpu->caps.processors * 32;
    return wanted < most ? wanted : most;
}

static uint32_t threads_for(const tl_gpu *gpu)
{
    return gpu->caps.threads_block < THREADS ? gpu->caps.threads_block : THREADS;
}

/* Lines of a tile: 32, more if lines are short, fewer if there are few. */
static uint32_t tile_lines(uint64_t lines, uint64_t length)
{
    uint32_t high = tl_log2_up(lines), wide = tl_log2_up(length);
    if (wide < 5) high = TILE_LOG2 - (wide < 2 ? 2 : wide);
    else if (high > 5) high = 5;
    return high < 2 ? 2 : high;
}

typedef struct lines { tl_dmem mem; uint64_t at, ld; } lines;

/* Transposes `count` lines of `length` values. */
static tulle_status transpose(const run *r, int lane, int64_t count, int64_t length, lines from, lines to)
{
    uint32_t high = tile_lines((uint64_t)count, (uint64_t)length), wide = TILE_LOG2 - high;
    uint64_t tiles = ((((uint64_t)count - 1) >> high) + 1) * ((((uint64_t)length - 1) >> wide) + 1);
    const tl_arg args[] = {TL_U64(count),   TL_U64(length), TL_U32(high),  TL_MEM(from.mem), TL_U64(from.at),
                           TL_U64(from.ld), TL_MEM(to.mem), TL_U64(to.at), TL_U64(to.ld)};
    if (count == 0 || length == 0) return TULLE_OK;
    return r->driver->launch(r->b, r->device, tl_gpu_kernel(r->gpu, r->types, TL_K_TURN),
                             &(tl_launch){.blocks = blocks_for(r->gpu, tiles),
                                          .threads = threads_for(r->gpu),
                                          .lane = lane,
                                          .count = TL_COUNT(args),
                                          .args = args});
}

/* ---- between host matrices and slots, by all threads */

typedef struct carry {
    const run  *r;
    const operand *of;
    const slot *in;
    bool        back;
} carry;

static char *host_at(const run *r, const operand *m, int64_t line, int64_t at)
{
    return (char *)m->M.values + (m->at + (size_t)(line * m->M.ld + at)) * r->size;
}

/* Each thread copies an equal number of bytes; its share may begin within a line. */
static void carry_work(void *arg, int thread, int threads)
{
    const carry *c = arg;
    const part *p = &c->in->part;
    const int64_t size = (int64_t)c->r->size, length = p->length,
                  end = tl_part(p->lines * length, thread + 1, threads);
    for (int64_t v = tl_part(p->lines * length, thread, threads); v < end;) {
        int64_t line = v / length, at = v % length, n = tl_min(length - at, end - v);
        char *there = host_at(c->r, c->of, p->line + line, p->at + at), *here = c->in->p + v * size;
        memcpy(c->back ? there : here, c->back ? here : there, (size_t)(n * size));
        v += n;
    }
}

static void carry_part(const run *r, const operand *m, const slot *k, bool back)
{
    carry c = {r, m, k, back};
    tl_team_run(r->b->team, tl_threads_for(r->b, 0, k->part.lines * k->part.length), carry_work, &c);
}

/* ---- the ring */

/* Waits until slot i is free; a returned part of Y has then been unpacked. */
static tulle_status finish(run *r, int i)
{
    tulle_status status = TULLE_OK;
    slot *s = &r->slot[i];
    if (!s->busy) return TULLE_OK;
    TRY(r->driver->settle(r->b, r->device, i));
    s->busy = false;
    if (s->back) carry_part(r, &r->Y, s, true);
done:
    return status;
}

/* Sets the flag of a slot, which is busy until it is reached; without overlap the host waits for it here. */
static tulle_status set_flag(run *r, int lane, int i, bool back)
{
    tulle_status status = TULLE_OK;
    TRY(r->driver->flag(r->b, r->device, lane, i));
    r->slot[i].busy = true;
    r->slot[i].back = back;
    if (!r->overlap) TRY(finish(r, i));
done:
    return status;
}

/* Copies columns of a host matrix to the device or back, in parts of whole lines, or of pieces of a line that
 * is longer than a slot. */
static tulle_status pass(run *r, const operand *m, int lane, int64_t col, int64_t cols, tl_dmem there,
                         bool back)
{
    tulle_status status = TULLE_OK;
    const bool by_cols = m->M.order == TULLE_BY_COLS;
    const int64_t count = by_cols ? cols : m->M.rows, length = by_cols ? m->M.rows : cols,
                  room = (int64_t)(r->slot_bytes / r->size);
    const int64_t most = length > 0 && length <= room ? room / length : 1, piece = tl_min(length, room);
    for (int64_t line = 0, at = 0; line < count && length > 0;) {
        int i = r->next;
        slot *s = &r->slot[i];
        TRY(finish(r, i));
        r->next = (i + 1) % r->slots;
        part p = {line, tl_min(most, count - line), at, tl_min(piece, length - at)};
        tl_dmem to = {there.handle, there.offset + (uint64_t)(line * length + at) * r->size};
        uint64_t bytes = (uint64_t)(p.lines * p.length) * r->size;
        at = at + p.length < length ? at + p.length : 0;
        if (at == 0) line += p.lines;
        if (by_cols) p.line += col;
        else p.at += col;
        s->part = p;
        if (back) TRY(r->driver->fetch(r->b, r->device, lane, s->p, to, bytes));
        else {
            carry_part(r, m, s, false);
            TRY(r->driver->send(r->b, r->device, lane, to, s->p, bytes));
        }
        TRY(set_flag(r, lane, i, back));
    }
done:
    return status;
}

/* ---- one chunk */

/* The columns, on the device, of a matrix to be transposed: the caller's array, or those sent from the
 * host. */
static lines columns_at(const operand *m, int way, int64_t col, int64_t cols)
{
    if (m->method == FROM_HOST) return (lines){untransposed(m, way, cols), 0, (uint64_t)m->M.rows};
    return (lines){
        {(uint64_t)(uintptr_t)m->M.values, 0}, m->at + (uint64_t)(col * m->M.ld), (uint64_t)m->M.ld};
}

/* The place where the kernels access the columns of a matrix; the columns are copied there if they are
 * read. */
static tulle_status bring(run *r, const operand *m, int way, int lane, int64_t col, int64_t cols, bool read,
                          lines *place)
{
    tulle_status status = TULLE_OK;
    const tulle_dense *M = &m->M;
    if (m->method == IN_PLACE) {
        *place = (lines){{(uint64_t)(uintptr_t)M->values, 0}, m->at + (uint64_t)col, (uint64_t)M->ld};
        return TULLE_OK;
    }
    *place = (lines){m->chunk[way], 0, (uint64_t)pitch_of(m, cols)};
    if (!read) return TULLE_OK;
    if (m->method == FROM_HOST)
        TRY(pass(r, m, lane, col, cols, untransposed(m, way, cols), false));
    if (m->method == TRANSPOSED || has_two(m, cols))
        TRY(transpose(r, lane, cols, M->rows, columns_at(m, way, col, cols), *place));
done:
    return status;
}

static tulle_status take_back(run *r, int way, int lane, int64_t col, int64_t cols, lines place)
{
    tulle_status status = TULLE_OK;
    const operand *m = &r->Y;
    if (m->method == TRANSPOSED || has_two(m, cols))
        TRY(transpose(r, lane, m->M.rows, cols, place, columns_at(m, way, col, cols)));
    if (m->method == FROM_HOST)
        TRY(pass(r, m, lane, col, cols, untransposed(m, way, cols), true));
done:
    return status;
}

static tulle_status one_chunk(run *r, int64_t i)
{
    tulle_status status = TULLE_OK;
    int way = (int)(i % r->ways), lane = lane_of(r, way);
    int64_t col = i * r->width, cols = tl_min(r->width, r->cols - col);
    lines x, y;
    TRY(bring(r, &r->X, way, lane, col, cols, true, &x));
    TRY(bring(r, &r->Y, way, lane, col, cols, !is_zero(r->beta), &y));
    tl_chunk chunk = {.x = x.mem, .x_at = x.at, .x_ld = x.ld, .y = y.mem, .y_at = y.at, .y_ld = y.ld,
                      .cols = (uint32_t)cols, .lane = lane};
    TRY(tl_spmm_chunk(r->b, r->s, &chunk, r->alpha, r->beta));
    if (r->s->meanwhile) TRY(r->s->meanwhile(r->s->user, (double)(i + 1) / (double)chunks_of(r)));
    TRY(take_back(r, way, lane, col, cols, y));
done:
    return status;
}

static tulle_status all_chunks(run *r)
{
    tulle_status status = TULLE_OK;
    int64_t chunks = chunks_of(r);
    double share = r->s->share > 0 ? r->s->share : 1;
    r->s->begun = true;
    if (r->ways > 1) TRY(r->driver->fork(r->b, r->device, 1 + r->ways));
    for (int64_t i = 0; i < chunks; i++) {
        if (tl_progress(r->b, "numeric", r->s->before + share * (double)i / (double)chunks)) {
            status = tl_fail(r->b, TULLE_ECANCEL, "the product was cancelled");
            goto done;
        }
        TRY(one_chunk(r, i));
    }
    for (int i = 0; i < r->slots; i++) TRY(finish(r, (r->next + i) % r->slots));
    if (r->ways > 1) TRY(r->driver->join(r->b, r->device, 1 + r->ways));
done:
    return status;
}

/* ---- number of columns, number of lanes, and the memory for them */

/* Bytes of a chunk of so many columns. */
static uint64_t operand_bytes(const operand *m, int64_t cols)
{
    const operand none = {.M = m->M, .method = m->method};
    if (m->method == IN_PLACE) return 0;
    if (!has_two(m, cols)) return seen_bytes(m, cols);
    return untransposed(&none, 0, cols).offset
           + (uint64_t)m->M.rows * (uint64_t)cols * tl_type_size(m->M.val_type);
}

/* Device bytes per column of a chunk: X, Y, and the partial sums of long rows. */
static uint64_t column_bytes(const run *r)
{
    return operand_bytes(&r->X, 1) + operand_bytes(&r->Y, 1) + r->s->pieces.parts * r->size;
}

/* Bytes of all chunks and partial sums for so many lanes, rounded as by the pool. */
static uint64_t chunk_bytes(const run *r, int64_t cols, int ways)
{
    const uint64_t parts[] = {operand_bytes(&r->X, cols), operand_bytes(&r->Y, cols),
                              r->s->pieces.parts * (uint64_t)cols * r->size};
    uint64_t bytes = 0;
    for (int i = 0; i < TL_COUNT(parts); i++) bytes += (parts[i] + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN;
    return bytes * (uint64_t)ways;
}

static int64_t at_least_one(uint64_t columns, int64_t most)
{
    return columns < 1 ? 1 : columns < (uint64_t)most ? (int64_t)columns : most;
}

/* Rounds the width down to whole vectors, if there is more than one. */
static int64_t even(const run *r, int64_t width)
{
    int64_t vector = VECTOR / (int64_t)r->size;
    return width < r->cols && width > vector ? width / vector * vector : width;
}

static double staged_bytes(const run *r)
{
    double rows = (r->X.method == FROM_HOST ? (double)r->X.M.rows : 0)
                  + (r->Y.method == FROM_HOST ? (double)r->Y.M.rows : 0);
    return rows * (double)r->cols * (double)r->size;
}

static bool comes_in(const operand *m, tulle_order order)
{
    return m->method == FROM_HOST && m->M.order == order;
}

/* The smallest efficient width.  A kernel reads all of A for a chunk, which should not take longer than the
 * transfer of the chunk; the host should gather long parts of its rows, and fill a slot with columns. */
static int64_t least_width(const run *r)
{
    double bytes = (double)r->s->nnz * (double)(r->size + 4) / (double)r->Y.M.rows / LINK;
    if (bytes < VECTOR) bytes = VECTOR;
    if (comes_in(&r->X, TULLE_BY_ROWS) || comes_in(&r->Y, TULLE_BY_ROWS)) bytes = bytes < LINE ? LINE : bytes;
    else if (bytes * (double)r->Y.M.rows < SLOT_MOST) bytes = SLOT_MOST / (double)r->Y.M.rows;
    if (bytes > COLUMNS_MOST) bytes = COLUMNS_MOST;
    return ((int64_t)bytes + VECTOR - 1) / VECTOR * VECTOR / (int64_t)r->size;
}

/* The best width if memory is not limited. */
static int64_t best_width(const run *r, uint64_t each)
{
    int64_t all = tl_min(r->cols, COLUMNS_MOST), line = least_width(r);
    const char *forced = tl_env("TULLE_SPMM_CHUNK");
    int64_t wanted = forced ? strtoll(forced, NULL, 10) : 0, width = all;
    if (wanted > 0) return tl_min(wanted, all);
    if (each == 0 || (r->staged && staged_bytes(r) <= SMALL)) return all;
    uint64_t most = (r->staged ? CHUNK_MOST : TURNED_MOST) / each;
    if (!r->staged) return most < TURNED_COLUMNS ? tl_min(TURNED_COLUMNS, all) : at_least_one(most, all);
    width = ((all - 1) / CHUNKS / line + 1) * line;
    if ((uint64_t)width > most) width = (int64_t)most / line * line;
    return tl_min(width < line ? line : width, all);
}

/* The driver is queried only if it matters, since that takes time. */
static uint64_t free_bytes(const run *r, uint64_t wanted)
{
    uint64_t once = r->driver->caps(r->device)->memory_free;
    return wanted < once / 16 ? once : tl_dmem_left(r->gpu);
}

static tulle_status choose(run *r)
{
    uint64_t each = column_bytes(r), all = r->s->limit, taken = r->s->taken,
             limit = all > taken ? all - taken : 0;
    const char *overlap = tl_env("TULLE_SPMM_OVERLAP");
    int ways = overlap ? atoi(overlap) : 0;
    r->overlap = !overlap || strcmp(overlap, "off") != 0;
    r->ways = ways >= 1 && ways <= WAYS_MOST ? ways : 2;
    if (!r->staged || !r->overlap || (!ways && staged_bytes(r) <= SMALL)) r->ways = 1;
    int64_t width = best_width(r, each);
    if (chunks_of(&(run){.cols = r->cols, .width = width}) < r->ways) r->ways = 1;
    if (all && chunk_bytes(r, 1, 1) > limit)
        return tl_fail(r->b, TULLE_ELIMIT,
                       "one column of X and Y needs %" PRIu64 " bytes on the device%s, the limit is %" PRIu64,
                       chunk_bytes(r, 1, 1) + taken, taken ? ", with A and what was made of it" : "", all);
    if (!all) limit = free_bytes(r, chunk_bytes(r, width, r->ways)) / 2;
    if (chunk_bytes(r, 1, r->ways) > limit) r->ways = 1;
    if (each) width = at_least_one(limit / each / (uint64_t)r->ways, width);
    while (width > 1 && chunk_bytes(r, width, r->ways) > limit) width--;
    if (r->staged) width = tl_min(width, SLOT_MOST / (int64_t)r->size);
    r->width = even(r, width);
    return TULLE_OK;
}

static void free_chunks(run *r)
{
    for (int i = 0; i < WAYS_MOST; i++) {
        tl_dmem_free(r->gpu, r->X.chunk[i]);
        tl_dmem_free(r->gpu, r->Y.chunk[i]);
        r->X.chunk[i] = r->Y.chunk[i] = (tl_dmem){0, 0};
    }
}

static tulle_status ask_chunks(run *r)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; i < r->ways; i++) {
        TRY(tl_rows_room(r->b, r->s, lane_of(r, i), (uint64_t)r->width));
        if (r->X.method != IN_PLACE)
            TRY(tl_dmem_alloc(r->b, r->gpu, operand_bytes(&r->X, r->width), "columns of X", &r->X.chunk[i]));
        if (r->Y.method != IN_PLACE)
            TRY(tl_dmem_alloc(r->b, r->gpu, operand_bytes(&r->Y, r->width), "columns of Y", &r->Y.chunk[i]));
    }
done:
    if (status != TULLE_OK) free_chunks(r);
    return status;
}

/* Allocates the chunks.  If the device has less memory than expected: fewer columns, then a single lane. */
static tulle_status make_chunks(run *r)
{
    tulle_status status;
    while ((status = ask_chunks(r)) == TULLE_ENOMEM && (r->width > 1 || r->ways > 1)) {
        if (r->width > 1) r->width = even(r, r->width / 2);
        else r->ways = 1;
        r->b->error[0] = 0;
    }
    return status;
}

/* Allocates slots for parts of chunks, each for at least one row; smaller slots if memory is short. */
static tulle_status make_slots(run *r)
{
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = r->gpu;
    uint64_t row = (uint64_t)r->width * r->size, rows = 1;
    if (!r->staged) return TULLE_OK;
    if (r->X.method == FROM_HOST && (uint64_t)r->X.M.rows > rows) rows = (uint64_t)r->X.M.rows;
    if (r->Y.method == FROM_HOST && (uint64_t)r->Y.M.rows > rows) rows = (uint64_t)r->Y.M.rows;
    uint64_t bytes = rows > SLOT_MOST / row ? SLOT_MOST : rows * row;
    r->slots = chunks_of(r) == 1 && rows * row <= bytes ? 3 : SLOTS;
    for (;;) {
        r->slot_bytes = ((bytes < SLOT_LEAST ? SLOT_LEAST : bytes) + 4095) / 4096 * 4096;
        if (gpu->staging_bytes >= r->slot_bytes * (uint64_t)r->slots) break;
        gpu->driver->unpin(gpu->device, gpu->staging);
        gpu->staging = NULL;
        gpu->staging_bytes = 0;
        status = gpu->driver->pinned(r->b, gpu->device, r->slot_bytes * (uint64_t)r->slots, &gpu->staging);
        if (status == TULLE_OK) gpu->staging_bytes = r->slot_bytes * (uint64_t)r->slots;
        if (status != TULLE_ENOMEM || bytes / 2 < row || bytes <= SLOT_LEAST) break;
        bytes /= 2;
        r->b->error[0] = 0;
    }
    for (int i = 0; i < r->slots && status == TULLE_OK; i++)
        r->slot[i].p = (char *)gpu->staging + (uint64_t)i * r->slot_bytes;
    return status;
}

/* ---- all columns */

/* A single column is row-major, too. */
static operand operand_of(const tulle_dense *M, uint64_t at)
{
    operand s = {.M = *M, .at = at};
    if (M->order == TULLE_BY_COLS && M->cols == 1) {
        s.M.order = TULLE_BY_ROWS;
        s.M.ld = 1;
    }
    s.method = M->place == TULLE_HOST ? FROM_HOST : s.M.order == TULLE_BY_COLS ? TRANSPOSED : IN_PLACE;
    return s;
}

static tl_types dense_types(tulle_type type)
{
    return (tl_types){.ptr = 32, .idx = 32, .key = 32, .val = (int)type};
}

tulle_status tl_chunks_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                           const tulle_dense *Y, uint64_t y_at, tulle_stats *stats)
{
    enum { BEGIN = TL_EVENTS - 2, END };
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = s->gpu;
    run r = {.b = b,
             .gpu = gpu,
             .driver = gpu->driver,
             .device = gpu->device,
             .s = s,
             .alpha = alpha,
             .beta = beta,
             .types = dense_types(Y->val_type),
             .X = operand_of(X, 0),
             .Y = operand_of(Y, y_at),
             .size = tl_type_size(Y->val_type),
             .cols = Y->cols};
    double start = tl_gpu_now(gpu), compiling = 0;
    uint64_t waits = gpu->driver->waits(gpu->device), held = tl_dmem_held(gpu);
    if (Y->rows == 0 || Y->cols == 0) return TULLE_OK;
    r.staged = r.X.method == FROM_HOST || r.Y.method == FROM_HOST;
    bool ends_here = !gpu->foreign || Y->place == TULLE_HOST, timed = !r.staged && ends_here;
    if (is_transposed(&r.X) || is_transposed(&r.Y)) TRY(tl_gpu_need(b, gpu, r.types, needed, 1));
    TRY(choose(&r));
    TRY(make_chunks(&r));
    TRY(make_slots(&r));
    held = tl_dmem_held(gpu) - held;
    tl_trace(b,
             "columns: %" PRId64 " chunk%s of %" PRId64 ", %d lane%s, %" PRIu64
             " bytes on the device, %d parts of %" PRIu64 " bytes on the host",
             chunks_of(&r), chunks_of(&r) == 1 ? "" : "s", r.width, r.ways, r.ways == 1 ? "" : "s", held,
             r.slots, r.slot_bytes);
    compiling = tl_gpu_compiling(gpu);
    if (timed) TRY(r.driver->mark(b, r.device, BEGIN));
    TRY(all_chunks(&r));
    if (timed) TRY(r.driver->mark(b, r.device, END));
    if (ends_here && Y->place == TULLE_DEVICE) TRY(r.driver->wait(b, r.device));
    stats->sec_numeric = tl_gpu_now(gpu) - start;
    timed =
        timed
        && tl_gpu_compiling(gpu) == compiling; /* else the time between the marks includes compilation */
    if (timed) TRY(r.driver->elapsed(b, r.device, BEGIN, END, &stats->sec_numeric));
    stats->waits += (int)(r.driver->waits(r.device) - waits);
    if (stats->workspace_bytes < s->taken + held) stats->workspace_bytes = s->taken + held;
done:
    if (status != TULLE_OK && r.staged) tl_gpu_rest(b, gpu);
    free_chunks(&r);
    return status;
}

/* ---- some columns of one matrix */

bool tl_columns_travel(const tulle_dense *M)
{
    return operand_of(M, 0).method != IN_PLACE;
}

uint64_t tl_columns_bytes(const tulle_dense *M, int64_t cols)
{
    operand s = operand_of(M, 0);
    return operand_bytes(&s, cols);
}

tulle_status tl_columns_bring(tl_base *b, tl_gpu_spmm *s, const tulle_dense *M, int64_t col, int64_t cols,
                              tl_dmem to, int64_t *ld)
{
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = s->gpu;
    run r = {.b = b, .gpu = gpu, .driver = gpu->driver, .device = gpu->device, .s = s,
             .types = dense_types(M->val_type), .X = operand_of(M, 0),
             .size = tl_type_size(M->val_type), .cols = cols, .width = cols, .ways = 1, .overlap = true};
    lines place;
    *ld = pitch_of(&r.X, cols);
    r.staged = r.X.method == FROM_HOST;
    r.X.chunk[0] = to;
    if (M->rows == 0) return TULLE_OK;
    if (is_transposed(&r.X)) TRY(tl_gpu_need(b, gpu, r.types, needed, 1));
    TRY(make_slots(&r));
    TRY(bring(&r, &r.X, 0, 0, col, cols, true, &place));
    for (int i = 0; i < r.slots; i++) TRY(finish(&r, (r.next + i) % r.slots));
done:
    if (status != TULLE_OK && r.staged) tl_gpu_rest(b, gpu);
    return status;
}

tulle_status tl_gpu_spmm_scale(tl_base *b, tl_gpu *gpu, tl_c64 beta, tulle_dense *Y)
{
    tulle_status status = TULLE_OK;
    int64_t count = Y->order == TULLE_BY_COLS ? Y->cols : Y->rows,
            length = Y->order == TULLE_BY_COLS ? Y->rows : Y->cols;
    tl_types types = dense_types(Y->val_type);
    if (count == 0 || length == 0 || (beta.re == 1 && beta.im == 0)) return TULLE_OK;
    if (Y->place == TULLE_HOST) return tl_spmm_scale(b, &(tl_spmm_request){.Y = Y, .beta = beta});
    if (Y->ld == length) {              /* contiguous: one long line */
        length *= count;
        count = 1;
    }
    TRY(tl_gpu_need(b, gpu, types, needed, TL_COUNT(needed)));
    tl_dmem whole = {(uint64_t)(uintptr_t)Y->values, 0};
    const tl_arg args[] = {TL_U64(count), TL_U64(length), TL_MEM(whole), TL_U64(0), TL_U64(Y->ld),
                           TL_F64(beta.re), TL_F64(beta.im)};
    uint64_t values = (uint64_t)count * (uint64_t)length, each = 4 * (uint64_t)threads_for(gpu);
    TRY(gpu->driver->launch(b, gpu->device, tl_gpu_kernel(gpu, types, TL_K_SCALE),
                            &(tl_launch){.blocks = blocks_for(gpu, (values - 1) / each + 1),
                                         .threads = threads_for(gpu),
                                         .count = TL_COUNT(args),
                                         .args = args}));
    if (!gpu->foreign) TRY(gpu->driver->wait(b, gpu->device));
done:
    return status;
}
