/* SPDX-License-Identifier: MIT
 *
 * paper.c - the experiments of FastSpMM (Ortega, Vazquez, Garcia, Garzon; The Computer Journal 57, 2014) with
 * policy ellr.
 *
 *   Figure 3   GFLOP/s as a function of L* = L_GPU = Lc = 1, 2, 4 ... 32, the number of columns that are
 *              copied, and computed, at a time
 *   Table 3    in the paper, how Fermi divides on-chip memory between cache and scratchpad.  Here partial
 *              sums are exchanged by shuffles on CUDA, without scratchpad memory, so this does not apply.  On
 *              OpenCL they pass through the scratchpad, so PT of Table 4 can be compared between the two
 *   Table 4    PT (kernels alone), CT (copies alone: the runtime without overlap minus PT), runtimes without
 *              and with overlap, AF (their ratio), at the L* that is the best over all matrices in Figure 3
 *   Figure 4   GFLOP/s of cuSPARSE and of a set of products with one vector, both without overlap of copies,
 *              and of ellr without and with overlap, all at that L*; and of policy auto, with its own choice
 *
 * Values are float, X and Y column-major on the host.  The paper uses as many columns as rows; here there are
 * at most 512, and at most 256 MB of X.  Runtimes are wall clock times, the best of 3 after 1 warm-up,
 * without the copy of A to the device, which is made once for all columns.  Kernels are timed on the device,
 * with row-major X and Y there.  Matrices: two tridiagonal and two dense ones, or those that are given. */
#define _POSIX_C_SOURCE 200809L
#include "spmm.h"
#include "tulle_lab.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STARS = 6, RUNS = 3, KERNEL_RUNS = 10 };
enum { MOST_COLUMNS = 512, MOST_BYTES = 256 << 20, MOST_MATRICES = 64 };
static const int64_t stars[STARS] = {1, 2, 4, 8, 16, 32};

typedef struct paper {
    const char *device;
    FILE       *pieces;
    tulle_ctx  *cpu, *ctx[2];               /* ctx: without and with overlap */
    device     *own;                        /* of ctx[1]                     */
} paper;

typedef struct experiment {
    char          name[64];
    tulle_matrix *M;
    tulle_csr     A;
    int64_t       columns, longest;         /* columns of X                  */
    float        *x, *y;
} experiment;

/* ---- one matrix */

static bool experiment_make(const paper *p, const char *path, experiment *e)
{
    suite_matrix m;
    *e = (experiment){.columns = MOST_COLUMNS};
    bool good = suite_load(p->cpu, path, TULLE_F64, &m)
             && tulle_csr_convert(p->cpu, &m.A, TULLE_F32, TULLE_I32, TULLE_I32, &e->M) == TULLE_OK;
    snprintf(e->name, sizeof e->name, "%s", m.name);
    suite_unload(&m);
    if (!good) return printf("%s: %s\n", path, tulle_ctx_error(p->cpu)), false;
    e->A = tulle_matrix_view(e->M);
    suite_random(tulle_matrix_values(e->M), TULLE_F32, e->A.nnz);
    const int32_t *ptr = e->A.row_ptr;
    for (int64_t i = 0; i < e->A.rows; i++)
        if (ptr[i + 1] - ptr[i] > e->longest) e->longest = ptr[i + 1] - ptr[i];
    int64_t fits = MOST_BYTES / (4 * (e->A.cols > e->A.rows ? e->A.cols : e->A.rows)) / 32 * 32;
    if (e->columns > fits) e->columns = fits < 32 ? 32 : fits;
    e->x = malloc((size_t)(e->A.cols * e->columns) * 4 + 1);
    e->y = malloc((size_t)(e->A.rows * e->columns) * 4 + 1);
    if (!e->x || !e->y) suite_stop("no memory");
    suite_random(e->x, TULLE_F32, e->A.cols * e->columns);
    memset(e->y, 0, (size_t)(e->A.rows * e->columns) * 4);
    return true;
}

static void experiment_free(experiment *e)
{
    tulle_matrix_free(e->M);
    free(e->x);
    free(e->y);
}

/* ---- runtimes */

typedef struct job { tulle_spmm_plan *plan; tulle_dense X, Y; } job;

static bool run_plan(void *user)
{
    job *j = user;
    return tulle_spmm_plan_run(j->plan, NULL, &j->X, NULL, &j->Y) == TULLE_OK;
}

/* `star` columns are copied and computed at a time; 0: tulle chooses. */
static tulle_spmm_options options_for(const char *policy, int64_t star, tulle_spmm_lab *lab)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, star);
    if (star) setenv("TULLE_SPMM_CHUNK", text, 1);
    else unsetenv("TULLE_SPMM_CHUNK");
    *lab = (tulle_spmm_lab){.ellr_columns = (int)star};
    return (tulle_spmm_options){.policy = policy, .trust_inputs = 1, .lab = lab};
}

/* Wall clock seconds for all columns; 0: it failed, and a message was printed. */
static double runtime(const paper *p, const experiment *e, const char *policy, int64_t star, int overlap)
{
    tulle_ctx *ctx = p->ctx[overlap];
    tulle_spmm_lab lab;
    tulle_spmm_options o = options_for(policy, star, &lab);
    double best = 0;
    job j = {.X = tulle_dense_make(e->A.cols, e->columns, 0, TULLE_BY_COLS, e->x, TULLE_F32),
             .Y = tulle_dense_make(e->A.rows, e->columns, 0, TULLE_BY_COLS, e->y, TULLE_F32)};
    setenv("TULLE_SPMM_OVERLAP", overlap ? "on" : "off", 1);
    if (tulle_spmm_plan_create(ctx, &e->A, &o, &j.plan) != TULLE_OK) goto failed;
    for (int i = -1; i < RUNS; i++) {
        double start = suite_now();
        if (!run_plan(&j)) goto failed;
        double seconds = suite_now() - start;
        if (i >= 0 && (best == 0 || seconds < best)) best = seconds;
    }
    goto done;
failed:
    printf("FAILED: %s, %s, L* = %" PRId64 ": %s\n", e->name, policy, star, tulle_ctx_error(ctx));
done:
    tulle_spmm_plan_free(j.plan);
    unsetenv("TULLE_SPMM_OVERLAP");
    unsetenv("TULLE_SPMM_CHUNK");
    return best;
}

/* The time of the kernels for all columns, `star` at a time: of ellr, and of cuSPARSE's best algorithm. */
static bool kernels(const paper *p, const experiment *e, int64_t star, double *ellr, double *cusparse)
{
    double ms[KERNEL_RUNS];
    char why[256] = "";
    const char *name = "";
    tulle_matrix *there = NULL;
    bool good = false;
    tulle_spmm_lab lab;
    tulle_spmm_options o = options_for("ellr", star, &lab);
    o.time_stages = !device_has_clock(p->own);
    job j = {.X = tulle_dense_make(e->A.cols, star, 0, TULLE_BY_ROWS, NULL, TULLE_F32),
             .Y = tulle_dense_make(e->A.rows, star, 0, TULLE_BY_ROWS, NULL, TULLE_F32)};
    j.X.place = j.Y.place = TULLE_DEVICE;
    j.X.ld = j.Y.ld = star;
    j.X.values = device_alloc(p->own, (size_t)(e->A.cols * star) * 4);
    j.Y.values = device_alloc(p->own, (size_t)(e->A.rows * star) * 4);
    *ellr = *cusparse = 0;
    if (!j.X.values || !j.Y.values || !device_put(p->own, j.X.values, e->x, (size_t)(e->A.cols * star) * 4))
        goto failed;
    if (tulle_csr_move(p->ctx[1], &e->A, TULLE_DEVICE, &there) != TULLE_OK) goto failed;
    tulle_csr A = tulle_matrix_view(there);
    if (tulle_spmm_plan_create(p->ctx[1], &A, &o, &j.plan) != TULLE_OK) goto failed;
    if (device_has_clock(p->own)) {
        if (!device_times(p->own, run_plan, &j, 2, KERNEL_RUNS, ms)) goto failed;
        *cusparse = spmm_cusparse(p->own, &A, &j.X, &j.Y, KERNEL_RUNS, &name, why, sizeof why);
        if (*cusparse == 0) printf("%s: no time of cuSPARSE: %s\n", e->name, why);
    } else {
        for (int i = 0; i < KERNEL_RUNS; i++) {
            tulle_stats stats;
            if (!run_plan(&j)) goto failed;
            tulle_ctx_stats(p->ctx[1], &stats);
            ms[i] = 1e3 * stats.sec_numeric;
        }
    }
    double times = 1e-3 * (double)((e->columns + star - 1) / star);
    *ellr = times * suite_median(ms, KERNEL_RUNS);
    *cusparse *= times;
    good = true;
    goto done;
failed:
    printf("FAILED: %s, kernels: %s\n", e->name, tulle_ctx_error(p->ctx[1]));
done:
    device_wait(p->own);
    tulle_spmm_plan_free(j.plan);
    device_free(p->own, j.X.values);
    device_free(p->own, j.Y.values);
    tulle_matrix_free(there);
    unsetenv("TULLE_SPMM_CHUNK");
    return good;
}

static double gflops(const experiment *e, double seconds)
{
    return seconds > 0 ? 2e-9 * (double)e->A.nnz * (double)e->columns / seconds : 0;
}

/* ---- the experiments */

static bool figure3(const paper *p, const experiment *e, double *sums, FILE *out)
{
    printf("%-20s %6" PRId64, e->name, e->columns);
    if (out)
        fprintf(out, "{\"section\": \"measure\", \"name\": \"FastSpMM figure 3 %s\", \"driver\": \"%.*s\", "
                "\"columns\": %" PRId64, e->name, (int)strcspn(p->device, ":"), p->device, e->columns);
    bool good = true;
    for (int i = 0; i < STARS; i++) {
        double g = gflops(e, runtime(p, e, "ellr", stars[i], 1));
        good = good && g > 0;
        sums[i] += g > 0 ? log(g) : 0;
        printf(" %8.2f", g);
        if (out) fprintf(out, ", \"gflops_%" PRId64 "\": %.4g", stars[i], g);
    }
    printf("\n");
    fflush(stdout);
    if (out) fputs("}\n", out);
    return good;
}

static bool table4(const paper *p, const experiment *e, int64_t star, FILE *out)
{
    double pt, sparse;
    bool good = kernels(p, e, star, &pt, &sparse);
    double alone = runtime(p, e, "ellr", star, 0), both = runtime(p, e, "ellr", star, 1);
    double set = runtime(p, e, "ellr", 1, 0);
    double free_run = runtime(p, e, "auto", 0, 1), ct = alone > pt ? alone - pt : 0;
    double mean = (double)e->A.nnz / (double)(e->A.rows ? e->A.rows : 1);
    if (!good || alone <= 0 || both <= 0) return false;
    printf("%-20s %8.1f %7" PRId64 " %9.3f %9.3f %6.1f %9.3f %9.3f %6.2f | %9.2f %9.2f %9.2f %9.2f %9.2f\n",
           e->name, mean, e->longest, 1e3 * pt, 1e3 * ct, 100 * ct / alone, 1e3 * alone, 1e3 * both,
           alone / both, sparse > 0 ? gflops(e, sparse + ct) : 0,
           gflops(e, set), gflops(e, alone), gflops(e, both), gflops(e, free_run));
    fflush(stdout);
    if (out)
        fprintf(out, "{\"section\": \"measure\", \"name\": \"FastSpMM table 4 %s\", \"driver\": \"%.*s\", "
                "\"columns\": %" PRId64 ", \"columns_at_a_time\": %" PRId64 ", \"pt_ms\": %.4g, "
                "\"ct_ms\": %.4g, \"runtime_alone_ms\": %.4g, \"runtime_overlapped_ms\": %.4g, \"af\": %.4g, "
                "\"gflops_cusparse\": %.4g, \"gflops_set_of_spmv\": %.4g, "
                "\"gflops_alone\": %.4g, \"gflops_overlapped\": %.4g, \"gflops_auto\": %.4g}\n", e->name,
                (int)strcspn(p->device, ":"), p->device, e->columns, star, 1e3 * pt, 1e3 * ct, 1e3 * alone,
                1e3 * both, alone / both, sparse > 0 ? gflops(e, sparse + ct) : 0, gflops(e, set),
                gflops(e, alone), gflops(e, both), gflops(e, free_run));
    return true;
}

int spmm_paper(const char *where, const suite *matrices, FILE *pieces)
{
    static const char *const usual[] = {"tridiagonal:200000", "tridiagonal:500000", "dense:2000",
                                        "dense:5000"};
    suite all = {.count = 0};
    double sums[STARS] = {0};
    char why[256] = "";
    int wrong = 0, best = 0;
    paper p = {.device = where, .pieces = pieces, .cpu = suite_open("cpu")};
    for (int i = 0; i < 2; i++) {
        setenv("TULLE_SPMM_OVERLAP", i ? "on" : "off", 1);
        p.ctx[i] = suite_open(where);
    }
    unsetenv("TULLE_SPMM_OVERLAP");
    p.own = device_open(p.ctx[1], why, sizeof why);
    if (!p.own) suite_stop("%s: %s", where, why);
    bool others = false;
    for (int i = 0; i < matrices->count; i++) others = others || !strchr(matrices->path[i], '/');
    for (int i = 0; i < 4 && !others; i++) all.path[all.count++] = usual[i];
    for (int i = 0; i < matrices->count && all.count < MOST_MATRICES; i++)
        all.path[all.count++] = matrices->path[i];
    printf("Figure 3: GFLOP/s as a function of L*\n%-20s %6s", "matrix", "L");
    for (int i = 0; i < STARS; i++) printf(" %8" PRId64, stars[i]);
    printf("\n");
    for (int m = 0; m < all.count; m++) {
        experiment e;
        if (!experiment_make(&p, all.path[m], &e) || !figure3(&p, &e, sums, pieces)) wrong++;
        experiment_free(&e);
    }
    for (int i = 0; i < STARS; i++)
        if (sums[i] > sums[best]) best = i;
    printf("Table 3: partial sums pass %s: compare PT on CUDA and on OpenCL\n",
           device_has_clock(p.own) ? "by shuffles" : "through the scratchpad");
    printf("Table 4 (ms) and Figure 4 (GFLOP/s), L* = %" PRId64 "\n", stars[best]);
    printf("%-20s %8s %7s %9s %9s %6s %9s %9s %6s | %9s %9s %9s %9s %9s\n", "matrix",
           "mean", "longest", "PT", "CT", "%Com", "alone", "overlap", "AF", "cuSPARSE", "SpMVs", "alone",
           "overlap", "auto");
    for (int m = 0; m < all.count; m++) {
        experiment e;
        if (!experiment_make(&p, all.path[m], &e) || !table4(&p, &e, stars[best], pieces)) wrong++;
        experiment_free(&e);
    }
    device_close(p.own);
    tulle_ctx_free(p.ctx[0]);
    tulle_ctx_free(p.ctx[1]);
    tulle_ctx_free(p.cpu);
    return wrong ? 1 : 0;
}
