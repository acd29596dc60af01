/* SPDX-License-Identifier: MIT
 *
 * test_gpu_tf32.c - SpMM in TF32: small integers, which are exact in TF32, bit for bit; reals against sums of
 * rounded numbers in double and against the error bound in tulle.h; rounding; infinities and NaN; when it is
 * used.
 *
 * A device without tensor cores computes the same in ordinary arithmetic if TULLE_SPMM_TF32 forces it. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "spmm_help.h"

static const ref_types f32 = {TULLE_F32, TULLE_I32, TULLE_I32};

static void force(const char *warps)
{
    setenv("TULLE_SPMM_TF32", "on", 1);
    if (warps) setenv("TULLE_SPMM_TF32_WARPS", warps, 1);
}

static void leave(void)
{
    unsetenv("TULLE_SPMM_TF32");
    unsetenv("TULLE_SPMM_TF32_WARPS");
}

/* Was the last product in TF32? */
static bool was_tf32(tulle_ctx *ctx)
{
    tulle_stats stats;
    tulle_ctx_stats(ctx, &stats);
    return strcmp(stats.policy, "auto, tf32") == 0;
}

/* ---- integers, which rounding does not change */

static void exactly(tulle_ctx *ctx, const tulle_csr *A, setting s, const char *name)
{
    s.tf32 = true;
    spmm_product(ctx, A, NULL, s, name);
    CHECK(was_tf32(ctx) == (A->nnz > 0), "%s: another kernel", name);
}

static void every_shape(void)
{
    tulle_ctx *ctx = gpu_ctx();
    static const int64_t columns[] = {1, 8, 16, 21, 32, 64};
    force(NULL);
    for (int i = 0; i < SHAPES; i++) {
        const char *name;
        ref A = spmm_shape(i, REF_INTEGERS, f32, &name);
        for (int c = 0; c < 6; c++)
            exactly(ctx, &A.view, (setting){.cols = columns[c], .alpha = one, .places = (i + c) % SPMM_PLACES, .plan = c == 1}, name);
        ref_free(&A);
    }
    leave();
    tulle_ctx_free(ctx);
}

/* Aligned or not, on the device, where rows are used in place. */
static void every_number_of_columns(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(3, 45, 60, 9, REF_INTEGERS, f32);
    force(NULL);
    for (int64_t n = 1; n <= 70; n++) {
        int64_t up = (4 - n % 4) % 4, gaps[] = {up, n % 3 ? up + 8 : 1};
        for (int g = 0; g < (n % 5 ? 1 : 2); g++)
            exactly(ctx, &A.view, (setting){.cols = n, .alpha = one, .beta = n % 2 ? zero : half, .x_gap = gaps[g], .y_gap = gaps[g],
                                            .places = SPMM_PLACES - 1}, "columns");
    }
    exactly(ctx, &A.view, (setting){.cols = 200, .alpha = one, .places = SPMM_PLACES - 1}, "many columns");
    exactly(ctx, &A.view, (setting){.cols = 64, .x_gap = 4, .alpha = one, .places = SPMM_PLACES - 1}, "a gap in X");
    exactly(ctx, &A.view, (setting){.cols = 64, .y_gap = 3, .alpha = one, .places = SPMM_PLACES - 1}, "Y not aligned");
    leave();
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void layouts_and_factors(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_blocks(9, 1, 3, REF_INTEGERS, f32);
    const ref_value factors[] = {zero, one, half};
    force(NULL);
    for (int k = 0; k < 4; k++)
        for (int a = 1; a < 3; a++)
            for (int b = 0; b < 3; b++)
                exactly(ctx, &A.view, (setting){.cols = 20, .x_order = (tulle_order)(k & 1), .y_order = (tulle_order)(k >> 1), .x_gap = k,
                                                .y_gap = 3 - k, .alpha = factors[a], .beta = factors[b], .places = k * 2}, "layouts");
    leave();
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void every_width_of_indices(void)
{
    tulle_ctx *ctx = gpu_ctx();
    force(NULL);
    for (int i = 0; i < 16; i += 4) {
        ref A = ref_power(11, 90, 80, 60, REF_INTEGERS, ref_types_at(i));
        for (int64_t n = 5; n <= 50; n *= 3) exactly(ctx, &A.view, (setting){.cols = n, .alpha = one}, ref_types_name(ref_types_at(i)));
        ref_free(&A);
    }
    leave();
    tulle_ctx_free(ctx);
}

/* Windows of no, one and many blocks for one warp and for several. */
static void several_warps(void)
{
    static const char *const warps[] = {"1", "2", "3", "8"};
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {full_row_and_singles(43, 700, 17, REF_INTEGERS, f32), staircase(60, 400, 160, 1, REF_INTEGERS, f32)};
    for (int w = 0; w < 4; w++) {
        force(warps[w]);
        for (int a = 0; a < 2; a++)
            for (int64_t n = 7; n < 70; n += 19) exactly(ctx, &As[a].view, (setting){.cols = n, .alpha = one, .places = a * 7}, warps[w]);
    }
    leave();
    for (int a = 0; a < 2; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx);
}

/* ---- reals */

static float rounded(float f)           /* to 10 bits, to nearest, ties away from zero */
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    u = (u + 0x1000u) & ~0x1fffu;
    memcpy(&f, &u, sizeof f);
    return f;
}

typedef struct product { den X, Y; } product;

static product product_of(tulle_ctx *ctx, const ref *A, int64_t n, const den *X)
{
    product p = {.X = *X, .Y = den_new(A->view.rows, n, 0, TULLE_BY_ROWS, TULLE_F32)};
    CHECK(tulle_spmm(ctx, NULL, &A->view, &p.X.view, NULL, &p.Y.view, &(tulle_spmm_options){.allow_tf32 = 1}) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    return p;
}

/* Sums are float, truncated on tensor cores: an error of 2^-23 per entry is an upper bound. */
static void reals_are_as_near_as_promised(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref As[] = {ref_random(3, 300, 200, 25, REF_REALS, f32), ref_blocks(30, 1, 4, REF_REALS, f32), ref_dense(17, 300, REF_REALS, f32)};
    double worst = 0;
    force(NULL);
    for (int a = 0; a < 3; a++)
        for (int64_t n = 5; n < 70; n += 29) {
            const tulle_csr *A = &As[a].view;
            den X = den_new(A->cols, n, 0, TULLE_BY_ROWS, TULLE_F32);
            den_fill(&X, REF_REALS, 5);
            product p = product_of(ctx, &As[a], n, &X), again = product_of(ctx, &As[a], n, &X);
            CHECK(memcmp(p.Y.memory, again.Y.memory, p.Y.bytes) == 0, "a second run gave other bits");
            for (int64_t i = 0; i < A->rows; i++)
                for (int64_t j = 0; j < n; j++) {
                    double exact = 0, tf32 = 0, size = 0, got = den_at(&p.Y.view, i, j).re;
                    int64_t entries = ref_ptr(A, i + 1) - ref_ptr(A, i);
                    for (int64_t k = ref_ptr(A, i); k < ref_ptr(A, i + 1); k++) {
                        float v = (float)ref_val(A, k).re, x = (float)den_at(&X.view, ref_col(A, k), j).re;
                        exact += (double)v * x;
                        tf32 += (double)rounded(v) * rounded(x);
                        size += fabs((double)v * x);
                    }
                    CHECK(fabs(got - tf32) <= 0x1p-23 * (double)(entries + 8) * size, "%d,%d is %.9g, %.9g with rounded numbers", (int)i,
                          (int)j, got, tf32);
                    CHECK(fabs(got - exact) <= (0x1.01p-10 + 0x1p-23 * (double)(entries + 8)) * size, "%d,%d is %.9g, not %.9g", (int)i,
                          (int)j, got, exact);
                    if (size > 0 && fabs(got - exact) / size > worst) worst = fabs(got - exact) / size;
                }
            den_free(&p.Y);
            den_free(&again.Y);
            den_free(&X);
        }
    CHECK(worst > 0x1p-16, "nothing was rounded: %g", worst);
    leave();
    for (int a = 0; a < 3; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx);
}

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* One times a number, and a number times one. */
static void how_numbers_are_rounded(void)
{
    static const struct { uint32_t given, of_a, of_x; } cases[] = {
        {0x3f800000, 0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000, 0x3f800000}, {0x3f801000, 0x3f802000, 0x3f802000},
        {0x3f803000, 0x3f804000, 0x3f804000}, {0xbf801000, 0xbf802000, 0xbf802000}, {0xbf802fff, 0xbf802000, 0xbf802000},
        {0x3fffffff, 0x40000000, 0x40000000}, {0x00801000, 0x00802000, 0x00802000},
        {0x7f7fefff, 0x7f7fe000, 0x7f7fe000}, {0x7f7fffff, 0x7f7fe000, 0x7f7fffff}, {0xff7ff000, 0xff7fe000, 0xff7ff000},
        {0x7f800000, 0x7f800000, 0x7f800000}, {0xff800000, 0xff800000, 0xff800000}};
    enum { CASES = sizeof cases / sizeof *cases };
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_new(CASES, CASES, CASES, f32);
    den X = den_new(CASES, CASES, 0, TULLE_BY_ROWS, TULLE_F32);
    force(NULL);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < CASES; i++) {
            float number = from_bits(cases[i].given);
            ref_set_col(&A, i, i);
            ref_set_ptr(&A, i + 1, i + 1);
            ref_set_val(&A, i, (ref_value){turn ? 1.0 : number, 0});
            for (int j = 0; j < CASES; j++) den_put(&X.view, i, j, (ref_value){!turn ? 1.0 : i == j ? number : 2.0, 0});
        }
        product p = product_of(ctx, &A, CASES, &X);
        for (int i = 0; i < CASES; i++) {
            float got = (float)den_at(&p.Y.view, i, i).re, want = from_bits(turn ? cases[i].of_x : cases[i].of_a);
            /* If a large number overflows, only entries are multiplied, with X unrounded; or A was rounded
             * to the largest. */
            if (turn && (got == from_bits(cases[i].given) || got == from_bits(cases[i].of_a))) continue;
            CHECK(got == want, "%s: %a became %a, not %a", turn ? "X" : "A", (double)from_bits(cases[i].given), (double)got, (double)want);
        }
        den_free(&p.Y);
    }
    leave();
    den_free(&X);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* Each number of X in a product of its own, so that no other number in its block causes the exact
 * fallback. */
static void how_x_is_rounded(void)
{
    static const struct { uint32_t given, want; } cases[] = {
        {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f802000}, {0xbf801000, 0xbf802000}, {0xbf803001, 0xbf804000}, {0x3fffffff, 0x40000000},
        {0x7f7fefff, 0x7f7fe000}, {0x7f7fffff, 0x7f7fffff}, {0xff800000, 0xff800000}};
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_dense(1, 1, REF_INTEGERS, f32);
    den X = den_new(1, 1, 0, TULLE_BY_ROWS, TULLE_F32);
    ref_set_val(&A, 0, one);
    force(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        den_put(&X.view, 0, 0, (ref_value){from_bits(cases[i].given), 0});
        product p = product_of(ctx, &A, 1, &X);
        float got = (float)den_at(&p.Y.view, 0, 0).re;
        bool largest = cases[i].given == 0x7f7fffff && got == from_bits(0x7f7fe000);    /* also allowed */
        CHECK(got == from_bits(cases[i].want) || largest, "%a became %a, not %a", (double)from_bits(cases[i].given), (double)got,
              (double)from_bits(cases[i].want));
        den_free(&p.Y);
    }
    leave();
    den_free(&X);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- infinities and NaN */

static bool alike(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;
}

/* Infinities and NaN in X and in A, where explicit zeros are entries, too: a row depends only on its own
 * entries. */
static void not_finite(void)
{
    static const char *const warps[] = {"1", "4"};
    tulle_ctx *ctx = gpu_ctx();
    ref_rng r = {77};
    for (int turn = 0; turn < 12; turn++) {
        ref A = turn % 3 == 2 ? full_row_and_singles(30, 90, 11, REF_INTEGERS, f32) : ref_random((uint64_t)turn, 70, 90, 7, REF_INTEGERS, f32);
        int64_t n = (int64_t[]){1, 9, 32, 70}[turn % 4];
        den X = den_new(90, n, 0, TULLE_BY_ROWS, TULLE_F32), want = den_new(A.view.rows, n, 0, TULLE_BY_ROWS, TULLE_F32);
        den_fill(&X, REF_INTEGERS, 6);
        const double odd[] = {INFINITY, -INFINITY, NAN, from_bits(0x7f800001)};
        for (int k = 0; k < 6; k++) {
            if (turn % 2 == 0 || k < 2)
                den_put(&X.view, ref_below(&r, 90), ref_below(&r, n), (ref_value){odd[ref_below(&r, 3)], 0});
            if (turn > 5) ref_set_val(&A, ref_below(&r, A.view.nnz), (ref_value){odd[ref_below(&r, 3)], 0});
            ref_set_val(&A, ref_below(&r, A.view.nnz), zero);
        }
        spmm_plain(&A.view, &X.view, one, zero, &want.view, &want.view);
        force(warps[turn / 2 % 2]);
        product p = product_of(ctx, &A, n, &X);
        leave();
        for (int64_t i = 0; i < A.view.rows; i++)
            for (int64_t j = 0; j < n; j++)
                CHECK(alike(den_at(&p.Y.view, i, j).re, den_at(&want.view, i, j).re), "turn %d, (%d,%d): %g, not %g", turn, (int)i, (int)j,
                      den_at(&p.Y.view, i, j).re, den_at(&want.view, i, j).re);
        den_free(&p.Y);
        den_free(&X);
        den_free(&want);
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* NaN whose mantissa bits are all among those that are rounded away. */
static void quiet_bits(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_dense(2, 1, REF_INTEGERS, f32);
    den X = den_new(1, 3, 0, TULLE_BY_ROWS, TULLE_F32);
    den_fill(&X, REF_INTEGERS, 6);
    ((uint32_t *)A.values)[1] = 0x7f800001;
    force(NULL);
    product p = product_of(ctx, &A, 3, &X);
    leave();
    for (int j = 0; j < 3; j++) {
        CHECK(isfinite(den_at(&p.Y.view, 0, j).re), "%g", den_at(&p.Y.view, 0, j).re);
        CHECK(isnan(den_at(&p.Y.view, 1, j).re), "%g", den_at(&p.Y.view, 1, j).re);
    }
    den_free(&p.Y);
    den_free(&X);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- when it is used */

static char said[8192];

static void listen(void *user, const char *line)
{
    (void)user;
    if (strlen(said) + strlen(line) + 2 < sizeof said) strcat(strcat(said, line), "\n");
}

static void try_it(tulle_ctx *ctx, const ref *A, int64_t n, tulle_spmm_options o, bool wanted, const char *sentence)
{
    den X = den_new(A->view.cols, n, 0, TULLE_BY_ROWS, A->view.val_type), Y = den_new(A->view.rows, n, 0, TULLE_BY_ROWS, A->view.val_type);
    den_fill(&X, REF_INTEGERS, 5);
    said[0] = 0;
    tulle_ctx_set_trace(ctx, listen, NULL);
    o.allow_tf32 = 1;
    CHECK(tulle_spmm(ctx, NULL, &A->view, &X.view, NULL, &Y.view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_trace(ctx, NULL, NULL);
    CHECK(was_tf32(ctx) == wanted, "%s", said);
    CHECK(strstr(said, sentence), "\"%s\" is not in: %s", sentence, said);
    CHECK(!strstr(said, "TF32 for ") == !wanted, "%s", said);
    den_free(&X);
    den_free(&Y);
}

static void where_it_is_worth_it(void)
{
    tulle_ctx *ctx = gpu_ctx();
    bool cuda = strncmp(tulle_ctx_device(ctx), "cuda", 4) == 0;
    ref full = ref_dense(256, 256, REF_INTEGERS, f32), apart = ref_permutation(7, 600, f32), wide = ref_dense(256, 256, REF_INTEGERS, f64);
    ref mixed = ref_random(9, 2000, 2000, 40, REF_INTEGERS, f32);
    const char *none = "no TF32: ";
    try_it(ctx, &full, 64, (tulle_spmm_options){0}, cuda, cuda ? "TF32 for 64 columns" : none);
    try_it(ctx, &apart, 64, (tulle_spmm_options){0}, false, cuda ? "8 rows share too little: 1.00 entries" : none);
    try_it(ctx, &mixed, 8, (tulle_spmm_options){0}, false, none);
    try_it(ctx, &wide, 128, (tulle_spmm_options){0}, false, "");
    try_it(ctx, &full, 128, (tulle_spmm_options){.policy = "ellr"}, false, "ELLPACK-R");
    force(NULL);
    try_it(ctx, &apart, 8, (tulle_spmm_options){0}, true, "TF32 for 8 columns");
    try_it(ctx, &full, 8, (tulle_spmm_options){.memory_limit = 1 << 17}, false, "are allowed");
    try_it(ctx, &wide, 8, (tulle_spmm_options){0}, false, "");
    setenv("TULLE_SPMM_TF32", "off", 1);
    try_it(ctx, &full, 128, (tulle_spmm_options){0}, false, none);
    leave();
    ref_free(&full);
    ref_free(&apart);
    ref_free(&wide);
    ref_free(&mixed);
    tulle_ctx_free(ctx);
}

/* Results of other types, and of float without the option, do not change in any bit. */
static void only_float_and_only_when_allowed(void)
{
    tulle_ctx *ctx = gpu_ctx();
    force(NULL);
    for (int i = 0; i < 4; i++) {
        ref A = ref_random(3, 90, 80, 9, REF_REALS, ref_types_at(i));
        tulle_type t = A.view.val_type;
        den X = den_new(80, 13, 0, TULLE_BY_ROWS, t), Y[2] = {den_new(90, 13, 0, TULLE_BY_ROWS, t), den_new(90, 13, 0, TULLE_BY_ROWS, t)};
        den_fill(&X, REF_REALS, 5);
        for (int k = 0; k < 2; k++) {
            tulle_spmm_options o = {.allow_tf32 = k};
            CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y[k].view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            CHECK(was_tf32(ctx) == (k && t == TULLE_F32), "type %d", (int)t);
        }
        CHECK((memcmp(Y[0].memory, Y[1].memory, Y[0].bytes) == 0) == (t != TULLE_F32), "type %d", (int)t);
        den_free(&X);
        den_free(&Y[0]);
        den_free(&Y[1]);
        ref_free(&A);
    }
    leave();
    tulle_ctx_free(ctx);
}

/* If allocation fails, CSR is used, and nothing leaks. */
static void no_memory_for_blocks(void)
{
    ref A = ref_random(3, 90, 80, 9, REF_INTEGERS, f32);
    force(NULL);
    for (int n = 1; n < 12; n++) {
        char text[8];
        snprintf(text, sizeof text, "%d", n);
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_FAIL", text);
        den X = den_new(80, 9, 0, TULLE_BY_ROWS, TULLE_F32), Y = den_new(90, 9, 0, TULLE_BY_ROWS, TULLE_F32);
        den_fill(&X, REF_INTEGERS, 5);
        tulle_status status = tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &(tulle_spmm_options){.allow_tf32 = 1});
        CHECK(status == TULLE_OK || status == TULLE_ENOMEM, "request %d: %s", n, tulle_ctx_error(ctx));
        den_free(&X);
        den_free(&Y);
        tulle_ctx_free(ctx);
    }
    leave();
    ref_free(&A);
}

TEST_MAIN(TEST(every_shape), TEST(every_number_of_columns), TEST(layouts_and_factors), TEST(every_width_of_indices), TEST(several_warps),
          TEST(reals_are_as_near_as_promised), TEST(how_numbers_are_rounded), TEST(how_x_is_rounded), TEST(not_finite), TEST(quiet_bits),
          TEST(where_it_is_worth_it), TEST(only_float_and_only_when_allowed), TEST(no_memory_for_blocks))
