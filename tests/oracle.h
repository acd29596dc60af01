/* SPDX-License-Identifier: MIT
 *
 * oracle.h - compares tulle's products with those of another library, on gallery matrices of all kinds.
 *
 * Integer values: pattern and values must be equal bit for bit, in every value type and both index types.
 * Random values: the pattern must be equal, and each entry must differ by at most 1e-12 of the sum of the
 * magnitudes of its products (for which the other library multiplies |A| and |B|), or be equal if the library
 * is known to add in tulle's order.  If A is rectangular, the product is A*A^T.
 *
 * An oracle is one function, oracle_product; the program is ORACLE_MAIN.  Header only, C11 and C++17. */
#ifndef TULLE_ORACLE_H
#define TULLE_ORACLE_H
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tulle.h"

/* A product of the other library: arrays from malloc, rows sorted. */
typedef struct oracle_csr {
    int64_t  rows, nnz;
    int64_t *ptr, *idx;
    void    *val;                   /* of the operands' value type */
} oracle_csr;

/* C = A*B, both of the same types; returns NULL, or an error message. */
typedef const char *(*oracle_product_fn)(const tulle_csr *A, const tulle_csr *B, oracle_csr *C);

static const char *const oracle_matrices[] = {
    "cage:9", "conf5_4", "mc2depi", "Baumann", "s3dkt3m2", "ncvxqp3", "wathen:30", "Trefethen_2000",
    "mycielskian:9", "poisson2d:150", "poisson2d:70,points=9", "poisson3d:20", "poisson3d:16,points=27",
    "elasticity3d:8,dof=3", "rmat:11,edges=8", "er:5000,per_row=7", "geometric:5000", "zipf:3000",
    "banded:3000,lower=9,upper=30,fill=0.5", "blockdiag:3000,block=17", "tridiagonal:5000", "arrow:400",
    "dense:90", "dense:30,cols=70", "prolongator:60", "tall:5000,cols=900", "wide:300,cols=9000,per_row=60",
};

/* Matrices that are tested with every combination of types. */
static const char *const oracle_all_types[] = {"cage:7", "elasticity3d:5", "rmat:9", "wide:60,cols=900"};

enum { ORACLE_BIT_FOR_BIT = 1, ORACLE_CLOSE = 0 };

static size_t oracle_size(tulle_type type)
{
    return type == TULLE_F32 ? 4 : type == TULLE_CF64 ? 16 : 8;
}

static int64_t oracle_get(const void *array, tulle_index type, int64_t i)
{
    return type == TULLE_I32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static void oracle_free(oracle_csr *C)
{
    free(C->ptr);
    free(C->idx);
    free(C->val);
    memset(C, 0, sizeof *C);
}

static bool oracle_create(int64_t rows, int64_t nnz, tulle_type type, oracle_csr *C)
{
    C->rows = rows;
    C->nnz = nnz;
    C->ptr = (int64_t *)malloc(sizeof(int64_t) * (size_t)(rows + 1));
    C->idx = (int64_t *)malloc(sizeof(int64_t) * (size_t)(nnz + 1));
    C->val = malloc(oracle_size(type) * (size_t)(nnz + 1));
    return C->ptr && C->idx && C->val;
}

/* The k-th real number of an array (complex values are two) as a double, which represents it exactly. */
static double oracle_part(const void *val, tulle_type type, int64_t k)
{
    bool narrow = type == TULLE_F32 || type == TULLE_CF32;
    return narrow ? (double)((const float *)val)[k] : ((const double *)val)[k];
}

/* Equality of numbers: -0 equals 0, because tulle's sums start from 0. */
static const char *oracle_compare(const tulle_csr *C, const oracle_csr *R, const oracle_csr *scale, char *text,
                                  size_t size)
{
    int parts = C->val_type == TULLE_CF32 || C->val_type == TULLE_CF64 ? 2 : 1;
    if (C->rows != R->rows || C->nnz != R->nnz) {
        snprintf(text, size, "%lld rows, %lld entries; the oracle has %lld, %lld", (long long)C->rows,
                 (long long)C->nnz, (long long)R->rows, (long long)R->nnz);
        return text;
    }
    for (int64_t i = 0; i < R->rows; i++) {
        if (oracle_get(C->row_ptr, C->ptr_type, i + 1) != R->ptr[i + 1]) {
            snprintf(text, size, "row %lld ends elsewhere", (long long)i);
            return text;
        }
        for (int64_t k = R->ptr[i]; k < R->ptr[i + 1]; k++) {
            int64_t j = oracle_get(C->col_idx, C->idx_type, k);
            if (j != R->idx[k]) {
                snprintf(text, size, "row %lld has column %lld, the oracle %lld", (long long)i, (long long)j,
                         (long long)R->idx[k]);
                return text;
            }
            for (int part = 0; part < parts; part++) {
                double c = oracle_part(C->values, C->val_type, k * parts + part);
                double r = oracle_part(R->val, C->val_type, k * parts + part);
                double allowed = scale ? 1e-12 * ((const double *)scale->val)[k] : 0;
                if (!(fabs(c - r) <= allowed)) {
                    snprintf(text, size, "entry (%lld, %lld) is %.17g, the oracle has %.17g", (long long)i,
                             (long long)j, c, r);
                    return text;
                }
            }
        }
    }
    return NULL;
}

/* Small imaginary parts, so that sums stay exact. */
static void oracle_imaginary(tulle_matrix *A)
{
    tulle_csr v = tulle_matrix_view(A);
    for (int64_t k = 0; k < v.nnz; k++) {
        double im = (double)(k * 7 % 11) - 5;
        if (v.val_type == TULLE_CF32) ((float *)tulle_matrix_values(A))[2 * k + 1] = (float)im;
        if (v.val_type == TULLE_CF64) ((double *)tulle_matrix_values(A))[2 * k + 1] = im;
    }
}

typedef struct oracle_job {
    tulle_ctx        *ctx;
    oracle_product_fn product;
    const char       *recipe, *values;
    tulle_type        type;
    tulle_index       index;
    int               threads;
    bool              exact;
} oracle_job;

static const char *oracle_both(const oracle_job *job, const tulle_csr *A, const tulle_csr *B, char *text,
                               size_t size)
{
    tulle_options options;
    tulle_matrix *C = NULL;
    oracle_csr R, scale;
    const char *why = NULL;
    double *a_abs = NULL, *b_abs = NULL;
    memset(&options, 0, sizeof options);
    memset(&R, 0, sizeof R);
    memset(&scale, 0, sizeof scale);
    options.threads = job->threads;
    if (tulle_multiply(job->ctx, A, B, &options, &C)) {
        why = tulle_ctx_error(job->ctx);
        goto done;
    }
    if ((why = job->product(A, B, &R))) goto done;
    if (!job->exact) {
        tulle_csr P = *A, Q = *B;
        a_abs = (double *)malloc(sizeof(double) * (size_t)(A->nnz + 1));
        b_abs = (double *)malloc(sizeof(double) * (size_t)(B->nnz + 1));
        if (!a_abs || !b_abs) {
            why = "out of memory";
            goto done;
        }
        for (int64_t k = 0; k < A->nnz; k++) a_abs[k] = fabs(((const double *)A->values)[k]);
        for (int64_t k = 0; k < B->nnz; k++) b_abs[k] = fabs(((const double *)B->values)[k]);
        P.values = a_abs;
        Q.values = b_abs;
        if ((why = job->product(&P, &Q, &scale))) goto done;
    }
    {
        tulle_csr view = tulle_matrix_view(C);
        why = view.val_type != A->val_type ? "C has another value type"
                                           : oracle_compare(&view, &R, job->exact ? NULL : &scale, text, size);
    }
done:
    if (why && why != text) {
        snprintf(text, size, "%s", why);
        why = text;
    }
    tulle_matrix_free(C);
    oracle_free(&R);
    oracle_free(&scale);
    free(a_abs);
    free(b_abs);
    return why;
}

static const char *oracle_run(const oracle_job *job, char *text, size_t size)
{
    char recipe[256];
    tulle_matrix *A = NULL, *T = NULL, *B = NULL;
    const char *why = NULL;
    snprintf(recipe, sizeof recipe, "%s%svalues=%s", job->recipe, strchr(job->recipe, ':') ? "," : ":",
             job->values);
    if (tulle_gallery(job->ctx, recipe, &T)) goto failed;
    {
        tulle_csr t = tulle_matrix_view(T), a, b;
        if (tulle_csr_convert(job->ctx, &t, job->type, job->index, job->index, &A)) goto failed;
        oracle_imaginary(A);
        a = b = tulle_matrix_view(A);
        if (a.rows != a.cols) {
            if (tulle_csr_transpose(job->ctx, &a, TULLE_TRANSPOSE, &B)) goto failed;
            b = tulle_matrix_view(B);
        }
        why = oracle_both(job, &a, &b, text, size);
    }
    goto done;
failed:
    snprintf(text, size, "%s", tulle_ctx_error(job->ctx));
    why = text;
done:
    tulle_matrix_free(A);
    tulle_matrix_free(B);
    tulle_matrix_free(T);
    return why;
}

/* Every entry of this product is computed as zero, but none may be dropped. */
static const char *oracle_zeros(const oracle_job *job, char *text, size_t size)
{
    const int32_t ptr[] = {0, 2, 4}, idx[] = {0, 1, 0, 1};
    const double a_val[] = {1, 1, 2, 2}, b_val[] = {1, 3, -1, -3};
    tulle_csr A, B;
    memset(&A, 0, sizeof A);
    A.rows = A.cols = 2;
    A.nnz = 4;
    A.row_ptr = ptr;
    A.col_idx = idx;
    A.values = a_val;
    A.ptr_type = A.idx_type = TULLE_I32;
    A.val_type = TULLE_F64;
    B = A;
    B.values = b_val;
    return oracle_both(job, &A, &B, text, size);
}

static void oracle_report(const char *who, const char *what, const char *why, int *passed, int *failed)
{
    printf("%s %s: %s%s%s\n", why ? "FAIL" : "ok  ", who, what, why ? "; " : "", why ? why : "");
    ++*(why ? failed : passed);
}

/* real_exact: the library adds the products of an entry in tulle's order. */
static int oracle_main(const char *who, oracle_product_fn product, bool real_exact, const char *only)
{
    static const tulle_type types[] = {TULLE_F32, TULLE_F64, TULLE_CF32, TULLE_CF64};
    static const char *const type_names[] = {"f32", "f64", "cf32", "cf64"};
    static const tulle_index indices[] = {TULLE_I32, TULLE_I64};
    int passed = 0, failed = 0;
    char what[256], text[512];
    oracle_job job;
    memset(&job, 0, sizeof job);
    job.product = product;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (tulle_ctx_create("cpu", NULL, &job.ctx) || tulle_ctx_set_threads(job.ctx, 2)) {
        printf("FAIL no context\n0 passed, 1 failed\n");
        return 1;
    }
    job.type = TULLE_F64;
    job.index = TULLE_I32;
    job.threads = 2;
    job.exact = true;
    oracle_report(who, "zeros that come out stay", oracle_zeros(&job, text, sizeof text), &passed, &failed);
    for (size_t m = 0; m < sizeof oracle_matrices / sizeof *oracle_matrices; m++) {
        job.recipe = oracle_matrices[m];
        if (!strstr(job.recipe, only)) continue;
        job.values = "integer";
        job.exact = true;
        snprintf(what, sizeof what, "%s, integers, bit for bit", job.recipe);
        oracle_report(who, what, oracle_run(&job, text, sizeof text), &passed, &failed);
        job.values = "random";
        job.exact = real_exact;
        snprintf(what, sizeof what, "%s, reals, %s", job.recipe, real_exact ? "bit for bit" : "1e-12");
        oracle_report(who, what, oracle_run(&job, text, sizeof text), &passed, &failed);
    }
    job.exact = true;
    job.values = "integer";
    for (size_t m = 0; m < sizeof oracle_all_types / sizeof *oracle_all_types; m++)
        for (int t = 0; t < 4; t++)
            for (int x = 0; x < 2; x++) {
                job.recipe = oracle_all_types[m];
                if (!strstr(job.recipe, only)) continue;
                job.type = types[t];
                job.index = indices[x];
                job.threads = 1 + (t + x) % 2;
                snprintf(what, sizeof what, "%s, integers in %s with %s, bit for bit", job.recipe,
                         type_names[t], x ? "i64" : "i32");
                oracle_report(who, what, oracle_run(&job, text, sizeof text), &passed, &failed);
            }
    tulle_ctx_free(job.ctx);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed ? 1 : 0;
}

#define ORACLE_MAIN(who, product, real_exact)                               \
    int main(int argc, char **argv)                                         \
    {                                                                       \
        return oracle_main(who, product, real_exact, argc > 1 ? argv[1] : ""); \
    }
#endif
