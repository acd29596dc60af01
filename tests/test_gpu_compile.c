/* SPDX-License-Identifier: MIT
 *
 * test_gpu_compile.c - compilation of kernels: measured separately in every kind of product, reported to the
 * progress function, cancellable, done in advance by tulle_cache_warm(); and cached images that the driver
 * rejects.
 *
 * Each case begins with an empty cache of its own.  Since the compiler's time is not known, the progress
 * function sleeps for a known time when it is called for compilation; this time must be in sec_compile and
 * in no other. */
#define _GNU_SOURCE
#include "gpu.h"
#include "jit_help.h"

enum { NAP_MS = 30 };
static const double NAP = NAP_MS * 1e-3, LITTLE = 1e-6;         /* LITTLE: rounding error of sums of times */

/* What trace and progress function report, and how they respond. */
typedef struct listener {
    int compiled, cached, refused;      /* lines of the trace                 */
    int naps, stop_at;                  /* calls about compilation; stop_at 0: never cancel */
} listener;

static listener heard;
static char kept_cache[1024];           /* the cache of the other tests */

static void on_line(void *user, const char *line)
{
    (void)user;
    if (strncmp(line, "kernel ", 7) != 0) return;
    heard.compiled += strstr(line, ": compiled in ") != NULL;
    heard.cached += strstr(line, ": from the cache") != NULL;
    heard.refused += strstr(line, ": the driver refuses the cached image: ") != NULL;
}

static int on_progress(void *user, const char *stage, double fraction)
{
    (void)user;
    if (strcmp(stage, "compiling kernels") != 0) return 0;
    CHECK(fraction >= 0 && fraction <= 1, "%g", fraction);
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
    return ++heard.naps == heard.stop_at;
}

static tulle_ctx *listened_ctx(void)
{
    tulle_ctx *ctx = gpu_ctx();
    heard = (listener){0};
    tulle_ctx_set_trace(ctx, on_line, NULL);
    tulle_ctx_set_progress(ctx, on_progress, NULL);
    return ctx;
}

static void begin_empty(void)
{
    const char *was = getenv("TULLE_CACHE"), *tmp = getenv("TMPDIR");
    snprintf(kept_cache, sizeof kept_cache, "%s", was ? was : "");
    snprintf(folder, sizeof folder, "%s/tulle-compile-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) abort();
    setenv("TULLE_CACHE", folder, 1);
    setenv("TULLE_IMAGES", "off", 1);           /* no embedded images */
}

static void end_empty(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    unsetenv("TULLE_IMAGES");
    if (kept_cache[0]) setenv("TULLE_CACHE", kept_cache, 1);
    else unsetenv("TULLE_CACHE");
}

static int entries(void)
{
    return files_like("", NULL, 0);
}

static ref operand(void)
{
    return ref_power(41, 400, 400, 60, REF_INTEGERS, f64);
}

static double others(const tulle_stats *t)
{
    return t->sec_upload + t->sec_check + t->sec_analyze + t->sec_symbolic + t->sec_numeric + t->sec_download
         + t->sec_finish;
}

static const tulle_stage *stage_named(const tulle_stats *t, const char *name)
{
    for (int i = 0; i < t->stages; i++)
        if (strcmp(t->stage[i].name, name) == 0) return &t->stage[i];
    return NULL;
}

/* All sleeps are in sec_compile, which is part of the total and of no other time. */
static void check_times(const tulle_stats *t, int naps, const char *what)
{
    const double none = 0;
    CHECK(t->sec_compile >= naps * NAP, "%s: %g s, %d naps", what, t->sec_compile, naps);
    CHECK((naps == 0) == (t->sec_compile <= none), "%s: %g s, %d naps", what, t->sec_compile, naps);
    CHECK(t->sec_numeric >= none && t->sec_symbolic >= none, "%s: %g, %g s", what, t->sec_numeric,
          t->sec_symbolic);
    CHECK(others(t) + t->sec_compile <= t->sec_total + LITTLE, "%s: %g and %g s of %g s", what, others(t),
          t->sec_compile, t->sec_total);
}

static void check_product(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *want, const char *name)
{
    static const tulle_options o = {.time_stages = 1};
    gpu_product_is(ctx, A, A, &o, 0, want, name);
}

/* ---- products */

static void compiling_is_a_stage_of_the_first_product_alone(void)
{
    begin_empty();
    ref A = operand();
    ref want = ref_product(&A.view, &A.view);
    tulle_ctx *ctx = listened_ctx();
    tulle_stats t;
    check_product(ctx, &A.view, &want.view, "first");
    tulle_ctx_stats(ctx, &t);
    const int compiled = heard.compiled;
    CHECK(compiled > 0 && heard.cached == 0 && heard.naps > 0, "%d compiled, %d cached, %d naps", compiled,
          heard.cached, heard.naps);
    CHECK(entries() == compiled, "%d entries of %d", entries(), compiled);
    check_times(&t, heard.naps, "first");
    const tulle_stage *stage = stage_named(&t, "compile");
    CHECK(stage && stage->seconds >= 0.9 * heard.naps * NAP, "%g s, %d naps", stage ? stage->seconds : -1.0,
          heard.naps);
    double sum = 0;
    for (int i = 0; i < t.stages; i++) sum += t.stage[i].seconds;
    CHECK(sum <= 1.01 * t.sec_total + 1e-3, "stages of %g s in %g s", sum, t.sec_total);

    heard = (listener){0};
    check_product(ctx, &A.view, &want.view, "second");
    tulle_ctx_stats(ctx, &t);
    check_times(&t, 0, "second");
    CHECK(heard.naps == 0 && !stage_named(&t, "compile"), "told %d times", heard.naps);
    tulle_ctx_free(ctx);

    ctx = listened_ctx();                       /* loads the images cached by the first one */
    check_product(ctx, &A.view, &want.view, "another context");
    tulle_ctx_stats(ctx, &t);
    check_times(&t, heard.naps, "another context");
    CHECK(heard.compiled == 0 && heard.cached == compiled && entries() == compiled,
          "%d compiled, %d cached of %d", heard.compiled, heard.cached, compiled);
    tulle_ctx_free(ctx);
    ref_free(&A);
    ref_free(&want);
    end_empty();
}

static void plans_have_their_kernels_before_they_run(void)
{
    begin_empty();
    ref A = operand();
    ref want = ref_product(&A.view, &A.view);
    tulle_ctx *ctx = listened_ctx();
    tulle_plan *plan = NULL;
    tulle_stats made, run;
    double *values = malloc((size_t)want.view.nnz * sizeof *values);
    if (!values) abort();
    CHECK(tulle_plan_create(ctx, &A.view, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_plan_stats(plan, &made);
    check_times(&made, heard.naps, "the plan");
    CHECK(heard.compiled > 0, "nothing was compiled");
    heard = (listener){0};
    CHECK(tulle_plan_run(plan, A.view.values, A.view.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_plan_stats(plan, &run);
    CHECK(heard.naps == 0 && heard.compiled == 0 && heard.cached == 0, "a run waited for %d kernels",
          heard.compiled + heard.cached);
    CHECK(run.sec_compile == made.sec_compile, "%g s, then %g s", made.sec_compile, run.sec_compile);
    CHECK(ref_same_values(values, want.view.values, TULLE_F64, want.view.nnz, "a run"), "a wrong product");
    tulle_plan_free(plan);
    tulle_ctx_free(ctx);
    free(values);
    ref_free(&A);
    ref_free(&want);
    end_empty();
}

static int take_block(void *user, int64_t row0, const tulle_csr *block)
{
    (void)row0, (void)block;
    ++*(int *)user;
    return 0;
}

static void blocks_of_rows_add_their_times(void)
{
    begin_empty();
    ref A = operand();
    tulle_ctx *ctx = listened_ctx();
    tulle_options o = {.memory_limit = 150000};
    tulle_stats t;
    int blocks = 0;
    CHECK(tulle_multiply_blocks(ctx, &A.view, &A.view, &o, take_block, &blocks) == TULLE_OK, "%s",
          tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &t);
    CHECK(blocks > 1, "%d blocks", blocks);
    CHECK(heard.compiled > 0, "nothing was compiled");
    check_times(&t, heard.naps, "blocks");
    tulle_ctx_free(ctx);
    ref_free(&A);
    end_empty();
}

/* SpMM with column-major matrices, so that dense kernels are needed, too. */
static void check_spmm(tulle_ctx *ctx, const tulle_csr *A, const char *what, tulle_stats *t)
{
    enum { COLS = 5 };
    const tulle_spmm_options o = {.time_stages = 1};
    double *x = malloc((size_t)A->cols * COLS * sizeof *x), *y = malloc((size_t)A->rows * COLS * sizeof *y);
    if (!x || !y) abort();
    for (int64_t i = 0; i < A->cols * COLS; i++) x[i] = (double)(i % 17 - 8);
    tulle_dense X = tulle_dense_make(A->cols, COLS, A->cols, TULLE_BY_COLS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(A->rows, COLS, A->rows, TULLE_BY_COLS, y, TULLE_F64);
    CHECK(tulle_spmm(ctx, NULL, A, &X, NULL, &Y, &o) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, t);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < COLS; j++) {
            double sum = 0;
            for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++)
                sum += ref_val(A, k).re * x[j * A->cols + ref_col(A, k)];
            CHECK(y[j * A->rows + i] == sum, "%s: row %d, column %d", what, (int)i, (int)j);
        }
    free(x);
    free(y);
}

static void sparse_times_dense_has_the_stage_too(void)
{
    begin_empty();
    ref A = operand();
    tulle_ctx *ctx = listened_ctx();
    tulle_stats t;
    check_spmm(ctx, &A.view, "first", &t);
    CHECK(heard.compiled > 0, "nothing was compiled");
    check_times(&t, heard.naps, "first");
    const tulle_stage *stage = stage_named(&t, "compile");
    CHECK(stage && stage->seconds == t.sec_compile, "%g s, not %g s", stage ? stage->seconds : -1.0,
          t.sec_compile);
    CHECK(stage_named(&t, "numeric") && stage_named(&t, "check"), "%d stages", t.stages);
    heard = (listener){0};
    check_spmm(ctx, &A.view, "second", &t);
    check_times(&t, 0, "second");
    CHECK(heard.naps == 0 && !stage_named(&t, "compile") && t.stages == 3, "%d naps, %d stages", heard.naps,
          t.stages);
    tulle_ctx_free(ctx);
    ref_free(&A);
    end_empty();
}

/* ---- cancellation */

static void whoever_is_told_may_cancel_and_go_on_later(void)
{
    begin_empty();
    ref A = operand();
    ref want = ref_product(&A.view, &A.view);
    tulle_ctx *ctx = listened_ctx();
    tulle_matrix *C = NULL;
    tulle_kernels got;
    for (int at = 1; at <= 2; at++) {
        heard = (listener){.stop_at = at};
        CHECK(tulle_multiply(ctx, &A.view, &A.view, NULL, &C) == TULLE_ECANCEL && !C, "told %d times",
              heard.naps);
        CHECK(heard.naps == at, "told %d times, stopped at %d", heard.naps, at);
        CHECK(strstr(tulle_ctx_error(ctx), "cancelled while kernels were "), "%s", tulle_ctx_error(ctx));
    }
    heard = (listener){.stop_at = 1};
    CHECK(tulle_cache_warm(ctx, TULLE_F64, TULLE_I32, &got) == TULLE_ECANCEL, "warming was not stopped");
    CHECK(got.programs == 0 && got.compiled == 0, "%d programs", (int)got.programs);
    heard = (listener){0};
    check_product(ctx, &A.view, &want.view, "after it");
    tulle_ctx_free(ctx);
    ref_free(&A);
    ref_free(&want);
    end_empty();
}

/* ---- compilation in advance */

static void warm(tulle_ctx *ctx, tulle_index idx, int64_t compiled, int64_t cached, const char *what)
{
    tulle_kernels got;
    heard = (listener){0};
    CHECK(tulle_cache_warm(ctx, TULLE_F64, idx, &got) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    CHECK(got.programs == TL_FILES + (idx == TULLE_I64) && got.embedded == 0, "%s: %d programs, %d embedded",
          what, (int)got.programs, (int)got.embedded);
    CHECK(got.compiled == compiled && got.cached == cached, "%s: %d compiled, %d cached", what,
          (int)got.compiled, (int)got.cached);
    CHECK(heard.compiled == compiled && heard.cached == cached, "%s: %d compiled, %d cached in the trace",
          what, heard.compiled, heard.cached);
    CHECK((heard.naps > 0) == (compiled + cached > 0) && got.seconds >= heard.naps * NAP, "%s: %g s, %d naps",
          what, got.seconds, heard.naps);
}

/* Products with all policies find their kernels compiled. */
static void check_warmed(tulle_ctx *ctx, ref_types types, const char *what)
{
    ref A = ref_power(41, 400, 400, 60, REF_INTEGERS, types);
    ref want = ref_product(&A.view, &A.view);
    tulle_options o;
    tulle_stats t;
    const char *name;
    heard = (listener){0};
    for (int i = 0; gpu_way(i, &o, &name); i++) gpu_product_is(ctx, &A.view, &A.view, &o, 0, &want.view, name);
    o = (tulle_options){.drop_zeros = 1};
    ref less = ref_without_zeros(&want.view);
    gpu_product_is(ctx, &A.view, &A.view, &o, 0, &less.view, "zeros dropped");
    check_spmm(ctx, &A.view, what, &t);
    CHECK(heard.compiled == 0 && heard.cached == 0 && heard.naps == 0, "%s: %d compiled, %d cached", what,
          heard.compiled, heard.cached);
    CHECK(t.sec_compile == 0, "%s: %g s", what, t.sec_compile);
    ref_free(&A);
    ref_free(&want);
    ref_free(&less);
}

static void a_warm_cache_leaves_nothing_to_compile(void)
{
    begin_empty();
    tulle_ctx *ctx = listened_ctx();
    warm(ctx, TULLE_I32, TL_FILES, 0, "an empty cache");
    CHECK(entries() == TL_FILES, "%d entries", entries());
    check_warmed(ctx, f64, "the same context");
    warm(ctx, TULLE_I32, 0, 0, "once more");
    tulle_ctx_free(ctx);
    ctx = listened_ctx();
    warm(ctx, TULLE_I32, 0, TL_FILES, "another context");
    tulle_ctx_free(ctx);
    CHECK(entries() == TL_FILES, "%d entries", entries());
    end_empty();
}

static void wide_indices_are_warmed_too(void)
{
    begin_empty();
    tulle_ctx *ctx = listened_ctx();
    warm(ctx, TULLE_I64, TL_FILES + 1, 0, "an empty cache");
    check_warmed(ctx, f64_i64, "64-bit indices");
    tulle_ctx_free(ctx);
    end_empty();
}

static void a_cpu_has_nothing_to_warm(void)
{
    tulle_ctx *cpu = NULL, *gpu = listened_ctx();
    tulle_kernels got = {1, 2, 3, 4, 5};
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "no context");
    CHECK(tulle_cache_warm(cpu, TULLE_F64, TULLE_I32, &got) == TULLE_OK, "%s", tulle_ctx_error(cpu));
    CHECK(got.programs == 0 && got.compiled == 0 && got.cached == 0 && got.embedded == 0 && got.seconds == 0,
          "not zero");
    tulle_ctx *const both[] = {cpu, gpu};
    for (int i = 0; i < 2; i++) {
        CHECK(tulle_cache_warm(both[i], (tulle_type)77, TULLE_I32, &got) == TULLE_ETYPE, "%s",
              tulle_ctx_error(both[i]));
        CHECK(strstr(tulle_ctx_error(both[i]), "77"), "%s", tulle_ctx_error(both[i]));
        CHECK(tulle_cache_warm(both[i], TULLE_F64, (tulle_index)9, &got) == TULLE_ETYPE, "%s",
              tulle_ctx_error(both[i]));
        CHECK(tulle_cache_warm(both[i], TULLE_F64, TULLE_I32, NULL) == TULLE_EINVAL, "%s",
              tulle_ctx_error(both[i]));
    }
    CHECK(tulle_cache_warm(NULL, TULLE_F64, TULLE_I32, &got) == TULLE_EINVAL, "no context");
    tulle_ctx_free(cpu);
    tulle_ctx_free(gpu);
}

/* ---- images that the driver rejects */

/* Replaces cache entries by valid entries with invalid images: the first bytes of the right image, then
 * others.  Returns the number of entries. */
static int spoil_images(tulle_ctx *ctx, uint64_t keep, char end)
{
    tl_base *b = &ctx->base;
    tl_compiler compiler = ctx->gpu->driver->compiler(ctx->gpu->device);
    tl_program program;
    tl_cache cache;
    int spoilt = 0;
    tl_cache_open(&cache);
    for (int i = 0; tl_program_ahead(i, &program); i++) {
        tl_image image = {0};
        char *text = NULL;
        if (tl_jit_source(b, compiler.dialect, &program, &text) != TULLE_OK) abort();
        tl_hash key = tl_cache_key(&compiler, text);
        tl_free(b, text);
        if (!tl_cache_get(b, &cache, &key, &image)) continue;
        if (image.bytes > keep) memset((char *)image.data + keep, 'x', (size_t)(image.bytes - keep));
        ((char *)image.data)[image.bytes - 1] = end;
        tl_cache_put(&cache, &key, &image);
        tl_image_free(b, &image);
        spoilt++;
    }
    CHECK(!cache.trouble[0], "%s", cache.trouble);
    return spoilt;
}

static void an_image_that_the_driver_refuses_is_compiled_and_replaced(void)
{
    begin_empty();
    ref A = operand();
    ref want = ref_product(&A.view, &A.view);
    tulle_ctx *ctx = listened_ctx();
    check_product(ctx, &A.view, &want.view, "first");
    const int compiled = heard.compiled;
    /* invalid for tulle itself; valid for tulle, or looking like PTX, but rejected by the driver */
    const struct { uint64_t kept; char end; } kinds[] = {
        {0, 'x'}, {strncmp(gpu_name(), "opencl", 6) == 0 ? 24 : 0, 0}};
    for (int i = 0; i < 2; i++) {
        CHECK(spoil_images(ctx, kinds[i].kept, kinds[i].end) == compiled && compiled > 0, "not all of %d",
              compiled);
        tulle_ctx_free(ctx);
        ctx = listened_ctx();
        check_product(ctx, &A.view, &want.view, "refused");
        CHECK(heard.refused == compiled && heard.compiled == compiled, "%d refused, %d compiled of %d",
              heard.refused, heard.compiled, compiled);
        CHECK(!tulle_ctx_error(ctx)[0], "%s", tulle_ctx_error(ctx));
        tulle_ctx_free(ctx);
        ctx = listened_ctx();
        check_product(ctx, &A.view, &want.view, "replaced");
        CHECK(heard.refused == 0 && heard.compiled == 0 && heard.cached == compiled,
              "%d refused, %d compiled", heard.refused, heard.compiled);
        CHECK(entries() == compiled, "%d entries of %d", entries(), compiled);
    }
    tulle_ctx_free(ctx);
    ref_free(&A);
    ref_free(&want);
    end_empty();
}

TEST_MAIN(TEST(compiling_is_a_stage_of_the_first_product_alone), TEST(plans_have_their_kernels_before_they_run),
          TEST(blocks_of_rows_add_their_times), TEST(sparse_times_dense_has_the_stage_too),
          TEST(whoever_is_told_may_cancel_and_go_on_later), TEST(a_warm_cache_leaves_nothing_to_compile),
          TEST(wide_indices_are_warmed_too), TEST(a_cpu_has_nothing_to_warm),
          TEST(an_image_that_the_driver_refuses_is_compiled_and_replaced))
