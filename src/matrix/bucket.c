/* SPDX-License-Identifier: MIT
 *
 * bucket.c - the positions of entries in a stable counting sort by key, for several threads at once.
 *
 * The entries are cut into parts; every part counts its keys; then a prefix sum over parts and keys gives
 * each part its own range in each bucket.  So the order within a bucket is that of the entries, whatever the
 * number of parts.  Used by the transpose (key: column) and by coordinates (key: row).
 *
 * Memory: 8 bytes per bucket and part.  There are never more parts than entries per bucket, so that this
 * stays below 8 bytes per entry.  A single part needs no memory: the row pointers of the result serve as its
 * counters, then as the next free position of each bucket, and are shifted by one bucket at the end. */
#include "matrix/parts.h"

typedef struct job {
    const void *keys;
    tulle_index key_type, ptr_type;
    int64_t     count, buckets;
    void       *row_ptr;
    int         parts;
    int64_t    *next;
    int64_t    *total;                  /* entries in each part's range of buckets; then a prefix sum */
} job;

static int parts_for(const tl_base *b, int64_t count, int64_t buckets)
{
    int parts = tl_threads_for(b, 0, count);
    if (buckets > 0 && count / buckets < parts) parts = count / buckets < 1 ? 1 : (int)(count / buckets);
    return parts;
}

uint64_t tl_buckets_bytes(const tl_base *b, int64_t count, int64_t buckets)
{
    int parts = parts_for(b, count, buckets);
    return parts == 1 ? 0 : tl_bytes_of((uint64_t)parts, ((uint64_t)buckets + 1) * sizeof(int64_t));
}

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

/* One part: counts and positions are kept in row_ptr. */
static void count_in_place(const job *j)
{
    int64_t at = 0;
    memset(j->row_ptr, 0, (size_t)j->buckets * tl_index_size(j->ptr_type));
    for (int64_t k = 0; k < j->count; k++)
        tl_bucket_take(j->row_ptr, j->ptr_type, tl_get(j->keys, j->key_type, k));
    for (int64_t c = 0; c < j->buckets; c++) {
        int64_t count = tl_get(j->row_ptr, j->ptr_type, c);
        tl_put(j->row_ptr, j->ptr_type, c, at);
        at += count;
    }
}

tulle_status tl_buckets_create(tl_base *b, const void *keys, tulle_index key_type, int64_t count,
                               int64_t buckets, void *row_ptr, tulle_index ptr_type, tl_buckets *out)
{
    tulle_status status = TULLE_OK;
    int parts = parts_for(b, count, buckets);
    job j = {.keys = keys, .key_type = key_type, .ptr_type = ptr_type, .count = count,
             .buckets = buckets, .row_ptr = row_ptr, .parts = parts};
    *out = (tl_buckets){.parts = parts, .buckets = buckets, .row_ptr = row_ptr, .ptr_type = ptr_type,
                        .type = parts == 1 ? ptr_type : TULLE_I64};
    tl_put(row_ptr, ptr_type, buckets, count);
    if (parts == 1) {
        count_in_place(&j);
        return TULLE_OK;
    }
    TRY(tl_alloc(b, &j.next, parts * buckets, sizeof *j.next, "counters of a transpose or sort"));
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
    out->counters = j.next;
    j.next = NULL;
done:
    tl_free(b, j.total);
    tl_free(b, j.next);
    return status;
}

void tl_buckets_close(tl_base *b, tl_buckets *x)
{
    size_t size = tl_index_size(x->ptr_type);
    /* each element is now the end of its bucket, which is the beginning of the next */
    if (x->parts == 1 && x->row_ptr && x->buckets > 0) {
        memmove((char *)x->row_ptr + size, x->row_ptr, (size_t)(x->buckets - 1) * size);
        tl_put(x->row_ptr, x->ptr_type, 0, 0);
    }
    tl_free(b, x->counters);
    *x = (tl_buckets){0};
}
