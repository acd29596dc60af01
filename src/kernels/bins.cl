/* SPDX-License-Identifier: MIT
 *
 * bins.cl - spECK's global load balancing: appends each row to the list of its class, keeps neighbouring rows
 * together, and merges short rows into blocks (Algorithm 2).
 *
 * A block processes one row per thread.  It ranks the rows within their class by prefix sums (the counters of
 * six classes are packed into a u64, ten bits each; those of CLASS_FEW are counted only if the policy uses
 * them) and reserves its part of each list with one atomic.  Rows of CLASS_ROWS are then merged: two
 * neighbouring groups of 2^i rows become one if both are complete and their hash tables fit into `room`
 * slots; after five rounds a group has at most 32 rows.
 *
 *   rest        the rows to process, `rows` of them; if it is not given: the first `rows` rows
 *   summary     the number of rows of each class, which determines where its list starts (LIST_ROUND)
 *   list        rows, class by class, each list at its start
 *   groups      a word for each group of rows: its position in list (27 bits), number of rows minus one
 *               (5 bits); the groups of a class begin at the same start
 *   cursors     rows, then groups, of each class so far; zero at first */

#define PER 6u
#define BITS 10u
#define FIELD(x, c) (u32)(((x) >> (((c) % PER) * BITS)) & 1023u)

KERNEL(bins)(u32 rows, GLOBAL const u32 *rest, u32 numeric, GLOBAL const ptr_t *a_ptr,
             GLOBAL const u32 *products, GLOBAL const u32 *span, GLOBAL ptr_t *c_ptr,
             GLOBAL const u32 *limits, GLOBAL const u64 *summary, GLOBAL u32 *cursors, GLOBAL u32 *list,
             GLOBAL u32 *groups)
{
    STATIC_SHARED u64 count0[THREADS_MAX], count1[THREADS_MAX], count2[THREADS_MAX];
    STATIC_SHARED u64 few0[THREADS_MAX], few1[THREADS_MAX];
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
            c = numeric_class(limits, entries, products[r], need, span[r]);
        } else {
            need = products[r] < span[r] ? products[r] : span[r];
            c = symbolic_class(limits, entries, products[r], span[r]);
            if (c == CLASS_EMPTY || c == CLASS_DIRECT) c_ptr[r] = (ptr_t)products[r];   /* is exact */
        }
    }
    const int known = i0 < rows && c != CLASS_EMPTY, few = limits[LIMIT_FEW] != 0u;
    const u64 one = known ? (u64)1 << ((c % PER) * BITS) : 0;
    count0[t] = c / PER == 0u ? one : 0;
    count1[t] = c / PER == 1u ? one : 0;
    count2[t] = c / PER == 2u ? one : 0;
    few0[t] = c / PER == 3u ? one : 0;
    few1[t] = c / PER == 4u ? one : 0;
    for (u32 d = 1; d < threads; d <<= 1) {
        BARRIER();
        u64 x0 = 0, x1 = 0, x2 = 0;
        if (t >= d) {
            x0 = count0[t - d];
            x1 = count1[t - d];
            x2 = count2[t - d];
        }
        BARRIER();
        count0[t] += x0;
        count1[t] += x1;
        count2[t] += x2;
    }
    if (few)
        for (u32 d = 1; d < threads; d <<= 1) {
            BARRIER();
            u64 x0 = 0, x1 = 0;
            if (t >= d) {
                x0 = few0[t - d];
                x1 = few1[t - d];
            }
            BARRIER();
            few0[t] += x0;
            few1[t] += x1;
        }
    if (t < CLASSES) {
        u32 before = 0;
        for (u32 i = 0; i < t; i++) before += LIST_ROUND((u32)summary[SUM_ROWS + i]);
        base[t] = before;
    }
    BARRIER();
    if (t < CLASSES) {
        const u32 z = threads - 1u;
        const u64 all = t / PER == 0u   ? count0[z]
                        : t / PER == 1u ? count1[z]
                        : t / PER == 2u ? count2[z]
                        : t / PER == 3u ? few0[z]
                                        : few1[z];
        const u32 n = FIELD(all, t);
        total[t] = n;
        start[t] = n ? base[t] + ATOMIC_ADD32(&cursors[t], n) : 0u;
    }
    const u64 place = c / PER == 0u   ? count0[t]
                      : c / PER == 1u ? count1[t]
                      : c / PER == 2u ? count2[t]
                      : c / PER == 3u ? few0[t]
                                      : few1[t];
    const u32 rank = known ? FIELD(place, c) - 1u : 0u;
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
    count0[t] = size ? (u64)1 << (m * BITS) : 0;
    for (u32 d = 1; d < threads; d <<= 1) {
        BARRIER();
        const u64 left = t >= d ? count0[t - d] : 0;
        BARRIER();
        count0[t] += left;
    }
    BARRIER();
    if (t < ROWS_SIZES) {
        const u32 g = FIELD(count0[threads - 1u], t);
        group_start[t] = g ? base[CLASS_ROWS + t] + ATOMIC_ADD32(&cursors[CLASSES + CLASS_ROWS + t], g) : 0u;
    }
    BARRIER();
    if (size) {
        const u32 at = group_start[m] + FIELD(count0[t], m) - 1u;
        groups[at] = (start[c] + rank) << 5 | (size - 1u);
    }
}
