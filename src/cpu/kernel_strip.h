/* SPDX-License-Identifier: MIT
 *
 * kernel_strip.h - computes up to eight vectors of a row of Y in registers, or one vector of each of four
 * rows: the inner loop of spmm_kernels.c, which includes it once for each width of vectors (VEC_BYTES);
 * V(name) tells them apart.  Where there are fewer columns than a wider vector has, one or two narrower ones
 * are used.
 *
 * A strip is `count` consecutive vectors, except that the last one ends at the last column and may overlap
 * the one before it; of its values only the last `fresh` are written. */

typedef real V(vec) __attribute__((vector_size(VEC_BYTES)));

#if VEC_BYTES < WIDEST
#define STRIPS 2
#else
#define STRIPS 8
#endif

enum { V(REALS) = VEC_BYTES / (int)sizeof(real), V(VALUES) = VEC_BYTES / (int)sizeof(val) };

INLINE V(vec) V(load)(const val *p)
{
    V(vec) v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void V(store)(val *p, V(vec) v)
{
    memcpy(p, &v, sizeof v);
}

/* A non-temporal store to an aligned address. */
INLINE void V(stream)(val *p, V(vec) v)
{
#if VEC_BYTES == 64
    __m512i whole;
    memcpy(&whole, &v, sizeof whole);
    _mm512_stream_si512((__m512i *)(void *)p, whole);
#elif VEC_BYTES == 32
    __m256i whole;
    memcpy(&whole, &v, sizeof whole);
    _mm256_stream_si256((__m256i *)(void *)p, whole);
#elif defined(__SSE2__)
    __m128i whole;
    memcpy(&whole, &v, sizeof whole);
    _mm_stream_si128((__m128i *)(void *)p, whole);
#else
    V(store)(p, v);
#endif
}

/* A scalar that multiplies vectors. */
typedef struct V(factor) {
    V(vec) re;
#if KIND > 2
    V(vec) im;                          /* -im, im, -im, im ... */
#endif
} V(factor);

#if KIND <= 2
INLINE V(factor) V(spread)(val a)
{
    return (V(factor)){a - (V(vec)){0}};
}

INLINE V(vec) V(times)(V(factor) f, V(vec) x)
{
    return f.re * x;
}
#else
#if VEC_BYTES / KIND_REAL == 2
#define SIGNS -1, 1
#define SWAP 1, 0
#elif VEC_BYTES / KIND_REAL == 4
#define SIGNS -1, 1, -1, 1
#define SWAP 1, 0, 3, 2
#elif VEC_BYTES / KIND_REAL == 8
#define SIGNS -1, 1, -1, 1, -1, 1, -1, 1
#define SWAP 1, 0, 3, 2, 5, 4, 7, 6
#else
#define SIGNS -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1
#define SWAP 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#endif

INLINE V(factor) V(spread)(val a)
{
    return (V(factor)){a.re - (V(vec)){0}, a.im * (V(vec)){SIGNS}};
}

/* (re*x - im*y) + (re*y + im*x)i, rounded as mul() rounds it */
INLINE V(vec) V(times)(V(factor) f, V(vec) x)
{
    return f.re * x + f.im * __builtin_shufflevector(x, x, SWAP);
}

#undef SIGNS
#undef SWAP
#endif

/* Writes the sums of a strip to y where more is needed than storing them (alpha, beta, ...). */
static __attribute__((noinline)) void V(write)(const ending *e, int count, const V(vec) *sum, int64_t last,
                                               int64_t fresh, val *y)
{
    for (int v = 0; v < count; v++) {
        int64_t at = v < count - 1 ? v * V(VALUES) : last, skip = v < count - 1 ? 0 : V(VALUES) - fresh;
        val one[V(VALUES)];
        V(store)(one, sum[v]);
        for (int64_t i = skip; i < V(VALUES); i++) y[at + i] = ended(e, one[i], y[at + i]);
    }
}

/* Writes the sums of a strip of one row to y. */
INLINE void V(put)(const int count, const job_of *j, const V(vec) *sum, int64_t last, int64_t fresh, val *y)
{
    if (fresh < V(VALUES) || !j->end.plain) {
        V(vec) kept[8];
        UNROLL for (int v = 0; v < count; v++) kept[v] = sum[v];
        V(write)(&j->end, count, kept, last, fresh, y);
        return;
    }
    if (j->stream && (uintptr_t)y % VEC_BYTES == 0) {
        UNROLL for (int v = 0; v < count; v++) V(stream)(y + v * V(VALUES), sum[v]);
        return;
    }
    UNROLL for (int v = 0; v < count - 1; v++) V(store)(y + v * V(VALUES), sum[v]);
    V(store)(y + last, sum[count - 1]);
}

/* An entry of A: its value, and the row of X that it multiplies. */
typedef struct V(entry) {
    const val *row;
    V(factor)  factor;
} V(entry);

INLINE V(entry) V(entry_at)(const int count, const bool far, const job_of *j, int64_t k, const val *x)
{
    V(entry) e = {x + (int64_t)j->col[k] * j->x_ld, V(spread)(j->val[k])};
    if (far) {
        /* The row may not have been checked yet.  Prefetching any address is harmless, but forming a pointer
         * outside of X is undefined: so the address is computed as an integer. */
        const uint64_t there = (uint64_t)j->col[k + AHEAD < j->nnz ? k + AHEAD : k] * (uint64_t)j->x_ld;
        const uintptr_t ahead = (uintptr_t)x + (uintptr_t)there * sizeof(val);
        UNROLL for (int b = 0; b < count * VEC_BYTES; b += 64)
            __builtin_prefetch((const void *)(ahead + (uintptr_t)b));
    }
    return e;
}

INLINE void V(take)(const int count, V(entry) e, int64_t last, V(vec) *sum)
{
    UNROLL for (int v = 0; v < count - 1; v++) sum[v] += V(times)(e.factor, V(load)(e.row + v * V(VALUES)));
    sum[count - 1] += V(times)(e.factor, V(load)(e.row + last));
}

/* One row: the entries begin..end of A, x and y at the first column of the strip; the last vector is at
 * `last`.  The next entry is loaded while the current one is multiplied. */
INLINE void V(strip)(const int count, const bool far, const job_of *j, int64_t begin, int64_t end,
                     const val *x, int64_t last, int64_t fresh, val *y)
{
    V(vec) sum[8];
    UNROLL for (int v = 0; v < count; v++) sum[v] = (V(vec)){0};
    if (begin < end) {
        V(entry) e = V(entry_at)(count, far, j, begin, x);
        for (int64_t k = begin + 1; k < end; k++) {
            V(entry) next = V(entry_at)(count, far, j, k, x);
            V(take)(count, e, last, sum);
            e = next;
        }
        V(take)(count, e, last, sum);
    }
    V(put)(count, j, sum, last, fresh, y);
}

/* Four rows from i on where a strip is a single vector, summed together up to the length of the shortest: a
 * single chain of additions would be limited by their latency.  `ahead`: A is prefetched.  Loads of X from
 * four rows overlap anyway, so prefetching X pays only where it is in no cache and each row is a whole
 * line. */
INLINE void V(four)(const bool far, const bool ahead, const job_of *j, int64_t i, const val *x, int64_t last,
                    int64_t fresh, val *y)
{
    int64_t at[5], least = INT64_MAX;
    V(vec) sum[4];
    UNROLL for (int r = 0; r < 5; r++) at[r] = row_at(j, i + r);
    if (j->bad) settle_rows(j, 4, at);
    UNROLL for (int r = 0; r < 4; r++) {
        if (at[r + 1] - at[r] < least) least = at[r + 1] - at[r];
        sum[r] = (V(vec)){0};
    }
    for (int64_t k = 0; k < least; k++) {
        if (ahead && k % 4 == 0) {      /* the hardware prefetcher does not follow four streams */
            UNROLL for (int b = 0; b < 16 * (int)sizeof(val); b += 64)
                __builtin_prefetch((const char *)(j->val + at[4] + 4 * k + LINEAR) + b);
            __builtin_prefetch(j->col + at[4] + 4 * k + LINEAR);
        }
        UNROLL for (int r = 0; r < 4; r++) V(take)(1, V(entry_at)(1, far, j, at[r] + k, x), last, &sum[r]);
    }
    if (at[4] - at[0] > 4 * least)      /* some rows are longer */
        UNROLL for (int r = 0; r < 4; r++)
            for (int64_t k = at[r] + least; k < at[r + 1]; k++)
                V(take)(1, V(entry_at)(1, far, j, k, x), last, &sum[r]);
    UNROLL for (int r = 0; r < 4; r++) V(put)(1, j, &sum[r], last, fresh, y + r * j->y_ld);
}

INLINE void V(strip_rows)(const int count, const job_of *j, span rows, const val *x, int64_t last,
                          int64_t fresh, val *y)
{
    const bool ahead = j->nnz > FETCHED / (int64_t)(sizeof(val) + sizeof(idx));
    int64_t i = rows.first;
    for (; count == 1 && !rows.alone && i + 4 <= rows.end; i += 4) {
        val *to = y + (i - rows.first) * j->y_ld;
        if (j->far && VEC_BYTES == 64) V(four)(true, true, j, i, x, last, fresh, to);
        else if (ahead) V(four)(false, true, j, i, x, last, fresh, to);
        else V(four)(false, false, j, i, x, last, fresh, to);
    }
    for (; i < rows.end; i++) {
        int64_t at[2];
        entries_of(j, rows, i, at);
        if (j->coming) {
            const char *next = j->coming + (i - rows.first) * j->coming_step;
            UNROLL for (int b = 0; b < count * VEC_BYTES; b += 64) __builtin_prefetch(next + b, 0, 2);
        }
        if (j->far) V(strip)(count, true, j, at[0], at[1], x, last, fresh, y + (i - rows.first) * j->y_ld);
        else V(strip)(count, false, j, at[0], at[1], x, last, fresh, y + (i - rows.first) * j->y_ld);
    }
}

/* Columns at..at+width of some rows, as strips of at most STRIPS vectors; width >= a vector. */
static void V(columns)(const job_of *j, span rows, int64_t at, int64_t width, val *y)
{
    while (width > 0) {
        int64_t count = (width + V(VALUES) - 1) / V(VALUES);
        if (count > STRIPS) count = STRIPS;
        int64_t taken = count * V(VALUES) < width ? count * V(VALUES) : width;
        int64_t last = taken - V(VALUES), fresh = taken - (count - 1) * V(VALUES);
        const val *x = j->x + at;
        val *to = y + at;
        if (count == 1 && fresh < V(VALUES)) {    /* a single partial vector: overlaps finished columns */
            x -= V(VALUES) - fresh;
            to -= V(VALUES) - fresh;
            last = 0;
        }
        switch (count) {
        case 1: V(strip_rows)(1, j, rows, x, last, fresh, to); break;
#if STRIPS == 2
        default: V(strip_rows)(2, j, rows, x, last, fresh, to); break;
#else
        case 2: V(strip_rows)(2, j, rows, x, last, fresh, to); break;
        case 3: V(strip_rows)(3, j, rows, x, last, fresh, to); break;
        case 4: V(strip_rows)(4, j, rows, x, last, fresh, to); break;
        case 5: V(strip_rows)(5, j, rows, x, last, fresh, to); break;
        case 6: V(strip_rows)(6, j, rows, x, last, fresh, to); break;
        case 7: V(strip_rows)(7, j, rows, x, last, fresh, to); break;
        default: V(strip_rows)(8, j, rows, x, last, fresh, to); break;
#endif
        }
        at += taken;
        width -= taken;
    }
}

#undef VEC_BYTES
#undef STRIPS
