/* SPDX-License-Identifier: MIT
 *
 * fuzz.h - what the fuzzers share: a context that cannot allocate more than 64 MiB, a file for the input, and a
 * main() for compilers without libFuzzer:
 *
 *     fuzz_x SECONDS[:MUTATIONS] CORPUS       every file of the corpus, then mutations of them, until the time or
 *                                             the number of mutations is reached (bound.h)
 *
 * Mutations use a fixed seed, so failures are reproducible; the input that failed is left in fuzz-PID.input.
 * With libFuzzer compile with -DTULLE_LIBFUZZER -fsanitize=fuzzer. */
#ifndef TULLE_FUZZ_H
#define TULLE_FUZZ_H
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bound.h"
#include "tulle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FUZZ_MOST = 1 << 16, FUZZ_FILES = 256 };

/* ---- memory: counted, bounded */

static int64_t fuzz_live;

static inline void *fuzz_alloc(void *user, size_t bytes)
{
    (void)user;
    size_t *p = bytes <= (size_t)64 << 20 ? malloc(bytes) : NULL;
    fuzz_live += p != NULL;
    return p;
}

static inline void fuzz_free(void *user, void *p)
{
    (void)user;
    fuzz_live--;
    free(p);
}

static inline tulle_ctx *fuzz_context(void)
{
    static tulle_ctx *ctx;
    static const tulle_mem mem = {fuzz_alloc, fuzz_free, NULL};
    if (!ctx && (tulle_ctx_create("cpu", &mem, &ctx) != TULLE_OK || tulle_ctx_set_threads(ctx, 2) != TULLE_OK))
        abort();
    return ctx;
}

static inline void fuzz_expect(int good, const char *what)
{
    if (good) return;
    printf("failed: %s\n", what);
    fflush(stdout);
    abort();
}

/* ---- files */

static inline const char *fuzz_path(const char *ending)
{
    static char path[128];
    snprintf(path, sizeof path, "fuzz-%ld%s", (long)getpid(), ending);
    return path;
}

static inline void fuzz_put(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    fuzz_expect(f && fwrite(data, 1, bytes, f) == bytes && fclose(f) == 0, "a file could not be written");
}

/* Reads path; a failure must have a message, a matrix must be valid, and nothing may leak. */
static inline tulle_matrix *fuzz_read(const char *path)
{
    tulle_ctx *ctx = fuzz_context();
    int64_t before = fuzz_live;
    tulle_matrix *A = NULL;
    tulle_status status = tulle_read(ctx, path, &A);
    if (status == TULLE_OK) {
        tulle_csr view = tulle_matrix_view(A);
        fuzz_expect(tulle_csr_check(ctx, &view) == TULLE_OK, tulle_ctx_error(ctx));
        return A;
    }
    fuzz_expect(status == TULLE_EFORMAT || status == TULLE_ENOMEM || status == TULLE_EIO, "an odd status");
    fuzz_expect(A == NULL && tulle_ctx_error(ctx)[0] != 0, "no sentence");
    fuzz_expect(fuzz_live == before, "memory was not freed");
    return NULL;
}

/* ---- main() without libFuzzer */

#if !defined(TULLE_LIBFUZZER)

static uint64_t fuzz_state = 88172645463325252u;

static uint64_t fuzz_random(uint64_t below)
{
    fuzz_state ^= fuzz_state << 13;
    fuzz_state ^= fuzz_state >> 7;
    fuzz_state ^= fuzz_state << 17;
    return (fuzz_state * 0x9E3779B97F4A7C15u >> 16) % below;
}

static size_t fuzz_mutate(uint8_t *d, size_t n)
{
    static const char *const words[] = {"0", "-1", "1", "9223372036854775807", "2147483648", "\n", " ", "%",
                                        "1e999", "nan", "e", ".", "\r\n", "99999999999999999999", "symmetric",
                                        "array", "complex"};
    for (uint64_t rounds = 1 + fuzz_random(4); rounds > 0; rounds--) {
        size_t at = n > 0 ? fuzz_random(n) : 0;
        switch (fuzz_random(6)) {
        case 0: if (n > 0) d[at] = (uint8_t)(d[at] ^ 1 << fuzz_random(8)); break;
        case 1: if (n > 0) d[at] = (uint8_t)fuzz_random(256); break;
        case 2: n = at; break;
        case 3: {                                       /* remove a piece */
            size_t length = n > at ? 1 + fuzz_random(n - at < 16 ? n - at : 16) : 0;
            memmove(d + at, d + at + length, n - at - length);
            n -= length;
            break;
        }
        case 4: {                                       /* put a word in */
            const char *w = words[fuzz_random(sizeof words / sizeof *words)];
            size_t length = strlen(w);
            if (n + length > FUZZ_MOST) break;
            memmove(d + at + length, d + at, n - at);
            memcpy(d + at, w, length);
            n += length;
            break;
        }
        default: {                                      /* repeat a piece */
            size_t length = n > at ? 1 + fuzz_random(n - at < 64 ? n - at : 64) : 0;
            if (n + length > FUZZ_MOST) break;
            memmove(d + at + length, d + at, n - at);
            n += length;
            break;
        }
        }
    }
    return n;
}

static void fuzz_one(const uint8_t *data, size_t bytes)
{
    fuzz_put(fuzz_path(".input"), data, bytes);
    LLVMFuzzerTestOneInput(data, bytes);
}

int main(int argc, char **argv)
{
    static uint8_t *seed[FUZZ_FILES], work[FUZZ_MOST];
    static size_t length[FUZZ_FILES];
    int seeds = 0;
    uint64_t runs = 0;
    const char *folder = argc > 2 ? argv[2] : ".";
    struct dirent **list = NULL;
    int files = scandir(folder, &list, NULL, alphasort);        /* sorted, so that runs are reproducible */
    fuzz_expect(files >= 0, "there is no corpus");
    for (int i = 0; i < files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        FILE *f = list[i]->d_name[0] != '.' && seeds < FUZZ_FILES ? fopen(path, "rb") : NULL;
        free(list[i]);
        if (!f) continue;
        seed[seeds] = malloc(FUZZ_MOST);
        fuzz_expect(seed[seeds] != NULL, "no memory");
        length[seeds] = fread(seed[seeds], 1, FUZZ_MOST, f);
        fclose(f);
        fuzz_one(seed[seeds], length[seeds]);
        seeds++;
    }
    free(list);
    fuzz_expect(seeds > 0, "the corpus is empty");
    const fuzz_bound bound = fuzz_bound_begin(argc > 1 ? argv[1] : "5");
    while (fuzz_bound_more(&bound, runs)) {
        int s = (int)fuzz_random((uint64_t)seeds);
        memcpy(work, seed[s], length[s]);
        fuzz_one(work, fuzz_mutate(work, length[s]));
        runs++;
    }
    tulle_ctx_free(fuzz_context());
    fuzz_expect(fuzz_live == 0, "memory was not freed");
    for (int s = 0; s < seeds; s++) free(seed[s]);
    remove(fuzz_path(".input"));
    printf("%d files of the corpus, %" PRIu64 " mutations\n", seeds, runs);
    fuzz_bound_tell(&bound, runs);
    return 0;
}

#endif
#endif
