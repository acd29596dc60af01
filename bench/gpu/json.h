/* SPDX-License-Identifier: MIT
 *
 * json.h - a JSON text as a tree, and a tree as text: as much as records need.  A value is a link of its
 * parent's list; numbers and words (true, null) are kept as they were written. */
#ifndef TULLE_BENCH_JSON_H
#define TULLE_BENCH_JSON_H
#include <stdbool.h>
#include <stdio.h>

typedef struct json {
    char         kind;          /* '{', '[', '"' text, '0' number, 'w' word */
    char        *key, *text;    /* text: escapes as they were written       */
    struct json *first, *last, *next;
} json;

/* One value from the text; NULL and the place in *wrong where it is none.  Spaces around it are skipped;
 * *end, where not NULL, is what follows, else nothing may follow. */
json       *json_parse(const char *text, const char **end, const char **wrong);
json       *json_new(char kind, const char *key, const char *text);
void        json_add(json *parent, json *child);                /* the parent owns it */
void        json_free(json *value);
json       *json_get(const json *object, const char *key);      /* NULL: not there    */
const char *json_word(const json *object, const char *key);     /* its text, or ""    */
double      json_number(const json *object, const char *key);   /* or 0               */
/* Objects `flat` levels down and below stand on one line. */
void        json_print(FILE *out, const json *value, int depth, int flat);
/* The whole of a file, or of `in`; NULL: it cannot be read. */
char       *json_slurp(FILE *in);

#endif
