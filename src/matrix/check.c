/* SPDX-License-Identifier: MIT
 *
 * check.c - checks that a view is a valid CSR matrix.
 *
 * It runs on A and B before every product, so its cost must be negligible: a vector of entries takes two
 * loads, a comparison, a subtraction and a maximum, and no branch.  Rows are checked in blocks.  Within a
 * block row_ptr must not decrease and must stay in 0..nnz, which makes reading the columns safe.  Then the
 * descents col[k] <= col[k-1] are counted over all entries of the block, ignoring row boundaries.  A descent
 * is allowed only at the start of a row, so all rows are sorted exactly when the number of descents at row
 * starts equals the total.  The largest column, as an unsigned number, shows whether all are in range.
 *
 * Of the invalid blocks only the lowest is kept; it is then read again row by row to find the error, so the
 * error message does not depend on the number of threads.
 *
 * Memory: none. */
#include <inttypes.h>
#include "matrix/parts.h"

enum {
    BLOCK_LEAST = 16, BLOCK_MOST = 512, /* rows of a block, ...                              */
    BLOCK_ENTRIES = 4096,               /* ... so that its columns fit in the L1 cache       */
    BURST = 1 << 20,
    PARTS_EACH = 8                      /* for each thread                                   */
};

/* ---- columns of a block: the number of descents, or -1 where a column is outside of 0..cols-1.  Also
 * compiled for newer instruction sets, whose vectors hold twice as many. */

/* In bursts, short enough for 32-bit counts. */
TL_INLINE int64_t falls_i32(const int32_t *col, int64_t n, int64_t cols)
{
    uint32_t most = (uint32_t)col[0];
    int64_t falls = 0;
    for (int64_t from = 1; from < n; from += BURST) {
        int64_t to = from + BURST < n ? from + BURST : n;
        int32_t count = 0;
        for (int64_t k = from; k < to; k++) {
            uint32_t c = (uint32_t)col[k];
            count += col[k] <= col[k - 1];
            most = c > most ? c : most;         /* negative ones are the largest */
        }
        falls += count;
    }
    return most < (uint64_t)cols ? falls : -1;
}

TL_INLINE int64_t falls_i64(const int64_t *col, int64_t n, int64_t cols)
{
    uint64_t most = (uint64_t)col[0];
    int64_t falls = 0;
    for (int64_t k = 1; k < n; k++) {
        uint64_t c = (uint64_t)col[k];
        falls += col[k] <= col[k - 1];
        most = c > most ? c : most;
    }
    return most < (uint64_t)cols ? falls : -1;
}

static int64_t base_i32(const int32_t *col, int64_t n, int64_t cols) { return falls_i32(col, n, cols); }
static int64_t base_i64(const int64_t *col, int64_t n, int64_t cols) { return falls_i64(col, n, cols); }

typedef struct scanner {
    int64_t (*i32)(const int32_t *col, int64_t n, int64_t cols);
    int64_t (*i64)(const int64_t *col, int64_t n, int64_t cols);
} scanner;

#if defined(TL_HAVE_AVX2)
#define AVX2 __attribute__((target("avx2")))
AVX2 static int64_t avx2_i32(const int32_t *col, int64_t n, int64_t cols) { return falls_i32(col, n, cols); }
AVX2 static int64_t avx2_i64(const int64_t *col, int64_t n, int64_t cols) { return falls_i64(col, n, cols); }
#endif

static scanner best_scanner(void)
{
#if defined(TL_HAVE_AVX2)
    const char *wanted = tl_env("TULLE_ISA");
    if (__builtin_cpu_supports("avx2") && (!wanted || strcmp(wanted, "base") != 0))
        return (scanner){avx2_i32, avx2_i64};
#endif
    return (scanner){base_i32, base_i64};
}

typedef struct job {
    const tulle_csr *A;
    bool             ordered;           /* rows must be sorted, without duplicates */
    scanner          scan;
    int64_t          rows;              /* of a block                              */
    int              parts;             /* into which the rows are divided, for threads */
    atomic_int       next;
    _Atomic int64_t  bad;               /* first row of the lowest bad block       */
} job;

/* ---- a block of rows */

/* *empty: some of the rows have no entries.  Pointers are compared in their own type, because a vector holds
 * more of the narrow one. */
TL_INLINE bool pointers_good(const tulle_csr *A, tulle_index type, int64_t first, int64_t last, bool *empty)
{
    const int32_t *p32 = A->row_ptr;
    const int64_t *p64 = A->row_ptr;
    int falls = 0, stays = 0;
    for (int64_t i = first; i < last && type == TULLE_I32; i++) {
        falls |= p32[i + 1] < p32[i];
        stays |= p32[i + 1] == p32[i];
    }
    for (int64_t i = first; i < last && type == TULLE_I64; i++) {
        falls |= p64[i + 1] < p64[i];
        stays |= p64[i + 1] == p64[i];
    }
    *empty = stays;
    return !falls && tl_get(A->row_ptr, type, first) >= 0 && tl_get(A->row_ptr, type, last) <= A->nnz;
}

/* Whether the first column of row i is greater than the last one of the row before.  Both are in range;
 * compared as unsigned numbers they give a carry, which is added without a branch. */
TL_INLINE uint64_t rises_at(const tulle_csr *A, tulle_index ptr, tulle_index idx, int64_t i)
{
    const int64_t k = tl_get(A->row_ptr, ptr, i);
    return idx == TULLE_I32 ? ((const uint32_t *)A->col_idx)[k - 1] < ((const uint32_t *)A->col_idx)[k]
                            : ((const uint64_t *)A->col_idx)[k - 1] < ((const uint64_t *)A->col_idx)[k];
}

/* Descents at row starts, without the first row of the block; no row may be empty. */
TL_INLINE int64_t falls_at_full_rows(const tulle_csr *A, tulle_index ptr, tulle_index idx, int64_t first,
                                     int64_t last)
{
    uint64_t even = 0, odd = 0;
    int64_t i = first + 1;
    for (; i + 1 < last; i += 2) {
        even += rises_at(A, ptr, idx, i);
        odd += rises_at(A, ptr, idx, i + 1);
#if defined(__GNUC__)
        __asm__(""
                : "+r"(even),
                  "+r"(odd)); /* keeps gcc from gathering single columns into vectors, which is slower */
#endif
    }
    if (i < last) even += rises_at(A, ptr, idx, i);
    return last - first - 1 - (int64_t)(even + odd);
}

/* The same where some rows are empty.  Which rows are empty, or begin before the end of the row before,
 * cannot be predicted: again no branch. */
TL_INLINE int64_t falls_at_starts(const tulle_csr *A, tulle_index ptr, tulle_index idx, int64_t first,
                                  int64_t last)
{
    const int64_t origin = tl_get(A->row_ptr, ptr, first), stop = tl_get(A->row_ptr, ptr, last);
    while (first < last && tl_get(A->row_ptr, ptr, first) == origin) first++;
    while (first < last && tl_get(A->row_ptr, ptr, last - 1) == stop) last--;
    int64_t begin = tl_get(A->row_ptr, ptr, first), count = 0;
#if defined(__clang__)
#pragma unroll 4
#else
#pragma GCC unroll 4
#endif
    for (int64_t i = first; i < last; i++) {
        int64_t end = tl_get(A->row_ptr, ptr, i + 1);
        int64_t rise = tl_get(A->col_idx, idx, begin - 1)
                       - tl_get(A->col_idx, idx, begin); /* below 0: no descent */
        count += (int64_t)((uint64_t)(~rise & (begin - end)) >> 63);
        begin = end;
    }
    return count;
}

TL_INLINE bool block_good(const job *j, tulle_index ptr, tulle_index idx, int64_t first, int64_t last)
{
    const tulle_csr *A = j->A;
    bool empty;
    if (!pointers_good(A, ptr, first, last, &empty)) return false;
    int64_t begin = tl_get(A->row_ptr, ptr, first), n = tl_get(A->row_ptr, ptr, last) - begin;
    if (n == 0) return true;
    int64_t falls = idx == TULLE_I32 ? j->scan.i32((const int32_t *)A->col_idx + begin, n, A->cols)
                                     : j->scan.i64((const int64_t *)A->col_idx + begin, n, A->cols);
    if (falls <= 0 || !j->ordered) return falls >= 0;
    return falls
           == (empty ? falls_at_starts(A, ptr, idx, first, last)
                     : falls_at_full_rows(A, ptr, idx, first, last));
}

TL_INLINE void check_part(job *j, tulle_index ptr, tulle_index idx, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last && i < atomic_load_explicit(&j->bad, memory_order_relaxed);
         i += j->rows) {
        int64_t end = last - i < j->rows ? last : i + j->rows;
        if (block_good(j, ptr, idx, i, end)) continue;
        int64_t bad = atomic_load(&j->bad);
        while (i < bad && !atomic_compare_exchange_weak(&j->bad, &bad, i)) {}
        return;
    }
}

static void check_rows(job *j, int64_t first, int64_t last)
{
    const tulle_csr *A = j->A;
    if (A->ptr_type == TULLE_I32 && A->idx_type == TULLE_I32)
        check_part(j, TULLE_I32, TULLE_I32, first, last);
    else if (A->ptr_type == TULLE_I64 && A->idx_type == TULLE_I32)
        check_part(j, TULLE_I64, TULLE_I32, first, last);
    else if (A->ptr_type == TULLE_I32)
        check_part(j, TULLE_I32, TULLE_I64, first, last);
    else
        check_part(j, TULLE_I64, TULLE_I64, first, last);
}

/* Threads are woken for the check first, and may wake up late: so parts are taken dynamically. */
static void check_work(void *arg, int thread, int threads)
{
    job *j = arg;
    (void)thread;
    (void)threads;
    for (int p; (p = atomic_fetch_add(&j->next, 1)) < j->parts;)
        check_rows(j, tl_row_cut(j->A, p, j->parts), tl_row_cut(j->A, p + 1, j->parts));
}

/* ---- error messages */

static tulle_status name_column(tl_base *b, const job *j, const char *name, int64_t i, int64_t k)
{
    const tulle_csr *A = j->A;
    int64_t c = tl_get(A->col_idx, A->idx_type, k), begin = tl_row_begin(A, i);
    if (A->cols == 0)
        return tl_fail(b, TULLE_EPATTERN, "%s: row %" PRId64 " has an entry, but there are no columns",
                       name, i);
    if (c < 0 || c >= A->cols)
        return tl_fail(b, TULLE_EPATTERN, "%s: row %" PRId64 ": column %" PRId64 " is outside 0..%"
                       PRId64 " (entry %" PRId64 " of the row)", name, i, c, A->cols - 1, k - begin);
    if (!j->ordered || k == begin) return TULLE_OK;
    int64_t before = tl_get(A->col_idx, A->idx_type, k - 1);
    if (c == before)
        return tl_fail(b, TULLE_EPATTERN, "%s: row %" PRId64 ": column %" PRId64 " stands twice",
                       name, i, c);
    if (c < before)
        return tl_fail(b, TULLE_EPATTERN, "%s: row %" PRId64 ": column %" PRId64
                       " comes after column %" PRId64, name, i, c, before);
    return TULLE_OK;
}

/* Reports the first error from row `first` on; there is one. */
static tulle_status name_fault(tl_base *b, const job *j, const char *name, int64_t first)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = j->A;
    for (int64_t i = first; i < A->rows; i++) {
        int64_t begin = tl_row_begin(A, i), end = tl_row_begin(A, i + 1);
        if (end < begin)
            return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[%" PRId64 "] = %" PRId64
                           " is smaller than row_ptr[%" PRId64 "] = %" PRId64, name, i + 1, end, i, begin);
        if (end > A->nnz)
            return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[%" PRId64 "] = %" PRId64
                           " is larger than nnz = %" PRId64, name, i + 1, end, A->nnz);
        for (int64_t k = begin; k < end; k++) TRY(name_column(b, j, name, i, k));
    }
    status = tl_fail(b, TULLE_EPATTERN, "%s: changed while it was checked", name);
done:
    return status;
}

/* ---- the two checks */

tulle_status tl_csr_check_shape(tl_base *b, const tulle_csr *A, const char *name)
{
    if (!A) return tl_fail(b, TULLE_EINVAL, "%s is NULL", name);
    if (!tl_index_known(A->ptr_type))
        return tl_fail(b, TULLE_ETYPE, "%s: ptr_type is %d, not TULLE_I32 or TULLE_I64", name,
                       (int)A->ptr_type);
    if (!tl_index_known(A->idx_type))
        return tl_fail(b, TULLE_ETYPE, "%s: idx_type is %d, not TULLE_I32 or TULLE_I64", name,
                       (int)A->idx_type);
    if (A->values && !tl_type_known(A->val_type))
        return tl_fail(b, TULLE_ETYPE, "%s: val_type is %d, not TULLE_F32, F64, CF32 or CF64", name,
                       (int)A->val_type);
    if (A->place == TULLE_DEVICE)
        return tl_fail(b, TULLE_EINVAL, "%s: its arrays are in a device's memory (place is TULLE_DEVICE), "
                       "but this context reads arrays of the host alone", name);
    if (A->place != TULLE_HOST)
        return tl_fail(b, TULLE_EINVAL, "%s: place is %d, not TULLE_HOST or TULLE_DEVICE", name,
                       (int)A->place);
    if (A->rows < 0 || A->cols < 0 || A->nnz < 0)
        return tl_fail(b, TULLE_EINVAL, "%s: %" PRId64 " rows, %" PRId64 " columns, nnz %" PRId64
                       ": a size cannot be negative", name, A->rows, A->cols, A->nnz);
    if (A->rows > INT64_MAX / 16 || A->nnz > INT64_MAX / 16)
        return tl_fail(b, TULLE_EINVAL, "%s: %" PRId64 " rows and %" PRId64
                       " entries cannot be addressed", name, A->rows, A->nnz);
    tulle_status words = TL_RESERVED_CHECK(b, name, A);
    if (words != TULLE_OK) return words;
    if (!A->row_ptr) return tl_fail(b, TULLE_EINVAL, "%s: row_ptr is NULL", name);
    if (!A->col_idx && A->nnz > 0) return tl_fail(b, TULLE_EINVAL, "%s: col_idx is NULL", name);
    if (!tl_fits(A->ptr_type, A->nnz))
        return tl_fail(b, TULLE_EINVAL, "%s: nnz %" PRId64 " does not fit row pointers of type %s", name,
                       A->nnz, tl_index_name(A->ptr_type));
    if (!tl_fits(A->idx_type, A->cols - 1))
        return tl_fail(b, TULLE_EINVAL, "%s: %" PRId64 " columns do not fit column indices of type %s",
                       name, A->cols, tl_index_name(A->idx_type));
    return TULLE_OK;
}

tulle_status tl_csr_check_ends(tl_base *b, const tulle_csr *A, const char *name)
{
    int64_t begin = tl_row_begin(A, 0), end = tl_row_begin(A, A->rows);
    if (begin != 0)
        return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[0] is %" PRId64 ", not 0", name, begin);
    if (end != A->nnz)
        return tl_fail(b, TULLE_EPATTERN, "%s: row_ptr[%" PRId64 "] is %" PRId64 " but nnz is %" PRId64,
                       name, A->rows, end, A->nnz);
    return TULLE_OK;
}

static int64_t rows_of_block(const tulle_csr *A)
{
    int64_t rows = A->rows > 0 ? BLOCK_ENTRIES / (A->nnz / A->rows + 1) : 0;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : rows > BLOCK_MOST ? BLOCK_MOST : rows;
}

static tulle_status check(tl_base *b, const tulle_csr *A, const char *name, int threads, bool ordered)
{
    tulle_status status = TULLE_OK;
    TRY(tl_csr_check_shape(b, A, name));
    TRY(tl_csr_check_ends(b, A, name));
    const int used = tl_threads_for(b, threads, A->rows + A->nnz);
    job j = {.A = A,
             .ordered = ordered,
             .scan = best_scanner(),
             .rows = rows_of_block(A),
             .parts = used > 1 ? used * PARTS_EACH : 1,
             .bad = INT64_MAX};
    tl_team_run(b->team, used, check_work, &j);
    int64_t bad = atomic_load(&j.bad);
    if (bad < INT64_MAX) TRY(name_fault(b, &j, name, bad));
done:
    return status;
}

tulle_status tl_csr_check(tl_base *b, const tulle_csr *A, const char *name, int threads)
{
    return check(b, A, name, threads, true);
}

tulle_status tl_csr_check_bounds(tl_base *b, const tulle_csr *A, const char *name, int threads)
{
    return check(b, A, name, threads, false);
}

tulle_status tl_csr_refuse(tl_base *b, const tulle_csr *A, const char *name)
{
    tulle_status status = tl_csr_check(b, A, name, 0);
    return status == TULLE_OK ? tl_fail(b, TULLE_EPATTERN, "%s: changed while it was checked", name) : status;
}
