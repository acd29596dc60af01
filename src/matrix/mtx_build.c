/* SPDX-License-Identifier: MIT
 *
 * mtx_build.c - converts entries in the order of a file to CSR; symmetric matrices are expanded.
 *
 *   sorted by row   the arrays are the matrix already; only row pointers are computed
 *   anything else   a stable counting sort by row in two cache-friendly steps: first into blocks of
 *                   neighbouring rows, where each thread takes a part of the file; then, block by block, into
 *                   rows.  If the file was sorted by column, as most are, rows are sorted after that.
 *                   Otherwise tl_rows_sort() sorts the rows that need it and adds duplicates, in order.
 *
 * Each step keeps the order of the file within a row, so the result does not depend on the number of threads.
 * The three arrays are moved one after the other, and each old one is freed at once.
 *
 * Memory in bytes per entry, for 32-bit indices and doubles (12 in the matrix): 16 sorted by row, 20 sorted
 * by column (where column indices are replaced by column pointers) or symmetric, 24 otherwise. */
#include "matrix/files.h"
#include <string.h>

enum { BLOCK_ENTRIES = 1 << 14, BLOCKS_MAX = 1 << 10, SMALL = 1 << 14 };

typedef struct build {
    tl_mtx_all *all;
    int64_t     entries, rows, cols, nnz;
    bool        folded;                         /* each entry off the diagonal stands for two */
    double      sign_re, sign_im;               /* factors for the mirrored value             */
    tulle_index ptr_type;
    void       *row_ptr, *col_idx, *val, *row;  /* of the matrix; row: of each entry, in blocks */
    void       *col_ptr;                        /* sorted by column: replaces the columns       */
    int         shift;                          /* row >> shift is its block                    */
    int64_t     blocks, longest;
    int64_t    *first, *next;                   /* [thread][block]: first and next position     */
    int64_t    *begin;                          /* [block], and one more                        */
    char       *scratch;                        /* [thread]: longest block                      */
    _Atomic int64_t ticket;
    const void *major;                          /* for pointers(): sorted indices               */
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

/* ---- first step: into blocks.  A pass over one part of the file; the passes differ in what they move. */

typedef enum { COUNT, VALUES, COLUMNS, ROWS } pass;

TL_INLINE void put_value(build *u, int64_t at, int64_t k, bool second, bool complex_)
{
    if (complex_) {
        tl_c64 v = ((const tl_c64 *)u->all->val)[k];
        ((tl_c64 *)u->val)[at] = second ? (tl_c64){u->sign_re * v.re, u->sign_im * v.im} : v;
    } else {
        double v = ((const double *)u->all->val)[k];
        ((double *)u->val)[at] = second ? u->sign_re * v : v;
    }
}

TL_INLINE void run_pass(build *u, int thread, int threads, pass what, tulle_index idx, bool folded,
                        bool complex_)
{
    const tl_mtx_all *all = u->all;
    int64_t from = tl_part(u->entries, thread, threads), to = tl_part(u->entries, thread + 1, threads);
    int64_t *next = u->next + thread * u->blocks;
    int shift = u->shift;
    for (int64_t k = from; k < to; k++) {
        int64_t i = tl_get(all->row, idx, k), j = folded || what == COLUMNS ? tl_get(all->col, idx, k) : 0;
        int64_t at = next[i >> shift]++;
        if (what == VALUES) put_value(u, at, k, false, complex_);
        if (what == COLUMNS) tl_put(u->col_idx, idx, at, j);
        if (what == ROWS) tl_put(u->row, idx, at, i);
        if (!folded || i == j) continue;
        at = next[j >> shift]++;
        if (what == VALUES) put_value(u, at, k, true, complex_);
        if (what == COLUMNS) tl_put(u->col_idx, idx, at, i);
        if (what == ROWS) tl_put(u->row, idx, at, j);
    }
}

/* Moves columns for a file sorted by column, whose column indices were replaced by col_ptr. */
TL_INLINE void run_columns(build *u, int thread, int threads, tulle_index idx)
{
    int64_t from = tl_part(u->entries, thread, threads), to = tl_part(u->entries, thread + 1, threads);
    int64_t *next = u->next + thread * u->blocks;
    int64_t low = 0, high = u->cols;            /* the column that holds entry `from` */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (tl_get(u->col_ptr, u->ptr_type, middle) <= from) low = middle;
        else high = middle;
    }
    for (int64_t k = from, j = low; k < to; k++) {
        while (tl_get(u->col_ptr, u->ptr_type, j + 1) <= k) j++;
        tl_put(u->col_idx, idx, next[tl_get(u->all->row, idx, k) >> u->shift]++, j);
    }
}

TL_INLINE void spread(build *u, int thread, int threads, pass what, tulle_index idx)
{
    bool complex_ = what == VALUES && u->all->head.field == TL_COMPLEX;
    if (what == COLUMNS && u->col_ptr) run_columns(u, thread, threads, idx);
    else if (u->folded && complex_) run_pass(u, thread, threads, what, idx, true, true);
    else if (u->folded) run_pass(u, thread, threads, what, idx, true, false);
    else if (complex_) run_pass(u, thread, threads, what, idx, false, true);
    else run_pass(u, thread, threads, what, idx, false, false);
}

#define PASS(name, what)                                                                          \
    static void name(void *arg, int thread, int threads)                                          \
    {                                                                                             \
        build *u = arg;                                                                           \
        size_t part = (size_t)u->blocks * sizeof *u->next;                                        \
        memcpy(u->next + thread * u->blocks, u->first + thread * u->blocks, part);                \
        if (u->all->idx_type == TULLE_I32) spread(u, thread, threads, what, TULLE_I32);           \
        else spread(u, thread, threads, what, TULLE_I64);                                         \
    }

PASS(count_work, COUNT)
PASS(values_work, VALUES)
PASS(columns_work, COLUMNS)
PASS(rows_work, ROWS)

/* Turns counts into offsets: block by block, and within a block in the order of the threads, which is that of
 * the file. */
static void places(build *u, int threads)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < u->blocks; k++) {
        u->begin[k] = sum;
        for (int t = 0; t < threads; t++) {
            int64_t n = u->next[t * u->blocks + k];
            u->first[t * u->blocks + k] = sum;
            sum += n;
        }
        if (sum - u->begin[k] > u->longest) u->longest = sum - u->begin[k];
    }
    u->begin[u->blocks] = sum;
}

/* ---- second step: each block into rows.  row_ptr first holds counts, then the next position of each row,
 * and in the end row pointers. */

TL_INLINE void rewind_rows(build *u, tulle_index ptr, int64_t low, int64_t high, int64_t begin)
{
    for (int64_t i = high - 1; i > low; i--) tl_put(u->row_ptr, ptr, i, tl_get(u->row_ptr, ptr, i - 1));
    tl_put(u->row_ptr, ptr, low, begin);
}

/* Moves the items of a block from scratch to their rows. */
TL_INLINE void scatter(build *u, tulle_index ptr, tulle_index idx, const char *scratch, char *to, size_t size,
                       int64_t begin, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = tl_get(u->row, idx, begin + k), at = tl_get(u->row_ptr, ptr, i);
        tl_put(u->row_ptr, ptr, i, at + 1);
        tl_value_move(to, at, scratch, k, size);
    }
}

TL_INLINE void place_block(build *u, tulle_index ptr, tulle_index idx, int64_t block, char *scratch)
{
    int64_t low = block << u->shift, high = low + ((int64_t)1 << u->shift);
    int64_t begin = u->begin[block], n = u->begin[block + 1] - begin, sum = begin;
    size_t width = tl_index_size(idx);
    if (high > u->rows) high = u->rows;
    for (int64_t i = low; i < high; i++) tl_put(u->row_ptr, ptr, i, 0);
    for (int64_t k = begin; k < begin + n; k++) {
        int64_t i = tl_get(u->row, idx, k);
        tl_put(u->row_ptr, ptr, i, tl_get(u->row_ptr, ptr, i) + 1);
    }
    for (int64_t i = low; i < high; i++) {
        int64_t here = tl_get(u->row_ptr, ptr, i);
        tl_put(u->row_ptr, ptr, i, sum);
        sum += here;
    }
    if (high - low <= 1) return;                /* the block is the row */
    if (u->val) {
        size_t size = u->all->head.field == TL_COMPLEX ? sizeof(tl_c64) : sizeof(double);
        memcpy(scratch, (const char *)u->val + (size_t)begin * size, (size_t)n * size);
        if (size == 8) scatter(u, ptr, idx, scratch, u->val, 8, begin, n);
        else scatter(u, ptr, idx, scratch, u->val, 16, begin, n);
        rewind_rows(u, ptr, low, high, begin);
    }
    memcpy(scratch, (const char *)u->col_idx + (size_t)begin * width, (size_t)n * width);
    scatter(u, ptr, idx, scratch, u->col_idx, width, begin, n);
    rewind_rows(u, ptr, low, high, begin);
}

static void place_work(void *arg, int thread, int threads)
{
    build *u = arg;
    char *scratch = u->scratch + (size_t)thread * (size_t)u->longest * sizeof(tl_c64);
    bool narrow = u->ptr_type == TULLE_I32 && u->all->idx_type == TULLE_I32;
    (void)threads;
    for (;;) {
        int64_t block = atomic_fetch_add(&u->ticket, 1);
        if (block >= u->blocks) return;
        if (narrow) place_block(u, TULLE_I32, TULLE_I32, block, scratch);
        else place_block(u, u->ptr_type, u->all->idx_type, block, scratch);
    }
}

static void ones(void *arg, int thread, int threads)
{
    build *u = arg;
    double *val = u->val;
    int64_t end = tl_part(u->nnz, thread + 1, threads);
    for (int64_t p = tl_part(u->nnz, thread, threads); p < end; p++) val[p] = 1.0;
}

/* ---- all steps */

/* Frees an array into the pool, so that the next one of its size reuses its pages without page faults. */
static void drop(tl_base *b, void **p)
{
    tl_free(b, *p);
    *p = NULL;
}

/* Sorted by row: the arrays of the file become those of the matrix. */
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

/* Sorted by column: column pointers hold the same information in less memory. */
static tulle_status shrink_columns(tl_base *b, build *u, int threads)
{
    tulle_status status = TULLE_OK;
    TRY(tl_alloc(b, &u->col_ptr, u->cols + 1, tl_index_size(u->ptr_type), "column pointers of a file"));
    u->major = u->all->col;
    u->major_ptr = u->col_ptr;
    u->majors = u->cols;
    tl_team_run(b->team, threads, pointers, u);
    drop(b, &u->all->col);
    tl_pool_trim(b->pool);                      /* these blocks are too small for the values, which follow */
done:
    return status;
}

static tulle_status put_into_blocks(tl_base *b, build *u, int threads)
{
    tulle_status status = TULLE_OK;
    tl_mtx_all *all = u->all;
    size_t idx = tl_index_size(all->idx_type);
    size_t val = all->head.field == TL_COMPLEX ? sizeof(tl_c64) : sizeof(double);
    int64_t want = u->nnz / BLOCK_ENTRIES + 1;
    if (want > BLOCKS_MAX) want = BLOCKS_MAX;
    while ((u->rows - 1) >> u->shift >= want) u->shift++;
    u->blocks = u->rows > 0 ? ((u->rows - 1) >> u->shift) + 1 : 0;
    TRY(tl_calloc(b, &u->first, threads * u->blocks, sizeof *u->first, "places of blocks"));
    TRY(tl_alloc(b, &u->next, threads * u->blocks, sizeof *u->next, "places of blocks"));
    TRY(tl_alloc(b, &u->begin, u->blocks + 1, sizeof *u->begin, "places of blocks"));
    if (all->by_col && !u->folded && u->cols < u->entries) TRY(shrink_columns(b, u, threads));
    tl_team_run(b->team, threads, count_work, u);
    places(u, threads);
    if (all->head.field != TL_PATTERN) {
        TRY(tl_alloc_lasting(b, &u->val, u->nnz, val, "values of a matrix"));
        tl_team_run(b->team, threads, values_work, u);
        drop(b, &all->val);
    }
    TRY(tl_alloc_lasting(b, &u->col_idx, u->nnz, idx, "column indices of a matrix"));
    tl_team_run(b->team, threads, columns_work, u);
    if (!u->folded) drop(b, &all->col);
    drop(b, &u->col_ptr);
    TRY(tl_alloc(b, &u->row, u->nnz, idx, "row indices of a matrix"));
    tl_team_run(b->team, threads, rows_work, u);
    drop(b, &all->row);
    drop(b, &all->col);
done:
    return status;
}

static tulle_status put_into_rows(tl_base *b, build *u, int threads)
{
    tulle_status status = TULLE_OK;
    TRY(put_into_blocks(b, u, threads));
    TRY(tl_alloc(b, &u->row_ptr, u->rows + 1, tl_index_size(u->ptr_type), "row pointers of a matrix"));
    if (threads * u->longest > u->nnz / 4) threads = 1; /* one huge block: a copy per thread is too much */
    TRY(tl_alloc(b, &u->scratch, threads * u->longest, sizeof(tl_c64), "entries of a block"));
    tl_team_run(b->team, threads, place_work, u);
    tl_put(u->row_ptr, u->ptr_type, u->rows, u->nnz);
    drop(b, &u->row);
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
                          .val_type = h->field == TL_COMPLEX ? TULLE_CF64 : TULLE_F64};
    A->row_ptr = u.row_ptr;
    A->col_idx = u.col_idx;
    A->values = u.val;
    u.row_ptr = u.col_idx = u.val = NULL;
    if (u.folded || !(all->by_row || all->by_col)) TRY(tl_rows_sort(b, A));
    *out = A;
    A = NULL;
done:
    tl_matrix_free(b, A);
    tl_free(b, u.row_ptr);
    tl_free(b, u.col_idx);
    tl_free(b, u.val);
    tl_free(b, u.row);
    tl_free(b, u.col_ptr);
    tl_free(b, u.first);
    tl_free(b, u.next);
    tl_free(b, u.begin);
    tl_free(b, u.scratch);
    return status;
}
