/* SPDX-License-Identifier: MIT
 *
 * bench_merges.c - `tulle bench merges`: five algorithms merge two sorted sequences of 2^5 to 2^12 entries in
 * a GPU's shared memory: keys only, with 32-bit and with 64-bit values.  It is the table of bhSPARSE's Figure
 * 4 (Liu and Vinter, IPDPS 2014) for the present device. */
#include "program.h"
#include <string.h>

enum { LEAST = 5, LENGTHS = 8, ALGORITHMS = 5, PARTS = 3, QUICK = 1 << 16 };

static const struct { int value_bytes; const char *text; } parts[PARTS] = {
    {0, "32-bit keys"}, {4, "32-bit keys, 32-bit values"}, {8, "32-bit keys, 64-bit values"}};

typedef struct cell {
    tulle_merge_result result;
    char               why[256];        /* it does not fit                  */
} cell;

typedef struct row {
    cell cell[ALGORITHMS];
    int  best;                          /* -1: none fits                    */
} row;

static int time_row(session *s, int length, int value_bytes, row *r)
{
    int code = END_OK;
    r->best = -1;
    for (int i = 0; i < ALGORITHMS && tulle_merge_name(i); i++) {
        cell *c = &r->cell[i];
        tulle_merge_options o = {.algorithm = tulle_merge_name(i), .value_bytes = value_bytes,
                                 .length = length, .runs = s->o->repeat, .entries = s->o->quick ? QUICK : 0};
        tulle_status status = tulle_merge_trial(s->ctx, &o, &c->result);
        if (status == TULLE_ELIMIT) {
            snprintf(c->why, sizeof c->why, "%.250s", tulle_ctx_error(s->ctx));
            continue;
        }
        GO(told(s, status));
        if (r->best < 0 || c->result.rate > r->cell[r->best].result.rate) r->best = i;
    }
done:
    return code;
}

static void print_part(int part)
{
    printf("\n%s\n%-6s", parts[part].text, "length");
    for (int i = 0; i < ALGORITHMS && tulle_merge_name(i); i++) printf(" %17s", tulle_merge_name(i));
    printf("\n");
}

static void print_row(int length, const row *r)
{
    printf("%-6d", length);
    for (int i = 0; i < ALGORITHMS; i++) {
        const cell *c = &r->cell[i];
        if (c->why[0]) printf(" %16s ", "-");
        else printf(" %16.1f%c", 1e-6 * c->result.rate, i == r->best ? '*' : ' ');
    }
    printf("\n");
    fflush(stdout);
}

/* Why a cell of this part of the table is empty: the reason of the first one. */
static void print_why(const row *rows)
{
    for (int k = 0; k < LENGTHS; k++)
        for (int i = 0; i < ALGORITHMS; i++)
            if (rows[k].cell[i].why[0]) {
                printf("- does not fit: %s\n", rows[k].cell[i].why);
                return;
            }
}

static void json_row(json *j, int length, const row *r)
{
    json_open(j, NULL, '{');
    json_int(j, "length", length);
    json_open(j, "algorithms", '[');
    for (int i = 0; i < ALGORITHMS && tulle_merge_name(i); i++) {
        const cell *c = &r->cell[i];
        json_open(j, NULL, '{');
        json_text(j, "name", tulle_merge_name(i));
        if (c->why[0]) {
            json_text(j, "why_not", c->why);
        } else {
            json_int(j, "entries", c->result.entries);
            json_num(j, "ms", 1e3 * c->result.seconds);
            json_num(j, "entries_per_second", c->result.rate);
            json_int(j, "threads", c->result.threads);
            json_int(j, "shared_bytes", (int64_t)c->result.shared_bytes);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
    json_text(j, "best", r->best < 0 ? NULL : tulle_merge_name(r->best));
    json_close(j, '}');
}

static void print_json(const session *s, row (*rows)[LENGTHS])
{
    json j;
    json_begin(&j, "bench merges");
    json_text(&j, "device", tulle_ctx_device(s->ctx));
    json_open(&j, "parts", '[');
    for (int p = 0; p < PARTS; p++) {
        json_open(&j, NULL, '{');
        json_int(&j, "value_bytes", parts[p].value_bytes);
        json_open(&j, "rows", '[');
        for (int k = 0; k < LENGTHS; k++) json_row(&j, 1 << (LEAST + k), &rows[p][k]);
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int bench_merges(const options *o)
{
    int code = END_OK;
    session s = {0};
    row rows[PARTS][LENGTHS] = {0};
    bool table = !o->json && !o->quiet;
    GO(session_open(&s, o));
    if (!session_on_gpu(&s)) {
        code = complain(END_USAGE,
                        "bench merges needs a GPU; --device names one, \"tulle devices\" lists those there "
                        "are");
        goto done;
    }
    if (table) printf("on %s, million entries merged a second; * is the fastest\n", tulle_ctx_device(s.ctx));
    for (int p = 0; p < PARTS; p++) {
        if (table) print_part(p);
        for (int k = 0; k < LENGTHS; k++) {
            GO(time_row(&s, 1 << (LEAST + k), parts[p].value_bytes, &rows[p][k]));
            if (table) print_row(1 << (LEAST + k), &rows[p][k]);
        }
        if (table) print_why(rows[p]);
    }
    if (o->json) print_json(&s, rows);
done:
    session_close(&s);
    return code;
}
