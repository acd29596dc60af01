/* SPDX-License-Identifier: MIT
 *
 * stream.c - a product larger than memory, written as Matrix Market while it is computed (tulle_writer).  The
 * check is made block by block: a block of C is the product of the same rows of A with B.  Memory: one block,
 * and for the check the row pointers of a block. */
#include "program.h"
#include <stdlib.h>

typedef struct stream {
    tulle_writer *writer;
    tulle_csr     a, b;         /* as multiplied: transposed already */
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

int stream_product(session *s, const pair *p, const char *path, bool check, streamed *result)
{
    int code = END_OK;
    stream t = {.check = check, .result = result};
    tulle_matrix *a = NULL, *b = NULL;
    tulle_options o = p->options;
    *result = (streamed){.shape = p->a.view};
    t.a = p->a.view;
    t.b = p->b.view;
    if (o.op_a) {
        GO(told(s, tulle_csr_transpose(s->ctx, &t.a, (tulle_op)o.op_a, &a)));
        t.a = tulle_matrix_view(a);
    }
    if (o.op_b) {
        GO(told(s, tulle_csr_transpose(s->ctx, &t.b, (tulle_op)o.op_b, &b)));
        t.b = tulle_matrix_view(b);
    }
    o.op_a = o.op_b = TULLE_KEEP;
    GO(session_open_on(&t.second, s->o, "cpu"));
    GO(told(&t.second, tulle_writer_create(t.second.ctx, path, p->rows, p->cols, p->a.view.val_type,
                                           &t.writer)));
    tulle_status status = tulle_multiply_blocks(s->ctx, &t.a, &t.b, &o, take_block, &t);
    GO(t.code);
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
