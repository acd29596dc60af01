/* SPDX-License-Identifier: MIT
 *
 * check.cl - validates a view on the device.  bad[0] receives the first invalid row, NOTHING32 if there is
 * none; the host then checks that row again to say what is wrong.  A team of 2^team_log2 threads per row, so
 * that a long row does not keep a single thread busy for milliseconds. */

KERNEL(check)(u32 rows, u32 team_log2, u64 nnz, u64 cols, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col,
              GLOBAL u32 *bad)
{
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    for (u32 r = block_id() * teams + (thread_id() >> team_log2); r < rows; r += block_count() * teams) {
        const ptr_t begin = ptr[r], end = ptr[r + 1];
        int wrong =
            begin > end || (u64)end > nnz || (r == 0 && begin != 0) || (r == rows - 1u && (u64)end != nnz);
        if (!wrong)
            for (ptr_t p = begin + lane; p < end; p += team)
                if ((u64)col[p] >= cols || (p > begin && col[p] <= col[p - 1])) {
                    wrong = 1;
                    break;
                }
        if (wrong) ATOMIC_MIN32(bad, r);
    }
}

/* Converts row pointers or columns to 64 bits. */
KERNEL(widen)(u64 count, GLOBAL const u32 *from, GLOBAL u64 *to)
{
    for (u64 i = (u64)block_id() * thread_count() + thread_id(); i < count;
         i += (u64)block_count() * thread_count())
        to[i] = from[i];
}

KERNEL(narrow)(u64 count, GLOBAL const u64 *from, GLOBAL u32 *to)
{
    for (u64 i = (u64)block_id() * thread_count() + thread_id(); i < count;
         i += (u64)block_count() * thread_count())
        to[i] = (u32)from[i];
}
