/* SPDX-License-Identifier: MIT
 *
 * classes.cl - the classes of rows and the words of the summary, for kernels and host alike.
 *
 * A class is one kernel with one size.  limits[] says which rows a class takes; the tests run from the cheapest
 * class to the one that takes everything.  Numbers only: this file is read by C, OpenCL C and CUDA C. */
#ifndef TL_CLASSES_H
#define TL_CLASSES_H

#define CLASS_EMPTY     0       /* no products                                            */
#define CLASS_DIRECT    1       /* one entry of A: a row of B, scaled                     */
#define CLASS_BITS      2       /* 3 sizes: a window of bits (symbolic) or values, a team a row */
#define CLASS_ROWS      5       /* 3 sizes: hash, several rows a block, a team a row      */
#define CLASS_BLOCK     8       /* 3 sizes: hash, a block a row                           */
#define CLASS_SPILL     11      /* hash that goes on in global memory (symbolic)          */
#define CLASS_DENSE     12      /* windows over the columns, a block a row                */
#define CLASSES         13

/* Words of limits[], for each of the two steps.  A limit of 0 closes a class. */
#define LIMIT_BITS      0       /* 3: widest window                                       */
#define LIMIT_BITS_PER  3       /* 3: and at most so many columns for each product (symbolic) or entry of C */
#define LIMIT_ROWS      6       /* 3: most products (symbolic) or entries of C (numeric)  */
#define LIMIT_BLOCK     9       /* 3: likewise                                            */
#define LIMIT_SPILL     12      /* likewise                                               */
#define LIMIT_DENSE_PER 13      /* numeric: rows beyond CLASS_ROWS with so few columns for each entry go dense */
#define LIMIT_DIRECT    14      /* 0: rows with one entry are nothing special             */
#define LIMIT_ROOM      15      /* 3: slots that the rows of a block of CLASS_ROWS share  */
#define LIMIT_BITS_MIN  18      /* rows with fewer products (symbolic) or entries (numeric) are no CLASS_BITS */
#define LIMITS          19

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
/* then CLASSES words: rows of each class, CLASSES words: products of each class */
#define SUM_ALL          (SUM_WORDS + 2 * CLASSES)

/* Slots of a hash table for a row: symbolic tables may be full only if nothing is added up; numeric ones are
 * at most two thirds full. */
#define SYMBOLIC_SLOTS(n) ((n) + (n) / 4 + 1)
#define NUMERIC_SLOTS(n)  ((n) + (n) / 2 + 1)

#endif
