/* SPDX-License-Identifier: MIT
 *
 * several.c - opens several devices by their names, and runs all of them at once.
 *
 * Each device ("part") has a thread of its own in a separate thread pool.  The caller's thread monitors them:
 * it alone calls the caller's progress function, and passes a cancellation on by a flag that the parts' own
 * progress functions read.  The first part that fails sets the same flag.  The context's threads are divided
 * among its CPU parts, so that each core has one thread; a GPU part needs only one, which waits for the GPU.
 * Trace lines of the parts are collected, and passed on by the caller's thread when all are done.
 *
 * The pool of freed memory is shared by all parts. */
#include "several.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening */

enum { NAME_BYTES = 64 };

/* The next name of the list; advances *devices. */
static bool next_name(const char **devices, char *name, size_t bytes)
{
    size_t n = strcspn(*devices, ",");
    bool fits = n > 0 && n < bytes;
    snprintf(name, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), *devices);
    *devices += n + ((*devices)[n] == ',');
    return fits;
}

static const char *why_not(const char *name)
{
    if (!name[0]) return "no name";
    return strchr(name, '/') ? "more than one device" : "a name too long for a device";
}

static tulle_status open_part(tulle_ctx *ctx, const char *devices, const char *name, int count)
{
    tl_several *v = ctx->several;
    char why[TL_ERROR_MAX];
    tulle_status status = tl_ctx_create(name, &ctx->base.mem, &v->part[v->count], why, sizeof why);
    if (status != TULLE_OK)
        return tl_fail(&ctx->base, status, "device %d of %d in \"%.200s\": %.700s", v->count + 1, count,
                       devices, why);
    tl_pool_share(&v->part[v->count]->base, &ctx->base);
    v->count++;
    return TULLE_OK;
}

/* Joins the names of all parts. */
static void name_all(tulle_ctx *ctx)
{
    const tl_several *v = ctx->several;
    size_t at = 0;
    for (int i = 0; i < v->count && at < sizeof ctx->device; i++)
        at += (size_t)snprintf(ctx->device + at, sizeof ctx->device - at, "%s%s", i ? "," : "",
                               v->part[i]->device);
}

static void find_twins(tl_several *v)
{
    for (int i = 0; i < v->count; i++)
        for (int k = 0; k < v->count; k++) v->twins[i] += strcmp(v->part[i]->device, v->part[k]->device) == 0;
}

tulle_status tl_several_open(tulle_ctx *ctx, const char *devices)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_several *v = NULL;
    const char *at = devices;
    char name[NAME_BYTES];
    int count = 1;
    for (const char *c = devices; *c; c++) count += *c == ',';
    if (count > TL_PARTS_MAX)
        return tl_fail(b, TULLE_EDEVICE, "\"%.200s\" names %d devices, a context has at most %d", devices,
                       count, TL_PARTS_MAX);
    TRY(tl_calloc(b, &v, 1, sizeof *v, "several devices"));
    v->ctx = ctx;
    ctx->several = v;
    ctx->engine = &tl_engine_several;
    while (v->count < count) {
        if (!next_name(&at, name, sizeof name) || strchr(name, '/')) {
            status = tl_fail(b, TULLE_EDEVICE, "device %d of %d in \"%.200s\" has %s", v->count + 1, count,
                             devices, why_not(name));
            goto done;
        }
        TRY(open_part(ctx, devices, name, count));
    }
    name_all(ctx);
    find_twins(v);
    TRY(tl_team_create(b, v->count + 1, &v->team));
    TRY(tl_several_threads(ctx));
done:
    return status;
}

void tl_several_close(tulle_ctx *ctx)
{
    tl_several *v = ctx->several;
    if (!v) return;
    tl_team_free(v->team);
    for (int i = 0; i < v->count; i++) tl_ctx_free(v->part[i]);
    tl_free(&ctx->base, v);
    ctx->several = NULL;
}

/* ---- threads */

int tl_several_share(const tl_several *v, int i, int threads)
{
    int hosts = 0, number = 0;
    bool host = v->part[i]->engine->on_host;
    for (int k = 0; k < v->count; k++) {
        hosts += v->part[k]->engine->on_host;
        number += k < i && v->part[k]->engine->on_host == host;
    }
    if (threads <= 0) threads = tl_team_size(v->ctx->base.team);
    if (!host && hosts > 0) return 1;
    int n = hosts > 0 ? hosts : v->count;
    int share = (int)(tl_part(threads, number + 1, n) - tl_part(threads, number, n));
    return share > 0 ? share : 1;
}

tulle_status tl_several_threads(tulle_ctx *ctx)
{
    tulle_status status = TULLE_OK;
    const tl_several *v = ctx->several;
    for (int i = 0; i < v->count; i++) {
        tl_base *b = &v->part[i]->base;
        tl_team *team = NULL;
        int threads = tl_several_share(v, i, 0);
        if (tl_team_size(b->team) == threads) continue;
        status = tl_team_create(b, threads, &team);
        if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
        tl_team_free(b->team);
        b->team = team;
    }
    return TULLE_OK;
}

int64_t tl_several_rows(void)
{
    const char *rows = tl_env("TULLE_PART_ROWS");
    return rows ? strtoll(rows, NULL, 10) : 0;
}

int tl_several_main(const tl_several *v)
{
    int i = 0;
    while (i < v->count && !v->part[i]->engine->on_host) i++;
    return i < v->count ? i : 0;
}

/* ---- running */

typedef struct call {
    tl_several *v;
    tl_part_fn  fn;
    void       *arg;
    const char *stage;
    double    (*far)(const void *arg);
} call;

/* The progress function of a part. */
static int heed(void *user, const char *stage, double fraction)
{
    tl_several *v = user;
    if (v->direct) return tl_progress(&v->ctx->base, stage, fraction);
    return atomic_load(&v->stop);
}

bool tl_several_short(tulle_status status)
{
    return status == TULLE_ELIMIT || status == TULLE_ENOMEM;
}

tulle_status tl_several_fail(tulle_ctx *ctx, int i, tulle_status status)
{
    const tulle_ctx *part = ctx->several->part[i];
    if (status == TULLE_ECANCEL) return tl_fail(&ctx->base, status, "%s", part->base.error);
    return tl_fail(&ctx->base, status, "%s: %.900s", part->device, part->base.error);
}

/* Runs on the caller's thread: calls the progress function until all are done.  If some part's thread does
 * not start, this returns, and the pool runs that part on this thread (base/threads.c). */
static void watch(const call *c)
{
    tl_several *v = c->v;
    tl_base *b = &v->ctx->base;
    double start = tl_now(), rest = 20e-6;
    if (!b->progress) return;
    while (atomic_load(&v->ended) < v->count) {
        int begun = atomic_load(&v->begun);
        if (begun < v->count && begun == atomic_load(&v->ended) && tl_now() - start > 0.1) break;
        if (tl_progress(b, c->stage, c->far ? c->far(c->arg) : 0)) atomic_store(&v->stop, 1);
        tl_rest(rest);
        if (rest < 2e-3) rest *= 2;
    }
}

static void work(void *arg, int thread, int threads)
{
    const call *c = arg;
    tl_several *v = c->v;
    int i = thread - 1;
    (void)threads;
    if (thread == 0) {
        watch(c);
        return;
    }
    atomic_fetch_add(&v->begun, 1);
    v->status[i] = atomic_load(&v->stop) ? TULLE_ECANCEL : c->fn(c->arg, v->part[i], i);
    if (v->status[i] != TULLE_OK && !atomic_exchange(&v->stop, 1)) atomic_store(&v->failed, i);
    atomic_fetch_add(&v->ended, 1);
}

/* The trace function of a part, on its thread. */
static void note_line(void *user, const char *line)
{
    tl_lines *l = user;
    size_t n = strlen(line) + 1;
    if (n > sizeof l->text - l->bytes) {
        l->lost++;
        return;
    }
    memcpy(l->text + l->bytes, line, n);
    l->bytes += n;
}

/* Called by the caller's thread; adds the name of the part and, if that is not unique, its number. */
static void tell_lines(tl_several *v)
{
    tl_base *b = &v->ctx->base;
    for (int i = 0; i < v->count; i++) {
        tl_lines *l = &v->lines[i];
        char number[32] = "";
        if (v->twins[i] > 1) snprintf(number, sizeof number, " (part %d)", i + 1);
        for (const char *at = l->text; at < l->text + l->bytes; at += strlen(at) + 1)
            tl_trace(b, "%s%s: %s", v->part[i]->device, number, at);
        if (l->lost) tl_trace(b, "%s%s: and %d lines more", v->part[i]->device, number, l->lost);
        l->bytes = 0;
        l->lost = 0;
    }
}

static void begin(tl_several *v, uint64_t *held)
{
    for (int i = 0; i < v->count; i++) {
        tl_base *b = &v->part[i]->base;
        b->error[0] = 0;
        b->progress = heed;
        b->progress_user = v;
        b->trace = v->ctx->base.trace ? note_line : NULL;
        b->trace_user = &v->lines[i];
        atomic_store(&b->cancelled, 0);
        held[i] = atomic_load(&b->held);
        atomic_store(&b->peak, held[i]);
        v->device_bytes[i] = 0;
    }
    atomic_store(&v->stop, 0);
    atomic_store(&v->failed, -1);
    atomic_store(&v->begun, 0);
    atomic_store(&v->ended, 0);
}

static void count_bytes(tl_several *v, const uint64_t *held)
{
    tl_base *b = &v->ctx->base;
    uint64_t bytes = atomic_load(&b->held);
    for (int i = 0; i < v->count; i++)
        bytes += atomic_load(&v->part[i]->base.peak) - held[i] + v->device_bytes[i];
    tl_peak_raise(b, bytes);
}

tulle_status tl_several_run(tulle_ctx *ctx, tl_part_fn fn, void *arg, const char *stage,
                            double (*far)(const void *arg))
{
    tl_several *v = ctx->several;
    call c = {v, fn, arg, stage, far};
    uint64_t held[TL_PARTS_MAX];
    if (tl_progress(&ctx->base, stage, 0))
        return tl_fail(&ctx->base, TULLE_ECANCEL, "the product was cancelled");
    begin(v, held);
    v->direct = false;
    tl_team_run(v->team, 0, work, &c);
    tell_lines(v);
    count_bytes(v, held);
    int failed = atomic_load(&v->failed);
    if (failed >= 0) return tl_several_fail(ctx, failed, v->status[failed]);
    if (atomic_load(&v->stop)) return tl_fail(&ctx->base, TULLE_ECANCEL, "the product was cancelled");
    return TULLE_OK;
}

tulle_status tl_several_one(tulle_ctx *ctx, int i, tl_part_fn fn, void *arg)
{
    tl_several *v = ctx->several;
    uint64_t held[TL_PARTS_MAX];
    begin(v, held);
    v->direct = true;
    tulle_status status = fn(arg, v->part[i], i);
    tell_lines(v);
    count_bytes(v, held);
    if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
    ctx->base.error[0] = 0;             /* the error of all parts together, from which this recovers */
    return TULLE_OK;
}
