/* SPDX-License-Identifier: MIT
 *
 * test_gpu_product.c - products on a device against the CPU engine, bit for bit: every type and index,
 * hostile shapes, far columns, every policy and accumulator, little shared memory, load balancing forced on
 * and off, matrices on host and device.  Cost and failures are tested in test_gpu_engine.c. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include "gpu.h"

#ifdef TULLE_SMALL_TESTS
enum { SLOW = 1 };              /* smaller step sizes for the same cases */
#else
enum { SLOW = 0 };
#endif

/* ---- types: both operands in each of the four index combinations, independently */

static void every_value_and_index_type(void)
{
    static const int pairs[] = {3, 12, 14, 15};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
            ref_types t = {(tulle_type)v, TULLE_I64, TULLE_I64};
            pair p = gpu_pair(pairs[n], REF_INTEGERS, t, t);
            tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
            tulle_csr want = tulle_matrix_view(C);
            for (int i = 0; i < 16; i++) {
                ref_types ta = ref_types_at(v - TULLE_F32 + i % 4 * 4), tb = ref_types_at(v - TULLE_F32 + i / 4 * 4);
                ref A = ref_copy(&p.A.view, ta), B = ref_copy(&p.B.view, tb);
                tulle_options o = {.policy = i % 3 ? "speck" : "auto"};
                char name[128];
                snprintf(name, sizeof name, "%s, %s * %s, %s", p.name, ref_types_name(ta), ref_types_name(tb),
                         o.policy);
                gpu_product_is(ctx, &A.view, &B.view, &o, (i * 5 + (int)n) % PLACES, &want, name);
                ref_free(&A);
                ref_free(&B);
            }
            tulle_matrix_free(C);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

static void types_of_c_follow_the_options(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 4; i++) {
        ref_types ta = {TULLE_F32, (tulle_index)(1 + i % 2), TULLE_I32};
        ref_types tb = {TULLE_F32, TULLE_I32, (tulle_index)(1 + i / 2)};
        pair p = gpu_pair(9, REF_INTEGERS, ta, tb);
        ref want = ref_product(&p.A.view, &p.B.view);
        for (int ask = 0; ask < 9; ask++) {
            tulle_options o = {.c_ptr_type = ask % 3, .c_idx_type = ask / 3};
            tulle_matrix *C = gpu_product(ctx, &p.A.view, &p.B.view, o, ask % 2 ? PLACES - 1 : 0, "types of C");
            REQUIRE(C, "ask %d", ask);
            tulle_csr c = tulle_matrix_view(C);
            CHECK(ref_same(&c, &want.view, "types of C"), "ask %d", ask);
            CHECK((int)c.ptr_type == (o.c_ptr_type ? o.c_ptr_type : TULLE_I32), "ptr_type %d", (int)c.ptr_type);
            CHECK((int)c.idx_type == (o.c_idx_type ? o.c_idx_type : (int)tb.idx), "idx_type %d", (int)c.idx_type);
            CHECK(c.val_type == TULLE_F32, "value type %d", (int)c.val_type);
            tulle_matrix_free(C);
        }
        ref_free(&want);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- shapes */

static void every_shape_every_way(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < GPU_PAIRS; i++) {
        pair p = gpu_pair(i, REF_INTEGERS, f64, f64);
        ref a = ref_copy(&p.A.view, f64), b = ref_copy(&p.B.view, f64);
        tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        tulle_options o;
        const char *way;
        char name[128];
        for (int w = 0; gpu_way_of(i, w, &o, &way); w++) {
            snprintf(name, sizeof name, "%s, %s", p.name, way);
            gpu_product_is(ctx, &p.A.view, &p.B.view, &o, (i + w) % 2 ? PLACES - 1 : 0, &want, name);
        }
        CHECK(ref_untouched(&p.A.view, &a) && ref_untouched(&p.B.view, &b), "%s: inputs were written", p.name);
        ref_free(&a);
        ref_free(&b);
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static tulle_matrix *integers(tulle_ctx *ctx, const char *recipe)
{
    tulle_matrix *A = NULL;
    CHECK(tulle_gallery(ctx, recipe, &A) == TULLE_OK, "%s: %s", recipe, tulle_ctx_error(ctx));
    double *v = tulle_matrix_values(A);
    ref_rng r = {17};
    for (int64_t k = 0; A && k < tulle_matrix_view(A).nnz; k++) v[k] = (double)(1 + ref_below(&r, 8));
    return A;
}

/* A*A, or A*A^T for rectangular A, for matrices of the gallery. */
static void the_gallery(void)
{
    static const char *const recipes[] = {"poisson2d:40", "poisson3d:12", "rmat:scale=10,edges=8,seed=1",
                                          "banded:2000,lower=20,upper=20", "cage:8", "arrow:400", "blockdiag:600,block=40",
                                          "dense:90", "tall:600,cols=200,per_row=5", "wide:60,cols=2000,per_row=100",
                                          "prolongator:40", "tridiagonal:3000", "zipf:500"};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        tulle_matrix *A = integers(ctx, recipes[i]);
        tulle_csr a = tulle_matrix_view(A);
        tulle_options o;
        const char *way;
        char name[128];
        for (int w = 0; A && gpu_way_of((int)i, w, &o, &way); w++) {
            if (a.rows != a.cols) o.op_b = TULLE_TRANSPOSE;
            tulle_matrix *C = cpu_product(&a, &a, &(tulle_options){.op_b = o.op_b});
            tulle_csr want = tulle_matrix_view(C);
            snprintf(name, sizeof name, "%s, %s", recipes[i], way);
            gpu_product_is(ctx, &a, &a, &o, o.op_b ? C_THERE : (int)i % PLACES, &want, name);
            tulle_matrix_free(C);
        }
        tulle_matrix_free(A);
    }
    tulle_ctx_free(ctx);
}

/* A*A with one copy on the device for both operands. */
static void squares_of_one_matrix_there(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_power(3, 500, 500, 200, REF_INTEGERS, f64);
    tulle_matrix *want = cpu_product(&A.view, &A.view, NULL), *there = gpu_moved(ctx, &A.view, TULLE_DEVICE), *C = NULL;
    tulle_csr w = tulle_matrix_view(want), a = tulle_matrix_view(there);
    CHECK(a.place == TULLE_DEVICE && a.nnz == A.view.nnz && a.rows == 500 && a.cols == 500, "the view of the copy");
    REQUIRE(tulle_multiply(ctx, &a, &a, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_matrix_view(C);
    CHECK(ref_same(&c, &w, "A*A"), "%s", "a wrong product");
    tulle_matrix_free(C);
    tulle_matrix_free(there);
    tulle_matrix_free(want);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* C of one product is A of the next, without a copy to the host: (A*A)*A. */
static void products_of_products_stay_there(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(5, 200, 200, 3, REF_INTEGERS, f64);
    ref square = ref_product(&A.view, &A.view), cube = ref_product(&square.view, &A.view);
    tulle_matrix *a = gpu_moved(ctx, &A.view, TULLE_DEVICE), *b = NULL, *c = NULL;
    tulle_csr va = tulle_matrix_view(a);
    tulle_options o = {.c_place = TULLE_DEVICE};
    REQUIRE(tulle_multiply(ctx, &va, &va, &o, &b) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr vb = tulle_matrix_view(b);
    REQUIRE(tulle_multiply(ctx, &vb, &va, &o, &c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr vc = tulle_matrix_view(c);
    tulle_matrix *host = gpu_moved(ctx, &vc, TULLE_HOST);
    tulle_csr got = tulle_matrix_view(host);
    CHECK(ref_same(&got, &cube.view, "A*A*A"), "%s", "a wrong product");
    tulle_matrix *all[] = {a, b, c, host};
    for (int i = 0; i < 4; i++) tulle_matrix_free(all[i]);
    ref_free(&A);
    ref_free(&square);
    ref_free(&cube);
    tulle_ctx_free(ctx);
}

/* ---- far columns: keys of 5 + 27 bits end at 2^27 columns */

static void columns_up_to_the_largest_index(void)
{
    /* very many windows are cleared for each entry */
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    const struct { int64_t cols; ref_types t; } wide[] = {
        {(int64_t)1 << 27, f64}, {((int64_t)1 << 27) + 1, f64}, {((int64_t)1 << 31) - 1, f64}, {(int64_t)1 << 31, f64},
        {((int64_t)1 << 27) + 5, f64_i64}, {((int64_t)1 << 32) + 9, f64_i64}, {(int64_t)1 << 40, f64_i64},
        {((int64_t)1 << 59) + 3, f64_i64}, {INT64_MAX, f64_i64}, {INT64_MAX, {TULLE_CF32, TULLE_I32, TULLE_I64}}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        ref_types t = wide[i].t;
        ref A = ref_random(4, 60, 60, 3, REF_INTEGERS, t), B = ref_random(5, 60, wide[i].cols, 5, REF_INTEGERS, t);
        for (int64_t r = 0; r < 60; r += 3) {                   /* some in the very first and last column */
            int64_t begin = ref_ptr(&B.view, r), end = ref_ptr(&B.view, r + 1);
            if (end > begin) ref_set_col(&B, begin, 0);
            if (end > begin + 1) ref_set_col(&B, end - 1, wide[i].cols - 1);
        }
        tulle_matrix *C = cpu_product(&A.view, &B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        tulle_options o;
        const char *way;
        char name[96];
        for (int w = 0; gpu_way_of((int)i, w, &o, &way); w++) {
            snprintf(name, sizeof name, "%" PRId64 " columns, %s, %s", wide[i].cols, ref_types_name(t), way);
            gpu_product_is(ctx, &A.view, &B.view, &o, (int)i % 2 ? PLACES - 1 : 0, &want, name);
        }
        tulle_matrix_free(C);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* A row heavy enough for the largest kernels, over columns that need 64-bit keys. */
static void a_heavy_row_over_far_columns(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "8192");
    static const int64_t cols[] = {(int64_t)1 << 28, (int64_t)1 << 40};
    for (int i = 0; i < 2; i++) {
        ref A = full_row_and_singles(2, 150, 0, REF_INTEGERS, f64_i64);
        ref B = ref_random(6, 150, cols[i], 9, REF_INTEGERS, f64_i64);
        tulle_matrix *C = cpu_product(&A.view, &B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, 0, &want, "heavy and far");
        gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.accumulator = "hash"}, 0, &want, "heavy, far, hash");
        tulle_matrix_free(C);
        ref_free(&A);
        ref_free(&B);
    }
    tulle_ctx_free(ctx);
}

/* ---- every bin and every fallback: with little shared memory, small rows use the kernels for large ones */

enum { TIGHT_PAIRS = 8 };

static pair tight_pair(int i, ref_types t)
{
    const ref_kind k = REF_INTEGERS;
    switch (i) {
    case 0: return (pair){ref_random(3, 40, 30, 4, k, t), ref_random(4, 30, 50, 5, k, t), "random"};
    case 1: return (pair){ref_random(7, 50, 64, 0.7, k, t), ref_random(8, 64, 65, 0.8, k, t), "mostly empty rows"};
    case 2: return (pair){ref_arrow(65, k, t), ref_arrow(65, k, t), "arrow"};
    case 3: return (pair){ref_power(11, 150, 150, 100, k, t), ref_power(12, 150, 150, 70, k, t), "power law"};
    case 4: return (pair){full_row_and_singles(20, 150, 7, k, t), ref_random(13, 150, 900, 12, k, t), "one full row"};
    case 5: return (pair){staircase(60, 200, 60, 3, k, t), staircase(200, 500, 20, 7, k, t), "rows of every length"};
    case 6: return (pair){ref_random(14, 2, 400, 350, k, t), ref_random(15, 400, 9000, 12, k, t), "two long rows"};
    default: return (pair){ref_random(28, 700, 40, 1.2, k, t), ref_random(29, 40, 30, 1.1, k, t), "many tiny rows"};
    }
}

static void every_scratchpad_balanced_or_not(void)
{
    static const char *const shared[] = {"2048", "4096", "16384", "49152"}, *const balance[] = {"on", "off", NULL};
    for (size_t s = 0; s < sizeof shared / sizeof *shared; s++)
        for (size_t b = 0; b < sizeof balance / sizeof *balance; b++) {
            if (balance[b]) setenv("TULLE_GPU_BALANCE", balance[b], 1);
            tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[s]);
            unsetenv("TULLE_GPU_BALANCE");
            for (int n = 0; n < TIGHT_PAIRS; n++) {
                pair p = tight_pair(n, ref_types_at(s < 2 ? n % 2 : 1));        /* f32 and f64 */
                tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
                tulle_csr want = tulle_matrix_view(C);
                tulle_options o;
                const char *way;
                char name[160];
                for (int w = 0; gpu_way_of(n, w, &o, &way); w++) {
                    if (balance[b] && w) break;                 /* only for spECK */
                    snprintf(name, sizeof name, "%s, %s, shared %s, balance %s", p.name, way, shared[s],
                             balance[b] ? balance[b] : "as it decides");
                    gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &want, name);
                }
                tulle_matrix_free(C);
                pair_free(&p);
            }
            tulle_ctx_free(ctx);
        }
}

/* Complex values and 64-bit keys need the most room in a table. */
static void the_largest_entries_in_the_smallest_scratchpad(void)
{
    const ref_types t = {TULLE_CF64, TULLE_I64, TULLE_I64};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "2048");
    ref A = ref_random(41, 20, 60, 8, REF_INTEGERS, t), B = ref_random(42, 60, (int64_t)1 << 35, 9, REF_INTEGERS, t);
    tulle_matrix *C = cpu_product(&A.view, &B.view, NULL);
    tulle_csr want = tulle_matrix_view(C);
    tulle_options o;
    const char *way;
    for (int w = 0; gpu_way(w, &o, &way); w++) gpu_product_is(ctx, &A.view, &B.view, &o, 0, &want, way);
    tulle_matrix_free(C);
    ref_free(&A);
    ref_free(&B);
    tulle_ctx_free(ctx);
}

/* ---- rows with so many products that many blocks share each: alone, with short rows, in one window and in
 * many */

static void heavy_rows_are_shared(void)
{
    static const struct { int64_t rows, full, inner, cols; double each; } cases[] = {
        {1, 0, 500, 20000, 150}, {40, 17, 900, 200000, 100}, {3, 1, 3000, 90000, 25}};
    static const char *const shared[] = {NULL, "16384"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int s = 0; s < 2; s++)
            for (int kind = 0; kind < 2; kind++) {
                tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared[s]);
                ref_types t = kind ? ref_types_at(15) : f64;
                ref A = full_row_and_singles(cases[i].rows, cases[i].inner, cases[i].full, REF_INTEGERS, t);
                ref B = ref_random(31 + i, cases[i].inner, cases[i].cols, cases[i].each, REF_INTEGERS, t);
                ref want = ref_product(&A.view, &B.view);
                gpu_product_is(ctx, &A.view, &B.view, &(tulle_options){.policy = "speck"}, 0, &want.view, "heavy rows");
                ref_free(&A);
                ref_free(&B);
                ref_free(&want);
                tulle_ctx_free(ctx);
            }
}

/* ---- accumulators: those of the device are used, others are refused or replaced by an equivalent one */

static void accumulators_by_name(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(15, REF_INTEGERS, f64, f64);
    tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr want = tulle_matrix_view(C);
    for (int i = 0; tulle_accumulator_name(i); i++) {
        const char *name = tulle_accumulator_name(i);
        tulle_options o = {.accumulator = name};
        tulle_matrix *D = NULL;
        tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &D);
        bool there = tl_accumulator_on(i, TL_ON_GPU), all = strcmp(name, "hash") == 0 || strcmp(name, "dense") == 0;
        CHECK(there ? status == TULLE_OK : status == TULLE_EINVAL && !D, "%s: %s", name, tulle_status_name(status));
        if (status != TULLE_OK) CHECK(strstr(tulle_ctx_error(ctx), name), "%s: %s", name, tulle_ctx_error(ctx));
        tulle_csr d = tulle_matrix_view(D);
        if (D) CHECK(ref_same(&d, &want, name), "%s", "a wrong product");
        tulle_matrix_free(D);
        /* they accept few rows of this pair */
        if (!there || i == TL_DIRECT || i == TL_HEAP || status != TULLE_OK) continue;
        tulle_stats s;
        int64_t mine = 0, other = 0;
        tulle_ctx_stats(ctx, &s);
        for (int k = 0; k < s.shares; k++) {
            if (strcmp(s.share[k].name, name) == 0) mine += s.share[k].products;
            else if (strcmp(s.share[k].name, "direct") != 0) other += s.share[k].products;
        }
        CHECK(mine > s.products / 2 && (other == 0 || !all), "%s: %" PRId64 " of %" PRId64 ", others %" PRId64, name, mine,
              s.products, other);
    }
    tulle_options o = {.accumulator = "pile"};
    tulle_matrix *D = NULL;
    CHECK(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &D) == TULLE_EINVAL && !D, "an accumulator of that name");
    CHECK(strstr(tulle_ctx_error(ctx), "pile") != NULL, "%s", tulle_ctx_error(ctx));
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- values */

static void zeros_stay_unless_they_are_dropped(void)
{
    static const int pairs[] = {0, 3, 9, 13, 15, 19, 21, 22, 25, GPU_PAIR(2)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        ref_types t = ref_types_at((int)n % 4 + (n % 3 == 2 ? 12 : 0));
        pair p = gpu_pair(pairs[n], REF_CANCELLING, t, t);
        tulle_matrix *all = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_matrix *fewer = cpu_product(&p.A.view, &p.B.view, &(tulle_options){.drop_zeros = 1});
        tulle_csr want = tulle_matrix_view(all), less = tulle_matrix_view(fewer);
        if (p.A.view.nnz > 300) CHECK(less.nnz < want.nnz, "%s: nothing cancels", p.name);
        tulle_options o;
        const char *way;
        char name[96];
        for (int w = 0; gpu_way_of((int)n, w, &o, &way); w++) {
            if (w == 1) continue;
            snprintf(name, sizeof name, "%s, %s, %s", p.name, ref_types_name(t), way);
            o.drop_zeros = w != (int)n % 2 * 2;                 /* hash, or the choice of spECK, keeps them */
            gpu_product_is(ctx, &p.A.view, &p.B.view, &o, ((int)n + w) % PLACES, o.drop_zeros ? &less : &want, name);
        }
        tulle_matrix_free(all);
        tulle_matrix_free(fewer);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Sums of these values do not depend on their order, so all kernels must give the result of the CPU. */
static void special_values_go_the_plain_way(void)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 2, 3};
    static const int pairs[] = {8, 9, 11, 13, 15, 19, 22, GPU_PAIR(2)};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
            ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
            if (pairs[n] > 21 && (int)n % 4 != v - TULLE_F32) continue;         /* one type for the large ones */
            pair p = gpu_pair(pairs[n], REF_INTEGERS, t, t);
            ref_rng r = {7};
            for (int64_t k = 0; k < p.A.view.nnz; k++)
                ref_set_val(&p.A, k, (ref_value){special[ref_below(&r, 9)], special[ref_below(&r, 9)]});
            for (int64_t k = 0; k < p.B.view.nnz; k += 7)
                ref_set_val(&p.B, k, (ref_value){special[ref_below(&r, 9)], special[ref_below(&r, 9)]});
            tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
            tulle_csr want = tulle_matrix_view(C);
            tulle_options o;
            const char *way;
            char name[96];
            for (int w = 0; gpu_way_of((int)n + v, w, &o, &way); w++) {
                snprintf(name, sizeof name, "%s, %s, %s", p.name, ref_types_name(t), way);
                gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &want, name);
            }
            tulle_matrix_free(C);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* With random reals the last bits depend on the order of additions.  If one team computes a row of C, the
 * order is that of the CPU and the bits are equal; if several teams add to an entry, each of its n sums may
 * be rounded differently: by at most n + 2 units of the sum of magnitudes. */
static void close_values(const tulle_csr *got, const tulle_csr *want, const tulle_csr *scale, const tulle_csr *A,
                         const char *name)
{
    double unit = want->val_type == TULLE_F32 || want->val_type == TULLE_CF32 ? 0x1p-23 : 0x1p-52;
    tulle_csr g = *got, w = *want;
    g.values = w.values = NULL;
    REQUIRE(ref_same(&g, &w, name), "%s", "another pattern");
    for (int64_t i = 0; i < want->rows; i++)
        for (int64_t k = ref_ptr(want, i); k < ref_ptr(want, i + 1); k++) {
            ref_value x = ref_val(got, k), y = ref_val(want, k);
            double n = (double)(ref_ptr(A, i + 1) - ref_ptr(A, i)), allowed = (n + 2) * unit * ref_val(scale, k).re;
            REQUIRE(fabs(x.re - y.re) <= allowed && fabs(x.im - y.im) <= allowed, "%s: row %" PRId64
                    " has %.17g %.17g, the CPU %.17g %.17g, allowed %g", name, i, x.re, x.im, y.re, y.im, allowed);
        }
}

static void random_reals_are_right_to_the_last_bits(void)
{
    static const int pairs[] = {9, 13, 15, 19, 21, 22, 25, GPU_PAIR(2), GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = 0; v < 4; v++)
        for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
            ref_types t = ref_types_at(v);
            if (pairs[n] > 21 && (int)n % 4 != v) continue;     /* one type for the large ones */
            pair p = gpu_pair(pairs[n], REF_REALS, t, t);
            ref a = ref_copy(&p.A.view, f64), b = ref_copy(&p.B.view, f64);       /* magnitudes, for the scale */
            for (int64_t k = 0; k < a.view.nnz; k++) {
                ref_value x = ref_val(&p.A.view, k);
                ref_set_val(&a, k, (ref_value){fabs(x.re) + fabs(x.im), 0});
            }
            for (int64_t k = 0; k < b.view.nnz; k++) {
                ref_value x = ref_val(&p.B.view, k);
                ref_set_val(&b, k, (ref_value){fabs(x.re) + fabs(x.im), 0});
            }
            tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL), *S = cpu_product(&a.view, &b.view, NULL);
            tulle_csr want = tulle_matrix_view(C), scale = tulle_matrix_view(S);
            tulle_options o;
            const char *way;
            char name[96];
            for (int w = 0; gpu_way_of((int)n, w, &o, &way); w++) {
                snprintf(name, sizeof name, "%s, %s, %s", p.name, ref_types_name(t), way);
                tulle_matrix *D = gpu_product(ctx, &p.A.view, &p.B.view, o, 0, name);
                tulle_csr d = tulle_matrix_view(D);
                if (D) close_values(&d, &want, &scale, &p.A.view, name);
                tulle_matrix_free(D);
            }
            tulle_matrix_free(C);
            tulle_matrix_free(S);
            ref_free(&a);
            ref_free(&b);
            pair_free(&p);
        }
    tulle_ctx_free(ctx);
}

/* Short rows are always computed by one team: stencils, bands, small random matrices; on the fast path for
 * small products, and in large products, where auto sorts them in registers. */
static void short_rows_have_the_bits_of_the_cpu(void)
{
    tulle_ctx *ctx[] = {gpu_ctx(), gpu_ctx_env("TULLE_GPU_BALANCE", "on")};
    for (int v = 0; v < 4; v++) {
        ref_types t = ref_types_at(v);
        pair p[] = {{ref_band(800, 1, REF_REALS, t), ref_band(800, 1, REF_REALS, t), "tridiagonal"},
                    {ref_band(600, 2, REF_REALS, t), ref_band(600, 2, REF_REALS, t), "five diagonals"},
                    {ref_random(51, 900, 700, 2, REF_REALS, t), ref_random(52, 700, 900, 2, REF_REALS, t), "sparse"},
                    {ref_permutation(53, 400, t), ref_random(54, 400, 300, 50, REF_REALS, t), "single entries"}};
        for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
            tulle_matrix *C = cpu_product(&p[i].A.view, &p[i].B.view, NULL);
            tulle_csr want = tulle_matrix_view(C);
            for (int k = 0; k < 2; k++) {
                gpu_product_is(ctx[k], &p[i].A.view, &p[i].B.view, &(tulle_options){.policy = "speck"}, 0, &want, p[i].name);
                gpu_product_is(ctx[k], &p[i].A.view, &p[i].B.view, NULL, 0, &want, p[i].name);
            }
            tulle_matrix_free(C);
            pair_free(&p[i]);
        }
    }
    tulle_ctx_free(ctx[0]);
    tulle_ctx_free(ctx[1]);
}

/* The same product twice on a device: the pattern is the same, and integer values are. */
static void a_pattern_does_not_depend_on_luck(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(19, REF_INTEGERS, f64, f64);
    tulle_matrix *C = gpu_product(ctx, &p.A.view, &p.B.view, (tulle_options){.policy = "speck"}, 0, "first");
    tulle_csr want = tulle_matrix_view(C);
    for (int i = 0; i < (SLOW ? 5 : 20); i++)
        if (!gpu_product_is(ctx, &p.A.view, &p.B.view, &(tulle_options){.policy = "speck"}, i % PLACES, &want, "again")) break;
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- places and operands */

static void every_place(void)
{
    static const int pairs[] = {0, 3, 5, 9, 15, 19, 22};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        for (int places = 0; places < PLACES; places++)
            gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, places, &want, p.name);
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Copies to the device and back, for every type; patterns without values; from device to device. */
static void moving_changes_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < REF_TYPES; i++)
        for (int shape = 0; shape < 4; shape++) {
            ref A = shape == 0 ? ref_random(61, 90, 80, 7, REF_REALS, ref_types_at(i)) : shape == 1
                  ? ref_new(0, 5, 0, ref_types_at(i)) : shape == 2 ? ref_new(7, 0, 0, ref_types_at(i))
                  : ref_dense(1, 1, REF_REALS, ref_types_at(i));
            tulle_csr view = A.view;
            if (i % 3 == 0) view.values = NULL;
            tulle_matrix *there = gpu_moved(ctx, &view, TULLE_DEVICE);
            tulle_csr t = tulle_matrix_view(there);
            tulle_matrix *twice = gpu_moved(ctx, &t, TULLE_DEVICE);
            tulle_csr t2 = tulle_matrix_view(twice);
            tulle_matrix_free(there);
            tulle_matrix *back = gpu_moved(ctx, &t2, TULLE_HOST);
            tulle_csr b = tulle_matrix_view(back);
            CHECK(t.place == TULLE_DEVICE && t2.place == TULLE_DEVICE && b.place == TULLE_HOST, "places");
            CHECK(b.ptr_type == view.ptr_type && b.idx_type == view.idx_type && b.val_type == view.val_type, "types");
            CHECK(ref_same(&b, &view, ref_types_name(ref_types_at(i))), "shape %d", shape);
            tulle_matrix_free(twice);
            tulle_matrix_free(back);
            ref_free(&A);
        }
    tulle_ctx_free(ctx);
}

static void transposed_and_unsorted_operands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < 4; i++)
        for (int op = 0; op < 9; op++) {
            ref_types t = ref_types_at(i);
            tulle_options o = {.op_a = op % 3, .op_b = op / 3};
            ref A = o.op_a ? ref_random(21, 40, 60, 5, REF_INTEGERS, t) : ref_random(21, 60, 40, 5, REF_INTEGERS, t);
            ref B = o.op_b ? ref_random(22, 50, 40, 5, REF_INTEGERS, t) : ref_random(22, 40, 50, 5, REF_INTEGERS, t);
            tulle_matrix *C = cpu_product(&A.view, &B.view, &o);
            tulle_csr want = tulle_matrix_view(C);
            char name[64];
            snprintf(name, sizeof name, "%s op_a %d op_b %d", ref_types_name(t), o.op_a, o.op_b);
            gpu_product_is(ctx, &A.view, &B.view, &o, op % 2 ? C_THERE : 0, &want, name);
            o.sort_inputs = 1;
            ref a = ref_shuffled(&A.view, 1, op % 2), b = ref_shuffled(&B.view, 2, op % 2);
            gpu_product_is(ctx, &a.view, &b.view, &o, op % 2 ? 0 : C_THERE, &want, name);
            tulle_matrix_free(C);
            ref all[] = {A, B, a, b};
            for (int k = 0; k < 4; k++) ref_free(&all[k]);
        }
    tulle_ctx_free(ctx);
}

static void trusted_inputs_give_the_same(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(15, REF_INTEGERS, f64, f64);
    tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr want = tulle_matrix_view(C);
    for (int places = 0; places < PLACES; places++)
        gpu_product_is(ctx, &p.A.view, &p.B.view, &(tulle_options){.trust_inputs = 1}, places, &want, "trusted");
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(every_value_and_index_type), TEST(types_of_c_follow_the_options), TEST(every_shape_every_way),
          TEST(the_gallery), TEST(squares_of_one_matrix_there), TEST(products_of_products_stay_there),
          TEST(columns_up_to_the_largest_index), TEST(a_heavy_row_over_far_columns), TEST(heavy_rows_are_shared),
          TEST(every_scratchpad_balanced_or_not), TEST(the_largest_entries_in_the_smallest_scratchpad),
          TEST(accumulators_by_name), TEST(zeros_stay_unless_they_are_dropped),
          TEST(special_values_go_the_plain_way), TEST(random_reals_are_right_to_the_last_bits),
          TEST(short_rows_have_the_bits_of_the_cpu), TEST(a_pattern_does_not_depend_on_luck), TEST(every_place),
          TEST(moving_changes_nothing), TEST(transposed_and_unsorted_operands), TEST(trusted_inputs_give_the_same))
