/* SPDX-License-Identifier: MIT
 *
 * product.c - the road of one product on a device:
 *
 *   operands on the device -> (check) -> analysis -> wait -> balance -> symbolic -> row pointers -> wait
 *   -> C allocated -> balance -> numeric -> sorting -> C where it is asked for
 *
 * The two waits are where the host must know something: what the rows are like, how large C is.  Memory: 14 bytes a row
 * of A (18 with 64-bit columns) in one block; lists of rows (at most 8 bytes a row) where rows are sorted
 * into classes; positions or hash maps of blocks that are resident. */
#include "gpu/product.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const tl_dmem nothing = {0, 0};

/* ---- operands */

static tl_dmem foreign(const void *p)
{
    return (tl_dmem){(uint64_t)(uintptr_t)p, 0};
}

static tulle_status to_device(tl_product *p, const void *from, uint64_t bytes, const char *what, tl_dmem *mem)
{
    tulle_status status = TULLE_OK;
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, what, mem));
    if (bytes) TRY(p->driver->upload(p->b, p->device, *mem, from, bytes));
done:
    return status;
}

/* count entries of 32 bits become 64, or the other way round. */
static tulle_status resize(tl_product *p, tl_kernel_id id, uint64_t count, tl_dmem from, tl_dmem *to)
{
    tulle_status status = TULLE_OK;
    tl_types types = {32, 32, 32, 0};
    TRY(tl_product_need(p, types, &id, 1));
    TRY(tl_dmem_alloc(p->b, p->gpu, count * (id == TL_K_WIDEN ? 8 : 4), "indices in another width", to));
    uint64_t blocks = (count + 255) / 256;
    if (blocks > 65536) blocks = 65536;
    tl_arg args[] = {TL_U64(count), TL_MEM(from), TL_MEM(*to)};
    TRY(tl_product_launch(p, types, id, blocks, 256, 0, 0, args, TL_COUNT(args)));
done:
    return status;
}

/* Rows row0..row1 of a view on the device, in the widths of p->types. */
static tulle_status operand(tl_product *p, const tulle_csr *M, const char *name, int64_t row0, int64_t rows, tl_operand *x)
{
    tulle_status status = TULLE_OK;
    size_t ptr = tl_index_size(M->ptr_type), idx = tl_index_size(M->idx_type), val = tl_type_size(M->val_type);
    const void *slice = (const char *)M->row_ptr + (size_t)row0 * ptr;
    bool all = rows == M->rows, values = p->request.values && M->nnz > 0;
    char what[64];
    snprintf(what, sizeof what, "%s on the device", name);
    if (M->place == TULLE_DEVICE) {
        x->ptr = foreign(M->row_ptr);
        x->col = foreign(M->col_idx);
        x->val = foreign(M->values);
        if (!all) {
            tl_dmem from = x->ptr;
            from.offset = (uint64_t)row0 * ptr;
            TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)(rows + 1) * ptr, what, &x->own[0]));
            TRY(p->driver->copy(p->b, p->device, x->own[0], from, (uint64_t)(rows + 1) * ptr));
            x->ptr = x->own[0];
        }
    } else {
        TRY(to_device(p, slice, (uint64_t)(rows + 1) * ptr, what, &x->own[0]));
        TRY(to_device(p, M->col_idx, (uint64_t)M->nnz * idx, what, &x->own[1]));
        if (values) TRY(to_device(p, M->values, (uint64_t)M->nnz * val, what, &x->own[2]));
        x->ptr = x->own[0];
        x->col = x->own[1];
        x->val = x->own[2];
    }
done:
    return status;
}

/* Row pointers and columns in the widths that the kernels were chosen for; after the check, which wants them as they
 * came. */
static tulle_status fit_columns(tl_product *p, const tulle_csr *M, tl_operand *x)
{
    tulle_status status = TULLE_OK;
    if (p->types.idx == 64 && M->idx_type == TULLE_I32) {
        tl_dmem wide;
        TRY(resize(p, TL_K_WIDEN, (uint64_t)M->nnz, x->col, &wide));
        tl_dmem_free(p->gpu, x->own[1]);
        x->own[1] = x->col = wide;
    }
done:
    return status;
}

static tulle_status fit_pointers(tl_product *p, const tulle_csr *M, int64_t rows, tl_operand *x)
{
    if (p->types.ptr == 32 || M->ptr_type == TULLE_I64 || x->wide.handle) return TULLE_OK;
    tulle_status status = resize(p, TL_K_WIDEN, (uint64_t)rows + 1, x->ptr, &x->wide);
    if (status == TULLE_OK) x->ptr = x->wide;
    return status;
}

static void operand_done(tl_product *p, tl_operand *x)
{
    for (int i = 0; i < 3; i++) tl_dmem_free(p->gpu, x->own[i]);
    tl_dmem_free(p->gpu, x->wide);
    memset(x, 0, sizeof *x);
}

/* ---- check */

static tulle_status tell_which(tl_product *p, uint32_t row)
{
    tulle_status status = TULLE_OK;
    TRY(tl_check_tell(p->b, p->gpu, p->request.A, "A"));
    TRY(tl_check_tell(p->b, p->gpu, p->request.B, "B"));
    status = tl_fail(p->b, TULLE_EPATTERN, "row %" PRIu32 " of A or B changed while it was checked", row);
done:
    return status;
}

/* ---- the block of metadata */

static uint64_t take(uint64_t *at, uint64_t bytes)
{
    uint64_t here = *at;
    *at += (bytes + TL_ALIGN - 1) / TL_ALIGN * TL_ALIGN;
    return here;
}

static uint32_t tile_items(uint32_t rows)
{
    uint32_t items = 1;                     /* enough tiles for the device, not more than a block likes to add up */
    while (items < 8 && (uint64_t)items * 256 * 512 < rows) items *= 2;
    while ((uint64_t)items * 256 * 4096 < rows) items *= 2;
    return items;
}

static uint64_t tile_count(uint32_t rows)
{
    return ((uint64_t)rows + tile_items(rows) * 256 - 1) / (tile_items(rows) * 256);
}

enum { METAS = 5 };

/* Where each array begins; returns the bytes of all. */
static uint64_t lay_meta(const tl_product *p, uint64_t offset[METAS])
{
    uint64_t at = 0, n = p->rows, idx = (uint64_t)p->types.idx / 8;
    const uint64_t bytes[METAS] = {tile_count(p->rows) * 8, n * 4, n * 2, n * idx, n * 4};
    for (int i = 0; i < METAS; i++) offset[i] = take(&at, bytes[i]);
    return at;
}

uint64_t tl_meta_bytes(const tl_product *p)
{
    uint64_t offset[METAS];
    return tl_dmem_round(lay_meta(p, offset));
}

static tulle_status make_meta(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_dmem *const to[METAS] = {&p->tile_sum, &p->products, &p->longest, &p->lo, &p->span};
    uint64_t offset[METAS], bytes = lay_meta(p, offset);
    TRY(tl_dmem_alloc(p->b, p->gpu, bytes, "what is known about rows", &p->meta));
    for (int i = 0; i < METAS; i++) *to[i] = (tl_dmem){p->meta.handle, offset[i]};
    uint64_t board = p->gpu->board.handle;
    p->bad = (tl_dmem){board, p->request.trusted ? TL_BOARD_NO_BAD : TL_BOARD_BAD};
    for (unsigned step = 0; step < 2; step++) {
        p->limits[step] = (tl_dmem){board, TL_BOARD_LIMITS + step * TL_ALIGN};
        p->sum[step] = (tl_dmem){board, TL_BOARD_SUMS + step * TL_BOARD_SUM};
        p->cursors[step] = (tl_dmem){board, TL_BOARD_CURSORS + step * TL_ALIGN};
    }
done:
    return status;
}

/* Limits change with types, policy and accumulator: uploaded only then. */
static tulle_status send_limits(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_gpu *gpu = p->gpu;
    unsigned char now[TL_BOARD_BAD] = {0};
    for (int step = 0; step < 2; step++)
        memcpy(now + TL_BOARD_LIMITS + step * TL_ALIGN, p->sizes[step].limits, sizeof p->sizes[step].limits);
    memset(now + TL_BOARD_NO_BAD, 0xff, TL_ALIGN);
    if (memcmp(now, gpu->limits_now, sizeof now) == 0) return TULLE_OK;
    memset(gpu->limits_now, 0, sizeof gpu->limits_now);
    TRY(p->driver->upload(p->b, p->device, gpu->board, now, sizeof now));
    memcpy(gpu->limits_now, now, sizeof now);
done:
    return status;
}

static tulle_status read_note(tl_product *p, int step, uint32_t *bad)
{
    tulle_status status = TULLE_OK;
    uint64_t *note = p->gpu->note;
    TRY(p->driver->download(p->b, p->device, note, p->sum[step], SUM_ALL * 8));
    if (bad) TRY(p->driver->download(p->b, p->device, note + SUM_ALL, p->bad, 8));
    TRY(p->driver->wait(p->b, p->device));
    memcpy(p->note[step], note, SUM_ALL * 8);
    if (bad) memcpy(bad, note + SUM_ALL, 8);
done:
    return status;
}

/* ---- the road */

tulle_status tl_product_begin(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = request->A, *B = request->B;
    memset(p, 0, sizeof *p);
    *p = (tl_product){.b = b, .gpu = gpu, .driver = gpu->driver, .device = gpu->device, .request = *request,
                      .timed = request->stages};
    if (p->request.row1 < 0) p->request.row1 = A->rows;
    int64_t rows = p->request.row1 - p->request.row0;
    const struct { const char *what; int64_t count; } dims[] = {{"rows of A", rows}, {"rows of B", B->rows}};
    for (int i = 0; i < 2; i++)
        if (dims[i].count >= UINT32_MAX) {
            status = tl_fail(b, TULLE_EOVERFLOW, "%" PRId64 " %s: a device takes at most %" PRIu32, dims[i].count,
                             dims[i].what, UINT32_MAX - 1);
            goto done;
        }
    p->rows = (uint32_t)rows;
    p->types = (tl_types){.ptr = A->ptr_type == TULLE_I64 || B->ptr_type == TULLE_I64 || request->ptr_type == TULLE_I64 ? 64 : 32,
                          .idx = A->idx_type == TULLE_I64 || B->idx_type == TULLE_I64 ? 64 : 32, .key = 32,
                          .val = request->values ? (int)A->val_type : TULLE_F32};
    p->same = tl_same_arrays(A, B) && A->values == B->values && rows == A->rows;
    TRY(tl_product_mark(p, NULL));
    TRY(operand(p, A, "A", p->request.row0, rows, &p->A));
    if (p->same) {
        p->B = p->A;
        memset(p->B.own, 0, sizeof p->B.own);
    } else {
        TRY(operand(p, B, "B", 0, B->rows, &p->B));
    }
    /* Only the pattern is wanted: whatever lies in the columns serves as values. */
    if (!request->values) {
        p->A.val = p->A.col;
        p->B.val = p->B.col;
    }
    TRY(make_meta(p));
    TRY(tl_product_mark(p, "operands"));
    if (!request->trusted) {
        const tl_kernel_id check = TL_K_CHECK;
        TRY(tl_product_need(p, tl_check_types(A), &check, 1));
        TRY(tl_product_need(p, tl_check_types(B), &check, 1));
        TRY(p->driver->fill(b, p->device, p->bad, 0xff, 8));
        if (p->request.row0 == 0 && rows == A->rows) TRY(tl_check_launch(b, gpu, A, rows, p->A.ptr, p->A.col, p->bad));
        if (!p->same) TRY(tl_check_launch(b, gpu, B, B->rows, p->B.ptr, p->B.col, p->bad));
        TRY(tl_product_mark(p, "check"));
    }
    TRY(fit_columns(p, A, &p->A));
    if (p->same) p->B.col = p->A.col;
    else TRY(fit_columns(p, B, &p->B));
    if (!request->values) {
        p->A.val = p->A.col;
        p->B.val = p->B.col;
    }
    TRY(fit_pointers(p, A, rows, &p->A));
    if (p->same) p->B.ptr = p->A.ptr;
    else TRY(fit_pointers(p, B, B->rows, &p->B));
    p->a_nnz = A->nnz;
    p->begun = tl_dmem_taken(gpu);
done:
    return status;
}

static tulle_status analyze(tl_product *p)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    tl_kernel_id need[] = {TL_K_ANALYZE, TL_K_TILES, TL_K_OFFSETS};
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    uint32_t threads = caps->cpu ? 32 : 256, team = tl_team_log2(p->gpu, p->a_nnz, p->rows);   /* a thread for each class at least */
    /* enough blocks for the device, but a row at least for each team of a block */
    uint64_t stretch = (uint64_t)p->rows / (caps->processors * 16 + 1) + 1;
    if (stretch < threads >> team) stretch = threads >> team;
    if (stretch > threads) stretch = threads;
    uint64_t blocks = ((uint64_t)p->rows + stretch - 1) / stretch;
    tl_arg args[] = {TL_U32(p->rows), TL_U32(stretch), TL_U32(team), TL_MEM(p->bad), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr),
                     TL_MEM(p->B.col), TL_MEM(p->limits[0]), TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo),
                     TL_MEM(p->span), TL_MEM(p->sum[0])};
    TRY(tl_product_launch(p, p->types, TL_K_ANALYZE, blocks, threads, 0, 0, args, TL_COUNT(args)));
    TRY(tl_product_mark(p, p->request.recipe->once ? "upper bound" : "analysis"));
    uint32_t found[2] = {UINT32_MAX, 0};
    TRY(read_note(p, 0, p->request.trusted ? NULL : found));
    if (found[0] != UINT32_MAX) status = tell_which(p, found[0]);
done:
    return status;
}

/* ---- the short road of small products: one wait */

static bool looks_tiny(const tl_product *p)
{
    const tl_gpu_request *r = &p->request;
    const int64_t seen[3] = {p->rows, p->a_nnz, r->B->nnz};
    return p->rows > 0 && p->rows <= TINY_ROWS && p->a_nnz <= TINY_ENTRIES && r->B->cols < UINT32_MAX && r->recipe->forced < 0
           && (r->recipe->few == TL_DIRECT || r->recipe->few_rows[1].first < 512) && p->gpu->balance < 0
           && tl_fits(TULLE_I32, TINY_ROWS * (int64_t)TINY_PRODUCTS) && memcmp(seen, p->gpu->not_tiny, sizeof seen) != 0;
}

/* *done_so = false: a row was too long for it. */
static tulle_status tiny(tl_product *p, bool *done_so)
{
    tulle_status status = TULLE_OK;
    const tl_caps *caps = &p->gpu->caps;
    tl_kernel_id need[] = {TL_K_TINY_ROWS, TL_K_TINY_SCAN};
    uint64_t *note = p->gpu->note;
    *done_so = false;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8), "row pointers of C", &p->c_ptr));
    uint32_t team_log2 = caps->warp ? 5 : 3, threads = caps->warp ? 64 : 8, items = 1;
    uint32_t block = caps->cpu ? 32 : caps->threads_block < 1024 ? caps->threads_block : 1024;
    while (items * block < p->rows) items++;
    tl_arg rows[] = {TL_U32(p->rows), TL_U32(team_log2), TL_MEM(p->bad), TL_MEM(p->A.ptr), TL_MEM(p->A.col), TL_MEM(p->B.ptr),
                     TL_MEM(p->B.col), TL_MEM(p->products), TL_MEM(p->longest), TL_MEM(p->lo), TL_MEM(p->span), TL_MEM(p->c_ptr)};
    uint32_t teams = threads >> team_log2;
    TRY(tl_product_launch(p, p->types, TL_K_TINY_ROWS, (p->rows + teams - 1) / teams, threads, 0, 0, rows, TL_COUNT(rows)));
    tl_arg scan[] = {TL_U32(p->rows), TL_U32(items), TL_MEM(p->bad), TL_MEM(p->A.ptr), TL_MEM(p->products), TL_MEM(p->longest),
                     TL_MEM(p->span), TL_MEM(p->limits[1]), TL_MEM(p->c_ptr), TL_MEM(p->sum[0]), TL_MEM(p->sum[1])};
    TRY(tl_product_launch(p, p->types, TL_K_TINY_SCAN, 1, block, 0, 0, scan, TL_COUNT(scan)));
    TRY(tl_product_mark(p, "small: all before C"));
    TRY(p->driver->download(p->b, p->device, note, p->sum[0], TL_BOARD_SUM + SUM_ALL * 8));
    if (!p->request.trusted) TRY(p->driver->download(p->b, p->device, note + 2 * TL_BOARD_SUM / 8, p->bad, 8));
    TRY(p->driver->wait(p->b, p->device));
    uint32_t found = UINT32_MAX;
    if (!p->request.trusted) memcpy(&found, note + 2 * TL_BOARD_SUM / 8, sizeof found);
    if (found != UINT32_MAX) {
        status = tell_which(p, found);
        goto done;
    }
    memcpy(p->note[0], note, SUM_ALL * 8);
    memcpy(p->note[1], note + TL_BOARD_SUM / 8, SUM_ALL * 8);
    if (p->note[0][SUM_MAX_PRODUCTS] <= TINY_PRODUCTS) {
        p->c_nnz = (int64_t)p->note[1][SUM_NNZ];
        p->known = TL_COUNTED;
        p->tiny = *done_so = true;
    } else {
        const int64_t seen[3] = {p->rows, p->a_nnz, p->request.B->nnz};
        memcpy(p->gpu->not_tiny, seen, sizeof seen);
        memset(p->note, 0, sizeof p->note);
        tl_dmem_free(p->gpu, p->c_ptr);
        p->c_ptr = nothing;
    }
done:
    return status;
}

static void forget_pattern(tl_product *p)
{
    for (int i = 0; i < 2; i++) {
        tl_dmem_free(p->gpu, p->work[i].list);
        memset(&p->work[i], 0, sizeof p->work[i]);
    }
}

/* What each class of rows gets; rows of few products are nothing special on the short road. */
static tulle_status set_sizes(tl_product *p, tl_types keys, bool numeric, bool few)
{
    tl_recipe recipe = *p->request.recipe;
    if (!few) recipe.few = TL_DIRECT;
    /* before anything is known the rows of B that count are taken to be of average length */
    uint64_t mean = p->request.B->rows ? (uint64_t)(p->request.B->nnz / p->request.B->rows) : 0;
    tl_sizes_symbolic(p->gpu, &recipe, keys, mean, &p->sizes[0]);
    if (numeric) tl_sizes_numeric(p->gpu, &recipe, keys, mean, &p->sizes[1]);
    return send_limits(p);
}

uint64_t tl_wide_pointers(const tl_product *p, const tulle_csr *M, int64_t rows)
{
    return p->types.ptr == 64 && M->ptr_type == TULLE_I32 ? tl_dmem_round(((uint64_t)rows + 1) * 8) : 0;
}

static tulle_status first_look(tl_product *p)
{
    tulle_status status = TULLE_OK;
    TRY(p->driver->fill(p->b, p->device, p->sum[0], 0, TL_BOARD_BYTES - TL_BOARD_SUMS));
    TRY(analyze(p));
    uint64_t span = p->note[0][SUM_MAX_SPAN], total = p->note[0][SUM_PRODUCTS];
    tl_trace(p->b, "analysis: %" PRIu64 " products, at most %" PRIu64 " a row, rows of C span up to %" PRIu64 " columns",
             total, p->note[0][SUM_MAX_PRODUCTS], span);
    p->known = TL_ANALYZED;
    if (total > TULLE_I32_LIMIT && p->types.ptr == 32) {        /* counts may exceed 32 bits */
        p->types.ptr = 64;
        p->begun += tl_wide_pointers(p, p->request.A, p->rows) + (p->same ? 0 : tl_wide_pointers(p, p->request.B, p->request.B->rows));
        TRY(fit_pointers(p, p->request.A, p->rows, &p->A));
        if (p->same) p->B.ptr = p->A.ptr;
        else TRY(fit_pointers(p, p->request.B, p->request.B->rows, &p->B));
        tl_kernel_id need[] = {TL_K_TILES, TL_K_OFFSETS};
        TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    }
done:
    return status;
}

tulle_status tl_product_analyze(tl_product *p)
{
    tulle_status status = TULLE_OK;
    TRY(set_sizes(p, p->types, true, true));
    TRY(first_look(p));
done:
    return status;
}

tulle_status tl_product_scan(tl_product *p, tl_dmem counts)
{
    tulle_status status = TULLE_OK;
    uint32_t items = tile_items(p->rows);
    tl_arg tiles[] = {TL_U32(p->rows), TL_U32(items), TL_MEM(p->A.ptr), TL_MEM(p->products), TL_MEM(p->span),
                      TL_MEM(p->limits[1]), TL_MEM(counts), TL_MEM(p->tile_sum), TL_MEM(p->sum[1])};
    tl_arg offsets[] = {TL_U32(p->rows), TL_U32(items), TL_MEM(p->tile_sum), TL_MEM(counts)};
    TRY(tl_product_launch(p, p->types, TL_K_TILES, tile_count(p->rows), 256, 0, 0, tiles, TL_COUNT(tiles)));
    TRY(tl_product_launch(p, p->types, TL_K_OFFSETS, tile_count(p->rows), 256, 0, 0, offsets, TL_COUNT(offsets)));
done:
    return status;
}

tulle_status tl_product_read(tl_product *p, int step)
{
    return read_note(p, step, NULL);
}

tulle_status tl_product_pattern(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_types keys = p->types;
    if (looks_tiny(p)) {
        bool was_tiny = false;
        TRY(set_sizes(p, keys, true, false));
        TRY(tiny(p, &was_tiny));
        if (was_tiny) goto done;
    }
    TRY(set_sizes(p, keys, true, true));
    TRY(first_look(p));
    uint64_t span = p->note[0][SUM_MAX_SPAN];
    if (span > ((uint64_t)1 << 27)) {                           /* wider keys: fewer slots, other classes */
        keys.key = 64;
        TRY(set_sizes(p, keys, span >= UINT32_MAX, true));
        TRY(p->driver->fill(p->b, p->device, p->sum[0], 0, TL_BOARD_SUM));
        TRY(analyze(p));
    }
    TRY(tl_dmem_alloc(p->b, p->gpu, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8), "row pointers of C", &p->c_ptr));
    if (p->rows == 0 || p->note[0][SUM_PRODUCTS] == 0) {
        TRY(p->driver->fill(p->b, p->device, p->c_ptr, 0, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8)));
        p->known = TL_COUNTED;
        goto done;
    }
    TRY(tl_step_balance(p, 0));
    if (p->work[0].balanced) TRY(tl_product_mark(p, "symbolic load"));
    TRY(tl_step_symbolic(p));
    TRY(tl_product_mark(p, "symbolic"));
    TRY(tl_product_scan(p, p->c_ptr));
    TRY(tl_product_mark(p, "row pointers"));
    TRY(read_note(p, 1, NULL));
    tl_dmem_free(p->gpu, p->work[0].list);
    p->work[0].list = nothing;
    p->c_nnz = (int64_t)p->note[1][SUM_NNZ];
    p->known = TL_COUNTED;
done:
    return status;
}

void tl_product_done(tl_product *p)
{
    if (!p->gpu) return;
    forget_pattern(p);
    operand_done(p, &p->A);
    operand_done(p, &p->B);
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
        status = tl_fail(p->b, TULLE_EOVERFLOW, "C has %" PRId64 " entries, more than 32-bit row pointers can count (%" PRId64
                         "); ask for 64 bit", p->c_nnz, (int64_t)TULLE_I32_LIMIT);
        goto done;
    }
    TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->c_nnz * (uint64_t)(p->types.idx / 8), "column indices of C", &p->c_col));
    if (values) TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)p->c_nnz * tl_type_size((tulle_type)p->types.val), "values of C", &p->c_val));
done:
    return status;
}

/* ---- entries that came out as zero are left out */

static tulle_status drop(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_dmem ptr = nothing, col = nothing, val = nothing;
    tl_kernel_id need[] = {TL_K_DROP_COUNT, TL_K_DROP_COPY, TL_K_TILES, TL_K_OFFSETS};
    if (p->c_nnz == 0) return TULLE_OK;
    TRY(tl_product_need(p, p->types, need, TL_COUNT(need)));
    TRY(tl_dmem_alloc(p->b, p->gpu, ((uint64_t)p->rows + 1) * (uint64_t)(p->types.ptr / 8), "row pointers of C", &ptr));
    TRY(p->driver->fill(p->b, p->device, p->sum[1], 0, SUM_ALL * 8));
    tl_arg count[] = {TL_U32(p->rows), TL_MEM(p->c_ptr), TL_MEM(p->c_val), TL_MEM(ptr)};
    uint64_t blocks = ((uint64_t)p->rows + 127) / 128;
    TRY(tl_product_launch(p, p->types, TL_K_DROP_COUNT, blocks, 128, 0, 0, count, TL_COUNT(count)));
    TRY(tl_product_scan(p, ptr));
    TRY(read_note(p, 1, NULL));
    int64_t nnz = (int64_t)p->note[1][SUM_NNZ];
    if (nnz < p->c_nnz) {
        TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)nnz * (uint64_t)(p->types.idx / 8), "column indices of C", &col));
        TRY(tl_dmem_alloc(p->b, p->gpu, (uint64_t)nnz * tl_type_size((tulle_type)p->types.val), "values of C", &val));
        tl_arg copy[] = {TL_U32(p->rows), TL_MEM(p->c_ptr), TL_MEM(p->c_col), TL_MEM(p->c_val), TL_MEM(ptr), TL_MEM(col),
                         TL_MEM(val)};
        TRY(tl_product_launch(p, p->types, TL_K_DROP_COPY, blocks, 128, 0, 0, copy, TL_COUNT(copy)));
        tl_dmem swap[3] = {p->c_ptr, p->c_col, p->c_val};
        p->c_ptr = ptr;
        p->c_col = col;
        p->c_val = val;
        ptr = swap[0];
        col = swap[1];
        val = swap[2];
        p->c_nnz = nnz;
    }
    TRY(tl_product_mark(p, "dropping zeros"));
done:
    tl_dmem_free(p->gpu, ptr);
    tl_dmem_free(p->gpu, col);
    tl_dmem_free(p->gpu, val);
    return status;
}

/* ---- C, in the widths and at the place asked for */

tl_types tl_product_c_types(const tl_product *p, int64_t nnz)
{
    const tl_gpu_request *r = &p->request;
    tl_types types = p->types;
    types.ptr = r->ptr_type == TULLE_I64 || (!r->ptr_type && !tl_fits(TULLE_I32, nnz)) ? 64 : 32;
    types.idx = (r->idx_type ? r->idx_type : (int)r->B->idx_type) == TULLE_I64 ? 64 : 32;
    return types;
}

static tulle_status fit_c(tl_product *p)
{
    tulle_status status = TULLE_OK;
    tl_types end = tl_product_c_types(p, p->c_nnz);
    const struct { tl_dmem *mem; int now, then; uint64_t count; } parts[] = {
        {&p->c_ptr, p->types.ptr, end.ptr, (uint64_t)p->rows + 1},
        {&p->c_col, p->types.idx, end.idx, (uint64_t)p->c_nnz},
    };
    for (int i = 0; i < 2; i++) {
        if (parts[i].now == parts[i].then) continue;
        tl_dmem other;
        TRY(resize(p, parts[i].then == 64 ? TL_K_WIDEN : TL_K_NARROW, parts[i].count, *parts[i].mem, &other));
        tl_dmem_free(p->gpu, *parts[i].mem);
        *parts[i].mem = other;
    }
    p->types = end;
done:
    return status;
}

static void disown(tulle_matrix *C)
{
    tl_gpu *gpu = C->owner;
    const void *arrays[3] = {C->view.row_ptr, C->view.col_idx, C->view.values};
    for (int i = 0; i < 3; i++) tl_dmem_free(gpu, foreign(arrays[i]));
    tl_gpu_release(gpu);
}

/* The arrays become a matrix that owns them; on failure they stay the caller's. */
tulle_status tl_matrix_on_device(tl_base *b, tl_gpu *gpu, tulle_csr view, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *M = NULL;
    TRY(tl_calloc(b, &M, 1, sizeof *M, "a matrix"));
    M->view = view;
    M->view.place = TULLE_DEVICE;
    M->owner = tl_gpu_retain(gpu);
    M->disown = disown;
    *out = M;
done:
    return status;
}

static tulle_status deliver(tl_product *p, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    const tl_gpu_request *r = &p->request;
    tulle_index ptr = p->types.ptr == 64 ? TULLE_I64 : TULLE_I32, idx = p->types.idx == 64 ? TULLE_I64 : TULLE_I32;
    if (!r->values) {
        tl_dmem_free(p->gpu, p->c_val);
        p->c_val = nothing;
    }
    tulle_csr view = {.rows = p->rows, .cols = r->B->cols, .nnz = p->c_nnz, .row_ptr = (void *)(uintptr_t)p->c_ptr.handle,
                      .col_idx = (void *)(uintptr_t)p->c_col.handle, .values = (void *)(uintptr_t)p->c_val.handle,
                      .ptr_type = ptr, .idx_type = idx, .val_type = r->A->val_type, .place = TULLE_DEVICE};
    if (r->place == TULLE_DEVICE) {
        TRY(tl_matrix_on_device(p->b, p->gpu, view, out));
        p->c_ptr = p->c_col = p->c_val = nothing;
        goto done;
    }
    TRY(tl_matrix_create(p->b, p->rows, r->B->cols, p->c_nnz, ptr, idx, r->values ? (int)r->A->val_type : 0, &C));
    C->view.val_type = r->A->val_type;
    TRY(p->driver->download(p->b, p->device, C->row_ptr, p->c_ptr, ((uint64_t)p->rows + 1) * tl_index_size(ptr)));
    if (p->c_nnz) TRY(p->driver->download(p->b, p->device, C->col_idx, p->c_col, (uint64_t)p->c_nnz * tl_index_size(idx)));
    if (p->c_nnz && r->values)
        TRY(p->driver->download(p->b, p->device, C->values, p->c_val, (uint64_t)p->c_nnz * tl_type_size(r->A->val_type)));
    *out = C;
    C = NULL;
done:
    tl_matrix_free(p->b, C);
    return status;
}

/* ---- figures */

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

/* What each accumulator took, by the classes of the numeric step. */
static void shares(const tl_product *p, tulle_stats *stats)
{
    const struct { const char *name; int from, to; } groups[] = {
        {"direct", CLASS_DIRECT, CLASS_DIRECT + 1}, {"dense", CLASS_BITS, CLASS_ROWS},
        {"hash", CLASS_ROWS, CLASS_BLOCK}, {"dense", CLASS_BLOCK, CLASS_HASH}, {"hash", CLASS_HASH, CLASS_MASK},
        {"dense", CLASS_MASK, CLASS_FEW}, {tulle_accumulator_name((int)p->request.recipe->few), CLASS_FEW, CLASSES},
    };
    const uint64_t *rows = p->note[1] + SUM_ROWS, *products = p->note[1] + SUM_CLASS;
    const tl_work *w = &p->work[1];
    int64_t left = p->rows;
    stats->shares = 0;
    for (int g = 0; g < TL_COUNT(groups); g++) {
        tulle_share share = {groups[g].name, 0, 0};
        for (int c = groups[g].from; c < groups[g].to; c++) {
            if (!w->balanced && c != w->only) continue;
            share.rows += w->balanced ? (int64_t)rows[c] : (int64_t)p->rows;
            share.products += w->balanced ? (int64_t)products[c] : (int64_t)p->note[0][SUM_PRODUCTS];
        }
        add_share(stats, share);
        left -= share.rows;
    }
    add_share(stats, (tulle_share){"direct", left, 0});         /* rows without products */
}

static tulle_status stage_times(tl_product *p, tulle_stats *stats)
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
        stats->stage[k].seconds += seconds;         /* kernels may be compiled before several of them */
    }
done:
    return status;
}

tulle_status tl_gpu_multiply(tl_base *b, tl_gpu *gpu, const tl_gpu_request *request, tulle_matrix **out, tulle_stats *stats)
{
    tulle_status status = TULLE_OK;
    tl_product p = {0};
    tl_once once = {0};
    bool two = !request->recipe->once;
    double start = tl_gpu_now(gpu), at[2];
    uint64_t waits = gpu->driver->waits(gpu->device);
    *out = NULL;
    tl_dmem_begin(gpu, request->before, request->memory_limit);
    TRY(tl_product_begin(b, gpu, request, &p));
    TRY(two ? tl_product_pattern(&p) : tl_once_bins(&p, &once));
    at[0] = tl_gpu_now(gpu);
    if (tl_progress(b, "symbolic", 0.5)) {
        status = tl_fail(b, TULLE_ECANCEL, "cancelled after the symbolic step");
        goto done;
    }
    if (two) TRY(tl_product_allocate(&p, true));
    else TRY(tl_once_rows(&p, &once));
    if (two && p.c_nnz) {
        TRY(tl_step_balance(&p, 1));
        if (p.work[1].balanced) TRY(tl_product_mark(&p, "numeric load"));
        TRY(tl_step_numeric(&p));
    }
    if (request->drop_zeros) TRY(drop(&p));
    TRY(fit_c(&p));
    stats->c_nnz = p.c_nnz;
    stats->products = (int64_t)p.note[0][SUM_PRODUCTS];
    stats->waits = (int)(gpu->driver->waits(gpu->device) - waits);
    if (two) shares(&p, stats);
    else tl_once_shares(&once, stats);
    uint64_t c_bytes = (uint64_t)p.c_nnz * (uint64_t)(p.types.idx / 8) + ((uint64_t)p.rows + 1) * (uint64_t)(p.types.ptr / 8)
                       + (request->values ? (uint64_t)p.c_nnz * tl_type_size(request->A->val_type) : 0);
    TRY(deliver(&p, out));
    if (p.timed) TRY(tl_product_mark(&p, "result"));
    /* The caller's own queue goes on by itself. */
    if (!gpu->foreign || request->place == TULLE_HOST || p.timed) TRY(gpu->driver->wait(b, gpu->device));
    if (p.timed) TRY(stage_times(&p, stats));
    at[1] = tl_gpu_now(gpu);
    stats->sec_symbolic += at[0] - start;           /* blocks of rows add up */
    stats->sec_numeric += at[1] - at[0];
    stats->peak_bytes = tl_dmem_most(gpu);
    stats->workspace_bytes = stats->peak_bytes > c_bytes ? stats->peak_bytes - c_bytes : 0;
done:
    if (status == TULLE_ELIMIT) status = tl_product_refused(&p, two ? NULL : &once);
    tl_once_done(&p, &once);
    tl_product_done(&p);
    tl_dmem_end(gpu);
    if (status != TULLE_OK) {
        tl_matrix_free(b, *out);
        *out = NULL;
    }
    return status;
}
