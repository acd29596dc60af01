/* SPDX-License-Identifier: MIT
 *
 * test_cuda_model.c - the simulated CUDA device (cuda_model/model.h) behaves like CUDA, and detects errors
 * of kernels: deadlocks of warps, reads of uninitialized shared memory, addresses outside of allocations. */
#define _GNU_SOURCE
#include "gpu/driver.h"
#include "test.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 4096, BLOCK = WORDS * 4 };
#define ALL "0xffffffffu"

static const tl_driver *const cuda = &tl_driver_cuda;
static tl_base   *b;
static tl_device *device;
static tl_module *module;
static uint64_t   memory;
static uint32_t   words[WORDS];

/* ---- a device with one block of memory, and one kernel, "k(unsigned *w, unsigned n)", on it */

static void close_device(void)
{
    if (module) cuda->unload(device, module);
    if (memory) cuda->free(device, memory);
    cuda->close(device);
    module = NULL;
    memory = 0;
    device = NULL;
}

static void open_device(void)
{
    if (!b && tl_base_create(NULL, 2, sizeof *b, &b) != TULLE_OK) abort();
    setenv("TULLE_LIBCUDA", CUDA_MODEL, 1);
    setenv("TULLE_LIBNVRTC", CUDA_MODEL_NVRTC, 1);
    setenv("CUDA_MODEL_DEVICES", "2", 1);
    setenv("CUDA_MODEL_ORDER", "forward", 1);
    close_device();
    if (cuda->open(b, 0, &device) != TULLE_OK || cuda->alloc(b, device, BLOCK, &memory) != TULLE_OK) {
        printf("    %s\n", b->error);
        abort();
    }
}

static tulle_status compiled(const char *text)
{
    tl_image image = {0};
    tl_compiler c = cuda->compiler(device);
    tulle_status status = c.compile(c.self, b, "test", text, &image);
    if (module) cuda->unload(device, module);
    module = NULL;
    if (status == TULLE_OK) status = cuda->load(b, device, &image, &module);
    tl_image_free(b, &image);
    return status;
}

static tulle_status started(const char *name, uint32_t blocks, uint32_t threads, uint32_t shared, uint64_t address, uint32_t n)
{
    tl_kernel *k = NULL;
    tl_arg args[] = {{.kind = TL_ARG_MEM, .as.mem = {address, 0}}, {.kind = TL_ARG_U32, .as.u32 = n}};
    tulle_status status = cuda->kernel(b, device, module, name, &k);
    if (status != TULLE_OK) return status;
    return cuda->launch(b, device, k, &(tl_launch){.blocks = blocks, .threads = threads, .shared = shared, .count = 2, .args = args});
}

/* Runs a kernel with this body on a new device; its output is in `words`. */
static tulle_status runs(const char *body, uint32_t blocks, uint32_t threads, uint32_t shared, uint32_t n)
{
    char text[4096];
    snprintf(text, sizeof text, "extern \"C\" __global__ void __launch_bounds__(256) k(unsigned *w, unsigned n)\n{\n"
             "const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n%s\n}\n", body);
    tulle_status status = compiled(text);
    CHECK(status == TULLE_OK, "%s", b->error);
    if (status == TULLE_OK) status = started("k", blocks, threads, shared, memory, n);
    if (status == TULLE_OK) status = cuda->wait(b, device);
    if (status == TULLE_OK) status = cuda->download(b, device, words, (tl_dmem){memory, 0}, BLOCK);
    return status;
}

/* The same; returns also the output on stderr. */
static tulle_status says(const char *body, uint32_t threads, uint32_t shared, char *text, size_t bytes)
{
    FILE *f = tmpfile();
    fflush(stderr);
    int before = dup(2);
    if (!f || before < 0 || dup2(fileno(f), 2) < 0) abort();
    open_device();
    tulle_status status = runs(body, 2, threads, shared, 1);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    rewind(f);
    size_t n = fread(text, 1, bytes - 1, f);
    text[n] = 0;
    fclose(f);
    return status;
}

static const char *const orders[] = {"forward", "backward", "1", "2", "3"};
enum { ORDERS = sizeof orders / sizeof *orders };

/* ---- behaviour of CUDA */

static void lanes_exchange_what_they_have(void)
{
    open_device();
    for (int o = 0; o < ORDERS; o++) {
        setenv("CUDA_MODEL_ORDER", orders[o], 1);
        REQUIRE(runs("unsigned *const to = w + 8 * i;\n"
                     "to[0] = __shfl_sync(" ALL ", 100 + t, 3, 8);\n"
                     "to[1] = __shfl_up_sync(" ALL ", 100 + t, 2u, 16);\n"
                     "to[2] = __shfl_xor_sync(" ALL ", (unsigned long long)t << 32, 5) >> 32;\n"
                     "to[3] = __ballot_sync(" ALL ", t % 3 == 0);\n"
                     "to[4] = __match_any_sync(" ALL ", t % 5);\n"
                     "to[5] = __reduce_add_sync(t & 16 ? 0xffff0000u : 0xffffu, t);\n"
                     "to[6] = __reduce_max_sync(" ALL ", t ^ 9);\n"
                     "to[7] = (unsigned)__shfl_down_sync(" ALL ", (float)t, 1u);", 2, 64, 0, 0) == TULLE_OK, "%s", b->error);
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t t = i % 64, lane = t % 32, first = t - lane, *got = words + 8 * i;
            uint32_t vote = 0, match = 0, sum = 0, most = 0;
            for (uint32_t j = 0; j < 32; j++) {
                vote |= (uint32_t)((first + j) % 3 == 0) << j;
                match |= (uint32_t)((first + j) % 5 == t % 5) << j;
                if (j / 16 == lane / 16) sum += first + j;
                if (((first + j) ^ 9) > most) most = (first + j) ^ 9;
            }
            CHECK(got[0] == 100 + (t & ~7u) + 3 && got[1] == 100 + (lane % 16 < 2 ? t : t - 2) && got[2] == (t ^ 5)
                  && got[3] == vote && got[4] == match && got[5] == sum && got[6] == most && got[7] == (lane == 31 ? t : t + 1),
                  "order %s, thread %u: %u %u %u %x %x %u %u %u", orders[o], i, got[0], got[1], got[2], got[3], got[4], got[5],
                  got[6], got[7]);
        }
    }
    close_device();
}

/* Reverses the words of a block; barriers do not wait for threads that have ended. */
static const char turned[] = "extern __shared__ unsigned s[];\n__shared__ unsigned other[256];\n"
                             "if (t >= 200) return;\ns[t] = i;\nother[t] = i;\n%s\nw[i] = s[199 - t] + other[199 - t];";

static bool turns(const char *barrier, const char *order)
{
    char body[512];
    snprintf(body, sizeof body, turned, barrier);
    setenv("CUDA_MODEL_ORDER", order, 1);
    bool right = runs(body, 3, 256, 800, 0) == TULLE_OK;
    for (uint32_t k = 0; k < 3 && right; k++)
        for (uint32_t t = 0; t < 200; t++) right &= words[256 * k + t] == 2 * (256 * k + 199 - t);
    return right;
}

static void a_barrier_waits_for_all_that_have_not_ended(void)
{
    open_device();
    for (int o = 0; o < ORDERS; o++) CHECK(turns("__syncthreads();", orders[o]), "order %s: %s", orders[o], b->error);
    close_device();
}

static void a_barrier_that_is_missing_shows(void)
{
    open_device();
    for (int o = 0; o < ORDERS; o++) CHECK(!turns("", orders[o]), "order %s", orders[o]);
    CHECK(!turns("__syncwarp(t < 192 ? " ALL " : 0xffu);", "forward"), "a warp is not the block");
    close_device();
}

static void atomics_and_numbers_are_those_of_cuda(void)
{
    open_device();
    REQUIRE(runs("if (i == 0) for (unsigned k = 0; k < 16; k++) w[k] = 0;\n__syncthreads();\n"
                 "atomicAdd(&w[0], 2u); atomicMax(&w[1], t); atomicOr(&w[2], 1u << t % 32); atomicAdd((float *)&w[3], 0.5f);\n"
                 "atomicCAS(&w[4], t, t + 1u); atomicAdd((unsigned long long *)&w[6], 0x80000000ull);\n"
                 "w[8] = __clz(1) + __popc(255) + __ffs(8); w[9] = __umulhi(0x80000000u, 6);\n"
                 "w[10] = __umul64hi(1ull << 63, 6); w[11] = __float_as_uint(fma(3.0f, 2.0f, 1.0f)); w[12] = __clz(0);",
                 1, 64, 0, 0) == TULLE_OK, "%s", b->error);
    float half;
    memcpy(&half, &words[3], sizeof half);
    CHECK(words[0] == 128 && words[1] == 63 && words[2] == 0xffffffffu && half == 32.0f && words[4] == 64, "%u %u %x %g %u",
          words[0], words[1], words[2], half, words[4]);
    CHECK(words[6] == 0 && words[7] == 32 && words[8] == 31 + 8 + 4 && words[9] == 3 && words[10] == 3
          && words[11] == 0x40e00000u && words[12] == 32, "%u %u %u %u %u %x %u", words[6], words[7], words[8], words[9], words[10],
          words[11], words[12]);
    close_device();
}

static void copies_to_shared_memory_are_made_when_waited_for(void)
{
    open_device();
    REQUIRE(runs("__shared__ unsigned s[32];\nw[t] = 7 + t;\n"
                 "asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2;\" :: \"r\"((unsigned)__cvta_generic_to_shared(s + t)), "
                 "\"l\"(w + t), \"n\"(4) : \"memory\");\n"
                 "w[32 + t] = s[t];\nasm volatile(\"cp.async.wait_all;\" ::: \"memory\");\nw[64 + t] = s[t];", 1, 32, 0, 0)
            == TULLE_OK, "%s", b->error);
    for (uint32_t t = 0; t < 32; t++) CHECK(words[32 + t] == 0xa5a5a5a5u && words[64 + t] == 7 + t, "%u: %x %u", t, words[32 + t], words[64 + t]);
    close_device();
}

/* d(m, n) = sum of a(m, k) * b(k, n), a = 8m + k, b = 1 where n is k + 1: d(m, n) = 8m + n - 1. */
static void tensor_cores_multiply_as_ptx_lays_it_out(void)
{
    open_device();
    REQUIRE(runs("const int g = t / 4, u = t % 4;\nfloat d[4] = {1, 1, 1, 1};\n"
                 "const float a[4] = {8.f * g + u, 8.f * (g + 8) + u, 8.f * g + u + 4, 8.f * (g + 8) + u + 4};\n"
                 "const float c[2] = {g == u + 1 ? 1.f : 0.f, g == u + 5 ? 1.f : 0.f};\n"
                 "asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}\" : \"+f\"(d[0]), \"+f\"(d[1]), "
                 "\"+f\"(d[2]), \"+f\"(d[3]) : \"r\"(__float_as_uint(a[0])), \"r\"(__float_as_uint(a[1])), "
                 "\"r\"(__float_as_uint(a[2])), \"r\"(__float_as_uint(a[3])), \"r\"(__float_as_uint(c[0])), "
                 "\"r\"(__float_as_uint(c[1])));\n"
                 "for (int k = 0; k < 4; k++) w[(g + 8 * (k / 2)) * 8 + 2 * u + k % 2] = (unsigned)d[k];", 1, 32, 0, 0) == TULLE_OK,
            "%s", b->error);
    for (uint32_t m = 0; m < 16; m++)
        for (uint32_t n = 0; n < 8; n++) CHECK(words[8 * m + n] == (n ? 8 * m + n - 1 : 0) + 1, "(%u, %u): %u", m, n, words[8 * m + n]);
    close_device();
}

/* ---- errors of kernels */

static void warps_that_wait_in_vain_end_the_launch(void)
{
    static const struct { const char *what, *body, *words; uint32_t threads; } cases[] = {
        {"a thread that ended", "if (t == 5) return; __syncwarp();", "thread 0 waits in __syncwarp with the mask ffffffff for "
         "thread 5, which has ended", 32},
        {"a thread that does not exist", "__ballot_sync(" ALL ", 1);", "thread 0 waits in __ballot_sync", 16},
        {"two operations", "if (t < 16) __syncwarp(); else __ballot_sync(" ALL ", 1);", "waits in __ballot_sync with the mask", 32},
        {"two shuffles", "w[i] = t < 16 ? __shfl_sync(" ALL ", t, 0) : __shfl_xor_sync(" ALL ", t, 1);", "deadlock", 32},
        {"two masks", "__syncwarp(t < 16 ? " ALL " : 0xffff0000u); __syncthreads();", "thread 0 waits in __syncwarp", 32},
        {"a barrier in one warp", "if (t < 32) __syncthreads(); else { __syncwarp(); while (t == 33) __ballot_sync(3u, 1); }",
         "__ballot_sync", 64},
        {"a mask without oneself", "__syncwarp(t == 7 ? 1u : " ALL ");", "thread 7: __syncwarp with the mask 00000001", 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        tulle_status status = says(cases[i].body, cases[i].threads, 0, text, sizeof text);
        CHECK(status == TULLE_EDRIVER && strstr(b->error, "CUDA_ERROR_LAUNCH_FAILED"), "%s: %d, %s", cases[i].what, (int)status,
              b->error);
        CHECK(strstr(text, "kernel k, block 0") && strstr(text, cases[i].words), "%s: %s", cases[i].what, text);
    }
    /* the context remains unusable, but a new one works */
    CHECK(cuda->wait(b, device) == TULLE_EDRIVER, "a broken context");
    open_device();
    CHECK(runs("w[i] = 1;", 1, 32, 0, 0) == TULLE_OK && words[31] == 1, "%s", b->error);
    close_device();
}

static void shared_memory_is_full_of_garbage_for_every_block(void)
{
    open_device();
    REQUIRE(runs("extern __shared__ unsigned s[];\n__shared__ unsigned other[32];\n"
                 "w[i] = s[t]; w[1024 + i] = other[t]; s[t] = other[t] = 1;", 3, 32, 128, 0) == TULLE_OK, "%s", b->error);
    for (int i = 0; i < 96; i++) CHECK(words[i] == 0xa5a5a5a5u && words[1024 + i] == 0xa5a5a5a5u, "%d: %x %x", i, words[i], words[1024 + i]);
    for (int i = 96; i < 1024; i++) CHECK(words[i] == 0xa5a5a5a5u, "device memory is not cleared");
    close_device();
}

static void addresses_outside_of_memory_end_the_launch(void)
{
    static const struct { const char *what, *body, *words; } cases[] = {
        {"behind a block", "if (i == 40) w[4096 + 8192] = 1;", "thread 8: touches memory"},
        {"before a block", "if (i == 40) w[-14000] = 1;", "thread 8: touches"},
        {"nothing", "if (t == 3) *(volatile unsigned *)(unsigned long)(n - 1) = 1;", "thread 3: touches"},
        {"behind dynamic shared memory", "extern __shared__ unsigned s[]; if (t == 2) s[32] = 1;",
         "thread 2: touches dynamic shared memory, 128 bytes, at 128"},
        {"before it", "extern __shared__ unsigned s[]; if (t == 2) s[-1] = 1;", "wrote beside its 128 bytes"},
        {"a stack", "volatile unsigned deep[18000]; deep[n] = 1; w[i] = deep[17999 * n];", "stack"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        tulle_status status = says(cases[i].body, 32, 128, text, sizeof text);
        CHECK(status == TULLE_EDRIVER && strstr(b->error, "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s: %d, %s", cases[i].what, (int)status,
              b->error);
        CHECK(strstr(text, "kernel k, block") && strstr(text, cases[i].words), "%s: %s", cases[i].what, text);
    }
    /* just after a block of 100 bytes, before its guard page */
    uint64_t small = 0;
    open_device();
    REQUIRE(cuda->alloc(b, device, 100, &small) == TULLE_OK && runs("w[t + n] = 1;", 1, 25, 0, 0) == TULLE_OK, "%s", b->error);
    CHECK(started("k", 1, 25, 0, small, 0) == TULLE_OK && cuda->wait(b, device) == TULLE_OK, "all of it: %s", b->error);
    CHECK(started("k", 1, 25, 0, small, 1) == TULLE_OK && cuda->wait(b, device) == TULLE_EDRIVER
          && strstr(b->error, "CUDA_ERROR_ILLEGAL_ADDRESS"), "one more: %s", b->error);
#if defined(__x86_64__)              /* on other processors a division by zero does not trap, like on a GPU */
    char text[1024];
    CHECK(says("w[i] = t / (n - 1);", 32, 0, text, sizeof text) == TULLE_EDRIVER && strstr(text, "a division by zero"), "%s", text);
#endif
    close_device();
}

static void pointers_must_be_the_devices_own(void)
{
    static uint32_t mine[64];
    tl_device *other = NULL;
    uint64_t there = 0;
    open_device();
    REQUIRE(cuda->open(b, 1, &other) == TULLE_OK && cuda->alloc(b, other, 256, &there) == TULLE_OK, "%s", b->error);
    const uint64_t wrong[] = {(uint64_t)(uintptr_t)mine, there, memory + BLOCK + 1};
    for (int i = 0; i < 3; i++) {
        open_device();
        REQUIRE(runs("if (n) w[i] = 1;", 1, 32, 0, 0) == TULLE_OK, "%s", b->error);
        if (i == 2) CHECK(started("k", 1, 32, 0, memory, 1) == TULLE_OK && cuda->wait(b, device) == TULLE_OK, "%s", b->error);
        CHECK(started("k", 1, 32, 0, i == 2 ? memory + BLOCK + 1 : wrong[i], 0) == TULLE_OK, "a launch is accepted: %s", b->error);
        CHECK(cuda->wait(b, device) == TULLE_EDRIVER && strstr(b->error, "CUDA_ERROR_ILLEGAL_ADDRESS"), "%d: %s", i, b->error);
    }
    cuda->free(other, there);
    cuda->close(other);
    close_device();
}

/* ---- errors reported by the driver */

static void copies_outside_of_a_block_are_refused(void)
{
    open_device();
    const struct { uint64_t offset, bytes; } wrong[] = {{0, BLOCK + 1}, {BLOCK - 3, 4}, {BLOCK + 512, 1}, {(uint64_t)-4, 8}};
    static char host[2 * BLOCK];
    for (int i = 0; i < 4; i++) {
        tl_dmem at = {memory, wrong[i].offset};
        CHECK(cuda->upload(b, device, at, host, wrong[i].bytes) == TULLE_EDRIVER && strstr(b->error, "CUDA_ERROR_INVALID_VALUE"), "%d: %s", i, b->error);
        CHECK(cuda->download(b, device, host, at, wrong[i].bytes) == TULLE_EDRIVER, "%d", i);
        CHECK(cuda->fill(b, device, at, 1, wrong[i].bytes) == TULLE_EDRIVER, "%d", i);
        CHECK(cuda->copy(b, device, (tl_dmem){memory, 0}, at, wrong[i].bytes) == TULLE_EDRIVER, "%d", i);
    }
    CHECK(cuda->download(b, device, host, (tl_dmem){memory, BLOCK - 4}, 4) == TULLE_OK, "%s", b->error);
    CHECK(cuda->upload(b, device, (tl_dmem){memory, 0}, (void *)(uintptr_t)memory, 4) == TULLE_EDRIVER, "a device's memory is not the host's");
    uint64_t more = 0;
    CHECK(cuda->alloc(b, device, (uint64_t)1 << 50, &more) == TULLE_ENOMEM, "more than there is");
    close_device();
}

static void launches_beyond_a_limit_are_refused(void)
{
    open_device();
    REQUIRE(runs("__shared__ unsigned s[8]; s[0] = t; w[i] = s[0];", 1, 256, 0, 0) == TULLE_OK, "%s", b->error);
    CHECK(started("k", 1, 257, 0, memory, 0) == TULLE_EDRIVER && strstr(b->error, "LAUNCH_OUT_OF_RESOURCES"), "%s", b->error);
    CHECK(started("k", 1, 1025, 0, memory, 0) == TULLE_EDRIVER && strstr(b->error, "INVALID_VALUE"), "%s", b->error);
    CHECK(started("k", 1, 32, cuda->caps(device)->shared_block, memory, 0) == TULLE_EDRIVER && strstr(b->error, "INVALID_VALUE"), "%s", b->error);
    CHECK(started("k", 1, 32, cuda->caps(device)->shared_block - 32, memory, 0) == TULLE_OK, "%s", b->error);
    CHECK(started("none", 1, 32, 0, memory, 0) == TULLE_EDRIVER && strstr(b->error, "CUDA_ERROR_NOT_FOUND"), "%s", b->error);
    CHECK(cuda->wait(b, device) == TULLE_OK, "nothing was broken: %s", b->error);
    const char junk[] = "\177ELF and nothing that this machine runs, long enough for the head of a file of that kind";
    tl_module *none = NULL;
    CHECK(cuda->load(b, device, &(tl_image){.data = (void *)(uintptr_t)junk, .bytes = sizeof junk}, &none) == TULLE_EDRIVER
          && strstr(b->error, "CUDA_ERROR_INVALID_IMAGE"), "%s", b->error);
    close_device();
}

static void a_text_that_does_not_compile_has_its_line_told(void)
{
    open_device();
    CHECK(compiled("#line 41 \"some.cl\"\nextern \"C\" __global__ void k(unsigned *w)\n{\n    w[0] = nothing;\n}\n")
          == TULLE_ECOMPILE && strstr(b->error, "some.cl:43"), "%s", b->error);
    CHECK(compiled("extern \"C\" __global__ void k(unsigned *w) { asm(\"no.such.op %0;\" : \"=r\"(w[0])); }\n") == TULLE_ECOMPILE
          && strstr(b->error, "no_such_op"), "%s", b->error);
    close_device();
}

TEST_MAIN(TEST(lanes_exchange_what_they_have), TEST(a_barrier_waits_for_all_that_have_not_ended),
          TEST(a_barrier_that_is_missing_shows), TEST(atomics_and_numbers_are_those_of_cuda),
          TEST(copies_to_shared_memory_are_made_when_waited_for), TEST(tensor_cores_multiply_as_ptx_lays_it_out),
          TEST(warps_that_wait_in_vain_end_the_launch), TEST(shared_memory_is_full_of_garbage_for_every_block),
          TEST(addresses_outside_of_memory_end_the_launch), TEST(pointers_must_be_the_devices_own),
          TEST(copies_outside_of_a_block_are_refused), TEST(launches_beyond_a_limit_are_refused),
          TEST(a_text_that_does_not_compile_has_its_line_told))
