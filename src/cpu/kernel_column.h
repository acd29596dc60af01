/* SPDX-License-Identifier: MIT
 *
 * kernel_column.h - rows of A times a single column of X: the inner loop of spmm_kernels.c for that case.  It
 * is included once for sums in A's own type and, if that is single precision, again for sums in double
 * (WIDE); C(name) tells the two apart.
 *
 * A sum is a chain of dependent additions, limited by their latency.  So four rows of equal length are summed
 * at the same time.  Rows of different lengths are summed one by one: the branches at their ends would be
 * mispredicted, which costs more than is gained, as out-of-order execution already overlaps consecutive rows.
 * Long rows of doubles are summed in pairs: four would be more streams than the hardware prefetcher
 * follows. */

#if WIDE && KIND == 1
typedef double C(sum);
INLINE C(sum) C(product)(val a, val x) { return (double)a * (double)x; }
INLINE C(sum) C(add)(C(sum) x, C(sum) y) { return x + y; }
#elif WIDE
typedef tl_c64 C(sum);
INLINE C(sum) C(product)(val a, val x)  /* for the form see mul() in kernel_types.h */
{
    const double ar = a.re, ai = a.im, xr = x.re, xi = x.im;
    return (tl_c64){ar * xr + -ai * xi, ar * xi + ai * xr};
}
INLINE C(sum) C(add)(C(sum) x, C(sum) y) { return (tl_c64){x.re + y.re, x.im + y.im}; }
#else
typedef val C(sum);
INLINE C(sum) C(product)(val a, val x) { return mul(a, x); }
INLINE C(sum) C(add)(C(sum) x, C(sum) y) { return add(x, y); }
#endif

/* The sum over the entries begin..end. */
INLINE C(sum) C(row_sum)(const job_of *j, const int64_t ld, int64_t begin, int64_t end)
{
    C(sum) sum = {0};
    for (int64_t k = begin; k < end; k++) {
#if KIND == 1
        __asm__("" : "+r"(k)); /* keeps gcc from gathering floats into vectors and splitting them again */
#endif
        sum = C(add)(sum, C(product)(j->val[k], j->x[(int64_t)j->col[k] * ld]));
    }
    return sum;
}

/* Several rows of n entries each, beginning at `at`, at the same time.  `ahead`: A is prefetched, because the
 * hardware prefetcher does not follow that many streams. */
INLINE void C(side_by_side)(const int count, const bool ahead, const job_of *j, const int64_t ld,
                            const int64_t *at, int64_t n, C(sum) *sum, int64_t step)
{
    const int64_t next = at[count - 1] + n + 4 * LINEAR;
    C(sum) s[4];
    UNROLL for (int r = 0; r < count; r++) s[r] = (C(sum)){0};
    for (int64_t k = 0; k < n; k++) {
        if (ahead && k % 4 == 0) {
            UNROLL for (int b = 0; b < 4 * count * (int)sizeof(val); b += 64)
                __builtin_prefetch((const char *)(j->val + next + count * k) + b);
            __builtin_prefetch(j->col + next + count * k);
        }
        UNROLL for (int r = 0; r < count; r++)
            s[r] = C(add)(s[r], C(product)(j->val[at[r] + k], j->x[(int64_t)j->col[at[r] + k] * ld]));
    }
    UNROLL for (int r = 0; r < count; r++) sum[r * step] = s[r];
}

/* Writes the sums of rows first..end to sum[0], sum[step] ...  alpha and beta are applied elsewhere, because
 * all registers are needed here.  (step is a variable although it is 1: otherwise gcc 12 combines adjacent
 * stores into vectors, which takes longer than the sums.) */
INLINE void C(row_sums)(const job_of *job, const bool ptr64, const bool check, const int64_t ld,
                        int64_t first, int64_t end, C(sum) *sum, int64_t step)
{
    const job_of here = *job, *const j = &here;         /* a copy, which stores of sums cannot alias */
    const int32_t *p32 = j->ptr32 + first;
    const int64_t *p64 = ptr64 ? j->ptr64 + first : NULL;
    const int64_t count = end - first;
    const bool large = j->nnz > LARGE / (int64_t)(sizeof(val) + sizeof(idx));
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        int64_t at[5];
        UNROLL for (int r = 0; r < 5; r++) at[r] = ptr64 ? p64[i + r] : p32[i + r];
        if (check) settle_rows(j, 4, at);
        const int64_t n = at[1] - at[0];
        if ((at[2] - at[1] != n) | (at[3] - at[2] != n) | (at[4] - at[3] != n)) {
            UNROLL for (int r = 0; r < 4; r++) sum[(i + r) * step] = C(row_sum)(j, ld, at[r], at[r + 1]);
        } else if (sizeof(val) < 8 || n <= SHORT) {
            C(side_by_side)(4, true, j, ld, at, n, sum + i * step, step);
        } else {
            UNROLL for (int r = 0; r < 4; r += 2) {
                if (large) C(side_by_side)(2, true, j, ld, at + r, n, sum + (i + r) * step, step);
                else C(side_by_side)(2, false, j, ld, at + r, n, sum + (i + r) * step, step);
            }
        }
    }
    for (; i < count; i++) {
        int64_t at[2];
        UNROLL for (int r = 0; r < 2; r++) at[r] = ptr64 ? p64[i + r] : p32[i + r];
        if (check) settle_rows(j, 1, at);
        sum[i * step] = C(row_sum)(j, ld, at[0], at[1]);
    }
}

static void C(sums)(const job_of *j, int64_t first, int64_t end, C(sum) *sum, int64_t step)
{
    if (j->ptr64 && j->bad) C(row_sums)(j, true, true, j->x_ld, first, end, sum, step);
    else if (j->ptr64) C(row_sums)(j, true, false, j->x_ld, first, end, sum, step);
    else if (j->x_ld == 1 && j->bad) C(row_sums)(j, false, true, 1, first, end, sum, step);
    else if (j->x_ld == 1) C(row_sums)(j, false, false, 1, first, end, sum, step);
    else if (j->bad) C(row_sums)(j, false, true, j->x_ld, first, end, sum, step);
    else C(row_sums)(j, false, false, j->x_ld, first, end, sum, step);
}

#undef WIDE
