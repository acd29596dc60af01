/* SPDX-License-Identifier: MIT
 *
 * motif_map.cl - for each motif, once: where in the row of C each of its products belongs.
 *
 * A block a motif.  The products of the row that stands for it are sorted by column, those of one column in
 * the order of A; that order is the map.  For motif m, whose products begin at `at`:
 *
 *   columns   at + j       column j of the row of C, less the first
 *   starts    at + m + j   short motifs: the first product of entry j of C, one more at the end
 *   places    at           short motifs: a word a product, by entry of C: entry of A and place in its row of
 *                          B, 16 bits each; else 16 bits a product, in the order of A: its entry of C
 *
 * Shared memory: a word of 8 bytes a product, a power of two, and 4 bytes for each entry of A. */

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
    SHARED u32 *begins = (SHARED u32 *)(words + room);          /* the first product of each entry of A */
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
            u32 i = 0;  /* the last entry that begins up to here: it is not empty */
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
