/* SPDX-License-Identifier: MIT
 *
 * test_api_device.c - public functions with devices: names and messages, the device list with drivers
 * missing, places that a context does not have, and every function with views over device memory.  Results
 * of devices are tested by test_gpu_*.c. */
#define _GNU_SOURCE
#include "fork_help.h"
#include "gpu.h"
#include "tulle_cuda.h"
#include "tulle_opencl.h"
#include "slices.h"
#include <sys/wait.h>
#include <unistd.h>

#define FAILS(call, wanted, part)                                                                 \
    do {                                                                                          \
        tulle_status got = (call);                                                                \
        CHECK(got == wanted, "%s, should be %s: %s", tulle_status_name(got), #wanted, tulle_ctx_error(ctx)); \
        CHECK(strstr(tulle_ctx_error(ctx), part) != NULL, "\"%s\" should tell of \"%s\"", tulle_ctx_error(ctx), part); \
    } while (0)
#define WORKS(call) REQUIRE((call) == TULLE_OK, "%s", tulle_ctx_error(ctx))

static const ref_types cf64 = {TULLE_CF64, TULLE_I32, TULLE_I32};

/* ---- names */

static void no_such_device_is_told_in_a_sentence(void)
{
    const struct { const char *name, *part; } wrong[] = {
        {"abacus", "abacus"}, {"", ""}, {"cpu:1", "cpu:1"}, {"cuda:", "cuda:"}, {"cuda:x", "cuda:x"},
        {"opencl:-1", "opencl:-1"}, {"opencl:999", "999"}, {"cudax", "cudax"}, {"CUDA:0", "CUDA:0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tulle_ctx *ctx = (tulle_ctx *)(void *)&ctx;
        char why[512] = "untouched";
        tulle_status status = tulle_ctx_create_why(wrong[i].name, NULL, &ctx, why, sizeof why);
        CHECK(status == TULLE_EDEVICE && !ctx, "\"%s\": %s", wrong[i].name, tulle_status_name(status));
        CHECK(why[0] && strstr(why, wrong[i].part), "\"%s\": \"%s\"", wrong[i].name, why);
        CHECK(tulle_ctx_create(wrong[i].name, NULL, &ctx) == TULLE_EDEVICE && !ctx, "\"%s\"", wrong[i].name);
    }
}

static void a_sentence_is_cut_to_its_room(void)
{
    tulle_ctx *ctx = NULL;
    char why[16];
    memset(why, 'x', sizeof why);
    CHECK(tulle_ctx_create_why("abacus", NULL, &ctx, why, 8) == TULLE_EDEVICE, "status");
    CHECK(strlen(why) == 7 && why[8] == 'x', "\"%.16s\"", why);
    memset(why, 'x', sizeof why);
    CHECK(tulle_ctx_create_why("abacus", NULL, &ctx, why, 0) == TULLE_EDEVICE && why[0] == 'x', "no room");
    CHECK(tulle_ctx_create_why("abacus", NULL, &ctx, NULL, 8) == TULLE_EDEVICE, "no buffer");
    CHECK(tulle_ctx_create_why("cpu", NULL, NULL, why, sizeof why) == TULLE_EINVAL && strlen(why) > 0, "ctx NULL");
    tulle_mem half_a_hook = {.alloc = NULL, .free = (void (*)(void *, void *))(void *)abort};
    CHECK(tulle_ctx_create_why("cpu", &half_a_hook, &ctx, why, sizeof why) == TULLE_EINVAL && strlen(why) > 0, "half a hook");
    memset(why, 'x', sizeof why);
    CHECK(tulle_ctx_create_why("cpu", NULL, &ctx, why, sizeof why) == TULLE_OK && why[0] == 0, "no failure, no words");
    tulle_ctx_free(ctx);
}

static void the_environment_names_the_default(void)
{
    tulle_ctx *ctx = NULL;
    char why[512];
    setenv("TULLE_DEVICE", "cpu", 1);
    REQUIRE(tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK, "cpu");
    CHECK(strcmp(tulle_ctx_device(ctx), "cpu") == 0, "%s", tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
    setenv("TULLE_DEVICE", gpu_name(), 1);
    REQUIRE(tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK, "%s", gpu_name());
    CHECK(strcmp(tulle_ctx_device(ctx), gpu_name()) == 0, "%s", tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
    REQUIRE(tulle_ctx_create("cpu", NULL, &ctx) == TULLE_OK, "a name is stronger");
    CHECK(strcmp(tulle_ctx_device(ctx), "cpu") == 0, "%s", tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
    setenv("TULLE_DEVICE", "abacus", 1);
    CHECK(tulle_ctx_create_why(NULL, NULL, &ctx, why, sizeof why) == TULLE_EDEVICE && !ctx && strstr(why, "abacus"),
          "%s", why);
    unsetenv("TULLE_DEVICE");
    CHECK(strcmp(tulle_ctx_device(NULL), "") == 0, "device of no context");
}

static void a_driver_alone_means_its_first_device(void)
{
    tulle_ctx *ctx = NULL;
    char driver[64];
    snprintf(driver, sizeof driver, "%.*s", (int)strcspn(gpu_name(), ":"), gpu_name());
    REQUIRE(tulle_ctx_create(driver, NULL, &ctx) == TULLE_OK, "%s", driver);
    CHECK(strncmp(tulle_ctx_device(ctx), driver, strlen(driver)) == 0 && strchr(tulle_ctx_device(ctx), ':'), "%s",
          tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
}

/* ---- the list */

static void find_device(const char *name, tulle_device *found)
{
    tulle_device d;
    memset(found, 0, sizeof *found);
    for (int i = 0; tulle_device_info(i, &d) == TULLE_OK; i++)
        if (strcmp(d.name, name) == 0) *found = d;
}

static void the_list_tells_of_every_device(void)
{
    tulle_device d;
    REQUIRE(tulle_device_info(0, &d) == TULLE_OK, "the first");
    CHECK(strcmp(d.name, "cpu") == 0 && d.usable && d.processors >= 1 && d.arch[0], "%s", d.name);
    find_device(gpu_name(), &d);
    CHECK(d.usable && d.text[0] && d.arch[0] && d.driver[0] && d.memory_bytes > 0 && d.processors > 0 && d.threads > 0,
          "%s: \"%s\" \"%s\" \"%s\" %d %d", gpu_name(), d.text, d.arch, d.driver, d.processors, d.threads);
    for (int i = 0; tulle_device_info(i, &d) == TULLE_OK; i++) {
        char why[512] = "";
        tulle_ctx *ctx = NULL;
        if (d.usable) continue;
        CHECK(d.why_not[0], "%s does not say why not", d.name);
        CHECK(tulle_ctx_create_why(d.name, NULL, &ctx, why, sizeof why) == TULLE_EDEVICE && !ctx && why[0], "%s: \"%s\"",
              d.name, why);
        tulle_ctx_free(ctx);
    }
}

static void missing_drivers_are_lines_that_say_so(void)
{
    tulle_device d;
    int before = tulle_device_count();
    setenv("TULLE_LIBCUDA", "/no/such/libcuda.so", 1);
    setenv("TULLE_LIBOPENCL", "/no/such/libOpenCL.so", 1);
    int after = tulle_device_count();
    CHECK(after == 3, "%d devices with no driver at all, should be cpu, cuda and opencl", after);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "opencl" : "cuda";
        tulle_ctx *ctx = NULL;
        char why[512] = "";
        find_device(name, &d);
        CHECK(!d.usable && strstr(d.why_not, "/no/such/lib"), "%s: \"%s\"", name, d.why_not);
        CHECK(tulle_ctx_create_why(name, NULL, &ctx, why, sizeof why) == TULLE_EDEVICE && strstr(why, "/no/such/lib"),
              "%s: \"%s\"", name, why);
    }
    CHECK(tulle_device_info(before + 3, &d) == TULLE_EINVAL, "an index that is gone");
    tulle_ctx *ctx = NULL;
    REQUIRE(tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK, "the best of none");
    CHECK(strcmp(tulle_ctx_device(ctx), "cpu") == 0, "%s", tulle_ctx_device(ctx));
    tulle_ctx_free(ctx);
    unsetenv("TULLE_LIBCUDA");
    unsetenv("TULLE_LIBOPENCL");
    CHECK(tulle_device_count() == before, "%d devices, were %d", tulle_device_count(), before);
}

/* ---- places */

static void a_cpu_context_takes_no_view_of_a_device(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    tulle_csr there = p.A.view;
    tulle_matrix *M = (tulle_matrix *)(void *)&p;
    tulle_forecast f;
    double error, x[64] = {0}, y[64];
    there.place = TULLE_DEVICE;
    FAILS(tulle_csr_move(ctx, &p.A.view, (tulle_place)7, &M), TULLE_EINVAL, "7");
    CHECK(!M, "an output after an error");
    FAILS(tulle_multiply(ctx, &there, &p.B.view, NULL, &M), TULLE_EINVAL, "A: its arrays are in a device's memory");
    FAILS(tulle_estimate(ctx, &there, &p.B.view, NULL, &f), TULLE_EINVAL, "device's memory");
    FAILS(tulle_product_check(ctx, &p.A.view, &p.B.view, &there, NULL, &error), TULLE_EINVAL, "C: ");
    FAILS(tulle_csr_check(ctx, &there), TULLE_EINVAL, "device's memory");
    FAILS(tulle_csr_sort(ctx, &there, &M), TULLE_EINVAL, "device's memory");
    FAILS(tulle_csr_transpose(ctx, &there, TULLE_TRANSPOSE, &M), TULLE_EINVAL, "device's memory");
    FAILS(tulle_csr_convert(ctx, &there, TULLE_F32, 0, 0, &M), TULLE_EINVAL, "device's memory");
    FAILS(tulle_csr_apply(ctx, &there, x, y), TULLE_EINVAL, "device's memory");
    FAILS(tulle_csr_move(ctx, &there, TULLE_HOST, &M), TULLE_EINVAL, "device's memory");
    FAILS(tulle_write(ctx, "no.mtx", &there), TULLE_EINVAL, "device's memory");
    CHECK(access("no.mtx", F_OK) != 0, "a file after an error");
    /* a copy on the host keeps unsorted rows */
    ref mixed = ref_shuffled(&p.A.view, 3, false);
    WORKS(tulle_csr_move(ctx, &mixed.view, TULLE_HOST, &M));
    tulle_csr copy = tulle_matrix_view(M);
    CHECK(ref_untouched(&copy, &mixed) && copy.values != mixed.values, "a copy");
    tulle_matrix_free(M);
    ref_free(&mixed);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void fields_of_options_have_their_ranges(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    tulle_matrix *C = NULL;
    FAILS(tulle_multiply(ctx, &p.A.view, &p.B.view, &(tulle_options){.c_place = 2}, &C), TULLE_EINVAL, "c_place is 2");
    FAILS(tulle_multiply(ctx, &p.A.view, &p.B.view, &(tulle_options){.c_place = -1}, &C), TULLE_EINVAL, "c_place is -1");
    FAILS(tulle_multiply(ctx, &p.A.view, &p.B.view, &(tulle_options){.time_stages = 2}, &C), TULLE_EINVAL, "time_stages");
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void stages_of_a_cpu_product_add_up(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    tulle_matrix *C = NULL;
    tulle_stats s;
    WORKS(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C));
    tulle_ctx_stats(ctx, &s);
    CHECK(s.stages == 0 && s.waits == 0, "%d stages without asking", s.stages);
    tulle_matrix_free(C);
    WORKS(tulle_multiply(ctx, &p.A.view, &p.B.view, &(tulle_options){.time_stages = 1}, &C));
    tulle_ctx_stats(ctx, &s);
    double sum = 0;
    for (int i = 0; i < s.stages; i++) sum += s.stage[i].seconds;
    CHECK(s.stages == 5 && strcmp(s.stage[0].name, "check") == 0 && strcmp(s.stage[3].name, "numeric") == 0
          && s.stage[3].seconds == s.sec_numeric, "%d stages", s.stages);
    CHECK(sum > 0 && sum <= s.sec_total, "%g of %g seconds", sum, s.sec_total);
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- views over device memory, in every function */

static void moved_there_and_back(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        ref A = ref_random(7, 40, 30, 4, REF_REALS, t);
        tulle_matrix *there = NULL, *also = NULL, *back = NULL;
        WORKS(tulle_csr_move(ctx, &A.view, TULLE_DEVICE, &there));
        tulle_csr v = tulle_matrix_view(there);
        CHECK(v.place == TULLE_DEVICE && v.rows == 40 && v.cols == 30 && v.nnz == A.view.nnz && v.row_ptr && v.values,
              "%s", ref_types_name(t));
        WORKS(tulle_csr_move(ctx, &v, TULLE_DEVICE, &also));
        tulle_matrix_free(there);
        v = tulle_matrix_view(also);
        WORKS(tulle_csr_move(ctx, &v, TULLE_HOST, &back));
        v = tulle_matrix_view(back);
        CHECK(v.place == TULLE_HOST && ref_untouched(&v, &A), "%s", ref_types_name(t));
        tulle_matrix_free(also);
        tulle_matrix_free(back);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void patterns_and_empty_matrices_move_too(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(8, 20, 20, 3, REF_INTEGERS, f64), E = ref_new(0, 0, 0, f64), Z = ref_new(5, 0, 0, f64_i64);
    tulle_csr pattern = A.view;
    pattern.values = NULL;
    const tulle_csr *views[] = {&pattern, &E.view, &Z.view};
    for (int i = 0; i < 3; i++) {
        tulle_matrix *there = NULL, *back = NULL;
        WORKS(tulle_csr_move(ctx, views[i], TULLE_DEVICE, &there));
        tulle_csr v = tulle_matrix_view(there);
        CHECK(!v.values == !views[i]->values || v.nnz == 0, "values of %d", i);
        WORKS(tulle_csr_move(ctx, &v, TULLE_HOST, &back));
        v = tulle_matrix_view(back);
        CHECK(ref_same(&v, views[i], "there and back"), "matrix %d", i);
        tulle_matrix_free(there);
        tulle_matrix_free(back);
    }
    ref_free(&A);
    ref_free(&E);
    ref_free(&Z);
    tulle_ctx_free(ctx);
}

static void one_matrix_functions_take_device_views(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(9, 30, 40, 5, REF_INTEGERS, f64), mixed = ref_shuffled(&A.view, 5, false);
    ref At = ref_transpose(&A.view, TULLE_TRANSPOSE);
    tulle_matrix *a = gpu_moved(ctx, &A.view, TULLE_DEVICE), *m = gpu_moved(ctx, &mixed.view, TULLE_DEVICE), *out = NULL;
    tulle_csr va = tulle_matrix_view(a), vm = tulle_matrix_view(m), v;
    double x[40], y[30], want[30];
    WORKS(tulle_csr_check(ctx, &va));
    FAILS(tulle_csr_check(ctx, &vm), TULLE_EPATTERN, "row");
    WORKS(tulle_csr_sort(ctx, &vm, &out));
    v = tulle_matrix_view(out);
    CHECK(v.place == TULLE_HOST && ref_same(&v, &A.view, "sorted"), "sort");
    tulle_matrix_free(out);
    WORKS(tulle_csr_transpose(ctx, &va, TULLE_TRANSPOSE, &out));
    v = tulle_matrix_view(out);
    CHECK(v.place == TULLE_HOST && ref_same(&v, &At.view, "transposed"), "transpose");
    tulle_matrix_free(out);
    WORKS(tulle_csr_convert(ctx, &va, 0, TULLE_I64, TULLE_I64, &out));
    v = tulle_matrix_view(out);
    CHECK(v.place == TULLE_HOST && v.idx_type == TULLE_I64 && ref_same(&v, &A.view, "converted"), "convert");
    tulle_matrix_free(out);
    for (int i = 0; i < 40; i++) x[i] = i - 20;
    WORKS(tulle_csr_apply(ctx, &va, x, y));
    WORKS(tulle_csr_apply(ctx, &A.view, x, want));
    CHECK(memcmp(y, want, sizeof y) == 0, "apply");
    char path[64];
    snprintf(path, sizeof path, "api_device_%ld.tulle", (long)getpid());
    WORKS(tulle_write(ctx, path, &va));
    WORKS(tulle_read(ctx, path, &out));
    unlink(path);
    v = tulle_matrix_view(out);
    CHECK(ref_same(&v, &A.view, "written and read"), "write");
    tulle_matrix_free(out);
    tulle_matrix_free(a);
    tulle_matrix_free(m);
    ref_free(&A);
    ref_free(&At);
    ref_free(&mixed);
    tulle_ctx_free(ctx);
}

static void products_of_transposed_and_unsorted_operands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 2; i++) {
        ref_types t = i ? cf64 : f64;
        ref A = ref_random(21, 60, 50, 5, REF_INTEGERS, t);
        ref B = ref_random(22, 40, 60, 5, REF_INTEGERS, t);
        ref Ah = ref_transpose(&A.view, TULLE_ADJOINT), Bt = ref_transpose(&B.view, TULLE_TRANSPOSE);
        ref want = ref_product(&Ah.view, &Bt.view);         /* 50 x 60 * 60 x 40 */
        ref mixed = ref_shuffled(&A.view, 5, true);
        ref sorted = ref_sorted(&mixed.view), sorted_h = ref_transpose(&sorted.view, TULLE_ADJOINT);
        ref want_sorted = ref_product(&sorted_h.view, &Bt.view);
        for (int places = 0; places < PLACES; places++) {
            tulle_options o = {.op_a = TULLE_ADJOINT, .op_b = TULLE_TRANSPOSE};
            tulle_matrix *C = gpu_product(ctx, &A.view, &B.view, o, places, places_name(places));
            tulle_csr c = tulle_matrix_view(C);
            CHECK(C && ref_same(&c, &want.view, places_name(places)), "A^H * B^T, %s", ref_types_name(t));
            tulle_matrix_free(C);
            o.sort_inputs = 1;
            C = gpu_product(ctx, &mixed.view, &B.view, o, places, places_name(places));
            c = tulle_matrix_view(C);
            CHECK(C && ref_same(&c, &want_sorted.view, places_name(places)), "sorted, %s", ref_types_name(t));
            tulle_matrix_free(C);
        }
        ref_free(&A), ref_free(&B), ref_free(&Ah), ref_free(&Bt), ref_free(&want);
        ref_free(&mixed), ref_free(&sorted), ref_free(&sorted_h), ref_free(&want_sorted);
    }
    tulle_ctx_free(ctx);
}

static void damaged_operands_are_refused(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(23, 30, 30, 4, REF_INTEGERS, f64), bad = ref_copy(&A.view, f64);
    int64_t row = 0;
    while (ref_ptr(&A.view, row + 1) - ref_ptr(&A.view, row) < 2) row++;
    ref_set_col(&bad, ref_ptr(&A.view, row) + 1, ref_col(&A.view, ref_ptr(&A.view, row)));   /* a duplicate */
    tulle_matrix *there = gpu_moved(ctx, &bad.view, TULLE_DEVICE), *C = NULL;
    tulle_csr v = tulle_matrix_view(there);
    char part[32];
    snprintf(part, sizeof part, "row %d", (int)row);
    FAILS(tulle_multiply(ctx, &bad.view, &A.view, NULL, &C), TULLE_EPATTERN, part);
    FAILS(tulle_multiply(ctx, &v, &A.view, NULL, &C), TULLE_EPATTERN, part);
    FAILS(tulle_multiply(ctx, &A.view, &v, NULL, &C), TULLE_EPATTERN, "B: ");
    FAILS(tulle_multiply(ctx, &v, &v, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &C), TULLE_EPATTERN, part);
    FAILS(tulle_multiply(ctx, &A.view, &v, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &C), TULLE_EPATTERN, "B: ");
    CHECK(!C, "an output after an error");
    tulle_matrix_free(there);
    ref_free(&A);
    ref_free(&bad);
    tulle_ctx_free(ctx);
}

static void shapes_and_types_are_refused_unread(void)
{
    tulle_ctx *ctx = gpu_ctx();
    tulle_csr A = {.rows = 3, .cols = 4, .nnz = 2, .row_ptr = &A, .col_idx = &A, .values = &A, .ptr_type = TULLE_I32,
                   .idx_type = TULLE_I32, .val_type = TULLE_F64, .place = TULLE_DEVICE};    /* no such memory */
    tulle_csr B = A;
    tulle_matrix *C = NULL;
    FAILS(tulle_multiply(ctx, &A, &A, NULL, &C), TULLE_ESHAPE, "4 columns against 3 rows");
    B.rows = 4;
    B.val_type = TULLE_F32;
    FAILS(tulle_multiply(ctx, &A, &B, NULL, &C), TULLE_ETYPE, "f32");
    B.val_type = TULLE_F64;
    B.values = NULL;
    FAILS(tulle_multiply(ctx, &A, &B, NULL, &C), TULLE_EINVAL, "B has no values");
    B.row_ptr = NULL;
    FAILS(tulle_multiply(ctx, &A, &B, NULL, &C), TULLE_EINVAL, "B: row_ptr is NULL");
    B.place = (tulle_place)5;
    FAILS(tulle_multiply(ctx, &A, &B, NULL, &C), TULLE_EINVAL, "B: place is 5");
    tulle_ctx_free(ctx);
}

static void estimates_and_checks_take_device_views(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &p.B.view, TULLE_DEVICE), *C = NULL;
    tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
    tulle_forecast here, there;
    double error = 1;
    WORKS(tulle_estimate(ctx, &p.A.view, &p.B.view, NULL, &here));
    WORKS(tulle_estimate(ctx, &va, &vb, NULL, &there));
    CHECK(here.products == ref_count_products(&p.A.view, &p.B.view) && there.products == here.products
          && there.nnz_estimate == here.nnz_estimate, "%" PRId64 " products", there.products);
    WORKS(tulle_multiply(ctx, &va, &vb, &(tulle_options){.c_place = TULLE_DEVICE, .time_stages = 1}, &C));
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    CHECK(strcmp(s.device, gpu_name()) == 0 && s.isa && s.isa[0] && s.products == here.products
          && s.c_nnz == want.view.nnz && s.a_nnz == p.A.view.nnz && s.waits > 0 && s.stages > 0 && s.sec_total > 0
          && s.peak_bytes > 0, "stats: %s %s, %" PRId64 " products, c_nnz %" PRId64 ", %d waits, %d stages", s.device,
          s.isa, s.products, s.c_nnz, s.waits, s.stages);
    tulle_csr c = tulle_matrix_view(C);
    CHECK(c.place == TULLE_DEVICE, "C is on the host");
    WORKS(tulle_product_check(ctx, &va, &vb, &c, NULL, &error));
    WORKS(tulle_product_check(ctx, &p.A.view, &vb, &c, NULL, &error));
    CHECK(error < 1e-14, "%g", error);
    CHECK(tulle_product_check(ctx, &va, &vb, &va, NULL, &error) == TULLE_ESHAPE, "another shape");
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    tulle_ctx_free(ctx);
    tulle_matrix_free(C);                           /* matrices may outlive their context, on a device, too */
    ref_free(&want);
    pair_free(&p);
}

/* ---- views over arrays there */

static void views_are_made_of_arrays_on_the_device(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    tulle_matrix *own = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *C = NULL;
    tulle_csr v = tulle_matrix_view(own);
    tulle_csr A = tulle_csr_make_device(v.rows, v.cols, v.nnz, v.row_ptr, v.ptr_type, v.col_idx, v.idx_type, v.values, v.val_type);
    CHECK(A.place == TULLE_DEVICE && A.rows == p.A.view.rows && A.nnz == p.A.view.nnz, "the view");
    ref want = ref_product(&p.A.view, &p.B.view);
    WORKS(tulle_multiply(ctx, &A, &p.B.view, NULL, &C));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &want.view, p.name), "A*B");

    int64_t n = 3;
    double *ones = malloc((size_t)(v.cols * n) * sizeof *ones), *y = malloc((size_t)(v.rows * n) * sizeof *y);
    for (int64_t i = 0; i < v.cols * n; i++) ones[i] = 1;
    tulle_dense x = tulle_dense_make(v.cols, n, 0, TULLE_BY_ROWS, ones, TULLE_F64);
    tulle_dense Y = tulle_dense_make(v.rows, n, 0, TULLE_BY_ROWS, y, TULLE_F64);
    tulle_dense_matrix *there = NULL;
    WORKS(tulle_dense_move(ctx, &x, TULLE_DEVICE, &there));
    tulle_dense d = tulle_dense_view(there), X = tulle_dense_make_device(d.rows, d.cols, d.ld, d.order, d.values, d.val_type);
    CHECK(X.place == TULLE_DEVICE && X.ld == n && X.rows == v.cols, "the dense view");
    WORKS(tulle_spmm(ctx, NULL, &A, &X, NULL, &Y, NULL));
    for (int64_t i = 0; i < v.rows; i++) {
        double sum = 0;
        for (int64_t k = ref_ptr(&p.A.view, i); k < ref_ptr(&p.A.view, i + 1); k++) sum += ref_val(&p.A.view, k).re;
        CHECK(y[i * n] == sum && y[i * n + n - 1] == sum, "row %" PRId64 ": %g, not %g", i, y[i * n], sum);
    }
    tulle_dense_free(there);
    free(ones);
    free(y);
    tulle_matrix_free(C);
    tulle_matrix_free(own);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- blocks */

typedef struct collect {
    tulle_ctx       *ctx;
    const tulle_csr *want;
    int64_t          next, blocks, nnz, wrong;
    tulle_place      place;
} collect;

static int take(void *user, int64_t first, const tulle_csr *block)
{
    collect *t = user;
    if (first != t->next || block->place != t->place) t->wrong++;
    t->next = first + block->rows;
    t->blocks++;
    tulle_matrix *here = NULL;
    tulle_csr copy;
    if (block->place == TULLE_DEVICE) {
        here = gpu_moved(t->ctx, block, TULLE_HOST);
        copy = tulle_matrix_view(here);
        block = &copy;
        if (block->place != TULLE_HOST) return 1;
    }
    int64_t begin = ref_ptr(t->want, first);
    for (int64_t i = 0; i <= block->rows; i++)
        t->wrong += ref_ptr(block, i) != ref_ptr(t->want, first + i) - begin;
    for (int64_t k = 0; k < block->nnz; k++)
        t->wrong += ref_col(block, k) != ref_col(t->want, begin + k)
                    || ref_val(block, k).re != ref_val(t->want, begin + k).re;
    t->nnz += block->nnz;
    tulle_matrix_free(here);
    return 0;
}

static void blocks_of_rows(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view), Bt = ref_transpose(&p.B.view, TULLE_TRANSPOSE);
    tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &Bt.view, TULLE_DEVICE);
    tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
    for (int way = 0; way < 3; way++) {
        tulle_options o = {.memory_limit = 1 << 20, .op_b = way == 1 ? TULLE_TRANSPOSE : TULLE_KEEP,
                           .c_place = way == 2 ? TULLE_DEVICE : TULLE_HOST};
        collect t = {.ctx = ctx, .want = &want.view, .place = (tulle_place)o.c_place};
        WORKS(tulle_multiply_blocks(ctx, way ? &va : &p.A.view, way == 1 ? &vb : &p.B.view, &o, take, &t));
        CHECK(t.wrong == 0 && t.next == p.A.view.rows && t.nnz == want.view.nnz && t.blocks > 1, "way %d: %" PRId64 " wrong in %" PRId64 " blocks", way,
              t.wrong, t.blocks);
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        CHECK(s.c_nnz == want.view.nnz && s.products == ref_count_products(&p.A.view, &p.B.view), "stats of all blocks");
    }
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    ref_free(&want);
    ref_free(&Bt);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- plans */

static void plans_take_values_where_their_operands_were(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 4; i++) {
        bool transposed = i & 1, there = i & 2;
        ref A = ref_random(31, 80, 70, 6, REF_INTEGERS, cf64);
        ref B = transposed ? ref_random(32, 60, 70, 6, REF_INTEGERS, cf64)
                           : ref_random(32, 70, 60, 6, REF_INTEGERS, cf64);
        ref Bh = transposed ? ref_transpose(&B.view, TULLE_ADJOINT) : ref_copy(&B.view, cf64);
        tulle_matrix *a = NULL, *b = NULL, *c = NULL;
        tulle_csr va = A.view, vb = B.view;
        if (there) {
            a = gpu_moved(ctx, &A.view, TULLE_DEVICE);
            b = gpu_moved(ctx, &B.view, TULLE_DEVICE);
            va = tulle_matrix_view(a);
            vb = tulle_matrix_view(b);
        }
        tulle_plan *plan = NULL;
        tulle_options o = {.op_b = transposed ? TULLE_ADJOINT : TULLE_KEEP};
        WORKS(tulle_plan_create(ctx, &va, &vb, &o, &plan));
        ref want = ref_product(&A.view, &Bh.view);
        tulle_csr pattern = tulle_plan_pattern(plan);
        CHECK(pattern.place == TULLE_HOST && !pattern.values && pattern.nnz == want.view.nnz, "pattern");
        void *values = calloc((size_t)pattern.nnz + 1, 16);
        for (int run = 0; run < 2; run++) {
            memset(values, 0x55, (size_t)pattern.nnz * 16);
            WORKS(tulle_plan_run(plan, va.values, vb.values, values));
            CHECK(ref_same_values(values, want.values, TULLE_CF64, pattern.nnz, "values"), "plan %d, run %d", i, run);
        }
        free(values);
        tulle_plan_free(plan);
        tulle_matrix_free(a);
        tulle_matrix_free(b);
        tulle_matrix_free(c);
        ref_free(&A), ref_free(&B), ref_free(&Bh), ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

/* ---- handles of the drivers */

static void foreign_handles_are_for_their_driver_only(void)
{
    tulle_ctx *cpu = ctx_with(1), *ctx = cpu;
    FAILS(tulle_cuda_set_stream(cpu, NULL), TULLE_EINVAL, "cpu");
    FAILS(tulle_opencl_set_queue(cpu, NULL), TULLE_EINVAL, "cpu");
    CHECK(!tulle_cuda_context(cpu) && !tulle_cuda_stream(cpu) && !tulle_opencl_context(cpu) && !tulle_opencl_device(cpu)
          && !tulle_opencl_queue(cpu), "handles of the CPU");
    CHECK(tulle_cuda_set_stream(NULL, NULL) == TULLE_EINVAL && tulle_opencl_set_queue(NULL, NULL) == TULLE_EINVAL
          && !tulle_cuda_context(NULL) && !tulle_opencl_queue(NULL), "no context");
    ctx = gpu_ctx();
    bool cuda = strncmp(gpu_name(), "cuda", 4) == 0;
    if (cuda) FAILS(tulle_opencl_set_queue(ctx, NULL), TULLE_EINVAL, "cuda");
    else FAILS(tulle_cuda_set_stream(ctx, NULL), TULLE_EINVAL, "opencl");
    WORKS(cuda ? tulle_cuda_set_stream(ctx, NULL) : tulle_opencl_set_queue(ctx, NULL));
    CHECK(!tulle_cuda_context(ctx) == !cuda && !tulle_opencl_context(ctx) == cuda, "contexts");
    CHECK(!tulle_cuda_stream(ctx) == !cuda && !tulle_opencl_queue(ctx) == cuda, "queues");
    CHECK(!tulle_opencl_device(ctx) == cuda, "device");
    /* set its own queue explicitly */
    WORKS(cuda ? tulle_cuda_set_stream(ctx, tulle_cuda_stream(ctx)) : tulle_opencl_set_queue(ctx, tulle_opencl_queue(ctx)));
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    product_is(ctx, &p.A.view, &p.B.view, NULL, &want.view, "on its own queue");
    tulle_ctx_trim(ctx);
    product_is(ctx, &p.A.view, &p.B.view, NULL, &want.view, "after a trim");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* FastSpMM needs a GPU, and the CPU accepts no views over device memory. */
static void sparse_times_dense_without_a_device(void)
{
    tulle_ctx *cpu = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "a context");
    ref A = ref_random(9, 30, 40, 5, REF_INTEGERS, f64);
    double x[40] = {0}, y[30] = {1};
    tulle_dense X = tulle_dense_make(40, 1, 0, TULLE_BY_ROWS, x, TULLE_F64), Y = tulle_dense_make(30, 1, 0, TULLE_BY_ROWS, y, TULLE_F64);
    tulle_spmm_plan *plan = NULL;
    tulle_dense_matrix *moved = NULL;
    tulle_spmm_options o = {.policy = "ellr"};
    tulle_ctx *ctx = cpu;
    FAILS(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, &o), TULLE_EINVAL, "the policy \"ellr\" needs a GPU");
    FAILS(tulle_spmm_plan_create(ctx, &A.view, &o, &plan), TULLE_EINVAL, "the policy \"ellr\" needs a GPU");
    FAILS(tulle_dense_move(ctx, &X, (tulle_place)7, &moved), TULLE_EINVAL, "there is no place 7");
    CHECK(!plan && !moved && y[0] == 1, "something was made");
    X.place = TULLE_DEVICE;
    FAILS(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL), TULLE_EINVAL, "X: its values are in a device's memory");
    ref_free(&A);
    tulle_ctx_free(cpu);
}

/* ---- fork: drivers do not survive it; a child can only free its objects, without touching the device */

typedef struct inherited {
    tulle_ctx       *ctx;
    tulle_matrix    *there;
    tulle_plan      *plan;
    tulle_spmm_plan *spmm;
    const pair      *p;
} inherited;

static void free_inherited(inherited *f)
{
    tulle_plan_free(f->plan);
    tulle_spmm_plan_free(f->spmm);
    tulle_ctx_trim(f->ctx);
    tulle_ctx_free(f->ctx);
    tulle_matrix_free(f->there);        /* the last reference to the device */
}

static bool child_of_a_device(inherited *f)
{
    tulle_ctx *ctx = f->ctx, *own = NULL;
    tulle_matrix *C = NULL;
    tulle_csr there = tulle_matrix_view(f->there);
    char values[16];
    test_failures = 0;
    FAILS(tulle_multiply(ctx, &f->p->A.view, &f->p->B.view, NULL, &C), TULLE_EDRIVER, "before fork()");
    FAILS(tulle_csr_move(ctx, &there, TULLE_HOST, &C), TULLE_EDRIVER, "before fork()");
    FAILS(tulle_csr_check(ctx, &there), TULLE_EDRIVER, "before fork()");
    FAILS(tulle_plan_run(f->plan, values, values, values), TULLE_EDRIVER, "before fork()");
    FAILS(tulle_spmm_plan_run(f->spmm, NULL, &(tulle_dense){0}, NULL, &(tulle_dense){0}), TULLE_EDRIVER, "before fork()");
    if (strncmp(gpu_name(), "opencl", 6) == 0)
        FAILS(tulle_opencl_set_queue(ctx, NULL), TULLE_EDRIVER, "before fork()");
    free_inherited(f);
    CHECK(tulle_ctx_create("cpu", NULL, &own) == TULLE_OK, "no context of its own");
    CHECK(tulle_multiply(own, &f->p->A.view, &f->p->B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(own));
    tulle_matrix_free(C);
    tulle_ctx_free(own);
    return test_failures == 0;
}

static void a_child_of_fork_frees_its_device_and_no_more(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = pair_at(15, REF_INTEGERS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32}, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    inherited f = {.ctx = ctx, .p = &p};
    tulle_matrix *C = NULL;
    int status = -1;
    WORKS(tulle_csr_move(ctx, &p.A.view, TULLE_DEVICE, &f.there));
    WORKS(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &f.plan));
    WORKS(tulle_spmm_plan_create(ctx, &p.A.view, NULL, &f.spmm));
    fflush(stdout);
    pid_t child = calm_fork();
    if (child == 0) {
        alarm(60);
        _exit(child_of_a_device(&f) ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the child ended with %d", status);
    WORKS(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C));
    tulle_matrix_free(C);
    free_inherited(&f);
    pair_free(&p);
}

/* ---- slices of rows */

static void slices_on_the_host_are_as_copies(void)
{
    tulle_ctx *ctx = gpu_ctx();
    slices_are_as_copies(ctx, f64);
    slices_are_as_copies(ctx, (ref_types){TULLE_F32, TULLE_I64, TULLE_I64});
    wrong_slices_are_refused(ctx);
    tulle_ctx_free(ctx);
}

/* Uses the columns of a matrix as row pointers, which do not begin with 0. */
static void slices_on_the_device_are_refused(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_identity(8, f64), P = ref_new(1, 16, 3, f64);
    for (int i = 0; i < 3; i++) ref_set_col(&P, i, 2 + 2 * i);
    ref_set_ptr(&P, 1, 3);
    ref_fill(&P, REF_INTEGERS, 1);
    tulle_matrix *a = NULL, *p = NULL, *host = NULL, *C = NULL;
    tulle_plan *plan = NULL;
    WORKS(tulle_csr_move(ctx, &A.view, TULLE_DEVICE, &a));
    WORKS(tulle_csr_move(ctx, &P.view, TULLE_DEVICE, &p));
    tulle_csr v = tulle_matrix_view(a), pointers = tulle_matrix_view(p);
    v.row_ptr = pointers.col_idx;       /* 2 4 6 */
    v.rows = 2;
    v.nnz = 4;
    FAILS(tulle_csr_check(ctx, &v), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    FAILS(tulle_csr_move(ctx, &v, TULLE_HOST, &host), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    FAILS(tulle_multiply(ctx, &v, &A.view, NULL, &C), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    FAILS(tulle_multiply(ctx, &v, &A.view, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &C), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    FAILS(tulle_plan_create(ctx, &v, &A.view, NULL, &plan), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    FAILS(tulle_csr_transpose(ctx, &v, TULLE_TRANSPOSE, &C), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    static double x[16], y[4];
    tulle_dense X = tulle_dense_make(8, 2, 0, TULLE_BY_ROWS, x, TULLE_F64), Y = tulle_dense_make(2, 2, 0, TULLE_BY_ROWS, y, TULLE_F64);
    FAILS(tulle_spmm(ctx, NULL, &v, &X, NULL, &Y, NULL), TULLE_EPATTERN, "row_ptr[0] is 2, not 0");
    CHECK(!host && !C && !plan, "a result and an error");
    tulle_matrix_free(a);
    tulle_matrix_free(p);
    ref_free(&A);
    ref_free(&P);
    tulle_ctx_free(ctx);
}

/* ---- a plan's product as a matrix of its own */

static void a_plan_gives_its_product_on_the_device(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(41, 90, 80, 5, REF_INTEGERS, f64), B = ref_random(42, 80, 70, 5, REF_INTEGERS, f64);
    ref want = ref_product(&A.view, &B.view);
    for (int place = TULLE_HOST; place <= TULLE_DEVICE; place++) {
        tulle_plan *plan = NULL;
        tulle_matrix *C[2] = {NULL, NULL}, *host = NULL;
        WORKS(tulle_plan_create(ctx, &A.view, &B.view, &(tulle_options){.c_place = place}, &plan));
        for (int i = 0; i < 2; i++) WORKS(tulle_plan_multiply(plan, A.values, B.values, &C[i]));
        tulle_plan_free(plan);          /* the matrices outlive it */
        tulle_csr first = tulle_matrix_view(C[0]), second = tulle_matrix_view(C[1]);
        CHECK((int)first.place == place && first.val_type == TULLE_F64, "place %d", (int)first.place);
        CHECK(first.row_ptr != second.row_ptr && first.col_idx != second.col_idx && first.values != second.values, "arrays are shared");
        tulle_matrix_free(C[0]);
        WORKS(tulle_csr_move(ctx, &second, TULLE_HOST, &host));
        tulle_csr got = tulle_matrix_view(host);
        CHECK(ref_same(&got, &want.view, "a plan's C"), "place %d", place);
        tulle_matrix *D = NULL;         /* and can be used as an operand */
        WORKS(tulle_multiply(ctx, &second, &second, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &D));
        tulle_matrix_free(D);
        tulle_matrix_free(host);
        tulle_matrix_free(C[1]);
    }
    ref_free(&A);
    ref_free(&B);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void reserved_words_of_views_are_refused_here_too(void)
{
    tulle_ctx *ctx = gpu_ctx();
    views_with_reserved_words_are_refused(ctx);
    tulle_ctx_free(ctx);
}

TEST_MAIN(
    TEST(no_such_device_is_told_in_a_sentence),
    TEST(a_sentence_is_cut_to_its_room),
    TEST(the_environment_names_the_default),
    TEST(a_driver_alone_means_its_first_device),
    TEST(the_list_tells_of_every_device),
    TEST(missing_drivers_are_lines_that_say_so),
    TEST(a_cpu_context_takes_no_view_of_a_device),
    TEST(fields_of_options_have_their_ranges),
    TEST(stages_of_a_cpu_product_add_up),
    TEST(sparse_times_dense_without_a_device),
    TEST(moved_there_and_back),
    TEST(patterns_and_empty_matrices_move_too),
    TEST(one_matrix_functions_take_device_views),
    TEST(products_of_transposed_and_unsorted_operands),
    TEST(damaged_operands_are_refused),
    TEST(shapes_and_types_are_refused_unread),
    TEST(estimates_and_checks_take_device_views),
    TEST(views_are_made_of_arrays_on_the_device),
    TEST(blocks_of_rows),
    TEST(plans_take_values_where_their_operands_were),
    TEST(foreign_handles_are_for_their_driver_only),
    TEST(a_child_of_fork_frees_its_device_and_no_more),
          TEST(reserved_words_of_views_are_refused_here_too), TEST(slices_on_the_host_are_as_copies),
          TEST(slices_on_the_device_are_refused), TEST(a_plan_gives_its_product_on_the_device))
