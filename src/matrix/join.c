/* SPDX-License-Identifier: MIT
 *
 * join.c - matrices one below the other, as one.
 *
 * Room for all of it is address space at first, paid for where it is written; and each matrix is freed when
 * it was copied, by all threads.  So no more is held at once than the result and the largest of them.  Where
 * address space cannot be had (memory hooks) it is all of both.
 *
 * Memory: the result. */
#include "matrix/parts.h"
#include <inttypes.h>

typedef struct job {
    const tulle_csr *from;
    tulle_matrix    *to;
    int64_t          row, at;           /* rows and entries before it */
} job;

static void copy_bytes(void *to, const void *from, int64_t at, int64_t begin, int64_t end, size_t size)
{
    if (end > begin)
        memcpy((char *)to + (size_t)(at + begin) * size, (const char *)from + (size_t)begin * size,
               (size_t)(end - begin) * size);
}

static void copy_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = j->from;
    tulle_matrix *C = j->to;
    int64_t row0 = tl_part(A->rows, thread, threads), row1 = tl_part(A->rows, thread + 1, threads);
    for (int64_t i = row0 + 1; i <= row1; i++)
        tl_put(C->row_ptr, C->view.ptr_type, j->row + i, j->at + tl_row_begin(A, i));
    int64_t begin = tl_part(A->nnz, thread, threads), end = tl_part(A->nnz, thread + 1, threads);
    copy_bytes(C->col_idx, A->col_idx, j->at, begin, end, tl_index_size(A->idx_type));
    if (A->values) copy_bytes(C->values, A->values, j->at, begin, end, tl_type_size(A->val_type));
}

static tulle_status make_room(tl_base *b, int64_t nnz, size_t size, const char *what, void *out)
{
    return tl_reserve(b, out, nnz, size) == TULLE_OK ? TULLE_OK : tl_alloc(b, out, nnz, size, what);
}

/* Without entries yet, of the kind of the first. */
static tulle_status make(tl_base *b, const tulle_csr *first, bool values, int64_t rows, int64_t nnz,
                         int ptr_type, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    tulle_index ptr = ptr_type ? (tulle_index)ptr_type : tl_index_for(nnz);
    if (!tl_fits(ptr, nnz))
        return tl_fail(b, TULLE_EOVERFLOW, "C has %" PRId64 " entries, more than 32-bit row pointers can "
                       "count; ask for 64 bit", nnz);
    TRY(tl_calloc(b, &C, 1, sizeof *C, "a matrix"));
    TRY(tl_alloc(b, &C->row_ptr, rows + 1, tl_index_size(ptr), "row pointers of C"));
    TRY(make_room(b, nnz, tl_index_size(first->idx_type), "column indices of C", &C->col_idx));
    if (values) TRY(make_room(b, nnz, tl_type_size(first->val_type), "values of C", &C->values));
    C->view = (tulle_csr){.rows = rows, .cols = first->cols, .nnz = nnz, .row_ptr = C->row_ptr,
                          .col_idx = C->col_idx, .values = C->values, .ptr_type = ptr,
                          .idx_type = first->idx_type, .val_type = first->val_type};
    tl_put(C->row_ptr, ptr, 0, 0);
    *out = C;
    C = NULL;
done:
    tl_matrix_free(b, C);
    return status;
}

tulle_status tl_rows_join(tl_base *b, int threads, tulle_matrix **part, tl_base *const *owner, int64_t count,
                          int ptr_type, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    const tulle_csr first = part[0]->view;
    int64_t rows = 0, nnz = 0, row = 0, at = 0;
    bool values = false;                /* one without entries may have none */
    for (int64_t k = 0; k < count; k++) {
        values = values || part[k]->view.values;
        rows += part[k]->view.rows;
        nnz += part[k]->view.nnz;
    }
    TRY(make(b, &first, values, rows, nnz, ptr_type, &C));
    for (int64_t k = 0; k < count; k++) {
        job j = {.from = &part[k]->view, .to = C, .row = row, .at = at};
        row += j.from->rows;
        at += j.from->nnz;
        tl_team_run(b->team, tl_threads_for(b, threads, j.from->nnz + j.from->rows), copy_work, &j);
        tl_matrix_free(owner ? owner[k] : b, part[k]);
        part[k] = NULL;
    }
    tl_commit(b, C->col_idx, (uint64_t)nnz * tl_index_size(first.idx_type));
    if (C->values) tl_commit(b, C->values, (uint64_t)nnz * tl_type_size(first.val_type));
    *out = C;
    C = NULL;
done:
    tl_matrix_free(b, C);
    return status;
}
