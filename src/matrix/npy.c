/* SPDX-License-Identifier: MIT
 *
 * npy.c - dense matrices in NumPy's format.
 *
 *     \x93NUMPY  major minor  length of the header, 2 bytes (version 1) or 4 (version 2, 3)
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }      padded with blanks, a newline last
 *     the values
 *
 * The header is a Python dictionary of these three keys, in any order.  Float and complex values in little
 * endian are read; an array of one dimension becomes a column.  Written files are version 1, padded to 64
 * bytes.
 * Memory: the matrix; 1 MiB where lines with gaps are written. */
#include "matrix/files.h"
#include <inttypes.h>
#include <stdio.h>

enum { HEADER_MOST = 1 << 16, BUFFER = 1 << 20, CHUNK = 64 << 20 };
static const char magic[] = "\x93NUMPY";
static const int magic_bytes = 6;

static const struct { const char *descr; tulle_type type; } types[] = {
    {"<f4", TULLE_F32}, {"<f8", TULLE_F64}, {"<c8", TULLE_CF32}, {"<c16", TULLE_CF64},
};
enum { TYPES = sizeof types / sizeof *types };

bool tl_npy_begins(const char *head, int64_t bytes)
{
    return bytes >= magic_bytes && memcmp(head, magic, (size_t)magic_bytes) == 0;
}

/* ---- the header as a text; positions in messages count from the beginning of the file */

typedef struct header {
    tl_source  *s;
    const char *text, *p;               /* ends with a zero byte */
    int         before;                 /* bytes of the file before it */
    tulle_type  type;
    bool        by_cols;
    int         dims;
    int64_t     dim[2];
    bool        have[3];                /* descr, fortran_order, shape */
} header;

static tulle_status wrong(const header *h, const char *what)
{
    char found[32];
    unsigned char c = (unsigned char)*h->p;
    if (c == 0) snprintf(found, sizeof found, "its end");
    else snprintf(found, sizeof found, c >= ' ' && c < 127 ? "'%c'" : "a byte 0x%02x", c);
    return tl_fail(h->s->b, TULLE_EFORMAT,
                   "%s: byte %td of the file: %s was expected in the header, found %s",
                   h->s->name, h->p - h->text + h->before, what, found);
}

static void blanks(header *h)
{
    while (*h->p == ' ' || *h->p == '\t' || *h->p == '\n' || *h->p == '\r') h->p++;
}

static bool take(header *h, char c)
{
    blanks(h);
    if (*h->p != c) return false;
    h->p++;
    return true;
}

static bool take_word(header *h, const char *word)
{
    blanks(h);
    size_t n = strlen(word);
    if (strncmp(h->p, word, n) != 0) return false;
    h->p += n;
    return true;
}

/* Parses a quoted string; false: there is none, or it is too long. */
static bool take_text(header *h, char *to, int room)
{
    int n = 0;
    blanks(h);
    char quote = *h->p;
    if (quote != '\'' && quote != '"') return false;
    const char *p = h->p + 1;
    while (*p && *p != quote && n < room - 1) to[n++] = *p++;
    to[n] = 0;
    if (*p != quote) return false;
    h->p = p + 1;
    return true;
}

static tulle_status take_type(header *h)
{
    char text[32];
    const char *at = h->p;
    if (!take_text(h, text, sizeof text)) return wrong(h, "a type such as '<f8'");
    for (int i = 0; i < TYPES; i++)
        if (strcmp(text, types[i].descr) == 0) return h->type = types[i].type, TULLE_OK;
    h->p = at;
    if (text[0] == '>')
        return tl_fail(h->s->b, TULLE_EFORMAT,
                       "%s: has values of type '%s', which are big endian; save them as "
                       "'<%s'", h->s->name, text, text + 1);
    return tl_fail(h->s->b, TULLE_EFORMAT,
                   "%s: has values of type '%s'; '<f4', '<f8', '<c8' and '<c16' can be read",
                   h->s->name, text);
}

static tulle_status take_order(header *h)
{
    if (take_word(h, "True")) h->by_cols = true;
    else if (!take_word(h, "False")) return wrong(h, "True or False");
    return TULLE_OK;
}

static tulle_status take_shape(header *h)
{
    if (!take(h, '(')) return wrong(h, "a shape such as (3, 4)");
    while (!take(h, ')')) {
        int64_t n = 0;
        blanks(h);
        const char *end = tl_parse_index(h->p, &n);
        if (!end) return wrong(h, "a size");
        h->p = end;
        if (h->dims == 2)
            return tl_fail(h->s->b, TULLE_EFORMAT, "%s: is an array of more than two dimensions", h->s->name);
        h->dim[h->dims++] = n;
        if (!take(h, ',') && *h->p != ')') return wrong(h, "',' or ')'");
    }
    if (h->dims == 0)
        return tl_fail(h->s->b, TULLE_EFORMAT, "%s: is a single number, not a matrix", h->s->name);
    if (h->dims == 1) h->dim[1] = 1;
    return TULLE_OK;
}

static tulle_status parse(header *h)
{
    static const struct { const char *key; tulle_status (*take)(header *); } keys[] = {
        {"descr", take_type}, {"fortran_order", take_order}, {"shape", take_shape}};
    tulle_status status = TULLE_OK;
    if (!take(h, '{')) return wrong(h, "'{'");
    while (!take(h, '}')) {
        char key[32];
        int i = 0;
        const char *at = h->p;
        if (!take_text(h, key, sizeof key)) return wrong(h, "a key in quotes");
        while (i < 3 && strcmp(key, keys[i].key) != 0) i++;
        if (i == 3 || h->have[i]) {
            h->p = at;
            return tl_fail(h->s->b, TULLE_EFORMAT, "%s: byte %td of the file: the key '%s' %s", h->s->name,
                           at - h->text + h->before, key, i == 3 ? "is not known" : "is there twice");
        }
        h->have[i] = true;
        if (!take(h, ':')) return wrong(h, "':'");
        TRY(keys[i].take(h));
        if (!take(h, ',') && *h->p != '}') return wrong(h, "',' or '}'");
    }
    blanks(h);
    if (*h->p) return wrong(h, "the end of the header");
    for (int i = 0; i < 3; i++)
        if (!h->have[i])
            return tl_fail(h->s->b, TULLE_EFORMAT, "%s: the header does not tell '%s'", h->s->name,
                           keys[i].key);
done:
    return status;
}

/* ---- reading */

/* Reads exactly this many bytes, or fails with a message that says where the file ended. */
static tulle_status fill(tl_source *s, void *to, int64_t bytes, int64_t at, const char *what)
{
    tulle_status status = TULLE_OK;
    int64_t got = 0;
    TRY(tl_source_read(s, to, bytes, &got));
    if (got < bytes)
        status = tl_fail(s->b, TULLE_EFORMAT, "%s: the file ends at byte %" PRId64 ", within %s: %" PRId64
                         " bytes are missing", s->name, at + got, what, bytes - got);
done:
    return status;
}

/* Refuses a shape that the file is too short for, before memory is allocated for it. */
static tulle_status plausible(tl_source *s, const header *h)
{
    uint64_t count = 0, bytes = 0;
    if (!tl_mul_fits((uint64_t)h->dim[0], (uint64_t)h->dim[1], &count)
        || !tl_mul_fits(count, tl_type_size(h->type), &bytes) || bytes > INT64_MAX)
        return tl_fail(s->b, TULLE_EFORMAT, "%s: an array of %" PRId64 " x %" PRId64 " cannot be addressed",
                       s->name, h->dim[0], h->dim[1]);
    int64_t bound = tl_source_bound(s);
    if ((int64_t)bytes > bound)
        return tl_fail(s->b, TULLE_EFORMAT,
                       "%s: promises %" PRId64 " x %" PRId64 " values, %" PRIu64 " bytes, but the "
                       "rest of the file has at most %" PRId64, s->name, h->dim[0], h->dim[1], bytes, bound);
    return TULLE_OK;
}

tulle_status tl_npy_read(tl_source *s, tulle_dense_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    unsigned char begin[12];
    char *text = NULL;
    tulle_dense_matrix *A = NULL;
    TRY(fill(s, begin, magic_bytes + 2, 0, "its first bytes"));
    int major = begin[6], before = major == 1 ? 10 : 12;
    if (major < 1 || major > 3) {
        status = tl_fail(b, TULLE_EFORMAT, "%s: is of version %d.%d; 1, 2 and 3 can be read", s->name, major,
                         begin[7]);
        goto done;
    }
    TRY(fill(s, begin + 8, before - 8, 8, "the length of its header"));
    uint32_t length = begin[8] | (uint32_t)begin[9] << 8;
    if (major > 1) length |= (uint32_t)begin[10] << 16 | (uint32_t)begin[11] << 24;
    if (length > HEADER_MOST) {
        status = tl_fail(b, TULLE_EFORMAT, "%s: a header of %" PRIu32 " bytes; at most %d are read", s->name,
                         length, (int)HEADER_MOST);
        goto done;
    }
    TRY(tl_calloc(b, &text, (int64_t)length + 1 + TL_TEXT_PAD, 1, "a header"));
    TRY(fill(s, text, length, before, "its header"));
    header h = {.s = s, .text = text, .p = text, .before = before};
    TRY(parse(&h));
    TRY(plausible(s, &h));
    TRY(tl_dense_create(b, h.dim[0], h.dim[1], h.by_cols ? TULLE_BY_COLS : TULLE_BY_ROWS, h.type, &A));
    int64_t bytes = (int64_t)tl_dense_bytes(&A->view), start = before + (int64_t)length;
    for (int64_t at = 0; at < bytes; at += CHUNK) {
        if (tl_progress(b, "read", (double)at / (double)bytes)) {
            status = tl_fail(b, TULLE_ECANCEL, "%s: reading was cancelled", s->name);
            goto done;
        }
        TRY(fill(s, (char *)A->view.values + at, bytes - at < CHUNK ? bytes - at : CHUNK, start + at,
                 "its values"));
    }
    int64_t more = 0;
    TRY(tl_source_read(s, (char *)begin, 1, &more));
    if (more > 0) {
        status = tl_fail(b, TULLE_EFORMAT, "%s: goes on behind its values, at byte %" PRId64, s->name,
                         start + bytes);
        goto done;
    }
    *out = A;
    A = NULL;
done:
    tl_dense_free(b, A);
    tl_free(b, text);
    return status;
}

/* ---- writing */

static int print_header(const tulle_dense *A, char *to, size_t room)
{
    const char *descr = "";
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == A->val_type) descr = types[i].descr;
    memcpy(to, magic, (size_t)magic_bytes);
    to[6] = 1;
    to[7] = 0;
    int n = 10 + snprintf(to + 10, room - 10,
                          "{'descr': '%s', 'fortran_order': %s, 'shape': (%" PRId64 ", %" PRId64
                          "), }", descr, A->order == TULLE_BY_COLS ? "True" : "False", A->rows, A->cols);
    while (n % 64 != 63) to[n++] = ' ';
    to[n++] = '\n';
    to[8] = (char)((n - 10) & 255);
    to[9] = (char)((n - 10) >> 8);
    return n;
}

/* Rows (columns) are collected in a buffer, so that short ones do not cost a system call each. */
static int put_lines(tl_out *o, const tulle_dense *A, char *buffer, int64_t at)
{
    size_t size = tl_type_size(A->val_type);
    bool by_cols = A->order == TULLE_BY_COLS;
    int64_t lines = by_cols ? A->cols : A->rows, length = (by_cols ? A->rows : A->cols) * (int64_t)size;
    int64_t used = 0;
    int error = 0;
    for (int64_t i = 0; i < lines && error == 0; i++) {
        const char *line = (const char *)A->values + (size_t)(i * A->ld) * size;
        if (tl_progress(o->b, "write", (double)i / (double)lines)) return 0;
        for (int64_t done = 0; done < length && error == 0;) {
            int64_t n = length - done < BUFFER - used ? length - done : BUFFER - used;
            memcpy(buffer + used, line + done, (size_t)n);
            done += n;
            used += n;
            if (used < BUFFER) continue;
            error = tl_out_put(o, buffer, used, at);
            at += used;
            used = 0;
        }
    }
    return error == 0 && used > 0 ? tl_out_put(o, buffer, used, at) : error;
}

/* A matrix without gaps is written as it is in memory. */
static int put_whole(tl_out *o, const tulle_dense *A, int64_t at)
{
    int64_t bytes = (int64_t)tl_dense_bytes(A);
    int error = 0;
    for (int64_t done = 0; done < bytes && error == 0; done += CHUNK) {
        if (tl_progress(o->b, "write", (double)done / (double)bytes)) return 0;
        error = tl_out_put(o, (const char *)A->values + done, bytes - done < CHUNK ? bytes - done : CHUNK,
                           at + done);
    }
    return error;
}

tulle_status tl_npy_write(tl_base *b, const char *path, const tulle_dense *A)
{
    tulle_status status = TULLE_OK;
    tl_out o = {.b = b, .fd = -1};
    char head[256], *buffer = NULL;
    bool whole = A->ld == (A->order == TULLE_BY_COLS ? A->rows : A->cols);
    if (!whole) TRY(tl_alloc(b, &buffer, BUFFER, 1, "a piece of a file"));
    TRY(tl_out_open(b, path, &o));
    int bytes = print_header(A, head, sizeof head), error = tl_out_put(&o, head, bytes, 0);
    if (error == 0 && A->rows > 0 && A->cols > 0)
        error = whole ? put_whole(&o, A, bytes) : put_lines(&o, A, buffer, bytes);
    if (error) TRY(tl_out_fail(&o, error));
    if (atomic_load(&b->cancelled)) TRY(tl_fail(b, TULLE_ECANCEL, "%s: writing was cancelled", path));
    TRY(tl_out_rename(&o));
done:
    tl_out_close(&o);
    tl_free(b, buffer);
    return status;
}
