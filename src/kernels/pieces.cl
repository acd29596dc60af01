/* SPDX-License-Identifier: MIT
 *
 * pieces.cl - divides rows of very different lengths into pieces of similar lengths, for spmm.cl.
 *
 * A row of more than 2^most_log2 entries is divided into parts of that length; shorter rows stay whole.  The
 * parts come first, then the rows in classes of decreasing length (each half as long as the one before), in
 * their order within a class.  So the threads of a warp have about equal work, and the longest pieces start
 * first.  pieces_look counts, pieces_place computes prefix sums, pieces_fill writes; block i of look and of
 * fill processes the same PIECE_ROWS rows. */

/* The same as in src/gpu/rows.c. */
#define PIECE_CLASSES   16              /* parts, then lengths; the last: rows in parts                  */
#define PIECE_JOINS     15
#define PIECE_ROWS      1024
typedef struct { u32 row, part; u64 begin; u32 length, rows; } piece_t;

/* The class of a row, and its number of pieces. */
INLINE u32 piece_class(u64 length, u32 most_log2, u32 *count)
{
    *count = 1u;
    if (length <= 4u) return most_log2 - 1u;
    if (length <= (u64)1 << most_log2) return 1u + most_log2 - log2_ceil((u32)length);
    *count = (u32)((length + ((u64)1 << most_log2) - 1u) >> most_log2);
    return 0u;
}

INLINE u64 row_length(GLOBAL const ptr_t *ptr, u32 row)
{
    const i64 length = (i64)ptr[row + 1u] - (i64)ptr[row];
    return length < 0 ? (u64)0 : (u64)length;
}

/* totals: pieces of each class, rows divided into parts, length of the longest row. */
KERNEL(pieces_look)(u32 rows, GLOBAL const ptr_t *ptr, u32 most_log2, GLOBAL u32 *counts, GLOBAL u64 *totals)
{
    STATIC_SHARED u32 mine[PIECE_CLASSES];
    STATIC_SHARED u32 longest[2];
    if (thread_id() == 0u) {
        for (u32 c = 0; c < PIECE_CLASSES; c++) mine[c] = 0u;
        longest[0] = 0u;
        longest[1] = 0u;
    }
    BARRIER();
    u64 most = 0;
    for (u32 round = 0; round < PIECE_ROWS; round += thread_count()) {
        const u64 r = (u64)block_id() * PIECE_ROWS + round + thread_id();
        if (r < rows) {
            u32 n;
            const u64 length = row_length(ptr, (u32)r);
            const u32 c = piece_class(length, most_log2, &n);
            ATOMIC_ADD32(&mine[c], n);
            if (c == 0u) ATOMIC_ADD32(&mine[PIECE_JOINS], 1u);
            if (length > most) most = length;
        }
    }
    ATOMIC_MAX32(&longest[0], (u32)(most >> 32));
    BARRIER();
    if ((u32)(most >> 32) == PEEK32(&longest[0])) ATOMIC_MAX32(&longest[1], (u32)most);
    BARRIER();
    if (thread_id() == 0u) {
        for (u32 c = 0; c < PIECE_CLASSES; c++) {
            counts[c * block_count() + block_id()] = mine[c];
            if (mine[c]) ATOMIC_ADD64(&totals[c], (u64)mine[c]);
        }
        ATOMIC_MAX64(&totals[PIECE_CLASSES], (u64)longest[0] << 32 | longest[1]);
    }
}

/* Exclusive prefix sums of the counts, in place: block 0 sums the first ones (pieces of all classes, bundles
 * of twins.cl, blocks of tf32.cl), block 1 the others (rows divided into parts). */
KERNEL(pieces_place)(u32 first, u32 others, GLOBAL u32 *counts)
{
    STATIC_SHARED u32 words[SCAN_WORDS];
    GLOBAL u32 *const list = block_id() == 0u ? counts : counts + first;
    const u32 length = block_id() == 0u ? first : others;
    u32 before = 0;
    for (u32 at = 0; at < length; at += thread_count()) {
        const u32 i = at + thread_id(), x = i < length ? list[i] : 0u;
        u32 total;
        const u32 sum = block_scan(x, words, &total);
        if (i < length) list[i] = before + sum;
        before += total;
        BARRIER();
    }
}

KERNEL(pieces_fill)(u32 rows, GLOBAL const ptr_t *ptr, u32 most_log2, GLOBAL const u32 *places,
                    GLOBAL u32 *pieces, GLOBAL u32 *joins)
{
    STATIC_SHARED u32 cursor[PIECE_CLASSES];
    STATIC_SHARED u32 classes[THREADS_MAX];
    STATIC_SHARED u32 numbers[THREADS_MAX];
    if (thread_id() == 0u)
        for (u32 c = 0; c < PIECE_CLASSES; c++) cursor[c] = places[c * block_count() + block_id()];
    for (u32 round = 0; round < PIECE_ROWS; round += thread_count()) {
        const u64 r = (u64)block_id() * PIECE_ROWS + round + thread_id();
        u32 n = 0, c = PIECE_CLASSES;
        u64 length = 0;
        if (r < rows) {
            length = row_length(ptr, (u32)r);
            c = piece_class(length, most_log2, &n);
        }
        classes[thread_id()] = c;
        numbers[thread_id()] = n;
        BARRIER();
        u32 before = 0, joined = 0;
        for (u32 t = 0; t < thread_id(); t++)
            if (classes[t] == c) {
                before += numbers[t];
                joined++;
            }
        if (r < rows) {
            const u32 place = cursor[c] + before;
            GLOBAL piece_t *const to = (GLOBAL piece_t *)pieces + place;
            for (u32 j = 0; j < n; j++) {
                const u64 skip = (u64)j << most_log2, left = length - skip;
                piece_t piece;
                piece.row = (u32)r;
                piece.part = c == 0u ? place + j : NOTHING32;
                piece.begin = (u64)ptr[r] + skip;
                piece.length = (u32)(left < (u64)1 << most_log2 ? left : (u64)1 << most_log2);
                piece.rows = 1u;
                to[j] = piece;
            }
            if (c == 0u) {
                GLOBAL u32 *const join = joins + 3u * (cursor[PIECE_JOINS] + joined);
                join[0] = (u32)r;
                join[1] = place;
                join[2] = n;
            }
        }
        BARRIER();
        if (r < rows) {
            ATOMIC_ADD32(&cursor[c], n);
            if (c == 0u) ATOMIC_ADD32(&cursor[PIECE_JOINS], 1u);
        }
        BARRIER();
    }
}
