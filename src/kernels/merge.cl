/* SPDX-License-Identifier: MIT
 *
 * merge.cl - bhSPARSE's merge method (Liu and Vinter, section VI.A and Figure 3): long rows, a block per row.
 *
 * The result, sorted and without duplicates, is in shared memory.  The input comes in batches of at most one
 * product per thread, in registers: part of a row of B, or several short rows, which are first ranked or
 * sorted together.  Each product looks up its column in the result by binary search and is added if it is
 * there.  Products with new columns are compacted by a prefix sum and merged with the result by merge path:
 * each thread computes a few consecutive entries of the new result in registers, then all write.  The merge
 * proceeds from the end downwards, so that the result grows in place and entries below the first new column
 * are not touched.
 *
 *   merge        the result has room for `room` entries in shared memory.  If a batch does not fit, the row
 *                is saved to its area with its state (WAIT_), and the next launch, with more room, continues
 *   merge_deep   the shared memory is a first level: when it is full, it is merged in the same way with the
 *                result in global memory.  This continues while the row's area has room for another level, or
 *                is as large as the row can become
 *
 * Sums in shared memory are continued product by product, in the order of A.  A word of a batch is a column
 * and, in the lower `bits`, the index of the product.  If columns leave no room for that, bits is 0, and a
 * batch consists of a single row of B.
 *
 * Shared memory: room + batch values and keys, batch row pointers and words. */

#define ITEMS 5u         /* entries of a merge result per thread; odd, so that neighbouring threads write
                                 * to different banks */
#define DEEP_ITEMS 4u    /* the same for global memory; fewer, to save registers */
#define RUNS 6u         /* up to so many rows of B in a batch are ranked by binary search, more are sorted */

typedef struct pad_t {
    SHARED val_t *vals, *raw;           /* values of the result, of the batch */
    SHARED ptr_t *begins;               /* rows of B                   */
    SHARED key_t *keys, *words;
    SHARED u32   *starts;               /* index of the first product  */
    SHARED u32   *scan, *mark;
} pad_t;

typedef struct source_t {
    GLOBAL const idx_t *a_col, *b_col;
    GLOBAL const val_t *a_val, *b_val;
    GLOBAL const ptr_t *b_ptr;
    ptr_t  end;                         /* end of the row of A                           */
    idx_t  low;                         /* its first column of C                         */
    u32    batch, bits;
    ptr_t  at, skip;                    /* the next entry of A; entries of its row of B already used */
    ptr_t  begin, all;                  /* this thread's row of B in the next batch, fetched ahead */
} source_t;

INLINE source_t source_make(GLOBAL const idx_t *a_col, GLOBAL const val_t *a_val, GLOBAL const ptr_t *b_ptr,
                            GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val, u32 batch, u32 bits)
{
    source_t s;
    s.a_col = a_col;
    s.a_val = a_val;
    s.b_ptr = b_ptr;
    s.b_col = b_col;
    s.b_val = b_val;
    s.batch = batch;
    s.bits = bits;
    return s;
}

/* Number of entries of A that a batch can use. */
INLINE u32 source_entries(const source_t *s, ptr_t at)
{
    const ptr_t left = s->end - at, look = s->bits ? s->batch : 1u;
    return (u32)(left < look ? left : look);
}

INLINE void source_fetch(source_t *s, ptr_t at, ptr_t skip)
{
    s->begin = 0;
    s->all = 0;
    if (thread_id() < source_entries(s, at)) {
        const idx_t k = s->a_col[at + thread_id()];
        s->begin = s->b_ptr[k] + (thread_id() == 0u ? skip : (ptr_t)0);
        s->all = s->b_ptr[k + 1] - s->begin;
    }
}

INLINE pad_t pad_make(SHARED u64 *memory, u32 room, u32 batch, SHARED u32 *scan, SHARED u32 *mark)
{
    pad_t p;
    p.vals = (SHARED val_t *)memory;
    p.raw = p.vals + room;
    p.begins = (SHARED ptr_t *)(p.raw + batch);
    p.keys = (SHARED key_t *)(p.begins + batch);
    p.words = p.keys + room;
    p.starts = (SHARED u32 *)(p.words + batch);
    p.scan = scan;
    p.mark = mark;
    return p;
}

/* Merge path, downwards: merges the `held` sorted entries KEY_OF(i), VALUE_OF(i) with the `fresh` sorted
 * entries of more_keys and more_vals; PUT stores each entry of the result.  Every thread of the block must
 * call it; all keys differ. */
#define MERGE_DOWN(items, held, fresh, more_keys, more_vals, left_word, KEY_OF, VALUE_OF, PUT)              \
    do {                                                                                                    \
        u32 tl_end = (held) + (fresh), tl_left = (fresh);                                                   \
        while (tl_left > 0u) {                                                                              \
            const u32 tl_tile = thread_count() * items, tl_from = (tl_end - 1u) / tl_tile * tl_tile;        \
            const u32 tl_d = tl_from + thread_id() * items, tl_held = tl_end - tl_left;                     \
            u32 tl_a = 0, tl_b = 0;                                                                         \
            key_t tl_k[items];                                                                              \
            val_t tl_v[items];                                                                              \
            if (tl_d < tl_end) {                                                                            \
                u32 tl_most = tl_d < tl_left ? tl_d : tl_left;                                              \
                while (tl_b < tl_most) {                                                                    \
                    const u32 tl_mid = (tl_b + tl_most) / 2u;                                               \
                    const u32 tl_other = tl_d - 1u - tl_mid;                                                \
                    if (tl_other >= tl_held || KEY_OF(tl_other) > (more_keys)[tl_mid]) tl_b = tl_mid + 1u;  \
                    else tl_most = tl_mid;                                                                  \
                }                                                                                           \
                tl_a = tl_d - tl_b;                                                                         \
            }                                                                                               \
            if (thread_id() == 0u) *(left_word) = tl_b;                                                     \
            key_t tl_ka = tl_d < tl_end && tl_a < tl_held ? KEY_OF(tl_a) : (key_t)0;                        \
            key_t tl_kb = tl_d < tl_end && tl_b < tl_left ? (more_keys)[tl_b] : (key_t)0;                   \
            UNROLL for (u32 tl_e = 0; tl_e < items; tl_e++)                                                 \
                if (tl_d + tl_e < tl_end) {                                                                 \
                    if (tl_b < tl_left && (tl_a >= tl_held || tl_kb < tl_ka)) {                             \
                        tl_k[tl_e] = tl_kb;                                                                 \
                        tl_v[tl_e] = (more_vals)[tl_b++];                                                   \
                        if (tl_b < tl_left) tl_kb = (more_keys)[tl_b];                                      \
                    } else {                                                                                \
                        tl_k[tl_e] = tl_ka;                                                                 \
                        tl_v[tl_e] = VALUE_OF(tl_a);                                                        \
                        if (++tl_a < tl_held) tl_ka = KEY_OF(tl_a);                                         \
                    }                                                                                       \
                }                                                                                           \
            BARRIER();                                                                                      \
            UNROLL for (u32 tl_e = 0; tl_e < items; tl_e++)                                                 \
                if (tl_d + tl_e < tl_end) PUT(tl_d + tl_e, tl_k[tl_e], tl_v[tl_e]);                         \
            tl_left = *(left_word);                                                                         \
            tl_end = tl_from;                                                                               \
            BARRIER();                                                                                      \
        }                                                                                                   \
    } while (0)

/* Merges the next batch into the result of *len entries.  Returns false, and does nothing, if it might not
 * fit into `room`. */
INLINE bool merge_batch(pad_t pad, source_t *s, u32 room, u32 *len)
{
    const u32 t = thread_id(), batch = s->batch, bits = s->bits, entries = source_entries(s, s->at);
    u32 e = 0, length = 0, total;
    if (t < entries) {
        length = s->all > batch ? batch + 1u : (u32)s->all;     /* more need not be known */
        pad.begins[t] = s->begin;
    }
    const u32 start = block_scan(length, pad.scan, &total);
    if (t < entries) pad.starts[t] = start;
    BARRIER();
    const u32 n = total < batch ? total : batch;
    if (t < n) {
        u32 beyond = entries;                                   /* bisects for the last entry that starts
                                                         * at t or before */
        while (beyond - e > 1u) {
            const u32 mid = (e + beyond) / 2u;
            if (pad.starts[mid] <= t) e = mid;
            else beyond = mid;
        }
        const u32 within = t - pad.starts[e];
        const ptr_t b = pad.begins[e] + within;
        pad.raw[t] = VAL_ADD(VAL_ZERO, VAL_MUL(s->a_val[s->at + e], s->b_val[b]));
        pad.words[t] = (key_t)(s->b_col[b] - s->low) << bits | (bits ? (key_t)t : (key_t)0);
        if (t == 0u) pad.mark[0] = e;
        if (t == n - 1u) {
            pad.mark[1] = e;
            pad.mark[2] = within + 1u;
        }
    }
    const u32 size = 1u << log2_ceil(n);
    if (t >= n && t < size) pad.words[t] = KEY_NONE;
    BARRIER();
    const u32 first = n ? pad.mark[0] : 0u, last = n ? pad.mark[1] : 0u;
    const bool single = first == last, ranked = !single && last - first < RUNS;
    ptr_t next_at = s->at + entries, next_skip = 0;
    if (total > batch) {
        next_at = s->at + last;
        next_skip = (last == 0u ? s->skip : (ptr_t)0) + pad.mark[2];
    }
    source_fetch(s, next_at, next_skip);
    key_t word = 0;
    u32 rank = 0;
    if (ranked && t < n) {
        word = pad.words[t];
        rank = t - pad.starts[e];
        for (u32 f = first; f <= last; f++) {
            const u32 from = pad.starts[f];
            u32 low = from, beyond = f == e ? from : f == last ? n : pad.starts[f + 1u];
            while (low < beyond) {
                const u32 mid = (low + beyond) / 2u;
                if (pad.words[mid] < word) low = mid + 1u;
                else beyond = mid;
            }
            rank += low - from;
        }
    }
    BARRIER();
    if (ranked && t < n) pad.words[rank] = word;
    crew_sort(pad.words, single || ranked ? 1u : size, thread_count(), t);

    bool head = false, found = false;
    u32 at = 0, fresh;
    key_t key = 0;
    val_t sum = VAL_ZERO;
    if (t < n) {
        const u32 mask = (1u << bits) - 1u;
        key = pad.words[t] >> bits;
        head = t == 0u || pad.words[t - 1u] >> bits != key;
        if (head) {
            u32 beyond = *len;
            while (at < beyond) {
                const u32 mid = (at + beyond) / 2u;
                if (pad.keys[mid] < key) at = mid + 1u;
                else beyond = mid;
            }
            found = at < *len && pad.keys[at] == key;
            sum = pad.raw[single ? t : (u32)pad.words[t] & mask];
            if (found) sum = VAL_ADD(pad.vals[at], sum);
            for (u32 q = t + 1u; q < n && pad.words[q] >> bits == key; q++)
                sum = VAL_ADD(sum, pad.raw[(u32)pad.words[q] & mask]);
        }
    }
    rank = block_scan(head && !found ? 1u : 0u, pad.scan, &fresh);
    const bool fits = *len + fresh <= room;
    if (fits && found) pad.vals[at] = sum;
    if (fits && head && !found) {
        pad.words[rank] = key;
        pad.raw[rank] = sum;
    }
    BARRIER();
    const u32 more = fits ? fresh : 0u, held = *len;
#define KEY_OF(i)       pad.keys[i]
#define VALUE_OF(i)     pad.vals[i]
#define PUT(i, k, v)    do { pad.keys[i] = (k); pad.vals[i] = (v); } while (0)
    MERGE_DOWN(ITEMS, held, more, pad.words, pad.raw, &pad.mark[3], KEY_OF, VALUE_OF, PUT);
#undef KEY_OF
#undef VALUE_OF
#undef PUT
    *len = held + more;
    if (fits) {
        s->at = next_at;
        s->skip = next_skip;
    }
    return fits;
}

/* Appends an unfinished row to the next list, with a part of the next area. */
INLINE void wait_for_more(GLOBAL u64 *next, GLOBAL u64 *next_waiting, u32 next_room, u32 need, u64 from,
                          u64 at, u64 skip, u32 r, u32 len)
{
    const u64 slot = ATOMIC_ADD64(&next[0], 1u),
              to = ATOMIC_ADD64(&next[1], (u64)(need < next_room ? need : next_room));
    GLOBAL u64 *w = next_waiting + slot * WAIT_WORDS;
    w[WAIT_TO] = to;
    w[WAIT_FROM] = from;
    w[WAIT_A] = at;
    w[WAIT_B] = skip;
    w[WAIT_ROW] = (u64)len << 32 | r;
}

/* waiting: not given in the first launch, in which the rows of the list from `first` on start, with their
 * parts of C~ as areas. */
KERNEL(merge)(SHARED_ARG u32 first, u32 count, GLOBAL const u32 *list, GLOBAL u64 *waiting,
              GLOBAL const ptr_t *a_ptr, GLOBAL const idx_t *a_col, GLOBAL const val_t *a_val,
              GLOBAL const ptr_t *b_ptr, GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val,
              GLOBAL const u32 *products, GLOBAL const u32 *span, GLOBAL const idx_t *lo, u32 batch, u32 bits,
              u32 room, GLOBAL const ptr_t *place, GLOBAL idx_t *area_col, GLOBAL val_t *area_val,
              GLOBAL const idx_t *old_col, GLOBAL const val_t *old_val, u32 next_room, GLOBAL u64 *next,
              GLOBAL u64 *next_waiting, GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 mark[4];
    const pad_t pad = pad_make(shared_memory, room, batch, scan, mark);
    const u32 t = thread_id(), threads = thread_count();
    const bool begun = first == NOTHING32;
    source_t s = source_make(a_col, a_val, b_ptr, b_col, b_val, batch, bits);
    for (u32 i = block_id(); i < count; i += block_count()) {
        GLOBAL u64 *w = waiting + (begun ? (u64)i * WAIT_WORDS : 0);
        const u32 r = begun ? (u32)w[WAIT_ROW] : list[first + i];
        const u64 to = begun ? w[WAIT_TO] : (u64)place[r];
        u32 len = begun ? (u32)(w[WAIT_ROW] >> 32) : 0u;
        s.at = begun ? (ptr_t)w[WAIT_A] : a_ptr[r];
        s.skip = begun ? (ptr_t)w[WAIT_B] : (ptr_t)0;
        s.end = a_ptr[r + 1];
        s.low = lo[r];
        const u64 from = begun ? w[WAIT_FROM] : 0;
        for (u32 k = t; k < len; k += threads) {
            pad.keys[k] = (key_t)(old_col[from + k] - s.low);
            pad.vals[k] = old_val[from + k];
        }
        BARRIER();
        bool fits = true;
        source_fetch(&s, s.at, s.skip);
        while (fits && s.at < s.end) fits = merge_batch(pad, &s, room, &len);
        for (u32 k = t; k < len; k += threads) {
            area_col[to + k] = s.low + (idx_t)pad.keys[k];
            area_val[to + k] = pad.vals[k];
        }
        if (t == 0u && fits) c_count[r] = (ptr_t)len;
        if (t == 0u && !fits) {
            if (begun) w[WAIT_TO] = WAIT_NOWHERE;
            wait_for_more(next, next_waiting, next_room, products[r] < span[r] ? products[r] : span[r], to,
                          (u64)s.at, (u64)s.skip, r, len);
        }
        BARRIER();
    }
}

KERNEL(merge_deep)(SHARED_ARG u32 count, GLOBAL u64 *waiting, GLOBAL const ptr_t *a_ptr,
                   GLOBAL const idx_t *a_col, GLOBAL const val_t *a_val, GLOBAL const ptr_t *b_ptr,
                   GLOBAL const idx_t *b_col, GLOBAL const val_t *b_val, GLOBAL const u32 *products,
                   GLOBAL const u32 *span, GLOBAL const idx_t *lo, u32 batch, u32 bits, u32 room,
                   u32 area_room, GLOBAL idx_t *area_col, GLOBAL val_t *area_val, GLOBAL const idx_t *old_col,
                   GLOBAL const val_t *old_val, u32 next_room, GLOBAL u64 *next, GLOBAL u64 *next_waiting,
                   GLOBAL ptr_t *c_count)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    STATIC_SHARED u32 mark[4];
    const pad_t pad = pad_make(shared_memory, room, batch, scan, mark);
    const u32 t = thread_id(), threads = thread_count();
    source_t s = source_make(a_col, a_val, b_ptr, b_col, b_val, batch, bits);
    for (u32 i = block_id(); i < count; i += block_count()) {
        GLOBAL u64 *w = waiting + (u64)i * WAIT_WORDS;
        const u32 r = (u32)w[WAIT_ROW], need = products[r] < span[r] ? products[r] : span[r];
        const u64 to = w[WAIT_TO], from = w[WAIT_FROM];
        u32 held = (u32)(w[WAIT_ROW] >> 32);
        s.at = (ptr_t)w[WAIT_A];
        s.skip = (ptr_t)w[WAIT_B];
        s.end = a_ptr[r + 1];
        s.low = lo[r];
        GLOBAL idx_t *col = area_col + to;
        GLOBAL val_t *val = area_val + to;
        for (u32 k = t; k < held; k += threads) {
            col[k] = old_col[from + k];
            val[k] = old_val[from + k];
        }
        BARRIER();
        bool open = true;
        while (open && s.at < s.end) {
            u32 len = 0, kept = 0;
            bool fits = true;
            source_fetch(&s, s.at, s.skip);
            while (fits && s.at < s.end) fits = merge_batch(pad, &s, room, &len);
            /* Columns already in the result are added there, the others are compacted. */
            for (u32 base = 0; base < len; base += threads) {
                const u32 k = base + t;
                key_t key = 0;
                val_t v = VAL_ZERO;
                u32 fresh = 0, total;
                if (k < len) {
                    u32 at = 0, beyond = held;
                    key = pad.keys[k];
                    v = pad.vals[k];
                    while (at < beyond) {
                        const u32 mid = at + (beyond - at) / 2u;
                        if ((key_t)(col[mid] - s.low) < key) at = mid + 1u;
                        else beyond = mid;
                    }
                    fresh = at == held || (key_t)(col[at] - s.low) != key;
                    if (!fresh) val[at] = VAL_ADD(val[at], v);
                }
                const u32 rank = kept + block_scan(fresh, pad.scan, &total);
                if (fresh) {
                    pad.keys[rank] = key;
                    pad.vals[rank] = v;
                }
                kept += total;
                BARRIER();
            }
#define KEY_OF(i)       (key_t)(col[i] - s.low)
#define VALUE_OF(i)     val[i]
#define PUT(i, k, v)    do { col[i] = s.low + (idx_t)(k); val[i] = (v); } while (0)
            MERGE_DOWN(DEEP_ITEMS, held, kept, pad.keys, pad.vals, &pad.mark[3], KEY_OF, VALUE_OF, PUT);
#undef KEY_OF
#undef VALUE_OF
#undef PUT
            held += kept;
            open = need <= area_room || held + room <= area_room;
        }
        if (t == 0u && s.at >= s.end) c_count[r] = (ptr_t)held;
        if (t == 0u && s.at < s.end) {
            w[WAIT_TO] = WAIT_NOWHERE;
            wait_for_more(next, next_waiting, next_room, need, to, (u64)s.at, (u64)s.skip, r, held);
        }
        BARRIER();
    }
}
