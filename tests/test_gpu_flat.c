/* SPDX-License-Identifier: MIT
 *
 * test_gpu_flat.c - rows of C with scattered columns that a warp counts (flat_count.cl): products at each limit
 * of its tables, rows of A with one entry and with 600, empty rows of B between others, rows of B of length 1 and
 * 500, keys that all have the same first slot, keys of 64 bits, every type, rows of all sizes in one kernel,
 * plans; and the sorted columns that it leaves behind.  The trace tells how many rows each class has.  Values are
 * integers, as long rows are summed by a block in any order. */
#define _DEFAULT_SOURCE
#include "shapes.h"
#include "accumulator_help.h"
#define tl_road tl_gpu_road             /* cpu.h has another one */
#include "gpu/product.h"

static const int slots[FLAT_SIZES] = {64, 128, 256, 512, 1024, 2048};
enum { OVER = 64 };                     /* as in policy_auto.c */

/* The class that a row should have; -1: not one of these.  Narrow rows get a bitmask. */
static int flat_of(int64_t products, int64_t span)
{
    if (products >= 192 && span <= 96 * products && span <= 65536) return -1;
    if (products > 1024 && span <= 131072) return -1;
    for (int i = 0; i < FLAT_SIZES && products > OVER; i++)
        if (products <= FLAT_ENTRIES(slots[i])) return i;
    return -1;
}

/* Rows of each class in the symbolic step, as the trace says. */
typedef struct seen { int64_t rows[FLAT_SIZES]; int steps; bool only; } seen;

static void read_classes(void *user, const char *line)
{
    seen *s = user;
    char name[16];
    if (!strstr(line, "symbolic step:")) return;
    s->steps++;
    s->only = strstr(line, "flat") && strstr(line, "takes all rows");
    for (int i = 0; i < FLAT_SIZES; i++) {
        snprintf(name, sizeof name, " flat%d ", i);
        const char *at = strstr(strstr(line, "rows"), name);
        if (at) s->rows[i] += atoll(at + strlen(name));
    }
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Such rows, but the rows of B stand in another order: number k is where k * STRIDE mod rows was, so that those
 * which a row of A needs are no neighbours. */
static pair shapes_apart(const shape *shapes, int count, int64_t step, int64_t cols, ref_types t)
{
    enum { STRIDE = 10007 };            /* a prime */
    pair p = rows_of_shapes(shapes, count, step, cols, t);
    const int64_t n = p.B.view.rows, nnz = p.A.view.nnz;
    pair q = {ref_new(count, n, nnz, t), ref_new(n, cols, p.B.view.nnz, t), p.name};
    int64_t *place = malloc((size_t)n * sizeof *place), *mine = malloc((size_t)nnz * sizeof *mine), at = 0;
    CHECK(n % STRIDE != 0, "%" PRId64 " rows", n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t was = k * STRIDE % n;
        place[was] = k;
        for (int64_t j = ref_ptr(&p.B.view, was); j < ref_ptr(&p.B.view, was + 1); j++)
            ref_set_col(&q.B, at++, ref_col(&p.B.view, j));
        ref_set_ptr(&q.B, k + 1, at);
    }
    for (int64_t r = 0; r < count; r++) {
        const int64_t from = ref_ptr(&p.A.view, r), to = ref_ptr(&p.A.view, r + 1);
        for (int64_t j = from; j < to; j++) mine[j] = place[ref_col(&p.A.view, j)];
        qsort(mine + from, (size_t)(to - from), sizeof *mine, by_number);
        for (int64_t j = from; j < to; j++) ref_set_col(&q.A, j, mine[j]);
        ref_set_ptr(&q.A, r + 1, to);
    }
    ref_fill(&q.A, REF_INTEGERS, 5);
    ref_fill(&q.B, REF_INTEGERS, 6);
    free(place);
    free(mine);
    pair_free(&p);
    return q;
}

static tulle_ctx *ctx_of(const char *shared, const char *balance)
{
    if (balance) setenv("TULLE_GPU_BALANCE", balance, 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared);
    unsetenv("TULLE_GPU_BALANCE");
    return ctx;
}

/* Products at each limit of each table, and the smallest and the largest that the class gets. */
static int at_limits(shape *shapes)
{
    static const int entries[] = {1, 2, 3, 31, 33, 600};
    int count = 0;
    for (int i = 0; i < 2 * FLAT_SIZES + 3; i++) {
        int products = i < 2 * FLAT_SIZES ? FLAT_ENTRIES(slots[i / 2]) + i % 2 : OVER - 1 + i % 3;
        for (int k = 0; k < (int)(sizeof entries / sizeof *entries); k++) {
            int e = entries[k] < products ? entries[k] : products;
            shapes[count] = (shape){products, e, count % KINDS, e == 1 ? 1 : count % 4 == 0 ? 5 : count % 5 == 0 ? 70 : 0};
            count++;
        }
    }
    return count;
}
enum { SHAPES_MAX = 200 };

/* The product is correct, and its rows have the classes that they should have. */
static void shapes_are_right(tulle_ctx *ctx, const shape *shapes, int count, int64_t step, int64_t cols, ref_types t,
                             bool lists, const char *what)
{
    pair p = shapes_apart(shapes, count, step, cols, t);
    ref want = ref_product(&p.A.view, &p.B.view);
    seen s = {0};
    tulle_ctx_set_trace(ctx, read_classes, &s);
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want.view, what);
    tulle_ctx_set_trace(ctx, NULL, NULL);
    for (int i = 0; i < FLAT_SIZES && lists; i++) {
        int64_t rows = 0;
        for (int k = 0; k < count; k++) {
            const int64_t from = ref_ptr(&want.view, k), to = ref_ptr(&want.view, k + 1);
            const int64_t span = from < to ? ref_col(&want.view, to - 1) - ref_col(&want.view, from) + 1 : 0;
            rows += flat_of(shapes[k].products, span) == i;
        }
        CHECK(s.rows[i] == rows, "%s: class %d has %" PRId64 " rows, not %" PRId64, what, i, s.rows[i], rows);
    }
    ref_free(&want);
    pair_free(&p);
}

/* Far apart, so that no row is narrow enough for a bitmask. */
enum { STEP = 1000, COLS = 4000000 };

static void every_limit(void)
{
    static shape shapes[SHAPES_MAX];
    const int count = at_limits(shapes);
    tulle_ctx *ctx = ctx_of(NULL, "on");
    shapes_are_right(ctx, shapes, count, STEP, COLS, f64, true, "lists of rows");
    tulle_ctx_free(ctx);
    ctx = ctx_of("8192", "on");         /* tables that do not fit */
    shapes_are_right(ctx, shapes, count, STEP, COLS, f64, false, "little shared memory");
    tulle_ctx_free(ctx);
}

/* One size computes all rows, also empty ones and those with a single entry of A. */
static void one_size_for_all(void)
{
    tulle_ctx *ctx = ctx_of(NULL, "off");
    for (int i = 0; i < FLAT_SIZES; i++) {
        const int most = FLAT_ENTRIES(slots[i]) > OVER ? FLAT_ENTRIES(slots[i]) : OVER + 1;
        shape shapes[40];
        int count = 0;
        for (int k = 0; k < 30; k++) shapes[count++] = (shape){most - k, k % 2 ? 600 : 5 + k, k % KINDS, k % 3};
        for (int k = 0; k < 6; k++) shapes[count++] = (shape){k * 3, 1 + k % 3, MIXED, k % 2};
        for (int k = 0; k < count; k++)
            if (shapes[k].entries > shapes[k].products) shapes[k].entries = shapes[k].products ? shapes[k].products : 1;
        char what[32];
        snprintf(what, sizeof what, "most %d", most);
        pair p = shapes_apart(shapes, count, STEP, COLS, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        seen s = {0};
        tulle_ctx_set_trace(ctx, read_classes, &s);
        gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want.view, what);
        tulle_ctx_set_trace(ctx, NULL, NULL);
        CHECK(s.only, "%s: another class takes all rows", what);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Every key has the last slot as its first, so that a search goes through all of them, from the beginning again;
 * the table is as full as it may be. */
static void one_slot(void)
{
    enum { PARTS = 40 };
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int i = 1; i < FLAT_SIZES; i++) {
        const int n = FLAT_ENTRIES(slots[i]);
        const uint32_t bits = tl_log2_up((uint64_t)slots[i]);
        ref A = ref_new(1, PARTS, PARTS, f64), B = ref_new(PARTS, INT32_MAX, n, f64);
        uint32_t column = 0;
        int k = 0;
        for (int r = 0; r < PARTS; r++) {
            ref_set_col(&A, r, r);
            for (bool first = true; k < n * (r + 1) / PARTS; k++, first = false) {
                if (k > 0 && !first)            /* each row begins with the last column of the row before */
                    do column++;
                    while (column * 0x9e3779b1u >> (32 - bits) != (uint32_t)slots[i] - 1u);
                ref_set_col(&B, k, column);
            }
            ref_set_ptr(&B, r + 1, k);
        }
        ref_set_ptr(&A, 1, PARTS);
        ref_fill(&A, REF_INTEGERS, 3);
        ref_fill(&B, REF_INTEGERS, 4);
        ref want = ref_product(&A.view, &B.view);
        CHECK(want.view.nnz == n - PARTS + 1, "%" PRId64 " entries", want.view.nnz);
        seen s = {0};
        tulle_ctx_set_trace(ctx, read_classes, &s);
        gpu_product_is(ctx, &A.view, &B.view, NULL, 0, &want.view, "one slot");
        tulle_ctx_set_trace(ctx, NULL, NULL);
        CHECK(s.rows[i] == 1, "size %d has %" PRId64 " rows", i, s.rows[i]);
        ref_free(&want);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

static int some_shapes(shape *shapes)
{
    static const shape some[] = {{65, 1, APART, 1}, {100, 2, MIXED, 0}, {101, 33, APART, 5}, {200, 200, EQUAL, 0},
                                 {300, 7, MIXED, 0}, {64, 64, APART, 0}, {800, 600, APART, 70}, {1600, 3, APART, 0},
                                 {1601, 40, MIXED, 0}, {20, 4, APART, 2}, {1000, 2, EQUAL, 0}};
    memcpy(shapes, some, sizeof some);
    return (int)(sizeof some / sizeof *some);
}

static void every_type(void)
{
    static shape shapes[SHAPES_MAX];
    const int count = some_shapes(shapes);
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int i = 0; i < REF_TYPES; i++)
        if (!skips_types(i))
            shapes_are_right(ctx, shapes, count, STEP, COLS, ref_types_at(i), true, ref_types_name(ref_types_at(i)));
    tulle_ctx_free(ctx);
}

/* Compound keys of other classes need 64 bits, then all keys do. */
static void far_columns(void)
{
    static shape shapes[SHAPES_MAX];
    static const struct { int64_t step, cols; bool wide; } cases[] = {
        {1000000, INT32_MAX, false}, {2000000, (int64_t)1 << 33, true}, {(int64_t)1 << 30, (int64_t)1 << 50, true},
        {(int64_t)1 << 49, INT64_MAX, true}};
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int i = 0; i < 4; i++) {
        char what[64];
        const int count = some_shapes(shapes);
        snprintf(what, sizeof what, "columns %" PRId64 " apart", cases[i].step);
        shapes_are_right(ctx, shapes, count, cases[i].step, cases[i].cols, cases[i].wide ? f64_i64 : f64, true, what);
    }
    tulle_ctx_free(ctx);
}

/* A plan; blocks of rows; zeros dropped; operands anywhere. */
static void other_calls(void)
{
    static shape shapes[SHAPES_MAX];
    const int count = some_shapes(shapes);
    tulle_ctx *ctx = ctx_of(NULL, "on");
    pair p = shapes_apart(shapes, count, STEP, COLS, f64);
    ref_fill(&p.A, REF_CANCELLING, 9);
    ref_fill(&p.B, REF_CANCELLING, 10);
    ref want = ref_product(&p.A.view, &p.B.view), fewer = ref_without_zeros(&want.view);
    tulle_options o = {0};
    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, PLACES - 1, &want.view, "there");
    plan_is(ctx, &p.A.view, &p.B.view, &o, &want, "plan");
    limits_give(ctx, &p.A, &p.B, &want, NULL, 4 << 20);
    o.drop_zeros = 1;
    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &fewer.view, "without zeros");
    ref_free(&fewer);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- columns left behind: rows with at most `most` entries */

typedef struct keeping { tl_gpu_steps steps; tl_policy policy; tl_recipe recipe; tl_gpu_request request; } keeping;

static void keeping_of(keeping *k, tulle_ctx *ctx, const pair *p, uint32_t most)
{
    memset(k, 0, sizeof *k);
    REQUIRE(tl_recipe_make(&ctx->base, &(tulle_options){0}, &k->recipe) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    k->policy = *k->recipe.policy;
    k->steps = *k->policy.gpu;
    k->steps.symbolic.flat_keep = most;
    k->policy.gpu = &k->steps;
    k->recipe.policy = &k->policy;
    k->request = (tl_gpu_request){.A = &p->A.view, .B = &p->B.view, .recipe = &k->recipe, .place = TULLE_HOST,
                                  .values = true, .row1 = -1};
}

static void *fetched(tulle_ctx *ctx, const tl_product *p, tl_dmem from, size_t bytes)
{
    void *to = malloc(bytes + 1);
    CHECK(p->driver->download(p->b, p->device, to, from, bytes) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(p->driver->wait(p->b, p->device) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    return to;
}

/* Before the numeric step: known rows have their columns.  Returns how many are known, and in *could how many
 * could be. */
static int64_t known_rows(tulle_ctx *ctx, tl_product *p, const tulle_csr *want, uint32_t most, int64_t *could)
{
    const tulle_index idx = p->types.idx == 64 ? TULLE_I64 : TULLE_I32;
    int64_t rows = 0, entries = 0;
    const int64_t at = ref_ptr(want, p->request.row0);
    uint32_t *known = fetched(ctx, p, p->known_rows, (size_t)p->rows * 4);
    uint32_t *products = fetched(ctx, p, p->products, (size_t)p->rows * 4);
    void *columns = fetched(ctx, p, p->c_col, (size_t)p->c_nnz * ref_index_size(idx));
    *could = 0;
    for (int64_t i = 0; i < p->rows; i++) {
        const int64_t r = i + p->request.row0, from = ref_ptr(want, r), to = ref_ptr(want, r + 1);
        const int64_t span = from < to ? ref_col(want, to - 1) - ref_col(want, from) + 1 : 0;
        const bool can = to - from <= most && flat_of(products[i], span) >= 0;
        int64_t wrong = 0;
        *could += can;
        if (!known[i]) continue;
        rows++;
        entries += to - from;
        for (int64_t k = from; k < to; k++) wrong += ref_index_at(columns, idx, k - at) != ref_col(want, k);
        CHECK(can && wrong == 0, "row %" PRId64 ": %" PRId64 " columns of %" PRId64 " are wrong", r, wrong, to - from);
    }
    CHECK((uint64_t)entries <= p->keep.room, "%" PRId64 " entries", entries);
    CHECK(!p->keep.columns.handle, "the columns are still kept");
    free(known);
    free(products);
    free(columns);
    return rows;
}

/* all: there is room for the columns of all rows */
static int64_t columns_stay(tulle_ctx *ctx, pair *p, uint32_t most, int64_t row0, int64_t row1, bool all, const char *what)
{
    keeping k;
    ref want = ref_product(&p->A.view, &p->B.view);
    tl_product q;
    int64_t could = 0, known = -1;
    keeping_of(&k, ctx, p, most);
    k.request.row0 = row0;
    k.request.row1 = row1;
    tl_dmem_begin(ctx->gpu, 0, 0);
    tulle_status status = tl_product_begin(&ctx->base, ctx->gpu, &k.request, &q);
    if (status == TULLE_OK) status = tl_product_pattern(&q);
    if (status == TULLE_OK) status = tl_product_allocate(&q, true);
    CHECK(status == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    if (status == TULLE_OK && q.known_rows.handle) known = known_rows(ctx, &q, &want.view, most, &could);
    if (all) CHECK(known == could && could > 0, "%s: %" PRId64 " of %" PRId64 " rows are known", what, known, could);
    else CHECK(0 < known && known < could, "%s: %" PRId64 " of %" PRId64 " rows are known", what, known, could);
    tl_product_done(&q);
    tl_dmem_end(ctx->gpu);
    ref_free(&want);
    return known;
}

/* Rows whose columns occur at least three times, so that there is room for all; then once. */
static void columns_are_kept(void)
{
    static shape shapes[SHAPES_MAX];
    static const uint32_t most[] = {512, 511, 128, 30};
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int i = 0; i < 4; i++) {
        int count = at_limits(shapes);
        for (int k = 0; k < 2; k++) shapes[count++].products = 3 * ((int)most[i] + k);
        for (int k = 0; k < count; k++) {
            shapes[k].entries = k < count - 2 ? 3 + k % 40 : 3;
            shapes[k].equal = EQUAL;
        }
        pair p = shapes_apart(shapes, count, STEP + i, COLS + 4000 * i, f64);
        columns_stay(ctx, &p, most[i], 0, -1, true, "all");
        columns_stay(ctx, &p, most[i], count / 4, count / 2, true, "some rows");
        pair_free(&p);
        for (int k = 0; k < count; k++) {
            shapes[k].equal = APART;
            if (shapes[k].products > 500) shapes[k].products = 500;
        }
        p = shapes_apart(shapes, count, STEP - 1 - i, COLS, f64);
        if (i == 0) columns_stay(ctx, &p, most[i], 0, -1, false, "too many");
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* There is room for exactly half of the rows. */
static void half_of_the_columns(void)
{
    enum { ROWS = 150, PRODUCTS = 66 };
    static shape shapes[ROWS];
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int k = 0; k < ROWS; k++) shapes[k] = (shape){PRODUCTS, 2, APART, 0};
    pair p = shapes_apart(shapes, ROWS, STEP, COLS, f64);
    CHECK(columns_stay(ctx, &p, 512, 0, -1, false, "half") == ROWS / 2, "%s", "not half of the rows");
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* The whole product, of every type and with far columns; less and less memory. */
static void products_with_kept_columns(void)
{
    static shape shapes[SHAPES_MAX];
    tulle_ctx *ctx = ctx_of(NULL, "on");
    for (int i = 0; i < REF_TYPES; i++) {
        if (skips_types(i)) continue;
        const bool wide = ref_types_at(i).idx == TULLE_I64;
        const int count = some_shapes(shapes);
        pair p = shapes_apart(shapes, count, wide ? (int64_t)1 << 40 : STEP, wide ? (int64_t)1 << 60 : COLS,
                                ref_types_at(i));
        ref want = ref_product(&p.A.view, &p.B.view);
        keeping k;
        keeping_of(&k, ctx, &p, 512);
        int done = 0;
        for (uint64_t limit = 0; limit == 0 || limit > 4096; limit = limit ? limit / 16 * 15 : 1 << 20) {
            tulle_stats stats = {0};
            tulle_matrix *C = NULL;
            k.request.memory_limit = limit;
            if (tl_gpu_multiply(&ctx->base, ctx->gpu, &k.request, &C, &stats) != TULLE_OK) continue;
            tulle_csr c = tulle_matrix_view(C);
            CHECK(ref_same(&c, &want.view, "kept"), "%s, limit %" PRIu64, ref_types_name(ref_types_at(i)), limit);
            CHECK(!limit || stats.peak_bytes <= limit, "%" PRIu64 " bytes, limit %" PRIu64, (uint64_t)stats.peak_bytes,
                  limit);
            tulle_matrix_free(C);
            done++;
        }
        CHECK(done > 5, "%d limits", done);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A request for memory that fails on the way: without kept columns, or an error; never a wrong product. */
static void no_memory(void)
{
    static shape shapes[SHAPES_MAX];
    tulle_ctx *ctx = ctx_of(NULL, "on");
    const int count = some_shapes(shapes);
    pair p = shapes_apart(shapes, count, STEP, COLS, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    keeping k;
    keeping_of(&k, ctx, &p, 512);
    int done = 0, failed = 0;
    for (int n = 1; n < 30; n++) {
        tulle_stats stats = {0};
        tulle_matrix *C = NULL;
        gpu_fail_at(ctx, n);
        tulle_status status = tl_gpu_multiply(&ctx->base, ctx->gpu, &k.request, &C, &stats);
        CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "%s", tulle_ctx_error(ctx));
        failed += status != TULLE_OK;
        if (status != TULLE_OK) continue;
        tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, &want.view, "no memory"), "request %d", n);
        tulle_matrix_free(C);
        done++;
    }
    ctx->gpu->fail_at = 0;
    CHECK(done > 3 && failed > 3, "%d products, %d failures", done, failed);
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* Other policies and accumulators by name do not use these tables. */
static void only_auto(void)
{
    static shape shapes[SHAPES_MAX];
    const int count = some_shapes(shapes);
    tulle_ctx *ctx = ctx_of(NULL, "on");
    pair p = shapes_apart(shapes, count, STEP, COLS, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_options o;
    const char *name;
    for (int i = 0; gpu_way(i, &o, &name); i++) {
        if (o.policy && strcmp(o.policy, "auto") == 0) continue;
        seen s = {0};
        tulle_ctx_set_trace(ctx, read_classes, &s);
        gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &want.view, name);
        tulle_ctx_set_trace(ctx, NULL, NULL);
        for (int k = 0; k < FLAT_SIZES; k++) CHECK(s.rows[k] == 0 && !s.only, "%s uses size %d", name, k);
    }
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_limit), TEST(one_size_for_all), TEST(one_slot), TEST(every_type), TEST(far_columns),
          TEST(other_calls), TEST(columns_are_kept), TEST(half_of_the_columns), TEST(products_with_kept_columns),
          TEST(no_memory), TEST(only_auto))
