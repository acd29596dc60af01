/* SPDX-License-Identifier: MIT
 *
 * dense.c - dense matrices: checks of views, owned matrices, copies in another order or type, and the choice
 * of the file format. */
#include "matrix/files.h"
#include <inttypes.h>
#include <stdio.h>

/* ---- views */

uint64_t tl_dense_bytes(const tulle_dense *A)
{
    bool by_cols = A->order == TULLE_BY_COLS;
    int64_t lines = by_cols ? A->cols : A->rows, length = by_cols ? A->rows : A->cols;
    if (lines == 0 || length == 0) return 0;
    return ((uint64_t)(lines - 1) * (uint64_t)A->ld + (uint64_t)length) * tl_type_size(A->val_type);
}

tulle_status tl_dense_check(tl_base *b, tulle_dense *A, const char *name, bool values)
{
    if (!tl_type_known((int)A->val_type))
        return tl_fail(b, TULLE_ETYPE, "%s: val_type is %d, not TULLE_F32, F64, CF32 or CF64", name,
                       (int)A->val_type);
    if (A->order != TULLE_BY_ROWS && A->order != TULLE_BY_COLS)
        return tl_fail(b, TULLE_EINVAL, "%s: order is %d, not TULLE_BY_ROWS or TULLE_BY_COLS", name,
                       (int)A->order);
    if (A->place == TULLE_DEVICE)
        return tl_fail(b, TULLE_EINVAL,
                       "%s: its values are in a device's memory (place is TULLE_DEVICE), but this is "
                       "done on the CPU", name);
    if (A->place != TULLE_HOST)
        return tl_fail(b, TULLE_EINVAL, "%s: place is %d, not TULLE_HOST or TULLE_DEVICE", name,
                       (int)A->place);
    if (A->rows < 0 || A->cols < 0)
        return tl_fail(b, TULLE_EINVAL,
                       "%s: %" PRId64 " rows, %" PRId64 " columns: a size cannot be negative", name,
                       A->rows, A->cols);
    bool by_cols = A->order == TULLE_BY_COLS;
    int64_t lines = by_cols ? A->cols : A->rows, length = by_cols ? A->rows : A->cols;
    if (A->ld == 0) A->ld = length > 0 ? length : 1;
    if (A->ld < 1 || A->ld < length)
        return tl_fail(b, TULLE_EINVAL, "%s: ld is %" PRId64 ", but a %s has %" PRId64 " values", name, A->ld,
                       by_cols ? "column" : "row", length);
    uint64_t count = 0, bytes = 0;
    if (!tl_mul_fits((uint64_t)lines, (uint64_t)A->ld, &count)
        || !tl_mul_fits(count, tl_type_size(A->val_type), &bytes) || bytes > PTRDIFF_MAX)
        return tl_fail(b, TULLE_EOVERFLOW,
                       "%s: %" PRId64 " %s of %" PRId64 " values each, ld included, cannot be "
                       "addressed", name, lines, by_cols ? "columns" : "rows", A->ld);
    if (values && !A->values && lines > 0 && length > 0)
        return tl_fail(b, TULLE_EINVAL, "%s: values is NULL", name);
    return TL_RESERVED_CHECK(b, name, A);
}

/* ---- owned */

tulle_status tl_dense_create(tl_base *b, int64_t rows, int64_t cols, tulle_order order, tulle_type type,
                             tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_dense_matrix *A = NULL;
    *out = NULL;
    TRY(tl_calloc(b, &A, 1, sizeof *A, "a dense matrix"));
    A->view = (tulle_dense){.rows = rows, .cols = cols, .val_type = type, .order = order};
    TRY(tl_dense_check(b, &A->view, "a dense matrix", false));
    TRY(tl_alloc(b, &A->view.values, rows * cols, tl_type_size(type), "values of a dense matrix"));
    *out = A;
    A = NULL;
done:
    tl_dense_free(b, A);
    return status;
}

void tl_dense_free(tl_base *b, tulle_dense_matrix *A)
{
    if (!A) return;
    if (A->disown) A->disown(A);
    else tl_free(b, A->view.values);
    tl_free(b, A);
}

/* ---- copies */

typedef struct copying { const tulle_dense *from; tulle_dense *to; } copying;

enum { TILE = 32 };                     /* rows and columns of a tile when transposing */

static void copy_work(void *arg, int thread, int threads)
{
    const copying *c = arg;
    const tulle_dense *f = c->from, *t = c->to;
    int64_t fr = f->order == TULLE_BY_ROWS ? f->ld : 1, fc = f->order == TULLE_BY_ROWS ? 1 : f->ld;
    int64_t tr = t->order == TULLE_BY_ROWS ? t->ld : 1, tc = t->order == TULLE_BY_ROWS ? 1 : t->ld;
    int64_t tiles = (f->rows + TILE - 1) / TILE;
    int64_t begin = tl_part(tiles, thread, threads) * TILE, end = tl_part(tiles, thread + 1, threads) * TILE;
    if (end > f->rows) end = f->rows;
    for (int64_t i0 = begin; i0 < end; i0 += TILE)
        for (int64_t j0 = 0; j0 < f->cols; j0 += TILE)
            for (int64_t i = i0; i < i0 + TILE && i < end; i++)
                for (int64_t j = j0; j < j0 + TILE && j < f->cols; j++)
                    tl_value_store(t->val_type, t->values, i * tr + j * tc,
                                   tl_value_load(f->val_type, f->values, i * fr + j * fc));
}

tulle_status tl_dense_convert(tl_base *b, const tulle_dense *A, tulle_order order, int type,
                              tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_dense_matrix *C = NULL;
    TRY(tl_dense_create(b, A->rows, A->cols, order, type ? (tulle_type)type : A->val_type, &C));
    copying c = {A, &C->view};
    tl_team_run(b->team, tl_threads_for(b, 0, A->rows * A->cols), copy_work, &c);
    *out = C;
done:
    return status;
}

/* ---- files */

tulle_status tl_dense_read(tl_base *b, const char *path, tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_source s;
    *out = NULL;
    status = tl_source_open(b, path, &s);
    if (status != TULLE_OK) return status;
    bool archive = s.member != NULL;    /* a named member, such as a right-hand side */
    if (archive) TRY(tl_tar_enter(&s));
    tl_source_go_on(&s);
    if (!archive && tl_npy_begins(s.head, s.head_bytes)) TRY(tl_npy_read(&s, out));
    else if (archive || tl_mtx_begins(s.head, s.head_bytes)) TRY(tl_mtx_read_dense(&s, out));
    else status = tl_fail(b, TULLE_EFORMAT, "%s: is neither a .npy file nor a Matrix Market file", s.name);
    if (status == TULLE_OK && archive) TRY(tl_tar_leave(&s));
done:
    if (status != TULLE_OK) {
        tl_dense_free(b, *out);
        *out = NULL;
    }
    tl_source_close(&s);
    return status;
}

tulle_status tl_dense_write(tl_base *b, const char *path, const tulle_dense *A)
{
    bool npy = tl_name_ends(path, ".npy");
    if (!npy && !tl_name_ends(path, ".mtx"))
        return tl_fail(b, TULLE_EINVAL, "%s: the name should end with .npy or .mtx, which says what to write",
                       path);
    return npy ? tl_npy_write(b, path, A) : tl_mtx_write_dense(b, path, A);
}
