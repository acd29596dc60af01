/* SPDX-License-Identifier: MIT
 *
 * choose.cl - assigns a row to a class and counts the classes within a block; included in every kernel file.
 * The classes are defined in classes.cl; src/gpu/accumulators.c has the kernel for each of them. */

/* ---- the class of a row, a function of its properties, for the symbolic and for the numeric step */

INLINE u32 few_bin(u32 products) { return products <= 2u ? 0u : log2_ceil(products) - 1u; }

INLINE u32 symbolic_class(GLOBAL const u32 *limits, u32 entries, u32 products, u32 span)
{
    if (products == 0u) return CLASS_EMPTY;
    if (entries == 1u && limits[LIMIT_DIRECT]) return CLASS_DIRECT;
    if (products <= limits[LIMIT_FEW_FIRST]) return CLASS_FEW + few_bin(products);
    if (products >= limits[LIMIT_BITS_MIN] && products <= limits[LIMIT_BITS_MAX]
        && (u64)span <= (u64)products * limits[LIMIT_BITS_PER])
        for (u32 i = 0; i < BITS_SIZES; i++)
            if (span <= limits[LIMIT_BITS + i]) return CLASS_BITS + i;
    if (products <= limits[LIMIT_FEW]) return CLASS_FEW + few_bin(products);
    const u32 need = products < span ? products : span;
    for (u32 i = 0; i < ROWS_SIZES && products <= limits[LIMIT_ROWS_MAX]; i++)
        if (need <= limits[LIMIT_ROWS + i]) return CLASS_ROWS + i;
    if (span <= limits[LIMIT_MASK]) return CLASS_MASK;
    for (u32 i = 0; i < BLOCK_SIZES; i++)
        if (need <= limits[LIMIT_BLOCK + i]) return CLASS_BLOCK + i;
    return need <= limits[LIMIT_HASH] ? CLASS_HASH : CLASS_DENSE;
}

INLINE u32 numeric_class(GLOBAL const u32 *limits, u32 entries, u32 products, u32 nnz, u32 span)
{
    if (nnz == 0u || products == 0u) return CLASS_EMPTY;    /* entries, but no products: it has a motif */
    if (entries == 1u && limits[LIMIT_DIRECT]) return CLASS_DIRECT;
    if (products <= limits[LIMIT_FEW_FIRST]) return CLASS_FEW + few_bin(products);
    const u64 bytes = RANK_BYTES((u64)span, (u64)nnz, limits[LIMIT_VALUE]);
    if (nnz >= limits[LIMIT_BITS_MIN] && nnz <= limits[LIMIT_BITS_MAX]
        && (u64)span <= (u64)nnz * limits[LIMIT_BITS_PER])
        for (u32 i = 0; i < BITS_SIZES; i++)
            if (bytes <= limits[LIMIT_BITS + i]) return CLASS_BITS + i;
    if (products <= limits[LIMIT_FEW]) return CLASS_FEW + few_bin(products);
    for (u32 i = 0; i < ROWS_SIZES; i++)
        if (nnz <= limits[LIMIT_ROWS + i]) return CLASS_ROWS + i;
    if ((u64)span <= (u64)nnz * limits[LIMIT_BLOCK_PER])
        for (u32 i = 0; i < BLOCK_SIZES; i++)
            if (bytes <= limits[LIMIT_BLOCK + i]) return CLASS_BLOCK + i;
    if ((u64)span <= (u64)nnz * limits[LIMIT_DENSE_PER]) return CLASS_DENSE;
    return nnz <= limits[LIMIT_HASH] ? CLASS_HASH : CLASS_DENSE;
}

/* The quantity that determines the shared memory of a row of the class; the host allocates what the row with
 * the largest one needs. */
INLINE u32 class_measure(u32 c, u32 numeric, u32 need, u32 span, u32 value)
{
    if (c >= CLASS_FEW) return need;
    const int bits = c < CLASS_ROWS || c >= CLASS_MASK, blocks = c >= CLASS_BLOCK && c < CLASS_HASH;
    if (!numeric) return bits ? span : need;
    if (c >= CLASS_MASK) return span;
    return bits || blocks ? (u32)RANK_BYTES((u64)span, (u64)need, value) : need;
}

/* Counts of classes in a block: rows, products (two words), and the maximum of class_measure.  Every thread
 * of a warp must call it; c is NOTHING32 for threads without a row.  Threads of a warp with the same class
 * combine their updates into one. */
INLINE void class_count(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most, u32 c,
                        u64 products, u32 measure)
{
#if TULLE_CUDA
    const u32 same = lanes_match(c), lane = thread_id() & 31u;
    const u32 p0 = lanes_sum_of(same, (u32)products & 0xffffu),
              p1 = lanes_sum_of(same, (u32)(products >> 16) & 0xffffu);
    const u32 p2 = lanes_sum_of(same, (u32)(products >> 32)), m = lanes_max_of(same, measure);
    if (c == NOTHING32 || (same & ((1u << lane) - 1u))) return;
    ATOMIC_ADD32(&rows[c], popcount32(same));
    ADD_SPLIT(&low[c], &high[c], (u64)p0 + ((u64)p1 << 16) + ((u64)p2 << 32));
    ATOMIC_MAX32(&most[c], m);
#else
    if (c == NOTHING32) return;
    ATOMIC_ADD32(&rows[c], 1u);
    ADD_SPLIT(&low[c], &high[c], products);
    ATOMIC_MAX32(&most[c], measure);
#endif
}

/* Adds the counts of a block to the summary. */
INLINE void class_report(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most,
                         GLOBAL u64 *summary)
{
    if (thread_id() == 0u)
        for (u32 c = 0; c < CLASSES; c++)
            if (rows[c]) {
                ATOMIC_ADD64(&summary[SUM_ROWS + c], (u64)rows[c]);
                ATOMIC_ADD64(&summary[SUM_CLASS + c], (u64)high[c] << 32 | low[c]);
                ATOMIC_MAX64(&summary[SUM_MEASURE + c], (u64)most[c]);
            }
}

INLINE void class_clear(SHARED u32 *rows, SHARED u32 *low, SHARED u32 *high, SHARED u32 *most)
{
    if (thread_id() == 0u)
        for (u32 c = 0; c < CLASSES; c++) {
            rows[c] = 0u;
            low[c] = 0u;
            high[c] = 0u;
            most[c] = 0u;
        }
}
