/* SPDX-License-Identifier: MIT
 *
 * mtx_build.c - entries in the order of a file to CSR, the halves of symmetric matrices unfolded.
 *
 *   sorted by row     the arrays are the matrix already; only row pointers are made
 *   sorted by column  what most files are: a transposition, and rows come out sorted
 *   anything else     entries are put into their rows in the order of the file; tl_rows_settle() then
 *                     sorts the rows that need it and adds what stands in the same place, in order
 *
 * Putting is parallel without counters per thread: each thread owns a range of rows, reads all row
 * indices, and moves what is its own.  So the order within a row is that of the file whatever the number
 * of threads.  Values are moved first, then columns, and each old array is freed at once.
 *
 * Memory in bytes an entry, for 32-bit indices and doubles (12 in the matrix): 16 sorted by row, 20
 * sorted by column, 24 otherwise; 20 for symmetric matrices. */
#include "matrix/files.h"
#include <string.h>

enum { THREADS_MAX = 8, SMALL = 1 << 14 };      /* every thread reads every row index */

typedef struct build {
    tl_mtx_all *all;
    int64_t     entries, rows, cols, nnz;
    bool        folded;                         /* each entry off the diagonal stands for two */
    double      sign_re, sign_im;               /* of the second one */
    tulle_index ptr_type;
    void       *row_ptr, *col_idx, *val;        /* of the matrix */
    void       *col_ptr;                        /* sorted by column: in place of the columns */
    int64_t     cut[THREADS_MAX + 1];           /* rows of each thread */
    const void *major;                          /* for pointers(): sorted indices */
    void       *major_ptr;
    int64_t     majors;
} build;

/* ---- pointers from sorted indices */

static void pointers(void *arg, int thread, int threads)
{
    build *u = arg;
    tulle_index idx = u->all->idx_type;
    int64_t from = tl_part(u->entries, thread, threads), to = tl_part(u->entries, thread + 1, threads);
    int64_t last = from > 0 ? tl_get(u->major, idx, from - 1) : -1;
    for (int64_t k = from; k < to; k++) {
        int64_t now = tl_get(u->major, idx, k);
        while (last < now) tl_put(u->major_ptr, u->ptr_type, ++last, k);
    }
    if (thread == threads - 1)
        while (last < u->majors) tl_put(u->major_ptr, u->ptr_type, ++last, u->entries);
}

/* ---- counting: row_ptr[i] = entries of row i, each thread for its rows */

TL_INLINE void count_rows(build *u, int64_t low, int64_t high, const bool const_narrow)
{
    const int32_t *row4 = u->all->row, *col4 = u->all->col;
    int32_t *ptr4 = u->row_ptr;
    const uint64_t width = (uint64_t)(high - low);
    for (int64_t k = 0; k < u->entries; k++) {
        int64_t i = const_narrow ? row4[k] : tl_get(u->all->row, u->all->idx_type, k);
        if ((uint64_t)(i - low) < width) {
            if (const_narrow) ptr4[i]++;
            else tl_put(u->row_ptr, u->ptr_type, i, tl_get(u->row_ptr, u->ptr_type, i) + 1);
        }
        if (!u->folded) continue;
        int64_t j = const_narrow ? col4[k] : tl_get(u->all->col, u->all->idx_type, k);
        if (i != j && (uint64_t)(j - low) < width) {
            if (const_narrow) ptr4[j]++;
            else tl_put(u->row_ptr, u->ptr_type, j, tl_get(u->row_ptr, u->ptr_type, j) + 1);
        }
    }
}

static bool narrow(const build *u)
{
    return u->all->idx_type == TULLE_I32 && u->ptr_type == TULLE_I32;
}

static void count(void *arg, int thread, int threads)
{
    build *u = arg;
    size_t size = tl_index_size(u->ptr_type);
    int64_t low = tl_part(u->rows, thread, threads), high = tl_part(u->rows, thread + 1, threads);
    memset((char *)u->row_ptr + (size_t)low * size, 0, (size_t)(high - low) * size);
    if (narrow(u)) count_rows(u, low, high, true);
    else count_rows(u, low, high, false);
}

/* Counts to places, and rows to threads by their entries. */
static void sum_up(build *u, int threads)
{
    int64_t sum = 0;
    int t = 1;
    u->cut[0] = 0;
    for (int64_t i = 0; i < u->rows; i++) {
        int64_t n = tl_get(u->row_ptr, u->ptr_type, i);
        while (t < threads && sum >= tl_part(u->nnz, t, threads)) u->cut[t++] = i;
        tl_put(u->row_ptr, u->ptr_type, i, sum);
        sum += n;
    }
    while (t <= threads) u->cut[t++] = u->rows;
    tl_put(u->row_ptr, u->ptr_type, u->rows, sum);
}

/* After a pass row_ptr[i] is where row i ends: back to where it begins. */
static void rewind_rows(build *u)
{
    size_t size = tl_index_size(u->ptr_type);
    memmove((char *)u->row_ptr + size, u->row_ptr, (size_t)u->rows * size);
    memset(u->row_ptr, 0, size);
}

/* ---- moving */

TL_INLINE int64_t next_place(build *u, int64_t i, const bool const_narrow)
{
    if (const_narrow) return ((int32_t *)u->row_ptr)[i]++;
    int64_t p = tl_get(u->row_ptr, u->ptr_type, i);
    tl_put(u->row_ptr, u->ptr_type, i, p + 1);
    return p;
}

TL_INLINE void move_values(build *u, int64_t low, int64_t high, const bool const_narrow,
                           const bool const_complex)
{
    const tl_mtx_all *all = u->all;
    const int32_t *row4 = all->row, *col4 = all->col;
    const double *from = all->val;
    const tl_c64 *from_c = all->val;
    double *to = u->val;
    tl_c64 *to_c = u->val;
    const uint64_t width = (uint64_t)(high - low);
    for (int64_t k = 0; k < u->entries; k++) {
        int64_t i = const_narrow ? row4[k] : tl_get(all->row, all->idx_type, k);
        if ((uint64_t)(i - low) < width) {
            int64_t p = next_place(u, i, const_narrow);
            if (const_complex) to_c[p] = from_c[k];
            else to[p] = from[k];
        }
        if (!u->folded) continue;
        int64_t j = const_narrow ? col4[k] : tl_get(all->col, all->idx_type, k);
        if (i != j && (uint64_t)(j - low) < width) {
            int64_t p = next_place(u, j, const_narrow);
            if (const_complex) to_c[p] = (tl_c64){u->sign_re * from_c[k].re, u->sign_im * from_c[k].im};
            else to[p] = u->sign_re * from[k];
        }
    }
}

static void values(void *arg, int thread, int threads)
{
    build *u = arg;
    int64_t low = u->cut[thread], high = u->cut[thread + 1];
    bool complex_ = u->all->head.field == TL_COMPLEX;
    (void)threads;
    if (complex_ && narrow(u)) move_values(u, low, high, true, true);
    else if (complex_) move_values(u, low, high, false, true);
    else if (narrow(u)) move_values(u, low, high, true, false);
    else move_values(u, low, high, false, false);
}

TL_INLINE void put_column(build *u, int64_t i, int64_t j, const bool const_narrow)
{
    int64_t p = next_place(u, i, const_narrow);
    if (const_narrow) ((int32_t *)u->col_idx)[p] = (int32_t)j;
    else tl_put(u->col_idx, u->all->idx_type, p, j);
}

TL_INLINE void move_columns(build *u, int64_t low, int64_t high, const bool const_narrow)
{
    const tl_mtx_all *all = u->all;
    const int32_t *row4 = all->row, *col4 = all->col;
    const uint64_t width = (uint64_t)(high - low);
    if (u->col_ptr) {
        for (int64_t j = 0; j < u->cols; j++) {
            int64_t end = tl_get(u->col_ptr, u->ptr_type, j + 1);
            for (int64_t k = tl_get(u->col_ptr, u->ptr_type, j); k < end; k++) {
                int64_t i = const_narrow ? row4[k] : tl_get(all->row, all->idx_type, k);
                if ((uint64_t)(i - low) < width) put_column(u, i, j, const_narrow);
            }
        }
        return;
    }
    for (int64_t k = 0; k < u->entries; k++) {
        int64_t i = const_narrow ? row4[k] : tl_get(all->row, all->idx_type, k);
        int64_t j = const_narrow ? col4[k] : tl_get(all->col, all->idx_type, k);
        if ((uint64_t)(i - low) < width) put_column(u, i, j, const_narrow);
        if (u->folded && i != j && (uint64_t)(j - low) < width) put_column(u, j, i, const_narrow);
    }
}

static void columns(void *arg, int thread, int threads)
{
    build *u = arg;
    (void)threads;
    if (narrow(u)) move_columns(u, u->cut[thread], u->cut[thread + 1], true);
    else move_columns(u, u->cut[thread], u->cut[thread + 1], false);
}

static void ones(void *arg, int thread, int threads)
{
    build *u = arg;
    double *val = u->val;
    int64_t end = tl_part(u->nnz, thread + 1, threads);
    for (int64_t p = tl_part(u->nnz, thread, threads); p < end; p++) val[p] = 1.0;
}

/* ---- the whole */

/* Back to the system, not to the pool: what comes next is of another size. */
static void drop(tl_base *b, void **p)
{
    tl_free(b, *p);
    tl_pool_trim(b->pool);
    *p = NULL;
}

/* The file's arrays become the matrix's. */
static tulle_status keep_sorted(tl_base *b, build *u, int threads)
{
    tulle_status status = TULLE_OK;
    tl_mtx_all *all = u->all;
    TRY(tl_alloc(b, &u->row_ptr, u->rows + 1, tl_index_size(u->ptr_type), "row pointers of a matrix"));
    u->major = all->row;
    u->major_ptr = u->row_ptr;
    u->majors = u->rows;
    tl_team_run(b->team, threads, pointers, u);
    drop(b, &all->row);
    u->col_idx = all->col;
    u->val = all->val;
    all->col = all->val = NULL;
done:
    return status;
}

static tulle_status put_into_rows(tl_base *b, build *u, int threads)
{
    tulle_status status = TULLE_OK;
    tl_mtx_all *all = u->all;
    size_t ptr = tl_index_size(u->ptr_type), idx = tl_index_size(all->idx_type);
    size_t val = all->head.field == TL_COMPLEX ? sizeof(tl_c64) : sizeof(double);
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    if (all->by_col && !u->folded && u->cols < u->entries) {
        TRY(tl_alloc(b, &u->col_ptr, u->cols + 1, ptr, "column pointers of a file"));
        u->major = all->col;
        u->major_ptr = u->col_ptr;
        u->majors = u->cols;
        tl_team_run(b->team, threads, pointers, u);
        drop(b, &all->col);
    }
    TRY(tl_alloc(b, &u->row_ptr, u->rows + 1, ptr, "row pointers of a matrix"));
    tl_team_run(b->team, threads, count, u);
    sum_up(u, threads);
    if (all->head.field != TL_PATTERN) {
        TRY(tl_alloc(b, &u->val, u->nnz, val, "values of a matrix"));
        tl_team_run(b->team, threads, values, u);
        rewind_rows(u);
        drop(b, &all->val);
    }
    TRY(tl_alloc(b, &u->col_idx, u->nnz, idx, "column indices of a matrix"));
    tl_team_run(b->team, threads, columns, u);
    rewind_rows(u);
    drop(b, &all->row);
    drop(b, &all->col);
    drop(b, &u->col_ptr);
done:
    return status;
}

tulle_status tl_mtx_build(tl_base *b, tl_mtx_all *all, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    const tl_mtx_head *h = &all->head;
    tulle_matrix *A = NULL;
    build u = {.all = all, .entries = h->entries, .rows = h->rows, .cols = h->cols, .nnz = h->entries,
               .folded = h->symmetry != TL_GENERAL,
               .sign_re = h->symmetry == TL_SKEW ? -1 : 1,
               .sign_im = h->symmetry == TL_SYMMETRIC ? 1 : -1};
    int threads = h->entries < SMALL ? 1 : tl_team_size(b->team);
    *out = NULL;
    if (u.folded) u.nnz += h->entries - all->diagonal;
    u.ptr_type = tl_index_for(u.nnz);
    TRY(tl_calloc(b, &A, 1, sizeof *A, "a matrix"));
    if (all->by_row && !u.folded) TRY(keep_sorted(b, &u, threads));
    else TRY(put_into_rows(b, &u, threads));
    if (h->field == TL_PATTERN) {
        TRY(tl_alloc(b, &u.val, u.nnz, sizeof(double), "values of a matrix"));
        tl_team_run(b->team, threads, ones, &u);
    }
    A->view = (tulle_csr){.rows = u.rows, .cols = u.cols, .nnz = u.nnz, .row_ptr = u.row_ptr,
                          .col_idx = u.col_idx, .values = u.val, .ptr_type = u.ptr_type,
                          .idx_type = all->idx_type,
                          .val_type = h->field == TL_COMPLEX ? TULLE_C64 : TULLE_F64};
    A->row_ptr = u.row_ptr;
    A->col_idx = u.col_idx;
    A->values = u.val;
    u.row_ptr = u.col_idx = u.val = NULL;
    if (u.folded || !(all->by_row || all->by_col)) TRY(tl_rows_settle(b, &A));
    *out = A;
    A = NULL;
done:
    tl_matrix_free(b, A);
    tl_free(b, u.row_ptr);
    tl_free(b, u.col_idx);
    tl_free(b, u.val);
    tl_free(b, u.col_ptr);
    return status;
}
