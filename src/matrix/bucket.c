/* SPDX-License-Identifier: MIT
 *
 * bucket.c - where each entry goes in a stable counting sort by key, for several threads at once.
 *
 * The entries are cut into parts; every part counts its keys; then for each key the parts stand one
 * behind another, so that the order within a bucket is the order of the entries whatever the number of
 * parts.  Used by the transpose (key: column) and by coordinates (key: row).
 *
 * Memory: 8 bytes a bucket and part.  There are never more parts than entries per bucket, so that this
 * stays below 8 bytes an entry (or 8 bytes a bucket, with one part). */
#include "matrix/parts.h"

typedef struct job {
    const void *keys;
    tulle_index key_type, ptr_type;
    int64_t     count, buckets;
    void       *row_ptr;
    int         parts;
    int64_t    *next;
    int64_t    *total;                  /* entries in the buckets of each part; then before them */
} job;

TL_INLINE void count_part(const job *j, tulle_index type, int64_t *seen, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) seen[tl_get(j->keys, type, k)]++;
}

static void count_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    int64_t *seen = j->next + thread * j->buckets;
    int64_t from = tl_part(j->count, thread, threads), to = tl_part(j->count, thread + 1, threads);
    memset(seen, 0, (size_t)j->buckets * sizeof *seen);
    if (j->key_type == TULLE_I32) count_part(j, TULLE_I32, seen, from, to);
    else count_part(j, TULLE_I64, seen, from, to);
}

static void total_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    int64_t from = tl_part(j->buckets, thread, threads), to = tl_part(j->buckets, thread + 1, threads);
    int64_t sum = 0;
    for (int p = 0; p < j->parts; p++)
        for (int64_t c = from; c < to; c++) sum += j->next[p * j->buckets + c];
    j->total[thread] = sum;
}

static void place_work(void *arg, int thread, int threads)
{
    const job *j = arg;
    int64_t from = tl_part(j->buckets, thread, threads), to = tl_part(j->buckets, thread + 1, threads);
    int64_t at = j->total[thread];
    for (int64_t c = from; c < to; c++) {
        tl_put(j->row_ptr, j->ptr_type, c, at);
        for (int p = 0; p < j->parts; p++) {
            int64_t *next = &j->next[p * j->buckets + c], count = *next;
            *next = at;
            at += count;
        }
    }
}

tulle_status tl_buckets_create(tl_base *b, const void *keys, tulle_index key_type, int64_t count,
                               int64_t buckets, void *row_ptr, tulle_index ptr_type, tl_buckets *out)
{
    tulle_status status = TULLE_OK;
    int parts = tl_threads_for(b, 0, count);
    if (buckets > 0 && count / buckets < parts) parts = count / buckets < 1 ? 1 : (int)(count / buckets);
    job j = {.keys = keys, .key_type = key_type, .ptr_type = ptr_type, .count = count,
             .buckets = buckets, .row_ptr = row_ptr, .parts = parts};
    uint64_t counters = 0;
    *out = (tl_buckets){.parts = parts};
    if (!tl_mul_fits((uint64_t)buckets, (uint64_t)parts, &counters) || counters > INT64_MAX)
        counters = INT64_MAX;                           /* the allocation says so */
    TRY(tl_alloc(b, &j.next, (int64_t)counters, sizeof *j.next, "counters of a transpose or sort"));
    TRY(tl_alloc(b, &j.total, parts, sizeof *j.total, "counters of a transpose or sort"));
    tl_team_run(b->team, parts, count_work, &j);
    tl_team_run(b->team, parts, total_work, &j);
    int64_t before = 0;
    for (int t = 0; t < parts; t++) {
        int64_t total = j.total[t];
        j.total[t] = before;
        before += total;
    }
    tl_team_run(b->team, parts, place_work, &j);
    tl_put(row_ptr, ptr_type, buckets, count);
    out->next = j.next;
    j.next = NULL;
done:
    tl_free(b, j.total);
    tl_free(b, j.next);
    return status;
}
