/* SPDX-License-Identifier: MIT
 *
 * tf32.cl - Y = alpha*A*X + beta*Y in float on tensor cores, which multiply with 10 bits of mantissa (TF32).
 * A is stored as windows of rows with condensed columns, as in DTC-SpMM (Fan, Wang, Chu, ASPLOS 2024);
 * windows have 8 rows and the product is transposed, as in FlashSparse (Shi et al., PPoPP 2025).
 *
 * The columns that occur in a window, in ascending order, are grouped by 8: each group is a block of 8x8
 * values, row-major, with zeros where a row has no entry.  Stored with it are the block's columns (the last
 * one is repeated if there are fewer than 8) and a byte per row, a mask of the values that are entries.  A
 * warp multiplies a block by 8 rows of X, 16 columns at a time:
 *
 *   D (16 columns of X x 8 rows of A)  +=  X^T (16 x 8)  *  A^T (8 x 8)         mma.m16n8k8
 *
 * With this layout, thread 4g + t of the warp holds row g, columns 2t and 2t+1 of a block of A; of X the
 * corresponding two rows, in V columns; and of Y rows 2t and 2t+1 in the same columns.  Any V columns will
 * do, provided that X and Y use the same ones; consecutive columns allow loads of 16 bytes if X and Y are
 * aligned.  Threads exchange no data.
 *
 * Factors are rounded to the nearest TF32, ties away from zero: A when the blocks are built, X in the
 * product.  A zero of a block times an infinity is NaN, even in a row that has no entry there.  But then no
 * sum of the window is finite in that column.  If a sum is not finite, the warp starts again and multiplies
 * only entries, with X unrounded; so a value of X that would round to infinity does no harm.  A value of A
 * that would, is rounded to the largest TF32 instead.  Sums are float, always in the same order.
 *
 * Devices without such tensor cores compute the same in ordinary arithmetic, through shared memory; this is
 * meant for tests.
 *
 * Memory: per block 256 bytes of values, 8 columns and 8 bytes of masks; 4 bytes per window.  Shared memory:
 * the sums of a warp; without tensor cores 24 bytes per thread. */

#define ROWS        8u                  /* rows of a window; columns of a block */
#define V_MOST      8u
#define U_MOST      4u
typedef struct ALIGNED(IDX / 4) { idx_t c[2]; } duo_t;
typedef struct ALIGNED(16) { float v[ROWS]; } octet_t;

/* ---- rounding to 10 bits of mantissa */

INLINE u32 tf32_bits(u32 bits)          /* may overflow to infinity; infinities and NaN are kept */
{
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits & 0x7fffffu ? (bits | 0x400000u) & 0xffffe000u : bits;
    return (bits + 0x1000u) & 0xffffe000u;
}

INLINE float tf32_of_a(float a)
{
    const u32 bits = BITS_F32(a), r = tf32_bits(bits);
    const bool overflows = (r & 0x7f800000u) == 0x7f800000u && (bits & 0x7f800000u) != 0x7f800000u;
    return FROM_BITS_F32(overflows ? bits & 0xffffe000u : r);
}

/* ---- blocks from CSR: one thread per window merges its rows; then one thread per row of a block looks up
 * its entries */

/* The smallest column of the window not yet merged, and the number of rows that have it. */
INLINE u32 merge_next(ptr_t *p, const ptr_t *end, idx_t *head, GLOBAL const idx_t *col, idx_t *least)
{
    u32 givers = 0;
    *least = IDX_NONE;
    UNROLL for (u32 r = 0; r < ROWS; r++) *least = head[r] < *least ? head[r] : *least;
    UNROLL for (u32 r = 0; r < ROWS; r++)
        if (head[r] == *least) {
            p[r]++;
            head[r] = p[r] < end[r] ? col[p[r]] : IDX_NONE;
            givers++;
        }
    return givers;
}

/* The number of entries of the window.  Loops use it as their bound, since PoCL treats a loop as uniform
 * whose condition depends only on an array. */
INLINE u64 merge_begin(u32 rows, u64 window, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col, ptr_t *p,
                       ptr_t *end, idx_t *head)
{
    const u64 first = window * ROWS < rows ? window * ROWS : rows,
              last = rows - first < ROWS ? rows : first + ROWS;
    UNROLL for (u32 r = 0; r < ROWS; r++) {
        const u64 row = first + r;
        p[r] = row < last ? ptr[row] : 0;
        end[r] = row < last ? ptr[row + 1u] : 0;
        head[r] = p[r] < end[r] ? col[p[r]] : IDX_NONE;
    }
    return (u64)(ptr[last] - ptr[first]);
}

/* at: blocks in the earlier windows of the same thread block; sums: blocks of each thread block.  totals:
 * blocks, maximum per window, columns, windows with more than `many` blocks. */
KERNEL_FOR(3, tf32_count)
(u32 rows, u32 many, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col, GLOBAL u32 *at, GLOBAL u32 *sums,
 GLOBAL u64 *totals)
{
    STATIC_SHARED u32 words[SCAN_WORDS];
    const u64 window = (u64)block_id() * thread_count() + thread_id();
    ptr_t p[ROWS], end[ROWS];
    idx_t head[ROWS], c;
    u32 columns = 0, total;
    u64 left = merge_begin(rows, window, ptr, col, p, end, head);
    for (; left > 0u; columns++) left -= merge_next(p, end, head, col, &c);
    const u32 blocks = columns / ROWS + (columns % ROWS != 0u), before = block_scan(blocks, words, &total);
    if (window * ROWS < rows) at[window] = before;
    if (thread_id() == 0u) {
        sums[block_id()] = total;
        ATOMIC_ADD64(&totals[0], (u64)total);
    }
    const u32 most = lanes_max(blocks);
    const u64 sum = lanes_sum64((u64)columns);
    if ((thread_id() & (LANES - 1u)) == 0u && most > 0u) {
        ATOMIC_MAX64(&totals[1], (u64)most);
        ATOMIC_ADD64(&totals[2], sum);
    }
    if (blocks > many) ATOMIC_ADD64(&totals[3], (u64)1);
}

/* sums: blocks of all earlier thread blocks; makes `at` absolute. window_of: the window of each block. list:
 * the windows with more than `many` blocks in any order, followed by their number so far. */
KERNEL_FOR(3, tf32_columns)
(u32 rows, u32 many, u32 longs, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col, GLOBAL u32 *at,
 GLOBAL const u32 *sums, GLOBAL idx_t *block_col, GLOBAL u32 *window_of, GLOBAL u32 *list)
{
    const u64 window = (u64)block_id() * thread_count() + thread_id();
    ptr_t p[ROWS], end[ROWS];
    idx_t head[ROWS], c, last = 0;
    if (window * ROWS >= rows) return;
    const u32 first = at[window] + sums[block_id()];
    u64 k = (u64)first * ROWS, left = merge_begin(rows, window, ptr, col, p, end, head);
    while (left > 0u) {
        left -= merge_next(p, end, head, col, &c);
        if (k % ROWS == 0u) window_of[k / ROWS] = (u32)window;
        block_col[k++] = last = c;
    }
    while (k % ROWS != 0u) block_col[k++] = last;
    at[window] = first;
    if ((u32)(k / ROWS) - first > many) list[ATOMIC_ADD32(&list[longs], 1u)] = (u32)window;
    if ((window + 1u) * ROWS >= rows) at[window + 1u] = (u32)(k / ROWS);
}

KERNEL(tf32_fill)(u32 rows, u64 blocks, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col,
                  GLOBAL const float *val, GLOBAL const idx_t *block_col, GLOBAL const u32 *window_of,
                  GLOBAL float *block_val, GLOBAL u8 *block_has)
{
    for (u64 q = (u64)block_id() * thread_count() + thread_id(); q < blocks * ROWS;
         q += (u64)block_count() * thread_count()) {
        GLOBAL const idx_t *const want = block_col + q / ROWS * ROWS;
        const u64 row = (u64)window_of[q / ROWS] * ROWS + q % ROWS;
        ptr_t p = 0, end = 0;
        u32 has = 0;
        if (row < rows) {
            p = ptr[row];
            end = ptr[row + 1u];
        }
        const ptr_t stop = end;
        while (p < end) {                       /* bisects for the first entry not before the block */
            const ptr_t middle = p + (end - p) / 2;
            if (col[middle] < want[0]) p = middle + 1;
            else end = middle;
        }
        octet_t to;
        UNROLL for (u32 k = 0; k < ROWS; k++) {
            to.v[k] = 0.0f;
            if (p < stop && col[p] == want[k]) {
                to.v[k] = tf32_of_a(val[p++]);
                has |= 1u << k;
            }
        }
        ((GLOBAL octet_t *)block_val)[q] = to;
        block_has[q] = (u8)has;
    }
}

/* ---- the product */

#if TENSOR_TF32
#define PASS_MEMORY SHARED float *const pass = 0;
INLINE float tf32_of_x(float x)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return FROM_BITS_F32(r);
}
/* d += a*b; each thread holds its part of the matrices. */
INLINE void mma(float *d, float a0, float a1, float a2, float a3, float b0, float b1, SHARED float *pass)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(BITS_F32(a0)), "r"(BITS_F32(a1)), "r"(BITS_F32(a2)), "r"(BITS_F32(a3)),
                   "r"(BITS_F32(b0)), "r"(BITS_F32(b1)));
}
INLINE bool any_of_warp(bool yes, SHARED float *pass) { return lanes_vote(yes, 32u) != 0u; }
#else
#define PASS_WORDS  6u
#define PASS_MEMORY STATIC_SHARED float pass[THREADS_MAX * PASS_WORDS];
INLINE float tf32_of_x(float x) { return FROM_BITS_F32(tf32_bits(BITS_F32(x))); }
INLINE void mma(float *d, float a0, float a1, float a2, float a3, float b0, float b1, SHARED float *pass)
{
    const u32 lane = thread_id() & 31u, g = lane >> 2, t = lane & 3u;
    SHARED float *const mine = pass + thread_id() * PASS_WORDS, *const all = mine - lane * PASS_WORDS;
    mine[0] = a0;
    mine[1] = a1;
    mine[2] = a2;
    mine[3] = a3;
    mine[4] = b0;
    mine[5] = b1;
    OWN_SYNC(32u);
    for (u32 k = 0; k < 8u; k++) {
        SHARED const float *const a = all + (4u * g + (k & 3u)) * PASS_WORDS + 2u * (k >> 2);
        SHARED const float *const b = all + (8u * t + (k & 3u)) * PASS_WORDS + 4u + (k >> 2);
        d[0] += a[0] * b[0];
        d[1] += a[0] * b[4u * PASS_WORDS];
        d[2] += a[1] * b[0];
        d[3] += a[1] * b[4u * PASS_WORDS];
    }
    OWN_SYNC(32u);
}
INLINE bool any_of_warp(bool yes, SHARED float *pass)
{
    SHARED u32 *const all = (SHARED u32 *)pass + (thread_id() & ~31u);
    u32 votes = 0;
    ((SHARED u32 *)pass)[thread_id()] = yes ? 1u : 0u;
    OWN_SYNC(32u);
    for (u32 j = 0; j < 32u; j++) votes |= all[j];
    OWN_SYNC(32u);
    return votes != 0u;
}
#endif

/* The i-th column of a thread in a tile of 8*v columns. */
INLINE u32 column_of(const u32 v, bool wide, u32 g, u32 i)
{
    return !wide ? g + 8u * i : v < 4u ? v * g + i : 32u * (i / 4u) + 4u * g + i % 4u;
}

INLINE void load_x(const u32 v, const bool wide, u32 here, u32 g, GLOBAL const float *from, float *x)
{
    if (wide && v >= 4u) {
        UNROLL for (u32 i = 0; i < v; i += 4u) {
            const float4 f = *(GLOBAL const float4 *)(from + 8u * i + 4u * g);
            x[i] = f.x;
            x[i + 1u] = f.y;
            x[i + 2u] = f.z;
            x[i + 3u] = f.w;
        }
    } else if (wide && v == 2u) {
        const float2 f = *(GLOBAL const float2 *)(from + 2u * g);
        x[0] = f.x;
        x[1] = f.y;
    } else {
        UNROLL for (u32 i = 0; i < v; i++) x[i] = g + 8u * i < here ? from[g + 8u * i] : 0.0f;
    }
}

#define BLOCK_ARGS                                                                                           \
    GLOBAL const idx_t *RESTRICT block_col, GLOBAL const float *RESTRICT block_val,                          \
        GLOBAL const u8 *RESTRICT block_has,                                                                 \
    GLOBAL const float *RESTRICT x, u32 x_ld
#define X_LINE(c)   ((GLOBAL const float *)((GLOBAL const u8 *)x + (u64)(c) * x_ld))
#define BLOCK_GIVEN block_col, block_val, block_has, x, x_ld

/* Adds one block, multiplying only its entries, not its zeros. */
INLINE void add_entries(const u32 v, bool wide, u32 here, u32 j, BLOCK_ARGS, float *sum)
{
    const u32 lane = thread_id() & 31u, g = lane >> 2, t = lane & 3u;
    const u32 has0 = block_has[(u64)j * ROWS + 2u * t], has1 = block_has[(u64)j * ROWS + 2u * t + 1u];
    ROLLED for (u32 k = 0; k < ROWS; k++) {
        if (!((has0 | has1) >> k & 1u)) continue;
        GLOBAL const float *const from = X_LINE(block_col[(u64)j * ROWS + k]);
        const float a0 = block_val[((u64)j * ROWS + 2u * t) * ROWS + k],
                    a1 = block_val[((u64)j * ROWS + 2u * t + 1u) * ROWS + k];
        UNROLL for (u32 i = 0; i < v; i++) {
            const u32 c = column_of(v, wide, g, i), d = 4u * (i / 2u) + 2u * (i % 2u);
            const float b = c < here ? from[c] : 0.0f;
            if (has0 >> k & 1u) sum[d] = fma(a0, b, sum[d]);
            if (has1 >> k & 1u) sum[d + 1u] = fma(a1, b, sum[d + 1u]);
        }
    }
}

/* Loads a thread's part of block j: two values of its row, and their columns. */
INLINE void load_a(u32 j, u32 end, GLOBAL const idx_t *RESTRICT block_col,
                   GLOBAL const float *RESTRICT block_val, idx_t *c, float *b)
{
    const u32 lane = thread_id() & 31u;
    b[0] = 0.0f;
    b[1] = 0.0f;
    c[0] = 0;
    c[1] = 0;
    if (j < end) {
        const float2 f = ((GLOBAL const float2 *)block_val)[(u64)j * 32u + lane];
        b[0] = f.x;
        b[1] = f.y;
        const duo_t d = ((GLOBAL const duo_t *)block_col)[(u64)j * (ROWS / 2u) + (lane & 3u)];
        c[0] = d.c[0];
        c[1] = d.c[1];
    }
}

/* Adds the blocks first..end of a window, `u` at once, alternating with the other warps; sum[4*p .. 4*p + 3]
 * is the result of mma for the p-th 16 columns. */
INLINE void add_blocks(const u32 v, const u32 u, const bool wide, u32 here, u32 first, u32 end, u32 seat,
                       u32 seats, BLOCK_ARGS, float *sum, SHARED float *pass)
{
    const u32 g = (thread_id() & 31u) >> 2, rounds = (end - first + u * seats - 1u) / (u * seats);
    u32 j = first + u * seat;
    idx_t c[U_MOST][2];
    float b[U_MOST][2];
    UNROLL for (u32 n = 0; n < u; n++) load_a(j + n, end, block_col, block_val, c[n], b[n]);
    ROLLED for (u32 round = 0; round < rounds; round++) {
        const u32 now = j;
        float f[U_MOST][2][V_MOST], now_b[U_MOST][2];
        UNROLL for (u32 n = 0; n < u; n++)
            UNROLL for (u32 h = 0; h < 2u; h++) {
                now_b[n][h] = b[n][h];
                if (now + n < end) load_x(v, wide, here, g, X_LINE(c[n][h]), f[n][h]);
                else {
                    UNROLL for (u32 i = 0; i < v; i++) f[n][h][i] = 0.0f;
                }
            }
        j += u * seats;
        UNROLL for (u32 n = 0; n < u; n++) load_a(j + n, end, block_col, block_val, c[n], b[n]);
        UNROLL for (u32 n = 0; n < u; n++) UNROLL for (u32 i = 0; i < v; i += 2u)
            mma(sum + 2u * i, tf32_of_x(f[n][0][i]), v > 1u ? tf32_of_x(f[n][0][i + 1u]) : 0.0f,
                tf32_of_x(f[n][1][i]), v > 1u ? tf32_of_x(f[n][1][i + 1u]) : 0.0f, now_b[n][0], now_b[n][1],
                pass);
    }
}

INLINE void put_row(const u32 v, const bool wide, u32 here, u32 g, const float *sum, GLOBAL float *to,
                    double alpha, double beta)
{
    float y[V_MOST];
    const bool reads = beta != 0.0;
    UNROLL for (u32 i = 0; i < v; i++) y[i] = 0.0f;
    if (reads) load_x(v, wide, here, g, to, y);
    UNROLL for (u32 i = 0; i < v; i++) {
        const float s = (float)alpha * sum[4u * (i / 2u) + 2u * (i % 2u)];
        y[i] = reads ? s + (float)beta * y[i] : s;
    }
    if (wide && v >= 4u) {
        UNROLL for (u32 i = 0; i < v; i += 4u) {
            float4 f;
            f.x = y[i];
            f.y = y[i + 1u];
            f.z = y[i + 2u];
            f.w = y[i + 3u];
            *(GLOBAL float4 *)(to + 8u * i + 4u * g) = f;
        }
    } else if (wide && v == 2u) {
        float2 f;
        f.x = y[0];
        f.y = y[1];
        *(GLOBAL float2 *)(to + 2u * g) = f;
    } else {
        UNROLL for (u32 i = 0; i < v; i++)
            if (g + 8u * i < here) to[g + 8u * i] = y[i];
    }
}

/* A work item is a window and 8*v columns, computed by `seats` warps: by one, or by all warps of a block.
 * Without lanes a block counts as one warp.  Long windows (more than `many` blocks) come first, each computed
 * by all warps of a block.
 *
 *   tiles, works   number of tiles of 8*v columns; tiles times windows; the tiles of a window are consecutive
 *   list, longs    the long windows, and their number; 0 if all windows are computed by several warps
 *   wide           1: rows of X and Y are aligned to vector loads
 *   x_at, x_ld     offset of X in values, bytes from one row to the next; y_ld in values */
#define TF32_ARGS \
    u32 rows, u32 seats, u32 cols, u32 tiles, u32 works, u32 wide, u32 many, u32 longs, \
        GLOBAL const u32 *RESTRICT list, GLOBAL const u32 *RESTRICT at, \
        GLOBAL const idx_t *RESTRICT block_col, GLOBAL const float *RESTRICT block_val, \
        GLOBAL const u8 *RESTRICT block_has, GLOBAL const float *RESTRICT x_all, u64 x_at, u32 x_ld, \
        GLOBAL float *y, u64 y_at, u64 y_ld, double alpha, double beta

INLINE void tf32_spmm(const u32 v, const u32 u, TF32_ARGS, SHARED float *part, SHARED float *pass)
{
    const u32 lane = thread_id() & 31u, warp = thread_id() >> 5, warps = thread_count() >> 5, g = lane >> 2,
              t = lane & 3u;
    const bool is_long = block_id() < longs * tiles;
    const u32 block = is_long ? block_id() : block_id() - longs * tiles;
    const u32 team = is_long ? warps : seats, seat = team > 1u ? warp : 0u;
    const u32 w = team > 1u || is_long ? block : block * warps + warp;
    if (!is_long && w >= works) return;         /* a warp beyond the last */
    const u32 place = w / tiles, window = is_long ? list[place] : place;
    const u32 begin = (w - place * tiles) * 8u * v, here = cols - begin < 8u * v ? cols - begin : 8u * v;
    const u32 first = at[window], end = at[window + 1u], parts = v > 1u ? 2u * v : 2u;
    if (!is_long && longs > 0u && end - first > many) return;
    GLOBAL const float *const x = x_all + x_at + begin;
    const bool whole = wide != 0u && here == 8u * v;
    float sum[2u * V_MOST], probe = 0.0f;
    UNROLL for (u32 i = 0; i < 2u * V_MOST; i++) sum[i] = 0.0f;
#if TULLE_CUDA
    if (whole) add_blocks(v, u, true, here, first, end, seat, team, BLOCK_GIVEN, sum, pass);
    else add_blocks(v, u, false, here, first, end, seat, team, BLOCK_GIVEN, sum, pass);
#else                                   /* only one copy of the barriers */
    add_blocks(v, u, whole, here, first, end, seat, team, BLOCK_GIVEN, sum, pass);
#endif
    UNROLL for (u32 i = 0; i < parts; i++) probe = fma(sum[i], 0.0f, probe); /* NaN if one is not finite */
    if (any_of_warp(probe != probe, pass)) {
        UNROLL for (u32 i = 0; i < parts; i++) sum[i] = 0.0f;
        ROLLED for (u32 j = first + u * seat; j < end; j += u * team)
            ROLLED for (u32 n = 0; n < u && j + n < end; n++)
                add_entries(v, whole, here, j + n, BLOCK_GIVEN, sum);
    }
    ROLLED for (u32 s = 1; s < team; s++) {
        if (seat == s) {
            UNROLL for (u32 i = 0; i < parts; i++) part[32u * i + lane] = sum[i];
        }
        BARRIER();
        if (seat == 0u) {
            UNROLL for (u32 i = 0; i < parts; i++) sum[i] += part[32u * i + lane];
        }
        BARRIER();
    }
    UNROLL for (u32 h = 0; h < 2u; h++) {
        const u64 row = (u64)window * ROWS + 2u * t + h;
        if (seat != 0u || row >= rows) continue;
        if (whole) put_row(v, true, here, g, sum + h, y + y_at + row * y_ld + begin, alpha, beta);
        else put_row(v, false, here, g, sum + h, y + y_at + row * y_ld + begin, alpha, beta);
    }
}

/* V, blocks of A at once, and thread blocks of 256 per multiprocessor that the registers should allow. */
#define TF32_SPMM(v, at_once, blocks)                                                                        \
    KERNEL_FOR(blocks, tf32_##v)(TF32_ARGS)                                                                  \
    {                                                                                                        \
        STATIC_SHARED float part[32 * 2 * v];                                                                \
        PASS_MEMORY                                                                                          \
        tf32_spmm(v##u, at_once, rows, seats, cols, tiles, works, wide, many, longs, list, at, block_col,    \
                  block_val,                                                                                 \
                  block_has, x_all, x_at, x_ld, y, y_at, y_ld, alpha, beta, part, pass);                     \
    }

TF32_SPMM(1, 4u, 3)
TF32_SPMM(2, 4u, 4)
TF32_SPMM(4, 2u, 4)
TF32_SPMM(8, 1u, 4)
