/* SPDX-License-Identifier: MIT
 *
 * test_stencil.c - products whose rows repeat the row before, shifted by one column, as on grids: rows of C
 * of every length around multiples of an octet and around the longest that use octets, grid lines of several
 * lengths, lines that differ in one position, the end of B, plans, small limits.  Results are compared bit
 * for bit. */
#define _GNU_SOURCE
#include "accumulator_help.h"

enum { MOST = 40 };

/* Columns of a row, relative to the row number; at the ends of lines of so many rows the first ones are
 * missing. */
typedef struct stencil {
    const char *name;
    int         count, offset[MOST], line, cut;
} stencil;

typedef struct case_of { stencil a, b; int64_t rows; } case_of;

static stencil band(const char *name, int count, int apart, int line)
{
    stencil s = {.name = name, .count = count, .line = line, .cut = line ? 1 : 0};
    for (int i = 0; i < count; i++) s.offset[i] = i * apart;
    return s;
}

/* `runs` runs of `length` columns. */
static stencil blocks(const char *name, int runs, int length, int apart, int line)
{
    stencil s = {.name = name, .count = runs * length, .line = line, .cut = line ? 1 : 0};
    for (int i = 0; i < s.count; i++) s.offset[i] = i / length * apart + i % length;
    return s;
}

static int last_of(const stencil *s)
{
    return s->offset[s->count - 1];
}

static ref matrix_of(const stencil *s, int64_t rows, int64_t cols, ref_types t, uint64_t seed)
{
    int64_t at = 0;
    ref A = ref_new(rows, cols, rows * s->count, t);
    for (int64_t i = 0; i < rows; i++) {
        const bool end = s->line && i % s->line == s->line - 1;
        for (int k = end ? s->cut : 0; k < s->count; k++)
            if (i + s->offset[k] < cols) ref_set_col(&A, at++, i + s->offset[k]);
        ref_set_ptr(&A, i + 1, at);
    }
    A.view.nnz = at;
    ref_fill(&A, REF_REALS, seed);
    ref copy = ref_copy(&A.view, t);        /* arrays of exact length, so that a sanitizer detects overruns */
    ref_free(&A);
    return copy;
}

static void product_of(tulle_ctx *ctx, const stencil *a, const stencil *b, int64_t rows, ref_types t, bool mostly)
{
    static const tulle_options forced = {.accumulator = "stencil"}, drop = {.accumulator = "stencil", .drop_zeros = 1};
    const int64_t inner = rows + last_of(a), cols = inner + last_of(b);
    ref A = matrix_of(a, rows, inner, t, 5), B = matrix_of(b, inner, cols, t, 6);
    ref want = ref_product(&A.view, &B.view), kept = ref_without_zeros(&want.view);
    char name[160];
    snprintf(name, sizeof name, "%s * %s, %" PRId64 " rows, %s", a->name, b->name, rows, ref_types_name(t));
    product_is(ctx, &A.view, &B.view, &forced, &want.view, name);
    if (mostly) CHECK(rows_by(ctx, "stencil") > rows / 2, "%s: %" PRId64 " rows as a stencil", name, rows_by(ctx, "stencil"));
    product_is(ctx, &A.view, &B.view, NULL, &want.view, name);
    product_is(ctx, &A.view, &B.view, &drop, &kept.view, name);
    plan_is(ctx, &A.view, &B.view, NULL, &want, name);
    ref_free(&want);
    ref_free(&kept);
    ref_free(&A);
    ref_free(&B);
}

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};

/* Rows of C with 1 to 40 entries, and with about the maximum for octets. */
static void rows_of_c_of_every_length(void)
{
    tulle_ctx *ctx = ctx_with(1);
    for (int n = 2; n <= MOST; n++) {
        const stencil a = band("2", 2, 1, 0), b = band("n", n - 1, 1, 0), c = blocks("runs", n / 3 + 1, 2, 3, 0);
        product_of(ctx, &a, &b, 60, f64, true);
        product_of(ctx, &c, &a, 60, (ref_types){TULLE_F32, TULLE_I32, TULLE_I32}, false);
    }
    for (int n = 252; n <= 260; n++) {          /* 8 runs of 32, except the last */
        stencil a = band("8 apart", 8, 40, 0), b = band("32", 32, 1, 0);
        a.offset[7] = 6 * 40 + n - 7 * 32;
        product_of(ctx, &a, &b, 60, f64, true);
        product_of(ctx, &a, &b, 60, (ref_types){TULLE_F32, TULLE_I64, TULLE_I64}, true);
    }
    tulle_ctx_free(ctx);
}

static void stencils_in_every_type(void)
{
    const stencil set[] = {
        band("5 points", 5, 7, 0), band("5 points, lines of 19", 5, 7, 19), blocks("9 points", 3, 3, 11, 23),
        blocks("27 points", 9, 3, 8, 31), band("diagonal", 1, 1, 0), blocks("pairs", 6, 2, 5, 12), band("40", 40, 1, 0),
        band("40 by threes", 40, 3, 0),         /* with the one before: more steps than fit */
    };
    enum { SET = sizeof set / sizeof *set };
    tulle_ctx *one = ctx_with(1), *two = ctx_with(2);
    for (int i = 0; i < SET; i++)
        for (int k = 0; k < SET; k++)
            for (int t = (i + k) % 3; t < REF_TYPES; t += 3)
                product_of(t % 2 ? one : two, &set[i], &set[k], 100 + 13 * i, ref_types_at(t), false);
    tulle_ctx_free(one);
    tulle_ctx_free(two);
}

/* Lines whose rows have the same numbers of entries, products and rows of B as those of the line before, but
 * at other positions, or from rows of B of other lengths, or from elsewhere in B: the data kept of the line
 * before is valid only in the last case. */
typedef enum { OTHER_PLACES, OTHER_LENGTHS, ELSEWHERE, KINDS } difference;

enum { LINE = 16, LINES = 12, ROWS = LINE * LINES, REGION = ROWS + 256, ENTRIES = 6 };

static int64_t column_of(difference d, int64_t i, int k)
{
    const int64_t odd = i / LINE % 2;
    switch (d) {
    case OTHER_PLACES: return i + k + (k > 4 - odd);
    case OTHER_LENGTHS: return i + 10 * k + REGION * (odd + k / 3);
    default: return i + k + REGION * odd;
    }
}

static void lines_that_are_nearly_the_same(void)
{
    static const tulle_options forced = {.accumulator = "stencil"};
    tulle_ctx *ctx = ctx_with(1);
    for (int d = 0; d < KINDS; d++)
        for (int i = 0; i < REF_TYPES; i += 3) {
            const ref_types t = ref_types_at(i);
            ref A = ref_new(ROWS, 3 * REGION, ENTRIES * ROWS, t), B = ref_new(3 * REGION, 3 * REGION + 4, 12 * REGION, t);
            int64_t at = 0;
            for (int64_t row = 0; row < ROWS; row++) {
                for (int k = 0; k < ENTRIES; k++) ref_set_col(&A, at++, column_of((difference)d, row, k));
                ref_set_ptr(&A, row + 1, at);
            }
            at = 0;
            for (int64_t row = 0; row < 3 * REGION; row++) {
                const int n = d == OTHER_LENGTHS && row / REGION == 1 ? 3 : 4;
                for (int k = 0; k < n; k++) ref_set_col(&B, at++, row + k);
                ref_set_ptr(&B, row + 1, at);
            }
            B.view.nnz = at;
            ref_fill(&A, REF_REALS, 5);
            ref_fill(&B, REF_REALS, 6);
            ref want = ref_product(&A.view, &B.view);
            product_is(ctx, &A.view, &B.view, &forced, &want.view, "lines");
            CHECK(rows_by(ctx, "stencil") > ROWS / 2, "difference %d: %" PRId64 " rows", d, rows_by(ctx, "stencil"));
            plan_is(ctx, &A.view, &B.view, NULL, &want, "lines");
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* Rows of B are read as octets, but nothing after the last row is read, and nothing is written after the
 * last value. */
static void nothing_is_touched_behind_the_last_entry(void)
{
    static const ref_types types[] = {{TULLE_F64, TULLE_I32, TULLE_I32}, {TULLE_F32, TULLE_I64, TULLE_I64},
                                      {TULLE_F64, TULLE_I64, TULLE_I32}, {TULLE_F32, TULLE_I32, TULLE_I32}};
    tulle_ctx *ctx = ctx_with(1);
    for (int n = 1; n <= 18; n++)
        for (int i = 0; i < 4; i++) {
            const stencil a = band("3", 3, 1, 0), b = band("n", n, 1, 0);
            const int64_t rows = 40, inner = rows + last_of(&a), cols = inner + last_of(&b);
            ref A = matrix_of(&a, rows, inner, types[i], 5), B = matrix_of(&b, inner, cols, types[i], 6);
            ref want = ref_product(&A.view, &B.view);
            guarded val = guard(B.view.values, (size_t)B.view.nnz * ref_value_size(B.view.val_type));
            tulle_csr view = B.view;
            view.values = val.at;
            product_is(ctx, &A.view, &view, NULL, &want.view, b.name);
            plan_is(ctx, &A.view, &view, NULL, &want, b.name);
            unguard(val);
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

/* With the smallest limits there is memory for fewer steps than a row needs; it is then computed without
 * them. */
static void small_limits(void)
{
    tulle_ctx *ctx = ctx_with(2);
    const stencil a = blocks("27 points", 9, 3, 9, 40), b = band("5 points", 5, 7, 0);
    for (int which = 0; which < 2; which++) {
        const stencil *s = which ? &b : &a;
        const int64_t rows = 400, inner = rows + last_of(s), cols = inner + last_of(s);
        ref A = matrix_of(s, rows, inner, f64, 5), B = matrix_of(s, inner, cols, f64, 6);
        ref want = ref_product(&A.view, &B.view);
        limits_give(ctx, &A, &B, &want, "stencil", 4 << 20);
        ref_free(&want);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(rows_of_c_of_every_length), TEST(stencils_in_every_type), TEST(lines_that_are_nearly_the_same),
          TEST(nothing_is_touched_behind_the_last_entry), TEST(small_limits))
