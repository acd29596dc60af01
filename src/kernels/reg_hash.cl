/* SPDX-License-Identifier: MIT
 *
 * reg_hash.cl - rows of C with at most 512 products, distributed evenly over registers, then hashed
 * ("Register-Aware Optimizations for Parallel Sparse Matrix-Matrix Multiplication", section 3.3); the numeric
 * step for the rows that reg_count.cl counts.
 *
 * A crew of threads computes a row; each thread loads E of its products, column and value, into registers
 * before the first is hashed.  Then the shared memory of the segments is reused for the hash table.  The
 * thread that inserts a new column keeps its word of key and slot in a register; these words go through the
 * sorting network of crew.cl, and the row is written in order.  On CUDA, lanes with the same column add
 * their values one after the other, so every sum is computed in the order of A, with the same bits as on the
 * CPU.  On OpenCL values are added by atomics.
 *
 *   each_log2   log2(E)
 *   room        slots of a table
 *   bits        bits of a slot number, in reg_hash and reg_hash_long, where key and slot fit 32 bits
 *   slab        shared memory per warp, in words of 8 bytes: E * 33 times (a value, a row pointer and 4
 *               bytes), or `room` values and keys for each of its crews, whichever is larger; without lanes,
 *               per work group, with threads + 1 instead of 33 */

#define narrow_staged 1
#define wide_staged 0
#define narrow_word(w) ((key_t)(w))
#define wide_word(w) KEY_NONE

#define HASH_ROW(W, E)                                                                                       \
    NETWORK(W, E)                                                                                            \
    INLINE void W##_row_##E(crew_t c, SHARED const u32 *starts, SHARED const ptr_t *deltas,                  \
                            SHARED const val_t *factors,                                                     \
                            SHARED val_t *sums, SHARED key_t *keys, u32 base, u32 found, u32 bits,           \
                                idx_t low,                                                                   \
                            GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val, u32 nnz, ptr_t to,         \
                            GLOBAL idx_t *c_col, GLOBAL val_t *c_val, SHARED u64 *pass)                      \
    {                                                                                                        \
        const u32 n = found & 0xffffu, slots = nnz + nnz / 2u + 1u, most = lanes_max(n);                     \
        W##_t x[E];                                                                                          \
        key_t key[E];                                                                                        \
        val_t v[E];                                                                                          \
        u32 at[E];                                                                                           \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 q = (e << c.log2) + c.lane;                                                            \
            x[e] = W##_none;                                                                                 \
            key[e] = KEY_NONE;                                                                               \
            v[e] = VAL_ZERO;                                                                                 \
            at[e] = 0;                                                                                       \
            if (q < n) {                                                                                     \
                at[e] = crew_find(c, starts, found >> 16, q);                                                \
                const ptr_t p = deltas[at[e]] + q;                                                           \
                key[e] = (key_t)(b_col[p] - low);                                                            \
                v[e] = b_val[p];                                                                             \
            }                                                                                                \
        }                                                                                                    \
        UNROLL for (u32 e = 0; e < E; e++)                                                                   \
            if (key[e] != KEY_NONE) v[e] = VAL_MUL(factors[at[e]], v[e]);                                    \
        OWN_SYNC(32u);                                                                                       \
        for (u32 s = c.lane; s < slots; s += c.size) {                                                       \
            keys[s] = KEY_NONE;                                                                              \
            sums[s] = VAL_ZERO;                                                                              \
        }                                                                                                    \
        OWN_SYNC(32u);                                                                                       \
        UNROLL for (u32 e = 0; e < E; e++)                                                                   \
            if ((e << c.log2) < most) {                         /* uniform in the warp */                    \
                const bool mine = key[e] != KEY_NONE;                                                        \
                u32 s = 0;                                                                                   \
                if (mine) {                                                                                  \
                    bool fresh;                                                                              \
                    s = key_claim(keys, slots, key[e], &fresh);                                              \
                    if (fresh) x[e] = W##_make(key[e], s, bits);                                             \
                }                                                                                            \
                ADD_IN_ORDER(mine, base, s, v[e]);                                                           \
            }                                                                                                \
        W##_network_##E(x, c, pass);                                                                         \
        OWN_SYNC(32u);                                                                                       \
        /* narrow words are stored through the memory of the keys, so that writes are coalesced */           \
        UNROLL for (u32 e = 0; e < E; e++) {                                                                 \
            const u32 i = c.lane * E + e;                                                                    \
            if (i < nnz && W##_staged) keys[i + (i >> 5)] = W##_word(x[e]);                                  \
            if (i < nnz && !W##_staged) {                                                                    \
                c_col[to + i] = low + (idx_t)W##_key(x[e], bits);                                            \
                c_val[to + i] = sums[W##_place(x[e], bits)];                                                 \
            }                                                                                                \
        }                                                                                                    \
        OWN_SYNC(32u);                                                                                       \
        for (u32 j = c.lane; j < nnz && W##_staged; j += c.size) {                                           \
            const u32 w = (u32)keys[j + (j >> 5)];                                                           \
            c_col[to + j] = low + (idx_t)narrow_key(w, bits);                                                \
            c_val[to + j] = sums[narrow_place(w, bits)];                                                     \
        }                                                                                                    \
    }

#if TULLE_CUDA
/* Lanes with the same slot add one after the other.  base: of the crew's table, which distinguishes crews. */
#define ADD_IN_ORDER(mine, base, s, v)                                                                      \
    do {                                                                                                    \
        const u32 tl_lane = thread_id() & 31u;                                                              \
        const u32 tl_same = lanes_match((mine) ? (base) + (s) : 0xffffffe0u + tl_lane);                     \
        const u32 tl_turn = popcount32(tl_same & ((1u << tl_lane) - 1u)), tl_turns = lanes_max(tl_turn);    \
        for (u32 tl_k = 0; tl_k <= tl_turns; tl_k++) {                                                      \
            if ((mine) && tl_turn == tl_k) sums[s] = VAL_ADD(sums[s], v);                                   \
            OWN_SYNC(32u);                                                                                  \
        }                                                                                                   \
    } while (0)
#else
#define ADD_IN_ORDER(mine, base, s, v)          \
    do {                                        \
        (void)(base);                           \
        if (mine) VAL_ATOMIC_ADD(&sums[s], v);  \
    } while (0)
#endif

#define HASH_SETUP                                                                              \
    const u32 tables = (c.pitch - 1u) >> team_log2, base = room * (c.stage >> team_log2);       \
    SHARED val_t *sums = factors + base;                        /* reuses their memory */       \
    SHARED key_t *keys = (SHARED key_t *)(factors + room * tables) + base;
#define HASH_KERNEL(kernel, blocks, SIZES) CREW_KERNEL(kernel, blocks, HASH_SETUP, SIZES)
#define HASH_CALL(W, E) \
    W##_row_##E(c, starts, deltas, factors, sums, keys, base, found, bits, low, b_col, b_val, nnz, to, \
                c_col, c_val, pass)

HASH_ROW(wide, 2)
HASH_ROW(wide, 4)
HASH_ROW(wide, 8)
HASH_ROW(wide, 16)
HASH_KERNEL(reg_hash_wide, 1, if (each_log2 == 1u) HASH_CALL(wide, 2);
            else if (each_log2 == 2u) HASH_CALL(wide, 4); else if (each_log2 == 3u) HASH_CALL(wide, 8);
            else HASH_CALL(wide, 16);)
#if KEY == 32
HASH_ROW(narrow, 2)
HASH_ROW(narrow, 4)
HASH_ROW(narrow, 8)
HASH_ROW(narrow, 16)
HASH_KERNEL(reg_hash, 7, if (each_log2 == 1u) HASH_CALL(narrow, 2);
            else if (each_log2 == 2u) HASH_CALL(narrow, 4); else HASH_CALL(narrow, 8);)
HASH_KERNEL(reg_hash_long, 4, HASH_CALL(narrow, 16);)
#endif
