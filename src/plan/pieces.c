/* SPDX-License-Identifier: MIT
 *
 * pieces.c - cuts the rows of C into pieces of nearly equal work, in order.
 *
 * A piece is a range of rows, or, for a row so heavy that the other threads would have to wait for it, a
 * range of columns of that row.  Threads take pieces in order and their results are joined in order, so a row
 * that was cut by columns needs no special treatment later: its parts simply follow each other, sorted. */
#include "plan/plan.h"
#include <string.h>

typedef struct sink {
    tl_base      *base;
    tl_pieces    *out;
    int64_t       room;
    tulle_status  status;               /* the first failure; nothing is added after it */
} sink;

static void add(sink *s, tl_piece piece, int64_t entries)
{
    tl_pieces *out = s->out;
    if (s->status != TULLE_OK) return;
    if (out->count == s->room) {
        tl_piece *more = NULL;
        s->status = tl_alloc(s->base, &more, 2 * s->room + 64, sizeof *more, "pieces of the work");
        if (s->status != TULLE_OK) return;
        if (out->count) memcpy(more, out->piece, (size_t)out->count * sizeof *more);
        tl_free(s->base, out->piece);
        out->piece = more;
        s->room = 2 * s->room + 64;
    }
    out->piece[out->count++] = piece;
    if (piece.row1 - piece.row0 > out->max_rows) out->max_rows = piece.row1 - piece.row0;
    if (entries > out->max_entries) out->max_entries = entries;
}

/* The window of a row of C: its columns lie in lo..hi-1. */
static void columns_of(const tulle_csr *A, const tulle_csr *B, int64_t row, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MAX;
    *hi = 0;
    for (int64_t k = tl_row_begin(A, row); k < tl_row_begin(A, row + 1); k++) {
        int64_t j = tl_get(A->col_idx, A->idx_type, k);
        int64_t begin = tl_row_begin(B, j), end = tl_row_begin(B, j + 1);
        if (begin == end) continue;
        int64_t first = tl_get(B->col_idx, B->idx_type, begin);
        int64_t last = tl_get(B->col_idx, B->idx_type, end - 1);
        if (first < *lo) *lo = first;
        if (last >= *hi) *hi = last + 1;
    }
    if (*lo >= *hi) *lo = 0, *hi = 1;
}

static void add_heavy(sink *s, const tl_piece_limits *limits, const tulle_csr *A, const tulle_csr *B,
                      int64_t row, int64_t products)
{
    int64_t lo, hi;
    columns_of(A, B, row, &lo, &hi);
    /* searching each row of B for a range of columns pays only when that range holds some entries */
    int64_t a_row = tl_row_begin(A, row + 1) - tl_row_begin(A, row);
    int64_t parts = products / limits->products + 1, most = products / (4 * a_row + 1) + 1;
    if (parts > most) parts = most;
    int64_t width = (hi - lo) / parts;
    /* without overflow: columns may be as large as INT64_MAX */
    if (width < INT64_MAX - 64) width = (width + 64) & ~(int64_t)63;
    if (width < 1024) width = 1024;
    bool more = true;
    for (lo &= ~(int64_t)63; more; lo += more ? width : 0) {
        more = hi - lo > width;
        int64_t columns = more ? width : hi - lo;
        add(s, (tl_piece){row, row + 1, lo, lo + columns, more}, columns < products ? columns : products);
    }
}

/* How many rows from row i on (at most `rows`) have at most `most` products together; *sum: their
 * products. */
static int64_t rows_of(const int64_t *restrict products, int64_t i, int64_t rows, int64_t most, int64_t *sum)
{
    enum { STEP = 32 };
    int64_t n = 0, all = 0;
    while (n < rows) {
        int64_t step = rows - n < STEP ? rows - n : STEP, part = 0;
        for (int64_t k = 0; k < step; k++) part += products[i + n + k];
        if (all + part > most) break;
        n += step;
        all += part;
    }
    for (; n < rows && all + products[i + n] <= most; n++) all += products[i + n];
    *sum = all;
    return n;
}

/* The fast path: where no row is heavy, long or a twin (plan.h), the numbers of products are all it takes. */
static bool cut_plain(sink *s, const tulle_csr *B, const tl_profile *p, const tl_piece_limits *limits,
                      int64_t row0, int64_t row1)
{
    const int64_t *products = p->products;
    const int64_t most = p->max_products;
    const int64_t all = limits->products < limits->entries ? limits->products : limits->entries;
    if (p->a_twins > 0 || most > limits->heavy || most > all || most > B->cols) return false;
    if (p->max_a_row > limits->a_row) return false;
    for (int64_t from = row0, sum; from < row1;) {
        int64_t rows = row1 - from < limits->rows ? row1 - from : limits->rows;
        int64_t n = rows_of(products, from, rows, all, &sum);
        add(s, (tl_piece){.row0 = from, .row1 = from + n}, sum);
        from += n;
    }
    return true;
}

static void cut(sink *s, const tulle_csr *A, const tulle_csr *B, const tl_profile *p,
                const tl_piece_limits *limits, int64_t row0, int64_t row1)
{
    const int64_t *products = p->products;
    int64_t from = row0, sum = 0, entries = 0, twins = 0;
    for (int64_t i = row0; i < row1; i++) {
        int64_t n = products[i];
        int64_t room = n < B->cols ? n : B->cols;
        bool heavy = n > limits->heavy || room > limits->entries
                     || tl_row_begin(A, i + 1) - tl_row_begin(A, i) > limits->a_row;
        bool full = sum + n > limits->products || i - from >= limits->rows;
        /* rows of equal pattern are computed four at a time, so they are kept together */
        twins = p->a_like && p->a_like[i] == TL_TWIN ? twins + 1 : 0;
        if (twins % 12 != 0 && entries + room <= limits->entries && i - from < limits->rows + 12)
            full = false;
        if (i > from && (heavy || full)) {
            add(s, (tl_piece){.row0 = from, .row1 = i}, entries);
            from = i;
            sum = entries = 0;
        }
        if (heavy) {
            add_heavy(s, limits, A, B, i, n);
            from = i + 1;
        } else {
            sum += n;
            entries += room;
        }
    }
    if (row1 > from) add(s, (tl_piece){.row0 = from, .row1 = row1}, entries);
}

tulle_status tl_pieces_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tl_profile *p,
                            const tl_piece_limits *limits, int64_t row0, int64_t row1, tl_pieces *out)
{
    sink s = {.base = b, .out = out};
    memset(out, 0, sizeof *out);
    if (!cut_plain(&s, B, p, limits, row0, row1)) cut(&s, A, B, p, limits, row0, row1);
    if (s.status != TULLE_OK) tl_pieces_done(b, out);
    return s.status;
}

void tl_pieces_done(tl_base *b, tl_pieces *pieces)
{
    tl_free(b, pieces->piece);
    memset(pieces, 0, sizeof *pieces);
}
