/* SPDX-License-Identifier: MIT
 *
 * jit.c - gets an image: embedded, else from the cache, else compiled.
 *
 * Programs are compiled in parallel, one per thread of the team, in the order of the list.  Each compiler
 * has a base of its own, since failures must not overwrite each other's message; its memory is allocated by
 * the library even if the caller has allocation hooks, which are called only from the caller's thread.
 * After a failure no further program is started; the error reported is that of the first failed program in
 * the list, independent of the timing of threads. */
#include "jit/parts.h"
#include <string.h>

typedef struct task {
    tl_hash      key;                   /* in the cache                              */
    char        *text;
    bool         missing;
    tulle_status status;
    char         error[TL_ERROR_MAX];
} task;

typedef struct job {
    tl_base           *b;
    const tl_compiler *compiler;
    const tl_program  *programs;
    tl_image          *images;
    task              *tasks;
    int                count;
    tl_origin          best;            /* the best origin that is allowed */
    atomic_int         next;
    atomic_bool        stop;
} job;

void tl_image_free(tl_base *b, tl_image *image)
{
    tl_free(b, image->data);
    memset(image, 0, sizeof *image);
}

static tulle_status take_embedded(tl_base *b, const job *j, int i, bool *found)
{
    tulle_status status = TULLE_OK;
    tl_image *image = &j->images[i];
    tl_hash key = tl_embedded_key(j->compiler->dialect, j->tasks[i].text);
    const tl_embedded *e = tl_embedded_find(tl_embedded_table, &key, j->compiler->arch);
    *found = e != NULL;
    if (!e) goto done;
    TRY(tl_alloc(b, &image->data, (int64_t)e->bytes, 1, "an image"));
    memcpy(image->data, e->data, (size_t)e->bytes);
    image->bytes = e->bytes;
    image->origin = TL_EMBEDDED;
    tl_trace(b, "kernel %s: embedded, for %s", j->programs[i].file, e->arch);
done:
    return status;
}

/* Gets the source text, and the image if it need not be compiled. */
static tulle_status look(tl_base *b, const job *j, int i, tl_cache *cache)
{
    tulle_status status = TULLE_OK;
    task *t = &j->tasks[i];
    double begun = tl_now();
    bool found = false;
    TRY(tl_jit_source(b, j->compiler->dialect, &j->programs[i], &t->text));
    if (j->best == TL_EMBEDDED) TRY(take_embedded(b, j, i, &found));
    if (!found) {
        t->key = tl_cache_key(j->compiler, t->text);
        found = j->best != TL_COMPILED && tl_cache_get(b, cache, &t->key, &j->images[i]);
        if (found) {
            j->images[i].origin = TL_CACHED;
            tl_trace(b, "kernel %s: from the cache", j->programs[i].file);
        }
    }
    t->missing = !found;
    j->images[i].seconds = tl_now() - begun;
done:
    return status;
}

static void compile(job *j, int i)
{
    task *t = &j->tasks[i];
    tl_image *image = &j->images[i];
    tl_base own = {.pool = j->b->pool};
    double begun = tl_now();
    t->status = j->compiler->compile(j->compiler->self, &own, j->programs[i].file, t->text, image);
    image->origin = TL_COMPILED;
    image->seconds = tl_now() - begun;
    atomic_fetch_add(&j->b->held, atomic_load(&own.held));
    if (t->status == TULLE_OK) return;
    tl_image_free(j->b, image);
    if (own.error[0]) memcpy(t->error, own.error, sizeof t->error);
    atomic_store(&j->stop, true);
}

static void work(void *arg, int thread, int threads)
{
    job *j = arg;
    (void)threads;
    for (;;) {
        int i = atomic_fetch_add(&j->next, 1);
        if (i >= j->count || atomic_load(&j->stop)) return;
        if (thread == 0) tl_progress(j->b, TL_COMPILING, (double)i / (j->count + 1));
        if (atomic_load_explicit(&j->b->cancelled, memory_order_relaxed)) return;
        if (j->tasks[i].missing) compile(j, i);
    }
}

/* Copies an image from the library's own memory to that of the caller's hooks, if there are any. */
static tulle_status rehouse(tl_base *b, tl_image *image)
{
    tulle_status status = TULLE_OK;
    void *copy = NULL;
    if (!b->mem.alloc || !image->data) goto done;
    TRY(tl_alloc(b, &copy, (int64_t)image->bytes, 1, "an image"));
    memcpy(copy, image->data, (size_t)image->bytes);
    tl_free(b, image->data);
    image->data = copy;
done:
    return status;
}

static tulle_status compile_missing(job *j, tl_cache *cache)
{
    tulle_status status = TULLE_OK;
    tl_base *b = j->b;
    int missing = 0, kept = 0;
    for (int i = 0; i < j->count; i++) missing += j->tasks[i].missing;
    if (missing == 0) goto done;
    tl_team_run(b->team, missing, work, j);
    for (int i = 0; i < j->count; i++) {
        if (!j->tasks[i].missing || !j->images[i].data) continue;
        tl_trace(b, "kernel %s: compiled in %.2f s", j->programs[i].file, j->images[i].seconds);
        tl_cache_put(cache, &j->tasks[i].key, &j->images[i]);
        kept++;
    }
    if (kept > 0) tl_cache_trim(b, cache, TL_CACHE_LIMIT);
    if (cache->trouble[0]) tl_trace(b, "compiled kernels are not kept: %s", cache->trouble);
    for (int i = 0; i < j->count; i++) {
        const task *t = &j->tasks[i];
        if (t->status != TULLE_OK)
            TRY(tl_fail(b, t->status, "%s", t->error[0] ? t->error : tulle_status_text(t->status)));
    }
    if (atomic_load(&b->cancelled)) TRY(tl_fail(b, TULLE_ECANCEL, "cancelled while kernels were compiled"));
    for (int i = 0; i < j->count; i++)
        if (j->tasks[i].missing) TRY(rehouse(b, &j->images[i]));
done:
    return status;
}

static tulle_status images_of(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int number,
                              tl_origin best, tl_image *images)
{
    tulle_status status = TULLE_OK;
    tl_cache cache;
    job j = {
        .b = b, .compiler = compiler, .programs = programs, .images = images, .count = number, .best = best};
    memset(images, 0, (size_t)number * sizeof *images);
    tl_cache_open(&cache);
    TRY(tl_calloc(b, &j.tasks, number, sizeof *j.tasks, "a list of kernels"));
    for (int i = 0; i < number; i++) TRY(look(b, &j, i, &cache));
    TRY(compile_missing(&j, &cache));
done:
    for (int i = 0; i < number; i++) {
        if (j.tasks) tl_free(b, j.tasks[i].text);
        if (status != TULLE_OK) tl_image_free(b, &images[i]);
    }
    tl_free(b, j.tasks);
    return status;
}

tulle_status tl_jit_images(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                           tl_image *images)
{
    const char *wanted = tl_env("TULLE_IMAGES");
    return images_of(b, compiler, programs, count,
                     wanted && strcmp(wanted, "off") == 0 ? TL_CACHED : TL_EMBEDDED, images);
}

tulle_status tl_jit_compiled(tl_base *b, const tl_compiler *compiler, const tl_program *programs, int count,
                             tl_image *images)
{
    return images_of(b, compiler, programs, count, TL_CACHED, images);
}

tulle_status tl_jit_again(tl_base *b, const tl_compiler *compiler, const tl_program *program, tl_image *image)
{
    const tl_origin refused = image->origin;
    tl_image_free(b, image);
    return images_of(b, compiler, program, 1, refused == TL_EMBEDDED ? TL_CACHED : TL_COMPILED, image);
}
