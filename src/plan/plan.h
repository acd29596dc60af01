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

/* ---- accumulators: how the products of one row of C are combined by column */

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
    int64_t        dense_span;          /* windows up to this many columns use a dense accumulator */
    tl_accumulator wide;                /* the accumulator of wider windows          */
} tl_rule;

enum { TL_RULES_MAX = 8 };

/* Thresholds of the symbolic or the numeric step on a GPU (kernels/classes.cl defines the row classes).
 * Rows are sorted by class (spECK's global load balancing) where several classes occur, the heaviest row is
 * at least `ratio` times as heavy as the average, and there are at least `rows` rows; ratio_large and
 * rows_large apply instead when the heaviest row needs a thread block of its own (spECK's Table 2). */
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

/* Rows of few products, which a kernel in registers takes: up to `first` products before any other kernel is
 * tried, up to `most` where the kernel that ranks columns (numeric_rank.cl) does not fit. */
typedef struct tl_few {
    uint16_t first, most;
} tl_few;

/* DeltaSPARSE on a GPU: bins of its two steps, symbolic and numeric, by products and by entries of C.  A row
 * of up to `most` is hashed by a block of `threads` in a table of `slots`; beyond the last bin rows are
 * dense, and where more than `density` of the columns are theirs.  Rows of up to count_most entries are
 * sorted by counting, others by radix. */
enum { TL_DELTA_BINS = 5 };
typedef struct tl_delta_bin {
    uint32_t most, slots, threads;
} tl_delta_bin;

typedef struct tl_delta {
    tl_delta_bin bin[2][TL_DELTA_BINS];
    uint32_t     dense_threads, count_most;
    double       density;
} tl_delta;

typedef struct tl_policy {
    const char *name, *text;
    bool        alike;                  /* look for rows that resemble the row before them */
    tl_rule     rules[TL_RULES_MAX];    /* the last one has max_products INT64_MAX   */
    /* on a GPU */
    const tl_gpu_steps *gpu;            /* a table of the policy's own file          */
    bool        once;                   /* one step over upper bounds, as bhSPARSE does */
    tl_accumulator few;                 /* two steps: the accumulator of rows of few products; TL_DIRECT: as
                                         * the numbers of `gpu` say                  */
    tl_few      few_rows[2];            /* which: in the symbolic and in the numeric step */
    const tl_delta *delta;              /* two steps, but these bins; NULL: those of `gpu` */
} tl_policy;

/* All policies, in the order of tulle_policy_name(): each is tl_policy_NAME in a file of its own. */
#define TL_POLICY_LIST(X) X(auto) X(speck) X(bhsparse) X(regsort) X(regmerge) X(reghash) X(delta)
#define TL_POLICY(name) extern const tl_policy tl_policy_##name;
TL_POLICY_LIST(TL_POLICY)
#undef TL_POLICY

const tl_policy *tl_policy_at(int i);                       /* NULL past the last */

/* ---- recipe */

typedef struct tl_recipe {
    const tl_policy *policy;
    int              forced;            /* a tl_accumulator, or -1                   */
    bool             alike;
    bool             once;              /* on a GPU: as in the policy, or as the accumulator needs it */
    tl_accumulator   few;
    tl_few           few_rows[2];
    const tl_delta  *delta;             /* NULL where the policy has none, or an accumulator was named */
} tl_recipe;

/* Whether a kind of device (TL_ON_CPU, TL_ON_GPU) has an accumulator.  If not, the error message of the check
 * lists those that it has. */
bool         tl_accumulator_on(int accumulator, int where);
tulle_status tl_recipe_check(tl_base *b, const tl_recipe *recipe, int where, const char *device);

tulle_status tl_recipe_make(tl_base *b, const tulle_options *options, tl_recipe *recipe);
/* `name` returns the i-th name of a list, NULL past the last.  The first function joins all names for a
 * message ("auto, speck"), the second finds the index of a name, or -1. */
const char  *tl_name_list(const char *(*name)(int), char *text, size_t bytes);
int          tl_name_find(const char *(*name)(int), const char *wanted);

/* The accumulator for one row, a pure function of the row's numbers.  An engine may not be able to use it (a
 * row too long to sort); it then falls back to TL_DENSE, which works for every row. */
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

/* How a row resembles the row before it. */
enum {
    TL_TWIN = 1,                        /* the same columns                           */
    TL_SHIFTED = 2                      /* the same columns, each plus 1              */
};

typedef struct tl_profile {
    int64_t *products;                  /* of each row of A                           */
    uint8_t *a_like, *b_like;           /* TL_TWIN, TL_SHIFTED; NULL: none            */
    int64_t  total;                     /* products                                   */
    int64_t  upper, lower;              /* bounds of nnz(C)                           */
    int64_t  max_products, max_a_row, max_b_row;
    int64_t  b_length;                  /* the length of every row of B if all are equal; else -1 */
    int64_t  a_twins, b_twins, a_shifted, b_shifted;    /* numbers of rows            */
    bool     repeats;                   /* most rows' products have the pattern of an earlier row, shifted */
} tl_profile;

/* Memory: 8 bytes per row of A, and 1 per row of A and B where many rows are alike (searched for if `alike`).
 * Where rows have at most `few` products on average, repeated patterns are preferred to shifted rows. */
tulle_status tl_profile_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, bool alike, int64_t few,
                             int threads, tl_profile *profile);
void         tl_profile_done(tl_base *b, tl_profile *profile);

/* ---- pieces */

typedef struct tl_piece {
    int64_t row0, row1;
    int64_t lo, hi;                     /* lo < hi: only these columns of the one row row0 */
    bool    more;                       /* the next piece continues this row               */
} tl_piece;

typedef struct tl_pieces {
    tl_piece *piece;
    int64_t   count;
    int64_t   max_rows, max_entries;    /* of one piece; entries is an upper bound */
    bool      lean;                     /* small pieces, because of a memory limit */
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

/* ---- ranges.c: rows divided among several devices ("takers") of unknown speed */

typedef struct tl_range {
    struct tl_range *next;              /* the range of the rows after it           */
    tl_base *from;                      /* allocated it; NULL: part of the list's array */
    int64_t  row0, row1, work;
    int      turn;                      /* the taker it is reserved for; -1: any    */
    int      taker;                     /* the taker that has it; -1: none          */
    bool     done;
    tulle_matrix *C;                    /* the result                               */
} tl_range;

typedef struct tl_ranges {
    tl_range   *array, *first;          /* a linked list; ranges that were not halved lie in the array */
    int64_t     count, work;            /* totals                                   */
    int         takers;
    uint32_t    left;                   /* takers that have left, one bit each      */
    atomic_flag busy;                   /* a spin lock                              */
    _Atomic int64_t finished;           /* work that is done                        */
} tl_ranges;

/* Divides the rows row0..row1 by their products.  rows > 0: ranges of so many rows, assigned in turn. */
tulle_status tl_ranges_make(tl_base *b, const int64_t *products, int64_t row0, int64_t row1, int takers,
                            int64_t rows, tl_ranges *out);
void         tl_ranges_done(tl_base *b, tl_ranges *ranges);     /* frees all but the results */
/* The functions below may be called by several threads at once.  Takes a range; NULL: there is none now, but
 * with *wait set, a range that another taker has may still be returned. */
tl_range    *tl_ranges_take(tl_ranges *ranges, int taker, bool *wait);
void         tl_ranges_finish(tl_ranges *ranges, tl_range *range, tulle_matrix *C);
/* Returns a range that does not fit in the memory of its taker, in halves (allocated from b).  Where it is a
 * single row, or with `leave`, the taker leaves.  false: no taker is left for the remaining ranges. */
bool         tl_ranges_back(tl_base *b, tl_ranges *ranges, tl_range *range, bool leave);

/* Cuts the rows into one part per taker, row[t] .. row[t + 1], in proportion to `share` (NULL: equal parts)
 * by the work before each row, none with less work than `least`; forced > 0: so many rows each. */
typedef int64_t (*tl_work_before)(const void *arg, int64_t row);
void         tl_rows_split(tl_work_before before, const void *arg, int64_t rows, int parts,
                           const double *share, int64_t least, int64_t forced, int64_t *row);

#endif
