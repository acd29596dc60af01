/* SPDX-License-Identifier: MIT
 *
 * record.c - assembles docs/records/<device>.json from pieces.
 *
 *     record write FILE < PIECES      writes a temporary file and renames it to FILE
 *     record check FILE HASH          checks that FILE is complete, everything passed, and its sources have
 *                                     this hash
 *     record passed FILE HASH         prints "DRIVER PROGRAM" for each test that passed with these sources
 *
 * A piece is one JSON object; its "section" is its kind:
 *
 *     {"section": "record", "device": ..., "driver": ..., "date": ..., "gpu_sources_sha256": ...}, once
 *     {"section": "test", "driver": "cuda", "program": ..., "passed": 20, "failed": 0}
 *     {"section": "sanitizer", "tool": "memcheck", "result": "clean", ...}
 *     {"section": "measure", "name": ..., ...}
 *     {"section": "product", "driver": ..., "matrix": ..., "operation": ..., "policy": ..., "type": ..., ...}
 *     {"section": "spmm", "driver": ..., "matrix": ..., "columns": 32, "policy": ..., "type": ..., ...}
 *     {"section": "host", "driver": ..., "matrix": ..., "operation": ..., "type": ..., "ms": ..., ...}
 *     {"section": "scaling", "device": ..., "matrix": ..., "parts": 2, "speedup": ..., ...}
 *     {"command": "bench scaling", ...}: what `tulle bench scaling --json` prints, a piece for each line
 *
 * If FILE exists and has the same hash, results that this run did not measure are kept from it; products and
 * SpMM are identified by five fields, tests by driver and program.  From a record of other
 * sources, results of tests and sanitizers are not kept, but times are: these get "of_sources", the hash of
 * the sources they were measured with, and "of_date", the date. */
#include <stdlib.h>
#include <string.h>
#include "json.h"

static const char *const product_names[] = {"driver", "matrix", "operation", "policy", "type", NULL};
static const char *const host_names[] = {"driver", "matrix", "operation", "type", NULL};
static const char *const scaling_names[] = {"device", "matrix", "parts", NULL};
static const char *const spmm_names[] = {"driver", "matrix", "columns", "policy", "type", NULL};
#define LEFT_OUT "tests left out"       /* by gpu_check.sh, to save time: the result is not a full record */
static const char *const test_names[] = {"driver", "program", NULL};
static const char *const one_name[] = {"driver", "name", "tool", "device", NULL};

static int stop(const char *what, const char *which)
{
    fprintf(stderr, "record: %s%s%s\n", which ? which : "", which ? ": " : "", what);
    return 1;
}

static bool same(const json *x, const json *y, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(json_word(x, *names), json_word(y, *names)) != 0) return false;
    return true;
}

static void remove_key(json *object, const char *key)
{
    json *old = object->first;
    object->first = object->last = NULL;
    for (json *next; old; old = next) {
        next = old->next;
        if (strcmp(old->key, key) == 0) json_free(old);
        else json_add(object, old);
    }
}

static json *list(json *record, const char *key)
{
    json *all = json_get(record, key);
    if (!all) json_add(record, all = json_new('[', key, NULL));
    return all;
}

/* Adds a piece; it replaces an earlier one with the same fields. */
static void put(json *all, json *piece, const char *const *names)
{
    json *old = all->first;
    all->first = all->last = NULL;
    for (json *next; old; old = next) {
        next = old->next;
        if (same(old, piece, names)) json_free(old);
        else json_add(all, old);
    }
    json_add(all, piece);
}

/* Adds the lines of a document of `tulle bench scaling --json`. */
static void put_scaling(json *record, json *document)
{
    json *lines = json_get(document, "scaling"), *l = lines ? lines->first : NULL;
    if (lines) lines->first = lines->last = NULL;
    for (json *next; l; l = next) {
        next = l->next;
        json_add(l, json_new('"', "device", json_word(document, "device")));
        put(list(record, "scaling"), l, scaling_names);
    }
    json_free(document);
}

static void keep_others(json *record, json *old, const char *key, const char *const *names)
{
    json *from = json_get(old, key), *to = list(record, key), *mine = to->first;
    to->first = to->last = NULL;
    for (json *o = from ? from->first : NULL, *next; o; o = next) {     /* the old ones come first */
        bool measured = false;
        next = o->next;
        for (const json *m = mine; m; m = m->next) measured = measured || same(o, m, names);
        if (measured) json_free(o);
        else json_add(to, o);
    }
    if (from) from->first = from->last = NULL;
    for (json *m = mine, *next; m; m = next) {
        next = m->next;
        json_add(to, m);
    }
}

/* Marks times of other sources with their hash and date, unless they already have those of older sources. */
static void mark_old(json *old, const char *key)
{
    json *all = json_get(old, key);
    for (json *o = all ? all->first : NULL; o; o = o->next) {
        if (json_get(o, "of_sources")) continue;
        json_add(o, json_new('"', "of_sources", json_word(old, "gpu_sources_sha256")));
        json_add(o, json_new('"', "of_date", json_word(old, "date")));
    }
}

static int write_record(const char *path)
{
    char *text = json_slurp(stdin), beside[4096];
    const char *p = text, *wrong = NULL;
    json *record = NULL;
    if (!text) return stop("the pieces cannot be read", NULL);
    while (*p) {
        const char *from = p;
        json *piece = json_parse(p, &p, &wrong);
        if (!piece || piece->kind != '{') {
            fprintf(stderr, "record: no JSON object: %.60s\n", from);
            return 1;
        }
        char section[32];
        snprintf(section, sizeof section, "%s", json_word(piece, "section"));
        if (record && strcmp(json_word(piece, "command"), "bench scaling") == 0) {
            put_scaling(record, piece);
            continue;
        }
        remove_key(piece, "section");
        if (strcmp(section, "record") == 0 && !record) record = piece;
        else if (!record) return stop("the first piece must be the section \"record\"", NULL);
        else if (strcmp(section, "test") == 0) put(list(record, "tests"), piece, test_names);
        else if (strcmp(section, "sanitizer") == 0) put(list(record, "sanitizers"), piece, one_name);
        else if (strcmp(section, "measure") == 0) put(list(record, "measures"), piece, one_name);
        else if (strcmp(section, "product") == 0) put(list(record, "products"), piece, product_names);
        else if (strcmp(section, "spmm") == 0) put(list(record, "spmm"), piece, spmm_names);
        else if (strcmp(section, "host") == 0) put(list(record, "host"), piece, host_names);
        else if (strcmp(section, "scaling") == 0) put(list(record, "scaling"), piece, scaling_names);
        else return stop("there is no such section", section);
    }
    free(text);
    if (!record) return stop("there are no pieces", NULL);

    FILE *in = fopen(path, "r");
    text = in ? json_slurp(in) : NULL;
    json *old = text ? json_parse(text, NULL, NULL) : NULL;
    if (in) fclose(in);
    free(text);
    bool kept = old && strcmp(json_word(old, "gpu_sources_sha256"),
                              json_word(record, "gpu_sources_sha256")) == 0;
    const json empty = {.kind = '{'};
    json none = empty;
    static const struct { const char *key, *const *names; bool times; } lists[] = {
        {"tests", test_names, false}, {"sanitizers", one_name, false}, {"measures", one_name, true},
        {"products", product_names, true}, {"spmm", spmm_names, true},
        {"host", host_names, true}, {"scaling", scaling_names, true}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const bool times = old && lists[i].times;
        if (times && !kept) mark_old(old, lists[i].key);
        keep_others(record, kept || times ? old : &none, lists[i].key, lists[i].names);
    }
    json_free(old);

    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *out = fopen(beside, "w");
    if (!out) return stop("cannot be written", beside);
    json_print(out, record, 0, 2);
    fputc('\n', out);
    json_free(record);
    if (fclose(out) != 0 || rename(beside, path) != 0) return remove(beside), stop("cannot be written", path);
    return 0;
}

/* ---- check */

static int bad(const char *path, const char *what, const char *which)
{
    fprintf(stderr, "%s: %s%s%s\n", path, what, which ? ": " : "", which ? which : "");
    return 1;
}

static int check_host(const char *path, const json *host)
{
    static const char *const numbers[] = {"ms", "product_ms", "up_bytes", "down_bytes", "floor_ms"};
    int faults = 0;
    for (const json *h = host ? host->first : NULL; h; h = h->next) {
        for (const char *const *n = host_names; *n; n++)
            if (!*json_word(h, *n)) faults += bad(path, "a product from host to host has no name for", *n);
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (json_number(h, numbers[i]) <= 0) faults += bad(path, json_word(h, "matrix"), numbers[i]);
    }
    return faults;
}

static int check_scaling(const char *path, const json *scaling)
{
    static const char *const numbers[] = {"speedup", "cv_symbolic", "cv_numeric"};
    int faults = 0;
    for (const json *l = scaling ? scaling->first : NULL; l; l = l->next) {
        for (const char *const *n = scaling_names; *n; n++)
            if (!*json_word(l, *n))
                faults += bad(path, "a prediction for several devices has no name for", *n);
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if (!json_get(l, numbers[i])) faults += bad(path, json_word(l, "matrix"), numbers[i]);
    }
    return faults;
}

static int check_record(const char *path, const char *hash)
{
    static const char *const words[] = {"device", "driver", "date", "gpu_sources_sha256"};
    static const char *const lists[] = {"tests", "sanitizers", "products"};
    static const char *const numbers[] = {"ms", "peak_bytes", "products", "c_nnz"};
    FILE *in = fopen(path, "r");
    char *text = in ? json_slurp(in) : NULL;
    if (in) fclose(in);
    if (!text) return bad(path, "cannot be read", NULL);
    const char *wrong = NULL;
    json *record = json_parse(text, NULL, &wrong);
    if (!record || record->kind != '{') {
        int line = 1;
        for (const char *p = text; wrong && p < wrong; p++) line += *p == '\n';
        fprintf(stderr, "%s:%d: not well-formed JSON\n", path, line);
        return 1;
    }
    int faults = 0;
    for (int i = 0; i < 4; i++)
        if (!*json_word(record, words[i])) faults += bad(path, "has no text", words[i]);
    for (int i = 0; i < 3; i++)
        if (!json_get(record, lists[i]) || !json_get(record, lists[i])->first)
            faults += bad(path, "has none", lists[i]);
    const json *tests = json_get(record, "tests"), *tools = json_get(record, "sanitizers"),
               *measures = json_get(record, "measures"), *products = json_get(record, "products"),
               *spmm = json_get(record, "spmm");
    for (const json *t = tests ? tests->first : NULL; t; t = t->next)
        if (json_number(t, "failed") != 0 || json_number(t, "passed") <= 0)
            faults += bad(path, "tests failed, or none ran", json_word(t, "program"));
    for (const json *t = tools ? tools->first : NULL; t; t = t->next)
        if (strcmp(json_word(t, "result"), "clean") != 0
            && strncmp(json_word(t, "result"), "unavailable", 11) != 0)
            faults += bad(path, "found something", json_word(t, "tool"));
    for (const json *m = measures ? measures->first : NULL; m; m = m->next)
        if (strncmp(json_word(m, "name"), LEFT_OUT, strlen(LEFT_OUT)) == 0 && *json_word(m, "programs"))
            faults += bad(path, "tests were left out, so nothing is confirmed", json_word(m, "programs"));
    for (const json *p = products ? products->first : NULL; p; p = p->next) {
        for (const char *const *n = product_names; *n; n++)
            if (!*json_word(p, *n)) faults += bad(path, "a product has no name for", *n);
        for (int i = 0; i < 4; i++)
            if (!json_get(p, numbers[i]) || json_number(p, numbers[i]) < 0)
                faults += bad(path, json_word(p, "matrix"), numbers[i]);
        if (!json_get(p, "stages") || !json_get(p, "stages")->first)
            faults += bad(path, "no stages", json_word(p, "matrix"));
    }
    for (const json *p = spmm ? spmm->first : NULL; p; p = p->next) {
        for (const char *const *n = spmm_names; *n; n++)
            if (!*json_word(p, *n)) faults += bad(path, "a sparse times dense has no name for", *n);
        if (json_number(p, "ms") <= 0)
            faults += bad(path, json_word(p, "matrix"), "ms of sparse times dense");
    }
    faults += check_host(path, json_get(record, "host"));
    faults += check_scaling(path, json_get(record, "scaling"));
    if (strcmp(json_word(record, "gpu_sources_sha256"), hash) != 0)
        faults += bad(path, "GPU sources changed since the record; run make gpu-check on a GPU machine",
                      NULL);
    json_free(record);
    free(text);
    return faults ? 1 : 0;
}

static int print_passed(const char *path, const char *hash)
{
    FILE *in = fopen(path, "r");
    char *text = in ? json_slurp(in) : NULL;
    json *record = text ? json_parse(text, NULL, NULL) : NULL;
    if (in) fclose(in);
    free(text);
    if (record && strcmp(json_word(record, "gpu_sources_sha256"), hash) == 0) {
        const json *tests = json_get(record, "tests");
        for (const json *t = tests ? tests->first : NULL; t; t = t->next)
            if (json_number(t, "failed") == 0 && json_number(t, "passed") > 0)
                printf("%s %s\n", json_word(t, "driver"), json_word(t, "program"));
    }
    json_free(record);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) return write_record(argv[2]);
    if (argc == 4 && strcmp(argv[1], "check") == 0) return check_record(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "passed") == 0) return print_passed(argv[2], argv[3]);
    return stop("usage: record write FILE < PIECES | record check FILE HASH | record passed FILE HASH",
                NULL), 2;
}
