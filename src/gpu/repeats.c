/* SPDX-License-Identifier: MIT
 *
 * repeats.c - for `tulle explain`: which rows of a product repeat each other (twins.c, motifs.c), found as in
 * a product, which then ends. */
#include "gpu/product.h"
#include "gpu/spmm.h"
#include <string.h>

_Static_assert(TWIN_MOST < sizeof((tulle_repeats *)0)->twin_groups / sizeof(int64_t), "lengths of groups");

/* How many bundles of each length are used: bits say where bundles of A begin, `of` is 0 for rows of those
 * that are used. */
static tulle_status count_groups(const tl_product *p, tulle_repeats *r)
{
    tulle_status status = TULLE_OK;
    tl_base *b = p->b;
    const uint64_t words = ((uint64_t)p->rows + TL_TWIN_ROWS - 1) / TL_TWIN_ROWS * TL_TWIN_WORDS;
    uint32_t *first = NULL, *of = NULL;
    int length = 0;
    TRY(tl_alloc(b, &first, (int64_t)words, sizeof *first, "first rows of bundles"));
    TRY(tl_alloc(b, &of, p->rows, sizeof *of, "rows in bundles"));
    TRY(p->driver->download(b, p->device, first, p->twins.a_firsts, words * sizeof *first));
    TRY(p->driver->download(b, p->device, of, p->twins.of, p->rows * sizeof *of));
    TRY(p->driver->wait(b, p->device));
    for (uint32_t i = p->rows; i-- > 0;) {
        const uint32_t at = i % TL_TWIN_ROWS;
        length++;
        if (!(first[(uint64_t)(i / TL_TWIN_ROWS) * TL_TWIN_WORDS + at / 32] >> at % 32 & 1)) continue;
        if (of[i] == 0 && length <= TWIN_MOST) r->twin_groups[length]++;
        length = 0;
    }
done:
    tl_free(b, first);
    tl_free(b, of);
    return status;
}

static tulle_status fill_in(const tl_product *p, tulle_repeats *r)
{
    const uint64_t *sums = p->note[0], *m = sums + SUM_MOTIF;
    r->products = (int64_t)sums[SUM_PRODUCTS];
    tl_twins_sampled(p, r);
    r->sampled = (int64_t)m[MOTIF_SAMPLED];
    r->kinds = (int64_t)m[MOTIF_DIFFERENT];
    if (p->motifs.used) {
        r->chosen = "motifs";
        r->motifs_found = (int64_t)m[MOTIF_FOUND];
        r->motifs = p->motifs.used;
        r->motif_rows = p->motifs.rows;
        r->motif_products = p->motifs.products;
    }
    if (!p->twins.used) return TULLE_OK;
    r->chosen = "twins";
    r->twin_rows = p->twins.rows;
    r->twin_products = p->twins.products;
    return count_groups(p, r);
}

tulle_status tl_gpu_repeats(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_repeats *r)
{
    tulle_status status = TULLE_OK;
    tl_product p = {0};
    memset(r, 0, sizeof *r);
    r->chosen = "none";
    r->rows = request->A->rows;
    if (!request->recipe->alike) return TULLE_OK;
    tl_dmem_begin(gpu, request->before, request->memory_limit);
    TRY(tl_product_begin(b, gpu, request, &p));
    TRY(tl_product_find(&p));
    TRY(fill_in(&p, r));
done:
    if (status == TULLE_ELIMIT) status = tl_product_refused(&p);
    if (status != TULLE_OK) tl_gpu_rest(b, gpu);
    tl_product_done(&p);
    tl_dmem_end(gpu);
    return status;
}
