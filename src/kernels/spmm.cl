/* SPDX-License-Identifier: MIT
 *
 * spmm.cl - rows of Y = alpha*A*X + beta*Y, A in CSR, X and Y row by row.
 *
 * A team of C*K threads takes a row of A, or a piece of one.  The columns lie side by side over C of its threads, each with V
 * strips: a strip is 16 bytes (kernels strips_*), or one value where X and Y are not aligned to that (values_*).
 * The entries of A go round over the other K, four at a time, which are one load of columns and one or two of values for
 * all C threads; so a thread has 4*V loads of X under way, and the next four entries of A with them.  In the end the K sums
 * of a column are added in a tree.  A sum is always made in the same way, and with K = 1 in the order of the row.
 *
 * Blocks come tile by tile: all rows for the first C*V strips, then all for the next, so that neighbours share what they
 * read of X.
 *
 *   count, pieces   pieces of rows, or as many rows; a piece that is not a whole row leaves its sums alone
 *   x_at, x_ld ...  in strips
 *
 * No shared memory but what an exchange needs where there are no lanes. */

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

/* As src/gpu/rows.c has it. */
typedef struct { u32 row, part; u64 begin; u32 length, unused; } piece_t;

typedef struct { cols_t c; vals_t v; } quad_t;

/* Entries 4q to 4q+3; those past the last are not read. */
INLINE quad_t quad_load(GLOBAL const idx_t *RESTRICT col, GLOBAL const val_t *RESTRICT val, u64 q, u64 nnz)
{
    quad_t a;
    if (4u * q + 4u <= nnz) {
        a.c = ((GLOBAL const cols_t *)col)[q];
        a.v = ((GLOBAL const vals_t *)val)[q];
    } else {
        UNROLL for (u32 e = 0; e < 4u; e++) {
            const u64 p = 4u * q + e < nnz ? 4u * q + e : nnz - 1u;
            a.c.c[e] = col[p];
            a.v.v[e] = val[p];
        }
    }
    return a;
}

#define SPMM_ROWS(name, strip, W, V)                                                                                    \
KERNEL(name)(u64 count, GLOBAL const u32 *pieces, GLOBAL const ptr_t *RESTRICT ptr, GLOBAL const idx_t *RESTRICT col,   \
             GLOBAL const val_t *RESTRICT val, u64 nnz, GLOBAL const val_t *RESTRICT x, u64 x_at, u64 x_ld,             \
             GLOBAL val_t *y, u64 y_at, u64 y_ld, u32 strips, u32 c_log2, u32 k_log2, u32 tile_blocks,                  \
             GLOBAL val_t *sums, double alpha_re, double alpha_im, double beta_re, double beta_im)                      \
{                                                                                                                       \
    LANE_MEMORY                                                                                                         \
    const u32 team_log2 = c_log2 + k_log2, lane = thread_id() & ((1u << team_log2) - 1u);                               \
    const u32 k = lane >> c_log2, tile = block_id() / tile_blocks;                                                      \
    const u64 i = (u64)(block_id() - tile * tile_blocks) * (thread_count() >> team_log2) + (thread_id() >> team_log2);  \
    const u32 at = (tile * V << c_log2) + (lane & ((1u << c_log2) - 1u));                                               \
    u64 begin = 0, end = 0;                                                                                             \
    u32 row = 0, part = NOTHING32;                                                                                      \
    if (i < count) {                                                                                                    \
        if (GIVEN(pieces)) {                                                                                            \
            const piece_t piece = ((GLOBAL const piece_t *)pieces)[i];                                                  \
            row = piece.row;                                                                                            \
            part = piece.part;                                                                                          \
            begin = piece.begin;                                                                                        \
            end = begin + piece.length;                                                                                 \
        } else {                                                                                                        \
            row = (u32)i;                                                                                               \
            begin = ptr[i];                                                                                             \
            end = ptr[i + 1u];                                                                                          \
        }                                                                                                               \
    }                                                                                                                   \
    val_t sum[V][W];                                                                                                    \
    UNROLL for (u32 v = 0; v < V; v++) UNROLL for (u32 w = 0; w < W; w++) sum[v][w] = VAL_ZERO;                         \
    if (at < strips) {                                                                                                  \
        GLOBAL const strip *const from = (GLOBAL const strip *)x + x_at + at;                                           \
        const u64 last = (end + 3u) >> 2;                                                                               \
        u64 q = (begin >> 2) + k;                                                                                       \
        quad_t a;                                                                                                       \
        if (q < last && begin < end) a = quad_load(col, val, q, nnz);                                                   \
        for (; q < last && begin < end; q += 1u << k_log2) {                                                            \
            strip s[4][V];                                                                                              \
            bool in[4];                                                                                                 \
            UNROLL for (u32 e = 0; e < 4u; e++) {                                                                       \
                in[e] = 4u * q + e >= begin && 4u * q + e < end;                                                        \
                if (in[e]) {                                                                                            \
                    GLOBAL const strip *const line = from + X_ROW(a.c.c[e], x_ld);                                      \
                    UNROLL for (u32 v = 0; v < V; v++)                                                                  \
                        if (v == 0u || at + (v << c_log2) < strips) s[e][v] = line[v << c_log2];                        \
                }                                                                                                       \
            }                                                                                                           \
            const u64 next = q + (1u << k_log2);                                                                        \
            const vals_t f = a.v;                                                                                       \
            if (next < last) a = quad_load(col, val, next, nnz);                                                        \
            UNROLL for (u32 e = 0; e < 4u; e++)                                                                         \
                if (in[e]) {                                                                                            \
                    UNROLL for (u32 v = 0; v < V; v++)                                                                  \
                        if (v == 0u || at + (v << c_log2) < strips)                                                     \
                            UNROLL for (u32 w = 0; w < W; w++)                                                          \
                                sum[v][w] = VAL_ADD(sum[v][w], VAL_MUL(f.v[e], s[e][v].v[w]));                          \
                }                                                                                                       \
        }                                                                                                               \
    }                                                                                                                   \
    for (u32 d = 1u << k_log2 >> 1; d > 0u; d >>= 1)                                                                    \
        UNROLL for (u32 v = 0; v < V; v++)                                                                              \
            UNROLL for (u32 w = 0; w < W; w++) {                                                                        \
                val_t other;                                                                                            \
                VAL_XOR(other, sum[v][w], d << c_log2, 32u, pass);                                                      \
                sum[v][w] = VAL_ADD(sum[v][w], other);                                                                  \
            }                                                                                                           \
    if (i >= count || k != 0u) return;                                                                                  \
    GLOBAL strip *const to = part == NOTHING32 ? (GLOBAL strip *)y + y_at + (u64)row * y_ld                             \
                                               : (GLOBAL strip *)sums + (u64)part * strips;                             \
    UNROLL for (u32 v = 0; v < V; v++) {                                                                                \
        const u32 here = at + (v << c_log2);                                                                            \
        if (here < strips) {                                                                                            \
            strip s, was;                                                                                               \
            if (part == NOTHING32 && (beta_re != 0.0 || beta_im != 0.0)) was = to[here];                                \
            UNROLL for (u32 w = 0; w < W; w++)                                                                          \
                s.v[w] = part != NOTHING32 ? sum[v][w]                                                                  \
                                           : spmm_end(alpha_re, alpha_im, beta_re, beta_im, sum[v][w], was.v[w]);       \
            to[here] = s;                                                                                               \
        }                                                                                                               \
    }                                                                                                                   \
}

/* A column times the distance of two rows of X. */
#if IDX == 32
#define X_ROW(c, ld)    ((u64)(c) * (u32)(ld))
#else
#define X_ROW(c, ld)    ((c) * (ld))
#endif

SPMM_ROWS(strips_1, strip_t, STRIP, 1)
SPMM_ROWS(strips_2, strip_t, STRIP, 2)
SPMM_ROWS(strips_4, strip_t, STRIP, 4)
SPMM_ROWS(values_1, value_t, 1, 1)
SPMM_ROWS(values_4, value_t, 1, 4)

/* Long rows: the sums of their parts, in order.  A block a row and 2^c_log2 values; the parts go to the other threads in
 * pieces that follow each other. */
KERNEL(join)(GLOBAL const u32 *rows, GLOBAL const val_t *RESTRICT sums, u32 cols, GLOBAL val_t *y, u64 y_at, u64 y_ld,
             u32 c_log2, u32 tile_blocks, double alpha_re, double alpha_im, double beta_re, double beta_im)
{
    STATIC_SHARED val_t each[THREADS_MAX];
    const u32 tile = block_id() / tile_blocks, i = block_id() - tile * tile_blocks;
    const u32 row = rows[3u * i], first = rows[3u * i + 1u], parts = rows[3u * i + 2u];
    const u32 c = thread_id() & ((1u << c_log2) - 1u), column = (tile << c_log2) + c;
    const u32 groups = thread_count() >> c_log2, group = thread_id() >> c_log2, share = (parts + groups - 1u) / groups;
    const u32 begin = group * share, end = begin + share < parts ? begin + share : parts;
    val_t sum = VAL_ZERO;
    if (column < cols)
        for (u32 p = begin; p < end; p++) sum = VAL_ADD(sum, sums[(u64)(first + p) * cols + column]);
    each[thread_id()] = sum;
    BARRIER();
    if (group == 0u && column < cols) {
        for (u32 g = 1; g < groups && g * share < parts; g++) sum = VAL_ADD(sum, each[(g << c_log2) + c]);
        GLOBAL val_t *const to = y + y_at + (u64)row * y_ld + column;
        *to = spmm_end(alpha_re, alpha_im, beta_re, beta_im, sum, beta_re != 0.0 || beta_im != 0.0 ? *to : VAL_ZERO);
    }
}
