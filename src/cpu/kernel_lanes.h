/* SPDX-License-Identifier: MIT
 *
 * kernel_lanes.h - rows of C of up to 32 entries are accumulated in registers, by means of a known pattern.
 *
 * For each row of B the pattern (kernel_repeat.h) says which lanes it contributes to, and which of its
 * entries goes to each.  So no load depends on a store, and no loop on the length of a row of B.  Lanes that
 * a row of B does not contribute to are not changed, so sums have the same bits as with the other
 * accumulators.
 *
 * Where eight lanes hold the row of C, the pattern keeps its data about a row of B together, and always eight
 * entries of B are read, however many the row has: computing masks from lengths that were just loaded would
 * take longer than the sums.
 *
 * For real values where the processor has suitable vectors (kernel_eight.h); otherwise kernel_repeat.h
 * computes without lanes. */
#ifndef TL_KERNEL_LANES_H
#define TL_KERNEL_LANES_H
#include "cpu/kernel_eight.h"

/* The pattern's data for one entry of A, where the row of C has at most eight entries: stored together, so
 * that one register can point at it.  scratch.c counts its bytes. */
typedef struct lane_step {
    idx     want[8];                    /* first column of the row of C - column of each entry of that of B */
    uint8_t source[8];                  /* for each lane the entry of B that goes there                     */
    int32_t length;                     /* of the row of B                                                  */
    uint8_t some, lanes;                /* that many low bits set; the lanes that it contributes to         */
} lane_step;

_Static_assert(sizeof(lane_step) == 8 * sizeof(idx) + TL_STEP_BYTES, "scratch.c gives a step its room");

#if HAVE_EIGHT
/* The pattern's data for a row of more than eight entries. */
typedef struct lane_row {
    const idx     *want;                /* columns of the products, relative to the first            */
    const uint8_t *length, *lanes;      /* of each row of B; its lanes, eight per byte                */
    const uint8_t *source;              /* for each lane the entry of B that goes there              */
    int64_t        begin, end, count;   /* entries of A; of C */
    idx            first;
} lane_row;

/* Computes the sums of a row of more than eight entries, in two or four groups of eight; false: the row does
 * not match the pattern.  Reads of B are bounded by the actual lengths, not by those of the pattern. */
INLINE bool sum_row(const shape sh, const int groups, const tl_job *job, const lane_row *r,
                    eight *restrict sum)
{
    const tl_arrays ma = job->a, mb = job->b;
    const idx *restrict col = mb.col, *restrict want = r->want, first = r->first;
    const val *restrict a = ma.val, *restrict b = mb.val;
    const uint8_t *restrict lanes = r->lanes, *restrict source = r->source, *restrict length = r->length;
    const int64_t begin = r->begin, entries = r->end - begin;
    /* not an array: these stay in registers */
    eight sum0 = eight_of(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    eight_wrong wrong = {0};
    int64_t longer = 0;
    for (int64_t k = 0; k < entries; k++, lanes += groups, source += 8 * groups) {
        if (job->far) fetch_far_ahead(sh, job, begin + k);
        const int64_t j = col_at(sh, &ma, begin + k), from = ptr_at(sh, &mb, j),
                      n = ptr_at(sh, &mb, j + 1) - from;
        const val w = a[begin + k];
        if (ROW_READS > 0 && from > job->b_nnz - ROW_READS) return false;
        longer |= n ^ length[k];
        compare_columns(&wrong, n, col + from, first, want);
        want += length[k];
        sum0 = eight_added(sum0, n, w, b + from, lanes, source);
        sum1 = eight_added(sum1, n, w, b + from, lanes + 1, source + 8);
        if (groups > 2) sum2 = eight_added(sum2, n, w, b + from, lanes + 2, source + 16);
        if (groups > 2) sum3 = eight_added(sum3, n, w, b + from, lanes + 3, source + 24);
    }
    sum[0] = sum0, sum[1] = sum1;
    if (groups > 2) sum[2] = sum2, sum[3] = sum3;
    return longer == 0 && !any_wrong(&wrong);
}

/* Nonzero where a length does not match; comparing 32 bits suffices where B's pointers are 32-bit. */
INLINE int64_t wrong_length(const shape sh, int64_t length, int32_t want)
{
    return sh == PLAIN ? (int64_t)((uint32_t)length ^ (uint32_t)want) : length ^ want;
}

/* The same where the row of C has at most eight entries, with the steps of its pattern.  Eight entries are
 * read from the beginning of each row of B: the result is false, too, where B ends before that. */
INLINE bool sum_steps(const shape sh, const tl_arrays *ma, const tl_arrays *mb, int64_t safe,
                      const lane_step *restrict step, int64_t begin, int64_t end, idx first,
                      eight *restrict sum)
{
    const idx *restrict col = mb->col;
    const val *restrict a = ma->val, *restrict b = mb->val;
    eight all = eight_of(0);
    eight_wrong wrong = {0};
    int64_t longer = 0;
    for (int64_t k = begin; k < end; k++, step++) {
        const int64_t j = col_at(sh, ma, k), from = ptr_at(sh, mb, j);
        if (from > safe) return false;
        longer |= wrong_length(sh, ptr_at(sh, mb, j + 1) - from, step->length);
        compare_eight(&wrong, &step->some, step->length, col + from, first, step->want);
        all = eight_step(all, a[k], b + from, &step->lanes, step->source);
    }
    *sum = all;
    return longer == 0 && !any_wrong(&wrong);
}

/* The same where each row of B has exactly one entry. */
INLINE bool sum_steps_of_ones(const shape sh, const tl_arrays *ma, const tl_arrays *mb,
                              const lane_step *restrict step, int64_t begin, int64_t end, idx first,
                              eight *restrict sum)
{
    const idx *restrict col = mb->col;
    const val *restrict a = ma->val, *restrict b = mb->val;
    eight all = eight_of(0);
    idx wrong = 0;
    for (int64_t k = begin; k < end; k++, step++) {
        const int64_t j = col_at(sh, ma, k);
        wrong |= (first - col[j]) ^ step->want[0];
        all = eight_added_one(all, a[k] * b[j], &step->lanes, step->source);
    }
    *sum = all;
    return wrong == 0;
}

/* Computes a row; false: it does not match the pattern, and nothing was written.  A separate function,
 * because the loop over rows leaves it no registers. */
INLINE bool add_row(const shape sh, const int groups, const tl_job *job, const lane_row *r,
                    val *restrict value)
{
    eight sum[4];
    if (!sum_row(sh, groups, job, r, sum)) return false;
    for (int g = 0; g < groups; g++)
        if (r->count > 8 * g) eight_store(value + 8 * g, r->count - 8 * g, sum[g]);
    return true;
}

static NOINLINE bool add_row_1(const tl_job *job, const lane_step *step, const lane_row *r,
                               val *restrict value)
{
    eight sum;
    if (!sum_steps(ANY, &job->a, &job->b, job->b_nnz - STEP_READS, step, r->begin, r->end, r->first, &sum))
        return false;
    eight_store(value, r->count, sum);
    return true;
}

static NOINLINE bool add_row_2(const bool plain, const tl_job *job, const lane_row *r, val *restrict value)
{
    return WIDTH == 32 && plain ? add_row(PLAIN, 2, job, r, value) : add_row(ANY, 2, job, r, value);
}

static NOINLINE bool add_row_4(const bool plain, const tl_job *job, const lane_row *r, val *restrict value)
{
    return WIDTH == 32 && plain ? add_row(PLAIN, 4, job, r, value) : add_row(ANY, 4, job, r, value);
}
#endif

#endif
