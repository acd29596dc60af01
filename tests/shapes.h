/* SPDX-License-Identifier: MIT
 *
 * shapes.h - for tests of accumulators: rows of C with a given number of products, of entries of A and of empty
 * rows of B among them, and with all, some or no columns in common. */
#ifndef SHAPES_H
#define SHAPES_H
#include "gpu.h"

typedef struct shape { int products, entries, equal, empty; } shape;

enum { APART, MIXED, EQUAL, KINDS };

/* A row of A for each shape, with its own rows of B: the products are distributed over `entries` rows, with
 * `empty` ones between them.  Columns have distance `step`. */
static inline pair rows_of_shapes(const shape *shapes, int count, int64_t step, int64_t cols, ref_types t)
{
    int64_t a_nnz = 0, b_nnz = 0, a = 0, b = 0;
    for (int i = 0; i < count; i++) {
        a_nnz += shapes[i].entries + shapes[i].empty;
        b_nnz += shapes[i].products;
    }
    pair p = {ref_new(count, a_nnz, a_nnz, t), ref_new(a_nnz, cols, b_nnz, t), "shapes"};
    for (int i = 0; i < count; i++) {
        shape s = shapes[i];
        int rows = s.entries + s.empty, given = 0, empties = 0;
        for (int k = 0; k < rows; k++, a++) {
            /* the empty ones are at the beginning, at the end, and between */
            bool empty = k - empties >= s.entries || (empties < s.empty && k % 3 == 0);
            int e = k - empties, length = empty ? 0 : s.products / s.entries + (e < s.products % s.entries);
            empties += empty;
            for (int j = 0; j < length; j++, b++) {
                int64_t apart = (int64_t)j * s.entries + (given + j) % s.entries;
                int64_t column = s.equal == EQUAL ? j : s.equal == APART ? apart : j + (e * 7) % 5 + (e % 2 ? j : 0);
                ref_set_col(&p.B, b, (i % 7 + column) * step);
            }
            given += length;
            ref_set_col(&p.A, a, a);
            ref_set_ptr(&p.B, a + 1, b);
        }
        ref_set_ptr(&p.A, i + 1, a);
    }
    ref_fill(&p.A, REF_INTEGERS, 5);
    ref_fill(&p.B, REF_INTEGERS, 6);
    return p;
}

#endif
