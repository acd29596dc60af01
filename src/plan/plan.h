/* SPDX-License-Identifier: MIT
 *
 * plan.h - from two patterns to a decision, without touching a device.
 *
 *   profile   what one O(nnz(A)) pass finds out: products per row, totals, rows like the row before
 *   policy    a table: up to so many products and so wide a window, take this accumulator
 *   recipe    the policy that was asked for, with limits: all that choose() needs
 *   pieces    the rows of C cut into pieces of nearly equal work, in order */
#ifndef TL_PLAN_H
#define TL_PLAN_H
#include "matrix/matrix.h"

/* ---- accumulators: how the products of one row of C are brought together */

/* id, name, devices that have it, text; those of the CPU come first */
enum { TL_ON_CPU = 1, TL_ON_GPU = 2, TL_ON_BOTH = 3 };
#define TL_ACCUMULATOR_LIST(X)                                                               \
    X(DIRECT, "direct", TL_ON_BOTH,                                                          \
      "one row of B, scaled; rows of A with a single entry")                                 \
    X(DENSE, "dense", TL_ON_BOTH,                                                            \
      "an array over the row's column window, byte map and rank, no sort")                   \
    X(TWINS, "twins", TL_ON_CPU,                                                             \
      "dense for 2 to 4 rows of A with equal pattern at once")                               \
    X(STENCIL, "stencil", TL_ON_CPU,                                                         \
      "rows whose products lie as in a row before, some columns on: places found once")      \
    X(SORT, "sort", TL_ON_CPU,                                                               \
      "products merged by column; short rows scattered over many columns")                   \
    X(HASH, "hash", TL_ON_BOTH,                                                              \
      "open addressing in cache, columns sorted afterwards")                                 \
    X(HEAP, "heap", TL_ON_GPU,                                                               \
      "GPU, bhSPARSE: a heapsort that fuses, a thread a row; up to 32 products")             \
    X(ESC, "esc", TL_ON_GPU,                                                                 \
      "GPU, bhSPARSE: expand, bitonic sort, compress; up to 512 products")                   \
    X(MERGE, "merge", TL_ON_GPU,                                                             \
      "GPU, bhSPARSE: rows of B merged one by one, scratchpad grows as it must")             \
    X(REG_SORT, "regsort", TL_ON_GPU,                                                        \
      "GPU: sorting network and segmented sum in registers; up to 512 products")             \
    X(REG_MERGE, "regmerge", TL_ON_GPU,                                                      \
      "GPU: rows of B merged by minimum and sum in registers; up to 512 products")           \
    X(REG_HASH, "reghash", TL_ON_GPU,                                                        \
      "GPU: products spread evenly in registers, then hashed; up to 512 products")

typedef enum tl_accumulator {
#define TL_ENUM(id, name, where, text) TL_##id,
    TL_ACCUMULATOR_LIST(TL_ENUM)
#undef TL_ENUM
    TL_ACCUMULATORS
} tl_accumulator;

/* ---- policies: rules are tried in order; the first whose max_products holds decides */

typedef struct tl_rule {
    int64_t        max_products;
    int64_t        dense_span;          /* windows up to this many columns are dense */
    tl_accumulator wide;                /* what takes the wider ones                 */
} tl_rule;

enum { TL_RULES_MAX = 8 };

/* The numbers of one of the two steps, symbolic and numeric, on a GPU (kernels/classes.cl has the classes).
 * Rows are sorted by class (spECK's global load balancing) where several classes occur, the heaviest row is
 * `ratio` times as heavy as the average, and there are at least `rows` rows; ratio_large and rows_large are
 * for a heaviest row that takes a block of its own (spECK's Table 2). */
typedef struct tl_gpu_step {
    double   ratio, ratio_large;
    int64_t  rows, rows_large;
    uint32_t bits[5];                   /* bitmaps, by size; 0: none.  Symbolic: columns of the window;
                                         * numeric: bytes of ranks and values                           */
    uint32_t bits_per;                  /* a bitmap pays up to so many columns a product (entry), and   */
    uint32_t bits_min, bits_max;        /* for so many products (entries) of a row                      */
    uint32_t entries[5];                /* products (entries) of short rows that share a block, by size */
    uint32_t rows_threads, bits_threads;
    uint32_t block_bytes[3];            /* shared memory where a block takes one row; 0: all there is   */
    uint32_t block_threads[3];
    uint32_t mask, mask_threads;        /* symbolic: widest window, in columns, for the bitmap of a block */
    uint32_t rows_max;                  /* symbolic: rows with more products do not share a block       */
    uint32_t block_per;                 /* numeric: a block ranks a row of up to so many columns an entry */
    uint32_t dense_per;                 /* numeric: other rows are dense up to so many columns an entry */
} tl_gpu_step;

typedef struct tl_gpu_steps {
    tl_gpu_step symbolic, numeric;
} tl_gpu_steps;

extern const tl_gpu_steps tl_gpu_speck;

/* Rows of few products, which a kernel in registers takes: up to `first` products before any other kernel is
 * tried, up to `most` where the kernel that ranks columns (numeric_rank.cl) does not fit. */
typedef struct tl_few {
    uint16_t first, most;
} tl_few;

typedef struct tl_policy {
    const char *name, *text;
    bool        alike;                  /* look for rows like the row before them    */
    tl_rule     rules[TL_RULES_MAX];    /* the last one has max_products INT64_MAX   */
    /* on a GPU */
    const tl_gpu_steps *gpu;
    bool        once;                   /* one step over upper bounds, as bhSPARSE does */
    tl_accumulator few;                 /* two steps: the accumulator of rows of few products; TL_DIRECT: as
                                         * the numbers of `gpu` say                  */
    tl_few      few_rows[2];            /* which: in the symbolic and in the numeric step */
} tl_policy;

extern const tl_policy tl_policy_auto, tl_policy_speck, tl_policy_bhsparse;
extern const tl_policy tl_policy_regsort, tl_policy_regmerge, tl_policy_reghash;
const tl_policy *tl_policy_at(int i);                       /* NULL past the last */

/* ---- recipe */

typedef struct tl_recipe {
    const tl_policy *policy;
    int              forced;            /* a tl_accumulator, or -1                   */
    bool             alike;
    bool             once;              /* on a GPU: as in the policy, or as the accumulator needs it */
    tl_accumulator   few;
    tl_few           few_rows[2];
} tl_recipe;

/* Whether a device (TL_ON_CPU, TL_ON_GPU) has an accumulator.  If not, the check's sentence lists those
 * that it has. */
bool         tl_accumulator_on(int accumulator, int where);
tulle_status tl_recipe_check(tl_base *b, const tl_recipe *recipe, int where, const char *device);

tulle_status tl_recipe_make(tl_base *b, const tulle_options *options, tl_recipe *recipe);
/* `name` returns the i-th name of a list, NULL past the last.  All names for a sentence ("auto, speck"), and
 * the number of one of them, -1 where it is none. */
const char  *tl_name_list(const char *(*name)(int), char *text, size_t bytes);
int          tl_name_find(const char *(*name)(int), const char *wanted);

/* The choice for one row: a pure function of what is known about it.  An engine may decline (a row
 * too long for a sort) and take TL_DENSE, which always answers. */
static inline tl_accumulator tl_choose(const tl_recipe *recipe, int64_t b_rows, int64_t products,
                                       int64_t span)
{
    if (b_rows <= 1) return TL_DIRECT;
    if (recipe->forced >= 0)
        return recipe->forced == TL_SORT || recipe->forced == TL_HASH ? (tl_accumulator)recipe->forced
                                                                      : TL_DENSE;
    const tl_rule *rule = recipe->policy->rules;
    while (products > rule->max_products) rule++;
    return span <= rule->dense_span ? TL_DENSE : rule->wide;
}

/* ---- profile */

/* What a row has in common with the row before it. */
enum {
    TL_TWIN = 1,                        /* the same columns                           */
    TL_SHIFTED = 2                      /* the same columns, each one on              */
};

typedef struct tl_profile {
    int64_t  row0, row1;                /* of A                                       */
    int64_t *products;                  /* of each row, row1 - row0 entries           */
    uint8_t *a_like, *b_like;           /* TL_TWIN, TL_SHIFTED; NULL: none            */
    int64_t  total;                     /* products                                   */
    int64_t  upper, lower;              /* bounds of nnz(C)                           */
    int64_t  max_products, max_a_row, max_b_row;
    int64_t  b_length;                  /* of every row of B, where all have the same; else -1 */
    int64_t  a_twins, b_twins, a_shifted, b_shifted;    /* how many rows              */
    bool     repeats;                   /* products of most rows lie as in a row shortly before, shifted */
} tl_profile;

/* 8 bytes a row of A, and 1 a row of A and of B where rows are alike (looked for if `alike` says so).  Where
 * rows have at most `few` products in the mean, repeated patterns are preferred to shifted rows. */
tulle_status tl_profile_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, bool alike, int64_t few,
                             int threads, tl_profile *profile);
void         tl_profile_done(tl_base *b, tl_profile *profile);

/* ---- pieces */

typedef struct tl_piece {
    int64_t row0, row1;
    int64_t lo, hi;                     /* lo < hi: only these columns of the one row row0 */
    bool    more;                       /* and the next piece goes on with it              */
} tl_piece;

typedef struct tl_pieces {
    tl_piece *piece;
    int64_t   count;
    int64_t   max_rows, max_entries;    /* of one piece; entries is an upper bound */
    bool      lean;                     /* for threads with little memory          */
} tl_pieces;

typedef struct tl_piece_limits {
    int64_t products;                   /* a piece is closed when it has this many       */
    int64_t rows;
    int64_t heavy;                      /* a row with more products is cut by columns    */
    int64_t entries;                    /* and one with more entries                     */
    int64_t a_row;                      /* and one with more entries of A                */
} tl_piece_limits;

tulle_status tl_pieces_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tl_profile *profile,
                            const tl_piece_limits *limits, int64_t row0, int64_t row1,
                            tl_pieces *pieces);
void         tl_pieces_done(tl_base *b, tl_pieces *pieces);

/* ---- ranges.c: rows for several takers of unknown speed */

typedef struct tl_range {
    struct tl_range *next;              /* the rows behind it                       */
    tl_base *from;                      /* whose memory it is; NULL: the list's own */
    int64_t  row0, row1, work;
    int      turn;                      /* who is to take it; -1: whoever comes     */
    int      taker;                     /* who has taken it; -1: nobody             */
    bool     done;
    tulle_matrix *C;                    /* what came of it                          */
} tl_range;

typedef struct tl_ranges {
    tl_range   *array, *first;          /* a list; those that were not halved are an array */
    int64_t     count, work;            /* of all                                   */
    int         takers;
    uint32_t    left;                   /* takers that are gone, a bit each         */
    atomic_flag busy;
    _Atomic int64_t finished;           /* work that is done                        */
} tl_ranges;

/* The rows row0..row1 by their products.  rows > 0: so many rows each, taken in turn. */
tulle_status tl_ranges_make(tl_base *b, const int64_t *products, int64_t row0, int64_t row1, int takers,
                            int64_t rows, tl_ranges *out);
void         tl_ranges_done(tl_base *b, tl_ranges *ranges);     /* results are the caller's */
/* From here on by several threads at once.  take: NULL: there is none now; *wait: what another one has may
 * come back. */
tl_range    *tl_ranges_take(tl_ranges *ranges, int taker, bool *wait);
void         tl_ranges_finish(tl_ranges *ranges, tl_range *range, tulle_matrix *C);
/* A range that was too much for its taker goes back: in halves, of memory of this base; where it is one row,
 * or `leave` says so, the taker leaves.  false: nobody is left who could take what there is. */
bool         tl_ranges_back(tl_base *b, tl_ranges *ranges, tl_range *range, bool leave);

/* The rows of each of several parts, row[t] .. row[t + 1]: as equal as it can be by the work of all rows
 * before one (the share of each; NULL: all the same), none below `least`; forced > 0: so many rows each. */
typedef int64_t (*tl_work_before)(const void *arg, int64_t row);
void         tl_rows_split(tl_work_before before, const void *arg, int64_t rows, int parts,
                           const double *share, int64_t least, int64_t forced, int64_t *row);

#endif
