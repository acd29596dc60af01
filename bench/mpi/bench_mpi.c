/* SPDX-License-Identifier: MIT
 *
 * bench_mpi.c - products over ranks by tulle, PETSc (each of its algorithms), hypre and, if it was built and
 * the number of ranks is a square, CombBLAS, in turns in one run.
 *
 *     mpirun -n 4 build/bench/bench_mpi [--quick] [--only NAME] [--peer NAME] [--no-combblas] [--runs N]
 *
 * A*A of matrices of the gallery, and P^T*A*P.  Every rank generates the whole matrix and keeps its rows;
 * that is not timed.  The libraries take turns, one product each; the time of a product is that of the
 * slowest rank between two barriers, and the median counts.  The numbers of entries must agree, and tulle's C
 * is verified; the values of CombBLAS, which has another layout, must have the same sum.  The line of a case
 * ends with (time of the fastest peer) / (time of tulle); the last line is `mpi_vs_best=X min=Y cases=N`,
 * their geometric mean and minimum.  The exit status is 1 if a product was wrong or moved more bytes than
 * necessary. */
#define _POSIX_C_SOURCE 200809L
#include <petscmat.h>
#include <_hypre_utilities.h>
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <_hypre_parcsr_mv.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "combblas.h"
#include "tulle_mpi.h"

typedef struct { const char *name, *a, *p; bool quick; } bench_case;     /* p: P^T*A*P */

static const bench_case cases[] = {
    {"poisson3d", "poisson3d:48", NULL, true},
    {"poisson3d27", "poisson3d:28,points=27", NULL, false},
    {"cage", "cage:11", NULL, true},
    {"cage12", "cage:12", NULL, false},
    {"rmat", "rmat:scale=13,edges=16,seed=1", NULL, true},
    {"elasticity", "elasticity3d:14", NULL, true},
    {"ptap2d", "poisson2d:300", "prolongator:300", false},
    {"ptap3d", "poisson3d:48", "prolongator:nx=48,ny=48,nz=48", true},
};
enum { CASES = sizeof cases / sizeof *cases, MOST_RUNS = 32, MOST_PEERS = 8 };

static int rank, size;
static tulle_ctx *ctx;
static tulle_dist *dist;

static void stop(const char *why)
{
    if (rank == 0) fprintf(stderr, "bench_mpi: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void need(tulle_status status)
{
    if (status != TULLE_OK) stop(tulle_ctx_error(ctx));
}

/* ---- operands, in the layout of each library */

typedef struct operand {
    tulle_dist_matrix  *own;
    tulle_dist_csr      view;
    int64_t            *starts, *col_starts;
    Mat                 petsc;
    HYPRE_IJMatrix      ij;
    hypre_ParCSRMatrix *hypre;
    comb_matrix        *comb, *copy;    /* CombBLAS does not accept one matrix as both factors */
} operand;

static void to_petsc(operand *o)
{
    const tulle_csr *l = &o->view.local;
    PetscInt cols = (PetscInt)(o->col_starts[rank + 1] - o->col_starts[rank]);
    PetscCallAbort(PETSC_COMM_WORLD, MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, (PetscInt)l->rows, cols,
                                                               PETSC_DETERMINE,
                   PETSC_DETERMINE, l->row_ptr, l->col_idx, l->values, &o->petsc));
}

static void to_hypre(operand *o)
{
    const tulle_csr *l = &o->view.local;
    const int32_t *row_ptr = l->row_ptr;
    HYPRE_Int *count = calloc((size_t)l->rows + 1, sizeof *count);
    HYPRE_BigInt *row = calloc((size_t)l->rows + 1, sizeof *row);
    void *matrix = NULL;
    for (int64_t i = 0; i < l->rows; i++) {
        count[i] = row_ptr[i + 1] - row_ptr[i];
        row[i] = (HYPRE_BigInt)(o->starts[rank] + i);
    }
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, (HYPRE_BigInt)o->starts[rank], (HYPRE_BigInt)o->starts[rank + 1] - 1,
                         (HYPRE_BigInt)o->col_starts[rank],
                         (HYPRE_BigInt)o->col_starts[rank + 1] - 1, &o->ij);
    HYPRE_IJMatrixSetObjectType(o->ij, HYPRE_PARCSR);
    HYPRE_IJMatrixSetRowSizes(o->ij, count);
    HYPRE_IJMatrixInitialize(o->ij);
    HYPRE_IJMatrixSetValues(o->ij, (HYPRE_Int)l->rows, count, row, (const HYPRE_BigInt *)l->col_idx,
                            l->values);
    HYPRE_IJMatrixAssemble(o->ij);
    HYPRE_IJMatrixGetObject(o->ij, &matrix);
    o->hypre = matrix;
    /* hypre's communication lists, which it would otherwise create at the first use */
    hypre_MatvecCommPkgCreate(o->hypre);
    free(count);
    free(row);
}

static bool has_comb;

static void to_comb(const tulle_csr *a, operand *o)
{
    if (!has_comb) return;
    int32_t rows = (int32_t)a->rows, cols = (int32_t)a->cols;
    o->comb = comb_load(MPI_COMM_WORLD, rows, cols, a->row_ptr, a->col_idx, a->values);
    o->copy = comb_load(MPI_COMM_WORLD, rows, cols, a->row_ptr, a->col_idx, a->values);
}

static void load(const char *recipe, operand *o)
{
    tulle_matrix *A = NULL, *narrow = NULL;
    need(tulle_gallery(ctx, recipe, &A));
    tulle_csr a = tulle_matrix_view(A);
    need(tulle_csr_convert(ctx, &a, TULLE_F64, TULLE_I32, TULLE_I32, &narrow));
    a = tulle_matrix_view(narrow);
    o->starts = calloc((size_t)size + 1, sizeof *o->starts);
    o->col_starts = calloc((size_t)size + 1, sizeof *o->col_starts);
    tulle_dist_split(a.rows, size, o->starts);
    tulle_dist_split(a.cols, size, o->col_starts);
    need(tulle_dist_scatter(dist, &a, o->starts, &o->own));
    o->view = tulle_dist_matrix_view(o->own);
    to_comb(&a, o);
    tulle_matrix_free(A);
    tulle_matrix_free(narrow);
    to_petsc(o);
    to_hypre(o);
}

static void unload(operand *o)
{
    tulle_dist_matrix_free(o->own);
    PetscCallAbort(PETSC_COMM_WORLD, MatDestroy(&o->petsc));
    HYPRE_IJMatrixDestroy(o->ij);
    comb_free(o->comb);
    comb_free(o->copy);
    free(o->starts);
    free(o->col_starts);
    memset(o, 0, sizeof *o);
}

/* ---- competitors: each times one product, counts its entries, and frees it after the clock has stopped */

typedef struct result { double seconds; int64_t nnz; } result;

static double began;

static void start_clock(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
}

static double stop_clock(void)
{
    double mine = MPI_Wtime() - began, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static bool verified, exact;
static double sum, sum_of_sizes;        /* of the entries of tulle's C, set with verified */
static const char *peer;                /* only competitors whose names begin with this */

static void add_up(const tulle_csr *c)
{
    const double *v = c->values;
    double mine[2] = {0, 0}, all[2];
    for (int64_t k = 0; k < c->nnz; k++) mine[0] += v[k], mine[1] += fabs(v[k]);
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sum = all[0];
    sum_of_sizes = all[1];
}

static result by_tulle(const char *how, operand *A, operand *P)
{
    tulle_dist_matrix *C = NULL;
    tulle_dist_stats stats;
    (void)how;
    start_clock();
    need(P ? tulle_dist_ptap(dist, &A->view, &P->view, NULL, &C) : tulle_dist_multiply(dist, &A->view,
                                                                                       &A->view, NULL, &C));
    result r = {.seconds = stop_clock()};
    tulle_dist_stats_get(dist, &stats);
    r.nnz = stats.c_nnz;
    exact &= stats.bytes == stats.bytes_exact;
    tulle_dist_csr c = tulle_dist_matrix_view(C);
    double error = 0;
    if (!P && !verified) need(tulle_dist_product_check(dist, &A->view, &A->view, &c, &error));
    if (!verified) add_up(&c.local);
    verified = true;
    tulle_dist_matrix_free(C);
    return r;
}

static result by_petsc(const char *how, operand *A, operand *P)
{
    Mat C;
    MatInfo info;
    start_clock();
    PetscCallAbort(PETSC_COMM_WORLD, MatProductCreate(A->petsc, P ? P->petsc : A->petsc, NULL, &C));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductSetType(C, P ? MATPRODUCT_PtAP : MATPRODUCT_AB));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductSetAlgorithm(C, how));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductSetFill(C, PETSC_DEFAULT));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductSetFromOptions(C));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductSymbolic(C));
    PetscCallAbort(PETSC_COMM_WORLD, MatProductNumeric(C));
    result r = {.seconds = stop_clock()};
    PetscCallAbort(PETSC_COMM_WORLD, MatGetInfo(C, MAT_GLOBAL_SUM, &info));
    r.nnz = (int64_t)info.nz_used;
    PetscCallAbort(PETSC_COMM_WORLD, MatDestroy(&C));
    return r;
}

static result by_hypre(const char *how, operand *A, operand *P)
{
    (void)how;
    start_clock();
    hypre_ParCSRMatrix *C = P ? hypre_ParCSRMatrixRAPKT(P->hypre, A->hypre, P->hypre,
                                                        0) : hypre_ParMatmul(A->hypre, A->hypre);
    result r = {.seconds = stop_clock()};
    hypre_ParCSRMatrixSetNumNonzeros(C);
    r.nnz = (int64_t)hypre_ParCSRMatrixNumNonzeros(C);
    hypre_ParCSRMatrixDestroy(C);
    return r;
}

static result by_comb(const char *how, operand *A, operand *P)
{
    double theirs = 0;
    (void)how;
    start_clock();
    comb_matrix *C = P ? comb_ptap(A->comb, P->comb) : comb_multiply(A->comb, A->copy);
    result r = {.seconds = stop_clock()};
    comb_look(C, &r.nnz, &theirs);
    if (fabs(theirs - sum) > 1e-10 * sum_of_sizes) stop("CombBLAS' product has another sum than tulle's");
    comb_free(C);
    return r;
}

typedef struct { const char *name, *how; result (*run)(const char *, operand *, operand *); bool ab,
                ptap; } contestant;

static const contestant contestants[] = {
    {"tulle", "", by_tulle, true, true},
    {"petsc nonscalable", "nonscalable", by_petsc, true, true},
    {"petsc scalable", "scalable", by_petsc, true, true},
    {"petsc seqmpi", "seqmpi", by_petsc, true, false},
    {"petsc allatonce", "allatonce", by_petsc, false, true},
    {"petsc backend", "backend", by_petsc, true, true},
    {"hypre", "", by_hypre, true, true},
    {"combblas", "", by_comb, true, true},
};
enum { CONTESTANTS = sizeof contestants / sizeof *contestants };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- one case */

static bool plays(const bench_case *c, int k)
{
    if (!has_comb && strcmp(contestants[k].name, "combblas") == 0) return false;
    if (peer && k > 0 && strncmp(contestants[k].name, peer, strlen(peer)) != 0) return false;
    return c->p ? contestants[k].ptap : contestants[k].ab;
}

static double one_case(const bench_case *c, int runs, bool *wrong)
{
    operand A = {0}, P = {0};
    double times[CONTESTANTS][MOST_RUNS], best = INFINITY, ours = 0;
    int64_t nnz = -1;
    const char *winner = "";
    verified = false;
    load(c->a, &A);
    if (c->p) load(c->p, &P);
    for (int i = -1; i < runs; i++)             /* one round to warm up */
        for (int k = 0; k < CONTESTANTS; k++) {
            if (!plays(c, k)) continue;
            result r = contestants[k].run(contestants[k].how, &A, c->p ? &P : NULL);
            if (k == 0 && nnz < 0) nnz = r.nnz;
            /* all-at-once leaves zeros of boundaries out; only more entries than ours would be ours
             * missing */
            if (r.nnz != nnz && rank == 0 && i < 0)
                printf("    %s: %lld entries, tulle has %lld\n", contestants[k].name,
                                                          (long long)r.nnz, (long long)nnz);
            if (r.nnz > nnz) *wrong = true;
            if (i >= 0) times[k][i] = r.seconds;
        }
    for (int k = 0; k < CONTESTANTS; k++) {
        if (!plays(c, k)) continue;
        qsort(times[k], (size_t)runs, sizeof **times, by_size);
        double median = times[k][runs / 2];
        if (rank == 0) printf("    %-20s %10.2f ms\n", contestants[k].name, 1e3 * median);
        if (k == 0) ours = median;
        else if (median < best) best = median, winner = contestants[k].name;
    }
    if (rank == 0)
        printf("case %s ranks %d: %s, %lld entries, best peer %s, ratio %.3f\n", c->name, size, c->p ?
               "P^T*A*P" : "A*A",
                          (long long)nnz, winner, best / ours);
    unload(&A);
    if (c->p) unload(&P);
    return best / ours;
}

int main(int argc, char **argv)
{
    bool quick = false, wrong = false;
    const char *only = NULL, *absent = NULL;
    int runs = 5, count = 0;
    double logs = 0, least = INFINITY;
    tulle_transport transport;
    PetscCallAbort(PETSC_COMM_SELF, PetscInitialize(&argc, &argv, NULL, NULL));
    HYPRE_Init();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) quick = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
        else if (strcmp(argv[i], "--peer") == 0 && i + 1 < argc) peer = argv[++i];
        else if (strcmp(argv[i], "--no-combblas") == 0) absent = "it was left out";
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) runs = atoi(argv[++i]);
    }
    if (runs < 1 || runs > MOST_RUNS) runs = 5;
    if (tulle_transport_mpi(MPI_COMM_WORLD, &transport) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    rank = transport.rank;
    size = transport.size;
    exact = true;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) MPI_Abort(MPI_COMM_WORLD, 1);
    need(tulle_ctx_set_threads(ctx, 1));
    need(tulle_dist_create(ctx, &transport, NULL, &dist));
    if (!absent) absent = comb_absent(size);
    has_comb = !absent;
    if (absent && rank == 0) printf("combblas is not among the peers: %s\n", absent);
    for (int k = 0; k < CASES; k++) {
        if (quick && !cases[k].quick) continue;
        if (only && strcmp(only, cases[k].name) != 0) continue;
        double ratio = one_case(&cases[k], runs, &wrong);
        logs += log(ratio);
        if (ratio < least) least = ratio;
        count++;
    }
    if (rank == 0 && !exact) printf("more bytes moved than must\n");
    if (rank == 0)
        printf("mpi_vs_best=%.3f min=%.3f cases=%d\n", count ? exp(logs / count) : 0, least, count);
    tulle_dist_free(dist);
    tulle_ctx_free(ctx);
    HYPRE_Finalize();
    PetscCallAbort(PETSC_COMM_SELF, PetscFinalize());
    return wrong || !exact || count == 0;
}
