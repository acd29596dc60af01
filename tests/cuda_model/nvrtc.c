/* SPDX-License-Identifier: MIT
 *
 * nvrtc.c - libnvrtc of the CUDA model: compiles kernels to a shared object with the system's C++ compiler.
 *
 * The compiler runs twice.  The output of its preprocessor, with device.h at the beginning, is rewritten: constructs that
 * cannot be defined in a header are replaced:
 *
 *   __global__, __launch_bounds__(n, m)   removed; the kernel's name and n are added to the image's list
 *   __shared__ T x[N]                     static, in a section that is named after the kernel
 *   extern __shared__ T x[]               a pointer to the block's dynamic shared memory
 *   asm("op.a.b ..." : ... : ...)         a call of cuda_model_ptx_op_a_b with the operands, outputs first
 *
 * Then the list of kernels is appended and the result is compiled, without fused multiply-adds.  Error messages have the
 * kernel file's name and line, because the line markers of the preprocessor are kept.  Nothing is cached: tulle has its
 * own cache. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "image.h"

#define API __attribute__((visibility("default")))

extern char **environ;

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6 };
enum { NAME = 96, KERNELS = 64, PATH = 512 };

typedef struct text { char *data; size_t bytes, room; } text;

typedef struct kernel { char name[NAME], bound[NAME]; bool shared; } kernel;

struct nvrtcProgram_st { char *source; text image, log; };
typedef struct nvrtcProgram_st *nvrtcProgram;

static const int archs[] = {75, 80, 90};
enum { ARCHS = sizeof archs / sizeof *archs };

/* ---- growing buffers; running out of memory ends the test */

static void put(text *t, const char *from, size_t bytes)
{
    if (t->bytes + bytes + 1 > t->room) {
        t->room = 2 * (t->bytes + bytes) + 4096;
        t->data = realloc(t->data, t->room);
        if (!t->data) abort();
    }
    memcpy(t->data + t->bytes, from, bytes);
    t->bytes += bytes;
    t->data[t->bytes] = 0;
}

static void put_words(text *t, const char *words) { put(t, words, strlen(words)); }

static void put_formatted(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put_formatted(text *t, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    put_words(t, line);
}

static void put_file(text *t, const char *path)
{
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) return;
    while ((n = fread(part, 1, sizeof part, f)) > 0) put(t, part, n);
    fclose(f);
}

/* ---- reading preprocessed C++ */

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }
static const char *skip_space(const char *p) { return p + strspn(p, " \t\n"); }

static size_t word_at(const char *p)
{
    size_t n = 0;
    while (is_letter(p[n])) n++;
    return n;
}

static bool is_word(const char *p, size_t n, const char *word) { return strlen(word) == n && memcmp(p, word, n) == 0; }

/* The position after the string literal that starts here. */
static const char *skip_quote(const char *p)
{
    const char mark = *p++;
    while (*p && *p != mark) p += *p == '\\' && p[1] ? 2 : 1;
    return *p ? p + 1 : p;
}

/* The position after the closing bracket of the one here; with `stop`, at that character outside of inner brackets. */
static const char *skip_brackets(const char *p, const char *stop)
{
    int depth = 0;
    while (*p) {
        if (*p == '"' || *p == '\'') {
            p = skip_quote(p);
            continue;
        }
        if (depth == (stop ? 0 : 1) && stop && strchr(stop, *p)) return p;
        if (strchr("([{", *p)) depth++;
        if (strchr(")]}", *p) && --depth == 0 && !stop) return p + 1;
        p++;
    }
    return p;
}

/* ---- the replacements; each function gets the text at a keyword and returns the position after what it replaced */

/* "void __launch_bounds__(n, m) name(": writes what precedes the name, without the bounds, and records n. */
static const char *take_kernel(const char *p, text *out, kernel *k)
{
    *k = (kernel){.bound = "0"};
    for (p = skip_space(p); *p; p = skip_space(p)) {
        size_t n = word_at(p);
        if (n == 0) break;
        if (is_word(p, n, "__launch_bounds__")) {
            const char *from = skip_space(p + n), *comma = skip_brackets(from + 1, ",)");
            snprintf(k->bound, sizeof k->bound, "%.*s", (int)(comma - from - 1), from + 1);
            p = skip_brackets(from, NULL);
            continue;
        }
        if (*skip_space(p + n) == '(' && !is_word(p, n, "__attribute__")) {
            snprintf(k->name, sizeof k->name, "%.*s", (int)n, p);
            break;
        }
        put(out, p, n);
        put_words(out, " ");
        p += n;
        if (*skip_space(p) == '(') p = skip_brackets(skip_space(p), NULL);
    }
    return p;
}

/* "attributes T name[];" after extern __shared__ */
static const char *take_dynamic(const char *p, text *out)
{
    char type[NAME] = "", name[NAME] = "";
    for (p = skip_space(p); *p && *p != '['; p = skip_space(p)) {
        size_t n = word_at(p);
        if (n == 0) return p;
        if (is_word(p, n, "__attribute__")) {
            p = skip_brackets(skip_space(p + n), NULL);
            continue;
        }
        if (name[0]) snprintf(type + strlen(type), sizeof type - strlen(type), "%.40s ", name);
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        p += n;
    }
    put_formatted(out, "%s *const %s = (%s *)cuda_model->dynamic()", type, name, type);
    return *p ? skip_brackets(p, NULL) : p;
}

/* asm volatile ("op ..." "..." : "=r"(a), ... : "f"(b), ... : "memory") */
static const char *take_asm(const char *p, text *out)
{
    bool first = true;
    p = skip_space(p);
    size_t n = word_at(p);
    if (is_word(p, n, "volatile") || is_word(p, n, "__volatile__")) p = skip_space(p + n);
    const char *end = skip_brackets(p, NULL), *at = skip_space(p + 1);
    put_words(out, "cuda_model_ptx_");
    if (*at == '"') at++;
    for (; is_letter(*at) || *at == '.'; at++) put(out, *at == '.' ? "_" : at, 1);
    put_words(out, "(");
    for (at = skip_brackets(skip_space(p + 1), ":"); at < end - 1; at = skip_space(at)) {
        if (*at == '"') {
            at = skip_space(skip_quote(at));
            if (*at != '(') continue;           /* a clobber */
            const char *next = skip_brackets(at, NULL);
            if (!first) put_words(out, ", ");
            put(out, at, (size_t)(next - at));
            first = false;
            at = next;
        } else {
            at++;
        }
    }
    put_words(out, ")");
    return end;
}

/* Rewrites the whole text; returns the number of kernels. */
static int rewrite(const char *p, text *out, kernel *kernels)
{
    int count = 0, depth = 0;
    kernel other = {.name = "none"}, *now = &other;
    while (*p) {
        size_t n = is_letter(*p) ? word_at(p) : 0;
        if (*p == '#' && (out->bytes == 0 || out->data[out->bytes - 1] == '\n')) {      /* a line of the preprocessor */
            n = strcspn(p, "\n");
        } else if (*p == '"' || *p == '\'') {
            n = (size_t)(skip_quote(p) - p);
        } else if (is_word(p, n, "__global__") && count < KERNELS) {
            now = &kernels[count++];
            p = take_kernel(p + n, out, now);
            continue;
        } else if (is_word(p, n, "extern") && strncmp(skip_space(p + n), "__shared__", 10) == 0) {
            p = take_dynamic(skip_space(p + n) + 10, out);
            continue;
        } else if (is_word(p, n, "__shared__")) {
            now->shared = true;
            put_formatted(out, "static __attribute__((used, section(\"shared_%s\")))", now->name);
            p += n;
            continue;
        } else if (is_word(p, n, "asm") || is_word(p, n, "__asm__")) {
            p = take_asm(p + n, out);
            continue;
        } else if (n == 0) {
            n = 1;
            depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
            if (*p == '}' && depth == 0) now = &other;
        }
        put(out, p, n);
        p += n;
    }
    return count;
}

static void put_list(text *out, const kernel *kernels, int count, int capability)
{
    put_words(out, "\n# 1 \"list of kernels\"\n");
    for (int i = 0; i < count; i++)
        if (kernels[i].shared)
            put_formatted(out, "extern \"C\" __attribute__((visibility(\"hidden\"))) char __start_shared_%s[], __stop_shared_%s[];\n",
                          kernels[i].name, kernels[i].name);
    put_words(out, "static const cuda_model_kernel cuda_model_kernels[] = {\n");
    for (int i = 0; i < count; i++) {
        const kernel *k = &kernels[i];
        put_formatted(out, "cuda_model_describe(%s, \"%s\", cuda_model_entry<decltype(%s), %s>::call, (%s), ", k->name, k->name,
                      k->name, k->name, k->bound);
        if (k->shared) put_formatted(out, "__start_shared_%s, __stop_shared_%s),\n", k->name, k->name);
        else put_words(out, "nullptr, nullptr),\n");
    }
    put_formatted(out, "{}};\nextern \"C\" __attribute__((visibility(\"default\"))) const cuda_model_image_t "
                  "cuda_model_image = {%d, %d, %d, cuda_model_kernels, &cuda_model, &cuda_model_here};\n", CUDA_MODEL_VERSION,
                  count, capability);
}

/* ---- the compiler */

static const char *compiler(void)
{
    const char *names[] = {getenv("CUDA_MODEL_CXX"), getenv("CXX"), "c++"};
    int i = 0;
    while (i < 2 && (!names[i] || !*names[i])) i++;
    return names[i];
}

/* Its messages are written to the log; false: its exit status was not 0. */
static bool run(const char *const *words, const char *log_path, text *log)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    int error = posix_spawnp(&child, words[0], &files, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error == 0) {
        while (waitpid(child, &status, 0) < 0) continue;
        put_file(log, log_path);
    } else {
        put_words(log, "error: the compiler cannot be started: ");
        put_words(log, words[0]);
        put_words(log, ": ");
        put_words(log, strerror(error));
        put_words(log, "\n");
    }
    return error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool write_file(const char *path, const char *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool fine = fwrite(data, 1, bytes, f) == bytes;
    return fclose(f) == 0 && fine;
}

/* In a temporary folder: kernel.cu, preprocessed to kernel.i, rewritten to kernel.ii, compiled to image.so. */
static int compile(nvrtcProgram program, int capability)
{
    static const char *const names[] = {"kernel.cu", "kernel.i", "kernel.ii", "image.so", "log"};
    enum { SOURCE, PLAIN, READY, IMAGE, LOG, FILES };
    char folder[PATH], path[FILES][PATH + 16], arch[64];
    const char *temporary = getenv("TMPDIR");
    text plain = {0}, made = {0};
    kernel kernels[KERNELS];
    bool fine;
    snprintf(folder, sizeof folder, "%s/cuda-model-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) return OUT_OF_MEMORY;
    for (int i = 0; i < FILES; i++) snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    snprintf(arch, sizeof arch, "-D__CUDA_ARCH__=%d", 10 * capability);
    const char *const first[] = {compiler(), "-E", "-x", "c++", "-std=c++17", "-w", "-D__CUDACC__", arch, "-include",
                                 CUDA_MODEL_FOLDER "/device.h", path[SOURCE], "-o", path[PLAIN], NULL};
    const char *const second[] = {compiler(), "-std=c++17", "-w", "-O1", "-fPIC", "-shared", "-ffp-contract=off",
                                  "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks",
                                  "-fno-stack-protector",
                                  "-fvisibility=hidden", path[READY], "-o", path[IMAGE], "-lm", NULL};
    fine = write_file(path[SOURCE], program->source, strlen(program->source)) && run(first, path[LOG], &program->log);
    if (fine) {
        put_file(&plain, path[PLAIN]);
        put(&plain, "", 0);
        int count = rewrite(plain.data, &made, kernels);
        put_list(&made, kernels, count, capability);
        fine = write_file(path[READY], made.data, made.bytes) && run(second, path[LOG], &program->log);
    }
    if (fine) put_file(&program->image, path[IMAGE]);
    for (int i = 0; i < FILES; i++) unlink(path[i]);
    rmdir(folder);
    free(plain.data);
    free(made.data);
    return fine && program->image.bytes > 0 ? SUCCESS : COMPILATION;
}

/* ---- NVRTC's functions */

API const char *nvrtcGetErrorString(int result)
{
    static const char *const names[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION",
                                        "NVRTC_ERROR_COMPILATION"};
    return result >= 0 && result <= COMPILATION ? names[result] : "NVRTC_ERROR unknown";
}

API int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 8;
    return SUCCESS;
}

API int nvrtcGetNumSupportedArchs(int *count)
{
    *count = ARCHS;
    return SUCCESS;
}

API int nvrtcGetSupportedArchs(int *list)
{
    memcpy(list, archs, sizeof archs);
    return SUCCESS;
}

API int nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int headers, const char *const *header,
                           const char *const *include_name)
{
    (void)name;
    (void)header;
    (void)include_name;
    if (!out || !source || headers) return INVALID_INPUT;
    nvrtcProgram p = calloc(1, sizeof *p);
    if (p) p->source = strdup(source);
    if (!p || !p->source) abort();
    *out = p;
    return SUCCESS;
}

API int nvrtcDestroyProgram(nvrtcProgram *program)
{
    if (!program || !*program) return INVALID_PROGRAM;
    free((*program)->source);
    free((*program)->image.data);
    free((*program)->log.data);
    free(*program);
    *program = NULL;
    return SUCCESS;
}

/* Accepts options that the model satisfies anyway; the architecture of the device is required. */
API int nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option)
{
    static const char *const known[] = {"--std=c++17", "--fmad=false", "-default-device", "--ptxas-options=-v"};
    int capability = 0;
    if (!program) return INVALID_PROGRAM;
    for (int i = 0; i < options; i++) {
        bool found = sscanf(option[i], "--gpu-architecture=sm_%d", &capability) == 1
                     || sscanf(option[i], "--gpu-architecture=compute_%d", &capability) == 1;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) found |= strcmp(option[i], known[k]) == 0;
        if (found) continue;
        put_words(&program->log, "error: unrecognized option ");
        put_words(&program->log, option[i]);
        return INVALID_OPTION;
    }
    for (int i = 0; i < ARCHS; i++)
        if (archs[i] == capability) return compile(program, capability);
    return INVALID_OPTION;
}

static int size_of(const text *t, size_t more, size_t *bytes)
{
    *bytes = t->bytes + more;
    return SUCCESS;
}

static int copy_of(const text *t, size_t more, char *to)
{
    if (t->bytes) memcpy(to, t->data, t->bytes);
    if (more) to[t->bytes] = 0;
    return SUCCESS;
}

/* In place of PTX it returns the same image. */
API int nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes) { return p ? size_of(&p->image, 0, bytes) : INVALID_PROGRAM; }
API int nvrtcGetCUBIN(nvrtcProgram p, char *to) { return p ? copy_of(&p->image, 0, to) : INVALID_PROGRAM; }
API int nvrtcGetPTXSize(nvrtcProgram p, size_t *bytes) { return p ? size_of(&p->image, 0, bytes) : INVALID_PROGRAM; }
API int nvrtcGetPTX(nvrtcProgram p, char *to) { return p ? copy_of(&p->image, 0, to) : INVALID_PROGRAM; }
API int nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes) { return p ? size_of(&p->log, 1, bytes) : INVALID_PROGRAM; }
API int nvrtcGetProgramLog(nvrtcProgram p, char *to) { return p ? copy_of(&p->log, 1, to) : INVALID_PROGRAM; }
