/* SPDX-License-Identifier: MIT
 *
 * bench_gpu.c - C = A*A (A*A^T where A is rectangular) on a GPU over many matrices, in one process.
 *
 *     bench_gpu [OPTIONS] FOLDER-FILE-OR-RECIPE...
 *
 *     --device NAME       cuda:0 (default), opencl:1, ...
 *     --ways LIST         speck (default), auto, bhsparse, regsort, regmerge, reghash, delta; speck+hash and
 *                         speck+dense: all rows by that accumulator; speck+balance, speck+plain: load
 *                         balancing always, never; auto+plain: motifs never; auto+single: bundles of rows
 *                         with the same columns never; delta+balance, delta+plain: bins always, never
 *     --type f64          f32, f64, cf32, cf64
 *     --runs N            at least this many (7), after 2 warm-ups
 *     --anchors FILE      recorded times of other codes, to compare with: lines
 *                         "matrix,products,best_peer_ms,best_peer,best_cusparse_ms,original_speck_ms,..."
 *     --pieces FILE       appends one JSON object per product, for record.c
 *     --only PART         of a folder, only matrices whose name contains PART, or one of several parts with
 *                         commas
 *     --no-check --no-cusparse --trace
 *     --plans             also a plan's run with values on the device, and its ratio to the whole product
 *     --first             only the first product of a new process: seconds from start to C
 *     --small             only matrices with at most 20,000 products, in microseconds
 *     --host              from host to host instead, with policy auto (host.c)
 *
 * A is in device memory and not checked, as for the peers; C stays there.  Timed: the wall clock of one call
 * of tulle_multiply, with the allocation of C, without freeing it.  The median counts.  One more run times
 * the stages, another one the product with the check of A.  Values are integers, so that sums are exact in
 * any order: the first C of each matrix and way is copied to the host and must be bitwise equal to the CPU
 * engine's (f32, cf32: its pattern must be equal, and it must pass tulle_product_check). */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cusparse.h"
#include "host.h"
#include "suite.h"

enum { MAX_RUNS = SUITE_RUNS, MAX_WAYS = 8, WARM = 2, SMALL_PRODUCTS = 20000 };

typedef struct settings {
    const char *device, *type, *anchors, *only;
    FILE       *pieces;
    int         runs, ways;
    bool        check, cusparse, first, small, trace, plans, host;
    const char *way[MAX_WAYS];
    suite       matrices;
} settings;

/* A way that needs an environment variable, which is set while its own context is created. */
static const struct { const char *name, *policy, *accumulator, *variable, *value; } known_ways[] = {
    {"speck", "speck", NULL, NULL, NULL},        {"auto", "auto", NULL, NULL, NULL},
    {"speck+hash", "speck", "hash", NULL, NULL}, {"bhsparse", "bhsparse", NULL, NULL, NULL},
    {"regsort", "regsort", NULL, NULL, NULL},    {"regmerge", "regmerge", NULL, NULL, NULL},
    {"reghash", "reghash", NULL, NULL, NULL},    {"speck+dense", "speck", "dense", NULL, NULL},
    {"speck+balance", "speck", NULL, "TULLE_GPU_BALANCE", "on"},
    {"speck+plain", "speck", NULL, "TULLE_GPU_BALANCE", "off"},
    {"auto+plain", "auto", NULL, "TULLE_GPU_MOTIFS", "off"},
    {"auto+single", "auto", NULL, "TULLE_GPU_TWINS", "off"},
    {"delta", "delta", NULL, NULL, NULL},
    {"delta+balance", "delta", NULL, "TULLE_GPU_BALANCE", "on"},
    {"delta+plain", "delta", NULL, "TULLE_GPU_BALANCE", "off"},
};

enum { WAYS = sizeof known_ways / sizeof *known_ways };

/* The results of one way over all matrices. */
typedef struct tally {
    suite_ratio to[3];                      /* original spECK, cuSPARSE's anchor, cuSPARSE now */
    double      memory;
    char        memory_name[64];
    int         done, failed;
} tally;

typedef struct anchor { char name[64]; double best_peer, cusparse, speck; } anchor;

typedef struct problem {
    suite_matrix  m;
    const char   *operation, *name;
    tulle_matrix *own_b;                    /* A^T                           */
    tulle_csr     A, B;                     /* on the host                   */
    int64_t       products;
    tulle_matrix *c_host;                   /* by the CPU engine             */
    double        cusparse_ms;              /* its best in this run, 0: none */
    const char   *cusparse_name;
} problem;

/* ---- matrices */

static bool problem_load(tulle_ctx *cpu, const char *path, const settings *s, problem *p)
{
    tulle_matrix *T = NULL;
    memset(p, 0, sizeof *p);
    if (!suite_load(cpu, path, suite_type(s->type), &p->m)) return false;
    p->name = p->m.name;
    p->A = p->m.A;
    p->operation = p->A.rows == p->A.cols ? "A*A" : "A*A^T";
    p->B = p->A;
    if (p->A.rows != p->A.cols) {
        if (tulle_csr_transpose(cpu, &p->A, TULLE_TRANSPOSE, &T) != TULLE_OK)
            return fprintf(stderr, "%s: %s\n", path, tulle_ctx_error(cpu)), false;
        p->own_b = T;
        p->B = tulle_matrix_view(T);
    }
    if (s->check && tulle_multiply(cpu, &p->A, &p->B, NULL, &p->c_host) != TULLE_OK)
        return fprintf(stderr, "%s: %s\n", path, tulle_ctx_error(cpu)), false;
    return true;
}

static void problem_free(problem *p)
{
    suite_unload(&p->m);
    tulle_matrix_free(p->own_b);
    tulle_matrix_free(p->c_host);
}

/* ---- one product on the device */

static bool is_right(tulle_ctx *gpu, tulle_ctx *cpu, const problem *p, const tulle_csr *there,
                     const char *way)
{
    tulle_matrix *C = NULL;
    double error = 0;
    if (tulle_csr_move(gpu, there, TULLE_HOST, &C) != TULLE_OK)
        return printf("WRONG: %s, %s: %s\n", p->name, way, tulle_ctx_error(gpu)), false;
    tulle_csr c = tulle_matrix_view(C), w = tulle_matrix_view(p->c_host);
    size_t ptr = c.ptr_type == TULLE_I32 ? 4 : 8, idx = c.idx_type == TULLE_I32 ? 4 : 8;
    bool right = c.rows == w.rows && c.nnz == w.nnz && c.ptr_type == w.ptr_type && c.idx_type == w.idx_type
              && memcmp(c.row_ptr, w.row_ptr, (size_t)(c.rows + 1) * ptr) == 0
              && memcmp(c.col_idx, w.col_idx, (size_t)c.nnz * idx) == 0;
    if (!right)
        printf("WRONG: %s, %s: another pattern than the CPU's (%" PRId64 " entries, %" PRId64 ")\n",
               p->name, way,
                       c.nnz, w.nnz);
    bool exact = c.val_type == TULLE_F64 || c.val_type == TULLE_CF64;
    size_t value = c.val_type == TULLE_F64 ? 8 : 16;
    if (right && exact && memcmp(c.values, w.values, (size_t)c.nnz * value) != 0) {
        printf("WRONG: %s, %s: other values than the CPU's\n", p->name, way);
        right = false;
    }
    if (right && !exact && tulle_product_check(cpu, &p->A, &p->B, &c, NULL, &error) != TULLE_OK) {
        printf("WRONG: %s, %s: %s\n", p->name, way, tulle_ctx_error(cpu));
        right = false;
    }
    tulle_matrix_free(C);
    return right;
}

/* cuSPARSE on the same device in the same run; if it cannot run, the reason is printed once. */
static bool time_cusparse(tulle_ctx *gpu, const settings *s, problem *p)
{
    tulle_matrix *a = NULL, *b = NULL;
    cusparse_result r = {.best = -1};
    if (strncmp(s->device, "cuda", 4) != 0)
        return printf("cuSPARSE is not measured: %s is not on CUDA\n", s->device), false;
    int index = s->device[4] == ':' ? atoi(s->device + 5) : 0;
    if (tulle_csr_move(gpu, &p->A, TULLE_DEVICE, &a) != TULLE_OK
        || (p->own_b && tulle_csr_move(gpu, &p->B, TULLE_DEVICE, &b) != TULLE_OK)) {
        snprintf(r.why, sizeof r.why, "%.200s", tulle_ctx_error(gpu));
    } else {
        tulle_csr va = tulle_matrix_view(a), vb = b ? tulle_matrix_view(b) : va;
        tulle_ctx_trim(gpu);
        cusparse_time(&va, &vb, index, 1, p->products > 100000000 ? 3 : s->runs, &r);
    }
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    p->cusparse_ms = r.best >= 0 ? r.line[r.best].ms : 0;
    p->cusparse_name = r.best >= 0 ? r.line[r.best].name : "";
    if (r.best < 0) printf("%s: no time of cuSPARSE: %s\n", p->name, r.why[0] ? r.why : r.line[0].why);
    return r.best >= 0;
}

typedef struct timing {
    double      ms, least, checked_ms, plan_ms;
    int         runs;
    tulle_stats stats, staged;
    uint64_t    a_bytes, c_bytes;
} timing;

static void print_trace(void *user, const char *line)
{
    (void)user;
    printf("    %s\n", line);
}

/* Runs of a plan, with the values of A, B and C on the device. */
static bool measure_plan(tulle_ctx *gpu, const tulle_csr *A, const tulle_csr *B, const char *policy,
                         timing *t)
{
    tulle_plan *plan = NULL;
    tulle_matrix *C = NULL;
    double sec[MAX_RUNS], total = 0;
    int runs = 0;
    tulle_options o = {.policy = policy, .c_place = TULLE_DEVICE, .trust_inputs = 1};
    bool good = tulle_plan_create(gpu, A, B, &o, &plan) == TULLE_OK
             && tulle_plan_multiply(plan, A->values, B->values, &C) == TULLE_OK;
    void *values = (void *)(uintptr_t)tulle_matrix_view(C).values;
    for (int i = -WARM; good && i < MAX_RUNS && (i < 7 || total < 0.05); i++) {
        double start = suite_now();
        good = tulle_plan_run(plan, A->values, B->values, values) == TULLE_OK;
        if (i < 0) continue;
        sec[i] = suite_now() - start;
        total += sec[i];
        runs = i + 1;
    }
    if (good) t->plan_ms = 1e3 * suite_median(sec, runs);
    tulle_matrix_free(C);
    tulle_plan_free(plan);
    return good;
}

/* Warm-ups and runs; sets *t.  False: the product was wrong or failed, and a message was printed. */
static bool measure(tulle_ctx *gpu, tulle_ctx *cpu, const settings *s, const problem *p, int way, timing *t)
{
    tulle_matrix *a = NULL, *b = NULL, *C = NULL;
    double sec[MAX_RUNS], total = 0;
    bool good = false;
    tulle_options o = {.policy = known_ways[way].policy, .accumulator = known_ways[way].accumulator,
                       .c_place = TULLE_DEVICE, .trust_inputs = 1};
    memset(t, 0, sizeof *t);
    if (tulle_csr_move(gpu, &p->A, TULLE_DEVICE, &a) != TULLE_OK) goto failed;
    if (p->own_b && tulle_csr_move(gpu, &p->B, TULLE_DEVICE, &b) != TULLE_OK) goto failed;
    tulle_csr va = tulle_matrix_view(a), vb = b ? tulle_matrix_view(b) : va;
    t->a_bytes = suite_bytes(&va) + (b ? suite_bytes(&vb) : 0);
    for (int i = -WARM; i < MAX_RUNS && (i < s->runs || total < 0.05); i++) {
        tulle_ctx_set_trace(gpu, s->trace && i == -WARM ? print_trace : NULL, NULL);
        double start = suite_now();
        if (tulle_multiply(gpu, &va, &vb, &o, &C) != TULLE_OK) goto failed;
        double seconds = suite_now() - start;
        tulle_csr c = tulle_matrix_view(C);
        if (i == -WARM && s->check && !is_right(gpu, cpu, p, &c, known_ways[way].name)) goto done;
        t->c_bytes = suite_bytes(&c);
        tulle_matrix_free(C);
        C = NULL;
        if (i < 0) continue;
        sec[i] = seconds;
        total += seconds;
        t->runs = i + 1;
    }
    tulle_ctx_stats(gpu, &t->stats);
    t->ms = 1e3 * suite_median(sec, t->runs);
    t->least = 1e3 * sec[0];
    o.trust_inputs = 0;
    for (int i = 0; i < 6; i++) {
        double start = suite_now();
        if (tulle_multiply(gpu, &va, &vb, &o, &C) != TULLE_OK) goto failed;
        sec[i] = suite_now() - start;
        tulle_matrix_free(C);
        C = NULL;
    }
    t->checked_ms = 1e3 * suite_median(sec + 1, 5);
    o.trust_inputs = o.time_stages = 1;
    for (int i = 0; i < 2; i++) {
        if (tulle_multiply(gpu, &va, &vb, &o, &C) != TULLE_OK) goto failed;
        tulle_matrix_free(C);
        C = NULL;
    }
    tulle_ctx_stats(gpu, &t->staged);
    if (s->plans && !measure_plan(gpu, &va, &vb, o.policy, t)) goto failed;
    good = true;
    goto done;
failed:
    printf("FAILED: %s, %s: %s\n", p->name, known_ways[way].name, tulle_ctx_error(gpu));
done:
    tulle_matrix_free(C);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return good;
}

/* ---- output */

static void write_piece(const settings *s, const problem *p, int way, const timing *t)
{
    FILE *f = s->pieces;
    if (!f) return;
    fprintf(f, "{\"section\": \"product\", \"driver\": \"%.*s\", \"matrix\": \"%s\", \"operation\": \"%s\", "
            "\"policy\": \"%s\", \"type\": \"%s\", \"ms\": %.5g, \"ms_min\": %.5g, \"ms_checked\": %.5g, "
            "\"stages\": {", (int)strcspn(s->device, ":"), s->device, p->name, p->operation,
            known_ways[way].name, s->type, t->ms, t->least, t->checked_ms);
    for (int i = 0; i < t->staged.stages; i++)
        fprintf(f, "%s\"%s\": %.4g", i ? ", " : "", t->staged.stage[i].name,
                1e3 * t->staged.stage[i].seconds);
    fprintf(f, "}, \"cusparse_ms\": ");
    if (p->cusparse_ms > 0)
        fprintf(f, "%.5g, \"cusparse_algorithm\": \"%s\"", p->cusparse_ms, p->cusparse_name);
    else fputs("null", f);
    fprintf(f, ", \"products\": %" PRId64 ", \"a_nnz\": %" PRId64 ", \"c_nnz\": %" PRId64, t->stats.products,
            p->A.nnz, t->stats.c_nnz);
    if (t->plan_ms > 0) fprintf(f, ", \"plan_ms\": %.5g", t->plan_ms);
    fprintf(f, ", \"peak_bytes\": %" PRIu64 ", \"a_bytes\": %" PRIu64 ", \"c_bytes\": %" PRIu64
            ", \"waits\": %d, \"runs\": %d}\n", t->stats.peak_bytes, t->a_bytes, t->c_bytes, t->stats.waits,
            t->runs);
    fflush(f);
}

static void number(double v, const char *format)
{
    if (v > 0) printf(format, v);
    else printf("%9s", "-");
}

static void print_line(const problem *p, int way, const timing *t, const anchor *a, tally *all)
{
    double memory = (double)(t->a_bytes + t->stats.peak_bytes) / (double)(t->a_bytes + t->c_bytes);
    printf("%-20s %-14s %11" PRId64 " %9.4f %9.4f", p->name, known_ways[way].name, t->stats.products, t->ms,
           t->checked_ms);
    number(a ? a->speck : 0, " %8.4f");
    number(a ? a->speck / t->ms : 0, " %8.2f");
    number(p->cusparse_ms, " %8.4f");
    number(p->cusparse_ms / t->ms, " %8.2f");
    number(a ? a->cusparse / t->ms : 0, " %8.2f");
    number(a ? a->best_peer / t->ms : 0, " %8.2f");
    printf(" %6.3f %2d |", memory, t->stats.waits);
    if (t->plan_ms > 0) printf(" plan %.4f (%.2f) |", t->plan_ms, t->ms / t->plan_ms);
    for (int i = 0; i < t->stats.shares; i++)
        printf(" %s %.1f%%", t->stats.share[i].name,
               100.0 * (double)t->stats.share[i].rows / (double)(p->A.rows > 0 ? p->A.rows : 1));
    printf(" |");
    for (int i = 0; i < t->staged.stages; i++)
        printf(" %s %.3f", t->staged.stage[i].name, 1e3 * t->staged.stage[i].seconds);
    printf("\n");
    fflush(stdout);
    suite_compare(&all->to[0], a ? a->speck : 0, t->ms, p->name);
    suite_compare(&all->to[1], a ? a->cusparse : 0, t->ms, p->name);
    suite_compare(&all->to[2], p->cusparse_ms, t->ms, p->name);
    if (memory > all->memory) {
        all->memory = memory;
        snprintf(all->memory_name, sizeof all->memory_name, "%s", p->name);
    }
}

static void print_tally(const settings *s, int way, const tally *t)
{
    static const char *const what[] = {"original_speck", "cusparse_anchor", "cusparse_now"};
    printf("%s on %s: %d matrices, %d failed, most memory %.3f of A+C (%s)\n", known_ways[way].name,
           s->device, t->done, t->failed, t->memory, t->memory_name);
    for (int i = 0; i < 3; i++)
        if (t->to[i].count > 0)
            printf("    against %s: geomean=%.3f min=%.3f (%s) matrices=%d\n", what[i],
                   suite_geomean(&t->to[i]), exp(t->to[i].worst), t->to[i].worst_name, t->to[i].count);
    if (!s->pieces || t->done == 0) return;
    fprintf(s->pieces, "{\"section\": \"measure\", \"name\": \"suite %s %s\", \"driver\": \"%.*s\", "
            "\"matrices\": %d, \"failed\": %d, \"memory_max\": %.4g", known_ways[way].name, s->type,
            (int)strcspn(s->device, ":"), s->device, t->done, t->failed, t->memory);
    for (int i = 0; i < 3; i++)
        if (t->to[i].count > 0)
            fprintf(s->pieces, ", \"%s_geomean\": %.4g, \"%s_min\": %.4g, \"%s_min_at\": \"%s\"", what[i],
                    suite_geomean(&t->to[i]), what[i], exp(t->to[i].worst), what[i], t->to[i].worst_name);
    fputs("}\n", s->pieces);
    fflush(s->pieces);
}

/* ---- the two short measurements */

/* The time from the start of main() to the first C of a process that has not used the device before. */
static int first_product(const settings *s, double start)
{
    tulle_ctx *ctx = suite_open(s->device);
    double opened = suite_now() - start;
    tulle_matrix *A = NULL, *C = NULL;
    if (tulle_gallery(ctx, "poisson2d:30", &A) != TULLE_OK) suite_stop("%s", tulle_ctx_error(ctx));
    tulle_csr a = tulle_matrix_view(A);
    tulle_options o = {.policy = "speck"};
    if (tulle_multiply(ctx, &a, &a, &o, &C) != TULLE_OK) suite_stop("%s", tulle_ctx_error(ctx));
    double seconds = suite_now() - start;
    printf("first product on %s: %.3f s, of which the context %.3f s\n", s->device, seconds, opened);
    if (s->pieces)
        fprintf(s->pieces, "{\"section\": \"measure\", \"name\": \"first product\", \"driver\": \"%.*s\", "
                "\"seconds\": %.4g, \"seconds_context\": %.4g}\n", (int)strcspn(s->device, ":"), s->device,
                seconds, opened);
    tulle_matrix_free(A);
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
    return 0;
}

static int small_products(const settings *s)
{
    static const char *const recipes[] = {"tridiagonal:2000", "poisson2d:28", "er:800,per_row=4",
                                          "arrow:120"};
    tulle_ctx *ctx = suite_open(s->device);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        tulle_matrix *A = NULL, *there = NULL;
        double sec[MAX_RUNS], us[2];
        tulle_stats stats;
        if (tulle_gallery(ctx, recipes[i], &A) != TULLE_OK) suite_stop("%s", tulle_ctx_error(ctx));
        tulle_csr a = tulle_matrix_view(A);
        if (tulle_csr_move(ctx, &a, TULLE_DEVICE, &there) != TULLE_OK) suite_stop("%s", tulle_ctx_error(ctx));
        tulle_csr va = tulle_matrix_view(there);
        for (int trusted = 0; trusted <= 1; trusted++) {
            tulle_options o = {.policy = "speck", .c_place = TULLE_DEVICE, .trust_inputs = trusted};
            for (int k = -20; k < MAX_RUNS; k++) {
                tulle_matrix *C = NULL;
                double start = suite_now();
                if (tulle_multiply(ctx, &va, &va, &o, &C) != TULLE_OK) suite_stop("%s", tulle_ctx_error(ctx));
                if (k >= 0) sec[k] = suite_now() - start;
                tulle_matrix_free(C);
            }
            us[trusted] = 1e6 * suite_median(sec, MAX_RUNS);
        }
        tulle_ctx_stats(ctx, &stats);
        printf("%-18s %6" PRId64 " products: %.1f us, with the check of A %.1f us%s\n", recipes[i],
               stats.products, us[1], us[0], stats.products > SMALL_PRODUCTS ? " (not small)" : "");
        if (s->pieces)
            fprintf(s->pieces,
                    "{\"section\": \"measure\", \"name\": \"small %s\", \"driver\": \"%.*s\", "
                    "\"products\": %" PRId64 ", \"microseconds\": %.4g, \"microseconds_checked\": %.4g}\n",
                    recipes[i], (int)strcspn(s->device, ":"), s->device, stats.products, us[1], us[0]);
        tulle_matrix_free(A);
        tulle_matrix_free(there);
    }
    tulle_ctx_free(ctx);
    return 0;
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
        if (sscanf(line, "%63[^,],%*[^,],%lf,%*[^,],%lf,%lf", a->name, &a->best_peer, &a->cusparse,
                   &a->speck) == 4)
            count++;
    }
    if (f) fclose(f);
    return count;
}

static int all_matrices(const settings *s)
{
    static anchor anchors[SUITE_MATRICES];
    tally all[WAYS] = {{.done = 0}};
    tulle_ctx *ctx[WAYS] = {NULL}, *cpu = suite_open("cpu");
    int known = read_anchors(s->anchors, anchors, SUITE_MATRICES), wrong = 0;
    for (int w = 0; w < WAYS; w++) { /* one context serves all that set nothing */
        if (known_ways[w].variable) setenv(known_ways[w].variable, known_ways[w].value, 1);
        for (int k = 0; k < s->ways; k++)
            if (strcmp(s->way[k], known_ways[w].name) == 0 && (known_ways[w].variable || !ctx[0])) {
                ctx[known_ways[w].variable ? w : 0] = suite_open(s->device);
            }
        if (known_ways[w].variable) unsetenv(known_ways[w].variable);
    }
    bool rival = s->cusparse;
    printf("%-20s %-14s %11s %9s %9s %8s %8s %8s %8s %8s %8s %6s\n", "matrix", "way", "products", "ms",
           "checked", "spECK'20", "ratio", "cuSPARSE", "ratio", "r.anchor", "r.best", "memory");
    for (int m = 0; m < s->matrices.count; m++) {
        problem p;
        if (!problem_load(cpu, s->matrices.path[m], s, &p)) {
            wrong++;
            problem_free(&p);
            continue;
        }
        const anchor *a = NULL;
        for (int i = 0; i < known; i++)
            if (strcmp(anchors[i].name, p.name) == 0) a = &anchors[i];
        if (strcmp(s->type, "f64") != 0) a = NULL;
        tulle_forecast f;
        if (tulle_estimate(cpu, &p.A, &p.B, NULL, &f) == TULLE_OK) p.products = f.products;
        if (rival && !time_cusparse(ctx[0] ? ctx[0] : cpu, s, &p) && m == 0) rival = false;
        for (int k = 0; k < s->ways; k++)
            for (int w = 0; w < WAYS; w++) {
                if (strcmp(s->way[k], known_ways[w].name) != 0) continue;
                timing t;
                if (measure(ctx[known_ways[w].variable ? w : 0], cpu, s, &p, w, &t)) {
                    print_line(&p, w, &t, a, &all[w]);
                    write_piece(s, &p, w, &t);
                    all[w].done++;
                } else {
                    all[w].failed++;
                    wrong++;
                }
            }
        problem_free(&p);
    }
    for (int w = 0; w < WAYS; w++)
        if (all[w].done + all[w].failed > 0) print_tally(s, w, &all[w]);
    for (int w = 0; w < WAYS; w++) tulle_ctx_free(ctx[w]);
    tulle_ctx_free(cpu);
    return wrong ? 1 : 0;
}

/* ---- the same from host to host */

static int host_matrices(const settings *s)
{
    host_contexts c;
    suite_ratio chosen = {0};
    const bool exact = strcmp(s->type, "f64") == 0 || strcmp(s->type, "cf64") == 0;
    int wrong = 0;
    host_open(s->device, &c);
    host_heading();
    for (int m = 0; m < s->matrices.count; m++) {
        problem p;
        bool good = problem_load(c.cpu, s->matrices.path[m], s, &p);
        if (good) {
            tulle_csr want = p.c_host ? tulle_matrix_view(p.c_host) : p.A;
            const host_product h = {.name = p.name, .operation = p.operation, .type = s->type,
                                    .device = s->device, .A = &p.A, .B = &p.B, .same = !p.own_b,
                                    .want = p.c_host && exact ? &want : NULL, .runs = s->runs};
            good = host_time(&c, &h, &chosen, s->pieces);
        }
        wrong += !good;
        problem_free(&p);
    }
    host_tally(&chosen);
    host_close(&c);
    return wrong ? 1 : 0;
}

static void add_ways(settings *s, char *words)
{
    s->ways = 0;
    for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        bool known = false;
        for (int w = 0; w < WAYS; w++) known = known || strcmp(word, known_ways[w].name) == 0;
        if (!known || s->ways == MAX_WAYS) suite_stop("there is no way %s", word);
        s->way[s->ways++] = word;
    }
}

int main(int argc, char **argv)
{
    double start = suite_now();
    suite_program = "bench_gpu";
    settings s = {.device = "cuda:0", .type = "f64", .runs = 7, .ways = 1, .way = {"speck"}, .check = true,
                  .cusparse = true};
    char *ways = NULL;
    const suite_option options[] = {
        {"--device", .word = &s.device}, {"--ways", .list = &ways}, {"--type", .word = &s.type},
        {"--runs", .runs = &s.runs},
        {"--anchors", .word = &s.anchors}, {"--pieces", .file = &s.pieces}, {"--only", .word = &s.only},
        {"--no-check", .off = &s.check}, {"--no-cusparse", .off = &s.cusparse}, {"--trace", .on = &s.trace},
        {"--first", .on = &s.first}, {"--small", .on = &s.small}, {"--plans", .on = &s.plans},
        {"--host", .on = &s.host}};
    suite_options(argc, argv, options, sizeof options / sizeof *options, &s.only, &s.matrices);
    if (ways) add_ways(&s, ways);
    suite_type(s.type);
    if (!s.first && !s.small && s.matrices.count == 0) suite_stop("no matrices");
    int code = s.first ? first_product(&s, start) : s.small ? small_products(&s)
             : s.host ? host_matrices(&s) : all_matrices(&s);
    if (s.pieces && fclose(s.pieces) != 0) suite_stop("the pieces could not be written");
    return code;
}
