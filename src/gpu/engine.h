/* SPDX-License-Identifier: MIT
 * engine.h - declarations shared by the files of the GPU engine. */
#ifndef TL_ENGINE_H
#define TL_ENGINE_H
#include "gpu/gpu.h"
#include "kernels/classes.cl"

/* ---- programs.c: the files of src/kernels, with their largest block size and whether they depend on key and
 * value types; kernels by number */

#define TL_FILE_LIST(X)                                                                           \
    X(analyze,            256,  false, false)                                                     \
    X(tiny,               1024, false, false)                                                     \
    X(check,              256,  false, false)                                                     \
    X(scan,               256,  false, false)                                                     \
    X(bins,               512,  false, false)                                                     \
    X(symbolic_rows,      64,   true,  false)                                                     \
    X(symbolic_block,     1024, true,  false)                                                     \
    X(symbolic_dense,     1024, false, false)                                                     \
    X(numeric_rows,       64,   true,  true)                                                      \
    X(numeric_block,      1024, true,  true)                                                      \
    X(numeric_rank,       128,  false, true)                                                      \
    X(numeric_rank_block, 1024, false, true)                                                      \
    X(numeric_dense,      1024, false, true)                                                      \
    X(split,              256,  false, true)                                                      \
    X(sort_rows,          1024, true,  true)                                                      \
    X(direct,             256,  false, true)                                                      \
    X(drop,               256,  false, true)                                                      \
    X(merges,             1024, false, true)                                                      \
    X(reg_count,          128,  true,  false)                                                     \
    X(reg_sort,           128,  true,  true)                                                      \
    X(reg_merge,          128,  true,  true)                                                      \
    X(reg_hash,           128,  true,  true)                                                      \
    X(upper,              256,  false, false)                                                     \
    X(heap,               128,  true,  true)                                                      \
    X(esc,                256,  true,  true)                                                      \
    X(merge,              1024, true,  true)                                                      \
    X(arrange,            256,  false, true)                                                      \
    X(delta_bins,         256,  false, false)                                                     \
    X(delta_count,        1024, true,  false)                                                     \
    X(delta_fill,         1024, true,  true)                                                      \
    X(pieces,             256,  false, false)                                                     \
    X(twins,              1024, false, false)                                                     \
    X(spmm,               256,  false, true)                                                      \
    X(dense,              256,  false, true)                                                      \
    X(ellr,               256,  false, true)                                                      \
    X(tf32,               256,  false, false)                                                     \
    X(motif_find,         256,  false, false)                                                     \
    X(motif_map,          1024, false, false)                                                    \
    X(motif_fill,         256,  false, true)                                                      \
    X(twin_rows,          256,  false, true)

typedef enum tl_file_id {
#define TL_ENUM(name, threads, key, val) TL_F_##name,
    TL_FILE_LIST(TL_ENUM)
#undef TL_ENUM
    TL_FILES
} tl_file_id;

#define TL_KERNEL_LIST(X)                                                                         \
    X(ANALYZE,             analyze,        analyze)                                               \
    X(TINY_ROWS,           tiny,           tiny_rows)                                             \
    X(TINY_SCAN,           tiny,           tiny_scan)                                             \
    X(CHECK,               check,          check)                                                 \
    X(WIDEN,               check,          widen)                                                 \
    X(NARROW,              check,          narrow)                                                \
    X(TILES,               scan,           tiles)                                                 \
    X(OFFSETS,             scan,           offsets)                                               \
    X(BINS,                bins,           bins)                                                  \
    X(SYMBOLIC_ROWS,       symbolic_rows,  symbolic_rows)                                         \
    X(SYMBOLIC_BLOCK,      symbolic_block, symbolic_block)                                        \
    X(SYMBOLIC_SPILL,      symbolic_block, symbolic_spill)                                        \
    X(SYMBOLIC_DENSE,      symbolic_dense, symbolic_dense)                                        \
    X(SYMBOLIC_DENSE_ROWS, symbolic_dense, symbolic_dense_rows)                                   \
    X(NUMERIC_ROWS,        numeric_rows,   numeric_rows)                                          \
    X(NUMERIC_BLOCK,       numeric_block,  numeric_block)                                         \
    X(NUMERIC_RANK,        numeric_rank,   numeric_rank)                                          \
    X(NUMERIC_RANK_BLOCK,  numeric_rank_block, numeric_rank_block)                                \
    X(NUMERIC_DENSE,       numeric_dense,  numeric_dense)                                         \
    X(SPLIT_MARK,          split,          split_mark)                                            \
    X(SPLIT_COUNT,         split,          split_count)                                           \
    X(SPLIT_RANK,          split,          split_rank)                                            \
    X(SPLIT_ADD,           split,          split_add)                                             \
    X(SORT_ROWS,           sort_rows,      sort_rows)                                             \
    X(DIRECT,              direct,         direct)                                                \
    X(DROP_COUNT,          drop,           drop_count)                                            \
    X(DROP_COPY,           drop,           drop_copy)                                             \
    X(MERGE_RANKING,       merges,         merge_ranking)                                         \
    X(MERGE_PATH,          merges,         merge_path)                                            \
    X(MERGE_ODDEVEN,       merges,         merge_oddeven)                                         \
    X(MERGE_BITONIC,       merges,         merge_bitonic)                                         \
    X(MERGE_BITONIC_ADVANCED, merges,      merge_bitonic_advanced)                                \
    X(REG_HASH_COUNT,      reg_count,      reg_hash_count)                                        \
    X(REG_SORT,            reg_sort,       reg_sort)                                              \
    X(REG_SORT_LONG,       reg_sort,       reg_sort_long)                                         \
    X(REG_SORT_WIDE,       reg_sort,       reg_sort_wide)                                         \
    X(REG_MERGE,           reg_merge,      reg_merge)                                             \
    X(REG_MERGE_LONG,      reg_merge,      reg_merge_long)                                        \
    X(REG_HASH,            reg_hash,       reg_hash)                                              \
    X(REG_HASH_LONG,       reg_hash,       reg_hash_long)                                         \
    X(REG_HASH_WIDE,       reg_hash,       reg_hash_wide)                                         \
    X(UPPER_COUNT,         upper,          upper_count)                                           \
    X(UPPER_FILL,          upper,          upper_fill)                                            \
    X(HEAP,                heap,           heap)                                                  \
    X(ESC,                 esc,            esc)                                                   \
    X(MERGE,               merge,          merge)                                                 \
    X(MERGE_DEEP,          merge,          merge_deep)                                            \
    X(ARRANGE,             arrange,        arrange)                                               \
    X(ARRANGE_AREA,        arrange,        arrange_area)                                          \
    X(DELTA_TALLY,         delta_bins,     delta_tally)                                           \
    X(DELTA_LIST,          delta_bins,     delta_list)                                            \
    X(DELTA_HASH_COUNT,    delta_count,    delta_hash_count)                                      \
    X(DELTA_DENSE_COUNT,   delta_count,    delta_dense_count)                                     \
    X(DELTA_HASH_FILL,     delta_fill,     delta_hash_fill)                                       \
    X(DELTA_DENSE_FILL,    delta_fill,     delta_dense_fill)                                      \
    X(PIECES_LOOK,         pieces,         pieces_look)                                           \
    X(PIECES_PLACE,        pieces,         pieces_place)                                          \
    X(PIECES_FILL,         pieces,         pieces_fill)                                           \
    X(TWINS_LOOK,          twins,          twins_look)                                            \
    X(TWINS_FILL,          twins,          twins_fill)                                            \
    X(STRIPS_1,            spmm,           strips_1)                                              \
    X(STRIPS_2,            spmm,           strips_2)                                              \
    X(STAGED_1,            spmm,           staged_1)                                              \
    X(STAGED_2,            spmm,           staged_2)                                              \
    X(EIGHTS_1,            spmm,           eights_1)                                              \
    X(EIGHTS_2,            spmm,           eights_2)                                              \
    X(TWINS_1,             spmm,           twins_1)                                               \
    X(TWINS_2,             spmm,           twins_2)                                               \
    X(VALUES_1,            spmm,           values_1)                                              \
    X(VALUES_4,            spmm,           values_4)                                              \
    X(JOIN,                spmm,           join)                                                  \
    X(TURN,                dense,          turn)                                                  \
    X(SCALE,               dense,          scale)                                                 \
    X(ELLR_BUILD,          ellr,           ellr_build)                                            \
    X(ELLR_1,              ellr,           ellr_1)                                                \
    X(ELLR_2,              ellr,           ellr_2)                                                \
    X(ELLR_4,              ellr,           ellr_4)                                                \
    X(ELLR_8,              ellr,           ellr_8)                                                \
    X(ELLR_16,             ellr,           ellr_16)                                               \
    X(ELLR_32,             ellr,           ellr_32)                                               \
    X(TF32_COUNT,          tf32,           tf32_count)                                            \
    X(TF32_COLUMNS,        tf32,           tf32_columns)                                          \
    X(TF32_FILL,           tf32,           tf32_fill)                                             \
    X(TF32_1,              tf32,           tf32_1)                                                \
    X(TF32_2,              tf32,           tf32_2)                                                \
    X(TF32_4,              tf32,           tf32_4)                                                \
    X(TF32_8,              tf32,           tf32_8)                                                \
    X(MOTIF_SAMPLE,        motif_find,     motif_sample)                                          \
    X(CLASS_ENTER,         motif_find,     class_enter)                                           \
    X(CLASS_VERIFY,        motif_find,     class_verify)                                          \
    X(MOTIF_ENTER,         motif_find,     motif_enter)                                           \
    X(MOTIF_VERIFY,        motif_find,     motif_verify)                                          \
    X(MOTIF_SELECT,        motif_map,      motif_select)                                          \
    X(MOTIF_TAKE,          motif_find,     motif_take)                                            \
    X(MOTIF_REST,          motif_find,     motif_rest)                                            \
    X(MOTIF_COUNT,         motif_find,     motif_count)                                           \
    X(MOTIF_MAP,           motif_map,      motif_map)                                             \
    X(MOTIF_GATHER,        motif_fill,     motif_gather)                                          \
    X(MOTIF_SCATTER,       motif_fill,     motif_scatter)                                         \
    X(TWIN_SAMPLE,         twin_rows,      twin_sample)                                       \
    X(TWIN_WORDS,          twin_rows,      twin_words)                                        \
    X(TWIN_LIST,           twin_rows,      twin_list)                                         \
    X(TWIN_COUNT,          twin_rows,      twin_count)                                        \
    X(TWIN_APPLY,          twin_rows,      twin_apply)                                        \
    X(TWIN_GIVE,           twin_rows,      twin_give)                                         \
    X(TWIN_FILL,           twin_rows,      twin_fill)

typedef enum tl_kernel_id {
#define TL_ENUM(id, file, name) TL_K_##id,
    TL_KERNEL_LIST(TL_ENUM)
#undef TL_ENUM
    TL_KERNELS,
    TL_K_NONE = -1
} tl_kernel_id;

/* The types a kernel is built for: widths in bits, val a tulle_type (0: none). */
typedef struct tl_types {
    int ptr, idx, key, val;
} tl_types;

enum { TL_MOTIFS_MOST = 16384 };        /* the same as in src/base/env.c */
enum { TL_VARIANTS = 2 * 2 * 2 * 5 };

/* Layout of the board (small arrays of the current product), in bytes; limits, sums and cursors have a part
 * for each step. */
enum {
    TL_BOARD_LIMITS  = 0,
    TL_BOARD_NO_BAD  = 2 * TL_ALIGN,    /* all ones: "no row is bad" */
    TL_BOARD_BAD     = 3 * TL_ALIGN,
    TL_BOARD_SUMS    = 4 * TL_ALIGN,
    TL_BOARD_SUM     = 2 * TL_ALIGN,    /* size of the sums of one step                              */
    TL_BOARD_CURSORS = 8 * TL_ALIGN,
    TL_BOARD_SAMPLE  = 10 * TL_ALIGN,   /* the table of a sample of rows */
    TL_BOARD_BYTES   = TL_BOARD_SAMPLE + SAMPLE_SLOTS * 4,
    TL_NOTE_BYTES    = 3 * TL_BOARD_SUM /* both sums and a bad row, on the host */
};
_Static_assert(SUM_ALL * 8 <= TL_BOARD_SUM && LIMITS * 4 <= TL_ALIGN && 2 * CLASSES * 4 <= TL_ALIGN,
               "a part of the board is too small");

typedef struct tl_block {
    uint64_t handle, bytes;
    uint64_t asked;                     /* bytes requested by its user, at most           */
    uint64_t product;                   /* number of the product that allocated it        */
    uint64_t freed;                     /* time of its release, counted in frees of this device */
    bool     used;
} tl_block;

struct tl_gpu {
    const tl_driver *driver;
    tl_device       *device;
    char             name[64];
    tl_caps          caps;
    int64_t          process;           /* that opened it, since drivers do not survive fork() */
    atomic_int       users;
    /* pool.c */
    atomic_flag      busy;
    tl_block        *block;
    int              blocks, room;
    uint64_t         held, peak, waiting, requests, fail_at;
    uint64_t         keep_most;         /* bytes of freed blocks that may be kept         */
    uint64_t         frees;
    uint64_t         product, taken, most, limit, refused;     /* of the current product: see
                                                                * tl_dmem_begin */
    /* programs.c */
    tl_module       *module[TL_FILES][TL_VARIANTS];
    tl_kernel       *kernel[TL_KERNELS][TL_VARIANTS];
    double           compiling;         /* seconds spent on compiling and loading kernels */
    int64_t          images[3];         /* images of each tl_origin, so far               */
    /* product.c: kept from one product to the next */
    uint64_t        *note;              /* pinned memory that receives the summaries      */
    tl_dmem          board;             /* TL_BOARD_*: small arrays of the current product */
    uint32_t         limits_now[TL_BOARD_BAD / 4];  /* as last uploaded to the board     */
    int64_t          not_tiny[3];       /* sizes of a product that failed on the fast path of tiny.c */
    uint64_t         portion_products;  /* of a portion of rows, at least (portions.c)    */
    struct tl_owner *owner;             /* owner.c                                        */
    bool             foreign;           /* work is enqueued in the caller's queue         */
    void            *staging;           /* pinned: parts of dense matrices in transfer (chunks.c) */
    uint64_t         staging_bytes;
    void            *parcels;           /* pinned: slots of parcels.c                */
    uint32_t         parcel_busy;       /* one bit per slot                               */
    int              parcel;            /* the next slot                             */
    tl_pins         *pins;              /* host memory that is locked for copies; NULL: none can be */
    int              balance;           /* TULLE_GPU_BALANCE: 0, 1, or -1: as in the policy */
    int              motifs;            /* TULLE_GPU_MOTIFS: -1 decided by a sample, 0 never, 1 always */
    uint64_t         motif_hash[2];     /* masks for the hashes of classes and of motifs */
    uint32_t         motif_most;        /* number of motifs, at most                      */
    int              twins;             /* TULLE_GPU_TWINS: -1 decided by a sample, 0 never, 1 always */
    /* delta.c */
    tl_trees         delta_trees;       /* from TULLE_DELTA_TREE; without nodes: none     */
    bool             delta_looked;
    int64_t          delta_sort;        /* TULLE_DELTA_SORT; -1: as in the policy         */
    double           delta_seen[2][TL_FEATURES];        /* features of the steps of the last product      */
};

/* Rounding up to powers of two. */
static inline uint32_t tl_log2_up(uint64_t n)
{
    uint32_t log2 = 0;
    while (log2 < 63 && (uint64_t)1 << log2 < n) log2++;
    return log2;
}

/* Arguments of a launch. */
#define TL_MEM(m) {.kind = TL_ARG_MEM, .as.mem = (m)}
#define TL_U32(x) {.kind = TL_ARG_U32, .as.u32 = (uint32_t)(x)}
#define TL_F64(x) {.kind = TL_ARG_F64, .as.f64 = (x)}
#define TL_U64(x) {.kind = TL_ARG_U64, .as.u64 = (uint64_t)(x)}
#define TL_COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* Loads the kernels of a list; compiles them if necessary. */
tulle_status tl_gpu_need(tl_base *b, tl_gpu *gpu, tl_types types, const tl_kernel_id *ids, int count);
tl_kernel   *tl_gpu_kernel(tl_gpu *gpu, tl_types types, tl_kernel_id id);
void         tl_gpu_unload(tl_gpu *gpu);
/* The i-th program of which the build makes images; false after the last. */
void         tl_program_make(const char *file, int threads, tl_types types, tl_program *program);
bool         tl_program_ahead(int i, tl_program *p);

/* ---- owner.c */
tulle_status tl_owner_open(tl_base *b, tl_gpu *gpu);
void         tl_owner_close(tl_gpu *gpu);

/* ---- check.c: validation of views */

/* log2 of the number of threads for a row of average length. */
uint32_t     tl_team_log2(const tl_gpu *gpu, int64_t nnz, int64_t rows);
tl_types     tl_check_types(const tulle_csr *M);                /* for its check kernel */
/* Enqueues the check; bad[0] receives the first bad row. */
tulle_status tl_check_launch(tl_base *b, tl_gpu *gpu, const tulle_csr *M, int64_t rows, tl_dmem ptr,
                             tl_dmem col, tl_dmem bad);
/* Fails with the message about a bad view; succeeds if this view is valid. */
tulle_status tl_check_tell(tl_base *b, tl_gpu *gpu, const tulle_csr *M, const char *name);

/* ---- sizes.c: block sizes and shared memory of each class of rows on this device */

typedef struct tl_size {
    tl_kernel_id kernel;
    uint32_t     threads, shared;
    uint32_t     slots;                 /* or words, columns, bytes; per block, or per team for
                                         * CLASS_BITS */
    uint32_t     team;                  /* threads per team, CLASS_BITS and CLASS_DIRECT */
    uint32_t     teams, entry;          /* teams per block, bytes per slot, CLASS_ROWS */
    uint32_t     resident;              /* blocks on the whole device                */
    uint32_t     slab, bits;            /* CLASS_FEW: words of 8 bytes of a warp's slab, bits of an index;
                                         * entry: products per thread, in registers */
} tl_size;

typedef struct tl_sizes {
    tl_size  size[CLASSES];
    uint32_t limits[LIMITS];
} tl_sizes;

/* mean: products per entry of A, which is the average length of a row of B. */
void     tl_sizes_make(const tl_gpu *gpu, const tl_recipe *recipe, tl_types types, uint64_t mean, int step,
                       tl_sizes *sizes);
/* A bin of CLASS_FEW: rows with at most `entries` entries of A, `mean` on average, and `span` columns;
 * TL_DIRECT: for the symbolic step. */
tl_size tl_size_few(const tl_gpu *gpu, tl_accumulator few, tl_types types, int bin, uint64_t entries,
                    uint64_t mean, uint64_t span);
/* The sizes for sorting rows of at most `room` entries. */
tl_size  tl_size_sort(const tl_gpu *gpu, tl_types types, uint32_t room);
/* Teams with `bytes` of shared memory each; fewer threads if that is much. */
tl_size tl_size_teams(const tl_gpu *gpu, tl_kernel_id kernel, uint32_t threads, uint32_t team, uint64_t bytes,
                      uint32_t slots);
/* Changes the number of slots of a class of short rows. */
void     tl_size_rows(const tl_gpu *gpu, tl_size *size, uint64_t slots);
/* The dynamic shared memory that a block can have. */
uint32_t tl_dynamic_bytes(const tl_caps *caps);
uint32_t tl_resident(const tl_caps *caps, uint32_t threads, uint32_t shared);

#endif
