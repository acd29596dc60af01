/* SPDX-License-Identifier: MIT
 *
 * tree_file.c - decision trees as a text file, one line per node:
 *
 *     tulle delta tree 1
 *     device sm_90
 *     step symbolic 3
 *     train 24 23 1.01                  samples, right answers, time relative to the best
 *     validate 12 11 1.03
 *     split longest 96.5 2 24 15        limit, the node above it, samples, those for which bins were faster
 *     leaf off 9 0
 *     leaf on 15 15
 *     step numeric 1
 *     ...
 *     sum 1f6a0c...                     checksum of all lines before it
 *
 * Nodes are numbered from 0 in the order of the lines; values up to the limit continue with the next line.
 * The reader checks everything: each number is checked, each node but the first must be the child of exactly
 * one earlier node, and the depth is limited, so that evaluating a tree that was read always terminates. */
#include "plan/lines.h"
#include "plan/tree.h"
#include <stdio.h>
#include <string.h>

static const char first_line[] = "tulle delta tree 1", by[] = "tulle tune --policy delta";
static const char *const steps[TL_TREE_STEPS] = {"symbolic", "numeric"};
static const char *const parts[2] = {"train", "validate"};

/* ---- writing */

static void put_tree(tl_page *p, const tl_tree *tree)
{
    for (int i = 0; i < tree->nodes; i++) {
        const tl_tree_node *n = &tree->node[i];
        if (n->feature < 0) {
            tl_page_text(p, n->answer ? "leaf on" : "leaf off");
        } else {
            tl_page_text(p, "split ");
            tl_page_text(p, tl_feature_name(n->feature));
            tl_page_double(p, n->limit);
            tl_page_int(p, n->high);
        }
        tl_page_int(p, n->samples);
        tl_page_int(p, n->yes);
        tl_page_text(p, "\n");
    }
}

tulle_status tl_trees_write(tl_base *b, const char *path, const tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    tl_page *p = NULL;
    char line[64];
    TRY(tl_calloc(b, &p, 1, sizeof *p, "the text of a tree"));
    tl_page_text(p, first_line);
    tl_page_text(p, "\n");
    tl_page_device(p, trees->device);
    for (int s = 0; s < TL_TREE_STEPS; s++) {
        snprintf(line, sizeof line, "step %s %d\n", steps[s], trees->tree[s].nodes);
        tl_page_text(p, line);
        for (int k = 0; k < 2; k++) {
            tl_page_text(p, parts[k]);
            tl_page_int(p, trees->score[s][k].samples);
            tl_page_int(p, trees->score[s][k].right);
            tl_page_double(p, trees->score[s][k].loss);
            tl_page_text(p, "\n");
        }
        put_tree(p, &trees->tree[s]);
    }
    TRY(tl_page_write(b, path, p));
done:
    tl_free(b, p);
    return status;
}

/* ---- reading */

static tulle_status read_score(tl_lines *r, int part, tl_tree_score *score)
{
    tulle_status status = TULLE_OK;
    TRY(tl_lines_next(r, parts[part], 4));
    if (!tl_lines_int(r, 1, 0, TL_SAMPLES_MAX, &score->samples)
        || !tl_lines_int(r, 2, 0, score->samples, &score->right)
        || !tl_lines_double(r, 3, &score->loss) || score->loss < 1)
        status = tl_lines_wrong(r, "a score is samples, right answers and a loss of 1 at least");
done:
    return status;
}

/* Reads node i at this depth and all nodes below it; *used counts them. */
static tulle_status read_node(tl_lines *r, tl_tree *tree, int depth, int *used)
{
    tulle_status status = TULLE_OK;
    const int at = (*used)++;
    tl_tree_node *n = &tree->node[at];
    const bool leaf = tl_lines_begins(r, "leaf ");
    TRY(tl_lines_next(r, leaf ? "leaf" : "split", leaf ? 4 : 6));
    n->feature = -1;
    if (!tl_lines_int(r, r->words - 2, 0, TL_SAMPLES_MAX, &n->samples)
        || !tl_lines_int(r, r->words - 1, 0, n->samples, &n->yes))
        TRY(tl_lines_wrong(r, "a node ends with its samples and how many of them wanted bins"));
    if (leaf) {
        n->answer = strcmp(r->word[1], "on") == 0;
        if (!n->answer && strcmp(r->word[1], "off") != 0) TRY(tl_lines_wrong(r, "a leaf is on or off"));
        goto done;
    }
    int feature = 0;
    while (tl_feature_name(feature) && strcmp(tl_feature_name(feature), r->word[1]) != 0) feature++;
    if (!tl_feature_name(feature)) TRY(tl_lines_wrong(r, "a split is by density, average or longest"));
    if (!tl_lines_double(r, 2, &n->limit)) TRY(tl_lines_wrong(r, "the limit of a split is a number"));
    if (depth == TL_TREE_DEPTH) TRY(tl_lines_wrong(r, "the tree is deeper than 4"));
    if (!tl_lines_int(r, 3, at + 2, tree->nodes - 1, &n->high))
        TRY(tl_lines_wrong(r, "a split names a node that does not lie behind it"));
    n->feature = feature;
    const int line = r->line;
    TRY(read_node(r, tree, depth + 1, used));
    if (*used != n->high) {
        r->line = line;
        TRY(tl_lines_wrong(r,
                           "a split names another node than the one that follows what is up to its limit"));
    }
    TRY(read_node(r, tree, depth + 1, used));
done:
    return status;
}

static tulle_status read_step(tl_lines *r, int step, tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    tl_tree *tree = &trees->tree[step];
    int used = 0;
    TRY(tl_lines_next(r, "step", 3));
    if (strcmp(r->word[1], steps[step]) != 0 || !tl_lines_int(r, 2, 1, TL_TREE_NODES, &tree->nodes))
        TRY(tl_lines_wrong(r, step ? "\"step numeric\" and its nodes, 1 to 31, are expected"
                          : "\"step symbolic\" and its nodes, 1 to 31, are expected"));
    for (int k = 0; k < 2; k++) TRY(read_score(r, k, &trees->score[step][k]));
    TRY(read_node(r, tree, 0, &used));
    if (used != tree->nodes)
        TRY(tl_lines_wrong(r, "the tree has another number of nodes than its step says"));
done:
    return status;
}

tulle_status tl_trees_read(tl_base *b, const char *path, tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    tl_lines r;
    memset(trees, 0, sizeof *trees);
    TRY(tl_lines_open(b, path, first_line, "decision tree", by, &r));
    TRY(tl_lines_next(&r, "device", 2));
    snprintf(trees->device, sizeof trees->device, "%s", r.word[1]);
    for (int s = 0; s < TL_TREE_STEPS; s++) TRY(read_step(&r, s, trees));
    TRY(tl_lines_end(&r));
done:
    tl_lines_close(&r);
    if (status != TULLE_OK) memset(trees, 0, sizeof *trees);
    return status;
}
