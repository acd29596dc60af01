/* SPDX-License-Identifier: MIT
 *
 * tiny.cl - analysis, symbolic step and row pointers of a small product in two kernels, so that there is only
 * one synchronization with the host before C is allocated.
 *
 *   tiny_rows   a team per row: the analysis of analyze.cl, and the number of entries of the row, by a hash
 *               table of TINY_SLOTS keys.  Rows with more than TINY_PRODUCTS products are skipped (the host
 *               sees this in the summary and falls back to the general kernels)
 *   tiny_scan   one block: row pointers, and the summaries of both steps, which need not be zeroed before
 *
 * Columns are keys, of 32 bits: B has fewer than 2^32 - 1 of them. */

KERNEL(tiny_rows)(u32 rows, u32 team_log2, GLOBAL const u32 *bad, GLOBAL const ptr_t *RESTRICT a_ptr,
                  GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                  GLOBAL const idx_t *RESTRICT b_col, GLOBAL u32 *products, GLOBAL u16 *longest,
                  GLOBAL idx_t *lo, GLOBAL u32 *span, GLOBAL ptr_t *c_count)
{
    STATIC_SHARED key_t tables[TINY_TEAMS * TINY_SLOTS];
    STATIC_SHARED ptr_t begins[TINY_THREADS];
    STATIC_SHARED u32 lengths[TINY_THREADS], sums[TINY_THREADS], mosts[TINY_THREADS];
    STATIC_SHARED idx_t leasts[TINY_THREADS], lasts[TINY_THREADS];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2;
    SHARED key_t *table = tables + mine * TINY_SLOTS;
    const u32 r = block_id() * teams + mine;
    const int here = r < rows && bad[0] == NOTHING32;
    const ptr_t a_begin = here ? a_ptr[r] : 0, a_end = here ? a_ptr[r + 1] : 0;

    for (u32 s = lane; s < TINY_SLOTS; s += team) table[s] = KEY_NONE;
    u32 sum = 0, most = 0;                          /* saturated; rows that long are skipped */
    idx_t least = (idx_t)~(idx_t)0, last = 0;
    for (ptr_t p = a_begin + lane; p < a_end; p += team) {
        const idx_t k = a_col[p];
        const ptr_t begin = b_ptr[k], end = b_ptr[k + 1];
        if (p < a_begin + team) {                   /* the first ones are needed again */
            begins[t] = begin;
            lengths[t] = (u32)(end - begin);
        }
        if (begin == end) continue;
        const u32 n = (u64)(end - begin) > TINY_PRODUCTS ? TINY_PRODUCTS + 1u : (u32)(end - begin);
        sum = sum > TINY_PRODUCTS ? sum : sum + n;
        if (n > most) most = n;
        const idx_t first = b_col[begin], final = b_col[end - 1];
        if (first < least) least = first;
        if (final > last) last = final;
    }
    sums[t] = sum, mosts[t] = most;
    leasts[t] = least, lasts[t] = last;
    for (u32 d = team >> 1; d > 0u; d >>= 1) {
        OWN_SYNC(team);
        if (lane < d) {
            sums[t] += sums[t + d];
            if (mosts[t + d] > mosts[t]) mosts[t] = mosts[t + d];
            if (leasts[t + d] < leasts[t]) leasts[t] = leasts[t + d];
            if (lasts[t + d] > lasts[t]) lasts[t] = lasts[t + d];
        }
    }
    OWN_SYNC(team);
    sum = sums[stage];
    const u32 entries = (u32)(a_end - a_begin);
    u32 count = 0, size = entries ? 1u << log2_ceil((sum + entries - 1u) / entries) : 1u;
    if (size > team) size = team;
    for (ptr_t p = a_begin; p < a_end && sum <= TINY_PRODUCTS; p += team) {
        const u32 m = a_end - p < team ? (u32)(a_end - p) : team;
        if (p > a_begin) {
            OWN_SYNC(team);
            if (lane < m) {
                const idx_t k = a_col[p + lane];
                begins[t] = b_ptr[k];
                lengths[t] = (u32)(b_ptr[k + 1] - b_ptr[k]);
            }
            OWN_SYNC(team);
        }
        for (u32 e = lane / size; e < m; e += team / size) {        /* several short rows of B at once */
            const ptr_t b = begins[stage + e];
            const u32 length = lengths[stage + e];
            for (u32 j = lane & (size - 1u); j < length; j += size)
                count += key_insert(table, TINY_SLOTS, (key_t)b_col[b + j]);
        }
    }
    if (here && lane == 0u) {
        const u64 wide = sum ? (u64)(lasts[t] - leasts[t]) + 1u : 0u;
        products[r] = sum;
        longest[r] = (u16)mosts[t];
        lo[r] = sum ? leasts[t] : (idx_t)0;
        span[r] = wide > NOTHING32 ? NOTHING32 : (u32)wide;
    }
    OWN_SYNC(team);
    lengths[t] = count;
    for (u32 d = team >> 1; d > 0u; d >>= 1) {
        OWN_SYNC(team);
        if (lane < d) lengths[t] += lengths[t + d];
    }
    if (here && lane == 0u) c_count[r] = (ptr_t)lengths[t];
}

KERNEL(tiny_scan)(u32 rows, u32 items, GLOBAL const u32 *bad, GLOBAL const ptr_t *a_ptr,
                  GLOBAL const u32 *products, GLOBAL const u16 *longest, GLOBAL const u32 *span,
                  GLOBAL const u32 *limits, GLOBAL ptr_t *c_ptr, GLOBAL u64 *symbolic, GLOBAL u64 *numeric)
{
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 class_rows[CLASSES], class_low[CLASSES], class_high[CLASSES], class_most[CLASSES];
    STATIC_SHARED u32 most_of[SUM_WORDS], product_sum, need_sum;
    const u32 t = thread_id();
    if (bad[0] != NOTHING32) return;
    class_clear(class_rows, class_low, class_high, class_most);
    if (t < SUM_WORDS) most_of[t] = 0;
    if (t == 0) {
        product_sum = 0;
        need_sum = 0;
    }
    BARRIER();
    /* A thread processes `items` consecutive rows; at most 2^13 rows of 2^9 products, so sums fit 32 bits. */
    u32 sum = 0, all = 0, need = 0, max_products = 0, max_entries = 0, max_span = 0, max_longest = 0,
        max_need = 0, max_nnz = 0;
    for (u32 i = 0; i < items; i++) {
        const u32 r = t * items + i;
        u32 c = NOTHING32, measure = 0, p = 0;
        if (r < rows) {
            const u32 n = (u32)c_ptr[r], width = span[r], entries = (u32)(a_ptr[r + 1] - a_ptr[r]),
                      most = longest[r];
            p = products[r];
            const u32 least = p < width ? p : width;
            sum += n;
            all += p;
            need += least;
            if (p > max_products) max_products = p;
            if (entries > max_entries) max_entries = entries;
            if (width > max_span) max_span = width;
            if (most > max_longest) max_longest = most;
            if (least > max_need) max_need = least;
            if (n > max_nnz) max_nnz = n;
            c = numeric_class(limits, entries, products[r], n, width);
            measure = class_measure(c, 1u, n, width, limits[LIMIT_VALUE]);
        }
        class_count(class_rows, class_low, class_high, class_most, c, p, measure);
    }
    u32 total;
    u32 at = block_scan(sum, scan, &total);
    for (u32 i = 0; i < items; i++) {
        const u32 r = t * items + i;
        if (r >= rows) break;
        const u32 n = (u32)c_ptr[r];
        c_ptr[r] = (ptr_t)at;
        at += n;
    }
    max_products = lanes_max(max_products);
    max_entries = lanes_max(max_entries);
    max_span = lanes_max(max_span);
    max_longest = lanes_max(max_longest);
    max_need = lanes_max(max_need);
    max_nnz = lanes_max(max_nnz);
    all = (u32)lanes_sum64(all);
    need = (u32)lanes_sum64(need);
    if ((t & (LANES - 1u)) == 0u) {
        ATOMIC_MAX32(&most_of[SUM_MAX_PRODUCTS], max_products);
        ATOMIC_MAX32(&most_of[SUM_MAX_ENTRIES], max_entries);
        ATOMIC_MAX32(&most_of[SUM_MAX_SPAN], max_span);
        ATOMIC_MAX32(&most_of[SUM_MAX_LONGEST], max_longest);
        ATOMIC_MAX32(&most_of[SUM_MAX_NEED], max_need);
        ATOMIC_MAX32(&most_of[SUM_MAX_NNZ], max_nnz);
        ATOMIC_ADD32(&product_sum, all);
        ATOMIC_ADD32(&need_sum, need);
    }
    BARRIER();
    if (t < SUM_WORDS) {
        symbolic[t] = t == SUM_PRODUCTS ? product_sum : t == SUM_NEED ? need_sum : most_of[t];
        numeric[t] = t == SUM_NNZ ? total : most_of[t];
    }
    if (t < CLASSES) {
        symbolic[SUM_ROWS + t] = 0;
        symbolic[SUM_CLASS + t] = 0;
        symbolic[SUM_MEASURE + t] = 0;
        numeric[SUM_ROWS + t] = class_rows[t];
        numeric[SUM_CLASS + t] = (u64)class_high[t] << 32 | class_low[t];
        numeric[SUM_MEASURE + t] = class_most[t];
    }
    if (t == 0) c_ptr[rows] = (ptr_t)total;
}
