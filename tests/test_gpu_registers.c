/* SPDX-License-Identifier: MIT
 *
 * test_gpu_registers.c - rows with at most 512 products, by the three register-aware accumulators: both ends
 * of each bin, rows of A of every length, no, some and all columns equal, rows of B without entries; with
 * lists of rows and all rows in order; types, far columns, little shared memory.  Integers are compared bit
 * for bit; so are reals if products are sorted in registers, since every sum is then computed in the order
 * of A. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

static const char *const names[] = {"regsort", "regmerge", "reghash"};

typedef struct shape { int products, entries, equal, empty; } shape;

enum { APART, MIXED, EQUAL, KINDS };

/* A row of A for each shape, with its own rows of B: the products are distributed over `entries` rows, with
 * `empty` ones between them.  Columns have distance `step`. */
static pair rows_of_shapes(const shape *shapes, int count, int64_t step, int64_t cols, ref_types t)
{
    int64_t a_nnz = 0, b_nnz = 0, a = 0, b = 0;
    for (int i = 0; i < count; i++) {
        a_nnz += shapes[i].entries + shapes[i].empty;
        b_nnz += shapes[i].products;
    }
    pair p = {ref_new(count, a_nnz, a_nnz, t), ref_new(a_nnz, cols, b_nnz, t), "shapes"};
    for (int i = 0; i < count; i++) {
        shape s = shapes[i];
        int rows = s.entries + s.empty, given = 0, empties = 0;
        for (int k = 0; k < rows; k++, a++) {
            /* the empty ones are at the beginning, at the end, and between */
            bool empty = k - empties >= s.entries || (empties < s.empty && k % 3 == 0);
            int e = k - empties, length = empty ? 0 : s.products / s.entries + (e < s.products % s.entries);
            empties += empty;
            for (int j = 0; j < length; j++, b++) {
                int64_t apart = (int64_t)j * s.entries + (given + j) % s.entries;
                int64_t column = s.equal == EQUAL ? j : s.equal == APART ? apart : j + (e * 7) % 5 + (e % 2 ? j : 0);
                ref_set_col(&p.B, b, (i % 7 + column) * step);
            }
            given += length;
            ref_set_col(&p.A, a, a);
            ref_set_ptr(&p.B, a + 1, b);
        }
        ref_set_ptr(&p.A, i + 1, a);
    }
    ref_fill(&p.A, REF_INTEGERS, 5);
    ref_fill(&p.B, REF_INTEGERS, 6);
    return p;
}

static const int ends[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 511, 512, 513};
enum { ENDS = sizeof ends / sizeof *ends, SHAPES_MAX = ENDS * 7 * KINDS };

/* Shapes of at least `least` and at most `most` products. */
static int all_shapes(int least, int most, shape *shapes)
{
    static const int entries[] = {2, 3, 7, 9, 33, 300, 512};
    int count = 0;
    for (int i = 0; i < ENDS; i++)
        for (int k = 0; k < 7 && ends[i] >= least && ends[i] <= most; k++)
            for (int kind = 0; kind < KINDS; kind++) {
                int e = entries[k] < ends[i] ? entries[k] : ends[i];
                if (k > 0 && entries[k - 1] >= ends[i]) continue;       /* the same as before */
                shapes[count] = (shape){ends[i], e, kind, e == 1 ? 1 : count % 4 == 0 ? 5 : count % 17 == 0 ? 70 : 0};
                count++;
            }
    return count;
}

enum { ALL_THREE = 3 };

/* The product is correct with one or each of the three accumulators, which compute at least `mine` products,
 * and all products if `only`. */
static void rows_are_right(tulle_ctx *ctx, pair *p, int which, int64_t mine, bool only, const char *what)
{
    ref want = ref_product(&p->A.view, &p->B.view);
    for (int k = 0; k < 3; k++) {
        if (which != ALL_THREE && which != k) continue;
        tulle_options o = {.policy = k == 1 ? NULL : names[k], .accumulator = k == 1 ? names[k] : NULL};
        char name[96];
        snprintf(name, sizeof name, "%s, %s", names[k], what);
        gpu_product_is(ctx, &p->A.view, &p->B.view, &o, 0, &want.view, name);
        tulle_stats s;
        int64_t found = 0, others = 0;
        tulle_ctx_stats(ctx, &s);
        for (int i = 0; i < s.shares; i++) {
            if (strcmp(s.share[i].name, names[k]) == 0) found += s.share[i].products;
            else others += s.share[i].products;
        }
        CHECK(found >= mine && (!only || others == 0), "%s: %" PRId64 " products of %" PRId64 ", others have %" PRId64, name,
              found, mine, others);
    }
    ref_free(&want);
    pair_free(p);
}

static tulle_ctx *ctx_of(const char *shared, const char *balance)
{
    if (balance) setenv("TULLE_GPU_BALANCE", balance, 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared);
    unsetenv("TULLE_GPU_BALANCE");
    return ctx;
}

/* The sum of products over the shapes with at most `most`. */
static int64_t products_up_to(const shape *shapes, int count, int most)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) sum += shapes[i].products <= most ? shapes[i].products : 0;
    return sum;
}

static void every_shape(void)
{
    static shape shapes[SHAPES_MAX];
    int count = all_shapes(1, 513, shapes);
    /* how many of them fit into little shared memory depends on the device: warps need more */
    static const struct { const char *shared, *balance; int most; } ways[] = {
        {NULL, NULL, 512}, {NULL, "on", 512}, {NULL, "off", 0}, {"16384", "on", 16}, {"2048", "on", 0}, {"1024", NULL, 0}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        tulle_ctx *ctx = ctx_of(ways[w].shared, ways[w].balance);
        char what[64];
        snprintf(what, sizeof what, "shared %s, balance %s", ways[w].shared ? ways[w].shared : "-",
                 ways[w].balance ? ways[w].balance : "-");
        pair p = rows_of_shapes(shapes, count, 1, 2000, f64);
        rows_are_right(ctx, &p, ALL_THREE, products_up_to(shapes, count, ways[w].most), false, what);
        tulle_ctx_free(ctx);
    }
}

/* Only rows of one bin, which computes them all, in order and from a list. */
static void every_bin_alone(void)
{
    static shape shapes[SHAPES_MAX];
    for (int order = 0; order < 2; order++) {
        tulle_ctx *ctx = ctx_of(NULL, order ? "off" : "on");
        for (int bin = 0; bin < 9; bin++) {
            int most = 2 << bin, count = all_shapes(bin ? most / 2 + 1 : 1, most, shapes);
            int64_t all = products_up_to(shapes, count, most);
            char what[64];
            snprintf(what, sizeof what, "bin %d, %s", bin, order ? "in order" : "by a list");
            pair p = rows_of_shapes(shapes, count, 1, 2000, f64);
            rows_are_right(ctx, &p, ALL_THREE, all, true, what);
        }
        tulle_ctx_free(ctx);
    }
}

/* Without sorting into bins, the largest bin also computes shorter rows, including empty ones and single
 * entries. */
static void one_bin_for_all(void)
{
    static shape shapes[SHAPES_MAX];
    tulle_ctx *ctx = ctx_of(NULL, "off");
    int count = 0;
    for (int i = 0; i < 9; i++) shapes[count++] = (shape){500, 9 + 3 * i, i % KINDS, 0};
    for (int i = 0; i < 5; i++) shapes[count++] = (shape){i * 3, 1 + i % 3, MIXED, i % 2};
    pair p = rows_of_shapes(shapes, count, 1, 3000, f64);
    rows_are_right(ctx, &p, ALL_THREE, products_up_to(shapes, count, 512), true, "short rows with the long");
    tulle_ctx_free(ctx);
}

/* Some shapes of each bin. */
static int some_shapes(int most, shape *shapes)
{
    static const shape some[] = {{1, 1, APART, 2}, {2, 2, EQUAL, 0}, {4, 3, APART, 0}, {7, 4, MIXED, 1}, {15, 5, MIXED, 0},
                                 {32, 8, APART, 3}, {61, 20, MIXED, 0}, {64, 50, EQUAL, 0}, {128, 11, APART, 0},
                                 {250, 250, MIXED, 0}, {512, 40, APART, 0}, {400, 16, EQUAL, 9}, {513, 7, MIXED, 0},
                                 {512, 512, EQUAL, 0}};
    int count = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i].products <= most) shapes[count++] = some[i];
    return count;
}

/* To limit the time of compilation, PoCL tests all three accumulators for only one in four types, and long
 * rows for one accumulator. */
static void every_type(void)
{
    static shape shapes[SHAPES_MAX];
    tulle_ctx *ctx = ctx_of(NULL, NULL);
    for (int i = 0; i < REF_TYPES; i++) {
        bool all = strncmp(gpu_name(), "cuda", 4) == 0;
        int count = some_shapes(all || i == 0 ? 513 : 64, shapes);
        pair p = rows_of_shapes(shapes, count, 1, 2000, ref_types_at(i));
        rows_are_right(ctx, &p, all || i % 5 == 0 ? ALL_THREE : i % 3, products_up_to(shapes, count, 512), false,
                       ref_types_name(ref_types_at(i)));
    }
    tulle_ctx_free(ctx);
}

/* Keys that leave no room for an index in 32 bits, keys of more than 32 bits, columns of more than 60. */
static void far_columns(void)
{
    static shape shapes[SHAPES_MAX];
    static const struct { int64_t step, cols; bool wide; } cases[] = {
        {1000000, INT32_MAX, false}, {(int64_t)1 << 30, (int64_t)1 << 50, true}, {(int64_t)1 << 49, INT64_MAX, true}};
    tulle_ctx *ctx = ctx_of(NULL, NULL);
    for (int i = 0; i < 3; i++) {
        int count = some_shapes(513, shapes);
        char what[64];
        snprintf(what, sizeof what, "columns %" PRId64 " apart", cases[i].step);
        pair p = rows_of_shapes(shapes, count, cases[i].step, cases[i].cols, cases[i].wide ? f64_i64 : f64);
        rows_are_right(ctx, &p, ALL_THREE, products_up_to(shapes, count, 512), false, what);
    }
    tulle_ctx_free(ctx);
}

/* Sums within one thread and over all threads, of equal columns and of some that differ; by regsort, and by
 * auto, which uses it for rows with up to 128 products, and for longer ones unless ranks are used. */
static void reals_have_the_bits_of_the_cpu(void)
{
    static shape shapes[SHAPES_MAX];
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int v = 0; v < 4; v++) {
        int count = all_shapes(1, v == 1 ? 512 : 64, shapes);
        pair p = rows_of_shapes(shapes, count, 1, 2000, ref_types_at(v));
        ref_fill(&p.A, REF_REALS, 7);
        ref_fill(&p.B, REF_REALS, 8);
        tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        for (int k = 0; k < 2; k++) {
            const char *policy = k ? "auto" : "regsort";
            char name[96];
            snprintf(name, sizeof name, "reals, %s, %s", ref_types_name(ref_types_at(v)), policy);
            gpu_product_is(ctx, &p.A.view, &p.B.view, &(tulle_options){.policy = policy}, 0, &want, name);
            tulle_stats s;
            int64_t found = 0;
            tulle_ctx_stats(ctx, &s);
            for (int i = 0; i < s.shares; i++)
                if (strcmp(s.share[i].name, "regsort") == 0) found += s.share[i].products;
            CHECK(found >= products_up_to(shapes, count, k ? 128 : 512), "%s: %" PRId64 " products", name, found);
        }
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Products that are zero are kept, but -0 becomes 0; a plan runs the same kernels. */
static void cancelled_and_again(void)
{
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int k = 0; k < 3; k++) {
        ref A = ref_random(41, 150, 120, 6, REF_CANCELLING, f64), B = ref_random(42, 120, 60, 9, REF_CANCELLING, f64);
        ref want = ref_product(&A.view, &B.view), fewer = ref_without_zeros(&want.view);
        tulle_options o = {.policy = names[k]};
        gpu_product_is(ctx, &A.view, &B.view, &o, PLACES - 1, &want.view, names[k]);
        o.drop_zeros = 1;
        gpu_product_is(ctx, &A.view, &B.view, &o, 0, &fewer.view, names[k]);
        o.drop_zeros = 0;
        tulle_plan *plan = NULL;
        REQUIRE(tulle_plan_create(ctx, &A.view, &B.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
        CHECK(tulle_plan_run(plan, A.values, B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, "plan"), "%s", names[k]);
        free(values);
        tulle_plan_free(plan);
        ref_free(&A);
        ref_free(&B);
        ref_free(&want);
        ref_free(&fewer);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_shape), TEST(every_bin_alone), TEST(one_bin_for_all), TEST(every_type), TEST(far_columns),
          TEST(reals_have_the_bits_of_the_cpu), TEST(cancelled_and_again))
