/* SPDX-License-Identifier: MIT
 *
 * test_gpu_tuned.c - measured thresholds of policy auto on a device (src/gpu/tuned.c): results have the same
 * bits with every value at the ends of its range, a file reaches products, a bad one is refused or left alone
 * with a sentence, and tulle_auto_tune() writes such a file. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 64 };
typedef struct lines {
    char text[LINES][512];
    int  count;
} lines;

static void keep(void *user, const char *line)
{
    lines *l = user;
    if (l->count < LINES) snprintf(l->text[l->count++], sizeof *l->text, "%s", line);
}

static const char *line_with(const lines *l, const char *words)
{
    for (int i = 0; i < l->count; i++)
        if (strstr(l->text[i], words)) return l->text[i];
    return NULL;
}

static const char *temporary(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "/tmp/tulle-tuned-%lld%s", (long long)tl_process(), name);
    return path;
}

/* ---- every value is right */

/* Case 0, 1: all thresholds at one end of their ranges; then each one alone at both ends. */
static bool extreme(int i, tl_family family, tl_thresholds *t, char name[64])
{
    uint32_t end[2];
    if (i >= 2 + 2 * TL_THRESHOLDS) return false;
    *t = tl_thresholds_usual(family);
    for (int k = 0; k < TL_THRESHOLDS; k++) {
        tl_threshold_range(k, &end[0], &end[1]);
        if (i < 2 || (i - 2) / 2 == k) t->of[k] = end[i % 2];
    }
    snprintf(name, 64, "%s at its %s", i < 2 ? "everything" : tl_threshold_name((i - 2) / 2),
             i % 2 ? "most" : "least");
    return true;
}

/* Rows are sorted into classes, so that each is taken by its own kernel, and no product is too small for
 * that. */
static void extreme_values_change_no_bit(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_BALANCE", "on");
    char name[64];
    tl_thresholds t;
    for (int k = 0; k < GPU_PAIRS; k++) {
        pair p = gpu_pair(k, REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int i = 0; extreme(i, tl_gpu_family(ctx->gpu), &t, name) && test_failures < 10; i++) {
            if (few() && i > 1 && (i + k) % 16 != 0) continue;
            CHECK(ctx->engine->thresholds(ctx, &t, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want.view, name);
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Rows with up to 512 products have real sums in the order of the CPU, whichever kernel takes them. */
static void the_order_of_sums_stays(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_BALANCE", "on");
    char name[64];
    tl_thresholds t;
    ref A = ref_random(61, 3000, 3000, 9, REF_REALS, f64), B = ref_band(2000, 9, REF_REALS, f64);
    const ref *const of[2] = {&A, &B};
    for (int k = 0; k < 2; k++) {
        ref want = ref_product(&of[k]->view, &of[k]->view);
        for (int i = 0; extreme(i, tl_gpu_family(ctx->gpu), &t, name); i++) {
            if (few() && i > 1 && i % 4 != k) continue;
            CHECK(ctx->engine->thresholds(ctx, &t, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            gpu_product_is(ctx, &of[k]->view, &of[k]->view, NULL, 0, &want.view, name);
        }
        ref_free(&want);
    }
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

static int64_t rows_of(tulle_ctx *ctx, const char *name)
{
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    for (int i = 0; i < s.shares; i++)
        if (strcmp(s.share[i].name, name) == 0) return s.share[i].rows;
    return 0;
}

/* Whether rows that repeat each other are looked for follows the thresholds; the bits do not. */
static void repeated_rows_follow_their_thresholds(void)
{
    tulle_ctx *ctx = gpu_ctx();
    static const struct { const char *name, *share; } cases[] = {{"twins.alike", "twins"}, {"motifs.gain", "motif"}};
    ref A[2] = {ref_blocks(5467, 3, 3, REF_REALS, f64), ref_band(40000, 4, REF_REALS, f64)};
    for (int k = 0; k < 2; k++) {
        tulle_matrix *C = cpu_product(&A[k].view, &A[k].view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        int64_t rows[2];
        for (int end = 0; end < 2; end++) {
            tl_thresholds t = tl_thresholds_usual(tl_gpu_family(ctx->gpu));
            uint32_t range[2];
            int i = 0;
            while (strcmp(tl_threshold_name(i), cases[k].name) != 0) i++;
            tl_threshold_range(i, &range[0], &range[1]);
            t.of[i] = range[end];
            CHECK(ctx->engine->thresholds(ctx, &t, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            gpu_product_is(ctx, &A[k].view, &A[k].view, NULL, 0, &want, cases[k].name);
            rows[end] = rows_of(ctx, cases[k].share);
        }
        CHECK((rows[k] > 10000) && rows[1 - k] == 0, "%s: %" PRId64 " and %" PRId64 " rows", cases[k].name, rows[0],
              rows[1]);
        tulle_matrix_free(C);
        ref_free(&A[k]);
    }
    tulle_ctx_free(ctx);
}

/* ---- files */

/* Without sorting in registers, which the trace shows. */
static tl_tuned without_few(tl_family family)
{
    tl_tuned t = {.family = family, .device = "a test", .thresholds = tl_thresholds_usual(family),
                  .score = {{4, 1.5, 1.25}, {2, 1.75, 1.125}}};
    t.thresholds.of[0] = t.thresholds.of[1] = 16;
    t.thresholds.of[2] = 64;
    return t;
}

typedef struct tried { tulle_status status; bool said, few_as_usual; char error[512]; } tried;

/* A product in a new context whose rows have 81 products. */
static tried try_it(const char *variable, const char *value, lines *l)
{
    ref A = ref_random(62, 9000, 50000, 9, REF_INTEGERS, f64), B = ref_random(63, 50000, 100000, 9, REF_INTEGERS, f64);
    tulle_matrix *C = NULL;
    if (variable) setenv(variable, value, 1);
    tulle_ctx *ctx = gpu_ctx();
    *l = (lines){.count = 0};
    tulle_ctx_set_trace(ctx, keep, l);
    tried r = {.status = tulle_multiply(ctx, &A.view, &B.view, NULL, &C)};
    if (variable) unsetenv(variable);
    snprintf(r.error, sizeof r.error, "%.500s", tulle_ctx_error(ctx));
    r.said = line_with(l, "thresholds: measured on a test with 4 matrices, slowdown 1.250 (1.500 with the defaults), "
                          "and 1.125 (1.750) of 2 kept aside") != NULL;
    r.few_as_usual = ctx->gpu->tuned.policy.few_rows[1].first == 128;
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
    ref_free(&A);
    ref_free(&B);
    return r;
}

static tl_family family_here(tulle_ctx *ctx)
{
    return tl_gpu_family(ctx->gpu);
}

static void a_file_reaches_products(void)
{
    static lines l;
    tulle_ctx *ctx = gpu_ctx();
    const char *path = temporary("");
    tl_tuned t = without_few(family_here(ctx));
    REQUIRE(tl_tuned_write(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tried r = try_it("TULLE_GPU_TUNE", "off", &l);
    CHECK(r.status == TULLE_OK && !r.said && r.few_as_usual, "off: %s", r.error);
    const char *before = line_with(&l, "numeric step");
    char usual[512];
    REQUIRE(before, "nothing about the numeric step");
    snprintf(usual, sizeof usual, "%s", before);
    r = try_it("TULLE_GPU_TUNE", path, &l);
    CHECK(r.status == TULLE_OK && r.said && !r.few_as_usual, "%s", r.error);
    CHECK(line_with(&l, "numeric step") && strcmp(line_with(&l, "numeric step"), usual) != 0, "as before: %s",
          usual);
    /* of another family: left alone, and said so */
    t.family = t.family == TL_AMD ? TL_HOPPER : TL_AMD;
    REQUIRE(tl_tuned_write(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    r = try_it("TULLE_GPU_TUNE", path, &l);
    CHECK(r.status == TULLE_OK && !r.said && r.few_as_usual && line_with(&l, "are not taken: they were measured on a test"),
          "%s", r.error);
    /* damaged: an error, each time; other policies are not affected */
    FILE *f = fopen(path, "a");
    REQUIRE(f, "%s", path);
    fputs("\n", f);
    fclose(f);
    r = try_it("TULLE_GPU_TUNE", path, &l);
    CHECK(r.status == TULLE_EFORMAT && strstr(r.error, path) && strstr(r.error, "line 18"), "%s", r.error);
    unlink(path);
    r = try_it("TULLE_GPU_TUNE", path, &l);
    CHECK(r.status == TULLE_EIO && strstr(r.error, path), "%s", r.error);
    tulle_ctx_free(ctx);
}

/* A damaged one in the cache folder is no error. */
static void the_cache_folder_is_looked_at(void)
{
    static lines l;
    char folder[256], path[1200], before[1024] = "";
    const char *cache = getenv("TULLE_CACHE");
    if (cache) snprintf(before, sizeof before, "%s", cache);
    snprintf(folder, sizeof folder, "%s", temporary("-cache"));
    REQUIRE(mkdir(folder, 0700) == 0, "%s", folder);
    tulle_ctx *ctx = gpu_ctx();
    setenv("TULLE_CACHE", folder, 1);
    CHECK(tl_gpu_tuned_path(ctx->gpu, true, path, sizeof path) && strstr(path, ".thresholds")
              && !strpbrk(path + strlen(folder) + 1, " /()"), "%s", path);
    tl_tuned t = without_few(family_here(ctx));
    tried r = try_it(NULL, NULL, &l);
    CHECK(r.status == TULLE_OK && !r.said && r.few_as_usual, "nothing there: %s", r.error);
    REQUIRE(tl_tuned_write(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    r = try_it(NULL, NULL, &l);
    CHECK(r.status == TULLE_OK && r.said && !r.few_as_usual, "%s", r.error);
    r = try_it("TULLE_GPU_TUNE", "off", &l);
    CHECK(r.status == TULLE_OK && !r.said && r.few_as_usual, "off: %s", r.error);
    REQUIRE(truncate(path, 100) == 0, "%s", path);
    r = try_it(NULL, NULL, &l);
    CHECK(r.status == TULLE_OK && !r.said && r.few_as_usual && !r.error[0]
              && line_with(&l, "the thresholds are not taken: "), "%s", r.error);
    unlink(path);
    if (before[0]) setenv("TULLE_CACHE", before, 1);
    else unsetenv("TULLE_CACHE");
    tulle_ctx_free(ctx);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0, "%s", folder);
}

/* ---- measuring */

static int cancel_at(void *user, const char *stage, double fraction)
{
    (void)stage;
    return fraction > 0.05 && (*(int *)user)++ >= 0;
}

static void measured_thresholds_are_written(void)
{
    enum { COUNT = 3 };
    tulle_ctx *ctx = gpu_ctx();
    const char *path = temporary("-measured");
    static tulle_tune_report r;
    ref A[COUNT] = {ref_band(40, 2, REF_INTEGERS, f64), ref_identity(30, f64),
                    ref_random(64, 50, 50, 3, REF_INTEGERS, f64)};
    tulle_tune_pair pairs[COUNT];
    memset(pairs, 0, sizeof pairs);
    for (int i = 0; i < COUNT; i++) pairs[i].A = pairs[i].B = A[i].view;
    CHECK(tulle_auto_tune(ctx, pairs, 2, 1, path, &r) == TULLE_EINVAL, "two products");
    CHECK(tulle_auto_tune(ctx, pairs, COUNT, 1, "/nowhere/at/all", &r) == TULLE_EIO, "%s", tulle_ctx_error(ctx));
    int calls = 0;
    tulle_ctx_set_progress(ctx, cancel_at, &calls);
    CHECK(tulle_auto_tune(ctx, pairs, COUNT, 1, path, &r) == TULLE_ECANCEL && access(path, F_OK) != 0, "%s",
          tulle_ctx_error(ctx));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    REQUIRE(tulle_auto_tune(ctx, pairs, COUNT, 1, path, &r) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tl_tuned t;
    REQUIRE(tl_tuned_read(&ctx->base, path, &t) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(r.train.pairs == 2 && r.validate.pairs == 1 && t.score[0].tuned == r.train.tuned, "%d", r.train.pairs);
    CHECK(r.thresholds == TL_THRESHOLDS && strcmp(r.path, path) == 0
              && strcmp(r.family, tl_family_name(t.family)) == 0, "%s", r.path);
    for (int i = 0; i < r.thresholds; i++)
        CHECK(r.threshold[i].tuned == (int64_t)t.thresholds.of[i] && r.threshold[i].tuned >= r.threshold[i].least
                  && r.threshold[i].tuned <= r.threshold[i].most, "%s", r.threshold[i].name);
    for (int i = 0; i < COUNT; i++)
        CHECK(pairs[i].sec_best > 0 && pairs[i].sec_usual >= pairs[i].sec_best
                  && pairs[i].sec_tuned >= pairs[i].sec_best, "matrix %d", i);
    unlink(path);
    for (int i = 0; i < COUNT; i++) ref_free(&A[i]);
    tulle_ctx_free(ctx);
    tulle_ctx *cpu = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "no context");
    CHECK(tulle_auto_tune(cpu, pairs, COUNT, 1, path, &r) == TULLE_EDEVICE, "%s", tulle_ctx_error(cpu));
    tulle_ctx_free(cpu);
}

TEST_MAIN(TEST(extreme_values_change_no_bit), TEST(the_order_of_sums_stays),
          TEST(repeated_rows_follow_their_thresholds), TEST(a_file_reaches_products),
          TEST(the_cache_folder_is_looked_at), TEST(measured_thresholds_are_written))
