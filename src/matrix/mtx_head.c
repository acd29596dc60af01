/* SPDX-License-Identifier: MIT
 *
 * mtx_head.c - the first lines of a Matrix Market file: the banner, comments, the sizes.
 *
 *     %%MatrixMarket matrix coordinate real symmetric
 *     % a comment
 *     4 4 6
 *
 * Words may be in any case.  "double" counts as real and "unsigned-integer" as integer, which some
 * programs write. */
#include "matrix/files.h"
#include <string.h>

typedef struct { const char *word; int value; } choice;

static const choice layouts[] = {{"coordinate", TL_COORDINATE}, {"array", TL_ARRAY}, {NULL, 0}};
static const choice fields[] = {{"real", TL_REAL},       {"double", TL_REAL},
                                {"integer", TL_INTEGER}, {"unsigned-integer", TL_INTEGER},
                                {"complex", TL_COMPLEX}, {"pattern", TL_PATTERN}, {NULL, 0}};
static const choice symmetries[] = {{"general", TL_GENERAL},     {"symmetric", TL_SYMMETRIC},
                                    {"skew-symmetric", TL_SKEW}, {"hermitian", TL_HERMITIAN}, {NULL, 0}};
static const choice objects[] = {{"matrix", 0}, {NULL, 0}};

static const int64_t most_rows = INT64_MAX / 16;        /* the limit of a view (check.c) */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool same_word(const char *p, int64_t length, const char *word)
{
    if ((int64_t)strlen(word) != length) return false;
    for (int64_t i = 0; i < length; i++) {
        char c = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 32) : p[i];
        if (c != word[i]) return false;
    }
    return true;
}

static const char *const banner = "%%matrixmarket";

bool tl_mtx_begins(const char *head, int64_t bytes)
{
    int64_t n = (int64_t)strlen(banner);
    return bytes >= n && same_word(head, n, banner);
}

/* Words of one line, which ends with a newline. */
typedef struct { const char *line, *word; int64_t length; } words;

static void next_word(words *w)
{
    const char *p = w->word + w->length;
    while (is_blank(*p)) p++;
    w->word = p;
    while (!is_blank(*p) && *p != '\n') p++;
    w->length = p - w->word;
}

static tulle_status wrong(tl_source *s, const tl_mtx_head *h, const words *w, const char *what)
{
    tl_mtx_fault fault = {.kind = TL_EXPECTED, .at = w->word, .line = w->line, .what = what};
    return tl_mtx_fail(s, &fault, h->lines);
}

static tulle_status remark(tl_source *s, const tl_mtx_head *h, const words *w, const char *what)
{
    tl_mtx_fault fault = {.kind = TL_WRONG, .at = w->word, .line = w->line, .what = what};
    return tl_mtx_fail(s, &fault, h->lines);
}

static tulle_status choose(tl_source *s, const tl_mtx_head *h, words *w, const choice *list,
                           const char *what, int *value)
{
    next_word(w);
    for (; list->word; list++) {
        if (!same_word(w->word, w->length, list->word)) continue;
        *value = list->value;
        return TULLE_OK;
    }
    return wrong(s, h, w, what);
}

static tulle_status read_banner(tl_source *s, const char *line, tl_mtx_head *h)
{
    tulle_status status = TULLE_OK;
    words w = {line, line, 0};
    int object = 0, layout = 0, field = 0, symmetry = 0;
    next_word(&w);
    if (!same_word(w.word, w.length, banner)) {
        status = wrong(s, h, &w, "%%MatrixMarket");
        goto done;
    }
    TRY(choose(s, h, &w, objects, "\"matrix\"", &object));
    TRY(choose(s, h, &w, layouts, "\"coordinate\" or \"array\"", &layout));
    TRY(choose(s, h, &w, fields, "\"real\", \"integer\", \"complex\" or \"pattern\"", &field));
    if (layout == TL_ARRAY && field == TL_PATTERN) {
        status = remark(s, h, &w, "a pattern cannot be stored as an array");
        goto done;
    }
    TRY(choose(s, h, &w, symmetries,
               "\"general\", \"symmetric\", \"skew-symmetric\" or \"hermitian\"", &symmetry));
    if (symmetry == TL_HERMITIAN && field != TL_COMPLEX) {
        status = remark(s, h, &w, "only a complex matrix can be hermitian");
        goto done;
    }
    if (symmetry == TL_SKEW && field == TL_PATTERN) {
        status = remark(s, h, &w, "a pattern cannot be skew-symmetric");
        goto done;
    }
    h->layout = (tl_mtx_layout)layout;
    h->field = (tl_mtx_field)field;
    h->symmetry = (tl_mtx_symmetry)symmetry;
    next_word(&w);
    if (w.length > 0) status = wrong(s, h, &w, "the end of the line");
done:
    return status;
}

static tulle_status read_size(tl_source *s, const tl_mtx_head *h, words *w, const char *what, int64_t most,
                              int64_t *value)
{
    next_word(w);
    const char *end = tl_parse_index(w->word, value);
    if (end != w->word + w->length) return wrong(s, h, w, what);
    if (*value > most) return remark(s, h, w, "this is more than 2^59, and no matrix has so many");
    return TULLE_OK;
}

/* The number of values of an array file; false: it overflows. */
static bool array_entries(tl_mtx_head *h)
{
    uint64_t n = (uint64_t)h->rows, product = 0;
    bool fits = h->symmetry == TL_GENERAL ? tl_mul_fits(n, (uint64_t)h->cols, &product)
              : h->symmetry == TL_SKEW    ? n == 0 || tl_mul_fits(n, n - 1, &product)
                                          : tl_mul_fits(n, n + 1, &product);
    h->entries = (int64_t)(h->symmetry == TL_GENERAL ? product : product / 2);
    return fits && product <= INT64_MAX;
}

static tulle_status read_sizes(tl_source *s, const char *line, tl_mtx_head *h)
{
    tulle_status status = TULLE_OK;
    words w = {line, line, 0};
    TRY(read_size(s, h, &w, "the number of rows", most_rows, &h->rows));
    TRY(read_size(s, h, &w, "the number of columns", INT64_MAX, &h->cols));
    if (h->symmetry != TL_GENERAL && h->rows != h->cols) {
        status = remark(s, h, &w, "a symmetric, skew-symmetric or hermitian matrix must be square");
        goto done;
    }
    if (h->layout == TL_COORDINATE) {
        TRY(read_size(s, h, &w, "the number of entries", INT64_MAX, &h->entries));
    } else if (!array_entries(h)) {
        status = remark(s, h, &w, "an array of this size cannot be addressed");
        goto done;
    }
    next_word(&w);
    if (w.length > 0) status = wrong(s, h, &w, "the end of the line");
done:
    return status;
}

tulle_status tl_mtx_head_lines(tl_source *s, const char *text, int64_t bytes, tl_mtx_head *h,
                               int64_t *used)
{
    tulle_status status = TULLE_OK;
    const char *p = text, *end = text + bytes;
    while (p < end && !h->have_sizes) {
        const char *line = p, *first = p;
        p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
        while (is_blank(*first)) first++;
        if (!h->have_banner) {
            TRY(read_banner(s, line, h));
            h->have_banner = true;
        } else if (*first != '%' && *first != '\n') {
            TRY(read_sizes(s, line, h));
            h->have_sizes = true;
        }
        h->lines++;
    }
done:
    *used = p - text;
    return status;
}
