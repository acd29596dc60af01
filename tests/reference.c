/* SPDX-License-Identifier: MIT
 * reference.c - plain matrices, a plain product, and a comparison that names the first difference. */
#include "reference.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(int64_t count, size_t size)
{
    size_t bytes = (size_t)count * size;
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "reference.c: no memory for %zu bytes\n", bytes);
        abort();
    }
    memset(p, 0, bytes);
    return p;
}

/* ---- types */

ref_types ref_types_at(int i)
{
    return (ref_types){(tulle_type)(TULLE_F32 + i % 4), (tulle_index)(TULLE_I32 + i / 4 % 2),
                       (tulle_index)(TULLE_I32 + i / 8 % 2)};
}

const char *ref_types_name(ref_types t)
{
    static const char *const value[] = {"?", "f32", "f64", "cf32", "cf64"};
    static const char *const index[] = {"?", "i32", "i64"};
    static char text[8][16];
    static int at;
    char *p = text[at++ % 8];
    snprintf(p, sizeof text[0], "%s/%s/%s", value[t.val], index[t.ptr], index[t.idx]);
    return p;
}

size_t ref_value_size(tulle_type type)
{
    static const size_t size[] = {0, 4, 8, 8, 16};
    return size[type];
}

size_t ref_index_size(tulle_index type)
{
    return type == TULLE_I32 ? 4 : 8;
}

/* ---- entries */

int64_t ref_index_at(const void *array, tulle_index type, int64_t i)
{
    return type == TULLE_I32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

void ref_index_put(void *array, tulle_index type, int64_t i, int64_t value)
{
    if (type == TULLE_I32) ((int32_t *)array)[i] = (int32_t)value;
    else ((int64_t *)array)[i] = value;
}

ref_value ref_value_at(const void *array, tulle_type type, int64_t i)
{
    const float *f = array;
    const double *d = array;
    switch (type) {
    case TULLE_F32: return (ref_value){f[i], 0};
    case TULLE_F64: return (ref_value){d[i], 0};
    case TULLE_CF32: return (ref_value){f[2 * i], f[2 * i + 1]};
    default: return (ref_value){d[2 * i], d[2 * i + 1]};
    }
}

void ref_value_put(void *array, tulle_type type, int64_t i, ref_value v)
{
    float *f = array;
    double *d = array;
    switch (type) {
    case TULLE_F32: f[i] = (float)v.re; break;
    case TULLE_F64: d[i] = v.re; break;
    case TULLE_CF32: f[2 * i] = (float)v.re; f[2 * i + 1] = (float)v.im; break;
    default: d[2 * i] = v.re; d[2 * i + 1] = v.im; break;
    }
}

int64_t ref_ptr(const tulle_csr *A, int64_t i) { return ref_index_at(A->row_ptr, A->ptr_type, i); }
int64_t ref_col(const tulle_csr *A, int64_t k) { return ref_index_at(A->col_idx, A->idx_type, k); }
ref_value ref_val(const tulle_csr *A, int64_t k) { return ref_value_at(A->values, A->val_type, k); }
void ref_set_ptr(ref *A, int64_t i, int64_t v) { ref_index_put(A->row_ptr, A->view.ptr_type, i, v); }
void ref_set_col(ref *A, int64_t k, int64_t v) { ref_index_put(A->col_idx, A->view.idx_type, k, v); }
void ref_set_val(ref *A, int64_t k, ref_value v) { ref_value_put(A->values, A->view.val_type, k, v); }

/* ---- random numbers: splitmix64 */

uint64_t ref_next(ref_rng *r)
{
    uint64_t z = r->s += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t ref_below(ref_rng *r, int64_t n)
{
    return (int64_t)(ref_next(r) % (uint64_t)n);
}

double ref_unit(ref_rng *r)
{
    return (double)(ref_next(r) >> 11) * 0x1p-53;
}

static double random_number(ref_rng *r, ref_kind kind)
{
    switch (kind) {
    case REF_INTEGERS: {
        int64_t v = ref_below(r, 16) - 8;
        return (double)(v >= 0 ? v + 1 : v);
    }
    case REF_CANCELLING: return ref_next(r) & 1 ? 1 : -1;
    default: {
        double x = 2 * ref_unit(r) - 1;
        return ldexp(x, (int)ref_below(r, 12) - 6);
    }
    }
}

void ref_fill(ref *A, ref_kind kind, uint64_t seed)
{
    ref_rng r = {seed * 77 + 5};
    for (int64_t k = 0; k < A->view.nnz; k++) {
        double re = random_number(&r, kind), im = random_number(&r, kind);
        ref_set_val(A, k, (ref_value){re, im});
    }
}

/* ---- generators */

ref ref_new(int64_t rows, int64_t cols, int64_t nnz, ref_types t)
{
    ref A;
    A.row_ptr = need(rows + 1, ref_index_size(t.ptr));
    A.col_idx = need(nnz, ref_index_size(t.idx));
    A.values = need(nnz, ref_value_size(t.val));
    A.view = (tulle_csr){.rows = rows, .cols = cols, .nnz = nnz, .row_ptr = A.row_ptr,
                         .col_idx = A.col_idx, .values = A.values, .ptr_type = t.ptr,
                         .idx_type = t.idx, .val_type = t.val, .place = TULLE_HOST};
    return A;
}

void ref_free(ref *A)
{
    free(A->row_ptr);
    free(A->col_idx);
    free(A->values);
    memset(A, 0, sizeof *A);
}

ref ref_copy(const tulle_csr *A, ref_types t)
{
    ref C = ref_new(A->rows, A->cols, A->nnz, t);
    for (int64_t i = 0; i <= A->rows; i++) ref_set_ptr(&C, i, ref_ptr(A, i));
    for (int64_t k = 0; k < A->nnz; k++) ref_set_col(&C, k, ref_col(A, k));
    for (int64_t k = 0; A->values && k < A->nnz; k++) ref_set_val(&C, k, ref_val(A, k));
    if (!A->values) {
        free(C.values);
        C.values = NULL;
        C.view.values = NULL;
    }
    return C;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Row i gets the columns that draw() returns, sorted and without duplicates. */
typedef int64_t (*draw_fn)(ref_rng *r, int64_t cols);

static ref from_lengths(ref_rng *r, int64_t rows, int64_t cols, const int64_t *length, draw_fn draw,
                        ref_types t)
{
    int64_t room = 0, nnz = 0;
    for (int64_t i = 0; i < rows; i++) room += length[i];
    int64_t *col = need(room, sizeof *col), *ptr = need(rows + 1, sizeof *ptr);
    for (int64_t i = 0; i < rows; i++) {
        int64_t begin = nnz;
        for (int64_t k = 0; k < length[i]; k++) col[nnz++] = draw(r, cols);
        qsort(col + begin, (size_t)(nnz - begin), sizeof *col, by_number);
        int64_t kept = begin;
        for (int64_t k = begin; k < nnz; k++)
            if (k == begin || col[k] != col[k - 1]) col[kept++] = col[k];
        nnz = kept;
        ptr[i + 1] = nnz;
    }
    ref A = ref_new(rows, cols, nnz, t);
    for (int64_t i = 0; i <= rows; i++) ref_set_ptr(&A, i, ptr[i]);
    for (int64_t k = 0; k < nnz; k++) ref_set_col(&A, k, col[k]);
    free(col);
    free(ptr);
    return A;
}

static int64_t draw_even(ref_rng *r, int64_t cols)
{
    return ref_below(r, cols);
}

static int64_t draw_power(ref_rng *r, int64_t cols)
{
    double u = ref_unit(r);
    int64_t c = (int64_t)((double)cols * u * u * u);
    return c < cols ? c : cols - 1;
}

ref ref_random(uint64_t seed, int64_t rows, int64_t cols, double per_row, ref_kind kind, ref_types t)
{
    ref_rng r = {seed};
    int64_t *length = need(rows, sizeof *length);
    for (int64_t i = 0; cols > 0 && i < rows; i++) {
        length[i] = (int64_t)(2 * per_row * ref_unit(&r) + 0.5);        /* some rows are empty */
        if (length[i] > cols) length[i] = cols;
    }
    ref A = from_lengths(&r, rows, cols, length, draw_even, t);
    free(length);
    ref_fill(&A, kind, seed);
    return A;
}

ref ref_power(uint64_t seed, int64_t rows, int64_t cols, int64_t longest, ref_kind kind, ref_types t)
{
    ref_rng r = {seed};
    int64_t *length = need(rows, sizeof *length);
    for (int64_t i = 0; i < rows; i++) {
        double u = ref_unit(&r);
        length[i] = (int64_t)((double)longest * pow(u, 6));
    }
    ref A = from_lengths(&r, rows, cols, length, draw_power, t);
    free(length);
    ref_fill(&A, kind, seed);
    return A;
}

ref ref_arrow(int64_t n, ref_kind kind, ref_types t)
{
    ref A = ref_new(n, n, n > 0 ? 3 * n - 2 : 0, t);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < n; c++)
            if (i == 0 || c == 0 || c == i) ref_set_col(&A, at++, c);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 3);
    return A;
}

ref ref_band(int64_t n, int64_t half, ref_kind kind, ref_types t)
{
    int64_t nnz = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = i - half; c <= i + half; c++) nnz += c >= 0 && c < n;
    ref A = ref_new(n, n, nnz, t);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = i - half; c <= i + half; c++)
            if (c >= 0 && c < n) ref_set_col(&A, at++, c);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_fill(&A, kind, 4);
    return A;
}

ref ref_blocks(int64_t n, int64_t half, int64_t d, ref_kind kind, ref_types t)
{
    ref band = ref_band(n, half, kind, t);
    ref A = ref_new(n * d, n * d, band.view.nnz * d * d, t);
    int64_t at = 0;
    for (int64_t i = 0; i < n * d; i++) {
        for (int64_t k = ref_ptr(&band.view, i / d); k < ref_ptr(&band.view, i / d + 1); k++)
            for (int64_t c = 0; c < d; c++) ref_set_col(&A, at++, ref_col(&band.view, k) * d + c);
        ref_set_ptr(&A, i + 1, at);
    }
    ref_free(&band);
    ref_fill(&A, kind, 6);
    return A;
}

ref ref_dense(int64_t rows, int64_t cols, ref_kind kind, ref_types t)
{
    ref A = ref_new(rows, cols, rows * cols, t);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t c = 0; c < cols; c++) ref_set_col(&A, i * cols + c, c);
        ref_set_ptr(&A, i + 1, (i + 1) * cols);
    }
    ref_fill(&A, kind, 7);
    return A;
}

ref ref_identity(int64_t n, ref_types t)
{
    ref A = ref_new(n, n, n, t);
    for (int64_t i = 0; i < n; i++) {
        ref_set_ptr(&A, i + 1, i + 1);
        ref_set_col(&A, i, i);
        ref_set_val(&A, i, (ref_value){1, 0});
    }
    return A;
}

ref ref_permutation(uint64_t seed, int64_t n, ref_types t)
{
    ref_rng r = {seed};
    ref A = ref_identity(n, t);
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = ref_below(&r, i + 1), c = ref_col(&A.view, i);
        ref_set_col(&A, i, ref_col(&A.view, k));
        ref_set_col(&A, k, c);
    }
    return A;
}

ref ref_shuffled(const tulle_csr *A, uint64_t seed, bool twice)
{
    ref_rng r = {seed};
    ref_types t = {A->val_type, A->ptr_type, A->idx_type};
    int64_t nnz = A->nnz, at = 0;
    for (int64_t i = 0; twice && i < A->rows; i++) nnz += ref_ptr(A, i + 1) > ref_ptr(A, i);
    ref S = ref_new(A->rows, A->cols, nnz, t);
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t begin = at;
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            ref_value v = ref_val(A, k);
            if (twice && k == ref_ptr(A, i)) {
                ref_set_col(&S, at, ref_col(A, k));
                ref_set_val(&S, at++, (ref_value){3, 3});
                v.re -= 3;
                v.im -= 3;
            }
            ref_set_col(&S, at, ref_col(A, k));
            ref_set_val(&S, at++, v);
        }
        for (int64_t k = at - 1; k > begin; k--) {
            int64_t o = begin + ref_below(&r, k - begin + 1), c = ref_col(&S.view, k);
            ref_value v = ref_val(&S.view, k);
            ref_set_col(&S, k, ref_col(&S.view, o));
            ref_set_val(&S, k, ref_val(&S.view, o));
            ref_set_col(&S, o, c);
            ref_set_val(&S, o, v);
        }
        ref_set_ptr(&S, i + 1, at);
    }
    return S;
}

/* ---- arithmetic in the type itself */

static bool single(tulle_type type) { return type == TULLE_F32 || type == TULLE_CF32; }
static double plus(tulle_type type, double x, double y) { return single(type) ? (float)x + (float)y : x + y; }
static double minus(tulle_type type, double x, double y) { return single(type) ? (float)x - (float)y : x - y; }
static double times(tulle_type type, double x, double y) { return single(type) ? (float)x * (float)y : x * y; }

static ref_value add(tulle_type type, ref_value a, ref_value b)
{
    return (ref_value){plus(type, a.re, b.re), plus(type, a.im, b.im)};
}

static ref_value multiply(tulle_type type, ref_value a, ref_value b)
{
    if (type == TULLE_F32 || type == TULLE_F64) return (ref_value){times(type, a.re, b.re), 0};
    return (ref_value){minus(type, times(type, a.re, b.re), times(type, a.im, b.im)),
                       plus(type, times(type, a.re, b.im), times(type, a.im, b.re))};
}

/* ---- expected results */

typedef struct term { int64_t row, col, order; ref_value v; } term;

static int by_place(const void *a, const void *b)
{
    const term *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->col != y->col) return x->col < y->col ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Makes a matrix of terms, sorted by position; terms at the same position are added in their order, starting
 * from +0 or from the first of them. */
static ref from_terms(term *terms, int64_t n, int64_t rows, int64_t cols, ref_types t, bool from_zero)
{
    int64_t nnz = 0, at = 0;
    if (n > 0) qsort(terms, (size_t)n, sizeof *terms, by_place);
    for (int64_t k = 0; k < n; k++)
        nnz += k == 0 || terms[k].row != terms[k - 1].row || terms[k].col != terms[k - 1].col;
    ref C = ref_new(rows, cols, nnz, t);
    for (int64_t k = 0; k < n;) {
        int64_t i = terms[k].row, c = terms[k].col;
        ref_value sum = from_zero ? add(t.val, (ref_value){0, 0}, terms[k].v) : terms[k].v;
        for (k++; k < n && terms[k].row == i && terms[k].col == c; k++) sum = add(t.val, sum, terms[k].v);
        ref_set_col(&C, at, c);
        ref_set_val(&C, at++, sum);
        ref_set_ptr(&C, i + 1, at);
    }
    for (int64_t i = 0; i < rows; i++)
        if (ref_ptr(&C.view, i + 1) < ref_ptr(&C.view, i)) ref_set_ptr(&C, i + 1, ref_ptr(&C.view, i));
    return C;
}

int64_t ref_count_products(const tulle_csr *A, const tulle_csr *B)
{
    int64_t n = 0;
    for (int64_t k = 0; k < A->nnz; k++) n += ref_ptr(B, ref_col(A, k) + 1) - ref_ptr(B, ref_col(A, k));
    return n;
}

ref ref_product(const tulle_csr *A, const tulle_csr *B)
{
    int64_t n = 0;
    term *terms = need(ref_count_products(A, B), sizeof *terms);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            int64_t row = ref_col(A, k);
            for (int64_t l = ref_ptr(B, row); l < ref_ptr(B, row + 1); l++, n++)
                terms[n] = (term){i, ref_col(B, l), n, multiply(A->val_type, ref_val(A, k), ref_val(B, l))};
        }
    ref C = from_terms(terms, n, A->rows, B->cols, (ref_types){A->val_type, TULLE_I64, TULLE_I64}, true);
    free(terms);
    return C;
}

ref ref_transpose(const tulle_csr *A, tulle_op op)
{
    term *terms = need(A->nnz, sizeof *terms);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            ref_value v = ref_val(A, k);
            if (op == TULLE_ADJOINT) v.im = -v.im;
            terms[k] = (term){ref_col(A, k), i, k, v};
        }
    ref T = from_terms(terms, A->nnz, A->cols, A->rows,
                       (ref_types){A->val_type, A->ptr_type, A->idx_type}, false);
    free(terms);
    return T;
}

ref ref_sorted(const tulle_csr *A)
{
    term *terms = need(A->nnz, sizeof *terms);
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++)
            terms[k] = (term){i, ref_col(A, k), k, ref_val(A, k)};
    ref S = from_terms(terms, A->nnz, A->rows, A->cols,
                       (ref_types){A->val_type, A->ptr_type, A->idx_type}, false);
    free(terms);
    return S;
}

ref ref_without_zeros(const tulle_csr *A)
{
    int64_t nnz = 0, at = 0;
    for (int64_t k = 0; k < A->nnz; k++) nnz += ref_val(A, k).re != 0 || ref_val(A, k).im != 0;
    ref C = ref_new(A->rows, A->cols, nnz, (ref_types){A->val_type, A->ptr_type, A->idx_type});
    for (int64_t i = 0; i < A->rows; i++) {
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            ref_value v = ref_val(A, k);
            if (v.re == 0 && v.im == 0) continue;
            ref_set_col(&C, at, ref_col(A, k));
            ref_set_val(&C, at++, v);
        }
        ref_set_ptr(&C, i + 1, at);
    }
    return C;
}

/* ---- comparing */

/* Only the first differences are printed. */
static bool may_print(void)
{
    static int printed;
    return printed++ < 20;
}

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

bool ref_same_values(const void *got, const void *want, tulle_type type, int64_t n, const char *what)
{
    for (int64_t k = 0; k < n; k++) {
        ref_value a = ref_value_at(got, type, k), b = ref_value_at(want, type, k);
        if (same_number(a.re, b.re) && same_number(a.im, b.im)) continue;
        if (may_print())
            printf("    %s: value %" PRId64 " is (%.17g, %.17g), should be (%.17g, %.17g)\n", what, k, a.re,
                   a.im, b.re, b.im);
        return false;
    }
    return true;
}

bool ref_same(const tulle_csr *got, const tulle_csr *want, const char *what)
{
    if (got->rows != want->rows || got->cols != want->cols || got->nnz != want->nnz) {
        if (may_print())
            printf("    %s: %" PRId64 " x %" PRId64 " with %" PRId64 " entries, should be %" PRId64 " x %"
                   PRId64 " with %" PRId64 "\n", what, got->rows, got->cols, got->nnz, want->rows,
                   want->cols, want->nnz);
        return false;
    }
    for (int64_t i = 0; i <= got->rows; i++)
        if (ref_ptr(got, i) != ref_ptr(want, i)) {
            if (may_print())
                printf("    %s: row_ptr[%" PRId64 "] is %" PRId64 ", should be %" PRId64 "\n", what, i,
                       ref_ptr(got, i), ref_ptr(want, i));
            return false;
        }
    for (int64_t k = 0; k < got->nnz; k++)
        if (ref_col(got, k) != ref_col(want, k)) {
            if (may_print())
                printf("    %s: col_idx[%" PRId64 "] is %" PRId64 ", should be %" PRId64 "\n", what, k,
                       ref_col(got, k), ref_col(want, k));
            return false;
        }
    if (!got->values != !want->values || (got->values && got->val_type != want->val_type)) {
        if (may_print()) printf("    %s: values are missing or of another type\n", what);
        return false;
    }
    return !got->values || ref_same_values(got->values, want->values, got->val_type, got->nnz, what);
}

bool ref_untouched(const tulle_csr *A, const ref *copy)
{
    const tulle_csr *C = &copy->view;
    return A->rows == C->rows && A->cols == C->cols && A->nnz == C->nnz
        && memcmp(A->row_ptr, C->row_ptr, (size_t)(C->rows + 1) * ref_index_size(C->ptr_type)) == 0
        && memcmp(A->col_idx, C->col_idx, (size_t)C->nnz * ref_index_size(C->idx_type)) == 0
        && (!A->values || memcmp(A->values, C->values, (size_t)C->nnz * ref_value_size(C->val_type)) == 0);
}
