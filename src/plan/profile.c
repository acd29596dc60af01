/* SPDX-License-Identifier: MIT
 *
 * profile.c - the row analysis: one pass over A that looks up the length of each row of B it names.
 *
 * The idea is spECK's (PPoPP 2020, section 4.1): O(nnz(A)) work that decides everything after it.
 * Columns are not looked at here; the window of a row is found by the kernel that is about to read
 * those rows of B anyway.  Twins, rows with the pattern of the row before them as finite elements
 * with several unknowns a node have them, are found by comparing; a row that differs usually differs
 * in its first column, and a sample decides whether the rest is looked at. */
#include "plan/plan.h"
#include <string.h>

typedef struct totals {
    int64_t total, upper, lower, max_products, max_a_row, max_b_row, a_twins, b_twins;
    char    pad[64];
} totals;

typedef struct job {
    const tulle_csr *A, *B;
    tl_profile      *p;
    totals          *part;
} job;

static int64_t at_most(int64_t x, int64_t limit)
{
    return x < limit ? x : limit;
}

/* One body for the four combinations of widths that matter inside the loop. */
#define SUM_ROWS(name, A_COL, B_PTR)                                                              \
    static void name(const job *j, totals *t, int64_t row0, int64_t row1)                         \
    {                                                                                             \
        const tulle_csr *A = j->A;                                                                \
        const A_COL *restrict a_col = A->col_idx;                                                 \
        const B_PTR *restrict b_ptr = j->B->row_ptr;                                              \
        int64_t *restrict products = j->p->products - j->p->row0;                                 \
        int64_t begin = tl_row_begin(A, row0);                                                    \
        for (int64_t i = row0; i < row1; i++) {                                                   \
            int64_t end = tl_row_begin(A, i + 1), sum = 0, longest = 0;                           \
            for (int64_t k = begin; k < end; k++) {                                               \
                int64_t length = (int64_t)b_ptr[a_col[k] + 1] - (int64_t)b_ptr[a_col[k]];         \
                sum += length;                                                                    \
                longest = length > longest ? length : longest;                                    \
            }                                                                                     \
            products[i] = sum;                                                                    \
            t->total += sum;                                                                      \
            t->upper += at_most(sum, j->B->cols);                                                 \
            t->lower += longest;                                                                  \
            t->max_products = sum > t->max_products ? sum : t->max_products;                      \
            t->max_b_row = longest > t->max_b_row ? longest : t->max_b_row;                       \
            t->max_a_row = end - begin > t->max_a_row ? end - begin : t->max_a_row;               \
            begin = end;                                                                          \
        }                                                                                         \
    }
SUM_ROWS(sum_i32_i32, int32_t, int32_t)
SUM_ROWS(sum_i32_i64, int32_t, int64_t)
SUM_ROWS(sum_i64_i32, int64_t, int32_t)
SUM_ROWS(sum_i64_i64, int64_t, int64_t)

/* Is row i the pattern of row i - 1?  The first column usually tells. */
static bool is_twin(const tulle_csr *A, int64_t i)
{
    int64_t p = tl_row_begin(A, i - 1), q = tl_row_begin(A, i), n = tl_row_begin(A, i + 1) - q;
    if (n == 0 || q - p != n || tl_get(A->col_idx, A->idx_type, p) != tl_get(A->col_idx, A->idx_type, q))
        return false;
    size_t width = tl_index_size(A->idx_type);
    const char *col = A->col_idx;
    return memcmp(col + (size_t)p * width, col + (size_t)q * width, (size_t)n * width) == 0;
}

static int64_t find_twins(const tulle_csr *A, uint8_t *twin, int64_t row0, int64_t row1)
{
    int64_t found = 0;
    for (int64_t i = row0; i < row1; i++) {
        twin[i] = i > 0 && is_twin(A, i);
        found += twin[i];
    }
    return found;
}

/* A look at some rows: is it worth going through all of them? */
static bool has_twins(const tulle_csr *A)
{
    enum { LOOKS = 512 };
    int64_t found = 0, looks = A->rows - 1 < LOOKS ? A->rows - 1 : LOOKS;
    for (int64_t k = 0; k < looks; k++) found += is_twin(A, 1 + (int64_t)((double)k / (double)looks * (double)(A->rows - 1)));
    return found * 16 > looks;
}

static void analyze(void *arg, int thread, int threads)
{
    job *j = arg;
    tl_profile *p = j->p;
    totals t = {0};
    int64_t rows = p->row1 - p->row0;
    int64_t row0 = p->row0 + tl_part(rows, thread, threads);
    int64_t row1 = p->row0 + tl_part(rows, thread + 1, threads);
    bool a64 = j->A->idx_type == TULLE_I64, b64 = j->B->ptr_type == TULLE_I64;
    (a64 ? (b64 ? sum_i64_i64 : sum_i64_i32) : (b64 ? sum_i32_i64 : sum_i32_i32))(j, &t, row0, row1);
    if (p->a_twin) t.a_twins = find_twins(j->A, p->a_twin, tl_part(j->A->rows, thread, threads),
                                          tl_part(j->A->rows, thread + 1, threads));
    if (p->b_twin && p->b_twin != p->a_twin)
        t.b_twins = find_twins(j->B, p->b_twin, tl_part(j->B->rows, thread, threads),
                               tl_part(j->B->rows, thread + 1, threads));
    j->part[thread] = t;
}

static bool same_pattern(const tulle_csr *A, const tulle_csr *B)
{
    return A->row_ptr == B->row_ptr && A->col_idx == B->col_idx && A->rows == B->rows;
}

tulle_status tl_profile_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, bool twins, int threads,
                             tl_profile *p)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A, .B = B, .p = p};
    int n = tl_team_size(b->team);
    if (threads <= 0 || threads > n) threads = n;
    if (A->nnz < 20000) threads = 1;
    memset(p, 0, sizeof *p);
    p->row1 = A->rows;
    TRY(tl_alloc(b, &p->products, A->rows, sizeof *p->products, "products of each row"));
    TRY(tl_calloc(b, &j.part, threads, sizeof *j.part, "totals of the analysis"));
    bool same = same_pattern(A, B);
    if (twins && has_twins(A)) TRY(tl_alloc(b, &p->a_twin, A->rows, 1, "marks of equal rows"));
    if (twins && same) p->b_twin = p->a_twin;
    else if (twins && has_twins(B)) TRY(tl_alloc(b, &p->b_twin, B->rows, 1, "marks of equal rows"));
    tl_team_run(b->team, threads, analyze, &j);
    for (int t = 0; t < threads; t++) {
        const totals *s = &j.part[t];
        p->total += s->total;
        p->upper += s->upper;
        p->lower += s->lower;
        p->a_twins += s->a_twins;
        p->b_twins += s->b_twins;
        if (s->max_products > p->max_products) p->max_products = s->max_products;
        if (s->max_a_row > p->max_a_row) p->max_a_row = s->max_a_row;
        if (s->max_b_row > p->max_b_row) p->max_b_row = s->max_b_row;
    }
    if (p->b_twin == p->a_twin) p->b_twins = p->a_twins;
done:
    tl_free(b, j.part);
    if (status != TULLE_OK) tl_profile_done(b, p);
    return status;
}

void tl_profile_done(tl_base *b, tl_profile *p)
{
    if (p->b_twin != p->a_twin) tl_free(b, p->b_twin);
    tl_free(b, p->a_twin);
    tl_free(b, p->products);
    memset(p, 0, sizeof *p);
}
