/* SPDX-License-Identifier: MIT
 *
 * join.c - concatenates parts of a matrix: parts that arrive one by one, which are blocks of rows or, within
 * one row, ranges of columns; or blocks that all exist already, each freed after it was copied.
 *
 * Only an upper bound of the number of entries is known in advance.  Columns and values reserve address space
 * for that many, of which only the filled part takes memory (tl_reserve), so the matrix exists only once,
 * besides the part that threads are copying.  Where address space cannot be reserved (memory hooks) the
 * arrays start with the lower bound and grow by half.  Free memory is checked before pages are touched, and
 * an error returned where it is not enough: Linux would kill the process instead.
 *
 * Memory: the matrix, with 64-bit row pointers until its number of entries is known. */
#include "matrix/parts.h"
#include <inttypes.h>

static const uint64_t ask_from = 64u << 20;     /* bytes after which free memory is checked again */

static uint64_t entry_bytes(const tl_join *j)
{
    return j->index + j->value;
}

static tulle_status begin(tl_base *b, tulle_csr kind, int64_t least, int64_t most, bool values, tl_join *j)
{
    tulle_status status = TULLE_OK;
    *j = (tl_join){.least = least, .most = most, .index = tl_index_size(kind.idx_type),
                   .value = values ? tl_type_size(kind.val_type) : 0};
    uint64_t bytes = tl_bytes_of((uint64_t)least, entry_bytes(j));
    if (bytes > ask_from && !b->mem.alloc && bytes > tl_memory_free())
        return tl_fail(b, TULLE_ENOMEM, "C has at least %" PRId64 " entries, %" PRIu64 " bytes; the machine "
                       "has %" PRIu64 " left", least, bytes, tl_memory_free());
    TRY(tl_calloc(b, &j->C, 1, sizeof *j->C, "a matrix"));
    TRY(tl_calloc(b, &j->C->row_ptr, kind.rows + 1, tl_index_size(kind.ptr_type), "row pointers of C"));
    j->C->view = kind;
done:
    if (status != TULLE_OK) tl_join_done(b, j);
    return status;
}

tulle_status tl_join_begin(tl_base *b, int64_t rows, int64_t cols, int64_t least, int64_t most,
                           tulle_index idx_type, tulle_type val_type, bool values, tl_join *j)
{
    const tulle_csr kind = {.rows = rows, .cols = cols, .ptr_type = TULLE_I64, .idx_type = idx_type,
                            .val_type = val_type};
    return begin(b, kind, least, most, values, j);
}

void tl_join_done(tl_base *b, tl_join *j)
{
    tl_matrix_free(b, j->C);
    *j = (tl_join){0};
}

/* Reallocates an array for more entries. */
static tulle_status grow(tl_base *b, void **array, size_t size, int64_t used, int64_t room, const char *what)
{
    void *more = NULL;
    tulle_status status = tl_alloc(b, &more, room, size, what);
    if (status != TULLE_OK) return status;
    if (used > 0) memcpy(more, *array, (size_t)used * size);
    tl_free(b, *array);
    *array = more;
    return TULLE_OK;
}

static tulle_status make_room(tl_base *b, tl_join *j, int64_t more)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = j->C;
    int64_t need = j->nnz + more;
    if (C->col_idx && need <= j->room) return TULLE_OK;
    if (!C->col_idx && tl_reserve(b, &C->col_idx, j->most, j->index) == TULLE_OK) {
        j->room = j->most;
        if (!j->value || tl_reserve(b, &C->values, j->most, j->value) == TULLE_OK) return TULLE_OK;
        tl_free(b, C->col_idx);
        C->col_idx = NULL;
        j->room = 0;
    }
    int64_t room = need + need / 2 < j->most ? need + need / 2 : j->most > need ? j->most : need;
    if (room < j->least) room = j->least;
    TRY(grow(b, &C->col_idx, j->index, j->nnz, room, "column indices of C"));
    if (j->value) TRY(grow(b, &C->values, j->value, j->nnz, room, "values of C"));
    j->room = room;
done:
    return status;
}

/* Reserved memory gets its pages when they are touched: checks that enough memory is free for that. */
static tulle_status ask_machine(tl_base *b, tl_join *j, int64_t more)
{
    uint64_t bytes = tl_bytes_of((uint64_t)more, entry_bytes(j));
    j->unasked = tl_bytes_sum(j->unasked, bytes);
    if (j->unasked < ask_from || b->mem.alloc) return TULLE_OK;
    uint64_t have = tl_memory_free();
    j->unasked = 0;
    if (bytes <= have) return TULLE_OK;
    return tl_fail(b, TULLE_ENOMEM, "C: %" PRIu64 " bytes could not be had after row %" PRId64 " and %" PRId64
                   " entries, the machine has %" PRIu64 " left", bytes, j->rows, j->nnz, have);
}

/* ---- copying */

typedef struct copy {
    const tulle_csr *part;
    const tl_join   *to;
} copy;

static void copy_entries(void *to, const void *from, int64_t at, int64_t begin, int64_t end, size_t size)
{
    if (end > begin && size)
        memcpy((char *)to + (size_t)(at + begin) * size, (const char *)from + (size_t)begin * size,
               (size_t)(end - begin) * size);
}

static void copy_work(void *arg, int thread, int threads)
{
    const copy *c = arg;
    const tulle_csr *A = c->part;
    const tl_join *j = c->to;
    const tulle_matrix *C = j->C;
    int64_t row0 = tl_part(A->rows, thread, threads), row1 = tl_part(A->rows, thread + 1, threads);
    for (int64_t i = row0 + 1; i <= row1; i++)
        tl_put(C->row_ptr, C->view.ptr_type, j->rows + i, j->nnz + tl_row_begin(A, i));
    int64_t first = tl_part(A->nnz, thread, threads), last = tl_part(A->nnz, thread + 1, threads);
    copy_entries(C->col_idx, A->col_idx, j->nnz, first, last, j->index);
    copy_entries(C->values, A->values, j->nnz, first, last, j->value);
}

tulle_status tl_join_put(tl_base *b, tl_join *j, const tulle_csr *part, bool beside)
{
    tulle_status status = TULLE_OK;
    copy c = {part, j};
    TRY(ask_machine(b, j, part->nnz));
    TRY(make_room(b, j, part->nnz));
    tl_team_run(b->team, tl_threads_for(b, 0, part->nnz + part->rows), copy_work, &c);
    j->nnz += part->nnz;
    if (!beside) j->rows += part->rows;
done:
    return status;
}

static tulle_status check_count(tl_base *b, tulle_index type, int64_t nnz)
{
    if (tl_fits(type, nnz)) return TULLE_OK;
    return tl_fail(b, TULLE_EOVERFLOW, "C has %" PRId64 " entries, more than 32-bit row pointers can count (%"
                   PRId64 "); ask for 64 bit", nnz, (int64_t)TULLE_I32_LIMIT);
}

tulle_status tl_join_finish(tl_base *b, tl_join *j, int ptr_type, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = j->C;
    tulle_index type = ptr_type ? (tulle_index)ptr_type : tl_index_for(j->nnz);
    TRY(check_count(b, type, j->nnz));
    TRY(make_room(b, j, 0));            /* a matrix without entries needs arrays, too */
    tl_commit(b, C->col_idx, (uint64_t)j->nnz * j->index);
    tl_shrink(b, C->col_idx, (uint64_t)j->nnz * j->index);
    if (j->value) tl_commit(b, C->values, (uint64_t)j->nnz * j->value);
    if (j->value) tl_shrink(b, C->values, (uint64_t)j->nnz * j->value);
    if (C->view.ptr_type != type) {
        tl_index_resize(b, C->row_ptr, C->view.ptr_type, type, C->view.rows + 1);
        tl_shrink(b, C->row_ptr, (uint64_t)(C->view.rows + 1) * tl_index_size(type));
    }
    C->view.nnz = j->nnz;
    C->view.ptr_type = type;
    C->view.row_ptr = C->row_ptr;
    C->view.col_idx = C->col_idx;
    C->view.values = C->values;
    *out = C;
    *j = (tl_join){0};
done:
    return status;
}

static uint64_t entries_bytes(const tulle_csr *A)
{
    uint64_t entry = tl_index_size(A->idx_type) + (A->values ? tl_type_size(A->val_type) : 0);
    return tl_bytes_of((uint64_t)A->nnz, entry);
}

static uint64_t pointers_bytes(int64_t rows, tulle_index type)
{
    return tl_bytes_of((uint64_t)rows + 1, tl_index_size(type));
}

uint64_t tl_rows_join_bytes(const tl_base *b, tulle_matrix *const *part, int64_t count, int ptr_type)
{
    uint64_t left = 0, entries = 0, copied = 0, most = 0;
    int64_t rows = 0, nnz = 0;
    for (int64_t k = 0; k < count; k++) {
        const tulle_csr *v = &part[k]->view;
        left = tl_bytes_sum(left, tl_bytes_sum(entries_bytes(v), pointers_bytes(v->rows, v->ptr_type)));
        entries = tl_bytes_sum(entries, entries_bytes(v));
        rows += v->rows;
        nnz += v->nnz;
    }
    uint64_t pointers = pointers_bytes(rows, ptr_type ? (tulle_index)ptr_type : tl_index_for(nnz));
    if (b->mem.alloc) return tl_bytes_sum(pointers, tl_bytes_sum(entries, left)); /* hooks cannot reserve */
    for (int64_t k = 0; k < count; k++) {
        const tulle_csr *v = &part[k]->view;
        copied += entries_bytes(v);
        if (copied + left > most) most = copied + left;
        left -= entries_bytes(v) + pointers_bytes(v->rows, v->ptr_type);
    }
    return tl_bytes_sum(pointers, most);
}

tulle_status tl_rows_join(tl_base *b, tulle_matrix **part, tl_base *const *owner, int64_t count, int ptr_type,
                          tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_join j = {0};
    tulle_csr kind = part[0]->view;
    int64_t nnz = 0;
    bool values = false;                /* a part without entries may have no values */
    kind.rows = 0;
    for (int64_t k = 0; k < count; k++) {
        values = values || part[k]->view.values;
        kind.rows += part[k]->view.rows;
        nnz += part[k]->view.nnz;
    }
    kind.ptr_type = ptr_type ? (tulle_index)ptr_type : tl_index_for(nnz);
    TRY(check_count(b, kind.ptr_type, nnz));
    TRY(begin(b, kind, nnz, nnz, values, &j));
    for (int64_t k = 0; k < count; k++) {
        TRY(tl_join_put(b, &j, &part[k]->view, false));
        tl_matrix_free(owner ? owner[k] : b, part[k]);
        part[k] = NULL;
    }
    TRY(tl_join_finish(b, &j, ptr_type, out));
done:
    tl_join_done(b, &j);
    return status;
}
