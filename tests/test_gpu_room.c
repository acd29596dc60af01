/* SPDX-License-Identifier: MIT
 *
 * test_gpu_room.c - if blocks on a device are refused, the message has the memory that is sufficient for all
 * of them, for any distribution of row lengths. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"

static int count_rows(void *user, int64_t first_row, const tulle_csr *block)
{
    int64_t *rows = user;
    *rows = first_row == *rows ? *rows + block->rows : -1;
    return 0;
}

/* Rows of C of increasing length, of decreasing length, and one long row among short ones. */
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

static uint64_t asked_for(tulle_ctx *ctx)
{
    const char *number = strpbrk(tulle_ctx_error(ctx), "0123456789");
    return number ? strtoull(number, NULL, 10) : 0;
}

/* Blocks with a limit, and with the numbers of error messages, of which the third is sufficient.  The first
 * may cover only A and B on the device, the second also the analysis. */
static void climb(tulle_ctx *ctx, const pair *p, uint64_t limit, uint64_t *enough)
{
    tulle_status status = TULLE_ELIMIT;
    for (int step = 0; step < 4 && status == TULLE_ELIMIT; step++) {
        tulle_options o = {.memory_limit = limit};
        int64_t rows = 0;
        status = tulle_multiply_blocks(ctx, &p->A.view, &p->B.view, &o, count_rows, &rows);
        CHECK(status == TULLE_ELIMIT || (status == TULLE_OK && rows == p->A.view.rows), "%s, limit %" PRIu64 ": %s",
              p->name, limit, tulle_ctx_error(ctx));
        *enough = limit;
        if (status == TULLE_ELIMIT) limit = asked_for(ctx);
    }
    CHECK(status == TULLE_OK, "%s: %s", p->name, tulle_ctx_error(ctx));
}

static void a_refusal_names_what_all_blocks_need(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 3; i++) {
        pair p = rows_that(i);
        uint64_t most = 0, enough = 0;
        climb(ctx, &p, 1, &most);
        CHECK(most > 1, "%s: one byte was enough", p.name);
        for (uint64_t limit = most; limit > most / 8; limit -= limit / 4) climb(ctx, &p, limit, &enough);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(a_refusal_names_what_all_blocks_need))
