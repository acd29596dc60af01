/* SPDX-License-Identifier: MIT
 *
 * steps.c - the two steps of spECK on the device: assigns rows to the accumulators of the tables
 * (accumulators.c), and launches their kernels in a loop.
 *
 * Global load balancing takes a kernel and a list of rows; it is done only if the rows are of different
 * classes and the policy's thresholds are exceeded (spECK, section 5).  Otherwise a single class computes
 * all rows in order. */
#include "gpu/accumulators.h"
#include <inttypes.h>
#include <stdio.h>

static const tl_dmem nothing = {0, 0};

tulle_status tl_product_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks,
                               uint32_t threads, uint32_t shared, int lane, const tl_arg *args, int count)
{
    tl_launch launch = {
        .blocks = blocks, .threads = threads, .shared = shared, .lane = lane, .count = count, .args = args};
    return p->driver->launch(p->b, p->device, tl_gpu_kernel(p->gpu, types, id), &launch);
}

tulle_status tl_product_mark(tl_product *p, const char *name)
{
    if (!p->timed || p->marks >= TL_EVENTS) return TULLE_OK;
    p->mark_name[p->marks] = name;
    return p->driver->mark(p->b, p->device, p->marks++);
}

tulle_status tl_product_fork(tl_product *p, int lanes)
{
    tulle_status status = TULLE_OK;
    if (lanes < 2) return TULLE_OK;
    p->lanes = lanes;
    TRY(p->driver->fork(p->b, p->device, lanes));
done:
    return status;
}

tulle_status tl_product_join(tl_product *p)
{
    const int lanes = p->lanes;
    p->lanes = 0;
    return lanes > 1 ? p->driver->join(p->b, p->device, lanes) : TULLE_OK;
}

void tl_product_rest(tl_product *p)
{
    if (p->lanes) tl_gpu_rest(p->b, p->gpu);
    p->lanes = 0;
}

tulle_status tl_product_need(tl_product *p, tl_types types, const tl_kernel_id *ids, int count)
{
    tulle_status status = TULLE_OK;
    const double before = p->gpu->compiling;
    TRY(tl_gpu_need(p->b, p->gpu, types, ids, count));
    if (p->gpu->compiling > before) TRY(tl_product_mark(p, "compile"));
done:
    return status;
}

/* ---- balance */

/* Does this class accept every row?  All classes accept empty rows and rows with one entry. */
static bool takes_all(const tl_product *p, int step, int c)
{
    const tl_way *way = tl_way_of(step, c);
    const int i = c - way->first;
    if (p->sizes[step].size[c].kernel == TL_K_NONE) return false;
    if (way->by == TL_BY_NOTHING) return true;
    const uint64_t limit = way->by == TL_BY_PRODUCTS ? FEW_MOST(i) : p->sizes[step].limits[way->limit + i];
    return tl_measure_all(p, step, way->by) <= limit;
}

static bool has_few(const tl_product *p, int step)
{
    return p->sizes[step].limits[LIMIT_FEW] > 0;
}

/* Decides whether to sort rows into classes; if not, *only is the class for all of them. */
static bool decide(const tl_product *p, int step, int *only)
{
    const tl_gpu_step *s =
        step ? &p->request.recipe->policy->gpu->numeric : &p->request.recipe->policy->gpu->symbolic;
    const uint64_t *rows = p->note[step] + SUM_ROWS;
    uint64_t need = step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_NEED];
    uint64_t sum = step ? p->note[1][SUM_NNZ] : p->note[0][SUM_NEED];
    int classes = 0, largest = CLASS_EMPTY, most = CLASS_EMPTY;
    for (int c = CLASS_BITS; c < CLASSES; c++)
        if (rows[c]) {
            classes++;
            largest = c;
            if (most == CLASS_EMPTY || rows[c] > rows[most]) most = c;
        }
    uint64_t special = rows[CLASS_EMPTY] + rows[CLASS_DIRECT];
    *only = CLASS_EMPTY;
    if (classes == 0 && !rows[CLASS_DIRECT]) return false;              /* no rows */
    if (classes == 0) largest = most = CLASS_ROWS;
    /* The kernel of most rows, in a size that accepts all rows; else any class that accepts all. */
    for (int c = most; c < CLASSES && *only == CLASS_EMPTY; c++)
        if (takes_all(p, step, c)) *only = c;
    for (int c = CLASS_BITS; c < CLASSES && *only == CLASS_EMPTY; c++)
        if (takes_all(p, step, c)) *only = c;
    bool alike = (*only >= CLASS_BITS && *only < CLASS_ROWS && most < CLASS_ROWS)
                 || (*only >= CLASS_ROWS && *only < CLASS_BLOCK && most >= CLASS_ROWS) || *only == most
                 || (*only >= CLASS_FEW && most >= CLASS_FEW);
    if (p->motifs.used || p->twins.used) return true;   /* lists exclude their rows */
    if (p->rows >= (uint32_t)1 << 27) return false;                     /* the maximum for lists */
    if (p->gpu->balance >= 0) return p->gpu->balance || *only == CLASS_EMPTY;
    if (*only == CLASS_EMPTY) return true;
    /* Policies with classes for few products depend on bins, which pay off if there are enough rows. */
    if (classes > 1 && has_few(p, step)
        && (p->request.recipe->few_rows[step].first >= 512 || p->rows >= s->rows))
        return true;
    if (p->tiny
        && *only < CLASS_HASH) { /* a team processes entries of A sequentially, too slow for long rows */
        if (p->note[0][SUM_MAX_ENTRIES] > 24 && p->gpu->caps.warp && takes_all(p, step, CLASS_BLOCK))
            *only = CLASS_BLOCK;
        return false;
    }
    if (classes <= 1 && special * 2 <= p->rows && alike) return false;
    if (classes == 0) return p->rows >= s->rows_large;
    double ratio = (double)need * (double)p->rows / (double)(sum ? sum : 1);
    bool large = (largest >= CLASS_BLOCK && largest < CLASS_FEW) || !alike;
    return (ratio >= s->ratio && p->rows >= s->rows)
           || (large && ratio >= s->ratio_large && p->rows >= s->rows_large);
}

static void tell(const tl_product *p, int step)
{
    static const char *const steps[] = {"symbolic", "numeric"};
    const tl_work *w = &p->work[step];
    const uint64_t *rows = p->note[step] + SUM_ROWS;
    const tl_way *only = tl_way_of(step, w->only);
    char text[400];
    int at = 0;
    if (!p->b->trace) return;
    text[0] = 0;
    for (int c = 0; c < CLASSES; c++) {
        const tl_way *way = tl_way_of(step, c);
        if (rows[c])
            at += snprintf(text + at, sizeof text - (size_t)at, " %s%d %" PRIu64, way->name, c - way->first,
                           rows[c]);
    }
    if (w->balanced) tl_trace(p->b, "%s step: rows are sorted into classes:%s", steps[step], text);
    else
        tl_trace(p->b, "%s step: %s%d takes all rows:%s", steps[step], only->name, w->only - only->first,
                 text);
}

/* Assigns rows to classes, and determines where the list of each class begins.  Returns the bytes of all
 * lists, 0 without lists.  The lists come first, then the groups (at most one word per row). */
static uint64_t divide(tl_product *p, int step, uint64_t *groups)
{
    tl_work *w = &p->work[step];
    const uint64_t *rows = p->note[step] + SUM_ROWS;
    uint64_t room = 0;
    w->balanced = decide(p, step, &w->only);
    for (int c = 0; c < CLASSES; c++) {
        w->rows[c] = (uint32_t)rows[c];
        w->start[c] = (uint32_t)room;
        room += LIST_ROUND((uint32_t)rows[c]);
    }
    uint64_t merge =
        w->start[CLASS_ROWS + ROWS_SIZES - 1] + (uint64_t)LIST_ROUND(w->rows[CLASS_ROWS + ROWS_SIZES - 1]);
    *groups = (room * 4 + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN;
    return w->balanced ? (room + merge) * 4 + TL_ALIGN : 0;
}

tulle_status tl_step_balance(tl_product *p, int step)
{
    tulle_status status = TULLE_OK;
    tl_work *w = &p->work[step];
    uint64_t groups = 0, bytes = divide(p, step, &groups);
    tell(p, step);
    if (!w->balanced) goto done;
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "lists of rows", &w->list));
    w->groups = (tl_dmem){w->list.handle, groups};
    if (p->tiny) TRY(p->driver->fill(p->b, p->device, p->cursors[0], 0, 2 * TL_ALIGN));
    tl_kernel_id need[] = {TL_K_BINS};
    TRY(tl_product_need(p, p->types, need, 1));
    uint32_t threads = p->gpu->caps.cpu                   ? 64
                       : p->gpu->caps.threads_block < 512 ? p->gpu->caps.threads_block
                                                          : 512;
    const uint32_t rows = p->motifs.used ? p->motifs.others : p->twins.used ? p->twins.others : p->rows;
    const tl_dmem rest = p->twins.used ? p->twins.rest : p->motifs.rest;
    tl_arg args[] = {
        TL_U32(rows),         TL_MEM(rest),             TL_U32(step),     TL_MEM(p->A.ptr),
        TL_MEM(p->products),  TL_MEM(p->span),          TL_MEM(p->c_ptr), TL_MEM(p->limits[step]),
        TL_MEM(p->sum[step]), TL_MEM(p->cursors[step]), TL_MEM(w->list),  TL_MEM(w->groups)};
    TRY(tl_product_launch(p, p->types, TL_K_BINS, (rows + threads - 1) / threads, threads, 0, 0, args,
                          TL_COUNT(args)));
done:
    return status;
}

/* ---- common to both steps */

/* The number of rows of a class, and their list. */
static uint32_t rows_of(const tl_product *p, int step, int c, tl_dmem *list)
{
    const tl_work *w = &p->work[step];
    *list = nothing;
    if (!w->balanced) return w->only == c ? p->rows : 0;
    *list = (tl_dmem){w->list.handle, w->list.offset + (uint64_t)w->start[c] * 4};
    return w->rows[c];
}

/* The job for the rows of a class; false: there are none, or they need no kernel. */
static bool job_of(const tl_product *p, int step, int c, tl_job *j)
{
    const tl_size *size = &p->sizes[step].size[c];
    *j = (tl_job){.way = tl_way_of(step, c), .step = step, .c = c, .size = *size, .per = 1};
    j->rows = rows_of(p, step, c, &j->list);
    if (!j->rows || size->kernel == TL_K_NONE) return false;
    j->most = p->work[step].balanced ? p->note[step][SUM_MEASURE + c] : tl_measure_all(p, step, j->way->by);
    j->way->fit(p, j);
    return true;
}

tl_step_need tl_step_needs(tl_product *p, int step)
{
    uint64_t groups, lists = divide(p, step, &groups);
    tl_step_need n = {.lists = lists ? tl_dmem_round(lists) : 0};
    for (int c = CLASS_BITS; c < CLASSES; c++) {
        tl_job j;
        if (tl_way_of(step, c)->what && job_of(p, step, c, &j) && j.bytes)
            n.scratch += tl_dmem_round(j.bytes);
    }
    return n;
}

tl_step_need tl_step_most(const tl_product *p)
{
    const tl_size *s = &p->sizes[1].size[CLASS_DENSE];
    uint32_t resident = s->kernel != TL_K_NONE ? tl_resident(&p->gpu->caps, s->threads, 0) : 0;
    uint64_t blocks = p->rows < resident ? p->rows : resident;
    return (tl_step_need){.lists = tl_dmem_round(((uint64_t)p->rows + CLASSES * 128) * 8 + TL_ALIGN),
                          .scratch = tl_dmem_round(blocks * tl_positions(p) * 4)};
}

/* ---- loading and launching the kernels of a step */

/* The kernels of all classes that have rows; *then: a kernel to run after them, NULL: none. */
static int needed(const tl_product *p, int step, tl_kernel_id *ids, const tl_way **then)
{
    int count = 0;
    *then = NULL;
    for (int c = CLASS_DIRECT; c < CLASSES; c++) {
        tl_dmem list;
        const tl_kernel_id id = p->sizes[step].size[c].kernel;
        if (!rows_of(p, step, c, &list) || id == TL_K_NONE) continue;
        ids[count++] = id;
        if (tl_way_of(step, c)->then) *then = tl_way_of(step, c)->then;
    }
    return count;
}

static void size_again(tl_product *p, int step, tl_types types)
{
    for (const tl_way *way = tl_ways[step]; way < tl_ways[step] + TL_WAYS; way++)
        if (way->again) way->again(p, way, step, types);
}

static tulle_status start(tl_product *p, tl_job *j, tl_types types, int lane, tl_values *v)
{
    tulle_status status = TULLE_OK;
    const tl_way *way = j->way;
    tl_dmem *scratch = &p->scratch[way->scratch];
    if (way->split && tl_split_wanted(p, j->step, j->c, j->rows, j->most)) {
        TRY(tl_split_run(p, types, j, v, scratch));
        goto done;
    }
    if (way->what && j->bytes) {
        TRY(tl_dmem_alloc(p->b, p->gpu, j->bytes, way->what, scratch));
        j->scratch = *scratch;
    }
    if (way->ones) {
        TRY(p->driver->fill(p->b, p->device, *scratch, 0xff, j->bytes));
        lane = 0;                       /* memory is filled in the queue, so the kernel must follow there */
    }
    tl_values_job(p, j, v);
    TRY(tl_way_launch(p, types, j->size.kernel, j->blocks, j->size.threads, j->size.shared, lane, v,
                      way->args));
done:
    return status;
}

/* Runs the classes in parallel lanes, long rows first. */
static tulle_status run(tl_product *p, int step, int count, tl_types plain, tl_types compound)
{
    tulle_status status = TULLE_OK;
    const int lanes = count < 2 ? 1 : count < TL_LANES ? count : TL_LANES;
    int launched = 0;
    tl_values v = {0};
    tl_values_make(p, &v);
    TRY(tl_product_fork(p, lanes));
    for (int c = CLASSES - 1; c >= CLASS_DIRECT; c--) {
        tl_job j;
        if (!job_of(p, step, c, &j)) continue;
        const int lane = lanes > 1 ? launched++ % lanes : 0;
        TRY(start(p, &j, j.way->compound ? compound : plain, lane, &v));
    }
    TRY(tl_product_join(p));
    for (int i = 0; i < TL_SCRATCH; i++) {
        tl_dmem_free(p->gpu, p->scratch[i]);
        p->scratch[i] = nothing;
    }
done:
    tl_product_rest(p);
    return status;
}

tulle_status tl_step_symbolic(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_way *then;
    tl_kernel_id ids[CLASSES];
    tl_types compound = p->types, plain = p->types;
    compound.key = p->note[0][SUM_MAX_SPAN] <= ((uint64_t)1 << 27) ? 32 : 64;
    plain.key = tl_key_bits(p);
    size_again(p, 0, plain);
    int count = needed(p, 0, ids, &then);
    TRY(tl_product_need(p, compound, ids, count));
    if (plain.key != compound.key) TRY(tl_product_need(p, plain, ids, count));
    TRY(run(p, 0, count, plain, compound));
done:
    return status;
}

static tulle_status load_numeric(tl_product *p, tl_types types, int *classes, const tl_way **then)
{
    tl_kernel_id ids[CLASSES + 1];
    size_again(p, 1, types);
    int count = needed(p, 1, ids, then);
    *classes = count;
    if (*then) ids[count++] = (*then)->kernel;
    return tl_product_need(p, types, ids, count);
}

/* Sorts rows that their kernel left unordered, after all rows are computed. */
static tulle_status finish(tl_product *p, tl_types types, const tl_way *then)
{
    tulle_status status = TULLE_OK;
    tl_job j = {.way = then, .step = 1, .c = then->first, .per = 1};
    tl_values v = {0};
    tl_values_make(p, &v);
    j.rows = rows_of(p, 1, j.c, &j.list);
    then->fit(p, &j);
    TRY(start(p, &j, types, 0, &v));
    TRY(tl_product_mark(p, "sorting"));
done:
    return status;
}

tulle_status tl_step_numeric(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_way *then = NULL;
    tl_types types = p->types;
    int classes = 0;
    types.key = tl_key_bits(p);
    TRY(load_numeric(p, types, &classes, &then));
    TRY(tl_twins_fill(p));
    TRY(tl_motifs_fill(p));
    TRY(run(p, 1, classes, types, types));
    TRY(tl_product_mark(p, "numeric"));
    if (then) TRY(finish(p, types, then));
done:
    return status;
}
