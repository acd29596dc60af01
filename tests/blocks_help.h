/* SPDX-License-Identifier: MIT
 *
 * blocks_help.h - the callback of tulle_multiply_blocks() in all tests: compares each block with the same
 * rows of the expected product. */
#ifndef TULLE_BLOCKS_HELP_H
#define TULLE_BLOCKS_HELP_H
#include "reference.h"

typedef struct blocks_seen {
    const tulle_csr *want;              /* all of C; NULL: no block is expected                  */
    int64_t          rows, blocks;      /* received so far                                       */
    int64_t          stop_after;        /* blocks after which to stop; 0: never                  */
    bool             good;              /* initially true; all blocks so far were correct        */
} blocks_seen;

static inline bool block_is(const tulle_csr *block, const tulle_csr *want, int64_t first)
{
    if (block->cols != want->cols || block->place != TULLE_HOST || first + block->rows > want->rows)
        return false;
    const int64_t from = ref_ptr(want, first);
    if (block->nnz != ref_ptr(want, first + block->rows) - from) return false;
    for (int64_t i = 0; i <= block->rows; i++)
        if (ref_ptr(block, i) != ref_ptr(want, first + i) - from) return false;
    for (int64_t k = 0; k < block->nnz; k++)
        if (ref_col(block, k) != ref_col(want, from + k)) return false;
    if (block->nnz == 0) return true;
    if (!block->values || !want->values) return !block->values && !want->values;
    const char *values = (const char *)want->values + (size_t)from * ref_value_size(want->val_type);
    return block->val_type == want->val_type
           && ref_same_values(block->values, values, want->val_type, block->nnz, "a block");
}

/* `user` is a blocks_seen.  A wrong block stops the product. */
static inline int blocks_compare(void *user, int64_t first_row, const tulle_csr *block)
{
    blocks_seen *seen = user;
    seen->good = seen->good && seen->want && first_row == seen->rows
              && block_is(block, seen->want, first_row);
    seen->rows += block->rows;
    seen->blocks++;
    return !seen->good || seen->blocks == seen->stop_after;
}

/* Whether all of C was received, and every block was correct. */
static inline bool blocks_all(const blocks_seen *seen)
{
    return seen->good && seen->rows == seen->want->rows;
}

#endif
