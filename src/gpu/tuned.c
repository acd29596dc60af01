/* SPDX-License-Identifier: MIT
 *
 * tuned.c - the thresholds of policy auto on this device: of the file that TULLE_GPU_TUNE names, or else of
 * the file with the device's name in the cache folder, or else the defaults of its family.
 *
 * A file is read once, before the first product.  One that was named and cannot be read is an error; one of
 * the cache folder is left alone then, and the trace says why.  Thresholds of another family of devices are
 * not used.  They are only numbers within ranges, so that nothing of the file can make a product wrong. */
#include "gpu/engine.h"
#include "jit/parts.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char ending[] = ".thresholds";

tl_family tl_gpu_family(const tl_gpu *gpu)
{
    return tl_family_of(gpu->driver->name, gpu->caps.arch, gpu->caps.name, gpu->caps.cpu);
}

void tl_gpu_thresholds(tl_gpu *gpu, const tl_thresholds *t)
{
    const tl_thresholds usual = tl_thresholds_usual(tl_gpu_family(gpu));
    tl_thresholds_set(t ? t : &usual, &gpu->tuned);
    gpu->tuned_ready = t != NULL;
    gpu->tuned_from[0] = 0;
}

/* Letters and digits of the device's name, what is between them as a hyphen. */
bool tl_gpu_tuned_path(const tl_gpu *gpu, bool make, char *path, size_t bytes)
{
    tl_cache cache;
    char name[128];
    size_t n = 0;
    tl_cache_open(&cache);
    if (!(make ? tl_cache_make(&cache) : tl_cache_usable(&cache))) {
        snprintf(path, bytes, "%s", cache.trouble);
        return false;
    }
    for (const char *at = gpu->caps.name; *at && n < sizeof name - 1; at++) {
        if (isalnum((unsigned char)*at)) name[n++] = *at;
        else if (n > 0 && name[n - 1] != '-') name[n++] = '-';
    }
    while (n > 0 && name[n - 1] == '-') n--;
    name[n] = 0;
    const int length = snprintf(path, bytes, "%s/%s%s", cache.path, n ? name : "device", ending);
    return length > 0 && (size_t)length < bytes;
}

static tulle_status take(tl_base *b, tl_gpu *gpu, const char *path)
{
    tulle_status status = TULLE_OK;
    tl_tuned t;
    const tl_family family = tl_gpu_family(gpu);
    TRY(tl_tuned_read(b, path, &t));
    if (t.family != family) {
        tl_trace(b, "the thresholds in %.200s are not taken: they were measured on %.80s, of family %s, and "
                 "this device is of family %s", path, t.device, tl_family_name(t.family),
                 tl_family_name(family));
        goto done;
    }
    tl_gpu_thresholds(gpu, &t.thresholds);
    snprintf(gpu->tuned_from, sizeof gpu->tuned_from,
             "thresholds: measured on %.80s with %d matrices, slowdown %.3f (%.3f with the defaults), and "
             "%.3f (%.3f) of %d kept aside, from %.200s", t.device, t.score[0].matrices, t.score[0].tuned,
             t.score[0].usual, t.score[1].tuned, t.score[1].usual, t.score[1].matrices, path);
done:
    return status;
}

static tulle_status find(tl_base *b, tl_gpu *gpu)
{
    const char *named = tl_env("TULLE_GPU_TUNE");
    char path[1200];
    tl_gpu_thresholds(gpu, NULL);
    if (named) return strcmp(named, "off") == 0 ? TULLE_OK : take(b, gpu, named);
    if (!tl_gpu_tuned_path(gpu, false, path, sizeof path) || access(path, F_OK) != 0) return TULLE_OK;
    if (take(b, gpu, path) != TULLE_OK) {
        tl_trace(b, "the thresholds are not taken: %s", b->error);
        b->error[0] = 0;
    }
    return TULLE_OK;
}

tulle_status tl_gpu_tuned(tl_base *b, tl_gpu *gpu, tl_recipe *recipe)
{
    tulle_status status = TULLE_OK;
    if (recipe->policy != &tl_policy_auto || recipe->forced >= 0) return TULLE_OK;
    if (!gpu->tuned_ready) TRY(find(b, gpu));
    gpu->tuned_ready = true;
    if (gpu->tuned_from[0]) tl_trace(b, "%s", gpu->tuned_from);
    recipe->policy = &gpu->tuned.policy;
    memcpy(recipe->few_rows, recipe->policy->few_rows, sizeof recipe->few_rows);
done:
    return status;
}
