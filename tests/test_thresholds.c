/* SPDX-License-Identifier: MIT
 *
 * test_thresholds.c - thresholds of policy auto: the table, families of devices, the line search on costs that
 * are computed instead of measured, and files: what was written is read, everything else is refused. */
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"
#include "plan/thresholds.h"
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

/* ---- the table */

static void grids_ascend_within_ranges(void)
{
    for (int f = 0; f < TL_FAMILIES; f++)
        for (int i = 0; i < TL_THRESHOLDS; i++) {
            uint32_t grid[TL_THRESHOLD_GRID], least, most;
            const uint32_t usual = tl_thresholds_usual((tl_family)f).of[i];
            const int count = tl_threshold_grid((tl_family)f, i, grid);
            bool found = false;
            tl_threshold_range(i, &least, &most);
            CHECK(count >= 3 && grid[0] == least && grid[count - 1] == most, "%s: %d values, %u to %u",
                  tl_threshold_name(i), count, grid[0], grid[count - 1]);
            for (int k = 0; k < count; k++) {
                found = found || grid[k] == usual;
                CHECK(k == 0 || grid[k] > grid[k - 1], "%s: %u", tl_threshold_name(i), grid[k]);
            }
            CHECK(found && usual >= least && usual <= most, "%s: the default is %u", tl_threshold_name(i), usual);
            for (int k = 0; k < i; k++)
                CHECK(strcmp(tl_threshold_name(i), tl_threshold_name(k)) != 0, "%s twice", tl_threshold_name(i));
        }
    CHECK(!tl_threshold_name(TL_THRESHOLDS) && !tl_threshold_name(-1), "names go on");
}

static void each_threshold_changes_one_number(void)
{
    const tl_thresholds usual = tl_thresholds_usual(TL_UNKNOWN);
    static tl_tuned_policy plain, other;
    tl_thresholds_set(&usual, &plain);
    CHECK(memcmp(&plain.steps, tl_policy_auto.gpu, sizeof plain.steps) == 0, "the steps of policy auto");
    CHECK(plain.policy.gpu == &plain.steps && strcmp(plain.policy.name, "auto") == 0, "the policy");
    CHECK(memcmp(plain.policy.few_rows, tl_policy_auto.few_rows, sizeof plain.policy.few_rows) == 0
              && memcmp(&plain.policy.repeats, &tl_policy_auto.repeats, sizeof plain.policy.repeats) == 0,
          "the numbers of policy auto");
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        tl_thresholds t = usual;
        t.of[i] = 77;
        tl_thresholds_set(&t, &other);
        other.policy.gpu = plain.policy.gpu;
        const unsigned char *x = (const unsigned char *)&plain, *y = (const unsigned char *)&other;
        size_t first = 0, last = sizeof plain;
        while (first < sizeof plain && x[first] == y[first]) first++;
        while (last > first && x[last - 1] == y[last - 1]) last--;
        CHECK(last > first && last - first <= 4, "%s: bytes %d to %d", tl_threshold_name(i), (int)first,
              (int)last);
    }
}

static void devices_have_families(void)
{
    static const struct { const char *driver, *arch, *name; bool cpu; tl_family family; } cases[] = {
        {"cuda", "sm_90", "NVIDIA H200", false, TL_HOPPER},
        {"cuda", "sm_86", "NVIDIA A10", false, TL_AMPERE},
        {"cuda", "sm_100", "NVIDIA B200", false, TL_CUDA},
        {"opencl", "OpenCL 3.0", "pthread-skylake", true, TL_OPENCL_CPU},
        {"opencl", "OpenCL 2.1", "gfx90a", false, TL_AMD},
        {"opencl", "OpenCL 3.0", "Intel(R) Arc", false, TL_INTEL},
        {"opencl", "OpenCL 3.0", "NVIDIA H200", false, TL_OPENCL},
        {"other", "sm_90", "NVIDIA H200", false, TL_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(tl_family_of(cases[i].driver, cases[i].arch, cases[i].name, cases[i].cpu) == cases[i].family,
              "%s %s", cases[i].driver, cases[i].name);
    for (int f = 0; f < TL_FAMILIES; f++) {
        tl_family found = TL_FAMILIES;
        CHECK(tl_family_find(tl_family_name((tl_family)f), &found) && (int)found == f, "family %d", f);
    }
    CHECK(!tl_family_find("hoppe", &(tl_family){0}), "a family that there is not");
}

/* ---- the search */

enum { MATRICES = 8 };
typedef struct costs {
    tl_thresholds best;                 /* of the training matrices                          */
    double  slope;                      /* what a factor of e costs                          */
    double  noise;
    int     calls, fails_at, no_room;   /* the call that fails; calls that have no room      */
    bool    judges_differ;              /* others prefer the opposite                        */
    bool    left_range;
} costs;

/* A product's time: one factor for each threshold. */
static tulle_status time_of(void *user, const tl_thresholds *t, int matrix, double *seconds)
{
    costs *c = user;
    double sum = 0;
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        uint32_t least, most;
        tl_threshold_range(i, &least, &most);
        c->left_range = c->left_range || t->of[i] < least || t->of[i] > most;
        sum += fabs(log((double)t->of[i] / c->best.of[i]));
    }
    if (c->judges_differ && matrix % 3 == 2) sum = -sum;
    *seconds = (1 + matrix) * exp(c->slope * sum) * (1 + c->noise * (c->calls % 7 - 3) / 3);
    c->calls++;
    if (c->calls <= c->no_room) *seconds = INFINITY;
    return c->calls == c->fails_at ? TULLE_EDRIVER : TULLE_OK;
}

static tulle_status search(tl_base *b, costs *c, tl_thresholds *found, tl_search_score score[2],
                           tl_search_times *times)
{
    tl_search s = {.family = TL_HOPPER, .matrices = MATRICES, .time = time_of, .user = c};
    return tl_thresholds_search(b, &s, found, score, times);
}

/* The k-th value of each grid. */
static tl_thresholds optimum(int k)
{
    tl_thresholds t;
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        uint32_t grid[TL_THRESHOLD_GRID];
        t.of[i] = grid[(k + i) % tl_threshold_grid(TL_HOPPER, i, grid)];
        t.of[i] = grid[(k + i) % tl_threshold_grid(TL_HOPPER, i, grid)];
    }
    return t;
}

static void a_separable_cost_has_its_optimum_found(void)
{
    tl_base *b = base();
    for (int k = 0; k < 9; k++) {
        costs c = {.best = optimum(k), .slope = 0.1};
        tl_thresholds found;
        tl_search_score score[2];
        tl_search_times times[MATRICES];
        REQUIRE(search(b, &c, &found, score, times) == TULLE_OK, "%s", b->error);
        for (int i = 0; i < TL_THRESHOLDS; i++)
            CHECK(found.of[i] == c.best.of[i], "%d: %s is %u, best is %u", k, tl_threshold_name(i), found.of[i],
                  c.best.of[i]);
        CHECK(!c.left_range, "%d: the range was left", k);
        CHECK(score[0].matrices == 6 && score[1].matrices == 2, "%d and %d", score[0].matrices, score[1].matrices);
        for (int s = 0; s < 2; s++)
            CHECK(fabs(score[s].tuned - 1) < 1e-9 && score[s].usual > 1.05, "%d: slowdown %g, %g", k,
                  score[s].usual, score[s].tuned);
        for (int i = 0; i < MATRICES; i++)
            CHECK(times[i].best == times[i].tuned && times[i].usual > times[i].tuned, "matrix %d", i);
    }
    tl_base_free(b);
}

/* Those that judge would choose the opposite: the scores say so, and nothing else is changed. */
static void each_third_matrix_only_judges(void)
{
    tl_base *b = base();
    costs c = {.best = optimum(2), .slope = 0.1, .judges_differ = true};
    tl_thresholds found;
    tl_search_score score[2];
    tl_search_times times[MATRICES];
    REQUIRE(search(b, &c, &found, score, times) == TULLE_OK, "%s", b->error);
    CHECK(memcmp(&found, &c.best, sizeof found) == 0, "not the optimum of the others");
    CHECK(score[0].tuned < score[0].usual && score[1].tuned > score[1].usual && score[1].usual > 1,
          "%g of %g, %g of %g", score[0].tuned, score[0].usual, score[1].tuned, score[1].usual);
    tl_base_free(b);
}

static void chance_changes_nothing(void)
{
    tl_base *b = base();
    const tl_thresholds usual = tl_thresholds_usual(TL_HOPPER);
    costs c = {.best = usual, .slope = 0, .noise = 0.002};
    tl_thresholds found;
    tl_search_score score[2];
    tl_search_times times[MATRICES];
    REQUIRE(search(b, &c, &found, score, times) == TULLE_OK, "%s", b->error);
    CHECK(memcmp(&found, &usual, sizeof found) == 0, "defaults are kept");
    CHECK(score[0].usual == score[0].tuned && score[0].usual >= 1 && score[0].usual < 1.01, "slowdown %g",
          score[0].usual);
    /* where the defaults leave no room for a product */
    c = (costs){.best = optimum(1), .slope = 0.1, .no_room = 1};
    REQUIRE(search(b, &c, &found, score, times) == TULLE_OK, "%s", b->error);
    CHECK(isfinite(score[0].tuned) && isfinite(score[1].usual), "%g", score[0].tuned);
    tl_base_free(b);
}

static int cancel(void *user, const char *stage, double fraction)
{
    int *calls = user;
    CHECK(strcmp(stage, "tune") == 0 && fraction >= 0 && fraction < 1, "%s %g", stage, fraction);
    return ++*calls == 100;
}

static void failures_and_ctrl_c_end_it(void)
{
    tl_base *b = base();
    const tl_thresholds usual = tl_thresholds_usual(TL_HOPPER);
    tl_thresholds found;
    tl_search_score score[2];
    tl_search_times times[MATRICES];
    const uint64_t held = b->held;
    costs c = {.best = optimum(3), .slope = 0.1, .fails_at = 60};
    CHECK(search(b, &c, &found, score, times) == TULLE_EDRIVER && c.calls == 60, "%d calls", c.calls);
    CHECK(memcmp(&found, &usual, sizeof found) == 0, "something else was found");
    int calls = 0;
    b->progress = cancel;
    b->progress_user = &calls;
    c = (costs){.best = optimum(3), .slope = 0.1};
    CHECK(search(b, &c, &found, score, times) == TULLE_ECANCEL && c.calls == 99, "%d calls", c.calls);
    b->progress = NULL;
    atomic_store(&b->cancelled, 0);
    tl_search few = {.family = TL_CUDA, .matrices = 2, .time = time_of, .user = &c};
    CHECK(tl_thresholds_search(b, &few, &found, score, times) == TULLE_EINVAL && strstr(b->error, "3 at least"),
          "%s", b->error);
    CHECK(b->held == held, "memory is left");
    tl_base_free(b);
}

/* ---- files */

static const char *path_of(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/tulle-thresholds-%lld", (long long)tl_process());
    return path;
}

static tl_tuned some(void)
{
    return (tl_tuned){.family = TL_AMD, .device = "gfx90a, of a test", .thresholds = optimum(4),
                      .score = {{10, 1.25, 1.01}, {5, 1.5, 1.0625}}};
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
    const tl_tuned t = some();
    tl_tuned u;
    REQUIRE(tl_tuned_write(b, path_of(), &t) == TULLE_OK, "%s", b->error);
    const uint64_t held = b->held;
    REQUIRE(tl_tuned_read(b, path_of(), &u) == TULLE_OK, "%s", b->error);
    CHECK(b->held == held, "memory is left");
    CHECK(u.family == t.family && strcmp(u.device, t.device) == 0, "%s", u.device);
    CHECK(memcmp(&u.thresholds, &t.thresholds, sizeof t.thresholds) == 0, "other thresholds");
    for (int k = 0; k < 2; k++)
        CHECK(u.score[k].matrices == t.score[k].matrices && u.score[k].usual == t.score[k].usual
                  && u.score[k].tuned == t.score[k].tuned,
              "score %d", k);
    unlink(path_of());
    CHECK(tl_tuned_read(b, path_of(), &u) == TULLE_EIO && strstr(b->error, path_of()), "%s", b->error);
    tl_base_free(b);
}

/* Each byte changed in three ways, and each truncated length: all are refused. */
static void every_damage_is_noticed(void)
{
    static char text[16384], other[16384];
    static const unsigned char change[] = {1, 0x80, '\n'};
    tl_base *b = base();
    const tl_tuned t = some();
    tl_tuned u;
    REQUIRE(tl_tuned_write(b, path_of(), &t) == TULLE_OK, "%s", b->error);
    const size_t bytes = slurp(text, sizeof text);
    REQUIRE(bytes > 200, "%d bytes", (int)bytes);
    for (size_t i = 0; i < bytes && test_failures < 10; i++)
        for (size_t c = 0; c < sizeof change; c++) {
            memcpy(other, text, bytes);
            other[i] = (char)(other[i] ^ change[c]);
            spill(other, bytes);
            CHECK(tl_tuned_read(b, path_of(), &u) == TULLE_EFORMAT && u.thresholds.of[0] == 0, "byte %d: read",
                  (int)i);
            CHECK(strstr(b->error, path_of()) && strstr(b->error, "line "), "%s", b->error);
        }
    for (size_t n = 1; n < bytes && test_failures < 10; n++) {
        spill(text, n);
        CHECK(tl_tuned_read(b, path_of(), &u) == TULLE_EFORMAT, "%d of %d bytes: read", (int)n, (int)bytes);
    }
    unlink(path_of());
    tl_base_free(b);
}

/* Wrong contents are told before the checksum. */
static void the_sentence_says_what_is_wrong(void)
{
    static const struct { const char *text, *says; } cases[] = {
        {"tulle delta tree 1\n", "no file of thresholds"},
        {"tulle thresholds 2\n", "of this version"},
        {"tulle thresholds 1\nfamily mine\n", "line 2: there is no such family"},
        {"tulle thresholds 1\nfamily amd\nmachine x\n", "line 3: a line \"device"},
        {"@train 0 1 1\n", "line 4: a score is"},
        {"@train 2 1 0.5\n", "line 4: a score is"},
        {"@train 2 1 1\nvalidate 1 nan 1\n", "line 5: a score is"},
        {"@train 2 1 1\nvalidate 1 1 1\nnumeric.bits_per 5\n", "line 6: a line \"symbolic.few_most"},
        {"@train 2 1 1\nvalidate 1 1 1\nsymbolic.few_most 1024\n",
         "line 6: symbolic.few_most is \"1024\"; it may be a whole number from 16 to 512"},
        {"@train 2 1 1\nvalidate 1 1 1\nsymbolic.few_most 64.5\n", "\"64.5\""},
        {"@train 2 1 1\nvalidate 1 1 1\nsymbolic.few_most -1\n", "\"-1\""},
        {"@train 2 1 1\nvalidate 1 1 1\nsymbolic.few_most 64\nnumeric.few_first 99999999999999999999\n", "line 7"},
        {"@train 2 1 1\nvalidate 1 1 1\nsymbolic.few_most 64\n", "line 7: a line \"numeric.few_first"},
    };
    tl_base *b = base();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        tl_tuned u;
        const bool head = cases[i].text[0] == '@';
        const int n = snprintf(text, sizeof text, "%s%s", head ? "tulle thresholds 1\nfamily amd\ndevice x\n" : "",
                               cases[i].text + head);
        spill(text, (size_t)n);
        CHECK(tl_tuned_read(b, path_of(), &u) == TULLE_EFORMAT && strstr(b->error, cases[i].says)
                  && strstr(b->error, "\"tulle tune --policy auto\" writes such files"),
              "%d: %s", (int)i, b->error);
    }
    unlink(path_of());
    tl_base_free(b);
}

TEST_MAIN(TEST(grids_ascend_within_ranges), TEST(each_threshold_changes_one_number), TEST(devices_have_families),
          TEST(a_separable_cost_has_its_optimum_found), TEST(each_third_matrix_only_judges),
          TEST(chance_changes_nothing), TEST(failures_and_ctrl_c_end_it), TEST(what_was_written_is_read),
          TEST(every_damage_is_noticed), TEST(the_sentence_says_what_is_wrong))
