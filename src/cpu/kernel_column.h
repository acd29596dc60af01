/* SPDX-License-Identifier: MIT
 *
 * kernel_column.h - sums of rows with one column of X: the inner loop of spmm_kernels.c where there is no more.  It is included for
 * sums in A's own type and, where that is of single precision, for sums in double (WIDE); C(name) tells them apart. */

#if WIDE && KIND == 1
typedef double C(sum);
INLINE C(sum) C(product)(val a, val x) { return (double)a * (double)x; }
#elif WIDE
typedef tl_c64 C(sum);
INLINE C(sum) C(product)(val a, val x)  /* why so: mul() in kernel_types.h */
{
    const double ar = a.re, ai = a.im, xr = x.re, xi = x.im;
    return (tl_c64){ar * xr + -ai * xi, ar * xi + ai * xr};
}
#else
typedef val C(sum);
INLINE C(sum) C(product)(val a, val x) { return mul(a, x); }
#endif

#if KIND <= 2
INLINE C(sum) C(add)(C(sum) x, C(sum) y) { return x + y; }
typedef val    C(given) __attribute__((vector_size(4 * sizeof(val))));
typedef C(sum) C(quad)  __attribute__((vector_size(4 * sizeof(C(sum)))));
#if WIDE || KIND == 2
typedef int64_t C(word);
#else
typedef int32_t C(word);
#endif
typedef C(word) C(mask) __attribute__((vector_size(4 * sizeof(C(word)))));
static const C(word) C(of_row)[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
#else
INLINE C(sum) C(add)(C(sum) x, C(sum) y) { return (C(sum)){x.re + y.re, x.im + y.im}; }
#endif

/* The entries k..end.
 *
 * Where lengths vary, a processor foresees no row's end, and each costs as much as a dozen entries.  So entries go by in fours, and
 * the last four are always taken whole, beyond the end of the row but not of `limit`, and what is not of this row becomes +0.  To
 * add that changes nothing: a sum that begins with +0 is never -0. */
INLINE C(sum) C(row_sum)(const job_of *j, int64_t ld, int64_t k, int64_t end, int64_t limit)
{
    C(sum) sum = {0};
#if KIND <= 2
    if (limit - end >= 4) {
        C(given) a;
        C(mask) of_row;
        for (; k + 4 < end; k += 4)
            UNROLL for (int e = 0; e < 4; e++) sum += C(product)(j->val[k + e], j->x[(int64_t)j->col[k + e] * ld]);
        memcpy(&a, j->val + k, sizeof a);
        memcpy(&of_row, C(of_row) + 4 - (end - k), sizeof of_row);
        const C(given) x = {j->x[(int64_t)j->col[k] * ld], j->x[(int64_t)j->col[k + 1] * ld],
                            j->x[(int64_t)j->col[k + 2] * ld], j->x[(int64_t)j->col[k + 3] * ld]};
        C(quad) p = __builtin_convertvector(a, C(quad)) * __builtin_convertvector(x, C(quad));
        p = (C(quad))((C(mask))p & of_row);
        UNROLL for (int e = 0; e < 4; e++) sum += p[e];
        return sum;
    }
#endif
    (void)limit;
    for (; k < end; k++) sum = C(add)(sum, C(product)(j->val[k], j->x[(int64_t)j->col[k] * ld]));
    return sum;
}

/* The sums of rows first..end: four of one length side by side, others one by one.  They go to sum[0], sum[1] ..., and what is done
 * with them is done elsewhere: all registers are needed here. */
INLINE void C(row_sums)(const job_of *j, const bool ptr64, const int64_t ld, int64_t first, int64_t end, C(sum) *sum)
{
    const int32_t *p32 = j->ptr32 + first;
    const int64_t *p64 = ptr64 ? j->ptr64 + first : NULL;
    const int64_t count = end - first, limit = ptr64 ? p64[count] : p32[count];
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        int64_t at[5];
        C(sum) s[4];
        UNROLL for (int r = 0; r < 5; r++) at[r] = ptr64 ? p64[i + r] : p32[i + r];
        const int64_t n = at[1] - at[0];
        if ((n <= SIDE_BY_SIDE) & (at[2] - at[1] == n) & (at[3] - at[2] == n) & (at[4] - at[3] == n)) {
            UNROLL for (int r = 0; r < 4; r++) s[r] = (C(sum)){0};
            for (int64_t k = 0; k < n; k++) {
                __builtin_prefetch(j->val + at[4] + 4 * k + LINEAR);    /* four streams at once are not foreseen */
                __builtin_prefetch(j->col + at[4] + 4 * k + LINEAR);
                UNROLL for (int r = 0; r < 4; r++)
                    s[r] = C(add)(s[r], C(product)(j->val[at[r] + k], j->x[(int64_t)j->col[at[r] + k] * ld]));
            }
        } else {
            UNROLL for (int r = 0; r < 4; r++) s[r] = C(row_sum)(j, ld, at[r], at[r + 1], limit);
        }
        UNROLL for (int r = 0; r < 4; r++) sum[i + r] = s[r];
    }
    for (; i < count; i++)
        sum[i] = ptr64 ? C(row_sum)(j, ld, p64[i], p64[i + 1], limit) : C(row_sum)(j, ld, p32[i], p32[i + 1], limit);
}

static void C(sums)(const job_of *j, int64_t first, int64_t end, C(sum) *sum)
{
    if (j->ptr64) C(row_sums)(j, true, j->x_ld, first, end, sum);
    else if (j->x_ld == 1) C(row_sums)(j, false, 1, first, end, sum);
    else C(row_sums)(j, false, j->x_ld, first, end, sum);
}

#undef WIDE
