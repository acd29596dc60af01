/* SPDX-License-Identifier: MIT
 *
 * test_repeat.c - products whose rows have the patterns of earlier rows, as in multigrid: rows of C of every
 * width that fits in registers and of larger ones, patterns that are nearly the same, plans, dropped zeros,
 * the end of B.  Results are compared bit for bit. */
#define _GNU_SOURCE
#include "accumulator_help.h"

enum { ROWS = 180 };

/* The number of entries of rows of A; the maximum for rows of B. */
typedef struct rows_of { int64_t entries, longest; const char *name; } rows_of;

static const rows_of shapes[] = {
    {7, 1, "one entry a row of B"},
    {7, 3, "up to 8 entries of C"},
    {12, 4, "up to 16 entries of C"},
    {30, 8, "up to 32 entries of C"},
    {50, 8, "more entries of C than registers hold"},
    {20, 12, "longer rows of B"},
    {130, 2, "many entries of A"},
    {120, 8, "too many products to be remembered"},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, REMEMBERED = SHAPES - 1 };

/* How some rows differ from the pattern. */
typedef enum { NOTHING, LAST_COLUMN, FIRST_COLUMN, SHORTER, LONGER, EMPTY, ENTRY_OF_A, FEWER_IN_A, BREAKS } breach;

static bool odd_row(breach b, breach wanted, int64_t i)
{
    return b == wanted && i % 23 == 11;
}

/* Row i has columns i, i + 1, ...: A shifts by one column per row, ... */
static ref left(rows_of s, breach b, ref_types t)
{
    int64_t at = 0;
    ref A = ref_new(ROWS, ROWS + s.entries, ROWS * s.entries, t);
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t n = s.entries - odd_row(b, FEWER_IN_A, i);
        for (int64_t k = 0; k < n; k++) ref_set_col(&A, at++, i + k + (k == n - 1 && odd_row(b, ENTRY_OF_A, i)));
        ref_set_ptr(&A, i + 1, at);
    }
    A.view.nnz = at;
    ref_fill(&A, REF_REALS, 5);
    return A;
}

/* ... and B by two columns per three rows. */
static ref right(rows_of s, breach b, ref_types t)
{
    const int64_t rows = ROWS + s.entries;
    int64_t at = 0;
    ref B = ref_new(rows, rows + 2 * s.longest + 8, rows * (s.longest + 1), t);
    for (int64_t j = 0; j < rows; j++) {
        int64_t n = s.longest - (s.longest > 1 && j % 3 == 1), first = j / 3 * 2;
        if (odd_row(b, SHORTER, j)) n--;
        if (odd_row(b, LONGER, j)) n++;
        if (odd_row(b, EMPTY, j)) n = 0;
        for (int64_t k = 0; k < n; k++)
            ref_set_col(&B, at++, first + k + (k == n - 1 && odd_row(b, LAST_COLUMN, j))
                        - (k == 0 && first > 0 && odd_row(b, FIRST_COLUMN, j)));
        ref_set_ptr(&B, j + 1, at);
    }
    B.view.nnz = at;
    ref_fill(&B, REF_REALS, 6);
    return B;
}

/* Arrays of exactly the needed length, so that a sanitizer detects accesses beyond the end. */
static ref exact(ref A, ref_types t)
{
    ref copy = ref_copy(&A.view, t);
    ref_free(&A);
    return copy;
}

static void try_one(tulle_ctx *ctx, int shape, breach b, ref_types t)
{
    static const tulle_options drop = {.drop_zeros = 1}, stencil = {.accumulator = "stencil"};
    ref A = exact(left(shapes[shape], b, t), t), B = exact(right(shapes[shape], b, t), t);
    ref want = ref_product(&A.view, &B.view), kept = ref_without_zeros(&want.view);
    char name[128];
    snprintf(name, sizeof name, "%s, %s, breach %d", shapes[shape].name, ref_types_name(t), (int)b);
    product_is(ctx, &A.view, &B.view, NULL, &want.view, name);
    int64_t again = rows_by(ctx, "stencil");
    if (b == NOTHING && shape < REMEMBERED) CHECK(again > ROWS * 9 / 10, "%s: %" PRId64 " rows again", name, again);
    if (b == NOTHING && shape >= REMEMBERED) CHECK(again == 0, "%s: %" PRId64 " rows again", name, again);
    product_is(ctx, &A.view, &B.view, &stencil, &want.view, name);
    product_is(ctx, &A.view, &B.view, &drop, &kept.view, name);
    plan_is(ctx, &A.view, &B.view, NULL, &want, name);
    ref_free(&want);
    ref_free(&kept);
    ref_free(&A);
    ref_free(&B);
}

static void every_width_in_every_type(void)
{
    tulle_ctx *ctx = ctx_with(1);
    for (int shape = 0; shape < SHAPES; shape++)
        for (int i = 0; i < REF_TYPES; i += shape < 4 ? 1 : 5) try_one(ctx, shape, NOTHING, ref_types_at(i));
    tulle_ctx_free(ctx);
}

/* A row that differs from the pattern in one position must not be mistaken for it. */
static void rows_that_are_nearly_the_same(void)
{
    static const ref_types types[] = {{TULLE_F64, TULLE_I32, TULLE_I32}, {TULLE_F32, TULLE_I64, TULLE_I64},
                                      {TULLE_CF64, TULLE_I32, TULLE_I32}};
    tulle_ctx *ctx = ctx_with(1);
    for (int shape = 0; shape < SHAPES; shape++)
        for (int b = NOTHING + 1; b < BREAKS; b++) {
            try_one(ctx, shape, (breach)b, types[0]);
            try_one(ctx, shape, (breach)b, types[1 + (shape + b) % 2]);
        }
    tulle_ctx_free(ctx);
}

/* Rows of B are read as vectors, but nothing after the last row. */
static void nothing_is_read_behind_the_last_entry_of_b(void)
{
    static const ref_types types[] = {{TULLE_F64, TULLE_I32, TULLE_I32}, {TULLE_F32, TULLE_I64, TULLE_I64},
                                      {TULLE_F64, TULLE_I64, TULLE_I32}, {TULLE_F32, TULLE_I32, TULLE_I32}};
    tulle_ctx *ctx = ctx_with(1);
    for (int shape = 0; shape < REMEMBERED; shape++)
        for (int i = 0; i < 4; i++) {
            ref A = left(shapes[shape], NOTHING, types[i]), B = right(shapes[shape], NOTHING, types[i]);
            ref want = ref_product(&A.view, &B.view);
            guarded col = guard(B.view.col_idx, (size_t)B.view.nnz * ref_index_size(B.view.idx_type));
            guarded val = guard(B.view.values, (size_t)B.view.nnz * ref_value_size(B.view.val_type));
            tulle_csr b = B.view;
            b.col_idx = col.at;
            b.values = val.at;
            product_is(ctx, &A.view, &b, NULL, &want.view, shapes[shape].name);
            unguard(col);
            unguard(val);
            ref_free(&want);
            ref_free(&A);
            ref_free(&B);
        }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_width_in_every_type), TEST(rows_that_are_nearly_the_same),
          TEST(nothing_is_read_behind_the_last_entry_of_b))
