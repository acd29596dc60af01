/* SPDX-License-Identifier: MIT
 *
 * direct.cl - rows of A with a single entry: the row of C is a scaled row of B.
 *
 * A team of `team` consecutive threads per row; threads do not synchronize, so a team may be as wide as the
 * block.  As everywhere a product is added to zero, so -0.0 becomes 0.0.  No shared memory. */

KERNEL(direct)(u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const ptr_t *RESTRICT a_ptr,
               GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
               GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
               GLOBAL const val_t *RESTRICT b_val, u32 team, GLOBAL const ptr_t *RESTRICT c_ptr,
               GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    const u32 teams = thread_count() / team, lane = thread_id() & (team - 1u);
    const u64 step = (u64)block_count() * teams;
    for (u64 i = (u64)block_id() * teams + thread_id() / team; i < count; i += step) {
        const u32 r = row_at(rows, i);
        const ptr_t p = a_ptr[r], to = c_ptr[r];
        const idx_t k = a_col[p];
        const val_t a = a_val[p];
        const ptr_t begin = b_ptr[k], length = b_ptr[k + 1] - begin;
        for (ptr_t j = lane; j < length; j += team) {
            c_col[to + j] = b_col[begin + j];
            c_val[to + j] = VAL_ADD(VAL_ZERO, VAL_MUL(a, b_val[begin + j]));
        }
    }
}
