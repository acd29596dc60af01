/* SPDX-License-Identifier: MIT
 *
 * coo.c - a CSR matrix from coordinates in any order.
 *
 * The entries are checked and distributed to their rows by a stable counting sort (bucket.c), then each row
 * is sorted and duplicates are added (sort.c); both keep the order of the input.  Row pointers and columns
 * get the index type of the coordinates, row pointers 64 bits where count needs it.
 *
 * Memory: the result with all `count` entries, the counters of bucket.c, and what sort.c uses. */
#include <inttypes.h>
#include "matrix/parts.h"

typedef struct job {
    int64_t         rows, cols, count;
    const void     *row_idx, *col_idx, *values;
    tulle_index     type;
    size_t          size;               /* of a value; 0: none           */
    tulle_matrix   *A;
    tl_buckets      buckets;
    _Atomic int64_t bad;                /* lowest entry out of range     */
} job;

TL_INLINE int64_t first_outside(const job *j, tulle_index type, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        uint64_t i = (uint64_t)tl_get(j->row_idx, type, k), c = (uint64_t)tl_get(j->col_idx, type, k);
        if (i >= (uint64_t)j->rows || c >= (uint64_t)j->cols) return k;
    }
    return INT64_MAX;
}

static void check_work(void *arg, int thread, int threads)
{
    job *j = arg;
    int64_t from = tl_part(j->count, thread, threads), to = tl_part(j->count, thread + 1, threads);
    int64_t at = j->type == TULLE_I32 ? first_outside(j, TULLE_I32, from, to)
                                      : first_outside(j, TULLE_I64, from, to);
    int64_t bad = atomic_load(&j->bad);
    while (at < bad && !atomic_compare_exchange_weak(&j->bad, &bad, at)) {}
}

TL_INLINE void scatter(const job *j, tulle_index type, tulle_index lead, void *next, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        int64_t at = tl_bucket_take(next, lead, tl_get(j->row_idx, type, k));
        tl_put(j->A->col_idx, type, at, tl_get(j->col_idx, type, k));
        tl_value_move(j->A->values, at, j->values, k, j->size);
    }
}

static void scatter_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    void *next = tl_bucket_row(&j->buckets, thread);
    tulle_index lead = j->buckets.type;
    int64_t from = tl_part(j->count, thread, threads), to = tl_part(j->count, thread + 1, threads);
    if (j->type == TULLE_I32 && lead == TULLE_I32) scatter(j, TULLE_I32, TULLE_I32, next, from, to);
    else if (j->type == TULLE_I32) scatter(j, TULLE_I32, TULLE_I64, next, from, to);
    else scatter(j, TULLE_I64, lead, next, from, to);
}

static tulle_status check_arguments(tl_base *b, const job *j, int val_type)
{
    if (!tl_index_known(j->type))
        return tl_fail(b, TULLE_ETYPE, "idx_type is %d, not TULLE_I32 or TULLE_I64", (int)j->type);
    if (j->values && !tl_type_known(val_type))
        return tl_fail(b, TULLE_ETYPE, "val_type is %d, not TULLE_F32, F64, CF32 or CF64", val_type);
    if (j->rows < 0 || j->cols < 0 || j->count < 0)
        return tl_fail(b, TULLE_EINVAL, "%" PRId64 " rows, %" PRId64 " columns, %" PRId64
                       " entries: a size cannot be negative", j->rows, j->cols, j->count);
    if (j->rows > INT64_MAX / 16 || j->count > INT64_MAX / 16)
        return tl_fail(b, TULLE_EINVAL, "%" PRId64 " rows and %" PRId64 " entries cannot be addressed",
                       j->rows, j->count);
    if (j->count > 0 && (!j->row_idx || !j->col_idx))
        return tl_fail(b, TULLE_EINVAL, "%s is NULL", j->row_idx ? "col_idx" : "row_idx");
    if (!tl_fits(j->type, j->rows - 1) || !tl_fits(j->type, j->cols - 1))
        return tl_fail(b, TULLE_EINVAL, "%" PRId64 " rows and %" PRId64 " columns do not fit indices of "
                       "type %s", j->rows, j->cols, tl_index_name(j->type));
    return TULLE_OK;
}

static tulle_status name_entry(tl_base *b, const job *j, int64_t k)
{
    int64_t i = tl_get(j->row_idx, j->type, k), c = tl_get(j->col_idx, j->type, k);
    bool row = i < 0 || i >= j->rows;
    int64_t size = row ? j->rows : j->cols;
    const char *what = row ? "row" : "column";
    if (size == 0)
        return tl_fail(b, TULLE_EPATTERN, "entry %" PRId64 ": there are no %ss", k, what);
    return tl_fail(b, TULLE_EPATTERN, "entry %" PRId64 ": %s %" PRId64 " is outside 0..%" PRId64, k, what,
                   row ? i : c, size - 1);
}

tulle_status tl_csr_from_coo(tl_base *b, int64_t rows, int64_t cols, int64_t count, const void *row_idx,
                             const void *col_idx, tulle_index idx_type, const void *values,
                             tulle_type val_type, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    job j = {.rows = rows, .cols = cols, .count = count, .row_idx = row_idx, .col_idx = col_idx,
             .values = values, .type = idx_type, .bad = INT64_MAX};
    *out = NULL;
    TRY(check_arguments(b, &j, (int)val_type));
    tl_team_run(b->team, tl_threads_for(b, 0, count), check_work, &j);
    int64_t bad = atomic_load(&j.bad);
    if (bad < INT64_MAX) TRY(name_entry(b, &j, bad));
    j.size = values ? tl_type_size(val_type) : 0;
    tulle_index ptr_type = tl_fits(idx_type, count) ? idx_type : TULLE_I64;
    TRY(tl_matrix_create(b, rows, cols, count, ptr_type, idx_type, values ? (int)val_type : 0, &j.A));
    TRY(tl_buckets_create(b, row_idx, idx_type, count, rows, j.A->row_ptr, ptr_type, &j.buckets));
    tl_team_run(b->team, j.buckets.parts, scatter_work, &j);
    tl_buckets_close(b, &j.buckets);
    TRY(tl_rows_sort(b, j.A));
    *out = j.A;
    j.A = NULL;
done:
    tl_matrix_free(b, j.A);
    return status;
}
