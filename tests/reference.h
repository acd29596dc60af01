/* SPDX-License-Identifier: MIT
 *
 * reference.h - simple matrices and a simple product to compare with.  Nothing here is optimised, and nothing
 * of the library is used except the types of its header.
 *
 * A `ref` is a CSR matrix in malloc'ed arrays, with a view for the library.  Values are read and written as
 * pairs of doubles, which represent every type exactly. */
#ifndef TULLE_REFERENCE_H
#define TULLE_REFERENCE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tulle.h"

typedef struct ref {
    tulle_csr view;
    void     *row_ptr, *col_idx, *values;
} ref;

typedef struct ref_value { double re, im; } ref_value;

/* ---- types: 4 values x 2 row pointers x 2 columns */

typedef struct ref_types { tulle_type val; tulle_index ptr, idx; } ref_types;

enum { REF_TYPES = 16 };
ref_types   ref_types_at(int i);                        /* i in 0 .. 15 */
const char *ref_types_name(ref_types t);                /* "f32/i32/i64", in one of some static buffers */
size_t      ref_value_size(tulle_type type);
size_t      ref_index_size(tulle_index type);

/* ---- entries */

int64_t   ref_ptr(const tulle_csr *A, int64_t i);
int64_t   ref_col(const tulle_csr *A, int64_t k);
ref_value ref_val(const tulle_csr *A, int64_t k);
void      ref_set_ptr(ref *A, int64_t i, int64_t value);
void      ref_set_col(ref *A, int64_t k, int64_t value);
void      ref_set_val(ref *A, int64_t k, ref_value value);      /* rounded to the type */
int64_t   ref_index_at(const void *array, tulle_index type, int64_t i);
void      ref_index_put(void *array, tulle_index type, int64_t i, int64_t value);
ref_value ref_value_at(const void *array, tulle_type type, int64_t i);
void      ref_value_put(void *array, tulle_type type, int64_t i, ref_value value);

/* ---- random numbers, the same everywhere */

typedef struct ref_random_state { uint64_t s; } ref_rng;
uint64_t  ref_next(ref_rng *r);
int64_t   ref_below(ref_rng *r, int64_t n);             /* 0 .. n-1 */
double    ref_unit(ref_rng *r);                         /* 0 <= x < 1 */

/* INTEGERS: -8..8 without 0, so that sums and products are exact.  REALS: every bit random, with mixed signs
 * and magnitudes.  CANCELLING: +1 and -1, so that some entries of a product are computed as zero. */
typedef enum ref_kind { REF_INTEGERS, REF_REALS, REF_CANCELLING } ref_kind;
void ref_fill(ref *A, ref_kind kind, uint64_t seed);

/* ---- generators.  Arrays have their exact size, so that a sanitizer detects an access just after them. */

ref  ref_new(int64_t rows, int64_t cols, int64_t nnz, ref_types t);      /* row_ptr all zero */
void ref_free(ref *A);
ref  ref_copy(const tulle_csr *A, ref_types t);
ref  ref_random(uint64_t seed, int64_t rows, int64_t cols, double per_row, ref_kind kind, ref_types t);
/* Row lengths by a power law, and a few very frequent columns. */
ref  ref_power(uint64_t seed, int64_t rows, int64_t cols, int64_t longest, ref_kind kind, ref_types t);
/* Full first row, full first column, diagonal. */
ref  ref_arrow(int64_t n, ref_kind kind, ref_types t);
ref  ref_band(int64_t n, int64_t half, ref_kind kind, ref_types t);
/* A band of dense d x d blocks: d consecutive rows have the same pattern, as with d unknowns per node. */
ref  ref_blocks(int64_t n, int64_t half, int64_t d, ref_kind kind, ref_types t);
ref  ref_dense(int64_t rows, int64_t cols, ref_kind kind, ref_types t);
ref  ref_identity(int64_t n, ref_types t);
/* A permutation matrix. */
ref  ref_permutation(uint64_t seed, int64_t n, ref_types t);
/* The same entries in random order within each row; with `twice`, each row's first entry is split into two. */
ref  ref_shuffled(const tulle_csr *A, uint64_t seed, bool twice);

/* ---- expected results, with the types of A; a product has 64-bit indices */

/* Every entry is ((0 + p1) + p2) + ..., products in the order of the row of A, each operation rounded to the
 * value type; complex products by the textbook formula. */
ref  ref_product(const tulle_csr *A, const tulle_csr *B);
ref  ref_transpose(const tulle_csr *A, tulle_op op);
ref  ref_sorted(const tulle_csr *A);
ref  ref_without_zeros(const tulle_csr *A);
int64_t ref_count_products(const tulle_csr *A, const tulle_csr *B);

/* ---- comparisons, which print the first difference.  Values are compared bit for bit (all NaNs are equal);
 * index types may differ.  A missing array of values is equal only to a missing one. */

bool ref_same(const tulle_csr *got, const tulle_csr *want, const char *what);
bool ref_same_values(const void *got, const void *want, tulle_type type, int64_t n, const char *what);
/* Whether types and all bytes of the arrays are as in the copy. */
bool ref_untouched(const tulle_csr *A, const ref *copy);

#endif
