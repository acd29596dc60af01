/* SPDX-License-Identifier: MIT
 *
 * drop.cl - removes the entries whose value is zero.
 *
 *   drop_count   the number of nonzero entries of each row
 *   drop_copy    copies them, in order
 *
 * On CUDA a warp per row, which compacts 32 entries at a time by a ballot; on OpenCL a thread per row. */

#if VAL == 1 || VAL == 2
#define STAYS(v) ((v) != (real_t)0)
#else
#define STAYS(v) ((v).re != (real_t)0 || (v).im != (real_t)0)
#endif

KERNEL(drop_count)(u32 rows, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL const val_t *RESTRICT c_val,
                   GLOBAL ptr_t *RESTRICT count)
{
    const u32 teams = thread_count() / LANES, lane = thread_id() & (LANES - 1u);
    for (u64 r = (u64)block_id() * teams + thread_id() / LANES; r < rows; r += (u64)block_count() * teams) {
        const ptr_t end = c_ptr[r + 1];
        ptr_t n = 0;
        for (ptr_t p = c_ptr[r]; p < end; p += LANES)
            n += popcount32(lanes_vote(p + lane < end && STAYS(c_val[p + lane]), LANES));
        if (lane == 0u) count[r] = n;
    }
}

KERNEL(drop_copy)(u32 rows, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL const idx_t *RESTRICT c_col,
                  GLOBAL const val_t *RESTRICT c_val, GLOBAL const ptr_t *RESTRICT to_ptr,
                  GLOBAL idx_t *RESTRICT to_col, GLOBAL val_t *RESTRICT to_val)
{
    const u32 teams = thread_count() / LANES, lane = thread_id() & (LANES - 1u);
    for (u64 r = (u64)block_id() * teams + thread_id() / LANES; r < rows; r += (u64)block_count() * teams) {
        const ptr_t end = c_ptr[r + 1];
        ptr_t to = to_ptr[r];
        for (ptr_t p = c_ptr[r]; p < end; p += LANES) {
            const bool stays = p + lane < end && STAYS(c_val[p + lane]);
            const u32 vote = lanes_vote(stays, LANES);
            if (stays) {
                const ptr_t k = to + lanes_before(vote, LANES);
                to_col[k] = c_col[p + lane];
                to_val[k] = c_val[p + lane];
            }
            to += popcount32(vote);
        }
    }
}
