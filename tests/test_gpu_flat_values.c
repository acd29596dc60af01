/* SPDX-License-Identifier: MIT
 *
 * test_gpu_flat_values.c - the values of rows whose columns are known, in runs of plans: rows at both ends of
 * each size, by few long and many short rows of B with empty ones among them; spans that just fit a word, and
 * that do not; buckets that overflow; all rows in order and from lists, beside rows of other accumulators;
 * types, little shared memory, transposed operands.  Every run has other values, and is compared with the plain
 * product bit for bit; which rows were computed so is counted by the rule of numeric_class(). */
#define _GNU_SOURCE
#include <math.h>
#include "gpu.h"
#define tl_road tl_gpu_road              /* the engine of the CPU has another one of this name */
#include "gpu/product.h"

/* A row of C with `nnz` entries over `span` columns, as the sum of `entries` rows of B of `length` entries each;
 * there are `empty` more entries of A, whose rows of B have none. */
typedef struct shape {
    int     nnz, entries, length, empty;
    int64_t span;
} shape;

enum { MANY = 256, NNZ_MOST = 700 };
enum columns { SPREAD, ONE_BUCKET };

/* The numbers of policy_auto.c. */
enum { OVER = 48, MOST = 8192, PER = 16 };

static uint32_t bucket(uint32_t column, int bits)
{
    return (column * 0x9e3779b1u) >> (33 - bits);
}

static int bits_of(int nnz)
{
    int bits = 5;
    while (1 << bits < nnz) bits++;
    return bits;
}

/* Ascending columns from 0 to span - 1; ONE_BUCKET: all but the first are in the last bucket of the table. */
static void columns_of(shape s, enum columns how, int64_t *to)
{
    int64_t c = 1;
    to[0] = 0;
    for (int i = 1; i < s.nnz; i++, c++) {
        const int bits = bits_of(s.nnz);
        while (how == ONE_BUCKET && bucket((uint32_t)c, bits) != (1u << (bits - 1)) - 1) c++;
        to[i] = how == ONE_BUCKET ? c : i * (s.span - 1) / (s.nnz - 1);
    }
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* One row of A for each shape, with rows of B of its own. */
static pair pair_of(const shape *shapes, int count, enum columns how, int64_t cols, ref_types t, ref_kind kind)
{
    int64_t a_nnz = 0, b_nnz = 0, a = 0, b = 0, first_empty;
    for (int i = 0; i < count; i++) {
        a_nnz += shapes[i].entries + shapes[i].empty;
        b_nnz += (int64_t)shapes[i].entries * shapes[i].length;
    }
    pair p = {ref_new(count, a_nnz, a_nnz, t), ref_new(a_nnz, cols, b_nnz, t), "shapes"};
    for (int i = 0; i < count; i++) {
        const shape s = shapes[i];
        int64_t column[NNZ_MOST];
        columns_of(s, how, column);
        first_empty = s.entries / 2;    /* some at the beginning, most in the middle, one at the end */
        for (int k = 0, e = 0; k < s.entries + s.empty; k++, a++) {
            const int before = k - e;
            const bool empty = before < s.empty
                && ((before < s.empty / 4 && e == 0) || e == s.entries || (e >= first_empty && before < s.empty - 1));
            int at[NNZ_MOST];
            for (int j = 0; j < s.length && !empty; j++) at[j] = (int)(((int64_t)e * s.length + j) % s.nnz);
            if (!empty) qsort(at, (size_t)s.length, sizeof *at, by_number);
            for (int j = 0; j < s.length && !empty; j++, b++) ref_set_col(&p.B, b, column[at[j]] + i % 7);
            e += !empty;
            ref_set_col(&p.A, a, a);
            ref_set_ptr(&p.B, a + 1, b);
        }
        ref_set_ptr(&p.A, i + 1, a);
    }
    ref_fill(&p.A, kind, 5);
    ref_fill(&p.B, kind, 6);
    return p;
}

/* Does this accumulator compute the row?  entries: up to so many. */
static bool is_flat(shape s, int64_t span, int entries)
{
    const int64_t products = (int64_t)s.entries * s.length;
    return s.entries + s.empty > 1 && products > OVER && products <= MOST && span >= (int64_t)s.nnz * PER && s.nnz <= entries
        && span <= (int64_t)(UINT32_MAX >> bits_of(s.nnz));
}

/* The rows that it computes. */
typedef struct mine {
    int64_t rows;
    bool    row[MANY];
} mine;

static mine mine_of(const shape *shapes, int count, enum columns how, int entries)
{
    mine m = {0};
    for (int i = 0; i < count; i++) {
        int64_t column[NNZ_MOST];
        columns_of(shapes[i], how, column);
        m.row[i] = is_flat(shapes[i], column[shapes[i].nnz - 1] + 1, entries);
        m.rows += m.row[i];
    }
    return m;
}

static mine all_of(int count)
{
    mine m = {.rows = count};
    for (int i = 0; i < count; i++) m.row[i] = true;
    return m;
}

static int64_t rows_of(const tulle_stats *s, const char *name)
{
    for (int k = 0; k < s->shares; k++)
        if (strcmp(s->share[k].name, name) == 0) return s->share[k].rows;
    return 0;
}

/* Some values that are infinite, not numbers, or of very different size. */
static void put_odd_values(ref *A, uint64_t seed)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-310, -0.0, 0.0};
    ref_rng r = {seed};
    for (int64_t k = 0; k < A->view.nnz; k += 1 + ref_below(&r, 40)) {
        const ref_value v = {odd[ref_below(&r, 8)], odd[ref_below(&r, 8)]};
        ref_set_val(A, k, v);
    }
}

/* Integers in the rows that other accumulators compute, which may add in another order. */
static void fill(pair *p, ref_kind kind, int run, const mine *m)
{
    ref_fill(&p->A, m ? kind : REF_INTEGERS, (uint64_t)(70 + run));
    ref_fill(&p->B, m ? kind : REF_INTEGERS, (uint64_t)(90 + run));
    if (m && run == 1) {
        put_odd_values(&p->A, 3);
        put_odd_values(&p->B, 4);
    }
    for (int64_t i = 0; m && i < p->A.view.rows; i++)
        for (int64_t k = ref_ptr(&p->A.view, i); !m->row[i] && k < ref_ptr(&p->A.view, i + 1); k++) {
            const int64_t row = ref_col(&p->A.view, k);
            ref_set_val(&p->A, k, (ref_value){(double)(k % 5), 1});
            for (int64_t l = ref_ptr(&p->B.view, row); l < ref_ptr(&p->B.view, row + 1); l++)
                ref_set_val(&p->B, l, (ref_value){(double)(l % 7), (double)(run - 1)});
        }
}

/* A plan and runs with other values, in which this accumulator computed these rows; NULL: any. */
static void plan_is_right(tulle_ctx *ctx, pair *p, const tulle_options *o, const mine *m, const char *what)
{
    tulle_plan *plan = NULL;
    const size_t size = ref_value_size(p->A.view.val_type);
    REQUIRE(tulle_plan_create(ctx, &p->A.view, &p->B.view, o, &plan) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
    tulle_csr c = tulle_plan_pattern(plan);
    tulle_stats s;
    tulle_plan_stats(plan, &s);
    CHECK(!m || rows_of(&s, "flat") == m->rows, "%s: %" PRId64 " rows, not %" PRId64, what, rows_of(&s, "flat"), m->rows);
    char *values = malloc((size_t)(c.nnz + 1) * size);
    for (int run = 0; run < 3; run++) {
        fill(p, run == 2 ? REF_CANCELLING : REF_REALS, run, m);
        ref a = o && o->op_a ? ref_transpose(&p->A.view, (tulle_op)o->op_a) : p->A;
        ref b = o && o->op_b ? ref_transpose(&p->B.view, (tulle_op)o->op_b) : p->B;
        ref want = ref_product(&a.view, &b.view);
        memset(values, 0x7f, (size_t)(c.nnz + 1) * size);
        CHECK(tulle_plan_run(plan, p->A.values, p->B.values, values) == TULLE_OK, "%s: %s", what, tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, what), "%s, run %d", what, run);
        for (size_t i = 0; i < size; i++)
            CHECK(values[(size_t)c.nnz * size + i] == 0x7f, "%s: written behind the values", what);
        ref_free(&want);
        if (o && o->op_a) ref_free(&a);
        if (o && o->op_b) ref_free(&b);
    }
    free(values);
    tulle_plan_free(plan);
}

/* Contexts in which rows come from lists, in order, and as the policy decides. */
static const char *const balances[] = {"on", "off", NULL};

static tulle_ctx *ctx_of(const char *balance, const char *shared)
{
    if (shared) setenv("TULLE_GPU_SHARED", shared, 1);
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_BALANCE", balance);
    unsetenv("TULLE_GPU_SHARED");
    return ctx;
}

static void shapes_are_right(const shape *shapes, int count, enum columns how, int64_t cols, ref_types t, const char *what)
{
    const mine m = mine_of(shapes, count, how, 512);
    for (int i = 0; i < 3; i++) {
        tulle_ctx *ctx = ctx_of(balances[i], NULL);
        pair p = pair_of(shapes, count, how, cols, t, REF_REALS);
        char name[96];
        snprintf(name, sizeof name, "%s, %s, balance %s", what, ref_types_name(t), balances[i] ? balances[i] : "-");
        plan_is_right(ctx, &p, NULL, i == 0 ? &m : NULL, name);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

/* ---- the cases */

static const int ends[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513};
enum { ENDS = sizeof ends / sizeof *ends };

/* Rows of every size: of rows of B of one entry, of three, of half the columns, of all. */
static int all_shapes(int least, int most, int64_t per, shape *to)
{
    static const int empties[] = {0, 0, 1, 40, 3, 0, 33};
    int count = 0;
    for (int i = 0; i < ENDS; i++) {
        const int n = ends[i], lengths[] = {1, n < 3 ? n : 3, (n + 1) / 2, n};
        for (int k = 0; k < 4 && n >= least && n <= most; k++) {
            const int length = lengths[k], needed = (n + length - 1) / length, more = OVER / length + 1;
            to[count] = (shape){n, needed > more ? needed : more, length, empties[count % 7], n * per + i};
            count++;
        }
    }
    return count;
}

static void every_size(void)
{
    static shape shapes[MANY];
    shapes_are_right(shapes, all_shapes(1, 513, 40, shapes), SPREAD, 30000, f64, "every size");
}

/* Only rows of one size: without lists all are computed by it; also on the fast path for small products. */
static void every_size_alone(void)
{
    static shape shapes[MANY];
    for (int bits = 5; bits < 10; bits++) {
        const int count = all_shapes(bits == 5 ? 1 : (1 << bits) / 2 + 1, 1 << bits, 30, shapes);
        for (int small = 0; small < (bits < 8 ? 2 : 1); small++) {
            const mine all = all_of(count);
            tulle_ctx *ctx = ctx_of(small ? NULL : "off", NULL);
            pair p = pair_of(shapes, count, SPREAD, 30000, f64, REF_REALS);
            plan_is_right(ctx, &p, NULL, bits == 5 ? NULL : &all, small ? "one size, small" : "one size");
            pair_free(&p);
            tulle_ctx_free(ctx);
        }
    }
}

/* Rows of A of 1 and of 600 entries, rows of B of 1 and of 500 entries, too many products, too few. */
static void long_and_short(void)
{
    static const shape shapes[] = {{500, 1, 500, 0, 20000}, {500, 2, 500, 1, 20000}, {500, 600, 1, 5, 20000},
                                   {300, 600, 7, 70, 9000}, {500, 1, 500, 600, 20000}, {512, 16, 512, 0, 10000},
                                   {512, 17, 512, 0, 10000}, {1, 600, 1, 600, 1}, {2, 600, 1, 0, 32}, {2, 600, 2, 0, 31},
                                   {48, 48, 1, 0, 900}, {49, 49, 1, 0, 900}, {49, 7, 7, 33, 49 * 16}, {49, 7, 7, 33, 49 * 16 - 1},
                                   {33, 3, 33, 96, 1000}, {100, 97, 2, 31, 9999}, {130, 2, 65, 64, 3000}, {600, 20, 100, 0, 20000}};
    shapes_are_right(shapes, sizeof shapes / sizeof *shapes, SPREAD, 30000, f64, "long and short");
}

/* The widest span of each size, and the next. */
static void spans(void)
{
    shape shapes[MANY];
    int count = 0;
    for (int bits = 5; bits < 10; bits++)
        for (int more = -1; more < 2; more++) {
            shapes[count++] = (shape){1 << bits, 20, 1 << (bits - 1), bits % 3, (int64_t)(UINT32_MAX >> bits) + more};
            shapes[count++] = (shape){(1 << bits) - 3, 60, 9, 0, (int64_t)(UINT32_MAX >> bits) + more};
        }
    shapes_are_right(shapes, count, SPREAD, INT32_MAX, f64, "spans");
    for (int i = 0; i < 4; i++) shapes[count++] = (shape){100 * i + 90, 60, 40, 0, (int64_t)1 << (31 + 6 * i)};
    shapes_are_right(shapes, count, SPREAD, (int64_t)1 << 60, f64_i64, "far columns");
}

/* A row fits its own size, but not the one that all others need: without lists another accumulator takes all. */
static void one_wide_row(void)
{
    shape shapes[10];
    const mine none = {0};
    for (int i = 0; i < 10; i++) shapes[i] = (shape){400, 60, 20, 0, 20000};
    for (int wide = 0; wide < 2; wide++) {
        shapes[4] = wide ? (shape){100, 60, 20, 0, 1 << 24} : (shape){100, 60, 20, 0, 20000};
        const mine all = all_of(10);
        tulle_ctx *ctx = ctx_of("off", NULL);
        pair p = pair_of(shapes, 10, SPREAD, 1 << 25, f64, REF_REALS);
        plan_is_right(ctx, &p, NULL, wide ? &none : &all, wide ? "one wide row" : "no wide row");
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

static void buckets_overflow(void)
{
    shape shapes[MANY];
    int count = 0;
    for (int bits = 5; bits < 10; bits++) {
        shapes[count++] = (shape){1 << bits, 20, 1 << (bits - 1), 0, 0};
        shapes[count++] = (shape){(1 << bits) - 1, 300, 4, 7, 0};
    }
    shapes_are_right(shapes, count, ONE_BUCKET, 1 << 20, f64, "one bucket");
}

static void every_type(void)
{
    static shape shapes[MANY];
    const int count = all_shapes(31, 129, 30, shapes);
    const mine m = mine_of(shapes, count, SPREAD, 512);
    tulle_ctx *ctx = ctx_of("on", NULL);
    for (int i = 0; i < REF_TYPES; i++) {
        if (skips_types(i)) continue;
        pair p = pair_of(shapes, count, SPREAD, 30000, ref_types_at(i), REF_REALS);
        plan_is_right(ctx, &p, NULL, &m, ref_types_name(ref_types_at(i)));
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Sizes that do not fit are left to other accumulators. */
static void little_shared_memory(void)
{
    static shape shapes[MANY];
    static const struct { const char *shared; int entries; } cases[] = {{"16384", 512}, {"4096", 256}, {"2048", 128}, {"1024", 64}};
    const int count = all_shapes(1, 513, 40, shapes);
    for (int i = 0; i < 4; i++) {
        const mine m = mine_of(shapes, count, SPREAD, cases[i].entries);
        tulle_ctx *ctx = ctx_of("on", cases[i].shared);
        pair p = pair_of(shapes, count, SPREAD, 30000, f64, REF_REALS);
        plan_is_right(ctx, &p, NULL, &m, cases[i].shared);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

/* Rectangular operands, as given and transposed; rows with motifs beside others; long rows of C. */
static void operands(void)
{
    static const tulle_options options[] = {{0}, {.op_a = TULLE_TRANSPOSE}, {.op_b = TULLE_TRANSPOSE},
                                            {.op_a = TULLE_ADJOINT, .op_b = TULLE_ADJOINT}};
    for (int i = 0; i < 8; i++) {
        const tulle_options *o = &options[i % 4];
        const ref_types t = i % 4 == 3 ? (ref_types){TULLE_CF64, TULLE_I32, TULLE_I32} : f64;
        pair p = {ref_random(51, 250, 340, 8, REF_REALS, t), ref_random(52, 340, 9000, 12, REF_REALS, t), "rectangular"};
        if (o->op_a) {
            ref a = ref_transpose(&p.A.view, TULLE_TRANSPOSE);
            ref_free(&p.A);
            p.A = a;
        }
        if (o->op_b) {
            ref b = ref_transpose(&p.B.view, TULLE_TRANSPOSE);
            ref_free(&p.B);
            p.B = b;
        }
        tulle_ctx *ctx = ctx_of(i < 4 ? NULL : "on", NULL);
        plan_is_right(ctx, &p, o, NULL, p.name);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

static void among_others(void)
{
    tulle_ctx *plain = ctx_of("on", NULL), *motifs = gpu_ctx_env("TULLE_GPU_MOTIFS", "on"),
              *twins = gpu_ctx_env("TULLE_GPU_TWINS", "on");
    tulle_ctx *ctx[] = {plain, motifs, twins};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 3; i++) {
            pair p = i == 0 ? (pair){ref_power(61, 900, 800, 300, REF_REALS, f64), ref_power(62, 800, 30000, 500, REF_REALS, f64),
                                     "a power law"}
                   : i == 1 ? (pair){grid(40, 40, REF_REALS, f64), ref_random(63, 1600, 5000, 20, REF_REALS, f64), "a grid"}
                            : (pair){ref_blocks(200, 2, 3, REF_REALS, f64), ref_blocks(200, 3, 3, REF_REALS, f64), "blocks"};
            plan_is_right(ctx[k], &p, NULL, NULL, p.name);
            pair_free(&p);
        }
        tulle_ctx_free(ctx[k]);
    }
}

/* Only `auto` has numbers for it, and a forced accumulator is not replaced. */
static void others_do_without(void)
{
    static shape shapes[MANY];
    const int count = all_shapes(31, 65, 40, shapes);
    const mine m = mine_of(shapes, count, SPREAD, 512), none = {0};
    tulle_ctx *ctx = ctx_of("on", NULL);
    tulle_options o;
    const char *name;
    for (int i = 0; gpu_way(i, &o, &name); i++) {
        pair p = pair_of(shapes, count, SPREAD, 30000, f64, REF_REALS);
        plan_is_right(ctx, &p, &o, strcmp(name, "auto") == 0 ? &m : &none, name);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- columns of some rows are known, in a product that is not a plan */

/* Columns of C stand where `known` says so, and garbage elsewhere; then the numeric step. */
static tulle_status multiply_with(tulle_ctx *ctx, pair *p, const ref *want, const uint32_t *known, tl_product *q)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_recipe recipe;
    const tulle_options none = {0};
    const uint64_t rows = (uint64_t)p->A.view.rows, nnz = (uint64_t)want->view.nnz;
    uint32_t *columns = malloc((nnz + 1) * sizeof *columns);
    double *values = malloc((nnz + 1) * sizeof *values);
    TRY(tl_recipe_make(b, &none, &recipe));
    tl_policy policy = *recipe.policy;
    tl_gpu_steps steps = *policy.gpu;
    steps.symbolic.flat_keep = 0;       /* the rows whose columns are known are chosen here */
    policy.gpu = &steps;
    recipe.policy = &policy;
    const tl_gpu_request request = {.A = &p->A.view, .B = &p->B.view, .recipe = &recipe, .place = TULLE_HOST,
                                    .values = true, .row1 = -1};
    TRY(tl_product_begin(b, ctx->gpu, &request, q));
    TRY(tl_dmem_alloc(b, ctx->gpu, rows * 4, "known rows", &q->known_rows));
    TRY(q->driver->upload(b, q->device, q->known_rows, known, rows * 4));
    TRY(tl_product_pattern(q));
    TRY(tl_product_allocate(q, true));
    for (uint64_t i = 0; i < rows; i++)
        for (int64_t k = ref_ptr(&want->view, (int64_t)i); k < ref_ptr(&want->view, (int64_t)i + 1); k++)
            columns[k] = known[i] ? (uint32_t)ref_col(&want->view, k) : UINT32_MAX - 5;
    TRY(q->driver->upload(b, q->device, q->c_col, columns, nnz * 4));
    TRY(tl_product_fill(q));
    TRY(q->driver->download(b, q->device, columns, q->c_col, nnz * 4));
    TRY(q->driver->download(b, q->device, values, q->c_val, nnz * 8));
    TRY(q->driver->wait(b, q->device));
    for (uint64_t k = 0; k < nnz; k++)
        CHECK(columns[k] == (uint32_t)ref_col(&want->view, (int64_t)k), "column %" PRIu64 " is %u", k, columns[k]);
    CHECK(ref_same_values(values, want->values, TULLE_F64, (int64_t)nnz, "values"), "%s", "some columns known");
done:
    free(columns);
    free(values);
    return status;
}

static void some_rows_are_known(void)
{
    static shape shapes[MANY];
    const int count = all_shapes(1, 512, 40, shapes);
    pair p = pair_of(shapes, count, SPREAD, 30000, f64, REF_REALS);
    const mine m = mine_of(shapes, count, SPREAD, 512);
    for (int turn = 0; turn < 6; turn++) {
        const int every = 1 + turn % 3;
        tulle_ctx *ctx = ctx_of(balances[turn / 3], NULL);
        uint32_t known[MANY];
        tl_product q = {0};
        int64_t found = 0;
        mine due = m;
        for (int i = 0; i < count; i++) {
            known[i] = every == 1 ? i > 0 : i % every == 0 ? (uint32_t)i + 1 : 0;
            due.row[i] = m.row[i] && known[i];
            due.rows -= m.row[i] && !known[i];
        }
        fill(&p, REF_REALS, every, turn < 3 ? &due : NULL);
        ref want = ref_product(&p.A.view, &p.B.view);
        tl_dmem_begin(ctx->gpu, 0, 0);
        CHECK(multiply_with(ctx, &p, &want, known, &q) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        for (int i = 0; i < FLAT_SIZES; i++) found += (int64_t)q.note[1][SUM_ROWS + CLASS_FLAT + i];
        CHECK(q.work[1].balanced || q.work[1].only < CLASS_FLAT, "class %d for all", q.work[1].only);
        CHECK(found == due.rows, "%" PRId64 " rows, not %" PRId64, found, due.rows);
        ref_free(&want);
        tl_dmem_free(ctx->gpu, q.known_rows);
        tl_product_done(&q);
        tl_dmem_end(ctx->gpu);
        tulle_ctx_free(ctx);
    }
    pair_free(&p);
}

TEST_MAIN(TEST(every_size), TEST(every_size_alone), TEST(long_and_short), TEST(spans), TEST(one_wide_row),
          TEST(buckets_overflow), TEST(every_type), TEST(little_shared_memory), TEST(operands), TEST(among_others),
          TEST(others_do_without), TEST(some_rows_are_known))
