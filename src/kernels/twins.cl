/* SPDX-License-Identifier: MIT
 *
 * twins.cl - rows after each other with the same columns made into bundles of up to TWIN_MOST, for spmm.cl:
 * with several unknowns a node, as finite elements have them, the rows of a node differ in their values only.
 *
 * A run of equal rows ends at every TWIN_RUN-th row, so that a row's place in its run is found among a few
 * words of bits. Look finds where bundles begin and counts them, pieces_place adds up, fill writes; a block
 * takes TWIN_ROWS rows.
 *
 * Memory: a bit a row and a word a block, until the bundles are made. */

/* As src/gpu/spmm.h has it. */
#define TWIN_ROWS       384
#define TWIN_RUN        96              /* divides TWIN_ROWS; a multiple of 32 and of TWIN_MOST */
#define TWIN_WORDS      (TWIN_ROWS / 32)
#define TWIN_TOTAL      17              /* where among the totals of pieces.cl */
typedef struct { u32 row, part; u64 begin; u32 length, rows; } piece_t;

/* firsts: bit i of a block: a bundle begins at its row i.  A may be anything: it is checked at the same
 * time. */
KERNEL(twins_look)(u32 rows, u32 team_log2, u64 nnz, GLOBAL const ptr_t *ptr, GLOBAL const idx_t *col,
                   GLOBAL u32 *firsts, GLOBAL u32 *counts, GLOBAL u64 *totals)
{
    STATIC_SHARED u32 other[TWIN_WORDS];        /* not as the row before */
    STATIC_SHARED u32 first[TWIN_WORDS];
    const u32 team = 1u << team_log2, lane = thread_id() & (team - 1u);
    const u64 base = (u64)block_id() * TWIN_ROWS;
    for (u32 w = thread_id(); w < TWIN_WORDS; w += thread_count()) {
        other[w] = 0u;
        first[w] = 0u;
    }
    BARRIER();
    for (u32 i = thread_id() >> team_log2; i < TWIN_ROWS && base + i < rows;
         i += thread_count() >> team_log2) {
        const u64 r = base + i;
        bool differs = i % TWIN_RUN == 0u, tells = lane == 0u;
        if (!differs) {
            const ptr_t before = ptr[r - 1u], begin = ptr[r], end = ptr[r + 1u], length = begin - before;
            differs = before >= begin || begin >= end || (u64)end > nnz || end - begin != length
                      || col[before] != col[begin];
            for (ptr_t p = begin + lane; !differs && p < end; p += team)
                if (col[p] != col[p - length]) differs = tells = true;
        }
        if (differs && tells) ATOMIC_OR32(&other[i >> 5], 1u << (i & 31u));
    }
    BARRIER();
    for (u32 i = thread_id(); i < TWIN_ROWS && base + i < rows; i += thread_count()) {
        u32 w = i >> 5, bits = other[w] & 0xffffffffu >> (31u - (i & 31u));
        while (!bits) bits = other[--w];
        if ((i - (32u * w + 31u - clz32(bits))) % TWIN_MOST == 0u)
            ATOMIC_OR32(&first[i >> 5], 1u << (i & 31u));
    }
    BARRIER();
    for (u32 w = thread_id(); w < TWIN_WORDS; w += thread_count())
        firsts[(u64)block_id() * TWIN_WORDS + w] = first[w];
    if (thread_id() == 0u) {
        u32 number = 0;
        for (u32 w = 0; w < TWIN_WORDS; w++) number += popcount32(first[w]);
        counts[block_id()] = number;
        ATOMIC_ADD64(&totals[TWIN_TOTAL], (u64)number);
    }
}

KERNEL(twins_fill)(u32 rows, GLOBAL const ptr_t *ptr, GLOBAL const u32 *firsts, GLOBAL const u32 *places,
                   GLOBAL u32 *pieces)
{
    STATIC_SHARED u32 first[TWIN_WORDS];
    STATIC_SHARED u32 place[TWIN_WORDS];
    const u64 base = (u64)block_id() * TWIN_ROWS;
    if (thread_id() == 0u) {
        u32 at = places[block_id()];
        for (u32 w = 0; w < TWIN_WORDS; w++) {
            first[w] = firsts[(u64)block_id() * TWIN_WORDS + w];
            place[w] = at;
            at += popcount32(first[w]);
        }
    }
    BARRIER();
    for (u32 i = thread_id(); i < TWIN_ROWS && base + i < rows; i += thread_count()) {
        const u32 bits = first[i >> 5];
        if (!(bits >> (i & 31u) & 1u)) continue;
        piece_t piece;
        piece.row = (u32)(base + i);
        piece.part = NOTHING32;
        piece.begin = ptr[base + i];
        piece.length = (u32)(ptr[base + i + 1u] - ptr[base + i]);
        piece.rows = 1u;
        for (u32 j = i + 1u; j < TWIN_ROWS && base + j < rows && !(first[j >> 5] >> (j & 31u) & 1u); j++)
            piece.rows++;
        ((GLOBAL piece_t *)pieces)[place[i >> 5] + popcount32(bits & ((1u << (i & 31u)) - 1u))] = piece;
    }
}
