/* SPDX-License-Identifier: MIT
 *
 * bench_accumulators.c - `tulle bench accumulators`: the speed of each accumulator of the device, in products
 * per second, depending on the size of rows (products, 2 to 16384) and the compression (products per entry of
 * C, 1 to 32).
 *
 * The matrices are constructed so that all rows of C are alike: a cluster of k rows of B has m entries each,
 * and covers u = k*m/c columns, each of them c times; a row of A uses the k rows of a cluster, and eight rows
 * of A share one.  Columns of a cluster are 16 apart on average, at pseudo-random positions (a hash).  What
 * is measured is the time of the stages that accumulate (on a CPU the numeric stage), the median of the runs;
 * a cell stays empty where the device fell back to another accumulator.  With -o FILE.png the tables are
 * drawn, one panel per accumulator, all on one logarithmic scale: dark is slow, light is fast. */
#include "program.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 14, RATES = 6, WORDS_MAX = 32, RUNS = 5, SHARERS = 8, APART = 16 };

typedef struct cell {
    double  seconds;                    /* 0: another accumulator was used   */
    int64_t products, c_nnz;
} cell;

typedef struct column {
    const char *name;
    bool        any;
    cell        at[SIZES][RATES];
} column;

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* ---- matrices */

typedef struct made {
    int64_t *ptr;
    int32_t *col;
    void    *val;
    tulle_csr view;
} made;

static void made_free(made *m)
{
    free(m->ptr);
    free(m->col);
    free(m->val);
    *m = (made){.ptr = NULL};
}

static int made_new(int64_t rows, int64_t cols, int64_t each, int type, made *m)
{
    int64_t nnz = rows * each;
    *m = (made){.ptr = malloc((size_t)(rows + 1) * sizeof *m->ptr),
                .col = malloc((size_t)nnz * sizeof *m->col),
                .val = malloc((size_t)nnz * type_size(type))};
    if (!m->ptr || !m->col || !m->val) {
        made_free(m);
        return no_memory("a matrix to measure with");
    }
    for (int64_t i = 0; i <= rows; i++) m->ptr[i] = i * each;
    /* small integers: sums are exact in any order */
    double *f64 = m->val;
    float *f32 = m->val;
    int64_t numbers = nnz * (type == TULLE_CF32 || type == TULLE_CF64 ? 2 : 1);
    for (int64_t i = 0; i < numbers; i++) {
        if (type == TULLE_F64 || type == TULLE_CF64) f64[i] = (double)(i % 7 - 3);
        else f32[i] = (float)(i % 7 - 3);
    }
    m->view = (tulle_csr){.rows = rows, .cols = cols, .nnz = nnz, .row_ptr = m->ptr, .col_idx = m->col,
                          .values = m->val, .ptr_type = TULLE_I64, .idx_type = TULLE_I32,
                          .val_type = (tulle_type)type};
    return END_OK;
}

/* A and B whose product has rows of `size` products and size / rate entries. */
static int make_pair(int64_t size, int64_t rate, int64_t products, int type, made *a, made *b)
{
    int code = END_OK;
    int64_t u = size / rate, m = 1;
    while (2 * m <= u && 2 * m <= size / 2 && 2 * m <= 16) m *= 2;
    int64_t k = size / m, rows = (products + size - 1) / size, clusters = (rows + SHARERS - 1) / SHARERS;
    while (clusters > 1 && clusters * u * APART > INT32_MAX / 2) clusters /= 2;
    *a = *b = (made){.ptr = NULL};
    GO(made_new(rows, clusters * k, k, type, a));
    GO(made_new(clusters * k, clusters * u * APART, m, type, b));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < k; j++) a->col[i * k + j] = (int32_t)(i % clusters * k + j);
    for (int64_t q = 0; q < clusters; q++)
        for (int64_t j = 0; j < k; j++)
            for (int64_t e = 0; e < m; e++) {           /* m divides u: a row of B never wraps */
                int64_t place = (j * m + e) % u;
                uint32_t scatter = (uint32_t)(q * u + place) * 2654435761u >> 28;
                b->col[(q * k + j) * m + e] = (int32_t)((q * u + place) * APART + scatter);
            }
done:
    if (code != END_OK) {
        made_free(a);
        made_free(b);
    }
    return code;
}

/* ---- times */

static bool accumulates(const char *stage)
{
    static const char *const names[] = {"numeric", "sorting", "heap", "bitonic ESC", "merge"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(stage, names[i]) == 0) return true;
    return false;
}

static double accumulating(const tulle_stats *t)
{
    double sum = 0;
    if (t->stages == 0) return t->sec_numeric;
    for (int i = 0; i < t->stages; i++)
        if (accumulates(t->stage[i].name)) sum += t->stage[i].seconds;
    return sum;
}

static int measure(session *s, const tulle_csr *a, const tulle_csr *b, const char *name, cell *c)
{
    int code = END_OK, runs = s->o->repeat ? s->o->repeat : RUNS;
    tulle_matrix *C = NULL;
    tulle_options o = {.accumulator = name, .trust_inputs = 1, .time_stages = session_on_gpu(s),
                       .c_place = session_on_gpu(s) ? TULLE_DEVICE : TULLE_HOST};
    tulle_stats t = {0};
    double *sec = malloc((size_t)runs * sizeof *sec);
    if (!sec) return no_memory("the times of all runs");
    for (int i = -2; i < runs; i++) {
        tulle_status status = tulle_multiply(s->ctx, a, b, &o, &C);
        if (status == TULLE_EINVAL && i == -2) goto done;       /* the device does not have it */
        GO(told(s, status));
        tulle_ctx_stats(s->ctx, &t);
        tulle_matrix_free(C);
        C = NULL;
        if (i >= 0) sec[i] = accumulating(&t);
    }
    int64_t mine = 0;
    for (int i = 0; i < t.shares; i++)
        if (strcmp(t.share[i].name, name) == 0) mine += t.share[i].products;
    if (mine < t.products - t.products / 10) goto done;
    qsort(sec, (size_t)runs, sizeof *sec, by_size);
    *c = (cell){sec[runs / 2], t.products, t.c_nnz};
done:
    tulle_matrix_free(C);
    free(sec);
    return code;
}

static int measure_all(session *s, column *columns, int count)
{
    int code = END_OK, type = s->o->type ? s->o->type : TULLE_F64;
    made a = {.ptr = NULL}, b = {.ptr = NULL};
    tulle_matrix *there[2] = {NULL, NULL};
    int64_t products = s->o->quick ? 1 << 15 : session_on_gpu(s) ? 1 << 24 : 1 << 21;
    for (int i = 0; i < SIZES; i++)
        for (int r = 0; r < RATES; r++) {
            if (i + 1 < r) continue;                    /* 2^(i+1) products, 2^r to an entry */
            GO(make_pair((int64_t)2 << i, (int64_t)1 << r, products, type, &a, &b));
            tulle_csr va = a.view, vb = b.view;
            if (session_on_gpu(s)) {
                GO(told(s, tulle_csr_move(s->ctx, &a.view, TULLE_DEVICE, &there[0])));
                GO(told(s, tulle_csr_move(s->ctx, &b.view, TULLE_DEVICE, &there[1])));
                va = tulle_matrix_view(there[0]);
                vb = tulle_matrix_view(there[1]);
            }
            for (int k = 0; k < count; k++) {
                GO(measure(s, &va, &vb, columns[k].name, &columns[k].at[i][r]));
                columns[k].any = columns[k].any || columns[k].at[i][r].seconds > 0;
            }
            for (int k = 0; k < 2; k++) {
                tulle_matrix_free(there[k]);
                there[k] = NULL;
            }
            made_free(&a);
            made_free(&b);
        }
done:
    for (int k = 0; k < 2; k++) tulle_matrix_free(there[k]);
    made_free(&a);
    made_free(&b);
    return code;
}

/* ---- reports */

static double speed(const cell *c)
{
    return c->seconds > 0 ? (double)c->products / c->seconds : 0;
}

/* The fastest accumulator of a cell, -1 where none was measured. */
static int fastest(const column *columns, int count, int i, int r)
{
    int best = -1;
    for (int k = 0; k < count; k++)
        if (columns[k].at[i][r].seconds > 0
            && (best < 0 || speed(&columns[k].at[i][r]) > speed(&columns[best].at[i][r])))
            best = k;
    return best;
}

static void print_rates(const char *title)
{
    printf("\n%-18s", title);
    for (int r = 0; r < RATES; r++) printf(" %9d", 1 << r);
    printf("   products for an entry of C\n");
}

static void print_tables(const session *s, const column *columns, int count)
{
    printf("million products a second on %s, by products of a row\n", tulle_ctx_device(s->ctx));
    for (int k = 0; k < count; k++) {
        if (!columns[k].any) continue;
        print_rates(columns[k].name);
        for (int i = 0; i < SIZES; i++) {
            printf("%18d", 2 << i);
            for (int r = 0; r < RATES; r++)
                if (columns[k].at[i][r].seconds > 0) printf(" %9.1f", 1e-6 * speed(&columns[k].at[i][r]));
                else printf(" %9s", "-");
            printf("\n");
        }
    }
    print_rates("fastest");
    for (int i = 0; i < SIZES; i++) {
        printf("%18d", 2 << i);
        for (int r = 0; r < RATES; r++) {
            int best = fastest(columns, count, i, r);
            printf(" %9s", best < 0 ? "-" : columns[best].name);
        }
        printf("\n");
    }
}

static void print_json(const session *s, const column *columns, int count)
{
    json j;
    json_begin(&j, "bench accumulators");
    json_text(&j, "device", tulle_ctx_device(s->ctx));
    json_text(&j, "type", type_name(s->o->type ? s->o->type : TULLE_F64));
    json_open(&j, "cells", '[');
    for (int k = 0; k < count; k++)
        for (int i = 0; i < SIZES; i++)
            for (int r = 0; r < RATES; r++) {
                const cell *c = &columns[k].at[i][r];
                if (c->seconds <= 0) continue;
                json_open(&j, NULL, '{');
                json_text(&j, "accumulator", columns[k].name);
                json_int(&j, "row_products", 2 << i);
                json_int(&j, "compression", 1 << r);
                json_int(&j, "products", c->products);
                json_int(&j, "c_nnz", c->c_nnz);
                json_num(&j, "ms", 1e3 * c->seconds);
                json_num(&j, "products_per_second", speed(c));
                json_close(&j, '}');
            }
    json_close(&j, ']');
    json_end(&j);
}

/* ---- the picture: panels side by side, rows downwards by size, columns by compression */

enum { PIXEL = 16, GAP = 12, FONT_W = 4, FONT_H = 6, SHADES = 64, INK = SHADES + 1, COLOURS = SHADES + 2 };

/* Letters of 3 by 5: an octal digit a line, the top line first. */
static int glyph(char c)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const uint16_t form[] = {025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
                                    011152, 055655, 044447, 057755, 065555, 025552, 065644, 025563, 065655,
                                    034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? form[at - letters] : 0;
}

static void write_word(uint8_t *pixels, int width, int x, int y, const char *word)
{
    for (; *word; word++, x += 2 * FONT_W)
        for (int line = 0; line < 5; line++) {
            int bits = glyph(*word) >> 3 * (4 - line) & 7;
            for (int bit = 0; bit < 3; bit++)
                if (bits >> (2 - bit) & 1)
                    for (int d = 0; d < 4; d++) {       /* a dot is 2 x 2 pixels */
                        size_t down = (size_t)(y + 2 * line + d / 2), right = (size_t)(x + 2 * bit + d % 2);
                        pixels[down * (size_t)width + right] = INK;
                    }
        }
}

static int write_picture(session *s, const char *path, const column *columns, int count)
{
    uint8_t palette[COLOURS][3];
    double least = 0, most = 0;
    int panels = 0;
    for (int k = 0; k < count; k++) {
        panels += columns[k].any;
        for (int i = 0; i < SIZES; i++)
            for (int r = 0; r < RATES; r++) {
                double v = speed(&columns[k].at[i][r]);
                if (v > 0 && (least <= 0 || v < least)) least = v;
                if (v > most) most = v;
            }
    }
    if (panels == 0) return complain(END_FAILED, "no accumulator was measured: there is nothing to draw");
    int width = panels * (RATES * PIXEL + GAP) + GAP, height = SIZES * PIXEL + 3 * GAP + 2 * FONT_H;
    uint8_t *pixels = malloc((size_t)width * (size_t)height);
    if (!pixels) return no_memory("the picture");
    memset(pixels, SHADES, (size_t)width * (size_t)height);
    for (int c = 0; c < SHADES; c++) {                  /* from dark blue by red to light yellow */
        double t = (double)c / (SHADES - 1);
        palette[c][0] = (uint8_t)(20 + 235 * (t < 0.6 ? t / 0.6 : 1));
        palette[c][1] = (uint8_t)(20 + 220 * (t < 0.4 ? 0 : (t - 0.4) / 0.6));
        palette[c][2] = (uint8_t)(t < 0.5 ? 60 + 160 * t
                                  : 140 - 120 * (t - 0.5) * 2 + 60 * (t > 0.8 ? (t - 0.8) * 5 : 0));
    }
    memset(palette[SHADES], 255, 3);
    memset(palette[INK], 0, 3);
    int x = GAP, top = 2 * GAP + 2 * FONT_H;
    for (int k = 0; k < count; k++) {
        if (!columns[k].any) continue;
        write_word(pixels, width, x, GAP, columns[k].name);
        for (int i = 0; i < SIZES * PIXEL; i++)
            for (int r = 0; r < RATES * PIXEL; r++) {
                double v = speed(&columns[k].at[i / PIXEL][r / PIXEL]);
                if (v <= 0 || i % PIXEL == PIXEL - 1 || r % PIXEL == PIXEL - 1) continue;
                double t = most > least ? log(v / least) / log(most / least) : 1;
                uint8_t shade = (uint8_t)(t * (SHADES - 1) + 0.5);
                pixels[(size_t)(top + i) * (size_t)width + (size_t)(x + r)] = shade;
            }
        x += RATES * PIXEL + GAP;
    }
    int code = png_write(s, path, width, height, pixels, (const uint8_t (*)[3])palette, COLOURS);
    free(pixels);
    return code;
}

int bench_accumulators(const options *o)
{
    int code = END_OK, count = 0;
    session s = {0};
    column *columns = calloc(WORDS_MAX, sizeof *columns);
    if (!columns) return no_memory("the table of accumulators");
    GO(output_name(o->output, PICTURE_FILE));
    for (int i = 0; tulle_accumulator_name(i) && count < WORDS_MAX; i++) {
        const char *name = tulle_accumulator_name(i);
        if (!o->product.accumulator || strcmp(o->product.accumulator, name) == 0)
            columns[count++].name = name;
    }
    GO(session_open(&s, o));
    GO(output_place(&s, o->output));
    GO(measure_all(&s, columns, count));
    if (o->json) print_json(&s, columns, count);
    else if (!o->quiet) print_tables(&s, columns, count);
    if (o->output) GO(write_picture(&s, o->output, columns, count));
done:
    free(columns);
    session_close(&s);
    return code;
}
