/* SPDX-License-Identifier: MIT
 *
 * motif_find.cl - finds rows of C with the same pattern of products, relative to the first column of the row.
 *
 *   class   of a row of B: its columns relative to the first of them.  Shifted rows have the same class.
 *   motif   of a row of C: for each entry of its row of A the class of the row of B, and the first column of
 *           that row relative to the first column of the row of C (lo).  Rows of C with the same motif have
 *           the same pattern, even if the columns of their rows of A differ.
 *
 * Both are found in the same way: a hash of each row is inserted into a table (enter), the row that inserts
 * it first becomes its representative, and each row is compared with its representative, entry by entry
 * (verify), so that hash collisions do no harm.  A class is identified by its representative.  Rows that
 * fail the comparison, that found no room in the table, or that are far longer than usual have no class or
 * motif.
 *
 *   sample   compares a few rows of A, reading only the length and the first and last column of rows of B;
 *            if most of them differ, the search ends here
 *   select   (motif_map.cl) decides which motifs are used
 *   take     removes the rows of these motifs from the other classes, by setting their products to zero
 *   rest     lists the remaining rows
 *   count    the entries of C of rows with a motif, after the maps are built (motif_map.cl)
 *
 * found: the number of classes and motifs inserted, and of remaining rows.  A team of 2^team_log2 threads
 * processes a row; without lanes, a single thread. */

#define CLASS_OF_NONE   NOTHING32
#define CLASS_OF_EMPTY  0xfffffffeu     /* the class of rows of B without entries */
#define TRIES           64u             /* probes for one hash, at most                     */
/* Entries of a row of A in the sample, at most. */
#define SAMPLE_LONG(team) ((team) > 8u ? 4u * (team) : 32u)
#define USUAL           32u             /* motifs that a block counts in shared memory      */

INLINE u64 motif_mix(u64 z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
    return z ^ z >> 31;
}

INLINE u64 team_sum(u64 x, u32 team)
{
#if TULLE_CUDA
    for (u32 d = team >> 1; d > 0u; d >>= 1) x += __shfl_xor_sync(team_mask(team), x, d);
#endif
    (void)team;
    return x;
}

INLINE bool team_all(bool yes, u32 team)
{
    return lanes_vote(yes, team) == (team >= 32u ? 0xffffffffu : (1u << team) - 1u);
}

/* A cache of a block's latest lookups, in shared memory: most rows have one of a few motifs, and would all
 * read the same slots of the table.  A word has 48 bits of the hash and the slot; if the rest of the hash
 * differs, the later comparison of the rows fails. */
#define RECENT          64u

INLINE u32 recent_find(SHARED u64 *recent, u64 hash)
{
    const u64 word = PEEK64(&recent[(u32)(hash >> 20) & (RECENT - 1u)]);
    return word != 0u && (word ^ hash) >> 16 == 0u ? (u32)word & 0xffffu : NOTHING32;
}

INLINE void recent_keep(SHARED u64 *recent, u64 hash, u32 slot)
{
    SHARED u64 *to = &recent[(u32)(hash >> 20) & (RECENT - 1u)];
    const u64 was = PEEK64(to);
    if (hash >> 16 != 0u) ATOMIC_CAS64(to, was, hash >> 16 << 16 | slot);
}

/* Loop over rows base, base + 1, ..., one per team, with step `stride`.  The first team processes its first
 * row alone, so that the others find the most frequent motif in `recent`.  Otherwise all teams of the device
 * would read the same slot of the table at once, which took four times as long as the hashes. */
#define FIRST_ALONE(base, i, rows, stride, team_log2)                                                        \
    for (u32 all = 0; all < 2u; all++) {                                                                     \
        const u64 stop = all || (rows) < (base) + 1u ? (rows) : (base) + 1u;                                 \
        for (u64 i = (base) + (thread_id() >> (team_log2)); i < stop; i += (stride)) {
#define FIRST_ALONE_END                                                                                      \
        }                                                                                                    \
        BARRIER();                                                                                           \
    }

/* The slot of a hash; NOTHING32: the table has no room.  *number: if the hash is new, the number of hashes
 * inserted before, else NOTHING32. */
INLINE u32 table_enter(GLOBAL u64 *keys, GLOBAL u32 *reps, GLOBAL u32 *count, u32 slots, u32 most, u64 hash,
                       u32 row, u32 *number)
{
    const u64 key = hash | 1u;
    u32 s = (u32)(hash >> 32) & (slots - 1u);
    *number = NOTHING32;
    for (u32 i = 0; i < TRIES; i++) {
        u64 k = PEEK64(&keys[s]);
        if (k == 0u) {
            if (PEEK32(count) >= most) return NOTHING32;
            k = ATOMIC_CAS64(&keys[s], 0u, key);
            if (k == 0u) {
                *number = ATOMIC_ADD32(count, 1u);
                reps[s] = *number < most ? row : NOTHING32;
                return s;
            }
        }
        if (k == key) return s;
        s = (s + 1u) & (slots - 1u);
    }
    return NOTHING32;
}

KERNEL(motif_sample)(u32 samples, u32 step, u32 team_log2, GLOBAL const u32 *bad, GLOBAL const ptr_t *a_ptr,
                     GLOBAL const idx_t *a_col, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                     GLOBAL const idx_t *lo, GLOBAL u32 *table, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 seen, different;
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u);
    const u64 i = (u64)block_id() * (thread_count() >> team_log2) + (thread_id() >> team_log2);
    if (thread_id() == 0u) {
        seen = 0u;
        different = 0u;
    }
    BARRIER();
    if (bad[0] == NOTHING32 && i < samples) {       /* else a view failed its check */
        /* hashed offsets, in case the matrix is periodic */
        const u32 r = (u32)i * step + mulhi32((u32)i * 0x9e3779b1u, step);
        const ptr_t begin = a_ptr[r], length = a_ptr[r + 1] - begin;
        const ptr_t end = begin + (length < SAMPLE_LONG(team) ? length : SAMPLE_LONG(team));
        const idx_t low = lo[r];
        u64 sum = 0;
        for (ptr_t p = begin + lane; p < end; p += team) {
            const idx_t k = a_col[p];
            const ptr_t b = b_ptr[k], e = b_ptr[k + 1];
            u64 x = (u64)(p - begin) << 40 ^ (u64)(e - b) << 20;
            if (b < e) x ^= motif_mix((u64)(b_col[b] - low)) + (u64)(b_col[e - 1] - low);
            sum += motif_mix(x + 0x9e3779b97f4a7c15UL);
        }
        sum = team_sum(sum, team) + (u64)length;
        if (lane == 0u && length > 0u) {
            const u32 key = (u32)(sum >> 16) | 1u;
            u32 s = (u32)(sum >> 48) & (SAMPLE_SLOTS - 1u);
            ATOMIC_ADD32(&seen, 1u);
            for (;;) {                              /* ends, as there are four slots for each row */
                const u32 k = ATOMIC_CAS32(&table[s], 0u, key);
                if (k == 0u) ATOMIC_ADD32(&different, 1u);
                if (k == 0u || k == key) break;
                s = (s + 1u) & (SAMPLE_SLOTS - 1u);
            }
        }
    }
    BARRIER();
    if (thread_id() == 0u && seen) {
        ATOMIC_ADD64(&summary[SUM_MOTIF + MOTIF_SAMPLED], (u64)seen);
        ATOMIC_ADD64(&summary[SUM_MOTIF + MOTIF_DIFFERENT], (u64)different);
    }
}

/* ---- classes of rows of B.  Between enter and verify, class_of is a slot of the table. */

KERNEL(class_enter)(u32 rows, u32 team_log2, u32 longest, GLOBAL const ptr_t *b_ptr,
                    GLOBAL const idx_t *b_col, u64 mask, u32 slots, u32 most, GLOBAL u64 *keys,
                    GLOBAL u32 *reps, GLOBAL u32 *found, GLOBAL u32 *class_of, GLOBAL idx_t *first_of)
{
    STATIC_SHARED u64 recent[RECENT];
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    for (u32 i = thread_id(); i < RECENT; i += thread_count()) recent[i] = 0u;
    BARRIER();
    const u64 base = (u64)block_id() * teams, stride = (u64)block_count() * teams;
    FIRST_ALONE(base, i, rows, stride, team_log2)
        const u32 r = (u32)i;
        const ptr_t begin = b_ptr[r], end = b_ptr[r + 1], length = end - begin;
        const idx_t first = length ? b_col[begin] : 0;
        u32 s = length ? CLASS_OF_NONE : CLASS_OF_EMPTY;
        if (length > 0u && length <= longest) {
            u64 sum = 0;
            for (ptr_t p = begin + lane; p < end; p += team)
                sum += motif_mix(((u64)(p - begin) << 44 ^ (u64)(b_col[p] - first)) + 0x9e3779b97f4a7c15UL);
            sum = motif_mix(team_sum(sum, team) + (u64)length) & mask;
            if (lane == 0u) {
                u32 number;
                s = recent_find(recent, sum);
                if (s == NOTHING32) {
                    s = table_enter(keys, reps, &found[0], slots, most, sum, r, &number);
                    if (s != NOTHING32) recent_keep(recent, sum, s);
                }
            }
        }
        if (lane == 0u) {
            class_of[r] = s;
            first_of[r] = first;
        }
    FIRST_ALONE_END
}

KERNEL(class_verify)(u32 rows, u32 team_log2, GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col,
                     GLOBAL const u32 *reps, GLOBAL u32 *class_of, GLOBAL const idx_t *first_of)
{
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    const u64 stride = (u64)block_count() * teams;
    for (u64 i = (u64)block_id() * teams + (thread_id() >> team_log2); i < rows; i += stride) {
        const u32 r = (u32)i, s = class_of[r];
        if (s >= CLASS_OF_EMPTY) continue;
        const u32 q = reps[s];
        bool same = q != NOTHING32;
        if (same && q != r) {
            const ptr_t begin = b_ptr[r], length = b_ptr[r + 1] - begin, other = b_ptr[q];
            const idx_t first = first_of[r], its = first_of[q];
            same = b_ptr[q + 1] - other == length;
            for (ptr_t j = lane; same && j < length; j += team)
                same = b_col[begin + j] - first == b_col[other + j] - its;
        }
        same = team_all(same, team);
        if (lane == 0u) class_of[r] = same ? q : CLASS_OF_NONE;
    }
}

/* ---- motifs of rows of C.  Until take, motif_of is a slot of the table. */

KERNEL(motif_enter)(u32 rows, u32 team_log2, u32 most_products, u32 most_entries, GLOBAL const ptr_t *a_ptr,
                    GLOBAL const idx_t *a_col, GLOBAL const u32 *class_of, GLOBAL const idx_t *first_of,
                    GLOBAL const u32 *products, GLOBAL const u32 *span, GLOBAL const idx_t *lo, u64 mask,
                    u32 slots, u32 most, GLOBAL u64 *keys, GLOBAL u32 *reps, GLOBAL u32 *found,
                    GLOBAL u32 *list, GLOBAL u32 *motif_of)
{
    STATIC_SHARED u64 recent[RECENT];
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    for (u32 i = thread_id(); i < RECENT; i += thread_count()) recent[i] = 0u;
    BARRIER();
    const u64 base = (u64)block_id() * teams, stride = (u64)block_count() * teams;
    FIRST_ALONE(base, i, rows, stride, team_log2)
        const u32 r = (u32)i, n = products[r];
        const ptr_t begin = a_ptr[r], end = a_ptr[r + 1];
        u32 s = NOTHING32;
        if (n > 0u && n <= most_products && end - begin <= most_entries && span[r] != NOTHING32) {
            const idx_t low = lo[r];
            u64 sum = 0;
            bool known = true;
            for (ptr_t p = begin + lane; p < end; p += team) {
                const idx_t k = a_col[p];
                const u32 c = class_of[k];
                const u64 from = c == CLASS_OF_EMPTY ? 0u : (u64)(first_of[k] - low);
                known = known && c != CLASS_OF_NONE;
                sum += motif_mix(((u64)c << 32 ^ from) + (u64)(p - begin + 1u) * 0x9e3779b97f4a7c15UL);
            }
            known = team_all(known, team);
            sum = motif_mix(team_sum(sum, team) + (u64)n) & mask;
            if (known && lane == 0u) {
                u32 number;
                s = recent_find(recent, sum);
                if (s == NOTHING32) {
                    s = table_enter(keys, reps, &found[1], slots, most, sum, r, &number);
                    if (s != NOTHING32) recent_keep(recent, sum, s);
                    if (number < most) list[number] = s;
                }
            }
        }
        if (lane == 0u) motif_of[r] = s;
    FIRST_ALONE_END
}

/* A block processes `stretch` consecutive rows.  It counts their most frequent motifs in shared memory first,
 * to save global atomics. */
KERNEL(motif_verify)(u32 rows, u32 stretch, u32 team_log2, GLOBAL const ptr_t *a_ptr,
                     GLOBAL const idx_t *a_col, GLOBAL const u32 *class_of, GLOBAL const idx_t *first_of,
                     GLOBAL const idx_t *lo, GLOBAL const u32 *reps, GLOBAL u32 *counts,
                     GLOBAL u32 *motif_of)
{
    STATIC_SHARED u32 usual[USUAL], votes[USUAL];
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    const u64 from = (u64)block_id() * stretch, to = from + stretch < rows ? from + stretch : rows;
    for (u32 i = thread_id(); i < USUAL; i += thread_count()) {
        usual[i] = NOTHING32;
        votes[i] = 0u;
    }
    BARRIER();
    for (u64 i = from + (thread_id() >> team_log2); i < to; i += teams) {
        const u32 r = (u32)i, s = motif_of[r];
        if (s == NOTHING32) continue;
        const u32 q = reps[s];
        bool same = q != NOTHING32;
        if (same && q != r) {
            const ptr_t begin = a_ptr[r], length = a_ptr[r + 1] - begin, other = a_ptr[q];
            const idx_t low = lo[r], its = lo[q];
            same = a_ptr[q + 1] - other == length;
            for (ptr_t j = lane; same && j < length; j += team) {
                const idx_t k = a_col[begin + j], l = a_col[other + j];
                const u32 c = class_of[k];
                same = c == class_of[l] && (c == CLASS_OF_EMPTY || first_of[k] - low == first_of[l] - its);
            }
        }
        same = team_all(same, team);
        if (lane == 0u) {
            if (!same) motif_of[r] = NOTHING32;
            else {
                const u32 u = s & (USUAL - 1u), was = ATOMIC_CAS32(&usual[u], NOTHING32, s);
                if (was == NOTHING32 || was == s) ATOMIC_ADD32(&votes[u], 1u);
                else ATOMIC_ADD32(&counts[s], 1u);
            }
        }
    }
    BARRIER();
    for (u32 i = thread_id(); i < USUAL; i += thread_count())
        if (votes[i]) ATOMIC_ADD32(&counts[usual[i]], votes[i]);
}

KERNEL(motif_take)(u32 rows, GLOBAL const ptr_t *a_ptr, GLOBAL const u32 *span, GLOBAL const u32 *limits,
                   GLOBAL const u32 *numbers, GLOBAL u32 *products, GLOBAL u32 *motif_of, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 class_rows[CLASSES];
    STATIC_SHARED u32 class_low[CLASSES], class_high[CLASSES], class_most[CLASSES];
    const u32 t = thread_id(), threads = thread_count();
    u64 my_need = 0;
    class_clear(class_rows, class_low, class_high, class_most);
    BARRIER();
    for (u64 base = (u64)block_id() * threads; base < rows; base += (u64)block_count() * threads) {
        const u64 r = base + t;
        u32 c = NOTHING32, n = 0;
        if (r < rows && motif_of[r] != NOTHING32) {
            const u32 id = numbers[motif_of[r]];
            motif_of[r] = id;
            if (id != NOTHING32) {
                const u32 width = span[r];
                n = products[r];
                c = symbolic_class(limits, (u32)(a_ptr[r + 1] - a_ptr[r]), n, width);
                my_need += n < width ? n : width;
                products[r] = 0u;
            }
        }
        class_count(class_rows, class_low, class_high, class_most, c, (u64)n, 0u);
    }
    my_need = lanes_sum64(my_need);
    if ((t & (LANES - 1u)) == 0u && my_need) ATOMIC_ADD64(&summary[SUM_NEED], (u64)0 - my_need);
    BARRIER();
    for (u32 c = t; c < CLASSES; c += threads)
        if (class_rows[c]) {
            ATOMIC_ADD64(&summary[SUM_ROWS + c], (u64)0 - (u64)class_rows[c]);
            ATOMIC_ADD64(&summary[SUM_CLASS + c], (u64)0 - ((u64)class_high[c] << 32 | class_low[c]));
        }
}

/* Lists the remaining rows; those of the same block keep their order. */
KERNEL(motif_rest)(u32 rows, GLOBAL const u32 *motif_of, GLOBAL const u32 *products, GLOBAL u32 *found,
                   GLOBAL u32 *rest)
{
    STATIC_SHARED u32 words[SCAN_WORDS];
    STATIC_SHARED u32 place;
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 base = (u64)block_id() * thread_count(); base < rows; base += stride) {
        const u64 r = base + thread_id();
        const bool mine = r < rows && motif_of[r] == NOTHING32 && products[r] > 0u;
        u32 total;
        const u32 before = block_scan(mine ? 1u : 0u, words, &total);
        if (thread_id() == 0u) place = total ? ATOMIC_ADD32(&found[2], total) : 0u;
        BARRIER();
        if (mine) rest[place + before] = (u32)r;
        BARRIER();
    }
}

/* If all other rows have motifs, no other kernel sets the counts of rows without products and motif. */
KERNEL(motif_count)(u32 rows, GLOBAL const u32 *motif_of, GLOBAL const u32 *motifs,
                    GLOBAL const u32 *products, GLOBAL ptr_t *c_count)
{
    const u64 stride = (u64)block_count() * thread_count();
    for (u64 r = (u64)block_id() * thread_count() + thread_id(); r < rows; r += stride) {
        const u32 m = motif_of[r];
        if (m != NOTHING32) c_count[r] = (ptr_t)motifs[MOTIF_WORDS * m + MOTIF_NNZ];
        else if (products[r] == 0u) c_count[r] = 0;
    }
}
