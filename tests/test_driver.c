/* SPDX-License-Identifier: MIT
 *
 * test_driver.c - every function of the driver table, on every driver that has a device: memory, copies,
 * small kernels in the dialect of src/kernels with each macro of its preludes, time, queues, and error
 * messages.
 *
 * TULLE_TEST_DEVICE ("opencl:0") selects one driver. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include "gpu/opencl.h"
#include "jit/parts.h"
#include "test.h"

enum { THREADS = 64, BLOCKS = 4, ALL = THREADS * BLOCKS };

typedef struct place {
    const tl_driver *driver;
    tl_base         *b;
    tl_device       *device;
    const tl_caps   *caps;
} place;

static const tl_driver *const drivers[] = {&tl_driver_cuda, &tl_driver_opencl};
enum { DRIVERS = sizeof drivers / sizeof *drivers };

static tl_base *base_new(void)
{
    tl_base *b = NULL;
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) abort();
    return b;
}

static bool wanted(const tl_driver *driver)
{
    const char *only = getenv("TULLE_TEST_DEVICE");
    return !only || !*only || strncmp(only, driver->name, strlen(driver->name)) == 0;
}

/* The first device that can be used, or -1. */
static int usable(tl_base *b, const tl_driver *driver)
{
    tl_caps caps[16];
    char why[256] = "";
    int count = 0;
    if (!wanted(driver) || driver->list(b, caps, 16, &count, why, sizeof why) != TULLE_OK) return -1;
    for (int i = 0; i < count && i < 16; i++)
        if (!caps[i].why_not[0]) return i;
    return -1;
}

static void on_each(void (*test)(const place *))
{
    int tested = 0;
    for (int i = 0; i < DRIVERS; i++) {
        place p = {.driver = drivers[i], .b = base_new()};
        int index = usable(p.b, p.driver);
        if (index >= 0) {
            tested++;
            CHECK(p.driver->open(p.b, index, &p.device) == TULLE_OK, "%s:%d: %s", p.driver->name, index, p.b->error);
            if (p.device) {
                int before = test_failures;
                p.caps = p.driver->caps(p.device);
                test(&p);
                if (test_failures > before) printf("    on %s:%d, %s\n", p.driver->name, index, p.caps->name);
                p.driver->close(p.device);
            }
        }
        tl_base_free(p.b);
    }
    CHECK(tested > 0, "no driver has a device");
}

#define ON_EACH(name)                                   \
    static void name##_on(const place *p);              \
    static void name(void) { on_each(name##_on); }      \
    static void name##_on(const place *p)

#define GOOD(call) CHECK((call) == TULLE_OK, "%s", p->b->error)
#define MUST(call) REQUIRE((call) == TULLE_OK, "%s", p->b->error)
/* The call fails with this status, and the message contains these words. */
#define FAILS(call, want, ...)                                                                          \
    do {                                                                                                \
        p->b->error[0] = 0;                                                                             \
        tulle_status got_ = (call);                                                                     \
        CHECK(got_ == (want), "it is %s: %s", tulle_status_name(got_), p->b->error);                    \
        const char *const words_[] = {__VA_ARGS__, NULL};                                               \
        for (int w_ = 0; words_[w_]; w_++)                                                              \
            CHECK(strstr(p->b->error, words_[w_]), "no \"%s\" in \"%s\"", words_[w_], p->b->error);     \
    } while (0)

/* ---- helpers */

static const char *words(const char *format, ...)
{
    static char text[4][128];
    static int next;
    va_list args;
    va_start(args, format);
    next = (next + 1) % 4;
    vsnprintf(text[next], sizeof text[next], format, args);
    va_end(args);
    return text[next];
}

/* The prelude of the dialect followed by the kernels; to be freed by free(). */
static char *with_prelude(const char *dialect, const char *kernels)
{
    const char *name = words("prelude_%s", dialect);
    const tl_text *t = tl_texts;
    while (t->name && strcmp(t->name, name) != 0) t++;
    if (!t->name) abort();
    size_t room = t->bytes + strlen(kernels) + 128;
    char *text = malloc(room);
    if (!text) abort();
    snprintf(text, room, "%.*s\n#define THREADS_MAX 1024\n#line 1 \"tests.cl\"\n%s", (int)t->bytes,
             (const char *)t->text, kernels);
    return text;
}

static tulle_status build(const place *p, const char *kernels, tl_module **module)
{
    tl_compiler c = p->driver->compiler(p->device);
    tl_image image = {0};
    char *text = with_prelude(c.dialect, kernels);
    *module = NULL;
    tulle_status status = c.compile(c.self, p->b, "tests", text, &image);
    if (status == TULLE_OK) {
        CHECK(image.data && image.bytes > 0 && image.origin == TL_COMPILED, "an image of %" PRIu64 " bytes", image.bytes);
        status = p->driver->load(p->b, p->device, &image, module);
    }
    tl_free(p->b, image.data);
    free(text);
    return status;
}

static tl_arg mem(uint64_t handle, uint64_t offset)
{
    return (tl_arg){.kind = TL_ARG_MEM, .as.mem = {handle, offset}};
}
static tl_arg u32(uint32_t v) { return (tl_arg){.kind = TL_ARG_U32, .as.u32 = v}; }
static tl_arg u64(uint64_t v) { return (tl_arg){.kind = TL_ARG_U64, .as.u64 = v}; }
static tl_arg f64(double v) { return (tl_arg){.kind = TL_ARG_F64, .as.f64 = v}; }

#define ARGS(...) .args = (const tl_arg[]){__VA_ARGS__}, \
                  .count = (int)(sizeof((const tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg))

static tulle_status run(const place *p, tl_module *module, const char *name, tl_launch launch)
{
    tl_kernel *kernel = NULL;
    tulle_status status = p->driver->kernel(p->b, p->device, module, name, &kernel);
    if (status == TULLE_OK) status = p->driver->launch(p->b, p->device, kernel, &launch);
    return status;
}

static tulle_status get(const place *p, void *to, uint64_t handle, uint64_t offset, uint64_t bytes)
{
    tulle_status status = p->driver->download(p->b, p->device, to, (tl_dmem){handle, offset}, bytes);
    return status == TULLE_OK ? p->driver->wait(p->b, p->device) : status;
}

static tulle_status put(const place *p, uint64_t handle, uint64_t offset, const void *from, uint64_t bytes)
{
    return p->driver->upload(p->b, p->device, (tl_dmem){handle, offset}, from, bytes);
}

static tulle_status zero(const place *p, uint64_t handle, uint64_t bytes)
{
    return p->driver->fill(p->b, p->device, (tl_dmem){handle, 0}, 0, bytes);
}

/* ---- devices */

static void lists_devices_with_what_they_can_do(void)
{
    tl_base *b = base_new();
    int all = 0;
    for (int i = 0; i < DRIVERS; i++) {
        tl_caps caps[16], fewer[16];
        char why[256] = "";
        int count = -1, again = -1;
        CHECK(drivers[i]->list(b, caps, 16, &count, why, sizeof why) == TULLE_OK, "%s: %s", drivers[i]->name, b->error);
        CHECK(count > 0 || (count == 0 && why[0]), "%s: %d devices, why \"%s\"", drivers[i]->name, count, why);
        for (int k = 0; k < count && k < 16; k++) {
            const tl_caps *c = &caps[k];
            printf("    %s:%d %s, %s, %s, %.1f GiB, %u KiB shared, %u processors, %u threads, warp %u%s %s\n",
                   drivers[i]->name, k, c->name, c->arch, c->driver, (double)c->memory_bytes / (1u << 30),
                   c->shared_block >> 10, c->processors, c->threads_block, c->warp, c->cpu ? ", cpu" : "", c->why_not);
            CHECK(c->name[0] && c->arch[0] && c->driver[0], "a device without a name");
            if (c->why_not[0]) continue;
            all++;
            CHECK(c->memory_bytes >= 16u << 20 && c->memory_free <= c->memory_bytes, "%" PRIu64 " bytes, %" PRIu64
                  " free", c->memory_bytes, c->memory_free);
            CHECK(c->shared_block >= 16u << 10 && c->shared_processor >= c->shared_block, "shared memory");
            CHECK(c->processors > 0 && c->threads_block >= THREADS && c->threads_processor >= c->threads_block,
                  "threads");
        }
        memset(fewer, 0x5a, sizeof fewer);
        CHECK(drivers[i]->list(b, fewer, 0, &again, why, sizeof why) == TULLE_OK && again == count,
              "without room %d of %d devices", again, count);
        CHECK(fewer[0].name[0] == 0x5a, "more was written than there was room for");
    }
    CHECK(all > 0, "no device can be used");
    tl_base_free(b);
}

static void a_device_that_is_not_there(void)
{
    for (int i = 0; i < DRIVERS; i++) {
        place at = {.driver = drivers[i], .b = base_new()}, *p = &at;
        bool there = usable(at.b, at.driver) >= 0;
        FAILS(at.driver->open(at.b, 4711, &at.device), TULLE_EDEVICE, there ? "4711" : "");
        FAILS(at.driver->open(at.b, -1, &at.device), TULLE_EDEVICE, there ? "-1" : "");
        CHECK(!at.device, "a device of nothing");
        tl_base_free(at.b);
    }
}

static void a_library_that_is_not_there(void)
{
    static const struct { const char *path, *word; } libraries[] = {
        {"/nowhere/libOpenCL.so.1", "/nowhere/libOpenCL.so.1"}, {"libm.so.6", "clGetPlatformIDs"}};
    place at = {.driver = &tl_driver_opencl, .b = base_new()}, *p = &at;
    const char *before = getenv("TULLE_LIBOPENCL");
    char *keep = before ? strdup(before) : NULL;
    for (int i = 0; i < 2; i++) {
        tl_caps caps[2];
        char why[256] = "";
        int count = -1;
        setenv("TULLE_LIBOPENCL", libraries[i].path, 1);
        GOOD(at.driver->list(at.b, caps, 2, &count, why, sizeof why));
        CHECK(count == 0 && strstr(why, libraries[i].word), "%d devices, why \"%s\"", count, why);
        FAILS(at.driver->open(at.b, 0, &at.device), TULLE_EDEVICE, libraries[i].word);
        CHECK(!at.device, "a device of no library");
    }
    if (keep) setenv("TULLE_LIBOPENCL", keep, 1);
    else unsetenv("TULLE_LIBOPENCL");
    free(keep);
    tl_base_free(at.b);
}

ON_EACH(the_same_device_opens_twice)
{
    tl_device *other = NULL;
    uint64_t x = 0, y = 0;
    int index = usable(p->b, p->driver);
    MUST(p->driver->open(p->b, index, &other));
    place second = *p;
    second.device = other;
    GOOD(p->driver->alloc(p->b, p->device, 4096, &x));
    GOOD(p->driver->alloc(p->b, other, 4096, &y));
    char text[64] = "one", back[64] = "";
    GOOD(put(p, x, 0, text, sizeof text));
    GOOD(put(&second, y, 0, "two", 4));
    GOOD(get(p, back, x, 0, sizeof back));
    CHECK(strcmp(back, "one") == 0, "it is \"%s\"", back);
    p->driver->free(other, y);
    p->driver->close(other);
    GOOD(get(p, back, x, 0, sizeof back));
    p->driver->free(p->device, x);
}

/* ---- memory and copies */

ON_EACH(bytes_go_there_and_back_at_offsets)
{
    enum { BYTES = 10000 };
    unsigned char want[2 * BYTES];
    uint64_t x = 0, y = 0;
    void *back = NULL;
    for (int i = 0; i < 2 * BYTES; i++) want[i] = (unsigned char)(i * 7 + i / 251);
    MUST(p->driver->alloc(p->b, p->device, 4 * BYTES, &x));
    MUST(p->driver->alloc(p->b, p->device, 4 * BYTES, &y));
    CHECK(x && y && x != y, "handles");
    MUST(p->driver->pinned(p->b, p->device, BYTES, &back));
    static const uint64_t offsets[] = {0, TL_ALIGN, 3 * TL_ALIGN, 40 * TL_ALIGN};
    static const uint64_t sizes[] = {1, 3, 16, 17, 4096, BYTES};
    for (int o = 0; o < 4; o++)
        for (int s = 0; s < 6; s++) {
            GOOD(put(p, x, offsets[o], want + o + s, sizes[s]));
            GOOD(p->driver->copy(p->b, p->device, (tl_dmem){y, offsets[3 - o]}, (tl_dmem){x, offsets[o]}, sizes[s]));
            memset(back, 0xee, BYTES);
            GOOD(get(p, back, y, offsets[3 - o], sizes[s]));
            CHECK(memcmp(back, want + o + s, sizes[s]) == 0, "%" PRIu64 " bytes at %" PRIu64, sizes[s], offsets[o]);
        }
    /* inside one block, at odd offsets, too */
    GOOD(put(p, x, 0, want, BYTES));
    GOOD(p->driver->copy(p->b, p->device, (tl_dmem){x, 2 * BYTES + 5}, (tl_dmem){x, 3}, 777));
    GOOD(get(p, back, x, 2 * BYTES + 5, 777));
    CHECK(memcmp(back, want + 3, 777) == 0, "a copy inside of a block");
    /* copies of 0 bytes */
    GOOD(put(p, x, 0, NULL, 0));
    GOOD(get(p, NULL, x, 0, 0));
    GOOD(p->driver->copy(p->b, p->device, (tl_dmem){y, 0}, (tl_dmem){x, 0}, 0));
    GOOD(p->driver->fill(p->b, p->device, (tl_dmem){y, 0}, 1, 0));
    p->driver->unpin(p->device, back);
    p->driver->free(p->device, x);
    p->driver->free(p->device, y);
    p->driver->free(p->device, 0);
}

ON_EACH(fills_touch_their_bytes_only)
{
    enum { BYTES = 6000 };
    unsigned char back[BYTES];
    uint64_t x = 0;
    MUST(p->driver->alloc(p->b, p->device, BYTES, &x));
    static const struct { uint64_t offset, bytes; uint8_t byte; } fills[] = {
        {512, 1, 0xff}, {512, 16, 7}, {1024, 1000, 0}, {0, BYTES, 0xff}, {1024, 33, 0x80}, {1, 2, 3}, {513, 4097, 9}};
    for (int i = 0; i < 7; i++) {
        uint64_t from = fills[i].offset, to = from + fills[i].bytes;
        int wrong = 0;
        GOOD(p->driver->fill(p->b, p->device, (tl_dmem){x, 0}, 0x5a, BYTES));
        GOOD(p->driver->fill(p->b, p->device, (tl_dmem){x, from}, fills[i].byte, fills[i].bytes));
        GOOD(get(p, back, x, 0, BYTES));
        for (uint64_t k = 0; k < BYTES; k++) wrong += back[k] != (k >= from && k < to ? fills[i].byte : 0x5a);
        CHECK(wrong == 0, "fill %d: %d bytes are wrong", i, wrong);
    }
    p->driver->free(p->device, x);
}

ON_EACH(memory_that_is_not_there)
{
    uint64_t handle = 1, blocks[64] = {0};
    uint64_t step = p->caps->memory_bytes / 16;
    int count = 0;
    FAILS(p->driver->alloc(p->b, p->device, (uint64_t)1 << 60, &handle), TULLE_ENOMEM, "1152921504606846976");
    CHECK(handle == 0, "a handle to nothing");
    FAILS(p->driver->alloc(p->b, p->device, p->caps->memory_bytes + 4096, &handle), TULLE_ENOMEM,
          words("%" PRIu64, p->caps->memory_bytes + 4096));
    /* many blocks, each of which fits alone: allocation must fail, not their use */
    tulle_status status = TULLE_OK;
    while (count < 64 && (status = p->driver->alloc(p->b, p->device, step, &blocks[count])) == TULLE_OK) count++;
    CHECK(status == TULLE_ENOMEM && count >= 8 && count <= 16, "%s after %d sixteenths", tulle_status_name(status), count);
    CHECK(strstr(p->b->error, words("%" PRIu64, step)), "no bytes in \"%s\"", p->b->error);
    for (int i = 0; i < count; i++) p->driver->free(p->device, blocks[i]);
    GOOD(p->driver->wait(p->b, p->device));
    GOOD(p->driver->alloc(p->b, p->device, step, &handle));     /* freed memory is available again */
    p->driver->free(p->device, handle);
}

ON_EACH(waits_are_counted)
{
    uint64_t before = p->driver->waits(p->device);
    for (int i = 0; i < 3; i++) GOOD(p->driver->wait(p->b, p->device));
    CHECK(p->driver->waits(p->device) == before + 3, "%" PRIu64, p->driver->waits(p->device) - before);
}

/* ---- kernels */

static const char arguments_text[] =
    "KERNEL(place)(GLOBAL u32 *out)\n"
    "{\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    out[i] = block_id() * 10000u + thread_id() * 10u + (block_count() == 4u && thread_count() == 64u ? 1u : 0u);\n"
    "}\n"
    "KERNEL(blend)(GLOBAL double *y, const GLOBAL double *RESTRICT x, double a, u32 n, u64 big)\n"
    "{\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    if (i < n) y[i] = a * x[i] + (double)(u32)(big >> 32) + (double)(u32)big;\n"
    "}\n"
    "KERNEL(given)(GLOBAL u32 *out, const GLOBAL u32 *maybe, const GLOBAL u32 *there)\n"
    "{\n"
    "    if (thread_id() == 0u) out[0] = (GIVEN(maybe) ? 2u : 0u) + (GIVEN(there) ? 1u : 0u);\n"
    "}\n";

ON_EACH(kernels_get_their_arguments)
{
    tl_module *m = NULL;
    uint64_t x = 0;
    uint32_t out[ALL];
    double in[ALL], back[ALL];
    MUST(build(p, arguments_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 65536, &x));

    GOOD(run(p, m, "place", (tl_launch){.blocks = BLOCKS, .threads = THREADS, ARGS(mem(x, 0))}));
    GOOD(get(p, out, x, 0, sizeof out));
    int wrong = 0;
    for (uint32_t i = 0; i < ALL; i++) wrong += out[i] != i / THREADS * 10000 + i % THREADS * 10 + 1;
    CHECK(wrong == 0, "%d threads do not know their place", wrong);

    /* y and x in one block, the others by value; n is less than the number of threads */
    for (int i = 0; i < ALL; i++) in[i] = i + 0.25;
    GOOD(p->driver->fill(p->b, p->device, (tl_dmem){x, 0}, 0, 65536));
    GOOD(put(p, x, 8192, in, sizeof in));
    GOOD(run(p, m, "blend", (tl_launch){.blocks = BLOCKS, .threads = THREADS,
             ARGS(mem(x, 40 * TL_ALIGN), mem(x, 8192), f64(-1.5), u32(ALL - 3), u64(((uint64_t)5 << 32) + 7))}));
    GOOD(get(p, back, x, 40 * TL_ALIGN, sizeof back));
    wrong = 0;
    for (int i = 0; i < ALL; i++) wrong += back[i] != (i < ALL - 3 ? -1.5 * in[i] + 12 : 0);
    CHECK(wrong == 0, "%d values are wrong, the first is %g", wrong, back[0]);

    GOOD(run(p, m, "given", (tl_launch){.blocks = 1, .threads = THREADS, ARGS(mem(x, 0), mem(0, 0), mem(x, 512))}));
    GOOD(get(p, out, x, 0, 4));
    CHECK(out[0] == 1, "a missing buffer and one that is there: %u", out[0]);
    GOOD(run(p, m, "given", (tl_launch){.blocks = 1, .threads = THREADS, ARGS(mem(x, 0), mem(x, 1024), mem(0, 0))}));
    GOOD(get(p, out, x, 0, 4));
    CHECK(out[0] == 2, "the other way round: %u", out[0]);

    GOOD(run(p, m, "place", (tl_launch){.blocks = 0, .threads = THREADS, ARGS(mem(x, 0))}));
    GOOD(p->driver->wait(p->b, p->device));
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

static const char shared_text[] =
    "KERNEL(reverse)(SHARED_ARG GLOBAL u64 *x)\n"
    "{\n"
    "    SHARED_MEMORY\n"
    "    STATIC_SHARED u32 last[1];\n"
    "    GLOBAL u64 *mine = x + block_id() * thread_count();\n"
    "    if (thread_id() == 0u) last[0] = thread_count() - 1u;\n"
    "    shared_memory[thread_id()] = mine[thread_id()];\n"
    "    BARRIER();\n"
    "    mine[thread_id()] = shared_memory[last[0] - thread_id()];\n"
    "}\n"
    "KERNEL(all_of_it)(SHARED_ARG GLOBAL u64 *x, u32 words)\n"
    "{\n"
    "    SHARED_MEMORY\n"
    "    SHARED u32 *part = (SHARED u32 *)shared_memory;\n"
    "    u64 sum = 0;\n"
    "    u32 i;\n"
    "    for (i = thread_id(); i < words; i += thread_count()) part[i] = i * 2654435761u;\n"
    "    BARRIER();\n"
    "    for (i = thread_id(); i < words; i += thread_count()) sum += part[words - 1u - i];\n"
    "    ATOMIC_ADD64(&x[block_id()], sum);\n"
    "}\n";

ON_EACH(kernels_get_shared_memory)
{
    tl_module *m = NULL;
    uint64_t x = 0, data[ALL], back[ALL];
    MUST(build(p, shared_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 65536, &x));
    for (uint64_t i = 0; i < ALL; i++) data[i] = i << 33 | i;
    GOOD(put(p, x, 0, data, sizeof data));
    GOOD(run(p, m, "reverse", (tl_launch){.blocks = BLOCKS, .threads = THREADS, .shared = THREADS * 8, ARGS(mem(x, 0))}));
    GOOD(get(p, back, x, 0, sizeof back));
    int wrong = 0;
    for (int i = 0; i < ALL; i++) wrong += back[i] != data[i / THREADS * THREADS + THREADS - 1 - i % THREADS];
    CHECK(wrong == 0, "%d of %d are wrong", wrong, ALL);

    /* as much as the device reports */
    uint32_t count = p->caps->shared_block / 4;
    uint64_t want = 0;
    for (uint32_t i = 0; i < count; i++) want += i * 2654435761u;
    GOOD(zero(p, x, 65536));
    GOOD(run(p, m, "all_of_it", (tl_launch){.blocks = BLOCKS, .threads = THREADS, .shared = count * 4,
             ARGS(mem(x, 0), u32(count))}));
    GOOD(get(p, back, x, 0, sizeof back));
    for (int i = 0; i < BLOCKS; i++) CHECK(back[i] == want, "block %d: %" PRIu64 ", not %" PRIu64, i, back[i], want);
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* All threads of all blocks use the same words.  Sums exceed 2^32. */
static const char atomics_text[] =
    "KERNEL(global_atomics)(GLOBAL u32 *a, GLOBAL u64 *b)\n"
    "{\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    ATOMIC_ADD32(&a[0], i + 1u);\n"
    "    ATOMIC_OR32(&a[1], 1u << (i & 31u));\n"
    "    ATOMIC_MAX32(&a[2], 0xfffff000u + i);\n"
    "    ATOMIC_MIN32(&a[3], 0xfffff000u - i);\n"
    "    if (ATOMIC_CAS32(&a[4], 0u, i + 1u) == 0u) ATOMIC_ADD32(&a[5], 1u);\n"
    "    ATOMIC_ADD32(&a[6], ATOMIC_EXCH32(&a[7], i + 1u));\n"
    "    ATOMIC_ADD64(&b[0], (u64)0x7fffffffu * (u64)(i + 1u));\n"
    "    ATOMIC_MAX64(&b[1], ((u64)i << 40) + (u64)1);\n"
    "    u64 seen = PEEK64(&b[2]), was;\n"
    "    do {\n"
    "        was = seen;\n"
    "        seen = ATOMIC_CAS64(&b[2], was, was + ((u64)1 << 31));\n"
    "    } while (seen != was);\n"
    "    if (PEEK32(&a[4]) == 0u) ATOMIC_ADD64(&b[3], 1u);\n"
    "    ATOMIC_MIN64(&b[4], ((u64)1 << 50) - ((u64)i << 20));\n"
    "}\n"
    "KERNEL(shared_atomics)(SHARED_ARG GLOBAL u32 *a, GLOBAL u64 *b)\n"
    "{\n"
    "    SHARED_MEMORY\n"
    "    SHARED u64 *wide = shared_memory;\n"
    "    SHARED u32 *narrow = (SHARED u32 *)(shared_memory + 8);\n"
    "    u32 i = thread_id();\n"
    "    if (i < 8u) { wide[i] = i == 4u ? (u64)1 << 51 : (u64)0; narrow[i] = i == 3u ? 0xffffffffu : 0u; }\n"
    "    BARRIER();\n"
    "    ATOMIC_ADD32(&narrow[0], i + 1u);\n"
    "    ATOMIC_OR32(&narrow[1], 1u << (i & 31u));\n"
    "    ATOMIC_MAX32(&narrow[2], 0xfffff000u + i);\n"
    "    ATOMIC_MIN32(&narrow[3], 0xfffff000u - i);\n"
    "    if (ATOMIC_CAS32(&narrow[4], 0u, i + 1u) == 0u) ATOMIC_ADD32(&narrow[5], 1u);\n"
    "    ATOMIC_ADD32(&narrow[6], ATOMIC_EXCH32(&narrow[7], i + 1u));\n"
    "    ATOMIC_ADD64(&wide[0], (u64)0x7fffffffu * (u64)(i + 1u));\n"
    "    ATOMIC_MAX64(&wide[1], ((u64)i << 40) + (u64)1);\n"
    "    u64 seen = PEEK64(&wide[2]), was;\n"
    "    do {\n"
    "        was = seen;\n"
    "        seen = ATOMIC_CAS64(&wide[2], was, was + ((u64)1 << 31));\n"
    "    } while (seen != was);\n"
    "    if (PEEK32(&narrow[4]) == 0u) ATOMIC_ADD64(&wide[3], 1u);\n"
    "    ATOMIC_MIN64(&wide[4], ((u64)1 << 50) - ((u64)i << 20));\n"
    "    BARRIER();\n"
    "    if (i < 8u) { a[i] = narrow[i]; b[i] = wide[i]; }\n"
    "}\n";

static void check_atomics(const uint32_t a[8], const uint64_t b[8], uint32_t n, const char *where)
{
    uint64_t sum = (uint64_t)n * (n + 1) / 2;
    CHECK(a[0] == sum, "%s: add %u, not %" PRIu64, where, a[0], sum);
    CHECK(a[1] == 0xffffffffu, "%s: or %x", where, a[1]);
    CHECK(a[2] == 0xfffff000u + n - 1, "%s: max %x", where, a[2]);
    CHECK(a[3] == 0xfffff000u - (n - 1), "%s: min %x", where, a[3]);
    CHECK(a[4] >= 1 && a[4] <= n && a[5] == 1, "%s: cas %u, %u threads had it", where, a[4], a[5]);
    CHECK(a[6] + a[7] == sum, "%s: exchanged %u and %u", where, a[6], a[7]); /* each value is returned once */
    CHECK(b[0] == 0x7fffffffu * sum, "%s: add64 %" PRIx64, where, b[0]);
    CHECK(b[1] == ((uint64_t)(n - 1) << 40) + 1, "%s: max64 %" PRIx64, where, b[1]);
    CHECK(b[2] == (uint64_t)n << 31, "%s: cas64 %" PRIx64, where, b[2]);
    CHECK(b[3] == 0, "%s: peek saw nothing %" PRIu64 " times", where, b[3]);
    CHECK(b[4] == ((uint64_t)1 << 50) - ((uint64_t)(n - 1) << 20), "%s: min64 %" PRIx64, where, b[4]);
}

ON_EACH(atomics_of_both_widths)
{
    tl_module *m = NULL;
    uint64_t x = 0, b[8] = {[4] = (uint64_t)1 << 51};
    uint32_t a[8] = {[3] = 0xffffffffu};
    MUST(build(p, atomics_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 4096, &x));
    GOOD(zero(p, x, 4096));
    GOOD(put(p, x, 0, a, sizeof a));
    GOOD(put(p, x, 1024, b, sizeof b));
    GOOD(run(p, m, "global_atomics", (tl_launch){.blocks = BLOCKS, .threads = THREADS, ARGS(mem(x, 0), mem(x, 1024))}));
    GOOD(get(p, a, x, 0, sizeof a));
    GOOD(get(p, b, x, 1024, sizeof b));
    check_atomics(a, b, ALL, "global");
    GOOD(run(p, m, "shared_atomics", (tl_launch){.blocks = 1, .threads = THREADS, .shared = 128,
             ARGS(mem(x, 0), mem(x, 1024))}));
    GOOD(get(p, a, x, 0, sizeof a));
    GOOD(get(p, b, x, 1024, sizeof b));
    check_atomics(a, b, THREADS, "shared");
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

static const char sums_text[] =
    "KERNEL(sums)(SHARED_ARG GLOBAL float *f, GLOBAL double *d)\n"
    "{\n"
    "    SHARED_MEMORY\n"
    "    SHARED double *ds = (SHARED double *)shared_memory;\n"
    "    SHARED float *fs = (SHARED float *)(shared_memory + 1);\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    if (thread_id() == 0u) { ds[0] = 0; fs[0] = 0; }\n"
    "    BARRIER();\n"
    "    ATOMIC_ADD_F64(&ds[0], (double)i + 0.5);\n"
    "    ATOMIC_ADD_F32(&fs[0], (float)i + 0.5f);\n"
    "    ATOMIC_ADD_GLOBAL_F64(&d[0], (double)i + 0.25);\n"
    "    ATOMIC_ADD_GLOBAL_F32(&f[0], (float)i + 0.25f);\n"
    "    BARRIER();\n"
    "    if (thread_id() == 0u) { d[1u + block_id()] = ds[0]; f[1u + block_id()] = fs[0]; }\n"
    "}\n";

ON_EACH(sums_of_floats_and_doubles)
{
    tl_module *m = NULL;
    uint64_t x = 0;
    double d[BLOCKS + 1];
    float f[BLOCKS + 1];
    MUST(build(p, sums_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 4096, &x));
    GOOD(zero(p, x, 4096));
    GOOD(run(p, m, "sums", (tl_launch){.blocks = BLOCKS, .threads = THREADS, .shared = 16,
             ARGS(mem(x, 0), mem(x, 1024))}));
    GOOD(get(p, f, x, 0, sizeof f));
    GOOD(get(p, d, x, 1024, sizeof d));
    CHECK(d[0] == ALL * (ALL - 1) / 2 + 0.25 * ALL, "global f64: %g", d[0]);
    CHECK(f[0] == ALL * (ALL - 1) / 2 + 0.25 * ALL, "global f32: %g", (double)f[0]);
    for (int i = 0; i < BLOCKS; i++) {
        double want = THREADS * (THREADS * i) + THREADS * (THREADS - 1) / 2 + 0.5 * THREADS;
        CHECK(d[i + 1] == want && f[i + 1] == want, "shared, block %d: %g and %g, not %g", i, d[i + 1],
              (double)f[i + 1], want);
    }
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* Integer functions of the prelude; and products are rounded before they are added. */
static const char functions_text[] =
    "CONSTANT u32 table[4] = {11u, 22u, 33u, 44u};\n"
    "INLINE u32 twice(u32 x) { return 2u * x; }\n"
    "KERNEL(functions)(GLOBAL u64 *out, GLOBAL double *real, u32 x, u64 y, double a, double c)\n"
    "{\n"
    "    u32 i;\n"
    "    if (thread_id() > 0u) return;\n"
    "    out[0] = popcount32(x);\n"
    "    out[1] = clz32(x);\n"
    "    out[2] = clz32(1u);\n"
    "    out[3] = mulhi32(x, 0x9e3779b1u);\n"
    "    out[4] = mulhi64(y, (u64)x << 20);\n"
    "    out[5] = sizeof(u8) + 10u * sizeof(u16) + 100u * sizeof(u32) + 1000u * sizeof(u64);\n"
    "    out[6] = twice(table[x & 3u]);\n"
    "    out[7] = 0;\n"
    "    UNROLL\n"
    "    for (i = 0; i < 4u; i++) out[7] += table[i];\n"
    "    out[8] = (u64)((i64)-1 < 0) + (u64)((i32)-1 < 0);\n"
    "    out[9] = BITS_F32((float)a);\n"
    "    out[10] = BITS_F64(a);\n"
    "    real[0] = a * a + c;\n"
    "}\n";

ON_EACH(words_of_the_prelude)
{
    tl_module *m = NULL;
    uint64_t x = 0, out[11];
    double real = 0, a = 1 + 0x1p-30, c = -1;
    uint32_t v = 0x00f012f3;
    uint64_t w = 0x123456789abcdef1;
    MUST(build(p, functions_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 4096, &x));
    GOOD(run(p, m, "functions", (tl_launch){.blocks = 1, .threads = THREADS,
             ARGS(mem(x, 0), mem(x, 1024), u32(v), u64(w), f64(a), f64(c))}));
    GOOD(get(p, out, x, 0, sizeof out));
    GOOD(get(p, &real, x, 1024, sizeof real));
    const uint64_t want[11] = {12, 8, 31, (uint64_t)v * 0x9e3779b1u >> 32,
                              (uint64_t)((unsigned __int128)w * ((uint64_t)v << 20) >> 64), 8421, 2 * 44, 110, 2,
                              0x3f800000, 0x3ff0000000400000};
    for (int i = 0; i < 11; i++) CHECK(out[i] == want[i], "%d: %" PRIx64 ", not %" PRIx64, i, out[i], want[i]);
    volatile double square = a * a;     /* rounded here */
    CHECK(real == square + c, "a product was fused with a sum: %a, not %a", real, square + c);
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

static const char order_text[] =
    "KERNEL(add)(GLOBAL u32 *x, u32 n)\n"
    "{\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    x[i] += n;\n"
    "}\n"
    "KERNEL(sum)(GLOBAL u32 *to, const GLOBAL u32 *a, const GLOBAL u32 *b, const GLOBAL u32 *c)\n"
    "{\n"
    "    u32 i = block_id() * thread_count() + thread_id();\n"
    "    to[i] = a[i] * 100u + b[i] * 10u + c[i];\n"
    "}\n";

ON_EACH(lanes_start_after_the_queue_and_end_before_it)
{
    tl_module *m = NULL;
    tl_kernel *add = NULL, *sum = NULL;
    uint64_t x = 0;
    uint32_t back[ALL];
    const uint64_t step = 8 * TL_ALIGN;
    MUST(build(p, order_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 65536, &x));
    MUST(p->driver->kernel(p->b, p->device, m, "add", &add));
    MUST(p->driver->kernel(p->b, p->device, m, "sum", &sum));
    for (int round = 0; round < 3; round++) {
        GOOD(p->driver->fill(p->b, p->device, (tl_dmem){x, 0}, 0, 65536));
        GOOD(p->driver->fork(p->b, p->device, TL_LANES));
        for (int lane = 0; lane < TL_LANES; lane++)
            GOOD(p->driver->launch(p->b, p->device, add, &(tl_launch){.blocks = BLOCKS, .threads = THREADS, .lane = lane,
                 ARGS(mem(x, (uint64_t)lane * step), u32((uint32_t)lane + 1))}));
        GOOD(p->driver->join(p->b, p->device, TL_LANES));
        GOOD(p->driver->launch(p->b, p->device, sum, &(tl_launch){.blocks = BLOCKS, .threads = THREADS,
             ARGS(mem(x, 0), mem(x, step), mem(x, 2 * step), mem(x, 3 * step))}));
        GOOD(get(p, back, x, 0, sizeof back));
        int wrong = 0;
        for (int i = 0; i < ALL; i++) wrong += back[i] != 234;
        CHECK(wrong == 0, "%d are wrong, the first is %u", wrong, back[0]);
    }
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* Numbers are sent to the device, processed and returned, several arrays at a time, each in its lane. */
ON_EACH(copies_keep_the_order_of_their_lane)
{
    enum { WAYS = 2, ROUNDS = 6 };
    tl_module *m = NULL;
    tl_kernel *add = NULL;
    uint64_t x = 0;
    void *memory = NULL;
    MUST(build(p, order_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 16 * TL_ALIGN, &x));
    MUST(p->driver->pinned(p->b, p->device, 2 * WAYS * ALL * sizeof(uint32_t), &memory));
    MUST(p->driver->kernel(p->b, p->device, m, "add", &add));
    FAILS(p->driver->settle(p->b, p->device, TL_FLAGS - 1), TULLE_EDRIVER, words("flag %d", TL_FLAGS - 1));
    uint32_t *numbers = memory;
    uint64_t waits = p->driver->waits(p->device);
    GOOD(p->driver->fork(p->b, p->device, 1 + WAYS));
    for (uint32_t i = 0; i < ROUNDS + WAYS; i++) {
        int way = (int)(i % WAYS), lane = 1 + way;
        uint32_t *in = numbers + 2 * way * ALL, *out = in + ALL;
        tl_dmem at = {x, (uint64_t)way * 4 * TL_ALIGN};
        if (i >= WAYS) {
            int wrong = 0;
            GOOD(p->driver->settle(p->b, p->device, way));
            for (uint32_t k = 0; k < ALL; k++) wrong += out[k] != 1000 * (i - WAYS) + k + 5;
            CHECK(wrong == 0, "%d of round %u are wrong, the first is %u", wrong, i - WAYS, out[0]);
        }
        if (i >= ROUNDS) continue;
        for (uint32_t k = 0; k < ALL; k++) in[k] = 1000 * i + k;
        memset(out, 0, ALL * sizeof *out);
        GOOD(p->driver->send(p->b, p->device, lane, at, in, ALL * sizeof *in));
        GOOD(p->driver->launch(p->b, p->device, add, &(tl_launch){.blocks = BLOCKS, .threads = THREADS, .lane = lane,
             ARGS(mem(at.handle, at.offset), u32(5))}));
        GOOD(p->driver->fetch(p->b, p->device, lane, out, at, ALL * sizeof *out));
        GOOD(p->driver->flag(p->b, p->device, lane, way));
    }
    GOOD(p->driver->join(p->b, p->device, 1 + WAYS));
    CHECK(p->driver->waits(p->device) == waits + ROUNDS, "%" PRIu64 " waits", p->driver->waits(p->device) - waits);
    GOOD(p->driver->send(p->b, p->device, 0, (tl_dmem){x, 0}, numbers, 0));
    GOOD(p->driver->fetch(p->b, p->device, 0, numbers, (tl_dmem){x, 0}, 0));
    /* lane 0 is the queue, with or without additional lanes */
    for (uint32_t k = 0; k < ALL; k++) numbers[k] = k;
    GOOD(p->driver->send(p->b, p->device, 0, (tl_dmem){x, TL_ALIGN}, numbers, ALL * sizeof *numbers));
    GOOD(p->driver->launch(p->b, p->device, add, &(tl_launch){.blocks = BLOCKS, .threads = THREADS,
         ARGS(mem(x, TL_ALIGN), u32(7))}));
    GOOD(p->driver->fetch(p->b, p->device, 0, numbers + ALL, (tl_dmem){x, TL_ALIGN}, ALL * sizeof *numbers));
    GOOD(p->driver->flag(p->b, p->device, 0, TL_FLAGS - 1));
    GOOD(p->driver->settle(p->b, p->device, TL_FLAGS - 1));
    GOOD(p->driver->settle(p->b, p->device, TL_FLAGS - 1));        /* it remains settled */
    CHECK(numbers[ALL] == 7 && numbers[2 * ALL - 1] == ALL + 6, "%u, %u", numbers[ALL], numbers[2 * ALL - 1]);
    p->driver->unpin(p->device, memory);
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* ---- failures of kernels */

ON_EACH(a_kernel_that_does_not_compile)
{
    tl_module *m = NULL;
    tl_kernel *k = NULL;
    FAILS(build(p, "KERNEL(broken)(GLOBAL u32 *x)\n{\n    x[0] = no_such_thing;\n}\n", &m), TULLE_ECOMPILE, "tests",
          "no_such_thing");
    CHECK(!m, "a module of nothing");
    CHECK(!strchr(p->b->error, '\n'), "more than a line: %s", p->b->error);
    MUST(build(p, order_text, &m));     /* the next one works */
    FAILS(p->driver->kernel(p->b, p->device, m, "no_such_kernel", &k), TULLE_EDRIVER, "no_such_kernel");
    CHECK(!k, "a kernel of nothing");
    p->driver->unload(p->device, m);
    char junk[64] = "this is not an image";
    tl_image image = {.data = junk, .bytes = sizeof junk};
    m = NULL;
    CHECK(p->driver->load(p->b, p->device, &image, &m) != TULLE_OK && p->b->error[0] && !m, "junk was loaded");
}

ON_EACH(a_launch_that_cannot_be)
{
    tl_module *m = NULL;
    uint64_t x = 0;
    MUST(build(p, shared_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 65536, &x));
    GOOD(zero(p, x, 65536));
    FAILS(run(p, m, "all_of_it", (tl_launch){.blocks = 1, .threads = 100000, .shared = 1024, ARGS(mem(x, 0), u32(1))}),
          TULLE_EDRIVER, "all_of_it", "100000");
    uint32_t shared = p->caps->shared_block + 64;
    FAILS(run(p, m, "all_of_it", (tl_launch){.blocks = 1, .threads = THREADS, .shared = shared, ARGS(mem(x, 0), u32(1))}),
          TULLE_EDRIVER, "all_of_it", words("%u", shared), words("%u", p->caps->shared_block));
    uint64_t back[2] = {1, 1};
    GOOD(run(p, m, "all_of_it", (tl_launch){.blocks = 1, .threads = THREADS, .shared = 1024, ARGS(mem(x, 0), u32(2))}));
    GOOD(get(p, back, x, 0, sizeof back));
    CHECK(back[0] == 2654435761u && back[1] == 0, "after the failures: %" PRIu64, back[0]);
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* ---- images */

typedef struct builder {
    const place *p;
    int          number;
    bool         good;
    char         error[256];
} builder;

static void *compile_one(void *arg)
{
    builder *w = arg;
    tl_base *b = base_new();
    tl_compiler c = w->p->driver->compiler(w->p->device);
    tl_image image = {0};
    char kernels[256];
    snprintf(kernels, sizeof kernels, "KERNEL(number)(GLOBAL u32 *x)\n{\n    x[thread_id()] = %du;\n}\n%s\n", w->number,
             w->number % 2 ? "" : "wrong");
    char *text = with_prelude(c.dialect, kernels);
    tulle_status status = c.compile(c.self, b, "number", text, &image);
    w->good = w->number % 2 ? status == TULLE_OK && image.bytes > 0 : status == TULLE_ECOMPILE && strstr(b->error, "number");
    snprintf(w->error, sizeof w->error, "%.250s", b->error);
    tl_free(b, image.data);
    free(text);
    tl_base_free(b);
    return NULL;
}

ON_EACH(several_threads_compile_at_once)
{
    enum { COUNT = 4 };
    pthread_t threads[COUNT];
    builder work[COUNT];
    for (int i = 0; i < COUNT; i++) {
        work[i] = (builder){.p = p, .number = i};
        if (pthread_create(&threads[i], NULL, compile_one, &work[i]) != 0) abort();
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        CHECK(work[i].good, "thread %d: %s", i, work[i].error);
    }
}

ON_EACH(an_image_serves_another_opening)
{
    tl_compiler c = p->driver->compiler(p->device);
    CHECK(c.dialect && c.arch && c.arch[0] && c.version && c.version[0] && c.self, "a compiler without a name");
    char *text = with_prelude(c.dialect, order_text);
    tl_image image = {0};
    place other = *p;
    other.device = NULL;
    MUST(c.compile(c.self, p->b, "order", text, &image));
    MUST(p->driver->open(p->b, usable(p->b, p->driver), &other.device));
    tl_module *m[2] = {NULL, NULL};
    uint64_t x = 0;
    uint32_t back[ALL] = {0};
    GOOD(p->driver->load(p->b, other.device, &image, &m[0]));
    GOOD(p->driver->load(p->b, other.device, &image, &m[1]));   /* loading it twice is allowed */
    tl_free(p->b, image.data);
    GOOD(p->driver->alloc(p->b, other.device, 4096, &x));
    GOOD(put(&other, x, 0, back, sizeof back));
    for (uint32_t i = 0; i < 2; i++)
        GOOD(run(&other, m[i], "add", (tl_launch){.blocks = BLOCKS, .threads = THREADS, ARGS(mem(x, 0), u32(3 + i))}));
    GOOD(get(&other, back, x, 0, sizeof back));
    CHECK(back[0] == 7 && back[ALL - 1] == 7, "%u, %u", back[0], back[ALL - 1]);
    p->driver->unload(other.device, m[0]);
    p->driver->unload(other.device, m[1]);
    p->driver->free(other.device, x);
    p->driver->close(other.device);
    free(text);
}

/* ---- time */

static const char slow_text[] =
    "KERNEL(slow)(GLOBAL u64 *x, u32 n)\n"
    "{\n"
    "    u64 v = x[thread_id()];\n"
    "    u32 i;\n"
    "    for (i = 0; i < n; i++) v = v * 6364136223846793005UL + 1442695040888963407UL;\n"
    "    x[thread_id()] = v;\n"
    "}\n";

ON_EACH(events_tell_the_time_between_them)
{
    tl_module *m = NULL;
    tl_kernel *slow = NULL;
    uint64_t x = 0;
    double warm = 0, work = 0, none = 1, back = 0;
    MUST(build(p, slow_text, &m));
    MUST(p->driver->alloc(p->b, p->device, 4096, &x));
    MUST(p->driver->kernel(p->b, p->device, m, "slow", &slow));
    GOOD(zero(p, x, 4096));
    tl_launch few = {.blocks = 1, .threads = THREADS, ARGS(mem(x, 0), u32(1))};
    tl_launch many = {.blocks = 1, .threads = THREADS, ARGS(mem(x, 0), u32(p->caps->memory_bytes >> 28 ? 300000 : 300))};
    GOOD(p->driver->launch(p->b, p->device, slow, &few));
    GOOD(p->driver->wait(p->b, p->device));
    double start = tl_now();
    for (int round = 0; round < 2; round++) {                   /* events can be marked again */
        GOOD(p->driver->mark(p->b, p->device, 0));
        GOOD(p->driver->launch(p->b, p->device, slow, &few));
        GOOD(p->driver->mark(p->b, p->device, 1));
        GOOD(p->driver->launch(p->b, p->device, slow, &many));
        GOOD(p->driver->mark(p->b, p->device, TL_EVENTS - 1));
        GOOD(p->driver->wait(p->b, p->device));
    }
    double wall = tl_now() - start;
    GOOD(p->driver->elapsed(p->b, p->device, 0, 1, &warm));
    GOOD(p->driver->elapsed(p->b, p->device, 1, TL_EVENTS - 1, &work));
    GOOD(p->driver->elapsed(p->b, p->device, 1, 1, &none));
    GOOD(p->driver->elapsed(p->b, p->device, 0, TL_EVENTS - 1, &back));
    CHECK(warm >= 0 && work > 0 && none == 0, "%g, %g, %g", warm, work, none);
    CHECK(work > warm, "%g s of a short kernel, %g s of a long one", warm, work);
    CHECK(fabs(warm + work - back) < 1e-5 && back < wall, "%g + %g, %g in all, %g by the clock", warm, work, back, wall);
    FAILS(p->driver->elapsed(p->b, p->device, 0, 7, &none), TULLE_EDRIVER, " ");   /* never marked */
    p->driver->unload(p->device, m);
    p->driver->free(p->device, x);
}

/* ---- OpenCL: the caller's queue and buffers, and images that contain source text */

static void opencl_works_on_the_callers_queue(void)
{
    place at = {.driver = &tl_driver_opencl, .b = base_new()}, *p = &at;
    tl_cl cl = {0};
    tl_cl_device devices[TL_CL_DEVICES];
    tl_module *m = NULL;
    uint64_t x = 0;
    uint32_t back[ALL] = {0};
    double seconds = 0;
    char why[256];
    int index = usable(at.b, at.driver), code = 0;
    if (index >= 0) {
        MUST(at.driver->open(at.b, index, &at.device));
        at.caps = at.driver->caps(at.device);
        REQUIRE(tl_cl_open(&cl, why, sizeof why) && tl_cl_devices(&cl, devices) > index, "%s", why);
        cl_device_id id = devices[index].id;
        cl_context context = cl.CreateContext(NULL, 1, &id, NULL, NULL, &code);
        REQUIRE(code == CL_SUCCESS, "%s", tl_cl_error(code));
        cl_command_queue queue = cl.CreateCommandQueue(context, id, 0, &code), wild = NULL;
        REQUIRE(code == CL_SUCCESS, "%s", tl_cl_error(code));
        cl_mem whole = cl.CreateBuffer(context, CL_MEM_READ_WRITE, 65536, NULL, &code);
        cl_buffer_region region = {4096, 8192};
        cl_mem part = cl.CreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        REQUIRE(code == CL_SUCCESS, "%s", tl_cl_error(code));

        /* refused while memory of our own context is in use */
        GOOD(at.driver->alloc(at.b, at.device, 4096, &x));
        FAILS(at.driver->queue(at.b, at.device, queue), TULLE_EDRIVER, "context", "4096");
        at.driver->free(at.device, x);
        CHECK(at.driver->native(at.device, TL_NATIVE_CONTEXT) != context, "whose context is it?");
        MUST(at.driver->queue(at.b, at.device, queue));
        CHECK(at.driver->native(at.device, TL_NATIVE_CONTEXT) == context
              && at.driver->native(at.device, TL_NATIVE_QUEUE) == queue
              && at.driver->native(at.device, TL_NATIVE_DEVICE) == id, "the caller's context, queue and device");
        cl.ReleaseCommandQueue(queue);                          /* the device has a reference now */
        cl.ReleaseContext(context);

        MUST(build(p, order_text, &m));
        GOOD(zero(p, (uint64_t)(uintptr_t)whole, 65536));
        GOOD(at.driver->mark(at.b, at.device, 0));
        GOOD(run(p, m, "add", (tl_launch){.blocks = BLOCKS, .threads = THREADS,
                 ARGS(mem((uint64_t)(uintptr_t)part, 1024), u32(5))}));
        GOOD(at.driver->mark(at.b, at.device, 1));
        /* our own queue in the caller's context, after the work of the other queue */
        GOOD(at.driver->queue(at.b, at.device, NULL));
        GOOD(run(p, m, "add", (tl_launch){.blocks = BLOCKS, .threads = THREADS,
                 ARGS(mem((uint64_t)(uintptr_t)whole, 5120), u32(2))}));
        GOOD(get(p, back, (uint64_t)(uintptr_t)part, 1024, sizeof back));
        CHECK(back[0] == 7 && back[ALL - 1] == 7, "%u, %u", back[0], back[ALL - 1]);
        GOOD(get(p, back, (uint64_t)(uintptr_t)whole, 4096, sizeof back));
        CHECK(back[0] == 0 && back[255] == 0, "%u, %u", back[0], back[255]);
        /* that queue does not support timing; a simulator may do so nevertheless */
        if (at.driver->elapsed(at.b, at.device, 0, 1, &seconds) != TULLE_OK)
            CHECK(strstr(at.b->error, "CL_QUEUE_PROFILING_ENABLE"), "%s", at.b->error);

        wild = cl.CreateCommandQueue(context, id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
        if (code == CL_SUCCESS) {                               /* not every device has such queues */
            FAILS(at.driver->queue(at.b, at.device, wild), TULLE_EINVAL, "out of order");
            cl.ReleaseCommandQueue(wild);
        }
        at.driver->unload(at.device, m);
        cl.ReleaseMemObject(part);
        cl.ReleaseMemObject(whole);
        at.driver->close(at.device);
        tl_cl_close(&cl);
    }
    tl_base_free(at.b);
}

static void opencl_images_may_be_texts(void)
{
    place at = {.driver = &tl_driver_opencl, .b = base_new()}, *p = &at;
    int index = usable(at.b, at.driver);
    if (index >= 0) {
        MUST(at.driver->open(at.b, index, &at.device));
        char *text = with_prelude("opencl", order_text);
        size_t bytes = strlen(text);
        char *data = malloc(bytes + 8);
        REQUIRE(data, "memory");
        memcpy(data, "TLCLSRC1", 8);
        memcpy(data + 8, text, bytes);
        tl_image image = {.data = data, .bytes = bytes + 8};
        tl_module *m = NULL;
        uint64_t x = 0;
        uint32_t back[ALL] = {0};
        GOOD(at.driver->load(at.b, at.device, &image, &m));
        GOOD(at.driver->alloc(at.b, at.device, 4096, &x));
        GOOD(put(p, x, 0, back, sizeof back));
        if (m) GOOD(run(p, m, "add", (tl_launch){.blocks = BLOCKS, .threads = THREADS, ARGS(mem(x, 0), u32(9))}));
        GOOD(get(p, back, x, 0, sizeof back));
        CHECK(back[0] == 9 && back[ALL - 1] == 9, "%u, %u", back[0], back[ALL - 1]);
        at.driver->unload(at.device, m);
        at.driver->free(at.device, x);
        at.driver->close(at.device);
        free(data);
        free(text);
    }
    tl_base_free(at.b);
}

TEST_MAIN(TEST(lists_devices_with_what_they_can_do), TEST(a_device_that_is_not_there), TEST(a_library_that_is_not_there),
          TEST(the_same_device_opens_twice), TEST(bytes_go_there_and_back_at_offsets), TEST(fills_touch_their_bytes_only),
          TEST(memory_that_is_not_there), TEST(waits_are_counted), TEST(kernels_get_their_arguments),
          TEST(kernels_get_shared_memory), TEST(atomics_of_both_widths), TEST(sums_of_floats_and_doubles),
          TEST(words_of_the_prelude), TEST(lanes_start_after_the_queue_and_end_before_it),
          TEST(copies_keep_the_order_of_their_lane),
          TEST(a_kernel_that_does_not_compile), TEST(a_launch_that_cannot_be), TEST(several_threads_compile_at_once),
          TEST(an_image_serves_another_opening), TEST(events_tell_the_time_between_them),
          TEST(opencl_works_on_the_callers_queue), TEST(opencl_images_may_be_texts))
