/* SPDX-License-Identifier: MIT
 *
 * bands.c - sparse times dense where A is on the host and the device has no room for all of it.
 *
 * A is cut into bands of rows.  Each is brought to the device (its row_ptr made to begin at 0 on the way), made ready like a
 * whole A, multiplied into its rows of Y, and let go.  The columns of X that a band needs are all of them, so X comes first,
 * as many columns as half of the memory holds, and stays while the bands go by:
 *
 *     for some columns of X:  bring them        (nothing to do where X lies on the device by rows)
 *         for each band of A:  bring it, Y of these rows and columns = alpha * band * X + beta * Y
 *
 * Where X fits, A, X and Y travel once; else A travels once for each part of X, and more memory for one is less for the other.
 * While kernels take a band, the arrays of the next are on their way in a lane of their own (parcels.c), where there is room for
 * two; chunks.c calls send_next() whenever it has put more of its work into the queue.  TULLE_SPMM_OVERLAP=off: one after the
 * other.
 *
 * A is checked as a whole by the host, before the first band.  How much a band takes at most is known from its rows and
 * entries alone (band_bytes()), so bands are cut beforehand by bisection in row_ptr; one that cannot be had in spite of that is
 * cut in two, as long as none of its Y was written.  TULLE_SPMM_BAND=n: bands of at most n rows, whatever the memory.
 *
 * Device memory: the limit, or three fourths of what is free.  Of that X takes up to a half, and bands three fourths of the rest,
 * two at a time if they can (less where ELLPACK-R is to be beside them); chunks.c has what is left for Y. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW = 4,                            /* rows that are too few for a band of two at a time         */
    PART = 32,                          /* entries for each piece at most: half of what rows.c makes */
    JOIN_BYTES = 12,                    /* of a row in parts                                         */
    TWIN_BYTES = 4 + 4 * TL_TWIN_WORDS  /* of TL_TWIN_ROWS rows that are looked at                   */
};

typedef struct band {
    int64_t     row0, row1, first;      /* first: entry                                   */
    tulle_csr   A;                      /* on the host                                    */
    tl_gpu_spmm part;                   /* on the device                                  */
    tl_parcel   parcel[3];              /* what is still to be sent ahead of its turn     */
    uint64_t    ahead;                  /* bytes that it has on the device before; 0: not */
} band;

typedef struct walk {
    tl_base           *b;
    tl_gpu_spmm       *s;
    tl_c64             alpha, beta;
    const tulle_dense *X, *Y;
    uint64_t           has;             /* bytes in all                                   */
    uint64_t           x_bytes;         /* of these for X                                 */
    uint64_t           aim;             /* for a band                                     */
    bool               two;             /* bands at a time                                */
    int64_t            rows_most;       /* of a band                                      */
    int64_t            width;           /* columns of X at a time                         */
    tl_dmem            x;
    int64_t            count;           /* bands                                          */
    uint64_t           workspace;
    band               band[2];
} walk;

enum { LANE = TL_LANES - 1 };           /* of the next band: chunks.c takes the first ones */

/* ---- bytes */

static uint64_t up(uint64_t bytes)      /* as the pool counts them */
{
    return bytes ? (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN : TL_ALIGN;
}

/* Of the arrays of so many rows and entries. */
static uint64_t array_bytes(const tl_gpu_spmm *s, uint64_t rows, uint64_t nnz)
{
    return up((rows + 1) * (uint64_t)(s->types.ptr / 8)) + up(nnz * (uint64_t)(s->types.idx / 8)) + up(nnz * tl_type_size(s->type));
}

/* The most that they take on the device: also what rows.c makes of them, a column of Y and of the sums of parts. */
static uint64_t band_bytes(const tl_gpu_spmm *s, uint64_t rows, uint64_t nnz)
{
    const uint64_t value = tl_type_size(s->type), parts = nnz / PART;
    return array_bytes(s, rows, nnz) + up((rows / TL_PIECE_ROWS + 1) * TL_PIECE_CLASSES * 4)
           + up((rows / TL_TWIN_ROWS + 1) * TWIN_BYTES) + TL_ALIGN + up((rows + parts) * TL_PIECE_BYTES) + up(parts * JOIN_BYTES)
           + up(parts * value) + up(rows * value);
}

static int64_t forced_rows(void)
{
    const char *text = tl_env("TULLE_SPMM_BAND");
    int64_t rows = text ? strtoll(text, NULL, 10) : 0;
    return rows > 0 ? rows : 0;
}

bool tl_bands_needed(tl_base *b, const tl_gpu_spmm *s, const tulle_csr *A)
{
    if (A->place != TULLE_HOST || A->rows == 0) return false;
    if (forced_rows()) return true;
    uint64_t need = band_bytes(s, (uint64_t)A->rows, (uint64_t)A->nnz) + up((uint64_t)A->cols * tl_type_size(A->val_type));
    uint64_t has = s->limit ? s->limit : s->gpu->caps.memory_free / 16;
    if (need <= has) return false;
    if (!s->limit) {                    /* asking takes time */
        has = tl_dmem_left(s->gpu);
        has -= has / 16;
        if (need <= has) return false;
    }
    tl_trace(b, "sparse times dense: A needs up to %" PRIu64 " bytes on the device, with one column of X and Y; %" PRIu64 " %s",
             need, has, s->limit ? "are allowed" : "can be had");
    return true;
}

/* ---- A, which stays */

tulle_status tl_bands_make(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_bands *bands = &s->bands;
    double start = tl_now();
    if (request->ellr)
        TRY(tl_ellr_check(b, s->gpu, (tl_ellr_shape){request->ellr_threads, request->ellr_columns, request->ellr_block}));
    if (!request->trusted) TRY(tl_csr_check(b, request->A, "A", 0));
    *bands = (tl_bands){.on = true, .request = *request, .A = *request->A};
    bands->request.A = NULL;
    bands->request.trusted = true;
    bands->request.allow_tf32 = false;  /* a band is not used often enough */
    for (int64_t i = 0; i < bands->A.rows; i++) {
        uint64_t length = (uint64_t)(tl_row_begin(&bands->A, i + 1) - tl_row_begin(&bands->A, i));
        if (length <= bands->longest) continue;
        bands->longest = length;
        bands->longest_row = i;
    }
    stats->sec_check = tl_now() - start;
done:
    return status;
}

/* ---- sizes */

/* Where the band that begins with row0 ends: as many rows as `aim` holds, one at least. */
static int64_t band_end(const walk *w, int64_t row0)
{
    const tulle_csr *A = &w->s->bands.A;
    int64_t first = tl_row_begin(A, row0), low = row0 + 1, high = A->rows;
    if (high - row0 > w->rows_most) high = row0 + w->rows_most;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (band_bytes(w->s, (uint64_t)(middle - row0), (uint64_t)(tl_row_begin(A, middle) - first)) <= w->aim) low = middle;
        else high = middle - 1;
    }
    return low;
}

static void count_bands(walk *w)
{
    w->count = 0;
    for (int64_t row = 0; row < w->s->rows; row = band_end(w, row)) w->count++;
}

/* So many columns of X fit `bytes`, whole vectors of 16 bytes where that is more than one. */
static int64_t columns_in(const walk *w, uint64_t bytes)
{
    const uint64_t value = tl_type_size(w->s->type), column = (uint64_t)w->X->rows * value;
    const int64_t vector = (int64_t)(16 / value), most = TL_COLUMNS_MOST / (int64_t)value;
    int64_t cols = w->X->cols < most ? w->X->cols : most;
    if (column && bytes / column < (uint64_t)cols) cols = (int64_t)(bytes / column);
    if (cols < w->X->cols && cols > vector) cols = cols / vector * vector;
    while (cols > 1 && up(tl_columns_bytes(w->X, cols)) > bytes) cols--;
    return cols < 1 ? 1 : cols;
}

static tulle_status choose(walk *w)
{
    const tl_bands *bands = &w->s->bands;
    const bool travels = tl_columns_travel(w->X);
    const uint64_t row = band_bytes(w->s, 1, bands->longest), column = travels ? up(tl_columns_bytes(w->X, 1)) : 0;
    const int64_t forced = forced_rows();
    w->has = w->s->limit ? w->s->limit : tl_dmem_left(w->s->gpu) / 4 * 3;
    if (row + column > w->has)
        return tl_fail(w->b, w->s->limit ? TULLE_ELIMIT : TULLE_ENOMEM, "a band of one row needs %" PRIu64 " bytes on the "
                       "device: row %" PRId64 " of A has %" PRIu64 " entries, which take %" PRIu64 ", and one column of X takes %" PRIu64
                       "; %" PRIu64 " %s", row + column, bands->longest_row, bands->longest, row, column, w->has,
                       w->s->limit ? "is the limit" : "can be had");
    w->width = w->X->cols;
    if (travels) {
        w->width = columns_in(w, w->has - row < w->has / 2 ? w->has - row : w->has / 2);
        w->x_bytes = up(tl_columns_bytes(w->X, w->width));
    }
    w->rows_most = forced && forced < w->s->rows ? forced : w->s->rows;
    return TULLE_OK;
}

/* X has its place: one band at a time where that is all of A, or where two would hold few of its longest rows. */
static void choose_bands(walk *w)
{
    const tl_bands *bands = &w->s->bands;
    const uint64_t row = band_bytes(w->s, 1, bands->longest), room = w->has - w->x_bytes;
    const uint64_t of_two = bands->request.ellr ? room / 4 : room / 8 * 3;
    const char *overlap = tl_env("TULLE_SPMM_OVERLAP");
    w->aim = bands->request.ellr ? room / 3 : room / 4 * 3;
    if (w->aim < row) w->aim = row;
    count_bands(w);
    if (w->count == 1 || (overlap && strcmp(overlap, "off") == 0) || of_two < FEW * row) return;
    w->two = true;
    w->aim = of_two;
    count_bands(w);
}

/* Fewer columns where the device has less than it was thought to have. */
static tulle_status make_room_for_x(walk *w)
{
    tulle_status status = TULLE_OK;
    if (!w->x_bytes) return TULLE_OK;
    while ((status = tl_dmem_alloc(w->b, w->s->gpu, w->x_bytes, "columns of X", &w->x)) == TULLE_ENOMEM && w->width > 1) {
        w->b->error[0] = 0;
        w->width = columns_in(w, w->x_bytes / 2);
        w->x_bytes = up(tl_columns_bytes(w->X, w->width));
    }
    return status;
}

/* ---- one band */

static void set_band(const walk *w, band *k, int64_t row0, int64_t row1)
{
    const tl_gpu_spmm *s = w->s;
    const tulle_csr *A = &s->bands.A;
    *k = (band){.row0 = row0, .row1 = row1, .first = tl_row_begin(A, row0), .A = *A};
    k->A.rows = row1 - row0;
    k->A.nnz = tl_row_begin(A, row1) - k->first;
    k->A.row_ptr = (const char *)A->row_ptr + (size_t)row0 * tl_index_size(A->ptr_type);
    if (k->A.nnz) {
        k->A.col_idx = (const char *)A->col_idx + (size_t)k->first * tl_index_size(A->idx_type);
        k->A.values = (const char *)A->values + (size_t)k->first * tl_type_size(A->val_type);
    }
    k->part = (tl_gpu_spmm){.gpu = s->gpu, .types = s->types, .rows = k->A.rows, .cols = A->cols, .nnz = k->A.nnz, .type = s->type,
                            .limit = w->has - w->x_bytes, .forced = s->forced};
}

/* Memory for the next band.  Where there is none it comes when its turn is. */
static tulle_status ask_next(walk *w, band *next)
{
    tulle_status status = tl_spmm_ask(w->b, &next->part, &next->A, next->first, next->parcel);
    if (status == TULLE_OK) next->ahead = next->part.taken;
    else tl_spmm_leave(&next->part);
    if (status != TULLE_ENOMEM) return status;
    w->b->error[0] = 0;
    return TULLE_OK;
}

/* Of each of its arrays as much as of the present band is in the queue. */
static tulle_status send_next(void *user, double share)
{
    tulle_status status = TULLE_OK;
    walk *w = user;
    band *next = w->band[0].ahead ? &w->band[0] : &w->band[1];
    for (int i = 0; i < TL_COUNT(next->parcel); i++) {
        tl_parcel *p = &next->parcel[i];
        int64_t upto = share < 1 ? (int64_t)(share * (double)p->count) : p->count;
        TRY(tl_parcel_send(w->b, w->s->gpu, p, LANE, upto));
    }
done:
    return status;
}

/* After a failure: what is under way comes to its end, before its memory goes. */
static void come_to_rest(walk *w)
{
    const tl_gpu *gpu = w->s->gpu;
    char said[TL_ERROR_MAX];
    memcpy(said, w->b->error, sizeof said);
    gpu->driver->join(w->b, gpu->device, TL_LANES);
    gpu->driver->wait(w->b, gpu->device);
    memcpy(w->b->error, said, sizeof said);
}

/* Columns col..col+x->cols of its rows of Y, while the next one comes.  Without handles next has no rows. */
static tulle_status one_band(walk *w, band *now, band *next, const tulle_dense *x, int64_t col)
{
    tulle_status status = TULLE_OK;
    tl_gpu_spmm *part = &now->part;
    const tl_driver *d = part->gpu->driver;
    const double rows = (double)w->s->rows, all = rows * (double)w->Y->cols, cols = (double)x->cols;
    tulle_dense y = *w->Y;
    tulle_stats stats = {0};
    tl_gpu_spmm_request request = w->s->bands.request;
    uint64_t y_at = (uint64_t)(y.order == TULLE_BY_COLS ? col * y.ld + now->row0 : now->row0 * y.ld + col);
    y.rows = now->A.rows;
    y.cols = x->cols;
    request.A = &now->A;
    now->ahead = 0;
    part->before = ((double)col * rows + cols * (double)now->row0) / all;
    part->share = (double)now->A.rows * cols / all;
    if (next->A.rows) part->limit -= array_bytes(w->s, (uint64_t)next->A.rows, (uint64_t)next->A.nnz);
    TRY(tl_spmm_ready(w->b, part, &request, now->first, &stats));
    if (next->A.rows) TRY(ask_next(w, next));
    if (next->ahead) {
        TRY(d->fork(w->b, part->gpu->device, TL_LANES));
        part->meanwhile = send_next;
        part->user = w;
    }
    TRY(tl_chunks_run(w->b, part, w->alpha, x, w->beta, &y, y_at, &stats));
    if (next->ahead) TRY(d->join(w->b, part->gpu->device, TL_LANES));
    const uint64_t took = w->x_bytes + next->ahead + stats.workspace_bytes;
    if (w->workspace < took) w->workspace = took;
done:
    if (status != TULLE_OK) {
        come_to_rest(w);
        tl_spmm_leave(&next->part);
        next->ahead = 0;
    }
    tl_spmm_leave(part);
    return status;
}

/* Bands of one height, or less after one could not be had while Y was as it was.  The trace of the first stands for all. */
static tulle_status all_bands(walk *w, const tulle_dense *x, int64_t col)
{
    tulle_status status = TULLE_OK;
    const tulle_trace_fn trace = w->b->trace;
    band *now = &w->band[0], *next = &w->band[1];
    set_band(w, now, 0, band_end(w, 0));
    for (int64_t rows = w->s->rows; ; ) {
        int64_t end = w->two && now->row1 < rows ? band_end(w, now->row1) : now->row1;
        set_band(w, next, now->row1, end);
        status = one_band(w, now, next, x, col);
        bool again = (status == TULLE_ENOMEM || status == TULLE_ELIMIT) && !now->part.begun && now->A.rows > 1;
        w->b->trace = again ? trace : NULL;
        if (again) {
            w->rows_most = now->A.rows / 2;
            tl_trace(w->b, "sparse times dense: %s; bands of at most %" PRId64 " rows", w->b->error, w->rows_most);
            w->b->error[0] = 0;
            set_band(w, now, now->row0, now->row0 + w->rows_most);
            continue;
        }
        if (status != TULLE_OK || now->row1 == rows) break;
        if (!next->ahead) set_band(w, next, now->row1, band_end(w, now->row1));
        band *other = now;
        now = next;
        next = other;
    }
    w->b->trace = trace;
    return status;
}

/* ---- all of them */

tulle_status tl_bands_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta, const tulle_dense *Y,
                          tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    walk w = {.b = b, .s = s, .alpha = alpha, .beta = beta, .X = X, .Y = Y};
    double start = tl_gpu_now(s->gpu);
    if (Y->rows == 0 || Y->cols == 0) return TULLE_OK;
    TRY(choose(&w));
    TRY(make_room_for_x(&w));
    TRY(tl_parcels_room(b, s->gpu));
    choose_bands(&w);
    tl_trace(b, "sparse times dense: A stays on the host: %" PRId64 " band%s of up to %" PRIu64 " bytes, %" PRId64
             " columns of X at a time%s; %" PRIu64 " bytes %s", w.count, w.count == 1 ? "" : "s", w.aim, w.width,
             w.two ? ", the next band comes while one is multiplied" : "", w.has, s->limit ? "are allowed" : "can be had");
    for (int64_t col = 0; col < Y->cols; col += w.width) {
        tulle_dense x = *X;
        if (w.x.handle) {
            x.cols = Y->cols - col < w.width ? Y->cols - col : w.width;
            TRY(tl_columns_bring(b, s, X, col, x.cols, w.x, &x.ld));
            x.order = TULLE_BY_ROWS;
            x.place = TULLE_DEVICE;
            x.values = (void *)(uintptr_t)w.x.handle;
        }
        TRY(all_bands(&w, &x, col));
    }
    TRY(tl_parcels_finish(b, s->gpu));
    stats->sec_numeric = tl_gpu_now(s->gpu) - start;
    if (stats->workspace_bytes < w.workspace) stats->workspace_bytes = w.workspace;
done:
    s->gpu->parcel_busy = 0;            /* after a failure nothing is under way, either */
    tl_dmem_free(s->gpu, w.x);
    return status;
}
