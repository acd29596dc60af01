/* SPDX-License-Identifier: MIT
 *
 * tree.c - grows a decision tree from measurements (CART: Breiman, Friedman, Olshen and Stone 1984), and
 * evaluates it.
 *
 * A node has a contiguous range of the samples.  They are sorted by each feature, and a split between any two
 * different values is tried; the split with the least Gini impurity is chosen, and both sides are split
 * recursively.  Sorting is stable and the order of features is fixed, so the same samples give the same tree
 * on every machine.  Memory: 8 bytes per sample.  Time: quadratic in the number of samples, one for each
 * measured matrix. */
#include "plan/tree.h"
#include <math.h>
#include <string.h>

static const char *const names[TL_FEATURES] = {"density", "average", "longest"};

const char *tl_feature_name(int i)
{
    return i >= 0 && i < TL_FEATURES ? names[i] : NULL;
}

static bool wants(const tl_sample *s)
{
    return s->seconds[1] < s->seconds[0];
}

/* ---- growing */

typedef struct grower {
    const tl_sample *samples;
    int             *order, *best_order;        /* permutations of the samples */
    tl_tree         *tree;
} grower;

typedef struct split {
    int    feature;                     /* -1: no split helps                 */
    double limit, purity;
    int    low;                         /* samples <= limit                   */
} split;

static void sort_by(const grower *g, int from, int to, int feature)
{
    for (int i = from + 1; i < to; i++) {
        int moved = g->order[i], at = i;
        double value = g->samples[moved].feature[feature];
        while (at > from && g->samples[g->order[at - 1]].feature[feature] > value) {
            g->order[at] = g->order[at - 1];
            at--;
        }
        g->order[at] = moved;
    }
}

static int count_yes(const grower *g, int from, int to)
{
    int yes = 0;
    for (int i = from; i < to; i++) yes += wants(&g->samples[g->order[i]]);
    return yes;
}

/* samples * (1 - impurity): larger is purer. */
static double purity(int samples, int yes)
{
    double y = yes, n = samples - yes;
    return samples ? (y * y + n * n) / samples : 0;
}

/* The best split of a range of samples; best_order gets them sorted by its feature. */
static split best_split(grower *g, int from, int to)
{
    const int samples = to - from, yes = count_yes(g, from, to);
    split best = {.feature = -1, .purity = purity(samples, yes)};
    for (int f = 0; f < TL_FEATURES; f++) {
        sort_by(g, from, to, f);
        int low_yes = 0;
        bool better = false;
        for (int i = from; i + 1 < to; i++) {
            low_yes += wants(&g->samples[g->order[i]]);
            double here = g->samples[g->order[i]].feature[f], next = g->samples[g->order[i + 1]].feature[f];
            const int low = i + 1 - from;
            double p = purity(low, low_yes) + purity(samples - low, yes - low_yes);
            if (here == next || p <= best.purity + 1e-9) continue;
            double limit = here + (next - here) / 2;
            best = (split){.feature = f, .limit = limit < next ? limit : here, .purity = p, .low = low};
            better = true;
        }
        if (better) memcpy(g->best_order + from, g->order + from, (size_t)samples * sizeof *g->order);
    }
    return best;
}

static void grow(grower *g, int from, int to, int depth)
{
    const int at = g->tree->nodes++, yes = count_yes(g, from, to);
    tl_tree_node *node = &g->tree->node[at];
    *node = (tl_tree_node){.feature = -1, .answer = 2 * yes > to - from, .samples = to - from, .yes = yes};
    if (depth == TL_TREE_DEPTH || yes == 0 || yes == to - from) return;
    split s = best_split(g, from, to);
    if (s.feature < 0) return;
    memcpy(g->order + from, g->best_order + from, (size_t)(to - from) * sizeof *g->order);
    node->feature = s.feature;
    node->limit = s.limit;
    grow(g, from, from + s.low, depth + 1);
    node->high = g->tree->nodes;
    grow(g, from + s.low, to, depth + 1);
}

static tulle_status look(tl_base *b, const tl_sample *samples, int count)
{
    if (count < 1 || count > TL_SAMPLES_MAX)
        return tl_fail(b, TULLE_EINVAL, "%d samples for a decision tree: it may be 1 to %d", count,
                       TL_SAMPLES_MAX);
    for (int i = 0; i < count; i++) {
        bool good = true;
        for (int f = 0; f < TL_FEATURES; f++) good = good && isfinite(samples[i].feature[f]);
        for (int w = 0; w < 2; w++)
            good = good && isfinite(samples[i].seconds[w]) && samples[i].seconds[w] > 0;
        if (!good)
            return tl_fail(b, TULLE_EINVAL,
                           "sample %d has a feature that is no number or a time that is none", i);
    }
    return TULLE_OK;
}

tulle_status tl_tree_grow(tl_base *b, const tl_sample *samples, int count, tl_tree *tree)
{
    tulle_status status = TULLE_OK;
    grower g = {.samples = samples, .tree = tree};
    memset(tree, 0, sizeof *tree);
    TRY(look(b, samples, count));
    TRY(tl_alloc(b, &g.order, 2 * (int64_t)count, sizeof *g.order, "an order of samples"));
    g.best_order = g.order + count;
    for (int i = 0; i < count; i++) g.order[i] = i;
    grow(&g, 0, count, 0);
done:
    tl_free(b, g.order);
    return status;
}

/* ---- evaluating */

bool tl_tree_ask(const tl_tree *tree, const double feature[TL_FEATURES])
{
    const tl_tree_node *node = tree->node;
    while (node->feature >= 0)
        node = feature[node->feature] <= node->limit ? node + 1 : tree->node + node->high;
    return node->answer;
}

tl_tree_score tl_tree_judge(const tl_tree *tree, const tl_sample *samples, int count)
{
    tl_tree_score score = {.samples = count};
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const tl_sample *s = &samples[i];
        const bool answer = tl_tree_ask(tree, s->feature);
        score.right += answer == wants(s);
        sum += log(s->seconds[answer] / s->seconds[wants(s)]);
    }
    score.loss = count ? exp(sum / count) : 1;
    return score;
}

tulle_status tl_tree_train(tl_base *b, const tl_sample *samples, int count, tl_tree *tree,
                           tl_tree_score score[2])
{
    tulle_status status = TULLE_OK;
    tl_sample *parted = NULL;
    int part[2] = {0, 0};
    TRY(look(b, samples, count));
    if (count < 3)
        TRY(tl_fail(b, TULLE_EINVAL,
                    "%d matrices were measured: a tree needs 3 at least, as each third one judges it",
                    count));
    TRY(tl_alloc(b, &parted, 2 * (int64_t)count, sizeof *parted, "samples"));
    for (int i = 0; i < count; i++) {
        const int judge = i % 3 == 2;
        parted[judge * count + part[judge]++] = samples[i];
    }
    TRY(tl_tree_grow(b, parted, part[0], tree));
    for (int k = 0; k < 2; k++) score[k] = tl_tree_judge(tree, parted + k * count, part[k]);
done:
    tl_free(b, parted);
    return status;
}
