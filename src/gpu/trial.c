/* SPDX-License-Identifier: MIT
 *
 * trial.c - checks and times the merge algorithms of kernels/merges.cl on a device: Figure 4 of bhSPARSE
 * (Liu and Vinter, IPDPS 2014).
 *
 * Each block merges two sorted sequences of its own.  The host generates at most PERIOD entries, which the
 * device repeats up to the requested number; so it suffices to check the first and the last PERIOD entries of
 * the result, which is done after every block size.  The time of a block size is the median of its runs by
 * the device's clock; the fastest block size is reported.
 *
 * Device memory: twice the entries, each with a key of 4 bytes and its value.  Host memory: the same for
 * PERIOD entries. */
#include "gpu/engine.h"
#include "gpu/product.h"
#include <inttypes.h>
#include <string.h>

enum { PERIOD = 1 << 20, MOST_PAIR = 2 * TL_MERGE_MOST };

static const struct {
    const char  *name;
    tl_kernel_id kernel;
    uint32_t     copies;                /* copies of the entries in shared memory      */
} algorithms[] = {
    {"ranking",          TL_K_MERGE_RANKING,          2},
    {"merge-path",       TL_K_MERGE_PATH,             1},
    {"odd-even",         TL_K_MERGE_ODDEVEN,          1},
    {"bitonic",          TL_K_MERGE_BITONIC,          1},
    {"advanced-bitonic", TL_K_MERGE_BITONIC_ADVANCED, 1},
};

const char *tulle_merge_name(int i)
{
    return i >= 0 && i < TL_COUNT(algorithms) ? algorithms[i].name : NULL;
}

/* ---- entries.  The value of an entry is its position in its pair of sequences, so that all values
 * differ. */

static uint32_t next(uint64_t *state)   /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

static uint32_t key_of(tl_merge_input input, uint32_t i, uint32_t length, uint32_t before, uint64_t *state)
{
    uint32_t half = i >= length, at = i - half * length;
    switch (input) {
    case TL_MERGE_EQUAL:       return UINT32_MAX;
    case TL_MERGE_APART:       return i;
    case TL_MERGE_SWAPPED:     return UINT32_MAX - 2 * length + 1 + at + (1 - half) * length;
    case TL_MERGE_INTERLEAVED: return 2 * at + half;
    case TL_MERGE_RANDOM:      break;
    }
    return at == 0 ? next(state) % length : before + next(state) % 4;
}

void tl_merge_fill(tl_merge_input input, uint32_t length, int value_bytes, uint64_t count, uint32_t *key,
                   void *val)
{
    uint64_t state = 2014 + length;
    uint32_t k = 0;
    for (uint64_t at = 0; at < count; at++) {
        uint32_t i = (uint32_t)(at % (2 * length));
        key[at] = k = key_of(input, i, length, k, &state);
        if (value_bytes == 4) ((float *)val)[at] = (float)i;
        if (value_bytes == 8) ((double *)val)[at] = (double)i;
    }
}

/* The position given by a value; `most` if it is invalid. */
static uint32_t place_of(const void *val, int value_bytes, uint64_t at, uint32_t most)
{
    double x = value_bytes == 4 ? (double)((const float *)val)[at] : ((const double *)val)[at];
    return x >= 0 && x < most && x == (uint32_t)x ? (uint32_t)x : most;
}

/* Checks one pair; returns the first wrong entry of the result, -1 if there is none. */
static int64_t check_pair(uint32_t length, int value_bytes, const uint32_t *key, const uint32_t *key_to,
                          const void *val_to, uint64_t first)
{
    uint8_t seen[MOST_PAIR];
    uint32_t a = 0, b = length, both = 2 * length;
    memset(seen, 0, both);
    for (uint32_t i = 0; i < both; i++) {
        uint32_t k = b >= both || (a < length && key[a] <= key[b]) ? key[a++] : key[b++];
        if (key_to[i] != k) return i;
        if (value_bytes == 0) continue;
        uint32_t p = place_of(val_to, value_bytes, first + i, both);
        if (p == both || seen[p] || key[p] != k) return i;
        seen[p] = 1;
    }
    return -1;
}

tulle_status tl_merge_check(tl_base *b, const tl_merge_request *r, uint64_t count, const uint32_t *key,
                            const uint32_t *key_to, const void *val_to)
{
    for (uint64_t first = 0; first < count; first += 2 * r->length) {
        int64_t i = check_pair(r->length, r->value_bytes, key + first, key_to + first, val_to, first);
        if (i < 0) continue;
        return tl_fail(b, TULLE_ECHECK,
                       "%s, two sequences of %u keys with values of %d bytes, %u threads: entry %" PRId64
                       " of pair %" PRIu64 " is wrong (key %u)",
                       algorithms[r->algorithm].name, r->length, r->value_bytes, r->threads, i,
                       first / (2 * r->length), key_to[first + (uint64_t)i]);
    }
    return TULLE_OK;
}

/* ---- runs */

typedef struct trial {
    tl_base                *b;
    tl_gpu                 *gpu;
    tl_merge_request        r;          /* threads: the current block size            */
    tl_types                types;
    uint32_t                shared;
    uint64_t                period;     /* entries generated by the host              */
    uint32_t               *key, *key_to;
    void                   *val, *val_to;
    tl_dmem                 from_key, from_val, to_key, to_val;
} trial;

/* Entries per thread; for all algorithms limited by the registers of merge_path (MERGE_ITEMS). */
static uint32_t items_most(const tl_merge_request *r)
{
    return r->value_bytes ? 16 : 32;
}

static bool possible(const trial *t, uint32_t threads)
{
    uint32_t items = 2 * t->r.length / threads;
    return threads <= t->gpu->caps.threads_block && items >= 1 && items <= items_most(&t->r);
}

/* On a CPU threads are a loop, so two block sizes that work for every length are sufficient. */
static bool worth_it(const trial *t, uint32_t threads)
{
    return possible(t, threads) && (!t->gpu->caps.cpu || threads == 64 || threads == 512);
}

static tulle_status begin(trial *t)
{
    tulle_status status = TULLE_OK;
    tl_base *b = t->b;
    const tl_merge_request *r = &t->r;
    const tl_driver *d = t->gpu->driver;
    uint64_t entries = r->entries, period = t->period, value = (uint64_t)r->value_bytes;
    TRY(tl_gpu_need(b, t->gpu, t->types, &algorithms[r->algorithm].kernel, 1));
    TRY(tl_alloc(b, &t->key, (int64_t)period, 4, "keys to merge"));
    TRY(tl_alloc(b, &t->key_to, (int64_t)period, 4, "merged keys"));
    TRY(tl_dmem_alloc(b, t->gpu, entries * 4, "keys to merge", &t->from_key));
    TRY(tl_dmem_alloc(b, t->gpu, entries * 4, "merged keys", &t->to_key));
    if (value) {
        TRY(tl_alloc(b, &t->val, (int64_t)period, value, "values to merge"));
        TRY(tl_alloc(b, &t->val_to, (int64_t)period, value, "merged values"));
        TRY(tl_dmem_alloc(b, t->gpu, entries * value, "values to merge", &t->from_val));
        TRY(tl_dmem_alloc(b, t->gpu, entries * value, "merged values", &t->to_val));
    }
    tl_merge_fill(r->input, r->length, r->value_bytes, period, t->key, t->val);
    TRY(d->upload(b, t->gpu->device, t->from_key, t->key, period * 4));
    if (value) TRY(d->upload(b, t->gpu->device, t->from_val, t->val, period * value));
    for (uint64_t have = period; have < entries; have *= 2) {
        uint64_t more = entries - have < have ? entries - have : have;
        TRY(d->copy(b, t->gpu->device, (tl_dmem){t->from_key.handle, have * 4}, t->from_key, more * 4));
        if (value)
            TRY(d->copy(b, t->gpu->device, (tl_dmem){t->from_val.handle, have * value}, t->from_val,
                        more * value));
    }
done:
    return status;
}

static tulle_status launch(trial *t)
{
    const tl_arg keys[] = {TL_U32(t->r.length), TL_MEM(t->from_key), TL_MEM(t->to_key)};
    const tl_arg pairs[] = {TL_U32(t->r.length), TL_MEM(t->from_key), TL_MEM(t->from_val), TL_MEM(t->to_key),
                            TL_MEM(t->to_val)};
    tl_launch l = {.blocks = t->r.entries / (2 * t->r.length),
                   .threads = t->r.threads,
                   .shared = t->shared,
                   .count = t->r.value_bytes ? TL_COUNT(pairs) : TL_COUNT(keys),
                   .args = t->r.value_bytes ? pairs : keys};
    return t->gpu->driver->launch(t->b, t->gpu->device,
                                  tl_gpu_kernel(t->gpu, t->types, algorithms[t->r.algorithm].kernel), &l);
}

/* Checks PERIOD entries of the result from `at` on, a multiple of the period. */
static tulle_status check_at(trial *t, uint64_t at)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = t->gpu->driver;
    uint64_t left = t->r.entries - at, count = left < t->period ? left : t->period,
             value = (uint64_t)t->r.value_bytes;
    TRY(d->download(t->b, t->gpu->device, t->key_to, (tl_dmem){t->to_key.handle, at * 4}, count * 4));
    if (value)
        TRY(d->download(t->b, t->gpu->device, t->val_to, (tl_dmem){t->to_val.handle, at * value},
                        count * value));
    TRY(d->wait(t->b, t->gpu->device));
    TRY(tl_merge_check(t->b, &t->r, count, t->key, t->key_to, t->val_to));
done:
    return status;
}

static double median(double *sec, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && sec[k] < sec[k - 1]; k--) {
            double x = sec[k];
            sec[k] = sec[k - 1];
            sec[k - 1] = x;
        }
    return count % 2 ? sec[count / 2] : 0.5 * (sec[count / 2 - 1] + sec[count / 2]);
}

/* Measures one block size: a warm-up run, the timed runs, and the check. */
static tulle_status measure(trial *t, double *seconds)
{
    tulle_status status = TULLE_OK;
    const tl_driver *d = t->gpu->driver;
    tl_device *device = t->gpu->device;
    double sec[TL_MERGE_RUNS];
    uint64_t last = (t->r.entries - 1) / t->period * t->period;
    TRY(d->fill(t->b, device, t->to_key, 0xff, t->r.entries * 4));
    if (t->r.value_bytes)
        TRY(d->fill(t->b, device, t->to_val, 0xff, t->r.entries * (uint64_t)t->r.value_bytes));
    TRY(launch(t));
    for (int i = 0; i < t->r.runs; i++) {
        TRY(d->mark(t->b, device, 0));
        TRY(launch(t));
        TRY(d->mark(t->b, device, 1));
        TRY(d->wait(t->b, device));
        TRY(d->elapsed(t->b, device, 0, 1, &sec[i]));
    }
    TRY(check_at(t, 0));
    if (last > 0) TRY(check_at(t, last));
    *seconds = median(sec, t->r.runs);
done:
    return status;
}

static tulle_status fits(tl_base *b, trial *t)
{
    const tl_merge_request *r = &t->r;
    uint32_t has = tl_dynamic_bytes(&t->gpu->caps);
    t->shared = algorithms[r->algorithm].copies * 2 * r->length * (4 + (uint32_t)r->value_bytes);
    if (t->shared > has)
        return tl_fail(b, TULLE_ELIMIT,
                       "%s, two sequences of %u keys with values of %d bytes: %u bytes of shared memory "
                       "are needed, a block of %s has %u",
                       algorithms[r->algorithm].name, r->length, r->value_bytes, t->shared, t->gpu->name,
                       has);
    for (uint32_t n = TL_MERGE_THREADS_MIN; n <= TL_MERGE_THREADS_MAX; n *= 2)
        if ((!r->threads || r->threads == n) && possible(t, n)) return TULLE_OK;
    return tl_fail(b, TULLE_ELIMIT,
                   "%s, two sequences of %u keys with values of %d bytes: a block would need %u to %u "
                   "threads; %s has %u at most",
                   algorithms[r->algorithm].name, r->length, r->value_bytes, 2 * r->length / items_most(r),
                   2 * r->length, t->gpu->name, t->gpu->caps.threads_block);
}

tulle_status tl_gpu_merge(tl_base *b, tl_gpu *gpu, const tl_merge_request *request,
                          tulle_merge_result *result)
{
    static const int types[] = {[0] = 0, [4] = TULLE_F32, [8] = TULLE_F64};
    tulle_status status = TULLE_OK;
    trial t = {.b = b, .gpu = gpu, .r = *request, .types = {.ptr = 32, .idx = 32, .key = 32}};
    memset(result, 0, sizeof *result);
    t.types.val = types[request->value_bytes];
    t.period = request->entries < PERIOD ? request->entries : PERIOD;
    TRY(fits(b, &t));
    TRY(begin(&t));
    for (uint32_t n = TL_MERGE_THREADS_MIN; n <= TL_MERGE_THREADS_MAX; n *= 2) {
        double seconds = 0;
        if (request->threads ? request->threads != n : !worth_it(&t, n)) continue;
        if (tl_progress(b, "merge", (double)n / TL_MERGE_THREADS_MAX)) {
            status = tl_fail(b, TULLE_ECANCEL, "cancelled");
            goto done;
        }
        t.r.threads = n;
        TRY(measure(&t, &seconds));
        if (result->threads && result->seconds <= seconds) continue;
        *result = (tulle_merge_result){.seconds = seconds,
                                       .entries = (int64_t)request->entries,
                                       .threads = (int)n,
                                       .shared_bytes = t.shared};
    }
    if (result->seconds > 0) result->rate = (double)request->entries / result->seconds;
done:
    if (status != TULLE_OK) memset(result, 0, sizeof *result);
    tl_dmem_free(gpu, t.from_key);
    tl_dmem_free(gpu, t.from_val);
    tl_dmem_free(gpu, t.to_key);
    tl_dmem_free(gpu, t.to_val);
    tl_free(b, t.key);
    tl_free(b, t.key_to);
    tl_free(b, t.val);
    tl_free(b, t.val_to);
    return status;
}
