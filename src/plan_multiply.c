/* SPDX-License-Identifier: MIT
 *
 * plan_multiply.c - the product of a plan as a new matrix that the caller owns, in the memory that c_place
 * names. */
#include "ctx.h"

/* A copy of the pattern with uninitialised values. */
static tulle_status copy_pattern(tulle_plan *p, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &p->ctx->base;
    const tulle_csr *pattern = &p->C->view;
    const size_t size = tl_type_size(p->a.val_type);
    tulle_matrix *M = NULL;
    if (pattern->place == TULLE_DEVICE) {
        TRY(p->ctx->engine->blank(p->ctx, pattern, size, &M));
    } else {
        TRY(tl_matrix_copy(b, pattern, &M));
        TRY(tl_alloc(b, &M->values, pattern->nnz, size, "values of C"));
        M->view.values = M->values;
    }
    M->view.val_type = p->a.val_type;
    *out = M;
    M = NULL;
done:
    tl_matrix_free(b, M);
    return status;
}

tulle_status tl_plan_multiply(tulle_plan *p, const void *a_values, const void *b_values, tulle_matrix **C)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *M = NULL;
    TRY(copy_pattern(p, &M));
    TRY(tl_plan_run(p, a_values, b_values, (void *)M->view.values));
    *C = M;
    M = NULL;
done:
    tl_matrix_free(&p->ctx->base, M);
    return status;
}
