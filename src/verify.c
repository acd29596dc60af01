/* SPDX-License-Identifier: MIT
 *
 * verify.c - is C = A*B?  By another road: C*x against A*(B*x), in double, for random x.
 *
 * The difference in each row is held against |A|*(|B|*|x|), so that cancellation does not hide behind
 * large entries.  A wrong, missing or misplaced entry of C shows unless x happens to hide it; two
 * vectors are tried.  Memory: six vectors of complex doubles. */
#include "ctx.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct vector { tl_c64 *v; double *size; } vector;      /* values, and sums of absolute values */

typedef struct job {
    const tulle_csr *A;
    const vector    *x;
    vector          *y;
} job;

static tl_c64 value_at(const tulle_csr *A, int64_t k)
{
    switch (A->val_type) {
    case TULLE_F32: return (tl_c64){((const float *)A->values)[k], 0};
    case TULLE_F64: return (tl_c64){((const double *)A->values)[k], 0};
    case TULLE_C32: return (tl_c64){((const tl_c32 *)A->values)[k].re, ((const tl_c32 *)A->values)[k].im};
    default: return ((const tl_c64 *)A->values)[k];
    }
}

static void apply(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tulle_csr *A = j->A;
    int64_t row1 = tl_part(A->rows, thread + 1, threads);
    for (int64_t i = tl_part(A->rows, thread, threads); i < row1; i++) {
        tl_c64 sum = {0, 0};
        double size = 0;
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
            int64_t c = tl_get(A->col_idx, A->idx_type, k);
            tl_c64 a = value_at(A, k), x = j->x->v[c];
            sum.re += a.re * x.re + -a.im * x.im;       /* why so: mul() in cpu/kernel_types.h */
            sum.im += a.re * x.im + a.im * x.re;
            size += hypot(a.re, a.im) * j->x->size[c];
        }
        j->y->v[i] = sum;
        j->y->size[i] = size;
    }
}

static tulle_status vector_make(tl_base *b, int64_t n, vector *x)
{
    tulle_status status = TULLE_OK;
    TRY(tl_alloc(b, &x->v, n, sizeof *x->v, "a vector for the check"));
    TRY(tl_alloc(b, &x->size, n, sizeof *x->size, "a vector for the check"));
done:
    return status;
}

static void vector_done(tl_base *b, vector *x)
{
    tl_free(b, x->v);
    tl_free(b, x->size);
}

static void vector_random(vector *x, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = ((uint64_t)i + seed) * 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        double u = 0.5 + (double)(z >> 12) / 4503599627370496.0;
        x->v[i] = (tl_c64){z & 1 ? u : -u, 0};
        x->size[i] = u;
    }
}

static bool finite_at(const vector *x, int64_t i)
{
    return isfinite(x->v[i].re) && isfinite(x->v[i].im) && isfinite(x->size[i]);
}

/* The largest difference in any row, relative to what was added up there. */
static double difference(const vector *y, const vector *z, int64_t n, int64_t *row)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = hypot(y->v[i].re - z->v[i].re, y->v[i].im - z->v[i].im);
        double scale = z->size[i] > y->size[i] ? z->size[i] : y->size[i];
        if (!isfinite(scale)) {                 /* infinities and NaN must stand in the same rows */
            if (finite_at(y, i) != finite_at(z, i)) worst = INFINITY, *row = i;
            continue;
        }
        double e = scale > 0 ? d / scale : d;
        if (!(e <= worst)) worst = e, *row = i;
    }
    return worst;
}

tulle_status tl_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, const tulle_csr *C,
                              const tulle_options *options, double *error)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tulle_options o;
    tl_operands p = {0};
    tulle_csr c;
    tulle_matrix *own_c = NULL;
    vector x = {0}, u = {0}, y = {0}, z = {0};
    int64_t row = 0;
    TRY(tl_options_check(ctx, options, &o));
    TRY(tl_view_check(ctx, C, "C"));
    if (!C->values && C->nnz > 0) {
        status = tl_fail(b, TULLE_EINVAL, "C has no values");
        goto done;
    }
    TRY(tl_operands_make(ctx, A, B, &o, TL_VALUES | TL_LOOK, &p));
    TRY(tl_on_host(ctx, C, &c, &own_c));
    C = &c;
    TRY(tl_csr_check(b, C, "C", o.threads));
    if (C->rows != p.A.rows || C->cols != p.B.cols) {
        status = tl_fail(b, TULLE_ESHAPE, "C is %" PRId64 " x %" PRId64 ", the product is %" PRId64 " x %"
                         PRId64, C->rows, C->cols, p.A.rows, p.B.cols);
        goto done;
    }
    TRY(vector_make(b, p.B.cols, &x));
    TRY(vector_make(b, p.B.rows, &u));
    TRY(vector_make(b, p.A.rows, &y));
    TRY(vector_make(b, p.A.rows, &z));
    *error = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        vector_random(&x, p.B.cols, seed << 40);
        tl_team_run(b->team, o.threads, apply, &(job){&p.B, &x, &u});
        tl_team_run(b->team, o.threads, apply, &(job){&p.A, &u, &z});
        tl_team_run(b->team, o.threads, apply, &(job){C, &x, &y});
        double e = difference(&y, &z, p.A.rows, &row);
        if (!(e <= *error)) *error = e;
    }
    bool is_float = C->val_type == TULLE_F32 || C->val_type == TULLE_C32;
    double tolerance = is_float ? 1e-4 : 1e-11;
    if (!(*error <= tolerance))
        status = tl_fail(b, TULLE_ECHECK, "row %" PRId64 ": C*x differs from A*(B*x) by %.3g, %.0e is allowed",
                         row, *error, tolerance);
done:
    vector_done(b, &x);
    vector_done(b, &u);
    vector_done(b, &y);
    vector_done(b, &z);
    tl_operands_done(b, &p);
    tl_matrix_free(b, own_c);
    return status;
}
