/* SPDX-License-Identifier: MIT
 *
 * lines.h - small text files of what was measured: a first line that names format and version, lines of words
 * separated by single spaces, and a checksum of all lines before it:
 *
 *     tulle delta tree 1
 *     device NVIDIA H200                the rest of this line is one word
 *     train 24 23 1.01
 *     ...
 *     sum 1f6a0c...
 *
 * Readers say what they expect, line by line; every failure names the file and the line. */
#ifndef TL_LINES_H
#define TL_LINES_H
#include "base/base.h"

enum { TL_LINES_BYTES = 16384, TL_LINES_WORDS = 8, TL_LINES_WORD = 128 };

/* ---- writing */

typedef struct tl_page {
    char   text[TL_LINES_BYTES];
    size_t used;
} tl_page;

/* What does not fit is left out: no file comes near that size. */
void         tl_page_text(tl_page *p, const char *text);
/* The number after a space; of a double the shortest decimals that read back exactly. */
void         tl_page_int(tl_page *p, int64_t value);
void         tl_page_double(tl_page *p, double value);
/* A name for a line "device": printable ASCII, cut to a word; "unknown" where there is none. */
void         tl_page_device(tl_page *p, const char *name);
/* Adds the checksum and writes the file, which appears only when it is complete. */
tulle_status tl_page_write(tl_base *b, const char *path, tl_page *p);

/* ---- reading */

typedef struct tl_lines {
    tl_base    *b;
    const char *path, *by;              /* by: the command that writes such files           */
    char       *text;
    const char *at, *end;               /* current position and end of the text             */
    int         line, words;
    char        word[TL_LINES_WORDS][TL_LINES_WORD];
} tl_lines;

/* Opens a file and checks its first line; `what` is it ("decision tree"). */
tulle_status tl_lines_open(tl_base *b, const char *path, const char *first, const char *what, const char *by,
                           tl_lines *r);
void         tl_lines_close(tl_lines *r);       /* also after a failure */
tulle_status tl_lines_wrong(tl_lines *r, const char *what);
/* Splits the next line into words: the first one is `expected`, and there are so many. */
tulle_status tl_lines_next(tl_lines *r, const char *expected, int words);
bool         tl_lines_begins(const tl_lines *r, const char *text);       /* the next line */
bool         tl_lines_int(const tl_lines *r, int word, int64_t least, int64_t most, int *value);
bool         tl_lines_double(const tl_lines *r, int word, double *value);
/* The last line: the checksum. */
tulle_status tl_lines_end(tl_lines *r);

#endif
