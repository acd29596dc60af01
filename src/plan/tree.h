/* SPDX-License-Identifier: MIT
 *
 * tree.h - a small decision tree that decides whether to sort the rows of a product into bins.
 *
 * DeltaSPARSE (Yang, Zhang and Ma, section III.B) uses a tree of depth at most 4 over three features of C:
 * its density, the average and the maximum length of its rows; before C is counted, their upper bounds.
 * Trees are grown from measurements (tree.c) and stored in a file with scores and a checksum
 * (tree_file.c). */
#ifndef TL_TREE_H
#define TL_TREE_H
#include "base/base.h"

enum { TL_FEATURES = 3, TL_TREE_DEPTH = 4, TL_TREE_NODES = (2 << TL_TREE_DEPTH) - 1, TL_SAMPLES_MAX = 4096 };

/* One measurement: the features of a product, and its times without and with bins. */
typedef struct tl_sample {
    double feature[TL_FEATURES];        /* density, average row, longest row */
    double seconds[2];                  /* without, with                     */
} tl_sample;

typedef struct tl_tree_node {
    int    feature;                     /* -1: a leaf                                      */
    bool   answer;                      /* of a leaf                                       */
    double limit;                       /* value <= limit: the next node; else `high`      */
    int    high;
    int    samples, yes;                /* of this node; those for which bins were faster  */
} tl_tree_node;

typedef struct tl_tree {
    int          nodes;
    tl_tree_node node[TL_TREE_NODES];   /* preorder: root, nodes below its limit, the others */
} tl_tree;

/* The quality of a tree: the number of right answers, and the geometric mean of chosen time / best time (1:
 * all answers were right). */
typedef struct tl_tree_score {
    int    samples, right;
    double loss;
} tl_tree_score;

const char   *tl_feature_name(int i);   /* NULL after the last */
/* Grows a tree (CART: split with the least Gini impurity, as long as it is reduced, down to TL_TREE_DEPTH).
 * Ties between splits: the first feature, and its smallest limit; equal times and equal votes mean "no". */
tulle_status  tl_tree_grow(tl_base *b, const tl_sample *samples, int count, tl_tree *tree);
bool          tl_tree_ask(const tl_tree *tree, const double feature[TL_FEATURES]);
tl_tree_score tl_tree_judge(const tl_tree *tree, const tl_sample *samples, int count);
/* Trains with two of three samples, and validates with every third one. */
tulle_status  tl_tree_train(tl_base *b, const tl_sample *samples, int count, tl_tree *tree,
                            tl_tree_score score[2]);

/* ---- tree_file.c */

enum { TL_TREE_STEPS = 2, TL_TREE_DEVICE = 128 };       /* the symbolic step and the numeric one */

typedef struct tl_trees {
    char          device[TL_TREE_DEVICE];               /* on which was measured      */
    tl_tree       tree[TL_TREE_STEPS];
    tl_tree_score score[TL_TREE_STEPS][2];              /* on training samples, on the others */
} tl_trees;

tulle_status  tl_trees_write(tl_base *b, const char *path, const tl_trees *trees);
/* Fails for a damaged or foreign file, with the line in the message. */
tulle_status  tl_trees_read(tl_base *b, const char *path, tl_trees *trees);

#endif
