/* SPDX-License-Identifier: MIT
 *
 * test_isa.c - TULLE_ISA selects the kernels that are used. ctest runs this and all comparisons with the
 * reference once for each instruction set (tests/isa.sh); without the selection they would all test the same
 * kernels. */
#include "cpu/cpu.h"
#include "ways.h"

/* The instruction set of the environment; without it, the best one that is available. */
static const char *wanted(void)
{
    const char *isa = getenv("TULLE_ISA");
    return isa ? isa : tl_cpu_isa();
}

static void kernels_are_those_wanted(void)
{
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (int i = TULLE_I32; i <= TULLE_I64; i++) {
            tl_kernels k = tl_kernels_for((tulle_type)v, (tulle_index)i);
            CHECK(strcmp(k.isa, wanted()) == 0, "type %d, index %d: kernels of %s, not of %s", v, i, k.isa, wanted());
        }
    CHECK(strcmp(tl_cpu_isa(), wanted()) == 0, "kernels of %s, not of %s", tl_cpu_isa(), wanted());
}

static void products_tell_the_instruction_set(void)
{
    static const int32_t ptr[] = {0, 1, 2}, col[] = {1, 0};
    static const double val[] = {2, 3}, x[] = {5, 7};
    double y[2];
    const tulle_csr A = tulle_csr_f64_i32(2, 2, ptr, col, val);
    const tulle_dense X = tulle_dense_make(2, 1, 1, TULLE_BY_ROWS, (void *)(uintptr_t)x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(2, 1, 1, TULLE_BY_ROWS, y, TULLE_F64);
    tulle_ctx *ctx = ctx_with(1);
    tulle_matrix *C = NULL;
    tulle_stats stats;

    CHECK(tulle_multiply(ctx, &A, &A, NULL, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &stats);
    CHECK(strcmp(stats.isa, wanted()) == 0, "A*A by %s, not by %s", stats.isa, wanted());
    CHECK(tulle_spmm(ctx, NULL, &A, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_stats(ctx, &stats);
    CHECK(strcmp(stats.isa, wanted()) == 0, "A*X by %s, not by %s", stats.isa, wanted());
    CHECK(y[0] == 14 && y[1] == 15, "%g %g", y[0], y[1]);
    tulle_matrix_free(C);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(kernels_are_those_wanted), TEST(products_tell_the_instruction_set))
