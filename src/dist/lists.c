/* SPDX-License-Identifier: MIT
 *
 * lists.c - which rows of B a rank needs, and which ranks own them.
 *
 * Rows of A are sorted, so the first and last column of each show whether it needs rows of other ranks at
 * all; in a mesh these are few, and only they are read, both here and when columns are renumbered.  The
 * columns that are rows of other ranks are marked in a bitmap, so each is listed once and in order; together
 * with the number of set bits before each word it maps a column to its new number in constant time.  The
 * sorted list is split by owner; the counts are exchanged, then the lists.
 *
 * Rows of B are renumbered in their global order: needed rows of lower ranks, all own rows, needed rows of
 * higher ranks.  So rows of A stay sorted, and products are added in the same order as in one process.
 *
 * Memory: a quarter of a byte for each column between the smallest and the largest one needed, a bit per row
 * of A, and 8 bytes per row that is received or sent. */
#include "dist/dist.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <string.h>

/* Portable: not every processor has an instruction for it, and the builtin would call the compiler's
 * library. */
static inline int count_bits(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (int)((x * 0x0101010101010101u) >> 56);
}

static int lowest_bit(uint64_t x)
{
    return count_bits((x & (~x + 1)) - 1);
}

static inline bool is_own(const tl_lists *l, int64_t c)
{
    return c >= l->own_first && c < l->own_first + l->own_rows;
}

/* ---- rows of A that need rows of other ranks */

/* Sets a bit for each such row, with a specialised loop for each pair of types. */
#define FIND_EDGES(NAME, PTR, IDX)                                                                \
    static void NAME(tl_lists *l, const tulle_csr *A, int64_t row, int64_t last)                  \
    {                                                                                             \
        const PTR *ptr = A->row_ptr;                                                              \
        const IDX *col = A->col_idx;                                                              \
        int64_t first = l->own_first, end = first + l->own_rows;                                  \
        for (int64_t i = row; i < last; i++) {                                                    \
            uint64_t edge = ptr[i] < ptr[i + 1]                                                   \
                            && (col[ptr[i]] < first || col[ptr[i + 1] - 1] >= end);               \
            l->edges[i >> 6] |= edge << (i & 63);                                                 \
        }                                                                                         \
    }
FIND_EDGES(edges_i32_i32, int32_t, int32_t)
FIND_EDGES(edges_i32_i64, int32_t, int64_t)
FIND_EDGES(edges_i64_i32, int64_t, int32_t)
FIND_EDGES(edges_i64_i64, int64_t, int64_t)

typedef struct job { tl_lists *l; const tulle_csr *A; void *to; tulle_index type; } job;

/* Each thread sets whole words of the bitmap, so that no word is written by two. */
static void edges_work(void *arg, int thread, int threads)
{
    job *j = arg;
    const tulle_csr *A = j->A;
    bool ptr64 = A->ptr_type == TULLE_I64, idx64 = A->idx_type == TULLE_I64;
    int64_t words = (A->rows + 63) / 64, row = 64 * tl_part(words, thread, threads);
    int64_t last = 64 * tl_part(words, thread + 1, threads);
    if (last > A->rows) last = A->rows;
    if (ptr64) (idx64 ? edges_i64_i64 : edges_i64_i32)(j->l, A, row, last);
    else (idx64 ? edges_i32_i64 : edges_i32_i32)(j->l, A, row, last);
}

static tulle_status find_edges(tl_base *b, tl_lists *l, const tulle_csr *A)
{
    job j = {.l = l, .A = A};
    tulle_status status = tl_calloc(b, &l->edges, A->rows / 64 + 1, sizeof *l->edges, "marks of rows");
    if (status != TULLE_OK) return status;
    tl_team_run(b->team, tl_threads_for(b, 0, A->rows), edges_work, &j);
    return TULLE_OK;
}

/* The first such row from row i on, or A->rows. */
static int64_t next_edge(const tl_lists *l, const tulle_csr *A, int64_t i)
{
    if (i >= A->rows) return A->rows;
    uint64_t word = l->edges[i >> 6] & (~(uint64_t)0 << (i & 63));
    int64_t w = i >> 6, last = (A->rows - 1) >> 6;
    while (word == 0 && w < last) word = l->edges[++w];
    return word ? 64 * w + lowest_bit(word) : A->rows;
}
#define EACH_EDGE(i) (int64_t i = next_edge(l, A, 0); i < A->rows; i = next_edge(l, A, i + 1))

/* The entries of a row of A: begin .. from-1 and to .. end-1 refer to rows of other ranks. */
typedef struct span { int64_t begin, from, to, end; } span;

static inline span own_span(const tl_lists *l, const tulle_csr *A, int64_t i)
{
    span s = {.begin = tl_row_begin(A, i), .end = tl_row_begin(A, i + 1)};
    s.from = s.begin;
    s.to = s.end;
    while (s.from < s.to && tl_get(A->col_idx, A->idx_type, s.from) < l->own_first) s.from++;
    while (s.from < s.to && tl_get(A->col_idx, A->idx_type, s.to - 1) >= l->own_first + l->own_rows) s.to--;
    return s;
}

/* The range of columns that the bitmap must cover. */
static void find_range(const tl_lists *l, const tulle_csr *A, int64_t *first, int64_t *last)
{
    *first = INT64_MAX;
    *last = -1;
    for EACH_EDGE(i) {
        span s = own_span(l, A, i);
        int64_t low = tl_get(A->col_idx, A->idx_type, s.from > s.begin ? s.begin : s.to);
        int64_t high = tl_get(A->col_idx, A->idx_type, s.to < s.end ? s.end - 1 : s.from - 1);
        if (low < *first) *first = low;
        if (high > *last) *last = high;
    }
}

static void set_bits(tl_lists *l, const tulle_csr *A, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        int64_t at = tl_get(A->col_idx, A->idx_type, k) - l->bits_first;
        l->bits[at >> 6] |= (uint64_t)1 << (at & 63);
    }
}

tulle_status tl_lists_mark(tl_base *b, const tulle_csr *A, tl_lists *l)
{
    tulle_status status = TULLE_OK;
    int64_t first, last;
    TRY(find_edges(b, l, A));
    find_range(l, A, &first, &last);
    l->bits_first = last < 0 ? 0 : first;
    l->words = last < 0 ? 0 : (last - first) / 64 + 1;
    TRY(tl_calloc(b, &l->bits, l->words, sizeof *l->bits, "marks of columns"));
    TRY(tl_alloc(b, &l->before, l->words, sizeof *l->before, "counts of columns"));
    for EACH_EDGE(i) {
        span s = own_span(l, A, i);
        set_bits(l, A, s.begin, s.from);
        set_bits(l, A, s.to, s.end);
    }
    for (int64_t w = 0; w < l->words; w++) {
        l->before[w] = l->need;
        l->need += count_bits(l->bits[w]);
    }
    TRY(tl_alloc(b, &l->row, l->need, sizeof *l->row, "rows that are needed"));
    int64_t at = 0;
    for (int64_t w = 0; w < l->words; w++)
        for (uint64_t x = l->bits[w]; x; x &= x - 1) l->row[at++] = l->bits_first + 64 * w + lowest_bit(x);
    while (l->below < l->need && l->row[l->below] < l->own_first) l->below++;
done:
    return status;
}

static tulle_status begin(tulle_dist *d, const tulle_csr *A, const int64_t *starts, tl_lists *l)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size;
    l->own_first = starts[d->t.rank];
    l->own_rows = starts[d->t.rank + 1] - l->own_first;
    TRY(tl_calloc(d->b, &l->from, size + 1, sizeof *l->from, "counts of rows"));
    TRY(tl_calloc(d->b, &l->to, size + 1, sizeof *l->to, "counts of rows"));
    TRY(tl_lists_mark(d->b, A, l));
    int64_t at = 0;
    for (int r = 0; r < size; r++) {
        while (at < l->need && l->row[at] < starts[r + 1]) at++;
        l->from[r + 1] = at;
    }
done:
    return status;
}

static tulle_status ask(tulle_dist *d, tl_lists *l, const int64_t *starts)
{
    tulle_status status = TULLE_OK;
    for (int r = 0; r < d->t.size; r++)
        TRY(tl_recv(d, l->give + l->to[r], 8 * (l->to[r + 1] - l->to[r]), r, TL_MAIL_LISTS));
    for (int r = 0; r < d->t.size; r++)
        TRY(tl_send(d, l->row + l->from[r], 8 * (l->from[r + 1] - l->from[r]), r, TL_MAIL_LISTS));
    TRY(tl_wait(d));
    for (int64_t i = 0; i < l->to[d->t.size]; i++) {
        l->give[i] -= starts[d->t.rank];
        if (l->give[i] < 0 || l->give[i] >= l->own_rows)
            TRY(tl_fail(d->b, TULLE_ECOMM, "row %" PRId64 " was asked for, which is not here",
                        l->give[i] + starts[d->t.rank]));
    }
done:
    return status;
}

tulle_status tl_lists_make(tulle_dist *d, const tulle_csr *A, const int64_t *starts, tl_lists *l)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size;
    int64_t *count = NULL;
    memset(l, 0, sizeof *l);
    status = tl_calloc(d->b, &count, 2 * (int64_t)size, sizeof *count, "counts of rows");
    if (status == TULLE_OK) status = begin(d, A, starts, l);
    AGREE(status);
    for (int r = 0; r < size; r++) count[r] = l->from[r + 1] - l->from[r];
    TRY(tl_alltoall(d, count, count + size));
    for (int r = 0; r < size; r++) l->to[r + 1] = l->to[r] + count[size + r];
    l->given = l->to[size];
    AGREE(tl_alloc(d->b, &l->give, l->to[size], sizeof *l->give, "rows that others need"));
    AGREE(ask(d, l, starts));
done:
    tl_free(d->b, count);
    return status;
}

/* The position in row[] of a column that belongs to another rank. */
static inline int64_t place_of(const tl_lists *l, int64_t column)
{
    int64_t at = column - l->bits_first;
    uint64_t lower = l->bits[at >> 6] & (((uint64_t)1 << (at & 63)) - 1);
    return l->before[at >> 6] + count_bits(lower);
}

int64_t tl_lists_find(const tl_lists *l, int64_t column)
{
    return is_own(l, column) ? -1 : place_of(l, column);
}

/* Renumbers the entries of some rows: first all as if they referred to rows of this rank, then again those
 * that do not. */
static void renumber_work(void *arg, int thread, int threads)
{
    job *j = arg;
    const tl_lists *l = j->l;
    const tulle_csr *A = j->A;
    int64_t row = tl_row_cut(A, thread, threads), last = tl_row_cut(A, thread + 1, threads);
    int64_t begin = tl_row_begin(A, row), count = tl_row_begin(A, last) - begin;
    if (count == 0) return;
    tl_shift((const char *)A->col_idx + begin * (int64_t)tl_index_size(A->idx_type), A->idx_type,
             (char *)j->to + begin * (int64_t)tl_index_size(j->type), j->type, count,
             l->below - l->own_first);
    for (int64_t i = next_edge(l, A, row); i < last; i = next_edge(l, A, i + 1)) {
        span s = own_span(l, A, i);
        for (int64_t k = s.begin; k < s.from; k++)
            tl_put(j->to, j->type, k, place_of(l, tl_get(A->col_idx, A->idx_type, k)));
        for (int64_t k = s.to; k < s.end; k++)
            tl_put(j->to, j->type, k, place_of(l, tl_get(A->col_idx, A->idx_type, k)) + l->own_rows);
    }
}

tulle_status tl_lists_renumber(tl_base *b, tl_lists *l, const tulle_csr *A, void **col_idx, tulle_index *type)
{
    tulle_status status = TULLE_OK;
    *type = tl_index_for(tl_lists_rows(l));
    TRY(tl_alloc(b, col_idx, A->nnz, tl_index_size(*type), "columns of A"));
    job j = {.l = l, .A = A, .to = *col_idx, .type = *type};
    tl_team_run(b->team, tl_threads_for(b, 0, A->nnz), renumber_work, &j);
done:
    tl_free(b, l->edges);
    tl_free(b, l->bits);
    tl_free(b, l->before);
    l->edges = l->bits = NULL;
    l->before = NULL;
    return status;
}

void tl_lists_done(tl_base *b, tl_lists *l)
{
    tl_free(b, l->row);
    tl_free(b, l->from);
    tl_free(b, l->to);
    tl_free(b, l->give);
    tl_free(b, l->edges);
    tl_free(b, l->bits);
    tl_free(b, l->before);
    memset(l, 0, sizeof *l);
}
