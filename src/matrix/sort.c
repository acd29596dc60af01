/* SPDX-License-Identifier: MIT
 *
 * sort.c - rows put in order, entries in the same place added.
 *
 * Rows are sorted one by one, never by counting columns, so that a matrix may be as wide as its index
 * type allows.  Pairs (column, place in the row) are sorted by a stable merge sort that starts from runs
 * made by insertion; values are then fetched in that order, and equal columns added as they come, so
 * that the sum is ((v1 + v2) + v3) in the order of the input.  Rows in order are left alone.
 * Where entries were added the rows no longer fit together; they are copied into a new matrix.
 *
 * Memory: the result; per thread 48 bytes an entry of the longest unsorted row it meets; a second copy
 * of the result where entries were added, until the first is freed. */
#include "matrix/parts.h"

enum { RUN = 16 };

typedef struct pair { int64_t col, place; } pair;

typedef struct slot {
    int64_t longest;                    /* unsorted row of this thread         */
    int64_t kept;                       /* entries left in the thread's rows   */
    char   *scratch;                    /* longest * (2 pairs and a value)     */
} slot;

typedef struct job {
    tulle_matrix *A, *out;
    size_t        size;                 /* of a value; 0: none                 */
    int64_t      *length;               /* of each row after adding            */
    slot         *slots;
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
    const tulle_csr *A = &j->A->view;
    int64_t longest = 0, last = tl_row_cut(A, thread + 1, threads);
    for (int64_t i = tl_row_cut(A, thread, threads); i < last; i++) {
        int64_t begin = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
        if (end - begin > longest && !row_in_order(A, begin, end)) longest = end - begin;
    }
    j->slots[thread].longest = longest;
}

/* ---- a stable merge sort; the answer lies in a or in b */

static void sort_run(pair *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        pair p = a[i];
        int64_t k = i;
        for (; k > 0 && a[k - 1].col > p.col; k--) a[k] = a[k - 1];
        a[k] = p;
    }
}

static void merge(const pair *a, int64_t na, const pair *b, int64_t nb, pair *to)
{
    while (na > 0 && nb > 0) {
        bool second = b->col < a->col;                  /* equal: the first comes first */
        *to++ = second ? *b : *a;
        b += second;
        nb -= second;
        a += !second;
        na -= !second;
    }
    memcpy(to, a, (size_t)na * sizeof *a);
    memcpy(to + na, b, (size_t)nb * sizeof *b);
}

static pair *sort_pairs(pair *a, pair *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += RUN) sort_run(a + i, n - i < RUN ? n - i : RUN);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = n - i < width ? n - i : width;
            int64_t nb = n - i - na < width ? n - i - na : width;
            merge(a + i, na, a + i + na, nb, b + i);
        }
        pair *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* ---- one row: returns how many entries are left */

static int64_t settle_row(const job *j, char *scratch, int64_t begin, int64_t n)
{
    const tulle_csr *A = &j->A->view;
    void *values = j->size ? (char *)j->A->values + (size_t)begin * j->size : NULL;
    pair *a = (pair *)(void *)scratch, *b = a + n;
    char *old = (char *)(b + n);
    for (int64_t k = 0; k < n; k++)
        a[k] = (pair){tl_get(A->col_idx, A->idx_type, begin + k), k};
    if (j->size) memcpy(old, values, (size_t)n * j->size);
    const pair *sorted = sort_pairs(a, b, n);
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        if (k > 0 && sorted[k].col == sorted[k - 1].col) {
            if (j->size) tl_value_add(A->val_type, values, kept - 1, old, sorted[k].place);
        } else {
            tl_put(j->A->col_idx, A->idx_type, begin + kept, sorted[k].col);
            tl_value_move(values, kept, old, sorted[k].place, j->size);
            kept++;
        }
    }
    return kept;
}

static void settle_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = &j->A->view;
    slot *s = &j->slots[thread];
    int64_t kept = 0, last = tl_row_cut(A, thread + 1, threads);
    for (int64_t i = tl_row_cut(A, thread, threads); i < last; i++) {
        int64_t begin = tl_row_begin(A, i), n = tl_row_begin(A, i + 1) - begin;
        if (!row_in_order(A, begin, begin + n)) n = settle_row(j, s->scratch, begin, n);
        j->length[i] = n;
        kept += n;
    }
    s->kept = kept;
}

/* ---- closing the gaps that added entries left */

static void close_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = &j->A->view;
    size_t width = tl_index_size(A->idx_type);
    int64_t last = tl_row_cut(A, thread + 1, threads), at = 0;
    for (int t = 0; t < thread; t++) at += j->slots[t].kept;
    for (int64_t i = tl_row_cut(A, thread, threads); i < last; i++) {
        size_t begin = (size_t)tl_row_begin(A, i), n = (size_t)j->length[i];
        tl_put(j->out->row_ptr, A->ptr_type, i, at);
        memcpy((char *)j->out->col_idx + (size_t)at * width, (const char *)A->col_idx + begin * width,
               n * width);
        if (j->size)
            memcpy((char *)j->out->values + (size_t)at * j->size,
                   (const char *)A->values + begin * j->size, n * j->size);
        at += (int64_t)n;
    }
}

tulle_status tl_rows_settle(tl_base *b, tulle_matrix **A)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *V = &(*A)->view;
    int threads = tl_threads_for(b, 0, V->rows + V->nnz);
    int64_t longest = 0, kept = 0;
    job j = {.A = *A, .size = tl_value_size(V)};
    TRY(tl_calloc(b, &j.slots, threads, sizeof *j.slots, "slots for sorting rows"));
    tl_team_run(b->team, threads, measure_work, &j);
    for (int t = 0; t < threads; t++)
        if (j.slots[t].longest > longest) longest = j.slots[t].longest;
    if (longest == 0) goto done;
    TRY(tl_alloc(b, &j.length, V->rows, sizeof *j.length, "lengths of sorted rows"));
    for (int t = 0; t < threads; t++)
        TRY(tl_alloc(b, &j.slots[t].scratch, j.slots[t].longest, 2 * sizeof(pair) + j.size,
                     "space to sort a row"));
    tl_team_run(b->team, threads, settle_work, &j);
    for (int t = 0; t < threads; t++) kept += j.slots[t].kept;
    if (kept == V->nnz) goto done;
    TRY(tl_matrix_create(b, V->rows, V->cols, kept, V->ptr_type, V->idx_type, tl_value_type(V), &j.out));
    tl_team_run(b->team, threads, close_work, &j);
    tl_put(j.out->row_ptr, V->ptr_type, V->rows, kept);
    tl_matrix_free(b, *A);
    *A = j.out;
done:
    for (int t = 0; j.slots && t < threads; t++) tl_free(b, j.slots[t].scratch);
    tl_free(b, j.length);
    tl_free(b, j.slots);
    return status;
}

tulle_status tl_csr_sort(tl_base *b, const tulle_csr *A, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *S = NULL;
    *out = NULL;
    TRY(tl_csr_check_bounds(b, A, "A", 0));
    TRY(tl_matrix_create(b, A->rows, A->cols, A->nnz, A->ptr_type, A->idx_type, tl_value_type(A), &S));
    memcpy(S->row_ptr, A->row_ptr, (size_t)(A->rows + 1) * tl_index_size(A->ptr_type));
    if (A->nnz > 0) memcpy(S->col_idx, A->col_idx, (size_t)A->nnz * tl_index_size(A->idx_type));
    if (A->nnz > 0 && A->values) memcpy(S->values, A->values, (size_t)A->nnz * tl_value_size(A));
    TRY(tl_rows_settle(b, &S));
    *out = S;
    S = NULL;
done:
    tl_matrix_free(b, S);
    return status;
}
