/* SPDX-License-Identifier: MIT
 *
 * search.c - a line search for thresholds (thresholds.h).
 *
 * It begins with the defaults.  For one threshold after the other all values of its grid are tried, and the
 * one with the least slowdown of the training matrices is kept if it is better by more than MARGIN.  In the
 * end the defaults and what was found are timed once more, matrix by matrix, because the least of many times
 * is too good by chance; the scores come from these times, and the defaults stay unless they were slower.
 *
 * Time: some 80 values for each matrix. */
#include "plan/thresholds.h"
#include <math.h>
#include <string.h>

static const double MARGIN = 0.005;     /* of the logarithm of the slowdown: about half a percent */
static const double NONE = 1e6;         /* seconds in place of infinity                           */

typedef struct searcher {
    tl_base         *b;
    tl_search       *s;
    tl_search_times *times;
    int              steps, all;        /* products timed, and how many there will be */
} searcher;

static bool judges(int matrix)
{
    return matrix % 3 == 2;
}

static tulle_status time_one(searcher *x, const tl_thresholds *t, int i, double *seconds)
{
    tulle_status status = TULLE_OK;
    x->s->done = (double)x->steps++ / x->all;
    if (tl_progress(x->b, "tune", x->s->done)) TRY(tl_fail(x->b, TULLE_ECANCEL, "cancelled"));
    TRY(x->s->time(x->s->user, t, i, seconds));
    if (!(*seconds > 0)) TRY(tl_fail(x->b, TULLE_EINVAL, "a product took %g s", *seconds));
    if (*seconds < x->times[i].best) x->times[i].best = *seconds;
done:
    return status;
}

/* Times all matrices.  The mean logarithm of the times of those that train: what is least in it has the least
 * slowdown, too, whatever the best times are. */
static tulle_status cost(searcher *x, const tl_thresholds *t, double *mean)
{
    tulle_status status = TULLE_OK;
    double sum = 0, seconds;
    int count = 0;
    for (int i = 0; i < x->s->matrices; i++) {
        TRY(time_one(x, t, i, &seconds));
        if (judges(i)) continue;
        sum += log(isfinite(seconds) ? seconds : NONE);
        count++;
    }
    *mean = sum / count;
done:
    return status;
}

static tulle_status search_line(searcher *x, int k, tl_thresholds *found)
{
    tulle_status status = TULLE_OK;
    uint32_t grid[TL_THRESHOLD_GRID];
    const uint32_t before = found->of[k];
    const int count = tl_threshold_grid(x->s->family, k, grid);
    tl_thresholds t = *found;
    double start, least;
    TRY(cost(x, &t, &start));           /* again for each threshold: a device may be slower for a while */
    least = start;
    for (int v = 0; v < count; v++) {
        double here;
        if (grid[v] == before) continue;
        t.of[k] = grid[v];
        TRY(cost(x, &t, &here));
        if (!(here < least - (found->of[k] == before ? MARGIN : 0))) continue;
        least = here;
        found->of[k] = grid[v];
    }
    tl_trace(x->b, "tune: %s %u, of %u to %u: times %.4f of those with %u", tl_threshold_name(k),
             found->of[k], grid[0], grid[count - 1], exp(least - start), before);
done:
    return status;
}

static void judge(const searcher *x, tl_search_score score[2])
{
    double sum[2][2] = {{0}};
    memset(score, 0, 2 * sizeof *score);
    for (int i = 0; i < x->s->matrices; i++) {
        const tl_search_times *t = &x->times[i];
        const int k = judges(i);
        score[k].matrices++;
        sum[k][0] += log((isfinite(t->usual) ? t->usual : NONE) / t->best);
        sum[k][1] += log((isfinite(t->tuned) ? t->tuned : NONE) / t->best);
    }
    for (int k = 0; k < 2; k++) {
        score[k].usual = exp(sum[k][0] / score[k].matrices);
        score[k].tuned = exp(sum[k][1] / score[k].matrices);
    }
}

static tulle_status time_again(searcher *x, const tl_thresholds *usual, const tl_thresholds *found)
{
    tulle_status status = TULLE_OK;
    const bool same = memcmp(usual, found, sizeof *found) == 0;
    for (int i = 0; i < x->s->matrices; i++) {
        TRY(time_one(x, usual, i, &x->times[i].usual));
        x->times[i].tuned = x->times[i].usual;
        if (!same) TRY(time_one(x, found, i, &x->times[i].tuned));
    }
done:
    return status;
}

tulle_status tl_thresholds_search(tl_base *b, tl_search *s, tl_thresholds *found, tl_search_score score[2],
                                  tl_search_times *times)
{
    tulle_status status = TULLE_OK;
    const tl_thresholds usual = tl_thresholds_usual(s->family);
    searcher x = {.b = b, .s = s, .times = times, .all = 2};
    *found = usual;
    if (s->matrices < 3)
        TRY(tl_fail(b, TULLE_EINVAL, "%d matrices: thresholds need 3 at least, as each third one judges them",
                    s->matrices));
    for (int i = 0; i < s->matrices; i++) times[i].best = NONE;
    for (int k = 0; k < TL_THRESHOLDS; k++) {
        uint32_t grid[TL_THRESHOLD_GRID];
        x.all += tl_threshold_grid(s->family, k, grid);
    }
    x.all *= s->matrices;
    for (int k = 0; k < TL_THRESHOLDS; k++) TRY(search_line(&x, k, found));
    TRY(time_again(&x, &usual, found));
    judge(&x, score);
    if (score[0].tuned <= score[0].usual) goto done;
    tl_trace(b, "tune: the defaults were faster in the end, and are kept");
    *found = usual;
    for (int i = 0; i < s->matrices; i++) times[i].tuned = times[i].usual;
    judge(&x, score);
done:
    if (status != TULLE_OK) *found = usual;
    return status;
}
