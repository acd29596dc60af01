/* SPDX-License-Identifier: MIT
 *
 * bench_spgemm.c - C = A*A (A*A^T if A is rectangular) by tulle, SuiteSparse:GraphBLAS and Eigen, in one run,
 * with the same number of threads, in double, with sorted rows, over a suite of gallery matrices of all
 * kinds, and the products of one level of multigrid (operands.h).
 *
 * For each matrix every library first computes one product as warm-up, which is checked (rows sorted, the
 * same number of entries for all, C*x compared with A*(B*x)).  Then they take turns, one product each, until
 * each has run for about a second and at least three times; the median counts.  Allocating C is timed,
 * freeing it is not.  A peer that can get sorted rows in two ways runs both; its better median counts.
 *
 * tulle runs twice: in a context that keeps memory of the previous product ("tulle"), and in one that is
 * created and freed for each product, which is included in the time ("fresh").
 *
 * The last line is `geomean_vs_best_peer=X min=Y matrices=N`: the ratio (time of the better peer) / (time of
 * tulle); the line before it has the same for fresh contexts.  The exit status is 1 if a product was wrong or
 * tulle used more workspace than 16 bytes per row and 32 MiB per thread. */
#define _POSIX_C_SOURCE 200809L
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "operands.h"
#include "peers.h"
#include "tulle.h"

/* Matrices of all kinds, of sizes for which the peers need between 10 ms and 2 s. */
static const struct { const char *name, *recipe; bool quick; } suite[] = {
    {"cage12",          "cage:12", true},
    {"conf5_4-8x8-05",  "conf5_4", false},
    {"mc2depi",         "mc2depi", true},
    {"majorbasis",      "majorbasis", false},
    {"Baumann",         "Baumann", false},
    {"s3dkq4m2",        "s3dkq4m2", true},
    {"s3dkt3m2",        "s3dkt3m2", false},
    {"ncvxqp3",         "ncvxqp3", true},
    {"wathen120",       "wathen120", true},
    {"Trefethen_20000", "Trefethen_20000", true},
    {"mycielskian12",   "mycielskian:12", false},
    {"poisson2d_1000",  "poisson2d:1000", true},
    {"poisson2d9_700",  "poisson2d:700,points=9", false},
    {"poisson3d_64",    "poisson3d:64", true},
    {"poisson3d27_48",  "poisson3d:48,points=27", false},
    {"elasticity3d_20", "elasticity3d:20,dof=3", true},
    {"rmat_14_16",      "rmat:14,edges=16", true},
    {"rmat_16_4",       "rmat:16,edges=4", false},
    {"er_100k_8",       "er:100000,per_row=8", true},
    {"er_1M_3",         "er:1000000,per_row=3", false},
    {"er_4k_64",        "er:4000,per_row=64", false},
    {"geometric_100k",  "geometric:100000", false},
    {"zipf_40k",        "zipf:40000", true},
    {"banded_50k",      "banded:50000,lower=20,upper=20", false},
    {"banded_sparse",   "banded:100000,lower=300,upper=300,fill=0.02", false},
    {"blockdiag_40k",   "blockdiag:40000,block=40", false},
    {"tridiagonal_1M",  "tridiagonal:1000000", true},
    {"arrow_2500",      "arrow:2500", false},
    {"dense_800",       "dense:800", true},
    {"prolongator_700", "prolongator:700", false},
    {"tall_60k",        "tall:60000,cols=20000,per_row=5", true},
    {"wide_2k",         "wide:2000,cols=50000,per_row=200", false},
    {"multigrid_ST",    "multigrid:S*T", true},
    {"multigrid_AP",    "multigrid:A*P", true},
    {"multigrid_RAP",   "multigrid:R*(A*P)", true},
};

enum { SUITE = sizeof suite / sizeof *suite, MAX_RUNS = 60, MAX_CONTESTANTS = 24 };

static const peer *const peers[] = {&peer_graphblas, &peer_eigen, NULL};

typedef struct {
    int         threads;
    double      seconds;            /* to spend on each competitor */
    bool        quick, scaling, policies, no_peers, keep_heap, cpu_time, list;
    const char *only, *recipe;
    FILE       *json;
} settings;

/* A competitor: tulle (peer NULL) with a number of threads and a policy, or one variant of a peer.  Once
 * `out`, it is not run any more, but the times it has count. */
typedef struct {
    const peer *peer;
    void       *state;
    int         way, threads, runs;
    const char *policy;
    bool        fresh;              /* in a context of its own */
    double      run[MAX_RUNS], total, median;
    bool        out;
} contestant;

typedef struct {
    const char *name;
    int64_t     rows, nnz, products, c_nnz;
    double      tulle, fresh, graphblas, eigen, one_thread;     /* seconds, 0: not measured */
    double      ratio, fresh_ratio;
    uint64_t    workspace;
    tulle_stats stats;
} result;

typedef struct {
    const char  *name;
    tulle_csr    A, B;
    peer_csr     a, b;
    int64_t      products;
    double      *x, *y, *scale;     /* C*x must equal y within 1e-12 of the scale of each row */
    int64_t      c_nnz;             /* of the first product that was checked; -1: none yet */
} problem;

static int wrongs;

static void wrong(const char *name, const char *who, const char *what)
{
    printf("WRONG: %s, %s: %s\n", name, who, what);
    wrongs++;
}

/* ---- the problem and its check */

static double number(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    i = (i ^ (i >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return (double)(i >> 11) / 9007199254740992.0 - 0.5;
}

static void apply(const peer_csr *M, const double *x, double *y, bool absolute)
{
    for (int64_t i = 0; i < M->rows; i++) {
        double sum = 0;
        for (int64_t k = M->ptr[i]; k < M->ptr[i + 1]; k++) {
            double product = M->val[k] * x[M->idx[k]];
            sum += absolute ? fabs(product) : product;
        }
        y[i] = sum;
    }
}

static bool problem_open(problem *p)
{
    p->a = (peer_csr){p->A.rows, p->A.cols, p->A.row_ptr, p->A.col_idx, p->A.values};
    p->b = (peer_csr){p->B.rows, p->B.cols, p->B.row_ptr, p->B.col_idx, p->B.values};
    p->c_nnz = -1;
    for (int64_t k = 0; k < p->A.nnz; k++)
        p->products += p->b.ptr[p->a.idx[k] + 1] - p->b.ptr[p->a.idx[k]];
    p->x = malloc(sizeof(double) * (size_t)(p->B.cols + 1));
    p->y = malloc(sizeof(double) * (size_t)(p->A.rows + 1));
    p->scale = malloc(sizeof(double) * (size_t)(p->A.rows + 1));
    double *z = malloc(sizeof(double) * (size_t)(p->B.rows + 1));
    bool ok = p->x && p->y && p->scale && z;
    if (ok) {
        for (int64_t j = 0; j < p->B.cols; j++) p->x[j] = number((uint64_t)j);
        apply(&p->b, p->x, z, true);
        apply(&p->a, z, p->scale, true);
        apply(&p->b, p->x, z, false);
        apply(&p->a, z, p->y, false);
    }
    free(z);
    return ok;
}

static void problem_close(problem *p)
{
    free(p->x);
    free(p->y);
    free(p->scale);
}

static void check_row(const problem *p, int64_t i, double sum, int64_t *bad)
{
    if (!(fabs(sum - p->y[i]) <= 1e-12 * p->scale[i])) ++*bad;
}

static void check_counts(problem *p, const char *who, int64_t rows, int64_t nnz, bool sorted, int64_t bad)
{
    char text[128];
    if (rows != p->A.rows) wrong(p->name, who, "another number of rows");
    if (!sorted) wrong(p->name, who, "rows are not sorted");
    if (p->c_nnz < 0) p->c_nnz = nnz;
    snprintf(text, sizeof text, "%lld entries, others have %lld", (long long)nnz, (long long)p->c_nnz);
    if (nnz != p->c_nnz) wrong(p->name, who, text);
    snprintf(text, sizeof text, "C*x is not A*(B*x) in %lld rows", (long long)bad);
    if (bad) wrong(p->name, who, text);
}

static void check_peer(problem *p, const char *who, const peer_result *C)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < C->rows && i < p->A.rows; i++) {
        double sum = 0;
        for (int64_t k = C->ptr[i]; k < C->ptr[i + 1]; k++) sum += C->val[k] * p->x[C->idx[k]];
        check_row(p, i, sum, &bad);
    }
    check_counts(p, who, C->rows, C->nnz, C->sorted, bad);
}

static void check_tulle(problem *p, const char *who, const tulle_csr *C)
{
    const int32_t *idx = C->col_idx;
    const double *val = C->values;
    bool sorted = true, wide = C->ptr_type == TULLE_I64;
    int64_t bad = 0;
    if (C->idx_type != TULLE_I32 || C->val_type != TULLE_F64) {
        wrong(p->name, who, "another type");
        return;
    }
    for (int64_t i = 0, k = 0; i < C->rows && i < p->A.rows; i++) {
        int64_t end = wide ? ((const int64_t *)C->row_ptr)[i + 1] : ((const int32_t *)C->row_ptr)[i + 1];
        double sum = 0;
        for (int64_t begin = k; k < end; k++) {
            if (k > begin && idx[k - 1] >= idx[k]) sorted = false;
            sum += val[k] * p->x[idx[k]];
        }
        check_row(p, i, sum, &bad);
    }
    check_counts(p, who, C->rows, C->nnz, sorted, bad);
}

/* ---- competitors */

static void label(const contestant *c, char *text, size_t size)
{
    if (c->peer) snprintf(text, size, "%s (%s)", c->peer->name, c->peer->way[c->way]);
    else snprintf(text, size, "tulle (%s, threads=%d%s)", c->policy ? c->policy : "auto", c->threads,
                  c->fresh ? ", fresh" : "");
}

static void check_workspace(const problem *p, const char *who, const contestant *c, uint64_t bytes)
{
    char text[160];
    uint64_t allowed = 16 * (uint64_t)p->A.rows + (UINT64_C(32) << 20) * (uint64_t)c->threads;
    if (bytes <= allowed) return;
    snprintf(text, sizeof text, "workspace of %.1f MiB, allowed are %.1f", (double)bytes / 1048576,
             (double)allowed / 1048576);
    wrong(p->name, who, text);
}

/* One product by tulle.  C is freed after the fresh context that computed it. */
static double multiply_tulle(tulle_ctx *kept, problem *p, contestant *c, bool check)
{
    tulle_options options = {.policy = c->policy, .threads = c->threads};
    tulle_matrix *C = NULL;
    tulle_ctx *ctx = c->fresh ? NULL : kept;
    tulle_stats stats = {0};
    char who[96], why[256] = "";
    label(c, who, sizeof who);
    double start = peer_now();
    tulle_status status = TULLE_OK;
    if (c->fresh) status = tulle_ctx_create("cpu", NULL, &ctx);
    if (c->fresh && status == TULLE_OK) status = tulle_ctx_set_threads(ctx, c->threads);
    if (status == TULLE_OK) status = tulle_multiply(ctx, &p->A, &p->B, &options, &C);
    const char *text = ctx ? tulle_ctx_error(ctx) : tulle_status_text(status);
    if (status != TULLE_OK) snprintf(why, sizeof why, "%s", text);
    else if (check) tulle_ctx_stats(ctx, &stats);
    if (c->fresh) tulle_ctx_free(ctx);
    double seconds = peer_now() - start;
    if (status != TULLE_OK) {
        wrong(p->name, who, why);
        c->out = true;
    } else if (check) {
        tulle_csr view = tulle_matrix_view(C);
        check_tulle(p, who, &view);
        check_workspace(p, who, c, stats.workspace_bytes);
    }
    tulle_matrix_free(C);
    return seconds;
}

static void warm_up(tulle_ctx *ctx, problem *p, contestant *c)
{
    char who[96];
    peer_result C;
    if (!c->peer) {
        multiply_tulle(ctx, p, c, true);
        return;
    }
    label(c, who, sizeof who);
    if (!c->state || c->peer->fetch(c->state, c->way, &C)) {
        printf("%s: %s has no answer\n", p->name, who);
        c->out = true;
        return;
    }
    check_peer(p, who, &C);
    peer_result_free(&C);
}

static void take_median(contestant *c)
{
    if (!c->runs) return;
    peer_sort(c->run, c->runs);
    c->median = c->runs % 2 ? c->run[c->runs / 2] : (c->run[c->runs / 2 - 1] + c->run[c->runs / 2]) / 2;
}

static double fastest(const contestant *c)
{
    double best = c->run[0];
    for (int i = 1; i < c->runs; i++)
        if (c->run[i] < best) best = c->run[i];
    return best;
}

/* Stops measuring the variant of a peer that is clearly the slower one. */
static bool hopeless(const contestant *all, int count, const contestant *c)
{
    for (int i = 0; i < count; i++)
        if (c->peer && all[i].peer == c->peer && all[i].runs >= 2 && c->runs >= 2 &&
            fastest(&all[i]) * 1.5 < fastest(c))
            return true;
    return false;
}

/* Lets the competitors take turns.  During the pause spinning threads of the previous one go to sleep. */
static void race(tulle_ctx *ctx, problem *p, contestant *all, int count, double seconds)
{
    const struct timespec pause = {0, 8000000};
    for (bool busy = true; busy;) {
        busy = false;
        for (int i = 0; i < count; i++) {
            contestant *c = &all[i];
            if (c->out) continue;
            nanosleep(&pause, NULL);
            double t = c->peer ? c->peer->multiply(c->state, c->way) : multiply_tulle(ctx, p, c, false);
            if (c->out) continue;
            if (t < 0) {
                wrong(p->name, c->peer->name, "the product failed");
                c->out = true;
                continue;
            }
            c->run[c->runs++] = t;
            c->total += t;
            int least = t > 2 ? 2 : 3;
            c->out = c->runs == MAX_RUNS || (c->runs >= least && c->total >= seconds);
            busy |= !c->out;
        }
        for (int i = 0; i < count; i++)
            if (hopeless(all, count, &all[i])) all[i].out = true;
    }
    for (int i = 0; i < count; i++) take_median(&all[i]);
}

static double best_of(const contestant *all, int count, const char *peer_name)
{
    double best = 0;
    for (int i = 0; i < count; i++)
        if (all[i].peer && all[i].runs && !strcmp(all[i].peer->name, peer_name) &&
            (best == 0 || all[i].median < best))
            best = all[i].median;
    return best;
}

/* ---- one matrix */

static void print_policies(const problem *p, const contestant *all, int count)
{
    for (int i = 1; i < count; i++)
        if (!all[i].peer && all[i].policy && all[i].runs)
            printf("    %-16s %10.2f ms   %5.2f times auto\n", all[i].policy, all[i].median * 1e3,
                   all[i].median / all[0].median);
    (void)p;
}

static bool measure(tulle_ctx *ctx, const settings *s, problem *p, result *r)
{
    enum { FRESH = 1 };
    contestant all[MAX_CONTESTANTS] = {{.threads = s->threads},
                                       [FRESH] = {.threads = s->threads, .fresh = true}};
    void *state[8] = {NULL};
    int count = 2;
    for (int k = 0; peers[k] && !s->no_peers; k++) {
        state[k] = peers[k]->open(&p->a, p->B.row_ptr == p->A.row_ptr ? &p->a : &p->b, s->threads);
        for (int way = 0; way < peers[k]->ways; way++)
            all[count++] = (contestant){.peer = peers[k], .state = state[k], .way = way};
    }
    int single = count;
    if (s->scaling && s->threads > 1) all[count++] = (contestant){.threads = 1};
    for (int k = 0; s->policies && tulle_policy_name(k) && count < MAX_CONTESTANTS; k++)
        if (strcmp(tulle_policy_name(k), "auto"))
            all[count++] = (contestant){.threads = s->threads, .policy = tulle_policy_name(k)};
    for (int i = 0; i < count; i++) {
        warm_up(ctx, p, &all[i]);
        if (i == 0) tulle_ctx_stats(ctx, &r->stats);
    }
    race(ctx, p, all, count, s->seconds);
    r->name = p->name;
    r->rows = p->A.rows;
    r->nnz = p->A.nnz;
    r->products = p->products;
    r->c_nnz = p->c_nnz;
    r->tulle = all[0].median;
    r->fresh = all[FRESH].median;
    r->graphblas = best_of(all, count, "GraphBLAS");
    r->eigen = best_of(all, count, "Eigen");
    if (s->scaling && s->threads > 1) r->one_thread = all[single].median;
    r->workspace = r->stats.workspace_bytes;
    double better = r->graphblas;
    if (r->eigen > 0 && (better == 0 || r->eigen < better)) better = r->eigen;
    if (better > 0 && r->tulle > 0) r->ratio = better / r->tulle;
    if (better > 0 && r->fresh > 0) r->fresh_ratio = better / r->fresh;
    printf("%-16s %8lld %9lld %11lld %7.2f %9.2f %9.2f %9.2f %9.2f %8.2f %6.2f %6.2f\n", r->name,
           (long long)r->rows, (long long)r->nnz, (long long)r->products,
           r->c_nnz > 0 ? (double)r->products / (double)r->c_nnz : 0.0, r->tulle * 1e3, r->fresh * 1e3,
           r->graphblas * 1e3, r->eigen * 1e3, r->tulle > 0 ? 2e-9 * (double)r->products / r->tulle : 0.0,
           r->ratio, r->fresh_ratio);
    print_policies(p, all, count);
    for (int k = 0; peers[k]; k++)
        if (state[k]) peers[k]->close(state[k]);
    return r->tulle > 0;
}

static bool run_matrix(tulle_ctx *ctx, const settings *s, const char *name, const char *recipe, result *r)
{
    operands o;
    problem p = {.name = name};
    bool ok = false;
    if (operands_open(ctx, recipe, &o)) {
        wrong(name, recipe, tulle_ctx_error(ctx));
        return false;
    }
    p.A = o.A;
    p.B = o.B;
    if (p.A.ptr_type != TULLE_I32 || p.A.idx_type != TULLE_I32 || p.A.val_type != TULLE_F64) {
        printf("%s: not a matrix of doubles with 32-bit indices\n", name);
        wrongs++;
    } else if (problem_open(&p)) {
        ok = measure(ctx, s, &p, r);
    }
    problem_close(&p);
    operands_close(&o);
    return ok;
}

/* ---- the tables */

static void print_scaling(const result *all, int count, int threads)
{
    printf("\nproducts that take tulle more than 100 ms on one thread\n%-16s %10s %10s %9s\n", "matrix",
           "ms at 1", "ms", "speedup");
    double worst = INFINITY;
    for (int i = 0; i < count; i++) {
        if (all[i].one_thread <= 0.1) continue;
        double speedup = all[i].one_thread / all[i].tulle;
        if (speedup < worst) worst = speedup;
        printf("%-16s %10.2f %10.2f %9.2f\n", all[i].name, all[i].one_thread * 1e3, all[i].tulle * 1e3,
               speedup);
    }
    if (worst < INFINITY) printf("smallest speedup at %d threads: %.2f\n", threads, worst);
}

typedef struct {
    double logs, least;
    int    count;
} summary;

static void add_ratio(summary *s, double ratio)
{
    if (ratio <= 0) return;
    s->logs += log(ratio);
    if (s->count++ == 0 || ratio < s->least) s->least = ratio;
}

static double geomean(const summary *s)
{
    return s->count ? exp(s->logs / s->count) : 0;
}

static void write_json(FILE *f, const result *all, int count, int threads, const summary *s)
{
    fprintf(f, "{\n  \"threads\": %d, \"geomean_vs_best_peer\": %.4f, \"min\": %.4f,\n  \"matrices\": [\n",
            threads, geomean(s), s->least);
    for (int i = 0; i < count; i++) {
        const result *r = &all[i];
        fprintf(f, "    {\"name\": \"%s\", \"rows\": %lld, \"nnz\": %lld, \"products\": %lld, "
                   "\"c_nnz\": %lld,\n     \"tulle_ms\": %.4f, \"tulle_fresh_ms\": %.4f, "
                   "\"graphblas_ms\": %.4f, \"eigen_ms\": %.4f, \"tulle_one_thread_ms\": %.4f,\n"
                   "     \"ratio\": %.4f, \"fresh_ratio\": %.4f, \"workspace_bytes\": %llu,\n"
                   "     \"check_ms\": %.4f, \"analyze_ms\": %.4f, \"symbolic_ms\": %.4f, "
                   "\"numeric_ms\": %.4f, "
                   "\"finish_ms\": %.4f}%s\n",
                r->name, (long long)r->rows, (long long)r->nnz, (long long)r->products,
                (long long)r->c_nnz, r->tulle * 1e3, r->fresh * 1e3, r->graphblas * 1e3, r->eigen * 1e3,
                r->one_thread * 1e3, r->ratio, r->fresh_ratio, (unsigned long long)r->workspace,
                r->stats.sec_check * 1e3, r->stats.sec_analyze * 1e3, r->stats.sec_symbolic * 1e3,
                r->stats.sec_numeric * 1e3, r->stats.sec_finish * 1e3, i + 1 < count ? "," : "");
    }
    fprintf(f, "  ]\n}\n");
}

static void usage(void)
{
    printf("bench_spgemm [options]\n"
           "  --threads N     for tulle and GraphBLAS (default 2; 0: all cores)\n"
           "  --quick         a part of the suite, less time for each\n"
           "  --only PART     matrices whose name has PART in it\n"
           "  --recipe TEXT   this gallery matrix instead of the suite\n"
           "  --scaling       tulle on one thread as well, and the speedups\n"
           "  --policies      tulle's other policies as well\n"
           "  --no-peers      tulle alone\n"
           "  --keep-heap     malloc gives no large block back to the system: better for the peers\n"
           "  --cpu-time      CPU time of all threads, for tuning on a busy machine; use with --threads 1\n"
           "  --seconds S     for each contestant and matrix (default 1)\n"
           "  --json FILE     the figures, and the stages of tulle's first product\n"
           "  --list          the suite\n");
}

static bool read_settings(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(word, "--quick")) s->quick = true;
        else if (!strcmp(word, "--scaling")) s->scaling = true;
        else if (!strcmp(word, "--policies")) s->policies = true;
        else if (!strcmp(word, "--no-peers")) s->no_peers = true;
        else if (!strcmp(word, "--keep-heap")) s->keep_heap = true;
        else if (!strcmp(word, "--cpu-time")) s->cpu_time = true;
        else if (!strcmp(word, "--list")) s->list = true;
        else if (!value) return false;
        else if (!strcmp(word, "--threads")) s->threads = atoi(argv[++i]);
        else if (!strcmp(word, "--seconds")) s->seconds = atof(argv[++i]);
        else if (!strcmp(word, "--only")) s->only = argv[++i];
        else if (!strcmp(word, "--recipe")) s->recipe = argv[++i];
        else if (!strcmp(word, "--json")) {
            if (!(s->json = fopen(argv[++i], "w"))) {
                perror(argv[i]);
                return false;
            }
        } else return false;
    }
    if (s->threads <= 0) s->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (s->seconds <= 0) s->seconds = s->quick ? 0.4 : 1.0;
    return true;
}

int main(int argc, char **argv)
{
    static result all[SUITE + 1];
    settings s = {.threads = 2, .only = ""};
    tulle_ctx *ctx = NULL;
    int count = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_settings(argc, argv, &s)) {
        usage();
        return 2;
    }
    if (s.list) {
        for (int i = 0; i < SUITE; i++)
            printf("%-16s %s%s\n", suite[i].name, suite[i].recipe, suite[i].quick ? "  (quick)" : "");
        return 0;
    }
    if (s.cpu_time) peer_use_cpu_time();
    if (s.keep_heap) {
        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, -1);
    }
    if (tulle_ctx_create("cpu", NULL, &ctx) || tulle_ctx_set_threads(ctx, s.threads)) {
        fprintf(stderr, "no context: %s\n", ctx ? tulle_ctx_error(ctx) : "out of memory");
        return 1;
    }
    printf("C = A*A (A*A^T if rectangular), double, sorted rows; tulle %s and GraphBLAS at %d threads, Eigen "
           "at 1; medians%s\n", tulle_version(), s.threads, s.cpu_time ? " of CPU time, not of time" : "");
    printf("%-16s %8s %9s %11s %7s %9s %9s %9s %9s %8s %6s %6s\n", "matrix", "rows", "nnz", "products",
           "compr.", "tulle ms", "fresh ms", "GrB ms", "Eigen ms", "GFLOPS", "ratio", "fresh");
    if (s.recipe) {
        if (run_matrix(ctx, &s, s.recipe, s.recipe, &all[count])) count++;
    } else {
        for (int i = 0; i < SUITE; i++)
            if ((suite[i].quick || !s.quick) && strstr(suite[i].name, s.only) &&
                run_matrix(ctx, &s, suite[i].name, suite[i].recipe, &all[count]))
                count++;
    }
    summary warm = {0}, fresh = {0};
    for (int i = 0; i < count; i++) {
        add_ratio(&warm, all[i].ratio);
        add_ratio(&fresh, all[i].fresh_ratio);
    }
    if (s.scaling) print_scaling(all, count, s.threads);
    if (s.json) {
        write_json(s.json, all, count, s.threads, &warm);
        fclose(s.json);
    }
    tulle_ctx_free(ctx);
    if (wrongs) printf("\n%d things were WRONG, see above\n", wrongs);
    printf("\nfresh: geomean_vs_best_peer=%.3f min=%.3f matrices=%d\n", geomean(&fresh), fresh.least,
           fresh.count);
    printf("geomean_vs_best_peer=%.3f min=%.3f matrices=%d\n", geomean(&warm), warm.least, warm.count);
    return wrongs || !count ? 1 : 0;
}
