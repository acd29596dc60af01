/* SPDX-License-Identifier: MIT
 *
 * steps.c - the two steps of spECK on the device: which rows go to which kernel, and the launches.
 *
 * Global load balancing costs a kernel and a list of rows; it is run only where classes differ and the policy's
 * thresholds say that it pays (spECK, section 5).  Otherwise one class takes all rows in their order. */
#include "gpu/product.h"
#include <inttypes.h>
#include <stdio.h>

static const tl_dmem nothing = {0, 0};

tulle_status tl_product_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                               uint32_t shared, int lane, const tl_arg *args, int count)
{
    tl_launch launch = {.blocks = blocks, .threads = threads, .shared = shared, .lane = lane, .count = count, .args = args};
    return p->driver->launch(p->b, p->device, tl_gpu_kernel(p->gpu, types, id), &launch);
}

tulle_status tl_product_mark(tl_product *p, const char *name)
{
    if (!p->timed || p->marks >= TL_EVENTS) return TULLE_OK;
    p->mark_name[p->marks] = name;
    return p->driver->mark(p->b, p->device, p->marks++);
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

/* Can this class take every row?  Empty rows and single entries are no trouble to any. */
static bool takes_all(const tl_product *p, int step, int c, uint64_t need)
{
    const tl_sizes *z = &p->sizes[step];
    uint64_t span = p->note[0][SUM_MAX_SPAN], bytes = RANK_BYTES(span, need, z->limits[LIMIT_VALUE]);
    if (z->size[c].kernel == TL_K_NONE) return false;
    if (c >= CLASS_FEW) return p->note[0][SUM_MAX_PRODUCTS] <= FEW_MOST(c - CLASS_FEW);
    if (c == CLASS_DENSE) return true;
    if (c == CLASS_MASK) return span <= z->limits[LIMIT_MASK];
    if (c == CLASS_HASH) return need <= z->limits[LIMIT_HASH];
    if (c >= CLASS_BLOCK) return (step ? bytes : need) <= z->limits[LIMIT_BLOCK + c - CLASS_BLOCK];
    if (c >= CLASS_ROWS) return need <= z->limits[LIMIT_ROWS + c - CLASS_ROWS];
    return c >= CLASS_BITS && (step ? bytes : span) <= z->limits[LIMIT_BITS + c - CLASS_BITS];
}

static bool has_few(const tl_product *p, int step)
{
    return p->sizes[step].limits[LIMIT_FEW] > 0;
}

/* Is it worth sorting rows into classes?  If not, *only is the class for all of them. */
static bool decide(const tl_product *p, int step, int *only)
{
    const tl_gpu_step *s = step ? &p->request.recipe->policy->gpu->numeric : &p->request.recipe->policy->gpu->symbolic;
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
    if (classes == 0 && !rows[CLASS_DIRECT]) return false;              /* nothing to do */
    if (classes == 0) largest = most = CLASS_ROWS;
    /* The kernel that most rows go to, in a size that takes all; else whichever takes all. */
    for (int c = most; c < CLASSES && *only == CLASS_EMPTY; c++)
        if (takes_all(p, step, c, need)) *only = c;
    for (int c = CLASS_BITS; c < CLASSES && *only == CLASS_EMPTY; c++)
        if (takes_all(p, step, c, need)) *only = c;
    bool alike = (*only >= CLASS_BITS && *only < CLASS_ROWS && most < CLASS_ROWS)
                 || (*only >= CLASS_ROWS && *only < CLASS_BLOCK && most >= CLASS_ROWS) || *only == most
                 || (*only >= CLASS_FEW && most >= CLASS_FEW);
    if (p->rows >= (uint32_t)1 << 27) return false;                     /* lists have no room for more */
    if (p->gpu->balance >= 0) return p->gpu->balance || *only == CLASS_EMPTY;
    if (*only == CLASS_EMPTY) return true;
    /* Bins are what policies of few products are about; they pay where there are rows enough. */
    if (classes > 1 && has_few(p, step) && (p->request.recipe->few_rows[step].first >= 512 || p->rows >= s->rows)) return true;
    if (p->tiny && *only < CLASS_HASH) {            /* a team takes the entries of A one by one: too many wait too long */
        if (p->note[0][SUM_MAX_ENTRIES] > 24 && p->gpu->caps.warp && takes_all(p, step, CLASS_BLOCK, need)) *only = CLASS_BLOCK;
        return false;
    }
    if (classes <= 1 && special * 2 <= p->rows && alike) return false;
    if (classes == 0) return p->rows >= s->rows_large;
    double ratio = (double)need * (double)p->rows / (double)(sum ? sum : 1);
    bool large = (largest >= CLASS_BLOCK && largest < CLASS_FEW) || !alike;
    return (ratio >= s->ratio && p->rows >= s->rows) || (large && ratio >= s->ratio_large && p->rows >= s->rows_large);
}

static void tell(const tl_product *p, int step)
{
    static const char *const names[CLASSES] = {[CLASS_EMPTY] = "empty", [CLASS_DIRECT] = "direct", [CLASS_BITS] = "bits",
                                               [CLASS_ROWS] = "rows", [CLASS_BLOCK] = "block", [CLASS_HASH] = "hash",
                                               [CLASS_MASK] = "mask", [CLASS_DENSE] = "dense", [CLASS_FEW] = "few"};
    const tl_work *w = &p->work[step];
    const uint64_t *rows = p->note[step] + SUM_ROWS;
    char text[400];
    int at = 0, size = 0;
    if (!p->b->trace) return;
    text[0] = 0;
    for (int c = 0, family = 0; c < CLASSES; c++) {
        if (names[c]) family = c;
        size = c - family;
        if (rows[c]) at += snprintf(text + at, sizeof text - (size_t)at, " %s%d %" PRIu64, names[family], size, rows[c]);
    }
    int family = w->only;
    while (!names[family]) family--;
    if (w->balanced) tl_trace(p->b, "%s step: rows are sorted into classes:%s", step ? "numeric" : "symbolic", text);
    else tl_trace(p->b, "%s step: %s%d takes all rows:%s", step ? "numeric" : "symbolic", names[family], w->only - family, text);
}

/* Which class each row goes to, and where its list begins.  Returns the bytes of all lists, 0: there are none.  Lists are
 * first, groups (a word for each row that may stand alone) behind them. */
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
    uint64_t merge = w->start[CLASS_ROWS + ROWS_SIZES - 1] + (uint64_t)LIST_ROUND(w->rows[CLASS_ROWS + ROWS_SIZES - 1]);
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
    uint32_t threads = p->gpu->caps.cpu ? 64 : p->gpu->caps.threads_block < 512 ? p->gpu->caps.threads_block : 512;
    tl_arg args[] = {TL_U32(p->rows), TL_U32(step), TL_MEM(p->A.ptr), TL_MEM(p->products), TL_MEM(p->span),
                     TL_MEM(p->c_ptr), TL_MEM(p->limits[step]), TL_MEM(p->sum[step]), TL_MEM(p->cursors[step]), TL_MEM(w->list),
                     TL_MEM(w->groups)};
    TRY(tl_product_launch(p, p->types, TL_K_BINS, (p->rows + threads - 1) / threads, threads, 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

/* ---- what both steps share */

/* The rows of a class: how many, and their list. */
static uint32_t rows_of(const tl_product *p, int step, int c, tl_dmem *list)
{
    const tl_work *w = &p->work[step];
    *list = nothing;
    if (!w->balanced) return w->only == c ? p->rows : 0;
    *list = (tl_dmem){w->list.handle, w->list.offset + (uint64_t)w->start[c] * 4};
    return w->rows[c];
}

/* Blocks of a class of short rows.  Where they were not merged: a row for each team, and slots for just as many; else a
 * guess from above, as the kernel reads how many there are. */
static uint64_t blocks_of(const tl_product *p, int step, int c, uint32_t rows, uint32_t *per, tl_size *s)
{
    uint64_t most = step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_NEED];
    uint64_t need = step ? NUMERIC_SLOTS(most) : SYMBOLIC_SLOTS(most);
    *per = 1;
    *s = p->sizes[step].size[c];
    if (p->work[step].balanced) {
        uint64_t products = p->note[step][SUM_CLASS + c];
        uint64_t slots = step ? (uint64_t)rows * NUMERIC_SLOTS(p->note[1][SUM_MEASURE + c]) : products + products / 4 + rows;
        uint64_t guess = rows / 16 + 2 * slots / s->slots + 64;
        return guess < rows ? guess : rows;
    }
    uint64_t fit = need ? s->slots / need : 32;
    *per = (uint32_t)(fit < s->teams ? s->teams : fit > 32 ? 32 : fit / s->teams * s->teams);
    while (*per > 1 && need * *per * s->entry > (*per > s->teams / 2 ? 24576 : tl_dynamic_bytes(&p->gpu->caps) - 64)) *per /= 2;
    /* enough blocks to fill the device matter more than full blocks */
    while (*per > 1 && (rows + *per - 1) / *per < s->resident) *per /= 2;
    tl_size_rows(p->gpu, s, need * *per);
    return (rows + *per - 1) / *per;
}

/* The most that a row of the class takes, by what it is measured in; `all` where every row comes here. */
static uint64_t measure(const tl_product *p, int step, int c, uint64_t all)
{
    return p->work[step].balanced ? p->note[step][SUM_MEASURE + c] : all;
}

static uint32_t widest(const tl_product *p)
{
    return p->gpu->caps.warp ? p->gpu->caps.warp : 1024;
}

/* A window no wider than the widest row. */
static uint32_t window(uint32_t most, uint64_t span)
{
    uint64_t columns = (span + 127) / 128 * 128;
    return columns < most ? (uint32_t)columns : most;
}

/* Positions in rows of B that a block keeps from one window of columns to the next. */
static uint32_t positions(const tl_product *p)
{
    return (uint32_t)((p->note[0][SUM_MAX_ENTRIES] + 127) / 128 * 128);
}

static int key_bits(const tl_product *p)
{
    return p->note[0][SUM_MAX_SPAN] < UINT32_MAX ? 32 : 64;
}

/* How a class whose blocks may need global memory is run, and how much of it; all zero for other classes. */
typedef struct grid {
    uint32_t blocks, shared, window, stride;    /* window: columns; stride: positions of a block          */
    uint64_t slots, bytes;                      /* slots: of a block's hash map; bytes: of all of it     */
} grid;

static grid grid_of(const tl_product *p, int step, int c, uint32_t rows)
{
    const tl_size *s = &p->sizes[step].size[c];
    const uint64_t span = measure(p, step, c, p->note[0][SUM_MAX_SPAN]);
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)p->types.val);
    grid g = {0};
    if (s->kernel == TL_K_SYMBOLIC_SPILL) {
        uint64_t need = p->note[0][SUM_MAX_NEED];
        if (need > p->sizes[0].limits[LIMIT_HASH]) need = p->sizes[0].limits[LIMIT_HASH];
        g.blocks = rows < s->resident ? rows : s->resident;
        g.slots = need + need / 2 + 128;
        g.bytes = g.blocks * g.slots * (uint64_t)(key_bits(p) / 8);
    } else if (s->kernel == TL_K_SYMBOLIC_DENSE || s->kernel == TL_K_NUMERIC_DENSE) {
        g.window = window(step ? s->slots : s->slots * 32, span);
        g.shared = step ? g.window * val + g.window / 8 : g.window / 32 * 4;
        uint32_t resident = tl_resident(&p->gpu->caps, s->threads, g.shared);
        bool windows = span > g.window;
        g.blocks = rows < resident || (!step && !windows) ? rows : resident;    /* counting, a block keeps nothing */
        g.stride = windows ? positions(p) : 0;
        g.bytes = (uint64_t)g.blocks * g.stride * 4;
    }
    return g;
}

/* Global memory for a class of the step under way. */
static tulle_status take_room(tl_product *p, const grid *g, const char *what, tl_dmem *scratch)
{
    return g->bytes ? tl_dmem_alloc(p->b, p->gpu, g->bytes, what, scratch) : TULLE_OK;
}

tl_step_need tl_step_needs(tl_product *p, int step)
{
    uint64_t groups, lists = divide(p, step, &groups);
    tl_step_need n = {.lists = lists ? tl_dmem_round(lists) : 0};
    for (int c = CLASS_BITS; c < CLASSES; c++) {
        tl_dmem list;
        uint32_t rows = rows_of(p, step, c, &list);
        grid g = grid_of(p, step, c, rows);
        if (rows && g.bytes) n.scratch += tl_dmem_round(g.bytes);
    }
    return n;
}

tl_step_need tl_step_most(const tl_product *p)
{
    const tl_size *s = &p->sizes[1].size[CLASS_DENSE];
    uint32_t resident = s->kernel == TL_K_NUMERIC_DENSE ? tl_resident(&p->gpu->caps, s->threads, 0) : 0;
    uint64_t blocks = p->rows < resident ? p->rows : resident;
    return (tl_step_need){.lists = tl_dmem_round(((uint64_t)p->rows + CLASSES * 128) * 8 + TL_ALIGN),
                          .scratch = tl_dmem_round(blocks * positions(p) * 4)};
}

static int needed(const tl_product *p, int step, tl_kernel_id *ids)
{
    int count = 0;
    for (int c = CLASS_DIRECT; c < CLASSES; c++) {
        tl_dmem list;
        if (rows_of(p, step, c, &list) && p->sizes[step].size[c].kernel != TL_K_NONE) ids[count++] = p->sizes[step].size[c].kernel;
    }
    return count;
}

/* Now that types, spans and rows of A are known: the kernels and sizes of rows of few products. */
static void fit_few(tl_product *p, int step, tl_types types)
{
    tl_accumulator few = p->request.recipe->few;
    for (int bin = 0; bin < FEW_SIZES && few != TL_DIRECT; bin++) {
        tl_size *s = &p->sizes[step].size[CLASS_FEW + bin];
        if (FEW_MOST(bin) > p->sizes[step].limits[LIMIT_FEW]) continue;
        uint64_t span = types.key == 32 ? p->note[0][SUM_MAX_SPAN] : UINT64_MAX;
        *s = tl_size_few(p->gpu, step ? few : TL_DIRECT, types, bin, p->note[0][SUM_MAX_ENTRIES],
                         p->rows ? (uint64_t)p->a_nnz / p->rows : 0, span);
    }
}

static uint32_t log2_of(uint32_t power)
{
    uint32_t log2 = 0;
    while (1u << log2 < power) log2++;
    return log2;
}

/* ---- symbolic */

/* Classes of rows run side by side. */
static tulle_status open_lanes(tl_product *p, int count, int *lanes)
{
    *lanes = count < 2 ? 1 : count < TL_LANES ? count : TL_LANES;
    return *lanes > 1 ? p->driver->fork(p->b, p->device, *lanes) : TULLE_OK;
}

static tulle_status close_lanes(tl_product *p, int lanes)
{
    tulle_status status = lanes > 1 ? p->driver->join(p->b, p->device, lanes) : TULLE_OK;
    for (int i = 0; i < TL_SCRATCH; i++) {
        tl_dmem_free(p->gpu, p->scratch[i]);
        p->scratch[i] = nothing;
    }
    return status;
}

tulle_status tl_step_symbolic(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_kernel_id ids[CLASSES];
    tl_types compound = p->types, plain = p->types;
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    compound.key = span <= ((uint64_t)1 << 27) ? 32 : 64;
    plain.key = key_bits(p);
    fit_few(p, 0, plain);
    int count = needed(p, 0, ids);
    TRY(tl_product_need(p, compound, ids, count));
    if (plain.key != compound.key) TRY(tl_product_need(p, plain, ids, count));
    int lanes = 1, launched = 0;
    TRY(open_lanes(p, count, &lanes));
    for (int c = CLASSES - 1; c >= CLASS_BITS; c--) {           /* long rows first */
        const tl_size *s = &p->sizes[0].size[c];
        tl_dmem list;
        uint32_t rows = rows_of(p, 0, c, &list), per = 1;
        if (!rows) continue;
        int lane = lanes > 1 ? launched++ % lanes : 0;
        if (s->kernel == TL_K_SYMBOLIC_ROWS) {
            tl_size z;
            uint64_t blocks = blocks_of(p, 0, c, rows, &per, &z);
            tl_dmem groups = nothing, cursors = nothing, all = nothing;
            if (p->work[0].balanced) {
                groups = (tl_dmem){p->work[0].groups.handle, p->work[0].groups.offset + (uint64_t)p->work[0].start[c] * 4};
                cursors = p->cursors[0];
                all = p->work[0].list;
            }
            tl_arg args[] = {TL_U32(rows), TL_U32(per), TL_MEM(all), TL_MEM(groups), TL_MEM(cursors), TL_U32(CLASSES + c),
                             TL_U32(widest(p)), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(z.slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, compound, z.kernel, blocks, z.threads, z.shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_DENSE_ROWS) {
            /* no more words than the widest row here needs */
            uint64_t words = s->slots, exact = (measure(p, 0, c, span) + 63) / 64 * 2;
            tl_size z = exact < words ? tl_size_teams(p->gpu, s->kernel, s->threads, s->team, exact * 4, (uint32_t)exact) : *s;
            uint64_t teams = z.threads / z.team, blocks = (rows + teams - 1) / teams;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_U32(z.team), TL_U32(z.slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, z.kernel, blocks, z.threads, z.shared, lane, args, TL_COUNT(args)));
        } else if (c >= CLASS_FEW) {
            uint64_t teams = s->threads / s->team;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->lo), TL_U32(log2_of(s->team)), TL_U32(log2_of(s->entry)), TL_U32(s->slots),
                             TL_U32(s->slab), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, (rows + teams - 1) / teams, s->threads, s->shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_BLOCK) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, rows, s->threads, s->shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_SPILL) {
            grid g = grid_of(p, 0, c, rows);
            TRY(take_room(p, &g, "hash maps in global memory", &p->scratch[TL_SPILL]));
            TRY(p->driver->fill(p->b, p->device, p->scratch[TL_SPILL], 0xff, g.bytes));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->scratch[TL_SPILL]),
                             TL_U64(g.slots), TL_MEM(p->c_ptr)};
            /* the maps are filled by the queue: the kernel follows there */
            TRY(tl_product_launch(p, plain, s->kernel, g.blocks, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (tl_split_wanted(p, 0, c, rows, measure(p, 0, c, span))) {
            TRY(tl_split_symbolic(p, plain, rows, list, measure(p, 0, c, span), &p->scratch[c == CLASS_DENSE ? TL_DENSE_ROWS : TL_MASK_ROWS]));
        } else {
            grid g = grid_of(p, 0, c, rows);
            TRY(take_room(p, &g, "positions in rows of B", &p->scratch[c == CLASS_DENSE ? TL_DENSE_ROWS : TL_MASK_ROWS]));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_MEM(p->span), TL_U32(g.window / 32),
                             TL_MEM(p->scratch[c == CLASS_DENSE ? TL_DENSE_ROWS : TL_MASK_ROWS]), TL_U32(g.stride), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, g.blocks, s->threads, g.shared, lane, args, TL_COUNT(args)));
        }
    }
    TRY(close_lanes(p, lanes));
done:
    return status;
}

/* ---- numeric */

static tulle_status load_numeric(tl_product *p, tl_types types, int *classes, bool *sort)
{
    tl_kernel_id ids[CLASSES + 1];
    fit_few(p, 1, types);
    int count = needed(p, 1, ids);
    *classes = count;
    *sort = false;
    for (int i = 0; i < count; i++) *sort = *sort || ids[i] == TL_K_NUMERIC_BLOCK;
    if (*sort) ids[count++] = TL_K_SORT_ROWS;
    return tl_product_need(p, types, ids, count);
}

tulle_status tl_step_load(tl_product *p)
{
    tl_types types = p->types;
    int classes;
    bool sort;
    types.key = key_bits(p);
    return load_numeric(p, types, &classes, &sort);
}

tulle_status tl_step_numeric(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_types types = p->types;
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    uint32_t val = (uint32_t)tl_type_size((tulle_type)types.val);
    int classes = 0, lanes = 1, launched = 0;
    bool sort = false;
    types.key = key_bits(p);
    TRY(load_numeric(p, types, &classes, &sort));
    TRY(open_lanes(p, classes, &lanes));
    for (int c = CLASSES - 1; c >= CLASS_DIRECT; c--) {
        const tl_size *s = &p->sizes[1].size[c];
        tl_dmem list;
        uint32_t rows = rows_of(p, 1, c, &list), per = 1;
        if (!rows || s->kernel == TL_K_NONE) continue;
        int lane = lanes > 1 ? launched++ % lanes : 0;
        if (s->kernel == TL_K_NUMERIC_ROWS) {
            tl_size z;
            uint64_t blocks = blocks_of(p, 1, c, rows, &per, &z);
            tl_dmem groups = nothing, cursors = nothing, all = nothing;
            if (p->work[1].balanced) {
                groups = (tl_dmem){p->work[1].groups.handle, p->work[1].groups.offset + (uint64_t)p->work[1].start[c] * 4};
                cursors = p->cursors[1];
                all = p->work[1].list;
            }
            tl_arg args[] = {TL_U32(rows), TL_U32(per), TL_MEM(all), TL_MEM(groups), TL_MEM(cursors), TL_U32(CLASSES + c),
                             TL_U32(widest(p)), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr),
                             TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo),
                             TL_MEM(p->span), TL_U32(z.slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, z.kernel, blocks, z.threads, z.shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_RANK) {
            uint64_t exact = (measure(p, 1, c, RANK_BYTES(span, p->note[1][SUM_MAX_NNZ], val)) + 15) / 16 * 16;
            tl_size z = exact < s->slots ? tl_size_teams(p->gpu, s->kernel, s->threads, s->team, exact, (uint32_t)exact) : *s;
            uint64_t teams = z.threads / z.team, blocks = (rows + teams - 1) / teams;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->lo), TL_MEM(p->span),
                             TL_U32(log2_of(z.team)), TL_U32(z.slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, z.kernel, blocks, z.threads, z.shared, lane, args, TL_COUNT(args)));
        } else if (c >= CLASS_FEW) {
            uint64_t teams = s->threads / s->team;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->lo), TL_U32(log2_of(s->team)),
                             TL_U32(log2_of(s->entry)), TL_U32(s->slots), TL_U32(s->slab), TL_U32(s->bits), TL_MEM(p->c_ptr),
                             TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, (rows + teams - 1) / teams, s->threads, s->shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_RANK_BLOCK) {
            uint64_t exact = measure(p, 1, c, RANK_BYTES(span, p->note[1][SUM_MAX_NNZ], val));
            uint32_t shared = exact < s->shared ? (uint32_t)(exact + 15) / 16 * 16 : s->shared;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, rows, s->threads, shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_BLOCK) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, rows, s->threads, s->shared, lane, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_DIRECT) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_U32(s->team), TL_MEM(p->c_ptr),
                             TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, ((uint64_t)rows * s->team + s->threads - 1) / s->threads, s->threads, 0, lane, args, TL_COUNT(args)));
        } else if (tl_split_wanted(p, 1, c, rows, measure(p, 1, c, span))) {
            TRY(tl_split_numeric(p, types, rows, list, measure(p, 1, c, span), &p->scratch[TL_DENSE_ROWS]));
        } else {
            grid g = grid_of(p, 1, c, rows);
            TRY(take_room(p, &g, "positions in rows of B", &p->scratch[TL_DENSE_ROWS]));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_U32(g.window), TL_MEM(p->scratch[TL_DENSE_ROWS]), TL_U32(g.stride),
                             TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, g.blocks, s->threads, g.shared, lane, args, TL_COUNT(args)));
        }
    }
    TRY(close_lanes(p, lanes));
    TRY(tl_product_mark(p, "numeric"));
    if (sort) {
        tl_dmem list;
        uint32_t rows = rows_of(p, 1, CLASS_HASH, &list), room = p->sizes[1].limits[LIMIT_HASH];
        if (p->note[1][SUM_MAX_NNZ] < room) room = (uint32_t)p->note[1][SUM_MAX_NNZ];
        tl_size s = tl_size_sort(p->gpu, types, room);
        tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->c_ptr), TL_MEM(p->lo), TL_MEM(p->span), TL_U32(s.slots),
                         TL_MEM(p->c_col), TL_MEM(p->c_val)};
        TRY(tl_product_launch(p, types, TL_K_SORT_ROWS, rows, s.threads, s.shared, 0, args, TL_COUNT(args)));
    }
    if (sort) TRY(tl_product_mark(p, "sorting"));
done:
    return status;
}
