/* SPDX-License-Identifier: MIT
 *
 * bench_gpu_spmm.c - Y = A*X on a GPU, X and Y dense, over many matrices, in one process.
 *
 *     bench_gpu_spmm [OPTIONS] FOLDER-FILE-OR-RECIPE...
 *
 *     --device NAME       cuda:0 (default), opencl:1, ...
 *     --ways LIST         auto (default), ellr, tf32 (auto where TF32 is allowed, f32 only)
 *     --types LIST        f32,f64 (default)
 *     --columns LIST      8,32,128 (default)
 *     --runs N            20 (default) after 3 warm-ups; the median counts
 *     --anchors FILE      lines "matrix,N,type,best_full_precision_ms,its name,best_cusparse_ms,its name,
 *                         best_tf32_ms,its name": recorded times to compare with, the last two may be empty;
 *                         of a folder then only the matrices in FILE are measured
 *     --pieces FILE       appends one JSON object per case, for record.c
 *     --only PARTS        of a folder, only matrices whose name contains one of these
 *     --no-check --no-cusparse --trace
 *     --paper             the experiments of FastSpMM's paper instead (paper.c)
 *
 * A, X and Y are in device memory, X and Y row-major; values are random in [0.5, 1.5).  Timed: the kernels of
 * one tulle_spmm_plan_run(), by events around it in a stream of the caller, with a plan that was created
 * before and warm caches; on OpenCL tulle's stage "numeric".  cuSPARSE's SpMM is timed on the same operands
 * in the same way, preprocessed.  Every Y must agree with the CPU engine's within the rounding error of its
 * sums, and a second run must give the same bits. */
#define _POSIX_C_SOURCE 200809L
#include "spmm.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cusparse_spmm.h"

enum { MAX_RUNS = SUITE_RUNS, MAX_LIST = 8, MAX_ANCHORS = 2048, WARM = 3 };

typedef struct settings {
    const char *device, *anchors, *only;
    FILE       *pieces;
    int         runs, ways, types, widths;
    bool        check, cusparse, trace, paper;
    int         way[MAX_LIST];
    int64_t     width[MAX_LIST];
    tulle_type  type[MAX_LIST];
    suite       matrices;
} settings;

static const struct { const char *name, *policy; int tf32; double rounding; } ways[] = {
    {"auto", "auto", 0, 0}, {"ellr", "ellr", 0, 0}, {"tf32", "auto", 1, 0x1p-9}};

enum { WAYS = sizeof ways / sizeof *ways };

typedef struct anchor {
    char    name[64], type[8], peer[64], variant[32], tf32_peer[64];
    int64_t columns;
    double  best, cusparse, tf32;
} anchor;

enum { TO_BEST, TO_CUSPARSE, TO_NOW, TO_TF32, RIVALS };        /* TO_TF32: codes that use TF32, too */
static const char *const rivals[RIVALS] = {"best_full_precision", "best_cusparse", "cusparse_now",
                                           "best_tf32"};

typedef struct tally {
    suite_ratio to[RIVALS], part[MAX_LIST][MAX_LIST];           /* part: to the best, by type and columns */
    int         slow, done, failed;                             /* slow: below 0.9 of the best            */
} tally;

/* The operands for one matrix and value type, with the largest number of columns. */
typedef struct operands {
    const char   *name;
    tulle_type    type;
    size_t        size;
    tulle_csr     host, A;
    tulle_matrix *own, *there;
    void         *x, *want, *got, *again, *x_there, *y_there;   /* the first four on the host */
} operands;

typedef struct result {
    double      ms, least, plan_ms, cusparse_ms;
    const char *cusparse_name;
} result;

static const char *type_name(tulle_type t)
{
    return t == TULLE_F64 ? "f64" : "f32";
}

/* ---- operands */

static bool operands_make(tulle_ctx *cpu, tulle_ctx *gpu, device *d, const settings *s, const char *path,
                          tulle_type type, operands *o)
{
    suite_matrix m;
    int64_t widest = 1;
    for (int i = 0; i < s->widths; i++) widest = s->width[i] > widest ? s->width[i] : widest;
    static char name[64];
    *o = (operands){.name = name, .type = type, .size = type == TULLE_F64 ? 8 : 4};
    bool good = suite_load(cpu, path, TULLE_F64, &m);
    snprintf(name, sizeof name, "%s", m.name);
    if (good && tulle_csr_convert(cpu, &m.A, type, TULLE_I32, TULLE_I32, &o->own) != TULLE_OK) {
        printf("%s: %s\n", name, tulle_ctx_error(cpu));
        good = false;
    }
    suite_unload(&m);
    if (!good) return false;
    o->host = tulle_matrix_view(o->own);
    suite_random(tulle_matrix_values(o->own), type, o->host.nnz);
    size_t x_bytes = (size_t)(o->host.cols * widest) * o->size;
    size_t y_bytes = (size_t)(o->host.rows * widest) * o->size;
    o->x = malloc(x_bytes + 1);
    if (s->check) o->want = malloc(y_bytes + 1), o->got = malloc(y_bytes + 1), o->again = malloc(y_bytes + 1);
    if (!o->x || (s->check && (!o->want || !o->got || !o->again))) suite_stop("no memory");
    suite_random(o->x, type, o->host.cols * widest);
    if (tulle_csr_move(gpu, &o->host, TULLE_DEVICE, &o->there) != TULLE_OK)
        return printf("FAILED: %s: %s\n", name, tulle_ctx_error(gpu)), false;
    o->A = tulle_matrix_view(o->there);
    o->x_there = device_alloc(d, x_bytes);
    o->y_there = device_alloc(d, y_bytes);
    if (!o->x_there || !o->y_there || !device_put(d, o->x_there, o->x, x_bytes))
        return printf("FAILED: %s: too little memory on the device\n", name), false;
    return true;
}

static void operands_free(device *d, operands *o)
{
    device_free(d, o->x_there);
    device_free(d, o->y_there);
    tulle_matrix_free(o->there);
    tulle_matrix_free(o->own);
    free(o->x), free(o->want), free(o->got), free(o->again);
}

static tulle_dense dense_at(int64_t rows, int64_t n, void *values, tulle_type type, tulle_place place)
{
    return (tulle_dense){.rows = rows, .cols = n, .ld = n, .val_type = type, .order = TULLE_BY_ROWS,
                         .values = values, .place = place};
}

/* ---- the check of Y */

static double value_at(const void *v, tulle_type t, int64_t k)
{
    return t == TULLE_F64 ? ((const double *)v)[k] : (double)((const float *)v)[k];
}

/* All terms are positive, so the rounding error of a sum is at most (number of terms) * epsilon * sum. */
static bool is_right(const operands *o, int64_t n, double rounding, const char *who)
{
    const int32_t *ptr = o->host.row_ptr;
    double eps = o->type == TULLE_F64 ? 0x1p-53 : 0x1p-24;
    for (int64_t i = 0; i < o->host.rows; i++) {
        double allowed = rounding + eps * (2.0 * (double)(ptr[i + 1] - ptr[i]) + 4);
        for (int64_t k = i * n; k < (i + 1) * n; k++) {
            double want = value_at(o->want, o->type, k), got = value_at(o->got, o->type, k);
            if (fabs(got - want) <= allowed * want) continue;   /* false for NaN */
            printf("WRONG: %s, %" PRId64 " columns, %s, %s: (%" PRId64 ",%" PRId64 ") is %.9g, "
                   "should be %.9g\n", o->name, n, type_name(o->type), who, i, k - i * n, got, want);
            return false;
        }
    }
    return true;
}

/* ---- cuSPARSE */

double spmm_cusparse(device *d, const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y, int runs,
                     const char **name, char *why, size_t bytes)
{
    double best = 0, ms[MAX_RUNS];
    *name = "";
    for (int w = 0; w < CUSPARSE_SPMM_WAYS; w++) {
        cusparse_spmm *p = cusparse_spmm_open(A, X, Y, device_index(d), device_stream(d), w, why, bytes);
        if (!p) continue;
        if (!device_times(d, cusparse_spmm_run, p, WARM, runs, ms))
            snprintf(why, bytes, "cusparseSpMM failed");
        else {
            double m = suite_median(ms, runs);
            if (best == 0 || m < best) best = m, *name = cusparse_spmm_name(w);
        }
        cusparse_spmm_close(p);
    }
    return best;
}

/* Its Y is compared for the fewest columns only. */
static void time_cusparse(device *d, const settings *s, const operands *o, int64_t n, bool *there, result *r)
{
    char why[256] = "";
    tulle_dense X = dense_at(o->host.cols, n, o->x_there, o->type, TULLE_DEVICE);
    tulle_dense Y = dense_at(o->host.rows, n, o->y_there, o->type, TULLE_DEVICE);
    if (!*there) return;
    if (!device_has_clock(d)) {
        printf("cuSPARSE is not measured: %s is not on CUDA\n", s->device);
        *there = false;
        return;
    }
    r->cusparse_ms = spmm_cusparse(d, &o->A, &X, &Y, s->runs, &r->cusparse_name, why, sizeof why);
    if (r->cusparse_ms == 0) {
        printf("%s: no time of cuSPARSE: %s\n", o->name, why);
        *there = false;
    } else if (s->check && n == s->width[0]
               && device_get(d, o->got, o->y_there, (size_t)(o->host.rows * n) * o->size)) {
        is_right(o, n, 0, "cuSPARSE");
    }
}

/* ---- tulle */

typedef struct job { tulle_ctx *ctx; tulle_spmm_plan *plan; tulle_dense X, Y; } job;

static bool run_plan(void *user)
{
    job *j = user;
    return tulle_spmm_plan_run(j->plan, NULL, &j->X, NULL, &j->Y) == TULLE_OK;
}

static void print_trace(void *user, const char *line)
{
    (void)user;
    printf("    %s\n", line);
}

/* False: the product was wrong or failed, and a message was printed. */
static bool measure(tulle_ctx *gpu, device *d, const settings *s, const operands *o, int64_t n, int way,
                    result *r)
{
    double ms[MAX_RUNS];
    size_t bytes = (size_t)(o->host.rows * n) * o->size;
    bool good = false;
    job j = {.ctx = gpu, .X = dense_at(o->host.cols, n, o->x_there, o->type, TULLE_DEVICE),
             .Y = dense_at(o->host.rows, n, o->y_there, o->type, TULLE_DEVICE)};
    tulle_spmm_options options = {.policy = ways[way].policy, .trust_inputs = 1, .allow_tf32 = ways[way].tf32,
                                  .time_stages = !device_has_clock(d)};
    tulle_ctx_set_trace(gpu, s->trace ? print_trace : NULL, NULL);
    if (tulle_spmm_plan_create(gpu, &o->A, &options, &j.plan) != TULLE_OK) goto failed; /* loads kernels */
    device_wait(d);
    tulle_spmm_plan_free(j.plan);
    j.plan = NULL;
    tulle_ctx_set_trace(gpu, NULL, NULL);
    double start = suite_now();
    if (tulle_spmm_plan_create(gpu, &o->A, &options, &j.plan) != TULLE_OK) goto failed;
    device_wait(d);
    r->plan_ms = 1e3 * (suite_now() - start);
    tulle_ctx_set_trace(gpu, s->trace ? print_trace : NULL, NULL);
    if (!device_spoil(d, o->y_there, bytes) || !run_plan(&j)) goto failed;
    tulle_ctx_set_trace(gpu, NULL, NULL);
    if (s->check) {
        if (!device_get(d, o->got, o->y_there, bytes)) goto failed;
        if (!is_right(o, n, ways[way].rounding, ways[way].name)) goto done;
        if (!device_spoil(d, o->y_there, bytes) || !run_plan(&j)
            || !device_get(d, o->again, o->y_there, bytes))
            goto failed;
        if (memcmp(o->got, o->again, bytes) != 0) {
            printf("WRONG: %s, %" PRId64 " columns, %s, %s: a second run gave other bits\n", o->name, n,
                   type_name(o->type), ways[way].name);
            goto done;
        }
    }
    if (device_has_clock(d)) {
        if (!device_times(d, run_plan, &j, WARM, s->runs, ms)) goto failed;
    } else {
        for (int i = -1; i < s->runs; i++) {
            tulle_stats stats;
            if (!run_plan(&j)) goto failed;
            tulle_ctx_stats(gpu, &stats);
            if (i >= 0) ms[i] = 1e3 * stats.sec_numeric;
        }
    }
    r->ms = suite_median(ms, s->runs);
    r->least = ms[0];
    good = true;
    goto done;
failed:
    printf("FAILED: %s, %" PRId64 " columns, %s, %s: %s\n", o->name, n, type_name(o->type), ways[way].name,
           tulle_ctx_error(gpu));
done:
    tulle_ctx_set_trace(gpu, NULL, NULL);
    device_wait(d);
    tulle_spmm_plan_free(j.plan);
    return good;
}

/* ---- output */

/* Bytes that must be moved: A once, every row of X once, Y once. */
static double traffic(const operands *o, int64_t n)
{
    return (double)o->host.nnz * (double)(4 + o->size) + 4.0 * (double)(o->host.rows + 1)
         + (double)((o->host.rows + o->host.cols) * n) * (double)o->size;
}

static void number(double v, const char *format)
{
    if (v > 0) printf(format, v);
    else printf("%9s", "-");
}

static void print_line(const operands *o, int64_t n, int way, const result *r, const anchor *a)
{
    printf("%-20s %-5s %4" PRId64 " %s %9.4f", o->name, ways[way].name, n, type_name(o->type), r->ms);
    number(a ? a->best : 0, " %8.4f");
    number(a ? a->best / r->ms : 0, " %8.3f");
    number(r->cusparse_ms, " %8.4f");
    number(r->cusparse_ms / r->ms, " %8.3f");
    number(a ? a->cusparse / r->ms : 0, " %8.3f");
    printf(" %8.1f %9.1f %8.3f  %s %s\n", 1e-6 * traffic(o, n) / r->ms,
           2e-6 * (double)(o->host.nnz * n) / r->ms, r->plan_ms,
           a ? a->peer : "", r->cusparse_ms > 0 ? r->cusparse_name : "");
    if (ways[way].tf32 && a && a->tf32 > 0)
        printf("%41s %8.4f %8.3f  %s\n", "in TF32", a->tf32, a->tf32 / r->ms, a->tf32_peer);
    fflush(stdout);
}

static void write_piece(const settings *s, const operands *o, int64_t n, int way, const result *r,
                        const anchor *a)
{
    FILE *f = s->pieces;
    if (!f) return;
    fprintf(f, "{\"section\": \"spmm\", \"driver\": \"%.*s\", \"matrix\": \"%s\", \"columns\": %" PRId64
            ", \"policy\": \"%s\", \"type\": \"%s\", \"ms\": %.5g, \"ms_min\": %.5g, \"ms_plan\": %.4g, "
            "\"gb_per_s\": %.4g, \"cusparse_ms\": ", (int)strcspn(s->device, ":"), s->device, o->name, n,
            ways[way].name, type_name(o->type), r->ms, r->least, r->plan_ms, 1e-6 * traffic(o, n) / r->ms);
    if (r->cusparse_ms > 0)
        fprintf(f, "%.5g, \"cusparse_algorithm\": \"%s\"", r->cusparse_ms, r->cusparse_name);
    else fputs("null", f);
    if (a)
        fprintf(f, ", \"anchor_best_ms\": %.5g, \"anchor_best\": \"%s\", \"anchor_cusparse_ms\": %.5g",
                a->best, a->peer, a->cusparse);
    if (a && a->tf32 > 0)
        fprintf(f, ", \"anchor_tf32_ms\": %.5g, \"anchor_tf32\": \"%s\"", a->tf32, a->tf32_peer);
    fprintf(f, ", \"rows\": %" PRId64 ", \"cols\": %" PRId64 ", \"a_nnz\": %" PRId64 ", \"runs\": %d}\n",
            o->host.rows, o->host.cols, o->host.nnz, s->runs);
    fflush(f);
}

static void count_case(const settings *s, const operands *o, int type, int width, int way, const result *r,
                       const anchor *a, tally *t)
{
    char name[96];
    snprintf(name, sizeof name, "%s %" PRId64 " %s", o->name, s->width[width], type_name(o->type));
    suite_compare(&t->to[TO_BEST], a ? a->best : 0, r->ms, name);
    suite_compare(&t->to[TO_CUSPARSE], a ? a->cusparse : 0, r->ms, name);
    suite_compare(&t->to[TO_NOW], r->cusparse_ms, r->ms, name);
    suite_compare(&t->to[TO_TF32], a && ways[way].tf32 ? a->tf32 : 0, r->ms, name);
    suite_compare(&t->part[type][width], a ? a->best : 0, r->ms, name);
    t->slow += a && a->best / r->ms < 0.9;
    t->done++;
}

static void print_tally(const settings *s, int way, const tally *t)
{
    printf("%s on %s: %d cases, %d failed, %d below 0.9 of the best\n", ways[way].name, s->device, t->done,
           t->failed, t->slow);
    for (int i = 0; i < RIVALS; i++)
        if (t->to[i].count > 0)
            printf("    against %s: geomean=%.3f min=%.3f (%s) cases=%d\n", rivals[i],
                   suite_geomean(&t->to[i]), exp(t->to[i].worst), t->to[i].worst_name, t->to[i].count);
    for (int k = 0; k < s->types; k++)
        for (int w = 0; w < s->widths; w++)
            if (t->part[k][w].count > 0)
                printf("    %s, %" PRId64 " columns, against the best: geomean=%.3f min=%.3f (%s)\n",
                       type_name(s->type[k]), s->width[w], suite_geomean(&t->part[k][w]),
                       exp(t->part[k][w].worst), t->part[k][w].worst_name);
    if (!s->pieces || t->done == 0) return;
    fprintf(s->pieces, "{\"section\": \"measure\", \"name\": \"spmm suite %s\", \"driver\": \"%.*s\", "
            "\"cases\": %d, \"failed\": %d, \"below_0.9\": %d", ways[way].name, (int)strcspn(s->device, ":"),
            s->device, t->done, t->failed, t->slow);
    for (int i = 0; i < RIVALS; i++)
        if (t->to[i].count > 0)
            fprintf(s->pieces, ", \"%s_geomean\": %.4g, \"%s_min\": %.4g, \"%s_min_at\": \"%s\"", rivals[i],
                    suite_geomean(&t->to[i]), rivals[i], exp(t->to[i].worst), rivals[i], t->to[i].worst_name);
    fputs("}\n", s->pieces);
    fflush(s->pieces);
}

/* ---- the run over all matrices */

static int read_anchors(const char *path, anchor *list, int room)
{
    char line[512];
    int count = 0;
    FILE *f = path ? fopen(path, "r") : NULL;
    if (path && !f) suite_stop("%s cannot be opened", path);
    while (f && count < room && fgets(line, sizeof line, f)) {
        anchor *a = &list[count];
        *a = (anchor){.tf32 = 0};
        int got = sscanf(line, "%63[^,],%" SCNd64 ",%7[^,],%lf,%63[^,],%lf,%31[^,\n],%lf,%63[^,\n]", a->name,
                         &a->columns, a->type,
                         &a->best, a->peer, &a->cusparse, a->variant, &a->tf32, a->tf32_peer);
        if (got >= 7) count++;
    }
    if (f) fclose(f);
    return count;
}

static const anchor *find(const anchor *list, int count, const char *name, int64_t columns, tulle_type type)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) != 0) continue;
        if (columns == 0) return &list[i];
        if (list[i].columns == columns && strcmp(list[i].type, type_name(type)) == 0) return &list[i];
    }
    return NULL;
}

/* Measures one matrix in one type; returns the number of wrong cases. */
static int matrix(tulle_ctx *cpu, tulle_ctx *gpu, device *d, const settings *s, const char *path, int type,
                  const anchor *list, int known, bool *rival, tally *all)
{
    operands o;
    int wrong = 0;
    if (!operands_make(cpu, gpu, d, s, path, s->type[type], &o)) {
        operands_free(d, &o);
        return 1;
    }
    for (int w = 0; w < s->widths; w++) {
        int64_t n = s->width[w];
        result r = {.cusparse_name = ""};
        const anchor *a = find(list, known, o.name, n, o.type);
        if (s->check) {
            tulle_dense X = dense_at(o.host.cols, n, o.x, o.type, TULLE_HOST);
            tulle_dense Y = dense_at(o.host.rows, n, o.want, o.type, TULLE_HOST);
            if (tulle_spmm(cpu, NULL, &o.host, &X, NULL, &Y, NULL) != TULLE_OK)
                suite_stop("%s: %s", o.name, tulle_ctx_error(cpu));
        }
        time_cusparse(d, s, &o, n, rival, &r);
        for (int k = 0; k < s->ways; k++) {
            int way = s->way[k];
            if (ways[way].tf32 && o.type != TULLE_F32) continue;
            if (measure(gpu, d, s, &o, n, way, &r)) {
                print_line(&o, n, way, &r, a);
                write_piece(s, &o, n, way, &r, a);
                count_case(s, &o, type, w, way, &r, a, &all[way]);
            } else {
                all[way].failed++;
                wrong++;
            }
        }
    }
    operands_free(d, &o);
    return wrong;
}

static int all_matrices(const settings *s)
{
    static anchor list[MAX_ANCHORS];
    tally all[WAYS] = {{.done = 0}};
    char why[256] = "", name[64];
    int known = read_anchors(s->anchors, list, MAX_ANCHORS), wrong = 0;
    tulle_ctx *cpu = suite_open("cpu"), *gpu = suite_open(s->device);
    device *d = device_open(gpu, why, sizeof why);
    if (!d) suite_stop("%s: %s", s->device, why);
    bool rival = s->cusparse;
    printf("%-20s %-5s %4s %s %9s %8s %8s %8s %8s %8s %8s %9s %8s\n", "matrix", "way", "N", "typ", "ms",
           "best", "ratio", "cuSPARSE", "ratio", "r.anchor", "GB/s", "GFLOPS", "plan ms");
    for (int m = 0; m < s->matrices.count; m++) {
        suite_name(s->matrices.path[m], name, sizeof name);
        if (known && strchr(s->matrices.path[m], '/') && !find(list, known, name, 0, TULLE_F32)) continue;
        for (int t = 0; t < s->types; t++)
            wrong += matrix(cpu, gpu, d, s, s->matrices.path[m], t, list, known, &rival, all);
    }
    for (int w = 0; w < WAYS; w++)
        if (all[w].done + all[w].failed > 0) print_tally(s, w, &all[w]);
    device_close(d);
    tulle_ctx_free(gpu);
    tulle_ctx_free(cpu);
    return wrong ? 1 : 0;
}

/* ---- the command line */

static void set_lists(settings *s, const char *option, char *words)
{
    int count = 0;
    for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        if (count == MAX_LIST) suite_stop("%s has more than %d words", option, MAX_LIST);
        if (strcmp(option, "--ways") == 0) {
            int w = 0;
            while (w < WAYS && strcmp(word, ways[w].name) != 0) w++;
            if (w == WAYS) suite_stop("there is no way %s", word);
            s->way[count++] = w;
        } else if (strcmp(option, "--types") == 0) {
            s->type[count++] = suite_type(word);
            if (s->type[count - 1] > TULLE_F64) suite_stop("%s is not measured", word);
        } else {
            s->width[count++] = atoll(word);
            if (s->width[count - 1] < 1) suite_stop("%s columns", word);
        }
    }
    if (count == 0) suite_stop("%s is empty", option);
    *(option[2] == 'w' ? &s->ways : option[2] == 't' ? &s->types : &s->widths) = count;
}

int main(int argc, char **argv)
{
    settings s = {.device = "cuda:0", .runs = 20, .ways = 1, .types = 2, .type = {TULLE_F32, TULLE_F64},
                  .widths = 3, .width = {8, 32, 128}, .check = true, .cusparse = true};
    char *list[3] = {NULL};
    const suite_option options[] = {
        {"--ways", .list = &list[0]}, {"--types", .list = &list[1]}, {"--columns", .list = &list[2]},
        {"--device", .word = &s.device}, {"--runs", .runs = &s.runs}, {"--anchors", .word = &s.anchors},
        {"--pieces", .file = &s.pieces}, {"--only", .word = &s.only}, {"--no-check", .off = &s.check},
        {"--no-cusparse", .off = &s.cusparse}, {"--trace", .on = &s.trace}, {"--paper", .on = &s.paper}};
    suite_program = "bench_gpu_spmm";
    suite_options(argc, argv, options, sizeof options / sizeof *options, &s.only, &s.matrices);
    for (int i = 0; i < 3; i++)
        if (list[i]) set_lists(&s, options[i].name, list[i]);
    if (!s.paper && s.matrices.count == 0) suite_stop("no matrices");
    int code = s.paper ? spmm_paper(s.device, &s.matrices, s.pieces) : all_matrices(&s);
    if (s.pieces && fclose(s.pieces) != 0) suite_stop("the pieces could not be written");
    return code;
}
