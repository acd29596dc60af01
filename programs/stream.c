/* SPDX-License-Identifier: MIT
 *
 * stream.c - a product larger than memory, written while it is computed (tulle_writer).  Each block is
 * checked separately: it must be the product of the same rows of A with B.  For the check transposed operands
 * must exist as matrices; without it the library transposes them, and includes that in its memory limit.
 * Memory: one block, and for the check the row pointers of a block. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

typedef struct stream {
    tulle_writer *writer;
    tulle_csr     a, b;         /* with a check as multiplied: transposed already */
    uint64_t      copies;       /* bytes of the transposed ones                   */
    session       second;       /* writes and checks: the first is busy in the callback */
    bool          check;
    streamed     *result;
    int           code;         /* what went wrong inside the callback */
    double        sec_inside;   /* time spent in the callback          */
} stream;

/* The rows first .. first + rows of A as a view; its row pointers are a copy that begins at 0. */
static int cut_rows(const tulle_csr *A, int64_t first, int64_t rows, tulle_csr *part, int64_t **copy)
{
    int64_t begin = csr_row(A, first), *p = malloc(((size_t)rows + 1) * sizeof *p);
    if (!p) return no_memory("the check of a block");
    for (int64_t i = 0; i <= rows; i++) p[i] = csr_row(A, first + i) - begin;
    *part = *A;
    part->rows = rows;
    part->nnz = p[rows];
    part->row_ptr = p;
    part->ptr_type = TULLE_I64;
    part->col_idx = (const char *)A->col_idx + (size_t)begin * index_size((int)A->idx_type);
    part->values = (const char *)A->values + (size_t)begin * type_size((int)A->val_type);
    *copy = p;
    return END_OK;
}

static int check_block(stream *t, int64_t first, const tulle_csr *block)
{
    int64_t *copy = NULL;
    tulle_csr rows_of_a;
    double error = 0;
    tulle_options o = {.sort_inputs = t->second.o->product.sort_inputs};
    int code = END_OK;
    GO(cut_rows(&t->a, first, block->rows, &rows_of_a, &copy));
    GO(told(&t->second, tulle_product_check(t->second.ctx, &rows_of_a, &t->b, block, &o, &error)));
done:
    if (!(error <= t->result->error)) t->result->error = error;
    free(copy);
    return code;
}

static int take_block(void *user, int64_t first, const tulle_csr *block)
{
    stream *t = user;
    double begun = seconds();
    t->code = told(&t->second, tulle_writer_put(t->writer, block));
    t->result->nnz += block->nnz;
    t->result->blocks++;
    t->result->shape.ptr_type = block->ptr_type;
    t->result->shape.idx_type = block->idx_type;
    t->result->shape.val_type = block->val_type;
    t->result->sec_write += seconds() - begun;
    if (t->code == END_OK && t->check) t->code = check_block(t, first, block);
    t->sec_inside += seconds() - begun;
    return t->code != END_OK;
}

/* Refuses a C that does not fit on the disk even with its minimum number of entries, if the file system
 * reports its free space. */
static int disk_has_room(session *s, const stream *t, const tulle_options *o, const char *path)
{
    tulle_forecast f = {0};
    struct statvfs disk;
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    int code = END_OK;
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (slash && n < sizeof folder) {
        memcpy(folder, path, n);
        strcpy(folder + n, n > 0 ? "" : "/");
    }
    GO(told(s, tulle_estimate(s->ctx, &t->a, &t->b, o, &f)));
    if (statvfs(folder, &disk) != 0) goto done;
    /* Text: two indices and a number, each of at least one digit, with separators. */
    size_t binary = index_size((int)t->b.idx_type) + type_size((int)t->b.val_type);
    size_t entry = ends_with(path, ".mtx") ? 6 : binary;
    double bytes = (double)f.nnz_lower * (double)entry, room = (double)disk.f_bavail * (double)disk.f_frsize;
    if (bytes > room)
        code = complain(END_FAILED, "%s: C has at least %" PRId64 " entries, %.0f bytes; there are %.0f free",
                        path, f.nnz_lower, bytes, room);
done:
    return code;
}

/* A transposed copy for the check; it counts toward the memory limit of the product, unless that is for a
 * device. */
static int transposed(session *s, stream *t, tulle_csr *view, int *op, tulle_options *o, tulle_matrix **own)
{
    int code = END_OK;
    bool counts = o->memory_limit && !session_on_gpu(s);
    if (*op == TULLE_KEEP || !t->check) return END_OK;
    uint64_t ptr = (uint64_t)(view->cols + 1) * index_size((int)view->ptr_type);
    uint64_t entry = index_size((int)view->idx_type) + type_size((int)view->val_type);
    uint64_t bytes = ptr + (uint64_t)view->nnz * entry;
    if (counts && bytes >= o->memory_limit)
        GO(complain(END_MEMORY, "a transposed operand alone needs %" PRIu64 " bytes for the check in blocks, "
                    "the limit leaves %" PRIu64, bytes, (uint64_t)o->memory_limit));
    GO(told(s, tulle_csr_transpose(s->ctx, view, (tulle_op)*op, own)));
    *view = tulle_matrix_view(*own);
    *op = TULLE_KEEP;
    if (!counts) goto done;
    t->copies += bytes;
    o->memory_limit -= bytes;
done:
    return code;
}

int stream_product(session *s, const pair *p, const char *path, bool check, streamed *result)
{
    int code = END_OK;
    stream t = {.check = check, .result = result};
    tulle_matrix *a = NULL, *b = NULL;
    tulle_options o = p->options;
    *result = (streamed){.shape = p->a.view};
    t.a = p->a.view;
    t.b = p->b.view;
    GO(transposed(s, &t, &t.a, &o.op_a, &o, &a));
    GO(transposed(s, &t, &t.b, &o.op_b, &o, &b));
    GO(disk_has_room(s, &t, &o, path));
    GO(session_open_on(&t.second, s->o, "cpu"));
    GO(told(&t.second, tulle_writer_create(t.second.ctx, path, p->rows, p->cols, p->a.view.val_type,
                                           &t.writer)));
    tulle_status status = tulle_multiply_blocks(s->ctx, &t.a, &t.b, &o, take_block, &t);
    GO(t.code);
    if (status == TULLE_ELIMIT && t.copies)
        GO(complain(END_MEMORY, "%s, beside %" PRIu64 " bytes of transposed operands for the check",
                    tulle_ctx_error(s->ctx), t.copies));
    GO(told(s, status));
    tulle_ctx_stats(s->ctx, &result->stats);
    result->stats.sec_total -= t.sec_inside;
    GO(told(&t.second, tulle_writer_finish(t.writer)));
    result->shape.rows = p->rows;
    result->shape.cols = p->cols;
    result->shape.nnz = result->nnz;
done:
    tulle_writer_free(t.writer);
    session_close(&t.second);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return code;
}
