/* SPDX-License-Identifier: MIT
 *
 * test_cuda_driver.c - driver_cuda.c with a fake CUDA library (fake_cuda.c): the list of devices, the
 * streams of operations, the current context, and failures of every call, which must leave a message and no
 * resources. */
#define _GNU_SOURCE
#include "fake_cuda.h"
#include "gpu/driver.h"
#include "test.h"
#include <pthread.h>
#include <stdlib.h>

static const tl_driver *const cuda = &tl_driver_cuda;
static tl_base *b;
static fake_cuda *fake;
static void *library;

static char cubin[] = "\177ELF and so on";

/* Selects a library, and resets the state left by earlier tests. */
static void use(const char *path)
{
    fake_cuda *(*fake_state)(void);
    char why[256];
    if (!b && tl_base_create(NULL, 2, sizeof *b, &b) != TULLE_OK) abort();
    setenv("TULLE_LIBCUDA", path, 1);
    unsetenv("FAKE_CUDA_DEVICES");
    unsetenv("FAKE_CUDA_CAPABILITY");
    unsetenv("FAKE_CUDA_FAIL");
    unsetenv("TULLE_LIBNVRTC");
    library = tl_dl_open((const char *const[]){path, NULL}, why, sizeof why);
    if (!library) return;
    if (!tl_dl_symbol(library, "fake_cuda_state", &fake_state)) abort();
    fake = fake_state();
    memset(fake, 0, sizeof *fake);
    b->error[0] = 0;
}

static void fail(const char *call, int at, int code, int forever)
{
    snprintf(fake->fail_call, sizeof fake->fail_call, "%s", call);
    fake->fail_at = at;
    fake->fail_code = code;
    fake->fail_forever = forever;
    fake->fail_seen = 0;
}

static bool nothing_left(void)
{
    return !fake->contexts && !fake->blocks && !fake->pinned && !fake->locked && !fake->streams && !fake->events && !fake->modules;
}

#define CHECK_NOTHING_LEFT()                                                                             \
    CHECK(nothing_left(), "contexts %d, blocks %d, pinned %d, locked %d, streams %d, events %d, modules %d", fake->contexts, \
          fake->blocks, fake->pinned, fake->locked, fake->streams, fake->events, fake->modules)
#define CHECK_OK(call) CHECK((call) == TULLE_OK, "%s", b->error)
#define CHECK_SAYS(words) CHECK(strstr(b->error, words), "\"%s\" says nothing of %s", b->error, words)

static tl_device *open_device(int index)
{
    tl_device *d = NULL;
    if (cuda->open(b, index, &d) != TULLE_OK) {
        printf("    %s\n", b->error);
        abort();
    }
    return d;
}

static tl_image image_of(const char *text, uint64_t bytes)
{
    return (tl_image){.data = (void *)(uintptr_t)text, .bytes = bytes};
}

static tl_module *load(tl_device *d)
{
    tl_module *m = NULL;
    tl_image image = image_of(cubin, sizeof cubin);
    if (cuda->load(b, d, &image, &m) != TULLE_OK) abort();
    return m;
}

/* ---- the list of devices */

static void a_missing_library_is_no_error_and_says_why(void)
{
    int count = 7;
    char why[256] = "";
    tl_device *d = NULL;
    use("/nowhere/libcuda.so");
    CHECK(cuda->list(b, NULL, 0, &count, why, sizeof why) == TULLE_OK, "list");
    CHECK(count == 0, "%d devices", count);
    CHECK(strstr(why, "/nowhere/libcuda.so cannot be opened"), "%s", why);
    CHECK(cuda->open(b, 0, &d) == TULLE_EDEVICE && !d, "open");
    CHECK_SAYS("/nowhere/libcuda.so cannot be opened");
}

static void a_library_without_a_function_says_which(void)
{
    int count = 7;
    char why[256] = "";
    use(FAKE_CUDA_OLD);
    REQUIRE(library, "%s is not there", FAKE_CUDA_OLD);
    CHECK(cuda->list(b, NULL, 0, &count, why, sizeof why) == TULLE_OK && count == 0, "%d devices", count);
    CHECK(strstr(why, "cuLaunchKernel"), "%s", why);
}

static void a_driver_without_devices_says_so(void)
{
    int count = 7;
    char why[256] = "";
    use(FAKE_CUDA);
    REQUIRE(library, "%s is not there", FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "0", 1);
    CHECK_OK(cuda->list(b, NULL, 0, &count, why, sizeof why));
    CHECK(count == 0 && strstr(why, "the driver finds no CUDA device"), "%d, %s", count, why);
    setenv("FAKE_CUDA_FAIL", "cuInit:1:803", 1);
    CHECK_OK(cuda->list(b, NULL, 0, &count, why, sizeof why));
    CHECK(count == 0 && strstr(why, "cuInit") && strstr(why, "803"), "%d, %s", count, why);
}

static void devices_are_listed_without_a_context(void)
{
    tl_caps caps[4];
    int count = 0;
    char why[256] = "x";
    memset(caps, 0, sizeof caps);
    use(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    CHECK_OK(cuda->list(b, caps, 2, &count, why, sizeof why));
    CHECK(count == 3 && why[0] == 0, "%d, %s", count, why);
    CHECK(strcmp(caps[1].name, "Fake 1") == 0, "%s", caps[1].name);
    CHECK(strcmp(caps[1].arch, "sm_90") == 0, "%s", caps[1].arch);
    CHECK(strstr(caps[1].driver, "CUDA 13.0"), "%s", caps[1].driver);
    CHECK(caps[1].why_not[0] == 0, "%s", caps[1].why_not);
    CHECK(caps[1].shared_block == 227 << 10 && caps[1].shared_processor == 228 << 10, "%u", caps[1].shared_block);
    CHECK(caps[1].processors == 132 && caps[1].warp == 32 && !caps[1].cpu, "%u", caps[1].processors);
    CHECK(caps[1].threads_block == 1024 && caps[1].threads_processor == 2048, "%u", caps[1].threads_block);
    CHECK(caps[1].memory_bytes == 64 << 20 && caps[1].memory_free == 0, "memory");
    CHECK(caps[2].name[0] == 0, "more were written than there was room for");
    CHECK(!strstr(fake->log, "PrimaryCtx"), "a context was made: %s", fake->log);
}

static void a_device_that_is_too_old_is_listed_and_refused(void)
{
    tl_caps caps;
    tl_device *d = NULL;
    int count = 0;
    char why[256];
    use(FAKE_CUDA);
    setenv("FAKE_CUDA_CAPABILITY", "61", 1);
    CHECK_OK(cuda->list(b, &caps, 1, &count, why, sizeof why));
    CHECK(count == 1 && strstr(caps.why_not, "6.1"), "%s", caps.why_not);
    CHECK(cuda->open(b, 0, &d) == TULLE_EDEVICE && !d, "open");
    CHECK_SAYS("6.1");
    CHECK_NOTHING_LEFT();
}

static void a_device_that_vanishes_from_the_list_is_no_device(void)
{
    tl_caps caps[2];
    tl_device *d = NULL;
    int count = 0;
    char why[256];
    use(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    CHECK_OK(cuda->list(b, caps, 2, &count, why, sizeof why));
    setenv("FAKE_CUDA_DEVICES", "1", 1);
    CHECK(cuda->open(b, 1, &d) == TULLE_EDEVICE && !d, "open");
    CHECK_SAYS("there is no cuda:1");
    CHECK(cuda->open(b, -1, &d) == TULLE_EDEVICE && !d, "open");
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    fail("cuDeviceGetName", 2, 101, 0);                 /* between two queries of the same device */
    CHECK_OK(cuda->list(b, caps, 2, &count, why, sizeof why));
    CHECK(caps[0].why_not[0] == 0 && strstr(caps[1].why_not, "CUDA_ERROR_INVALID_DEVICE"), "%s", caps[1].why_not);
    fail("cuDevicePrimaryCtxRetain", 1, 46, 0);
    CHECK(cuda->open(b, 0, &d) == TULLE_EDRIVER && !d, "open");
    CHECK_SAYS("CUDA_ERROR_DEVICE_UNAVAILABLE");
    CHECK_NOTHING_LEFT();
}

static void an_open_device_spins_and_tells_its_free_memory(void)
{
    use(FAKE_CUDA);
    tl_device *d = open_device(0), *second = NULL;
    CHECK(fake->flags == 1, "flags of the context %u", fake->flags);
    CHECK(cuda->caps(d)->memory_free == 64 << 20, "memory");
    fake->log[0] = 0;
    second = open_device(0);
    CHECK(!strstr(fake->log, "SetFlags"), "the flags of a context in use were changed");
    CHECK(cuda->native(d, TL_NATIVE_CONTEXT) == cuda->native(second, TL_NATIVE_CONTEXT), "two contexts");
    CHECK(cuda->native(d, TL_NATIVE_QUEUE) && !cuda->native(d, TL_NATIVE_DEVICE), "native");
    cuda->close(d);
    CHECK_OK(cuda->wait(b, second));
    cuda->close(second);
    cuda->close(NULL);
    CHECK_NOTHING_LEFT();
}

/* ---- memory and copies */

static void bytes_go_there_and_back(void)
{
    char in[1000], out[1000];
    uint64_t h = 0;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    CHECK_OK(cuda->alloc(b, d, 4096, &h));
    for (int i = 0; i < 1000; i++) in[i] = (char)i;
    CHECK_OK(cuda->fill(b, d, (tl_dmem){h, 0}, 0x11, 4096));
    CHECK_OK(cuda->upload(b, d, (tl_dmem){h, 512}, in, 1000));
    CHECK_OK(cuda->copy(b, d, (tl_dmem){h, 2048}, (tl_dmem){h, 512}, 1000));
    CHECK_OK(cuda->download(b, d, out, (tl_dmem){h, 2048}, 1000));
    CHECK_OK(cuda->wait(b, d));
    CHECK(memcmp(in, out, 1000) == 0, "bytes changed on the way");
    CHECK_OK(cuda->download(b, d, out, (tl_dmem){h, 0}, 512));
    CHECK(out[0] == 0x11 && out[511] == 0x11, "fill");
    int calls = fake->calls;
    CHECK_OK(cuda->upload(b, d, (tl_dmem){h, 0}, in, 0));
    CHECK_OK(cuda->download(b, d, out, (tl_dmem){h, 0}, 0));
    CHECK_OK(cuda->copy(b, d, (tl_dmem){h, 0}, (tl_dmem){h, 0}, 0));
    CHECK_OK(cuda->fill(b, d, (tl_dmem){h, 0}, 0, 0));
    CHECK(fake->calls == calls, "no bytes need no calls");
    CHECK(cuda->upload(b, d, (tl_dmem){h, 4000}, in, 1000) == TULLE_EDRIVER, "past the end");
    CHECK_SAYS("1000 bytes");
    cuda->free(d, h);
    cuda->free(d, 0);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void too_little_memory_is_told_in_bytes(void)
{
    uint64_t h = 0, more = 1;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    CHECK_OK(cuda->alloc(b, d, 60 << 20, &h));
    CHECK(cuda->alloc(b, d, 5000000, &more) == TULLE_ENOMEM && more == 0, "alloc");
    CHECK_SAYS("5000000 bytes asked for, 4194304 of 67108864 are free");
    fail("cuMemAlloc_v2", 2, 2, 0);
    CHECK_OK(cuda->alloc(b, d, 0, &more));
    uint64_t third = 0;
    CHECK(cuda->alloc(b, d, 100, &third) == TULLE_ENOMEM && third == 0, "the second request");
    CHECK_OK(cuda->alloc(b, d, 100, &third));
    cuda->free(d, h);
    cuda->free(d, more);
    cuda->free(d, third);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void uploads_from_pinned_memory_wait(void)
{
    void *pinned = NULL;
    char pageable[64] = "abc", out[64];
    uint64_t h = 0;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    CHECK_OK(cuda->pinned(b, d, 64, &pinned));
    CHECK_OK(cuda->alloc(b, d, 64, &h));
    CHECK_OK(cuda->upload(b, d, (tl_dmem){h, 0}, pageable, 64));
    CHECK(cuda->waits(d) == 0, "pageable memory is staged");
    memset(pinned, 7, 64);
    CHECK_OK(cuda->upload(b, d, (tl_dmem){h, 0}, pinned, 64));
    CHECK(cuda->waits(d) == 1, "%d waits", (int)cuda->waits(d));
    CHECK_OK(cuda->download(b, d, out, (tl_dmem){h, 0}, 64));
    CHECK(cuda->waits(d) == 1 && out[63] == 7, "download");
    CHECK_OK(cuda->wait(b, d));
    CHECK(cuda->waits(d) == 2, "%d waits", (int)cuda->waits(d));
    CHECK(cuda->reaches(d, pinned) && !cuda->reaches(d, pageable), "pinned memory is reached, other is not");
    CHECK(cuda->lock(d, pageable, 64) && cuda->reaches(d, pageable + 63) && fake->locked == 1, "locked memory is reached");
    CHECK(!cuda->lock(d, pageable, 64), "it is locked already");
    CHECK_OK(cuda->upload(b, d, (tl_dmem){h, 0}, pageable, 64));
    CHECK(cuda->waits(d) == 3, "%d waits", (int)cuda->waits(d));
    cuda->unlock(d, pageable);
    CHECK(!cuda->reaches(d, pageable) && fake->locked == 0, "unlocked");
    cuda->unpin(d, pinned);
    cuda->unpin(d, NULL);
    cuda->free(d, h);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

/* ---- kernels */

static void arguments_reach_the_kernel(void)
{
    tl_kernel *k = NULL, *again = NULL;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "add_4", &k));
    CHECK_OK(cuda->kernel(b, d, m, "add_4", &again));
    CHECK(k == again, "one kernel, one handle");
    const tl_arg args[] = {{TL_ARG_MEM, {.mem = {4096, 512}}}, {TL_ARG_U32, {.u32 = 12345}},
                           {TL_ARG_U64, {.u64 = 1ull << 40}}, {TL_ARG_F64, {.f64 = 0.5}}};
    CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 2147483647, .threads = 256, .shared = 1000, .count = 4,
                                               .args = args}));
    double f64;
    memcpy(&f64, &fake->last.arg[3], 8);
    CHECK(strcmp(fake->last.kernel, "add_4") == 0 && fake->launches == 1, "%s", fake->last.kernel);
    CHECK(fake->last.blocks == 2147483647 && fake->last.threads == 256 && fake->last.shared == 1000, "the grid");
    CHECK(fake->last.arg[0] == 4608 && (uint32_t)fake->last.arg[1] == 12345, "arguments");
    CHECK(fake->last.arg[2] == 1ull << 40 && f64 == 0.5, "arguments");
    CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 0, .threads = 256}));
    CHECK(fake->launches == 1, "no blocks, no launch");
    CHECK(cuda->launch(b, d, k, &(tl_launch){.blocks = 2147483648, .threads = 256}) == TULLE_EDRIVER, "2^31 blocks");
    CHECK_SAYS("kernel add_4: 2147483648 blocks");
    cuda->unload(d, m);
    cuda->unload(d, NULL);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void large_shared_memory_is_asked_for_once(void)
{
    tl_kernel *k = NULL;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "big", &k));
    fake->log[0] = 0;
    const uint32_t shared[] = {0, 48 << 10, 100 << 10, 64 << 10, 100 << 10, 227 << 10, 227 << 10};
    for (int i = 0; i < 7; i++)
        CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 1, .threads = 1024, .shared = shared[i]}));
    int asked = 0;
    for (const char *at = fake->log; (at = strstr(at, "cuFuncSetAttribute")) != NULL; at++) asked++;
    CHECK(asked == 2 && fake->launches == 7, "asked %d times, %d launches", asked, fake->launches);
    CHECK(cuda->launch(b, d, k, &(tl_launch){.blocks = 3, .threads = 96, .shared = 228 << 10}) == TULLE_EDRIVER,
          "more than a block can have");
    CHECK_SAYS("kernel big cannot be started with 233472 bytes of shared memory");
    CHECK(cuda->launch(b, d, k, &(tl_launch){.blocks = 3, .threads = 1025}) == TULLE_EDRIVER, "threads");
    CHECK_SAYS("kernel big, 3 blocks of 1025 threads, 0 bytes of shared memory: cuLaunchKernel: "
               "CUDA_ERROR_INVALID_VALUE");
    cuda->unload(d, m);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void a_kernel_that_fails_later_is_named_then(void)
{
    tl_kernel *k = NULL;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "stray", &k));
    CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 1, .threads = 32}));
    fail("cuStreamSynchronize", 1, 700, 0);
    CHECK(cuda->wait(b, d) == TULLE_EDRIVER, "wait");
    CHECK_SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_SAYS("the kernel started last is stray");
    cuda->unload(d, m);
    fail("cuStreamSynchronize", 1, 700, 0);
    CHECK(cuda->wait(b, d) == TULLE_EDRIVER && !strstr(b->error, "stray"), "%s", b->error);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void images_that_are_none_are_refused(void)
{
    tl_module *m = NULL;
    tl_kernel *k = NULL;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_image open_end = image_of("// PTX without its zero", 10), bad = image_of("bad PTX", 8), ptx = image_of("// PTX", 7);
    CHECK(cuda->load(b, d, &open_end, &m) == TULLE_EDRIVER && !m, "an image without an end");
    CHECK_SAYS("an image of 10 bytes");
    CHECK(cuda->load(b, d, &bad, &m) == TULLE_EDRIVER && !m, "an image that the driver refuses");
    CHECK_SAYS("CUDA_ERROR_INVALID_IMAGE");
    CHECK_SAYS("ptxas: line 3: bad");
    CHECK(!strstr(b->error, "more"), "one line is enough: %s", b->error);
    CHECK_OK(cuda->load(b, d, &ptx, &m));
    CHECK(cuda->kernel(b, d, m, "missing_one", &k) == TULLE_EDRIVER && !k, "a kernel that is not there");
    CHECK_SAYS("cuModuleGetFunction(missing_one): CUDA_ERROR_NOT_FOUND");
    cuda->unload(d, m);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void without_nvrtc_only_compiling_fails(void)
{
    tl_image image;
    use(FAKE_CUDA);
    setenv("TULLE_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
    tl_device *d = open_device(0);
    tl_compiler c = cuda->compiler(d);
    CHECK(strcmp(c.dialect, "cuda") == 0 && strcmp(c.arch, "sm_90") == 0, "%s %s", c.dialect, c.arch);
    CHECK(strstr(c.version, "no NVRTC"), "%s", c.version);
    CHECK(c.compile(c.self, b, "rows", "", &image) == TULLE_ECOMPILE && !image.data, "compile");
    CHECK_SAYS("kernel file rows");
    CHECK_SAYS("/nowhere/libnvrtc.so cannot be opened");
    tl_module *m = load(d);
    cuda->unload(d, m);
    cuda->close(d);
    unsetenv("TULLE_LIBNVRTC");
    CHECK_NOTHING_LEFT();
}

/* ---- streams */

/* Finds "name a b;" in the log from `at` on; returns the position after it. */
static const char *after(const char *at, const char *name, int x, int y)
{
    char line[96];
    if (y < 0) snprintf(line, sizeof line, "%s %d;", name, x);
    else snprintf(line, sizeof line, "%s %d %d;", name, x, y);
    at = at ? strstr(at, line) : NULL;
    return at ? at + strlen(line) : NULL;
}

static int number_after(const char *at, const char *name)
{
    const char *found = strstr(at, name);
    return found ? atoi(found + strlen(name)) : -1;
}

static void lanes_start_after_the_queue_and_end_before_it_goes_on(void)
{
    tl_kernel *k = NULL;
    int stream[TL_LANES];
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "k", &k));
    for (int i = 0; i < TL_LANES; i++) {
        CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 1, .threads = 32, .lane = i}));
        stream[i] = fake->last.stream;
        for (int j = 0; j < i; j++) CHECK(stream[i] != stream[j], "lanes %d and %d share a stream", i, j);
    }
    fake->log[0] = 0;
    CHECK_OK(cuda->fork(b, d, 3));
    int forked = number_after(fake->log, "cuEventRecord ");
    const char *at = after(fake->log, "cuEventRecord", forked, stream[0]);
    CHECK(after(at, "cuStreamWaitEvent", stream[1], forked), "%s", fake->log);
    CHECK(after(at, "cuStreamWaitEvent", stream[2], forked), "%s", fake->log);
    CHECK(!after(at, "cuStreamWaitEvent", stream[3], forked), "a lane that was not asked for: %s", fake->log);
    for (int lanes = 2; lanes <= TL_LANES; lanes++) {
        fake->log[0] = 0;
        CHECK_OK(cuda->join(b, d, lanes));
        at = fake->log;
        for (int i = 1; i < lanes; i++) {
            int joined = number_after(at, "cuEventRecord ");
            at = after(after(at, "cuEventRecord", joined, stream[i]), "cuStreamWaitEvent", stream[0], joined);
            REQUIRE(at, "lane %d of %d: %s", i, lanes, fake->log);
        }
        CHECK(!strstr(at, "cuEventRecord"), "%s", at);
    }
    fake->log[0] = 0;
    CHECK_OK(cuda->fork(b, d, 1));
    CHECK_OK(cuda->join(b, d, 1));
    CHECK(fake->log[0] == 0, "one lane needs nothing");
    cuda->unload(d, m);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void copies_go_to_the_stream_of_their_lane(void)
{
    tl_kernel *k = NULL;
    void *p = NULL;
    uint64_t h = 0;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "k", &k));
    CHECK_OK(cuda->pinned(b, d, 128, &p));
    CHECK_OK(cuda->alloc(b, d, 1024, &h));
    CHECK(cuda->settle(b, d, 3) == TULLE_EDRIVER, "a flag that is nowhere");
    CHECK_SAYS("flag 3");
    CHECK(cuda->follow(b, d, 0, 3) == TULLE_EDRIVER, "a flag that is nowhere");
    CHECK_SAYS("flag 3");
    for (int lane = 0; lane <= TL_LANE_DOWN; lane++) {
        CHECK_OK(cuda->launch(b, d, k, &(tl_launch){.blocks = 1, .threads = 32, .lane = lane}));
        int stream = fake->last.stream;
        uint64_t waits = cuda->waits(d);
        memset(p, lane + 1, 64);
        fake->log[0] = 0;
        CHECK_OK(cuda->send(b, d, lane, (tl_dmem){h, 512}, p, 64));
        CHECK_OK(cuda->fetch(b, d, lane, (char *)p + 64, (tl_dmem){h, 512}, 64));
        CHECK_OK(cuda->flag(b, d, lane, lane));
        CHECK(cuda->waits(d) == waits && !strstr(fake->log, "Synchronize"), "the host waited: %s", fake->log);
        CHECK_OK(cuda->settle(b, d, lane));
        CHECK(cuda->waits(d) == waits + 1, "%d waits", (int)(cuda->waits(d) - waits));
        CHECK(((char *)p)[64] == lane + 1 && ((char *)p)[127] == lane + 1, "bytes changed on the way");
        int flag = number_after(fake->log, "cuEventRecord ");
        const char *at = after(fake->log, "cuMemcpyHtoDAsync_v2", stream, -1);
        at = after(after(after(at, "cuMemcpyDtoHAsync_v2", stream, -1), "cuEventRecord", flag, stream),
                   "cuEventSynchronize", flag, -1);
        CHECK(at, "lane %d: %s", lane, fake->log);
        fake->log[0] = 0;
        CHECK_OK(cuda->follow(b, d, lane, lane));
        CHECK(after(fake->log, "cuStreamWaitEvent", stream, flag) && !strstr(fake->log, "Synchronize"), "lane %d: %s", lane,
              fake->log);
    }
    int events = fake->events, calls = fake->calls;
    CHECK_OK(cuda->send(b, d, 1, (tl_dmem){h, 0}, p, 0));
    CHECK_OK(cuda->fetch(b, d, 1, p, (tl_dmem){h, 0}, 0));
    CHECK(fake->calls == calls, "no bytes need no calls");
    CHECK_OK(cuda->flag(b, d, 1, 0));
    CHECK(fake->events == events, "flags are made once");
    CHECK(cuda->send(b, d, 1, (tl_dmem){h, 1000}, p, 64) == TULLE_EDRIVER, "past the end");
    CHECK_SAYS("64 bytes");
    cuda->free(d, h);
    cuda->unpin(d, p);
    cuda->unload(d, m);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void time_passes_between_marks(void)
{
    double seconds = -1;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    CHECK(cuda->elapsed(b, d, 0, 1, &seconds) == TULLE_EDRIVER && seconds == 0, "not marked");
    CHECK_SAYS("events 0 and 1");
    for (int i = 0; i < TL_EVENTS; i++) CHECK_OK(cuda->mark(b, d, i));
    CHECK_OK(cuda->wait(b, d));
    CHECK_OK(cuda->elapsed(b, d, 0, TL_EVENTS - 1, &seconds));
    CHECK(seconds > 0.9e-3 * (TL_EVENTS - 1) && seconds < 1.1e-3 * (TL_EVENTS - 1), "%g s", seconds);
    int events = fake->events;
    for (int i = 0; i < TL_EVENTS; i++) CHECK_OK(cuda->mark(b, d, i));
    CHECK(fake->events == events, "events are made once");
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void the_callers_stream_is_used_until_it_is_taken_back(void)
{
    tl_kernel *k = NULL;
    int (*stream_create)(void **, unsigned), (*stream_destroy)(void *), (*push)(void *), (*pop)(void **);
    void *theirs = NULL, *popped;
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "k", &k));
    REQUIRE(tl_dl_symbol(library, "cuStreamCreate", &stream_create)
            && tl_dl_symbol(library, "cuStreamDestroy_v2", &stream_destroy)
            && tl_dl_symbol(library, "cuCtxPushCurrent_v2", &push)
            && tl_dl_symbol(library, "cuCtxPopCurrent_v2", &pop), "symbols");
    push(cuda->native(d, TL_NATIVE_CONTEXT));
    CHECK(stream_create(&theirs, 0) == 0, "stream");
    const tl_launch one = {.blocks = 1, .threads = 32};
    CHECK_OK(cuda->launch(b, d, k, &one));
    int own = fake->last.stream;
    fake->log[0] = 0;
    CHECK_OK(cuda->queue(b, d, theirs));
    CHECK(cuda->native(d, TL_NATIVE_QUEUE) == theirs, "native");
    CHECK_OK(cuda->launch(b, d, k, &one));
    int other = fake->last.stream, turned = number_after(fake->log, "cuEventRecord ");
    CHECK(other != own, "the launch went to our own stream");
    CHECK(after(after(after(fake->log, "cuEventRecord", turned, own), "cuStreamWaitEvent", other, turned),
                "cuLaunchKernel", other, -1), "%s", fake->log);
    fake->log[0] = 0;
    CHECK_OK(cuda->wait(b, d));
    CHECK(after(fake->log, "cuStreamSynchronize", other, -1), "%s", fake->log);
    fake->log[0] = 0;
    CHECK_OK(cuda->queue(b, d, NULL));
    CHECK(after(after(fake->log, "cuEventRecord", turned, other), "cuStreamWaitEvent", own, turned), "%s", fake->log);
    CHECK_OK(cuda->queue(b, d, NULL));
    CHECK_OK(cuda->launch(b, d, k, &one));
    CHECK(fake->last.stream == own, "back");
    stream_destroy(theirs);
    pop(&popped);
    cuda->unload(d, m);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

/* ---- a complete sequence of operations, for failures and for contexts */

static tulle_status work(tl_device *d)
{
    tulle_status status = TULLE_OK;
    tl_module *m = NULL;
    tl_kernel *k = NULL;
    uint64_t h = 0;
    void *p = NULL;
    double seconds;
    tl_image image = image_of(cubin, sizeof cubin);
    TRY(cuda->pinned(b, d, 256, &p));
    TRY(cuda->alloc(b, d, 4096, &h));
    memset(p, 0, 256);
    TRY(cuda->upload(b, d, (tl_dmem){h, 0}, p, 256));
    TRY(cuda->fill(b, d, (tl_dmem){h, 512}, 1, 256));
    TRY(cuda->copy(b, d, (tl_dmem){h, 1024}, (tl_dmem){h, 512}, 256));
    TRY(cuda->load(b, d, &image, &m));
    TRY(cuda->kernel(b, d, m, "k", &k));
    TRY(cuda->mark(b, d, 0));
    TRY(cuda->fork(b, d, TL_LANES));
    for (int i = 0; i < TL_LANES; i++)
        TRY(cuda->launch(b, d, k, &(tl_launch){.blocks = 9, .threads = 32, .lane = i, .shared = 64 << 10}));
    TRY(cuda->send(b, d, 1, (tl_dmem){h, 2048}, p, 256));
    TRY(cuda->fetch(b, d, 1, p, (tl_dmem){h, 2048}, 256));
    TRY(cuda->flag(b, d, 1, 0));
    TRY(cuda->settle(b, d, 0));
    TRY(cuda->join(b, d, TL_LANES));
    TRY(cuda->mark(b, d, 1));
    TRY(cuda->download(b, d, p, (tl_dmem){h, 1024}, 256));
    TRY(cuda->wait(b, d));
    TRY(cuda->elapsed(b, d, 0, 1, &seconds));
done:
    fake->fail_at = 0;                          /* functions that free are not made to fail here */
    cuda->unload(d, m);
    cuda->free(d, h);
    cuda->unpin(d, p);
    return status;
}

static void every_call_may_fail_and_leaves_a_sentence(void)
{
    int fails = 0, survived = 0;
    use(FAKE_CUDA);
    for (int n = 1; n < 1000; n++) {
        tl_device *d = NULL;
        b->error[0] = 0;
        fail("*", n, n % 2 ? 700 : 2, 0);
        tulle_status status = cuda->open(b, 0, &d);
        if (status == TULLE_OK) status = work(d);
        bool reached = fake->fail_seen >= n;
        fake->fail_at = 0;
        cuda->close(d);
        CHECK_NOTHING_LEFT();
        if (!reached) break;                    /* each call has failed once */
        if (status == TULLE_OK) {               /* failures of spinning and of pinned memory are ignored */
            survived++;
            continue;
        }
        fails++;
        CHECK(status == TULLE_EDRIVER || status == TULLE_ENOMEM || status == TULLE_EDEVICE, "%s", tulle_status_name(status));
        CHECK(strstr(b->error, "cu") || strstr(b->error, "device memory"), "call %d: \"%s\"", n, b->error);
    }
    CHECK(fails > 60, "%d failures", fails);
    CHECK(survived <= 5, "%d failures were not noticed", survived);
}

static void a_device_that_dies_fails_every_call_and_can_be_closed(void)
{
    void *p = NULL, *popped;
    uint64_t h = 0;
    tl_kernel *k = NULL;
    int (*get)(void **);
    use(FAKE_CUDA);
    tl_device *d = open_device(0);
    tl_module *m = load(d);
    CHECK_OK(cuda->kernel(b, d, m, "k", &k));
    CHECK_OK(cuda->alloc(b, d, 64, &h));
    CHECK_OK(cuda->pinned(b, d, 64, &p));
    CHECK_OK(cuda->flag(b, d, 0, 0));
    fail("*", 1, 700, 1);
    char host[64] = "";
    uint64_t more = 1;
    const tulle_status status[] = {
        cuda->alloc(b, d, 64, &more), cuda->upload(b, d, (tl_dmem){h, 0}, host, 64),
        cuda->download(b, d, host, (tl_dmem){h, 0}, 64), cuda->copy(b, d, (tl_dmem){h, 0}, (tl_dmem){h, 32}, 32),
        cuda->fill(b, d, (tl_dmem){h, 0}, 0, 64), cuda->wait(b, d), cuda->fork(b, d, 2), cuda->join(b, d, 2),
        cuda->send(b, d, 1, (tl_dmem){h, 0}, p, 64), cuda->fetch(b, d, 1, p, (tl_dmem){h, 0}, 64), cuda->flag(b, d, 1, 1),
        cuda->settle(b, d, 0), cuda->mark(b, d, 0), cuda->launch(b, d, k, &(tl_launch){.blocks = 1, .threads = 1})};
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        CHECK(status[i] == TULLE_EDRIVER, "call %d: %s", (int)i, tulle_status_name(status[i]));
    CHECK_SAYS("kernel k");
    cuda->unload(d, m);
    cuda->free(d, h);
    cuda->unpin(d, p);
    cuda->close(d);                             /* every call fails now, but none crashes */
    REQUIRE(tl_dl_symbol(library, "cuCtxGetCurrent", &get), "symbol");
    CHECK(get(&popped) == 0 && !popped, "a context was left current");
    fake->fail_at = 0;
}

static void the_callers_context_stays_current(void)
{
    int (*retain)(void **, int), (*release)(int), (*push)(void *), (*pop)(void **), (*get)(void **);
    void *theirs = NULL, *now = NULL;
    use(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    tl_device *d = open_device(0);
    REQUIRE(tl_dl_symbol(library, "cuDevicePrimaryCtxRetain", &retain)
            && tl_dl_symbol(library, "cuDevicePrimaryCtxRelease_v2", &release)
            && tl_dl_symbol(library, "cuCtxPushCurrent_v2", &push) && tl_dl_symbol(library, "cuCtxPopCurrent_v2", &pop)
            && tl_dl_symbol(library, "cuCtxGetCurrent", &get), "symbols");
    CHECK_OK(work(d));
    CHECK(get(&now) == 0 && now == NULL, "no context was current before");
    CHECK(retain(&theirs, 1) == 0 && push(theirs) == 0, "their context");
    CHECK_OK(work(d));
    CHECK(get(&now) == 0 && now == theirs, "theirs was current before");
    pop(&now);
    push(cuda->native(d, TL_NATIVE_CONTEXT));
    fake->log[0] = 0;
    CHECK_OK(work(d));
    CHECK(get(&now) == 0 && now == cuda->native(d, TL_NATIVE_CONTEXT), "ours was current before");
    CHECK(!strstr(fake->log, "cuCtxPushCurrent"), "it need not be pushed then");
    pop(&now);
    release(1);
    cuda->close(d);
    CHECK_NOTHING_LEFT();
}

static void *use_a_device(void *number)
{
    tl_device *d = NULL;
    tl_base *own = NULL;
    uint64_t h = 0;
    char in[512], out[512];
    bool good = tl_base_create(NULL, 1, sizeof *own, &own) == TULLE_OK;
    memset(in, *(int *)number + 1, sizeof in);
    for (int i = 0; i < 50 && good; i++) {
        good = cuda->open(own, *(int *)number % 2, &d) == TULLE_OK && cuda->alloc(own, d, 512, &h) == TULLE_OK
            && cuda->upload(own, d, (tl_dmem){h, 0}, in, 512) == TULLE_OK
            && cuda->download(own, d, out, (tl_dmem){h, 0}, 512) == TULLE_OK && cuda->wait(own, d) == TULLE_OK
            && memcmp(in, out, 512) == 0 && cuda->waits(d) == 1;
        cuda->free(d, h);
        cuda->close(d);
        d = NULL;
    }
    tl_base_free(own);
    *(int *)number = good ? 0 : -1;
    return NULL;
}

static void threads_have_devices_of_their_own(void)
{
    pthread_t thread[4];
    int number[4];
    use(FAKE_CUDA);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    for (int i = 0; i < 4; i++) {
        number[i] = i;
        REQUIRE(pthread_create(&thread[i], NULL, use_a_device, &number[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(number[i] == 0, "thread %d", i);
    }
    CHECK_NOTHING_LEFT();
}

TEST_MAIN(TEST(a_missing_library_is_no_error_and_says_why), TEST(a_library_without_a_function_says_which),
          TEST(a_driver_without_devices_says_so), TEST(devices_are_listed_without_a_context),
          TEST(a_device_that_is_too_old_is_listed_and_refused),
          TEST(a_device_that_vanishes_from_the_list_is_no_device),
          TEST(an_open_device_spins_and_tells_its_free_memory), TEST(bytes_go_there_and_back),
          TEST(too_little_memory_is_told_in_bytes), TEST(uploads_from_pinned_memory_wait),
          TEST(arguments_reach_the_kernel), TEST(large_shared_memory_is_asked_for_once),
          TEST(a_kernel_that_fails_later_is_named_then), TEST(images_that_are_none_are_refused),
          TEST(without_nvrtc_only_compiling_fails), TEST(lanes_start_after_the_queue_and_end_before_it_goes_on),
          TEST(copies_go_to_the_stream_of_their_lane),
          TEST(time_passes_between_marks), TEST(the_callers_stream_is_used_until_it_is_taken_back),
          TEST(every_call_may_fail_and_leaves_a_sentence),
          TEST(a_device_that_dies_fails_every_call_and_can_be_closed), TEST(the_callers_context_stays_current),
          TEST(threads_have_devices_of_their_own))
