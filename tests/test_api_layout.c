/* SPDX-License-Identifier: MIT
 *
 * test_api_layout.c - binary compatibility of the structures in the public headers: sizes and offsets never
 * change (except in tulle_lab.h), nonzero reserved members are refused in input, and are zero in output. */
#include "test.h"
#include "view_entries.h"
#include "tulle_lab.h"
#include "tulle_mpi.h"
#include <stddef.h>
#include <stdlib.h>

#if UINTPTR_MAX == UINT64_MAX

/* Sizes and offsets on machines with 64-bit pointers.  A new member replaces a reserved word; existing lines
 * of this table never change. */
static const struct { const char *name; size_t is, was; } layout[] = {
#define SIZE(type, bytes)      {"sizeof " #type, sizeof(type), bytes},
#define AT(type, member, from) {#type "." #member, offsetof(type, member), from},
    SIZE(tulle_csr, 80)
    AT(tulle_csr, rows, 0) AT(tulle_csr, cols, 8) AT(tulle_csr, nnz, 16) AT(tulle_csr, row_ptr, 24)
    AT(tulle_csr, col_idx, 32) AT(tulle_csr, values, 40) AT(tulle_csr, ptr_type, 48)
    AT(tulle_csr, idx_type, 52) AT(tulle_csr, val_type, 56) AT(tulle_csr, place, 60)
    AT(tulle_csr, reserved, 64)
    SIZE(tulle_dense, 64)
    AT(tulle_dense, rows, 0) AT(tulle_dense, cols, 8) AT(tulle_dense, ld, 16) AT(tulle_dense, val_type, 24)
    AT(tulle_dense, order, 28) AT(tulle_dense, values, 32) AT(tulle_dense, place, 40)
    AT(tulle_dense, reserved, 48)
    SIZE(tulle_mem, 40)
    AT(tulle_mem, alloc, 0) AT(tulle_mem, free, 8) AT(tulle_mem, user, 16) AT(tulle_mem, reserved, 24)
    SIZE(tulle_options, 120)
    AT(tulle_options, policy, 0) AT(tulle_options, accumulator, 8) AT(tulle_options, memory_limit, 16)
    AT(tulle_options, threads, 24) AT(tulle_options, op_a, 28) AT(tulle_options, op_b, 32)
    AT(tulle_options, c_ptr_type, 36) AT(tulle_options, c_idx_type, 40) AT(tulle_options, drop_zeros, 44)
    AT(tulle_options, sort_inputs, 48) AT(tulle_options, trust_inputs, 52) AT(tulle_options, c_place, 56)
    AT(tulle_options, time_stages, 60) AT(tulle_options, reserved, 64)
    SIZE(tulle_spmm_options, 112)
    AT(tulle_spmm_options, policy, 0)
    AT(tulle_spmm_options, memory_limit, 8) AT(tulle_spmm_options, op_a, 16)
    AT(tulle_spmm_options, threads, 20) AT(tulle_spmm_options, trust_inputs, 24)
    AT(tulle_spmm_options, allow_tf32, 28) AT(tulle_spmm_options, time_stages, 32)
    AT(tulle_spmm_options, lab, 40) AT(tulle_spmm_options, reserved, 48)
    SIZE(tulle_share, 32)
    AT(tulle_share, name, 0) AT(tulle_share, rows, 8) AT(tulle_share, products, 16)
    AT(tulle_share, reserved, 24)
    SIZE(tulle_stage, 32)
    AT(tulle_stage, name, 0) AT(tulle_stage, seconds, 8) AT(tulle_stage, reserved, 16)
    SIZE(tulle_stats, 1240)
    AT(tulle_stats, sec_compile, 0) AT(tulle_stats, sec_check, 8) AT(tulle_stats, sec_analyze, 16)
    AT(tulle_stats, sec_symbolic, 24) AT(tulle_stats, sec_numeric, 32) AT(tulle_stats, sec_finish, 40)
    AT(tulle_stats, sec_total, 48) AT(tulle_stats, a_nnz, 56) AT(tulle_stats, b_nnz, 64)
    AT(tulle_stats, c_nnz, 72) AT(tulle_stats, products, 80) AT(tulle_stats, workspace_bytes, 88)
    AT(tulle_stats, peak_bytes, 96) AT(tulle_stats, threads, 104) AT(tulle_stats, shares, 108)
    AT(tulle_stats, share, 112) AT(tulle_stats, stages, 624) AT(tulle_stats, stage, 632)
    AT(tulle_stats, waits, 1144) AT(tulle_stats, policy, 1152) AT(tulle_stats, device, 1160)
    AT(tulle_stats, isa, 1168) AT(tulle_stats, sec_upload, 1176)
    AT(tulle_stats, sec_download, 1184) AT(tulle_stats, reserved, 1192)
    SIZE(tulle_transport, 112)
    AT(tulle_transport, rank, 0) AT(tulle_transport, size, 4) AT(tulle_transport, user, 8)
    AT(tulle_transport, allreduce, 16) AT(tulle_transport, alltoall, 24) AT(tulle_transport, isend, 32)
    AT(tulle_transport, irecv, 40) AT(tulle_transport, waitall, 48) AT(tulle_transport, fail, 56)
    AT(tulle_transport, why, 64) AT(tulle_transport, end, 72) AT(tulle_transport, reserved, 80)
    SIZE(tulle_dist_csr, 104)
    AT(tulle_dist_csr, local, 0) AT(tulle_dist_csr, row_starts, 80) AT(tulle_dist_csr, reserved, 88)
    SIZE(tulle_dist_options, 64)
    AT(tulle_dist_options, slice_bytes, 0) AT(tulle_dist_options, dimensions, 8)
    AT(tulle_dist_options, grid_cols, 12) AT(tulle_dist_options, reserved, 16)
    SIZE(tulle_dist_stats, 216)
    AT(tulle_dist_stats, rank, 0) AT(tulle_dist_stats, ranks, 4) AT(tulle_dist_stats, products, 8)
    AT(tulle_dist_stats, c_nnz, 16) AT(tulle_dist_stats, products_most, 24)
    AT(tulle_dist_stats, rows_fetched, 32) AT(tulle_dist_stats, bytes, 40)
    AT(tulle_dist_stats, bytes_exact, 48) AT(tulle_dist_stats, bytes_lists, 56)
    AT(tulle_dist_stats, bytes_most, 64) AT(tulle_dist_stats, bytes_gather, 72)
    AT(tulle_dist_stats, bytes_1d, 80) AT(tulle_dist_stats, bytes_2d, 88)
    AT(tulle_dist_stats, grid_cols, 96) AT(tulle_dist_stats, messages, 104)
    AT(tulle_dist_stats, blocks, 112) AT(tulle_dist_stats, slowest, 116)
    AT(tulle_dist_stats, sec_total, 120) AT(tulle_dist_stats, sec_wait, 128)
    AT(tulle_dist_stats, sec_slowest, 136) AT(tulle_dist_stats, sec_wait_most, 144)
    AT(tulle_dist_stats, reserved, 152)
    SIZE(tulle_forecast, 640)
    AT(tulle_forecast, products, 0) AT(tulle_forecast, nnz_lower, 8) AT(tulle_forecast, nnz_estimate, 16)
    AT(tulle_forecast, nnz_upper, 24) AT(tulle_forecast, bytes_estimate, 32)
    AT(tulle_forecast, bytes_upper, 40) AT(tulle_forecast, shares, 48) AT(tulle_forecast, share, 56)
    AT(tulle_forecast, policy, 568) AT(tulle_forecast, device, 576) AT(tulle_forecast, sec_cpu, 584)
    AT(tulle_forecast, sec_device, 592) AT(tulle_forecast, reserved, 600)
    SIZE(tulle_device, 960)
    AT(tulle_device, name, 0) AT(tulle_device, text, 64) AT(tulle_device, arch, 448)
    AT(tulle_device, driver, 512) AT(tulle_device, memory_bytes, 672) AT(tulle_device, memory_free, 680)
    AT(tulle_device, processors, 688) AT(tulle_device, threads, 692) AT(tulle_device, usable, 696)
    AT(tulle_device, why_not, 700) AT(tulle_device, reserved, 896)
    SIZE(tulle_cache, 1336)
    AT(tulle_cache, path, 0) AT(tulle_cache, entries, 1024) AT(tulle_cache, bytes, 1032)
    AT(tulle_cache, embedded, 1040) AT(tulle_cache, why_not, 1048) AT(tulle_cache, reserved, 1304)
    SIZE(tulle_kernels, 72)
    AT(tulle_kernels, programs, 0) AT(tulle_kernels, compiled, 8) AT(tulle_kernels, cached, 16)
    AT(tulle_kernels, embedded, 24) AT(tulle_kernels, seconds, 32) AT(tulle_kernels, reserved, 40)
#undef SIZE
#undef AT
};

static void structures_stay_as_they_are(void)
{
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++)
        CHECK(layout[i].is == layout[i].was, "%s is %zu, it was %zu", layout[i].name, layout[i].is,
              layout[i].was);
}

#else

static void structures_stay_as_they_are(void)
{
    printf("    the numbers are those of machines with pointers of 64 bits\n");
}

#endif

/* Numbers that programs were compiled with; those of statuses are in test_api.c. */
static void enumerators_stay_as_they_are(void)
{
    static const struct { const char *name; int is, was; } number[] = {
#define NUMBER(name, value) {#name, name, value},
        NUMBER(TULLE_F32, 1) NUMBER(TULLE_F64, 2) NUMBER(TULLE_CF32, 3) NUMBER(TULLE_CF64, 4)
        NUMBER(TULLE_I32, 1) NUMBER(TULLE_I64, 2) NUMBER(TULLE_HOST, 0) NUMBER(TULLE_DEVICE, 1)
        NUMBER(TULLE_KEEP, 0) NUMBER(TULLE_TRANSPOSE, 1) NUMBER(TULLE_ADJOINT, 2)
        NUMBER(TULLE_BY_ROWS, 0) NUMBER(TULLE_BY_COLS, 1)
        NUMBER(TULLE_SUM, 0) NUMBER(TULLE_MIN, 1) NUMBER(TULLE_MAX, 2)
        NUMBER(TULLE_MAX_SHARES, 16) NUMBER(TULLE_MAX_STAGES, 16)
#undef NUMBER
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        CHECK(number[i].is == number[i].was, "%s is %d, it was %d", number[i].name, number[i].is, number[i].was);
}

static tulle_ctx *cpu(void)
{
    tulle_ctx *ctx = NULL;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) abort();
    return ctx;
}

/* ---- structures read by the library */

static void views_with_words_that_are_not_known(void)
{
    tulle_ctx *ctx = cpu();
    views_with_reserved_words_are_refused(ctx);
    tulle_ctx_free(ctx);
}

/* Each reserved word of each structure except views. */
static void options_with_words_that_are_not_known(void)
{
    tulle_ctx *ctx = cpu();
    ref A = ref_identity(ENTRY_ROWS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    static double x[ENTRY_ROWS], y[ENTRY_ROWS];
    tulle_dense X = tulle_dense_make(ENTRY_ROWS, 1, 0, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(ENTRY_ROWS, 1, 0, TULLE_BY_ROWS, y, TULLE_F64);
    tulle_options o = {.threads = 1};
    tulle_spmm_options s = {.threads = 1};
    tulle_merge_options m = {.algorithm = tulle_merge_name(0), .length = 32};
    tulle_mem mem = {.alloc = NULL};
    tulle_matrix *C = NULL;
    tulle_spmm_plan *plan = NULL;
    tulle_merge_result result;
    tulle_ctx *other = NULL;
    char why[128], wanted[64];
#define EACH(structure, name, call, sentence)                                                              \
    for (size_t i = 0; i < sizeof (structure).reserved / sizeof *(structure).reserved; i++) {              \
        (structure).reserved[i] = 1;                                                                       \
        tulle_status status = (call);                                                                      \
        (structure).reserved[i] = 0;                                                                       \
        snprintf(wanted, sizeof wanted, "%s: reserved[%zu] is not zero", name, i);                         \
        CHECK(status == TULLE_EINVAL && strcmp(sentence, wanted) == 0, "%s, \"%s\"",                       \
              tulle_status_name(status), sentence);                                                    \
    }
    EACH(o, "options", tulle_multiply(ctx, &A.view, &A.view, &o, &C), tulle_ctx_error(ctx));
    EACH(s, "options", tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, &s), tulle_ctx_error(ctx));
    EACH(s, "options", tulle_spmm_plan_create(ctx, &A.view, &s, &plan), tulle_ctx_error(ctx));
    tulle_spmm_lab lab = {.ellr_threads = 0};
    s.lab = &lab;
    EACH(lab, "lab", tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, &s), tulle_ctx_error(ctx));
    EACH(m, "merge options", tulle_merge_trial(ctx, &m, &result), tulle_ctx_error(ctx));
    tulle_delta_sample sample = {.seconds = {{1, 1}, {1, 1}}};
    tulle_delta_report report;
    EACH(sample, "a sample", tulle_delta_train(ctx, &sample, 1, "never written", &report), tulle_ctx_error(ctx));
    EACH(mem, "mem", tulle_ctx_create_why("cpu", &mem, &other, why, sizeof why), why);
#undef EACH
    CHECK(!C && !plan && !other, "a result and an error");
    CHECK(tulle_ctx_create("cpu", &(tulle_mem){.reserved = {0, 1}}, &other) == TULLE_EINVAL && !other,
          "without room for a sentence");
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- structures filled in by the library */

/* Every member that has a meaning is set by the library; all others become zero, whatever they were. */
static void what_comes_back_has_zeros(void)
{
    tulle_ctx *ctx = cpu();
    ref A = ref_identity(ENTRY_ROWS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    tulle_matrix *C = NULL;
    tulle_dense_matrix *D = NULL;
    tulle_plan *plan = NULL;
    tulle_spmm_plan *spmm = NULL;
    static const uint64_t none[16];
    REQUIRE(tulle_multiply(ctx, &A.view, &A.view, &(tulle_options){.time_stages = 1}, &C) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    REQUIRE(tulle_plan_create(ctx, &A.view, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_spmm_plan_create(ctx, &A.view, NULL, &spmm) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_dense_create(ctx, 2, 3, TULLE_BY_ROWS, TULLE_F64, &D) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
#define ZEROS(structure)                                                                          \
    CHECK(memcmp((structure).reserved, none, sizeof (structure).reserved) == 0, "%s", #structure)
#define COMES(type, name, call)                                                                   \
    type name;                                                                                    \
    memset(&name, 0xa5, sizeof name);                                                             \
    call;                                                                                         \
    ZEROS(name)
    COMES(tulle_csr, of_matrix, of_matrix = tulle_matrix_view(C));
    COMES(tulle_csr, of_nothing, of_nothing = tulle_matrix_view(NULL));
    COMES(tulle_csr, made, made = tulle_csr_make(0, 0, NULL, TULLE_I32, NULL, TULLE_I32, NULL, TULLE_F64));
    COMES(tulle_csr, there, there = tulle_csr_make_device(1, 1, 1, &there, TULLE_I32, &there, TULLE_I32, NULL,
                                                          TULLE_F64));
    COMES(tulle_csr, pattern, pattern = tulle_plan_pattern(plan));
    COMES(tulle_dense, dense, dense = tulle_dense_view(D));
    COMES(tulle_dense, dense_made, dense_made = tulle_dense_make(1, 1, 1, TULLE_BY_COLS, &dense_made,
                                                                 TULLE_F64));
    COMES(tulle_dense, dense_there, dense_there = tulle_dense_make_device(1, 1, 1, TULLE_BY_COLS, &dense,
                                                                          TULLE_F64));
    COMES(tulle_stats, before, tulle_ctx_stats(NULL, &before));
    COMES(tulle_stats, of_plan, tulle_plan_stats(plan, &of_plan));
    COMES(tulle_stats, of_spmm, tulle_spmm_plan_stats(spmm, &of_spmm));
    tulle_matrix_free(C);
    C = NULL;
    REQUIRE(tulle_multiply(ctx, &A.view, &A.view, &(tulle_options){.time_stages = 1}, &C) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    COMES(tulle_stats, stats, tulle_ctx_stats(ctx, &stats));
    CHECK(stats.shares > 0 && stats.stages > 0, "%d shares, %d stages", stats.shares, stats.stages);
    for (int i = 0; i < TULLE_MAX_SHARES; i++) ZEROS(stats.share[i]);
    for (int i = 0; i < TULLE_MAX_STAGES; i++) ZEROS(stats.stage[i]);
    COMES(tulle_forecast, forecast, tulle_estimate(ctx, &A.view, &A.view, NULL, &forecast));
    for (int i = 0; i < TULLE_MAX_SHARES; i++) ZEROS(forecast.share[i]);
    COMES(tulle_device, device, tulle_device_info(0, &device));
    COMES(tulle_cache, cache, tulle_cache_info(ctx, &cache));
    COMES(tulle_kernels, kernels, tulle_cache_warm(ctx, TULLE_F64, TULLE_I32, &kernels));
    const tulle_merge_options merge = {.algorithm = tulle_merge_name(0)};
    COMES(tulle_merge_result, merged, tulle_merge_trial(ctx, &merge, &merged));
    COMES(tulle_delta_sample, sample, tulle_delta_trial(ctx, &A.view, &A.view, 1, &sample));
    COMES(tulle_delta_report, report, tulle_delta_train(ctx, &sample, 1, "never written", &report));
    COMES(tulle_csr, arrays, tulle_matrix_release(C, &arrays));
#undef COMES
#undef ZEROS
    tulle_array_free(arrays.row_ptr);
    tulle_array_free(arrays.col_idx);
    tulle_array_free(arrays.values);
    tulle_dense_free(D);
    tulle_plan_free(plan);
    tulle_spmm_plan_free(spmm);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(structures_stay_as_they_are), TEST(enumerators_stay_as_they_are), TEST(views_with_words_that_are_not_known),
          TEST(options_with_words_that_are_not_known), TEST(what_comes_back_has_zeros))
