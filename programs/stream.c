/* SPDX-License-Identifier: MIT
 *
 * stream.c - a product larger than memory, written as Matrix Market while it is computed.
 *
 * The size line must come first and needs the number of entries, which is known last.  The format
 * allows spaces there: the line is written with a field wide enough for any count, and filled in at
 * the end.  Everything goes to a file beside the target, renamed when it is complete.  The check is
 * made block by block: a block of C is the product of the same rows of A with B.  Memory: one block,
 * and for the check the row pointers of a block. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_FIELD = 20 };      /* digits of the largest int64_t, and one more */

typedef struct stream {
    const char *path;
    char        beside[4096];
    FILE       *file;
    long        count_at;
    tulle_csr   a, b;           /* as multiplied: transposed already */
    session     checker;        /* a context of its own: the first is busy in the callback */
    bool        check;
    int64_t     cols;
    streamed   *result;
    int         code;           /* what went wrong inside the callback */
    double      sec_inside;     /* time spent in the callback          */
} stream;

static int cannot_write(const char *path)
{
    return complain(END_FAILED, "\"%s\" cannot be written: %s", path, strerror(errno));
}

static int begin_file(stream *t, int64_t rows, int64_t cols, int type)
{
    int n = snprintf(t->beside, sizeof t->beside, "%s.%ld.part", t->path, (long)getpid());
    if (n < 0 || n >= (int)sizeof t->beside)
        return complain(END_FAILED, "the name of the output is too long");
    t->file = fopen(t->beside, "w");
    if (!t->file) return cannot_write(t->path);
    signal_guard(t->beside);
    fprintf(t->file, "%%%%MatrixMarket matrix coordinate %s general\n%% written by tulle %s\n",
            type >= TULLE_C32 ? "complex" : "real", tulle_version());
    fprintf(t->file, "%" PRId64 " %" PRId64 " ", rows, cols);
    t->count_at = ftell(t->file);
    if (fprintf(t->file, "%*s\n", COUNT_FIELD, "") < 0 || t->count_at < 0) return cannot_write(t->path);
    return END_OK;
}

static int end_file(stream *t)
{
    bool ok = fseek(t->file, t->count_at, SEEK_SET) == 0
              && fprintf(t->file, "%*" PRId64, COUNT_FIELD, t->result->nnz) > 0;
    if (fclose(t->file) != 0) ok = false;
    t->file = NULL;
    if (!ok || rename(t->beside, t->path) != 0) return cannot_write(t->path);
    t->beside[0] = 0;
    signal_guard(NULL);
    return END_OK;
}

static void drop_file(stream *t)
{
    if (t->file) fclose(t->file);
    if (t->beside[0]) unlink(t->beside);
    signal_guard(NULL);
}

/* Enough digits to read the same number again; whole numbers, the common case, in few. */
static void print_value(FILE *f, double value, int digits)
{
    if (fabs(value) < 1e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value)))
        fprintf(f, " %" PRId64, (int64_t)value);
    else fprintf(f, " %.*g", digits, value);
}

static void print_entry(FILE *f, const tulle_csr *A, int64_t k)
{
    switch (A->val_type) {
    case TULLE_F32: print_value(f, ((const float *)A->values)[k], 9); break;
    case TULLE_F64: print_value(f, ((const double *)A->values)[k], 17); break;
    case TULLE_C32:
        print_value(f, ((const float *)A->values)[2 * k], 9);
        print_value(f, ((const float *)A->values)[2 * k + 1], 9);
        break;
    case TULLE_C64:
        print_value(f, ((const double *)A->values)[2 * k], 17);
        print_value(f, ((const double *)A->values)[2 * k + 1], 17);
        break;
    }
    fputc('\n', f);
}

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
    tulle_options o = {.sort_inputs = t->checker.o->product.sort_inputs};
    int code = END_OK;
    GO(cut_rows(&t->a, first, block->rows, &rows_of_a, &copy));
    GO(told(&t->checker, tulle_product_check(t->checker.ctx, &rows_of_a, &t->b, block, &o, &error)));
done:
    if (!(error <= t->result->error)) t->result->error = error;
    free(copy);
    return code;
}

static int take_block(void *user, int64_t first, const tulle_csr *block)
{
    stream *t = user;
    double begun = seconds();
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t k = csr_row(block, i); k < csr_row(block, i + 1); k++) {
            fprintf(t->file, "%" PRId64 " %" PRId64, first + i + 1, csr_col(block, k) + 1);
            print_entry(t->file, block, k);
        }
    t->result->nnz += block->nnz;
    t->result->blocks++;
    t->result->shape.ptr_type = block->ptr_type;
    t->result->shape.idx_type = block->idx_type;
    t->result->shape.val_type = block->val_type;
    t->code = ferror(t->file) ? cannot_write(t->path) : END_OK;
    t->result->sec_write += seconds() - begun;
    if (t->code == END_OK && t->check) t->code = check_block(t, first, block);
    t->sec_inside += seconds() - begun;
    return t->code != END_OK;
}

int stream_product(session *s, const pair *p, const char *path, bool check, streamed *result)
{
    int code = END_OK;
    stream t = {.path = path, .check = check, .cols = p->cols, .result = result};
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
    GO(session_open_on(&t.checker, s->o, "cpu"));
    GO(begin_file(&t, p->rows, p->cols, (int)p->a.view.val_type));
    tulle_status status = tulle_multiply_blocks(s->ctx, &t.a, &t.b, &o, take_block, &t);
    GO(t.code);
    GO(told(s, status));
    tulle_ctx_stats(s->ctx, &result->stats);
    result->stats.sec_total -= t.sec_inside;
    GO(end_file(&t));
    result->shape.rows = p->rows;
    result->shape.cols = p->cols;
    result->shape.nnz = result->nnz;
done:
    drop_file(&t);
    session_close(&t.checker);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return code;
}
