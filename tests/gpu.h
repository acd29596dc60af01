/* SPDX-License-Identifier: MIT
 *
 * gpu.h - what the tests of the GPU engine share.
 *
 * They run on the device that TULLE_TEST_DEVICE names, "opencl:0" where it is not set: PoCL on a machine
 * without a GPU.  What a product should be comes from the CPU engine.  Matrices have integer values
 * unless a test says otherwise, so that sums are exact in any order and comparisons are bit for bit. */
#ifndef TULLE_TEST_GPU_H
#define TULLE_TEST_GPU_H
#include "ctx.h"
#include "gpu/engine.h"
#include "ways.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};
static const ref_types f64_i64 = {TULLE_F64, TULLE_I64, TULLE_I64};

static inline const char *gpu_name(void)
{
    const char *name = getenv("TULLE_TEST_DEVICE");
    return name && *name ? name : "opencl:0";
}

/* Whether to test fewer combinations: with PoCL in `make check`, and with the simulated CUDA device
 * (cuda_model/run.sh), but not with a device that was named explicitly. */
static inline bool few(void)
{
    return !getenv("TULLE_TEST_DEVICE") || getenv("TULLE_TEST_FEW");
}

/* Which of ref_types_at(i) to skip if few(): one per value type and all index widths remain; OpenCL compiles
 * slowly. */
static inline bool skips_types(int i)
{
    return i % 5 != 0 && (few() || (strncmp(gpu_name(), "opencl", 6) == 0 && i % 3 != 0));
}

/* CUDA creates and destroys the primary context with the first and the last of our contexts, which takes a
 * quarter of a second, or longer if other processes do the same: keeping one context makes all others
 * fast. */
static inline void gpu_stay(void)
{
    static tulle_ctx *stays;
    if (!stays && strncmp(gpu_name(), "cuda", 4) == 0) (void)tulle_ctx_create(gpu_name(), NULL, &stays);
}

/* A missing device makes the test fail. */
static inline tulle_ctx *gpu_ctx(void)
{
    tulle_ctx *ctx = NULL;
    gpu_stay();
    tulle_status status = tulle_ctx_create(gpu_name(), NULL, &ctx);
    if (status == TULLE_OK) return ctx;
    printf("    the device %s: %s; there are:\n", gpu_name(), tulle_status_name(status));
    for (int i = 0; i < tulle_device_count(); i++) {
        tulle_device d;
        if (tulle_device_info(i, &d) == TULLE_OK) printf("    %s: %s %s\n", d.name, d.text, d.why_not);
    }
    fflush(stdout);
    abort();
}

/* A context made while a variable of the environment is set; NULL: not set. */
static inline tulle_ctx *gpu_ctx_env(const char *variable, const char *value)
{
    if (value) setenv(variable, value, 1);
    else unsetenv(variable);
    tulle_ctx *ctx = gpu_ctx();
    unsetenv(variable);
    return ctx;
}

/* Lets the n-th allocation of device memory fail, counted as in a new context: kept memory is freed first.
 * The same context is used for every n, because loading its programs again takes PoCL longer than everything
 * else. */
static inline void gpu_fail_at(tulle_ctx *ctx, int n)
{
    tulle_ctx_trim(ctx);
    ctx->gpu->requests = (uint64_t)ctx->gpu->blocks;
    ctx->gpu->fail_at = (uint64_t)n;
}

/* ---- ways: the policies, and the accumulators that a device has */

static inline bool gpu_way(int i, tulle_options *o, const char **name)
{
    static const struct { const char *policy, *accumulator; } ways[] = {
        {"speck", NULL}, {"auto", NULL}, {NULL, "hash"}, {NULL, "dense"},
        {"regsort", NULL}, {"regmerge", NULL}, {"reghash", NULL}, {"bhsparse", NULL}, {"delta", NULL}};
    if (i >= (int)(sizeof ways / sizeof *ways)) return false;
    *o = (tulle_options){.policy = ways[i].policy, .accumulator = ways[i].accumulator};
    *name = ways[i].policy ? ways[i].policy : ways[i].accumulator;
    return true;
}

/* The same for a sequence of matrices: of the policies that have tests of their own (the last five) a CPU
 * uses another one for each matrix, a GPU all of them. */
static inline bool gpu_way_of(int turn, int i, tulle_options *o, const char **name)
{
    enum { CORE = 4, OTHERS = 5 };
    if (few()) {
        if (i > CORE) return false;
        if (i == CORE) i += turn % OTHERS;
    }
    return gpu_way(i, o, name);
}

/* ---- where the matrices are */

enum { A_THERE = 1, B_THERE = 2, C_THERE = 4, PLACES = 8 };

static inline const char *places_name(int places)
{
    static const char *const names[PLACES] = {"h*h=h", "d*h=h", "h*d=h", "d*d=h",
                                              "h*h=d", "d*h=d", "h*d=d", "d*d=d"};
    return names[places];
}

static inline tulle_matrix *gpu_moved(tulle_ctx *ctx, const tulle_csr *A, tulle_place place)
{
    tulle_matrix *M = NULL;
    CHECK(tulle_csr_move(ctx, A, place, &M) == TULLE_OK, "moving: %s", tulle_ctx_error(ctx));
    return M;
}

/* The product, copied to the host, with operands and C in any place; NULL after a failure. */
static inline tulle_matrix *gpu_product(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, tulle_options o,
                                        int places, const char *name)
{
    tulle_matrix *a = places & A_THERE ? gpu_moved(ctx, A, TULLE_DEVICE) : NULL;
    tulle_matrix *b = places & B_THERE ? gpu_moved(ctx, B, TULLE_DEVICE) : NULL;
    tulle_csr va = a ? tulle_matrix_view(a) : *A, vb = b ? tulle_matrix_view(b) : *B;
    tulle_matrix *C = NULL;
    o.c_place = places & C_THERE ? TULLE_DEVICE : TULLE_HOST;
    tulle_status status = tulle_multiply(ctx, &va, &vb, &o, &C);
    CHECK(status == TULLE_OK && C, "%s, %s: %s: %s", name, places_name(places), tulle_status_name(status),
          tulle_ctx_error(ctx));
    if (C) {
        tulle_csr c = tulle_matrix_view(C);
        CHECK((int)c.place == o.c_place, "%s, %s: C is at %d", name, places_name(places), (int)c.place);
    }
    if (C && places & C_THERE) {
        tulle_csr c = tulle_matrix_view(C);
        tulle_matrix *host = gpu_moved(ctx, &c, TULLE_HOST);
        tulle_matrix_free(C);
        C = host;
    }
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return C;
}

static inline bool gpu_product_is(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                                  int places, const tulle_csr *want, const char *name)
{
    int before = test_failures;
    tulle_matrix *C = gpu_product(ctx, A, B, o ? *o : (tulle_options){0}, places, name);
    tulle_csr c = tulle_matrix_view(C);
    if (C) CHECK(ref_same(&c, want, name), "%s: a wrong product", places_name(places));
    tulle_matrix_free(C);
    return test_failures == before;
}

/* The expected result, from the CPU engine. */
static inline tulle_matrix *cpu_product(const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    tulle_ctx *cpu = NULL;
    tulle_matrix *C = NULL;
    if (tulle_ctx_create("cpu", NULL, &cpu) != TULLE_OK) abort();
    CHECK(tulle_multiply(cpu, A, B, o, &C) == TULLE_OK, "on the CPU: %s", tulle_ctx_error(cpu));
    tulle_ctx_free(cpu);
    return C;
}

/* ---- shapes that matter for a device, in addition to those of ways.h */

/* Column `full` is in every row of A; besides it there is one entry per row. */
static inline ref full_column_and_singles(int64_t rows, int64_t cols, int64_t full, ref_types t)
{
    ref A = ref_new(rows, cols, 2 * rows - (rows + cols - 1) / cols, t);
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t other = (i + full) % cols;                      /* equal to full once in `cols` rows */
        int64_t first = other < full ? other : full, second = other < full ? full : other;
        ref_set_col(&A, at++, first);
        if (second != first) ref_set_col(&A, at++, second);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, REF_INTEGERS, 12);
    return A;
}

/* Rows of every length from 0 to the longest, each over columns that lie `step` apart. */
static inline ref staircase(int64_t rows, int64_t cols, int64_t longest, int64_t step, ref_kind kind, ref_types t)
{
    int64_t nnz = 0;
    for (int64_t i = 0; i < rows; i++) nnz += i * longest / (rows > 1 ? rows - 1 : 1);
    ref A = ref_new(rows, cols, nnz, t);
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = i * longest / (rows > 1 ? rows - 1 : 1), first = (5 * i) % (cols - (n > 0 ? (n - 1) * step : 0));
        for (int64_t k = 0; k < n; k++) ref_set_col(&A, at++, first + k * step);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 13);
    return A;
}

enum { GPU_PAIRS = PAIRS + 8 };
#define GPU_PAIR(i) (PAIRS + (i))       /* the i-th of those that only devices see */

/* The pairs of ways.h, then those of the device. */
static inline pair gpu_pair(int i, ref_kind kind, ref_types ta, ref_types tb)
{
    switch (i - PAIRS) {
    case 0: return (pair){full_column_and_singles(700, 90, 41, ta), ref_random(21, 90, 800, 12, kind, tb),
                          "one very long column of A"};
    case 1: return (pair){ref_permutation(22, 1000, ta), ref_power(23, 1000, 900, 400, kind, tb),
                          "single-entry rows of A"};
    case 2: return (pair){staircase(300, 2000, 260, 3, kind, ta), staircase(2000, 3000, 40, 7, kind, tb),
                          "rows of every length"};
    case 3: return (pair){ref_dense(70, 60, kind, ta), ref_dense(60, 200, kind, tb), "dense"};
    case 4: return (pair){ref_power(24, 2000, 2000, 1500, kind, ta), ref_power(25, 2000, 2000, 900, kind, tb),
                          "a steep power law"};
    case 5: return (pair){ref_random(26, 3, 5000, 4000, kind, ta), ref_random(27, 5000, 40000, 8, kind, tb),
                          "three rows that no scratchpad holds"};
    case 6: return (pair){ref_random(28, 5000, 40, 1.2, kind, ta), ref_random(29, 40, 30, 1.1, kind, tb),
                          "many tiny rows"};
    case 7: return (pair){ref_random(30, 1, 1, 1, kind, ta), ref_random(31, 1, 70000, 30000, kind, tb),
                          "one row that is a copy"};
    default: return pair_at(i, kind, ta, tb);
    }
}

#endif
