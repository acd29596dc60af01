/* SPDX-License-Identifier: MIT
 *
 * profile.c - the row analysis: one pass over A that looks up the length of each row of B it names.
 *
 * The idea is spECK's (PPoPP 2020, section 4.1): O(nnz(A)) work that decides everything after it.
 * Columns are not looked at here; the window of a row is found by the kernel that is about to read
 * those rows of B anyway.  Two kinds of neighbours are worth knowing: twins, rows with the columns of
 * the row before them, as finite elements with several unknowns a node have them, and rows whose
 * columns are those of the row before, one on, as stencils on grids have them.  A row that is neither
 * usually shows it in its first column, and a sample decides whether the rest is looked at. */
#include "plan/plan.h"
#include <string.h>

typedef struct totals {
    int64_t total, upper, lower, max_products, max_a_row, max_b_row;
    int64_t a_twins, b_twins, a_shifted, b_shifted;
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

/* One body for the four combinations of widths that matter inside the loop: A's columns, B's pointers. */
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

/* What row i > 0 has in common with row i - 1; the first column usually tells. */
#define LIKENESS(name, PTR, INDEX)                                                                \
    static uint8_t name(const tulle_csr *A, int64_t i)                                            \
    {                                                                                             \
        const PTR *ptr = A->row_ptr;                                                              \
        const INDEX *col = A->col_idx;                                                            \
        int64_t p = ptr[i - 1], q = ptr[i], n = ptr[i + 1] - q;                                   \
        if (q - p != n) return 0;                                                                 \
        if (n == 0) return TL_SHIFTED;                                                            \
        INDEX d = col[q] - col[p], wrong = 0;                                                     \
        if (d != 0 && d != 1) return 0;                                                           \
        if (n < 16) {                                                                             \
            for (int64_t k = 1; k < n; k++)                                                       \
                if (col[q + k] - col[p + k] != d) return 0;                                       \
        } else {                                                                                  \
            for (int64_t k = 1; k < n; k++) wrong |= (col[q + k] - col[p + k]) ^ d;               \
        }                                                                                         \
        return wrong ? 0 : d == 0 ? TL_TWIN : TL_SHIFTED;                                         \
    }
LIKENESS(like_i32_i32, int32_t, int32_t)
LIKENESS(like_i32_i64, int32_t, int64_t)
LIKENESS(like_i64_i32, int64_t, int32_t)
LIKENESS(like_i64_i64, int64_t, int64_t)

typedef uint8_t (*likeness_fn)(const tulle_csr *A, int64_t i);

static likeness_fn likeness_for(const tulle_csr *A)
{
    bool ptr64 = A->ptr_type == TULLE_I64, idx64 = A->idx_type == TULLE_I64;
    return ptr64 ? (idx64 ? like_i64_i64 : like_i64_i32) : (idx64 ? like_i32_i64 : like_i32_i32);
}

static void find_likes(const tulle_csr *A, uint8_t *like, int64_t row0, int64_t row1, int64_t *twins,
                       int64_t *shifted)
{
    likeness_fn likeness = likeness_for(A);
    for (int64_t i = row0; i < row1; i++) {
        like[i] = i > 0 ? likeness(A, i) : 0;
        *twins += like[i] == TL_TWIN;
        *shifted += like[i] == TL_SHIFTED;
    }
}

/* A look at some rows: is it worth going through all of them?  They are not evenly spaced: the lines of
 * a grid are. */
static bool has_likes(const tulle_csr *A)
{
    enum { LOOKS = 512 };
    int64_t found = 0, looks = A->rows - 1 < LOOKS ? A->rows - 1 : LOOKS;
    uint64_t random = 1;
    likeness_fn likeness = likeness_for(A);
    for (int64_t k = 0; k < looks; k++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t i = 1 + (int64_t)((random >> 11) % (uint64_t)(A->rows - 1));
        found += tl_row_begin(A, i) < tl_row_begin(A, i + 1) && likeness(A, i) != 0;
    }
    return found * 8 > looks;
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
    if (p->a_like) find_likes(j->A, p->a_like, tl_part(j->A->rows, thread, threads),
                              tl_part(j->A->rows, thread + 1, threads), &t.a_twins, &t.a_shifted);
    if (p->b_like && p->b_like != p->a_like)
        find_likes(j->B, p->b_like, tl_part(j->B->rows, thread, threads),
                   tl_part(j->B->rows, thread + 1, threads), &t.b_twins, &t.b_shifted);
    j->part[thread] = t;
}

tulle_status tl_profile_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, bool alike, int threads,
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
    bool same = tl_same_arrays(A, B);
    if (alike && has_likes(A)) TRY(tl_alloc(b, &p->a_like, A->rows, 1, "marks of rows alike"));
    if (alike && same) p->b_like = p->a_like;
    else if (alike && has_likes(B)) TRY(tl_alloc(b, &p->b_like, B->rows, 1, "marks of rows alike"));
    tl_team_run(b->team, threads, analyze, &j);
    for (int t = 0; t < threads; t++) {
        const totals *s = &j.part[t];
        p->total += s->total;
        p->upper += s->upper;
        p->lower += s->lower;
        p->a_twins += s->a_twins;
        p->b_twins += s->b_twins;
        p->a_shifted += s->a_shifted;
        p->b_shifted += s->b_shifted;
        if (s->max_products > p->max_products) p->max_products = s->max_products;
        if (s->max_a_row > p->max_a_row) p->max_a_row = s->max_a_row;
        if (s->max_b_row > p->max_b_row) p->max_b_row = s->max_b_row;
    }
    if (p->b_like == p->a_like) p->b_twins = p->a_twins, p->b_shifted = p->a_shifted;
done:
    tl_free(b, j.part);
    if (status != TULLE_OK) tl_profile_done(b, p);
    return status;
}

void tl_profile_done(tl_base *b, tl_profile *p)
{
    if (p->b_like != p->a_like) tl_free(b, p->b_like);
    tl_free(b, p->a_like);
    tl_free(b, p->products);
    memset(p, 0, sizeof *p);
}
