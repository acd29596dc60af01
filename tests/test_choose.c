/* SPDX-License-Identifier: MIT
 *
 * test_choose.c - the choice between the CPU and a device for each product (src/choose.c), with a simulated
 * device (fake_device.h): the choice follows the predicted times, whose constants are set here or read from
 * the cache folder; results are the same; if memory of one is not sufficient, the other computes the
 * product. test_gpu_choose.c tests the same with a real device. */
#define _GNU_SOURCE
#include "choose.h"
#include "jit/parts.h"
#include "ways.h"
#include "fake_device.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

static char traced[1 << 16];

static void note(void *user, const char *line)
{
    (void)user;
    size_t n = strlen(traced);
    snprintf(traced + n, sizeof traced - n, "%s\n", line);
}

static tulle_ctx *choosing(void)
{
    tulle_ctx *ctx = device_ctx(NULL);
    snprintf(ctx->device, sizeof ctx->device, "fake:0");
    if (tl_choice_open(ctx, "made for tests") != TULLE_OK) abort();
    traced[0] = 0;
    tulle_ctx_set_trace(ctx, note, NULL);
    return ctx;
}

/* Makes the predicted times of one side zero. */
static void favour(tulle_ctx *ctx, bool device)
{
    tl_choice *c = ctx->choice;
    c->looked = true;
    for (int i = 0; i < TL_CONSTANTS; i++) c->seconds[i] = (i >= TL_GPU_START) == device ? 1e-15 : 1e-3;
}

static const char *where(tulle_ctx *ctx)
{
    tulle_stats t;
    tulle_ctx_stats(ctx, &t);
    return t.device;
}

/* The call succeeds, and leaves no message, even if something was refused on the way. */
#define OK_WITHOUT_A_WORD(call) REQUIRE((call) == TULLE_OK && !tulle_ctx_error(ctx)[0], "%s", tulle_ctx_error(ctx))

static bool gives(tulle_ctx *ctx, const pair *p, const tulle_options *o, const tulle_csr *want)
{
    tulle_matrix *C = NULL;
    bool good = tulle_multiply(ctx, &p->A.view, &p->B.view, o, &C) == TULLE_OK && !tulle_ctx_error(ctx)[0];
    if (!good) printf("    %s\n", tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    good = good && ref_same(&c, want, p->name);
    tulle_matrix_free(C);
    return good;
}

static tulle_csr product(tulle_ctx *ctx, const pair *p, tulle_matrix **C)
{
    if (tulle_multiply(ctx, &p->A.view, &p->B.view, NULL, C) != TULLE_OK) abort();
    return tulle_matrix_view(*C);
}

/* ---- the choice */

static void it_follows_the_forecast_and_the_bits_are_the_same(void)
{
    tulle_ctx *ctx = choosing(), *cpu = ctx_with(1);
    for (int i = 0; i < SMALL_PAIRS; i++) {
        pair p = pair_at(i, REF_REALS, f64, f64);
        tulle_matrix *C = NULL;
        const tulle_csr want = product(cpu, &p, &C);
        for (int device = 0; device < 2; device++) {
            favour(ctx, device);
            int64_t runs = dev.runs;
            CHECK(gives(ctx, &p, NULL, &want), "%s", p.name);
            CHECK(strcmp(where(ctx), device ? "fake:0" : "cpu") == 0, "on %s", where(ctx));
            CHECK((dev.runs > runs) == device, "the device had %d products", (int)(dev.runs - runs));
        }
        tulle_matrix_free(C);
        pair_free(&p);
    }
    CHECK(strstr(traced, "forecast by default constants, host to host: cpu ") && strstr(traced, " ms; on cpu\n")
          && strstr(traced, " ms; on fake:0\n"), "%.300s", traced);
    tulle_ctx_free(cpu);
    device_free(ctx);
}

/* With the defaults the CPU gets products that take it less time than a kernel launch. */
static void small_products_are_the_cpus_by_default(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    ctx->choice->looked = true;
    CHECK(gives(ctx, &p, NULL, &want.view) && dev.runs == 0 && strcmp(where(ctx), "cpu") == 0, "on %s", where(ctx));
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

static void what_lies_on_the_device_stays_there(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_options o = {.c_place = TULLE_DEVICE};
    favour(ctx, false);
    CHECK(gives(ctx, &p, &o, &want.view) && dev.runs == 1, "C on the device");
    CHECK(strstr(traced, "on fake:0: C is wanted there"), "%s", traced);
    p.A.view.place = TULLE_DEVICE;
    tulle_matrix *C = NULL;
    tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
    CHECK(strstr(traced, "on fake:0: operands lie there"), "%s, %s", tulle_status_name(status), traced);
    tulle_matrix_free(C);
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

/* If only one side has the requested accumulator, it is chosen. */
static void an_accumulator_goes_where_it_is(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    int seen = 0;
    for (int a = 0; tulle_accumulator_name(a); a++) {
        if (!tl_accumulator_on(a, TL_ON_CPU) || tl_accumulator_on(a, TL_ON_GPU)) continue;
        tulle_options o = {.accumulator = tulle_accumulator_name(a)};
        favour(ctx, true);
        CHECK(gives(ctx, &p, &o, &want.view) && dev.runs == 0 && strcmp(where(ctx), "cpu") == 0, "%s on %s", o.accumulator,
              where(ctx));
        seen++;
    }
    CHECK(seen == 0 || strstr(traced, "the GPU lacks the accumulator"), "%.200s", traced);
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

/* With a constant of 1 for one quantity and almost 0 for the others, the predicted time is that quantity. */
static double counted(tulle_ctx *ctx, const tulle_csr *A, const tulle_options *o, int constant)
{
    tulle_forecast f;
    tl_choice *c = ctx->choice;
    c->looked = true;
    for (int i = 0; i < TL_CONSTANTS; i++) c->seconds[i] = i == constant ? 1 : 1e-15;
    c->seconds[TL_GPU_START] = 1e-14;   /* so that the entries of C are estimated */
    CHECK(tulle_estimate(ctx, A, A, o, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    return constant < TL_GPU_START ? f.sec_cpu : f.sec_device;
}

/* A product that only the CPU can compute is not divided into blocks of rows, which are for devices with too
 * little memory. */
static void an_accumulator_of_the_cpu_keeps_a_limit(void)
{
    tulle_ctx *ctx = choosing();
    ref A = ref_band(300, 4, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &A.view);
    tulle_options o = {.accumulator = "sort", .memory_limit = tl_csr_bytes(&want.view) / 2};
    tulle_matrix *C = NULL;
    unsigned long long need = 0;
    tulle_stats t;
    CHECK(tulle_multiply(ctx, &A.view, &A.view, &o, &C) == TULLE_ELIMIT && !C, "half of C: %s", tulle_ctx_error(ctx));
    const char *at = strstr(tulle_ctx_error(ctx), "needs ");
    REQUIRE(at && sscanf(at, "needs %llu bytes", &need) == 1, "%s", tulle_ctx_error(ctx));
    o.memory_limit = need;
    OK_WITHOUT_A_WORD(tulle_multiply(ctx, &A.view, &A.view, &o, &C));
    const tulle_csr c = tulle_matrix_view(C);
    tulle_ctx_stats(ctx, &t);
    CHECK(ref_same(&c, &want.view, "C") && t.peak_bytes <= need, "peak %llu of %llu", (unsigned long long)t.peak_bytes, need);
    CHECK(dev.runs == 0 && dev.parts == 0, "the device had a part of it");
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&want);
    device_free(ctx);
}

static void it_knows_how_much_there_is(void)
{
    static const char *const recipes[] = {"poisson2d:40", "poisson3d:nx=9,points=27", "er:rows=700,per_row=6",
                                          "banded:n=900", "dense:30", "identity:5", "rmat:scale=8"};
    static const bool rows_alike[] = {true, true, false, true, true, true, false};
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
        for (int op = 0; op < 4; op++) {
            tulle_ctx *ctx = choosing();
            tulle_matrix *A = NULL;
            tulle_forecast f;
            tulle_options o = {.op_a = op & 1, .op_b = op >> 1};
            tulle_ctx_set_threads(ctx, 1);
            REQUIRE(tulle_gallery(ctx, recipes[r], &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const tulle_csr a = tulle_matrix_view(A);
            REQUIRE(tulle_estimate(ctx, &a, &a, &o, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const double scattered = counted(ctx, &a, &o, TL_CPU_PRODUCT), alike = counted(ctx, &a, &o, TL_CPU_ALIKE);
            const double products = (scattered + alike) / (double)f.products;
            CHECK(rows_alike[r] ? alike > 3 * scattered : alike < 0.1 * scattered, "%s, op %d: %.0f products alike, %.0f not",
                  recipes[r], op, alike, scattered);
            double entries = counted(ctx, &a, &o, TL_CPU_ENTRY) / (double)f.nnz_estimate;
            /* the hubs of a graph may or may not be sampled */
            double most = strncmp(recipes[r], "rmat", 4) == 0 || op ? 4 : 1.3;
            if (strncmp(recipes[r], "rmat", 4) == 0 && op == 2) most = 40;  /* estimated from averages only */
            /* depends on which entries are sampled */
            if (strncmp(recipes[r], "poisson", 7) == 0 && op) most = 10;
            if (strncmp(recipes[r], "banded", 6) == 0 && op) most = 20;
            CHECK(products > 1 / most && products < most, "%s, op %d: %.2f of its products", recipes[r], op, products);
            CHECK(entries > 1 / most && entries < most, "%s, op %d: %.2f of its entries", recipes[r], op, entries);
            double up = counted(ctx, &a, &o, TL_GPU_UP);
            CHECK(up >= (double)tl_csr_bytes(&a) && up < (double)tl_csr_bytes(&a) + 1, "%.0f bytes up", up);
            tulle_matrix_free(A);
            device_free(ctx);
        }
}

/* A product is as scattered as the more scattered of its operands, and a row counts by its length. */
static void rows_are_alike_where_those_of_both_operands_are(void)
{
    static const char *const recipes[] = {"poisson2d:30", "er:rows=900,per_row=5", "elasticity3d:6"};
    for (int i = 0; i < 9; i++) {
        tulle_ctx *ctx = choosing();
        tulle_matrix *A = NULL, *B = NULL;
        tulle_forecast f;
        REQUIRE(tulle_gallery(ctx, recipes[i % 3], &A) == TULLE_OK && tulle_gallery(ctx, recipes[i / 3], &B) == TULLE_OK,
                "%s", tulle_ctx_error(ctx));
        tulle_csr a = tulle_matrix_view(A), b = tulle_matrix_view(B);
        b.rows = a.cols < b.rows ? a.cols : b.rows;     /* the first rows, if there are more */
        if (a.cols == b.rows) {
            b.nnz = ((const int32_t *)b.row_ptr)[b.rows];
            ctx->choice->looked = true;
            for (int k = 0; k < TL_CONSTANTS; k++) ctx->choice->seconds[k] = k == TL_CPU_PRODUCT ? 1 : 1e-15;
            tulle_ctx_set_threads(ctx, 1);
            REQUIRE(tulle_estimate(ctx, &a, &b, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            const double scattered = f.sec_cpu / (double)f.products;
            const bool random = i % 3 == 1 || i / 3 == 1;
            CHECK(random ? scattered > 0.9 : scattered < 0.4, "%s times %s: %.2f of the products in scattered rows",
                  recipes[i % 3], recipes[i / 3], scattered);
        }
        tulle_matrix_free(A);
        tulle_matrix_free(B);
        device_free(ctx);
    }
}

static void an_estimate_tells_both_forecasts(void)
{
    tulle_ctx *ctx = choosing(), *cpu = ctx_with(1);
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    tulle_forecast f;
    for (int device = 0; device < 2; device++) {
        favour(ctx, device);
        traced[0] = 0;
        REQUIRE(tulle_estimate(ctx, &p.A.view, &p.B.view, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        char told[256], *end = strstr(traced, "; on ");
        REQUIRE(end && strstr(traced, "forecast"), "%s", traced);
        snprintf(told, sizeof told, "%.*s", (int)(end - strstr(traced, "forecast")), strstr(traced, "forecast"));
        traced[0] = 0;
        tulle_matrix *C = NULL;
        product(ctx, &p, &C);           /* and a product uses the same numbers */
        CHECK(strstr(traced, told), "%s, but %s", told, traced);
        tulle_matrix_free(C);
        CHECK(strcmp(f.device, device ? "fake:0" : "cpu") == 0 && f.sec_cpu > 0 && f.sec_device > 0
              && (f.sec_cpu < f.sec_device) == !device, "%s: %g and %g", f.device, f.sec_cpu, f.sec_device);
    }
    REQUIRE(tulle_estimate(cpu, &p.A.view, &p.B.view, NULL, &f) == TULLE_OK, "%s", tulle_ctx_error(cpu));
    CHECK(strcmp(f.device, "cpu") == 0 && f.sec_cpu == 0 && f.sec_device == 0, "no choice: %g", f.sec_cpu);
    pair_free(&p);
    tulle_ctx_free(cpu);
    device_free(ctx);
}

/* The sample reads arrays that are not checked yet. */
static void broken_operands_are_refused_as_ever(void)
{
    tulle_ctx *ctx = choosing(), *cpu = ctx_with(1);
    static const int64_t wrong[] = {-1, -1000000000, 1 << 30, INT32_MAX, INT32_MIN, 41};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
        for (int64_t at = 0; at < 60; at++)
            for (int part = 0; part < 2; part++) {
                ref A = ref_random(7, 40, 40, 4, REF_INTEGERS, f64);
                tulle_matrix *C = NULL;
                tulle_status got, want;
                if (part == 0 && at < A.view.nnz) ref_set_col(&A, at, wrong[w]);
                if (part == 1 && at <= A.view.rows) ref_set_ptr(&A, at, wrong[w]);
                favour(ctx, false);     /* this device checks nothing */
                for (int turned = 0; turned < 2; turned++) {
                    tulle_options o = {.op_a = turned};
                    want = tulle_multiply(cpu, &A.view, &A.view, &o, &C);
                    tulle_matrix_free(C);
                    got = tulle_multiply(ctx, &A.view, &A.view, &o, &C);
                    tulle_matrix_free(C);
                    CHECK((got == TULLE_OK) == (want == TULLE_OK), "%s for %s: %s", tulle_status_name(got),
                          tulle_status_name(want), tulle_ctx_error(ctx));
                }
                ref_free(&A);
            }
    tulle_ctx_free(cpu);
    device_free(ctx);
}

/* ---- too little memory */

static void what_one_has_no_room_for_the_other_takes(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(12, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    favour(ctx, true);
    dev.fail_at = 1;                    /* the device has no memory */
    CHECK(gives(ctx, &p, NULL, &want.view) && strcmp(where(ctx), "cpu") == 0, "on %s", where(ctx));
    CHECK(strstr(traced, "17 bytes could not be had: on cpu, then"), "%.300s", traced);
    CHECK(dev.parts == 0, "and is not asked for parts of it");

    tulle_stats t;
    favour(ctx, false);
    CHECK(gives(ctx, &p, NULL, &want.view), "on the CPU");
    tulle_ctx_stats(ctx, &t);
    /* less than the CPU needs: computed by the device, as a whole or in blocks */
    const uint64_t least = (tl_csr_bytes(&p.A.view) + tl_csr_bytes(&p.B.view)) / 2;
    for (uint64_t limit = t.peak_bytes - 1; limit > least; limit = limit * 3 / 4) {
        tulle_options o = {.memory_limit = limit};
        traced[0] = 0;
        CHECK(gives(ctx, &p, &o, &want.view), "limit %" PRIu64, limit);
        if (strcmp(where(ctx), "cpu") != 0)
            CHECK(strstr(traced, "on fake:0, then"), "limit %" PRIu64 ": %.300s", limit, traced);
    }
    CHECK(strcmp(where(ctx), "fake:0") == 0 && dev.parts > 0, "the last one on %s", where(ctx));
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

typedef struct rows_seen { int64_t rows, calls; } rows_seen;

static int count_rows(void *user, int64_t row0, const tulle_csr *block)
{
    rows_seen *seen = user;
    if (row0 == seen->rows) seen->rows += block->rows;
    seen->calls++;
    return 0;
}

static void blocks_and_plans_are_chosen_too(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(12, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    for (int device = 0; device < 2; device++) {
        rows_seen seen = {0, 0};
        tulle_plan *plan = NULL;
        tulle_matrix *C = NULL;
        favour(ctx, device);
        REQUIRE(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, NULL, count_rows, &seen) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        CHECK(seen.rows == p.A.view.rows && strcmp(where(ctx), device ? "fake:0" : "cpu") == 0, "on %s", where(ctx));
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        favour(ctx, !device);           /* a plan does not move */
        CHECK(tulle_plan_multiply(plan, p.A.values, p.B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        const tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, &want.view, p.name) && strcmp(where(ctx), device ? "fake:0" : "cpu") == 0, "on %s", where(ctx));
        tulle_matrix_free(C);
        tulle_plan_free(plan);
    }
    rows_seen seen = {0, 0};
    favour(ctx, true);
    there.part = NULL;                 /* without smaller products on the device the first block is refused */
    dev.fail_at = dev.runs + 1;
    OK_WITHOUT_A_WORD(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, NULL, count_rows, &seen));
    CHECK(seen.rows == p.A.view.rows && strcmp(where(ctx), "cpu") == 0, "%d rows on %s", (int)seen.rows, where(ctx));
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

static int plans_refused;

static tulle_status no_plan(tulle_plan *p)
{
    plans_refused++;
    return tl_fail(&p->ctx->base, TULLE_ENOMEM, "23 bytes could not be had");
}

static tulle_status no_spmm(tulle_spmm_plan *p, const tulle_csr *A, int64_t cols)
{
    (void)A;
    (void)cols;
    plans_refused++;
    return tl_fail(&p->ctx->base, TULLE_ENOMEM, "29 bytes could not be had");
}

static void a_plan_without_room_is_made_by_the_other(void)
{
    tulle_ctx *ctx = choosing();
    pair p = pair_at(12, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_plan *plan = NULL;
    tulle_matrix *C = NULL;
    favour(ctx, true);
    there.plan_make = no_plan;
    plans_refused = 0;
    OK_WITHOUT_A_WORD(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan));
    CHECK(tulle_plan_multiply(plan, p.A.values, p.B.values, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    const tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &want.view, p.name) && plans_refused == 1, "refused %d times", plans_refused);
    tulle_matrix_free(C);
    tulle_plan_free(plan);
    ref_free(&want);
    pair_free(&p);
    device_free(ctx);
}

static void sparse_times_dense_is_chosen_too(void)
{
    tulle_ctx *ctx = choosing();
    ref A = ref_random(3, 60, 40, 5, REF_INTEGERS, f64);
    double x[40 * 3], y[60 * 3], want[60 * 3];
    for (int i = 0; i < 40 * 3; i++) x[i] = i % 7 - 3;
    const tulle_dense X = tulle_dense_make(40, 3, 3, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(60, 3, 3, TULLE_BY_ROWS, want, TULLE_F64);
    favour(ctx, false);
    REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(strcmp(where(ctx), "cpu") == 0, "on %s", where(ctx));
    Y.values = y;
    for (int fails = 0; fails < 2; fails++) {
        memset(y, 0, sizeof y);
        favour(ctx, true);
        if (fails) there.spmm_make = no_spmm;
        OK_WITHOUT_A_WORD(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL));
        CHECK(memcmp(y, want, sizeof y) == 0 && strcmp(where(ctx), fails ? "cpu" : "fake:0") == 0, "on %s", where(ctx));
    }
    ref_free(&A);
    device_free(ctx);
}

/* ---- constants on disk */

static char folder[] = "/tmp/tulle-choose-XXXXXX";

static void folder_make(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder)) abort();
    setenv("TULLE_CACHE", folder, 1);
}

/* The number of files; a function, if given, is called for each. */
static int files(void (*fn)(const char *path))
{
    int count = 0;
    DIR *d = opendir(folder);
    if (!d) abort();
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        if (e->d_name[0] == '.') continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (fn) fn(path);
    }
    closedir(d);
    return count;
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void folder_done(void)
{
    files(remove_file);
    rmdir(folder);
    unsetenv("TULLE_CACHE");
}

static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    if (!f || fseek(f, -3, SEEK_END) != 0 || fputc('?', f) == EOF || fclose(f) != 0) abort();
}

static void they_are_measured_once_and_found_again(void)
{
    tulle_kernels got;
    folder_make();
    tulle_ctx *ctx = choosing();
    ctx->choice->grid = 5;
    REQUIRE(tulle_cache_warm(ctx, TULLE_F64, TULLE_I32, &got) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(files(NULL) == 1 && ctx->choice->measured && !ctx->choice->force, "%d files", files(NULL));
    tl_choice first = *ctx->choice;
    for (int i = 0; i < TL_CONSTANTS; i++) CHECK(first.seconds[i] > 0 && first.seconds[i] < 1, "%d: %g", i, first.seconds[i]);
    device_free(ctx);

    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    ctx = choosing();
    CHECK(gives(ctx, &p, NULL, &want.view) && strstr(traced, "forecast by measured constants"), "%s", traced);
    for (int i = 0; i < TL_CONSTANTS; i++) {
        double off = ctx->choice->seconds[i] / first.seconds[i] - 1;
        CHECK(off < 1e-2 && off > -1e-2, "constant %d: %g, was %g", i, ctx->choice->seconds[i], first.seconds[i]);
    }
    device_free(ctx);

    ctx = choosing();                   /* another machine, without measurements */
    strcat(ctx->choice->machine, " and more");
    CHECK(gives(ctx, &p, NULL, &want.view) && strstr(traced, "forecast by default constants")
          && !strstr(traced, "not taken"), "%s", traced);
    device_free(ctx);

    files(damage);
    ctx = choosing();
    CHECK(gives(ctx, &p, NULL, &want.view) && strstr(traced, "forecast by default constants")
          && strstr(traced, "are not taken: it is damaged"), "%s", traced);
    device_free(ctx);
    ref_free(&want);
    pair_free(&p);
    folder_done();
}

/* A valid entry under our name with another text, as another version might write it, or somebody by hand. */
static void a_text_that_is_not_in_order_is_not_taken(void)
{
    folder_make();
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    static const struct { const char *was, *is, *why; } wrong[] = {
        {"forecast 2", "forecast 1", "it is of another format"},
        {"fake:0", "cuda:7", "it is of another machine"},
        {"cpu_entry", "cpu_entri", "a constant is missing"},
        {"cpu_start 1", "cpu_start -", "a constant is none"},
        {"cpu_start 1", "cpu_start e", "a constant is none"},
        {"cpu_start 1", "cpu_start 99999999999999999", "a constant is none"},
        {"cpu_start 10000000000000", "cpu_start 0", "a constant is none"},
        {"device_column ", "device_column 1\n", "something stands behind it"},
        {"device_column 2000000\n", "", "a constant is missing"},
        {"tulle", "", "it is of another format"},
        {NULL, NULL, NULL},             /* this one is valid */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tulle_ctx *ctx = choosing();
        char text[2048], changed[2048], key[1024];
        size_t n = (size_t)snprintf(text, sizeof text, "tulle forecast 2\n%s\n", ctx->choice->machine);
        int k = snprintf(key, sizeof key, "tulle forecast 2\n%s", ctx->choice->machine);
#define TL_CONSTANT(id, name, seconds) n += (size_t)snprintf(text + n, sizeof text - n, name " %.0f\n", 1e18 * (seconds));
        TL_CONSTANT_LIST(TL_CONSTANT)
#undef TL_CONSTANT
        char *at = wrong[i].was ? strstr(text, wrong[i].was) : text + n;
        REQUIRE(at, "%s is not there", wrong[i].was);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, wrong[i].was ? wrong[i].is : "",
                 at + (wrong[i].was ? strlen(wrong[i].was) : 0));
        tl_cache cache;
        const tl_hash hash = tl_sha256_of(key, (size_t)k);
        tl_cache_open(&cache);
        tl_cache_put(&cache, &hash, &(tl_image){.data = changed, .bytes = strlen(changed)});
        CHECK(gives(ctx, &p, NULL, &want.view), "%s", tulle_ctx_error(ctx));
        CHECK(wrong[i].why ? strstr(traced, wrong[i].why) && strstr(traced, "default constants")
                           : strstr(traced, "measured constants") && !strstr(traced, "not taken"), "%s", traced);
        device_free(ctx);
    }
    ref_free(&want);
    pair_free(&p);
    folder_done();
}

static void without_a_gpu_nothing_is_chosen_or_written(void)
{
    tulle_ctx *ctx = NULL;
    tulle_kernels got;
    folder_make();
    setenv("TULLE_LIBCUDA", "/nowhere/libcuda.so", 1);
    setenv("TULLE_LIBOPENCL", "/nowhere/libOpenCL.so", 1);
    unsetenv("TULLE_DEVICE");
    REQUIRE(tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK, "a context");
    CHECK(!ctx->choice && ctx->engine == &tl_engine_cpu, "it can choose");
    pair p = pair_at(6, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    CHECK(gives(ctx, &p, NULL, &want.view), "%s", tulle_ctx_error(ctx));
    CHECK(tulle_cache_warm(ctx, TULLE_F64, TULLE_I32, &got) == TULLE_OK && files(NULL) == 0, "%d files", files(NULL));
    tulle_ctx_free(ctx);
    ref_free(&want);
    pair_free(&p);
    unsetenv("TULLE_LIBCUDA");
    unsetenv("TULLE_LIBOPENCL");
    folder_done();
}

TEST_MAIN(TEST(it_follows_the_forecast_and_the_bits_are_the_same), TEST(small_products_are_the_cpus_by_default),
          TEST(what_lies_on_the_device_stays_there), TEST(an_accumulator_goes_where_it_is),
          TEST(an_accumulator_of_the_cpu_keeps_a_limit),
          TEST(it_knows_how_much_there_is),
          TEST(rows_are_alike_where_those_of_both_operands_are), TEST(an_estimate_tells_both_forecasts),
          TEST(broken_operands_are_refused_as_ever), TEST(what_one_has_no_room_for_the_other_takes),
          TEST(blocks_and_plans_are_chosen_too), TEST(a_plan_without_room_is_made_by_the_other),
          TEST(sparse_times_dense_is_chosen_too), TEST(they_are_measured_once_and_found_again),
          TEST(a_text_that_is_not_in_order_is_not_taken), TEST(without_a_gpu_nothing_is_chosen_or_written))
