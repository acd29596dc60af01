/* SPDX-License-Identifier: MIT
 * trial.c - the benchmark of a merge algorithm: checks the options and fills in defaults. */
#include "ctx.h"
#include <inttypes.h>
#include <string.h>

enum { RUNS = 5 };

static const int64_t ENTRIES_MOST = (int64_t)1 << 36;

static tulle_status algorithm_of(tl_base *b, const char *name, int *algorithm)
{
    for (int i = 0; tulle_merge_name(i); i++)
        if (name && strcmp(name, tulle_merge_name(i)) == 0) {
            *algorithm = i;
            return TULLE_OK;
        }
    return tl_fail(b, TULLE_EINVAL, "there is no merge algorithm \"%s\"; tulle_merge_name() lists them",
                   name ? name : "");
}

static bool power_between(int x, int least, int most)
{
    return x >= least && x <= most && (x & (x - 1)) == 0;
}

static tulle_status look(tl_base *b, const tulle_merge_options *o)
{
    tulle_status status = TL_RESERVED_CHECK(b, "merge options", o);
    if (status != TULLE_OK) return status;
    if (o->value_bytes != 0 && o->value_bytes != 4 && o->value_bytes != 8)
        return tl_fail(b, TULLE_EINVAL, "values of %d bytes: they may have 0, 4 or 8", o->value_bytes);
    if (!power_between(o->length, TL_MERGE_LEAST, TL_MERGE_MOST))
        return tl_fail(b, TULLE_EINVAL, "sequences of %d entries: it may be a power of two from %d to %d",
                       o->length, TL_MERGE_LEAST, TL_MERGE_MOST);
    if (o->entries < 0 || o->entries > ENTRIES_MOST || o->entries % (2 * o->length))
        return tl_fail(b, TULLE_EINVAL, "%" PRId64 " entries are no pairs of sequences of %d", o->entries,
                       o->length);
    if (o->runs < 0 || o->runs > TL_MERGE_RUNS)
        return tl_fail(b, TULLE_EINVAL, "%d runs: it may be 1 to %d, or 0 for %d", o->runs, TL_MERGE_RUNS,
                       RUNS);
    if (o->threads && !power_between(o->threads, TL_MERGE_THREADS_MIN, TL_MERGE_THREADS_MAX))
        return tl_fail(b, TULLE_EINVAL,
                       "blocks of %d threads: it may be a power of two from %d to %d, or 0 for the best",
                       o->threads, TL_MERGE_THREADS_MIN, TL_MERGE_THREADS_MAX);
    return TULLE_OK;
}

tulle_status tl_merge_trial(tulle_ctx *ctx, const tulle_merge_options *o, tulle_merge_result *result)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_merge_request r = {.value_bytes = o->value_bytes, .length = (uint32_t)o->length,
                          .entries = (uint64_t)o->entries, .runs = o->runs ? o->runs : RUNS,
                          .threads = (uint32_t)o->threads, .input = TL_MERGE_RANDOM};
    TRY(algorithm_of(b, o->algorithm, &r.algorithm));
    TRY(look(b, o));
    TRY(ctx->engine->merge(ctx, &r, result));
done:
    return status;
}
