/* SPDX-License-Identifier: MIT
 *
 * test_tree.c - decision trees: known measurements give known trees, ties are broken by a rule, the depth is
 * at most four, validation samples are not used for training; and their files: written files are read back,
 * all others are refused. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include "plan/tree.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static tl_base *base(void)
{
    tl_base *b = NULL;
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) abort();
    return b;
}

/* A sample with times for which bins are faster, or slower. */
static tl_sample sample(double density, double average, double longest, bool yes)
{
    return (tl_sample){{density, average, longest}, {2, yes ? 1 : 4}};
}

/* ---- growing */

static void one_feature_tells_all(void)
{
    tl_base *b = base();
    const tl_sample s[] = {sample(0.5, 3, 10, false), sample(0.1, 8, 20, false), sample(0.4, 1, 100, true),
                           sample(0.2, 9, 300, true)};
    tl_tree t;
    REQUIRE(tl_tree_grow(b, s, 4, &t) == TULLE_OK, "%s", b->error);
    REQUIRE(t.nodes == 3 && t.node[0].feature == 2 && t.node[0].high == 2, "%d nodes, feature %d", t.nodes,
            t.node[0].feature);
    CHECK(t.node[0].limit == 60 && t.node[0].samples == 4 && t.node[0].yes == 2, "limit %g", t.node[0].limit);
    CHECK(t.node[1].feature == -1 && !t.node[1].answer && t.node[1].samples == 2 && t.node[1].yes == 0, "%s",
          "low");
    CHECK(t.node[2].feature == -1 && t.node[2].answer && t.node[2].samples == 2 && t.node[2].yes == 2, "%s",
          "high");
    const double at[3] = {0, 0, 60}, above[3] = {0, 0, 60.001};
    CHECK(!tl_tree_ask(&t, at) && tl_tree_ask(&t, above), "%s", "the limit belongs to what is below it");
    tl_base_free(b);
}

/* Bins are faster only for medium averages: two splits by the same feature, in order. */
static void two_levels(void)
{
    tl_base *b = base();
    const tl_sample s[] = {sample(1, 1, 1, false), sample(1, 2, 1, false), sample(1, 3, 1, true),
                           sample(1, 4, 1, true), sample(1, 5, 1, true), sample(1, 6, 1, false)};
    tl_tree t;
    REQUIRE(tl_tree_grow(b, s, 6, &t) == TULLE_OK, "%s", b->error);
    /* 2 | 4: purity 2 + 2.5; 5 | 1: 2.6 + 1 */
    REQUIRE(t.nodes == 5 && t.node[0].feature == 1 && t.node[0].limit == 2.5 && t.node[0].high == 2,
            "%d nodes at %g", t.nodes, t.node[0].limit);
    CHECK(t.node[1].feature == -1 && !t.node[1].answer, "%s", "below");
    CHECK(t.node[2].feature == 1 && t.node[2].limit == 5.5 && t.node[2].high == 4, "second limit %g",
          t.node[2].limit);
    CHECK(t.node[3].answer && !t.node[4].answer, "%s", "leaves");
    tl_tree_score all = tl_tree_judge(&t, s, 6);
    CHECK(all.samples == 6 && all.right == 6 && all.loss == 1, "%d right, loss %g", all.right, all.loss);
    tl_base_free(b);
}

/* All features are equally good, and two limits are: the first feature and the smallest limit are chosen. */
static void ties_are_broken_by_a_rule(void)
{
    tl_base *b = base();
    const tl_sample s[] = {sample(1, 1, 1, false), sample(2, 2, 2, true), sample(3, 3, 3, false)};
    tl_sample turned[3];
    tl_tree t, u;
    REQUIRE(tl_tree_grow(b, s, 3, &t) == TULLE_OK, "%s", b->error);
    CHECK(t.node[0].feature == 0 && t.node[0].limit == 1.5, "feature %d at %g", t.node[0].feature,
          t.node[0].limit);
    for (int i = 0; i < 3; i++) turned[i] = s[2 - i];
    REQUIRE(tl_tree_grow(b, turned, 3, &u) == TULLE_OK, "%s", b->error);
    CHECK(memcmp(&t, &u, sizeof t) == 0, "%s", "the order of samples that differ makes another tree");
    /* equal times, and equal votes: no bins */
    const tl_sample equal[] = {{{1, 1, 1}, {2, 2}}, {{1, 1, 1}, {2, 1}}};
    REQUIRE(tl_tree_grow(b, equal, 2, &t) == TULLE_OK, "%s", b->error);
    CHECK(t.nodes == 1 && !t.node[0].answer && t.node[0].yes == 1, "%d nodes", t.nodes);
    tl_base_free(b);
}

/* Alternating samples would need a leaf each, but a depth of four allows only 16 leaves. */
static void depth_guards_against_learning_by_heart(void)
{
    enum { MANY = 256 };
    tl_base *b = base();
    tl_sample s[MANY];
    tl_tree t;
    for (int i = 0; i < MANY; i++) s[i] = sample(i, 1, 1, i % 2);
    REQUIRE(tl_tree_grow(b, s, MANY, &t) == TULLE_OK, "%s", b->error);
    int leaves = 0;
    for (int i = 0; i < t.nodes; i++) leaves += t.node[i].feature < 0;
    CHECK(t.nodes <= TL_TREE_NODES && leaves <= 16, "%d nodes, %d leaves", t.nodes, leaves);
    tl_tree_score all = tl_tree_judge(&t, s, MANY);
    CHECK(all.right < MANY && all.right >= MANY / 2, "%d of %d", all.right, MANY);
    /* a function that needs four levels is learned */
    for (int i = 0; i < MANY; i++) s[i] = sample(i, 1, 1, (i >= 100 && i < 140) || i >= 220);
    REQUIRE(tl_tree_grow(b, s, MANY, &t) == TULLE_OK, "%s", b->error);
    CHECK(t.nodes == 7 && tl_tree_judge(&t, s, MANY).right == MANY, "%d nodes, %d right", t.nodes,
          tl_tree_judge(&t, s, MANY).right);
    tl_base_free(b);
}

/* Adjacent floating-point numbers can be separated. */
static void neighbours_part(void)
{
    tl_base *b = base();
    const double x = 1, y = nextafter(1, 2);
    const tl_sample s[] = {sample(x, 1, 1, false), sample(y, 1, 1, true)};
    tl_tree t;
    REQUIRE(tl_tree_grow(b, s, 2, &t) == TULLE_OK, "%s", b->error);
    CHECK(t.nodes == 3 && t.node[0].limit == x, "%d nodes", t.nodes);
    CHECK(!tl_tree_ask(&t, s[0].feature) && tl_tree_ask(&t, s[1].feature), "%s", "answers");
    tl_base_free(b);
}

static void each_third_one_judges(void)
{
    tl_base *b = base();
    tl_sample s[9];
    tl_tree t;
    tl_tree_score score[2];
    /* training samples are decided by the average; validation samples are the opposite */
    for (int i = 0; i < 9; i++) s[i] = sample(1, i < 5 ? 1 : 10, 1, (i < 5) == (i % 3 == 2));
    REQUIRE(tl_tree_train(b, s, 9, &t, score) == TULLE_OK, "%s", b->error);
    CHECK(t.nodes == 3 && t.node[0].samples == 6, "%d nodes of %d samples", t.nodes, t.node[0].samples);
    CHECK(score[0].samples == 6 && score[0].right == 6 && score[0].loss == 1, "%d right", score[0].right);
    CHECK(score[1].samples == 3 && score[1].right == 0, "%d right", score[1].right);
    CHECK(score[1].loss > 1.9 && score[1].loss < 2.1, "every answer is twice as slow: %g", score[1].loss);
    CHECK(tl_tree_train(b, s, 2, &t, score) == TULLE_EINVAL && strstr(b->error, "needs 3"), "%s", b->error);
    tl_base_free(b);
}

static void samples_that_are_none_are_refused(void)
{
    tl_base *b = base();
    tl_tree t;
    tl_sample s[2] = {sample(1, 1, 1, true), sample(2, 2, 2, false)};
    CHECK(tl_tree_grow(b, s, 0, &t) == TULLE_EINVAL, "%s", b->error);
    CHECK(tl_tree_grow(b, s, TL_SAMPLES_MAX + 1, &t) == TULLE_EINVAL, "%s", b->error);
    for (int k = 0; k < 4; k++) {
        s[1] = sample(2, 2, 2, false);
        if (k == 0) s[1].feature[2] = NAN;
        else if (k == 1) s[1].feature[0] = INFINITY;
        else s[1].seconds[k - 2] = k == 2 ? 0 : -1;
        CHECK(tl_tree_grow(b, s, 2, &t) == TULLE_EINVAL && strstr(b->error, "sample 1"), "%d: %s", k,
              b->error);
    }
    tl_base_free(b);
}

/* ---- files */

static const char *path_of(void)
{
    static char path[128];
    snprintf(path, sizeof path, "/tmp/tulle-tree-%lld", (long long)tl_process());
    return path;
}

static tl_trees some_trees(tl_base *b)
{
    enum { MANY = 90 };
    tl_sample s[2][MANY];
    tl_trees t = {.device = "NVIDIA H200, of a test"};
    uint64_t state = 88172645463325252u;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < MANY; i++) {
            for (int f = 0; f < 5; f++) {
                state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                double x = (double)(state >> 11) / 9007199254740992.0;
                if (f < 3) s[k][i].feature[f] = x;
                else s[k][i].seconds[f - 3] = x + 0.01;
            }
        }
        if (tl_tree_train(b, s[k], MANY, &t.tree[k], t.score[k]) != TULLE_OK) abort();
    }
    return t;
}

static size_t slurp(char *text, size_t room)
{
    FILE *f = fopen(path_of(), "rb");
    size_t got = f ? fread(text, 1, room, f) : 0;
    if (f) fclose(f);
    return got;
}

static void spill(const char *text, size_t bytes)
{
    FILE *f = fopen(path_of(), "wb");
    if (!f || fwrite(text, 1, bytes, f) != bytes) abort();
    fclose(f);
}

static void what_was_written_is_read(void)
{
    tl_base *b = base();
    tl_trees t = some_trees(b), u;
    REQUIRE(t.tree[0].nodes > 5 && t.tree[1].nodes > 5, "%d and %d nodes", t.tree[0].nodes, t.tree[1].nodes);
    REQUIRE(tl_trees_write(b, path_of(), &t) == TULLE_OK, "%s", b->error);
    REQUIRE(tl_trees_read(b, path_of(), &u) == TULLE_OK, "%s", b->error);
    CHECK(strcmp(t.device, u.device) == 0, "%s", u.device);
    for (int k = 0; k < 2; k++) {
        CHECK(t.tree[k].nodes == u.tree[k].nodes, "%d nodes", u.tree[k].nodes);
        for (int i = 0; i < t.tree[k].nodes; i++) {
            const tl_tree_node *x = &t.tree[k].node[i], *y = &u.tree[k].node[i];
            CHECK(x->feature == y->feature && x->limit == y->limit && x->high == y->high
                      && x->samples == y->samples && x->yes == y->yes
                      && (x->feature >= 0 || x->answer == y->answer),
                  "node %d", i);
        }
        for (int i = 0; i < 2; i++)
            CHECK(memcmp(&t.score[k][i], &u.score[k][i], sizeof u.score[k][i]) == 0, "score %d of step %d", i,
                  k);
    }
    uint64_t held = b->held;
    CHECK(tl_trees_read(b, path_of(), &u) == TULLE_OK && b->held == held, "%s", "memory is left");
    unlink(path_of());
    CHECK(tl_trees_read(b, path_of(), &u) == TULLE_EIO && strstr(b->error, path_of()), "%s", b->error);
    tl_base_free(b);
}

/* Each byte changed in three ways, and each truncated length: all are refused. */
static void every_damage_is_noticed(void)
{
    static char text[16384], other[16384];
    tl_base *b = base();
    tl_trees t = some_trees(b), u;
    REQUIRE(tl_trees_write(b, path_of(), &t) == TULLE_OK, "%s", b->error);
    size_t bytes = slurp(text, sizeof text);
    REQUIRE(bytes > 400, "%d bytes", (int)bytes);
    uint64_t held = b->held;
    static const unsigned char change[] = {1, 0x80, '\n'};
    for (size_t i = 0; i < bytes && test_failures < 10; i++)
        for (size_t c = 0; c < sizeof change; c++) {
            memcpy(other, text, bytes);
            other[i] = (char)(other[i] ^ change[c]);
            spill(other, bytes);
            CHECK(tl_trees_read(b, path_of(), &u) == TULLE_EFORMAT && u.tree[0].nodes == 0, "byte %d: read",
                  (int)i);
            CHECK(strstr(b->error, path_of()) && strstr(b->error, "line "), "%s", b->error);
        }
    for (size_t n = 1; n < bytes && test_failures < 10; n++) {
        spill(text, n);
        CHECK(tl_trees_read(b, path_of(), &u) == TULLE_EFORMAT, "%d of %d bytes: read", (int)n, (int)bytes);
    }
    spill(text, bytes);
    CHECK(tl_trees_read(b, path_of(), &u) == TULLE_OK && b->held == held, "%s", b->error);
    unlink(path_of());
    tl_base_free(b);
}

/* Malicious files may have a correct checksum, so their errors must be found before it is checked. */
static void hostile_texts_are_refused(void)
{
    static const struct { const char *text, *says;
    } cases[] = {
        {"tulle delta tree 2\n", "of this version"},
        {"%%MatrixMarket matrix coordinate real general\n1 1 0\n", "no decision tree"},
        {"@step symbolic 0\n", "1 to 31"},
        {"@step symbolic 32\n", "1 to 31"},
        {"@step symbolic -1\n", "1 to 31"},
        {"@step symbolic 99999999999999999999\n", "1 to 31"},
        {"@step numeric 1\n", "step symbolic"},
        {"@step symbolic 1\ntrain 4 5 1\n", "a score is"},
        {"@step symbolic 1\ntrain 4 4 0.5\n", "a score is"},
        {"@step symbolic 1\ntrain 4 4 nan\n", "a score is"},
        {"@@3\nsplit width 1 2 1 1\n", "density, average or longest"},
        {"@@3\nsplit density inf 2 1 1\n", "is a number"},
        {"@@3\nsplit density 1 0 1 1\n", "does not lie behind it"},
        {"@@3\nsplit density 1 1 1 1\n", "does not lie behind it"},
        {"@@3\nsplit density 1 3 1 1\n", "does not lie behind it"},
        {"@@3\nsplit density 1 2 1 2\n", "ends with its samples"},
        {"@@4\nsplit density 1 3 1 1\nleaf on 1 1\n", "another node than the one"},
        {"@@2\nleaf on 1 1\nstep numeric 1\n", "another number of nodes"},
        {"@@1\nleaf on 1 1 1\n", "of 4 words"},
        {"@@1\nleaf  1 1\n", "of 4 words"},
        {"@@11\nsplit density 1 10 1 1\nsplit density 1 9 1 1\nsplit density 1 8 1 1\nsplit density 1 7 1 "
         "1\nsplit density 1 6 1 1\n",
         "deeper than 4"},
    };
    tl_base *b = base();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        const char *rest = cases[i].text;
        int at = 0;
        if (*rest == '@') at = snprintf(text, sizeof text, "tulle delta tree 1\ndevice x\n"), rest++;
        if (*rest == '@') {
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "step symbolic %.*s\ntrain 1 1 1\nvalidate 1 1 1", (int)strcspn(rest + 1, "\n"),
                           rest + 1);
            rest += 1 + strcspn(rest + 1, "\n");
        }
        at += snprintf(text + at, sizeof text - (size_t)at, "%s", rest);
        tl_trees t;
        spill(text, (size_t)at);
        CHECK(tl_trees_read(b, path_of(), &t) == TULLE_EFORMAT && strstr(b->error, cases[i].says), "%d: %s",
              (int)i, b->error);
    }
    char *huge = malloc(1 << 20);
    REQUIRE(huge, "no memory");
    memset(huge, 'a', 1 << 20);
    spill(huge, 1 << 20);
    tl_trees t;
    CHECK(tl_trees_read(b, path_of(), &t) == TULLE_EFORMAT && strstr(b->error, "longer than any tree"), "%s",
          b->error);
    free(huge);
    unlink(path_of());
    tl_base_free(b);
}

TEST_MAIN(TEST(one_feature_tells_all), TEST(two_levels), TEST(ties_are_broken_by_a_rule),
          TEST(depth_guards_against_learning_by_heart), TEST(neighbours_part), TEST(each_third_one_judges),
          TEST(samples_that_are_none_are_refused), TEST(what_was_written_is_read),
          TEST(every_damage_is_noticed), TEST(hostile_texts_are_refused))
