/* SPDX-License-Identifier: MIT
 *
 * test_api.c - the public functions: each of them, called with NULL and with invalid arguments, returns the
 * right status and a message; progress and cancellation; trace; devices; names. */
#define _POSIX_C_SOURCE 200809L
#include "ways.h"

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* The call fails with the right status, and the message contains `part`. */
#define FAILS(call, wanted, part)                                                                 \
    do {                                                                                          \
        tulle_status got = (call);                                                                \
        CHECK(got == wanted, "%s, should be %s", tulle_status_name(got), #wanted);                \
        CHECK(strstr(tulle_ctx_error(ctx), part) != NULL, "\"%s\" should tell of \"%s\"", tulle_ctx_error(ctx), part); \
    } while (0)

/* ---- names and texts */

static void names_and_versions(void)
{
    CHECK(strcmp(tulle_version(), TULLE_VERSION) == 0, "%s", tulle_version());
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", TULLE_VERSION_MAJOR, TULLE_VERSION_MINOR, TULLE_VERSION_PATCH);
    CHECK(strcmp(text, TULLE_VERSION) == 0, "%s", text);
}

/* These numbers are compiled into programs, so they must never change. */
static void status_numbers_never_change(void)
{
    static const struct { int code; const char *name, *text; } pinned[] = {
        {0, "TULLE_OK", "no error"},
        {-1, "TULLE_EINVAL", "an argument is not allowed"},
        {-2, "TULLE_ESHAPE", "the shapes of the matrices do not agree"},
        {-3, "TULLE_EPATTERN", "an index is out of range or out of order"},
        {-4, "TULLE_ETYPE", "this combination of types is not supported"},
        {-5, "TULLE_EDEVICE", "no such device"},
        {-100, "TULLE_ENOMEM", "out of memory"},
        {-101, "TULLE_ELIMIT", "the memory limit is too small"},
        {-102, "TULLE_EOVERFLOW", "a count does not fit the index type"},
        {-103, "TULLE_EIO", "a file could not be read or written"},
        {-104, "TULLE_EFORMAT", "a file is damaged or not in a known format"},
        {-105, "TULLE_ECANCEL", "cancelled by the progress callback"},
        {-106, "TULLE_ECHECK", "a check of the result failed"},
        {-107, "TULLE_EDRIVER", "a device or its driver failed"},
        {-108, "TULLE_ECOMPILE", "a kernel could not be compiled"},
        {-109, "TULLE_ECOMM", "messages between processes failed"},
    };
    enum { PINNED = sizeof pinned / sizeof *pinned };
    int listed = 0;
#define COUNT_ONE(name, code, words) listed++;
    TULLE_STATUS_LIST(COUNT_ONE)
#undef COUNT_ONE
    CHECK(listed == PINNED, "%d statuses, %d of them pinned here", listed, (int)PINNED);
    for (int i = 0; i < PINNED; i++) {
        tulle_status status = (tulle_status)pinned[i].code;
        CHECK(strcmp(tulle_status_name(status), pinned[i].name) == 0, "%d is %s", pinned[i].code, tulle_status_name(status));
        CHECK(strcmp(tulle_status_text(status), pinned[i].text) == 0, "%d: %s", pinned[i].code, tulle_status_text(status));
    }
    CHECK(TULLE_EINVAL == -1 && TULLE_EDEVICE == -5 && TULLE_ENOMEM == -100 && TULLE_ECOMPILE == -108, "the enum");
    static const int unknown[] = {-77, 12345, -99, -998};
    for (int i = 0; i < 4; i++) {
        const char *name = tulle_status_name((tulle_status)unknown[i]), *text = tulle_status_text((tulle_status)unknown[i]);
        CHECK(strcmp(name, "TULLE_?") == 0 && strcmp(text, "not a status of tulle") == 0, "%d is %s, %s", unknown[i], name, text);
    }
}

static void lists_end(void)
{
    typedef const char *(*lister)(int);
    const struct { lister name, text; const char *what; int least; } lists[] = {
        {tulle_policy_name, tulle_policy_text, "policy", 2},
        {tulle_accumulator_name, tulle_accumulator_text, "accumulator", 4},
        {tulle_gallery_name, tulle_gallery_text, "gallery", 10}};
    for (int l = 0; l < 3; l++) {
        int n = 0;
        for (; lists[l].name(n) && n < 1000; n++) {
            CHECK(lists[l].text(n) && strlen(lists[l].text(n)) > 0, "%s %s has no text", lists[l].what, lists[l].name(n));
            for (int k = 0; k < n; k++)
                CHECK(strcmp(lists[l].name(k), lists[l].name(n)) != 0, "%s %s twice", lists[l].what, lists[l].name(n));
        }
        CHECK(n >= lists[l].least && n < 1000, "%d of %s", n, lists[l].what);
        CHECK(!lists[l].name(-1) && !lists[l].text(-1) && !lists[l].text(n) && !lists[l].name(n + 5),
              "%s: outside the list", lists[l].what);
    }
    CHECK(strcmp(tulle_policy_name(0), "auto") == 0, "the default policy is first");
}

static void devices(void)
{
    tulle_device d;
    REQUIRE(tulle_device_count() >= 1, "%d devices", tulle_device_count());
    for (int i = 0; i < tulle_device_count(); i++) {
        REQUIRE(tulle_device_info(i, &d) == TULLE_OK, "device %d", i);
        CHECK(d.name[0] && d.text[0], "device %d has no name", i);
        if (!d.usable) {
            CHECK(d.why_not[0], "device %s does not say why not", d.name);
            continue;
        }
        CHECK(d.memory_bytes > 0 && d.threads >= 1, "device %s", d.name);
        tulle_ctx *ctx = NULL;
        CHECK(tulle_ctx_create(d.name, NULL, &ctx) == TULLE_OK, "device %s", d.name);
        tulle_ctx_free(ctx);
    }
    CHECK(tulle_device_info(-1, &d) == TULLE_EINVAL, "device -1");
    CHECK(tulle_device_info(tulle_device_count(), &d) == TULLE_EINVAL, "one too many");
    CHECK(tulle_device_info(0, NULL) == TULLE_EINVAL, "info NULL");
}

/* ---- contexts */

static void contexts(void)
{
    tulle_ctx *ctx = NULL;
    CHECK(tulle_ctx_create("cpu", NULL, NULL) == TULLE_EINVAL, "ctx NULL");
    CHECK(tulle_ctx_create("abacus:7", NULL, &ctx) == TULLE_EDEVICE && !ctx, "no such device");
    CHECK(tulle_ctx_create("", NULL, &ctx) == TULLE_EDEVICE && !ctx, "empty name");
    tulle_mem none = {0};
    REQUIRE(tulle_ctx_create("cpu", &none, &ctx) == TULLE_OK, "all zero hooks");
    CHECK(strcmp(tulle_ctx_error(ctx), "") == 0, "%s", tulle_ctx_error(ctx));
    FAILS(tulle_ctx_set_threads(ctx, -1), TULLE_EINVAL, "-1 threads");
    FAILS(tulle_ctx_set_threads(ctx, 1 << 20), TULLE_EINVAL, "1048576 threads");
    CHECK(tulle_ctx_set_threads(ctx, 0) == TULLE_OK && strcmp(tulle_ctx_error(ctx), "") == 0, "0: all cores");
    CHECK(tulle_ctx_set_threads(NULL, 1) == TULLE_EINVAL, "ctx NULL");
    CHECK(strlen(tulle_ctx_error(NULL)) > 0, "error of no context");
    tulle_ctx_set_progress(NULL, NULL, NULL);
    tulle_ctx_set_trace(NULL, NULL, NULL);
    tulle_ctx_trim(NULL);
    tulle_ctx_trim(ctx);
    tulle_stats s;
    memset(&s, 0x55, sizeof s);
    tulle_ctx_stats(ctx, &s);
    CHECK(s.products == 0 && s.shares == 0, "statistics before the first product");
    memset(&s, 0x55, sizeof s);
    tulle_ctx_stats(NULL, &s);
    CHECK(s.products == 0 && s.shares == 0, "statistics of no context");
    tulle_ctx_stats(ctx, NULL);
    tulle_ctx_free(ctx);
    tulle_ctx_free(NULL);
}

static void nothing_is_fine_for_those_that_free_and_view(void)
{
    tulle_matrix_free(NULL);
    tulle_plan_free(NULL);
    CHECK(!tulle_matrix_values(NULL), "values of nothing");
    tulle_csr v = tulle_matrix_view(NULL);
    CHECK(v.rows == 0 && v.nnz == 0 && !v.row_ptr, "view of nothing");
    v = tulle_plan_pattern(NULL);
    CHECK(v.rows == 0 && !v.row_ptr, "pattern of nothing");
    tulle_stats s;
    tulle_plan_stats(NULL, &s);
    CHECK(s.products == 0, "statistics of no plan");
    tulle_plan_stats(NULL, NULL);
    CHECK(tulle_plan_run(NULL, NULL, NULL, NULL) == TULLE_EINVAL, "run of no plan");
}

/* ---- NULL, everywhere */

static int no_block(void *user, int64_t first_row, const tulle_csr *block)
{
    (void)user;
    (void)first_row;
    (void)block;
    return 0;
}

static void null_arguments_are_named(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    const tulle_csr *A = &p.A.view, *B = &p.B.view;
    tulle_matrix *M = (tulle_matrix *)(void *)&p;               /* must be set to NULL */
    tulle_plan *plan = NULL;
    tulle_forecast f;
    double x[50] = {0}, y[50], e;
    int32_t i32[4] = {0};
    /* without a context there is only a status */
    CHECK(tulle_csr_check(NULL, A) == TULLE_EINVAL, "check");
    CHECK(tulle_csr_sort(NULL, A, &M) == TULLE_EINVAL, "sort");
    CHECK(tulle_csr_transpose(NULL, A, TULLE_TRANSPOSE, &M) == TULLE_EINVAL, "transpose");
    CHECK(tulle_csr_convert(NULL, A, TULLE_F32, TULLE_I32, TULLE_I32, &M) == TULLE_EINVAL, "convert");
    CHECK(tulle_csr_from_coo(NULL, 1, 1, 0, i32, i32, TULLE_I32, x, TULLE_F64, &M) == TULLE_EINVAL, "coo");
    CHECK(tulle_csr_apply(NULL, A, x, y) == TULLE_EINVAL, "apply");
    CHECK(tulle_read(NULL, "x.mtx", &M) == TULLE_EINVAL, "read");
    CHECK(tulle_write(NULL, "x.mtx", A) == TULLE_EINVAL, "write");
    CHECK(tulle_gallery(NULL, "dense:3", &M) == TULLE_EINVAL, "gallery");
    CHECK(tulle_multiply(NULL, A, B, NULL, &M) == TULLE_EINVAL, "multiply");
    CHECK(tulle_multiply_blocks(NULL, A, B, NULL, no_block, NULL) == TULLE_EINVAL, "blocks");
    CHECK(tulle_estimate(NULL, A, B, NULL, &f) == TULLE_EINVAL, "estimate");
    CHECK(tulle_product_check(NULL, A, B, A, NULL, &e) == TULLE_EINVAL, "product_check");
    CHECK(tulle_plan_create(NULL, A, B, NULL, &plan) == TULLE_EINVAL && !plan, "plan");
    /* the message names the argument */
    FAILS(tulle_csr_check(ctx, NULL), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_csr_sort(ctx, NULL, &M), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_csr_sort(ctx, A, NULL), TULLE_EINVAL, "out is NULL");
    FAILS(tulle_csr_transpose(ctx, NULL, TULLE_TRANSPOSE, &M), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_csr_transpose(ctx, A, TULLE_TRANSPOSE, NULL), TULLE_EINVAL, "out is NULL");
    FAILS(tulle_csr_convert(ctx, NULL, TULLE_F32, TULLE_I32, TULLE_I32, &M), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_csr_convert(ctx, A, TULLE_F32, TULLE_I32, TULLE_I32, NULL), TULLE_EINVAL, "out is NULL");
    FAILS(tulle_csr_from_coo(ctx, 1, 1, 1, NULL, i32, TULLE_I32, x, TULLE_F64, &M), TULLE_EINVAL, "row_idx is NULL");
    FAILS(tulle_csr_from_coo(ctx, 1, 1, 1, i32, NULL, TULLE_I32, x, TULLE_F64, &M), TULLE_EINVAL, "col_idx is NULL");
    FAILS(tulle_csr_from_coo(ctx, 1, 1, 1, i32, i32, TULLE_I32, x, TULLE_F64, NULL), TULLE_EINVAL, "out is NULL");
    FAILS(tulle_csr_apply(ctx, NULL, x, y), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_csr_apply(ctx, A, NULL, y), TULLE_EINVAL, "x is NULL");
    FAILS(tulle_csr_apply(ctx, A, x, NULL), TULLE_EINVAL, "y is NULL");
    FAILS(tulle_read(ctx, NULL, &M), TULLE_EINVAL, "path is NULL");
    FAILS(tulle_read(ctx, "x.mtx", NULL), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_write(ctx, NULL, A), TULLE_EINVAL, "path is NULL");
    FAILS(tulle_write(ctx, "x.mtx", NULL), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_gallery(ctx, NULL, &M), TULLE_EINVAL, "recipe is NULL");
    FAILS(tulle_gallery(ctx, "dense:3", NULL), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_multiply(ctx, NULL, B, NULL, &M), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_multiply(ctx, A, NULL, NULL, &M), TULLE_EINVAL, "B is NULL");
    FAILS(tulle_multiply(ctx, A, B, NULL, NULL), TULLE_EINVAL, "C is NULL");
    FAILS(tulle_multiply_blocks(ctx, NULL, B, NULL, no_block, NULL), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_multiply_blocks(ctx, A, NULL, NULL, no_block, NULL), TULLE_EINVAL, "B is NULL");
    FAILS(tulle_multiply_blocks(ctx, A, B, NULL, NULL, NULL), TULLE_EINVAL, "fn is NULL");
    FAILS(tulle_estimate(ctx, NULL, B, NULL, &f), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_estimate(ctx, A, NULL, NULL, &f), TULLE_EINVAL, "B is NULL");
    FAILS(tulle_estimate(ctx, A, B, NULL, NULL), TULLE_EINVAL, "forecast is NULL");
    FAILS(tulle_product_check(ctx, NULL, B, A, NULL, &e), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_product_check(ctx, A, NULL, A, NULL, &e), TULLE_EINVAL, "B is NULL");
    FAILS(tulle_product_check(ctx, A, B, NULL, NULL, &e), TULLE_EINVAL, "C is NULL");
    FAILS(tulle_product_check(ctx, A, B, A, NULL, NULL), TULLE_EINVAL, "error is NULL");
    FAILS(tulle_plan_create(ctx, NULL, B, NULL, &plan), TULLE_EINVAL, "A is NULL");
    FAILS(tulle_plan_create(ctx, A, NULL, NULL, &plan), TULLE_EINVAL, "B is NULL");
    FAILS(tulle_plan_create(ctx, A, B, NULL, NULL), TULLE_EINVAL, "plan is NULL");
    /* a successful call clears the message */
    CHECK(tulle_csr_check(ctx, A) == TULLE_OK && strcmp(tulle_ctx_error(ctx), "") == 0, "%s", tulle_ctx_error(ctx));
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- invalid operands and options, in every function that has them */

typedef tulle_status (*product_fn)(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o);

static tulle_status by_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    tulle_matrix *C = NULL;
    tulle_status status = tulle_multiply(ctx, A, B, o, &C);
    CHECK(!C == (status != TULLE_OK), "a result and an error");
    tulle_matrix_free(C);
    return status;
}

static tulle_status by_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    return tulle_multiply_blocks(ctx, A, B, o, no_block, NULL);
}

static tulle_status by_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    tulle_forecast f;
    return tulle_estimate(ctx, A, B, o, &f);
}

static tulle_status by_plan(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o)
{
    tulle_plan *plan = NULL;
    tulle_status status = tulle_plan_create(ctx, A, B, o, &plan);
    CHECK(!plan == (status != TULLE_OK), "a plan and an error");
    tulle_plan_free(plan);
    return status;
}

static const product_fn products[] = {by_multiply, by_blocks, by_estimate, by_plan};
enum { PRODUCTS = 4 };

static void wrong_operands_are_named(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);                /* 40x30 * 30x50 */
    ref F = ref_copy(&p.B.view, (ref_types){TULLE_F32, TULLE_I32, TULLE_I32});
    for (int i = 0; i < PRODUCTS; i++) {
        tulle_csr bad = p.A.view;
        FAILS(products[i](ctx, &p.B.view, &p.A.view, NULL), TULLE_ESHAPE, "50 columns against 40 rows");
        FAILS(products[i](ctx, &p.A.view, &p.A.view, NULL), TULLE_ESHAPE, "A is 40 x 30");
        FAILS(products[i](ctx, &p.A.view, &p.B.view, &(tulle_options){.op_b = TULLE_TRANSPOSE}), TULLE_ESHAPE, "B^T is 50 x 30");
        FAILS(products[i](ctx, &p.A.view, &F.view, NULL), TULLE_ETYPE, "f32");
        bad.place = TULLE_DEVICE;
        FAILS(products[i](ctx, &bad, &p.B.view, NULL), TULLE_EINVAL, "A: its arrays are in a device's memory");
        bad = p.B.view;
        bad.row_ptr = NULL;
        FAILS(products[i](ctx, &p.A.view, &bad, NULL), TULLE_EINVAL, "B: row_ptr is NULL");
        bad = p.B.view;
        bad.nnz--;
        FAILS(products[i](ctx, &p.A.view, &bad, NULL), TULLE_EPATTERN, "B: row_ptr[30]");
        bad = p.B.view;
        bad.val_type = (tulle_type)0;
        FAILS(products[i](ctx, &p.A.view, &bad, NULL), TULLE_ETYPE, "B: val_type is 0");
        bad = p.A.view;
        bad.values = NULL;
        tulle_status status = products[i](ctx, &bad, &p.B.view, NULL);
        if (i < 2) {
            CHECK(status == TULLE_EINVAL && strcmp(tulle_ctx_error(ctx), "A has no values") == 0, "%s", tulle_ctx_error(ctx));
        } else {
            CHECK(status == TULLE_OK, "a pattern is enough: %s", tulle_ctx_error(ctx));
        }
    }
    ref_free(&F);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void wrong_options_are_named(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = pair_at(9, REF_INTEGERS, f64, f64);
    for (int i = 0; i < PRODUCTS; i++) {
#define BAD(part, ...) FAILS(products[i](ctx, &p.A.view, &p.B.view, &(tulle_options){__VA_ARGS__}), TULLE_EINVAL, part)
        BAD("threads", .threads = -1);
        BAD("threads", .threads = 1 << 17);
        BAD("op_a", .op_a = 3);
        BAD("op_b", .op_b = -1);
        BAD("c_ptr_type", .c_ptr_type = 3);
        BAD("c_idx_type", .c_idx_type = -2);
        BAD("drop_zeros", .drop_zeros = 2);
        BAD("sort_inputs", .sort_inputs = -1);
        BAD("trust_inputs", .trust_inputs = 7);
        BAD("reserved[3]", .reserved = {0, 0, 0, 1});
        BAD("there is no policy \"guess\"", .policy = "guess");
        BAD("auto", .policy = "");
        BAD("there is no accumulator \"abacus\"", .accumulator = "abacus");
        BAD("hash", .accumulator = "HASH");
#undef BAD
    }
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void one_matrix_functions_refuse_wrong_arguments(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(1, 20, 30, 4, REF_INTEGERS, f64);
    tulle_matrix *M = NULL;
    FAILS(tulle_csr_transpose(ctx, &A.view, (tulle_op)3, &M), TULLE_EINVAL, "3");
    FAILS(tulle_csr_transpose(ctx, &A.view, (tulle_op)-1, &M), TULLE_EINVAL, "-1");
    CHECK(tulle_csr_transpose(ctx, &A.view, TULLE_KEEP, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr m = tulle_matrix_view(M);
    CHECK(ref_same(&m, &A.view, "KEEP copies"), "%s", "KEEP");
    tulle_matrix_free(M);
    M = NULL;
    FAILS(tulle_csr_convert(ctx, &A.view, (tulle_type)5, TULLE_I32, TULLE_I32, &M), TULLE_ETYPE, "5");
    FAILS(tulle_csr_convert(ctx, &A.view, TULLE_F64, (tulle_index)9, TULLE_I32, &M), TULLE_ETYPE, "9");
    FAILS(tulle_csr_from_coo(ctx, -4, 3, 0, NULL, NULL, TULLE_I32, NULL, TULLE_F64, &M), TULLE_EINVAL, "-4");
    FAILS(tulle_read(ctx, "no/such/file.mtx", &M), TULLE_EIO, "no/such/file.mtx");
    FAILS(tulle_write(ctx, "no/such/folder/x.mtx", &A.view), TULLE_EIO, "no/such/folder/x.mtx");
    FAILS(tulle_write(ctx, "x.unknown", &A.view), TULLE_EINVAL, "x.unknown");
    FAILS(tulle_gallery(ctx, "no_such_recipe:3", &M), TULLE_EINVAL, "no_such_recipe");
    CHECK(!M, "a matrix and an error");
    tulle_csr bad = A.view;
    bad.cols = 3;
    FAILS(tulle_csr_check(ctx, &bad), TULLE_EPATTERN, "A: row ");
    FAILS(tulle_csr_sort(ctx, &bad, &M), TULLE_EPATTERN, "A: row ");
    FAILS(tulle_csr_transpose(ctx, &bad, TULLE_TRANSPOSE, &M), TULLE_EPATTERN, "A: row ");
    FAILS(tulle_csr_convert(ctx, &bad, TULLE_F32, TULLE_I32, TULLE_I32, &M), TULLE_EPATTERN, "A: row ");
    FAILS(tulle_write(ctx, "x.mtx", &bad), TULLE_EPATTERN, "A: row ");
    double x[30] = {0}, y[20];
    FAILS(tulle_csr_apply(ctx, &bad, x, y), TULLE_EPATTERN, "A: row ");
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- the simple functions */

static void one_matrix_functions_work(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(2, 40, 30, 4, REF_INTEGERS, f64), S = ref_shuffled(&A.view, 3, true);
    ref sorted = ref_sorted(&S.view), T = ref_transpose(&A.view, TULLE_TRANSPOSE);
    tulle_matrix *M = NULL;
    REQUIRE(tulle_csr_sort(ctx, &S.view, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr m = tulle_matrix_view(M);
    CHECK(ref_same(&m, &sorted.view, "sort"), "%s", "sort");
    /* the values of an owned matrix are writable */
    double *v = tulle_matrix_values(M);
    REQUIRE(v != NULL && m.values == v, "values");
    v[0] = 42;
    CHECK(ref_val(&m, 0).re == 42, "written values");
    tulle_matrix_free(M);
    REQUIRE(tulle_csr_transpose(ctx, &A.view, TULLE_ADJOINT, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    m = tulle_matrix_view(M);
    CHECK(ref_same(&m, &T.view, "transpose"), "%s", "transpose");
    tulle_matrix_free(M);
    double x[30], y[40];
    for (int i = 0; i < 30; i++) x[i] = i - 15;
    REQUIRE(tulle_csr_apply(ctx, &A.view, x, y) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    for (int64_t i = 0; i < 40; i++) {
        double sum = 0;
        for (int64_t k = ref_ptr(&A.view, i); k < ref_ptr(&A.view, i + 1); k++)
            sum += ref_val(&A.view, k).re * x[ref_col(&A.view, k)];
        CHECK(y[i] == sum, "y[%d]", (int)i);
    }
    ref all[] = {A, S, sorted, T};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    tulle_ctx_free(ctx);
}

/* ---- progress, cancel, trace */

typedef struct watch { int calls, stop_at; double last; bool ordered, inside; char stages[256]; } watch;

static int progress(void *user, const char *stage, double fraction)
{
    watch *w = user;
    w->calls++;
    w->inside = w->inside && fraction >= 0 && fraction <= 1 && stage && *stage;
    if (strlen(w->stages) < 200 && !strstr(w->stages, stage)) strcat(strcat(w->stages, stage), " ");
    return w->stop_at && w->calls >= w->stop_at;
}

static void progress_is_told_and_cancels(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        tulle_ctx *ctx = ctx_with(threads);
        ref A = ref_random(4, 1500, 1500, 40, REF_REALS, f64);  /* 2.4 million products */
        ref a = ref_copy(&A.view, f64);
        tulle_matrix *C = NULL, *D = NULL;
        REQUIRE(tulle_multiply(ctx, &A.view, &A.view, NULL, &D) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr want = tulle_matrix_view(D);
        watch w = {.inside = true};
        tulle_ctx_set_progress(ctx, progress, &w);
        CHECK(tulle_multiply(ctx, &A.view, &A.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(w.calls > 0 && w.inside, "%d calls, stages %s", w.calls, w.stages);
        tulle_matrix_free(C);
        C = NULL;
        static const product_fn cancelled[] = {by_multiply, by_blocks, by_plan};
        for (int i = 0; i < 3; i++) {
            /* The other threads may finish all work before the calling thread calls the progress function. */
            tulle_status status = TULLE_OK;
            for (int attempt = 0; attempt < (threads > 1 ? 20 : 1) && status == TULLE_OK; attempt++) {
                w = (watch){.inside = true, .stop_at = 1};
                status = cancelled[i](ctx, &A.view, &A.view, NULL);
            }
            CHECK(status == TULLE_ECANCEL, "%d threads, way %d: not cancelled", threads, i);
            CHECK(strstr(tulle_ctx_error(ctx), "cancel") != NULL, "%s", tulle_ctx_error(ctx));
            CHECK(w.calls == 1, "called %d times, the first said stop", w.calls);
        }
        CHECK(ref_untouched(&A.view, &a), "the input was written");
        /* and the next product is not affected */
        tulle_ctx_set_progress(ctx, NULL, NULL);
        product_is(ctx, &A.view, &A.view, NULL, &want, "after cancelling");
        tulle_matrix_free(D);
        ref_free(&A);
        ref_free(&a);
        tulle_ctx_free(ctx);
    }
}

typedef struct lines { int count; char text[4096]; } lines;

static void collect(void *user, const char *line)
{
    lines *l = user;
    l->count++;
    if (strlen(l->text) + strlen(line) + 2 < sizeof l->text) strcat(strcat(l->text, line), "\n");
}

static void the_trace_tells_what_was_chosen(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    lines l = {0};
    tulle_matrix *C = NULL;
    tulle_ctx_set_trace(ctx, collect, &l);
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &(tulle_options){.policy = "speck"}, &C) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    tulle_matrix_free(C);
    CHECK(l.count > 0 && strstr(l.text, "policy speck"), "%s", l.text);
    char number[32];
    snprintf(number, sizeof number, "%" PRId64 " products", ref_count_products(&p.A.view, &p.B.view));
    CHECK(strstr(l.text, number) != NULL, "no \"%s\" in %s", number, l.text);
    for (const char *c = l.text; *c; c++) CHECK(*c == '\n' || *c >= ' ', "character %d", *c);
    int count = l.count;
    tulle_ctx_set_trace(ctx, NULL, NULL);
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(l.count == count, "traced after it was switched off");
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* If no driver can be opened, a context without a device name uses the CPU, and traces the reason. */
static void the_trace_tells_why_no_gpu_was_taken(void)
{
    tulle_ctx *ctx = NULL;
    lines l = {0};
    unsetenv("TULLE_DEVICE");
    setenv("TULLE_LIBCUDA", "/no/libcuda.so", 1);
    setenv("TULLE_LIBOPENCL", "/no/libOpenCL.so", 1);
    REQUIRE(tulle_ctx_create(NULL, NULL, &ctx) == TULLE_OK, "the CPU is always there");
    CHECK(strcmp(tulle_ctx_device(ctx), "cpu") == 0 && !*tulle_ctx_error(ctx), "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_trace(ctx, collect, &l);
    CHECK(strstr(l.text, "on the CPU: cuda: /no/libcuda.so") && strstr(l.text, "on the CPU: opencl: /no/libOpenCL.so"), "%s",
          l.text);
    tulle_ctx_free(ctx);
    l = (lines){0};
    REQUIRE(tulle_ctx_create("cpu", NULL, &ctx) == TULLE_OK, "by its name");
    tulle_ctx_set_trace(ctx, collect, &l);
    CHECK(l.count == 0, "nobody asked for a GPU: %s", l.text);
    tulle_ctx_free(ctx);
    setenv("TULLE_DEVICE", "cpu", 1);
    unsetenv("TULLE_LIBCUDA");
    unsetenv("TULLE_LIBOPENCL");
}

/* Programs that allocate device memory run unchanged on the CPU, where it is host memory. */
static void the_device_of_a_cpu_is_the_host(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    tulle_matrix *A = NULL, *C = NULL;
    tulle_dense_matrix *X = NULL;
    double x[6] = {1, 2, 3, 4, 5, 6};
    tulle_dense dense = tulle_dense_make(2, 3, 0, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_options o = {.c_place = TULLE_DEVICE};
    REQUIRE(tulle_csr_move(ctx, &p.A.view, TULLE_DEVICE, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr a = tulle_matrix_view(A);
    CHECK(a.place == TULLE_HOST && a.values != p.A.view.values && ref_same(&a, &p.A.view, "a copy"), "place %d", (int)a.place);
    REQUIRE(tulle_multiply(ctx, &a, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_csr c = tulle_matrix_view(C);
    CHECK(c.place == TULLE_HOST && ref_same(&c, &want.view, "C"), "place %d", (int)c.place);
    REQUIRE(tulle_dense_move(ctx, &dense, TULLE_DEVICE, &X) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense v = tulle_dense_view(X);
    CHECK(v.place == TULLE_HOST && v.values != x && memcmp(v.values, x, sizeof x) == 0, "a dense copy");
    tulle_matrix *none = NULL;
    CHECK(tulle_csr_move(ctx, &p.A.view, (tulle_place)2, &none) == TULLE_EINVAL && !none, "there is no third place");
    tulle_dense_free(X);
    tulle_matrix_free(A);
    tulle_matrix_free(C);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- a context can be used after a failed call */

static void a_context_survives_errors(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    for (int i = 0; i < 10; i++) {
        tulle_matrix *M = NULL;
        tulle_options tight = {.memory_limit = 1};
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &tight, &M) == TULLE_ELIMIT && !M, "limit");
        CHECK(tulle_multiply(ctx, &p.B.view, &p.A.view, NULL, &M) == TULLE_ESHAPE && !M, "shape");
        product_is(ctx, &p.A.view, &p.B.view, NULL, &want.view, "after errors");
    }
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void matrices_outlive_their_context(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_matrix *C = NULL, *T = NULL;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_csr_transpose(ctx, &p.A.view, TULLE_TRANSPOSE, &T) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_free(ctx);
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &want.view, "after its context"), "%s", "changed");
    tulle_matrix_free(C);
    tulle_matrix_free(T);
    ref_free(&want);
    pair_free(&p);
}

/* ---- passing on ownership of arrays */

static void count_done(void *user)
{
    ++*(int *)user;
}

static void the_caller_takes_the_arrays_of_a_result(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < PAIRS; i++) {   /* small ones from the heap, large ones mapped */
        pair p = pair_at(i, REF_INTEGERS, f64, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_matrix *C = NULL;
        tulle_csr c;
        REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(tulle_matrix_release(C, NULL) == TULLE_EINVAL && tulle_matrix_release(NULL, &c) == TULLE_EINVAL, "NULL");
        REQUIRE(tulle_matrix_release(C, &c) == TULLE_OK, "an owned matrix");
        if (i == PAIRS - 1) tulle_ctx_free(ctx);        /* they outlive it */
        CHECK(ref_same(&c, &want.view, p.name), "its arrays");
        memset((void *)(uintptr_t)c.values, 1, (size_t)c.nnz * sizeof(double));     /* the caller owns them */
        tulle_array_free(c.values);
        tulle_array_free(c.row_ptr);
        tulle_array_free(c.col_idx);
        tulle_array_free(NULL);
        ref_free(&want);
        pair_free(&p);
    }
}

static void a_matrix_takes_the_arrays_of_the_caller(void)
{
    tulle_ctx *ctx = ctx_with(2);
    pair p = pair_at(15, REF_INTEGERS, f64, f64);
    ref before = ref_copy(&p.A.view, f64);
    tulle_matrix *A = NULL, *B = NULL;
    tulle_csr c = p.A.view;
    int done = 0;
    REQUIRE(tulle_matrix_adopt(ctx, &p.A.view, count_done, &done, &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_matrix_adopt(ctx, &p.A.view, NULL, NULL, &B) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr a = tulle_matrix_view(A);
    CHECK(a.values == p.A.view.values && a.row_ptr == p.A.view.row_ptr, "a copy was made");
    CHECK(tulle_matrix_release(A, &c) == TULLE_EINVAL && done == 0, "adopted arrays have an owner");
    tulle_matrix *none = NULL;
    FAILS(tulle_matrix_adopt(ctx, NULL, count_done, &done, &none), TULLE_EINVAL, "A is NULL");
    c.nnz = -1;
    FAILS(tulle_matrix_adopt(ctx, &c, count_done, &done, &none), TULLE_EINVAL, "nnz");
    c.nnz = p.A.view.nnz + 1;
    FAILS(tulle_matrix_adopt(ctx, &c, count_done, &done, &none), TULLE_EPATTERN, "but nnz is");
    c = p.A.view;
    c.row_ptr = (const int32_t *)c.row_ptr + 1, c.rows--;         /* a slice whose row_ptr[0] is not 0 */
    FAILS(tulle_matrix_adopt(ctx, &c, count_done, &done, &none), TULLE_EPATTERN, "but nnz is");
    CHECK(done == 0 && !none, "done, and nothing was freed");
    tulle_ctx_free(ctx);
    tulle_matrix_free(A);
    CHECK(done == 1, "told %d times", done);
    tulle_matrix_free(B);
    CHECK(ref_untouched(&p.A.view, &before), "the arrays");
    ref_free(&before);
    pair_free(&p);
}

TEST_MAIN(TEST(names_and_versions), TEST(status_numbers_never_change), TEST(lists_end), TEST(devices), TEST(contexts),
          TEST(nothing_is_fine_for_those_that_free_and_view), TEST(null_arguments_are_named),
          TEST(wrong_operands_are_named), TEST(wrong_options_are_named),
          TEST(one_matrix_functions_refuse_wrong_arguments), TEST(one_matrix_functions_work),
          TEST(progress_is_told_and_cancels), TEST(the_trace_tells_what_was_chosen),
          TEST(the_trace_tells_why_no_gpu_was_taken), TEST(the_device_of_a_cpu_is_the_host), TEST(a_context_survives_errors),
          TEST(matrices_outlive_their_context),
          TEST(the_caller_takes_the_arrays_of_a_result), TEST(a_matrix_takes_the_arrays_of_the_caller))
