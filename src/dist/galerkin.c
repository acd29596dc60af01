/* SPDX-License-Identifier: MIT
 * galerkin.c - products with transposed operands: op(A)*op(B), and the Galerkin product P^T*(A*P). */
#include "dist/dist.h"

/* *view is A, or *own, its transpose. */
static tulle_status turned(tulle_dist *d, const tulle_dist_csr *A, int op, tulle_dist_matrix **own,
                           tulle_dist_csr *view)
{
    tulle_status status = TULLE_OK;
    *view = *A;
    if (op == TULLE_KEEP) return TULLE_OK;
    TRY(tl_dist_transpose(d, A, (tulle_op)op, NULL, own));
    *view = tulle_dist_matrix_view(*own);
done:
    return status;
}

tulle_status tl_dist_product(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                             const tulle_options *o,
                             tulle_dist_matrix **C)
{
    tulle_status status = TULLE_OK;
    tulle_dist_matrix *own_a = NULL, *own_b = NULL;
    tulle_dist_csr a = {0}, b = {0};
    if (o->op_a != TULLE_KEEP || o->op_b != TULLE_KEEP) {
        TRY(tl_dist_check(d, A, "A", o->trust_inputs));
        TRY(tl_dist_check(d, B, "B", o->trust_inputs));
    }
    TRY(turned(d, A, o->op_a, &own_a, &a));
    TRY(turned(d, B, o->op_b, &own_b, &b));
    TRY(tl_dist_operands(d, &a, &b, o->trust_inputs || own_a || own_b, true));
    tl_count_begin(d);
    TRY(tl_dist_multiply(d, &a, &b, o, C));
done:
    tl_dist_matrix_free(d->b, own_a);
    tl_dist_matrix_free(d->b, own_b);
    return status;
}

tulle_status tl_dist_ptap(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *P,
                          const tulle_options *o,
                          tulle_dist_matrix **C)
{
    tulle_status status = TULLE_OK;
    tulle_options first = *o, second = *o;
    tulle_dist_matrix *AP = NULL;
    first.op_a = first.op_b = TULLE_KEEP;
    second.op_a = TULLE_TRANSPOSE;
    second.op_b = TULLE_KEEP;
    second.trust_inputs = 1;            /* P was already checked, and A*P is our own result */
    TRY(tl_dist_product(d, A, P, &first, &AP));
    tulle_dist_csr ap = tulle_dist_matrix_view(AP);
    TRY(tl_dist_product(d, P, &ap, &second, C));
done:
    tl_dist_matrix_free(d->b, AP);
    return status;
}
