/* SPDX-License-Identifier: MIT
 *
 * operands.c - makes two views ready for an engine: options and shapes are checked, the views validated
 * (once, when B is A), sorted or transposed copies made where they were asked for. */
#include "ctx.h"
#include "matrix/parts.h"
#include <inttypes.h>
#include <string.h>

tulle_status tl_options_check(tl_base *b, const tulle_options *options, tulle_options *out)
{
    static const tulle_options defaults;
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
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return tl_fail(b, TULLE_EINVAL, "options: %s is %d, it may be %d to %d", fields[i].name,
                           fields[i].value, fields[i].least, fields[i].most);
    for (size_t i = 0; i < sizeof out->reserved / sizeof *out->reserved; i++)
        if (out->reserved[i])
            return tl_fail(b, TULLE_EINVAL, "options: reserved[%zu] is not zero", i);
    return TULLE_OK;
}

/* The limit for a product that takes at most so many bytes; the machine is asked only where it matters. */
uint64_t tl_limit_for(const tulle_options *o, uint64_t bytes)
{
    if (o->memory_limit) return o->memory_limit;
    return bytes < (uint64_t)64 << 20 ? UINT64_MAX : tl_memory_free();
}

static bool same_arrays(const tulle_csr *A, const tulle_csr *B)
{
    return A->row_ptr == B->row_ptr && A->col_idx == B->col_idx && A->rows == B->rows && A->cols == B->cols
           && A->nnz == B->nnz && A->ptr_type == B->ptr_type && A->idx_type == B->idx_type;
}

/* Bytes of the copy that an operand needs, if any. */
static uint64_t copy_bytes(const tulle_csr *A, int op, const tulle_options *o, bool perms)
{
    if (op == TULLE_KEEP && !o->sort_inputs) return 0;
    int64_t rows = A->rows > A->cols ? A->rows : A->cols;
    uint64_t entry = tl_index_size(A->idx_type) + (A->values ? tl_type_size(A->val_type) : 0) + (perms ? 8 : 0);
    return (uint64_t)A->nnz * entry + (uint64_t)(rows + 1) * 8;
}

/* One operand: *view is replaced by a copy where one is needed. */
static tulle_status prepare(tl_base *b, tulle_csr *view, const char *name, const tulle_options *o, int op,
                            bool checked, tulle_matrix **own, int64_t **perm)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *copy = NULL;
    if (o->sort_inputs) {
        TRY(tl_csr_check_bounds(b, view, name, o->threads));
        TRY(tl_csr_sort(b, view, &copy));
        *own = copy;
        *view = copy->view;
    } else if (!o->trust_inputs && !checked) {
        TRY(tl_csr_check(b, view, name, o->threads));
    }
    if (op != TULLE_KEEP) {
        TRY(tl_csr_transpose(b, view, (tulle_op)op, &copy, perm));
        tl_matrix_free(b, *own);
        *own = copy;
        *view = copy->view;
    }
done:
    return status;
}

tulle_status tl_operands_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, const tulle_options *o,
                              bool values, bool perms, tl_operands *x)
{
    tulle_status status = TULLE_OK;
    double start = tl_now();
    memset(x, 0, sizeof *x);
    x->A = *A;
    x->B = *B;
    TRY(tl_csr_check_shape(b, A, "A"));
    TRY(tl_csr_check_shape(b, B, "B"));
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
    if (a_cols != b_rows) {
        status = tl_fail(b, TULLE_ESHAPE, "%s is %" PRId64 " x %" PRId64 " and %s is %" PRId64 " x %" PRId64
                         ": %" PRId64 " columns against %" PRId64 " rows",
                         o->op_a ? "A^T" : "A", o->op_a ? A->cols : A->rows, a_cols,
                         o->op_b ? "B^T" : "B", b_rows, o->op_b ? B->rows : B->cols, a_cols, b_rows);
        goto done;
    }
    uint64_t copies = copy_bytes(A, o->op_a, o, perms) + copy_bytes(B, o->op_b, o, perms);
    uint64_t limit = tl_limit_for(o, copies);
    if (copies > limit) {
        status = tl_fail(b, TULLE_ELIMIT, "copies of the operands need %" PRIu64 " bytes, the limit is %" PRIu64,
                         copies, limit);
        goto done;
    }
    x->bytes = copies;
    TRY(prepare(b, &x->A, "A", o, o->op_a, false, &x->own_a, perms ? &x->perm_a : NULL));
    TRY(prepare(b, &x->B, "B", o, o->op_b, same_arrays(A, B), &x->own_b, perms ? &x->perm_b : NULL));
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
