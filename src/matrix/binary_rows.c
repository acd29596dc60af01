/* SPDX-License-Identifier: MIT
 *
 * binary_rows.c - writes a .tulle file from blocks of rows, for matrices larger than memory.
 *
 * The arrays lie one after the other.  Row pointers always have 64 bits here, so that the number of rows
 * determines where the columns begin; where the values begin is known only after the last entry.  So the
 * values are written to a second temporary file, and copied after the columns at the end.  What was copied is
 * freed in the temporary file (holes), where the file system can do that, so that the disk never holds much
 * more than the finished file.  Blocks of 1 MiB are checksummed (binary.c) and written by all threads,
 * directly from the caller's arrays.  Memory: 1 MiB per array, 8 bytes per MiB of the file, and up to 4 MiB
 * for the copy. */
#define _GNU_SOURCE                     /* fallocate */
#define _FILE_OFFSET_BITS 64
#include "matrix/binary.h"
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

enum { BLOCK = TL_TULLE_BLOCK };
enum { STRIPE = 64, COPIERS = 4 };      /* blocks that are copied before their place on the disk is freed */

typedef struct lane {                   /* an array that is being written */
    tl_out   *out;
    int64_t   at;                       /* of its first byte in that file              */
    int64_t   bytes;                    /* put so far                                  */
    char     *rest;                     /* its last, incomplete block                  */
    uint64_t *sum;                      /* of its full blocks                          */
    int64_t   room;                     /* capacity of sum                             */
} lane;

struct tl_binary_rows {
    tl_base *b;
    tl_out  *out;
    tl_out   later;                     /* the temporary file of the values               */
    tl_tulle_head h;
    bool     typed;                     /* the width of columns is known, from a first block */
    lane     lane[TL_TULLE_ARRAYS];
    char    *scratch;                   /* a block of indices in the file's width          */
};

tulle_status tl_binary_rows_begin(tl_out *out, int64_t rows, int64_t cols, int val_type,
                                  tl_binary_rows **made)
{
    tulle_status status = TULLE_OK;
    tl_base *b = out->b;
    tl_binary_rows *r = NULL;
    *made = NULL;
    TRY(tl_calloc(b, &r, 1, sizeof *r, "a writer"));
    *r = (tl_binary_rows){.b = b, .out = out, .later = {.b = b, .fd = -1}};
    tulle_csr empty = {.rows = rows, .cols = cols, .ptr_type = TULLE_I64, .idx_type = tl_index_for(cols)};
    TRY(tl_tulle_begin(b, out->path, &empty, &r->h));
    r->h.val_type = (uint32_t)val_type;
    if (val_type) TRY(tl_out_open(b, out->path, &r->later));
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) {
        lane *l = &r->lane[i];
        *l = (lane){.out = out, .at = (int64_t)r->h.array[i].at};
        if (i == TL_TULLE_VALUES) *l = (lane){.out = &r->later};
        TRY(tl_alloc(b, &l->rest, BLOCK, 1, "a block of a file"));
    }
    TRY(tl_alloc(b, &r->scratch, BLOCK, 1, "a block of a file"));
    *made = r;
    r = NULL;
done:
    tl_binary_rows_free(r);
    return status;
}

void tl_binary_rows_free(tl_binary_rows *r)
{
    if (!r) return;
    tl_base *b = r->b;
    tl_out_close(&r->later);
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) {
        tl_free(b, r->lane[i].rest);
        tl_free(b, r->lane[i].sum);
    }
    tl_free(b, r->scratch);
    tl_free(b, r);
}

/* ---- appending bytes to an array */

typedef struct job {
    tl_base    *b;
    lane       *l;
    const char *data;
    int64_t     first, blocks;          /* number of the block that data begins with; whole blocks */
    atomic_int  error;
} job;

static void put_blocks(void *arg, int thread, int threads)
{
    job *j = arg;
    for (int64_t k = thread; k < j->blocks; k += threads) {
        if (thread == 0) tl_progress(j->b, "write", (double)k / (double)j->blocks);
        if (atomic_load(&j->b->cancelled) || atomic_load(&j->error)) return;
        const char *from = j->data + k * BLOCK;
        int64_t number = j->first + k;
        j->l->sum[number] = tl_tulle_block_sum(from, BLOCK, number);
        int error = tl_out_put(j->l->out, from, BLOCK, j->l->at + number * BLOCK);
        if (error) atomic_store(&j->error, error);
    }
}

static tulle_status cancelled(tl_binary_rows *r)
{
    if (!atomic_load(&r->b->cancelled)) return TULLE_OK;
    return tl_fail(r->b, TULLE_ECANCEL, "%s: writing was cancelled", r->out->path);
}

static tulle_status make_room(tl_binary_rows *r, lane *l, int64_t sums)
{
    tulle_status status = TULLE_OK;
    uint64_t *more = NULL;
    if (sums <= l->room) return TULLE_OK;
    sums += sums / 2 + 64;
    TRY(tl_alloc(r->b, &more, sums, sizeof *more, "checksums"));
    if (l->sum) memcpy(more, l->sum, (size_t)l->room * sizeof *more);
    tl_free(r->b, l->sum);
    l->sum = more;
    l->room = sums;
done:
    return status;
}

static tulle_status put_whole(tl_binary_rows *r, lane *l, const char *data, int64_t blocks)
{
    tulle_status status = TULLE_OK;
    job j = {.b = r->b, .l = l, .data = data, .first = l->bytes / BLOCK, .blocks = blocks};
    tl_team_run(r->b->team, 0, put_blocks, &j);
    int error = atomic_load(&j.error);
    if (error) TRY(tl_out_fail(l->out, error));
    TRY(cancelled(r));
done:
    return status;
}

static tulle_status put_bytes(tl_binary_rows *r, lane *l, const void *data, int64_t bytes)
{
    tulle_status status = TULLE_OK;
    const char *p = data;
    TRY(make_room(r, l, (l->bytes + bytes) / BLOCK + 1));
    while (bytes > 0) {
        int64_t used = l->bytes % BLOCK, n = bytes / BLOCK * BLOCK;
        if (used == 0 && n > 0) {
            TRY(put_whole(r, l, p, n / BLOCK));
        } else {
            n = bytes < BLOCK - used ? bytes : BLOCK - used;
            memcpy(l->rest + used, p, (size_t)n);
            if (used + n == BLOCK) TRY(put_whole(r, l, l->rest, 1));
        }
        l->bytes += n;
        p += n;
        bytes -= n;
    }
done:
    return status;
}

/* ---- rows */

/* Appends the row pointers of a block, plus the number of entries before the block. */
static tulle_status put_pointers(tl_binary_rows *r, const tulle_csr *block)
{
    tulle_status status = TULLE_OK;
    int64_t *to = (int64_t *)(void *)r->scratch, most = BLOCK / (int64_t)sizeof *to, n = 0;
    int64_t before = block->rows > 0 ? r->h.nnz - tl_row_begin(block, 0) : 0;
    if (r->lane[TL_TULLE_ROW_PTR].bytes == 0) to[n++] = 0;
    for (int64_t i = 1; i <= block->rows; i++) {
        to[n++] = before + tl_row_begin(block, i);
        if (n < most) continue;
        TRY(put_bytes(r, &r->lane[TL_TULLE_ROW_PTR], to, n * (int64_t)sizeof *to));
        n = 0;
    }
    TRY(put_bytes(r, &r->lane[TL_TULLE_ROW_PTR], to, n * (int64_t)sizeof *to));
done:
    return status;
}

static tulle_status put_columns(tl_binary_rows *r, const tulle_csr *block)
{
    tulle_status status = TULLE_OK;
    lane *l = &r->lane[TL_TULLE_COL_IDX];
    tulle_index type = (tulle_index)r->h.idx_type;
    int64_t size = (int64_t)tl_index_size(type), most = BLOCK / size;
    if (block->idx_type == type) return put_bytes(r, l, block->col_idx, block->nnz * size);
    for (int64_t k = 0; k < block->nnz; k += most) {
        int64_t n = block->nnz - k < most ? block->nnz - k : most;
        for (int64_t i = 0; i < n; i++)
            tl_put(r->scratch, type, i, tl_get(block->col_idx, block->idx_type, k + i));
        TRY(put_bytes(r, l, r->scratch, n * size));
    }
done:
    return status;
}

tulle_status tl_binary_rows_put(tl_binary_rows *r, const tulle_csr *block)
{
    tulle_status status = TULLE_OK;
    if (!r->typed && block->nnz > 0) {  /* the column width of all blocks: 64 bits if a column needs them */
        if (r->h.idx_type == TULLE_I32) r->h.idx_type = (uint32_t)block->idx_type;
        r->typed = true;
    }
    TRY(put_pointers(r, block));
    TRY(put_columns(r, block));
    if (block->values)
        TRY(put_bytes(r, &r->lane[TL_TULLE_VALUES], block->values,
                      block->nnz * (int64_t)tl_type_size(block->val_type)));
    r->h.nnz += block->nnz;
    if (tl_progress(r->b, "write", 1)) TRY(cancelled(r));
done:
    return status;
}

/* ---- the end */

/* Writes the last, partial block of a lane, and computes its checksum. */
static tulle_status end_lane(tl_binary_rows *r, int array)
{
    tulle_status status = TULLE_OK;
    lane *l = &r->lane[array];
    int64_t used = l->bytes % BLOCK, number = l->bytes / BLOCK;
    if (used > 0) {
        TRY(make_room(r, l, number + 1));
        l->sum[number] = tl_tulle_block_sum(l->rest, (uint64_t)used, number);
        int error = tl_out_put(l->out, l->rest, used, l->at + number * BLOCK);
        if (error) TRY(tl_out_fail(l->out, error));
    }
    r->h.array[array].sum = tl_tulle_fold(array, (uint64_t)l->bytes, l->sum);
done:
    return status;
}

typedef struct copy {
    tl_binary_rows *r;
    char      *buffer;                  /* a block for each thread */
    int64_t    first, end;              /* bytes of the stripe     */
    atomic_int error;
} copy;

static void copy_blocks(void *arg, int thread, int threads)
{
    copy *c = arg;
    tl_binary_rows *r = c->r;
    char *buffer = c->buffer + (int64_t)thread * BLOCK;
    for (int64_t at = c->first + (int64_t)thread * BLOCK; at < c->end; at += (int64_t)threads * BLOCK) {
        if (atomic_load(&r->b->cancelled) || atomic_load(&c->error)) return;
        int64_t n = c->end - at < BLOCK ? c->end - at : BLOCK;
        int error = tl_out_get(&r->later, buffer, n, at);
        if (!error) error = tl_out_put(r->out, buffer, n, (int64_t)r->h.array[TL_TULLE_VALUES].at + at);
        if (error) atomic_store(&c->error, error);
    }
}

/* Punches a hole where the values were copied from, which frees the disk space. */
static void punch_hole(tl_out *out, int64_t at, int64_t bytes)
{
#if defined(FALLOC_FL_PUNCH_HOLE)
    (void)!fallocate(out->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes);
#else
    (void)out, (void)at, (void)bytes;
#endif
}

static tulle_status copy_values(tl_binary_rows *r)
{
    tulle_status status = TULLE_OK;
    copy c = {.r = r};
    int64_t bytes = r->lane[TL_TULLE_VALUES].bytes, blocks = (bytes + BLOCK - 1) / BLOCK;
    int threads = tl_team_size(r->b->team);
    if (threads > COPIERS) threads = COPIERS;
    if (threads > blocks) threads = (int)blocks;
    if (threads == 0) return TULLE_OK;
    TRY(tl_alloc(r->b, &c.buffer, threads, BLOCK, "a copy of values"));
    for (int64_t at = 0; at < bytes; at = c.end) {
        c.first = at;
        c.end = bytes - at < (int64_t)STRIPE * BLOCK ? bytes : at + (int64_t)STRIPE * BLOCK;
        tl_team_run(r->b->team, threads, copy_blocks, &c);
        int error = atomic_load(&c.error);
        if (error) TRY(tl_out_fail(r->out, error));
        tl_progress(r->b, "write", (double)c.end / (double)bytes);
        TRY(cancelled(r));
        punch_hole(&r->later, c.first, c.end - c.first);
    }
done:
    tl_free(r->b, c.buffer);
    return status;
}

tulle_status tl_binary_rows_finish(tl_binary_rows *r)
{
    tulle_status status = TULLE_OK;
    if (r->lane[TL_TULLE_ROW_PTR].bytes == 0) TRY(put_pointers(r, &(tulle_csr){.rows = 0}));
    if (!tl_tulle_lay_out(&r->h))
        TRY(tl_fail(r->b, TULLE_EINVAL, "%s: %" PRId64 " entries: too many for a file", r->out->path,
                    r->h.nnz));
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) TRY(end_lane(r, i));
    TRY(copy_values(r));
    tl_tulle_seal(&r->h);
    int error = tl_tulle_put_padding(r->out, &r->h);
    if (!error) error = tl_out_put(r->out, &r->h, TL_TULLE_HEADER, 0);
    if (error) TRY(tl_out_fail(r->out, error));
done:
    return status;
}
