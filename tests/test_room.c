/* SPDX-License-Identifier: MIT
 *
 * test_room.c - a memory limit covers all memory of a call besides A and B, for every option.
 *
 * For products, blocks and plans: the smallest sufficient limit is found by bisection; it must be the number
 * in the error message; with this and larger limits the peak is within the limit, and the result is the same
 * as without; and no peak exceeds the prediction of tulle_estimate(). */
#include "blocks_help.h"
#include "ways.h"

/* ---- the operands of op(A)*op(B), and the results */

typedef struct sample {
    ref           A, B, want;
    tulle_options o;
    const char   *shape;
    char          name[160];
} sample;

enum { SHAPES = 10 };

static pair shape_at(int i, ref_kind kind, ref_types t)
{
    switch (i) {
    case 0: return (pair){ref_random(1, 120, 110, 7, kind, t),
                           ref_random(2, 110, 130, 6, kind, t), "random"};
    case 1: return (pair){ref_random(3, 20, 40, 3, kind, t),
                          ref_random(4, 40, 60000, 2, kind, t), "a wide B"};
    case 2: return (pair){ref_random(5, 4000, 30, 2, kind, t),
                          ref_random(6, 30, 25, 4, kind, t), "a tall A"};
    case 3: return (pair){ref_random(7, 3000, 3000, 0.05, kind, t),
                          ref_random(8, 3000, 3000, 0.05, kind, t), "hypersparse"};
    case 4: return (pair){ref_dense(30, 40, kind, t), ref_dense(40, 35, kind, t), "dense"};
    case 5: return (pair){ref_dense(2, 2500, kind, t),
                          ref_random(9, 2500, 50, 5, kind, t), "long rows of A"};
    case 6: return (pair){ref_band(400, 3, kind, t), ref_band(400, 3, kind, t), "a band"};
    case 7: return (pair){ref_blocks(12, 1, 4, kind, t), ref_blocks(12, 1, 4, kind, t), "4x4 blocks"};
    case 8: return (pair){ref_random(10, 12, 50000, 8, kind, t),
                          ref_random(11, 50000, 9, 0.002, kind, t), "a wide A"};
    default: return (pair){ref_random(12, 260, 260, 18, kind, t),
                           ref_random(13, 260, 260, 18, kind, t), "for threads"};
    }
}

/* The operand from which op makes M; unsorted, with entries split into two, if that is allowed. */
static ref given(ref M, int op, bool unsorted, uint64_t seed)
{
    ref_types t = {M.view.val_type, M.view.ptr_type, M.view.idx_type};
    ref T = op ? ref_transpose(&M.view, (tulle_op)op) : ref_copy(&M.view, t);
    ref out = T;
    if (unsorted) {
        out = ref_shuffled(&T.view, seed, M.view.nnz > 0);
        ref_free(&T);
    }
    ref_free(&M);
    return out;
}

static sample sample_make(int shape, ref_rng *r, bool plan)
{
    ref_types t = {(tulle_type)(1 + ref_below(r, 4)), (tulle_index)(1 + ref_below(r, 2)),
                   (tulle_index)(1 + ref_below(r, 2))};
    sample s = {.o = {.op_a = (int)ref_below(r, 3), .op_b = (int)ref_below(r, 3),
                      .threads = 1 + (int)ref_below(r, 4), .c_ptr_type = (int)ref_below(r, 3),
                      .c_idx_type = plan ? 0 : (int)ref_below(r, 3),
                      .drop_zeros = !plan && ref_below(r, 3) == 0,
                      .sort_inputs = !plan && ref_below(r, 3) == 0}};
    pair p = shape_at(shape, s.o.drop_zeros ? REF_CANCELLING : REF_INTEGERS, t);
    ref full = ref_product(&p.A.view, &p.B.view);
    s.want = full;
    if (s.o.drop_zeros) {
        s.want = ref_without_zeros(&full.view);
        ref_free(&full);
    }
    s.A = given(p.A, s.o.op_a, s.o.sort_inputs, 21);
    s.B = given(p.B, s.o.op_b, s.o.sort_inputs, 22);
    s.shape = p.name;
    snprintf(s.name, sizeof s.name, "%s, %s, op %d %d, c i%d i%d%s%s, %d threads", p.name, ref_types_name(t),
             s.o.op_a, s.o.op_b, 32 * s.o.c_ptr_type, 32 * s.o.c_idx_type, s.o.drop_zeros ? ", drop" : "",
             s.o.sort_inputs ? ", sort" : "", s.o.threads);
    return s;
}

static void sample_free(sample *s)
{
    ref_free(&s->A);
    ref_free(&s->B);
    ref_free(&s->want);
}

/* ---- three functions that compute it with a limit; results are compared immediately */

typedef tulle_status (*way_fn)(tulle_ctx *ctx, const sample *s, uint64_t limit);

static tulle_status whole(tulle_ctx *ctx, const sample *s, uint64_t limit)
{
    tulle_options o = s->o;
    tulle_matrix *C = NULL;
    o.memory_limit = limit;
    tulle_status status = tulle_multiply(ctx, &s->A.view, &s->B.view, &o, &C);
    tulle_csr c = tulle_matrix_view(C);
    if (status == TULLE_OK) {
        CHECK(ref_same(&c, &s->want.view, s->name), "%s", "wrong product");
        int idx = o.c_idx_type ? o.c_idx_type : (int)s->B.view.idx_type;
        CHECK((int)c.idx_type == idx, "%s: columns i%d", s->name, 32 * (int)c.idx_type);
        CHECK(!o.c_ptr_type || (int)c.ptr_type == o.c_ptr_type, "%s: pointers i%d", s->name,
              32 * (int)c.ptr_type);
    } else {
        CHECK(!C, "%s: half a product", s->name);
    }
    tulle_matrix_free(C);
    return status;
}

static tulle_status in_blocks(tulle_ctx *ctx, const sample *s, uint64_t limit)
{
    tulle_options o = s->o;
    blocks_seen seen = {.want = &s->want.view, .good = true};
    o.memory_limit = limit;
    tulle_status status = tulle_multiply_blocks(ctx, &s->A.view, &s->B.view, &o, blocks_compare, &seen);
    CHECK(seen.good && (status != TULLE_OK || blocks_all(&seen)), "%s: wrong blocks", s->name);
    return status;
}

static tulle_status by_plan(tulle_ctx *ctx, const sample *s, uint64_t limit)
{
    tulle_options o = s->o;
    tulle_plan *plan = NULL;
    o.memory_limit = limit;
    tulle_status status = tulle_plan_create(ctx, &s->A.view, &s->B.view, &o, &plan);
    if (status != TULLE_OK) return status;
    tulle_csr c = tulle_plan_pattern(plan);
    c.values = malloc((size_t)(c.nnz + 1) * 16);
    CHECK(tulle_plan_run(plan, s->A.values, s->B.values, (void *)(uintptr_t)c.values) == TULLE_OK, "%s: %s",
          s->name, tulle_ctx_error(ctx));
    CHECK(ref_same(&c, &s->want.view, s->name), "%s", "wrong values");
    free((void *)(uintptr_t)c.values);
    tulle_plan_free(plan);
    return status;
}

/* ---- the property */

static uint64_t number_in(const char *sentence)
{
    const char *number = strpbrk(sentence, "0123456789");
    return number ? strtoull(number, NULL, 10) : 0;
}

/* Does the call succeed?  Then the peak must be within the limit. */
static bool kept(tulle_ctx *ctx, way_fn way, const sample *s, uint64_t limit)
{
    tulle_stats stats;
    tulle_status status = way(ctx, s, limit);
    CHECK(status == TULLE_OK || status == TULLE_ELIMIT, "%s: %s", s->name, tulle_ctx_error(ctx));
    if (status != TULLE_OK) return false;
    tulle_ctx_stats(ctx, &stats);
    CHECK(stats.peak_bytes <= limit, "%s: peak %" PRIu64 ", limit %" PRIu64, s->name, stats.peak_bytes,
          limit);
    return true;
}

static void holds(tulle_ctx *ctx, way_fn way, const sample *s)
{
    tulle_forecast f;
    tulle_stats stats;
    int64_t nnz = s->want.view.nnz;
    REQUIRE(tulle_estimate(ctx, &s->A.view, &s->B.view, &s->o, &f) == TULLE_OK, "%s: %s", s->name,
            tulle_ctx_error(ctx));
    CHECK(f.nnz_lower <= nnz && nnz <= f.nnz_upper && f.nnz_lower <= f.nnz_estimate, "%s: %" PRId64
          " entries, forecast %" PRId64 " to %" PRId64, s->name, nnz, f.nnz_lower, f.nnz_upper);
    REQUIRE(way(ctx, s, 0) == TULLE_OK, "%s: %s", s->name, tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &stats);
    CHECK(stats.peak_bytes <= f.bytes_upper, "%s: peak %" PRIu64 ", forecast %" PRIu64, s->name,
          stats.peak_bytes, f.bytes_upper);
    CHECK(kept(ctx, way, s, f.bytes_upper), "%s: the forecast of %" PRIu64 " is not enough: %s", s->name,
          f.bytes_upper, tulle_ctx_error(ctx));

    REQUIRE(way(ctx, s, 1) == TULLE_ELIMIT, "%s: one byte", s->name);
    uint64_t named = number_in(tulle_ctx_error(ctx)), low = 1, high = named;
    REQUIRE(kept(ctx, way, s, named), "%s: %" PRIu64 " bytes were asked for, then: %s", s->name, named,
            tulle_ctx_error(ctx));
    while (high - low > 1 + high / 1000) {
        uint64_t middle = low + (high - low) / 2;
        if (kept(ctx, way, s, middle)) high = middle;
        else low = middle;
    }
    CHECK(way != whole || high == named, "%s: %" PRIu64 " are enough, %" PRIu64 " were asked for", s->name,
          high, named);
    for (uint64_t limit = named; limit < f.bytes_upper; limit += limit / 3)
        CHECK(kept(ctx, way, s, limit), "%s: %" PRIu64 " is refused, %" PRIu64 " was not", s->name, limit,
              named);
    for (uint64_t limit = low; limit > 64; limit -= limit / 3) {   /* every number named must be sufficient */
        if (kept(ctx, way, s, limit)) continue;
        uint64_t again = number_in(tulle_ctx_error(ctx));
        CHECK(kept(ctx, way, s, again), "%s: limit %" PRIu64 ", %" PRIu64 " were asked for, then: %s", s->name,
              limit, again, tulle_ctx_error(ctx));
    }
}

static void holds_for_all(way_fn way, bool plan, int samples)
{
    tulle_ctx *ctx = ctx_with(4);
    ref_rng r = {4711};
    for (int i = 0; i < samples && test_failures < 10; i++) {
        sample s = sample_make(i % SHAPES, &r, plan);
        holds(ctx, way, &s);
        sample_free(&s);
    }
    tulle_ctx_free(ctx);
}

#if defined(TULLE_SANITIZED)
enum { MANY = 10 };
#else
enum { MANY = 80 };
#endif

static void products_keep_their_limit(void) { holds_for_all(whole, false, 2 * MANY); }
static void blocks_keep_their_limit(void) { holds_for_all(in_blocks, false, MANY); }
static void plans_keep_their_limit(void) { holds_for_all(by_plan, true, MANY); }

/* ---- the smallest limit: C, 9 bytes per row of A, one per row of B, and one thread with a small
 * workspace */

static void least_is_small(tulle_ctx *ctx, pair p, uint64_t scratch)
{
    sample s = {.A = p.A, .B = p.B, .want = ref_product(&p.A.view, &p.B.view)};
    const tulle_csr *b = &p.B.view;
    ref_types t = {b->val_type, b->ptr_type, b->idx_type};
    snprintf(s.name, sizeof s.name, "%s, %s", p.name, ref_types_name(t));
    uint64_t c = (uint64_t)s.want.view.nnz * (ref_value_size(b->val_type) + ref_index_size(b->idx_type))
                 + (uint64_t)(s.want.view.rows + 1) * 8;
    uint64_t bound = c + 9 * (uint64_t)p.A.view.rows + (uint64_t)b->rows + scratch;
    for (s.o.threads = 1; s.o.threads <= 4; s.o.threads++)
        CHECK(kept(ctx, whole, &s, bound), "%s, %d threads, %" PRIu64 " bytes of C: %s", s.name, s.o.threads,
              c, tulle_ctx_error(ctx));
    sample_free(&s);
}

static void small_products_do_with_small_limits(void)
{
    static const ref_types small = {TULLE_F64, TULLE_I32, TULLE_I32};
    static const ref_types large = {TULLE_CF64, TULLE_I64, TULLE_I64};
    tulle_ctx *ctx = ctx_with(4);
    for (int i = 0; i < PAIRS; i++) {
        least_is_small(ctx, pair_at(i, REF_INTEGERS, small, small), 128 << 10);
        least_is_small(ctx, pair_at(i, REF_INTEGERS, large, large), 224 << 10);
    }
    for (int i = 0; i < SHAPES; i++) least_is_small(ctx, shape_at(i, REF_INTEGERS, small), 128 << 10);
    ref A = ref_random(5, 300, 300, 15, REF_INTEGERS, small);
    ref B = ref_random(6, 300, 300, 15, REF_INTEGERS, small);
    least_is_small(ctx, (pair){A, B, "300 x 300"}, 64 << 10);
    tulle_ctx_free(ctx);
}

/* ---- converting columns to another width needs no second copy of C */

static void other_widths_take_no_second_copy(void)
{
    static const ref_types types[] = {{TULLE_F64, TULLE_I32, TULLE_I32}, {TULLE_F64, TULLE_I32, TULLE_I64}};
    tulle_ctx *ctx = ctx_with(2);
    for (int w = 0; w < 2; w++) {
        sample s = {.A = ref_dense(400, 2, REF_INTEGERS, types[w]),
                    .B = ref_dense(2, 2000, REF_INTEGERS, types[w]),
                    .o.c_idx_type = w ? TULLE_I32 : TULLE_I64, .name = "another width"};
        s.want = ref_product(&s.A.view, &s.B.view);
        uint64_t c = 400 * 2000 * 16 + 401 * 4;         /* 16 while columns have 64 bits */
        CHECK(kept(ctx, whole, &s, c + (256 << 10)), "%s", tulle_ctx_error(ctx));
        CHECK(kept(ctx, in_blocks, &s, c / 2), "%s", tulle_ctx_error(ctx));
        CHECK(kept(ctx, whole, &s, 4 * c), "%s", tulle_ctx_error(ctx));
        sample_free(&s);
    }
    tulle_ctx_free(ctx);
}

/* ---- very wide matrices take memory in proportion to their entries */

static ref wide_matrix(int64_t cols)
{
    static const ref_types t = {TULLE_F64, TULLE_I32, TULLE_I64};
    const int64_t row[] = {0, 0, 0, 1, 2}, col[] = {0, 7, cols - 1, 7, cols - 1};
    ref A = ref_new(3, cols, 5, t);
    for (int64_t k = 0; k < 5; k++) {
        ref_set_col(&A, k, col[k]);
        ref_set_val(&A, k, (ref_value){(double)(k + 2), 0});
        for (int64_t i = row[k]; i < 3; i++) ref_set_ptr(&A, i + 1, k + 1);
    }
    return A;
}

static void wide_matrices_take_memory_by_their_entries(void)
{
    static const int64_t widths[] = {1000, INT32_MAX, (int64_t)1 << 40, INT64_MAX};
    static const double gram[] = {29, 15, 24, 15, 25, 24, 36};          /* (2 3 4), (5 at 3), (6 at 4) */
    tulle_ctx *ctx = ctx_with(2);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        ref A = wide_matrix(widths[i]), U = ref_shuffled(&A.view, 3, true);
        tulle_matrix *M = NULL;
        REQUIRE(tulle_csr_sort(ctx, &U.view, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_csr m = tulle_matrix_view(M);
        CHECK(ref_same(&m, &A.view, "sorted"), "%s", "another matrix");
        tulle_matrix_free(M);
        for (int sort = 0; sort <= 1; sort++) {
            tulle_options o = {.op_b = TULLE_ADJOINT, .sort_inputs = sort, .memory_limit = 64 << 10};
            const tulle_csr *a = sort ? &U.view : &A.view;
            tulle_forecast f;
            tulle_stats stats;
            tulle_plan *plan = NULL;
            double values[7], error = 1;
            M = NULL;
            REQUIRE(tulle_multiply(ctx, a, a, &o, &M) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            m = tulle_matrix_view(M);
            CHECK(m.rows == 3 && m.cols == 3 && m.nnz == 7, "%" PRId64 " entries", m.nnz);
            CHECK(m.nnz == 7 && memcmp(m.values, gram, sizeof gram) == 0, "A*A^T");
            tulle_ctx_stats(ctx, &stats);
            CHECK(stats.peak_bytes < 64 << 10 && stats.a_nnz == 5, "peak %" PRIu64, stats.peak_bytes);
            CHECK(tulle_estimate(ctx, a, a, &o, &f) == TULLE_OK && f.products == 9 && f.nnz_estimate == 7,
                  "%s", tulle_ctx_error(ctx));
            CHECK(tulle_product_check(ctx, a, a, &m, &o, &error) == TULLE_OK && error < 1e-14, "%s",
                  tulle_ctx_error(ctx));
            tulle_matrix_free(M);
            if (sort) continue;
            REQUIRE(tulle_plan_create(ctx, a, a, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(tulle_plan_run(plan, a->values, a->values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(memcmp(values, gram, sizeof gram) == 0, "a plan of A*A^T");
            tulle_plan_free(plan);
        }
        ref_free(&A);
        ref_free(&U);
    }
    tulle_ctx_free(ctx);
}

/* Row pointers for each column of A cannot be avoided if they are part of the result. */
static void what_must_have_many_rows_is_refused(void)
{
    tulle_ctx *ctx = ctx_with(2);
    for (int wide = 0; wide <= 1; wide++) {
        int64_t cols = wide ? INT64_MAX : (int64_t)1 << 42;
        ref A = wide_matrix(cols);
        tulle_matrix *M = NULL;
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, cols);
        CHECK(tulle_csr_transpose(ctx, &A.view, TULLE_TRANSPOSE, &M) == TULLE_ENOMEM && !M, "a transpose");
        CHECK(strstr(tulle_ctx_error(ctx), number) != NULL, "%s", tulle_ctx_error(ctx));
        for (int sort = 0; sort <= 1; sort++) {
            tulle_options o = {.op_a = TULLE_TRANSPOSE, .sort_inputs = sort};
            CHECK(tulle_multiply(ctx, &A.view, &A.view, &o, &M) == TULLE_ELIMIT && !M, "A^T*A");
            CHECK(strstr(tulle_ctx_error(ctx), "bytes") != NULL, "%s", tulle_ctx_error(ctx));
        }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* A transpose needs no counters besides its row pointers if there are more columns than entries. */
static void transposes_count_in_their_row_pointers(void)
{
    tulle_ctx *ctx = ctx_with(2);
    ref A = wide_matrix(1 << 20), X = ref_identity(3, (ref_types){TULLE_F64, TULLE_I32, TULLE_I64});
    tulle_options o = {.op_a = TULLE_TRANSPOSE, .memory_limit = 40 << 20};
    tulle_stats stats;
    tulle_matrix *C = NULL;
    REQUIRE(tulle_multiply(ctx, &A.view, &X.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &stats);
    /* row pointers of A^T and of C, 9 bytes per row of A^T for the profile */
    CHECK(stats.peak_bytes < (uint64_t)18 << 20, "peak %" PRIu64, stats.peak_bytes);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&X);
    tulle_ctx_free(ctx);
}

/* Each row of A needs two rows of B, one with the even columns and one with the odd ones: C has between
 * n*n/2 and n*n entries, and too many products to be counted only for an error message. */
static void what_can_never_fit_is_refused_without_counting(void)
{
    enum { N = 70000 };
    tulle_ctx *ctx = ctx_with(1);
    int32_t *ptr = malloc((N + 1) * sizeof *ptr), *col = malloc(2 * N * sizeof *col), two[3] = {0, N / 2, N};
    int32_t *half = malloc(N * sizeof *half);
    double *val = calloc(2 * N, sizeof *val);
    for (int i = 0; i <= N; i++) ptr[i] = 2 * i;
    for (int i = 0; i < N; i++) {
        col[2 * i] = 0;
        col[2 * i + 1] = 1;
        half[i] = i < N / 2 ? 2 * i : 2 * (i - N / 2) + 1;
    }
    tulle_csr A = tulle_csr_f64_i32(N, 2, ptr, col, val), B = tulle_csr_f64_i32(2, N, two, half, val);
    tulle_options o = {.memory_limit = 1 << 30};
    tulle_matrix *C = NULL;
    CHECK(tulle_multiply(ctx, &A, &B, &o, &C) == TULLE_ELIMIT && !C, "%s", tulle_ctx_error(ctx));
    CHECK(strstr(tulle_ctx_error(ctx), "(C has at most 4900000000 entries,") != NULL, "%s", tulle_ctx_error(ctx));
    free(ptr);
    free(col);
    free(half);
    free(val);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(products_keep_their_limit), TEST(blocks_keep_their_limit), TEST(plans_keep_their_limit),
          TEST(small_products_do_with_small_limits), TEST(other_widths_take_no_second_copy),
          TEST(wide_matrices_take_memory_by_their_entries), TEST(what_must_have_many_rows_is_refused),
          TEST(transposes_count_in_their_row_pointers),
          TEST(what_can_never_fit_is_refused_without_counting))
