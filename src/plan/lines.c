/* SPDX-License-Identifier: MIT
 * lines.c - writes and reads text files of lines with a checksum (lines.h). */
#include "plan/lines.h"
#include "matrix/files.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The hash takes multiples of 64 bytes, so zeros are added. */
static void print_sum(char *line, size_t bytes, const char *text, size_t used)
{
    char block[TL_LINES_BYTES] = {0};
    memcpy(block, text, used);
    snprintf(line, bytes, "%016" PRIx64, tl_hash(block, (int64_t)((used + 63) / 64 * 64), used));
}

/* ---- writing */

void tl_page_text(tl_page *p, const char *text)
{
    size_t bytes = strlen(text);
    if (p->used + bytes >= sizeof p->text) return;
    memcpy(p->text + p->used, text, bytes);
    p->used += bytes;
}

void tl_page_int(tl_page *p, int64_t value)
{
    char word[24];
    snprintf(word, sizeof word, " %" PRId64, value);
    tl_page_text(p, word);
}

void tl_page_double(tl_page *p, double value)
{
    char word[TL_NUMBER_MAX + 2] = " ";
    word[1 + tl_print_double(word + 1, value)] = 0;
    tl_page_text(p, word);
}

void tl_page_device(tl_page *p, const char *name)
{
    char word[TL_LINES_WORD] = "unknown";
    for (size_t i = 0; name && name[0] && i < sizeof word - 1 && (i == 0 || name[i - 1]); i++)
        word[i] = name[i] && (name[i] < ' ' || name[i] > '~') ? ' ' : name[i];
    word[sizeof word - 1] = 0;
    tl_page_text(p, "device ");
    tl_page_text(p, word);
    tl_page_text(p, "\n");
}

tulle_status tl_page_write(tl_base *b, const char *path, tl_page *p)
{
    char sum[32];
    print_sum(sum, sizeof sum, p->text, p->used);
    tl_page_text(p, "sum ");
    tl_page_text(p, sum);
    tl_page_text(p, "\n");
    return tl_write_bytes(b, path, p->text, p->used);
}

/* ---- reading */

tulle_status tl_lines_wrong(tl_lines *r, const char *what)
{
    return tl_fail(r->b, TULLE_EFORMAT, "%s, line %d: %s; \"%s\" writes such files", r->path, r->line, what,
                   r->by);
}

tulle_status tl_lines_open(tl_base *b, const char *path, const char *first, const char *what, const char *by,
                           tl_lines *r)
{
    tulle_status status = TULLE_OK;
    const size_t head = strlen(first);
    tl_source source;
    char said[96];
    bool opened = false;
    int64_t got = 0;
    *r = (tl_lines){.b = b, .path = path, .by = by, .line = 1};
    TRY(tl_source_open(b, path, &source));
    opened = true;
    TRY(tl_calloc(b, &r->text, TL_LINES_BYTES + 1, 1, "the text of a file"));
    TRY(tl_source_read(&source, r->text, TL_LINES_BYTES, &got));
    r->at = r->text;
    r->end = r->text + got;
    snprintf(said, sizeof said, got == TL_LINES_BYTES ? "the file is longer than any %s"
                                                      : "this is no %s of this version", what);
    if (got == TL_LINES_BYTES || !tl_lines_begins(r, first) || r->at[head] != '\n')
        TRY(tl_lines_wrong(r, said));
    r->at += head + 1;
done:
    if (opened) tl_source_close(&source);
    return status;
}

void tl_lines_close(tl_lines *r)
{
    if (r->b) tl_free(r->b, r->text);
    r->text = NULL;
}

tulle_status tl_lines_next(tl_lines *r, const char *expected, int words)
{
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    char what[160];
    r->line++;
    r->words = 0;
    snprintf(what, sizeof what, "a line \"%.80s ...\" of %d words is expected", expected, words);
    if (!stop) return tl_lines_wrong(r, what);
    while (r->at < stop) {
        const char *space = memchr(r->at, ' ', (size_t)(stop - r->at)), *last = space ? space : stop;
        if (r->words == 1 && strcmp(r->word[0], "device") == 0) last = stop;
        size_t bytes = (size_t)(last - r->at);
        if (r->words == TL_LINES_WORDS || bytes == 0 || bytes >= sizeof *r->word || memchr(r->at, 0, bytes))
            return tl_lines_wrong(r, what);
        memcpy(r->word[r->words], r->at, bytes);
        r->word[r->words++][bytes] = 0;
        r->at = last < stop ? last + 1 : stop;
    }
    r->at = stop + 1;
    return r->words == words && strcmp(r->word[0], expected) == 0 ? TULLE_OK : tl_lines_wrong(r, what);
}

bool tl_lines_begins(const tl_lines *r, const char *text)
{
    const size_t bytes = strlen(text);
    return (size_t)(r->end - r->at) > bytes && memcmp(r->at, text, bytes) == 0;
}

bool tl_lines_int(const tl_lines *r, int word, int64_t least, int64_t most, int *value)
{
    char text[TL_LINES_WORD + TL_TEXT_PAD] = {0};
    int64_t n;
    memcpy(text, r->word[word], strlen(r->word[word]));
    const char *end = tl_parse_index(text, &n);
    if (!end || *end || n < least || n > most) return false;
    *value = (int)n;
    return true;
}

bool tl_lines_double(const tl_lines *r, int word, double *value)
{
    char text[TL_LINES_WORD + TL_TEXT_PAD] = {0};
    memcpy(text, r->word[word], strlen(r->word[word]));
    const char *end = tl_parse_double(text, value);
    return end && !*end && isfinite(*value);
}

tulle_status tl_lines_end(tl_lines *r)
{
    tulle_status status = TULLE_OK;
    char sum[32];
    print_sum(sum, sizeof sum, r->text, (size_t)(r->at - r->text));
    TRY(tl_lines_next(r, "sum", 2));
    if (strcmp(r->word[1], sum) != 0)
        TRY(tl_lines_wrong(r, "the checksum is another one: the file was changed"));
    if (r->at != r->end) TRY(tl_lines_wrong(r, "the file goes on behind its end"));
done:
    return status;
}
