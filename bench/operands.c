/* SPDX-License-Identifier: MIT
 * operands.c - generates the two matrices of a product from a recipe. */
#include "operands.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { EDGE = 64, BLOCK = 3, BLOCKS = (EDGE + BLOCK - 1) / BLOCK, POINTS = EDGE * EDGE * EDGE };

#define TRY(call)                                                           \
    do {                                                                    \
        status = (call);                                                    \
        if (status != TULLE_OK) goto done;                                  \
    } while (0)

static int in_block(int block)
{
    return block * BLOCK + BLOCK <= EDGE ? BLOCK : EDGE - block * BLOCK;
}

/* The matrix that assigns each point to its aggregate: one entry per row, columns of length (norm) 1. */
static tulle_status aggregates(tulle_ctx *ctx, tulle_matrix **T)
{
    static int32_t ptr[POINTS + 1], col[POINTS];
    static double val[POINTS];
    int32_t n = 0;
    for (int z = 0; z < EDGE; z++)
        for (int y = 0; y < EDGE; y++)
            for (int x = 0; x < EDGE; x++, n++) {
                int bx = x / BLOCK, by = y / BLOCK, bz = z / BLOCK;
                ptr[n] = n;
                col[n] = (bz * BLOCKS + by) * BLOCKS + bx;
                val[n] = 1 / sqrt(in_block(bx) * in_block(by) * in_block(bz));
            }
    ptr[n] = n;
    const tulle_csr view = tulle_csr_f64_i32(POINTS, BLOCKS * BLOCKS * BLOCKS, ptr, col, val);
    return tulle_csr_convert(ctx, &view, 0, 0, 0, T);
}

/* S = I - 2/3 D^-1 A, with the pattern of A: every row of it has a diagonal. */
static tulle_status smoother(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **S)
{
    tulle_status status = tulle_csr_convert(ctx, A, 0, 0, 0, S);
    if (status != TULLE_OK) return status;
    const tulle_csr s = tulle_matrix_view(*S);
    const int32_t *ptr = s.row_ptr, *col = s.col_idx;
    double *val = (double *)(uintptr_t)s.values;
    for (int64_t i = 0; i < s.rows; i++) {
        double diagonal = 1;
        for (int32_t k = ptr[i]; k < ptr[i + 1]; k++)
            if (col[k] == i) diagonal = val[k];
        for (int32_t k = ptr[i]; k < ptr[i + 1]; k++)
            val[k] = (col[k] == i) - 2.0 / 3 * val[k] / diagonal;
    }
    return TULLE_OK;
}

static tulle_status multigrid(tulle_ctx *ctx, const char *product, operands *o)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *A = NULL, *T = NULL, *S = NULL, *P = NULL, *R = NULL, *AP = NULL;
    tulle_matrix **left = NULL, **right = NULL;
    char recipe[32];
    snprintf(recipe, sizeof recipe, "poisson3d:%d", EDGE);
    TRY(tulle_gallery(ctx, recipe, &A));
    const tulle_csr a = tulle_matrix_view(A);
    TRY(aggregates(ctx, &T));
    TRY(smoother(ctx, &a, &S));
    const tulle_csr s = tulle_matrix_view(S), t = tulle_matrix_view(T);
    if (!strcmp(product, "S*T")) left = &S, right = &T;
    else {
        TRY(tulle_multiply(ctx, &s, &t, NULL, &P));
        const tulle_csr p = tulle_matrix_view(P);
        if (!strcmp(product, "A*P")) left = &A, right = &P;
        else if (!strcmp(product, "R*(A*P)")) {
            TRY(tulle_multiply(ctx, &a, &p, NULL, &AP));
            TRY(tulle_csr_transpose(ctx, &p, TULLE_TRANSPOSE, &R));
            left = &R, right = &AP;
        } else {
            status = TULLE_EINVAL;
            goto done;
        }
    }
    o->own[0] = *left;
    o->own[1] = *right;
    *left = *right = NULL;
    o->A = tulle_matrix_view(o->own[0]);
    o->B = tulle_matrix_view(o->own[1]);
done:
    tulle_matrix_free(A);
    tulle_matrix_free(T);
    tulle_matrix_free(S);
    tulle_matrix_free(P);
    tulle_matrix_free(R);
    tulle_matrix_free(AP);
    return status;
}

static tulle_status gallery(tulle_ctx *ctx, const char *recipe, operands *o)
{
    tulle_status status = TULLE_OK;
    char text[256];
    snprintf(text, sizeof text, "%s%svalues=random", recipe, strchr(recipe, ':') ? "," : ":");
    TRY(tulle_gallery(ctx, text, &o->own[0]));
    o->A = o->B = tulle_matrix_view(o->own[0]);
    if (o->A.rows == o->A.cols) return TULLE_OK;
    TRY(tulle_csr_transpose(ctx, &o->A, TULLE_TRANSPOSE, &o->own[1]));
    o->B = tulle_matrix_view(o->own[1]);
done:
    return status;
}

tulle_status operands_open(tulle_ctx *ctx, const char *recipe, operands *o)
{
    static const char prefix[] = "multigrid:";
    *o = (operands){0};
    bool grids = !strncmp(recipe, prefix, sizeof prefix - 1);
    tulle_status status = grids ? multigrid(ctx, recipe + sizeof prefix - 1, o) : gallery(ctx, recipe, o);
    if (status != TULLE_OK) operands_close(o);
    return status;
}

void operands_close(operands *o)
{
    for (int i = 0; i < 2; i++) tulle_matrix_free(o->own[i]);
    *o = (operands){0};
}
