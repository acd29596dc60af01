/* SPDX-License-Identifier: MIT
 *
 * sort.c - sorts rows and adds duplicates.
 *
 * Rows are sorted one by one, never by counting columns, so that a matrix may be as wide as its index type
 * allows.  Pairs (column, position in the row) are sorted by a stable merge sort that starts from runs sorted
 * by insertion; values are then fetched in that order, and those of equal columns are added in that order, so
 * that the sum is ((v1 + v2) + v3) in the order of the input.  Rows that are already sorted are not changed.
 * Where duplicates were added, each thread closes the gaps between its rows; then the gaps between threads
 * are closed.
 *
 * Memory: the result; per thread 32 bytes and a value for each entry of the longest unsorted row it finds. */
#include "matrix/parts.h"

enum { RUN = 16 };

typedef struct slot {
    int64_t row0, row1;                 /* the rows of this thread             */
    int64_t longest;                    /* unsorted row of these               */
    int64_t kept;                       /* entries left in them                */
    char   *scratch;                    /* longest * (2 pairs and a value)     */
} slot;

typedef struct job {
    const tulle_csr *A;
    void            *row_ptr, *col_idx, *values;    /* to be written                       */
    size_t           size;              /* of a value; 0: none                 */
    slot            *slots;
} job;

static bool row_in_order(const tulle_csr *A, int64_t begin, int64_t end)
{
    for (int64_t k = begin + 1; k < end; k++)
        if (tl_get(A->col_idx, A->idx_type, k) <= tl_get(A->col_idx, A->idx_type, k - 1)) return false;
    return true;
}

static void measure_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = j->A;
    slot *s = &j->slots[thread];
    *s = (slot){.row0 = tl_row_cut(A, thread, threads), .row1 = tl_row_cut(A, thread + 1, threads)};
    for (int64_t i = s->row0; i < s->row1; i++) {
        int64_t begin = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
        if (end - begin > s->longest && !row_in_order(A, begin, end)) s->longest = end - begin;
    }
}

/* ---- a stable merge sort; the result is in a or in b */

static void sort_run(tl_pair *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        tl_pair p = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1].col > p.col; k--) a[k] = a[k - 1];
        a[k] = p;
    }
}

static void merge(const tl_pair *a, int64_t na, const tl_pair *b, int64_t nb, tl_pair *to)
{
    while (na > 0 && nb > 0) {
        bool second = b->col < a->col;                  /* equal: a first, to be stable */
        *to++ = second ? *b : *a;
        b += second;
        nb -= second;
        a += !second;
        na -= !second;
    }
    memcpy(to, a, (size_t)na * sizeof *a);
    memcpy(to + na, b, (size_t)nb * sizeof *b);
}

tl_pair *tl_pairs_sort(tl_pair *a, tl_pair *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN) sort_run(a + i, n - i < RUN ? n - i : RUN);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = n - i < width ? n - i : width;
            int64_t nb = n - i - na < width ? n - i - na : width;
            merge(a + i, na, a + i + na, nb, b + i);
        }
        tl_pair *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* ---- one row: writes its sorted entries at `to`, and returns how many are left */

static int64_t sort_row(const job *j, char *scratch, int64_t begin, int64_t n, int64_t to)
{
    const tulle_csr *A = j->A;
    void *values = j->size ? (char *)j->values + (size_t)to * j->size : NULL;
    tl_pair *a = (tl_pair *)(void *)scratch, *b = a + n;
    char *old = (char *)(b + n);
    for (int64_t k = 0; k < n; k++)
        a[k] = (tl_pair){tl_get(A->col_idx, A->idx_type, begin + k), k};
    if (j->size) memcpy(old, (const char *)A->values + (size_t)begin * j->size, (size_t)n * j->size);
    const tl_pair *sorted = tl_pairs_sort(a, b, n);
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        if (k > 0 && sorted[k].col == sorted[k - 1].col) {
            if (j->size) tl_value_add(A->val_type, values, kept - 1, old, sorted[k].place);
        } else {
            tl_put(j->col_idx, A->idx_type, to + kept, sorted[k].col);
            tl_value_move(values, kept, old, sorted[k].place, j->size);
            kept++;
        }
    }
    return kept;
}

/* Moves n entries towards the beginning of the arrays. */
static void move_entries(const job *j, int64_t to, int64_t from, int64_t n)
{
    size_t width = tl_index_size(j->A->idx_type);
    if (to == from || n == 0) return;
    char *col = j->col_idx, *val = j->values;
    memmove(col + (size_t)to * width, col + (size_t)from * width, (size_t)n * width);
    if (val) memmove(val + (size_t)to * j->size, val + (size_t)from * j->size, (size_t)n * j->size);
}

/* Sorts the thread's rows and stores them without gaps, from where the first began. */
static void sort_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = j->A;
    slot *s = &j->slots[thread];
    (void)threads;
    if (s->row0 == s->row1) return;
    int64_t begin = tl_row_begin(A, s->row0), at = begin, first = begin;
    for (int64_t i = s->row0; i < s->row1; i++) {
        int64_t end = tl_row_begin(A, i + 1), n = end - begin;
        if (row_in_order(A, begin, end)) move_entries(j, at, begin, n);
        else n = sort_row(j, s->scratch, begin, n, at);
        if (i > s->row0) tl_put(j->row_ptr, A->ptr_type, i, at);        /* others read the first */
        at += n;
        begin = end;
    }
    s->kept = at - first;
}

/* ---- closing the gaps between the threads' rows, where duplicates were added */

static void close_gaps(const job *j, int threads, int64_t kept)
{
    const tulle_csr *A = j->A;
    int64_t at = 0;
    for (int t = 0; t < threads; t++) {
        const slot *s = &j->slots[t];
        if (s->row0 == s->row1) continue;
        int64_t from = tl_row_begin(A, s->row0), back = from - at;
        move_entries(j, at, from, s->kept);
        for (int64_t i = s->row0; i < s->row1 && back; i++)
            tl_put(j->row_ptr, A->ptr_type, i, tl_row_begin(A, i) - back);
        at += s->kept;
    }
    tl_put(j->row_ptr, A->ptr_type, A->rows, kept);
}

static int threads_for(const tl_base *b, const tulle_csr *A)
{
    return tl_threads_for(b, 0, A->rows + A->nnz);
}

static uint64_t scratch_bytes(const job *j, int64_t longest)
{
    return (uint64_t)longest * (2 * sizeof(tl_pair) + j->size);
}

tulle_status tl_rows_sort_bytes(tl_base *b, const tulle_csr *A, uint64_t *bytes)
{
    tulle_status status = TULLE_OK;
    int threads = threads_for(b, A);
    job j = {.A = A, .size = tl_value_size(A)};
    *bytes = (uint64_t)threads * sizeof *j.slots;
    TRY(tl_alloc(b, &j.slots, threads, sizeof *j.slots, "slots for sorting rows"));
    tl_team_run(b->team, threads, measure_work, &j);
    for (int t = 0; t < threads; t++) *bytes += scratch_bytes(&j, j.slots[t].longest);
done:
    tl_free(b, j.slots);
    return status;
}

tulle_status tl_rows_sort(tl_base *b, tulle_matrix *A)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *V = &A->view;
    int threads = threads_for(b, V);
    int64_t longest = 0, kept = 0;
    job j = {.A = V, .row_ptr = A->row_ptr, .col_idx = A->col_idx, .values = A->values,
             .size = tl_value_size(V)};
    TRY(tl_calloc(b, &j.slots, threads, sizeof *j.slots, "slots for sorting rows"));
    tl_team_run(b->team, threads, measure_work, &j);
    for (int t = 0; t < threads; t++)
        if (j.slots[t].longest > longest) longest = j.slots[t].longest;
    if (longest == 0) goto done;
    for (int t = 0; t < threads; t++)
        TRY(tl_alloc(b, &j.slots[t].scratch, (int64_t)scratch_bytes(&j, j.slots[t].longest), 1,
                     "space to sort a row"));
    tl_team_run(b->team, threads, sort_work, &j);
    for (int t = 0; t < threads; t++) kept += j.slots[t].kept;
    if (kept == V->nnz) goto done;
    close_gaps(&j, threads, kept);
    A->view.nnz = kept;
    tl_shrink(b, A->col_idx, (uint64_t)kept * tl_index_size(V->idx_type));
    tl_shrink(b, A->values, (uint64_t)kept * j.size);
done:
    for (int t = 0; j.slots && t < threads; t++) tl_free(b, j.slots[t].scratch);
    tl_free(b, j.slots);
    return status;
}

tulle_status tl_csr_sort(tl_base *b, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *S = NULL;
    *out = NULL;
    TRY(tl_csr_check_bounds(b, A, "A", 0));
    TRY(tl_matrix_copy(b, A, &S));
    TRY(tl_rows_sort(b, S));
    *out = S;
    S = NULL;
done:
    tl_matrix_free(b, S);
    return status;
}
