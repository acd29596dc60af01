/* SPDX-License-Identifier: MIT
 *
 * test_gpu_engine.c - cost and failures of products on a device: plans, blocks, limits, invalid operands,
 * failure of every device allocation, waits, stages, contexts.  Results of products are tested in
 * test_gpu_product.c. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include "blocks_help.h"
#include "ctx.h"
#include "gpu.h"
#include "gpu/engine.h"

/* ---- plans */

static void plans_run_with_new_values(void)
{
    static const int pairs[] = {0, 9, 13, 15, 19, 22, 23, GPU_PAIR(1), GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        ref_types t = ref_types_at((int)n % 4 + (n % 2 ? 12 : 0));
        pair p = gpu_pair(pairs[n], REF_INTEGERS, t, t);
        tulle_csr a = p.A.view, b = p.B.view;
        a.values = b.values = NULL;                             /* patterns are enough */
        tulle_options o = {.policy = n % 3 ? "speck" : NULL};
        tulle_plan *plan = NULL;
        REQUIRE(tulle_plan_create(ctx, &a, &b, &o, &plan) == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
        for (int run = 0; run < 3; run++) {
            ref_fill(&p.A, REF_INTEGERS, 100 + (uint64_t)run);
            ref_fill(&p.B, REF_INTEGERS, 200 + (uint64_t)run);
            tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
            tulle_csr want = tulle_matrix_view(C), c = tulle_plan_pattern(plan);
            CHECK(c.place == TULLE_HOST && !c.values && c.nnz == want.nnz, "%s: the pattern", p.name);
            void *values = malloc((size_t)c.nnz * ref_value_size(t.val) + 1);
            CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            c.values = values;
            CHECK(ref_same(&c, &want, p.name), "run %d", run);
            free(values);
            tulle_matrix_free(C);
        }
        tulle_plan_free(plan);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void count_analyses(void *user, const char *line)
{
    *(int *)user += strstr(line, "analysis:") != NULL;
}

/* Creating a plan copies the operands once, and analyzes the rows once. */
static void plans_analyse_once(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(GPU_PAIR(5), REF_INTEGERS, f64, f64);
    int analyses = 0;
    tulle_ctx_set_trace(ctx, count_analyses, &analyses);
    tulle_plan *plan = NULL;
    REQUIRE(tulle_plan_create(ctx, &p.A.view, &p.B.view, NULL, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(analyses == 1, "%d analyses for a plan", analyses);
    tulle_csr c = tulle_plan_pattern(plan);
    double *values = malloc(((size_t)c.nnz + 1) * sizeof *values);
    CHECK(tulle_plan_run(plan, p.A.values, p.B.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    CHECK(analyses == 1, "%d analyses for a plan and a run", analyses);
    tulle_ctx_set_trace(ctx, NULL, NULL);
    free(values);
    tulle_plan_free(plan);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* Products without values, with C on the host and on the device. */
static void patterns_alone_are_multiplied(void)
{
    static const int pairs[] = {0, 9, 13, 15, 22, GPU_PAIR(1), GPU_PAIR(5)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        ref_types t = ref_types_at((int)n % 4 + (n % 2 ? 12 : 0));
        pair p = gpu_pair(pairs[n], REF_INTEGERS, t, t);
        tulle_matrix *whole = cpu_product(&p.A.view, &p.B.view, NULL), *C = NULL;
        tulle_csr a = p.A.view, b = p.B.view, want = tulle_matrix_view(whole);
        a.values = b.values = want.values = NULL;
        tulle_options o = {.c_place = n % 2 ? TULLE_DEVICE : TULLE_HOST};
        REQUIRE(tulle_multiply(ctx, &a, &b, &o, &C) == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
        tulle_csr c = tulle_matrix_view(C);
        CHECK((int)c.place == o.c_place && (!c.values || c.nnz == 0), "%s: place %d", p.name, (int)c.place);
        tulle_matrix *host = gpu_moved(ctx, &c, TULLE_HOST);
        c = tulle_matrix_view(host);
        if (c.nnz == 0) c.values = NULL;
        CHECK(ref_same(&c, &want, p.name), "%s", p.name);
        b.values = p.B.values;
        tulle_matrix *none = NULL;
        if (a.nnz > 0) CHECK(tulle_multiply(ctx, &a, &b, &o, &none) == TULLE_EINVAL && !none, "A alone has none");
        tulle_matrix_free(host);
        tulle_matrix_free(C);
        tulle_matrix_free(whole);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void plans_of_matrices_there(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(15, REF_INTEGERS, f64, f64);
    tulle_options o = {.policy = "speck", .c_place = TULLE_DEVICE};
    tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &p.B.view, TULLE_DEVICE), *c = NULL;
    tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
    tulle_plan *plan = NULL;
    REQUIRE(tulle_plan_create(ctx, &va, &vb, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    REQUIRE(tulle_multiply(ctx, &va, &vb, &o, &c) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr pattern = tulle_plan_pattern(plan);
    CHECK(pattern.place == TULLE_DEVICE && pattern.nnz == tulle_matrix_view(c).nnz, "the pattern is there");
    for (int run = 0; run < 3; run++) {                         /* new values for A; the same arrays for C */
        ref_fill(&p.A, REF_INTEGERS, 300 + (uint64_t)run);
        tulle_matrix *next = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *want = cpu_product(&p.A.view, &p.B.view, NULL);
        REQUIRE(tulle_plan_run(plan, tulle_matrix_view(next).values, vb.values, tulle_matrix_values(c)) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_csr vc = tulle_matrix_view(c), w = tulle_matrix_view(want);
        tulle_matrix *host = gpu_moved(ctx, &vc, TULLE_HOST);
        tulle_csr h = tulle_matrix_view(host);
        CHECK(ref_same(&h, &w, "a plan there"), "run %d", run);
        tulle_matrix_free(host);
        tulle_matrix_free(next);
        tulle_matrix_free(want);
    }
    tulle_plan_free(plan);
    tulle_matrix *all[] = {a, b, c};
    for (int i = 0; i < 3; i++) tulle_matrix_free(all[i]);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void plans_of_transposed_operands(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(1, 60, 90, 6, REF_INTEGERS, f64);
    tulle_options o = {.op_b = TULLE_TRANSPOSE};
    tulle_plan *plan = NULL;
    REQUIRE(tulle_plan_create(ctx, &A.view, &A.view, &o, &plan) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_csr c = tulle_plan_pattern(plan);
    double *values = malloc((size_t)c.nnz * sizeof *values);
    for (int run = 0; run < 2; run++) {
        ref_fill(&A, REF_INTEGERS, 400 + (uint64_t)run);
        tulle_matrix *C = cpu_product(&A.view, &A.view, &o);
        tulle_csr want = tulle_matrix_view(C);
        CHECK(tulle_plan_run(plan, A.values, A.values, values) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        c.values = values;
        CHECK(ref_same(&c, &want, "A*A^T"), "run %d", run);
        tulle_matrix_free(C);
    }
    free(values);
    tulle_plan_free(plan);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

/* ---- blocks and limits */

static void blocks_give_the_same_product_for_any_limit(void)
{
    static const int pairs[] = {0, 9, 19, 21, GPU_PAIR(2)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
        tulle_csr want = tulle_matrix_view(C);
        int64_t most = 0;
        bool done = false;
        for (uint64_t limit = 1 << 15; limit <= (uint64_t)1 << 28; limit *= 2) {
            tulle_options o = {.memory_limit = limit, .policy = "speck"};
            blocks_seen seen = {.want = &want, .good = true};
            tulle_status status = tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, &o, blocks_compare, &seen);
            if (status == TULLE_ELIMIT) {
                CHECK(!done, "%s: limit %" PRIu64 " was refused, a smaller one was not", p.name, limit);
                CHECK(strstr(tulle_ctx_error(ctx), "bytes") != NULL, "%s", tulle_ctx_error(ctx));
            } else {
                CHECK(status == TULLE_OK && blocks_all(&seen), "%s, limit %" PRIu64 ": %s", p.name, limit,
                      tulle_ctx_error(ctx));
                tulle_stats s;
                tulle_ctx_stats(ctx, &s);
                CHECK(s.peak_bytes <= limit, "%s: peak %" PRIu64 ", limit %" PRIu64, p.name, s.peak_bytes, limit);
                done = true;
                if (seen.blocks > most) most = seen.blocks;
            }
        }
        CHECK(done, "%s: no limit was large enough", p.name);
        if (want.nnz > 100000) CHECK(most > 1, "%s never came in several blocks", p.name);
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* The table of an engine takes any range of rows, whether operands stay in its memory or not; where A is on
 * the host, a device gets these rows only. */
static void every_engine_takes_a_range_of_rows(void)
{
    enum { ROWS = 3000, FIRST = 1400, END = 1430 };
    const char *const devices[] = {"cpu", gpu_name(), "cpu,cpu"};
    ref A = ref_random(31, ROWS, 200, 9, REF_INTEGERS, f64), B = ref_random(32, 200, 150, 4, REF_INTEGERS, f64);
    tulle_matrix *whole = cpu_product(&A.view, &B.view, NULL), *rows = NULL;
    tulle_csr all = tulle_matrix_view(whole);
    uint64_t peak = 0;
    for (int d = 0; d < 3; d++) {
        tulle_ctx *ctx = NULL;
        REQUIRE(tulle_ctx_create(devices[d], NULL, &ctx) == TULLE_OK, "%s", devices[d]);
        for (int stays = 0; stays < 2; stays++) {
            const int64_t from[] = {0, FIRST, FIRST, ROWS - 1, 7}, to[] = {10, END, -1, ROWS, 7};
            tl_setup s = {0};
            REQUIRE(tl_setup_make(ctx, &A.view, &B.view, NULL, TL_VALUES | TL_LOOK, &s) == TULLE_OK, "%s",
                    tulle_ctx_error(ctx));
            if (stays) REQUIRE(s.engine->stay(ctx, &s, &A.view, &B.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            for (int i = 0; i < 5; i++) {
                tulle_matrix *C = NULL;
                REQUIRE(s.engine->run(ctx, &s, from[i], to[i], &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                tulle_csr want = tl_csr_rows(&all, from[i], to[i] < 0 ? ROWS : to[i]), c = tulle_matrix_view(C);
                tulle_csr plain = want;
                REQUIRE(tl_csr_slice(&ctx->base, &want, "C", 1, &plain, &rows) == TULLE_OK, "a slice");
                if (c.nnz == 0) plain.values = c.values;
                CHECK(ref_same(&c, &plain, devices[d]), "rows from %d, operands stay: %d", (int)from[i], stays);
                if (d == 1 && !stays && i == 1) peak = s.stats.peak_bytes;
                tl_matrix_free(&ctx->base, rows);
                tulle_matrix_free(C);
            }
            tl_setup_done(ctx, &s);
        }
        tulle_ctx_free(ctx);
    }
    CHECK(peak > 0 && peak < tl_csr_bytes(&A.view) / 2, "%d rows took %llu bytes on the device, all of A takes %llu",
          END - FIRST, (unsigned long long)peak, (unsigned long long)tl_csr_bytes(&A.view));
    tulle_matrix_free(whole);
    ref_free(&A);
    ref_free(&B);
}

static void a_caller_can_stop_the_blocks(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(21, REF_INTEGERS, f64, f64);
    tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr want = tulle_matrix_view(C);
    blocks_seen seen = {.want = &want, .good = true, .stop_after = 1};
    CHECK(tulle_multiply_blocks(ctx, &p.A.view, &p.B.view, NULL, blocks_compare, &seen) == TULLE_ECANCEL && seen.blocks == 1, "%s",
          tulle_ctx_error(ctx));
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want, "afterwards");
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* The message has the bytes needed; with that limit, after at most a few attempts, the call succeeds. */
static void a_limit_is_kept_or_refused_with_a_number(void)
{
    static const int pairs[] = {9, 15, 19, 21, GPU_PAIR(5)};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        tulle_ctx *ctx = gpu_ctx();
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, NULL), *C = NULL;
        tulle_options o = {.memory_limit = 1, .policy = "speck", .c_place = n % 2 ? TULLE_DEVICE : TULLE_HOST};
        tulle_status status = TULLE_ELIMIT;
        /* three calls may fail, says tulle.h; and none takes more than its limit before it is refused */
        for (int tries = 0; status == TULLE_ELIMIT && tries <= 3; tries++) {
            status = tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C);
            CHECK(tl_dmem_most(ctx->gpu) <= o.memory_limit, "%s: %" PRIu64 " bytes taken, limit %" PRIu64, p.name,
                  tl_dmem_most(ctx->gpu), o.memory_limit);
            if (status != TULLE_ELIMIT) break;
            CHECK(!C && strstr(tulle_ctx_error(ctx), "bytes"), "%s: %s", p.name, tulle_ctx_error(ctx));
            const char *number = strpbrk(tulle_ctx_error(ctx), "0123456789");
            uint64_t need = number ? strtoull(number, NULL, 10) : 0;
            REQUIRE(need > o.memory_limit, "%s: limit %" PRIu64 ": %s", p.name, o.memory_limit, tulle_ctx_error(ctx));
            o.memory_limit = need;
        }
        REQUIRE(status == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
        CHECK(o.memory_limit > 1, "%s: a limit of one byte was kept", p.name);
        tulle_matrix_free(C);
        tulle_stats s;
        tulle_ctx_stats(ctx, &s);
        CHECK(s.peak_bytes <= o.memory_limit, "%s: peak %" PRIu64 ", limit %" PRIu64, p.name, s.peak_bytes,
              o.memory_limit);
        tulle_csr w = tulle_matrix_view(want);
        gpu_product_is(ctx, &p.A.view, &p.B.view, &o, 0, &w, p.name);
        tulle_matrix_free(want);
        pair_free(&p);
        tulle_ctx_free(ctx);
    }
}

/* ---- invalid operands: the same message as on the CPU, for any row and place of the matrix */

enum { TOO_LARGE, NEGATIVE, DISORDER, TWICE, FALLING, TOO_FAR, TWO_FAULTS, LAST_ROW, FAULTS };

static void spoil(ref *A, int fault)
{
    int64_t k = A->view.nnz / 2, rows = A->view.rows, row = 0, last = rows - 1;
    while (ref_ptr(&A->view, row + 1) - ref_ptr(&A->view, row) < 3 || ref_ptr(&A->view, row) < k) row++;
    while (ref_ptr(&A->view, last + 1) == ref_ptr(&A->view, last)) last--;
    k = ref_ptr(&A->view, row);
    switch (fault) {
    case TOO_LARGE: ref_set_col(A, k + 1, A->view.cols); break;
    case NEGATIVE: ref_set_col(A, k + 1, -1); break;
    case DISORDER: {
        int64_t c = ref_col(&A->view, k);
        ref_set_col(A, k, ref_col(&A->view, k + 1));
        ref_set_col(A, k + 1, c);
        break;
    }
    case TWICE: ref_set_col(A, k + 1, ref_col(&A->view, k)); break;
    case FALLING: ref_set_ptr(A, row + 1, ref_ptr(&A->view, row) - 1); break;
    case TOO_FAR: ref_set_ptr(A, row + 1, A->view.nnz + 5); break;
    case TWO_FAULTS:
        ref_set_col(A, ref_ptr(&A->view, last), A->view.cols + 7);
        ref_set_col(A, k, A->view.cols + 1);
        break;
    default: ref_set_col(A, A->view.nnz - 1, A->view.cols);
    }
}

static void bad_operands_are_named_as_on_the_cpu(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "the CPU");
    static const int types[] = {1, 5, 9, 13};
    for (int fault = 0; fault < FAULTS; fault++)
        for (int i = 0; i < 8; i++) {
            ref_types t = ref_types_at(types[i % 4]);
            bool second = i >= 4;
            ref A = ref_random(71, 900, 800, 6, REF_INTEGERS, t), B = ref_random(72, 800, 700, 6, REF_INTEGERS, t);
            spoil(second ? &B : &A, fault);
            tulle_matrix *C = NULL;
            char want[1024];
            CHECK(tulle_multiply(cpu, &A.view, &B.view, NULL, &C) == TULLE_EPATTERN, "the CPU takes fault %d", fault);
            snprintf(want, sizeof want, "%s", tulle_ctx_error(cpu));
            for (int there = 0; there <= 1; there++) {
                tulle_matrix *a = NULL, *b = NULL;
                tulle_status status = TULLE_OK;
                if (there) status = tulle_csr_move(ctx, &A.view, TULLE_DEVICE, &a);
                if (there && status == TULLE_OK) status = tulle_csr_move(ctx, &B.view, TULLE_DEVICE, &b);
                tulle_csr va = a ? tulle_matrix_view(a) : A.view, vb = b ? tulle_matrix_view(b) : B.view;
                REQUIRE(status == TULLE_OK, "fault %d: moving looks at nothing: %s", fault, tulle_ctx_error(ctx));
                status = tulle_multiply(ctx, &va, &vb, NULL, &C);
                CHECK(status == TULLE_EPATTERN && !C, "%s, there %d: %s", want, there, tulle_status_name(status));
                CHECK(strcmp(tulle_ctx_error(ctx), want) == 0, "\"%s\" instead of \"%s\", there %d", tulle_ctx_error(ctx),
                      want, there);
                tulle_matrix_free(a);
                tulle_matrix_free(b);
            }
            ref_free(&A);
            ref_free(&B);
        }
    pair p = gpu_pair(9, REF_INTEGERS, f64, f64);               /* the context can still be used */
    ref want = ref_product(&p.A.view, &p.B.view);
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, PLACES - 1, &want.view, "afterwards");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* B uses the arrays of A, but has fewer columns (invalid) or more (valid): the same status as on the CPU. */
static void a_view_of_a_with_other_columns_is_not_a(void)
{
    const int32_t ptr[] = {0, 2, 3, 5}, col[] = {0, 2, 1, 0, 1};
    const double val[] = {1, 2, 3, 4, 5};
    tulle_ctx *ctx = gpu_ctx(), *cpu = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "the CPU");
    const tulle_csr A = tulle_csr_f64_i32(3, 3, ptr, col, val);
    tulle_matrix *there = gpu_moved(ctx, &A, TULLE_DEVICE);
    for (int64_t cols = 0; cols <= 5; cols++)
        for (int w = 0; w < 8; w++) {
            static const char *const policies[] = {"auto", "speck", "bhsparse", "delta"};
            tulle_options o = {.policy = policies[w % 4]};
            tulle_csr a = w < 4 ? A : tulle_matrix_view(there), b = a, plain = A;
            tulle_matrix *C = NULL, *want = NULL;
            tulle_plan *plan = NULL;
            blocks_seen seen = {.good = true};
            b.cols = plain.cols = cols;
            tulle_status right = tulle_multiply(cpu, &A, &plain, NULL, &want), status = tulle_multiply(ctx, &a, &b, &o, &C);
            CHECK(right == (cols < 3 ? TULLE_EPATTERN : TULLE_OK), "the CPU: %s", tulle_status_name(right));
            CHECK(status == right && (C == NULL) == (cols < 3), "%" PRId64 " columns, way %d: %s", cols, w, tulle_status_name(status));
            if (cols < 3) {
                CHECK(strcmp(tulle_ctx_error(ctx), tulle_ctx_error(cpu)) == 0, "\"%s\" instead of \"%s\"", tulle_ctx_error(ctx),
                      tulle_ctx_error(cpu));
                status = tulle_multiply_blocks(ctx, &a, &b, &o, blocks_compare, &seen);
                CHECK(status == TULLE_EPATTERN && seen.blocks == 0, "blocks, %" PRId64 " columns: %s", cols, tulle_status_name(status));
            } else if (C) {
                tulle_csr c = tulle_matrix_view(C), e = tulle_matrix_view(want);
                CHECK(tulle_csr_check(ctx, &c) == TULLE_OK && ref_same(&c, &e, o.policy), "%" PRId64 " columns", cols);
            }
            status = tulle_plan_create(ctx, &a, &b, &o, &plan);
            CHECK(status == right, "a plan, %" PRId64 " columns, way %d: %s", cols, w, tulle_status_name(status));
            tulle_plan_free(plan);
            tulle_matrix_free(C);
            tulle_matrix_free(want);
        }
    tulle_matrix_free(there);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

static void shapes_and_types_that_do_not_agree(void)
{
    tulle_ctx *ctx = gpu_ctx();
    ref A = ref_random(1, 9, 5, 3, REF_INTEGERS, f64), B = ref_random(2, 6, 9, 3, REF_INTEGERS, f64);
    ref F = ref_random(3, 5, 9, 3, REF_INTEGERS, (ref_types){TULLE_F32, TULLE_I32, TULLE_I32});
    tulle_matrix *C = NULL, *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
    tulle_csr a = tulle_matrix_view(there);
    CHECK(tulle_multiply(ctx, &a, &B.view, NULL, &C) == TULLE_ESHAPE && !C, "9x5 * 6x9");
    CHECK(tulle_multiply(ctx, &a, &F.view, NULL, &C) == TULLE_ETYPE && !C, "f64 * f32");
    a.place = (tulle_place)7;
    CHECK(tulle_multiply(ctx, &a, &a, NULL, &C) == TULLE_EINVAL && !C, "place 7");
    tulle_options o = {.c_place = 7};
    CHECK(tulle_multiply(ctx, &A.view, &A.view, &o, &C) == TULLE_EINVAL && !C, "c_place 7");
    CHECK(tulle_csr_move(ctx, &A.view, (tulle_place)7, &C) == TULLE_EINVAL && !C, "moved to place 7");
    tulle_matrix_free(there);
    ref_free(&A);
    ref_free(&B);
    ref_free(&F);
    tulle_ctx_free(ctx);
}

/* Functions for matrices on the host work with a matrix on the device, or refuse it with a message; none
 * dereferences device addresses. */
static void matrices_there_in_functions_of_the_host(void)
{
    tulle_ctx *ctx = gpu_ctx(), *cpu = NULL;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "the CPU");
    ref A = ref_random(4, 50, 40, 5, REF_INTEGERS, f64);
    tulle_matrix *there = gpu_moved(ctx, &A.view, TULLE_DEVICE);
    tulle_csr a = tulle_matrix_view(there);
    tulle_ctx *contexts[] = {ctx, cpu};
    for (int i = 0; i < 2; i++)
        for (int call = 0; call < 9; call++) {
            tulle_ctx *x = contexts[i];
            tulle_matrix *M = NULL;
            tulle_forecast f;
            double v[50] = {0}, y[50], error;
            tulle_options o = {.op_b = TULLE_TRANSPOSE};
            tulle_status status =
                call == 0 ? tulle_csr_check(x, &a) : call == 1 ? tulle_csr_sort(x, &a, &M)
                : call == 2 ? tulle_csr_transpose(x, &a, TULLE_TRANSPOSE, &M)
                : call == 3 ? tulle_csr_convert(x, &a, TULLE_F32, TULLE_I64, TULLE_I64, &M)
                : call == 4 ? tulle_csr_apply(x, &a, v, y) : call == 5 ? tulle_write(x, "test_gpu_engine.mtx", &a)
                : call == 6 ? tulle_estimate(x, &a, &a, &o, &f) : call == 7 ? tulle_multiply(x, &a, &a, &o, &M)
                : tulle_product_check(x, &a, &a, &a, &o, &error);
            if (call == 8) CHECK(status != TULLE_OK, "A*A^T = A");
            else CHECK(status == TULLE_OK || status == TULLE_EINVAL, "call %d: %s", call, tulle_status_name(status));
            if (i == 1) CHECK(status == TULLE_EINVAL, "call %d on the CPU: %s", call, tulle_status_name(status));
            if (status != TULLE_OK) CHECK(strlen(tulle_ctx_error(x)) > 0 && !M, "call %d: no sentence", call);
            if (call == 7 && M) {
                tulle_matrix *C = cpu_product(&A.view, &A.view, &o);
                tulle_csr want = tulle_matrix_view(C), got = tulle_matrix_view(M);
                CHECK(ref_same(&got, &want, "A*A^T there"), "%s", "a wrong product");
                tulle_matrix_free(C);
            }
            tulle_matrix_free(M);
            remove("test_gpu_engine.mtx");
        }
    tulle_matrix_free(there);
    ref_free(&A);
    tulle_ctx_free(ctx);
    tulle_ctx_free(cpu);
}

/* ---- every device allocation fails once */

typedef tulle_status (*job_fn)(tulle_ctx *ctx, const pair *p, tulle_matrix **C);

static tulle_status job_multiply(tulle_ctx *ctx, const pair *p, tulle_matrix **C)
{
    tulle_options o = {.policy = "speck"};
    return tulle_multiply(ctx, &p->A.view, &p->B.view, &o, C);
}

static tulle_status job_there(tulle_ctx *ctx, const pair *p, tulle_matrix **C)
{
    tulle_options o = {.policy = "speck", .c_place = TULLE_DEVICE, .trust_inputs = 1};
    tulle_matrix *a = NULL, *b = NULL, *c = NULL;
    tulle_status status = tulle_csr_move(ctx, &p->A.view, TULLE_DEVICE, &a);
    if (status == TULLE_OK) status = tulle_csr_move(ctx, &p->B.view, TULLE_DEVICE, &b);
    tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
    if (status == TULLE_OK) status = tulle_multiply(ctx, &va, &vb, &o, &c);
    tulle_csr vc = tulle_matrix_view(c);
    if (status == TULLE_OK) status = tulle_csr_move(ctx, &vc, TULLE_HOST, C);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    tulle_matrix_free(c);
    return status;
}

static tulle_status job_all_options(tulle_ctx *ctx, const pair *p, tulle_matrix **C)
{
    tulle_options o = {.accumulator = "hash", .drop_zeros = 1, .c_ptr_type = TULLE_I64, .time_stages = 1};
    return tulle_multiply(ctx, &p->A.view, &p->B.view, &o, C);
}

static tulle_status job_plan(tulle_ctx *ctx, const pair *p, tulle_matrix **C)
{
    tulle_plan *plan = NULL;
    tulle_status status = tulle_plan_create(ctx, &p->A.view, &p->B.view, NULL, &plan);
    tulle_csr c = tulle_plan_pattern(plan);
    double *values = malloc((size_t)(c.nnz + 1) * sizeof *values);
    if (status == TULLE_OK) status = tulle_plan_run(plan, p->A.values, p->B.values, values);
    c.values = values;
    if (status == TULLE_OK) status = tulle_csr_convert(ctx, &c, (tulle_type)0, (tulle_index)0, (tulle_index)0, C);
    free(values);
    tulle_plan_free(plan);
    return status;
}

/* With C on the host a product continues in blocks, so only other calls fail. */
static void torture(const char *name, job_fn job, bool long_row, const char *shared)
{
    const bool goes_on = job == job_multiply || job == job_all_options;
    const ref_kind k = REF_INTEGERS;
    pair p = long_row ? (pair){full_row_and_singles(4, 60, 1, k, f64), ref_random(3, 60, 900, 15, k, f64), "a long row"}
                      : (pair){ref_power(11, 150, 150, 100, k, f64), ref_power(12, 150, 150, 70, k, f64), "power law"};
    tulle_matrix *want = cpu_product(&p.A.view, &p.B.view, &(tulle_options){.drop_zeros = job == job_all_options});
    tulle_csr w = tulle_matrix_view(want);
    int failed = 0;
    bool done = false;
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", shared);
    tulle_matrix *C = NULL;
    for (int n = 1; !done && n < 300 && test_failures < 10; n++) {
        tulle_matrix_free(C);
        C = NULL;
        gpu_fail_at(ctx, n);
        tulle_status status = job(ctx, &p, &C);
        done = ctx->gpu->requests < (uint64_t)n;                /* there were fewer than n allocations */
        CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && !done), "%s: allocation %d: %s: %s", name, n,
              tulle_status_name(status), tulle_ctx_error(ctx));
        CHECK((status == TULLE_OK) == (C != NULL), "%s: allocation %d: half a result", name, n);
        if (status != TULLE_OK) {
            failed++;
            CHECK(strpbrk(tulle_ctx_error(ctx), "0123456789") && strstr(tulle_ctx_error(ctx), "byte"),
                  "%s: allocation %d: \"%s\"", name, n, tulle_ctx_error(ctx));
            status = job(ctx, &p, &C);                          /* the same call succeeds after the failure */
            CHECK(status == TULLE_OK, "%s: after allocation %d: %s", name, n, tulle_ctx_error(ctx));
        }
        tulle_csr c = tulle_matrix_view(C);
        if (C) CHECK(ref_same(&c, &w, name), "allocation %d", n);
        tulle_matrix_free(C);
        C = NULL;
        uint64_t held = tl_dmem_held(ctx->gpu);
        status = job(ctx, &p, &C);
        CHECK(status == TULLE_OK, "%s: once more after allocation %d: %s", name, n, tulle_ctx_error(ctx));
        uint64_t now = tl_dmem_held(ctx->gpu);                  /* C is on the host */
        CHECK(now == held, "%s: allocation %d: %" PRIu64 " bytes were held, then %" PRIu64, name, n, held, now);
    }
    tulle_ctx_free(ctx);                                        /* matrices outlive their context */
    tulle_matrix_free(C);
    CHECK(done && (failed > 0) == !goes_on, "%s: %d allocations failed, done %d", name, failed, done);
    tulle_matrix_free(want);
    pair_free(&p);
}

/* A wrapper of the device's driver that counts lanes between fork and join. */
static struct { const tl_driver *real; int open, forks, failures; } lanes;

static tulle_status counted_fork(tl_base *b, tl_device *d, int count)
{
    if (count > 1) lanes.open++, lanes.forks++;
    return lanes.real->fork(b, d, count);
}

static tulle_status counted_join(tl_base *b, tl_device *d, int count)
{
    lanes.open = 0;
    return lanes.real->join(b, d, count);
}

/* If the launch of one of several parallel kernels fails, the queue waits for the others, since their memory
 * is given to the next request. */
static void a_failure_leaves_no_lane_open(void)
{
    const ref_kind k = REF_INTEGERS;
    const char *const policies[] = {"auto", "speck", "delta", "bhsparse"};
    pair p = {ref_power(24, 1000, 1000, 300, k, f64), ref_power(25, 1000, 1000, 300, k, f64), "power law"};
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "2048");
    tl_driver counted = *ctx->gpu->driver;
    lanes.real = ctx->gpu->driver;
    lanes.forks = lanes.open = lanes.failures = 0;
    counted.fork = counted_fork;
    counted.join = counted_join;
    ctx->gpu->driver = &counted;
    for (int i = 0; i < 4; i++) {
        bool done = false;
        for (int n = 1; !done && n < 300; n++) {
            tulle_plan *plan = NULL;
            const tulle_options o = {.policy = policies[i]};
            gpu_fail_at(ctx, n);
            tulle_status status = tulle_plan_create(ctx, &p.A.view, &p.B.view, &o, &plan);
            done = ctx->gpu->requests < (uint64_t)n;
            lanes.failures += status != TULLE_OK;
            CHECK(lanes.open == 0, "%s: allocation %d left lanes open", policies[i], n);
            lanes.open = 0;
            tulle_plan_free(plan);
        }
        CHECK(done, "%s: too many allocations", policies[i]);
    }
    CHECK(lanes.forks > 4 && lanes.failures > 4, "%d forks, %d failures", lanes.forks, lanes.failures);
    ctx->gpu->driver = lanes.real;
    tulle_ctx_free(ctx);
    pair_free(&p);
}

static void every_allocation_fails_once(void)
{
    torture("multiply", job_multiply, false, NULL);
    torture("small scratchpad", job_multiply, true, "2048");
    torture("there", job_there, false, NULL);
    torture("all options", job_all_options, false, NULL);
    torture("plan", job_plan, false, NULL);
}

static void a_warm_product_allocates_nothing(void)
{
    static const int pairs[] = {9, 15, 19, 21, 23, GPU_PAIR(5), GPU_PAIR(6)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        pair p = gpu_pair(pairs[k], REF_INTEGERS, f64, f64);
        tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &p.B.view, TULLE_DEVICE);
        tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
        uint64_t asked = 0, held = 0;
        for (int i = 0; i < 6; i++) {
            tulle_options o = {.policy = "speck", .c_place = TULLE_DEVICE};
            tulle_matrix *C = NULL;
            REQUIRE(tulle_multiply(ctx, &va, &vb, &o, &C) == TULLE_OK, "%s: %s", p.name, tulle_ctx_error(ctx));
            tulle_matrix_free(C);
            if (i > 0)
                CHECK(ctx->gpu->requests == asked && tl_dmem_held(ctx->gpu) == held, "%s: product %d asks the driver for "
                      "memory %d times", p.name, i, (int)(ctx->gpu->requests - asked));
            asked = ctx->gpu->requests;
            held = tl_dmem_held(ctx->gpu);
        }
        tulle_matrix_free(a);
        tulle_matrix_free(b);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- the cost of a product */

static void a_warm_product_waits_at_most_twice(void)
{
    static const int pairs[] = {0, 6, 9, 13, 15, 19, 21, 22, 23, GPU_PAIR(2), GPU_PAIR(5), GPU_PAIR(6)};
    tulle_ctx *ctx = gpu_ctx();
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &p.B.view, TULLE_DEVICE);
        tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
        for (int trusted = 0; trusted <= 1; trusted++)
            for (int run = 0; run < 3; run++) {
                tulle_options o = {.policy = "speck", .c_place = TULLE_DEVICE, .trust_inputs = trusted};
                tulle_matrix *C = NULL;
                tulle_stats s;
                REQUIRE(tulle_multiply(ctx, &va, &vb, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
                tulle_ctx_stats(ctx, &s);
                CHECK(s.waits >= 0 && (run == 0 || s.waits <= 2), "%s, trusted %d: %d waits", p.name, trusted, s.waits);
                tulle_matrix_free(C);
            }
        tulle_matrix_free(a);
        tulle_matrix_free(b);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

static void statistics_add_up(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < GPU_PAIRS; i++) {
        pair p = gpu_pair(i, REF_INTEGERS, f64, f64);
        tulle_options o;
        const char *way;
        for (int w = 0; gpu_way(w, &o, &way); w++) {
            if (i >= SMALL_PAIRS && w && w != 1 + i % 3) continue;      /* spECK and one of the others */
            tulle_matrix *C = NULL;
            tulle_stats s;
            REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr c = tulle_matrix_view(C);
            tulle_ctx_stats(ctx, &s);
            int64_t rows = 0, products = 0, want = ref_count_products(&p.A.view, &p.B.view);
            for (int k = 0; k < s.shares; k++) {
                CHECK(s.share[k].rows >= 0 && s.share[k].products >= 0, "%s, %s: a negative share", p.name, way);
                rows += s.share[k].rows;
                products += s.share[k].products;
            }
            CHECK(rows == p.A.view.rows, "%s, %s: shares have %" PRId64 " rows", p.name, way, rows);
            CHECK(products == want && s.products == want, "%s, %s: %" PRId64 " products in shares, %" PRId64
                  " in all, %" PRId64 " counted", p.name, way, products, s.products, want);
            CHECK(s.a_nnz == p.A.view.nnz && s.b_nnz == p.B.view.nnz && s.c_nnz == c.nnz, "%s: nnz", p.name);
            uint64_t c_bytes = (uint64_t)(c.rows + 1) * ref_index_size(c.ptr_type) + (uint64_t)c.nnz * 12;
            /* uploaded copies of A and B count */
            uint64_t copies = tl_csr_bytes(&p.A.view) + tl_csr_bytes(&p.B.view);
            CHECK(s.peak_bytes >= c_bytes + copies, "%s, %s: peak %" PRIu64 ", C has %" PRIu64 ", A and B %" PRIu64, p.name,
                  way, s.peak_bytes, c_bytes, copies);
            CHECK(s.workspace_bytes <= s.peak_bytes - c_bytes, "%s: workspace %" PRIu64, p.name, s.workspace_bytes);
            CHECK(s.sec_total > 0 && s.stages == 0, "%s: %g s, %d stages", p.name, s.sec_total, s.stages);
            CHECK(s.device && strncmp(s.device, gpu_name(), strcspn(gpu_name(), ":")) == 0, "%s: device %s", p.name, s.device);
            if (o.policy) CHECK(s.policy && strcmp(s.policy, o.policy) == 0, "policy %s, not %s", s.policy, o.policy);
            tulle_matrix_free(C);
        }
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* Operands that lie on the device already are no part of the peak, nor is what a context keeps for later. */
static void operands_there_are_not_counted(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(GPU_PAIR(5), REF_INTEGERS, f64, f64);
    tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *b = gpu_moved(ctx, &p.B.view, TULLE_DEVICE), *C = NULL;
    tulle_csr va = tulle_matrix_view(a), vb = tulle_matrix_view(b);
    uint64_t peak[3];
    for (int i = 0; i < 3; i++) {
        tulle_stats s;
        REQUIRE(tulle_multiply(ctx, i == 1 ? &va : &p.A.view, i == 1 ? &vb : &p.B.view, NULL, &C) == TULLE_OK, "%s",
                tulle_ctx_error(ctx));
        tulle_matrix_free(C);
        tulle_ctx_stats(ctx, &s);
        peak[i] = s.peak_bytes;
    }
    const uint64_t copies = tl_csr_bytes(&p.A.view) + tl_csr_bytes(&p.B.view);
    CHECK(peak[0] >= peak[1] + copies && peak[0] == peak[2], "from the host %" PRIu64 " and %" PRIu64
          ", from the device %" PRIu64 " bytes; A and B have %" PRIu64, peak[0], peak[2], peak[1], copies);
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void stages_have_names_and_fit_into_the_whole(void)
{
    tulle_ctx *ctx = gpu_ctx();
    static const int pairs[] = {15, 19, 23, GPU_PAIR(2)};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        pair p = gpu_pair(pairs[n], REF_INTEGERS, f64, f64);
        tulle_options o = {.policy = "speck", .time_stages = 1};
        tulle_matrix *C = NULL;
        tulle_stats s;
        double sum = 0;
        bool numeric = false, symbolic = false;
        REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        tulle_ctx_stats(ctx, &s);
        REQUIRE(s.stages >= 3 && s.stages <= TULLE_MAX_STAGES, "%d stages", s.stages);
        for (int i = 0; i < s.stages; i++) {
            REQUIRE(s.stage[i].name && *s.stage[i].name, "stage %d has no name", i);
            CHECK(s.stage[i].seconds >= 0 && isfinite(s.stage[i].seconds), "%s takes %g s", s.stage[i].name,
                  s.stage[i].seconds);
            for (int k = 0; k < i; k++)
                CHECK(strcmp(s.stage[i].name, s.stage[k].name) != 0, "two stages \"%s\"", s.stage[i].name);
            sum += s.stage[i].seconds;
            numeric = numeric || (strstr(s.stage[i].name, "numeric") && s.stage[i].seconds > 0);
            symbolic = symbolic || (strstr(s.stage[i].name, "symbolic") && s.stage[i].seconds > 0);
        }
        CHECK(numeric && symbolic, "%s: symbolic or numeric takes no time", p.name);
        CHECK(sum > 0 && sum <= s.sec_total * 1.01 + 1e-5, "%s: stages take %g of %g s", p.name, sum, s.sec_total);
        tulle_matrix_free(C);
        pair_free(&p);
    }
    tulle_ctx_free(ctx);
}

/* ---- contexts and devices */

static void names_of_devices(void)
{
    static const char *const wrong[] = {"opencl:77", "cuda:77", "opencl:", "opencl:0x", "opencl:-1", "gpu", "", "cpu:0", "CUDA:0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tulle_ctx *ctx = NULL;
        tulle_status status = tulle_ctx_create(wrong[i], NULL, &ctx);
        CHECK(status == TULLE_EDEVICE && !ctx, "\"%s\": %s", wrong[i], tulle_status_name(status));
        tulle_ctx_free(ctx);
    }
    bool found = false, cpu = false;
    for (int i = 0; i < tulle_device_count(); i++) {
        tulle_device d;
        REQUIRE(tulle_device_info(i, &d) == TULLE_OK, "device %d", i);
        CHECK(*d.name && (d.usable ? !*d.why_not : *d.why_not), "%s: usable %d, why not: %s", d.name, d.usable, d.why_not);
        cpu = cpu || strcmp(d.name, "cpu") == 0;
        if (strcmp(d.name, gpu_name()) != 0) continue;
        found = true;
        CHECK(d.usable && *d.text && d.memory_bytes > 0, "%s: %s", d.name, d.text);
    }
    CHECK(found && cpu, "%s is not in the list, or the CPU is not", gpu_name());
    char driver[16];
    tulle_ctx *ctx = NULL;
    snprintf(driver, sizeof driver, "%.*s", (int)strcspn(gpu_name(), ":"), gpu_name());
    CHECK(tulle_ctx_create(driver, NULL, &ctx) == TULLE_OK, "%s without a number", driver);
    tulle_ctx_free(ctx);
}

static void matrices_outlive_their_context(void)
{
    pair p = gpu_pair(9, REF_INTEGERS, f64, f64);
    tulle_ctx *ctx = gpu_ctx();
    tulle_options o = {.c_place = TULLE_DEVICE};
    tulle_matrix *a = gpu_moved(ctx, &p.A.view, TULLE_DEVICE), *C = NULL;
    REQUIRE(tulle_multiply(ctx, &p.A.view, &p.B.view, &o, &C) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    tulle_ctx_free(ctx);
    CHECK(tulle_matrix_view(C).place == TULLE_DEVICE, "C is gone");
    tulle_matrix_free(C);
    tulle_matrix_free(a);
    pair_free(&p);
}

static void kept_memory_goes_back_and_comes_again(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(15, REF_INTEGERS, f64, f64);
    tulle_matrix *C = cpu_product(&p.A.view, &p.B.view, NULL);
    tulle_csr want = tulle_matrix_view(C);
    for (int i = 0; i < 4; i++) {
        gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, i % 2 ? PLACES - 1 : 0, &want, "after trimming");
        tulle_ctx_trim(ctx);
    }
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

static void *work_of_a_thread(void *arg)
{
    const pair *p = arg;
    tulle_ctx *ctx = NULL;
    tulle_matrix *C = NULL;
    if (tulle_ctx_create(gpu_name(), NULL, &ctx) != TULLE_OK) return NULL;
    for (int i = 0; i < 3; i++) {
        tulle_matrix_free(C);
        C = NULL;
        if (tulle_multiply(ctx, &p->A.view, &p->B.view, NULL, &C) != TULLE_OK) break;
    }
    tulle_ctx_free(ctx);
    return C;
}

static void contexts_in_threads(void)
{
    enum { THREADS = 3 };
    static const int pairs[THREADS] = {9, 15, 21};
    pthread_t thread[THREADS];
    pair p[THREADS];
    for (int i = 0; i < THREADS; i++) p[i] = gpu_pair(pairs[i], REF_INTEGERS, f64, f64);
    for (int i = 0; i < THREADS; i++) REQUIRE(pthread_create(&thread[i], NULL, work_of_a_thread, &p[i]) == 0, "thread");
    for (int i = 0; i < THREADS; i++) {
        void *got = NULL;
        pthread_join(thread[i], &got);
        CHECK(got != NULL, "thread %d has no product", i);
        tulle_csr c = tulle_matrix_view(got);
        ref want = ref_product(&p[i].A.view, &p[i].B.view);
        if (got) CHECK(ref_same(&c, &want.view, p[i].name), "thread %d", i);
        tulle_matrix_free(got);
        ref_free(&want);
        pair_free(&p[i]);
    }
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    (void)stage;
    (void)fraction;
    ++*(int *)user;
    return 1;
}

static void a_caller_can_stop_a_product(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(21, REF_INTEGERS, f64, f64);
    ref want = ref_product(&p.A.view, &p.B.view);
    tulle_matrix *C = NULL;
    int asked = 0;
    tulle_ctx_set_progress(ctx, stop_at_once, &asked);
    tulle_status status = tulle_multiply(ctx, &p.A.view, &p.B.view, NULL, &C);
    CHECK(asked > 0, "the callback was never asked");
    CHECK(status == TULLE_ECANCEL && !C, "%s after %d calls", tulle_status_name(status), asked);
    tulle_matrix_free(C);
    tulle_ctx_set_progress(ctx, NULL, NULL);
    gpu_product_is(ctx, &p.A.view, &p.B.view, NULL, 0, &want.view, "afterwards");
    ref_free(&want);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

/* ---- estimates and checks on a device's context */

static void estimates_and_checks(void)
{
    tulle_ctx *ctx = gpu_ctx();
    pair p = gpu_pair(19, REF_REALS, f64, f64);
    tulle_forecast f;
    tulle_options o = {.policy = "speck"};
    REQUIRE(tulle_estimate(ctx, &p.A.view, &p.B.view, &o, &f) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    /* It is that of a CPU, accumulators and bytes included; only the device differs. */
    tulle_ctx *cpu = NULL;
    tulle_forecast g;
    REQUIRE(tulle_ctx_create("cpu", NULL, &cpu) == TULLE_OK, "cpu");
    REQUIRE(tulle_estimate(cpu, &p.A.view, &p.B.view, &o, &g) == TULLE_OK, "%s", tulle_ctx_error(cpu));
    tulle_ctx_free(cpu);
    CHECK(f.products == g.products && f.nnz_lower == g.nnz_lower && f.nnz_estimate == g.nnz_estimate
              && f.nnz_upper == g.nnz_upper && f.bytes_estimate == g.bytes_estimate && f.bytes_upper == g.bytes_upper,
          "%" PRIu64 " and %" PRIu64 " bytes", f.bytes_estimate, g.bytes_estimate);
    CHECK(f.shares == g.shares && f.shares > 0, "%d and %d shares", f.shares, g.shares);
    for (int i = 0; i < f.shares; i++)
        CHECK(strcmp(f.share[i].name, g.share[i].name) == 0 && f.share[i].rows == g.share[i].rows
                  && f.share[i].products == g.share[i].products, "%s and %s", f.share[i].name, g.share[i].name);
    tulle_matrix *C = gpu_product(ctx, &p.A.view, &p.B.view, o, 0, "a product to check");
    REQUIRE(C, "no product");
    tulle_csr c = tulle_matrix_view(C);
    CHECK(f.products == ref_count_products(&p.A.view, &p.B.view) && f.nnz_lower <= c.nnz && c.nnz <= f.nnz_upper,
          "%" PRId64 " <= %" PRId64 " <= %" PRId64, f.nnz_lower, c.nnz, f.nnz_upper);
    double error = -1;
    CHECK(tulle_product_check(ctx, &p.A.view, &p.B.view, &c, &o, &error) == TULLE_OK && error < 1e-10, "%s, error %g",
          tulle_ctx_error(ctx), error);
    ((double *)tulle_matrix_values(C))[c.nnz / 2] += 1e3;
    CHECK(tulle_product_check(ctx, &p.A.view, &p.B.view, &c, &o, &error) == TULLE_ECHECK, "a wrong value, error %g", error);
    tulle_matrix_free(C);
    pair_free(&p);
    tulle_ctx_free(ctx);
}

TEST_MAIN(TEST(plans_run_with_new_values), TEST(plans_analyse_once), TEST(patterns_alone_are_multiplied), TEST(plans_of_matrices_there), TEST(plans_of_transposed_operands),
          TEST(blocks_give_the_same_product_for_any_limit), TEST(every_engine_takes_a_range_of_rows), TEST(a_caller_can_stop_the_blocks),
          TEST(a_limit_is_kept_or_refused_with_a_number), TEST(bad_operands_are_named_as_on_the_cpu),
          TEST(a_view_of_a_with_other_columns_is_not_a), TEST(shapes_and_types_that_do_not_agree), TEST(matrices_there_in_functions_of_the_host),
          TEST(every_allocation_fails_once), TEST(a_failure_leaves_no_lane_open), TEST(a_warm_product_allocates_nothing),
          TEST(a_warm_product_waits_at_most_twice), TEST(statistics_add_up), TEST(operands_there_are_not_counted),
          TEST(stages_have_names_and_fit_into_the_whole), TEST(names_of_devices),
          TEST(matrices_outlive_their_context), TEST(kept_memory_goes_back_and_comes_again),
          TEST(contexts_in_threads), TEST(a_caller_can_stop_a_product), TEST(estimates_and_checks))
