/* SPDX-License-Identifier: MIT
 *
 * view_entries.h - a table of all public functions that take a view: each entry passes a given view to one
 * function, as one of its arguments, with valid other operands.  So anything that must hold for views in all
 * functions (an error, a result) can be tested in one loop, on every device. */
#ifndef TULLE_VIEW_ENTRIES_H
#define TULLE_VIEW_ENTRIES_H
#include "reference.h"
#include "test.h"
#include <stdio.h>
#include <unistd.h>

enum { ENTRY_ROWS = 12, ENTRY_COLUMNS = 3 };

/* A is square, with values of double; X and Y have as many rows. */
typedef struct entry_operands {
    const tulle_csr   *A;
    const tulle_dense *X;
    tulle_dense       *Y;
    bool               trust;           /* option trust_inputs: views are not checked */
} entry_operands;

static inline int entry_block(void *user, int64_t first_row, const tulle_csr *block)
{
    (void)user, (void)first_row, (void)block;
    return 0;
}

/* A unique file name in the program's folder. */
static inline const char *entry_path(const char *ending)
{
    static char path[64];
    snprintf(path, sizeof path, "view_entries.%ld%s", (long)getpid(), ending);
    return path;
}

#define ENTRY_ARGUMENTS tulle_ctx *ctx, const tulle_csr *V, const entry_operands *x
#define ENTRY_OPTIONS   &(tulle_options){.trust_inputs = x->trust}
#define ENTRY_SPMM      &(tulle_spmm_options){.trust_inputs = x->trust}
/* For functions that return a matrix. */
#define ENTRY_MAKES(name, call)                                                                   \
    static inline tulle_status name(ENTRY_ARGUMENTS)                                              \
    {                                                                                             \
        tulle_matrix *out = NULL;                                                                 \
        (void)x;                                                                                  \
        tulle_status status = (call);                                                             \
        tulle_matrix_free(out);                                                                   \
        return status;                                                                            \
    }
#define ENTRY_PLANS(name, call)                                                                   \
    static inline tulle_status name(ENTRY_ARGUMENTS)                                              \
    {                                                                                             \
        tulle_plan *out = NULL;                                                                   \
        tulle_status status = (call);                                                             \
        tulle_plan_free(out);                                                                     \
        return status;                                                                            \
    }
#define ENTRY_CALLS(name, call)                                                                   \
    static inline tulle_status name(ENTRY_ARGUMENTS)                                              \
    {                                                                                             \
        (void)x;                                                                                  \
        return (call);                                                                            \
    }

ENTRY_CALLS(entry_check, tulle_csr_check(ctx, V))
ENTRY_MAKES(entry_sort, tulle_csr_sort(ctx, V, &out))
ENTRY_MAKES(entry_transpose, tulle_csr_transpose(ctx, V, TULLE_TRANSPOSE, &out))
ENTRY_MAKES(entry_convert, tulle_csr_convert(ctx, V, TULLE_F32, TULLE_I64, TULLE_I64, &out))
ENTRY_MAKES(entry_move, tulle_csr_move(ctx, V, TULLE_HOST, &out))
ENTRY_MAKES(entry_move_there, tulle_csr_move(ctx, V, TULLE_DEVICE, &out))
ENTRY_MAKES(entry_adopt, tulle_matrix_adopt(ctx, V, NULL, NULL, &out))
ENTRY_MAKES(entry_multiply_a, tulle_multiply(ctx, V, x->A, ENTRY_OPTIONS, &out))
ENTRY_MAKES(entry_multiply_b, tulle_multiply(ctx, x->A, V, ENTRY_OPTIONS, &out))
ENTRY_MAKES(entry_multiply_both, tulle_multiply(ctx, V, V, ENTRY_OPTIONS, &out))
ENTRY_CALLS(entry_blocks_a, tulle_multiply_blocks(ctx, V, x->A, ENTRY_OPTIONS, entry_block, NULL))
ENTRY_CALLS(entry_blocks_b, tulle_multiply_blocks(ctx, x->A, V, ENTRY_OPTIONS, entry_block, NULL))
ENTRY_CALLS(entry_estimate_a, tulle_estimate(ctx, V, x->A, ENTRY_OPTIONS, &(tulle_forecast){.products = 0}))
ENTRY_CALLS(entry_estimate_b, tulle_estimate(ctx, x->A, V, ENTRY_OPTIONS, &(tulle_forecast){.products = 0}))
ENTRY_CALLS(entry_verify_a, tulle_product_check(ctx, V, x->A, x->A, ENTRY_OPTIONS, &(double){0}))
ENTRY_CALLS(entry_verify_b, tulle_product_check(ctx, x->A, V, x->A, ENTRY_OPTIONS, &(double){0}))
ENTRY_CALLS(entry_verify_c, tulle_product_check(ctx, x->A, x->A, V, ENTRY_OPTIONS, &(double){0}))
ENTRY_PLANS(entry_plan_a, tulle_plan_create(ctx, V, x->A, ENTRY_OPTIONS, &out))
ENTRY_PLANS(entry_plan_b, tulle_plan_create(ctx, x->A, V, ENTRY_OPTIONS, &out))
ENTRY_CALLS(entry_spmm, tulle_spmm(ctx, NULL, V, x->X, NULL, x->Y, ENTRY_SPMM))

static inline tulle_status entry_apply(ENTRY_ARGUMENTS)
{
    return tulle_csr_apply(ctx, V, x->X->values, x->Y->values);
}

static inline tulle_status entry_write(ENTRY_ARGUMENTS)
{
    const char *path = entry_path(".tulle");
    (void)x;
    tulle_status status = tulle_write(ctx, path, V);
    remove(path);
    return status;
}

static inline tulle_status entry_write_symmetric(ENTRY_ARGUMENTS)
{
    const char *path = entry_path(".mtx");
    (void)x;
    tulle_status status = tulle_write_symmetric(ctx, path, V);
    remove(path);
    return status;
}

static inline tulle_status entry_put(ENTRY_ARGUMENTS)
{
    tulle_writer *writer = NULL;
    const char *path = entry_path(".put.mtx");
    tulle_status status = tulle_writer_create(ctx, path, V->rows, V->cols, x->A->val_type, &writer);
    if (status == TULLE_OK) status = tulle_writer_put(writer, V);
    tulle_writer_free(writer);
    remove(path);
    return status;
}

static inline tulle_status entry_spmm_plan(ENTRY_ARGUMENTS)
{
    tulle_spmm_plan *plan = NULL;
    tulle_status status = tulle_spmm_plan_create(ctx, V, ENTRY_SPMM, &plan);
    tulle_spmm_plan_free(plan);
    return status;
}

typedef struct view_entry {
    const char *name;
    tulle_status (*call)(ENTRY_ARGUMENTS);
} view_entry;

static const view_entry view_entries[] = {
    {"csr_check", entry_check}, {"csr_sort", entry_sort}, {"csr_transpose", entry_transpose},
    {"csr_convert", entry_convert}, {"csr_move", entry_move}, {"csr_move to the device", entry_move_there},
    {"csr_apply", entry_apply}, {"matrix_adopt", entry_adopt}, {"write", entry_write},
    {"write_symmetric", entry_write_symmetric}, {"writer_put", entry_put}, {"multiply, A", entry_multiply_a},
    {"multiply, B", entry_multiply_b}, {"multiply, both", entry_multiply_both},
    {"multiply_blocks, A", entry_blocks_a},
    {"multiply_blocks, B", entry_blocks_b}, {"estimate, A", entry_estimate_a},
    {"estimate, B", entry_estimate_b},
    {"product_check, A", entry_verify_a}, {"product_check, B", entry_verify_b},
    {"product_check, C", entry_verify_c},
    {"plan_create, A", entry_plan_a}, {"plan_create, B", entry_plan_b}, {"spmm", entry_spmm},
    {"spmm_plan_create", entry_spmm_plan},
};

enum { VIEW_ENTRIES = sizeof view_entries / sizeof *view_entries };

/* ---- functions that take a dense view */

#define DENSE_ARGUMENTS tulle_ctx *ctx, tulle_dense *V, const entry_operands *x

static inline tulle_status entry_dense_convert(DENSE_ARGUMENTS)
{
    tulle_dense_matrix *out = NULL;
    (void)x;
    tulle_status status = tulle_dense_convert(ctx, V, TULLE_BY_COLS, TULLE_F32, &out);
    tulle_dense_free(out);
    return status;
}

static inline tulle_status entry_dense_move(DENSE_ARGUMENTS)
{
    tulle_dense_matrix *out = NULL;
    (void)x;
    tulle_status status = tulle_dense_move(ctx, V, TULLE_DEVICE, &out);
    tulle_dense_free(out);
    return status;
}

static inline tulle_status entry_dense_write(DENSE_ARGUMENTS)
{
    const char *path = entry_path(".npy");
    (void)x;
    tulle_status status = tulle_dense_write(ctx, path, V);
    remove(path);
    return status;
}

static inline tulle_status entry_spmm_x(DENSE_ARGUMENTS)
{
    return tulle_spmm(ctx, NULL, x->A, V, NULL, x->Y, ENTRY_SPMM);
}

static inline tulle_status entry_spmm_y(DENSE_ARGUMENTS)
{
    return tulle_spmm(ctx, NULL, x->A, x->X, NULL, V, ENTRY_SPMM);
}

static inline tulle_status entry_run(tulle_ctx *ctx, const tulle_dense *X, tulle_dense *Y,
                                     const entry_operands *x)
{
    tulle_spmm_plan *plan = NULL;
    tulle_status status = tulle_spmm_plan_create(ctx, x->A, ENTRY_SPMM, &plan);
    if (status == TULLE_OK) status = tulle_spmm_plan_run(plan, NULL, X, NULL, Y);
    tulle_spmm_plan_free(plan);
    return status;
}

static inline tulle_status entry_run_x(DENSE_ARGUMENTS)
{
    return entry_run(ctx, V, x->Y, x);
}

static inline tulle_status entry_run_y(DENSE_ARGUMENTS)
{
    return entry_run(ctx, x->X, V, x);
}

typedef struct dense_entry {
    const char *name;
    tulle_status (*call)(DENSE_ARGUMENTS);
} dense_entry;

static const dense_entry dense_entries[] = {
    {"dense_convert", entry_dense_convert}, {"dense_move", entry_dense_move},
    {"dense_write", entry_dense_write},
    {"spmm, X", entry_spmm_x}, {"spmm, Y", entry_spmm_y}, {"spmm_plan_run, X", entry_run_x},
    {"spmm_plan_run, Y", entry_run_y},
};

enum { DENSE_ENTRIES = sizeof dense_entries / sizeof *dense_entries };

/* ---- tests of all of them */

/* Every function rejects a view with a nonzero reserved word, and the message says so. */
static inline void views_with_reserved_words_are_refused(tulle_ctx *ctx)
{
    ref A = ref_identity(ENTRY_ROWS, (ref_types){TULLE_F64, TULLE_I32, TULLE_I32});
    static double x[ENTRY_ROWS * ENTRY_COLUMNS], y[ENTRY_ROWS * ENTRY_COLUMNS];
    tulle_dense X = tulle_dense_make(ENTRY_ROWS, ENTRY_COLUMNS, 0, TULLE_BY_ROWS, x, TULLE_F64);
    tulle_dense Y = tulle_dense_make(ENTRY_ROWS, ENTRY_COLUMNS, 0, TULLE_BY_ROWS, y, TULLE_F64);
    for (int trust = 0; trust < 2; trust++) {
        const entry_operands operands = {&A.view, &X, &Y, trust};
        for (int i = 0; i < VIEW_ENTRIES; i++) {
            tulle_csr bad = A.view;
            tulle_status status = view_entries[i].call(ctx, &bad, &operands);
            CHECK(status == TULLE_OK, "%s: %s: %s", view_entries[i].name, tulle_status_name(status),
                  tulle_ctx_error(ctx));
            bad.reserved[1] = (uint64_t)1 << 63;
            status = view_entries[i].call(ctx, &bad, &operands);
            CHECK(status == TULLE_EINVAL, "%s: %s", view_entries[i].name, tulle_status_name(status));
            CHECK(strstr(tulle_ctx_error(ctx), ": reserved[1] is not zero"), "%s: %s", view_entries[i].name,
                  tulle_ctx_error(ctx));
        }
        for (int i = 0; i < DENSE_ENTRIES; i++) {
            tulle_dense bad = strchr(dense_entries[i].name, 'Y') ? Y : X;
            tulle_status status = dense_entries[i].call(ctx, &bad, &operands);
            CHECK(status == TULLE_OK, "%s: %s: %s", dense_entries[i].name, tulle_status_name(status),
                  tulle_ctx_error(ctx));
            bad.reserved[0] = 1;
            status = dense_entries[i].call(ctx, &bad, &operands);
            CHECK(status == TULLE_EINVAL, "%s: %s", dense_entries[i].name, tulle_status_name(status));
            CHECK(strstr(tulle_ctx_error(ctx), ": reserved[0] is not zero"), "%s: %s", dense_entries[i].name,
                  tulle_ctx_error(ctx));
        }
    }
    ref_free(&A);
}

#endif
