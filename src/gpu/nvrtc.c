/* SPDX-License-Identifier: MIT
 *
 * nvrtc.c - finds, opens and calls NVRTC: source text to CUBIN or PTX.
 *
 * No state is kept between calls: an opened library stays in the process (base/dl.c), and opening it again
 * takes microseconds.  Contraction to fused multiply-adds is disabled, so that results equal those of the
 * CPU bit for bit. */
#define _POSIX_C_SOURCE 200809L
#include "gpu/nvrtc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct nvrtcProgram_st *nvrtcProgram;

#define NVRTC_FUNCTIONS(X)                                                                          \
    X(GetErrorString,         const char *, (int result))                                           \
    X(Version,                int, (int *major, int *minor))                                        \
    X(GetNumSupportedArchs,   int, (int *count))                                                    \
    X(GetSupportedArchs,      int, (int *archs))                                                    \
    X(CreateProgram,          int, (nvrtcProgram *, const char *source, const char *name, int headers,\
                                    const char *const *header, const char *const *include_name))    \
    X(DestroyProgram,         int, (nvrtcProgram *))                                                \
    X(CompileProgram,         int, (nvrtcProgram, int options, const char *const *option))          \
    X(GetCUBINSize,           int, (nvrtcProgram, size_t *bytes))                                   \
    X(GetCUBIN,               int, (nvrtcProgram, char *cubin))                                     \
    X(GetPTXSize,             int, (nvrtcProgram, size_t *bytes))                                   \
    X(GetPTX,                 int, (nvrtcProgram, char *ptx))                                       \
    X(GetProgramLogSize,      int, (nvrtcProgram, size_t *bytes))                                   \
    X(GetProgramLog,          int, (nvrtcProgram, char *log))

typedef struct nvrtc {
    void *library;
    int   major, minor;
#define MEMBER(name, result, arguments) result (*name) arguments;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
} nvrtc;

static const tl_dl_entry functions[] = {
#define ENTRY(name, result, arguments) {"nvrtc" #name, offsetof(nvrtc, name), false},
    NVRTC_FUNCTIONS(ENTRY)
#undef ENTRY
};

enum { FUNCTIONS = sizeof functions / sizeof *functions, NAMES = 4, FOLDERS = 5, PATH = 1024, ARCHS = 128 };

static const char *const names[NAMES + 1] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                             "libnvrtc.so", NULL};

/* ---- finding the library */

/* The path of its file, if it can be found without the loader; *size distinguishes releases. */
static bool find_file(char path[PATH], const char **name, long long *size)
{
    const struct { const char *root, *below; } folder[FOLDERS] = {
        {tl_env("CUDA_HOME"), "/lib64"}, {tl_env("CUDA_PATH"), "/lib64"}, {"/usr/local/cuda", "/lib64"},
        {"/usr/lib", "/x86_64-linux-gnu"}, {"/usr", "/lib64"}};
    const char *only = tl_env("TULLE_LIBNVRTC");
    struct stat file;
    for (int f = 0; f < FOLDERS && !only; f++)
        for (int n = 0; n < NAMES && folder[f].root; n++) {
            int length = snprintf(path, PATH, "%s%s/%s", folder[f].root, folder[f].below, names[n]);
            if (length >= PATH || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) continue;
            *name = names[n];
            *size = (long long)file.st_size;
            return true;
        }
    if (!only || stat(only, &file) != 0 || !S_ISREG(file.st_mode)) return false;
    snprintf(path, PATH, "%s", only);
    *name = only;
    *size = (long long)file.st_size;
    return true;
}

/* NVRTC opens its builtins library by name only.  If NVRTC was opened by path, the builtins are in the same
 * folder; after they are loaded here, the name is found. */
static void open_builtins(const nvrtc *rtc, const char *path)
{
    char file[PATH + 64], why[64];
    const char *slash = strrchr(path, '/');
    if (!slash) return;
    snprintf(file, sizeof file, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - path), path, rtc->major,
             rtc->minor);
    tl_dl_close(tl_dl_open((const char *const[]){file, NULL}, why, sizeof why));
}

static bool nvrtc_open(nvrtc *rtc, char *why, size_t bytes)
{
    char path[PATH] = "";
    const char *name, *only = tl_env("TULLE_LIBNVRTC");
    long long size;
    *rtc = (nvrtc){0};
    if (find_file(path, &name, &size))
        rtc->library = tl_dl_open((const char *const[]){path, NULL}, why, bytes);
    else
        rtc->library = tl_dl_open(only ? (const char *const[]){only, NULL} : names, why, bytes);
    if (!rtc->library || !tl_dl_symbols(rtc->library, functions, FUNCTIONS, rtc, why, bytes)) return false;
    if (rtc->Version(&rtc->major, &rtc->minor) != 0) {
        snprintf(why, bytes, "NVRTC does not tell its version");
        return false;
    }
    open_builtins(rtc, path);
    return true;
}

static void nvrtc_close(nvrtc *rtc)
{
    tl_dl_close(rtc->library);
    rtc->library = NULL;
}

void tl_nvrtc_version(char *text, size_t bytes)
{
    nvrtc rtc = {0};
    char path[PATH], why[256];
    const char *name;
    long long size;
    if (find_file(path, &name, &size))
        snprintf(text, bytes, "%s of %lld bytes", name, size);
    else if (nvrtc_open(&rtc, why, sizeof why))
        snprintf(text, bytes, "NVRTC %d.%d", rtc.major, rtc.minor);
    else
        snprintf(text, bytes, "no NVRTC");
    nvrtc_close(&rtc);
}

/* ---- its capabilities */

static int by_number(const void *x, const void *y)
{
    int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

static int known_archs(const nvrtc *rtc, int archs[ARCHS])
{
    int count = 0;
    if (rtc->GetNumSupportedArchs(&count) != 0 || count < 1 || count > ARCHS) return 0;
    if (rtc->GetSupportedArchs(archs) != 0) return 0;
    qsort(archs, (size_t)count, sizeof *archs, by_number);
    return count;
}

bool tl_nvrtc_archs(int *list, int room, int *count, char *text, size_t bytes)
{
    nvrtc rtc = {0};
    int archs[ARCHS];
    *count = 0;
    bool there = nvrtc_open(&rtc, text, bytes);
    if (there) {
        snprintf(text, bytes, "NVRTC %d.%d", rtc.major, rtc.minor);
        *count = known_archs(&rtc, archs);
        for (int i = 0; i < *count && i < room; i++) list[i] = archs[i];
    }
    nvrtc_close(&rtc);
    return there;
}

/* The option for an architecture, and whether its output is PTX. */
static tulle_status choose_arch(tl_base *b, const nvrtc *rtc, const char *arch, const char *name,
                                char *option, size_t bytes, bool *ptx)
{
    int archs[ARCHS], count = known_archs(rtc, archs), below = 0;
    const char *digits = strchr(arch, '_');
    int wanted = digits ? atoi(digits + 1) : 0;
    *ptx = strncmp(arch, "compute_", 8) == 0;
    for (int i = 0; i < count && archs[i] <= wanted; i++) below = archs[i];
    if (below == wanted && wanted > 0) {
        snprintf(option, bytes, "--gpu-architecture=%s", arch);
    } else if (below > 0 && !*ptx) {
        snprintf(option, bytes, "--gpu-architecture=compute_%d", below);
        *ptx = true;
    } else {
        return tl_fail(b, TULLE_ECOMPILE, "kernel file %s: NVRTC %d.%d does not compile for %s", name,
                       rtc->major, rtc->minor, arch);
    }
    return TULLE_OK;
}

/* ---- one compilation */

/* The first line of the log that mentions an error, otherwise its first line. */
static void first_error(const char *log, char *line, size_t bytes)
{
    const char *at = strstr(log, "error");
    if (!at) at = log + strspn(log, " \n");
    while (at > log && at[-1] != '\n') at--;
    snprintf(line, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

static tulle_status take_log(tl_base *b, const nvrtc *rtc, nvrtcProgram program, char **text)
{
    size_t bytes = 0;
    if (rtc->GetProgramLogSize(program, &bytes) != 0) bytes = 0;
    tulle_status status = tl_calloc(b, text, (int64_t)bytes + 1, 1, "the compiler's log");
    if (status == TULLE_OK && bytes > 0) rtc->GetProgramLog(program, *text);
    return status;
}

static tulle_status take_image(tl_base *b, const nvrtc *rtc, nvrtcProgram program, bool ptx, const char *name,
                               tl_image *image)
{
    tulle_status status = TULLE_OK;
    size_t bytes = 0;
    int result = ptx ? rtc->GetPTXSize(program, &bytes) : rtc->GetCUBINSize(program, &bytes);
    if (result == 0 && bytes > 0) {
        TRY(tl_alloc(b, &image->data, (int64_t)bytes, 1, "a compiled kernel"));
        image->bytes = bytes;
        result = ptx ? rtc->GetPTX(program, image->data) : rtc->GetCUBIN(program, image->data);
    }
    if (result != 0 || bytes == 0)
        status = tl_fail(b, TULLE_ECOMPILE, "kernel file %s: NVRTC gives no %s: %s", name,
                         ptx ? "PTX" : "CUBIN", result ? rtc->GetErrorString(result) : "it is empty");
done:
    if (status != TULLE_OK) {
        tl_free(b, image->data);
        *image = (tl_image){0};
    }
    return status;
}

/* ptx_too, unless NULL, gets the PTX from which the machine code was generated. */
static tulle_status compile(tl_base *b, const char *arch, const char *name, const char *source,
                            tl_image *image, tl_image *ptx_too, char *log, size_t log_bytes)
{
    tulle_status status = TULLE_OK;
    nvrtc rtc = {0};
    nvrtcProgram program = NULL;
    char why[512], target[64], *text = NULL;
    bool ptx = false;
    double begun = tl_now();
    *image = (tl_image){0};
    if (!nvrtc_open(&rtc, why, sizeof why)) {
        status = tl_fail(b, TULLE_ECOMPILE,
                         "kernel file %s must be compiled, but there is no NVRTC: %s (install "
                         "the CUDA toolkit or set CUDA_HOME)",
                         name, why);
        goto done;
    }
    TRY(choose_arch(b, &rtc, arch, name, target, sizeof target, &ptx));
    const char *options[] = {target, "--std=c++17", "--fmad=false", "-default-device", "--ptxas-options=-v"};
    int result = rtc.CreateProgram(&program, source, name, 0, NULL, NULL);
    if (result == 0) result = rtc.CompileProgram(program, log ? 5 : 4, options);
    if (program) TRY(take_log(b, &rtc, program, &text));
    if (log) snprintf(log, log_bytes, "%s", text ? text : "");
    if (result != 0) {
        if (text && *text) first_error(text, why, sizeof why);
        else snprintf(why, sizeof why, "%s", rtc.GetErrorString(result));
        status = tl_fail(b, TULLE_ECOMPILE, "kernel file %s does not compile for %s: %s", name, arch, why);
        goto done;
    }
    if (ptx_too) TRY(take_image(b, &rtc, program, true, name, ptx_too));
    TRY(take_image(b, &rtc, program, ptx, name, image));
    image->origin = TL_COMPILED;
    image->seconds = tl_now() - begun;
done:
    if (program) rtc.DestroyProgram(&program);
    tl_free(b, text);
    nvrtc_close(&rtc);
    return status;
}

tulle_status tl_nvrtc_compile(tl_base *b, const char *arch, const char *name, const char *source,
                              tl_image *image, char *log, size_t log_bytes)
{
    return compile(b, arch, name, source, image, NULL, log, log_bytes);
}

tulle_status tl_nvrtc_compile_both(tl_base *b, const char *arch, const char *name, const char *source,
                                   tl_image *cubin, tl_image *ptx)
{
    *ptx = (tl_image){0};
    tulle_status status = compile(b, arch, name, source, cubin, ptx, NULL, 0);
    if (status != TULLE_OK) tl_image_free(b, ptx);
    return status;
}
