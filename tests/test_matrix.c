/* SPDX-License-Identifier: MIT
 *
 * test_matrix.c - functions on a single matrix: check, sort, transpose, convert, coordinates, matrix times
 * vector; compared with reference.c, for every type, thread count and hostile shape. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "matrix/parts.h"
#include "reference.h"
#include "test.h"

enum { THREADS = 4 };

static const ref_types plain = {TULLE_F64, TULLE_I32, TULLE_I32};

static tl_base *base_with(int threads)
{
    tl_base *b = NULL;
    if (tl_base_create(NULL, threads, sizeof *b, &b) != TULLE_OK) abort();
    return b;
}

/* ---- shapes for every function: small hostile ones, then two large enough for all threads */

enum { LARGE = 10, SHAPES = 12 };

static ref shape_at(int i, ref_types t)
{
    switch (i) {
    case 0: return ref_new(0, 0, 0, t);
    case 1: return ref_new(0, 7, 0, t);
    case 2: return ref_new(7, 0, 0, t);
    case 3: return ref_new(5, 5, 0, t);
    case 4: return ref_random(1, 1, 40, 20, REF_INTEGERS, t);
    case 5: return ref_random(2, 40, 1, 1, REF_INTEGERS, t);
    case 6: return ref_random(3, 30, 20, 4, REF_REALS, t);
    case 7: return ref_arrow(25, REF_INTEGERS, t);
    case 8: return ref_permutation(4, 33, t);
    case 9: return ref_band(40, 3, REF_INTEGERS, t);
    case 10: return ref_random(5, 3000, 700, 23, REF_REALS, t);
    default: return ref_power(6, 3000, 60000, 160, REF_INTEGERS, t);
    }
}

static ref pattern_of(const tulle_csr *A)
{
    tulle_csr P = *A;
    P.values = NULL;
    return ref_copy(&P, (ref_types){A->val_type, A->ptr_type, A->idx_type});
}

/* Runs one(base, A, name) for every type, shape and number of threads; the large shapes for
 * f64/i32/i32, and on all threads for one combination of each value type. */
typedef void (*one_fn)(tl_base *b, const ref *A, const char *name);

static void everywhere(one_fn one)
{
    for (int threads = 1; threads <= THREADS; threads++) {
        tl_base *b = base_with(threads);
        uint64_t held = b->held;
        for (int t = 0; t < REF_TYPES; t++)
            for (int s = 0; s < SHAPES; s++) {
                if (s >= LARGE && t != 1 && (threads < THREADS || (t % 5 != 1 && t != 12))) continue;
                ref A = shape_at(s, ref_types_at(t)), copy = ref_copy(&A.view, ref_types_at(t));
                char name[96];
                snprintf(name, sizeof name, "%s shape %d on %d threads", ref_types_name(ref_types_at(t)), s,
                         threads);
                one(b, &A, name);
                CHECK(ref_untouched(&A.view, &copy), "%s: the input was written", name);
                ref_free(&A);
                ref_free(&copy);
            }
        CHECK(b->held == held, "%" PRIu64 " bytes were not freed", (uint64_t)b->held - held);
        tl_base_free(b);
    }
}

/* ---- check */

static void check_one(tl_base *b, const ref *A, const char *name)
{
    CHECK(tl_csr_check(b, &A->view, "A", 0) == TULLE_OK, "%s: %s", name, b->error);
    CHECK(tl_csr_check_bounds(b, &A->view, "A", 0) == TULLE_OK, "%s: %s", name, b->error);
}

static void good_matrices_pass_the_check(void)
{
    everywhere(check_one);
}

/* The matrix has one error; the message must be exactly this one, for any number of threads. */
static void expect(const tulle_csr *A, tulle_status status, const char *sentence)
{
    for (int threads = 1; threads <= THREADS; threads++) {
        tl_base *b = base_with(threads);
        tulle_status got = tl_csr_check(b, A, "A", 0);
        CHECK(got == status, "%s, should be %s (%s)", tulle_status_name(got), tulle_status_name(status),
              sentence);
        CHECK(strcmp(b->error, sentence) == 0, "\"%s\", should be \"%s\"", b->error, sentence);
        tl_base_free(b);
    }
}

static void a_bad_column_is_named(void)
{
    for (int t = 1; t < REF_TYPES; t += 4) {                    /* f64, every index type */
        ref A = ref_band(20000, 4, REF_INTEGERS, ref_types_at(t));
        int64_t k = ref_ptr(&A.view, 15001) + 3;
        char text[128];
        int64_t old = ref_col(&A.view, k);
        ref_set_col(&A, k, 20000);
        expect(&A.view, TULLE_EPATTERN, "A: row 15001: column 20000 is outside 0..19999 (entry 3 of the row)");
        ref_set_col(&A, k, -1);
        expect(&A.view, TULLE_EPATTERN, "A: row 15001: column -1 is outside 0..19999 (entry 3 of the row)");
        int64_t extreme = A.view.idx_type == TULLE_I32 ? INT32_MIN : INT64_MIN;
        ref_set_col(&A, k, extreme);
        snprintf(text, sizeof text, "A: row 15001: column %" PRId64
                 " is outside 0..19999 (entry 3 of the row)", extreme);
        expect(&A.view, TULLE_EPATTERN, text);
        ref_set_col(&A, k, old - 1);
        snprintf(text, sizeof text, "A: row 15001: column %" PRId64 " stands twice", old - 1);
        expect(&A.view, TULLE_EPATTERN, text);
        ref_set_col(&A, k, old - 2);
        snprintf(text, sizeof text, "A: row 15001: column %" PRId64 " comes after column %" PRId64, old - 2,
                 old - 1);
        expect(&A.view, TULLE_EPATTERN, text);
        ref_set_col(&A, k, old);
        expect(&A.view, TULLE_OK, "");
        ref_free(&A);
    }
}

static void the_lowest_bad_row_is_named(void)
{
    ref A = ref_band(30000, 2, REF_INTEGERS, plain);
    for (int64_t i = 29000; i > 600; i -= 97) ref_set_col(&A, ref_ptr(&A.view, i) + 1, 0);
    expect(&A.view, TULLE_EPATTERN, "A: row 676: column 0 comes after column 674");
    ref_set_ptr(&A, 9001, 17);
    expect(&A.view, TULLE_EPATTERN, "A: row 676: column 0 comes after column 674");
    ref_set_ptr(&A, 300, 17);
    expect(&A.view, TULLE_EPATTERN, "A: row_ptr[300] = 17 is smaller than row_ptr[299] = 1492");
    ref_free(&A);
}

/* In a sorted row, a descent at the last or at the first position is detected, and a descent from the end of
 * a row to the begin of the next is not mistaken for one. */
static void rows_are_told_apart(void)
{
    ref A = ref_new(3, 10, 6, plain);
    static const int col[6] = {1, 2, 7, 8, 9, 3}, ptr[4] = {0, 2, 4, 6};
    for (int k = 0; k < 6; k++) ref_set_col(&A, k, col[k]);
    for (int i = 0; i < 4; i++) ref_set_ptr(&A, i, ptr[i]);
    expect(&A.view, TULLE_EPATTERN, "A: row 2: column 3 comes after column 9");
    ref_set_ptr(&A, 2, 5);
    expect(&A.view, TULLE_OK, "");
    ref_set_ptr(&A, 2, 6);
    expect(&A.view, TULLE_EPATTERN, "A: row 1: column 3 comes after column 9");
    ref_free(&A);
}

/* All choices of four columns, divided into rows in all ways, against the plain definition. */
static void all_small_matrices_are_judged_rightly(void)
{
    tl_base *b = base_with(1);
    ref A = ref_new(3, 3, 4, plain);
    int bad = 0;
    for (int code = 0; code < 625; code++)
        for (int split = 0; split < 25; split++) {
            int digits = code, p1 = split % 5, p2 = split / 5;
            for (int k = 0; k < 4; k++, digits /= 5) ref_set_col(&A, k, digits % 5 - 1);
            ref_set_ptr(&A, 0, 0);
            ref_set_ptr(&A, 1, p1);
            ref_set_ptr(&A, 2, p2);
            ref_set_ptr(&A, 3, 4);
            bool good = p1 <= p2;
            for (int k = 0; k < 4; k++) {
                int64_t c = ref_col(&A.view, k);
                good = good && c >= 0 && c < 3;
                if (k > 0 && k != p1 && k != p2) good = good && c > ref_col(&A.view, k - 1);
            }
            bad += (tl_csr_check(b, &A.view, "A", 0) == TULLE_OK) != good;
        }
    CHECK(bad == 0, "%d of 15625 were judged wrongly", bad);
    ref_free(&A);
    tl_base_free(b);
}

/* Is A valid?  Checked entry by entry. */
static bool in_order(const tulle_csr *A)
{
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
            int64_t c = ref_col(A, k);
            if (c < 0 || c >= A->cols || (k > ref_ptr(A, i) && c <= ref_col(A, k - 1))) return false;
        }
    return true;
}

/* Three entries in each row; some rows begin with a larger column than the end of the row before. */
static ref short_full_rows(ref_types t)
{
    ref A = ref_new(601, 60, 1803, t);
    for (int64_t i = 0; i <= 601; i++) ref_set_ptr(&A, i, 3 * i);
    for (int64_t k = 0; k < 1803; k++) ref_set_col(&A, k, k / 3 * 7 % 50 + 2 * (k % 3));
    return A;
}

/* One column changed, at each position of short and long rows among empty ones, in one block and in several:
 * the vectorized check must agree with the plain one, also if differences overflow; for all instruction
 * sets. */
static void every_changed_column_is_judged_rightly(void)
{
    static const char *const isas[] = {NULL, "base"};
    tl_base *b = base_with(1);
    for (int way = 0; way < 24; way++) {
        ref_types t = {TULLE_F64, way & 1 ? TULLE_I64 : TULLE_I32, way & 2 ? TULLE_I64 : TULLE_I32};
        const int kind = way / 4 % 3;
        ref A = kind == 0 ? ref_random(31, 700, 60, 1.5, REF_INTEGERS, t)
              : kind == 1 ? ref_random(32, 40, 300, 70, REF_INTEGERS, t) : short_full_rows(t);
        const int64_t far = way & 2 ? INT64_MAX : INT32_MAX;
        if (isas[way / 12]) setenv("TULLE_ISA", isas[way / 12], 1);
        for (int64_t k = 0; k < A.view.nnz; k += (kind == 2 ? 19 : 1) + k % 3) {
            const int64_t was = ref_col(&A.view, k), before = k > 0 ? ref_col(&A.view, k - 1) : 0;
            const int64_t to[] = {-1, -far - 1, -far, far, A.view.cols, A.view.cols - 1, 0, before, before + 1, before - 1, was + 1, was - 1};
            for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
                ref_set_col(&A, k, to[i]);
                const bool good = in_order(&A.view), bound = to[i] >= 0 && to[i] < A.view.cols;
                CHECK((tl_csr_check(b, &A.view, "A", 0) == TULLE_OK) == good, "way %d, entry %" PRId64 ": %" PRId64, way, k, to[i]);
                CHECK((tl_csr_check_bounds(b, &A.view, "A", 0) == TULLE_OK) == bound, "way %d, entry %" PRId64 ": %" PRId64, way, k, to[i]);
            }
            ref_set_col(&A, k, was);
        }
        unsetenv("TULLE_ISA");
        ref_free(&A);
    }
    tl_base_free(b);
}

static void bad_row_pointers_are_named(void)
{
    for (int t = 1; t < REF_TYPES; t += 4) {
        ref A = ref_band(10, 1, REF_INTEGERS, ref_types_at(t));         /* 28 entries */
        ref_set_ptr(&A, 0, 3);
        expect(&A.view, TULLE_EPATTERN, "A: row_ptr[0] is 3, not 0");
        ref_set_ptr(&A, 0, 0);
        A.view.nnz = 27;
        expect(&A.view, TULLE_EPATTERN, "A: row_ptr[10] is 28 but nnz is 27");
        A.view.nnz = 28;
        ref_set_ptr(&A, 5, 10);
        expect(&A.view, TULLE_EPATTERN, "A: row_ptr[5] = 10 is smaller than row_ptr[4] = 11");
        ref_set_ptr(&A, 5, -7);
        expect(&A.view, TULLE_EPATTERN, "A: row_ptr[5] = -7 is smaller than row_ptr[4] = 11");
        ref_set_ptr(&A, 5, 2000000000);
        expect(&A.view, TULLE_EPATTERN, "A: row_ptr[5] = 2000000000 is larger than nnz = 28");
        ref_free(&A);
    }
    ref A = ref_new(0, 5, 0, plain);
    ref_set_ptr(&A, 0, 2);
    expect(&A.view, TULLE_EPATTERN, "A: row_ptr[0] is 2, not 0");
    ref_free(&A);
    A = ref_band(100000, 1, REF_INTEGERS, plain);               /* all pointers from 50000 on too large */
    for (int64_t i = 50000; i < 100000; i++) ref_set_ptr(&A, i, INT32_MAX);
    expect(&A.view, TULLE_EPATTERN, "A: row_ptr[50000] = 2147483647 is larger than nnz = 299998");
    ref_free(&A);
}

static void bad_fields_are_named(void)
{
    ref A = ref_band(10, 1, REF_INTEGERS, plain);
    const tulle_csr good = A.view;
    tulle_csr V;
    expect(NULL, TULLE_EINVAL, "A is NULL");
    V = good; V.rows = -1;
    expect(&V, TULLE_EINVAL, "A: -1 rows, 10 columns, nnz 28: a size cannot be negative");
    V = good; V.cols = -5;
    expect(&V, TULLE_EINVAL, "A: 10 rows, -5 columns, nnz 28: a size cannot be negative");
    V = good; V.nnz = -2;
    expect(&V, TULLE_EINVAL, "A: 10 rows, 10 columns, nnz -2: a size cannot be negative");
    V = good; V.rows = INT64_MAX;
    expect(&V, TULLE_EINVAL, "A: 9223372036854775807 rows and 28 entries cannot be addressed");
    V = good; V.row_ptr = NULL;
    expect(&V, TULLE_EINVAL, "A: row_ptr is NULL");
    V = good; V.col_idx = NULL;
    expect(&V, TULLE_EINVAL, "A: col_idx is NULL");
    V = good; V.ptr_type = (tulle_index)0;
    expect(&V, TULLE_ETYPE, "A: ptr_type is 0, not TULLE_I32 or TULLE_I64");
    V = good; V.idx_type = (tulle_index)3;
    expect(&V, TULLE_ETYPE, "A: idx_type is 3, not TULLE_I32 or TULLE_I64");
    V = good; V.val_type = (tulle_type)9;
    expect(&V, TULLE_ETYPE, "A: val_type is 9, not TULLE_F32, F64, CF32 or CF64");
    V.values = NULL;
    expect(&V, TULLE_OK, "");
    V = good; V.place = TULLE_DEVICE;
    expect(&V, TULLE_EINVAL, "A: its arrays are in a device's memory (place is TULLE_DEVICE), "
                             "but this context reads arrays of the host alone");
    V = good; V.place = (tulle_place)7;
    expect(&V, TULLE_EINVAL, "A: place is 7, not TULLE_HOST or TULLE_DEVICE");
    V = good; V.cols = (int64_t)1 << 31;
    expect(&V, TULLE_OK, "");
    V.cols++;
    expect(&V, TULLE_EINVAL, "A: 2147483649 columns do not fit column indices of type i32");
    V = good; V.nnz = (int64_t)1 << 31;
    expect(&V, TULLE_EINVAL, "A: nnz 2147483648 does not fit row pointers of type i32");
    V = good; V.cols = 0;
    expect(&V, TULLE_EPATTERN, "A: row 0 has an entry, but there are no columns");
    ref_free(&A);
    A = ref_new(1, INT64_MAX, 2, (ref_types){TULLE_F64, TULLE_I64, TULLE_I64});
    ref_set_ptr(&A, 1, 2);
    ref_set_col(&A, 1, INT64_MAX - 1);
    expect(&A.view, TULLE_OK, "");
    ref_set_col(&A, 1, INT64_MAX);
    expect(&A.view, TULLE_EPATTERN, "A: row 0: column 9223372036854775807 is outside "
                                    "0..9223372036854775806 (entry 1 of the row)");
    ref_free(&A);
}

/* ---- transpose */

static void transpose_one(tl_base *b, const ref *A, const char *name)
{
    for (int op = TULLE_TRANSPOSE; op <= TULLE_ADJOINT; op++) {
        tulle_matrix *T = NULL;
        int64_t *perm = NULL;
        ref want = ref_transpose(&A->view, (tulle_op)op);
        tulle_status status = tl_csr_transpose(b, &A->view, (tulle_op)op, &T, op == TULLE_ADJOINT ? &perm
                                                                                                   : NULL);
        REQUIRE(status == TULLE_OK, "%s: %s", name, b->error);
        CHECK(ref_same(&T->view, &want.view, name), "op %d", op);
        CHECK(tl_csr_check(b, &T->view, "T", 0) == TULLE_OK, "%s: %s", name, b->error);
        CHECK(T->view.ptr_type == A->view.ptr_type && T->view.idx_type == A->view.idx_type, "%s", name);
        for (int64_t k = 0; perm && k < A->view.nnz; k++) {
            ref_value from = ref_val(&A->view, perm[k]), to = ref_val(&T->view, k);
            if (from.re == to.re && from.im == -to.im && ref_col(&T->view, k) < A->view.rows) continue;
            CHECK(false, "%s: perm[%" PRId64 "] = %" PRId64, name, k, perm[k]);
            break;
        }
        tl_free(b, perm);
        tl_matrix_free(b, T);
        ref_free(&want);
    }
}

static void transpose_is_the_transpose(void)
{
    everywhere(transpose_one);
}

static void transpose_of_a_pattern_is_a_pattern(void)
{
    tl_base *b = base_with(2);
    ref A = shape_at(10, plain), P = pattern_of(&A.view), want = ref_transpose(&A.view, TULLE_TRANSPOSE);
    tulle_matrix *T = NULL;
    want.view.values = NULL;
    REQUIRE(tl_csr_transpose(b, &P.view, TULLE_ADJOINT, &T, NULL) == TULLE_OK, "%s", b->error);
    CHECK(ref_same(&T->view, &want.view, "pattern"), "transpose");
    tl_matrix_free(b, T);
    for (int type = TULLE_F32; type <= TULLE_CF64; type++) {
        P.view.val_type = (tulle_type)type;
        REQUIRE(tl_csr_transpose(b, &P.view, TULLE_ADJOINT, &T, NULL) == TULLE_OK, "%s", b->error);
        CHECK(T->view.val_type == (tulle_type)type, "without values type %d became %d", type, (int)T->view.val_type);
        tl_matrix_free(b, T);
    }
    CHECK(tl_csr_transpose(b, &P.view, TULLE_KEEP, &T, NULL) == TULLE_EINVAL && !T, "op KEEP");
    CHECK(strcmp(b->error, "op is 0, not TULLE_TRANSPOSE or TULLE_ADJOINT") == 0, "%s", b->error);
    P.view.rows = -1;
    CHECK(tl_csr_transpose(b, &P.view, TULLE_TRANSPOSE, &T, NULL) == TULLE_EINVAL && !T, "rows -1");
    P.view.rows = A.view.rows;
    P.view.cols = (int64_t)1 << 62;
    P.view.idx_type = TULLE_I64;
    P.view.nnz = 0;
    P.view.rows = 0;
    CHECK(tl_csr_transpose(b, &P.view, TULLE_TRANSPOSE, &T, NULL) == TULLE_ENOMEM && !T, "2^62 columns");
    CHECK(strstr(b->error, "cannot be addressed") != NULL, "%s", b->error);
    ref_free(&A);
    ref_free(&P);
    ref_free(&want);
    tl_base_free(b);
}

/* ---- sort */

static void sort_one(tl_base *b, const ref *A, const char *name)
{
    for (int twice = 0; twice <= 1; twice++) {
        ref S = ref_shuffled(&A->view, 17, twice), want = ref_sorted(&S.view);
        tulle_matrix *out = NULL;
        REQUIRE(tl_csr_sort(b, &S.view, &out) == TULLE_OK, "%s: %s", name, b->error);
        CHECK(ref_same(&out->view, &want.view, name), "twice %d", twice);
        CHECK(tl_csr_check(b, &out->view, "out", 0) == TULLE_OK, "%s: %s", name, b->error);
        tl_matrix_free(b, out);
        ref_free(&S);
        ref_free(&want);
    }
}

static void sort_puts_rows_in_order(void)
{
    everywhere(sort_one);
}

/* (big + small) + small differs from small + small + big: the order of the input must be kept, in rows
 * that are sorted by insertion and in rows that are merged. */
static void duplicates_are_added_in_their_order(void)
{
    tl_base *b = base_with(1);
    for (int64_t n = 3; n < 2000; n = n * 2 + 1) {
        ref A = ref_new(1, 7, n, plain);
        ref_rng r = {(uint64_t)n};
        ref_set_ptr(&A, 1, n);
        for (int64_t k = 0; k < n; k++) {
            ref_set_col(&A, k, 6 - k % 7);
            ref_set_val(&A, k, (ref_value){ref_unit(&r) * (k % 3 ? 1 : 1e15), 0});
        }
        ref want = ref_sorted(&A.view);
        tulle_matrix *out = NULL;
        REQUIRE(tl_csr_sort(b, &A.view, &out) == TULLE_OK, "%s", b->error);
        CHECK(ref_same(&out->view, &want.view, "duplicates"), "n %" PRId64, n);
        tl_matrix_free(b, out);
        ref_free(&A);
        ref_free(&want);
    }
    tl_base_free(b);
}

static void sort_keeps_a_lone_minus_zero_and_patterns(void)
{
    tl_base *b = base_with(1);
    ref A = ref_new(1, 3, 2, plain);
    tulle_matrix *out = NULL;
    ref_set_ptr(&A, 1, 2);
    ref_set_col(&A, 0, 2);
    ref_set_val(&A, 0, (ref_value){-0.0, 0});
    ref want = ref_sorted(&A.view);
    REQUIRE(tl_csr_sort(b, &A.view, &out) == TULLE_OK, "%s", b->error);
    CHECK(ref_same(&out->view, &want.view, "minus zero"), "%s", "-0");
    tl_matrix_free(b, out);
    A.view.values = want.view.values = NULL;
    REQUIRE(tl_csr_sort(b, &A.view, &out) == TULLE_OK, "%s", b->error);
    CHECK(ref_same(&out->view, &want.view, "pattern"), "%s", "pattern");
    tl_matrix_free(b, out);
    ref_set_col(&A, 1, 3);
    CHECK(tl_csr_sort(b, &A.view, &out) == TULLE_EPATTERN && !out, "column 3 of 3");
    CHECK(strcmp(b->error, "A: row 0: column 3 is outside 0..2 (entry 1 of the row)") == 0, "%s", b->error);
    ref_free(&A);
    ref_free(&want);
    tl_base_free(b);
}

/* ---- convert */

static void convert_one(tl_base *b, const ref *A, const char *name)
{
    for (int t = 0; t < REF_TYPES; t++) {
        if (A->view.nnz > 5000 && t % 5 != 1 && t != 12) continue;
        ref_types to = ref_types_at(t);
        ref want = ref_copy(&A->view, to);
        tulle_matrix *out = NULL;
        REQUIRE(tl_csr_convert(b, &A->view, to.val, to.ptr, to.idx, &out) == TULLE_OK, "%s: %s", name,
                b->error);
        CHECK(ref_same(&out->view, &want.view, name), "to %s", ref_types_name(to));
        CHECK(out->view.ptr_type == to.ptr && out->view.idx_type == to.idx && out->view.val_type == to.val,
              "%s to %s", name, ref_types_name(to));
        tl_matrix_free(b, out);
        ref_free(&want);
    }
}

static void convert_changes_types_alone(void)
{
    everywhere(convert_one);
}

static void convert_keeps_what_is_zero_and_refuses_what_does_not_fit(void)
{
    tl_base *b = base_with(1);
    ref A = shape_at(6, (ref_types){TULLE_CF32, TULLE_I64, TULLE_I64});
    tulle_matrix *out = NULL;
    REQUIRE(tl_csr_convert(b, &A.view, 0, 0, 0, &out) == TULLE_OK, "%s", b->error);
    CHECK(ref_same(&out->view, &A.view, "kept"), "%s", "all kept");
    CHECK(out->view.ptr_type == TULLE_I64 && out->view.idx_type == TULLE_I64, "types kept");
    tl_matrix_free(b, out);
    A.view.cols = ((int64_t)1 << 31) + 1;
    CHECK(tl_csr_convert(b, &A.view, 0, 0, TULLE_I32, &out) == TULLE_EOVERFLOW && !out, "2^31 + 1 columns");
    CHECK(strcmp(b->error, "A: 2147483649 columns do not fit column indices of type i32") == 0, "%s",
          b->error);
    A.view.cols = 20;
    CHECK(tl_csr_convert(b, &A.view, 5, 0, 0, &out) == TULLE_ETYPE && !out, "val_type 5");
    CHECK(tl_csr_convert(b, &A.view, 0, 3, 0, &out) == TULLE_ETYPE && !out, "ptr_type 3");
    CHECK(tl_csr_convert(b, &A.view, 0, 0, -1, &out) == TULLE_ETYPE && !out, "idx_type -1");
    A.view.values = NULL;
    REQUIRE(tl_csr_convert(b, &A.view, TULLE_F64, TULLE_I32, TULLE_I32, &out) == TULLE_OK, "%s", b->error);
    CHECK(ref_same(&out->view, &A.view, "pattern"), "%s", "pattern");
    tl_matrix_free(b, out);
    ref_free(&A);
    tl_base_free(b);
}

/* ---- coordinates */

static void coo_one(tl_base *b, const ref *A, const char *name)
{
    int64_t n = A->view.nnz;
    size_t width = ref_index_size(A->view.idx_type), size = ref_value_size(A->view.val_type);
    ref S = ref_shuffled(&A->view, 5, true), want = ref_sorted(&S.view);
    n = S.view.nnz;
    char *row = malloc((size_t)n * width + 1), *col = malloc((size_t)n * width + 1);
    char *val = malloc((size_t)n * size + 1);
    int64_t *next = malloc((size_t)(S.view.rows + 1) * sizeof *next), at = 0;
    for (int64_t i = 0; i < S.view.rows; i++) next[i] = ref_ptr(&S.view, i);
    /* Entries of rows are interleaved, but keep their order within a row, so sums are those of `want`. */
    for (int64_t left = n; left > 0;)
        for (int64_t i = S.view.rows - 1; i >= 0; i--) {
            if (next[i] == ref_ptr(&S.view, i + 1)) continue;
            int64_t k = next[i]++;
            ref_index_put(row, A->view.idx_type, at, i);
            ref_index_put(col, A->view.idx_type, at, ref_col(&S.view, k));
            ref_value_put(val, A->view.val_type, at++, ref_val(&S.view, k));
            left--;
        }
    tulle_matrix *out = NULL;
    tulle_status status = tl_csr_from_coo(b, S.view.rows, S.view.cols, n, row, col, A->view.idx_type, val,
                                          A->view.val_type, &out);
    CHECK(status == TULLE_OK, "%s: %s", name, b->error);
    if (out) {
        CHECK(ref_same(&out->view, &want.view, name), "%s", "from coordinates");
        CHECK(out->view.ptr_type == A->view.idx_type && out->view.idx_type == A->view.idx_type, "%s", name);
    }
    tl_matrix_free(b, out);
    free(row);
    free(col);
    free(val);
    free(next);
    ref_free(&S);
    ref_free(&want);
}

static void coordinates_become_a_matrix(void)
{
    everywhere(coo_one);
}

static void bad_coordinates_are_named(void)
{
    enum { N = 100000 };
    int32_t *row = malloc(N * sizeof *row), *col = malloc(N * sizeof *col);
    for (int k = 0; k < N; k++) row[k] = k % 300, col[k] = k % 200;
    for (int threads = 1; threads <= THREADS; threads++) {
        tl_base *b = base_with(threads);
        tulle_matrix *out = NULL;
#define COO(r, c, n, R, C, type) tl_csr_from_coo(b, r, c, n, R, C, type, NULL, TULLE_F64, &out)
        REQUIRE(COO(300, 200, N, row, col, TULLE_I32) == TULLE_OK, "%s", b->error);
        CHECK(out->view.nnz == 600 && !out->view.values, "nnz %" PRId64, out->view.nnz);
        tl_matrix_free(b, out);
        row[70007] = 300;
        col[90000] = -1;
        CHECK(COO(300, 200, N, row, col, TULLE_I32) == TULLE_EPATTERN && !out, "row 300");
        CHECK(strcmp(b->error, "entry 70007: row 300 is outside 0..299") == 0, "%s", b->error);
        row[70007] = 70007 % 300;
        CHECK(COO(300, 200, N, row, col, TULLE_I32) == TULLE_EPATTERN && !out, "column -1");
        CHECK(strcmp(b->error, "entry 90000: column -1 is outside 0..199") == 0, "%s", b->error);
        col[90000] = 90000 % 200;
        CHECK(COO(0, 200, 1, row, col, TULLE_I32) == TULLE_EPATTERN && !out, "no rows");
        CHECK(strcmp(b->error, "entry 0: there are no rows") == 0, "%s", b->error);
        CHECK(COO(300, 0, 1, row, col, TULLE_I32) == TULLE_EPATTERN && !out, "no columns");
        CHECK(COO(-1, 200, 0, row, col, TULLE_I32) == TULLE_EINVAL && !out, "-1 rows");
        CHECK(COO(3, 200, -1, row, col, TULLE_I32) == TULLE_EINVAL && !out, "-1 entries");
        CHECK(COO(300, 200, N, NULL, col, TULLE_I32) == TULLE_EINVAL && !out, "no row_idx");
        CHECK(strcmp(b->error, "row_idx is NULL") == 0, "%s", b->error);
        CHECK(COO(300, 200, N, row, NULL, TULLE_I32) == TULLE_EINVAL && !out, "no col_idx");
        CHECK(COO(300, 200, N, row, col, (tulle_index)8) == TULLE_ETYPE && !out, "index type 8");
        CHECK(COO((int64_t)1 << 40, 200, N, row, col, TULLE_I32) == TULLE_EINVAL && !out, "2^40 rows");
        CHECK(tl_csr_from_coo(b, 3, 3, 0, row, col, TULLE_I32, row, (tulle_type)0, &out) == TULLE_ETYPE,
              "value type 0");
#undef COO
        tl_base_free(b);
    }
    free(row);
    free(col);
}

/* ---- views */

static void simple_views_count_their_entries(void)
{
    const int32_t ptr[] = {0, 1, 3}, col[] = {1, 0, 2};
    const float f[] = {1, 2, 3};
    const double d[] = {1, 2, 3};
    tulle_csr F = tulle_csr_f32_i32(2, 3, ptr, col, f), D = tulle_csr_f64_i32(2, 3, ptr, col, d);
    CHECK(F.nnz == 3 && F.val_type == TULLE_F32 && F.ptr_type == TULLE_I32, "f32");
    CHECK(D.nnz == 3 && D.val_type == TULLE_F64 && D.idx_type == TULLE_I32 && D.place == TULLE_HOST, "f64");
    tulle_csr N = tulle_csr_make(2, 3, NULL, TULLE_I32, NULL, TULLE_I32, NULL, TULLE_F64);
    CHECK(N.nnz == 0 && N.rows == 2, "no arrays");
}

/* Are huge pages disabled for the mapping that contains this address? 1, 0, or -1 if the system does not
 * say. */
static int has_small_pages(const void *p)
{
    char line[512];
    uintptr_t lo, hi, at = (uintptr_t)p;
    int answer = -1;
    bool here = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &lo, &hi) == 2) here = lo <= at && at < hi;
        else if (here && !strncmp(line, "VmFlags:", 8)) answer = strstr(line, " nh") != NULL;
    }
    if (f) fclose(f);
    return answer;
}

/* Does the system report that huge pages were disabled for a mapping?  An emulated processor does not. */
static bool small_pages_are_told(void)
{
    const size_t bytes = 1 << 22;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    const bool told = has_small_pages(p) == 0 && madvise(p, bytes, MADV_NOHUGEPAGE) == 0 && has_small_pages(p) == 1;
    munmap(p, bytes);
    return told;
}

static void a_block_has_small_pages_from_a_byte_on_until_it_is_committed(void)
{
    enum { MIB = 1 << 20 };
    tl_base *b = NULL;
    char *p = NULL;
    REQUIRE(tl_base_create(NULL, 1, sizeof *b, &b) == TULLE_OK, "no base");
    REQUIRE(tl_reserve(b, &p, 16 * MIB, 1) == TULLE_OK, "no address space");
    p[5 * MIB] = 1;
    if (small_pages_are_told() && has_small_pages(p + 7 * MIB) == 0) {  /* else huge pages are slow here, or
                                                                           * there are none */
        tl_small_pages(p, 5 * MIB);
        CHECK(has_small_pages(p + 5 * MIB) == 0, "a page that is there counts as small");
        CHECK(has_small_pages(p + 7 * MIB) == 1, "pages to come are not small");
    }
    tl_small_pages(p, 7 * MIB);
    p[9 * MIB] = 2;
    tl_commit(b, p, 12 * MIB);
    CHECK(has_small_pages(p + 9 * MIB) != 1, "pages stay small");
    CHECK(p[5 * MIB] == 1 && p[9 * MIB] == 2, "what was written is lost");
    tl_free(b, p);
    tl_base_free(b);
}

static void while_huge_pages_are_slow_new_blocks_have_small_ones(void)
{
    enum { MIB = 1 << 20 };
    tl_base *b = NULL;
    char *p = NULL, *q = NULL, *few = NULL;
    REQUIRE(tl_base_create(NULL, 1, sizeof *b, &b) == TULLE_OK, "no base");
    REQUIRE(tl_reserve(b, &p, 16 * MIB, 1) == TULLE_OK, "no address space");
    tl_small_pages(p, 0);
    REQUIRE(tl_alloc(b, &q, 8 * MIB, 1, "a block") == TULLE_OK && tl_alloc(b, &few, 300000, 1, "a block") == TULLE_OK,
            "%s", b->error);
    if (small_pages_are_told()) CHECK(has_small_pages(q + 5 * MIB) == 1, "huge pages are asked for");
    memset(q, 1, 8 * MIB);
    memset(few, 1, 300000);
    tl_free(b, q);
    tl_free(b, few);
    tl_free(b, p);
    REQUIRE(tl_alloc(b, &q, 8 * MIB, 1, "a block") == TULLE_OK, "%s", b->error);
    CHECK(!tl_is_zero(q), "the block is not taken again");
    tl_free(b, q);
    tl_base_free(b);
}

TEST_MAIN(TEST(good_matrices_pass_the_check), TEST(a_bad_column_is_named), TEST(the_lowest_bad_row_is_named),
          TEST(rows_are_told_apart), TEST(all_small_matrices_are_judged_rightly),
          TEST(every_changed_column_is_judged_rightly),
          TEST(bad_row_pointers_are_named), TEST(bad_fields_are_named), TEST(transpose_is_the_transpose),
          TEST(transpose_of_a_pattern_is_a_pattern), TEST(sort_puts_rows_in_order),
          TEST(duplicates_are_added_in_their_order), TEST(sort_keeps_a_lone_minus_zero_and_patterns),
          TEST(convert_changes_types_alone), TEST(convert_keeps_what_is_zero_and_refuses_what_does_not_fit),
          TEST(coordinates_become_a_matrix), TEST(bad_coordinates_are_named),
          TEST(simple_views_count_their_entries),
          TEST(a_block_has_small_pages_from_a_byte_on_until_it_is_committed),
          TEST(while_huge_pages_are_slow_new_blocks_have_small_ones))
