/* SPDX-License-Identifier: MIT
 *
 * ranges.c - divides rows among several devices ("takers").
 *
 * Two ways.  Where the speeds of the devices are unknown, rows are handed out in ranges of decreasing size
 * (guided self-scheduling): each device takes the next one when it has finished the last.  A range is the
 * remaining work divided by twice the number of devices: the first ones are long, so that there are few, and
 * the last ones short, so that all devices finish together; but none is so short that starting it would cost
 * more than its work.  The cost of a row is its number of products plus one.  If a range does not fit in the
 * memory of a device, it is returned in halves; a device that has no memory for a single row leaves.  Where
 * each device keeps its rows for many products (tl_rows_split()), there is one part for each.
 *
 * The cuts are those of DeltaSPARSE (global task scheduling, its Algorithms 2 and 3), but by products before
 * counting, and by binary search; guided self-scheduling is Polychronopoulos and Kuck, 1987.
 *
 * Memory: one record per range. */
#include "plan/plan.h"
#include <string.h>

enum { LEAST_WORK = 1 << 19 };          /* of a range: some milliseconds of a core, a tenth of one on a GPU */

static void enter(tl_ranges *r)
{
    while (atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire)) tl_yield();
}

static void leave(tl_ranges *r)
{
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
}

/* The end (exclusive) of a range that begins at `row`, and its work. */
static int64_t range_end(const int64_t *products, int64_t row, int64_t row1, int64_t most, int64_t rows,
                         int64_t *work)
{
    int64_t end = row, sum = 0;
    while (end < row1 && (rows ? end - row < rows : sum < most)) sum += products[end++] + 1;
    *work = sum;
    return end;
}

static int64_t next_size(int64_t rest, int takers)
{
    int64_t size = rest / (2 * takers);
    return size > LEAST_WORK ? size : rest < 2 * LEAST_WORK ? rest : LEAST_WORK;
}

/* Cuts the rows into ranges and returns their number; writes them where an array is given. */
static int64_t cut(const int64_t *products, int64_t row0, int64_t row1, int64_t all, int takers, int64_t rows,
                   tl_range *array)
{
    int64_t count = 0, rest = all, work = 0;
    for (int64_t row = row0, end; row < row1; row = end, count++, rest -= work) {
        end = range_end(products, row, row1, next_size(rest, takers), rows, &work);
        if (array)
            array[count] = (tl_range){.row0 = row, .row1 = end, .work = work, .taker = -1,
                                      .turn = rows ? (int)(count % takers) : -1};
    }
    return count;
}

tulle_status tl_ranges_make(tl_base *b, const int64_t *products, int64_t row0, int64_t row1, int takers,
                            int64_t rows, tl_ranges *out)
{
    tulle_status status = TULLE_OK;
    memset(out, 0, sizeof *out);
    atomic_flag_clear(&out->busy);
    out->takers = takers;
    for (int64_t i = row0; i < row1; i++) out->work += products[i] + 1;
    out->count = cut(products, row0, row1, out->work, takers, rows, NULL);
    TRY(tl_alloc(b, &out->array, out->count, sizeof *out->array, "ranges of rows"));
    cut(products, row0, row1, out->work, takers, rows, out->array);
    for (int64_t i = 0; i + 1 < out->count; i++) out->array[i].next = &out->array[i + 1];
    out->first = out->count ? out->array : NULL;
done:
    return status;
}

void tl_ranges_done(tl_base *b, tl_ranges *r)
{
    for (tl_range *at = r->first, *next; at; at = next) {
        next = at->next;
        if (at->from) tl_free(at->from, at);
    }
    tl_free(b, r->array);
    r->array = r->first = NULL;
}

tl_range *tl_ranges_take(tl_ranges *r, int taker, bool *wait)
{
    tl_range *at;
    *wait = false;
    enter(r);
    for (at = r->first; at; at = at->next) {
        if (at->taker < 0 && (at->turn < 0 || at->turn == taker)) break;
        *wait = *wait || !at->done;     /* another taker has it, or is next in turn */
    }
    if (at) at->taker = taker;
    leave(r);
    return at;
}

void tl_ranges_finish(tl_ranges *r, tl_range *range, tulle_matrix *C)
{
    enter(r);
    range->C = C;
    range->done = true;
    atomic_fetch_add(&r->finished, range->work);
    leave(r);
}

bool tl_ranges_back(tl_base *b, tl_ranges *r, tl_range *range, bool gone)
{
    tl_range *half = NULL;
    int taker = range->taker;
    gone = gone || range->row1 - range->row0 < 2
           || tl_calloc(b, &half, 1, sizeof *half, "a range of rows") != TULLE_OK;
    enter(r);
    if (half) {
        *half = *range;
        half->from = b;
        half->row0 = range->row1 = range->row0 + (range->row1 - range->row0) / 2;
        half->work = range->work - range->work / 2;
        range->work /= 2;
        range->next = half;
        half->taker = half->turn = -1;
        r->count++;
    }
    range->taker = range->turn = -1;
    if (gone) {
        r->left |= (uint32_t)1 << taker;
        for (tl_range *at = r->first; at; at = at->next)
            if (at->turn == taker) at->turn = -1;
    }
    bool somebody = r->left != ((uint32_t)1 << r->takers) - 1;
    leave(r);
    return somebody;
}

/* ---- one part for each */

/* The first row that has at least this much work before it. */
static int64_t find(tl_work_before before, const void *arg, int64_t low, int64_t high, double work)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((double)before(arg, middle) < work) low = middle + 1;
        else high = middle;
    }
    return low;
}

void tl_rows_split(tl_work_before before, const void *arg, int64_t rows, int parts, const double *share,
                   int64_t least, int64_t forced, int64_t *row)
{
    double all = (double)before(arg, rows), worth = all / (double)(least > 0 ? least : 1), sum = 0, upto = 0;
    int active = worth < 1 ? 1 : worth < parts ? (int)worth : parts;
    for (int t = 0; t < active; t++) sum += share ? share[t] : 1;
    row[0] = 0;
    for (int t = 1; t <= parts; t++) {
        upto += t > active ? 0 : share ? share[t - 1] : 1;
        if (forced) row[t] = t == parts || forced > rows / t ? rows : t * forced;
        else if (t >= active) row[t] = rows;
        else row[t] = find(before, arg, row[t - 1], rows, all * upto / sum);
    }
}
