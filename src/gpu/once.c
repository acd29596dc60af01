/* SPDX-License-Identifier: MIT
 *
 * once.c - the stages of bhSPARSE (Liu and Vinter, "An Efficient GPU General Sparse Matrix-Matrix
 * Multiplication for Irregular Data", IPDPS 2014): a single step, based on upper bounds instead of a
 * symbolic step.
 *
 *   analysis -> wait -> bins, positions in C~ -> wait -> heap, bitonic ESC, merge -> wait, repeated while
 *   rows need more room -> row pointers -> wait -> C allocated -> entries copied to C
 *
 * The upper bound of a row is the number of its products. 38 bins in five groups: 0; 1; 2 to 32 (heap, a
 * thread per row); up to 64, 128, 256, 512 (bitonic ESC); more (merge).  Memory: C~ has room for the upper
 * bound of a row in the first four groups, and for 256 entries of a row to be merged.  A merged row that
 * does not fit gets twice the room in the next area, but never more than min(products, span) entries.  So
 * areas take at most four times the entries of long rows, and 44 bytes for each waiting row.  Areas are kept
 * until C is filled. */
#include "gpu/product.h"
#include <inttypes.h>
#include <string.h>

enum {
    FIRST_ROOM = 256,                   /* initial room of a merged row, in entries */
    PLACE_BITS = 10,                    /* merge.cl: a batch has at most 1024 products */
    BOARD_CURSORS = 2 * TL_ALIGN,       /* of the bins; the summary precedes them */
    BOARD_NEXT = 3 * TL_ALIGN,          /* waiting rows, entries they need */
    BOARD_BYTES = 4 * TL_ALIGN
};
_Static_assert(BIN_WORDS * 8 <= BOARD_CURSORS && BINS * 4 <= TL_ALIGN, "a part of the board is too small");
_Static_assert(BIN_WORDS * 8 <= TL_NOTE_BYTES, "the note is too small");

static const tl_dmem nothing = {0, 0};

static tl_dmem part(tl_dmem mem, uint64_t offset)
{
    return (tl_dmem){mem.handle, mem.offset + offset};
}

/* ---- block sizes and shared memory of the methods on this device */

/* Keys of 32 bits, if a column and an index of so many bits fit into them. */
static tl_types types_for(const tl_product *p, int bits)
{
    tl_types types = p->types;
    types.key = p->note[0][SUM_MAX_SPAN] < (uint64_t)1 << (32 - bits) ? 32 : 64;
    return types;
}

static uint32_t entry_bytes(tl_types types)
{
    return (uint32_t)tl_type_size((tulle_type)types.val) + (uint32_t)types.key / 8;
}

typedef struct method {
    tl_types types;
    uint32_t threads, shared;
    uint32_t each;                      /* ESC: threads of a crew; merge: products of a batch */
    uint32_t room;                      /* entries of a thread, a crew, a block               */
} method;

static method heap_for(const tl_product *p, uint32_t most)
{
    const tl_caps *caps = &p->gpu->caps;
    method m = {.types = types_for(p, 5), .room = most};
    uint32_t bytes = most * entry_bytes(m.types);
    m.threads = caps->cpu ? 8 : most > 16 ? 64 : 128;
    while (m.threads > 1 && m.threads * bytes > tl_dynamic_bytes(caps)) m.threads /= 2;
    m.shared = m.threads * bytes;
    return m;
}

static method esc_for(const tl_product *p, uint32_t slots)
{
    const tl_caps *caps = &p->gpu->caps;
    method m = {.types = types_for(p, 9), .room = slots};
    uint32_t bytes = slots * entry_bytes(m.types), all = tl_dynamic_bytes(caps);
    m.each = caps->cpu ? 16 : slots <= 128 ? 32 : slots / 4;
    m.threads = caps->warp && m.each == 32 ? 128 : m.each;      /* several crews per block, if warps */
    while (m.threads > m.each && m.threads / m.each * bytes > all) m.threads /= 2;
    m.shared = m.threads / m.each * bytes;
    return m;
}

/* room 0: all shared memory that is available. */
static method merge_for(const tl_product *p, uint32_t room, uint32_t bits)
{
    static const struct { uint32_t room, threads; } sizes[] = {
        {256, 64}, {1024, 128}, {2048, 256}, {4096, 512}, {UINT32_MAX, 1024}};
    const tl_caps *caps = &p->gpu->caps;
    method m = {.types = types_for(p, PLACE_BITS)};
    if (!bits) m.types.key = 64;
    uint32_t entry = entry_bytes(m.types), each = entry + (uint32_t)p->types.ptr / 8 + 4;
    uint32_t all = tl_dynamic_bytes(caps) - 64;                 /* for the kernel's own static arrays,
                                                             * besides those for prefix sums */
    int i = 0;
    while (sizes[i].room < (room ? room : UINT32_MAX)) i++;
    m.threads = tl_least(sizes[i].threads, caps->cpu ? 32 : caps->threads_block);
    m.each = m.threads;
    while (m.each > 4 && m.each * each > all / 3) m.each /= 2;
    m.room = room ? room : (all - m.each * each) / entry / 2 * 2; /* even, to align the arrays behind */
    m.shared = (m.room * entry + m.each * each + 15) / 16 * 16;
    return m;
}

/* Assigns bins to methods: rows that do not fit a small shared memory are merged. */
static void choose(const tl_product *p, tl_once *o)
{
    const tl_caps *caps = &p->gpu->caps;
    const int forced = p->request.recipe->forced;
    const uint32_t all = tl_dynamic_bytes(caps);
    bool far = p->request.B->cols > (int64_t)1 << 53;           /* no room for an index in a key of 64 bits */
    o->bits = far ? 0 : PLACE_BITS;
    o->heap_most = 32;
    o->esc_most = 512;
    while (o->heap_most > 1 && (caps->cpu ? 4 : 16) * o->heap_most * entry_bytes(types_for(p, 5)) > all)
        o->heap_most--;
    while (o->esc_most && esc_for(p, o->esc_most).shared > all)
        o->esc_most = o->esc_most > 64 ? o->esc_most / 2 : 0;
    if (far || forced == TL_ESC || forced == TL_MERGE) o->heap_most = 1;
    if (far || forced == TL_MERGE) o->esc_most = 0;
}

/* ---- memory */

static tulle_status make_area(tl_product *p, tl_area *area, uint64_t entries)
{
    tulle_status status = TULLE_OK;
    uint64_t idx = (uint64_t)p->types.idx / 8, val = tl_type_size((tulle_type)p->types.val);
    TRY(tl_dmem_alloc(p->b, p->gpu, entries * idx, "columns before C is arranged", &area->col));
    TRY(tl_dmem_alloc(p->b, p->gpu, entries * val, "values before C is arranged", &area->val));
done:
    return status;
}

static void free_area(tl_product *p, tl_area *area)
{
    tl_dmem_free(p->gpu, area->col);
    tl_dmem_free(p->gpu, area->val);
    tl_dmem_free(p->gpu, area->waiting);
    memset(area, 0, sizeof *area);
}

void tl_once_done(tl_product *p, tl_once *o)
{
    tl_dmem *parts[] = {&o->board, &o->list, &o->room};
    for (int i = 0; i < TL_COUNT(parts); i++) {
        tl_dmem_free(p->gpu, *parts[i]);
        *parts[i] = nothing;
    }
    for (int i = 0; i < o->areas; i++) free_area(p, &o->area[i]);
    o->areas = 0;
}

/* Bytes of the three arrays of the bins. */
static uint64_t bins_bytes(const tl_product *p)
{
    return tl_dmem_round(BOARD_BYTES) + tl_dmem_round((uint64_t)p->rows * 4)
           + tl_dmem_round(((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8));
}

/* Memory of a merged row over all areas: each room but the last is smaller than the row, and twice the one
 * before (except at the limit of shared memory), so at most four times its products.  After C is counted: the
 * memory that is in use. */
uint64_t tl_once_bytes(const tl_product *p, const tl_once *o)
{
    uint64_t entry = (uint64_t)p->types.idx / 8 + tl_type_size((tulle_type)p->types.val), rows = p->rows;
    uint64_t first = p->note[0][SUM_PRODUCTS], merged = first, areas = 2;
    if (p->known == TL_COUNTED) {
        uint64_t mine =
            p->c_col.handle ? tl_dmem_round((uint64_t)p->c_nnz * (uint64_t)(p->types.idx / 8)) : 0;
        uint64_t rest = p->begun + tl_dmem_round((rows + 1) * (uint64_t)(p->types.ptr / 8)) + mine;
        return o->areas && tl_dmem_taken(p->gpu) > rest ? tl_dmem_taken(p->gpu) - rest : 0;
    }
    if (o->start[BINS]) {               /* bins are known */
        first = o->bin[BIN_ROOM];
        merged = o->bin[BIN_PRODUCTS + BIN_MERGE];
        rows = o->bin[BIN_MERGE];
    }
    for (uint64_t room = 32; room < p->note[0][SUM_MAX_PRODUCTS]; room *= 2) areas++;
    return bins_bytes(p) + (first + 4 * merged) * entry + areas * (rows * WAIT_WORDS * 8 + 3 * TL_ALIGN);
}

/* ---- upper bounds and bins */

static bool empty(const tl_product *p)
{
    return p->rows == 0 || p->note[0][SUM_PRODUCTS] == 0;
}

static void tell(const tl_product *p, const tl_once *o)
{
    uint64_t heap = 0, esc = 0;
    for (int i = 2; i < BIN_ESC; i++) heap += o->bin[i];
    for (int i = BIN_ESC; i < BIN_MERGE; i++) esc += o->bin[i];
    tl_trace(p->b,
             "bins: %" PRIu64 " rows empty, %" PRIu64 " single, %" PRIu64 " heap, %" PRIu64
             " bitonic ESC, %" PRIu64 " merge; %" PRIu64 " entries in C~",
             o->bin[0], o->bin[1], heap, esc, o->bin[BIN_MERGE], o->bin[BIN_ROOM]);
}

static tulle_status bins(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_once *o = p->once;
    const uint64_t bytes = ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8);
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "row pointers of C", &p->c_ptr));
    o->bin[0] = p->rows;
    if (empty(p)) {
        TRY(p->driver->fill(p->b, p->device, p->c_ptr, 0, bytes));
        goto done;
    }
    choose(p, o);
    tl_kernel_id need[] = {TL_K_UPPER_COUNT, TL_K_UPPER_FILL};
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, BOARD_BYTES, "counts of bins", &o->board));
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->rows * 4, "lists of rows", &o->list));
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "places in C~", &o->room));
    TRY(p->driver->fill(p->b, p->device, o->board, 0, BOARD_BYTES));
    uint32_t threads = p->gpu->caps.cpu ? 64 : 256,
             first = tl_least(FIRST_ROOM, merge_for(p, 0, o->bits).room);
    uint64_t blocks = ((uint64_t)p->rows + threads - 1) / threads;
    o->area[0].room = first;
    tl_arg count[] = {TL_U32(p->rows), TL_U32(o->heap_most), TL_U32(o->esc_most),
                      TL_U32(first),   TL_MEM(p->products),  TL_MEM(p->span),
                      TL_MEM(o->room), TL_MEM(p->c_ptr),     TL_MEM(o->board)};
    tl_arg fill[] = {TL_U32(p->rows),     TL_U32(o->heap_most), TL_U32(o->esc_most),
                     TL_MEM(p->products), TL_MEM(o->board),     TL_MEM(part(o->board, BOARD_CURSORS)),
                     TL_MEM(o->list)};
    TRY(tl_product_launch(p, p->types, TL_K_UPPER_COUNT, blocks, threads, 0, 0, count, TL_COUNT(count)));
    TRY(tl_product_launch(p, p->types, TL_K_UPPER_FILL, blocks, threads, 0, 0, fill, TL_COUNT(fill)));
    TRY(tl_product_scan(p, o->room));
    TRY(tl_product_mark(p, "binning"));
    TRY(p->driver->download(p->b, p->device, p->gpu->note, o->board, sizeof o->bin));
    TRY(p->driver->wait(p->b, p->device));
    memcpy(o->bin, p->gpu->note, sizeof o->bin);
    for (int i = 0; i < BINS; i++) o->start[i + 1] = o->start[i] + (uint32_t)o->bin[i];
    tell(p, o);
done:
    return status;
}

/* ---- the three methods */

static uint32_t rows_of(const tl_once *o, int from, int to)
{
    return o->start[to] - o->start[from];
}

static tulle_status run_heap(tl_product *p, tl_once *o, int lane)
{
    /* Bins of similar size share a launch; if there are few rows, all bins do. */
    static const int ends[] = {9, 17, 25, BIN_ESC};
    tulle_status status = TULLE_OK;
    bool few = rows_of(o, 1, BIN_ESC) < 4096;
    for (int i = few ? TL_COUNT(ends) - 1 : 0, from = 1; i < TL_COUNT(ends); from = ends[i++]) {
        uint32_t rows = rows_of(o, from, ends[i]), most = (uint32_t)ends[i] - 1;
        if (!rows) continue;
        while (!o->bin[most]) most--;
        method m = heap_for(p, most);
        tl_arg args[] = {
            TL_U32(o->start[from]), TL_U32(rows),           TL_U32(most),           TL_MEM(o->list),
            TL_MEM(p->A.ptr),       TL_MEM(p->A.col),       TL_MEM(p->A.val),       TL_MEM(p->B.ptr),
            TL_MEM(p->B.col),       TL_MEM(p->B.val),       TL_MEM(p->products),    TL_MEM(p->lo),
            TL_MEM(o->room),        TL_MEM(o->area[0].col), TL_MEM(o->area[0].val), TL_MEM(p->c_ptr)};
        TRY(tl_product_launch(p, m.types, TL_K_HEAP, ((uint64_t)rows + m.threads - 1) / m.threads, m.threads,
                              m.shared, lane, args, TL_COUNT(args)));
    }
done:
    return status;
}

static tulle_status run_esc(tl_product *p, tl_once *o, int lane)
{
    tulle_status status = TULLE_OK;
    for (int bin = BIN_MERGE - 1; bin >= BIN_ESC; bin--) {
        uint32_t rows = rows_of(o, bin, bin + 1);
        if (!rows) continue;
        method m = esc_for(p, 64u << (bin - BIN_ESC));
        uint32_t crews = m.threads / m.each;
        tl_arg args[] = {TL_U32(o->start[bin]),  TL_U32(rows),     TL_U32(m.each),
                         TL_U32(m.room),         TL_MEM(o->list),  TL_MEM(p->A.ptr),
                         TL_MEM(p->A.col),       TL_MEM(p->A.val), TL_MEM(p->B.ptr),
                         TL_MEM(p->B.col),       TL_MEM(p->B.val), TL_MEM(p->products),
                         TL_MEM(p->lo),          TL_MEM(o->room),  TL_MEM(o->area[0].col),
                         TL_MEM(o->area[0].val), TL_MEM(p->c_ptr)};
        TRY(tl_product_launch(p, m.types, TL_K_ESC, (rows + crews - 1) / crews, m.threads, m.shared, lane,
                              args, TL_COUNT(args)));
    }
done:
    return status;
}

/* Merges the rows of the last area as far as they fit; those that need more room are listed for the next. */
static tulle_status launch_merge(tl_product *p, tl_once *o)
{
    tulle_status status = TULLE_OK;
    tl_area *now = &o->area[o->areas - 1], *next = &o->area[o->areas], *old = now - 1;
    const bool begun = o->areas > 1;
    const uint32_t scratch = merge_for(p, 0, o->bits).room;
    const bool deep = now->room > scratch;
    method m = merge_for(p, deep ? 0 : now->room, o->bits);
    next->room = tl_least(2 * (uint64_t)now->room, UINT32_MAX);
    if (!deep
        && next->room
               > scratch) /* all shared memory, if that is worth a launch; else global memory */
        next->room = scratch - now->room >= now->room / 2 && scratch > now->room ? scratch : 2 * scratch;
    o->areas++;
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)now->rows * WAIT_WORDS * 8, "rows that wait for more room",
                      &next->waiting));
    tl_dmem counts = part(o->board, BOARD_NEXT);
    TRY(p->driver->fill(p->b, p->device, counts, 0, 16));
    tl_dmem old_col = begun ? old->col : now->col, old_val = begun ? old->val : now->val;
    tl_arg shallow[] = {TL_U32(begun ? UINT32_MAX : o->start[BIN_MERGE]),
                        TL_U32(now->rows),
                        TL_MEM(o->list),
                        TL_MEM(now->waiting),
                        TL_MEM(p->A.ptr),
                        TL_MEM(p->A.col),
                        TL_MEM(p->A.val),
                        TL_MEM(p->B.ptr),
                        TL_MEM(p->B.col),
                        TL_MEM(p->B.val),
                        TL_MEM(p->products),
                        TL_MEM(p->span),
                        TL_MEM(p->lo),
                        TL_U32(m.each),
                        TL_U32(o->bits),
                        TL_U32(m.room),
                        TL_MEM(o->room),
                        TL_MEM(now->col),
                        TL_MEM(now->val),
                        TL_MEM(old_col),
                        TL_MEM(old_val),
                        TL_U32(next->room),
                        TL_MEM(counts),
                        TL_MEM(next->waiting),
                        TL_MEM(p->c_ptr)};
    tl_arg below[] = {TL_U32(now->rows),   TL_MEM(now->waiting),  TL_MEM(p->A.ptr),  TL_MEM(p->A.col),
                      TL_MEM(p->A.val),    TL_MEM(p->B.ptr),      TL_MEM(p->B.col),  TL_MEM(p->B.val),
                      TL_MEM(p->products), TL_MEM(p->span),       TL_MEM(p->lo),     TL_U32(m.each),
                      TL_U32(o->bits),     TL_U32(m.room),        TL_U32(now->room), TL_MEM(now->col),
                      TL_MEM(now->val),    TL_MEM(old_col),       TL_MEM(old_val),   TL_U32(next->room),
                      TL_MEM(counts),      TL_MEM(next->waiting), TL_MEM(p->c_ptr)};
    if (deep)
        TRY(tl_product_launch(p, m.types, TL_K_MERGE_DEEP, now->rows, m.threads, m.shared, 0, below,
                              TL_COUNT(below)));
    else
        TRY(tl_product_launch(p, m.types, TL_K_MERGE, now->rows, m.threads, m.shared, 0, shallow,
                              TL_COUNT(shallow)));
done:
    return status;
}

/* Reads the number of waiting rows, and allocates the next area for them. */
static tulle_status grow(tl_product *p, tl_once *o, bool *more)
{
    tulle_status status = TULLE_OK;
    tl_area *now = &o->area[o->areas - 2], *next = &o->area[o->areas - 1];
    uint64_t *note = p->gpu->note;
    TRY(p->driver->download(p->b, p->device, note, part(o->board, BOARD_NEXT), 16));
    TRY(p->driver->wait(p->b, p->device));
    uint64_t rows = note[0], entries = note[1];
    *more = rows > 0;
    /* No row was finished in the area before the last; its contents have been copied and can be freed. */
    if (o->areas > 3 && now->rows == now[-1].rows) free_area(p, &now[-1]);
    if (!*more) {
        free_area(p, next);
        o->areas--;
        goto done;
    }
    tl_trace(p->b, "merge: %" PRIu64 " of %u rows outgrow %u entries; %" PRIu64 " entries for them", rows,
             now->rows, now->room, entries);
    next->rows = (uint32_t)rows;
    if (o->areas == TL_AREAS) {
        status = tl_fail(p->b, TULLE_EOVERFLOW, "a row of C has more than %u entries", now->room);
        goto done;
    }
    TRY(make_area(p, next, entries));
done:
    return status;
}

static tulle_status load_kernels(tl_product *p, const tl_once *o)
{
    tulle_status status = TULLE_OK;
    const struct { tl_kernel_id id; tl_types types; bool wanted; } all[] = {
        {TL_K_HEAP, types_for(p, 5), rows_of(o, 1, BIN_ESC) > 0},
        {TL_K_ESC, types_for(p, 9), rows_of(o, BIN_ESC, BIN_MERGE) > 0},
        {TL_K_MERGE, merge_for(p, 0, o->bits).types, o->bin[BIN_MERGE] > 0},
        {TL_K_MERGE_DEEP, merge_for(p, 0, o->bits).types, o->bin[BIN_MERGE] > 0},
        {TL_K_ARRANGE, p->types, true},
        {TL_K_ARRANGE_AREA, p->types, o->bin[BIN_MERGE] > 0},
    };
    for (int key = 32; key <= 64; key += 32) {
        tl_kernel_id need[TL_COUNT(all)];
        tl_types types = p->types;
        int count = 0;
        types.key = key;
        for (int i = 0; i < TL_COUNT(all); i++)
            if (all[i].wanted && all[i].types.key == key) need[count++] = all[i].id;
        TRY(tl_product_need(p, types, need, count));
    }
done:
    return status;
}

/* ---- the stages */

/* Loads kernels and allocates C~: upper bounds for short rows, the initial room for merged ones. */
static tulle_status make_room(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_once *o = p->once;
    if (empty(p)) return TULLE_OK;
    o->areas = 1;
    TRY(load_kernels(p, o));
    TRY(make_area(p, &o->area[0], o->bin[BIN_ROOM]));
    o->area[0].rows = (uint32_t)o->bin[BIN_MERGE];
done:
    return status;
}

/* Runs the three methods; in parallel, unless each is to be timed. */
static tulle_status run_methods(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_once *o = p->once;
    if (empty(p)) return TULLE_OK;
    bool more = o->bin[BIN_MERGE] > 0;
    const int lanes = p->timed || !more ? 1 : 3;
    TRY(tl_product_fork(p, lanes));
    if (lanes > 1) TRY(launch_merge(p, o));
    TRY(run_heap(p, o, lanes > 1 ? 2 : 0));
    if (rows_of(o, 1, BIN_ESC)) TRY(tl_product_mark(p, "heap"));
    TRY(run_esc(p, o, lanes > 1 ? 1 : 0));
    if (rows_of(o, BIN_ESC, BIN_MERGE)) TRY(tl_product_mark(p, "bitonic ESC"));
    TRY(tl_product_join(p));
    if (lanes > 1) TRY(grow(p, o, &more));
    while (more) {
        TRY(launch_merge(p, o));
        TRY(grow(p, o, &more));
    }
    if (o->bin[BIN_MERGE]) TRY(tl_product_mark(p, "merge"));
done:
    tl_product_rest(p);
    return status;
}

static tulle_status count(tl_product *p)
{
    tulle_status status = TULLE_OK;
    p->c_nnz = 0;
    if (!empty(p)) {
        TRY(p->driver->fill(p->b, p->device, p->sum[1], 0, SUM_ALL * 8));
        TRY(tl_product_scan(p, p->c_ptr));
        TRY(tl_product_read(p, 1));
        p->c_nnz = (int64_t)p->note[1][SUM_NNZ];
    }
    p->known = TL_COUNTED;
done:
    return status;
}

/* Copies the entries from C~ and the areas to C. */
static tulle_status arrange(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_once *o = p->once;
    if (empty(p)) return TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    uint32_t threads = caps->cpu ? 8 : 256, team = 1;
    while (team < (caps->cpu ? 1 : 32) && (int64_t)team * p->rows < p->c_nnz) team *= 2;
    uint64_t blocks = ((uint64_t)p->rows * team + threads - 1) / threads;
    tl_arg args[] = {TL_U32(p->rows),        TL_U32(team),     TL_MEM(o->room),  TL_MEM(o->area[0].col),
                     TL_MEM(o->area[0].val), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
    TRY(tl_product_launch(p, p->types, TL_K_ARRANGE, blocks > 1 << 24 ? 1 << 24 : blocks, threads, 0, 0, args,
                          TL_COUNT(args)));
    for (int i = 1; i < o->areas; i++) {
        const tl_area *a = &o->area[i];
        if (!a->rows) continue;
        tl_arg from[] = {TL_U32(a->rows),  TL_MEM(a->waiting), TL_MEM(a->col),  TL_MEM(a->val),
                         TL_MEM(p->c_ptr), TL_MEM(p->c_col),   TL_MEM(p->c_val)};
        TRY(tl_product_launch(p, p->types, TL_K_ARRANGE_AREA, a->rows, threads, 0, 0, from, TL_COUNT(from)));
    }
    TRY(tl_product_mark(p, "arranging"));
    tl_once_done(p, o);
done:
    return status;
}

/* ---- figures */

static tulle_status shares(tl_product *p, tulle_stats *stats)
{
    static const struct { const char *name; int from, to; } methods[] = {
        {"direct", 0, 2}, {"heap", 2, BIN_ESC}, {"esc", BIN_ESC, BIN_MERGE}, {"merge", BIN_MERGE, BINS}};
    const tl_once *o = p->once;
    stats->shares = 0;
    for (int k = 0; k < TL_COUNT(methods); k++) {
        tulle_share share = {methods[k].name, 0, 0};
        for (int i = methods[k].from; i < methods[k].to; i++) {
            share.rows += (int64_t)o->bin[i];
            share.products += (int64_t)o->bin[BIN_PRODUCTS + i];
        }
        if (share.rows) stats->share[stats->shares++] = share;
    }
    return TULLE_OK;
}

const tl_road tl_road_once = {
    .before = {tl_product_analyze, bins},
    .after = {make_room, run_methods, count, tl_product_c, arrange},
    .shares = shares,
};
