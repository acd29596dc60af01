/* SPDX-License-Identifier: MIT
 *
 * motif_fill.cl - rows of C with a motif: columns and values from its map (motif_map.cl), without any search.
 *
 *   gather    short motifs: one thread adds up all products of an entry of C.  A block computes `per`
 *             consecutive rows: it keeps factors and positions of their rows of B in shared memory, and
 *             distributes the entries of all these rows over its threads.
 *   scatter   all other motifs: a team per row.  It goes through the entries of A one after the other, its
 *             threads go along the row of B and add at the positions given by the map.  They have different
 *             columns, so no atomics are needed.
 *
 * Both add to zero in the order of A, so results have the same bits as on the CPU.  The first `shorts` motifs
 * are short.  Rows without a motif are skipped.
 *
 * Shared memory: gather: a value and a row pointer for each of `per` * 2^each_log2 entries of A; scatter:
 * `most` values per team. */

#define GATHER_ROWS     64

KERNEL(motif_gather)(SHARED_ARG u32 rows, u32 per, u32 each_log2, u32 shorts,
                     GLOBAL const u32 *RESTRICT motif_of, GLOBAL const u32 *RESTRICT motifs,
                     GLOBAL const u32 *RESTRICT columns, GLOBAL const u32 *RESTRICT starts,
                     GLOBAL const u32 *RESTRICT places, GLOBAL const ptr_t *RESTRICT a_ptr,
                     GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                     GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const val_t *RESTRICT b_val,
                     GLOBAL const idx_t *RESTRICT lo, GLOBAL const ptr_t *RESTRICT c_ptr,
                     GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 first[GATHER_ROWS], length[GATHER_ROWS], motif[GATHER_ROWS], map[GATHER_ROWS];
    STATIC_SHARED ptr_t from[GATHER_ROWS], to[GATHER_ROWS];
    STATIC_SHARED idx_t low[GATHER_ROWS];
    const u32 t = thread_id(), threads = thread_count(), staged = per << each_log2;
    SHARED val_t *factors = (SHARED val_t *)shared_memory;
    SHARED ptr_t *begins = (SHARED ptr_t *)(factors + staged);

    for (u64 base = (u64)block_id() * per; base < rows; base += (u64)block_count() * per) {
        u32 n = 0, total;
        if (t < per) {
            const u64 r = base + t;
            const u32 m = r < rows ? motif_of[r] : NOTHING32;
            length[t] = 0u;
            if (m < shorts) {
                motif[t] = m;
                map[t] = motifs[MOTIF_WORDS * m + MOTIF_AT];
                n = motifs[MOTIF_WORDS * m + MOTIF_NNZ];
                from[t] = a_ptr[r];
                length[t] = (u32)(a_ptr[r + 1] - a_ptr[r]);
                to[t] = c_ptr[r];
                low[t] = lo[r];
            }
        }
        const u32 before = block_scan(n, scan, &total);
        if (t < per) first[t] = before;
        BARRIER();
        for (u32 i = t; i < staged; i += threads) {
            const u32 row = i >> each_log2, e = i & ((1u << each_log2) - 1u);
            if (e < length[row]) {
                const ptr_t p = from[row] + e;
                begins[i] = b_ptr[a_col[p]];
                factors[i] = a_val[p];
            }
        }
        BARRIER();
        for (u32 q = t; q < total; q += threads) {
            u32 row = 0;                            /* the last row that begins here or before; not empty */
            for (u32 d = per >> 1; d > 0u; d >>= 1)
                if (first[row + d] <= q) row += d;
            const u32 j = q - first[row], at = map[row], stage = row << each_log2;
            const u32 s = at + motif[row] + j, end = starts[s + 1u];
            val_t sum = VAL_ZERO;
            for (u32 x = starts[s]; x < end; x++) {
                const u32 place = places[at + x], i = stage + (place >> 16);
                sum = VAL_ADD(sum, VAL_MUL(factors[i], b_val[begins[i] + (place & 0xffffu)]));
            }
            c_col[to[row] + j] = low[row] + (idx_t)columns[at + j];
            c_val[to[row] + j] = sum;
        }
        BARRIER();
    }
}

KERNEL(motif_scatter)(SHARED_ARG u32 rows, u32 team_log2, u32 most, u32 shorts,
                      GLOBAL const u32 *RESTRICT motif_of, GLOBAL const u32 *RESTRICT motifs,
                      GLOBAL const u32 *RESTRICT columns, GLOBAL const u32 *RESTRICT places,
                      GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                      GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                      GLOBAL const val_t *RESTRICT b_val, GLOBAL const idx_t *RESTRICT lo,
                      GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL idx_t *RESTRICT c_col,
                      GLOBAL val_t *RESTRICT c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];        /* current rows of B of the teams */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED val_t factors[THREADS_MAX];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2;
    SHARED val_t *sums = (SHARED val_t *)shared_memory + most * mine;

    for (u64 r = (u64)block_id() * teams + mine; r < rows; r += (u64)block_count() * teams) {
        const u32 m = motif_of[r];
        if (m == NOTHING32 || m < shorts) continue;         /* uniform in the team */
        const u32 at = motifs[MOTIF_WORDS * m + MOTIF_AT], n = motifs[MOTIF_WORDS * m + MOTIF_NNZ];
        const ptr_t a_begin = a_ptr[r], to = c_ptr[r];
        const u32 entries = (u32)(a_ptr[r + 1] - a_begin);
        const idx_t low = lo[r];
        GLOBAL const u16 *place = (GLOBAL const u16 *)(places + at);
        for (u32 j = lane; j < n; j += team) sums[j] = VAL_ZERO;
        for (u32 first = 0; first < entries; first += team) {
            const u32 here = entries - first < team ? entries - first : team;
            OWN_SYNC(team);
            if (lane < here) {
                const ptr_t p = a_begin + first + lane;
                const idx_t k = a_col[p];
                const ptr_t b = b_ptr[k];
                begins[t] = b;
                lengths[t] = (u32)(b_ptr[k + 1] - b);
                factors[t] = a_val[p];
            }
            OWN_SYNC(team);
            for (u32 e = 0; e < here; e++) {
                const ptr_t b = begins[stage + e];
                const u32 length = lengths[stage + e];
                const val_t a = factors[stage + e];
                for (u32 j = lane; j < length; j += team) {
                    const u32 s = place[j];
                    sums[s] = VAL_ADD(sums[s], VAL_MUL(a, b_val[b + j]));
                }
                place += length;
                OWN_SYNC(team);
            }
        }
        for (u32 j = lane; j < n; j += team) {
            c_col[to + j] = low + (idx_t)columns[at + j];
            c_val[to + j] = sums[j];
        }
        OWN_SYNC(team);
    }
}
