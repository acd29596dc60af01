/* SPDX-License-Identifier: MIT
 *
 * test_limits.c - counts that do not fit 32 bits, in a build where the limit of 32-bit indices is 1000
 * (TULLE_I32_LIMIT): index types are widened unless they were fixed, then the call is refused with a
 * message; nothing overflows. */
#include "matrix/matrix.h"
#include "ways.h"

#ifndef TULLE_I32_LIMIT
#error "this test needs the library built with a small TULLE_I32_LIMIT"
#endif

enum { LIMIT = TULLE_I32_LIMIT };

static const ref_types f64 = {TULLE_F64, TULLE_I32, TULLE_I32};
static const ref_types f64_i64 = {TULLE_F64, TULLE_I64, TULLE_I64};

/* A column times a row: rows * cols entries, of operands with rows + cols. */
static pair outer(int64_t rows, int64_t cols, ref_types t)
{
    return (pair){ref_dense(rows, 1, REF_INTEGERS, t), ref_dense(1, cols, REF_INTEGERS, t), "outer"};
}

/* Two columns of A with equal rows of B: the upper bound is twice the entries of C. */
static pair folded(int64_t rows, int64_t cols, ref_types t)
{
    return (pair){ref_dense(rows, 2, REF_INTEGERS, t), ref_dense(2, cols, REF_INTEGERS, t), "folded"};
}

static void c_grows_wide_when_it_must(void)
{
    const struct { int64_t rows, cols; tulle_index ptr; } cases[] = {
        {10, 100, TULLE_I32}, {25, 40, TULLE_I32}, {7, 143, TULLE_I64}, {11, 91, TULLE_I64}, {100, 100, TULLE_I64}};
    tulle_ctx *ctx = ctx_with(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int fold = 0; fold <= 1; fold++) {
            int64_t nnz = cases[i].rows * cases[i].cols;        /* 1000, 1000, 1001, 1001, 10000 */
            pair p = fold ? folded(cases[i].rows, cases[i].cols, f64) : outer(cases[i].rows, cases[i].cols, f64);
            ref want = ref_product(&p.A.view, &p.B.view);
            tulle_options o;
            char way[32], name[64];
            for (int w = 0; way_at(w, &o, way, sizeof way); w++) {
                tulle_matrix *C = NULL;
                snprintf(name, sizeof name, "%s %" PRId64 ", %s", p.name, nnz, way);
                REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s: %s", name,
                        tulle_ctx_error(ctx));
                tulle_csr c = tulle_matrix_view(C);
                CHECK(c.ptr_type == cases[i].ptr && c.idx_type == TULLE_I32, "%s: pointers i%d", name,
                      32 * (int)c.ptr_type);
                CHECK(ref_same(&c, &want.view, name), "%s", "wrong product");
                tulle_matrix_free(C);

                o.c_ptr_type = TULLE_I64;
                product_is(ctx, &p.A.view, &p.B.view, &o, &want.view, name);

                o.c_ptr_type = TULLE_I32;
                C = NULL;
                tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
                char number[32];
                snprintf(number, sizeof number, "%" PRId64, nnz);
                if (nnz <= LIMIT) {
                    REQUIRE(status == TULLE_OK, "%s: %s", name, tulle_ctx_error(ctx));
                    c = tulle_matrix_view(C);
                    CHECK(c.ptr_type == TULLE_I32 && ref_same(&c, &want.view, name), "%s", "fixed to i32");
                } else {
                    CHECK(status == TULLE_EOVERFLOW && !C, "%s: %s", name, tulle_status_name(status));
                    CHECK(strstr(tulle_ctx_error(ctx), number) && strstr(tulle_ctx_error(ctx), "1000"), "%s: %s",
                          name, tulle_ctx_error(ctx));
                }
                tulle_matrix_free(C);
            }
            ref_free(&want);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* Rows with many products and many pieces, far beyond the limit, with several threads. */
static void large_products_are_wide_and_right(void)
{
    tulle_ctx *ctx = ctx_with(3);
    for (int i = 15; i < 22; i++) {
        pair p = pair_at(i, REF_REALS, (ref_types){TULLE_F64, TULLE_I64, TULLE_I64},
                         (ref_types){TULLE_F64, TULLE_I64, TULLE_I64});
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_matrix *C = NULL;
        REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_matrix_view(C);
        CHECK(ref_same(&c, &want.view, p.name) && c.ptr_type == TULLE_I64, "%s", p.name);
        tulle_matrix_free(C);
        C = NULL;
        tulle_options o = {.c_ptr_type = TULLE_I32};
        CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_EOVERFLOW && !C, "%s", p.name);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void zeros_that_are_dropped_do_not_count(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_dense(40, 2, REF_INTEGERS, f64), B = ref_dense(2, 40, REF_INTEGERS, f64);
    for (int64_t k = 0; k < A.view.nnz; k++) ref_set_val(&A, k, (ref_value){k < 40 ? 1 : k % 2 ? -1 : 1, 0});
    for (int64_t k = 0; k < B.view.nnz; k++) ref_set_val(&B, k, (ref_value){1, 0});
    ref full = ref_product(&A.view, &B.view), want = ref_without_zeros(&full.view);
    tulle_matrix *C = NULL;
    tulle_options o = {.drop_zeros = 1};
    REQUIRE(want.view.nnz < LIMIT && full.view.nnz > LIMIT, "%" PRId64 " entries", want.view.nnz);
    REQUIRE(tulle_multiply(ctx, &A.view, &B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &want.view, "dropped") && c.ptr_type == TULLE_I32, "i%d", 32 * (int)c.ptr_type);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&B);
    ref_free(&full);
    ref_free(&want);
    tulle_ctx_free(ctx);
}

static void columns_of_c_that_do_not_fit(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(1, 20, 30, 3, REF_INTEGERS, f64), B = ref_random(2, 30, LIMIT + 2, 3, REF_INTEGERS, f64_i64);
    ref E = ref_random(2, 30, LIMIT + 1, 3, REF_INTEGERS, f64_i64);
    ref want = ref_product(&A.view, &B.view), exact = ref_product(&A.view, &E.view);
    tulle_matrix *C = NULL;
    tulle_options o = {.c_idx_type = TULLE_I32};
    product_is(ctx, &A.view, &B.view, NULL, &want.view, "1002 columns");
    CHECK(tulle_multiply(ctx, &A.view, &B.view, &o, &C) == TULLE_EOVERFLOW && !C, "1002 columns as i32");
    CHECK(strstr(tulle_ctx_error(ctx), "1002") != NULL, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_multiply(ctx, &A.view, &E.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &exact.view, "1001 columns") && c.idx_type == TULLE_I32, "1001 columns as i32");
    tulle_matrix_free(C);
    ref all[] = {A, B, E, want, exact};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ref_free(&all[i]);
    tulle_ctx_free(ctx);
}

/* A and A^T: the transposed copies inside a product need wider columns than A has. */
static void transposed_operands_widen(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = ref_random(3, 1500, 20, 0.6, REF_INTEGERS, f64);
    REQUIRE(A.view.nnz <= LIMIT && A.view.nnz > 500, "%" PRId64 " entries", A.view.nnz);
    ref T = ref_transpose(&A.view, TULLE_TRANSPOSE), gram = ref_product(&T.view, &A.view);
    ref wide = ref_product(&A.view, &T.view);
    tulle_matrix *M = NULL;
    REQUIRE(tulle_csr_transpose(ctx, &A.view, TULLE_TRANSPOSE, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr t = tulle_matrix_view(M);
    CHECK(t.idx_type == TULLE_I64 && t.ptr_type == TULLE_I32 && ref_same(&t, &T.view, "A^T"), "i%d",
          32 * (int)t.idx_type);
    tulle_matrix_free(M);
    product_is(ctx, &A.view, &A.view, &(tulle_options){.op_a = TULLE_TRANSPOSE}, &gram.view, "A^T*A");
    product_is(ctx, &A.view, &A.view, &(tulle_options){.op_b = TULLE_TRANSPOSE}, &wide.view, "A*A^T");
    ref_free(&A);
    ref_free(&T);
    ref_free(&gram);
    ref_free(&wide);
    tulle_ctx_free(ctx);
}

static void plans_widen_and_refuse(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int fits = 0; fits <= 1; fits++) {
        pair p = fits ? folded(20, 50, f64) : folded(20, 51, f64);
        ref want = ref_product(&p.A.view, &p.B.view);
        tulle_plan *plan = NULL;
        tulle_options o = {.c_ptr_type = TULLE_I32};
        REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr c = tulle_plan_pattern(plan);
        double *values = malloc((size_t)c.nnz * sizeof *values);
        CHECK(c.ptr_type == (fits ? TULLE_I32 : TULLE_I64), "i%d", 32 * (int)c.ptr_type);
        CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want.view, "plan"), "%s", "wrong values");
        tulle_plan_free(plan);
        plan = NULL;
        tulle_status status = tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan);
        CHECK(status == (fits ? TULLE_OK : TULLE_EOVERFLOW) && !plan == !fits, "%s", tulle_status_name(status));
        tulle_plan_free(plan);
        free(values);
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* A block has narrow indices if its own counts fit, even if those of all of C do not. */
static int block_types(void *user, int64_t first_row, const tulle_csr *block)
{
    bool *good = user;
    (void)first_row;
    *good = *good && block->ptr_type == (block->nnz > LIMIT ? TULLE_I64 : TULLE_I32);
    return 0;
}

static void blocks_have_their_own_widths(void)
{
    tulle_ctx *ctx = ctx_with(1);
    pair p = outer(200, 60, f64);
    int kept = 0;
    for (uint64_t limit = 1 << 19; limit < 1 << 26; limit *= 2) {
        bool good = true;
        tulle_options o = {.memory_limit = limit};
        tulle_status status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, block_types, &good);
        CHECK((status == TULLE_OK && good) || status == TULLE_ELIMIT, "%s", tulle_ctx_error(ctx));
        kept += status == TULLE_OK;
    }
    CHECK(kept > 0, "no limit was large enough");
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- views and copies at the limit */

static void views_beyond_the_limit_are_refused(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_new(1, LIMIT + 1, 1, f64);
    ref_set_ptr(&A, 1, 1);
    CHECK(tulle_csr_check(ctx, &A.view) == TULLE_OK, "1001 columns: %s", tulle_ctx_error(ctx));
    A.view.cols = LIMIT + 2;
    CHECK(tulle_csr_check(ctx, &A.view) == TULLE_EINVAL, "1002 columns");
    CHECK(strcmp(tulle_ctx_error(ctx), "A: 1002 columns do not fit column indices of type i32") == 0, "%s",
          tulle_ctx_error(ctx));
    ref_free(&A);
    ref D = ref_dense(11, 91, REF_INTEGERS, f64);
    CHECK(tulle_csr_check(ctx, &D.view) == TULLE_EINVAL, "1001 entries");
    CHECK(strcmp(tulle_ctx_error(ctx), "A: nnz 1001 does not fit row pointers of type i32") == 0, "%s",
          tulle_ctx_error(ctx));
    ref_free(&D);
    tulle_ctx_free(ctx);
}

/* nnz is larger than the entries of the rows: nothing after these is read, also not by tulle_csr_move(). */
static void a_view_that_claims_more_entries_is_not_read(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(9, 8, 8, 3, REF_INTEGERS, f64);
    tulle_csr more = A.view, fewer = A.view;
    tulle_matrix *M = NULL;
    more.nnz += 100;
    fewer.nnz -= 1;
    CHECK(tulle_csr_move(ctx, &more, TULLE_HOST, &M) == TULLE_EPATTERN && !M, "%s", tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), "row_ptr[8]") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_csr_move(ctx, &fewer, TULLE_HOST, &M) == TULLE_EPATTERN && !M, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_csr_move(ctx, &A.view, TULLE_HOST, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr m = tulle_matrix_view(M);
    CHECK(ref_same(&m, &A.view, "moved"), "%s", "another matrix");
    tulle_matrix_free(M);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void conversions_refuse_what_does_not_fit(void)
{
    tulle_ctx *ctx = ctx_with(1);
    ref D = ref_dense(11, 91, REF_INTEGERS, f64_i64), W = ref_random(4, 5, LIMIT + 2, 3, REF_INTEGERS, f64_i64);
    tulle_matrix *M = NULL;
    CHECK(tulle_csr_convert(ctx, &D.view, (tulle_type)0, TULLE_I32, (tulle_index)0, &M) == TULLE_EOVERFLOW && !M,
          "1001 entries");
    CHECK(strstr(tulle_ctx_error(ctx), "1001") != NULL, "%s", tulle_ctx_error(ctx));
    CHECK(tulle_csr_convert(ctx, &W.view, (tulle_type)0, (tulle_index)0, TULLE_I32, &M) == TULLE_EOVERFLOW && !M,
          "1002 columns");
    CHECK(tulle_csr_convert(ctx, &D.view, (tulle_type)0, (tulle_index)0, TULLE_I32, &M) == TULLE_OK, "%s",
          tulle_ctx_error(ctx));
    tulle_matrix_free(M);
    ref_free(&D);
    ref_free(&W);
    tulle_ctx_free(ctx);
}

static void coordinates_widen_the_pointers(void)
{
    tulle_ctx *ctx = ctx_with(1);
    int32_t row[LIMIT + 1], col[LIMIT + 1];
    for (int k = 0; k <= LIMIT; k++) row[k] = k % 100, col[k] = k / 100;
    for (int count = LIMIT; count <= LIMIT + 1; count++) {
        tulle_matrix *M = NULL;
        REQUIRE(tulle_csr_from_coo(ctx, 100, 20, count, row, col, TULLE_I32, NULL, TULLE_F64, &M) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_csr m = tulle_matrix_view(M);
        CHECK(m.nnz == count && m.ptr_type == (count > LIMIT ? TULLE_I64 : TULLE_I32) && m.idx_type == TULLE_I32,
              "%d entries: i%d", count, 32 * (int)m.ptr_type);
        CHECK(tulle_csr_check(ctx, &m) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_matrix_free(M);
    }
    tulle_ctx_free(ctx);
}

static void the_gallery_widens(void)
{
    static const char *const recipes[] = {"poisson2d:14", "poisson2d:40", "cage:8"};
    tulle_ctx *ctx = ctx_with(2);
    for (int i = 0; i < 3; i++) {
        tulle_matrix *M = NULL, *C = NULL;
        REQUIRE(tulle_gallery(ctx, recipes[i], &M) == TULLE_OK, "%s: %s", recipes[i], tulle_ctx_error(ctx));
        tulle_csr m = tulle_matrix_view(M);
        CHECK(m.ptr_type == (m.nnz > LIMIT ? TULLE_I64 : TULLE_I32), "%s: pointers i%d", recipes[i],
              32 * (int)m.ptr_type);
        CHECK(m.idx_type == (m.cols - 1 > LIMIT ? TULLE_I64 : TULLE_I32), "%s: columns i%d", recipes[i],
              32 * (int)m.idx_type);
        CHECK(tulle_csr_check(ctx, &m) == TULLE_OK, "%s: %s", recipes[i], tulle_ctx_error(ctx));
        ref want = ref_product(&m, &m);
        product_is(ctx, &m, &m, NULL, &want.view, recipes[i]);
        CHECK(tulle_multiply(ctx, &m, &m, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_matrix_free(C);
        tulle_matrix_free(M);
        ref_free(&want);
    }
    tulle_ctx_free(ctx);
}

static void files_widen(void)
{
    tulle_ctx *ctx = ctx_with(2);
    static const char *const ends[] = {"mtx", "tulle"};
    for (int e = 0; e < 2; e++)
        for (int over = 0; over <= 1; over++) {
            ref D = ref_dense(10 + over, 91 + 9 * !over, REF_INTEGERS, f64_i64);        /* 1000, 1001 */
            char path[64];
            tulle_matrix *M = NULL;
            snprintf(path, sizeof path, "test_limits_%d.%s", over, ends[e]);
            REQUIRE(tulle_write(ctx, path, &D.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_status status = tulle_read(ctx, path, &M);
            remove(path);
            REQUIRE(status == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr m = tulle_matrix_view(M);
            CHECK(ref_same(&m, &D.view, path), "%s", "another matrix came back");
            CHECK(tulle_csr_check(ctx, &m) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            if (e == 0) CHECK(m.ptr_type == (over ? TULLE_I64 : TULLE_I32), "%s: i%d", path, 32 * (int)m.ptr_type);
            tulle_matrix_free(M);
            ref_free(&D);
        }
    tulle_ctx_free(ctx);
}

/* Joining blocks with narrow indices: types that are not fixed are widened, otherwise the call is refused. */
static void joined_blocks_widen_and_refuse(void)
{
    for (int over = 0; over <= 1; over++)
        for (int type = 0; type <= TULLE_I64; type++) {
            tl_base *b = NULL;
            tl_join j;
            tulle_matrix *C = NULL;
            ref D = ref_dense(10, 50, REF_INTEGERS, f64);
            REQUIRE(tl_base_create(NULL, 1, sizeof *b, &b) == TULLE_OK, "a base");
            REQUIRE(tl_join_begin(b, 20 + over, 50, 0, 1050, TULLE_I32, TULLE_F64, true, &j) == TULLE_OK, "%s", b->error);
            for (int i = 0; i < 2 + over; i++) {
                tulle_csr part = D.view;
                if (i == 2) part.rows = 1, part.nnz = 50;
                CHECK(tl_join_put(b, &j, &part, false) == TULLE_OK, "%s", b->error);
            }
            tulle_status status = tl_join_finish(b, &j, type, &C);
            if (over && type == TULLE_I32) {
                CHECK(status == TULLE_EOVERFLOW && !C && strstr(b->error, "1050 entries"), "%s", b->error);
            } else {
                CHECK(status == TULLE_OK && C->view.nnz == 1000 + 50 * over, "%s", b->error);
                CHECK(C->view.ptr_type == (type ? (tulle_index)type : over ? TULLE_I64 : TULLE_I32), "i%d", 32 * (int)C->view.ptr_type);
                for (int64_t i = 0; i <= 20 + over; i++) CHECK(ref_ptr(&C->view, i) == 50 * i, "row %" PRId64, i);
            }
            tl_join_done(b, &j);
            tl_matrix_free(b, C);
            tl_base_free(b);
            ref_free(&D);
        }
}

TEST_MAIN(TEST(c_grows_wide_when_it_must), TEST(large_products_are_wide_and_right),
          TEST(zeros_that_are_dropped_do_not_count), TEST(columns_of_c_that_do_not_fit),
          TEST(transposed_operands_widen), TEST(plans_widen_and_refuse), TEST(blocks_have_their_own_widths),
          TEST(joined_blocks_widen_and_refuse),
          TEST(views_beyond_the_limit_are_refused), TEST(a_view_that_claims_more_entries_is_not_read),
          TEST(conversions_refuse_what_does_not_fit),
          TEST(coordinates_widen_the_pointers), TEST(the_gallery_widens), TEST(files_widen))
