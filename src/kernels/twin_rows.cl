/* SPDX-License-Identifier: MIT
 *
 * twin_rows.cl - products of matrices with twins: bundles of up to TWIN_MOST consecutive rows of A, or of
 * B, that have the same columns (twins.cl).
 *
 * All rows of a bundle of A have one pattern in C.  A team computes such a bundle: for each bundle of
 * rows of B that it needs, it reads a column index, finds its position in C once, reads one value from
 * each row of the bundle of B, and multiplies every pair of rows.  Each sum is added up in the order of
 * the row of A, so the result has the bits of the CPU.
 *
 * A pattern is a list of words: the number of a group of 32 columns (column / 32) above a bitmask of the
 * columns that are present.  Neighbouring columns share a word.  First the words of each bundle of B are
 * made.  The pattern of a bundle of C is their union; it is computed once and stored in order.  The
 * values are computed with a hash table of these words: the position of a column in its row is the number
 * of columns in the words before its own, plus the number of lower bits in its own.
 *
 *   sample   how many rows of a sample have the same columns as the row before
 *   words    the words of each bundle of B
 *   list     the first rows of the bundles of A that have products
 *   count    the pattern of each bundle of C.  A bundle with too many words is not used; the other
 *            accumulators compute its rows
 *   apply    which rows are used; sorts bundles by the shared memory that they need
 *   give     writes the lengths of rows of C, after the other rows were counted
 *   fill     column indices and values
 *
 * Shared memory: count TWIN_SLOTS words of 8 bytes per team, fill TWIN_BYTES of the largest bundle. */

CREW_SORT(twin_sort, u64)

INLINE bool twin_first(GLOBAL const u32 *firsts, u64 r) { return firsts[r >> 5] >> (r & 31u) & 1u; }

/* Rows of the bundle that begins at r. */
INLINE u32 twin_rows(GLOBAL const u32 *firsts, u64 r, u32 rows)
{
    u32 n = 1;
    while (n < TWIN_MOST && r + n < rows && !twin_first(firsts, r + n)) n++;
    return n;
}

/* Exclusive prefix sum over the threads of the team; *total: the sum over all of them. */
INLINE u32 twin_scan(u32 x, u32 team, u32 lane, SHARED u32 *scan, u32 *total)
{
#if TULLE_CUDA
    if (team <= LANES) {
        u32 sum = x;
        for (u32 d = 1; d < team; d <<= 1) {
            const u32 left = __shfl_up_sync(team_mask(team), sum, d, (int)team);
            if (lane >= d) sum += left;
        }
        *total = LANE_FROM(sum, team - 1u, team);
        return sum - x;
    }
#else
    (void)team;
    (void)lane;
#endif
    return block_scan(x, scan, total);
}

/* Compares the length and four columns of every `step`-th row with the row before.  The arrays may be
 * invalid: they are validated in the same batch of kernels. */
KERNEL(twin_sample)(u32 count, u32 step, u32 of_a, u64 nnz, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col,
                    GLOBAL u64 *summary)
{
    const u32 i = block_id() * thread_count() + thread_id();
    u64 alike = 0;
    if (i < count) {
        const u64 r = (u64)i * step + 1u;
        const ptr_t before = ptr[r - 1u], begin = ptr[r], end = ptr[r + 1u], length = begin - before;
        alike = before < begin && begin < end && (u64)end <= nnz && end - begin == length;
        UNROLL for (u32 k = 0; alike && k < 4u; k++) {
            const ptr_t p = begin + (ptr_t)((u64)(length - 1u) * k / 3u);
            alike = col[p] == col[p - length];
        }
    }
    alike = lanes_sum64(alike);
    if ((thread_id() & (LANES - 1u)) == 0u && alike)
        ATOMIC_ADD64(&summary[SUM_TWIN + (of_a ? TWIN_A : TWIN_B)], alike);
}

/* parts: for each bundle of B, at its first row, the position and the number of its words; TWIN_LOST if there
 * was no room for them.  One thread per bundle. */
KERNEL(twin_words)(u32 rows, u32 room, GLOBAL const u32 *firsts, GLOBAL const ptr_t *ptr,
                   GLOBAL const idx_t *col, GLOBAL u32 *found, GLOBAL u32 *parts, GLOBAL u64 *words)
{
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 place;
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 base = (u64)block_id() * thread_count(); base < rows; base += stride) {
        const u64 r = base + thread_id();
        const bool mine = r < rows && twin_first(firsts, r);
        const ptr_t begin = mine ? ptr[r] : 0, end = mine ? ptr[r + 1] : 0;
        u32 count = 0, total, last = NOTHING32;
        for (ptr_t p = begin; p < end; p++) {
            const u32 word = (u32)(col[p] >> 5);
            count += word != last ? 1u : 0u;
            last = word;
        }
        const u32 before = block_scan(count, scan, &total);
        if (thread_id() == 0u) place = total ? ATOMIC_ADD32(&found[TWIN_OF_B], total) : 0u;
        BARRIER();
        const u32 at = place + before;
        const bool fits = count <= room && at <= room - count;
        if (mine) {
            parts[2u * r] = at;
            parts[2u * r + 1u] = fits ? count : TWIN_LOST;
        }
        if (count && fits) {
            u32 q = at, mask = 0;
            last = (u32)(col[begin] >> 5);
            for (ptr_t p = begin; p < end; p++) {
                const u32 word = (u32)(col[p] >> 5), bit = 1u << ((u32)col[p] & 31u);
                if (word != last) {
                    words[q++] = (u64)last << 32 | mask;
                    mask = 0u;
                }
                mask |= bit;
                last = word;
            }
            words[q] = (u64)last << 32 | mask;
        }
        BARRIER();
    }
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
        if (thread_id() == 0u) place = total ? ATOMIC_ADD32(&found[TWIN_LISTED], total) : 0u;
        BARRIER();
        if (mine) list[place + before] = (u32)r;
        BARRIER();
    }
}

/* ---- the bundles of B that a bundle of A needs, TWIN_BATCH entries of A at a time */

/* The number of rows of the bundle of B that begins with entry p of A; 0 if the entry before is in the same
 * bundle. */
INLINE u32 twin_deep(ptr_t p, ptr_t begin, ptr_t end, GLOBAL const idx_t *a_col, GLOBAL const u32 *firsts)
{
    const idx_t k = a_col[p];
    u32 n = 1;
    if (p > begin && a_col[p - 1] + 1 == k && !twin_first(firsts, k)) return 0u;
    while (n < TWIN_MOST && p + n < end && a_col[p + n] == k + n && !twin_first(firsts, k + n)) n++;
    return n;
}

/* For entry e of the batch: where its row of B begins, and 4 * its length + the rows of the bundle; 0 if no
 * bundle begins there. */
INLINE void twin_stage(ptr_t first, u32 here, ptr_t begin, ptr_t end, u32 lane, u32 team,
                       GLOBAL const idx_t *RESTRICT a_col, GLOBAL const ptr_t *RESTRICT b_ptr,
                       GLOBAL const u32 *RESTRICT b_firsts, SHARED ptr_t *begins, SHARED u32 *steps)
{
    for (u32 e = lane; e < here; e += team) {
        const idx_t k = a_col[first + e];
        const ptr_t b = b_ptr[k];
        const u32 length = (u32)(b_ptr[k + 1] - b);
        begins[e] = b;
        steps[e] = length ? length << 2 | twin_deep(first + e, begin, end, a_col, b_firsts) : 0u;
        if ((steps[e] & 3u) == 0u) steps[e] = 0u;
    }
}

/* The first entry from e on that begins a bundle, or `here`. */
INLINE u32 twin_next(SHARED const u32 *steps, u32 e, u32 here)
{
    while (e < here && steps[e] == 0u) e++;
    return e;
}

/* ---- the pattern of a bundle */

/* Adds a word to the table; numbers of words are relative to the first one of the row of C. */
INLINE void twin_enter(SHARED u32 *table, bool direct, SHARED u32 *used, u32 word, u32 bits)
{
    u32 s = direct ? word : mulhi32(word * 0x9e3779b1u, TWIN_SLOTS);
    while (!direct) {
        u32 k = PEEK32(&table[2u * s + TWIN_KEY]);
        if (k == NOTHING32) {
            if (PEEK32(used) >= TWIN_WORDS_MOST) return;
            k = ATOMIC_CAS32(&table[2u * s + TWIN_KEY], NOTHING32, word);
            if (k == NOTHING32) {
                ATOMIC_ADD32(used, 1u);
                k = word;
            }
        }
        if (k == word) break;
        s = s + 1u < TWIN_SLOTS ? s + 1u : 0u;
    }
    if ((PEEK32(&table[2u * s + TWIN_MASK]) & bits) != bits) ATOMIC_OR32(&table[2u * s + TWIN_MASK], bits);
}

/* Positions and numbers of the words of the bundles of B that `here` entries of A begin, in any order; *some:
 * number of bundles.  *lost is set if there was no room for the words of one. */
INLINE void twin_parts(ptr_t first, u32 here, ptr_t begin, ptr_t end, u32 lane, u32 team,
                       GLOBAL const idx_t *RESTRICT a_col, GLOBAL const u32 *RESTRICT b_firsts,
                       GLOBAL const u32 *RESTRICT parts, SHARED u32 *starts, SHARED u32 *lengths,
                       SHARED u32 *some, SHARED u32 *lost)
{
    for (u32 e = lane; e < here; e += team) {
        if (!twin_deep(first + e, begin, end, a_col, b_firsts)) continue;
        u64 k = (u64)a_col[first + e];
        while (!twin_first(b_firsts, k)) k--;
        const u32 length = parts[2u * k + 1u];
        if (length == TWIN_LOST) *lost = 1u;
        else if (length) {
            const u32 at = ATOMIC_ADD32(some, 1u);
            starts[at] = parts[2u * k];
            lengths[at] = length;
        }
    }
}

/* Adds the words of `some` bundles, TWIN_SUB threads per bundle. */
INLINE void twin_union(u32 some, u32 low, u32 lane, u32 team, GLOBAL const u64 *RESTRICT words,
                       SHARED const u32 *starts, SHARED const u32 *lengths, SHARED u32 *table, bool direct,
                       SHARED u32 *used)
{
    for (u32 e = lane / TWIN_SUB; e < some; e += team / TWIN_SUB)
        for (u32 x = lane % TWIN_SUB; x < lengths[e]; x += TWIN_SUB) {
            const u64 word = words[starts[e] + x];
            twin_enter(table, direct, used, (u32)(word >> 32) - low, (u32)word);
        }
}

/* The number of threads of the team before this one that say yes; *total: of all that do. */
INLINE u32 twin_rank(bool yes, u32 team, u32 lane, SHARED u32 *scan, u32 *total)
{
#if TULLE_CUDA
    const u32 vote = lanes_vote(yes, team);
    (void)lane;
    (void)scan;
    *total = popcount32(vote);
    return lanes_before(vote, team);
#else
    return twin_scan(yes ? 1u : 0u, team, lane, scan, total);
#endif
}

/* Packs the words of the table and sorts them; with direct addressing they are in order already.  Returns
 * their number; *entries: the number of columns.  The team is a warp, or the work group. */
INLINE u32 twin_pack(SHARED u64 *words, u32 slots, bool direct, u32 lane, u32 team, SHARED u32 *scan,
                     u32 *entries)
{
    u32 count = 0, own = 0;
    for (u32 base = 0; base < slots; base += team) {
        const u64 word = base + lane < slots ? words[base + lane] : 0;
        const bool there = (u32)word != 0u;
        u32 total;
        const u32 before = twin_rank(there, team, lane, scan, &total);
        OWN_SYNC(team);                         /* all have read these slots, and those before */
        if (there) {
            words[count + before] = direct ? (u64)(base + lane) << 32 | (u32)word : word;
            own += popcount32((u32)word);
        }
        count += total;
        OWN_SYNC(team);
    }
    twin_scan(own, team, lane, scan, entries);
    if (!direct && count) {
        const u32 whole = 1u << log2_ceil(count);
        for (u32 q = count + lane; q < whole; q += team) words[q] = 0xffffffffffffffffUL;
        OWN_SYNC(team);
        twin_sort(words, whole, team, lane);
    }
    OWN_SYNC(team);
    return count;
}

KERNEL(twin_count)(SHARED_ARG u32 rows, u32 team_log2, u32 most, u32 room, GLOBAL u32 *found,
                   GLOBAL const u32 *RESTRICT list, GLOBAL const u32 *RESTRICT a_firsts,
                   GLOBAL const u32 *RESTRICT b_firsts, GLOBAL const ptr_t *RESTRICT a_ptr,
                   GLOBAL const idx_t *RESTRICT a_col, GLOBAL const u32 *RESTRICT parts,
                   GLOBAL const u64 *RESTRICT b_words, GLOBAL const idx_t *RESTRICT lo,
                   GLOBAL const u32 *RESTRICT span, GLOBAL const u32 *RESTRICT products,
                   GLOBAL u32 *RESTRICT sizes, GLOBAL u64 *RESTRICT patterns)
{
    SHARED_MEMORY
    STATIC_SHARED u32 all_starts[THREADS_MAX], all_lengths[THREADS_MAX];
    STATIC_SHARED u32 used[THREADS_MAX / 32], some[THREADS_MAX / 32], lost[THREADS_MAX / 32];
    STATIC_SHARED u32 place[THREADS_MAX / 32];
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2, count = found[TWIN_LISTED];
    SHARED u64 *words = (SHARED u64 *)shared_memory + TWIN_SLOTS * mine;
    SHARED u32 *starts = all_starts + TWIN_BATCH * mine, *lengths = all_lengths + TWIN_BATCH * mine;

    for (u64 i = (u64)block_id() * teams + mine; i < count; i += (u64)block_count() * teams) {
        const u32 r = list[i], high = twin_rows(a_firsts, r, rows), wide = span[r], low = (u32)(lo[r] >> 5);
        const bool direct = wide <= 32u * (TWIN_SLOTS - 1u);    /* a slot for each word of the row */
        const u32 slots = direct ? (wide + 31u) / 32u + 1u : TWIN_SLOTS;
        const ptr_t begin = a_ptr[r];
        const ptr_t end = wide < NOTHING32 && products[r] <= TWIN_PRODUCTS ? a_ptr[r + 1] : begin;
        for (u32 s = lane; s < slots; s += team) words[s] = (u64)NOTHING32 << 32;
        if (lane == 0u) used[mine] = lost[mine] = 0u;
        for (ptr_t first = begin; first < end; first += TWIN_BATCH) {
            const u32 here = end - first < TWIN_BATCH ? (u32)(end - first) : TWIN_BATCH;
            if (lane == 0u) some[mine] = 0u;
            OWN_SYNC(team);
            twin_parts(first, here, begin, end, lane, team, a_col, b_firsts, parts, starts, lengths,
                       &some[mine], &lost[mine]);
            OWN_SYNC(team);
            twin_union(some[mine], low, lane, team, b_words, starts, lengths, (SHARED u32 *)words, direct,
                       &used[mine]);
            OWN_SYNC(team);
        }
        OWN_SYNC(team);
        u32 n;
        const u32 w = twin_pack(words, slots, direct, lane, team, scan, &n);
        if (lane == 0u) {
            bool taken = !lost[mine] && (direct || w < TWIN_WORDS_MOST)
                         && TWIN_BYTES(high, n, w, (u32)sizeof(val_t)) <= most;
            const u32 at = taken ? ATOMIC_ADD32(&found[TWIN_STORED], w) : 0u;
            taken = taken && w <= room && at <= room - w;
            sizes[TWIN_WORDS_OF * r] = n;
            sizes[TWIN_WORDS_OF * r + 1u] = taken ? w : 0u;
            sizes[TWIN_WORDS_OF * r + 2u] = at;
            place[mine] = taken ? at : NOTHING32;
        }
        OWN_SYNC(team);
        const u32 at = place[mine];
        if (at != NOTHING32)
            for (u32 q = lane; q < w; q += team) patterns[at + q] = words[q];
        OWN_SYNC(team);
    }
}

/* ---- which rows are used */

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

/* Lists of bundles: sizes 0 and 1 share the first half of `lists`, one from its beginning, the other
 * backwards from its end; 2 and 3 share the second half. */
KERNEL(twin_apply)(u32 rows, GLOBAL const u32 *firsts, GLOBAL const u32 *sizes, GLOBAL const u32 *products,
                   GLOBAL u32 *found, GLOBAL u32 *of, GLOBAL u32 *lists, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 groups[TWIN_SIZES], most[TWIN_SIZES], from[TWIN_SIZES];
    const u32 t = thread_id();
    const u64 stride = (u64)block_count() * thread_count();
    u64 taken = 0, all = 0;
    if (t < TWIN_SIZES) most[t] = 0u;
    for (u64 base = (u64)block_id() * thread_count(); base < rows; base += stride) {
        const u64 r = base + t;
        u32 c = NOTHING32, place = 0;
        if (t < TWIN_SIZES) groups[t] = 0u;
        BARRIER();
        if (r < rows) {
            const u64 head = twin_head(firsts, r);
            const u32 n = products[r], w = n ? sizes[TWIN_WORDS_OF * head + 1u] : 0u;
            of[r] = w ? 0u : NOTHING32;
            if (w) {
                taken++;
                all += n;
            }
            if (w && r == head) {
                const u32 entries = sizes[TWIN_WORDS_OF * r];
                const u32 bytes = TWIN_BYTES(twin_rows(firsts, r, rows), entries, w, (u32)sizeof(val_t));
                c = twin_size(bytes);
                place = ATOMIC_ADD32(&groups[c], 1u);
                ATOMIC_MAX32(&most[c], bytes);
            }
        }
        BARRIER();
        if (t < TWIN_SIZES && groups[t]) {
            from[t] = ATOMIC_ADD32(&found[TWIN_LISTS + t], groups[t]);
            ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_GROUPS + t], (u64)groups[t]);
        }
        BARRIER();
        if (c != NOTHING32) {
            const u64 part = (u64)(c >> 1) * rows, at = (u64)from[c] + place;
            lists[part + (c & 1u ? rows - 1u - at : at)] = (u32)r;
        }
    }
    taken = lanes_sum64(taken);
    all = lanes_sum64(all);
    if ((t & (LANES - 1u)) == 0u && taken) {
        ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_TAKEN], taken);
        ATOMIC_ADD64(&summary[SUM_TWIN + TWIN_TAKEN_PRODUCTS], all);
    }
    BARRIER();
    if (t < TWIN_SIZES && most[t]) ATOMIC_MAX64(&summary[SUM_TWIN + TWIN_ROOM + t], (u64)most[t]);
}

KERNEL(twin_give)(u32 rows, GLOBAL const u32 *firsts, GLOBAL const u32 *sizes, GLOBAL const u32 *of,
                  GLOBAL const u32 *products, GLOBAL ptr_t *c_count)
{
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 r = (u64)block_id() * thread_count() + thread_id(); r < rows; r += stride) {
        if (of[r] != NOTHING32) c_count[r] = (ptr_t)sizes[TWIN_WORDS_OF * twin_head(firsts, r)];
        else if (products[r] == 0u) c_count[r] = 0;
    }
}

/* ---- columns and values */

/* Makes the hash table of a pattern, and the list of its columns, relative to the first column of its first
 * word.  marks[slot]: the number of columns in the words before, above the mask of the word. */
INLINE void twin_table(GLOBAL const u64 *RESTRICT pattern, u32 w, u32 slots, SHARED u64 *marks,
                       SHARED u32 *keys, SHARED u32 *columns, u32 lane, u32 team, SHARED u32 *scan)
{
    u32 sum = 0;
    for (u32 s = lane; s < slots; s += team) keys[s] = NOTHING32;
    CREW_SYNC(team);
    for (u32 base = 0; base < w; base += team) {
        const u64 entry = base + lane < w ? pattern[base + lane] : 0;
        const u32 word = (u32)(entry >> 32);
        u32 bits = (u32)entry, total, place = sum + twin_scan(popcount32(bits), team, lane, scan, &total);
        sum += total;
        if (bits) {
            u32 s = mulhi32(word * 0x9e3779b1u, slots);
            while (ATOMIC_CAS32(&keys[s], NOTHING32, word) != NOTHING32) s = s + 1u < slots ? s + 1u : 0u;
            marks[s] = (u64)place << 32 | bits;
        }
        while (bits) {
            columns[place++] = 32u * word + 31u - clz32(bits & (0u - bits));
            bits &= bits - 1u;
        }
        CREW_SYNC(team);
    }
}

INLINE u32 twin_place(SHARED const u64 *marks, SHARED const u32 *keys, u32 slots, u32 column)
{
    const u32 word = column >> 5;
    u32 s = mulhi32(word * 0x9e3779b1u, slots);
    while (keys[s] != word) s = s + 1u < slots ? s + 1u : 0u;
    const u64 mark = marks[s];
    return (u32)(mark >> 32) + popcount32((u32)mark & ((1u << (column & 31u)) - 1u));
}

/* A column of a bundle of B and its values. */
typedef struct twin_item { idx_t column; val_t v[TWIN_MOST]; bool on; } twin_item;

INLINE twin_item twin_fetch(u32 step, ptr_t b, u32 j, GLOBAL const idx_t *RESTRICT b_col,
                            GLOBAL const val_t *RESTRICT b_val)
{
    twin_item x;
    const u32 length = step >> 2, deep = step & 3u;
    x.on = j < length;
    if (x.on) {
        x.column = b_col[b + j];
        x.v[0] = b_val[b + j];
        if (deep > 1u) x.v[1] = b_val[b + length + j];
        if (deep > 2u) x.v[2] = b_val[b + 2u * (ptr_t)length + j];
    }
    return x;
}

/* Loads the values of A that a bundle of B is multiplied by. */
INLINE void twin_factors(u32 high, u32 deep, SHARED const val_t *factors, val_t a[TWIN_MOST][TWIN_MOST])
{
    UNROLL for (u32 i = 0; i < TWIN_MOST; i++)
        UNROLL for (u32 k = 0; k < TWIN_MOST; k++)
            if (i < high && k < deep) a[i][k] = factors[i * TWIN_FACTORS + k];
}

/* Adds the products of a column with `high` rows of A, in the order of A; their sums are n apart. */
INLINE void twin_add(u32 high, u32 deep, val_t a[TWIN_MOST][TWIN_MOST], SHARED val_t *sum, u32 n,
                     const val_t *v)
{
    UNROLL for (u32 i = 0; i < TWIN_MOST; i++)
        if (i < high) {
            val_t s = VAL_ADD(sum[i * n], VAL_MUL(a[i][0], v[0]));
            if (deep > 1u) s = VAL_ADD(s, VAL_MUL(a[i][1], v[1]));
            if (deep > 2u) s = VAL_ADD(s, VAL_MUL(a[i][2], v[2]));
            sum[i * n] = s;
        }
}

/* The products of a batch.  The next columns and values are loaded while these products are added. */
INLINE void twin_walk(u32 here, idx_t from, u32 high, u32 lane, u32 team, GLOBAL const idx_t *RESTRICT b_col,
                      GLOBAL const val_t *RESTRICT b_val, SHARED const ptr_t *begins, SHARED const u32 *steps,
                      SHARED const val_t *factors, SHARED const u64 *marks, SHARED const u32 *keys, u32 slots,
                      SHARED val_t *sums, u32 n)
{
    val_t a[TWIN_MOST][TWIN_MOST];
    u32 e = twin_next(steps, 0u, here), first = 0, step = e < here ? steps[e] : 0u;
    twin_item now = twin_fetch(step, e < here ? begins[e] : 0, lane, b_col, b_val);
    bool fresh = true;
    while (e < here) {
        const u32 deep = step & 3u, was = e;
        first += team;
        if (first >= step >> 2) {
            e = twin_next(steps, e + deep, here);
            first = 0;
            step = e < here ? steps[e] : 0u;
        }
        const twin_item then = twin_fetch(step, e < here ? begins[e] : 0, first + lane, b_col, b_val);
        const bool full = high == TWIN_MOST && deep == TWIN_MOST;
        if (fresh) {
            if (full) twin_factors(TWIN_MOST, TWIN_MOST, factors + was, a);
            else twin_factors(high, deep, factors + was, a);
        }
        if (now.on) {
            SHARED val_t *sum = sums + twin_place(marks, keys, slots, (u32)(now.column - from));
            if (full) twin_add(TWIN_MOST, TWIN_MOST, a, sum, n, now.v);
            else twin_add(high, deep, a, sum, n, now.v);
        }
        fresh = e != was;
        if (fresh || TEAM_FIXED) CREW_SYNC(team);
        now = then;
    }
}

/* Computes the bundles lists[first], lists[first + step], ... (step is 1 or -1). */
KERNEL_FOR(CREW_BLOCKS(3), twin_fill)(SHARED_ARG u32 count, u32 rows, u32 first_bundle, u32 step,
                  u32 team_log2, u32 bytes, GLOBAL const u32 *RESTRICT lists,
                  GLOBAL const u32 *RESTRICT sizes, GLOBAL const u64 *RESTRICT patterns,
                  GLOBAL const u32 *RESTRICT a_firsts, GLOBAL const u32 *RESTRICT b_firsts,
                  GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                  GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
                  GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
                  GLOBAL const idx_t *RESTRICT lo, GLOBAL const ptr_t *RESTRICT c_ptr,
                  GLOBAL idx_t *RESTRICT c_col, GLOBAL val_t *RESTRICT c_val)
{
    SHARED_MEMORY
    STATIC_SHARED ptr_t all_begins[THREADS_MAX];
    STATIC_SHARED u32 all_steps[THREADS_MAX];
    STATIC_SHARED u32 scan[SCAN_WORDS];
    const u32 t = thread_id(), team = 1u << team_log2, lane = t & (team - 1u), mine = t >> team_log2;
    const u32 teams = thread_count() >> team_log2;
    SHARED val_t *factors = (SHARED val_t *)((SHARED u32 *)shared_memory + bytes / 4u * mine);
    SHARED u64 *marks = (SHARED u64 *)(factors + TWIN_MOST * TWIN_FACTORS);
    SHARED u32 *steps = all_steps + TWIN_BATCH * mine;
    SHARED ptr_t *begins = all_begins + TWIN_BATCH * mine;

    for (u64 g = (u64)block_id() * teams + mine; g < count; g += (u64)block_count() * teams) {
        const u32 r = lists[first_bundle + (u32)g * step], high = twin_rows(a_firsts, r, rows);
        const u32 n = sizes[TWIN_WORDS_OF * r], w = sizes[TWIN_WORDS_OF * r + 1u];
        const u32 slots = TWIN_TABLE(w);
        const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
        const u32 entries = (u32)(end - begin);
        const idx_t from = lo[r] >> 5 << 5;
        SHARED u32 *keys = (SHARED u32 *)(marks + slots);
        SHARED val_t *sums = (SHARED val_t *)((SHARED u32 *)marks + TWIN_TABLE_WORDS(w));
        SHARED u32 *columns = (SHARED u32 *)sums;       /* before there are sums */
        twin_table(patterns + sizes[TWIN_WORDS_OF * r + 2u], w, slots, marks, keys, columns, lane, team,
                   scan);
        for (u32 i = 0; i < high; i++) {
            const ptr_t to = c_ptr[r + i];
            for (u32 j = lane; j < n; j += team) c_col[to + j] = from + (idx_t)columns[j];
        }
        CREW_SYNC(team);
        for (u32 j = lane; j < high * n; j += team) sums[j] = VAL_ZERO;
        for (ptr_t first = begin; first < end; first += TWIN_BATCH) {
            const u32 here = end - first < TWIN_BATCH ? (u32)(end - first) : TWIN_BATCH;
            const u32 more = end - first < TWIN_FACTORS ? (u32)(end - first) : TWIN_FACTORS;
            CREW_SYNC(team);
            twin_stage(first, here, begin, end, lane, team, a_col, b_ptr, b_firsts, begins, steps);
            for (u32 i = 0; i < high; i++)
                for (u32 x = lane; x < more; x += team)
                    factors[i * TWIN_FACTORS + x] = a_val[first + (ptr_t)i * entries + x];
            CREW_SYNC(team);
            twin_walk(here, from, high, lane, team, b_col, b_val, begins, steps, factors, marks, keys, slots,
                      sums, n);
        }
        CREW_SYNC(team);
        for (u32 i = 0; i < high; i++) {
            const ptr_t to = c_ptr[r + i];
            for (u32 j = lane; j < n; j += team) c_val[to + j] = sums[i * n + j];
        }
        CREW_SYNC(team);
    }
}
