/* SPDX-License-Identifier: MIT
 *
 * stencil_help.h - for tests of rows that repeat the pattern of earlier ones: the number of such rows, the
 * same product by a plan, and arrays that end just before an inaccessible page. */
#ifndef STENCIL_HELP_H
#define STENCIL_HELP_H
#include <sys/mman.h>
#include <unistd.h>
#include "ways.h"

/* The number of rows of the last product that repeated the pattern of another. */
static inline int64_t rows_again(tulle_ctx *ctx)
{
    tulle_stats s;
    tulle_ctx_stats(ctx, &s);
    for (int k = 0; k < s.shares; k++)
        if (strcmp(s.share[k].name, "stencil") == 0) return s.share[k].rows;
    return 0;
}

static inline void plan_with(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                             const ref *want, const char *name)
{
    tulle_plan *plan = NULL;
    REQUIRE(tulle_plan_create(ctx, A, B, o, &plan) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    tulle_csr C = tulle_plan_pattern(plan);
    void *values = malloc((size_t)C.nnz * ref_value_size(C.val_type) + 1);
    for (int i = 0; i < 2; i++)
        CHECK(tulle_plan_run(plan, A->values, B->values, values) == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
    C.values = values;
    CHECK(ref_same(&C, &want->view, name), "%s", "the plan's values are wrong");
    free(values);
    tulle_plan_free(plan);
}

static inline void plan_is(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const ref *want, const char *name)
{
    plan_with(ctx, A, B, NULL, want, name);
}

/* A copy of an array that ends at the end of a page, before an inaccessible page. */
typedef struct guarded { char *map; size_t page, room; void *at; } guarded;

static inline guarded guard(const void *from, size_t bytes)
{
    guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    g.room = (bytes + g.page - 1) / g.page * g.page;
    g.map = mmap(NULL, g.room + g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect(g.map + g.room, g.page, PROT_NONE) != 0) abort();
    g.at = g.map + g.room - bytes;
    memcpy(g.at, from, bytes);
    return g;
}

static inline void unguard(guarded g)
{
    munmap(g.map, g.room + g.page);
}

#endif
