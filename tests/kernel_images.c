/* SPDX-License-Identifier: MIT
 *
 * kernel_images.c - prints a line for every kernel file and set of types: the types, and the SHA-256 of the
 * machine code that NVRTC generates for sm_90; needs no device.  If a change only refactors kernels, the
 * lines before and after are equal; otherwise the generated code has changed.
 *
 *   kernel_images [FILE...]        all files, or those named
 *   kernel_images --ptx [FILE...]  the hash of PTX for compute_90, several times as fast */
#include "gpu/engine.h"
#include "gpu/nvrtc.h"
#include "jit/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 512 };

static const struct { int val, ptr, idx, key; } builds[] = {
    {2, 32, 32, 32}, {1, 32, 32, 32}, {3, 64, 32, 64}, {4, 64, 64, 64}, {2, 32, 32, 64}};

typedef struct job {
    tl_program   program;
    char         types[32];
    tulle_status status;
    char         text[TL_ERROR_MAX];    /* the hash, or the error */
} job;

static struct {
    job         job[JOBS];
    int         count;
    atomic_int  next;
    const char *arch;
} all;

static void do_job(tl_base *b, job *j)
{
    tulle_status status = TULLE_OK;
    tl_image image = {0};
    char *source = NULL;
    TRY(tl_jit_source(b, "cuda", &j->program, &source));
    TRY(tl_nvrtc_compile(b, all.arch, j->program.file, source, &image, NULL, 0));
    const tl_hash hash = tl_sha256_of(image.data, (size_t)image.bytes);
    for (int i = 0; i < 32; i++) snprintf(j->text + 2 * i, 3, "%02x", hash.byte[i]);
done:
    j->status = status;
    if (status != TULLE_OK) snprintf(j->text, sizeof j->text, "%s", b->error);
    tl_free(b, source);
    tl_image_free(b, &image);
}

static void do_jobs(void *arg, int thread, int threads)
{
    tl_base *b = NULL;
    (void)arg, (void)thread, (void)threads;
    if (tl_base_create(NULL, 1, sizeof *b, &b) != TULLE_OK) abort();
    for (int i; (i = atomic_fetch_add(&all.next, 1)) < all.count;) do_job(b, &all.job[i]);
    tl_base_free(b);
}

static bool wanted(const char *file, char **names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(file, names[i]) == 0) return true;
    return !names[0];
}

/* The programs built ahead of time have the largest block size, and whether the file depends on value
 * types. */
static void add_jobs(const tl_program *ahead)
{
    const int threads = atoi(strstr(ahead->defines, "#define THREADS_MAX ") + strlen("#define THREADS_MAX "));
    const bool values = atoi(strstr(ahead->defines, "#define VAL ") + strlen("#define VAL ")) != 0;
    for (int k = 0; k < TL_COUNT(builds); k++) {
        const tl_types t = {builds[k].ptr, builds[k].idx, builds[k].key, values ? builds[k].val : 0};
        if (!values && builds[k].val == 1) continue;            /* the same as for double */
        if (all.count == JOBS) abort();
        job *j = &all.job[all.count++];
        tl_program_make(ahead->file, threads, t, &j->program);
        snprintf(j->types, sizeof j->types, "val %d ptr %d idx %d key %d", t.val, t.ptr, t.idx, t.key);
    }
}

int main(int argc, char **argv)
{
    tl_base *b = NULL;
    tl_program p;
    const char *last = "";
    int failed = 0;
    (void)argc;
    all.arch = "sm_90";
    if (*++argv && strcmp(*argv, "--ptx") == 0) all.arch = "compute_90", argv++;
    if (tl_base_create(NULL, tl_cores(), sizeof *b, &b) != TULLE_OK) return 1;
    for (int i = 0; tl_program_ahead(i, &p); i++) {
        if (strcmp(p.file, last) != 0 && wanted(p.file, argv)) add_jobs(&p);
        last = p.file;
    }
    tl_team_run(b->team, 0, do_jobs, NULL);
    for (int i = 0; i < all.count; i++) {
        const job *j = &all.job[i];
        printf("%-18s %-28s %s\n", j->program.file, j->types, j->text);
        failed += j->status != TULLE_OK;
    }
    tl_base_free(b);
    return failed > 0;
}
