/* SPDX-License-Identifier: MIT
 *
 * analyze.cl - spECK's row analysis (Algorithm 1): one pass over the entries of A.  Of each row of B it reads
 * only the row pointers and the first and the last column.
 *
 *   products   number of products of each row of C, saturated at 32 bits
 *   longest    length of the longest row of B that the row needs, saturated at 16 bits
 *   lo, span   smallest column, and number of columns from there to the largest (saturated)
 *
 * A team of 2^team_log2 threads computes a row; rows with more than LONG entries are left to the whole block.
 * The host decides by the summary, words of 64 bits: first the SUM_ words, then rows and products of every
 * class of the symbolic step (classes.cl). */

#define LONG 1024u

INLINE void take(GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col, idx_t k, u64 *sum, u32 *most,
                 idx_t *least, idx_t *last)
{
    ptr_t begin = b_ptr[k], end = b_ptr[k + 1];
    u64 n = (u64)(end - begin);
    if (n == 0) return;
    *sum += n;
    u32 n32 = n > NOTHING32 ? NOTHING32 : (u32)n;
    if (n32 > *most) *most = n32;
    idx_t first = b_col[begin], final = b_col[end - 1];
    if (first < *least) *least = first;
    if (final > *last) *last = final;
}

KERNEL(analyze)(u32 rows, u32 stretch, u32 team_log2, GLOBAL const u32 *bad, GLOBAL const ptr_t *a_ptr,
                GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                GLOBAL const u32 *limits, GLOBAL u32 *products, GLOBAL u16 *longest, GLOBAL idx_t *lo,
                GLOBAL u32 *span, GLOBAL u64 *summary)
{
    STATIC_SHARED u64 sums[256];
    STATIC_SHARED u32 mosts[256];
    STATIC_SHARED idx_t leasts[256], lasts[256];
    STATIC_SHARED u32 waiting[256];             /* rows for the whole block          */
    STATIC_SHARED u32 waiting_count;
    STATIC_SHARED u32 class_rows[CLASSES];
    STATIC_SHARED u32 class_low[CLASSES], class_high[CLASSES];      /* products of the class */
    STATIC_SHARED u32 class_most[CLASSES];
    STATIC_SHARED u32 most_of[SUM_WORDS];
    const u32 t = thread_id(), threads = thread_count();
    const u32 team = 1u << team_log2;

    if (bad[0] != NOTHING32) return;     /* a view failed its check */
    class_clear(class_rows, class_low, class_high, class_most);
    if (t < SUM_WORDS) most_of[t] = 0;
    if (t == 0) waiting_count = 0;
    BARRIER();

    u64 my_total = 0;
    u32 my_max = 0, my_entries = 0, my_span = 0, my_longest = 0;
    u64 my_need = 0;
    u32 my_need_max = 0;
    /* A block takes `stretch` consecutive rows at a time, at most as many as it has threads. */
    for (u32 base = block_id() * stretch; base < rows; base += block_count() * stretch) {
        for (u32 phase = 0; phase < 2u; phase++) {
            u32 count = rows - base < stretch ? rows - base : stretch;
            if (phase == 1u) count = PEEK32(&waiting_count);       /* complete only after phase 0 */
            const u32 width_log2 = phase == 0 ? team_log2 : log2_floor(threads);
            const u32 width = 1u << width_log2;
            const u32 steps = (count + (threads >> width_log2) - 1u) / (threads >> width_log2);
            for (u32 s = 0; s < steps; s++) {
                const u32 place = s * (threads >> width_log2) + (t >> width_log2);
                const u32 my_lane = t & (width - 1u);
                u64 sum = 0;
                u32 most = 0, r = 0, entries = 0;
                idx_t least = (idx_t)~(idx_t)0, last = 0;
                int mine = 0;
                if (place < count) {
                    r = phase == 0 ? base + place : waiting[place];
                    const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
                    const u64 n = (u64)(end - begin);
                    entries = n > NOTHING32 ? NOTHING32 : (u32)n;
                    mine = phase == 1 || n <= LONG || team == threads;
                    if (mine)
                        for (ptr_t p = begin + my_lane; p < end; p += width)
                            take(b_ptr, b_col, a_col[p], &sum, &most, &least, &last);
                    else if (my_lane == 0) waiting[ATOMIC_ADD32(&waiting_count, 1u)] = r;
                }
#if TULLE_CUDA
                if (width <= 32u) {
                    const u32 mask = team_mask(width);
                    for (u32 d = width >> 1; d > 0; d >>= 1) {
                        sum += __shfl_xor_sync(mask, sum, d);
                        u32 m = __shfl_xor_sync(mask, most, d);
                        idx_t a = __shfl_xor_sync(mask, least, d), z = __shfl_xor_sync(mask, last, d);
                        if (m > most) most = m;
                        if (a < least) least = a;
                        if (z > last) last = z;
                    }
                } else
#endif
                {
                    sums[t] = sum;
                    mosts[t] = most;
                    leasts[t] = least;
                    lasts[t] = last;
                    for (u32 d = width >> 1; d > 0; d >>= 1) {
                        BARRIER();
                        if (my_lane < d) {
                            sums[t] += sums[t + d];
                            if (mosts[t + d] > mosts[t]) mosts[t] = mosts[t + d];
                            if (leasts[t + d] < leasts[t]) leasts[t] = leasts[t + d];
                            if (lasts[t + d] > lasts[t]) lasts[t] = lasts[t + d];
                        }
                    }
                    sum = sums[t];
                    most = mosts[t];
                    least = leasts[t];
                    last = lasts[t];
                    BARRIER();
                }
                u32 c = NOTHING32, need = 0, measure = 0, p = 0, w = 0;
                if (mine && my_lane == 0) {
                    p = sum > NOTHING32 ? NOTHING32 : (u32)sum;
                    const u64 wide = sum ? (u64)(last - least) + 1u : 0u;
                    w = wide > NOTHING32 ? NOTHING32 : (u32)wide;
                    products[r] = p;
                    longest[r] = (u16)(most > 0xffffu ? 0xffffu : most);
                    lo[r] = sum ? least : (idx_t)0;
                    span[r] = w;
                    need = p < w ? p : w;
                    c = symbolic_class(limits, entries, p, w);
                    measure = class_measure(c, 0u, need, w, 0u);
                    my_total += sum;
                    if (p > my_max) my_max = p;
                    if (entries > my_entries) my_entries = entries;
                    if (w > my_span) my_span = w;
                    if (most > my_longest) my_longest = most;
                    my_need += need;
                    if (need > my_need_max) my_need_max = need;
                }
                class_count(class_rows, class_low, class_high, class_most, c, c == NOTHING32 ? 0 : sum,
                            measure);
            }
            BARRIER();                          /* `waiting` is complete, or processed */
            if (phase == 1u && t == 0) waiting_count = 0;
            BARRIER();
        }
    }
    /* Sums are added to global memory once per warp, maxima are first combined in the block. */
    const u64 all = lanes_sum64(my_total), need = lanes_sum64(my_need);
    const u32 lane_id = t & (LANES - 1u);
    if (lane_id == 0u && all) {
        ATOMIC_ADD64(&summary[SUM_PRODUCTS], all);
        ATOMIC_ADD64(&summary[SUM_NEED], need);
    }
    my_max = lanes_max(my_max);
    my_entries = lanes_max(my_entries);
    my_span = lanes_max(my_span);
    my_longest = lanes_max(my_longest);
    my_need_max = lanes_max(my_need_max);
    if (lane_id == 0u) {
        ATOMIC_MAX32(&most_of[SUM_MAX_PRODUCTS], my_max);
        ATOMIC_MAX32(&most_of[SUM_MAX_ENTRIES], my_entries);
        ATOMIC_MAX32(&most_of[SUM_MAX_SPAN], my_span);
        ATOMIC_MAX32(&most_of[SUM_MAX_LONGEST], my_longest);
        ATOMIC_MAX32(&most_of[SUM_MAX_NEED], my_need_max);
    }
    BARRIER();
    if (t < SUM_WORDS && most_of[t]) ATOMIC_MAX64(&summary[t], (u64)most_of[t]);
    class_report(class_rows, class_low, class_high, class_most, summary);
}
