/* SPDX-License-Identifier: MIT
 *
 * classes.cl - the classes of rows and the words of the summary, for both kernels and host.
 *
 * A class is one kernel with one block size.  limits[] says which rows a class accepts; classes are tested
 * from the cheapest to the one that accepts every row.  This file is compiled as C, OpenCL C and CUDA C, so
 * it contains only numbers. */
#ifndef TL_CLASSES_H
#define TL_CLASSES_H

#define BITS_SIZES      5
#define ROWS_SIZES      5
#define BLOCK_SIZES     3
#define FEW_SIZES       9

/*                                 symbolic                            numeric                              */
#define CLASS_EMPTY     0       /* no products                                                              */
#define CLASS_DIRECT    1       /* one entry of A: a row of B, scaled                                       */
#define CLASS_BITS      2       /* bitmask, a team per row             ranks, a team per row                */
#define CLASS_ROWS      7       /* hash, several rows per block        hash, several rows per block         */
#define CLASS_BLOCK     12      /* hash, a block per row               ranks, a block per row               */
#define CLASS_HASH      15      /* hash, continued in global memory    hash, a block per row, then sorted   */
#define CLASS_MASK      16      /* bitmask, a block per row                                                 */
#define CLASS_DENSE     17      /* windows of bits, a block per row    windows of values, a block per row   */
#define CLASS_FEW       18      /* 9: in registers; up to 2, 4, ... 512 products; register-aware policies   */
#define CLASSES         27

/* Words of limits[], for each of the two steps.  "5:" means five consecutive words, one for each size of the
 * class.  A limit of 0 disables a class. */
#define LIMIT_BITS      0       /* 5: columns of the span (symbolic), RANK_BYTES (numeric)                  */
#define LIMIT_BITS_PER  5       /* columns of the span for each product or entry, at most                   */
#define LIMIT_BITS_MIN  6       /* products or entries, at least                                            */
#define LIMIT_BITS_MAX  7       /* products or entries, at most                                             */
#define LIMIT_ROWS      8       /* 5: products or entries                                                   */
#define LIMIT_BLOCK     13      /* 3: products (symbolic), RANK_BYTES (numeric)                             */
#define LIMIT_HASH      16      /* products or entries                                                      */
#define LIMIT_MASK      17      /* symbolic: columns of the span                                            */
#define LIMIT_DENSE_PER 18      /* numeric: rows that no other class accepts use windows up to this many
                                 * columns of the span for each entry */
#define LIMIT_DIRECT    19      /* 0: no class for rows with a single entry                                 */
#define LIMIT_VALUE     20      /* bytes of a value                                                         */
#define LIMIT_ROOM      21      /* 5: slots shared by the rows of a block of CLASS_ROWS                     */
#define LIMIT_ROWS_MAX  26      /* symbolic: products of a row of CLASS_ROWS, at most; narrow rows, too */
#define LIMIT_BLOCK_PER 27      /* numeric: columns of the span for each entry, at most, CLASS_BLOCK */
#define LIMIT_FEW       28      /* products of a row of CLASS_FEW, at most                                  */
#define LIMIT_FEW_FIRST 29      /* rows with up to this many are CLASS_FEW before CLASS_BITS is considered  */
#define LIMITS          30

/* Lists of classes start at multiples of 512 bytes. */
#define LIST_ROUND(n)   (((n) + 127) & ~127u)

#define SUM_PRODUCTS     0
#define SUM_NEED         1      /* sum over all rows of min(products, columns of the span) */
#define SUM_MAX_PRODUCTS 2
#define SUM_MAX_ENTRIES  3      /* of a row of A */
#define SUM_MAX_SPAN     4
#define SUM_MAX_LONGEST  5
#define SUM_MAX_NEED     6
#define SUM_NNZ          7      /* of C */
#define SUM_MAX_NNZ      8      /* of a row of C */
#define SUM_WORDS        9
/* then CLASSES words each: rows, products, and the maximum of class_measure */
#define SUM_ROWS         SUM_WORDS
#define SUM_CLASS        (SUM_WORDS + CLASSES)
#define SUM_MEASURE      (SUM_WORDS + 2 * CLASSES)
/* then the statistics of motifs (motif_find.cl); the last is set when the entries of C are counted */
#define SUM_MOTIF        (SUM_WORDS + 3 * CLASSES)
#define SUM_TWIN         (SUM_MOTIF + MOTIF_SUMS)       /* statistics of twins (twin_rows.cl) */
#define SUM_ALL          (SUM_TWIN + TWIN_SUMS)
#define MOTIF_SAMPLED    0      /* rows in the sample */
#define MOTIF_DIFFERENT  1      /* different rows among them */
#define MOTIF_CLASSES    2      /* classes of rows of B */
#define MOTIF_FOUND      3      /* motifs */
#define MOTIF_USED       4      /* motifs that are used */
#define MOTIF_SHORT      5      /* short ones among them; these come first */
#define MOTIF_ROWS       6      /* rows of C whose motif is used */
#define MOTIF_PRODUCTS   7      /* products of these rows */
#define MOTIF_SHORT_ROWS 8      /* rows of C whose motif is short */
#define MOTIF_SHORT_ENTRIES 9   /* maximum of entries of A, short motifs */
#define MOTIF_ENTRIES    10     /* maximum of entries of A, all motifs in use */
#define MOTIF_LONGEST    11     /* maximum of products, all motifs in use */
#define MOTIF_ROOM       12     /* sum of products, all motifs in use */
#define MOTIF_MOST       13     /* maximum of entries of C, motifs that are not short */
#define MOTIF_SUMS       14
/* Twins: consecutive rows with the same columns, in bundles of up to TWIN_MOST. */
#define TWIN_MOST        3
#define TWIN_A           0      /* rows of a sample of A that look like the row before them */
#define TWIN_B           1      /* the same for B */
#define TWIN_TAKEN       2      /* rows of C that are computed as bundles */
#define TWIN_TAKEN_PRODUCTS 3   /* and their products */
#define TWIN_SIZES       4
#define TWIN_GROUPS      4      /* for each size: bundles computed; then the largest size of one in bytes */
#define TWIN_ROOM        (TWIN_GROUPS + TWIN_SIZES)
#define TWIN_SUMS        (TWIN_ROOM + TWIN_SIZES)
#define TWIN_SIZE(c)     (6144u << (c))         /* bytes, at most; the last size is unbounded */
/* Counters in global memory: bundles of A with products, words stored, rows that are not in a bundle, bundles
 * of each size. */
#define TWIN_LISTED      0
#define TWIN_STORED      1
#define TWIN_LEFT        2
#define TWIN_OF_B        3      /* words of the bundles of B */
#define TWIN_LISTS       4
/* Three words for each bundle, at its first row: entries of each of its rows of C, words of its pattern,
 * their position among the patterns. */
#define TWIN_WORDS_OF    3
#define TWIN_SLOTS       512    /* of the counting hash table: a mask and the number of a word each */
#define TWIN_SUB         8u     /* threads that take the words of a bundle of B */
#define TWIN_LOST        0xffffffffu            /* there was no room for the words of a bundle of B */
#define TWIN_MASK        0
#define TWIN_KEY         1
#define TWIN_WORDS_MOST  384    /* words that it accepts */
#define TWIN_PRODUCTS    (1u << 22)             /* of a row, at most */
#define TWIN_BATCH       32     /* entries of A that are staged at a time, */
#define TWIN_FACTORS     (TWIN_BATCH + TWIN_MOST - 1)   /* and the factors of all bundles that begin there */
/* For a bundle of `high` rows with n entries of C each, in w words: slots of its hash table; 32-bit words of
 * that table (three per slot, a multiple of 16 bytes); bytes of factors, table and sums. */
#define TWIN_TABLE(w)    ((w) + (w) / 2 + 1)
#define TWIN_TABLE_WORDS(w) ((3 * TWIN_TABLE(w) + 3) / 4 * 4)
#define TWIN_BYTES(high, n, w, value) \
    ((TWIN_MOST * TWIN_FACTORS * (value) + 4 * TWIN_TABLE_WORDS(w) + (high) * (n) * (value) + 15) / 16 * 16)
/* Words of a motif in use: a row of C with this motif, its products, their position in the maps, entries of
 * C. */
#define MOTIF_ROW        0
#define MOTIF_SIZE       1
#define MOTIF_AT         2
#define MOTIF_NNZ        3
#define MOTIF_WORDS      4
/* Rows of the sample, and slots of its hash table. */
#define SAMPLE_ROWS      4096
#define SAMPLE_SLOTS     16384

/* Slots of a hash table for a row.  Load factors: at most 4/5 in the symbolic step, which is reached only if
 * all columns differ; 1/2 in the numeric step, 2/3 for longer rows as in spECK, to save memory. */
#define SYMBOLIC_SLOTS(n) ((n) + (n) / 4 + 1)
#define NUMERIC_SLOTS(n)  ((n) + ((n) <= 128 ? (n) : (n) / 2 + 64) + 1)

/* The bin of a row of CLASS_FEW takes up to FEW_MOST(bin) products. */
#define FEW_MOST(bin)   (2u << (bin))
/* Slots of its hash tables: load factor 2/3, an even number. */
#define FEW_SLOTS(n)    (((n) + (n) / 2 + 3) & ~1u)

/* Limits of small products (tiny.cl): rows of C, entries of A, products of a row.  Slots of a hash table;
 * each team of a block has one. */
#define TINY_ROWS       8192
#define TINY_ENTRIES    32768
#define TINY_PRODUCTS   409
#define TINY_SLOTS      512
#define TINY_TEAMS      2
#define TINY_THREADS    64      /* of a block of tiny_rows, at most */

/* bhSPARSE (upper.cl): bins of rows by number of products: bins 0 to 32 for exactly so many, then up to 64,
 * 128, 256, 512, then all others. */
#define BIN_ESC         33
#define BIN_MERGE       37
#define BINS            38
/* Words of its summary: rows, then products, of each bin; then entries of C~. */
#define BIN_PRODUCTS    BINS
#define BIN_ROOM        (2 * BINS)
#define BIN_WORDS       (2 * BINS + 1)
/* State of a row whose merge continues in a larger area: its position in the new and in the old area; the
 * entry of A and the position in its row of B to continue from; the row number, with the number of entries so
 * far in the upper half of the word. */
#define WAIT_TO         0
#define WAIT_FROM       1
#define WAIT_A          2
#define WAIT_B          3
#define WAIT_ROW        4
#define WAIT_WORDS      5
#define WAIT_NOWHERE    0xffffffffffffffffu     /* WAIT_TO of a row that was moved on */

/* DeltaSPARSE (delta_*.cl): bins of rows by products (symbolic) or entries (numeric).  A row that would fit a
 * hash table uses the dense array instead if it has too large a part of the columns, or if its keys
 * collided. */
#define DELTA_SIZES     5
#define DELTA_EMPTY     0
#define DELTA_HASH      1       /* 5: hash, by size of the table                                            */
#define DELTA_NARROW    6       /* 5: dense, of the same sizes                                              */
#define DELTA_DENSE     11      /* dense, longer rows                                                       */
#define DELTA_BINS      12
/* 64-bit counters: rows, then products, of each bin; then the products of the rows at DELTA_REDO. */
#define DELTA_PRODUCTS  DELTA_BINS
#define DELTA_REDONE    (2 * DELTA_BINS)
#define DELTA_WORDS     (2 * DELTA_BINS + 1)
/* 32-bit counters: cursors of the bins; then the number of rows that failed in a hash table and are repeated
 * with a dense array, those of them whose keys collided, and the rows that still have to be sorted. */
#define DELTA_REDO      DELTA_BINS
#define DELTA_COLLIDED  (DELTA_BINS + 1)
#define DELTA_UNSORTED  (DELTA_BINS + 2)
#define DELTA_CURSORS   (DELTA_BINS + 3)

/* Shared memory of a row for numeric_rank.cl: a pair of words for each 32 columns, and a value for each
 * entry. */
#define RANK_BYTES(span, nnz, value) (((span) + 63) / 64 * 16 + (nnz) * (value))

#endif
