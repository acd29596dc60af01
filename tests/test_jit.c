/* SPDX-License-Identifier: MIT
 * test_jit.c - source texts, keys, and several images at once: compilation, failures, cancellation, embedded
 * images. */
#define _GNU_SOURCE
#include "gpu/engine.h"
#include "jit_help.h"
#include <pthread.h>

/* ---- SHA-256 */

static bool is_hash(tl_hash h, const char *hex)
{
    char text[65];
    for (int i = 0; i < 32; i++) sprintf(text + 2 * i, "%02x", h.byte[i]);
    return strcmp(text, hex) == 0;
}

static void sha256_gives_the_published_hashes(void)
{
    CHECK(is_hash(tl_sha256_of("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), "empty");
    CHECK(is_hash(tl_sha256_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "abc");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    CHECK(is_hash(tl_sha256_of(two, strlen(two)), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
          "two blocks");
    char *million = malloc(1000000);
    REQUIRE(million, "no memory");
    memset(million, 'a', 1000000);
    const char *expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    CHECK(is_hash(tl_sha256_of(million, 1000000), expected), "a million a");
    for (size_t step = 1; step < 200; step += 13) {
        tl_sha256 s;
        tl_sha256_begin(&s);
        for (size_t at = 0; at < 1000000; at += step)
            tl_sha256_add(&s, million + at, 1000000 - at < step ? 1000000 - at : step);
        CHECK(is_hash(tl_sha256_end(&s), expected), "in steps of %zu", step);
    }
    free(million);
}

/* ---- texts */

/* The text after the #line of a part equals the file, byte for byte. */
static bool holds_file(const char *text, const char *name)
{
    static char file[1 << 20];
    char path[1024], line[128];
    snprintf(path, sizeof path, "%s/../src/kernels/%s.cl", TULLE_TEST_DIR, name);
    snprintf(line, sizeof line, "#line 1 \"%s.cl\"\n", name);
    long n = read_file(path, file, sizeof file);
    const char *at = strstr(text, line);
    return n > 0 && at && strncmp(at + strlen(line), file, (size_t)n) == 0;
}

static void a_text_is_made_of_whole_files_that_keep_their_lines(void)
{
    static const char *const dialects[] = {"cuda", "opencl"};
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    int files = 0;
    for (; tl_jit_file(files); files++)
        for (int d = 0; d < 2; d++) {
            tl_program p = {.file = tl_jit_file(files), .defines = "#define A_WORD 17\n#define ANOTHER 2"};
            char *text, prelude[64];
            snprintf(prelude, sizeof prelude, "prelude_%s", dialects[d]);
            REQUIRE(tl_jit_source(b, dialects[d], &p, &text) == TULLE_OK, "%s", b->error);
            CHECK(strstr(p.file, "prelude") == NULL && strcmp(p.file, "common") != 0, "%s is no kernel", p.file);
            CHECK(holds_file(text, prelude) && holds_file(text, "common") && holds_file(text, p.file), "%s", p.file);
            const char *defines = strstr(text, "#line 1 \"defines\"\n#define A_WORD 17\n#define ANOTHER 2\n#line 1 ");
            char last[128];
            snprintf(last, sizeof last, "#line 1 \"%s.cl\"\n", p.file);
            CHECK(strncmp(text, "#line 1 \"prelude_", 17) == 0, "%s does not begin with the prelude", p.file);
            CHECK(defines && defines < strstr(text, "#line 1 \"common.cl\"\n"), "the defines come before common.cl");
            CHECK(strstr(text, last) > strstr(text, "#line 1 \"common.cl\"\n"), "%s comes last", p.file);
            tl_free(b, text);
        }
    CHECK(files > 3, "only %d kernel files", files);
    close_base(b, held);
}

static void a_file_or_dialect_that_is_not_there_is_named(void)
{
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    tl_program p = {.file = "no_such_kernel"}, q = {.file = tl_jit_file(0)};
    char *text;
    CHECK(tl_jit_source(b, "cuda", &p, &text) == TULLE_ECOMPILE && !text, "found");
    CHECK(strstr(b->error, "no_such_kernel.cl"), "%s", b->error);
    CHECK(tl_jit_source(b, "klingon", &q, &text) == TULLE_ECOMPILE && !text, "found");
    CHECK(strstr(b->error, "prelude_klingon.cl"), "%s", b->error);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_image image;
    CHECK(tl_jit_images(b, &c, &p, 1, &image) == TULLE_ECOMPILE && !image.data, "an image of nothing");
    close_base(b, held);
}

/* ---- several images at once */

static void missing_images_are_compiled_at_the_same_time(void)
{
    tl_base *b = open_base(4);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[24];
    tl_image images[24];
    for (int i = 0; i < 24; i++) p[i] = program("", i);
    REQUIRE(tl_jit_images(b, &c, p + 3, 2, images) == TULLE_OK, "%s", b->error);
    for (int i = 0; i < 2; i++) tl_image_free(b, &images[i]);
    atomic_store(&f.wait_for, 4);               /* all four threads must arrive before one continues */
    REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_OK, "%s", b->error);
    CHECK(atomic_load(&f.most_inside) == 4, "%d at once", atomic_load(&f.most_inside));
    CHECK(atomic_load(&f.calls) == 24, "%d calls", atomic_load(&f.calls));
    for (int i = 0; i < 24; i++) {
        CHECK(right(b, &c, &p[i], &images[i]), "image %d", i);
        CHECK(images[i].origin == (i == 3 || i == 4 ? TL_CACHED : TL_COMPILED), "image %d", i);
        tl_image_free(b, &images[i]);
    }
    REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_OK, "%s", b->error);
    CHECK(atomic_load(&f.calls) == 24, "%d calls", atomic_load(&f.calls));
    for (int i = 0; i < 24; i++) tl_image_free(b, &images[i]);
    REQUIRE(tl_jit_images(b, &c, p, 0, images) == TULLE_OK, "none at all: %s", b->error);
    close_base(b, held);
}

static void the_first_program_that_fails_is_told_and_no_image_is_held(void)
{
    tl_base *b = open_base(4);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[24];
    tl_image images[24];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 24; i++) p[i] = program("", i);
        p[5] = program("#define FAIL five\n", 5);
        p[6] = program("#define FAIL siX\n", 6);
        p[20] = program("#define FAIL last\n", 20);
        REQUIRE(tl_jit_images(b, &c, p, 24, images) == TULLE_ECOMPILE, "it did not fail");
        CHECK(strstr(b->error, "error: FAIL five") && strstr(b->error, tl_jit_file(0)), "%s", b->error);
        for (int i = 0; i < 24; i++) CHECK(!images[i].data, "image %d is held", i);
        CHECK(atomic_load(&b->held) == held, "bytes are held");
    }
    for (int i = 0; i < 5; i++) one(b, &c, &p[i], false, "what was compiled before it was kept");
    close_base(b, held);
}

static int stop_at_once(void *user, const char *stage, double fraction)
{
    int *calls = user;
    (void)fraction;
    if (strcmp(stage, "compiling kernels") == 0) ++*calls;
    return 1;
}

static void compiling_can_be_cancelled(void)
{
    tl_base *b = open_base(2);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[64];
    tl_image images[64];
    int calls = 0;
    for (int i = 0; i < 64; i++) p[i] = program("", i);
    b->progress = stop_at_once;
    b->progress_user = &calls;
    atomic_store(&f.wait_for, 3);               /* the other thread is blocked meanwhile */
    f.most_inside = 0;
    REQUIRE(tl_jit_images(b, &c, p, 64, images) == TULLE_ECANCEL, "it was not cancelled");
    CHECK(calls == 1 && atomic_load(&f.calls) < 64, "%d calls, %d compiled", calls, atomic_load(&f.calls));
    for (int i = 0; i < 64; i++) CHECK(!images[i].data, "image %d is held", i);
    close_base(b, held);
}

/* ---- memory hooks: called only from the caller's thread, and each call may fail */

typedef struct hooks {
    pthread_t caller;
    int       live, calls, fail_at, strangers;
} hooks;

static void *hook_alloc(void *user, size_t bytes)
{
    hooks *h = user;
    if (!pthread_equal(h->caller, pthread_self())) h->strangers++;
    if (++h->calls == h->fail_at) return NULL;
    h->live++;
    return malloc(bytes);
}

static void hook_free(void *user, void *p)
{
    hooks *h = user;
    if (!pthread_equal(h->caller, pthread_self())) h->strangers++;
    h->live--;
    free(p);
}

static void memory_hooks_are_kept_to_and_may_fail(void)
{
    tl_base *outer = open_base(1), *b = NULL;
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p[6];
    tl_image images[6];
    hooks h = {.caller = pthread_self()};
    tulle_mem mem = {.alloc = hook_alloc, .free = hook_free, .user = &h};
    REQUIRE(tl_base_create(&mem, 3, sizeof *b, &b) == TULLE_OK, "no base");
    for (int i = 0; i < 6; i++) p[i] = program("", i);
    int live = h.live, failed = 0;
    tulle_status status = TULLE_ENOMEM;
    for (int n = 1; n < 1000 && status != TULLE_OK; n++) {
        tl_cache_info info;
        h.fail_at = 0;
        if (n % 2) CHECK(tl_cache_clear(b, &info) == TULLE_OK, "%s", b->error);
        h.calls = 0;
        h.fail_at = n;
        status = tl_jit_images(b, &c, p, 6, images);
        h.fail_at = 0;
        bool hit = h.calls >= n;
        if (status != TULLE_OK) {
            failed++;
            CHECK(status == TULLE_ENOMEM && b->error[0], "%s", tulle_status_name(status));
            CHECK(h.live == live, "%d blocks are held", h.live - live);
        } else {
            CHECK(h.live == live + 6, "%d blocks are held", h.live - live);
            for (int i = 0; i < 6; i++) {
                CHECK(right(b, &c, &p[i], &images[i]), "image %d", i);
                tl_image_free(b, &images[i]);
            }
            if (hit) status = TULLE_ENOMEM;  /* the cache ignored the failure; continue until no call fails */
        }
    }
    CHECK(failed > 6 && status == TULLE_OK, "%d failures", failed);
    CHECK(h.strangers == 0, "%d calls from other threads", h.strangers);
    CHECK(h.live == live, "%d blocks are held", h.live - live);
    tl_base_free(b);
    CHECK(h.live == 0, "%d blocks are held", h.live);
    close_base(outer, atomic_load(&outer->held));
}

/* ---- embedded images */

static const char *chosen(const char *const *archs, const char *device)
{
    tl_embedded table[8] = {{.arch = NULL}};
    tl_hash key = tl_embedded_key("cuda", "text"), other = tl_embedded_key("cuda", "another");
    int n = 0;
    table[n++] = (tl_embedded){.key = other, .arch = device, .data = "", .bytes = 1};
    for (; *archs; archs++) table[n++] = (tl_embedded){.key = key, .arch = *archs, .data = "", .bytes = 1};
    const tl_embedded *e = tl_embedded_find(table, &key, device);
    return e ? e->arch : "none";
}

static void an_embedded_image_must_suit_the_device(void)
{
    static const char *const all[] = {"compute_80", "sm_80", "compute_90", "sm_90", NULL};
    static const char *const code[] = {"sm_80", "sm_90", NULL};
    static const struct { const char *const *archs, *device, *expected; } cases[] = {
        {all, "sm_80", "sm_80"}, {all, "sm_86", "sm_80"}, {all, "sm_89", "sm_80"}, {all, "sm_90", "sm_90"},
        {all, "sm_87", "compute_80"}, {all, "sm_100", "compute_90"}, {all, "sm_120", "compute_90"},
        {all, "sm_75", "none"}, {all, "sm_70", "none"}, {all, "pocl", "none"}, {all, "sm_", "none"}, {all, "", "none"},
        {code, "sm_75", "none"}, {code, "sm_86", "sm_80"}, {code, "sm_90", "sm_90"}, {code, "sm_100", "none"},
        {code, "sm_87", "none"}, {code, "sm_8", "none"}, {code, "sm_90a", "none"}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        CHECK(strcmp(chosen(cases[i].archs, cases[i].device), cases[i].expected) == 0, "%s on %s, not on %s",
              chosen(cases[i].archs, cases[i].device), cases[i].device, cases[i].expected);
}

/* If there was no NVRTC at build time, the table is empty, and everything is compiled. */
static void what_was_made_ahead_needs_no_compiler(void)
{
    static const char *const devices[] = {"sm_80", "sm_86", "sm_87", "sm_90", "sm_100"};
    tl_base *b = open_base(1);
    uint64_t held = atomic_load(&b->held);
    fake f = {0};
    tl_compiler c = compiler_of(&f);
    tl_program p;
    tl_image image;
    int programs = 0;
    bool there = tl_embedded_count() > 0;
    c.dialect = "cuda";
    unsetenv("TULLE_IMAGES");
    for (; tl_program_ahead(programs, &p); programs++)
        for (int d = 0; there && d < 5; d++) {
            c.arch = devices[d];
            REQUIRE(tl_jit_images(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
            CHECK(image.origin == TL_EMBEDDED, "%s for %s was compiled", p.file, devices[d]);
            bool code = image.bytes > 4 && memcmp(image.data, "\177ELF", 4) == 0;
            bool ptx = image.bytes > 4 && ((char *)image.data)[image.bytes - 1] == 0
                    && strstr(image.data, ".target sm_") != NULL;
            CHECK(d == 2 || d == 4 ? ptx : code, "%s for %s is of another kind", p.file, devices[d]);
            tl_image_free(b, &image);
        }
    CHECK(programs > 10 && atomic_load(&f.calls) == 0, "%d programs, %d calls", programs, atomic_load(&f.calls));
    CHECK(!there || tl_embedded_count() == 4 * programs, "%d images of %d programs", tl_embedded_count(), programs);
    REQUIRE(tl_program_ahead(0, &p), "there is no program");
    REQUIRE(tl_jit_compiled(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.origin == TL_COMPILED && right(b, &c, &p, &image), "an embedded image was taken");
    tl_image_free(b, &image);
    setenv("TULLE_IMAGES", "off", 1);
    REQUIRE(tl_jit_images(b, &c, &p, 1, &image) == TULLE_OK, "%s", b->error);
    CHECK(image.origin == TL_CACHED && right(b, &c, &p, &image), "an embedded image was taken");
    tl_image_free(b, &image);
    unsetenv("TULLE_IMAGES");
    close_base(b, held);
}

TEST_MAIN(TEST(sha256_gives_the_published_hashes),
          TEST(a_text_is_made_of_whole_files_that_keep_their_lines),
          TEST(a_file_or_dialect_that_is_not_there_is_named),
          TEST(missing_images_are_compiled_at_the_same_time),
          TEST(the_first_program_that_fails_is_told_and_no_image_is_held),
          TEST(compiling_can_be_cancelled),
          TEST(memory_hooks_are_kept_to_and_may_fail),
          TEST(an_embedded_image_must_suit_the_device),
          TEST(what_was_made_ahead_needs_no_compiler))
