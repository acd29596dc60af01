/* SPDX-License-Identifier: MIT
 *
 * gallery_rows.c - from a function that writes one row to a matrix.
 *
 * Every row is generated twice, first to count and then to fill, in pieces that threads take dynamically.
 * Memory: the matrix, 8 bytes per row, and for each thread a buffer for the longest row. */
#include "matrix/gallery.h"

enum { PIECES_A_THREAD = 64, PIECE_MAX = 4096, SHORT_ROW = 24 };

/* ---- pieces of work */

typedef struct {
    tl_base              *b;
    const char           *stage;
    int64_t               count, piece;
    _Atomic int64_t       next;
    tl_piece_fn           fn;
    void                 *arg;
} pieces;

static void take_pieces(void *arg, int thread, int threads)
{
    pieces *p = arg;
    (void)threads;
    for (;;) {
        if (atomic_load_explicit(&p->b->cancelled, memory_order_relaxed)) return;
        int64_t begin = atomic_fetch_add(&p->next, p->piece);
        if (begin >= p->count) return;
        int64_t end = p->count - begin < p->piece ? p->count : begin + p->piece;
        if (thread == 0 && tl_progress(p->b, p->stage, (double)begin / (double)p->count)) return;
        p->fn(p->arg, thread, begin, end);
    }
}

tulle_status tl_pieces_run(tl_base *b, const char *stage, int64_t count, tl_piece_fn fn, void *arg)
{
    int64_t piece = count / tl_team_size(b->team) / PIECES_A_THREAD;
    piece = piece < 1 ? 1 : piece > PIECE_MAX ? PIECE_MAX : piece;
    pieces p = {.b = b, .stage = stage, .count = count, .piece = piece, .fn = fn, .arg = arg};
    tl_team_run(b->team, count < 256 ? 1 : 0, take_pieces, &p);
    if (atomic_load(&b->cancelled))
        return tl_fail(b, TULLE_ECANCEL, "cancelled while a gallery matrix was made");
    return TULLE_OK;
}

/* ---- rows that come unsorted */

static void swap_entries(int64_t *col, double *val, int64_t i, int64_t j)
{
    int64_t c = col[i];
    col[i] = col[j];
    col[j] = c;
    if (val) {
        double v = val[i];
        val[i] = val[j];
        val[j] = v;
    }
}

/* Insertion sort, which is stable: duplicates keep their order. */
int64_t tl_row_merge(int64_t *col, double *val, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0 && col[j - 1] > col[j]; j--) swap_entries(col, val, j - 1, j);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (kept > 0 && col[kept - 1] == col[i]) {
            if (val) val[kept - 1] += val[i];
            continue;
        }
        col[kept] = col[i];
        if (val) val[kept] = val[i];
        kept++;
    }
    return kept;
}

static void sift(int64_t *col, int64_t root, int64_t n)
{
    int64_t c = col[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && col[child + 1] > col[child]) child++;
        if (col[child] <= c) break;
        col[root] = col[child];
    }
    col[root] = c;
}

/* Quicksort, with insertion sort for short ranges, and heapsort where the partitions are too uneven. */
static void sort_part(int64_t *col, int64_t n, int depth)
{
    while (n > SHORT_ROW) {
        if (depth-- == 0) {
            for (int64_t i = n / 2; i-- > 0;) sift(col, i, n);
            for (int64_t i = n - 1; i > 0; i--) {
                swap_entries(col, NULL, 0, i);
                sift(col, 0, i);
            }
            return;
        }
        int64_t a = col[0], m = col[n / 2], z = col[n - 1];
        int64_t pivot = a < m ? (m < z ? m : a < z ? z : a) : (a < z ? a : m < z ? z : m);
        int64_t i = -1, j = n;
        for (;;) {
            do i++; while (col[i] < pivot);
            do j--; while (col[j] > pivot);
            if (i >= j) break;
            swap_entries(col, NULL, i, j);
        }
        sort_part(col, j + 1, depth);
        col += j + 1;
        n -= j + 1;
    }
    for (int64_t i = 1; i < n; i++) {
        int64_t c = col[i], j = i;
        for (; j > 0 && col[j - 1] > c; j--) col[j] = col[j - 1];
        col[j] = c;
    }
}

static void sort_columns(int64_t *col, int64_t n)
{
    int depth = 4;
    for (int64_t m = n; m > 1; m /= 2) depth += 2;
    sort_part(col, n, depth);
}

int64_t tl_row_set(int64_t *col, int64_t n)
{
    int64_t kept = 0;
    sort_columns(col, n);
    for (int64_t k = 0; k < n; k++)
        if (kept == 0 || col[kept - 1] != col[k]) col[kept++] = col[k];
    return kept;
}

/* ---- the matrix */

typedef struct {
    const tl_rows *g;
    tl_values      values;
    int64_t       *begin;               /* where each row begins; before that its length */
    int64_t       *col;                 /* a row buffer for each thread                  */
    double        *val;
    int64_t        room;
    tulle_matrix  *A;
} builder;

static void count_rows(void *arg, int thread, int64_t begin, int64_t end)
{
    const builder *w = arg;
    int64_t *col = w->col + thread * w->room;
    for (int64_t i = begin; i < end; i++)
        w->begin[i] = w->g->count ? w->g->count(w->g, i) : w->g->row(w->g, i, col, NULL);
}

static double value_of(const builder *w, int64_t i, int64_t j)
{
    static const double small[8] = {-4, -3, -2, -1, 1, 2, 3, 4};
    if (w->values == TL_ONES) return 1.0;
    uint64_t h = tl_hash(w->g->seed, (uint64_t)i, (uint64_t)j);
    return w->values == TL_INTEGER ? small[h >> 61] : 0.5 + tl_unit(h);
}

static void fill_rows(void *arg, int thread, int64_t begin, int64_t end)
{
    const builder *w = arg;
    int64_t *col = w->col + thread * w->room;
    double *val = w->values == TL_NATURAL ? w->val + thread * w->room : NULL;
    double *out = w->A->values;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = w->g->row(w->g, i, col, val), at = w->begin[i];
        tl_put(w->A->row_ptr, w->A->view.ptr_type, i, at);
        for (int64_t k = 0; k < n; k++) {
            tl_put(w->A->col_idx, w->A->view.idx_type, at + k, col[k]);
            out[at + k] = val ? val[k] : value_of(w, i, col[k]);
        }
    }
}

static tulle_status check_size(tl_base *b, const tl_rows *g)
{
    const double most = 1e15;                   /* well below 2^53, where doubles stop being exact */
    double bytes = g->rows * 16 + g->entries * 16 + g->extra_bytes
                 + g->max_row * 16 * tl_team_size(b->team);
    double have = (double)tl_memory_total();
    if (g->rows <= most && g->cols <= most && g->entries <= most && bytes <= have) return TULLE_OK;
    return tl_fail(b, TULLE_ENOMEM,
                   "%s: %.15g rows, %.15g columns and up to %.15g entries need up to %.6g GiB, this "
                   "machine has %.1f GiB", g->name, g->rows, g->cols, g->entries, bytes / 1073741824.0,
                   have / 1073741824.0);
}

tulle_status tl_rows_build(tl_base *b, tl_rows *g, tl_values values, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    builder w = {.g = g, .values = values == TL_NATURAL && !g->natural ? TL_RANDOM : values};
    *out = NULL;
    if (g->rows == 0 || g->entries == 0) g->max_row = 0;
    TRY(check_size(b, g));
    if (g->prepare) TRY(g->prepare(b, g));
    int64_t rows = (int64_t)g->rows, cols = (int64_t)g->cols, nnz = 0;
    w.room = (int64_t)g->max_row + 1;
    TRY(tl_alloc(b, &w.begin, rows + 1, sizeof *w.begin, "row lengths of a gallery matrix"));
    int64_t room = w.room * tl_team_size(b->team);
    TRY(tl_alloc(b, &w.col, room, sizeof *w.col, "a row of a gallery matrix"));
    TRY(tl_alloc(b, &w.val, room, sizeof *w.val, "a row of a gallery matrix"));
    TRY(tl_pieces_run(b, "counting", rows, count_rows, &w));
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = w.begin[i];
        w.begin[i] = nnz;
        nnz += n;
    }
    TRY(tl_matrix_create(b, rows, cols, nnz, tl_index_for(nnz), tl_index_for(cols), TULLE_F64, &w.A));
    TRY(tl_pieces_run(b, "filling", rows, fill_rows, &w));
    tl_put(w.A->row_ptr, w.A->view.ptr_type, rows, nnz);
    if (g->finish && w.values == TL_NATURAL) TRY(g->finish(b, g, w.A));
    *out = w.A;
    w.A = NULL;
done:
    for (int i = 0; i < TL_GALLERY_BLOCKS; i++) tl_free(b, g->block[i]);
    tl_free(b, w.begin);
    tl_free(b, w.col);
    tl_free(b, w.val);
    tl_matrix_free(b, w.A);
    return status;
}
