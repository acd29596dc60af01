/* SPDX-License-Identifier: MIT
 *
 * spmm.cl - rows of Y = alpha*A*X + beta*Y; A in CSR, X and Y row-major.
 *
 * A team of C*K threads computes a row of A, or a part of one.  The columns of X are distributed over C
 * threads with V strips each; a strip is 16 bytes (kernels strips_*), or one value if X and Y are not aligned
 * to that (values_*).  The entries of A are distributed round-robin over K such groups, four at a time: one
 * load of columns and one or two of values for all C threads.  Finally the K sums of a column are added in a
 * tree.  Sums are always computed in the same way, for K = 1 in the order of the row.  Kernels eights_*
 * process eight entries at a time, with K = 1, for several whole rows one after the other.
 *
 * Blocks are ordered by tiles of columns: all rows for the first C*V strips, then all rows for the next, so
 * that neighbouring blocks share rows of X in the cache.
 *
 *   count, pieces     pieces of rows; without pieces, whole rows.  The sums of a piece that is part of a row
 *                     are stored apart; for twins_* a piece may be several rows with the same columns
 *   x_at, y_at, y_ld  in strips; x_ld in bytes
 *   turns             rows that a team of eights_* computes
 *
 * Shared memory, with lanes: per thread four columns and values (staged_*), or four columns and the values of
 * three rows (twins_*); without lanes, the memory of an exchange. */

#if VAL == 1
#define STRIP 4
#elif VAL == 4
#define STRIP 1
#else
#define STRIP 2
#endif
typedef struct ALIGNED(16) { val_t v[STRIP]; } strip_t;
typedef struct { val_t v[1]; } value_t;
typedef struct ALIGNED(16) { idx_t c[4]; } cols_t;
typedef struct ALIGNED(16) { val_t v[4]; } vals_t;

/* The same as in src/gpu/rows.c; rows: number of consecutive rows with the same columns. */
typedef struct { u32 row, part; u64 begin; u32 length, rows; } piece_t;

/* A row of X, from this thread's first column on. */
#if IDX == 32
#define X_LINE(strip, c)    ((GLOBAL const strip *)(from + (u64)(c) * x_ld))
#else
#define X_LINE(strip, c)    ((GLOBAL const strip *)(from + (c) * (u64)x_ld))
#endif

#define SPMM_LOAD(strip, V, column)                                         \
    {                                                                       \
        GLOBAL const strip *const line = X_LINE(strip, column);             \
        UNROLL for (u32 v = 0; v < V; v++) s[e][v] = line[v << c_log2];     \
    }
#define SPMM_ADD(W, V, r, factor)       \
    UNROLL for (u32 v = 0; v < V; v++)  \
        UNROLL for (u32 w = 0; w < W; w++) sum[r][v][w] = VAL_FMA(factor, s[e][v].v[w], sum[r][v][w]);

#define SPMM_ARGS                                                                                            \
    u32 count, GLOBAL const u32 *pieces, GLOBAL const ptr_t *RESTRICT ptr, GLOBAL const idx_t *RESTRICT col, \
    GLOBAL const val_t *RESTRICT val, u64 nnz, GLOBAL const val_t *RESTRICT x, u64 x_at, u32 x_ld,           \
        GLOBAL val_t *y, u64 y_at,                                                                           \
    u64 y_ld, u32 strips, u32 c_log2, u32 k_log2, u32 tile_blocks, u32 turns, GLOBAL val_t *sums,            \
    double alpha_re, double alpha_im,                                                                        \
    double beta_re, double beta_im

#define SPMM_BEGIN(W, V, R)                                                                                  \
    const u32 team_log2 = c_log2 + k_log2, lane = thread_id() & ((1u << team_log2) - 1u);                    \
    const u32 k = lane >> c_log2, tile = block_id() / tile_blocks;                                           \
    const u32 i = (block_id() - tile * tile_blocks) * (thread_count() >> team_log2) + (thread_id() >>        \
                                                                                       team_log2);           \
    const u32 at = (tile * V << c_log2) + (lane & ((1u << c_log2) - 1u));                                    \
    u64 begin = 0;                                                                                           \
    u32 length = 0, row = i, part = NOTHING32, rows = 1;                                                     \
    if (i < count) {                                                                                         \
        if (GIVEN(pieces)) {                                                                                 \
            const piece_t piece = ((GLOBAL const piece_t *)pieces)[i];                                       \
            row = piece.row;                                                                                 \
            part = piece.part;                                                                               \
            begin = piece.begin;                                                                             \
            length = piece.length;                                                                           \
            rows = piece.rows;                                                                               \
        } else {                                                                                             \
            begin = ptr[i];                                                                                  \
            length = (u32)(ptr[i + 1u] - begin);                                                             \
        }                                                                                                    \
    }                                                                                                        \
    val_t sum[R][V][W];                                                                                      \
    UNROLL for (u32 r = 0; r < R; r++)                                                                       \
        UNROLL for (u32 v = 0; v < V; v++) UNROLL for (u32 w = 0; w < W; w++) sum[r][v][w] = VAL_ZERO;

/* Stores the sums of R rows in Y, or the sums of a part of a row in their place. */
#define SPMM_STORE(strip, W, V, R)                                                                           \
    GLOBAL strip *const to = part == NOTHING32 ? (GLOBAL strip *)y + y_at + (u64)row * y_ld                  \
                                               : (GLOBAL strip *)sums + (u64)part * strips;                  \
    UNROLL for (u32 r = 0; r < R; r++) {                                                                     \
        if (r > 0u && r >= rows) break;                                                                      \
        UNROLL for (u32 v = 0; v < V; v++) {                                                                 \
            GLOBAL strip *const here = to + r * y_ld + at + (v << c_log2);                                   \
            strip result, was;                                                                               \
            if (part == NOTHING32 && (beta_re != 0.0 || beta_im != 0.0)) was = *here;                        \
            UNROLL for (u32 w = 0; w < W; w++)                                                               \
                result.v[w] = part != NOTHING32 ? sum[r][v][w]                                               \
                                                : spmm_end(alpha_re, alpha_im, beta_re, beta_im,             \
                                                           sum[r][v][w], was.v[w]);                          \
            *here = result;                                                                                  \
        }                                                                                                    \
    }

#define SPMM_END(strip, W, V, R)                                            \
    for (u32 d = 1u << k_log2 >> 1; d > 0u; d >>= 1)                        \
        UNROLL for (u32 r = 0; r < R; r++)                                  \
            UNROLL for (u32 v = 0; v < V; v++)                              \
                UNROLL for (u32 w = 0; w < W; w++) {                        \
                    val_t other;                                            \
                    VAL_XOR(other, sum[r][v][w], d << c_log2, 32u, pass);   \
                    sum[r][v][w] = VAL_ADD(sum[r][v][w], other);            \
                }                                                           \
    if (i >= count || k != 0u || at >= strips) return;                      \
    SPMM_STORE(strip, W, V, R)

/* The start of a loop over the entries of a row; it begins at a multiple of four entries, so that four of
 * them are one aligned load. */
#define SPMM_ROW(strip)                                         \
    const u32 lo = (u32)begin & 3u, hi = lo + length;           \
    GLOBAL const idx_t *const col_from = col + (begin - lo);    \
    GLOBAL const val_t *const val_from = val + (begin - lo);    \
    GLOBAL const u8 *const from = (GLOBAL const u8 *)((GLOBAL const strip *)x + x_at + at);

/* A mask: which of the E entries from j on belong to the row. */
#define SPMM_IN(E)                                          \
    u32 in = (1u << E) - 1u;                                \
    if (j < lo) in = in << (lo - j) & ((1u << E) - 1u);     \
    if (j + E > hi) in &= ((1u << E) - 1u) >> (j + E - hi);

/* V strips of W values per thread; V > 1 requires a number of strips that is a multiple of the team's. */
#define SPMM_DIRECT(name, strip, W, V, blocks)                                      \
KERNEL_FOR(SPMM_BLOCKS(blocks), name)(SPMM_ARGS)                                    \
{                                                                                   \
    LANE_MEMORY                                                                     \
    SPMM_BEGIN(W, V, 1)                                                             \
    if (length > 0u && at < strips) {                                               \
        SPMM_ROW(strip)                                                             \
        const bool last = begin + length + 3u > nnz;                                \
        ROLLED for (u32 j = 4u * k; j < hi; j += 4u << k_log2) {                    \
            cols_t c;                                                               \
            vals_t f;                                                               \
            strip s[4][V];                                                          \
            if (j >= lo && j + 4u <= hi) {                                          \
                c = *(GLOBAL const cols_t *)(col_from + j);                         \
                f = *(GLOBAL const vals_t *)(val_from + j);                         \
                UNROLL for (u32 e = 0; e < 4u; e++) SPMM_LOAD(strip, V, c.c[e])     \
                UNROLL for (u32 e = 0; e < 4u; e++) { SPMM_ADD(W, V, 0, f.v[e]) }   \
            } else {                                                                \
                SPMM_IN(4u)                                                         \
                if (last) {                                                         \
                    UNROLL for (u32 e = 0; e < 4u; e++) {                           \
                        const u32 p = j + e < hi ? j + e : hi - 1u;                 \
                        c.c[e] = col_from[p];                                       \
                        f.v[e] = val_from[p];                                       \
                    }                                                               \
                } else {                                                            \
                    c = *(GLOBAL const cols_t *)(col_from + j);                     \
                    f = *(GLOBAL const vals_t *)(val_from + j);                     \
                }                                                                   \
                UNROLL for (u32 e = 0; e < 4u; e++) {                               \
                    if (!(in >> e & 1u)) c.c[e] = 0u;                               \
                    SPMM_LOAD(strip, V, c.c[e])                                     \
                }                                                                   \
                UNROLL for (u32 e = 0; e < 4u; e++)                                 \
                    if (in >> e & 1u) { SPMM_ADD(W, V, 0, f.v[e]) }                 \
            }                                                                       \
        }                                                                           \
    }                                                                               \
    SPMM_END(strip, W, V, 1)                                                        \
}

/* For whole rows of similar length that are short or computed by few threads: C threads compute `turns` of
 * them, one after the other, eight entries at once, since a block with a single short row per team would take
 * less time than its launch. */
#define SPMM_EIGHTS(name, strip, W, V, blocks)                                                               \
KERNEL_FOR(SPMM_BLOCKS(blocks), name)(SPMM_ARGS)                                                             \
{                                                                                                            \
    const u32 teams = thread_count() >> c_log2, tile = block_id() / tile_blocks, part = NOTHING32, rows = 1; \
    const u32 at = (tile * V << c_log2) + (thread_id() & ((1u << c_log2) - 1u));                             \
    u32 row = (block_id() - tile * tile_blocks) * teams * turns + (thread_id() >> c_log2);                   \
    if (at >= strips) return;                                                                                \
    ROLLED for (u32 turn = 0; turn < turns && row < count; turn++, row += teams) {                           \
        const u64 begin = ptr[row];                                                                          \
        const u32 length = (u32)(ptr[row + 1u] - begin);                                                     \
        SPMM_ROW(strip)                                                                                      \
        const bool last = hi + 7u > nnz - (begin - lo);                                                      \
        val_t sum[1][V][W];                                                                                  \
        UNROLL for (u32 v = 0; v < V; v++) UNROLL for (u32 w = 0; w < W; w++) sum[0][v][w] = VAL_ZERO;       \
        ROLLED for (u32 j = 0; j < hi && length > 0u; j += 8u) {                                             \
            SPMM_IN(8u)                                                                                      \
            cols_t c[2];                                                                                     \
            UNROLL for (u32 h = 0; h < 2u; h++) {                                                            \
                if (!last) c[h] = *(GLOBAL const cols_t *)(col_from + j + 4u * h);                           \
                else UNROLL for (u32 e = 0; e < 4u; e++) c[h].c[e] = in >> (4u * h + e) & 1u                 \
                    ? col_from[j + 4u * h + e] : 0u;                                                         \
            }                                                                                                \
            UNROLL for (u32 h = 0; h < 2u; h++) {                                                            \
                strip s[4][V];                                                                               \
                vals_t f;                                                                                    \
                if (!last) f = *(GLOBAL const vals_t *)(val_from + j + 4u * h);                              \
                else UNROLL for (u32 e = 0; e < 4u; e++) f.v[e] = in >> (4u * h + e) & 1u                    \
                    ? val_from[j + 4u * h + e] : VAL_ZERO;                                                   \
                UNROLL for (u32 e = 0; e < 4u; e++) SPMM_LOAD(strip, V, in >> (4u * h + e) & 1u ? c[h].c[e]  \
                                                              : 0u)                                          \
                UNROLL for (u32 e = 0; e < 4u; e++)                                                          \
                    if (in >> (4u * h + e) & 1u) { SPMM_ADD(W, V, 0, f.v[e]) }                               \
            }                                                                                                \
        }                                                                                                    \
        SPMM_STORE(strip, W, V, 1)                                                                           \
    }                                                                                                        \
}

#define SPMM_FETCH(from_entry)                                      \
    {                                                               \
        const u32 p = from_entry;                                   \
        if (p < hi) {                                               \
            if (begin - lo + p + 4u <= nnz) {                       \
                c = *(GLOBAL const cols_t *)(col_from + p);         \
                f = *(GLOBAL const vals_t *)(val_from + p);         \
            } else {                                                \
                UNROLL for (u32 e = 0; e < 4u; e++) {               \
                    const u32 q = p + e < hi ? p + e : hi - 1u;     \
                    c.c[e] = col_from[q];                           \
                    f.v[e] = val_from[q];                           \
                }                                                   \
            }                                                       \
        }                                                           \
    }

#define SPMM_STAGED(name, strip, W, V, blocks)                                                               \
KERNEL_FOR(SPMM_BLOCKS(blocks), name)(SPMM_ARGS)                                                             \
{                                                                                                            \
    SHARED_MEMORY                                                                                            \
    LANE_MEMORY                                                                                              \
    SHARED cols_t *const cols = (SHARED cols_t *)shared_memory;                                              \
    SHARED vals_t *const vals = (SHARED vals_t *)(cols + thread_count());                                    \
    SPMM_BEGIN(W, V, 1)                                                                                      \
    const u32 lo = (u32)begin & 3u, hi = lo + length, size = 4u << team_log2, mine = thread_id() - lane;     \
    GLOBAL const idx_t *const col_from = col + (begin - lo);                                                 \
    GLOBAL const val_t *const val_from = val + (begin - lo);                                                 \
    GLOBAL const u8 *const from = (GLOBAL const u8 *)((GLOBAL const strip *)x + x_at + (at < strips ? at     \
                                                                                        : 0u));              \
    const u32 rounds = lanes_max(length > 0u ? (hi + size - 1u) / size : 0u);                                \
    cols_t c;                                                                                                \
    vals_t f;                                                                                                \
    SPMM_FETCH(4u * lane)                                                                                    \
    ROLLED for (u32 base = 0; base < rounds * size; base += size) {                                          \
        cols[thread_id()] = c;                                                                               \
        vals[thread_id()] = f;                                                                               \
        TEAM_SYNC(32u);                                                                                      \
        SPMM_FETCH(base + size + 4u * lane)                                                                  \
        ROLLED for (u32 j = base + 4u * k; j < hi && j < base + size && length > 0u; j += 4u << k_log2) {    \
            const vals_t g = vals[mine + ((j - base) >> 2)];                                                 \
            cols_t n = cols[mine + ((j - base) >> 2)];                                                       \
            strip s[4][V];                                                                                   \
            if (j >= lo && j + 4u <= hi) {                                                                   \
                UNROLL for (u32 e = 0; e < 4u; e++) SPMM_LOAD(strip, V, n.c[e])                              \
                UNROLL for (u32 e = 0; e < 4u; e++) { SPMM_ADD(W, V, 0, g.v[e]) }                            \
            } else {                                                                                         \
                SPMM_IN(4u)                                                                                  \
                UNROLL for (u32 e = 0; e < 4u; e++) {                                                        \
                    if (!(in >> e & 1u)) n.c[e] = 0u;                                                        \
                    SPMM_LOAD(strip, V, n.c[e])                                                              \
                }                                                                                            \
                UNROLL for (u32 e = 0; e < 4u; e++)                                                          \
                    if (in >> e & 1u) { SPMM_ADD(W, V, 0, g.v[e]) }                                          \
            }                                                                                                \
        }                                                                                                    \
        TEAM_SYNC(32u);                                                                                      \
    }                                                                                                        \
    SPMM_END(strip, W, V, 1)                                                                                 \
}

/* Bundles of up to TWINS rows with the same columns, made by kernels/twins.cl: each row of X is loaded once
 * for all of them.  Columns are staged as above; the values of each row are staged beside the columns. */
#define TWINS 3
#if TULLE_CUDA
#define SPMM_TWINS(name, strip, W, V, blocks)                                                                \
KERNEL_FOR(SPMM_BLOCKS(blocks), name)(SPMM_ARGS)                                                             \
{                                                                                                            \
    SHARED_MEMORY                                                                                            \
    LANE_MEMORY                                                                                              \
    SPMM_BEGIN(W, V, TWINS)                                                                                  \
    const u32 lo = (u32)begin & 3u, hi = lo + length, size = 4u << team_log2, team = 1u << team_log2,        \
        mine = thread_id() - lane;                                                                           \
    SHARED cols_t *const cols = (SHARED cols_t *)shared_memory + mine;                                       \
    SHARED vals_t *const vals = (SHARED vals_t *)((SHARED cols_t *)shared_memory + thread_count()) + TWINS   \
        * mine;                                                                                              \
    GLOBAL const idx_t *const col_from = col + (begin - lo);                                                 \
    GLOBAL const val_t *const val_from = val + (begin - lo);                                                 \
    GLOBAL const u8 *const from = (GLOBAL const u8 *)((GLOBAL const strip *)x + x_at + (at < strips ? at     \
                                                                                        : 0u));              \
    const u32 rounds = lanes_max(length > 0u ? (hi + size - 1u) / size : 0u);                                \
    ROLLED for (u32 base = 0; base < rounds * size; base += size) {                                          \
        const u32 p = base + 4u * lane;                                                                      \
        UNROLL for (u32 r = 0; r < TWINS; r++) {                                                             \
            if (r > 0u && r >= rows) break;                                                                  \
            UNROLL for (u32 e = 0; e < 4u; e++) {                                                            \
                const u32 q = lane + (e << team_log2);                                                       \
                if (base + q >= lo && base + q < hi)                                                         \
                    COPY_LATER((SHARED val_t *)(vals + r * team) + q, val_from + (r * length + base + q));   \
            }                                                                                                \
        }                                                                                                    \
        if (p < hi) {                                                                                        \
            cols_t c;                                                                                        \
            if (begin - lo + p + 4u <= nnz) {                                                                \
                c = *(GLOBAL const cols_t *)(col_from + p);                                                  \
            } else {                                                                                         \
                UNROLL for (u32 e = 0; e < 4u; e++) c.c[e] = col_from[p + e < hi ? p + e : hi - 1u];         \
            }                                                                                                \
            cols[lane] = c;                                                                                  \
        }                                                                                                    \
        COPY_WAIT();                                                                                         \
        TEAM_SYNC(32u);                                                                                      \
        ROLLED for (u32 j = base + 4u * k; j < hi && j < base + size && length > 0u; j += 4u << k_log2) {    \
            SHARED const vals_t *const quad = vals + ((j - base) >> 2);                                      \
            cols_t n = cols[(j - base) >> 2];                                                                \
            strip s[4][V];                                                                                   \
            SPMM_IN(4u)                                                                                      \
            UNROLL for (u32 e = 0; e < 4u; e++) {                                                            \
                if (!(in >> e & 1u)) n.c[e] = 0u;                                                            \
                SPMM_LOAD(strip, V, n.c[e])                                                                  \
            }                                                                                                \
            UNROLL for (u32 r = 0; r < TWINS; r++) {                                                         \
                if (r > 0u && r >= rows) break;                                                              \
                const vals_t g = quad[r * team];                                                             \
                if (in == 15u) {                                                                             \
                    UNROLL for (u32 e = 0; e < 4u; e++) { SPMM_ADD(W, V, r, g.v[e]) }                        \
                } else {                                                                                     \
                    UNROLL for (u32 e = 0; e < 4u; e++)                                                      \
                        if (in >> e & 1u) { SPMM_ADD(W, V, r, g.v[e]) }                                      \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        TEAM_SYNC(32u);                                                                                      \
    }                                                                                                        \
    SPMM_END(strip, W, V, TWINS)                                                                             \
}
#else
#define SPMM_TWINS(name, strip, W, V, blocks)                                                       \
KERNEL_FOR(SPMM_BLOCKS(blocks), name)(SPMM_ARGS)                                                    \
{                                                                                                   \
    LANE_MEMORY                                                                                     \
    SPMM_BEGIN(W, V, TWINS)                                                                         \
    if (length > 0u && at < strips) {                                                               \
        const u32 lo = (u32)begin & 3u, hi = lo + length, e = 0;                                    \
        GLOBAL const idx_t *const col_from = col + (begin - lo);                                    \
        GLOBAL const val_t *const val_from = val + (begin - lo);                                    \
        GLOBAL const u8 *const from = (GLOBAL const u8 *)((GLOBAL const strip *)x + x_at + at);     \
        for (u32 j = 4u * k; j < hi; j += 4u << k_log2)                                             \
            for (u32 p = j > lo ? j : lo; p < hi && p < j + 4u; p++) {                              \
                strip s[1][V];                                                                      \
                SPMM_LOAD(strip, V, col_from[p])                                                    \
                for (u32 r = 0; r < rows; r++) {                                                    \
                    const val_t factor = val_from[r * length + p];                                  \
                    SPMM_ADD(W, V, r, factor)                                                       \
                }                                                                                   \
            }                                                                                       \
    }                                                                                               \
    SPMM_END(strip, W, V, TWINS)                                                                    \
}
#endif

/* Blocks of 256 threads per multiprocessor that the registers of a kernel should allow. */
#define SPMM_BLOCKS(n)  (IDX == 64 || VAL > 2 ? 1 : (n))
#define EIGHTS_BLOCKS   (__CUDA_ARCH__ >= 1000 ? 3 : 4)     /* there the code needs a few more registers */

SPMM_EIGHTS(eights_1, strip_t, STRIP, 1, EIGHTS_BLOCKS)
SPMM_EIGHTS(eights_2, strip_t, STRIP, 2, EIGHTS_BLOCKS)
SPMM_DIRECT(strips_1, strip_t, STRIP, 1, 5)
SPMM_DIRECT(strips_2, strip_t, STRIP, 2, 4)
SPMM_DIRECT(values_1, value_t, 1, 1, 4)
SPMM_DIRECT(values_4, value_t, 1, 4, 3)
#if TULLE_CUDA
SPMM_STAGED(staged_1, strip_t, STRIP, 1, VAL == 1 ? 5 : 4)
SPMM_STAGED(staged_2, strip_t, STRIP, 2, VAL == 1 ? 4 : 3)
#else
SPMM_DIRECT(staged_1, strip_t, STRIP, 1, 5)
SPMM_DIRECT(staged_2, strip_t, STRIP, 2, 4)
#endif
SPMM_TWINS(twins_1, strip_t, STRIP, 1, VAL == 1 ? 4 : 3)
SPMM_TWINS(twins_2, strip_t, STRIP, 2, 2)

/* Adds the sums of the parts of long rows, in order.  A block per row and 2^c_log2 values; the parts are
 * divided into consecutive ranges for the other threads. */
KERNEL(join)(GLOBAL const u32 *rows, GLOBAL const val_t *RESTRICT sums, u32 cols, GLOBAL val_t *y, u64 y_at,
             u64 y_ld, u32 c_log2, u32 tile_blocks, double alpha_re, double alpha_im, double beta_re,
             double beta_im)
{
    STATIC_SHARED val_t each[THREADS_MAX];
    const u32 tile = block_id() / tile_blocks, i = block_id() - tile * tile_blocks;
    const u32 row = rows[3u * i], first = rows[3u * i + 1u], parts = rows[3u * i + 2u];
    const u32 c = thread_id() & ((1u << c_log2) - 1u), column = (tile << c_log2) + c;
    const u32 groups = thread_count() >> c_log2, group = thread_id() >> c_log2,
              share = (parts + groups - 1u) / groups;
    const u32 begin = group * share, end = begin + share < parts ? begin + share : parts;
    val_t sum = VAL_ZERO;
    if (column < cols)
        for (u32 p = begin; p < end; p++) sum = VAL_ADD(sum, sums[(u64)(first + p) * cols + column]);
    each[thread_id()] = sum;
    BARRIER();
    if (group == 0u && column < cols) {
        for (u32 g = 1; g < groups && g * share < parts; g++) sum = VAL_ADD(sum, each[(g << c_log2) + c]);
        GLOBAL val_t *const to = y + y_at + (u64)row * y_ld + column;
        *to = spmm_end(alpha_re, alpha_im, beta_re, beta_im, sum,
                       beta_re != 0.0 || beta_im != 0.0 ? *to : VAL_ZERO);
    }
}
