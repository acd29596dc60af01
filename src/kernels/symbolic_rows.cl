/* SPDX-License-Identifier: MIT
 *
 * symbolic_rows.cl - counts the entries of short rows of C, up to 32 rows per block in one hash table.
 *
 * Keys are compound, as in spECK: row of the block (5 bits) and column (27 bits, or 59 if KEY is 64).  The
 * rows of a block are distributed over teams; a team processes the entries of A one after the other, its
 * threads go along the row of B.  The width of a team depends on the rows of the block (group_log2).
 *
 *   groups    position of each group of rows in list, and number of rows; not given: `per` rows each, in
 *             order
 *   cursors   [cursor]: the number of groups; given together with groups
 *   slots     of the table: shared memory is slots * sizeof(key_t) */

KERNEL(symbolic_rows)(SHARED_ARG u32 rows, u32 per, GLOBAL const u32 *list, GLOBAL const u32 *groups,
                      GLOBAL const u32 *cursors, u32 cursor, u32 widest, GLOBAL const ptr_t *a_ptr,
                      GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                      GLOBAL const u32 *products, GLOBAL const u16 *longest, GLOBAL const idx_t *lo,
                      u32 slots, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];        /* current rows of B of the teams */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED ptr_t row_begin[32], row_end[32];
    STATIC_SHARED idx_t row_lo[32];
    STATIC_SHARED u32 row[32], found[32];
    STATIC_SHARED u32 sum_entries, sum_products, max_longest;
    SHARED key_t *table = (SHARED key_t *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();
    const int listed = GIVEN(groups);
    const u32 total = listed ? cursors[cursor] : (rows + per - 1u) / per;

    for (u32 block = block_id(); block < total; block += block_count()) {
        const pack_t pack = pack_of(groups, block, rows, per);
        const u32 first = pack.first, n = pack.count;
        BARRIER();
        if (t == 0) {
            sum_entries = 0;
            sum_products = 0;
            max_longest = 0;
        }
        for (u32 i = t; i < slots; i += threads) table[i] = KEY_NONE;
        BARRIER();
        for (u32 i = t; i < n; i += threads) {
            const u32 r = listed ? list[first + i] : first + i;
            row[i] = r;
            row_begin[i] = a_ptr[r];
            row_end[i] = a_ptr[r + 1];
            row_lo[i] = lo[r];
            found[i] = 0;
            ATOMIC_ADD32(&sum_entries, (u32)(row_end[i] - row_begin[i]));
            ATOMIC_ADD32(&sum_products, products[r]);
            ATOMIC_MAX32(&max_longest, longest[r]);
        }
        BARRIER();
        u32 g_log2 = group_log2(threads, sum_entries, sum_products, max_longest, widest);
        while ((n << g_log2) < threads && (1u << g_log2) < widest) g_log2++;
        if (TEAM_FIXED) g_log2 = log2_floor(threads);
        const u32 g = 1u << g_log2, lane = t & (g - 1u), team = t >> g_log2, teams = threads >> g_log2;
        const u32 stage = team << g_log2;

        for (u32 i = team; i < n; i += teams) {
            const ptr_t begin = row_begin[i], end = row_end[i];
            const idx_t low = row_lo[i];
            const key_t high = (key_t)i << KEY_ROW_SHIFT;
            u32 count = 0;
            for (ptr_t p = begin; p < end; p += g) {
                const u32 m = end - p < g ? (u32)(end - p) : g;
                if (lane < m) {
                    const idx_t k = a_col[p + lane];
                    const ptr_t b = b_ptr[k];
                    begins[t] = b;
                    lengths[t] = (u32)(b_ptr[k + 1] - b);
                }
                OWN_SYNC(g);
                for (u32 e = 0; e < m; e++) {
                    const ptr_t b = begins[stage + e];
                    const u32 length = lengths[stage + e];
                    for (u32 j = lane; j < length; j += g)
                        count += key_insert(table, slots, high | (key_t)(b_col[b + j] - low));
                }
                OWN_SYNC(g);
            }
            if (count) ATOMIC_ADD32(&found[i], count);
        }
        BARRIER();
        for (u32 i = t; i < n; i += threads) c_count[row[i]] = (ptr_t)found[i];
    }
}
