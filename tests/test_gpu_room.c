/* SPDX-License-Identifier: MIT
 *
 * test_gpu_room.c - a limit that blocks on a device refuse names what all of them need: raised to that number,
 * the call goes through, however the rows differ. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

static int count_rows(void *user, int64_t first_row, const tulle_csr *block)
{
    int64_t *rows = user;
    *rows = first_row == *rows ? *rows + block->rows : -1;
    return 0;
}

/* Rows of C that grow from the first to the last, that shrink, and one among many that is long. */
static pair rows_that(int i)
{
    ref B = ref_random(31, 300, 4000, 30, REF_INTEGERS, f64);
    if (i == 2) return (pair){full_row_and_singles(40, 300, 31, REF_INTEGERS, f64), B, "one long row"};
    ref A = ref_new(40, 300, 40 * 41 / 2, f64);
    int64_t at = 0;
    for (int64_t row = 0; row < 40; row++) {
        int64_t length = i == 0 ? row + 1 : 40 - row;
        for (int64_t k = 0; k < length; k++) ref_set_col(&A, at++, 7 * k);
        ref_set_ptr(&A, row + 1, at);
    }
    ref_fill(&A, REF_INTEGERS, 32);
    return (pair){A, B, i == 0 ? "rows that grow" : "rows that shrink"};
}

static void a_refusal_names_what_all_blocks_need(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 3; i++) {
        pair p = rows_that(i);
        tulle_options o = {.memory_limit = 1};
        int64_t rows = 0;
        CHECK(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, count_rows, &rows) == TULLE_ELIMIT,
              "%s: one byte", p.name);
        const char *number = strpbrk(tulle_ctx_error(ctx), "0123456789");
        REQUIRE(number, "%s: \"%s\"", p.name, tulle_ctx_error(ctx));
        o.memory_limit = strtoull(number, NULL, 10);
        for (uint64_t limit = o.memory_limit; limit > o.memory_limit / 8; limit -= limit / 4) {
            tulle_options less = {.memory_limit = limit};
            rows = 0;
            tulle_status status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &less, count_rows, &rows);
            if (limit == o.memory_limit)
                CHECK(status == TULLE_OK && rows == p.A.view.rows, "%s: %s", p.name, tulle_ctx_error(ctx));
            if (status == TULLE_OK) continue;
            number = strpbrk(tulle_ctx_error(ctx), "0123456789");
            less.memory_limit = number ? strtoull(number, NULL, 10) : 0;
            rows = 0;
            CHECK(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &less, count_rows, &rows) == TULLE_OK,
                  "%s: %" PRIu64 " were asked for, then: %s", p.name, less.memory_limit, tulle_ctx_error(ctx));
        }
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(a_refusal_names_what_all_blocks_need))
