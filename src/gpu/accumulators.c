/* SPDX-License-Identifier: MIT
 *
 * accumulators.c - tables of the accumulators of both steps, and the function that launches their kernels.
 *
 * A new one needs a kernel file and a line here; its class (kernels/classes.cl, choose.cl) and the numbers
 * of a policy determine which rows it gets.  CONTRIBUTING.md explains one of them line by line. */
#include "gpu/accumulators.h"

#define ROWS_OF     ARG_ROWS, ARG_LIST
#define GROUPS_OF   ARG_ROWS, ARG_PER, ARG_LISTS, ARG_GROUPS, ARG_CURSORS, ARG_CURSOR, ARG_WIDEST
#define PATTERNS    ARG_A_PTR, ARG_A_COL, ARG_B_PTR, ARG_B_COL
#define OPERANDS    ARG_A_PTR, ARG_A_COL, ARG_A_VAL, ARG_B_PTR, ARG_B_COL, ARG_B_VAL
#define RESULT      ARG_C_PTR, ARG_C_COL, ARG_C_VAL
#define SORT_ARGS                                                                                           \
    ROWS_OF, ARG_COUNTER, ARG_COUNTED, ARG_C_PTR, ARG_LO, ARG_SPAN, ARG_SLOTS, ARG_C_COL, ARG_C_VAL

/* Sorts rows that were hashed by a block, which leaves them unordered. */
static const tl_way sort_rows = {
    .name = "sort", .first = CLASS_HASH, .sizes = 1, .kernel = TL_K_SORT_ROWS, .fit = tl_fit_sort,
    .args = {SORT_ARGS}};

static const char positions[] = "positions in rows of B";

const tl_way tl_ways[2][TL_WAYS] = {
    {
        /* symbolic: counts the entries of C */
        {.name = "empty", .first = CLASS_EMPTY, .sizes = 1, .kernel = TL_K_NONE},
        {.name = "direct", .first = CLASS_DIRECT, .sizes = 1, .kernel = TL_K_NONE},
        {.name = "bits",
         .first = CLASS_BITS,
         .sizes = BITS_SIZES,
         .limit = LIMIT_BITS,
         .by = TL_BY_SPAN,
         .kernel = TL_K_SYMBOLIC_DENSE_ROWS,
         .size = tl_size_bits,
         .fit = tl_fit_teams,
         .args = {ROWS_OF, PATTERNS, ARG_LO, ARG_SPAN, ARG_TEAM, ARG_SLOTS, ARG_C_PTR}},
        {.name = "rows",
         .first = CLASS_ROWS,
         .sizes = ROWS_SIZES,
         .limit = LIMIT_ROWS,
         .by = TL_BY_NEED,
         .kernel = TL_K_SYMBOLIC_ROWS,
         .compound = true,
         .size = tl_size_shared_rows,
         .fit = tl_fit_shared_rows,
         .args = {GROUPS_OF, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SLOTS, ARG_C_PTR}},
        {.name = "block",
         .first = CLASS_BLOCK,
         .sizes = BLOCK_SIZES,
         .limit = LIMIT_BLOCK,
         .by = TL_BY_NEED,
         .kernel = TL_K_SYMBOLIC_BLOCK,
         .size = tl_size_block,
         .fit = tl_fit_block,
         .args = {ROWS_OF, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SLOTS, ARG_C_PTR}},
        {.name = "hash",
         .first = CLASS_HASH,
         .sizes = 1,
         .limit = LIMIT_HASH,
         .by = TL_BY_NEED,
         .kernel = TL_K_SYMBOLIC_SPILL,
         .size = tl_size_spill,
         .fit = tl_fit_spill,
         .scratch = TL_SPILL,
         .what = "hash maps in global memory",
         .ones = true,
         .args = {ROWS_OF, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SLOTS, ARG_MAPS, ARG_MAP_SLOTS,
                  ARG_C_PTR}},
        {.name = "mask",
         .first = CLASS_MASK,
         .sizes = 1,
         .limit = LIMIT_MASK,
         .by = TL_BY_SPAN,
         .kernel = TL_K_SYMBOLIC_DENSE,
         .size = tl_size_mask,
         .fit = tl_fit_windows,
         .scratch = TL_MASK_ROWS,
         .what = positions,
         .split = true,
         .args = {ROWS_OF, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, ARG_WINDOW_WORDS,
                  ARG_POSITIONS, ARG_STRIDE, ARG_C_PTR}},
        {.name = "dense",
         .first = CLASS_DENSE,
         .sizes = 1,
         .limit = -1,
         .by = TL_BY_NOTHING,
         .kernel = TL_K_SYMBOLIC_DENSE,
         .size = tl_size_bits_windows,
         .fit = tl_fit_windows,
         .scratch = TL_DENSE_ROWS,
         .what = positions,
         .split = true,
         .args = {ROWS_OF, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, ARG_WINDOW_WORDS,
                  ARG_POSITIONS, ARG_STRIDE, ARG_C_PTR}},
        {.name = "few",
         .first = CLASS_FEW,
         .sizes = FEW_SIZES,
         .limit = -1,
         .by = TL_BY_PRODUCTS,
         .kernel = TL_K_REG_HASH_COUNT,
         .size = tl_size_few_bin,
         .again = tl_again_few,
         .fit = tl_fit_crews,
         .args = {ROWS_OF, PATTERNS, ARG_LO, ARG_TEAM_LOG2, ARG_EACH_LOG2, ARG_SLOTS, ARG_SLAB, ARG_C_PTR}},
    },
    {
        /* numeric: computes columns and values */
        {.name = "empty", .first = CLASS_EMPTY, .sizes = 1, .kernel = TL_K_NONE},
        {.name = "direct",
         .share = "direct",
         .first = CLASS_DIRECT,
         .sizes = 1,
         .limit = LIMIT_DIRECT,
         .kernel = TL_K_DIRECT,
         .size = tl_size_direct,
         .fit = tl_fit_direct,
         .args = {ROWS_OF, OPERANDS, ARG_TEAM, RESULT}},
        {.name = "bits",
         .share = "dense",
         .first = CLASS_BITS,
         .sizes = BITS_SIZES,
         .limit = LIMIT_BITS,
         .by = TL_BY_BYTES,
         .kernel = TL_K_NUMERIC_RANK,
         .size = tl_size_ranks,
         .fit = tl_fit_teams,
         .args = {ROWS_OF, OPERANDS, ARG_LO, ARG_SPAN, ARG_TEAM_LOG2, ARG_SLOTS, RESULT}},
        {.name = "rows",
         .share = "hash",
         .first = CLASS_ROWS,
         .sizes = ROWS_SIZES,
         .limit = LIMIT_ROWS,
         .by = TL_BY_NEED,
         .kernel = TL_K_NUMERIC_ROWS,
         .size = tl_size_sums_rows,
         .fit = tl_fit_shared_rows,
         .args = {GROUPS_OF, OPERANDS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, ARG_SLOTS, RESULT}},
        {.name = "block",
         .share = "dense",
         .first = CLASS_BLOCK,
         .sizes = BLOCK_SIZES,
         .limit = LIMIT_BLOCK,
         .by = TL_BY_BYTES,
         .kernel = TL_K_NUMERIC_RANK_BLOCK,
         .size = tl_size_rank_block,
         .fit = tl_fit_rank_block,
         .args = {ROWS_OF, OPERANDS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, RESULT}},
        {.name = "hash",
         .share = "hash",
         .first = CLASS_HASH,
         .sizes = 1,
         .limit = LIMIT_HASH,
         .by = TL_BY_NEED,
         .kernel = TL_K_NUMERIC_BLOCK,
         .size = tl_size_hash,
         .fit = tl_fit_block,
         .then = &sort_rows,
         .args = {ROWS_OF, OPERANDS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SLOTS, RESULT}},
        {.name = "mask", .share = "dense", .first = CLASS_MASK, .sizes = 1, .kernel = TL_K_NONE},
        {.name = "dense",
         .share = "dense",
         .first = CLASS_DENSE,
         .sizes = 1,
         .limit = -1,
         .by = TL_BY_NOTHING,
         .kernel = TL_K_NUMERIC_DENSE,
         .size = tl_size_windows,
         .fit = tl_fit_windows,
         .scratch = TL_DENSE_ROWS,
         .what = positions,
         .split = true,
         .args = {ROWS_OF, OPERANDS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, ARG_WINDOW, ARG_POSITIONS,
                  ARG_STRIDE, RESULT}},
        {.name = "few",
         .first = CLASS_FEW,
         .sizes = FEW_SIZES,
         .limit = -1,
         .by = TL_BY_PRODUCTS,
         .kernel = TL_K_REG_SORT,
         .size = tl_size_few_bin,
         .again = tl_again_few,
         .fit = tl_fit_crews,
         .args = {ROWS_OF, OPERANDS, ARG_LO, ARG_TEAM_LOG2, ARG_EACH_LOG2, ARG_SLOTS, ARG_SLAB, ARG_BITS,
                  RESULT}},
    }};

const tl_way *tl_way_of(int step, int c)
{
    const tl_way *way = tl_ways[step];
    while (c >= way->first + way->sizes) way++;
    return way;
}

/* ---- DeltaSPARSE */

#define LISTED      ARG_ROWS, ARG_FIRST, ARG_LIST
#define GIVES_UP    ARG_BOARD, ARG_TALLY, ARG_REDO
#define HASH_COUNT                                                                                          \
    LISTED, ARG_MOST, ARG_DENSE_FROM, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SLOTS, GIVES_UP,     \
        ARG_HARD, ARG_C_PTR
#define HASH_FILL                                                                                           \
    LISTED, ARG_MOST, ARG_DENSE_FROM, ARG_COUNT_MOST, OPERANDS, ARG_PRODUCTS, ARG_LO, ARG_SPAN, ARG_SLOTS,  \
        GIVES_UP, ARG_UNSORTED, ARG_HARD, RESULT
#define BITS_COUNT                                                                                          \
    LISTED, ARG_COUNTER, ARG_COUNTED, PATTERNS, ARG_PRODUCTS, ARG_LONGEST, ARG_LO, ARG_SPAN, ARG_SLOTS,     \
        ARG_C_PTR
#define DENSE_FILL  LISTED, ARG_COUNTER, ARG_COUNTED, OPERANDS, ARG_LO, ARG_SPAN, ARG_SLOTS, RESULT

/* One descriptor: name of its rows in the trace, share, bins, kernel, fit and arguments. */
#define DELTA_WAY(NAME, SHARE, FIRST, SIZES, KERNEL, FIT, ...)                                              \
    {.name = NAME, .share = SHARE, .first = FIRST, .sizes = SIZES, .kernel = KERNEL, .fit = FIT,            \
     .args = {__VA_ARGS__}}
#define DELTA_COUNTS(NAME, FIRST, SIZES, FIT)                                                               \
    DELTA_WAY(NAME, NULL, FIRST, SIZES, TL_K_DELTA_DENSE_COUNT, FIT, BITS_COUNT)
#define DELTA_FILLS(NAME, FIRST, SIZES, FIT)                                                                \
    DELTA_WAY(NAME, "dense", FIRST, SIZES, TL_K_DELTA_DENSE_FILL, FIT, DENSE_FILL)

const tl_way tl_delta_ways[2][TL_DELTA_WAYS] = {
    {
        {.name = "empty", .first = DELTA_EMPTY, .sizes = 1, .kernel = TL_K_NONE},
        DELTA_WAY("hash", NULL, DELTA_HASH, DELTA_SIZES, TL_K_DELTA_HASH_COUNT, tl_fit_delta_hash,
                  HASH_COUNT),
        DELTA_COUNTS("narrow", DELTA_NARROW, DELTA_SIZES, tl_fit_delta_narrow),
        DELTA_COUNTS("dense", DELTA_DENSE, 1, tl_fit_delta_dense),
    },
    {
        {.name = "empty", .first = DELTA_EMPTY, .sizes = 1, .kernel = TL_K_NONE},
        DELTA_WAY("hash", "hash", DELTA_HASH, DELTA_SIZES, TL_K_DELTA_HASH_FILL, tl_fit_delta_hash,
                  HASH_FILL),
        DELTA_FILLS("narrow", DELTA_NARROW, DELTA_SIZES, tl_fit_delta_narrow),
        DELTA_FILLS("dense", DELTA_DENSE, 1, tl_fit_delta_dense),
    }};

/* Executed after all bins. */
const tl_way tl_delta_redo[2] = {DELTA_COUNTS("redo", DELTA_DENSE, 1, tl_fit_delta_dense),
                                 DELTA_FILLS("redo", DELTA_DENSE, 1, tl_fit_delta_dense)};
const tl_way tl_delta_sort = DELTA_WAY("sort", NULL, DELTA_HASH, DELTA_SIZES, TL_K_SORT_ROWS,
                                       tl_fit_delta_sort, SORT_ARGS);

/* ---- arguments */

void tl_values_make(const tl_product *p, tl_values *v)
{
    const struct { tl_arg_name name; tl_dmem mem; } arrays[] = {
        {ARG_A_PTR, p->A.ptr}, {ARG_A_COL, p->A.col}, {ARG_A_VAL, p->A.val},
        {ARG_B_PTR, p->B.ptr}, {ARG_B_COL, p->B.col}, {ARG_B_VAL, p->B.val},
        {ARG_PRODUCTS, p->products}, {ARG_LONGEST, p->longest}, {ARG_LO, p->lo}, {ARG_SPAN, p->span},
        {ARG_C_PTR, p->c_ptr}, {ARG_C_COL, p->c_col}, {ARG_C_VAL, p->c_val}};
    for (int i = 0; i < TL_COUNT(arrays); i++) v->of[arrays[i].name] = (tl_arg)TL_MEM(arrays[i].mem);
    v->of[ARG_WIDEST] = (tl_arg)TL_U32(p->gpu->caps.warp ? p->gpu->caps.warp : 1024);
}

void tl_values_job(const tl_product *p, const tl_job *j, tl_values *v)
{
    const tl_work *w = &p->work[j->step];
    const tl_dmem nothing = {0, 0};
    const tl_dmem groups = {w->groups.handle, w->groups.offset + (uint64_t)w->start[j->c] * 4};
    const struct { tl_arg_name name; tl_dmem mem;
    } arrays[] = {{ARG_LIST, j->list},
                  {ARG_COUNTER, j->counter},
                  {ARG_LISTS, w->balanced ? w->list : nothing},
                  {ARG_GROUPS, w->balanced ? groups : nothing},
                  {ARG_CURSORS, w->balanced ? p->cursors[j->step] : nothing},
                  {ARG_POSITIONS, j->scratch},
                  {ARG_MAPS, j->scratch},
                  {ARG_PAIRS, j->scratch}};
    const struct { tl_arg_name name; uint32_t number;
    } numbers[] = {{ARG_ROWS, j->rows},
                   {ARG_FIRST, j->first},
                   {ARG_COUNTED, j->counter.handle ? j->counted : UINT32_MAX},
                   {ARG_MOST, tl_least(j->most, UINT32_MAX)},
                   {ARG_CURSOR, (uint32_t)(CLASSES + j->c)},
                   {ARG_PER, j->per},
                   {ARG_SLOTS, j->size.slots},
                   {ARG_TEAM, j->size.team},
                   {ARG_TEAM_LOG2, tl_log2_up(j->size.team)},
                   {ARG_EACH_LOG2, tl_log2_up(j->size.entry)},
                   {ARG_SLAB, j->size.slab},
                   {ARG_BITS, j->size.bits},
                   {ARG_WINDOW, j->window},
                   {ARG_WINDOW_WORDS, j->window / 32},
                   {ARG_STRIDE, j->stride}};
    for (int i = 0; i < TL_COUNT(arrays); i++) v->of[arrays[i].name] = (tl_arg)TL_MEM(arrays[i].mem);
    for (int i = 0; i < TL_COUNT(numbers); i++) v->of[numbers[i].name] = (tl_arg)TL_U32(numbers[i].number);
    v->of[ARG_MAP_SLOTS] = (tl_arg)TL_U64(j->map_slots);
}

tulle_status tl_way_launch(tl_product *p, tl_types types, tl_kernel_id id, uint64_t blocks, uint32_t threads,
                           uint32_t shared, int lane, const tl_values *v, const uint8_t *names)
{
    tl_arg args[TL_ARGS_MOST];
    int count = 0;
    for (; names[count]; count++) args[count] = v->of[names[count]];
    return tl_product_launch(p, types, id, blocks, threads, shared, lane, args, count);
}
