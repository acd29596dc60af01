/* SPDX-License-Identifier: MIT
 *
 * twins.c - products of matrices whose rows come in bundles with the same columns, as finite elements with
 * several unknowns a node have them: a bundle of rows of A has one pattern in C, and a bundle of rows of B is
 * walked along once (kernels/twin_rows.cl; what a bundle is stands in kernels/twins.cl).
 *
 *   sample    beside the analysis: every row is compared with the one before, which ends at the first
 *             difference; how much lies in bundles?  No wait of its own but under a memory limit
 *   find      bundles are counted by one row each of A and of B; those whose pattern fits shared memory leave
 *             the classes of the other accumulators.  One wait
 *   fill      columns and values, in a plan again and again
 *
 * Other rows go the ordinary way in the same product.  Only `auto` looks for twins, before motifs, and only
 * where TULLE_GPU_TWINS says so: on an H200 some matrices gain and some lose by them (docs/motifs.md).
 *
 * Memory: a bit a row of A and of B, 20 bytes a row of A.  Under a limit they are looked for only where that
 * fits beside the largest C that there can be; where the device has no room, rows go the ordinary way. */
#include "gpu/product.h"
#include "gpu/spmm.h"
#include <inttypes.h>
#include <string.h>

/* Which products: rows and entries of A at least, and of 100 products of A's rows and entries of B so many in
 * bundles of two rows and more. */
static const struct { int64_t rows, entries; uint64_t share; } limits = {4096, 131072, 60};

enum { THREADS = 128, THREADS_CPU = 32, BLOCKS = 16, TEAM_CPU = 8 };

bool tl_twins_forced(const tl_product *p)
{
    return p->request.recipe->alike && p->gpu->twins > 0;
}

/* Lists of rows have no room for more than 2^27. */
static bool wanted(const tl_product *p)
{
    const tl_gpu *gpu = p->gpu;
    if (!p->request.recipe->alike || gpu->twins == 0 || p->twins.off || p->request.recipe->once) return false;
    if (p->rows == 0 || p->rows >= (uint32_t)1 << 27 || p->request.B->rows == 0) return false;
    if (gpu->twins < 0 && gpu->motifs > 0) return false;
    return gpu->twins > 0 || (p->rows >= limits.rows && p->a_nnz >= limits.entries);
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

/* Of the sample: bits of A and of B, then what is not wanted afterwards.  Of the search: a motif for all rows
 * that are taken, entries and words of bundles, first rows, rows that are left; counters. */
enum { A_FIRSTS, B_FIRSTS, COUNTS, TOTALS, SAMPLE_PARTS };
enum { OF, SIZES, LIST, REST, FOUND, FIND_PARTS };

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

static uint64_t lay_sample(const tl_product *p, tl_dmem part[SAMPLE_PARTS])
{
    const uint64_t a = bundle_blocks(p->rows), b = p->same ? 0 : bundle_blocks(p->request.B->rows);
    const uint64_t bytes[SAMPLE_PARTS] = {a * TL_TWIN_WORDS * 4, b * TL_TWIN_WORDS * 4, (a > b ? a : b) * 4,
                                          256};
    const uint64_t all = lay(p->twins.bits, bytes, SAMPLE_PARTS, part);
    if (p->same) part[B_FIRSTS] = part[A_FIRSTS];
    return all;
}

static uint64_t lay_find(const tl_product *p, tl_dmem part[FIND_PARTS])
{
    const uint64_t n = (uint64_t)p->rows * 4, bytes[FIND_PARTS] = {n, 2 * n, n, n, TL_ALIGN + 64};
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

static tulle_status look_at(tl_product *p, bool of_a, const tl_dmem part[SAMPLE_PARTS])
{
    tulle_status status = TULLE_OK;
    const tulle_csr *B = p->request.B;
    const tl_operand *x = of_a ? &p->A : &p->B;
    const int64_t rows = of_a ? (int64_t)p->rows : B->rows, nnz = of_a ? p->a_nnz : B->nnz;
    const uint32_t threads = threads_of(p);
    const tl_dmem firsts = part[of_a ? A_FIRSTS : B_FIRSTS];
    tl_arg look[] = {TL_U32(rows), TL_U32(tl_team_log2(p->gpu, nnz, rows)), TL_U64(nnz), TL_MEM(x->ptr),
                     TL_MEM(x->col), TL_MEM(firsts), TL_MEM(part[COUNTS]), TL_MEM(part[TOTALS])};
    tl_arg weigh[] = {TL_U32(rows), TL_U32(of_a), TL_MEM(firsts), TL_MEM(x->ptr), TL_MEM(p->products),
                      TL_MEM(p->sum[0])};
    if (of_a || !p->same)
        TRY(tl_product_launch(p, p->types, TL_K_TWINS_LOOK, bundle_blocks(rows), threads, 0, 0, look,
                              TL_COUNT(look)));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_WEIGH, blocks_for(p, (uint64_t)rows, threads), threads, 0, 0,
                          weigh, TL_COUNT(weigh)));
done:
    return status;
}

static tulle_status sample(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need[] = {TL_K_TWINS_LOOK, TL_K_TWIN_WEIGH};
    tl_dmem part[SAMPLE_PARTS];
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    if (!p->twins.bits.handle)
        TRY(tl_dmem_alloc(p->b, p->gpu, lay_sample(p, part), "first rows of bundles", &p->twins.bits));
    lay_sample(p, part);
    TRY(p->driver->fill(p->b, p->device, part[TOTALS], 0, 256));
    TRY(look_at(p, true, part));
    TRY(look_at(p, false, part));
done:
    return status;
}

tulle_status tl_twins_sample(tl_product *p)
{
    if (!wanted(p) || p->request.memory_limit) return TULLE_OK;
    const tulle_status status = sample(p);
    return no_room(p, status) ? TULLE_OK : status;
}

/* ---- find */

static bool room_under_limit(tl_product *p)
{
    const uint64_t limit = p->request.memory_limit, most = tl_product_most(p);
    tl_dmem a[SAMPLE_PARTS], b[FIND_PARTS];
    return limit > most && limit - most >= tl_dmem_round(lay_sample(p, a)) + tl_dmem_round(lay_find(p, b));
}

static bool enough(const tl_product *p)
{
    const uint64_t *t = p->note[0] + SUM_TWIN, share = p->gpu->twins > 0 ? 0 : limits.share;
    tl_trace(p->b, "twins: %" PRIu64 " of %" PRIu64 " products and %" PRIu64 " of %" PRId64
             " entries of B are in bundles",
             t[TWIN_A], p->note[0][SUM_PRODUCTS], t[TWIN_B], p->request.B->nnz);
    return t[TWIN_A] * 100 >= p->note[0][SUM_PRODUCTS] * share
           && t[TWIN_B] * 100 >= (uint64_t)p->request.B->nnz * share;
}

static tl_size count_size(const tl_product *p)
{
    return tl_size_teams(p->gpu, TL_K_TWIN_COUNT, THREADS, team_of(p), TWIN_SLOTS * 8, 0);
}

static tulle_status launch_find(tl_product *p, const tl_dmem bits[SAMPLE_PARTS],
                                const tl_dmem part[FIND_PARTS])
{
    tulle_status status = TULLE_OK;
    const uint32_t threads = threads_of(p), most = tl_dynamic_bytes(&p->gpu->caps);
    const uint64_t blocks = blocks_for(p, p->rows, threads);
    const tl_size s = count_size(p);
    /* for motif_take and motif_rest all have one motif, of number 0: a word behind the counters */
    const tl_dmem zero = {part[FOUND].handle, part[FOUND].offset + TL_ALIGN};
    tl_arg list[] = {TL_U32(p->rows), TL_MEM(bits[A_FIRSTS]), TL_MEM(p->products), TL_MEM(part[FOUND]),
                     TL_MEM(part[LIST])};
    tl_arg count[] = {TL_U32(p->rows), TL_U32(tl_log2_up(s.team)), TL_U32(most), TL_MEM(part[FOUND]),
                      TL_MEM(part[LIST]), TL_MEM(bits[A_FIRSTS]), TL_MEM(bits[B_FIRSTS]), TL_MEM(p->A.ptr),
                      TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->lo), TL_MEM(p->span),
                      TL_MEM(p->products), TL_MEM(part[SIZES])};
    tl_arg apply[] = {TL_U32(p->rows), TL_MEM(bits[A_FIRSTS]), TL_MEM(part[SIZES]), TL_MEM(p->products),
                      TL_MEM(part[FOUND]), TL_MEM(part[OF]), TL_MEM(p->sum[0])};
    tl_arg take[] = {TL_U32(p->rows), TL_MEM(p->A.ptr), TL_MEM(p->span), TL_MEM(p->limits[0]), TL_MEM(zero),
                     TL_MEM(p->products), TL_MEM(part[OF]), TL_MEM(p->sum[0])};
    tl_arg rest[] = {TL_U32(p->rows), TL_MEM(part[OF]), TL_MEM(p->products), TL_MEM(part[FOUND]),
                     TL_MEM(part[REST])};
    TRY(p->driver->fill(p->b, p->device, part[FOUND], 0, TL_ALIGN + 64));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_LIST, blocks, threads, 0, 0, list, TL_COUNT(list)));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_COUNT, blocks_for(p, p->rows, s.threads / s.team), s.threads,
                          s.shared, 0, count, TL_COUNT(count)));
    TRY(tl_product_launch(p, p->types, TL_K_TWIN_APPLY, blocks, threads, 0, 0, apply, TL_COUNT(apply)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_TAKE, blocks, threads, 0, 0, take, TL_COUNT(take)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_REST, blocks, threads, 0, 0, rest, TL_COUNT(rest)));
    TRY(tl_product_mark(p, "twins"));
    TRY(tl_product_read(p, 0));
done:
    return status;
}

static void keep(tl_product *p, const tl_dmem bits[SAMPLE_PARTS], const tl_dmem part[FIND_PARTS])
{
    const uint64_t *t = p->note[0] + SUM_TWIN;
    tl_twins *w = &p->twins;
    w->rows = (int64_t)t[TWIN_TAKEN];
    w->products = (int64_t)t[TWIN_TAKEN_PRODUCTS];
    w->listed = (uint32_t)t[TWIN_LISTED];
    w->used = w->rows > 0;
    w->others = 0;
    for (int c = CLASS_DIRECT; c < CLASSES; c++) w->others += (uint32_t)p->note[0][SUM_ROWS + c];
    for (int i = 0; i < TWIN_SIZES; i++) w->room[i] = t[TWIN_GROUPS + i] ? (uint32_t)t[TWIN_ROOM + i] : 0;
    w->a_firsts = bits[A_FIRSTS];
    w->b_firsts = bits[B_FIRSTS];
    w->of = part[OF];
    w->sizes = part[SIZES];
    w->list = part[LIST];
    w->rest = part[REST];
    tl_trace(p->b, "twins: %" PRId64 " of %" PRIu32 " rows in bundles, %" PRId64 " of %" PRIu64 " products",
             w->rows, p->rows, w->products, p->note[0][SUM_PRODUCTS]);
}

static tulle_status look(tl_product *p)
{
    tulle_status status = TULLE_OK;
    static const tl_kernel_id need[] = {TL_K_TWIN_LIST, TL_K_TWIN_COUNT, TL_K_TWIN_APPLY, TL_K_TWIN_GIVE,
                                        TL_K_TWIN_FILL, TL_K_MOTIF_TAKE, TL_K_MOTIF_REST};
    tl_dmem bits[SAMPLE_PARTS], part[FIND_PARTS];
    if (!p->twins.bits.handle) {                    /* under a limit */
        TRY(sample(p));
        TRY(tl_product_read(p, 0));
    }
    if (!enough(p)) goto done;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, lay_find(p, part), "twins of rows", &p->twins.rows_memory));
    lay_sample(p, bits);
    lay_find(p, part);
    TRY(launch_find(p, bits, part));
    keep(p, bits, part);
done:
    return status;
}

tulle_status tl_twins_find(tl_product *p)
{
    tulle_status status = TULLE_OK;
    if (!wanted(p)) return TULLE_OK;
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

tulle_status tl_twins_fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_twins *w = &p->twins;
    const tl_kernel_id need = TL_K_TWIN_FILL;
    if (!w->used) return TULLE_OK;
    TRY(tl_product_need(p, p->types, &need, 1));
    for (uint32_t i = TWIN_SIZES; i-- > 0;) {
        if (!w->room[i]) continue;
        const tl_size s = tl_size_teams(p->gpu, need, THREADS, team_of(p), w->room[i], 0);
        const uint32_t each = s.threads / s.team;
        tl_arg args[] = {TL_U32(w->listed), TL_U32(p->rows), TL_U32(i), TL_U32(tl_log2_up(s.team)),
                         TL_U32(w->room[i]), TL_MEM(w->list), TL_MEM(w->sizes), TL_MEM(w->a_firsts),
                         TL_MEM(w->b_firsts), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val),
                         TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->B.val), TL_MEM(p->lo),
                         TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
        TRY(tl_product_launch(p, p->types, need, (w->listed + each - 1) / each, s.threads, s.shared, 0, args,
                              TL_COUNT(args)));
    }
    TRY(tl_product_mark(p, "twin values"));
done:
    return status;
}
