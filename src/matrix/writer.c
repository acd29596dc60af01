/* SPDX-License-Identifier: MIT
 *
 * writer.c - writes a matrix to a file by blocks of rows, for matrices larger than memory.
 *
 * A table lists the formats that support this.  The size line of Matrix Market comes first and needs the
 * number of entries, which is known last.  The format allows spaces there: the line is written with a field
 * wide enough for any count, and filled in at the end.  Blocks are printed by all threads, like whole
 * matrices (mtx_write.c).  .tulle is in a separate file (binary_rows.c). */
#include "matrix/files.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COUNT_FIELD = 20, HEAD_MAX = 256 };      /* digits of the largest int64_t, and one more */

typedef struct format {
    const char   *ending;
    tulle_status (*begin)(tulle_writer *w);
    tulle_status (*put)(tulle_writer *w, const tulle_csr *block);
    tulle_status (*finish)(tulle_writer *w);            /* everything except the rename */
} format;

struct tulle_writer {
    tl_base *b;
    const format *format;
    tl_out   out;
    char    *path;
    int64_t  rows, cols;                /* of the whole matrix */
    int      val_type;                  /* 0: a pattern        */
    int64_t  row, nnz;                  /* put so far          */
    int64_t  at, count_at;              /* Matrix Market: bytes so far; where the number of entries belongs */
    tl_binary_rows *binary;             /* .tulle              */
    bool     broken, finished;
};

tl_base *tl_writer_base(const tulle_writer *w)
{
    return w->b;
}

/* ---- Matrix Market */

static tulle_status mtx_begin(tulle_writer *w)
{
    char head[HEAD_MAX];
    w->count_at = tl_mtx_print_head(head, sizeof head, w->val_type, "general", w->rows, w->cols);
    w->at = w->count_at + snprintf(head + w->count_at, sizeof head - (size_t)w->count_at, "%*s\n",
                                   (int)COUNT_FIELD, "");
    int error = tl_out_put(&w->out, head, w->at, 0);
    return error ? tl_out_fail(&w->out, error) : TULLE_OK;
}

static tulle_status mtx_put(tulle_writer *w, const tulle_csr *block)
{
    return tl_mtx_put_rows(&w->out, block, w->row, "", false, &w->at);
}

static tulle_status mtx_finish(tulle_writer *w)
{
    char count[COUNT_FIELD + 1];
    snprintf(count, sizeof count, "%*" PRId64, (int)COUNT_FIELD, w->nnz);
    int error = tl_out_put(&w->out, count, COUNT_FIELD, w->count_at);
    return error ? tl_out_fail(&w->out, error) : TULLE_OK;
}

/* ---- .tulle */

static tulle_status binary_begin(tulle_writer *w)
{
    return tl_binary_rows_begin(&w->out, w->rows, w->cols, w->val_type, &w->binary);
}

static tulle_status binary_put(tulle_writer *w, const tulle_csr *block)
{
    return tl_binary_rows_put(w->binary, block);
}

static tulle_status binary_finish(tulle_writer *w)
{
    return tl_binary_rows_finish(w->binary);
}

static const format formats[] = {
    {".mtx", mtx_begin, mtx_put, mtx_finish},
    {".tulle", binary_begin, binary_put, binary_finish},
};

static const format *find_format(const char *path)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (tl_name_ends(path, formats[i].ending)) return &formats[i];
    return NULL;
}

/* ---- any */

tulle_status tl_writer_create(tl_base *b, const char *path, int64_t rows, int64_t cols, int val_type,
                              tulle_writer **out)
{
    tulle_status status = TULLE_OK;
    tulle_writer *w = NULL;
    const format *as = find_format(path);
    if (!as)
        return tl_fail(b, TULLE_EINVAL,
                       "%s: the name should end with .mtx or .tulle; other files cannot be written in"
                       " blocks of rows", path);
    if (rows < 0 || cols < 0)
        return tl_fail(b, TULLE_EINVAL, "%s: %" PRId64 " rows, %" PRId64 " columns: a size cannot be"
                       " negative", path, rows, cols);
    if (val_type && !tl_type_known(val_type))
        return tl_fail(b, TULLE_ETYPE, "%s: val_type is %d, not TULLE_F32, F64, CF32, CF64 or 0", path,
                       val_type);
    TRY(tl_calloc(b, &w, 1, sizeof *w, "a writer"));
    *w = (tulle_writer){.b = b, .format = as, .out = {.b = b, .fd = -1}, .rows = rows, .cols = cols,
                        .val_type = val_type};
    TRY(tl_alloc(b, &w->path, (int64_t)strlen(path) + 1, 1, "a file name"));
    strcpy(w->path, path);
    TRY(tl_out_open(b, w->path, &w->out));
    TRY(as->begin(w));
    *out = w;
    w = NULL;
done:
    tl_writer_free(w);
    return status;
}

static tulle_status check_open(const tulle_writer *w)
{
    if (w->finished) return tl_fail(w->b, TULLE_EINVAL, "%s: is finished; nothing more can be put", w->path);
    if (w->broken)
        return tl_fail(w->b, TULLE_EINVAL, "%s: writing failed before; nothing more can be put", w->path);
    return TULLE_OK;
}

static tulle_status check_block(const tulle_writer *w, const tulle_csr *block)
{
    if (block->cols != w->cols)
        return tl_fail(w->b, TULLE_ESHAPE, "%s: has %" PRId64 " columns, and a block of %" PRId64 " was put",
                       w->path, w->cols, block->cols);
    if (block->rows > w->rows - w->row)
        return tl_fail(w->b, TULLE_ESHAPE,
                       "%s: %" PRId64 " of %" PRId64 " rows were put, and a block of %" PRId64 " more",
                       w->path, w->row, w->rows, block->rows);
    if (tl_value_type(block) != w->val_type)
        return tl_fail(w->b, TULLE_ETYPE, "%s: its values are %s, and a block of %s was put", w->path,
                       w->val_type ? tl_type_name((tulle_type)w->val_type) : "none",
                       block->values ? tl_type_name(block->val_type) : "none");
    return TULLE_OK;
}

tulle_status tl_writer_put(tulle_writer *w, const tulle_csr *block)
{
    tulle_status status = TULLE_OK;
    TRY(check_open(w));
    TRY(check_block(w, block));
    w->broken = true;                   /* until the block is there */
    TRY(w->format->put(w, block));
    w->broken = false;
    w->row += block->rows;
    w->nnz += block->nnz;
done:
    return status;
}

tulle_status tl_writer_finish(tulle_writer *w)
{
    tulle_status status = TULLE_OK;
    TRY(check_open(w));
    if (w->row < w->rows)
        TRY(tl_fail(w->b, TULLE_ESHAPE, "%s: only %" PRId64 " of %" PRId64 " rows were put", w->path, w->row,
                    w->rows));
    w->broken = true;
    TRY(w->format->finish(w));
    TRY(tl_out_rename(&w->out));
    w->broken = false;
    w->finished = true;
done:
    return status;
}

void tl_writer_free(tulle_writer *w)
{
    if (!w) return;
    tl_binary_rows_free(w->binary);
    tl_out_close(&w->out);
    tl_free(w->b, w->path);
    tl_free(w->b, w);
}
