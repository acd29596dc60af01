/* SPDX-License-Identifier: MIT
 *
 * several_product.c - C = A*B on several devices.
 *
 * Operands are prepared and profiled once, and all devices ("parts") share the result.  Rows are divided into
 * ranges by their products (plan/ranges.c), and each part takes the next range when it is done with the last,
 * so that devices of different speed finish together.  B is copied to a device once, before its first range;
 * the rows of A of each range are copied with it.  Results are joined on the host in the order of the rows
 * (matrix/join.c).  A product too small to be divided is computed by one part, in the caller's thread.
 *
 * Memory: a limit is divided evenly among the parts, for everything that each holds: results on the host,
 * workspace, and device memory.  If B does not fit on a device, the device gets only the rows of B that a
 * range needs; if a range does not fit, it is returned in halves, and a single row is computed in panels of
 * columns.  A device on which not even one column fits, and a CPU part whose results have used up its share,
 * leave the rest to the others.  If all have left, or if C and the largest range together exceed the limit
 * when joining, one CPU part computes the whole product with the whole limit, as if it were alone; so a limit
 * that its error message calls sufficient is sufficient here, too. */
#include "several.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct part_work {
    tl_setup setup;
    bool     made, stays;               /* the setup; B on its device               */
    bool     in_parts;                  /* B does not fit there: rows are sent with those of A */
    int64_t  panels;                    /* of columns, for single rows              */
    double   busy;                      /* seconds of computing                     */
    int64_t  products;                  /* computed in that time                    */
} part_work;

typedef struct works {                  /* private data of the setup                */
    int       count;
    int       threads;                  /* that were used, of all parts             */
    double    join;                     /* seconds                                  */
    uint64_t  most;                     /* peak bytes of preparing the operands     */
    part_work part[];
} works;

/* A product that is being computed. */
typedef struct job {
    tl_several *v;
    tl_setup   *s;
    works      *k;
    tl_ranges   ranges;
    uint64_t    before;                 /* bytes that the context held before       */
    uint64_t    limit, share;           /* total; of one part                       */
    int64_t     row0, row1;             /* if one part computes everything: its rows ... */
    tulle_matrix *C;                    /* ... and its result                       */
} job;

/* ---- preparation */

tulle_status tl_several_prepare(tulle_ctx *ctx, tl_setup *s, int want)
{
    tulle_status status = TULLE_OK;
    tl_several *v = ctx->several;
    works *k = NULL;
    for (int i = 0; i < v->count; i++) {
        tulle_ctx *part = v->part[i];
        status = tl_recipe_check(&part->base, &s->recipe, part->engine->where, part->device);
        if (status != TULLE_OK) return tl_several_fail(ctx, i, status);
    }
    TRY(tl_calloc(&ctx->base, &k, 1, sizeof *k + (size_t)v->count * sizeof *k->part,
                  "work for several devices"));
    k->count = v->count;
    s->kept = k;
    TRY(tl_look_make(ctx, s, want & TL_VALUES));
    s->stats.isa = v->part[0]->engine->on_host ? tl_cpu_isa() : "";
    k->most = atomic_load(&ctx->base.peak) - s->held;
done:
    return status;
}

void tl_several_release(tulle_ctx *ctx, tl_setup *s)
{
    works *k = s->kept;
    for (int i = 0; k && i < k->count; i++) {
        if (k->part[i].made) tl_setup_done(ctx->several->part[i], &k->part[i].setup);
        k->part[i].made = k->part[i].stays = k->part[i].in_parts = false;
    }
}

void tl_several_done(tulle_ctx *ctx, tl_setup *s)
{
    tl_several_release(ctx, s);
    tl_free(&ctx->base, s->kept);
    s->kept = NULL;
}

double tl_several_rate(const tl_setup *s, int i)
{
    const works *k = s->kept;
    const part_work *w = &k->part[i];
    return w->products > 0 && w->busy > 0 ? (double)w->products / w->busy : 0;
}

/* ---- limits */

/* Copies of operands may exceed the limit, so that the error message can give a sufficient number, which must
 * include them. */
static void find_limits(const tulle_ctx *ctx, job *j)
{
    const tl_setup *s = j->s;
    j->before = tl_bytes_sum(atomic_load(&ctx->base.held) - s->held, s->request.later);
    j->limit = s->request.memory_limit;
    if (j->k->most > j->limit && j->k->most > j->before) j->before = j->k->most;
    uint64_t left = j->limit > j->before ? j->limit - j->before : 0;
    j->share = j->limit == UINT64_MAX ? j->limit : left / (uint64_t)j->v->count;
}

/* If a device is named more than once, each of its parts gets an equal share of its memory, so that what one
 * keeps does not take memory from another. */
static uint64_t device_limit(const job *j, int i, uint64_t limit)
{
    const tulle_ctx *part = j->v->part[i];
    uint64_t own = part->engine->memory(part) / (uint64_t)j->v->twins[i];
    if (!j->s->options.memory_limit) return j->v->twins[i] > 1 ? own : 0;
    return limit > 0 ? limit : 1;
}

/* Sets the limits of the next run: that of the request is for the host, that of the options for the
 * device. */
static void set_limit(const job *j, int i, bool alone)
{
    const tl_base *b = &j->v->part[i]->base;
    tl_setup *ps = &j->k->part[i].setup;
    uint64_t host = atomic_load(&b->held) - ps->held;
    ps->request.later = alone ? j->before : 0;
    ps->request.memory_limit = alone ? j->limit : j->share;
    ps->request.uncounted = !alone;
    uint64_t limit = alone ? j->s->options.memory_limit : j->share > host ? j->share - host : 1;
    ps->options.memory_limit = device_limit(j, i, limit);
}

/* ---- one part */

static tulle_status make_ready(const job *j, tulle_ctx *part, int i, bool alone)
{
    tulle_status status = TULLE_OK;
    const tl_engine *e = part->engine;
    part_work *w = &j->k->part[i];
    const int threads = tl_several_share(j->v, i, j->s->options.threads);
    if (!w->made) {
        TRY(tl_setup_share(part, j->s, threads, &w->setup));
        w->made = true;
    }
    set_limit(j, i, alone);
    if (w->stays || w->in_parts) return TULLE_OK;
    status = e->stay(part, &w->setup, &w->setup.operands.A, &w->setup.operands.B);
    w->stays = status == TULLE_OK;
    if (w->stays) return TULLE_OK;
    if (e->part && e->too_large(status)) {
        tl_trace(&part->base, "%s: rows of A go there with the rows of B that they name", part->base.error);
        e->done(part, &w->setup);
        w->in_parts = true;
        return tl_look_make(part, &w->setup, w->setup.values);          /* for bounds of the size of rows */
    }
    tl_setup_done(part, &w->setup);
    w->made = false;
done:
    return status;
}

/* Computes rows with the part's engine.  Where B does not fit: with only the rows of B that are needed, and a
 * single row in panels of columns. */
static tulle_status compute(tulle_ctx *part, part_work *w, int64_t row0, int64_t row1, tulle_matrix **C)
{
    const tl_engine *e = part->engine;
    if (!w->in_parts) return e->run(part, &w->setup, row0, row1, C);
    tulle_status status = tl_part_rows(part, &w->setup, &w->setup.operands.B, row0, row1, C);
    if (!e->too_large(status) || row1 - row0 != 1) return status;
    return tl_part_panels(part, &w->setup, row0, e->room(part, &w->setup), &w->panels, C);
}

static tulle_status run_rows(const job *j, tulle_ctx *part, int i, int64_t row0, int64_t row1, bool alone,
                             tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    part_work *w = &j->k->part[i];
    tulle_stats sum = w->setup.stats, *t = &w->setup.stats;
    double start = tl_now() - tl_ctx_compiling(part);
    t->stages = t->waits = t->shares = 0;
    set_limit(j, i, alone);
    TRY(compute(part, w, row0, row1, C));
    w->busy += tl_now() - tl_ctx_compiling(part) - start;
    for (int64_t r = row0; r < row1; r++) w->products += j->s->profile.products[r];
    uint64_t *bytes = &j->v->device_bytes[i];
    if (!part->engine->on_host && t->peak_bytes > *bytes) *bytes = t->peak_bytes;
done:
    if (sum.shares || sum.waits) tl_stats_add(&sum, t);
    return status;
}

/* The work of a part: takes ranges until there are none. */
static tulle_status take_ranges(void *arg, tulle_ctx *part, int i)
{
    job *j = arg;
    bool wait = false;
    while (!atomic_load(&j->v->stop)) {
        tulle_matrix *C = NULL;
        tl_range *r = tl_ranges_take(&j->ranges, i, &wait);
        if (!r && !wait) return TULLE_OK;
        if (!r) {
            tl_rest(50e-6);
            continue;
        }
        tulle_status status = make_ready(j, part, i, false);
        bool ready = status == TULLE_OK;
        if (ready) status = run_rows(j, part, i, r->row0, r->row1, false, &C);
        if (status == TULLE_OK) {
            tl_ranges_finish(&j->ranges, r, C);
            continue;
        }
        /* on a CPU results accumulate on the host, so half a range would only be refused a little later */
        bool host = part->engine->on_host, gone = host || !ready || r->row1 - r->row0 < 2;
        bool little = host ? status == TULLE_ELIMIT : tl_several_short(status);
        if (!little || !tl_ranges_back(&part->base, &j->ranges, r, gone)) return status;
        if (gone) return TULLE_OK;
    }
    return TULLE_ECANCEL;
}

static tulle_status take_all(void *arg, tulle_ctx *part, int i)
{
    tulle_status status = TULLE_OK;
    job *j = arg;
    TRY(make_ready(j, part, i, true));
    TRY(run_rows(j, part, i, j->row0, j->row1, true, &j->C));
done:
    return status;
}

static tulle_status run_alone(tulle_ctx *ctx, job *j, int i, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *from = &ctx->several->part[i]->base;
    part_work *w = &j->k->part[i];
    TRY(tl_several_one(ctx, i, take_all, j));
    tl_matrix_hand_over(from, &ctx->base, j->C);
    *C = j->C;
    j->k->threads = w->setup.stats.threads;
    tl_trace(&ctx->base, "rows %" PRId64 " to %" PRId64 " on %s alone", j->row0, j->row1 - 1,
             ctx->several->part[i]->device);
done:
    return status;
}

/* ---- joining */

static void drop_results(job *j)
{
    for (tl_range *r = j->ranges.first; r; r = r->next) {
        if (r->C) tl_matrix_free(&j->v->part[r->taker]->base, r->C);
        r->C = NULL;
    }
}

static void tell(tulle_ctx *ctx, const job *j, double seconds)
{
    if (!ctx->base.trace) return;
    tl_trace(&ctx->base, "%" PRId64 " ranges of rows on %d devices, %.3f ms", j->ranges.count, j->v->count,
             1e3 * seconds);
    for (int i = 0; i < j->v->count; i++) {
        char rows[300] = "";
        size_t at = 0, more = 0;
        for (const tl_range *r = j->ranges.first; r; r = r->next) {
            if (r->taker != i) continue;
            if (at + 48 > sizeof rows) more++;
            else
                at += (size_t)snprintf(rows + at, sizeof rows - at, "%s%" PRId64 "-%" PRId64, at ? ", " : "",
                                       r->row0, r->row1 - 1);
        }
        tl_trace(&ctx->base, "  %s: %" PRId64 " products in %.3f ms; rows %s%s", j->v->part[i]->device,
                 j->k->part[i].products, 1e3 * j->k->part[i].busy, at ? rows : "none",
                 more ? " and more" : "");
    }
}

/* Whether the join stays within the limit; adds its peak memory to the count. */
static bool join_fits(tulle_ctx *ctx, const job *j)
{
    uint64_t all = 0, largest = 0;
    for (const tl_range *r = j->ranges.first; r; r = r->next) {
        uint64_t bytes = tl_csr_bytes(&r->C->view);
        all = tl_bytes_sum(all, bytes);
        if (bytes > largest) largest = bytes;
    }
    if (ctx->base.mem.alloc) largest = all;     /* hooks cannot reserve address space: join.c */
    uint64_t most = tl_bytes_sum(j->before, tl_bytes_sum(all, largest));
    if (most > j->limit) return false;
    tl_peak_raise(&ctx->base, j->s->held + most);
    return true;
}

static tulle_status join(tulle_ctx *ctx, job *j, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix **part = NULL;
    tl_base **owner = NULL;
    int64_t n = 0;
    double start = tl_now();
    TRY(tl_alloc(b, &part, j->ranges.count, sizeof *part, "results to join"));
    TRY(tl_alloc(b, &owner, j->ranges.count, sizeof *owner, "results to join"));
    for (tl_range *r = j->ranges.first; r; r = r->next) {
        part[n] = r->C;
        owner[n++] = &j->v->part[r->taker]->base;
        r->C = NULL;
    }
    status = tl_rows_join(b, part, owner, n, j->s->options.c_ptr_type, C);
    for (int64_t i = 0; i < n; i++) tl_matrix_free(owner[i], part[i]);
    j->k->join += tl_now() - start;
done:
    tl_free(b, part);
    tl_free(b, owner);
    return status;
}

static double how_far(const void *arg)
{
    const job *j = arg;
    return j->ranges.work > 0 ? (double)atomic_load(&j->ranges.finished) / (double)j->ranges.work : 0;
}

static void gather_stats(job *j, const tulle_matrix *C)
{
    tulle_stats *t = &j->s->stats;
    for (int i = 0; i < j->k->count; i++) {
        tulle_stats *part = &j->k->part[i].setup.stats;
        if (!j->k->part[i].made) continue;
        tl_stats_add(part, t);
        part->shares = part->waits = part->stages = 0;
        if (part->isa && !t->isa[0]) t->isa = part->isa;
    }
    t->threads = j->k->threads;
    t->c_nnz = C->view.nnz;
    t->stages = 0;
}

static tulle_status run_shared(tulle_ctx *ctx, job *j, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    double start = tl_now();
    status = tl_several_run(ctx, take_ranges, j, "numeric", how_far);
    if (status == TULLE_OK && !join_fits(ctx, j)) status = TULLE_ELIMIT;
    if (status != TULLE_OK) goto done;
    tell(ctx, j, tl_now() - start);
    j->k->threads = 0;
    for (int i = 0; i < j->k->count; i++)
        if (j->k->part[i].made) j->k->threads += j->k->part[i].setup.stats.threads;
    j->s->stats.sec_numeric += tl_now() - start;
    start = tl_now();
    TRY(join(ctx, j, C));
    j->s->stats.sec_finish += tl_now() - start;
done:
    drop_results(j);
    return status;
}

tulle_status tl_several_multiply(tulle_ctx *ctx, tl_setup *s, int64_t row0, int64_t row1, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    job j = {.v = ctx->several, .s = s, .k = s->kept, .row0 = row0,
             .row1 = row1 < 0 ? s->operands.A.rows : row1};
    double start = tl_now();
    *C = NULL;
    TRY(tl_ranges_make(&ctx->base, s->profile.products, j.row0, j.row1, j.v->count, tl_several_rows(),
                       &j.ranges));
    find_limits(ctx, &j);
    if (j.ranges.count < 2) {
        status = run_alone(ctx, &j, 0, C);
        if (status == TULLE_OK) s->stats.sec_numeric += tl_now() - start;
    } else {
        status = run_shared(ctx, &j, C);
    }
    int host = tl_several_main(j.v);
    int64_t rows = j.row1 - j.row0;
    if (tl_several_short(status) && j.ranges.count < 2 && !j.v->part[host]->engine->on_host && rows > 1) {
        /* no CPU part to fall back to: smaller ranges */
        tl_ranges_done(&ctx->base, &j.ranges);
        TRY(tl_ranges_make(&ctx->base, s->profile.products, j.row0, j.row1, j.v->count, (rows + 1) / 2,
                           &j.ranges));
        status = run_shared(ctx, &j, C);
    }
    if (tl_several_short(status) && (j.ranges.count > 1 || host > 0)) {
        tl_trace(&ctx->base, "memory for several devices at once is short: %s", ctx->base.error);
        for (int i = 0; i < j.k->count; i++) {
            tulle_stats *t = &j.k->part[i].setup.stats;         /* discards the failed attempt */
            t->shares = t->waits = 0;
        }
        status = run_alone(ctx, &j, host, C);
    }
    if (status == TULLE_OK) gather_stats(&j, *C);
done:
    tl_ranges_done(&ctx->base, &j.ranges);
    return status;
}

/* ---- stats and blocks */

void tl_several_figures(tulle_ctx *ctx, tl_setup *s, uint64_t c_bytes)
{
    tulle_stats *t = &s->stats;
    const works *k = s->kept;
    t->peak_bytes = atomic_load(&ctx->base.peak) - s->held;
    t->workspace_bytes = t->peak_bytes > c_bytes ? t->peak_bytes - c_bytes : 0;
    if (!s->options.time_stages) return;
    tl_stages_name(t, TL_STAGE_CHECK | TL_STAGE_ANALYZE);
    for (int i = 0; i < k->count && t->stages < TULLE_MAX_STAGES - 1; i++)
        t->stage[t->stages++] = (tulle_stage){.name = ctx->several->part[i]->device,
                                              .seconds = k->part[i].busy};
    t->stage[t->stages++] = (tulle_stage){.name = "join", .seconds = k->join};
}

/* Each CPU part has its workspace.  C exists as ranges, and while these are joined at most the largest one
 * exists twice: in most products a quarter of C. */
uint64_t tl_several_host_bytes(const tulle_ctx *ctx, const tl_setup *s, const tl_pieces *pieces,
                               uint64_t base, int64_t nnz, bool exact)
{
    const tl_several *v = ctx->several;
    tl_request r = s->request;
    r.values = true;
    uint64_t c = tl_cpu_c_bytes(&r, nnz, TULLE_I64);
    uint64_t bytes = tl_bytes_sum(base, tl_bytes_sum(c, exact ? c : c / 4));
    for (int i = 0; i < v->count; i++) {
        if (!v->part[i]->engine->on_host) continue;
        const int threads = tl_several_share(v, i, s->options.threads);
        bytes = tl_bytes_sum(bytes, tl_cpu_need(&ctx->base, &r, pieces, 0, threads, true, 0, TULLE_I64));
        bytes = tl_bytes_sum(bytes, sizeof(tulle_plan) + tl_replay_bytes());
    }
    return bytes;
}

/* Half of the remaining memory is for C in ranges, and half of that for workspace. */
uint64_t tl_several_room(const tulle_ctx *ctx, const tl_setup *s)
{
    uint64_t before = atomic_load(&ctx->base.held) - s->held, limit = s->request.memory_limit;
    uint64_t most = tl_memory_free() / 4;
    uint64_t room = limit > before ? (limit - before) / 4 : 0;
    return room < most ? room : most;
}

/* The error message is that of the part that had to compute all rows. */
tulle_status tl_several_refuse(tulle_ctx *ctx, const tl_setup *s, int64_t row0, tulle_status status)
{
    const int i = tl_several_main(ctx->several);
    tulle_ctx *part = ctx->several->part[i];
    const works *k = s->kept;
    if (!k->part[i].made) return status;
    snprintf(part->base.error, sizeof part->base.error, "%s", ctx->base.error);
    if (!part->engine->on_host) return status;
    return tl_several_fail(ctx, i, part->engine->refuse(part, &k->part[i].setup, row0, status));
}
