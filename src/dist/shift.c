/* SPDX-License-Identifier: MIT
 *
 * shift.c - adds a number to indices, from any type to any, with a specialised loop for each pair of types;
 * the same, and plain copies, with the threads of a context: a single one cannot use the memory bandwidth of
 * a rank with many cores. */
#include "dist/dist.h"
#include "matrix/parts.h"

void tl_shift(const void *from, tulle_index from_type, void *to, tulle_index to_type, int64_t count,
              int64_t by)
{
#define SHIFT(FROM, TO)                                                                           \
    do {                                                                                          \
        const FROM *in = from;                                                                    \
        TO *out = to;                                                                             \
        for (int64_t k = 0; k < count; k++) out[k] = (TO)((uint64_t)in[k] + (uint64_t)by);        \
    } while (0)
    if (from_type == TULLE_I32 && to_type == TULLE_I32) SHIFT(int32_t, int32_t);
    else if (from_type == TULLE_I32) SHIFT(int32_t, int64_t);
    else if (to_type == TULLE_I32) SHIFT(int64_t, int32_t);
    else SHIFT(int64_t, int64_t);
#undef SHIFT
}

typedef struct job {
    const char *from;
    char       *to;
    tulle_index from_type, to_type;
    int64_t     count, by;
    size_t      item;                   /* of plain copies; 0: indices */
} job;

static void work(void *arg, int thread, int threads)
{
    job *j = arg;
    int64_t first = tl_part(j->count, thread, threads);
    int64_t count = tl_part(j->count, thread + 1, threads) - first;
    size_t in = j->item ? j->item : tl_index_size(j->from_type);
    size_t out = j->item ? j->item : tl_index_size(j->to_type);
    const char *from = j->from + first * (int64_t)in;
    char *to = j->to + first * (int64_t)out;
    if (count == 0) return;
    if (j->item) memcpy(to, from, (size_t)count * in);
    else tl_shift(from, j->from_type, to, j->to_type, count, j->by);
}

void tl_team_shift(tl_base *b, const void *from, tulle_index from_type, void *to, tulle_index to_type,
                   int64_t count, int64_t by)
{
    job j = {.from = from, .to = to, .from_type = from_type, .to_type = to_type, .count = count, .by = by};
    tl_team_run(b->team, tl_threads_for(b, 0, count), work, &j);
}

void tl_team_copy(tl_base *b, const void *from, void *to, int64_t count, size_t item)
{
    job j = {.from = from, .to = to, .count = count, .item = item};
    if (count > 0) tl_team_run(b->team, tl_threads_for(b, 0, count), work, &j);
}
