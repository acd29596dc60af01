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

/* Rows and products of each accumulator, by the classes of the numeric step. */
tulle_status tl_product_shares(tl_product *p, tulle_stats *stats)
{
    const uint64_t *rows = p->note[1] + SUM_ROWS, *products = p->note[1] + SUM_CLASS;
    const tl_work *w = &p->work[1];
    int64_t left = p->rows - p->motifs.rows - p->twins.rows;
    stats->shares = 0;
    add_share(stats, (tulle_share){"twins", p->twins.rows, p->twins.products});
    add_share(stats, (tulle_share){"motif", p->motifs.rows, p->motifs.products});
    for (const tl_way *way = tl_ways[1] + 1; way < tl_ways[1] + TL_WAYS;
         way++) { /* the first has no products */
        tulle_share share = {way->share ? way->share : tulle_accumulator_name((int)p->request.recipe->few), 0,
                             0};
        for (int c = way->first; c < way->first + way->sizes; c++) {
            if (!w->balanced && c != w->only) continue;
            share.rows += w->balanced ? (int64_t)rows[c] : (int64_t)p->rows;
            share.products += w->balanced ? (int64_t)products[c] : (int64_t)p->note[0][SUM_PRODUCTS];
        }
        add_share(stats, share);
        left -= share.rows;
    }
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
