/* SPDX-License-Identifier: MIT
 *
 * arrange.cl - bhSPARSE's last stage: copies the entries of C from C~, the intermediate result (upper.cl),
 * and from the areas of merged rows.
 *
 *   arrange        rows of C~, a team of `team` consecutive threads per row; skips rows that did not fit
 *                  into C~, which are in an area
 *   arrange_area   rows of one area, a block per row; skips rows that were moved on to a larger area
 *                  (WAIT_NOWHERE) */

KERNEL(arrange)(u32 rows, u32 team, GLOBAL const ptr_t *RESTRICT room, GLOBAL const idx_t *RESTRICT t_col,
                GLOBAL const val_t *RESTRICT t_val, GLOBAL const ptr_t *RESTRICT c_ptr,
                GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    const u32 teams = thread_count() / team, lane = thread_id() & (team - 1u);
    for (u64 r = (u64)block_id() * teams + thread_id() / team; r < rows; r += (u64)block_count() * teams) {
        const ptr_t from = room[r], to = c_ptr[r], n = c_ptr[r + 1] - to;
        if (n > room[r + 1] - from) continue;
        for (ptr_t k = lane; k < n; k += team) {
            c_col[to + k] = t_col[from + k];
            c_val[to + k] = t_val[from + k];
        }
    }
}

KERNEL(arrange_area)(u32 count, GLOBAL const u64 *RESTRICT waiting, GLOBAL const idx_t *RESTRICT area_col,
                     GLOBAL const val_t *RESTRICT area_val, GLOBAL const ptr_t *RESTRICT c_ptr,
                     GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    for (u32 i = block_id(); i < count; i += block_count()) {
        const u64 from = waiting[(u64)i * WAIT_WORDS + WAIT_TO];
        const u32 r = (u32)waiting[(u64)i * WAIT_WORDS + WAIT_ROW];
        const ptr_t to = c_ptr[r], n = from == WAIT_NOWHERE ? 0 : c_ptr[r + 1] - to;
        for (ptr_t k = thread_id(); k < n; k += thread_count()) {
            c_col[to + k] = area_col[from + k];
            c_val[to + k] = area_val[from + k];
        }
    }
}
