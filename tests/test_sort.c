/* SPDX-License-Identifier: MIT
 *
 * test_sort.c - rows of C with every number of products from 0 to 300, which are sorted: by the networks of
 * kernel_network.h up to as many as a network takes, by merges above.  Rows of B of every length around whole
 * vectors; columns that are all different, and that are mostly equal; windows as wide as a key can be, and one
 * column more; the first and the last column there is; every type; plans; small limits; the end of B.  Bit for
 * bit, with values whose sums depend on the order. */
#define _GNU_SOURCE
#include "cpu/cpu.h"
#include "accumulator_help.h"

enum { MOST = 300, LENGTHS = 12, EACH = 32 };

static const int lengths[LENGTHS] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40};

/* B has EACH rows of each of these lengths, one length after the other in turn.  Their columns are multiples of `apart` up
 * to cols - 1, the first ones and the last ones in every third row, at random places otherwise. */
static ref short_rows(int64_t cols, int64_t apart, ref_types t)
{
    int64_t nnz = 0, at = 0;
    for (int i = 0; i < LENGTHS; i++) nnz += EACH * lengths[i];
    ref B = ref_new(LENGTHS * EACH, cols, nnz, t);
    ref_rng r = {9};
    for (int64_t i = 0; i < LENGTHS * EACH; i++) {
        const int64_t n = lengths[i % LENGTHS], places = (cols - 1) / apart + 1;
        const int64_t from = i % 3 == 0 ? 0 : i % 3 == 1 ? places - n : ref_below(&r, places - n + 1);
        for (int64_t k = 0; k < n; k++)     /* in as many parts of the places as there are columns, one in each */
            ref_set_col(&B, at++, i % 3 == 2 ? ((places - n) / n * k + ref_below(&r, (places - n) / n + 1) + k) * apart
                                             : (from + k) * apart);
        ref_set_ptr(&B, i + 1, at);
    }
    ref_fill(&B, REF_REALS, 10);
    for (int64_t k = 0; k < nnz; k += 7) ref_set_val(&B, k, (ref_value){k % 2 ? 0.0 : -0.0, -0.0});    /* sums are +0 */
    return B;
}

/* Row i of A needs rows of B that have i entries in all, of length lengths[longest] at most; so again `times` times. */
static ref rows_with_every_number(int longest, int times, ref_types t)
{
    const int64_t rows = (MOST + 1) * (int64_t)times;
    ref A = ref_new(rows, LENGTHS * EACH, rows * LENGTHS * EACH, t);
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool use[LENGTHS * EACH] = {false};
        int64_t left = i % (MOST + 1);
        for (int l = longest; l >= 0; l--)
            for (int k = 0; k < EACH; k++)
                if (lengths[l] <= left) use[(k + i) % EACH * LENGTHS + l] = true, left -= lengths[l];
        for (int64_t k = 0; k < LENGTHS * EACH; k++)
            if (use[k]) ref_set_col(&A, at++, k);
        ref_set_ptr(&A, i + 1, at);
        if (left > 0) abort();
    }
    A.view.nnz = at;
    ref_fill(&A, REF_REALS, 11);
    ref copy = ref_copy(&A.view, t);
    ref_free(&A);
    return copy;
}

static void every_way(tulle_ctx *ctx, const ref *A, const ref *B, const char *name)
{
    static const char *const names[] = {"sort", "hash", NULL};
    ref want = ref_product(&A->view, &B->view), kept = ref_without_zeros(&want.view);
    for (int i = 0; i < 3; i++) {
        tulle_options o = {.accumulator = names[i]};
        product_is(ctx, &A->view, &B->view, &o, &want.view, name);
        if (i == 0) CHECK(rows_by(ctx, "sort") > MOST / 2, "%s: %" PRId64 " rows sorted", name, rows_by(ctx, "sort"));
        plan_is(ctx, &A->view, &B->view, &o, &want, name);
        o.drop_zeros = 1;
        product_is(ctx, &A->view, &B->view, &o, &kept.view, name);
    }
    ref_free(&want);
    ref_free(&kept);
}

/* As wide as keys of 16 to 256 products can be, and one column more; far beyond them; narrow, with equal columns. */
static void every_number_of_products(void)
{
    static const struct { int64_t cols, apart; } windows[] = {
        {40, 1},                      {100, 1},
        {3000, 1},                    {((int64_t)1 << 24), 1},
        {((int64_t)1 << 24) + 1, 1},  {((int64_t)1 << 26), 1 << 20},
        {((int64_t)1 << 26) + 1, 77}, {((int64_t)1 << 28), 1},
        {((int64_t)1 << 28) + 1, 1},  {((int64_t)1 << 31) - 1, 1},
        {(int64_t)1 << 31, 1 << 24},  {((int64_t)1 << 32) + 1, 1},
        {(int64_t)1 << 40, 3},        {INT64_MAX, 1},
    };
    tulle_ctx *ctx = ctx_with(2);
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
        for (int i = 0; i < REF_TYPES; i++) {
            const ref_types t = ref_types_at(i);
            if (t.idx == TULLE_I32 && windows[w].cols > (int64_t)1 << 31) continue;
            if ((i + w) % 4 != 0 && windows[w].cols != 3000) continue;       /* each type meets every fourth */
            const int longest = i % 3 == 0 ? 3 : i % 3 == 1 ? 8 : 11;
            ref A = rows_with_every_number(longest, 1, t), B = short_rows(windows[w].cols, windows[w].apart, t);
            char name[96];
            snprintf(name, sizeof name, "%" PRId64 " columns, %s, rows of up to %d", windows[w].cols, ref_types_name(t),
                     lengths[longest]);
            every_way(ctx, &A, &B, name);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

static const ref_types some_types[] = {{TULLE_F64, TULLE_I32, TULLE_I32}, {TULLE_F32, TULLE_I64, TULLE_I64},
                                       {TULLE_CF32, TULLE_I32, TULLE_I32}, {TULLE_CF64, TULLE_I64, TULLE_I64},
                                       {TULLE_F64, TULLE_I64, TULLE_I64}, {TULLE_F32, TULLE_I32, TULLE_I32}};
enum { SOME_TYPES = sizeof some_types / sizeof *some_types };

/* Rows of B are read as vectors, the last one, too, of any length: nothing behind it is, and a plan writes nothing behind the
 * last value. */
static void nothing_is_touched_behind_the_last_entry(void)
{
    static const tulle_options sort = {.accumulator = "sort"};
    tulle_ctx *ctx = ctx_with(1);
    for (int i = 0; i < SOME_TYPES; i++)
        for (int64_t n = 1; n <= 34; n++) {
            const ref_types t = some_types[i];
            const size_t value = ref_value_size(t.val), index = ref_index_size(t.idx);
            ref A = ref_dense(3, 3, REF_REALS, t), B = ref_dense(3, n, REF_REALS, t);
            for (int64_t k = 0; k < 3 * n; k++) ref_set_col(&B, k, k % n * (k / n + 1));
            B.view.cols = 3 * n;
            ref want = ref_product(&A.view, &B.view);
            guarded col = guard(B.view.col_idx, (size_t)(3 * n) * index),
                    val = guard(B.view.values, (size_t)(3 * n) * value);
            tulle_csr view = B.view;
            view.col_idx = col.at;
            view.values = val.at;
            product_is(ctx, &A.view, &view, &sort, &want.view, "guarded");
            char name[64];
            snprintf(name, sizeof name, "%s, %d entries", ref_types_name(t), (int)n);
            plan_is(ctx, &A.view, &view, &sort, &want, name);
            unguard(col), unguard(val);
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* With a memory limit C is counted first, and then written where nothing may be written behind a row. */
static void small_limits(void)
{
    for (int i = 0; i < SOME_TYPES; i++) {
        tulle_ctx *ctx = ctx_with(2);
        ref A = rows_with_every_number(8, 8, some_types[i]), B = short_rows(5000, 1, some_types[i]);
        ref want = ref_product(&A.view, &B.view);
        limits_give(ctx, &A, &B, &want, "sort", 64 << 20);
        ref_free(&want);
        ref_free(&A);
        ref_free(&B);
        tulle_ctx_free(ctx);
    }
}

/* All products in one column, in the order of A: a sum that another order changes. */
static void one_column_in_the_order_of_a(void)
{
    tulle_ctx *ctx = ctx_with(1);
    const tulle_options o = {.accumulator = "sort"};
    for (int i = 0; i < SOME_TYPES; i++)
        for (int64_t n = 2; n <= MOST; n += n < 140 ? 1 : 31) {
            ref A = ref_dense(1, n, REF_REALS, some_types[i]), B = ref_new(n, 9, n, some_types[i]);
            for (int64_t k = 0; k < n; k++) ref_set_col(&B, k, 5), ref_set_ptr(&B, k + 1, k + 1);
            ref_fill(&B, REF_REALS, (uint64_t)n);
            ref want = ref_product(&A.view, &B.view);
            product_is(ctx, &A.view, &B.view, &o, &want.view, "one column");
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* A window of 12,000 columns is dense for the policy, but where a network sorts the row, that is faster. */
static void networks_are_chosen_where_they_are_faster(void)
{
    const ref_types t = some_types[0];
    tulle_ctx *ctx = ctx_with(1);
    const bool network = strcmp(tl_cpu_isa(), "base") != 0;
    ref A = rows_with_every_number(8, 1, t), B = short_rows(12000, 1, t);
    ref want = ref_product(&A.view, &B.view);
    product_is(ctx, &A.view, &B.view, NULL, &want.view, "auto");
    CHECK(network ? rows_by(ctx, "sort") > 100 : rows_by(ctx, "sort") == 0, "%s: %" PRId64 " rows sorted", tl_cpu_isa(),
          rows_by(ctx, "sort"));
    product_is(ctx, &A.view, &B.view, &(tulle_options){.accumulator = "dense"}, &want.view, "dense");
    CHECK(rows_by(ctx, "sort") == 0, "%" PRId64 " rows sorted, not dense", rows_by(ctx, "sort"));
    plan_is(ctx, &A.view, &B.view, NULL, &want, "a plan");
    ref_free(&want);
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_number_of_products), TEST(nothing_is_touched_behind_the_last_entry), TEST(small_limits),
          TEST(one_column_in_the_order_of_a), TEST(networks_are_chosen_where_they_are_faster))
