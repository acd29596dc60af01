/* SPDX-License-Identifier: MIT
 *
 * motifs.c - rows of C with the same pattern of products, relative to their first column (a "motif"):
 * stencils, regular meshes, multigrid operators.  The positions of the products are computed once for all of
 * them.
 *
 *   sample   together with the analysis: do rows of A repeat at all?  Needs no additional wait
 *   find     classes of rows of B, motifs of rows of C, and which motifs are used (kernels/motif_find.cl):
 *            one wait.  The rows of these motifs are removed from the classes of the other accumulators
 *   map      built once for each motif (motif_map.cl); this gives the number of entries of all its rows
 *   fill     computes columns and values (motif_fill.cl), in a plan in every run; short motifs by gather,
 *            others by scatter
 *
 * Rows without a motif are computed by the other accumulators.  Only the policy `auto` uses motifs.
 *
 * Memory: for the search 8 bytes per row of B (12 with 64-bit columns) and hash tables of at most 1.2 MiB;
 * then 4 bytes per row of A, 4 per row without a motif, and 12 per product of each motif, at most a quarter
 * of A and B.  With a memory limit, motifs are used only if all of this fits in addition to the upper bound
 * of C; if memory runs out, the other accumulators compute all rows. */
#include "gpu/product.h"
#include <inttypes.h>
#include <string.h>

static const tl_dmem nothing = {0, 0};

/* Thresholds for products, rows and motifs.  Measured on prototypes: short motifs up to 256 products, 64 rows
 * per motif; the others are estimates. */
static const struct {
    int64_t  rows, entries;             /* of A, at least; for smaller products launches and waits dominate */
    uint32_t repeat;                    /* percentage of sampled rows that equal another one            */
    uint32_t share;                     /* percentage of products in rows with a motif                  */
    uint32_t least;                     /* rows of a motif, at least                                    */
    uint32_t products, a_entries;       /* of a motif, at most                                          */
    uint32_t short_products, short_entries;     /* of a short one, at most (gather)                     */
    uint32_t walk, walk_alone;          /* entries per thread of a team, or of a single thread          */
    uint64_t gain, row, fixed;          /* picoseconds: saved per product; lost per row, and once       */
} limits = {
    .rows = 10000, .entries = 131072, .repeat = 30, .share = 20, .least = 64,
    .products = 16384, .a_entries = 1024, .short_products = 256, .short_entries = 32,
    .walk = 256, .walk_alone = 1024, .gain = 15, .row = 150, .fixed = 140000000,
};

enum { BLOCKS = 16, LEAST_FORCED = 2, FIND_THREADS = 128, FIND_THREADS_CPU = 32 };

/* ---- which products */

bool tl_motifs_forced(const tl_product *p)
{
    return p->request.recipe->alike && p->gpu->motifs > 0;
}

/* Lists of rows can hold at most 2^27 rows. */
static bool wanted(const tl_product *p)
{
    const uint32_t most = (uint32_t)1 << 27;
    if (!p->request.recipe->alike || p->gpu->motifs == 0 || p->motifs.off || p->twins.used) return false;
    if (p->rows == 0 || p->rows >= most) return false;
    return p->gpu->motifs > 0 || (p->rows >= limits.rows && p->a_nnz >= limits.entries);
}

/* Do motifs save more time than the search for them takes, if all rows that look equal in the sample are?
 * The times were measured on an H200; on a slower device both are longer. */
static bool worth_looking(const tl_product *p, uint64_t seen, uint64_t kinds)
{
    const uint64_t rows = ((uint64_t)p->rows + (uint64_t)p->request.B->rows) / 2;
    const uint64_t alike = seen ? (seen - kinds) * 100 / seen : 0;
    const uint64_t products = p->note[0][SUM_PRODUCTS] / 100 * alike;
    return alike >= limits.repeat && products * limits.gain > rows * limits.row + limits.fixed;
}

/* The largest number of products of a motif for which shared memory suffices, in the kernels that build its
 * map and that compute sums; 0: none. */
static uint32_t products_most(const tl_product *p)
{
    const uint64_t all = tl_dynamic_bytes(&p->gpu->caps), val = tl_type_size((tulle_type)p->types.val);
    uint32_t most = limits.products;
    while (most >= 16 && ((uint64_t)most * 9 > all || most * val > all)) most /= 2;
    return most >= 16 ? most : 0;
}

static uint32_t entries_most(uint32_t products)
{
    return products / 4 < limits.a_entries ? products / 4 : limits.a_entries;
}

/* A team of lanes, or a single thread without lanes, so that no barrier is needed.  About four entries per
 * thread: their loads overlap, and more rows are processed at once. */
static uint32_t team_of(const tl_product *p, int64_t nnz, int64_t rows)
{
    const uint32_t team = p->gpu->caps.warp ? tl_team_log2(p->gpu, nnz, rows) : 0;
    return team > 2 ? team - 2 : 0;
}

static uint32_t walk_of(const tl_product *p, uint32_t team)
{
    return p->gpu->caps.warp ? limits.walk << team : limits.walk_alone;
}

static uint32_t find_threads(const tl_product *p)
{
    return p->gpu->caps.cpu ? FIND_THREADS_CPU : FIND_THREADS;
}

/* A single block processes all motifs. */
static uint32_t select_threads(const tl_product *p)
{
    const tl_caps *caps = &p->gpu->caps;
    return caps->cpu ? FIND_THREADS_CPU : caps->threads_block < 1024 ? caps->threads_block : 1024;
}

/* Blocks for `rows` rows, but not more than are resident, since each block has a cache of its lookups. */
static uint64_t find_blocks(const tl_product *p, uint64_t rows, uint32_t team)
{
    const uint64_t each = find_threads(p) >> team, blocks = (rows + each - 1) / each;
    const uint64_t most = (uint64_t)p->gpu->caps.processors * BLOCKS;
    return blocks < most ? blocks : most;
}

/* ---- sample */

tulle_status tl_motifs_sample(tl_product *p)
{
    tulle_status status = TULLE_OK;
    if (!wanted(p)) return TULLE_OK;
    const tl_kernel_id id = TL_K_MOTIF_SAMPLE;
    const uint32_t samples = p->rows < SAMPLE_ROWS ? p->rows : SAMPLE_ROWS;
    /* the whole team: a chain of loads is all that a sample takes */
    const uint32_t team = p->gpu->caps.warp ? tl_team_log2(p->gpu, p->a_nnz, p->rows) : 0;
    const uint32_t threads = find_threads(p), each = threads >> team;
    const tl_dmem table = {p->gpu->board.handle, TL_BOARD_SAMPLE};
    TRY(tl_product_need(p, p->types, &id, 1));
    tl_arg args[] = {TL_U32(samples), TL_U32(p->rows / samples), TL_U32(team), TL_MEM(p->bad),
                     TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->lo),
                     TL_MEM(table), TL_MEM(p->sum[0])};
    TRY(tl_product_launch(p, p->types, id, (samples + each - 1) / each, threads, 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

/* ---- find */

/* Memory for the search, in one block; arrays that begin with zeros come first. */
enum { CLASS_KEYS, MOTIF_KEYS, COUNTS, NUMBERS, ZEROS, CLASS_REPS = ZEROS, MOTIF_REPS, LIST, RECORDS,
       CLASS_OF, FIRST_OF, PARTS };
typedef struct search {
    tl_dmem  memory, part[PARTS];
    uint64_t zeros, bytes;
    uint32_t slots, most;               /* of both tables; classes and motifs, at most */
} search;

static void lay(const tl_product *p, search *s)
{
    const uint64_t rows = (uint64_t)p->request.B->rows, more = rows > p->rows ? rows : p->rows;
    s->most = more < TL_MOTIFS_MOST ? (uint32_t)more : TL_MOTIFS_MOST;
    s->slots = 64;
    while (s->slots < 2 * s->most) s->slots *= 2;
    const uint64_t most = s->most, slots = s->slots;
    const uint64_t bytes[PARTS] = {
        [CLASS_KEYS] = slots * 8, [MOTIF_KEYS] = slots * 8, [COUNTS] = slots * 4, [NUMBERS] = 12,
        [CLASS_REPS] = slots * 4, [MOTIF_REPS] = slots * 4, [LIST] = most * 4,
        [RECORDS] = most * MOTIF_WORDS * 4, [CLASS_OF] = rows * 4,
        [FIRST_OF] = rows * (uint64_t)p->types.idx / 8};
    s->bytes = 0;
    for (int i = 0; i < PARTS; i++) {
        if (i == ZEROS) s->zeros = s->bytes;
        s->part[i] = (tl_dmem){s->memory.handle, s->bytes};
        s->bytes += tl_dmem_round(bytes[i]);
    }
}

/* Bytes of the maps for so many products and motifs. */
static uint64_t map_bytes(uint64_t products, uint64_t motifs)
{
    return tl_dmem_round(motifs * MOTIF_WORDS * 4) + 2 * tl_dmem_round(products * 4)
         + tl_dmem_round((products + motifs) * 4);
}

/* The number of products for which there is memory for maps; 0: not even the search fits. */
static uint32_t room_for(tl_product *p, uint64_t search_bytes)
{
    const uint64_t limit = p->request.memory_limit, of = 2 * tl_dmem_round((uint64_t)p->rows * 4);
    const uint64_t entry = (uint64_t)p->types.idx / 8 + tl_type_size((tulle_type)p->types.val);
    const uint64_t entries = (uint64_t)p->a_nnz + (uint64_t)p->request.B->nnz;
    uint64_t maps = entries * entry / 4 + ((uint64_t)1 << 20), products = 0;
    if (limit) {
        const uint64_t most = tl_product_most(p), spare = limit > most ? limit - most : 0;
        if (spare < of + search_bytes) return 0;
        if (maps > spare - of) maps = spare - of;
    }
    for (uint64_t bit = (uint64_t)1 << 29; bit; bit >>= 1)
        if (map_bytes(products + bit, p->gpu->motif_most) <= maps) products += bit;
    return (uint32_t)products;
}

/* The number of motifs that may be inserted. */
static uint32_t most_of(const tl_product *p, const search *s)
{
    return p->gpu->motif_most < s->most ? p->gpu->motif_most : s->most;
}

static tulle_status find_classes(tl_product *p, search *s)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *B = p->request.B;
    const uint32_t team = team_of(p, B->nnz, B->rows), threads = find_threads(p);
    const uint64_t blocks = find_blocks(p, (uint64_t)B->rows, team);
    tl_arg enter[] = {TL_U32(B->rows), TL_U32(team), TL_U32(walk_of(p, team)), TL_MEM(p->B.ptr),
                      TL_MEM(p->B.col), TL_U64(p->gpu->motif_hash[0]), TL_U32(s->slots), TL_U32(s->most),
                      TL_MEM(s->part[CLASS_KEYS]), TL_MEM(s->part[CLASS_REPS]), TL_MEM(s->part[NUMBERS]),
                      TL_MEM(s->part[CLASS_OF]), TL_MEM(s->part[FIRST_OF])};
    tl_arg verify[] = {TL_U32(B->rows), TL_U32(team), TL_MEM(p->B.ptr), TL_MEM(p->B.col),
                       TL_MEM(s->part[CLASS_REPS]), TL_MEM(s->part[CLASS_OF]), TL_MEM(s->part[FIRST_OF])};
    TRY(tl_product_launch(p, p->types, TL_K_CLASS_ENTER, blocks, threads, 0, 0, enter, TL_COUNT(enter)));
    TRY(tl_product_launch(p, p->types, TL_K_CLASS_VERIFY, blocks, threads, 0, 0, verify, TL_COUNT(verify)));
done:
    return status;
}

static tulle_status find_motifs(tl_product *p, search *s, uint32_t room)
{
    tulle_status status = TULLE_OK;
    const tl_gpu *gpu = p->gpu;
    const uint32_t team = team_of(p, p->a_nnz, p->rows), threads = find_threads(p), most = products_most(p);
    const uint32_t walk = walk_of(p, team), entries = entries_most(most) < walk ? entries_most(most) : walk;
    const bool forced = gpu->motifs > 0;
    const uint64_t blocks = find_blocks(p, p->rows, team), stretch = (p->rows + blocks - 1) / blocks;
    tl_arg enter[] = {TL_U32(p->rows), TL_U32(team), TL_U32(most), TL_U32(entries), TL_MEM(p->A.ptr),
                      TL_MEM(p->A.col), TL_MEM(s->part[CLASS_OF]), TL_MEM(s->part[FIRST_OF]),
                      TL_MEM(p->products), TL_MEM(p->span), TL_MEM(p->lo), TL_U64(gpu->motif_hash[1]),
                      TL_U32(s->slots), TL_U32(most_of(p, s)), TL_MEM(s->part[MOTIF_KEYS]),
                      TL_MEM(s->part[MOTIF_REPS]), TL_MEM(s->part[NUMBERS]), TL_MEM(s->part[LIST]),
                      TL_MEM(p->motifs.of)};
    tl_arg verify[] = {TL_U32(p->rows), TL_U32(stretch), TL_U32(team), TL_MEM(p->A.ptr), TL_MEM(p->A.col),
                       TL_MEM(s->part[CLASS_OF]), TL_MEM(s->part[FIRST_OF]), TL_MEM(p->lo),
                       TL_MEM(s->part[MOTIF_REPS]), TL_MEM(s->part[COUNTS]), TL_MEM(p->motifs.of)};
    tl_arg select[] = {TL_U32(most_of(p, s)), TL_U32(forced ? LEAST_FORCED : limits.least),
                       TL_U32(forced ? 0 : limits.share), TL_U32(room), TL_U32(limits.short_products),
                       TL_U32(limits.short_entries), TL_MEM(s->part[NUMBERS]), TL_MEM(s->part[LIST]),
                       TL_MEM(s->part[MOTIF_REPS]), TL_MEM(s->part[COUNTS]), TL_MEM(p->A.ptr),
                       TL_MEM(p->products), TL_MEM(s->part[RECORDS]), TL_MEM(p->sum[0])};
    tl_arg take[] = {TL_U32(p->rows), TL_MEM(p->A.ptr), TL_MEM(p->span), TL_MEM(p->limits[0]),
                     TL_MEM(s->part[COUNTS]), TL_MEM(p->products), TL_MEM(p->motifs.of), TL_MEM(p->sum[0])};
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_ENTER, blocks, threads, 0, 0, enter, TL_COUNT(enter)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_VERIFY, (p->rows + stretch - 1) / stretch, threads, 0, 0,
                          verify, TL_COUNT(verify)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_SELECT, 1, select_threads(p), 0, 0, select,
                          TL_COUNT(select)));
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_TAKE, find_blocks(p, p->rows, 0), threads, 0, 0, take,
                          TL_COUNT(take)));
    TRY(tl_product_mark(p, "motifs"));
    TRY(tl_product_read(p, 0));
done:
    return status;
}

static void tell(const tl_product *p)
{
    const uint64_t *m = p->note[0] + SUM_MOTIF;
    tl_trace(p->b, "motifs: %" PRIu64 " of %" PRIu64 ", over %" PRIu64 " classes of rows of B, take %" PRIu64
             " of %" PRIu32 " rows (%" PRIu64 " of %" PRIu64 " products), %" PRIu64 " of them short",
             m[MOTIF_USED], m[MOTIF_FOUND], m[MOTIF_CLASSES], m[MOTIF_ROWS], p->rows, m[MOTIF_PRODUCTS],
             p->note[0][SUM_PRODUCTS], m[MOTIF_SHORT_ROWS]);
}

/* Copies the results of select from the summary, which the next product overwrites. */
static void keep(tl_product *p)
{
    const uint64_t *m = p->note[0] + SUM_MOTIF;
    p->motifs.used = (uint32_t)m[MOTIF_USED];
    p->motifs.shorts = (uint32_t)m[MOTIF_SHORT];
    p->motifs.short_entries = (uint32_t)m[MOTIF_SHORT_ENTRIES];
    p->motifs.rows = (int64_t)m[MOTIF_ROWS];
    p->motifs.short_rows = (int64_t)m[MOTIF_SHORT_ROWS];
    p->motifs.products = (int64_t)m[MOTIF_PRODUCTS];
    p->motifs.others = 0;
    for (int c = CLASS_DIRECT; c < CLASSES; c++) p->motifs.others += (uint32_t)p->note[0][SUM_ROWS + c];
}

static tl_dmem part(tl_dmem memory, uint64_t *at, uint64_t bytes)
{
    const tl_dmem here = {memory.handle, *at};
    *at += tl_dmem_round(bytes);
    return here;
}

static tulle_status make_maps(tl_product *p, const search *s)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    const uint64_t *sums = p->note[0] + SUM_MOTIF, used = sums[MOTIF_USED], products = sums[MOTIF_ROOM];
    tl_motifs *m = &p->motifs;
    uint64_t at = 0;
    uint32_t room = 2, threads;
    TRY(tl_dmem_alloc(p->b, p->gpu, tl_dmem_round((uint64_t)m->others * 4) + map_bytes(products, used),
                      "maps of motifs", &m->maps));
    m->rest = part(m->maps, &at, (uint64_t)m->others * 4);
    m->motif = part(m->maps, &at, used * MOTIF_WORDS * 4);
    m->columns = part(m->maps, &at, products * 4);
    m->starts = part(m->maps, &at, (products + used) * 4);
    m->places = part(m->maps, &at, products * 4);
    while (room < sums[MOTIF_LONGEST]) room *= 2;
    threads = caps->cpu ? 32 : room < 128 ? 64 : room < 2048 ? room / 2 : 1024;
    if (threads > caps->threads_block) threads = caps->threads_block;
    uint32_t shared = (room * 8 + (uint32_t)sums[MOTIF_ENTRIES] * 4 + 15) / 16 * 16;
    tl_arg args[] = {TL_U32(room), TL_U32(m->shorts), TL_MEM(s->part[RECORDS]), TL_MEM(p->A.ptr),
                     TL_MEM(p->A.col), TL_MEM(p->B.ptr), TL_MEM(p->B.col), TL_MEM(p->lo), TL_MEM(m->motif),
                     TL_MEM(m->columns), TL_MEM(m->starts), TL_MEM(m->places), TL_MEM(p->sum[1])};
    tl_arg rest[] = {TL_U32(p->rows), TL_MEM(m->of), TL_MEM(p->products), TL_MEM(s->part[NUMBERS]),
                     TL_MEM(m->rest)};
    TRY(tl_product_launch(p, p->types, TL_K_MOTIF_MAP, used, threads, shared, 0, args, TL_COUNT(args)));
    if (m->others)
        TRY(tl_product_launch(p, p->types, TL_K_MOTIF_REST, find_blocks(p, p->rows, 0), find_threads(p), 0, 0,
                              rest, TL_COUNT(rest)));
    TRY(tl_product_mark(p, "motif maps"));
done:
    return status;
}

void tl_motifs_done(tl_product *p)
{
    tl_dmem_free(p->gpu, p->motifs.of);
    tl_dmem_free(p->gpu, p->motifs.maps);
    memset(&p->motifs, 0, sizeof p->motifs);
}

/* A failed allocation is not an error: the product falls back to the other accumulators. */
static bool no_room(tl_product *p, tulle_status status)
{
    if (status != TULLE_ELIMIT && status != TULLE_ENOMEM) return false;
    tl_trace(p->b, "motifs: there is no room for them: %s", p->b->error);
    p->b->error[0] = 0;
    return true;
}

static tulle_status look(tl_product *p, search *s, bool *taken)
{
    tulle_status status = TULLE_OK;
    static const tl_kernel_id need[] = {TL_K_CLASS_ENTER, TL_K_MOTIF_MAP, TL_K_MOTIF_SELECT, TL_K_MOTIF_TAKE,
                                        TL_K_MOTIF_COUNT, TL_K_MOTIF_REST, TL_K_CLASS_VERIFY,
                                        TL_K_MOTIF_ENTER, TL_K_MOTIF_VERIFY};
    lay(p, s);
    const uint32_t room = products_most(p) ? room_for(p, s->bytes) : 0;
    if (!room) {
        tl_trace(p->b, "motifs: there is no room for them");
        goto done;
    }
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, s->bytes, "the search for motifs", &s->memory));
    lay(p, s);
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->rows * 4, "motifs of rows", &p->motifs.of));
    TRY(p->driver->fill(p->b, p->device, s->memory, 0, s->zeros));
    TRY(find_classes(p, s));
    TRY(find_motifs(p, s, room));
    tell(p);
    keep(p);
    *taken = p->motifs.used > 0;
    if (*taken) TRY(make_maps(p, s));
done:
    return status;
}

tulle_status tl_motifs_find(tl_product *p, bool *again)
{
    tulle_status status = TULLE_OK;
    const uint64_t seen = p->note[0][SUM_MOTIF + MOTIF_SAMPLED];
    const uint64_t kinds = p->note[0][SUM_MOTIF + MOTIF_DIFFERENT];
    search s = {.memory = nothing};
    bool taken = false;
    *again = false;
    if (!wanted(p)) return TULLE_OK;
    tl_trace(p->b, "motifs: a sample of %" PRIu64 " rows has %" PRIu64 " kinds", seen, kinds);
    if (p->gpu->motifs < 0 && !worth_looking(p, seen, kinds)) return TULLE_OK;
    status = look(p, &s, &taken);
    if (no_room(p, status)) {
        status = TULLE_OK;
        p->motifs.used = 0;
        *again = taken;
    }
    tl_dmem_free(p->gpu, s.memory);
    if (!p->motifs.used) {
        tl_motifs_done(p);
        p->motifs.off = *again;
    }
    return status;
}

/* ---- count and fill */

static uint64_t fill_blocks(const tl_product *p, uint64_t rows_block)
{
    const uint64_t blocks = (p->rows + rows_block - 1) / rows_block;
    return blocks < (1 << 20) ? blocks : 1 << 20;
}

tulle_status tl_motifs_count(tl_product *p)
{
    const uint32_t threads = find_threads(p);
    tl_arg args[] = {TL_U32(p->rows), TL_MEM(p->motifs.of), TL_MEM(p->motifs.motif), TL_MEM(p->products),
                     TL_MEM(p->c_ptr)};
    if (!p->motifs.used) return TULLE_OK;
    return tl_product_launch(p, p->types, TL_K_MOTIF_COUNT, fill_blocks(p, threads), threads, 0, 0, args,
                             TL_COUNT(args));
}

static tulle_status gather(tl_product *p)
{
    const tl_caps *caps = &p->gpu->caps;
    const tl_motifs *m = &p->motifs;
    const uint64_t entry = tl_type_size((tulle_type)p->types.val) + (uint64_t)p->types.ptr / 8;
    const uint32_t threads = caps->cpu ? 32 : caps->threads_block < 256 ? caps->threads_block : 256;
    uint32_t per = caps->cpu ? 32 : 64, each = 0;
    while (1u << each < m->short_entries) each++;
    while (per > 1 && (entry * per << each) > tl_dynamic_bytes(caps)) per /= 2;
    const uint32_t shared = (uint32_t)((entry * per << each) + 15) / 16 * 16;
    tl_arg args[] = {TL_U32(p->rows), TL_U32(per), TL_U32(each), TL_U32(m->shorts), TL_MEM(m->of),
                     TL_MEM(m->motif), TL_MEM(m->columns), TL_MEM(m->starts), TL_MEM(m->places),
                     TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr), TL_MEM(p->B.val),
                     TL_MEM(p->lo), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
    return tl_product_launch(p, p->types, TL_K_MOTIF_GATHER, fill_blocks(p, per), threads, shared, 0, args,
                             TL_COUNT(args));
}

static tulle_status scatter(tl_product *p)
{
    const tl_caps *caps = &p->gpu->caps;
    const tl_motifs *m = &p->motifs;
    const uint32_t val = (uint32_t)tl_type_size((tulle_type)p->types.val), most = (m->most + 1) / 2 * 2;
    uint32_t team = caps->cpu ? 8 : 32, log2 = 0;
    const uint64_t mean = p->a_nnz ? p->note[0][SUM_PRODUCTS] / (uint64_t)p->a_nnz : 0;  /* rows of B */
    while (caps->warp && team > 4 && team / 2 >= mean) team /= 2;
    const tl_size s = tl_size_teams(p->gpu, TL_K_MOTIF_SCATTER, 128, team, (uint64_t)most * val, most);
    while (1u << log2 < s.team) log2++;
    tl_arg args[] = {TL_U32(p->rows), TL_U32(log2), TL_U32(most), TL_U32(m->shorts), TL_MEM(m->of),
                     TL_MEM(m->motif), TL_MEM(m->columns), TL_MEM(m->places), TL_MEM(p->A.ptr),
                     TL_MEM(p->A.col), TL_MEM(p->A.val), TL_MEM(p->B.ptr), TL_MEM(p->B.val), TL_MEM(p->lo),
                     TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val)};
    return tl_product_launch(p, p->types, TL_K_MOTIF_SCATTER, fill_blocks(p, s.threads / s.team), s.threads,
                             s.shared, 0, args, TL_COUNT(args));
}

tulle_status tl_motifs_fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_kernel_id need[] = {TL_K_MOTIF_GATHER, TL_K_MOTIF_SCATTER};
    const tl_motifs *m = &p->motifs;
    if (!m->used) return TULLE_OK;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    if (m->short_rows > 0) TRY(gather(p));
    if (m->rows > m->short_rows) TRY(scatter(p));
    TRY(tl_product_mark(p, "motif values"));
done:
    return status;
}
