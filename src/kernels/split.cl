/* SPDX-License-Identifier: MIT
 *
 * split.cl - a few rows with very many products, each shared by many blocks.
 *
 * With one block per row, one multiprocessor would be busy while all others idle.  Here the entries of a row
 * of A are divided into `slices`, one for each block, and the blocks share a data structure in global memory:
 * a pair of words for each 32 columns of the row's span, a bitmask and the number of entries before it (as in
 * numeric_rank.cl).
 *
 *   split_mark    sets the bits                                    a block per slice
 *   split_count   counts the entries of the row                    a block per row
 *   split_rank    prefix sums over the pairs, columns of C         a block per row
 *   split_add     adds products to C, in no fixed order            a block per slice
 *
 * Global memory: 2 * words words per row, zero at first.  No shared memory beyond that of a scan. */

#if VAL == 1 || VAL == 3
#define REAL_ADD(p, v)  ATOMIC_ADD_GLOBAL_F32(p, v)
#else
#define REAL_ADD(p, v)  ATOMIC_ADD_GLOBAL_F64(p, v)
#endif
#if VAL == 1 || VAL == 2
#define SUM_START       ((val_t)-0.0)           /* the identity of addition; adding 0.0 changes -0.0 */
#define SUM_ADD(p, v)   REAL_ADD(p, v)
#else
#define SUM_START       val_make((real_t)-0.0, (real_t)-0.0)
#define SUM_ADD(p, v)   do { REAL_ADD(&(p)->re, (v).re); REAL_ADD(&(p)->im, (v).im); } while (0)
#endif

/* The slice of this block: entries [first, last) of A, and the teams, as wide as the rows of B are long. */
typedef struct slice_t {
    u32   i, r, team_log2;
    ptr_t first, last;
} slice_t;

INLINE slice_t slice_of(u32 slices, GLOBAL const u32 *rows, GLOBAL const ptr_t *a_ptr,
                        GLOBAL const u32 *products)
{
    slice_t x;
    const u32 s = block_id() % slices;
    x.i = block_id() / slices;
    x.r = GIVEN(rows) ? rows[x.i] : x.i;
    const ptr_t begin = a_ptr[x.r];
    const u64 n = (u64)(a_ptr[x.r + 1] - begin);
    x.first = begin + (ptr_t)(n * s / slices);
    x.last = begin + (ptr_t)(n * (s + 1u) / slices);
    const u32 mean = n ? (u32)(products[x.r] / n) : 0u;
    x.team_log2 = log2_floor(mean > 32u ? 32u : mean);
    while ((1u << x.team_log2) > thread_count()) x.team_log2--;
    return x;
}

/* Goes through the products of the slice: marks their columns, or adds their values to the row of C. */
INLINE void slice_products(slice_t x, bool add, GLOBAL const idx_t *a_col, GLOBAL const val_t *a_val,
                           GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val,
                           idx_t low, GLOBAL u32 *pairs, GLOBAL val_t *sums)
{
    const u32 team = 1u << x.team_log2, lane = thread_id() & (team - 1u);
    for (ptr_t p = x.first + (thread_id() >> x.team_log2); p < x.last; p += thread_count() >> x.team_log2) {
        const idx_t k = a_col[p];
        const ptr_t end = b_ptr[k + 1];
        val_t a = VAL_ZERO;
        if (add) a = a_val[p];
        for (ptr_t q = b_ptr[k] + lane; q < end; q += team) {
            const u32 column = (u32)(b_col[q] - low), bit = 1u << (column & 31u);
            GLOBAL u32 *pair = pairs + 2u * (column >> 5);
            if (add) {
                const u32 rank = pair[1] + popcount32(pair[0] & (bit - 1u));
                const val_t product = VAL_MUL(a, b_val[q]);
                SUM_ADD(sums + rank, product);
            } else if (!(PEEK32(pair) & bit)) {
                ATOMIC_OR32(pair, bit);
            }
        }
    }
}

KERNEL(split_mark)(u32 slices, GLOBAL const u32 *rows, GLOBAL const ptr_t *a_ptr, GLOBAL const idx_t *a_col,
                   GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col, GLOBAL const u32 *products,
                   GLOBAL const idx_t *lo, u64 words, GLOBAL u32 *pairs)
{
    const slice_t x = slice_of(slices, rows, a_ptr, products);
    slice_products(x, false, a_col, 0, b_ptr, b_col, 0, lo[x.r], pairs + (u64)x.i * 2u * words, 0);
}

KERNEL(split_count)(GLOBAL const u32 *rows, u64 words, GLOBAL const u32 *pairs, GLOBAL ptr_t *c_count)
{
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 i = block_id(), r = GIVEN(rows) ? rows[i] : i;
    GLOBAL const u32 *mine = pairs + (u64)i * 2u * words;
    u32 count = 0;
    for (u64 w = thread_id(); w < words; w += thread_count()) count += popcount32(mine[2u * w]);
    const u32 total = block_sum(count, scan);
    if (thread_id() == 0u) c_count[r] = (ptr_t)total;
}

KERNEL(split_rank)(GLOBAL const u32 *rows, GLOBAL const idx_t *lo, u64 words, GLOBAL u32 *pairs,
                   GLOBAL const ptr_t *c_ptr, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 i = block_id(), r = GIVEN(rows) ? rows[i] : i, t = thread_id(), threads = thread_count();
    const idx_t low = lo[r];
    const ptr_t start = c_ptr[r];
    GLOBAL u32 *mine = pairs + (u64)i * 2u * words;
    u32 before = 0;
    for (u64 w0 = 0; w0 < words; w0 += threads) {
        const u64 w = w0 + t;
        u32 bits = w < words ? mine[2u * w] : 0u, total;
        u32 at = before + block_scan(popcount32(bits), scan, &total);
        if (w < words) mine[2u * w + 1u] = at;
        while (bits) {
            const u32 bit = 31u - clz32(bits & (0u - bits));
            c_col[start + at] = low + (idx_t)(w * 32u + bit);
            c_val[start + at] = SUM_START;
            at++;
            bits &= bits - 1u;
        }
        before += total;
        BARRIER();
    }
}

KERNEL(split_add)(u32 slices, GLOBAL const u32 *rows, GLOBAL const ptr_t *a_ptr, GLOBAL const idx_t *a_col,
                  GLOBAL const val_t *a_val, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                  GLOBAL const val_t *b_val, GLOBAL const u32 *products, GLOBAL const idx_t *lo, u64 words,
                  GLOBAL u32 *pairs, GLOBAL const ptr_t *c_ptr, GLOBAL val_t *c_val)
{
    const slice_t x = slice_of(slices, rows, a_ptr, products);
    slice_products(x, true, a_col, a_val, b_ptr, b_col, b_val, lo[x.r], pairs + (u64)x.i * 2u * words,
                   c_val + c_ptr[x.r]);
}
