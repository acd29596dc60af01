/* SPDX-License-Identifier: MIT
 *
 * twin_rows.cl - products where rows of A, and rows of B, come in bundles with the same columns (twins.cl).
 *
 * A team takes a bundle of rows of A, which have one pattern in C, and walks along bundles of rows of B: one
 * column read and looked up, a value of each row of the bundle of B, and a product for each pair of rows.
 * Sums are added up in the order of A: the bits of the CPU.
 *
 * The pattern of a bundle is kept as words of 32 columns in a hash table: columns that come in groups share a
 * word.  The words are sorted once for a bundle; then the place of a column is that of its word and the bits
 * before it.
 *
 *   weigh    how much lies in bundles of two rows and more
 *   list     the first rows of bundles of A that have products
 *   count    their entries of C and their words; 0 words: too many, its rows go the ordinary way
 *   apply    which rows are taken, and what their bundles need
 *   give     entries of C, once other rows are counted
 *   fill     columns and values
 *
 * Shared memory: count TWIN_SLOTS pairs of words a team, fill TWIN_BYTES of the largest bundle. */

CREW_SORT(twin_sort, u64)

INLINE bool twin_first(GLOBAL const u32 *firsts, u64 r) { return firsts[r >> 5] >> (r & 31u) & 1u; }

/* Rows of the bundle that begins at r. */
INLINE u32 twin_rows(GLOBAL const u32 *firsts, u64 r, u32 rows)
{
    u32 n = 1;
    while (n < TWIN_MOST && r + n < rows && !twin_first(firsts, r + n)) n++;
    return n;
}

KERNEL(twin_weigh)(u32 rows, u32 by_products, GLOBAL const u32 *firsts, GLOBAL const ptr_t *ptr,
                   GLOBAL const u32 *products, GLOBAL u64 *summary)
{
    const u64 stride = (u64)block_count() * thread_count();
    u64 sum = 0;
    for (u64 r = (u64)block_id() * thread_count() + thread_id(); r < rows; r += stride)
        if (!twin_first(firsts, r) || (r + 1u < rows && !twin_first(firsts, r + 1u)))
            sum += by_products ? (u64)products[r] : (u64)(ptr[r + 1] - ptr[r]);
    sum = lanes_sum64(sum);
    if ((thread_id() & (LANES - 1u)) == 0u && sum)
        ATOMIC_ADD64(&summary[SUM_TWIN + (by_products ? TWIN_A : TWIN_B)], sum);
}

KERNEL(twin_list)(u32 rows, GLOBAL const u32 *firsts, GLOBAL const u32 *products, GLOBAL u32 *found,
                  GLOBAL u32 *list)
{
    STATIC_SHARED u32 words[SCAN_WORDS];
    STATIC_SHARED u32 place;
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 base = (u64)block_id() * thread_count(); base < rows; base += stride) {
        const u64 r = base + thread_id();
        const bool mine = r < rows && products[r] > 0u && twin_first(firsts, r);
        u32 total;
        const u32 before = block_scan(mine ? 1u : 0u, words, &total);
        if (thread_id() == 0u) place = total ? ATOMIC_ADD32(&found[0], total) : 0u;
        BARRIER();
        if (mine) list[place + before] = (u32)r;
        BARRIER();
    }
}

/* ---- the pattern of a bundle */

/* How many rows of B an entry of A begins: 0 where the entry before has it in its bundle. */
INLINE u32 twin_step(ptr_t p, ptr_t begin, ptr_t end, GLOBAL const idx_t *a_col, GLOBAL const u32 *firsts)
{
    const idx_t k = a_col[p];
    u32 n = 1;
    if (p > begin && a_col[p - 1] + 1 == k && !twin_first(firsts, k)) return 0u;
    while (n < TWIN_MOST && p + n < end && a_col[p + n] == k + n && !twin_first(firsts, k + n)) n++;
    return n;
}

/* A column, its word and its bit; *used, of which there may be `limit`, counts words. */
INLINE void twin_enter(SHARED u32 *keys, SHARED u32 *masks, u32 slots, u32 limit, SHARED u32 *used,
                       u32 column)
{
    const u32 word = column >> 5, bit = 1u << (column & 31u);
    u32 s = mulhi32(word * 0x9e3779b1u, slots);
    for (;;) {
        u32 k = PEEK32(&keys[s]);
        if (k == NOTHING32) {
            if (PEEK32(used) >= limit) return;
            k = ATOMIC_CAS32(&keys[s], NOTHING32, word);
            if (k == NOTHING32) {
                ATOMIC_ADD32(used, 1u);
                k = word;
            }
        }
        if (k == word) break;
        s = s + 1u < slots ? s + 1u : 0u;
    }
    if (!(PEEK32(&masks[s]) & bit)) ATOMIC_OR32(&masks[s], bit);
}

/* All columns of a bundle: one row of each bundle of B. */
INLINE void twin_mark(ptr_t begin, ptr_t end, idx_t from, u32 t, u32 lane, u32 team, u32 stage,
                      GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                      GLOBAL const idx_t *RESTRICT b_col, GLOBAL const u32 *RESTRICT firsts,
                      SHARED ptr_t *begins, SHARED u32 *lengths, SHARED u32 *keys, SHARED u32 *masks,
                      u32 slots, u32 limit, SHARED u32 *used)
{
    const u32 entries = (u32)(end - begin);
    for (u32 s = lane; s < slots; s += team) {
        keys[s] = NOTHING32;
        masks[s] = 0u;
    }
    if (lane == 0u) *used = 0u;
    for (u32 first = 0; first < entries; first += team) {
        const u32 here = entries - first < team ? entries - first : team;
        OWN_SYNC(team);
        if (lane < here) {
            const ptr_t p = begin + first + lane;
            const idx_t k = a_col[p];
            const ptr_t b = b_ptr[k];
            begins[t] = b;
            lengths[t] = twin_step(p, begin, end, a_col, firsts) ? (u32)(b_ptr[k + 1] - b) : 0u;
        }
        OWN_SYNC(team);
        for (u32 e = 0; e < here; e++) {
            const u32 length = lengths[stage + e];
            const ptr_t b = begins[stage + e];
            for (u32 j = lane; j < length; j += team)
                twin_enter(keys, masks, slots, limit, used, (u32)(b_col[b + j] - from));
        }
    }
    OWN_SYNC(team);
}

KERNEL(twin_count)(SHARED_ARG u32 rows, u32 team_log2, u32 most, GLOBAL const u32 *found,
                   GLOBAL const u32 *RESTRICT list, GLOBAL const u32 *RESTRICT a_firsts,
                   GLOBAL const u32 *RESTRICT b_firsts, GLOBAL const ptr_t *RESTRICT a_ptr,
                   GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                   GLOBAL const idx_t *RESTRICT b_col, GLOBAL const idx_t *RESTRICT lo,
                   GLOBAL const u32 *RESTRICT span, GLOBAL const u32 *RESTRICT products,
                   GLOBAL u32 *RESTRICT sizes)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED u32 used[THREADS_MAX], sum[THREADS_MAX];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2, count = found[0];
    SHARED u32 *keys = (SHARED u32 *)shared_memory + 2u * TWIN_SLOTS * mine, *masks = keys + TWIN_SLOTS;

    for (u64 i = (u64)block_id() * teams + mine; i < count; i += (u64)block_count() * teams) {
        const u32 r = list[i];
        const bool fits = span[r] < NOTHING32 && products[r] <= TWIN_PRODUCTS;
        const ptr_t begin = a_ptr[r], end = fits ? a_ptr[r + 1] : begin;
        if (lane == 0u) sum[mine] = 0u;
        twin_mark(begin, end, lo[r], t, lane, team, stage, a_col, b_ptr, b_col, b_firsts, begins, lengths,
                  keys, masks, TWIN_SLOTS, TWIN_WORDS_MOST, &used[mine]);
        u32 own = 0;
        for (u32 s = lane; s < TWIN_SLOTS; s += team) own += popcount32(masks[s]);
        if (own) ATOMIC_ADD32(&sum[mine], own);
        OWN_SYNC(team);
        if (lane == 0u) {
            const u32 n = sum[mine], w = used[mine], height = twin_rows(a_firsts, r, rows);
            const bool taken = w < TWIN_WORDS_MOST && TWIN_BYTES(height, n, w, (u32)sizeof(val_t)) <= most;
            sizes[2u * r] = n;
            sizes[2u * r + 1u] = taken ? w : 0u;
        }
        OWN_SYNC(team);
    }
}

/* ---- who is taken */

INLINE u64 twin_head(GLOBAL const u32 *firsts, u64 r)
{
    while (!twin_first(firsts, r)) r--;
    return r;
}

INLINE u32 twin_size(u32 bytes)
{
    u32 c = 0;
    while (c + 1u < TWIN_SIZES && bytes > TWIN_SIZE(c)) c++;
    return c;
}

KERNEL(twin_apply)(u32 rows, GLOBAL const u32 *firsts, GLOBAL const u32 *sizes, GLOBAL const u32 *products,
                   GLOBAL const u32 *found, GLOBAL u32 *of, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 groups[TWIN_SIZES], most[TWIN_SIZES];
    const u64 stride = (u64)block_count() * thread_count();
    u64 taken = 0, all = 0;
    if (thread_id() < TWIN_SIZES) {
        groups[thread_id()] = 0u;
        most[thread_id()] = 0u;
    }
    BARRIER();
    for (u64 r = (u64)block_id() * thread_count() + thread_id(); r < rows; r += stride) {
        const u64 head = twin_head(firsts, r);
        const u32 n = products[r], w = n ? sizes[2u * head + 1u] : 0u;
        of[r] = w ? 0u : NOTHING32;
        if (!w) continue;
        taken++;
        all += n;
        if (r == head) {
            const u32 bytes = TWIN_BYTES(twin_rows(firsts, r, rows), sizes[2u * r], w, (u32)sizeof(val_t));
            ATOMIC_ADD32(&groups[twin_size(bytes)], 1u);
            ATOMIC_MAX32(&most[twin_size(bytes)], bytes);
        }
    }
    taken = lanes_sum64(taken);
    all = lanes_sum64(all);
    if ((thread_id() & (LANES - 1u)) == 0u && taken) {
        ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_TAKEN], taken);
        ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_TAKEN_PRODUCTS], all);
    }
    BARRIER();
    if (thread_id() < TWIN_SIZES && groups[thread_id()]) {
        ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_GROUPS + thread_id()], (u64)groups[thread_id()]);
        ATOMIC_MAX64(&summary[SUM_TWIN + TWIN_ROOM + thread_id()], (u64)most[thread_id()]);
    }
    if (thread_id() == 0u && block_id() == 0u) summary[SUM_TWIN + TWIN_LISTED] = found[0];
}

KERNEL(twin_give)(u32 rows, GLOBAL const u32 *firsts, GLOBAL const u32 *sizes, GLOBAL const u32 *of,
                  GLOBAL const u32 *products, GLOBAL ptr_t *c_count)
{
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 r = (u64)block_id() * thread_count() + thread_id(); r < rows; r += stride) {
        if (of[r] != NOTHING32) c_count[r] = (ptr_t)sizes[2u * twin_head(firsts, r)];
        else if (products[r] == 0u) c_count[r] = 0;
    }
}

/* ---- columns and values */

/* The columns of a bundle less the first, in order; before[slot]: entries of C before those of its word.
 * words: room for a power of two. */
INLINE void twin_order(SHARED u64 *words, SHARED u32 *columns, SHARED u32 *keys, SHARED u32 *masks,
                       SHARED u32 *before, u32 slots, u32 w, u32 team, u32 team_log2, u32 lane,
                       SHARED u32 *used, SHARED u32 *scan)
{
    const u32 whole = 1u << log2_ceil(w), piece = ((w + team - 1u) >> team_log2) | 1u;
    if (lane == 0u) *used = 0u;
    OWN_SYNC(team);
    for (u32 s = lane; s < slots; s += team)
        if (keys[s] != NOTHING32) words[ATOMIC_ADD32(used, 1u)] = (u64)keys[s] << 32 | s;
    for (u32 q = w + lane; q < whole; q += team) words[q] = 0xffffffffffffffffUL;
    OWN_SYNC(team);
    twin_sort(words, whole, team, lane);
    const u32 w0 = lane * piece < w ? lane * piece : w, w1 = w0 + piece < w ? w0 + piece : w;
    u32 own = 0;
    for (u32 q = w0; q < w1; q++) own += popcount32(masks[(u32)words[q]]);
#if TULLE_CUDA
    u32 upto = own;
    for (u32 d = 1; d < team; d <<= 1) {
        const u32 left = __shfl_up_sync(team_mask(team), upto, d, (int)team);
        if (lane >= d) upto += left;
    }
    u32 place = upto - own;
    (void)scan;
#else
    u32 all;
    u32 place = block_scan(own, scan, &all);
#endif
    for (u32 q = w0; q < w1; q++) {
        const u32 s = (u32)words[q], word = (u32)(words[q] >> 32);
        u32 bits = masks[s];
        before[s] = place;
        while (bits) {
            columns[place++] = 32u * word + 31u - clz32(bits & (0u - bits));
            bits &= bits - 1u;
        }
    }
    OWN_SYNC(team);
}

INLINE u32 twin_place(SHARED const u32 *keys, SHARED const u32 *masks, SHARED const u32 *before, u32 slots,
                      u32 column)
{
    const u32 word = column >> 5;
    u32 s = mulhi32(word * 0x9e3779b1u, slots);
    while (keys[s] != word) s = s + 1u < slots ? s + 1u : 0u;
    return before[s] + popcount32(masks[s] & ((1u << (column & 31u)) - 1u));
}

/* A bundle of B, `deep` rows of `length` entries from b on, for `high` rows of A; a: their factors. */
INLINE void twin_add(u32 high, u32 deep, val_t a[TWIN_MOST][TWIN_MOST], SHARED val_t *sums, u32 n,
                     u32 place, val_t v0, val_t v1, val_t v2)
{
    UNROLL for (u32 i = 0; i < TWIN_MOST; i++)
        if (i < high) {
            val_t s = VAL_ADD(sums[i * n + place], VAL_MUL(a[i][0], v0));
            if (deep > 1u) s = VAL_ADD(s, VAL_MUL(a[i][1], v1));
            if (deep > 2u) s = VAL_ADD(s, VAL_MUL(a[i][2], v2));
            sums[i * n + place] = s;
        }
}

KERNEL_FOR(8, twin_fill)(SHARED_ARG u32 count, u32 rows, u32 size, u32 team_log2, u32 bytes,
                  GLOBAL const u32 *RESTRICT list, GLOBAL const u32 *RESTRICT sizes,
                  GLOBAL const u32 *RESTRICT a_firsts, GLOBAL const u32 *RESTRICT b_firsts,
                  GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                  GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                  GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                  GLOBAL const idx_t *RESTRICT lo, GLOBAL const ptr_t *RESTRICT c_ptr,
                  GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t begins[THREADS_MAX];
    STATIC_SHARED u32 lengths[THREADS_MAX], deeps[THREADS_MAX];
    STATIC_SHARED u32 used[THREADS_MAX];
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, stage = mine << team_log2;
    SHARED u32 *keys = (SHARED u32 *)shared_memory + (bytes / 4u) * mine;

    for (u64 g = (u64)block_id() * teams + mine; g < count; g += (u64)block_count() * teams) {
        const u32 r = list[g], n = sizes[2u * r], w = sizes[2u * r + 1u], high = twin_rows(a_firsts, r, rows);
        if (w == 0u || twin_size(TWIN_BYTES(high, n, w, (u32)sizeof(val_t))) != size) continue;
        const u32 slots = TWIN_TABLE(w);
        const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
        const u32 entries = (u32)(end - begin);
        const idx_t from = lo[r];
        SHARED u32 *masks = keys + slots, *before = masks + slots;
        SHARED val_t *sums = (SHARED val_t *)(keys + TWIN_TABLE_WORDS(w));
        SHARED u64 *words = (SHARED u64 *)sums;         /* before there are sums, and the columns then */
        SHARED u32 *columns = (SHARED u32 *)(words + (1u << log2_ceil(w)));
        twin_mark(begin, end, from, t, lane, team, stage, a_col, b_ptr, b_col, b_firsts, begins, lengths,
                  keys, masks, slots, NOTHING32, &used[mine]);
        twin_order(words, columns, keys, masks, before, slots, w, team, team_log2, lane, &used[mine], scan);
        for (u32 i = 0; i < high; i++) {
            const ptr_t to = c_ptr[r + i];
            for (u32 j = lane; j < n; j += team) c_col[to + j] = from + (idx_t)columns[j];
        }
        OWN_SYNC(team);
        for (u32 j = lane; j < high * n; j += team) sums[j] = VAL_ZERO;
        for (u32 first = 0; first < entries; first += team) {
            const u32 here = entries - first < team ? entries - first : team;
            OWN_SYNC(team);
            if (lane < here) {
                const ptr_t p = begin + first + lane;
                const idx_t k = a_col[p];
                const ptr_t b = b_ptr[k];
                begins[t] = b;
                deeps[t] = twin_step(p, begin, end, a_col, b_firsts);
                lengths[t] = (u32)(b_ptr[k + 1] - b);
            }
            OWN_SYNC(team);
            for (u32 e = 0; e < here; e++) {
                const u32 deep = deeps[stage + e], length = lengths[stage + e];
                const ptr_t b = begins[stage + e], p = begin + first + e;
                val_t a[TWIN_MOST][TWIN_MOST];
                UNROLL for (u32 i = 0; i < TWIN_MOST; i++)
                    UNROLL for (u32 k = 0; k < TWIN_MOST; k++)
                        a[i][k] = i < high && k < deep ? a_val[p + (ptr_t)i * entries + k] : VAL_ZERO;
                for (u32 j = lane; deep && j < length; j += team) {
                    const u32 place = twin_place(keys, masks, before, slots, (u32)(b_col[b + j] - from));
                    const val_t v0 = b_val[b + j], v1 = deep > 1u ? b_val[b + length + j] : VAL_ZERO;
                    const val_t v2 = deep > 2u ? b_val[b + 2u * (ptr_t)length + j] : VAL_ZERO;
                    twin_add(high, deep, a, sums, n, place, v0, v1, v2);
                }
                OWN_SYNC(team);
            }
        }
        OWN_SYNC(team);
        for (u32 i = 0; i < high; i++) {
            const ptr_t to = c_ptr[r + i];
            for (u32 j = lane; j < n; j += team) c_val[to + j] = sums[i * n + j];
        }
        OWN_SYNC(team);
    }
}
