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
#include "matrix/files.h"
#include "plan/tree.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384, WORDS = 8 };
static const char first_line[] = "tulle delta tree 1";
static const char *const steps[TL_TREE_STEPS] = {"symbolic", "numeric"};
static const char *const parts[2] = {"train", "validate"};

/* text has room for a multiple of 64 bytes, with zeros after its end. */
static uint64_t sum_of(const char *text, size_t bytes)
{
    char block[TEXT] = {0};
    memcpy(block, text, bytes);
    return tl_hash(block, (int64_t)((bytes + 63) / 64 * 64), bytes);
}

/* ---- writing */

typedef struct page {
    char   text[TEXT];
    size_t used;
} page;

static void put_text(page *p, const char *text)
{
    size_t bytes = strlen(text);
    if (p->used + bytes >= sizeof p->text) return;              /* never happens: 62 nodes take 4 KB */
    memcpy(p->text + p->used, text, bytes);
    p->used += bytes;
}

static void put_int(page *p, int value)
{
    char word[16];
    snprintf(word, sizeof word, " %d", value);
    put_text(p, word);
}

static void put_double(page *p, double value)
{
    char word[TL_NUMBER_MAX + 2] = " ";
    word[1 + tl_print_double(word + 1, value)] = 0;
    put_text(p, word);
}

static void put_tree(page *p, const tl_tree *tree)
{
    for (int i = 0; i < tree->nodes; i++) {
        const tl_tree_node *n = &tree->node[i];
        if (n->feature < 0) {
            put_text(p, n->answer ? "leaf on" : "leaf off");
        } else {
            put_text(p, "split ");
            put_text(p, tl_feature_name(n->feature));
            put_double(p, n->limit);
            put_int(p, n->high);
        }
        put_int(p, n->samples);
        put_int(p, n->yes);
        put_text(p, "\n");
    }
}

tulle_status tl_trees_write(tl_base *b, const char *path, const tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    page *p = NULL;
    char line[64];
    TRY(tl_calloc(b, &p, 1, sizeof *p, "the text of a tree"));
    put_text(p, first_line);
    put_text(p, "\ndevice ");
    put_text(p, trees->device);
    put_text(p, "\n");
    for (int s = 0; s < TL_TREE_STEPS; s++) {
        snprintf(line, sizeof line, "step %s %d\n", steps[s], trees->tree[s].nodes);
        put_text(p, line);
        for (int k = 0; k < 2; k++) {
            put_text(p, parts[k]);
            put_int(p, trees->score[s][k].samples);
            put_int(p, trees->score[s][k].right);
            put_double(p, trees->score[s][k].loss);
            put_text(p, "\n");
        }
        put_tree(p, &trees->tree[s]);
    }
    snprintf(line, sizeof line, "sum %016" PRIx64 "\n", sum_of(p->text, p->used));
    put_text(p, line);
    TRY(tl_write_bytes(b, path, p->text, p->used));
done:
    tl_free(b, p);
    return status;
}

/* ---- reading */

typedef struct reader {
    tl_base    *b;
    const char *path, *at, *end;        /* path of the file; current position and end of its text */
    int         line, words;
    char        word[WORDS][TL_TREE_DEVICE];
} reader;

static tulle_status wrong(reader *r, const char *what)
{
    return tl_fail(r->b, TULLE_EFORMAT, "%s, line %d: %s; \"tulle tune --policy delta\" writes such files",
                   r->path, r->line, what);
}

/* Splits the next line into words; for "device" the rest of the line is one word. */
static tulle_status next_line(reader *r, const char *expected, int words)
{
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    char what[96];
    r->line++;
    r->words = 0;
    snprintf(what, sizeof what, "a line \"%s ...\" of %d words is expected", expected, words);
    if (!stop) return wrong(r, what);
    while (r->at < stop) {
        const char *space = memchr(r->at, ' ', (size_t)(stop - r->at)), *last = space ? space : stop;
        if (r->words == 1 && strcmp(r->word[0], "device") == 0) last = stop;
        size_t bytes = (size_t)(last - r->at);
        if (r->words == WORDS || bytes == 0 || bytes >= sizeof *r->word || memchr(r->at, 0, bytes))
            return wrong(r, what);
        memcpy(r->word[r->words], r->at, bytes);
        r->word[r->words++][bytes] = 0;
        r->at = last < stop ? last + 1 : stop;
    }
    r->at = stop + 1;
    return r->words == words && strcmp(r->word[0], expected) == 0 ? TULLE_OK : wrong(r, what);
}

static bool int_at(const reader *r, int word, int64_t least, int64_t most, int *value)
{
    char text[TL_TREE_DEVICE + TL_TEXT_PAD] = {0};
    int64_t n;
    memcpy(text, r->word[word], strlen(r->word[word]));
    const char *end = tl_parse_index(text, &n);
    if (!end || *end || n < least || n > most) return false;
    *value = (int)n;
    return true;
}

static bool double_at(const reader *r, int word, double *value)
{
    char text[TL_TREE_DEVICE + TL_TEXT_PAD] = {0};
    memcpy(text, r->word[word], strlen(r->word[word]));
    const char *end = tl_parse_double(text, value);
    return end && !*end && isfinite(*value);
}

static tulle_status read_score(reader *r, int part, tl_tree_score *score)
{
    tulle_status status = TULLE_OK;
    TRY(next_line(r, parts[part], 4));
    if (!int_at(r, 1, 0, TL_SAMPLES_MAX, &score->samples) || !int_at(r, 2, 0, score->samples, &score->right)
        || !double_at(r, 3, &score->loss) || score->loss < 1)
        status = wrong(r, "a score is samples, right answers and a loss of 1 at least");
done:
    return status;
}

/* Reads node i at this depth and all nodes below it; *used counts them. */
static tulle_status read_node(reader *r, tl_tree *tree, int depth, int *used)
{
    tulle_status status = TULLE_OK;
    const int at = (*used)++;
    tl_tree_node *n = &tree->node[at];
    const bool leaf = r->end - r->at > 5 && memcmp(r->at, "leaf ", 5) == 0;
    TRY(next_line(r, leaf ? "leaf" : "split", leaf ? 4 : 6));
    n->feature = -1;
    if (!int_at(r, r->words - 2, 0, TL_SAMPLES_MAX, &n->samples)
        || !int_at(r, r->words - 1, 0, n->samples, &n->yes))
        TRY(wrong(r, "a node ends with its samples and how many of them wanted bins"));
    if (leaf) {
        n->answer = strcmp(r->word[1], "on") == 0;
        if (!n->answer && strcmp(r->word[1], "off") != 0) TRY(wrong(r, "a leaf is on or off"));
        goto done;
    }
    int feature = 0;
    while (tl_feature_name(feature) && strcmp(tl_feature_name(feature), r->word[1]) != 0) feature++;
    if (!tl_feature_name(feature)) TRY(wrong(r, "a split is by density, average or longest"));
    if (!double_at(r, 2, &n->limit)) TRY(wrong(r, "the limit of a split is a number"));
    if (depth == TL_TREE_DEPTH) TRY(wrong(r, "the tree is deeper than 4"));
    if (!int_at(r, 3, at + 2, tree->nodes - 1, &n->high))
        TRY(wrong(r, "a split names a node that does not lie behind it"));
    n->feature = feature;
    const int line = r->line;
    TRY(read_node(r, tree, depth + 1, used));
    if (*used != n->high) {
        r->line = line;
        TRY(wrong(r, "a split names another node than the one that follows what is up to its limit"));
    }
    TRY(read_node(r, tree, depth + 1, used));
done:
    return status;
}

static tulle_status read_step(reader *r, int step, tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    tl_tree *tree = &trees->tree[step];
    int used = 0;
    TRY(next_line(r, "step", 3));
    if (strcmp(r->word[1], steps[step]) != 0 || !int_at(r, 2, 1, TL_TREE_NODES, &tree->nodes))
        TRY(wrong(r, step ? "\"step numeric\" and its nodes, 1 to 31, are expected"
                          : "\"step symbolic\" and its nodes, 1 to 31, are expected"));
    for (int k = 0; k < 2; k++) TRY(read_score(r, k, &trees->score[step][k]));
    TRY(read_node(r, tree, 0, &used));
    if (used != tree->nodes) TRY(wrong(r, "the tree has another number of nodes than its step says"));
done:
    return status;
}

static tulle_status read_trees(reader *r, const char *text, tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    const size_t head = sizeof first_line - 1;
    char sum[32];
    r->line = 1;
    if ((size_t)(r->end - r->at) <= head || memcmp(r->at, first_line, head) != 0 || r->at[head] != '\n')
        TRY(wrong(r, "this is no decision tree of this version"));
    r->at += head + 1;
    TRY(next_line(r, "device", 2));
    snprintf(trees->device, sizeof trees->device, "%s", r->word[1]);
    for (int s = 0; s < TL_TREE_STEPS; s++) TRY(read_step(r, s, trees));
    snprintf(sum, sizeof sum, "%016" PRIx64, sum_of(text, (size_t)(r->at - text)));
    TRY(next_line(r, "sum", 2));
    if (strcmp(r->word[1], sum) != 0) TRY(wrong(r, "the checksum is another one: the file was changed"));
    if (r->at != r->end) TRY(wrong(r, "the file goes on behind its end"));
done:
    return status;
}

tulle_status tl_trees_read(tl_base *b, const char *path, tl_trees *trees)
{
    tulle_status status = TULLE_OK;
    tl_source source;
    char *text = NULL;
    bool opened = false;
    int64_t got = 0;
    memset(trees, 0, sizeof *trees);
    TRY(tl_source_open(b, path, &source));
    opened = true;
    TRY(tl_calloc(b, &text, TEXT + 1, 1, "the text of a tree"));
    TRY(tl_source_read(&source, text, TEXT, &got));
    reader r = {.b = b, .path = path, .at = text, .end = text + got};
    if (got == TEXT) TRY(wrong(&r, "the file is longer than any tree"));
    TRY(read_trees(&r, text, trees));
done:
    if (opened) tl_source_close(&source);
    tl_free(b, text);
    if (status != TULLE_OK) memset(trees, 0, sizeof *trees);
    return status;
}
