/* SPDX-License-Identifier: MIT
 *
 * bands.c - SpMM with an A on the host that does not fit on the device.
 *
 * A is divided into bands of rows.  Each is copied to the device (with its row_ptr shifted to begin at 0),
 * prepared like a whole A, multiplied into its rows of Y, and freed.  A band may need any row of X, so X is
 * copied first, as many columns as fit into half of the memory, and stays on the device for all bands:
 *
 *     for some columns of X:  copy them         (not needed if X is row-major on the device)
 *         for each band of A:  copy it, Y of these rows and columns = alpha * band * X + beta * Y
 *
 * If all of X fits, A, X and Y are transferred once; otherwise A is transferred once for each part of X, and
 * memory must be divided between the two.  If there is room for two bands, the next one is copied in a lane
 * of its own (parcels.c) while kernels process the present one; chunks.c calls send_next() whenever it has
 * enqueued more work.  TULLE_SPMM_OVERLAP=off: no overlap.
 *
 * The host checks A as a whole, before the first band.  An upper bound for the memory of a band follows from
 * the number of its rows and entries (band_bytes()), so bands are determined in advance by bisection in
 * row_ptr.  If the allocation of one fails nevertheless, it is halved, provided that none of its Y was
 * written.  TULLE_SPMM_BAND=n: bands of at most n rows, whatever the memory.
 *
 * Device memory: the limit, or three quarters of what is free.  X takes up to half of that, and bands three
 * quarters of the rest, for two at a time if possible (less if they are also stored in ELLPACK-R); chunks.c
 * uses what is left for Y. */
#include "gpu/spmm.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW = 4,                            /* bands with fewer rows are not worth having two of         */
    PART = 32,                          /* lower bound for entries per piece: half of those of rows.c */
    JOIN_BYTES = 12,                    /* per row that is divided into parts                        */
    TWIN_BYTES = 4 + 4 * TL_TWIN_WORDS  /* per TL_TWIN_ROWS rows, to find twins                      */
};

typedef struct band {
    int64_t     row0, row1, first;      /* first: its first entry in A                    */
    tulle_csr   A;                      /* on the host                                    */
    tl_gpu_spmm part;                   /* on the device                                  */
    tl_parcel   parcel[3];              /* arrays of which a part is still to be sent     */
    uint64_t    ahead;                  /* bytes allocated ahead of its turn; 0: none     */
} band;

typedef struct walk {
    tl_base           *b;
    tl_gpu_spmm       *s;
    tl_c64             alpha, beta;
    const tulle_dense *X, *Y;
    uint64_t           has;             /* bytes available                                */
    uint64_t           x_bytes;         /* of these for X                                 */
    uint64_t           aim;             /* bytes intended for a band                      */
    bool               two;             /* two bands at a time                            */
    int64_t            rows_most;       /* rows of a band, at most                        */
    int64_t            width;           /* columns of X at a time                         */
    tl_dmem            x;
    int64_t            count;           /* number of bands                                */
    uint64_t           workspace;
    band               band[2];
} walk;

enum { LANE = TL_LANES - 1 };           /* the lane for the next band; chunks.c uses the first ones */

/* ---- bytes */

static uint64_t up(uint64_t bytes)      /* rounded as by the pool */
{
    return bytes ? (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN : TL_ALIGN;
}

/* Bytes of the CSR arrays for so many rows and entries. */
static uint64_t array_bytes(const tl_gpu_spmm *s, uint64_t rows, uint64_t nnz)
{
    return up((rows + 1) * (uint64_t)(s->types.ptr / 8)) + up(nnz * (uint64_t)(s->types.idx / 8))
           + up(nnz * tl_type_size(s->type));
}

/* An upper bound for a band on the device, including the data structures of rows.c, a column of Y, and a
 * column of partial sums. */
static uint64_t band_bytes(const tl_gpu_spmm *s, uint64_t rows, uint64_t nnz)
{
    const uint64_t value = tl_type_size(s->type), parts = nnz / PART;
    return array_bytes(s, rows, nnz) + up((rows / TL_PIECE_ROWS + 1) * TL_PIECE_CLASSES * 4)
           + up((rows / TL_TWIN_ROWS + 1) * TWIN_BYTES) + TL_ALIGN + up((rows + parts) * TL_PIECE_BYTES)
           + up(parts * JOIN_BYTES) + up(parts * value) + up(rows * value);
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
    uint64_t need = band_bytes(s, (uint64_t)A->rows, (uint64_t)A->nnz)
                    + up((uint64_t)A->cols * tl_type_size(A->val_type));
    uint64_t has = s->limit ? s->limit : s->gpu->caps.memory_free / 16;
    if (need <= has) return false;
    if (!s->limit) {                    /* the query takes time */
        has = tl_dmem_left(s->gpu);
        has -= has / 16;
        if (need <= has) return false;
    }
    tl_trace(b,
             "sparse times dense: A needs up to %" PRIu64
             " bytes on the device, with one column of X and Y; %" PRIu64 " %s",
             need, has, s->limit ? "are allowed" : "can be had");
    return true;
}

/* ---- A, which stays on the host */

tulle_status tl_bands_make(tl_base *b, tl_gpu_spmm *s, const tl_gpu_spmm_request *request, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_bands *bands = &s->bands;
    double start = tl_now();
    if (request->ellr)
        TRY(tl_ellr_check(
            b, s->gpu, (tl_ellr_shape){request->ellr_threads, request->ellr_columns, request->ellr_block}));
    if (!request->trusted) TRY(tl_csr_check(b, request->A, "A", 0));
    *bands = (tl_bands){.on = true, .request = *request, .A = *request->A};
    bands->request.A = NULL;
    bands->request.trusted = true;
    bands->request.allow_tf32 = false;  /* a band is not used often enough for that */
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

/* The end of the band that begins with row0: as many rows as fit into `aim` bytes, at least one. */
static int64_t band_end(const walk *w, int64_t row0)
{
    const tulle_csr *A = &w->s->bands.A;
    int64_t first = tl_row_begin(A, row0), low = row0 + 1, high = A->rows;
    if (high - row0 > w->rows_most) high = row0 + w->rows_most;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (band_bytes(w->s, (uint64_t)(middle - row0), (uint64_t)(tl_row_begin(A, middle) - first))
            <= w->aim)
            low = middle;
        else high = middle - 1;
    }
    return low;
}

static void count_bands(walk *w)
{
    w->count = 0;
    for (int64_t row = 0; row < w->s->rows; row = band_end(w, row)) w->count++;
}

/* How many columns of X fit into `bytes`, rounded down to whole vectors of 16 bytes unless it is only one. */
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
    const uint64_t row = band_bytes(w->s, 1, bands->longest),
                   column = travels ? up(tl_columns_bytes(w->X, 1)) : 0;
    const int64_t forced = forced_rows();
    w->has = w->s->limit ? w->s->limit : tl_dmem_left(w->s->gpu) / 4 * 3;
    if (row + column > w->has)
        return tl_fail(w->b, w->s->limit ? TULLE_ELIMIT : TULLE_ENOMEM,
                       "a band of one row needs %" PRIu64 " bytes on the "
                       "device: row %" PRId64 " of A has %" PRIu64 " entries, which take %" PRIu64
                       ", and one column of X takes %" PRIu64 "; %" PRIu64 " %s",
                       row + column, bands->longest_row, bands->longest, row, column, w->has,
                       w->s->limit ? "is the limit" : "can be had");
    w->width = w->X->cols;
    if (travels) {
        w->width = columns_in(w, w->has - row < w->has / 2 ? w->has - row : w->has / 2);
        w->x_bytes = up(tl_columns_bytes(w->X, w->width));
    }
    w->rows_most = forced && forced < w->s->rows ? forced : w->s->rows;
    return TULLE_OK;
}

/* After the columns of X are chosen: one band at a time if A is a single band, or if two bands would each
 * hold too few of its longest rows. */
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

/* Allocates the columns of X; fewer, if the device has less memory than expected. */
static tulle_status make_room_for_x(walk *w)
{
    tulle_status status = TULLE_OK;
    if (!w->x_bytes) return TULLE_OK;
    while ((status = tl_dmem_alloc(w->b, w->s->gpu, w->x_bytes, "columns of X", &w->x)) == TULLE_ENOMEM
           && w->width > 1) {
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
    k->part = (tl_gpu_spmm){.gpu = s->gpu,
                            .types = s->types,
                            .rows = k->A.rows,
                            .cols = A->cols,
                            .nnz = k->A.nnz,
                            .type = s->type,
                            .limit = w->has - w->x_bytes,
                            .forced = s->forced};
}

/* Allocates the next band.  If there is no memory, it is allocated when its turn comes. */
static tulle_status ask_next(walk *w, band *next)
{
    tulle_status status = tl_spmm_ask(w->b, &next->part, &next->A, next->first, next->parcel);
    if (status == TULLE_OK) next->ahead = next->part.taken;
    else tl_spmm_leave(&next->part);
    if (status != TULLE_ENOMEM) return status;
    w->b->error[0] = 0;
    return TULLE_OK;
}

/* Sends the next band up to the share of the present one that has been enqueued. */
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

/* Computes columns col..col+x->cols of the band's rows of Y while the next band is copied.  If the next band
 * has no memory, it has no rows here. */
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
        tl_gpu_rest(w->b, w->s->gpu);
        tl_spmm_leave(&next->part);
        next->ahead = 0;
    }
    tl_spmm_leave(part);
    return status;
}

/* All bands have the same size; smaller ones after an allocation failed before Y was written.  Only the first
 * one is traced. */
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
        bool again =
            (status == TULLE_ENOMEM || status == TULLE_ELIMIT) && !now->part.begun && now->A.rows > 1;
        w->b->trace = again ? trace : NULL;
        if (again) {
            w->rows_most = now->A.rows / 2;
            tl_trace(w->b, "sparse times dense: %s; bands of at most %" PRId64 " rows", w->b->error,
                     w->rows_most);
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

tulle_status tl_bands_run(tl_base *b, tl_gpu_spmm *s, tl_c64 alpha, const tulle_dense *X, tl_c64 beta,
                          const tulle_dense *Y, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    walk w = {.b = b, .s = s, .alpha = alpha, .beta = beta, .X = X, .Y = Y};
    double start = tl_gpu_now(s->gpu);
    if (Y->rows == 0 || Y->cols == 0) return TULLE_OK;
    TRY(choose(&w));
    TRY(make_room_for_x(&w));
    TRY(tl_parcels_room(b, s->gpu));
    choose_bands(&w);
    tl_trace(b,
             "sparse times dense: A stays on the host: %" PRId64 " band%s of up to %" PRIu64
             " bytes, %" PRId64 " columns of X at a time%s; %" PRIu64 " bytes %s",
             w.count, w.count == 1 ? "" : "s", w.aim, w.width,
             w.two ? ", the next band comes while one is multiplied" : "", w.has,
             s->limit ? "are allowed" : "can be had");
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
    s->gpu->parcel_busy = 0;            /* nothing is under way after a failure, either */
    tl_dmem_free(s->gpu, w.x);
    return status;
}
