/* SPDX-License-Identifier: MIT
 * table.c - reports as text: numbers with separators and units. */
#include "program.h"
#include <inttypes.h>
#include <string.h>

double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

const char *count_text(figure t, int64_t n)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;
    for (int i = 0; i < length; i++) {
        t[at++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - 1 - i) % 3 == 0) t[at++] = ',';
    }
    t[at] = 0;
    return t;
}

const char *bytes_text(figure t, uint64_t n)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)n;
    int u = 0;
    while (value >= 1024 && u < 6) {
        value /= 1024;
        u++;
    }
    snprintf(t, sizeof(figure), u == 0 ? "%.0f %s" : "%.1f %s", value, unit[u]);
    return t;
}

const char *ms_text(figure t, double sec)
{
    double ms = 1e3 * sec;
    snprintf(t, sizeof(figure), "%.*f", ms < 10 ? 3 : ms < 1000 ? 2 : 1, ms);
    return t;
}

const char *percent_text(figure t, double part, double whole)
{
    double percent = 100 * ratio(part, whole);
    if (part > 0 && percent < 0.05) snprintf(t, sizeof(figure), "<0.1%%");
    else snprintf(t, sizeof(figure), "%.1f%%", percent);
    return t;
}

void print_operand(const char *letter, const operand *a)
{
    figure rows, cols, nnz;
    const tulle_csr *v = &a->view;
    printf("%s = %s: %s x %s, %s entr%s, %s", letter, a->name, count_text(rows, v->rows),
           count_text(cols, v->cols), count_text(nnz, v->nnz), v->nnz == 1 ? "y" : "ies",
           type_name((int)v->val_type));
    if (v->ptr_type == v->idx_type) printf(", %s\n", index_name((int)v->idx_type));
    else printf(", %s columns, %s row pointers\n", index_name((int)v->idx_type),
                index_name((int)v->ptr_type));
}

void print_stages(const tulle_stats *t)
{
    enum { OF_DEVICES = 3 };                    /* the first ones, which the CPU does not have */
    const tulle_stage whole[] = {{"compile", t->sec_compile},   {"upload", t->sec_upload},
                                 {"download", t->sec_download}, {"check", t->sec_check},
                                 {"analyze", t->sec_analyze},   {"symbolic", t->sec_symbolic},
                                 {"numeric", t->sec_numeric},   {"finish", t->sec_finish}};
    bool detailed = t->stages > 0;
    const tulle_stage *stage = detailed ? t->stage : whole;
    int stages = detailed ? t->stages : (int)(sizeof whole / sizeof *whole);
    double rest = t->sec_total;
    figure ms, part;
    printf("%-14s %14s\n", "stage", "ms");
    for (int i = 0; i < stages; i++) {
        rest -= stage[i].seconds;
        bool device = t->threads == 0 || i < OF_DEVICES;
        if (!detailed && device && stage[i].seconds == 0) continue;
        printf("%-14s %14s %7s\n", stage[i].name, ms_text(ms, stage[i].seconds),
               percent_text(part, stage[i].seconds, t->sec_total));
    }
    if (detailed)
        printf("%-14s %14s %7s\n", "the rest", ms_text(ms, rest > 0 ? rest : 0),
               percent_text(part, rest > 0 ? rest : 0, t->sec_total));
    printf("%-14s %14s %7s\n", "total", ms_text(ms, t->sec_total),
           percent_text(part, t->sec_total, t->sec_total));
}

void print_shares(const tulle_share *share, int shares)
{
    int64_t rows = 0, products = 0;
    for (int i = 0; i < shares; i++) {
        rows += share[i].rows;
        products += share[i].products;
    }
    printf("%-14s %14s %7s %18s\n", "accumulator", "rows", "", "products");
    for (int i = 0; i < shares; i++) {
        const tulle_share *h = &share[i];
        figure r, p, r_part, p_part;
        if (h->rows == 0 && h->products == 0) continue;
        printf("%-14s %14s %7s %18s %7s\n", h->name, count_text(r, h->rows),
               percent_text(r_part, (double)h->rows, (double)rows), count_text(p, h->products),
               percent_text(p_part, (double)h->products, (double)products));
    }
}
