/* SPDX-License-Identifier: MIT
 *
 * test_gpu_merges.c - the five merge algorithms: every length and value width that fits on the device,
 * inputs that are difficult for some of them, several block sizes; errors that the check of a result finds;
 * requests that are refused. */
#define _POSIX_C_SOURCE 200809L
#include "ctx.h"
#include "gpu.h"
#include "gpu/engine.h"

static const int widths[] = {0, 4, 8};
static const char *const inputs[] = {"random", "equal", "apart", "swapped", "interleaved"};

enum { WIDTHS = 3, INPUTS = 5, ALGORITHMS = 5 };

static uint64_t shared_bytes(const tl_merge_request *r)
{
    return (r->algorithm == 0 ? 4u : 2u) * r->length * (4 + (uint64_t)r->value_bytes);
}

/* If it fits, the result is correct; otherwise the message says what is missing. */
static void try_one(tulle_ctx *ctx, tl_merge_request r)
{
    tulle_merge_result result;
    const tl_caps *caps = tl_gpu_caps(ctx->gpu);
    uint32_t items = r.threads ? 2 * r.length / r.threads : 1;
    bool fits = shared_bytes(&r) <= tl_dynamic_bytes(caps);
    bool possible = r.threads <= caps->threads_block && items >= 1 && items <= (r.value_bytes ? 16u : 32u);
    tulle_status status = tl_gpu_merge(&ctx->base, ctx->gpu, &r, &result);
    if (!fits || !possible) {
        CHECK(status == TULLE_ELIMIT && result.threads == 0 && strstr(ctx->base.error, tulle_merge_name(r.algorithm))
              && strstr(ctx->base.error, fits ? "threads" : "shared memory"), "%d: %s", (int)status, ctx->base.error);
        return;
    }
    CHECK(status == TULLE_OK, "%s, %u, %d bytes, %s, %u threads: %s", tulle_merge_name(r.algorithm), r.length,
          r.value_bytes, inputs[r.input], r.threads, ctx->base.error);
    if (status != TULLE_OK) return;
    CHECK(result.shared_bytes == shared_bytes(&r), "%d bytes", (int)result.shared_bytes);
    CHECK(r.threads ? result.threads == (int)r.threads : result.threads >= 32, "%d threads", result.threads);
    CHECK(result.seconds > 0 && result.rate > 0, "%g s, %g", result.seconds, result.rate);
    CHECK(result.entries == (int64_t)r.entries, "%d entries", (int)result.entries);
}

static void every_length(int algorithm)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int w = 0; w < WIDTHS; w++)
        for (uint32_t length = TL_MERGE_LEAST; length <= TL_MERGE_MOST; length *= 2)
            for (int input = 0; input < INPUTS; input++)
                for (uint32_t threads = 64; threads <= 512; threads *= 8)
                    try_one(ctx, (tl_merge_request){.algorithm = algorithm, .value_bytes = widths[w], .length = length,
                                                    .entries = 3 * 2 * length, .runs = 1, .threads = threads,
                                                    .input = (tl_merge_input)input});
    tulle_ctx_free(ctx);
}

static void ranking(void) { every_length(0); }
static void merge_path(void) { every_length(1); }
static void odd_even(void) { every_length(2); }
static void bitonic(void) { every_length(3); }
static void advanced_bitonic(void) { every_length(4); }

static void every_block_size(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int a = 0; a < ALGORITHMS; a++)
        for (uint32_t threads = 32; threads <= 1024; threads *= 2)
            for (uint32_t length = 32; length <= 1024; length *= 32)
                try_one(ctx, (tl_merge_request){.algorithm = a, .value_bytes = 4, .length = length, .entries = 10 * length,
                                                .runs = 2, .threads = threads});
    tulle_ctx_free(ctx);
}

/* More entries than the host generates, so that the device repeats them, with an incomplete last part. */
static void more_than_a_period(void)
{
    tulle_ctx *ctx = gpu_ctx();
    try_one(ctx, (tl_merge_request){.algorithm = 1, .value_bytes = 8, .length = 256, .entries = (5 << 19) + 512, .runs = 1});
    tulle_ctx_free(ctx);
}

static void a_small_scratchpad_is_a_sentence(void)
{
    tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_SHARED", "16384");
    for (int a = 0; a < ALGORITHMS; a += 4)
        for (uint32_t length = 512; length <= 4096; length *= 2)
            try_one(ctx, (tl_merge_request){.algorithm = a, .value_bytes = 4, .length = length, .entries = 2 * length,
                                            .runs = 1, .threads = 512});
    tulle_ctx_free(ctx);
}

/* ---- the check */

/* A correct result made by hand; with `equal` any order of values is correct. */
static void planted(int value_bytes)
{
    enum { LENGTH = 32, COUNT = 6 * LENGTH };
    tl_base *b = NULL;
    uint32_t key[COUNT], to[COUNT];
    double val[COUNT], val_to[COUNT];
    tl_merge_request r = {.algorithm = 1, .value_bytes = value_bytes, .length = LENGTH, .threads = 32};
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) abort();
    tl_merge_fill(TL_MERGE_APART, LENGTH, value_bytes, COUNT, key, val);
    memcpy(to, key, sizeof to);
    memcpy(val_to, val, sizeof val);
    CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_OK, "%s", b->error);
    for (int i = 0; i < COUNT; i++) {
        uint32_t was = to[i];
        to[i] = was + 1;
        CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_ECHECK, "key %d one more", i);
        char where[64];
        snprintf(where, sizeof where, "entry %d of pair %d is wrong", i % (2 * LENGTH), i / (2 * LENGTH));
        CHECK(strstr(b->error, where), "%s: %s", where, b->error);
        to[i] = was;
    }
    uint32_t swapped = to[4];           /* all keys, but two of them swapped */
    to[4] = to[5];
    to[5] = swapped;
    CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_ECHECK, "two keys the other way round");
    to[5] = to[4];
    to[4] = swapped;
    unsigned char *bytes = (unsigned char *)val_to;
    size_t width = (size_t)value_bytes;
    if (width) {
        memcpy(bytes + 7 * width, bytes + 8 * width, width);
        CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_ECHECK, "a value of another key");
        memset(bytes + 7 * width, 0xff, width);
        CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_ECHECK, "no number at all");
        tl_merge_fill(TL_MERGE_EQUAL, LENGTH, value_bytes, COUNT, key, val);
        memcpy(to, key, sizeof to);
        for (size_t i = 0; i < COUNT; i++)      /* backwards within each pair */
            memcpy(bytes + i * width, (unsigned char *)val + (2 * LENGTH - 1 - i % (2 * LENGTH)) * width, width);
        CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_OK, "%s", b->error);
        memcpy(bytes + 9 * width, bytes + 10 * width, width);
        CHECK(tl_merge_check(b, &r, COUNT, key, to, val_to) == TULLE_ECHECK, "one value twice, another not at all");
    }
    tl_base_free(b);
}

static void the_check_finds_what_is_planted(void)
{
    for (int w = 0; w < WIDTHS; w++) planted(widths[w]);
}

static void sequences_are_sorted_and_have_duplicates(void)
{
    enum { LENGTH = 64, COUNT = 20 * LENGTH };
    uint32_t key[COUNT];
    for (int input = 0; input < INPUTS; input++) {
        int equal = 0;
        tl_merge_fill((tl_merge_input)input, LENGTH, 0, COUNT, key, NULL);
        for (int i = 1; i < COUNT; i++) {
            if (i % LENGTH == 0) continue;
            CHECK(key[i] >= key[i - 1], "%s: entry %d", inputs[input], i);
            equal += key[i] == key[i - 1];
        }
        if (input <= TL_MERGE_EQUAL) CHECK(equal > COUNT / 10, "%s: %d equal neighbours", inputs[input], equal);
    }
}

/* ---- the public function */

static void refused(tulle_ctx *ctx, const tulle_merge_options *o, tulle_status code, const char *words)
{
    tulle_merge_result result = {.threads = 7};
    tulle_status status = tulle_merge_trial(ctx, o, &result);
    CHECK(status == code && strstr(tulle_ctx_error(ctx), words), "%s: %d, %s", words, (int)status, tulle_ctx_error(ctx));
    CHECK(result.threads == 0, "%s: %d threads", words, result.threads);
}

static void what_makes_no_sense_is_refused(void)
{
    static const struct { tulle_merge_options o; tulle_status code; const char *words; } cases[] = {
        {{"quick", 0, 64, 1, 0, 256, {0}}, TULLE_EINVAL, "no merge algorithm \"quick\""},
        {{NULL, 0, 64, 1, 0, 256, {0}}, TULLE_EINVAL, "no merge algorithm"},
        {{"bitonic", 16, 64, 1, 0, 256, {0}}, TULLE_EINVAL, "values of 16 bytes"},
        {{"bitonic", 0, 16, 1, 0, 256, {0}}, TULLE_EINVAL, "sequences of 16 entries"},
        {{"bitonic", 0, 96, 1, 0, 192, {0}}, TULLE_EINVAL, "sequences of 96 entries"},
        {{"bitonic", 0, 8192, 1, 0, 0, {0}}, TULLE_EINVAL, "from 32 to 4096"},
        {{"bitonic", 0, 64, 1, 0, 200, {0}}, TULLE_EINVAL, "200 entries are no pairs"},
        {{"bitonic", 0, 64, 1, 0, -128, {0}}, TULLE_EINVAL, "-128 entries are no pairs"},
        {{"bitonic", 0, 64, 1, 0, INT64_MAX / 128 * 128, {0}}, TULLE_EINVAL, "entries are no pairs"},
        {{"bitonic", 0, 64, -1, 0, 256, {0}}, TULLE_EINVAL, "-1 runs"},
        {{"bitonic", 0, 64, 1, 100, 256, {0}}, TULLE_EINVAL, "blocks of 100 threads"},
        {{"bitonic", 0, 64, 1, 1024, 256, {0}}, TULLE_ELIMIT, "threads"},
        {{"bitonic", 0, 64, 1, 0, 256, {0, 1}}, TULLE_EINVAL, "reserved[1]"},
    };
    tulle_ctx *ctx = gpu_ctx();
    tulle_merge_options right = {.algorithm = "bitonic", .length = 64, .entries = 256};
    tulle_merge_result result;
    CHECK(tulle_merge_trial(NULL, &right, &result) == TULLE_EINVAL, "no context");
    CHECK(tulle_merge_trial(ctx, NULL, &result) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "options is NULL"), "%s",
          tulle_ctx_error(ctx));
    CHECK(tulle_merge_trial(ctx, &right, NULL) == TULLE_EINVAL && strstr(tulle_ctx_error(ctx), "result is NULL"), "%s",
          tulle_ctx_error(ctx));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refused(ctx, &cases[i].o, cases[i].code, cases[i].words);
    tulle_ctx_free(ctx);
    REQUIRE(tulle_ctx_create("cpu", NULL, &ctx) == TULLE_OK, "no CPU");
    refused(ctx, &right, TULLE_EDEVICE, "merge trials need a GPU");
    tulle_ctx_free(ctx);
}

static void the_best_block_size_is_found(void)
{
    tulle_ctx *ctx = gpu_ctx();
    for (int i = 0; i < ALGORITHMS; i++) {
        tulle_merge_result result = {.threads = 0};
        tulle_merge_options o = {.algorithm = tulle_merge_name(i), .value_bytes = 4, .length = 256, .entries = 1 << 14};
        CHECK(tulle_merge_trial(ctx, &o, &result) == TULLE_OK, "%s", tulle_ctx_error(ctx));
        CHECK(result.threads >= 32 && result.threads <= 512 && result.rate > 0, "%d threads", result.threads);
    }
    CHECK(!tulle_merge_name(ALGORITHMS) && !tulle_merge_name(-1), "a name too many");
    tulle_ctx_free(ctx);
}

/* Makes one allocation after the other fail: a message, and nothing leaks. */
static void failing_allocations(void)
{
    int failed = 0;
    for (int i = 1; i < 7; i++) {
        char number[8];
        snprintf(number, sizeof number, "%d", i);
        tulle_ctx *ctx = gpu_ctx_env("TULLE_GPU_FAIL", number);
        tl_kernel_id kernel = TL_K_MERGE_PATH;
        tl_types types = {32, 32, 32, TULLE_F32};
        CHECK(tl_gpu_need(&ctx->base, ctx->gpu, types, &kernel, 1) == TULLE_OK, "%s", ctx->base.error);
        uint64_t host = ctx->base.held, device = tl_dmem_held(ctx->gpu);
        tl_merge_request r = {.algorithm = 1, .value_bytes = 4, .length = 32, .entries = 640, .runs = 1, .threads = 64};
        tulle_merge_result result;
        tulle_status status = tl_gpu_merge(&ctx->base, ctx->gpu, &r, &result);
        CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && strstr(ctx->base.error, "merge")), "%d: %s", i, ctx->base.error);
        failed += status != TULLE_OK;
        CHECK(ctx->base.held == host && tl_dmem_held(ctx->gpu) == device, "allocation %d: not all was freed", i);
        tulle_ctx_free(ctx);
    }
    CHECK(failed == 4, "%d of 4 allocations failed", failed);
}

TEST_MAIN(TEST(ranking), TEST(merge_path), TEST(odd_even), TEST(bitonic), TEST(advanced_bitonic), TEST(every_block_size),
          TEST(more_than_a_period), TEST(a_small_scratchpad_is_a_sentence), TEST(the_check_finds_what_is_planted),
          TEST(sequences_are_sorted_and_have_duplicates), TEST(what_makes_no_sense_is_refused),
          TEST(the_best_block_size_is_found), TEST(failing_allocations))
