/* SPDX-License-Identifier: MIT
 *
 * reg_sort.cl - rows of C with at most 512 products, sorted in registers ("Register-Aware Optimizations for Parallel Sparse
 * Matrix-Matrix Multiplication", section 3.1).
 *
 * A crew of threads owns a row, each thread has E of its products: column and number in one word.  Values wait in shared
 * memory while the words go through the sorting network; then each thread takes the values of its words, E neighbours of
 * the sorted row, and adds up what has one column.  Products of a column stay in the order of A and are added in it, one
 * by one: a thread whose column began before it waits for the sum so far of the thread before, and goes on with that.
 * Bits mark the first product of each column, so all know who waits; few columns reach over more than one thread.  So
 * every sum has the bits of the CPU.  The row passes through shared memory once more, so that threads side by side write
 * it side by side.
 *
 *   each_log2   E as a power of two; crew * E products are the most a row has
 *   bits        of the number of a product, reg_sort and reg_sort_long: key and number fit 32 bits there
 *
 *   slab        shared memory of a warp, in words of 8 bytes: E * 33 times a value, a row pointer and 4 bytes; a key is no
 *               longer than the last two.  Without lanes, of the group: threads + 1 in place of 33 */

#define SORT_ROW(W, E)                                                                                                  \
    NETWORK(W, E)                                                                                                       \
    INLINE void W##_row_##E(crew_t c, SHARED const u32 *starts, SHARED const ptr_t *deltas, SHARED val_t *vals,         \
                            SHARED key_t *keys, u32 found, u32 bits, idx_t low, GLOBAL const idx_t *b_col,              \
                            GLOBAL const val_t *b_val, SHARED u64 *pass)                                                \
    {                                                                                                                   \
        const u32 n = found & 0xffffu;                                                                                  \
        W##_t x[E], before;                                                                                             \
        val_t v[E], carry, sum;                                                                                         \
        u32 at[E], heads = 0, opens, waits;                                                                             \
        /* all loads first: the factors come when the values are there */                                               \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                            \
            const u32 q = (e << c.log2) + c.lane;                                                                       \
            x[e] = W##_none;                                                                                            \
            v[e] = VAL_ZERO;                                                                                            \
            at[e] = 0;                                                                                                  \
            if (q < n) {                                                                                                \
                at[e] = crew_find(c, starts, found >> 16, q);                                                           \
                const ptr_t p = deltas[at[e]] + q;                                                                      \
                x[e] = W##_make((key_t)(b_col[p] - low), q, bits);                                                      \
                v[e] = b_val[p];                                                                                        \
            }                                                                                                           \
        }                                                                                                               \
        UNROLL for (u32 e = 0; e < E; e++)                                                                              \
            if ((e << c.log2) + c.lane < n) v[e] = VAL_MUL(vals[at[e]], v[e]);                                          \
        OWN_SYNC(32u);                                                                                                  \
        UNROLL for (u32 e = 0; e < E; e++) vals[e * c.pitch + c.stage + c.lane] = v[e];                                 \
        W##_network_##E(x, c, pass);                                                                                    \
        OWN_SYNC(32u);                                                                                                  \
        W##_up(before, x[E - 1], 1u, c.size, pass);                                                                     \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                            \
            const u32 i = c.lane * E + e;                                                                               \
            v[e] = VAL_ZERO;                                                                                            \
            if (i < n) {                                                                                                \
                v[e] = vals[crew_at(c, W##_place(x[e], bits))];                                                         \
                if (i == 0u || W##_key(x[e], bits) != W##_key(before, bits)) heads |= 1u << e;                          \
            }                                                                                                           \
            before = x[e];                                                                                              \
        }                                                                                                               \
        /* Columns that begin here are summed; what comes before the first of them waits for the thread before. */      \
        sum = VAL_ZERO;                                                                                                 \
        UNROLL for (u32 e = 0; e < E; e++)                                                                              \
            if (heads & ((2u << e) - 1u)) {                                                                             \
                sum = VAL_ADD(heads >> e & 1u ? VAL_ZERO : sum, v[e]);                                                  \
                v[e] = sum;                                                                                             \
            }                                                                                                           \
        LANE_VOTE(opens, c.lane * E < n && !(heads & 1u), pass);                                                        \
        LANE_VOTE(waits, c.lane * E < n && heads == 0u, pass);                                                          \
        for (u32 left = opens; left != 0u;) {                                                                           \
            const u32 later = left & (left & waits) << 1;       /* the thread before has no sum to hand on yet */       \
            VAL_UP(carry, sum, 1u, c.size, pass);                                                                       \
            if ((left & ~later) >> (c.stage + c.lane) & 1u) {                                                           \
                UNROLL for (u32 e = 0; e < E; e++)                                                                      \
                    if (!(heads & ((2u << e) - 1u))) {                                                                  \
                        carry = VAL_ADD(carry, v[e]);                                                                   \
                        v[e] = carry;                                                                                   \
                    }                                                                                                   \
                if (heads == 0u) sum = carry;                                                                           \
            }                                                                                                           \
            left = later;                                                                                               \
        }                                                                                                               \
        /* how many columns begin before this thread */                                                                 \
        u32 rank = popcount32(heads);                                                                                   \
        for (u32 d = 1; d < c.size; d <<= 1) {                                                                          \
            u32 more;                                                                                                   \
            LANE_UP(u32, more, rank, d, c.size, pass);                                                                  \
            if (c.lane >= d) rank += more;                                                                              \
        }                                                                                                               \
        OWN_SYNC(32u);                                                                                                  \
        rank -= popcount32(heads);                                                                                      \
        opens = opens >> (c.stage + c.lane) >> 1;               /* does the next thread go on with this one's column? */\
        UNROLL for (u32 e = 0; e < E; e++) {                                                                            \
            const u32 i = c.lane * E + e;                                                                               \
            rank += heads >> e & 1u;                                                                                    \
            if (i < n && (i + 1u == n || (e + 1u < E ? heads >> (e + 1u) & 1u : !(opens & 1u)))) {                      \
                const u32 to = crew_at(c, rank - 1u);                                                                   \
                vals[to] = v[e];                                                                                        \
                keys[to] = W##_key(x[e], bits);                                                                         \
            }                                                                                                           \
        }                                                                                                               \
        OWN_SYNC(32u);                                                                                                  \
    }

#define SORT_SETUP                                                                                                      \
    SHARED key_t *keys = (SHARED key_t *)deltas;                /* when those are done with */
#define SORT_WRITE                                                                                                      \
    for (u32 j = c.lane; j < nnz; j += c.size) {                                                                        \
        const u32 at = crew_at(c, j);                                                                                   \
        c_col[to + j] = low + (idx_t)keys[at];                                                                          \
        c_val[to + j] = factors[at];                                                                                    \
    }
#define SORT_KERNEL(kernel, blocks, SIZES) CREW_KERNEL(kernel, blocks, SORT_SETUP, SIZES SORT_WRITE)
#define SORT_CALL(W, E) W##_row_##E(c, starts, deltas, factors, keys, found, bits, low, b_col, b_val, pass)

SORT_ROW(wide, 2)
SORT_ROW(wide, 4)
SORT_ROW(wide, 8)
SORT_ROW(wide, 16)
SORT_KERNEL(reg_sort_wide, 1, if (each_log2 == 1u) SORT_CALL(wide, 2); else if (each_log2 == 2u) SORT_CALL(wide, 4);
            else if (each_log2 == 3u) SORT_CALL(wide, 8); else SORT_CALL(wide, 16);)
#if KEY == 32
SORT_ROW(narrow, 2)
SORT_ROW(narrow, 4)
SORT_ROW(narrow, 8)
SORT_ROW(narrow, 16)
SORT_KERNEL(reg_sort, 8, if (each_log2 == 1u) SORT_CALL(narrow, 2); else if (each_log2 == 2u) SORT_CALL(narrow, 4);
            else SORT_CALL(narrow, 8);)
SORT_KERNEL(reg_sort_long, 5, SORT_CALL(narrow, 16);)
#endif
