/* SPDX-License-Identifier: MIT
 *
 * spmm.c - Y = alpha*A*X + beta*Y with several threads.
 *
 * Rows are divided into pieces of nearly equal work, columns into blocks; threads take the next piece of a
 * block until none is left.  A row-major X is used in place, unless its rows are long and used often.  Then
 * it is copied in blocks of columns, whose rows are close together in memory: in a sliding window (slide.c),
 * or, if A is scattered and X large (look.c), one whole block before it is multiplied.  A column-major X is
 * always copied in whole blocks, so that the values an entry of A multiplies are contiguous.
 *
 * A row of more than TL_SPMM_PART entries is summed in parts of that length by any threads, and these sums
 * are added in order at the end: the result does not depend on the pieces or on the number of threads.
 *
 * Memory: the copy of a block of X (128 bytes per row, less under a limit), or some megabytes per thread; a
 * row of Y for each part of a long row; 40 bytes per piece. */
#include "cpu/spmm.h"
#include "matrix/parts.h"
#include <inttypes.h>

enum {
    PIECE_LEAST = 2048,                 /* entries plus rows of a piece */
    PIECE_MOST = TL_SPMM_PART / 2,      /* so that every row to be summed in parts contains a cut */
    PIECES_EACH = 16,                   /* pieces per thread */
    PACK_BYTES = 128,                   /* of a row of X in one block, if whole blocks are copied */
    SLIDE_ENTRIES = 16384               /* of A in a group of rows, at most            */
};
static const tl_spmm_tuning measured = {
    .near_bytes = 4 << 20, .cache_bytes = 16 << 20, .wide_entries = 8, .copy_row = 256,
    .copy_bytes = 24 << 20, .slide_row = 512, .slide_bytes = 6 << 20, .slide_rows = 256};

/* `measured` was found with a shared cache of 32 MB.  An X that fits into a larger one is used in place: with
 * 300 MB that was faster, while adapting the other sizes as well was not. */
static tl_spmm_tuning tuning_of(const tl_base *b)
{
    tl_spmm_tuning t = measured;
    if (b->shared_cache / 4 * 3 > t.copy_bytes) t.copy_bytes = b->shared_cache / 4 * 3;
    return t;
}

/* ---- pieces */

/* Whether fewer than `target` entries and rows precede row i.  row_ptr may not have been checked: any values
 * are safe here. */
static bool begins_before(const tulle_csr *A, int64_t i, int64_t target)
{
    return (uint64_t)tl_row_begin(A, i) + (uint64_t)i < (uint64_t)target;
}

/* The first row that at least `target` entries and rows precede.  The search widens from the position it
 * would have if all rows had the same length, so that few cache lines of row_ptr are read. */
static int64_t cut(const tulle_csr *A, int64_t from, int64_t rows, int64_t target)
{
    int64_t low = from, high = A->rows, step = 4, at = rows < high - low ? from + rows : high - 1;
    if (low < high && begins_before(A, at, target)) {
        for (low = at + 1; high - low > step && begins_before(A, low + step, target); step *= 2)
            low += step + 1;
        if (high - low > step) high = low + step;
    } else if (low < high) {
        for (high = at; high - low > step && !begins_before(A, high - step, target); step *= 2) high -= step;
        if (high - low > step) low = high - step;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (begins_before(A, middle, target)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Whether the row pointers of row, end - 1 and end are in order and within A. */
static bool follow(const tulle_csr *A, int64_t row, int64_t end)
{
    int64_t first = tl_row_begin(A, row), last = tl_row_begin(A, end - 1), stop = tl_row_begin(A, end);
    return 0 <= first && first <= last && last <= stop && stop <= A->nnz;
}

static int64_t parts_of(const tulle_csr *A, int64_t row, bool whole)
{
    int64_t n = whole ? 0 : tl_row_begin(A, row + 1) - tl_row_begin(A, row);
    return n > TL_SPMM_PART ? (n - 1) / TL_SPMM_PART + 1 : 0;
}

static void put_rows(tl_spmm_pieces *p, int64_t row0, int64_t row1)
{
    if (row0 < row1) p->piece[p->count++] = (tl_spmm_piece){.row0 = row0, .row1 = row1};
}

static void put_long_row(tl_spmm_pieces *p, const tulle_csr *A, int64_t row, int64_t parts)
{
    int64_t at = tl_row_begin(A, row), end = tl_row_begin(A, row + 1);
    p->row[p->rows++] = (tl_spmm_row){row, p->parts, parts};
    for (; at < end; at += TL_SPMM_PART)
        p->piece[p->count++] = (tl_spmm_piece){row, row + 1, at,
                                               end - at < TL_SPMM_PART ? end : at + TL_SPMM_PART, p->parts++};
}

static tulle_status make_pieces(tl_base *b, const tulle_csr *A, int threads, int64_t cols, bool whole,
                                tl_spmm_pieces *p)
{
    tulle_status status = TULLE_OK;
    int64_t work = A->nnz + A->rows, size = work / ((int64_t)threads * PIECES_EACH) + 1;
    if (size < PIECE_LEAST) size = PIECE_LEAST;
    if (size > PIECE_MOST) size = PIECE_MOST;
    int64_t cuts = work / size + 1, longest = A->nnz / TL_SPMM_PART + 1;
    *p = (tl_spmm_pieces){0};
    TRY(tl_alloc(b, &p->piece, 2 * cuts + 2 * longest, sizeof *p->piece, "pieces of a product"));
    TRY(tl_alloc(b, &p->row, longest, sizeof *p->row, "rows in parts"));
    const int64_t like = work > 0 ? (int64_t)((double)A->rows / (double)work * (double)size) : 0;
    int64_t row = 0;
    for (int64_t target = size; row < A->rows; target += size) {
        int64_t end = target < work ? cut(A, row, like, target) : A->rows;
        if (end == row) continue;       /* a row contains several cuts */
        if (!follow(A, row, end)) {
            p->doubtful = true;
            break;
        }
        int64_t parts = parts_of(A, end - 1, whole);
        put_rows(p, row, parts ? end - 1 : end);
        if (parts) put_long_row(p, A, end - 1, parts);
        row = end;
    }
    p->scattered = tl_spmm_scattered(A);
    if (!p->scattered && cols > measured.slide_row / (int64_t)tl_type_size(A->val_type))
        p->window = tl_spmm_window(A);
done:
    if (status != TULLE_OK) tl_spmm_pieces_done(b, p);
    return status;
}

tulle_status tl_spmm_pieces_make(tl_base *b, const tulle_csr *A, int threads, int64_t cols, tl_spmm_pieces *p)
{
    return make_pieces(b, A, threads, cols, false, p);
}

tulle_status tl_spmm_pieces_whole(tl_base *b, const tulle_csr *A, int threads, tl_spmm_pieces *p)
{
    return make_pieces(b, A, threads, 1, true, p);
}

void tl_spmm_pieces_done(tl_base *b, tl_spmm_pieces *p)
{
    tl_free(b, p->piece);
    tl_free(b, p->row);
    *p = (tl_spmm_pieces){0};
}

int tl_spmm_threads(const tl_base *b, int wanted, const tulle_csr *A, int64_t cols)
{
    int64_t work = A->nnz + A->rows, limit = (int64_t)1 << 40;
    return tl_threads_for(b, wanted, work < limit && cols < 1024 ? work * (cols + 1) / 2 : limit);
}

/* ---- a run */

typedef struct run {
    tl_base               *b;
    const tl_spmm_kernels *k;
    const tl_spmm_pieces  *pieces;
    const tl_spmm_tuning  *tuning;
    tl_spmm_job            job;         /* all columns of Y, and of X if it is not packed */
    int64_t                cols, block, blocks;
    int64_t                first;       /* block of the first task                        */
    int64_t                tasks, all;  /* of the current round, of all rounds            */
    atomic_llong           next;
    size_t                 size;
    /* X copied in whole blocks */
    const tulle_dense     *X;
    char                  *packed;
    /* X copied in sliding windows: each thread takes chunks of consecutive pieces, for at_once blocks at
     * the same time */
    tl_slide              *slides;      /* one per thread                                 */
    char                  *windows;
    int64_t                chunks, at_once;
    char                  *sums;        /* of the parts of long rows, a row of Y each     */
    bool                   in_double;
    atomic_bool            bad;         /* a row of A is invalid                          */
} run;

/* The job for the columns of block i. */
static tl_spmm_job block_of(const run *r, int64_t i)
{
    tl_spmm_job job = r->job;
    int64_t at = i * r->block;
    job.cols = r->cols - at < r->block ? r->cols - at : r->block;
    job.y = (char *)job.y + (size_t)(job.y_by_cols ? at * job.y_ld : at) * r->size;
    job.x = r->packed ? r->packed : (const char *)job.x + (size_t)at * r->size;
    job.x_ld = r->packed ? job.cols : job.x_ld;
    return job;
}

/* Reports progress; false if the product was cancelled or A is invalid. */
static bool report(run *r, int thread, int64_t done)
{
    if (thread == 0) tl_progress(r->b, "numeric", (double)done / (double)r->all);
    return !atomic_load_explicit(&r->b->cancelled, memory_order_relaxed)
           && !atomic_load_explicit(&r->bad, memory_order_relaxed);
}

/* Whether the first column of a part of a long row is larger than the last one of the part before. */
static bool follows(const run *r, const tl_spmm_piece *p)
{
    const tulle_index type = r->job.ptr64 ? TULLE_I64 : TULLE_I32;
    return p->begin <= tl_get(r->job.ptr, type, p->row0)
           || r->k->ordered(&r->job, p->begin - 1, p->begin + 1);
}

static void sum_part(run *r, const tl_spmm_piece *p, int64_t block)
{
    tl_spmm_job job = block_of(r, block);
    if (job.bad && !follows(r, p)) atomic_store(&r->bad, true);
    r->k->part(&job, p->begin, p->end, r->sums + (size_t)(p->part * r->cols + block * r->block) * r->size);
}

static void multiply_work(void *arg, int thread, int threads)
{
    run *r = arg;
    (void)threads;
    for (;;) {
        int64_t i = atomic_fetch_add(&r->next, 1);
        if (i >= r->tasks || !report(r, thread, r->first * r->pieces->count + i)) return;
        int64_t block = r->first + i / r->pieces->count;
        const tl_spmm_piece *p = &r->pieces->piece[i % r->pieces->count];
        if (p->begin < p->end) {
            sum_part(r, p, block);
            continue;
        }
        tl_spmm_job job = block_of(r, block);
        (r->in_double ? r->k->apply : r->k->rows)(&job, p->row0, p->row1);
    }
}

/* The sliding window reads the columns of rows before these are multiplied, so they are checked earlier. */
static bool rows_good(run *r, int64_t row, int64_t end)
{
    const tulle_index type = r->job.ptr64 ? TULLE_I64 : TULLE_I32;
    bool good = true;
    for (int64_t i = row; i < end && r->job.bad && good; i++)
        good = r->k->ordered(&r->job, tl_get(r->job.ptr, type, i), tl_get(r->job.ptr, type, i + 1));
    if (!good) atomic_store(&r->bad, true);
    return good;
}

/* One piece for the blocks first..end, with X in a sliding window. */
static void slide_piece(run *r, const tl_spmm_piece *p, int64_t first, int64_t end, tl_slide *slide)
{
    for (int64_t block = first; block < end && p->begin < p->end; block++) sum_part(r, p, block);
    for (int64_t row = p->row0; row < p->row1 && p->begin == p->end; row += TL_SLIDE_ROWS) {
        int64_t stop = p->row1 - row < TL_SLIDE_ROWS ? p->row1 : row + TL_SLIDE_ROWS;
        if (!rows_good(r, row, stop)) return;
        bool there = tl_slide_to(slide, &r->job, row, stop);
        for (int64_t block = first; block < end; block++) {
            tl_spmm_job job = block_of(r, block);
            job.bad = NULL;
            if (there) tl_slide_show(slide, block - first, &job);
            r->k->rows(&job, row, stop);
        }
    }
}

static void slide_work(void *arg, int thread, int threads)
{
    run *r = arg;
    tl_slide *slide = &r->slides[thread];
    (void)threads;
    for (;;) {
        int64_t i = atomic_fetch_add(&r->next, 1);
        if (i >= r->tasks) return;
        int64_t first = i / r->chunks * r->at_once,
                end = r->blocks - first < r->at_once ? r->blocks : first + r->at_once;
        int64_t chunk = i % r->chunks, count = r->pieces->count, last = count * (chunk + 1) / r->chunks;
        tl_slide_start(slide, first * r->block,
                       (end * r->block < r->cols ? end * r->block : r->cols) - first * r->block);
        for (int64_t p = count * chunk / r->chunks; p < last; p++) {
            if (!report(r, thread, first * count + p)) return;
            slide_piece(r, &r->pieces->piece[p], first, end, slide);
        }
    }
}

static void pack_work(void *arg, int thread, int threads)
{
    const run *r = arg;
    int64_t at = r->first * r->block, cols = r->cols - at < r->block ? r->cols - at : r->block;
    bool by_cols = r->X->order == TULLE_BY_COLS;
    r->k->pack((const char *)r->X->values + (size_t)(by_cols ? at * r->X->ld : at) * r->size, r->X->ld,
               by_cols, cols, tl_part(r->X->rows, thread, threads), tl_part(r->X->rows, thread + 1, threads),
               r->packed);
}

/* Adds the sums of the parts of long rows, all columns. */
static void join_work(void *arg, int thread, int threads)
{
    run *r = arg;
    (void)thread;
    (void)threads;
    for (;;) {
        int64_t i = atomic_fetch_add(&r->next, 1);
        if (i >= r->pieces->rows) return;
        const tl_spmm_row *row = &r->pieces->row[i];
        tl_spmm_job job = r->job;
        job.cols = r->cols;
        r->k->join(&job, row->row, r->sums + (size_t)(row->part * r->cols) * r->size, row->parts, r->cols);
    }
}

/* How X is read: in place, from copies of whole blocks, or from sliding windows. */
typedef enum { AS_IT_LIES, COPIED, SLIDING } x_way;

/* Rows of X in a sliding window: the typical range of a group, and some more for groups that need more. */
static int64_t slide_room(const run *r)
{
    int64_t room = r->pieces->window + r->pieces->window / 4;
    if (room < r->tuning->slide_rows) room = r->tuning->slide_rows;
    return room < r->X->rows ? room : r->X->rows;
}

/* A row-major X is copied if its rows are long and used often: then a block stays in the inner caches. */
static x_way way_of(const run *r, const tl_spmm_request *q)
{
    const tl_spmm_tuning *t = r->tuning;
    double row = (double)r->cols * (double)r->size;
    if (r->X->order == TULLE_BY_COLS) return COPIED;
    if (q->A->nnz == 0 || q->A->nnz / t->wide_entries < r->X->rows)
        return AS_IT_LIES;              /* also an X without rows */
    if (r->pieces->scattered) {         /* if skewed, the rows used most stay in cache without a copy */
        bool large = row > (double)t->copy_row && (double)r->X->rows * row > (double)t->copy_bytes;
        return large && !tl_spmm_skewed(q->A) ? COPIED : AS_IT_LIES;
    }
    if (row <= (double)t->slide_row) return AS_IT_LIES;
    bool fits = (double)slide_room(r) * (double)r->k->strip <= (double)t->slide_bytes;
    return fits && r->X->rows / (2 * (int64_t)q->threads) >= r->pieces->window ? SLIDING : AS_IT_LIES;
}

/* Allocates the sliding windows of all threads, each for as many blocks at once as fit into slide_bytes. */
static void make_slides(run *r, const tl_spmm_request *q, double limit)
{
    enum { GAP = 1280 };                /* bytes between blocks, so that they map to different cache sets */
    tulle_status status = TULLE_OK;
    const int64_t threads = q->threads, room = slide_room(r), row = r->block * (int64_t)r->size;
    const int64_t most = r->tuning->slide_bytes / (room * row),
                  apart = (room * row + GAP + 63) & ~(int64_t)63;
    const size_t place = tl_index_size(q->A->idx_type);
    r->at_once = most < 1 ? 1 : most < r->blocks ? most : r->blocks;
    r->chunks = r->X->rows / (4 * r->pieces->window + 1);
    if (r->chunks > 4 * threads) r->chunks = 4 * threads;
    if (r->chunks < threads) r->chunks = threads;
    if (r->chunks > r->pieces->count) r->chunks = r->pieces->count;
    const int64_t bytes = r->at_once * apart + SLIDE_ENTRIES * (int64_t)place;
    if ((double)threads * (double)bytes > limit) return;
    TRY(tl_alloc(r->b, &r->windows, threads, (size_t)bytes, "windows of X"));
    TRY(tl_alloc(r->b, &r->slides, threads, sizeof *r->slides, "windows of X"));
    for (int64_t i = 0; i < threads; i++) {
        char *at = r->windows + i * bytes;
        r->slides[i] = (tl_slide){.k = r->k,
                                  .X = r->X,
                                  .room = room,
                                  .block = r->block,
                                  .rows = at,
                                  .apart = apart,
                                  .places = at + r->at_once * apart,
                                  .entries = SLIDE_ENTRIES,
                                  .place_size = place};
    }
done:
    if (status != TULLE_OK) {           /* X is then read in place */
        tl_free(r->b, r->windows);
        r->windows = NULL;
        r->b->error[0] = 0;
    }
}

/* Chooses the number of columns of a block, and allocates the copies of X and the sums of long rows. */
static tulle_status make_room(run *r, const tl_spmm_request *q)
{
    tulle_status status = TULLE_OK;
    int64_t parts = r->pieces->parts, rows = r->X->rows, size = (int64_t)r->size;
    x_way way = way_of(r, q);
    bool must = r->X->order == TULLE_BY_COLS;
    int64_t bytes = way == COPIED ? PACK_BYTES : way == SLIDING ? r->k->strip : INT64_MAX;
    if (r->job.y_by_cols && bytes > TL_SPMM_TILE) bytes = TL_SPMM_TILE;
    r->block = bytes / size < r->cols ? bytes / size : r->cols;
    double sums = (double)parts * (double)r->cols * (double)size,
           copy = must ? (double)rows * (double)size : 0;
    double need = sums + copy * (double)r->block;
    double limit = q->memory_limit > q->copied ? (double)(q->memory_limit - q->copied) : 0;
    if (q->memory_limit == 0) limit = need < 67108864.0 ? need : (double)tl_memory_free();
    while (need > limit && must && r->block > 1) need = sums + copy * (double)--r->block;
    if (need > limit) {
        status = tl_fail(r->b, TULLE_ELIMIT, "the product needs %.0f bytes of workspace, the limit is %.0f",
                         need + (double)q->copied, q->memory_limit ? (double)q->memory_limit : limit);
        goto done;
    }
    r->blocks = (r->cols - 1) / r->block + 1;
    if (parts > 0) TRY(tl_alloc(r->b, &r->sums, parts * r->cols, r->size, "sums of long rows"));
    if (must) TRY(tl_alloc(r->b, &r->packed, rows * r->block, r->size, "a copy of columns of X"));
    if (must || way == AS_IT_LIES) return TULLE_OK;
    double left = (q->memory_limit ? limit : (double)tl_memory_free()) - sums;
    if (way == SLIDING) {
        make_slides(r, q, left);
        if (!r->slides && !r->job.y_by_cols) r->block = r->cols, r->blocks = 1;
    } else if ((double)rows * PACK_BYTES <= left
             && tl_alloc(r->b, &r->packed, rows * r->block, r->size, "a copy of columns of X") != TULLE_OK)
        r->b->error[0] = 0;             /* X is then read in place */
done:
    return status;
}

/* A single column as a row-major matrix. */
static tulle_dense by_rows(const tulle_dense *M)
{
    tulle_dense view = *M;
    if (M->order == TULLE_BY_COLS && M->cols == 1) {
        view.order = TULLE_BY_ROWS;
        view.ld = 1;
    }
    return view;
}

/* All blocks of columns. */
static void multiply_blocks(run *r, int threads)
{
    const bool pack = r->packed, slide = r->slides;
    r->all = r->pieces->count * r->blocks;
    r->tasks = pack ? r->pieces->count : slide ? r->chunks * ((r->blocks - 1) / r->at_once + 1) : r->all;
    for (int64_t i = 0; i < (pack ? r->blocks : 1) && report(r, 1, 0); i++) {
        r->first = i;
        if (pack) tl_team_run(r->b->team, threads, pack_work, r);
        atomic_store(&r->next, 0);
        tl_team_run(r->b->team, threads, slide ? slide_work : multiply_work, r);
    }
}

tulle_status tl_spmm_run(tl_base *b, const tl_spmm_request *q)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = q->A;
    tulle_dense X = by_rows(q->X), Y = by_rows(q->Y);
    run r = {.b = b, .k = tl_spmm_kernels_for(A->val_type, A->idx_type), .pieces = q->pieces, .cols = Y.cols,
             .size = tl_type_size(A->val_type), .X = &X, .in_double = q->in_double};
    if (Y.rows == 0 || Y.cols == 0) return TULLE_OK;
    const tl_spmm_tuning here = tuning_of(b);
    r.tuning = q->tuning ? q->tuning : &here;
    r.job = (tl_spmm_job){.ptr = A->row_ptr,
                          .col = A->col_idx,
                          .val = A->values,
                          .ptr64 = A->ptr_type == TULLE_I64,
                          .nnz = A->nnz,
                          .a_cols = A->cols,
                          .bad = q->unchecked ? &r.bad : NULL,
                          .x = X.values,
                          .x_ld = X.ld,
                          .y = Y.values,
                          .y_ld = Y.ld,
                          .y_by_cols = Y.order == TULLE_BY_COLS,
                          .alpha = q->alpha,
                          .beta = q->beta};
    TRY(make_room(&r, q));
    const bool fours = r.block * (int64_t)r.size <= r.k->strip / 8; /* four rows at a time: kernel_strip.h */
    r.job.far = r.pieces->scattered && (double)X.rows * (double)r.block * (double)r.size
                                           > (double)(fours ? r.tuning->cache_bytes : r.tuning->near_bytes);
    r.job.stream = (double)Y.rows * (double)Y.cols * (double)r.size > (double)r.tuning->cache_bytes;
    multiply_blocks(&r, q->threads);
    if (atomic_load(&b->cancelled)) {
        status = tl_fail(b, TULLE_ECANCEL, "the product was cancelled");
        goto done;
    }
    if (atomic_load(&r.bad)) {
        status = tl_csr_refuse(b, A, "A");
        goto done;
    }
    atomic_store(&r.next, 0);
    if (r.pieces->rows > 0) tl_team_run(b->team, q->threads, join_work, &r);
done:
    tl_free(b, r.sums);
    tl_free(b, r.packed);
    tl_free(b, r.windows);
    tl_free(b, r.slides);
    return status;
}

/* ---- alpha is 0 */

typedef struct scaling {
    const tl_spmm_request *q;
    const tl_spmm_kernels *k;
    int64_t                lines, length;
} scaling;

static void scale_work(void *arg, int thread, int threads)
{
    const scaling *s = arg;
    const tulle_dense *Y = s->q->Y;
    size_t size = tl_type_size(Y->val_type);
    bool whole = Y->ld == s->length;    /* contiguous: treated as one long line */
    int64_t count = whole ? s->lines * s->length : s->lines;
    int64_t begin = tl_part(count, thread, threads), end = tl_part(count, thread + 1, threads);
    if (whole) s->k->scale(s->q->beta, (char *)Y->values + (size_t)begin * size, end - begin);
    for (int64_t i = begin; i < end && !whole; i++)
        s->k->scale(s->q->beta, (char *)Y->values + (size_t)(i * Y->ld) * size, s->length);
}

tulle_status tl_spmm_scale(tl_base *b, const tl_spmm_request *q)
{
    const tulle_dense *Y = q->Y;
    scaling s = {.q = q, .k = tl_spmm_kernels_for(Y->val_type, TULLE_I32),
                 .lines = Y->order == TULLE_BY_COLS ? Y->cols : Y->rows,
                 .length = Y->order == TULLE_BY_COLS ? Y->rows : Y->cols};
    if (s.lines > 0 && s.length > 0)
        tl_team_run(b->team, tl_threads_for(b, q->threads, s.lines * s.length), scale_work, &s);
    return TULLE_OK;
}
