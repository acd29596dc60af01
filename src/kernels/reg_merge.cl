/* SPDX-License-Identifier: MIT
 *
 * reg_merge.cl - rows of C with at most 512 products, merged in registers ("Register-Aware Optimizations for
 * Parallel Sparse Matrix-Matrix Multiplication", section 3.2).
 *
 * A crew of threads computes a row by a multiway merge: each thread has H rows of B, of consecutive entries
 * of A, and keeps the current column of each in a register.  In every round the smallest column is found,
 * first within each thread, then over the crew; the values of the rows that have it are added in the same
 * way, in a fixed order, and those rows advance.  A round computes one entry of C; thread k keeps the k-th,
 * and the crew writes as many entries at once as it has threads.
 *
 * H is 2, 4, 8 (reg_merge), or also 16 or 32 (reg_merge_long): the smallest that suffices for the rows.
 *
 *   each_log2   log2 of the rows of B per thread, at most, for which there is shared memory
 *
 *   slab        shared memory per warp, in words of 8 bytes: 33 << each_log2 times (a value, a row pointer
 *               and 4 bytes); without lanes, per work group, with threads + 1 instead of 33 */

#if KEY == 64
#define KEY_XOR(to, x, d, width, pass) LANE_XOR(u64, to, x, d, width, pass)
#else
#define KEY_XOR(to, x, d, width, pass) LANE_XOR(u32, to, x, d, width, pass)
#endif

#define MERGE_ROW(H)                                                                                         \
    INLINE void merge_row_##H(crew_t c, SHARED const u32 *starts, SHARED const ptr_t *deltas,                \
                              SHARED const val_t *factors, u32 found, idx_t low, GLOBAL const idx_t *b_col,  \
                              GLOBAL const val_t *b_val, u32 nnz, ptr_t to, GLOBAL idx_t *c_col,             \
                                  GLOBAL val_t *c_val,                                                       \
                              SHARED u64 *pass)                                                              \
    {                                                                                                        \
        const u32 n = found & 0xffffu, count = found >> 16, rounds = lanes_max(nnz);                         \
        key_t head[H], my_key = 0;                                                                           \
        u32 place[H];  /* of the current product, and end of its row */                                      \
        val_t my_sum = VAL_ZERO;                                                                             \
        UNROLL for (u32 h = 0; h < H; h++) {                                                                 \
            const u32 s = c.lane * H + h;                                                                    \
            head[h] = KEY_NONE;                                                                              \
            place[h] = 0;                                                                                    \
            if (s < count) {                                                                                 \
                const u32 at = crew_at(c, s), start = starts[at];                                            \
                const u32 end = s + 1u < count ? starts[crew_at(c, s + 1u)] : n;                             \
                place[h] = end << 16 | start;                                                                \
                head[h] = (key_t)(b_col[deltas[at] + start] - low);                                          \
            }                                                                                                \
        }                                                                                                    \
        for (u32 k = 0; k < rounds; k++) {                                                                   \
            key_t least = head[0];                                                                           \
            UNROLL for (u32 h = 1; h < H; h++) least = head[h] < least ? head[h] : least;                    \
            for (u32 d = c.size >> 1; d > 0u; d >>= 1) {                                                     \
                key_t other;                                                                                 \
                KEY_XOR(other, least, d, c.size, pass);                                                      \
                least = other < least ? other : least;                                                       \
            }                                                                                                \
            val_t sum = VAL_ZERO;                                                                            \
            UNROLL for (u32 h = 0; h < H; h++)                                                               \
                if (head[h] == least && least != KEY_NONE) {                                                 \
                    const u32 at = crew_at(c, c.lane * H + h);                                               \
                    const ptr_t p = deltas[at] + (place[h] & 0xffffu);                                       \
                    place[h]++;                                                                              \
                    head[h] = KEY_NONE;                                                                      \
                    if ((place[h] & 0xffffu) < place[h] >> 16) head[h] = (key_t)(b_col[p + 1u] - low);       \
                    sum = VAL_ADD(sum, VAL_MUL(factors[at], b_val[p]));                                      \
                }                                                                                            \
            for (u32 d = 1; d < c.size; d <<= 1) {                                                           \
                val_t other;                                                                                 \
                VAL_XOR(other, sum, d, c.size, pass);                                                        \
                sum = VAL_ADD(sum, other);                                                                   \
            }                                                                                                \
            const u32 turn = k & (c.size - 1u);                                                              \
            if (turn == c.lane) {                                                                            \
                my_key = least;                                                                              \
                my_sum = sum;                                                                                \
            }                                                                                                \
            if (k < nnz && c.lane <= turn && (turn == c.size - 1u || k + 1u == nnz)) {                       \
                c_col[to + (k - turn + c.lane)] = low + (idx_t)my_key;                                       \
                c_val[to + (k - turn + c.lane)] = my_sum;                                                    \
            }                                                                                                \
        }                                                                                                    \
    }

#define MERGE_SETUP
#define MERGE_KERNEL(kernel, blocks, SIZES) \
    CREW_KERNEL(kernel, blocks, MERGE_SETUP, const u32 most = lanes_max(found >> 16); SIZES)
#define MERGE_CALL(H) \
    merge_row_##H(c, starts, deltas, factors, found, low, b_col, b_val, nnz, to, c_col, c_val, pass)

MERGE_ROW(2)
MERGE_ROW(4)
MERGE_ROW(8)
MERGE_ROW(16)
MERGE_ROW(32)
MERGE_KERNEL(reg_merge, 10, if (most <= 2u * c.size) MERGE_CALL(2);
             else if (most <= 4u * c.size) MERGE_CALL(4); else MERGE_CALL(8);)
MERGE_KERNEL(reg_merge_long, 4, if (most <= 4u * c.size) MERGE_CALL(4);
             else if (most <= 8u * c.size) MERGE_CALL(8); else if (most <= 16u * c.size) MERGE_CALL(16);
             else MERGE_CALL(32);)
