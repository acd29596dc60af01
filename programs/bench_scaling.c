/* SPDX-License-Identifier: MIT
 *
 * bench_scaling.c - `tulle bench scaling`: predicts the speed of several devices like the first one named.
 *
 * Rows of A are divided by products into 2 to 8 parts, and each part is timed separately, including copies,
 * on one device.  The time of the slowest part, plus that of copying C on this host, is the predicted time of
 * so many devices; relative to the time of the whole product it gives the predicted speed-up.  The prediction
 * ignores links and memory that devices share.  If several devices are named, their common product is timed,
 * too.  The balance of the parts is shown as the coefficient of variation of their times (DeltaSPARSE,
 * Figures 4 and 5), for the symbolic phase (making a plan) and the numeric phase (running it). */
#include "program.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, LEAST = 2, MOST = 8, COUNTS = MOST - LEAST + 1 };

/* Times of parts, for their mean and variation. */
typedef struct sums {
    double all, squares;
} sums;

typedef struct prediction {
    double slowest, cv_symbolic, cv_numeric;
} prediction;

typedef struct line {
    const char *matrix;
    int64_t     products;
    double      whole, copy;            /* seconds                              */
    prediction  parts[COUNTS];          /* of LEAST to MOST                     */
    double      several;                /* on all named devices; 0: only one was named */
} line;

static void add(sums *s, double seconds)
{
    s->all += seconds;
    s->squares += seconds * seconds;
}

static double variation(const sums *s, int count)
{
    double mean = s->all / count, variance = s->squares / count - mean * mean;
    return mean > 0 && variance > 0 ? sqrt(variance) / mean : 0;
}

/* Products of each row, summed up: sum[i] before row i. */
static int64_t *sums_of(const tulle_csr *A, const tulle_csr *B)
{
    int64_t *sum = calloc((size_t)A->rows + 1, sizeof *sum);
    for (int64_t i = 0; sum && i < A->rows; i++) {
        sum[i + 1] = sum[i] + 1;
        for (int64_t k = csr_row(A, i); k < csr_row(A, i + 1); k++)
            sum[i + 1] += csr_row(B, csr_col(A, k) + 1) - csr_row(B, csr_col(A, k));
    }
    return sum;
}

static tulle_csr rows_of(const tulle_csr *A, int64_t row0, int64_t row1)
{
    tulle_csr rows = *A;
    rows.rows = row1 - row0;
    rows.nnz = csr_row(A, row1) - csr_row(A, row0);
    rows.row_ptr = (const char *)A->row_ptr + (size_t)row0 * index_size((int)A->ptr_type);
    return rows;
}

/* The median of some runs, after a warm-up; *copy, if not NULL: the time of a copy of C. */
static int time_product(session *s, const tulle_csr *A, const tulle_csr *B, tulle_stats *middle,
                        double *median, double *copy)
{
    int code = END_OK, runs = s->o->repeat ? (int)s->o->repeat : RUNS;
    tulle_stats *stats = calloc((size_t)runs, sizeof *stats);
    tulle_matrix *C = NULL;
    double best;
    if (!stats) return no_memory("times");
    for (int i = -1; i < runs; i++) {
        GO(told(s, tulle_multiply(s->ctx, A, B, NULL, &C)));
        if (i >= 0) tulle_ctx_stats(s->ctx, &stats[i]);
        if (copy && i == runs - 1) {
            const tulle_csr c = tulle_matrix_view(C);
            tulle_matrix *again = NULL;
            double start = seconds();
            GO(told(s, tulle_csr_move(s->ctx, &c, TULLE_HOST, &again)));
            *copy = seconds() - start;
            tulle_matrix_free(again);
        }
        tulle_matrix_free(C);
        C = NULL;
    }
    *median = runs_median(stats, runs, middle, &best);
done:
    tulle_matrix_free(C);
    free(stats);
    return code;
}

/* The minimum times of making a plan and of running it. */
static int time_phases(session *s, const tulle_csr *A, const tulle_csr *B, double *symbolic, double *numeric)
{
    int code = END_OK, runs = s->o->repeat ? (int)s->o->repeat : RUNS;
    tulle_plan *plan = NULL;
    tulle_matrix *C = NULL;
    *symbolic = *numeric = HUGE_VAL;
    for (int i = -1; i < runs; i++) {
        double start = seconds();
        GO(told(s, tulle_plan_create(s->ctx, A, B, NULL, &plan)));
        double made = seconds();
        GO(told(s, tulle_plan_multiply(plan, A->values, B->values, &C)));
        double end = seconds();
        if (i >= 0 && made - start < *symbolic) *symbolic = made - start;
        if (i >= 0 && end - made < *numeric) *numeric = end - made;
        tulle_matrix_free(C);
        tulle_plan_free(plan);
        C = NULL;
        plan = NULL;
    }
done:
    tulle_matrix_free(C);
    tulle_plan_free(plan);
    return code;
}

/* Times each part separately. */
static int time_parts(session *s, const tulle_csr *A, const tulle_csr *B, const int64_t *sum, int parts,
                      prediction *out)
{
    int code = END_OK;
    double time = 0, made = 0, run = 0;
    sums symbolic = {0, 0}, numeric = {0, 0};
    tulle_stats t;
    int64_t row0 = 0;
    for (int i = 0; i < parts; i++) {
        int64_t row1 = row0, upto = sum[A->rows] / parts * (i + 1);
        while (row1 < A->rows && (i == parts - 1 || sum[row1] < upto)) row1++;
        const tulle_csr rows = rows_of(A, row0, row1);
        GO(time_product(s, &rows, B, &t, &time, NULL));
        GO(time_phases(s, &rows, B, &made, &run));
        if (time > out->slowest) out->slowest = time;
        add(&symbolic, made);
        add(&numeric, run);
        row0 = row1;
    }
    out->cv_symbolic = variation(&symbolic, parts);
    out->cv_numeric = variation(&numeric, parts);
done:
    return code;
}

/* An operand as the product sees it. */
static int turned(session *s, const tulle_csr *given, int op, tulle_csr *view, tulle_matrix **own)
{
    int code = END_OK;
    *view = *given;
    if (op == TULLE_KEEP) return END_OK;
    GO(told(s, tulle_csr_transpose(s->ctx, given, (tulle_op)op, own)));
    *view = tulle_matrix_view(*own);
done:
    return code;
}

static int measure(session *one, session *all, const pair *p, line *l)
{
    int code = END_OK;
    tulle_csr A, B;
    tulle_matrix *own_a = NULL, *own_b = NULL;
    int64_t *sum = NULL;
    tulle_stats t;
    *l = (line){.matrix = p->a.name};
    GO(told(one, tulle_csr_check(one->ctx, &p->a.view)));
    GO(turned(one, &p->a.view, p->options.op_a, &A, &own_a));
    GO(turned(one, &p->b.view, p->options.op_b, &B, &own_b));
    sum = sums_of(&A, &B);
    if (!sum) GO(no_memory("products of rows"));
    l->products = sum[A.rows] - A.rows;
    GO(time_product(one, &A, &B, &t, &l->whole, &l->copy));
    for (int i = 0; i < COUNTS; i++) GO(time_parts(one, &A, &B, sum, LEAST + i, &l->parts[i]));
    if (all->ctx) GO(time_product(all, &A, &B, &t, &l->several, NULL));
done:
    tulle_matrix_free(own_a);
    tulle_matrix_free(own_b);
    free(sum);
    return code;
}

/* ---- reports */

static double speedup(const line *l, int i)
{
    return ratio(l->whole, l->parts[i].slowest + l->copy);
}

static void print_line(const line *l)
{
    figure products, whole;
    printf("\n%s: %s products, %s ms", l->matrix, count_text(products, l->products),
           ms_text(whole, l->whole));
    if (l->several > 0)
        printf("; all devices named: %.2f times as fast, measured", ratio(l->whole, l->several));
    printf("\n%5s %8s %12s %12s\n", "parts", "speed-up", "cv symbolic", "cv numeric");
    for (int i = 0; i < COUNTS; i++)
        printf("%5d %8.2f %12.2f %12.2f\n", LEAST + i, speedup(l, i), l->parts[i].cv_symbolic,
               l->parts[i].cv_numeric);
    fflush(stdout);
}

static void print_head(const session *one, const session *all)
{
    printf("predicted from parts timed one by one on %s, a copy of C added; cv: variation between parts\n",
           tulle_ctx_device(one->ctx));
    if (all->ctx) printf("measured on %s\n", tulle_ctx_device(all->ctx));
}

/* The format of `scaling` is that of docs/records. */
static void print_json(const session *one, const session *all, const line *lines, int count)
{
    json j;
    json_begin(&j, "bench scaling");
    json_text(&j, "device", tulle_ctx_device(one->ctx));
    if (all->ctx) json_text(&j, "devices", tulle_ctx_device(all->ctx));
    json_open(&j, "matrices", '[');
    for (int i = 0; i < count; i++) {
        const line *l = &lines[i];
        json_open(&j, NULL, '{');
        json_text(&j, "matrix", l->matrix);
        json_int(&j, "products", l->products);
        json_num(&j, "ms", 1e3 * l->whole);
        json_num(&j, "copy_ms", 1e3 * l->copy);
        if (l->several > 0) json_num(&j, "measured_speedup", ratio(l->whole, l->several));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_open(&j, "scaling", '[');
    for (int i = 0; i < count * COUNTS; i++) {
        const line *l = &lines[i / COUNTS];
        const int k = i % COUNTS;
        json_open(&j, NULL, '{');
        json_text(&j, "matrix", l->matrix);
        json_int(&j, "parts", LEAST + k);
        json_num(&j, "speedup", speedup(l, k));
        json_num(&j, "cv_symbolic", l->parts[k].cv_symbolic);
        json_num(&j, "cv_numeric", l->parts[k].cv_numeric);
        json_num(&j, "slowest_ms", 1e3 * l->parts[k].slowest);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

/* The first of the devices named, alone, and all of them where they are several. */
static int open_both(const options *o, session *one, session *all)
{
    char first[64] = "";
    const char *names = o->device, *comma = names ? strchr(names, ',') : NULL;
    if (!comma) return session_open(one, o);
    snprintf(first, sizeof first, "%.*s", (int)(comma - names), names);
    int code = session_open_on(one, o, first);
    return code == END_OK ? session_open_on(all, o, names) : code;
}

int bench_scaling(const options *o)
{
    int code = END_OK;
    session one = {0}, all = {0};
    pair p = {0};
    bool table = !o->json && !o->quiet;
    line *lines = calloc((size_t)o->operands, sizeof *lines);
    if (!lines) return no_memory("the table of times");
    GO(open_both(o, &one, &all));
    if (table) print_head(&one, &all);
    for (int i = 0; i < o->operands; i++) {
        GO(pair_load(&one, o->operand[i], NULL, &p));
        GO(measure(&one, &all, &p, &lines[i]));
        pair_free(&p);
        if (table) print_line(&lines[i]);
    }
    if (o->json) print_json(&one, &all, lines, o->operands);
done:
    pair_free(&p);
    session_close(&one);
    session_close(&all);
    free(lines);
    return code;
}
