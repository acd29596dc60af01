/* SPDX-License-Identifier: MIT
 *
 * twins.c - products of matrices whose rows come in bundles with the same columns, as finite elements with
 * several unknowns a node have them: a bundle of rows of A has one pattern in C, and a bundle of rows of B is
 * walked along once (kernels/twin_rows.cl; what a bundle is stands in kernels/twins.cl).
 *
 *   sample    beside the analysis, without a wait of its own: how many of 4,096 rows of A and of B look like
 *             the row before?
 *   find      where many do: bundles of A and B, and the pattern of each bundle of C.  Those whose pattern
 *             fits shared memory leave the classes of the other accumulators.  One wait
 *   fill      columns and values, in a plan again and again
 *
 * Other rows go the ordinary way in the same product.  Only `auto` looks for twins, before motifs.
 *
 * Memory: 28 bytes a row of A, 8 a row of B, 4 an entry of A for patterns, 2 an entry of B for words.
 * Under a limit they are looked for only where that fits beside the largest C that there can be; where
 * the device has no room, rows go the ordinary way. */
#include "gpu/product.h"
#include "gpu/spmm.h"
#include <inttypes.h>
#include <string.h>

/* Which products: rows and entries of A at least, entries a row; of 100 rows of the sample so many like
 * the row before; products a row. */
static const struct { int64_t rows, entries, mean; uint64_t alike, products; } limits = {
    4096, 262144, 8, 40, 256};

enum { SAMPLE = 4096, THREADS = 128, THREADS_LOOK = 1024, THREADS_CPU = 32, BLOCKS = 16, TEAM_CPU = 8 };

/* Threads of a team for bundles of each size: as many as keep a processor busy with the shared memory that it
 * has.  Fewer bundles than the device has room for get wider teams, up to TEAM_MOST. */
static const uint32_t size_team[TWIN_SIZES] = {32, 64, 128, 256};
enum { TEAM_MOST = 128, WARPS = 24 };

bool tl_twins_forced(const tl_product *p)
{
    return p->request.recipe->alike && p->gpu->twins > 0;
}

/* Lists of rows have no room for more than 2^27, numbers of words none for more columns than 2^37. */
static bool wanted(const tl_product *p)
{
    const tl_gpu *gpu = p->gpu;
    if (!p->request.recipe->alike || gpu->twins == 0 || p->twins.off || p->request.recipe->once) return false;
    if (p->rows < 2 || p->rows >= (uint32_t)1 << 27) return false;
    if (p->request.B->rows < 2 || p->request.B->rows >= (int64_t)1 << 27) return false;
    if (p->request.B->cols > (int64_t)1 << 37) return false;
    if (gpu->twins < 0 && gpu->motifs > 0) return false;
    return gpu->twins > 0
           || (p->rows >= limits.rows && p->a_nnz >= limits.entries
               && p->a_nnz / (int64_t)p->rows >= limits.mean);
}

static uint32_t threads_of(const tl_product *p)
{
    return p->gpu->caps.cpu ? THREADS_CPU : THREADS;
}

static uint32_t team_of(const tl_product *p) { return p->gpu->caps.cpu ? TEAM_CPU : 32; }

static uint64_t blocks_for(const tl_product *p, uint64_t rows, uint32_t each)
{
    const uint64_t blocks = (rows + each - 1) / each, most = (uint64_t)p->gpu->caps.processors * BLOCKS;
    return blocks < most ? blocks : most;
}

/* ---- memory */

/* Three blocks.  Bits: where bundles of A and of B begin.  Only while they are looked for: counters, the
 * positions of the words of bundles of B, and those words.  Rows: a motif for all rows that are used, sizes
 * of bundles, lists of their first rows, the other rows, counters, patterns. */
enum { A_FIRSTS, B_FIRSTS, BIT_PARTS };
enum { COUNTS, TOTALS, PARTS, WORDS, LOOK_PARTS };
enum { OF, SIZES, LISTS, REST, FOUND, PATTERNS, FIND_PARTS };
typedef struct twin_parts { tl_dmem bits[BIT_PARTS], look[LOOK_PARTS], rows[FIND_PARTS]; } twin_parts;

static uint64_t bundle_blocks(int64_t rows)
{
    return ((uint64_t)rows + TL_TWIN_ROWS - 1) / TL_TWIN_ROWS;
}

static uint64_t lay(tl_dmem memory, const uint64_t *bytes, int parts, tl_dmem *part)
{
    uint64_t at = 0;
    for (int i = 0; i < parts; i++) {
        part[i] = (tl_dmem){memory.handle, at};
        at += tl_dmem_round(bytes[i]);
    }
    return at;
}

/* Words of all bundles of B: bundles of three whose columns come by three need a ninth of one for an
 * entry. */
static uint32_t words_room(const tl_product *p)
{
    const uint64_t words = (uint64_t)p->request.B->nnz / (p->gpu->twins > 0 ? 1 : 4) + TWIN_SLOTS;
    return words < UINT32_MAX / 2 ? (uint32_t)words : UINT32_MAX / 2;
}

static uint64_t lay_bits(const tl_product *p, tl_dmem part[BIT_PARTS])
{
    const uint64_t a = bundle_blocks(p->rows), b = p->same ? 0 : bundle_blocks(p->request.B->rows);
    const uint64_t bytes[BIT_PARTS] = {a * TL_TWIN_WORDS * 4, b * TL_TWIN_WORDS * 4};
    const uint64_t all = lay(p->twins.bits, bytes, BIT_PARTS, part);
    if (p->same) part[B_FIRSTS] = part[A_FIRSTS];
    return all;
}

static uint64_t lay_look(const tl_product *p, tl_dmem memory, tl_dmem part[LOOK_PARTS])
{
    const uint64_t a = bundle_blocks(p->rows), b = bundle_blocks(p->request.B->rows);
    const uint64_t bytes[LOOK_PARTS] = {(a > b ? a : b) * 4, 256, (uint64_t)p->request.B->rows * 8,
                                        (uint64_t)words_room(p) * 8};
    return lay(memory, bytes, LOOK_PARTS, part);
}

/* Words of all patterns: bundles of three need a tenth to a half of one for an entry of A, single rows
 * more. */
static uint32_t pattern_room(const tl_product *p)
{
    const uint64_t words = (uint64_t)p->a_nnz * (p->gpu->twins > 0 ? 16 : 1) / 2 + TWIN_SLOTS;
    return words < UINT32_MAX / 2 ? (uint32_t)words : UINT32_MAX / 2;
}

static uint64_t lay_find(const tl_product *p, tl_dmem part[FIND_PARTS])
{
    const uint64_t n = (uint64_t)p->rows * 4;
    const uint64_t bytes[FIND_PARTS] = {n, TWIN_WORDS_OF * n, 2 * n, n, TL_ALIGN + 64,
                                        (uint64_t)pattern_room(p) * 8};
    return lay(p->twins.rows_memory, bytes, FIND_PARTS, part);
}

void tl_twins_done(tl_product *p)
{
    tl_dmem_free(p->gpu, p->twins.bits);
    tl_dmem_free(p->gpu, p->twins.rows_memory);
    memset(&p->twins, 0, sizeof p->twins);
}

/* Not in this product. */
static void give_up(tl_product *p)
{
    tl_twins_done(p);
    p->twins.off = true;
}

/* Memory that is refused is no reason for the product to fail. */
static bool no_room(tl_product *p, tulle_status status)
{
    if (status != TULLE_ELIMIT && status != TULLE_ENOMEM) return false;
    tl_trace(p->b, "twins: there is no room for them: %s", p->b->error);
    p->b->error[0] = 0;
    give_up(p);
    return true;
}

/* ---- sample */

static uint32_t sampled(int64_t rows) { return tl_least((uint64_t)rows - 1, SAMPLE); }

static tulle_status sample(tl_product *p, bool of_a)
{
    const tl_operand *x = of_a ? &p->A : &p->B;
    const int64_t rows = of_a ? (int64_t)p->rows : p->request.B->rows;
    const uint32_t threads = threads_of(p), count = sampled(rows);
    tl_arg args[] = {TL_U32(count), TL_U32((uint64_t)(rows - 1) / count), TL_U32(of_a),
                     TL_U64(of_a ? p->a_nnz : p->request.B->nnz), TL_MEM(x->ptr), TL_MEM(x->col),
                     TL_MEM(p->sum[0])};
    return tl_product_launch(p, p->types, TL_K_TWIN_SAMPLE, (count + threads - 1) / threads, threads, 0, 0,
                             args, TL_COUNT(args));
}

tulle_status tl_twins_sample(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need = TL_K_TWIN_SAMPLE;
    if (!wanted(p)) return TULLE_OK;
    TRY(tl_product_need(p, p->types, &need, 1));
    TRY(sample(p, true));
    if (!p->same) TRY(sample(p, false));
done:
    return status;
}

/* ---- find */

static bool room_under_limit(tl_product *p)
{
    const uint64_t limit = p->request.memory_limit, most = tl_product_most(p);
    const tl_dmem none = {0, 0};
    twin_parts x;
    return limit > most
           && limit - most >= tl_dmem_round(lay_bits(p, x.bits)) + tl_dmem_round(lay_look(p, none, x.look))
                                  + tl_dmem_round(lay_find(p, x.rows));
}

static bool enough(const tl_product *p)
{
    const uint64_t *t = p->note[0] + SUM_TWIN, a = t[TWIN_A], b = t[p->same ? TWIN_A : TWIN_B];
    const uint32_t of_a = sampled(p->rows), of_b = sampled(p->request.B->rows);
    tl_trace(p->b, "twins: %" PRIu64 " of %" PRIu32 " rows of A and %" PRIu64 " of %" PRIu32
             " rows of B look like the row before", a, of_a, b, of_b);
    return p->gpu->twins > 0
           || (a * 100 >= of_a * limits.alike && b * 100 >= of_b * limits.alike
               && p->note[0][SUM_PRODUCTS] >= limits.products * p->rows);
}

static tl_size count_size(const tl_product *p)
{
    return tl_size_teams(p->gpu, TL_K_TWIN_COUNT, THREADS, team_of(p), TWIN_SLOTS * 8, 0);
}

static tulle_status look_at(tl_product *p, bool of_a, const twin_parts *x)
{
    const tl_operand *m = of_a ? &p->A : &p->B;
    const tl_caps *caps = &p->gpu->caps;
    const int64_t rows = of_a ? (int64_t)p->rows : p->request.B->rows;
    const int64_t nnz = of_a ? p->a_nnz : p->request.B->nnz;
    const uint32_t threads = caps->cpu ? THREADS_CPU : tl_least(caps->threads_block, THREADS_LOOK);
    tl_arg args[] = {TL_U32(rows), TL_U32(tl_team_log2(p->gpu, nnz, rows)), TL_U64(nnz), TL_MEM(m->ptr),
                     TL_MEM(m->col), TL_MEM(x->bits[of_a ? A_FIRSTS : B_FIRSTS]), TL_MEM(x->look[COUNTS]),
                     TL_MEM(x->look[TOTALS])};
    return tl_product_launch(p, p->types, TL_K_TWINS_LOOK, bundle_blocks(rows), threads, 0, 0, args,
                             TL_COUNT(args));
}

/* The words of the bundles of B, and from them the pattern of each bundle of C. */
static tulle_status launch_count(tl_product *p, const twin_parts *x)
{
    tulle_status status = TULLE_OK;
    const uint32_t threads = threads_of(p), most = tl_dynamic_bytes(&p->gpu->caps);
    const uint32_t b_rows = (uint32_t)p->request.B->rows;
    const tl_size s = count_size(p);
    tl_arg words[] = {TL_U32(b_rows), TL_U32(words_room(p)), TL_MEM(x->bits[B_FIRSTS]),
                      TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(x->rows[FOUND]), TL_MEM(x->look[PARTS]),
                      TL_MEM(x->look[WORDS])};
    tl_arg list[] = {TL_U32(p->rows), TL_MEM(x->bits[A_FIRSTS]), TL_MEM(p->products), TL_MEM(x->rows[FOUND]),
                     TL_MEM(x->rows[LISTS])};
    tl_arg count[] = {TL_U32(p->rows), TL_U32(tl_log2_up(s.team)), TL_U32(most), TL_U32(pattern_room(p)),
                      TL_MEM(x->rows[FOUND]), TL_MEM(x->rows[LISTS]), TL_MEM(x->bits[A_FIRSTS]),
                      TL_MEM(x->bits[B_FIRSTS]), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(x->look[PARTS]),
                      TL_MEM(x->look[WORDS]), TL_MEM(p->lo), TL_MEM(p->span), TL_MEM(p->products),
                      TL_MEM(x->rows[SIZES]), TL_MEM(x->rows[PATTERNS])};
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_WORDS, blocks_for(p, b_rows, threads), threads, 0, 0, words,
                          TL_COUNT(words)));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_LIST, blocks_for(p, p->rows, threads), threads, 0, 0, list,
                          TL_COUNT(list)));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_COUNT, blocks_for(p, p->rows, s.threads / s.team), s.threads,
                          s.shared, 0, count, TL_COUNT(count)));
done:
    return status;
}

static tulle_status launch_find(tl_product *p, const twin_parts *x)
{
    tulle_status status = TULLE_OK;
    const uint32_t threads = threads_of(p);
    const uint64_t blocks = blocks_for(p, p->rows, threads);
    /* for motif_take and motif_rest all rows have one motif, of number 0: a word behind the counters */
    const tl_dmem zero = {x->rows[FOUND].handle, x->rows[FOUND].offset + TL_ALIGN};
    tl_arg apply[] = {TL_U32(p->rows), TL_MEM(x->bits[A_FIRSTS]), TL_MEM(x->rows[SIZES]), TL_MEM(p->products),
                      TL_MEM(x->rows[FOUND]), TL_MEM(x->rows[OF]), TL_MEM(x->rows[LISTS]), TL_MEM(p->sum[0])};
    tl_arg take[] = {TL_U32(p->rows), TL_MEM(p->A.ptr), TL_MEM(p->span), TL_MEM(p->limits[0]), TL_MEM(zero),
                     TL_MEM(p->products), TL_MEM(x->rows[OF]), TL_MEM(p->sum[0])};
    tl_arg rest[] = {TL_U32(p->rows), TL_MEM(x->rows[OF]), TL_MEM(p->products), TL_MEM(x->rows[FOUND]),
                     TL_MEM(x->rows[REST])};
    TRY(p->driver->fill(p->b, p->device, x->rows[FOUND], 0, TL_ALIGN + 64));
    TRY(p->driver->fill(p->b, p->device, x->look[TOTALS], 0, 256));
    TRY(look_at(p, true, x));
    if (!p->same) TRY(look_at(p, false, x));
    TRY(launch_count(p, x));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_APPLY, blocks, threads, 0, 0, apply, TL_COUNT(apply)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_TAKE, blocks, threads, 0, 0, take, TL_COUNT(take)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_REST, blocks, threads, 0, 0, rest, TL_COUNT(rest)));
    TRY(tl_product_mark(p, "twins"));
    TRY(tl_product_read(p, 0));
done:
    return status;
}

static void keep(tl_product *p, const twin_parts *x)
{
    const uint64_t *t = p->note[0] + SUM_TWIN;
    tl_twins *w = &p->twins;
    w->rows = (int64_t)t[TWIN_TAKEN];
    w->products = (int64_t)t[TWIN_TAKEN_PRODUCTS];
    w->used = w->rows > 0;
    w->others = 0;
    for (int c = CLASS_DIRECT; c < CLASSES; c++) w->others += (uint32_t)p->note[0][SUM_ROWS + c];
    for (int i = 0; i < TWIN_SIZES; i++) {
        w->groups[i] = (uint32_t)t[TWIN_GROUPS + i];
        w->room[i] = (uint32_t)t[TWIN_ROOM + i];
    }
    w->a_firsts = x->bits[A_FIRSTS];
    w->b_firsts = x->bits[B_FIRSTS];
    w->of = x->rows[OF];
    w->sizes = x->rows[SIZES];
    w->lists = x->rows[LISTS];
    w->rest = x->rows[REST];
    w->patterns = x->rows[PATTERNS];
    tl_trace(p->b, "twins: %" PRId64 " of %" PRIu32 " rows in bundles, %" PRId64 " of %" PRIu64 " products",
             w->rows, p->rows, w->products, p->note[0][SUM_PRODUCTS]);
}

static tulle_status look(tl_product *p)
{
    tulle_status status = TULLE_OK;
    static const tl_kernel_id need[] = {TL_K_TWINS_LOOK, TL_K_TWIN_WORDS, TL_K_TWIN_LIST, TL_K_TWIN_COUNT,
                                        TL_K_TWIN_APPLY, TL_K_TWIN_GIVE, TL_K_TWIN_FILL, TL_K_MOTIF_TAKE,
                                        TL_K_MOTIF_REST};
    tl_dmem words = {0, 0};
    twin_parts x;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, lay_bits(p, x.bits), "first rows of bundles", &p->twins.bits));
    TRY(tl_dmem_alloc(p->b, p->gpu, lay_find(p, x.rows), "twins of rows", &p->twins.rows_memory));
    TRY(tl_dmem_alloc(p->b, p->gpu, lay_look(p, words, x.look), "words of bundles of B", &words));
    lay_bits(p, x.bits);
    lay_look(p, words, x.look);
    lay_find(p, x.rows);
    TRY(launch_find(p, &x));
    keep(p, &x);
done:
    tl_dmem_free(p->gpu, words);
    return status;
}

tulle_status tl_twins_find(tl_product *p)
{
    tulle_status status = TULLE_OK;
    if (!wanted(p) || !enough(p)) return TULLE_OK;
    if (count_size(p).kernel == TL_K_NONE || (p->request.memory_limit && !room_under_limit(p))) {
        tl_trace(p->b, "twins: there is no room for them");
        give_up(p);
        return TULLE_OK;
    }
    status = look(p);
    if (no_room(p, status)) status = TULLE_OK;
    if (!p->twins.used) give_up(p);
    return status;
}

/* ---- count and fill */

tulle_status tl_twins_give(tl_product *p)
{
    const tl_twins *w = &p->twins;
    const uint32_t threads = threads_of(p);
    tl_arg args[] = {TL_U32(p->rows), TL_MEM(w->a_firsts), TL_MEM(w->sizes), TL_MEM(w->of),
                     TL_MEM(p->products), TL_MEM(p->c_ptr)};
    if (!w->used) return TULLE_OK;
    return tl_product_launch(p, p->types, TL_K_TWIN_GIVE, blocks_for(p, p->rows, threads), threads, 0, 0,
                             args, TL_COUNT(args));
}

/* A team for a bundle of this size; several teams of a warp in a block. */
static tl_size fill_size(const tl_product *p, uint32_t i)
{
    const tl_twins *w = &p->twins;
    uint32_t team = team_of(p);
    if (!p->gpu->caps.warp) return tl_size_teams(p->gpu, TL_K_TWIN_FILL, team, team, w->room[i], 0);
    team = size_team[i];
    const uint64_t warps = (uint64_t)p->gpu->caps.processors * WARPS;
    while (team < TEAM_MOST && (uint64_t)w->groups[i] * (team / 32) < warps) team *= 2;
    return tl_size_teams(p->gpu, TL_K_TWIN_FILL, team > 32 ? team : THREADS, team, w->room[i], 0);
}

tulle_status tl_twins_fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_twins *w = &p->twins;
    const tl_kernel_id need = TL_K_TWIN_FILL;
    int lanes = 0, lane = 0;
    if (!w->used) return TULLE_OK;
    TRY(tl_product_need(p, p->types, &need, 1));
    for (int i = 0; i < TWIN_SIZES; i++) lanes += w->groups[i] > 0;
    TRY(tl_product_fork(p, lanes));
    for (uint32_t i = TWIN_SIZES; i-- > 0;) {
        if (!w->groups[i]) continue;
        const tl_size s = fill_size(p, i);
        const uint32_t each = s.threads / s.team, first = i / 2 * p->rows + (i % 2 ? p->rows - 1 : 0);
        tl_arg args[] = {TL_U32(w->groups[i]), TL_U32(p->rows), TL_U32(first), TL_U32(i % 2 ? UINT32_MAX : 1),
                         TL_U32(tl_log2_up(s.team)), TL_U32(w->room[i]), TL_MEM(w->lists), TL_MEM(w->sizes),
                         TL_MEM(w->patterns), TL_MEM(w->a_firsts), TL_MEM(w->b_firsts), TL_MEM(p->A.ptr),
                         TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                         TL_MEM(p->B.val), TL_MEM(p->lo), TL_MEM(p->c_ptr), TL_MEM(p->c_col),
                         TL_MEM(p->c_val)};
        TRY(tl_product_launch(p, p->types, need, (w->groups[i] + each - 1) / each, s.threads, s.shared,
                              lane++, args, TL_COUNT(args)));
    }
    TRY(tl_product_join(p));
    TRY(tl_product_mark(p, "twin values"));
done:
    tl_product_rest(p);
    return status;
}
