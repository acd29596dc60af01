/* SPDX-License-Identifier: MIT
 *
 * profile.c - the row analysis: one pass over A that adds up the lengths of the rows of B that each row
 * needs.
 *
 * The idea is spECK's (PPoPP 2020, section 4.1): O(nnz(A)) work on which all later decisions are based.
 * Columns of B are not read here; the window of a row is found by the kernel, which reads those rows of B
 * anyway.  Two kinds of rows that resemble the row before them are worth detecting: twins, which have the
 * same columns, as in finite elements with several unknowns per node, and shifted rows, which have the same
 * columns plus one, as in stencils on grids.  The first column usually shows that a row is neither, and a
 * sample of rows decides whether all rows are compared.
 *
 * Where neither kind covers most rows, a second sample finds out whether the products of a row have the same
 * pattern, shifted, as those of some row shortly before, as when a stencil is multiplied by an interpolation;
 * then nothing else is looked for. */
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
    int64_t          length;            /* the common length of all rows of B; -1: they differ */
} job;

/* One body for the four combinations of index widths that matter inside the loop: A's columns and B's row
 * pointers.  The pointers are unsigned, so that their difference is widened without an extra instruction. */
#define SUM_ROWS(name, A_COL, B_PTR)                                                              \
    static void name(const job *j, totals *t, int64_t row0, int64_t row1)                         \
    {                                                                                             \
        const tulle_csr *A = j->A;                                                                \
        const A_COL *restrict a_col = A->col_idx;                                                 \
        const B_PTR *restrict b_ptr = j->B->row_ptr;                                              \
        int64_t *restrict products = j->p->products;                                              \
        const int64_t cols = j->B->cols;                                                          \
        int64_t begin = tl_row_begin(A, row0);                                                    \
        totals x = *t;                  /* a copy, which can stay in registers */                 \
        for (int64_t i = row0; i < row1; i++) {                                                   \
            const int64_t end = tl_row_begin(A, i + 1);                                           \
            B_PTR longest = 0, longest1 = 0;    /* of two entries at a time */                    \
            int64_t sum = 0, k = begin;                                                           \
            for (; k + 1 < end; k += 2) {                                                         \
                const B_PTR length = b_ptr[a_col[k] + 1] - b_ptr[a_col[k]];                       \
                const B_PTR length1 = b_ptr[a_col[k + 1] + 1] - b_ptr[a_col[k + 1]];              \
                sum += (int64_t)length + (int64_t)length1;                                        \
                longest = length > longest ? length : longest;                                    \
                longest1 = length1 > longest1 ? length1 : longest1;                               \
            }                                                                                     \
            if (k < end) {                                                                        \
                const B_PTR length = b_ptr[a_col[k] + 1] - b_ptr[a_col[k]];                       \
                sum += (int64_t)length;                                                           \
                longest = length > longest ? length : longest;                                    \
            }                                                                                     \
            const int64_t most = (int64_t)(longest > longest1 ? longest : longest1);              \
            products[i] = sum;                                                                    \
            x.total += sum;                                                                       \
            x.upper += tl_min(sum, cols);                                                         \
            x.lower += most;                                                                      \
            x.max_products = sum > x.max_products ? sum : x.max_products;                         \
            x.max_b_row = most > x.max_b_row ? most : x.max_b_row;                                \
            x.max_a_row = end - begin > x.max_a_row ? end - begin : x.max_a_row;                  \
            begin = end;                                                                          \
        }                                                                                         \
        *t = x;                                                                                   \
    }
SUM_ROWS(sum_i32_i32, int32_t, uint32_t)
SUM_ROWS(sum_i32_i64, int32_t, uint64_t)
SUM_ROWS(sum_i64_i32, int64_t, uint32_t)
SUM_ROWS(sum_i64_i64, int64_t, uint64_t)

/* The length of all rows of B if it is the same, else -1.  With equal lengths the columns of A need not be
 * read. */
static int64_t equal_length(const tulle_csr *B)
{
    enum { BURST = 1024 };
    int64_t length = B->rows > 0 ? tl_row_begin(B, 1) : -1;
    if (length < 0 || B->nnz / B->rows != length || B->nnz % B->rows != 0) return -1;
    for (int64_t from = 0; from < B->rows; from += BURST) {
        int64_t to = B->rows - from < BURST ? B->rows : from + BURST, wrong = 0;
        for (int64_t i = from; i < to; i++) wrong |= tl_row_begin(B, i) ^ (i * length);
        if (wrong) return -1;
    }
    return length;
}

/* The largest number of entries of a row, and how many rows are not empty.  Without branches, and in bursts
 * short enough for 32-bit counts, so that the compiler can vectorize it. */
typedef struct lengths { int64_t longest, filled; } lengths;

#define MULTIPLY_LENGTHS(name, PTR)                                                               \
    static lengths name(const tulle_csr *A, int64_t row0, int64_t row1, int64_t length,           \
                        int64_t *restrict products)                                               \
    {                                                                                             \
        enum { BURST = 1 << 20 };                                                                 \
        const PTR *restrict ptr = A->row_ptr;                                                     \
        PTR longest = 0;                                                                          \
        lengths x = {0};                                                                          \
        for (int64_t from = row0; from < row1; from += BURST) {                                   \
            const int64_t to = row1 - from < BURST ? row1 : from + BURST;                         \
            int32_t filled = 0;                                                                   \
            for (int64_t i = from; i < to; i++) {                                                 \
                const PTR n = ptr[i + 1] - ptr[i];                                                \
                products[i - row0] = n * length;                                                  \
                longest = n > longest ? n : longest;                                              \
                filled += n > 0;                                                                  \
            }                                                                                     \
            x.filled += filled;                                                                   \
        }                                                                                         \
        x.longest = longest;                                                                      \
        return x;                                                                                 \
    }
MULTIPLY_LENGTHS(multiply_i32, int32_t)
MULTIPLY_LENGTHS(multiply_i64, int64_t)

static void sum_equal(const job *j, totals *t, int64_t row0, int64_t row1, int64_t length)
{
    int64_t *products = j->p->products + row0;
    const lengths x = (j->A->ptr_type == TULLE_I64 ? multiply_i64 : multiply_i32)(j->A, row0, row1, length,
                                                                                  products);
    t->total = (tl_row_begin(j->A, row1) - tl_row_begin(j->A, row0)) * length;
    t->lower = x.filled * length;
    t->max_a_row = x.longest;
    t->max_products = x.longest * length;
    if (t->max_products <= j->B->cols) t->upper = t->total;
    else
        for (int64_t i = 0; i < row1 - row0; i++) t->upper += tl_min(products[i], j->B->cols);
    t->max_b_row = x.longest > 0 ? length : 0;
}

/* Whether row i > 0 is a twin or a shift of row i - 1; the first column usually rules both out. */
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

/* Samples rows to see whether comparing all of them pays.  The samples are random, not evenly spaced, as they
 * could then all fall on the same place of a grid's lines. */
typedef struct looks {
    int64_t count, twins, shifted;
} looks;

/* Any row from 1 on. */
static int64_t some_row(const tulle_csr *A, uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return 1 + (int64_t)((*random >> 11) % (uint64_t)(A->rows - 1));
}

static looks look_at(const tulle_csr *A)
{
    enum { LOOKS = 512 };
    looks found = {.count = A->rows - 1 < LOOKS ? A->rows - 1 : LOOKS};
    uint64_t random = 1;
    likeness_fn likeness = likeness_for(A);
    for (int64_t k = 0; k < found.count; k++) {
        int64_t i = some_row(A, &random);
        if (tl_row_begin(A, i) == tl_row_begin(A, i + 1)) continue;
        uint8_t like = likeness(A, i);
        found.twins += like == TL_TWIN;
        found.shifted += like == TL_SHIFTED;
    }
    return found;
}

static bool has_likes(const looks *found)
{
    return (found->twins + found->shifted) * 8 > found->count;
}

/* ---- rows whose products repeat the pattern of an earlier row */

enum { PLACES = 8, PLACE_ROWS = 32, PLACE_PRODUCTS = 16 << 10, ROW_PRODUCTS = 640 };

/* A hash of the columns of a row's products, relative to the first; 0: a row not worth remembering. */
static uint64_t products_hash(const tulle_csr *A, const tulle_csr *B, int64_t row, int64_t *seen)
{
    uint64_t hash = 0;
    int64_t begin = tl_row_begin(A, row), end = tl_row_begin(A, row + 1), first = -1, n = 0;
    if (end - begin < 2) return 0;
    for (int64_t k = begin; k < end; k++) {
        int64_t j = tl_get(A->col_idx, A->idx_type, k);
        for (int64_t t = tl_row_begin(B, j); t < tl_row_begin(B, j + 1); t++, n++) {
            int64_t c = tl_get(B->col_idx, B->idx_type, t);
            if (first < 0) first = c;
            if (n == ROW_PRODUCTS) return 0;
            hash = (hash + (uint64_t)(c - first) + 1) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
        }
    }
    *seen += n;
    return n > 0 ? hash | 1 : 0;
}

/* Whether at least two thirds of a run of consecutive rows repeat an earlier row of that run. */
static bool has_repeats(const tulle_csr *A, const tulle_csr *B)
{
    uint64_t random = 1, hash[PLACE_ROWS];
    int64_t rows = 0, again = 0;
    if (A->rows < 4 * PLACE_ROWS) return false;
    for (int place = 0; place < PLACES; place++) {
        int64_t row = some_row(A, &random), seen = 0, count = 0;
        for (; count < PLACE_ROWS && row + count < A->rows && seen < PLACE_PRODUCTS; count++) {
            hash[count] = products_hash(A, B, row + count, &seen);
            int64_t k = 0;
            while (k < count && hash[k] != hash[count]) k++;
            again += k < count && hash[count] != 0;
        }
        rows += count;
        if (again * 2 < rows) return false;         /* the remaining samples could hardly raise it to two
                                                     * thirds */
    }
    return again * 3 > rows * 2;
}

static void analyze(void *arg, int thread, int threads)
{
    job *j = arg;
    tl_profile *p = j->p;
    totals t = {0};
    const int64_t row0 = tl_part(j->A->rows, thread, threads);
    const int64_t row1 = tl_part(j->A->rows, thread + 1, threads);
    bool a64 = j->A->idx_type == TULLE_I64, b64 = j->B->ptr_type == TULLE_I64;
    if (j->length >= 0) sum_equal(j, &t, row0, row1, j->length);
    else (a64 ? (b64 ? sum_i64_i64 : sum_i64_i32) : (b64 ? sum_i32_i64 : sum_i32_i32))(j, &t, row0, row1);
    if (p->a_like) find_likes(j->A, p->a_like, row0, row1, &t.a_twins, &t.a_shifted);
    if (p->b_like && p->b_like != p->a_like)
        find_likes(j->B, p->b_like, tl_part(j->B->rows, thread, threads),
                   tl_part(j->B->rows, thread + 1, threads), &t.b_twins, &t.b_shifted);
    j->part[thread] = t;
}

/* Decides which kinds of similar rows are searched for. */
static tulle_status prepare_likes(tl_base *b, const tulle_csr *A, const tulle_csr *B, int64_t few,
                                  tl_profile *p)
{
    tulle_status status = TULLE_OK;
    bool same = tl_same_arrays(A, B);
    const looks la = look_at(A), lb = same ? la : look_at(B);
    bool stencils = la.shifted * 2 > la.count && lb.shifted * 2 > lb.count, twins = la.twins * 8 > la.count;
    bool small = (double)A->nnz * (double)B->nnz <= (double)few * (double)A->rows * (double)B->rows;
    p->repeats = (!stencils || small) && !twins && has_repeats(A, B);
    if (p->repeats) return TULLE_OK;
    if (has_likes(&la)) TRY(tl_alloc(b, &p->a_like, A->rows, 1, "marks of rows alike"));
    if (same) p->b_like = p->a_like;
    else if (has_likes(&lb)) TRY(tl_alloc(b, &p->b_like, B->rows, 1, "marks of rows alike"));
done:
    return status;
}

tulle_status tl_profile_make(tl_base *b, const tulle_csr *A, const tulle_csr *B, bool alike, int64_t few,
                             int threads, tl_profile *p)
{
    tulle_status status = TULLE_OK;
    job j = {.A = A, .B = B, .p = p, .length = equal_length(B)};
    int n = tl_team_size(b->team);
    if (threads <= 0 || threads > n) threads = n;
    if (A->nnz < 20000) threads = 1;
    memset(p, 0, sizeof *p);
    p->b_length = j.length;
    TRY(tl_alloc(b, &p->products, A->rows, sizeof *p->products, "products of each row"));
    TRY(tl_calloc(b, &j.part, threads, sizeof *j.part, "totals of the analysis"));
    if (alike) TRY(prepare_likes(b, A, B, few, p));
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
