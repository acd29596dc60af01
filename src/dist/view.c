/* SPDX-License-Identifier: MIT
 *
 * view.c - is this a distributed matrix, and the same one on all ranks?
 *
 * Each rank looks at its own part; then sizes, types and row blocks are compared over the ranks by their
 * least and largest value: where these differ, all ranks refuse. */
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

enum { MOST = 4 };                      /* numbers compared at once */

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

tulle_status tl_same_everywhere(tulle_dist *d, tulle_status status, const int64_t *numbers,
                                const char *const *names, int count, const char *what)
{
    int64_t low[MOST], high[MOST];
    AGREE(status);
    memcpy(low, numbers, (size_t)count * sizeof *low);
    memcpy(high, numbers, (size_t)count * sizeof *high);
    TRY(tl_allreduce(d, low, count, TULLE_MIN));
    TRY(tl_allreduce(d, high, count, TULLE_MAX));
    for (int i = 0; i < count; i++)
        if (low[i] != high[i])
            TRY(tl_fail(d->b, TULLE_EINVAL, "%s: the ranks do not agree on %s", what, names[i]));
done:
    return status;
}

static tulle_status check_here(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust)
{
    tulle_status status = TULLE_OK;
    int rank = d->t.rank;
    if (A->local.place != TULLE_HOST)
        TRY(tl_fail(d->b, TULLE_EINVAL, "%s: a distributed matrix lies in host memory", name));
    TRY(tl_starts_check(d, A->row_starts, -1, name));
    if (A->row_starts[rank + 1] - A->row_starts[rank] != A->local.rows)
        TRY(tl_fail(d->b, TULLE_ESHAPE, "%s: there are %" PRId64 " rows here, row_starts says %" PRId64, name,
                    A->local.rows, A->row_starts[rank + 1] - A->row_starts[rank]));
    TRY(tl_csr_check_shape(d->b, &A->local, name));
    TRY(trust ? tl_csr_check_ends(d->b, &A->local, name) : tl_csr_check(d->b, &A->local, name, 0));
done:
    return status;
}

tulle_status tl_dist_check(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust)
{
    tulle_status status = check_here(d, A, name, trust);
    const tulle_csr *l = &A->local;
    static const char *const names[] = {"the number of its columns", "the type of its values",
                                        "the type of its columns", "its row blocks"};
    int64_t numbers[MOST] = {0};
    if (status == TULLE_OK) {
        numbers[0] = l->cols;
        numbers[1] = l->val_type;
        numbers[2] = l->idx_type;
        numbers[3] = tl_starts_number(A->row_starts, d->t.size);
    }
    return tl_same_everywhere(d, status, numbers, names, MOST, name);
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
