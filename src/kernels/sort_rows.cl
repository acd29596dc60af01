/* SPDX-License-Identifier: MIT
 *
 * sort_rows.cl - sorts the entries of rows of C by column, in place, a block per row.
 *
 * An LSD radix sort of pairs (column relative to the first of the row, position), over as many bits as the
 * width of the row needs.  A warp (on OpenCL: a thread) owns a part of the row and counts its digits, the
 * counts are scanned digit by digit, then each part is scattered in order.  Columns are written from the
 * sorted keys; values are permuted through the memory of the keys, the real and imaginary parts one after
 * the other.
 *
 * counter: counter[counted] is the number of rows; if `counted` is NOTHING32, `count` is.
 * Shared memory: room * (2 * sizeof(key_t) + 4) + thread_count() * (CUDA: 4, else 32) bytes; room is even and
 * at most 65534. */

#if TULLE_CUDA
#define DIGIT 6u
#else
#define DIGIT 4u
#endif
#define COUNTERS ((1u << DIGIT) / LANES)        /* per thread */

#if VAL == 1 || VAL == 2
#define PARTS 1u
#else
#define PARTS 2u
#endif

KERNEL(sort_rows)(SHARED_ARG u32 count, GLOBAL const u32 *RESTRICT rows, GLOBAL const u32 *RESTRICT counter,
                  u32 counted, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL const idx_t *RESTRICT lo,
                  GLOBAL const u32 *RESTRICT span, u32 room, GLOBAL idx_t *c_col, GLOBAL val_t *c_val)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    SHARED key_t *all_keys = (SHARED key_t *)shared_memory;
    SHARED u16 *all_places = (SHARED u16 *)(all_keys + 2u * room);
    SHARED u16 *counters = all_places + 2u * room;
    SHARED real_t *stage = (SHARED real_t *)shared_memory;
    const u32 t = thread_id(), threads = thread_count();
    const u32 teams = threads / LANES, team = t / LANES, lane = t & (LANES - 1u);

    const u32 rows_here = counted == NOTHING32 ? count : counter[counted];
    for (u64 i = block_id(); i < rows_here; i += block_count()) {
        const u32 r = row_at(rows, i);
        const ptr_t to = c_ptr[r];
        const u32 n = (u32)(c_ptr[r + 1] - to), width = span[r];
        const idx_t from = lo[r];
        const u32 bits = width == NOTHING32 ? KEY : log2_ceil(width), passes = (bits + DIGIT - 1u) / DIGIT;
        const u32 digit = passes ? (bits + passes - 1u) / passes : 0u;
        const u32 steps = (n + threads - 1u) / threads, first = team * steps * LANES + lane;
        u32 now = 0;
        for (u32 k = t; k < n; k += threads) {
            all_keys[k] = (key_t)(c_col[to + k] - from);
            all_places[k] = (u16)k;
        }
        for (u32 pass = 0; pass < passes; pass++, now ^= 1u) {
            SHARED const key_t *keys = all_keys + now * room;
            SHARED const u16 *places = all_places + now * room;
            SHARED key_t *keys_to = all_keys + (now ^ 1u) * room;
            SHARED u16 *places_to = all_places + (now ^ 1u) * room;
            const u32 shift = pass * digit, mask = (1u << digit) - 1u;
            UNROLL for (u32 k = 0; k < COUNTERS; k++) counters[t * COUNTERS + k] = 0;
            BARRIER();
            for (u32 k = 0, s = first; k < steps; k++, s += LANES) {
                const u32 d = s < n ? (u32)(keys[s] >> shift) & mask : NOTHING32, same = lanes_match(d);
                if (s < n && lanes_before(same, LANES) == 0u)
                    counters[d * teams + team] += (u16)popcount32(same);
                TEAM_SYNC(LANES);
            }
            BARRIER();
            u32 sum = 0, total;
            UNROLL for (u32 k = 0; k < COUNTERS; k++) sum += counters[t * COUNTERS + k];
            sum = block_scan(sum, scan, &total);
            UNROLL for (u32 k = 0; k < COUNTERS; k++) {
                const u32 c = counters[t * COUNTERS + k];
                counters[t * COUNTERS + k] = (u16)sum;
                sum += c;
            }
            BARRIER();
            for (u32 k = 0, s = first; k < steps; k++, s += LANES) {
                const key_t key = s < n ? keys[s] : (key_t)0;
                const u32 d = s < n ? (u32)(key >> shift) & mask : NOTHING32, same = lanes_match(d);
                const u32 before = lanes_before(same, LANES);
                u32 at = 0;
                if (s < n) at = counters[d * teams + team];
                TEAM_SYNC(LANES);
                if (s < n) {
                    if (before == 0u) counters[d * teams + team] = (u16)(at + popcount32(same));
                    keys_to[at + before] = key;
                    places_to[at + before] = places[s];
                }
                TEAM_SYNC(LANES);
            }
            BARRIER();
        }
        BARRIER();
        SHARED const u16 *places = all_places + now * room;
        for (u32 k = t; k < n; k += threads) c_col[to + k] = from + (idx_t)all_keys[now * room + k];
        GLOBAL real_t *values = (GLOBAL real_t *)(c_val + to);
        for (u32 part = 0; part < PARTS; part++) {
            BARRIER();
            for (u32 k = t; k < n; k += threads) stage[k] = values[k * PARTS + part];
            BARRIER();
            for (u32 k = t; k < n; k += threads) values[k * PARTS + part] = stage[places[k]];
        }
        BARRIER();
    }
}
