/* SPDX-License-Identifier: MIT
 *
 * freight.c - assembles rows received from the ranks (ship.c) into one matrix: vertically or side by side.
 * Side by side, runs of rows to which no other rank contributes are copied at once: in the transpose of a
 * mesh's matrix these are nearly all rows. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

tulle_status tl_freight_stack(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, tl_freight *f, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t nnz = f->entry[d->t.size];
    tulle_matrix *A = NULL;
    TRY(tl_matrix_create(d->b, rows, cols, 0, tl_index_for(nnz), idx_type, f->has_values ? (int)like->val_type
                         : 0, &A));
    tl_free(d->b, A->col_idx);
    A->view.col_idx = A->col_idx = f->col;
    f->col = NULL;
    if (f->has_values) {
        tl_free(d->b, A->values);
        A->view.values = A->values = f->val;
        f->val = NULL;
    }
    A->view.nnz = nnz;
    A->view.val_type = like->val_type;
    tl_put(A->row_ptr, A->view.ptr_type, 0, 0);
    for (int64_t i = 0, at = 0; i < rows; i++)
        tl_put(A->row_ptr, A->view.ptr_type, i + 1, at += f->length[i]);
    *out = A;
done:
    return status;
}

/* ---- side by side */

typedef struct merge {
    tulle_dist       *d;
    const tl_freight *f;
    tulle_matrix     *T;
    size_t            index, value;
    int64_t          *next;             /* the next entry of each rank */
    int64_t           at;               /* entries of T so far         */
} merge;

/* An inline loop: rows are short, and a call of memcpy() for each would cost more than the copy. */
static inline void copy_few(char *to, const char *from, int64_t count, size_t item)
{
    if (item == 4) {
        for (int64_t k = 0; k < count; k++) memcpy(to + 4 * k, from + 4 * k, 4);
    } else if (item == 8) {
        for (int64_t k = 0; k < count; k++) memcpy(to + 8 * k, from + 8 * k, 8);
    } else {
        memcpy(to, from, (size_t)count * item);
    }
}

static int64_t length_of(const merge *m, int r, int64_t i)
{
    const tl_freight *f = m->f;
    return f->row[r + 1] > f->row[r] ? f->length[f->row[r] + i] : 0;
}

/* Appends row i of what rank r sent. */
static void put_row(merge *m, int r, int64_t i)
{
    const tl_freight *f = m->f;
    int64_t n = length_of(m, r, i), from = m->next[r];
    if (n == 0) return;
    copy_few((char *)m->T->col_idx + m->at * (int64_t)m->index,
             (const char *)f->col + from * (int64_t)m->index, n, m->index);
    if (f->has_values)
        copy_few((char *)m->T->values + m->at * (int64_t)m->value,
                 (const char *)f->val + from * (int64_t)m->value, n, m->value);
    m->at += n;
    m->next[r] += n;
}

/* Appends the rows i .. end-1 of this rank. */
static void put_own(merge *m, int64_t i, int64_t end)
{
    const tl_freight *f = m->f;
    const tulle_csr *own = f->own;
    int64_t from = tl_row_begin(own, f->own_first + i), n = tl_row_begin(own, f->own_first + end) - from;
    if (n == 0) return;
    tl_shift((const char *)own->col_idx + from * (int64_t)tl_index_size(own->idx_type), own->idx_type,
             (char *)m->T->col_idx + m->at * (int64_t)m->index, m->T->view.idx_type, n, f->own_shift);
    if (f->has_values)
        memcpy((char *)m->T->values + m->at * (int64_t)m->value,
               (const char *)own->values + from * (int64_t)m->value, (size_t)n * m->value);
    m->at += n;
}

static bool is_shared(const merge *m, int64_t i)
{
    for (int r = 0; r < m->d->t.size; r++)
        if (length_of(m, r, i) > 0) return true;
    return false;
}

static void put_rows(merge *m, int64_t rows)
{
    const tl_freight *f = m->f;
    tulle_index type = m->T->view.ptr_type;
    tl_put(m->T->row_ptr, type, 0, 0);
    for (int64_t i = 0; i < rows;) {
        int64_t end = i;                        /* rows i .. end-1 come from this rank only */
        while (f->own && end < rows && !is_shared(m, end)) end++;
        if (end > i) {
            int64_t from = f->own_first + i, by = m->at - tl_row_begin(f->own, from);
            for (int64_t k = i; k < end; k++)
                tl_put(m->T->row_ptr, type, k + 1, tl_row_begin(f->own, f->own_first + k + 1) + by);
            put_own(m, i, end);
        } else {
            for (int r = 0; r < m->d->t.size; r++) {
                put_row(m, r, i);
                if (f->own && r == m->d->t.rank) put_own(m, i, i + 1);
            }
            tl_put(m->T->row_ptr, type, ++end, m->at);
        }
        i = end;
    }
}

tulle_status tl_freight_merge(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, int ptr_type, const tl_freight *f, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    merge m = {.d = d, .f = f, .index = tl_index_size(idx_type), .value = tl_type_size(like->val_type)};
    int64_t nnz = f->entry[d->t.size];
    if (f->own) nnz += tl_row_begin(f->own, f->own_end) - tl_row_begin(f->own, f->own_first);
    TRY(tl_alloc(d->b, &m.next, d->t.size, sizeof *m.next, "places in rows"));
    memcpy(m.next, f->entry, (size_t)d->t.size * sizeof *m.next);
    if (!ptr_type) ptr_type = tl_index_for(nnz);
    if (!tl_fits((tulle_index)ptr_type, nnz))
        TRY(tl_fail(d->b, TULLE_EOVERFLOW,
                    "there are %" PRId64 " entries here, too many for 32-bit row pointers", nnz));
    TRY(tl_matrix_create(d->b, rows, cols, nnz, (tulle_index)ptr_type, idx_type,
                         f->has_values ? (int)like->val_type : 0, &m.T));
    m.T->view.val_type = like->val_type;
    put_rows(&m, rows);
    *out = m.T;
done:
    tl_free(d->b, m.next);
    return status;
}

void tl_freight_done(tl_base *b, tl_freight *f)
{
    tl_free(b, f->row);
    tl_free(b, f->entry);
    tl_free(b, f->length);
    tl_free(b, f->col);
    tl_free(b, f->val);
    memset(f, 0, sizeof *f);
}
