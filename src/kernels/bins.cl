/* SPDX-License-Identifier: MIT
 *
 * bins.cl - spECK's global load balancing: appends each row to the list of its class, keeps neighbouring rows
 * together, and merges short rows into blocks (Algorithm 2).
 *
 * A block processes one row per thread.  It ranks the rows within their class by prefix sums (the counters of
 * six classes are packed into a u64, ten bits each; those of CLASS_FEW and CLASS_FLAT are counted only if the
 * policy uses them) and reserves its part of each list with one atomic.  Rows of CLASS_ROWS are then merged:
 * two neighbouring groups of 2^i rows become one if both are complete and their hash tables fit into `room`
 * slots; after five rounds a group has at most 32 rows.
 *
 *   rest        the rows to process, `rows` of them; if it is not given: the first `rows` rows
 *   columns     for which rows the columns of C are known, or those of all_columns (numeric)
 *   summary     the number of rows of each class, which determines where its list starts (LIST_ROUND)
 *   list        rows, class by class, each list at its start
 *   groups      a word for each group of rows: its position in list (27 bits), number of rows minus one
 *               (5 bits); the groups of a class begin at the same start
 *   cursors     rows, then groups, of each class so far; zero at first */

#define PER 6u
#define BITS 10u
#define FIELD(x, c) (u32)(((x) >> (((c) % PER) * BITS)) & 1023u)
#define WORDS       ((CLASSES + PER - 1) / PER)
#define FEW_WORD    (CLASS_FEW / PER)           /* the first word with classes that not all policies use */

/* Adds the words of the threads before this one. */
#define SCAN_COUNTS(from, to)                                                               \
    for (u32 d = 1; d < threads; d <<= 1) {                                                 \
        u64 left[WORDS];                                                                    \
        BARRIER();                                                                          \
        UNROLL for (u32 w = from; w < to; w++) left[w] = t >= d ? counts[w][t - d] : 0;     \
        BARRIER();                                                                          \
        UNROLL for (u32 w = from; w < to; w++) counts[w][t] += left[w];                     \
    }

KERNEL(bins)(u32 rows, GLOBAL const u32 *rest, u32 numeric, GLOBAL const ptr_t *a_ptr,
             GLOBAL const u32 *products, GLOBAL const u32 *span, GLOBAL ptr_t *c_ptr,
             GLOBAL const u32 *columns, u32 all_columns, GLOBAL const u32 *limits, GLOBAL const u64 *summary,
             GLOBAL u32 *cursors, GLOBAL u32 *list, GLOBAL u32 *groups)
{
    STATIC_SHARED u64 counts[WORDS][THREADS_MAX];
    STATIC_SHARED u32 slots[THREADS_MAX];
    STATIC_SHARED u32 members[THREADS_MAX];
    STATIC_SHARED u32 base[CLASSES], start[CLASSES], total[CLASSES], group_start[ROWS_SIZES];
    const u32 t = thread_id(), threads = thread_count();
    const u32 i0 = block_id() * threads + t, r = i0 < rows && GIVEN(rest) ? rest[i0] : i0;
    u32 c = CLASS_EMPTY, need = 0;
    if (i0 < rows) {
        const u32 entries = (u32)(a_ptr[r + 1] - a_ptr[r]);
        if (numeric) {
            need = (u32)(c_ptr[r + 1] - c_ptr[r]);
            c = numeric_class(limits, entries, products[r], need, span[r],
                              columns_known(columns, all_columns, r));
        } else {
            need = products[r] < span[r] ? products[r] : span[r];
            c = symbolic_class(limits, entries, products[r], span[r]);
            if (c == CLASS_EMPTY || c == CLASS_DIRECT) c_ptr[r] = (ptr_t)products[r];   /* is exact */
        }
    }
    const int known = i0 < rows && c != CLASS_EMPTY, few = (limits[LIMIT_FEW] | limits[LIMIT_FLAT]) != 0u;
    const u64 one = known ? (u64)1 << ((c % PER) * BITS) : 0;
    UNROLL for (u32 w = 0; w < WORDS; w++) counts[w][t] = c / PER == w ? one : 0;
    SCAN_COUNTS(0, FEW_WORD)
    if (few) SCAN_COUNTS(FEW_WORD, WORDS)
    if (t < CLASSES) {
        u32 before = 0;
        for (u32 i = 0; i < t; i++) before += LIST_ROUND((u32)summary[SUM_ROWS + i]);
        base[t] = before;
    }
    BARRIER();
    if (t < CLASSES) {
        const u32 n = FIELD(counts[t / PER][threads - 1u], t);
        total[t] = n;
        start[t] = n ? base[t] + ATOMIC_ADD32(&cursors[t], n) : 0u;
    }
    const u32 rank = known ? FIELD(counts[c / PER][t], c) - 1u : 0u;
    BARRIER();
    if (known) list[start[c] + rank] = r;

    /* Merging: the members of all classes are stored consecutively, class by class. */
    const u32 m = c - CLASS_ROWS;                           /* 0, 1, ...: classes whose rows are merged */
    const int merges = known && c >= CLASS_ROWS && m < ROWS_SIZES;
    u32 mine = 0;
    if (merges) {
        for (u32 i = 0; i < m; i++) mine += total[CLASS_ROWS + i];
        mine += rank;
        slots[mine] = numeric ? NUMERIC_SLOTS(need) : SYMBOLIC_SLOTS(need);
        members[mine] = 1u;
    }
    const u32 n = merges ? total[c] : 0u;
    for (u32 step = 1; step < 32u; step <<= 1) {
        BARRIER();
        if (merges && (rank & (2u * step - 1u)) == 0u && rank + step < n && members[mine] == step) {
            const u32 other = members[mine + step];
            const int whole = other == step || rank + 2u * step > n;
            if (other && whole && slots[mine] + slots[mine + step] <= limits[LIMIT_ROOM + m]) {
                slots[mine] += slots[mine + step];
                members[mine] += other;
                members[mine + step] = 0;
            }
        }
    }
    BARRIER();
    const u32 size = merges ? members[mine] : 0u;
    BARRIER();
    counts[0][t] = size ? (u64)1 << (m * BITS) : 0;
    for (u32 d = 1; d < threads; d <<= 1) {
        BARRIER();
        const u64 left = t >= d ? counts[0][t - d] : 0;
        BARRIER();
        counts[0][t] += left;
    }
    BARRIER();
    if (t < ROWS_SIZES) {
        const u32 g = FIELD(counts[0][threads - 1u], t);
        group_start[t] = g ? base[CLASS_ROWS + t] + ATOMIC_ADD32(&cursors[CLASSES + CLASS_ROWS + t], g) : 0u;
    }
    BARRIER();
    if (size) {
        const u32 at = group_start[m] + FIELD(counts[0][t], m) - 1u;
        groups[at] = (start[c] + rank) << 5 | (size - 1u);
    }
}
