/* SPDX-License-Identifier: MIT
 * json.c - reads and writes the JSON of records; strict about what it reads. */
#include "json.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

static char *copy_of(const char *text, size_t n)
{
    char *copy = need(malloc(n + 1));
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

json *json_new(char kind, const char *key, const char *text)
{
    json *v = need(calloc(1, sizeof *v));
    v->kind = kind;
    if (key) v->key = copy_of(key, strlen(key));
    if (text) v->text = copy_of(text, strlen(text));
    return v;
}

void json_add(json *parent, json *child)
{
    child->next = NULL;
    if (parent->last) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
}

void json_free(json *value)
{
    if (!value) return;
    for (json *c = value->first, *next; c; c = next) {
        next = c->next;
        json_free(c);
    }
    free(value->key);
    free(value->text);
    free(value);
}

json *json_get(const json *object, const char *key)
{
    for (json *c = object ? object->first : NULL; c; c = c->next)
        if (c->key && strcmp(c->key, key) == 0) return c;
    return NULL;
}

const char *json_word(const json *object, const char *key)
{
    const json *v = json_get(object, key);
    return v && v->text ? v->text : "";
}

double json_number(const json *object, const char *key)
{
    const json *v = json_get(object, key);
    return v && v->kind == '0' ? strtod(v->text, NULL) : 0;
}

/* ---- parsing; p advances, and stops at an error */

static void skip(const char **p)
{
    while (**p == ' ' || **p == '\n' || **p == '\t' || **p == '\r') ++*p;
}

/* p is after the opening quote; escape sequences are kept. */
static char *string(const char **p)
{
    const char *from = *p;
    for (; **p != '"'; ++*p) {
        if ((unsigned char)**p < 0x20) return NULL;
        if (**p != '\\') continue;
        ++*p;
        if (!**p || !strchr("\"\\/bfnrtu", **p)) return NULL;
        if (**p != 'u') continue;
        for (int i = 0; i < 4; i++)
            if (!isxdigit((unsigned char)*++*p)) return NULL;
    }
    return copy_of(from, (size_t)((*p)++ - from));
}

static bool digits(const char **p)
{
    if (!isdigit((unsigned char)**p)) return false;
    while (isdigit((unsigned char)**p)) ++*p;
    return true;
}

static json *number(const char **p)
{
    const char *from = *p;
    if (**p == '-') ++*p;
    bool zero = **p == '0';
    if (!digits(p) || (zero && isdigit((unsigned char)from[*from == '-' ? 2 : 1]))) return NULL;
    if (**p == '.' && (++*p, !digits(p))) return NULL;
    if (**p == 'e' || **p == 'E') {
        ++*p;
        if (**p == '+' || **p == '-') ++*p;
        if (!digits(p)) return NULL;
    }
    json *v = json_new('0', NULL, NULL);
    v->text = copy_of(from, (size_t)(*p - from));
    return v;
}

static json *value_at(const char **p, int depth);

static bool members(const char **p, json *parent, int depth)
{
    char closing = parent->kind == '{' ? '}' : ']';
    skip(p);
    if (**p == closing) return ++*p, true;
    for (;;) {
        char *key = NULL;
        skip(p);
        if (parent->kind == '{') {
            if (**p != '"') return false;
            ++*p;
            key = string(p);
            if (!key) return false;
            skip(p);
            if (**p != ':' || json_get(parent, key)) return free(key), false;
            ++*p;
        }
        json *child = value_at(p, depth);
        if (!child) return free(key), false;
        child->key = key;
        json_add(parent, child);
        skip(p);
        if (**p == closing) return ++*p, true;
        if (**p != ',') return false;
        ++*p;
    }
}

static json *value_at(const char **p, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    skip(p);
    if ((**p == '{' || **p == '[') && depth < 32) {
        json *v = json_new(*(*p)++, NULL, NULL);
        if (members(p, v, depth + 1)) return v;
        json_free(v);
        return NULL;
    }
    if (**p == '"') {
        ++*p;
        char *text = string(p);
        if (!text) return NULL;
        json *v = json_new('"', NULL, NULL);
        v->text = text;
        return v;
    }
    for (int i = 0; i < 3; i++)
        if (strncmp(*p, words[i], strlen(words[i])) == 0)
            return *p += strlen(words[i]), json_new('w', NULL, words[i]);
    return number(p);
}

json *json_parse(const char *text, const char **end, const char **wrong)
{
    const char *p = text;
    json *v = value_at(&p, 0);
    if (v) skip(&p);
    if (v && !end && *p) {
        json_free(v);
        v = NULL;
    }
    if (end) *end = p;
    if (wrong) *wrong = v ? NULL : p;
    return v;
}

/* ---- writing */

void json_print(FILE *out, const json *value, int depth, int flat)
{
    if (value->key) fprintf(out, "\"%s\": ", value->key);
    if (value->kind == '"') fprintf(out, "\"%s\"", value->text);
    if (value->kind == '0' || value->kind == 'w') fputs(value->text, out);
    if (value->kind != '{' && value->kind != '[') return;
    bool one_line = depth >= flat || !value->first;
    fputc(value->kind, out);
    for (const json *c = value->first; c; c = c->next) {
        if (one_line) fputs(c == value->first ? "" : " ", out);
        else fprintf(out, "\n%*s", 2 * depth + 2, "");
        json_print(out, c, depth + 1, flat);
        if (c->next) fputc(',', out);
    }
    if (!one_line) fprintf(out, "\n%*s", 2 * depth, "");
    fputc(value->kind == '{' ? '}' : ']', out);
}

char *json_slurp(FILE *in)
{
    size_t room = 1 << 16, used = 0;
    char *text = need(malloc(room));
    if (!in) return free(text), NULL;
    for (size_t n; (n = fread(text + used, 1, room - used - 1, in)) > 0;) {
        used += n;
        if (room - used < 2) text = need(realloc(text, room *= 2));
    }
    text[used] = 0;
    return ferror(in) ? (free(text), NULL) : text;
}
