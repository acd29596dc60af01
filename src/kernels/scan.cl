/* SPDX-License-Identifier: MIT
 *
 * scan.cl - computes the row pointers of C from the number of entries of each row, in place, by two kernels.
 *
 *   tiles     the entries of each tile of thread_count() * items rows, and the summary for the host: the sum,
 *             the longest row, rows and products of every class of the numeric step
 *   offsets   each tile sums the tiles before it, then scans its own rows */

KERNEL(tiles)(u32 rows, u32 items, GLOBAL const ptr_t *a_ptr, GLOBAL const u32 *products,
              GLOBAL const u32 *span, GLOBAL const u32 *limits, GLOBAL const ptr_t *c_count,
              GLOBAL u64 *tile_sum, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 class_rows[CLASSES];
    STATIC_SHARED u32 class_low[CLASSES], class_high[CLASSES], class_most[CLASSES];
    STATIC_SHARED u32 total_low, total_high, longest;
    const u32 t = thread_id(), threads = thread_count();
    class_clear(class_rows, class_low, class_high, class_most);
    if (t == 0) {
        total_low = 0;
        total_high = 0;
        longest = 0;
    }
    BARRIER();
    u64 sum = 0;
    u32 most = 0;
    for (u32 i = 0; i < items; i++) {
        const u64 r64 = ((u64)block_id() * items + i) * threads + t;
        const u32 r = (u32)r64;
        u32 c = NOTHING32, measure = 0;
        u64 mine = 0;
        if (r64 < rows) {
            const u32 n = (u32)c_count[r], width = span[r];
            mine = products[r];
            c = numeric_class(limits, (u32)(a_ptr[r + 1] - a_ptr[r]), (u32)mine, n, width);
            measure = class_measure(c, 1u, n, width, limits[LIMIT_VALUE]);
            sum += n;
            if (n > most) most = n;
        }
        class_count(class_rows, class_low, class_high, class_most, c, mine, measure);
    }
    sum = lanes_sum64(sum);
    most = lanes_max(most);
    if ((t & (LANES - 1u)) == 0u) {
        ADD_SPLIT(&total_low, &total_high, sum);
        ATOMIC_MAX32(&longest, most);
    }
    BARRIER();
    if (t == 0) {
        const u64 total = (u64)total_high << 32 | total_low;
        tile_sum[block_id()] = total;
        ATOMIC_ADD64(&summary[SUM_NNZ], total);
        ATOMIC_MAX64(&summary[SUM_MAX_NNZ], (u64)longest);
    }
    class_report(class_rows, class_low, class_high, class_most, summary);
}

KERNEL(offsets)(u32 rows, u32 items, GLOBAL const u64 *tile_sum, GLOBAL ptr_t *c_ptr)
{
    STATIC_SHARED u64 part[256];
    STATIC_SHARED u32 before_low, before_high;
    const u32 t = thread_id(), threads = thread_count();
    u64 sum = 0;
    for (u32 i = t; i < block_id(); i += threads) sum += tile_sum[i];
    if (t == 0) {
        before_low = 0;
        before_high = 0;
    }
    BARRIER();
    sum = lanes_sum64(sum);
    if ((t & (LANES - 1u)) == 0u && sum) ADD_SPLIT(&before_low, &before_high, sum);

    /* A thread processes `items` consecutive rows. */
    const u64 first = ((u64)block_id() * threads + t) * items;
    sum = 0;
    for (u32 i = 0; i < items && first + i < rows; i++) sum += (u64)c_ptr[first + i];
    part[t] = sum;
    for (u32 d = 1; d < threads; d <<= 1) {
        BARRIER();
        const u64 left = t >= d ? part[t - d] : 0;
        BARRIER();
        part[t] += left;
    }
    BARRIER();
    u64 at = ((u64)before_high << 32 | before_low) + part[t] - sum;
    for (u32 i = 0; i < items && first + i < rows; i++) {
        const u64 n = (u64)c_ptr[first + i];
        c_ptr[first + i] = (ptr_t)at;
        at += n;
    }
    if (first < rows && first + items >= rows) c_ptr[rows] = (ptr_t)at;
}
