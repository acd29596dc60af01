/* SPDX-License-Identifier: MIT
 *
 * operands.c - prepares two views for an engine: checks options and shapes, validates the views (once, if B
 * is A), and makes sorted or transposed copies where requested.
 *
 * Copies are made on the host.  An operand that an engine with its own memory can use without such a copy is
 * not read here: the device checks it. */
#include "ctx.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <string.h>

tulle_status tl_options_check(tulle_ctx *ctx, const tulle_options *options, tulle_options *out)
{
    static const tulle_options defaults;
    tl_base *b = &ctx->base;
    *out = options ? *options : defaults;
    const struct { const char *name; int value, least, most; } fields[] = {
        {"threads", out->threads, 0, 1 << 16},
        {"op_a", out->op_a, TULLE_KEEP, TULLE_ADJOINT},
        {"op_b", out->op_b, TULLE_KEEP, TULLE_ADJOINT},
        {"c_ptr_type", out->c_ptr_type, 0, TULLE_I64},
        {"c_idx_type", out->c_idx_type, 0, TULLE_I64},
        {"drop_zeros", out->drop_zeros, 0, 1},
        {"sort_inputs", out->sort_inputs, 0, 1},
        {"trust_inputs", out->trust_inputs, 0, 1},
        {"c_place", out->c_place, TULLE_HOST, TULLE_DEVICE},
        {"time_stages", out->time_stages, 0, 1},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return tl_fail(b, TULLE_EINVAL, "options: %s is %d, it may be %d to %d", fields[i].name,
                           fields[i].value, fields[i].least, fields[i].most);
    if (ctx->engine->on_host) out->c_place = TULLE_HOST;
    return TL_RESERVED_CHECK(b, "options", out);
}

/* The free memory is queried only for products that are large enough for it to matter. */
uint64_t tl_limit_for(const tulle_options *o, uint64_t bytes)
{
    if (o->memory_limit) return o->memory_limit;
    return bytes < (uint64_t)64 << 20 ? UINT64_MAX : tl_memory_free();
}

uint64_t tl_host_limit(const tl_engine *engine, const tulle_options *o, uint64_t bytes)
{
    static const tulle_options none;
    return tl_limit_for(engine->on_host ? o : &none, bytes);
}

/* An operand that is being prepared. */
typedef struct work {
    const tl_engine *engine;            /* the engine that will use it              */
    tulle_csr    *view;
    const char   *name;
    int           op;
    bool          checked;              /* its arrays were already validated        */
    bool          inner;                /* transposed together with the other operand (inner.c) */
    tulle_matrix **own;
    int64_t      **perm;                /* NULL: not wanted                         */
} work;

static bool needs_copy(const work *w, const tulle_options *o)
{
    return w->op != TULLE_KEEP || o->sort_inputs || w->inner;
}

/* ---- memory of the copies, step by step: the peak, and what remains */

typedef struct bytes {
    uint64_t most, kept;
} bytes;

static void take(bytes *n, uint64_t on_the_way, uint64_t result)
{
    uint64_t now = tl_bytes_sum(n->kept, on_the_way);
    if (now > n->most) n->most = now;
    n->kept = tl_bytes_sum(n->kept, result);
}

static tulle_status copy_bytes(tulle_ctx *ctx, const work *w, const tulle_options *o, bool look, bytes *n)
{
    tulle_status status = TULLE_OK;
    const tulle_csr *A = w->view;
    bool moved = A->place == TULLE_DEVICE && (look || needs_copy(w, o));
    uint64_t own = 0, result = 0;
    if (moved) {
        own = tl_csr_bytes(A) + sizeof(tulle_matrix);
        take(n, own, own);
    }
    if (o->sort_inputs) {
        uint64_t copy = tl_csr_bytes(A) + sizeof(tulle_matrix);
        uint64_t sort = tl_bytes_of((uint64_t)A->nnz, 2 * sizeof(tl_pair) + tl_value_size(A));
        if (!moved) TRY(tl_rows_sort_bytes(&ctx->base, A, &sort));
        take(n, tl_bytes_sum(copy, sort), copy);
        n->kept -= own;
        own = copy;
    }
    if (w->op != TULLE_KEEP) {
        take(n, tl_csr_transpose_bytes(&ctx->base, A, w->perm, &result), result);
        n->kept -= own;
    }
done:
    return status;
}

static void replace(tl_base *b, work *w, tulle_matrix *copy)
{
    tulle_type type = w->view->val_type;
    tl_matrix_free(b, *w->own);
    *w->own = copy;
    *w->view = copy->view;
    w->view->val_type = type;           /* of a pattern, too: it determines C's type */
}

/* Replaces a slice by a view with row_ptr[0] = 0. */
static tulle_status resolve_slice(tulle_ctx *ctx, work *w, const tulle_options *o)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_csr view;
    tulle_matrix *own = NULL;
    uint64_t needs = tl_csr_slice_bytes(w->view);
    uint64_t limit = w->engine->on_host ? tl_limit_for(o, needs) : UINT64_MAX;
    if (needs > limit && needs > TL_LOOK_BYTES)
        return tl_fail(b, TULLE_ELIMIT, "%s: the row pointers of a slice alone need %" PRIu64
                       " bytes, the limit is %" PRIu64, w->name, needs, limit);
    TRY(tl_csr_slice(b, w->view, w->name, o->threads, &view, &own));
    if (own) replace(b, w, own);
done:
    return status;
}

/* Validates an operand on the host: rows must be sorted, or if they will be sorted, indices in range. */
static tulle_status check(tulle_ctx *ctx, work *w, const tulle_options *o)
{
    tulle_status status = TULLE_OK;
    if (w->checked) return TULLE_OK;
    if (o->sort_inputs) TRY(tl_csr_check_bounds(&ctx->base, w->view, w->name, o->threads));
    else if (!o->trust_inputs) TRY(tl_csr_check(&ctx->base, w->view, w->name, o->threads));
    w->checked = true;
done:
    return status;
}

/* Replaces the view by a copy where one is needed.  Of an operand that the device uses directly only the
 * number of entries is checked: the device does the rest. */
static tulle_status prepare(tulle_ctx *ctx, work *w, const tulle_options *o, bool look)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix *copy = NULL;
    bool here = look || w->engine->on_host || needs_copy(w, o);
    if (!here && (o->trust_inputs || w->view->place == TULLE_DEVICE)) return TULLE_OK;
    if (!here) return tl_csr_check_ends(b, w->view, w->name);
    if (w->view->place == TULLE_DEVICE) {
        TRY(w->engine->move(ctx, w->view, TULLE_HOST, &copy));
        replace(b, w, copy);
        tl_trace(b, "%s: copied from %s to the host, %s", w->name, ctx->device,
                 w->op != TULLE_KEEP ? "transposed there" : o->sort_inputs ? "sorted there" : "read there");
    }
    TRY(check(ctx, w, o));
    if (o->sort_inputs) {
        TRY(tl_csr_sort(b, w->view, &copy));
        replace(b, w, copy);
    }
    if (w->op != TULLE_KEEP && !w->inner) {
        TRY(tl_csr_transpose(b, w->view, (tulle_op)w->op, &copy, w->perm));
        replace(b, w, copy);
    }
done:
    return status;
}

/* The checks of a pair of operands that read no arrays. */
static tulle_status check_pair(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                               bool values)
{
    static const char *const a_names[] = {"A", "A^T", "A^H"}, *const b_names[] = {"B", "B^T", "B^H"};
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    TRY(tl_view_check(ctx, A, "A"));
    TRY(tl_view_check(ctx, B, "B"));
    if (!tl_type_known((int)A->val_type) || !tl_type_known((int)B->val_type)) {
        status = tl_fail(b, TULLE_ETYPE, "value types %d and %d: not both are known", (int)A->val_type,
                         (int)B->val_type);
        goto done;
    }
    if (A->val_type != B->val_type) {
        status = tl_fail(b, TULLE_ETYPE, "A has values of type %s, B of type %s; convert one of them",
                         tl_type_name(A->val_type), tl_type_name(B->val_type));
        goto done;
    }
    if (values && ((!A->values && A->nnz > 0) || (!B->values && B->nnz > 0))) {
        status = tl_fail(b, TULLE_EINVAL, "%s has no values", !A->values && A->nnz > 0 ? "A" : "B");
        goto done;
    }
    int64_t a_cols = o->op_a ? A->rows : A->cols, b_rows = o->op_b ? B->cols : B->rows;
    if (a_cols != b_rows)
        status = tl_fail(b, TULLE_ESHAPE, "%s is %" PRId64 " x %" PRId64 " and %s is %" PRId64 " x %" PRId64
                         ": %" PRId64 " columns against %" PRId64 " rows",
                         a_names[o->op_a], o->op_a ? A->cols : A->rows, a_cols,
                         b_names[o->op_b], b_rows, o->op_b ? B->rows : B->cols, a_cols, b_rows);
    if (status == TULLE_OK) status = tl_arrays_check(ctx, A, "A");
    if (status == TULLE_OK && !tl_same_matrix(A, B)) status = tl_arrays_check(ctx, B, "B");
done:
    return status;
}

/* Whether B^T would consist mostly of empty rows, so that it pays to leave them out (inner.c). */
static bool is_hypersparse(tulle_ctx *ctx, const work *wa, const work *wb, const tulle_options *o)
{
    const tulle_csr *A = wa->view, *B = wb->view;
    uint64_t result;
    if (o->op_a != TULLE_KEEP || o->op_b == TULLE_KEEP || B->cols / 8 <= B->nnz) return false;
    uint64_t plain = tl_csr_transpose_bytes(&ctx->base, B, wb->perm, &result);
    return tl_inner_bytes(A, B, wa->perm, &result) < plain / 2;
}

/* Checks that the copies fit in the limit. */
static tulle_status check_limit(tulle_ctx *ctx, const tulle_options *o, const work *wa, const work *wb,
                                bool share, bool look)
{
    tulle_status status = TULLE_OK;
    bytes n = {0, 0};
    uint64_t result;
    work plain = *wb;
    if (wb->inner) plain.op = TULLE_KEEP;
    TRY(copy_bytes(ctx, wa, o, look, &n));
    if (!share) TRY(copy_bytes(ctx, &plain, o, look, &n));
    if (wb->inner) take(&n, tl_inner_bytes(wa->view, wb->view, wa->perm, &result), result);
    uint64_t limit = tl_host_limit(wa->engine, o, n.most);
    /* small copies are made even beyond the limit, to find out what the whole product needs */
    if (n.most <= limit || (wa->engine->on_host && n.most <= TL_LOOK_BYTES)) return TULLE_OK;
    bool turned = wa->op || (wb->op && !wb->inner);
    status = tl_fail(&ctx->base, TULLE_ELIMIT, "copies of the operands alone need %" PRIu64 " bytes%s, the "
                     "limit is %" PRIu64, n.most,
                     turned ? " (a transposed one has a row for each column)" : "", limit);
done:
    return status;
}

static tulle_status make_inner(tulle_ctx *ctx, const tulle_options *o, work *wa, work *wb)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_inner x;
    int64_t columns = wb->view->cols;
    TRY(tl_inner_transpose(b, wa->view, wb->view, (tulle_op)o->op_b, &x, wa->perm != NULL));
    replace(b, wb, x.B);
    replace(b, wa, x.A);
    if (wa->perm) *wa->perm = x.a_perm, *wb->perm = x.b_perm;
    tl_trace(b, "B has entries in %" PRId64 " of its %" PRId64 " columns: B^T has rows for these only",
             x.B->view.rows, columns);
done:
    return status;
}

/* Checks the operands whose arrays are on the host and will be read there. */
static tulle_status check_first(tulle_ctx *ctx, const tulle_options *o, bool look, work *wa, work *wb)
{
    tulle_status status = TULLE_OK;
    work *both[] = {wa, wb};
    for (int i = 0; i < 2; i++) {
        work *w = both[i];
        bool here = look || w->engine->on_host || needs_copy(w, o);
        if (!here || w->view->place == TULLE_DEVICE) continue;
        if (i == 1 && wa->checked && tl_same_arrays(wa->view, wb->view)) wb->checked = true;
        TRY(check(ctx, w, o));
    }
done:
    return status;
}

tulle_status tl_operands_make(tulle_ctx *ctx, const tl_engine *engine, const tulle_csr *A, const tulle_csr *B,
                              const tulle_options *o, int want, tl_operands *x)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    double start = tl_now();
    bool look = want & TL_LOOK, perms = want & TL_PERMS;
    memset(x, 0, sizeof *x);
    x->A = *A;
    x->B = *B;
    TRY(check_pair(ctx, A, B, o, want & TL_VALUES));
    work wa = {.engine = engine, .view = &x->A, .name = "A", .op = o->op_a, .own = &x->own_a,
               .perm = perms ? &x->perm_a : NULL};
    work wb = {.engine = engine, .view = &x->B, .name = "B", .op = o->op_b, .own = &x->own_b,
               .perm = perms ? &x->perm_b : NULL};
    bool same = tl_same_arrays(A, B);
    bool share = tl_same_matrix(A, B) && o->op_a == o->op_b && (!perms || o->op_a == TULLE_KEEP);
    TRY(resolve_slice(ctx, &wa, o));
    if (share) x->B = x->A;
    else TRY(resolve_slice(ctx, &wb, o));
    TRY(check_first(ctx, o, look, &wa, &wb));
    wa.inner = wb.inner = is_hypersparse(ctx, &wa, &wb, o);
    TRY(check_limit(ctx, o, &wa, &wb, share, look));
    TRY(prepare(ctx, &wa, o, look));
    if (share) {
        x->B = x->A;
        wb.checked = wa.checked;
    } else {
        wb.checked = wb.checked || (same && wa.checked);
        TRY(prepare(ctx, &wb, o, look));
    }
    x->a_nnz = x->A.nnz;
    x->b_nnz = x->B.nnz;
    if (wb.inner) TRY(make_inner(ctx, o, &wa, &wb));
    x->checked = wa.checked && wb.checked;
done:
    x->seconds = tl_now() - start;
    if (status != TULLE_OK) tl_operands_done(b, x);
    return status;
}

void tl_operands_done(tl_base *b, tl_operands *x)
{
    tl_matrix_free(b, x->own_a);
    tl_matrix_free(b, x->own_b);
    tl_free(b, x->perm_a);
    tl_free(b, x->perm_b);
    memset(x, 0, sizeof *x);
}
