/* SPDX-License-Identifier: MIT
 *
 * classes.cl - the classes of rows and the words of the summary, for kernels and host alike.
 *
 * A class is one kernel with one size.  limits[] says which rows a class takes; the tests run from the
 * cheapest class to the one that takes everything.  Numbers only: this file is read by C, OpenCL C and CUDA
 * C. */
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
#define LIMIT_DENSE_PER 18      /* numeric: what is left goes to windows where there are so few columns an
                                 * entry */
#define LIMIT_DIRECT    19      /* 0: rows with one entry are nothing special                               */
#define LIMIT_VALUE     20      /* bytes of a value                                                         */
#define LIMIT_ROOM      21      /* 5: slots that the rows of a block of CLASS_ROWS share                    */
#define LIMIT_ROWS_MAX  26      /* symbolic: rows with more products are no CLASS_ROWS, however narrow */
#define LIMIT_BLOCK_PER 27      /* numeric: columns for each entry, CLASS_BLOCK */
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
/* then what is known of motifs (motif_find.cl); the last one comes with the counts of C */
#define SUM_MOTIF        (SUM_WORDS + 3 * CLASSES)
#define SUM_TWIN         (SUM_MOTIF + MOTIF_SUMS)       /* and of twins (twin_rows.cl) */
#define SUM_ALL          (SUM_TWIN + TWIN_SUMS)
#define MOTIF_SAMPLED    0      /* rows of the sample, and how many kinds they are */
#define MOTIF_DIFFERENT  1
#define MOTIF_CLASSES    2      /* of rows of B */
#define MOTIF_FOUND      3      /* motifs, */
#define MOTIF_USED       4      /* those that are used, */
#define MOTIF_SHORT      5      /* and the first of them that are short */
#define MOTIF_ROWS       6      /* of C that have one that is used, their products, */
#define MOTIF_PRODUCTS   7
#define MOTIF_SHORT_ROWS 8      /* and those of short ones */
#define MOTIF_SHORT_ENTRIES 9   /* the most entries of A of a short one, of any, */
#define MOTIF_ENTRIES    10
#define MOTIF_LONGEST    11     /* and products */
#define MOTIF_ROOM       12     /* products of all of them */
#define MOTIF_MOST       13     /* entries of C of one that is not short */
#define MOTIF_SUMS       14
/* Twins: rows after each other with the same columns, in bundles of up to TWIN_MOST. */
#define TWIN_MOST        3
#define TWIN_A           0      /* rows of a sample of A, of B, that are like the row before */
#define TWIN_B           1
#define TWIN_TAKEN       2      /* rows of C that are taken, their products */
#define TWIN_TAKEN_PRODUCTS 3
#define TWIN_SIZES       4
#define TWIN_GROUPS      4      /* bundles of each size that are taken, and the most bytes of one */
#define TWIN_ROOM        (TWIN_GROUPS + TWIN_SIZES)
#define TWIN_SUMS        (TWIN_ROOM + TWIN_SIZES)
#define TWIN_SIZE(c)     (6144u << (c))         /* bytes; the last size has no end */
/* Counters: bundles of A with products, words stored, rows that are left, bundles listed of each size. */
#define TWIN_LISTED      0
#define TWIN_STORED      1
#define TWIN_LEFT        2
#define TWIN_LISTS       4
/* Of a bundle, at its first row: entries of each row of C, words of the pattern, where they are stored. */
#define TWIN_WORDS_OF    3
#define TWIN_SLOTS       512    /* of the table that counts, a mask and a word each; */
#define TWIN_MASK        0
#define TWIN_KEY         1
#define TWIN_WORDS_MOST  384    /* words that it takes: fewer by a team */
#define TWIN_PRODUCTS    (1u << 22)             /* of a row, at most */
#define TWIN_BATCH       32     /* entries of A at a time; and the factors of bundles that they begin */
#define TWIN_FACTORS     (TWIN_BATCH + TWIN_MOST - 1)
/* A bundle of `high` rows with n entries of C each in w words: slots, words of its table (three a slot, a
 * multiple of 16 bytes), bytes with factors of A and sums. */
#define TWIN_TABLE(w)    ((w) + (w) / 2 + 1)
#define TWIN_TABLE_WORDS(w) ((3 * TWIN_TABLE(w) + 3) / 4 * 4)
#define TWIN_BYTES(high, n, w, value) \
    ((TWIN_MOST * TWIN_FACTORS * (value) + 4 * TWIN_TABLE_WORDS(w) + (high) * (n) * (value) + 15) / 16 * 16)
/* Words of a motif that is used: a row of C that has it, its products, where they begin in the maps, entries
 * of C. */
#define MOTIF_ROW        0
#define MOTIF_SIZE       1
#define MOTIF_AT         2
#define MOTIF_NNZ        3
#define MOTIF_WORDS      4
/* Rows of a sample, and slots of its table. */
#define SAMPLE_ROWS      4096
#define SAMPLE_SLOTS     16384

/* Slots of a hash table for a row: symbolic tables are at most four fifths full, and that only if nothing is
 * added up; numeric ones half full, those of longer rows two thirds, as in spECK: then the memory counts. */
#define SYMBOLIC_SLOTS(n) ((n) + (n) / 4 + 1)
#define NUMERIC_SLOTS(n)  ((n) + ((n) <= 128 ? (n) : (n) / 2 + 64) + 1)

/* The bin of a row of CLASS_FEW takes up to FEW_MOST(bin) products. */
#define FEW_MOST(bin)   (2u << (bin))
/* Slots of its hash tables: two thirds full, and an even number. */
#define FEW_SLOTS(n)    (((n) + (n) / 2 + 3) & ~1u)

/* Small products (tiny.cl): rows of C, entries of A, products of a row; a table for each of the teams of a
 * block. */
#define TINY_ROWS       8192
#define TINY_ENTRIES    32768
#define TINY_PRODUCTS   409
#define TINY_SLOTS      512
#define TINY_TEAMS      2
#define TINY_THREADS    64      /* of a block of tiny_rows, at most */

/* bhSPARSE (upper.cl): rows by their products, bin i up to 32 has rows of i; then 64, 128, 256, 512; then all
 * others. */
#define BIN_ESC         33
#define BIN_MERGE       37
#define BINS            38
/* Words of its summary: rows, then products, of each bin; then entries of C~. */
#define BIN_PRODUCTS    BINS
#define BIN_ROOM        (2 * BINS)
#define BIN_WORDS       (2 * BINS + 1)
/* Words of a row whose merging goes on in a larger area: its place there and where it was; entry of A, place
 * in its row of B; the row, and in the upper half its entries so far. */
#define WAIT_TO         0
#define WAIT_FROM       1
#define WAIT_A          2
#define WAIT_B          3
#define WAIT_ROW        4
#define WAIT_WORDS      5
#define WAIT_NOWHERE    0xffffffffffffffffu     /* WAIT_TO of a row that went on */

/* DeltaSPARSE (delta_*.cl): rows by their products (symbolic) or entries (numeric).  A row of the sizes
 * that a hash table takes is dense where too many of the columns are its, or where its keys collided. */
#define DELTA_SIZES     5
#define DELTA_EMPTY     0
#define DELTA_HASH      1       /* 5: hash, by size                                                         */
#define DELTA_NARROW    6       /* 5: dense, of the same sizes                                              */
#define DELTA_DENSE     11      /* dense, beyond all of them                                                */
#define DELTA_BINS      12
/* Words of 64 bits that it counts in: rows, then products, of each bin; then products of the rows below. */
#define DELTA_PRODUCTS  DELTA_BINS
#define DELTA_REDONE    (2 * DELTA_BINS)
#define DELTA_WORDS     (2 * DELTA_BINS + 1)
/* Words of 32 bits: cursors of the bins, then the rows that a table gave up and a dense array takes, those
 * of them whose keys collided, and the rows that are still to be sorted. */
#define DELTA_REDO      DELTA_BINS
#define DELTA_COLLIDED  (DELTA_BINS + 1)
#define DELTA_UNSORTED  (DELTA_BINS + 2)
#define DELTA_CURSORS   (DELTA_BINS + 3)

/* Shared memory of a row for numeric_rank.cl: pairs of words for 32 columns each, and a value for each
 * entry. */
#define RANK_BYTES(span, nnz, value) (((span) + 63) / 64 * 16 + (nnz) * (value))

#endif
