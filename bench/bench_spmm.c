/* SPDX-License-Identifier: MIT
 *
 * bench_spmm.c - Y = A*X, X and Y dense, by tulle and by Eigen in one run, with the same number of threads,
 * for N = 1, 8, 32 and 128 columns in float and double, over gallery matrices of several kinds.
 *
 * The bound is the time that memory bandwidth allows: the bytes of A, X and Y, each moved once, at the
 * bandwidth that a probe measures between the products (the best of STREAM's copy, scale, add and triad and
 * of reading alone, with as many threads).  A product whose operands fit a cache may be faster.  The roof is
 * the longer of the bound and the time that arithmetic allows, measured by a second probe: unfused
 * multiplications and additions of vectors from the L1 cache.
 *
 * tulle runs a plan, because Eigen does not check A either.  `checked` is tulle_spmm(), which checks A;
 * `apply`, for one column, is tulle_csr_apply(), which checks it, too.  Eigen and these three take turns; a
 * plan has its own copy of A's values.  In its turn each runs at least twice and for some milliseconds, and
 * only its last run is timed; the median over the turns counts.  Y is compared once.  The last line is
 * `geomean_vs_eigen=X min=Y vs_bound=X worst=Y vs_roof=X worst=Y`, without the first two if Eigen does not
 * run: with --no-peer, which a build without Eigen (TULLE_NO_PEERS) requires. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "peers.h"
#include "roofs.h"
#include "tulle.h"

static const struct { const char *name, *recipe; } suite[] = {
    {"poisson2d_500",  "poisson2d:500"},
    {"poisson3d27_40", "poisson3d:40,points=27"},
    {"elasticity_24",  "elasticity3d:24,dof=3"},
    {"banded_40k",     "banded:40000,lower=20,upper=20"},
    {"cage11",         "cage:11"},
    {"rmat_15_12",     "rmat:15,edges=12"},
    {"er_60k_12",      "er:60000,per_row=12"},
};
/* The probes run at the end of every fourth turn. */
enum { SUITE = sizeof suite / sizeof *suite, RUNS = 20, PROBE = 4 };
#ifdef TULLE_NO_PEERS
static const bool have_peer = false;
static double eigen_spmm(const peer_spmm *p) { (void)p; return INFINITY; }
static int eigen_threads(void) { return 0; }
#else
static const bool have_peer = true;
static double eigen_spmm(const peer_spmm *p) { return peer_eigen_spmm(p); }
static int eigen_threads(void) { return peer_eigen_threads(); }
#endif
static const double TURN = 12e-3;        /* seconds until caches are warm, clocks high and threads awake */

typedef struct settings {
    int         threads;
    double      seconds;                /* for each competitor */
    const char *only;
    int64_t     n;                      /* columns; 0: all there are lines for */
    bool        columns, no_peer, best;
} settings;

/* ---- one line */

typedef struct line {
    tulle_csr   A;
    tulle_dense X, Y, Z;
    int64_t     n;
} line;

typedef struct tally {
    double log_eigen, least_eigen, log_bound, most_bound, log_roof, most_roof;
    int lines;
} tally;

/* For lines with one column: ratios to Eigen's time of a plan, of tulle_spmm() and of tulle_csr_apply(). */
enum { PLAN, CHECKED, APPLY, ROADS };
static struct { double log_eigen[ROADS], least[ROADS]; int lines; } one_column;

static void add_one_column(const double *t, double eigen)
{
    for (int i = 0; i < ROADS; i++) {
        one_column.log_eigen[i] += log(eigen / t[i]);
        if (one_column.lines == 0 || eigen / t[i] < one_column.least[i]) one_column.least[i] = eigen / t[i];
    }
    one_column.lines++;
}

static void print_one_column(void)
{
    static const char *const names[ROADS] = {"plan", "checked", "apply"};
    if (one_column.lines == 0) return;
    printf("one column vs Eigen:");
    for (int i = 0; i < ROADS; i++)
        printf(" %s=%.2f min=%.2f", names[i], exp(one_column.log_eigen[i] / one_column.lines),
               one_column.least[i]);
    printf("\n");
}

static double typical(const settings *s, double *t, int runs)
{
    peer_sort(t, runs);
    return t[s->best ? 0 : runs / 2];
}

static double value_at(const tulle_dense *M, int64_t k)
{
    return M->val_type == TULLE_F64 ? ((const double *)M->values)[k] : (double)((const float *)M->values)[k];
}

static void fill(const tulle_dense *M)
{
    for (int64_t k = 0; k < M->rows * M->cols; k++) {
        double v = (double)((uint64_t)(k + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 40) / 16777216.0 - 0.5;
        if (M->val_type == TULLE_F64) ((double *)M->values)[k] = v;
        else ((float *)M->values)[k] = (float)v;
    }
}

static bool agree(const tulle_dense *Y, const tulle_dense *Z)
{
    double allowed = Y->val_type == TULLE_F64 ? 1e-10 : 1e-2, worst = 0, size = 0;
    for (int64_t k = 0; k < Y->rows * Y->cols; k++) {
        worst = fmax(worst, fabs(value_at(Y, k) - value_at(Z, k)));
        size = fmax(size, fabs(value_at(Z, k)));
    }
    return worst <= allowed * size;
}

/* The time of the last run of a turn; negative after an error. */
static double take_turn(tulle_ctx *ctx, int road, tulle_spmm_plan *plan, line *l)
{
    const double turn = peer_now();
    double seconds = 0;
    for (int k = 0; k < 2 || peer_now() - turn < TURN; k++) {
        const double start = peer_now();
        const tulle_status status = road == PLAN ? tulle_spmm_plan_run(plan, NULL, &l->X, NULL, &l->Y)
                                  : road == CHECKED ? tulle_spmm(ctx, NULL, &l->A, &l->X, NULL, &l->Y, NULL)
                                                    : tulle_csr_apply(ctx, &l->A, l->X.values, l->Y.values);
        if (status != TULLE_OK) return -1;
        seconds = peer_now() - start;
    }
    return seconds;
}

static bool measure(tulle_ctx *ctx, const settings *s, const char *name, line *l, roofs *roof, tally *sum)
{
    const tulle_csr *A = &l->A;
    double times[ROADS][RUNS], eigen[2][RUNS], spent = 0;
    size_t size = A->val_type == TULLE_F64 ? 8 : 4;
    tulle_spmm_plan *plan = NULL;
    int runs = 0, ways = s->no_peer ? 0 : s->columns ? 1 : 2;
    if (tulle_spmm_plan_create(ctx, A, NULL, &plan) != TULLE_OK)
        return printf("%s\n", tulle_ctx_error(ctx)), false;
    peer_spmm p = {.rows = A->rows, .cols = A->cols, .n = l->n, .ptr = A->row_ptr, .idx = A->col_idx,
                   .val = A->values, .x = l->X.values, .y = l->Z.values, .is_double = size == 8,
                   .by_cols = s->columns, .threads = s->threads};
    roofs_anew(roof);
    while (runs < RUNS && (runs < 3 || spent < s->seconds)) {
        if (ways > 0)
            nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL); /* OpenMP's threads stop spinning */
        for (int road = 0; road < (l->n == 1 ? ROADS : APPLY); road++) {
            times[road][runs] = take_turn(ctx, road, plan, l);
            if (times[road][runs] < 0) return printf("%s\n", tulle_ctx_error(ctx)), false;
        }
        eigen[0][runs] = eigen[1][runs] = INFINITY;
        for (int way = 0; way < ways; way++) {          /* row-major: Eigen may be faster column-major */
            p.by_cols = way == 0 ? s->columns : true;
            double turn = peer_now();
            for (int k = 0; k < 2 || peer_now() - turn < TURN; k++) eigen[way][runs] = eigen_spmm(&p);
            if (way == 0 && runs == 0 && !agree(&l->Y, &l->Z)) return printf("WRONG: %s\n", name), false;
        }
        if (runs % PROBE == 0) roofs_sample(roof);
        spent += times[PLAN][runs++] * 2;
    }
    tulle_spmm_plan_free(plan);
    double bytes = (double)A->nnz * (double)(size + 4) + 4.0 * (double)(A->rows + 1)
                   + (double)size * (double)l->n * (double)(A->rows + A->cols);
    double t = typical(s, times[PLAN], runs), checked = typical(s, times[CHECKED], runs);
    double apply = l->n == 1 ? typical(s, times[APPLY], runs) : 0,
           e = fmin(typical(s, eigen[0], runs), typical(s, eigen[1], runs));
    double work = 2.0 * (double)A->nnz * (double)l->n;
    double bound = bytes / roofs_bytes(roof, s->best),
           top = fmax(bound, work / roofs_operations(roof, size == 8));
    char eigen_ms[16] = "-", vs_eigen[16] = "-", apply_ms[16] = "-";
    if (l->n == 1) snprintf(apply_ms, sizeof apply_ms, "%.3f", 1e3 * apply);
    if (ways > 0) {
        snprintf(eigen_ms, sizeof eigen_ms, "%.3f", 1e3 * e);
        snprintf(vs_eigen, sizeof vs_eigen, "%.2f", e / t);
        sum->log_eigen += log(e / t);
        if (l->n == 1) add_one_column((double[]){t, checked, apply}, e);
    }
    printf("%-15s %s %4lld %10.3f %10.3f %10s %10s %7.2f %7.2f %8s %8.2f %8.2f\n", name,
           size == 8 ? "f64" : "f32", (long long)l->n, 1e3 * t, 1e3 * checked, apply_ms, eigen_ms,
           1e-9 * work / t, 1e-9 * bytes / t, vs_eigen, t / bound, t / top);
    fflush(stdout);
    sum->log_bound += log(t / bound);
    sum->log_roof += log(t / top);
    sum->most_roof = fmax(sum->most_roof, t / top);
    if (sum->lines == 0 || e / t < sum->least_eigen) sum->least_eigen = e / t;
    if (t / bound > sum->most_bound) sum->most_bound = t / bound;
    sum->lines++;
    return true;
}

static bool matrix(tulle_ctx *ctx, const settings *s, const char *name, const char *recipe, roofs *roof,
                   tally *sum)
{
    static const int64_t columns[] = {1, 8, 32, 128};
    tulle_matrix *made = NULL;
    bool ok = tulle_gallery(ctx, recipe, &made) == TULLE_OK;
    if (!ok) printf("%s: %s\n", name, tulle_ctx_error(ctx));
    for (int type = TULLE_F32; ok && type <= TULLE_F64; type++) {
        tulle_csr view = tulle_matrix_view(made);
        tulle_matrix *A = NULL;
        ok = tulle_csr_convert(ctx, &view, (tulle_type)type, TULLE_I32, TULLE_I32, &A) == TULLE_OK;
        for (int i = 0; ok && i < 4; i++) {
            if (s->n && s->n != columns[i]) continue;
            tulle_dense_matrix *M[3] = {0};
            tulle_order order = s->columns ? TULLE_BY_COLS : TULLE_BY_ROWS;
            line l = {.A = tulle_matrix_view(A), .n = columns[i]};
            for (int k = 0; ok && k < 3; k++)
                ok = tulle_dense_create(ctx, k ? l.A.rows : l.A.cols, l.n, order, (tulle_type)type, &M[k])
                     == TULLE_OK;
            if (ok) {
                l.X = tulle_dense_view(M[0]);
                l.Y = tulle_dense_view(M[1]);
                l.Z = tulle_dense_view(M[2]);
                fill(&l.X);
                ok = measure(ctx, s, name, &l, roof, sum);
            }
            for (int k = 0; k < 3; k++) tulle_dense_free(M[k]);
        }
        tulle_matrix_free(A);
    }
    tulle_matrix_free(made);
    return ok;
}

int main(int argc, char **argv)
{
    settings s = {.threads = (int)sysconf(_SC_NPROCESSORS_ONLN), .seconds = 0.4};
    tulle_ctx *ctx = NULL;
    tally sum = {0};
    bool ok = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--columns") == 0) s.columns = true;
        else if (strcmp(argv[i], "--no-peer") == 0) s.no_peer = true;
        else if (strcmp(argv[i], "--cpu-time") == 0) peer_use_cpu_time();       /* with one thread */
        else if (strcmp(argv[i], "--best") == 0) s.best = true; /* for machines that are busy otherwise */
        else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0) s.threads = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) s.seconds = atof(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--n") == 0) s.n = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) s.only = argv[++i];
        else
            return printf("usage: bench_spmm [--threads N] [--seconds S] [--only NAME] [--n 1|8|32|128] "
                          "[--columns] [--no-peer] "
                          "[--best] [--cpu-time]\n"),
                   2;
    }
    if (!have_peer && !s.no_peer)
        return printf("built without Eigen (libeigen3-dev, g++): give --no-peer\n"), 2;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK || tulle_ctx_set_threads(ctx, s.threads) != TULLE_OK)
        return 1;
    roofs *roof = roofs_open(s.threads);
    printf("%d threads, ", s.threads);
    if (!s.no_peer) printf("Eigen may use %d; ", eigen_threads());
    printf("X and Y by %s\n", s.columns ? "columns" : "rows");
    printf("%-15s %s %4s %10s %10s %10s %10s %7s %7s %8s %8s %8s\n", "matrix", "typ", "N", "tulle ms",
           "checked", "apply", "Eigen ms", "GFLOPS", "GB/s", "vs Eigen", "vs bound", "vs roof");
    for (int i = 0; i < SUITE && ok; i++)
        if (!s.only || strstr(suite[i].name, s.only))
            ok = matrix(ctx, &s, suite[i].name, suite[i].recipe, roof, &sum);
    print_one_column();
    if (sum.lines > 0 && !s.no_peer)
        printf("geomean_vs_eigen=%.2f min=%.2f ", exp(sum.log_eigen / sum.lines), sum.least_eigen);
    if (sum.lines > 0)
        printf("vs_bound=%.2f worst=%.2f vs_roof=%.2f worst=%.2f\n", exp(sum.log_bound / sum.lines),
               sum.most_bound, exp(sum.log_roof / sum.lines), sum.most_roof);
    roofs_close(roof);
    tulle_ctx_free(ctx);
    return ok ? 0 : 1;
}
