/* SPDX-License-Identifier: MIT
 *
 * figures.c - statistics of a product: rows and products of each accumulator, times of stages. */
#include "gpu/accumulators.h"
#include <string.h>

static void add_share(tulle_stats *stats, tulle_share share)
{
    int i = 0;
    if (share.rows <= 0) return;
    while (i < stats->shares && strcmp(stats->share[i].name, share.name) != 0) i++;
    if (i == stats->shares) {
        stats->share[stats->shares++] = share;
    } else {
        stats->share[i].rows += share.rows;
        stats->share[i].products += share.products;
    }
}

/* Rows of the classes of the numeric step and their products; returns the rows. */
static int64_t add_classes(const tl_product *p, const uint64_t *note, const tl_work *w, int64_t rows,
                           uint64_t products, tulle_stats *stats)
{
    int64_t taken = 0;
    for (const tl_way *way = tl_ways[1] + 1; way < tl_ways[1] + TL_WAYS;
         way++) { /* the first has no products */
        tulle_share share = {way->share ? way->share : tulle_accumulator_name((int)p->request.recipe->few), 0,
                             0};
        for (int c = way->first; c < way->first + way->sizes; c++) {
            if (!w->balanced && c != w->only) continue;
            share.rows += w->balanced ? (int64_t)note[SUM_ROWS + c] : rows;
            share.products += (int64_t)(w->balanced ? note[SUM_CLASS + c] : products);
        }
        add_share(stats, share);
        taken += share.rows;
    }
    return taken;
}

/* Rows and products of each accumulator, by the classes of the numeric step. */
tulle_status tl_product_shares(tl_product *p, tulle_stats *stats)
{
    const tl_portions *r = &p->portions;
    int64_t left = p->rows - p->motifs.rows - p->twins.rows;
    stats->shares = 0;
    add_share(stats, (tulle_share){"twins", p->twins.rows, p->twins.products});
    add_share(stats, (tulle_share){"motif", p->motifs.rows, p->motifs.products});
    for (int k = 0; k < r->count; k++) {
        uint64_t products = 0;
        for (int c = 0; c < CLASSES; c++) products += r->note[k][SUM_CLASS + c];
        left -= add_classes(p, r->note[k], &r->work[k], r->row[k + 1] - r->row[k], products, stats);
    }
    if (!r->count) left -= add_classes(p, p->note[1], &p->work[1], p->rows, p->note[0][SUM_PRODUCTS], stats);
    add_share(stats, (tulle_share){"direct", left, 0});         /* rows without products */
    return TULLE_OK;
}

tulle_status tl_product_times(tl_product *p, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    stats->stages = 0;
    for (int i = 1; i < p->marks; i++) {
        double seconds = 0;
        int k = 0;
        TRY(p->driver->elapsed(p->b, p->device, i - 1, i, &seconds));
        while (k < stats->stages && strcmp(stats->stage[k].name, p->mark_name[i]) != 0) k++;
        if (k == TULLE_MAX_STAGES) continue;
        if (k == stats->stages) stats->stage[stats->stages++] = (tulle_stage){p->mark_name[i], 0};
        stats->stage[k].seconds += seconds;         /* kernels may be compiled before several stages */
    }
done:
    return status;
}
