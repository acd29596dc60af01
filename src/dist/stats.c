/* SPDX-License-Identifier: MIT
 *
 * stats.c - combines the counters of all ranks: sums, maxima, and the slowest rank. */
#include "dist/dist.h"

/* Time and rank of the slowest rank are combined in one number: microseconds in the bits above the rank. */
enum { SUMS = 8, MAXIMA = 5, RANK_BITS = 20 };

tulle_status tl_stats_join(tulle_dist *d, tulle_status status, const tl_account *here)
{
    tulle_dist_stats *s = &d->stats;
    const uint64_t *in = d->received;
    uint64_t moved = in[TL_MAIL_LENGTHS] + in[TL_MAIL_COLUMNS] + in[TL_MAIL_VALUES];
    double total = tl_now() - d->start, own = total > d->wait ? total - d->wait : 0;
    int64_t nano = (int64_t)(own * 1e9), late = ((int64_t)(own * 1e6) << RANK_BITS) + d->t.rank;
    int64_t sum[SUMS] = {here->products, here->c_nnz, here->fetched, (int64_t)moved, (int64_t)here->exact,
                         (int64_t)d->received[TL_MAIL_LISTS], (int64_t)here->gather, d->messages};
    int64_t most[MAXIMA] = {-here->products, -(int64_t)moved, -nano, -(int64_t)(d->wait * 1e9), -late};
    TRY(tl_agree_least(d, status, most, MAXIMA));
    TRY(tl_allreduce(d, sum, SUMS, TULLE_SUM));
    for (int i = 0; i < MAXIMA; i++) most[i] = -most[i];
    *s = (tulle_dist_stats){
        .rank = d->t.rank, .ranks = d->t.size, .products = sum[0], .c_nnz = sum[1], .products_most = most[0],
        .rows_fetched = sum[2], .bytes = (uint64_t)sum[3], .bytes_exact = (uint64_t)sum[4],
        .bytes_lists = (uint64_t)sum[5], .bytes_most = (uint64_t)most[1],
        .bytes_gather = (uint64_t)sum[6] * (uint64_t)(d->t.size - 1), .messages = sum[7],
        .bytes_1d = here->one, .bytes_2d = here->two, .grid_cols = here->grid_cols > 0 ? here->grid_cols : 1,
        .blocks = here->blocks, .slowest = (int)(most[4] & ((1 << RANK_BITS) - 1)),
        .sec_total = total, .sec_wait = d->wait, .sec_slowest = (double)most[2] * 1e-9,
        .sec_wait_most = (double)most[3] * 1e-9};
done:
    return status;
}
