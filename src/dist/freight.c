/* SPDX-License-Identifier: MIT
 *
 * freight.c - rows that came from the ranks (ship.c), as one matrix: one below the other, or side by side. */
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

/* Rows are short: a call for each would cost more than what it copies. */
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

tulle_status tl_freight_merge(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, int ptr_type, const tl_freight *f, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t nnz = f->entry[d->t.size], at = 0;
    int64_t *next = NULL;
    tulle_matrix *T = NULL;
    size_t index = tl_index_size(idx_type), value = tl_type_size(like->val_type);
    TRY(tl_alloc(d->b, &next, d->t.size, sizeof *next, "places in rows"));
    memcpy(next, f->entry, (size_t)d->t.size * sizeof *next);
    if (!ptr_type) ptr_type = tl_index_for(nnz);
    if (!tl_fits((tulle_index)ptr_type, nnz))
        TRY(tl_fail(d->b, TULLE_EOVERFLOW,
                    "there are %" PRId64 " entries here, too many for 32-bit row pointers", nnz));
    TRY(tl_matrix_create(d->b, rows, cols, nnz, (tulle_index)ptr_type, idx_type,
                         f->has_values ? (int)like->val_type : 0, &T));
    T->view.val_type = like->val_type;
    tl_put(T->row_ptr, T->view.ptr_type, 0, 0);
    for (int64_t i = 0; i < rows; i++) {
        for (int r = 0; r < d->t.size; r++) {
            int64_t n = f->row[r + 1] > f->row[r] ? f->length[f->row[r] + i] : 0;
            if (n == 0) continue;
            copy_few((char *)T->col_idx + at * (int64_t)index,
                     (const char *)f->col + next[r] * (int64_t)index, n, index);
            if (f->has_values)
                copy_few((char *)T->values + at * (int64_t)value,
                         (const char *)f->val + next[r] * (int64_t)value, n, value);
            at += n;
            next[r] += n;
        }
        tl_put(T->row_ptr, T->view.ptr_type, i + 1, at);
    }
    *out = T;
done:
    tl_free(d->b, next);
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
