/* SPDX-License-Identifier: MIT
 *
 * delta.c - the two steps of DeltaSPARSE (Yang, Zhang and Ma, "DeltaSPARSE: High-Performance Sparse General
 * Matrix-Matrix Multiplication on Multi-GPU Systems"): its hybrid accumulator, and its local scheduling
 * (binning), which is enabled by a decision tree.
 *
 *   analysis -> wait -> (bins -> wait) -> hash, rows that fail by a dense bitmap -> row pointers -> wait ->
 *   C allocated -> (bins -> wait) -> hash and dense -> long hashed rows sorted
 *
 * With scheduling there is a launch for the rows of each bin; without, one for all rows, with the smallest
 * hash table that holds the longest of them.  Rows that do not fit are listed and computed with the dense
 * array, as in Algorithm 1.  Memory: 13 bytes per row for lists and flags, from the first step to the
 * last. */
#include "gpu/accumulators.h"
#include <inttypes.h>
#include <string.h>

_Static_assert(DELTA_SIZES == TL_DELTA_BINS && DELTA_WORDS * 8 <= TL_ALIGN && DELTA_CURSORS * 4 <= TL_ALIGN,
               "bins");
enum {
    GROUP_CPU = 8,                      /* threads per block on a CPU, which compiles for each size  */
    BLOCKS_MOST = 1 << 30,
    NOTED = 2 * TL_BOARD_SUM,           /* offset in the note of both boards, after the analysis     */
    PARTS = 6
};
_Static_assert(NOTED + 2 * TL_ALIGN <= TL_NOTE_BYTES, "the note is too small");

static const tl_delta *numbers_of(const tl_product *p)
{
    return p->request.recipe->delta;
}

/* A word of the cursors, which were copied to the note after the board, from this byte on. */
static uint32_t cursor_at(const tl_product *p, uint64_t byte, int cursor)
{
    uint32_t word;
    memcpy(&word, (const char *)p->gpu->note + byte + TL_ALIGN + 4 * (uint64_t)cursor, sizeof word);
    return word;
}

/* ---- memory */

static uint64_t lay(const tl_product *p, uint64_t offset[PARTS])
{
    const uint64_t rows = p->rows, bytes[PARTS] = {TL_ALIGN, TL_ALIGN, rows, rows * 4, rows * 4, rows * 4};
    uint64_t at = 0;
    for (int i = 0; i < PARTS; i++) {
        offset[i] = at;
        at += (bytes[i] + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN;
    }
    return at;
}

static tl_step_need lists(const tl_product *p)
{
    uint64_t offset[PARTS];
    return (tl_step_need){.lists = tl_dmem_round(lay(p, offset))};
}

static tl_step_need needs(tl_product *p, int step)
{
    (void)step;                         /* the same for both */
    return lists(p);
}

static tulle_status make_room(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_delta_work *w = &p->delta;
    tl_dmem *const part[PARTS] = {&w->board, &w->cursors, &w->hard, &w->list, &w->redo, &w->unsorted};
    uint64_t offset[PARTS], bytes = lay(p, offset);
    if (w->mem.handle) return TULLE_OK;
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "lists of rows", &w->mem));
    for (int i = 0; i < PARTS; i++) *part[i] = (tl_dmem){w->mem.handle, w->mem.offset + offset[i]};
    TRY(p->driver->fill(p->b, p->device, w->hard, 0, p->rows));
done:
    return status;
}

static void forget(tl_product *p)
{
    tl_dmem_free(p->gpu, p->delta.mem);
    memset(&p->delta, 0, sizeof p->delta);
}

/* ---- sizes of the bins on this device */

static tl_types types_of(const tl_product *p)
{
    tl_types types = p->types;
    types.key = p->note[0][SUM_MAX_SPAN] < UINT32_MAX ? 32 : 64;
    return types;
}

static uint32_t threads_of(const tl_product *p, uint32_t wanted)
{
    const tl_caps *caps = &p->gpu->caps;
    return caps->cpu ? GROUP_CPU : wanted < caps->threads_block ? wanted : caps->threads_block;
}

static uint32_t count_most(const tl_product *p)
{
    return p->gpu->delta_sort >= 0 ? (uint32_t)p->gpu->delta_sort : numbers_of(p)->count_most;
}

/* The number of entries from which a row counts as dense: more than the policy's share of the columns. */
static uint32_t dense_from(const tl_product *p)
{
    double share = numbers_of(p)->density * (double)p->request.B->cols;
    return share < (double)(UINT32_MAX - 1) ? (uint32_t)share + 1 : UINT32_MAX;
}

static uint32_t table_bytes(const tl_product *p, int step, int size)
{
    const tl_types types = types_of(p);
    uint32_t val = step ? (uint32_t)tl_type_size((tulle_type)types.val) : 0;
    return numbers_of(p)->bin[step][size].slots * (val + (uint32_t)types.key / 8);
}

/* The number of hash tables that fit on this device, counted from the smallest.  Longer rows are dense. */
static int tables(const tl_product *p, int step)
{
    int size = 0;
    for (; size < TL_DELTA_BINS; size++) {
        const uint32_t most = numbers_of(p)->bin[step][size].most;
        if (table_bytes(p, step, size) > tl_dynamic_bytes(&p->gpu->caps)) break;
        if (step && most > count_most(p) && tl_size_sort(p->gpu, types_of(p), most).kernel == TL_K_NONE)
            break;
    }
    return size;
}

static uint64_t longest_row(const tl_product *p, int step)
{
    return step ? p->note[1][SUM_MAX_NNZ] : p->note[0][SUM_MAX_PRODUCTS];
}

/* ---- whether to sort rows into bins */

static bool has_trees(const tl_gpu *gpu)
{
    return gpu->delta_trees.tree[0].nodes > 0;
}

tulle_status tl_delta_ready(tl_base *b, tl_gpu *gpu)
{
    tulle_status status = TULLE_OK;
    const char *path = tl_env("TULLE_DELTA_TREE");
    const tl_trees *t = &gpu->delta_trees;
    if (!gpu->delta_looked && path) TRY(tl_trees_read(b, path, &gpu->delta_trees));
    gpu->delta_looked = true;
    if (!has_trees(gpu)) {
        tl_trace(b, "local scheduling: no decision tree was given (TULLE_DELTA_TREE), so by default rows are "
                    "always sorted into bins; \"tulle tune --policy delta\" measures one");
        goto done;
    }
    tl_trace(b,
             "local scheduling: by a decision tree measured on %s; %d of %d right and %d of %d of those kept "
             "aside (symbolic), %d of %d and %d of %d (numeric)%s",
             t->device, t->score[0][0].right, t->score[0][0].samples, t->score[0][1].right,
             t->score[0][1].samples, t->score[1][0].right, t->score[1][0].samples, t->score[1][1].right,
             t->score[1][1].samples,
             strcmp(t->device, gpu->caps.arch) == 0 ? "" : "; this is another device");
done:
    return status;
}

static void look_at(const tl_product *p, int step, double feature[TL_FEATURES])
{
    const double rows = p->rows, cols = (double)p->request.B->cols;
    const double sum = (double)(step ? p->note[1][SUM_NNZ] : p->note[0][SUM_PRODUCTS]);
    feature[0] = rows > 0 && cols > 0 ? sum / rows / cols : 0;
    feature[1] = rows > 0 ? sum / rows : 0;
    feature[2] = (double)longest_row(p, step);
}

static bool decide(tl_product *p, int step)
{
    double *feature = p->gpu->delta_seen[step];
    look_at(p, step, feature);
    if (p->gpu->balance >= 0) return p->gpu->balance;
    return !has_trees(p->gpu) || tl_tree_ask(&p->gpu->delta_trees.tree[step], feature);
}

/* ---- bins */

static void tell(const tl_product *p, int step)
{
    const tl_delta_step *s = &p->delta.step[step];
    const char *name = step ? "numeric" : "symbolic";
    uint64_t hash = 0, narrow = 0;
    for (int i = 0; i < DELTA_SIZES; i++) {
        hash += s->rows[DELTA_HASH + i];
        narrow += s->rows[DELTA_NARROW + i];
    }
    if (s->scheduled)
        tl_trace(p->b,
                 "%s step: rows are sorted into bins: %" PRIu64 " empty, %" PRIu64 " hash, %" PRIu64
                 " dense as they fill their columns or collide, %" PRIu64 " dense as they are long",
                 name, s->rows[DELTA_EMPTY], hash, narrow, s->rows[DELTA_DENSE]);
    else if (s->only < 0)
        tl_trace(p->b, "%s step: all rows are dense, no table fits", name);
    else
        tl_trace(p->b,
                 "%s step: rows are not sorted into bins, tables of %u slots take all rows of at most %u",
                 name, numbers_of(p)->bin[step][s->only].slots, numbers_of(p)->bin[step][s->only].most);
}

/* The arguments that both kernels begin with. */
enum { BIN_ARGS = 10 };
static void bin_args(const tl_product *p, int step, tl_arg args[BIN_ARGS])
{
    const int open = tables(p, step);
    const tl_arg first[] = {TL_U32(p->rows), TL_U32(step), TL_U32(dense_from(p))};
    memcpy(args, first, sizeof first);
    for (int i = 0; i < DELTA_SIZES; i++) {     /* tables that do not fit: limit of the last that does */
        const int size = i < open ? i : open - 1;
        args[3 + i] = (tl_arg)TL_U32(size < 0 ? 0 : numbers_of(p)->bin[step][size].most);
    }
    args[8] = (tl_arg)TL_MEM(p->products);
    args[9] = (tl_arg)TL_MEM(p->delta.hard);
}

static tulle_status sort_into_bins(tl_product *p, int step)
{
    tulle_status status = TULLE_OK;
    tl_delta_work *w = &p->delta;
    tl_delta_step *s = &w->step[step];
    tl_kernel_id need[] = {TL_K_DELTA_TALLY, TL_K_DELTA_LIST};
    const uint32_t threads = p->gpu->caps.cpu ? 64 : 256;
    const uint64_t blocks = ((uint64_t)p->rows + threads - 1) / threads;
    tl_arg tally[BIN_ARGS + 2], list[BIN_ARGS + 4];
    const tl_arg tally_more[] = {TL_MEM(p->c_ptr), TL_MEM(w->board)};
    const tl_arg list_more[] = {TL_MEM(p->c_ptr), TL_MEM(w->board), TL_MEM(w->cursors), TL_MEM(w->list)};
    bin_args(p, step, tally);
    bin_args(p, step, list);
    memcpy(tally + BIN_ARGS, tally_more, sizeof tally_more);
    memcpy(list + BIN_ARGS, list_more, sizeof list_more);
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_product_launch(p, p->types, TL_K_DELTA_TALLY, blocks, threads, 0, 0, tally, TL_COUNT(tally)));
    TRY(tl_product_launch(p, p->types, TL_K_DELTA_LIST, blocks, threads, 0, 0, list, TL_COUNT(list)));
    TRY(p->driver->download(p->b, p->device, p->gpu->note, w->board, DELTA_WORDS * 8));
    TRY(p->driver->wait(p->b, p->device));
    memcpy(s->rows, p->gpu->note, sizeof s->rows);
    memcpy(s->products, p->gpu->note + DELTA_PRODUCTS, sizeof s->products);
done:
    return status;
}

static tulle_status clear_boards(tl_product *p)
{
    return p->driver->fill(p->b, p->device, p->delta.board, 0, 2 * TL_ALIGN);
}

static tulle_status balance(tl_product *p, int step)
{
    tulle_status status = TULLE_OK;
    tl_delta_step *s = &p->delta.step[step];
    if (step) {                         /* read together with the row pointers */
        p->delta.collided = cursor_at(p, NOTED, DELTA_COLLIDED);
        tl_trace(p->b, "symbolic step: %u rows were redone by a dense bitmap, the keys of %u collided",
                 cursor_at(p, NOTED, DELTA_REDO), p->delta.collided);
    } else if (!p->gpu->delta_looked) {         /* tl_delta_ready() was not called */
        TRY(tl_delta_ready(p->b, p->gpu));
    }
    TRY(make_room(p));
    TRY(clear_boards(p));
    const int open = tables(p, step);
    s->scheduled = decide(p, step);
    s->only = 0;
    while (s->only < open && numbers_of(p)->bin[step][s->only].most < longest_row(p, step)) s->only++;
    if (s->only == open) s->only--;
    if (s->scheduled) TRY(sort_into_bins(p, step));
    tell(p, step);
done:
    return status;
}

/* ---- blocks, threads and shared memory for the rows of a bin */

void tl_fit_delta_hash(const tl_product *p, tl_job *j)
{
    const int size = j->c - DELTA_HASH;
    const tl_delta_bin *bin = &numbers_of(p)->bin[j->step][size];
    j->most = bin->most;
    j->size.slots = bin->slots;
    j->size.threads = threads_of(p, bin->threads);
    j->size.shared = table_bytes(p, j->step, size);
    j->blocks = j->rows < BLOCKS_MOST ? j->rows : BLOCKS_MOST;
}

/* A word of the bitmap for each 32 columns; in the numeric step also the values and a word for the position
 * in the row.  columns: the window size to aim at.  Slots are words (symbolic) or columns (numeric). */
static void fit_window(const tl_product *p, tl_job *j, uint32_t threads, uint64_t columns)
{
    const tl_caps *caps = &p->gpu->caps;
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)p->types.val);
    const uint64_t word = j->step ? 32 * (uint64_t)val + 8 : 4, fit = tl_dynamic_bytes(caps) / word;
    const uint64_t span = p->note[0][SUM_MAX_SPAN];
    uint64_t words = ((columns < span ? columns : span) + 31) / 32;
    if (words > fit) words = fit;
    j->size.threads = threads_of(p, threads);
    j->size.slots = (uint32_t)(j->step ? words * 32 : words);
    j->size.shared = (uint32_t)(words * word);
    const uint32_t resident = tl_resident(caps, j->size.threads, j->size.shared);
    j->blocks = j->rows < resident ? j->rows : resident;
}

void tl_fit_delta_dense(const tl_product *p, tl_job *j)
{
    fit_window(p, j, numbers_of(p)->dense_threads, UINT64_MAX);
}

/* Uses the number of columns of a product in which rows of this size are dense. */
void tl_fit_delta_narrow(const tl_product *p, tl_job *j)
{
    const tl_delta *d = numbers_of(p);
    const tl_delta_bin *bin = &d->bin[j->step][j->c - DELTA_NARROW];
    fit_window(p, j, bin->threads, (uint64_t)((double)bin->most / d->density) + 1);
}

/* most: entries of the longest row. */
void tl_fit_delta_sort(const tl_product *p, tl_job *j)
{
    j->size = tl_size_sort(p->gpu, types_of(p), (uint32_t)j->most);
    j->blocks = j->rows < j->size.resident ? j->rows : j->size.resident;
}

/* ---- launches */

static const tl_way *way_of(int step, int bin)
{
    const tl_way *way = tl_delta_ways[step];
    while (bin >= way->first + way->sizes) way++;
    return way;
}

/* The rows of a bin: a part of the list, or all rows in order if they are not sorted into bins. */
static tl_job job_of(const tl_product *p, int step, int bin)
{
    const tl_delta_step *s = &p->delta.step[step];
    tl_job j = {.way = way_of(step, bin), .step = step, .c = bin, .per = 1};
    if (!s->scheduled) {
        const int only = s->only < 0 ? DELTA_DENSE : DELTA_HASH + s->only;
        j.rows = only == bin ? p->rows : 0;
        return j;
    }
    j.list = p->delta.list;
    j.rows = (uint32_t)s->rows[bin];
    for (int i = 0; i < bin; i++) j.first += (uint32_t)s->rows[i];
    return j;
}

/* Rows listed by an earlier kernel; cursors[cursor] is their number. */
static tl_job job_after(const tl_product *p, const tl_way *way, int step, uint32_t rows, tl_dmem list,
                        int cursor)
{
    return (tl_job){.way = way, .step = step, .c = way->first, .rows = rows, .per = 1, .list = list,
                    .counter = p->delta.cursors, .counted = (uint32_t)cursor};
}

static tulle_status start(tl_product *p, tl_job j, int lane)
{
    const tl_delta_work *w = &p->delta;
    tl_values v = {0};
    tl_values_make(p, &v);
    j.way->fit(p, &j);
    tl_values_job(p, &j, &v);
    v.of[ARG_DENSE_FROM] = (tl_arg)TL_U32(dense_from(p));
    v.of[ARG_COUNT_MOST] = (tl_arg)TL_U32(count_most(p));
    v.of[ARG_BOARD] = (tl_arg)TL_MEM(w->board);
    v.of[ARG_TALLY] = (tl_arg)TL_MEM(w->cursors);
    v.of[ARG_REDO] = (tl_arg)TL_MEM(w->redo);
    v.of[ARG_UNSORTED] = (tl_arg)TL_MEM(w->unsorted);
    v.of[ARG_HARD] = (tl_arg)TL_MEM(w->hard);
    return tl_way_launch(p, types_of(p), j.way->kernel, j.blocks, j.size.threads, j.size.shared, lane, &v,
                         j.way->args);
}

/* May a row fail in its hash table?  In the numeric step bins are exact. */
static bool gives_up(const tl_product *p, int step)
{
    const tl_delta_step *s = &p->delta.step[step];
    const uint64_t most = longest_row(p, step);
    if (!step) return s->scheduled || s->only >= 0;
    return !s->scheduled && s->only >= 0
           && (p->delta.collided || most > numbers_of(p)->bin[1][s->only].most || most >= dense_from(p));
}

/* Entries of the longest unsorted row, 0 if there are none; *rows: upper bound for the number of such
 * rows. */
static uint32_t unsorted(const tl_product *p, uint32_t *rows)
{
    uint32_t longest = 0;
    *rows = 0;
    for (int i = 0; i < DELTA_SIZES; i++) {
        const tl_job j = job_of(p, 1, DELTA_HASH + i);
        if (!j.rows || numbers_of(p)->bin[1][i].most <= count_most(p)) continue;
        *rows += j.rows;
        longest = numbers_of(p)->bin[1][i].most;
    }
    if (longest > longest_row(p, 1)) longest = (uint32_t)longest_row(p, 1);
    return longest > count_most(p) ? longest : 0;
}

static tulle_status run_bins(tl_product *p, int step)
{
    tulle_status status = TULLE_OK;
    int launches = 0, lanes, launched = 0;
    for (int bin = DELTA_HASH; bin < DELTA_BINS; bin++) launches += job_of(p, step, bin).rows > 0;
    lanes = launches < 2 ? 1 : launches < TL_LANES ? launches : TL_LANES;
    TRY(tl_product_fork(p, lanes));
    for (int bin = DELTA_BINS - 1; bin >= DELTA_HASH; bin--) {          /* long rows first */
        const tl_job j = job_of(p, step, bin);
        if (j.rows) TRY(start(p, j, lanes > 1 ? launched++ % lanes : 0));
    }
    TRY(tl_product_join(p));
    if (gives_up(p, step))
        TRY(start(p, job_after(p, &tl_delta_redo[step], step, p->rows, p->delta.redo, DELTA_REDO), 0));
done:
    tl_product_rest(p);
    return status;
}

/* ---- stages */

static tulle_status count(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need[] = {TL_K_DELTA_HASH_COUNT, TL_K_DELTA_DENSE_COUNT};
    TRY(balance(p, 0));
    if (p->delta.step[0].scheduled) TRY(tl_product_mark(p, "symbolic load"));
    TRY(tl_product_need(p, types_of(p), need, TL_COUNT(need)));
    TRY(run_bins(p, 0));
    TRY(p->driver->download(p->b, p->device, p->gpu->note + NOTED / 8, p->delta.board, 2 * TL_ALIGN));
    TRY(tl_product_mark(p, "symbolic"));
done:
    return status;
}

static tulle_status numeric(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need[] = {TL_K_DELTA_HASH_FILL, TL_K_DELTA_DENSE_FILL, TL_K_SORT_ROWS};
    uint32_t rows, longest = unsorted(p, &rows);
    TRY(tl_product_need(p, types_of(p), need, longest ? 3 : 2));
    TRY(clear_boards(p));               /* for plans, which run it again */
    TRY(run_bins(p, 1));
    TRY(tl_product_mark(p, "numeric"));
    if (longest) {
        tl_job sort = job_after(p, &tl_delta_sort, 1, rows, p->delta.unsorted, DELTA_UNSORTED);
        sort.most = longest;
        TRY(start(p, sort, 0));
        TRY(tl_product_mark(p, "sorting"));
    }
done:
    return status;
}

static tulle_status fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    if (p->c_nnz == 0) return TULLE_OK;
    TRY(balance(p, 1));
    if (p->delta.step[1].scheduled) TRY(tl_product_mark(p, "numeric load"));
    TRY(numeric(p));
done:
    return status;
}

/* ---- figures */

static tulle_status shares(tl_product *p, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    const tl_delta_step *s = &p->delta.step[1];
    tulle_share hash = {.name = "hash"}, dense = {.name = "dense"},
                direct = {.name = "direct", .rows = p->rows};
    stats->shares = 0;
    if (p->c_nnz && s->scheduled) {
        for (int i = DELTA_HASH; i < DELTA_BINS; i++) {
            tulle_share *share = strcmp(way_of(1, i)->share, hash.name) == 0 ? &hash : &dense;
            share->rows += (int64_t)s->rows[i];
            share->products += (int64_t)s->products[i];
        }
    } else if (p->c_nnz && s->only >= 0) {
        uint64_t redone = 0, rows = 0;
        if (gives_up(p, 1)) {
            TRY(p->driver->download(p->b, p->device, p->gpu->note, p->delta.board, 2 * TL_ALIGN));
            TRY(p->driver->wait(p->b, p->device));
            redone = p->gpu->note[DELTA_REDONE];
            rows = cursor_at(p, 0, DELTA_REDO);
        }
        dense = (tulle_share){.name = "dense", .rows = (int64_t)rows, .products = (int64_t)redone};
        hash.rows = (int64_t)p->rows - dense.rows;              /* including those without entries */
        hash.products = (int64_t)p->note[0][SUM_PRODUCTS] - dense.products;
    } else if (p->c_nnz) {
        dense.rows = p->rows;
        dense.products = (int64_t)p->note[0][SUM_PRODUCTS];
    }
    direct.rows -= hash.rows + dense.rows;
    const tulle_share all[] = {hash, dense, direct};
    for (int i = 0; i < TL_COUNT(all); i++)
        if (all[i].rows > 0) stats->share[stats->shares++] = all[i];
done:
    return status;
}

const tl_road tl_road_delta = {
    .before = {tl_product_look, count, tl_product_pointers},
    .after = {tl_product_c, fill},
    .fill = fill,
    .numeric = numeric,
    .needs = needs,
    .most = lists,
    .shares = shares,
    .done = forget,
};

void tl_gpu_schedule(tl_gpu *gpu, int force, int *was, double seen[2][TL_FEATURES])
{
    *was = gpu->balance;
    gpu->balance = force;
    memcpy(seen, gpu->delta_seen, sizeof gpu->delta_seen);
}
