/* SPDX-License-Identifier: MIT
 * json.c - writes a JSON object to standard output, indented by two spaces per level. */
#include "program.h"
#include <inttypes.h>
#include <math.h>

static void begin_value(json *j, const char *key)
{
    if (j->depth > 0) fprintf(j->out, "%s\n%*s", j->filled ? "," : "", 2 * j->depth, "");
    if (key) fprintf(j->out, "\"%s\": ", key);
    j->filled = true;
}

void json_open(json *j, const char *key, char bracket)
{
    begin_value(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->filled = false;
}

void json_close(json *j, char bracket)
{
    j->depth--;
    if (j->filled) fprintf(j->out, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->out);
    j->filled = true;
}

void json_int(json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void json_num(json *j, const char *key, double value)
{
    begin_value(j, key);
    if (isfinite(value)) fprintf(j->out, "%.9g", value);
    else fputs("null", j->out);
}

void json_bool(json *j, const char *key, bool value)
{
    begin_value(j, key);
    fputs(value ? "true" : "false", j->out);
}

/* How many bytes of s are one character of UTF-8; 0 where they are none. */
static int utf8_length(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
            : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) return 0;
    if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))) return 0;
    return n;
}

void json_text(json *j, const char *key, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    begin_value(j, key);
    if (!value) {
        fputs("null", j->out);
        return;
    }
    fputc('"', j->out);
    while (*s) {
        int n = utf8_length(s);
        if (n == 0) fputs("\\ufffd", j->out);
        else if (*s == '"' || *s == '\\') fprintf(j->out, "\\%c", *s);
        else if (*s < 0x20) fprintf(j->out, "\\u%04x", (unsigned)*s);
        else fwrite(s, 1, (size_t)n, j->out);
        s += n > 0 ? n : 1;
    }
    fputc('"', j->out);
}

void json_begin(json *j, const char *name)
{
    *j = (json){.out = stdout};
    json_open(j, NULL, '{');
    json_text(j, "command", name);
    json_text(j, "version", tulle_version());
}

void json_end(json *j)
{
    json_close(j, '}');
    fputc('\n', j->out);
}

void json_csr(json *j, const tulle_csr *A)
{
    json_int(j, "rows", A->rows);
    json_int(j, "cols", A->cols);
    json_int(j, "nnz", A->nnz);
    json_text(j, "type", type_name((int)A->val_type));
    json_text(j, "ptr_type", index_name((int)A->ptr_type));
    json_text(j, "idx_type", index_name((int)A->idx_type));
}

void json_dense(json *j, const tulle_dense *M)
{
    json_int(j, "rows", M->rows);
    json_int(j, "cols", M->cols);
    json_text(j, "type", type_name((int)M->val_type));
    json_text(j, "order", M->order == TULLE_BY_COLS ? "columns" : "rows");
}

void json_operand(json *j, const char *key, const operand *a)
{
    json_open(j, key, '{');
    json_text(j, "name", a->name);
    json_csr(j, &a->view);
    json_num(j, "sec_read", a->sec_read);
    json_close(j, '}');
}

void json_stages(json *j, const tulle_stats *t)
{
    json_open(j, "stages", '[');
    for (int i = 0; i < t->stages; i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", t->stage[i].name);
        json_num(j, "ms", 1e3 * t->stage[i].seconds);
        json_num(j, "share", ratio(t->stage[i].seconds, t->sec_total));
        json_close(j, '}');
    }
    json_close(j, ']');
}

void json_shares(json *j, const tulle_share *share, int shares)
{
    json_open(j, "accumulators", '[');
    for (int i = 0; i < shares; i++) {
        if (share[i].rows == 0 && share[i].products == 0) continue;
        json_open(j, NULL, '{');
        json_text(j, "name", share[i].name);
        json_int(j, "rows", share[i].rows);
        json_int(j, "products", share[i].products);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void json_check(json *j, bool passed, double error)
{
    json_open(j, "check", '{');
    json_bool(j, "passed", passed);
    json_num(j, "error", error);
    json_close(j, '}');
}

void json_output(json *j, const char *path, double sec_write)
{
    json_text(j, "output", path);
    json_num(j, "sec_write", sec_write);
}
