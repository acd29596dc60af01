/* SPDX-License-Identifier: MIT
 *
 * product.c - the stages of a product on a device:
 *
 *   operands to the device -> (check) -> analysis -> wait -> (twins or motifs -> wait) -> balance ->
 *   symbolic -> row pointers -> wait -> C allocated -> balance -> numeric -> sorting -> C to its place
 *
 * The host waits for results that its decisions need: the summary of the rows, twins or motifs, the size of
 * C.  Memory: 14 bytes per row of A (18 with 64-bit columns) in one block; lists of rows (at most 8 bytes
 * per row) if rows are sorted into classes; positions or hash maps for each resident block. */
#include "gpu/product.h"
#include <inttypes.h>
#include <string.h>

static const tl_dmem nothing = {0, 0};

static const tl_road *road_of(const tl_recipe *recipe);

tulle_status tl_product_begin(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = request->A, *B = request->B;
    memset(p, 0, sizeof *p);
    *p = (tl_product){.b = b, .gpu = gpu, .driver = gpu->driver, .device = gpu->device, .request = *request,
                      .road = road_of(request->recipe), .timed = request->stages};
    if (p->request.row1 < 0) p->request.row1 = A->rows;
    int64_t rows = p->request.row1 - p->request.row0;
    const struct { const char *what; int64_t count; } dims[] = {{"rows of A", rows}, {"rows of B", B->rows}};
    for (int i = 0; i < 2; i++)
        if (dims[i].count >= UINT32_MAX) {
            status = tl_fail(b, TULLE_EOVERFLOW, "%" PRId64 " %s: a device takes at most %" PRIu32,
                             dims[i].count, dims[i].what, UINT32_MAX - 1);
            goto done;
        }
    p->rows = (uint32_t)rows;
    p->types = (tl_types){
        .ptr =
            A->ptr_type == TULLE_I64 || B->ptr_type == TULLE_I64 || request->ptr_type == TULLE_I64 ? 64 : 32,
        .idx = A->idx_type == TULLE_I64 || B->idx_type == TULLE_I64 ? 64 : 32,
        .key = 32,
        .val = request->values ? (int)A->val_type : TULLE_F32};
    p->same = tl_same_matrix(A, B) && rows == A->rows;
    const double start = tl_gpu_now(gpu);
    TRY(tl_product_mark(p, NULL));
    TRY(tl_operand_bring(p, A, "A", p->request.row0, rows, &p->A));
    if (p->same) {
        p->B = p->A;
        memset(p->B.own, 0, sizeof p->B.own);
    } else {
        TRY(tl_operand_bring(p, B, "B", 0, B->rows, &p->B));
    }
    TRY(tl_parcels_finish(b, gpu));
    if (A->place == TULLE_HOST || B->place == TULLE_HOST) p->uploading = tl_gpu_now(gpu) - start;
    /* If only the pattern is wanted, any array will do as values: the columns. */
    if (!request->values) {
        p->A.val = p->A.col;
        p->B.val = p->B.col;
    }
    TRY(tl_meta_make(p));
    TRY(tl_product_mark(p, "operands"));
    if (!request->trusted) {
        const tl_kernel_id check = TL_K_CHECK;
        TRY(tl_product_need(p, tl_check_types(A), &check, 1));
        TRY(tl_product_need(p, tl_check_types(B), &check, 1));
        TRY(p->driver->fill(b, p->device, p->bad, 0xff, 8));
        if (p->request.row0 == 0 && rows == A->rows)
            TRY(tl_check_launch(b, gpu, A, rows, p->A.ptr, p->A.col, p->bad));
        if (!p->same) TRY(tl_check_launch(b, gpu, B, B->rows, p->B.ptr, p->B.col, p->bad));
        TRY(tl_product_mark(p, "check"));
    }
    TRY(tl_operand_columns(p, A, &p->A));
    if (p->same) p->B.col = p->A.col;
    else TRY(tl_operand_columns(p, B, &p->B));
    if (!request->values) {
        p->A.val = p->A.col;
        p->B.val = p->B.col;
    }
    TRY(tl_operand_pointers(p, A, rows, &p->A));
    if (p->same) p->B.ptr = p->A.ptr;
    else TRY(tl_operand_pointers(p, B, B->rows, &p->B));
    p->a_nnz = A->nnz;
    p->begun = tl_dmem_taken(gpu);
done:
    return status;
}

/* ---- the stages of both steps until C is counted */

static uint64_t pointer_bytes(const tl_product *p)
{
    return ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8);
}

/* The fast path for small products, with one wait instead of two; falls back to the other stages if a row is
 * too long for it. */
static tulle_status try_short(tl_product *p)
{
    tulle_status status = TULLE_OK;
    bool was_tiny = false;
    if (!tl_looks_tiny(p)) return TULLE_OK;
    TRY(tl_product_sizes(p, p->types, true, false));
    TRY(tl_tiny(p, &was_tiny));
done:
    return status;
}

tulle_status tl_product_look(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_types keys = p->types;
    TRY(tl_product_analyze(p));
    const uint64_t span = p->note[0][SUM_MAX_SPAN];
    if (span > ((uint64_t)1 << 27)) {                           /* wider keys, fewer slots, other classes */
        keys.key = 64;
        TRY(tl_product_sizes(p, keys, span >= UINT32_MAX, true));
        TRY(tl_look_again(p));
    }
    TRY(tl_dmem_alloc(p->b, p->gpu, pointer_bytes(p), "row pointers of C", &p->c_ptr));
    if (p->rows == 0 || p->note[0][SUM_PRODUCTS] == 0) {
        TRY(p->driver->fill(p->b, p->device, p->c_ptr, 0, pointer_bytes(p)));
        p->known = TL_COUNTED;
    }
done:
    return status;
}

static tulle_status find_motifs(tl_product *p)
{
    tulle_status status = TULLE_OK;
    bool again = false;
    TRY(tl_motifs_find(p, &again));
    if (again) TRY(tl_look_again(p));
done:
    return status;
}

static tulle_status count(tl_product *p)
{
    tulle_status status = TULLE_OK;
    TRY(tl_step_balance(p, 0));
    if (p->work[0].balanced) TRY(tl_product_mark(p, "symbolic load"));
    TRY(tl_step_symbolic(p));
    TRY(tl_motifs_count(p));
    TRY(tl_twins_give(p));
    TRY(tl_product_mark(p, "symbolic"));
done:
    return status;
}

tulle_status tl_product_pointers(tl_product *p)
{
    tulle_status status = TULLE_OK;
    bool in_portions = false;
    TRY(tl_portions_pointers(p, &in_portions));
    if (!in_portions) {
        TRY(tl_product_scan(p, p->c_ptr));
        TRY(tl_product_mark(p, "row pointers"));
        TRY(tl_product_read(p, 1));
    }
    tl_dmem_free(p->gpu, p->work[0].list);
    p->work[0].list = nothing;
    p->c_nnz = (int64_t)p->note[1][SUM_NNZ];
    p->motifs.most = (uint32_t)p->note[1][SUM_MOTIF + MOTIF_MOST];
    p->known = TL_COUNTED;
done:
    return status;
}

static const tl_road two_steps = {
    .before = {try_short, tl_product_look, tl_twins_find, find_motifs, count, tl_product_pointers},
    .after = {tl_product_c, tl_product_fill},
    .fill = tl_product_fill,
    .numeric = tl_step_numeric,
    .needs = tl_step_needs,
    .most = tl_step_most,
    .shares = tl_product_shares,
};

static const tl_road *road_of(const tl_recipe *recipe)
{
    if (recipe->once) return &tl_road_once;
    return recipe->delta ? &tl_road_delta : &two_steps;
}

static tulle_status run(tl_product *p, const tl_stage *stages)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; stages[i]; i++) TRY(stages[i](p));
done:
    return status;
}

tulle_status tl_product_pattern(tl_product *p)
{
    tulle_status status = TULLE_OK;
    for (int i = 0; p->road->before[i] && p->known != TL_COUNTED; i++) TRY(p->road->before[i](p));
done:
    return status;
}

void tl_product_done(tl_product *p)
{
    if (!p->gpu) return;
    for (int i = 0; i < 2; i++) tl_dmem_free(p->gpu, p->work[i].list);
    tl_motifs_done(p);
    tl_twins_done(p);
    tl_portions_done(p);
    if (p->road && p->road->done) p->road->done(p);
    tl_operand_done(p, &p->A);
    tl_operand_done(p, &p->B);
    tl_dmem_free(p->gpu, p->meta);
    for (int i = 0; i < TL_SCRATCH; i++) tl_dmem_free(p->gpu, p->scratch[i]);
    tl_dmem_free(p->gpu, p->c_ptr);
    tl_dmem_free(p->gpu, p->c_col);
    tl_dmem_free(p->gpu, p->c_val);
    memset(p, 0, sizeof *p);
}

tulle_status tl_product_allocate(tl_product *p, bool values)
{
    tulle_status status = TULLE_OK;
    if (p->request.ptr_type == TULLE_I32 && !tl_fits(TULLE_I32, p->c_nnz)) {
        status = tl_fail(p->b, TULLE_EOVERFLOW,
                         "C has %" PRId64 " entries, more than 32-bit row pointers can count (%" PRId64
                         "); ask for 64 bit",
                         p->c_nnz, (int64_t)TULLE_I32_LIMIT);
        goto done;
    }
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->c_nnz * (uint64_t)(p->types.idx / 8), "column indices of C",
                      &p->c_col));
    if (values)
        TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->c_nnz * tl_type_size((tulle_type)p->types.val),
                          "values of C", &p->c_val));
done:
    return status;
}

tulle_status tl_product_c(tl_product *p)
{
    return tl_product_allocate(p, true);
}

tulle_status tl_product_fill(tl_product *p)
{
    tulle_status status = TULLE_OK;
    if (p->c_nnz == 0) return TULLE_OK;
    if (p->portions.count) return tl_portions_fill(p);
    TRY(tl_step_balance(p, 1));
    if (p->work[1].balanced) TRY(tl_product_mark(p, "numeric load"));
    TRY(tl_step_numeric(p));
done:
    return status;
}

tulle_status tl_gpu_multiply(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **out,
                             tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_product p = {0};
    tl_once once = {0};
    double start = tl_gpu_now(gpu), at[2];
    uint64_t waits = gpu->driver->waits(gpu->device);
    *out = NULL;
    tl_dmem_begin(gpu, request->before, request->memory_limit);
    TRY(tl_product_begin(b, gpu, request, &p));
    if (request->recipe->once) p.once = &once;
    TRY(tl_product_pattern(&p));
    at[0] = tl_gpu_now(gpu);
    if (tl_progress(b, "symbolic", 0.5)) {
        status = tl_fail(b, TULLE_ECANCEL, "cancelled after the symbolic step");
        goto done;
    }
    TRY(run(&p, p.road->after));
    if (request->drop_zeros) TRY(tl_result_drop(&p));
    TRY(tl_result_fit(&p));
    stats->c_nnz = p.c_nnz;
    stats->products = (int64_t)p.note[0][SUM_PRODUCTS];
    stats->waits = (int)(gpu->driver->waits(gpu->device) - waits);
    TRY(p.road->shares(&p, stats));
    uint64_t c_bytes = (uint64_t)p.c_nnz * (uint64_t)(p.types.idx / 8)
                       + ((uint64_t)p.rows + 1) * (uint64_t)(p.types.ptr / 8)
                       + (request->values ? (uint64_t)p.c_nnz * tl_type_size(request->A->val_type) : 0);
    TRY(tl_result_deliver(&p, out));
    if (p.timed) TRY(tl_product_mark(&p, "result"));
    /* No wait if work was enqueued in the caller's queue. */
    if (!gpu->foreign || request->place == TULLE_HOST || p.timed) TRY(gpu->driver->wait(b, gpu->device));
    if (p.timed) TRY(tl_product_times(&p, stats));
    at[1] = tl_gpu_now(gpu);
    stats->sec_upload += p.uploading;               /* summed over blocks of rows */
    stats->sec_symbolic += at[0] - start - p.uploading;
    stats->sec_numeric += (p.computed > 0 ? p.computed : at[1]) - at[0];
    if (p.computed > 0) stats->sec_download += at[1] - p.computed;
    stats->peak_bytes = tl_dmem_most(gpu);
    stats->workspace_bytes = stats->peak_bytes > c_bytes ? stats->peak_bytes - c_bytes : 0;
done:
    if (status != TULLE_OK && *out) tl_gpu_rest(b, gpu);    /* C may still be copied to the host */
    if (status == TULLE_ELIMIT) status = tl_product_refused(&p);
    tl_once_done(&p, &once);
    tl_product_done(&p);
    tl_dmem_end(gpu);
    if (status != TULLE_OK) {
        tl_matrix_free(b, *out);
        *out = NULL;
    }
    return status;
}
