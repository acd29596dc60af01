/* SPDX-License-Identifier: MIT
 *
 * operands.c - makes two views ready for an engine: options and shapes are checked, the views validated
 * (once, when B is A), sorted or transposed copies made where they were asked for.
 *
 * Copies are made on the host.  What a GPU can take as it is, from the host or from its own memory, is not read
 * here: the engine checks it on the device. */
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
    for (size_t i = 0; i < sizeof out->reserved / sizeof *out->reserved; i++)
        if (out->reserved[i])
            return tl_fail(b, TULLE_EINVAL, "options: reserved[%zu] is not zero", i);
    if (out->c_place == TULLE_DEVICE && !ctx->gpu)
        return tl_fail(b, TULLE_EINVAL, "options: c_place is TULLE_DEVICE, but this context computes on the "
                       "CPU");
    return TULLE_OK;
}

/* The limit for a product that takes at most so many bytes; the machine is asked only where it matters. */
uint64_t tl_limit_for(const tulle_options *o, uint64_t bytes)
{
    if (o->memory_limit) return o->memory_limit;
    return bytes < (uint64_t)64 << 20 ? UINT64_MAX : tl_memory_free();
}

/* One operand on its way. */
typedef struct work {
    tulle_csr    *view;
    const char   *name;
    int           op;
    bool          checked;              /* its arrays were looked at already        */
    tulle_matrix **own;
    int64_t      **perm;                /* NULL: not wanted                         */
} work;

static bool needs_copy(const work *w, const tulle_options *o)
{
    return w->op != TULLE_KEEP || o->sort_inputs;
}

/* Bytes on the host of the copy that an operand needs, if any. */
static uint64_t copy_bytes(const work *w, const tulle_options *o, bool look)
{
    const tulle_csr *A = w->view;
    bool moved = A->place == TULLE_DEVICE && (look || needs_copy(w, o));
    if (!moved && !needs_copy(w, o)) return 0;
    int64_t rows = A->rows > A->cols ? A->rows : A->cols;
    uint64_t entry = tl_index_size(A->idx_type) + (A->values ? tl_type_size(A->val_type) : 0)
                     + (w->perm ? 8 : 0);
    uint64_t bytes = (uint64_t)A->nnz * entry + (uint64_t)(rows + 1) * 8;
    return moved && needs_copy(w, o) ? 2 * bytes : bytes;
}

static void replace(tl_base *b, work *w, tulle_matrix *copy)
{
    tl_matrix_free(b, *w->own);
    *w->own = copy;
    *w->view = copy->view;
}

/* The view is replaced by a copy where one is needed.  An operand that the device takes as it is stays
 * unread, but for how much of it there is: the device checks it. */
static tulle_status prepare(tulle_ctx *ctx, work *w, const tulle_options *o, bool look)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_matrix *copy = NULL;
    bool here = look || !ctx->gpu || needs_copy(w, o);
    if (!here) return o->trust_inputs || w->view->place == TULLE_DEVICE ? TULLE_OK : tl_csr_check_ends(b, w->view, w->name);
    if (w->view->place == TULLE_DEVICE) {
        TRY(tl_gpu_move(b, ctx->gpu, w->view, TULLE_HOST, &copy));
        replace(b, w, copy);
        tl_trace(b, "%s: copied from %s to the host, %s", w->name, ctx->device,
                 w->op != TULLE_KEEP ? "transposed there" : o->sort_inputs ? "sorted there" : "read there");
    }
    if (o->sort_inputs) {
        TRY(tl_csr_check_bounds(b, w->view, w->name, o->threads));
        TRY(tl_csr_sort(b, w->view, &copy));
        replace(b, w, copy);
    } else if (!o->trust_inputs && !w->checked) {
        TRY(tl_csr_check(b, w->view, w->name, o->threads));
    }
    w->checked = true;
    if (w->op != TULLE_KEEP) {
        TRY(tl_csr_transpose(b, w->view, (tulle_op)w->op, &copy, w->perm));
        replace(b, w, copy);
    }
done:
    return status;
}

/* What can be said of a pair without reading an array. */
static tulle_status check_pair(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                               bool values)
{
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
                         o->op_a ? "A^T" : "A", o->op_a ? A->cols : A->rows, a_cols,
                         o->op_b ? "B^T" : "B", b_rows, o->op_b ? B->rows : B->cols, a_cols, b_rows);
done:
    return status;
}

tulle_status tl_operands_make(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                              int want, tl_operands *x)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    double start = tl_now();
    bool look = want & TL_LOOK, perms = want & TL_PERMS;
    memset(x, 0, sizeof *x);
    x->A = *A;
    x->B = *B;
    TRY(check_pair(ctx, A, B, o, want & TL_VALUES));
    work wa = {.view = &x->A, .name = "A", .op = o->op_a, .own = &x->own_a, .perm = perms ? &x->perm_a : NULL};
    work wb = {.view = &x->B, .name = "B", .op = o->op_b, .own = &x->own_b, .perm = perms ? &x->perm_b : NULL};
    bool same = tl_same_arrays(A, B);
    bool share = same && A->values == B->values && o->op_a == o->op_b && (!perms || o->op_a == TULLE_KEEP);
    uint64_t copies = copy_bytes(&wa, o, look) + (share ? 0 : copy_bytes(&wb, o, look));
    uint64_t limit = tl_limit_for(o, copies);
    if (copies > limit) {
        status = tl_fail(b, TULLE_ELIMIT, "copies of the operands need %" PRIu64 " bytes, the limit is %" PRIu64,
                         copies, limit);
        goto done;
    }
    x->bytes = copies;
    TRY(prepare(ctx, &wa, o, look));
    if (share) {
        x->B = x->A;
        wb.checked = wa.checked;
    } else {
        wb.checked = same && wa.checked;
        TRY(prepare(ctx, &wb, o, look));
    }
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
