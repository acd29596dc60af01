/* SPDX-License-Identifier: MIT
 *
 * random.h - for tests with random calls of the library: one number determines a whole trial; contexts are
 * reused by later trials; operands of every shape, pattern, type and kind of view, each with the simple matrix
 * that it represents. */
#ifndef TULLE_RANDOM_H
#define TULLE_RANDOM_H
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <time.h>
#include "spmm_help.h"

enum { DEVICES_MOST = 16 };

typedef struct trial {
    uint64_t      seed;
    ref_rng       r;
    tulle_ctx    *ctx;
    const char   *device;
    bool          gpu;                  /* a device is a GPU: sums have any order, so values are integers     */
    bool          few_types;            /* the device compiles slowly: only double and 32-bit indices         */
    bool          dense;                /* sparse times dense                                                 */
    bool          failed;
    char          what[512];            /* what is tried, for sentences                                       */
} trial;

/* ---- choices */

static inline int64_t pick(trial *t, int64_t n) { return ref_below(&t->r, n); }
static inline bool once_in(trial *t, int64_t n) { return pick(t, n) == 0; }

/* ---- failures: the first one ends the program; its number reproduces it */

static inline void fails(trial *t, const char *why)
{
    if (t->failed) return;
    t->failed = true;
    printf("FAIL seed %" PRIu64 " on \"%s\": %s\n     %s\n     the context says: %s\n", t->seed, t->device, why,
           t->what, tulle_ctx_error(t->ctx));
    printf("     again: random_products 0 %" PRIu64 " %s\n", t->seed, t->device);
}

#define EXPECT(t, condition) do { if (!(condition)) fails(t, #condition); } while (0)

/* ---- matrices */

static inline ref_types types_of(trial *t, tulle_type value)
{
    if (t->few_types) return (ref_types){value, TULLE_I32, TULLE_I32};
    return (ref_types){value, pick(t, 3) ? TULLE_I32 : TULLE_I64, pick(t, 3) ? TULLE_I32 : TULLE_I64};
}

static inline ref_kind kind_of(trial *t)
{
    if (t->gpu) return once_in(t, 4) ? REF_CANCELLING : REF_INTEGERS;
    return pick(t, 8) < 5 ? REF_REALS : once_in(t, 2) ? REF_CANCELLING : REF_INTEGERS;
}

static inline int64_t size_at(trial *t)
{
    static const int64_t bounds[] = {2, 5, 20, 20, 60, 60, 200, 200, 700};
    return pick(t, bounds[pick(t, sizeof bounds / sizeof *bounds)]);
}

/* Replaces some values by special ones. */
static inline void put_odd_values(trial *t, ref *A)
{
    static const double odd[] = {INFINITY, -INFINITY, NAN, -0.0, 0.0, 1e-310, 1e308, -1e308, 1e-45};
    for (int64_t n = 1 + pick(t, 4); n > 0 && A->view.nnz > 0; n--)
        ref_set_val(A, pick(t, A->view.nnz), (ref_value){odd[pick(t, 9)], odd[pick(t, 9)]});
}

/* A valid sorted matrix with one of many patterns. */
static inline ref any_matrix(trial *t, int64_t rows, int64_t cols, ref_types types)
{
    const ref_kind kind = kind_of(t);
    const uint64_t seed = ref_next(&t->r) >> 8;
    const bool square = rows == cols && rows > 0;
    const int64_t unknowns = 1 + pick(t, 5);
    ref A;
    switch (rows == 0 || cols == 0 ? 0 : pick(t, 10)) {
    case 0: A = ref_random(seed, rows, cols, cols > 0 ? 0.3 : 0, kind, types); break;
    case 1: A = cols < 40 && rows < 40 ? ref_dense(rows, cols, kind, types)
                                       : ref_random(seed, rows, cols, 1, kind, types); break;
    case 2: A = ref_power(seed, rows, cols, 1 + pick(t, cols < 300 ? cols : 300), kind, types); break;
    case 3: A = square ? ref_arrow(rows, kind, types) : ref_random(seed, rows, cols, 2, kind, types); break;
    case 4: A = square ? ref_band(rows, pick(t, 6), kind, types)
                       : ref_random(seed, rows, cols, 4, kind, types); break;
    case 5: A = square && rows % unknowns == 0 ? ref_blocks(rows / unknowns, pick(t, 3), unknowns, kind, types)
                       : ref_random(seed, rows, cols, 3, kind, types); break;
    case 6: A = square ? ref_permutation(seed, rows, types)
                       : ref_random(seed, rows, cols, 1, kind, types); break;
    default: A = ref_random(seed, rows, cols, (double)(1 + pick(t, 12)), kind, types); break;
    }
    if (!t->gpu && once_in(t, 12)) put_odd_values(t, &A);
    return A;
}

/* ---- operands: the view for the library, and the matrix that it represents */

typedef struct operand {
    ref       given;                    /* the arrays; of a slice those of the larger matrix            */
    tulle_csr view;
    int64_t   first;                    /* entry of the arrays that the view begins with                */
    ref       before;                   /* a copy of the arrays                                         */
    ref       plain;                    /* op(A), sorted, without duplicates                            */
    int       op;
    bool      in_order;                 /* rows sorted, no column twice                                 */
} operand;

static inline bool rows_in_order(const tulle_csr *A)
{
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = ref_ptr(A, i) + 1; k < ref_ptr(A, i + 1); k++)
            if (ref_col(A, k) <= ref_col(A, k - 1)) return false;
    return true;
}

/* The matrix as a slice of rows of a larger one, which is invalid outside of the slice. */
static inline void embed(trial *t, operand *x, ref *A)
{
    const ref_types types = {A->view.val_type, A->view.ptr_type, A->view.idx_type};
    const int64_t above = 1 + pick(t, 5), first = 1 + pick(t, 9), behind = pick(t, 5), rows = A->view.rows;
    x->given = ref_new(above + rows + 2, A->view.cols, first + A->view.nnz + behind, types);
    for (int64_t i = 0; i <= above + rows + 2; i++) ref_set_ptr(&x->given, i, -99);
    for (int64_t i = 0; i <= rows; i++) ref_set_ptr(&x->given, above + i, first + ref_ptr(&A->view, i));
    for (int64_t k = 0; k < x->given.view.nnz; k++) {
        const bool within = k >= first && k < first + A->view.nnz;
        ref_set_col(&x->given, k, within ? ref_col(&A->view, k - first) : -5);
        ref_set_val(&x->given, k, within ? ref_val(&A->view, k - first) : (ref_value){NAN, NAN});
    }
    x->first = first;
    x->view = tulle_csr_make(rows, A->view.cols,
                             (char *)x->given.row_ptr + (size_t)above * ref_index_size(types.ptr), types.ptr,
                             x->given.col_idx, types.idx, x->given.values, types.val);
    ref_free(A);
}

/* The simple matrix that an operand represents, with its current values. */
static inline void settle_plain(operand *x)
{
    ref rows = ref_new(x->view.rows, x->view.cols, x->view.nnz,
                       (ref_types){x->view.val_type, x->view.ptr_type, x->view.idx_type});
    for (int64_t i = 0; i <= rows.view.rows; i++) ref_set_ptr(&rows, i, ref_ptr(&x->view, i) - x->first);
    for (int64_t k = 0; k < rows.view.nnz; k++) {
        ref_set_col(&rows, k, ref_col(&x->view, x->first + k));
        ref_set_val(&rows, k, ref_value_at(x->given.values, x->view.val_type, x->first + k));
    }
    ref sorted = ref_sorted(&rows.view);
    ref_free(&x->plain);
    x->plain = x->op ? ref_transpose(&sorted.view, (tulle_op)x->op) : ref_copy(&sorted.view,
                       (ref_types){x->view.val_type, x->view.ptr_type, x->view.idx_type});
    ref_free(&sorted);
    ref_free(&rows);
}

static inline void keep_before(operand *x)
{
    ref_free(&x->before);
    x->before = ref_copy(&x->given.view, (ref_types){x->view.val_type, x->view.ptr_type, x->view.idx_type});
}

/* op(A) is rows x cols. */
static inline operand operand_new(trial *t, int64_t rows, int64_t cols, tulle_type value, int op, bool unsorted)
{
    operand x = {.op = op};
    ref A = any_matrix(t, op ? cols : rows, op ? rows : cols, types_of(t, value));
    if (unsorted) {
        ref mixed = ref_shuffled(&A.view, ref_next(&t->r) >> 8, once_in(t, 2));
        ref_free(&A);
        A = mixed;
    }
    x.in_order = rows_in_order(&A.view);
    if (once_in(t, 4)) {
        embed(t, &x, &A);
    } else {
        x.given = A;
        x.view = A.view;
    }
    settle_plain(&x);
    keep_before(&x);
    return x;
}

static inline void operand_free(operand *x)
{
    ref_free(&x->given);
    ref_free(&x->before);
    ref_free(&x->plain);
}

/* New values for the same pattern. */
static inline void operand_refill(trial *t, operand *x)
{
    ref_fill(&x->given, kind_of(t), ref_next(&t->r) >> 8);
    settle_plain(x);
    keep_before(x);
}

/* Whether the arrays are unchanged. */
static inline bool operand_untouched(const operand *x)
{
    return ref_untouched(&x->given.view, &x->before);
}

/* ---- contexts, which are kept, because each new one loads the kernels again */

static inline tulle_ctx *context_of(const char *device)
{
    static struct { char name[256]; tulle_ctx *ctx; } kept[DEVICES_MOST];
    int i = 0;
    while (i < DEVICES_MOST - 1 && kept[i].ctx && device && strcmp(kept[i].name, device) != 0) i++;
    if (!device) {                      /* all are freed */
        for (i = 0; i < DEVICES_MOST; i++) tulle_ctx_free(kept[i].ctx), kept[i].ctx = NULL;
        return NULL;
    }
    if (!kept[i].ctx) {
        char why[512];
        if (tulle_ctx_create_why(device, NULL, &kept[i].ctx, why, sizeof why) != TULLE_OK) {
            printf("FAIL the device \"%s\": %s\n", device, why);
            exit(1);
        }
        snprintf(kept[i].name, sizeof kept[i].name, "%s", device);
    }
    return kept[i].ctx;
}

#endif
