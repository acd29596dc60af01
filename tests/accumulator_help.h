/* SPDX-License-Identifier: MIT
 *
 * accumulator_help.h - for tests of one accumulator: the number of rows that it computed, arrays that end just
 * before an inaccessible page, the same product by a plan and under memory limits. */
#ifndef ACCUMULATOR_HELP_H
#define ACCUMULATOR_HELP_H
#include <sys/mman.h>
#include <unistd.h>
#include "ways.h"

/* The number of rows of the last product that this accumulator computed. */
static inline int64_t rows_by(tulle_ctx *ctx, const char *accumulator)
{
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    for (int k = 0; k < s.shares; k++)
        if (strcmp(s.share[k].name, accumulator) == 0) return s.share[k].rows;
    return 0;
}

/* A copy of an array, or zeros if from is NULL, that ends at the end of a page, before an inaccessible page. */
typedef struct guarded { char *map; size_t page, room; void *at; } guarded;

static inline guarded guard(const void *from, size_t bytes)
{
    guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    g.room = (bytes + g.page - 1) / g.page * g.page;
    g.map = mmap(NULL, g.room + g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect(g.map + g.room, g.page, PROT_NONE) != 0) abort();
    g.at = g.map + g.room - bytes;
    if (from) memcpy(g.at, from, bytes);
    return g;
}

static inline void unguard(guarded g)
{
    munmap(g.map, g.room + g.page);
}

/* The product by a plan, which writes nothing behind the last value. */
static inline void plan_is(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                           const ref *want, const char *name)
{
    tulle_plan *plan = NULL;
    REQUIRE(tulle_plan_create(ctx, A, B, o, &plan) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    tulle_csr C = tulle_plan_pattern(plan);
    guarded values = guard(NULL, (size_t)C.nnz * ref_value_size(C.val_type));
    for (int i = 0; i < 2; i++)
        CHECK(tulle_plan_run(plan, A->values, B->values, values.at) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    C.values = values.at;
    CHECK(ref_same(&C, &want->view, name), "%s", "the plan's values are wrong");
    unguard(values);
    tulle_plan_free(plan);
}

/* The product under limits from `most` bytes down to those that are refused. */
static inline void limits_give(tulle_ctx *ctx, const ref *A, const ref *B, const ref *want, const char *accumulator,
                               uint64_t most)
{
    int done = 0;
    for (uint64_t limit = most; limit > 1024; limit = limit / 4 * 3) {
        const tulle_options o = {.memory_limit = limit, .accumulator = accumulator};
        tulle_matrix *C = NULL;
        if (tulle_multiply(ctx, &A->view, &B->view, &o, &C) != TULLE_OK) continue;
        tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, &want->view, "limit"), "limit %" PRIu64, limit);
        tulle_matrix_free(C);
        done++;
    }
    CHECK(done > 3, "%d limits were enough", done);
}

#endif
