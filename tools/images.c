/* SPDX-License-Identifier: MIT
 *
 * images.c - the program that makes images while the library is built.
 *
 *     images [--must] OUT.c
 *
 * Every program that the GPU engine names (tl_program_ahead) is compiled by NVRTC for each architecture below, as
 * machine code and as PTX, which runs on all that is newer: one compilation gives both, and one entry of the cache holds
 * them.  OUT.c has them as the table of jit/parts.h.
 * Where there is no NVRTC, or a program does not compile, it says so and goes without; --must makes that an
 * error.  What was compiled before comes from the cache ($TULLE_CACHE), so that a build after a small change is
 * short. */
#include "gpu/engine.h"
#include "gpu/nvrtc.h"
#include "jit/parts.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct { const char *code, *ptx; } archs[] = {{"sm_80", "compute_80"}, {"sm_90", "compute_90"}};

enum { ARCHS = sizeof archs / sizeof *archs, MOST = 256 };

typedef struct list {
    tl_program program[MOST];
    tl_image   image[MOST];
    int        count;
} list;

/* Both in one: the bytes of the machine code as a number, it itself, the PTX. */
static tulle_status compile(void *arch, tl_base *b, const char *name, const char *source, tl_image *image)
{
    tulle_status status = TULLE_OK;
    tl_image code = {0}, ptx = {0};
    unsigned char *both = NULL;
    *image = (tl_image){0};
    TRY(tl_nvrtc_compile_both(b, arch, name, source, &code, &ptx));
    uint64_t bytes = sizeof code.bytes + code.bytes + ptx.bytes;
    TRY(tl_alloc(b, &both, (int64_t)bytes, 1, "two images"));
    memcpy(both, &code.bytes, sizeof code.bytes);
    memcpy(both + sizeof code.bytes, code.data, code.bytes);
    memcpy(both + sizeof code.bytes + code.bytes, ptx.data, ptx.bytes);
    *image = (tl_image){.data = both, .bytes = bytes, .origin = TL_COMPILED, .seconds = code.seconds};
done:
    tl_image_free(b, &code);
    tl_image_free(b, &ptx);
    return status;
}

/* Parts of what compile() made, not to be freed; false: it is something else. */
static bool take_apart(const tl_image *both, tl_image *code, tl_image *ptx)
{
    unsigned char *p = both->data;
    uint64_t bytes;
    if (both->bytes < sizeof bytes) return false;
    memcpy(&bytes, p, sizeof bytes);
    if (bytes > both->bytes - sizeof bytes) return false;
    *code = (tl_image){.data = p + sizeof bytes, .bytes = bytes};
    *ptx = (tl_image){.data = p + sizeof bytes + bytes, .bytes = both->bytes - sizeof bytes - bytes};
    return true;
}

/* All at once; where one fails, one by one, so that it costs only itself. */
static int compile_all(tl_base *b, list *l, const tl_compiler *compiler)
{
    int missing = 0;
    if (tl_jit_compiled(b, compiler, l->program, l->count, l->image) == TULLE_OK) return 0;
    for (int i = 0; i < l->count; i++)
        if (tl_jit_compiled(b, compiler, &l->program[i], 1, &l->image[i]) != TULLE_OK) {
            fprintf(stderr, "images: %s\n", b->error);
            missing++;
        }
    return missing;
}

/* Eight bytes a number: a compiler reads numbers one by one. */
static void write_data(FILE *out, const char *arch, int i, const tl_image *image)
{
    const unsigned char *p = image->data;
    fprintf(out, "static const uint64_t %s_%d[] = {", arch, i);
    for (uint64_t at = 0; at < image->bytes; at += 8) {
        uint64_t word = 0;
        size_t n = image->bytes - at < 8 ? (size_t)(image->bytes - at) : 8;
        memcpy(&word, p + at, n);
        fprintf(out, "%s0x%llx,", at % 64 == 0 ? "\n" : "", (unsigned long long)word);
    }
    fprintf(out, "\n};\n\n");
}

static void write_line(FILE *lines, const char *arch, int i, const tl_image *image, const tl_hash *key)
{
    fprintf(lines, "    {{{");
    for (int k = 0; k < 32; k++) fprintf(lines, "%d,", key->byte[k]);
    fprintf(lines, "}}, \"%s\", %s_%d, %llu},\n", arch, arch, i, (unsigned long long)image->bytes);
}

/* The images of one architecture, code and PTX: data to out, lines of the table to lines. */
static tulle_status write_arch(tl_base *b, FILE *out, FILE *lines, list *l, int a, const char *version, int *made, int *missing,
                               uint64_t *bytes)
{
    tulle_status status = TULLE_OK;
    char *text = NULL, both[64];
    snprintf(both, sizeof both, "%s and %s", archs[a].code, archs[a].ptx);      /* no other image has this key */
    tl_compiler compiler = {.dialect = "cuda", .arch = both, .version = version, .self = (void *)archs[a].code,
                            .compile = compile};
    *missing += 2 * compile_all(b, l, &compiler);
    for (int i = 0; i < l->count; i++) {
        if (!l->image[i].data) continue;
        TRY(tl_jit_source(b, "cuda", &l->program[i], &text));
        tl_hash key = tl_embedded_key("cuda", text);
        tl_free(b, text);
        text = NULL;
        tl_image code, ptx;
        if (take_apart(&l->image[i], &code, &ptx)) {
            write_data(out, archs[a].code, i, &code);
            write_line(lines, archs[a].code, i, &code, &key);
            write_data(out, archs[a].ptx, i, &ptx);
            write_line(lines, archs[a].ptx, i, &ptx, &key);
            *made += 2;
            *bytes += code.bytes + ptx.bytes;
        } else {
            *missing += 2;
        }
        tl_image_free(b, &l->image[i]);
    }
done:
    tl_free(b, text);
    return status;
}

static bool append(FILE *out, FILE *lines)
{
    char part[4096];
    size_t n;
    rewind(lines);
    while ((n = fread(part, 1, sizeof part, lines)) > 0) fwrite(part, 1, n, out);
    return !ferror(lines);
}

int main(int argc, char **argv)
{
    static list l;
    tl_base *b = NULL;
    char version[512], why[512];
    int known[128], known_count, made = 0, missing = 0;
    uint64_t bytes = 0;
    bool must = argc == 3 && strcmp(argv[1], "--must") == 0, good = true;
    if (argc != 2 && !must) {
        fprintf(stderr, "usage: images [--must] OUT.c\n");
        return 2;
    }
    const char *path = argv[argc - 1];
    FILE *out = fopen(path, "w"), *lines = tmpfile();
    if (!out || !lines || tl_base_create(NULL, 0, sizeof *b, &b) != TULLE_OK) {
        fprintf(stderr, "images: %s: %s\n", path, strerror(errno));
        return 1;
    }
    fprintf(out, "/* Written by tools/images.c. */\n#include \"jit/parts.h\"\n\n");
    while (l.count < MOST && tl_program_ahead(l.count, &l.program[l.count])) l.count++;
    if (tl_nvrtc_archs(known, 128, &known_count, why, sizeof why)) {
        tl_nvrtc_version(version, sizeof version);
        for (int a = 0; a < ARCHS && good; a++)
            good = write_arch(b, out, lines, &l, a, version, &made, &missing, &bytes) == TULLE_OK;
        if (!good) fprintf(stderr, "images: %s\n", b->error);
    } else {
        fprintf(stderr, "images: none, %s\n", why);
        missing = l.count;
    }
    fprintf(out, "const tl_embedded tl_embedded_table[] = {\n");
    good = append(out, lines) && good;
    fprintf(out, "    {.arch = NULL},\n};\n");
    fclose(lines);
    good = !ferror(out) && good;
    good = fclose(out) == 0 && good && !(must && missing > 0);
    if (made > 0) printf("images: %d, %.1f MB\n", made, (double)bytes * 1e-6);
    if (!good) remove(path);
    tl_base_free(b);
    return good ? 0 : 1;
}
