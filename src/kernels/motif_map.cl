/* SPDX-License-Identifier: MIT
 *
 * motif_map.cl - selects the motifs to use, and builds a map for each of them: the entry of the row of C that
 * each product is added to.
 *
 *   select   the motifs that have enough rows, short ones first, and the position of each in the maps
 *   map      builds the maps
 *
 * One block per motif.  It sorts the products of the representative row by column, equal columns in the order
 * of A; this order is the map.  For motif m, whose products begin at `at`:
 *
 *   columns   at + j       column j of the row of C, relative to the first
 *   starts    at + m + j   short motifs: the first product of entry j of C, one more at the end
 *   places    at           short motifs: a word per product, ordered by entry of C: the entry of A and the
 *                          position in its row of B, 16 bits each; else 16 bits per product, in the order of
 *                          A: its entry of C
 *
 * Shared memory: 8 bytes per product, their number rounded up to a power of two, and 4 bytes per entry of
 * A. */

/* A single block.  counts: rows of each slot, replaced by the number of its motif.  motifs: MOTIF_WORDS
 * each. */
KERNEL(motif_select)(u32 most, u32 least, u32 share, u32 room, u32 short_products, u32 short_entries,
                     GLOBAL const u32 *found, GLOBAL const u32 *list, GLOBAL const u32 *reps,
                     GLOBAL u32 *counts, GLOBAL const ptr_t *a_ptr, GLOBAL const u32 *products,
                     GLOBAL u32 *motifs, GLOBAL u64 *summary)
{
    STATIC_SHARED u32 words[SCAN_WORDS];
    STATIC_SHARED u32 low, high, rows, short_rows, entries_short, entries_all, longest, end;
    const u32 t = thread_id(), threads = thread_count(), all = found[1] < most ? found[1] : most;
    if (t == 0u) {
        low = 0u, high = 0u, rows = 0u, short_rows = 0u;
        entries_short = 0u, entries_all = 0u, longest = 0u, end = 0u;
    }
    BARRIER();
    for (u32 i = t; i < all; i += threads) {
        const u32 n = counts[list[i]];
        if (n >= least) ADD_SPLIT(&low, &high, (u64)n * products[reps[list[i]]]);
    }
    BARRIER();
    /* times 100: overflows only for products with more than 2^57 multiplications */
    const u64 covered = (u64)PEEK32(&high) << 32 | PEEK32(&low);
    const bool worth = covered > 0u && covered * 100u >= summary[SUM_PRODUCTS] * share;
    u32 number = 0, at = 0, shorts = 0;
    BARRIER();
    if (t == 0u) {
        low = 0u;
        high = 0u;
    }
    BARRIER();
    for (u32 way = 0; way < 2u; way++) {
        for (u32 base = 0; base < all; base += threads) {
            const u32 i = base + t;
            u32 s = 0, q = 0, n = 0, size = 0, entries = 0, total, chosen;
            bool here = i < all;
            if (here) {
                s = list[i];
                q = reps[s];
                size = products[q];
                entries = (u32)(a_ptr[q + 1] - a_ptr[q]);
                here = (size <= short_products && entries <= short_entries) == (way == 0u);
                n = counts[s];
            }
            bool mine = here && worth && n >= least;
            const u32 before = at + block_scan(mine ? size : 0u, words, &total);
            mine = mine && before + size <= room;
            BARRIER();
            const u32 id = number + block_scan(mine ? 1u : 0u, words, &chosen);
            BARRIER();
            if (here) counts[s] = mine ? id : NOTHING32;
            if (mine) {
                GLOBAL u32 *m = motifs + MOTIF_WORDS * id;
                m[MOTIF_ROW] = q;
                m[MOTIF_SIZE] = size;
                m[MOTIF_AT] = before;
                ADD_SPLIT(&low, &high, (u64)n * size);
                ATOMIC_ADD32(&rows, n);
                if (way == 0u) ATOMIC_ADD32(&short_rows, n);
                if (way == 0u) ATOMIC_MAX32(&entries_short, entries);
                ATOMIC_MAX32(&entries_all, entries);
                ATOMIC_MAX32(&longest, size);
                ATOMIC_MAX32(&end, before + size);
            }
            at += total;
            number += chosen;
        }
        if (way == 0u) shorts = number;
    }
    BARRIER();
    if (t == 0u) {
        GLOBAL u64 *sum = summary + SUM_MOTIF;
        sum[MOTIF_CLASSES] = found[0];
        sum[MOTIF_FOUND] = found[1];
        sum[MOTIF_USED] = number;
        sum[MOTIF_SHORT] = shorts;
        sum[MOTIF_ROWS] = rows;
        sum[MOTIF_PRODUCTS] = (u64)high << 32 | low;
        sum[MOTIF_SHORT_ROWS] = short_rows;
        sum[MOTIF_SHORT_ENTRIES] = entries_short;
        sum[MOTIF_ENTRIES] = entries_all;
        sum[MOTIF_LONGEST] = longest;
        sum[MOTIF_ROOM] = end;
    }
}

CREW_SORT(word_sort, u64)

KERNEL(motif_map)(SHARED_ARG u32 room, u32 shorts, GLOBAL const u32 *RESTRICT found,
                  GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
                  GLOBAL const ptr_t *RESTRICT b_ptr, GLOBAL const idx_t *RESTRICT b_col,
                  GLOBAL const idx_t *RESTRICT lo, GLOBAL u32 *motifs, GLOBAL u32 *columns,
                  GLOBAL u32 *starts, GLOBAL u32 *places, GLOBAL u64 *summary)
{
    SHARED_MEMORY
    STATIC_SHARED u32 scan[SCAN_WORDS];
    SHARED u64 *words = (SHARED u64 *)shared_memory;
    SHARED u32 *begins = (SHARED u32 *)(words + room);          /* first product of each entry of A */
    const u32 t = thread_id(), threads = thread_count(), m = block_id();
    const u32 r = found[MOTIF_WORDS * m + MOTIF_ROW], size = found[MOTIF_WORDS * m + MOTIF_SIZE];
    const u32 at = found[MOTIF_WORDS * m + MOTIF_AT];
    const ptr_t from = a_ptr[r];
    const u32 entries = (u32)(a_ptr[r + 1] - from);
    const idx_t low = lo[r];
    u32 sum = 0, total;
    for (u32 base = 0; base < entries; base += threads) {
        const u32 i = base + t;
        u32 length = 0;
        if (i < entries) {
            const idx_t k = a_col[from + i];
            length = (u32)(b_ptr[k + 1] - b_ptr[k]);
        }
        const u32 before = block_scan(length, scan, &total);
        if (i < entries) begins[i] = sum + before;
        sum += total;
        BARRIER();
    }
    const u32 whole = 1u << log2_ceil(size), top = entries > 1u ? 1u << log2_floor(entries) : 0u;
    for (u32 q = t; q < whole; q += threads) {
        u64 word = 0xffffffffffffffffUL;
        if (q < size) {
            u32 i = 0;  /* the last entry that begins here or before */
            for (u32 d = top; d > 0u; d >>= 1)
                if (i + d < entries && begins[i + d] <= q) i += d;
            const u32 j = q - begins[i];
            const idx_t column = b_col[b_ptr[a_col[from + i]] + j] - low;
            word = (u64)column << 32 | i << 16 | j;
        }
        words[q] = word;
    }
    BARRIER();
    word_sort(words, whole, threads, t);
    BARRIER();
    sum = 0;
    for (u32 base = 0; base < size; base += threads) {
        const u32 q = base + t;
        const u64 word = q < size ? words[q] : 0;
        const bool head = q < size && (q == 0u || (u32)(words[q - 1u] >> 32) != (u32)(word >> 32));
        const u32 one = head ? 1u : 0u, place = sum + block_scan(one, scan, &total) + one - 1u;
        if (head) columns[at + place] = (u32)(word >> 32);
        if (head && m < shorts) starts[at + m + place] = q;
        if (q < size) {
            if (m < shorts) places[at + q] = (u32)word;
            else ((GLOBAL u16 *)(places + at))[begins[(u32)word >> 16] + ((u32)word & 0xffffu)] = (u16)place;
        }
        sum += total;
        BARRIER();
    }
    if (t == 0u) {
        if (m < shorts) starts[at + m + sum] = size;
        else ATOMIC_MAX64(&summary[SUM_MOTIF + MOTIF_MOST], (u64)sum);
        motifs[MOTIF_WORDS * m + MOTIF_ROW] = r;
        motifs[MOTIF_WORDS * m + MOTIF_SIZE] = size;
        motifs[MOTIF_WORDS * m + MOTIF_AT] = at;
        motifs[MOTIF_WORDS * m + MOTIF_NNZ] = sum;
    }
}
