/* SPDX-License-Identifier: MIT
 *
 * steps.c - the two steps of spECK on the device: which rows go to which kernel, and the launches.
 *
 * Global load balancing costs a kernel and a list of rows; it is run only where classes differ and the policy's
 * thresholds say that it pays (spECK, section 5).  Otherwise one class takes all rows in their order. */
#include "gpu/product.h"
#include <inttypes.h>
#include <string.h>

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

/* ---- balance */

/* Can this class take every row?  Empty rows and single entries are no trouble to any. */
static bool takes_all(const tl_sizes *z, int c, uint64_t need, uint64_t span)
{
    if (z->size[c].kernel == TL_K_NONE) return false;
    if (c >= CLASS_BITS && c < CLASS_BITS + 3) return span <= z->limits[LIMIT_BITS + c - CLASS_BITS];
    if (c >= CLASS_ROWS && c < CLASS_ROWS + 3) return need <= z->limits[LIMIT_ROWS + c - CLASS_ROWS];
    if (c >= CLASS_BLOCK && c < CLASS_BLOCK + 3) return need <= z->limits[LIMIT_BLOCK + c - CLASS_BLOCK];
    if (c == CLASS_SPILL) return need <= z->limits[LIMIT_SPILL];
    return c == CLASS_DENSE;
}

/* Is it worth sorting rows into classes?  If not, *only is the class for all of them. */
static bool decide(tl_product *p, int step, int *only)
{
    const tl_gpu_step *s = step ? &p->request.recipe->policy->gpu->numeric : &p->request.recipe->policy->gpu->symbolic;
    const tl_sizes *z = &p->sizes[step];
    const uint64_t *rows = p->note[step] + SUM_WORDS;
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    uint64_t need = step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_NEED];
    uint64_t sum = step ? p->note[1][SUM_NNZ] : p->note[0][SUM_NEED];
    int classes = 0, largest = CLASS_EMPTY;
    for (int c = CLASS_BITS; c < CLASSES; c++)
        if (rows[c]) {
            classes++;
            largest = c;
        }
    uint64_t special = rows[CLASS_EMPTY] + rows[CLASS_DIRECT];
    *only = CLASS_EMPTY;
    if (classes == 0 && !rows[CLASS_DIRECT]) return false;              /* nothing to do */
    if (classes == 0) largest = CLASS_ROWS;
    if (takes_all(z, largest, need, span)) *only = largest;
    else
        for (int c = CLASS_ROWS; c < CLASSES && *only == CLASS_EMPTY; c++)
            if (c != CLASS_SPILL && takes_all(z, c, need, span)) *only = c;
    if (p->gpu->balance >= 0) return p->gpu->balance || *only == CLASS_EMPTY;
    if (*only == CLASS_EMPTY) return true;
    if (classes <= 1 && special * 2 <= p->rows) return false;
    if (classes == 0) return p->rows >= s->rows_large;
    double ratio = (double)need * (double)p->rows / (double)(sum ? sum : 1);
    bool large = largest >= CLASS_BLOCK;
    return (ratio >= s->ratio && p->rows >= s->rows) || (large && ratio >= s->ratio_large && p->rows >= s->rows_large);
}

tulle_status tl_step_balance(tl_product *p, int step)
{
    tulle_status status = TULLE_OK;
    tl_work *w = &p->work[step];
    const uint64_t *rows = p->note[step] + SUM_WORDS;
    w->balanced = decide(p, step, &w->only);
    uint64_t room = 0;
    for (int c = 0; c < CLASSES; c++) {
        w->rows[c] = (uint32_t)rows[c];
        w->start[c] = (uint32_t)room;
        room += LIST_ROUND((uint32_t)rows[c]);
    }
    tl_trace(p->b, "%s step: %s", step ? "numeric" : "symbolic",
             w->balanced ? "rows are sorted into classes" : "one kernel takes all rows");
    if (!w->balanced) goto done;
    /* Lists first, groups (two words for each row that may stand alone) behind them. */
    uint64_t merge = w->start[CLASS_ROWS + 2] + (uint64_t)LIST_ROUND(w->rows[CLASS_ROWS + 2]);
    uint64_t bytes = (room + 2 * merge) * 4 + TL_ALIGN;
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "lists of rows", &w->list));
    w->groups = (tl_dmem){w->list.handle, (room * 4 + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN};
    tl_kernel_id need[] = {TL_K_BINS};
    TRY(tl_gpu_need(p->b, p->gpu, p->types, need, 1));
    tl_dmem limits = {p->gpu->limits.handle, (uint64_t)step * 512};
    uint32_t threads = p->gpu->caps.cpu ? 64 : 512;
    tl_arg args[] = {TL_U32(p->rows), TL_U32(step), TL_MEM(p->A.ptr), TL_MEM(p->products), TL_MEM(p->span),
                     TL_MEM(p->c_ptr), TL_MEM(limits), TL_MEM(p->sum[step]), TL_MEM(p->cursors[step]), TL_MEM(w->list),
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

/* Blocks of a class of short rows: `per` rows each where they were not merged; else a guess from above, as the kernel
 * reads how many there are. */
static uint64_t blocks_of(const tl_product *p, int step, int c, uint32_t rows, uint32_t *per)
{
    const tl_size *s = &p->sizes[step].size[c];
    uint64_t most = step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_NEED];
    uint64_t slots = step ? NUMERIC_SLOTS(most) : SYMBOLIC_SLOTS(most);
    *per = 1;
    if (p->work[step].balanced) {
        uint64_t products = p->note[step][SUM_WORDS + CLASSES + c];
        uint64_t guess = rows / 16 + 2 * (products + products / 2) / s->slots + 64;
        return guess < rows ? guess : rows;
    }
    uint64_t fit = slots ? s->slots / slots : 32;
    *per = (uint32_t)(fit < 1 ? 1 : fit > 32 ? 32 : fit);
    /* enough blocks to fill the device matter more than full blocks */
    while (*per > 1 && (rows + *per - 1) / *per < s->resident) *per /= 2;
    return (rows + *per - 1) / *per;
}

static uint32_t widest(const tl_product *p)
{
    return p->gpu->caps.warp ? p->gpu->caps.warp : 1024;
}

/* Columns that a block still has to look at again in the next window: room for its positions. */
static tulle_status positions(tl_product *p, uint32_t grid, bool windows, uint32_t *stride)
{
    *stride = 0;
    if (!windows) return TULLE_OK;
    *stride = (uint32_t)((p->note[0][SUM_MAX_ENTRIES] + 127) / 128 * 128);
    return tl_dmem_alloc(p->b, p->gpu, (uint64_t)grid * *stride * 4, "positions in rows of B", &p->scratch);
}

/* A window no wider than the widest row. */
static uint32_t window(uint32_t most, uint64_t span)
{
    uint64_t columns = (span + 127) / 128 * 128;
    return columns < most ? (uint32_t)columns : most;
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

/* ---- symbolic */

tulle_status tl_step_symbolic(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_kernel_id ids[CLASSES];
    tl_types compound = p->types, plain = p->types;
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    compound.key = span <= ((uint64_t)1 << 27) ? 32 : 64;
    plain.key = span < UINT32_MAX ? 32 : 64;
    int count = needed(p, 0, ids);
    TRY(tl_gpu_need(p->b, p->gpu, compound, ids, count));
    if (plain.key != compound.key) TRY(tl_gpu_need(p->b, p->gpu, plain, ids, count));
    for (int c = CLASSES - 1; c >= CLASS_BITS; c--) {           /* long rows first */
        const tl_size *s = &p->sizes[0].size[c];
        tl_dmem list;
        uint32_t rows = rows_of(p, 0, c, &list), per = 1, stride = 0;
        if (!rows) continue;
        if (s->kernel == TL_K_SYMBOLIC_ROWS) {
            uint64_t blocks = blocks_of(p, 0, c, rows, &per);
            tl_dmem groups = nothing, cursors = nothing, all = nothing;
            if (p->work[0].balanced) {
                groups = (tl_dmem){p->work[0].groups.handle, p->work[0].groups.offset + (uint64_t)p->work[0].start[c] * 8};
                cursors = p->cursors[0];
                all = p->work[0].list;
            }
            tl_arg args[] = {TL_U32(rows), TL_U32(per), TL_MEM(all), TL_MEM(groups), TL_MEM(cursors), TL_U32(CLASSES + c),
                             TL_U32(widest(p)), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, compound, s->kernel, blocks, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_DENSE_ROWS) {
            uint64_t blocks = (rows + s->teams - 1) / s->teams;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_U32(s->threads / s->teams), TL_U32(s->slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, blocks, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_BLOCK) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, rows, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_SYMBOLIC_SPILL) {
            uint32_t grid = rows < s->resident ? rows : s->resident;
            uint64_t need = p->note[0][SUM_MAX_NEED];
            if (need > p->sizes[0].limits[LIMIT_SPILL]) need = p->sizes[0].limits[LIMIT_SPILL];
            uint64_t slots = need + need / 2 + 128, bytes = (uint64_t)grid * slots * (uint64_t)(plain.key / 8);
            TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "hash maps in global memory", &p->scratch));
            TRY(p->driver->fill(p->b, p->device, p->scratch, 0xff, bytes));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->scratch),
                             TL_U64(slots), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, grid, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else {
            uint32_t words = window(s->slots * 32, span) / 32;
            uint32_t resident = tl_resident(&p->gpu->caps, s->threads, words * 4), grid = rows < resident ? rows : resident;
            TRY(positions(p, grid, span > (uint64_t)words * 32, &stride));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                             TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_MEM(p->span), TL_U32(words),
                             TL_MEM(p->scratch), TL_U32(stride), TL_MEM(p->c_ptr)};
            TRY(tl_product_launch(p, plain, s->kernel, grid, s->threads, words * 4, 0, args, TL_COUNT(args)));
        }
        tl_dmem_free(p->gpu, p->scratch);
        p->scratch = nothing;
    }
done:
    return status;
}

/* ---- numeric */

/* Words of bits with which a class of long rows needs no sort; 0: they do not fit beside its table. */
static uint32_t ranked_words(const tl_product *p, int c)
{
    const tl_size *s = &p->sizes[1].size[c];
    uint64_t words = (p->note[0][SUM_MAX_SPAN] + 63) / 64 * 2;
    uint64_t fits = c == CLASS_BLOCK + 2 ? tl_dynamic_bytes(&p->gpu->caps) : s->shared + s->shared / 2;
    return s->slots <= 65536 && p->request.recipe->forced < 0 && s->shared + words * 6 <= fits ? (uint32_t)words : 0;
}

tulle_status tl_step_numeric(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_kernel_id ids[CLASSES + 2];
    tl_types types = p->types;
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    uint32_t val = (uint32_t)tl_type_size((tulle_type)types.val);
    bool sort = false;
    types.key = span < UINT32_MAX ? 32 : 64;
    int count = needed(p, 1, ids);
    for (int i = 0; i < count; i++) sort = sort || ids[i] == TL_K_NUMERIC_BLOCK;
    if (sort) {
        ids[count++] = TL_K_SORT_ROWS;
        ids[count++] = TL_K_NUMERIC_RANKED;
    }
    TRY(tl_gpu_need(p->b, p->gpu, types, ids, count));
    for (int c = CLASSES - 1; c >= CLASS_DIRECT; c--) {
        const tl_size *s = &p->sizes[1].size[c];
        tl_dmem list;
        uint32_t rows = rows_of(p, 1, c, &list), per = 1, stride = 0;
        if (!rows || s->kernel == TL_K_NONE) continue;
        if (s->kernel == TL_K_NUMERIC_ROWS) {
            uint64_t blocks = blocks_of(p, 1, c, rows, &per);
            tl_dmem groups = nothing, cursors = nothing, all = nothing;
            if (p->work[1].balanced) {
                groups = (tl_dmem){p->work[1].groups.handle, p->work[1].groups.offset + (uint64_t)p->work[1].start[c] * 8};
                cursors = p->cursors[1];
                all = p->work[1].list;
            }
            tl_arg args[] = {TL_U32(rows), TL_U32(per), TL_MEM(all), TL_MEM(groups), TL_MEM(cursors), TL_U32(CLASSES + c),
                             TL_U32(widest(p)), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr),
                             TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo),
                             TL_U32(s->slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, blocks, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_DENSE_ROWS) {
            uint64_t blocks = (rows + s->teams - 1) / s->teams;
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->lo), TL_MEM(p->span),
                             TL_U32(s->threads / s->teams), TL_U32(s->slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col),
                             TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, blocks, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_BLOCK && ranked_words(p, c)) {
            uint32_t words = ranked_words(p, c);
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_U32(s->slots), TL_U32(words), TL_MEM(p->c_ptr),
                             TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, TL_K_NUMERIC_RANKED, rows, s->threads, s->shared + words * 6, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_NUMERIC_BLOCK) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_U32(s->slots), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, rows, s->threads, s->shared, 0, args, TL_COUNT(args)));
        } else if (s->kernel == TL_K_DIRECT) {
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_U32(s->slots), TL_MEM(p->c_ptr),
                             TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, (rows + s->teams - 1) / s->teams, s->threads, 0, 0, args, TL_COUNT(args)));
        } else {
            uint32_t slots = window(s->slots, span), shared = slots * val + slots / 8;
            uint32_t resident = tl_resident(&p->gpu->caps, s->threads, shared), grid = rows < resident ? rows : resident;
            TRY(positions(p, grid, span > slots, &stride));
            tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                             TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->products), TL_MEM(p->longest),
                             TL_MEM(p->lo), TL_MEM(p->span), TL_U32(slots), TL_MEM(p->scratch), TL_U32(stride),
                             TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
            TRY(tl_product_launch(p, types, s->kernel, grid, s->threads, shared, 0, args, TL_COUNT(args)));
        }
        tl_dmem_free(p->gpu, p->scratch);
        p->scratch = nothing;
    }
    TRY(tl_product_mark(p, "numeric"));
    for (int c = CLASS_BLOCK; sort && c < CLASS_BLOCK + 3; c++) {
        tl_dmem list;
        uint32_t rows = rows_of(p, 1, c, &list);
        if (!rows || ranked_words(p, c)) continue;
        uint64_t most = p->note[1][SUM_MAX_NNZ];
        uint32_t room = p->sizes[1].limits[LIMIT_BLOCK + c - CLASS_BLOCK];
        if (most < room) room = (uint32_t)most;
        tl_size s = tl_size_sort(p->gpu, types, room);
        tl_arg args[] = {TL_U32(rows), TL_MEM(list), TL_MEM(p->c_ptr), TL_MEM(p->lo), TL_MEM(p->span), TL_U32(s.slots),
                         TL_MEM(p->c_col), TL_MEM(p->c_val)};
        TRY(tl_product_launch(p, types, TL_K_SORT_ROWS, rows, s.threads, s.shared, 0, args, TL_COUNT(args)));
    }
    if (sort) TRY(tl_product_mark(p, "sorting"));
done:
    return status;
}
