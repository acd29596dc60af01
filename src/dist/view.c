/* SPDX-License-Identifier: MIT
 *
 * view.c - checks that a view is a valid distributed matrix, and consistent on all ranks.
 *
 * Each rank checks its own part; then the minimum and maximum over the ranks of sizes, types and a hash of
 * the row blocks are computed: where these differ, all ranks return an error. */
#include "dist/dist.h"
#include <inttypes.h>
#include <string.h>

int64_t tl_starts_number(const int64_t *starts, int size)
{
    uint64_t h = 0x9E3779B185EBCA87u;
    for (int r = 0; r <= size; r++) {
        h = (h ^ (uint64_t)starts[r]) * 0xC2B2AE3D27D4EB4Fu;
        h ^= h >> 29;
    }
    return (int64_t)(h >> 1);
}

tulle_status tl_op_check(tulle_dist *d, int op)
{
    if (op == TULLE_KEEP || op == TULLE_TRANSPOSE || op == TULLE_ADJOINT) return TULLE_OK;
    return tl_fail(d->b, TULLE_EINVAL, "op_a or op_b is %d, which is no tulle_op", op);
}

tulle_status tl_starts_check(tulle_dist *d, const int64_t *starts, int64_t rows, const char *name)
{
    int size = d->t.size;
    if (!starts) return tl_fail(d->b, TULLE_EINVAL, "%s: row_starts is NULL", name);
    if (starts[0] != 0)
        return tl_fail(d->b, TULLE_EINVAL, "%s: row_starts[0] is %" PRId64 ", not 0", name, starts[0]);
    for (int r = 0; r < size; r++)
        if (starts[r + 1] < starts[r])
            return tl_fail(d->b, TULLE_EINVAL, "%s: row_starts[%d] is %" PRId64 ", less than %" PRId64
                           " before it", name,
                           r + 1, starts[r + 1], starts[r]);
    if (rows >= 0 && starts[size] != rows)
        return tl_fail(d->b, TULLE_ESHAPE, "%s: row_starts ends with %" PRId64 ", there are %" PRId64 " rows",
                       name,
                       starts[size], rows);
    return TULLE_OK;
}

tulle_status tl_same_everywhere(tulle_dist *d, tulle_status status, const tl_same *same, int count)
{
    int64_t ends[TL_LEAST_MAX];         /* the minimum of each number, and its negated maximum    */
    for (int i = 0; i < count; i++) {
        ends[2 * i] = status == TULLE_OK ? same[i].number : 0;
        ends[2 * i + 1] = -ends[2 * i];
    }
    TRY(tl_agree_least(d, status, ends, 2 * count));
    for (int i = 0; i < count; i++)
        if (ends[2 * i] != -ends[2 * i + 1])
            TRY(tl_fail(d->b, TULLE_EINVAL, "%s: the ranks do not agree on %s", same[i].of, same[i].what));
done:
    return status;
}

tulle_status tl_lend(tulle_dist *d, const tulle_dist_csr *A, const char *name, tl_lent *l)
{
    tulle_status status = TULLE_OK;
    *l = (tl_lent){.view = *A};
    if (A->local.place != TULLE_HOST) return TULLE_OK;          /* tl_part_check() reports this error */
    TRY(tl_csr_check_shape(d->b, &A->local, name));
    l->first = tl_csr_first(&A->local);
    TRY(tl_csr_slice(d->b, &A->local, name, 0, &l->view.local, &l->own));
done:
    return status;
}

void tl_lent_end(tl_base *b, tl_lent *l)
{
    tl_matrix_free(b, l->own);
    *l = (tl_lent){0};
}

enum { NUMBERS = 4 };                   /* of a matrix, the same on all ranks */

tulle_status tl_part_check(tulle_dist *d, const tulle_csr *A, const char *name, bool trust)
{
    tulle_status status = TULLE_OK;
    if (A->place != TULLE_HOST)
        TRY(tl_fail(d->b, TULLE_EINVAL, "%s: a distributed matrix lies in host memory", name));
    TRY(tl_csr_check_shape(d->b, A, name));
    TRY(trust ? tl_csr_check_ends(d->b, A, name) : tl_csr_check(d->b, A, name, 0));
done:
    return status;
}

tulle_status tl_rows_check(tulle_dist *d, const tulle_csr *A, int64_t first, int64_t end, const char *name)
{
    int64_t before = 0;
    for (int64_t i = first; i <= end; i++) {
        int64_t begin = tl_row_begin(A, i);
        if (begin < before || begin > A->nnz)
            return tl_fail(d->b, TULLE_EPATTERN, "%s: row_ptr[%" PRId64 "] is %" PRId64
                           ", less than one before it or more than nnz", name, i, begin);
        before = begin;
    }
    return TULLE_OK;
}

static tulle_status check_here(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust,
                               tl_same *same)
{
    tulle_status status = TULLE_OK;
    int rank = d->t.rank;
    TRY(TL_RESERVED_CHECK(d->b, name, A));
    TRY(tl_starts_check(d, A->row_starts, -1, name));
    if (A->row_starts[rank + 1] - A->row_starts[rank] != A->local.rows)
        TRY(tl_fail(d->b, TULLE_ESHAPE, "%s: there are %" PRId64 " rows here, row_starts says %" PRId64, name,
                    A->local.rows, A->row_starts[rank + 1] - A->row_starts[rank]));
    TRY(tl_part_check(d, &A->local, name, trust));
    same[0] = (tl_same){name, "the number of its columns", A->local.cols};
    same[1] = (tl_same){name, "the type of its values", A->local.val_type};
    same[2] = (tl_same){name, "the type of its columns", A->local.idx_type};
    same[3] = (tl_same){name, "its row blocks", tl_starts_number(A->row_starts, d->t.size)};
done:
    return status;
}

tulle_status tl_dist_check(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust)
{
    tl_same same[NUMBERS] = {0};
    return tl_same_everywhere(d, check_here(d, A, name, trust, same), same, NUMBERS);
}

static tulle_status fits(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, bool values)
{
    if (A->local.cols != tl_dist_rows(d, B))
        return tl_fail(d->b, TULLE_ESHAPE, "A has %" PRId64 " columns, B has %" PRId64 " rows", A->local.cols,
                       tl_dist_rows(d, B));
    if (A->local.val_type != B->local.val_type)
        return tl_fail(d->b, TULLE_ETYPE, "values of A are %s, those of B are %s",
                       tl_type_name(A->local.val_type), tl_type_name(B->local.val_type));
    if (values && ((A->local.nnz > 0 && !A->local.values) || (B->local.nnz > 0 && !B->local.values)))
        return tl_fail(d->b, TULLE_EINVAL, "%s has no values",
                       A->local.nnz > 0 && !A->local.values ? "A" : "B");
    return TULLE_OK;
}

tulle_status tl_dist_operands(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, bool trust,
                              bool values)
{
    enum { ALL = 2 * NUMBERS + 2 };
    tl_same same[ALL] = {0};
    tulle_status status = check_here(d, A, "A", trust, same);
    /* If B is A it is checked only once; on other ranks they may be two matrices. */
    if (status == TULLE_OK) status = check_here(d, B, "B", trust || B == A, same + NUMBERS);
    if (status == TULLE_OK) status = fits(d, A, B, values);
    same[ALL - 2] = (tl_same){"tulle_dist_options", "dimensions", d->dimensions};
    same[ALL - 1] = (tl_same){"tulle_dist_options", "grid_cols", d->grid_cols};
    return tl_same_everywhere(d, status, same, ALL);
}

tulle_status tl_starts_copy(tl_base *b, const int64_t *starts, int size, int64_t **out)
{
    tulle_status status = tl_alloc(b, out, size + 1, sizeof **out, "row blocks");
    if (status == TULLE_OK) memcpy(*out, starts, (size_t)(size + 1) * sizeof **out);
    return status;
}

tulle_status tl_dist_own(tulle_dist *d, const int64_t *starts, tulle_matrix *local, tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    tulle_dist_matrix *A = NULL;
    TRY(tl_calloc(d->b, &A, 1, sizeof *A, "a matrix"));
    TRY(tl_starts_copy(d->b, starts, d->t.size, &A->starts));
    A->local = local;
    *out = A;
    A = NULL;
done:
    tl_free(d->b, A);
    return status;
}

tulle_status tl_dist_give(tulle_dist *d, tulle_status status, const int64_t *starts, tulle_matrix **local,
                          tulle_dist_matrix **out)
{
    if (status == TULLE_OK) status = tl_dist_own(d, starts, *local, out);
    if (status == TULLE_OK) *local = NULL;
    status = tl_agree(d, status);
    if (status != TULLE_OK && *out) {
        tl_dist_matrix_free(d->b, *out);
        *out = NULL;
    }
    return status;
}

void tl_dist_matrix_free(tl_base *b, tulle_dist_matrix *A)
{
    if (!A) return;
    tl_matrix_free(b, A->local);
    tl_free(b, A->starts);
    tl_free(b, A);
}
