/* SPDX-License-Identifier: MIT
 *
 * json.h - parses and writes JSON, as far as records need it.  The values of an object or array are a linked
 * list; numbers and words (true, null) are kept as text. */
#ifndef TULLE_BENCH_JSON_H
#define TULLE_BENCH_JSON_H
#include <stdbool.h>
#include <stdio.h>

typedef struct json {
    char         kind;          /* '{', '[', '"' text, '0' number, 'w' word */
    char        *key, *text;    /* text: escapes as they were written       */
    struct json *first, *last, *next;
} json;

/* Parses one value; returns NULL if it is invalid, with the position in *wrong.  Spaces around it are
 * skipped.  *end receives the rest of the text; if end is NULL there must be none. */
json       *json_parse(const char *text, const char **end, const char **wrong);
json       *json_new(char kind, const char *key, const char *text);
void        json_add(json *parent, json *child);                /* the parent owns it */
void        json_free(json *value);
json       *json_get(const json *object, const char *key);      /* NULL: not there    */
const char *json_word(const json *object, const char *key);     /* its text, or ""    */
double      json_number(const json *object, const char *key);   /* or 0               */
/* Objects at depth `flat` and below are written on one line. */
void        json_print(FILE *out, const json *value, int depth, int flat);
/* Reads a whole file, or all of `in`; NULL: it cannot be read. */
char       *json_slurp(FILE *in);

#endif
