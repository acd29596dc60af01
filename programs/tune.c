/* SPDX-License-Identifier: MIT
 *
 * tune.c - `tulle tune`: finds the fastest shape of FastSpMM (Ortega et al., The Computer Journal 2014) for a
 * matrix and a number of columns on this GPU, and compares it with the library's own choice and with --policy
 * auto.
 *
 * A shape is T threads per row, Lc columns at a time and the threads per block.  Each one is a plan of its
 * own, run once as warm-up and then --repeat times; A, X and Y are on the device.  The library's choice, and
 * the reason why a matrix is not stored as ELLPACK-R, are taken from trace lines. */
#include "program.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 6 * 6 * 3, SHOWN = 8, RUNS = 5, TEXT = 512 };

typedef struct timing {
    int    threads, columns, block;
    double seconds;                     /* 0: not possible with this device */
} timing;

typedef struct tuning {
    session             s;
    operand             a;
    tulle_matrix       *a_there;
    tulle_dense_matrix *x_own, *y_own;
    tulle_csr           A;
    tulle_dense         x, y;
    int                 runs;
    double             *sec;            /* of the runs          */
    timing              shape[SHAPES];  /* the fastest first    */
    int                 shapes;
    timing              model, plain;   /* plain: policy auto   */
    timing              traced;         /* the shape of the last trace line     */
    char                why_not[TEXT];  /* A is not in ELLPACK-R */
} tuning;

static void listen(void *user, const char *line)
{
    tuning *t = user;
    const char *at = strstr(line, "in the shape ");
    if (at) sscanf(at, "in the shape %d,%d,%d", &t->traced.threads, &t->traced.columns, &t->traced.block);
    at = strstr(line, "not in ELLPACK-R: ");
    if (at) snprintf(t->why_not, sizeof t->why_not, "%s", at + strlen("not in ELLPACK-R: "));
    progress_erase(&t->s.bar);
    if (t->s.o->trace) fprintf(stderr, "trace: %s\n", line);
}

/* ---- operands */

/* Fills a matrix with small integers. */
static void fill(const tulle_dense *M)
{
    bool single = M->val_type == TULLE_F32 || M->val_type == TULLE_CF32;
    int64_t count = M->rows * M->cols * (M->val_type >= TULLE_CF32 ? 2 : 1);
    for (int64_t i = 0; i < count; i++) {
        double v = (double)(i * 7 % 11) - 5;
        if (single) ((float *)M->values)[i] = (float)v;
        else ((double *)M->values)[i] = v;
    }
}

static int dense_there(tuning *t, int64_t rows, bool filled, tulle_dense_matrix **out)
{
    int code = END_OK;
    session *s = &t->s;
    tulle_dense_matrix *host = NULL;
    GO(told(s, tulle_dense_create(s->ctx, rows, s->o->columns ? s->o->columns : 32, TULLE_BY_ROWS,
                                  t->A.val_type, &host)));
    tulle_dense view = tulle_dense_view(host);
    if (filled) fill(&view);
    GO(told(s, tulle_dense_move(s->ctx, &view, TULLE_DEVICE, out)));
done:
    tulle_dense_free(host);
    return code;
}

static int load(tuning *t, const char *name)
{
    int code = END_OK;
    session *s = &t->s;
    GO(operand_load(s, name, &t->a));
    GO(told(s, tulle_csr_move(s->ctx, &t->a.view, TULLE_DEVICE, &t->a_there)));
    t->A = tulle_matrix_view(t->a_there);
    GO(dense_there(t, t->A.cols, true, &t->x_own));
    GO(dense_there(t, t->A.rows, false, &t->y_own));
    t->x = tulle_dense_view(t->x_own);
    t->y = tulle_dense_view(t->y_own);
    t->runs = s->o->repeat ? s->o->repeat : RUNS;
    t->sec = malloc((size_t)t->runs * sizeof *t->sec);
    if (!t->sec) code = no_memory("the times of all runs");
done:
    return code;
}

/* ---- times */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int by_time(const void *x, const void *y)
{
    return by_value(&((const timing *)x)->seconds, &((const timing *)y)->seconds);
}

/* The median time; 0 if the device refuses the shape (a block too large). */
static int time_one(tuning *t, const char *policy, timing *r)
{
    int code = END_OK;
    session *s = &t->s;
    tulle_spmm_plan *plan = NULL;
    tulle_stats stats;
    const tulle_spmm_lab lab = {.ellr_threads = r->threads, .ellr_columns = r->columns,
                                .ellr_block = r->block};
    tulle_spmm_options o = {.policy = policy, .trust_inputs = 1, .time_stages = 1, .lab = &lab};
    tulle_status status = tulle_spmm_plan_create(s->ctx, &t->A, &o, &plan);
    if (status == TULLE_EINVAL && r->block) return END_OK;
    GO(told(s, status));
    for (int i = -1; i < t->runs; i++) {
        GO(told(s, tulle_spmm_plan_run(plan, NULL, &t->x, NULL, &t->y)));
        tulle_ctx_stats(s->ctx, &stats);
        if (i >= 0) t->sec[i] = stats.sec_numeric;
    }
    qsort(t->sec, (size_t)t->runs, sizeof *t->sec, by_value);
    r->seconds = t->runs % 2 ? t->sec[t->runs / 2] : 0.5 * (t->sec[t->runs / 2] + t->sec[t->runs / 2 - 1]);
done:
    tulle_spmm_plan_free(plan);
    return code;
}

static int time_shapes(tuning *t)
{
    int code = END_OK, done = 0;
    for (int threads = 1; threads <= 32; threads *= 2)
        for (int columns = 1; columns <= 32; columns *= 2)
            for (int block = 64; block <= 256; block *= 2) {
                timing *r = &t->shape[t->shapes];
                if (progress_call(&t->s.bar, "tune", (double)done++ / SHAPES)) GO(told(&t->s, TULLE_OK));
                if (t->s.o->quick && block != 128) continue;
                *r = (timing){threads, columns, block, 0};
                GO(time_one(t, "ellr", r));
                if (r->seconds > 0) t->shapes++;
            }
    qsort(t->shape, (size_t)t->shapes, sizeof *t->shape, by_time);
done:
    return code;
}

static int time_all(tuning *t)
{
    int code = END_OK;
    GO(time_one(t, "auto", &t->plain));
    GO(time_one(t, "ellr", &t->model));
    t->model = (timing){t->traced.threads, t->traced.columns, t->traced.block, t->model.seconds};
    if (!t->why_not[0]) GO(time_shapes(t));
done:
    return code;
}

/* ---- reports */

static double gflops(const tuning *t, double seconds)
{
    bool complex = t->A.val_type == TULLE_CF32 || t->A.val_type == TULLE_CF64;
    return ratio((complex ? 8e-9 : 2e-9) * (double)t->A.nnz * (double)t->x.cols, seconds);
}

static void print_timing(const tuning *t, const char *name, const timing *r, double best)
{
    figure ms;
    printf("%-10s", name);
    if (r->threads) printf(" %4d %4d %6d", r->threads, r->columns, r->block);
    else printf(" %16s", "");
    printf(" %12s %10.2f", ms_text(ms, r->seconds), gflops(t, r->seconds));
    if (best > 0) printf(" %10.2f", ratio(r->seconds, best));
    printf("\n");
}

static void print_report(const tuning *t)
{
    double best = t->shapes ? t->shape[0].seconds : 0;
    figure rows;
    print_operand("A", &t->a);
    printf("X = %s x %" PRId64 ", by rows; all on %s\n\n", count_text(rows, t->x.rows), t->x.cols,
           tulle_ctx_device(t->s.ctx));
    printf("%-10s %4s %4s %6s %12s %10s%s\n", "", "T", "Lc", "block", "ms", "GFLOPS",
           best > 0 ? "    of best" : "");
    for (int i = 0; i < t->shapes && i < SHOWN; i++) print_timing(t, i ? "" : "ellr", &t->shape[i], best);
    if (t->shapes) print_timing(t, "the model", &t->model, best);
    print_timing(t, "auto", &t->plain, best);
    if (t->why_not[0]) printf("\nnot in ELLPACK-R: %s\n", t->why_not);
    if (!t->shapes) return;
    bool same = t->model.threads == t->shape[0].threads && t->model.columns == t->shape[0].columns
                && t->model.block == t->shape[0].block;
    double loss = 100 * (ratio(t->model.seconds, best) - 1);
    if (same) printf("\nof %d shapes; the model's own is the best\n", t->shapes);
    else printf("\nof %d shapes; the model's own is %.1f%% slower than the best\n", t->shapes,
                loss > 0 ? loss : 0.0);
    printf("to use it: tulle spmm %s -n %" PRId64 " --policy ellr --shape %d,%d,%d\n", t->a.name, t->x.cols,
           t->shape[0].threads, t->shape[0].columns, t->shape[0].block);
}

static void json_timing(json *j, const char *key, const tuning *t, const timing *r)
{
    json_open(j, key, '{');
    if (r->threads) {
        json_int(j, "threads_a_row", r->threads);
        json_int(j, "columns", r->columns);
        json_int(j, "block", r->block);
    }
    json_num(j, "ms", 1e3 * r->seconds);
    json_num(j, "gflops", gflops(t, r->seconds));
    json_close(j, '}');
}

static void print_json(const tuning *t)
{
    json j;
    json_begin(&j, "tune");
    json_text(&j, "device", tulle_ctx_device(t->s.ctx));
    json_operand(&j, "a", &t->a);
    json_int(&j, "columns", t->x.cols);
    json_int(&j, "repeat", t->runs);
    json_open(&j, "shapes", '[');
    for (int i = 0; i < t->shapes; i++) json_timing(&j, NULL, t, &t->shape[i]);
    json_close(&j, ']');
    if (t->why_not[0]) json_text(&j, "why_not", t->why_not);
    else json_timing(&j, "model", t, &t->model);
    json_timing(&j, "auto", t, &t->plain);
    json_end(&j);
}

static int tune_shapes(const options *o)
{
    int code = END_OK;
    tuning t = {0};
    GO(session_open(&t.s, o));
    if (!session_on_gpu(&t.s)) {
        code = complain(END_USAGE,
                        "tune needs a GPU; --device names one, \"tulle devices\" lists those there are");
        goto done;
    }
    tulle_ctx_set_trace(t.s.ctx, listen, &t);
    GO(load(&t, o->operand[0]));
    GO(time_all(&t));
    progress_erase(&t.s.bar);
    if (o->json) print_json(&t);
    else if (!o->quiet) print_report(&t);
done:
    free(t.sec);
    tulle_dense_free(t.x_own);
    tulle_dense_free(t.y_own);
    tulle_matrix_free(t.a_there);
    operand_free(&t.a);
    session_close(&t.s);
    return code;
}

int run_tune(const options *o)
{
    const char *policy = o->product.policy ? o->product.policy : "ellr";
    if (strcmp(policy, "delta") == 0) return tune_delta(o);
    if (strcmp(policy, "ellr") != 0)
        return complain(END_USAGE, "tune knows the policies ellr and delta, not \"%s\"", policy);
    if (o->output) return complain(END_USAGE, "-o belongs to --policy delta");
    if (o->operands > 1) return complain(END_USAGE, "tune takes one matrix, or --policy delta and many");
    return tune_shapes(o);
}
