/* SPDX-License-Identifier: MIT
 *
 * test_gpu_spmm.c - tulle_spmm on a device against a plain product and the CPU engine: every type, index,
 * place, order and leading dimension, transposes, factors, 0 to 300 columns, rows of every kind, every T and
 * Lc of ELLPACK-R; workspace down to one column; infinities and NaN; memory that must not be read or
 * written; reproducible bits; invalid arguments.
 *
 * Whole numbers must come out bit for bit, others within rounding: a device adds up in an order of its own.
 * A GPU runs all of it, PoCL a selection. */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "spmm_help.h"
#include "tulle_cuda.h"
#include "tulle_opencl.h"

static const char *const policies[] = {"auto", "ellr"};
enum { POLICIES = 2 };

/* ---- every value and index type, in every place and order, transposed and not */

static void every_type_place_and_order(void)
{
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int i = 0; i < REF_TYPES; i++) {
        ref_types t = ref_types_at(i);
        if (skips_types(i)) continue;
        for (int s = 0; s < SHAPES; s++) {
            const char *name;
            ref A = spmm_shape(s, REF_INTEGERS, t, &name), copy = ref_copy(&A.view, t);
            for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++) {
                ref T = op ? ref_transpose(&A.view, (tulle_op)op) : (ref){0};
                for (int o = 0; o < 4 * POLICIES; o++, turn++) {
                    if (few() && turn % 3 != 0) continue;
                    setting c = {.op = (tulle_op)op, .x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1 & 1),
                                 .x_gap = o % 4, .y_gap = 3 - o % 4, .cols = 1 + (5 * i + 3 * s + 7 * o + op) % 23, .alpha = one,
                                 .plan = turn % 2, .policy = policies[o / 4], .places = (turn / 2 + turn / 8) % SPMM_PLACES};
                    char text[64];
                    snprintf(text, sizeof text, "%s %s", name, ref_types_name(t));
                    spmm_product(ctx, &A.view, op ? &T : NULL, c, text);
                }
                if (op) ref_free(&T);
            }
            CHECK(ref_untouched(&A.view, &copy), "%s: A was written", name);
            ref_free(&A);
            ref_free(&copy);
        }
    }
    tulle_ctx_free(ctx);
}

static void nothing_times_something(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int p = 0; p < POLICIES; p++) spmm_of_nothing(ctx, policies[p], SPMM_PLACES, few() ? 5 : 1);
    setenv("TULLE_SPMM_BAND", "3", 1);
    spmm_of_nothing(ctx, NULL, SPMM_PLACES, few() ? 5 : 1);
    unsetenv("TULLE_SPMM_BAND");
    tulle_ctx_free(ctx);
}

static void zero_to_three_hundred_columns(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32 && v != TULLE_CF64) continue;
        ref A = ref_random(3, 45, 40, 5, REF_REALS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
        for (int64_t cols = 0; cols <= 300; cols += cols < 40 ? 1 : 26)
            for (int p = 0; p < POLICIES; p++)
                for (int o = 0; o < 4; o++) {
                    if (few() && o != cols % 4) continue;
                    setting s = {.x_order = (tulle_order)(o & 1), .y_order = (tulle_order)(o >> 1), .x_gap = cols % 3,
                                 .y_gap = (cols + 1) % 3, .cols = cols, .alpha = o == 1 ? half : one, .beta = o == 2 ? half : zero,
                                 .kind = REF_REALS, .close = true, .policy = policies[p], .places = (int)(cols + o) % SPMM_PLACES};
                    spmm_product(ctx, &A.view, NULL, s, "columns");
                }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

/* Rows aligned for vector loads (without gaps) and not aligned, for the numbers of columns that kernels are
 * made for. */
static void rows_that_are_aligned_and_not(void)
{
    static const int64_t columns[] = {2, 4, 8, 16, 32, 64, 128, 256};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        ref A = ref_power(5, 90, 70, 40, REF_INTEGERS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
        for (int c = 0; c < 8; c++)
            for (int gap = 0; gap <= 8; gap += few() && v % 2 ? 8 : 1)
                for (int p = 0; p < POLICIES; p++) {
                    if (few() && (c + gap + v) % 3 != 0) continue;
                    setting s = {.x_gap = gap, .y_gap = (gap + c) % 5, .cols = columns[c], .alpha = one,
                                 .beta = gap % 2 ? one : zero, .policy = policies[p], .places = SPMM_PLACES - 1};
                    spmm_product(ctx, &A.view, NULL, s, "aligned");
                }
        ref_free(&A);
    }
    tulle_ctx_free(ctx);
}

static void every_alpha_and_beta(void)
{
    static const ref_value real[] = {{0, 0}, {1, 0}, {-1, 0}, {-1.5, 0}, {3, 0}};
    static const ref_value both[] = {{0, 0}, {1, 0}, {-1.5, 0}, {0, 1}, {0.75, -2}};
    static const int64_t columns[] = {1, 2, 3, 6, 11, 33};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32 && v != TULLE_CF64) continue;
        const ref_value *f = v < TULLE_CF32 ? real : both;
        ref A = ref_random(13, 37, 29, 4, REF_REALS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
        ref T = ref_transpose(&A.view, TULLE_ADJOINT);
        for (int a = 0; a < 5; a++)
            for (int b = 0; b < 5; b++)
                for (int c = 0; c < 6; c++)
                    for (int p = 0; p < POLICIES; p++, turn++) {
                        if (few() && (a + b + c + p) % 3 != 0) continue;
                        int o = turn % 8;
                        setting s = {.op = o & 4 ? TULLE_ADJOINT : TULLE_KEEP, .x_order = (tulle_order)(o & 1),
                                     .y_order = (tulle_order)(o >> 1 & 1), .x_gap = 1, .y_gap = o % 3, .cols = columns[c],
                                     .alpha = f[a], .beta = f[b], .kind = REF_REALS, .close = true, .plan = c % 2,
                                     .policy = policies[p], .places = (turn / 3) % SPMM_PLACES};
                        spmm_product(ctx, &A.view, o & 4 ? &T : NULL, s, "factors");
                    }
        ref_free(&A);
        ref_free(&T);
    }
    tulle_ctx_free(ctx);
}

/* ---- rows of every kind */

/* Empty and short rows around one of `length` entries. */
static ref one_long_row(int64_t length, ref_kind kind, ref_types t)
{
    const int64_t lengths[] = {0, 3, 1, length, 0, 0, 2, 40, 300, 1, 0};
    enum { ROWS = sizeof lengths / sizeof *lengths };
    int64_t nnz = 0, k = 0;
    for (int i = 0; i < ROWS; i++) nnz += lengths[i];
    ref A = ref_new(ROWS, length + 100, nnz, t);
    for (int i = 0; i < ROWS; i++) {
        for (int64_t c = 0; c < lengths[i]; c++) ref_set_col(&A, k++, c + 7 * i);
        ref_set_ptr(&A, i + 1, k);
    }
    ref_fill(&A, kind, 21);
    return A;
}

static void one_very_long_row(void)
{
    static const int64_t columns[] = {1, 2, 8, 33, 130};
    tulle_ctx *ctx = gpu_ctx();
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32) continue;
        ref A = one_long_row(100000, REF_INTEGERS, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
        ref T = ref_transpose(&A.view, TULLE_TRANSPOSE);
        for (int c = 0; c < (few() ? 3 : 5); c++)
            for (int p = 0; p < POLICIES; p++) {
                setting s = {.cols = columns[c], .alpha = one, .beta = c == 1 ? half : zero, .policy = policies[p],
                             .x_order = (tulle_order)(c & 1), .y_gap = c, .places = (c + p) % SPMM_PLACES};
                spmm_product(ctx, &A.view, NULL, s, "a long row");
                s.op = TULLE_TRANSPOSE;
                spmm_product(ctx, &T.view, &A, s, "a long column");
            }
        ref_free(&A);
        ref_free(&T);
    }
    tulle_ctx_free(ctx);
}

/* Matrices of the gallery: the same bits as the CPU engine. */
static void whole_numbers_give_the_cpus_bits(void)
{
    static const char *const recipes[] = {"rmat:scale=11,edges=8,seed=1", "er:3000,per_row=2", "poisson2d:50", "tridiagonal:4000",
                                          "wide:60,cols=3000,per_row=90", "tall:5000,cols=300", "zipf:2000", "dense:150",
                                          "blockdiag:900,block=17"};
    static const int64_t columns[] = {1, 8, 32, 50, 128};
    tulle_ctx *ctx = gpu_ctx(), *cpu = ctx_with(2);
    int turn = 0;
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
        for (int v = TULLE_F32; v <= TULLE_F64; v++)
            for (int c = 0; c < 5; c++, turn++) {
                tulle_matrix *M = NULL;
                if (few() && (turn % 4 != 0 || c == 4)) continue;
                REQUIRE(tulle_gallery(cpu, recipes[r], &M) == TULLE_OK, "%s", tulle_ctx_error(cpu));
                tulle_csr made = tulle_matrix_view(M);
                ref A = ref_copy(&made, (ref_types){(tulle_type)v, TULLE_I32, TULLE_I32});
                ref_fill(&A, REF_INTEGERS, 5);
                den X = den_new(A.view.cols, columns[c], 0, TULLE_BY_ROWS, (tulle_type)v);
                den Y = den_new(A.view.rows, columns[c], 0, TULLE_BY_ROWS, (tulle_type)v);
                den want = den_new(A.view.rows, columns[c], 0, TULLE_BY_ROWS, (tulle_type)v);
                den_fill(&X, REF_INTEGERS, 9);
                CHECK(tulle_spmm(cpu, NULL, &A.view, &X.view, NULL, &want.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(cpu));
                for (int p = 0; p < POLICIES; p++) {
                    tulle_spmm_options o = {.policy = policies[p]};
                    memset(Y.memory, 0xff, Y.bytes);
                    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o) == TULLE_OK, "%s: %s", recipes[r], tulle_ctx_error(ctx));
                    CHECK(den_same(&Y.view, &want.view, recipes[r]), "%s, %d columns", policies[p], (int)columns[c]);
                }
                den_free(&X), den_free(&Y), den_free(&want);
                ref_free(&A);
                tulle_matrix_free(M);
            }
    tulle_ctx_free(cpu);
    tulle_ctx_free(ctx);
}

/* All distributions of threads over columns and entries, strips per thread, and block sizes.  If the number
 * of columns is no multiple of those of a team, one strip per thread is used. */
static void every_shape_of_csr(void)
{
    static const int64_t columns[] = {4, 7, 16, 32, 64, 256};
    static const int blocks[] = {32, 64, 128, 256};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32) continue;
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        ref As[] = {staircase(90, 900, 800, 1, REF_INTEGERS, t), ref_band(97, 3, REF_INTEGERS, t)};
        for (int c = 0; c <= 5; c++)
            for (int k = 0; c + k <= 5; k++)
                /* one or two strips; direct, staged, eight entries at once */
                for (int w = 0; w < 6; w++, turn++) {
                    char shape[64];
                    if (few() && turn % 5 != 0) continue;
                    snprintf(shape, sizeof shape, "%d,%d,%d,%d,%d,%d", c, k, 1 + w % 2, blocks[turn / 4 % 4], 1 + w / 2, 1 << turn % 4);
                    setenv("TULLE_SPMM_SHAPE", shape, 1);
                    setting s = {.cols = columns[turn / 3 % 6], .alpha = turn % 7 < 3 ? half : one,
                                 .beta = turn % 3 ? zero : half, .plan = turn % 2, .places = SPMM_PLACES - 1, .x_gap = turn % 5 == 1};
                    for (int a = 0; a < 2; a++) spmm_product(ctx, &As[a].view, NULL, s, shape);
                }
        unsetenv("TULLE_SPMM_SHAPE");
        for (int a = 0; a < 2; a++) ref_free(&As[a]);
    }
    tulle_ctx_free(ctx);
}

/* ---- ELLPACK-R */

typedef struct lines { const char *part; int seen; } lines;

static void count_lines(void *user, const char *line)
{
    lines *l = user;
    l->seen += strstr(line, l->part) != NULL;
}

static void every_team_and_tile_of_ellr(void)
{
    static const int64_t columns[] = {1, 3, 8, 17, 33, 70};
    static const int blocks[] = {0, 64, 128, 256};
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    lines in_ellr = {.part = "threads a row"};
    for (int v = TULLE_F32; v <= TULLE_CF64; v++) {
        if (few() && v != TULLE_F32) continue;
        ref_types t = {(tulle_type)v, TULLE_I32, TULLE_I32};
        ref As[] = {ref_power(11, 200, 160, 80, REF_INTEGERS, t), ref_band(97, 3, REF_INTEGERS, t),
                    ref_random(7, 150, 64, 0.7, REF_INTEGERS, t), staircase(70, 200, 130, 1, REF_INTEGERS, t)};
        for (int threads = 1; threads <= 32; threads *= 2)
            for (int tile = 1; tile <= 32; tile *= 2)
                for (int a = 0; a < 4; a++, turn++) {
                    if (few() && a != turn / 4 % 4) continue;
                    setting s = {.cols = columns[turn % 6], .alpha = turn % 7 < 3 ? half : one,
                                 .beta = turn % 5 ? zero : half, .policy = "ellr", .plan = a % 2,
                                 .ellr_threads = threads, .ellr_columns = tile, .ellr_block = blocks[turn / 2 % 4],
                                 .places = turn % 3 ? SPMM_PLACES - 1 : 0, .x_gap = turn % 2 ? 0 : 1};
                    tulle_ctx_set_trace(ctx, count_lines, &in_ellr);
                    int before = in_ellr.seen;
                    spmm_product(ctx, &As[a].view, NULL, s, "ellr");
                    CHECK(in_ellr.seen > before, "matrix %d, %d threads a row: not in ELLPACK-R", a, threads);
                    tulle_ctx_set_trace(ctx, NULL, NULL);
                }
        for (int a = 0; a < 4; a++) ref_free(&As[a]);
    }
    tulle_ctx_free(ctx);
}

/* 5000 rows padded to the longest would take 2000 times the memory of A. */
static void what_ellr_would_blow_up_stays_in_csr(void)
{
    tulle_ctx *ctx = gpu_ctx();
    lines refused = {.part = "not in ELLPACK-R"};
    ref A = full_row_and_singles(5000, 6000, 17, REF_INTEGERS, f64);
    setting s = {.cols = 5, .alpha = one, .policy = "ellr", .plan = true};
    tulle_ctx_set_trace(ctx, count_lines, &refused);
    spmm_product(ctx, &A.view, NULL, s, "one full row");
    CHECK(refused.seen > 0, "%s", "no line says that A stays in CSR");
    tulle_ctx_set_trace(ctx, NULL, NULL);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- plans */

static void a_plan_runs_many_times(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_power(4, 160, 150, 90, REF_INTEGERS, f64), T = ref_transpose(&A.view, TULLE_TRANSPOSE);
    for (int p = 0; p < POLICIES; p++)
        for (int op = TULLE_KEEP; op <= TULLE_TRANSPOSE; op++) {
            tulle_spmm_plan *plan = NULL;
            tulle_spmm_options o = {.policy = policies[p], .op_a = op};
            const tulle_csr *opA = op ? &T.view : &A.view;
            REQUIRE(tulle_spmm_plan_create(ctx, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            for (int round = 0; round < 6; round++) {
                int64_t cols = 1 + 13 * ((round + 2) % 4);
                den X = den_new(opA->cols, cols, round % 2, (tulle_order)(round & 1), TULLE_F64);
                den Y = den_new(opA->rows, cols, 0, (tulle_order)(round >> 1 & 1), TULLE_F64);
                den want = den_new(opA->rows, cols, 0, TULLE_BY_ROWS, TULLE_F64);
                double two = 2;
                den_fill(&X, REF_INTEGERS, 3 + (uint64_t)round);
                den_fill(&Y, REF_INTEGERS, 4);
                spmm_plain(opA, &X.view, one, (ref_value){2, 0}, &Y.view, &want.view);
                den_there x = {.view = X.view};
                if (round % 3 == 1) x = den_move(ctx, &X);
                CHECK(tulle_spmm_plan_run(plan, NULL, &x.view, &two, &Y.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                CHECK(den_same(&Y.view, &want.view, "plan"), "%s, round %d", policies[p], round);
                den_leave(&x);
                den_free(&X), den_free(&Y), den_free(&want);
            }
            tulle_spmm_plan_free(plan);
        }
    ref_free(&A);
    ref_free(&T);
    tulle_ctx_free(ctx);
}

static void write_there(tulle_ctx *ctx, void *to, const void *from, uint64_t bytes)
{
    const tl_dmem mem = {(uint64_t)(uintptr_t)to, 0};
    const tl_driver *d = ctx->gpu->driver;
    if (bytes) CHECK(d->upload(&ctx->base, ctx->gpu->device, mem, from, bytes) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(d->wait(&ctx->base, ctx->gpu->device) == TULLE_OK, "%s", tulle_ctx_error(ctx));
}

/* Every operation, place, policy and type; in bands, too, and in TF32. */
static void a_plan_has_values_of_its_own(void)
{
    tulle_ctx *ctx = gpu_ctx();
    int turn = 0;
    setenv("TULLE_SPMM_TF32", "on", 1);
    for (int i = 0; i < REF_TYPES; i++)
        for (int s = 0; s < SHAPES && !skips_types(i); s++)
            for (int op = TULLE_KEEP; op <= TULLE_ADJOINT; op++)
                for (int way = 0; way < 10; way++, turn++) {
                    const char *name;
                    tulle_spmm_options o = {.op_a = op, .policy = policies[way & 1], .allow_tf32 = way >= 8};
                    if (few() && turn % 7 != 0 && way < 8) continue;
                    if (way >= 8 && ref_types_at(i).val != TULLE_F32) continue;
                    o.policy = way >= 8 ? NULL : o.policy;
                    ref A = spmm_shape(s, REF_INTEGERS, ref_types_at(i), &name);
                    if (way & 4) setenv("TULLE_SPMM_BAND", "11", 1);
                    spmm_values(ctx, &A, o, (way < 8 ? way & 2 : way & 1) ? write_there : spmm_write_here, name);
                    unsetenv("TULLE_SPMM_BAND");
                    ref_free(&A);
                }
    unsetenv("TULLE_SPMM_TF32");
    tulle_ctx_free(ctx);
}

/* With any real numbers, a second run, a second plan and a second context give the same bits. */
static void the_same_bits_each_time(void)
{
    ref As[] = {ref_power(5, 3000, 900, 700, REF_REALS, f64), one_long_row(30000, REF_REALS, f64),
                ref_random(6, 2000, 500, 12, REF_REALS, f64)};
    static const int64_t columns[] = {1, 8, 40};
    tulle_ctx *ctx[] = {gpu_ctx(), gpu_ctx()};
    for (int a = 0; a < 3; a++)
        for (int p = 0; p < POLICIES; p++)
            for (int c = 0; c < 3; c++) {
                const tulle_csr *A = &As[a].view;
                den X = den_new(A->cols, columns[c], 0, TULLE_BY_ROWS, TULLE_F64);
                den first = den_new(A->rows, columns[c], 0, TULLE_BY_ROWS, TULLE_F64);
                den_fill(&X, REF_REALS, 9);
                for (int turn = 0; turn < 3; turn++) {
                    tulle_spmm_plan *plan = NULL;
                    tulle_spmm_options o = {.policy = policies[p]};
                    tulle_ctx *here = ctx[turn / 2];
                    REQUIRE(tulle_spmm_plan_create(here, A, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(here));
                    for (int again = 0; again < 2; again++) {
                        den Y = den_new(A->rows, columns[c], 0, TULLE_BY_ROWS, TULLE_F64);
                        CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &Y.view) == TULLE_OK, "%s",
                              tulle_ctx_error(here));
                        if (turn + again == 0) memcpy(first.memory, Y.memory, Y.bytes);
                        CHECK(memcmp(first.memory, Y.memory, Y.bytes) == 0, "matrix %d, %s, %d columns, plan %d, run %d: "
                              "other bits", a, policies[p], (int)columns[c], turn, again);
                        den_free(&Y);
                    }
                    tulle_spmm_plan_free(plan);
                }
                den_free(&X);
                den_free(&first);
            }
    for (int a = 0; a < 3; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx[0]);
    tulle_ctx_free(ctx[1]);
}

/* In a queue of the caller, with everything on the device, there are no waits: later work in the queue uses
 * the results. */
static void in_a_queue_of_the_caller(void)
{
    tulle_ctx *ctx = gpu_ctx();
    bool cuda = tulle_cuda_context(ctx) != NULL;
    tulle_status set = cuda ? tulle_cuda_set_stream(ctx, tulle_cuda_stream(ctx))
                            : tulle_opencl_set_queue(ctx, tulle_opencl_queue(ctx));
    REQUIRE(set == TULLE_OK, "%s", tulle_ctx_error(ctx));
    ref As[] = {ref_power(4, 300, 300, 200, REF_INTEGERS, f64), ref_band(300, 2, REF_INTEGERS, f64)};
    for (int a = 0; a < 2; a++)
        for (int p = 0; p < POLICIES; p++) {
            tulle_spmm_plan *plan = NULL;
            tulle_spmm_options o = {.policy = policies[p]};
            den X = den_new(300, 9, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(300, 9, 0, TULLE_BY_ROWS, TULLE_F64);
            den Z = den_new(300, 9, 0, TULLE_BY_ROWS, TULLE_F64), between = den_new(300, 9, 0, TULLE_BY_ROWS, TULLE_F64);
            den want = den_new(300, 9, 0, TULLE_BY_ROWS, TULLE_F64);
            den_fill(&X, REF_INTEGERS, 3);
            spmm_plain(&As[a].view, &X.view, one, zero, &Y.view, &between.view);
            spmm_plain(&As[a].view, &between.view, one, zero, &Z.view, &want.view);
            den_there x = den_move(ctx, &X), y = den_move(ctx, &Y), z = den_move(ctx, &Z);
            tulle_matrix *there = gpu_moved(ctx, &As[a].view, TULLE_DEVICE);
            tulle_csr A = tulle_matrix_view(there);
            REQUIRE(tulle_spmm_plan_create(ctx, &A, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            for (int i = 0; i < 3; i++) {                       /* Z = A*(A*X) */
                CHECK(tulle_spmm_plan_run(plan, NULL, &x.view, NULL, &y.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                CHECK(tulle_spmm_plan_run(plan, NULL, &y.view, NULL, &z.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            }
            den_fetch(ctx, &Z, &z);
            CHECK(den_same(&Z.view, &want.view, "A*(A*X)"), "matrix %d, %s", a, policies[p]);
            tulle_spmm_plan_free(plan);
            tulle_matrix_free(there);
            den_leave(&x), den_leave(&y), den_leave(&z);
            den_free(&X), den_free(&Y), den_free(&Z), den_free(&between), den_free(&want);
        }
    for (int a = 0; a < 2; a++) ref_free(&As[a]);
    tulle_ctx_free(ctx);
}

/* ---- dense matrices between host and device */

static void dense_matrices_move_there_and_back(void)
{
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {7, 0}, {1, 1}, {40, 9}, {3, 300}};
    tulle_ctx *ctx = gpu_ctx(), *cpu = ctx_with(1);
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int order = TULLE_BY_ROWS; order <= TULLE_BY_COLS; order++)
                for (int gap = 0; gap < 4; gap += 3) {
                    den M = den_new(sizes[i][0], sizes[i][1], gap, (tulle_order)order, (tulle_type)v);
                    tulle_dense_matrix *there = NULL, *also = NULL, *back = NULL;
                    den_fill(&M, REF_REALS, 5);
                    REQUIRE(tulle_dense_move(ctx, &M.view, TULLE_DEVICE, &there) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                    tulle_dense view = tulle_dense_view(there);
                    CHECK(view.place == TULLE_DEVICE && view.rows == M.view.rows && view.cols == M.view.cols
                          && (int)view.order == order && view.val_type == M.view.val_type, "type %d, %d x %d", v,
                          (int)view.rows, (int)view.cols);
                    REQUIRE(tulle_dense_move(ctx, &view, TULLE_DEVICE, &also) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                    tulle_dense_free(there);
                    view = tulle_dense_view(also);
                    REQUIRE(tulle_dense_move(ctx, &view, TULLE_HOST, &back) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                    view = tulle_dense_view(back);
                    CHECK(view.place == TULLE_HOST && (int)view.order == order && den_same(&view, &M.view, "there and back"),
                          "type %d", v);
                    tulle_dense_free(also);
                    tulle_dense_free(back);
                    den_free(&M);
                }
    den M = den_new(4, 5, 0, TULLE_BY_ROWS, TULLE_F64);
    tulle_dense_matrix *none = NULL;
    REQUIRE(tulle_dense_move(cpu, &M.view, TULLE_DEVICE, &none) == TULLE_OK, "%s", tulle_ctx_error(cpu));
    CHECK(tulle_dense_view(none).place == TULLE_HOST, "the device of a CPU is the host");
    tulle_dense_free(none);
    none = NULL;
    CHECK(tulle_dense_move(ctx, &M.view, (tulle_place)7, &none) == TULLE_EINVAL && !none, "%s", tulle_ctx_error(ctx));
    M.view.ld = 4;
    CHECK(tulle_dense_move(ctx, &M.view, TULLE_DEVICE, &none) == TULLE_EINVAL && !none, "%s", tulle_ctx_error(ctx));
    den_free(&M);
    tulle_ctx_free(cpu);
    tulle_ctx_free(ctx);
}

/* ---- workspace */

/* The smallest number named must be sufficient, and twice as much; X and Y are then divided into chunks, in
 * one lane and in two. */
static void limits_down_to_one_column(void)
{
    static const char *const overlaps[] = {"on", "off"};
    /* smallest limit: bands of one row, one column at a time */
    ref A = ref_power(4, 160, 120, 60, REF_INTEGERS, f64);
    for (int w = 0; w < 2; w++) {
        setenv("TULLE_SPMM_OVERLAP", overlaps[w], 1);
        tulle_ctx *ctx = gpu_ctx();
        for (int p = 0; p < POLICIES; p++)
            for (int turn = 0; turn < 16; turn++) {
                setting s = {.x_order = (tulle_order)(turn & 1), .y_order = (tulle_order)(turn >> 1 & 1), .cols = 13, .alpha = one,
                             .beta = turn & 4 ? half : zero, .policy = policies[p], .places = turn & 8 ? SPMM_PLACES - 1 : 0,
                             .x_gap = turn % 3};
                uint64_t limit = 1;
                if (few() && (turn + p + w) % 3 != 0) continue;
                for (int tries = 0; tries < 5; tries++) {       /* each stage names its own minimum */
                    den X = den_new(120, s.cols, s.x_gap, s.x_order, TULLE_F64);
                    den Y = den_new(160, s.cols, 0, s.y_order, TULLE_F64);
                    den_fill(&X, REF_INTEGERS, 3);
                    den_fill(&Y, REF_INTEGERS, 4);
                    den_there x = {.view = X.view}, y = {.view = Y.view};
                    if (s.places) x = den_move(ctx, &X), y = den_move(ctx, &Y);
                    tulle_spmm_options o = {.memory_limit = limit, .policy = s.policy};
                    tulle_status status = tulle_spmm(ctx, NULL, &A.view, &x.view, NULL, &y.view, &o);
                    const char *needs = strstr(tulle_ctx_error(ctx), "needs ");
                    uint64_t least = status == TULLE_OK || !needs ? 0 : strtoull(needs + 6, NULL, 10);
                    if (y.M) den_fetch(ctx, &Y, &y);
                    CHECK(status == TULLE_OK || (status == TULLE_ELIMIT && least > limit && den_untouched(&Y)),
                          "limit %" PRIu64 ": %s: %s", limit, tulle_status_name(status), tulle_ctx_error(ctx));
                    den_leave(&x), den_leave(&y);
                    den_free(&X), den_free(&Y);
                    if (status == TULLE_OK || least <= limit) break;
                    limit = least;
                }
                for (int more = 1; more <= 5; more += 2) {
                    s.limit = limit * (uint64_t)more + (uint64_t)(more > 1);
                    s.plan = more == 3;
                    spmm_product(ctx, &A.view, NULL, s, "little memory");
                }
            }
        tulle_ctx_free(ctx);
        unsetenv("TULLE_SPMM_OVERLAP");
    }
    ref_free(&A);
}

/* Many chunks of X and Y on the host, in all orders. */
static void chunks_of_large_matrices(void)
{
    static const char *const overlaps[] = {"on", "off"};
    ref A = ref_random(5, 6000, 5000, 3, REF_INTEGERS, f64);
    for (int w = 0; w < 2; w++) {
        setenv("TULLE_SPMM_OVERLAP", overlaps[w], 1);
        tulle_ctx *ctx = gpu_ctx();
        for (int turn = 0; turn < 8; turn++) {
            if (few() && (turn + w) % 2 == 0) continue;
            setting s = {.x_order = (tulle_order)(turn & 1), .y_order = (tulle_order)(turn >> 1 & 1), .cols = 100, .alpha = one,
                         .beta = turn & 4 ? one : zero, .x_gap = turn % 3, .y_gap = turn % 2, .limit = 4 << 20, .plan = turn % 2,
                         .policy = policies[turn >> 2]};
            spmm_product(ctx, &A.view, NULL, s, "chunks");
        }
        tulle_ctx_free(ctx);
        unsetenv("TULLE_SPMM_OVERLAP");
    }
    ref_free(&A);
}

/* ---- infinities and NaN */

static void infinities_and_nan_spread(void)
{
    tulle_ctx *ctx = gpu_ctx();
    const double odd[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0};
    const ref_value factors[] = {one, half, {INFINITY, 0}, {NAN, 0}};
    for (int v = TULLE_F32; v <= TULLE_CF64; v++)
        for (int64_t cols = 1; cols < 20; cols += few() ? 9 : 3) {
            tulle_type t = (tulle_type)v;
            ref A = ref_random(19, 50, 40, 3, REF_INTEGERS, (ref_types){t, TULLE_I32, TULLE_I32});
            for (int64_t k = 0; k < A.view.nnz; k += 11)
                ref_set_val(&A, k, (ref_value){odd[k % 5], v < TULLE_CF32 ? 0 : odd[k % 3]});
            den X = den_new(40, cols, 1, TULLE_BY_ROWS, t), Y = den_new(50, cols, 0, TULLE_BY_COLS, t);
            den want = den_new(50, cols, 0, TULLE_BY_ROWS, t);
            den_fill(&X, REF_INTEGERS, 1);
            den_fill(&Y, REF_INTEGERS, 2);
            for (int64_t i = 0; i < 40; i += 7)
                for (int64_t j = 0; j < cols; j++)
                    if ((i + j) % 3 == 0) den_put(&X.view, i, j, (ref_value){odd[(i + j) % 5], 0});
            den_put(&Y.view, 3, 0, (ref_value){NAN, 0});
            den_put(&Y.view, 4, 0, (ref_value){INFINITY, 0});
            for (int f = 0; f < 4; f++)
                for (int p = 0; p < POLICIES; p++) {
                    char alpha[16], beta[16];
                    ref_value_put(alpha, t, 0, factors[f]);
                    ref_value_put(beta, t, 0, one);
                    spmm_plain(&A.view, &X.view, factors[f], one, &Y.view, &want.view);
                    den again = den_new(50, cols, 0, TULLE_BY_COLS, t);
                    memcpy(again.memory, Y.memory, Y.bytes);
                    tulle_spmm_options o = {.policy = policies[p]};
                    CHECK(tulle_spmm(ctx, alpha, &A.view, &X.view, beta, &again.view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                    CHECK(den_same(&again.view, &want.view, "not finite"), "type %d, %s, factor %d", v, policies[p], f);
                    den_free(&again);
                }
            den_free(&X), den_free(&Y), den_free(&want);
            ref_free(&A);
        }
    tulle_ctx_free(ctx);
}

/* alpha 0: values of A and X are not read; a pattern is sufficient, and arrays may be NULL. */
static void alpha_zero_reads_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    double zero_d = 0, two = 2;
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    tulle_csr pattern = A.view;
    pattern.values = NULL;
    for (int there = 0; there < 2; there++) {
        den Y = den_new(30, 5, 2, TULLE_BY_ROWS, TULLE_F64), want = den_new(30, 5, 0, TULLE_BY_ROWS, TULLE_F64);
        tulle_dense X = tulle_dense_make(20, 5, 0, TULLE_BY_COLS, NULL, TULLE_F64);
        den_fill(&Y, REF_REALS, 5);
        spmm_plain(&A.view, &X, zero, (ref_value){2, 0}, &Y.view, &want.view);
        den_there y = {.view = Y.view};
        if (there) y = den_move(ctx, &Y);
        CHECK(tulle_spmm(ctx, &zero_d, &pattern, &X, &two, &y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        if (there) den_fetch(ctx, &Y, &y);
        CHECK(den_same(&Y.view, &want.view, "alpha 0") && den_margins_kept(&Y), "%s", "wrong");
        CHECK(tulle_spmm(ctx, &zero_d, &pattern, &X, NULL, &y.view, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        if (there) den_fetch(ctx, &Y, &y);
        for (int i = 0; i < 30; i++)
            for (int j = 0; j < 5; j++) CHECK(den_at(&Y.view, i, j).re == 0, "not zero");
        CHECK(den_margins_kept(&Y), "%s", "written outside");
        den_leave(&y);
        den_free(&Y);
        den_free(&want);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- arguments */

static void bad_arguments_change_nothing(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(4, 30, 20, 3, REF_REALS, f64);
    den X = den_new(20, 6, 1, TULLE_BY_ROWS, TULLE_F64), Y = den_new(30, 6, 1, TULLE_BY_COLS, TULLE_F64);
    den_fill(&X, REF_REALS, 1);
    den_fill(&Y, REF_REALS, 2);
    spmm_refusals(ctx);
    const call good = {.A = A.view, .X = X.view, .Y = Y.view, .o.policy = "ellr"};
    const struct { int threads, columns, block; const char *sentence; } shapes[] = {
        {3, 0, 0, "3"}, {33, 0, 0, "33"}, {-1, 0, 0, "-1"}, {0, 5, 0, "5"}, {0, 64, 0, "64"}, {0, -2, 0, "-2"},
        {0, 0, 2048, "2048"}, {0, 0, -32, "-32"}, {32, 0, 48, "48"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        call c = good;
        const tulle_spmm_lab lab = {shapes[i].threads, shapes[i].columns, shapes[i].block, {0}};
        c.o.lab = &lab;
        spmm_refused(ctx, &Y, &c, TULLE_EINVAL, shapes[i].sentence, "ellr");
    }
    /* the same with views over device memory */
    den_there x = den_move(ctx, &X), y = den_move(ctx, &Y);
    const call there = {.A = A.view, .X = x.view, .Y = y.view};
    call c = there;
    c.X.rows = 21;
    spmm_refused(ctx, &Y, &c, TULLE_ESHAPE, "X is 21 x 6", "rows of X there");
    c = there;
    c.Y.ld = 29;
    spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "Y: ld is 29", "ld of Y there");
    c = there;
    c.Y.values = NULL;
    spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "Y: values is NULL", "Y there, NULL");
    c = there;
    c.X.values = c.Y.values;
    spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "X and Y overlap", "X is Y");
    if (strncmp(gpu_name(), "cuda", 4) == 0) {                  /* a cl_mem is always aligned */
        c = there;
        c.X.values = (char *)c.X.values - 3;
        spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "X begins at 0x", "X in between");
        c = there;
        c.Y.values = (char *)c.Y.values + 4;
        spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "not at a multiple of 8 bytes", "Y in between");
        c = there;
        tulle_matrix *a = gpu_moved(ctx, &A.view, TULLE_DEVICE);
        c.A = tulle_matrix_view(a);
        c.A.row_ptr = (const char *)c.A.row_ptr + 2;
        spmm_refused(ctx, &Y, &c, TULLE_EINVAL, "row_ptr of A begins at 0x", "row_ptr in between");
        tulle_matrix_free(a);
    }
    den_fetch(ctx, &Y, &y);
    CHECK(den_untouched(&Y), "%s", "Y was written");
    tulle_spmm_plan *plan = NULL;
    REQUIRE(tulle_spmm_plan_create(ctx, &A.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_dense bad = Y.view;
    bad.rows = 29;
    CHECK(tulle_spmm_plan_run(plan, NULL, &X.view, NULL, &bad) == TULLE_ESHAPE && den_untouched(&Y), "%s", tulle_ctx_error(ctx));
    tulle_spmm_plan_free(plan);
    den_leave(&x), den_leave(&y);
    den_free(&X), den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* X and Y are interleaved columns of one host array: copying Y back must not overwrite X. */
static void x_and_y_beside_each_other_in_one_array(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(4, 20, 20, 3, REF_INTEGERS, f64);
    for (int turn = 0; turn < 2; turn++) {
        den both = den_new(20, 13, 0, TULLE_BY_ROWS, TULLE_F64), want = den_new(20, 6, 0, TULLE_BY_ROWS, TULLE_F64);
        den_fill(&both, REF_INTEGERS, 4);
        tulle_dense X = both.view, Y = both.view;
        X.cols = Y.cols = 6;
        *(turn ? &X.values : &Y.values) = (double *)both.view.values + 7;
        spmm_plain(&A.view, &X, one, zero, &Y, &want.view);
        CHECK(tulle_spmm(ctx, NULL, &A.view, &X, NULL, &Y, NULL) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(den_same(&Y, &want.view, "beside"), "%s", "wrong");
        den outside = both;                                     /* only Y has changed */
        outside.view = Y;
        outside.lead = (size_t)((char *)Y.values - both.memory);
        CHECK(den_margins_kept(&outside), "turn %d: written outside of Y", turn);
        den_free(&both);
        den_free(&want);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void stats_tell_what_was_done(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(4, 60, 50, 3, REF_INTEGERS, f64);
    for (int p = 0; p < POLICIES; p++) {
        den X = den_new(50, 7, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(60, 7, 0, TULLE_BY_ROWS, TULLE_F64);
        tulle_stats stats;
        tulle_spmm_options o = {.policy = policies[p], .time_stages = 1};
        den_fill(&X, REF_INTEGERS, 3);
        REQUIRE(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, &o) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &stats);
        CHECK(stats.products == A.view.nnz * 7 && stats.a_nnz == A.view.nnz && stats.b_nnz == 350 && stats.c_nnz == 420,
              "%s", "counts");
        CHECK(strcmp(stats.policy, policies[p]) == 0 && strcmp(stats.device, gpu_name()) == 0, "%s on %s", stats.policy,
              stats.device);
        CHECK(stats.workspace_bytes > 0 && stats.peak_bytes == stats.workspace_bytes, "%s", "what was held");
        CHECK(stats.stages > 0 && stats.sec_total > 0 && stats.sec_numeric > 0 && stats.waits > 0,
              "%d stages, %g s, numeric %g s, %d waits", stats.stages, stats.sec_total, stats.sec_numeric, stats.waits);
        den_free(&X), den_free(&Y);
    }
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- cancellation and failing allocations */

static void progress_can_cancel(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(4, 30, 20, 3, REF_INTEGERS, f64);
    den X = den_new(20, 3, 0, TULLE_BY_ROWS, TULLE_F64), Y = den_new(30, 3, 0, TULLE_BY_ROWS, TULLE_F64);
    den_fill(&X, REF_INTEGERS, 4);
    tulle_ctx_set_progress(ctx, stop_at_once, NULL);
    CHECK(tulle_spmm(ctx, NULL, &A.view, &X.view, NULL, &Y.view, NULL) == TULLE_ECANCEL, "%s", tulle_ctx_error(ctx));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    setting s = {.cols = 3, .alpha = one};
    spmm_product(ctx, &A.view, NULL, s, "after it was cancelled");
    den_free(&X), den_free(&Y);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* The n-th allocation fails, for every n. */
static void memory_failures_leave_y_as_it_was(void)
{
    ref A = one_long_row(9000, REF_INTEGERS, f64);
    spmm_memory_failures(gpu_name(), &A.view);
    ref_free(&A);
}

TEST_MAIN(TEST(every_type_place_and_order), TEST(nothing_times_something), TEST(zero_to_three_hundred_columns), TEST(rows_that_are_aligned_and_not),
          TEST(every_alpha_and_beta), TEST(one_very_long_row), TEST(whole_numbers_give_the_cpus_bits),
          TEST(every_shape_of_csr), TEST(every_team_and_tile_of_ellr), TEST(what_ellr_would_blow_up_stays_in_csr),
          TEST(a_plan_runs_many_times), TEST(a_plan_has_values_of_its_own),
          TEST(the_same_bits_each_time), TEST(in_a_queue_of_the_caller),
          TEST(dense_matrices_move_there_and_back), TEST(limits_down_to_one_column), TEST(chunks_of_large_matrices),
          TEST(infinities_and_nan_spread), TEST(alpha_zero_reads_nothing), TEST(bad_arguments_change_nothing),
          TEST(x_and_y_beside_each_other_in_one_array), TEST(stats_tell_what_was_done), TEST(progress_can_cancel),
          TEST(memory_failures_leave_y_as_it_was))
