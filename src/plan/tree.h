/* SPDX-License-Identifier: MIT
 *
 * tree.h - a small decision tree: is it worth sorting the rows of a product into bins?
 *
 * DeltaSPARSE (Yang, Zhang and Ma, section III.B) asks a tree of depth 4 at most, of three features of C: its
 * density, its average and its longest row; before C is counted, of their upper bounds.  A tree is data: it
 * is grown from measurements (tree.c) and kept in a file with its scores and a checksum (tree_file.c). */
#ifndef TL_TREE_H
#define TL_TREE_H
#include "base/base.h"

enum { TL_FEATURES = 3, TL_TREE_DEPTH = 4, TL_TREE_NODES = (2 << TL_TREE_DEPTH) - 1, TL_SAMPLES_MAX = 4096 };

/* One measurement: what the product is like, and what it takes without and with bins. */
typedef struct tl_sample {
    double feature[TL_FEATURES];        /* density, average row, longest row */
    double seconds[2];                  /* without, with                     */
} tl_sample;

typedef struct tl_tree_node {
    int    feature;                     /* -1: a leaf                                      */
    bool   answer;                      /* of a leaf                                       */
    double limit;                       /* up to it: the node behind this one; else `high` */
    int    high;
    int    samples, yes;                /* that came here, and that wanted bins            */
} tl_tree_node;

typedef struct tl_tree {
    int          nodes;
    tl_tree_node node[TL_TREE_NODES];   /* the root first, then all that is below its limit */
} tl_tree;

/* How good a tree is: answers that were the faster ones, and by how much what it chose is slower than the
 * best, in the geometric mean (1: it always chose the best). */
typedef struct tl_tree_score {
    int    samples, right;
    double loss;
} tl_tree_score;

const char   *tl_feature_name(int i);   /* NULL past the last */
/* Grows a tree (CART: the split with the least Gini impurity, while there is a gain, down to TL_TREE_DEPTH).
 * Of equally good splits the first feature's is taken, and its smallest limit; equal times and equal votes
 * are "no". */
tulle_status  tl_tree_grow(tl_base *b, const tl_sample *samples, int count, tl_tree *tree);
bool          tl_tree_ask(const tl_tree *tree, const double feature[TL_FEATURES]);
tl_tree_score tl_tree_judge(const tl_tree *tree, const tl_sample *samples, int count);
/* Two of three samples grow the tree, each third one judges it. */
tulle_status  tl_tree_train(tl_base *b, const tl_sample *samples, int count, tl_tree *tree,
                            tl_tree_score score[2]);

/* ---- tree_file.c */

enum { TL_TREE_STEPS = 2, TL_TREE_DEVICE = 128 };       /* the symbolic step and the numeric one */

typedef struct tl_trees {
    char          device[TL_TREE_DEVICE];               /* that was measured          */
    tl_tree       tree[TL_TREE_STEPS];
    tl_tree_score score[TL_TREE_STEPS][2];              /* while trained, of the rest */
} tl_trees;

tulle_status  tl_trees_write(tl_base *b, const char *path, const tl_trees *trees);
/* A file that is damaged, or not ours, is refused in a sentence with its line. */
tulle_status  tl_trees_read(tl_base *b, const char *path, tl_trees *trees);

#endif
