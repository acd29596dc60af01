/* SPDX-License-Identifier: MIT
 *
 * reg_sort.cl - rows of C with at most 512 products, sorted in registers ("Register-Aware Optimizations for
 * Parallel Sparse Matrix-Matrix Multiplication", section 3.1).
 *
 * A crew of threads computes a row; each thread has E of its products, column and index in one word.  The
 * values stay in shared memory while the words go through the sorting network; then each thread loads the
 * values of its words, which are E consecutive products of the sorted row, and adds up those of equal column.
 * Products of a column keep the order of A and are added one by one: a thread whose first column began in the
 * thread before waits for that thread's partial sum and continues it.  Bits mark the first product of each
 * column, so all threads know which of them wait; few columns extend over several threads.  So every sum has
 * the same bits as on the CPU.  The row is written through shared memory, so that writes are coalesced.
 *
 *   each_log2   log2(E); a row has at most crew * E products
 *   bits        bits of the index of a product, in reg_sort and reg_sort_long, where both fit 32 bits
 *
 *   slab        shared memory per warp, in words of 8 bytes: E * 33 times (a value, a row pointer and 4
 *               bytes); a key is no larger than the last two.  Without lanes, per work group, threads + 1
 *               instead of 33 */

#define SORT_ROW(W, E)                                                                                       \
    NETWORK(W, E)                                                                                            \
    INLINE void W##_row_##E(crew_t c, SHARED const u32 *starts, SHARED const ptr_t *deltas,                  \
                            SHARED val_t *vals,                                                              \
                            SHARED key_t *keys, u32 found, u32 bits, idx_t low, GLOBAL const idx_t *b_col,   \
                            GLOBAL const val_t *b_val, SHARED u64 *pass)                                     \
    {                                                                                                        \
        const u32 n = found & 0xffffu;                                                                       \
        W##_t x[E], before;                                                                                  \
        val_t v[E], carry, sum;                                                                              \
        u32 at[E], heads = 0, opens, waits;                                                                  \
        /* all loads first; the values are multiplied by the factors later */                                \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 q = (e << c.log2) + c.lane;                                                            \
            x[e] = W##_none;                                                                                 \
            v[e] = VAL_ZERO;                                                                                 \
            at[e] = 0;                                                                                       \
            if (q < n) {                                                                                     \
                at[e] = crew_find(c, starts, found >> 16, q);                                                \
                const ptr_t p = deltas[at[e]] + q;                                                           \
                x[e] = W##_make((key_t)(b_col[p] - low), q, bits);                                           \
                v[e] = b_val[p];                                                                             \
            }                                                                                                \
        }                                                                                                    \
        UNROLL for (u32 e = 0; e < E; e++)                                                                   \
            if ((e << c.log2) + c.lane < n) v[e] = VAL_MUL(vals[at[e]], v[e]);                               \
        OWN_SYNC(32u);                                                                                       \
        UNROLL for (u32 e = 0; e < E; e++) vals[e * c.pitch + c.stage + c.lane] = v[e];                      \
        W##_network_##E(x, c, pass);                                                                         \
        OWN_SYNC(32u);                                                                                       \
        W##_up(before, x[E - 1], 1u, c.size, pass);                                                          \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 i = c.lane * E + e;                                                                    \
            v[e] = VAL_ZERO;                                                                                 \
            if (i < n) {                                                                                     \
                v[e] = vals[crew_at(c, W##_place(x[e], bits))];                                              \
                if (i == 0u || W##_key(x[e], bits) != W##_key(before, bits)) heads |= 1u << e;               \
            }                                                                                                \
            before = x[e];                                                                                   \
        }                                                                                                    \
        /* Sums the columns that begin in this thread; products before the first of them wait for the thread \
         * before. */                                                                                        \
        sum = VAL_ZERO;                                                                                      \
        UNROLL for (u32 e = 0; e < E; e++)                                                                   \
            if (heads & ((2u << e) - 1u)) {                                                                  \
                sum = VAL_ADD(heads >> e & 1u ? VAL_ZERO : sum, v[e]);                                       \
                v[e] = sum;                                                                                  \
            }                                                                                                \
        LANE_VOTE(opens, c.lane * E < n && !(heads & 1u), pass);                                             \
        LANE_VOTE(waits, c.lane * E < n && heads == 0u, pass);                                               \
        for (u32 left = opens; left != 0u;) {                                                                \
            /* the previous thread is waiting itself */                                                      \
            const u32 later = left & (left & waits) << 1;                                                    \
            VAL_UP(carry, sum, 1u, c.size, pass);                                                            \
            if ((left & ~later) >> (c.stage + c.lane) & 1u) {                                                \
                UNROLL for (u32 e = 0; e < E; e++)                                                           \
                    if (!(heads & ((2u << e) - 1u))) {                                                       \
                        carry = VAL_ADD(carry, v[e]);                                                        \
                        v[e] = carry;                                                                        \
                    }                                                                                        \
                if (heads == 0u) sum = carry;                                                                \
            }                                                                                                \
            left = later;                                                                                    \
        }                                                                                                    \
        /* number of columns that begin before this thread */                                                \
        u32 rank = popcount32(heads);                                                                        \
        for (u32 d = 1; d < c.size; d <<= 1) {                                                               \
            u32 more;                                                                                        \
            LANE_UP(u32, more, rank, d, c.size, pass);                                                       \
            if (c.lane >= d) rank += more;                                                                   \
        }                                                                                                    \
        OWN_SYNC(32u);                                                                                       \
        rank -= popcount32(heads);                                                                           \
        opens = opens >> (c.stage + c.lane) >> 1;  /* bit 0: the next thread continues this column */        \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 i = c.lane * E + e;                                                                    \
            rank += heads >> e & 1u;                                                                         \
            if (i < n && (i + 1u == n || (e + 1u < E ? heads >> (e + 1u) & 1u : !(opens & 1u)))) {           \
                const u32 to = crew_at(c, rank - 1u);                                                        \
                vals[to] = v[e];                                                                             \
                keys[to] = W##_key(x[e], bits);                                                              \
            }                                                                                                \
        }                                                                                                    \
        OWN_SYNC(32u);                                                                                       \
    }

#define SORT_SETUP  \
    SHARED key_t *keys = (SHARED key_t *)deltas;                /* reuses their memory */
#define SORT_WRITE                                  \
    for (u32 j = c.lane; j < nnz; j += c.size) {    \
        const u32 at = crew_at(c, j);               \
        c_col[to + j] = low + (idx_t)keys[at];      \
        c_val[to + j] = factors[at];                \
    }
#define SORT_KERNEL(kernel, blocks, SIZES) CREW_KERNEL(kernel, blocks, SORT_SETUP, SIZES SORT_WRITE)
#define SORT_CALL(W, E) W##_row_##E(c, starts, deltas, factors, keys, found, bits, low, b_col, b_val, pass)

SORT_ROW(wide, 2)
SORT_ROW(wide, 4)
SORT_ROW(wide, 8)
SORT_ROW(wide, 16)
SORT_KERNEL(reg_sort_wide, 1, if (each_log2 == 1u) SORT_CALL(wide, 2);
            else if (each_log2 == 2u) SORT_CALL(wide, 4); else if (each_log2 == 3u) SORT_CALL(wide, 8);
            else SORT_CALL(wide, 16);)
#if KEY == 32
SORT_ROW(narrow, 2)
SORT_ROW(narrow, 4)
SORT_ROW(narrow, 8)
SORT_ROW(narrow, 16)
SORT_KERNEL(reg_sort, 8, if (each_log2 == 1u) SORT_CALL(narrow, 2);
            else if (each_log2 == 2u) SORT_CALL(narrow, 4); else SORT_CALL(narrow, 8);)
SORT_KERNEL(reg_sort_long, 5, SORT_CALL(narrow, 16);)
#endif
