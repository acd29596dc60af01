/* SPDX-License-Identifier: MIT
 * test_slices.c - views whose row_ptr[0] is not 0, on the CPU: slices.h, and memory, threads and overlaps. */
#include "slices.h"

static void slices_of_all_types_are_as_copies(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int t = 0; t < REF_TYPES; t++) slices_are_as_copies(ctx, ref_types_at(t));
    tulle_ctx_free(ctx);
}

static void wrong_slices_are_named(void)
{
    tulle_ctx *ctx = ctx_with(2);
    wrong_slices_are_refused(ctx);
    tulle_ctx_free(ctx);
}

/* Enough rows for several threads to copy the pointers: the message must name the first error. */
static void the_first_of_many_faults_is_named(void)
{
    enum { ROWS = 300000 };
    tulle_ctx *ctx = ctx_with(4);
    ref A = ref_identity(ROWS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    tulle_csr V = tulle_csr_make(ROWS - 7, ROWS, (int32_t *)A.row_ptr + 7, TULLE_I32, A.col_idx, TULLE_I32,
                                 A.values, TULLE_F64);
    CHECK(tulle_csr_check(ctx, &V) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_matrix *C = NULL;
    CHECK(tulle_multiply(ctx, &V, &A.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(c.nnz == ROWS - 7 && ref_ptr(&c, 0) == 0 && ref_col(&c, 0) == 7, "%" PRId64 " entries", c.nnz);
    tulle_matrix_free(C);
    for (int64_t i = 120000; i < ROWS; i += 40000) ref_set_ptr(&A, i, i - 30000);
    CHECK(tulle_csr_check(ctx, &V) == TULLE_EPATTERN, "%s", tulle_ctx_error(ctx));
    const char *said = "A: row_ptr[119993] = 90000 is smaller than row_ptr[119992] = 119999";
    CHECK(strcmp(tulle_ctx_error(ctx), said) == 0, "%s", tulle_ctx_error(ctx));
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* The copied pointers of a slice count towards the limit, and are included in the number of an error
 * message. */
static void the_memory_limit_counts_the_pointers(void)
{
    enum { ROWS = 20000 };
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_identity(ROWS, (ref_types){TULLE_F64, TULLE_I64, TULLE_I32});
    tulle_csr V = tulle_csr_make(ROWS - 1, ROWS, (int64_t *)A.row_ptr + 1, TULLE_I64, A.col_idx, TULLE_I32,
                                 A.values, TULLE_F64);
    tulle_csr W = tulle_csr_make(ROWS - 1, ROWS, A.row_ptr, TULLE_I64, A.col_idx, TULLE_I32, A.values,
                                 TULLE_F64);
    const tulle_csr *views[] = {&V, &W};
    unsigned long long needs[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        tulle_matrix *C = NULL;
        tulle_options o = {.memory_limit = 1};
        CHECK(tulle_multiply(ctx, views[i], &A.view, &o, &C) == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
        const char *at = strstr(tulle_ctx_error(ctx), "needs ");
        needs[i] = at ? strtoull(at + strlen("needs "), NULL, 10) : 0;
        o.memory_limit = needs[i];
        CHECK(tulle_multiply(ctx, views[i], &A.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_stats stats;
        tulle_ctx_stats(ctx, &stats);
        CHECK(stats.peak_bytes <= needs[i], "%llu bytes of %llu", (unsigned long long)stats.peak_bytes,
              needs[i]);
        tulle_matrix_free(C);
    }
    CHECK(needs[0] >= needs[1] + (ROWS - 1) * sizeof(int64_t), "%llu and %llu bytes", needs[0], needs[1]);
    /* and those of SpMM */
    den X = den_new(ROWS, 1, 0, TULLE_BY_ROWS, TULLE_F64),
        Y = den_new(ROWS - 1, 1, 0, TULLE_BY_ROWS, TULLE_F64);
    den_fill(&X, REF_INTEGERS, 1);
    CHECK(tulle_spmm(ctx, NULL, &V, &X.view, NULL, &Y.view, &(tulle_spmm_options){.memory_limit = 1000}) == TULLE_ELIMIT,
          "%s", tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), "row pointers of a slice need "), "%s", tulle_ctx_error(ctx));
    CHECK(tulle_spmm(ctx, NULL, &V, &X.view, NULL, &Y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    /* a plan also has a copy of the values, or of all of A */
    for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++) {
        tulle_spmm_plan *plan = NULL;
        tulle_spmm_options o = {.op_a = op, .memory_limit = 1};
        unsigned long long all[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            CHECK(tulle_spmm_plan_create(ctx, &V, &o, &plan) == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
            const char *at = strstr(tulle_ctx_error(ctx), "need");
            all[i] = at ? strtoull(at + strcspn(at, " "), NULL, 10) : 0;
            o.memory_limit = all[i];
        }
        CHECK(all[1] >= all[0] + (ROWS - 1) * sizeof(double), "%llu, then %llu bytes: %s", all[0], all[1],
              tulle_ctx_error(ctx));
        CHECK(tulle_spmm_plan_create(ctx, &V, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_spmm_plan_free(plan);
    }
    den_free(&X), den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Y may overlap the part of an array that the slice does not read, but not the other part. */
static void what_a_slice_does_not_read_may_be_written(void)
{
    tulle_ctx *ctx = ctx_with(1);
    enum { ROWS = 64, FIRST = 32 };
    ref A = ref_identity(ROWS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    double x[ROWS];
    for (int i = 0; i < ROWS; i++) x[i] = i + 1;
    tulle_csr V = tulle_csr_make(ROWS - FIRST, ROWS, (int32_t *)A.row_ptr + FIRST, TULLE_I32, A.col_idx,
                                 TULLE_I32, A.values, TULLE_F64);
    tulle_dense X = tulle_dense_make(ROWS, 1, 0, TULLE_BY_ROWS, x, TULLE_F64);
    for (int at = 0; at <= FIRST; at++) {
        tulle_dense Y = tulle_dense_make(ROWS - FIRST, 1, 0, TULLE_BY_ROWS, (double *)A.values + at,
                                         TULLE_F64);
        tulle_status status = tulle_spmm(ctx, NULL, &V, &X, NULL, &Y, NULL);
        CHECK((at == 0) == (status == TULLE_OK), "Y from %d on: %s", at, tulle_ctx_error(ctx));
        if (at) CHECK(strstr(tulle_ctx_error(ctx), "Y overlaps the values of A"), "%s", tulle_ctx_error(ctx));
        else CHECK(((double *)A.values)[0] == FIRST + 1 && ((double *)A.values)[FIRST - 1] == ROWS, "Y");
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(slices_of_all_types_are_as_copies), TEST(wrong_slices_are_named),
          TEST(the_first_of_many_faults_is_named),
          TEST(the_memory_limit_counts_the_pointers), TEST(what_a_slice_does_not_read_may_be_written))
