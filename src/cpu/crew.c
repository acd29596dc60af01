/* SPDX-License-Identifier: MIT
 * crew.c - the workspaces of all threads, and the job they share. */
#include "cpu/cpu.h"
#include <string.h>

tulle_status tl_crew_make(tl_base *b, const tulle_csr *B, const tl_profile *p, const tl_pieces *pieces,
                          int threads, tl_crew *crew)
{
    tulle_status status = TULLE_OK;
    *crew = (tl_crew){.threads = threads, .value = tl_type_size(B->val_type),
                      .index = tl_index_size(B->idx_type)};
    TRY(tl_calloc(b, &crew->scratch, threads, sizeof *crew->scratch, "scratch of the threads"));
    for (int t = 0; t < threads; t++) TRY(tl_scratch_make(b, B, p, pieces, &crew->scratch[t]));
done:
    if (status != TULLE_OK) tl_crew_done(b, crew);
    return status;
}

uint64_t tl_crew_bytes(const tulle_csr *B, const tl_profile *p, const tl_pieces *pieces, int threads)
{
    return (uint64_t)threads * (sizeof(tl_scratch) + tl_scratch_bytes(B, p, pieces));
}

tulle_status tl_crew_cut(tl_base *b, tl_crew *crew, int threads)
{
    tulle_status status = TULLE_OK;
    tl_scratch *fewer = NULL;
    if (threads >= crew->threads) return TULLE_OK;
    for (; crew->threads > threads; crew->threads--) tl_scratch_done(b, &crew->scratch[crew->threads - 1]);
    TRY(tl_alloc(b, &fewer, threads, sizeof *fewer, "scratch of the threads"));
    memcpy(fewer, crew->scratch, (size_t)threads * sizeof *fewer);
    tl_free(b, crew->scratch);
    crew->scratch = fewer;
done:
    return status;
}

void tl_crew_done(tl_base *b, tl_crew *crew)
{
    for (int t = 0; crew->scratch && t < crew->threads; t++) tl_scratch_done(b, &crew->scratch[t]);
    tl_free(b, crew->scratch);
    memset(crew, 0, sizeof *crew);
}

tl_scratch *tl_crew_enter(tl_crew *crew, int thread)
{
    tl_scratch *s = &crew->scratch[thread];
    if (!s->clear) tl_scratch_clear(s, crew->value, crew->index);
    s->clear = true;
    memset(s->rows, 0, sizeof s->rows);
    memset(s->products, 0, sizeof s->products);
    return s;
}

void tl_crew_shares(const tl_crew *crew, int64_t products, tulle_stats *stats)
{
    int64_t seen = 0;
    int count = 0;
    while (tl_accumulator_on(count, TL_ON_CPU)) count++;
    for (int a = 0; a < count; a++) {
        tulle_share share = {.name = tulle_accumulator_name(a)};
        for (int t = 0; t < crew->threads; t++) {
            share.rows += crew->scratch[t].rows[a];
            share.products += crew->scratch[t].products[a];
        }
        stats->share[a] = share;
        seen += share.products;
    }
    /* rows cut by columns use the dense accumulator, and no single thread counted their products */
    stats->share[TL_DENSE].products += products - seen;
    stats->shares = count;
}

tl_job tl_job_make(const tulle_csr *A, const tulle_csr *B, const tl_recipe *recipe, const tl_profile *p)
{
    const bool choice = recipe->forced < 0, stencil = recipe->forced == TL_STENCIL;
    tl_job job = {
        .a = {A->row_ptr, A->col_idx, A->values, A->ptr_type == TULLE_I64, A->idx_type == TULLE_I64},
        .b = {B->row_ptr, B->col_idx, B->values, B->ptr_type == TULLE_I64, B->idx_type == TULLE_I64},
        .recipe = recipe,
        .a_like = p->a_like,
        .b_like = p->b_like,
        /* testing for them costs a little in every row, so it does not pay for a few */
        .twins = choice ? !p->repeats && (p->a_twins * 8 > A->rows || p->b_twins * 8 > B->rows)
                        : recipe->forced == TL_TWINS,
        .stencils = p->a_like && p->b_like
                    && (choice ? !p->repeats && p->a_shifted * 4 > A->rows && p->b_shifted * 4 > B->rows
                               : stencil),
        .ones = p->b_length == 1,
        .networks = choice && recipe->alike,
        .far = (uint64_t)B->nnz * (tl_index_size(B->idx_type) + tl_type_size(B->val_type)) > 2u << 20,
        .a_nnz = A->nnz,
        .b_nnz = B->nnz,
        .b_longest = p->max_b_row,
    };
    job.repeats = p->repeats && !job.stencils && (choice || stencil);
    return job;
}
