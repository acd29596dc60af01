/* SPDX-License-Identifier: MIT
 *
 * classes.cl - the classes of rows and the words of the summary, for kernels and host alike.
 *
 * A class is one kernel with one size.  limits[] says which rows a class takes; the tests run from the cheapest
 * class to the one that takes everything.  Numbers only: this file is read by C, OpenCL C and CUDA C. */
#ifndef TL_CLASSES_H
#define TL_CLASSES_H

#define BITS_SIZES      5
#define ROWS_SIZES      5
#define BLOCK_SIZES     3
#define FEW_SIZES       9

/*                                 symbolic                            numeric                              */
#define CLASS_EMPTY     0       /* no products                                                              */
#define CLASS_DIRECT    1       /* one entry of A: a row of B, scaled                                       */
#define CLASS_BITS      2       /* bits, a team a row                  ranks, a team a row                  */
#define CLASS_ROWS      7       /* hash, several rows a block          hash, several rows a block           */
#define CLASS_BLOCK     12      /* hash, a block a row                 ranks, a block a row                 */
#define CLASS_HASH      15      /* hash that goes on in global memory  hash, a block a row, sorted after    */
#define CLASS_MASK      16      /* bits, a block a row                                                      */
#define CLASS_DENSE     17      /* windows of bits, a block a row      windows of values, a block a row     */
#define CLASS_FEW       18      /* in registers: products up to 2, 4, ... 512, for policies that want it    */
#define CLASSES         27

/* Words of limits[], for each of the two steps.  A limit of 0 closes a class. */
#define LIMIT_BITS      0       /* 5: columns of the span (symbolic), RANK_BYTES (numeric)                  */
#define LIMIT_BITS_PER  5       /* and at most so many columns for each product or entry,                   */
#define LIMIT_BITS_MIN  6       /* and so many products or entries at least,                                */
#define LIMIT_BITS_MAX  7       /* and at most                                                              */
#define LIMIT_ROWS      8       /* 5: products or entries                                                   */
#define LIMIT_BLOCK     13      /* 3: products (symbolic), RANK_BYTES (numeric)                             */
#define LIMIT_HASH      16      /* products or entries                                                      */
#define LIMIT_MASK      17      /* symbolic: columns of the span                                            */
#define LIMIT_DENSE_PER 18      /* numeric: what is left goes to windows where there are so few columns an entry */
#define LIMIT_DIRECT    19      /* 0: rows with one entry are nothing special                               */
#define LIMIT_VALUE     20      /* bytes of a value                                                         */
#define LIMIT_ROOM      21      /* 5: slots that the rows of a block of CLASS_ROWS share                    */
#define LIMIT_ROWS_MAX  26      /* symbolic: rows with more products are no CLASS_ROWS, however narrow          */
#define LIMIT_BLOCK_PER 27      /* numeric: columns for each entry, CLASS_BLOCK                                */
#define LIMIT_FEW       28      /* products of a row of CLASS_FEW, at most                                  */
#define LIMIT_FEW_FIRST 29      /* up to so many before bits and ranks are looked at                        */
#define LIMITS          30

/* Lists of classes start at multiples of 512 bytes. */
#define LIST_ROUND(n)   (((n) + 127) & ~127u)

#define SUM_PRODUCTS     0
#define SUM_NEED         1      /* products, or the window where that is narrower, all rows */
#define SUM_MAX_PRODUCTS 2
#define SUM_MAX_ENTRIES  3      /* of a row of A */
#define SUM_MAX_SPAN     4
#define SUM_MAX_LONGEST  5
#define SUM_MAX_NEED     6
#define SUM_NNZ          7      /* of C */
#define SUM_MAX_NNZ      8      /* of a row of C */
#define SUM_WORDS        9
/* then CLASSES words each: rows, products, and the most of what the class is measured by (class_measure) */
#define SUM_ROWS         SUM_WORDS
#define SUM_CLASS        (SUM_WORDS + CLASSES)
#define SUM_MEASURE      (SUM_WORDS + 2 * CLASSES)
#define SUM_ALL          (SUM_WORDS + 3 * CLASSES)

/* Slots of a hash table for a row: symbolic tables are at most four fifths full, and that only if nothing is added up;
 * numeric ones half full, those of longer rows two thirds, as in spECK: then the memory counts. */
#define SYMBOLIC_SLOTS(n) ((n) + (n) / 4 + 1)
#define NUMERIC_SLOTS(n)  ((n) + ((n) <= 128 ? (n) : (n) / 2 + 64) + 1)

/* The bin of a row of CLASS_FEW takes up to FEW_MOST(bin) products. */
#define FEW_MOST(bin)   (2u << (bin))
/* Slots of its hash tables: two thirds full, and an even number. */
#define FEW_SLOTS(n)    (((n) + (n) / 2 + 3) & ~1u)

/* Small products (tiny.cl): rows of C, entries of A, products of a row; a table for each of the teams of a block. */
#define TINY_ROWS       8192
#define TINY_ENTRIES    32768
#define TINY_PRODUCTS   409
#define TINY_SLOTS      512
#define TINY_TEAMS      2
#define TINY_THREADS    64      /* of a block of tiny_rows, at most */

/* bhSPARSE (upper.cl): rows by their products, bin i up to 32 has rows of i; then 64, 128, 256, 512; then all others. */
#define BIN_ESC         33
#define BIN_MERGE       37
#define BINS            38
/* Words of its summary: rows, then products, of each bin; then entries of C~. */
#define BIN_PRODUCTS    BINS
#define BIN_ROOM        (2 * BINS)
#define BIN_WORDS       (2 * BINS + 1)
/* Words of a row whose merging goes on in a larger area: its place there and where it was; entry of A, place in its row of
 * B; the row, and in the upper half its entries so far. */
#define WAIT_TO         0
#define WAIT_FROM       1
#define WAIT_A          2
#define WAIT_B          3
#define WAIT_ROW        4
#define WAIT_WORDS      5
#define WAIT_NOWHERE    0xffffffffffffffffu     /* WAIT_TO of a row that went on */

/* Shared memory of a row for numeric_rank.cl: pairs of words for 32 columns each, and a value for each entry. */
#define RANK_BYTES(span, nnz, value) (((span) + 63) / 64 * 16 + (nnz) * (value))

#endif
