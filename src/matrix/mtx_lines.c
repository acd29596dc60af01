/* SPDX-License-Identifier: MIT
 *
 * mtx_lines.c - parses whole lines of a Matrix Market file: the inner loop of reading.
 *
 * One body for every field and index width; the compiler specialises it for each (the arguments named const_
 * are constants at every call).  Blank lines and comments may be anywhere.  Every line ends with a newline,
 * the last one too, so that the loops need not test for the end of the text. */
#include "matrix/files.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the shortest entry, its newline included: "1 1\n", "1 1 1\n", "1 1 1 1\n", "1\n", "1 1\n". */
static const int shortest[2][4] = {
    [TL_COORDINATE] = {[TL_REAL] = 6, [TL_INTEGER] = 6, [TL_COMPLEX] = 8, [TL_PATTERN] = 4},
    [TL_ARRAY] = {[TL_REAL] = 2, [TL_INTEGER] = 2, [TL_COMPLEX] = 4, [TL_PATTERN] = 2},
};

int64_t tl_mtx_most(const tl_mtx_head *h, int64_t bytes)
{
    int least = shortest[h->layout][h->field];
    return bytes / least + (bytes % least == least - 1);        /* the last newline may be missing */
}

/* ---- error messages */

/* The word at p in quotes, or a description of what is there instead. */
static const char *found(const char *p, char *text, size_t room)
{
    char word[41];
    size_t n = 0;
    while (n < sizeof word - 1 && p[n] > ' ' && p[n] < 127) {
        word[n] = p[n];
        n++;
    }
    word[n] = 0;
    if (n > 0) snprintf(text, room, "\"%s\"%s", word, n == sizeof word - 1 ? "..." : "");
    else if (*p == '\n' || *p == '\r') snprintf(text, room, "the end of the line");
    else snprintf(text, room, "a byte 0x%02x", (unsigned)(unsigned char)*p);
    return text;
}

tulle_status tl_mtx_fail(tl_source *s, const tl_mtx_fault *f, int64_t lines_before)
{
    char word[64], sentence[256];
    switch (f->kind) {
    case TL_EXPECTED:
        snprintf(sentence, sizeof sentence, "%s was expected, found %s", f->what,
                 found(f->at, word, sizeof word));
        break;
    case TL_OUTSIDE:
        if (f->high > 0)
            snprintf(sentence, sizeof sentence, "%s %" PRId64 " is outside 1..%" PRId64, f->what,
                     f->number, f->high);
        else
            snprintf(sentence, sizeof sentence, "%s %" PRId64 ", but there are none", f->what, f->number);
        break;
    case TL_GOES_ON:
        snprintf(sentence, sizeof sentence, "the line goes on after the entry with %s",
                 found(f->at, word, sizeof word));
        break;
    case TL_TOO_MANY:
        snprintf(sentence, sizeof sentence, "one entry more than the %" PRId64 " that the file promises",
                 f->high);
        break;
    default: snprintf(sentence, sizeof sentence, "%s", f->what); break;
    }
    return tl_fail(s->b, TULLE_EFORMAT, "%s:%" PRId64 ":%td: %s", s->name, lines_before + 1,
                   f->at - f->line + 1, sentence);
}

/* ---- the loop */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *skip_blanks(const char *p)
{
    while (is_blank(*p)) p++;
    return p;
}

#define FAULT(kind_, at_, ...)                                              \
    do {                                                                    \
        part->fault = (tl_mtx_fault){.kind = kind_, .at = at_, .line = line, __VA_ARGS__}; \
        goto done;                                                          \
    } while (0)

/* Skips a line without an entry; NULL when there is an entry at *p. */
static inline const char *skip_line(const char *p, const char *end)
{
    if (*p == '\n') return p + 1;
    if (*p != '%') return NULL;
    return (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
}

/* Parses one value; returns NULL, or what was expected instead. */
TL_INLINE const char *take_value(const char **p, const bool const_whole, double *value)
{
    const char *end = tl_parse_double(*p, value);
    if (!end || !(is_blank(*end) || *end == '\n')) return const_whole ? "an integer" : "a number";
    if (const_whole) {
        for (const char *c = *p; c < end; c++)          /* digits only: no 1.5, 1e5, nan or inf */
            if ((unsigned)(*c - '0') > 9 && *c != '-' && *c != '+') return "an integer";
    }
    *p = end;
    return NULL;
}

/* What is wrong with an entry of the diagonal, or NULL. */
TL_INLINE const char *wrong_diagonal(const tl_mtx_head *h, double re, double im)
{
    if (h->symmetry == TL_SKEW && (re != 0 || im != 0))
        return "the diagonal of a skew-symmetric matrix must be zero";
    if (h->symmetry == TL_HERMITIAN && im != 0) return "the diagonal of a hermitian matrix must be real";
    return NULL;
}

TL_INLINE void put_index(void *array, const bool const_wide, int64_t at, int64_t index)
{
    if (const_wide) ((int64_t *)array)[at] = index;
    else ((int32_t *)array)[at] = (int32_t)index;
}

TL_INLINE void coordinate(const tl_mtx_head *h, const char *p, const char *end, int64_t limit,
                          tl_mtx_part *part, const bool const_wide, const tl_mtx_field const_field)
{
    void *row_idx = part->row, *col_idx = part->col;
    double *real = part->val;
    tl_c64 *comp = part->val;
    const uint64_t rows = (uint64_t)h->rows, cols = (uint64_t)h->cols;
    const bool strict = h->symmetry == TL_SKEW || h->symmetry == TL_HERMITIAN;
    int64_t count = 0, skipped = 0, diagonal = 0, last_row = -1, last_col = -1;
    bool by_row = true, by_col = true;
    const char *line = p, *missing;
    while (p < end) {
        int64_t i = 0, j = 0;
        double re = 0, im = 0;
        line = p;
        p = skip_blanks(p);
        const char *row_at = p, *next = tl_parse_index(p, &i);
        if (!next) {
            next = skip_line(p, end);
            if (!next) FAULT(TL_EXPECTED, p, .what = "a row index");
            p = next;
            skipped++;
            continue;
        }
        if (count == limit) FAULT(TL_TOO_MANY, p, .high = h->entries);
        if (!is_blank(*next)) FAULT(TL_EXPECTED, *next == '\n' ? next : p,
                                    .what = *next == '\n' ? "a column index" : "a row index");
        p = skip_blanks(next);
        const char *col_at = p;
        next = tl_parse_index(p, &j);
        if (!next || !(is_blank(*next) || *next == '\n')) FAULT(TL_EXPECTED, p, .what = "a column index");
        if ((uint64_t)i - 1 >= rows)
            FAULT(TL_OUTSIDE, row_at, .what = "row index", .number = i, .high = h->rows);
        if ((uint64_t)j - 1 >= cols)
            FAULT(TL_OUTSIDE, col_at, .what = "column index", .number = j, .high = h->cols);
        p = skip_blanks(next);
        if (const_field != TL_PATTERN) {
            missing = take_value(&p, const_field == TL_INTEGER, &re);
            if (missing) FAULT(TL_EXPECTED, p, .what = missing);
            if (const_field == TL_COMPLEX) {
                p = skip_blanks(p);
                missing = take_value(&p, false, &im);
                if (missing) FAULT(TL_EXPECTED, p, .what = "an imaginary part");
            }
            p = skip_blanks(p);
        }
        if (*p != '\n') FAULT(TL_GOES_ON, p, .number = 0);
        i--;
        j--;
        if (i == j) {
            diagonal++;
            missing = strict ? wrong_diagonal(h, re, im) : NULL;
            if (missing) FAULT(TL_WRONG, row_at, .what = missing);
        }
        p++;
        by_row &= i > last_row || (i == last_row && j > last_col);
        by_col &= j > last_col || (j == last_col && i > last_row);
        if (count == 0) {
            part->first_row = i;
            part->first_col = j;
        }
        last_row = i;
        last_col = j;
        put_index(row_idx, const_wide, count, i);
        put_index(col_idx, const_wide, count, j);
        if (const_field == TL_COMPLEX) comp[count] = (tl_c64){re, im};
        else if (const_field != TL_PATTERN) real[count] = re;
        count++;
    }
done:
    part->count = count;
    part->lines = count + skipped;
    part->diagonal = diagonal;
    part->by_row = by_row;
    part->by_col = by_col;
    part->last_row = last_row;
    part->last_col = last_col;
}

TL_INLINE void array(const tl_mtx_head *h, const char *p, const char *end, int64_t limit,
                     tl_mtx_part *part, const tl_mtx_field const_field)
{
    double *real = part->val;
    tl_c64 *comp = part->val;
    int64_t count = 0, skipped = 0;
    const char *line = p, *missing;
    while (p < end) {
        double re = 0, im = 0;
        line = p;
        p = skip_blanks(p);
        const char *next = skip_line(p, end);
        if (next) {
            p = next;
            skipped++;
            continue;
        }
        const char *at = p;
        missing = take_value(&p, const_field == TL_INTEGER, &re);
        if (missing) FAULT(TL_EXPECTED, p, .what = missing);
        if (const_field == TL_COMPLEX) {
            p = skip_blanks(p);
            missing = take_value(&p, false, &im);
            if (missing) FAULT(TL_EXPECTED, p, .what = "an imaginary part");
        }
        p = skip_blanks(p);
        if (*p != '\n') FAULT(TL_GOES_ON, p, .number = 0);
        if (count == limit) FAULT(TL_TOO_MANY, at, .high = h->entries);
        p++;
        if (const_field == TL_COMPLEX) comp[count] = (tl_c64){re, im};
        else real[count] = re;
        count++;
    }
done:
    part->count = count;
    part->lines = count + skipped;
}

void tl_mtx_lines(const tl_mtx_head *h, tulle_index idx_type, const char *text, int64_t bytes,
                  int64_t limit, tl_mtx_part *part)
{
    const char *end = text + bytes;
    part->fault = (tl_mtx_fault){.kind = TL_NO_FAULT};
    part->diagonal = 0;
    part->by_row = part->by_col = true;
    if (h->layout == TL_ARRAY) {
        if (h->field == TL_COMPLEX) array(h, text, end, limit, part, TL_COMPLEX);
        else if (h->field == TL_INTEGER) array(h, text, end, limit, part, TL_INTEGER);
        else array(h, text, end, limit, part, TL_REAL);
        return;
    }
    switch (h->field * 2 + (idx_type == TULLE_I64)) {
    case TL_REAL * 2:        coordinate(h, text, end, limit, part, false, TL_REAL); break;
    case TL_REAL * 2 + 1:    coordinate(h, text, end, limit, part, true, TL_REAL); break;
    case TL_INTEGER * 2:     coordinate(h, text, end, limit, part, false, TL_INTEGER); break;
    case TL_INTEGER * 2 + 1: coordinate(h, text, end, limit, part, true, TL_INTEGER); break;
    case TL_COMPLEX * 2:     coordinate(h, text, end, limit, part, false, TL_COMPLEX); break;
    case TL_COMPLEX * 2 + 1: coordinate(h, text, end, limit, part, true, TL_COMPLEX); break;
    case TL_PATTERN * 2:     coordinate(h, text, end, limit, part, false, TL_PATTERN); break;
    default:                 coordinate(h, text, end, limit, part, true, TL_PATTERN); break;
    }
}
