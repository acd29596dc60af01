/* SPDX-License-Identifier: MIT
 *
 * test_mpi_ranks.c - distributed functions over real MPI: products, plans, transposes, files, and failures,
 * which all ranks report.  Run by mpirun (mpirun.sh); only rank 0 prints. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include "test.h"
#include "tulle_mpi.h"

static int rank, size;
static tulle_ctx *ctx;
static tulle_dist *dist;

/* Makes a failure of any rank one of rank 0. */
static void together(void)
{
    int mine = test_failures, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (mine == 0) CHECK(all == 0, "%d failures on other ranks", all);
}

static size_t idx(tulle_index t) { return t == TULLE_I32 ? 4 : 8; }

static int64_t at(const void *p, tulle_index t, int64_t i)
{
    return t == TULLE_I32 ? ((const int32_t *)p)[i] : ((const int64_t *)p)[i];
}

/* Are the rows from `first` on of the whole equal to the part, bit for bit? */
static bool same_rows(const tulle_csr *whole, int64_t first, const tulle_csr *part)
{
    int64_t begin = at(whole->row_ptr, whole->ptr_type, first);
    if (part->cols != whole->cols || part->idx_type != whole->idx_type) return false;
    for (int64_t i = 0; i <= part->rows; i++)
        if (at(part->row_ptr, part->ptr_type, i) != at(whole->row_ptr, whole->ptr_type, first + i) - begin)
            return false;
    size_t index = idx(whole->idx_type);
    return part->nnz == 0
           || (memcmp(part->col_idx, (const char *)whole->col_idx + (size_t)begin * index,
                      (size_t)part->nnz * index) == 0
               && memcmp(part->values, (const double *)whole->values + begin, (size_t)part->nnz * 8) == 0);
}

static const char *const recipes[] = {"poisson2d:40", "cage:6", "rmat:scale=9,edges=8,seed=3", "poisson3d:9"};
enum { RECIPES = 4 };

static tulle_matrix *gallery(int i)
{
    tulle_matrix *A = NULL;
    if (tulle_gallery(ctx, recipes[i], &A) != TULLE_OK) MPI_Abort(MPI_COMM_WORLD, 1);
    return A;
}

/* Uneven row blocks; the last rank has none if there are more than two. */
static void uneven(int64_t rows, int64_t *starts)
{
    for (int r = 0; r <= size; r++) starts[r] = r < size ? rows * r * r / (size * size) : rows;
    if (size > 2) starts[size - 1] = rows;
}

static void products_by(tulle_dist *ranks)
{
    for (int i = 0; i < RECIPES; i++) {
        tulle_matrix *A = gallery(i), *C = NULL;
        tulle_csr a = tulle_matrix_view(A);
        tulle_dist_matrix *mine = NULL, *c = NULL;
        tulle_dist_stats stats;
        int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
        uneven(a.rows, starts);
        CHECK(tulle_multiply(ctx, &a, &a, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_dist_scatter(ranks, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_dist_csr view = tulle_dist_matrix_view(mine);
        CHECK(tulle_dist_multiply(ranks, &view, &view, NULL, &c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr whole = tulle_matrix_view(C), part = tulle_dist_matrix_view(c).local;
        CHECK(same_rows(&whole, starts[rank], &part), "%s, rank %d", recipes[i], rank);
        tulle_dist_stats_get(ranks, &stats);
        CHECK(stats.bytes == stats.bytes_exact && stats.ranks == size, "%llu bytes",
              (unsigned long long)stats.bytes);
        CHECK(size == 1 || stats.messages > 0, "nothing moved");
        CHECK(size == 1 || ranks == dist || stats.grid_cols > 1, "a grid was asked for");
        tulle_dist_matrix_free(mine);
        tulle_dist_matrix_free(c);
        tulle_matrix_free(A);
        tulle_matrix_free(C);
        free(starts);
    }
    together();
}

static void products_have_the_bits_of_one_process(void)
{
    products_by(dist);
}

static void products_on_a_grid_have_them_too(void)
{
    tulle_transport transport;
    tulle_dist *grid = NULL;
    tulle_dist_options o = {.dimensions = 2, .slice_bytes = 4096};
    if (tulle_transport_mpi(MPI_COMM_WORLD, &transport) != 0
        || tulle_dist_create(ctx, &transport, &o, &grid) != TULLE_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    products_by(grid);
    tulle_dist_free(grid);
}

static void plans_run_twice(void)
{
    tulle_matrix *A = gallery(1), *C = NULL;
    tulle_csr a = tulle_matrix_view(A);
    tulle_dist_matrix *mine = NULL;
    tulle_dist_plan *plan = NULL;
    int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
    tulle_dist_split(a.rows, size, starts);
    CHECK(tulle_dist_scatter(dist, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_csr view = tulle_dist_matrix_view(mine);
    CHECK(tulle_dist_plan_create(dist, &view, &view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_dist_plan_pattern(plan).local;
    double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
    for (int run = 0; run < 2; run++) {
        double *now = tulle_matrix_values(A);
        CHECK(tulle_multiply(ctx, &a, &a, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        const double *part = now + at(a.row_ptr, a.ptr_type, starts[rank]);
        CHECK(tulle_dist_plan_run(plan, part, part, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr whole = tulle_matrix_view(C);
        c.values = values;
        CHECK(same_rows(&whole, starts[rank], &c), "run %d, rank %d", run, rank);
        tulle_matrix_free(C);
        for (int64_t k = 0; k < a.nnz; k++) now[k] = now[k] * 3 + (double)(k % 7);
    }
    tulle_dist_plan_free(plan);
    tulle_dist_matrix_free(mine);
    tulle_matrix_free(A);
    free(values);
    free(starts);
    together();
}

static void transposes_and_gathers(void)
{
    tulle_matrix *A = gallery(2), *T = NULL, *all = NULL;
    tulle_csr a = tulle_matrix_view(A);
    tulle_dist_matrix *mine = NULL, *turned = NULL;
    int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
    uneven(a.rows, starts);
    CHECK(tulle_csr_transpose(ctx, &a, TULLE_TRANSPOSE, &T) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_dist_scatter(dist, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_csr view = tulle_dist_matrix_view(mine);
    CHECK(tulle_dist_transpose(dist, &view, TULLE_TRANSPOSE, NULL, &turned) == TULLE_OK, "%s",
          tulle_ctx_error(ctx));
    tulle_csr whole = tulle_matrix_view(T);
    tulle_dist_csr part = tulle_dist_matrix_view(turned);
    CHECK(same_rows(&whole, part.row_starts[rank], &part.local), "rank %d", rank);
    CHECK(tulle_dist_gather(dist, &part, size - 1, &all) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(!all == (rank != size - 1), "rank %d", rank);
    tulle_csr gathered = tulle_matrix_view(all);
    if (all) CHECK(gathered.rows == whole.rows && same_rows(&whole, 0, &gathered), "rank %d", rank);
    tulle_dist_matrix_free(mine);
    tulle_dist_matrix_free(turned);
    tulle_matrix_free(all);
    tulle_matrix_free(A);
    tulle_matrix_free(T);
    free(starts);
    together();
}

static void files_are_written_together(void)
{
    char path[64] = "";
    if (rank == 0) snprintf(path, sizeof path, "/tmp/tulle-mpi-%ld.tulle", (long)getpid());
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    tulle_matrix *A = gallery(3), *back = NULL;
    tulle_csr a = tulle_matrix_view(A);
    tulle_dist_matrix *mine = NULL, *again = NULL;
    int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
    uneven(a.rows, starts);
    CHECK(tulle_dist_scatter(dist, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_csr view = tulle_dist_matrix_view(mine);
    CHECK(tulle_dist_write(dist, path, &view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_read(ctx, path, &back) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr whole = tulle_matrix_view(back);
    CHECK(whole.rows == a.rows && same_rows(&whole, 0, &a), "rank %d", rank);
    CHECK(tulle_dist_read(dist, path, NULL, &again) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_csr part = tulle_dist_matrix_view(again);
    CHECK(same_rows(&whole, part.row_starts[rank], &part.local), "rank %d", rank);
    together();                         /* all have read it */
    if (rank == 0) remove(path);
    tulle_dist_matrix_free(mine);
    tulle_dist_matrix_free(again);
    tulle_matrix_free(A);
    tulle_matrix_free(back);
    free(starts);
}

/* Is the message of the context the same on all ranks? */
static bool same_sentence(void)
{
    char first[1100] = "";
    snprintf(first, sizeof first, "%s", tulle_ctx_error(ctx));
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    return first[0] && strcmp(first, tulle_ctx_error(ctx)) == 0;
}

static void what_one_rank_does_wrong_all_refuse(void)
{
    tulle_matrix *A = gallery(0);
    tulle_csr a = tulle_matrix_view(A);
    tulle_dist_matrix *mine = NULL, *c = NULL;
    int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
    tulle_dist_split(a.rows, size, starts);
    CHECK(tulle_dist_scatter(dist, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_csr view = tulle_dist_matrix_view(mine), wrong = view;
    if (rank == size - 1) wrong.local.cols--;
    CHECK(tulle_dist_multiply(dist, &wrong, &view, NULL, &c) < 0 && !c, "it was taken");
    CHECK(same_sentence(), "rank %d says \"%s\"", rank, tulle_ctx_error(ctx));
    CHECK(tulle_dist_multiply(dist, &view, &view, NULL, &c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dist_matrix_free(c);
    tulle_dist_matrix_free(mine);
    tulle_matrix_free(A);
    free(starts);
    together();
}

/* ---- a transport that fails on one rank */

static tulle_transport inner;
static int calls_left;

static int failing_isend(void *user, const void *data, int64_t bytes, int to, int tag)
{
    return calls_left-- == 0 ? 1 : inner.isend(user, data, bytes, to, tag);
}

static int failing_allreduce(void *user, int64_t *values, int count, tulle_reduce op)
{
    return calls_left-- == 0 ? 1 : inner.allreduce(user, values, count, op);
}

static void a_transport_that_fails_on_one_rank_fails_on_all(void)
{
    tulle_matrix *A = gallery(1);
    tulle_csr a = tulle_matrix_view(A);
    int64_t *starts = malloc((size_t)(size + 1) * sizeof *starts);
    tulle_dist_split(a.rows, size, starts);
    for (int way = 0; way < 2; way++)
        for (int n = 0; n < (size > 1 ? 6 : 4); n++) {         /* a single rank makes no more calls */
            tulle_dist *hurt = NULL;
            tulle_dist_matrix *mine = NULL, *c = NULL;
            CHECK(tulle_transport_mpi(MPI_COMM_WORLD, &inner) == 0, "transport");
            tulle_transport t = inner;
            if (rank == 0 && way == 0) t.isend = failing_isend;
            if (rank == 0 && way == 1) t.allreduce = failing_allreduce;
            CHECK(tulle_dist_create(ctx, &t, NULL, &hurt) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            calls_left = 1000000;
            CHECK(tulle_dist_scatter(hurt, &a, starts, &mine) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_dist_csr view = tulle_dist_matrix_view(mine);
            calls_left = n;
            tulle_status status = tulle_dist_multiply(hurt, &view, &view, NULL, &c);
            if (way == 1 || (size > 1 && n < size - 1)) {
                CHECK(status == TULLE_ECOMM && !c, "call %d: %s", n, tulle_status_name(status));
                CHECK(same_sentence(), "rank %d says \"%s\"", rank, tulle_ctx_error(ctx));
                CHECK(tulle_dist_multiply(hurt, &view, &view, NULL, &c) == TULLE_ECOMM, "it works again");
            }
            tulle_dist_matrix_free(c);
            tulle_dist_matrix_free(mine);
            tulle_dist_free(hurt);
        }
    tulle_matrix_free(A);
    free(starts);
    together();
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        TEST(products_have_the_bits_of_one_process), TEST(products_on_a_grid_have_them_too),
        TEST(plans_run_twice), TEST(transposes_and_gathers),
        TEST(files_are_written_together), TEST(what_one_rank_does_wrong_all_refuse),
        TEST(a_transport_that_fails_on_one_rank_fails_on_all)};
    tulle_transport transport;
    tulle_dist_options o = {.slice_bytes = 4096};
    MPI_Init(&argc, &argv);
    if (tulle_transport_mpi(MPI_COMM_WORLD, &transport) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    rank = transport.rank;
    size = transport.size;
    if (rank > 0 && !freopen("/dev/null", "w", stdout)) return 1;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK || tulle_ctx_set_threads(ctx, 1) != TULLE_OK
        || tulle_dist_create(ctx, &transport, &o, &dist) != TULLE_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int code = test_main(argc, argv, cases, (int)(sizeof cases / sizeof *cases));
    tulle_dist_free(dist);
    tulle_ctx_free(ctx);
    MPI_Finalize();
    return code;
}
