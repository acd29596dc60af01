/* SPDX-License-Identifier: MIT
 *
 * flat_values.cl - values of rows of C whose sorted columns are known, and stand in C; it writes only values.
 *
 * A team of threads computes a row.  The columns of C, relative to lo, are put into a table in shared memory:
 * a word holds a column and, in its lowest `bits`, its place in the row; buckets have four words, and half of
 * all words are free.  So one load of 16 bytes nearly always finds the place of a product, without a
 * compare-and-swap, and nothing has to be sorted.  A word that finds its bucket full is in one of the next.
 *
 * CUDA: the team is a warp.  It takes 32 entries of A at a time, and deals their products out to the lanes,
 * 32 at a time (a window), whatever the lengths of the rows of B: each entry sets a bit where its products
 * begin in the window, and the number of bits up to a lane says which entry its product belongs to.  Products
 * are added to the sums in turns: one for each entry of A in the window, whose products have different
 * columns; or, if these are many, one for each time that a column occurs.  So there are no atomics, and every
 * sum is computed in the order of A, with the same bits as on the CPU.
 *
 * Without warps the team is the work group, which goes through the rows of B one after the other.
 *
 * Shared memory: `slab` words of 8 bytes for each team: the table, and a sum for each entry (FLAT_BYTES). */

#define BUCKET(column, bits)    (KEY_HASH(column) >> (33u - (bits)))    /* 2^(bits - 1) buckets */
#define TURNS                   4u  /* for entries of A, at most */
#define BATCH                   4u  /* columns that a thread loads at once */

INLINE u32 least(u32 a, u32 b) { return a < b ? a : b; }

/* The place of a column, which must be in the table.  Only its own word differs from column << bits in
 * nothing but the lowest bits. */
INLINE u32 place_of(SHARED const u32 *table, u32 bits, u32 column)
{
    const u32 wanted = column << bits, last = (1u << (bits - 1u)) - 1u;
    u32 h = BUCKET(column, bits);
    for (;;) {
#if TULLE_CUDA
        const uint4 k = ((SHARED const uint4 *)table)[h];
#else
        const uint4 k = vload4(h, table);
#endif
        const u32 found = least(least(k.x ^ wanted, k.y ^ wanted), least(k.z ^ wanted, k.w ^ wanted));
        if (found >> bits == 0u) return found;
        h = (h + 1u) & last;
    }
}

/* Empties the table, and puts n columns into it. */
INLINE void fill_table(SHARED u32 *table, u32 bits, GLOBAL const idx_t *columns, u32 n, idx_t low, u32 lane,
                       u32 team)
{
    const u32 words = 2u << bits;
#if TULLE_CUDA
    uint4 free;
    free.x = free.y = free.z = free.w = NOTHING32;
    for (u32 h = lane; h < words / 4u; h += team) ((SHARED uint4 *)table)[h] = free;
#else
    for (u32 s = lane; s < words; s += team) table[s] = NOTHING32;
#endif
    OWN_SYNC(team);
    for (u32 i = lane; i < n; i += BATCH * team) {
        u32 column[BATCH];
        UNROLL for (u32 k = 0; k < BATCH; k++)
            column[k] = i + k * team < n ? (u32)(columns[i + k * team] - low) : NOTHING32;
        UNROLL for (u32 k = 0; k < BATCH; k++) {
            const u32 word = column[k] << bits | (i + k * team);
            u32 s = 4u * BUCKET(column[k], bits);
            while (column[k] != NOTHING32
                   && (PEEK32(&table[s]) != NOTHING32
                       || ATOMIC_CAS32(&table[s], NOTHING32, word) != NOTHING32))
                s = (s + 1u) & (words - 1u);
        }
    }
    OWN_SYNC(team);
}

#if TULLE_CUDA
/* A lane's entry of A: its row of B, and the factor. */
typedef struct entry_t {
    ptr_t b;
    u32   length;
    val_t a;
} entry_t;

INLINE entry_t entry_at(GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                        GLOBAL const ptr_t *RESTRICT b_ptr, ptr_t p, ptr_t a_end)
{
    entry_t x = {0, 0u, VAL_ZERO};
    if (p < a_end) {
        const idx_t k = a_col[p];
        x.b = b_ptr[k];
        x.length = (u32)(b_ptr[k + 1] - x.b);
        x.a = a_val[p];
    }
    return x;
}

/* Adds the products of a window to the sums; segment: the number of entries of A that begin up to this lane,
 * starts: where they do. */
INLINE void add_in_turns(SHARED val_t *sums, u32 place, val_t v, bool on, u32 segment, u32 starts, u32 lane)
{
    u32 turn = segment, first = starts & 1u, last = popcount32(starts);
    if (last - first >= TURNS) {
        const u32 same = lanes_match(on ? place : NOTHING32 - lane);
        turn = popcount32(same & ((1u << lane) - 1u));
        first = 0u;
        last = lanes_max(turn);
    }
    for (u32 k = first; k <= last; k++) {
        if (on && turn == k) sums[place] = VAL_ADD(sums[place], v);
        OWN_SYNC(32u);
    }
}

/* Adds the products of the entries of all lanes. */
INLINE void add_products(SHARED val_t *sums, SHARED const u32 *table, u32 bits, entry_t x,
                         GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val, idx_t low,
                         u32 lane)
{
    const u32 live = lanes_vote(x.length > 0u, 32u), entries = popcount32(live);
    if (live & (live + 1u)) {                       /* rows of B without entries among the others */
        const u32 from = bit_at(live, lane);
        x.b = LANE_FROM(x.b, from, 32u);
        x.length = LANE_FROM(x.length, from, 32u);
        x.a = VAL_FROM(x.a, from, 32u);
        if (lane >= entries) x.length = 0u;
    }
    u32 start = x.length;                           /* the number of products of the entries before */
    UNROLL for (u32 d = 1; d < 32u; d <<= 1) {
        const u32 left = __shfl_up_sync(0xffffffffu, start, d);
        if (lane >= d) start += left;
    }
    const u32 total = LANE_FROM(start, 31u, 32u);
    start -= x.length;
    x.b -= start;                                   /* b + q: the position of product q */
    if (lane >= entries) start = NOTHING32;
    u32 begun = NOTHING32;                          /* the last entry before the window */
    for (u32 base = 0; base < total; base += 32u) {
        const u32 at = start - base, q = base + lane;
        const u32 starts = lanes_sum_of(0xffffffffu, at < 32u ? 1u << at : 0u);
        const u32 segment = popcount32(starts & NOTHING32 >> (31u - lane)), e = begun + segment;
        const ptr_t from = LANE_FROM(x.b, e, 32u);
        const val_t factor = VAL_FROM(x.a, e, 32u);
        const bool on = q < total;
        u32 place = 0;
        val_t v = VAL_ZERO;
        if (on) {
            const u32 column = (u32)(b_col[from + q] - low);
            v = VAL_MUL(factor, b_val[from + q]);
            place = place_of(table, bits, column);
        }
        OWN_SYNC(32u);
        add_in_turns(sums, place, v, on, segment, starts, lane);
        begun += popcount32(starts);
    }
}
#endif

KERNEL_FOR(CREW_BLOCKS(10), flat_values)(SHARED_ARG u32 rows, GLOBAL const u32 *RESTRICT list,
    GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
    GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
    GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val, GLOBAL const idx_t *RESTRICT lo,
    u32 slab, u32 bits, GLOBAL const ptr_t *RESTRICT c_ptr, GLOBAL const idx_t *RESTRICT c_col,
    GLOBAL val_t *RESTRICT c_val)
{
    SHARED_MEMORY
#if TULLE_CUDA
    const u32 team = 32u;
#else
    STATIC_SHARED ptr_t begins[THREADS_MAX];        /* current rows of B */
    STATIC_SHARED u32 lengths[THREADS_MAX];
    STATIC_SHARED val_t factors[THREADS_MAX];
    const u32 team = thread_count(), stage = 0u;
#endif
    const u32 t = thread_id(), lane = t % team, mine = t / team, teams = thread_count() / team;
    SHARED u32 *table = (SHARED u32 *)(shared_memory + slab * mine);
    SHARED val_t *sums = (SHARED val_t *)(table + (2u << bits));

    for (u64 i = (u64)block_id() * teams + mine; i < rows; i += (u64)block_count() * teams) {
        const u32 r = row_at(list, i);
        const ptr_t to = c_ptr[r], a_end = a_ptr[r + 1];
        const u32 n = (u32)(c_ptr[r + 1] - to);
        const idx_t low = lo[r];
        ptr_t p = a_ptr[r];
#if TULLE_CUDA
        entry_t x = entry_at(a_col, a_val, b_ptr, p + lane, a_end);  /* comes while the table is filled */
#endif
        for (u32 j = lane; j < n; j += team) sums[j] = VAL_ZERO;
        fill_table(table, bits, c_col + to, n, low, lane, team);
        for (; p < a_end; p += team) {
#if TULLE_CUDA
            add_products(sums, table, bits, x, b_col, b_val, low, lane);
            x = entry_at(a_col, a_val, b_ptr, p + 32u + lane, a_end);
#else
            const u32 here = a_end - p < team ? (u32)(a_end - p) : team;
            TEAM_PRODUCTS(team, here, p,
                const u32 place = place_of(table, bits, (u32)(b_col[b + j] - low));
                sums[place] = VAL_ADD(sums[place], VAL_MUL(a, b_val[b + j]));)
#endif
        }
        OWN_SYNC(team);
        for (u32 j = lane; j < n; j += team) c_val[to + j] = sums[j];
        OWN_SYNC(team);
    }
}
