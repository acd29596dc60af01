/* SPDX-License-Identifier: MIT
 *
 * test_memory.c - failure of the n-th allocation, for every n, in every function that allocates: the status
 * is TULLE_ENOMEM with a message, nothing leaks, inputs are unchanged, there is no partial result, and the
 * same call succeeds afterwards. */
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/base.h"
#include "ways.h"

#if defined(TULLE_HAVE_ZLIB)
#define PACKED ".mtx.gz"
#else                                 /* such files are then refused: the same cases with another text file */
#define PACKED ".mtx"
#endif

/* ---- hooks that count, and fail once when asked */

typedef struct heap {
    atomic_long live, calls;
    atomic_long fail_at;                /* this call fails; 0: none */
    atomic_llong bytes, peak;
} heap;

static void *heap_alloc(void *user, size_t bytes)
{
    heap *h = user;
    if (atomic_fetch_add(&h->calls, 1) + 1 == atomic_load(&h->fail_at)) return NULL;
    size_t *p = malloc(bytes + 16);
    if (!p) abort();
    *p = bytes;
    memset((char *)p + 16, 0xc3, bytes);                /* so that nothing relies on zeros */
    atomic_fetch_add(&h->live, 1);
    long long now = atomic_fetch_add(&h->bytes, (long long)bytes) + (long long)bytes, peak = atomic_load(&h->peak);
    while (now > peak && !atomic_compare_exchange_weak(&h->peak, &peak, now)) {}
    return (char *)p + 16;
}

static void heap_free(void *user, void *p)
{
    heap *h = user;
    if (!p) return;
    size_t *raw = (size_t *)(void *)((char *)p - 16);
    atomic_fetch_sub(&h->bytes, (long long)*raw);
    atomic_fetch_sub(&h->live, 1);
    memset(raw, 0xdd, *raw + 16);                       /* or on freed memory */
    free(raw);
}

static tulle_mem mem_of(heap *h)
{
    return (tulle_mem){heap_alloc, heap_free, h};
}

/* ---- inputs of all jobs; created once, compared after every failure */

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

typedef struct inputs {
    ref A, B, unsorted, wide;                       /* A: 50x40, B: 40x60, wide: large enough for threads */
    ref copy[4];
    char path[64], mtx[64], gz[64], written[64];
    int32_t row[500], col[500];
    double val[500];
} inputs;

/* Each job stores its result in r; if it fails, it must not store anything. */
typedef struct result { tulle_matrix *M; tulle_plan *plan; ref got; int64_t number; bool file; } result;
typedef tulle_status (*job_fn)(tulle_ctx *ctx, inputs *in, result *r);

static tulle_status multiply(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_multiply(ctx, &in->A.view, &in->B.view, NULL, &r->M);
}

static tulle_status multiply_all_options(tulle_ctx *ctx, inputs *in, result *r)
{
    tulle_options o = {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_ADJOINT, .sort_inputs = 1, .drop_zeros = 1,
                       .c_idx_type = TULLE_I64, .c_ptr_type = TULLE_I64};
    return tulle_multiply(ctx, &in->B.view, &in->unsorted.view, &o, &r->M);
}

static tulle_status multiply_on_threads(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_multiply(ctx, &in->wide.view, &in->wide.view, NULL, &r->M);
}

static int take_block(void *user, int64_t first_row, const tulle_csr *block)
{
    result *r = user;
    r->number += block->nnz + first_row;
    return 0;
}

static tulle_status blocks(tulle_ctx *ctx, inputs *in, result *r)
{
    tulle_options o = {.memory_limit = 24 << 20};
    r->number = 0;
    tulle_status status = tulle_multiply_blocks(ctx, &in->A.view, &in->B.view, &o, take_block, r);
    if (status != TULLE_OK) r->number = 0;           /* blocks before the failure were passed to the caller */
    return status;
}

static tulle_status estimate(tulle_ctx *ctx, inputs *in, result *r)
{
    tulle_forecast f;
    tulle_status status = tulle_estimate(ctx, &in->A.view, &in->B.view, NULL, &f);
    r->number = status == TULLE_OK ? f.nnz_estimate : 0;
    return status;
}

static tulle_status product_check(tulle_ctx *ctx, inputs *in, result *r)
{
    ref C = ref_product(&in->A.view, &in->B.view);
    double error = 1;
    tulle_status status = tulle_product_check(ctx, &in->A.view, &in->B.view, &C.view, NULL, &error);
    r->number = status == TULLE_OK && error < 1e-10;
    ref_free(&C);
    return status;
}

static tulle_status plan_with(tulle_ctx *ctx, inputs *in, const tulle_csr *A, const tulle_csr *B,
                              const tulle_options *o, result *r)
{
    (void)in;
    tulle_status status = tulle_plan_create(ctx, A, B, o, &r->plan);
    if (status != TULLE_OK) return status;
    tulle_csr C = tulle_plan_pattern(r->plan);
    r->got = ref_copy(&C, (ref_types){TULLE_F64, C.ptr_type, C.idx_type});
    r->got.values = calloc((size_t)C.nnz + 1, sizeof(double));
    r->got.view.values = r->got.values;
    status = tulle_plan_run(r->plan, A->values, B->values, r->got.values);
    tulle_plan_free(r->plan);
    r->plan = NULL;
    return status;
}

static tulle_status plan(tulle_ctx *ctx, inputs *in, result *r)
{
    return plan_with(ctx, in, &in->A.view, &in->B.view, NULL, r);
}

static tulle_status plan_transposed(tulle_ctx *ctx, inputs *in, result *r)
{
    tulle_options o = {.op_a = TULLE_TRANSPOSE, .op_b = TULLE_TRANSPOSE};
    return plan_with(ctx, in, &in->B.view, &in->A.view, &o, r);
}

static tulle_status transpose(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_csr_transpose(ctx, &in->A.view, TULLE_TRANSPOSE, &r->M);
}

static tulle_status transpose_on_threads(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_csr_transpose(ctx, &in->wide.view, TULLE_TRANSPOSE, &r->M);
}

static tulle_status sort(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_csr_sort(ctx, &in->unsorted.view, &r->M);
}

static tulle_status convert(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_csr_convert(ctx, &in->A.view, TULLE_CF32, TULLE_I64, TULLE_I64, &r->M);
}

static tulle_status from_coo(tulle_ctx *ctx, inputs *in, result *r)
{
    return tulle_csr_from_coo(ctx, 30, 20, 500, in->row, in->col, TULLE_I32, in->val, TULLE_F64, &r->M);
}

static tulle_status read_binary(tulle_ctx *ctx, inputs *in, result *r) { return tulle_read(ctx, in->path, &r->M); }
static tulle_status read_mtx(tulle_ctx *ctx, inputs *in, result *r) { return tulle_read(ctx, in->mtx, &r->M); }
static tulle_status read_gz(tulle_ctx *ctx, inputs *in, result *r) { return tulle_read(ctx, in->gz, &r->M); }

static tulle_status write_as(tulle_ctx *ctx, inputs *in, const char *end, result *r)
{
    snprintf(in->written, sizeof in->written, "test_memory_%ld_out%s", (long)getpid(), end);
    unlink(in->written);
    tulle_status status = tulle_write(ctx, in->written, &in->A.view);
    r->file = access(in->written, F_OK) == 0;
    unlink(in->written);
    return status;
}

static tulle_status write_mtx(tulle_ctx *ctx, inputs *in, result *r) { return write_as(ctx, in, ".mtx", r); }
static tulle_status write_gz(tulle_ctx *ctx, inputs *in, result *r) { return write_as(ctx, in, PACKED, r); }
static tulle_status write_binary(tulle_ctx *ctx, inputs *in, result *r) { return write_as(ctx, in, ".tulle", r); }

static tulle_status more_threads(tulle_ctx *ctx, inputs *in, result *r)
{
    (void)in;
    tulle_status status = tulle_ctx_set_threads(ctx, 3);
    if (status == TULLE_OK) status = tulle_ctx_set_threads(ctx, 2);
    r->number = status == TULLE_OK;
    return status;
}

/* ---- runs a job with each allocation failing once */

static inputs inputs_make(void)
{
    inputs in = {.A = ref_random(1, 50, 40, 5, REF_INTEGERS, f64), .B = ref_random(2, 40, 60, 5, REF_INTEGERS, f64)};
    ref U = ref_random(3, 50, 40, 4, REF_INTEGERS, f64);
    in.unsorted = ref_shuffled(&U.view, 4, true);
    in.wide = ref_random(5, 600, 600, 60, REF_INTEGERS, f64);
    ref_free(&U);
    ref_rng r = {6};
    for (int k = 0; k < 500; k++) {
        in.row[k] = (int32_t)ref_below(&r, 30);
        in.col[k] = (int32_t)ref_below(&r, 20);
        in.val[k] = (double)ref_below(&r, 100);
    }
    ref *all[] = {&in.A, &in.B, &in.unsorted, &in.wide};
    for (int i = 0; i < 4; i++) in.copy[i] = ref_copy(&all[i]->view, f64);
    tulle_ctx *ctx = ctx_with(1);
    snprintf(in.path, sizeof in.path, "test_memory_%ld.tulle", (long)getpid());
    snprintf(in.mtx, sizeof in.mtx, "test_memory_%ld.mtx", (long)getpid());
    snprintf(in.gz, sizeof in.gz, "test_memory_%ld_packed" PACKED, (long)getpid());
    CHECK(tulle_write(ctx, in.path, &in.wide.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_write(ctx, in.mtx, &in.A.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_write(ctx, in.gz, &in.A.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_free(ctx);
    return in;
}

static bool inputs_untouched(const inputs *in)
{
    return ref_untouched(&in->A.view, &in->copy[0]) && ref_untouched(&in->B.view, &in->copy[1])
        && ref_untouched(&in->unsorted.view, &in->copy[2]) && ref_untouched(&in->wide.view, &in->copy[3]);
}

static void inputs_free(inputs *in)
{
    unlink(in->path);
    unlink(in->mtx);
    unlink(in->gz);
    ref *all[] = {&in->A, &in->B, &in->unsorted, &in->wide};
    for (int i = 0; i < 4; i++) {
        ref_free(all[i]);
        ref_free(&in->copy[i]);
    }
}

static void result_free(result *r)
{
    tulle_matrix_free(r->M);
    tulle_plan_free(r->plan);
    ref_free(&r->got);
    memset(r, 0, sizeof *r);
}

static void torture(const char *name, job_fn job, int threads)
{
    inputs in = inputs_make();
    heap h = {0};
    tulle_mem mem = mem_of(&h);
    tulle_ctx *ctx = NULL;
    REQUIRE(tulle_ctx_create("cpu", &mem, &ctx) == TULLE_OK, "%s: context", name);
    REQUIRE(tulle_ctx_set_threads(ctx, threads) == TULLE_OK, "%s: threads", name);
    result first = {0};
    long before = atomic_load(&h.calls);
    REQUIRE(job(ctx, &in, &first) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    long allocations = atomic_load(&h.calls) - before;
    CHECK(allocations > 0, "%s: the hooks are not used", name);
    for (long n = 1; n <= allocations && test_failures < 10; n++) {
        result r = {0};
        long live = atomic_load(&h.live);
        atomic_store(&h.fail_at, atomic_load(&h.calls) + n);
        tulle_status status = job(ctx, &in, &r);
        atomic_store(&h.fail_at, 0);
        CHECK(status == TULLE_ENOMEM, "%s: allocation %ld of %ld failed, the status is %s (%s)", name, n,
              allocations, tulle_status_name(status), tulle_ctx_error(ctx));
        CHECK(strlen(tulle_ctx_error(ctx)) > 0, "%s: allocation %ld: no sentence", name, n);
        CHECK(!r.M && !r.plan && r.number == 0 && !r.file, "%s: allocation %ld: half a result", name, n);
        result_free(&r);
        CHECK(atomic_load(&h.live) == live, "%s: allocation %ld: %ld blocks leaked", name, n,
              atomic_load(&h.live) - live);
        CHECK(inputs_untouched(&in), "%s: allocation %ld: inputs were written", name, n);
    }
    result again = {0};
    CHECK(job(ctx, &in, &again) == TULLE_OK, "%s again: %s", name, tulle_ctx_error(ctx));
    tulle_csr x = tulle_matrix_view(first.M), y = tulle_matrix_view(again.M);
    if (first.M && again.M) CHECK(ref_same(&y, &x, name), "%s", "another result afterwards");
    if (first.got.values && again.got.values) CHECK(ref_same(&again.got.view, &first.got.view, name), "plan");
    CHECK(first.number == again.number && !first.M == !again.M, "%s: another answer afterwards", name);
    result_free(&again);
    tulle_ctx_free(ctx);                                /* matrices outlive their context */
    result_free(&first);
    CHECK(atomic_load(&h.live) == 0 && atomic_load(&h.bytes) == 0, "%s: %ld blocks leaked", name,
          atomic_load(&h.live));
    inputs_free(&in);
}

#define TORTURE(name)                                                       \
    static void torture_##name(void)                                        \
    {                                                                       \
        torture(#name, name, 1);                                            \
        torture(#name, name, 2);                                            \
    }
TORTURE(multiply)
TORTURE(multiply_all_options)
TORTURE(multiply_on_threads)
TORTURE(blocks)
TORTURE(estimate)
TORTURE(product_check)
TORTURE(plan)
TORTURE(plan_transposed)
TORTURE(transpose)
TORTURE(transpose_on_threads)
TORTURE(sort)
TORTURE(convert)
TORTURE(from_coo)
TORTURE(read_binary)
TORTURE(read_mtx)
TORTURE(read_gz)
TORTURE(write_mtx)
TORTURE(write_gz)
TORTURE(write_binary)
TORTURE(more_threads)

/* Every recipe of the gallery, small. */
static const char *gallery_recipe;

static tulle_status gallery(tulle_ctx *ctx, inputs *in, result *r)
{
    (void)in;
    return tulle_gallery(ctx, gallery_recipe, &r->M);
}

static void torture_gallery(void)
{
    static const char *const recipes[] = {"poisson2d:6", "cage:5", "rmat:scale=5,edges=4", "tridiagonal:20"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        gallery_recipe = recipes[i];
        torture(recipes[i], gallery, 2);
    }
}

static void torture_context(void)
{
    for (long n = 1; n < 100; n++) {
        heap h = {.fail_at = n};
        tulle_mem mem = mem_of(&h);
        tulle_ctx *ctx = NULL;
        tulle_status status = tulle_ctx_create("cpu", &mem, &ctx);
        bool done = status == TULLE_OK;
        CHECK(status == (done ? TULLE_OK : TULLE_ENOMEM) && !ctx == !done, "allocation %ld: %s", n,
              tulle_status_name(status));
        tulle_ctx_free(ctx);
        CHECK(atomic_load(&h.live) == 0, "allocation %ld: %ld blocks leaked", n, atomic_load(&h.live));
        if (done) return;
    }
    CHECK(false, "a context takes more than 100 allocations");
}

/* ---- statistics agree with the hooks */

static void statistics_count_what_the_hooks_see(void)
{
    heap h = {0};
    tulle_mem mem = mem_of(&h);
    tulle_ctx *ctx = NULL;
    REQUIRE(tulle_ctx_create("cpu", &mem, &ctx) == TULLE_OK, "context");
    REQUIRE(tulle_ctx_set_threads(ctx, 2) == TULLE_OK, "threads");
    ref A = ref_random(7, 500, 500, 30, REF_INTEGERS, f64);
    for (int i = 0; i < 5; i++) {
        tulle_matrix *C = NULL;
        tulle_stats s;
        long long before = atomic_load(&h.bytes);
        atomic_store(&h.peak, before);
        REQUIRE(tulle_multiply(ctx, &A.view, &A.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &s);
        double seen = (double)(atomic_load(&h.peak) - before);
        CHECK((double)s.peak_bytes <= seen && (double)s.peak_bytes >= 0.9 * seen - 65536,
              "product %d: peak_bytes %" PRIu64 ", the hooks saw %.0f", i, s.peak_bytes, seen);
        tulle_matrix_free(C);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- functions on one matrix take memory in proportion to its entries and the rows of the result */

static tulle_status turn(tulle_ctx *ctx, const ref *A, tulle_matrix **M)
{
    return tulle_csr_transpose(ctx, &A->view, TULLE_TRANSPOSE, M);
}

static tulle_status put_in_order(tulle_ctx *ctx, const ref *A, tulle_matrix **M)
{
    return tulle_csr_sort(ctx, &A->view, M);
}

static tulle_status from_single_entry(tulle_ctx *ctx, const ref *A, tulle_matrix **M)
{
    static const int32_t at[] = {3};
    static const double one[] = {1};
    return tulle_csr_from_coo(ctx, A->view.cols, 4, 1, at, at, TULLE_I32, one, TULLE_F64, M);
}

static void one_matrix_takes_no_more_than_its_result(void)
{
    enum { WIDE = 1 << 19, SLACK = 4096 };
    ref W = ref_random(8, 2, WIDE, 40, REF_INTEGERS, f64), D = ref_dense(300, 400, REF_INTEGERS, f64);
    ref S = ref_shuffled(&W.view, 9, true), T = ref_shuffled(&D.view, 9, true);
    long long rows = (WIDE + 1) * 4LL, dense = 12LL * T.view.nnz + 4LL * 301;
    const struct {
        tulle_status (*run)(tulle_ctx *, const ref *, tulle_matrix **);
        const ref *A;
        long long  most;
    } jobs[] = {
        {turn, &W, rows + 12 * W.view.nnz}, {from_single_entry, &W, rows + 12},
        {put_in_order, &S, 64 * S.view.nnz},                    /* not proportional to columns           */
        {put_in_order, &T, dense + 2 * 48 * 401},               /* and one copy if duplicates are added */
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        heap h = {0};
        tulle_mem mem = mem_of(&h);
        tulle_ctx *ctx = NULL;
        tulle_matrix *M = NULL;
        REQUIRE(tulle_ctx_create("cpu", &mem, &ctx) == TULLE_OK, "context");
        REQUIRE(tulle_ctx_set_threads(ctx, 2) == TULLE_OK, "threads");
        long long before = atomic_load(&h.bytes);
        atomic_store(&h.peak, before);
        REQUIRE(jobs[i].run(ctx, jobs[i].A, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        long long seen = atomic_load(&h.peak) - before;
        CHECK(seen <= jobs[i].most + SLACK, "job %zu: the hooks saw %lld, %lld were expected", i, seen,
              jobs[i].most);
        tulle_matrix_free(M);
        tulle_ctx_free(ctx);
    }
    ref *all[] = {&W, &D, &S, &T};
    for (int i = 0; i < 4; i++) ref_free(all[i]);
}

/* Page faults while a block of this size is allocated, written and freed. */
static long faults_of(tl_base *b, int64_t bytes)
{
    struct rusage before, after;
    char *p = NULL;
    getrusage(RUSAGE_SELF, &before);
    if (tl_alloc(b, &p, bytes, 1, "a block") != TULLE_OK) abort();
    for (int64_t i = 0; i < bytes; i += 1024) p[i] = (char)i;
    tl_free(b, p);
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

/* A kept block that was used for a smaller request in between keeps its pages.  Earlier it was divided
 * within a huge page, which caused hundreds of page faults in products with several arrays of about a
 * megabyte. */
static void kept_blocks_serve_several_sizes_without_page_faults(void)
{
    tl_base *b = NULL;
    REQUIRE(tl_base_create(NULL, 1, sizeof *b, &b) == TULLE_OK, "no base");
    const int64_t large = 2000 << 10, small = 800 << 10;
    (void)(faults_of(b, large) + faults_of(b, small));
    long least = LONG_MAX;              /* other processes may cause some */
    for (int i = 0; i < 5; i++) {
        long now = faults_of(b, large) + faults_of(b, small);
        if (now < least) least = now;
    }
    CHECK(least < 64, "%ld page faults", least);
    tl_base_free(b);
}

static void an_allocator_without_free_is_refused(void)
{
    heap h = {0};
    tulle_mem half = {heap_alloc, NULL, &h};
    tulle_ctx *ctx = NULL;
    CHECK(tulle_ctx_create("cpu", &half, &ctx) == TULLE_EINVAL && !ctx, "alloc without free");
    half = (tulle_mem){NULL, heap_free, &h};
    CHECK(tulle_ctx_create("cpu", &half, &ctx) == TULLE_EINVAL && !ctx, "free without alloc");
    CHECK(atomic_load(&h.calls) == 0, "it was used all the same");
}

TEST_MAIN(TEST(torture_multiply), TEST(torture_multiply_all_options), TEST(torture_multiply_on_threads),
          TEST(torture_blocks), TEST(torture_estimate), TEST(torture_product_check), TEST(torture_plan),
          TEST(torture_plan_transposed), TEST(torture_transpose), TEST(torture_transpose_on_threads),
          TEST(torture_sort), TEST(torture_convert), TEST(torture_from_coo), TEST(torture_read_binary),
          TEST(torture_read_mtx), TEST(torture_read_gz), TEST(torture_write_mtx), TEST(torture_write_gz),
          TEST(torture_write_binary), TEST(torture_more_threads), TEST(torture_gallery), TEST(torture_context),
          TEST(statistics_count_what_the_hooks_see), TEST(one_matrix_takes_no_more_than_its_result),
          TEST(kept_blocks_serve_several_sizes_without_page_faults),
          TEST(an_allocator_without_free_is_refused))
