/* SPDX-License-Identifier: MIT
 *
 * test_nvrtc.c - every kernel of the library compiled by NVRTC, without a device: for sm_80, sm_90 and the
 * newest architecture it supports, for all value types and index widths.  Registers are printed; a kernel
 * that spills registers to memory is a failure for double values and 32-bit indices.  Also the error
 * messages of the compiler. */
#define _GNU_SOURCE
#include "gpu/engine.h"
#include "gpu/nvrtc.h"
#include "test.h"
#include <stdlib.h>

enum { FILES = 64, KERNELS = 16, JOBS = 1024, LOG = 1 << 16 };

static tl_base *b;
static int archs[128], arch_count;
static char version[256];

/* Without NVRTC the first case fails and says what to install; the others then pass. */
static bool ready(void)
{
    if (!b && tl_base_create(NULL, tl_cores(), sizeof *b, &b) != TULLE_OK) abort();
    return arch_count > 0 || tl_nvrtc_archs(archs, 128, &arch_count, version, sizeof version);
}

static void nvrtc_is_there(void)
{
    CHECK(ready(), "NVRTC not found: install nvidia-cuda-toolkit (%s)", version);
    if (ready()) printf("    %s, %d architectures, newest sm_%d\n", version, arch_count, archs[arch_count - 1]);
}

/* ---- the programs to compile */

typedef struct file {
    const char *name;
    int         threads;                /* the largest block      */
    bool        values;                 /* does it depend on the value type       */
} file;

static int all_files(file files[FILES])
{
    tl_program p;
    int count = 0;
    for (int i = 0; tl_program_ahead(i, &p); i++) {
        const char *threads = strstr(p.defines, "#define THREADS_MAX "), *val = strstr(p.defines, "#define VAL ");
        int k = 0;
        if (!threads || !val) abort();
        while (k < count && strcmp(files[k].name, p.file) != 0) k++;
        if (k == FILES) abort();
        if (k == count) files[count++] = (file){.name = p.file};
        files[k].threads = atoi(threads + strlen("#define THREADS_MAX "));
        files[k].values = atoi(val + strlen("#define VAL ")) != 0;
    }
    return count;
}

static const char *const type_names[] = {"none", "f32", "f64", "cf32", "cf64"};

/* The first ones, compiled for all architectures, cover every type and every width; the others are for
 * sm_90. */
static const struct { int val, ptr, idx, key; } builds[] = {
    {2, 32, 32, 32}, {4, 64, 64, 64}, {1, 32, 32, 32}, {3, 64, 32, 64}};
#if defined(TULLE_SANITIZED)                    /* NVRTC, which is not sanitized, takes all the time */
enum { BUILDS = 2, BUILDS_ALL = 1 };
#else
enum { BUILDS = 4, BUILDS_ALL = 2 };
#endif

/* ---- the output of ptxas for a kernel */

typedef struct usage {
    char name[64];
    int  registers, stack, spilled;     /* spilled: bytes of stores and loads */
} usage;

static int read_log(const char *log, usage *u)
{
    int count = 0;
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *end = line + strcspn(line, "\n"), *at;
        int stack, stores, loads;
        at = strstr(line, "Compiling entry function '");
        if (at && at < end && count < KERNELS) {
            u[count] = (usage){.registers = -1};
            sscanf(at + strlen("Compiling entry function '"), "%63[^']", u[count++].name);
        }
        if (count == 0) continue;
        usage *k = &u[count - 1];
        at = strstr(line, " bytes stack frame");
        while (at && at < end && at > line && at[-1] >= '0' && at[-1] <= '9') at--;
        if (at && at < end && sscanf(at, "%d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                                     &stack, &stores, &loads) == 3) {
            k->stack += stack;
            k->spilled += stores + loads;
        }
        at = strstr(line, "Used ");
        if (at && at < end) sscanf(at, "Used %d registers", &k->registers);
    }
    return count;
}

/* ---- all of them, on all cores */

typedef struct job {
    const file  *file;
    int          build, arch;
    tulle_status status;
    char         error[TL_ERROR_MAX];
    int          kernels;
    uint64_t     bytes;
    double       seconds;
    usage        kernel[KERNELS];
} job;

typedef struct jobs {
    job       *job;
    int        count;
    atomic_int next, unfreed;
} jobs;

static void do_job(tl_base *own, job *j, char *log)
{
    tulle_status status = TULLE_OK;
    tl_program p = {.file = j->file->name};
    tl_image image = {0};
    char arch[16], *text = NULL;
    snprintf(arch, sizeof arch, "sm_%d", j->arch);
    snprintf(p.defines, sizeof p.defines,
             "#define PTR %d\n#define IDX %d\n#define KEY %d\n#define VAL %d\n#define THREADS_MAX %d\n",
             builds[j->build].ptr, builds[j->build].idx, builds[j->build].key,
             j->file->values ? builds[j->build].val : 0, j->file->threads);
    TRY(tl_jit_source(own, "cuda", &p, &text));
    TRY(tl_nvrtc_compile(own, arch, p.file, text, &image, log, LOG));
    j->bytes = image.bytes;
    j->seconds = image.seconds;
    j->kernels = read_log(log, j->kernel);
done:
    j->status = status;
    if (status != TULLE_OK) snprintf(j->error, sizeof j->error, "%s", own->error);
    tl_free(own, text);
    tl_image_free(own, &image);
}

static void do_jobs(void *arg, int thread, int threads)
{
    jobs *all = arg;
    tl_base *own = NULL;
    char *log = malloc(LOG);
    (void)thread, (void)threads;
    if (!log || tl_base_create(NULL, 1, sizeof *own, &own) != TULLE_OK) abort();
    uint64_t held = own->held;
    for (int i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) do_job(own, &all->job[i], log);
    if (own->held != held) atomic_fetch_add(&all->unfreed, 1);
    tl_base_free(own);
    free(log);
}

static void make_jobs(const file *files, int count, jobs *all)
{
    const int wanted[] = {80, 90, archs[arch_count - 1]};
    for (int a = 0; a < 3; a++)
        for (int f = 0; f < count; f++)
            for (int k = 0; k < (wanted[a] == 90 ? BUILDS : BUILDS_ALL); k++) {
                bool repeated = false;          /* without values, one build per set of widths */
                for (int i = 0; i < k && !files[f].values; i++)
                    repeated |= builds[i].ptr == builds[k].ptr && builds[i].idx == builds[k].idx
                             && builds[i].key == builds[k].key;
                if (repeated) continue;
                REQUIRE(all->count < JOBS, "more than %d builds", JOBS);
                all->job[all->count++] = (job){.file = &files[f], .build = k, .arch = wanted[a]};
            }
}

static void check_job(const job *j, bool plain)
{
    char text[128];
    snprintf(text, sizeof text, "sm_%d %s, %s, %d/%d/%d bits", j->arch, j->file->name,
             type_names[j->file->values ? builds[j->build].val : 0], builds[j->build].ptr, builds[j->build].idx,
             builds[j->build].key);
    CHECK(j->status == TULLE_OK, "%s: %s", text, j->error);
    if (j->status != TULLE_OK) return;
    CHECK(j->kernels > 0, "%s: no kernel", text);
    for (int k = 0; k < j->kernels; k++) {
        const usage *u = &j->kernel[k];
        CHECK(u->registers > 0, "%s: %s uses %d registers", text, u->name, u->registers);
        CHECK(u->spilled == 0 || !plain, "%s: %s spills %d bytes", text, u->name, u->spilled);
        if (plain || u->spilled || u->stack)
            printf("    %-46s %-20s %3d registers, %d bytes of stack, %d spilled\n", text, u->name, u->registers,
                   u->stack, u->spilled);
    }
}

static void every_kernel_compiles_for_every_architecture_and_type(void)
{
    static file files[FILES];
    jobs all = {.job = calloc(JOBS, sizeof *all.job)};
    if (!ready()) return;
    REQUIRE(all.job, "no memory");
    int count = all_files(files);
    for (int i = 0; tl_jit_file(i); i++) {
        int k = 0;
        while (k < count && strcmp(files[k].name, tl_jit_file(i)) != 0) k++;
        CHECK(k < count, "no program is made of %s.cl", tl_jit_file(i));
    }
    make_jobs(files, count, &all);
    CHECK(count > 0 && all.count > 3 * count && all.count < JOBS, "%d programs of %d files", all.count, count);
    double begun = tl_now(), work = 0;
    tl_team_run(b->team, 0, do_jobs, &all);
    CHECK(all.unfreed == 0, "%d compilers did not free their memory", (int)all.unfreed);
    for (int i = 0; i < all.count; i++) {
        check_job(&all.job[i], all.job[i].build == 0);
        work += all.job[i].seconds;
    }
    printf("    %d programs in %.1f s, %.2f s each\n", all.count, tl_now() - begun, work / all.count);
    free(all.job);
}

/* Keys only; not used by products, but by merges. */
static void merges_compile_without_values(void)
{
    tl_program p;
    tl_image image = {0};
    char *text = NULL;
    if (!ready()) return;
    tl_program_make("merges", 1024, (tl_types){32, 32, 32, 0}, &p);
    REQUIRE(tl_jit_source(b, "cuda", &p, &text) == TULLE_OK, "%s", b->error);
    CHECK(tl_nvrtc_compile(b, "sm_90", p.file, text, &image, NULL, 0) == TULLE_OK, "%s", b->error);
    tl_free(b, text);
    tl_image_free(b, &image);
}

/* ---- messages and options */

static const char tiny[] = "extern \"C\" __global__ void k(double *p, double a) { p[0] = p[1] * a + p[2]; }\n";

static void products_are_not_contracted(void)
{
    tl_image image;
    if (!ready()) return;
    REQUIRE(tl_nvrtc_compile(b, "compute_80", "tiny", tiny, &image, NULL, 0) == TULLE_OK, "%s", b->error);
    const char *ptx = image.data;
    CHECK(image.bytes > 100 && ptx[image.bytes - 1] == 0, "PTX ends with a zero");
    CHECK(strstr(ptx, "mul.") && strstr(ptx, "add."), "%s", ptx);
    CHECK(!strstr(ptx, "fma."), "a fused multiply-add: %s", ptx);
    CHECK(image.origin == TL_COMPILED && image.seconds > 0, "where it comes from");
    tl_image_free(b, &image);
}

static void a_newer_device_gets_ptx_of_the_newest_known_one(void)
{
    tl_image image;
    char text[64];
    if (!ready()) return;
    REQUIRE(tl_nvrtc_compile(b, "sm_90", "tiny", tiny, &image, NULL, 0) == TULLE_OK, "%s", b->error);
    CHECK(memcmp(image.data, "\177ELF", 4) == 0, "machine code");
    tl_image_free(b, &image);
    REQUIRE(tl_nvrtc_compile(b, "sm_999", "tiny", tiny, &image, NULL, 0) == TULLE_OK, "%s", b->error);
    snprintf(text, sizeof text, ".target sm_%d", archs[arch_count - 1]);
    CHECK(strstr(image.data, text), "%s", (char *)image.data);
    tl_image_free(b, &image);
    const char *const impossible[] = {"sm_20", "compute_999", "gfx90a", "sm_", ""};
    for (int i = 0; i < 5; i++) {
        CHECK(tl_nvrtc_compile(b, impossible[i], "tiny", tiny, &image, NULL, 0) == TULLE_ECOMPILE, "%s",
              impossible[i]);
        CHECK(!image.data && strstr(b->error, "tiny"), "%s", b->error);
    }
}

static void a_kernel_that_does_not_compile_is_told_with_its_line(void)
{
    tl_image image;
    char log[4096];
    if (!ready()) return;
    const char *source = "#warning first\n#line 7 \"rows.cl\"\nextern \"C\" __global__ void k(int *p)\n"
                         "{\n    p[0] = q;\n}\n";
    uint64_t held = b->held;
    CHECK(tl_nvrtc_compile(b, "sm_90", "rows", source, &image, log, sizeof log) == TULLE_ECOMPILE, "compile");
    CHECK(!image.data && image.bytes == 0, "no image");
    CHECK(strstr(b->error, "kernel file rows") && strstr(b->error, "rows.cl(9): error"), "%s", b->error);
    CHECK(!strchr(b->error, '\n'), "one line: %s", b->error);
    CHECK(strstr(log, "first"), "the log has all: %s", log);
    CHECK(b->held == held, "%d bytes were not freed", (int)(b->held - held));
}

static void a_missing_nvrtc_is_a_sentence(void)
{
    tl_image image;
    char text[256];
    int list[4], count = 7;
    if (!ready()) return;
    setenv("TULLE_LIBNVRTC", "/nowhere/libnvrtc.so", 1);
    CHECK(!tl_nvrtc_archs(list, 4, &count, text, sizeof text) && count == 0, "%d", count);
    CHECK(strstr(text, "/nowhere/libnvrtc.so cannot be opened"), "%s", text);
    CHECK(tl_nvrtc_compile(b, "sm_90", "tiny", tiny, &image, NULL, 0) == TULLE_ECOMPILE, "compile");
    CHECK(strstr(b->error, "there is no NVRTC") && strstr(b->error, "/nowhere/libnvrtc.so"), "%s", b->error);
    tl_nvrtc_version(text, sizeof text);
    CHECK(strcmp(text, "no NVRTC") == 0, "%s", text);
    setenv("TULLE_LIBNVRTC", "libm.so.6", 1);           /* another library */
    CHECK(!tl_nvrtc_archs(list, 4, &count, text, sizeof text), "libm");
    CHECK(strstr(text, "nvrtcGetErrorString"), "%s", text);
    unsetenv("TULLE_LIBNVRTC");
    CHECK(tl_nvrtc_archs(list, 4, &count, text, sizeof text) && count == arch_count, "%s", text);
}

TEST_MAIN(TEST(nvrtc_is_there), TEST(every_kernel_compiles_for_every_architecture_and_type),
          TEST(merges_compile_without_values),
          TEST(products_are_not_contracted), TEST(a_newer_device_gets_ptx_of_the_newest_known_one),
          TEST(a_kernel_that_does_not_compile_is_told_with_its_line), TEST(a_missing_nvrtc_is_a_sentence))
